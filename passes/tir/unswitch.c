/* unswitch: a condition that loops do not change is tested once, outside of them.
 *
 *   for %p<6 { if 1 <= %kc { %y[%p] = relu }  if %kc < 1 { %y[%p] = %reg[%p] } }
 *     -> if 1 <= %kc { for %p<6 { %y[%p] = relu } } else { for %p<6 { %y[%p] = %reg[%p] } }
 *
 * Only for nests in which every store is under such a condition (an `if`, or a select as its
 * value), so that next to nothing is written twice: the first and last chunks of a register tile.
 * Conditions are conjunctions of facts e >= 0; one fact is taken at a time, and what it decides
 * about the others is decided. Cost: one walk, and one for each fact that is taken. */
#include "passes/passes.h"

enum { MAX_FACTS = 2 }; /* taken one after another in one nest */

static void add_loops(AtomSet *vars, const Stmt *s)
{
    if (s->kind == STMT_FOR)
        atomset_add(vars, s->u.loop.var);
    for (uint32_t i = 0; i < s->nkids; i++)
        add_loops(vars, s->kids[i]);
}

/* A fact of the condition that no variable of `vars` changes; NULL: none. */
static const Idx *fixed_fact(Ctx *c, const Prim *cond, const AtomSet *vars)
{
    Pred p;

    if (!prim_pred(c, cond, &p))
        return NULL;
    for (uint32_t i = 0; i < p.n; i++)
        if (p.ge0[i]->lo < 0 && p.ge0[i]->hi >= 0 && !idx_uses_any(p.ge0[i], vars) &&
            !idx_reads_memory(p.ge0[i]))
            return p.ge0[i];
    return NULL;
}

/* A fixed fact of the nest, if every store is under one; NULL if some store is not. */
static const Idx *switched(Ctx *c, const Stmt *s, const AtomSet *vars)
{
    const Idx *first = NULL;

    switch (s->kind) {
    case STMT_STORE:
        return s->u.store.value->kind == PRIM_SELECT
                   ? fixed_fact(c, s->u.store.value->kids[0], vars)
                   : NULL;
    case STMT_IF:
        first = fixed_fact(c, s->u.cond, vars);
        if (first)
            return first;
        break;
    case STMT_SEQ:
    case STMT_FOR: break;
    case STMT_WHILE:
    case STMT_ALLOC:
    case STMT_BLOCK:
    case STMT_CALL:
    case STMT_PREFETCH:
    case STMT_BARRIER:
    case STMT_AWAIT:
    case STMT_REGION:
    case STMT_LAUNCH:
    case STMT_COPY:
    case STMT_VIEW:
    case STMT_INVOKE:
    case STMT_SWITCH:
    case STMT_RETURN:
    case STMT_FAIL: return NULL;
    }
    for (uint32_t i = 0; i < s->nkids; i++) {
        const Idx *f = switched(c, s->kids[i], vars);
        if (!f)
            return NULL;
        if (!first)
            first = f;
    }
    return first;
}

/* What `known` says about a condition: the rest of it, or that it is false. */
static const Prim *decide(Ctx *c, const Prim *cond, const Idx *known)
{
    Pred p, rest = PRED_TRUE, one = {1, &known};

    if (!prim_pred(c, cond, &p))
        return cond;
    for (uint32_t i = 0; i < p.n; i++) {
        if (idx_add(c->arith, p.ge0[i], known)->hi < 0)
            return prim_int(c, DT_BOOL, 0);
        if (!pred_implies(c->arith, one, p.ge0[i]))
            rest = pred_and(c->arith, c->arena, rest, p.ge0[i]);
    }
    return rest.n ? pred_prim(c, rest) : prim_int(c, DT_BOOL, 1);
}

static const Stmt *decide_if(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    (void)was;
    if (now->kind == STMT_FOR && stmt_is_empty(now->kids[0]))
        return now->kids[0];
    if (now->kind != STMT_IF)
        return now;
    return stmt_if(c, decide(c, now->u.cond, user), now->kids[0],
                   now->nkids > 1 ? now->kids[1] : NULL);
}

static const Prim *decide_select(Ctx *c, void *user, const Prim *p)
{
    if (p->kind != PRIM_SELECT || p->kids[0]->dtype.lanes != 1)
        return p;
    return prim_select(c, decide(c, p->kids[0], user), p->kids[1], p->kids[2]);
}

static const Stmt *version(Ctx *c, const Stmt *nest, const Idx *known)
{
    TirMap m = {.user = (void *)(uintptr_t)known, .stmt = decide_if, .prim = decide_select};

    return stmt_map(c, nest, &m);
}

static const Stmt *split_nest(Ctx *c, const Stmt *nest, int depth)
{
    AtomSet   *vars = atomset_new(c->arena);
    const Idx *fact;

    add_loops(vars, nest);
    if (depth == MAX_FACTS || !(fact = switched(c, nest, vars)))
        return nest;
    const Idx  *no = idx_addc(c->arith, idx_mulc(c->arith, fact, -1), -1);
    const Stmt *then = split_nest(c, version(c, nest, fact), depth + 1);
    const Stmt *other = split_nest(c, version(c, nest, no), depth + 1);
    const Prim *cond = pred_prim(c, (Pred){1, &fact});

    if (stmt_is_empty(then))
        return stmt_is_empty(other) ? other : stmt_if(c, pred_prim(c, (Pred){1, &no}), other, NULL);
    return stmt_if(c, cond, then, stmt_is_empty(other) ? NULL : other);
}

/* The threads of a block will divide the nest among themselves (cooperate), if it stays one. */
static bool fills_shared(const Stmt *s)
{
    if (s->kind == STMT_STORE)
        return s->u.store.buffer->scope == SCOPE_SHARED;
    for (uint32_t i = 0; i < s->nkids; i++)
        if (fills_shared(s->kids[i]))
            return true;
    return false;
}

static const Stmt *visit(Ctx *c, const Stmt *s)
{
    const LoopData *l = &s->u.loop;

    if (s->kind == STMT_FOR && !l->parallel && !l->bind && !l->outline && !fills_shared(s)) {
        const Stmt *now = split_nest(c, s, 0);
        if (now != s)
            return now;
    }
    if (!s->nkids)
        return s;
    const Stmt **kids = NEW_ARRAY(c->arena, const Stmt *, s->nkids);
    for (uint32_t i = 0; i < s->nkids; i++)
        kids[i] = visit(c, s->kids[i]);
    return stmt_with_kids(c, s, kids);
}

static const Func *unswitch_func(Ctx *c, void *user, const Func *f)
{
    (void)user;
    return f->kind == FUNC_HOST ? f : func_with_body(c, f, visit(c, f->body));
}

const TirModule *unswitch(Ctx *c, const TirModule *m)
{
    return tirmod_map(c, m, unswitch_func, NULL);
}
