/* Functions that stand in for operators with rules of their own (ir/tir/tir.h): minimum and maximum
 * with NaN, division that never traps, conversions that saturate, floats of 16 bits.  The text gets
 * those that it calls, and what they call in turn.
 *
 * Bits are read through unions, which C99 defines; no function of the library is called. */
#include "backends/c/c.h"

#include <ctype.h>
#include <string.h>

typedef struct {
    const char *name, *text;
} Helper;

typedef VEC(Helper) Helpers; /* what is called stands first */

bool c_calls(const char *text, const char *name)
{
    size_t n = strlen(name);

    for (const char *p = text; (p = strstr(p, name)); p += n)
        if (p[n] == '(' && (p == text || !(isalnum((unsigned char)p[-1]) || p[-1] == '_')))
            return true;
    return false;
}

bool c_calls_lanes(const char *text, const char *name)
{
    size_t n = strlen(name);

    for (const char *p = text; (p = strstr(p, name)); p += n)
        if (p[n] == '_' && (p == text || !(isalnum((unsigned char)p[-1]) || p[-1] == '_'))) {
            size_t      rest = strcspn(p + n + 1, "(");
            const char *x = memchr(p + n + 1, 'x', rest);
            if (x && strspn(x + 1, "0123456789") == (size_t)(p + n + 1 + rest - x - 1))
                return true;
        }
    return false;
}

/* static <result> <name>(<params>) { <body> }; a body of several lines begins with one's end. */
static void add(Ctx *c, Helpers *all, const char *result, const char *name, const char *params,
                const char *body)
{
    const char *form = *body == '\n' ? "static %s %s(%s)\n{%s}\n" : "static %s %s(%s) { %s }\n";
    StrBuf      s = strbuf(c->arena);

    str_printf(&s, form, result, name, params, body);
    vec_push(c->arena, all, ((Helper){name, s.at}));
}

typedef struct {
    const char *name, *type, *wide, *least, *most; /* wide: its unsigned type, at least an int */
    bool        minus;
    const char *below, *above; /* as floats: what is not above, not below them saturates */
} Whole;

static const Whole whole[] = {
    {"i8", "int8_t", "uint32_t", "INT8_MIN", "INT8_MAX", true, "-128.0", "127.0"},
    {"i16", "int16_t", "uint32_t", "INT16_MIN", "INT16_MAX", true, "-32768.0", "32767.0"},
    {"i32", "int32_t", "uint32_t", "INT32_MIN", "INT32_MAX", true, "-2147483648.0", "2147483648.0"},
    {"i64", "int64_t", "uint64_t", "INT64_MIN", "INT64_MAX", true, "-9223372036854775808.0",
     "9223372036854775808.0"},
    {"u8", "uint8_t", "uint32_t", "0", "UINT8_MAX", false, "0.0", "255.0"},
    {"u16", "uint16_t", "uint32_t", "0", "UINT16_MAX", false, "0.0", "65535.0"},
    {"u32", "uint32_t", "uint32_t", "0", "UINT32_MAX", false, "0.0", "4294967296.0"},
    {"u64", "uint64_t", "uint64_t", "0", "UINT64_MAX", false, "0.0", "18446744073709551616.0"}};

static const struct {
    const char *name, *type, *suffix, *bits[2], *mask;
} reals[] = {{"f32", "float", "f", {"i32", "u32"}, "0x7fffffffu"},
             {"f64", "double", "", {"i64", "u64"}, "UINT64_C(0x7fffffffffffffff)"}};

static const char *type_of(const char *name)
{
    for (size_t i = 0; i < COUNT(whole); i++)
        if (!strcmp(whole[i].name, name))
            return whole[i].type;
    BUG("no type %s", name);
}

#define TEXT(...) arena_printf(c->arena, __VA_ARGS__)

static void pun(Ctx *c, Helpers *all, const char *to, const char *to_type, const char *from,
                const char *from_type)
{
    add(c, all, to_type, TEXT("%s_of_bits_%s", to, from), TEXT("%s v", from_type),
        TEXT("union { %s from; %s to; } u; u.from = v; return u.to;", from_type, to_type));
}

static void of_reals(Ctx *c, Helpers *all)
{
    for (size_t i = 0; i < COUNT(reals); i++) {
        const char *f = reals[i].name, *t = reals[i].type, *bits = reals[i].bits[1];
        const char *one = TEXT("%s a", t), *two = TEXT("%s a, %s b", t, t);
        const char *sign = TEXT("%s_of_bits_%s(a)", reals[i].bits[0], f);

        for (size_t k = 0; k < 2; k++) {
            pun(c, all, f, t, reals[i].bits[k], type_of(reals[i].bits[k]));
            pun(c, all, reals[i].bits[k], type_of(reals[i].bits[k]), f, t);
        }
        /* NaN wins in min and max, loses in minnum and maxnum; -0 < +0 */
        add(c, all, t, TEXT("min_%s", f), two,
            TEXT("return a < b || a != a || (a == b && %s < 0) ? a : b;", sign));
        add(c, all, t, TEXT("max_%s", f), two,
            TEXT("return a > b || a != a || (a == b && %s >= 0) ? a : b;", sign));
        add(c, all, t, TEXT("fma_%s", f), TEXT("%s a, %s b, %s c", t, t, t),
            TEXT("return __builtin_fma%s(a, b, c);", reals[i].suffix)); /* GNU's, as vectors are */
        add(c, all, t, TEXT("minnum_%s", f), two, "return b < a || a != a ? b : a;");
        add(c, all, t, TEXT("maxnum_%s", f), two, "return b > a || a != a ? b : a;");
        add(c, all, t, TEXT("abs_%s", f), one,
            TEXT("return %s_of_bits_%s(%s_of_bits_%s(a) & %s);", f, bits, bits, f, reals[i].mask));
        add(c, all, t, TEXT("copysign_%s", f), two,
            TEXT("return %s_of_bits_%s((%s_of_bits_%s(a) & %s) | (%s_of_bits_%s(b) & ~%s));", f,
                 bits, bits, f, reals[i].mask, bits, f, reals[i].mask));
        for (size_t k = 0; k < COUNT(whole); k++)
            add(c, all, whole[k].type, TEXT("%s_of_%s", whole[k].name, f), one,
                TEXT("return a != a ? 0 : a <= %s%s ? %s : a >= %s%s ? %s : (%s)a;", whole[k].below,
                     reals[i].suffix, whole[k].least, whole[k].above, reals[i].suffix,
                     whole[k].most, whole[k].type));
    }
}

static void of_whole(Ctx *c, Helpers *all)
{
    for (size_t i = 0; i < COUNT(whole); i++) {
        const Whole *w = &whole[i];
        const char  *n = w->name, *t = w->type, *two = TEXT("%s a, %s b", t, t);

        add(c, all, t, TEXT("min_%s", n), two, "return a < b ? a : b;");
        add(c, all, t, TEXT("max_%s", n), two, "return a > b ? a : b;");
        if (w->minus) { /* the least number divided by -1 is itself, and traps */
            add(c, all, t, TEXT("div_%s", n), two,
                TEXT("return b == 0 ? 0 : b == -1 ? (%s)(0u - (%s)a) : (%s)(a / b);", t, w->wide,
                     t));
            add(c, all, t, TEXT("rem_%s", n), two,
                TEXT("return b == 0 || b == -1 ? 0 : (%s)(a %% b);", t));
            add(c, all, t, TEXT("abs_%s", n), TEXT("%s a", t),
                TEXT("return a < 0 ? (%s)(0u - (%s)a) : a;", t, w->wide));
            add(c, all, t, TEXT("floordiv_%s", n), two,
                TEXT("%s q = (%s)(a / b); return (%s)(q - (a %% b < 0));", t, t, t));
        } else {
            add(c, all, t, TEXT("div_%s", n), two, TEXT("return b == 0 ? 0 : (%s)(a / b);", t));
            add(c, all, t, TEXT("rem_%s", n), two, TEXT("return b == 0 ? 0 : (%s)(a %% b);", t));
        }
    }
}

static void of_halves(Ctx *c, Helpers *all)
{
    static const char *const halves[] = {"f16", "bf16"};

    add(c, all, "float", "f32_of_f16", "uint16_t h",
        "\n    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, rest = h & 0x7fffu;\n"
        "    if (rest < 0x0400u) /* n * 2^-24 */\n"
        "        return f32_of_bits_u32(u32_of_bits_f32((float)rest * 5.9604644775390625e-08f) | "
        "sign);\n"
        "    return f32_of_bits_u32((rest >= 0x7c00u ? (rest << 13) + 0x70000000u\n"
        "                                            : (rest << 13) + 0x38000000u) | sign);\n");
    add(c, all, "uint16_t", "f16_of_f32", "float v",
        "\n    const uint32_t bits = u32_of_bits_f32(v), sign = bits >> 16 & 0x8000u;\n"
        "    uint32_t rest = bits & 0x7fffffffu;\n"
        "    if (rest > 0x7f800000u)\n"
        "        rest = 0x7e00u | (rest >> 13 & 0x03ffu);\n"
        "    else if (rest >= 0x47800000u)\n"
        "        rest = 0x7c00u;\n"
        "    else if (rest < 0x38800000u) /* units of 2^-24 */\n"
        "        rest = u32_of_bits_f32(f32_of_bits_u32(rest) + 0.5f) - 0x3f000000u;\n"
        "    else /* to nearest, ties to even */\n"
        "        rest = (rest - 0x38000000u + 0x0fffu + (rest >> 13 & 1u)) >> 13;\n"
        "    return (uint16_t)(sign | rest);\n");
    add(c, all, "float", "f32_of_bf16", "uint16_t h", "return f32_of_bits_u32((uint32_t)h << 16);");
    add(c, all, "uint16_t", "bf16_of_f32", "float v",
        "\n    const uint32_t bits = u32_of_bits_f32(v);\n"
        "    if ((bits & 0x7fffffffu) > 0x7f800000u)\n"
        "        return (uint16_t)(bits >> 16 | 0x0040u);\n"
        "    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);\n");
    for (size_t i = 0; i < COUNT(halves); i++) {
        const char *h = halves[i], *other = halves[!i];

        add(c, all, "uint16_t", TEXT("%s_of_%s", h, other), "uint16_t v",
            TEXT("return %s_of_f32(f32_of_%s(v));", h, other));
        add(c, all, "double", TEXT("f64_of_%s", h), "uint16_t v",
            TEXT("return (double)f32_of_%s(v);", h));
        add(c, all, "uint16_t", TEXT("%s_of_f64", h), "double v",
            TEXT("return %s_of_f32((float)v);", h));
        for (size_t k = 0; k < COUNT(whole); k++) {
            const char *w = whole[k].name, *t = whole[k].type;

            add(c, all, t, TEXT("%s_of_%s", w, h), "uint16_t v",
                TEXT("return %s_of_f32(f32_of_%s(v));", w, h));
            add(c, all, "uint16_t", TEXT("%s_of_%s", h, w), TEXT("%s v", t),
                TEXT("return %s_of_f32((float)v);", h));
        }
    }
}

void c_prelude(Ctx *c, const char *code, StrBuf *out)
{
    StrBuf      vectors = strbuf(c->arena);
    Helpers     all = {0};
    const char *body;

    of_reals(c, &all);
    of_whole(c, &all);
    of_halves(c, &all);
    c_vectors(c, code, out, &vectors);
    body = vectors.n ? TEXT("%s%s", vectors.at, code) : code;
    bool *wanted = NEW_ARRAY(c->arena, bool, all.n);
    for (uint32_t i = all.n; i-- > 0;) {
        wanted[i] = c_calls(body, all.at[i].name);
        for (uint32_t k = i + 1; k < all.n && !wanted[i]; k++)
            wanted[i] = wanted[k] && c_calls(all.at[k].text, all.at[i].name);
    }
    for (uint32_t i = 0; i < all.n; i++)
        if (wanted[i])
            str_add(out, all.at[i].text);
    str_add(out, vectors.n ? vectors.at : "");
}

/* Whatever ends like them, in _<type>; types of vectors. */
bool c_is_helper(const char *name)
{
    static const char *const types[] = {"i8",  "i16", "i32", "i64",  "u8",  "u16",
                                        "u32", "u64", "f16", "bf16", "f32", "f64"};
    const char              *last = strrchr(name, '_');

    for (size_t i = 0; last && i < COUNT(types); i++)
        if (!strcmp(last + 1, types[i]))
            return true;
    return c_is_vector(name);
}
