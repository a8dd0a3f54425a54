/* Attention and rotary embedding of opset 23 on, FlexAttention: spelled out in smaller operators.
 */
#include "frontends/onnx/onnx.h"

#include <math.h>
#include <string.h>

static const Expr *add(const Build *b, const Expr *x, const Expr *y)
{
    return x ? build2(b, "add", x, y, NULL) : y;
}

const Expr *onnx_split_heads(Node *n, const Expr *x, int64_t heads)
{
    const Build *b = &n->b;
    int64_t      width;

    if (!x || expr_rank(x) == 4)
        return x;
    width = build_dim(b, x, 2);
    if (heads < 1 || width % heads)
        return node_error(n, E_IMPORT, "%lld heads for %lld columns", (long long)heads,
                          (long long)width);
    x = build_reshape_to(b, x, 4,
                         (const Idx *[]){expr_form(x, 0), expr_form(x, 1),
                                         idx_const(b->c->arith, heads),
                                         idx_const(b->c->arith, width / heads)});
    return build_transpose(b, x, 4, (int64_t[]){0, 2, 1, 3});
}

const Expr *onnx_join_heads(const Build *b, const Expr *x)
{
    if (!x)
        return NULL;
    x = build_transpose(b, x, 4, (int64_t[]){0, 2, 1, 3});
    return build_reshape_to(
        b, x, 3,
        (const Idx *[]){expr_form(x, 0), expr_form(x, 1),
                        idx_mul(b->c->arith, expr_form(x, 2), expr_form(x, 3))});
}

/* Each head of keys or values serves a group of query heads. */
static const Expr *repeat_heads(Node *n, const Expr *x, int64_t heads)
{
    const Build *b = &n->b;
    RepeatAttrs *a = ATTRS(b, RepeatAttrs);
    int64_t      have = build_dim(b, x, 1);

    if (have == heads)
        return x;
    if (have < 1 || heads % have)
        return node_error(n, E_IMPORT, "%lld query heads for %lld key heads", (long long)heads,
                          (long long)have);
    a->repeats = heads / have;
    a->axis = 1;
    return build1(b, "repeat", x, a);
}

const Expr *onnx_visible(const Build *b, const Idx *S, const Idx *T, const Expr *first,
                         int64_t left, int64_t right)
{
    const Expr *rows = build_expand_dims(b, build_arange(b, S, DT_I64), 1, 1), *far, *seen = NULL;

    far = build2(b, "subtract", build_arange(b, T, DT_I64), rows, NULL);
    far = first ? build2(b, "subtract", far, first, NULL) : far;
    if (right >= 0)
        seen = build_by(b, "less_equal", far, (double)right);
    if (left >= 0) {
        const Expr *l = build_by(b, "greater_equal", far, (double)-left);

        seen = seen ? build2(b, "logical_and", seen, l, NULL) : l;
    }
    return seen;
}

const Expr *onnx_below(const Build *b, const Idx *T, const Expr *length)
{
    return build2(b, "less", build_arange(b, T, DT_I64), length, NULL);
}

const Expr *onnx_added(const Build *b, DType t, const Expr *seen, double masked)
{
    const Expr *x = build_where(b, seen, expr_scalar(b->c, t, 0), expr_scalar(b->c, t, masked));
    const Expr *known = x ? build_fold(b, x) : NULL;

    return known ? known : x;
}

const Expr *onnx_lengths(const Build *b, const Expr *x, const Idx *N)
{
    const Idx *one = idx_const(b->c->arith, 1);

    return build_reshape_to(b, build_cast(b, x, DT_I64), 4, (const Idx *[]){N, one, one, one});
}

/* The mask as numbers that are added, its last dimension padded to all keys. */
static const Expr *additive(Node *n, const Expr *mask, DType t, const Idx *keys)
{
    const Build *b = &n->b;
    uint32_t     rank = expr_rank(mask);
    int64_t      pads[2 * MAX_RANK] = {0};

    if (dtype_is_bool(expr_dtype(mask)))
        mask = build_where(b, mask, expr_scalar(b->c, t, 0), expr_scalar(b->c, t, -INFINITY));
    mask = mask ? build_cast(b, mask, t) : NULL;
    if (!mask || rank == 0 || expr_form(mask, rank - 1) == keys)
        return mask;
    if (!idx_is_const(keys, &pads[2 * rank - 1]))
        return node_error(n, E_UNSUPPORTED, "a mask %s for %s keys", type_text(b->c, mask->type),
                          dim_text(b->c, keys));
    pads[2 * rank - 1] -= build_dim(b, mask, rank - 1);
    return pads[2 * rank - 1] > 0 ? build_pad(b, mask, pads, -INFINITY, "constant") : mask;
}

typedef struct {
    const Expr *q, *k, *v, *bias;
    bool        guard; /* a row may be masked as a whole */
} Parts;

/* All that is added to the products: mask, causality, window, lengths.  `past`: keys before those
 * of this node, NULL: none. */
static bool biases(Node *n, Parts *p, const Idx *past)
{
    const Build *b = &n->b;
    DType        t = expr_dtype(p->q);
    const Idx   *S = expr_form(p->q, 2), *T = expr_form(p->k, 2);
    int64_t      left = node_int(n, "left_window_size", -1);
    int64_t      right = node_int(n, "right_window_size", -1);
    const Expr  *length = NULL, *first, *more;

    if (node_int(n, "is_causal", 0))
        right = right < 0 ? 0 : right;
    if (node_has(n, 3)) {
        if (!node_need_rank(n, 3, 0, 4) || !(p->bias = additive(n, n->in[3], t, T)))
            return false;
        p->guard = true;
    }
    if (node_has(n, 6)) {
        if (!node_need_rank(n, 6, 1, 1) ||
            !(length = onnx_lengths(b, n->in[6], expr_form(p->q, 0))))
            return false;
        p->guard = true;
    }
    if (left >= 0 || right >= 0) {
        /* Of so many keys the last are those of the queries. */
        first = past     ? cell_form(b, past)
                : length ? build2(b, "subtract", length, cell_form(b, S), NULL)
                         : NULL;
        more = onnx_added(b, t, onnx_visible(b, S, T, first, left, right), -INFINITY);
        if (!(p->bias = add(b, p->bias, more)))
            return false;
        p->guard |= left >= 0;
    }
    if (length) {
        more = onnx_added(b, t, onnx_below(b, T, length), -INFINITY);
        if (!(p->bias = add(b, p->bias, more)))
            return false;
    }
    return true;
}

/* Rows whose bias is all -inf see nothing: 0, not NaN. */
static const Expr *guarded(const Build *b, const Expr *weights, const Expr *bias)
{
    int64_t     last = (int64_t)expr_rank(bias) - 1;
    const Expr *top = build_reduce(b, "max", bias, 1, &last, true), *none;

    none = build2(b, "equal", top, build_scalar(b, bias, -INFINITY), NULL);
    return build_where(b, none, build_scalar(b, weights, 0), weights);
}

bool convert_attention(Node *n)
{
    const Build  *b = &n->b;
    int64_t       mode = node_int(n, "qk_matmul_output_mode", 0), heads;
    const Idx    *past = NULL;
    double        softcap = node_float(n, "softcap", 0), root;
    bool          flat;
    DType         t, precise;
    Parts         p = {0};
    const Expr   *s, *y, *shown;
    SoftmaxAttrs *soft = ATTRS(b, SoftmaxAttrs);

    for (uint32_t i = 0; i < 3; i++)
        if (!node_need_rank(n, i, 3, 4) || expr_rank(n->in[i]) != expr_rank(n->in[0]))
            return node_error(n, E_IMPORT,
                              "queries, keys and values have to be of 3 or 4 dimensions");
    t = precise = expr_dtype(n->in[0]);
    flat = expr_rank(n->in[0]) == 3;
    if (!(p.q = onnx_split_heads(n, n->in[0], node_int(n, "q_num_heads", 0))) ||
        !(p.k = onnx_split_heads(n, n->in[1], node_int(n, "kv_num_heads", 0))) ||
        !(p.v = onnx_split_heads(n, n->in[2], node_int(n, "kv_num_heads", 0))))
        return false;
    if (node_has(n, 4) != node_has(n, 5))
        return node_error(n, E_IMPORT, "past_key and past_value have to be given together");
    if (node_has(n, 4)) {
        if (!node_need_rank(n, 4, 4, 4) || !node_need_rank(n, 5, 4, 4))
            return false;
        past = expr_form(n->in[4], 2);
        p.k = build_concat(b, 2, (const Expr *[]){n->in[4], p.k}, 2);
        p.v = build_concat(b, 2, (const Expr *[]){n->in[5], p.v}, 2);
    }
    if (!p.k || !p.v)
        return false;
    n->out[1] = p.k;
    n->out[2] = p.v;
    heads = build_dim(b, p.q, 1);
    if (!biases(n, &p, past) || !(p.k = repeat_heads(n, p.k, heads)) ||
        !(p.v = repeat_heads(n, p.v, heads)))
        return false;
    root = sqrt(node_float(n, "scale", 1 / sqrt((double)build_dim(b, p.q, 3))));
    s = build_transpose(b, build_by(b, "multiply", p.k, root), 4, (int64_t[]){0, 1, 3, 2});
    p.q = build_by(b, "multiply", p.q, root);
    if (!s || !p.q || !(s = onnx_matmul(n, p.q, s)))
        return false;
    shown = s;
    if (softcap > 0) {
        s = build_by(b, "multiply",
                     build1(b, "tanh", build_by(b, "multiply", s, 1 / softcap), NULL), softcap);
        shown = mode == 1 ? s : shown;
    }
    if (p.bias)
        s = build2(b, "add", s, p.bias, NULL);
    if (mode == 2)
        shown = s;
    if (node_attr(n, "softmax_precision") &&
        !onnx_dtype(node_int(n, "softmax_precision", 0), &precise))
        return node_error(n, E_UNSUPPORTED, "softmax_precision");
    soft->axis = 3;
    s = build1(b, "nn.softmax", s ? build_cast(b, s, precise) : NULL, soft);
    if (s && p.guard && p.bias)
        s = guarded(b, s, p.bias);
    s = s ? build_cast(b, s, t) : NULL;
    if (!s || !(y = onnx_matmul(n, s, p.v)))
        return false;
    if (n->nout > 3)
        n->out[3] = mode == 3 ? s : shown;
    return node_done(n, flat ? onnx_join_heads(b, y) : y);
}

/* ---- FlexAttention ----------------------------------------------------------------------------------- */

/* A graph of one tensor, which keeps its type; without one the tensor itself. */
static const Expr *modified(Node *n, const char *name, const Expr *x)
{
    const OnnxGraph *g;
    const Expr      *y[1];

    if (!x || !node_attr(n, name))
        return x;
    if (!(g = node_graph(n, name)))
        return NULL;
    if (g->output.n != 1)
        return node_error(n, E_IMPORT, "%s has %u outputs, not 1", name, g->output.n);
    if (!onnx_subgraph(n, g, 1, &x, y))
        return NULL;
    if (!expr_has_shape(y[0]) || y[0]->type != x->type)
        return node_error(n, E_IMPORT, "%s gives %s for %s", name, type_text(n->b.c, y[0]->type),
                          type_text(n->b.c, x->type));
    return y[0];
}

/* prob_mod(softmax(score_mod(Q K' scale))) V, of four dimensions. */
bool convert_flex_attention(Node *n)
{
    const Build  *b = &n->b;
    DType         t, precise;
    int64_t       heads;
    const Expr   *q, *k, *v, *s;
    SoftmaxAttrs *soft = ATTRS(b, SoftmaxAttrs);

    for (uint32_t i = 0; i < 3; i++)
        if (!node_need_rank(n, i, 4, 4))
            return false;
    t = expr_dtype(n->in[0]);
    precise = dtype_eq(t, DT_F64) ? t : DT_F32;
    if (node_attr(n, "softmax_precision") &&
        !onnx_dtype(node_int(n, "softmax_precision", 0), &precise))
        return node_error(n, E_UNSUPPORTED, "softmax_precision");
    heads = build_dim(b, n->in[0], 1);
    q = build_cast(b, n->in[0], precise);
    k = build_cast(b, repeat_heads(n, n->in[1], heads), precise);
    v = repeat_heads(n, n->in[2], heads);
    k = k ? build_transpose(b, k, 4, (int64_t[]){0, 1, 3, 2}) : NULL;
    if (!k || !v || !(s = onnx_matmul(n, q, k)))
        return false;
    s = build_by(b, "multiply", s, node_float(n, "scale", 1 / sqrt((double)build_dim(b, q, 3))));
    soft->axis = 3;
    s = build1(b, "nn.softmax", modified(n, "score_mod", s), soft);
    s = modified(n, "prob_mod", s);
    return s && node_done(n, onnx_matmul(n, build_cast(b, s, t), v));
}

/* ---- rotary embedding -------------------------------------------------------------------------------- */

static const Expr *cells(const Build *b, const Expr *x, int64_t begin, int64_t end, int64_t step)
{
    StridedSliceAttrs *a = ATTRS(b, StridedSliceAttrs);

    a->begin = dims_of_i64(b->c, &begin, 1);
    a->end = dims_of_i64(b->c, &end, 1);
    a->strides = ints_dup(b->c, &step, 1);
    a->axes = ints_dup(b->c, (int64_t[]){3}, 1);
    return build1(b, "strided_slice", x, a);
}

const Expr *onnx_rotate(Node *n, const Expr *x, const Expr *const table[2], const Expr *at,
                        bool interleaved, int64_t dim)
{
    const Build *b = &n->b;
    const Expr  *x1, *x2, *turned[2], *rest, *angle[2];
    const Idx   *one = idx_const(b->c->arith, 1), *half, *N = expr_form(x, 0), *S = expr_form(x, 1);
    int64_t      D = build_dim(b, x, 3);

    dim = dim ? dim : D;
    if (dim < 2 || dim % 2 || dim > D)
        return node_error(n, E_IMPORT, "rotary_embedding_dim is %lld", (long long)dim);
    half = idx_const(b->c->arith, dim / 2);
    for (uint32_t i = 0; i < 2; i++) {
        const Expr *a = angle[i] = at ? build_take(b, table[i], at, 0) : table[i];

        if (!a)
            return NULL;
        if (expr_rank(a) != 3 || expr_form(a, 2) != half || expr_form(a, 1) != S ||
            (expr_form(a, 0) != N && expr_form(a, 0) != one))
            return node_error(n, E_IMPORT, "the angles are %s for %s", type_text(b->c, a->type),
                              type_text(b->c, x->type));
        angle[i] = build_reshape_to(b, a, 4, (const Idx *[]){expr_form(a, 0), S, one, half});
    }
    x1 = interleaved ? cells(b, x, 0, dim, 2) : cells(b, x, 0, dim / 2, 1);
    x2 = interleaved ? cells(b, x, 1, dim, 2) : cells(b, x, dim / 2, dim, 1);
    rest = dim < D ? cells(b, x, dim, D, 1) : NULL;
    turned[0] = build2(b, "subtract", build2(b, "multiply", angle[0], x1, NULL),
                       build2(b, "multiply", angle[1], x2, NULL), NULL);
    turned[1] = build2(b, "add", build2(b, "multiply", angle[1], x1, NULL),
                       build2(b, "multiply", angle[0], x2, NULL), NULL);
    if (!turned[0] || !turned[1])
        return NULL;
    if (interleaved) {
        Dims d = expr_forms(turned[0]);

        for (uint32_t i = 0; i < 2; i++)
            turned[i] = build_expand_dims(b, turned[i], 4, 1);
        x = build_reshape_to(
            b, build_concat(b, 2, turned, 4), 4,
            (const Idx *[]){d.at[0], d.at[1], d.at[2], idx_const(b->c->arith, dim)});
    } else {
        x = build_concat(b, 2, turned, 3);
    }
    return rest && x ? build_concat(b, 2, (const Expr *[]){x, rest}, 3) : x;
}

/* Input 0 in its own form, [N, S, H*D] or [N, H, S, D]. */
static bool rotate(Node *n, const Expr *const table[2], const Expr *at, int64_t heads)
{
    const Build *b = &n->b;
    const Expr  *x = onnx_split_heads(n, n->in[0], heads);

    x = build_transpose(b, x, 4, (int64_t[]){0, 2, 1, 3});
    x = x ? onnx_rotate(n, x, table, at, node_int(n, "interleaved", 0) != 0,
                        node_int(n, "rotary_embedding_dim", 0))
          : NULL;
    x = build_transpose(b, x, 4, (int64_t[]){0, 2, 1, 3});
    return node_done(n, x && expr_rank(n->in[0]) == 3 ? onnx_join_heads(b, x) : x);
}

bool convert_rotary_embedding(Node *n)
{
    if (!node_need_rank(n, 0, 3, 4) || !node_need_rank(n, 1, 2, 3) || !node_need_rank(n, 2, 2, 3))
        return false;
    return rotate(n, n->in + 1, node_has(n, 3) ? n->in[3] : NULL, node_int(n, "num_heads", 0));
}

/* That of com.microsoft has the positions first; a single one is that of the first row.  Of three
 * dimensions without num_heads, a head is as wide as the tables tell. */
bool convert_fused_rotary_embedding(Node *n)
{
    const Build *b = &n->b;
    const Expr  *at;
    int64_t      heads = node_int(n, "num_heads", 0), wide;

    if (!node_need_rank(n, 0, 3, 4) || !node_need_rank(n, 1, 1, 2) || !node_need_rank(n, 2, 2, 2) ||
        !node_need_rank(n, 3, 2, 2))
        return false;
    if (node_int(n, "is_packed_batching", 0) || node_float(n, "scale", 1) != 1)
        return node_error(n, E_UNSUPPORTED, "is_packed_batching or a scale");
    at = n->in[1];
    if (expr_rank(at) == 1) {
        const Idx *rows = expr_form(n->in[0], expr_rank(n->in[0]) - 2);

        at = build2(b, "add", build_arange(b, rows, expr_dtype(at)), at, NULL);
        at = at ? build_expand_dims(b, at, 0, 1) : NULL;
    }
    wide = 2 * build_dim(b, n->in[2], 1);
    if (!heads && expr_rank(n->in[0]) == 3 && wide > 0)
        heads = build_dim(b, n->in[0], 2) / wide;
    return at && rotate(n, n->in + 2, at, heads);
}
