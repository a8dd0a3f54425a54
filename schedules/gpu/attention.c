/* Attention on a GPU: keys by chunks, scores in shared memory, results scaled as they grow.
 *
 *     split m by 32 -> mb, mi;  distribute mi     a block of threads has 32 rows of queries, and
 *     fuse b, mb -> blk;  bind blk blockIdx.x     goes through the chunks of keys with them
 *     score         threads of 4 by 4 scores; parts of queries and keys in shared memory
 *     masked        where a thread has its sums
 *     top, max, keep, part, sum                   a thread a row
 *     exp           in place of the scores, a cell a thread
 *     prod          threads of 4 by 4 results; a part of the values in shared memory
 *     total         where a thread has its sums
 *     out           a cell a thread
 *
 * Scores and results lie in shared memory with the cells of a row across: threads along x have
 * neighbouring rows, so they come to neighbouring banks; those along y have keys or columns.  Rows,
 * keys and columns that no tile divides are computed and not used.
 *
 * Where the target has instructions of warps for the operands' numbers, of 16 bits, and they are
 * estimated to be quicker, both products are made by these (attention_warps.c), unless a run
 * decides how many heads, queries or keys there are. */
#include "schedules/gpu/gpu.h"

#include <math.h>
#include <string.h>

/* What a round of the scan is made of, and what is before and behind it, in order. */
static const char *const stages[] = {"max.init", "sum.init", "total.init", "score", "masked",
                                     "top",      "max",      "keep",       "exp",   "part",
                                     "sum",      "prod",     "total",      "out"};

/* ---- decisions ----------------------------------------------------------------------------------- */

static void note(const Machine *m, Candidates *k, const DeviceAttention *a, int64_t v0, int64_t v1)
{
    double cycles = device_attention_cycles(m, a);

    if (!isnan(cycles))
        candidate(k, v0, v1, cycles);
}

static void decide_cells(Sched *s, const Machine *machine, AttentionPlan *p, DeviceAttention a)
{
    const Machine   m = *machine;
    DeviceAttention t;
    Candidates      rows = candidates(s), cells = candidates(s), parts = candidates(s);

    for (t = a; t.rows >= t.tm; t.rows /= 2)
        note(&m, &rows, &t, t.rows, 0);
    a.rows = pick_factor(s, "rows", &rows);
    t = a;
    for (t.tm = 4; t.tm <= limit_gpu_cells(&m); t.tm *= 2)
        for (t.tn = 4; t.tn <= limit_gpu_cells(&m); t.tn *= 2)
            note(&m, &cells, &t, t.tm, t.tn);
    const Candidate *c = pick_tile(s, "cells", &cells);
    a.tm = c->v[0];
    a.tn = c->v[1];
    t = a;
    for (t.part = limit_gpu_least_chunk(&m); t.part <= limit_gpu_chunk(&m); t.part *= 2)
        note(&m, &parts, &t, t.part, 0);
    a.part = pick_factor(s, "part", &parts);
    p->a = a;
    p->x = a.rows / a.tm;
    p->y = a.chunk / a.tn;
    p->quad = device_quad(&m, a.bytes);
    p->times = device_attention_columns(&m, &a);
    p->once = p->times < p->quad ? p->times : p->quad;
    p->times /= p->once;
}

/* Who multiplies: a thread its cells, or the threads of a warp together. */
enum { THREAD, WARP };
static const char *const unit_words[] = {"thread", "warp"};

static bool decide_unit(Sched *s, const Machine *m, const DeviceAttention *thread,
                        const DeviceAttention *warp)
{
    Candidates units = candidates(s);

    if (thread->rows)
        candidate(&units, THREAD, 0, device_attention_cycles(m, thread));
    if (warp->rows)
        candidate(&units, WARP, 0, device_attention_warp_cycles(m, warp));
    return pick_order(s, "unit", &units, unit_words) == WARP;
}

static void decide_attention(Sched *s, void *plan)
{
    AttentionPlan  *p = plan;
    Machine         m = machine_of(s->target);
    DeviceAttention a = device_attention_best(&m, p->a), b = {0};

    p->written = limit_gpu_written(&m);
    if (p->a.unit)
        b = device_attention_warp_best(&m, p->a);
    if (b.rows && decide_unit(s, &m, &a, &b)) {
        decide_warps(s, &m, p);
        return;
    }
    p->z = 0;
    p->a.rows = a.rows;
    if (a.rows)
        decide_cells(s, &m, p, a);
}

/* ---- who does what ------------------------------------------------------------------------------- */

const char *attention_rows(const Sched *s, const char *stage, bool behind)
{
    uint32_t i = 0;

    while (strcmp(stages[i], stage) != 0)
        i++;
    return arena_printf(s->c->scratch, "mi#%u", i + behind);
}

void attention_threads(Sched *s, const char *b, const char *loop, int64_t rounds, const char *inner,
                       const AttentionPlan *p)
{
    const int64_t warp = p->x * p->y;
    const char   *z = p->z ? arena_printf(s->c->scratch, "%%%s.z, ", b) : "";

    if (p->z)
        step(s, "split %%%s by %lld -> %%%s.z, %%%s.l", loop,
             (long long)(rounds < warp ? rounds : warp), b, b);
    step(s, "split %%%s by %lld -> %%%s.y, %%%s.x",
         p->z ? arena_printf(s->c->scratch, "%s.l", b) : loop, (long long)p->x, b, b);
    if (inner)
        step(s, "reorder %s%%%s.y, %%%s.x, %%%s.%s", z, b, b, b, inner);
    if (p->z)
        step(s, "bind %%%s.z threadIdx.z", b);
    step(s, "bind %%%s.y threadIdx.y", b);
    step(s, "bind %%%s.x threadIdx.x", b);
}

/* A number a row: a thread each. */
static void row_a_thread(Sched *s, const char *b, const AttentionPlan *p)
{
    attention_threads(s, b, attention_rows(s, b, false), p->a.rows, NULL, p);
    if (!sched_block(s, b) || !sched_block(s, b)->u.block.nreduce)
        return;
    step(s, "cache_write %s reg at %%%s.x", b, b);
    step(s, "unroll_hint %%%s.j by %lld", b, (long long)p->written);
}

/* A cell a thread, its neighbours in the next row or in the next column. */
static void cell_a_thread(Sched *s, const char *b, const char *column, bool by_rows,
                          const AttentionPlan *p)
{
    const char *rows = attention_rows(s, b, false);
    int64_t     threads = p->x * p->y * (p->z ? p->z : 1);

    if (by_rows)
        step(s, "reorder %%%s.%s, %%%s", b, column, rows);
    if (by_rows)
        step(s, "fuse %%%s.%s, %%%s -> %%%s.c", b, column, rows, b);
    else
        step(s, "fuse %%%s, %%%s.%s -> %%%s.c", rows, b, column, b);
    step(s, "split %%%s.c by %lld tail=if -> %%%s.r, %%%s.f", b, (long long)threads, b, b);
    attention_threads(s, b, arena_printf(s->c->scratch, "%s.f", b), threads, "r", p);
}

/* Cells of a product in a thread's registers, `once` columns side by side. */
static void cells_a_thread(Sched *s, const char *b, const char *column, int64_t once,
                           const char *sum, const AttentionPlan *p)
{
    int64_t part = 0;

    if (sched_loop_extent(s, arena_printf(s->c->scratch, "%s.%s", b, sum), &part))
        part = part < p->a.part ? part : p->a.part;
    step(s, "split %%%s by %lld -> %%%s.mt, %%%s.mr", attention_rows(s, b, false),
         (long long)p->a.tm, b, b);
    step(s, "split %%%s.%s by %lld tail=if -> %%%s.nh, %%%s.ni", b, column,
         (long long)(p->y * once), b, b);
    step(s, "split %%%s.ni by %lld -> %%%s.nt, %%%s.nr", b, (long long)once, b, b);
    step(s, "split %%%s.%s by %lld tail=if -> %%%s.ko, %%%s.ki", b, sum, (long long)part, b, b);
    step(s, "reorder %%%s.nt, %%%s.mt, %%%s.ko, %%%s.ki, %%%s.nh, %%%s.mr, %%%s.nr", b, b, b, b, b,
         b, b);
    step(s, "bind %%%s.nt threadIdx.y", b);
    step(s, "bind %%%s.mt threadIdx.x", b);
    step(s, "cache_write %s reg at %%%s.mt", b, b);
}

/* Loops of a block, by name. */
static Loops loops_of(const Sched *s, const char *b, uint32_t n, const char *const *names)
{
    Loops l = {0};

    for (uint32_t i = 0; i < n; i++)
        loops_add(s, &l, arena_printf(s->c->scratch, "%s.%s", b, names[i]));
    return l;
}

static void write_out(Sched *s, const char *b, const AttentionPlan *p)
{
    int64_t n = p->written < p->a.part ? p->written : p->a.part;

    try_step(s, "unguard %s", b);
    try_step(s, "unguard %s.load", b);
    step(s, "unroll %%%s.nh, %%%s.mr, %%%s.nr", b, b, b);
    step(s, "unroll_hint %%%s.ki by %lld", b, (long long)n);
}

typedef struct {
    const BlockData *b;
    const Buffer    *skip[2];
    const Buffer    *found;
    const char      *sum;       /* an iterator, */
    bool             along_sum; /* and whether its last index is of that */
} Load;

static void find_load(void *user, const Prim *p)
{
    Load *l = user;

    if (p->kind != PRIM_LOAD || l->found || p->u.load.buffer == l->skip[0] ||
        p->u.load.buffer == l->skip[1])
        return;
    l->found = p->u.load.buffer;
    for (uint32_t i = 0; i < l->b->nspatial + l->b->nreduce && p->u.load.n; i++)
        if (!strcmp(l->b->iter[i]->name, l->sum))
            l->along_sum = idx_uses(p->u.load.index[p->u.load.n - 1], l->b->iter[i]);
}

/* The tensor that a block loads, other than these two, and whether it lies along the sum. */
static Load load_of(const Sched *s, const char *block, const char *sum, const Buffer *a,
                    const Buffer *b)
{
    const Stmt *at = sched_block(s, block);
    Load        l = {.b = &at->u.block, .skip = {a, b}, .sum = sum};

    prim_visit(at->kids[at->nkids - 1]->u.store.value,
               &(TirVisit){&l, NULL, NULL, find_load, NULL});
    return l;
}

static const Buffer *tensor_of(const Sched *s, const char *block)
{
    const Stmt *at = sched_block(s, block);

    return at->kids[at->nkids - 1]->u.store.buffer;
}

static void scores(Sched *s, const AttentionPlan *p)
{
    Load queries = load_of(s, "score", "k", tensor_of(s, "score"), tensor_of(s, "keys")),
         keys = load_of(s, "keys", "k", NULL, NULL);

    cells_a_thread(s, "score", "j", p->a.tn, "k", p);
    step(s, "reverse_compute_at masked %%score.mt");
    Loops k = loops_of(s, "score", 1, (const char *[]){"ki"}),
          m = loops_of(s, "score", 2, (const char *[]){"mt", "mr"}),
          n = loops_of(s, "score", 2, (const char *[]){"nt", "nr"});
    copy_cells(s, queries.found->name, "shared", "score", &k, &m, "score.ko");
    copy_cells(s, "keys", "shared", "score", &k, &n, "score.ko");
    if (queries.along_sum)
        transpose_copy(s, queries.found->name, k.n, &m, p->quad, 1, false);
    if (keys.along_sum)
        transpose_copy(s, "keys", k.n, &n, p->quad, 1, false);
    write_out(s, "score", p);
}

static void results(Sched *s, const AttentionPlan *p)
{
    cells_a_thread(s, "prod", "e", p->once, "j", p);
    step(s, "reverse_compute_at total %%prod.mt");
    Loops k = loops_of(s, "prod", 1, (const char *[]){"ki"}),
          n = loops_of(s, "prod", 3, (const char *[]){"nh", "nt", "nr"});
    copy_cells(s, "values", "shared", "prod", &k, &n, "prod.ko");
    step(s, "cache_read %%exp prod reg %%prod.mr at %%prod.ki");
    step(s, "unroll %%exp.reg.a0");
    write_out(s, "prod", p);
}

/* The last two dimensions of a tensor before the rows, which neighbouring threads have. */
static void rows_last(Sched *s, const char *tensor)
{
    uint32_t n = sched_block(s, tensor)->u.block.nspatial;
    StrBuf   from = strbuf(s->c->scratch), batch = strbuf(s->c->scratch);

    for (uint32_t i = 0; i < n; i++)
        str_printf(&from, i ? ", d%u" : "d%u", i);
    for (uint32_t i = 0; i + 3 < n; i++)
        str_printf(&batch, "d%u, ", i);
    step(s, "transform_layout %%%s (%s) -> (%sd%u, d%u, d%u)", tensor, from.at,
         batch.n ? batch.at : "", n - 2, n - 1, n - 3);
}

/* ---- the rule ------------------------------------------------------------------------------------ */

/* More than one round; *open: how many of them a run decides. */
static bool extent(const Sched *s, const char *loop, int64_t *n, int64_t *open)
{
    const Idx *rounds = sched_loop_form(s, loop);

    *n = rounds ? idx_usual(rounds) : 0;
    *open = rounds && !idx_is_const(rounds, NULL) ? *n : 0;
    return *n > 1;
}

/* Heads are the loops around that of the rows. */
static bool find_sizes(Sched *s, Loops *heads, DeviceAttention *a)
{
    if (!sched_block(s, "prod") || sched_block(s, "prod")->u.block.opaque)
        return false;
    const BlockData *b = &sched_block(s, "prod")->u.block;

    a->heads = 1;
    for (uint32_t i = 0; i + 3 < b->nspatial; i++)
        loops_add(s, heads, b->iter[i]->name);
    if (heads->n) {
        a->heads = heads->cells;
        a->open.heads = heads->open;
    }
    a->bytes = dtype_bytes(tensor_of(s, "prod")->dtype);
    int64_t columns = 0, keys = 0;
    if (!extent(s, "m", &a->m, &a->open.m) || !extent(s, "score.k", &a->k, &columns) || columns ||
        !extent(s, "prod.e", &a->e, &columns) || columns ||
        !extent(s, "score.j", &a->chunk, &keys) || keys)
        return false;
    const Atom *rounds = b->iter[b->nspatial - 2];
    a->n = atom_usual(rounds) * a->chunk;
    a->open.n = rounds->below ? a->n : 0;
    return true;
}

void sched_gpu_attention(Sched *s)
{
    AttentionPlan p = {0};
    Loops         heads = {0};
    bool          alone = false;
    const char   *names[MAX_BLOCKS], *follow = NULL;

    if (sched_block(s, "prod") && sched_block(s, "out"))
        follow = only_follower(s, "out", &alone);
    if (alone && find_sizes(s, &heads, &p.a)) {
        if (!p.a.open.m && !p.a.open.n && !p.a.open.heads)
            p.a.unit = attention_unit(s, &p.a, &p.type);
        sched_decide(s, decide_attention, &p);
    }
    if (s->refusal)
        return;
    if (!p.a.rows) {
        sched_gpu(s);
        return;
    }
    uint32_t n = sched_blocks(s, names, MAX_BLOCKS);
    Load     queries = load_of(s, "score", "k", tensor_of(s, "score"), tensor_of(s, "keys"));
    for (uint32_t i = 0; i < n && strcmp(names[i], stages[0]) != 0; i++)
        if (strcmp(names[i], "keys") != 0 && strcmp(names[i], "values") != 0 &&
            strcmp(names[i], queries.found->name) != 0)
            try_step(s, "compute_inline %s", names[i]);
    try_step(s, "contract score");
    try_step(s, "contract prod");
    if (p.z) {
        attention_warp_layouts(s, &p);
    } else {
        rows_last(s, "masked");
        rows_last(s, "exp");
        rows_last(s, "total");
    }
    step(s, "split %%m by %lld tail=if -> %%mb, %%mi", (long long)p.a.rows);
    step(s, "distribute %%mi");
    loops_add(s, &heads, "mb");
    if (heads.open) {
        const Loops *blocks = &heads;
        open_first(s, &heads);
        step(s, "reorder %s", loops_text(s, 1, &blocks));
    }
    bind_blocks(s, &heads, "blk");
    if (s->refusal)
        return;
    cell_a_thread(s, "out", "e", false, &p);
    if (follow)
        step(s, "reverse_compute_at %s %%out.x", follow);
    if (p.z)
        attention_warp_results(s, &p, load_of(s, "values", "n", NULL, NULL).along_sum);
    else
        results(s, &p);
    row_a_thread(s, "sum", &p);
    if (p.z)
        attention_warp_reduction(s, "part", &p);
    else
        row_a_thread(s, "part", &p);
    if (p.z)
        attention_warp_exp(s, &p);
    else
        cell_a_thread(s, "exp", "j", true, &p);
    row_a_thread(s, "keep", &p);
    row_a_thread(s, "max", &p);
    if (p.z)
        attention_warp_reduction(s, "top", &p);
    else
        row_a_thread(s, "top", &p);
    if (p.z)
        attention_warp_scores(s, &p, queries.found->name, queries.along_sum,
                              load_of(s, "keys", "k", NULL, NULL).along_sum);
    else
        scores(s, &p);
    cell_a_thread(s, "total.init", "e", true, &p);
    row_a_thread(s, "sum.init", &p);
    row_a_thread(s, "max.init", &p);
    if (!p.z)
        step(s, "inplace %%masked -> %%exp");
}
