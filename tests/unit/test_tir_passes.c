/* The TIR passes, one after the other: after each the verifier is content and the interpreter gives
 * the bits of the scheduled nest, for every number of threads, in either order of the threads; and
 * so does compiled code.  Nests come from operators with the rules of schedules/, from operators
 * without a schedule, and from random steps.  Memory outside the buffers stays as it was.
 *
 * lower_math changes bits, so from there on the nest with the same polynomials is the measure. */
#include "backends/backend.h"
#include "ir/tir/intrin.h"
#include "ops/ops.h"
#include "passes/passes.h"
#include "tests/unit/nests.h"

enum { GUARD = 512, MAX_PARAMS = 32, MAX_THREADS = 3 };

static const Target *native;
static uint32_t      nests, compiled, skipped;

/* A buffer's memory between two guards. */
typedef struct {
    uint8_t *raw, *first, *at;
    size_t   bytes;
} Zone;

static Zone zone(const Buffer *b)
{
    int64_t n, origin;

    if (!buffer_size(c, b, &n, &origin))
        abort();
    size_t   size = dtype_bytes(b->dtype), before = (size_t)origin * size;
    Zone     z = {.bytes = (size_t)n * size};
    uint8_t *p = arena_alloc(c->scratch, z.bytes + 2 * GUARD + 128);
    z.at = (uint8_t *)(((uintptr_t)p + GUARD + before + 63) / 64 * 64); /* cell 0 is aligned */
    z.first = z.at - before;
    z.raw = z.first - GUARD;
    memset(z.raw, 0xa5, z.bytes + 2 * GUARD);
    return z;
}

static bool guards_hold(Zone z)
{
    for (size_t i = 0; i < GUARD; i++)
        if (z.raw[i] != 0xa5 || z.first[z.bytes + i] != 0xa5)
            return false;
    return true;
}

static void put(DType t, uint8_t *at, double v)
{
    float   f = (float)v;
    int64_t i = dtype_is_float(t) ? 0 : (int64_t)v;

    if (dtype_is_float(t) && t.bits == 32)
        memcpy(at, &f, sizeof f);
    else if (dtype_is_float(t))
        dtype_put_f(t, at, v);
    else
        memcpy(at, &i, dtype_bytes(t)); /* little-endian */
}

static void fill_all(const Buffer *b, Zone z, double v)
{
    for (size_t i = 0; i < z.bytes; i += dtype_bytes(b->dtype))
        put(b->dtype, z.first + i, v);
}

/* Small numbers inside, the halo's value around. */
static void fill_input(const Buffer *b, Zone z, uint64_t s)
{
    int64_t    at[8] = {0};
    const Idx *stride[8];
    uint32_t   d;

    seed = s;
    buffer_strides(c, b, stride);
    fill_all(b, z, b->halo ? b->halo->value : 0);
    do {
        int64_t off = 0;
        for (d = 0; d < b->ndim; d++)
            off += at[d] * stride[d]->c0;
        bool   f = dtype_is_float(b->dtype);
        bool   byte = dtype_is_int(b->dtype) && b->dtype.bits == 8;
        double v = f ? (double)rnd(9) - 4 : byte ? (double)rnd(256) - 128 : (double)rnd(2);
        put(b->dtype, z.at + off * (int64_t)dtype_bytes(b->dtype), f ? v * 0.375 : v);
        for (d = b->ndim; d > 0 && ++at[d - 1] == b->extent[d - 1]->c0;)
            at[--d] = 0;
    } while (d);
}

/* ---- one function ---------------------------------------------------------------------------------- */

typedef struct {
    const Sched *s;
    uint32_t     nio; /* parameters of the nest */
    Zone         io[MAX_PARAMS], want[MAX_PARAMS];
} Trial;

static void trial_inputs(Trial *t, const Func *first)
{
    t->nio = t->s->f->nparams;
    for (uint32_t i = 0; i < t->nio; i++) {
        const Buffer *was = first->params[i].buffer, *now = t->s->f->params[i].buffer;
        Zone          z = zone(was);

        fill_input(was, z, 77 + i);
        for (uint32_t k = 0; k < t->s->prepacks.n; k++) {
            if (t->s->prepacks.at[k].param != i)
                continue;
            Zone  packed = zone(now);
            void *io[2] = {z.at, packed.at};
            CHECK(tir_eval(c, NULL, t->s->prepacks.at[k].prepack, 2, io, 0, NULL));
            z = packed;
        }
        t->io[i] = z;
    }
}

static bool complain_diags(const char *what)
{
    StrBuf text = strbuf(c->scratch);

    diag_print(c->diags, DIAG_TEXT, &text);
    printf("%s: %s", what, text.at);
    diag_drop(c->diags, 0);
    return false;
}

static bool trial_want(Trial *t, const Func *nest)
{
    void *at[MAX_PARAMS];

    for (uint32_t i = 0; i < t->nio; i++) {
        const Param *p = &nest->params[i];
        at[i] = t->io[i].at;
        if (!p->written)
            continue;
        t->want[i] = zone(p->buffer);
        fill_all(p->buffer, t->want[i], p->buffer->halo ? p->buffer->halo->value : 99);
        at[i] = t->want[i].at;
    }
    return tir_eval(c, NULL, nest, t->nio, at, 0, NULL) || complain_diags("the nest");
}

typedef void Compiled(void *const *buffers, const int64_t *scalars);

static const Atom *scalar_named(const Func *f, const char *name)
{
    for (uint32_t i = 0; i < f->nparams; i++)
        if (f->params[i].scalar && !strcmp(f->params[i].scalar->name, name))
            return f->params[i].scalar;
    return NULL;
}

/* All threads of all phases, in order or backwards; false if a bit differs. */
static bool run_threads(Trial *t, const TirModule *m, const Func *f, Compiled *code, int64_t nt,
                        bool backwards, bool halos_filled)
{
    void       *at[MAX_THREADS][MAX_PARAMS];
    Zone        z[MAX_THREADS][MAX_PARAMS];
    uint32_t    n = 0;
    const Atom *phase = scalar_named(f, "phase");
    bool        ok = true;

    for (uint32_t i = 0; i < f->nparams; i++) {
        const Param *p = &f->params[i];
        if (!p->buffer)
            continue;
        for (int64_t k = 0; k < nt; k++) {
            bool own = n >= t->nio && p->buffer->scope == SCOPE_PRIVATE;
            if (k > 0 && !own)
                z[k][n] = z[0][n];
            else if (n < t->nio && !p->written)
                z[k][n] = t->io[n];
            else {
                const Buffer *b = n < t->nio ? t->s->f->params[n].buffer : p->buffer;
                z[k][n] = zone(b);
                fill_all(b, z[k][n],
                         n < t->nio && !halos_filled ? b->halo ? b->halo->value : 99 : 99);
                if (n >= t->nio)
                    memset(z[k][n].first, 0xff, z[k][n].bytes);
            }
            at[k][n] = z[k][n].at;
        }
        n++;
    }
    for (int64_t ph = 0; ph <= (phase ? phase->hi : 0); ph++)
        for (int64_t k = 0; k < nt; k++) {
            int64_t  tid = backwards ? nt - 1 - k : k, scalars[4];
            uint32_t ns = 0;
            for (uint32_t i = 0; i < f->nparams; i++)
                if (f->params[i].scalar)
                    scalars[ns] = (const int64_t[]){tid, nt, ph}[ns], ns++;
            if (code)
                code(at[tid], scalars);
            else if (!tir_eval(c, m, f, n, at[tid], ns, scalars))
                return complain_diags("interpreter");
        }
    for (uint32_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < nt; k++)
            if (!guards_hold(z[k][i]))
                ok = false, printf("wrote outside of parameter %u\n", i);
        if (i < t->nio && t->want[i].at &&
            memcmp(z[0][i].first, t->want[i].first, t->want[i].bytes))
            ok = false, printf("parameter %u differs\n", i);
    }
    return ok;
}

static bool all_threads(Trial *t, const TirModule *m, const Func *f, Compiled *code, bool filled)
{
    bool    spmd = scalar_named(f, "tid") != NULL;
    int64_t most = spmd ? MAX_THREADS : 1;

    for (int64_t nt = 1; nt <= most; nt++)
        for (int back = 0; back < (nt > 1 ? 2 : 1); back++)
            if (!run_threads(t, m, f, code, nt, back, filled)) {
                printf("with %d threads%s%s\n", (int)nt, back ? " backwards" : "",
                       code ? ", compiled" : "");
                return false;
            }
    return true;
}

static bool find_shared(void *user, const Stmt *s)
{
    if (s->kind == STMT_ALLOC && s->u.buffer->scope == SCOPE_ARENA)
        *(bool *)user = true;
    return true;
}

static bool has_shared_alloc(const Func *f)
{
    bool found = false;

    stmt_visit(f->body, &(TirVisit){&found, find_shared, NULL, NULL, NULL});
    return found;
}

/* The nest of s through all passes; false after a message. */
static bool through_passes(const Sched *s, bool compile)
{
    Trial       t = {.s = s};
    Func        k = *s->f;
    uint32_t    errors = diag_errors(c->diags);
    const char *after = "nothing";
    bool        filled = false, ok;

    k.name = intern(c->strings, "kernel.0");
    k.kind = FUNC_KERNEL;
    k.target = native;
    const Func      *f = func_new(c, k), *nest = f;
    const TirModule *m = tirmod_new(c, 1, &f), *plain = m;

    nests++;
    trial_inputs(&t, sched_new(c, native, s->te)->f);
    if (!trial_want(&t, nest))
        return false;
    for (uint32_t i = 0; i < pass_count; i++) {
        if (pass_table[i].level != LEVEL_TIR)
            continue;
        after = pass_table[i].name;
        m = pass_table[i].tir(c, m);
        if (!m || diag_errors(c->diags) != errors)
            return complain_diags(after);
        if (!tir_verify(c, m, i + 1 == pass_count ? TIR_FLAT : TIR_LOWERED)) {
            complain_diags(after);
            goto wrong;
        }
        f = tirmod_find(m, "kernel.0");
        filled |= !strcmp(after, "fill_halo");
        if (!strcmp(after, "lower_math") && !trial_want(&t, lower_math(c, plain)->funcs[0]))
            return false;
        /* Between spmd and flatten no memory outlives a phase. */
        if (scalar_named(f, "tid") && has_shared_alloc(f)) {
            skipped++;
            continue;
        }
        if (!all_threads(&t, m, f, NULL, filled))
            goto wrong;
    }
    if (!compile)
        return true;
    compiled++;
    Jit *j = backend_llvm.jit(c, m, native);
    if (!j)
        return complain_diags("jit");
    ok = all_threads(&t, m, f, (Compiled *)(uintptr_t)backend_llvm.jit_symbol(j, f->name), filled);
    backend_llvm.jit_free(j);
    if (ok)
        return true;
    after = "code generation";
wrong:
    printf("after %s:\n%s%s", after, steps_of(s), text_of(nest));
    StrBuf text = strbuf(c->scratch);
    tir_print(c, m, &text);
    printf("%s\n", text.at);
    return false;
}

/* ---- random steps ------------------------------------------------------------------------------------ */

static void random_nests(uint32_t lists, uint64_t first)
{
    uint32_t bad = 0;

    for (uint32_t k = 0; k < lists && bad < 2; k++) {
        seed = first + k * 104729u;
        rnd(2), rnd(2);
        Sched   *s = sched_new(c, native, random_te());
        uint32_t tries = 4 + rnd(50);
        for (uint32_t i = 0; i < tries; i++)
            random_step(s, (int)i);
        for (uint32_t i = 0; i < 3; i++) { /* marks, which are rare among random steps */
            Names n = {.nloops = 0};
            stmt_visit(s->f->body, &(TirVisit){.user = &n, .enter = gather});
            if (n.nloops && rnd(2))
                try_step(s, "parallel %%%s", n.loop[rnd(n.nloops)]);
            if (n.nloops && rnd(2))
                try_step(s, "vectorize %%%s", n.loop[rnd(n.nloops)]);
            if (n.nloops && rnd(2))
                try_step(s, "outline %%%s", n.loop[rnd(n.nloops)]);
        }
        if (!through_passes(s, k % 16 == 0)) {
            bad++;
            printf("list %u of seed %llu\n", k, (unsigned long long)first);
        }
        diag_drop(c->diags, 0);
        arena_reset(c->scratch);
    }
    CHECK_INT(bad, 0);
}

static void test_random(void)
{
    const char *n = getenv("TIR_LISTS"), *from = getenv("TIR_SEED");

    random_nests(n ? (uint32_t)atoi(n) : 160, from ? (uint64_t)atoll(from) : 1);
}

/* ---- instructions ------------------------------------------------------------------------------------ */

/* Loops that vectorize makes this instruction of. */
static bool makes(const Sched *s, const char *text)
{
    const TirModule *m = tirmod_new(c, 1, &s->f);
    StrBuf           out = strbuf(arena);

    for (uint32_t i = 0; i < pass_count; i++) {
        if (pass_table[i].level == LEVEL_TIR)
            m = pass_table[i].tir(c, m);
        if (!strcmp(pass_table[i].name, "vectorize"))
            break;
    }
    tir_print(c, m, &out);
    return strstr(out.at, arena_printf(arena, " = %s(", text)) != NULL;
}

/* Each row's own description, tensorized: interpreted and compiled, with the instruction or
 * without, it gives what its loops give.  Axes are taken from the sum outwards. */
static void test_instructions(void)
{
    for (uint32_t id = 0; id < INTRIN_COUNT; id++) {
        const char   *te = intrin_te((IntrinId)id), *first = "";
        const Intrin *row = intrin_of(c, (IntrinId)id);
        const TeFunc *f = te_parse(c, "te", (Bytes){(const uint8_t *)te, strlen(te)});
        const Tensor *t = f->outs[0];
        StrBuf        order = strbuf(arena);
        Sched        *s = sched_new(c, native, f);

        if (row->warp) /* unit.device has them */
            continue;

        for (uint32_t i = 0; i < t->nreduce; i++)
            str_printf(&order, "%s%%c.%s", i ? ", " : "", t->raxis[i]->name);
        for (uint32_t i = 0; i < t->naxis; i++)
            str_printf(&order, "%s%%c.%s", order.n ? ", " : "", t->axis[i]->name);
        first = arena_printf(arena, "%.*s", (int)strcspn(order.at, ","), order.at);
        if (t->naxis + t->nreduce > 1)
            CHECK(step(s, "reorder %s", order.at));
        if (row->sums)
            CHECK(step(s, "decompose_reduction c %s", first));
        CHECK(step(s, "tensorize %s with @%s", first, row->text));
        CHECK(!s->refusal && makes(s, row->text));
        if (!s->refusal && !through_passes(s, row->result.cells <= 16))
            CHECK(!row->text);
        arena_reset(c->scratch);
    }
}

/* ---- operators ------------------------------------------------------------------------------------------ */

static const char *const models[] = {
    /* convolutions: plain, grouped, depthwise, strided, dilated; with and without what follows */
    "(%x: Tensor[(1,3,13,11),f32], %w: Tensor[(8,3,3,3),f32]) { nn.relu(nn.conv2d(%x, %w, "
    "padding=[1,1,1,1])) }",
    "(%x: Tensor[(1,6,9,9),f32], %w: Tensor[(4,3,3,3),f32]) { nn.conv2d(%x, %w, strides=[2,2], "
    "padding=[1,1,1,1], groups=2) }",
    "(%x: Tensor[(1,5,9,10),f32], %w: Tensor[(5,1,3,3),f32], %b: Tensor[(5),f32]) { "
    "nn.relu(nn.bias_add(nn.conv2d(%x, %w, padding=[1,1,1,1], groups=5), %b)) }",
    "(%x: Tensor[(2,4,8,8),f32], %w: Tensor[(3,4,3,3),f32]) { nn.conv2d(%x, %w, dilation=[2,2]) }",
    /* two in a row at -O3: blocked, with halos */
    "(%x: Tensor[(1,16,9,7),f32]) { %0 = nn.relu(nn.conv2d(%x, const @a, padding=[1,1,1,1])); "
    "%1 = nn.conv2d(%0, const @a, padding=[1,1,1,1]); nn.relu(add(%1, %0)) }",
    "(%x: Tensor[(1,16,9,7),f32]) { %0 = nn.relu(nn.conv2d(%x, const @d, padding=[1,1,1,1], "
    "groups=16)); sigmoid(nn.conv2d(%0, const @p)) }",
    "(%x: Tensor[(1,3,15,15),f32]) { %0 = nn.relu(nn.conv2d(%x, const @f, strides=[2,2], "
    "padding=[3,3,3,3])); nn.max_pool2d(%0, pool_size=[3,3], strides=[2,2], padding=[1,1,1,1]) }",
    /* products */
    "(%x: Tensor[(5,19),f32], %b: Tensor[(13),f32]) { nn.relu(nn.bias_add(nn.dense(%x, const @q), "
    "%b)) }",
    "(%x: Tensor[(33,19),f32]) { tanh(nn.dense(%x, const @q)) }",
    "(%x: Tensor[(3,7,9),f32], %y: Tensor[(3,5,9),f32]) { nn.batch_matmul(%x, %y) }",
    /* rows */
    "(%x: Tensor[(5,23),f32]) { nn.softmax(%x) }",
    "(%x: Tensor[(2,3,10),f32]) { nn.log_softmax(%x) }",
    "(%x: Tensor[(4,17),f32], %g: Tensor[(17),f32], %b: Tensor[(17),f32]) { nn.layer_norm(%x, %g, "
    "%b) }",
    "(%x: Tensor[(3,4,11),f32]) { mean(%x, axis=[1,2]) }",
    "(%x: Tensor[(3,5,11),f32]) { max(%x, axis=[1]) }",
    "(%x: Tensor[(1,6,7,5),f32]) { nn.global_avg_pool2d(%x) }",
    "(%x: Tensor[(1,3,9,7),f32]) { nn.avg_pool2d(%x, pool_size=[3,3], strides=[2,2], "
    "padding=[1,1,1,1]) }",
    "(%x: Tensor[(1,3,9,7),f32]) { nn.max_pool2d(%x, pool_size=[2,2], strides=[2,2]) }",
    /* elementwise and moving */
    "(%x: Tensor[(3,37),f32], %y: Tensor[(37),f32]) { multiply(erf(add(%x, %y)), exp(%x)) }",
    "(%x: Tensor[(3,5),f32]) { log(add(multiply(%x, %x), 1.0)) }",
    "(%x: Tensor[(3,5),f32], %y: Tensor[(3,9),f32]) { concatenate((%x, %y), axis=1) }",
    "(%x: Tensor[(7,5),f32], %i: Tensor[(4),i64]) { nn.relu(take(%x, %i, axis=0)) }",
    "(%x: Tensor[(3,5,7),f32]) { nn.relu(transpose(%x, axes=[2,0,1])) }",
    "(%x: Tensor[(3,11),i64]) { cast(%x, dtype=\"f32\") }",
    "(%x: Tensor[(3,2,4),f32], %w: Tensor[(1,20,4),f32], %r: Tensor[(1,20,5),f32], %b: "
    "Tensor[(1,40),f32], %h: Tensor[(1,2,5),f32], %c: Tensor[(1,2,5),f32]) { nn.lstm(%x, %w, %r, "
    "%b, %h, %c, direction=\"forward\") }",
    "(%x: Tensor[(4,2,3),f32], %w: Tensor[(2,51,3),f32], %r: Tensor[(2,51,17),f32], %b: "
    "Tensor[(2,102),f32], %h: Tensor[(2,2,17),f32]) { nn.gru(%x, %w, %r, %b, %h, "
    "direction=\"bidirectional\") }",
    "(%x: Tensor[(5,1,3),f32], %w: Tensor[(1,600,3),f32], %r: Tensor[(1,600,200),f32], %b: "
    "Tensor[(1,1200),f32], %h: Tensor[(1,1,200),f32]) { nn.gru(%x, %w, %r, %b, %h, "
    "direction=\"reverse\", linear_before_reset=true) }",
    "(%x: Tensor[(3,1,3),f32], %w: Tensor[(1,300,3),f32], %r: Tensor[(1,300,300),f32], %b: "
    "Tensor[(1,600),f32], %h: Tensor[(1,1,300),f32]) { nn.rnn(%x, %w, %r, %b, %h, f=\"relu\") }",
};

static const char *const constants = "const @a: Tensor[(16,16,3,3),f32] = splat(0.25)\nconst @d: "
                                     "Tensor[(16,1,3,3),f32] = splat(0.5)\n"
                                     "const @p: Tensor[(24,16,1,1),f32] = splat(0.125)\nconst @f: "
                                     "Tensor[(16,3,7,7),f32] = splat(1)\n"
                                     "const @q: Tensor[(13,19),f32] = splat(1)\n";

static const Op *anchor(const Expr *fn)
{
    ExprList  l = expr_post_order(c, func_body(fn));
    const Op *best = NULL;

    for (uint32_t i = 0; i < l.n; i++) {
        const Op *op = call_op(l.at[i]);
        if (op && (!best || op->fusion == FUSE_OUT_FUSABLE || best->fusion < op->fusion))
            if (!best || best->fusion != FUSE_OUT_FUSABLE)
                best = op;
    }
    return best;
}

static void run_model(const char *text, int level)
{
    StrBuf b = strbuf(c->scratch);
    str_printf(&b, "%sfn @main%s", constants, text);
    const char   *all = b.at;
    PassOptions   o = {.opt_level = level};
    const Module *m =
        relay_parse(c, "model", (Bytes){(const uint8_t *)all, strlen(all)}, (Bytes){0});

    if (m)
        m = run_graph_passes(c, m, &o);
    CHECK(m != NULL);
    if (!m) {
        complain_diags(text);
        return;
    }
    ExprList l = expr_post_order(c, func_body(module_func(m, "main")));
    for (uint32_t i = 0; i < l.n; i++) {
        const Expr *call = l.at[i];
        if (call->kind != EXPR_CALL || call->kids[0]->kind != EXPR_FUNC)
            continue;
        const TeFunc *te = te_of_func(c, call->kids[0], call, false, "kernel");
        CHECK(te != NULL);
        const char *rule = NULL;
        Refusals    refused;
        Sched      *s =
            te ? schedule_kernel(c, te, anchor(call->kids[0]), native, &o, &rule, &refused) : NULL;
        if (!s || !through_passes(s, true)) {
            CHECK(!"a kernel differs");
            printf("at -O%d: %s\n", level, text);
            diag_drop(c->diags, 0);
        }
    }
    arena_reset(c->scratch);
}

static void test_operators(void)
{
    for (uint32_t i = 0; i < COUNT(models); i++) {
        run_model(models[i], 0);
        run_model(models[i], 3);
    }
}

int main(void)
{
    arena = arena_new(NULL);
    c = ctx_new(arena, diags_new(arena), op_table);
    native = backend_llvm.parse_target(c, "llvm -mcpu=native");
    CHECK(native != NULL);
    if (native) {
        RUN(test_instructions);
        RUN(test_operators);
        RUN(test_random);
    }
    printf("%u nests, %u compiled, %u evaluations skipped\n", nests, compiled, skipped);
    ctx_free(c);
    arena_free(arena);
    return check_result();
}
