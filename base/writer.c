/* Files out, whole or not at all.
 *
 * A product is written beside its final name and renamed, so that nobody ever sees half of it; if
 * its bytes are there already, nothing is touched, and Ninja's restat stops the build there.
 *
 *     net.o exists with equal bytes?  -> done
 *     open net.o.tmp-4711-0 -> write -> fsync -> rename to net.o
 *
 * Names of temporaries stand in a table, with their counter the only mutable globals of the
 * compiler: a signal handler has nothing else to find them by.  A slot is claimed with one atomic
 * step, so that threads may write at the same time; a thread that finds no free slot writes all the
 * same, unprotected.
 */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SLOTS = 32, FREE = 0, CLAIMED = 1, NAMED = 2 };

static struct {
    atomic_int state;
    char       path[PATH_MAX];
} temporaries[SLOTS];

static atomic_uint last_number; /* keeps the temporaries of two threads apart */

void file_remove_temporaries(void)
{
    for (int i = 0; i < SLOTS; i++) {
        if (atomic_load(&temporaries[i].state) == NAMED)
            unlink(temporaries[i].path);
    }
}

static void on_signal(int sig)
{
    file_remove_temporaries();
    signal(sig, SIG_DFL);
    raise(sig);
}

void file_handle_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

    for (size_t i = 0; i < COUNT(signals); i++) {
        struct sigaction old, sa = {0};

        sa.sa_handler = on_signal;
        sigemptyset(&sa.sa_mask);
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(signals[i], &sa, NULL);
    }
    signal(SIGXFSZ, SIG_IGN); /* a write beyond RLIMIT_FSIZE is an error like a full disk */
}

static void remember(const char *path)
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

static void forget(const char *path)
{
    for (int i = 0; i < SLOTS; i++) {
        if (atomic_load(&temporaries[i].state) == NAMED && strcmp(temporaries[i].path, path) == 0) {
            atomic_store(&temporaries[i].state, FREE);
            return;
        }
    }
}

static bool io_error(Diags *d, const char *path)
{
    return diag_error(d, E_IO, NO_LOC, "cannot write '%s': %s", path, strerror(errno));
}

static bool write_all(int fd, Bytes content)
{
    while (content.n) {
        ssize_t done = write(fd, content.at, content.n < (1u << 30) ? content.n : 1u << 30);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        content.at += done;
        content.n -= (size_t)done;
    }
    return true;
}

/* The file that a symbolic link stands for is what is replaced, not the link. */
static const char *follow(const char *path, char resolved[PATH_MAX])
{
    struct stat st;

    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && realpath(path, resolved))
        return resolved;
    return path;
}

/* The next bytes of the file are these. */
static bool goes_on_with(int fd, Bytes content)
{
    uint8_t buffer[65536];

    while (content.n) {
        ssize_t got = read(fd, buffer, content.n < sizeof buffer ? content.n : sizeof buffer);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0 || memcmp(buffer, content.at, (size_t)got) != 0)
            return false;
        content.at += got;
        content.n -= (size_t)got;
    }
    return true;
}

static bool same_content(const char *path, BytesList content)
{
    struct stat st;
    int         fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool        same = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
                (uint64_t)st.st_size == pieces_size(content);

    for (uint32_t i = 0; same && i < content.n; i++)
        same = goes_on_with(fd, content.at[i]);
    if (fd >= 0)
        close(fd);
    return same;
}

/* Creates the temporary; the descriptor goes to *fd. */
static const char *create_temporary(Diags *d, Arena *a, const char *path, unsigned mode, int *fd)
{
    for (int try = 0; try < 100; try++) {
        const char *name = arena_printf(a, "%s.tmp-%ld-%u", path, (long)getpid(),
                                        atomic_fetch_add(&last_number, 1u));

        remember(name);
        *fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, (mode_t)mode);
        if (*fd >= 0)
            return name;
        forget(name);
        if (errno != EEXIST)
            break;
    }
    io_error(d, path);
    return NULL;
}

const char *file_temporary(Diags *d, Arena *a, const char *path, unsigned mode)
{
    int         fd;
    const char *name = create_temporary(d, a, path, mode, &fd);

    if (name)
        close(fd);
    return name;
}

void file_drop(const char *temporary)
{
    unlink(temporary);
    forget(temporary);
}

/* Renames; after an error the temporary is gone. */
static bool replace(Diags *d, const char *temporary, const char *path)
{
    char resolved[PATH_MAX];

    if (rename(temporary, follow(path, resolved)) != 0) {
        int error = errno;

        file_drop(temporary);
        errno = error;
        return io_error(d, path);
    }
    forget(temporary);
    return true;
}

/* What somebody else wrote, to disk before it gets its name. */
static bool sync_file(Diags *d, const char *path)
{
    int  fd = open(path, O_RDONLY | O_CLOEXEC);
    bool ok = fd >= 0 && fsync(fd) == 0;

    if (fd >= 0)
        close(fd);
    return ok || io_error(d, path);
}

bool file_commit(Diags *d, const char *temporary, const char *path)
{
    Arena *a = arena_new(NULL);
    Diags *local = diags_new(a); /* its mappings end here */
    Bytes  content;
    bool   same =
        file_map(local, temporary, &content) && same_content(path, (BytesList){1, &content});

    file_unmap_all(local);
    arena_free(a);
    if (same) {
        file_drop(temporary);
        return true;
    }
    if (!sync_file(d, temporary)) {
        file_drop(temporary);
        return false;
    }
    return replace(d, temporary, path);
}

/* stdout, devices and pipes: there is no name to rename to. */
static bool write_in_place(Diags *d, const char *path, BytesList content)
{
    bool out = strcmp(path, "-") == 0, ok = true;
    int  fd = out ? dup(1) : open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return io_error(d, path);
    for (uint32_t i = 0; ok && i < content.n; i++)
        ok = write_all(fd, content.at[i]);
    if (!ok)
        io_error(d, out ? "standard output" : path);
    if (close(fd) != 0 && ok)
        return io_error(d, path);
    return ok;
}

/* To disk, closed and under the final name; after an error the temporary is gone. */
static bool settle(Diags *d, int fd, bool written, const char *name, const char *final,
                   const char *path)
{
    bool ok = written && fsync(fd) == 0;

    ok = close(fd) == 0 && ok;
    if (ok)
        return replace(d, name, final);
    int error = errno;
    file_drop(name);
    errno = error;
    return io_error(d, path);
}

static bool write_pieces(Diags *d, const char *path, BytesList content, unsigned mode)
{
    char        resolved[PATH_MAX];
    struct stat st;
    int         fd;
    const char *name, *final;
    Arena      *a;
    bool        ok = true;

    if (strcmp(path, "-") == 0 ||
        (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
        return write_in_place(d, path, content);
    final = follow(path, resolved);
    if (same_content(final, content))
        return true;
    a = arena_new(NULL);
    name = create_temporary(d, a, final, mode, &fd);
    for (uint32_t i = 0; name && ok && i < content.n; i++)
        ok = write_all(fd, content.at[i]);
    ok = name && settle(d, fd, ok, name, final, path);
    arena_free(a);
    return ok;
}

bool file_write_pieces(Diags *d, const char *path, BytesList content)
{
    return write_pieces(d, path, content, 0666);
}

bool file_write_mode(Diags *d, const char *path, Bytes content, unsigned mode)
{
    return write_pieces(d, path, (BytesList){1, &content}, mode);
}

bool file_write(Diags *d, const char *path, Bytes content)
{
    return file_write_mode(d, path, content, 0666);
}

size_t pieces_size(BytesList p)
{
    size_t n = 0;

    for (uint32_t i = 0; i < p.n; i++)
        n += p.at[i].n;
    return n;
}

Bytes pieces_join(Arena *a, BytesList p)
{
    size_t   n = pieces_size(p), at = 0;
    uint8_t *all;

    if (p.n == 1)
        return p.at[0];
    all = arena_alloc(a, n);
    for (uint32_t i = 0; i < p.n; i++) {
        if (p.at[i].n)
            memcpy(all + at, p.at[i].at, p.at[i].n);
        at += p.at[i].n;
    }
    return (Bytes){all, n};
}

/* ---- files that are filled before all of them is known ------------------------------------------ */

struct FileOut {
    Diags      *d;
    const char *path, *final, *temporary; /* temporary NULL: it has ended */
    int         fd;
    Bytes       mapped; /* from the file's begin on */
};

FileOut *file_out_new(Diags *d, Arena *a, const char *path)
{
    FileOut *f = NEW(a, FileOut);
    char     resolved[PATH_MAX];

    f->d = d;
    f->path = path;
    f->final = arena_printf(a, "%s", follow(path, resolved));
    f->temporary = create_temporary(d, a, f->final, 0666, &f->fd);
    return f->temporary ? f : NULL;
}

bool file_out_put(FileOut *f, uint64_t at, Bytes content)
{
    while (content.n) {
        size_t  some = content.n < (1u << 30) ? content.n : 1u << 30;
        ssize_t done = pwrite(f->fd, content.at, some, (off_t)at);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return io_error(f->d, f->path);
        content.at += done;
        content.n -= (size_t)done;
        at += (uint64_t)done;
    }
    return true;
}

bool file_out_map(FileOut *f, uint64_t n, Bytes *out)
{
    void *at;

    if (ftruncate(f->fd, (off_t)n) != 0) /* ends of constants that nobody put are zeros */
        return io_error(f->d, f->path);
    at = mmap(NULL, n, PROT_READ, MAP_SHARED, f->fd, 0);
    if (at == MAP_FAILED)
        return io_error(f->d, f->path);
    file_adopt_mapping(f->d, at, n);
    *out = f->mapped = (Bytes){at, n};
    return true;
}

static bool is_there(const FileOut *f, Bytes piece, uint64_t at)
{
    return at <= f->mapped.n && piece.n <= f->mapped.n - at && piece.at == f->mapped.at + at;
}

bool file_out_finish(FileOut *f, BytesList content, bool keep)
{
    uint64_t    at = 0;
    const char *name = f->temporary;
    bool        ok = true;

    for (uint32_t i = 0; ok && i < content.n; at += content.at[i++].n)
        ok = is_there(f, content.at[i], at) || file_out_put(f, at, content.at[i]);
    ok = ok && (ftruncate(f->fd, (off_t)at) == 0 || io_error(f->d, f->path));
    if (!ok || keep || same_content(f->final, content)) {
        if (!ok || !keep)
            file_out_drop(f);
        return ok;
    }
    f->temporary = NULL;
    return settle(f->d, f->fd, true, name, f->final, f->path);
}

const char *file_out_temporary(const FileOut *f)
{
    return f->temporary;
}

void file_out_drop(FileOut *f)
{
    if (!f || !f->temporary)
        return;
    close(f->fd);
    file_drop(f->temporary);
    f->temporary = NULL;
}
