/* Solving  index(iterators) = cell  for the iterators, and placing a consumer at a cell.
 *
 * A solution is guessed from the form of the indices (an iterator plus a constant; a digit of a
 * mixed-radix number; i//8 and i%8 together give i) as forms over the cell's coordinates, and then
 * proved: with the coordinates replaced by the indices it must come out as the iterator itself.
 * So every iteration of the consumer is found at the cell it reads; cells that no iteration reads
 * are excluded by conditions. */
#include "ir/sched/impl.h"

typedef struct {
    Ctx              *c;
    uint32_t          n;
    const Idx *const *index;
    const Atom      **coord; /* stand for the cell's coordinates */
    IdxSubst         *check; /* coordinate -> index */
} Solve;

static bool proves(Solve *s, const Idx *guess, const Atom *iter)
{
    return idx_subst(s->check, guess) == idx_atom(s->c->arith, iter);
}

/* index[d] = .. + coef*iter + ..: the digit at coef. */
static const Idx *guess_digit(Solve *s, const Atom *iter, uint32_t d)
{
    Arith     *A = s->c->arith;
    int64_t    coef = idx_coef(s->index[d], iter);
    const Idx *x = idx_addc(A, idx_atom(A, s->coord[d]), -s->index[d]->c0);
    if (!coef)
        return NULL;
    if (coef < 0) {
        x = idx_mulc(A, x, -1);
        coef = -coef;
    }
    x = idx_divc(A, x, coef);
    if (proves(s, x, iter))
        return x;
    if (iter->lo)
        return NULL;
    x = idx_modc(A, x, iter->hi + 1);
    return proves(s, x, iter) ? x : NULL;
}

/* index[d] = scale * digit + ..: the digit of iter that counts `weight`, 0 if there is none: k of
 * the finest iter//k in it, 1 for iter itself. */
static int64_t digit_weight(const Idx *x, const Atom *iter, int64_t *scale)
{
    int64_t w = 0;

    *scale = idx_coef(x, iter);
    if (*scale >= 1)
        return 1;
    for (uint32_t i = 0; i < x->nterms; i++) {
        const Atom *a = x->t[i].atom;
        if (a->kind != ATOM_DIV || x->t[i].coef < 1 || !idx_uses(a->a, iter))
            continue;
        if (!w || a->k < w)
            w = a->k, *scale = x->t[i].coef;
    }
    return w;
}

static const Idx *guess_sum(Solve *s, const Atom *iter)
{
    Arith     *A = s->c->arith;
    const Idx *x = idx_const(A, 0);
    for (uint32_t d = 0; d < s->n; d++) {
        int64_t    scale, weight = digit_weight(s->index[d], iter, &scale);
        const Idx *digit = idx_atom(A, s->coord[d]);
        if (weight && scale > 1)
            digit = idx_divc(A, idx_addc(A, digit, -s->index[d]->c0), scale);
        if (weight)
            x = idx_add(A, x, idx_mulc(A, digit, weight));
    }
    return proves(s, x, iter) ? x : NULL;
}

static bool occurs(Solve *s, const Atom *iter)
{
    for (uint32_t d = 0; d < s->n; d++)
        if (idx_uses(s->index[d], iter))
            return true;
    return false;
}

bool invert(Ctx *c, uint32_t n, const Idx *const *index, const Idx *const *value, uint32_t niter,
            const Atom *const *iter, const Idx **out)
{
    Solve     s = {c, n, index, NEW_ARRAY(c->scratch, const Atom *, n + 1),
                   subst_new(c->arith, c->scratch)};
    IdxSubst *put = subst_new(c->arith, c->scratch);
    for (uint32_t d = 0; d < n; d++) {
        /* A range of two at least, else the atom would fold. */
        int64_t hi = index[d]->hi > index[d]->lo ? index[d]->hi : index[d]->lo + 1;
        s.coord[d] = atom_var(c->arith, "cell", index[d]->lo, hi);
        subst_bind(s.check, s.coord[d], index[d]);
        subst_bind(put, s.coord[d], value[d]);
    }
    for (uint32_t i = 0; i < niter; i++) {
        const Idx *x = NULL;
        out[i] = NULL;
        if (iter[i]->lo == iter[i]->hi) {
            out[i] = idx_const(c->arith, iter[i]->lo);
            continue;
        }
        if (!occurs(&s, iter[i]))
            continue;
        for (uint32_t d = 0; d < n && !x; d++)
            x = guess_digit(&s, iter[i], d);
        if (!x)
            x = guess_sum(&s, iter[i]);
        if (!x)
            return false;
        out[i] = idx_subst(put, x);
    }
    return true;
}

/* ---- placing a consumer ------------------------------------------------------------------------- */

typedef struct {
    const Buffer *tensor;
    const Prim   *value;
} Forward;

static const Prim *forward_load(Ctx *c, void *user, const Prim *p)
{
    const Forward *f = user;
    (void)c;
    return p->kind == PRIM_LOAD && p->u.load.buffer == f->tensor ? f->value : p;
}

/* An iterator that is a dimension's index, of as many cells as there are: it stays in its range,
 * since cells of the tensor do. */
static bool is_dimension(Ctx *c, const Buffer *b, const Idx *const *index, const Atom *iter)
{
    const Atom *a;

    for (uint32_t d = 0; d < b->ndim; d++)
        if (idx_is_atom(index[d], &a) && a == iter)
            return !iter->lo && idx_addc(c->arith, atom_most(c->arith, iter), 1) == b->extent[d];
    return false;
}

const Stmt *place_consumer(Work *w, const Stmt *consumer, const Placement *p)
{
    Ctx         *c = w->c;
    Arith       *A = c->arith;
    BlockData    b = consumer->u.block;
    Access       a = access_of(consumer, p->tensor);
    const Idx  **bind = NEW_ARRAY(c->arena, const Idx *, b.nspatial);
    const Atom **extra = NEW_ARRAY(c->scratch, const Atom *, b.nspatial);
    uint32_t     nextra = 0, n = p->tensor->ndim;

    if (!a.loads || !a.same_load || a.in_index) {
        refuse(w, "'%s' reads more than one cell of %%%s", b.name, p->tensor->name);
        return NULL;
    }
    for (uint32_t d = 0; d < n; d++) /* each of its iterations is at some cell */
        if (a.load[d]->lo < 0 || idx_sub(A, p->tensor->extent[d], a.load[d])->lo < 1) {
            refuse(w, "'%s' has cells that read nothing of %%%s", b.name, p->tensor->name);
            return NULL;
        }
    if (!invert(c, n, a.load, p->value, b.nspatial, b.iter, bind)) {
        refuse(w, "how '%s' reads %%%s cannot be inverted", b.name, p->tensor->name);
        return NULL;
    }
    b.where = p->where;
    for (uint32_t i = 0; i < b.nspatial; i++) {
        if (!bind[i]) {
            const char *name = intern_printf(c->strings, "%s.%s", b.name, b.iter[i]->name);
            extra[nextra] = atom_like(A, name, b.iter[i]);
            bind[i] = idx_atom(A, extra[nextra++]);
        }
        if (p->round && idx_uses(b.bind[i], p->round) && bind[i] != b.bind[i]) {
            refuse(w, "'%s' would run in another round", b.name);
            return NULL;
        }
        if (is_dimension(c, p->tensor, a.load, b.iter[i]))
            continue;
        b.where = pred_and(A, c->arena, b.where, idx_addc(A, bind[i], -b.iter[i]->lo));
        b.where = pred_and(A, c->arena, b.where, idx_sub(A, atom_most(A, b.iter[i]), bind[i]));
    }
    b.bind = bind;
    b.redundant = p->redundant;
    IdxSubst *sub = subst_new(A, c->scratch);
    for (uint32_t i = 0; i < b.nspatial; i++)
        subst_bind(sub, b.iter[i], bind[i]);
    for (uint32_t d = 0; d < n; d++) { /* cells that it does not read */
        const Idx *off = idx_sub(A, idx_subst(sub, a.load[d]), p->value[d]);
        b.where = pred_and(A, c->arena, b.where, off);
        b.where = pred_and(A, c->arena, b.where, idx_mulc(A, off, -1));
    }
    const Stmt *store = store_of(consumer);
    const Prim *value = store->u.store.value;
    if (p->forward) {
        Forward f = {p->tensor, p->forward};
        value = prim_map(c, value, &(TirMap){.user = &f, .prim = forward_load});
    }
    store = stmt_store(c, store->u.store.buffer, store->u.store.index, value);
    const Stmt *s = stmt_block(c, b, 1, &store, consumer->loc);
    for (uint32_t i = nextra; i-- > 0;)
        s = loop_of(c, extra[i], LOOP_SPATIAL, s, consumer->loc);
    return s;
}
