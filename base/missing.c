/* Why there is no file of a name: a hint behind the error that it cannot be read or written.
 *
 *     tvmcc: error: cannot read 'models/digit.onnx': No such file or directory
 *     hint: did you mean 'models/digits.onnx'?
 *
 * A folder on the way that is not there is named, else the file beside it that is spelt nearly so,
 * with the same ending if there is one; of several the first in the order of their names. */
#include "base/base.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_NAMES = 10000 }; /* of a folder that is looked through */

static int by_name(const void *x, const void *y)
{
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* Of the names in a folder that end with `end`, without it, or of those that do not. */
static const char *closest_of(Arena *a, const char *folder, const char *name, const char *end,
                              bool with)
{
    DIR                 *dir = opendir(folder);
    const struct dirent *e;
    VEC(const char *) names = {0};
    size_t cut = with ? strlen(end) : 0;

    while (dir && names.n < MOST_NAMES && (e = readdir(dir)))
        if (e->d_name[0] != '.' && str_ends(e->d_name, end) == with)
            vec_push(a, &names, arena_printf(a, "%.*s", (int)(strlen(e->d_name) - cut), e->d_name));
    if (dir)
        closedir(dir);
    if (names.n)
        qsort(names.at, names.n, sizeof *names.at, by_name);
    return str_closest(arena_printf(a, "%.*s", (int)(strlen(name) - cut), name), names.at, names.n);
}

/* An ending makes no two names alike: those with the same one are compared without it. */
static const char *closest_in(Arena *a, const char *folder, const char *name)
{
    const char *end = strrchr(name, '.'), *near;

    end = end ? end : "";
    near = closest_of(a, folder, name, end, true);
    return near ? arena_printf(a, "%s%s", near, end) : closest_of(a, folder, name, end, false);
}

/* The first part of the path that is no folder; NULL: only the file is missing. */
static const char *missing_folder(Arena *a, const char *path)
{
    struct stat st;

    for (const char *slash = path; (slash = strchr(slash, '/')); slash++) {
        const char *folder = arena_printf(a, "%.*s", (int)(slash - path), path);

        if (slash > path && (stat(folder, &st) != 0 || !S_ISDIR(st.st_mode)))
            return folder;
    }
    return NULL;
}

void file_missing(Diags *d, const char *path, bool reads)
{
    Arena      *a = diag_arena(d);
    const char *folder = missing_folder(a, path), *name = strrchr(path, '/'), *near;
    struct stat st;

    if (folder) {
        diag_hint(d, stat(folder, &st) ? "there is no folder '%s'" : "'%s' is no folder", folder);
        return;
    }
    name = name ? name + 1 : path;
    folder = name > path ? arena_printf(a, "%.*s", (int)(name - path), path) : "";
    if (reads && (near = closest_in(a, *folder ? folder : ".", name)))
        diag_hint(d, "did you mean '%s%s'?", folder, near);
}
