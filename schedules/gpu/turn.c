/* Kernels on a GPU that turn memory: what lies together in the operand does not in the result.
 *
 *     %out[i, j] = %x[j, i]                  a matrix;  images between NCHW and NHWC
 *
 * Threads that have neighbouring cells of the result would each take a few bytes of a line of their
 * own.  So a block of threads copies a tile to shared memory, along the operand's lines, and stores
 * it along the result's:
 *
 *     fuse .. -> %up                    dimensions that lie together in the operand
 *     fuse .. -> %on                    ... in the result
 *     split up by 32 -> ub, ui          bind ub blockIdx.x, nb with all others blockIdx.y
 *     split on by 32 -> nb, ni
 *     split ui by 8 -> ur, ut           bind ut threadIdx.y, ni threadIdx.x
 *     split ur into 1 -> tile, uc       all of a block's threads fill the tile
 *     cache_read x out shared ni, uc, ut at tile
 *     storage_align x.shared            a column's cells lie in all banks
 *
 * Whatever else the kernel reads is read where it is used.  Kernels that move cells in other ways,
 * and those whose threads do as well with cells of their own, small sides and few channels of an
 * image in blocks, are as any other (nest.c). */
#include "schedules/gpu/gpu.h"

#include <math.h>
#include <string.h>

enum { MAX_LOADS = 8 };

typedef struct {
    Sched           *s;
    Machine          m;
    const char      *block;
    const BlockData *b;
    uint32_t         n;
    const LoadData  *load[MAX_LOADS]; /* of different cells, in the end those that are turned; */
    const Idx       *at[MAX_LOADS];   /* where in memory */
    bool             turned[MAX_LOADS], many; /* there are more */
    uint32_t         unit;                    /* iterator that walks neighbours of the operand */
    Loops            up, on, rest; /* loops along the operand's lines, along the result's */
    DeviceTurn       size;
} Turn;

static bool has_cells(const Atom *v)
{
    return v->hi > v->lo;
}

/* Which iterator walks neighbours of the load; the number of iterators: none, or the result's. */
static uint32_t unit_of(const Turn *t, const Idx *at)
{
    uint32_t i = 0;

    while (i < t->b->nspatial &&
           (!has_cells(t->b->iter[i]) || flat_step(at, t->b->iter[i], INT64_MAX) != 1))
        i++;
    return i;
}

static uint32_t last_of(const BlockData *b)
{
    uint32_t last = b->nspatial;

    while (last && !has_cells(b->iter[last - 1]))
        last--;
    return last;
}

static void see_load(void *user, const Prim *p)
{
    Turn *t = user;

    if (p->kind != PRIM_LOAD)
        return;
    const Idx *at = flat_index(t->s, &p->u.load);
    for (uint32_t i = 0; i < t->n; i++)
        if (t->load[i]->buffer == p->u.load.buffer && t->at[i] == at)
            return;
    t->many = t->many || t->n == MAX_LOADS;
    if (t->many)
        return;
    t->load[t->n] = &p->u.load;
    t->at[t->n++] = at;
}

/* Is that load the only one of its tensor, and apart where the result's cells lie together? */
static bool lies_across(const Turn *t, uint32_t i)
{
    uint32_t last = last_of(t->b) - 1;

    for (uint32_t k = 0; k < t->n; k++)
        if (k != i && t->load[k]->buffer == t->load[i]->buffer)
            return false;
    return unit_of(t, t->at[i]) < last &&
           flat_step(t->at[i], t->b->iter[last], INT64_MAX) >= limit_gpu_turned(&t->m);
}

/* Only those that are turned stay, all in the same way. */
static void keep_turned(Turn *t)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < t->n; i++)
        t->turned[i] = lies_across(t, i);
    for (uint32_t i = 0; i < t->n; i++)
        if (t->turned[i] && (!n || unit_of(t, t->at[i]) == t->unit)) {
            t->unit = unit_of(t, t->at[i]);
            t->load[n] = t->load[i];
            t->at[n++] = t->at[i];
        }
    t->n = n;
}

static const char *loop_of(const Turn *t, uint32_t i)
{
    return arena_printf(t->s->c->scratch, "%s.%s", t->block, t->b->iter[i]->name);
}

/* The loop of an iterator, and of those outside of it that go on where it ends. */
static Loops line_of(Turn *t, uint32_t from, uint32_t least)
{
    const Idx *at = t->at[0];
    uint32_t   first = from;
    int64_t    run = flat_step(at, t->b->iter[from], INT64_MAX);
    Loops      l = {0};

    for (uint32_t i = from + 1; i-- > least;) {
        if (has_cells(t->b->iter[i]) && flat_step(at, t->b->iter[i], INT64_MAX) != run)
            break;
        run *= t->b->iter[i]->hi + 1;
        first = i;
    }
    for (uint32_t i = first; i <= from; i++)
        if (has_cells(t->b->iter[i]))
            loops_add(t->s, &l, loop_of(t, i));
    return l;
}

static bool has_loop(const Loops *l, const char *name)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (!strcmp(l->at[i], name))
            return true;
    return false;
}

static bool is_turned(Turn *t)
{
    const Stmt *block = sched_block(t->s, t->block), *store = block->kids[block->nkids - 1];

    t->b = &block->u.block;
    if (store->kind != STMT_STORE || t->b->opaque || t->b->nseq || t->b->nreduce || !last_of(t->b))
        return false;
    for (uint32_t i = 0; i < t->b->nspatial; i++)
        if (t->b->iter[i]->below) /* a run decides */
            return false;
    stmt_visit(block, &(TirVisit){.user = t, .prim = see_load});
    keep_turned(t);
    if (!t->n || t->many)
        return false;
    t->up = line_of(t, t->unit, 0);
    t->on = line_of(t, last_of(t->b) - 1, t->unit + 1);
    for (uint32_t i = 0; i < t->b->nspatial; i++)
        if (!has_loop(&t->up, loop_of(t, i)) && !has_loop(&t->on, loop_of(t, i)))
            loops_add(t->s, &t->rest, loop_of(t, i));
    t->size = (DeviceTurn){.up = t->up.cells,
                           .on = t->on.cells,
                           .times = t->rest.n ? t->rest.cells : 1,
                           .bytes = dtype_bytes(t->load[0]->buffer->dtype),
                           .stored = dtype_bytes(store->u.store.buffer->dtype)};
    return true;
}

/* A tile's sides; 1: threads have cells, as in other kernels. */
static void decide_turn(Sched *s, void *plan)
{
    Turn       *turn = plan;
    DeviceTurn *d = &turn->size, t = *d;
    Machine     m = machine_of(s->target);
    Candidates  k = candidates(s);

    candidate(&k, 1, 1, thread_cells_cycles(s, turn->block));
    for (t.tile_up = limit_gpu_turned(&m); t.tile_up < 2 * d->up && t.tile_up <= m.warp;
         t.tile_up *= 2)
        for (t.tile_on = limit_gpu_turned(&m); t.tile_on < 2 * d->on && t.tile_on <= m.warp;
             t.tile_on *= 2) {
            double cycles = device_turn_cycles(&m, &t);
            if (!isnan(cycles))
                candidate(&k, t.tile_up, t.tile_on, cycles);
        }
    const Candidate *c = pick_tile(s, "tile", &k);
    d->tile_up = c->v[0];
    d->tile_on = c->v[1];
    d->threads = device_turn_threads(&m, d);
}

static void arrange(Turn *t)
{
    Sched            *s = t->s;
    const DeviceTurn *d = &t->size;
    Loops             blocks = t->rest;

    loops_fuse(s, &t->up, "up");
    loops_fuse(s, &t->on, "on");
    step(s, "split %%%s by %lld tail=if -> %%ub, %%ui", t->up.at[0], (long long)d->tile_up);
    step(s, "split %%%s by %lld tail=if -> %%nb, %%ni", t->on.at[0], (long long)d->tile_on);
    step(s, "split %%ui by %lld -> %%ur, %%ut", (long long)(d->threads / d->tile_on));
    loops_add(s, &blocks, "nb");
    const Loops *outer = &blocks;
    step(s, "split %%ur into 1 -> %%tile, %%uc");
    step(s, "reorder %s, %%ub, %%ut, %%ni, %%tile, %%uc", loops_text(s, 1, &outer));
    if (blocks.cells <= s->target->max_blocks[1]) { /* no division finds them */
        loops_bind(s, &blocks, "blk", "blockIdx.y");
        step(s, "bind %%ub blockIdx.x");
    } else {
        loops_add(s, &blocks, "ub");
        loops_bind(s, &blocks, "blk", "blockIdx.x");
    }
    step(s, "bind %%ut threadIdx.y");
    step(s, "bind %%ni threadIdx.x");
    for (uint32_t i = 0; i < t->n; i++) {
        const char *name = t->load[i]->buffer->name;
        step(s, "cache_read %%%s %s shared %%ni, %%uc, %%ut at %%tile", name, t->block);
        step(s, "storage_align %%%s.shared dim=0 by %lld offset=1", name, (long long)d->tile_up);
    }
    step(s, "unroll %%uc");
}

void sched_gpu_turn(Sched *s)
{
    const char *names[MAX_BLOCKS];
    uint32_t    n = sched_blocks(s, names, MAX_BLOCKS);
    Turn        t = {.s = s, .m = machine_of(s->target)};

    for (uint32_t i = 0; i + 1 < n; i++)
        try_step(s, "compute_inline %s", names[i]);
    n = sched_blocks(s, names, MAX_BLOCKS);
    t.block = names[0];
    if (n != 1 || !is_turned(&t)) {
        sched_gpu(s);
        return;
    }
    sched_decide(s, decide_turn, &t);
    if (t.size.tile_up > 1)
        arrange(&t);
    else
        sched_gpu(s);
}
