/* Ctx: what one compile owns.  The caller owns the arena; `ctx_free` gives back the scratch. */
#include "ir/intern.h"
#include "ir/relay.h"

#include <string.h>

Ctx *ctx_new(Arena *arena, Diags *d, OpTable ops)
{
    Ctx *c = NEW(arena, Ctx);

    c->arena = arena;
    c->scratch = arena_new(NULL);
    c->strings = strings_new(arena);
    c->diags = d;
    c->arith = arith_new(arena, c->strings);
    c->nodes = interner_new(arena);
    c->ops = ops;
    c->eval = &eval_interp;
    return c;
}

void ctx_free(Ctx *c)
{
    arena_free(c->scratch);
}

const Op *op_find(const Ctx *c, const char *text)
{
    for (uint32_t i = 0; i < c->ops.n; i++)
        if (!strcmp(c->ops.at[i].text, text))
            return &c->ops.at[i];
    return NULL;
}
