/* distribute: a loop goes around each of the statements that it holds, inside of sequential loops.
 *
 *     distribute %d     for %d { init  for %t seq { sums  state } }
 *                         -> for %d { init }  for %t seq { for %d { sums }  for %d { state } }
 *
 * So the outer cells of a scan take turns in every round.  Two iterations of the loop must have
 * nothing to do with each other: of every tensor that one of them writes, no other touches a cell.
 */
#include "ir/sched/impl.h"

typedef struct {
    Ctx          *c;
    const Buffer *b;
    IdxSubst     *bound; /* iterators of the block at hand */
    VEC(const Idx *const *) at;
} Cells;

static void add_cell(Cells *x, const Idx *const *index)
{
    const Idx **at = NEW_ARRAY(x->c->scratch, const Idx *, x->b->ndim + 1);

    for (uint32_t d = 0; d < x->b->ndim; d++)
        at[d] = idx_subst(x->bound, index[d]);
    vec_push(x->c->scratch, &x->at, at);
}

static bool cell_stmt(void *user, const Stmt *s)
{
    Cells *x = user;

    if (s->kind == STMT_STORE && s->u.store.buffer == x->b)
        add_cell(x, s->u.store.index);
    return true;
}

static void cell_prim(void *user, const Prim *p)
{
    Cells *x = user;

    if (p->kind == PRIM_LOAD && p->u.load.buffer == x->b)
        add_cell(x, p->u.load.index);
}

/* Dimension d of all these cells is n*v + rest, and all rests lie in n cells next to each other,
 * whatever the loops in `inner` do. */
static bool apart_in(Ctx *c, const Cells *x, uint32_t d, const Atom *v, const AtomSet *inner)
{
    Arith     *A = c->arith;
    const Idx *base = NULL, *lo, *hi;
    int64_t    n = idx_coef(x->at.at[0][d], v), below = 0, above = 0, off;

    for (uint32_t i = 0; i < x->at.n && n > 0; i++) {
        const Idx *rest = idx_sub(A, x->at.at[i][d], idx_mulc(A, idx_atom(A, v), n));

        if (idx_uses(rest, v))
            return false;
        idx_bound(A, rest, inner, &lo, &hi);
        if (!base)
            base = lo;
        if (!idx_is_const(idx_sub(A, lo, base), &off))
            return false;
        int64_t extent = idx_extent(A, lo, hi);
        below = off < below ? off : below;
        above = off + extent > above ? off + extent : above;
    }
    return n > 0 && above - below <= n;
}

/* No two iterations of the loop touch one cell of b, while `also`, if it is not NULL, runs too. */
static bool apart(Work *w, uint32_t loop, const Buffer *b, const Atom *also)
{
    Sites    blocks = blocks_in(w, loop);
    Cells    x = {.c = w->c, .b = b};
    AtomSet *inner = atomset_new(w->c->scratch);

    for (uint32_t i = loop + 1; i < w->nest.at[loop].end; i++)
        if (stmt_at(w, i)->kind == STMT_FOR)
            atomset_add(inner, loop_at(w, i)->var);
    if (also)
        atomset_add(inner, also);
    for (uint32_t i = 0; i < blocks.n; i++) {
        const Stmt *s = stmt_at(w, blocks.at[i]);

        x.bound = subst_new(w->c->arith, w->c->scratch);
        bind_iters(s, x.bound);
        stmt_visit(s, &(TirVisit){.user = &x, .enter = cell_stmt, .prim = cell_prim});
    }
    for (uint32_t d = 0; d < b->ndim && x.at.n; d++)
        if (apart_in(w->c, &x, d, loop_at(w, loop)->var, inner))
            return true;
    return false;
}

const Buffer *shared_cells(Work *w, uint32_t loop, const Atom *also)
{
    Buffers out = buffers_written(w->c, stmt_at(w, loop));

    if (loop_at(w, loop)->var->lo == loop_at(w, loop)->var->hi)
        return NULL;
    for (uint32_t i = 0; i < out.n; i++) {
        const Stmt *alloc = alloc_of(w, out.at[i]); /* inside: each iteration has its own */

        if (!(alloc && inside(w, site_of(w, alloc), loop)) && !apart(w, loop, out.at[i], also))
            return out.at[i];
    }
    return NULL;
}

/* s inside of copies of the loop. */
static const Stmt *distributed(Ctx *c, const Stmt *loop, const Stmt *s)
{
    const LoopData *l = &loop->u.loop;
    LoopData        own = *l;

    if (s->kind == STMT_SEQ || (s->kind == STMT_FOR && s->u.loop.kind == LOOP_SEQ)) {
        const Stmt **kids = NEW_ARRAY(c->arena, const Stmt *, s->nkids + 1);

        for (uint32_t i = 0; i < s->nkids; i++)
            kids[i] = distributed(c, loop, s->kids[i]);
        return s->kind == STMT_SEQ ? stmt_seq(c, s->nkids, kids) : stmt_with_kids(c, s, kids);
    }
    IdxSubst *sub = subst_new(c->arith, c->scratch);

    own.var = atom_like(c->arith, l->var->name, l->var);
    subst_bind(sub, l->var, idx_atom(c->arith, own.var));
    return stmt_for(c, own, stmt_subst(c, s, sub), loop->loc);
}

const Func *step_distribute(Work *w)
{
    const StepArg *l = step_arg(w->st, 0);
    Sites          loops;

    if (!l || !l->name)
        return refuse(w, "write `distribute %%d`");
    if (!loops_named(w, l->name, &loops))
        return NULL;
    for (uint32_t i = 0; i < loops.n; i++) {
        const LoopData *d = loop_at(w, loops.at[i]);
        const Buffer   *shared = shared_cells(w, loops.at[i], NULL);

        if (d->kind != LOOP_SPATIAL)
            return refuse(w, "%%%s is not spatial", d->var->name);
        if (loop_marks(d))
            return refuse(w, "%%%s is already marked", d->var->name);
        if (has_opaque(w, loops.at[i]))
            return refuse(w, "%%%s holds hand-written code", d->var->name);
        for (uint32_t k = loops.at[i] + 1; k < w->nest.at[loops.at[i]].end; k++)
            if (stmt_at(w, k)->kind == STMT_FOR && loop_at(w, k)->kind == LOOP_SEQ &&
                (idx_uses(loop_at(w, k)->lo, d->var) || idx_uses(loop_at(w, k)->extent, d->var)))
                return refuse(w, "the rounds of %%%s depend on it", loop_at(w, k)->var->name);
        if (shared)
            return refuse(w, "its iterations touch the same cells of %%%s", shared->name);
        edit(w, stmt_at(w, loops.at[i]),
             distributed(w->c, stmt_at(w, loops.at[i]), body_of(stmt_at(w, loops.at[i]))));
    }
    return finish(w);
}
