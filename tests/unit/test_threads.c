/* Results do not depend on the number of threads: random networks, large enough that kernels are
 * divided, compiled for this machine and for its baseline, give the same bits on 1, 2 and 3
 * threads. Memory is full of NaN each time: a value read before the thread that makes it has come
 * so far shows.  So do stores past the caches, for which some networks find these tiny, rows of one
 * convolution that the next one uses at once, and rounds of loops over batches.
 *
 *     test_threads [FIRST SEED [HOW MANY]] */
#include "backends/backend.h"
#include "passes/passes.h"
#include "tests/unit/check.h"
#include "tests/unit/gang.h"
#include "tests/unit/net.h"

#include <stdlib.h>

enum { MOST_CELLS = 1 << 17, MOST_RESULTS = 4 };

/* ---- networks --------------------------------------------------------------------------------- */

static const Expr *noise(Net *n, uint32_t ndim, const int64_t *dims)
{
    return expr_const(n->c, float_noise(n, type_tensor_i64(n->c, DT_F32, ndim, dims), -0.3, 0.3),
                      NO_LOC);
}

static const Expr *conv(Net *n, const Expr *x)
{
    static const int64_t widths[] = {16, 24, 32, 48, 7};
    static const int     sides[] = {1, 3, 3, 5};
    Conv2dAttrs         *a = attrs_new(n->c, &attrs_Conv2dAttrs);
    int64_t              in = dim(x, 1), out = widths[pick(n, COUNT(widths))];
    int                  k = sides[pick(n, COUNT(sides))], pad = pick(n, 4) ? k / 2 : 0;
    bool                 depthwise = pick(n, 4) == 0;

    if (dim(x, 2) < k || dim(x, 3) < k)
        k = 1, pad = 0;
    if (depthwise)
        out = in;
    a->groups = depthwise ? in : 1;
    a->padding = ints_of(n->c, 4, pad, pad, pad, pad);
    if (pick(n, 4) == 0)
        a->strides = ints_of(n->c, 2, 2, 2);
    return call(n, "nn.conv2d", x, noise(n, 4, (int64_t[]){out, depthwise ? 1 : in, k, k}), a);
}

/* More channels, each on its own, then all of a pixel. */
static const Expr *separable(Net *n, const Expr *x)
{
    Conv2dAttrs *a = attrs_new(n->c, &attrs_Conv2dAttrs);
    int64_t      in = 32, out = 16 + 16 * pick(n, 2);
    int          k = dim(x, 2) < 3 || dim(x, 3) < 3 ? 1 : 3;

    x = call(n, "nn.conv2d", x, noise(n, 4, (int64_t[]){in, dim(x, 1), 1, 1}),
             attrs_new(n->c, &attrs_Conv2dAttrs));
    a->groups = in;
    a->padding = ints_of(n->c, 4, k / 2, k / 2, k / 2, k / 2);
    x = call(n, "nn.conv2d", x, noise(n, 4, (int64_t[]){in, 1, k, k}), a);
    x = call(n, pick(n, 2) ? "nn.relu" : "sigmoid", x, NULL, NULL);
    return call(n, "nn.conv2d", x, noise(n, 4, (int64_t[]){out, in, 1, 1}),
                attrs_new(n->c, &attrs_Conv2dAttrs));
}

static const Expr *pool(Net *n, const Expr *x)
{
    Pool2dAttrs *a = attrs_new(n->c, &attrs_Pool2dAttrs);

    a->pool_size = ints_of(n->c, 2, 3, 3);
    a->strides = pick(n, 2) ? ints_of(n->c, 2, 2, 2) : a->strides;
    a->padding = ints_of(n->c, 4, 1, 1, 1, 1);
    return call(n, pick(n, 2) ? "nn.max_pool2d" : "nn.avg_pool2d", x, NULL, a);
}

/* An image as rows, through a product, a norm or softmax, and back. */
static const Expr *rows(Net *n, const Expr *x)
{
    int64_t         h = dim(x, 2), w = dim(x, 3), c = dim(x, 1), units = 8 + 8 * pick(n, 4);
    TransposeAttrs *t = attrs_new(n->c, &attrs_TransposeAttrs),
                   *back = attrs_new(n->c, &attrs_TransposeAttrs);
    ReshapeAttrs *flat = attrs_new(n->c, &attrs_ReshapeAttrs),
                 *image = attrs_new(n->c, &attrs_ReshapeAttrs);
    const Expr *y;

    t->axes = ints_of(n->c, 4, 0, 2, 3, 1);
    back->axes = ints_of(n->c, 4, 0, 3, 1, 2);
    flat->newshape = dims_of_i64(n->c, (int64_t[]){dim(x, 0) * h * w, c}, 2);
    y = call(n, "reshape", call(n, "transpose", x, NULL, t), NULL, flat);
    if (pick(n, 2))
        y = call(n, "nn.dense", y, noise(n, 2, (int64_t[]){c = units, dim(x, 1)}), NULL);
    if (pick(n, 2))
        y = call(n, "nn.softmax", y, NULL, NULL);
    image->newshape = dims_of_i64(n->c, (int64_t[]){dim(x, 0), h, w, c}, 4);
    return call(n, "transpose", call(n, "reshape", y, NULL, image), NULL, back);
}

static const Expr *join(Net *n, const Expr *x)
{
    ConcatenateAttrs *a = attrs_new(n->c, &attrs_ConcatenateAttrs);

    a->axis = 1;
    for (uint32_t i = 0; i < n->pool.n; i++) {
        const Expr *y = n->pool.at[i];

        if (y != x && dim(y, 0) == dim(x, 0) && dim(y, 2) == dim(x, 2) && dim(y, 3) == dim(x, 3))
            return call(n, "concatenate", expr_tuple(n->c, 2, (const Expr *[]){x, y}, NO_LOC), NULL,
                        a);
    }
    return call(n, "tanh", x, NULL, NULL);
}

static const Expr *layer(Net *n)
{
    const Expr *x = n->pool.at[n->pool.n - 1 - pick(n, n->pool.n < 4 ? n->pool.n : 4)];

    switch (pick(n, 13)) {
    case 0:
    case 1:
    case 2:
    case 3: return conv(n, x);
    case 4: return call(n, "nn.relu", conv(n, x), NULL, NULL);
    case 5: return pool(n, x);
    case 6: return rows(n, x);
    case 7: return call(n, "sigmoid", x, NULL, NULL);
    case 8:
        for (uint32_t i = 0; i < n->pool.n; i++)
            if (n->pool.at[i] != x && n->pool.at[i]->type == x->type)
                return call(n, "add", x, n->pool.at[i], NULL);
        return call(n, "multiply", x, x, NULL);
    case 9:
    case 10: return separable(n, x);
    default: return join(n, x);
    }
}

static const Module *random_net(Net *n)
{
    static const int64_t batches[] = {1, 1, 1, 2, 7};
    const int64_t dims[] = {batches[pick(n, COUNT(batches))], pick(n, 3) ? 16 : 3, 14 + pick(n, 20),
                            14 + pick(n, 20)};
    const Expr   *x = expr_var(n->c, "x", type_tensor_i64(n->c, DT_F32, 4, dims), NO_LOC), *out[3];
    GlobalDef     def;

    vec_push(n->c->arena, &n->pool, x);
    for (uint32_t i = 0, layers = 4 + pick(n, 5); i < layers; i++) {
        const Expr *e = layer(n);
        int64_t     cells = 0;

        if (type_elems(e->type, &cells) && cells <= MOST_CELLS)
            vec_push(n->c->arena, &n->pool, e);
    }
    for (uint32_t i = 0; i < 2; i++)
        out[i] = n->pool.at[n->pool.n - 1 - (i < n->pool.n ? i : 0)];
    out[2] = call(n, "nn.global_avg_pool2d", out[0], NULL, NULL);
    def = (GlobalDef){
        "main", expr_func(n->c, 1, &x, expr_tuple(n->c, 3, out, NO_LOC), (FuncData){0}, NO_LOC)};
    return module_new(n->c, NULL, 1, &def);
}

/* ---- running ------------------------------------------------------------------------------------ */

typedef int32_t Run(void *const *, void *const *, const tvmcc_params *);

/* The results with so many threads; 0, or the status. */
static int32_t run_with(Ctx *c, const Plan *p, Run *run, const Const *in, uint8_t *weights,
                        uint32_t threads, Bytes *out)
{
    void        *at[1] = {memory(c, in->data.n)}, *to[MOST_RESULTS];
    uint64_t     bytes = p->arena_bytes + threads * p->private_bytes + 64;
    tvmcc_params params = {.struct_bytes = sizeof params,
                           .threads = 1,
                           .arena = memory(c, bytes),
                           .arena_bytes = bytes,
                           .weights = weights,
                           .weights_bytes = p->weights_bytes};
    Gang         gang;

    memcpy(at[0], in->data.at, in->data.n);
    for (uint32_t i = 0; i < p->nout; i++) {
        int64_t cells = 0;

        type_elems(p->out[i].type, &cells);
        to[i] = memory(c, (uint64_t)cells * 4);
        out[i] = (Bytes){to[i], (size_t)cells * 4};
    }
    if (threads > 1)
        gang_use(&gang, threads, &params);
    return run(at, to, &params);
}

static void report(Ctx *c, const Module *m, uint32_t seed, const char *what)
{
    StrBuf text = strbuf(c->arena);

    diag_print(c->diags, DIAG_TEXT, &text);
    relay_print(c, m, (RelayPrint){.types = true}, &text);
    printf("seed %u: %s\n%s\n", seed, what, text.at ? text.at : "");
    check_failures++;
}

static bool has_nan(Bytes b)
{
    for (size_t i = 0; i + 4 <= b.n; i += 4) {
        double v = dtype_get_f(DT_F32, b.at + i);

        if (v != v)
            return true;
    }
    return false;
}

/* On so many threads; `want` is what has to come, or gets what came first. */
static void check_runs(Ctx *c, const Module *m, const Plan *p, Run *run, uint32_t seed, Bytes *want)
{
    Net          n = {.c = c, .seed = seed};
    const Const *in = float_noise(&n, func_param(module_func(m, "main"), 0)->type, -1, 1);
    uint8_t     *weights = memory(c, p->weights_bytes + 64);
    bool         first = !want[0].at;
    Bytes        got[MOST_RESULTS];

    if (!fill_weights(c, p, weights)) {
        report(c, m, seed, "no weights");
        return;
    }
    for (uint32_t threads = 1; threads <= 3; threads++) {
        int32_t status = run_with(c, p, run, in, weights, threads, first ? want : got);

        if (status)
            report(c, m, seed, arena_printf(c->arena, "status %d on %u threads", status, threads));
        for (uint32_t i = 0; i < p->nout && !status; i++) {
            if (first ? has_nan(want[i]) : memcmp(want[i].at, got[i].at, want[i].n) != 0) {
                report(c, m, seed, arena_printf(c->arena, "result %u on %u threads", i, threads));
                return;
            }
        }
        first = false;
    }
}

/* Those that get the number of their thread. */
static uint32_t divided_kernels(const TirModule *m)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < m->nfuncs; i++)
        for (uint32_t k = 0; k < m->funcs[i]->nparams; k++) {
            const Param *p = &m->funcs[i]->params[k];

            count += p->scalar && !strcmp(p->scalar->name, "tid");
        }
    return count;
}

typedef struct {
    uint32_t divided, streamed, pairs; /* kernels */
    uint32_t rounds;                   /* loops whose rounds are divided */
} Totals;

static uint32_t streamed_kernels(const TirModule *m)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < m->nfuncs; i++)
        for (uint32_t k = 0; k < m->funcs[i]->nparams; k++)
            count += m->funcs[i]->params[k].buffer && m->funcs[i]->params[k].buffer->stream;
    return count;
}

/* Kernels of two convolutions. */
static uint32_t pairs(const TirModule *m)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < m->nfuncs; i++) {
        const char *first = strstr(m->funcs[i]->name, "conv2d");
        count += first && strstr(first + 1, "conv2d");
    }
    return count;
}

static void count_rounds(void *count, const Stmt *s)
{
    *(uint32_t *)count += s->kind == STMT_FOR && !idx_is_const(s->u.loop.extent, NULL);
}

/* Loops of the host whose rounds are a thread's. */
static uint32_t divided_rounds(const TirModule *m)
{
    uint32_t count = 0;

    stmt_visit(m->funcs[m->nfuncs - 1]->body, &(TirVisit){&count, NULL, count_rounds, NULL, NULL});
    return count;
}

static void check_target(Ctx *c, const Module *m, uint32_t seed, bool paired, Bytes *want,
                         Totals *sum)
{
    static const char *const off[] = {"pair_depthwise"};
    static const CodegenInfo none;
    CodegenOptions           code = {.entry = "net", .opt_level = 1, .pic = true};
    PassOptions              o = {.opt_level = 3, .jobs = 1, .nwithout = !paired, .without = off};
    const Module            *now;
    const Plan              *p = NULL;
    Plan                     flat;
    Bytes                    object;
    Jit                     *j = NULL;
    Run                     *run = NULL;

    check_count++;
    if (c->target && (now = run_graph_passes(c, m, &o)) && (p = lower(c, now, "net", &o))) {
        flat = *p;
        if ((flat.tir = run_tir_passes(c, p->tir, &o, TIR_TO_CODE)) &&
            (code.host = entry_functions(c, &flat, &code, &none)) &&
            backend_llvm.codegen(c, &flat, &code, &none, EMIT_OBJECT, &object) &&
            (j = backend_llvm.jit_load(c, c->target, object)))
            *(void **)&run = backend_llvm.jit_symbol(j, "net_run_ex");
    }
    if (run) {
        sum->divided += divided_kernels(p->tir);
        sum->streamed += streamed_kernels(p->tir);
        sum->pairs += pairs(p->tir);
        sum->rounds += divided_rounds(p->tir);
        check_runs(c, m, p, run, seed, want);
    } else {
        report(c, m, seed, "not compiled");
    }
    if (j)
        backend_llvm.jit_free(j);
}

static void check_net(uint32_t seed, Totals *sum)
{
    Arena        *arena = arena_new(NULL);
    Ctx          *c = ctx_new(arena, diags_new(arena), op_table);
    Net           n = {.c = c, .seed = seed * 2654435761u};
    const Module *m = random_net(&n);
    Bytes         want[MOST_RESULTS] = {{0}};
    const Target *t = backend_llvm.parse_target(c, seed % 2 ? "llvm -mcpu=native" : "llvm");

    c->target = t;
    if (t && seed % 2) {
        Target plain = *t, stream = *t;

        plain.l2_bytes = stream.l2_bytes = 16384;
        plain.l3_bytes = stream.l3_bytes = 65536;
        plain.has_stream = false;
        c->target = &plain;
        check_target(c, m, seed, false, want, sum);
        c->target = &stream;
        check_target(c, m, seed, true, want, sum);
    } else {
        check_target(c, m, seed, true, want, sum);
    }
    ctx_free(c);
    arena_free(arena);
}

int main(int argc, char **argv)
{
    uint32_t from = argc > 1 ? (uint32_t)atoi(argv[1]) : 1020,
             n = argc > 2 ? (uint32_t)atoi(argv[2]) : 24;
    Totals sum = {0};

    for (uint32_t seed = from; seed < from + n && check_failures < 3; seed++)
        check_net(seed, &sum);
    CHECK(sum.divided > 2 * n); /* the networks have what is tested */
#if defined(__x86_64__)
    CHECK(argc > 1 || (sum.streamed > 0 && sum.rounds > 0));
#endif
    printf("%u kernels divided, %u stored past the caches, %u pairs, rounds of %u loops\n",
           sum.divided, sum.streamed, sum.pairs, sum.rounds);
    return check_result();
}
