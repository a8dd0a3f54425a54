/* Control flow (docs/design/flow.md): functions that call themselves, as loops.  Each program is
 * evaluated as Relay; then it is lowered at -O0 and -O3, run by the interpreter, and compiled for
 * this machine and run on 1, 2 and 3 threads that meet at barriers, and, without a barrier, phase
 * by phase. All give the same values.  Memory is full of NaN each time.  Then with results of an
 * input's type as states, in memory of their own and in that of the inputs. */
#include "backends/backend.h"
#include "machine/machine.h"
#include "passes/passes.h"
#include "tests/unit/check.h"
#include "tests/unit/gang.h"
#include "tests/unit/net.h"

#include <math.h>

enum { MOST_RESULTS = 4, MOST_INPUTS = 4 };

typedef struct {
    const char *name, *text;
    int         copies; /* that are left with states; -1: whatever is needed */
} Case;

#define F4 "Tensor[(4), f32]"
#define I "Tensor[(), i64]"
#define W "Tensor[(64, 64), f32]"
#define B "Tensor[(), bool]"

static const Case cases[] = {
#define CASE(name, text) {name, text, -1},
#define STATES(name, copies, text) {name, text, copies},
#include "tests/unit/flow_cases.def"
#include "tests/unit/state_cases.def"
#undef STATES
#undef CASE
};

/* ---- running ----------------------------------------------------------------------------------- */

typedef int32_t Run(void *const *, void *const *, const tvmcc_params *);

typedef struct {
    Ctx                *c;
    const Case         *k;
    uint32_t            nin, nwant;
    const Const        *in[MOST_INPUTS];
    const Const *const *want;
} Test;

static void report(Test *t, const char *how, const char *what)
{
    StrBuf text = strbuf(t->c->arena);

    diag_print(t->c->diags, DIAG_TEXT, &text);
    printf("%s, %s: %s\n%s\n", t->k->name, how, what, text.at ? text.at : "");
    check_failures++;
}

static uint8_t *result_memory(Test *t, const Type *type)
{
    int64_t cells = 0;

    type_elems(type, &cells);
    return memory(t->c, (uint64_t)cells * dtype_bytes(type->dtype) + 1);
}

static bool same(const Const *want, const uint8_t *got)
{
    DType  t = want->type->dtype;
    size_t n = (size_t)dtype_bytes(t);

    for (size_t i = 0; i < want->data.n; i += n) {
        double x = dtype_get_f(t, want->data.at + i), y = dtype_get_f(t, got + i);

        if (!(fabs(x - y) <= 1e-5 + 1e-5 * fabs(x)))
            return false;
    }
    return true;
}

static void check_results(Test *t, const char *how, void *const *got)
{
    for (uint32_t i = 0; i < t->nwant; i++)
        if (!same(t->want[i], got[i])) {
            report(t, how, arena_printf(t->c->arena, "result %u has other values", i));
            return;
        }
}

/* Memory of inputs and results; `shared`: states lie in that of their inputs. */
static void tensors(Test *t, const Plan *p, bool shared, void **at, void **to)
{
    for (uint32_t i = 0; i < t->nin; i++)
        at[i] = memcpy(memory(t->c, t->in[i]->data.n), t->in[i]->data.at, t->in[i]->data.n);
    for (uint32_t i = 0; i < p->nout; i++)
        to[i] =
            shared && p->out[i].state ? at[p->out[i].state - 1] : result_memory(t, p->out[i].type);
}

static void interpret(Test *t, const Plan *p, bool shared)
{
    void    *args[MOST_INPUTS + MOST_RESULTS + 2];
    uint32_t n = t->nin + p->nout;

    tensors(t, p, shared, args, args + t->nin);
    args[n++] = memory(t->c, p->arena_bytes + p->private_bytes);
    args[n++] = memory(t->c, p->weights_bytes);
    if (!fill_weights(t->c, p, args[n - 1]) ||
        !tir_eval(t->c, p->tir, p->tir->funcs[p->tir->nfuncs - 1], n, args, 0, NULL))
        report(t, "interpreter", "does not run");
    else
        check_results(t, "interpreter", args + t->nin);
}

/* What a run asks for besides its tensors. */
static tvmcc_params params_of(Test *t, const Plan *p, uint32_t threads, Gang *gang)
{
    uint64_t     bytes = p->arena_bytes + threads * p->private_bytes + 64;
    uint8_t     *weights = memory(t->c, p->weights_bytes + 64);
    tvmcc_params params = {.struct_bytes = sizeof params,
                           .threads = 1,
                           .arena = memory(t->c, bytes),
                           .arena_bytes = bytes,
                           .weights = weights,
                           .weights_bytes = p->weights_bytes};

    if (!fill_weights(t->c, p, weights))
        report(t, "weights", "are not packed");
    if (threads > 1)
        gang_use(gang, threads, &params);
    return params;
}

static void run_compiled(Test *t, const Plan *p, Run *run, uint32_t threads, bool barrier,
                         bool shared)
{
    void        *at[MOST_INPUTS], *to[MOST_RESULTS];
    const char  *how = arena_printf(t->c->arena, "%u threads%s%s", threads,
                                   barrier ? "" : ", phases", shared ? ", states" : "");
    Gang         gang;
    tvmcc_params params = params_of(t, p, threads, &gang);

    tensors(t, p, shared, at, to);
    if (!barrier)
        params.barrier = NULL;
    if (run(at, to, &params))
        report(t, how, "does not run");
    else
        check_results(t, how, to);
}

/* The plan's code; what it is called by is `*run`, NULL if it does not compile. */
static Jit *compile(Ctx *c, const Plan *p, const PassOptions *o, Run **run)
{
    static const CodegenInfo none;
    CodegenOptions           code = {.entry = "net", .opt_level = 1, .pic = true};
    Plan                     flat = *p;
    Bytes                    object;
    Jit                     *j = NULL;

    *run = NULL;
    if ((flat.tir = run_tir_passes(c, p->tir, o, TIR_TO_CODE)) &&
        (code.host = entry_functions(c, &flat, &code, &none)) &&
        backend_llvm.codegen(c, &flat, &code, &none, EMIT_OBJECT, &object) &&
        (j = backend_llvm.jit_load(c, c->target, object)))
        *(void **)run = backend_llvm.jit_symbol(j, "net_run_ex");
    return j;
}

static void compile_and_run(Test *t, const Plan *p, const PassOptions *o, bool states)
{
    Run *run;
    Jit *j = compile(t->c, p, o, &run);

    for (uint32_t threads = 1; run && threads <= 3; threads++)
        for (int shared = 0; shared <= states; shared++) {
            run_compiled(t, p, run, threads, true, shared);
            run_compiled(t, p, run, threads, false, shared);
        }
    if (!run)
        report(t, "compiled", "not compiled");
    if (j)
        backend_llvm.jit_free(j);
}

/* ---- programs ---------------------------------------------------------------------------------- */

/* Numbers from 0 to 2 in all types. */
static const Const *input(Net *n, const Type *t)
{
    int64_t  elems = 0;
    size_t   size = (size_t)dtype_bytes(t->dtype);
    uint8_t *v;

    type_elems(t, &elems);
    v = NEW_ARRAY(n->c->arena, uint8_t, (size_t)elems *size + 8);
    for (int64_t i = 0; i < elems; i++)
        dtype_put_f(t->dtype, v + (size_t)i * size,
                    dtype_is_float(t->dtype) ? pick(n, 2000) / 1000.0 - 1 : pick(n, 3));
    return const_new(n->c, "in", t, (Bytes){v, (size_t)elems * size});
}

static void count_copy(void *user, const Stmt *s)
{
    *(int *)user += s->kind == STMT_CALL && !strncmp(s->u.call.callee, "copy.f32.", 9);
}

/* Those of floats that main always carries out. */
static int copies(const Plan *p)
{
    int n = 0;

    stmt_visit(p->tir->funcs[p->tir->nfuncs - 1]->body,
               &(TirVisit){.user = &n, .leave = count_copy});
    return n;
}

static void check_level(Test *t, const Module *m, int level, bool states)
{
    PassOptions   o = {.opt_level = level, .verify_each = true, .jobs = 1};
    const Module *now = run_graph_passes(t->c, m, &o);
    const Plan   *p = now ? lower(t->c, now, "net", &o) : NULL;

    if (!p) {
        report(t, level ? "-O3" : "-O0", "not lowered");
        return;
    }
    for (int shared = 0; shared <= states; shared++)
        interpret(t, p, shared);
    compile_and_run(t, p, &o, states);
    if (states && t->k->copies >= 0 && copies(p) != t->k->copies)
        report(t, level ? "-O3" : "-O0",
               arena_printf(t->c->arena, "%d copies, not %d", copies(p), t->k->copies));
}

/* The module with each result as the state of the first input of its type that is left. */
static const Module *with_states(Ctx *c, const Module *m)
{
    const Expr *f = module_func(m, "main"), *body = func_body(f);
    uint32_t    n = body->type->kind == TYPE_TENSOR ? 1 : body->type->n;
    ModuleIO   *out = NEW_ARRAY(c->arena, ModuleIO, n);
    bool        taken[MOST_INPUTS] = {false};
    Module     *now = DUP_ARRAY(c->arena, m, 1);

    for (uint32_t i = 0; i < n; i++) {
        const Type *t = body->type->kind == TYPE_TENSOR ? body->type : body->type->parts[i];

        for (uint32_t k = 0; k < func_nparams(f) && !out[i].state; k++)
            if (!taken[k] && func_param(f, k)->type == t) {
                out[i].state = k + 1;
                taken[k] = true;
            }
    }
    now->out_info = out;
    return now;
}

/* Everything is worth a second thread. */
static Target slow_target(Ctx *c, const char *name)
{
    static const Machine slow = {.macs_ns = 1e-3, .stream_ns = 1e-3, .sync_ns = 1};
    Target               t = *backend_llvm.parse_target(c, name);

    t.machine = &slow;
    return t;
}

static const Module *parse(Ctx *c, const char *name, const char *text)
{
    const Module *m =
        relay_parse(c, name, (Bytes){(const uint8_t *)text, strlen(text)}, (Bytes){0});

    m = m ? relay_infer(c, m) : NULL;
    return m && relay_verify(c, m) ? m : NULL;
}

/* Each seed has other inputs: other numbers of rounds, too. */
static void check_case(const Case *k, uint32_t seed)
{
    Arena        *arena = arena_new(NULL);
    Ctx          *c = ctx_new(arena, diags_new(arena), op_table);
    Net           n = {.c = c, .seed = seed * 2654435761u};
    Test          t = {.c = c, .k = k};
    Target        target = slow_target(c, seed % 2 ? "llvm -mcpu=native" : "llvm");
    const Module *m;

    check_count++;
    c->target = &target;
    if ((m = parse(c, k->name, k->text))) {
        const Expr *f = module_func(m, "main");

        t.nin = func_nparams(f);
        for (uint32_t i = 0; i < t.nin; i++)
            t.in[i] = input(&n, func_param(f, i)->type);
    }
    if (!m || !relay_eval(c, m, t.nin, t.in, &t.nwant, &t.want)) {
        report(&t, "Relay", "is not evaluated");
    } else {
        bool states = k->copies >= 0;

        check_level(&t, states ? with_states(c, m) : m, 0, states);
        states = states || seed % 2;
        check_level(&t, states ? with_states(c, m) : m, 3, states);
    }
    ctx_free(c);
    arena_free(arena);
}

/* ---- a loop that only its caller ends ------------------------------------------------------------ */

static int32_t end_soon(void *user, uint32_t event, uint32_t step, uint32_t part)
{
    uint32_t *events = user;

    (void)step;
    return part == 0 && event == TVMCC_EVENT_BEGIN && ++*events > 50;
}

static void check_cancel(const char *text)
{
    Arena        *arena = arena_new(NULL);
    Ctx          *c = ctx_new(arena, diags_new(arena), op_table);
    Case          k = {"endless", text, -1};
    Test          t = {.c = c, .k = &k};
    Target        target = slow_target(c, "llvm");
    PassOptions   o = {.opt_level = 3, .jobs = 1};
    const Module *m = parse(c, "endless", text);
    const Plan   *p = NULL;
    Run          *run = NULL;
    Jit          *j = NULL;

    c->target = &target;
    if ((m = m ? run_graph_passes(c, m, &o) : NULL) && (p = lower(c, m, "net", &o)))
        j = compile(c, p, &o, &run);
    CHECK(run != NULL);
    for (uint32_t threads = 1; run && threads <= 3; threads++) {
        Gang     gang;
        uint32_t events = 0;
        void    *at[1] = {result_memory(&t, p->in[0].type)},
             *to[1] = {result_memory(&t, p->out[0].type)};
        tvmcc_params params = params_of(&t, p, threads, &gang);

        params.instrument = end_soon;
        params.instrument_user = &events;
        CHECK_INT(run(at, to, &params), TVMCC_E_CANCELLED);
    }
    if (j)
        backend_llvm.jit_free(j);
    ctx_free(c);
    arena_free(arena);
}

int main(void)
{
    for (uint32_t i = 0; i < COUNT(cases); i++)
        for (uint32_t seed = 1; seed <= 2; seed++)
            check_case(&cases[i], seed);
    check_cancel("fn @loop(%go: " B ", %s: " F4 ") -> " F4 " {\n"
                 "  if %go { @loop(%go, add(%s, 1.0)) } else { %s } }\n"
                 "fn @main(%x: " F4 ") { @loop(true, %x) }");
    check_cancel("fn @loop(%go: " B ", %s: " W ") -> " W " {\n"
                 "  if %go { @loop(%go, tanh(nn.dense(%s, %s))) } else { %s } }\n"
                 "fn @main(%x: " W ") { @loop(true, %x) }");
    return check_result();
}
