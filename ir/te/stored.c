/* Types of storage in kernels (ir/stored.def).
 *
 *   cast(%x: f8e5m2) -> f16     %number[i] = decoded(%x[i]);  %cast[i] = f16(%number[i])
 *
 * A tensor of such a type is one of cells, plain bytes, everywhere below Relay.  An operator's
 * formula sees numbers instead: operands are decoded before it and results encoded behind it, in
 * the same kernel.  One that only moves elements moves the cells.  No backend knows of this, and
 * the interpreter runs the same formulas. */
#include "ir/relay/relay.h"
#include "ir/te/impl.h"

#include <math.h>
#include <string.h>

static const Prim *num(Ctx *c, int64_t v)
{
    return prim_int(c, DT_I32, v);
}

static const Prim *low(Ctx *c, const Prim *x, uint32_t bits)
{
    return prim_bin(c, PRIM_AND, x, num(c, (1 << bits) - 1));
}

static const Prim *as_float(Ctx *c, const Prim *bits)
{
    return prim_bits(c, DT_F32, bits);
}

static const Prim *nan_of(Ctx *c)
{
    return prim_float(c, DT_F32, NAN);
}

/* A power of two by its exponent's bits; 2^-127 is beyond them. */
static const Prim *decode_exponent(Ctx *c, const Prim *code)
{
    const Prim *x = as_float(c, prim_bin(c, PRIM_SHL, code, num(c, 23)));

    x = prim_select(c, prim_eq(c, code, num(c, 0)), prim_float(c, DT_F32, 0x1p-127), x);
    return prim_select(c, prim_eq(c, code, num(c, 255)), nan_of(c), x);
}

/* The bits where f32 has them, with its bias; a subnormal number is so many units.  No f32 on the
 * way is subnormal: devices may take such a one for 0. */
static const Prim *decode_float(Ctx *c, const StoredType *s, const Prim *code)
{
    uint32_t    width = s->type.bits - 1;
    const Prim *magnitude = low(c, code, width);
    const Prim *bits = prim_bin(c, PRIM_SHL, magnitude, num(c, 23 - s->mantissa));
    const Prim *normal = as_float(c, prim_add(c, bits, num(c, (127 - s->bias) << 23)));
    const Prim *units = prim_mul(c, prim_cast(c, DT_F32, magnitude),
                                 prim_float(c, DT_F32, ldexp(1, 1 - s->bias - s->mantissa)));
    const Prim *x = prim_select(c, prim_lt(c, magnitude, num(c, 1 << s->mantissa)), units, normal);
    int64_t     largest = stored_largest(s);

    if (s->special == STORED_IEEE)
        x = prim_select(c, prim_eq(c, magnitude, num(c, largest + 1)),
                        prim_float(c, DT_F32, INFINITY), x);
    if (s->special == STORED_IEEE || s->special == STORED_FN)
        x = prim_select(c, prim_lt(c, num(c, largest + (s->special == STORED_IEEE)), magnitude),
                        nan_of(c), x);
    x = prim_select(c, prim_lt(c, magnitude, code), prim_neg(c, x), x);
    if (s->special == STORED_FNUZ)
        x = prim_select(c, prim_eq(c, code, num(c, 1 << width)), nan_of(c), x);
    return x;
}

/* The number in a cell. */
static const Prim *decode(Ctx *c, const StoredType *s, const Prim *cell)
{
    const Prim *code = low(c, prim_cast(c, DT_I32, cell), s->type.bits);
    const Prim *up = num(c, 32 - s->type.bits);

    if (s->exponent)
        return s->mantissa ? decode_float(c, s, code) : decode_exponent(c, code);
    return s->type.code == DT_INT ? prim_bin(c, PRIM_SHR, prim_bin(c, PRIM_SHL, code, up), up)
                                  : code;
}

typedef struct {
    bool        saturate;
    const char *round; /* of types without mantissa: "up", "down", "nearest" */
} Rounding;

/* The exponent, one more where the mantissa says so. */
static const Prim *encode_exponent(Ctx *c, const Prim *bits, const Rounding *r)
{
    const Prim *e = low(c, prim_bin(c, PRIM_SHR, bits, num(c, 23)), 8), *m = low(c, bits, 23);
    const Prim *more = prim_lt(c, num(c, 1), num(c, 0)), *half = num(c, 1 << 22);

    if (!strcmp(r->round, "up"))
        more = prim_lt(c, num(c, 0), m);
    else if (!strcmp(r->round, "nearest")) /* a tie goes up, but for the least */
        more = prim_or(c, prim_lt(c, half, m),
                       prim_and(c, prim_eq(c, half, m), prim_lt(c, num(c, 0), e)));
    if (r->saturate)
        more = prim_and(c, more, prim_lt(c, e, num(c, 254)));
    return prim_add(
        c, e, prim_select(c, prim_and(c, more, prim_lt(c, e, num(c, 255))), num(c, 1), num(c, 0)));
}

/* To nearest, ties to even: a normal number by adding just below half of what is cut off, a
 * subnormal one by adding a number whose last bit is the type's. */
static const Prim *encode_float(Ctx *c, const StoredType *s, const Prim *bits, const Rounding *r)
{
    uint32_t    cut = 23 - s->mantissa, width = s->type.bits - 1;
    int64_t     largest = stored_largest(s);
    const Prim *magnitude = prim_bin(c, PRIM_AND, bits, num(c, INT32_MAX));
    const Prim *negative = prim_lt(c, bits, num(c, 0));
    const Prim *odd = low(c, prim_bin(c, PRIM_SHR, magnitude, num(c, cut)), 1);
    const Prim *up = prim_add(c, magnitude, prim_add(c, odd, num(c, (1 << (cut - 1)) - 1)));
    const Prim *normal =
        prim_bin(c, PRIM_SHR, prim_sub(c, up, num(c, (127 - s->bias) << 23)), num(c, cut));
    const Prim *unit = prim_float(c, DT_F32, ldexp(1, 1 - s->bias + (int)cut));
    const Prim *below = prim_sub(c, prim_bits(c, DT_I32, prim_add(c, as_float(c, magnitude), unit)),
                                 prim_bits(c, DT_I32, unit));
    const Prim *code =
        prim_select(c, prim_lt(c, magnitude, num(c, (128 - s->bias) << 23)), below, normal);
    const Prim *is_nan = prim_lt(c, num(c, 0x7f800000), magnitude);
    int64_t     nan = stored_nan(s);
    bool        keeps = r->saturate || s->special == STORED_NONE;

    code = prim_select(c, prim_lt(c, num(c, largest), code),
                       num(c, keeps                       ? largest
                              : s->special == STORED_IEEE ? largest + 1
                                                          : nan),
                       code);
    code = prim_select(c, is_nan, num(c, nan), code);
    if (s->special == STORED_FNUZ) /* there is no -0 */
        negative = prim_and(c, negative, prim_lt(c, num(c, 0), code));
    return prim_select(c, negative, prim_bin(c, PRIM_OR, code, num(c, 1 << width)), code);
}

/* The cell of a number; an integer keeps its low bits, as sign-extended as its cell. */
static const Prim *encode(Ctx *c, const StoredType *s, const Prim *x, const Rounding *r)
{
    const Prim *bits;

    if (!s->exponent)
        return prim_cast(c, s->cell, decode(c, s, x));
    bits = prim_bits(c, DT_I32, x);
    return prim_cast(c, s->cell,
                     s->mantissa ? encode_float(c, s, bits, r) : encode_exponent(c, bits, r));
}

/* ---- around an operator ---- */

static bool any_stored(uint32_t n, const Type *const *t)
{
    for (uint32_t i = 0; i < n; i++)
        if (dtype_stored(t[i]->dtype))
            return true;
    return false;
}

/* Its results' cells are cells of its operands, or 0. */
static bool only_moves(const Op *op)
{
    if (op->fusion != FUSE_INJECTIVE)
        return false;
    for (uint32_t i = 0; op->attrs && i < op->attrs->nfields; i++)
        if (op->attrs->fields[i].type == ATTR_FLOAT || op->attrs->fields[i].type == ATTR_DTYPE)
            return false;
    return true;
}

/* What its attributes say of rounding, where they do. */
static Rounding rounding_of(const OpCall *call)
{
    Rounding          r = {true, "up"};
    const AttrRecord *a = call->op->attrs;

    for (uint32_t i = 0; a && i < a->nfields; i++) {
        const char *at = (const char *)call->attrs + a->fields[i].offset;

        if (!strcmp(a->fields[i].name, "saturate"))
            memcpy(&r.saturate, at, sizeof r.saturate);
        else if (!strcmp(a->fields[i].name, "round_mode"))
            memcpy(&r.round, at, sizeof r.round);
    }
    return r;
}

static const Type **with_dtypes(Ctx *c, uint32_t n, const Type *const *t, DType (*dtype)(DType))
{
    const Type **out = NEW_ARRAY(c->arena, const Type *, n + 1);

    for (uint32_t i = 0; i < n; i++)
        out[i] = dtype_stored(t[i]->dtype) ? type_tensor(c, dtype(t[i]->dtype), t[i]->n, t[i]->dims)
                                           : t[i];
    return out;
}

bool te_of_call(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    OpCall            inner = *call;
    const Tensor    **numbers;
    Rounding          r;
    const StoredType *s;

    if (!any_stored(call->nin, call->in) && !any_stored(call->nout, call->out))
        return call->op->compute(c, call, in, out);
    bool moves = only_moves(call->op);
    inner.in = with_dtypes(c, call->nin, call->in, moves ? dtype_cell : dtype_number);
    inner.out = with_dtypes(c, call->nout, call->out, moves ? dtype_cell : dtype_number);
    if (moves)
        return call->op->compute(c, &inner, in, out);
    numbers = NEW_ARRAY(c->arena, const Tensor *, call->nin + 1);
    for (uint32_t i = 0; i < call->nin; i++) {
        numbers[i] = in[i];
        if ((s = dtype_stored(call->in[i]->dtype))) {
            Axes a = te_axes_of(c, inner.in[i]);

            numbers[i] = te_compute(c, "number", s->number, a, decode(c, s, te_at(c, in[i], a.at)));
        }
    }
    if (!call->op->compute(c, &inner, numbers, out))
        return false;
    r = rounding_of(call);
    for (uint32_t i = 0; i < call->nout; i++)
        if ((s = dtype_stored(call->out[i]->dtype))) {
            Axes a = te_axes_of(c, inner.out[i]);

            out[i] = te_compute(c, "code", s->cell, a, encode(c, s, te_at(c, out[i], a.at), &r));
        }
    return true;
}
