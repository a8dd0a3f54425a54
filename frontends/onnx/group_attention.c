/* GroupQueryAttention of com.microsoft: what exporters of language models write.  Each head of keys
 * and values serves a group of query heads; keys and values are kept from run to run, in a buffer
 * that may be larger than what it holds.
 *
 *     present = past, with the S new keys of row n from first[n] = max(seqlens_k[n] + 1 - S, 0) on
 *     score[n, h, i, j] = q[n, h, i] . present[n, h / group, j] * scale      j <= first[n] + i
 *
 * The buffer is as long as past is, or as total_sequence_length says if that is more; only so many
 * keys are looked at. */
#include "frontends/onnx/onnx.h"

#include <math.h>
#include <string.h>

enum { QUERY, KEY, VALUE, PAST_KEY, PAST_VALUE, LENGTHS, TOTAL, COS, SIN, POSITIONS, BIAS, SINK };
enum { K_SCALE = 12, V_SCALE, Q_NORM, K_NORM };

typedef struct {
    int64_t     heads, groups, width; /* query heads for each head of keys; cells of a head */
    const Idx  *N, *S, *total;
    const Expr *lengths, *first; /* of keys, of those before the new ones: [N, 1, 1, 1] of i64 */
} Group;

static bool supported(Node *n)
{
    const char *k = node_str(n, "k_quant_type", "NONE"), *v = node_str(n, "v_quant_type", "NONE");

    node_ignore(n, "kv_cache_bit_width"); /* these change nothing without the inputs they are for */
    node_ignore(n, "qk_norm_epsilon");
    node_ignore(n, "smooth_softmax"); /* where there are sinks */
    if (strcmp(k, "NONE") != 0 != node_has(n, K_SCALE) ||
        strcmp(v, "NONE") != 0 != node_has(n, V_SCALE))
        return node_error(n, E_IMPORT, "keys and values are quantized by k_scale and v_scale");
    if (node_has(n, K_SCALE) && node_int(n, "kv_cache_bit_width", 8) != 8)
        return node_error(n, E_UNSUPPORTED, "keys of other than 8 bits");
    if (node_int(n, "sliding_window_cache", 0))
        return node_error(n, E_UNSUPPORTED, "a cache that is shorter than the sequence");
    if (node_has(n, PAST_KEY) != node_has(n, PAST_VALUE) || node_has(n, KEY) != node_has(n, VALUE))
        return node_error(n, E_IMPORT, "keys without values");
    if (node_has(n, Q_NORM) != node_has(n, K_NORM))
        return node_error(n, E_IMPORT, "q_norm_weight and k_norm_weight have to be given together");
    return true;
}

/* x [N, S, heads * D] as [N, S, heads, D]. */
static const Expr *apart(Node *n, const Expr *x, const Group *g, int64_t heads)
{
    const Build *b = &n->b;

    if (!x)
        return NULL;
    if (build_dim(b, x, 2) != heads * g->width)
        return node_error(n, E_IMPORT, "%s for %lld heads of %lld cells", type_text(b->c, x->type),
                          (long long)heads, (long long)g->width);
    return build_reshape_to(b, x, 4,
                            (const Idx *[]){expr_form(x, 0), expr_form(x, 1),
                                            idx_const(b->c->arith, heads),
                                            idx_const(b->c->arith, g->width)});
}

/* x over the root of its mean square, head by head. */
static const Expr *normalized(Node *n, const Expr *x, uint32_t weight)
{
    const Build *b = &n->b;
    const Expr  *s;
    int64_t      last = 3;

    if (!x || !node_has(n, weight))
        return x;
    if (!node_need_rank(n, weight, 1, 1))
        return NULL;
    s = build_reduce(b, "mean", build2(b, "multiply", x, x, NULL), 1, &last, true);
    s = s ? build_by(b, "add", s, node_float(n, "qk_norm_epsilon", 1e-6f)) : NULL;
    s = build2(b, "multiply", x, build1(b, "rsqrt", s, NULL), NULL);
    return build2(b, "multiply", s, n->in[weight], NULL);
}

/* Queries, keys and values, [N, S, heads, D], of inputs of their own or of one. */
static bool operands(Node *n, Group *g, const Expr *out[3])
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0];
    int64_t      heads = g->heads * g->groups, all = build_dim(b, x, 2), from = 0;

    if (node_has(n, KEY)) {
        g->width = all / heads;
        for (uint32_t i = 0; i < 3; i++)
            if (!node_need_rank(n, i, 3, 3) ||
                !(out[i] = apart(n, n->in[i], g, i == QUERY ? heads : g->heads)))
                return false;
        return true;
    }
    g->width = all / (heads + 2 * g->heads);
    for (uint32_t i = 0; i < 3; i++) {
        int64_t k = i == QUERY ? heads : g->heads, end = i == VALUE ? all : from + k * g->width;

        if (!(out[i] = apart(n, build_slice(b, x, 2, from, end), g, k)))
            return false;
        from = end;
    }
    return true;
}

/* Queries and keys turned by their positions. */
static bool rotated(Node *n, const Group *g, const Expr *x[3])
{
    const Build *b = &n->b;
    const Expr  *at;
    bool         interleaved = node_int(n, "rotary_interleaved", 0) != 0;

    if (!node_int(n, "do_rotary", 0))
        return true;
    if (!node_need_rank(n, COS, 2, 2) || !node_need_rank(n, SIN, 2, 2))
        return false;
    if (node_has(n, POSITIONS)) {
        if (!node_need_rank(n, POSITIONS, 2, 2))
            return false;
        at = n->in[POSITIONS];
    } else {
        const Idx *one = idx_const(b->c->arith, 1);

        at = build_reshape_to(b, g->first, 2, (const Idx *[]){g->N, one});
        at = build2(b, "add", build_arange(b, g->S, DT_I64), at, NULL);
    }
    for (uint32_t i = 0; i < 2 && at; i++)
        if (!(x[i] = onnx_rotate(n, x[i], n->in + COS, at, interleaved,
                                 2 * build_dim(b, n->in[COS], 1))))
            return false;
    return at != NULL;
}

/* Those before and the new ones, x [N, heads, S, D], as [N, heads, T, D]. */
static const Expr *present(Node *n, const Group *g, uint32_t past, const Expr *x)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    const Idx   *zero = idx_const(A, 0), *more = g->total, *dims[4];
    const Expr  *was = NULL;

    if (!x)
        return NULL;
    for (uint32_t i = 0; i < 4; i++)
        dims[i] = expr_form(x, i);
    if (node_has(n, past)) {
        if (!node_need_rank(n, past, 4, 4))
            return NULL;
        was = n->in[past];
        for (uint32_t i = 0; i < 4; i++)
            if (i != 2 && expr_form(was, i) != dims[i])
                return node_error(n, E_IMPORT, "input %u is %s for keys %s", past,
                                  type_text(b->c, was->type), type_text(b->c, x->type));
        more = idx_max(A, idx_sub(A, g->total, expr_form(was, 2)), zero);
    } else if (g->total == g->S) {
        return x;
    }
    dims[2] = more;
    if (!was || more != zero) {
        const Expr *room = build_zeros_of(b, expr_dtype(x), 4, dims);

        was = was ? build_concat(b, 2, (const Expr *[]){was, room}, 2) : room;
    }
    return was ? onnx_written(b, was, x, 2, build_reshape_to(b, g->first, 1, &g->N), false) : NULL;
}

/* Keys or values as they are kept, in bytes where they have a scale, and as numbers again. */
static const Expr *narrowed(Node *n, const Expr *x, uint32_t past, uint32_t scale)
{
    const Build *b = &n->b;

    if (!x || !node_has(n, scale))
        return x;
    if (!node_need_rank(n, scale, 0, 4))
        return NULL;
    if (!node_has(n, past) || !dtype_eq(expr_dtype(n->in[past]), DT_I8))
        return node_error(n, E_UNSUPPORTED, "quantized keys of another type than i8");
    x = build1(b, "round", build2(b, "divide", x, n->in[scale], NULL), NULL);
    return build_cast(b, build_clip(b, x, -128, 127), DT_I8);
}

static const Expr *widened(Node *n, const Expr *x, uint32_t scale)
{
    if (!x || !node_has(n, scale))
        return x;
    return build2(&n->b, "multiply", build_cast(&n->b, x, expr_dtype(n->in[scale])), n->in[scale],
                  NULL);
}

/* What is kept, where there may be more than is looked at. */
static const Expr *looked_at(const Build *b, const Group *g, const Expr *x)
{
    const Idx *T = expr_form(x, 2);
    int64_t    room;

    if (T != g->total && idx_is_const(T, &room) && g->total->hi <= room)
        x = build_slice_to(b, x, 2, idx_const(b->c->arith, 0), g->total);
    return x;
}

/* [1 or N, 1 or H, S, T] beside scores [N, heads, groups, S, T]. */
static const Expr *grouped(Node *n, const Group *g, const Expr *x)
{
    const Build *b = &n->b;
    const Idx   *one = idx_const(b->c->arith, 1), *k = one, *of = one;

    if (expr_form(x, 1) != one) {
        if (build_dim(b, x, 1) != g->heads * g->groups)
            return node_error(n, E_IMPORT, "attention_bias is %s", type_text(b->c, x->type));
        k = idx_const(b->c->arith, g->heads);
        of = idx_const(b->c->arith, g->groups);
    }
    return build_reshape_to(
        b, x, 5, (const Idx *[]){expr_form(x, 0), k, of, expr_form(x, 2), expr_form(x, 3)});
}

/* softmax with one score more for each head, which has no value. */
static const Expr *sunk(Node *n, const Group *g, const Expr *s)
{
    const Build *b = &n->b;
    const Expr  *sink = build_scalar(b, s, 0), *top, *e;
    int64_t      last = 4;

    if (node_has(n, SINK)) {
        if (!node_need_rank(n, SINK, 1, 1))
            return NULL;
        sink = build_reshape(b, n->in[SINK], 4, (int64_t[]){g->heads, g->groups, 1, 1});
    }
    top = build2(b, "maximum", build_reduce(b, "max", s, 1, &last, true), sink, NULL);
    e = build1(b, "exp", build2(b, "subtract", s, top, NULL), NULL);
    if (!e)
        return NULL;
    sink = build1(b, "exp", build2(b, "subtract", sink, top, NULL), NULL);
    return build2(b, "divide", e,
                  build2(b, "add", build_reduce(b, "sum", e, 1, &last, true), sink, NULL), NULL);
}

/* [N, S, H*D] of q [N, S, H, D], keys and values [N, heads, T, D]. */
static const Expr *attend(Node *n, const Group *g, const Expr *q, const Expr *k, const Expr *v)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    const Idx   *one = idx_const(A, 1), *heads = idx_const(A, g->heads),
              *groups = idx_const(A, g->groups), *D = idx_const(A, g->width), *T = expr_form(k, 2);
    SoftmaxAttrs *soft = ATTRS(b, SoftmaxAttrs);
    double        scale = node_float(n, "scale", 0), cap = node_float(n, "softcap", 0);
    int64_t       local = node_int(n, "local_window_size", -1), shown = node_int(n, "qk_output", 0);
    const Expr   *s, *seen, *p, *raw;
    DType         t = expr_dtype(q);

    if (shown == 1 && (cap > 0 || node_has(n, BIAS)))
        return node_error(n, E_UNSUPPORTED, "qk_output 1 with softcap or attention_bias");
    q = build_reshape_to(b, q, 5, (const Idx *[]){g->N, g->S, heads, groups, D});
    q = build_transpose(b, q, 5, (int64_t[]){0, 2, 3, 1, 4});
    k = build_transpose(b, k, 4, (int64_t[]){0, 1, 3, 2});
    k = build_reshape_to(b, k, 5, (const Idx *[]){g->N, heads, one, D, T});
    v = build_reshape_to(b, v, 5, (const Idx *[]){g->N, heads, one, T, D});
    q = q ? build_by(b, "multiply", q, scale == 0 ? 1 / sqrt((double)g->width) : scale) : NULL;
    if (!q || !k || !v || !(s = onnx_matmul(n, q, k)))
        return NULL;
    if (cap > 0)
        s = build_by(b, "multiply", build1(b, "tanh", build_by(b, "multiply", s, 1 / cap), NULL),
                     cap);
    seen = node_int(n, "causal", 1)
               ? onnx_visible(b, g->S, T, g->first, local > 0 ? local - 1 : -1, 0)
               : onnx_below(b, T, g->lengths);
    seen = build_expand_dims(b, seen, seen ? (int64_t)expr_rank(seen) - 2 : 0, 1);
    raw = shown == 1 ? build_where(b, seen, s, build_scalar(b, s, 0)) : NULL;
    s = build2(b, "add", s, onnx_added(b, t, seen, -INFINITY), NULL);
    if (node_has(n, BIAS)) {
        if (!(p = grouped(n, g, n->in[BIAS])))
            return NULL;
        s = build2(b, "add", s, p, NULL);
    }
    soft->axis = 4;
    if (node_has(n, SINK) || node_int(n, "smooth_softmax", 0) > 0)
        p = s ? sunk(n, g, s) : NULL;
    else
        p = build1(b, "nn.softmax", s, soft);
    if (n->nout > 3 && shown) {
        n->out[3] = build_reshape_to(b, shown == 1 ? raw : p, 4,
                                     (const Idx *[]){g->N, idx_mul(A, heads, groups), g->S, T});
        if (T != g->total)
            n->out[3] = build_slice_to(b, n->out[3], 3, idx_const(A, 0), g->total);
    }
    if (!p || !(p = onnx_matmul(n, p, v)))
        return NULL;
    p = build_transpose(b, p, 5, (int64_t[]){0, 3, 1, 2, 4});
    return build_reshape_to(
        b, p, 3, (const Idx *[]){g->N, g->S, idx_const(A, g->heads * g->groups * g->width)});
}

/* The most cells of time there may be: none more than the room of a buffer which, as the model
 * says, comes out as large as it was. */
static const Idx *most_of(Node *n, const Group *g)
{
    const Idx *room = node_has(n, PAST_KEY) ? expr_form(n->in[PAST_KEY], 2) : NULL;

    if (!room)
        return g->S;
    return room->lo == room->hi && node_declared(n, 1, 2) == room->hi
               ? room
               : idx_add(n->b.c->arith, g->S, room);
}

/* total_sequence_length, as a form or as the run says it; a bias has so many columns. */
static const Idx *total_of(Node *n, const Group *g)
{
    RunDim     d = {.cell = node_cells(n, TOTAL), .lo = 1, .at = 2, .times = 1};
    const Idx *total;

    if ((node_has(n, PAST_KEY) && !node_need_rank(n, PAST_KEY, 4, 4)) ||
        (node_has(n, BIAS) && !node_need_rank(n, BIAS, 4, 4)))
        return NULL;
    if (node_has(n, BIAS) && !node_known(n, TOTAL))
        return expr_form(n->in[BIAS], 3);
    d.most = most_of(n, g);
    return d.cell && onnx_bind(n, n->nout > 1, 1, &d, &total) ? total : NULL;
}

bool convert_group_query_attention(Node *n)
{
    const Build *b = &n->b;
    int64_t      heads = node_int(n, "num_heads", 0);
    Group        g = {.heads = node_int(n, "kv_num_heads", 0)};
    const Expr  *x[3];

    if (!supported(n) || !node_need_rank(n, 0, 3, 3) || !node_need_rank(n, LENGTHS, 1, 2))
        return false;
    if (heads < 1 || heads > 1 << 16 || g.heads < 1 || heads % g.heads)
        return node_error(n, E_IMPORT, "%lld query heads for %lld heads of keys", (long long)heads,
                          (long long)g.heads);
    g.groups = heads / g.heads;
    g.N = expr_form(n->in[0], 0);
    g.S = expr_form(n->in[0], 1);
    if (!(g.total = total_of(n, &g)) || !operands(n, &g, x))
        return false;
    g.lengths = build_by(b, "add", onnx_lengths(b, n->in[LENGTHS], g.N), 1);
    g.first = build2(b, "subtract", g.lengths, cell_form(b, g.S), NULL);
    g.first = g.first ? build_by(b, "maximum", g.first, 0) : NULL;
    x[QUERY] = normalized(n, x[QUERY], Q_NORM);
    x[KEY] = normalized(n, x[KEY], K_NORM);
    if (!g.first || !x[QUERY] || !x[KEY] || !rotated(n, &g, x))
        return false;
    for (uint32_t i = KEY; i <= VALUE; i++) {
        uint32_t past = i == KEY ? PAST_KEY : PAST_VALUE, scale = i == KEY ? K_SCALE : V_SCALE;

        x[i] = narrowed(n, build_transpose(b, x[i], 4, (int64_t[]){0, 2, 1, 3}), past, scale);
        n->out[i] = x[i] = present(n, &g, past, x[i]);
        if (!x[i] || !(x[i] = widened(n, looked_at(b, &g, x[i]), scale)))
            return false;
    }
    return node_done(n, attend(n, &g, x[QUERY], x[KEY], x[VALUE]));
}
