/* What normalizes: (x - mean) / sqrt(variance + eps) * gamma + beta, over different cells. */
#include "frontends/mxnet/mxnet.h"

#include <math.h>
#include <string.h>

/* By what training has gathered; the operator's other results are those. */
bool mx_batch_norm(MxNode *n)
{
    const Build    *b = &n->b;
    BatchNormAttrs *a = ATTRS(b, BatchNormAttrs);
    MxAttrSpec      s;
    uint32_t        axis = 1;
    const Expr     *args[5] = {n->in[0]}, *y;

    if (!mx_rank(n, 0, 2, MAX_RANK) || (mx_attr_spec(n->row->schema, "axis", &s) &&
                                        !mx_axis(n, mx_int(n, "axis"), expr_rank(n->in[0]), &axis)))
        return false;
    a->axis = axis;
    a->epsilon = mx_float(n, "eps");
    for (uint32_t i = 1; i < 5; i++)
        if (!mx_rank(n, i, 1, 1) || !(args[i] = build_cast(b, n->in[i], expr_dtype(n->in[0]))))
            return false;
    if (mx_bool(n, "fix_gamma"))
        args[1] = build_filled(b, args[1], 1, expr_forms(args[1]));
    y = build_proj(b, build_call(b, "nn.batch_norm", 5, args, a), 0);
    if (!strcmp(n->row->name, "_contrib_BatchNormWithReLU"))
        y = build1(b, "nn.relu", y, NULL);
    mx_put(n, 1, n->in[3]);
    if (n->nout > 2)
        mx_put(n, 2, n->in[4]);
    return mx_done(n, y);
}

/* ---- by the data themselves -------------------------------------------------------------------------- */

typedef struct {
    const Expr *y, *mean, *root; /* root of variance + eps; both keep their dimensions */
} Normal;

static bool normalized(const Build *b, const Expr *x, uint32_t naxes, const int64_t *axes,
                       double eps, Normal *out)
{
    VarianceAttrs *v = ATTRS(b, VarianceAttrs);

    v->axis = ints_dup(b->c, axes, naxes);
    v->keepdims = true;
    out->mean = build_reduce(b, "mean", x, naxes, axes, true);
    out->root = build_by(b, "add", build2(b, "variance", x, out->mean, v), eps);
    out->root = build1(b, "sqrt", out->root, NULL);
    out->y = build_div(b, build_sub(b, x, out->mean), out->root);
    return out->y != NULL;
}

static bool check_scales(const MxNode *n, const Idx *cells)
{
    for (uint32_t i = 1; i < 3; i++) {
        if (!mx_rank(n, i, 1, 1))
            return false;
        if (expr_form(n->in[i], 0) != cells)
            return mx_error(n, E_IMPORT, "operand %u is %s for %s cells", i,
                            type_text(n->b.c, n->in[i]->type), dim_text(n->b.c, cells));
    }
    return true;
}

bool mx_layer_norm(MxNode *n)
{
    const Build    *b = &n->b;
    LayerNormAttrs *a = ATTRS(b, LayerNormAttrs);
    uint32_t        axis, rank = expr_rank(n->in[0]);
    Normal          r;

    if (!mx_rank(n, 0, 1, MAX_RANK) || !mx_axis(n, mx_int(n, "axis"), rank, &axis) ||
        !check_scales(n, expr_form(n->in[0], axis)))
        return false;
    if (axis + 1 == rank && n->nout == 1) {
        a->axis = axis;
        a->epsilon = mx_float(n, "eps");
        return mx_done(n, build3(b, "nn.layer_norm", n->in[0], n->in[1], n->in[2], a));
    }
    if (!normalized(b, n->in[0], 1, (int64_t[]){axis}, mx_float(n, "eps"), &r))
        return false;
    mx_put(n, 1, r.mean);
    mx_put(n, 2, r.root);
    return mx_done(n, build_scaled(&n->b, r.y, n->in[1], n->in[2], axis));
}

/* Each channel of each picture. */
bool mx_instance_norm(MxNode *n)
{
    const Expr *y;

    if (!mx_rank(n, 0, 3, MAX_RANK) || !check_scales(n, expr_form(n->in[0], 1)))
        return false;
    y = build_instances(&n->b, n->in[0], mx_float(n, "eps"));
    return mx_done(n, build_scaled(&n->b, y, n->in[1], n->in[2], 1));
}

/* Groups of channels of each picture, with a scale for each group. */
bool mx_group_norm(MxNode *n)
{
    const Build *b = &n->b;
    int64_t      groups = mx_int(n, "num_groups"), channels;
    const Expr  *x = n->in[0], *y;
    bool         of_groups;

    if (!mx_rank(n, 0, 3, MAX_RANK) || !mx_rank(n, 1, 1, 1) || !mx_rank(n, 2, 1, 1))
        return false;
    channels = build_dim(b, x, 1);
    y = build_grouped(b, x, groups);
    /* Version 1.9 has scales for groups, 2.0 for channels. */
    of_groups = build_dim(b, n->in[1], 0) == groups;
    if (!y || !check_scales(n, idx_const(b->c->arith, of_groups ? groups : channels)))
        return false;
    y = build_standardized(b, y, 1, (int64_t[]){2}, mx_float(n, "eps"));
    if (of_groups)
        y = build_scaled(b, y, n->in[1], n->in[2], 1);
    y = build_reshape_to(b, y, expr_rank(x), expr_forms(x).at);
    return mx_done(n, of_groups ? y : build_scaled(b, y, n->in[1], n->in[2], 1));
}

/* x / sqrt(sum of squares + eps) over all of a picture, its channels, or its places. */
bool mx_l2_normalization(MxNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *sum;
    bool         channel = mx_is(n, "mode", "channel"), spatial = mx_is(n, "mode", "spatial");
    uint32_t     from = spatial ? 2 : 1, to = expr_rank(x);
    int64_t      axes[MAX_RANK];

    if (!mx_rank(n, 0, channel ? 2 : spatial ? 3 : 1, MAX_RANK))
        return false;
    if (channel)
        to = 2;
    for (uint32_t i = from; i < to; i++)
        axes[i - from] = i;
    sum = build_mul(b, x, x);
    if (to > from)
        sum = build_reduce(b, "sum", sum, to - from, axes, true);
    sum = build_by(b, "add", sum, mx_float(n, "eps"));
    return mx_done(n, build_div(b, x, build1(b, "sqrt", sum, NULL)));
}

bool mx_lrn(MxNode *n)
{
    int64_t size = mx_int(n, "nsize");

    if (!mx_rank(n, 0, 3, MAX_RANK))
        return false;
    if (size < 1 || size > 4096 || size % 2 == 0)
        return mx_error(n, E_IMPORT, "'nsize' is %s", mx_text(n, "nsize"));
    return mx_done(n, build_lrn(&n->b, n->in[0], size / 2, size / 2, mx_float(n, "knorm"),
                                mx_float(n, "alpha") / (double)size, mx_float(n, "beta")));
}
