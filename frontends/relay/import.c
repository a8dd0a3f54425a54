/* Relay: the text of a module.  Data of large constants lie beside it: net.relay has
 * net.relay.consts. */
#include "frontends/common.h"

#include <string.h>
#include <unistd.h>

int relay_bid(const char *path, Bytes file)
{
    static const char *const first[] = {"fn @", "const @", "outputs \"", "type ", "dim ", "//"};
    size_t                   i = 0;

    if (str_ends(path, ".relay"))
        return 90;
    while (i < file.n && (file.at[i] == ' ' || file.at[i] == '\n'))
        i++;
    for (uint32_t k = 0; k < COUNT(first); k++) {
        size_t n = strlen(first[k]);

        if (file.n - i >= n && !memcmp(file.at + i, first[k], n))
            return 60;
    }
    return 0;
}

const Module *relay_import(Ctx *c, const char *path, Bytes file, const ImportOptions *o,
                           ImportFiles *files)
{
    Bytes       data = {0};
    const char *beside;

    beside =
        o->weights ? intern(c->strings, o->weights) : intern_printf(c->strings, "%s.consts", path);
    if (o->weights || access(beside, R_OK) == 0) {
        if (!file_map(c->diags, beside, &data))
            return NULL;
        vec_push(c->arena, files, beside);
    }
    const Module *m = relay_parse(c, path, file, data);

    if (m)
        m = relay_infer(c, m);
    return m && shapes_check_module(c, m, o, (Loc){.file = path}) ? m : NULL;
}
