/* What work costs, from a file: --machine= in a compile.
 *
 * The file is an input like the model: it stands in the depfile, and the hash of its figures in the
 * plan, so that it is part of the build id and of the product's metadata.  Remarks and the order of
 * its lines change nothing. */
#include "machine/machine.h"
#include "compile/compile.h"

#include <string.h>

const Target *target_with(Ctx *c, const char *text, const char *machine, const Backend **backend)
{
    const char    *kind = intern_n(c->strings, text, strcspn(text, " ,"));
    const Backend *b = backend_find(kind);
    MachineFile   *f = NEW(c->arena, MachineFile);
    Bytes          file;

    if (!b)
        b = backend_cpu(); /* a plain triple */
    if (backend)
        *backend = b;
    const Target *t = b->parse_target(c, text);
    if (!t || !machine)
        return t;
    if (!file_map(c->diags, machine, &file) || !machine_read(c->diags, c->arena, machine, file, f))
        return NULL;
    return machine_for(c, t, f);
}

/* The figures of a device before those of its host, of which a file has one. */
const char *target_machine(Ctx *c, const Target *t)
{
    MachineFile f = {.arch = ""};
    StrBuf      s = strbuf(c->scratch);
    char        hex[65];

    while (t && !t->machine)
        t = t->host;
    if (!t)
        return NULL;
    f.m = *t->machine;
    machine_print(c->scratch, &f, &s);
    sha256_hex(sha256((Bytes){(const uint8_t *)s.at, s.n}), hex);
    return intern(c->strings, hex);
}
