/* Fourier transforms along the last dimension or dimensions, as products of rows with a matrix:
 *
 *     y[k] = sum over i of x[i] e^(-2 pi j i k / length)
 *
 * Complex numbers are two tensors, of real and of imaginary parts.  Points beyond the length do not
 * count, those that there are not are zero. */
#include "frontends/calls.h"

#include <math.h>

/* Rows of nn.dense's weight: real parts of the frequencies, then imaginary ones; columns: real
 * parts of the points, then imaginary ones.  (x + iy)(c - is) = (xc + ys) + i(yc - xs) */
static const Expr *matrix(const Build *b, const BuildFourier *f, int64_t points, int64_t parts)
{
    int64_t columns = parts * points, bins = f->bins;
    float  *at = NEW_ARRAY(b->c->arena, float, (size_t)(2 * bins * columns) + 1);
    double  scale = f->inverse ? 1 / (double)f->length : 1;

    for (int64_t k = 0; k < bins; k++)
        for (int64_t i = 0; i < points; i++) {
            double phase = 2 * M_PI * (double)(i * k % f->length) / (double)f->length;
            float  co = (float)(cos(phase) * scale), si = (float)(sin(phase) * scale);
            float *re = at + k * columns + i, *im = re + bins * columns;

            si = f->inverse ? -si : si;
            re[0] = co, im[0] = -si;
            if (parts == 2)
                re[points] = si, im[points] = co;
        }
    return build_const(b, DT_F32, 2, (int64_t[]){2 * bins, columns}, at);
}

/* From the first half of a spectrum, whose rest mirrors it, to real numbers: what lies between the
 * first frequency and the middle counts twice. */
static const Expr *half_matrix(const Build *b, const BuildFourier *f, int64_t points)
{
    int64_t columns = 2 * points;
    float  *at = NEW_ARRAY(b->c->arena, float, (size_t)(f->length * columns) + 1);

    for (int64_t i = 0; i < f->length; i++)
        for (int64_t k = 0; k < points; k++) {
            double phase = 2 * M_PI * (double)(i * k % f->length) / (double)f->length;
            double s = (k == 0 || 2 * k == f->length ? 1 : 2) / (double)f->length;

            at[i * columns + k] = (float)(s * cos(phase));
            at[i * columns + points + k] = (float)(-s * sin(phase));
        }
    return build_const(b, DT_F32, 2, (int64_t[]){f->length, columns}, at);
}

static const Expr *cut(const Build *b, const Expr *x, int64_t points)
{
    return build_slice(b, x, expr_rank(x) - 1, 0, points);
}

bool build_fourier(const Build *b, const BuildFourier *f, const Expr *re, const Expr *im,
                   const Expr **out)
{
    uint32_t    last = expr_rank(re) - 1;
    int64_t     cells, most = f->half ? f->length / 2 + 1 : f->length, points;
    const Expr *y, *pair[2];

    if (expr_rank(re) < 1)
        return build_error(b, E_IMPORT, "a transform of a scalar");
    cells = build_dim(b, re, last);
    if (f->length < 1 || f->length > BUILD_FOURIER_MOST || cells < 1 || f->bins < 1 ||
        f->bins > f->length)
        return build_error(b, E_UNSUPPORTED, "a transform of %lld points over %lld",
                           (long long)f->length, (long long)cells);
    points = cells < most ? cells : most;
    pair[0] = cut(b, re, points);
    pair[1] = im ? cut(b, im, points) : NULL;
    y = im ? build_concat(b, 2, pair, last) : pair[0];
    if (!y)
        return false;
    y = build2(b, "nn.dense", y,
               f->half ? half_matrix(b, f, points) : matrix(b, f, points, im ? 2 : 1), NULL);
    if (!y || f->half)
        return (out[0] = y) != NULL;
    out[0] = build_slice(b, y, last, 0, f->bins);
    out[1] = build_slice(b, y, last, f->bins, 2 * f->bins);
    return out[0] && out[1];
}

static const Expr *with_last(const Build *b, const Expr *x, uint32_t axis)
{
    int64_t  axes[MAX_RANK];
    uint32_t rank;

    if (!x || axis + 1 == expr_rank(x))
        return x;
    rank = expr_rank(x);
    for (uint32_t i = 0; i < rank; i++)
        axes[i] = i;
    axes[axis] = rank - 1, axes[rank - 1] = axis;
    return build_transpose(b, x, rank, axes);
}

/* Rows of real numbers are transformed first, and come out last. */
bool build_fouriers(const Build *b, uint32_t n, const BuildFourier *f, const Expr *re,
                    const Expr *im, const Expr **out)
{
    uint32_t rank = expr_rank(re);

    if (rank < n)
        return build_error(b, E_IMPORT, "a transform of %u dimensions of %s", n,
                           type_text(b->c, re->type));
    out[0] = re, out[1] = im;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t    i = f[n - 1].half ? k : n - 1 - k, axis = rank - n + i;
        const Expr *x = with_last(b, out[0], axis), *y = with_last(b, out[1], axis);

        if (!x || (out[1] && !y) || !build_fourier(b, &f[i], x, y, out))
            return false;
        out[0] = with_last(b, out[0], axis);
        out[1] = f[i].half ? NULL : with_last(b, out[1], axis);
        if (!out[0] || !(out[1] || f[i].half))
            return false;
    }
    return true;
}
