/* Types of storage, in numbers: what each code means, and the code of a number.
 *
 * Slow and obvious: a number's code is the one whose value is nearest, of two the even one.  What
 * compiled code does is in ir/te/stored.c. */
#include "ir/core.h"

#include <math.h>

static const StoredType stored[] = {
#define STORED(id, text, code, bits, cell, number, exponent, mantissa, bias, special) \
    {text, {code, bits, 1}, DT_##cell, DT_##number, exponent, mantissa, bias, STORED_##special},
#include "ir/stored.def"
#undef STORED
};

#define STORED(id, text, code, bits, ...) \
    _Static_assert((bits) <= 8, "dtype_stored looks no further");
#include "ir/stored.def"
#undef STORED

const StoredType *dtype_stored(DType t)
{
    if (t.bits > 8)
        return NULL;
    for (size_t i = 0; i < COUNT(stored); i++)
        if (stored[i].type.code == t.code && stored[i].type.bits == t.bits)
            return &stored[i];
    return NULL;
}

const StoredType *stored_at(uint32_t i)
{
    return i < COUNT(stored) ? &stored[i] : NULL;
}

bool dtype_is_real(DType t)
{
    const StoredType *s = dtype_stored(t);

    return s ? s->exponent != 0 : dtype_is_float(t);
}

DType dtype_cell(DType t)
{
    const StoredType *s = dtype_stored(t);

    return s ? dtype_lanes(s->cell, t.lanes) : t;
}

DType dtype_number(DType t)
{
    const StoredType *s = dtype_stored(t);

    return s ? dtype_lanes(s->number, t.lanes) : t;
}

uint32_t stored_largest(const StoredType *s)
{
    uint32_t all = s->mantissa ? (1u << (s->exponent + s->mantissa)) - 1 : 255;

    return s->special == STORED_IEEE ? all - (1u << s->mantissa)
           : s->special == STORED_FN ? all - 1
                                     : all;
}

uint32_t stored_nan(const StoredType *s)
{
    return s->special == STORED_IEEE || s->special == STORED_FN
               ? stored_largest(s) + 1 + (s->special == STORED_IEEE)
               : 1u << (s->type.bits - 1);
}

static double float_of_code(const StoredType *s, uint32_t code)
{
    uint32_t magnitude = s->mantissa ? code & ((1u << (s->type.bits - 1)) - 1) : code;
    uint32_t fraction = magnitude & ((1u << s->mantissa) - 1), e = magnitude >> s->mantissa;
    double   v;

    if (s->special == STORED_FNUZ && code == 1u << (s->type.bits - 1))
        return NAN;
    if (magnitude > stored_largest(s))
        return s->special == STORED_IEEE && !fraction ? (magnitude == code ? INFINITY : -INFINITY)
                                                      : NAN;
    v = e || !s->mantissa ? ldexp(fraction + (1u << s->mantissa), (int)e - s->bias - s->mantissa)
                          : ldexp(fraction, 1 - s->bias - s->mantissa);
    return magnitude == code ? v : -v;
}

double stored_get(const StoredType *s, uint8_t cell)
{
    uint32_t code = cell & ((1u << s->type.bits) - 1);

    if (s->exponent)
        return float_of_code(s, code);
    return s->type.code == DT_INT && code >> (s->type.bits - 1) ? (double)code - (1 << s->type.bits)
                                                                : code;
}

uint8_t stored_put(const StoredType *s, double v)
{
    uint32_t codes = 1u << s->type.bits, best = 0;
    double   least = INFINITY, most;

    if (!s->exponent)
        return (uint8_t)((uint64_t)(int64_t)fmin(fmax(isnan(v) ? 0 : v, -1e9), 1e9) & (codes - 1));
    if (isnan(v))
        return (uint8_t)stored_nan(s);
    most = float_of_code(s, stored_largest(s));
    v = fmin(fmax(v, -most), most);
    for (uint32_t i = 0; i < codes; i++) {
        double at = float_of_code(s, i), far = fabs(at - v);
        bool   other_zero = at == 0 && signbit(v) && !signbit(at) && s->special != STORED_FNUZ;

        if (isfinite(at) && !other_zero && (far < least || (far == least && i % 2 < best % 2)))
            best = i, least = far;
    }
    return (uint8_t)best;
}
