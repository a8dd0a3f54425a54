/* compute_inline and fold_init: a definition disappears into its neighbours. */
#include "ir/sched/impl.h"

/* ---- compute_inline ------------------------------------------------------------------------------ */

typedef struct {
    const Stmt   *block;
    const Buffer *t;
    bool          filled; /* the block writes all cells */
    bool          beyond; /* a load may be of a cell that it does not write */
} Inline;

/* The block's iterator has the value `x` in one of its rounds. */
static bool in_domain(Arith *A, const Idx *x, const Atom *iter)
{
    return x->lo >= iter->lo && idx_sub(A, atom_most(A, iter), x)->lo >= 0;
}

static const Prim *inline_load(Ctx *c, void *user, const Prim *p)
{
    Inline *in = user;
    if (p->kind != PRIM_LOAD || p->u.load.buffer != in->t)
        return p;
    const Stmt      *store = store_of(in->block);
    const BlockData *b = &in->block->u.block;
    const Idx       *at[16];
    IdxSubst        *sub = subst_new(c->arith, c->scratch);
    if (!invert(c, in->t->ndim, store->u.store.index, p->u.load.index, b->nspatial, b->iter, at))
        BUG("compute_inline: the store of '%s' cannot be inverted", b->name);
    for (uint32_t i = 0; i < b->nspatial; i++)
        if (at[i]) {
            in->beyond |= !in->filled && !in_domain(c->arith, at[i], b->iter[i]);
            subst_bind(sub, b->iter[i], at[i]);
        }
    return prim_subst(c, store->u.store.value, sub);
}

/* Iterations (those that `at` solves for) and cells are as many.  Otherwise somebody may copy cells
 * that were never written, and must not compute them from operands that are not there. */
static bool fills(const Stmt *block, const Buffer *t, const Idx *const *at)
{
    const BlockData *b = &block->u.block;
    int64_t          cells = 1, rounds = 1;
    for (uint32_t d = 0; d < t->ndim; d++)
        if (!checked_mul(cells, idx_usual(t->extent[d]), &cells))
            return false;
    for (uint32_t i = 0; i < b->nspatial; i++)
        if (at[i] && !checked_mul(rounds, atom_usual(b->iter[i]), &rounds))
            return false;
    return cells == rounds;
}

/* What inline_load needs of a block that writes t; false: where it writes cannot be inverted. */
static bool find_inline(Work *w, const Stmt *block, const Buffer *t, Inline *in)
{
    const BlockData  *b = &block->u.block;
    const Idx *const *to = store_of(block)->u.store.index;
    const Idx        *at[16];

    if (b->nspatial > COUNT(at) || !invert(w->c, t->ndim, to, to, b->nspatial, b->iter, at))
        return false;
    *in = (Inline){block, t, fills(block, t, at), false};
    return true;
}

const Prim *loaded_value(Work *w, const Prim *load)
{
    const Buffer *t = load->u.load.buffer;
    uint32_t      def = NO_SITE;
    Inline        in;

    if (is_param(w, t))
        return NULL;
    Sites all = blocks_in(w, NO_SITE);
    for (uint32_t i = 0; i < all.n; i++) {
        if (!access_of(stmt_at(w, all.at[i]), t).stores)
            continue;
        if (def != NO_SITE)
            return NULL;
        def = all.at[i];
    }
    if (def == NO_SITE || !is_pointwise(stmt_at(w, def)) || !is_closed(w, def) ||
        !is_free(w, def) || !find_inline(w, stmt_at(w, def), t, &in))
        return NULL;
    const Prim *v = inline_load(w->c, &in, load);
    return in.beyond ? NULL : v;
}

bool sources_live(Work *w, uint32_t block, uint32_t reader)
{
    Buffers read = buffers_read(w->c, stmt_at(w, block));
    Sites   all = blocks_in(w, NO_SITE), one = {0};
    vec_push(w->c->scratch, &one, reader);
    uint32_t frame = frame_of(w, block, &one);
    for (uint32_t i = 0; i < read.n; i++)
        for (uint32_t k = 0; k < all.n; k++) {
            if (block_at(w, all.at[k])->name == block_at(w, block)->name ||
                !access_of(stmt_at(w, all.at[k]), read.at[i]).stores)
                continue;
            /* A loop around both the writer and the definition must hold the reader too. */
            for (uint32_t p = w->nest.at[block].parent; p != NO_SITE; p = w->nest.at[p].parent)
                if (stmt_at(w, p)->kind == STMT_FOR && inside(w, all.at[k], p) &&
                    !inside(w, reader, p))
                    return refuse(w, "%%%s is not complete where '%s' runs", read.at[i]->name,
                                  block_at(w, reader)->name) != NULL;
            bool after = frame != NO_SITE && !inside(w, all.at[k], frame);
            if (all.at[k] > block && !after &&
                !reads_others(w, all.at[k], block, read.at[i], frame))
                return refuse(w, "%%%s is written again", read.at[i]->name) != NULL;
        }
    return true;
}

enum { MAX_INLINED = 4096 };

static uint32_t count_prims(const Prim *p, uint32_t budget)
{
    uint32_t n = 1;
    for (uint32_t i = 0; i < p->nkids && n < budget; i++)
        n += count_prims(p->kids[i], budget - n);
    return n;
}

const Func *step_compute_inline(Work *w)
{
    const StepArg *ba = step_arg(w->st, 0);
    Sites          blocks, all = blocks_in(w, NO_SITE);
    bool           used = false;

    if (!ba || !ba->name)
        return refuse(w, "which block?");
    if (!blocks_named(w, ba->name, &blocks))
        return NULL;
    const Stmt      *block = stmt_at(w, blocks.at[0]), *store = store_of(block);
    const BlockData *b = &block->u.block;
    if (!is_pointwise(block))
        return refuse(w, "'%s' is a reduction", b->name);
    const Buffer *t = store->u.store.buffer;
    if (is_param(w, t))
        return refuse(w, "%%%s is an output", t->name);
    for (uint32_t i = 0; i < blocks.n; i++)
        if (!is_closed(w, blocks.at[i]) || !is_free(w, blocks.at[i]))
            return refuse(w, "'%s' depends on the loops around it", b->name);
    Inline in;
    if (!find_inline(w, block, t, &in))
        return refuse(w, "where '%s' writes cannot be inverted", b->name);
    for (uint32_t i = 0; i < all.n; i++) {
        const Stmt *s = stmt_at(w, all.at[i]);
        Access      a = access_of(s, t);
        if (s->u.block.name == b->name)
            continue;
        if (a.stores)
            return refuse(w, "'%s' also writes %%%s", s->u.block.name, t->name);
        if (!a.loads)
            continue;
        if (a.in_index || s->u.block.opaque)
            return refuse(w, "'%s' reads %%%s in an index or by hand", s->u.block.name, t->name);
        if (!sources_live(w, blocks.at[0], all.at[i]))
            return NULL;
        used = true;
        const Stmt *now = stmt_map(w->c, s, &(TirMap){.user = &in, .prim = inline_load});
        if (in.beyond)
            return refuse(w, "'%s' may read cells of %%%s that '%s' does not write",
                          s->u.block.name, t->name, b->name);
        for (uint32_t k = 0; k < now->nkids; k++)
            if (now->kids[k]->kind == STMT_STORE &&
                count_prims(now->kids[k]->u.store.value, MAX_INLINED) >= MAX_INLINED)
                return refuse(w, "'%s' would become too large", s->u.block.name);
        edit(w, s, now);
    }
    if (!used)
        return refuse(w, "nothing reads %%%s", t->name);
    for (uint32_t i = 0; i < blocks.n; i++)
        edit(w, stmt_at(w, blocks.at[i]), stmt_seq(w->c, 0, NULL));
    return finish(w);
}

/* ---- fold_init ------------------------------------------------------------------------------------- */

/* The operand of p that is added to the one load of t; NULL if p is no such sum. */
static const Prim *addend(const Prim *p, const Buffer *t)
{
    if (p->kind != PRIM_ADD)
        return NULL;
    for (int i = 0; i < 2; i++)
        if (p->kids[i]->kind == PRIM_LOAD && p->kids[i]->u.load.buffer == t &&
            !prim_access(p->kids[1 - i], t).loads)
            return p->kids[1 - i];
    return NULL;
}

static bool is_zero(const Prim *p)
{
    return (p->kind == PRIM_INT && !p->u.i) || (p->kind == PRIM_FLOAT && p->u.f == 0);
}

static const Idx *const *by_cell(Ctx *c, void *user, uint32_t n, const Idx *const *index)
{
    /* user: [t's ndim] coordinates, then the index of the new buffer over them */
    void             **u = user;
    const Atom *const *coord = u[0];
    const Idx *const  *now = u[1];
    const uint32_t    *ndim = u[2];
    IdxSubst          *sub = subst_new(c->arith, c->scratch);
    const Idx        **out = NEW_ARRAY(c->arena, const Idx *, *ndim + 1);
    for (uint32_t d = 0; d < n; d++)
        subst_bind(sub, coord[d], index[d]);
    for (uint32_t d = 0; d < *ndim; d++)
        out[d] = idx_subst(sub, now[d]);
    return out;
}

/* Reads and writes of `was` become those of `now`, whose cell is `index` where that of `was` has
 * the coordinates `coord`. */
static const Stmt *rename_cells(Ctx *c, const Stmt *s, const Buffer *was, const Atom *const *coord,
                                const Buffer *now, const Idx *const *index)
{
    uint32_t ndim = now->ndim;
    void    *user[3] = {(void *)(uintptr_t)coord, (void *)(uintptr_t)index, &ndim};
    return retarget(c, s, was, now, by_cell, user);
}

static const Atom **coordinates(Ctx *c, const Buffer *b)
{
    const Atom **at = NEW_ARRAY(c->scratch, const Atom *, b->ndim + 1);
    for (uint32_t d = 0; d < b->ndim; d++) { /* never a unit range: a unit would fold */
        int64_t hi = b->extent[d]->hi - 1;
        at[d] = atom_var(c->arith, "cell", 0, hi > 0 ? hi : 1);
    }
    return at;
}

const Func *step_fold_init(Work *w)
{
    Ctx           *c = w->c;
    const StepArg *ca = step_arg(w->st, 0);
    Sites          cons, prod, all = blocks_in(w, NO_SITE);

    if (!ca || !ca->name || w->st->nouts != 1)
        return refuse(w, "write `fold_init c -> b`");
    if (!blocks_named(w, ca->name, &cons) || !blocks_named(w, w->st->out[0], &prod))
        return NULL;
    const Stmt      *C = stmt_at(w, cons.at[0]), *B = stmt_at(w, prod.at[0]);
    const BlockData *cb = &C->u.block, *bb = &B->u.block;
    if (!bb->has_init || !store_of(B))
        return refuse(w, "'%s' is no reduction with a start", bb->name);
    const Buffer *t = store_of(B)->u.store.buffer;
    const Prim   *sum = store_of(B)->u.store.value;
    if (!addend(sum, t) && !(sum->kind == PRIM_FMA && sum->kids[2]->kind == PRIM_LOAD &&
                             sum->kids[2]->u.load.buffer == t))
        return refuse(w, "'%s' is not a sum", bb->name);
    if (!is_pointwise(C) || cons.n != 1 || !is_closed(w, cons.at[0]) || !is_free(w, cons.at[0]))
        return refuse(w, "'%s' is not plain and pointwise", cb->name);
    if (is_param(w, t))
        return refuse(w, "%%%s is an output", t->name);
    const Stmt   *cs = store_of(C);
    const Buffer *u = cs->u.store.buffer;
    const Prim   *e = addend(cs->u.store.value, t);
    if (!e || !dtype_eq(t->dtype, u->dtype))
        return refuse(w, "'%s' is not %%%s plus something", cb->name, t->name);
    for (uint32_t i = 0; i < all.n; i++) {
        const BlockData *b = block_at(w, all.at[i]);
        Access           a = access_of(stmt_at(w, all.at[i]), t);
        if (b->name != cb->name && b->name != bb->name && (a.loads || a.stores))
            return refuse(w, "'%s' uses %%%s too", b->name, t->name);
    }
    /* C's iterators by the cell of t; all cells of both tensors must correspond. */
    const Atom **tc = coordinates(c, t), **uc = coordinates(c, u);
    const Idx   *tcell[16], *ucell[16], *citer[16], *uiter[16], *back[16];
    Access       read = access_of(C, t);
    if (t->ndim > 16 || u->ndim > 16 || cb->nspatial > 16)
        return refuse(w, "too many dimensions");
    for (uint32_t d = 0; d < t->ndim; d++)
        tcell[d] = idx_atom(c->arith, tc[d]);
    for (uint32_t d = 0; d < u->ndim; d++)
        ucell[d] = idx_atom(c->arith, uc[d]);
    bool ok = invert(c, t->ndim, read.load, tcell, cb->nspatial, cb->iter, citer) &&
              invert(c, u->ndim, cs->u.store.index, ucell, cb->nspatial, cb->iter, uiter);
    int64_t nt = 1, nu = 1;
    for (uint32_t d = 0; d < t->ndim; d++)
        ok = ok && checked_mul(nt, idx_usual(t->extent[d]), &nt);
    for (uint32_t d = 0; d < u->ndim; d++)
        ok = ok && checked_mul(nu, idx_usual(u->extent[d]), &nu);
    for (uint32_t i = 0; ok && i < cb->nspatial; i++)
        ok = citer[i] && uiter[i];
    if (!ok || nt != nu)
        return refuse(w, "'%s' does not read each cell of %%%s once", cb->name, t->name);
    uint32_t frame = frame_of(w, cons.at[0], &prod);
    for (uint32_t i = 0; i < prod.n; i++) {
        if (!inputs_ready(w, cons.at[0], t, prod.at[i], frame))
            return NULL;
        if (part_of(w, frame, cons.at[0]) == part_of(w, frame, prod.at[i]))
            return refuse(w, "'%s' lies in the loops of '%s'", cb->name, bb->name);
    }
    if (!untouched_before(w, &cons, 0, NO_SITE))
        return NULL;
    IdxSubst *to_t = subst_new(c->arith, c->scratch), *to_u = subst_new(c->arith, c->scratch);
    for (uint32_t i = 0; i < cb->nspatial; i++) {
        subst_bind(to_t, cb->iter[i], citer[i]);
        subst_bind(to_u, cb->iter[i], uiter[i]);
    }
    e = prim_subst(c, e, to_t); /* over the cell of t */
    for (uint32_t d = 0; d < u->ndim; d++)
        back[d] = idx_subst(to_t, cs->u.store.index[d]); /* u's cell by t's */
    for (uint32_t i = 0; i < prod.n; i++) {
        const Stmt *s = stmt_at(w, prod.at[i]), *init = init_of(s);
        IdxSubst   *sub = subst_new(c->arith, c->scratch);
        for (uint32_t d = 0; d < t->ndim; d++)
            subst_bind(sub, tc[d], init->u.store.index[d]);
        const Prim  *start = prim_subst(c, e, sub);
        const Stmt **kids = DUP_ARRAY(c->arena, s->kids, s->nkids);
        if (!is_zero(init->u.store.value))
            start = prim_add(c, init->u.store.value, start);
        kids[0] = stmt_store(c, t, init->u.store.index, start);
        s = stmt_block(c, s->u.block, s->nkids, kids, s->loc);
        if (is_param(w, u)) /* the sum itself is the result */
            s = rename_cells(c, s, t, tc, u, back);
        edit(w, stmt_at(w, prod.at[i]), s);
    }
    /* Readers of C's tensor read the sum, unless the sum went there. */
    const Idx *there[16];
    for (uint32_t d = 0; d < t->ndim; d++)
        there[d] = idx_subst(to_u, read.load[d]);
    for (uint32_t i = 0; i < all.n && !is_param(w, u); i++) {
        const Stmt *s = stmt_at(w, all.at[i]);
        if (s->u.block.name != cb->name && access_of(s, u).loads)
            edit(w, s, rename_cells(c, s, u, uc, t, there));
    }
    edit(w, C, stmt_seq(c, 0, NULL));
    return finish(w);
}
