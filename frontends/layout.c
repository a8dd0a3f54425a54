/* Images, which are NHWC in some formats and NCHW for Relay's operators; lines and volumes alike.
 *
 * The result of a convolution or pooling is transpose(y, [0, 2, 3, 1]), and the next one takes y:
 * the two transposes never come to be.  What lies between and goes cell by cell, or along axes,
 * works on y as well, so that transposes stay only where an image comes in or goes out, or is
 * reshaped. */
#include "frontends/calls.h"

#include <string.h>

enum { LEAST_RANK = 3, MOST_RANK = 5 };

/* Dimension i of a value with its channels last, in that with its channels first. */
static int64_t to_last(uint32_t i, uint32_t rank)
{
    return i == 0 ? 0 : i + 1 == rank ? 1 : i + 1;
}

bool build_is_moved(const Expr *x)
{
    const TransposeAttrs *a;
    uint32_t              rank = x ? expr_rank(x) : 0;

    if (!x || !call_is(x, "transpose") || rank < LEAST_RANK || rank > MOST_RANK)
        return false;
    a = x->u.attrs;
    for (uint32_t i = 0; i < rank; i++)
        if (a->axes.n != rank || a->axes.at[i] != to_last(i, rank))
            return false;
    return true;
}

const Expr *build_channels_first(const Build *b, const Expr *x)
{
    int64_t  axes[MAX_RANK];
    uint32_t rank;

    if (!x || build_is_moved(x))
        return x ? call_arg(x, 0) : NULL;
    rank = expr_rank(x);
    for (uint32_t i = 0; i < rank; i++)
        axes[to_last(i, rank)] = i;
    return build_transpose(b, x, rank, axes);
}

const Expr *build_channels_last(const Build *b, const Expr *x)
{
    int64_t  axes[MAX_RANK];
    uint32_t rank = x ? expr_rank(x) : 0;

    for (uint32_t i = 0; i < rank; i++)
        axes[i] = to_last(i, rank);
    return x ? build_transpose(b, x, rank, axes) : NULL;
}

int64_t moved_axis(int64_t axis, uint32_t rank, uint32_t moved)
{
    return rank == moved && axis > 0 ? to_last((uint32_t)axis, rank) : axis;
}

bool build_axis(const Build *b, int64_t axis, uint32_t rank, uint32_t moved, uint32_t *out)
{
    if (axis < -(int64_t)rank || axis >= (int64_t)rank)
        return build_error(b, E_IMPORT, "axis %lld is outside a tensor of %u dimensions",
                           (long long)axis, rank);
    *out = (uint32_t)moved_axis(axis < 0 ? axis + rank : axis, rank, moved);
    return true;
}

bool build_axes(const Build *b, Ints v, uint32_t rank, uint32_t moved, uint32_t *count,
                int64_t *axes)
{
    bool     seen[MAX_RANK] = {false};
    uint32_t at;

    *count = 0;
    for (uint32_t i = 0; i < v.n; i++) {
        if (!build_axis(b, v.at[i], rank, moved, &at))
            return false;
        if (!seen[at])
            axes[(*count)++] = at;
        seen[at] = true;
    }
    return true;
}

const Expr *build_cells_moved(const Build *b, const Expr *x)
{
    const Idx *dims[IMAGE_RANK], *one = idx_const(b->c->arith, 1);
    uint32_t   rank = expr_rank(x);

    if (rank == 0 || rank > IMAGE_RANK)
        return x;
    if (expr_single(x) && rank < IMAGE_RANK)
        return build_reshape(b, x, 0, NULL);
    for (uint32_t k = 0; k < IMAGE_RANK; k++)
        dims[k] = k < IMAGE_RANK - rank ? one : expr_form(x, k - (IMAGE_RANK - rank));
    x = build_channels_first(b, build_reshape_to(b, x, IMAGE_RANK, dims));
    if (x && rank < IMAGE_RANK) /* [C, 1, 1] is what passes know as a bias */
        x = build_reshape_to(b, x, 3, expr_forms(x).at + 1);
    return x;
}

/* The mean of all rows and columns is what formats have global pooling for. */
static bool is_global_pool(const char *op, const Expr *x, uint32_t n, const int64_t *axes)
{
    return !strcmp(op, "mean") && expr_rank(x) == IMAGE_RANK && dtype_is_float(expr_dtype(x)) &&
           n == 2 && axes[0] + axes[1] == 5 && axes[0] * axes[1] == 6;
}

const Expr *build_reduce_image(const Build *b, const char *op, const Expr *x, uint32_t n,
                               const int64_t *axes, bool keep)
{
    const Expr *y;

    if (!x || !is_global_pool(op, x, n, axes))
        return build_reduce(b, op, x, n, axes, keep);
    y = build1(b, "nn.global_avg_pool2d", x, NULL);
    return keep || !y ? y : build_reshape_to(b, y, 2, expr_forms(y).at);
}

const Expr *build_reduce_moved(const Build *b, const char *op, const Expr *x, uint32_t n,
                               const int64_t *axes, bool keep)
{
    const Expr *y;
    const Idx  *dims[MOST_RANK];
    int64_t     kept[MOST_RANK];
    uint32_t    k = 0, rank = expr_rank(x);
    bool        moves = false;

    for (uint32_t i = 0; i < rank; i++) {
        bool gone = false;

        for (uint32_t j = 0; j < n; j++)
            gone |= axes[j] == to_last(i, rank);
        if (!gone) {
            moves |= k && kept[k - 1] > to_last(i, rank);
            kept[k++] = to_last(i, rank);
        }
    }
    if (keep || !moves)
        return build_reduce_image(b, op, x, n, axes, keep);
    y = build_reduce(b, op, x, n, axes, true);
    for (uint32_t i = 0; y && i < k; i++)
        dims[i] = expr_form(y, (uint32_t)kept[i]);
    return y ? build_reshape_to(b, build_channels_last(b, y), k, dims) : NULL;
}

bool build_same(const Build *b, const Idx *in, int64_t kernel, int64_t stride, int64_t dilation,
                int64_t *begin, int64_t *end)
{
    Arith     *A = b->c->arith;
    const Idx *out = idx_divc(A, idx_addc(A, in, stride - 1), stride);
    const Idx *rest = idx_sub(A, idx_mulc(A, idx_addc(A, out, -1), stride), in);
    int64_t    pad;

    rest = idx_addc(A, rest, (kernel - 1) * dilation + 1);
    if (!idx_is_const(idx_max(A, rest, idx_const(A, 0)), &pad))
        return build_error(b, E_UNSUPPORTED, "its padding is %s, which is no number",
                           dim_text(b->c, rest));
    *begin = pad / 2;
    *end = pad - pad / 2;
    return true;
}
