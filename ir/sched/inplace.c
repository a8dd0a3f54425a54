/* inplace %a -> %b: a lives in b's storage.  Legal if no cell of a is needed once that cell of b is
 * written: the block D that writes b reads a at that cell only, and every other access to a comes
 * before D gets to the cell:
 *   - in an earlier nest, or
 *   - in the same nest, at that cell only in the same iteration of the loops around both, before D
 * in the body, or guarded to run only before the last chunk while D runs in the last, or
 *   - in the same nest, at other cells (their boxes do not meet). */
#include "ir/sched/impl.h"

typedef struct {
    const Buffer *a, *b;
    Map          *canon; /* inner loops' variables by name: one for all copies */
} Inplace;

/* The deepest site that encloses both. */
static uint32_t meet(const Work *w, uint32_t x, uint32_t y)
{
    uint32_t p = x;
    while (p != NO_SITE && p != y && !inside(w, y, p))
        p = w->nest.at[p].parent;
    return p;
}

/* Index forms of a block over loops, those inside `common` named alike in all blocks. */
static void cell_forms(Work *w, const Inplace *k, uint32_t site, uint32_t common, uint32_t n,
                       const Idx *const *index, const Idx **out)
{
    Arith    *A = w->c->arith;
    IdxSubst *iters = subst_new(A, w->c->scratch), *names = subst_new(A, w->c->scratch);
    Sites     loops = loops_around_site(w, common, site);
    bind_iters(stmt_at(w, site), iters);
    for (uint32_t i = 0; i < loops.n; i++) {
        const Atom *v = loop_at(w, loops.at[i])->var;
        uint64_t    key = hash_mix(hash_mix(PTR_KEY(v->name), (uint64_t)v->lo), (uint64_t)v->hi);
        Atom       *one = map_get(k->canon, key);
        if (!one) {
            one = (Atom *)(uintptr_t)atom_like(A, v->name, v);
            map_put(k->canon, key, one);
        }
        subst_bind(names, v, idx_atom(A, one));
    }
    for (uint32_t d = 0; d < n; d++)
        out[d] = idx_subst(names, idx_subst(iters, index[d]));
}

/* The boxes of two blocks, while the loops inside `common` run, do not meet in some dimension. */
static bool apart(Work *w, uint32_t common, uint32_t x, uint32_t y, uint32_t n,
                  const Idx *const *ix, const Idx *const *iy)
{
    Arith   *A = w->c->arith;
    AtomSet *inner = atomset_new(w->c->scratch);
    for (uint32_t i = common + 1; i < w->nest.at[common].end; i++)
        if (stmt_at(w, i)->kind == STMT_FOR)
            atomset_add(inner, loop_at(w, i)->var);
    /* What one round leaves alone the next one may read. */
    for (uint32_t p = common; p != NO_SITE; p = w->nest.at[p].parent)
        if (stmt_at(w, p)->kind == STMT_FOR && loop_at(w, p)->kind == LOOP_SEQ)
            atomset_add(inner, loop_at(w, p)->var);
    IdxSubst *sx = subst_new(A, w->c->scratch), *sy = subst_new(A, w->c->scratch);
    bind_iters(stmt_at(w, x), sx);
    bind_iters(stmt_at(w, y), sy);
    for (uint32_t d = 0; d < n; d++) {
        const Idx *xl, *xh, *yl, *yh;
        idx_bound(A, idx_subst(sx, ix[d]), inner, &xl, &xh);
        idx_bound(A, idx_subst(sy, iy[d]), inner, &yl, &yh);
        if (idx_sub(A, yl, xh)->lo > 0 || idx_sub(A, xl, yh)->lo > 0)
            return true;
    }
    return false;
}

/* The two conditions can hold together for no iteration. */
static bool exclusive(Work *w, Pred p, Pred q)
{
    for (uint32_t i = 0; i < p.n; i++)
        for (uint32_t k = 0; k < q.n; k++)
            if (idx_add(w->c->arith, p.ge0[i], q.ge0[k])->hi < 0)
                return true;
    return false;
}

/* The part that two forms have in common although their inner loops differ: (32*b + r)//32 and
 * (32*b + s)//32 are b. */
static const Idx *common_part(Work *w, const Idx *x, const Idx *y)
{
    Arith *A = w->c->arith;
    if (x->c0 != y->c0)
        return NULL;
    for (uint32_t i = 0; i < x->nterms; i++) {
        int64_t k = x->t[i].coef;
        if (k < 2)
            continue;
        const Idx *q = idx_divc(A, idx_addc(A, x, -x->c0), k);
        if (!idx_is_const(q, NULL) && q == idx_divc(A, idx_addc(A, y, -y->c0), k))
            return q;
    }
    return NULL;
}

/* Where the two forms agree they tell the spatial loops around both: one cell is used by both only
 * in the same iteration of these. */
static bool same_iteration(Work *w, uint32_t common, uint32_t n, const Idx *const *x,
                           const Idx *const *y)
{
    const Idx **same = NEW_ARRAY(w->c->scratch, const Idx *, n + 1), *out;
    uint32_t    m = 0;
    for (uint32_t d = 0; d < n; d++)
        if (x[d] == y[d] || (out = common_part(w, x[d], y[d])))
            same[m++] = x[d] == y[d] ? x[d] : out;
    for (uint32_t p = common; p != NO_SITE; p = w->nest.at[p].parent) {
        if (stmt_at(w, p)->kind != STMT_FOR || loop_at(w, p)->kind == LOOP_REDUCE)
            continue;
        const Atom *v = loop_at(w, p)->var;
        if (!invert(w->c, m, same, same, 1, &v, &out) || !out)
            return false;
    }
    return true;
}

/* Every access of block x to a comes before block d writes that cell of b. */
static bool comes_before(Work *w, const Inplace *k, uint32_t x, uint32_t d)
{
    const Stmt *xs = stmt_at(w, x), *store = store_of(stmt_at(w, d));
    Access      a = access_of(xs, k->a);
    uint32_t    n = k->a->ndim, common = meet(w, x, d);
    const Idx **fx = NEW_ARRAY(w->c->scratch, const Idx *, n + 1);
    const Idx **fl = NEW_ARRAY(w->c->scratch, const Idx *, n + 1);
    const Idx **fd = NEW_ARRAY(w->c->scratch, const Idx *, n + 1);
    bool        loops = false;

    for (uint32_t p = common; p != NO_SITE; p = w->nest.at[p].parent)
        loops |= stmt_at(w, p)->kind == STMT_FOR;
    if (!loops)
        return x < d || refuse(w, "'%s' uses %%%s later", xs->u.block.name, k->a->name) != NULL;
    if (a.in_index || !a.same_load || xs->u.block.redundant)
        return refuse(w, "'%s' uses more than one cell of %%%s", xs->u.block.name, k->a->name) !=
               NULL;
    bool far = true;
    if (a.loads)
        far &= apart(w, common, x, d, n, a.load, store->u.store.index);
    if (a.stores)
        far &= apart(w, common, x, d, n, a.store, store->u.store.index);
    if (far)
        return true;
    cell_forms(w, k, d, common, n, store->u.store.index, fd);
    if (a.loads)
        cell_forms(w, k, x, common, n, a.load, fl);
    if (a.stores)
        cell_forms(w, k, x, common, n, a.store, fx);
    if ((a.loads && !same_iteration(w, common, n, fl, fd)) ||
        (a.stores && !same_iteration(w, common, n, fx, fd)))
        return refuse(w, "'%s' uses other cells of %%%s than '%s' writes", xs->u.block.name,
                      k->a->name, block_at(w, d)->name) != NULL;
    if (x < d || exclusive(w, xs->u.block.where, block_at(w, d)->where))
        return true;
    return refuse(w, "'%s' uses %%%s after '%s'", xs->u.block.name, k->a->name,
                  block_at(w, d)->name) != NULL;
}

/* D runs at one value of every reduce loop around it: in the last chunk, if there are several. */
static bool runs_once(Work *w, uint32_t d)
{
    ReduceRank       r;
    const BlockData *b = block_at(w, d);
    if (b->redundant)
        return refuse(w, "'%s' may run more than once", b->name) != NULL;
    if (!reduce_rank(w, d, NULL, b->where, &r))
        return false;
    return pred_implies(w->c->arith, b->where, idx_addc(w->c->arith, r.rank, -r.last)) ||
           refuse(w, "'%s' runs in every chunk", b->name) != NULL;
}

const Func *step_inplace(Work *w)
{
    const StepArg *aa = step_arg(w->st, 0);
    Sites          all = blocks_in(w, NO_SITE), writers = {0};

    if (!aa || !aa->name || w->st->nouts != 1)
        return refuse(w, "write `inplace %%a -> %%b`");
    const Buffer *a = buffer_named(w, aa->name), *b = a ? buffer_named(w, w->st->out[0]) : NULL;
    if (!b)
        return NULL;
    if (a == b || is_param(w, a))
        return refuse(w, "%%%s is a parameter", a->name);
    bool same =
        dtype_eq(a->dtype, b->dtype) && a->ndim == b->ndim && !a->halo && a->scope == b->scope;
    for (uint32_t d = 0; same && d < a->ndim; d++)
        same = a->extent[d] == b->extent[d];
    if (!same)
        return refuse(w, "%%%s and %%%s are not alike", a->name, b->name);
    bool longer =
        is_param(w, b) || inside(w, site_of(w, alloc_of(w, a)), site_of(w, alloc_of(w, b)));
    if (!longer && !inside(w, site_of(w, alloc_of(w, b)), site_of(w, alloc_of(w, a))))
        return refuse(w, "%%%s does not live as long as %%%s", b->name, a->name);
    Inplace k = {a, b, map_new(w->c->scratch)};
    for (uint32_t i = 0; i < all.n; i++) {
        const Stmt *s = stmt_at(w, all.at[i]);
        if (s->u.block.opaque && (access_of(s, a).loads || access_of(s, a).stores))
            return refuse(w, "'%s' is hand-written", s->u.block.name);
        if (access_of(s, b).stores)
            vec_push(w->c->scratch, &writers, all.at[i]);
    }
    if (!writers.n)
        return refuse(w, "nothing writes %%%s", b->name);
    for (uint32_t i = 0; i < writers.n; i++) {
        uint32_t    d = writers.at[i];
        const Stmt *s = stmt_at(w, d);
        Access      ra = access_of(s, a);
        if (!is_pointwise(s))
            return refuse(w, "'%s' is a reduction", s->u.block.name);
        if (ra.in_index || !ra.same_load ||
            (ra.loads && !same_index(a->ndim, ra.load, store_of(s)->u.store.index)))
            return refuse(w, "'%s' reads other cells of %%%s than it writes", s->u.block.name,
                          a->name);
        if (!runs_once(w, d))
            return NULL;
        for (uint32_t x = 0; x < all.n; x++) {
            Access xa = access_of(stmt_at(w, all.at[x]), a);
            bool   own = false; /* another writer of b: only its reads of a count */
            for (uint32_t j = 0; j < writers.n; j++)
                own |= writers.at[j] == all.at[x] && writers.at[j] == d;
            if (!own && (xa.loads || xa.stores) && !comes_before(w, &k, all.at[x], d))
                return NULL;
        }
    }
    /* The alloc that is left is the outer one; either way the storage is called b. */
    return with_buffer(w, drop_alloc(w, longer ? a : b), a, b);
}
