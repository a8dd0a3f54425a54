/* base/tree.c: what lies below a folder is removed, and nothing else, whatever others put in its
 * place meanwhile. */
#include "base/base.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES = 20, ROUNDS = 200, DEPTH = 200 };

static char folder[] = "/tmp/tvmcc-tree-XXXXXX";

static const char *path(Arena *a, const char *name)
{
    return arena_printf(a, "%s/%s", folder, name);
}

static void make_file(const char *name)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    CHECK(fd >= 0 && close(fd) == 0);
}

/* A folder with files, a folder with files in it, and a link out of it. */
static void fill(Arena *a, const char *name)
{
    const char *top = path(a, name);

    mkdir(top, 0755);
    mkdir(arena_printf(a, "%s/sub", top), 0755);
    for (int i = 0; i < FILES; i++) {
        make_file(arena_printf(a, "%s/%d", top, i));
        make_file(arena_printf(a, "%s/sub/%d", top, i));
    }
    CHECK(symlink("../victim", arena_printf(a, "%s/link", top)) == 0 || errno == EEXIST);
}

/* How many files of `victim` there are. */
static int left(Arena *a)
{
    int n = 0;

    for (int i = 0; i < FILES; i++) {
        n += access(path(a, arena_printf(a, "victim/%d", i)), F_OK) == 0;
        n += access(path(a, arena_printf(a, "victim/sub/%d", i)), F_OK) == 0;
    }
    return n;
}

static void test_kinds(void)
{
    Arena      *a = arena_new(NULL);
    const char *name;
    struct stat st;
    int         top;

    fill(a, "victim");
    fill(a, "tree");
    CHECK(tree_remove(path(a, "tree")) && lstat(path(a, "tree"), &st) != 0);
    CHECK(tree_remove(path(a, "tree"))); /* is not there */
    CHECK(symlink("victim", path(a, "link")) == 0);
    CHECK(tree_remove(path(a, "link/")) && lstat(path(a, "link"), &st) != 0);
    CHECK(symlink("nowhere", path(a, "link")) == 0);
    CHECK(tree_remove(path(a, "link")) && lstat(path(a, "link"), &st) != 0);
    make_file(path(a, "file"));
    CHECK(tree_remove(path(a, "file")) && lstat(path(a, "file"), &st) != 0);
    CHECK(mkfifo(path(a, "fifo"), 0644) == 0);
    CHECK(tree_remove(path(a, "fifo")) && lstat(path(a, "fifo"), &st) != 0);
    CHECK(!tree_remove("/") && !tree_remove(".") && !tree_remove(".."));
    CHECK(!tree_remove(arena_printf(a, "%s/.", folder)));
    CHECK(tree_open_parent(a, "/", &name) < 0);
    CHECK((top = tree_open(folder)) >= 0);
    CHECK(symlink("victim", path(a, "link")) == 0);
    CHECK(tree_open_at(top, "link") < 0);
    CHECK(tree_open_below(top, "link/sub", false) < 0);
    CHECK(tree_open_below(top, "link/new", true) < 0);
    CHECK(tree_remove_at(top, "link"));
    close(top);
    CHECK_INT(left(a), 2 * FILES);
    arena_free(a);
}

/* Deeper than descriptors or a path would do. */
static void test_deep(void)
{
    Arena        *a = arena_new(NULL);
    struct rlimit was, few = {.rlim_cur = 32};
    struct stat   st;
    int           at = -1, next;

    CHECK(mkdir(path(a, "deep"), 0755) == 0 && (at = tree_open(path(a, "deep"))) >= 0);
    for (int i = 0; i < DEPTH; i++) {
        next = tree_open_below(at, "folder", true);
        close(at);
        CHECK(next >= 0);
        close(openat(next, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
        at = next;
    }
    close(at);
    getrlimit(RLIMIT_NOFILE, &was);
    few.rlim_max = was.rlim_max;
    setrlimit(RLIMIT_NOFILE, &few);
    CHECK(tree_remove(path(a, "deep")) && lstat(path(a, "deep"), &st) != 0);
    setrlimit(RLIMIT_NOFILE, &was);
    arena_free(a);
}

/* ---- somebody who puts a link in place of folders while they are removed -------------------------- */

static atomic_bool stop;

static void *swap(void *user)
{
    Arena      *a = arena_new(NULL);
    const char *one = path(a, "race/sub"), *other = path(a, "race/moved");

    (void)user;
    while (!atomic_load(&stop)) {
        if (rename(one, other) == 0 && symlink("../victim", one) == 0) {
            unlink(one);
            rename(other, one);
        }
    }
    arena_free(a);
    return NULL;
}

static void test_race(void)
{
    Arena      *a = arena_new(NULL);
    const char *names[] = {"race", "race/sub", "race/moved"};
    pthread_t   thread;

    CHECK(pthread_create(&thread, NULL, swap, NULL) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        mkdir(path(a, names[0]), 0755);
        mkdir(path(a, names[1]), 0755);
        close(open(path(a, "race/sub/file"), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
        tree_remove(path(a, names[0])); /* may well be disturbed */
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    unlink(path(a, "victim/file")); /* `sub` may have been a link when it was made */
    CHECK(tree_remove(path(a, names[0])));
    CHECK_INT(left(a), 2 * FILES);
    arena_free(a);
}

int main(void)
{
    struct stat st;

    if (!mkdtemp(folder))
        return 2;
    RUN(test_kinds);
    RUN(test_deep);
    RUN(test_race);
    CHECK(tree_remove(folder) && lstat(folder, &st) != 0);
    return check_result();
}
