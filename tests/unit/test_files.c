/* base/writer.c: files come whole or not at all, and nothing else stays: after errors, signals, and
 * where the system has no files without names. */
#include "base/base.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char folder[] = "/tmp/tvmcc-files-XXXXXX"; /* emptied, but for `out` and `link` */

static bool without_names; /* what is being written has no name yet */

static Bytes text_bytes(const char *s)
{
    return (Bytes){(const uint8_t *)s, strlen(s)};
}

static const char *printed(Arena *a, const Diags *d, DiagFormat format)
{
    StrBuf s = strbuf(a);

    diag_print(d, format, &s);
    return s.at;
}

static unsigned entries(void)
{
    char  command[128], buffer[32] = "";
    FILE *p;

    snprintf(command, sizeof command, "ls -A %s | wc -l", folder);
    p = popen(command, "r");
    CHECK(p && fgets(buffer, sizeof buffer, p));
    pclose(p);
    return (unsigned)atoi(buffer);
}

static void test_files(void)
{
    Arena      *a = arena_new(NULL);
    Diags      *d = diags_new(a);
    const char *path = arena_printf(a, "%s/out", folder),
               *link = arena_printf(a, "%s/link", folder);
    const char *temporary;
    struct stat one, two;
    Bytes       got;

    umask(022);
    CHECK(file_write(d, path, text_bytes("first")) && stat(path, &one) == 0);
    CHECK_INT(one.st_mode & 0777, 0644);
    CHECK(file_write(d, path, text_bytes("first")) && stat(path, &two) == 0);
    CHECK(one.st_ino == two.st_ino); /* not touched */
    CHECK(file_write(d, path, text_bytes("other")) && stat(path, &two) == 0);
    CHECK(one.st_ino != two.st_ino);
    CHECK(file_map(d, path, &got) && got.n == 5 && memcmp(got.at, "other", 5) == 0);
    CHECK(file_read(d, a, path, &got) && got.n == 5 && memcmp(got.at, "other", 5) == 0);
    CHECK(symlink("out", link) == 0 && file_write(d, link, text_bytes("")));
    CHECK(lstat(link, &one) == 0 && S_ISLNK(one.st_mode));
    CHECK(file_map(d, path, &got) && got.n == 0);
    temporary = file_temporary(d, a, path, 0777);
    CHECK(temporary && file_write(d, temporary, text_bytes("by hand")));
    CHECK(file_commit(d, temporary, path) && file_read(d, a, path, &got) && got.n == 7);
    CHECK(stat(path, &one) == 0 && access(temporary, F_OK) != 0);
    temporary = file_temporary(d, a, path, 0777);
    CHECK(file_write(d, temporary, text_bytes("by hand")) && file_commit(d, temporary, path));
    CHECK(stat(path, &two) == 0 && one.st_ino == two.st_ino && access(temporary, F_OK) != 0);
    CHECK(diag_errors(d) == 0);
    CHECK(entries() == 2);
    file_unmap_all(d);
    arena_free(a);
}

/* A file whose first megabytes are known before the rest is. */
static void test_file_out(void)
{
    Arena      *a = arena_new(NULL);
    Diags      *d = diags_new(a);
    const char *path = arena_printf(a, "%s/early", folder);
    Bytes       view, all[3] = {text_bytes("head"), text_bytes("body"), text_bytes("tail")}, got;
    BytesList   list = {3, all};
    struct stat one, two;

    CHECK_INT(pieces_size(list), 12);
    got = pieces_join(a, list);
    CHECK(got.n == 12 && !memcmp(got.at, "headbodytail", 12));
    for (int again = 0; again < 2; again++) {
        FileOut *f = file_out_new(d, a, path);

        CHECK(f && file_out_put(f, 4, text_bytes("body")) && file_out_map(f, 8, &view));
        CHECK_INT(entries(), without_names ? 2 + again : 3 + again);
        CHECK(view.n == 8 && !memcmp(view.at, "\0\0\0\0body", 8));
        all[1] = (Bytes){view.at + 4, 4};
        CHECK(file_out_finish(f, list, false) && !file_out_temporary(f));
        file_out_drop(f);
        CHECK(stat(path, again ? &two : &one) == 0);
    }
    CHECK(file_read(d, a, path, &got) && got.n == 12 && !memcmp(got.at, "headbodytail", 12));
    CHECK(one.st_ino == two.st_ino); /* equal bytes leave the file alone */

    FileOut *kept = file_out_new(d, a, path);
    all[1] = text_bytes("trunk"); /* not what was put */
    CHECK(file_out_put(kept, 4, text_bytes("bodybodybodybody")));
    CHECK(file_out_finish(kept, list, true) && entries() == 4);
    CHECK(file_read(d, a, file_out_temporary(kept), &got) && got.n == 13);
    CHECK(!memcmp(got.at, "headtrunktail", 13));
    file_out_drop(kept);
    CHECK(file_write_pieces(d, path, list) && file_read(d, a, path, &got) && got.n == 13);
    CHECK(!file_out_new(d, a, arena_printf(a, "%s/no/such", folder)));
    CHECK(unlink(path) == 0 && entries() == 2);
    file_unmap_all(d);
    arena_free(a);
}

/* Pages that go back to the system come back as they were, or as zeros. */
static void test_forget(void)
{
    enum { N = 1 << 20 };
    Arena      *a = arena_new(NULL);
    Diags      *d = diags_new(a);
    const char *path = arena_printf(a, "%s/large", folder);
    uint8_t    *p = arena_alloc(a, N);
    Bytes       view = {0};

    memset(p, 7, N);
    CHECK(file_write(d, path, (Bytes){p, N}) && file_map(d, path, &view));
    file_forget(d, view);
    file_forget(d, (Bytes){p, N}); /* no mapping */
    CHECK(!memcmp(view.at, p, N));
    arena_forget(a, p, 100);
    CHECK(p[0] == 7 && p[99] == 7);
    arena_forget(a, p, N);
    CHECK(p[N / 2] == (WITH_ASAN ? 7 : 0) && p[0] == 7);
    CHECK(unlink(path) == 0);
    file_unmap_all(d);
    arena_free(a);
}

static void test_file_errors(void)
{
    Arena      *a = arena_new(NULL);
    Diags      *d = diags_new(a);
    const char *missing = arena_printf(a, "%s/no/such", folder);
    Bytes       got;

    CHECK(!file_map(d, missing, &got) && !file_read(d, a, folder, &got));
    CHECK(!file_write(d, missing, text_bytes("x")) && !file_write(d, folder, text_bytes("x")));
    CHECK(!file_write(d, "/dev/full", text_bytes("x")));
    CHECK_STR(printed(a, d, DIAG_TEXT),
              arena_printf(a,
                           "tvmcc: error: cannot read '%s': No such file or directory [E0903]\n"
                           "hint: there is no folder '%s/no'\n"
                           "tvmcc: error: cannot read '%s': Is a directory [E0903]\n"
                           "tvmcc: error: cannot write '%s': No such file or directory [E0903]\n"
                           "hint: there is no folder '%s/no'\n"
                           "tvmcc: error: cannot write '%s': Is a directory [E0903]\n"
                           "tvmcc: error: cannot write '/dev/full': No space left on device "
                           "[E0903]\n",
                           missing, folder, folder, missing, folder, folder));
    CHECK_INT(diag_status(d), 74);
    CHECK(entries() == 2);
    arena_free(a);
}

static void test_signal(void)
{
    Arena *a = arena_new(NULL);
    Diags *d = diags_new(a);
    pid_t  child = fork();
    int    status = 0;

    if (child == 0) {
        file_handle_signals();
        if (!file_temporary(d, a, arena_printf(a, "%s/product", folder), 0666) || entries() != 3)
            _exit(1);
        raise(SIGTERM);
        _exit(2);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    CHECK_INT(entries(), 2);
    arena_free(a);
}

static void *write_for_ever(void *unused)
{
    Arena *a = arena_new(NULL);
    Diags *d = diags_new(a);

    for (;;) {
        const char *temporary = file_temporary(d, a, arena_printf(a, "%s/product", folder), 0666);

        if (temporary)
            file_drop(temporary);
    }
    return unused;
}

/* As `timeout` sends them: to the process, and once more to its group, while threads write. */
static void test_signal_threads(void)
{
    enum { ROUNDS = 60, THREADS = 4 };

    for (int i = 0; i < ROUNDS; i++) {
        pid_t child = fork();
        int   status = 0;

        if (child == 0) {
            pthread_t thread;

            file_handle_signals();
            for (int t = 0; t < THREADS; t++)
                if (pthread_create(&thread, NULL, write_for_ever, NULL) != 0)
                    _exit(1);
            write_for_ever(NULL);
        }
        usleep(2000 + 100 * (unsigned)i);
        kill(child, SIGTERM);
        kill(child, SIGTERM);
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
        if (entries() != 2) {
            CHECK_INT(entries(), 2);
            return;
        }
    }
}

static void test_find_tool(void)
{
    Arena      *a = arena_new(NULL);
    const char *here[] = {"sh", "-c", "[ \"$(pwd -P)\" = \"$0\" ] && exit 4", folder, NULL};
    const char *sh = file_find_tool(a, "sh");
    int         status = 0;

    CHECK(sh && *sh == '/' && file_find_tool(a, sh) == sh);
    CHECK(!file_find_tool(a, "no-such-tool") && !file_find_tool(a, folder));
    CHECK(file_run_tool_in(folder, NULL, here, &status) == 0 && status == 4);
    CHECK_INT(file_run_tool_in("/nowhere", NULL, here, &status), ENOENT);
    arena_free(a);
}

/* A tool that writes ends before us, with what it wrote. */
static void test_signal_tool(void)
{
    Arena *a = arena_new(NULL);
    char  *script = arena_printf(a,
                                 "trap 'rm %s/half; exit 1' TERM; echo > %s/half;"
                                  "while :; do sleep 0.01; done",
                                 folder, folder),
         *half = arena_printf(a, "%s/half", folder);
    const char *words[] = {"sh", "-c", script, NULL};
    const char *quick[] = {"sh", "-c", "exit 3", NULL},
               *killed[] = {"sh", "-c", "kill -9 $$", NULL}, *missing[] = {"/nowhere/tool", NULL},
               *says[] = {"sh", "-c", "ls said >&2", NULL};
    Bytes said = {0};
    pid_t child;
    int   status = 0;

    CHECK(file_run_tool(quick, &status) == 0 && status == 3);
    CHECK(file_run_tool(killed, &status) == 0 && status == 128 + SIGKILL);
    CHECK_INT(file_run_tool(missing, &status), ENOENT);
    CHECK_INT(file_run_tool_in("/nowhere", NULL, quick, &status), ENOENT);
    CHECK(file_run_tool_in(folder, "said", says, &status) == 0 && status == 0);
    CHECK(file_read(diags_new(a), a, arena_printf(a, "%s/said", folder), &said));
    CHECK(said.n == 5 && !memcmp(said.at, "said\n", 5));
    unlink(arena_printf(a, "%s/said", folder));
    if ((child = fork()) == 0) {
        file_handle_signals();
        file_run_tool(words, &status);
        _exit(2);
    }
    for (int i = 0; i < 6000 && access(half, F_OK) != 0; i++)
        usleep(10000);
    CHECK(access(half, F_OK) == 0);
    kill(child, SIGTERM);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    CHECK_INT(entries(), 2);
    arena_free(a);
}

/* Killed in the middle, by a signal that nobody hears. */
static void test_killed(void)
{
    Arena *a = arena_new(NULL);
    Diags *d = diags_new(a);
    pid_t  child = fork();
    int    status = 0;

    if (child == 0) {
        FileOut *f = file_out_new(d, a, arena_printf(a, "%s/product", folder));

        if (f && file_out_put(f, 1 << 20, text_bytes("content")))
            raise(SIGKILL);
        _exit(1);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    CHECK_INT(entries(), without_names ? 2 : 3);
    if (!without_names)
        CHECK(system(arena_printf(a, "rm %s/product.tmp-%d-*", folder, (int)child)) == 0);
    arena_free(a);
}

/* Temporaries of processes that are gone go when somebody writes the same product, after an hour.
 */
static void test_left(void)
{
    Arena          *a = arena_new(NULL);
    Diags          *d = diags_new(a);
    pid_t           gone = fork();
    struct timespec old[2] = {{.tv_sec = time(NULL) - 7200}, {.tv_sec = time(NULL) - 7200}};
    const char     *path = arena_printf(a, "%s/product", folder), *temporary;
    const char     *left[] = {arena_printf(a, "%s.tmp-%d-7", path, (int)gone),
                              arena_printf(a, "%s.tmp-%d-8", path, (int)gone),     /* new */
                              arena_printf(a, "%s.tmp-%d-9", path, (int)getpid()), /* ours */
                              arena_printf(a, "%s.tmp-%d-9x", path, (int)gone),
                              arena_printf(a, "%s2.tmp-%d-7", path, (int)gone),
                              arena_printf(a, "%s.tmp-%d-5.tmp-%d-6", path, (int)gone, (int)gone)};

    if (gone == 0)
        _exit(0);
    CHECK(waitpid(gone, NULL, 0) == gone);
    for (uint32_t i = 0; i < COUNT(left); i++) {
        FILE *f = fopen(left[i], "w");

        CHECK(f && fclose(f) == 0);
        CHECK(i == 1 || utimensat(AT_FDCWD, left[i], old, 0) == 0);
    }
    CHECK((temporary = file_temporary(d, a, path, 0666)));
    for (uint32_t i = 0; i < COUNT(left); i++)
        CHECK_INT(access(left[i], F_OK) == 0, i > 0 && i < 5);
    for (uint32_t i = 1; i < 5; i++)
        CHECK(unlink(left[i]) == 0);
    file_drop(temporary);
    CHECK_INT(entries(), 2);
    arena_free(a);
}

/* Where the system refuses this. */
typedef enum { REFUSE_TMPFILE, REFUSE_LINKAT } Refused;

static bool refuse(Refused what)
{
    /* the low half of the third argument: the flags of openat */
    enum { FLAGS = offsetof(struct seccomp_data, args) + 2 * 8 };
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                 what == REFUSE_LINKAT ? (uint32_t)__NR_linkat : (uint32_t)__NR_openat, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FLAGS),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K,
                 what == REFUSE_LINKAT ? UINT32_MAX : (uint32_t)(O_TMPFILE & ~O_DIRECTORY), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (what == REFUSE_LINKAT ? EPERM : EOPNOTSUPP)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {COUNT(filter), filter};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* The same files come out of a process that may not have files without names, or not name them. */
static void test_refused(Refused what)
{
    char  command[64];
    pid_t child;
    int   status = 0;

    fflush(stdout);
    if ((child = fork()) == 0) {
        if (!refuse(what)) {
            puts("SKIP: no system calls can be refused here");
            exit(0);
        }
        without_names = what != REFUSE_TMPFILE && without_names;
        snprintf(command, sizeof command, "rm -rf %s/*", folder);
        CHECK(system(command) == 0);
        test_files();
        test_file_out();
        test_file_errors();
        test_killed();
        test_signal();
        exit(check_failures != 0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    CHECK_INT(WEXITSTATUS(status), 0);
    if (WEXITSTATUS(status))
        printf("FAIL test_refused(%d)\n", what);
}

static bool has_nameless(void)
{
    char path[64];
    int  fd = open(folder, O_TMPFILE | O_RDWR, 0600);

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    bool ok = fd >= 0 && access(path, F_OK) == 0;

    if (fd >= 0)
        close(fd);
    return ok;
}

int main(void)
{
    char command[64];

    if (!mkdtemp(folder))
        return 1;
    without_names = has_nameless();
    if (!without_names)
        puts("SKIP: files without names are not to be had here");
    RUN(test_files);
    RUN(test_file_out);
    RUN(test_forget);
    RUN(test_file_errors);
    RUN(test_signal);
    RUN(test_signal_threads);
    RUN(test_find_tool);
    RUN(test_signal_tool);
    RUN(test_killed);
    RUN(test_left);
    test_refused(REFUSE_TMPFILE);
    test_refused(REFUSE_LINKAT);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) | check_result();
}
