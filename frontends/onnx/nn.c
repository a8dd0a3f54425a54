/* Convolution and matrix products. */
#include "frontends/onnx/onnx.h"

#include <string.h>

#define MAX_SPATIAL 3

/* The window of a convolution or pooling: pads begin.., end.. as ONNX has them. */
bool onnx_window(Node *n, const Expr *x, const int64_t *kernel, uint32_t dims, OnnxWindow *w)
{
    const char *how = node_str(n, "auto_pad", "NOTSET");
    Ints        v;

    for (uint32_t i = 0; i < dims; i++) {
        w->kernel[i] = kernel[i];
        w->stride[i] = w->dilation[i] = 1;
        w->begin[i] = w->end[i] = 0;
    }
    if (node_ints(n, "strides", &v)) {
        if (v.n != dims)
            return node_error(n, E_IMPORT, "%u strides for %u dimensions", v.n, dims);
        memcpy(w->stride, v.at, dims * sizeof *v.at);
    }
    if (node_ints(n, "dilations", &v)) {
        if (v.n != dims)
            return node_error(n, E_IMPORT, "%u dilations for %u dimensions", v.n, dims);
        memcpy(w->dilation, v.at, dims * sizeof *v.at);
    }
    for (uint32_t i = 0; i < dims; i++)
        if (w->stride[i] < 1 || w->dilation[i] < 1 || w->kernel[i] < 1 ||
            w->stride[i] > INT32_MAX || w->dilation[i] > INT32_MAX || w->kernel[i] > INT32_MAX)
            return node_error(n, E_IMPORT, "kernel, strides and dilations have to be above 0");
    if (strcmp(how, "NOTSET") && *how)
        node_ignore(n, "pads"); /* auto_pad stands for them */
    if (!strcmp(how, "VALID"))
        return true;
    if (!strcmp(how, "SAME_UPPER") || !strcmp(how, "SAME_LOWER")) {
        for (uint32_t i = 0; i < dims; i++) {
            Arith     *A = n->b.c->arith;
            const Idx *in = expr_form(x, 2 + i);
            const Idx *out = idx_divc(A, idx_addc(A, in, w->stride[i] - 1), w->stride[i]);
            const Idx *rest = idx_sub(A, idx_mulc(A, idx_addc(A, out, -1), w->stride[i]), in);
            int64_t    pad;

            rest = idx_addc(A, rest, (w->kernel[i] - 1) * w->dilation[i] + 1);
            if (!idx_is_const(idx_max(A, rest, idx_const(A, 0)), &pad))
                return node_error(n, E_UNSUPPORTED, "auto_pad pads with %s, which is no number",
                                  dim_text(n->b.c, rest));
            w->begin[i] = !strcmp(how, "SAME_LOWER") ? pad - pad / 2 : pad / 2;
            w->end[i] = pad - w->begin[i];
        }
        return true;
    }
    if (strcmp(how, "NOTSET") && *how)
        return node_error(n, E_IMPORT, "auto_pad is '%s'", how);
    if (node_ints(n, "pads", &v)) {
        if (v.n != 2 * dims)
            return node_error(n, E_IMPORT, "pads are %u numbers, not %u", v.n, 2 * dims);
        for (uint32_t i = 0; i < 2 * dims; i++)
            if (v.at[i] < 0 || v.at[i] > INT32_MAX)
                return node_error(n, E_IMPORT, "pads have to be 0 or more");
        memcpy(w->begin, v.at, dims * sizeof *v.at);
        memcpy(w->end, v.at + dims, dims * sizeof *v.at);
    }
    return true;
}

/* ---- convolution ---------------------------------------------------------------------------------- */

/* Shape of the weight against kernel_shape, groups against channels. */
static bool check_conv(Node *n, const Expr *x, const Expr *w, bool transposed, int64_t *group)
{
    uint32_t dims = expr_rank(x) - 2;
    Ints     v;

    *group = node_int(n, "group", 1);
    if (expr_rank(w) != expr_rank(x))
        return node_error(n, E_IMPORT, "the weight has %u dimensions, the data %u", expr_rank(w),
                          expr_rank(x));
    if (node_ints(n, "kernel_shape", &v))
        for (uint32_t i = 0; i < v.n || i < dims; i++)
            if (v.n != dims || v.at[i] != build_dim(&n->b, w, 2 + i))
                return node_error(n, E_IMPORT, "kernel_shape is not that of the weight, %s",
                                  type_text(n->b.c, w->type));
    if (*group < 1 || build_dim(&n->b, x, 1) % *group || build_dim(&n->b, w, 0) % *group)
        return node_error(n, E_IMPORT,
                          "group is %lld, which does not divide %lld channels of data "
                          "or %lld of the weight",
                          (long long)*group, (long long)build_dim(&n->b, x, 1),
                          (long long)build_dim(&n->b, w, 0));
    if (transposed ? build_dim(&n->b, w, 0) != build_dim(&n->b, x, 1)
                   : build_dim(&n->b, w, 1) * *group != build_dim(&n->b, x, 1)) {
        node_error(
            n, E_IMPORT, "the weight is for %lld input channels, the data have %lld",
            (long long)(transposed ? build_dim(&n->b, w, 0) : build_dim(&n->b, w, 1) * *group),
            (long long)build_dim(&n->b, x, 1));
        diag_note(n->b.c->diags, n->b.loc, "data %s, weight %s", type_text(n->b.c, x->type),
                  type_text(n->b.c, w->type));
        return false;
    }
    return true;
}

static const Expr *rounded(const Build *b, const Expr *y, const Expr *like)
{
    return y ? build_cast(b, y, expr_dtype(like)) : NULL;
}

const Expr *onnx_bias(Node *n, const Expr *x, const Expr *bias)
{
    if (!x || !bias)
        return x;
    if (!expr_has_shape(bias) || expr_rank(bias) != 1 ||
        build_dim(&n->b, bias, 0) != build_dim(&n->b, x, 1))
        return node_error(n, E_IMPORT, "the bias is %s, the result has %lld channels",
                          type_text(n->b.c, bias->type), (long long)build_dim(&n->b, x, 1));
    return build2(&n->b, "nn.bias_add", x, bias, NULL);
}

const Expr *onnx_conv(Node *n, const Expr *x, const Expr *w, const Expr *bias)
{
    uint32_t   dims = expr_rank(x) - 2;
    int64_t    group, kernel[MAX_SPATIAL] = {0};
    OnnxWindow win = {.kernel = {0}};

    if (!check_conv(n, x, w, false, &group))
        return NULL;
    for (uint32_t i = 0; i < dims; i++)
        kernel[i] = build_dim(&n->b, w, 2 + i);
    if (!onnx_window(n, x, kernel, dims, &win))
        return NULL;
    return onnx_bias(
        n,
        build_conv(&n->b,
                   &(BuildConv){.x = x, .w = w, .dims = dims, .groups = group, .window = win}),
        bias);
}

bool convert_conv(Node *n)
{
    return node_need_rank(n, 0, 3, 5) && node_need_rank(n, 1, 3, 5) &&
           node_done(n, onnx_conv(n, n->in[0], n->in[1], node_has(n, 2) ? n->in[2] : NULL));
}

/* ONNX takes pads off the full result and adds output_padding at the end; output_shape fixes the
 * pads instead. */
bool convert_conv_transpose(Node *n)
{
    const Build *b = &n->b;
    const char  *how = node_str(n, "auto_pad", "NOTSET");
    BuildConv    k = {.x = n->in[0], .w = n->in[1], .transposed = true};
    int64_t      kernel[MAX_SPATIAL];
    Ints         v;

    if (!node_need_rank(n, 0, 3, 5) || !node_need_rank(n, 1, 3, 5))
        return false;
    if (!check_conv(n, k.x, k.w, true, &k.groups))
        return false;
    k.dims = expr_rank(k.x) - 2;
    for (uint32_t i = 0; i < k.dims; i++)
        kernel[i] = build_dim(b, k.w, 2 + i);
    if (!onnx_window(n, k.x, kernel, k.dims, &k.window))
        return false;
    if (node_ints(n, "output_padding", &v)) {
        if (v.n != k.dims)
            return node_error(n, E_IMPORT, "%u output_padding for %u dimensions", v.n, k.dims);
        memcpy(k.extra, v.at, k.dims * sizeof *v.at);
    }
    if (node_ints(n, "output_shape", &v) || str_starts(how, "SAME")) {
        bool given = node_ints(n, "output_shape", &v);

        if (given && v.n != k.dims && v.n != k.dims + 2)
            return node_error(n, E_IMPORT, "output_shape has %u numbers, not %u", v.n, k.dims);
        for (uint32_t i = 0; i < k.dims; i++) {
            int64_t in = build_dim(b, k.x, 2 + i);
            int64_t out = given ? v.at[v.n - k.dims + i] : in * k.window.stride[i];
            int64_t total = k.window.stride[i] * (in - 1) + k.extra[i] +
                            (k.window.kernel[i] - 1) * k.window.dilation[i] + 1 - out;

            /* A result larger than the full one: more cells at the end. */
            if (total < 0) {
                k.extra[i] -= total;
                total = 0;
            }
            k.window.begin[i] = !strcmp(how, "SAME_UPPER") ? total / 2 : total - total / 2;
            k.window.end[i] = total - k.window.begin[i];
        }
    }
    return node_done(n, onnx_bias(n, build_conv(b, &k), node_has(n, 2) ? n->in[2] : NULL));
}

/* ---- matrix products ------------------------------------------------------------------------------- */

static const Expr *matmul2(const Build *b, const Expr *x, const Expr *y, bool tx, bool ty)
{
    MatmulAttrs *a = ATTRS(b, MatmulAttrs);
    DenseAttrs  *d = ATTRS(b, DenseAttrs);

    if (!x || !y)
        return NULL;
    a->out_dtype = d->out_dtype = build_sum_dtype(x);
    a->transpose_a = tx;
    a->transpose_b = ty;
    x = !tx && ty ? build2(b, "nn.dense", x, y, d) : build2(b, "nn.matmul", x, y, a);
    return *a->out_dtype ? rounded(b, x, y) : x;
}

static const Expr *matmul_batched(const Build *b, const Expr *x, const Expr *y, bool tx, bool ty)
{
    BatchMatmulAttrs *a = ATTRS(b, BatchMatmulAttrs);

    a->out_dtype = build_sum_dtype(x);
    a->transpose_a = tx;
    a->transpose_b = ty;
    x = build2(b, "nn.batch_matmul", x, y, a);
    return *a->out_dtype ? rounded(b, x, y) : x;
}

/* A product without its dimensions `rows` and `columns`, which a vector was given. */
static const Expr *drop_ones(const Build *b, const Expr *r, bool rows, bool columns)
{
    const Idx *dims[MAX_RANK];
    uint32_t   rank = expr_rank(r), k = 0;

    for (uint32_t i = 0; i < rank; i++)
        if (!(rows && i + 2 == rank) && !(columns && i + 1 == rank))
            dims[k++] = expr_form(r, i);
    return build_reshape_to(b, r, k, dims);
}

/* numpy.matmul: vectors get a dimension that is dropped again; leading dimensions broadcast.  Many
 * rows against one matrix are one product of two matrices. */
/* x with `at` as dimension d; NULL with an error. */
static const Expr *sized_along(Node *n, const Expr *x, uint32_t d, const Idx *at)
{
    const Idx *want[MAX_RANK] = {NULL};

    want[d] = at;
    return node_sized(n, x, want);
}

const Expr *onnx_matmul(Node *n, const Expr *x, const Expr *y)
{
    const Build *b = &n->b;
    uint32_t     rx = expr_rank(x), ry = expr_rank(y);
    const Idx   *dims[MAX_RANK], *one = idx_const(b->c->arith, 1), *rows = one, *k, *ky;
    const Expr  *r;

    if (rx == 0 || ry == 0)
        return node_error(n, E_IMPORT, "an operand of a matrix product is a scalar");
    k = expr_form(x, rx - 1);
    ky = expr_form(y, ry == 1 ? 0 : ry - 2);
    if (k != ky && onnx_decided(n->im, ky)) { /* the run finds them equal */
        y = sized_along(n, y, ry == 1 ? 0 : ry - 2, k);
        ky = k;
    } else if (k != ky && onnx_decided(n->im, k)) {
        x = sized_along(n, x, rx - 1, ky);
        k = ky;
    }
    if (!x || !y)
        return NULL;
    if (k != ky) {
        node_error(n, E_IMPORT, "the operands do not fit: %s columns against %s rows",
                   dim_text(b->c, k), dim_text(b->c, ky));
        diag_note(b->c->diags, b->loc, "%s times %s", type_text(b->c, x->type),
                  type_text(b->c, y->type));
        return NULL;
    }
    if (rx == 1 || ry == 1) {
        const Expr *x2 = rx == 1 ? build_reshape_to(b, x, 2, (const Idx *[]){one, k}) : x;
        const Expr *y2 = ry == 1 ? build_reshape_to(b, y, 2, (const Idx *[]){k, one}) : y;

        if (!x2 || !y2 || !(r = onnx_matmul(n, x2, y2)))
            return NULL;
        return drop_ones(b, r, rx == 1, ry == 1);
    }
    if (rx == 2 && ry == 2)
        return matmul2(b, x, y, false, false);
    for (uint32_t i = 0; i + 2 < rx; i++)
        rows = idx_mul(b->c->arith, rows, expr_form(x, i));
    if (ry == 2 && rows != one) {
        rows = idx_mul(b->c->arith, rows, expr_form(x, rx - 2));
        for (uint32_t i = 0; i < rx; i++)
            dims[i] = i + 1 == rx ? expr_form(y, 1) : expr_form(x, i);
        r = matmul2(b, build_reshape_to(b, x, 2, (const Idx *[]){rows, k}), y, false, false);
        return build_reshape_to(b, r, rx, dims);
    }
    return matmul_batched(b, x, y, false, false);
}

static bool operands(Node *n)
{
    return node_need_rank(n, 0, 1, MAX_RANK) && node_need_rank(n, 1, 1, MAX_RANK);
}

bool convert_matmul(Node *n)
{
    return operands(n) && node_done(n, onnx_matmul(n, n->in[0], n->in[1]));
}

static const Expr *times(const Build *b, const Expr *x, double v)
{
    return v == 1 ? x : build_by(b, "multiply", x, v);
}

bool convert_fused_matmul(Node *n)
{
    static const char *const batches[] = {"transBatchA", "transBatchB"};
    bool                     tx = node_int(n, "transA", 0), ty = node_int(n, "transB", 0);
    const Expr              *r;

    if (!operands(n))
        return false;
    for (uint32_t i = 0; i < 2; i++) { /* the first dimension behind the others of the batch */
        int64_t  perm[MAX_RANK];
        uint32_t rank = expr_rank(n->in[i]);

        if (!node_int(n, batches[i], 0) || rank < 3)
            continue;
        for (uint32_t k = 0; k < rank; k++)
            perm[k] = k + 2 < rank ? k + 1 : k + 2 == rank ? 0 : k;
        n->in[i] = build_transpose(&n->b, n->in[i], rank, perm);
    }
    if (!tx && !ty)
        r = onnx_matmul(n, n->in[0], n->in[1]);
    else if (expr_rank(n->in[0]) == 2 && expr_rank(n->in[1]) == 2)
        r = matmul2(&n->b, n->in[0], n->in[1], tx, ty);
    else
        r = matmul_batched(&n->b, n->in[0], n->in[1], tx, ty);
    return node_done(n, times(&n->b, r, node_float(n, "alpha", 1)));
}

/* alpha * A' * B' + beta * C; a C of [N] is a bias. */
bool convert_gemm(Node *n)
{
    const Build *b = &n->b;
    double       beta = node_float(n, "beta", 1);
    const Expr  *y, *bias;

    node_ignore(n, "broadcast"); /* of C, whose shape says it */
    if (!node_need_rank(n, 0, 2, 2) || !node_need_rank(n, 1, 2, 2))
        return false;
    y = matmul2(b, n->in[0], n->in[1], node_int(n, "transA", 0), node_int(n, "transB", 0));
    y = times(b, y, node_float(n, "alpha", 1));
    if (!y || !node_has(n, 2) || beta == 0)
        return node_done(n, y);
    if (!node_need_rank(n, 2, 0, 2))
        return false;
    bias = times(b, n->in[2], beta);
    if (expr_rank(bias) == 1 && expr_form(bias, 0) == expr_form(y, 1))
        return node_done(n, build2(b, "nn.bias_add", y, bias, NULL));
    return node_done(n, build2(b, "add", y, bias, NULL));
}
