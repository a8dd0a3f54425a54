/* OpenCL C 1.2 from flat TIR, through clike.  The text is built by the driver of the device at run
 * time (`<model>_open`), so one product runs on every OpenCL device.  f16 and bf16 are ushort in
 * memory and float when they are computed with: 1.2 promises no more.  Where the target says so f16
 * is half (cl_khr_fp16). */
#include "backends/backend.h"
#include "backends/common/device.h"
#include "backends/opencl/opencl.h"

#include <math.h>
#include <string.h>

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

static void cl_integer(StrBuf *s, DType t, int64_t v)
{
    if (t.code == DT_UINT && t.bits == 64)
        str_printf(s, "%lluUL", (unsigned long long)v);
    else
        str_printf(s, t.bits == 64 ? "%lldL" : "%lld", (long long)v);
}

static void cl_real(StrBuf *s, DType t, double v)
{
    if (dtype_is_half(t))
        clike_half(s, t, v);
    else if (isnan(v))
        str_printf(s, "(%s)NAN", clike_short_type(t));
    else if (isinf(v))
        str_printf(s, "(%s)%sINFINITY", clike_short_type(t), v < 0 ? "-" : "");
    else
        str_printf(s, t.bits == 64 ? "%a" : "%af", v);
}

static const char *half_type(DType t)
{
    return dtype_eq(t, DT_F16) ? "half" : clike_short_type(t);
}

static const char *half_vector(Ctx *c, DType t)
{
    return dtype_eq(dtype_lanes(t, 1), DT_F16)
               ? intern_printf(c->strings, "half%u", (unsigned)t.lanes)
               : clike_short_vector(c, t);
}

static void half_real(StrBuf *s, DType t, double v)
{
    uint16_t bits;

    if (!dtype_eq(t, DT_F16)) {
        cl_real(s, t, v);
        return;
    }
    dtype_put_f(t, &bits, v);
    str_add(s, "(half)");
    cl_real(s, DT_F32, dtype_get_f(t, &bits));
}

/* What is exact, or rounded once: the rest is more exact by way of float. */
static bool has_half(const Prim *p)
{
    switch ((int)p->kind) {
    case PRIM_ADD:
    case PRIM_SUB:
    case PRIM_MUL:
    case PRIM_FMA:
    case PRIM_MIN:
    case PRIM_MAX:
    case PRIM_MINNUM:
    case PRIM_MAXNUM:
    case PRIM_EQ:
    case PRIM_NE:
    case PRIM_LT:
    case PRIM_LE: return true;
    case PRIM_MATH:
        return p->u.math == MATH_ABS || p->u.math == MATH_FLOOR || p->u.math == MATH_CEIL ||
               p->u.math == MATH_TRUNC || p->u.math == MATH_ROUND || p->u.math == MATH_COPYSIGN;
    }
    return false;
}

static const char *cl_convert(Ctx *c, DType to, DType from)
{
    return dtype_is_float(from) && !dtype_is_half(from) && dtype_is_int(to)
               ? arena_printf(c->arena, "convert_%s_sat_rtz", clike_short_type(to))
               : NULL;
}

static const char *cl_bits(DType to, DType from)
{
    (void)from;
    if (to.bits == 16)
        return dtype_eq(to, DT_F16) ? "as_half" : to.code == DT_INT ? "as_short" : "as_ushort";
    return dtype_is_float(to)  ? to.bits == 64 ? "as_double" : "as_float"
           : to.code == DT_INT ? to.bits == 64 ? "as_long" : "as_int"
           : to.bits == 64     ? "as_ulong"
                               : "as_uint";
}

static void cl_kernel(StrBuf *s, ClikeBlock block)
{
    (void)block;
    str_add(s, "__kernel void");
}

/* Circuits are made for groups of one size, or for the compiler's usual one, which may be too
 * small. */
static void aocl_kernel(StrBuf *s, ClikeBlock block)
{
    if (block.threads)
        str_printf(s, "__attribute__((reqd_work_group_size(%lld, %lld, %lld)))\n",
                   (long long)block.along[0], (long long)block.along[1], (long long)block.along[2]);
    cl_kernel(s, block);
}

/* Four products of bytes, of words (cl_khr_integer_dot_product): of any device, one by one where it
 * has none, and of those that the target says have them, whose program the run-time library knows
 * by the extension's name. */
#define DOT(name, fn, otherwise)                                        \
    "int " name "(uint a, uint b, int c)\n{\n"                          \
    "#if defined(__opencl_c_integer_dot_product_input_4x8bit_packed)\n" \
    "    return (int)((uint)c + (uint)" fn "(a, b));\n#else\n" otherwise "#endif\n}\n"
#define DOTS(id, name, fn, a, b)                                                           \
    [id - INTRIN_DOT4_UU] = {                                                              \
        DOT(name, fn,                                                                      \
            "    const " a "4 x = as_" a "4(a);\n    const " b "4 y = as_" b "4(b);\n"     \
            "    return (int)((uint)c + (uint)(x.x * y.x + x.y * y.y + x.z * y.z + x.w * " \
            "y.w));\n"),                                                                   \
        DOT(name, fn, "#error cl_khr_integer_dot_product\n"),                              \
    }

static const struct {
    const char *any, *having;
} dots[] = {DOTS(INTRIN_DOT4_UU, "dot4_u8_u8", "dot_4x8packed_uu_uint", "uchar", "uchar"),
            DOTS(INTRIN_DOT4_UI, "dot4_u8_i8", "dot_4x8packed_us_int", "uchar", "char"),
            DOTS(INTRIN_DOT4_IU, "dot4_i8_u8", "dot_4x8packed_su_int", "char", "uchar"),
            DOTS(INTRIN_DOT4_II, "dot4_i8_i8", "dot_4x8packed_ss_int", "char", "char")};

static bool is_dot(IntrinId id)
{
    return id >= INTRIN_DOT4_UU && id <= INTRIN_DOT4_II;
}

const char *opencl_instruction(IntrinId id)
{
    return is_dot(id) ? dots[id - INTRIN_DOT4_UU].any : NULL;
}

static const char *having_instruction(IntrinId id)
{
    return is_dot(id) ? dots[id - INTRIN_DOT4_UU].having : NULL;
}

/* Numbers of 16 bits in memory are converted without an extension, denormals as well.  Their bits
 * lie in an object of bytes, which may be read as any type. */
#define HALF_TO                                 \
    "\n    const uchar2 bits = as_uchar2(h);\n" \
    "    return vload_half(0, (const __private half *)&bits);\n"
#define HALF_FROM                                           \
    "\n    uchar2 bits;\n"                                  \
    "    vstore_half_rte(v, 0, (__private half *)&bits);\n" \
    "    return as_ushort(bits);\n"

static const ClikeDialect dialect = {.name = "OpenCL C",
                                     .type = clike_short_type,
                                     .space = cl_space,
                                     .axis = cl_axis,
                                     .math = clike_math_overloaded,
                                     .integer = cl_integer,
                                     .real = cl_real,
                                     .convert = cl_convert,
                                     .bits = cl_bits,
                                     .kernel = cl_kernel,
                                     .function = "",
                                     .half_to = HALF_TO,
                                     .half_from = HALF_FROM,
                                     .instruction = opencl_instruction,
                                     .shared = "__local __attribute__((aligned(16)))",
                                     .vector = clike_short_vector,
                                     .make = {"(", ")("},
                                     .noalias = "restrict",
                                     .barrier = "barrier(CLK_LOCAL_MEM_FENCE);",
                                     .fma = "fma",
                                     .wide = "long",
                                     .narrow = "int"};

/* Is there a type half, half2, ..? */
static bool names_half(const char *text)
{
    for (const char *p = text; (p = strstr(p, "half")); p++)
        if (p > text && strchr(" (", p[-1]) && strchr(" )234", p[4]))
            return true;
    return false;
}

static bool source(Ctx *c, const ClikeDialect *d, const TirModule *m, StrBuf *out)
{
    StrBuf body = strbuf(c->arena), helpers = strbuf(c->arena);

    if (!clike_kernels(c, d, m->nfuncs, m->funcs, &body))
        return false;
    const char *kernels = body.n ? body.at : "";
    clike_prelude(c, d, kernels, &helpers);
    const char *text = helpers.n ? helpers.at : "";
    str_add(out, "#pragma OPENCL FP_CONTRACT OFF\n");
    if (strstr(text, "double") || strstr(kernels, "double"))
        str_add(out, "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n");
    if (d->has_half && (names_half(text) || names_half(kernels)))
        str_add(out, "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n");
    str_printf(out, "%s\n%s", text, kernels);
    return true;
}

/* HAS_ .. of the device of all kernels. */
static uint32_t device_has(const TirModule *m)
{
    for (uint32_t i = 0; i < m->nfuncs; i++)
        if (m->funcs[i]->kind == FUNC_DEVICE)
            return m->funcs[i]->target->has;
    return 0;
}

bool opencl_source(Ctx *c, const TirModule *m, StrBuf *out)
{
    ClikeDialect   d = dialect;
    const uint32_t has = device_has(m);

    d.images = &opencl_images;
    if (has & HAS_DOTS)
        d.instruction = having_instruction;
    if (has & HAS_HALF) {
        d.type = half_type;
        d.vector = half_vector;
        d.real = half_real;
        d.has_half = has_half;
        d.half_to = "return (float)h;";
        d.half_from = "return convert_half_rte(v);";
    }
    return source(c, &d, m, out);
}

bool aocl_source(Ctx *c, const TirModule *m, StrBuf *out)
{
    ClikeDialect d = dialect;

    d.kernel = aocl_kernel;
    return source(c, &d, m, out);
}
