/* Fourier transforms, as products of rows with a matrix:
 *
 *     y[k] = sum over i of x[i] e^(-2 pi j i k / length)
 *
 * Complex numbers are two tensors, of real and of imaginary parts, or pairs beside each other.
 * Points beyond the length do not count, those that there are not are zero.
 *
 * A matrix is nn.dense's weight, with a row for each number that comes out and a column for each
 * that goes in.  Where the run says how long a transform is, the matrix is computed. */
#include "frontends/calls.h"

#include <math.h>

/* ---- matrices that are known when compiling ----------------------------------------------------- */

typedef struct {
    int64_t points, parts, bins, length;
    bool    inverse, half, pairs;
} Matrix;

/* Number `part` of each of `cells`, which are `parts` numbers: beside each other, or each part by
 * itself. */
static int64_t number(const Matrix *m, int64_t cell, int64_t cells, int64_t part, int64_t parts)
{
    return m->pairs ? cell * parts + part : part * cells + cell;
}

/* What comes out is (x + iy)(c - is) = (xc + ys) + i(yc - xs), or its first part.  Of half a
 * spectrum, whose rest mirrors it, what lies between the first frequency and the middle counts
 * twice. */
static const Expr *known_matrix(const Build *b, DType t, const Matrix *m)
{
    int64_t  results = m->half ? 1 : 2, columns = m->points * m->parts;
    int64_t  dims[] = {m->bins * results, columns};
    uint32_t size = dtype_bytes(t);
    uint8_t *at = arena_array(b->c->arena, (size_t)(dims[0] * columns), size);

    for (int64_t k = 0; k < m->bins; k++)
        for (int64_t i = 0; i < m->points; i++) {
            double phase = 2 * M_PI * (double)(i * k % m->length) / (double)m->length;
            double s =
                (m->half && i && 2 * i != m->length ? 2 : 1) / (m->inverse ? (double)m->length : 1);
            double co = cos(phase) * s, si = sin(phase) * (m->inverse ? -s : s);

            for (int64_t r = 0; r < results; r++)
                for (int64_t p = 0; p < m->parts; p++)
                    dtype_put_f(t,
                                at + (number(m, k, m->bins, r, results) * columns +
                                      number(m, i, m->points, p, m->parts)) *
                                         size,
                                r == p  ? co
                                : p > r ? si
                                        : -si);
        }
    return build_const(b, t, 2, dims, at);
}

/* ---- matrices of the run ------------------------------------------------------------------------- */

/* cos or sin of 2 pi i k / length, [bins, points] of f64, times `scale`. */
static const Expr *rotation(const Build *b, const BuildSpectrum *f, const char *op,
                            const Expr *scale)
{
    const Expr *k = build_along(b, build_arange(b, f->bins, DT_I64), 2, 0), *turn;

    turn = build_mul(b, k, build_along(b, build_arange(b, f->points, DT_I64), 2, 1));
    turn = build_cast(b, build2(b, "floor_mod", turn, f->length, NULL), DT_F64);
    turn = build_div(b, build_by(b, "multiply", turn, 2 * M_PI), build_cast(b, f->length, DT_F64));
    return build_mul(b, build1(b, op, turn, NULL), scale);
}

/* By how much each point counts: [points], or one number. */
static const Expr *scale_of(const Build *b, const BuildSpectrum *f)
{
    const Expr *point = build_arange(b, f->points, DT_I64), *zero = build_f64(b, 0),
               *twice = build_by(b, "multiply", point, 2), *scale = build_f64(b, 1), *once;

    if (f->inverse)
        scale = build_div(b, scale, build_cast(b, f->length, DT_F64));
    if (!f->half)
        return build_where(b, build_less(b, point, f->length), scale, zero);
    once = build2(b, "logical_or", build_by(b, "equal", point, 0),
                  build2(b, "equal", twice, f->length, NULL), NULL);
    scale = build_where(b, once, scale, build_by(b, "multiply", scale, 2));
    return build_where(b, build_less(b, f->length, twice), zero, scale);
}

/* Pairs: rows [bins, results], columns [points, parts]. */
static const Expr *run_matrix(const Build *b, const BuildSpectrum *f, DType t)
{
    Arith      *A = b->c->arith;
    const Idx  *one = idx_const(A, 1), *cell[] = {f->bins, one, f->points, one};
    int64_t     results = f->half ? 1 : 2;
    const Idx  *dims[] = {idx_mulc(A, f->bins, results), idx_mulc(A, f->points, f->parts)};
    const Expr *scale = scale_of(b, f), *part[3], *row[2], *pair[2];

    part[0] = build_cast(b, rotation(b, f, "cos", scale), t);
    part[1] = build_cast(b, rotation(b, f, "sin", scale), t);
    part[2] = build1(b, "negative", part[1], NULL);
    for (uint32_t i = 0; i < 3; i++)
        part[i] = build_reshape_to(b, part[i], 4, cell);
    for (int64_t r = 0; r < results; r++) {
        pair[0] = r ? part[f->inverse ? 1 : 2] : part[0];
        pair[1] = r ? part[0] : part[f->inverse ? 2 : 1];
        row[r] = build_concat(b, (uint32_t)f->parts, pair, 3);
    }
    return build_reshape_to(b, build_concat(b, (uint32_t)results, row, 1), 2, dims);
}

/* ---- transforms ---------------------------------------------------------------------------------- */

static const Expr *product(const Build *b, const Expr *x, const Expr *matrix)
{
    DenseAttrs *a = ATTRS(b, DenseAttrs);

    if (!x || !matrix)
        return NULL;
    a->out_dtype = build_sum_dtype(x);
    return build_cast(b, build2(b, "nn.dense", x, matrix, a), expr_dtype(x));
}

const Expr *build_spectrum(const Build *b, const BuildSpectrum *f, const Expr *x)
{
    const Expr *known = build_fold(b, f->length), *matrix;
    const Idx  *dims[3] = {expr_form(x, 0)};
    DType       t = expr_dtype(x);
    Matrix      m = {.parts = f->parts, .inverse = f->inverse, .half = f->half, .pairs = true};
    Ints        v;

    if (known && expr_ints(b->c, known, &v))
        m.length = v.at[0];
    if ((known && m.length < 1) || m.length > BUILD_FOURIER_MOST ||
        f->bins->hi > BUILD_FOURIER_MOST || (!known && f->points->hi > BUILD_FOURIER_MOST))
        return build_error(b, E_UNSUPPORTED, "a transform of %s points",
                           known ? dim_text(b->c, idx_const(b->c->arith, m.length))
                                 : dim_text(b->c, f->points));
    if (known && idx_is_const(f->points, &m.points) && idx_is_const(f->bins, &m.bins)) {
        int64_t used = f->half ? m.length / 2 + 1 : m.length;

        if (m.points > used) {
            x = build_slice(b, x, 1, 0, used);
            m.points = used;
        }
        matrix = known_matrix(b, t, &m);
        dims[1] = idx_const(b->c->arith, m.points * f->parts);
    } else {
        matrix = run_matrix(b, f, t);
        dims[1] = idx_mulc(b->c->arith, f->points, f->parts);
    }
    x = product(b, build_reshape_to(b, x, 2, dims), matrix);
    dims[1] = f->bins, dims[2] = idx_const(b->c->arith, f->half ? 1 : 2);
    return build_reshape_to(b, x, 3, dims);
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

/* Of `points` of each row, real numbers or (real, imaginary) in a row. */
static const Expr *rows_of(const Build *b, BuildComplex x, uint32_t axis, int64_t points)
{
    const Expr *pair[2] = {with_last(b, x.re, axis), with_last(b, x.im, axis)};
    uint32_t    last = expr_rank(x.re) - 1;

    for (uint32_t i = 0; i < 2; i++)
        pair[i] = pair[i] ? build_slice(b, pair[i], last, 0, points) : NULL;
    return x.im ? build_concat(b, 2, pair, last) : pair[0];
}

bool build_fourier(const Build *b, const BuildFourier *f, uint32_t axis, BuildComplex *x)
{
    uint32_t    last = expr_rank(x->re) - 1;
    int64_t     cells, most = f->half ? f->length / 2 + 1 : f->length;
    const Expr *y;
    Matrix      m = {.bins = f->bins, .length = f->length, .half = f->half};

    if (expr_rank(x->re) < 1)
        return build_error(b, E_IMPORT, "a transform of a scalar");
    cells = build_dim(b, x->re, axis);
    if (f->length < 1 || f->length > BUILD_FOURIER_MOST || cells < 1 || f->bins < 1 ||
        f->bins > f->length)
        return build_error(b, E_UNSUPPORTED, "a transform of %lld points over %lld",
                           (long long)f->length, (long long)cells);
    m.points = cells < most ? cells : most;
    m.parts = x->im ? 2 : 1;
    m.inverse = f->inverse || f->half;
    y = rows_of(b, *x, axis, m.points);
    y = product(b, y, known_matrix(b, expr_dtype(x->re), &m));
    *x = (BuildComplex){y, NULL};
    if (y && !f->half) {
        x->re = build_slice(b, y, last, 0, f->bins);
        x->im = with_last(b, build_slice(b, y, last, f->bins, 2 * f->bins), axis);
    }
    x->re = with_last(b, x->re, axis);
    return x->re && (x->im || f->half);
}

/* Rows of real numbers are transformed first, and come out last. */
bool build_fouriers(const Build *b, uint32_t n, const BuildFourier *f, BuildComplex *x)
{
    uint32_t rank = expr_rank(x->re);

    if (rank < n)
        return build_error(b, E_IMPORT, "a transform of %u dimensions of %s", n,
                           type_text(b->c, x->re->type));
    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = f[n - 1].half ? k : n - 1 - k;

        if (!build_fourier(b, &f[i], rank - n + i, x))
            return false;
    }
    return true;
}
