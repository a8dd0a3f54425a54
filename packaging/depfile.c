/* depfile.c: what a build system must watch, in the syntax of make that Ninja and CMake read.
 *
 * Inputs come in the order they were opened and may repeat; each is listed once.  The file is
 * written on every success, even with no inputs: a missing one would make the step always dirty.
 */
#include "packaging/packaging.h"

#include <string.h>

static void add_path(StrBuf *s, const char *path)
{
    for (; *path; path++) {
        if (*path == ' ' || *path == '#')
            str_addc(s, '\\');
        else if (*path == '$')
            str_addc(s, '$');
        str_addc(s, *path);
    }
}

static bool seen_before(const Deps *deps, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++)
        if (strcmp(deps->inputs[k], deps->inputs[i]) == 0)
            return true;
    return false;
}

Bytes depfile_text(Arena *a, const Deps *deps)
{
    StrBuf s = strbuf(a);

    for (uint32_t i = 0; i < deps->noutputs; i++) {
        str_add(&s, i ? " " : "");
        add_path(&s, deps->outputs[i]);
    }
    str_addc(&s, ':');
    for (uint32_t i = 0; i < deps->ninputs; i++) {
        if (seen_before(deps, i))
            continue;
        str_add(&s, " \\\n  ");
        add_path(&s, deps->inputs[i]);
    }
    str_addc(&s, '\n');
    for (uint32_t i = 0; deps->phony && i < deps->ninputs; i++) {
        if (seen_before(deps, i))
            continue;
        str_addc(&s, '\n');
        add_path(&s, deps->inputs[i]);
        str_add(&s, ":\n");
    }
    return (Bytes){(const uint8_t *)s.at, s.n};
}
