/* layout_device: what layouts cost on devices (layout_choice.c), in cycles of the device.
 *
 * Instructions that multiply matrices take neighbouring steps of a sum together, 32 bytes of them.
 * Where these are channels in blocks of so many, 16 bytes of a chunk are one copy past the
 * registers; in plain images channels lie a picture apart, and each number is a load of its own
 * (schedules/gpu/tensor.c).  So a function that has convolutions for such instructions may have
 * blocks of what one takes: 16 channels of f16, 32 of bytes.  All others stay plain, whose pixels
 * lie side by side for threads as well as channels would.
 *
 * A convolution costs the tiles that its rule chooses, other operators what they move, and another
 * layout a launch that reads and stores the value. */
#include "passes/graph/layouts.h"

#include <math.h>

static void add_width(LayoutPlan *p, uint32_t width)
{
    uint32_t at = p->n;

    for (uint32_t i = 1; i < p->n; i++)
        if (p->width[i] == width)
            return;
    if (p->n == MAX_WIDTHS)
        return;
    for (; at > 1 && p->width[at - 1] < width; at--)
        p->width[at] = p->width[at - 1];
    p->width[at] = width;
    p->n++;
}

static void widths(LayoutSpace *s, const ExprList *function)
{
    s->plan.whole = true;
    for (uint32_t i = 0; i < function->n; i++) {
        const Expr *e = function->at[i];
        int64_t     steps;
        if (!call_is(e, "nn.conv2d") || ATTRS_OF(Conv2dAttrs, e)->groups != 1 ||
            !is_constant(call_arg(e, 1)))
            continue;
        steps = gpu_steps(s->c, call_arg(e, 0)->type->dtype, call_arg(e, 1)->type->dtype,
                          e->type->dtype);
        if (steps)
            add_width(&s->plan, (uint32_t)steps);
    }
}

static bool blocks(DType t)
{
    return dtype_is_float(t) || dtype_is_int(t) || dtype_is_bool(t);
}

/* Groups lie in blocks as on CPUs; of others data may be read in any layout. */
static bool reads(const LayoutSpace *s, const ConvDims *d, Layouts l)
{
    if (!d->grouped)
        return true;
    return l.in == l.out && (d->depthwise || fits_groups(d, s->plan.width[l.out]));
}

/* Bytes that all cores read or store of the caches that they share. */
static double moved(const LayoutSpace *s, double bytes)
{
    return bytes / s->machine.unit_rate / (double)s->machine.units;
}

static double conv_cost(const LayoutSpace *s, const ConvDims *d, Layouts l)
{
    int64_t in = l.in ? round_up(d->in[1], s->plan.width[l.in]) : d->in[1],
            out = l.out ? round_up(d->out[1], s->plan.width[l.out]) : d->out[1];
    GpuConv w = {.data = d->data,
                 .weight = d->weight,
                 .sum = d->sum,
                 .n = d->out[0],
                 .out = out,
                 .pixels = d->out[2] * d->out[3],
                 .channels = in,
                 .taps = d->kh * d->kw,
                 .along = l.in,
                 .run = l.out ? s->plan.width[l.out] : 0};

    if (!d->grouped)
        return gpu_conv_cycles(s->c, &w);
    double bytes = (double)dtype_bytes(d->data);
    double cells = layout_cells(&s->plan, d->out, l.out);
    return device_cells_cycles(&s->machine, cells, (double)(d->group_in * w.taps), bytes) +
           moved(s, bytes * layout_cells(&s->plan, d->in, l.in));
}

/* Its kernel is that of what it reads, or reads and stores; both alike in all layouts. */
static double other_cost(const LayoutSpace *s, const Expr *e, const int64_t dims[4],
                         uint32_t layout)
{
    return moved(s, 2 * (double)dtype_bytes(e->type->dtype) * layout_cells(&s->plan, dims, layout));
}

static double repack(const LayoutSpace *s, const Expr *e, const int64_t dims[4], uint32_t from,
                     uint32_t to)
{
    double bytes = (double)dtype_bytes(e->type->dtype);

    if (same_bytes(&s->plan, dims, from, to))
        return 0;
    return device_copy_cycles(&s->machine, bytes * (layout_cells(&s->plan, dims, from) +
                                                    layout_cells(&s->plan, dims, to)));
}

const LayoutCosts device_layouts = {widths, blocks, reads, conv_cost, other_cost, repack};
