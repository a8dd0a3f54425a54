/* Metal Shading Language from flat TIR, through clike.  A kernel's buffers are numbered from 0 on;
 * offsets and other values are one array behind them.  The language has no f64; f16 and bf16 are
 * ushort in memory and float when they are computed with, as on other devices. */
#include "backends/clike/clike.h"
#include "backends/common/device.h"
#include "backends/metal/metal.h"

#include <math.h>

static const char *msl_type(DType t)
{
    return dtype_eq(t, DT_F64) ? NULL : clike_short_type(t);
}

static const char *msl_space(Scope s, bool written)
{
    if (s == SCOPE_SHARED)
        return "threadgroup";
    return written ? "device" : "device const";
}

static void msl_slot(StrBuf *s, uint32_t i)
{
    str_printf(s, " [[buffer(%u)]]", i);
}

static const char *msl_axis(BindAxis a)
{
    static const char *const text[] = {
        [AXIS_BLOCK_X] = "(int)at_group.x",   [AXIS_BLOCK_Y] = "(int)at_group.y",
        [AXIS_BLOCK_Z] = "(int)at_group.z",   [AXIS_THREAD_X] = "(int)at_thread.x",
        [AXIS_THREAD_Y] = "(int)at_thread.y", [AXIS_THREAD_Z] = "(int)at_thread.z"};

    return text[a];
}

/* Literals have to fit before their sign. */
static void msl_integer(StrBuf *s, DType t, int64_t v)
{
    const char *suffix = t.bits == 64 ? "L" : "";

    if (t.code == DT_UINT)
        str_printf(s, "%lluu%s", (unsigned long long)v, suffix);
    else if (v == INT64_MIN || (t.bits == 32 && v == INT32_MIN))
        str_printf(s, "(%lld%s - 1)", (long long)v + 1, suffix);
    else
        str_printf(s, "%lld%s", (long long)v, suffix);
}

/* Nine digits tell all floats apart; C++14 has no hexadecimal ones. */
static void msl_real(StrBuf *s, DType t, double v)
{
    if (dtype_is_half(t))
        clike_half(s, t, v);
    else if (isnan(v))
        str_add(s, "as_type<float>(0x7fc00000u)");
    else if (isinf(v))
        str_printf(s, "as_type<float>(0x%s800000u)", v < 0 ? "ff" : "7f");
    else
        str_printf(s, "%.8ef", v);
}

static const char *msl_bits(DType to, DType from)
{
    (void)from;
    return dtype_is_float(to)  ? "as_type<float>"
           : to.code == DT_INT ? "as_type<int>"
                               : "as_type<uint>";
}

static void msl_kernel(StrBuf *s, ClikeBlock block)
{
    if (block.threads)
        str_printf(s, "[[max_total_threads_per_threadgroup(%lld)]] ", (long long)block.threads);
    str_add(s, "kernel void");
}

static const char *msl_matrix(const Intrin *row, Matrix of)
{
    return dtype_eq(of == MATRIX_C ? row->result.dtype : row->operand[of].dtype, DT_F32)
               ? "simdgroup_float8x8"
               : "simdgroup_half8x8";
}

/* Lines of b are columns of the sum, so it lies transposed. */
static void msl_matrix_op(StrBuf *s, const Intrin *row, Matrix of, const MatrixOp *op,
                          const char *const text[4])
{
    (void)row;
    switch (op->kind) {
    case MATRIX_FILL:
        str_printf(s, "%s = make_filled_simdgroup_matrix<float, 8, 8>(%s);\n", text[0], text[3]);
        return;
    case MATRIX_LOAD:
        str_printf(s, "simdgroup_load(%s, (threadgroup const half *)&%s, %lld%s);\n", text[0],
                   text[3], (long long)op->apart, of == MATRIX_B ? ", ulong2(0), true" : "");
        return;
    case MATRIX_MULTIPLY:
        str_printf(s, "simdgroup_multiply_accumulate(%s, %s, %s, %s);\n", text[0], text[1], text[2],
                   text[0]);
        return;
    case MATRIX_STORE:
        str_printf(s, "simdgroup_store(%s, &%s, %lld);\n", text[0], text[3], (long long)op->apart);
        return;
    }
}

static const ClikeDialect dialect = {.name = "the Metal Shading Language",
                                     .type = msl_type,
                                     .space = msl_space,
                                     .own = "thread",
                                     .axis = msl_axis,
                                     .slot = msl_slot,
                                     .values = "constant long *values",
                                     .last = "uint3 at_group [[threadgroup_position_in_grid]], "
                                             "uint3 at_thread [[thread_position_in_threadgroup]]",
                                     .math = clike_math_overloaded,
                                     .integer = msl_integer,
                                     .real = msl_real,
                                     .bits = msl_bits,
                                     .kernel = msl_kernel,
                                     .function = "static inline",
                                     .half_if = "__METAL_VERSION__",
                                     .half_to = "return (float)as_type<half>(h);",
                                     .half_from = "return as_type<ushort>((half)v);",
                                     .shared = "threadgroup",
                                     .shared_bytes = 8, /* ushort4 */
                                     .vector = clike_short_vector,
                                     .make = {"", "("},
                                     .noalias = "__restrict",
                                     .barrier = "threadgroup_barrier(mem_flags::mem_threadgroup);",
                                     .fma = "fma",
                                     .matrix = msl_matrix,
                                     .matrix_op = msl_matrix_op,
                                     .wide = "long",
                                     .narrow = "int"};

static bool print(Ctx *c, uint32_t n, const Func *const *funcs, StrBuf *out)
{
    StrBuf body = strbuf(c->arena);

    if (!clike_kernels(c, &dialect, n, funcs, &body))
        return false;
    const char *kernels = body.n ? body.at : "";
    str_add(out, "#include <metal_stdlib>\n"
                 "using namespace metal;\n"
                 "#pragma METAL fp math_mode(safe)\n"
                 "#pragma METAL fp contract(off)\n\n");
    clike_prelude(c, &dialect, kernels, out);
    str_printf(out, "\n%s", kernels);
    return true;
}

bool metal_source(Ctx *c, const TirModule *m, StrBuf *out)
{
    return print(c, m->nfuncs, m->funcs, out);
}

bool metal_kernel(Ctx *c, const Func *f, StrBuf *out)
{
    return print(c, 1, &f, out);
}
