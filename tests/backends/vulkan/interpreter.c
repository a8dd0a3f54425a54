/* Kernels that the compiler makes for Vulkan, run by two interpreters: SPIR-V as words
 * (spirv_run.h), and the TIR that these are made of (tir_eval).  Both compute with the same random
 * numbers, in memory as small as the kernel says, and have to leave the same bits.
 *
 *     vulkan_interpreter                 networks, the first case of each operator, and products by
 *                                        cooperative matrices
 *     vulkan_interpreter <operator> ..   all cases of tests/ops/<operator>.case
 *
 * The test backends.vulkan.interpreter runs it; no device is needed. */
#include "tests/backends/vulkan/spirv_run.h"
#include "tests/unit/cases.h"

#include "backends/common/device.h"
#include "backends/common/matrices.h"
#include "compile/compile.h"
#include "passes/lower/lower.h"

enum { PARAMS_MOST = 64, PUSH_MOST = 16, BORDER = 64 };

/* How code is made. */
typedef struct {
    const char *target;
    uint32_t    level;
    bool        halves;  /* products take 16 bits */
    const char *machine; /* figures, or NULL */
} Way;

#define MANY_CELLS "tests/backends/one_core.machine"

static uint32_t kernels, barriers, matrices, dots;

/* ---- numbers ------------------------------------------------------------------------------------- */

static uint32_t random_bits(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static void put_random(DType t, uint8_t *at, uint32_t *seed)
{
    const uint32_t v = random_bits(seed);

    if (dtype_is_float(t))
        dtype_put_f(t, at, (double)v / (1 << 23) - 1);
    else if (dtype_is_bool(t))
        *at = v & 1;
    else
        dtype_put_i(t, at,
                    t.bits == 8 ? (int64_t)(v & 0xff) - (t.code == DT_INT ? 128 : 0) : v % 3);
}

/* A buffer's memory, once for each interpreter. */
typedef struct {
    const Buffer *of;
    size_t        bytes, origin; /* where cell 0 lies */
    uint8_t      *memory[2];
} Twin;

static bool make_twin(Ctx *c, const Buffer *b, uint32_t seed, Twin *out)
{
    const uint32_t size = dtype_bytes(b->dtype), one = dtype_bytes(dtype_lanes(b->dtype, 1));
    int64_t        cells = 0, origin = 0;

    if (!buffer_size(c, b, &cells, &origin))
        return false;
    *out = (Twin){.of = b, .bytes = (size_t)cells * size, .origin = (size_t)origin * size};
    for (int i = 0; i < 2; i++) {
        /* cell 0 on a border, as in the memory of a plan */
        uint8_t *at = arena_alloc(c->arena, out->bytes + 2 * BORDER);
        at += BORDER - ((uintptr_t)at + out->origin) % BORDER;
        out->memory[i] = at;
    }
    for (size_t i = 0; i < out->bytes; i += one)
        put_random(dtype_lanes(b->dtype, 1), out->memory[0] + i, &seed);
    memcpy(out->memory[1], out->memory[0], out->bytes);
    return true;
}

/* NULL, or which cell differs. */
static const char *differs(Ctx *c, const Twin *x)
{
    const DType    t = dtype_lanes(x->of->dtype, 1);
    const uint32_t size = dtype_bytes(t);

    for (size_t i = 0; i < x->bytes; i += size) {
        const uint8_t *want = x->memory[0] + i, *got = x->memory[1] + i;
        if (!memcmp(want, got, size))
            continue;
        if (!dtype_is_float(t))
            return arena_printf(c->arena, "cell %lld of '%s' is %lld, not %lld",
                                (long long)((int64_t)i - (int64_t)x->origin) / size, x->of->name,
                                (long long)dtype_get_i(t, got), (long long)dtype_get_i(t, want));
        if (!isnan(dtype_get_f(t, want)) || !isnan(dtype_get_f(t, got)))
            return arena_printf(c->arena, "cell %lld of '%s' is %.9g, not %.9g",
                                (long long)((int64_t)i - (int64_t)x->origin) / size, x->of->name,
                                dtype_get_f(t, got), dtype_get_f(t, want));
    }
    return NULL;
}

/* ---- a kernel ------------------------------------------------------------------------------------ */

/* A launch of f by the interpreter of TIR. */
static bool run_tir(Ctx *c, const Func *f, const Twin *twins)
{
    Func  host = *f;
    Arg   args[PARAMS_MOST] = {{0}};
    void *at[PARAMS_MOST];

    for (uint32_t i = 0; i < f->nparams; i++) {
        args[i] = (Arg){.buffer = f->params[i].buffer, .offset = idx_const(c->arith, 0)};
        at[i] = twins[i].memory[0] + twins[i].origin;
    }
    host.kind = FUNC_HOST;
    host.name = "host";
    host.body = launch_stmt(c, f, args, NO_LOC);
    const Func *all[2] = {f, func_new(c, host)};
    return tir_eval(c, tirmod_new(c, 2, all), all[1], f->nparams, at, 0, NULL);
}

/* ... of its words, as the runtime makes it: addresses as push constants, or that of a table. */
static const char *run_words(Ctx *c, const Func *f, Bytes code, const Twin *twins)
{
    const Idx  *axis[AXIS_COUNT];
    uint64_t    table[PARAMS_MOST], of_table = (uintptr_t)table;
    SpirvMemory memory[PARAMS_MOST + 1];
    const bool  direct = f->nparams <= PUSH_MOST;
    SpirvLaunch launch = {.entry = device_symbol(c, f->name),
                          .push = direct ? table : &of_table,
                          .push_bytes = (direct ? f->nparams : 1) * sizeof *table,
                          .memory = memory,
                          .nmemory = f->nparams + 1};
    char       *error;

    for (uint32_t i = 0; i < f->nparams; i++) {
        table[i] = (uintptr_t)(twins[i].memory[1] + twins[i].origin);
        memory[i] = (SpirvMemory){twins[i].memory[1], twins[i].bytes};
    }
    memory[f->nparams] = (SpirvMemory){table, f->nparams * sizeof *table};
    func_axes(c, f, axis);
    for (int i = 0; i < 3; i++)
        launch.groups[i] = axis[AXIS_BLOCK_X + i] ? (uint32_t)axis[AXIS_BLOCK_X + i]->c0 : 1;
    if (spirv_run((const uint32_t *)(const void *)code.at, code.n / 4, &launch, &error))
        return NULL;
    const char *why = arena_printf(c->arena, "%s", error);
    free(error);
    return why;
}

static bool multiplies_words(Bytes code)
{
    static const char extension[] = "SPV_KHR_integer_dot_product";

    for (size_t i = 0; i + sizeof extension <= code.n; i += sizeof(uint32_t))
        if (!memcmp(code.at + i, extension, sizeof extension))
            return true;
    return false;
}

/* What is wrong with the code of a device function, or NULL. */
static const char *check_kernel(Ctx *c, const Target *t, const CodegenOptions *o, const Func *f)
{
    DeviceImages images = {0};
    Twin         twins[PARAMS_MOST];
    const char  *wrong;

    if (f->nparams > PARAMS_MOST)
        return "more parameters than this test takes";
    if (!t->backend->device->images(c, tirmod_new(c, 1, &f), t, o, &images))
        return "it has no code";
    for (uint32_t i = 0; i < f->nparams; i++)
        if (!f->params[i].buffer || !make_twin(c, f->params[i].buffer, i + 1, &twins[i]))
            return "a size that only a run knows";
    if (!run_tir(c, f, twins))
        return "the interpreter of TIR refuses it";
    wrong = run_words(c, f, images.at[0].parts.at[0], twins);
    for (uint32_t i = 0; i < f->nparams && !wrong; i++)
        wrong = differs(c, &twins[i]);
    kernels++;
    barriers += stmt_has_barrier(f->body);
    matrices += uses_matrices(f);
    dots += multiplies_words(images.at[0].parts.at[0]);
    return wrong;
}

/* ... of all kernels of a network. */
static const char *check_module(Ctx *c, const Module *m, const Way *way)
{
    static const MixedPrecision f16 = {.type = DT_F16};
    CompileOptions              o = {.path = "model",
                                     .target = way->target,
                                     .machine = way->machine,
                                     .entry = "model",
                                     .weights_mode = WEIGHTS_FILE};
    Compiled                    x;
    const char                 *wrong = NULL;

    o.passes.opt_level = way->level;
    o.passes.jobs = 1;
    o.passes.mixed = way->halves ? &f16 : NULL;
    compile_start(c, &x, &o);
    x.imported = m;
    if (!compile_target(c, &x) || !compile_graph(c, &x) || !compile_plan(c, &x))
        return "it does not compile";
    const TirModule     *tir = run_tir_passes(c, x.plan->tir, &o.passes, TIR_TO_CODE);
    const CodegenOptions code = compile_code_options(&x);
    for (uint32_t i = 0; tir && i < tir->nfuncs && !wrong; i++)
        if (tir->funcs[i]->kind == FUNC_DEVICE &&
            (wrong = check_kernel(c, x.plan->target, &code, tir->funcs[i])))
            wrong = arena_printf(c->arena, "@%s: %s", tir->funcs[i]->name, wrong);
    return tir ? wrong : "a pass refuses it";
}

/* ---- networks ------------------------------------------------------------------------------------ */

static const char *const networks[] = {
    /* products by tiles in shared memory, edges, operands that are turned or computed first */
    "fn @main(%x: Tensor[(53, 45), f32], %w: Tensor[(37, 45), f32], %b: Tensor[(37,), f32],\n"
    "         %y: Tensor[(2, 45, 40), f32], %v: Tensor[(2, 33, 45), f32]) {\n"
    "  (nn.relu(nn.bias_add(nn.dense(%x, %w), %b)), nn.matmul(tanh(%x), %x, transpose_a=true),\n"
    "   nn.batch_matmul(%v, %y, transpose_b=false))\n}\n",
    /* convolutions: borders, strides, dilation, groups, depthwise, behind each other */
    "fn @main(%x: Tensor[(2, 6, 19, 17), f32], %w: Tensor[(10, 3, 3, 5), f32],\n"
    "         %v: Tensor[(9, 10, 1, 1), f32], %d: Tensor[(9, 1, 3, 3), f32]) {\n"
    "  %0 = nn.relu(nn.conv2d(%x, %w, padding=[2, 4, 2, 4], strides=[2, 1], dilation=[2, 2],\n"
    "                         groups=2));\n"
    "  %1 = nn.conv2d(%0, %v);\n"
    "  nn.conv2d(%1, %d, padding=[1, 1, 1, 1], groups=9)\n}\n",
    /* rows divided among the threads of a workgroup, sums of everything */
    "fn @main(%x: Tensor[(3, 300), f32], %g: Tensor[(300), f32], %b: Tensor[(300), f32],\n"
    "         %y: Tensor[(2, 5, 9, 13), f32]) {\n"
    "  (nn.softmax(%x), nn.log_softmax(%x), nn.layer_norm(%x, %g, %b, axis=-1),\n"
    "   cast(argmax(%x, axis=1), dtype=f32), max(%x, axis=[1]), mean(%x, axis=[0]),\n"
    "   nn.global_avg_pool2d(%y), nn.softmax(%y, axis=1), sum(%x, axis=[0, 1]))\n}\n",
    /* pictures: windows, sizes, corners, what is turned */
    "fn @main(%x: Tensor[(1, 3, 21, 20), f32], %y: Tensor[(2, 8, 6, 10), f32]) {\n"
    "  %0 = nn.max_pool2d(%x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1]);\n"
    "  %1 = nn.avg_pool2d(%x, pool_size=[2, 3], strides=[1, 2], padding=[0, 1, 0, 1]);\n"
    "  %2 = image.resize2d(%x, size=[28, 30], method=\"linear\",\n"
    "                      coordinate_transformation_mode=\"half_pixel\");\n"
    "  (%0, %1, %2, transpose(%y, axes=[0, 2, 3, 1]), concatenate((%y, exp(%y)), axis=1),\n"
    "   cumsum(%x, axis=2), sort(%x, axis=3))\n}\n",
    /* attention */
    "fn @main(%q: Tensor[(2, 37, 20), f32], %k: Tensor[(2, 75, 20), f32],\n"
    "         %v: Tensor[(2, 75, 23), f32], %m: Tensor[(37, 75), f32]) {\n"
    "  %0 = nn.softmax(add(divide(nn.batch_matmul(%q, %k), 4.0), %m));\n"
    "  nn.batch_matmul(%0, %v, transpose_b=false)\n}\n",
    /* f16 in memory, quotients and remainders, functions, conversions, i64 */
    "fn @main(%x: Tensor[(7, 33), f16], %w: Tensor[(20, 33), f16], %y: Tensor[(7, 33), f32],\n"
    "         %i: Tensor[(7, 33), i32]) {\n"
    "  %0 = cast(%y, dtype=i64);\n"
    "  (nn.relu(nn.dense(%x, %w)), cast(%x, dtype=f32), divide(%y, add(%y, 3.0)),\n"
    "   floor_mod(%y, 0.375), power(add(%y, 2.0), %y), sqrt(add(%y, 1.0)), sin(%y), erf(%y),\n"
    "   cast(multiply(%y, 300.0), dtype=u8), multiply(add(%0, cast(%i, dtype=i64)), %0),\n"
    "   floor_divide(%i, add(%i, -1)), right_shift(%i, %i), cast(%i, dtype=f16))\n}\n",
    /* products of bytes of both signs */
    "fn @main(%x: Tensor[(2, 12, 9, 7), u8], %w: Tensor[(20, 12, 3, 3), i8],\n"
    "         %y: Tensor[(37, 20), i8], %v: Tensor[(21, 20), u8], %b: Tensor[(20), i32]) {\n"
    "  %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], strides=[2, 1], out_dtype=\"i32\");\n"
    "  %1 = clip(cast(nn.bias_add(%0, %b), dtype=f32), a_min=-128.0, a_max=127.0);\n"
    "  (cast(%1, dtype=i8), nn.relu(nn.dense(%y, %v, out_dtype=\"i32\")))\n}\n",
    /* more operands than push constants hold */
    "fn @main(%a: Tensor[(5), f32], %b: Tensor[(6), f32]) {\n"
    "  concatenate((%a, %b, tanh(%a), exp(%b), negative(%a), %b, %a, %b, %a, %b, %a, %b, %a, %b,\n"
    "               %a, %b, %a, %b, %a), axis=0)\n}\n",
};

static const Way ways[] = {{"vulkan", 0, false, NULL},
                           {"vulkan", 3, false, NULL},
                           {"vulkan", 3, true, NULL},
                           {"vulkan", 3, false, MANY_CELLS}};

static const Way by_matrices[] = {{"vulkan -supports_cooperative_matrix=1", 3, true, NULL},
                                  {"vulkan -supports_cooperative_matrix=1", 3, true, MANY_CELLS}};

/* Operands of bytes, where the device adds four products. */
static const Way by_dots[] = {{"vulkan -supports_integer_dot_product=1", 3, false, NULL},
                              {"vulkan -supports_integer_dot_product=1", 3, false, MANY_CELLS}};

static const char *const of_bytes[] = {
    "fn @main(%x: Tensor[(2, 12, 9, 7), u8], %w: Tensor[(20, 12, 3, 3), i8],\n"
    "         %a: Tensor[(37, 20), i8], %b: Tensor[(21, 20), u8], %c: Tensor[(21, 20), i8],\n"
    "         %d: Tensor[(37, 20), u8]) {\n"
    "  (nn.conv2d(%x, %w, padding=[1, 1, 1, 1], strides=[2, 1], out_dtype=\"i32\"),\n"
    "   nn.dense(%a, %b, out_dtype=\"i32\"), nn.dense(%a, %c, out_dtype=\"i32\"),\n"
    "   nn.dense(%d, %b, out_dtype=\"i32\"), nn.dense(%d, %c, out_dtype=\"i32\"))\n}\n",
    "const @w: Tensor[(130, 260), i8] = splat(-3)\n"
    "fn @main(%x: Tensor[(70, 260), u8]) { nn.dense(%x, const @w, out_dtype=\"i32\") }\n",
};

static void check_network(const char *text, const Way *way)
{
    Arena        *arena = arena_new(NULL);
    Diags        *diags = diags_new(arena);
    Ctx          *c = ctx_new(arena, diags, op_table);
    StrBuf        said = strbuf(arena);
    const Module *m =
        relay_parse(c, "net", (Bytes){(const uint8_t *)text, strlen(text)}, (Bytes){0});
    const char *wrong = m ? check_module(c, m, way) : "it does not parse";

    check_count++;
    if (wrong) {
        diag_print(diags, DIAG_TEXT, &said);
        printf("%s\n%s -O%u%s%s%s: %s\n%s\n", text, way->target, way->level,
               way->halves ? ", in 16 bits" : "", way->machine ? ", " : "",
               way->machine ? way->machine : "", wrong, said.at ? said.at : "");
        check_failures++;
    }
    ctx_free(c);
    arena_free(arena);
}

/* ---- operators ----------------------------------------------------------------------------------- */

static const Way *way_of_case;

static void check_case(const Case *k)
{
    const char *wrong = check_module(k->c, k->m, way_of_case);

    check_count++;
    if (wrong)
        failed(k, way_of_case->level ? "-O3" : "-O0", wrong);
}

static void check_first_cases(const Way *way)
{
    way_of_case = way;
    for (uint32_t i = 0; i < op_table.n; i++)
        if (on_tensors(&op_table.at[i]))
            run_file(op_table.at[i].text, 1, check_case);
}

int main(int argc, char **argv)
{
    for (uint32_t w = 0; w < COUNT(ways); w++) {
        way_of_case = &ways[w];
        for (uint32_t i = 0; i < COUNT(networks) && argc < 2; i++)
            check_network(networks[i], &ways[w]);
        for (int i = 1; i < argc; i++)
            run_file(argv[i], UINT32_MAX, check_case);
    }
    if (argc < 2)
        check_first_cases(&ways[1]);
    for (uint32_t w = 0; w < COUNT(by_matrices) && argc < 2; w++) {
        way_of_case = &by_matrices[w];
        run_file("../backends/warps", UINT32_MAX, check_case);
    }
    for (uint32_t w = 0; w < COUNT(by_dots); w++) {
        way_of_case = &by_dots[w];
        for (uint32_t i = 0; i < COUNT(of_bytes) && argc < 2; i++)
            check_network(of_bytes[i], &by_dots[w]);
        for (int i = 1; i < argc; i++)
            run_file(argv[i], UINT32_MAX, check_case);
    }
    printf("%u kernels, %u with barriers, %u with matrices, %u with products of words\n", kernels,
           barriers, matrices, dots);
    CHECK(matrices > 0 || argc > 1);
    CHECK(dots > 0 || argc > 1);
    CHECK(kernels > 0);
    CHECK(barriers > 0 || argc > 1);
    return check_result();
}
