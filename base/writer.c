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

static bool same_content(const char *path, Bytes content)
{
    struct stat st;
    uint8_t     buffer[65536];
    int         fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool        same =
        fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == content.n;

    while (same && content.n) {
        ssize_t got = read(fd, buffer, sizeof buffer);

        if (got < 0 && errno == EINTR)
            continue;
        same = got > 0 && (size_t)got <= content.n && memcmp(buffer, content.at, (size_t)got) == 0;
        if (same) {
            content.at += got;
            content.n -= (size_t)got;
        }
    }
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
        *fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, (mode_t)mode);
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

bool file_commit(Diags *d, const char *temporary, const char *path)
{
    Arena *a = arena_new(NULL);
    Diags *local = diags_new(a); /* its mappings end here */
    Bytes  content;
    bool   same = file_map(local, temporary, &content) && same_content(path, content);

    file_unmap_all(local);
    arena_free(a);
    if (same) {
        file_drop(temporary);
        return true;
    }
    return replace(d, temporary, path);
}

/* stdout, devices and pipes: there is no name to rename to. */
static bool write_in_place(Diags *d, const char *path, Bytes content)
{
    bool out = strcmp(path, "-") == 0, ok;
    int  fd = out ? dup(1) : open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return io_error(d, path);
    ok = write_all(fd, content);
    if (!ok)
        io_error(d, out ? "standard output" : path);
    if (close(fd) != 0 && ok)
        return io_error(d, path);
    return ok;
}

bool file_write_mode(Diags *d, const char *path, Bytes content, unsigned mode)
{
    char        resolved[PATH_MAX];
    struct stat st;
    int         fd;
    const char *name, *final;
    Arena      *a;
    bool        ok;

    if (strcmp(path, "-") == 0 ||
        (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
        return write_in_place(d, path, content);
    final = follow(path, resolved);
    if (same_content(final, content))
        return true;
    a = arena_new(NULL);
    name = create_temporary(d, a, final, mode, &fd);
    ok = name != NULL;
    if (ok) {
        ok = write_all(fd, content) && fsync(fd) == 0;
        ok = close(fd) == 0 && ok;
        if (!ok) {
            int error = errno;

            file_drop(name);
            errno = error;
            io_error(d, path);
        } else {
            ok = replace(d, name, final);
        }
    }
    arena_free(a);
    return ok;
}

bool file_write(Diags *d, const char *path, Bytes content)
{
    return file_write_mode(d, path, content, 0666);
}
