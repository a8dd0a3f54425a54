/* folder.c: archives as folders on disk, both ways.
 *
 * Reading takes regular files below a folder, in byte order of their paths.  Writing is all or
 * nothing: files go into a hidden folder beside the wanted one, which is renamed when all of them
 * are on disk; what was there before is exchanged in the same step.  SIGINT, SIGTERM and SIGHUP
 * wait until the hidden folder is gone.
 *
 *     out/.net.tmp-4711/...   ->   rename   ->   out/net/...
 */
#include "packaging/packaging.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FILES = 100000, MAX_FOLDERS = 10000 };

typedef VEC(const char *) Names;
typedef VEC(Member) Members;

static bool io_error(Diags *d, const char *what, const char *path)
{
    return diag_error(d, E_IO, NO_LOC, "cannot %s '%s': %s", what, path, strerror(errno));
}

/* ---- reading -------------------------------------------------------------------------------------- */

static int by_path(const void *a, const void *b)
{
    return strcmp(((const Member *)a)->path, ((const Member *)b)->path);
}

/* One entry of a folder: a file to the members, a folder to those still to be read. */
static bool read_entry(Diags *d, Arena *a, const char *root, const char *path, Members *files,
                       Names *folders)
{
    const char *full = arena_printf(a, "%s/%s", root, path);
    struct stat st;
    Member      m = {.path = path};

    if (lstat(full, &st) != 0)
        return io_error(d, "read", full);
    if (S_ISDIR(st.st_mode)) {
        if (folders->n >= MAX_FOLDERS)
            return diag_error(d, E_PACK, (Loc){.file = root}, "too many folders");
        vec_push(a, folders, path);
        return true;
    }
    if (!S_ISREG(st.st_mode))
        return diag_error(d, E_PACK, (Loc){.file = root}, "member '%s' is not a regular file",
                          path);
    if (files->n >= MAX_FILES)
        return diag_error(d, E_PACK, (Loc){.file = root}, "too many files");
    m.executable = (st.st_mode & 0100) != 0;
    if (st.st_size > 0 && !file_map(d, full, &m.data))
        return false;
    vec_push(a, files, m);
    return true;
}

bool folder_read(Diags *d, Arena *a, const char *root, Member **members, uint32_t *n)
{
    Members files = {0};
    Names   folders = {0};
    bool    ok = true;

    vec_push(a, &folders, "");
    for (uint32_t i = 0; ok && i < folders.n; i++) {
        const char    *below = folders.at[i];
        const char    *full = *below ? arena_printf(a, "%s/%s", root, below) : root;
        DIR           *dir = opendir(full);
        struct dirent *e;

        if (!dir)
            return io_error(d, "read", full);
        while (ok && (e = readdir(dir)) != NULL) {
            const char *name = e->d_name;

            if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
                continue;
            ok = read_entry(d, a, root, arena_printf(a, "%s%s%s", below, *below ? "/" : "", name),
                            &files, &folders);
        }
        closedir(dir);
    }
    if (files.n)
        qsort(files.at, files.n, sizeof *files.at, by_path);
    *members = files.at;
    *n = files.n;
    return ok && pack_is_known(d, a, root, files.at, files.n);
}

/* ---- removing ------------------------------------------------------------------------------------- */

/* All below, then the folder; symbolic links are removed, not followed. */
static void remove_tree(Arena *a, const char *root)
{
    Names folders = {0};

    vec_push(a, &folders, root);
    for (uint32_t i = 0; i < folders.n; i++) {
        DIR           *dir = opendir(folders.at[i]);
        struct dirent *e;

        while (dir && (e = readdir(dir)) != NULL) {
            const char *full;

            if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
                continue;
            full = arena_printf(a, "%s/%s", folders.at[i], e->d_name);
            if (unlink(full) != 0 && (errno == EISDIR || errno == EPERM))
                vec_push(a, &folders, full);
        }
        if (dir)
            closedir(dir);
    }
    for (uint32_t i = folders.n; i-- > 0;)
        rmdir(folders.at[i]);
}

/* ---- writing -------------------------------------------------------------------------------------- */

static bool make_folders(Diags *d, Arena *a, const char *root, const char *path)
{
    for (const char *s = strchr(path, '/'); s; s = strchr(s + 1, '/')) {
        const char *full = arena_printf(a, "%s/%.*s", root, (int)(s - path), path);

        if (mkdir(full, 0755) != 0 && errno != EEXIST)
            return io_error(d, "write", full);
    }
    return true;
}

static bool write_member(Diags *d, Arena *a, const char *root, const Member *m)
{
    const char    *full = arena_printf(a, "%s/%s", root, m->path);
    const uint8_t *at = m->data.at;
    size_t         left = m->data.n;
    int            fd;

    if (!make_folders(d, a, root, m->path))
        return false;
    fd = open(full, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
              m->executable ? 0755 : 0644);
    if (fd < 0)
        return io_error(d, "write", full);
    while (left) {
        ssize_t done = write(fd, at, left < (1u << 30) ? left : 1u << 30);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            break;
        at += done;
        left -= (size_t)done;
    }
    if (left || fsync(fd) != 0) {
        io_error(d, "write", full);
        close(fd);
        return false;
    }
    return close(fd) == 0 || io_error(d, "write", full);
}

/* Whether a signal waits that would end the program. */
static bool interrupted(void)
{
    sigset_t set;

    return sigpending(&set) == 0 &&
           (sigismember(&set, SIGINT) == 1 || sigismember(&set, SIGTERM) == 1 ||
            sigismember(&set, SIGHUP) == 1);
}

/* `from` becomes `to`; with `force` what is there is exchanged and removed. */
static bool put_in_place(Diags *d, Arena *a, const char *from, const char *to, bool force)
{
#ifdef RENAME_NOREPLACE
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return true;
    if (errno == EEXIST && force && renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE) == 0) {
        remove_tree(a, from); /* now the old one */
        return true;
    }
    if (errno == EEXIST && !force)
        return io_error(d, "write", to);
#endif
    if (force) { /* file systems that cannot exchange: two steps */
        const char *old = arena_printf(a, "%s.old", from);

        if (rename(to, old) == 0) {
            if (rename(from, to) == 0) {
                remove_tree(a, old);
                return true;
            }
            rename(old, to);
        }
    }
    return rename(from, to) == 0 || io_error(d, "write", to);
}

static bool exists(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

bool folder_write(Diags *d, Arena *a, const char *path, const Member *members, uint32_t n,
                  bool force)
{
    const char *slash = strrchr(path, '/'), *temporary;
    sigset_t    set, old;
    bool        ok = true;

    if (exists(path) && !force) {
        diag_error(d, E_IO, NO_LOC, "'%s' is there already", path);
        diag_hint(d, "--force replaces it");
        return false;
    }
    temporary = slash ? arena_printf(a, "%.*s/.%s.tmp-%ld", (int)(slash - path), path, slash + 1,
                                     (long)getpid())
                      : arena_printf(a, ".%s.tmp-%ld", path, (long)getpid());
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, &old);
    if (mkdir(temporary, 0755) != 0) {
        ok = io_error(d, "write", path);
    } else {
        for (uint32_t i = 0; ok && i < n; i++)
            ok = !interrupted() && write_member(d, a, temporary, &members[i]);
        ok = ok && put_in_place(d, a, temporary, path, force);
        if (!ok)
            remove_tree(a, temporary);
    }
    sigprocmask(SIG_SETMASK, &old, NULL);
    return ok;
}
