/* Reductions: softmax, normalizations, sums, pooling.
 *
 * All stages of a row are computed inside the loop over rows of the last stage, so that a row stays
 * in L1; rows are divided among the threads.  A pooling window or a sum over outer dimensions runs
 * its reduce loops outside the vector of the innermost spatial loop. */
#include "schedules/cpu/cpu.h"

#include <string.h>

/* Leading iterators that two blocks share by extent, with nothing but unit extents after them in
 * the reduction. */
static uint32_t shared_rows(const Sched *s, const char *red, const char *last)
{
    const BlockData *r = &sched_block(s, red)->u.block, *l = &sched_block(s, last)->u.block;
    uint32_t         k = 0;

    while (k < r->nspatial && k < l->nspatial && r->iter[k]->hi == l->iter[k]->hi)
        k++;
    return k;
}

/* Reduce loops outside, the innermost spatial loop as vectors, accumulators in registers. */
static void vector_accumulate(Sched *s, const char *block)
{
    const Stmt *b = sched_block(s, block);
    int64_t     lanes = cpu_lanes(s);

    if (!b || b->u.block.nspatial < 2 || lanes < 2)
        return;
    const BlockData *d = &b->u.block;
    const char *inner = d->iter[d->nspatial - 1]->name, *before = d->iter[d->nspatial - 2]->name;
    int64_t     n = iter_extent(s, block, inner);
    StrBuf      order = strbuf(s->c->arena);
    if (n < lanes)
        return;
    if (n > lanes && (n % lanes || !try_step(s, "split %%%s.%s by %lld -> %%%s.vo, %%%s.vi", block,
                                             inner, (long long)lanes, block, block)))
        return;
    str_printf(&order, "reorder ");
    for (uint32_t i = 0; i < d->nreduce; i++)
        str_printf(&order, "%%%s.%s, ", block, d->iter[d->nspatial + i]->name);
    if (n > lanes)
        str_printf(&order, "%%%s.vi", block);
    else
        str_printf(&order, "%%%s.%s", block, inner);
    if (!try_step(s, "%s", order.at))
        return;
    if (n > lanes)
        try_step(s, "cache_write %s reg at %%%s.vo", block, block);
    else
        try_step(s, "cache_write %s reg at %%%s.%s", block, block, before);
    if (n > lanes)
        try_step(s, "vectorize %%%s.vi", block);
    else
        try_step(s, "vectorize %%%s.%s", block, inner);
}

void sched_pool(Sched *s)
{
    const char *names[64];
    uint32_t    n = sched_blocks(s, names, COUNT(names));
    const char *out;
    int64_t     work = 1;

    inline_prologue(s, "pool");
    try_step(s, "compute_inline pad");
    out = inline_epilogue(s, "pool");
    const Stmt *b = sched_block(s, "pool");
    if (!b) {
        sched_injective(s);
        return;
    }
    (void)n;
    const char *last =
        b->u.block.nspatial > 1 ? b->u.block.iter[b->u.block.nspatial - 2]->name : NULL;
    for (uint32_t i = 0; i < b->u.block.nspatial + b->u.block.nreduce; i++)
        work *= b->u.block.iter[i]->hi - b->u.block.iter[i]->lo + 1;
    const char *first = NULL, *second = NULL;
    for (uint32_t i = 0; i < b->u.block.nspatial && !first; i++)
        if (iter_extent(s, "pool", b->u.block.iter[i]->name) > 1) {
            first = b->u.block.iter[i]->name;
            second = i + 3 < b->u.block.nspatial ? b->u.block.iter[i + 1]->name : NULL;
        }
    vector_accumulate(s, "pool");
    if (out && last)
        try_step(s, "reverse_compute_at %s %%pool.%s", out, last);
    if (first && !is_tiny(s, work)) {
        if (second && thread_balance(iter_extent(s, "pool", first)) < 0.95 &&
            try_step(s, "fuse %%pool.%s, %%pool.%s -> %%u", first, second))
            try_step(s, "parallel %%u");
        else
            try_step(s, "parallel %%pool.%s", first);
    }
}

typedef struct {
    const Buffer *t;
    uint32_t      readers;
    bool          here, math;
} Use;

static bool enter_block(void *user, const Stmt *s)
{
    Use *u = user;

    if (s->kind == STMT_BLOCK)
        u->here = false;
    return true;
}

static void use_prim(void *user, const Prim *p)
{
    Use *u = user;

    u->math |= p->kind == PRIM_MATH;
    if (p->kind == PRIM_LOAD && p->u.load.buffer == u->t && !u->here)
        u->here = true, u->readers++;
}

/* An exponential or the like that several stages read: computed once, kept in L1. */
static bool worth_keeping(const Sched *s, const Stmt *b)
{
    Use own = {0}, all = {.t = b->kids[b->nkids - 1]->u.store.buffer};

    stmt_visit(b, &(TirVisit){.user = &own, .prim = use_prim});
    stmt_visit(s->f->body, &(TirVisit){.user = &all, .enter = enter_block, .prim = use_prim});
    return own.math && all.readers > 1;
}

/* A reduction whose innermost dimension, of a vector at least, is not reduced. */
static bool sums_columns(const Sched *s, const char *block, uint32_t rows)
{
    const BlockData *d = &sched_block(s, block)->u.block;

    return d->nreduce && d->nspatial > rows &&
           iter_extent(s, block, d->iter[d->nspatial - 1]->name) >= cpu_lanes(s);
}

/* A sum along the row: as many partial sums as a vector has lanes, then their sum in order. */
static void vector_sum(Sched *s, const char *block)
{
    const Stmt *b = sched_block(s, block);
    int64_t     lanes = cpu_lanes(s);

    if (!b || b->u.block.nreduce != 1 || lanes < 4)
        return;
    const char *k = b->u.block.iter[b->u.block.nspatial]->name;
    int64_t     width = divisor_upto(iter_extent(s, block, k), lanes);
    if (width < 4 ||
        !try_step(s, "split %%%s.%s by %lld -> %%%s.ko, %%%s.ki", block, k, (long long)width, block,
                  block) ||
        !try_step(s, "rfactor %%%s.ki", block))
        return;
    try_step(s, "set_scope %%%s.rf stack", block);
    try_step(s, "vectorize %%%s.ki", block);
}

void sched_rows(Sched *s)
{
    const char *names[64];
    uint32_t    n = sched_blocks(s, names, COUNT(names)), rows = 64;
    const char *last;

    if (!n)
        return;
    /* Elementwise stages that only one stage reads vanish. */
    for (uint32_t i = 0; i + 1 < n; i++) {
        const Stmt *b = sched_block(s, names[i]);
        if (b && !b->u.block.opaque && !b->u.block.nreduce && !worth_keeping(s, b))
            try_step(s, "compute_inline %s", names[i]);
    }
    n = sched_blocks(s, names, COUNT(names));
    last = names[n - 1];
    if (sched_block(s, last)->u.block.opaque)
        return;
    for (uint32_t i = 0; i + 1 < n; i++) {
        const Stmt *b = sched_block(s, names[i]);
        if (b->u.block.opaque)
            return;
        uint32_t k = shared_rows(s, names[i], last);
        if (k < rows)
            rows = k;
    }
    if (n == 1) {
        if (sched_block(s, last)->u.block.nreduce)
            vector_accumulate(s, last);
        spatial_marks(s, last);
        return;
    }
    const BlockData *l = &sched_block(s, last)->u.block;
    if (rows >= l->nspatial)
        rows = l->nspatial - 1;
    if (rows && rows < 64) {
        const char *row = l->iter[rows - 1]->name;
        for (uint32_t i = n - 1; i-- > 0;)
            try_step(s, "compute_at %s %%%s.%s", names[i], last, row);
        for (uint32_t i = 0; i + 1 < n; i++)
            if (sums_columns(s, names[i], rows))
                vector_accumulate(s, names[i]);
            else if (sched_block(s, names[i])->u.block.nreduce)
                vector_sum(s, names[i]);
            else
                vector_marks(s, names[i]);
    }
    spatial_marks(s, last);
}
