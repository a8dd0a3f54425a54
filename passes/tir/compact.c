/* compact: allocs sink to the innermost loop that holds all their uses, and shrink to the region
 * used there.
 *
 *   alloc %e: f32[64,128] { for %i<64 { for %j<128 { %e[%i,%j] = .. }  for %j<128 { .. %e[%i,%j] }
 * } }
 *     -> for %i<64 { alloc %e: f32[1,128] { .. %e[0,%j] .. } }
 *
 * An alloc sinks through spatial loops only, and others that run once, or of which every round
 * stores the one cell that it uses first: a reduce or sequential loop may carry values from one
 * iteration to the next.  In a parallel loop each thread has its own. The region of a dimension is
 * the hull over all accesses (ir/arith), exact where lower ends differ by constants; otherwise the
 * dimension is kept whole.  A symbolic one shrinks to a number, or what lay on the stack moves to
 * the thread's scratch, which has room for the largest.  Registers of which statements one after
 * another use different cells are their own in each.  Buffers with a halo keep their shape. Cost:
 * one walk an alloc. */
#include "passes/passes.h"
#include "passes/tir/util.h"

typedef VEC(const Idx *const *) AccessList;

typedef struct {
    Ctx          *c;
    const Buffer *b;
    AccessList    at;      /* index arrays of every access */
    AtomSet      *inner;   /* variables of the loops in the alloc */
    bool          escapes; /* passed to a call: indices are not known */
} Accesses;

static void access_prim(void *user, const Prim *p)
{
    Accesses *a = user;

    if (p->kind == PRIM_LOAD && p->u.load.buffer == a->b)
        vec_push(a->c->arena, &a->at, p->u.load.index);
}

static bool access_stmt(void *user, const Stmt *s)
{
    Accesses *a = user;

    if (s->kind == STMT_STORE && s->u.store.buffer == a->b)
        vec_push(a->c->arena, &a->at, s->u.store.index);
    if (s->kind == STMT_FOR && a->inner)
        atomset_add(a->inner, s->u.loop.var);
    if (s->kind == STMT_CALL)
        for (uint32_t i = 0; i < s->u.call.nargs; i++)
            if (s->u.call.args[i].buffer == a->b)
                a->escapes = true;
    return true;
}

static Accesses accesses(Ctx *c, const Stmt *s, const Buffer *b, bool loops)
{
    Accesses a = {.c = c, .b = b, .inner = loops ? atomset_new(c->arena) : NULL};
    TirVisit v = {&a, access_stmt, NULL, access_prim, NULL};

    stmt_visit(s, &v);
    return a;
}

static bool any(const Accesses *a)
{
    return a->at.n || a->escapes;
}

static bool uses(Ctx *c, const Stmt *s, const Buffer *b)
{
    Accesses a = accesses(c, s, b, false);

    return any(&a);
}

typedef struct {
    const Buffer     *from, *to;
    const Idx *const *lo;
} Shift;

static const Idx *const *shifted(Ctx *c, const Shift *x, const Idx *const *index)
{
    const Idx **out = NEW_ARRAY(c->arena, const Idx *, x->from->ndim + 1);

    for (uint32_t d = 0; d < x->from->ndim; d++)
        out[d] = idx_sub(c->arith, index[d], x->lo[d]);
    return out;
}

static const Prim *shift_prim(Ctx *c, void *user, const Prim *p)
{
    const Shift *x = user;

    if (p->kind != PRIM_LOAD || p->u.load.buffer != x->from)
        return p;
    return prim_loadv(c, x->to, shifted(c, x, p->u.load.index), p->dtype.lanes, p->u.load.mask);
}

static const Stmt *shift_stmt(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    const Shift *x = user;

    (void)was;
    if (now->kind != STMT_STORE || now->u.store.buffer != x->from)
        return now;
    const StoreData *d = &now->u.store;
    return stmt_storev(c, x->to, shifted(c, x, d->index), d->value, d->mask);
}

/* The alloc of b around s; the stack has no room of unknown size. */
static const Stmt *alloc_of(Ctx *c, const Buffer *b, const Stmt *s)
{
    Buffer now = *b;

    for (uint32_t d = 0; b->scope == SCOPE_STACK && d < b->ndim; d++)
        if (!idx_is_const(b->extent[d], NULL))
            now.scope = SCOPE_PRIVATE;
    if (now.scope == b->scope)
        return stmt_alloc(c, b, s);
    const Buffer *own = buffer_copy(c, b, now);
    return stmt_alloc(c, own, buffer_replace(c, s, b, own));
}

/* ... shrunk to what s uses of it. */
static const Stmt *shrink(Ctx *c, const Buffer *b, const Stmt *s)
{
    Accesses    a = accesses(c, s, b, true);
    const Idx **lo = NEW_ARRAY(c->arena, const Idx *, b->ndim + 1);
    const Idx **extent = NEW_ARRAY(c->arena, const Idx *, b->ndim + 1);
    bool        changed = false;

    if (!a.at.n || a.escapes || b->halo || b->stride || b->alias)
        return alloc_of(c, b, s);
    for (uint32_t d = 0; d < b->ndim; d++) {
        const Idx *base = NULL;
        int64_t    below = 0, above = 0, whole = idx_usual(b->extent[d]);
        bool       known = whole > 0;
        for (uint32_t i = 0; known && i < a.at.n; i++) {
            const Idx *l, *h;
            int64_t    off = 0;
            idx_bound(c->arith, a.at.at[i][d], a.inner, &l, &h);
            if (!base)
                base = l;
            int64_t n = idx_extent(c->arith, l, h);
            known = n < INT64_MAX && idx_is_const(idx_sub(c->arith, l, base), &off);
            if (!known)
                break;
            if (off < below)
                below = off;
            if (off + n > above)
                above = off + n;
        }
        lo[d] = idx_const(c->arith, 0);
        extent[d] = b->extent[d];
        if (!known || above - below >= whole)
            continue;
        lo[d] = idx_addc(c->arith, base, below);
        extent[d] = idx_const(c->arith, above - below);
        changed = true;
    }
    if (!changed)
        return alloc_of(c, b, s);
    Buffer now = *b;
    now.extent = extent;
    Shift  x = {b, buffer_copy(c, b, now), lo};
    TirMap map = {&x, shift_stmt, shift_prim, NULL, NULL};
    return alloc_of(c, x.to, stmt_map(c, s, &map));
}

/* An `if` on what the buffer holds keeps the alloc outside. */
static bool reads(Ctx *c, const Prim *p, const Buffer *b)
{
    Accesses a = {.c = c, .b = b};
    TirVisit v = {&a, NULL, NULL, access_prim, NULL};

    prim_visit(p, &v);
    return a.at.n > 0;
}

/* A loop from one iteration of which nothing passes to the next. */
static bool is_independent(const Stmt *s)
{
    int64_t n;

    return s->kind == STMT_FOR &&
           (s->u.loop.kind == LOOP_SPATIAL || (idx_is_const(s->u.loop.extent, &n) && n == 1));
}

/* In some dimension all cells of x lie before those of y, or behind. */
static bool are_apart(Ctx *c, const Accesses *x, const Accesses *y)
{
    for (uint32_t d = 0; d < x->b->ndim && !x->escapes && !y->escapes; d++) {
        bool before = true, behind = true;

        for (uint32_t i = 0; i < x->at.n; i++)
            for (uint32_t k = 0; k < y->at.n && (before || behind); k++) {
                const Idx *xl, *xh, *yl, *yh;

                idx_bound(c->arith, x->at.at[i][d], x->inner, &xl, &xh);
                idx_bound(c->arith, y->at.at[k][d], y->inner, &yl, &yh);
                before = before && idx_sub(c->arith, yl, xh)->lo > 0;
                behind = behind && idx_sub(c->arith, xl, yh)->lo > 0;
            }
        if (before || behind)
            return true;
    }
    return false;
}

/* Nothing goes through b from one of these statements to another. */
static bool is_divided(Ctx *c, const Buffer *b, const Stmt *seq)
{
    Accesses *of = NEW_ARRAY(c->scratch, Accesses, seq->nkids + 1);

    for (uint32_t i = 0; i < seq->nkids; i++) {
        of[i] = accesses(c, seq->kids[i], b, true);
        for (uint32_t k = 0; k < i && any(&of[i]); k++)
            if (any(&of[k]) && !are_apart(c, &of[i], &of[k]))
                return false;
    }
    return true;
}

/* One cell that a statement stores before it does anything else with the buffer, maybe under one
 * condition. */
typedef struct {
    const Idx *const *cell;
    const Prim       *cond; /* NULL: none */
} FirstStore;

static bool find_first_store(Ctx *c, const Stmt *s, const Buffer *b, FirstStore *f)
{
    int64_t n;

    switch (s->kind) {
    case STMT_STORE:
        f->cell = s->u.store.index;
        return s->u.store.buffer == b && !reads(c, s->u.store.value, b);
    case STMT_FOR:
        return idx_is_const(s->u.loop.extent, &n) && n > 0 && find_first_store(c, s->kids[0], b, f);
    case STMT_ALLOC: return find_first_store(c, s->kids[0], b, f);
    case STMT_IF:
        if (f->cond || s->nkids > 1 || reads(c, s->u.cond, b))
            return false;
        f->cond = s->u.cond;
        return find_first_store(c, s->kids[0], b, f);
    case STMT_SEQ:
        for (uint32_t i = 0; i < s->nkids; i++)
            if (uses(c, s->kids[i], b))
                return find_first_store(c, s->kids[i], b, f);
        return false;
    case STMT_WHILE:
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
    case STMT_FAIL: return false;
    }
    return false;
}

/* All of s uses that cell alone, under that condition. */
static bool uses_cell(Ctx *c, const Stmt *s, const Buffer *b, const FirstStore *f, bool under)
{
    Accesses a = accesses(c, s, b, false);

    if (!any(&a))
        return true;
    under = under || (s->kind == STMT_IF && s->u.cond == f->cond);
    for (uint32_t i = 0; s->nkids && i < s->nkids; i++)
        if (!uses_cell(c, s->kids[i], b, f, under && s->nkids == 1) &&
            !(s->kind == STMT_SEQ && uses_cell(c, s->kids[i], b, f, under)))
            return false;
    if (a.escapes || (!s->nkids && f->cond && !under))
        return false;
    for (uint32_t i = 0; i < a.at.n; i++)
        for (uint32_t d = 0; d < b->ndim; d++)
            if (a.at.at[i][d] != f->cell[d])
                return false;
    return true;
}

/* Nothing goes through b from one round of what is around s to the next. */
static bool starts_anew(Ctx *c, const Stmt *s, const Buffer *b)
{
    const Stmt *only = s;

    while (only) { /* to what holds all uses, and no less */
        s = only;
        only = NULL;
        for (uint32_t i = 0, users = 0; i < s->nkids; i++)
            if (uses(c, s->kids[i], b))
                only = users++ || s->kind == STMT_IF ? NULL : s->kids[i];
    }
    FirstStore f = {0};

    return find_first_store(c, s, b, &f) && uses_cell(c, s, b, &f, false);
}

static const Stmt *sink(Ctx *c, const Buffer *b, const Stmt *s);

/* Each of the statements with a buffer of its own. */
static const Stmt *sink_each(Ctx *c, const Buffer *b, const Stmt *seq)
{
    const Stmt **kids = DUP_ARRAY(c->arena, seq->kids, seq->nkids);

    for (uint32_t i = 0; i < seq->nkids; i++)
        if (uses(c, kids[i], b)) {
            const Buffer *own = buffer_copy(c, b, *b);

            kids[i] = sink(c, own, buffer_replace(c, kids[i], b, own));
        }
    return stmt_with_kids(c, seq, kids);
}

static const Stmt *sink(Ctx *c, const Buffer *b, const Stmt *s)
{
    bool through = s->kind == STMT_ALLOC || is_independent(s) ||
                   (s->kind == STMT_FOR && starts_anew(c, s->kids[0], b)) ||
                   (s->kind == STMT_IF && s->nkids == 1 && !reads(c, s->u.cond, b));

    if (through) {
        const Stmt *kid = s->kids[0];

        if (s->kind == STMT_FOR && s->u.loop.parallel && b->scope == SCOPE_ARENA) {
            Buffer own = *b; /* each thread has its own */

            own.scope = SCOPE_PRIVATE;
            const Buffer *now = buffer_copy(c, b, own);
            kid = buffer_replace(c, kid, b, now);
            b = now;
        }
        kid = sink(c, b, kid);
        return stmt_with_kids(c, s, &kid);
    }
    if (s->kind == STMT_SEQ) {
        uint32_t users = 0, which = 0;
        for (uint32_t i = 0; i < s->nkids; i++)
            if (uses(c, s->kids[i], b))
                users++, which = i;
        if (users == 0)
            return s;
        if (users == 1) {
            const Stmt **kids = DUP_ARRAY(c->arena, s->kids, s->nkids);
            kids[which] = sink(c, b, kids[which]);
            return stmt_with_kids(c, s, kids);
        }
        if (b->scope == SCOPE_REG && is_divided(c, b, s))
            return sink_each(c, b, s);
    }
    return shrink(c, b, s);
}

static const Stmt *compact_stmt(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    (void)user;
    (void)was;
    if (now->kind != STMT_ALLOC)
        return now;
    if (!uses(c, now->kids[0], now->u.buffer))
        return now->kids[0];
    return sink(c, now->u.buffer, now->kids[0]);
}

static const Func *compact_func(Ctx *c, void *user, const Func *f)
{
    TirMap m = {NULL, compact_stmt, NULL, NULL, NULL};

    (void)user;
    return func_with_body(c, f, stmt_map(c, f->body, &m));
}

const TirModule *compact(Ctx *c, const TirModule *m)
{
    return tirmod_map(c, m, compact_func, NULL);
}
