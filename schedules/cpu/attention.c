/* Attention: products, softmax and products again, a block of query rows at a time.
 *
 *   for head {                                    divided among the threads
 *     %keys, %values: panels, as the products read them
 *     for block of rows {
 *       %score[rows, n] = %q * %keys              register tiles, private
 *       %max, %exp (in place of %score), %sum
 *       %context = %exp * %values, %out           register tiles
 *     } }
 *
 * The scores of a block are as many rows as stay in the caches, and always whole rows: a row's
 * score costs K + E multiply-adds and moves 16 bytes, which is a fraction of what even L3 delivers
 * meanwhile; so sums over blocks of keys (online softmax) would gain nothing.
 *
 * One head whose rows are one block, as those of a prime number are, goes stage by stage: threads
 * divide the rows of each, and scores are shared.
 *
 * Symbolic rows are one block, and of symbolic keys there are no panels: loops over them are cut
 * into tiles and pieces of powers of two (`split`). */
#include "schedules/cpu/cpu.h"

typedef struct {
    int64_t  heads, m, n, k, e;
    uint32_t batch;              /* leading dimensions */
    int64_t  rows;               /* of a block */
    bool     even;               /* blocks are of one size */
    bool     by_head;            /* threads take heads, */
    bool     by_stage;           /* or rows of each stage */
    bool     any_rows, any_keys; /* m, n are symbolic */
} AttnSizes;

static const char *iter_name(const Sched *s, const char *block, uint32_t i)
{
    return sched_block(s, block)->u.block.iter[i]->name;
}

/* Rows of a block.  Keys and values are read once a block, so there should be many; their scores,
 * though, are best in half of L1, and have to stay in a quarter of L2 beside keys and values. */
static void cut_rows(const Sched *s, AttnSizes *z)
{
    Machine m = machine_of(s->target);
    int64_t row = 4 * z->n, near = room_scores(&m) / row, far = room_most_scores(&m) / row;
    int64_t many = limit_attention_rows(&m), few = limit_attention_least_rows(&m);
    int64_t most = near > many ? near : far < many ? far : many;

    if (z->any_rows) {
        z->rows = z->m;
        return;
    }
    most = most < few ? few : most;
    z->rows = ceil_div(z->m, ceil_div(z->m, most));
    int64_t d = divisor_upto(z->m, most);
    if (2 * d > most || (!z->by_head && d >= limit_least_parts(&m)))
        z->rows = d;
    /* Blocks of two sizes are two loops, whose sums are harder to make vectors of: rather all rows
     * at once, while their scores leave most of L3 to others. */
    if (z->m % z->rows && (z->m <= 2 * far || z->m <= room_all_scores(&m) / row))
        z->rows = z->m;
    z->even = z->m % z->rows == 0;
}

/* A product's register tiles inside the loop over blocks: `c` is walked in panels of `width`, `r`
 * in chunks of kb, or as a whole (0). */
static void product_tiles(Sched *s, const TileNest *n, const char *c, const char *r, int64_t width,
                          int64_t kb)
{
    const char *b = n->block;

    step(s, "reorder %%%s.%s, %%%s", b, c, n->line);
    step(s, "split %%%s.%s by %lld tail=peel -> %%%s.c, %%%s.i", b, c, (long long)width, b, b);
    if (kb) {
        step(s, "split %%%s.%s by %lld -> %%%s.rc, %%%s.rb", b, r, (long long)kb, b, b);
        step(s, "reorder %%%s.rc, %%%s, %s, %s", b, n->line, n->sums, n->vectors);
    } else {
        step(s, "reorder %%%s, %s, %s", n->line, n->sums, n->vectors);
    }
    tile_sums(s, n);
}

static void product_marks(Sched *s, const TileNest *n, int64_t lanes)
{
    const char *b = n->block;

    step(s, "split %%%s.i by %lld tail=peel -> %%%s.v, %%%s.j", b, (long long)lanes, b, b);
    tile_marks(s, n);
    step(s, "outline %%%s -> @%s", n->tiles, b);
}

/* Leading loops of a block as one; its name, or NULL if there is none. */
static const char *one_head(Sched *s, const char *b, uint32_t batch)
{
    const char *h = NULL;

    for (uint32_t i = 0; i < batch; i++) {
        const char *next = intern_printf(s->c->strings, "%s.%s", b, iter_name(s, b, i));
        if (h && step(s, "fuse %%%s, %%%s -> %%%s.h%u", h, next, b, i))
            next = intern_printf(s->c->strings, "%s.h%u", b, i);
        h = next;
    }
    return h;
}

/* A copy of keys or values, turned where its rows lie across the operand's. */
static void copy_marks(Sched *s, const char *b, bool parallel)
{
    if (!turn_marks(s, b, parallel))
        vector_marks(s, b);
}

/* Exponentials as vectors; what is left of a row is one too, masked: scalars would take as long as
 * as many vectors. */
static void exp_marks(Sched *s, const AttnSizes *z)
{
    long long lanes = cpu_lanes(s);

    if (!z->any_keys && (z->n < lanes || z->n % lanes == 0)) {
        vector_marks(s, "exp");
        return;
    }
    step(s, "split %%exp.n by %lld tail=mask -> %%exp.vo, %%exp.vi", lanes);
    if (!z->any_keys)
        step(s, "partition %%exp.vo at %lld", (long long)(z->n / lanes));
    step(s, "vectorize %%exp.vi");
}

/* Rows of each stage are divided among the threads. */
static void divide_stages(Sched *s)
{
    static const char *const rows[] = {"score.t", "exp.m", "sum.m", "context.t"};

    for (uint32_t i = 0; i < COUNT(rows); i++)
        try_step(s, "parallel %%%s", rows[i]);
}

/* The tiles of both products and the steps of them that are written out, and how many keys the
 * second takes at a time. */
typedef struct {
    const AttnSizes *z;
    int64_t          lanes1, lanes2; /* of keys, of columns */
    RegTile          score, context;
    int64_t          chunk, score_steps, context_steps;
} AttnPlan;

/* Of all heads. */
static int64_t row_blocks_of(const AttnSizes *z)
{
    return z->heads * ceil_div(z->m, z->rows);
}

/* A product's panels of n columns and k steps, of all blocks of rows. */
static Panels panels_of(const AttnSizes *z, int64_t lanes, int64_t k, int64_t n, RegTile t)
{
    return (Panels){.lanes = lanes,
                    .rows = z->rows,
                    .k = k,
                    .stride = n * 4,
                    .times = row_blocks_of(z) * ceil_div(n, t.nv * lanes),
                    .tile = t};
}

static void decide_attention(Sched *s, void *plan)
{
    AttnPlan        *p = plan;
    const AttnSizes *z = p->z;
    int64_t          blocks = row_blocks_of(z);

    Rows rows = {.n = z->rows, .symbolic = z->any_rows};

    p->score = pick_gemm_tile(s, "score.tile", z->n / p->lanes1, rows, z->k, false, 1, blocks);
    p->context = pick_gemm_tile(s, "context.tile", z->e / p->lanes2, rows, z->n, false, 1, blocks);
    Panels score = panels_of(z, p->lanes1, z->k, z->n, p->score);
    Panels context = panels_of(z, p->lanes2, z->n, z->e, p->context);
    p->chunk = z->any_keys ? 0 : pick_gemm_chunk(s, "chunk", &context);
    p->score_steps = pick_steps(s, "score.steps", &score, z->k);
    p->context_steps = z->any_keys ? 1 : pick_steps(s, "context.steps", &context, p->chunk);
}

void sched_attention(Sched *s)
{
    const Stmt *last = sched_block(s, "context");

    if (!last) { /* by chunks of keys */
        sched_injective(s);
        return;
    }
    AttnSizes z = {1,
                   iter_extent(s, "context", "m"),
                   iter_extent(s, "score", "n"),
                   iter_extent(s, "score", "k"),
                   iter_extent(s, "context", "e"),
                   .any_rows = is_symbolic(s, "context", "m"),
                   .any_keys = is_symbolic(s, "score", "n")};
    int64_t   lanes = cpu_lanes(s);
    Machine   m = machine_of(s->target);

    if (z.m < 1 || z.n < 1 || z.k < 1 || z.e < 1 || last->u.block.nspatial < 2) {
        s->refusal = "'score' and 'context' have not the iterators of attention";
        return;
    }
    z.batch = last->u.block.nspatial - 2;
    for (uint32_t i = 0; i < z.batch; i++)
        z.heads *= iter_extent(s, "context", iter_name(s, "context", i));
    z.by_head = z.batch && thread_balance(z.heads) >= limit_balance_heads(&m);
    cut_rows(s, &z);
    /* Blocks of two sizes are two loops. */
    z.by_head |= z.batch && (!z.even || z.any_rows || z.any_keys);
    if (z.any_rows && !z.batch) {
        s->refusal = "rows that a run decides without heads";
        return;
    }
    /* Less than a vector: as many lanes as there are columns. */
    int64_t     lanes1 = z.n < lanes ? z.n : lanes, lanes2 = z.e < lanes ? z.e : lanes;
    AttnPlan    p = {.z = &z, .lanes1 = lanes1, .lanes2 = lanes2};
    const char *out, *part, *head;
    sched_decide(s, decide_attention, &p);
    RegTile t1 = p.score, t2 = p.context;
    int64_t chunk = p.chunk;

    z.by_stage = z.heads == 1 && z.rows == z.m && !z.any_rows && !z.any_keys &&
                 ceil_div(z.m, t1.pixels) >= limit_least_parts(&m) &&
                 ceil_div(z.m, t2.pixels) >= limit_least_parts(&m);
    step(s, "compute_inline masked");
    try_step(s, "compute_inline values");
    if (s->target->has_fma) {
        step(s, "contract score");
        step(s, "contract context");
        try_step(s, "contract max");
        try_step(s, "contract exp");
    }
    out = inline_epilogue(s, "context");
    if (!out)
        return;
    head = one_head(s, "context", z.batch);
    if (!z.any_rows && !z.by_stage)
        step(s, "split %%context.m by %lld tail=even -> %%mb, %%mi", (long long)z.rows);
    part = z.any_rows ? head : "mb";
    if (head && !z.by_head && !z.by_stage && step(s, "fuse %%%s, %%mb -> %%part", head))
        part = "part";
    TileNest score = {.block = "score",
                      .line = "score.m",
                      .tiles = "score.t",
                      .pixel = "score.p",
                      .pixels = t1.pixels,
                      .sums = "%score.rb",
                      .round = "score.rb",
                      .steps = p.score_steps,
                      .vectors = "%score.i",
                      .lane = "score.j",
                      .unroll = "%score.p, %score.v"};
    TileNest context = {.block = "context",
                        .line = z.any_rows || z.by_stage ? "context.m" : "mi",
                        .tiles = "context.t",
                        .pixel = "context.p",
                        .pixels = t2.pixels,
                        .sums = chunk ? "%context.rb" : "%context.n",
                        .round = "context.rb",
                        .steps = p.context_steps,
                        .vectors = "%context.i",
                        .lane = "context.j",
                        .unroll = "%context.p, %context.v",
                        .out = out,
                        .chunks = chunk && chunk < z.n};
    product_tiles(s, &context, "e", "n", t2.nv * lanes2, chunk);
    if (!z.by_stage) {
        step(s, "compute_at sum %%%s", part);
        step(s, "compute_at exp %%%s", part);
    }
    step(s, "compute_at max %%exp.m");
    if (!z.by_stage) {
        step(s, "compute_at score %%%s", part);
        if (sched_block(s, "queries")) {
            step(s, "compute_at queries %%%s", part);
            step(s, "set_scope %%queries private");
        }
        step(s, "set_scope %%score private");
        step(s, "set_scope %%exp private");
    }
    step(s, "set_scope %%max private");
    if (!z.by_stage)
        step(s, "set_scope %%sum private");
    try_step(s, "inplace %%score -> %%exp");
    if (z.by_head) {
        step(s, "compute_at keys %%%s", head);
        step(s, "set_scope %%keys private");
    }
    if (!z.any_keys)
        pack_columns(s, "keys", z.batch, t1.nv * lanes1);
    product_tiles(s, &score, "n", "k", t1.nv * lanes1, z.k);
    product_marks(s, &context, lanes2);
    product_marks(s, &score, lanes1);
    bool tiny = is_tiny(s, z.heads * z.m * z.n * (z.k + z.e));
    if (!tiny && z.by_stage)
        divide_stages(s);
    else if (!tiny)
        step(s, "parallel %%%s", z.by_head ? head : part);
    copy_marks(s, "keys", !z.by_head && !tiny);
    if (sched_block(s, "queries"))
        vector_marks(s, "queries");
    vector_sum(s, "max", best_sums(s, "max", true));
    exp_marks(s, &z);
    if (try_step(s, "cache_write sum reg at %%sum.m"))
        vector_sum(s, "sum", best_sums(s, "sum", true));
}
