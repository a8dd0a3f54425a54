/* Scans: definitions that read what the round before left.
 *
 *     scan d<2 { %s[d,0,j] = ..  each t<10 { %sum[d,t,j] = ..  %s[d,t+1,j] = ..  } %h[d,j] = .. }
 *       -> for %d<2 {
 *            for %j<8 { block s.init }
 *            for %t<10 seq { for %j<8 { for %k<8 { block sum } }  for %j<8 { block s } }
 *            for %j<8 { block h } }
 *
 * Each cell of each tensor has one value still: the tensors have the rounds as a dimension, and a
 * carried one has one cell more, the start.  So blocks are spatial along the rounds, too, and only
 * the loop over them is sequential; the pass fold_storage keeps as many rounds as are in use. */
#include "ir/te/impl.h"

/* ---- makers --------------------------------------------------------------------------------------- */

Scan *te_scan(Ctx *c, Axes outer, const char *round, const Idx *rounds)
{
    Scan *k = NEW(c->arena, Scan);

    if (outer.n >= TE_MAX_AXES)
        BUG("a scan with %u outer axes", outer.n);
    Axes t = te_axes(c, 1, &rounds, &round);

    k->outer = outer;
    k->round = t.atom[0];
    k->t = t.at[0];
    k->rounds = rounds;
    return k;
}

const Tensor *te_scan_tensor(Ctx *c, Scan *k, const char *name, DType t, uint32_t n,
                             const Idx *const *extents)
{
    Axes    a = te_axes(c, n, extents, NULL);
    Tensor *x = tensor_new(c, TENSOR_SCAN,
                           buffer_new(c, intern(c->strings, name), t, SCOPE_ARENA, n,
                                      DUP_ARRAY(c->arena, extents, n)));

    x->scan = k;
    x->naxis = n;
    x->axis = DUP_ARRAY(c->arena, a.atom, n);
    vec_push(c->arena, &k->out, x);
    return x;
}

static ScanDef *add_def(Ctx *c, Scan *k, ScanPart part, const Tensor *t, const Idx *const *at,
                        const Axes *own, const Prim *body)
{
    ScanDef d = {.t = t,
                 .part = part,
                 .at = DUP_ARRAY(c->arena, at, t->naxis),
                 .naxis = own->n,
                 .axis = DUP_ARRAY(c->arena, own->atom, own->n),
                 .extent = DUP_ARRAY(c->arena, own->extent, own->n),
                 .body = body};

    vec_push(c->arena, &k->defs, d);
    return &k->defs.at[k->defs.n - 1];
}

void te_scan_def(Ctx *c, Scan *k, ScanPart part, const Tensor *t, const Idx *const *at, Axes own,
                 const Prim *body)
{
    add_def(c, k, part, t, at, &own, body);
}

void te_scan_reduce(Ctx *c, Scan *k, ScanPart part, const Tensor *t, const Idx *const *at, Axes own,
                    Combiner comb, Axes raxes, const Prim *body)
{
    ScanDef *d = add_def(c, k, part, t, at, &own, body);

    d->reduces = true;
    d->comb = comb;
    d->nreduce = raxes.n;
    d->raxis = DUP_ARRAY(c->arena, raxes.atom, raxes.n);
    d->rextent = DUP_ARRAY(c->arena, raxes.extent, raxes.n);
}

/* The definition of t in that part, among the first n; NULL: there is none. */
static const ScanDef *def_of(const Scan *k, uint32_t n, const Tensor *t, ScanPart part)
{
    for (uint32_t i = 0; i < n; i++)
        if (k->defs.at[i].t == t && k->defs.at[i].part == part)
            return &k->defs.at[i];
    return NULL;
}

bool te_carried(const Scan *k, const Tensor *t)
{
    return def_of(k, k->defs.n, t, SCAN_START) && def_of(k, k->defs.n, t, SCAN_EACH);
}

/* ---- what a scan must be ------------------------------------------------------------------------ */

/* The dimension of d that counts rounds: the one whose index is neither an axis of its own nor an
 * outer one; ndim: none.  False: there are two, or an axis is left out, or used twice. */
static bool round_dim(Ctx *c, const Scan *k, const ScanDef *d, uint32_t *dim)
{
    uint32_t ndim = d->t->naxis;
    bool     taken[TE_MAX_AXES] = {false};

    for (uint32_t i = 0; i < k->outer.n + d->naxis; i++) {
        uint32_t   own = i - k->outer.n, at = 0;
        const Idx *axis = i < k->outer.n ? k->outer.at[i] : idx_atom(c->arith, d->axis[own]);
        const Idx *size = i < k->outer.n ? k->outer.extent[i] : d->extent[own];

        while (at < ndim && (taken[at] || d->at[at] != axis || d->t->buffer->extent[at] != size))
            at++;
        if (at < ndim)
            taken[at] = true;
        else if (axis->lo != axis->hi)
            return false;
    }
    *dim = ndim;
    for (uint32_t i = 0; i < ndim; i++) {
        bool one = d->t->buffer->extent[i] == idx_const(c->arith, 1);

        if (taken[i] || (one && d->at[i] == idx_const(c->arith, 0)))
            continue;
        if (*dim < ndim)
            return false;
        *dim = i;
    }
    return true;
}

enum { MAX_TURNS = 64 };

/* x is a cell of n.  For all values of the outer axes it is the round, or the round counted
 * backwards, plus a number: no two rounds have one cell. */
static bool is_one_to_one(Ctx *c, const Scan *k, const Idx *x, const Idx *n)
{
    Arith  *A = c->arith;
    int64_t turns = 1, step;

    for (uint32_t i = 0; i < k->outer.n; i++)
        if (idx_uses(x, k->outer.atom[i]) &&
            (!checked_mul(turns, k->outer.atom[i]->hi + 1, &turns) || turns > MAX_TURNS))
            return false;
    for (int64_t turn = 0; turn < turns; turn++) {
        IdxSubst *now = subst_new(A, c->scratch);
        int64_t   rest = turn;

        for (uint32_t i = 0; i < k->outer.n; i++)
            if (idx_uses(x, k->outer.atom[i])) {
                subst_bind(now, k->outer.atom[i], idx_const(A, rest % (k->outer.atom[i]->hi + 1)));
                rest /= k->outer.atom[i]->hi + 1;
            }
        const Idx *at = idx_subst(now, x);
        step = idx_coef(at, k->round);
        if (k->rounds->hi < 1)
            continue;
        if (at->lo < 0 || idx_sub(A, n, at)->lo < 1 || (k->rounds->hi > 1 && step * step != 1) ||
            idx_uses(idx_sub(A, at, idx_mulc(A, k->t, step)), k->round))
            return false;
    }
    return true;
}

static const char *cell_fault(Ctx *c, const Scan *k, const ScanDef *d)
{
    Arith        *A = c->arith;
    const Buffer *b = d->t->buffer;
    uint32_t      dim;
    bool          both = te_carried(k, d->t);

    if (!round_dim(c, k, d, &dim))
        return "is not given one cell for each of the axes";
    if (!both && d->part != SCAN_EACH)
        return dim < b->ndim ? "is not given all of its cells" : NULL;
    if (dim == b->ndim) /* as many rounds as one cell holds */
        return k->rounds->hi > !both ? "has no dimension for the rounds" : NULL;
    if (!both)
        return b->extent[dim] != k->rounds ? "is not given all of its cells"
               : !is_one_to_one(c, k, d->at[dim], b->extent[dim])
                   ? "is not given a cell of its own by each round"
                   : NULL;
    if (b->extent[dim] != idx_addc(A, k->rounds, 1) ||
        d->at[dim] != (d->part == SCAN_START ? idx_const(A, 0) : idx_addc(A, k->t, 1)))
        return "is carried, and not from cell 0 to that after each round";
    return NULL;
}

typedef struct {
    Ctx           *c;
    const Scan    *k;
    const ScanDef *def;
    uint32_t       ndefs; /* before it */
    const char    *fault;
} Reads;

/* What a definition may read of tensor x of its scan. */
static const char *read_fault(Reads *r, const Tensor *x, const Idx *const *at)
{
    Arith         *A = r->c->arith;
    const Scan    *k = r->k;
    const ScanDef *start = def_of(k, r->ndefs, x, SCAN_START);
    const ScanDef *each = def_of(k, r->ndefs, x, SCAN_EACH);
    const ScanDef *by = def_of(k, k->defs.n, x, SCAN_EACH);
    bool           carried = by && start;
    uint32_t       dim = x->naxis;

    if (!by)
        by = start ? start : def_of(k, r->ndefs, x, SCAN_END);
    if (!by || !(start || each || by->part == SCAN_END) || !round_dim(r->c, k, by, &dim))
        return "is read before it is there";
    for (uint32_t i = 0; i < x->naxis; i++)
        for (uint32_t a = 0; a < k->outer.n; a++)
            if (by->at[i] == k->outer.at[a] && i != dim && at[i] != by->at[i])
                return "is read where another outer cell is computed";
    if (dim == x->naxis || r->def->part == SCAN_END)
        return NULL;
    if (r->def->part == SCAN_START)
        return at[dim] == idx_const(A, 0) ? NULL : "is read before it is there";
    if ((carried && at[dim] == k->t) || (each && at[dim] == by->at[dim]))
        return NULL;
    return "is read at another round";
}

static void check_read(void *user, const Prim *p)
{
    Reads        *r = user;
    const Tensor *x = p->kind == PRIM_LOAD ? map_get(r->c->tensors, p->u.load.buffer->id) : NULL;

    if (x && x->scan == r->k && !r->fault && (r->fault = read_fault(r, x, p->u.load.index)))
        r->fault = arena_printf(r->c->arena, "'%%%s' %s", x->buffer->name, r->fault);
}

static const char *def_fault(Ctx *c, const Scan *k, uint32_t i)
{
    const ScanDef *d = &k->defs.at[i];
    Reads          r = {.c = c, .k = k, .def = d, .ndefs = i};

    for (uint32_t j = 0; j < i; j++) {
        const ScanDef *was = &k->defs.at[j];

        if (was->part > d->part)
            return "its definitions are not in order";
        if (was->t == d->t && !(was->part == SCAN_START && d->part == SCAN_EACH))
            return arena_printf(c->arena, "'%%%s' is defined twice", d->t->buffer->name);
    }
    const char *fault = cell_fault(c, k, d);
    if (fault)
        return arena_printf(c->arena, "'%%%s' %s", d->t->buffer->name, fault);
    prim_visit(d->body, &(TirVisit){.user = &r, .prim = check_read});
    return r.fault;
}

const char *te_scan_end(Ctx *c, Scan *k)
{
    Tensors all = {0};

    for (uint32_t i = 0; i < k->defs.n; i++) {
        const char *fault = def_fault(c, k, i);

        if (fault)
            return fault;
        add_loads(c, k->defs.at[i].body, &all);
    }
    for (uint32_t i = 0; i < all.n; i++)
        if (all.at[i]->scan != k)
            vec_push(c->arena, &k->in, all.at[i]);
    for (uint32_t i = 0; i < k->out.n; i++) {
        Tensor *t = (Tensor *)(uintptr_t)k->out.at[i]; /* nobody else has seen it yet */

        t->ndeps = k->in.n;
        t->deps = k->in.at;
    }
    return NULL;
}

/* ---- the nest ---------------------------------------------------------------------------------- */

static const Stmt *part_nest(Ctx *c, const Scan *k, ScanPart part, const Axes *iters,
                             const Atom *const *around,
                             const char *(*name)(void *user, const Tensor *t), void *user, Loc loc)
{
    const Stmt **stmts = NEW_ARRAY(c->scratch, const Stmt *, k->defs.n + 1);
    uint32_t     n = 0;

    for (uint32_t i = 0; i < k->defs.n; i++) {
        const ScanDef *d = &k->defs.at[i];
        const char    *block = name(user, d->t);

        if (d->part != part)
            continue;
        if (part == SCAN_START && te_carried(k, d->t))
            block = intern_printf(c->strings, "%s.init", block);
        stmts[n++] = nest_of(c, block, d, iters, around, loc);
    }
    return stmt_seq(c, n, stmts);
}

const Stmt *scan_nest(Ctx *c, const Scan *k, const char *(*name)(void *user, const Tensor *t),
                      void *user, Loc loc)
{
    Arith      *A = c->arith;
    Axes        iters = k->outer;
    uint32_t    n = k->outer.n;
    const Atom *var[TE_MAX_AXES + 1];
    const Stmt *parts[3];

    for (uint32_t i = 0; i < n; i++)
        var[i] = atom_like(A, k->outer.atom[i]->name, k->outer.atom[i]);
    var[n] = atom_like(A, k->round->name, k->round);
    parts[0] = part_nest(c, k, SCAN_START, &iters, var, name, user, loc);
    parts[2] = part_nest(c, k, SCAN_END, &iters, var, name, user, loc);
    iters.atom[n] = k->round;
    iters.at[n] = k->t;
    iters.extent[n] = k->rounds;
    iters.n = n + 1;
    LoopData l = {.var = var[n], .lo = idx_const(A, 0), .extent = k->rounds, .kind = LOOP_SEQ};
    parts[1] = stmt_for(c, l, part_nest(c, k, SCAN_EACH, &iters, var, name, user, loc), loc);
    return loops_around(c, n, var, k->outer.extent, n, stmt_seq(c, 3, parts), loc);
}
