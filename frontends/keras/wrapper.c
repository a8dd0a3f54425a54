/* Layers around others. */
#include "frontends/keras/keras.h"

#include <string.h>

bool keras_wrapped(KerasNode *n)
{
    if (n->layer->kids.n != 1)
        return keras_error(n, E_IMPORT, "it wraps %u layers", n->layer->kids.n);
    return keras_call(n->im, n->layer->kids.at[0], n->nin, n->in, &n->out);
}

/* One layer after the other. */
bool keras_pipeline(KerasNode *n)
{
    KerasValues x = {.n = n->nin, .at = (KerasValue *)(uintptr_t)n->in};

    for (uint32_t i = 0; i < n->layer->kids.n; i++) {
        KerasValues y;

        if (!keras_call(n->im, n->layer->kids.at[i], x.n, x.at, &y))
            return false;
        x = y;
    }
    n->out = x;
    return true;
}

/* x in another shape; what only gave it the shape it has is undone. */
static const Expr *reshaped(const Build *b, const Expr *x, uint32_t rank, const Idx *const *dims)
{
    if (x && call_is(x, "reshape") && expr_has_forms(call_arg(x, 0), rank, dims))
        return call_arg(x, 0);
    return build_reshape_to(b, x, rank, dims);
}

/* All steps of all sequences as one batch. */
bool keras_time_distributed(KerasNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = keras_in(n);
    const Idx   *dims[MAX_RANK], *N, *T;
    KerasValue   in = {0};
    KerasValues  out;

    if (!keras_rank(n, x, 3, MAX_RANK))
        return false;
    if (n->layer->kids.n != 1)
        return keras_error(n, E_IMPORT, "it wraps %u layers", n->layer->kids.n);
    N = expr_form(x, 0), T = expr_form(x, 1);
    dims[0] = idx_mul(b->c->arith, N, T);
    for (uint32_t i = 2; i < expr_rank(x); i++)
        dims[i - 1] = expr_form(x, i);
    in.e = reshaped(b, x, expr_rank(x) - 1, dims);
    if (!in.e || !keras_call(n->im, n->layer->kids.at[0], 1, &in, &out))
        return false;
    for (uint32_t i = 0; i < out.n; i++) {
        const Expr *y = out.at[i].e;

        if (expr_rank(y) < 1 || expr_rank(y) + 1 > MAX_RANK)
            return keras_error(n, E_UNSUPPORTED, "a result of %s", type_text(b->c, y->type));
        dims[0] = N, dims[1] = T;
        for (uint32_t k = 1; k < expr_rank(y); k++)
            dims[k + 1] = expr_form(y, k);
        if (!keras_done(n, build_reshape_to(b, y, expr_rank(y) + 1, dims)))
            return false;
    }
    return true;
}
