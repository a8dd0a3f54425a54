/* Complex numbers, which are pairs of real and imaginary parts, (re, im).
 *
 * What makes them is RFFT2D, a product of each row with a matrix, and of each column with another
 * one:
 *
 *     y[k] = sum over i of x[i] e^(-2 pi j i k / length)
 *
 * What only moves cells moves both parts (tflite_parts). */
#include "frontends/tflite/tflite.h"

#include <math.h>
#include <string.h>

#define MOST_POINTS 4096

bool tflite_is_complex(const Expr *x)
{
    return x && x->type->kind == TYPE_TUPLE && x->type->n == 2;
}

bool tflite_parts(TfliteNode *n, TfliteConvert *convert)
{
    Ctx         *c = n->b.c;
    const Expr **in = DUP_ARRAY(c->arena, n->in, n->nin + 1), *pair[2];
    const Expr **first = NEW_ARRAY(c->arena, const Expr *, n->nout + 1);

    for (uint32_t part = 0; part < 2; part++) {
        for (uint32_t i = 0; i < n->nin; i++)
            n->in[i] = tflite_is_complex(in[i]) ? build_proj(&n->b, in[i], part) : in[i];
        n->moved = false;
        if (!convert(n))
            return false;
        if (part == 0)
            memcpy(first, n->out, n->nout * sizeof *first);
    }
    for (uint32_t i = 0; i < n->nout; i++) {
        pair[0] = first[i], pair[1] = n->out[i];
        if (!(n->out[i] = expr_tuple(c, 2, pair, n->b.loc)))
            return false;
    }
    return true;
}

/* ---- parts ---------------------------------------------------------------------------------------- */

static bool read_pair(TfliteNode *n, const Expr **re, const Expr **im)
{
    if (!tflite_is_complex(n->in[0]))
        return tflite_error(n, E_IMPORT, "its input is no complex number");
    *re = build_proj(&n->b, n->in[0], 0);
    *im = build_proj(&n->b, n->in[0], 1);
    return *re && *im;
}

bool tflite_real(TfliteNode *n)
{
    const Expr *re, *im;

    return read_pair(n, &re, &im) && tflite_done(n, re);
}

bool tflite_imag(TfliteNode *n)
{
    const Expr *re, *im;

    return read_pair(n, &re, &im) && tflite_done(n, im);
}

bool tflite_complex_abs(TfliteNode *n)
{
    const Build *b = &n->b;
    const Expr  *re, *im;

    return read_pair(n, &re, &im) &&
           tflite_done(n, build1(b, "sqrt",
                                 build_add(b, build_mul(b, re, re), build_mul(b, im, im)), NULL));
}

/* ---- transforms ----------------------------------------------------------------------------------- */

/* One of `length` points, of which `points` are not zero, to the first `bins` frequencies. */
typedef struct {
    int64_t points, bins, length;
} Transform;

/* Weights [2 * bins, parts * points] of nn.dense: the rows of real parts, then those of imaginary
 * ones; (x + iy)(c - is) = (xc + ys) + i(yc - xs). */
static const Expr *matrix(const Build *b, const Transform *t, int64_t parts)
{
    int64_t columns = parts * t->points;
    float  *at = NEW_ARRAY(b->c->arena, float, (size_t)(2 * t->bins * columns));

    for (int64_t k = 0; k < t->bins; k++)
        for (int64_t i = 0; i < t->points; i++) {
            double phase = 2 * M_PI * (double)(i * k % t->length) / (double)t->length;
            float  co = (float)cos(phase), si = (float)sin(phase);
            float *re = at + k * columns + i, *im = re + t->bins * columns;

            re[0] = co, im[0] = -si;
            if (parts == 2)
                re[t->points] = si, im[t->points] = co;
        }
    return build_const(b, DT_F32, 2, (int64_t[]){2 * t->bins, columns}, at);
}

/* Rows [.., parts * points] to [.., 2 * bins]. */
static const Expr *transformed(const Build *b, const Expr *x, const Transform *t, int64_t parts)
{
    const Idx  *dims[MAX_RANK], *flat[2] = {idx_const(b->c->arith, 1)};
    uint32_t    rank;
    const Expr *y;

    if (!x)
        return NULL;
    rank = expr_rank(x);
    for (uint32_t i = 0; i + 1 < rank; i++) {
        dims[i] = expr_form(x, i);
        flat[0] = idx_mul(b->c->arith, flat[0], dims[i]);
    }
    flat[1] = idx_const(b->c->arith, parts * t->points);
    dims[rank - 1] = idx_const(b->c->arith, 2 * t->bins);
    y = build2(b, "nn.dense", build_reshape_to(b, x, 2, flat), matrix(b, t, parts), NULL);
    return build_reshape_to(b, y, rank, dims);
}

static const Expr *last_two_swapped(const Build *b, const Expr *x)
{
    int64_t  axes[MAX_RANK];
    uint32_t rank;

    if (!x)
        return NULL;
    rank = expr_rank(x);
    for (uint32_t i = 0; i < rank; i++)
        axes[i] = i;
    axes[rank - 1] = rank - 2, axes[rank - 2] = rank - 1;
    return build_transpose(b, x, rank, axes);
}

/* Part 0 or 1 of the last dimension, [.., 2 * bins]. */
static const Expr *half(const Build *b, const Expr *x, int64_t part, int64_t bins)
{
    return x ? build_slice(b, x, expr_rank(x) - 1, part * bins, (part + 1) * bins) : NULL;
}

static bool read_length(TfliteNode *n, int64_t cells, int64_t length, Transform *t)
{
    *t = (Transform){cells < length ? cells : length, length, length};
    return (length >= 1 && length <= MOST_POINTS && cells >= 1) ||
           tflite_error(n, E_UNSUPPORTED, "a transform of %lld points over %lld", (long long)length,
                        (long long)cells);
}

/* Images [.., H, W] to the first half of the spectrum of their rows, that of their columns. */
bool tflite_rfft2d(TfliteNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *pair[2];
    uint32_t     rank;
    Transform    rows, columns;
    Ints         length;

    if (!tflite_rank(n, 0, 2, MAX_RANK) || !tflite_ints(n, 1, &length))
        return false;
    rank = expr_rank(x);
    if (length.n != 2)
        return tflite_error(n, E_IMPORT, "input 1 has %u numbers, not 2", length.n);
    if (!read_length(n, build_dim(b, x, rank - 2), length.at[0], &columns) ||
        !read_length(n, build_dim(b, x, rank - 1), length.at[1], &rows))
        return false;
    rows.bins = rows.length / 2 + 1;
    x = build_slice(b, x, rank - 1, 0, rows.points);
    x = build_slice(b, x, rank - 2, 0, columns.points);
    x = transformed(b, x, &rows, 1);
    pair[0] = half(b, x, 0, rows.bins), pair[1] = half(b, x, 1, rows.bins);
    if (columns.length > 1) { /* both parts of a column side by side */
        x = last_two_swapped(b, build_concat(b, 2, pair, rank - 2));
        x = transformed(b, x, &columns, 2);
        for (uint32_t i = 0; i < 2; i++)
            pair[i] = last_two_swapped(b, half(b, x, i, columns.bins));
    }
    return pair[0] && pair[1] && tflite_done(n, expr_tuple(b->c, 2, pair, b->loc));
}
