/* OpenCL C 1.2 from flat TIR, through clike.  The text is built by the driver of the device at run
 * time (`<model>_open`), so one product runs on every OpenCL device. */
#include "backends/backend.h"
#include "backends/clike/clike.h"
#include "backends/opencl/opencl.h"

#include <math.h>
#include <string.h>

static const char *cl_type(DType t)
{
    switch (t.code) {
    case DT_BOOLEAN: return "uchar";
    case DT_INT:
        return t.bits == 8 ? "char" : t.bits == 16 ? "short" : t.bits == 32 ? "int" : "long";
    case DT_UINT:
        return t.bits == 8 ? "uchar" : t.bits == 16 ? "ushort" : t.bits == 32 ? "uint" : "ulong";
    case DT_FLOAT: return t.bits == 32 ? "float" : t.bits == 64 ? "double" : NULL;
    default: return NULL;
    }
}

static const char *cl_space(Scope s, bool written)
{
    if (s == SCOPE_SHARED)
        return "__local";
    return written ? "__global" : "__global const";
}

static const char *cl_axis(BindAxis a)
{
    static const char *const text[] = {
        [AXIS_BLOCK_X] = "get_group_id(0)",  [AXIS_BLOCK_Y] = "get_group_id(1)",
        [AXIS_BLOCK_Z] = "get_group_id(2)",  [AXIS_THREAD_X] = "get_local_id(0)",
        [AXIS_THREAD_Y] = "get_local_id(1)", [AXIS_THREAD_Z] = "get_local_id(2)"};

    return text[a];
}

static const char *cl_math(MathFn fn, DType t)
{
    static const char *const text[MATH_COUNT] = {
        [MATH_EXP] = "exp",     [MATH_LOG] = "log",           [MATH_TANH] = "tanh",
        [MATH_ERF] = "erf",     [MATH_SQRT] = "sqrt",         [MATH_ABS] = "fabs",
        [MATH_FLOOR] = "floor", [MATH_CEIL] = "ceil",         [MATH_TRUNC] = "trunc",
        [MATH_ROUND] = "rint",  [MATH_COPYSIGN] = "copysign", [MATH_POW] = "pow",
        [MATH_FMOD] = "fmod",   [MATH_SIN] = "sin",           [MATH_COS] = "cos",
        [MATH_TAN] = "tan",     [MATH_ASIN] = "asin",         [MATH_ACOS] = "acos",
        [MATH_ATAN] = "atan",   [MATH_ATAN2] = "atan2",       [MATH_SINH] = "sinh",
        [MATH_COSH] = "cosh",   [MATH_ASINH] = "asinh",       [MATH_ACOSH] = "acosh",
        [MATH_ATANH] = "atanh"};

    if (!dtype_is_float(t))
        return fn == MATH_ABS ? "abs" : NULL;
    return text[fn];
}

static void cl_integer(StrBuf *s, DType t, int64_t v)
{
    str_printf(s, t.bits == 64 ? "%lldL" : "%lld", (long long)v);
}

static void cl_real(StrBuf *s, DType t, double v)
{
    if (isnan(v))
        str_printf(s, "(%s)NAN", cl_type(t));
    else if (isinf(v))
        str_printf(s, "(%s)%sINFINITY", cl_type(t), v < 0 ? "-" : "");
    else
        str_printf(s, t.bits == 64 ? "%a" : "%af", v);
}

static const char *cl_helper(Ctx *c, const char *what, DType t)
{
    return arena_printf(c->arena, "%s_%s", what, cl_type(t));
}

static const char *cl_convert(Ctx *c, DType to, DType from)
{
    return dtype_is_float(from) && dtype_is_int(to)
               ? arena_printf(c->arena, "convert_%s_sat_rtz", cl_type(to))
               : NULL;
}

static const char *cl_bits(Ctx *c, DType to, DType from)
{
    (void)from;
    return arena_printf(c->arena, "as_%s", cl_type(to));
}

static const ClikeDialect dialect = {.name = "OpenCL C",
                                     .type = cl_type,
                                     .space = cl_space,
                                     .axis = cl_axis,
                                     .math = cl_math,
                                     .integer = cl_integer,
                                     .real = cl_real,
                                     .helper = cl_helper,
                                     .convert = cl_convert,
                                     .bits = cl_bits,
                                     .kernel_prefix = "__kernel void",
                                     .noalias = "restrict",
                                     .barrier = "barrier(CLK_LOCAL_MEM_FENCE);",
                                     .fma = "fma",
                                     .wide = "long",
                                     .narrow = "int"};

const char *opencl_symbol(Ctx *c, const char *func)
{
    size_t n = strlen(func);
    char  *name = arena_dup(c->arena, func, n + 1);

    for (size_t i = 0; i < n; i++)
        if (!((name[i] >= 'a' && name[i] <= 'z') || (name[i] >= 'A' && name[i] <= 'Z') ||
              (name[i] >= '0' && name[i] <= '9')))
            name[i] = '_';
    return arena_printf(c->arena, "k_%s", name);
}

/* Functions that stand in for operators with rules of their own (ir/tir/tir.h). */
static void helper(Ctx *c, const char *body, const char *name, const char *type, const char *result,
                   StrBuf *out)
{
    const char *fn = arena_printf(c->scratch, "%s_%s", name, type);

    if (strstr(body, arena_printf(c->scratch, "%s(", fn)))
        str_printf(out, "%s %s(%s a, %s b) { return %s; }\n", type, fn, type, type, result);
}

static void prelude(Ctx *c, const char *body, StrBuf *out)
{
    static const char *const floats[] = {"float", "double"}, *const floors[] = {"int", "long"},
                             *const whole[] = {"char",  "short",  "int",  "long",
                                               "uchar", "ushort", "uint", "ulong"};

    str_add(out, "#pragma OPENCL FP_CONTRACT OFF\n");
    if (strstr(body, "double"))
        str_add(out, "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n");
    for (size_t i = 0; i < COUNT(floors); i++)
        helper(c, body, "floordiv", floors[i], "a / b - (a % b < 0)", out);
    for (size_t i = 0; i < COUNT(floats);
         i++) { /* NaN wins in min and max, loses in minnum; -0 < +0 */
        helper(c, body, "min", floats[i], "a < b || isnan(a) || (a == b && signbit(a)) ? a : b",
               out);
        helper(c, body, "max", floats[i], "a > b || isnan(a) || (a == b && !signbit(a)) ? a : b",
               out);
        helper(c, body, "minnum", floats[i], "b < a || isnan(a) ? b : a", out);
        helper(c, body, "maxnum", floats[i], "b > a || isnan(a) ? b : a", out);
    }
    for (size_t i = 0; i < COUNT(whole); i++) {
        bool        minus = i < 4; /* the least number divided by -1 traps on some devices */
        const char *t = whole[i];
        helper(c, body, "min", t, "a < b ? a : b", out);
        helper(c, body, "max", t, "a > b ? a : b", out);
        helper(c, body, "div", t,
               minus ? arena_printf(c->scratch, "b == 0 ? 0 : b == -1 ? (%s)(0 - (u%s)a) : a / b",
                                    t, t)
                     : "b == 0 ? 0 : a / b",
               out);
        helper(c, body, "rem", t, minus ? "b == 0 || b == -1 ? 0 : a % b" : "b == 0 ? 0 : a % b",
               out);
    }
    str_add(out, "\n");
}

bool opencl_source(Ctx *c, const TirModule *m, StrBuf *out)
{
    StrBuf body = strbuf(c->arena);

    for (uint32_t i = 0; i < m->nfuncs; i++)
        if (m->funcs[i]->kind == FUNC_DEVICE &&
            !clike_kernel(c, &dialect, m->funcs[i], opencl_symbol(c, m->funcs[i]->name), &body))
            return false;
    prelude(c, body.n ? body.at : "", out);
    if (body.n)
        str_addn(out, body.at, body.n);
    return true;
}
