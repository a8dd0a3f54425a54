/* Sampling a picture at computed places: GridSample, AffineGrid, DeformConv (frontends/grid.c). */
#include "frontends/onnx/onnx.h"

#include <string.h>

/* X [N, C, H, W] at grid [N, H', W', 2] of (x, y) from -1 to 1; or [N, C, D, H, W] at
 * [N, D', H', W', 3] of (x, y, z). */
bool convert_grid_sample(Node *n)
{
    BuildSampling how = {node_str(n, "mode", "linear"), node_str(n, "padding_mode", "zeros"),
                         node_int(n, "align_corners", 0) != 0};

    if (!node_need_rank(n, 0, 4, 5) ||
        !node_need_rank(n, 1, expr_rank(n->in[0]), expr_rank(n->in[0])))
        return false;
    how.mode = !strncmp(how.mode, "bi", 2) ? how.mode + 2 : how.mode;
    return node_done(n, build_grid_sample(&n->b, n->in[0], n->in[1], &how));
}

/* The middles of `cells` cells between -1 and 1, or places from -1 to 1, of f64. */
static const Expr *linear_places(const Build *b, const Idx *cells, bool align)
{
    const Expr *at = build_arange(b, cells, DT_F64), *size = cell_f64(b, cells),
               *one = build_f64(b, 1), *apart;

    at = build_mul(b, at, build_f64(b, 2));
    if (!align)
        return build_sub(b, build_div(b, build_add(b, at, one), size), one);
    apart = build2(b, "maximum", build_sub(b, size, one), one, NULL);
    /* A single place is in the middle. */
    return build_where(b, build_less(b, one, size), build_sub(b, build_div(b, at, apart), one),
                       build_f64(b, 0));
}

/* theta [N, 2, 3] times the places of a picture of size [N, C, H, W]; or [N, 3, 4] of a volume. */
bool convert_affine_grid(Node *n)
{
    const Build *b = &n->b;
    bool         align = node_int(n, "align_corners", 0) != 0;
    const Expr  *theta = n->in[0], *size, *y = NULL;
    const Idx   *dims[5], *column[5], *one = idx_const(b->c->arith, 1);
    RunDim       d[3];
    int64_t      k;

    if (!node_need_rank(n, 0, 3, 3) || !(size = node_cells(n, 1)))
        return false;
    k = build_elems(b, size) - 2;
    if ((k != 2 && k != 3) || build_dim(b, theta, 1) != k || build_dim(b, theta, 2) != k + 1)
        return node_error(n, E_IMPORT, "theta is %s for a size of %lld numbers",
                          type_text(b->c, theta->type), (long long)k + 2);
    dims[0] = column[0] = expr_form(theta, 0);
    column[k + 1] = dims[k + 1] = idx_const(b->c->arith, k);
    for (uint32_t i = 0; i < k; i++) {
        d[i] = (RunDim){cell_of(b, size, 2 + i), 1, NULL, 1 + i, 1};
        column[1 + i] = one;
    }
    if (!onnx_require(n, build_sub(b, cell_of(b, size, 0), cell_form(b, dims[0])),
                      "size has another batch than theta") ||
        !onnx_bind(n, 0, (uint32_t)k, d, dims + 1))
        return false;
    for (uint32_t i = 0; i <= k; i++) {         /* the last column is added as it is */
        int64_t     at = i < k ? k - 1 - i : k; /* x comes first, and is the last axis */
        const Expr *v = build_reshape_to(b, build_slice(b, theta, 2, at, at + 1), (uint32_t)k + 2,
                                         column),
                   *place = i < k ? linear_places(b, dims[1 + i], align) : NULL;

        if (place) {
            place = build_cast(b, place, expr_dtype(theta));
            v = build_mul(b, v, build_along(b, place, (uint32_t)k + 2, 1 + i));
        }
        y = y ? build_add(b, y, v) : v;
    }
    return node_done(n, y);
}

static const Expr *product(const Build *b, void *n, const Expr *x, const Expr *y)
{
    (void)b;
    return onnx_matmul(n, x, y);
}

bool convert_deform_conv(Node *n)
{
    BuildDeformed d = {.x = n->in[0],
                       .weight = n->in[1],
                       .offset = n->in[2],
                       .mask = node_has(n, 4) ? n->in[4] : NULL,
                       .group = node_int(n, "group", 1),
                       .parts = node_int(n, "offset_group", 1),
                       .product = product,
                       .user = n};
    int64_t       kernel[2];
    OnnxWindow    w;

    for (uint32_t i = 0; i < 5; i++)
        if (i != 3 && node_has(n, i) && !node_need_rank(n, i, 4, 4))
            return false;
    kernel[0] = build_dim(&n->b, n->in[1], 2), kernel[1] = build_dim(&n->b, n->in[1], 3);
    node_ignore(n, "kernel_shape"); /* the weight has it */
    if (!onnx_window(n, n->in[0], kernel, 2, &w))
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        d.window.kernel[i] = w.kernel[i], d.window.stride[i] = w.stride[i];
        d.window.dilation[i] = w.dilation[i];
        d.window.begin[i] = w.begin[i], d.window.end[i] = w.end[i];
    }
    return node_done(n,
                     onnx_bias(n, build_deform_conv(&n->b, &d), node_has(n, 3) ? n->in[3] : NULL));
}
