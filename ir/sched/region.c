/* Which cells of a buffer a piece of the nest reads: one box, its lower corner over the variables
 * that stand still, its extents constants.  Reads are hulled; where two lower ends cannot be
 * compared, the range of the dimension's index is taken whole. */
#include "ir/sched/impl.h"

typedef struct {
    Ctx           *c;
    const Buffer  *buffer;
    const AtomSet *inner;
    IdxSubst      *sub; /* the current block's iterators */
    const Idx    **lo, **hi;
    bool           any;
} Region;

/* The smaller (larger) of two ends, or a constant below (above) both. */
static const Idx *hull(Arith *A, const Idx *x, const Idx *y, bool low)
{
    const Idx *d = idx_sub(A, x, y);
    if (d->hi <= 0)
        return low ? x : y;
    if (d->lo >= 0)
        return low ? y : x;
    if (low)
        return idx_const(A, x->lo < y->lo ? x->lo : y->lo);
    return idx_const(A, x->hi > y->hi ? x->hi : y->hi);
}

static void region_prim(void *user, const Prim *p)
{
    Region *r = user;
    if (p->kind != PRIM_LOAD || p->u.load.buffer != r->buffer)
        return;
    for (uint32_t d = 0; d < p->u.load.n; d++) {
        const Idx *lo, *hi, *x = idx_subst(r->sub, p->u.load.index[d]);
        idx_bound(r->c->arith, x, r->inner, &lo, &hi);
        r->lo[d] = r->any ? hull(r->c->arith, r->lo[d], lo, true) : lo;
        r->hi[d] = r->any ? hull(r->c->arith, r->hi[d], hi, false) : hi;
    }
    r->any = true;
}

static bool region_stmt(void *user, const Stmt *s)
{
    Region *r = user;
    if (s->kind == STMT_BLOCK) {
        r->sub = subst_new(r->c->arith, r->c->scratch);
        bind_iters(s, r->sub);
    }
    return true;
}

bool region_of_reads(Ctx *c, const Stmt *s, const Buffer *buffer, const AtomSet *inner,
                     const Idx **lo, int64_t *extent)
{
    const Idx **hi = NEW_ARRAY(c->scratch, const Idx *, buffer->ndim + 1);
    Region      r = {.c = c, .buffer = buffer, .inner = inner, .lo = lo, .hi = hi};
    r.sub = subst_new(c->arith, c->scratch);
    stmt_visit(s, &(TirVisit){.user = &r, .enter = region_stmt, .prim = region_prim});
    for (uint32_t d = 0; r.any && d < buffer->ndim; d++)
        extent[d] = idx_extent(c->arith, lo[d], hi[d]);
    return r.any;
}
