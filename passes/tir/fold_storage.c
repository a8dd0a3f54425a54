/* fold_storage: tensors of a sequential loop keep the rounds that are still read.
 *
 *   alloc %s: f32[11,8] { .. %s[0,%j] ..  for %t<10 seq { .. %s[%t,%k] ..  %s[%t+1,%j] = .. } .. }
 *     -> alloc %s: f32[2,8] { .. %s[0,%j] ..  for %t<10 seq { .. %s[%t%2,%k] ..  %s[(%t+1)%2,%j] ..
 * }
 *
 * A scan gives every round cells of its own (ir/te/scan.c).  What is read in the round that writes
 * it only lies in the loop; of what is carried as many rounds lie in memory as there are between
 * the first read and the write, and one more, unless the write of a cell comes after all reads of
 * the cell that lay there.  Loops that touch different cells (directions one after the other) are
 * folded apart, each with a buffer of its own.  Cost: one walk an alloc and such a loop. */
#include "passes/passes.h"
#include "passes/tir/util.h"

typedef struct {
    const Idx *const      *index;
    const Stmt            *s;     /* the statement that makes it */
    uint32_t               order; /* of that statement */
    uint32_t               nloops;
    const LoopData *const *loops; /* around it, inside of the alloc, outermost first */
    bool                   store;
} Access;

typedef struct {
    Ctx          *c;
    const Buffer *b;
    VEC(Access) all;
    VEC(const LoopData *) loops; /* around the statement at hand */
    VEC(const LoopData *) seq;   /* those whose rounds a dimension may count */
    const Stmt *now;
    uint32_t    order;
    bool        escapes;
} Accesses;

static void note(Accesses *a, const Idx *const *index, bool store)
{
    Access x = {.index = index, .s = a->now, .order = a->order, .store = store};

    x.nloops = a->loops.n;
    x.loops = DUP_ARRAY(a->c->scratch, a->loops.at, a->loops.n);
    vec_push(a->c->scratch, &a->all, x);
}

static bool enter(void *user, const Stmt *s)
{
    Accesses       *a = user;
    const LoopData *l = &s->u.loop;

    if (s->kind == STMT_FOR)
        vec_push(a->c->scratch, &a->loops, l);
    if (s->kind == STMT_FOR && l->kind == LOOP_SEQ && l->var->lo != l->var->hi && !loop_marks(l))
        vec_push(a->c->scratch, &a->seq, l);
    if (s->kind == STMT_CALL)
        for (uint32_t i = 0; i < s->u.call.nargs; i++)
            a->escapes |= s->u.call.args[i].buffer == a->b;
    a->escapes |= s->kind == STMT_PREFETCH && s->u.prefetch.buffer == a->b;
    a->now = s;
    a->order++;
    if (s->kind == STMT_STORE && s->u.store.buffer == a->b)
        note(a, s->u.store.index, true);
    return true;
}

static void leave(void *user, const Stmt *s)
{
    Accesses *a = user;

    if (s->kind == STMT_FOR)
        a->loops.n--;
}

static void load(void *user, const Prim *p)
{
    Accesses *a = user;

    if (p->kind == PRIM_LOAD && p->u.load.buffer == a->b)
        note(a, p->u.load.index, false);
}

/* ---- what can be folded ----------------------------------------------------------------------------- */

/* Dimension `dim` counts the rounds of `loop`, of which `keep` lie in memory. */
typedef struct {
    const LoopData *loop;
    uint32_t        dim;
    int64_t         keep;
    bool            inside; /* nothing passes from round to round */
} Fold;

static bool is_in(const Access *a, const LoopData *loop)
{
    for (uint32_t i = 0; i < a->nloops; i++)
        if (a->loops[i] == loop)
            return true;
    return false;
}

/* index = loop's variable + offset */
static bool offset_of(Ctx *c, const Access *a, const Fold *f, int64_t *offset)
{
    return idx_is_const(idx_sub(c->arith, a->index[f->dim], idx_atom(c->arith, f->loop->var)),
                        offset);
}

/* The variables of these loops that x uses are its digits: each counts more than all that count
 * less come to. */
static bool has_digits(const Idx *x, uint32_t n, const LoopData *const *loops)
{
    for (uint32_t i = 0; i < n; i++) {
        int64_t coef = idx_coef(x, loops[i]->var), below = 0;

        if (!idx_uses(x, loops[i]->var))
            continue;
        for (uint32_t k = 0; k < n; k++) {
            const Atom *u = loops[k]->var;
            int64_t     by = idx_coef(x, u);

            if (k != i && by == coef)
                return false;
            if (by > 0 && by < coef)
                below += by * (u->hi - u->lo);
        }
        if (coef <= below)
            return false;
    }
    return true;
}

/* Different values of the variables of these loops are different cells. */
static bool is_one_to_one(const Access *a, uint32_t ndim, uint32_t n, const LoopData *const *loops)
{
    for (uint32_t i = 0; i < n; i++) {
        const Atom *v = loops[i]->var;
        bool        found = v->lo == v->hi;

        for (uint32_t d = 0; d < ndim && !found; d++)
            found = idx_uses(a->index[d], v) && has_digits(a->index[d], n, loops);
        if (!found)
            return false;
    }
    return true;
}

/* In a round, the load has happened before the store writes over its cell, if it does. */
static bool is_before(const Fold *f, const Access *load, const Access *store, uint32_t ndim)
{
    uint32_t first = 0, shared = 0;

    while (first < load->nloops && load->loops[first] != f->loop)
        first++;
    first++;
    while (first + shared < load->nloops && first + shared < store->nloops &&
           load->loops[first + shared] == store->loops[first + shared])
        shared++;
    for (uint32_t d = 0; d < ndim; d++)
        if (d != f->dim &&
            (load->index[d]->hi < store->index[d]->lo || store->index[d]->hi < load->index[d]->lo))
            return true;
    if (load->order > store->order)
        return false;
    if (!shared && load->s != store->s)
        return true;
    for (uint32_t d = 0; d < ndim; d++)
        if (d != f->dim && load->index[d] != store->index[d])
            return false;
    /* Loops around the load alone read a cell again, which the store has not changed meanwhile. */
    return is_one_to_one(store, ndim, shared, store->loops + first);
}

/* Accesses in the loop, and before and behind it, fit; f->keep and f->inside are set. */
static bool fits(const Accesses *a, Fold *f)
{
    Ctx       *c = a->c;
    Arith     *A = c->arith;
    const Idx *lo = f->loop->lo, *end = idx_add(A, lo, f->loop->extent);
    int64_t    first = INT64_MAX, last = INT64_MIN, at;
    uint32_t   from = UINT32_MAX, to = 0;
    bool       stored = false;

    f->inside = true;
    for (uint32_t i = 0; i < a->all.n; i++) {
        const Access *x = &a->all.at[i];

        if (!is_in(x, f->loop)) {
            f->inside = false;
            continue;
        }
        if (!offset_of(c, x, f, &at) || (x->store && stored && at != last) ||
            (!x->store && stored && at > last))
            return false;
        if (x->store && !stored && last > at)
            return false;
        stored |= x->store;
        first = at < first ? at : first;
        last = at > last ? at : last;
        from = x->order < from ? x->order : from;
        to = x->order > to ? x->order : to;
    }
    if (!stored)
        return false;
    f->keep = last - first + 1;
    f->inside &= f->keep == 1;
    bool in_place = f->keep > 1;
    for (uint32_t i = 0; i < a->all.n; i++) {
        const Access *x = &a->all.at[i];

        for (uint32_t k = 0; k < a->all.n && in_place && is_in(x, f->loop) && !x->store; k++)
            if (a->all.at[k].store && is_in(&a->all.at[k], f->loop) && offset_of(c, x, f, &at) &&
                at == first)
                in_place = is_before(f, x, &a->all.at[k], a->b->ndim);
    }
    f->keep -= in_place;
    for (uint32_t i = 0; i < a->all.n; i++) {
        const Access *x = &a->all.at[i];
        const Idx    *cell = x->index[f->dim];

        if (is_in(x, f->loop))
            continue;
        if (x->order < from) { /* a start: what the first rounds read */
            const Idx *rest = idx_sub(A, cell, idx_addc(A, lo, first));

            if (!x->store || rest->lo < 0 || rest->hi >= f->keep)
                return false;
        } else { /* behind: what the last rounds wrote */
            const Idx *rest = idx_sub(A, idx_addc(A, end, last - 1), cell);

            if (x->store || x->order < to || rest->lo < 0 || rest->hi >= f->keep)
                return false;
        }
    }
    return f->keep >= 1;
}

static bool find_fold(const Accesses *a, Fold *f)
{
    const Buffer *b = a->b;
    int64_t       n;

    if (a->escapes || b->halo || b->stride || b->alias)
        return false;
    for (uint32_t i = 0; i < a->seq.n; i++) {
        *f = (Fold){.loop = a->seq.at[i]};
        for (f->dim = 0; f->dim < b->ndim; f->dim++)
            if (fits(a, f) && !(idx_is_const(b->extent[f->dim], &n) && n <= f->keep && !f->inside))
                return true;
    }
    return false;
}

/* ---- the rewrite -------------------------------------------------------------------------------------- */

typedef struct {
    const Buffer *was, *now;
    uint32_t      dim;
    int64_t       keep;
} Rename;

static const Idx *const *folded(Ctx *c, const Rename *r, const Idx *const *index)
{
    const Idx **at = DUP_ARRAY(c->arena, index, r->was->ndim);

    at[r->dim] = idx_modc(c->arith, at[r->dim], r->keep);
    return at;
}

static const Prim *fold_load(Ctx *c, void *user, const Prim *p)
{
    const Rename *r = user;

    if (p->kind != PRIM_LOAD || p->u.load.buffer != r->was)
        return p;
    return prim_loadv(c, r->now, folded(c, r, p->u.load.index), p->dtype.lanes, p->u.load.mask);
}

static const Stmt *fold_store(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    const Rename    *r = user;
    const StoreData *d = &now->u.store;

    (void)was;
    if (now->kind != STMT_STORE || d->buffer != r->was)
        return now;
    return stmt_storev(c, r->now, folded(c, r, d->index), d->value, d->mask);
}

typedef struct {
    const LoopData *loop;
    const Buffer   *b;
} Place;

static const Stmt *alloc_in(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    const Place *p = user;

    (void)was;
    if (now->kind != STMT_FOR || now->u.loop.var != p->loop->var)
        return now;
    return stmt_for(c, now->u.loop, stmt_alloc(c, p->b, now->kids[0]), now->loc);
}

/* The alloc of a->b around s, folded; NULL if it cannot be. */
static const Stmt *fold_one(const Accesses *a, const Stmt *s)
{
    Ctx *c = a->c;
    Fold f;

    if (!find_fold(a, &f))
        return NULL;
    Buffer      changed = *a->b;
    const Idx **extent = DUP_ARRAY(c->arena, a->b->extent, a->b->ndim);

    extent[f.dim] = idx_const(c->arith, f.keep);
    changed.extent = extent;
    Rename r = {a->b, buffer_copy(c, a->b, changed), f.dim, f.keep};
    s = stmt_map(c, s, &(TirMap){.user = &r, .stmt = fold_store, .prim = fold_load});
    if (!f.inside)
        return stmt_alloc(c, r.now, s);
    Place in = {f.loop, r.now};
    return stmt_map(c, s, &(TirMap){.user = &in, .stmt = alloc_in});
}

/* ---- loops that have nothing to do with each other --------------------------------------------------- */

static Accesses accesses(Ctx *c, const Buffer *b, const Stmt *s)
{
    Accesses a = {.c = c, .b = b};

    stmt_visit(s, &(TirVisit){.user = &a, .enter = enter, .leave = leave, .prim = load});
    return a;
}

/* In some dimension all cells of x lie before those of y. */
static bool is_ahead(const Accesses *x, const Accesses *y)
{
    for (uint32_t d = 0; d < x->b->ndim; d++) {
        int64_t last = INT64_MIN, first = INT64_MAX;

        for (uint32_t i = 0; i < x->all.n; i++)
            last = x->all.at[i].index[d]->hi > last ? x->all.at[i].index[d]->hi : last;
        for (uint32_t i = 0; i < y->all.n; i++)
            first = y->all.at[i].index[d]->lo < first ? y->all.at[i].index[d]->lo : first;
        if (last < first)
            return true;
    }
    return false;
}

/* Which statements of seq touch b, and which of them the cells of the first that does, or those of
 * another such one. */
static void first_group(Ctx *c, const Buffer *b, const Stmt *seq, bool *touches, bool *in)
{
    Accesses *of = NEW_ARRAY(c->scratch, Accesses, seq->nkids + 1);
    bool      begun = false, more = true;

    for (uint32_t i = 0; i < seq->nkids; i++) {
        of[i] = accesses(c, b, seq->kids[i]);
        touches[i] = of[i].all.n > 0;
        in[i] = touches[i] && !begun;
        begun |= touches[i];
    }
    while (more) {
        more = false;
        for (uint32_t i = 0; i < seq->nkids; i++)
            for (uint32_t k = 0; k < seq->nkids && touches[i] && !in[i]; k++)
                if (in[k] && !is_ahead(&of[i], &of[k]) && !is_ahead(&of[k], &of[i]))
                    in[i] = more = true;
    }
}

static const Stmt *fold(Ctx *c, const Buffer *b, const Stmt *s);

/* A folded buffer for the first of the statements in s and what shares cells with it, and one for
 * the others; NULL if all share, or if those cannot be folded either. */
static const Stmt *fold_each(Ctx *c, const Buffer *b, const Stmt *s)
{
    if (s->kind == STMT_ALLOC) {
        const Stmt *in = fold_each(c, b, s->kids[0]);

        return in ? stmt_with_kids(c, s, &in) : NULL;
    }
    if (s->kind != STMT_SEQ)
        return NULL;
    bool         *touches = NEW_ARRAY(c->scratch, bool, s->nkids + 1);
    bool         *in = NEW_ARRAY(c->scratch, bool, s->nkids + 1), rest = false;
    const Stmt  **kids = DUP_ARRAY(c->arena, s->kids, s->nkids);
    const Buffer *own[2];

    first_group(c, b, s, touches, in);
    for (int i = 0; i < 2; i++)
        own[i] = buffer_copy(c, b, *b);
    for (uint32_t i = 0; i < s->nkids; i++) {
        rest |= touches[i] && !in[i];
        if (touches[i])
            kids[i] = buffer_replace(c, kids[i], b, own[!in[i]]);
    }
    s = rest ? fold(c, own[0], stmt_with_kids(c, s, kids)) : NULL;
    return s ? fold(c, own[1], s) : NULL;
}

static const Stmt *fold(Ctx *c, const Buffer *b, const Stmt *s)
{
    Accesses    a = accesses(c, b, s);
    const Stmt *now = fold_one(&a, s);

    return now || a.escapes || a.seq.n < 2 ? now : fold_each(c, b, s);
}

static const Stmt *fold_alloc(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    const Stmt *s = now->kind == STMT_ALLOC ? fold(c, now->u.buffer, now->kids[0]) : NULL;

    (void)user;
    (void)was;
    return s ? s : now;
}

static const Func *fold_func(Ctx *c, void *user, const Func *f)
{
    (void)user;
    return func_with_body(c, f, stmt_map(c, f->body, &(TirMap){.stmt = fold_alloc}));
}

const TirModule *fold_storage(Ctx *c, const TirModule *m)
{
    return tirmod_map(c, m, fold_func, NULL);
}
