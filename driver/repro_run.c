/* One run of the command that `tvmcc repro` repeats.
 *
 * Each run has a folder of its own with copies of the inputs, made in one order or in the other,
 * and a process whose surroundings are set after the fork: working folder, user, umask, variables.
 * What the command writes, standard output included, lies in that folder afterwards.
 */
#include "driver/repro.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534, CANNOT_START = 127 };

const char *const vary_names[VARY_COUNT] = {
    "folder", "HOME", "user",  "umask",       "locale", "time zone",
    "date",   "jobs", "order", "environment", "cache",
};

static bool on(uint32_t conditions, Vary v)
{
    return conditions >> v & 1;
}

static bool io_error(Repro *r, const char *path)
{
    return diag_error(r->driver->diags, E_IO, (Loc){.file = path}, "cannot write '%s': %s", path,
                      strerror(errno));
}

/* ---- the folder -------------------------------------------------------------------------------- */

static bool copy_input(Repro *r, const char *folder, const ReproInput *in)
{
    const char *full = arena_printf(r->driver->arena, "%s/%s", folder, in->path);
    const char *parent =
        arena_printf(r->driver->arena, "%.*s", (int)(strrchr(full, '/') - full), full);

    return file_make_folder(r->driver->diags, parent) &&
           file_write_mode(r->driver->diags, full, in->data, in->executable ? 0755 : 0644);
}

/* To the other user with all that is in it, which goes first: in what is his already he could put
 * links in our way.  Closes it. */
static bool give_away(int folder)
{
    DIR           *list = folder >= 0 ? tree_list(folder) : NULL;
    struct dirent *e;
    bool           ok = list != NULL;

    while (ok && (e = readdir(list))) {
        int below = -1;

        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            ok = (below = tree_open_at(folder, e->d_name)) >= 0
                     ? give_away(below)
                     : fchownat(folder, e->d_name, NOBODY, NOBODY, AT_SYMLINK_NOFOLLOW) == 0;
    }
    ok = ok && fchown(folder, NOBODY, NOBODY) == 0;
    if (list)
        closedir(list);
    if (folder >= 0)
        close(folder);
    return ok;
}

/* Where a run takes place, below `top`. */
static const char *run_folder(Repro *r, uint32_t conditions, const char *top)
{
    return arena_printf(r->driver->arena, "%s/%s", top,
                        on(conditions, VARY_FOLDER) ? "another folder/with a longer name" : "a");
}

static bool prepare(Repro *r, uint32_t conditions, const char *top, const char *folder)
{
    Arena      *a = r->driver->arena;
    bool        user = on(conditions, VARY_USER);
    uint32_t    n = r->inputs.n;
    const char *cache = arena_printf(a, "%s/cache", top);
    Diags      *d = r->driver->diags;

    if (!file_make_folder(d, folder) || !file_make_folder(d, arena_printf(a, "%s/home", top)))
        return false;
    if (!on(conditions, VARY_CACHE) ||
        rename(arena_printf(a, "%s/%u/cache", r->work, r->runs), cache) != 0)
        if (!file_make_folder(d, cache))
            return false;
    for (uint32_t i = 0; i < n; i++)
        if (!copy_input(r, folder, &r->inputs.at[on(conditions, VARY_ORDER) ? n - 1 - i : i]))
            return false;
    return !user ||
           (give_away(tree_open(folder)) && lchown(cache, NOBODY, NOBODY) == 0 &&
            lchown(arena_printf(a, "%s/home", top), NOBODY, NOBODY) == 0) ||
           io_error(r, folder);
}

/* ---- the process ------------------------------------------------------------------------------- */

static void set_variables(const Repro *r, uint32_t conditions, const char *top)
{
    bool locale = on(conditions, VARY_LOCALE);

    setenv("TVMCC_CACHE_DIR", arena_printf(r->driver->arena, "%s/cache", top), 1);
    setenv("LC_ALL", locale ? "tr_TR.UTF-8" : "C", 1);
    setenv("LANG", locale ? "de_DE.UTF-8" : "C", 1);
    setenv("LANGUAGE", locale ? "tr:de" : "", 1);
    setenv("TZ", on(conditions, VARY_ZONE) ? "Asia/Kathmandu" : "UTC", 1);
    setenv("NO_FAKE_STAT", "1", 1); /* files keep their times, or Ninja would be confused */
    unsetenv("SOURCE_DATE_EPOCH");
    if (on(conditions, VARY_HOME))
        setenv("HOME", arena_printf(r->driver->arena, "%s/home", top), 1);
    if (on(conditions, VARY_ENVIRONMENT)) {
        setenv("TVMCC_REPRO_UNRELATED", "a variable that no build should read", 1);
        setenv("USER", "somebody", 1);
        setenv("LOGNAME", "somebody", 1);
        setenv("HOSTNAME", "elsewhere", 1);
        setenv("TMPDIR", arena_printf(r->driver->arena, "%s/home", top), 1);
        setenv("COLUMNS", "40", 1);
    }
}

static void redirect(int fd, int to)
{
    if (fd >= 0) {
        dup2(fd, to);
        close(fd);
    }
}

/* A file for what the command says, without a name: it could put a link in place of one. */
static bool open_messages(Repro *r, uint32_t conditions, const char *top)
{
    const char *path = arena_printf(r->driver->arena, "%s/messages", top);

    if (r->runs)
        close(r->messages);
    r->messages = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    return (r->messages >= 0 && unlink(path) == 0 &&
            (!on(conditions, VARY_USER) || fchown(r->messages, NOBODY, NOBODY) == 0)) ||
           io_error(r, path);
}

/* Files among the words the other way round: only verbs for which their order means nothing. */
static void add_words(const Repro *r, bool reverse, TextList *argv)
{
    Arena   *a = r->driver->arena;
    TextList files = {0};

    for (uint32_t i = 0; i < r->words.n; i++)
        if (reverse && i && r->words.at[i][0] != '-' && access(r->words.at[i], F_OK) == 0 &&
            strcmp(r->words.at[i - 1], "-o") != 0)
            vec_push(a, &files, r->words.at[i]);
    for (uint32_t i = 0; i < r->words.n; i++) {
        const char *word = r->words.at[i];

        for (uint32_t k = 0; k < files.n; k++)
            if (files.at[k] == word) {
                word = files.at[files.n - 1 - k];
                break;
            }
        vec_push(a, argv, word);
    }
}

static char **command(const Repro *r, uint32_t conditions)
{
    Arena   *a = r->driver->arena;
    TextList argv = {0};

    if (on(conditions, VARY_DATE)) {
        vec_push(a, &argv, r->faketime);
        vec_push(a, &argv, "2031-07-04 05:06:07");
    }
    for (uint32_t i = 0; i < r->launcher.n; i++)
        vec_push(a, &argv, r->launcher.at[i]);
    vec_push(a, &argv, r->program);
    add_words(r, r->reorder && on(conditions, VARY_ORDER), &argv);
    if (r->takes_jobs)
        vec_push(a, &argv, on(conditions, VARY_JOBS) ? "-j3" : "-j1");
    vec_push(a, &argv, (const char *)NULL);
    return (char **)(uintptr_t)argv.at;
}

static NORETURN void become(const Repro *r, uint32_t conditions, const char *folder,
                            const char *top)
{
    char **argv;

    if (chdir(folder) != 0)
        _exit(CANNOT_START);
    umask(on(conditions, VARY_UMASK) ? 077 : 022);
    argv = command(r, conditions);
    set_variables(r, conditions, top);
    if (on(conditions, VARY_USER) &&
        (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
        _exit(CANNOT_START);
    redirect(open("standard-output", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0644),
             STDOUT_FILENO);
    redirect(r->messages, STDERR_FILENO);
    execvp(argv[0], argv);
    _exit(CANNOT_START);
}

static int wait_for(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

const char *repro_run(Repro *r, uint32_t conditions, int *status)
{
    Arena      *a = r->driver->arena;
    const char *top = arena_printf(a, "%s/run", r->work), *out, *moved;
    const char *folder = run_folder(r, conditions, top);
    struct stat st;
    pid_t       pid;

    if (!prepare(r, conditions, top, folder) || !open_messages(r, conditions, top))
        return NULL;
    fflush(NULL);
    if ((pid = fork()) < 0)
        return diag_error(r->driver->diags, E_NO_TOOL, NO_LOC, "cannot start a process: %s",
                          strerror(errno));
    if (pid == 0)
        become(r, conditions, folder, top);
    *status = wait_for(pid);
    out = arena_printf(a, "%s/standard-output", folder);
    if (lstat(out, &st) == 0 && st.st_size == 0)
        unlink(out);
    moved = arena_printf(a, "%s/%u", r->work, ++r->runs);
    if (rename(top, moved) != 0) {
        io_error(r, moved);
        return NULL;
    }
    return run_folder(r, conditions, moved);
}

bool repro_other_user(const Repro *r, const char **why)
{
    pid_t pid;

    *why = "only root can become another user";
    if (geteuid() != 0 || (pid = fork()) < 0)
        return false;
    if (pid == 0)
        _exit(setgroups(0, NULL) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0 &&
                      access(r->program, X_OK) == 0 && access(r->work, X_OK) == 0
                  ? 0
                  : 1);
    *why = "another user could not run this program";
    return wait_for(pid) == 0;
}
