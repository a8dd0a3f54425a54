/* Element types: their text, their ranges, and one element of memory as a number and back.
 *
 * f16 and bf16 have no C type, so they are packed and unpacked here by hand: a value is scaled to
 * the format's quantum, rounded once to nearest even, and put together. */
#include "ir/core.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *text;
    DType       t;
} dtypes[] = {
#define DTYPE(id, text, code, bits) {text, {code, bits, 1}},
#include "ir/dtype.def"
#undef DTYPE
};

static const char *scalar_text(DType t)
{
    const StoredType *s = dtype_stored(t);

    if (s)
        return s->text;
    for (size_t i = 0; i < COUNT(dtypes); i++)
        if (dtypes[i].t.code == t.code && dtypes[i].t.bits == t.bits)
            return dtypes[i].text;
    return dtype_is_handle(t) ? "handle" : "none";
}

bool dtype_known(DType t)
{
    for (size_t i = 0; i < COUNT(dtypes); i++)
        if (dtype_eq(dtypes[i].t, t))
            return true;
    return t.lanes == 1 && dtype_stored(t);
}

const char *dtype_text(Ctx *c, DType t)
{
    const char *s = scalar_text(t);

    return t.lanes > 1 ? intern_printf(c->strings, "%sx%u", s, t.lanes) : intern(c->strings, s);
}

bool dtype_parse(const char *text, DType *out)
{
    const StoredType *s;

    for (uint32_t i = 0; (s = stored_at(i)); i++)
        if (!strcmp(text, s->text)) {
            *out = s->type;
            return true;
        }
    for (size_t i = 0; i < COUNT(dtypes); i++) {
        size_t n = strlen(dtypes[i].text);

        if (strncmp(text, dtypes[i].text, n) != 0)
            continue;
        if (text[n] == '\0') {
            *out = dtypes[i].t;
            return true;
        }
        if (text[n] == 'x' && text[n + 1] >= '1' && text[n + 1] <= '9') {
            char *end;
            long  lanes = strtol(text + n + 1, &end, 10);

            if (*end || lanes < 2 || lanes > 4096)
                return false;
            *out = dtype_lanes(dtypes[i].t, (uint16_t)lanes);
            return true;
        }
    }
    return false;
}

/* ---- packed formats ------------------------------------------------------------------------ */

/* A binary float of `ebits` exponent and `mbits` mantissa bits from a double, rounded once. */
static uint16_t pack_float(double v, int ebits, int mbits)
{
    int      bias = (1 << (ebits - 1)) - 1, e;
    uint16_t sign = signbit(v) ? 0x8000 : 0, inf = (uint16_t)(((1 << ebits) - 1) << mbits);
    double   a = fabs(v), q;

    if (isnan(v))
        return sign | inf | (uint16_t)(1 << (mbits - 1));
    if (isinf(v))
        return sign | inf;
    if (a == 0)
        return sign;
    e = ilogb(a);
    if (e > bias)
        return sign | inf;
    if (e < 1 - bias)
        e = 1 - bias;
    q = rint(ldexp(a, mbits - e));
    if (q >= ldexp(1, mbits + 1)) {
        q /= 2;
        e++;
    }
    if (e > bias)
        return sign | inf;
    if (q < ldexp(1, mbits)) /* subnormal: the exponent field is 0 */
        return sign | (uint16_t)q;
    return sign | (uint16_t)(((e + bias) << mbits) + (int)(q - ldexp(1, mbits)));
}

static double unpack_float(uint16_t b, int ebits, int mbits)
{
    int    bias = (1 << (ebits - 1)) - 1, e = (b >> mbits) & ((1 << ebits) - 1);
    int    m = b & ((1 << mbits) - 1);
    double v;

    if (e == (1 << ebits) - 1)
        v = m ? NAN : INFINITY;
    else if (e == 0)
        v = ldexp(m, 1 - bias - mbits);
    else
        v = ldexp(m + (1 << mbits), e - bias - mbits);
    return b & 0x8000 ? -v : v;
}

/* ---- ranges --------------------------------------------------------------------------------- */

double dtype_max(DType t)
{
    switch (t.code) {
    case DT_BOOLEAN: return 1;
    case DT_INT: return ldexp(1, t.bits - 1) - (t.bits <= 53 ? 1 : 0);
    case DT_UINT: return ldexp(1, t.bits) - (t.bits <= 53 ? 1 : 0);
    case DT_BFLOAT: return unpack_float(0x7f7f, 8, 7);
    case DT_FLOAT:
        return t.bits == 16 ? 65504.0 : t.bits == 32 ? 0x1.fffffep127 : 0x1.fffffffffffffp1023;
    }
    return 0;
}

double dtype_min(DType t)
{
    switch (t.code) {
    case DT_BOOLEAN:
    case DT_UINT: return 0;
    case DT_INT: return -ldexp(1, t.bits - 1);
    }
    return -dtype_max(t);
}

/* ---- one element ---------------------------------------------------------------------------- */

static int64_t get_int(DType t, const void *p)
{
    uint64_t v = 0;

    switch (t.bits) {
    case 8: {
        uint8_t x;
        memcpy(&x, p, 1);
        v = x;
        break;
    }
    case 16: {
        uint16_t x;
        memcpy(&x, p, 2);
        v = x;
        break;
    }
    case 32: {
        uint32_t x;
        memcpy(&x, p, 4);
        v = x;
        break;
    }
    case 64: {
        memcpy(&v, p, 8);
        break;
    }
    }
    if (t.code == DT_INT && t.bits < 64 && v >> (t.bits - 1))
        v |= ~UINT64_C(0) << t.bits;
    if (t.code == DT_BOOLEAN)
        v = v != 0;
    return (int64_t)v;
}

static void put_int(DType t, void *p, uint64_t v)
{
    switch (t.bits) {
    case 8: {
        uint8_t x = (uint8_t)v;
        memcpy(p, &x, 1);
        break;
    }
    case 16: {
        uint16_t x = (uint16_t)v;
        memcpy(p, &x, 2);
        break;
    }
    case 32: {
        uint32_t x = (uint32_t)v;
        memcpy(p, &x, 4);
        break;
    }
    case 64: {
        memcpy(p, &v, 8);
        break;
    }
    }
}

double dtype_get_f(DType t, const void *p)
{
    const StoredType *s = dtype_stored(t);
    uint16_t          h;
    float             f;
    double            d;

    if (s)
        return stored_get(s, *(const uint8_t *)p);
    if (t.code == DT_BFLOAT || (t.code == DT_FLOAT && t.bits == 16)) {
        memcpy(&h, p, 2);
        return t.code == DT_BFLOAT ? unpack_float(h, 8, 7) : unpack_float(h, 5, 10);
    }
    if (t.code == DT_FLOAT && t.bits == 32) {
        memcpy(&f, p, 4);
        return f;
    }
    if (t.code == DT_FLOAT) {
        memcpy(&d, p, 8);
        return d;
    }
    if (t.code == DT_UINT)
        return (double)(uint64_t)get_int(t, p);
    return (double)get_int(t, p);
}

/* Truncates towards zero and saturates; NaN gives 0. */
static uint64_t int_of_double(DType t, double v)
{
    if (isnan(v))
        return 0;
    if (t.code == DT_BOOLEAN)
        return v != 0;
    v = trunc(v);
    if (t.code == DT_UINT)
        return v <= 0 ? 0 : v >= ldexp(1, t.bits) ? ~UINT64_C(0) >> (64 - t.bits) : (uint64_t)v;
    if (v >= ldexp(1, t.bits - 1))
        return (UINT64_C(1) << (t.bits - 1)) - 1;
    if (v < -ldexp(1, t.bits - 1))
        return UINT64_C(1) << (t.bits - 1);
    return (uint64_t)(int64_t)v;
}

int64_t dtype_get_i(DType t, const void *p)
{
    if (dtype_stored(t))
        return (int64_t)int_of_double(DT_I64, dtype_get_f(t, p));
    if (dtype_is_float(t))
        return (int64_t)int_of_double(DT_I64, dtype_get_f(t, p));
    return get_int(t, p);
}

void dtype_put_f(DType t, void *p, double v)
{
    const StoredType *s = dtype_stored(t);
    uint16_t          h;
    float             f = (float)v;

    if (s) {
        *(uint8_t *)p = stored_put(s, v);
        return;
    }
    if (t.code == DT_BFLOAT || (t.code == DT_FLOAT && t.bits == 16)) {
        h = t.code == DT_BFLOAT ? pack_float(v, 8, 7) : pack_float(v, 5, 10);
        memcpy(p, &h, 2);
    } else if (t.code == DT_FLOAT && t.bits == 32) {
        memcpy(p, &f, 4);
    } else if (t.code == DT_FLOAT) {
        memcpy(p, &v, 8);
    } else {
        put_int(t, p, int_of_double(t, v));
    }
}

void dtype_put_i(DType t, void *p, int64_t v)
{
    if (dtype_is_float(t) || dtype_stored(t))
        dtype_put_f(t, p, (double)v);
    else
        put_int(t, p, t.code == DT_BOOLEAN ? v != 0 : (uint64_t)v);
}

/* ---- many elements: f32 to 16 bits ------------------------------------------------------------- */

static uint32_t bits_of(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static float of_bits(uint32_t bits)
{
    float f;

    memcpy(&f, &bits, sizeof f);
    return f;
}

/* A normal result: shift the exponent down and round by adding.  A subnormal one: add 0.5, whose
 * unit in the last place is that of f16's subnormals. */
static uint16_t f16_of_f32(uint32_t bits)
{
    uint32_t sign = bits >> 16 & 0x8000, mag = bits & 0x7fffffff;

    if (mag > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (mag >> 13 & 0x3ff));
    if (mag >= 0x477ff000) /* 65520 and above */
        return (uint16_t)(sign | 0x7c00);
    if (mag < 113u << 23)
        return (uint16_t)(sign | (bits_of(of_bits(mag) + 0.5f) - 0x3f000000));
    return (uint16_t)(sign | (mag + 0xfff - (112u << 23) + (mag >> 13 & 1)) >> 13);
}

static float f32_of_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, mag = h & 0x7fff;
    uint32_t top = mag >= 0x7c00 ? 0x7f800000 : 0;

    return of_bits(bits_of(of_bits(mag << 13) * 0x1p112f) | top | sign);
}

static uint16_t bf16_of_f32(uint32_t bits)
{
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void dtype_narrow(DType to, const void *from, void *out, size_t n, NarrowLoss *loss)
{
    float error = (float)loss->error, largest = (float)loss->largest;
    bool  brain = to.code == DT_BFLOAT;

    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, (const char *)from + 4 * i, 4);
        uint16_t h = brain ? bf16_of_f32(bits) : f16_of_f32(bits);
        float    was = of_bits(bits), now = brain ? of_bits((uint32_t)h << 16) : f32_of_f16(h);
        float    e = was < now ? now - was : was - now, v = was < 0 ? -was : was;

        memcpy((char *)out + 2 * i, &h, 2);
        loss->overflow |= e - e != 0 && v - v == 0;
        error = e > error ? e : error;
        largest = v > largest ? v : largest;
    }
    loss->error = error;
    loss->largest = largest;
}
