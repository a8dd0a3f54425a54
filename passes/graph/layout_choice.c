/* layout_choice: the layout of every value, chosen for the whole function (docs/design/layouts.md).
 *
 * Candidates are plain NCHW and blocks of as many channels as a vector has lanes: the widest one,
 * its half, and so on down to four.  A convolution may read one and give another; everything else
 * that can be blocked keeps its operand's.  An operator costs the cycles that its schedule rule
 * takes for it, lanes without a channel included; an edge whose ends disagree costs a repacking.
 * pbqp.c finds the cheapest choice.
 *
 * A choice is offered only if the operator takes it: its `block` function is tried on variables of
 * the type that the operands would have.  Quantized values know the widest vector only. */
#include "passes/graph/graph.h"

#include "schedules/schedules.h"

#include <math.h>
#include <string.h>

enum { MAX_CHOICES = (MAX_WIDTHS + 1) * MAX_WIDTHS + 1 };

/* An operator that has a choice. */
typedef struct {
    const Expr *e;
    uint32_t    node, n;
    Layouts     choice[MAX_CHOICES];
    double      cost[MAX_CHOICES];
    int64_t     dims[4];
    bool        read_plain; /* by somebody without a choice: counted */
} Chooser;

typedef struct {
    Ctx       *c;
    Machine    machine;
    LayoutPlan plan;
    Pbqp      *g;
    VEC(Chooser *) choosers;
    Map *of; /* node of the graph to its Chooser */
} Choice;

/* ---- what things cost ----------------------------------------------------------------------- */

/* f32, and what quantized networks are made of, choices between integers included. */
static bool blocks_well(DType t)
{
    return dtype_eq(t, DT_F32) || dtype_is_int(t) || dtype_is_bool(t);
}

bool image_dims(const Type *t, int64_t dims[4])
{
    if (!t || t->kind != TYPE_TENSOR || t->n != 4 || !blocks_well(t->dtype))
        return false;
    for (uint32_t i = 0; i < 4; i++) {
        dims[i] = idx_usual(t->dims[i]);
        if (t->dims[i]->lo < 1)
            return false;
    }
    return idx_is_const(t->dims[1], NULL);
}

/* Cells of an image in a layout, surplus lanes included. */
static double cells(const LayoutPlan *p, const int64_t dims[4], uint32_t layout)
{
    int64_t ch = layout ? round_up(dims[1], p->width[layout]) : dims[1];

    return (double)dims[0] * (double)ch * (double)dims[2] * (double)dims[3];
}

/* An operator whose kernel turns its result as it stores it: one that does nothing but move cells.
 */
static bool turns(const Expr *e)
{
    return e->kind == EXPR_CALL && call_op(e) && call_op(e)->fusion == FUSE_INJECTIVE &&
           call_nargs(e) == 1 && call_arg(e, 0)->kind != EXPR_TUPLE;
}

static double repack(const Choice *s, const Expr *e, const int64_t dims[4], uint32_t from,
                     uint32_t to)
{
    const Type     *t = e->type;
    const uint32_t *w = s->plan.width;
    bool            whole = (!from || dims[1] % w[from] == 0) && (!to || dims[1] % w[to] == 0);

    if (from == to || (whole && dims[2] == 1 && dims[3] == 1)) /* the same bytes */
        return 0;
    double bytes = dtype_bytes(t->dtype), read = bytes * cells(&s->plan, dims, from),
           stored = bytes * cells(&s->plan, dims, to);
    Time turn = time_compute(
        turn_cycles(&s->machine, w[1], (read > stored ? read : stored) / dtype_bytes(t->dtype)));

    if (from && turns(e)) /* its cells are counted */
        return time_cycles(&s->machine, turn);
    return s->machine.start_cycles +
           time_cycles(&s->machine,
                       time_beside(turn, moved_time(&s->machine, read, stored, read + stored)));
}

/* Vectors of that many lanes multiplied and added a cycle, in lanes; plain rows take the widest. */
static double lanes_a_cycle(const Choice *s, uint32_t layout)
{
    int64_t lanes = s->plan.width[layout ? layout : 1];

    return (double)lanes * fma_rate(&s->machine, lanes);
}

/* Values of so many cells, read or written mostly while others are computed. */
static double moves(const Choice *s, double cells)
{
    return time_traffic(level_time(&s->machine, LEVEL_L2, cells * 4));
}

typedef struct {
    int64_t in[4], out[4], groups, group_in, kh, kw, stride, dilation;
    TapAxis axis[2];
    DType   data, weight;
    bool    depthwise, grouped, wino;
} ConvDims;

/* Whether a cell of that dimension is padding, zeros, is known when the model is compiled. */
static bool cell_known(const Expr *e, const Conv2dAttrs *a, uint32_t dim)
{
    int64_t n;

    return a->pad_value == 0 && type_dim(e->type, dim, &n) &&
           type_dim(call_arg(e, 0)->type, dim, &n);
}

static bool conv_dims(const Expr *e, ConvDims *d)
{
    const Conv2dAttrs *a = ATTRS_OF(Conv2dAttrs, e);
    const Type        *w = call_arg(e, 1)->type;

    if (strcmp(a->data_layout, "NCHW") || *a->out_layout ||
        dtype_eq(e->type->dtype, DT_I64) || /* such sums have no lanes */
        !image_dims(call_arg(e, 0)->type, d->in) || !image_dims(e->type, d->out) || !w ||
        w->kind != TYPE_TENSOR || w->n != 4 || !type_dim(w, 1, &d->group_in) ||
        !type_dim(w, 2, &d->kh) || !type_dim(w, 3, &d->kw))
        return false;
    d->data = call_arg(e, 0)->type->dtype;
    d->weight = w->dtype;
    d->groups = a->groups;
    d->stride = a->strides.n > 1 ? a->strides.at[1] : 1;
    d->dilation = a->dilation.n > 1 ? a->dilation.at[1] : 1;
    for (uint32_t i = 0; i < 2; i++)
        d->axis[i] = (TapAxis){.cells = d->out[i + 2],
                               .taps = i ? d->kw : d->kh,
                               .stride = a->strides.n > i ? a->strides.at[i] : 1,
                               .dilation = a->dilation.n > i ? a->dilation.at[i] : 1,
                               .before = a->padding.n > i ? a->padding.at[i] : 0,
                               .size = cell_known(e, a, i + 2) ? d->in[i + 2] : 0};
    d->grouped = a->groups > 1;
    d->depthwise = d->grouped && d->group_in == 1;
    d->wino =
        !d->depthwise && d->kh * d->kw > 1 && is_float(e) && call_arg(e, 1)->kind == EXPR_CONST;
    for (uint32_t i = 0; i < 2; i++)
        d->wino &= (a->strides.n <= i || a->strides.at[i] == 1) &&
                   (a->dilation.n <= i || a->dilation.at[i] == 1);
    return true;
}

/* Channels that a sum over blocks takes: all real ones, and the rest of the last part (sum_part of
 * ops/nn/conv2d.c). */
static int64_t summed(int64_t channels, int64_t width)
{
    return width % 4 ? round_up(channels, width) : round_up(channels, 4);
}

static double conv_cost(const Choice *s, const ConvDims *d, Layouts l)
{
    const LayoutPlan *p = &s->plan;
    double            taps = (double)(d->kh * d->kw), cost;
    double            moved = moves(s, cells(p, d->in, l.in) + cells(p, d->out, l.out));

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
        return moved + cells(p, d->out, l.out) * taps / lanes_a_cycle(s, l.out);
    w.o = ceil_div(d->out[1], width);
    w.plain = !l.in;
    w.spread = d->grouped && l.in && d->group_in < width ? d->group_in : 0;
    w.group = !d->grouped ? w.o : group_out > width ? group_out / width : 1;
    if (l.in && !w.spread)
        w.sum = d->kh * d->kw * summed(d->group_in, p->width[l.in]);

    cost = cpu_conv_cycles(s->c->target, &w) * product_cost(s->c, d->data, d->weight, width, true);
    bool whole = (d->group_in % width == 0 && group_out % width == 0) ||
                 conv2d_groups_within(d->group_in, group_out, width);

    cost = fetched_cycles(&s->machine, cost, weights);
    if (s->c->target->winograd && d->wino && d->grouped && l.in == l.out && whole)
        cost = fmin(cost, winograd_groups_cycles(s->c, d->out, d->in[1], d->groups, k, width));
    else if (s->c->target->winograd && d->wino && !d->grouped && l.in == l.out)
        cost *= winograd_gain(s->c, d->out, d->in[1], k, p->width[1]); /* as much for all widths */
    return (l.in > 1 || l.out > 1 ? NARROW_BLOCKS : 1) * cost + moved;
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
static double weaving(const Choice *s, const Chooser *x, double n)
{
    const DepthToSpaceAttrs *a = ATTRS_OF(DepthToSpaceAttrs, x->e);
    int64_t                  rows =
        call_is(x->e, "nn.depth_to_space") && a->block_size.n == 2 ? a->block_size.at[1] : 1;

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

static double interpolate(const Choice *s, const Chooser *x, uint32_t layout)
{
    double  taps = interpolated_from(x->e), n = cells(&s->plan, x->dims, layout);
    int64_t lanes = s->plan.width[layout ? layout : 1];

    return layout ? interpolate_blocks_cycles(taps, n / (double)lanes)
                  : interpolate_rows_cycles(&s->machine, lanes, taps, n / (double)x->dims[3],
                                            (double)x->dims[3]);
}

static double other_cost(const Choice *s, const Chooser *x, uint32_t layout)
{
    double n = cells(&s->plan, x->dims, layout);

    /* A convolution's kernel does it before it stores. */
    if (layout && call_op(x->e)->fusion <= FUSE_BROADCAST &&
        call_is(call_arg(x->e, 0), "nn.conv2d"))
        return n / lanes_a_cycle(s, layout);

    if (!layout && has_windows(x->e))
        return plain_pool_cycles(s->c, x->e) + moves(s, n);
    if (interpolated_from(x->e) > 0)
        return interpolate(s, x, layout) + moves(s, n);
    return n * window(x->e) / lanes_a_cycle(s, layout) + (layout ? 0 : weaving(s, x, n)) +
           moves(s, n);
}

/* ---- who can be in which layout ------------------------------------------------------------- */

static void offer(Chooser *x, uint32_t in, uint32_t out, double cost)
{
    x->choice[x->n] = (Layouts){(uint8_t)in, (uint8_t)out};
    x->cost[x->n++] = cost;
}

/* Blocked operands, for the operator to say whether it takes them: a variable of that type. */
static const Expr *stand_in(const Choice *s, const Expr *e, uint32_t layout)
{
    int64_t    d[4], w = s->plan.width[layout];
    const Idx *dims[5];

    if (!image_dims(e->type, d))
        return NULL;
    memcpy(dims, e->type->dims, 4 * sizeof *dims);
    dims[1] = idx_const(s->c->arith, (d[1] + w - 1) / w);
    dims[4] = idx_const(s->c->arith, w);
    return expr_var(s->c, "x", type_tensor(s->c, e->type->dtype, 5, dims), NO_LOC);
}

bool is_blocked_operand(const Expr *call, const Expr *x)
{
    int64_t in[4], out[4];

    return x->kind != EXPR_CONST && image_dims(x->type, in) && image_dims(call->type, out) &&
           (in[1] == out[1] || call_nargs(call) == 1);
}

static const Expr *tuple_stand_in(const Choice *s, const Expr *t, uint32_t layout)
{
    const Expr **fields = NEW_ARRAY(s->c->scratch, const Expr *, t->nkids + 1);

    for (uint32_t i = 0; i < t->nkids; i++)
        if (!(fields[i] = stand_in(s, t->kids[i], layout)))
            return NULL;
    return expr_tuple(s->c, t->nkids, fields, NO_LOC);
}

static bool takes(const Choice *s, const Expr *e, uint32_t layout)
{
    const Expr **args = NEW_ARRAY(s->c->scratch, const Expr *, call_nargs(e) + 1), *now;
    uint32_t     errors = diag_errors(s->c->diags);
    bool         any = false;

    for (uint32_t i = 0; i < call_nargs(e); i++) {
        args[i] = call_arg(e, i);
        if (args[i]->kind == EXPR_TUPLE)
            args[i] = tuple_stand_in(s, args[i], layout);
        else if (is_blocked_operand(e, args[i]))
            args[i] = stand_in(s, args[i], layout);
        if (!args[i])
            return false;
        any |= args[i] != call_arg(e, i);
    }
    now = any ? call_op(e)->block(s->c, e, args, s->plan.width[layout]) : NULL;
    if (diag_errors(s->c->diags) != errors)
        diag_drop(s->c->diags, errors); /* a refusal, not a fault of the model */
    return now != NULL;
}

static uint32_t widths_for(const Choice *s, const Expr *e)
{
    return dtype_eq(e->type->dtype, DT_F32) ? s->plan.n : s->plan.n < 2 ? s->plan.n : 2;
}

/* Where blocks of channels do not fit, data may be read as they are: those of a picture, or of a
 * group, are few. */
static bool reads(const Choice *s, const ConvDims *d, bool is_float, Layouts l)
{
    int64_t w = s->plan.width[l.out], group_out = d->out[1] / d->groups;
    bool    whole = (d->group_in % w == 0 && group_out % w == 0) ||
                 (is_float && conv2d_groups_within(d->group_in, group_out, w));

    if (!d->grouped)
        return l.in || d->in[1] < s->plan.width[1];
    if (!l.in)
        return is_float && !whole && !d->depthwise && group_out % w == 0;
    return l.in == l.out && (whole || d->depthwise);
}

static void offer_conv(const Choice *s, Chooser *x, const ConvDims *d)
{
    uint32_t widths = widths_for(s, call_arg(x->e, 0));

    if (!d->depthwise && !is_constant(call_arg(x->e, 1)))
        return; /* blocked rules pack the weights */
    for (uint32_t o = 1; o < widths; o++)
        for (uint32_t i = 0; i < widths; i++) {
            Layouts l = {(uint8_t)i, (uint8_t)o};

            if (reads(s, d, is_float(x->e), l))
                offer(x, i, o, conv_cost(s, d, l));
        }
    if (x->n)
        offer(x, 0, 0, conv_cost(s, d, (Layouts){0}));
}

static void offer_other(const Choice *s, Chooser *x)
{
    for (uint32_t l = 1; l < widths_for(s, x->e); l++)
        if (takes(s, x->e, l))
            offer(x, l, l, other_cost(s, x, l));
    if (x->n)
        offer(x, 0, 0, other_cost(s, x, 0));
}

/* ---- the graph ------------------------------------------------------------------------------ */

static Chooser *chooser_of(const Choice *s, const Expr *e)
{
    return map_get(s->of, PTR_KEY(e));
}

/* What x costs to bring from its own layout to the one that a reader wants; `y` NULL: plain. */
static void join(const Choice *s, const Expr *e, const Chooser *y)
{
    Chooser *x = chooser_of(s, e);
    int64_t  dims[4];
    double   cost[MAX_CHOICES * MAX_CHOICES];

    if (e->kind == EXPR_CONST || !image_dims(e->type, dims) || (!x && !y))
        return;
    uint32_t nx = x ? x->n : 1, ny = y ? y->n : 1;
    for (uint32_t i = 0; i < nx; i++)
        for (uint32_t k = 0; k < ny; k++)
            cost[i * ny + k] =
                repack(s, e, dims, x ? x->choice[i].out : 0, y ? y->choice[k].in : 0);
    if (x && y)
        pbqp_edge(s->g, x->node, y->node, cost);
    else if (y)
        pbqp_add(s->g, y->node, cost);
    else if (!x->read_plain) /* repacked once for all of them */
        pbqp_add(s->g, x->node, cost), x->read_plain = true;
}

static void join_operand(const Choice *s, const Expr *call, const Expr *x, const Chooser *y)
{
    if (x->kind != EXPR_TUPLE)
        join(s, x, call_is(call, "nn.conv2d") || is_blocked_operand(call, x) ? y : NULL);
    for (uint32_t i = 0; x->kind == EXPR_TUPLE && i < x->nkids; i++)
        join(s, x->kids[i], y);
}

static void add_chooser(Choice *s, const Expr *e)
{
    Chooser *x;
    Chooser  t = {.e = e};
    ConvDims d;

    if (!call_op(e) || !call_op(e)->block || !image_dims(e->type, t.dims))
        return;
    if (!call_is(e, "nn.conv2d"))
        offer_other(s, &t);
    else if (conv_dims(e, &d))
        offer_conv(s, &t, &d);
    if (!t.n)
        return;
    x = DUP_ARRAY(s->c->scratch, &t, 1);
    x->node = pbqp_node(s->g, x->n, x->cost);
    map_put(s->of, PTR_KEY(e), x);
    vec_push(s->c->scratch, &s->choosers, x);
}

static void add_edges(const Choice *s, const Expr *e)
{
    const Chooser *y = chooser_of(s, e);

    if (y) {
        for (uint32_t i = 0; i < call_nargs(e); i++)
            join_operand(s, e, call_arg(e, i), y);
        return;
    }
    for (uint32_t i = 0; i < e->nkids; i++) {
        const Expr *x = e->kids[i];

        /* A tuple's fields are read by who reads the tuple. */
        if (e->kind != EXPR_TUPLE && x->kind != EXPR_TUPLE)
            join(s, x, NULL);
        for (uint32_t k = 0; x->kind == EXPR_TUPLE && k < x->nkids; k++)
            join(s, x->kids[k], NULL);
    }
}

/* All in blocks of one width where that is possible, and what no single change betters. */
static void uniform(const Choice *s, uint32_t layout, uint32_t *choice)
{
    for (uint32_t i = 0; i < s->choosers.n; i++) {
        const Chooser *x = s->choosers.at[i];

        choice[i] = x->n - 1; /* plain */
        for (uint32_t k = 0; k + 1 < x->n; k++)
            if (x->choice[k].out == layout &&
                (choice[i] == x->n - 1 || x->cost[k] < x->cost[choice[i]]))
                choice[i] = k;
    }
    pbqp_improve(s->g, choice);
}

static void choose(Choice *s)
{
    uint32_t  n = s->choosers.n;
    uint32_t *best = NEW_ARRAY(s->c->scratch, uint32_t, n + 1),
             *other = NEW_ARRAY(s->c->scratch, uint32_t, n + 1);

    pbqp_solve(s->g, best);
    for (uint32_t l = 1; l < s->plan.n; l++) {
        uniform(s, l, other);
        if (pbqp_cost(s->g, other) < pbqp_cost(s->g, best) * (1 - 1e-9))
            memcpy(best, other, n * sizeof *best);
    }
    for (uint32_t i = 0; i < n; i++) {
        const Chooser *x = s->choosers.at[i];

        map_put(s->plan.of, PTR_KEY(x->e), (void *)(uintptr_t)&x->choice[best[i]]);
    }
}

static Choice choice_of(Ctx *c)
{
    Choice s = {.c = c, .machine = network_machine(c), .plan = {.n = 1}};

    for (uint32_t w = c->target->vector_bytes / 4; w >= LEAST_LANES && s.plan.n < MAX_WIDTHS;
         w /= 2)
        s.plan.width[s.plan.n++] = w;
    return s;
}

double conv2d_cycles(Ctx *c, const Expr *conv, int64_t group_in, int64_t group_out)
{
    Choice   s = choice_of(c);
    Chooser  x = {.e = conv};
    ConvDims d;
    double   best, more = 0;

    if (!conv_dims(conv, &d))
        return 0;
    int64_t in = d.groups * (group_in ? group_in : d.group_in),
            out = group_out ? d.groups * group_out : d.out[1];

    if (in > d.in[1])
        more += s.machine.start_cycles +
                moves(&s, cells(&s.plan, d.in, 0) * (1 + (double)in / (double)d.in[1]));
    if (out > d.out[1])
        more += moves(&s, cells(&s.plan, d.out, 0) * (1 + (double)out / (double)d.out[1]));
    d.in[1] = in;
    d.group_in = in / d.groups;
    d.out[1] = out;
    best = conv_cost(&s, &d, (Layouts){0});
    offer_conv(&s, &x, &d);
    for (uint32_t i = 0; i + 1 < x.n; i++) {
        double cost = x.cost[i] + repack(&s, conv, d.in, 0, x.choice[i].in) +
                      repack(&s, conv, d.out, x.choice[i].out, 0);

        best = cost < best ? cost : best;
    }
    return best + more;
}

LayoutPlan choose_layouts(Ctx *c, const Expr *func)
{
    Choice   s = choice_of(c);
    ExprList list = expr_post_order(c, func);

    s.g = pbqp_new(c->scratch);
    s.of = map_new(c->scratch);
    s.plan.of = map_new(c->scratch);
    for (uint32_t i = 0; i < list.n; i++)
        add_chooser(&s, list.at[i]);
    for (uint32_t i = 0; i < list.n; i++)
        add_edges(&s, list.at[i]);
    choose(&s);
    return s.plan;
}
