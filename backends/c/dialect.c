/* How C99 spells what clike prints.
 *
 * All arithmetic is on types of <stdint.h>, with casts where C would promote to an int of whatever
 * width; f16 and bf16 are uint16_t in memory and floats when they are computed with.  Numbers are
 * decimal, the shortest that read back as the same. */
#include "backends/c/c.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *c_type(DType t)
{
    switch (t.code) {
    case DT_BOOLEAN: return "uint8_t";
    case DT_INT:
        return t.bits == 8    ? "int8_t"
               : t.bits == 16 ? "int16_t"
               : t.bits == 32 ? "int32_t"
                              : "int64_t";
    case DT_UINT:
        return t.bits == 8    ? "uint8_t"
               : t.bits == 16 ? "uint16_t"
               : t.bits == 32 ? "uint32_t"
                              : "uint64_t";
    case DT_FLOAT: return t.bits == 16 ? "uint16_t" : t.bits == 32 ? "float" : "double";
    case DT_BFLOAT: return "uint16_t";
    default: return NULL;
    }
}

static void c_integer(StrBuf *s, DType t, int64_t v)
{
    if (t.code == DT_UINT && t.bits == 64)
        str_printf(s, (uint64_t)v > UINT32_MAX ? "UINT64_C(%" PRIu64 ")" : "%" PRIu64 "u",
                   (uint64_t)v);
    else if (t.code == DT_UINT)
        str_printf(s, "%" PRId64 "u", v);
    else if (v == INT64_MIN)
        str_add(s, "INT64_MIN");
    else if (v == INT32_MIN)
        str_add(s, "INT32_MIN");
    else
        str_printf(s, v > INT32_MAX || v < INT32_MIN ? "INT64_C(%" PRId64 ")" : "%" PRId64, v);
}

void c_real(StrBuf *s, DType t, double v)
{
    bool single = t.bits == 32;
    char text[40];

    if (dtype_is_half(t)) {
        clike_half(s, t, v);
        return;
    }
    if (v != v || v - v != 0) {
        str_add(s, v != v ? "NAN" : v < 0 ? "-INFINITY" : "INFINITY");
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (single ? strtof(text, NULL) == (float)v : strtod(text, NULL) == v)
            break;
    }
    str_printf(s, "%s%s%s", text, strpbrk(text, ".e") ? "" : ".0", single ? "f" : "");
}

/* In code, where infinities and NaN need no <math.h>. */
static void code_real(StrBuf *s, DType t, double v)
{
    if (dtype_is_half(t) || v - v == 0)
        c_real(s, t, v);
    else if (t.bits == 32)
        str_printf(s, "f32_of_bits_u32(0x%su)",
                   v != v  ? "7fc00000"
                   : v < 0 ? "ff800000"
                           : "7f800000");
    else
        str_printf(s, "f64_of_bits_u64(UINT64_C(0x%s000000000000))",
                   v != v  ? "7ff8"
                   : v < 0 ? "fff0"
                           : "7ff0");
}

/* What the text has other uses for: names of C, of headers, of the prelude. */
static bool c_taken(const char *name)
{
    static const char *const all[] = {"int8_t",   "int16_t",   "int32_t",   "int64_t", "uint8_t",
                                      "uint16_t", "uint32_t",  "uint64_t",  "size_t",  "ptrdiff_t",
                                      "intptr_t", "uintptr_t", "offsetof",  "linux",   "unix",
                                      "near",     "far",       "interrupt", "data",    "xdata",
                                      "asm",      "memcpy",    "memset",    "fmaf"};

    for (size_t i = 0; i < COUNT(all); i++)
        if (!strcmp(all[i], name))
            return true;
    for (int fn = 0; fn < MATH_COUNT; fn++)
        for (int wide = 0; wide < 2; wide++) {
            const char *of = clike_math((MathFn)fn, wide ? DT_F64 : DT_F32);
            if (of && !strcmp(of, name))
                return true;
        }
    return str_starts(name, "tvmcc_") || strstr(name, "__") || clike_is_helper(name) ||
           c_is_vector(name);
}

const ClikeDialect c_dialect = {.name = "C",
                                .type = c_type,
                                .math = clike_math,
                                .integer = c_integer,
                                .real = code_real,
                                .function = "static",
                                .noalias = "TVMCC_RESTRICT",
                                .promotes = true,
                                .wide = "int64_t",
                                .narrow = "int32_t",
                                .taken = c_taken};
