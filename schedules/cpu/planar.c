/* Convolution on plain NCHW: what is left when channels are too few for blocks, as in many groups.
 *
 *   %conv[n,o,y,x] = sum[c,kh,kw] %pad[n,o//g*g+c,y*s+kh,x*s+kw] * %w[o,c,kh,kw]
 *
 * Vectors lie along the row.  A tile is a few outputs of one group by one vector: they share what
 * is loaded, and hide each other's latency.  The padded copy stays, a channel's group at a time.
 * Data that L2 does not hold are asked for two lines ahead. */
#include "schedules/cpu/cpu.h"

#include <math.h>

typedef struct {
    int64_t lanes, group, y, x, sum, stride; /* y: rows; sum: steps of the reduction, */
    int64_t taps;                            /* of which so many are cells of the kernel */
    double  rows, images;                    /* of all outputs */
    double  data;                            /* bytes that the outputs of a group read */
    double  streams;                         /* results, and what is read beside them */
    bool    copied;                          /* a padded copy is made of the data first */
    TapCuts cuts;                            /* where taps change; .y.n 0: nowhere */
    RegTile tile;                            /* outputs by rows */
    bool    ahead;                           /* data are asked for before */
} PlanarPlan;

/* Sums of several rows have a vector of each row beside them: to 2 of 5, 2 of 6 took 1.8 times as
 * long, to 3 of 2 3 of 4 1.1 (16 registers), to 3 of 7 3 of 8 1.3 (32; Zen 5). */
static bool fits(const Machine *m, const PlanarPlan *p, RegTile t)
{
    return t.nv == 1 || t.nv * (t.pixels + 1) < tile_regs(m, p->lanes, t.nv);
}

/* The tile after *t: first all rows of an output. */
static bool next_tile(const Machine *m, const PlanarPlan *p, RegTile *t)
{
    int64_t most = tile_pixels_most(m, p->lanes, 1);

    do {
        t->nv++;
        if (!fits(m, p, *t))
            t->nv = 1, t->pixels++;
        if (t->pixels > p->group || (t->pixels > 1 && t->pixels >= most))
            return false;
    } while (p->group % t->pixels || p->y % t->nv);
    return true;
}

/* What the next outputs of a group read again, after what the ones before stored. */
static Time read_again(const Machine *m, const PlanarPlan *p, RegTile t)
{
    double again = p->images * (1 / (double)t.pixels - 1 / (double)p->group);
    double pass = (double)t.pixels * p->rows / p->images * (double)(p->x * 4);

    return moved_time(m, again * p->data, 0, p->data + pass * p->streams);
}

/* What tiles of several rows wait for longer than those of one: data, unless they are in a copy,
 * which is made in order, and the result with what is read beside it. */
static double apart_cycles(const Machine *m, const PlanarPlan *p)
{
    double data = p->images / (double)p->group * p->data, result = p->rows * (double)(p->x * 4);
    double read = result * (p->streams - 1) + (p->copied ? 0 : data);
    Time   moved = moved_time(m, read, result, data + result * p->streams);

    return rows_far_cycles(m, moved, true) - rows_far_cycles(m, moved, false);
}

/* Cycles of all outputs.  Few outputs wait for themselves: those of some rows go on side by side.
 */
static double whole_cycles(const Machine *m, const PlanarPlan *p, RegTile t)
{
    int64_t whole = p->x / p->lanes, rest = p->x % p->lanes;
    double row = (double)whole * planar_tile_cycles(m, p->lanes, t.pixels, t.nv, p->sum, p->stride);
    bool   apart = t.nv > 1 && p->x > p->lanes;

    if (rest)
        row += planar_tile_cycles(m, rest, t.pixels, t.nv, p->sum, p->stride);
    double tiles = p->rows / (double)(t.pixels * t.nv);
    double copies = p->copied ? p->images / (double)t.pixels * p->data : 0;
    Time   near = read_again(m, p, t), far = time_take_far(&near);

    return time_cycles(m, time_beside(time_compute(tiles * row), near)) +
           padded_copy_cycles(copies) + rows_far_cycles(m, far, apart && !p->copied) +
           (apart ? apart_cycles(m, p) : 0);
}

/* ... in strips, each with its own columns of the kernel, and the rows that its rows have. */
static double tiles_cycles(const Machine *m, const PlanarPlan *p, RegTile t)
{
    double all = 0, rows = strip_taps(&p->cuts.y) / (double)p->y;

    if (!p->cuts.y.n)
        return whole_cycles(m, p, t);
    for (uint32_t i = 0; i < p->cuts.x.n; i++) {
        const Strip *x = &p->cuts.x.of[i];
        PlanarPlan   one = *p;

        one.x = x->cells;
        one.lanes = p->lanes < x->cells ? p->lanes : x->cells;
        one.sum = (int64_t)((double)(p->sum / p->taps * x->taps) * rows);
        one.data /= p->cuts.x.n;
        one.copied = false;
        all += whole_cycles(m, &one, t);
    }
    return all;
}

static double best_cycles(const Machine *m, const PlanarPlan *p)
{
    double best = INFINITY;

    for (RegTile t = {.pixels = 1}; next_tile(m, p, &t);)
        best = fmin(best, tiles_cycles(m, p, t));
    return best;
}

/* Are strips that much quicker than whole rows?  What they save of a padded copy their ends cost.
 * Threads divide the rows of strips, or outputs: one row is no parts. */
static bool strips_pay(const Machine *m, const PlanarPlan *strips, const PlanarPlan *whole)
{
    PlanarPlan bare = *whole;

    bare.copied = false;
    return strips->y > 1 && few_strips(m, &strips->cuts) &&
           best_cycles(m, strips) * limit_cut_gain(m) < best_cycles(m, &bare);
}

double cpu_planar_cycles(const Target *t, const ConvWork *w)
{
    Machine    m = machine_of(t);
    double     rows = (double)(w->n * w->o * w->y);
    PlanarPlan p = {.lanes = w->lanes < w->x ? w->lanes : w->x,
                    .group = w->group,
                    .y = w->y,
                    .x = w->x,
                    .sum = w->sum,
                    .stride = w->stride,
                    .rows = rows,
                    .images = (double)(w->n * w->o),
                    .data = (double)w->data,
                    .streams = 1,
                    .copied = w->rows.taps * w->columns.taps > 1};

    if (w->x < 2 || w->lanes < 2)
        return rows * (double)w->x * (double)w->sum * m.latency; /* one number after the other */
    PlanarPlan strips = p;

    strips.taps = w->rows.taps * w->columns.taps;
    return w->sum > strips.taps && work_cuts(w, &strips.cuts) && strips_pay(&m, &strips, &p)
               ? best_cycles(&m, &strips)
               : best_cycles(&m, &p);
}

static void decide_planar(Sched *s, void *plan)
{
    PlanarPlan *p = plan;
    Machine     m = machine_of(s->target);
    Candidates  k = candidates(s);

    for (RegTile t = {.pixels = 1}; next_tile(&m, p, &t);)
        candidate(&k, t.pixels, t.nv, tiles_cycles(&m, p, t));
    p->tile = pick_reg_tile(s, "tile", &k);
    p->ahead = pick_bool(s, "ahead", row_asks_ahead(&m, p->data, p->lanes, p->tile.pixels));
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
    ConvSizes   z = conv_sizes(s);
    int64_t     y = z.y, stride = group_row(s, &z).stride;
    int64_t     sum = kh * kw * (c ? c : 1), work = o * y * x * sum;
    bool        alone = is_tiny(s, work), open = is_symbolic(s, "conv", "y");
    Machine     m = machine_of(s->target);
    const char *out, *yo = open ? "conv.y" : "yo", *yi = open ? "" : "%yi, ";

    if (lanes > x)
        lanes = x; /* short rows: as many lanes as there are columns */
    if (lanes > 1) {
        PlanarPlan p = {.lanes = lanes,
                        .group = group_outputs(s, o, c),
                        .y = open ? 1 : y, /* each row by itself */
                        .x = x,
                        .sum = sum,
                        .taps = kh * kw,
                        .stride = stride,
                        .rows = (double)(work / sum / x),
                        .images = (double)o,
                        .data = (double)((c ? c : 1) * y * x * stride * stride * 4),
                        .streams = 1,
                        .copied = has_block(s, "pad")};
        PlanarPlan strips = p;
        bool       cut = c && tap_cuts(s, &strips.cuts) && strips_pay(&m, &strips, &p);

        if (cut) {
            p = strips;
            inline_prologue(s, "conv");
            step(s, "compute_inline pad");
        }
        out = prepare_anchor(s, "conv", false);
        p.streams = (double)result_streams(s, out, 4);
        sched_decide(s, decide_planar, &p);
        step(s, "split %%conv.o by %lld -> %%og, %%oi", (long long)p.tile.pixels);
        if (cut) {
            step(s, "reorder %%conv.y, %%conv.x, %%oi");
            cut_loops(s, &p.cuts);
        }
        if (!open)
            step(s, "split %%conv.y by %lld -> %%yo, %%yi", (long long)p.tile.nv);
        step(s, "reorder %%%s, %%conv.x, %%oi%s", yo, open ? "" : ", %yi");
        /* Few outputs are no parts for threads: these take rows, which share one copy. */
        bool few = !alone && !even_parts(&m, loop_extent(s, "og"));
        if (has_block(s, "pad"))
            pad_marks(s, few ? NULL : "%og");
        step(s, "split %%conv.x by %lld tail=peel -> %%xo, %%xi", (long long)lanes);
        step(s, "reorder %s%%conv.kh, %%conv.kw, %%oi, %s%%xi", c ? "%conv.c, " : "", yi);
        sums_in_registers(s, "conv", "xo");
        if (out)
            step(s, "reverse_compute_at %s %%xo", out);
        step(s, "vectorize %%xi");
        step(s, open ? "unroll %%oi" : "unroll %%oi, %%yi");
        step(s, "unroll %%conv.kw");
        if (p.ahead)
            step(s, "prefetch %%%s by %lld",
                 has_block(s, "pad") ? "pad" : s->f->params[0].buffer->name,
                 (long long)(limit_row_ahead(&m) * stride));
        if (!alone && cut)
            step(s, "parallel %s", few ? "%yo" : "%og");
        else if (!alone && open)
            step(s, "parallel %%%s", few ? yo : "og");
        else if (!alone)
            divide_loops(s, "u", (const char *const[]){"og", "yo", "xo"}, few ? 3 : 1);
        return;
    }
    out = prepare_anchor(s, "conv", false);
    if (out)
        step(s, "reverse_compute_at %s %%conv.y", out);
    if (!alone)
        divide_loops(s, "u", (const char *const[]){"conv.o", "conv.y"}, 2);
}
