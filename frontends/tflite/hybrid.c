/* Products of data in floats and weights of 8 bits ("dynamic range"), in the integers of LiteRT's
 * kernels: each row of the data, or image, is quantized by its own range when it is there,
 *
 *     scale = max |x| / 127           q = round(x / scale)                          symmetric, or
 *     scale = (hi - lo) / 255         q = round(x / scale + zero)      lo <= 0 <= hi, asymmetric
 *     y = (q W - zero sum(W)) * (scale * scale of W)
 *
 * The weights stay what they are in the file, bytes. */
#include "frontends/tflite/tflite.h"

#include <math.h>

enum { MOST = 127, LEAST = -128, STEPS = 255 };

static const Expr *by(const Build *b, const char *op, const Expr *x, double v)
{
    return build_by(b, op, x, v);
}

bool tflite_is_hybrid(const TfliteNode *n, uint32_t x, uint32_t w, int64_t axis)
{
    const TfliteTensor *t = tflite_in(n, w);
    int64_t             scales = tflite_scales(t);

    if (!dtype_eq(expr_dtype(n->in[x]), DT_F32) || !dtype_eq(expr_dtype(n->in[w]), DT_I8) ||
        !tflite_is_quantized(t) || !tflite_is_constant(n->im->model, t))
        return false;
    if (scales > 1 && (t->quant->axis != axis || axis >= (int64_t)t->shape.n ||
                       fb_int_at(t->shape, FB_I32, (uint32_t)axis) != scales))
        return false;
    for (int64_t i = 0; i < scales; i++)
        if (tflite_zero(t, i) != 0 || !(tflite_scale(t, i) >= 0) || !isfinite(tflite_scale(t, i)))
            return false;
    return true;
}

/* ---- rows ------------------------------------------------------------------------------------------ */

/* Halves away from 0, within i8. */
static const Expr *rounded(const Build *b, const Expr *x, double least)
{
    if (!x)
        return NULL;
    x = build_add(b, x,
                  build_where(b, build_less(b, x, build_scalar(b, x, 0)), build_scalar(b, x, -0.5),
                              build_scalar(b, x, 0.5)));
    return build_clip(b, build_cast(b, build_clip(b, x, least - 1, MOST + 1), DT_I32), least, MOST);
}

/* A range that can be divided by: rows of zeros are what they are in any scale. */
static const Expr *above_zero(const Build *b, const Expr *range)
{
    return range ? by(b, "maximum", range, 1e-35) : NULL;
}

static const Expr *symmetric(const Build *b, const Expr *x, const Expr *range, TfliteRows *out)
{
    out->zero = NULL;
    out->scale = by(b, "divide", range, MOST);
    if (!range)
        return NULL;
    return rounded(b, build_mul(b, x, build_div(b, build_scalar(b, range, MOST), range)), -MOST);
}

/* The zero point is told by the end of the range that it lies nearer to. */
static const Expr *asymmetric(const Build *b, const Expr *x, const Expr *lo, const Expr *hi,
                              TfliteRows *out)
{
    const Expr *to_lo, *to_hi, *near;

    lo = lo ? by(b, "minimum", lo, 0) : NULL;
    hi = hi ? by(b, "maximum", hi, 0) : NULL;
    if (!lo || !hi)
        return NULL;
    out->scale = by(b, "divide", above_zero(b, build_sub(b, hi, lo)), STEPS);
    to_lo = build1(b, "negative", build_div(b, lo, out->scale), NULL);
    to_hi = build_div(b, hi, out->scale);
    near = build_less(b, by(b, "add", to_lo, -LEAST), by(b, "add", to_hi, MOST));
    out->zero = build_where(b, near, by(b, "add", to_lo, LEAST),
                            by(b, "add", build1(b, "negative", to_hi, NULL), MOST));
    if (!(out->zero = rounded(b, out->zero, LEAST)))
        return NULL;
    x = build_mul(b, x, build_div(b, build_scalar(b, out->scale, 1), out->scale));
    return rounded(b, build_add(b, x, build_cast(b, out->zero, DT_F32)), LEAST);
}

bool tflite_by_range(const Build *b, const Expr *x, uint32_t n, const int64_t *axes, bool both_ends,
                     TfliteRows *out)
{
    const Expr *q;

    if (both_ends)
        q = asymmetric(b, x, build_reduce(b, "min", x, n, axes, true),
                       build_reduce(b, "max", x, n, axes, true), out);
    else
        q = symmetric(
            b, x, above_zero(b, build_reduce(b, "max", build1(b, "abs", x, NULL), n, axes, true)),
            out);
    out->q = build_cast(b, build_cast(b, q, DT_I8), DT_I32);
    return out->q != NULL;
}

/* ---- products -------------------------------------------------------------------------------------- */

const Expr *tflite_unit_scales(const TfliteNode *n, uint32_t i, uint32_t rank)
{
    const Build        *b = &n->b;
    const TfliteTensor *t = tflite_in(n, i);
    int64_t             cells = tflite_scales(t);
    float              *v = NEW_ARRAY(b->c->arena, float, (size_t)cells);
    const Expr         *k;

    for (int64_t i = 0; i < cells; i++)
        v[i] = (float)tflite_scale(t, i);
    k = build_const(b, DT_F32, cells > 1, &cells, v);
    return cells > 1 ? build_along(b, k, rank, 1) : k;
}

const Expr *tflite_hybrid_sums(const Build *b, const Expr *y, const TfliteRows *rows, const Expr *w,
                               const Expr *scales)
{
    static const int64_t axes[] = {1, 2, 3};

    if (!y || !w)
        return NULL;
    if (rows->zero) {
        uint32_t rank = expr_rank(w);

        w = build_along(b, build_reduce(b, "sum", w, rank - 1, axes, false), rank, 1);
        y = build_sub(b, y, build_mul(b, rows->zero, w));
    }
    return build_mul(b, build_cast(b, y, DT_F32), build_mul(b, rows->scale, scales));
}

const Expr *tflite_hybrid_dense(const Build *b, const Expr *x, const Expr *w, const Expr *scales,
                                bool both_ends)
{
    int64_t    last = 1;
    TfliteRows rows;

    w = build_cast(b, w, DT_I32);
    if (!tflite_by_range(b, x, 1, &last, both_ends, &rows))
        return NULL;
    return tflite_hybrid_sums(b, build2(b, "nn.dense", rows.q, w, NULL), &rows, w, scales);
}
