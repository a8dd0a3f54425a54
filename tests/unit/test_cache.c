/* base/cache.c: broken entries, many processes and threads, SIGKILL, the bound, no room. */
#include "base/cache.h"
#include "tests/unit/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { KEYS = 64 };

static char folder[] = "/tmp/tvmcc-cache-XXXXXX";

static uint64_t random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static Sha256 key_of(uint32_t i)
{
    return sha256((Bytes){(const uint8_t *)&i, sizeof i});
}

/* What every process puts under key i: so a wrong byte of another process shows. */
static Bytes content_of(Arena *a, uint32_t i)
{
    size_t   n = i % 7 == 0 ? i : 100 + i * 37 % 5000;
    uint8_t *at = arena_alloc(a, n);

    for (size_t k = 0; k < n; k++)
        at[k] = (uint8_t)(i * 31 + k * 7 + k / 251);
    return (Bytes){at, n};
}

static bool has_content(Cache *cache, Arena *a, uint32_t i, bool *right)
{
    Bytes got, want = content_of(a, i);
    bool  hit = cache_get(cache, a, key_of(i), &got);

    *right = !hit || (got.n == want.n && memcmp(got.at, want.at, want.n) == 0);
    return hit;
}

static char *path_of(Arena *a, const Cache *cache, uint32_t i)
{
    char hex[65];

    sha256_hex(key_of(i), hex);
    return arena_printf(a, "%s/%.2s/%s", cache_dir(cache), hex, hex + 2);
}

static uint32_t temporaries(const char *dir)
{
    char           path[4096];
    uint32_t       n = 0;
    DIR           *list;
    struct dirent *e;

    snprintf(path, sizeof path, "%s/tvmcc-tmp", dir);
    list = opendir(path);
    while (list && (e = readdir(list)))
        n += e->d_name[0] != '.';
    if (list)
        closedir(list);
    return n;
}

static uint64_t bytes_in(const Cache *cache, Arena *a, uint32_t *n)
{
    CacheEntry *entries;
    uint64_t    bytes = 0;

    cache_list(cache, a, &entries, n);
    for (uint32_t i = 0; i < *n; i++)
        bytes += entries[i].bytes;
    return bytes;
}

/* A store of its own for each test. */
static Cache *fresh(Arena *a, const char *name, uint64_t max_bytes)
{
    return cache_open(a, arena_printf(a, "%s/%s", folder, name), max_bytes);
}

static void test_put_get(void)
{
    Arena   *a = arena_new(NULL);
    Cache   *cache = fresh(a, "a/b/put-get", 0), *again;
    Bytes    got;
    uint32_t n;
    bool     right;

    CHECK(!cache_get(cache, a, key_of(1), &got));
    CHECK(access(cache_dir(cache), F_OK) != 0); /* nothing is made before the first put */
    for (uint32_t i = 0; i < KEYS; i++)
        cache_put(cache, key_of(i), content_of(a, i));
    again = fresh(a, "a/b/put-get", 0);
    for (uint32_t i = 0; i < KEYS; i++)
        CHECK(has_content(again, a, i, &right) && right);
    CHECK_INT(cache_stats(cache).misses, 1);
    CHECK_INT(cache_stats(cache).stored, KEYS);
    CHECK_INT(cache_stats(again).hits, KEYS);
    CHECK_INT(cache_stats(again).misses, 0);
    cache_put(again, key_of(3), content_of(a, 3)); /* is there */
    CHECK_INT(cache_stats(again).stored, 0);
    CHECK(bytes_in(again, a, &n) > 0 && n == KEYS);
    cache_clean(again);
    CHECK(access(cache_dir(cache), F_OK) != 0);
    cache_put(cache, key_of(1), content_of(a, 1)); /* goes on after another's clean */
    CHECK(has_content(again, a, 1, &right) && right);
    arena_free(a);
}

static void test_no_cache(void)
{
    Arena      *a = arena_new(NULL);
    CacheEntry *entries;
    Bytes       got;
    uint32_t    n;

    cache_put(NULL, key_of(1), content_of(a, 1));
    CHECK(!cache_get(NULL, a, key_of(1), &got));
    cache_list(NULL, a, &entries, &n);
    cache_trim(NULL, 0);
    cache_clean(NULL);
    CHECK_INT(n + cache_stats(NULL).misses + cache_max_bytes(NULL), 0);
    arena_free(a);
}

static void test_environment(void)
{
    Arena *a = arena_new(NULL);

    unsetenv("TVMCC_CACHE_DIR");
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", "/home/x", 1);
    CHECK_STR(cache_dir(cache_open(a, NULL, 0)), "/home/x/.cache/tvmcc");
    setenv("XDG_CACHE_HOME", "relative", 1);
    CHECK_STR(cache_dir(cache_open(a, NULL, 0)), "/home/x/.cache/tvmcc");
    setenv("XDG_CACHE_HOME", "/var/x", 1);
    CHECK_STR(cache_dir(cache_open(a, NULL, 0)), "/var/x/tvmcc");
    setenv("TVMCC_CACHE_DIR", "here", 1);
    CHECK_STR(cache_dir(cache_open(a, NULL, 0)), "here");
    CHECK_STR(cache_dir(cache_open(a, "there", 0)), "there");
    CHECK_INT(cache_max_bytes(cache_open(a, NULL, 0)), 2ll << 30);
    setenv("TVMCC_CACHE_SIZE", "3MiB", 1);
    CHECK_INT(cache_max_bytes(cache_open(a, NULL, 0)), 3 << 20);
    CHECK_INT(cache_max_bytes(cache_open(a, NULL, 77)), 77);
    setenv("TVMCC_CACHE_SIZE", "much", 1);
    CHECK_INT(cache_max_bytes(cache_open(a, NULL, 0)), 2ll << 30);
    unsetenv("TVMCC_CACHE_SIZE");
    unsetenv("TVMCC_CACHE_DIR");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    CHECK(cache_open(a, NULL, 0) == NULL);
    arena_free(a);
}

static void overwrite(const char *path, Bytes content)
{
    int fd = open(path, O_WRONLY | O_TRUNC | O_CREAT, 0666);

    CHECK(fd >= 0 && write(fd, content.at, content.n) == (ssize_t)content.n);
    close(fd);
}

/* Every truncation, every flipped bit, something behind it, another entry in its place. */
static void test_corrupt(void)
{
    Arena   *a = arena_new(NULL);
    Diags   *d = diags_new(a);
    Cache   *cache = fresh(a, "corrupt", 0);
    char    *path = path_of(a, cache, 14);
    Bytes    whole, got, other;
    uint64_t broken = 0;
    bool     right;

    cache_put(cache, key_of(14), content_of(a, 14));
    cache_put(cache, key_of(15), content_of(a, 15));
    CHECK(file_read(d, a, path, &whole) && file_read(d, a, path_of(a, cache, 15), &other));
    for (size_t n = 0; n <= whole.n + 1; n++) {
        uint8_t *at = arena_alloc(a, n);

        if (n == whole.n)
            continue;
        memcpy(at, whole.at, n < whole.n ? n : whole.n);
        overwrite(path, (Bytes){at, n});
        CHECK(!cache_get(cache, a, key_of(14), &got));
        CHECK(access(path, F_OK) != 0);
        CHECK_INT(cache_stats(cache).corrupt, ++broken);
    }
    for (size_t bit = 0; bit < whole.n * 8; bit++) {
        uint8_t *at = arena_dup(a, whole.at, whole.n);

        at[bit / 8] ^= (uint8_t)(1 << bit % 8);
        overwrite(path, (Bytes){at, whole.n});
        CHECK(!cache_get(cache, a, key_of(14), &got));
    }
    overwrite(path, whole);
    CHECK(has_content(cache, a, 14, &right) && right);
    overwrite(path, other);
    CHECK(!cache_get(cache, a, key_of(14), &got));
    CHECK(mkdir(path, 0777) == 0); /* in its place: a folder, then a pipe */
    CHECK(!cache_get(cache, a, key_of(14), &got));
    rmdir(path);
    CHECK(mkfifo(path, 0666) == 0);
    CHECK(!cache_get(cache, a, key_of(14), &got));
    cache_put(cache, key_of(14), content_of(a, 14));
    CHECK(has_content(cache, a, 14, &right) && right);
    arena_free(a);
}

static void test_entries(void)
{
    Arena *a = arena_new(NULL);
    Bytes  content = content_of(a, 5), entry = cache_entry(a, key_of(5), content), got;
    Sha256 key;
    char   hex[65], *name;

    CHECK(cache_entry_content(entry, key_of(5), &got) && got.n == content.n);
    CHECK(!cache_entry_content(entry, key_of(6), &got));
    CHECK(!cache_entry_content((Bytes){entry.at, entry.n - 1}, key_of(5), &got));
    CHECK(!cache_entry_content((Bytes){entry.at, 0}, key_of(5), &got));
    sha256_hex(key_of(5), hex);
    name = arena_printf(a, "%.2s/%s", hex, hex + 2);
    key = key_of(5);
    CHECK(cache_entry_key(name, &key) && memcmp(key.b, key_of(5).b, 32) == 0);
    CHECK(!cache_entry_key(hex, &key) && !cache_entry_key("", &key));
    name[64] = 'g';
    CHECK(!cache_entry_key(name, &key));
    arena_free(a);
}

/* Put and get at random; the number of wrong bytes seen. */
static int work(const char *dir, uint64_t max_bytes, uint64_t seed, int rounds)
{
    Arena *outer = arena_new(NULL), *a = arena_new(NULL);
    Cache *cache = cache_open(outer, dir, max_bytes);
    int    wrong = 0;

    for (int r = 0; r < rounds; r++) {
        uint32_t i = (uint32_t)random_next(&seed) % KEYS;
        bool     right;

        if (!has_content(cache, a, i, &right))
            cache_put(cache, key_of(i), content_of(a, i));
        wrong += !right;
        arena_reset(a);
    }
    wrong += (int)cache_stats(cache).corrupt;
    arena_free(a);
    arena_free(outer);
    return wrong;
}

static void test_processes(void)
{
    enum { PROCESSES = 8 };
    Arena   *a = arena_new(NULL);
    Cache   *cache = fresh(a, "processes", 60000);
    uint32_t n;
    pid_t    children[PROCESSES];

    for (int p = 0; p < PROCESSES; p++) {
        children[p] = fork();
        if (children[p] == 0)
            _exit(work(cache_dir(cache), 60000, (uint64_t)p, 200));
    }
    for (int p = 0; p < PROCESSES; p++) {
        int status;

        CHECK(waitpid(children[p], &status, 0) == children[p] && status == 0);
    }
    CHECK(bytes_in(cache, a, &n) <= 60000 && n > 0);
    CHECK_INT(temporaries(cache_dir(cache)), 0);
    arena_free(a);
}

static Cache     *shared;
static atomic_int wrong_bytes;

static void *thread_work(void *number)
{
    Arena   *a = arena_new(NULL);
    uint64_t seed = (uint64_t)(uintptr_t)number;

    for (int r = 0; r < 100; r++) {
        uint32_t i = (uint32_t)random_next(&seed) % KEYS;
        bool     right;

        if (!has_content(shared, a, i, &right))
            cache_put(shared, key_of(i), content_of(a, i));
        wrong_bytes += !right;
    }
    arena_free(a);
    return NULL;
}

static void test_threads(void)
{
    Arena    *a = arena_new(NULL);
    pthread_t threads[8];
    uint32_t  n;

    shared = fresh(a, "threads", 60000);
    for (uintptr_t t = 0; t < COUNT(threads); t++)
        CHECK(pthread_create(&threads[t], NULL, thread_work, (void *)t) == 0);
    for (size_t t = 0; t < COUNT(threads); t++)
        pthread_join(threads[t], NULL);
    CHECK_INT(wrong_bytes, 0);
    CHECK_INT(cache_stats(shared).corrupt, 0);
    CHECK_INT(cache_stats(shared).hits + cache_stats(shared).misses, 800);
    CHECK(bytes_in(shared, a, &n) <= 60000);
    arena_free(a);
}

/* Writers are killed at random moments; what they leave is whole, and their temporaries go. */
static void test_kill(void)
{
    Arena   *a = arena_new(NULL);
    Cache   *cache = fresh(a, "kill", 0);
    uint64_t seed = 11;
    uint32_t left = 0, n = 0;
    bool     right;

    for (int round = 0; round < 20; round++) {
        pid_t           child = fork();
        struct timespec pause = {0, (long)(random_next(&seed) % 8000000)};
        int             status;

        if (child == 0) {
            for (uint64_t s = (uint64_t)round;; s++) {
                work(cache_dir(cache), 0, s, 100);
                cache_clean(cache);
            }
        }
        nanosleep(&pause, NULL);
        kill(child, SIGKILL);
        CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
        left += temporaries(cache_dir(cache));
        for (uint32_t i = 0; i < KEYS; i++) {
            n += has_content(cache, a, i, &right);
            CHECK(right);
        }
    }
    CHECK_INT(cache_stats(cache).corrupt, 0);
    printf("kill: %u entries, %u temporaries seen\n", n, left);
    for (uint32_t i = 0; i < 3; i++) /* as a killed process leaves them */
        close(open(arena_printf(a, "%s/tvmcc-tmp/999-%u", cache_dir(cache), i), O_CREAT | O_WRONLY,
                   0666));
    cache = fresh(a, "kill", 0);
    cache_put(cache, key_of(1000), content_of(a, 1));
    CHECK_INT(temporaries(cache_dir(cache)), 0);
    arena_free(a);
}

static void test_bound(void)
{
    Arena   *a = arena_new(NULL);
    Cache   *cache = fresh(a, "bound", 100000);
    uint8_t  zeros[10000] = {0};
    Bytes    content = {zeros, sizeof zeros}, got;
    uint32_t n;

    for (uint32_t i = 0; i < 40; i++) {
        cache_put(cache, key_of(i), content);
        CHECK(bytes_in(cache, a, &n) <= 100000);
        CHECK(cache_get(cache, a, key_of(0), &got)); /* in use, so it stays */
        CHECK(cache_get(cache, a, key_of(i), &got));
    }
    CHECK(n >= 7);
    CHECK(!cache_get(cache, a, key_of(20), &got));
    cache_put(cache, key_of(99), (Bytes){arena_alloc(a, 200000), 200000}); /* never fits */
    CHECK(!cache_get(cache, a, key_of(99), &got) && cache_get(cache, a, key_of(0), &got));
    cache_trim(cache, 25000);
    CHECK(bytes_in(cache, a, &n) <= 25000 && n == 2);
    CHECK(cache_get(cache, a, key_of(0), &got));
    /* The size file is a hint: lost or wrong, the bound holds. */
    unlink(arena_printf(a, "%s/tvmcc-size", cache_dir(cache)));
    for (uint32_t i = 0; i < 20; i++) {
        cache_put(cache, key_of(i), content);
        CHECK(bytes_in(cache, a, &n) <= 100000);
    }
    overwrite(arena_printf(a, "%s/tvmcc-size", cache_dir(cache)),
              (Bytes){(const uint8_t *)"\377\377\377\377\377\377\377\377", 8});
    for (uint32_t i = 0; i < 40; i++) {
        cache_put(cache, key_of(i), content);
        CHECK(bytes_in(cache, a, &n) <= 100000 && n >= 7);
    }
    arena_free(a);
}

/* Places where nothing can be written: as an ordinary user, below a file, at the end of a path. */
static void test_unwritable(void)
{
    Arena *a = arena_new(NULL);
    Cache *cache = fresh(a, "readonly", 0);
    char  *file = arena_printf(a, "%s/file", folder), *deep = arena_alloc(a, 5000);
    Bytes  got;
    int    status;
    pid_t  child;

    cache_put(cache, key_of(1), content_of(a, 1));
    close(open(file, O_CREAT | O_WRONLY, 0666));
    memset(deep, 'x', 4999);
    deep[0] = '/';
    for (int i = 0; i < 3; i++) {
        const char *places[] = {arena_printf(a, "%s/cache", file), "/proc/self/none", deep};
        Cache      *none = cache_open(a, places[i], 0);

        cache_put(none, key_of(1), content_of(a, 1));
        CHECK(!cache_get(none, a, key_of(1), &got));
        cache_trim(none, 0);
        cache_clean(none);
        CHECK_INT(cache_stats(none).stored, 0);
    }
    chmod(folder, 0755);
    child = fork();
    if (child == 0) { /* may read what another user keeps, and no more */
        bool right;

        if (getuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
            _exit(1);
        chmod(cache_dir(cache), 0555);
        if (!has_content(cache, a, 1, &right) || !right)
            _exit(2);
        for (uint32_t i = 2; getuid() == 65534 && i < 10; i++) {
            cache_put(cache, key_of(i), content_of(a, i));
            if (has_content(cache, a, i, &right))
                _exit(3);
        }
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    chmod(cache_dir(cache), 0755);
    arena_free(a);
}

/* No room: nothing is kept, nothing is left, and the signal of RLIMIT_FSIZE ends nobody. */
static void test_file_limit(void)
{
    Arena   *a = arena_new(NULL);
    Cache   *cache = fresh(a, "limit", 0);
    uint32_t n;
    int      status;
    pid_t    child = fork();

    if (child == 0) {
        struct rlimit limit = {1000, 1000};

        setrlimit(RLIMIT_FSIZE, &limit);
        for (uint32_t i = 0; i < KEYS; i++)
            cache_put(cache, key_of(i), content_of(a, i));
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(bytes_in(cache, a, &n) > 0 && n < KEYS);
    CHECK_INT(temporaries(cache_dir(cache)), 0);
    for (uint32_t i = 0; i < KEYS; i++) {
        bool right;

        CHECK_INT(has_content(cache, a, i, &right), content_of(a, i).n + 80 <= 1000);
        CHECK(right);
    }
    arena_free(a);
}

static void test_sizes(void)
{
    static const struct {
        const char *text;
        uint64_t    bytes; /* 0: refused */
    } cases[] = {{"1", 1},
                 {"65536", 65536},
                 {"64KiB", 65536},
                 {"2MiB", 2 << 20},
                 {"1GiB", 1 << 30},
                 {"0", 0},
                 {"", 0},
                 {"KiB", 0},
                 {"1kb", 0},
                 {"-1", 0},
                 {"99999999999999999999", 0},
                 {"9999999999GiB", 0},
                 {"1 GiB", 0}};
    uint64_t got;

    for (size_t i = 0; i < COUNT(cases); i++)
        CHECK_INT(parse_bytes(cases[i].text, &got) ? got : 0, cases[i].bytes);
}

int main(void)
{
    char command[sizeof folder + 20];

    umask(022);
    if (!mkdtemp(folder))
        return 2;
    RUN(test_put_get);
    RUN(test_no_cache);
    RUN(test_environment);
    RUN(test_corrupt);
    RUN(test_entries);
    RUN(test_processes);
    RUN(test_threads);
    RUN(test_kill);
    RUN(test_bound);
    RUN(test_unwritable);
    RUN(test_file_limit);
    RUN(test_sizes);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return check_result() | (system(command) != 0);
}
