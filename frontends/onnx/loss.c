/* Losses, as they stay in models that were exported with their training head. */
#include "frontends/onnx/onnx.h"

#include <string.h>

/* minus the log-probability [N, C, d..] of each target [N, d..], weighted, then reduced. */
static const Expr *nll(Node *n, const Expr *logp, uint32_t target, uint32_t weight)
{
    static const char *const ways[] = {"mean", "sum", "none", NULL};
    const Build             *b = &n->b;
    const char              *how;
    bool                     ignore = node_attr(n, "ignore_index") != NULL;
    const Expr              *at, *skip = NULL, *loss, *w = NULL, *sum;
    GatherAttrs             *g = ATTRS(b, GatherAttrs);
    int64_t                  axes[MAX_RANK], dims[MAX_RANK];
    uint32_t                 rank = expr_rank(logp);

    if (!node_choice(n, "reduction", ways, &how) || !node_need_rank(n, target, rank - 1, rank - 1))
        return NULL;
    at = n->in[target];
    for (uint32_t i = 0; i < rank - 1; i++) {
        axes[i] = i;
        dims[i] = build_dim(b, at, i);
    }
    if (ignore) {
        double k = (double)node_int(n, "ignore_index", 0);

        skip = build_by(b, "equal", at, k);
        at = build_where(b, skip, build_scalar(b, at, 0), at);
    }
    g->axis = 1;
    loss = build2(b, "gather", logp, build_expand_dims(b, at, 1, 1), g);
    loss = build1(b, "negative", build_reshape(b, loss, rank - 1, dims), NULL);
    if (weight < n->nin && n->in[weight])
        w = build_take(b, n->in[weight], at, 0);
    if (skip && !w && loss) {
        InitAttrs *a = ATTRS(b, InitAttrs);

        a->shape = dims_of_i64(b->c, dims, rank - 1);
        a->dtype = expr_dtype(loss);
        w = build_call(b, "ones", 0, NULL, a);
    }
    if (skip)
        w = build_where(b, skip, w ? build_scalar(b, w, 0) : NULL, w);
    if (w)
        loss = build2(b, "multiply", loss, w, NULL);
    if (!loss || !strcmp(how, "none"))
        return loss;
    sum = build_reduce(b, "sum", loss, rank - 1, axes, false);
    if (!strcmp(how, "sum"))
        return sum;
    if (!w)
        return build_reduce(b, "mean", loss, rank - 1, axes, false);
    return build2(b, "divide", sum, build_reduce(b, "sum", w, rank - 1, axes, false), NULL);
}

bool convert_nll_loss(Node *n)
{
    return node_need_rank(n, 0, 2, MAX_RANK) && node_done(n, nll(n, n->in[0], 1, 2));
}

bool convert_softmax_cross_entropy(Node *n)
{
    SoftmaxAttrs *a = ATTRS(&n->b, SoftmaxAttrs);
    const Expr   *logp;

    a->axis = 1;
    if (!node_need_rank(n, 0, 2, MAX_RANK) ||
        !(logp = build1(&n->b, "nn.log_softmax", n->in[0], a)))
        return false;
    if (n->nout > 1)
        n->out[1] = logp;
    return node_done(n, nll(n, logp, 1, 2));
}
