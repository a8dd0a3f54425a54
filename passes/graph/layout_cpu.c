/* layout_cpu: what layouts cost on CPUs (layout_choice.c), in cycles of one core.
 *
 * Blocks are as many channels as a vector has lanes: the widest one, its half, and so on down to
 * four; quantized values know the widest only.  An operator costs the cycles that its schedule rule
 * takes for it, lanes without a channel included; an edge whose ends disagree costs a repacking. */
#include "passes/graph/layouts.h"

#include <math.h>
#include <string.h>

/* Vectors of that many lanes multiplied and added a cycle, in lanes; plain rows take the widest. */
static double lanes_a_cycle(const LayoutSpace *s, uint32_t layout)
{
    int64_t lanes = s->plan.width[layout ? layout : 1];

    return (double)lanes * fma_rate(&s->machine, lanes);
}

/* Values of so many cells, read or written mostly while others are computed. */
static double moves(const LayoutSpace *s, double cells)
{
    return time_traffic(level_time(&s->machine, LEVEL_L2, cells * 4));
}

/* An operator whose kernel turns its result as it stores it: one that does nothing but move cells.
 */
static bool turns(const Expr *e)
{
    return e->kind == EXPR_CALL && call_op(e) && call_op(e)->fusion == FUSE_INJECTIVE &&
           call_nargs(e) == 1 && call_arg(e, 0)->kind != EXPR_TUPLE;
}

static double repack(const LayoutSpace *s, const Expr *e, const int64_t dims[4], uint32_t from,
                     uint32_t to)
{
    const Type     *t = e->type;
    const uint32_t *w = s->plan.width;

    if (same_bytes(&s->plan, dims, from, to))
        return 0;
    double bytes = dtype_bytes(t->dtype), read = bytes * layout_cells(&s->plan, dims, from),
           stored = bytes * layout_cells(&s->plan, dims, to);
    Time turn = time_compute(
        turn_cycles(&s->machine, w[1], (read > stored ? read : stored) / dtype_bytes(t->dtype)));

    if (from && turns(e)) /* its cells are counted */
        return time_cycles(&s->machine, turn);
    return s->machine.start_cycles +
           time_cycles(&s->machine,
                       time_beside(turn, moved_time(&s->machine, read, stored, read + stored)));
}

/* Channels that a sum over blocks takes: all real ones, and the rest of the last part (sum_part of
 * ops/nn/conv2d.c). */
static int64_t summed(int64_t channels, int64_t width)
{
    return width % 4 ? round_up(channels, width) : round_up(channels, 4);
}

static double conv_cost(const LayoutSpace *s, const ConvDims *d, Layouts l)
{
    const LayoutPlan *p = &s->plan;
    double            taps = (double)(d->kh * d->kw), cost;
    double moved = moves(s, layout_cells(p, d->in, l.in) + layout_cells(p, d->out, l.out));

    int64_t  width = p->width[l.out ? l.out : 1], group_out = d->out[1] / d->groups;
    int64_t  k[2] = {d->kh, d->kw};
    double   weights = d->grouped ? taps * (double)(d->group_in * d->out[1]) : 0;
    ConvWork w = {.lanes = width,
                  .n = d->out[0],
                  .o = d->out[1],
                  .y = d->out[2],
                  .x = d->out[3],
                  .kw = d->kw,
                  .stride = d->stride,
                  .dilation = d->dilation,
                  .group = group_out,
                  .sum = d->kh * d->kw * d->group_in,
                  .data = d->group_in * d->in[2] * d->in[3] * 4};

    if (dtype_eq(d->data, DT_F32)) {
        w.rows = d->axis[0];
        w.columns = d->axis[1];
    }
    if (!l.out)
        return moved + fetched_cycles(&s->machine, cpu_planar_cycles(s->c->target, &w), weights) *
                           product_cost(s->c, d->data, d->weight, width, false);
    if (d->depthwise)
        return moved + layout_cells(p, d->out, l.out) * taps / lanes_a_cycle(s, l.out);
    w.o = ceil_div(d->out[1], width);
    w.plain = !l.in;
    w.spread = d->grouped && l.in && d->group_in < width ? d->group_in : 0;
    w.group = !d->grouped ? w.o : group_out > width ? group_out / width : 1;
    if (l.in && !w.spread)
        w.sum = d->kh * d->kw * summed(d->group_in, p->width[l.in]);

    cost = cpu_conv_cycles(s->c->target, &w) * product_cost(s->c, d->data, d->weight, width, true);
    cost = fetched_cycles(&s->machine, cost, weights);
    if (s->c->target->winograd && d->wino && d->grouped && l.in == l.out && fits_groups(d, width))
        cost = fmin(cost, winograd_groups_cycles(s->c, d->out, d->in[1], d->groups, k, width));
    else if (s->c->target->winograd && d->wino && !d->grouped && l.in == l.out)
        cost *= winograd_gain(s->c, d->out, d->in[1], k, p->width[1]); /* as much for all widths */
    return (l.in > 1 || l.out > 1 ? NARROW_BLOCKS : 1) * cost + moved;
}

double filled_cycles(const LayoutSpace *s, const ConvDims *d, int64_t in, int64_t out)
{
    double more = 0;

    if (in > d->in[1])
        more += s->machine.start_cycles +
                moves(s, layout_cells(&s->plan, d->in, 0) * (1 + (double)in / (double)d->in[1]));
    if (out > d->out[1])
        more += moves(s, layout_cells(&s->plan, d->out, 0) * (1 + (double)out / (double)d->out[1]));
    return more;
}

static bool has_windows(const Expr *e)
{
    return call_is(e, "nn.max_pool2d") || call_is(e, "nn.avg_pool2d");
}

/* Cells that one cell of the result looks at. */
static double window(const Expr *e)
{
    if (!has_windows(e))
        return 1;
    const int64_t *k = ATTRS_OF(Pool2dAttrs, e)->pool_size.at;

    return (double)(k[0] * k[1]);
}

/* Cycles that rows of a plain result take which are made of several by turns; vectors of a block's
 * channels lie together wherever they go. */
static double weaving(const LayoutSpace *s, const Expr *e, double n)
{
    const DepthToSpaceAttrs *a = ATTRS_OF(DepthToSpaceAttrs, e);
    int64_t                  rows =
        call_is(e, "nn.depth_to_space") && a->block_size.n == 2 ? a->block_size.at[1] : 1;

    return rows < 2              ? 0
           : rows <= LEAST_LANES ? weave_cycles(&s->machine, s->plan.width[1], n, rows)
                                 : gather_cycles(&s->machine, n);
}

/* Cells of each dimension that one is interpolated from; 0: none is. */
static double interpolated_from(const Expr *e)
{
    const char *method =
        call_is(e, "image.resize2d") ? ATTRS_OF(Resize2dAttrs, e)->method : "nearest_neighbor";

    return !strcmp(method, "cubic") ? 4 : !strcmp(method, "linear") ? 2 : 0;
}

static double interpolate(const LayoutSpace *s, const Expr *e, const int64_t dims[4],
                          uint32_t layout)
{
    double  taps = interpolated_from(e), n = layout_cells(&s->plan, dims, layout);
    int64_t lanes = s->plan.width[layout ? layout : 1];

    return layout ? interpolate_blocks_cycles(taps, n / (double)lanes)
                  : interpolate_rows_cycles(&s->machine, lanes, taps, n / (double)dims[3],
                                            (double)dims[3]);
}

static double other_cost(const LayoutSpace *s, const Expr *e, const int64_t dims[4],
                         uint32_t layout)
{
    double n = layout_cells(&s->plan, dims, layout);

    /* A convolution's kernel does it before it stores. */
    if (layout && call_op(e)->fusion <= FUSE_BROADCAST && call_is(call_arg(e, 0), "nn.conv2d"))
        return n / lanes_a_cycle(s, layout);

    if (!layout && has_windows(e))
        return plain_pool_cycles(s->c, e) + moves(s, n);
    if (interpolated_from(e) > 0)
        return interpolate(s, e, dims, layout) + moves(s, n);
    return n * window(e) / lanes_a_cycle(s, layout) + (layout ? 0 : weaving(s, e, n)) + moves(s, n);
}

/* Where blocks of channels do not fit, data may be read as they are: those of a picture, or of a
 * group, are few. */
static bool reads(const LayoutSpace *s, const ConvDims *d, Layouts l)
{
    int64_t w = s->plan.width[l.out];

    if (!d->grouped)
        return l.in || d->in[1] < s->plan.width[1];
    if (!l.in)
        return d->is_float && !fits_groups(d, w) && !d->depthwise && d->out[1] / d->groups % w == 0;
    return l.in == l.out && (d->depthwise || fits_groups(d, w));
}

static bool blocks(DType t)
{
    return dtype_eq(t, DT_F32) || dtype_is_int(t) || dtype_is_bool(t);
}

static void widths(LayoutSpace *s, const ExprList *function)
{
    (void)function;
    for (uint32_t w = s->c->target->vector_bytes / 4; w >= LEAST_LANES && s->plan.n < MAX_WIDTHS;
         w /= 2)
        s->plan.width[s->plan.n++] = w;
}

const LayoutCosts cpu_layouts = {widths, blocks, reads, conv_cost, other_cost, repack};
