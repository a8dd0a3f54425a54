/* What several TIR passes share. */
#include "passes/tir/util.h"

typedef struct {
    const Buffer *from, *to;
} Swap;

static const Buffer *swap_buffer(Ctx *c, void *user, const Buffer *b)
{
    const Swap *x = user;

    (void)c;
    return b == x->from ? x->to : b;
}

const Stmt *buffer_replace(Ctx *c, const Stmt *s, const Buffer *from, const Buffer *to)
{
    Swap   x = {from, to};
    TirMap m = {&x, NULL, NULL, NULL, swap_buffer};

    return stmt_map(c, s, &m);
}
