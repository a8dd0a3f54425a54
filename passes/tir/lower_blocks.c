/* lower_blocks: blocks become plain stores.
 *
 * What: iterators are replaced by their bindings, `where` becomes an if, and an init that no step
 * placed is decomposed: before the outermost reduce loop that holds all reduce iterators of the
 * block, a copy of the spatial loops inside it stores the start value.  Where that cannot be told,
 * the init stays inside, under `if` all reduce iterators are 0.
 *
 *   for %o<4 { for %k<9 { block s [o=%o; k=%k] { init %s[o] = 0  %s[o] = %s[o] + .. } } }
 *     -> for %o<4 { %s[%o] = 0  for %k<9 { %s[%o] = %s[%o] + .. } }
 *
 * Predicates that do not mention reduce loops stay on both halves.
 * Cost: one walk. */
#include "passes/passes.h"

/* What became of a block's init. */
enum { INIT_PLACED = 1, INIT_INSIDE = 2 };

typedef struct {
    Ctx *c;
    Map *fate; /* of the blocks' inits, by statement id */
} Lower;

static IdxSubst *block_subst(Ctx *c, const BlockData *b)
{
    IdxSubst *s = subst_new(c->arith, c->arena);

    for (uint32_t i = 0; i < b->nspatial + b->nreduce + b->nseq; i++)
        subst_bind(s, b->iter[i], b->bind[i]);
    return s;
}

static const Stmt *guarded(Ctx *c, Pred where, const Stmt *s)
{
    return where.n ? stmt_if(c, pred_prim(c, where), s, NULL) : s;
}

/* Loops whose variable is in `reduce` run only at their lower end; which is bound in `at`. */
typedef struct {
    Ctx        *c;
    const Atom *outer;  /* variable of the outermost reduce loop */
    AtomSet    *reduce; /* ... and of those inside it */
    IdxSubst   *at;
    Map        *fate;
    bool        ok;
} InitCopy;

/* Blocks that reduce over the loop of x->outer and whose init has no place yet. */
static bool concerns(const InitCopy *x, const Stmt *s)
{
    const BlockData *b = &s->u.block;

    if (s->kind != STMT_BLOCK || !b->has_init || b->opaque || map_get(x->fate, s->id))
        return false;
    for (uint32_t i = 0; i < b->nreduce; i++)
        if (idx_uses(b->bind[b->nspatial + i], x->outer))
            return true;
    return false;
}

static bool any_concerned(const InitCopy *x, const Stmt *s)
{
    if (concerns(x, s))
        return true;
    for (uint32_t i = 0; i < s->nkids; i++)
        if (any_concerned(x, s->kids[i]))
            return true;
    return false;
}

/* Is a block's init due when every reduce loop is at its start?  1 yes, 0 no, -1 cannot tell. */
static int init_due(InitCopy *x, const BlockData *b)
{
    for (uint32_t i = 0; i < b->nreduce; i++) {
        const Idx *v = idx_subst(x->at, b->bind[b->nspatial + i]);
        if (v->lo == 0 && v->hi == 0)
            continue;
        if (v->lo > 0)
            return 0;
        return -1;
    }
    return 1;
}

static const Stmt *init_copy(InitCopy *x, const Stmt *s)
{
    Ctx *c = x->c;

    switch (s->kind) {
    case STMT_SEQ: {
        const Stmt **kids = NEW_ARRAY(c->arena, const Stmt *, s->nkids + 1);
        for (uint32_t i = 0; i < s->nkids; i++)
            kids[i] = init_copy(x, s->kids[i]);
        return stmt_seq(c, s->nkids, kids);
    }
    case STMT_FOR: {
        if (atomset_has(x->reduce, s->u.loop.var))
            return init_copy(x, s->kids[0]);
        const Stmt *body = init_copy(x, s->kids[0]);
        if (stmt_is_empty(body))
            return body;
        LoopData loop = s->u.loop;
        loop.outline = NULL;
        loop.var = atom_like(c->arith, loop.var->name, loop.var);
        IdxSubst *fresh = subst_new(c->arith, c->arena);
        subst_bind(fresh, s->u.loop.var, idx_atom(c->arith, loop.var));
        return stmt_for(c, loop, stmt_subst(c, body, fresh), s->loc);
    }
    case STMT_IF: {
        const Stmt *then = init_copy(x, s->kids[0]);
        const Stmt *other = s->nkids > 1 ? init_copy(x, s->kids[1]) : NULL;
        if (stmt_is_empty(then) && (!other || stmt_is_empty(other)))
            return stmt_seq(c, 0, NULL);
        return stmt_if(c, prim_subst(c, s->u.cond, x->at), then, other);
    }
    case STMT_BLOCK: {
        const BlockData *b = &s->u.block;
        if (!concerns(x, s))
            return stmt_seq(c, 0, NULL);
        int due = init_due(x, b);
        if (due < 0)
            x->ok = false;
        if (due <= 0)
            return stmt_seq(c, 0, NULL);
        Pred where = PRED_TRUE;
        for (uint32_t i = 0; i < b->where.n; i++)
            if (!idx_uses_any(b->where.ge0[i], x->reduce))
                where = pred_and(c->arith, c->arena, where, b->where.ge0[i]);
        const Stmt *init = stmt_subst(c, s->kids[0], block_subst(c, b));
        return guarded(c, where, stmt_subst(c, init, x->at));
    }
    case STMT_ALLOC:
    case STMT_WHILE: x->ok = x->ok && !any_concerned(x, s); return stmt_seq(c, 0, NULL);
    case STMT_STORE:
    case STMT_PREFETCH:
    case STMT_CALL:
    case STMT_BARRIER:
    case STMT_AWAIT:
    case STMT_REGION:
    case STMT_LAUNCH:
    case STMT_COPY:
    case STMT_VIEW:
    case STMT_INVOKE:
    case STMT_SWITCH:
    case STMT_RETURN:
    case STMT_FAIL: return stmt_seq(c, 0, NULL);
    }
    return s;
}

/* All reduce loops under s (s included) into the set, bound to their lower ends. */
static void reduce_loops(InitCopy *x, const Stmt *s)
{
    if (s->kind == STMT_FOR && s->u.loop.kind == LOOP_REDUCE) {
        atomset_add(x->reduce, s->u.loop.var);
        subst_bind(x->at, s->u.loop.var, s->u.loop.lo);
    }
    for (uint32_t i = 0; i < s->nkids; i++)
        reduce_loops(x, s->kids[i]);
}

static void set_fate(InitCopy *x, const Stmt *s, uintptr_t fate)
{
    if (concerns(x, s))
        map_put(x->fate, s->id, (void *)fate);
    for (uint32_t i = 0; i < s->nkids; i++)
        set_fate(x, s->kids[i], fate);
}

static const Stmt *lower_stmt(Lower *l, const Stmt *s);

static const Stmt *lower_kids(Lower *l, const Stmt *s)
{
    const Stmt **kids = NEW_ARRAY(l->c->arena, const Stmt *, s->nkids + 1);

    for (uint32_t i = 0; i < s->nkids; i++)
        kids[i] = lower_stmt(l, s->kids[i]);
    return stmt_with_kids(l->c, s, kids);
}

static const Stmt *lower_block(Lower *l, const Stmt *s)
{
    Ctx             *c = l->c;
    const BlockData *b = &s->u.block;
    IdxSubst        *sub = block_subst(c, b);
    const Stmt     **kids = NEW_ARRAY(c->arena, const Stmt *, s->nkids + 1);

    for (uint32_t i = 0; i < s->nkids; i++)
        kids[i] = stmt_subst(c, s->kids[i], sub);
    if (b->has_init) {
        if (map_get(l->fate, s->id) == (void *)INIT_PLACED) {
            kids[0] = stmt_seq(c, 0, NULL);
        } else {
            Pred first = PRED_TRUE;
            for (uint32_t i = 0; i < b->nreduce; i++)
                first = pred_and(c->arith, c->arena, first,
                                 idx_mulc(c->arith, b->bind[b->nspatial + i], -1));
            kids[0] = guarded(c, first, kids[0]);
        }
    }
    return guarded(c, b->where, stmt_seq(c, s->nkids, kids));
}

static const Stmt *lower_stmt(Lower *l, const Stmt *s)
{
    Ctx *c = l->c;

    if (s->kind == STMT_BLOCK)
        return lower_block(l, s);
    if (s->kind != STMT_FOR || s->u.loop.kind != LOOP_REDUCE)
        return lower_kids(l, s);
    /* Place the inits of the blocks that reduce over this loop before it, if all can be. */
    InitCopy x = {c,       s->u.loop.var, atomset_new(c->arena), subst_new(c->arith, c->arena),
                  l->fate, true};
    reduce_loops(&x, s);
    const Stmt *init = init_copy(&x, s);
    set_fate(&x, s, x.ok ? INIT_PLACED : INIT_INSIDE);
    const Stmt *both[] = {init, lower_kids(l, s)};
    return x.ok ? stmt_seq(c, 2, both) : both[1];
}

static const Func *lower_func(Ctx *c, void *user, const Func *f)
{
    Lower l = {c, map_new(c->arena)};

    (void)user;
    return func_with_body(c, f, lower_stmt(&l, f->body));
}

const TirModule *lower_blocks(Ctx *c, const TirModule *m)
{
    return tirmod_map(c, m, lower_func, NULL);
}
