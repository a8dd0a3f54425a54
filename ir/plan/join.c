/* Several plans of one model as the alternatives of one product.
 *
 * Plans come variants outside, buckets inside.  A kernel of the second variant and later ones gets
 * `.v<i>` behind its name, because a name says what is computed, not for which CPU.  Buckets of one
 * variant share the kernels that have one name, which are equal (a name ends in a hash); should two
 * of one name differ, the later gets `.b<i>`.  Weights are one blob, so `main` calls with other
 * offsets into it. */
#include "ir/plan/plan.h"

#include <string.h>

typedef struct {
    Ctx            *c;
    const Plan     *plan;
    const uint64_t *offset;          /* new, by constant */
    const Buffer   *was[2], *now[2]; /* the weights, as main's parameters; the host's behind */
    Map            *moved;           /* 1 + old offset -> constant */
    Map            *names;           /* interned old name -> new name */
} Join;

/* ---- names -------------------------------------------------------------------------------------- */

static bool same_code(Ctx *c, const Func *a, const Func *b)
{
    Sha256 x = func_hash(c, a), y = func_hash(c, b);

    return !memcmp(&x, &y, sizeof x);
}

/* The names of plan i's functions; `seen`: name in the product -> Func of an earlier plan. */
static void name_functions(Join *j, uint32_t i, uint32_t variant, Map *seen)
{
    Ctx *c = j->c;

    for (uint32_t k = 0; k < j->plan->tir->nfuncs; k++) {
        const Func *f = j->plan->tir->funcs[k], *other;
        const char *name = intern(c->strings, f->name);

        if (f->kind == FUNC_HOST || f->kind == FUNC_DEVICE) /* of programs of their own */
            continue;
        if (variant)
            name = intern_printf(c->strings, "%s.v%u", f->name, variant);
        if ((other = map_get(seen, PTR_KEY(name))) && !same_code(c, other, f))
            name = intern_printf(c->strings, "%s.b%u", name, i);
        map_put(seen, PTR_KEY(name), (void *)(uintptr_t)f);
        map_put(j->names, PTR_KEY(intern(c->strings, f->name)), (void *)(uintptr_t)name);
    }
}

static const char *new_name(const Join *j, const char *name)
{
    const char *now = map_get(j->names, PTR_KEY(intern(j->c->strings, name)));

    return now ? now : name;
}

/* ---- main ---------------------------------------------------------------------------------------- */

static const Idx *move_offset(const Join *j, const Idx *offset)
{
    int64_t   at;
    uintptr_t k;

    if (!idx_is_const(offset, &at) || !(k = (uintptr_t)map_get(j->moved, (uint64_t)at + 1)))
        BUG("main takes weights from where no constant lies");
    return idx_const(j->c->arith, (int64_t)j->offset[k - 1]);
}

static Arg move_arg(const Join *j, Arg a)
{
    for (uint32_t i = 0; i < COUNT(j->was); i++)
        if (a.buffer && a.buffer == j->was[i])
            return (Arg){j->now[i], move_offset(j, a.offset), NULL};
    return a;
}

/* A condition that is a constant of the weights. */
static const Prim *move_load(Ctx *c, void *user, const Prim *now)
{
    const Join *j = user;
    const Idx  *at;

    for (uint32_t i = 0; now->kind == PRIM_LOAD && i < COUNT(j->was); i++)
        if (now->u.load.buffer == j->was[i]) {
            at = move_offset(j, now->u.load.index[0]);
            return prim_load(c, j->now[i], &at);
        }
    return now;
}

static const Arg *move_args(const Join *j, uint32_t n, const Arg *was)
{
    Arg *args = NEW_ARRAY(j->c->arena, Arg, n + 1);

    for (uint32_t i = 0; i < n; i++)
        args[i] = move_arg(j, was[i]);
    return args;
}

static const Stmt *move_call(Ctx *c, void *user, UNUSED const Stmt *was, const Stmt *now)
{
    const Join *j = user;

    if (now->kind == STMT_CALL)
        return stmt_call(c, new_name(j, now->u.call.callee), now->u.call.nargs,
                         move_args(j, now->u.call.nargs, now->u.call.args), now->u.call.on0,
                         now->loc);
    if (now->kind == STMT_LAUNCH) {
        LaunchData l = now->u.launch;

        l.args = move_args(j, l.nargs, l.args);
        return stmt_launch(c, l, now->loc);
    }
    if (now->kind == STMT_COPY) {
        CopyData d = now->u.copy;

        d.src = move_arg(j, d.src);
        d.dst = move_arg(j, d.dst);
        return stmt_copy(c, d);
    }
    return now;
}

static const Func *join_main(Join *j, const Func *f, uint64_t weights_bytes)
{
    Ctx       *c = j->c;
    Func       out = *f;
    Param     *params = DUP_ARRAY(c->arena, f->params, f->nparams);
    const Idx *extent = idx_const(c->arith, (int64_t)weights_bytes);
    TirMap     m = {.user = j, .stmt = move_call, .prim = move_load};

    for (uint32_t i = 0; i <= j->plan->mixed; i++) {
        Param *weights = &params[plan_weights_param(j->plan) + 2 * i];

        j->was[i] = weights->buffer;
        j->now[i] = buffer_new(c, j->was[i]->name, j->was[i]->dtype, j->was[i]->scope, 1, &extent);
        weights->buffer = j->now[i];
    }
    out.params = params;
    out.body = stmt_map(c, f->body, &m);
    return func_new(c, out);
}

static const TirModule *join_functions(Join *j, uint64_t weights_bytes)
{
    const TirModule *m = j->plan->tir;
    const Func     **funcs = NEW_ARRAY(j->c->arena, const Func *, m->nfuncs + 1);

    for (uint32_t i = 0; i < m->nfuncs; i++) {
        Func f = *m->funcs[i];

        f.name = new_name(j, f.name);
        funcs[i] = f.kind == FUNC_HOST           ? join_main(j, m->funcs[i], weights_bytes)
                   : f.name == m->funcs[i]->name ? m->funcs[i]
                                                 : func_new(j->c, f);
    }
    return tirmod_new(j->c, m->nfuncs, funcs);
}

/* ---- plans --------------------------------------------------------------------------------------- */

static bool same_target(const Plan *a, const Plan *b)
{
    return !strcmp(a->target->text, b->target->text);
}

static Plan *join_one(Join *j, uint64_t weights_bytes)
{
    Ctx        *c = j->c;
    Plan       *p = DUP_ARRAY(c->arena, j->plan, 1);
    PlanConst  *consts = NEW_ARRAY(c->arena, PlanConst, p->nconsts + 1);
    PlanKernel *kernels = NEW_ARRAY(c->arena, PlanKernel, p->nkernels + 1);

    for (uint32_t i = 0; i < p->nconsts; i++) {
        consts[i] = p->consts[i];
        map_put(j->moved, consts[i].offset + 1, (void *)(uintptr_t)(i + 1));
        consts[i].offset = j->offset[i];
    }
    p->tir = join_functions(j, weights_bytes);
    for (uint32_t i = 0; i < p->nkernels; i++) {
        kernels[i] = p->kernels[i];
        kernels[i].func = tirmod_find(p->tir, new_name(j, p->kernels[i].func->name));
    }
    p->consts = consts;
    p->kernels = kernels;
    p->weights_alone = p->weights_bytes;
    p->weights_bytes = weights_bytes;
    p->next = NULL;
    return p;
}

const Plan *plan_join(Ctx *c, uint32_t n, const Plan *const *plans, const uint64_t *const *offset,
                      uint64_t weights_bytes)
{
    Map     *seen = map_new(c->scratch);
    Plan    *first = NULL, *last = NULL;
    uint32_t variant = 0;

    for (uint32_t i = 0; i < n; i++) {
        Join  j = {.c = c, .plan = plans[i], .offset = offset[i]};
        Plan *p;

        j.moved = map_new(c->scratch);
        j.names = map_new(c->scratch);
        variant += i && !same_target(plans[i - 1], plans[i]);
        name_functions(&j, i, variant, seen);
        p = join_one(&j, weights_bytes);
        if (last)
            last->next = p;
        else
            first = p;
        last = p;
    }
    return first;
}

uint32_t plan_variants(const Plan *p)
{
    uint32_t n = 1;

    for (; p->next; p = p->next)
        n += !same_target(p, p->next);
    return n;
}

uint32_t plan_buckets(const Plan *p)
{
    uint32_t n = 1;

    for (; p->next && same_target(p, p->next); p = p->next)
        n++;
    return n;
}

bool plan_has_fallbacks(const Plan *p)
{
    return p->next && (p->target->host || p->device);
}

Plan plan_of_host(Ctx *c, const Plan *p, const struct DeviceCode *code)
{
    VEC(const Func *) funcs = {0};
    Plan host = *p;

    for (uint32_t i = 0; i < p->tir->nfuncs; i++)
        if (p->tir->funcs[i]->kind != FUNC_DEVICE)
            vec_push(c->arena, &funcs, p->tir->funcs[i]);
    host.tir = tirmod_new(c, funcs.n, funcs.at);
    host.target = p->target->host;
    host.device = code;
    host.arena_bytes = p->here_bytes;
    host.private_bytes = 0;
    return host;
}

const Plan *plan_at(const Plan *p, uint32_t i)
{
    while (p && i--)
        p = p->next;
    return p;
}
