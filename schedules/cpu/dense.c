/* GEMM and GEMV: nn.dense, nn.matmul, nn.batch_matmul.
 *
 *   %dense[m,n] = sum[k] %x[m,k] * %w[n,k]
 *
 * A constant weight is packed into panels of NV vectors, `(n//32, k, n%32)`, read strictly in
 * order. Rows are cut into tiles of up to P rows by NV vectors of columns (accumulators in
 * registers); a chunk of k keeps a panel in L1 while all row tiles use it.  One row (GEMV) keeps
 * more columns instead, since the stream of weights is what limits it. */
#include "schedules/cpu/cpu.h"

#include <math.h>
#include <string.h>

typedef struct {
    int64_t b, m, n, k;
} GemmSizes;

/* Iterators of a batch (ops/nn/dense.c). */
static const char *const batch_iters[] = {"b", "b1", "b2", "b3", "b4", "b5", "b6"};

static GemmSizes gemm_sizes(const Sched *s)
{
    GemmSizes z = {1, iter_extent(s, "dense", "m"), iter_extent(s, "dense", "n"),
                   iter_extent(s, "dense", "k")};

    for (uint32_t i = 0; i < COUNT(batch_iters); i++)
        if (iter_extent(s, "dense", batch_iters[i]))
            z.b *= iter_extent(s, "dense", batch_iters[i]);
    return z;
}

/* Rows and vectors of a tile: P*NV accumulators, NV vectors of weights and a number of x, spread
 * over a vector, lie in registers.  Rows whose cells are a multiple of 4 KiB apart fall on one set
 * of L1, of 8 lines in most machines.  The last panel may have fewer vectors, unless `whole`; the
 * last vector, alone, takes `part` of a whole one's cycles, beside others as many. */
RegTile pick_gemm_tile(Sched *s, const char *name, int64_t vectors, Rows rows, int64_t k,
                       bool whole, double part, int64_t times)
{
    Machine    m = machine_of(s->target);
    Candidates tiles = candidates(s);

    for (int64_t nv = 1; nv <= limit_tile_most_vectors(&m) && nv <= vectors; nv++) {
        int64_t most = (tile_regs(&m, cpu_lanes(s), nv) - nv - 1) / nv;
        if (whole && vectors % nv)
            continue;
        if (k * 4 % limit_set_bytes(&m) == 0 && most > limit_set_lines(&m))
            most = limit_set_lines(&m);
        if (rows.symbolic && most > rows.n)
            most = rows.n;
        if ((rows.each || rows.far > 0) && most > limit_far_rows(&m))
            most = limit_far_rows(&m);
        for (int64_t p = most; p > 0; p = rows.symbolic ? p - 1 : lower_tile(rows.n, p)) {
            double c = (double)(vectors / nv) * rows_step_cycles(&m, rows, p, nv);
            if (vectors % nv)
                c += rows_step_cycles(&m, rows, p, vectors % nv);
            if ((vectors - 1) % nv == 0)
                c -= (1 - part) * rows_step_cycles(&m, rows, p, 1);
            if (p == most || p * nv >= limit_tile_least_sums(&m))
                candidate(&tiles, p, nv, c * (double)k * (double)times);
        }
    }
    if (!tiles.of.n)
        candidate(&tiles, 1, 1, NAN);
    return pick_reg_tile(s, name, &tiles);
}

/* Columns of a panel in vectors.  One row is bound by the stream of weights: enough vectors to
 * cover the latency of their multiply-adds, no more, so that panels balance among the threads. */
static RegTile row_tile(Sched *s, int64_t vectors)
{
    Machine    m = machine_of(s->target);
    int64_t    most = limit_row_vectors(&m);
    Candidates k = candidates(s);

    for (int64_t nv = 1; nv <= limit_row_most_vectors(&m) && nv <= vectors; nv++)
        candidate(&k, 1, nv, NAN);
    usual(&k, 1, vectors < most ? vectors : most);
    return pick_reg_tile(s, "tile", &k);
}

/* k of a chunk. */
int64_t pick_gemm_chunk(Sched *s, const char *name, const Panels *panels)
{
    Machine    m = machine_of(s->target);
    Candidates chunks = candidates(s);

    for (int64_t n = panels->k; n > 0; n = n > 1 ? divisor_upto(panels->k, n - 1) : 0)
        candidate(&chunks, n, 0, panels_cycles(&m, panels, n));
    return pick_factor(s, name, &chunks);
}

/* The loop over matrices of a batch, of whose dimensions those of one matrix do not count. */
static const char *batch_loop(Sched *s)
{
    const char *loop = NULL;

    for (uint32_t i = 0; i < COUNT(batch_iters); i++) {
        if (iter_extent(s, "dense", batch_iters[i]) < 2)
            continue;
        if (!loop)
            loop = batch_iters[i];
        else if (try_step(s, "fuse %%%s, %%%s -> %%batch", loop, batch_iters[i]))
            loop = "batch";
        else
            break;
    }
    return loop;
}

/* Cycles with so many blocks of rows: each panel reads the rows of a block again, each block the
 * weights, from where what passes between leaves them; what is read for the first time is the same
 * for all.  Threads take blocks, or panels of the only one, which may be a little uneven: one
 * thread loses nothing. */
static double parts_cycles(const Machine *m, const GemmSizes *z, RegTile t, int64_t lanes,
                           int64_t parts)
{
    int64_t rows = z->m / parts, width = t.nv * lanes, panels = ceil_div(z->n, width);
    int64_t x = rows * z->k * 4, panel = width * z->k * 4, w = z->n * z->k * 4;
    double  madds = (double)(z->m * z->k) * (double)z->n / (double)lanes;
    Time    again = moved_time(m, (double)(parts * (panels - 1) * x), 0, (double)(x + panel));
    Time    weights = moved_time(m, (double)((parts - 1) * w), 0, (double)(x + w));
    Time    sums = time_compute(madds * tile_madd_cycles(m, lanes, t.nv, rows, 0, t));
    double  cycles = time_cycles(m, time_beside(sums, time_beside(again, weights)));

    cycles += panels_begin_cycles(m, (double)(z->m * z->k * 4), (parts - 1) * panels);
    return divided_panels(m, cycles, parts > 1 ? parts : panels);
}

static int64_t pick_parts(Sched *s, const GemmSizes *z, RegTile t, int64_t lanes)
{
    enum { MOST_PARTS = 16 };
    Candidates k = candidates(s);
    Machine    m = machine_of(s->target);

    for (int64_t parts = 1; parts <= MOST_PARTS; parts *= 2)
        if (parts == 1 ||
            (z->b == 1 && z->m % parts == 0 && z->m / parts >= limit_tile_least_sums(&m)))
            candidate(&k, parts, 0, parts_cycles(&m, z, t, lanes, parts));
    return pick_factor(s, "row.blocks", &k);
}

void pack_columns(Sched *s, const char *tensor, uint32_t batch, int64_t width)
{
    StrBuf    lead = strbuf(s->c->arena);
    long long w = width;

    for (uint32_t i = 0; i < batch; i++)
        str_printf(&lead, "b%u, ", i);
    const char *b = lead.at ? lead.at : "";
    step(s, "transform_layout %%%s (%sk, n) -> (%sn//%lld, k, n%%%lld)", tensor, b, b, w, w);
}

/* The copy of transposed data as packed weights lie, or as [k, n] where a run decides a size; that
 * of each matrix of a batch where it is used. */
static void pack_panel(Sched *s, int64_t width, const char *batch)
{
    if (batch && step(s, "compute_at panel %%%s", batch))
        step(s, "set_scope %%panel private");
    if (is_symbolic(s, "dense", "n") || is_symbolic(s, "dense", "k"))
        return;
    pack_columns(s, "panel", sched_block(s, "panel")->u.block.nspatial - 2, width);
}

/* One row by the rows of another matrix: a copy would take longer than the products.  Each sum is
 * one of vectors along k. */
static void row_products(Sched *s, const GemmSizes *z)
{
    bool alone = is_tiny(s, z->b * z->n * z->k);

    step(s, "compute_inline panel");
    const char *out = prepare_anchor(s, "dense", false), *loop = z->b > 1 ? batch_loop(s) : "n";
    sums_in_registers(s, "dense", "dense.n");
    if (out)
        step(s, "reverse_compute_at %s %%dense.n", out);
    vector_sum(s, "dense", best_sums(s, "dense", true));
    if (!alone)
        step(s, "parallel %%%s", loop);
}

bool is_packed(const Sched *s)
{
    for (uint32_t i = 0; i < s->f->nparams; i++)
        if (s->f->params[i].buffer && !strcmp(s->f->params[i].buffer->name, "w"))
            return s->f->params[i].buffer->scope == SCOPE_CONST;
    return false;
}

/* Weights come from L2 after their first tile, from memory before: asked for a page ahead, tiles of
 * all kinds wait less.  One row is bound by what memory delivers, which hardware asks for as well.
 * Where a product is two instructions LLVM spills without (1.4 to 1.7 times as long, x86-64-v2). */
static bool asks_ahead(const Sched *s, const Panels *panels, int64_t chunk)
{
    Machine m = machine_of(s->target);

    if (panels->rows == 1 || !tile_feeds_lines(&m, panels->lanes, panels_tall(panels)))
        return false;
    return !s->target->has_fma || panels_ask_ahead(&m, panels, chunk);
}

int64_t pick_steps(Sched *s, const char *name, const Panels *panels, int64_t chunk)
{
    Machine    m = machine_of(s->target);
    double     tiles = (double)(panels->times * ceil_div(panels->rows, panels->tile.pixels));
    int64_t    most = panels->rows > 1 || m.load_wait ? limit_written_steps(&m) : 1;
    Candidates k = candidates(s);

    for (int64_t n = 1; n <= most; n *= 2) {
        double cycles = round_cycles(&m, tiles * (double)(panels->k / n));

        if (chunk % n == 0)
            candidate(&k, n, 0, cycles > 0 ? cycles : NAN);
    }
    return pick_factor(s, name, &k);
}

/* What is decided, and from what. */
typedef struct {
    GemmSizes z;
    int64_t   rows, lanes, vectors; /* vectors of columns */
    bool      any_rows, any_sums;   /* m, k are symbolic: neither is cut into blocks */
    bool      alone, packed;
    RegTile   tile;
    int64_t   parts, chunk; /* blocks of rows; of k */
    int64_t   steps;        /* of a chunk that are written out */
    int64_t   sums;         /* of a column, side by side */
    bool      ahead;
} GemmPlan;

/* One row by few columns: a sum would wait for itself at each step, so it is one of several, of
 * every second or fourth product. */
static int64_t pick_row_sums(Sched *s, const GemmPlan *p)
{
    Machine    m = machine_of(s->target);
    int64_t    vectors = ceil_div(p->z.n, p->lanes);
    Candidates k = candidates(s);

    if (p->rows > 1 || p->any_sums || !p->packed || p->z.b > 1 || vectors > limit_row_vectors(&m))
        return 1;
    for (int64_t n = 1; n <= limit_most_sums(&m); n *= 2)
        if (p->z.k % n == 0 && (n == 1 || vectors * (n + 1) < tile_regs(&m, p->lanes, vectors)))
            candidate(&k, n, 0, row_panel_cycles(&m, p->lanes, vectors, p->z.k, n));
    return pick_factor(s, "sums", &k);
}

/* Weights that L2 does not hold come from afar for each block of rows. */
static Panels panels_of(const Machine *m, const GemmPlan *p)
{
    const GemmSizes *z = &p->z;
    bool             held = z->n * z->k * 4 <= room_weights(m);

    return (Panels){.lanes = p->lanes,
                    .rows = p->rows / p->parts,
                    .k = z->k,
                    .stride = z->n * 4,
                    .times = z->b * p->parts * ceil_div(p->vectors, p->tile.nv),
                    .tile = p->tile,
                    .far = !p->packed ? 0
                           : held     ? 1 / (double)p->parts
                                      : 1};
}

static void decide_gemm(Sched *s, void *plan)
{
    GemmPlan        *p = plan;
    const GemmSizes *z = &p->z;

    Machine m = machine_of(s->target);
    double  share[LEVELS], part = part_vector(&m, p->lanes, z->n % p->lanes);
    Rows    rows = {.n = p->rows, .symbolic = p->any_rows, .each = p->any_rows};

    cache_shares(&m, (double)(z->n * z->k * 4), share);
    if (p->packed)
        rows.far = share[LEVEL_L3] + share[LEVEL_MEMORY];

    p->tile = p->rows == 1 ? row_tile(s, p->vectors)
                           : pick_gemm_tile(s, "tile", p->vectors, rows, z->k, false, part, z->b);
    p->sums = pick_row_sums(s, p);
    if (p->sums > 1)
        return;
    p->parts = p->alone || p->any_rows ? 1 : pick_parts(s, z, p->tile, p->lanes);
    if (p->parts > 1) {
        int64_t rows = p->rows / p->parts;
        p->tile.pixels = ceil_div(rows, ceil_div(rows, p->tile.pixels));
    }
    Panels panels = panels_of(&m, p);
    p->chunk = p->rows == 1 || p->any_sums ? z->k : pick_gemm_chunk(s, "chunk", &panels);
    p->steps = p->any_sums ? 1 : pick_steps(s, "steps", &panels, p->chunk);
    p->ahead = p->packed && pick_bool(s, "ahead", asks_ahead(s, &panels, p->chunk));
}

/* One row by columns of a matrix that is not packed and comes from L3 or memory: panels of a few
 * vectors would take pieces of rows that are far apart, which no prefetcher follows.  So a block of
 * a page's columns at a time, and in it `limit_row_streams` rows side by side; sums wait in L1. */
static bool row_by_pages(Sched *s, const GemmSizes *z, int64_t lanes)
{
    enum { LEAST_PANELS = 8 };
    Machine   m = machine_of(s->target);
    long long streams = limit_row_streams(&m), width = limit_row_byte_vectors(&m) * lanes;
    long long block = divisor_upto(z->n, limit_page_bytes(&m) / 4);

    if (z->k * z->n * 4 <= room_matrix(&m) || block < LEAST_PANELS * width || block % width ||
        z->k % streams || z->b > 1 || is_packed(s) || is_symbolic(s, "dense", "n") ||
        is_symbolic(s, "dense", "k"))
        return false;
    const char *out = prepare_anchor(s, "dense", false);
    step(s, "split %%n by %lld -> %%nb, %%nr", block);
    step(s, "split %%nr by %lld -> %%nc, %%ni", width);
    step(s, "split %%k by %lld -> %%kc, %%kb", streams);
    step(s, "reorder %%nb, %%kc, %%nc, %%m, %%kb, %%ni");
    sums_in_registers(s, "dense", "m");
    if (out)
        step(s, "reverse_compute_at %s %%m", out);
    if (out)
        try_step(s, "inplace %%dense -> %%%s", out);
    step(s, "split %%ni by %lld -> %%nv, %%j", (long long)lanes);
    step(s, "vectorize %%j");
    step(s, "unroll %%kb, %%nv");
    step(s, "parallel %%nb");
    return true;
}

/* All columns of one row at once, each as sums side by side, which are added up in the end. Weights
 * lie as for other numbers of rows, with which a product of several shapes shares them. */
static void row_of_sums(Sched *s, const GemmPlan *p, const char *out)
{
    long long   width = p->tile.nv * p->lanes;
    const Stmt *b = sched_block(s, "dense");
    const char *to = b->kids[b->nkids - 1]->u.store.buffer->name;

    step(s, "transform_layout %%w (n, k) -> (n//%lld, k, n%%%lld)", width, width);
    step(s, "split %%k by %lld -> %%kb, %%kp", (long long)p->sums);
    step(s, "reorder %%m, %%kb, %%kp, %%n");
    step(s, "rfactor %%kp at %%m");
    step(s, "set_scope %%%s.rf reg", to);
    sums_in_registers(s, "dense.rf", "m");
    step(s, "cache_write dense reg at %%m");
    if (out)
        step(s, "reverse_compute_at %s %%m", out);
    step(s, "split %%n by %lld tail=peel -> %%nv, %%j", (long long)p->lanes);
    step(s, "vectorize %%j");
    step(s, "unroll %%nv, %%kp, %%dense.kp");
    step(s, "outline %%m -> @gemm");
}

/* Threads take panels, where these are parts even enough, else tiles of rows, of all panels. */
static void divide_panels(Sched *s, const GemmPlan *p)
{
    Machine m = machine_of(s->target);
    int64_t width = p->tile.nv * p->lanes, panels = ceil_div(p->z.n, width);
    int64_t tiles = p->any_rows ? 1 : ceil_div(p->rows, p->tile.pixels);
    /* The last panel may be narrow. */
    double balance = thread_balance(panels) * (double)p->z.n / (double)(panels * width);

    if (tiles > 1 && balance < limit_balance_panels(&m) && thread_balance(tiles) > balance)
        step(s, "parallel %%t");
    else if (p->z.n > width)
        step(s, "parallel %%nc");
}

void sched_dense(Sched *s)
{
    GemmSizes   z = gemm_sizes(s);
    int64_t     lanes = cpu_lanes(s), rows = z.m ? z.m : 1;
    Machine     m = machine_of(s->target);
    const char *out;

    if (z.n < 1 || z.k < 1) {
        s->refusal = "'dense' has not the iterators of a product";
        return;
    }
    if (dense_dot(s))
        return;
    if (rows == 1 && has_block(s, "panel")) {
        row_products(s, &z);
        return;
    }
    if (rows == 1 && row_by_pages(s, &z, lanes))
        return;
    out = prepare_anchor(s, "dense", false);
    /* Less than a vector: as many lanes as there are columns. */
    if (z.n < lanes)
        lanes = z.n;

    GemmPlan p = {.z = z,
                  .rows = rows,
                  .lanes = lanes,
                  .vectors = is_symbolic(s, "dense", "n") ? z.n / lanes : ceil_div(z.n, lanes),
                  .any_rows = is_symbolic(s, "dense", "m"),
                  .any_sums = is_symbolic(s, "dense", "k"),
                  .alone = is_tiny(s, z.b * rows * z.n * z.k),
                  .packed = is_packed(s)};
    sched_decide(s, decide_gemm, &p);
    if (p.sums > 1) {
        row_of_sums(s, &p, out);
        return;
    }
    RegTile t = p.tile;
    bool    alone = p.alone;
    int64_t width = t.nv * lanes, parts = p.parts, kb = p.chunk;
    try_step(s, "transform_layout %%w (n, k) -> (n//%lld, k, n%%%lld)", (long long)width,
             (long long)width);
    if (p.ahead)
        step(s, "prefetch %%w by %lld", (long long)limit_page_bytes(&m));
    const char *batch = NULL;
    bool        own_panel = false;
    if (has_block(s, "panel")) {
        own_panel = z.b > 1 && block_work(s, "panel") == z.b * z.n * z.k;
        batch = z.b > 1 ? batch_loop(s) : NULL;
        pack_panel(s, width, own_panel ? batch : NULL);
    }
    if (parts > 1) {
        step(s, "split %%m by %lld -> %%mb, %%rows", (long long)(rows / parts));
        step(s, "reorder %%mb, %%n, %%rows");
    } else {
        step(s, "reorder %%n, %%m");
    }
    step(s, "split %%n by %lld tail=peel -> %%nc, %%ni", (long long)(width < z.n ? width : z.n));
    if (p.any_sums) {
        step(s, "reorder %%m, %%k, %%ni");
    } else {
        step(s, "split %%k by %lld -> %%kc, %%kb", (long long)kb);
        step(s, "reorder %%kc, %s, %%kb, %%ni", parts > 1 ? "%rows" : "%m");
    }
    TileNest tile = {.block = "dense",
                     .line = parts > 1 ? "rows" : "m",
                     .tiles = "t",
                     .pixel = "p",
                     .pixels = t.pixels,
                     .each = p.any_rows,
                     .sums = p.any_sums ? "%k" : "%kb",
                     .round = "kb",
                     .steps = p.steps,
                     .vectors = "%ni",
                     .lane = "j",
                     .unroll = "%p, %nv",
                     .out = out,
                     .chunks = kb < z.k};
    tile_sums(s, &tile);
    /* Now every copy: the panel that is left may end with a part of a vector. */
    step(s, "split %%ni by %lld tail=peel -> %%nv, %%j", (long long)lanes);
    tile_marks(s, &tile);
    if (!alone && z.b > 1)
        step(s, "parallel %%%s", batch ? batch : batch_loop(s));
    else if (!alone && parts > 1)
        step(s, "parallel %%mb");
    else if (!alone)
        divide_panels(s, &p);
    step(s, "outline %%t -> @gemm");
    if (has_block(s, "panel") && !turn_marks(s, "panel", !alone && !own_panel))
        spatial_marks(s, "panel");
}
