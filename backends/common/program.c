/* Compilers of kernels that are programs, such as nvcc: found, told apart and run, each time in a
 * folder of its own, which takes what they write beside their result. */
#include "backends/common/device.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A path that holds in every folder; links stay, since programs look at the name they are called
 * by. */
static const char *full_path(Arena *a, const char *path)
{
    char       *here = *path == '/' ? NULL : realpath(".", NULL);
    const char *full = here ? arena_printf(a, "%s/%s", here, path) : path;

    free(here);
    return full;
}

const char *device_find_program(Ctx *c, const char *name, const char *const *folders, uint32_t n)
{
    const char *found = file_find_tool(c->arena, name);

    for (uint32_t i = 0; i < n && !found; i++)
        if (folders[i] && *folders[i])
            found = file_find_tool(c->arena, arena_printf(c->arena, "%s/bin/%s", folders[i], name));
    return found ? full_path(c->arena, found) : NULL;
}

const char *device_program_version(Ctx *c, const char *name, const char *path)
{
    struct stat st = {0};

    stat(path, &st);
    return arena_printf(c->arena, "%s, %lld bytes of %lld", name, (long long)st.st_size,
                        (long long)st.st_mtime);
}

bool device_run_program(Arena *a, const char *const *words, const char *in, const char *text,
                        const char *result, Bytes *out, const char **log)
{
    Diags      *d = diags_new(a);
    const char *folder = file_temporary_folder(d, a);
    int         status = 0, error;

    *out = (Bytes){0};
    *log = "no temporary folder";
    if (!folder)
        return false;
    if (!file_write(d, arena_printf(a, "%s/%s", folder, in),
                    (Bytes){(const uint8_t *)text, strlen(text)}))
        *log = "its text cannot be written to a temporary folder";
    else if ((error = file_run_tool_in(folder, NULL, words, &status)) != 0)
        *log = arena_printf(a, "cannot run '%s': %s", words[0], strerror(error));
    else if (status)
        *log = arena_printf(a, "'%s' ends with status %d; what it said stands above", words[0],
                            status);
    else if (!file_read(d, a, arena_printf(a, "%s/%s", folder, result), out) || !out->n)
        *log = arena_printf(a, "'%s' left no result", words[0]);
    file_drop_folder(folder);
    return out->n > 0;
}
