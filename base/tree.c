/* Folders by descriptor: reading, making and removing what lies below one.
 *
 * A path is looked up anew at each call, so whoever may write to a folder on the way can put a link
 * in place of what was just checked, and a removal goes on elsewhere.  Here the first folder is
 * opened once, by the path that the user gave; everything below it is named by a descriptor and one
 * name, and links are never followed: they are removed themselves, and an error for all others.
 */
#include "base/base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FOLDER = O_RDONLY | O_DIRECTORY | O_CLOEXEC };

int tree_open(const char *path)
{
    return open(path, FOLDER);
}

int tree_open_at(int folder, const char *name)
{
    return openat(folder, name, FOLDER | O_NOFOLLOW);
}

int tree_open_parent(Arena *a, const char *path, const char **name)
{
    size_t      n = strlen(path);
    const char *slash;

    while (n > 1 && path[n - 1] == '/')
        n--;
    path = arena_printf(a, "%.*s", (int)n, path);
    slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    if (!**name || strcmp(*name, ".") == 0 || strcmp(*name, "..") == 0) {
        errno = EINVAL; /* it has no name that could be given to something else */
        return -1;
    }
    return tree_open(!slash          ? "."
                     : slash == path ? "/"
                                     : arena_printf(a, "%.*s", (int)(slash - path), path));
}

int tree_open_below(int folder, const char *path, bool make)
{
    int at = openat(folder, ".", FOLDER);

    while (at >= 0 && *path) {
        char   name[256];
        size_t n = strcspn(path, "/");
        int    next = -1;

        if (n >= sizeof name) {
            errno = ENAMETOOLONG;
        } else {
            memcpy(name, path, n);
            name[n] = 0;
            if (!make || mkdirat(at, name, 0755) == 0 || errno == EEXIST)
                next = tree_open_at(at, name);
        }
        int error = errno;
        close(at);
        errno = error;
        at = next;
        path += n + (path[n] == '/');
    }
    return at;
}

bool tree_make(const char *path)
{
    char   part[PATH_MAX];
    size_t n = strlen(path);

    if (!n || n >= sizeof part) {
        errno = n ? ENAMETOOLONG : ENOENT;
        return false;
    }
    for (size_t i = 1; i <= n; i++) {
        if (path[i] && path[i] != '/')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return false;
    }
    return true;
}

void *tree_list(int folder)
{
    int  fd = openat(folder, ".", FOLDER); /* with a position of its own */
    DIR *list = fd >= 0 ? fdopendir(fd) : NULL;

    if (fd >= 0 && !list)
        close(fd);
    return list;
}

/* ---- removing --------------------------------------------------------------------------------- */

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* A link, a file, or a folder with nothing in it. */
static bool remove_one(int folder, const char *name)
{
    return unlinkat(folder, name, 0) == 0 || unlinkat(folder, name, AT_REMOVEDIR) == 0;
}

/* Folders with content move up to `top`, so that any depth needs three descriptors. */
static void empty_into(int top, int folder, unsigned *number)
{
    DIR           *list = tree_list(folder);
    struct dirent *e;

    while (list && (e = readdir(list)) != NULL) {
        char name[32];
        int  tries = 0;

        if (is_dots(e->d_name) || remove_one(folder, e->d_name))
            continue;
        do
            snprintf(name, sizeof name, ".tvmcc-%u", (*number)++);
        while (renameat(folder, e->d_name, top, name) != 0 && ++tries < 100 &&
               (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR));
    }
    if (list)
        closedir(list);
}

/* False: nothing of what is there could be removed. */
static bool remove_some(int top, unsigned *number, bool *empty)
{
    DIR           *list = tree_list(top);
    struct dirent *e;
    bool           some = false;

    *empty = list != NULL;
    while (list && (e = readdir(list)) != NULL) {
        int folder;

        if (is_dots(e->d_name))
            continue;
        if (!remove_one(top, e->d_name)) {
            *empty = false;
            if ((folder = tree_open_at(top, e->d_name)) < 0)
                continue;
            empty_into(top, folder, number);
            close(folder);
            if (!remove_one(top, e->d_name))
                continue;
        }
        some = true;
    }
    if (list)
        closedir(list);
    return some;
}

bool tree_remove_at(int folder, const char *name)
{
    unsigned number = 0;
    bool     empty = false;
    int      top;

    if (remove_one(folder, name) || errno == ENOENT)
        return true;
    if ((top = tree_open_at(folder, name)) < 0)
        return false;
    while (!empty && remove_some(top, &number, &empty))
        continue;
    close(top);
    return unlinkat(folder, name, AT_REMOVEDIR) == 0;
}

bool tree_remove(const char *path)
{
    Arena      *a = arena_new(NULL);
    const char *name;
    int         folder = tree_open_parent(a, path, &name);
    bool        ok = folder >= 0 && tree_remove_at(folder, name);
    int         error = errno;

    if (folder >= 0)
        close(folder);
    arena_free(a);
    errno = error;
    return ok;
}
