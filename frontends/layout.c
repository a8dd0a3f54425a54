/* Images, which are NHWC in some formats and NCHW for Relay's operators.
 *
 * A value that a convolution or pooling gives is transpose(y, [0, 2, 3, 1]), of which the next one
 * takes y: the two transposes never come to be.  What lies between and goes cell by cell, or along
 * axes, does its work on y as well, so that transposes stay only where an image comes in or goes
 * out, or is reshaped. */
#include "frontends/common.h"

#include <string.h>

static const int64_t to_first[IMAGE_RANK] = {0, 3, 1, 2}, to_last[IMAGE_RANK] = {0, 2, 3, 1};

bool build_is_moved(const Expr *x)
{
    const TransposeAttrs *a;

    if (!x || !call_is(x, "transpose") || expr_rank(x) != IMAGE_RANK)
        return false;
    a = x->u.attrs;
    return a->axes.n == IMAGE_RANK && !memcmp(a->axes.at, to_last, sizeof to_last);
}

const Expr *build_channels_first(const Build *b, const Expr *x)
{
    return build_is_moved(x) ? call_arg(x, 0) : build_transpose(b, x, IMAGE_RANK, to_first);
}

const Expr *build_channels_last(const Build *b, const Expr *x)
{
    return build_transpose(b, x, IMAGE_RANK, to_last);
}

int64_t moved_axis(int64_t axis, uint32_t rank)
{
    return rank == IMAGE_RANK && axis > 0 ? (axis == 3 ? 1 : axis + 1) : axis;
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

const Expr *build_reduce_moved(const Build *b, const char *op, const Expr *x, uint32_t n,
                               const int64_t *axes)
{
    const Expr *y;
    const Idx  *dims[IMAGE_RANK];
    int64_t     kept[IMAGE_RANK];
    uint32_t    k = 0;
    bool        moves = false;

    for (uint32_t i = 0; i < IMAGE_RANK; i++) {
        bool gone = false;

        for (uint32_t j = 0; j < n; j++)
            gone |= axes[j] == to_last[i];
        if (!gone) {
            moves |= k && kept[k - 1] > to_last[i];
            kept[k++] = to_last[i];
        }
    }
    if (!moves)
        return build_reduce(b, op, x, n, axes, false);
    y = build_channels_last(b, build_reduce(b, op, x, n, axes, true));
    for (uint32_t i = 0, at = 0; y && i < IMAGE_RANK; i++)
        if (at < k && kept[at] == to_last[i])
            dims[at++] = expr_form(y, i);
    return build_reshape_to(b, y, k, dims);
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
