/* Elementwise and injective kernels: one nest over the result, inner loop as vectors, outer loop
 * divided among the threads. */
#include "schedules/cpu/cpu.h"

/* The last block of the nest and its iterators' loops; everything before it inlined. */
static const char *last_block(Sched *s)
{
    const char *names[64];
    uint32_t    n = sched_blocks(s, names, COUNT(names));

    if (!n)
        return NULL;
    for (uint32_t i = 0; i + 1 < n; i++)
        try_step(s, "compute_inline %s", names[i]);
    return names[n - 1];
}

void vector_marks(Sched *s, const char *block)
{
    const Stmt *b = sched_block(s, block);
    Machine     m = machine_of(s->target);

    if (!b || b->u.block.opaque || !b->u.block.nspatial || b->u.block.nreduce || cpu_lanes(s) < 2)
        return;
    const char *inner = b->u.block.iter[b->u.block.nspatial - 1]->name;
    int64_t     last = iter_extent(s, block, inner), lanes = inner_lanes(s, last);
    if (last == lanes || (last < lanes && last >= limit_least_rest(&m)))
        try_step(s, "vectorize %%%s.%s", block, inner);
    else if (last > lanes && try_step(s, "split %%%s.%s by %lld tail=peel -> %%%s.vo, %%%s.vi",
                                      block, inner, (long long)lanes, block, block))
        try_step(s,
                 last % lanes >= limit_least_rest(&m) ? "vectorize %%%s.vi" : "vectorize %%%s.vi#0",
                 block);
}

/* A transpose reads a cell a row; the row's next cells are those of another dimension.  That one
 * goes inside the loop over vectors, so that the few lines one vector touches serve the next,
 * before rows at equal distances push them out of their set of L1. */
static void transpose_order(Sched *s, const char *block)
{
    const Stmt *b = sched_block(s, block);
    const Prim *v = b && b->kind == STMT_BLOCK ? b->kids[b->nkids - 1]->u.store.value : NULL;
    const Atom *a;
    Machine     m = machine_of(s->target);

    if (!v || v->kind != PRIM_LOAD || b->u.block.nspatial < 3 || !v->u.load.n ||
        !idx_is_atom(v->u.load.index[v->u.load.n - 1], &a))
        return;
    const BlockData *d = &b->u.block;
    const Atom      *inner = d->iter[d->nspatial - 1], *beside = d->iter[d->nspatial - 2];
    int64_t          outer = 1, lanes = cpu_lanes(s);
    for (uint32_t i = 0; i + 2 < d->nspatial; i++)
        outer = iter_extent(s, block, d->iter[i]->name) > outer
                    ? iter_extent(s, block, d->iter[i]->name)
                    : outer;
    /* The threads take a loop outside of both. */
    if (a == beside && outer >= limit_least_parts(&m) && inner->hi + 1 > lanes &&
        (inner->hi + 1) % lanes == 0)
        try_step(s, "reorder %%%s.vo, %%%s.%s", block, block, beside->name);
}

/* An image in blocks of channels is divided by rows before channels, as convolutions do. */
static bool parallel_rows(Sched *s, const char *block)
{
    const BlockData *d = &sched_block(s, block)->u.block;

    if (d->nspatial != 5 || d->nreduce || !is_block(s, iter_extent(s, block, d->iter[4]->name)))
        return false;
    const char *c = d->iter[1]->name, *y = d->iter[2]->name;
    int64_t     rows = iter_extent(s, block, y), parts = row_blocks(rows);

    return parts > 1 &&
           try_step(s, "split %%%s.%s by %lld -> %%%s.yb, %%%s.yr", block, y,
                    (long long)(rows / parts), block, block) &&
           try_step(s, "reorder %%%s.yb, %%%s.%s", block, block, c) &&
           try_step(s, "fuse %%%s.yb, %%%s.%s -> %%%s.u", block, block, c, block) &&
           try_step(s, "parallel %%%s.u", block);
}

void spatial_marks(Sched *s, const char *block)
{
    const Stmt *b = sched_block(s, block);
    bool        alone = is_tiny_kernel(s);
    Machine     m = machine_of(s->target);

    if (!b || b->u.block.opaque || !b->u.block.nspatial)
        return;
    const BlockData *d = &b->u.block;
    if (turn_marks(s, block, !alone))
        return;
    vector_marks(s, block);
    transpose_order(s, block);
    if (alone || parallel_rows(s, block))
        return;
    for (uint32_t i = 0; i < d->nspatial; i++) {
        const char *name = d->iter[i]->name;
        if (iter_extent(s, block, name) >= limit_least_parts(&m) &&
            (i + 1 < d->nspatial || d->nreduce)) {
            try_step(s, "parallel %%%s.%s", block, name);
            return;
        }
    }
    try_step(s, "parallel %%%s.vo", block);
}

typedef struct {
    uint32_t   dim;
    const Idx *index;
    int64_t    extent;
} PadRead;

static void pad_read(void *user, const Prim *p)
{
    PadRead *r = user;

    if (p->kind != PRIM_LOAD || p->u.load.n <= r->dim)
        return;
    r->index = p->u.load.index[r->dim];
    if (!idx_is_const(p->u.load.buffer->extent[r->dim], &r->extent))
        r->extent = 0;
}

/* Where the cells that are copied begin in the last dimension of `pad`, and how many they are. */
static bool pad_interior(const Sched *s, int64_t *lo, int64_t *n)
{
    const Stmt *b = sched_block(s, "pad");
    PadRead     r = {.dim = b->u.block.nspatial - 1};

    stmt_visit(b, &(TirVisit){.user = &r, .prim = pad_read});
    if (!r.index || !r.extent)
        return false;
    *lo = -r.index->c0;
    *n = r.extent;
    return *lo >= 0;
}

/* A copy without a border, widened: some pixels of a block of channels at a time. */
static void widen_marks(Sched *s, const char *x)
{
    Machine m = machine_of(s->target);
    int64_t n = x ? divisor_upto(iter_extent(s, "pad", x), limit_widened_pixels(&m)) : 1;

    if (n > 1 && try_step(s, "split %%pad.%s by %lld -> %%pad.xo, %%pad.xi", x, (long long)n))
        try_step(s, "unroll %%pad.xi");
}

/* The pixels' iterator of such a copy. */
static const char *pixels_of_widened(const Stmt *b)
{
    const Prim *v = b->nkids ? b->kids[b->nkids - 1]->u.store.value : NULL;

    if (!v || v->kind != PRIM_CAST || v->kids[0]->kind != PRIM_LOAD || b->u.block.nspatial < 2)
        return NULL;
    return b->u.block.iter[b->u.block.nspatial - 2]->name;
}

void pad_marks(Sched *s, const char *at)
{
    int64_t     lo = 0, n = 0, lanes = cpu_lanes(s);
    const Stmt *b = sched_block(s, "pad");
    const char *x = b->u.block.iter[b->u.block.nspatial - 1]->name;
    Machine     m = machine_of(s->target);
    const char *middle = "", *pixels = pixels_of_widened(b);

    if (at && !try_step(s, "compute_at pad %s", at))
        at = NULL;
    if (iter_extent(s, "pad", x) == lanes || !pad_interior(s, &lo, &n) || n < lanes) {
        if (!at)
            spatial_marks(s, "pad");
        else
            vector_marks(s, "pad");
        widen_marks(s, pixels);
        return;
    }
    if (lo + n < iter_extent(s, "pad", x) &&
        try_step(s, "partition %%pad.%s at %lld", x, (long long)(lo + n)))
        middle = "#0";
    if (lo > 0 && try_step(s, "partition %%pad.%s%s at %lld", x, middle, (long long)lo))
        middle = "#1";
    if (try_step(s, "split %%pad.%s%s by %lld tail=peel -> %%pad.vo, %%pad.vi", x, middle,
                 (long long)lanes))
        try_step(s,
                 n % lanes >= limit_least_rest(&m) ? "vectorize %%pad.vi" : "vectorize %%pad.vi#0");
    if (!at)
        try_step(s, "parallel %%pad.%s", b->u.block.iter[b->u.block.nspatial - 2]->name);
}

void sched_injective(Sched *s)
{
    const char *block = last_block(s);

    if (block)
        spatial_marks(s, block);
}
