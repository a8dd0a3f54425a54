/* Attention and encoder layers as PyTorch runs them at once, which tracing leaves in the code.
 *
 *     _native_multi_head_attention      proj(attention(heads of x Wqkv + bqkv)), weights
 *     _transformer_encoder_layer_fwd    that, and what is around it: norms, two products, sums
 *
 * Masks say true where a key is not seen. */
#include "frontends/pytorch/pytorch.h"

#include <math.h>
#include <string.h>

typedef struct {
    const Expr *q, *k, *v; /* [batch, length, width] */
    int64_t     heads, width;
} Heads;

/* [B, T, width] -> [B, heads, T, width / heads] */
static const Expr *by_heads(const Build *b, const Heads *h, const Expr *x)
{
    const Idx *dims[4];

    if (!x)
        return NULL;
    dims[0] = expr_form(x, 0);
    dims[1] = expr_form(x, 1);
    dims[2] = idx_const(b->c->arith, h->heads);
    dims[3] = idx_const(b->c->arith, h->width / h->heads);
    return build_transpose(b, build_reshape_to(b, x, 4, dims), 4, (int64_t[]){0, 2, 1, 3});
}

/* Queries, keys and values of three inputs, or of one by one product. */
static bool project(PtNode *n, const Expr *const in[3], Heads *h)
{
    const Build *b = &n->b;
    const Expr  *w = pt_tensor(n, "qkv_weight"), *bias = w ? pt_tensor(n, "qkv_bias") : NULL,
               *x = NULL;
    const Expr *parts[3];
    bool        one = in[0] == in[1] && in[1] == in[2];
    int64_t     e = h->width;

    if (!bias)
        return false;
    if (expr_rank(w) != 2 || expr_rank(bias) != 1 || build_dim(b, w, 0) != 3 * e || e < 1 ||
        h->heads < 1 || e % h->heads || expr_rank(in[0]) != 3)
        return pt_error(n, E_IMPORT, "weights %s of %lld heads for %s", type_text(b->c, w->type),
                        (long long)h->heads, type_text(b->c, in[0]->type));
    if (one)
        x = pt_linear(n, in[0], w, bias);
    for (uint32_t i = 0; i < 3; i++)
        parts[i] = one ? build_slice(b, x, 2, i * e, (i + 1) * e)
                       : pt_linear(n, in[i], build_slice(b, w, 0, i * e, (i + 1) * e),
                                   build_slice(b, bias, 0, i * e, (i + 1) * e));
    h->q = by_heads(b, h, parts[0]);
    h->k = by_heads(b, h, parts[1]);
    h->v = by_heads(b, h, parts[2]);
    return h->q && h->k && h->v;
}

/* [T, T], [B, T] or [B, heads, T, T] by its type; what it hides is -inf. */
static const Expr *masked(PtNode *n, const Expr *s)
{
    const Build *b = &n->b;
    const Expr  *mask;
    int64_t      type = pt_int(n, "mask_type", 2);

    if (!pt_maybe(n, "mask", &mask) || !mask)
        return mask || diag_errors(b->c->diags) > n->errors ? NULL : s;
    if (type == 1) { /* of keys */
        if (expr_rank(mask) != 2)
            return pt_error(n, E_IMPORT, "a mask of keys that is %s", type_text(b->c, mask->type));
        mask = build_expand_dims(b, build_expand_dims(b, mask, 1, 1), 1, 1);
    }
    if (!mask || !dtype_is_bool(expr_dtype(mask)))
        return build_add(b, s, mask);
    return build_where(b, mask, expr_scalar(b->c, expr_dtype(s), -INFINITY), s);
}

/* [B, T, width], and the weights of all heads. */
static const Expr *attention(PtNode *n, const Heads *h, const Expr **weights)
{
    const Build *b = &n->b;
    double       scale = 1 / sqrt((double)h->width / (double)h->heads);
    const Expr  *k = build_transpose(b, h->k, 4, (int64_t[]){0, 1, 3, 2});
    const Expr  *s = pt_matmul(n, build_by(b, "multiply", h->q, scale), k), *y;

    if (!s || !(s = masked(n, s)) || !(s = pt_softmax(n, "nn.softmax", s, -1)))
        return NULL;
    *weights = s;
    y = build_transpose(b, pt_matmul(n, s, h->v), 4, (int64_t[]){0, 2, 1, 3});
    if (!y)
        return NULL;
    y = build_reshape_to(
        b, y, 3,
        (const Idx *[]){expr_form(y, 0), expr_form(y, 1), idx_const(b->c->arith, h->width)});
    return pt_linear(n, y, pt_tensor(n, "proj_weight"), pt_tensor(n, "proj_bias"));
}

bool aten_multi_head_attention(PtNode *n)
{
    const Build *b = &n->b;
    Heads        h = {.heads = pt_int(n, "num_head", 1), .width = pt_int(n, "embed_dim", 0)};
    const Expr  *in[3] = {pt_tensor(n, "query"), pt_tensor(n, "key"), pt_tensor(n, "value")};
    const Expr  *weights, *y;

    if (!in[0] || !in[1] || !in[2] || !project(n, in, &h) || !(y = attention(n, &h, &weights)))
        return false;
    if (!pt_bool(n, "need_weights", true)) {
        (void)pt_bool(n, "average_attn_weights", true);
        return pt_done_at(n, 0, y) &&
               pt_done_at(n, 1, build_zeros(b, expr_dtype(y), 1, (int64_t[]){0}));
    }
    if (pt_bool(n, "average_attn_weights", true))
        weights = build_reduce(b, "mean", weights, 1, (int64_t[]){1}, false);
    return pt_done_at(n, 0, y) && pt_done_at(n, 1, weights);
}

/* ---- the layer ---------------------------------------------------------------------------------------- */

static const Expr *normalized(PtNode *n, const Expr *x, const char *weight, const char *bias)
{
    LayerNormAttrs *a = ATTRS(&n->b, LayerNormAttrs);

    a->axis = 2;
    a->epsilon = pt_float(n, "eps", 1e-5);
    return build3(&n->b, "nn.layer_norm", x, pt_tensor(n, weight), pt_tensor(n, bias), a);
}

static const Expr *fed_forward(PtNode *n, const Expr *x)
{
    const Build *b = &n->b;
    const Expr  *y = pt_linear(n, x, pt_tensor(n, "ffn_weight_1"), pt_tensor(n, "ffn_bias_1"));

    if (!y)
        return NULL;
    y = pt_bool(n, "use_gelu", false) ? build_gelu(b, y, false) : build1(b, "nn.relu", y, NULL);
    return pt_linear(n, y, pt_tensor(n, "ffn_weight_2"), pt_tensor(n, "ffn_bias_2"));
}

bool aten_encoder_layer(PtNode *n)
{
    const Build *b = &n->b;
    Heads        h = {.heads = pt_int(n, "num_heads", 1), .width = pt_int(n, "embed_dim", 0)};
    bool         first = pt_bool(n, "norm_first", false);
    const Expr  *x = pt_tensor(n, "src"), *in[3], *y, *weights;

    if (!x)
        return false;
    in[0] = in[1] = in[2] = first ? normalized(n, x, "norm_weight_1", "norm_bias_1") : x;
    if (!in[0] || !project(n, in, &h) || !(y = attention(n, &h, &weights)))
        return false;
    x = build_add(b, x, y);
    if (!first)
        x = normalized(n, x, "norm_weight_1", "norm_bias_1");
    y = fed_forward(n, first ? normalized(n, x, "norm_weight_2", "norm_bias_2") : x);
    x = build_add(b, x, y);
    return pt_done(n, first ? x : normalized(n, x, "norm_weight_2", "norm_bias_2"));
}
