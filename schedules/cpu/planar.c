/* Convolution on plain NCHW: what is left when channels are too few for blocks, as in many groups.
 *
 *   %conv[n,o,y,x] = sum[c,kh,kw] %pad[n,o//g*g+c,y*s+kh,x*s+kw] * %w[o,c,kh,kw]
 *
 * Vectors lie along the row.  A tile is a few outputs of one group by one vector: they share what
 * is loaded, and hide each other's latency.  The padded copy stays, a channel's group at a time. */
#include "schedules/cpu/cpu.h"

#include <math.h>

typedef struct {
    int64_t lanes, group, y, sum, stride; /* y: rows; sum: steps of the reduction */
    double  vectors;                      /* of all outputs */
    int64_t outputs, rows;                /* of a tile */
} PlanarPlan;

/* One register is for what LLVM loads early: 14 sums of 16 take 1.12 of the time of 7 (Zen 5). */
static bool may_share(const Machine *m, int64_t lanes, int64_t group, int64_t n)
{
    return group % n == 0 && (n == 1 || n < tile_pixels_most(m, lanes, 1));
}

/* Of one vector, where so many outputs are a tile. */
static double vector_cycles(const Machine *m, int64_t lanes, int64_t n, int64_t sum, int64_t stride)
{
    return planar_tile_cycles(m, lanes, n, sum, stride) / (double)n;
}

double cpu_planar_cycles(const Target *t, const ConvWork *w)
{
    Machine m = machine_of(t);
    double  rows = (double)(w->n * w->o * w->y), best = INFINITY;

    if (w->x < 2 || w->lanes < 2)
        return rows * (double)w->x * (double)w->sum * m.latency; /* one number after the other */
    for (int64_t n = 1; n <= w->group && n <= tile_pixels_most(&m, w->lanes, 1); n++)
        if (may_share(&m, w->lanes, w->group, n))
            best = fmin(best, vector_cycles(&m, w->lanes, n, w->sum, w->stride));
    return rows * (double)ceil_div(w->x, w->lanes) * best;
}

static void decide_planar(Sched *s, void *plan)
{
    PlanarPlan *p = plan;
    Machine     m = machine_of(s->target);
    Candidates  k = candidates(s);

    for (int64_t n = 1; n <= p->group && n <= tile_pixels_most(&m, p->lanes, 1); n++)
        if (may_share(&m, p->lanes, p->group, n))
            candidate(&k, n, 0, p->vectors * vector_cycles(&m, p->lanes, n, p->sum, p->stride));
    p->outputs = pick_factor(s, "outputs", &k);

    /* Few outputs wait for themselves: those of some rows go on side by side. */
    Candidates rows = candidates(s);
    int64_t    best = 1;

    for (int64_t n = 1; n == 1 || n * p->outputs <= limit_planar_sums(&m); n++)
        if (p->y % n == 0) {
            candidate(&rows, n, 0, NAN);
            best = n;
        }
    usual(&rows, best, 0);
    p->rows = pick_factor(s, "rows", &rows);
}

/* Outputs of a group, which read the same channels; 1 where that is not known. */
static int64_t group_outputs(Sched *s, int64_t outputs, int64_t c)
{
    const Buffer *data = s->f->params[0].buffer;
    int64_t       channels = iter_extent(s, "pad", "c");

    if (!channels && (!data || data->ndim != 4 || !idx_is_const(data->extent[1], &channels)))
        return 1;
    int64_t groups = c && channels % c == 0 ? channels / c : channels;
    return outputs % groups ? 1 : outputs / groups;
}

void conv2d_planar(Sched *s)
{
    int64_t lanes = cpu_lanes(s), x = iter_extent(s, "conv", "x"), o = iter_extent(s, "conv", "o");
    int64_t c = iter_extent(s, "conv", "c"), kh = iter_extent(s, "conv", "kh"),
            kw = iter_extent(s, "conv", "kw");
    int64_t     sum = kh * kw * (c ? c : 1), work = o * iter_extent(s, "conv", "y") * x * sum;
    const char *out;

    out = prepare_anchor(s, "conv", false);
    if (lanes > x)
        lanes = x; /* short rows: as many lanes as there are columns */
    if (lanes > 1) {
        PlanarPlan p = {.lanes = lanes,
                        .group = group_outputs(s, o, c),
                        .y = c ? iter_extent(s, "conv", "y") : 1,
                        .sum = sum,
                        .stride = group_row(s).stride,
                        .vectors = (double)(work / sum) / (double)lanes};

        sched_decide(s, decide_planar, &p);
        step(s, "split %%conv.o by %lld -> %%og, %%oi", (long long)p.outputs);
        step(s, "split %%conv.y by %lld -> %%yo, %%yi", (long long)p.rows);
        step(s, "reorder %%yo, %%conv.x, %%oi, %%yi");
        if (has_block(s, "pad"))
            pad_marks(s, "%og");
        step(s, "split %%conv.x by %lld tail=peel -> %%xo, %%xi", (long long)lanes);
        step(s, "reorder %s%%conv.kh, %%conv.kw, %%oi, %%yi, %%xi", c ? "%conv.c, " : "");
        step(s, "cache_write conv reg at %%xo");
        if (out)
            step(s, "reverse_compute_at %s %%xo", out);
        step(s, "vectorize %%xi");
        step(s, "unroll %%oi, %%yi");
        step(s, "unroll %%conv.kw");
        if (!is_tiny(s, work))
            try_step(s, "parallel %%og");
        return;
    }
    if (out)
        step(s, "reverse_compute_at %s %%conv.y", out);
    if (!is_tiny(s, work))
        try_step(s, "parallel %%conv.o");
}
