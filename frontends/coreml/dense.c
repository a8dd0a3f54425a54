/* Products of matrices. */
#include "frontends/coreml/coreml.h"

#include <math.h>

static const Expr *product(CmlNode *n, const Expr *x, const Expr *y, bool tx, bool ty)
{
    const Build *b = &n->b;
    MatmulAttrs *a = ATTRS(b, MatmulAttrs);
    DenseAttrs  *d = ATTRS(b, DenseAttrs);
    const Expr  *r;

    if (!x || !y)
        return NULL;
    a->transpose_a = tx;
    a->transpose_b = ty;
    a->out_dtype = d->out_dtype = build_sum_dtype(x);
    r = ty && !tx ? build2(b, "nn.dense", x, y, d) : build2(b, "nn.matmul", x, y, a);
    return r ? build_cast(b, r, expr_dtype(x)) : NULL;
}

static const Expr *batches(CmlNode *n, const Expr *x, const Expr *y, bool tx, bool ty)
{
    const Build      *b = &n->b;
    BatchMatmulAttrs *a = ATTRS(b, BatchMatmulAttrs);
    const Expr       *r;

    a->transpose_a = tx;
    a->transpose_b = ty;
    a->out_dtype = build_sum_dtype(x);
    r = build2(b, "nn.batch_matmul", x, y, a);
    return r ? build_cast(b, r, expr_dtype(x)) : NULL;
}

/* Many rows against one matrix are one product of two matrices. */
static const Expr *rows_times(CmlNode *n, const Expr *x, const Expr *y, bool ty)
{
    const Build *b = &n->b;
    const Idx   *dims[MAX_RANK], *k, *rows = idx_const(b->c->arith, 1);
    uint32_t     rank = expr_rank(x);

    k = expr_form(x, rank - 1);
    for (uint32_t i = 0; i + 1 < rank; i++)
        rows = idx_mul(b->c->arith, rows, dims[i] = expr_form(x, i));
    dims[rank - 1] = expr_form(y, !ty);
    x = build_reshape_to(b, x, 2, (const Idx *[]){rows, k});
    return build_reshape_to(b, product(n, x, y, false, ty), rank, dims);
}

const Expr *cml_matmul(CmlNode *n, const Expr *x, const Expr *y, bool tx, bool ty)
{
    const Build *b = &n->b;
    uint32_t     rx, ry;
    const Idx   *dims[MAX_RANK];
    uint32_t     d = 0;
    const Expr  *r;

    if (!x || !y)
        return NULL;
    rx = expr_rank(x), ry = expr_rank(y);
    if (!rx || !ry)
        return cml_error(n, E_IMPORT, "an operand of a product of matrices is a scalar");
    if (rx == 1 || ry == 1) {
        r = cml_matmul(n, rx == 1 ? build_expand_dims(b, x, 0, 1) : x,
                       ry == 1 ? build_expand_dims(b, y, 1, 1) : y, rx > 1 && tx, ry > 1 && ty);
        for (uint32_t i = 0; r && i < expr_rank(r); i++)
            if (!(rx == 1 && i + 2 == expr_rank(r)) && !(ry == 1 && i + 1 == expr_rank(r)))
                dims[d++] = expr_form(r, i);
        return r ? build_reshape_to(b, r, d, dims) : NULL;
    }
    if (expr_form(x, rx - (tx ? 2 : 1)) != expr_form(y, ry - (ty ? 1 : 2)))
        return cml_error(n, E_IMPORT, "the operands do not fit: %s times %s",
                         type_text(b->c, x->type), type_text(b->c, y->type));
    if (rx == 2 && ry == 2)
        return product(n, x, y, tx, ty);
    if (ry == 2 && !tx)
        return rows_times(n, x, y, ty);
    return batches(n, x, y, tx, ty);
}

const Expr *cml_linear(CmlNode *n, const Expr *x, const Expr *w, const Expr *bias)
{
    const Build *b = &n->b;
    const Expr  *y;
    uint32_t     rank;

    if (!x || !w)
        return NULL;
    rank = expr_rank(x);
    if (rank < 1 || expr_rank(w) != 2 || expr_form(w, 1) != expr_form(x, rank - 1))
        return cml_error(n, E_IMPORT, "the weight is %s for data %s", type_text(b->c, w->type),
                         type_text(b->c, x->type));
    y = rank == 1   ? build_reshape_to(b, product(n, build_expand_dims(b, x, 0, 1), w, false, true),
                                       1, (const Idx *[]){expr_form(w, 0)})
        : rank == 2 ? product(n, x, w, false, true)
                    : rows_times(n, x, w, true);
    if (!y || !bias)
        return y;
    return rank == 2 ? build2(b, "nn.bias_add", y, bias, NULL) : build_add(b, y, bias);
}

bool cml_linear_op(CmlNode *n)
{
    const Expr *x = cml_x(n, "x"), *w = x ? cml_x(n, "weight") : NULL, *bias;

    return w && cml_maybe(n, "bias", &bias) && cml_done(n, cml_linear(n, x, w, bias));
}

bool cml_matmul_op(CmlNode *n)
{
    const Expr *x = cml_x(n, "x"), *y = x ? cml_x(n, "y") : NULL;
    bool        tx = cml_bool(n, "transpose_x", false), ty = cml_bool(n, "transpose_y", false);

    return y && cml_done(n, cml_matmul(n, x, y, tx, ty));
}

/* ---- layers ------------------------------------------------------------------------------------------ */

/* The layer's bias of `out` numbers, NULL: none; false with an error. */
static bool bias_of(CmlNode *n, int64_t out, const Expr **bias)
{
    *bias = NULL;
    if (!cml_bool(n, "has_bias", false)) {
        (void)cml_has(n, "bias");
        return true;
    }
    return (*bias = cml_weight(n, "bias", 1, &out, 0)) != NULL;
}

/* Of [N, C, 1, 1] the channels; of values of exact dimensions the last one, but for those that end
 * in 1, 1 (rank 4 and 5). */
bool cml_inner_product(CmlNode *n)
{
    const Build *b = &n->b;
    int64_t      dims[2] = {cml_int(n, "output_channels", 0), cml_int(n, "input_channels", 0)};
    CmlArg      *a = cml_arg(n, "x");
    const Idx   *one = idx_const(b->c->arith, 1);
    const Expr  *x, *w, *bias, *y;
    uint32_t     rank;

    (void)cml_bool(n, "int8_dynamic_quantize", false); /* of how it is computed, not what */
    if (!a || !a->at[0].e || !(w = cml_weight(n, "weights", 2, dims, 0)) ||
        !bias_of(n, dims[0], &bias))
        return false;
    x = a->at[0].e;
    rank = expr_rank(x);
    if (!a->at[0].seq && rank < 4)
        return cml_done(n, cml_linear(n, x, w, bias));
    if (!(x = cml_image(n, "x", 2)))
        return false;
    if (expr_form(x, 2) != one || expr_form(x, 3) != one)
        return cml_error(n, E_IMPORT, "its input is %s, whose last two dimensions should be 1",
                         type_text(b->c, x->type));
    y = cml_linear(n, build_reshape_to(b, x, 2, expr_forms(x).at), w, bias);
    return y && cml_done_image(
                    n, build_reshape_to(
                           b, y, 4, (const Idx *[]){expr_form(y, 0), expr_form(y, 1), one, one}));
}

/* One operand meets the layer's weights, which are stored as [out, in]. */
bool cml_batched_matmul(CmlNode *n)
{
    int64_t     in = cml_int(n, "weight_matrix_first_dimension", 0);
    int64_t     out = cml_int(n, "weight_matrix_second_dimension", 0);
    bool        tx = cml_bool(n, "transpose_a", false), ty = cml_bool(n, "transpose_b", false);
    const Expr *x = cml_x(n, "x"), *y, *w, *bias;

    (void)cml_bool(n, "int8_dynamic_quantize", false);
    if (!x || !cml_maybe(n, "y", &y))
        return false;
    if (y) {
        (void)(cml_has(n, "weights") + cml_has(n, "bias") + cml_bool(n, "has_bias", false));
        return cml_done(n, cml_matmul(n, x, y, tx, ty));
    }
    w = cml_weight(n, "weights", 2, (int64_t[]){out, in}, 0);
    return w && bias_of(n, out, &bias) && cml_done(n, cml_linear(n, x, w, bias));
}

bool cml_dot(CmlNode *n)
{
    const Build *b = &n->b;
    bool         cosine = cml_bool(n, "cosine_similarity", false);
    const Expr  *x = cml_image(n, "x", 2), *y = x ? cml_image(n, "y", 2) : NULL, *r;

    if (!y)
        return false;
    r = build_reduce(b, "sum", build_mul(b, x, y), 1, (int64_t[]){1}, true);
    if (cosine) {
        const Expr *xx = build_reduce(b, "sum", build_mul(b, x, x), 1, (int64_t[]){1}, true);
        const Expr *yy = build_reduce(b, "sum", build_mul(b, y, y), 1, (int64_t[]){1}, true);

        r = build_div(b, r, build1(b, "sqrt", build_mul(b, xx, yy), NULL));
    }
    return cml_done_image(n, r);
}

/* ---- einsum -------------------------------------------------------------------------------------------- */

static const Expr *einsum_product(const Build *b, void *user, const Expr *x, const Expr *y)
{
    (void)b;
    return cml_matmul(user, x, y, false, false);
}

bool cml_einsum(CmlNode *n)
{
    const char  *equation = cml_text(n, "equation", "");
    const Expr **x;
    uint32_t     count = cml_all(n, "values", &x);
    BuildEinsum  s = {
         .equation = equation, .n = count, .x = x, .product = einsum_product, .user = n};

    return count && cml_done(n, build_einsum(&n->b, &s));
}

/* softmax(q k^T / sqrt(d) + mask) v */
bool cml_attention(CmlNode *n)
{
    const Build  *b = &n->b;
    const Expr   *q = cml_x(n, "query"), *k = q ? cml_x(n, "key") : NULL;
    const Expr   *v = k ? cml_x(n, "value") : NULL, *mask, *s;
    SoftmaxAttrs *a = ATTRS(b, SoftmaxAttrs);
    double        d;

    if (!v || !cml_maybe(n, "attn_mask", &mask))
        return false;
    d = (double)build_dim(b, q, expr_rank(q) - 1);
    s = cml_matmul(n, build_by(b, "multiply", q, 1 / sqrt(d)), k, false, true);
    if (mask && s)
        s = dtype_is_bool(expr_dtype(mask)) ? build_where(b, mask, s, build_scalar(b, s, -INFINITY))
                                            : build_add(b, s, mask);
    if (!s)
        return false;
    a->axis = expr_rank(s) - 1;
    return cml_done(n, cml_matmul(n, build1(b, "nn.softmax", s, a), v, false, false));
}
