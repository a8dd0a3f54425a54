/* CUDA C from flat TIR, through clike.
 *
 * The text is made for -fmad=false: what TIR fuses is fma(), and nothing else is.  f16 and bf16 are
 * unsigned short in memory and float when they are computed with. */
#include "backends/clike/clike.h"
#include "backends/cuda/cuda.h"

#include <math.h>
#include <string.h>

static const char *cu_type(DType t)
{
    switch (t.code) {
    case DT_BOOLEAN: return "unsigned char";
    case DT_INT:
        return t.bits == 8    ? "signed char"
               : t.bits == 16 ? "short"
               : t.bits == 32 ? "int"
                              : "long long";
    case DT_UINT:
        return t.bits == 8    ? "unsigned char"
               : t.bits == 16 ? "unsigned short"
               : t.bits == 32 ? "unsigned"
                              : "unsigned long long";
    case DT_FLOAT: return t.bits == 16 ? "unsigned short" : t.bits == 32 ? "float" : "double";
    case DT_BFLOAT: return "unsigned short";
    default: return NULL;
    }
}

static const char *cu_vector(Ctx *c, DType t)
{
    if (t.bits == 64 && t.code != DT_FLOAT)
        return intern_printf(c->strings, "%slonglong%u", t.code == DT_UINT ? "u" : "",
                             (unsigned)t.lanes);
    if (t.bits == 64)
        return intern_printf(c->strings, "double%u", (unsigned)t.lanes);
    return clike_short_vector(c, t);
}

/* Pointers are generic. */
static const char *cu_space(Scope s, bool written)
{
    return s == SCOPE_SHARED || written ? "" : "const";
}

static const char *cu_axis(BindAxis a)
{
    static const char *const text[] = {
        [AXIS_BLOCK_X] = "(int)blockIdx.x",   [AXIS_BLOCK_Y] = "(int)blockIdx.y",
        [AXIS_BLOCK_Z] = "(int)blockIdx.z",   [AXIS_THREAD_X] = "(int)threadIdx.x",
        [AXIS_THREAD_Y] = "(int)threadIdx.y", [AXIS_THREAD_Z] = "(int)threadIdx.z"};

    return text[a];
}

/* Of these the sign is all that changes: modifiers of an operand. */
static const char *cu_math(MathFn fn, DType t)
{
    if (dtype_is_float(t) && fn == MATH_ABS)
        return t.bits == 64 ? "fabs" : "fabsf";
    if (dtype_is_float(t) && fn == MATH_COPYSIGN)
        return t.bits == 64 ? "copysign" : "copysignf";
    return clike_math(fn, t);
}

static void cu_integer(StrBuf *s, DType t, int64_t v)
{
    const char *suffix = t.bits == 64 ? "LL" : "";

    if (t.code == DT_UINT && t.bits >= 32)
        str_printf(s, "%lluu%s", (unsigned long long)v, suffix);
    else if (v == INT64_MIN ||
             (t.bits == 32 && v == INT32_MIN)) /* its digits alone are too large */
        str_printf(s, "(%lld%s - 1)", (long long)v + 1, suffix);
    else
        str_printf(s, "%lld%s", (long long)v, suffix);
}

static void cu_real(StrBuf *s, DType t, double v)
{
    if (dtype_is_half(t))
        clike_half(s, t, v);
    else if (v - v == 0)
        str_printf(s, t.bits == 64 ? "%a" : "%af", v);
    else if (t.bits == 32)
        str_printf(s, "__uint_as_float(0x%su)",
                   isnan(v) ? "7fc00000"
                   : v < 0  ? "ff800000"
                            : "7f800000");
    else
        str_printf(s, "__longlong_as_double(0x%s000000000000LL)",
                   isnan(v) ? "7ff8"
                   : v < 0  ? "fff0"
                            : "7ff0");
}

static const char *cu_bits(DType to, DType from)
{
    if (dtype_is_float(to))
        return to.bits == 64         ? "__longlong_as_double"
               : from.code == DT_INT ? "__int_as_float"
                                     : "__uint_as_float";
    if (to.bits == 64)
        return to.code == DT_INT ? "__double_as_longlong"
                                 : "(unsigned long long)__double_as_longlong";
    return to.code == DT_INT ? "__float_as_int" : "__float_as_uint";
}

/* One block alone may have all registers: rules count on them, and say how many blocks there are.
 */
static void cu_kernel(StrBuf *s, ClikeBlock block)
{
    str_add(s, "extern \"C\" __global__ void");
    if (block.threads)
        str_printf(s, " __launch_bounds__(%lld, 1)", (long long)block.threads);
}

/* Shared memory of a kernel that needs more than it may declare; its launch says how much. */
#define GIVEN "given_memory"
#define GIVEN_MEMORY                                                                     \
    "#if defined(__CUDA_ARCH__)\nextern __shared__ __align__(%lld) unsigned char " GIVEN \
    "[];\n#endif\n"

static void cu_border(StrBuf *s, int64_t bytes)
{
    str_printf(s, "__align__(%lld) ", (long long)bytes);
}

static const ClikeDialect dialect = {.name = "CUDA C",
                                     .type = cu_type,
                                     .space = cu_space,
                                     .axis = cu_axis,
                                     .math = cu_math,
                                     .integer = cu_integer,
                                     .real = cu_real,
                                     .bits = cu_bits,
                                     .kernel = cu_kernel,
                                     .function = "static __device__ inline",
                                     .half_if = "defined(__CUDA_ARCH__)",
                                     .half_to = "float f; asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(f) "
                                                ": \"h\"(h)); return f;",
                                     .half_from =
                                         "unsigned short h; asm(\"cvt.rn.f16.f32 %0, %1;\" "
                                         ": \"=h\"(h) : \"f\"(v)); return h;",
                                     .extreme_if = "defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800",
                                     .min = "float m; asm(\"min.NaN.f32 %0, %1, %2;\" : \"=f\"(m) "
                                            ": \"f\"(a), \"f\"(b)); return m;",
                                     .max = "float m; asm(\"max.NaN.f32 %0, %1, %2;\" : \"=f\"(m) "
                                            ": \"f\"(a), \"f\"(b)); return m;",
                                     .instruction = cuda_instruction,
                                     .shared = "__shared__ __align__(16)",
                                     .border = cu_border,
                                     .shared_wide = true,
                                     .vector = cu_vector,
                                     .make = {"make_", "("},
                                     .words = true,
                                     .declares = NVIDIA_DECLARED,
                                     .given = GIVEN,
                                     .noalias = "__restrict__",
                                     .runs = true,
                                     .barrier = "__syncthreads();",
                                     .group = cuda_group,
                                     .group_barrier = "shared_fence(); __syncthreads();",
                                     .fma = "fma",
                                     .wide = "long long",
                                     .narrow = "int"};

static bool print(Ctx *c, uint32_t n, const Func *const *funcs, StrBuf *out)
{
    StrBuf  body = strbuf(c->arena);
    int64_t border = SHARED_BORDER;

    for (uint32_t i = 0; i < n; i++) {
        int64_t own = func_shared_border(funcs[i]);
        border = own > border ? own : border;
    }
    if (!clike_kernels(c, &dialect, n, funcs, &body))
        return false;
    if (!body.n)
        return true;
    clike_prelude(c, &dialect, body.at, out);
    if (strstr(body.at, GIVEN))
        str_printf(out, GIVEN_MEMORY, (long long)border);
    str_printf(out, "%s%s", out->n ? "\n" : "", body.at);
    return true;
}

bool cuda_source(Ctx *c, const TirModule *m, StrBuf *out)
{
    return print(c, m->nfuncs, m->funcs, out);
}

bool cuda_kernel(Ctx *c, const Target *t, const Func *f, StrBuf *out)
{
    (void)t;
    return print(c, 1, &f, out);
}
