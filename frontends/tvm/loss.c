/* Losses, as far as models have them. */
#include "frontends/tvm/tvm.h"

#include <string.h>

/* Minus the mean over rows of the sums of y log x, or y x of logarithms. */
const Expr *tv_cross_entropy(TvNode *n)
{
    const Build *b = &n->b;
    bool         logits = strstr(n->row->name, "_with_logits") != NULL;
    const Expr  *x = logits ? n->in[0] : build1(b, "log", n->in[0], NULL);

    if (expr_rank(n->in[0]) < 1 || n->in[0]->type != n->in[1]->type)
        return tv_error(n, E_IMPORT, "%s and %s", type_text(b->c, n->in[0]->type),
                        type_text(b->c, n->in[1]->type));
    x = build_reduce(b, "sum", build_mul(b, x, n->in[1]), 0, NULL, false);
    return build_by(b, "multiply", x, -1 / (double)build_dim(b, n->in[0], 0));
}

/* Predictions [N, C, ..], classes [N, ..], weights [C]. */
const Expr *tv_nll_loss(TvNode *n)
{
    const Build *b = &n->b;
    GatherAttrs *a = ATTRS(b, GatherAttrs);
    const char  *how = tv_text(n, "reduction", "mean");
    const Expr  *at, *counts, *w, *loss, *none;

    if (expr_rank(n->in[0]) < 2 || expr_rank(n->in[1]) + 1 != expr_rank(n->in[0]) ||
        expr_rank(n->in[2]) != 1)
        return tv_error(n, E_IMPORT, "%s, %s and %s", type_text(b->c, n->in[0]->type),
                        type_text(b->c, n->in[1]->type), type_text(b->c, n->in[2]->type));
    if (strcmp(how, "mean") != 0 && strcmp(how, "sum") != 0 && strcmp(how, "none") != 0)
        return tv_error(n, E_IMPORT, "'reduction' is %s", how);
    counts = build_by(b, "not_equal", n->in[1], (double)tv_int(n, "ignore_index", -100));
    at = build_where(b, counts, n->in[1], build_scalar(b, n->in[1], 0));
    none = build_scalar(b, n->in[2], 0);
    w = build_where(b, counts, build_take(b, n->in[2], at, 0), none);
    a->axis = 1;
    loss = build2(b, "gather", n->in[0], build_expand_dims(b, at, 1, 1), a);
    loss = build_squeeze(b, loss, 1, (int64_t[]){1});
    loss = build_mul(b, build1(b, "negative", loss, NULL), w);
    if (!strcmp(how, "none"))
        return loss;
    loss = build_reduce(b, "sum", loss, 0, NULL, false);
    return !strcmp(how, "sum") ? loss
                               : build_div(b, loss, build_reduce(b, "sum", w, 0, NULL, false));
}
