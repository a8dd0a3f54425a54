/* Bytes in: whole files, mapped or read, and a cursor that cannot leave its buffer.
 *
 * Mapped files are listed in the `Diags`, because weights are views of them that live as long as
 * the compile.  The cursor has a sticky `bad`: a reader checks it once at the end of a record
 * instead of after each field, and gets zeros meanwhile. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Read where nothing can be mapped. */
typedef struct Stream Stream;
struct Stream {
    Stream     *next;
    const char *path;
    Bytes       content;
};

typedef struct Mapping Mapping;
struct Mapping {
    Mapping *next;
    void    *at;
    size_t   n;
};

/* What comes from a pipe has no size that could be looked at before; no message of protobuf is
 * larger. */
#define PIPE_LIMIT ((size_t)INT32_MAX)

/* Of devices only terminals have an end, and /dev/null. */
static bool is_endless(int fd, const struct stat *st)
{
    struct stat null;

    if (S_ISCHR(st->st_mode))
        return !isatty(fd) && (stat("/dev/null", &null) || null.st_rdev != st->st_rdev);
    return S_ISBLK(st->st_mode);
}

/* A descriptor for reading and its status, or -1 after an error. */
static int open_input(Diags *d, const char *path, struct stat *st)
{
    int         fd = strcmp(path, "-") == 0 ? dup(0) : open(path, O_RDONLY | O_CLOEXEC);
    const char *why = NULL;
    int         error = fd < 0 || fstat(fd, st) ? errno : 0;

    if (error)
        why = strerror(error);
    else if (S_ISDIR(st->st_mode))
        why = strerror(EISDIR);
    else if (is_endless(fd, st))
        why = "it is a device";
    if (!why)
        return fd;
    diag_error(d, E_IO, (Loc){.file = path}, "cannot read '%s': %s", path, why);
    if (error == ENOENT || error == ENOTDIR)
        file_missing(d, path, true);
    if (fd >= 0)
        close(fd);
    return -1;
}

bool file_readable(Diags *d, const char *path)
{
    int error = access(path, R_OK) == 0 ? 0 : errno;

    if (!error)
        return true;
    diag_error(d, E_IO, (Loc){.file = path}, "cannot read '%s': %s", path, strerror(error));
    if (error == ENOENT || error == ENOTDIR)
        file_missing(d, path, true);
    return false;
}

static bool read_all(Diags *d, Arena *a, const char *path, int fd, size_t expected, Bytes *out)
{
    size_t   n = 0, cap = expected + 1;
    uint8_t *at = arena_alloc(a, cap);
    ssize_t  got;

    for (;;) {
        if (n == cap) { /* it grew, or is a pipe */
            uint8_t *larger = arena_array(a, cap, cap < 4096 ? 4096 : 2);

            memcpy(larger, at, n);
            at = larger;
            cap *= cap < 4096 ? 4096 : 2;
        }
        got = read(fd, at + n, cap - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        n += (size_t)got;
        if (n > PIPE_LIMIT && n > expected)
            return diag_error(d, E_IO, (Loc){.file = path},
                              "cannot read '%s': it does not end within %zu bytes", path,
                              PIPE_LIMIT);
    }
    if (got < 0)
        return diag_error(d, E_IO, (Loc){.file = path}, "cannot read '%s': %s", path,
                          strerror(errno));
    *out = (Bytes){at, n};
    return true;
}

bool file_read(Diags *d, Arena *a, const char *path, Bytes *out)
{
    struct stat st;
    int         fd = open_input(d, path, &st);
    bool        ok;

    if (fd < 0)
        return false;
    ok = read_all(d, a, path, fd, S_ISREG(st.st_mode) ? (size_t)st.st_size : 0, out);
    close(fd);
    return ok;
}

static bool map_all(Diags *d, int fd, size_t n, const char *path, Bytes *out)
{
    void *at = n ? mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;

    if (at == MAP_FAILED)
        return diag_error(d, E_IO, (Loc){.file = path}, "cannot map '%s': %s", path,
                          strerror(errno));
    if (n)
        file_adopt_mapping(d, at, n);
    *out = (Bytes){at, n};
    return true;
}

bool file_map_fd(Diags *d, int fd, const char *path, Bytes *out)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return diag_error(d, E_IO, NO_LOC, "cannot read '%s': %s", path, strerror(errno));
    return map_all(d, fd, (size_t)st.st_size, path, out);
}

void file_pretend(Diags *d, const char *path, Bytes content)
{
    Stream *s = NEW(diag_arena(d), Stream);

    *s = (Stream){*diag_streams(d), arena_printf(diag_arena(d), "%s", path), content};
    *diag_streams(d) = s;
}

/* What came out of a pipe is gone from it: it is kept for whoever asks again. */
static bool map_stream(Diags *d, int fd, const char *path, Bytes *out)
{
    if (!read_all(d, diag_arena(d), path, fd, 0, out))
        return false;
    file_pretend(d, path, *out);
    return true;
}

bool file_map(Diags *d, const char *path, Bytes *out)
{
    struct stat st;
    int         fd;
    bool        ok;

    for (const Stream *s = *diag_streams(d); s; s = s->next)
        if (!strcmp(s->path, path)) {
            *out = s->content;
            return true;
        }
    if ((fd = open_input(d, path, &st)) < 0)
        return false;
    if (!S_ISREG(st.st_mode))
        ok = map_stream(d, fd, path, out);
    else if (st.st_size == 0) /* or, as in /proc, not known */
        ok = read_all(d, diag_arena(d), path, fd, 0, out);
    else
        ok = map_all(d, fd, (size_t)st.st_size, path, out);
    close(fd);
    return ok;
}

const char *file_real(Arena *a, const char *path)
{
    char real[PATH_MAX];

    return realpath(path, real) ? arena_printf(a, "%s", real) : NULL;
}

void file_unmap_all(Diags *d)
{
    for (Mapping *m = *diag_mappings(d); m; m = m->next)
        munmap(m->at, m->n);
    *diag_mappings(d) = NULL;
}

void file_forget(Diags *d, Bytes content)
{
    for (Mapping *m = *diag_mappings(d); m; m = m->next) {
        uintptr_t from = (uintptr_t)m->at, page = (uintptr_t)sysconf(_SC_PAGESIZE);
        uintptr_t at = (uintptr_t)content.at, end = at + content.n;

        if (at < from || end > from + m->n)
            continue;
        at = (at + page - 1) / page * page;
        end = end / page * page;
        if (at < end)
            (void)madvise((char *)m->at + (at - from), end - at, MADV_DONTNEED);
        return;
    }
}

void file_adopt_mapping(Diags *d, void *at, size_t n)
{
    Mapping *m = NEW(diag_arena(d), Mapping);

    *m = (Mapping){*diag_mappings(d), at, n};
    *diag_mappings(d) = m;
}

/* ---- the cursor ------------------------------------------------------------------------------ */

Reader reader(Bytes b)
{
    static const uint8_t empty[1];

    if (!b.at)
        b = (Bytes){empty, 0};
    return (Reader){b.at, b.at + b.n, b.at, false};
}

size_t reader_left(const Reader *r)
{
    return (size_t)(r->end - r->at);
}

Bytes read_bytes(Reader *r, uint64_t n)
{
    Bytes b = {r->at, (size_t)n};

    if (r->bad || n > reader_left(r)) {
        r->bad = true;
        r->at = r->end;
        return (Bytes){r->end, 0};
    }
    r->at += n;
    return b;
}

static uint64_t read_le(Reader *r, unsigned bytes)
{
    Bytes    b = read_bytes(r, bytes);
    uint64_t v = 0;

    for (size_t i = 0; i < b.n; i++)
        v |= (uint64_t)b.at[i] << (8 * i);
    return v;
}

uint8_t read_u8(Reader *r)
{
    return (uint8_t)read_le(r, 1);
}

uint16_t read_u16(Reader *r)
{
    return (uint16_t)read_le(r, 2);
}

uint32_t read_u32(Reader *r)
{
    return (uint32_t)read_le(r, 4);
}

uint64_t read_u64(Reader *r)
{
    return read_le(r, 8);
}

uint64_t read_varint(Reader *r)
{
    uint64_t v = 0;

    for (unsigned shift = 0; shift < 70; shift += 7) {
        uint8_t b = read_u8(r);

        if (r->bad)
            return 0;
        if (shift == 63 && b > 1)
            break; /* does not fit in 64 bits */
        v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80))
            return v;
    }
    r->bad = true;
    r->at = r->end;
    return 0;
}
