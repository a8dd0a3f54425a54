/* The LLVM backend as packaging and users see it: entry points that keep include/tvmcc/abi.h,
 * objects for every architecture (run under qemu where it is installed). */
#include "backends/backend.h"
#include "packaging/packaging.h"
#include "passes/passes.h"
#include "tests/unit/context.h"
#include "tests/unit/gang.h"
#include "tvmcc/runtime.h"

#include <stdlib.h>
#include <unistd.h>

/* ---- a small plan --------------------------------------------------------------------------------- */

/*  scale(x, w, a, tid, nt)     a[i] = x[i] * w[i]                        every thread its share
 *  barrier
 *  turn(a, p, y, tid, nt)      p[i] = a[N-1-i], y[i] = max(p[i], 0)      through private scratch
 *  for r in 1..3 { barrier  turn }                                       the same again: rounds of
 * a kernel barrier last(y) on 0                y[0] = y[0] + 1 main: x, y, arena (a at 0, then
 * private scratch), weights (w at 64) */
enum { N = 40, SCRATCH = 192, ARENA = 192 };

static const Idx *num(int64_t v)
{
    return idx_const(c->arith, v);
}

static const Buffer *buf(const char *name, DType t, int64_t n)
{
    const Idx *e = num(n);

    return buffer_new(c, name, t, SCOPE_ARENA, 1, &e);
}

static const Prim *load(const Buffer *b, const Idx *at)
{
    return prim_load(c, b, &at);
}

static const Stmt *store(const Buffer *b, const Idx *at, const Prim *v)
{
    return stmt_store(c, b, &at, v);
}

/* A loop over this thread's share of N. */
static const Func *parallel_kernel(const char *name, const Atom *i, const Stmt *body, uint32_t n,
                                   const Buffer *const *bufs)
{
    const Atom *tid = atom_var(c->arith, "tid", 0, 1023), *nt = atom_var(c->arith, "nt", 1, 1024);
    const Idx  *t = idx_atom(c->arith, tid), *all = idx_atom(c->arith, nt);
    const Idx  *from = idx_div(c->arith, idx_mulc(c->arith, t, N), all);
    const Idx  *to = idx_div(c->arith, idx_mulc(c->arith, idx_addc(c->arith, t, 1), N), all);
    LoopData    l = {.var = i, .lo = from, .extent = idx_sub(c->arith, to, from)};
    Param      *p = NEW_ARRAY(arena, Param, n + 2);

    for (uint32_t k = 0; k < n; k++)
        p[k] = (Param){bufs[k], NULL, k > 0};
    p[n].scalar = tid;
    p[n + 1].scalar = nt;
    return func_new(c, (Func){.name = name,
                              .kind = FUNC_KERNEL,
                              .target = c->target,
                              .nparams = n + 2,
                              .params = p,
                              .body = stmt_for(c, l, body, NO_LOC)});
}

static const Plan *make_plan(const Target *t, bool branches)
{
    static const int64_t dims[2] = {4, 10};
    const Atom   *i = atom_var(c->arith, "i", 0, N - 1), *j = atom_var(c->arith, "j", 0, N - 1);
    const Idx    *vi = idx_atom(c->arith, i), *vj = idx_atom(c->arith, j);
    const Buffer *s[3] = {buf("x", DT_F32, N), buf("w", DT_F32, N), buf("a", DT_F32, N)};
    const Buffer *u[3] = {buf("a", DT_F32, N), buf("p", DT_F32, N), buf("y", DT_F32, N)};
    const Buffer *z[1] = {buf("y", DT_F32, N)};
    const Stmt   *two[2];
    const Func   *f[4];
    Param        *one = NEW_ARRAY(arena, Param, 1), *all = NEW_ARRAY(arena, Param, 4);

    c->target = t;
    one[0] = (Param){z[0], NULL, true};
    f[0] = parallel_kernel("scale.1", i,
                           store(s[2], vi, prim_mul(c, load(s[0], vi), load(s[1], vi))), 3, s);
    two[0] = store(u[1], vj, load(u[0], idx_sub(c->arith, num(N - 1), vj)));
    two[1] = store(u[2], vj, prim_max(c, load(u[1], vj), prim_float(c, DT_F32, 0)));
    f[1] = parallel_kernel("turn.2", j, stmt_seq(c, 2, two), 3, u);
    f[2] = func_new(
        c, (Func){.name = "last.3",
                  .kind = FUNC_KERNEL,
                  .target = t,
                  .nparams = 1,
                  .params = one,
                  .body = store(z[0], num(0),
                                prim_add(c, load(z[0], num(0)), prim_float(c, DT_F32, 1)))});

    const Buffer *x = buf("x", DT_F32, N), *y = buf("y", DT_F32, N);
    const Buffer *mem = buf("arena", DT_U8, ARENA), *weights = buf("weights", DT_U8, 64 + 4 * N);
    const Atom   *tid = atom_var(c->arith, "tid", 0, 1023), *nt = atom_var(c->arith, "nt", 1, 1024);
    const Idx    *part = idx_atom(c->arith, tid), *parts = idx_atom(c->arith, nt);
    const Idx    *own = idx_addc(c->arith, idx_mulc(c->arith, part, SCRATCH), ARENA);
    Arg           a0[5] = {{x, num(0), NULL},
                           {weights, num(64), NULL},
                           {mem, num(0), NULL},
                           {NULL, NULL, part},
                           {NULL, NULL, parts}};
    Arg           a1[5] = {{mem, num(0), NULL},
                           {mem, own, NULL},
                           {y, num(0), NULL},
                           {NULL, NULL, part},
                           {NULL, NULL, parts}};
    Arg           a2[1] = {{y, num(0), NULL}};
    const Stmt   *turn = stmt_call(c, "turn.2", 5, a1, false, NO_LOC), *meet = stmt_barrier(c);
    LoopData      rounds = {
             .var = atom_var(c->arith, "r", 1, 2), .lo = num(1), .extent = num(2), .kind = LOOP_SEQ};
    const Stmt *round[2] = {meet, turn};
    const Stmt *k[6] = {stmt_call(c, "scale.1", 5, a0, false, NO_LOC),
                        meet,
                        turn,
                        stmt_for(c, rounds, stmt_seq(c, 2, round), NO_LOC),
                        meet,
                        stmt_call(c, "last.3", 1, a2, true, NO_LOC)};
    const Stmt *body = stmt_seq(c, 6, k);

    if (branches) { /* barriers inside control flow: such a region has no phases */
        const Prim *w = load(weights, num(0));

        body = stmt_if(c, prim_eq(c, w, prim_int(c, DT_U8, 0)), body, NULL);
    }
    all[0] = (Param){x, NULL, false};
    all[1] = (Param){y, NULL, true};
    all[2] = (Param){mem, NULL, true};
    all[3] = (Param){weights, NULL, false};
    f[3] = func_new(c, (Func){.name = "net",
                              .kind = FUNC_HOST,
                              .target = t,
                              .nparams = 4,
                              .params = all,
                              .body = stmt_region(c, (RegionData){tid, nt}, body)});
    Plan   *p = NEW(arena, Plan);
    PlanIO *io = NEW_ARRAY(arena, PlanIO, 2);

    io[0] = (PlanIO){.name = "data", .type = type_tensor_i64(c, DT_F32, 2, dims)};
    io[1] = (PlanIO){.name = "out", .type = type_tensor_i64(c, DT_F32, 2, dims)};
    *p = (Plan){.name = "net",
                .target = t,
                .tir = tirmod_new(c, 4, f),
                .nin = 1,
                .nout = 1,
                .in = io,
                .out = io + 1,
                .arena_bytes = ARENA,
                .private_bytes = SCRATCH,
                .weights_bytes = 64 + 4 * N};
    return p;
}

/* Enough code for several shards: KERNELS times  y[i] = y[i] * 0.5 + k + x[i], written out, then a
 * tile, which lies in another shard, adds 1 to y[0]. */
enum { KERNELS = 48 };

static const Plan *make_big_plan(const Target *t)
{
    Plan         *p = arena_dup(arena, make_plan(t, false), sizeof *p);
    const Func  **f = NEW_ARRAY(arena, const Func *, KERNELS + 2);
    const Stmt  **calls = NEW_ARRAY(arena, const Stmt *, KERNELS + 1);
    const Func   *main = p->tir->funcs[3];
    const Buffer *io[2] = {main->params[0].buffer, main->params[1].buffer};
    Param        *one = NEW_ARRAY(arena, Param, 1);
    const Buffer *z = buf("y", DT_F32, N);

    one[0] = (Param){z, NULL, true};
    f[0] = func_new(
        c,
        (Func){.name = "tile.0",
               .kind = FUNC_TILE,
               .target = t,
               .nparams = 1,
               .params = one,
               .body = store(z, num(0), prim_add(c, load(z, num(0)), prim_float(c, DT_F32, 1)))});
    for (int k = 0; k < KERNELS; k++) {
        const Buffer *b[2] = {buf("x", DT_F32, N), buf("y", DT_F32, N)};
        const Stmt   *s[N + 1];
        Param        *params = NEW_ARRAY(arena, Param, 2);
        Arg arg = {b[1], num(0), NULL}, args[2] = {{io[0], num(0), NULL}, {io[1], num(0), NULL}};
        const char *name = intern_printf(c->strings, "kernel.%d", k);

        params[0] = (Param){b[0], NULL, false};
        params[1] = (Param){b[1], NULL, true};
        for (int i = 0; i < N; i++) {
            const Prim *v = prim_mul(c, load(b[1], num(i)), prim_float(c, DT_F32, 0.5));

            v = prim_add(c, v, prim_float(c, DT_F32, k));
            s[i] = store(b[1], num(i), prim_add(c, v, load(b[0], num(i))));
        }
        s[N] = stmt_call(c, "tile.0", 1, &arg, false, NO_LOC);
        f[1 + k] = func_new(c, (Func){.name = name,
                                      .kind = FUNC_KERNEL,
                                      .target = t,
                                      .nparams = 2,
                                      .params = params,
                                      .body = stmt_seq(c, N + 1, s)});
        calls[k] = stmt_call(c, name, 2, args, true, NO_LOC);
    }
    f[KERNELS + 1] =
        func_with_body(c, main, stmt_region(c, main->body->u.region, stmt_seq(c, KERNELS, calls)));
    p->tir = tirmod_new(c, KERNELS + 2, f);
    return p;
}

/* ---- entry points ------------------------------------------------------------------------------------ */

static _Alignas(64) float x[N], y[N];
static _Alignas(64) unsigned char weights[64 + 4 * N], memory[ARENA + 8 * SCRATCH];

static void fill(void)
{
    for (int i = 0; i < N; i++) {
        float w = (float)(i % 5) + 0.5f;

        x[i] = (float)(i % 7) - 3;
        memcpy(weights + 64 + 4 * i, &w, 4);
    }
    memset(y, 0x55, sizeof y);
    memset(memory, 0xee, sizeof memory);
}

static bool right(void)
{
    for (int i = 0; i < N; i++) {
        int   k = N - 1 - i;
        float v = ((float)(k % 7) - 3) * ((float)(k % 5) + 0.5f);

        v = v > 0 ? v : 0;
        if (y[i] != (i == 0 ? v + 1 : v))
            return false;
    }
    return true;
}

/* Parts one after the other, in an order that would show a missing phase. */
static int32_t serial_launch(void *user, tvmcc_part_fn fn, void *run, uint32_t parts)
{
    ++*(int *)user;
    for (uint32_t i = parts; i-- > 0;)
        fn(run, i, parts);
    return 0;
}

static int32_t failing_launch(void *user, tvmcc_part_fn fn, void *run, uint32_t parts)
{
    (void)user;
    (void)fn;
    (void)run;
    (void)parts;
    return TVMCC_E_DEVICE;
}

typedef struct {
    uint32_t begun, ended, steps[8];
    uint32_t stop; /* step to cancel at; 99: none */
} Watch;

static int32_t watch(void *user, uint32_t event, uint32_t step, uint32_t part)
{
    Watch *w = user;

    if (part)
        return 0;
    if (event == TVMCC_EVENT_END)
        return (int32_t)(w->ended++ & 0);
    if (w->begun < 8)
        w->steps[w->begun] = step;
    w->begun++;
    return step == w->stop;
}

static tvmcc_params params(void)
{
    return (tvmcc_params){.struct_bytes = sizeof(tvmcc_params),
                          .threads = 1,
                          .arena = memory,
                          .arena_bytes = sizeof memory,
                          .weights = weights,
                          .weights_bytes = sizeof weights};
}

static const CodegenOptions options = {.entry = "net", .opt_level = 2, .pic = true};

typedef int32_t Run(void *const *, void *const *, const tvmcc_params *);

static bool code_of(const Plan *p, CodegenOptions o, const CodegenInfo *info, EmitKind kind,
                    Bytes *out)
{
    o.host = entry_functions(c, p, &o, info);
    return backend_llvm.codegen(c, p, &o, info, kind, out);
}

static Jit *load_plan(const Plan *p, const CodegenOptions *o)
{
    static const CodegenInfo none;
    Bytes                    object;

    return code_of(p, *o, &none, EMIT_OBJECT, &object) ? backend_llvm.jit_load(c, p->target, object)
                                                       : NULL;
}

static void test_threads(Run *run)
{
    void        *in[1] = {x}, *out[1] = {y};
    tvmcc_params p = params();
    int          launches = 0;
    void        *room;
    Gang         gang;

    fill();
    CHECK_INT(run(in, out, &p), 0);
    CHECK(right());
    for (uint32_t n = 1; n <= 8; n++) { /* no launch; then launches without barrier */
        p = params();
        p.threads = n;
        fill();
        CHECK_INT(run(in, out, &p), 0);
        CHECK(right());
        p.launch = serial_launch;
        p.user = &launches;
        launches = 0;
        fill();
        CHECK_INT(run(in, out, &p), 0);
        CHECK(right());
    }
    room = arena_alloc(arena, tvmrt_pool_bytes(3) + 64);
    room = (void *)(((uintptr_t)room + 63) / 64 * 64);
    tvmrt_pool *pool = tvmrt_pool_new(room, tvmrt_pool_bytes(3), 3);

    CHECK(pool != NULL);
    for (int i = 0; i < 50; i++) {
        p = params();
        if (i % 2)
            gang_use(&gang, 3, &p); /* all parts, whether or not that pays */
        else
            tvmrt_pool_use(pool, &p);
        fill();
        CHECK_INT(run(in, out, &p), 0);
        CHECK(right());
    }
    for (uint32_t stop = 0; stop < 3; stop++) { /* all parts leave together */
        Watch w = {.stop = stop};

        p.instrument = watch;
        p.instrument_user = &w;
        CHECK_INT(run(in, out, &p), TVMCC_E_CANCELLED);
        CHECK_INT(w.begun, stop + 1);
    }
    p.instrument = NULL;
    fill();
    CHECK_INT(run(in, out, &p), 0);
    CHECK(right());
    tvmrt_pool_free(pool);
}

static void test_codes(Run *run, bool phases)
{
    void        *in[1] = {x}, *out[1] = {y}, *none[1] = {NULL}, *odd[1] = {(char *)x + 1};
    tvmcc_params p = params();

    CHECK_INT(run(NULL, out, &p), TVMCC_E_NULL);
    CHECK_INT(run(in, NULL, &p), TVMCC_E_NULL);
    CHECK_INT(run(in, out, NULL), TVMCC_E_NULL);
    CHECK_INT(run(none, out, &p), TVMCC_E_NULL);
    CHECK_INT(run(in, none, &p), TVMCC_E_NULL);
    CHECK_INT(run(odd, out, &p), TVMCC_E_ALIGN);
    p.struct_bytes = 8;
    CHECK_INT(run(in, out, &p), TVMCC_E_MISMATCH);
    p = params();
    p.arena = NULL;
    CHECK_INT(run(in, out, &p), TVMCC_E_NULL);
    p.arena = memory + 4;
    CHECK_INT(run(in, out, &p), TVMCC_E_ALIGN);
    p = params();
    p.arena_bytes = ARENA + SCRATCH - 1;
    CHECK_INT(run(in, out, &p), TVMCC_E_MISMATCH);
    p.arena_bytes++;
    CHECK_INT(run(in, out, &p), 0);
    p.threads = 2;
    CHECK_INT(run(in, out, &p), TVMCC_E_MISMATCH);
    p = params();
    p.threads = 4096;
    CHECK_INT(run(in, out, &p), TVMCC_E_MISMATCH);
    p = params();
    p.weights = NULL;
    CHECK_INT(run(in, out, &p), TVMCC_E_NULL);
    p.weights = weights + 1;
    CHECK_INT(run(in, out, &p), TVMCC_E_ALIGN);
    p.weights = weights;
    p.weights_bytes--;
    CHECK_INT(run(in, out, &p), TVMCC_E_MISMATCH);
    p = params();
    p.threads = 2;
    p.launch = failing_launch;
    CHECK_INT(run(in, out, &p), phases ? TVMCC_E_DEVICE : 0); /* without phases: one part */
}

static void test_watch(Run *run)
{
    void        *in[1] = {x}, *out[1] = {y};
    Watch        w = {.stop = 99};
    tvmcc_params p = params();

    p.instrument = watch;
    p.instrument_user = &w;
    fill();
    CHECK_INT(run(in, out, &p), 0);
    CHECK(right());
    CHECK_INT(w.begun, 5);
    CHECK_INT(w.ended, 5);
    CHECK_INT(w.steps[2], 2);
    CHECK_INT(w.steps[3], 2); /* its rounds have one number */
    CHECK_INT(w.steps[4], 3);
    w = (Watch){.stop = 1};
    fill();
    CHECK_INT(run(in, out, &p), TVMCC_E_CANCELLED);
    CHECK_INT(w.begun, 2);
    CHECK_INT(w.ended, 1);
    CHECK(y[3] != 0 && !right());
}

static void test_info(const tvmcc_model_info *info, Run *run, const Target *t)
{
    CHECK_INT(info->abi, TVMCC_ABI);
    CHECK_INT(info->struct_bytes, sizeof *info);
    CHECK_STR(info->name, "net");
    CHECK_STR(info->targets, t->text);
    CHECK_INT(info->ninputs, 1);
    CHECK_INT(info->noutputs, 1);
    CHECK_INT(info->npools, 0);
    CHECK_INT(info->nweights, 1);
    CHECK_STR(info->inputs[0].name, "data");
    CHECK_STR(info->outputs[0].name, "out");
    CHECK_INT(info->inputs[0].ndim, 2);
    CHECK_INT(info->inputs[0].dims[1], 10);
    CHECK_INT(info->inputs[0].bytes, 4 * N);
    CHECK_INT(info->inputs[0].code, TVMCC_FLOAT);
    CHECK_INT(info->inputs[0].bits, 32);
    CHECK_INT(info->inputs[0].lanes, 1);
    CHECK_INT(info->inputs[0].align, 4);
    CHECK_INT(info->weights[0].bytes, sizeof weights);
    CHECK_INT(info->weights[0].mode, TVMCC_WEIGHTS_FILE);
    CHECK_INT(info->arena_shared, ARENA);
    CHECK_INT(info->arena_private, SCRATCH);
    CHECK_INT(info->arena_align, 64);
    CHECK_INT(info->device, TVMCC_DEVICE_CPU);
    CHECK((info->run == run) == !t->asks_cpu); /* it asks no more */
}

static void test_plan(void)
{
    for (uint32_t i = 0; i < 5; i++) { /* -O0 to -O3, then barriers inside control flow */
        bool           branches = i == 4;
        CodegenOptions o = options;

        begin();
        o.opt_level = i % 4;
        const Target *t = backend_llvm.parse_target(c, "llvm -mcpu=native");
        const Plan   *p = make_plan(t, branches);
        Jit          *j = load_plan(p, &o);
        Run          *run;
        const tvmcc_model_info *(*info)(void);

        CHECK(j != NULL);
        if (j) {
            *(void **)&run = backend_llvm.jit_symbol(j, "net_run_ex");
            *(void **)&info = backend_llvm.jit_symbol(j, "net_info");
            test_threads(run);
            test_codes(run, !branches);
            test_watch(run);
            test_info(info(), run, t);
            backend_llvm.jit_free(j);
        }
        end();
    }
}

/* ---- objects -------------------------------------------------------------------------------------------- */

static bool object_of(const char *text, bool embed, EmitKind kind, Bytes *out)
{
    static const CodegenInfo info;
    const Target            *t = backend_llvm.parse_target(c, text);
    CodegenOptions           o = options;

    CHECK(t != NULL);
    o.embed_weights = embed;
    return t && code_of(make_plan(t, true), o, &info, kind, out);
}

static void test_objects(void)
{
    static const char *const elf[] = {
        "llvm",
        "llvm -mcpu=skylake-avx512",
        "i686-linux-gnu",
        "aarch64-linux-gnu -mcpu=cortex-a72",
        "aarch64-linux-android29",
        "arm-linux-gnueabihf",
        "armv7a-linux-gnueabihf -mcpu=cortex-a7",
        "thumbv7em-none-eabihf -mcpu=cortex-m7",
        "riscv64-linux-gnu",
        "riscv64-linux-gnu -march=rv64gcv -mabi=lp64d",
    };
    static const char *const other[] = {
        "wasm32-unknown-unknown -mattr=+simd128",
        "arm64-apple-macos13",
        "arm64-apple-ios14",
        "x86_64-pc-windows-msvc",
        "aarch64-linux-gnu -mcpu=neoverse-v1",
    };
    AuditRules  rules = {.entry = "net"};
    AuditReport report;
    Bytes       object, again;

    for (size_t i = 0; i < COUNT(elf); i++) {
        begin();
        CHECK(object_of(elf[i], true, EMIT_OBJECT, &object));
        CHECK(audit_object(c->diags, arena, elf[i], object, &rules, &report));
        CHECK_INT(report.writable, 0);
        for (uint32_t k = 0; k < report.undefined.n; k++)
            if (strcmp(report.undefined.at[k], "net_weights") && report.undefined.at[k][0] != '_')
                CHECK_STR(report.undefined.at[k], "net_weights");
        CHECK(object_of(elf[i], true, EMIT_OBJECT, &again));
        CHECK(object.n == again.n && !memcmp(object.at, again.at, object.n));
        end();
    }
    for (size_t i = 0; i < COUNT(other); i++) {
        begin();
        CHECK(object_of(other[i], false, EMIT_OBJECT, &object));
        CHECK(object.n > 400);
        end();
    }
    begin();
    CHECK(object_of("llvm", false, EMIT_LL, &object));
    CHECK(strstr((const char *)object.at, "define i32 @net_run_ex(") != NULL);
    CHECK(object_of("llvm", false, EMIT_ASM, &object));
    CHECK(memmem(object.at, object.n, "net__scale.1:", 13) != NULL);
    end();
}

static uint32_t sections(Bytes object, const char *name)
{
    Object   f;
    uint32_t n = 0;

    CHECK(elf_read(c->diags, arena, "net.o", object, &f));
    for (uint32_t i = 0; i < f.nsections; i++)
        n += !strcmp(f.sections[i].name, name);
    return n;
}

static bool merged(Ctx *to, uint32_t n, const Bytes *objects, const char *const *names,
                   const char *const *files, Bytes *out)
{
    BytesList list;

    if (!elf_merge(to->diags, arena, n, objects, names, files, &list))
        return false;
    *out = pieces_join(arena, list);
    return true;
}

/* Weights that never were an object give the bytes of those that were; large ones come before all
 * code and are not copied. */
static void check_join(const ObjectTarget *machine, Bytes code, Bytes data)
{
    Bytes     part[2] = {code, elf_blob(arena, machine, "net_weights", data)}, all, again;
    BytesList list;

    CHECK(merged(c, 2, part, NULL, NULL, &all));
    CHECK(elf_join(c->diags, arena, code, ".rodata.net_weights", "net_weights", data, &list));
    again = pieces_join(arena, list);
    CHECK(all.n == again.n && !memcmp(all.at, again.at, all.n));
    if (data.n < 1 << 20)
        return;
    CHECK(list.n == 4 && list.at[2].at == data.at && list.at[2].n == data.n);
    CHECK_INT(list.at[0].n + list.at[1].n, 64);
}

/* Kernel by kernel, the host program, the weights: merged, they keep the promises of one object. */
static void test_units(void)
{
    static const char *const elf[] = {"llvm", "i686-linux-gnu", "aarch64-linux-gnu",
                                      "arm-linux-gnueabihf", "riscv64-linux-gnu"};
    static const CodegenInfo info;
    AuditRules               rules = {.entry = "net"};
    AuditReport              report;

    for (size_t i = 0; i < COUNT(elf); i++) {
        Bytes          part[KERNELS + 2], all, again;
        const char    *names[KERNELS + 2] = {0};
        CodegenOptions o = options;
        uint32_t       n = 0;
        ObjectTarget   machine;

        begin();
        const Target *t = backend_llvm.parse_target(c, elf[i]);
        const Plan   *p = make_big_plan(t);

        c->target = t;
        CHECK(object_format_of(t->triple) == OBJECT_ELF);
        for (uint32_t k = 0; k < KERNELS; k++) {
            Func        f = *p->tir->funcs[k + 1];
            const Func *two[2] = {p->tir->funcs[0], &f};

            names[n] = object_symbol(arena, "net__", f.name);
            f.name = intern(c->strings, "f");
            CHECK(backend_llvm.unit(c, tirmod_new(c, 2, two), t, &o, &part[n++]));
        }
        CHECK(merged(c, n, part, names, NULL, &part[0]));
        o.host_only = o.embed_weights = true;
        CHECK(code_of(p, o, &info, EMIT_OBJECT, &part[1]));
        CHECK(elf_target(c->diags, t->triple, &machine));
        part[2] = elf_blob(arena, &machine, "net_weights", (Bytes){weights, sizeof weights});
        CHECK(merged(c, 3, part, NULL, NULL, &all));
        CHECK(audit_object(c->diags, arena, elf[i], all, &rules, &report));
        CHECK(sections(all, ".text") > 1);
        CHECK_INT(sections(all, ".note.GNU-stack"), 1);
        for (uint32_t k = 0; k < report.undefined.n; k++)
            CHECK(strncmp(report.undefined.at[k], "net_", 4) != 0);
        /* In two steps it is the same. */
        CHECK(merged(c, 2, part, NULL, NULL, &part[1]));
        CHECK(merged(c, 2, part + 1, NULL, NULL, &again));
        CHECK(all.n == again.n && !memcmp(all.at, again.at, all.n));
        CHECK(!merged(c, 2, (Bytes[]){all, all}, NULL, (const char *[]){"a", "b"}, &again));
        check_join(&machine, part[1], (Bytes){weights, sizeof weights});
        check_join(&machine, part[1], (Bytes){arena_alloc(arena, 3 << 20), 3 << 20});
        diag_drop(c->diags, 0);
        end();
    }
    begin();
    const Plan *p = make_big_plan(backend_llvm.parse_target(c, "llvm -mcpu=native"));
    Jit        *j = load_plan(p, &options);
    Run        *run;

    CHECK(j != NULL);
    if (j) {
        void        *in[1] = {x}, *out[1] = {y};
        tvmcc_params q = params();
        bool         same = true;

        *(void **)&run = backend_llvm.jit_symbol(j, "net_run_ex");
        fill();
        memset(y, 0, sizeof y);
        CHECK_INT(run(in, out, &q), 0);
        for (int i = 0; i < N; i++) {
            float v = 0;

            for (int k = 0; k < KERNELS; k++)
                v = v * 0.5f + (float)k + x[i] + (i == 0);
            same = same && v == y[i];
        }
        CHECK(same);
        backend_llvm.jit_free(j);
    }
    end();
}

static const char program[] =
    "typedef struct { float *p; } io;\n"
    "int net_run(const io *, const io *, void *);\n"
    "_Alignas(64) const unsigned char net_weights[64 + 4 * 40];\n"
    "_Alignas(64) static unsigned char arena[1024];\n"
    "static float x[40], y[40];\n"
    "void *memset(void *p, int v, unsigned long n)\n"
    "{ for (unsigned long i = 0; i < n; i++) ((volatile char *)p)[i] = (char)v; return p; }\n"
    "#if defined(__arm__)\n"
    "unsigned __aeabi_uidiv(unsigned a, unsigned b)\n"
    "{ unsigned q = 0, r = 0; for (int i = 31; i >= 0; i--)\n"
    "  { r = r << 1 | (a >> i & 1); if (r >= b) { r -= b; q |= 1u << i; } } return q; }\n"
    "#endif\n"
    "static int check(void)\n"
    "{\n"
    "    io in = {x}, out = {y};\n"
    "    for (int i = 0; i < 40; i++) x[i] = (float)i;\n"
    "    if (net_run(&in, &out, arena + 1) != -2) return 1;\n"
    "    if (net_run(&in, &out, arena) != 0) return 2;\n"
    "    for (int i = 0; i < 40; i++)\n"
    "        if (y[i] != (i == 0)) return 3;\n"
    "    return 42;\n"
    "}\n"
    "void _start(void)\n"
    "{\n"
    "    int code = check();\n"
    "#if defined(__aarch64__)\n"
    "    register long n __asm__(\"x8\") = 93, a __asm__(\"x0\") = code;\n"
    "    __asm__ volatile(\"svc 0\" : : \"r\"(n), \"r\"(a));\n"
    "#elif defined(__arm__)\n"
    "    register long n __asm__(\"r7\") = 1, a __asm__(\"r0\") = code;\n"
    "    __asm__ volatile(\"svc 0\" : : \"r\"(n), \"r\"(a));\n"
    "#else\n"
    "    register long n __asm__(\"a7\") = 93, a __asm__(\"a0\") = code;\n"
    "    __asm__ volatile(\"ecall\" : : \"r\"(n), \"r\"(a));\n"
    "#endif\n"
    "    for (;;) {}\n"
    "}\n";

/* The same object code on three other processors. */
static void test_qemu(void)
{
    static const char *const rows[][3] = {
        {"aarch64-linux-gnu", "qemu-aarch64-static", ""},
        {"armv7a-linux-gnueabihf", "qemu-arm-static", "-mfpu=neon"},
        {"riscv64-linux-gnu", "qemu-riscv64-static", "-mno-relax"},
    };
    char dir[] = "/tmp/tvmcc-test-XXXXXX";

    if (system("command -v clang-19 >/dev/null && command -v ld.lld-19 >/dev/null") != 0 ||
        !mkdtemp(dir)) {
        printf("SKIP (no clang-19 or ld.lld-19)\n");
        return;
    }
    for (size_t i = 0; i < COUNT(rows); i++) {
        Bytes object;
        char *cmd;

        begin();
        cmd = arena_printf(arena, "command -v %s >/dev/null", rows[i][1]);
        if (system(cmd) != 0)
            printf("SKIP (no %s)\n", rows[i][1]);
        else if (object_of(rows[i][0], true, EMIT_OBJECT, &object)) {
            char *o = arena_printf(arena, "%s/net.o", dir), *m = arena_printf(arena, "%s/m.c", dir);

            CHECK(file_write(c->diags, o, object));
            CHECK(file_write(c->diags, m, (Bytes){(const uint8_t *)program, strlen(program)}));
            cmd = arena_printf(arena,
                               "cd %s && clang-19 --target=%s %s -O1 -fno-builtin -ffreestanding "
                               "-nostdlib -static -fuse-ld=lld m.c net.o -o run && %s ./run",
                               dir, rows[i][0], rows[i][2], rows[i][1]);
            CHECK_INT(system(cmd) >> 8, 42);
        }
        end();
    }
    begin();
    CHECK_INT(system(arena_printf(arena, "rm -r %s", dir)), 0);
    end();
}

int main(void)
{
    RUN(test_plan);
    RUN(test_objects);
    RUN(test_units);
    RUN(test_qemu);
    return check_result();
}
