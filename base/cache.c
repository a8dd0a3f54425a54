/* A store of bytes on disk, found by hash.
 *
 *     <dir>/ab/cdef...        an entry: its name is the key in hex
 *     <dir>/tvmcc-tmp/PID-N   an entry being written, locked by its writer
 *     <dir>/tvmcc-size        about how many bytes all entries have; its lock guards trimming
 *     <dir>/CACHEDIR.TAG      tells programs that make backups to pass the folder over
 *
 *     entry: magic[8]  u64 length  key[32]  sha256(content)[32]  content
 *
 * An entry is written to tvmcc-tmp/, synced and renamed, so a name always stands for a whole entry
 * unless the disk itself loses bytes; those are found by the hash at every read, and the entry is
 * removed.  A process that is killed leaves a temporary at most.  The kernel drops its lock, by
 * which the next writer knows that nobody needs it.
 *
 * The bound is kept without walking the store at each put: the file counts what was added, before
 * it is there, so after a crash it is too high, never too low.  When it passes the bound one
 * process counts what really is there, and removes what was used longest ago (a get sets the
 * modification time) until seven eighths are left.
 */
#include "base/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAGIC = 8, HEADER = MAGIC + 8 + 32 + 32, HEX = 64 };

static const char     magic[MAGIC + 1] = "TVMCCKC1";
static const uint64_t default_bytes = (uint64_t)2 << 30;

struct Cache {
    const char   *dir;
    uint64_t      max_bytes;
    atomic_ullong hits, misses, stored, corrupt;
    atomic_bool   unwritable; /* the first put found that out; later ones do not try */
    atomic_bool   swept;
    atomic_uint   last_number; /* keeps the temporaries of two threads apart */
};

/* ---- paths ------------------------------------------------------------------------------------ */

typedef struct {
    char at[PATH_MAX];
} Path;

/* False: longer than any path may be. */
static PRINTF_LIKE(2, 3) bool path_set(Path *p, const char *fmt, ...)
{
    va_list ap;
    int     n;

    va_start(ap, fmt);
    n = vsnprintf(p->at, sizeof p->at, fmt, ap);
    va_end(ap);
    return n >= 0 && (size_t)n < sizeof p->at;
}

/* A folder of the store, which whoever may write to it could replace by a link. */
static int open_folder(const Cache *cache, const char *name)
{
    int dir = tree_open(cache->dir), folder = dir >= 0 ? tree_open_at(dir, name) : -1;

    if (dir >= 0)
        close(dir);
    return folder;
}

/* The folder of an entry, and its name there; -1: there is none. */
static int open_shard(const Cache *cache, Sha256 key, bool make, char name[HEX + 1])
{
    char hex[HEX + 1];
    int  dir, folder;

    sha256_hex(key, hex);
    memcpy(name, hex + 2, HEX - 1);
    hex[2] = '\0';
    if (!make)
        return open_folder(cache, hex);
    if ((dir = tree_open(cache->dir)) < 0)
        return -1;
    folder = mkdirat(dir, hex, 0777) == 0 || errno == EEXIST ? tree_open_at(dir, hex) : -1;
    close(dir);
    return folder;
}

/* ---- opening ---------------------------------------------------------------------------------- */

static const char *default_dir(Arena *a)
{
    const char *dir = getenv("TVMCC_CACHE_DIR");

    if (dir && *dir)
        return arena_printf(a, "%s", dir);
    dir = getenv("XDG_CACHE_HOME"); /* the XDG rules: a relative path is to be ignored */
    if (dir && *dir == '/')
        return arena_printf(a, "%s/tvmcc", dir);
    dir = getenv("HOME");
    if (dir && *dir == '/')
        return arena_printf(a, "%s/.cache/tvmcc", dir);
    return NULL;
}

const char *cache_wrong_size(void)
{
    const char *size = getenv("TVMCC_CACHE_SIZE");
    uint64_t    bytes;

    return size && *size && !parse_bytes(size, &bytes) ? size : NULL;
}

Cache *cache_open(Arena *a, const char *dir, uint64_t max_bytes)
{
    const char *size = getenv("TVMCC_CACHE_SIZE");
    Cache      *cache;

    dir = dir ? arena_printf(a, "%s", dir) : default_dir(a);
    if (!dir || !*dir)
        return NULL;
    cache = NEW(a, Cache);
    cache->dir = dir;
    cache->max_bytes = max_bytes;
    if (!max_bytes && !(size && parse_bytes(size, &cache->max_bytes)))
        cache->max_bytes = default_bytes;
    return cache;
}

const char *cache_dir(const Cache *cache)
{
    return cache ? cache->dir : NULL;
}

uint64_t cache_max_bytes(const Cache *cache)
{
    return cache ? cache->max_bytes : 0;
}

CacheStats cache_stats(const Cache *cache)
{
    CacheStats s = {0};

    if (cache) {
        s.hits = atomic_load(&cache->hits);
        s.misses = atomic_load(&cache->misses);
        s.stored = atomic_load(&cache->stored);
        s.corrupt = atomic_load(&cache->corrupt);
    }
    return s;
}

/* ---- get -------------------------------------------------------------------------------------- */

static bool read_exactly(int fd, uint8_t *at, size_t n)
{
    while (n) {
        ssize_t got = read(fd, at, n < (1u << 30) ? n : 1u << 30);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        n -= (size_t)got;
    }
    return true;
}

static void put_u64(uint8_t *at, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        at[i] = (uint8_t)(v >> 8 * i);
}

static void fill_header(uint8_t header[HEADER], Sha256 key, Bytes content)
{
    Sha256 hash = sha256(content);

    memcpy(header, magic, MAGIC);
    put_u64(header + MAGIC, content.n);
    memcpy(header + MAGIC + 8, key.b, 32);
    memcpy(header + MAGIC + 40, hash.b, 32);
}

Bytes cache_entry(Arena *a, Sha256 key, Bytes content)
{
    uint8_t *at = arena_alloc(a, HEADER + content.n);

    fill_header(at, key, content);
    if (content.n)
        memcpy(at + HEADER, content.at, content.n);
    return (Bytes){at, HEADER + content.n};
}

bool cache_entry_content(Bytes entry, Sha256 key, Bytes *content)
{
    uint8_t expected[HEADER];

    if (entry.n < HEADER)
        return false;
    *content = (Bytes){entry.at + HEADER, entry.n - HEADER};
    fill_header(expected, key, *content);
    return memcmp(entry.at, expected, HEADER) == 0;
}

/* All of a file; the size is what fstat said, which holds for entries. */
static bool read_entry(int fd, uint64_t size, Arena *a, Sha256 key, Bytes *out)
{
    uint8_t  header[HEADER], length[8];
    uint8_t *at;

    if (size < HEADER || size > SIZE_MAX / 2 || !read_exactly(fd, header, HEADER))
        return false;
    put_u64(length, size - HEADER);
    if (memcmp(header, magic, MAGIC) != 0 || memcmp(header + MAGIC, length, 8) != 0)
        return false; /* before memory is asked for */
    at = arena_alloc(a, (size_t)size);
    memcpy(at, header, HEADER);
    return read_exactly(fd, at + HEADER, (size_t)size - HEADER) &&
           cache_entry_content((Bytes){at, (size_t)size}, key, out);
}

bool cache_get(Cache *cache, Arena *a, Sha256 key, Bytes *out)
{
    static const struct timespec now[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_NOW}};
    char                         name[HEX + 1];
    struct stat                  st;
    int                          folder, fd = -1;
    bool                         ok = false;

    if (!cache)
        return false;
    if ((folder = open_shard(cache, key, false, name)) >= 0)
        fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        ok = read_entry(fd, (uint64_t)st.st_size, a, key, out);
    if (ok) {
        futimens(fd, now);
        atomic_fetch_add(&cache->hits, 1u);
    } else {
        atomic_fetch_add(&cache->misses, 1u);
    }
    if (fd >= 0 &&
        !ok) { /* at worst it was just replaced by a good one, which will be made again */
        unlinkat(folder, name, 0);
        atomic_fetch_add(&cache->corrupt, 1u);
    }
    if (fd >= 0)
        close(fd);
    if (folder >= 0)
        close(folder);
    return ok;
}

void cache_drop(Cache *cache, Sha256 key)
{
    char name[HEX + 1];
    int  folder = cache ? open_shard(cache, key, false, name) : -1;

    if (folder < 0)
        return;
    unlinkat(folder, name, 0);
    close(folder);
    atomic_fetch_sub(&cache->hits, 1u);
    atomic_fetch_add(&cache->misses, 1u);
    atomic_fetch_add(&cache->corrupt, 1u);
}

/* ---- what is there ---------------------------------------------------------------------------- */

typedef VEC(CacheEntry) Entries;

static int hex_digit(char ch)
{
    return ch >= '0' && ch <= '9' ? ch - '0' : ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

static bool parse_key(const char *folder, const char *name, Sha256 *out)
{
    if (strlen(folder) != 2 || strlen(name) != HEX - 2)
        return false;
    for (int i = 0; i < 32; i++) {
        const char *at = i ? name + 2 * (i - 1) : folder;
        int         high = hex_digit(at[0]), low = hex_digit(at[1]);

        if (high < 0 || low < 0)
            return false;
        out->b[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

bool cache_entry_key(const char *name, Sha256 *key)
{
    char folder[3] = {0};

    if (strlen(name) != HEX + 1 || name[2] != '/')
        return false;
    memcpy(folder, name, 2);
    return parse_key(folder, name + 3, key);
}

static void list_folder(const Cache *cache, const char *folder, Arena *a, Entries *out)
{
    int            fd = open_folder(cache, folder);
    DIR           *list = fd >= 0 ? tree_list(fd) : NULL;
    struct dirent *e;

    while (list && (e = readdir(list))) {
        CacheEntry  entry;
        struct stat st;

        if (!parse_key(folder, e->d_name, &entry.key) ||
            fstatat(dirfd(list), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        entry.bytes = (uint64_t)st.st_size;
        entry.used_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
        vec_push(a, out, entry);
    }
    if (list)
        closedir(list);
    if (fd >= 0)
        close(fd);
}

static int by_key(const void *p, const void *q)
{
    return memcmp(((const CacheEntry *)p)->key.b, ((const CacheEntry *)q)->key.b, 32);
}

static int by_use(const void *p, const void *q)
{
    const CacheEntry *x = p, *y = q;

    return x->used_ns != y->used_ns ? (x->used_ns > y->used_ns) - (x->used_ns < y->used_ns)
                                    : by_key(p, q);
}

void cache_list(const Cache *cache, Arena *a, CacheEntry **entries, uint32_t *n)
{
    Entries list = {0};

    for (int i = 0; cache && i < 256; i++) {
        char folder[3];

        snprintf(folder, sizeof folder, "%02x", i);
        list_folder(cache, folder, a, &list);
    }
    if (list.n)
        qsort(list.at, list.n, sizeof *list.at, by_key);
    *entries = list.at;
    *n = list.n;
}

/* ---- the bound -------------------------------------------------------------------------------- */

/* The file with the size, locked; -1: cannot be.  Closing it ends the lock. */
static int lock_size(const Cache *cache)
{
    Path path;
    int  fd = -1;

    if (path_set(&path, "%s/tvmcc-size", cache->dir))
        fd = open(path.at, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    while (fd >= 0 && flock(fd, LOCK_EX) != 0) {
        if (errno != EINTR) {
            close(fd);
            return -1;
        }
    }
    return fd;
}

static void write_size(int fd, uint64_t bytes)
{
    uint8_t at[8];

    put_u64(at, bytes);
    if (pwrite(fd, at, sizeof at, 0) != (ssize_t)sizeof at && ftruncate(fd, 0) != 0)
        return; /* then the next reader finds no size, and counts */
}

/* Removes temporaries whose writer is gone; the bytes of the others. */
static uint64_t sweep(const Cache *cache)
{
    int            folder = open_folder(cache, "tvmcc-tmp");
    DIR           *list = folder >= 0 ? tree_list(folder) : NULL;
    struct dirent *e;
    uint64_t       live = 0;

    while (list && (e = readdir(list))) {
        struct stat st;
        long        pid;
        unsigned    number;
        int         fd, end = 0;

        if (sscanf(e->d_name, "%ld-%u%n", &pid, &number, &end) != 2 || e->d_name[end])
            continue;
        fd = openat(folder, e->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0)
            continue;
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            unlinkat(folder, e->d_name, 0);
        else if (fstat(fd, &st) == 0)
            live += (uint64_t)st.st_size;
        close(fd);
    }
    if (list)
        closedir(list);
    if (folder >= 0)
        close(folder);
    return live;
}

/* Under the lock.  What is left, in bytes, with what is being written. */
static uint64_t trim(const Cache *cache, uint64_t max_bytes)
{
    Arena      *a = arena_new(NULL);
    CacheEntry *entries;
    uint32_t    n;
    uint64_t    total = sweep(cache);

    cache_list(cache, a, &entries, &n);
    for (uint32_t i = 0; i < n; i++)
        total += entries[i].bytes;
    if (total > max_bytes) {
        qsort(entries, n, sizeof *entries, by_use);
        for (uint32_t i = 0; i < n && total > max_bytes; i++) {
            char name[HEX + 1];
            int  folder = open_shard(cache, entries[i].key, false, name);

            if (folder >= 0 && (unlinkat(folder, name, 0) == 0 || errno == ENOENT))
                total -= entries[i].bytes;
            if (folder >= 0)
                close(folder);
        }
    }
    arena_free(a);
    return total;
}

void cache_trim(Cache *cache, uint64_t max_bytes)
{
    int fd = cache ? lock_size(cache) : -1;

    if (fd >= 0) {
        write_size(fd, trim(cache, max_bytes));
        close(fd);
    }
}

/* Makes room for a temporary of `bytes`, which is there already. */
static bool reserve(Cache *cache, uint64_t bytes)
{
    uint8_t  at[8];
    uint64_t total = 0;
    int      fd = lock_size(cache);
    bool     known;

    if (fd < 0)
        return false;
    known = pread(fd, at, sizeof at, 0) == (ssize_t)sizeof at;
    for (int i = 0; i < 8; i++)
        total |= (uint64_t)at[i] << 8 * i;
    if (known && total <= cache->max_bytes && bytes <= cache->max_bytes - total)
        total += bytes;
    else /* an eighth of room, so that the next puts need not count again */
        total = trim(cache, cache->max_bytes - cache->max_bytes / 8);
    write_size(fd, total);
    close(fd);
    return true;
}

/* ---- put -------------------------------------------------------------------------------------- */

static bool write_exactly(int fd, const uint8_t *at, size_t n)
{
    while (n) {
        ssize_t done = write(fd, at, n < (1u << 30) ? n : 1u << 30);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        at += done;
        n -= (size_t)done;
    }
    return true;
}

static bool make_store(const Cache *cache)
{
    static const char tag[] = "Signature: 8a477f597d28d172789f06886806bc55\n"
                              "# Compiled kernels of tvmcc; `tvmcc cache clean` removes them.\n";
    Path              path;
    int               fd;

    if (!tree_make(cache->dir) || !path_set(&path, "%s/tvmcc-tmp", cache->dir))
        return false;
    if (mkdir(path.at, 0777) != 0)
        return errno == EEXIST;
    if (path_set(&path, "%s/CACHEDIR.TAG", cache->dir) &&
        (fd = open(path.at, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) >= 0) {
        (void)!write(fd, tag, sizeof tag - 1);
        close(fd);
    }
    return true;
}

/* A locked temporary; -1 where there cannot be one. */
static int create_temporary(Cache *cache, int folder, char name[HEX])
{
    for (int try = 0; try < 100; try++) {
        int fd;

        snprintf(name, HEX, "%ld-%u", (long)getpid(), atomic_fetch_add(&cache->last_number, 1u));
        fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            return -1;
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
            return fd;
        if (fd >= 0) /* a sweeper was faster, and removes it */
            close(fd);
    }
    return -1;
}

/* Within RLIMIT_FSIZE, whose signal would end the process. */
static bool size_allowed(uint64_t bytes)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
           bytes <= limit.rlim_cur;
}

static bool fill_entry(Cache *cache, int fd, Sha256 key, Bytes content)
{
    uint8_t header[HEADER];

    fill_header(header, key, content);
    return ftruncate(fd, (off_t)(HEADER + content.n)) == 0 && /* its size, for others to count */
           reserve(cache, HEADER + content.n) && write_exactly(fd, header, HEADER) &&
           write_exactly(fd, content.at, content.n) && fsync(fd) == 0;
}

/* Into tvmcc-tmp, then to its name in the shard. */
static bool write_entry(Cache *cache, int shard, const char *name, Sha256 key, Bytes content)
{
    char temporary[HEX];
    int  folder = open_folder(cache, "tvmcc-tmp");
    int  fd = folder >= 0 ? create_temporary(cache, folder, temporary) : -1;
    bool ok = fd >= 0 && fill_entry(cache, fd, key, content) &&
              renameat(folder, temporary, shard, name) == 0;

    if (fd >= 0 && !ok)
        unlinkat(folder, temporary, 0);
    if (fd >= 0)
        close(fd);
    if (folder >= 0)
        close(folder);
    return ok;
}

void cache_put(Cache *cache, Sha256 key, Bytes content)
{
    uint64_t    bytes = (uint64_t)content.n + HEADER;
    char        name[HEX + 1];
    struct stat st;
    int         shard;

    if (!cache || atomic_load(&cache->unwritable) || bytes > cache->max_bytes ||
        !size_allowed(bytes))
        return;
    if (!make_store(cache)) {
        atomic_store(&cache->unwritable, true);
        return;
    }
    if ((shard = open_shard(cache, key, true, name)) < 0)
        return;
    if (fstatat(shard, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode) ||
        (uint64_t)st.st_size != bytes || faccessat(shard, name, R_OK, AT_EACCESS) != 0) {
        if (!atomic_exchange(&cache->swept, true))
            sweep(cache);
        if (write_entry(cache, shard, name, key, content))
            atomic_fetch_add(&cache->stored, 1u);
    }
    close(shard);
}

/* ---- clean ------------------------------------------------------------------------------------ */

void cache_clean(Cache *cache)
{
    static const char *const files[] = {"tvmcc-size", "CACHEDIR.TAG"};
    struct stat              st;
    int                      dir = cache ? tree_open(cache->dir) : -1;

    if (dir < 0)
        return;
    if (fstatat(dir, "tvmcc-tmp", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode)) {
        cache_trim(cache, 0);
        for (int i = 0; i < 256; i++) {
            char folder[3];

            snprintf(folder, sizeof folder, "%02x", i);
            unlinkat(dir, folder, AT_REMOVEDIR);
        }
        /* while somebody is writing the store stays, empty */
        if (unlinkat(dir, "tvmcc-tmp", AT_REMOVEDIR) == 0 || errno == ENOENT) {
            for (size_t i = 0; i < COUNT(files); i++)
                unlinkat(dir, files[i], 0);
            rmdir(cache->dir);
        }
    }
    close(dir);
}
