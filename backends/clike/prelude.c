/* Functions that stand in for operators with rules of their own (ir/tir/tir.h): minimum and maximum
 * with NaN, division that never traps, conversions that saturate, floats of 16 bits.  A text gets
 * those that it calls, and what they call in turn:
 *
 *     static float min_f32(float a, float b) { return a < b || .. ? a : b; }
 *
 * The dialect spells types, numbers and what takes bits as they are; where it has none for that,
 * unions do, which C99 defines.  No function of a library is called. */
#include "backends/clike/impl.h"
#include "ir/tir/intrin.h"

#include <ctype.h>
#include <string.h>

typedef struct {
    const char *name, *text;
} Helper;

typedef struct {
    Ctx                *c;
    const ClikeDialect *d;
    VEC(Helper) all; /* what is called stands first */
} Helpers;

bool clike_calls(const char *text, const char *name)
{
    size_t n = strlen(name);

    for (const char *p = text; (p = strstr(p, name)); p += n)
        if (p[n] == '(' && (p == text || !(isalnum((unsigned char)p[-1]) || p[-1] == '_')))
            return true;
    return false;
}

const char *clike_math(MathFn fn, DType t)
{
    static const char *const text[MATH_COUNT][2] = {
#define BOTH(name) {name "f", name}
        [MATH_EXP] = BOTH("exp"),
        [MATH_LOG] = BOTH("log"),
        [MATH_TANH] = BOTH("tanh"),
        [MATH_ERF] = BOTH("erf"),
        [MATH_SQRT] = BOTH("sqrt"),
        [MATH_FLOOR] = BOTH("floor"),
        [MATH_CEIL] = BOTH("ceil"),
        [MATH_TRUNC] = BOTH("trunc"),
        [MATH_ROUND] = BOTH("rint"),
        [MATH_POW] = BOTH("pow"),
        [MATH_FMOD] = BOTH("fmod"),
        [MATH_SIN] = BOTH("sin"),
        [MATH_COS] = BOTH("cos"),
        [MATH_TAN] = BOTH("tan"),
        [MATH_ASIN] = BOTH("asin"),
        [MATH_ACOS] = BOTH("acos"),
        [MATH_ATAN] = BOTH("atan"),
        [MATH_ATAN2] = BOTH("atan2"),
        [MATH_SINH] = BOTH("sinh"),
        [MATH_COSH] = BOTH("cosh"),
        [MATH_ASINH] = BOTH("asinh"),
        [MATH_ACOSH] = BOTH("acosh"),
        [MATH_ATANH] = BOTH("atanh"),
#undef BOTH
        [MATH_ABS] = {"abs_f32", "abs_f64"},
        [MATH_COPYSIGN] = {"copysign_f32", "copysign_f64"}};
    static const char *const whole[] = {"abs_i8", "abs_i16", "abs_i32", "abs_i64"};

    if (dtype_is_float(t))
        return dtype_is_half(t) ? NULL : text[fn][t.bits == 64];
    if (fn != MATH_ABS || t.code != DT_INT)
        return NULL;
    return whole[t.bits == 8 ? 0 : t.bits == 16 ? 1 : t.bits == 32 ? 2 : 3];
}

const char *clike_math_overloaded(MathFn fn, DType t)
{
    if (fn == MATH_ABS)
        return dtype_is_float(t) ? "fabs" : "abs";
    if (!dtype_is_float(t))
        return NULL;
    return fn == MATH_COPYSIGN ? "copysign" : clike_math(fn, DT_F64);
}

const char *clike_short_type(DType t)
{
    switch (t.code) {
    case DT_BOOLEAN: return "uchar";
    case DT_INT:
        return t.bits == 8 ? "char" : t.bits == 16 ? "short" : t.bits == 32 ? "int" : "long";
    case DT_UINT:
        return t.bits == 8 ? "uchar" : t.bits == 16 ? "ushort" : t.bits == 32 ? "uint" : "ulong";
    case DT_FLOAT: return t.bits == 16 ? "ushort" : t.bits == 32 ? "float" : "double";
    case DT_BFLOAT: return "ushort";
    default: return NULL;
    }
}

const char *clike_short_vector(Ctx *c, DType t)
{
    return t.bits <= 32 ? intern_printf(c->strings, "%s%u", clike_short_type(dtype_lanes(t, 1)),
                                        (unsigned)t.lanes)
                        : NULL;
}

/* Of a type, in names: bool is a byte there. */
static const char *short_name(Ctx *c, DType t)
{
    return dtype_is_bool(t) && t.lanes == 1 ? "u8" : dtype_text(c, t);
}

const char *clike_helper(Ctx *c, const char *what, DType t)
{
    return arena_printf(c->arena, "%s_%s", what, short_name(c, t));
}

const char *clike_convert(Ctx *c, const ClikeDialect *d, DType to, DType from)
{
    bool        same = dtype_eq(to, from), saturates = dtype_is_float(from) && dtype_is_int(to);
    const char *own = d->convert ? d->convert(c, to, from) : NULL;

    if (own)
        return own;
    if (same || dtype_is_handle(from) || !(saturates || dtype_is_half(to) || dtype_is_half(from)))
        return NULL;
    return arena_printf(c->arena, "%s_of_%s", short_name(c, to), short_name(c, from));
}

const char *clike_pun(Ctx *c, const ClikeDialect *d, DType to, DType from)
{
    if (d->has_half && (dtype_eq(to, DT_F16) || dtype_eq(from, DT_F16)))
        return d->bits(to, from);
    if (to.bits == 16 || dtype_is_float(to) == dtype_is_float(from))
        return arena_printf(c->arena, "(%s)", d->type(to));
    if (d->bits)
        return d->bits(to, from);
    return arena_printf(c->arena, "%s_of_bits_%s", short_name(c, to), short_name(c, from));
}

bool clike_is_helper(const char *name)
{
    static const char *const types[] = {"i8",  "i16", "i32", "i64",  "u8",  "u16",
                                        "u32", "u64", "f16", "bf16", "f32", "f64"};
    const char              *last = strrchr(name, '_');

    for (size_t i = 0; last && i < COUNT(types); i++)
        if (!strcmp(last + 1, types[i]))
            return true;
    return false;
}

void clike_half(StrBuf *s, DType t, double v)
{
    uint16_t bits;

    dtype_put_f(t, &bits, v);
    str_printf(s, "0x%04xu", bits);
}

/* ---- the functions ------------------------------------------------------------------------------ */

/* static <result> <name>(<params>) { <body> }; a body of several lines begins with one's end. */
static void add(Helpers *h, DType result, const char *name, const char *params, const char *body)
{
    const char *form = *body == '\n' ? "%s%s%s %s(%s)\n{%s}\n" : "%s%s%s %s(%s) { %s }\n";
    const char *of = h->d->function;
    StrBuf      s = strbuf(h->c->arena);

    str_printf(&s, form, of, *of ? " " : "", h->d->type(result), name, params, body);
    vec_push(h->c->arena, &h->all, ((Helper){name, s.at}));
}

/* Integers, and what saturates to them: floats that are not above, not below two others. */
typedef struct {
    uint8_t     code, bits;
    int64_t     least, most;
    const char *below, *above;
} Whole;

static const Whole whole[] = {
    {DT_INT, 8, INT8_MIN, INT8_MAX, "-128.0", "127.0"},
    {DT_INT, 16, INT16_MIN, INT16_MAX, "-32768.0", "32767.0"},
    {DT_INT, 32, INT32_MIN, INT32_MAX, "-2147483648.0", "2147483648.0"},
    {DT_INT, 64, INT64_MIN, INT64_MAX, "-9223372036854775808.0", "9223372036854775808.0"},
    {DT_UINT, 8, 0, UINT8_MAX, "0.0", "255.0"},
    {DT_UINT, 16, 0, UINT16_MAX, "0.0", "65535.0"},
    {DT_UINT, 32, 0, UINT32_MAX, "0.0", "4294967296.0"},
    {DT_UINT, 64, 0, -1, "0.0", "18446744073709551616.0"}};

static DType type_of(const Whole *w)
{
    return (DType){w->code, w->bits, 1};
}

#define TEXT(...) arena_printf(h->c->arena, __VA_ARGS__)

static const char *type(const Helpers *h, DType t)
{
    return h->d->type(t);
}

static const char *number(const Helpers *h, DType t, int64_t v)
{
    StrBuf s = strbuf(h->c->arena);

    h->d->integer(&s, t, v);
    return s.at;
}

static const char *bits_of(const Helpers *h, DType to, DType from)
{
    return clike_pun(h->c, h->d, to, from);
}

static const char *two(const Helpers *h, DType t)
{
    return TEXT("%s a, %s b", type(h, t), type(h, t));
}

static void pun(Helpers *h, DType to, DType from)
{
    if (!h->d->bits)
        add(h, to, bits_of(h, to, from), TEXT("%s v", type(h, from)),
            TEXT("union { %s from; %s to; } u; u.from = v; return u.to;", type(h, from),
                 type(h, to)));
}

/* A body that some compilers have in one instruction; without a condition all have. */
static const char *either(Helpers *h, const char *when, const char *one, const char *body)
{
    const char *other = *body == '\n' ? body : TEXT("\n    %s\n", body);

    if (one && !when)
        return one;
    return one ? TEXT("\n#if %s\n    %s\n#else%s#endif\n", when, one, other) : body;
}

/* NaN wins in min and max, loses in minnum and maxnum; -0 < +0.  No comparison is a branch. */
static void extremes(Helpers *h, DType f)
{
    const DType i = f.bits == 16 ? DT_I16 : f.bits == 32 ? DT_I32 : DT_I64;
    const char *n = dtype_text(h->c, f), *sign = TEXT("%s(a)", bits_of(h, i, f));

    add(h, f, TEXT("min_%s", n), two(h, f),
        either(h, h->d->extreme_if, f.bits == 32 ? h->d->min : NULL,
               TEXT("return (a < b) | (a != a) | ((a == b) & (%s < 0)) ? a : b;", sign)));
    add(h, f, TEXT("max_%s", n), two(h, f),
        either(h, h->d->extreme_if, f.bits == 32 ? h->d->max : NULL,
               TEXT("return (a > b) | (a != a) | ((a == b) & (%s >= 0)) ? a : b;", sign)));
    add(h, f, TEXT("minnum_%s", n), two(h, f), "return b < a || a != a ? b : a;");
    add(h, f, TEXT("maxnum_%s", n), two(h, f), "return b > a || a != a ? b : a;");
}

static void of_real(Helpers *h, DType f, const char *suffix)
{
    const DType i = f.bits == 32 ? DT_I32 : DT_I64, u = f.bits == 32 ? DT_U32 : DT_U64;
    const char *n = dtype_text(h->c, f), *t = type(h, f), *one = TEXT("%s a", t);
    const char *to_bits = bits_of(h, u, f), *of_bits = bits_of(h, f, u);
    const char *mask = number(h, u, f.bits == 32 ? INT32_MAX : INT64_MAX);
    pun(h, f, i);
    pun(h, i, f);
    pun(h, f, u);
    pun(h, u, f);
    extremes(h, f);
    if (!h->d->fma) /* GNU's, as vectors are */
        add(h, f, TEXT("fma_%s", n), TEXT("%s a, %s b, %s c", t, t, t),
            TEXT("return __builtin_fma%s(a, b, c);", suffix));
    add(h, f, TEXT("abs_%s", n), one, TEXT("return %s(%s(a) & %s);", of_bits, to_bits, mask));
    add(h, f, TEXT("copysign_%s", n), two(h, f),
        TEXT("return %s((%s(a) & %s) | (%s(b) & ~%s));", of_bits, to_bits, mask, to_bits, mask));
    for (size_t k = 0; k < COUNT(whole); k++) {
        const Whole *w = &whole[k];
        const DType  to = type_of(w);

        add(h, to, TEXT("%s_of_%s", dtype_text(h->c, to), n), one,
            TEXT("return a != a ? 0 : a <= %s%s ? %s : a >= %s%s ? %s : (%s)a;", w->below, suffix,
                 number(h, to, w->least), w->above, suffix, number(h, to, w->most), type(h, to)));
    }
}

static void of_whole(Helpers *h)
{
    for (size_t i = 0; i < COUNT(whole); i++) {
        const DType w = type_of(&whole[i]);
        const char *n = dtype_text(h->c, w), *t = type(h, w), *pair = two(h, w);
        const char *wide = type(h, w.bits == 64 ? DT_U64 : DT_U32); /* at least an int */

        add(h, w, TEXT("min_%s", n), pair, "return a < b ? a : b;");
        add(h, w, TEXT("max_%s", n), pair, "return a > b ? a : b;");
        if (w.code == DT_INT) { /* the least number divided by -1 is itself, and traps */
            add(h, w, TEXT("div_%s", n), pair,
                TEXT("return b == 0 ? 0 : b == -1 ? (%s)(0u - (%s)a) : (%s)(a / b);", t, wide, t));
            add(h, w, TEXT("rem_%s", n), pair,
                TEXT("return b == 0 || b == -1 ? 0 : (%s)(a %% b);", t));
            add(h, w, TEXT("abs_%s", n), TEXT("%s a", t),
                TEXT("return a < 0 ? (%s)(0u - (%s)a) : a;", t, wide));
            add(h, w, TEXT("floordiv_%s", n), pair,
                TEXT("%s q = (%s)(a / b); return (%s)(q - (a %% b < 0));", t, t, t));
        } else {
            add(h, w, TEXT("div_%s", n), pair, TEXT("return b == 0 ? 0 : (%s)(a / b);", t));
            add(h, w, TEXT("rem_%s", n), pair, TEXT("return b == 0 ? 0 : (%s)(a %% b);", t));
        }
    }
}

static void of_half(Helpers *h, DType half, DType other)
{
    const char *n = dtype_text(h->c, half), *o = dtype_text(h->c, other);
    const char *v = TEXT("%s v", type(h, half));

    add(h, half, TEXT("%s_of_%s", n, o), TEXT("%s v", type(h, other)),
        TEXT("return %s_of_f32(f32_of_%s(v));", n, o));
    if (type(h, DT_F64)) {
        add(h, DT_F64, TEXT("f64_of_%s", n), v, TEXT("return (double)f32_of_%s(v);", n));
        add(h, half, TEXT("%s_of_f64", n), "double v", TEXT("return %s_of_f32((float)v);", n));
    }
    for (size_t k = 0; k < COUNT(whole); k++) {
        const DType w = type_of(&whole[k]);
        const char *t = dtype_text(h->c, w);

        add(h, w, TEXT("%s_of_%s", t, n), v, TEXT("return %s_of_f32(f32_of_%s(v));", t, n));
        add(h, half, TEXT("%s_of_%s", n, t), TEXT("%s v", type(h, w)),
            TEXT("return %s_of_f32((float)v);", n));
    }
}

static void of_halves(Helpers *h)
{
    const char *half = type(h, DT_F16), *word = half ? type(h, DT_U32) : NULL;
    const char *bits = type(h, DT_BF16);
    const char *f = bits_of(h, DT_F32, DT_U32), *u = bits_of(h, DT_U32, DT_F32);

    if (!half)
        return;
    if (h->d->has_half)
        extremes(h, DT_F16);
    add(h, DT_F32, "f32_of_f16", TEXT("%s h", half),
        either(h, h->d->half_if, h->d->half_to,
               TEXT("\n    const %s sign = (%s)(h & 0x8000u) << 16, rest = h & 0x7fffu;\n"
                    "    if (rest < 0x0400u) /* n * 2^-24 */\n"
                    "        return %s(%s((float)rest * 5.9604644775390625e-08f) | sign);\n"
                    "    return %s((rest >= 0x7c00u ? (rest << 13) + 0x70000000u\n"
                    "                                            : (rest << 13) + 0x38000000u) | "
                    "sign);\n",
                    word, word, f, u, f)));
    add(h, DT_F16, "f16_of_f32", "float v",
        either(h, h->d->half_if, h->d->half_from,
               TEXT("\n    const %s bits = %s(v), sign = bits >> 16 & 0x8000u;\n"
                    "    %s rest = bits & 0x7fffffffu;\n"
                    "    if (rest > 0x7f800000u)\n"
                    "        rest = 0x7e00u | (rest >> 13 & 0x03ffu);\n"
                    "    else if (rest >= 0x47800000u)\n"
                    "        rest = 0x7c00u;\n"
                    "    else if (rest < 0x38800000u) /* units of 2^-24 */\n"
                    "        rest = %s(%s(rest) + 0.5f) - 0x3f000000u;\n"
                    "    else /* to nearest, ties to even */\n"
                    "        rest = (rest - 0x38000000u + 0x0fffu + (rest >> 13 & 1u)) >> 13;\n"
                    "    return (%s)(sign | rest);\n",
                    word, u, word, u, f, half)));
    add(h, DT_F32, "f32_of_bf16", TEXT("%s h", bits), TEXT("return %s((%s)h << 16);", f, word));
    add(h, DT_BF16, "bf16_of_f32", "float v",
        TEXT("\n    const %s bits = %s(v);\n"
             "    if ((bits & 0x7fffffffu) > 0x7f800000u)\n"
             "        return (%s)(bits >> 16 | 0x0040u);\n"
             "    return (%s)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);\n",
             word, u, bits, bits));
    of_half(h, DT_F16, DT_BF16);
    of_half(h, DT_BF16, DT_F16);
}

/* What all instructions of four warps share stands before the first of them. */
static void groups(Ctx *c, const ClikeDialect *d, const Intrin *row, const char *code, StrBuf *out)
{
    const char *shared = d->instruction(row->id);

    for (uint32_t units = 1; units <= GROUP_UNITS; units++) {
        if (!clike_calls(code, clike_group(c, row, units)))
            continue;
        if (!out->n || !strstr(out->at, shared))
            str_add(out, shared);
        d->group(c, row, units, out);
    }
}

void clike_prelude(Ctx *c, const ClikeDialect *d, const char *code, StrBuf *out)
{
    Helpers h = {.c = c, .d = d};

    of_real(&h, DT_F32, "f");
    if (d->type(DT_F64))
        of_real(&h, DT_F64, "");
    of_whole(&h);
    of_halves(&h);
    bool       *wanted = NEW_ARRAY(c->arena, bool, h.all.n);
    const char *last = NULL;

    for (uint32_t i = h.all.n; i-- > 0;) {
        wanted[i] = clike_calls(code, h.all.at[i].name);
        for (uint32_t k = i + 1; k < h.all.n && !wanted[i]; k++)
            wanted[i] = wanted[k] && clike_calls(h.all.at[k].text, h.all.at[i].name);
    }
    for (uint32_t i = 0; i < h.all.n; i++)
        if (wanted[i])
            str_add(out, h.all.at[i].text);
    for (uint32_t id = 0; d->instruction && id < INTRIN_COUNT; id++) {
        const char *text = d->instruction((IntrinId)id);

        if (text && intrin_of(c, (IntrinId)id)->group)
            groups(c, d, intrin_of(c, (IntrinId)id), code, out);
        else if (text && text != last &&
                 clike_calls(code, clike_instruction(c, intrin_of(c, (IntrinId)id))))
            str_add(out, text);
        last = text; /* of several rows of a name */
    }
}
