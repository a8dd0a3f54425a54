/* The evaluator behind constant folding and weight packing: kernels of our own, compiled and run in
 * this process.  It compiles for this machine at -O0 schedules, strict IEEE
 * without contraction, so every machine folds to the same bits.  Small expressions, such as shape
 * arithmetic, go to the interpreter: compiling costs milliseconds. */
#include "compile/compile.h"

#include <stdlib.h>
#include <string.h>
#include <tvmcc/abi.h>

enum { INTERP_ELEMS = 4096 }; /* below: interpreted */

static bool elems_of(const Type *t, int64_t *sum)
{
    int64_t n;

    if (!t)
        return false;
    if (t->kind == TYPE_TENSOR)
        return type_elems(t, &n) && checked_add(*sum, n, sum);
    for (uint32_t i = 0; i < t->n; i++)
        if (!elems_of(t->parts[i], sum))
            return false;
    return t->kind == TYPE_TUPLE;
}

/* Work of an expression, by the elements of everything in it. */
static bool is_small(Ctx *c, const Expr *e)
{
    ExprList list = expr_post_order(c, e);
    int64_t  sum = 0;

    for (uint32_t i = 0; i < list.n; i++) {
        const Expr *x = list.at[i];
        if (x->kind != EXPR_CALL && x->kind != EXPR_CONST)
            continue;
        if (!elems_of(x->type, &sum))
            return true; /* control flow: the interpreter knows it */
    }
    return sum <= INTERP_ELEMS;
}

static const Expr *const_of(Ctx *c, const Type *t, void *data)
{
    int64_t n = 0;

    type_elems(t, &n);
    return expr_const(
        c, const_new(c, "folded", t, (Bytes){data, (size_t)n * dtype_bytes(t->dtype)}), NO_LOC);
}

static const Expr *run_plan(Ctx *c, const Plan *p, const Expr *e, Bytes weights)
{
    const Backend *b = backend_cpu();
    CodegenOptions o = {.entry = "fold", .pic = true};
    CodegenInfo    none = {0};
    PassOptions    po = {.opt_level = 0};
    Plan           flat = *p;
    Bytes          object;
    void         **out = NEW_ARRAY(c->arena, void *, p->nout + 1);
    const Expr   **res = NEW_ARRAY(c->arena, const Expr *, p->nout + 1);
    Jit           *j;

    flat.tir = run_tir_passes(c, p->tir, &po, TIR_TO_CODE);
    if (!flat.tir)
        return NULL;
    o.host = entry_functions(c, &flat, &o, &none);
    o.opt_level = host_level(o.host, 1);
    if (!b->codegen(c, &flat, &o, &none, EMIT_OBJECT, &object) ||
        !(j = b->jit_load(c, p->target, object)))
        return NULL;
    const tvmcc_model_info *(*info)(void) = NULL;
    void *sym = b->jit_symbol(j, "fold_info");
    memcpy(&info, &sym, sizeof sym);
    for (uint32_t i = 0; i < p->nout; i++) {
        int64_t n = 0;
        type_elems(p->out[i].type, &n);
        out[i] = arena_alloc(c->arena, (size_t)n * dtype_bytes(p->out[i].type->dtype) + 64);
    }
    void        *memory = aligned_alloc(64, (p->arena_bytes + p->private_bytes + 127) / 64 * 64);
    tvmcc_params params = {.struct_bytes = sizeof params,
                           .threads = 1,
                           .arena = memory,
                           .arena_bytes = p->arena_bytes + p->private_bytes + 64,
                           .weights = weights.at,
                           .weights_bytes = weights.n};
    /* There are no inputs; the pointer to them may still not be NULL. */
    int32_t rc = memory ? info()->run(out, out, &params) : TVMCC_E_MISMATCH;
    free(memory);
    b->jit_free(j);
    for (uint32_t i = 0; i < p->nconsts; i++)
        file_forget(c->diags, p->consts[i].data->data);
    if (rc)
        return error_at(c, E_PASS, e->loc, "evaluating a constant gave status %d", (int)rc);
    for (uint32_t i = 0; i < p->nout; i++)
        res[i] = const_of(c, p->out[i].type, out[i]);
    return e->type->kind == TYPE_TENSOR ? res[0] : expr_tuple(c, p->nout, res, e->loc);
}

/* The constants of a plan that was lowered in place: most are megabytes of a mapped file, so they
 * are not copied together. */
static Bytes weights_of(const Plan *p)
{
    static const uint8_t none[64];

    return p->nconsts ? (Bytes){p->consts[0].data->data.at - p->consts[0].offset, p->weights_bytes}
                      : (Bytes){none, sizeof none};
}

static const Expr *eval_with_jit(const Evaluator *ev, Ctx *c, const Expr *e)
{
    (void)ev;
    if (is_small(c, e))
        return eval_interp.eval(&eval_interp, c, e);
    /* A context of its own options: host target, no schedules. */
    const Backend   *b = backend_cpu();
    const Target    *saved = c->target;
    const Evaluator *was = c->eval;
    PassOptions graph = {.passes = "infer_type,simplify_inference,infer_type,fuse_ops", .jobs = 1};
    PassOptions po = {.opt_level = 0, .jobs = 1, .in_place = true};
    Arena      *scratch = c->scratch; /* the pass that asks still uses it */
    GlobalDef   def = {intern(c->strings, "main"), NULL};
    const Expr *out = NULL;

    def.func = expr_func(c, 0, NULL, e, (FuncData){0}, e->loc);
    c->target = b->parse_target(c, "llvm");
    c->eval = &eval_interp;
    c->scratch = arena_new(NULL);
    const Module *m = run_graph_passes(c, module_new(c, NULL, 1, &def), &graph);
    const Plan   *plan = m && c->target ? lower(c, m, "fold", &po) : NULL;
    if (plan)
        out = run_plan(c, plan, e, weights_of(plan));
    arena_free(c->scratch);
    c->scratch = scratch;
    c->target = saved;
    c->eval = was;
    return out;
}

const Evaluator eval_jit = {eval_with_jit, NULL};
