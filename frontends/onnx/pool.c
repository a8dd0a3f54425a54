/* Pooling.  One spatial dimension is a height of 1. */
#include "frontends/onnx/onnx.h"

#include <math.h>
#include <string.h>

const Expr *onnx_lift(const Build *b, const Expr *x)
{
    const Idx *one = idx_const(b->c->arith, 1);

    return expr_rank(x) == 3 ? build_reshape_to(b, x, 4,
                                                (const Idx *[]){expr_form(x, 0), expr_form(x, 1),
                                                                one, expr_form(x, 2)})
                             : x;
}

const Expr *onnx_drop(const Build *b, const Expr *y)
{
    return y ? build_reshape_to(b, y, 3,
                                (const Idx *[]){expr_form(y, 0), expr_form(y, 1), expr_form(y, 3)})
             : NULL;
}

OnnxPooling onnx_pooling(Node *n)
{
    return (OnnxPooling){node_int(n, "ceil_mode", 0), node_int(n, "count_include_pad", 0)};
}

const Expr *onnx_pool(Node *n, const char *op, const Expr *x, OnnxPooling how)
{
    const Build *b = &n->b;
    Pool2dAttrs *a = ATTRS(b, Pool2dAttrs);
    uint32_t     dims = expr_rank(x) - 2, last = dims - 1;
    bool         one = dims == 1;
    OnnxWindow   w;
    Ints         kernel;
    const Expr  *y;

    if (!node_ints(n, "kernel_shape", &kernel) || kernel.n != dims)
        return node_error(n, E_IMPORT, "kernel_shape is missing or not of %u numbers", dims);
    if (!onnx_window(n, x, kernel.at, dims, &w))
        return NULL;
    if (dims == 3)
        return build_pool_volume(&n->b, op, x, &w, how);
    a->pool_size = ints_of(b->c, 2, one ? 1 : (int)w.kernel[0], (int)w.kernel[last]);
    a->strides = ints_of(b->c, 2, one ? 1 : (int)w.stride[0], (int)w.stride[last]);
    a->dilation = ints_of(b->c, 2, one ? 1 : (int)w.dilation[0], (int)w.dilation[last]);
    a->padding = ints_of(b->c, 4, one ? 0 : (int)w.begin[0], (int)w.begin[last],
                         one ? 0 : (int)w.end[0], (int)w.end[last]);
    a->ceil_mode = how.ceil_mode;
    a->count_include_pad = how.count_include_pad;
    y = build1(b, op, onnx_lift(b, x), a);
    return one ? onnx_drop(b, y) : y;
}

bool convert_pool(Node *n)
{
    const Expr *x;
    OnnxWindow  w;
    Ints        kernel;

    if (!node_need_rank(n, 0, 3, 5))
        return false;
    node_ignore(n, "storage_order"); /* of the indices */
    x = n->in[0];
    if (!node_done(n, onnx_pool(n, n->relay, x, onnx_pooling(n))) || n->nout < 2 ||
        !*n->p->output.at[1])
        return n->out[0] != NULL;
    return node_ints(n, "kernel_shape", &kernel) &&
           onnx_window(n, x, kernel.at, expr_rank(x) - 2, &w) &&
           (n->out[1] = onnx_pool_indices(n, x, n->out[0], &w)) != NULL;
}

/* |x|^p */
static const Expr *to_power(const Build *b, const Expr *x, int64_t p)
{
    if (p == 2)
        return build2(b, "multiply", x, x, NULL);
    x = build1(b, "abs", x, NULL);
    return p == 1 ? x : build_by(b, "power", x, (double)p);
}

static const Expr *root_of(const Build *b, const Expr *x, int64_t p)
{
    if (!x || p == 1)
        return x;
    return p == 2 ? build1(b, "sqrt", x, NULL) : build_by(b, "power", x, 1 / (double)p);
}

/* Zeros behind the data for what a window of ceil_mode hangs over. */
static const Expr *filled_up(const Build *b, const Expr *x, const OnnxWindow *w, uint32_t dims)
{
    int64_t pads[2 * (2 + 3)] = {0};

    for (uint32_t i = 0; i < dims; i++) {
        int64_t in = build_dim(b, x, 2 + i), reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
        int64_t room = in + w->begin[i] + w->end[i] - reach, s = w->stride[i];
        int64_t out = (room + s - 1) / s, last = (in + w->begin[i] - 1) / s;

        out = out < last ? out : last; /* windows after the first */
        pads[2 * (2 + i) + 1] = out * s > room ? out * s - room : 0;
    }
    return build_pad(b, x, pads, 0, "constant");
}

/* (sum of |x|^p over the window)^(1/p): an average that counts the padding, times its size. */
bool convert_lp_pool(Node *n)
{
    const Build *b = &n->b;
    int64_t      p = node_int(n, "p", 2), cells = 1;
    const Expr  *x, *y;
    uint32_t     dims;
    OnnxWindow   w;
    Ints         kernel;

    if (!node_need_rank(n, 0, 3, 5))
        return false;
    if (p < 1 || p > 1 << 10)
        return node_error(n, E_UNSUPPORTED, "p is %lld, not 1 to 1024", (long long)p);
    dims = expr_rank(n->in[0]) - 2;
    if (!node_ints(n, "kernel_shape", &kernel) || kernel.n != dims)
        return node_error(n, E_IMPORT, "kernel_shape is missing or not of %u numbers", dims);
    x = to_power(b, n->in[0], p);
    if (x && node_int(n, "ceil_mode", 0))
        x = onnx_window(n, x, kernel.at, dims, &w) ? filled_up(b, x, &w, dims) : NULL;
    if (!x || !(y = onnx_pool(n, n->relay, x, (OnnxPooling){false, true})))
        return false;
    for (uint32_t i = 0; i < kernel.n; i++)
        cells *= kernel.at[i];
    return node_done(n, root_of(b, build_by(b, "multiply", y, (double)cells), p));
}

static const Expr *spatial(const Build *b, const char *op, const Expr *x)
{
    int64_t axes[MAX_RANK];

    for (uint32_t i = 2; i < expr_rank(x); i++)
        axes[i - 2] = i;
    return build_reduce(b, op, x, expr_rank(x) - 2, axes, true);
}

bool convert_global_pool(Node *n)
{
    if (!node_need_rank(n, 0, 3, MAX_RANK))
        return false;
    if (expr_rank(n->in[0]) == 4)
        return node_done(n, build1(&n->b, n->relay, n->in[0], NULL));
    return node_done(n, spatial(&n->b, strstr(n->relay, "max") ? "max" : "mean", n->in[0]));
}

bool convert_global_lp_pool(Node *n)
{
    const Build *b = &n->b;
    int64_t      p = node_int(n, "p", 2);
    const Expr  *x;

    if (!node_need_rank(n, 0, 3, MAX_RANK))
        return false;
    if (p < 1 || p > 1 << 10)
        return node_error(n, E_UNSUPPORTED, "p is %lld, not 1 to 1024", (long long)p);
    x = to_power(b, n->in[0], p);
    return node_done(n, x ? root_of(b, spatial(b, "sum", x), p) : NULL);
}
