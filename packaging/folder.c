/* folder.c: archives as folders on disk, both ways.
 *
 * Reading takes regular files below a folder, in byte order of their paths.  Writing is all or
 * nothing: files go into a hidden folder beside the wanted one, which is renamed when all of them
 * are on disk; what was there before is exchanged in the same step.  SIGINT, SIGTERM and SIGHUP
 * wait until the hidden folder is gone.  Below the folder that the user names everything goes by
 * descriptor (base/tree.c), so links are never followed.
 *
 *     out/.net.tmp-4711-0/...   ->   rename   ->   out/net/...
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

enum { MAX_FILES = 100000, MAX_FOLDERS = 10000, MAX_FOLDER_PATH = 1024 };

typedef VEC(const char *) Names;
typedef VEC(Member) Members;

static bool io_error(Diags *d, const char *what, const char *path)
{
    return diag_error(d, E_IO, (Loc){.file = path}, "cannot %s '%s': %s", what, path,
                      strerror(errno));
}

/* ---- reading -------------------------------------------------------------------------------------- */

static int by_path(const void *a, const void *b)
{
    return strcmp(((const Member *)a)->path, ((const Member *)b)->path);
}

static bool not_regular(Diags *d, const char *root, const char *path)
{
    return diag_error(d, E_PACK, (Loc){.file = root}, "member '%s' is not a regular file", path);
}

/* The content of a file; what it is was seen before it was opened, and may have changed. */
static bool read_file(Diags *d, Arena *a, const char *root, int folder, const char *name, Member *m)
{
    const char *full = arena_printf(a, "%s/%s", root, m->path);
    int         fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    bool        ok;

    if (fd < 0 || fstat(fd, &st) != 0)
        ok = errno == ELOOP ? not_regular(d, root, m->path) : io_error(d, "read", full);
    else if (!S_ISREG(st.st_mode))
        ok = not_regular(d, root, m->path);
    else
        ok = file_map_fd(d, fd, full, &m->data);
    if (fd >= 0)
        close(fd);
    if (ok)
        m->executable = (st.st_mode & 0100) != 0;
    return ok;
}

/* One entry of a folder: a file to the members, a folder to those still to be read. */
static bool read_entry(Diags *d, Arena *a, const char *root, int folder, const char *name,
                       const char *path, Members *files, Names *folders)
{
    struct stat st;
    Member      m = {.path = path};

    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return io_error(d, "read", arena_printf(a, "%s/%s", root, path));
    if (S_ISDIR(st.st_mode)) {
        if (folders->n >= MAX_FOLDERS || strlen(path) > MAX_FOLDER_PATH)
            return diag_error(d, E_PACK, (Loc){.file = root}, "too many folders");
        vec_push(a, folders, path);
        return true;
    }
    if (!S_ISREG(st.st_mode))
        return not_regular(d, root, path);
    if (files->n >= MAX_FILES)
        return diag_error(d, E_PACK, (Loc){.file = root}, "too many files");
    if (!read_file(d, a, root, folder, name, &m))
        return false;
    vec_push(a, files, m);
    return true;
}

/* The entries of one folder of those that are still to be read. */
static bool read_folder(Diags *d, Arena *a, const char *root, int top, const char *below,
                        Members *files, Names *folders)
{
    int            folder = tree_open_below(top, below, false);
    DIR           *dir = folder >= 0 ? tree_list(folder) : NULL;
    struct dirent *e;
    bool           ok = dir != NULL;

    if (!ok)
        io_error(d, "read", *below ? arena_printf(a, "%s/%s", root, below) : root);
    while (ok && (e = readdir(dir)) != NULL)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            ok = read_entry(d, a, root, folder, e->d_name,
                            arena_printf(a, "%s%s%s", below, *below ? "/" : "", e->d_name), files,
                            folders);
    if (dir)
        closedir(dir);
    if (folder >= 0)
        close(folder);
    return ok;
}

bool folder_read(Diags *d, Arena *a, const char *root, Member **members, uint32_t *n)
{
    Members files = {0};
    Names   folders = {0};
    int     top = tree_open(root);
    bool    ok = top >= 0 || io_error(d, "read", root);

    vec_push(a, &folders, "");
    for (uint32_t i = 0; ok && i < folders.n; i++)
        ok = read_folder(d, a, root, top, folders.at[i], &files, &folders);
    if (top >= 0)
        close(top);
    if (files.n)
        qsort(files.at, files.n, sizeof *files.at, by_path);
    *members = files.at;
    *n = files.n;
    return ok && pack_is_known(d, a, root, files.at, files.n);
}

/* ---- writing -------------------------------------------------------------------------------------- */

static bool write_member(Diags *d, Arena *a, int root, const char *shown, const Member *m)
{
    const char    *slash = strrchr(m->path, '/'), *name = slash ? slash + 1 : m->path;
    const char    *full = arena_printf(a, "%s/%s", shown, m->path);
    const uint8_t *at = m->data.at;
    size_t         left = m->data.n;
    int            folder, fd = -1;

    folder = tree_open_below(
        root, slash ? arena_printf(a, "%.*s", (int)(slash - m->path), m->path) : "", true);
    if (folder >= 0)
        fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                    m->executable ? 0755 : 0644);
    if (fd < 0)
        io_error(d, "write", full);
    if (folder >= 0)
        close(folder);
    if (fd < 0)
        return false;
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

/* `from` becomes `to`, both in `folder`; with `force` what is there is exchanged and removed. */
static bool put_in_place(Diags *d, Arena *a, int folder, const char *from, const char *to,
                         const char *path, bool force)
{
    const char *old = from; /* the name of what was there */

#ifdef RENAME_NOREPLACE
    if (renameat2(folder, from, folder, to, RENAME_NOREPLACE) == 0)
        return true;
    if (errno == EEXIST && !force)
        return io_error(d, "write", path);
    if (errno == EEXIST && renameat2(folder, from, folder, to, RENAME_EXCHANGE) == 0)
        return tree_remove_at(folder, old) || io_error(d, "remove what was", path);
#endif
    if (force) { /* file systems that cannot exchange: two steps */
        old = arena_printf(a, "%s.old", from);
        if (renameat(folder, to, folder, old) == 0) {
            if (renameat(folder, from, folder, to) == 0)
                return tree_remove_at(folder, old) || io_error(d, "remove what was", path);
            renameat(folder, old, folder, to);
        }
    }
    return renameat(folder, from, folder, to) == 0 || io_error(d, "write", path);
}

/* A hidden folder in `folder`, open; its name, or NULL with errno. */
static const char *make_hidden(Arena *a, int folder, const char *name, int *fd)
{
    for (int try = 0; try < 100; try++) {
        const char *hidden = arena_printf(a, ".%s.tmp-%ld-%d", name, (long)getpid(), try);

        if (mkdirat(folder, hidden, 0755) == 0 && (*fd = tree_open_at(folder, hidden)) >= 0)
            return hidden;
        if (errno != EEXIST)
            return NULL;
    }
    return NULL;
}

static bool write_all(Diags *d, Arena *a, int folder, const char *name, const char *path,
                      const Member *members, uint32_t n, bool force)
{
    int         fd;
    const char *hidden = make_hidden(a, folder, name, &fd);
    bool        ok = hidden != NULL;

    if (!ok)
        return io_error(d, "write", path);
    for (uint32_t i = 0; ok && i < n; i++)
        ok = !interrupted() && write_member(d, a, fd, path, &members[i]);
    close(fd);
    ok = ok && put_in_place(d, a, folder, hidden, name, path, force);
    if (!ok)
        tree_remove_at(folder, hidden);
    return ok;
}

bool folder_write(Diags *d, Arena *a, const char *path, const Member *members, uint32_t n,
                  bool force)
{
    const char *name;
    struct stat st;
    sigset_t    set, old;
    int         folder = tree_open_parent(a, path, &name);
    bool        ok;

    if (folder < 0)
        return io_error(d, "write", path);
    if (!force && fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        close(folder);
        diag_error(d, E_IO, (Loc){.file = path}, "'%s' is there already", path);
        diag_hint(d, "--force replaces it");
        return false;
    }
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, &old);
    ok = write_all(d, a, folder, name, path, members, n, force);
    sigprocmask(SIG_SETMASK, &old, NULL);
    close(folder);
    return ok;
}
