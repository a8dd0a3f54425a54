/* Files out, whole or not at all.
 *
 * Nobody ever sees half of a product; if its bytes are there already, nothing is touched, and
 * Ninja's restat stops the build there.
 *
 *     net.o exists with equal bytes?  -> done
 *     open a file without a name in net.o's folder -> write -> fsync
 *     net.o is not there?  -> link it to net.o
 *     else                 -> link it to net.o.tmp-4711-0 -> rename to net.o
 *
 * A file without a name (O_TMPFILE) goes away with its process, so even SIGKILL leaves nothing,
 * save between the last two calls.  Where the system or the file system has none, or no way to name
 * one later, the temporary name is there from the start, as it is for files that other programs
 * write (linkers).  Such names that a killed process left an hour ago are removed by the next one
 * that needs a temporary for the same product.
 */
#include "base/base.h"
#include "base/temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LEFT_SECONDS = 3600 };

/* What a temporary is to become. */
static const char *final_name(Arena *a, const char *path)
{
    const char *mark = arena_printf(a, ".tmp-%ld-", (long)getpid()), *at = strstr(path, mark);

    return at ? arena_printf(a, "%.*s", (int)(at - path), path) : path;
}

static bool io_error(Diags *d, const char *path)
{
    int error = errno;

    path = final_name(diag_arena(d), path);
    diag_error(d, E_IO, (Loc){.file = path}, "cannot write '%s': %s", path, strerror(error));
    if (error == ENOENT || error == ENOTDIR)
        file_missing(d, path, false);
    return false;
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

/* Where `path` lies, and its name there. */
static const char *folder_of(Arena *a, const char *path, const char **name)
{
    const char *slash = strrchr(path, '/');

    *name = slash ? slash + 1 : path;
    return !slash ? "." : slash == path ? "/" : arena_printf(a, "%.*s", (int)(slash - path), path);
}

/* What killed processes left beside `path`.  Process numbers of another machine or container say
 * nothing here, hence the hour. */
static void remove_left(Arena *a, const char *path)
{
    const char    *name, *folder = folder_of(a, path, &name);
    DIR           *list = opendir(folder);
    struct dirent *e;

    while (list && (e = readdir(list))) {
        struct stat st;
        long        pid;
        unsigned    number;
        const char *rest;
        int         end = 0;

        if (!str_starts(e->d_name, name) ||
            sscanf(e->d_name + strlen(name), ".tmp-%ld-%u%n", &pid, &number, &end) != 2)
            continue;
        rest = e->d_name + strlen(name) + end;
        if (*rest && !str_starts(rest, ".tmp-")) /* of a temporary: a library for an archive */
            continue;
        if (fstatat(dirfd(list), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
            st.st_mtime + LEFT_SECONDS < time(NULL) && pid > 0 && kill((pid_t)pid, 0) != 0 &&
            errno == ESRCH)
            unlinkat(dirfd(list), e->d_name, 0);
    }
    if (list)
        closedir(list);
}

/* -1: there are none here. */
static int open_nameless(Arena *a, const char *path, unsigned mode)
{
#ifdef O_TMPFILE
    const char *name;

    if (access("/proc/self/fd", X_OK) == 0)
        return open(folder_of(a, path, &name), O_TMPFILE | O_RDWR | O_CLOEXEC, (mode_t)mode);
#endif
    (void)a, (void)path, (void)mode;
    return -1;
}

static bool link_nameless(int fd, const char *path)
{
    char self[64];

    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0;
}

/* A temporary name beside `path`: for *fd, or for a new file if that is -1. */
static const char *create_temporary(Diags *d, Arena *a, const char *path, unsigned mode, int *fd)
{
    bool nameless = *fd >= 0;

    for (int try = 0; try < 100; try++) {
        const char *name =
            arena_printf(a, "%s.tmp-%ld-%u", path, (long)getpid(), temporary_number());
        sigset_t before = temporary_begin();
        int      error = 0;

        if (nameless ? link_nameless(*fd, name)
                     : (*fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, (mode_t)mode)) >= 0)
            temporary_remember(name);
        else
            error = errno;
        temporary_end(before);
        if (!error)
            return name;
        errno = error;
        if (error != EEXIST)
            break;
    }
    if (!nameless)
        io_error(d, path);
    return NULL;
}

static bool copy_file(int to, int from)
{
    uint8_t buffer[65536];
    ssize_t got;
    off_t   at = 0;

    for (; (got = pread(from, buffer, sizeof buffer, at)) != 0; at += got > 0 ? got : 0)
        if (got < 0 ? errno != EINTR : !write_all(to, (Bytes){buffer, (size_t)got}))
            return false;
    return true;
}

/* A name for *fd that had none; where the system lets it have none, a copy has one. */
static const char *name_temporary(Diags *d, Arena *a, const char *path, int *fd)
{
    struct stat st;
    const char *name = create_temporary(d, a, path, 0, fd);
    int         copy = -1, error;

    if (name)
        return name;
    if (fstat(*fd, &st) != 0) {
        io_error(d, path);
        return NULL;
    }
    if (!(name = create_temporary(d, a, path, st.st_mode & 0777, &copy)))
        return NULL;
    if (copy_file(copy, *fd)) {
        close(*fd);
        *fd = copy;
        return name;
    }
    error = errno;
    close(copy);
    file_drop(name);
    errno = error;
    io_error(d, path);
    return NULL;
}

/* A file to be written: without a name if that can be, *name is NULL then. */
static bool open_output(Diags *d, Arena *a, const char *path, unsigned mode, int *fd,
                        const char **name)
{
    *name = NULL;
    *fd = open_nameless(a, path, mode);
    return *fd >= 0 || (*name = create_temporary(d, a, path, mode, fd));
}

bool file_room(Diags *d, Arena *a, const char *path, uint64_t bytes)
{
    const char *name;
    int         fd, error;

    if (!open_output(d, a, path, 0600, &fd, &name))
        return false;
    error = posix_fallocate(fd, 0, (off_t)bytes);
    close(fd);
    if (name)
        file_drop(name);
    errno = error;
    return error == 0 || error == EINVAL || error == EOPNOTSUPP || io_error(d, path);
}

const char *file_temporary(Diags *d, Arena *a, const char *path, unsigned mode)
{
    int         fd = -1;
    const char *name;

    remove_left(a, path);
    if ((name = create_temporary(d, a, path, mode, &fd)))
        close(fd);
    return name;
}

void file_drop(const char *temporary)
{
    unlink(temporary);
    temporary_forget(temporary);
}

const char *file_temporary_place(void)
{
    const char *place = getenv("TMPDIR");

    return place && *place == '/' ? place : "/tmp";
}

bool file_make_folder(Diags *d, const char *path)
{
    return tree_make(path) || diag_error(d, E_IO, (Loc){.file = path},
                                         "cannot make the folder '%s': %s", path, strerror(errno));
}

const char *file_temporary_folder(Diags *d, Arena *a)
{
    char     resolved[PATH_MAX];
    char    *name = arena_printf(a, "%s/tvmcc-XXXXXX", file_temporary_place());
    sigset_t before = temporary_begin();
    bool     made = mkdtemp(name) && realpath(name, resolved);
    int      error = errno;

    if (made)
        temporary_remember(resolved);
    temporary_end(before);
    if (made)
        return arena_printf(a, "%s", resolved);
    errno = error;
    io_error(d, name);
    return NULL;
}

bool file_drop_folder(const char *folder)
{
    sigset_t before = temporary_begin();
    bool     ok = tree_remove(folder);

    temporary_forget(folder);
    temporary_end(before);
    return ok;
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
    temporary_forget(temporary);
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

static bool is_device(const char *path)
{
    struct stat st;

    return strcmp(path, "-") == 0 ||
           (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
}

bool file_commit(Diags *d, const char *temporary, const char *path)
{
    Arena *a = arena_new(NULL);
    Diags *local = diags_new(a); /* its mappings end here */
    Bytes  content;
    bool   read = file_map(local, temporary, &content), device = is_device(path);
    bool   same = read && same_content(path, (BytesList){1, &content});

    if (read && device)
        same = write_in_place(d, path, (BytesList){1, &content});
    file_unmap_all(local);
    arena_free(a);
    if (same || device) {
        file_drop(temporary);
        return same;
    }
    if (!sync_file(d, temporary)) {
        file_drop(temporary);
        return false;
    }
    return replace(d, temporary, path);
}

/* To disk, closed and under the final name; after an error nothing is left.  `name` may be NULL. */
static bool settle(Diags *d, Arena *a, int fd, bool written, const char *name, const char *final,
                   const char *path)
{
    bool ok = (written && fsync(fd) == 0) || io_error(d, path);
    bool linked = ok && !name && link_nameless(fd, final);

    if (ok && !linked && !name)
        ok = (name = name_temporary(d, a, final, &fd)) != NULL;
    if (close(fd) != 0 && ok)
        ok = io_error(d, path);
    if (ok && !linked)
        return replace(d, name, final);
    if (!ok && name)
        file_drop(name);
    return ok;
}

static bool write_pieces(Diags *d, const char *path, BytesList content, unsigned mode)
{
    char        resolved[PATH_MAX];
    int         fd;
    const char *name, *final;
    Arena      *a;
    bool        ok = true, opened;

    if (is_device(path))
        return write_in_place(d, path, content);
    final = follow(path, resolved);
    if (same_content(final, content))
        return true;
    a = arena_new(NULL);
    opened = open_output(d, a, final, mode, &fd, &name);
    for (uint32_t i = 0; opened && ok && i < content.n; i++)
        ok = write_all(fd, content.at[i]);
    ok = opened && settle(d, a, fd, ok, name, final, path);
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
    Arena      *a;
    const char *path, *final, *temporary; /* temporary NULL: it has no name yet */
    int         fd;                       /* -1: it has ended */
    Bytes       mapped;                   /* from the file's begin on */
};

FileOut *file_out_new(Diags *d, Arena *a, const char *path)
{
    FileOut *f = NEW(a, FileOut);
    char     resolved[PATH_MAX];

    f->d = d;
    f->a = a;
    f->path = path;
    f->final = arena_printf(a, "%s", follow(path, resolved));
    return open_output(d, a, f->final, 0666, &f->fd, &f->temporary) ? f : NULL;
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
    uint64_t at = 0;
    int      fd = f->fd;
    bool     ok = true;

    for (uint32_t i = 0; ok && i < content.n; at += content.at[i++].n)
        ok = is_there(f, content.at[i], at) || file_out_put(f, at, content.at[i]);
    ok = ok && (ftruncate(f->fd, (off_t)at) == 0 || io_error(f->d, f->path));
    if (ok && keep && !f->temporary)
        ok = (f->temporary = name_temporary(f->d, f->a, f->final, &f->fd)) != NULL;
    if (!ok || keep || same_content(f->final, content)) {
        if (!ok || !keep)
            file_out_drop(f);
        return ok;
    }
    f->fd = -1;
    return settle(f->d, f->a, fd, true, f->temporary, f->final, f->path);
}

const char *file_out_temporary(const FileOut *f)
{
    return f->fd >= 0 ? f->temporary : NULL;
}

void file_out_drop(FileOut *f)
{
    if (!f || f->fd < 0)
        return;
    close(f->fd);
    f->fd = -1;
    if (f->temporary)
        file_drop(f->temporary);
}
