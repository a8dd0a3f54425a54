/* Operators whose outputs are inputs of the next run: convolution over what came before, attention
 * by a state, a cache that is written at run-time positions. */
#include "frontends/onnx/onnx.h"

#include <math.h>
#include <string.h>

/* ---- CausalConvWithState -------------------------------------------------------------------------- */

/* [N, C, L] behind the k-1 cells of each channel that came before, or behind zeros. */
static const Expr *with_past(Node *n, const Expr *x, int64_t before)
{
    const Build *b = &n->b;
    int64_t      pads[6] = {0, 0, 0, 0, before, 0};

    if (!node_has(n, 3))
        return build_pad(b, x, pads, 0, "constant");
    if (!node_need_rank(n, 3, 3, 3))
        return NULL;
    if (expr_form(n->in[3], 0) != expr_form(x, 0) || expr_form(n->in[3], 1) != expr_form(x, 1) ||
        build_dim(b, n->in[3], 2) != before)
        return node_error(n, E_IMPORT, "past_state is %s for data %s and a kernel of %lld",
                          type_text(b->c, n->in[3]->type), type_text(b->c, x->type),
                          (long long)before + 1);
    return before ? build_concat(b, 2, (const Expr *[]){n->in[3], x}, 2) : x;
}

/* Each channel by its own kernel, over its past. */
bool convert_causal_conv(Node *n)
{
    static const char *const activations[] = {"none", "silu", "swish", NULL};
    const Build             *b = &n->b;
    const Expr              *x, *w, *y;
    const char              *activation;
    int64_t                  k;
    OnnxWindow               win = {.kernel = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}};

    if (!node_need_rank(n, 0, 3, 3) || !node_need_rank(n, 1, 3, 3) ||
        !node_choice(n, "activation", activations, &activation))
        return false;
    x = n->in[0];
    w = n->in[1];
    k = win.kernel[1] = build_dim(b, w, 2);
    if (k < 1 || build_dim(b, w, 1) != 1 || expr_form(w, 0) != expr_form(x, 1))
        return node_error(n, E_IMPORT, "the weight is %s for data %s", type_text(b->c, w->type),
                          type_text(b->c, x->type));
    if (!(x = with_past(n, x, k - 1)))
        return false;
    n->out[1] =
        build_slice_to(b, x, 2, idx_addc(b->c->arith, expr_form(x, 2), 1 - k), expr_form(x, 2));
    y = build_conv(b, &(BuildConv){.x = onnx_lift(b, x),
                                   .w = onnx_lift(b, w),
                                   .dims = 2,
                                   .groups = build_dim(b, x, 1),
                                   .window = win});
    y = onnx_bias(n, onnx_drop(b, y), node_has(n, 2) ? n->in[2] : NULL);
    if (*activation == 's')
        y = build2(b, "multiply", y, build1(b, "sigmoid", y, NULL), NULL);
    return node_done(n, y) && n->out[1];
}

/* ---- LinearAttention ------------------------------------------------------------------------------ */

/* Input i, [N, T, heads * D], with D in a dimension of its own and heads as `n` dimensions; in the
 * type that is computed in. */
static const Expr *heads_of(Node *n, uint32_t i, const Expr *q, uint32_t k, const int64_t *heads,
                            DType t)
{
    const Build *b = &n->b;
    const Idx   *dims[5];
    int64_t      all = 1, width;

    if (!node_need_rank(n, i, 3, 3))
        return NULL;
    if (expr_form(n->in[i], 0) != expr_form(q, 0) || expr_form(n->in[i], 1) != expr_form(q, 1))
        return node_error(n, E_IMPORT, "input %u is %s for queries %s", i,
                          type_text(b->c, n->in[i]->type), type_text(b->c, q->type));
    dims[0] = expr_form(q, 0);
    dims[1] = expr_form(q, 1);
    for (uint32_t j = 0; j < k; j++) {
        all *= heads[j];
        dims[2 + j] = idx_const(b->c->arith, heads[j]);
    }
    width = build_dim(b, n->in[i], 2);
    if (width % all)
        return node_error(n, E_IMPORT, "%lld heads for %lld columns of input %u", (long long)all,
                          (long long)width, i);
    dims[2 + k] = idx_const(b->c->arith, width / all);
    return build_reshape_to(b, build_cast(b, n->in[i], t), 3 + k, dims);
}

/* decay and beta are given where the rule has them, and only there. */
static bool gates_given(Node *n, const char *rule)
{
    static const char *const names[] = {"decay", "beta"};
    bool                     has[2] = {strstr(rule, "gated"), strstr(rule, "delta")};

    for (uint32_t i = 0; i < 2; i++)
        if (node_has(n, 4 + i) != has[i])
            return node_error(n, E_IMPORT, "update_rule '%s' %s %s", rule,
                              has[i] ? "needs" : "has no", names[i]);
    return true;
}

bool convert_linear_attention(Node *n)
{
    static const char *const rules[] = {"gated_delta", "linear", "gated", "delta", NULL};
    const Build             *b = &n->b;
    LinearAttentionAttrs    *a = ATTRS(b, LinearAttentionAttrs);
    int64_t     heads[2] = {node_int(n, "kv_num_heads", 0), node_int(n, "q_num_heads", 0)};
    const Expr *args[6], *q, *r;
    uint32_t    k = 4;
    double      scale;
    DType       t, precise, kept;

    node_ignore(n, "chunk_size"); /* of implementations that have chunks */
    if (!node_need_rank(n, 0, 3, 3) || !node_choice(n, "update_rule", rules, &a->rule) ||
        !gates_given(n, a->rule))
        return false;
    if (heads[0] < 1 || heads[0] > 1 << 20 || heads[1] < 1 || heads[1] % heads[0])
        return node_error(n, E_IMPORT, "%lld query heads for %lld heads of keys",
                          (long long)heads[1], (long long)heads[0]);
    heads[1] /= heads[0];
    q = n->in[0];
    t = kept = expr_dtype(q);
    precise = dtype_eq(t, DT_F64) ? t : DT_F32;
    if (!(args[0] = heads_of(n, 0, q, 2, heads, precise)) ||
        !(args[1] = heads_of(n, 1, q, 1, heads, precise)) ||
        !(args[2] = heads_of(n, 2, q, 1, heads, precise)))
        return false;
    scale = node_float(n, "scale", 0);
    scale = scale == 0 ? 1 / sqrt((double)build_dim(b, args[0], 4)) : scale;
    args[0] = build_by(b, "multiply", args[0], scale);
    if (node_has(n, 3)) {
        kept = expr_dtype(n->in[3]);
        args[3] = build_cast(b, n->in[3], precise);
    } else {
        const Idx *dims[4] = {expr_form(q, 0), expr_form(args[1], 2), expr_form(args[1], 3),
                              expr_form(args[2], 3)};

        args[3] = build_zeros_of(b, precise, 4, dims);
    }
    if (node_has(n, 4)) {
        if (!(args[k] = heads_of(n, 4, q, 1, heads, precise)))
            return false;
        args[k] = build1(b, "exp", args[k], NULL);
        k++;
    }
    if (node_has(n, 5)) {
        if (!node_need_rank(n, 5, 3, 3))
            return false;
        args[k++] = build_cast(b, n->in[5], precise);
    }
    r = build_call(b, n->relay, k, args, a);
    n->out[1] = build_cast(b, build_proj(b, r, 1), kept);
    r = build_cast(b, build_proj(b, r, 0), t);
    if (!r)
        return false;
    return n->out[1] &&
           node_done(n, build_reshape_to(b, r, 3,
                                         (const Idx *[]){expr_form(q, 0), expr_form(q, 1),
                                                         idx_mulc(b->c->arith, expr_form(r, 4),
                                                                  heads[0] * heads[1])}));
}

/* ---- TensorScatter -------------------------------------------------------------------------------- */

const Expr *onnx_written(const Build *b, const Expr *past, const Expr *update, uint32_t axis,
                         const Expr *start, bool circular)
{
    const Expr       *args[3] = {past, update, build_cast(b, start, DT_I64)};
    UpdateRangeAttrs *a = ATTRS(b, UpdateRangeAttrs);

    a->axis = axis;
    a->circular = circular;
    return build_call(b, "update_range", 3, args, a);
}

bool convert_tensor_scatter(Node *n)
{
    static const char *const modes[] = {"linear", "circular", NULL};
    const Build             *b = &n->b;
    const char              *mode;
    const Expr              *past, *update, *start;
    const Idx               *length;
    uint32_t                 axis;

    if (!node_need_rank(n, 0, 2, MAX_RANK) || !node_need_rank(n, 1, 2, MAX_RANK) ||
        !node_choice(n, "mode", modes, &mode))
        return false;
    past = n->in[0];
    update = n->in[1];
    if (!node_axis(n, node_int(n, "axis", -2), expr_rank(past), &axis))
        return false;
    if (axis == 0)
        return node_error(n, E_IMPORT, "axis is that of the batch");
    for (uint32_t i = 0; i < expr_rank(past); i++)
        if (expr_rank(update) != expr_rank(past) ||
            (i != axis && expr_form(update, i) != expr_form(past, i)))
            return node_error(n, E_IMPORT, "the update is %s for a cache %s",
                              type_text(b->c, update->type), type_text(b->c, past->type));
    length = expr_form(update, axis);
    if (length->hi > expr_form(past, axis)->lo)
        return node_error(n, E_IMPORT, "an update of %s cells for a cache of %s",
                          dim_text(b->c, length), dim_text(b->c, expr_form(past, axis)));
    if (expr_empty(update))
        return node_done(n, past);
    start = build_zeros_of(b, DT_I64, 1, &past->type->dims[0]);
    if (node_has(n, 2)) {
        if (!node_need_rank(n, 2, 1, 1))
            return false;
        start = n->in[2];
        if (expr_form(start, 0) != expr_form(past, 0))
            return node_error(n, E_IMPORT, "%s write_indices for a batch of %s",
                              dim_text(b->c, expr_form(start, 0)),
                              dim_text(b->c, expr_form(past, 0)));
    }
    return node_done(n, onnx_written(b, past, update, axis, start, *mode == 'c'));
}
