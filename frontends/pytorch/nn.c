/* Convolutions and products of matrices. */
#include "frontends/pytorch/pytorch.h"

#include <string.h>

const char *pt_sum_dtype(const Expr *x)
{
    return dtype_is_float(expr_dtype(x)) && expr_dtype(x).bits == 16 ? "f32" : "";
}

static const Expr *rounded(const Build *b, const Expr *y, DType t)
{
    return y ? build_cast(b, y, t) : NULL;
}

/* ---- convolution ---------------------------------------------------------------------------------- */

enum { MAX_SPATIAL = 3 };

typedef struct {
    const Expr *x, *w, *bias;
    uint32_t    dims;
    int64_t     stride[MAX_SPATIAL], dilation[MAX_SPATIAL], begin[MAX_SPATIAL], end[MAX_SPATIAL];
    int64_t     extra[MAX_SPATIAL], kernel[MAX_SPATIAL], groups;
    bool        transposed, batch; /* batch: the data had one */
} Conv;

/* As much on both sides, or by a word: what "same" needs, the odd cell behind. */
static bool read_padding(PtNode *n, Conv *k)
{
    const PtArg *a = pt_arg(n, "padding");

    if (a && a->kind == PT_STRING) {
        if (strcmp(a->text, "valid") != 0 && strcmp(a->text, "same") != 0)
            return pt_error(n, E_IMPORT, "padding is '%s'", a->text);
        for (uint32_t i = 0; !strcmp(a->text, "same") && i < k->dims; i++) {
            int64_t all = k->dilation[i] * (k->kernel[i] - 1);

            k->begin[i] = all / 2;
            k->end[i] = all - all / 2;
        }
        return true;
    }
    if (!pt_numbers(n, "padding", k->dims, 0, k->begin))
        return false;
    memcpy(k->end, k->begin, sizeof k->end);
    return true;
}

static bool check_conv(PtNode *n, const Conv *k)
{
    const Build *b = &n->b;
    int64_t      channels = build_dim(b, k->x, 1), of = build_dim(b, k->w, 0);

    for (uint32_t i = 0; i < k->dims; i++)
        if (k->stride[i] < 1 || k->dilation[i] < 1 || k->begin[i] < 0 || k->extra[i] < 0)
            return pt_error(n, E_IMPORT, "a stride or dilation below 1, or a padding below 0");
    if (k->groups < 1 || of % k->groups ||
        (k->transposed ? of : build_dim(b, k->w, 1) * k->groups) != channels)
        return pt_error(n, E_IMPORT, "the weight is %s for data %s in %lld groups",
                        type_text(b->c, k->w->type), type_text(b->c, k->x->type),
                        (long long)k->groups);
    return true;
}

static bool read_conv(PtNode *n, uint32_t dims, Conv *k)
{
    const Build *b = &n->b;

    k->dims = dims;
    if (!(k->x = pt_tensor(n, "input")) || !(k->w = pt_tensor(n, "weight")) ||
        !pt_maybe(n, "bias", &k->bias))
        return false;
    if (!dims)
        k->dims = dims = expr_rank(k->w) - 2;
    k->batch = expr_rank(k->x) == dims + 2;
    if (dims < 1 || dims > MAX_SPATIAL)
        return pt_error(n, E_UNSUPPORTED, "a convolution over %u dimensions", dims);
    if (expr_rank(k->w) != dims + 2 || (!k->batch && expr_rank(k->x) != dims + 1))
        return pt_error(n, E_IMPORT, "the weight is %s for data %s", type_text(b->c, k->w->type),
                        type_text(b->c, k->x->type));
    if (!k->batch)
        k->x = build_expand_dims(b, k->x, 0, 1);
    for (uint32_t i = 0; i < dims; i++)
        k->kernel[i] = build_dim(b, k->w, 2 + i);
    k->groups = pt_int(n, "groups", 1);
    return k->x && pt_numbers(n, "stride", dims, 1, k->stride) &&
           pt_numbers(n, "dilation", dims, 1, k->dilation) && read_padding(n, k) &&
           pt_numbers(n, "output_padding", dims, 0, k->extra) && check_conv(n, k);
}

static Ints pair(Ctx *c, const Conv *k, const int64_t *v, int64_t first)
{
    return ints_of(c, 2, (int)(k->dims == 1 ? first : v[0]), (int)v[k->dims - 1]);
}

static Ints borders(Ctx *c, const Conv *k)
{
    bool one = k->dims == 1;

    return ints_of(c, 4, one ? 0 : (int)k->begin[0], (int)k->begin[k->dims - 1],
                   one ? 0 : (int)k->end[0], (int)k->end[k->dims - 1]);
}

static const Expr *conv1d(const Build *b, const Conv *k)
{
    Conv1dAttrs *a = ATTRS(b, Conv1dAttrs);

    a->strides = ints_dup(b->c, k->stride, 1);
    a->dilation = ints_dup(b->c, k->dilation, 1);
    a->padding = ints_of(b->c, 2, (int)k->begin[0], (int)k->end[0]);
    a->groups = k->groups;
    a->channels = build_dim(b, k->w, 0);
    a->kernel_size = ints_dup(b->c, k->kernel, 1);
    a->out_dtype = pt_sum_dtype(k->x);
    return build2(b, "nn.conv1d", k->x, k->w, a);
}

static const Expr *conv2d(const Build *b, const Conv *k)
{
    Conv2dAttrs *a = ATTRS(b, Conv2dAttrs);

    a->strides = ints_dup(b->c, k->stride, 2);
    a->dilation = ints_dup(b->c, k->dilation, 2);
    a->padding = borders(b->c, k);
    a->groups = k->groups;
    a->channels = build_dim(b, k->w, 0);
    a->kernel_size = ints_dup(b->c, k->kernel, 2);
    a->out_dtype = pt_sum_dtype(k->x);
    return build2(b, "nn.conv2d", k->x, k->w, a);
}

/* [.., W] -> [.., 1, W], and back. */
static const Expr *lifted(const Build *b, const Expr *x)
{
    return build_expand_dims(b, x, 2, 1);
}

static const Expr *dropped(const Build *b, const Expr *y)
{
    return y ? build_reshape_to(b, y, 3,
                                (const Idx *[]){expr_form(y, 0), expr_form(y, 1), expr_form(y, 3)})
             : NULL;
}

static const Expr *conv_transpose(const Build *b, const Conv *k)
{
    Conv2dTransposeAttrs *a = ATTRS(b, Conv2dTransposeAttrs);
    bool                  one = k->dims == 1;
    const Expr           *y;

    a->strides = pair(b->c, k, k->stride, 1);
    a->dilation = pair(b->c, k, k->dilation, 1);
    a->padding = borders(b->c, k);
    a->output_padding = pair(b->c, k, k->extra, 0);
    a->groups = k->groups;
    a->channels = build_dim(b, k->w, 1) * k->groups;
    a->kernel_size = pair(b->c, k, k->kernel, 1);
    y = build2(b, "nn.conv2d_transpose", one ? lifted(b, k->x) : k->x, one ? lifted(b, k->w) : k->w,
               a);
    return one ? dropped(b, y) : y;
}

static const Expr *conv_volume(const Build *b, const Conv *k)
{
    BuildWindow w;

    memcpy(w.kernel, k->kernel, sizeof w.kernel);
    memcpy(w.stride, k->stride, sizeof w.stride);
    memcpy(w.dilation, k->dilation, sizeof w.dilation);
    memcpy(w.begin, k->begin, sizeof w.begin);
    memcpy(w.end, k->end, sizeof w.end);
    return k->transposed ? build_conv_transpose_volume(b, k->x, k->w, &w, k->extra, k->groups)
                         : build_conv_volume(b, k->x, k->w, &w, k->groups, pt_sum_dtype(k->x));
}

static bool conv(PtNode *n, Conv *k)
{
    const Build *b = &n->b;
    DType        t = expr_dtype(k->x);
    const Expr  *y = k->dims == 3    ? conv_volume(b, k)
                     : k->transposed ? conv_transpose(b, k)
                     : k->dims == 1  ? conv1d(b, k)
                                     : conv2d(b, k);

    if (!(y = rounded(b, y, t)))
        return false;
    if (k->bias)
        y = build2(b, "nn.bias_add", y, k->bias, NULL);
    if (y && !k->batch)
        y = build_reshape_to(b, y, expr_rank(y) - 1, expr_forms(y).at + 1);
    return pt_done(n, y);
}

bool aten_conv(PtNode *n)
{
    Conv k = {.dims = 0};

    return read_conv(n,
                     strstr(n->p->target, "conv1d")   ? 1
                     : strstr(n->p->target, "conv2d") ? 2
                     : strstr(n->p->target, "conv3d") ? 3
                                                      : 0,
                     &k) &&
           conv(n, &k);
}

bool aten_conv_transpose(PtNode *n)
{
    Conv k = {.transposed = true};

    return read_conv(n, 0, &k) && conv(n, &k);
}

bool aten_convolution(PtNode *n)
{
    Conv k = {.transposed = pt_bool(n, "transposed", false)};

    return read_conv(n, 0, &k) && conv(n, &k);
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
    a->out_dtype = d->out_dtype = pt_sum_dtype(x);
    return rounded(b, ty ? build2(b, "nn.dense", x, y, d) : build2(b, "nn.matmul", x, y, a), t);
}

static const Expr *matmul_batched(const Build *b, const Expr *x, const Expr *y)
{
    BatchMatmulAttrs *a = ATTRS(b, BatchMatmulAttrs);

    a->out_dtype = pt_sum_dtype(x);
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
