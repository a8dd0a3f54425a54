/* Ctx: what one compile owns.  The caller owns the arena; `ctx_free` gives back the scratch. */
#include "ir/intern.h"
#include "ir/relay/relay.h"
#include "ir/tir/intrin.h"

#include <string.h>

Ctx *ctx_new(Arena *arena, Diags *d, OpTable ops)
{
    Ctx *c = NEW(arena, Ctx);

    c->arena = arena;
    c->scratch = arena_new(NULL);
    c->strings = strings_new(arena);
    c->diags = d;
    c->arith = arith_new(arena, c->strings);
    arith_on_load(c->arith, load_subst, c);
    c->nodes = interner_new(arena);
    c->ops = ops;
    c->eval = &eval_interp;
    return c;
}

const char *ctx_path(const Ctx *c, const char *path)
{
    for (uint32_t i = c->npath_maps; i-- > 0;) {
        const PathMap *m = &c->path_maps[i];

        if (str_starts(path, m->from))
            return intern_printf(c->strings, "%s%s", m->to, path + strlen(m->from));
    }
    return path;
}

bool ctx_cancelled(Ctx *c)
{
    if (!c->cancel || !c->cancel->asked(c->cancel->user))
        return false;
    if (!diag_errors(c->diags))
        error_at(c, E_CANCELLED, NO_LOC, "the compile was cancelled");
    return true;
}

void ctx_free(Ctx *c)
{
    intrins_free(c);
    arena_free(c->scratch);
}

const Op *op_find(const Ctx *c, const char *text)
{
    for (uint32_t i = 0; i < c->ops.n; i++)
        if (!strcmp(c->ops.at[i].text, text))
            return &c->ops.at[i];
    return NULL;
}
