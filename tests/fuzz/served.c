/* A server of compiles for mutated.py: what it is told runs as `tvmcc` does, in a child of its own
 * that need not be loaded, linked and started anew, which takes longer than most damaged models do.
 *
 * A line of the input is SECONDS BYTES LOG ARGUMENT.., with tabs between: the limits of the child's
 * processor time (a second more kills it) and of its addresses, 0 for none, the file of its
 * messages, and the command line behind `tvmcc`.  A line of the output says how it ended: the exit
 * status, or minus the signal, then processor time in seconds and memory in bytes. */
#define main tvmcc_main
#include "driver/main.c"
#undef main

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGS_MAX = 64, STATUS_SERVER = 125 };

static void limit(int what, rlim_t soft, rlim_t hard)
{
    const struct rlimit both = {.rlim_cur = soft, .rlim_max = hard};

    if (setrlimit(what, &both))
        _exit(STATUS_SERVER);
}

static _Noreturn void compile(char *line)
{
    char  *argv[ARGS_MAX] = {"tvmcc"};
    int    argc = 1, log, none = open("/dev/null", O_RDONLY | O_CLOEXEC);
    char  *rest = NULL;
    rlim_t seconds = (rlim_t)strtoull(strtok_r(line, "\t\n", &rest), NULL, 10);
    rlim_t bytes = (rlim_t)strtoull(strtok_r(NULL, "\t\n", &rest), NULL, 10);

    log = open(strtok_r(NULL, "\t\n", &rest), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (none < 0 || log < 0 || dup2(none, STDIN_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0 ||
        dup2(log, STDERR_FILENO) < 0)
        _exit(STATUS_SERVER);
    while (argc < ARGS_MAX - 1 && (argv[argc] = strtok_r(NULL, "\t\n", &rest)) != NULL)
        argc++;
    limit(RLIMIT_CORE, 0, 0);
    if (seconds)
        limit(RLIMIT_CPU, seconds, seconds + 1);
    if (bytes)
        limit(RLIMIT_AS, bytes, bytes);
    exit(tvmcc_main(argc, argv));
}

int main(void)
{
    char  *line = NULL;
    size_t room = 0;

    while (getline(&line, &room, stdin) > 0) {
        struct rusage used;
        int           status;
        pid_t         child = fork();

        if (!child)
            compile(line);
        if (child < 0 || wait4(child, &status, 0, &used) != child)
            return STATUS_SERVER;
        printf("%d %.3f %ld\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status),
               (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                   1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec),
               used.ru_maxrss * 1024);
        fflush(stdout);
    }
    free(line);
    return 0;
}
