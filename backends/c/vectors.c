/* Vectors of GNU C in the text: types, and functions for what C has no operator for.
 *
 *     typedef float f32x8 __attribute__((vector_size(32)));
 *     static inline f32x8 load_f32x8(const float *p) { .. }
 *
 * The text is read for names that end like a type of vectors, <what>_f32x8, and gets those
 * functions; what has no form of its own here computes lane after lane by the scalar function
 * <what>, which compilers make instructions of where there are any. */
#include "backends/c/c.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *text, *cell, *mask; /* mask: what comparisons of such lanes give, without lanes */
    uint32_t    bits;
    char        kind; /* f, h (16 bits of a float), i, u, b */
} Cell;

static const Cell cells[] = {
    {"f32", "float", "i32", 32, 'f'},    {"f64", "double", "i64", 64, 'f'},
    {"f16", "uint16_t", "i16", 16, 'h'}, {"bf16", "uint16_t", "i16", 16, 'h'},
    {"i8", "int8_t", "i8", 8, 'i'},      {"i16", "int16_t", "i16", 16, 'i'},
    {"i32", "int32_t", "i32", 32, 'i'},  {"i64", "int64_t", "i64", 64, 'i'},
    {"u8", "uint8_t", "i8", 8, 'u'},     {"u16", "uint16_t", "i16", 16, 'u'},
    {"u32", "uint32_t", "i32", 32, 'u'}, {"u64", "uint64_t", "i64", 64, 'u'},
    {"bool", "int32_t", "i32", 32, 'b'}};

typedef struct {
    Ctx   *c;
    Map   *seen;
    StrBuf types, functions;
} Vectors;

#define TEXT(...) arena_printf(v->c->arena, __VA_ARGS__)

/* `f32x8` at the end of a name of n letters, behind nothing or '_'; NULL: none. */
static const Cell *vector_of(const char *name, size_t n, uint32_t *lanes, size_t *at)
{
    size_t digits = n;

    while (digits && isdigit((unsigned char)name[digits - 1]))
        digits--;
    if (digits == n || !digits || name[digits - 1] != 'x')
        return NULL;
    for (size_t i = 0; i < COUNT(cells); i++) {
        size_t w = strlen(cells[i].text);

        *at = digits - 1 - (digits > w ? w : digits - 1);
        if (digits - 1 - *at != w || strncmp(name + *at, cells[i].text, w) ||
            (*at && name[*at - 1] != '_'))
            continue;
        *lanes = (uint32_t)strtoul(name + digits, NULL, 10);
        return &cells[i];
    }
    return NULL;
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

bool c_is_vector(const char *name)
{
    uint32_t lanes;
    size_t   at;

    return vector_of(name, strlen(name), &lanes, &at) != NULL;
}

/* GNU's vectors have powers of two; what is beyond the lanes of others is computed and not kept. */
static uint32_t rounded(uint32_t lanes)
{
    uint32_t n = 1;

    while (n < lanes)
        n *= 2;
    return n;
}

/* Types before what has them; once. */
static const char *type(Vectors *v, const char *cell, uint32_t lanes)
{
    const char *name = intern_printf(v->c->strings, "%sx%u", cell, lanes);
    const Cell *k = NULL;

    if (map_get(v->seen, PTR_KEY(name)))
        return name;
    map_put(v->seen, PTR_KEY(name), v);
    for (size_t i = 0; i < COUNT(cells); i++)
        if (!strcmp(cells[i].text, cell))
            k = &cells[i];
    str_printf(&v->types, "typedef %s %s __attribute__((vector_size(%u)));\n", k->cell, name,
               k->bits / 8 * rounded(lanes));
    return name;
}

static const char *each(Vectors *v, const char *form, uint32_t lanes)
{
    StrBuf s = strbuf(v->c->arena);

    for (uint32_t i = 0; i < lanes; i++) {
        str_add(&s, i ? ", " : "");
        str_printf(&s, form, i);
    }
    return s.at;
}

static void define(Vectors *v, const char *result, const char *name, const char *params,
                   const char *body)
{
    str_printf(&v->functions, "static inline %s %s(%s)\n{\n%s%s\n}\n\n", result, name, params,
               *body == '#' ? "" : "    ", body);
}

/* A condition in lanes as wide as those of `m`, and back. */
static const char *widened(Vectors *v, const Cell *k, uint32_t lanes, const char *m)
{
    return k->bits == 32 ? m : TEXT("__builtin_convertvector(%s, %s)", m, type(v, k->mask, lanes));
}

static const char *flags(Vectors *v, const Cell *k, uint32_t lanes, const char *m)
{
    return k->bits == 32 ? m : TEXT("__builtin_convertvector(%s, %s)", m, type(v, "bool", lanes));
}

/* a where the mask m, as wide as a, is set; else b. */
static const char *chosen(Vectors *v, const Cell *k, uint32_t lanes, const char *m, const char *a,
                          const char *b)
{
    const char *t = type(v, k->text, lanes), *i = type(v, k->mask, lanes);

    return TEXT("const %s m = %s;\n    return (%s)((m & (%s)%s) | (~m & (%s)%s));", i, m, t, i, a,
                i, b);
}

/* How a vector is fused where the compiler does not see it. */
static const char *fused(Vectors *v, const Cell *k, uint32_t lanes)
{
    const bool  wide = k->bits == 64;
    const char *loop = TEXT("a[i] = __builtin_fma%s(a[i], b[i], c[i]);", wide ? "" : "f"), *x86,
               *arm;
    uint32_t bytes = k->bits / 8 * lanes;

    loop = TEXT("for (int i = 0; i < %u; i++)\n        %s\n    return a;", lanes, loop);
    x86 = TEXT("return _mm%s_fmadd_p%s(a, b, c);",
               bytes == 64   ? "512"
               : bytes == 32 ? "256"
                             : "",
               wide ? "d" : "s");
    arm = TEXT("return vfmaq_f%u(c, a, b);", k->bits);
    if (bytes != 16 && bytes != 32 && bytes != 64)
        return loop;
    return TEXT("#if defined(%s)\n    %s\n%s#else\n    %s\n#endif",
                bytes == 64 ? "__AVX512F__" : "__FMA__", x86,
                bytes == 16 ? TEXT("#elif defined(__aarch64__)\n    %s\n", arm) : "", loop);
}

/* What a function of the scalar prelude computes with NaN and zeros, in masks. */
static const char *extreme(const char *what, char kind)
{
    static const struct {
        const char *what, *real, *whole;
    } rows[] = {{"min", "(a < b) | (a != a) | ((a == b) & (s < 0))", "a < b"},
                {"max", "(a > b) | (a != a) | ((a == b) & (s >= 0))", "a > b"},
                {"minnum", "~((b < a) | (a != a))", NULL},
                {"maxnum", "~((b > a) | (a != a))", NULL}};

    for (size_t i = 0; i < COUNT(rows); i++)
        if (!strcmp(rows[i].what, what))
            return kind == 'f' ? rows[i].real : kind == 'i' || kind == 'u' ? rows[i].whole : NULL;
    return NULL;
}

static bool is(const char *what, const char *a, const char *b)
{
    return !strcmp(what, a) || (b && !strcmp(what, b));
}

/* Memory: cells may lie anywhere that suits them, and have any type. */
static bool of_memory(Vectors *v, const char *what, const Cell *k, const char *t, uint32_t lanes,
                      const char *name)
{
    const bool  flag = k->kind == 'b', to = is(what, "store", "storemask");
    const bool  masked = is(what, "loadmask", "storemask");
    const char *cell = flag ? "uint8_t" : k->cell;
    const char *take = flag ? "p[i] ? -1 : 0" : "p[i]",
               *give = flag ? "(uint8_t)(v[i] & 1)" : "v[i]";

    if (!to && !is(what, "load", "loadmask"))
        return false;
    const char *params =
        to ? TEXT("%s *p, %s v%s", cell, t, masked ? TEXT(", %s m", type(v, "bool", lanes)) : "")
           : TEXT("const %s *p%s", cell, masked ? TEXT(", %s m", type(v, "bool", lanes)) : "");
    if (!masked && !flag && rounded(lanes) > lanes) {
        define(v, to ? "void" : t, name, params,
               to ? TEXT("__builtin_memcpy(p, &v, %u);", k->bits / 8 * lanes)
                  : TEXT("%s v = {0};\n    __builtin_memcpy(&v, p, %u);\n    return v;", t,
                         k->bits / 8 * lanes));
        return true;
    }
    if (!masked && !flag) {
        const char *any = TEXT("cells_%s", t);

        if (!map_get(v->seen, PTR_KEY(intern(v->c->strings, any)))) {
            map_put(v->seen, PTR_KEY(intern(v->c->strings, any)), v);
            str_printf(
                &v->functions,
                "typedef %s %s __attribute__((vector_size(%u), aligned(%u), may_alias));\n\n",
                k->cell, any, k->bits / 8 * lanes, k->bits / 8);
        }
        define(v, to ? "void" : t, name, params,
               to ? TEXT("*(%s *)(void *)p = v;", any)
                  : TEXT("return *(const %s *)(const void *)p;", any));
        return true;
    }
    if (to)
        define(v, "void", name, params,
               TEXT("for (int i = 0; i < %u; i++)\n        %sp[i] = %s;", lanes,
                    masked ? "if (m[i])\n            " : "", give));
    else
        define(v, t, name, params,
               TEXT("%s v = {0};\n    for (int i = 0; i < %u; i++)\n        %sv[i] = %s;\n    "
                    "return v;",
                    t, lanes, masked ? "if (m[i])\n            " : "", take));
    return true;
}

/* <t>_of_<from> */
static bool of_conversion(Vectors *v, const char *what, const Cell *k, const char *t,
                          uint32_t lanes, const char *name)
{
    uint32_t    n;
    size_t      at;
    const char *of = strstr(what, "_of");
    const Cell *to;

    /* `name` is <to>x8_of_<from>x8: `what` ends in "_of" */
    if (!of || of[3] || !(to = vector_of(what, (size_t)(of - what), &n, &at)) || at)
        return false;
    const char *result = type(v, to->text, lanes), *params = TEXT("%s a", t);
    const bool  saturates = k->kind == 'f' && (to->kind == 'i' || to->kind == 'u');

    if (to->kind == 'b') {
        define(v, result, name, params, TEXT("return %s;", flags(v, k, lanes, "(a != 0)")));
    } else if (k->kind == 'b' && to->kind != 'h') {
        define(v, result, name, params, TEXT("return __builtin_convertvector(a & 1, %s);", result));
    } else if (saturates || to->kind == 'h' || k->kind == 'h') {
        const char *from = k->kind == 'b' ? "i32" : k->text;
        const char *one = !strcmp(to->text, from) ? "a[i]" : TEXT("%s_of_%s(a[i])", to->text, from);
        define(
            v, result, name, params,
            TEXT("%s v = {0};\n    for (int i = 0; i < %u; i++)\n        v[i] = %s;\n    return v;",
                 result, lanes, k->kind == 'b' ? TEXT("%s_of_i32(a[i] & 1)", to->text) : one));
    } else {
        define(v, result, name, params, TEXT("return __builtin_convertvector(a, %s);", result));
    }
    return true;
}

static bool of_shifts(Vectors *v, const char *what, const Cell *k, const char *t, uint32_t lanes,
                      const char *name)
{
    const char *u, *by;

    if (!is(what, "shl", "shr"))
        return false;
    u = k->kind == 'i' ? type(v, TEXT("u%u", k->bits), lanes) : t;
    by = TEXT("(b & (%s){%s})", t, each(v, TEXT("%u", k->bits - 1), lanes));
    define(v, t, name, TEXT("%s a, %s b", t, t),
           is(what, "shl", NULL) ? TEXT("return (%s)((%s)a << (%s)%s);", t, u, u, by)
                                 : TEXT("return a >> %s;", by));
    return true;
}

static void of_values(Vectors *v, const char *what, const Cell *k, const char *t, uint32_t lanes,
                      const char *name)
{
    static const char *const signs[][2] = {{"eq", "=="}, {"ne", "!="}, {"lt", "<"}, {"le", "<="}};
    static const char *const two[] = {"min", "max",  "div",   "rem",    "powf",
                                      "pow", "fmod", "fmodf", "atan2f", "atan2"};
    enum { OF_PRELUDE = 4 }; /* so many of these are called after the type of a lane */
    const char *ab = TEXT("%s a, %s b", t, t), *m = extreme(what, k->kind);
    const char *mask = type(v, k->mask, lanes), *one = TEXT("%s(a[i])", what);

    for (size_t i = 0; i < COUNT(signs); i++)
        if (is(what, signs[i][0], NULL)) {
            define(v, type(v, "bool", lanes), name, ab,
                   TEXT("return %s;", flags(v, k, lanes, TEXT("(a %s b)", signs[i][1]))));
            return;
        }
    if (is(what, "splat", NULL)) {
        define(v, t, name, TEXT("%s a", k->cell), TEXT("return (%s){%s};", t, each(v, "a", lanes)));
    } else if (is(what, "ramp", NULL)) {
        define(v, t, name, TEXT("%s a", k->cell),
               TEXT("return (%s){%s};", t, each(v, TEXT("(%s)(a + %%u)", k->cell), lanes)));
    } else if (is(what, "select", NULL)) {
        define(v, t, name, TEXT("%s c, %s a, %s b", type(v, "bool", lanes), t, t),
               chosen(v, k, lanes, widened(v, k, lanes, "c"), "a", "b"));
    } else if (is(what, "fma", NULL)) {
        define(v, t, name, TEXT("%s a, %s b, %s c", t, t, t), fused(v, k, lanes));
    } else if (m) {
        define(v, t, name, ab,
               TEXT("%s%s",
                    strstr(m, "s <") || strstr(m, "s >")
                        ? TEXT("const %s s = (%s)a;\n    ", mask, mask)
                        : "",
                    chosen(v, k, lanes, m, "a", "b")));
    } else if (is(what, "abs_f32", "abs_f64")) {
        define(v, t, name, TEXT("%s a", t),
               TEXT("return (%s)((%s)a & ~(%s)(%s){%s});", t, mask, mask, t,
                    each(v, k->bits == 32 ? "-0.0f" : "-0.0", lanes)));
    } else if (is(what, "copysign_f32", "copysign_f64")) {
        define(v, t, name, ab,
               TEXT("const %s m = (%s)(%s){%s};\n    return (%s)(((%s)a & ~m) | ((%s)b & m));",
                    mask, mask, t, each(v, k->bits == 32 ? "-0.0f" : "-0.0", lanes), t, mask,
                    mask));
    } else {
        size_t i = 0;

        while (i < COUNT(two) && !is(what, two[i], NULL))
            i++;
        if (i < COUNT(two))
            one = TEXT(i < OF_PRELUDE ? "%s_%s(a[i], b[i])" : "%s(a[i], b[i])", what, k->text);
        define(v, t, name, i < COUNT(two) ? ab : TEXT("%s a", t),
               TEXT("for (int i = 0; i < %u; i++)\n        a[i] = %s;\n    return a;", lanes, one));
    }
}

static void add(Vectors *v, const char *at, size_t n)
{
    uint32_t    lanes;
    size_t      begin;
    const Cell *k = vector_of(at, n, &lanes, &begin);
    const char *name = k ? intern_n(v->c->strings, at, n) : NULL, *t, *what;

    if (!k || map_get(v->seen, PTR_KEY(name)))
        return;
    t = type(v, k->text, lanes);
    if (!begin)
        return;
    map_put(v->seen, PTR_KEY(name), v);
    what = intern_n(v->c->strings, at, begin - 1);
    if (!of_memory(v, what, k, t, lanes, name) && !of_conversion(v, what, k, t, lanes, name) &&
        !of_shifts(v, what, k, t, lanes, name))
        of_values(v, what, k, t, lanes, name);
}

void c_vectors(Ctx *c, const char *body, StrBuf *types, StrBuf *functions)
{
    Vectors v = {c, map_new(c->arena), strbuf(c->arena), strbuf(c->arena)};

    for (const char *p = body; *p;) {
        size_t n = 0;

        while (isalnum((unsigned char)p[n]) || p[n] == '_')
            n++;
        if (n)
            add(&v, p, n);
        p += n + !n;
    }
    if (v.functions.n && strstr(v.functions.at, "_fmadd_"))
        str_add(types, "#if defined(__FMA__) || defined(__AVX512F__)\n#include <immintrin.h>\n"
                       "#elif defined(__aarch64__)\n#include <arm_neon.h>\n#endif\n\n");
    if (v.types.n)
        str_printf(types, "%s\n", v.types.at);
    str_add(functions, v.functions.n ? v.functions.at : "");
}
