/* Pictures sampled at computed places. */
#include "frontends/mxnet/mxnet.h"

#include <string.h>

/* Places from -1 to 1 along one axis of `cells`, the ends included. */
static const Expr *ends(const Build *b, int64_t cells, DType t)
{
    const Expr *at = build_arange(b, idx_const(b->c->arith, cells), t);

    return build_by(b, "add", build_by(b, "multiply", at, cells > 1 ? 2 / (double)(cells - 1) : 0),
                    -1);
}

/* theta [N, 6] times the places (x, y, 1) of a picture of that size: [N, 2, H, W]. */
static const Expr *affine(const Build *b, const Expr *theta, const int64_t *size)
{
    DType       t = expr_dtype(theta);
    const Expr *x = build_reshape(b, ends(b, size[1], t), 3, (int64_t[]){1, 1, size[1]}),
               *y = build_reshape(b, ends(b, size[0], t), 3, (int64_t[]){1, size[0], 1}), *rows[2];
    const Idx *N = expr_form(theta, 0), *one = idx_const(b->c->arith, 1);

    for (int64_t i = 0; i < 2; i++) {
        const Expr *part[3];

        for (int64_t k = 0; k < 3; k++)
            part[k] = build_reshape_to(b, build_slice(b, theta, 1, 3 * i + k, 3 * i + k + 1), 3,
                                       (const Idx *[]){N, one, one});
        rows[i] =
            build_add(b, build_add(b, build_mul(b, part[0], x), build_mul(b, part[1], y)), part[2]);
        rows[i] = build_expand_dims(b, rows[i], 1, 1);
    }
    return build_concat(b, 2, rows, 1);
}

static bool target(const MxNode *n, int64_t *size)
{
    if (!mx_sizes(n, "target_shape", 2, 0, 0, size))
        return false;
    return (size[0] >= 1 && size[1] >= 1) ||
           mx_error(n, E_IMPORT, "'target_shape' is %s", mx_text(n, "target_shape"));
}

static const Expr *theta_of(const MxNode *n, uint32_t i)
{
    if (!mx_rank(n, i, 2, MAX_RANK))
        return NULL;
    if (expr_rank(n->in[i]) > 2)
        n->in[i] = build_matrix(&n->b, n->in[i], 1);
    return build_dim(&n->b, n->in[i], 1) == 6
               ? n->in[i]
               : mx_error(n, E_IMPORT, "operand %u is %s, not six numbers a picture", i,
                          type_text(n->b.c, n->in[i]->type));
}

/* Places from a flow [N, 2, H, W] in cells: those of the picture and so far from there. */
static const Expr *warped(MxNode *n)
{
    const Build *b = &n->b;
    const Expr  *flow = n->in[0], *rows[2];

    if (!mx_rank(n, 0, 4, 4))
        return NULL;
    if (build_dim(b, flow, 1) != 2)
        return mx_error(n, E_IMPORT, "a flow %s", type_text(b->c, flow->type));
    for (uint32_t i = 0; i < 2; i++) { /* x comes first, and is the last axis */
        uint32_t    axis = 3 - i;
        int64_t     cells = build_dim(b, flow, axis);
        const Expr *at = build_along(
            b, build_arange(b, idx_const(b->c->arith, cells), expr_dtype(flow)), 4, axis);

        at = build_add(b, build_slice(b, flow, 1, i, i + 1), at);
        at = build_by(b, "multiply", at, cells > 1 ? 2 / (double)(cells - 1) : 0);
        rows[i] = build_by(b, "add", at, -1);
    }
    return build_concat(b, 2, rows, 1);
}

bool mx_grid_generator(MxNode *n)
{
    const Expr *theta;
    int64_t     size[2];

    if (mx_is(n, "transform_type", "warp"))
        return mx_done(n, warped(n));
    return (theta = theta_of(n, 0)) && target(n, size) && mx_done(n, affine(&n->b, theta, size));
}

/* x [N, C, H, W] at grid [N, 2, H', W'] of x and y from -1 to 1; outside it is 0. */
static const Expr *sampled(MxNode *n, const Expr *x, const Expr *grid)
{
    const Ints          last = ints_dup(n->b.c, (int64_t[]){0, 2, 3, 1}, 4);
    const BuildSampling how = {"linear", "zeros", true};

    if (!x || !grid)
        return NULL;
    if (expr_rank(x) != 4 || expr_rank(grid) != 4)
        return mx_error(n, E_IMPORT, "data of %u dimensions at a grid of %u", expr_rank(x),
                        expr_rank(grid));
    return build_grid_sample(&n->b, x, build_permuted(&n->b, grid, last), &how);
}

bool mx_bilinear_sampler(MxNode *n)
{
    return mx_done(n, sampled(n, n->in[0], n->in[1]));
}

bool mx_spatial_transformer(MxNode *n)
{
    const Expr *theta = theta_of(n, 1);
    int64_t     size[2];

    return theta && target(n, size) && mx_done(n, sampled(n, n->in[0], affine(&n->b, theta, size)));
}

/* ---- deformable convolution ------------------------------------------------------------------------- */

static bool read_window(MxNode *n, BuildWindow *w)
{
    int64_t kernel[2], pad[2];

    if (!mx_sizes(n, "kernel", 2, 1, 1, kernel) || !mx_sizes(n, "stride", 2, 1, 1, w->stride) ||
        !mx_sizes(n, "dilate", 2, 1, 1, w->dilation) || !mx_sizes(n, "pad", 2, 0, 0, pad))
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        w->kernel[i] = kernel[i];
        w->begin[i] = w->end[i] = pad[i];
    }
    return true;
}

const Expr *mx_product(const Build *b, void *user, const Expr *x, const Expr *y)
{
    BatchMatmulAttrs *a = ATTRS(b, BatchMatmulAttrs);

    (void)user;
    a->transpose_b = false;
    return build2(b, "nn.batch_matmul", x, y, a);
}

bool mx_deformable_convolution(MxNode *n)
{
    const bool     masked = strstr(n->row->name, "Modulated") != NULL;
    const uint32_t weight = masked ? 3 : 2;
    BuildDeformed  d = {.x = n->in[0],
                        .weight = n->in[weight],
                        .offset = n->in[1],
                        .mask = masked ? n->in[2] : NULL,
                        .ends = !masked,
                        .group = mx_int(n, "num_group"),
                        .parts = mx_int(n, "num_deformable_group"),
                        .product = mx_product};

    for (uint32_t i = 0; i <= weight; i++)
        if (!mx_rank(n, i, 4, 4))
            return false;
    if (!read_window(n, &d.window))
        return false;
    for (uint32_t i = 0; i < 2; i++)
        if (build_dim(&n->b, d.weight, 2 + i) != d.window.kernel[i])
            return mx_error(n, E_IMPORT, "weights %s for another kernel",
                            type_text(n->b.c, d.weight->type));
    return mx_done(n, mx_bias(&n->b, build_deform_conv(&n->b, &d),
                              n->nin > weight + 1 ? n->in[weight + 1] : NULL, 1));
}
