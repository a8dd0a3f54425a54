/* Strassen's product (ops/nn/dense_strassen.c).
 *
 *   %s[r,b,m,k]: sums of quarters of the data    %p[r,b,m,n] = sum[k] %s * %w    %y: sums of %p
 *
 * The sums of the data come first, all seven of a row at a time, divided among the threads by rows.
 * Then panels of columns: all seven products of a panel go to a private %p that stays in L2, with
 * the tiles and chunks of any matrix product, and the four quarters of the result are made from
 * it, with whatever was fused behind.  So one barrier separates two phases, and the products never
 * leave the core. */
#include "schedules/cpu/cpu.h"

typedef struct {
    int64_t b, m, n, k; /* b: 0 without a batch; m, n, k: halves */
} Halves;

/* Sums of the data: the seven of a vector of cells from the same four loads. */
static void data_sums(Sched *s, const Halves *z)
{
    int64_t lanes = cpu_lanes(s);

    step(s, "split %%s.k by %lld -> %%sk, %%sj", (long long)lanes);
    if (z->b)
        step(s, "reorder %%s.b, %%s.m, %%sk, %%s.r, %%sj");
    else
        step(s, "reorder %%s.m, %%sk, %%s.r, %%sj");
    step(s, "vectorize %%sj");
    step(s, "unroll %%s.r");
    step(s, "parallel %%s.%s", z->b >= z->m ? "b" : "m");
}

/* The products of a panel, inside the loop over panels. */
static void products(Sched *s, const Halves *z, RegTile t, int64_t kb, int64_t steps)
{
    step(s, "split %%p.k by %lld -> %%kc, %%kb", (long long)kb);
    step(s, "split %%p.n by %lld -> %%pv, %%pj", (long long)cpu_lanes(s));
    if (z->b) {
        step(s, "reorder %%p.r, %%kc, %%p.b, %%p.m, %%kb, %%pv, %%pj");
        step(s, "fuse %%p.b, %%p.m -> %%rows");
    } else {
        step(s, "reorder %%p.r, %%kc, %%p.m, %%kb, %%pv, %%pj");
    }
    TileNest tile = {.block = "p",
                     .line = z->b ? "rows" : "p.m",
                     .tiles = "t",
                     .pixel = "p",
                     .pixels = t.pixels,
                     .sums = "%kb",
                     .round = "kb",
                     .steps = steps,
                     .vectors = "%pv, %pj",
                     .lane = "pj",
                     .unroll = "%p, %pv"};
    tile_sums(s, &tile);
    tile_marks(s, &tile);
    step(s, "outline %%t -> @gemm");
}

typedef struct {
    Halves  z;
    int64_t rows; /* of all matrices of a batch */
    RegTile tile;
    int64_t chunk; /* of k, */
    int64_t steps; /* and of that, written out */
} StrassenPlan;

static void decide_strassen(Sched *s, void *plan)
{
    StrassenPlan *p = plan;
    const Halves *z = &p->z;
    int64_t       lanes = cpu_lanes(s);

    p->tile = pick_gemm_tile(s, "tile", z->n / lanes, (Rows){.n = p->rows}, z->k, true, 1, 7);
    Panels panels = {.lanes = lanes,
                     .rows = p->rows,
                     .k = z->k,
                     .stride = z->n * 4,
                     .times = 7 * z->n / (p->tile.nv * lanes),
                     .tile = p->tile,
                     .far = 1};
    p->chunk = pick_gemm_chunk(s, "chunk", &panels);
    p->steps = pick_steps(s, "steps", &panels, p->chunk);
}

void sched_dense_strassen(Sched *s)
{
    Halves      z = {iter_extent(s, "p", "b"), iter_extent(s, "p", "m"), iter_extent(s, "p", "n"),
                     iter_extent(s, "p", "k")};
    int64_t     lanes = cpu_lanes(s), rows = (z.b ? z.b : 1) * z.m;
    const char *out;

    if (z.m < 1 || z.n < 1 || z.k < 1 || !has_block(s, "s")) {
        s->refusal = "'p' and 's' are not those of Strassen's product";
        return;
    }
    if (z.n % lanes || z.k % lanes) {
        s->refusal = "halves of rows or columns are not whole vectors";
        return;
    }
    inline_prologue(s, "s");
    if (s->target->has_fma)
        step(s, "contract p");
    out = inline_epilogue(s, "p");
    if (!out)
        return;
    const BlockData *d = &sched_block(s, out)->u.block;
    uint32_t         last = d->nspatial - 1;
    if (last != (z.b ? 2 : 1)) {
        s->refusal = "the result has another shape";
        return;
    }
    const char  *n = d->iter[last]->name, *m = d->iter[last - 1]->name;
    const char  *b = z.b ? d->iter[0]->name : NULL;
    StrassenPlan p = {.z = z, .rows = rows};
    sched_decide(s, decide_strassen, &p);
    int64_t width = p.tile.nv * lanes;

    step(s, "transform_layout %%w (r, n, k) -> (n//%lld, r, k, n%%%lld)", (long long)width,
         (long long)width);
    step(s, "split %%%s.%s by %lld tail=if -> %%mh, %%mi", out, m, (long long)z.m);
    step(s, "split %%%s.%s by %lld -> %%nh, %%ni", out, n, (long long)z.n);
    step(s, "split %%ni by %lld -> %%nc, %%nj", (long long)width);
    step(s, "split %%nj by %lld -> %%nv, %%j", (long long)lanes);
    if (b)
        step(s, "reorder %%nc, %%%s.%s, %%mi, %%nv, %%mh, %%nh, %%j", out, b);
    else
        step(s, "reorder %%nc, %%mi, %%nv, %%mh, %%nh, %%j");
    step(s, "compute_at p %%nc");
    step(s, "set_scope %%p private");
    step(s, "parallel %%nc");
    products(s, &z, p.tile, p.chunk, p.steps);
    step(s, "vectorize %%j");
    step(s, "unroll %%mh, %%nh");
    data_sums(s, &z);
}
