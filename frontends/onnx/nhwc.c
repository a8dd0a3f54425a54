/* Operators of com.microsoft whose channels come last, [N, .., C].  Most are those with channels in
 * front between two transposes, which the passes take out where they meet. */
#include "frontends/onnx/onnx.h"

/* Channels to dimension 1, or back. */
static const Expr *moved(const Build *b, const Expr *x, bool back)
{
    int64_t  perm[MAX_RANK] = {0};
    uint32_t rank = x ? expr_rank(x) : 0;

    for (uint32_t i = 1; i < rank; i++)
        perm[i] = back ? (i + 1 == rank ? 1 : i + 1) : (i == 1 ? rank - 1 : i - 1);
    return build_transpose(b, x, rank, perm);
}

bool onnx_channels_last(Node *n, uint32_t count, const uint32_t *inputs, OnnxConvert *convert)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t k = inputs[i];

        if (i > 0 && !node_has(n, k))
            continue;
        if (!node_need_rank(n, k, 3, MAX_RANK) || !(n->in[k] = moved(&n->b, n->in[k], false)))
            return false;
    }
    return convert(n) && node_done(n, moved(&n->b, n->out[0], true));
}

bool convert_nhwc_conv(Node *n)
{
    return onnx_channels_last(n, 1, (const uint32_t[]){0}, convert_conv);
}

bool convert_nhwc_fused_conv(Node *n)
{
    return onnx_channels_last(n, 2, (const uint32_t[]){0, 3}, convert_fused_conv);
}

bool convert_nhwc_max_pool(Node *n)
{
    return onnx_channels_last(n, 1, (const uint32_t[]){0}, convert_pool);
}

bool convert_qlinear_conv_of(Node *n)
{
    return node_int(n, "channels_last", 0)
               ? onnx_channels_last(n, 1, (const uint32_t[]){0}, convert_qlinear_conv)
               : convert_qlinear_conv(n);
}

/* ---- GroupNorm -------------------------------------------------------------------------------------- */

/* Groups of channels, standardized, times gamma plus beta, and through an activation. */
static const Expr *group_norm(Node *n, const Expr *x)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    bool         last = node_int(n, "channels_last", 1) != 0;
    int64_t      groups = node_int(n, "groups", 0), activation = node_int(n, "activation", 0), C;
    const Idx   *pixels = idx_const(A, 1), *k, *of;
    const Expr  *mean, *y;
    uint32_t     rank = expr_rank(x), channels = last ? rank - 1 : 1;

    C = build_dim(b, x, channels);
    if (groups < 1 || C % groups || activation < 0 || activation > 1)
        return node_error(n, E_IMPORT, "%lld groups of %lld channels, activation %lld",
                          (long long)groups, (long long)C, (long long)activation);
    for (uint32_t i = 1; i < rank; i++)
        pixels = i == channels ? pixels : idx_mul(A, pixels, expr_form(x, i));
    k = idx_const(A, groups), of = idx_const(A, C / groups);
    y = build_reshape_to(b, build_cast(b, x, DT_F32), 4,
                         last ? (const Idx *[]){expr_form(x, 0), pixels, k, of}
                              : (const Idx *[]){expr_form(x, 0), k, of, pixels});
    const int64_t axes[2] = {last ? 1 : 2, 3};
    mean = build_reduce(b, "mean", y, 2, axes, true);
    y = build2(b, "subtract", y, mean, NULL);
    mean = build_reduce(b, "mean", build2(b, "multiply", y, y, NULL), 2, axes, true);
    mean = mean ? build_by(b, "add", mean, node_float(n, "epsilon", 1e-5f)) : NULL;
    y = build2(b, "multiply", y, build1(b, "rsqrt", mean, NULL), NULL);
    y = build_reshape_to(b, y, rank, expr_forms(x).at);
    for (uint32_t i = 1; i <= 2 && y; i++)
        y = build2(b, i == 1 ? "multiply" : "add", y,
                   build_along(b, build_cast(b, n->in[i], DT_F32), rank, channels), NULL);
    if (activation == 1)
        y = build2(b, "multiply", y, build1(b, "sigmoid", y, NULL), NULL);
    return build_cast(b, y, expr_dtype(x));
}

static bool norm_operands(Node *n)
{
    return node_need_rank(n, 0, 3, MAX_RANK) && node_need_rank(n, 1, 1, 1) &&
           node_need_rank(n, 2, 1, 1);
}

bool convert_nhwc_group_norm(Node *n)
{
    return norm_operands(n) && node_done(n, group_norm(n, n->in[0]));
}

/* The same of the sum with a residual, which may have a cell for each channel, and a bias. */
bool convert_skip_group_norm(Node *n)
{
    const Build *b = &n->b;
    const Expr  *x, *skip;
    const Idx   *one = idx_const(b->c->arith, 1), *dims[MAX_RANK];
    uint32_t     rank, channels;

    if (!norm_operands(n) || !node_need_rank(n, 3, 2, MAX_RANK) ||
        (node_has(n, 4) && !node_need_rank(n, 4, 1, 1)))
        return false;
    x = n->in[0];
    skip = n->in[3];
    rank = expr_rank(x);
    channels = node_int(n, "channels_last", 1) ? rank - 1 : 1;
    if (expr_rank(skip) == 2) {
        for (uint32_t i = 0; i < rank; i++)
            dims[i] = i == 0 ? expr_form(skip, 0) : i == channels ? expr_form(skip, 1) : one;
        skip = build_reshape_to(b, skip, rank, dims);
    }
    x = build2(b, "add", x, skip, NULL);
    if (node_has(n, 4))
        x = build2(b, "add", x, build_along(b, n->in[4], rank, channels), NULL);
    if (!x)
        return false;
    n->out[1] = x;
    return node_done(n, group_norm(n, x));
}
