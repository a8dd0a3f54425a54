/* What must not outlive the process: temporaries, and the tools that write them.
 *
 * Their names and process numbers stand in tables, with a counter and two flags the only mutable
 * globals of the compiler: a signal handler has nothing else to find them by.  A slot is claimed
 * with one atomic step, so that threads may write at the same time; a thread that finds no free
 * slot writes all the same, unprotected.
 *
 *     a thread                                   the handler, in this thread or in another
 *     block signals, one more is busy
 *     stopping?  -> wait for the end             stopping
 *     make a file, put its name in the table     wait until nobody is busy
 *     one less is busy, unblock                  end the tools, remove what the table has, die
 *
 * So a file is in the table or it is not there, whoever hears the signal.
 */
#include "base/temporary.h"
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLOTS = 32, FREE = 0, CLAIMED = 1, NAMED = 2, PATIENCE = 300, STEP_MS = 10 };

static struct {
    atomic_int state;
    char       path[PATH_MAX];
} temporaries[SLOTS];

static atomic_int  tools[SLOTS]; /* process numbers; 0: free */
static atomic_uint last_number;
static atomic_int  busy;
static atomic_bool stopping;

extern char **environ;

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

sigset_t temporary_begin(void)
{
    sigset_t ours, before;

    sigemptyset(&ours);
    for (size_t i = 0; i < COUNT(signals); i++)
        sigaddset(&ours, signals[i]);
    pthread_sigmask(SIG_BLOCK, &ours, &before);
    atomic_fetch_add(&busy, 1);
    while (atomic_load(&stopping)) {
        atomic_fetch_sub(&busy, 1);
        pause();
        atomic_fetch_add(&busy, 1);
    }
    return before;
}

void temporary_end(sigset_t before)
{
    atomic_fetch_sub(&busy, 1);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void temporary_remember(const char *path)
{
    if (strlen(path) >= PATH_MAX)
        return;
    for (int i = 0; i < SLOTS; i++) {
        int expected = FREE;

        if (atomic_compare_exchange_strong(&temporaries[i].state, &expected, CLAIMED)) {
            strcpy(temporaries[i].path, path);
            atomic_store(&temporaries[i].state, NAMED);
            return;
        }
    }
}

void temporary_forget(const char *path)
{
    for (int i = 0; i < SLOTS; i++) {
        if (atomic_load(&temporaries[i].state) == NAMED && strcmp(temporaries[i].path, path) == 0) {
            atomic_store(&temporaries[i].state, FREE);
            return;
        }
    }
}

unsigned temporary_number(void)
{
    return atomic_fetch_add(&last_number, 1u);
}

/* It removes what it was writing, if it hears SIGTERM as most do. */
static void end_tool(pid_t pid)
{
    if (kill(pid, SIGTERM) != 0)
        return;
    for (int i = 0; i < PATIENCE; i++) {
        if (waitpid(pid, NULL, WNOHANG) != 0)
            return;
        poll(NULL, 0, STEP_MS);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

void file_remove_temporaries(void)
{
    for (int i = 0; i < SLOTS; i++) {
        pid_t pid = (pid_t)atomic_load(&tools[i]);

        if (pid)
            end_tool(pid);
    }
    for (int i = 0; i < SLOTS; i++) {
        if (atomic_load(&temporaries[i].state) == NAMED)
            unlink(temporaries[i].path);
    }
    for (int i = 0; i < SLOTS; i++) { /* folders, which are empty by now */
        if (atomic_load(&temporaries[i].state) == NAMED)
            rmdir(temporaries[i].path);
    }
}

static void on_signal(int sig)
{
    atomic_store(&stopping, true);
    while (atomic_load(&busy) > 0)
        poll(NULL, 0, 1);
    file_remove_temporaries();
    signal(sig, SIG_DFL);
    raise(sig);
}

void file_handle_signals(void)
{
    for (size_t i = 0; i < COUNT(signals); i++) {
        struct sigaction old, sa = {0};

        sa.sa_handler = on_signal;
        sigemptyset(&sa.sa_mask);
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(signals[i], &sa, NULL);
    }
    signal(SIGXFSZ, SIG_IGN); /* a write beyond RLIMIT_FSIZE is an error like a full disk */
}

/* ---- tools --------------------------------------------------------------------------------------- */

static bool executable(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

const char *file_find_tool(Arena *a, const char *name)
{
    const char *path = getenv("PATH");

    if (strchr(name, '/'))
        return executable(name) ? name : NULL;
    while (path && *path) {
        size_t      n = strcspn(path, ":");
        const char *full = arena_printf(a, "%.*s/%s", (int)n, path, name);

        if (n && executable(full))
            return full;
        path += n + (path[n] == ':');
    }
    return NULL;
}

/* `folder` NULL: here, with our stdout; there what it says goes to the file `log`, NULL: to stderr.
 */
static int spawn(pid_t *pid, const char *folder, const char *log, const char *const *words,
                 const sigset_t *mask)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t          attr;
    int                        error = posix_spawnattr_init(&attr);

    if (error)
        return error;
    if (!(error = posix_spawn_file_actions_init(&files))) {
        if (folder)
            error = posix_spawn_file_actions_addchdir_np(&files, folder);
        if (!error && log)
            error = posix_spawn_file_actions_addopen(&files, STDERR_FILENO, log,
                                                     O_WRONLY | O_CREAT | O_TRUNC, 0666);
        if (!error && folder)
            error = posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
        posix_spawnattr_setsigmask(&attr, mask);
        posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
        if (!error)
            error = posix_spawnp(pid, words[0], &files, &attr, (char *const *)(uintptr_t)words,
                                 environ);
        posix_spawn_file_actions_destroy(&files);
    }
    posix_spawnattr_destroy(&attr);
    return error;
}

int file_run_tool(const char *const *words, int *status)
{
    return file_run_tool_in(NULL, NULL, words, status);
}

int file_run_tool_in(const char *folder, const char *log, const char *const *words, int *status)
{
    sigset_t    before = temporary_begin();
    siginfo_t   info;
    pid_t       pid;
    int         raw = 0, error = spawn(&pid, folder, log, words, &before);
    atomic_int *slot = NULL;

    for (int i = 0; !error && !slot && i < SLOTS; i++) {
        int expected = 0;

        if (atomic_compare_exchange_strong(&tools[i], &expected, (int)pid))
            slot = &tools[i];
    }
    temporary_end(before);
    if (error)
        return error;
    /* its number is nobody else's until it is taken */
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) != 0 && errno == EINTR)
        continue;
    before = temporary_begin();
    if (slot)
        atomic_store(slot, 0);
    while (waitpid(pid, &raw, 0) < 0 && errno == EINTR)
        continue;
    temporary_end(before);
    *status = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
    return 0;
}
