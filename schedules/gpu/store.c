/* How the sums of instructions of warps become the result (tensor.c).
 *
 * A thread has two columns of each tile of an instruction, four threads a row of it: what they
 * store together is a part of a sector of memory, and so is what they load to add to it.  Staged,
 * the sums go through shared memory,
 *
 *     cache_write conv.save shared at blk       cells by rw, rt, rh, ry (a row), cw, ct, cx, cj
 *     storage_align                             rows' columns lie in different banks
 *     fuse the row's loops -> er, the column's -> ec; split ec -> eq, ev; fuse er, eq -> et
 *     split et -> eo, eu, ez, ey, ex            threads lie along a row, and have cells of several
 *     reverse_compute_at out ev
 *
 * and the threads take them from there in the order of memory, several cells side by side at once.
 */
#include "ir/tir/intrin.h"
#include "schedules/gpu/gpu.h"

#include <string.h>

enum { BANKS = 32 }; /* of shared memory, a word each */

/* ---- what the result is like ----------------------------------------------------------------------- */

typedef struct {
    const Buffer   *sums;
    const LoadData *load; /* of the sums */
    int64_t         cells, bytes;
    Map            *seen;
} Added;

static int64_t cells_of(const Buffer *b)
{
    int64_t all = 1;

    for (uint32_t i = 0; i < b->ndim; i++)
        if (!checked_mul(all, idx_usual(b->extent[i]), &all))
            return 0;
    return all;
}

static void see_load(void *user, const Prim *p)
{
    Added *a = user;

    if (p->kind != PRIM_LOAD)
        return;
    if (p->u.load.buffer == a->sums)
        a->load = &p->u.load;
    else if (!map_get(a->seen, p->u.load.buffer->id) && cells_of(p->u.load.buffer) == a->cells)
        a->bytes += dtype_bytes(p->u.load.buffer->dtype);
    map_put(a->seen, p->u.load.buffer->id, a);
}

/* The iterator of what follows that walks the sums' dimension of v; NULL: none alone. */
static const Atom *follower_of(const Atom *v, const StoreData *sums, const LoadData *load)
{
    const Atom *at, *of;

    for (uint32_t d = 0; d < sums->n; d++)
        if (idx_is_atom(sums->index[d], &at) && at == v)
            return load && idx_is_atom(load->index[d], &of) && of->kind == ATOM_VAR ? of : NULL;
    return NULL;
}

void find_result(Sched *s, const Product *p, const Loops *columns, DeviceTile *t)
{
    const Stmt      *block = sched_block(s, p->block);
    const BlockData *b = &block->u.block;
    const StoreData *sums = &block->kids[block->nkids - 1]->u.store, *to = sums;
    Added            a = {.sums = sums->buffer, .seen = map_new(s->c->scratch)};

    if (p->follow) {
        const Stmt *follow = sched_block(s, p->follow);
        if (follow->kids[follow->nkids - 1]->kind != STMT_STORE)
            return;
        to = &follow->kids[follow->nkids - 1]->u.store;
        a.cells = cells_of(to->buffer);
        prim_visit(to->value, &(TirVisit){.user = &a, .prim = see_load});
    }
    const Idx *at =
        flat_index(s, &(LoadData){.buffer = to->buffer, .n = to->n, .index = to->index});
    t->result_bytes = dtype_bytes(to->buffer->dtype);
    t->added_bytes = a.bytes;
    t->run = 1;
    for (uint32_t i = columns->n; i-- > 0;) {
        const Atom *v = NULL;
        int64_t     rounds = 0;
        for (uint32_t k = 0; k < b->nspatial; k++)
            if (!strcmp(columns->at[i],
                        intern_printf(s->c->strings, "%s.%s", p->block, b->iter[k]->name)))
                v = b->iter[k];
        if (v && p->follow)
            v = follower_of(v, sums, a.load);
        if (!sched_loop_extent(s, columns->at[i], &rounds))
            return;
        if (rounds == 1)
            continue;
        if (!v || flat_step(at, v, INT64_MAX) != t->run)
            break;
        t->run *= rounds;
    }
}

/* ---- the steps ------------------------------------------------------------------------------------- */

/* Loops of the sums' cells in a block, as threads and instructions have them; those of a row, of a
 * column, as they lie. */
static const char *const nest[] = {"rw", "cw", "ry", "cx", "rt", "ct", "rh", "cj"};
static const char *const row[] = {"rw", "rt", "rh", "ry"}, *const column[] = {"cw", "ct", "cx",
                                                                              "cj"};

/* The last copy of a loop: those outside of a thread's registers have two, others four. */
static const char *last_copy(const Sched *s, const char *name)
{
    bool outside = name[1] == 'w' || name[1] == 'y' || name[1] == 'x';

    return arena_printf(s->c->scratch, "%%%s#%d", name, outside ? 1 : 3);
}

static const char *copies(const Sched *s, uint32_t n, const char *const *name)
{
    StrBuf all = strbuf(s->c->scratch);

    for (uint32_t i = 0; i < n; i++)
        str_printf(&all, i ? ", %s" : "%s", last_copy(s, name[i]));
    return all.at;
}

/* Those of several rounds choose a cell of the copy: how many they are; "da, db", also of others.
 */
static uint32_t dimensions(const Sched *s, uint32_t n, const char *const *name, StrBuf *out)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < n; i++) {
        int64_t rounds = 0;
        sched_loop_extent(s, last_copy(s, name[i]), &rounds);
        if (rounds > 1)
            str_printf(out, out->n ? ", d%s" : "d%s", name[i]), found++;
    }
    return found;
}

void store_staged(Sched *s, const Product *p, const DeviceTile *t, const char *blk)
{
    const char     *save = arena_printf(s->c->scratch, "%s.save", p->block);
    StrBuf          was = strbuf(s->c->scratch), now = strbuf(s->c->scratch);
    const long long threads = warp_threads(t->unit->warp);

    step(s, "cache_write %s shared at %%%s", save, blk);
    dimensions(s, COUNT(nest), nest, &was);
    uint32_t rows = dimensions(s, COUNT(row), row, &now);
    dimensions(s, COUNT(column), column, &now);
    if (s->refusal)
        return;
    step(s, "transform_layout %%%s.shared (%s) -> (%s)", save, was.at, now.at);
    step(s, "storage_align %%%s.shared dim=%u by %d offset=%d", save, rows - 1, BANKS,
         (int)device_mma_apart(t));
    step(s, "reorder %s, %s", copies(s, COUNT(row), row), copies(s, COUNT(column), column));
    step(s, "fuse %s -> %%er", copies(s, COUNT(row), row));
    step(s, "fuse %s -> %%ec", copies(s, COUNT(column), column));
    step(s, "split %%ec by %lld -> %%eq, %%ev", (long long)t->staged);
    step(s, "fuse %%er, %%eq -> %%et");
    step(s, "split %%et by %lld -> %%es, %%ei", threads * (long long)device_mma_warps(t));
    step(s, "split %%es by %lld -> %%eo, %%eu", (long long)device_mma_places(t));
    step(s, "split %%ei by %lld -> %%ez, %%el", threads);
    step(s, "split %%el by %d -> %%ey, %%ex", t->unit->warp->x);
    step(s, "reorder %%ez, %%ey, %%ex, %%eo, %%eu, %%ev");
    if (p->follow)
        step(s, "reverse_compute_at %s %%ev", p->follow);
    step(s, "bind %%ez threadIdx.z");
    step(s, "bind %%ey threadIdx.y");
    step(s, "bind %%ex threadIdx.x");
    step(s, "unroll %%eu, %%ev");
}
