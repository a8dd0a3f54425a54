/* Attention on a GPU by instructions of warps: operands of 16 bits, sums of 32.
 *
 * Both products are such as those of tensor.c.  A warp has tm rows of queries and all columns, the
 * keys of a chunk or the columns of the values, in tiles of an instruction (here NVIDIA's, 16 by
 * 8):
 *
 *     split mi -> z, rt, rh (2), ry (8);  split j -> ct, cx (4), cj (2)
 *     score      of queries and keys, which lie in shared memory as they are multiplied: queries
 *                for all chunks, keys for one
 *     masked     where a thread has its sums, rows side by side
 *     top, part  of its cells by each thread (rfactor cx), of these four by a thread a row
 *     max, ..    a thread a row, as in attention.c
 *     exp        where a thread had its sums, two numbers at a time; rounded to the operands' type,
 *                since the next product multiplies it (narrow %exp); `part` sums what is rounded
 *     prod       of those and the chunk of values
 *
 * Rows of what is multiplied change places (swizzle) or are 16 bytes longer, so that the eight that
 * ldmatrix loads at a time lie in different banks; rows of scores and results are longer by four
 * numbers (storage_align): thread (x, y) has row y of columns 2 * x and 2 * x + 1. */
#include "ir/tir/intrin.h"
#include "schedules/gpu/gpu.h"

#include <math.h>

enum { BANKS = 32, QUAD = 4, ASIDE = 8 }; /* of shared memory, a word each */

/* ---- decisions ------------------------------------------------------------------------------------- */

/* The type of the numbers that a block copies, wider ones, or nothing where they are not there. */
static bool copied_type(const Sched *s, const char *block, DType *t)
{
    const Stmt *b = sched_block(s, block);
    const Prim *value = b ? b->kids[b->nkids - 1]->u.store.value : NULL;

    if (value && value->kind == PRIM_SELECT)
        value = value->kids[1];
    if (!value || value->kind != PRIM_CAST || value->kids[0]->kind != PRIM_LOAD)
        return false;
    *t = value->kids[0]->dtype;
    return true;
}

const Intrin *attention_unit(Sched *s, const DeviceAttention *a, DType *type)
{
    const Intrin *unit;
    DType         t[3];

    if (!copied_type(s, "queries", &t[0]) || !copied_type(s, "keys", &t[1]) ||
        !copied_type(s, "values", &t[2]) || !dtype_eq(t[0], t[1]) || !dtype_eq(t[0], t[2]))
        return NULL;
    *type = t[0];
    unit = gpu_instruction(s->c, s->target, t[0], t[0], false);
    return unit && !unit->warp->opaque && a->k % unit->extent[2] == 0 &&
                   a->chunk % unit->extent[2] == 0
               ? unit
               : NULL;
}

void decide_warps(Sched *s, const Machine *m, AttentionPlan *p)
{
    DeviceAttention a = device_attention_warp_best(m, p->a), t = a;
    Candidates      rows = candidates(s), warps = candidates(s);
    double          cycles;

    for (t.rows = t.tm; t.rows <= limit_gpu_tensor_side(m); t.rows *= 2)
        if (!isnan(cycles = device_attention_warp_cycles(m, &t)))
            candidate(&rows, t.rows, 0, cycles);
    t.rows = a.rows = pick_factor(s, "rows", &rows);
    for (t.tm = a.unit->extent[0]; t.tm <= t.rows; t.tm *= 2)
        if (!isnan(cycles = device_attention_warp_cycles(m, &t)))
            candidate(&warps, t.tm, 0, cycles);
    a.tm = pick_factor(s, "warp", &warps);
    p->a = a;
    p->x = a.unit->warp->x;
    p->y = a.unit->warp->y;
    p->z = a.rows / a.tm;
}

/* ---- the steps ------------------------------------------------------------------------------------- */

/* The rows of a block of threads side by side behind the cells, or in front of them. */
static void lay_out(Sched *s, const char *tensor, bool rows_last, const AttentionPlan *p)
{
    uint32_t  n = sched_block(s, tensor)->u.block.nspatial, row = n - 3;
    long long rows = p->a.rows;
    StrBuf    from = strbuf(s->c->scratch), batch = strbuf(s->c->scratch);

    for (uint32_t i = 0; i < n; i++)
        str_printf(&from, i ? ", d%u" : "d%u", i);
    for (uint32_t i = 0; i < row; i++)
        str_printf(&batch, "d%u, ", i);
    str_printf(&batch, "d%u//%lld, d%u, ", row, rows, row + 1);
    if (rows_last)
        str_printf(&batch, "d%u, d%u%%%lld", row + 2, row, rows);
    else
        str_printf(&batch, "d%u%%%lld, d%u", row, rows, row + 2);
    step(s, "transform_layout %%%s (%s) -> (%s)", tensor, from.at, batch.at);
    if (rows_last)
        step(s, "storage_align %%%s dim=%u by %d offset=%d", tensor, n - 1, BANKS, QUAD);
}

/* Blocks of rows are whole, so that those beyond the last may be multiplied. */
void attention_warp_layouts(Sched *s, const AttentionPlan *p)
{
    lay_out(s, "masked", true, p);
    lay_out(s, "exp", false, p);
    lay_out(s, "total", true, p);
}

/* The rows of a thread in the tiles of its warp, and its cells. */
static void split_rows(Sched *s, const char *b, const char *rows, const AttentionPlan *p)
{
    step(s, "split %%%s by %lld -> %%%s.z, %%%s.rv", rows, (long long)p->a.tm, b, b);
    step(s, "split %%%s.rv by %d -> %%%s.rt, %%%s.ru", b, (int)p->a.unit->extent[0], b, b);
    gpu_split_line(s, p->a.unit, 0, arena_printf(s->c->scratch, "%s.r", b));
}

static void split_columns(Sched *s, const char *b, const char *column, const AttentionPlan *p)
{
    step(s, "split %%%s.%s by %d tail=if -> %%%s.ct, %%%s.cu", b, column, (int)p->a.unit->extent[1],
         b, b);
    gpu_split_line(s, p->a.unit, 1, arena_printf(s->c->scratch, "%s.c", b));
}

static void split_cells(Sched *s, const char *b, const char *column, const AttentionPlan *p)
{
    split_rows(s, b, attention_rows(s, b, false), p);
    split_columns(s, b, column, p);
}

static void bind_cells_of(Sched *s, const char *rows, const char *columns)
{
    step(s, "bind %%%s.z threadIdx.z", rows);
    step(s, "bind %%%s.ry threadIdx.y", rows);
    step(s, "bind %%%s.cx threadIdx.x", columns);
}

/* Its sums, behind which `follow` stores what it makes of them. */
static void split_product(Sched *s, const char *b, const char *column, const char *sum,
                          const char *follow, const AttentionPlan *p)
{
    split_cells(s, b, column, p);
    step(s, "split %%%s.%s by %d -> %%%s.ks, %%%s.kk", b, sum, (int)p->a.unit->extent[2], b, b);
    step(s,
         "reorder %%%s.z, %%%s.ry, %%%s.cx, %%%s.ks, %%%s.rt, %%%s.ct, %%%s.rh, %%%s.cj, %%%s.kk",
         b, b, b, b, b, b, b, b, b);
    bind_cells_of(s, b, b);
    step(s, "cache_write %s local at %%%s.cx", b, b);
    step(s, "reverse_compute_at %s %%%s.cx", follow, b);
}

/* One of the sides of a product in shared memory: so many loops choose its rows, which have so many
 * numbers of the sum. */
typedef struct {
    const char *tensor, *block;
    const char *lines[5]; /* of the block */
    uint32_t    nlines;
    int64_t     numbers;
    bool        along; /* they lie so in memory */
} Side;

static const char *lines_of(const Sched *s, const Side *side)
{
    StrBuf text = strbuf(s->c->scratch);

    for (uint32_t i = 0; i < side->nlines; i++)
        str_printf(&text, "%%%s.%s, ", side->block, side->lines[i]);
    return text.at;
}

/* Rows whose 16 bytes lie in different banks. */
static void keep_apart(Sched *s, const char *tensor, int64_t numbers, uint32_t row,
                       const AttentionPlan *p)
{
    int place = WARP_BYTES / (int)dtype_bytes(p->type);

    if (numbers & (numbers - 1))
        step(s, "storage_align %%%s dim=%u by %d offset=%d", tensor, row, 2 * place, place);
    else
        step(s, "swizzle %%%s by %lld", tensor, (long long)numbers);
}

/* It is copied by all threads in each round of `at`, 16 bytes at a time where these lie as they are
 * multiplied, else in words. */
static void stage(Sched *s, const Side *side, const char *at, const AttentionPlan *p)
{
    const char *copy = arena_printf(s->c->scratch, "%s.shared", side->tensor);
    uint32_t    k = side->nlines;
    int64_t     threads = p->x * p->y * p->z;
    StrBuf      order = strbuf(s->c->scratch);

    step(s, "cache_read %%%s %s shared %s%%%s.ks, %%%s.kk at %%%s", side->tensor, side->block,
         lines_of(s, side), side->block, side->block, at);
    if (sched_block(s, side->tensor))
        step(s, "compute_inline %s", side->tensor);
    step(s, "narrow %%%s type=%s", copy, dtype_text(s->c, p->type));
    keep_apart(s, copy, side->numbers, k - 1, p);
    step(s, "split %%%s.a%u by %d -> %%%s.q, %%%s.v", copy, k + 1,
         (side->along ? WARP_BYTES : WORD) / (int)dtype_bytes(p->type), copy, copy);
    for (uint32_t i = 0; i < k; i++)
        str_printf(&order, "%%%s.a%u, ", copy, i);
    if (side->along) {
        try_step(s,
                 gpu_copies(s->c, s->target, p->type) ? "tensorize %%%s.v with @async_copy"
                                                      : "vectorize %%%s.v",
                 copy);
        step(s, "fuse %s%%%s.a%u, %%%s.q -> %%%s.c", order.at, copy, k, copy, copy);
    } else {
        step(s, "reorder %%%s.a%u, %%%s.q, %s%%%s.v", copy, k, copy, order.at, copy);
        step(s, "vectorize %%%s.v", copy);
        step(s, "fuse %%%s.a%u, %%%s.q, %.*s -> %%%s.c", copy, k, copy, (int)order.n - 2, order.at,
             copy);
    }
    step(s, "split %%%s.c by %lld tail=if -> %%%s.r, %%%s.f", copy, (long long)threads, copy, copy);
    attention_threads(s, copy, arena_printf(s->c->scratch, "%s.f", copy), threads, "r", p);
}

/* The instructions, and what begins and ends the sums written out. */
static void multiply(Sched *s, const char *b, int64_t columns, const AttentionPlan *p)
{
    const Intrin *unit = p->a.unit;
    const char *first = p->a.tm > unit->extent[0] ? "rt" : columns > unit->extent[1] ? "ct" : "rh";

    try_step(s, "unguard %s", b);
    try_step(s, "unguard %s.load", b);
    step(s, "tensorize %%%s.%s#1 with @%s", b, first, unit->text);
    for (uint32_t copy = 0; copy <= 2; copy += 2)
        try_step(s, "unroll %%%s.rt#%u, %%%s.ct#%u, %%%s.rh#%u, %%%s.cj#%u", b, copy, b, copy, b,
                 copy, b, copy);
}

void attention_warp_scores(Sched *s, const AttentionPlan *p, const char *queries,
                           bool queries_along, bool keys_along)
{
    const Side rows = {queries, "score", {"z", "rt", "rh", "ry"}, 4, p->a.k, queries_along},
               columns = {"keys", "score", {"ct", "cx", "cj"}, 3, p->a.k, keys_along};

    split_product(s, "score", "j", "k", "masked", p);
    stage(s, &columns, "t", p);
    stage(s, &rows, "blk", p);
    multiply(s, "score", p->a.chunk, p);
}

void attention_warp_exp(Sched *s, const AttentionPlan *p)
{
    split_cells(s, "exp", "j", p);
    step(s, "reorder %%exp.z, %%exp.ry, %%exp.cx, %%exp.rt, %%exp.ct, %%exp.rh, %%exp.cj");
    bind_cells_of(s, "exp", "exp");
    step(s, "vectorize %%exp.cj");
}

void attention_warp_reduction(Sched *s, const char *b, const AttentionPlan *p)
{
    const char *rf = arena_printf(s->c->scratch, "%s.rf", b);

    split_columns(s, b, "j", p);
    step(s, "rfactor %%%s.cx at %%t", b);
    step(s, "storage_align %%%s dim=0 by %d offset=%d", rf, BANKS, ASIDE);
    attention_threads(s, b, attention_rows(s, b, true), p->a.rows, NULL, p);
    step(s, "cache_write %s reg at %%%s.x", b, b);
    split_rows(s, rf, attention_rows(s, b, false), p);
    step(s, "reorder %%%s.z, %%%s.ry, %%%s.cx, %%%s.rt, %%%s.rh, %%%s.ct, %%%s.cj", rf, rf, b, rf,
         rf, b, b);
    bind_cells_of(s, rf, b);
    step(s, "cache_write %s reg at %%%s.rh", rf, rf);
    step(s, "unroll %%%s.cj", b);
    step(s, "unroll_hint %%%s.ct by %lld", b, (long long)p->written / 2);
}

void attention_warp_results(Sched *s, const AttentionPlan *p, bool values_along)
{
    const Side columns = {"values", "prod", {"ct", "cx", "cj"}, 3, p->a.chunk, values_along};

    step(s, "set_scope %%exp shared");
    step(s, "narrow %%exp type=%s", dtype_text(s->c, p->type));
    step(s, "swizzle %%exp by %lld", (long long)p->a.chunk);
    split_product(s, "prod", "e", "j", "total", p);
    stage(s, &columns, "t", p);
    multiply(s, "prod", p->a.e, p);
}
