/* Convolution on plain NCHW: what is left when channels are too few for blocks, as in many groups.
 *
 *   %conv[n,o,y,x] = sum[c,kh,kw] %pad[n,o//g*g+c,y*s+kh,x*s+kw] * %w[o,c,kh,kw]
 *
 * Vectors lie along the row.  A tile is a few outputs of one group by one vector: they share what
 * is loaded, and hide each other's latency.  The padded copy stays, a channel's group at a time. */
#include "schedules/cpu/cpu.h"

#include <math.h>

typedef struct {
    int64_t lanes, group;
    double  steps;   /* of the reductions of all outputs, as vectors */
    int64_t outputs; /* of a group that are a tile */
} PlanarPlan;

static void decide_planar(Sched *s, void *plan)
{
    PlanarPlan *p = plan;
    Machine     m = machine_of(s->target);
    Candidates  k = candidates(s);
    /* One register is for what LLVM loads early: 14 sums of 16 take 1.12 of the time of 7 (Zen 5).
     */
    int64_t most = tile_pixels_most(&m, p->lanes, 1) - 1;

    for (int64_t n = 1; n == 1 || (n <= most && n <= p->group); n++)
        if (p->group % n == 0)
            candidate(&k, n, 0, p->steps / (double)n * tile_step_cycles(&m, p->lanes, n, 1));
    p->outputs = pick_factor(s, "outputs", &k);
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
    int64_t     work = o * iter_extent(s, "conv", "y") * x * kh * kw * (c ? c : 1);
    const char *out;

    out = prepare_anchor(s, "conv", false);
    if (lanes > x)
        lanes = x; /* short rows: as many lanes as there are columns */
    if (lanes > 1) {
        PlanarPlan p = {
            .lanes = lanes, .group = group_outputs(s, o, c), .steps = (double)work / (double)lanes};
        sched_decide(s, decide_planar, &p);
        step(s, "split %%conv.o by %lld -> %%og, %%oi", (long long)p.outputs);
        step(s, "reorder %%conv.y, %%conv.x, %%oi");
        if (has_block(s, "pad"))
            pad_marks(s, "%og");
        step(s, "split %%conv.x by %lld tail=peel -> %%xo, %%xi", (long long)lanes);
        step(s, "reorder %s%%conv.kh, %%conv.kw, %%oi, %%xi", c ? "%conv.c, " : "");
        step(s, "cache_write conv reg at %%xo");
        if (out)
            step(s, "reverse_compute_at %s %%xo", out);
        step(s, "vectorize %%xi");
        step(s, "unroll %%oi");
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
