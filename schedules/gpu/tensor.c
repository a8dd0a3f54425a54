/* Matrix products and convolutions by the instructions of warps (mma.sync, MFMA, WMMA): operands of
 * 16 or 8 bits, sums of 32.
 *
 *     %conv[n,o,y,x] = sum[c,kh,kw] f32(%pad[n,c,kh+y,kw+x]) * f32(%w[o,c,kh,kw])
 *
 * is a product of rows by columns (product.c).  An instruction takes some rows, columns and steps
 * of the sum, of which each thread has some (ir/tir/fragment.c; here NVIDIA's: 16 by 8, 32 bytes);
 * a warp has several such tiles, a block several warps, above and beside each other:
 *
 *     split rows -> rb, rw, rt, rh (2), ry (8)       block, warp, tile, and the thread's part of it
 *     split columns -> cb, cw, ct, cx (4), cj (2)
 *     split c -> ko, ks, kk; reorder kh, kw, ko, ..  chunk, instruction, its steps: of a loop with
 *                                                    enough rounds, else of all, fused
 *     transform_layout w (o, c, h, v) -> (o, h, v, c); of channels in blocks (o, h, v, c//16, c%16)
 *     fuse rw, cw -> wz; bind wz threadIdx.z, ry threadIdx.y, cx threadIdx.x   thread 4*ry + cx
 *     cache_write conv local at cx                   rt x ct x rh x cj sums
 *     cache_read pad shared wz, rt, rh, ry, ks, kk at ko       as they are multiplied: numbers of
 *     cache_read w shared wz, ct, cx, cj, ks, kk at ko         the sum side by side
 *     swizzle                                        eight rows' 16 bytes that are loaded together
 *                                                    lie in different banks
 *     tensorize rt with @mma_f16
 *
 * Sums are stored by the threads that have them, or go through shared memory first (store.c).
 * Columns are what lies side by side in the result, pixels of an image or outputs of a dense layer.
 * Tiles hang over the edges as in product.c; the steps of the sum must be a multiple of what an
 * instruction takes.  Where the steps do not fit, the product is made as any other. */
#include "ir/tir/intrin.h"
#include "schedules/gpu/gpu.h"

#include <math.h>
#include <string.h>

typedef struct {
    DeviceTile    t;
    const Intrin *group;       /* an instruction of four warps; NULL: none */
    int64_t       steps, most; /* of the sum: of an instruction, of a block at a time */
    uint32_t      loop;   /* of the sum, whose parts chunks are; the number of loops: all, fused */
    uint32_t      blocks; /* the loop over blocks, of which that one walks one; itself: none */
    int64_t       rounds; /* of these loops */
    bool          wide;   /* both sides come 16 bytes at a time; no tile where they do not */
} TensorPlan;

const Intrin *gpu_instruction(Ctx *c, const Target *target, DType rows, DType columns, bool group)
{
    for (uint32_t id = 0; id < INTRIN_COUNT; id++) {
        const Intrin *row = intrin_of(c, (IntrinId)id);
        if (row->warp && !row->lanes && row->sums && row->group == group &&
            target->intrin_ops[id] && dtype_eq(row->operand[0].dtype, rows) &&
            dtype_eq(row->operand[1].dtype, columns))
            return row;
    }
    return NULL;
}

bool gpu_copies(Ctx *c, const Target *target, DType t)
{
    for (uint32_t id = 0; id < INTRIN_COUNT; id++) {
        const Intrin *row = intrin_of(c, (IntrinId)id);
        if (intrin_copies(row) && target->intrin_ops[id] && dtype_eq(row->operand[0].dtype, t))
            return true;
    }
    return false;
}

/* At once: 16 bytes; languages with opaque matrices have no vector of more than four numbers. */
static int64_t copied_cells(const DeviceTile *t)
{
    enum { QUAD = 4 };

    return t->unit->warp->opaque ? QUAD : WARP_BYTES / t->bytes;
}

static bool is_legal(const Machine *m, const DeviceTile *t)
{
    int64_t threads = m->warp * device_mma_warps(t);

    return device_mma_fits(t) && threads <= limit_gpu_tile_threads(m) &&
           device_mma_regs(m, t) <= limit_gpu_tensor_regs(m) &&
           (t->group ? 1 : 2) * threads * device_mma_regs(m, t) <= m->unit_regs &&
           device_mma_bytes(m, t) <= m->shared_bytes;
}

/* No side is twice as long as what there is. */
static bool fits_side(int64_t side, int64_t least, int64_t cells)
{
    return side == least || side < 2 * cells;
}

/* 1, 2, 3, 4, 6, 8, 12 ..: of tiles of an instruction, on a side. */
static int64_t next_side(int64_t side, int64_t least)
{
    int64_t n = side / least, half = n / 2;

    return least * (n & (n - 1) ? n / 3 * 4 : n + (half ? half : 1));
}

/* A side comes 16 bytes at a time only if every thread has as many of them. */
static bool is_even(const DeviceTile *t, int64_t side)
{
    return side * t->chunk % (warp_threads(t->unit->warp) * device_mma_warps(t) * t->wide) == 0;
}

/* Sums that each thread stores, or by way of shared memory; the least of both. */
enum { DIRECT, STAGED };
static const char *const store_words[] = {"direct", "staged"};

static double store_cycles(const Machine *m, DeviceTile t, int store)
{
    t.staged = store == STAGED ? device_mma_staged(&t) : 0;
    if (store == DIRECT && t.unit->warp->opaque)
        return NAN;
    return is_legal(m, &t) && (store == DIRECT || t.staged)
               ? device_open_cycles(m, &t, device_mma_cycles)
               : NAN;
}

static double stores_cycles(const Machine *m, DeviceTile t)
{
    return fmin(store_cycles(m, t, DIRECT), store_cycles(m, t, STAGED));
}

/* The least of the stages that there is room for; of the chunks, too. */
static double stages_cycles(const Machine *m, const TensorPlan *d, DeviceTile t)
{
    double least = NAN;

    if (d->wide && (!is_even(&t, t.bm) || !is_even(&t, t.bn)))
        return NAN;
    t.keeps_m = t.keeps_m || !is_even(&t, t.bm);
    t.keeps_n = t.keeps_n || !is_even(&t, t.bn);
    for (t.stages = 1; t.stages <= limit_gpu_stages(m); t.stages++)
        least = fmin(least, stores_cycles(m, t));
    return least;
}

static double chunks_cycles(const Machine *m, const TensorPlan *d, DeviceTile t)
{
    double least = NAN;

    for (t.chunk = d->steps; t.chunk <= d->most; t.chunk *= 2)
        if (d->rounds % t.chunk == 0)
            least = fmin(least, stages_cycles(m, d, t));
    return least;
}

/* The least of a block's tile, whatever its warps have of it. */
static double warps_cycles(const Machine *m, const TensorPlan *d, DeviceTile t)
{
    const int64_t rows = device_unit_rows(&t), columns = device_unit_columns(&t);
    double        least = NAN;

    for (t.tm = rows; t.tm <= t.bm; t.tm = next_side(t.tm, rows))
        for (t.tn = columns; t.tn <= t.bn; t.tn = next_side(t.tn, columns))
            if (t.bm % t.tm == 0 && t.bn % t.tn == 0)
                least = fmin(least, chunks_cycles(m, d, t));
    return least;
}

static double tile_cycles(const Machine *m, const TensorPlan *d, DeviceTile t)
{
    return fits_side(t.bm, device_unit_rows(&t), t.m) &&
                   fits_side(t.bn, device_unit_columns(&t), t.n)
               ? warps_cycles(m, d, t)
               : NAN;
}

/* By instructions of four warps. */
static void set_group(TensorPlan *d)
{
    d->t.group = true;
    d->t.unit = d->group;
    d->steps = d->group->extent[2];
}

/* The least of all tiles, by an instruction of one warp or of four. */
static double least_cycles(const Machine *m, TensorPlan d, bool group)
{
    double least = NAN;

    if (group)
        set_group(&d);
    DeviceTile    t = d.t;
    const int64_t rows = device_unit_rows(&t), columns = device_unit_columns(&t);
    for (t.bm = rows; t.bm <= limit_gpu_tensor_side(m); t.bm = next_side(t.bm, rows))
        for (t.bn = columns; t.bn <= limit_gpu_tensor_side(m); t.bn = next_side(t.bn, columns))
            least = fmin(least, tile_cycles(m, &d, t));
    return least;
}

/* Who multiplies: a warp what it has loaded, or four of them what lies in shared memory. */
enum { WARP, FOUR };
static const char *const unit_words[] = {"warp", "group"};

static void decide_unit(Sched *s, const Machine *m, TensorPlan *d)
{
    Candidates units = candidates(s);

    for (int unit = WARP; unit <= FOUR; unit++) {
        double cycles = least_cycles(m, *d, unit == FOUR);
        if (!isnan(cycles))
            candidate(&units, unit, 0, cycles);
    }
    if (!units.of.n || pick_order(s, "unit", &units, unit_words) == WARP)
        return;
    set_group(d);
}

static void decide_tensor(Sched *s, void *plan)
{
    TensorPlan *d = plan;
    Machine     m = machine_of(s->target);
    DeviceTile  t;
    Candidates  tiles = candidates(s), warps = candidates(s), chunks = candidates(s),
               stages = candidates(s), stores = candidates(s);
    const Candidate *c;

    d->most = limit_gpu_tensor_bytes(&m) / d->t.bytes;
    if (d->group)
        decide_unit(s, &m, d);
    t = d->t;
    const int64_t rows = device_unit_rows(&t), columns = device_unit_columns(&t);
    for (t.bm = rows; t.bm <= limit_gpu_tensor_side(&m); t.bm = next_side(t.bm, rows))
        for (t.bn = columns; t.bn <= limit_gpu_tensor_side(&m); t.bn = next_side(t.bn, columns)) {
            double least = tile_cycles(&m, d, t);
            if (!isnan(least))
                candidate(&tiles, t.bm, t.bn, least);
        }
    d->t.bm = 0;
    if (!tiles.of.n)
        return;
    c = pick_tile(s, "tile", &tiles);
    d->t.bm = t.bm = c->v[0];
    d->t.bn = t.bn = c->v[1];
    for (t.tm = rows; t.tm <= t.bm; t.tm = next_side(t.tm, rows))
        for (t.tn = columns; t.tn <= t.bn; t.tn = next_side(t.tn, columns)) {
            double least = t.bm % t.tm == 0 && t.bn % t.tn == 0 ? chunks_cycles(&m, d, t) : NAN;
            if (!isnan(least))
                candidate(&warps, t.tm, t.tn, least);
        }
    c = pick_tile(s, "warp", &warps);
    d->t.tm = t.tm = c->v[0];
    d->t.tn = t.tn = c->v[1];
    for (t.chunk = d->steps; t.chunk <= d->most; t.chunk *= 2) {
        double least = stages_cycles(&m, d, t);
        if (d->rounds % t.chunk == 0 && !isnan(least))
            candidate(&chunks, t.chunk, 0, least);
    }
    d->t.chunk = t.chunk = pick_factor(s, "chunk", &chunks);
    for (t.stages = 1; t.stages <= limit_gpu_stages(&m); t.stages++) {
        double least = stores_cycles(&m, t);
        if (!isnan(least))
            candidate(&stages, t.stages, 0, least);
    }
    d->t.stages = t.stages = pick_factor(s, "stages", &stages);
    for (int store = DIRECT; store <= STAGED; store++) {
        double cycles = store_cycles(&m, t, store);
        if (!isnan(cycles))
            candidate(&stores, store, 0, cycles);
    }
    d->t.staged =
        pick_order(s, "store", &stores, store_words) == STAGED ? device_mma_staged(&t) : 0;
}

/* One of the two panels of a chunk. */
typedef struct {
    const Operand *of;
    const char    *loops;  /* that choose its rows, .. */
    uint32_t       nloops; /* .. so many */
    bool           even;   /* every thread has as many 16 bytes of it */
    bool           along;  /* they lie in memory as they are multiplied */
} Side;

/* An operand's part of a chunk in shared memory.  It comes 16 bytes at a time where these lie as
 * they are multiplied, and every thread has as many of them; else as it lies, what a word of the
 * sum's steps holds by one thread. */
static void stage(Sched *s, const Product *p, const Side *side, const DeviceTile *t, const char *at)
{
    const char *name = side->of->tensor->name;
    uint32_t    k = side->nloops; /* the first dimension of the sum */
    StrBuf      order = strbuf(s->c->scratch);

    step(s, "cache_read %%%s %s shared %s, %%ks, %%kk at %%%s", name, p->block, side->loops, at);
    if (strcmp(p->block, name) != 0 && sched_block(s, name))
        step(s, "compute_inline %s", name);
    if (t->group)
        step(s, "exchange %%%s.shared", name);
    else if (t->unit->warp->opaque)
        step(s, "storage_align %%%s.shared dim=%u by %d offset=%d", name, k - 1,
             2 * WARP_BYTES / (int)t->bytes, (int)device_mma_pad(t));
    else
        step(s, "swizzle %%%s.shared by %lld", name, (long long)t->chunk);
    if (!side->along) {
        step(s, "split %%%s.shared.a%u by %d -> %%%s.q, %%%s.v", name, k + 1,
             WORD / (int)dtype_bytes(side->of->tensor->dtype), name, name);
        for (uint32_t i = 0; i < k; i++)
            str_printf(&order, ", %%%s.shared.a%u", name, i);
        step(s, "reorder %%%s.shared.a%u, %%%s.q%s, %%%s.v", name, k, name, order.at, name);
        step(s, "vectorize %%%s.v", name);
    } else if (side->even) {
        step(s, "split %%%s.shared.a%u by %lld -> %%%s.q, %%%s.v", name, k + 1, (long long)t->wide,
             name, name);
        try_step(s, t->held ? "vectorize %%%s.v" : "tensorize %%%s.v with @async_copy", name);
    }
}

void gpu_split_line(Sched *s, const Intrin *unit, uint32_t which, const char *name)
{
    const WarpDigit *digit = unit->warp->of[MATRIX_C][which];
    const bool       own_first = digit[0].from == OWN;
    const char       own = which ? 'j' : 'h', threads = which ? 'x' : 'y';

    step(s, "split %%%su by %d -> %%%s%c, %%%s%c", name, digit[1].size, name,
         own_first ? own : threads, name, own_first ? threads : own);
}

/* x is a cell of the block that the iterator walks, 32*c + i: of how many; 0: it is not. */
static int64_t block_of(Sched *s, const Idx *x, const Atom *v)
{
    const Atom *at;
    int64_t     n = v->hi + 1;
    bool        whole = !v->lo && !v->below && n > 1;

    return whole && idx_is_atom(idx_modc(s->c->arith, x, n), &at) && at == v && !idx_is_atom(x, &at)
               ? n
               : 0;
}

/* The loop over the blocks that v walks, by the operand; the number of loops: there is none. */
static uint32_t blocks_of(Sched *s, const Product *p, const Operand *o, const Atom *v)
{
    const BlockData *b = &sched_block(s, p->block)->u.block;
    const Atom      *at;

    for (uint32_t d = 0; d < o->tensor->ndim; d++) {
        int64_t n = block_of(s, o->index[d], v);
        for (uint32_t i = 0; n && i < p->k.n; i++)
            if (idx_is_atom(idx_divc(s->c->arith, o->index[d], n), &at) &&
                at == b->iter[b->nspatial + i])
                return i;
    }
    return p->k.n;
}

/* The loop of the sum whose parts chunks are: that along which the data lie, with all blocks of
 * it, else the first of whole instructions. */
static void find_loop(Sched *s, const Product *p, TensorPlan *plan)
{
    const BlockData *b = &sched_block(s, p->block)->u.block;
    const Operand   *a = &p->a;
    const Atom      *last;
    int64_t          rounds;

    plan->loop = p->k.n;
    for (uint32_t i = p->k.n; i-- > 0;)
        if (sched_loop_extent(s, p->k.at[i], &rounds) && rounds % plan->steps == 0) {
            plan->loop = i;
            if (idx_is_atom(a->index[a->tensor->ndim - 1], &last) &&
                last == b->iter[b->nspatial + i])
                break;
        }
    plan->blocks = plan->loop;
    plan->rounds = p->k.cells;
    if (plan->loop == p->k.n)
        return;
    sched_loop_extent(s, p->k.at[plan->loop], &plan->rounds);
    uint32_t blocks = blocks_of(s, p, &p->b, b->iter[b->nspatial + plan->loop]);
    if (blocks == p->k.n)
        return;
    plan->t.window = plan->t.window > plan->rounds ? plan->t.window / plan->rounds : 0;
    plan->blocks = blocks;
    sched_loop_extent(s, p->k.at[blocks], &rounds);
    plan->rounds *= rounds;
    plan->wide = p->b.tensor->scope == SCOPE_CONST;
}

/* The iterator whose rounds chunks are parts of; NULL: of several. */
static const Atom *along_of(Sched *s, const Product *p, const TensorPlan *plan)
{
    const BlockData *b = &sched_block(s, p->block)->u.block;

    for (uint32_t i = b->nspatial; plan->loop < p->k.n && i < b->nspatial + b->nreduce; i++)
        if (!strcmp(p->k.at[plan->loop],
                    intern_printf(s->c->strings, "%s.%s", p->block, b->iter[i]->name)))
            return b->iter[i];
    return NULL;
}

/* Neighbouring numbers of a chunk are neighbours in memory: they are chosen by the last dimension
 * alone, which a constant is stored for; blocks one behind the other. */
static bool lies_along(Sched *s, const Operand *o, const Atom *along, int64_t block, bool of_sum)
{
    uint32_t    d = o->tensor->ndim, at = d;
    StrBuf      was = strbuf(s->c->scratch), now = strbuf(s->c->scratch);
    const Atom *v;

    if (!along)
        return of_sum;
    for (uint32_t i = 0; i < d; i++) {
        if ((idx_is_atom(o->index[i], &v) && v == along) ||
            (block && block_of(s, o->index[i], along) == block))
            at = i;
        str_printf(&was, i ? ", d%u" : "d%u", i);
    }
    if (at + 1 == d)
        return true;
    if (at == d || sched_block(s, o->tensor->name))
        return false;
    for (uint32_t i = 0; i < d; i++)
        if (i != at)
            str_printf(&now, "d%u, ", i);
    if (block)
        str_printf(&now, "d%u//%lld, d%u%%%lld", at, (long long)block, at, (long long)block);
    else
        str_printf(&now, "d%u", at);
    return try_step(s, "transform_layout %%%s (%s) -> (%s)", o->tensor->name, was.at, now.at);
}

static void arrange(Sched *s, const Product *p, const TensorPlan *plan)
{
    const DeviceTile *t = &plan->t;
    Loops             rows = p->m_inner ? p->n : p->m, columns = p->m_inner ? p->m : p->n;
    Loops             both = p->both, chunks = {0}, blocks = {0}, outer = {0};
    const Operand    *row = p->m_inner ? &p->b : &p->a, *column = p->m_inner ? &p->a : &p->b;
    const Loops      *every[] = {&both, &rows, &columns, &outer, &chunks}, *front[] = {&blocks},
                *k[] = {&outer};
    const Atom *along = along_of(s, p, plan);
    const char *at = "ko";
    const bool  above = t->tm < t->bm, beside = t->tn < t->bn; /* each other */
    const char *lines = t->group ? "%rt, %wz, %rh, %ry"        /* an instruction's side by side */
                        : above  ? "%wz, %rt, %rh, %ry"
                                 : "%rt, %rh, %ry";
    Side        sides[2] = {{row, lines, above || t->group ? 4 : 3, is_even(t, t->bm), false},
                            {column, beside ? "%wz, %ct, %cx, %cj" : "%ct, %cx, %cj", beside ? 4 : 3,
                             is_even(t, t->bn), false}};

    for (uint32_t i = 0; i < 2; i++)
        sides[i].along =
            lies_along(s, sides[i].of, along, plan->blocks == plan->loop ? 0 : along->hi + 1,
                       sides[i].of == &p->a ? p->a_along_k : p->b_along_k);
    for (uint32_t i = 0; along && i < p->k.n; i++)
        if (i != plan->loop && i != plan->blocks)
            loops_add(s, &outer, p->k.at[i]);
    if (along && plan->blocks != plan->loop)
        loops_add(s, &chunks, p->k.at[plan->blocks]);
    if (along)
        loops_add(s, &chunks, p->k.at[plan->loop]);
    else
        chunks = p->k;
    step(s, "reorder %s", loops_text(s, 5, every));
    loops_fuse(s, &rows, "r");
    loops_fuse(s, &columns, "c");
    loops_fuse(s, &chunks, "k");
    step(s, "split %%%s by %lld tail=if -> %%rb, %%ri", rows.at[0], (long long)t->bm);
    step(s, "split %%ri by %lld -> %%rw, %%rv", (long long)t->tm);
    step(s, "split %%rv by %d -> %%rt, %%ru", (int)device_unit_rows(t));
    gpu_split_line(s, t->unit, 0, "r");
    step(s, "split %%%s by %lld tail=if -> %%cb, %%ci", columns.at[0], (long long)t->bn);
    step(s, "split %%ci by %lld -> %%cw, %%cv", (long long)t->tn);
    step(s, "split %%cv by %d -> %%ct, %%cu", (int)device_unit_columns(t));
    gpu_split_line(s, t->unit, 1, "c");
    step(s, "split %%%s by %lld -> %%ko, %%ki", chunks.at[0], (long long)t->chunk);
    step(s, "split %%ki by %lld -> %%ks, %%kk", (long long)plan->steps);
    for (uint32_t i = 0; i < both.n; i++)
        loops_add(s, &blocks, both.at[i]);
    loops_add(s, &blocks, "rb");
    loops_add(s, &blocks, "cb");
    open_first(s, &blocks);
    step(s, "reorder %s, %%rw, %%cw, %%ry, %%cx, %s%s%%ko, %%ks, %%rt, %%ct, %%rh, %%cj, %%kk",
         loops_text(s, 1, front), loops_text(s, 1, k), outer.n ? ", " : "");
    if (s->refusal)
        return;
    bind_blocks(s, &blocks, "blk");
    if (t->stages > 1) { /* one pipeline for all chunks */
        loops_add(s, &outer, "ko");
        loops_fuse(s, &outer, "kq");
        at = outer.at[0];
    }
    step(s, "cache_write %s %s at %%cx", p->block, t->unit->warp->opaque ? "frag" : "local");
    if (t->staged)
        store_staged(s, p, t, blocks.at[0]);
    else if (p->follow)
        step(s, "reverse_compute_at %s %%cx", p->follow);
    step(s, "fuse %%rw, %%cw -> %%wz");
    step(s, "bind %%wz threadIdx.z");
    step(s, "bind %%ry threadIdx.y");
    step(s, "bind %%cx threadIdx.x");
    for (uint32_t i = 0; i < 2; i++)
        stage(s, p, &sides[i], t, at);
    try_step(s, "unguard %s", p->block);
    try_step(s, "unguard %s.load", p->block);
    if (t->unit->warp->opaque) /* matrices are stored whole */
        try_step(s, "unguard %s.save", p->block);
    if (t->stages > 1)
        try_step(s, "pipeline %%%s by %lld", at, (long long)t->stages);
    else /* compilers of devices write a short one out, begin the copies of all, and spill */
        try_step(s, "unroll_hint %%%s by 1", at);
}

/* The outermost of the instructions' loops that has rounds. */
static const char *first_tiles(const DeviceTile *t)
{
    return t->tm > device_unit_rows(t)                ? "rt"
           : t->tn > device_unit_columns(t)           ? "ct"
           : warp_own(t->unit->warp, MATRIX_C, 0) > 1 ? "rh"
                                                      : "cj";
}

bool tensor_product(Sched *s, const Product *p)
{
    const Operand *row = p->m_inner ? &p->b : &p->a, *column = p->m_inner ? &p->a : &p->b;
    const DType    r = row->tensor->dtype, c = column->tensor->dtype;
    Sched          was = *s;
    const Intrin  *unit = gpu_instruction(s->c, s->target, r, c, false);
    TensorPlan     plan = {.group = gpu_instruction(s->c, s->target, r, c, true)};

    if (!unit || p->group || p->first || p->k.open)
        return false;
    plan.t = (DeviceTile){.unit = unit,
                          .held = !gpu_copies(s->c, s->target, r),
                          .m = p->m_inner ? p->n.cells : p->m.cells,
                          .n = p->m_inner ? p->m.cells : p->n.cells,
                          .k = p->k.cells,
                          .batch = p->both.n ? p->both.cells : 1,
                          .bytes = dtype_bytes(row->tensor->dtype),
                          .open = {p->m_inner ? p->n.open : p->m.open,
                                   p->m_inner ? p->m.open : p->n.open, 0, p->both.open}};
    plan.t.wide = copied_cells(&plan.t);
    bool data = !p->a_along_k, weights = !p->b_along_k && p->b.tensor->scope != SCOPE_CONST;
    plan.t.keeps_m = p->m_inner ? weights : data;
    plan.t.keeps_n = p->m_inner ? data : weights;
    find_result(s, p, p->m_inner ? &p->m : &p->n, &plan.t);
    plan.t.window = window_steps(s, p);
    plan.steps = unit->extent[2];
    find_loop(s, p, &plan);
    if (plan.rounds % plan.steps)
        return false;
    sched_decide(s, decide_tensor, &plan);
    if (plan.t.bm && !s->refusal)
        arrange(s, p, &plan);
    if (!s->refusal)
        step(s, "tensorize %%%s#1 with @%s", first_tiles(&plan.t), plan.t.unit->text);
    for (uint32_t copy = 0; copy <= 2; copy += 2) { /* where the sums start, and end */
        if (unit->warp->opaque)
            try_step(s, "vectorize %%cj#%u", copy);
        try_step(s, "unroll %%rt#%u, %%ct#%u, %%rh#%u%s", copy, copy, copy,
                 unit->warp->opaque ? "" : arena_printf(s->c->scratch, ", %%cj#%u", copy));
    }
    if (plan.t.chunk > plan.steps)
        try_step(s, "unroll_hint %%ks by %lld", (long long)(plan.t.chunk / plan.steps));
    if (plan.t.bm && !s->refusal)
        return true;
    *s = was;
    return false;
}

/* ---- what a convolution takes, before there is a kernel --------------------------------------- */

int64_t gpu_steps(Ctx *c, DType data, DType weight, DType sum)
{
    const Intrin *unit = gpu_instruction(c, c->target, data, weight, false);

    return sum.bits == 32 && unit ? unit->extent[2] : 0;
}

/* Its loops as find_loops and find_loop have them. */
static TensorPlan plan_conv(Ctx *c, const GpuConv *w)
{
    int64_t    pixels = w->n * w->pixels;
    TensorPlan d = {.steps = gpu_steps(c, w->data, w->weight, w->sum)};

    d.t = (DeviceTile){.unit = gpu_instruction(c, c->target, w->data, w->weight, false),
                       .held = !gpu_copies(c, c->target, w->data),
                       .m = w->run ? pixels : w->out,
                       .n = w->run ? w->out : pixels,
                       .k = w->channels * w->taps,
                       .batch = 1,
                       .bytes = dtype_bytes(w->data),
                       .sum_bytes = 4,
                       .window = w->taps > 1 ? w->taps : 0,
                       .keeps_m = w->run && !w->along,
                       .keeps_n = !w->run && !w->along,
                       .run = w->run ? w->run : w->pixels,
                       .result_bytes = dtype_bytes(w->data)};
    d.t.wide = d.t.unit ? copied_cells(&d.t) : 0; /* 0: not by warps */
    d.rounds = d.steps && w->channels % d.steps ? d.t.k : w->channels;
    d.wide = w->along;
    return d;
}

double gpu_conv_cycles(Ctx *c, const GpuConv *w)
{
    Machine    m = machine_of(c->target);
    TensorPlan d = plan_conv(c, w);

    if (!d.steps || d.rounds % d.steps)
        return gpu_tile_cycles(&m, d.t);
    d.most = limit_gpu_tensor_bytes(&m) / d.t.bytes;
    d.group = gpu_instruction(c, c->target, w->data, w->weight, true);
    double least = least_cycles(&m, d, false);
    return d.group ? fmin(least, least_cycles(&m, d, true)) : least;
}
