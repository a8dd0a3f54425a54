/* steps.c: what each step of a product's host program computes and moves, for `tvmcc profile`.
 *
 * A step is a call or launch of a kernel, in the order in which the instrument callback counts
 * them.  What a kernel does is in the plan alone, so the metadata keep it for whoever measures the
 * product later. */
#include "packaging/packaging.h"

#include "ir/plan/plan.h"

#include <string.h>

const char *const work_kind_names[WORK_KINDS] = {"other", "products", "winograd"};

typedef struct {
    Ctx        *c;
    const Plan *plan;
    VEC(StepDesc) steps;
} Steps;

/* Of the operands and the result. */
static int64_t bytes_of(Ctx *c, const Func *f)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < f->nparams; i++) {
        const Buffer *b = f->params[i].buffer;
        int64_t       elems, origin;

        if (b && (b->scope == SCOPE_ARENA || b->scope == SCOPE_CONST) &&
            buffer_size(c, b, &elems, &origin))
            sum += elems * (int64_t)dtype_bytes(b->dtype);
    }
    return sum;
}

/* By the rule that scheduled it; the result is the first tensor that is written, scratch comes
 * behind. */
static WorkKind kind_of(Ctx *c, const Plan *plan, const Func *f)
{
    const char *rule = NULL;
    int64_t     cells = 0, weights = 0, n, origin;
    bool        products;

    for (uint32_t i = 0; i < plan->nkernels && !rule; i++)
        if (!strcmp(plan->kernels[i].func->name, f->name))
            rule = plan->kernels[i].rule;
    for (uint32_t i = 0; i < f->nparams; i++) {
        const Buffer *b = f->params[i].buffer;

        if (!b || !buffer_size(c, b, &n, &origin))
            continue;
        if (f->params[i].written && !cells)
            cells = n;
        if (b->scope == SCOPE_CONST && n > weights)
            weights = n;
    }
    if (!rule || !cells)
        return WORK_OTHER;
    if (!strncmp(rule, "sched_winograd", 14))
        return WORK_WINOGRAD;
    products = !strncmp(rule, "sched_conv2d", 12) || !strncmp(rule, "sched_dense", 11);
    return products && f->macs / WORK_LONG_REDUCTION >= cells && f->macs > weights ? WORK_PRODUCTS
                                                                                   : WORK_OTHER;
}

/* A kernel of several phases is called once for each, with its number; the first one counts. */
static bool later_phase(const Func *f, const Stmt *s)
{
    uint32_t at;
    int64_t  phase;

    return s->kind == STMT_CALL && func_scalar(f, TIR_PHASE, &at) &&
           (!idx_is_const(s->u.call.args[at].scalar, &phase) || phase > 0);
}

/* `rounds`: how often the loops around s run it. */
static void add_steps(Steps *x, const Stmt *s, int64_t rounds)
{
    const Func *f;
    StepDesc    step = {0};
    int64_t     extent;

    if (s->kind == STMT_FOR && idx_is_const(s->u.loop.extent, &extent))
        rounds *= extent;
    for (uint32_t i = 0; i < s->nkids; i++)
        add_steps(x, s->kids[i], rounds);
    if (s->kind != STMT_CALL && s->kind != STMT_LAUNCH)
        return;
    step.kernel = s->kind == STMT_CALL ? s->u.call.callee : s->u.launch.kernel;
    if ((f = tirmod_find(x->plan->tir, step.kernel))) {
        step.known = true;
        step.calls = later_phase(f, s) ? 0 : (uint32_t)rounds;
        step.macs = (uint64_t)f->macs;
        step.bytes = (uint64_t)bytes_of(x->c, f);
        step.kind = kind_of(x->c, x->plan, f);
    }
    vec_push(x->c->arena, &x->steps, step);
}

const StepDesc *desc_steps(Ctx *c, const Plan *p, uint32_t *n)
{
    Steps x = {.c = c, .plan = p};

    add_steps(&x, p->tir->funcs[p->tir->nfuncs - 1]->body, 1);
    *n = x.steps.n;
    return x.steps.at;
}
