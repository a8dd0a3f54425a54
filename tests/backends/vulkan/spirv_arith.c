/* Arithmetic, component by component: of numbers, vectors, and a thread's share of a matrix.
 *
 * Floats of up to 32 bits are computed with as f64 and rounded once, which gives sums, differences,
 * products, quotients and roots as IEEE 754 has them. */
#include "tests/backends/vulkan/spirv.h"

#include "ir/core.h"

#include <math.h>
#include <string.h>

/* ---- numbers as words ---------------------------------------------------------------------------- */

uint64_t cut_to(uint32_t bits, uint64_t v)
{
    return bits < 64 ? v & ((UINT64_C(1) << bits) - 1) : v;
}

int64_t signed_of(uint32_t bits, uint64_t v)
{
    const uint64_t sign = UINT64_C(1) << (bits - 1);

    return (int64_t)((cut_to(bits, v) ^ sign) - sign);
}

static DType float_type(uint32_t bits)
{
    return bits == 64 ? DT_F64 : bits == 32 ? DT_F32 : DT_F16;
}

double real_of(uint32_t bits, uint64_t v)
{
    return dtype_get_f(float_type(bits), &v);
}

uint64_t of_real(uint32_t bits, double v)
{
    uint64_t out = 0;

    dtype_put_f(float_type(bits), &out, v);
    return out;
}

/* ---- operations ---------------------------------------------------------------------------------- */

/* What an instruction takes and gives: numbers of `bits`, of which the result may have others. */
typedef struct {
    Run     *r;
    uint32_t op;
    char     of;
    uint32_t bits, to_bits;
    uint64_t v[3];
} Operation;

static uint64_t whole(Operation *o)
{
    const uint32_t n = o->bits;
    const uint64_t a = o->v[0], b = o->v[1];
    const int64_t  x = signed_of(n, a), y = signed_of(n, b);

    switch (o->op) {
    case OpIAdd: return a + b;
    case OpISub: return a - b;
    case OpIMul: return a * b;
    case OpBitwiseOr: return a | b;
    case OpBitwiseXor: return a ^ b;
    case OpBitwiseAnd: return a & b;
    case OpNot: return ~a;
    case OpIEqual: return a == b;
    case OpINotEqual: return a != b;
    case OpULessThan: return a < b;
    case OpSLessThan: return x < y;
    case OpULessThanEqual: return a <= b;
    case OpSLessThanEqual: return x <= y;
    case OpUConvert: return a;
    case OpSConvert: return (uint64_t)x;
    default: break;
    }
    if (!b || (o->op == OpSDiv && y == -1 && a == UINT64_C(1) << (n - 1))) {
        run_fail(o->r, "%lld divided by %lld", (long long)x, (long long)y);
        return 0;
    }
    return o->op == OpSDiv ? (uint64_t)(x / y) : o->op == OpUDiv ? a / b : a % b;
}

/* By more than there are bits, the result is anything. */
static uint64_t shift(Operation *o)
{
    if (o->v[1] >= o->bits)
        return UINT64_MAX;
    switch (o->op) {
    case OpShiftLeftLogical: return o->v[0] << o->v[1];
    case OpShiftRightLogical: return o->v[0] >> o->v[1];
    default: return (uint64_t)(signed_of(o->bits, o->v[0]) >> o->v[1]);
    }
}

static uint64_t bit_field(Operation *o)
{
    const uint64_t from = o->v[1], n = o->v[2];

    if (n && n <= o->bits && from <= o->bits - n)
        return (uint64_t)signed_of((uint32_t)n, o->v[0] >> from);
    run_fail(o->r, "%llu bits from bit %llu on", (unsigned long long)n, (unsigned long long)from);
    return 0;
}

static uint64_t logical(Operation *o)
{
    const uint64_t a = o->v[0], b = o->v[1];

    switch (o->op) {
    case OpLogicalEqual: return a == b;
    case OpLogicalNotEqual: return a != b;
    case OpLogicalOr: return a | b;
    case OpLogicalAnd: return a & b;
    default: return !a;
    }
}

static uint64_t compare(Operation *o)
{
    const double a = real_of(o->bits, o->v[0]), b = real_of(o->bits, o->v[1]);

    switch (o->op) {
    case OpIsNan: return isnan(a);
    case OpFOrdEqual: return a == b;
    case OpFUnordNotEqual: return !(a == b);
    case OpFOrdLessThan: return a < b;
    default: return a <= b;
    }
}

static uint64_t real(Operation *o)
{
    const double a = real_of(o->bits, o->v[0]), b = real_of(o->bits, o->v[1]);
    double       v = a; /* OpFConvert */

    switch (o->op) {
    case OpFAdd: v = a + b; break;
    case OpFSub: v = a - b; break;
    case OpFMul: v = a * b; break;
    case OpFDiv: v = a / b; break;
    default: break;
    }
    return of_real(o->to_bits, v);
}

static uint64_t real_of_whole(Operation *o)
{
    const uint64_t v = o->v[0];
    const int64_t  s = signed_of(o->bits, v);

    if (o->to_bits == 32) /* rounded once */
        return of_real(32, o->op == OpConvertSToF ? (double)(float)s : (double)(float)v);
    return of_real(o->to_bits, o->op == OpConvertSToF ? (double)s : (double)v);
}

static uint64_t whole_of_real(Operation *o)
{
    const double v = trunc(real_of(o->bits, o->v[0])), end = ldexp(1, (int)o->to_bits);
    const bool   sign = o->op == OpConvertFToS;

    if (!(v >= (sign ? -end / 2 : 0) && v < (sign ? end / 2 : end))) {
        run_fail(o->r, "%g as a number of %u bits", v, o->to_bits);
        return 0;
    }
    return sign ? (uint64_t)(int64_t)v : (uint64_t)v;
}

/* ---- GLSL.std.450 -------------------------------------------------------------------------------- */

static uint64_t fused(Operation *o)
{
    const double a = real_of(o->bits, o->v[0]), b = real_of(o->bits, o->v[1]);
    const double c = real_of(o->bits, o->v[2]);

    if (o->bits == 16)
        run_fail(o->r, "Fma of f16, which the interpreter does not have");
    return of_real(o->bits, o->bits == 64 ? fma(a, b, c) : fmaf((float)a, (float)b, (float)c));
}

/* These are of floats of 32 bits or 16. */
static uint64_t inexact(Operation *o)
{
    const float a = (float)real_of(o->bits, o->v[0]), b = (float)real_of(o->bits, o->v[1]);
    float       v;

    if (o->bits == 64)
        run_fail(o->r, "GLSL.std.450's function %u of f64", o->op);
    switch (o->op) {
    case GlslSin: v = sinf(a); break;
    case GlslCos: v = cosf(a); break;
    case GlslTan: v = tanf(a); break;
    case GlslAtan2: v = atan2f(a, b); break;
    default: v = powf(a, b); break;
    }
    return of_real(o->bits, v);
}

static uint64_t function(Operation *o)
{
    const double  a = o->of == 'f' ? real_of(o->bits, o->v[0]) : 0;
    const int64_t x = signed_of(o->bits, o->v[0]), y = signed_of(o->bits, o->v[1]);

    switch (o->op) {
    case GlslSMin: return (uint64_t)(x < y ? x : y);
    case GlslSMax: return (uint64_t)(x > y ? x : y);
    case GlslRoundEven: return of_real(o->bits, nearbyint(a));
    case GlslTrunc: return of_real(o->bits, trunc(a));
    case GlslFAbs: return of_real(o->bits, fabs(a));
    case GlslFloor: return of_real(o->bits, floor(a));
    case GlslCeil: return of_real(o->bits, ceil(a));
    case GlslSqrt: return of_real(o->bits, sqrt(a));
    case GlslFma: return fused(o);
    default: return inexact(o);
    }
}

/* ---- instructions -------------------------------------------------------------------------------- */

typedef struct {
    uint32_t operands;
    char     of, gives;
    uint64_t (*compute)(Operation *o);
} Row;

static const Row rows[] = {
#define ARITH(name, number, operands, of, gives, compute) [number] = {operands, of, gives, compute},
#include "tests/backends/vulkan/spirv.def"
};

static const Row functions[] = {
#define GLSL(name, number, operands, of) [number] = {operands, of, '=', function},
#include "tests/backends/vulkan/spirv.def"
};

bool arith_has(Opcode op)
{
    return op == OpExtInst || (op < COUNT(rows) && rows[op].compute);
}

static bool is_of(const Type *t, char of)
{
    const Opcode op = component_of(t)->op;

    return op == (of == 'w' ? OpTypeInt : of == 'f' ? OpTypeFloat : OpTypeBool);
}

/* Values of the operands from the i-th on, of the row's sort and as many components as the result;
 * what follows the first may be one number for all. */
static void operands_of(Run *r, Thread *t, const Row *row, uint32_t i, const Type *to,
                        const uint64_t **v, uint32_t *words)
{
    if (operand_count(r) != i + row->operands) {
        run_fail(r, "%u operands", operand_count(r));
        return;
    }
    for (uint32_t k = 0; k < row->operands; k++) {
        const Type *x = type_of(r, operand(r, i + k));

        v[k] = value_at(r, t, operand(r, i + k));
        words[k] = x->words;
        if (!is_of(x, row->of) || (x->words != to->words && !(k && x->words == 1)) ||
            (!k && row->gives == '=' && x != to))
            run_fail(r, "operands of other types");
    }
    if (row->gives != '=' && !is_of(to, row->gives))
        run_fail(r, "a result of another type");
}

static void unpack_halves(Run *r, Thread *t)
{
    const Type    *to = type_of(r, operand(r, 1)), *from = type_of(r, operand(r, 4));
    const uint64_t word = *value_at(r, t, operand(r, 4));
    uint64_t      *out = value_at(r, t, operand(r, 1));

    if (from->op != OpTypeInt || from->bits != 32 || to->op != OpTypeVector || to->n != 2 ||
        !is_of(to, 'f') || to->of->bits != 32)
        run_fail(r, "halves of another type");
    for (uint32_t i = 0; i < 2 && !r->error; i++)
        out[i] = of_real(32, real_of(16, cut_to(16, word >> 16 * i)));
}

/* Products of four bytes of two words; the first operand's have a sign unless it is
 * OpUDot, the second one's only of OpSDot. */
void dot_step(Run *r, Thread *t, Opcode op)
{
    enum { BYTES = 4, PACKED = 0 };
    const Type *to = type_of(r, operand(r, 1)), *from = type_of(r, operand(r, 2));
    const bool  packed = from->op == OpTypeInt && from->bits == 32;
    uint64_t    word[2], sum = 0;

    if (!packed || type_of(r, operand(r, 3)) != from || to->op != OpTypeInt || to->bits < 32 ||
        operand_count(r) != 5 || operand(r, 4) != PACKED)
        run_fail(r, "products of what are no words of bytes");
    else if (!r->m.dots || !r->m.packed_dots)
        run_fail(r, "products of words without their capabilities");
    for (uint32_t i = 0; i < 2 && !r->error; i++)
        word[i] = *value_at(r, t, operand(r, 2 + i));
    for (uint32_t i = 0; i < BYTES && !r->error; i++) {
        const uint64_t a = cut_to(8, word[0] >> 8 * i), b = cut_to(8, word[1] >> 8 * i);
        const uint64_t x = op == OpUDotKHR ? a : (uint64_t)signed_of(8, a);
        sum += x * (op == OpSDotKHR ? (uint64_t)signed_of(8, b) : b);
    }
    *value_at(r, t, operand(r, 1)) = cut_to(to->bits, sum);
}

void arith_step(Run *r, Thread *t, Opcode op)
{
    const bool      extended = op == OpExtInst;
    const uint32_t  number = extended ? operand(r, 3) : op, first = extended ? 4 : 2;
    const Row      *row = extended ? &functions[number < COUNT(functions) ? number : 0] : &rows[op];
    const Type     *to = type_of(r, operand(r, 1));
    const uint64_t *v[3] = {0};
    uint64_t       *out = value_at(r, t, operand(r, 1));
    uint32_t        words[3] = {0};

    if (!row->compute || (extended && operand(r, 2) != r->m.glsl)) {
        run_fail(r, "instruction %u of GLSL.std.450, which the interpreter does not know", number);
        return;
    }
    if (row->of == 'h') {
        unpack_halves(r, t);
        return;
    }
    operands_of(r, t, row, first, to, v, words);
    Operation o = {.r = r,
                   .op = number,
                   .of = row->of,
                   .bits = component_of(type_of(r, operand(r, first)))->bits,
                   .to_bits = component_of(to)->bits};
    for (uint32_t i = 0; i < to->words && !r->error; i++) {
        for (uint32_t k = 0; k < row->operands; k++)
            o.v[k] = v[k][words[k] == 1 ? 0 : i];
        out[i] = cut_to(o.to_bits, row->compute(&o));
    }
}
