/* compute_at and reverse_compute_at: definitions move into each other's loops.
 *
 *     compute_at m %c            what the body of %c reads of %m is computed first in it: a box of
 *                                loops, the iterators bound to lower corner + loop
 *     reverse_compute_at y %t    y is computed where %t's body has just written what y reads: the
 *                                producer's own spatial loops inside %t are walked again
 */
#include "ir/sched/impl.h"

#include <string.h>

/* ---- compute_at --------------------------------------------------------------------------------- */

/* The iterator that a store index is, per dimension; unit dimensions have none. */
static bool store_is_identity(const Stmt *block, const Buffer *t)
{
    const Stmt      *store = store_of(block);
    const BlockData *b = &block->u.block;
    if (!store || store->u.store.buffer != t || b->nspatial != t->ndim)
        return false;
    for (uint32_t d = 0; d < t->ndim; d++) {
        const Atom *a = NULL;
        int64_t     v;
        if (idx_is_const(store->u.store.index[d], &v)) {
            if (b->iter[d]->lo != b->iter[d]->hi || v != b->iter[d]->lo)
                return false;
        } else if (!idx_is_atom(store->u.store.index[d], &a) || a != b->iter[d]) {
            return false;
        }
    }
    return true;
}

/* Together the loops visit each cell exactly once: their variables can be had back from the
 * iterators, and there are as many iterations as cells. */
static bool is_bijection(Ctx *c, const BlockData *b, uint32_t n, const Atom *const *loop)
{
    const Idx **out = NEW_ARRAY(c->scratch, const Idx *, n + 1);
    int64_t     cells = 1, visits = 1;

    if (b->where.n || !invert(c, b->nspatial, b->bind, b->bind, n, loop, out))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!out[i] || !checked_mul(visits, atom_usual(loop[i]), &visits))
            return false;
    for (uint32_t i = 0; i < b->nspatial; i++)
        if (!checked_mul(cells, atom_usual(b->iter[i]), &cells))
            return false;
    return cells == visits;
}

static const Stmt *box_nest(Work *w, uint32_t loop, const Stmt *block, const Idx *const *lo,
                            const int64_t *extent)
{
    Ctx         *c = w->c;
    Arith       *A = c->arith;
    BlockData    b = block->u.block;
    uint32_t     n = b.nspatial + b.nreduce;
    const Idx  **bind = NEW_ARRAY(c->arena, const Idx *, n);
    const Atom **var = NEW_ARRAY(c->scratch, const Atom *, n);
    Sites        outer = loops_around_site(w, NO_SITE, loop);
    VEC(const Atom *) all = {0};
    bool reduce = false;

    b.where = PRED_TRUE;
    for (uint32_t i = 0; i < n; i++) {
        bool        spatial = i < b.nspatial;
        int64_t     cells = atom_usual(b.iter[i]);
        int64_t     e = spatial && extent[i] < cells ? extent[i] : cells;
        const Idx  *base = idx_const(A, b.iter[i]->lo);
        const char *name = intern_printf(c->strings, "%s.%s", b.name, b.iter[i]->name);
        if (e < cells) /* a box as large as the domain starts where that does */
            base = lo[i];
        var[i] = e < cells || b.iter[i]->lo ? fresh_var(c, name, e) : atom_like(A, name, b.iter[i]);
        bind[i] = idx_add(A, base, idx_atom(A, var[i]));
        b.where = pred_and(A, c->arena, b.where, idx_addc(A, bind[i], -b.iter[i]->lo));
        b.where = pred_and(A, c->arena, b.where, idx_sub(A, atom_most(A, b.iter[i]), bind[i]));
        if (spatial)
            vec_push(c->scratch, &all, var[i]);
    }
    b.bind = bind;
    vec_push(c->scratch, &outer, loop);
    for (uint32_t i = 0; i < outer.n; i++) {
        const LoopData *l = loop_at(w, outer.at[i]);
        reduce |= l->kind == LOOP_REDUCE && l->var->lo != l->var->hi;
        vec_push(c->scratch, &all, l->var);
    }
    b.redundant = reduce || !is_bijection(c, &b, all.n, all.at);
    const Stmt *s = stmt_block(c, b, block->nkids, block->kids, block->loc);
    for (uint32_t i = n; i-- > 0;)
        s = loop_of(c, var[i], i < b.nspatial ? LOOP_SPATIAL : LOOP_REDUCE, s, block->loc);
    return s;
}

/* The box that one copy of L reads, computed as the first thing in its body. */
static const Func *compute_in(Work *w, uint32_t loop, const Stmt *block, const Buffer *t)
{
    Ctx        *c = w->c;
    AtomSet    *inner = atomset_new(c->scratch);
    const Stmt *s = stmt_at(w, loop), *body = body_of(s);
    const Idx **lo = NEW_ARRAY(c->scratch, const Idx *, t->ndim + 1);
    int64_t    *extent = NEW_ARRAY(c->scratch, int64_t, t->ndim + 1);

    for (uint32_t k = loop + 1; k < w->nest.at[loop].end; k++)
        if (stmt_at(w, k)->kind == STMT_FOR)
            atomset_add(inner, loop_at(w, k)->var);
    if (!region_of_reads(c, body, t, inner, lo, extent))
        return w->f; /* this copy does not need it */
    const Stmt *both[2] = {box_nest(w, loop, block, lo, extent), body};
    edit(w, s, stmt_for(c, s->u.loop, stmt_seq(c, 2, both), s->loc));
    return w->f;
}

static bool in_any(const Work *w, const Sites *loops, uint32_t site)
{
    for (uint32_t i = 0; i < loops->n; i++)
        if (inside(w, site, loops->at[i]))
            return true;
    return false;
}

const Func *step_compute_at(Work *w)
{
    const StepArg *ba = step_arg(w->st, 0), *la = step_arg(w->st, 1);
    Sites          blocks, loops, all = blocks_in(w, NO_SITE);
    bool           parallel = false, used = false;

    if (!ba || !ba->name || !la || !la->name)
        return refuse(w, "write `compute_at b %%l`");
    if (!blocks_named(w, ba->name, &blocks) || !loops_named(w, la->name, &loops))
        return NULL;
    const Stmt   *block = stmt_at(w, blocks.at[0]), *store = store_of(block);
    const Buffer *t = store ? store->u.store.buffer : NULL;
    if (!t || block->u.block.nseq || !store_is_identity(block, t))
        return refuse(w, "'%s' does not write a tensor cell by cell", ba->name);
    if (block->u.block.nreduce && !block->u.block.has_init)
        return refuse(w, "the start of '%s' is elsewhere", ba->name);
    if (is_param(w, t))
        return refuse(w, "%%%s is an output", t->name);
    for (uint32_t i = 0; i < blocks.n; i++) {
        if (!is_closed(w, blocks.at[i]) || !is_free(w, blocks.at[i]))
            return refuse(w, "'%s' depends on the loops around it", ba->name);
        if (in_any(w, &loops, blocks.at[i]))
            return refuse(w, "'%s' lies in %%%s already", ba->name, la->name);
    }
    for (uint32_t i = 0; i < loops.n; i++) {
        if (loop_at(w, loops.at[i])->vector)
            return refuse(w, "%%%s is a vector loop", la->name);
        for (uint32_t k = 0; k < blocks.n; k++)
            if (blocks.at[k] > loops.at[i])
                return refuse(w, "'%s' runs after %%%s", ba->name, la->name);
    }
    for (uint32_t i = 0; i < all.n; i++) {
        Access a = access_of(stmt_at(w, all.at[i]), t);
        bool   own = block_at(w, all.at[i])->name == block->u.block.name;
        if (a.in_index)
            return refuse(w, "'%s' reads %%%s in an index", block_at(w, all.at[i])->name, t->name);
        if (own || is_halo_of(block_at(w, all.at[i]), t))
            continue;
        if (a.stores)
            return refuse(w, "'%s' also writes %%%s", block_at(w, all.at[i])->name, t->name);
        if (a.loads && !in_any(w, &loops, all.at[i]))
            return refuse(w, "'%s' reads %%%s outside %%%s", block_at(w, all.at[i])->name, t->name,
                          la->name);
        if (a.loads && !sources_live(w, blocks.at[0], all.at[i]))
            return NULL;
        used |= a.loads > 0;
    }
    if (!used)
        return refuse(w, "nothing reads %%%s", t->name);
    for (uint32_t i = 0; i < loops.n; i++) {
        Sites outer = loops_around_site(w, NO_SITE, loops.at[i]);
        parallel |= loop_at(w, loops.at[i])->parallel;
        for (uint32_t k = 0; k < outer.n; k++)
            parallel |= loop_at(w, outer.at[k])->parallel;
        if (!compute_in(w, loops.at[i], block, t))
            return NULL;
    }
    for (uint32_t i = 0; i < blocks.n; i++)
        edit(w, stmt_at(w, blocks.at[i]), stmt_seq(w->c, 0, NULL));
    const Func *f = finish(w);
    if (parallel && t->scope == SCOPE_ARENA)
        f = with_scope(w, f, t, SCOPE_PRIVATE);
    return f;
}

/* ---- reverse_compute_at ------------------------------------------------------------------------- */

typedef struct {
    const Stmt   *consumer;
    const Buffer *t;       /* what it reads */
    bool          dead;    /* nobody else reads t */
    bool          chunked; /* others do, but only between chunks of the same reduction */
    const Atom   *round;   /* of the frame (frame_of), or NULL */
} Move;

uint32_t frame_of(const Work *w, uint32_t site, const Sites *blocks)
{
    for (uint32_t p = w->nest.at[site].parent; p != NO_SITE; p = w->nest.at[p].parent) {
        bool all = stmt_at(w, p)->kind == STMT_FOR && loop_at(w, p)->kind == LOOP_SEQ;

        for (uint32_t i = 0; i < blocks->n && all; i++)
            all = inside(w, blocks->at[i], p);
        if (all)
            return p;
    }
    return NO_SITE;
}

uint32_t part_of(const Work *w, uint32_t frame, uint32_t site)
{
    uint32_t top = site;

    for (uint32_t p = site; p != frame && p != NO_SITE; p = w->nest.at[p].parent)
        if (stmt_at(w, p)->kind == STMT_FOR || stmt_at(w, p)->kind == STMT_BLOCK)
            top = p;
    return top;
}

/* A block's loads of a tensor, and the cell that another one writes. */
typedef struct {
    Work             *w;
    const Buffer     *b;
    const Idx *const *cell;
    IdxSubst         *wrote, *read;
    AtomSet          *inner; /* loops of the frame */
    bool              others;
} Others;

static void look_for_other(void *user, const Prim *p)
{
    Others *o = user;
    bool    apart = false;

    if (p->kind != PRIM_LOAD || p->u.load.buffer != o->b)
        return;
    for (uint32_t d = 0; d < o->b->ndim && !apart; d++) {
        const Idx *x = idx_subst(o->wrote, o->cell[d]), *y = idx_subst(o->read, p->u.load.index[d]);
        int64_t    off = 0;

        apart = x->hi < y->lo || y->hi < x->lo ||
                (!idx_uses_any(x, o->inner) && !idx_uses_any(y, o->inner) &&
                 idx_is_const(idx_sub(o->w->c->arith, x, y), &off) && off);
    }
    o->others = o->others && apart;
}

bool reads_others(Work *w, uint32_t writer, uint32_t reader, const Buffer *b, uint32_t frame)
{
    Arith      *A = w->c->arith;
    const Stmt *store = store_of(stmt_at(w, writer));
    Access      out = access_of(stmt_at(w, writer), b), a = access_of(stmt_at(w, reader), b);
    Others      o = {.w = w,
                     .b = b,
                     .cell = store && store->u.store.buffer == b ? store->u.store.index : out.store,
                     .wrote = subst_new(A, w->c->scratch),
                     .read = subst_new(A, w->c->scratch),
                     .inner = atomset_new(w->c->scratch),
                     .others = true};
    uint32_t    from = frame == NO_SITE ? 0 : frame + 1;
    uint32_t    end = frame == NO_SITE ? w->nest.n : w->nest.at[frame].end;

    if (!out.stores || a.in_index || (!store && out.stores > 1))
        return false;
    for (uint32_t i = from; i < end; i++)
        if (stmt_at(w, i)->kind == STMT_FOR)
            atomset_add(o.inner, loop_at(w, i)->var);
    bind_iters(stmt_at(w, writer), o.wrote);
    bind_iters(stmt_at(w, reader), o.read);
    stmt_visit(stmt_at(w, reader), &(TirVisit){.user = &o, .prim = look_for_other});
    return o.others;
}

/* Who reads t besides the consumer: nobody, or only blocks before the writer in its own loop. */
static void other_readers(Work *w, Move *m, const Sites *writers, const Sites *loops)
{
    Sites all = blocks_in(w, NO_SITE);
    bool  param = is_param(w, m->t);
    m->dead = m->chunked = !param;
    for (uint32_t i = 0; i < all.n; i++) {
        if (block_at(w, all.at[i])->name == m->consumer->u.block.name ||
            !access_of(stmt_at(w, all.at[i]), m->t).loads)
            continue;
        m->dead = false;
        bool before = false;
        for (uint32_t l = 0; loops && l < loops->n; l++) {
            bool first = inside(w, all.at[i], loops->at[l]);
            for (uint32_t k = 0; k < writers->n; k++)
                first &= !inside(w, writers->at[k], loops->at[l]) || writers->at[k] > all.at[i];
            before |= first;
        }
        m->chunked &= before;
    }
}

/* W is pointwise: the consumer goes into the same loops, right beside it. */
static const Func *join(Work *w, uint32_t site, const Move *m, const ReduceRank *r)
{
    Ctx        *c = w->c;
    Arith      *A = c->arith;
    const Stmt *s = stmt_at(w, site), *store = store_of(s), *both[2];
    BlockData   b = s->u.block;
    IdxSubst   *sub = subst_new(A, c->scratch);
    const Idx **value = NEW_ARRAY(c->scratch, const Idx *, m->t->ndim + 1);
    const Prim *v = store->u.store.value;
    bool        forward = v->kind == PRIM_LOAD || m->dead;

    bind_iters(s, sub);
    for (uint32_t d = 0; d < m->t->ndim; d++)
        value[d] = idx_subst(sub, store->u.store.index[d]);
    Placement p = {.tensor = m->t,
                   .value = value,
                   .where = b.where,
                   .redundant = b.redundant,
                   .round = m->round};
    p.where = pred_and(A, c->arena, p.where, idx_addc(A, r->rank, -r->last));
    if (forward)
        p.forward = prim_subst(c, v, sub);
    const Stmt *placed = place_consumer(w, m->consumer, &p);
    if (!placed)
        return NULL;
    if (m->dead) {
        edit(w, s, placed);
        return w->f;
    }
    if (m->chunked && r->last) { /* the last chunk's sums are not needed */
        b.where = pred_and(A, c->arena, b.where, idx_sub(A, idx_const(A, r->last - 1), r->rank));
        s = stmt_block(c, b, s->nkids, s->kids, s->loc);
        bool never = false;
        for (uint32_t i = 0; i < b.where.n; i++)
            never |= idx_never(b.where.ge0[i]);
        if (never)
            s = stmt_seq(c, 0, NULL);
    }
    both[0] = forward ? placed : s;
    both[1] = forward ? s : placed;
    edit(w, stmt_at(w, site), stmt_seq(c, 2, both));
    return w->f;
}

/* W reduces inside `sub`: its spatial loops are walked again behind it. */
static const Func *follow(Work *w, uint32_t site, uint32_t own, const Move *m, const ReduceRank *r)
{
    Ctx        *c = w->c;
    Arith      *A = c->arith;
    const Stmt *s = stmt_at(w, site), *store = store_of(s);
    Sites       loops = loops_around_site(w, w->nest.at[own].parent, site), spatial = {0};
    AtomSet    *reduce = atomset_new(c->scratch);
    IdxSubst   *fresh = subst_new(A, c->scratch), *sub = subst_new(A, c->scratch);
    const Idx **value = NEW_ARRAY(c->scratch, const Idx *, m->t->ndim + 1);

    for (uint32_t i = 0; i < loops.n; i++) {
        if (loop_at(w, loops.at[i])->kind == LOOP_SPATIAL)
            vec_push(c->scratch, &spatial, loops.at[i]);
        else
            atomset_add(reduce, loop_at(w, loops.at[i])->var);
    }
    FreshLoops l = loops_fresh(w, &spatial, fresh);
    bind_iters(s, sub);
    for (uint32_t d = 0; d < m->t->ndim; d++)
        value[d] = idx_subst(fresh, idx_subst(sub, store->u.store.index[d]));
    Pred where = pred_subst(fresh, c->arena, where_without(w, s->u.block.where, reduce));
    where = pred_and(A, c->arena, where, idx_addc(A, r->rank, -r->last));
    Placement   p = {.tensor = m->t,
                     .value = value,
                     .where = where,
                     .redundant = s->u.block.redundant,
                     .round = m->round};
    const Stmt *placed = place_consumer(w, m->consumer, &p);
    if (!placed)
        return NULL;
    const Stmt *both[2] = {stmt_at(w, own), loops_wrap(c, l, placed)};
    edit(w, stmt_at(w, own), stmt_seq(c, 2, both));
    return w->f;
}

/* The tensor that the consumer reads and that is written inside the loops (or anywhere, if NULL).
 */
static const Buffer *tensor_between(Work *w, uint32_t site, const Sites *loops, Sites *writers)
{
    const Stmt   *consumer = stmt_at(w, site);
    Buffers       read = buffers_read(w->c, consumer);
    Sites         all = blocks_in(w, NO_SITE);
    const Buffer *t = NULL;

    for (uint32_t i = 0; i < read.n; i++) {
        Sites in = {0};
        bool  outside = false;
        for (uint32_t k = 0; k < all.n; k++) {
            if (!access_of(stmt_at(w, all.at[k]), read.at[i]).stores)
                continue;
            if (!loops || in_any(w, loops, all.at[k]))
                vec_push(w->c->scratch, &in, all.at[k]);
            else if (!reads_others(w, all.at[k], site, read.at[i], NO_SITE))
                outside = true;
        }
        if (!in.n)
            continue;
        if (outside) {
            refuse(w, "%%%s is also written elsewhere", read.at[i]->name);
            return NULL;
        }
        if (t) {
            refuse(w, "'%s' reads %%%s and %%%s from there", consumer->u.block.name, t->name,
                   read.at[i]->name);
            return NULL;
        }
        t = read.at[i];
        *writers = in;
    }
    if (!t)
        refuse(w, "'%s' reads nothing that is written there", consumer->u.block.name);
    return t;
}

/* What a block writes of b is complete where `site` runs, or not what the consumer reads. */
static bool is_complete(Work *w, uint32_t writer, uint32_t consumer, const Buffer *b, uint32_t site,
                        uint32_t frame)
{
    if (frame == NO_SITE)
        return w->nest.at[top_of(w, writer)].end <= top_of(w, site);
    if (!inside(w, writer, frame))
        return writer < frame;
    return w->nest.at[part_of(w, frame, writer)].end <= part_of(w, frame, site) ||
           reads_others(w, writer, consumer, b, frame);
}

bool inputs_ready(Work *w, uint32_t consumer, const Buffer *t, uint32_t site, uint32_t frame)
{
    Buffers read = buffers_read(w->c, stmt_at(w, consumer));
    Sites   all = blocks_in(w, NO_SITE);
    for (uint32_t i = 0; i < read.n; i++)
        for (uint32_t k = 0; k < all.n && read.at[i] != t; k++)
            if (access_of(stmt_at(w, all.at[k]), read.at[i]).stores &&
                !is_complete(w, all.at[k], consumer, read.at[i], site, frame))
                return refuse(w, "'%s' also reads %%%s, which is not complete there",
                              block_at(w, consumer)->name, read.at[i]->name) != NULL;
    return true;
}

static bool is_movable(Work *w, const Sites *blocks)
{
    for (uint32_t i = 0; i < blocks->n; i++) {
        const Stmt      *s = stmt_at(w, blocks->at[i]);
        const BlockData *b = &s->u.block;
        if (!is_pointwise(s))
            return refuse(w, "'%s' is a reduction", b->name) != NULL;
        if (!is_closed(w, blocks->at[i]) || !is_free(w, blocks->at[i]))
            return refuse(w, "'%s' depends on the loops around it", b->name) != NULL;
        if (b->redundant)
            return refuse(w, "'%s' may run more than once", b->name) != NULL;
    }
    return true;
}

/* Nobody else uses the cells that the consumer writes before it does. */
bool untouched_before(Work *w, const Sites *blocks, uint32_t from, uint32_t frame)
{
    const Stmt *s = stmt_at(w, blocks->at[0]);
    Buffers     out = buffers_written(w->c, s);
    Sites       all = blocks_in(w, NO_SITE);
    for (uint32_t i = 0; i < all.n && all.at[i] < blocks->at[blocks->n - 1]; i++) {
        const Stmt *other = stmt_at(w, all.at[i]);
        for (uint32_t k = 0;
             all.at[i] >= from && k < out.n && other->u.block.name != s->u.block.name; k++) {
            Access a = access_of(other, out.at[k]);
            if (a.stores ||
                (a.loads && !reads_others(w, blocks->at[0], all.at[i], out.at[k], frame)))
                return refuse(w, "'%s' uses %%%s before", other->u.block.name, out.at[k]->name) !=
                       NULL;
        }
    }
    return true;
}

/* Moves the consumer's block to where each of `writers` writes t. */
static const Func *move_to(Work *w, const Sites *blocks, const Buffer *t, const Sites *writers,
                           const Sites *loops)
{
    Move     m = {.consumer = stmt_at(w, blocks->at[0]), .t = t};
    uint32_t from = NO_SITE, round = NO_SITE;
    other_readers(w, &m, writers, loops);
    for (uint32_t i = 0; i < writers->n; i++) {
        uint32_t         site = writers->at[i], outer = NO_SITE, own;
        const Stmt      *s = stmt_at(w, site);
        const BlockData *b = &s->u.block;
        ReduceRank       rank;
        for (uint32_t k = 0; loops && k < loops->n; k++)
            if (inside(w, site, loops->at[k]))
                outer = loops->at[k];
        own = own_nest(w, outer, site);
        if (!store_of(s))
            return refuse(w, "'%s' writes more than one cell", b->name);
        uint32_t frame = frame_of(w, site, blocks), part = part_of(w, frame, site);
        m.round = frame == NO_SITE ? NULL : loop_at(w, frame)->var;
        round = i && round != frame ? NO_SITE : frame;
        if (!inputs_ready(w, blocks->at[0], t, site, frame))
            return NULL;
        from = frame == NO_SITE ? 0 : part < from ? part : from;
        for (uint32_t k = 0; k < blocks->n; k++)
            if (part_of(w, frame, blocks->at[k]) <= part)
                return refuse(w, "'%s' does not run after '%s'", m.consumer->u.block.name, b->name);
        if (b->redundant) /* nor need it compute every cell */
            return refuse(w, "'%s' computes only what the loops around it read", b->name);
        if (!reduce_rank(w, own, b->nreduce ? s : NULL, b->where, &rank))
            return NULL;
        if (!(is_pointwise(s) ? join(w, site, &m, &rank) : follow(w, site, own, &m, &rank)))
            return NULL;
    }
    if (!untouched_before(w, blocks, from, round))
        return NULL;
    for (uint32_t i = 0; i < blocks->n; i++)
        edit(w, stmt_at(w, blocks->at[i]), stmt_seq(w->c, 0, NULL));
    return finish(w);
}

const Func *step_reverse_compute_at(Work *w)
{
    const StepArg *ba = step_arg(w->st, 0), *la = step_arg(w->st, 1);
    Sites          blocks, loops, writers = {0};

    if (!ba || !ba->name || !la || !la->name)
        return refuse(w, "write `reverse_compute_at b %%l`");
    if (!blocks_named(w, ba->name, &blocks) || !loops_named(w, la->name, &loops) ||
        !is_movable(w, &blocks))
        return NULL;
    for (uint32_t i = 0; i < loops.n; i++)
        if (loop_at(w, loops.at[i])->vector)
            return refuse(w, "%%%s is a vector loop", la->name);
    const Buffer *t = tensor_between(w, blocks.at[0], &loops, &writers);
    return t ? move_to(w, &blocks, t, &writers, &loops) : NULL;
}

const Func *step_reverse_compute_inline(Work *w)
{
    const StepArg *ba = step_arg(w->st, 0);
    Sites          blocks, writers = {0}, all = blocks_in(w, NO_SITE);

    if (!ba || !ba->name)
        return refuse(w, "which block?");
    if (!blocks_named(w, ba->name, &blocks) || !is_movable(w, &blocks))
        return NULL;
    const Buffer *t = tensor_between(w, blocks.at[0], NULL, &writers);
    if (!t)
        return NULL;
    if (is_param(w, t))
        return refuse(w, "%%%s is a parameter", t->name);
    for (uint32_t i = 0; i < writers.n; i++)
        if (!is_pointwise(stmt_at(w, writers.at[i])))
            return refuse(w, "'%s' is a reduction", block_at(w, writers.at[i])->name);
    for (uint32_t i = 0; i < all.n; i++)
        if (block_at(w, all.at[i])->name != block_at(w, blocks.at[0])->name &&
            access_of(stmt_at(w, all.at[i]), t).loads)
            return refuse(w, "'%s' reads %%%s too", block_at(w, all.at[i])->name, t->name);
    return move_to(w, &blocks, t, &writers, NULL);
}
