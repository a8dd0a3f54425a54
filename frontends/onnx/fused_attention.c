/* Attention as ONNX Runtime's optimizer and exporters write it (domain com.microsoft): Attention
 * with its projection, MultiHeadAttention, that of decoders, and the embedding before them. */
#include "frontends/onnx/onnx.h"

#include <math.h>
#include <string.h>

typedef struct {
    const Expr *q, *k, *v;   /* [N, H, S, D], [N, H, T, D], [N, H, T, E] */
    const Expr *mask, *bias; /* as the node has them, or NULL */
    const Expr *past;        /* keys before those of this node, i64 of one cell; NULL: none */
    bool        shared;      /* the keys are a buffer, which may be longer */
} Operands;

static bool is_list(const Expr *mask, const Idx *cells)
{
    return expr_rank(mask) == 1 && expr_form(mask, 0) == cells;
}

/* Cells from .. of a list of lengths. */
static const Expr *lengths(const Build *b, const Expr *mask, const Idx *from, const Idx *N)
{
    return onnx_lengths(b, build_slice_to(b, mask, 0, from, idx_add(b->c->arith, from, N)), N);
}

/* A mask of the keys that there are, for all that a buffer has room for. */
static const Expr *padded(const Build *b, const Expr *mask, const Idx *T)
{
    uint32_t rank = expr_rank(mask);
    int64_t  pads[2 * MAX_RANK] = {0}, have, all;

    if (!idx_is_const(expr_form(mask, rank - 1), &have) || !idx_is_const(T, &all) || have > all)
        return mask;
    pads[2 * rank - 1] = all - have;
    return build_pad(b, mask, pads, 0, "constant");
}

/* Numbers that are added to the products: 0 where a key is seen, `masked` where it is not.  A mask
 * has a cell for each key, [N, T], or for each query and key, [N, S, T], or is a list: where the
 * keys of each row end, [N]; and where they begin, [2N]; or that and sums of these, [3N + 2]. */
static const Expr *additive(Node *n, const Expr *mask, const Operands *o, double masked)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    const Idx   *N = expr_form(o->q, 0), *S = expr_form(o->q, 2), *T = expr_form(o->k, 2);
    const Idx   *zero = idx_const(A, 0), *one = idx_const(A, 1), *dims[3] = {N, S, T};
    uint32_t     rank = expr_rank(mask);
    const Expr  *seen;

    if (is_list(mask, N) || is_list(mask, idx_mulc(A, N, 2)) ||
        is_list(mask, idx_addc(A, idx_mulc(A, N, 3), 2))) {
        seen = onnx_below(b, T, lengths(b, mask, zero, N));
        if (is_list(mask, idx_mulc(A, N, 2)))
            seen = build2(b, "logical_and", seen,
                          build1(b, "logical_not", onnx_below(b, T, lengths(b, mask, N, N)), NULL),
                          NULL);
        return onnx_added(b, expr_dtype(o->q), seen, masked);
    }
    if (rank == 2)
        dims[1] = T;
    if (o->shared && !(mask = padded(b, mask, T)))
        return NULL;
    for (uint32_t i = 0; i < rank; i++)
        if (rank < 2 || rank > 3 || expr_form(mask, i) != dims[i])
            return node_error(n, E_UNSUPPORTED, "a mask %s for %s queries and %s keys",
                              type_text(b->c, mask->type), dim_text(b->c, S), dim_text(b->c, T));
    mask = build_reshape_to(b, mask, 4, (const Idx *[]){N, one, rank == 3 ? S : one, T});
    return onnx_added(b, expr_dtype(o->q), mask ? build_by(b, "greater", mask, 0) : NULL, masked);
}

/* softmax(q k' scale + ..) v, heads side by side again: [N, S, H*E]. */
static const Expr *attend(Node *n, const Operands *o)
{
    const Build  *b = &n->b;
    SoftmaxAttrs *soft = ATTRS(b, SoftmaxAttrs);
    const Idx    *S = expr_form(o->q, 2), *T = expr_form(o->k, 2);
    double scale = node_float(n, "scale", 0), masked = node_float(n, "mask_filter_value", -10000);
    const Expr *s, *more;
    DType       t = expr_dtype(o->q);

    scale = scale == 0 ? 1 / sqrt((double)build_dim(b, o->q, 3)) : scale;
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
    if (node_int(n, "unidirectional", 0)) {
        s = build2(b, "add", s, onnx_added(b, t, onnx_visible(b, S, T, o->past, -1, 0), -INFINITY),
                   NULL);
    } else if (o->shared) {
        more = build2(b, "add", o->past, cell_form(b, S), NULL);
        s = build2(b, "add", s, onnx_added(b, t, onnx_below(b, T, more), -INFINITY), NULL);
    }
    soft->axis = 3;
    s = build1(b, "nn.softmax", s, soft);
    return s ? onnx_join_heads(b, onnx_matmul(n, s, o->v)) : NULL;
}

/* Keys or values with those that came before: behind them, or in their buffer. */
static const Expr *with_past(const Build *b, const Operands *o, const Expr *was, const Expr *x)
{
    const Idx *N;

    if (!x || !was || !o->shared)
        return was && x ? build_concat(b, 2, (const Expr *[]){was, x}, 2) : NULL;
    N = expr_form(x, 0);
    return onnx_written(b, was, x, 2, build_broadcast_to(b, o->past, 1, &N), false);
}

/* How many keys came before: the length of `was`, or where that is a buffer, input i. */
static bool count_past(Node *n, Operands *o, const Expr *was, uint32_t i)
{
    o->shared = node_has(n, i);
    o->past = o->shared ? node_cells(n, i) : cell_form(&n->b, expr_form(was, 2));
    return o->past != NULL;
}

/* Cells from .. to of a bias of all three. */
static const Expr *with_part(const Build *b, const Expr *x, const Expr *bias, int64_t from)
{
    int64_t n = x ? build_dim(b, x, 2) : 0;

    return x && bias ? build2(b, "add", x, build_slice(b, bias, 0, from, from + n), NULL) : x;
}

/* x [N, S, H, k, D], k tensors packed, as them, [N, S, H*D] each. */
static bool unpacked(Node *n, const Expr *x, uint32_t k, const Expr **out)
{
    const Build *b = &n->b;
    Dims         d = expr_forms(x);

    if (build_dim(b, x, 3) != k)
        return node_error(n, E_IMPORT, "%s is not %u packed tensors", type_text(b->c, x->type), k);
    for (uint32_t i = 0; i < k; i++)
        if (!(out[i] = build_reshape_to(
                  b, build_slice(b, x, 3, i, i + 1), 3,
                  (const Idx *[]){d.at[0], d.at[1], idx_mul(b->c->arith, d.at[2], d.at[4])})))
            return false;
    return true;
}

/* Where an operator has its inputs. */
typedef struct {
    uint32_t bias, mask, added, past, past_length, beams;
} Places;

static bool multi_head(Node *n, const Places *at)
{
    const Build *b = &n->b;
    int64_t      heads = node_int(n, "num_heads", 0), width, columns;
    const Expr  *bias = node_has(n, at->bias) ? n->in[at->bias] : NULL, *x[3] = {0};
    uint32_t     past = at->past;
    Operands     o = {.mask = node_has(n, at->mask) ? n->in[at->mask] : NULL,
                      .bias = node_has(n, at->added) ? n->in[at->added] : NULL};

    for (uint32_t i = 0; i < 3; i++) {
        x[i] = node_has(n, i) ? n->in[i] : NULL;
        if ((i == 0 || x[i]) && !node_need_rank(n, i, 3, 5))
            return false;
    }
    if ((bias && !node_need_rank(n, at->bias, 1, 1)) ||
        (o.mask && !node_need_rank(n, at->mask, 1, 3)) ||
        (o.bias && !node_need_rank(n, at->added, 4, 4)))
        return false;
    if (node_has(n, at->beams) || node_has(n, past) != node_has(n, past + 1))
        return node_error(n, E_UNSUPPORTED, "beams, or past keys without values");
    if (expr_rank(x[0]) == 5 && !x[1] && !x[2]) {
        if (!unpacked(n, x[0], 3, x))
            return false;
    } else if (x[1] && expr_rank(x[1]) == 5 && !x[2]) {
        if (!unpacked(n, x[1], 2, x + 1))
            return false;
    }
    if (!x[1] || !x[2] || expr_rank(x[0]) != 3 || expr_rank(x[1]) != expr_rank(x[2]) ||
        expr_rank(x[1]) > 4)
        return node_error(n, E_UNSUPPORTED, "queries, keys and values of these forms");
    width = build_dim(b, x[0], 2);
    o.q = onnx_split_heads(n, with_part(b, x[0], bias, 0), heads);
    if (expr_rank(x[1]) == 4) {
        o.k = x[1];
        o.v = x[2];
    } else {
        columns = build_dim(b, x[2], 2);
        if (bias && build_dim(b, bias, 0) != 2 * width + columns)
            return node_error(n, E_IMPORT, "the bias is %s", type_text(b->c, bias->type));
        o.k = onnx_split_heads(n, with_part(b, x[1], bias, width), heads);
        o.v = onnx_split_heads(n, with_part(b, x[2], bias, 2 * width), heads);
    }
    if (node_has(n, past)) {
        if (!node_need_rank(n, past, 4, 4) || !node_need_rank(n, past + 1, 4, 4) ||
            !count_past(n, &o, n->in[past], at->past_length))
            return false;
        o.k = with_past(b, &o, n->in[past], o.k);
        o.v = with_past(b, &o, n->in[past + 1], o.v);
    }
    if (!o.q || !o.k || !o.v)
        return false;
    n->out[1] = o.k;
    n->out[2] = o.v;
    return node_done(n, attend(n, &o));
}

bool convert_multi_head_attention(Node *n)
{
    return multi_head(
        n, &(Places){.bias = 3, .mask = 4, .added = 5, .past = 6, .past_length = 8, .beams = 9});
}

bool convert_decoder_attention(Node *n)
{
    node_ignore(n, "past_present_share_buffer"); /* the input that it needs says so */
    if (node_int(n, "output_qk", 0))
        return node_error(n, E_UNSUPPORTED, "output_qk 1");
    return multi_head(
        n, &(Places){.bias = 10, .mask = 3, .added = 4, .past = 5, .past_length = 7, .beams = 9});
}

bool onnx_attention_of(Node *n, const Expr *x, const OnnxAttentionInputs *in)
{
    const Build *b = &n->b;
    int64_t      heads = node_int(n, "num_heads", 0), all, from = 0;
    int64_t      width[3];
    const Expr  *part[3];
    Operands     o = {.mask = node_has(n, in->mask) ? n->in[in->mask] : NULL,
                      .bias = node_has(n, in->bias) ? n->in[in->bias] : NULL};
    Ints         sizes;

    if (!x || (o.mask && !node_need_rank(n, in->mask, 1, 3)) ||
        (o.bias && !node_need_rank(n, in->bias, 4, 4)) ||
        (node_has(n, in->past) && !node_need_rank(n, in->past, 5, 5)))
        return false;
    node_ignore(n, "rotary_embedding_dim"); /* without do_rotary */
    if (node_int(n, "do_rotary", 0))
        return node_error(n, E_UNSUPPORTED, "do_rotary 1");
    all = build_dim(b, x, 2);
    width[0] = width[1] = width[2] = all / 3;
    if (node_ints(n, "qkv_hidden_sizes", &sizes) && sizes.n == 3)
        memcpy(width, sizes.at, sizeof width);
    if (width[0] < 1 || width[1] != width[0] || width[2] < 1 || width[0] > all || width[2] > all ||
        width[0] + width[1] + width[2] != all)
        return node_error(n, E_IMPORT, "weights of %lld columns for queries, keys and values",
                          (long long)all);
    for (uint32_t i = 0; i < 3; from += width[i++])
        if (!(part[i] = onnx_split_heads(n, build_slice(b, x, 2, from, from + width[i]), heads)))
            return false;
    o.q = part[0], o.k = part[1], o.v = part[2];
    if (node_has(n, in->past)) {
        const Expr *was[2];

        for (uint32_t i = 0; i < 2; i++)
            if (!(was[i] = build_reshape_to(b, build_slice(b, n->in[in->past], 0, i, i + 1), 4,
                                            expr_forms(n->in[in->past]).at + 1)))
                return false;
        if (!count_past(n, &o, was[0], in->past_length))
            return false;
        o.k = with_past(b, &o, was[0], o.k);
        o.v = with_past(b, &o, was[1], o.v);
        if (!o.k || !o.v)
            return false;
    }
    if (n->nout > 1 && *n->p->output.at[1]) {
        const Expr *both[2] = {build_expand_dims(b, o.k, 0, 1), build_expand_dims(b, o.v, 0, 1)};

        if (!both[0] || !both[1] || !(n->out[1] = build_concat(b, 2, both, 0)))
            return false;
    }
    return node_done(n, attend(n, &o));
}

/* x times the weights of queries, keys and values side by side; past and present are keys and
 * values in one tensor, [2, N, H, T, D]. */
bool convert_fused_attention(Node *n)
{
    const Expr *x;

    node_ignore(n, "past_present_share_buffer"); /* the input that it needs says so */
    if (!node_need_rank(n, 0, 3, 3) || !node_need_rank(n, 1, 2, 2) ||
        (node_has(n, 2) && !node_need_rank(n, 2, 1, 1)))
        return false;
    x = onnx_matmul(n, n->in[0], n->in[1]);
    if (x && node_has(n, 2))
        x = build2(&n->b, "add", x, n->in[2], NULL);
    return onnx_attention_of(
        n, x, &(OnnxAttentionInputs){.mask = 3, .past = 4, .bias = 5, .past_length = 6});
}

/* Words, their positions and segments, added and normalized; and how many words the mask has. */
bool convert_embed_layer_norm(Node *n)
{
    const Build    *b = &n->b;
    LayerNormAttrs *a = ATTRS(b, LayerNormAttrs);
    const Expr     *x, *place, *args[3];
    int64_t         last = 1;

    if (!node_need_rank(n, 0, 2, 2) || !node_need_rank(n, 2, 2, 2) || !node_need_rank(n, 3, 2, 2) ||
        !node_need_rank(n, 5, 1, 1) || !node_need_rank(n, 6, 1, 1))
        return false;
    node_ignore(n, "mask_index_type"); /* the type of an output */
    x = build_take(b, n->in[2], n->in[0], 0);
    place = node_has(n, 8) ? n->in[8] : build_arange(b, expr_form(n->in[0], 1), DT_I64);
    place = place ? build_take(b, n->in[3], place, 0) : NULL;
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
