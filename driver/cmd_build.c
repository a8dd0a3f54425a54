/* tvmcc build: the manifest's products, through Ninja.
 *
 *     tvmcc build -m manifest.yaml -j 8 resnet
 *
 * build.ninja is written into the build folder when it is not there, or was written by another
 * command line; otherwise its own edge `regen` decides, so a build with nothing to do reads no
 * manifest.  One build at a time has the folder: a lock that Ninja and the steps inherit, so it is
 * held as long as any of them lives.  Ninja's progress goes to standard error.
 *
 * Ninja says 1 when a step fails; the step tells its status over a pipe (build_report.c), and that
 * is what the whole ends with.
 */
#include "driver/build.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { SIGNALLED = 128, MAX_SWEEP_DEPTH = 3, PATIENCE_MS = 2000 };

typedef struct {
    Driver    *driver;
    BuildPlace place;
    int        lock, reports[2], signals;
    pid_t      ninja;
    int        status; /* of the first step that failed; 0: none said anything */
    int        signal; /* that ended us; 0: none */
    uint32_t   kernels, compiled;
    char       line[64]; /* of reports, so far */
    size_t     n;
} Run;

/* ---- one build at a time -------------------------------------------------------------------------- */

/* Temporaries of steps that were killed. */
static void sweep(int folder, int depth)
{
    DIR           *list = folder >= 0 ? tree_list(folder) : NULL;
    struct dirent *e;

    while (list && (e = readdir(list))) {
        struct stat st;

        if (e->d_name[0] == '.' || fstatat(folder, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (S_ISDIR(st.st_mode) && depth < MAX_SWEEP_DEPTH)
            sweep(tree_open_at(folder, e->d_name), depth + 1);
        else if (S_ISREG(st.st_mode) && strstr(e->d_name, ".tmp-"))
            unlinkat(folder, e->d_name, 0);
    }
    if (list)
        closedir(list);
    if (folder >= 0)
        close(folder);
}

static bool take_folder(Run *r)
{
    Diags      *d = r->driver->diags;
    const char *path = arena_printf(r->driver->arena, "%s/.tvmcc_lock", r->place.folder);
    char        busy;

    r->lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0666); /* inherited, so not O_CLOEXEC */
    if (r->lock < 0)
        return diag_error(d, E_IO, (Loc){.file = path}, "cannot write '%s': %s", path,
                          strerror(errno));
    if (flock(r->lock, LOCK_EX | LOCK_NB) != 0) {
        fprintf(stderr, "tvmcc: waiting for another build in '%s'\n", r->place.folder);
        while (flock(r->lock, LOCK_EX) != 0) {
            if (errno != EINTR)
                return diag_error(d, E_IO, (Loc){.file = path}, "cannot lock '%s': %s", path,
                                  strerror(errno));
        }
    }
    if (pread(r->lock, &busy, 1, 0) == 1) /* the last build did not come to its end */
        sweep(tree_open(r->place.folder), 0);
    if (pwrite(r->lock, "b", 1, 0) != 1) {
        int error = errno;

        return diag_error(d, E_IO, (Loc){.file = path}, "cannot write '%s': %s", path,
                          strerror(error));
    }
    return true;
}

static void leave_folder(Run *r)
{
    if (r->lock >= 0 && ftruncate(r->lock, 0) == 0)
        close(r->lock);
}

/* ---- build.ninja ---------------------------------------------------------------------------------- */

static bool is_current(Run *r)
{
    const char *head = r->place.head;
    size_t      n = strlen(head);
    char       *have = arena_alloc(r->driver->arena, n);
    int         fd = open(r->place.output, O_RDONLY | O_CLOEXEC);
    bool        same = fd >= 0 && read(fd, have, n) == (ssize_t)n && memcmp(have, head, n) == 0;

    if (fd >= 0)
        close(fd);
    return same;
}

static bool write_rules(Run *r)
{
    if (!file_readable(r->driver->diags, r->place.manifest))
        return false;
    if (is_current(r) && !r->driver->opt.update_lock)
        return true;
    return build_expand(r->driver, &r->place);
}

/* ---- Ninja ---------------------------------------------------------------------------------------- */

/* A file is named from here, but Ninja runs in the build folder. */
static const char *target_name(Run *r, const char *word)
{
    return strchr(word, '/') ? path_from(r->driver->arena, r->place.folder, word) : word;
}

static bool start_ninja(Run *r)
{
    static const char *const   names[] = {"ninja", "ninja-build"};
    const Options             *o = &r->driver->opt;
    Arena                     *a = r->driver->arena;
    posix_spawn_file_actions_t files;
    posix_spawnattr_t          attr;
    sigset_t                   none;
    VEC(char *) words = {0};
    int error = ENOENT;

#define WORD(text) vec_push(a, &words, (char *)(text))
    WORD("ninja");
    WORD("-C");
    WORD(r->place.folder);
    if (o->compile.passes.jobs) {
        WORD("-j");
        WORD(arena_printf(a, "%u", o->compile.passes.jobs));
    }
    if (o->verbose)
        WORD("-v");
    for (uint32_t i = 0; i < o->inputs.n; i++)
        WORD(target_name(r, o->inputs.at[i]));
    WORD(NULL);
#undef WORD
    if (color_wanted(o->color)) /* the steps write to Ninja, which has a terminal or forwards */
        setenv("CLICOLOR_FORCE", "1", 1);
    if (o->color == COLOR_NEVER)
        setenv("NO_COLOR", "1", 1);
    if (stderr_is_terminal())
        setenv("NINJA_STATUS", "[%f/%t] %es  %o/s  ", 0);
    setenv(REPORT_VARIABLE, arena_printf(a, "%d", r->reports[1]), 1);
    sigemptyset(&none);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, 2, 1); /* standard output is for products */
    for (size_t i = 0; i < (o->ninja ? 1 : COUNT(names)) && error; i++)
        error = posix_spawnp(&r->ninja, o->ninja ? o->ninja : names[i], &files, &attr, words.at,
                             environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);
    if (!error)
        return true;
    diag_error(r->driver->diags, E_NO_TOOL, NO_LOC, "cannot run '%s': %s",
               o->ninja ? o->ninja : "ninja", strerror(error));
    diag_hint(r->driver->diags, "install Ninja 1.11 or newer, or name it with --ninja=");
    return false;
}

static void take_line(Run *r)
{
    unsigned all, compiled;
    int      status;

    if (sscanf(r->line, "kernels %u %u", &all, &compiled) == 2) {
        r->kernels += all;
        r->compiled += compiled;
    } else if (sscanf(r->line, "status %d", &status) == 1 && !r->status) {
        r->status = status;
    }
}

/* False at the end: Ninja and all steps are gone. */
static bool read_reports(Run *r)
{
    char    text[512];
    ssize_t n;

    while ((n = read(r->reports[0], text, sizeof text)) > 0) {
        for (ssize_t i = 0; i < n; i++) {
            if (text[i] == '\n') {
                r->line[r->n] = '\0';
                r->n = 0;
                take_line(r);
            } else if (r->n + 1 < sizeof r->line) {
                r->line[r->n++] = text[i];
            }
        }
    }
    return n != 0;
}

/* Signals come as reads, so that there is one thing to wait for.  Ctrl-C reaches Ninja by itself,
 * which belongs to the same terminal. */
static void take_signals(Run *r)
{
    struct signalfd_siginfo info;

    while (read(r->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGCHLD)
            continue;
        r->signal = (int)info.ssi_signo;
        if (info.ssi_signo != SIGINT || info.ssi_code == SI_USER)
            kill(r->ninja, SIGTERM);
    }
}

/* Ninja may end before the steps it stopped, which still remove what they were writing.  Not for
 * long: a launcher may have left a server behind that has our pipe. */
static void wait_for_steps(Run *r)
{
    struct pollfd fd = {.fd = r->reports[0], .events = POLLIN};

    for (int i = 0; i < 20 && read_reports(r); i++)
        poll(&fd, 1, PATIENCE_MS / 20);
}

/* Ninja's exit status as waitpid gives it. */
static int wait_for_ninja(Run *r)
{
    int status = 0;

    for (;;) {
        struct pollfd fds[] = {{.fd = r->signals, .events = POLLIN},
                               {.fd = r->reports[0], .events = POLLIN}};
        pid_t         done = waitpid(r->ninja, &status, WNOHANG);

        read_reports(r);
        if (done == r->ninja || (done < 0 && errno != EINTR)) {
            wait_for_steps(r);
            return status;
        }
        poll(fds, 2, -1);
        take_signals(r);
    }
}

static bool open_channels(Run *r, sigset_t *old)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, old);
    r->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (r->signals < 0 || pipe2(r->reports, O_NONBLOCK) != 0)
        return diag_error(r->driver->diags, E_IO, NO_LOC, "no descriptors are left: %s",
                          strerror(errno));
    fcntl(r->reports[0], F_SETFD, FD_CLOEXEC);
    return true;
}

/* Ninja failed, and no step said why: its own files are the likeliest.  True: they are not it. */
static bool can_write(Run *r)
{
    Driver     *driver = r->driver;
    const char *path =
        file_temporary(driver->diags, driver->arena,
                       arena_printf(driver->arena, "%s/.tvmcc_probe", r->place.folder), 0666);
    uint8_t page[4096] = {0};
    bool    ok = path && file_write(driver->diags, path, (Bytes){page, sizeof page});

    if (path)
        file_drop(path);
    return ok;
}

static int end_status(Run *r, int status)
{
    if (r->signal)
        return SIGNALLED + r->signal;
    if (WIFSIGNALED(status))
        return SIGNALLED + WTERMSIG(status);
    if (WEXITSTATUS(status) == 0)
        return 0;
    if (r->status)
        return r->status;
    return can_write(r) ? WEXITSTATUS(status) : 0;
}

static int run_ninja(Run *r)
{
    sigset_t old;
    int      status = 1;

    if (open_channels(r, &old) && start_ninja(r)) {
        close(r->reports[1]);
        status = end_status(r, wait_for_ninja(r));
        if (r->driver->opt.verbose)
            fprintf(stderr, "tvmcc: kernels: %u, %u from the cache, %u compiled\n", r->kernels,
                    r->kernels - r->compiled, r->compiled);
    }
    unsetenv(REPORT_VARIABLE);
    sigprocmask(SIG_SETMASK, &old, NULL);
    return status;
}

int cmd_build(Driver *driver)
{
    Run r = {.driver = driver, .lock = -1};
    int status = 0;

    if (!build_place(driver, NULL, &r.place) || !take_folder(&r))
        return 0;
    if (write_rules(&r))
        status = run_ninja(&r);
    leave_folder(&r);
    return status;
}
