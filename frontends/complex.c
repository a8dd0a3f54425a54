/* Complex numbers, as their real and their imaginary parts: products, quotients, sizes, angles. */
#include "frontends/calls.h"

#include <math.h>

bool build_complex_product(const Build *b, BuildComplex x, BuildComplex y, BuildComplex *out)
{
    /* (a + ib)(c + id) */
    if (x.im && y.im) {
        out->re = build_sub(b, build_mul(b, x.re, y.re), build_mul(b, x.im, y.im));
        out->im = build_add(b, build_mul(b, x.re, y.im), build_mul(b, x.im, y.re));
        return out->re && out->im;
    }
    out->re = build_mul(b, x.re, y.re);
    out->im = x.im ? build_mul(b, x.im, y.re) : y.im ? build_mul(b, x.re, y.im) : NULL;
    return out->re && (out->im || !(x.im || y.im));
}

bool build_complex_quotient(const Build *b, BuildComplex x, BuildComplex y, BuildComplex *out)
{
    const Expr *size;

    if (!y.im) {
        out->re = build_div(b, x.re, y.re);
        out->im = x.im ? build_div(b, x.im, y.re) : NULL;
        return out->re && (out->im || !x.im);
    }
    /* (a + ib)(c - id) / (cc + dd) */
    size = build_add(b, build_mul(b, y.re, y.re), build_mul(b, y.im, y.im));
    y.im = build1(b, "negative", y.im, NULL);
    if (!size || !build_complex_product(b, x, y, out))
        return false;
    out->re = build_div(b, out->re, size);
    out->im = build_div(b, out->im, size);
    return out->re && out->im;
}

bool build_polar(const Build *b, const Expr *size, const Expr *angle, BuildComplex *out)
{
    out->re = build_mul(b, size, build1(b, "cos", angle, NULL));
    out->im = build_mul(b, size, build1(b, "sin", angle, NULL));
    return out->re && out->im;
}

const Expr *build_complex_abs(const Build *b, BuildComplex x)
{
    if (!x.im)
        return build1(b, "abs", x.re, NULL);
    return build1(b, "sqrt", build_add(b, build_mul(b, x.re, x.re), build_mul(b, x.im, x.im)),
                  NULL);
}

const Expr *build_complex_angle(const Build *b, BuildComplex x)
{
    if (x.im)
        return build_atan2(b, x.im, x.re);
    return x.re ? build_where(b, build_by(b, "less", x.re, 0), build_scalar(b, x.re, M_PI),
                              build_scalar(b, x.re, 0))
                : NULL;
}

/* ---- pairs: [.., 2] ------------------------------------------------------------------------------ */

const Expr *build_complex_part(const Build *b, const Expr *pairs, uint32_t part)
{
    uint32_t last = expr_rank(pairs) - 1;

    pairs = build_slice(b, pairs, last, part, part + 1);
    return pairs ? build_reshape_to(b, pairs, last, expr_forms(pairs).at) : NULL;
}

const Expr *build_complex_pairs(const Build *b, BuildComplex x)
{
    const Expr *both[2];

    if (!x.re || !x.im)
        return NULL;
    both[0] = build_expand_dims(b, x.re, expr_rank(x.re), 1);
    both[1] = build_expand_dims(b, x.im, expr_rank(x.im), 1);
    return build_concat(b, 2, both, expr_rank(x.re));
}
