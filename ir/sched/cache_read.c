/* cache_read: a copy, in a nearer scope, of what a block reads.
 *
 *     cache_read %x gemm shared at %ko                 the box of %x that the body of %ko reads,
 *                                                      with %x's dimensions
 *     cache_read %x gemm shared %ki, %mt, %mr at %ko   a cell for each round of these loops, in
 *                                                      this order
 *
 * The second form needs no box: pixels that a convolution reads along rows of an image, in steps,
 * or at distances lie side by side.  Of a loop of which the cell depends by a quotient or a
 * remainder alone (warps, of which some have the same rows, others the same columns) there is a
 * cell for each of these.  Memory that a block of threads shares holds what all of its threads
 * read. */
#include "ir/sched/impl.h"
#include "ir/text/print_tir.h"

#include <stdlib.h>

typedef struct {
    Work         *w;
    uint32_t      loop;   /* at which the copy is made */
    const Sites  *blocks; /* that read t */
    const Buffer *t, *copy;
    Scope         scope;
    const char   *name;
    uint32_t      n;    /* dimensions of the copy */
    int64_t      *size; /* of each */
    const Atom  **var;  /* of the loops that fill it */
    const Idx   **from; /* the cell of t that they fetch */
} Read;

/* Loops in `loop`, and those of a block's threads around it where they share the copy. */
static AtomSet *loops_inside(const Read *r)
{
    Work    *w = r->w;
    AtomSet *inner = atomset_new(w->c->scratch);

    for (uint32_t k = r->loop + 1; k < w->nest.at[r->loop].end; k++)
        if (stmt_at(w, k)->kind == STMT_FOR)
            atomset_add(inner, loop_at(w, k)->var);
    if (r->scope == SCOPE_SHARED) {
        Sites outer = loops_around_site(w, NO_SITE, r->loop);
        vec_push(w->c->scratch, &outer, r->loop);
        for (uint32_t i = 0; i < outer.n; i++)
            if (loop_at(w, outer.at[i])->bind >= AXIS_THREAD_X)
                atomset_add(inner, loop_at(w, outer.at[i])->var);
    }
    return inner;
}

static bool make_copy(Read *r)
{
    Work       *w = r->w;
    Ctx        *c = w->c;
    const Idx **extent = NEW_ARRAY(c->scratch, const Idx *, r->n + 1);
    int64_t     cells = 1;

    for (uint32_t i = 0; i < r->n; i++) {
        if (!checked_mul(cells, r->size[i], &cells) || cells > INT32_MAX)
            return refuse(w, "what it reads of %%%s is too large", r->t->name) != NULL;
        extent[i] = idx_const(c->arith, r->size[i]);
        r->var[i] = fresh_var(c, intern_printf(c->strings, "%s.a%u", r->name, i), r->size[i]);
    }
    if (r->scope == SCOPE_SHARED && w->s->target && w->s->target->shared_bytes &&
        cells * dtype_bytes(r->t->dtype) > w->s->target->shared_bytes)
        return refuse(w, "%lld bytes do not fit shared memory",
                      (long long)(cells * dtype_bytes(r->t->dtype))) != NULL;
    r->copy = buffer_new(c, r->name, r->t->dtype, r->scope, r->n, extent);
    return true;
}

static const Prim *zero(Ctx *c, DType t)
{
    return dtype_is_float(t) ? prim_float(c, t, 0) : prim_int(c, t, 0);
}

/* The copy's loops.  What lies outside of t stays as it is in shared memory, where nobody reads it,
 * and is zero in registers: a tile's cells that are not stored are computed from it, too. */
static const Stmt *fill(const Read *r)
{
    Ctx         *c = r->w->c;
    Arith       *A = c->arith;
    const Stmt  *s = stmt_at(r->w, r->loop);
    const bool   zeros = r->scope == SCOPE_REG;
    uint32_t     ndim = r->t->ndim;
    const Atom **iter = NEW_ARRAY(c->arena, const Atom *, ndim + 1);
    const Idx  **cell = NEW_ARRAY(c->arena, const Idx *, ndim + 1);
    const Idx  **to = NEW_ARRAY(c->arena, const Idx *, r->n + 1);
    BlockData    b = {
           .name = r->name, .nspatial = ndim, .iter = iter, .bind = r->from, .redundant = true};
    Pred inside = {0};

    for (uint32_t d = 0; d < ndim; d++) {
        int64_t before = r->t->halo ? r->t->halo->lo[d] : 0,
                after = r->t->halo ? r->t->halo->hi[d] : 0, first = -before;
        const Idx *last = idx_addc(A, r->t->extent[d], after - 1);
        int64_t    lo = zeros && r->from[d]->lo < first ? r->from[d]->lo : first,
                hi = zeros && r->from[d]->hi > last->hi ? r->from[d]->hi : last->hi;
        const char *name = intern_printf(c->strings, "a%u", d);
        iter[d] = zeros || idx_is_const(last, NULL) ? atom_var(A, name, lo, hi)
                                                    : atom_upto(A, name, r->t->extent[d]);
        cell[d] = idx_atom(A, iter[d]);
        const Idx *at = zeros ? cell[d] : r->from[d];
        inside = pred_and(A, c->arena, inside, idx_addc(A, at, before));
        inside = pred_and(A, c->arena, inside, idx_sub(A, last, at));
    }
    for (uint32_t i = 0; i < r->n; i++)
        to[i] = idx_atom(A, r->var[i]);
    const Prim *value = prim_load(c, r->t, cell);
    if (!zeros)
        b.where = inside;
    else if (inside.n)
        value = prim_select(c, pred_prim(c, inside), value, zero(c, r->t->dtype));
    const Stmt *store = stmt_store(c, r->copy, to, value);
    const Stmt *nest = stmt_block(c, b, 1, &store, s->loc);
    for (uint32_t i = r->n; i-- > 0;)
        nest = loop_of(c, r->var[i], LOOP_SPATIAL, nest, s->loc);
    return nest;
}

/* The loop with the copy made first in it. */
static void place(const Read *r)
{
    Work       *w = r->w;
    const Stmt *s = stmt_at(w, r->loop);
    const Stmt *both[2] = {fill(r), body_with_edits(w, r->loop)};

    edit(w, s,
         stmt_for(w->c, s->u.loop, stmt_alloc(w->c, r->copy, stmt_seq(w->c, 2, both)), s->loc));
}

/* ---- a box of t ---------------------------------------------------------------------------------- */

typedef struct {
    Ctx              *c;
    const Buffer     *was, *now;
    const Idx *const *lo;    /* over loop variables */
    IdxSubst         *iters; /* the block's iterators */
} Reread;

static const Prim *reread_load(Ctx *c, void *user, const Prim *p)
{
    const Reread *r = user;
    if (p->kind != PRIM_LOAD || p->u.load.buffer != r->was)
        return p;
    const Idx **at = NEW_ARRAY(c->arena, const Idx *, p->u.load.n + 1);
    for (uint32_t d = 0; d < p->u.load.n; d++)
        at[d] = idx_sub(c->arith, idx_subst(r->iters, p->u.load.index[d]), r->lo[d]);
    return prim_load(c, r->now, at);
}

/* False: refused. */
static bool read_box(Read *r)
{
    Work        *w = r->w;
    Ctx         *c = w->c;
    Arith       *A = c->arith;
    const Idx  **lo = NEW_ARRAY(c->arena, const Idx *, r->t->ndim + 1);
    const Stmt **in = NEW_ARRAY(c->scratch, const Stmt *, r->blocks->n);

    r->n = r->t->ndim;
    r->size = NEW_ARRAY(c->scratch, int64_t, r->n + 1);
    r->var = NEW_ARRAY(c->scratch, const Atom *, r->n + 1);
    r->from = NEW_ARRAY(c->arena, const Idx *, r->n + 1);
    /* One block of the name per copy of L: their reads are hulled through a sequence. */
    for (uint32_t k = 0; k < r->blocks->n; k++)
        in[k] = stmt_at(w, r->blocks->at[k]);
    if (!region_of_reads(c, stmt_seq(c, r->blocks->n, in), r->t, loops_inside(r), lo, r->size))
        return true;
    for (uint32_t d = 0; d < r->n; d++) {
        int64_t n, before = r->t->halo ? r->t->halo->lo[d] : 0,
                   after = r->t->halo ? r->t->halo->hi[d] : 0;
        if (!idx_is_const(r->t->extent[d], &n))
            return refuse(w, "the extent of %%%s is not constant", r->t->name) != NULL;
        if (r->size[d] >= n + before + after || r->size[d] <= 0) { /* all of it */
            r->size[d] = n + before + after;
            lo[d] = idx_const(A, -before);
        }
    }
    if (!make_copy(r))
        return false;
    for (uint32_t d = 0; d < r->n; d++)
        r->from[d] = idx_add(A, lo[d], idx_atom(A, r->var[d]));
    for (uint32_t k = 0; k < r->blocks->n; k++) {
        IdxSubst *sub = subst_new(A, c->scratch);
        bind_iters(in[k], sub);
        Reread x = {.c = c, .was = r->t, .now = r->copy, .lo = lo, .iters = sub};
        edit(w, in[k], stmt_map(c, in[k], &(TirMap){.user = &x, .prim = reread_load}));
    }
    place(r);
    return true;
}

/* ---- a cell for each round ----------------------------------------------------------------------- */

/* The named loops around the block, in the loop or over the threads that share the copy. */
static bool rounds_of(Read *r, Sites *by)
{
    Work *w = r->w;

    for (uint32_t i = 3; i < step_nargs(w->st); i++) {
        Sites    named;
        uint32_t found = NO_SITE;
        if (!step_arg(w->st, i)->name || !loops_named(w, step_arg(w->st, i)->name, &named))
            return false;
        for (uint32_t k = 0; k < named.n; k++)
            if (inside(w, r->blocks->at[0], named.at[k]))
                found = named.at[k];
        if (found == NO_SITE)
            return refuse(w, "%%%s does not hold '%s'", step_arg(w->st, i)->name,
                          block_at(w, r->blocks->at[0])->name) != NULL;
        const LoopData *l = loop_at(w, found);
        bool shared = r->scope == SCOPE_SHARED && l->bind >= AXIS_THREAD_X && found <= r->loop;
        if (!inside(w, found, r->loop) && !shared)
            return refuse(w, "%%%s is not one of the loops that read the copy", l->var->name) !=
                   NULL;
        if (!loop_extent_of(stmt_at(w, found), NULL))
            return refuse(w, "the extent of %%%s is not constant", l->var->name) != NULL;
        vec_push(w->c->scratch, by, found);
    }
    return true;
}

static const Prim *reread_round(Ctx *c, void *user, const Prim *p)
{
    void **u = user;

    return p->kind == PRIM_LOAD && p->u.load.buffer == u[0] ? prim_load(c, u[1], u[2]) : p;
}

/* What the facts say of neighbours that lie together, too: 2*%t + %i < 24, so %t < 12. */
static Pred facts_of_steps(Work *w, Pred facts)
{
    Arith *A = w->c->arith;
    Pred   all = facts;

    for (uint32_t i = 0; i < facts.n; i++)
        for (uint32_t k = 0; k < facts.ge0[i]->nterms; k++) {
            const Idx *e = facts.ge0[i], *left = idx_const(A, e->c0), *steps = idx_const(A, 0);
            int64_t    g = llabs(e->t[k].coef);
            for (uint32_t n = 0; n < e->nterms; n++) {
                const Idx *x = idx_atom(A, e->t[n].atom);
                if (e->t[n].coef % g)
                    left = idx_add(A, left, idx_mulc(A, x, e->t[n].coef));
                else
                    steps = idx_add(A, steps, idx_mulc(A, x, e->t[n].coef / g));
            }
            if (g > 1 && left->hi < INT64_MAX)
                all = pred_and(A, w->c->arena, all, idx_addc(A, steps, floor_div(left->hi, g)));
        }
    return all;
}

static bool has_term(const Idx *x, const Atom *a)
{
    for (uint32_t i = 0; i < x->nterms; i++)
        if (x->t[i].atom == a)
            return true;
    return false;
}

/* a/k rounded down, where the facts say that what `left` leaves of `a` is a multiple of k, of terms
 * of `a` and no others (which may be the quotient itself), and that `left` is less than k; NULL:
 * they do not. */
static const Idx *quotient_beside(Arith *A, Pred facts, const Atom *a, const Idx *left)
{
    const Idx *whole = idx_sub(A, a->a, left);

    if (whole->c0 % a->k)
        return NULL;
    for (uint32_t i = 0; i < whole->nterms; i++)
        if (whole->t[i].coef % a->k || !has_term(a->a, whole->t[i].atom))
            return NULL;
    return pred_implies(A, facts, left) &&
                   pred_implies(A, facts, idx_sub(A, idx_const(A, a->k - 1), left))
               ? idx_divc(A, whole, a->k)
               : NULL;
}

/* .. as far as they say it: what is left are the terms that k does not divide, or what a fact has
 * an upper end for, such as %b%2*4+%i, of whose terms the quotient took multiples of k. */
static const Idx *quotient_where(Arith *A, Pred facts, const Atom *a)
{
    const Idx *left = idx_const(A, a->a->c0), *q;

    for (uint32_t k = 0; k < a->a->nterms; k++)
        if (a->a->t[k].coef % a->k)
            left = idx_add(A, left, idx_mulc(A, idx_atom(A, a->a->t[k].atom), a->a->t[k].coef));
    q = quotient_beside(A, facts, a, left);
    for (uint32_t i = 0; !q && i < facts.n; i++) {
        left = idx_mulc(A, facts.ge0[i], -1);
        left = idx_addc(A, left, floor_mod(a->a->c0, a->k) - left->c0);
        q = quotient_beside(A, facts, a, left);
    }
    return q;
}

/* The quotients in x, where the facts say that what is left over is less than the divisor: a tile
 * that hangs over the end of a group does not choose the next one. */
static const Idx *index_where(Work *w, Pred facts, const Idx *x)
{
    Arith *A = w->c->arith;

    for (uint32_t i = 0; i < x->nterms; i++) {
        const IdxTerm *t = &x->t[i];
        const Idx     *q = t->atom->kind == ATOM_DIV ? quotient_where(A, facts, t->atom) : NULL;
        if (q)
            return index_where(w, facts,
                               idx_add(A, idx_sub(A, x, idx_mulc(A, idx_atom(A, t->atom), t->coef)),
                                       idx_mulc(A, q, t->coef)));
    }
    return x;
}

/* What of the loop over v chooses cells. */
typedef struct {
    int64_t    size;  /* so many of it */
    const Idx *where; /* that one, over the loop's variable */
    int64_t    apart; /* rounds of the loop from one to the next */
} Chosen;

/* The cells depend on v by x alone. */
static bool depends_by(Work *w, const Idx *const *cell, uint32_t n, const Atom *v, const Idx *x)
{
    IdxSubst *sub = subst_new(w->c->arith, w->c->scratch);

    subst_bind(sub, v, x);
    for (uint32_t d = 0; d < n; d++)
        if (idx_subst(sub, cell[d]) != cell[d])
            return false;
    return true;
}

/* Of a loop from 0 on, by a divisor that the cells' indices name; else all of it. */
static Chosen chosen_part(Work *w, const Idx *const *cell, uint32_t n, const LoopData *l,
                          int64_t rounds)
{
    Arith     *A = w->c->arith;
    const Idx *v = idx_atom(A, l->var);
    Chosen     all = {rounds, idx_sub(A, v, l->lo), 1};
    int64_t    lo;

    if (!idx_is_const(l->lo, &lo) || lo)
        return all;
    for (uint32_t d = 0; d < n; d++)
        for (uint32_t i = 0; i < cell[d]->nterms; i++) {
            const Atom *a = cell[d]->t[i].atom, *of;
            if (a->kind != ATOM_DIV || !idx_is_atom(a->a, &of) || of != l->var || rounds % a->k)
                continue;
            const Idx *over = idx_divc(A, v, a->k), *left = idx_modc(A, v, a->k);
            if (depends_by(w, cell, n, l->var, idx_mulc(A, over, a->k)))
                return (Chosen){rounds / a->k, over, a->k};
            if (depends_by(w, cell, n, l->var, left))
                return (Chosen){a->k, left, 1};
        }
    return all;
}

static bool read_rounds(Read *r)
{
    Work       *w = r->w;
    Ctx        *c = w->c;
    Arith      *A = c->arith;
    const Stmt *block = stmt_at(w, r->blocks->at[0]);
    Access      a = access_of(block, r->t);
    Sites       by = {0};
    AtomSet    *others = loops_inside(r);
    IdxSubst   *iters = subst_new(A, c->scratch), *rounds = subst_new(A, c->scratch);

    if (r->blocks->n > 1)
        return refuse(w, "the loop holds several copies of '%s'", block->u.block.name) != NULL;
    if (!a.same_load)
        return refuse(w, "'%s' reads %%%s in several places", block->u.block.name, r->t->name) !=
               NULL;
    for (uint32_t d = 0; d < r->t->ndim; d++)
        if (!idx_is_const(r->t->extent[d], NULL) && r->t->halo &&
            (r->t->halo->lo[d] || r->t->halo->hi[d]))
            return refuse(w, "%%%s has a border around an extent that is not constant",
                          r->t->name) != NULL;
    if (!rounds_of(r, &by))
        return false;
    r->n = by.n;
    r->size = NEW_ARRAY(c->scratch, int64_t, r->n + 1);
    r->var = NEW_ARRAY(c->scratch, const Atom *, r->n + 1);
    r->from = NEW_ARRAY(c->arena, const Idx *, r->t->ndim + 1);
    const Idx **cell = NEW_ARRAY(c->arena, const Idx *, r->n + 1);
    Chosen     *part = NEW_ARRAY(c->scratch, Chosen, r->n + 1);
    bind_iters(block, iters);
    Pred facts = facts_of_steps(w, block->u.block.where);
    for (uint32_t d = 0; d < r->t->ndim; d++)
        r->from[d] = index_where(w, facts, idx_subst(iters, a.load[d]));
    for (uint32_t i = 0; i < by.n; i++) {
        loop_extent_of(stmt_at(w, by.at[i]), &r->size[i]);
        part[i] = chosen_part(w, r->from, r->t->ndim, loop_at(w, by.at[i]), r->size[i]);
        r->size[i] = part[i].size;
        cell[i] = part[i].where;
    }
    if (!make_copy(r))
        return false;
    for (uint32_t i = 0; i < by.n; i++) {
        const LoopData *l = loop_at(w, by.at[i]);
        const Idx      *at = idx_mulc(A, idx_atom(A, r->var[i]), part[i].apart);
        subst_bind(rounds, l->var, idx_add(A, l->lo, at));
    }
    for (uint32_t d = 0; d < r->t->ndim; d++) {
        r->from[d] = idx_subst(rounds, r->from[d]);
        if (idx_uses_any(r->from[d], others))
            return refuse(w, "other loops choose the cell of %%%s, too", r->t->name) != NULL;
    }
    void *user[3] = {(void *)(uintptr_t)r->t, (void *)(uintptr_t)r->copy, (void *)(uintptr_t)cell};
    edit(w, block, stmt_map(c, block, &(TirMap){.user = user, .prim = reread_round}));
    place(r);
    return true;
}

/* ---- the step ------------------------------------------------------------------------------------- */

static bool read_in(Work *w, uint32_t loop, const Sites *blocks, const Buffer *t, Scope scope)
{
    Sites in = {0};
    Read  r = {.w = w, .loop = loop, .blocks = &in, .t = t, .scope = scope};

    r.name = intern_printf(w->c->strings, "%s.%s", t->name, scope_text(scope));
    for (uint32_t k = 0; k < blocks->n; k++) {
        Access a = access_of(stmt_at(w, blocks->at[k]), t);
        if (!inside(w, blocks->at[k], loop))
            continue;
        if (a.in_index)
            return refuse(w, "%%%s is read in an index", t->name) != NULL;
        vec_push(w->c->scratch, &in, blocks->at[k]);
    }
    if (!in.n)
        return true;
    return step_nargs(w->st) > 3 ? read_rounds(&r) : read_box(&r);
}

const Func *step_cache_read(Work *w)
{
    const StepArg *ta = step_arg(w->st, 0), *ba = step_arg(w->st, 1), *sa = step_arg(w->st, 2);
    const StepArg *at = step_option(w->st, "at");
    Sites          blocks, loops, all = blocks_in(w, NO_SITE);
    Scope          scope;

    if (!ta || !ta->name || !ba || !ba->name || !sa || !at || !at->name)
        return refuse(w, "write `cache_read %%t b shared at %%l`");
    const Buffer *t = buffer_named(w, ta->name);
    if (!t || !scope_named(w, sa->name, &scope) || !blocks_named(w, ba->name, &blocks) ||
        !loops_named(w, at->name, &loops))
        return NULL;
    for (uint32_t k = 0; k < blocks.n; k++) {
        bool   in = false;
        Access a = access_of(stmt_at(w, blocks.at[k]), t);
        for (uint32_t i = 0; i < loops.n; i++)
            in |= inside(w, blocks.at[k], loops.at[i]);
        if (!in)
            return refuse(w, "%%%s does not enclose '%s'", at->name, ba->name);
        if (!a.loads || a.stores)
            return refuse(w, "'%s' does not only read %%%s", ba->name, t->name);
    }
    for (uint32_t i = 0; i < loops.n; i++) {
        if (loop_at(w, loops.at[i])->vector)
            return refuse(w, "%%%s is a vector loop", at->name);
        for (uint32_t k = 0; k < all.n; k++)
            if (inside(w, all.at[k], loops.at[i]) && access_of(stmt_at(w, all.at[k]), t).stores)
                return refuse(w, "'%s' writes %%%s in there", block_at(w, all.at[k])->name,
                              t->name);
        if (!read_in(w, loops.at[i], &blocks, t, scope))
            return NULL;
    }
    return finish(w);
}
