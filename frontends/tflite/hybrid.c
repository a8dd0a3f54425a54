/* Products of data in floats and weights of 8 bits ("dynamic range"), in the integers of LiteRT's
 * kernels: each row of the data is quantized by its own range when it is there,
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

bool tflite_is_hybrid(const TfliteNode *n, uint32_t x, uint32_t w)
{
    const TfliteTensor *t = tflite_in(n, w);

    if (!dtype_eq(expr_dtype(n->in[x]), DT_F32) || !dtype_eq(expr_dtype(n->in[w]), DT_I8) ||
        !tflite_is_quantized(t) || !tflite_is_constant(n->im->model, t))
        return false;
    for (int64_t i = 0; i < tflite_scales(t); i++)
        if (tflite_zero(t, i) != 0)
            return false;
    return true;
}

/* ---- rows ------------------------------------------------------------------------------------------ */

/* Rows [N, K] of 8 bits; scale and zero point [N, 1], the latter NULL for 0. */
typedef struct {
    const Expr *q, *scale, *zero;
} Rows;

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

static const Expr *range_of(const Build *b, const char *op, const Expr *x)
{
    int64_t last = 1;

    x = build_reduce(b, op, x, 1, &last, true);
    return x;
}

/* A range that can be divided by: rows of zeros are what they are in any scale. */
static const Expr *above_zero(const Build *b, const Expr *range)
{
    return range ? by(b, "maximum", range, 1e-35) : NULL;
}

static bool symmetric_rows(const Build *b, const Expr *x, Rows *out)
{
    const Expr *range = above_zero(b, range_of(b, "max", build1(b, "abs", x, NULL)));

    if (!range)
        return false;
    out->scale = by(b, "divide", range, MOST);
    out->q = rounded(b, build_mul(b, x, build_div(b, build_scalar(b, range, MOST), range)), -MOST);
    out->zero = NULL;
    return out->q != NULL;
}

/* The zero point is told by the end of the range that it lies nearer to. */
static bool asymmetric_rows(const Build *b, const Expr *x, Rows *out)
{
    const Expr *lo = range_of(b, "min", x), *hi = range_of(b, "max", x), *near, *at;

    lo = lo ? by(b, "minimum", lo, 0) : NULL;
    hi = hi ? by(b, "maximum", hi, 0) : NULL;
    if (!lo || !hi)
        return false;
    out->scale = by(b, "divide", above_zero(b, build_sub(b, hi, lo)), STEPS);
    near = build_less(
        b, by(b, "add", build1(b, "negative", build_div(b, lo, out->scale), NULL), -LEAST),
        by(b, "add", build_div(b, hi, out->scale), MOST));
    at = build_where(b, near,
                     by(b, "add", build1(b, "negative", build_div(b, lo, out->scale), NULL), LEAST),
                     by(b, "add", build1(b, "negative", build_div(b, hi, out->scale), NULL), MOST));
    out->zero = rounded(b, at, LEAST);
    x = build_mul(b, x, build_div(b, build_scalar(b, out->scale, 1), out->scale));
    out->q = rounded(b, build_add(b, x, build_cast(b, out->zero, DT_F32)), LEAST);
    return out->q != NULL;
}

/* ---- products -------------------------------------------------------------------------------------- */

/* One scale, or one for each of the units. */
static const Expr *scales_of(const TfliteNode *n, const TfliteTensor *t)
{
    const Build *b = &n->b;
    int64_t      cells = tflite_scales(t);
    float       *v = NEW_ARRAY(b->c->arena, float, (size_t)cells);

    for (int64_t i = 0; i < cells; i++)
        v[i] = (float)tflite_scale(t, i);
    return build_const(b, DT_F32, cells > 1, &cells, v);
}

const Expr *tflite_hybrid_dense(const TfliteNode *n, const Expr *x, uint32_t w, bool asymmetric)
{
    const Build *b = &n->b;
    const Expr  *weight = build_cast(b, n->in[w], DT_I32), *y;
    int64_t      last = 1;
    Rows         rows;

    if (!(asymmetric ? asymmetric_rows : symmetric_rows)(b, x, &rows))
        return NULL;
    y = build2(b, "nn.dense", build_cast(b, build_cast(b, rows.q, DT_I8), DT_I32), weight, NULL);
    if (rows.zero)
        y = build_sub(b, y,
                      build_mul(b, rows.zero, build_reduce(b, "sum", weight, 1, &last, false)));
    return build_mul(b, build_cast(b, y, DT_F32),
                     build_mul(b, rows.scale, scales_of(n, tflite_in(n, w))));
}
