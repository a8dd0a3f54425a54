/* Convolutions and products of matrices. */
#include "frontends/pytorch/pytorch.h"

#include <string.h>

static const Expr *rounded(const Build *b, const Expr *y, DType t)
{
    return y ? build_cast(b, y, t) : NULL;
}

/* ---- convolution ---------------------------------------------------------------------------------- */

/* As much on both sides, or by a word: what "same" needs, the odd cell behind. */
static bool read_padding(PtNode *n, BuildConv *k)
{
    const PtArg *a = pt_arg(n, "padding");

    if (a && a->kind == PT_STRING) {
        if (strcmp(a->text, "valid") != 0 && strcmp(a->text, "same") != 0)
            return pt_error(n, E_IMPORT, "padding is '%s'", a->text);
        for (uint32_t i = 0; !strcmp(a->text, "same") && i < k->dims; i++) {
            int64_t all = k->window.dilation[i] * (k->window.kernel[i] - 1);

            k->window.begin[i] = all / 2;
            k->window.end[i] = all - all / 2;
        }
        return true;
    }
    if (!pt_numbers(n, "padding", k->dims, 0, k->window.begin))
        return false;
    memcpy(k->window.end, k->window.begin, sizeof k->window.end);
    return true;
}

/* *batch: the data have one. */
static bool read_conv(PtNode *n, uint32_t dims, BuildConv *k, bool *batch)
{
    const Build *b = &n->b;

    k->dims = dims;
    if (!(k->x = pt_tensor(n, "input")) || !(k->w = pt_tensor(n, "weight")) ||
        !pt_maybe(n, "bias", &k->bias))
        return false;
    if (!dims)
        k->dims = dims = expr_rank(k->w) - 2;
    *batch = expr_rank(k->x) == dims + 2;
    if (dims < 1 || dims > 3)
        return pt_error(n, E_UNSUPPORTED, "a convolution over %u dimensions", dims);
    if (expr_rank(k->w) != dims + 2 || (!*batch && expr_rank(k->x) != dims + 1))
        return pt_error(n, E_IMPORT, "the weight is %s for data %s", type_text(b->c, k->w->type),
                        type_text(b->c, k->x->type));
    if (!*batch)
        k->x = build_expand_dims(b, k->x, 0, 1);
    for (uint32_t i = 0; i < dims; i++)
        k->window.kernel[i] = build_dim(b, k->w, 2 + i);
    k->groups = pt_int(n, "groups", 1);
    return k->x && pt_numbers(n, "stride", dims, 1, k->window.stride) &&
           pt_numbers(n, "dilation", dims, 1, k->window.dilation) && read_padding(n, k) &&
           pt_numbers(n, "output_padding", dims, 0, k->extra);
}

static bool conv(PtNode *n, const BuildConv *k, bool batch)
{
    const Expr *y = build_conv(&n->b, k);

    if (y && !batch)
        y = build_reshape_to(&n->b, y, expr_rank(y) - 1, expr_forms(y).at + 1);
    return pt_done(n, y);
}

bool aten_conv(PtNode *n)
{
    BuildConv k = {.dims = 0};
    bool      batch;

    return read_conv(n,
                     strstr(n->p->target, "conv1d")   ? 1
                     : strstr(n->p->target, "conv2d") ? 2
                     : strstr(n->p->target, "conv3d") ? 3
                                                      : 0,
                     &k, &batch) &&
           conv(n, &k, batch);
}

bool aten_conv_transpose(PtNode *n)
{
    BuildConv k = {.transposed = true};
    bool      batch;

    return read_conv(n, 0, &k, &batch) && conv(n, &k, batch);
}

bool aten_convolution(PtNode *n)
{
    BuildConv k = {.transposed = pt_bool(n, "transposed", false)};
    bool      batch;

    return read_conv(n, 0, &k, &batch) && conv(n, &k, batch);
}

/* ---- products of matrices --------------------------------------------------------------------------- */

static const Expr *matmul2(const Build *b, const Expr *x, const Expr *y, bool ty)
{
    MatmulAttrs *a = ATTRS(b, MatmulAttrs);
    DenseAttrs  *d = ATTRS(b, DenseAttrs);
    DType        t;

    if (!x || !y)
        return NULL;
    t = expr_dtype(x);
    a->out_dtype = d->out_dtype = build_sum_dtype(x);
    return rounded(b, ty ? build2(b, "nn.dense", x, y, d) : build2(b, "nn.matmul", x, y, a), t);
}

static const Expr *matmul_batched(const Build *b, const Expr *x, const Expr *y)
{
    BatchMatmulAttrs *a = ATTRS(b, BatchMatmulAttrs);

    a->out_dtype = build_sum_dtype(x);
    a->transpose_b = false;
    return rounded(b, build2(b, "nn.batch_matmul", x, y, a), expr_dtype(x));
}

/* Many rows against one matrix are one product of two matrices. */
static const Expr *rows_times(PtNode *n, const Expr *x, const Expr *y)
{
    const Build *b = &n->b;
    const Idx   *dims[MAX_RANK], *k = expr_form(x, expr_rank(x) - 1), *rows;
    uint32_t     rank = expr_rank(x);
    const Expr  *r;

    rows = idx_const(b->c->arith, 1);
    for (uint32_t i = 0; i + 1 < rank; i++)
        rows = idx_mul(b->c->arith, rows, dims[i] = expr_form(x, i));
    dims[rank - 1] = expr_form(y, 1);
    r = matmul2(b, build_reshape_to(b, x, 2, (const Idx *[]){rows, k}), y, false);
    return build_reshape_to(b, r, rank, dims);
}

const Expr *pt_matmul(PtNode *n, const Expr *x, const Expr *y)
{
    const Build *b = &n->b;
    uint32_t     rx, ry;
    const Idx   *k, *ky;
    const Expr  *r;

    if (!x || !y)
        return NULL;
    rx = expr_rank(x);
    ry = expr_rank(y);
    if (rx == 0 || ry == 0)
        return pt_error(n, E_IMPORT, "an operand of a product of matrices is a scalar");
    k = expr_form(x, rx - 1);
    ky = expr_form(y, ry == 1 ? 0 : ry - 2);
    if (k != ky)
        return pt_error(n, E_IMPORT, "the operands do not fit: %s times %s",
                        type_text(b->c, x->type), type_text(b->c, y->type));
    if (rx == 1 || ry == 1) {
        const Idx *dims[MAX_RANK];
        uint32_t   d = 0;

        r = pt_matmul(n, rx == 1 ? build_expand_dims(b, x, 0, 1) : x,
                      ry == 1 ? build_expand_dims(b, y, 1, 1) : y);
        for (uint32_t i = 0; r && i < expr_rank(r); i++)
            if (!(rx == 1 && i + 2 == expr_rank(r)) && !(ry == 1 && i + 1 == expr_rank(r)))
                dims[d++] = expr_form(r, i);
        return r ? build_reshape_to(b, r, d, dims) : NULL;
    }
    if (rx == 2 && ry == 2)
        return matmul2(b, x, y, false);
    return ry == 2 ? rows_times(n, x, y) : matmul_batched(b, x, y);
}

const Expr *pt_linear(PtNode *n, const Expr *x, const Expr *w, const Expr *bias)
{
    const Build  *b = &n->b;
    BiasAddAttrs *a = ATTRS(b, BiasAddAttrs);
    const Expr   *y;
    uint32_t      rank;

    if (!x || !w)
        return NULL;
    rank = expr_rank(x);
    if (rank < 1 || expr_rank(w) != 2 || expr_form(w, 1) != expr_form(x, rank - 1))
        return pt_error(n, E_IMPORT, "the weight is %s for data %s", type_text(b->c, w->type),
                        type_text(b->c, x->type));
    y = matmul2(b, rank == 1 ? build_expand_dims(b, x, 0, 1) : x, w, true);
    if (rank == 1)
        y = build_reshape_to(b, y, 1, (const Idx *[]){expr_form(w, 0)});
    if (!y || !bias)
        return y;
    if (expr_rank(bias) != 1 || expr_form(bias, 0) != expr_form(w, 0))
        return build_add(b, y, bias);
    a->axis = -1;
    return build2(b, "nn.bias_add", y, bias, a);
}

bool aten_linear(PtNode *n)
{
    const Expr *x = pt_tensor(n, "input"), *w = x ? pt_tensor(n, "weight") : NULL, *bias;

    return w && pt_maybe(n, "bias", &bias) && pt_done(n, pt_linear(n, x, w, bias));
}

/* By the names of its two arguments, which differ. */
bool aten_matmul(PtNode *n)
{
    const Expr *x, *y;

    if (n->p->nin < 2)
        return pt_error(n, E_IMPORT, "an operand is missing");
    x = pt_tensor(n, n->p->names[0]);
    y = x ? pt_tensor(n, n->p->names[1]) : NULL;
    return pt_done(n, pt_matmul(n, x, y));
}

/* beta * self + alpha * (m1 @ m2) */
bool aten_addmm(PtNode *n)
{
    const Build *b = &n->b;
    bool         batch = pt_has(n, "batch1"), vector = pt_has(n, "vec");
    const Expr  *c = pt_tensor(n, "self"), *x, *y, *r;
    double       alpha = pt_float(n, "alpha", 1), beta = pt_float(n, "beta", 1);

    x = c ? pt_tensor(n, batch ? "batch1" : vector ? "mat" : "mat1") : NULL;
    y = x ? pt_tensor(n, batch ? "batch2" : vector ? "vec" : "mat2") : NULL;
    if (!y || !(r = pt_matmul(n, x, y)))
        return false;
    if (alpha != 1)
        r = build_by(b, "multiply", r, alpha);
    if (beta == 0)
        return pt_done(n, r);
    return pt_done(n, build_add(b, r, beta == 1 ? c : build_by(b, "multiply", c, beta)));
}
