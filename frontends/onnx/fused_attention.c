/* Attention as ONNX Runtime's optimizer and exporters write it (domain com.microsoft): Attention
 * with its projection, MultiHeadAttention, and the embedding before them. */
#include "frontends/onnx/onnx.h"

#include <math.h>
#include <string.h>

typedef struct {
    const Expr *q, *k, *v;   /* [N, H, S, D], [N, H, T, D], [N, H, T, E] */
    const Expr *mask, *bias; /* as the node has them, or NULL */
    int64_t     past;        /* keys before those of this node */
} Operands;

/* Numbers that are added to the products: 0 where a key is seen, `masked` where it is not.  A mask
 * has a cell for each key, [N, T], or for each query and key, [N, S, T], or the length of each
 * row's keys, [N]. */
static const Expr *additive(Node *n, const Expr *mask, const Operands *o, double masked)
{
    const Build *b = &n->b;
    int64_t      N = build_dim(b, o->q, 0), S = build_dim(b, o->q, 2), T = build_dim(b, o->k, 2);
    int64_t      dims[3] = {N, expr_rank(mask) == 3 ? S : T, T};
    DType        t = expr_dtype(o->q);
    const Expr  *seen;

    for (uint32_t i = 0; i < expr_rank(mask); i++)
        if (expr_rank(mask) > 3 || build_dim(b, mask, i) != dims[i])
            return node_error(n, E_UNSUPPORTED, "a mask %s for %lld queries and %lld keys",
                              type_text(b->c, mask->type), (long long)S, (long long)T);
    if (expr_rank(mask) == 1) {
        int64_t *at = NEW_ARRAY(b->c->arena, int64_t, (size_t)T + 1);

        for (int64_t i = 0; i < T; i++)
            at[i] = i;
        mask = build_reshape(b, build_cast(b, mask, DT_I64), 4, (int64_t[]){N, 1, 1, 1});
        seen =
            build2(b, "less", build_const(b, DT_I64, 4, (int64_t[]){1, 1, 1, T}, at), mask, NULL);
    } else {
        mask = build_reshape(b, mask, 4, (int64_t[]){N, 1, expr_rank(mask) == 3 ? S : 1, T});
        seen = mask ? build_by(b, "greater", mask, 0) : NULL;
    }
    return build_where(b, seen, expr_scalar(b->c, t, 0), expr_scalar(b->c, t, masked));
}

/* Query i sees keys up to i + past. */
static const Expr *causal(const Build *b, DType t, int64_t S, int64_t T, int64_t past)
{
    uint32_t size = dtype_bytes(t);
    uint8_t *at = arena_array(b->c->arena, (size_t)(S * T) + 1, size);

    for (int64_t i = 0; i < S; i++)
        for (int64_t j = i + past + 1; j < T; j++)
            dtype_put_f(t, at + (i * T + j) * size, -INFINITY);
    return build_const(b, t, 2, (int64_t[]){S, T}, at);
}

/* softmax(q k' scale + ..) v, heads side by side again: [N, S, H*E]. */
static const Expr *attend(Node *n, const Operands *o)
{
    const Build  *b = &n->b;
    SoftmaxAttrs *soft = ATTRS(b, SoftmaxAttrs);
    Ints          q = build_dims(b, o->q), v = build_dims(b, o->v);
    int64_t       T = build_dim(b, o->k, 2);
    double scale = node_float(n, "scale", 0), masked = node_float(n, "mask_filter_value", -10000);
    const Expr *s, *more;

    if (q.at[2] * T > 1 << 24)
        return node_error(n, E_UNSUPPORTED, "%lld queries for %lld keys", (long long)q.at[2],
                          (long long)T);
    scale = scale == 0 ? 1 / sqrt((double)q.at[3]) : scale;
    s = build_transpose(b, o->k, 4, (int64_t[]){0, 1, 3, 2});
    s = s ? onnx_matmul(n, build_by(b, "multiply", o->q, scale), s) : NULL;
    if (!s)
        return NULL;
    if (o->mask) {
        if (!(more = additive(n, o->mask, o, masked)))
            return NULL;
        s = build2(b, "add", s, more, NULL);
    }
    if (o->bias)
        s = build2(b, "add", s, o->bias, NULL);
    if (node_int(n, "unidirectional", 0))
        s = build2(b, "add", s, causal(b, expr_dtype(o->q), q.at[2], T, o->past), NULL);
    soft->axis = 3;
    s = build1(b, "nn.softmax", s, soft);
    s = s ? onnx_matmul(n, s, o->v) : NULL;
    s = build_transpose(b, s, 4, (int64_t[]){0, 2, 1, 3});
    return build_reshape(b, s, 3, (int64_t[]){q.at[0], q.at[2], q.at[1] * v.at[3]});
}

/* Cells from .. to of a bias of all three. */
static const Expr *with_part(const Build *b, const Expr *x, const Expr *bias, int64_t from)
{
    int64_t n = x ? build_dim(b, x, 2) : 0;

    return x && bias ? build2(b, "add", x, build_slice(b, bias, 0, from, from + n), NULL) : x;
}

bool convert_multi_head_attention(Node *n)
{
    const Build *b = &n->b;
    int64_t      heads = node_int(n, "num_heads", 0), width, columns;
    const Expr  *bias = node_has(n, 3) ? n->in[3] : NULL;
    Operands     o = {.mask = node_has(n, 4) ? n->in[4] : NULL,
                      .bias = node_has(n, 5) ? n->in[5] : NULL};

    if (!node_need_rank(n, 0, 3, 3) || !node_need_rank(n, 1, 3, 4) || !node_need_rank(n, 2, 3, 4) ||
        (bias && !node_need_rank(n, 3, 1, 1)) || (o.mask && !node_need_rank(n, 4, 1, 3)) ||
        (o.bias && !node_need_rank(n, 5, 4, 4)))
        return false;
    if (node_has(n, 8) || node_has(n, 9) || node_has(n, 6) != node_has(n, 7) ||
        expr_rank(n->in[1]) != expr_rank(n->in[2]))
        return node_error(n, E_UNSUPPORTED,
                          "shared buffers of past keys, beams, or keys without "
                          "values");
    width = build_dim(b, n->in[0], 2);
    o.q = onnx_split_heads(n, with_part(b, n->in[0], bias, 0), heads);
    if (expr_rank(n->in[1]) == 4) {
        o.k = n->in[1];
        o.v = n->in[2];
    } else {
        columns = build_dim(b, n->in[2], 2);
        if (bias && build_dim(b, bias, 0) != 2 * width + columns)
            return node_error(n, E_IMPORT, "the bias is %s", type_text(b->c, bias->type));
        o.k = onnx_split_heads(n, with_part(b, n->in[1], bias, width), heads);
        o.v = onnx_split_heads(n, with_part(b, n->in[2], bias, 2 * width), heads);
    }
    if (node_has(n, 6)) {
        if (!node_need_rank(n, 6, 4, 4) || !node_need_rank(n, 7, 4, 4))
            return false;
        o.past = build_dim(b, n->in[6], 2);
        o.k = o.k ? build_concat(b, 2, (const Expr *[]){n->in[6], o.k}, 2) : NULL;
        o.v = o.v ? build_concat(b, 2, (const Expr *[]){n->in[7], o.v}, 2) : NULL;
    }
    if (!o.q || !o.k || !o.v)
        return false;
    n->out[1] = o.k;
    n->out[2] = o.v;
    return node_done(n, attend(n, &o));
}

/* x times the weights of queries, keys and values side by side; past and present are keys and
 * values in one tensor, [2, N, H, T, D]. */
bool convert_fused_attention(Node *n)
{
    const Build *b = &n->b;
    int64_t      heads = node_int(n, "num_heads", 0), all, from = 0;
    int64_t      width[3];
    const Expr  *x, *part[3];
    Operands     o = {.mask = node_has(n, 3) ? n->in[3] : NULL,
                      .bias = node_has(n, 5) ? n->in[5] : NULL};
    Ints         sizes, d;

    if (!node_need_rank(n, 0, 3, 3) || !node_need_rank(n, 1, 2, 2) ||
        (node_has(n, 2) && !node_need_rank(n, 2, 1, 1)) ||
        (o.mask && !node_need_rank(n, 3, 1, 3)) || (node_has(n, 4) && !node_need_rank(n, 4, 5, 5)))
        return false;
    if (node_has(n, 6))
        return node_error(n, E_UNSUPPORTED, "a shared buffer of past keys");
    all = build_dim(b, n->in[1], 1);
    width[0] = width[1] = width[2] = all / 3;
    if (node_ints(n, "qkv_hidden_sizes", &sizes) && sizes.n == 3)
        memcpy(width, sizes.at, sizeof width);
    if (width[0] < 1 || width[1] != width[0] || width[2] < 1 || width[0] > all || width[2] > all ||
        width[0] + width[1] + width[2] != all)
        return node_error(n, E_IMPORT, "weights of %lld columns for queries, keys and values",
                          (long long)all);
    if (!(x = onnx_matmul(n, n->in[0], n->in[1])))
        return false;
    if (node_has(n, 2))
        x = build2(b, "add", x, n->in[2], NULL);
    for (uint32_t i = 0; i < 3 && x; from += width[i++])
        if (!(part[i] = onnx_split_heads(n, build_slice(b, x, 2, from, from + width[i]), heads)))
            return false;
    if (!x)
        return false;
    o.q = part[0], o.k = part[1], o.v = part[2];
    if (node_has(n, 4)) {
        d = build_dims(b, n->in[4]);
        o.past = d.at[3];
        for (uint32_t i = 0; i < 2; i++) {
            const Expr  *was = build_reshape(b, build_slice(b, n->in[4], 0, i, i + 1), 4, d.at + 1);
            const Expr **now = i ? &o.v : &o.k;

            if (!was || !(*now = build_concat(b, 2, (const Expr *[]){was, *now}, 2)))
                return false;
        }
    }
    if (n->nout > 1 && *n->p->output.at[1]) {
        const Expr *both[2] = {build_expand_dims(b, o.k, 0, 1), build_expand_dims(b, o.v, 0, 1)};

        if (!both[0] || !both[1] || !(n->out[1] = build_concat(b, 2, both, 0)))
            return false;
    }
    return node_done(n, attend(n, &o));
}

/* Words, their positions and segments, added and normalized; and how many words the mask has. */
bool convert_embed_layer_norm(Node *n)
{
    const Build    *b = &n->b;
    LayerNormAttrs *a = ATTRS(b, LayerNormAttrs);
    const Expr     *x, *place, *args[3];
    int64_t         last = 1, S, *at;

    if (!node_need_rank(n, 0, 2, 2) || !node_need_rank(n, 2, 2, 2) || !node_need_rank(n, 3, 2, 2) ||
        !node_need_rank(n, 5, 1, 1) || !node_need_rank(n, 6, 1, 1))
        return false;
    node_ignore(n, "mask_index_type"); /* the type of an output */
    S = build_dim(b, n->in[0], 1);
    x = build_take(b, n->in[2], n->in[0], 0);
    if (node_has(n, 8)) {
        place = build_take(b, n->in[3], n->in[8], 0);
    } else {
        at = NEW_ARRAY(b->c->arena, int64_t, (size_t)S + 1);
        for (int64_t i = 0; i < S; i++)
            at[i] = i;
        place = build_take(b, n->in[3], build_i64s(b, (uint32_t)S, at), 0);
    }
    x = build2(b, "add", x, place, NULL);
    if (node_has(n, 1) && node_has(n, 4))
        x = build2(b, "add", x, build_take(b, n->in[4], n->in[1], 0), NULL);
    if (!x)
        return false;
    if (node_has(n, 7))
        n->out[1] = build_cast(b, build_reduce(b, "sum", n->in[7], 1, &last, false), DT_I32);
    else
        n->out[1] = build_zeros_of(b, DT_I32, 1, expr_forms(n->in[0]).at);
    n->out[2] = x;
    a->axis = -1;
    a->epsilon = node_float(n, "epsilon", 1e-12f);
    args[0] = x, args[1] = n->in[5], args[2] = n->in[6];
    return node_done(n, build_call(b, "nn.layer_norm", 3, args, a));
}
