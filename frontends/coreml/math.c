/* Arithmetic, cell by cell.  Networks compute with floats alone: what is true there is 1. */
#include "frontends/coreml/coreml.h"

#include <string.h>

static const Expr *as_bool(const Build *b, const Expr *x)
{
    return !x || dtype_is_bool(expr_dtype(x))
               ? x
               : build2(b, "not_equal", x, build_scalar(b, x, 0), NULL);
}

/* What a comparison gives. */
static bool done_bool(CmlNode *n, const Expr *y)
{
    return cml_done(n, n->layer ? build_cast(&n->b, y, DT_F32) : y);
}

bool cml_identity(CmlNode *n)
{
    return cml_done(n, cml_x(n, "x"));
}

bool cml_unary(CmlNode *n)
{
    return cml_done(n, build1(&n->b, n->row->relay, cml_x(n, "x"), NULL));
}

bool cml_exp2(CmlNode *n)
{
    const Expr *x = cml_x(n, "x");

    return cml_done(n, x ? build2(&n->b, "power", build_scalar(&n->b, x, 2), x, NULL) : NULL);
}

bool cml_square(CmlNode *n)
{
    const Expr *x = cml_x(n, "x");

    return cml_done(n, x ? build_mul(&n->b, x, x) : NULL);
}

/* log, rsqrt and 1 / x of what a small number is added to. */
static const Expr *above(CmlNode *n, double fallback)
{
    double      eps = cml_float(n, "epsilon", fallback);
    const Expr *x = cml_x(n, "x");

    return x && eps != 0 ? build_by(&n->b, "add", x, eps) : x;
}

bool cml_log(CmlNode *n)
{
    return cml_done(n, build1(&n->b, "log", above(n, 1e-45), NULL));
}

bool cml_rsqrt(CmlNode *n)
{
    return cml_done(n, build1(&n->b, "rsqrt", above(n, 1e-12), NULL));
}

static const Expr *inverse(const Build *b, const Expr *x)
{
    return x ? build_div(b, build_scalar(b, x, 1), x) : NULL;
}

bool cml_inverse(CmlNode *n)
{
    return cml_done(n, inverse(&n->b, above(n, 1e-4)));
}

bool cml_threshold(CmlNode *n)
{
    return cml_done(n, build_by(&n->b, "maximum", cml_x(n, "x"), cml_float(n, "alpha", 0)));
}

bool cml_clip(CmlNode *n)
{
    return cml_done(
        n, build_clip(&n->b, cml_x(n, "x"), cml_float(n, "alpha", 0), cml_float(n, "beta", 0)));
}

bool cml_layer_clip(CmlNode *n)
{
    return cml_done(n, build_clip(&n->b, cml_x(n, "x"), cml_float(n, "min_val", 0),
                                  cml_float(n, "max_val", 0)));
}

bool cml_cast(CmlNode *n)
{
    const char *name = cml_text(n, "dtype", "");
    DType       t;

    if (!cml_dtype_named(name, &t))
        return cml_error(n, E_UNSUPPORTED, "a cast to '%s'", name);
    return cml_done(n, build_cast(&n->b, cml_x(n, "x"), t));
}

/* A function of scale * x + shift. */
bool cml_layer_unary(CmlNode *n)
{
    enum { SQRT, RSQRT, INVERSE, POWER, EXP, LOG, ABS, THRESHOLD };
    const Build *b = &n->b;
    const Expr  *x = cml_x(n, "x"), *y = NULL;
    double       alpha = cml_float(n, "alpha", 0), shift = cml_float(n, "shift", 0);
    double       scale = cml_float(n, "scale", 0), eps = cml_float(n, "epsilon", 0);
    int64_t      type = cml_int(n, "type", 0);

    eps = eps != 0 ? eps : 1e-6;
    if (scale != 0 && scale != 1)
        x = build_by(b, "multiply", x, scale);
    if (shift != 0)
        x = build_by(b, "add", x, shift);
    switch (type) {
    case SQRT: y = build1(b, "sqrt", x, NULL); break;
    case RSQRT: y = build1(b, "rsqrt", build_by(b, "add", x, eps), NULL); break;
    case INVERSE: y = inverse(b, build_by(b, "add", x, eps)); break;
    case POWER: y = build_by(b, "power", x, alpha); break;
    case EXP: y = build1(b, "exp", x, NULL); break;
    case LOG: y = build1(b, "log", x, NULL); break;
    case ABS: y = build1(b, "abs", x, NULL); break;
    case THRESHOLD: y = build_by(b, "maximum", x, alpha); break;
    default: return cml_error(n, E_UNSUPPORTED, "function %lld", (long long)type);
    }
    return cml_done(n, y);
}

/* ---- of two and more operands --------------------------------------------------------------------- */

bool cml_binary(CmlNode *n)
{
    const Expr *x = cml_x(n, "x");

    return cml_done(n, x ? build2(&n->b, n->row->relay, x, cml_x(n, "y"), NULL) : NULL);
}

/* Of whole numbers as well. */
bool cml_real_div(CmlNode *n)
{
    const Expr *x = cml_x(n, "x"), *y = x ? cml_x(n, "y") : NULL;

    if (y && !dtype_is_float(expr_dtype(x))) {
        x = build_cast(&n->b, x, DT_F32);
        y = build_cast(&n->b, y, DT_F32);
    }
    return cml_done(n, build_div(&n->b, x, y));
}

static const Expr *folded_over(CmlNode *n, const char *op, uint32_t count, const Expr **x)
{
    const Expr *y = count ? x[0] : NULL;

    for (uint32_t i = 1; i < count; i++)
        y = build2(&n->b, op, y, x[i], NULL);
    return y;
}

bool cml_layer_most(CmlNode *n)
{
    const Expr **x;
    uint32_t     count = cml_all(n, "values", &x);

    return cml_done(n, folded_over(n, n->row->relay, count, x));
}

/* A single operand meets the number of the layer. */
bool cml_layer_many(CmlNode *n)
{
    const Expr **x;
    uint32_t     count = cml_all(n, "values", &x);
    double       alpha = cml_float(n, "alpha", 0);

    return cml_done(n, count == 1 ? build_by(&n->b, n->row->relay, x[0], alpha)
                                  : folded_over(n, n->row->relay, count, x));
}

bool cml_layer_average(CmlNode *n)
{
    const Expr **x;
    uint32_t     count = cml_all(n, "values", &x);
    const Expr  *sum = folded_over(n, "add", count, x);

    return cml_done(n, sum ? build_by(&n->b, "multiply", sum, 1.0 / count) : NULL);
}

bool cml_compare(CmlNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = cml_x(n, "x"), *y;
    double       alpha = n->layer ? cml_float(n, "alpha", 0) : 0;

    if (!x || !cml_maybe(n, "y", &y))
        return false;
    return done_bool(n, build2(b, n->row->relay, x, y ? y : build_scalar(b, x, alpha), NULL));
}

bool cml_logical(CmlNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = as_bool(b, cml_x(n, "x")), *y;

    if (!x || !cml_maybe(n, "y", &y))
        return false;
    return done_bool(n, y ? build2(b, n->row->relay, x, as_bool(b, y), NULL)
                          : build1(b, n->row->relay, x, NULL));
}

bool cml_select(CmlNode *n)
{
    const Expr *cond = as_bool(&n->b, cml_x(n, "cond")), *x = cond ? cml_x(n, "a") : NULL;

    return cml_done(n, x ? build_where(&n->b, cond, x, cml_x(n, "b")) : NULL);
}

/* ---- scale and bias of images ----------------------------------------------------------------------- */

/* A constant [1], [C], [1, C, 1, 1] or [C, H, W]. */
static const Expr *cells_of(CmlNode *n, const char *shape, const char *field)
{
    Ints v;

    if (!cml_ints(n, shape, &v))
        return NULL;
    if (v.n < 1 || v.n > MAX_RANK)
        return cml_error(n, E_IMPORT, "'%s' has %u dimensions", shape, v.n);
    if (v.n == 1)
        v = ints_of(n->b.c, 3, (int)v.at[0], 1, 1);
    return cml_weight(n, field, v.n, v.at, 0);
}

bool cml_layer_scale(CmlNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = cml_image(n, "x", 2), *y = cells_of(n, "shape_scale", "scale");
    Ints         unused;

    if (!x || !y)
        return false;
    y = build_mul(b, x, y);
    if (cml_bool(n, "has_bias", false)) {
        const Expr *bias = cells_of(n, "shape_bias", "bias");

        y = bias ? build_add(b, y, bias) : NULL;
    } else {
        (void)cml_ints(n, "shape_bias", &unused);
        (void)cml_has(n, "bias");
    }
    return cml_done_image(n, y);
}

bool cml_layer_bias(CmlNode *n)
{
    const Expr *x = cml_image(n, "x", 2), *bias = x ? cells_of(n, "shape", "bias") : NULL;

    return cml_done_image(n, bias ? build_add(&n->b, x, bias) : NULL);
}
