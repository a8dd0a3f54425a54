/* load_ahead: what sums in marked registers multiply is loaded some sums before.
 *
 *   alloc %a: f32x4[] early 1 @reg               alloc %a: f32x4[] early 1 @reg
 *   %a[] = fma(splat(%x[0], 4), %w[0 : 4], ..)   %x.ahead[] = splat(%x[0], 4)
 *   %b[] = fma(splat(%x[1], 4), %w[0 : 4], ..)   %w.ahead[] = %w[0 : 4]
 *                                                %x.ahead.1[] = splat(%x[1], 4)
 *                                                %a[] = fma(%x.ahead[], %w.ahead[], ..)
 *                                                %b[] = fma(%x.ahead.1[], %w.ahead[], ..)
 *
 * Why: a core that takes instructions in order waits for a load where it is used; others find it
 * themselves.  The step `load_ahead` marks the sums; tiles leave registers for what is under way
 * (machine/tile.c).  Stores to memory are not passed, and what a condition guards stays where it
 * is.  Cost: one walk a run of sums. */
#include "passes/passes.h"

typedef struct {
    const Prim   *of;    /* a load, or one that is spread */
    const Buffer *to;    /* the variable that holds it */
    uint32_t      first; /* sum that uses it */
} Loaded;

typedef struct {
    Ctx *c;
    VEC(Loaded) loads;
    Map *var; /* the variable's value, by what it holds */
} Run;

static bool in_memory(const Prim *p)
{
    return p->kind == PRIM_LOAD && p->u.load.buffer->scope != SCOPE_REG;
}

static bool is_sum(const Prim *p)
{
    return p->kind == PRIM_FMA || p->kind == PRIM_INTRIN || p->kind == PRIM_ADD ||
           p->kind == PRIM_MUL;
}

static void add_loads(Run *r, const Prim *p, uint32_t at)
{
    Ctx *c = r->c;

    if (in_memory(p) || (p->kind == PRIM_SPLAT && in_memory(p->kids[0]))) {
        if (map_get(r->var, PTR_KEY(p)))
            return;
        const LoadData *d = p->kind == PRIM_SPLAT ? &p->kids[0]->u.load : &p->u.load;
        const Buffer   *to = buffer_new(c, arena_printf(c->arena, "%s.ahead", d->buffer->name),
                                        p->dtype, SCOPE_REG, 0, NULL);
        vec_push(c->scratch, &r->loads, ((Loaded){p, to, at}));
        map_put(r->var, PTR_KEY(p), (void *)prim_loadv(c, to, NULL, p->dtype.lanes, NULL));
        return;
    }
    for (uint32_t i = 0; i < p->nkids && is_sum(p); i++)
        add_loads(r, p->kids[i], at);
}

static const Prim *use_var(const Run *r, const Prim *p)
{
    const Prim *kids[4], *var = map_get(r->var, PTR_KEY(p));

    if (var || !is_sum(p) || p->nkids > COUNT(kids))
        return var ? var : p;
    for (uint32_t i = 0; i < p->nkids; i++)
        kids[i] = use_var(r, p->kids[i]);
    return prim_with_kids(r->c, p, kids);
}

static bool is_marked(const Stmt *s)
{
    return s->kind == STMT_STORE && s->u.store.buffer->early && !s->u.store.buffer->ndim;
}

static const Stmt *run_ahead(Ctx *c, uint32_t n, const Stmt *const *sums)
{
    Run      r = {.c = c, .var = map_new(c->scratch)};
    uint32_t by = sums[0]->u.store.buffer->early, done = 0;
    VEC(const Stmt *) all = {0};

    for (uint32_t i = 0; i < n; i++)
        if (is_sum(sums[i]->u.store.value))
            add_loads(&r, sums[i]->u.store.value, i);
    for (uint32_t i = 0; i < n; i++) {
        for (; done < r.loads.n && r.loads.at[done].first <= i + by; done++)
            vec_push(c->scratch, &all,
                     stmt_storev(c, r.loads.at[done].to, NULL, r.loads.at[done].of, NULL));
        vec_push(c->scratch, &all,
                 stmt_storev(c, sums[i]->u.store.buffer, NULL, use_var(&r, sums[i]->u.store.value),
                             sums[i]->u.store.mask));
    }
    const Stmt *s = stmt_seq(c, all.n, all.at);
    for (uint32_t i = r.loads.n; i-- > 0;)
        s = stmt_alloc(c, r.loads.at[i].to, s);
    return s;
}

static const Stmt *ahead_stmt(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    VEC(const Stmt *) kids = {0};
    bool changed = false;

    (void)user;
    (void)was;
    if (now->kind != STMT_SEQ)
        return now;
    for (uint32_t i = 0, end; i < now->nkids; i = end) {
        for (end = i; end < now->nkids && is_marked(now->kids[end]); end++)
            ;
        if (end - i > 1) {
            vec_push(c->scratch, &kids, run_ahead(c, end - i, &now->kids[i]));
            changed = true;
            continue;
        }
        end = i + 1;
        vec_push(c->scratch, &kids, now->kids[i]);
    }
    return changed ? stmt_seq(c, kids.n, kids.at) : now;
}

static const Func *ahead_func(Ctx *c, void *user, const Func *f)
{
    TirMap m = {NULL, ahead_stmt, NULL, NULL, NULL};

    (void)user;
    return func_with_body(c, f, stmt_map(c, f->body, &m));
}

const TirModule *load_ahead(Ctx *c, const TirModule *m)
{
    return tirmod_map(c, m, ahead_func, NULL);
}
