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

const Expr *onnx_pool(Node *n, const char *op, const Expr *x)
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
        return onnx_pool_volume(n, op, x, &w);
    a->pool_size = ints_of(b->c, 2, one ? 1 : (int)w.kernel[0], (int)w.kernel[last]);
    a->strides = ints_of(b->c, 2, one ? 1 : (int)w.stride[0], (int)w.stride[last]);
    a->dilation = ints_of(b->c, 2, one ? 1 : (int)w.dilation[0], (int)w.dilation[last]);
    a->padding = ints_of(b->c, 4, one ? 0 : (int)w.begin[0], (int)w.begin[last],
                         one ? 0 : (int)w.end[0], (int)w.end[last]);
    a->ceil_mode = node_int(n, "ceil_mode", 0);
    a->count_include_pad = node_int(n, "count_include_pad", 0);
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
    if (!node_done(n, onnx_pool(n, n->relay, x)) || n->nout < 2 || !*n->p->output.at[1])
        return n->out[0] != NULL;
    return node_ints(n, "kernel_shape", &kernel) &&
           onnx_window(n, x, kernel.at, expr_rank(x) - 2, &w) &&
           (n->out[1] = onnx_pool_indices(n, x, n->out[0], &w)) != NULL;
}

/* (sum of |x|^p over the window)^(1/p): an average that counts the padding, times its size. */
bool convert_lp_pool(Node *n)
{
    const Build *b = &n->b;
    int64_t      p = node_int(n, "p", 2), cells = 1;
    const Expr  *x, *y;
    Pool2dAttrs *a;
    Ints         kernel;

    if (!node_need_rank(n, 0, 3, 4))
        return false;
    if (p != 1 && p != 2)
        return node_error(n, E_UNSUPPORTED, "p is %lld, not 1 or 2", (long long)p);
    x = n->in[0];
    x = p == 1 ? build1(b, "abs", x, NULL) : build2(b, "multiply", x, x, NULL);
    if (!x || !(y = onnx_pool(n, n->relay, x)) || !node_ints(n, "kernel_shape", &kernel))
        return false;
    if (expr_empty(y))
        return node_done(n, y);
    for (uint32_t i = 0; i < kernel.n; i++)
        cells *= kernel.at[i];
    /* The pooling call just built, with the padding counted. */
    while (!call_is(y, n->relay))
        y = call_arg(y, 0);
    a = arena_dup(b->c->arena, y->u.attrs, sizeof *a);
    a->count_include_pad = true;
    y = build1(b, n->relay, onnx_lift(b, x), a);
    if (y && expr_rank(x) == 3)
        y = onnx_drop(b, y);
    y = build2(b, "multiply", y, build_scalar(b, y, (double)cells), NULL);
    return node_done(n, p == 1 ? y : build1(b, "sqrt", y, NULL));
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
    if (p != 1 && p != 2)
        return node_error(n, E_UNSUPPORTED, "p is %lld, not 1 or 2", (long long)p);
    x = n->in[0];
    if (p == 1)
        return node_done(n, spatial(b, "sum", build1(b, "abs", x, NULL)));
    x = build2(b, "multiply", x, x, NULL);
    return node_done(n, x ? build1(b, "sqrt", spatial(b, "sum", x), NULL) : NULL);
}
