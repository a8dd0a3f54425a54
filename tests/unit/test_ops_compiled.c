/* Every operator, compiled and run: tests/ops/<operator>.case through all passes, the schedules and
 * code generation, on this CPU and on an OpenCL device.  A device builds its programs anew for
 * every case, so it gets the first one of each operator:
 *
 *     test_ops_compiled [llvm | opencl | cuda | ..]      of a device the first cases
 *     test_ops_compiled <target> all | <operator> ..     all cases
 *     test_ops_compiled <target> most                    .. of what passes for CPUs make the first
 *     test_ops_compiled <target> -O0 ..                  the same at another level than 2
 *     test_ops_compiled <target> --machine=FILE ..       .. with other figures of the machine
 *     test_ops_compiled <target> -f16 ..                 of operands of f32 in 16 bits (below)
 *     test_ops_compiled <target> -constants ..           of one operand, the first or the last
 *     test_ops_compiled <target> -arch=sm_90 ..          for a GPU that is here; -device=mali,
 *                                                        -supports_float16=1, one or several
 *     test_ops_compiled <target> -ir=gfx1100 ..          for a GPU whose IR mock libraries run
 *     test_ops_compiled <target> -timed ..               on a device that times launches
 *     test_ops_compiled llvm -flush ..                   with subnormal floats taken for 0
 *     test_ops_compiled <target string> all              compiled, and not run: "cuda -arch=sm_90"
 *
 * The tests backends.<device>.ops run it, most with mock libraries.  These cannot run what LLVM
 * makes of a kernel for a GPU: they get the IR it would have been made of, and make code of this
 * CPU. */
#include "tests/unit/cases.h"

#include "backends/llvm/gpu.h"
#include "compile/compile.h"
#include "tvmcc/runtime.h"

static const char         *target;
static const tvmcc_device *device;
static bool                runs = true;
static uint32_t            level = 2;
static const char         *machine, *arch;
static const char         *ir_of;     /* the GPU whose IR libraries in place of drivers run */
static bool                halves;    /* operands of f32 are of f16, and products take them so */
static bool                constants; /* of the model are all operands but one */
static bool                timed;     /* launches are timed */
static bool                flush;     /* subnormal operands and results are 0 (of x86) */
static bool                few;       /* of what passes for CPUs make, the first case */
static uint32_t            ran, refused;

/* ---- LLVM's GPUs ----------------------------------------------------------------------------------- */

static const struct {
    const char *target, *triple, *gpu;
} gpus[] = {{"nvptx", "nvptx64-nvidia-cuda", "sm_80"}, {"rocm", "amdgcn-amd-amdhsa", "gfx90a"}};

/* A kernel each, as LLVM IR behind the passes. */
static bool images_of_ir(Ctx *c, const TirModule *m, const Target *t, const CodegenOptions *o,
                         DeviceImages *out)
{
    DeviceImage image = {.form = TVMCC_CODE_SOURCE, .target = ""};
    VEC(Bytes) parts = {0};
    size_t g = 0;

    (void)t, (void)o;
    while (strcmp(gpus[g].target, target))
        g++;
    const char *gpu = ir_of ? ir_of : gpus[g].gpu;
    for (uint32_t i = 0; i < m->nfuncs; i++) {
        StrBuf      text = strbuf(c->arena);
        Bytes       ir;
        const char *log;

        if (m->funcs[i]->kind != FUNC_DEVICE)
            continue;
        if (!llvm_kernel(c, gpus[g].triple, gpu, m->funcs[i], &text))
            return false;
        if (!llvm_compile_kernel(c->arena, gpus[g].triple, gpu, EMIT_LL, text.at, &ir, &log))
            return error_at(c, E_CODEGEN, NO_LOC, "%s", log);
        vec_push(c->arena, &parts, ir);
    }
    image.parts = (BytesList){parts.n, parts.at};
    vec_push(c->arena, out, image);
    return true;
}

static void use_ir(Ctx *c, Compiled *x)
{
    Device  *d = DUP_ARRAY(c->arena, c->target->backend->device, 1);
    Backend *b = DUP_ARRAY(c->arena, c->target->backend, 1);
    Target  *t = DUP_ARRAY(c->arena, c->target, 1);

    d->images = images_of_ir;
    b->device = d;
    t->backend = b;
    c->target = t;
    x->backend = b;
}

static bool compile_for(Ctx *c, Compiled *x)
{
    if (!compile_target(c, x))
        return false;
    for (size_t i = 0; i < COUNT(gpus) && runs && !arch; i++)
        if (!strcmp(gpus[i].target, target))
            use_ir(c, x);
    return true;
}

/* ---- in 16 bits -------------------------------------------------------------------------------------- */

/* Tensors of f32 that main takes are of f16, and so is what an operator makes of them; kernels
 * compute with f32, sums of products included (--mixed-precision).  What is expected is what the
 * interpreter makes of the recorded case, in f32, of operands that are such numbers.  Errors are
 * those of 11 bits, of the largest number for sums. */
typedef struct {
    const Case         *of;
    Case                half;
    uint32_t            nwant;
    const Const *const *want;
} Halves;

static const Const *retyped(Ctx *c, const Const *from, DType to)
{
    Type    *t = DUP_ARRAY(c->arena, from->type, 1);
    DType    was = t->dtype;
    int64_t  n = 0;
    uint8_t *data;

    t->dtype = to;
    type_elems(t, &n);
    data = arena_array(c->arena, (size_t)n + 1, dtype_bytes(to));
    for (int64_t i = 0; i < n; i++)
        dtype_put_f(to, data + i * dtype_bytes(to),
                    dtype_get_f(was, from->data.at + i * dtype_bytes(was)));
    return const_new(c, NULL, t, (Bytes){data, (size_t)n * dtype_bytes(to)});
}

/* The module's text with other types of main's parameters; NULL: none is of f32. */
static const Module *half_module(const Case *k)
{
    StrBuf text = strbuf(k->c->arena), half = strbuf(k->c->arena);
    bool   any = false;

    relay_print(k->c, k->m, (RelayPrint){0}, &text);
    char *at = text.at, *end = strstr(text.at, ") {");
    while (end && *at) {
        bool is = at < end && !strncmp(at, ", f32]", 6);
        any = any || is;
        str_printf(&half, is ? ", f16]" : "%c", *at);
        at += is ? 6 : 1;
    }
    if (!any)
        return NULL;
    return relay_parse(k->c, k->file, (Bytes){(const uint8_t *)half.at, half.n}, (Bytes){0});
}

/* False: it is no case of 16 bits. */
static bool make_halves(const Case *k, Halves *h)
{
    const Const *in[MAX_OPERANDS];

    *h = (Halves){.of = k, .half = *k};
    for (uint32_t i = 0; i < k->nin; i++) {
        bool is = dtype_eq(k->in[i]->type->dtype, DT_F32);
        h->half.in[i] = is ? retyped(k->c, k->in[i], DT_F16) : k->in[i];
        in[i] = is ? retyped(k->c, h->half.in[i], DT_F32) : k->in[i];
    }
    return (h->half.m = half_module(k)) && relay_eval(k->c, k->m, k->nin, in, &h->nwant, &h->want);
}

static bool same_halves(const Halves *h, uint32_t o, const Const *got)
{
    const Case  *k = &h->half;
    const Const *want = retyped(k->c, h->want[o], got->type->dtype);
    DType        t = got->type->dtype;
    int64_t      n = 0, other = 0;
    double       largest = 0;

    type_elems(got->type, &n);
    type_elems(want->type, &other);
    if (n != other)
        return failed(k, "f16", "another number of results");
    for (int64_t i = 0; i < n; i++) {
        double x = fabs(dtype_get_f(t, want->data.at + i * dtype_bytes(t)));
        largest = isfinite(x) ? fmax(largest, x) : largest;
    }
    for (int64_t i = 0; i < n; i++) {
        double w = dtype_get_f(t, want->data.at + i * dtype_bytes(t)),
               v = dtype_get_f(t, got->data.at + i * dtype_bytes(t));
        double may = dtype_is_real(t) ? 2e-3 * largest : 0;
        if (!(v == w || fabs(v - w) <= may || (isnan(v) && isnan(w))))
            return failed(k, "f16",
                          arena_printf(k->c->arena, "result %u, number %lld is %.9g, not %.9g", o,
                                       (long long)i, v, w));
    }
    return true;
}

/* ---- cases ------------------------------------------------------------------------------------------ */

static int32_t run_flushing(const tvmcc_model_info *info, void **in, void **out,
                            const tvmcc_params *params)
{
#if defined(__SSE2__)
    enum { TO_ZERO = 0x8000, FROM_ZERO = 0x0040 };
    uint32_t usual = __builtin_ia32_stmxcsr();
    int32_t  rc;

    __builtin_ia32_ldmxcsr(usual | TO_ZERO | FROM_ZERO);
    rc = info->run(in, out, params);
    __builtin_ia32_ldmxcsr(usual);
    return rc;
#else
    return info->run(in, out, params);
#endif
}

static bool run_model(const Case *k, const Halves *h, const tvmcc_model_info *info, const Plan *p,
                      Bytes weights)
{
    void        *in[MAX_OPERANDS + 1], *out[MAX_OPERANDS + 1];
    void        *state = aligned_alloc(64, (info->state_bytes + 127) / 64 * 64);
    size_t       bytes = info->arena_shared + info->arena_private;
    void        *memory = aligned_alloc(64, (bytes + 127) / 64 * 64);
    tvmcc_params params = {.struct_bytes = sizeof params,
                           .threads = 1,
                           .arena = memory,
                           .arena_bytes = bytes,
                           .weights = weights.at,
                           .weights_bytes = weights.n,
                           .state = state,
                           .state_bytes = info->state_bytes,
                           .devices = &device,
                           .device_count = device != NULL};
    int32_t      rc = 0;
    bool         ok = true;

    for (uint32_t i = 0; i < k->nin; i++)
        in[i] = (void *)(uintptr_t)k->in[i]->data.at;
    for (uint32_t i = 0; i < p->nout && i < MAX_OPERANDS; i++)
        out[i] = arena_alloc(k->c->arena, info->outputs[i].bytes + 64);
    if (info->open)
        rc = info->open(state, &params);
    if (!rc)
        rc = flush ? run_flushing(info, in, out, &params) : info->run(in, out, &params);
    if (info->open)
        info->close(state, &params);
    free(state);
    free(memory);
    if (rc)
        return failed(k, target, device ? device->last_error(device->self) : "the run failed");
    for (uint32_t i = 0; ok && i < p->nout; i++) {
        Bytes        data = {out[i], info->outputs[i].bytes};
        const Const *got = const_new(k->c, NULL, p->out[i].type, data);

        ok = h ? same_halves(h, i, got) : same_numbers(k, target, i, got);
    }
    return ok;
}

/* The case with all operands in the model but one. */
static Case with_constants(const Case *k, uint32_t left)
{
    Case        out = *k;
    Ctx        *c = k->c;
    const Expr *f = module_func(k->m, "main"), *param = func_param(f, left);
    const Expr *vars[MAX_OPERANDS], *values[MAX_OPERANDS];
    uint32_t    n = 0;

    for (uint32_t i = 0; i < k->nin; i++)
        if (i != left) {
            vars[n] = func_param(f, i);
            values[n++] = expr_const(c, k->in[i], NO_LOC);
        }
    f = expr_func(c, 1, &param, expr_bind(c, func_body(f), n, vars, values), f->u.func, f->loc);
    out.m = module_with_func(c, k->m, "main", f);
    out.nin = 1;
    out.in[0] = k->in[left];
    return out;
}

static void compile_and_run(const Case *k, const Halves *h)
{
    static const MixedPrecision f16 = {.type = DT_F16};

    ran++;
    CompileOptions o = {.path = k->file, .target = target, .machine = machine, .entry = "model"};
    Ctx           *c = k->c;
    Compiled       x;
    Jit           *j;
    Bytes          object;
    void          *sym;
    const tvmcc_model_info *(*info)(void);

    check_count++;
    if (arch)
        o.target = arena_printf(c->arena, "%s %s", target, arch);
    if (ir_of)
        o.target = arena_printf(c->arena, "%s -mcpu=%s", target, ir_of);
    o.passes.opt_level = level;
    o.passes.jobs = 1;
    o.passes.mixed = halves ? &f16 : NULL;
    o.pic = true;
    o.weights_mode = WEIGHTS_FILE;
    compile_start(c, &x, &o);
    x.imported = k->m;
    if (!compile_for(c, &x) || !compile_graph(c, &x) || !compile_plan(c, &x) ||
        !compile_weights(c, &x) || !compile_code(c, &x, EMIT_OBJECT, &object) ||
        !(j = x.backend->jit_load(c, x.plan->target, object))) {
        if (halves && diag_count(k->diags) && diag_at(k->diags, 0).id == E_TYPE)
            refused++;
        else
            failed(k, target, "does not compile");
        return;
    }
    if (x.plan->nin != k->nin || x.plan->nout != k->nout)
        failed(k, target, "another number of tensors");
    else if (runs && (sym = x.backend->jit_symbol(j, "model_info"))) {
        memcpy(&info, &sym, sizeof sym);
        run_model(k, h, info(), x.plan, x.weights);
    }
    x.backend->jit_free(j);
}

static void run_compiled(const Case *k)
{
    Halves h;

    if (halves && make_halves(k, &h))
        compile_and_run(&h.half, &h);
    if (constants && k->nin > 1)
        for (uint32_t left = 0; left < k->nin; left += k->nin - 1) {
            Case one = with_constants(k, left);
            compile_and_run(&one, NULL);
        }
    if (!halves && !constants)
        compile_and_run(k, NULL);
}

/* Operators that only passes for CPUs put into a network.  Their cases are many and large, and four
 * fifths of the time of a device whose driver compiles for the CPU. */
static const char *const of_cpus[] = {"nn.contrib_conv2d_winograd_weight_transform",
                                      "nn.contrib_conv2d_winograd_without_weight_transform",
                                      "nn.contrib_dense_strassen"};

static uint32_t cases_of(const char *op, uint32_t most)
{
    for (size_t i = 0; i < COUNT(of_cpus) && few; i++)
        if (!strcmp(op, of_cpus[i]))
            return 1;
    return most;
}

static void run_all(uint32_t most, int n, char **ops)
{
    for (int i = 0; i < n; i++)
        run_file(ops[i], most, run_compiled);
    for (uint32_t i = 0; !n && i < op_table.n; i++)
        if (on_tensors(&op_table.at[i]))
            run_file(op_table.at[i].text, cases_of(op_table.at[i].text, most), run_compiled);
}

enum { SKIPPED = 77 };

/* Every launch takes some time. */
static void check_times(void)
{
    uint32_t n = tvmrt_timed_launches(device);
    double  *ns = calloc(n + 1, sizeof *ns);

    CHECK(n > 0);
    CHECK_INT(tvmrt_launch_times(device, n, ns), TVMCC_OK);
    for (uint32_t i = 0; i < n; i++)
        CHECK(ns[i] > 0);
    free(ns);
    printf("%u launches timed\n", n);
}

static bool run_on_device(uint32_t kind, uint32_t most, int n, char **ops)
{
    size_t      bytes = (tvmrt_device_bytes(kind) + 63) / 64 * 64;
    void       *memory = aligned_alloc(64, bytes);
    const char *why = NULL;

    tvmrt_device_options o = {
        .struct_bytes = sizeof o, .number = TVMRT_FIRST_DEVICE, .timing = timed};
    tvmcc_device plain;

    device = tvmrt_device_open_with(kind, &o, memory, bytes, &why);
    if (device && timed) { /* recordings are not */
        plain = *device;
        plain.record_begin = NULL;
        device = &plain;
    }
    if (device)
        run_all(most, n, ops);
    else
        printf("SKIP (%s): %s\n", target, why);
    if (device && timed)
        check_times();
    tvmrt_device_close(device);
    free(memory);
    return device != NULL;
}

/* Words of a target, with one more. */
static const char *with_word(const char *words, const char *word)
{
    static char all[256];
    size_t      n = words ? strlen(words) : 0;

    snprintf(all + n, sizeof all - n, "%s%s", n ? " " : "", word);
    return all;
}

int main(int argc, char **argv)
{
    bool any = false;

    for (; argc > 2 && argv[2][0] == '-'; argv++, argc--) {
        if (!strncmp(argv[2], "-O", 2))
            level = (uint32_t)(argv[2][2] - '0');
        else if (!strncmp(argv[2], "--machine=", 10))
            machine = argv[2] + 10;
        else if (!strncmp(argv[2], "-arch=", 6) || !strncmp(argv[2], "-mcpu=", 6) ||
                 !strncmp(argv[2], "-device=", 8) || !strncmp(argv[2], "-supports_", 10))
            arch = with_word(arch, argv[2]);
        else if (!strncmp(argv[2], "-ir=", 4))
            ir_of = argv[2] + 4;
        else if (!strcmp(argv[2], "-f16"))
            halves = true;
        else if (!strcmp(argv[2], "-constants"))
            constants = true;
        else if (!strcmp(argv[2], "-timed"))
            timed = true;
        else if (!strcmp(argv[2], "-flush"))
            flush = true;
        else
            return EXIT_FAILURE;
        argv[2] = argv[1];
    }
    bool     all = argc > 2;
    uint32_t most = all ? UINT32_MAX : 1;

    few = all && !strcmp(argv[2], "most");
    int n = all && !few && strcmp(argv[2], "all") ? argc - 2 : 0;

    target = "llvm -mcpu=native";
    if (argc < 2 || !strcmp(argv[1], "llvm")) {
        run_all(UINT32_MAX, n, argv + 2);
        any = true;
    }
    if (argc > 1 && strchr(argv[1], ' ')) {
        target = argv[1];
        runs = false;
        run_all(most, n, argv + 2);
        any = true;
    }
    const Backend *b = backend_find(argc < 2 ? "opencl" : argv[1]);
    if (b && b->device) {
        target = b->name;
        any = run_on_device(b->device->kind, most, n, argv + 2) || any;
    }
    if (halves)
        printf("%u cases in f16, %u that take no f16\n", ran - refused, refused);
    return any ? check_result() : SKIPPED;
}
