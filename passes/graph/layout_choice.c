/* layout_choice: the layout of every value, chosen for the whole function (docs/design/layouts.md).
 *
 * Candidates are plain NCHW and blocks of channels, as wide as the class of the target has them
 * (layout_cpu.c, layout_device.c).  A convolution may read one and give another; everything else
 * that can be blocked keeps its operand's.  An operator costs the cycles that its schedule rule
 * takes for it, lanes without a channel included; an edge whose ends disagree costs a repacking.
 * pbqp.c finds the cheapest choice.
 *
 * A choice is offered only if the operator takes it: its `block` function is tried on variables of
 * the type that the operands would have.  Quantized values know the widest blocks only. */
#include "passes/graph/layouts.h"

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
    LayoutSpace l;
    Pbqp       *g;
    VEC(Chooser *) choosers;
    Map *of; /* node of the graph to its Chooser */
} Choice;

/* ---- what things cost ----------------------------------------------------------------------- */

double layout_cells(const LayoutPlan *p, const int64_t dims[4], uint32_t layout)
{
    int64_t ch = layout ? round_up(dims[1], p->width[layout]) : dims[1];

    return (double)dims[0] * (double)ch * (double)dims[2] * (double)dims[3];
}

bool same_bytes(const LayoutPlan *p, const int64_t dims[4], uint32_t from, uint32_t to)
{
    bool whole = (!from || dims[1] % p->width[from] == 0) && (!to || dims[1] % p->width[to] == 0);

    return from == to || (whole && dims[2] == 1 && dims[3] == 1);
}

bool fits_groups(const ConvDims *d, int64_t width)
{
    int64_t out = d->out[1] / d->groups;

    return (d->group_in % width == 0 && out % width == 0) ||
           (d->is_float && conv2d_groups_within(d->group_in, out, width));
}

bool image_dims(const Type *t, int64_t dims[4])
{
    if (!t || t->kind != TYPE_TENSOR || t->n != 4)
        return false;
    for (uint32_t i = 0; i < 4; i++) {
        dims[i] = idx_usual(t->dims[i]);
        if (t->dims[i]->lo < 1)
            return false;
    }
    return idx_is_const(t->dims[1], NULL);
}

/* Whether a cell of that dimension is padding, zeros, is known when the model is compiled. */
static bool cell_known(const Expr *e, const Conv2dAttrs *a, uint32_t dim)
{
    int64_t n;

    return a->pad_value == 0 && type_dim(e->type, dim, &n) &&
           type_dim(call_arg(e, 0)->type, dim, &n);
}

static bool conv_dims(const LayoutSpace *s, const Expr *e, ConvDims *d)
{
    const Conv2dAttrs *a = ATTRS_OF(Conv2dAttrs, e);
    const Type        *w = call_arg(e, 1)->type;

    if (strcmp(a->data_layout, "NCHW") || *a->out_layout ||
        dtype_eq(e->type->dtype, DT_I64) || /* such sums have no lanes */
        !image_dims(call_arg(e, 0)->type, d->in) ||
        !s->costs->blocks(call_arg(e, 0)->type->dtype) || !image_dims(e->type, d->out) || !w ||
        w->kind != TYPE_TENSOR || w->n != 4 || !type_dim(w, 1, &d->group_in) ||
        !type_dim(w, 2, &d->kh) || !type_dim(w, 3, &d->kw))
        return false;
    d->data = call_arg(e, 0)->type->dtype;
    d->weight = w->dtype;
    d->sum = e->type->dtype;
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
    d->is_float = is_float(e);
    d->wino =
        !d->depthwise && d->kh * d->kw > 1 && is_float(e) && call_arg(e, 1)->kind == EXPR_CONST;
    for (uint32_t i = 0; i < 2; i++)
        d->wino &= (a->strides.n <= i || a->strides.at[i] == 1) &&
                   (a->dilation.n <= i || a->dilation.at[i] == 1);
    return true;
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
    int64_t    d[4], w = s->l.plan.width[layout];
    const Idx *dims[5];

    if (!image_dims(e->type, d) || !s->l.costs->blocks(e->type->dtype))
        return NULL;
    memcpy(dims, e->type->dims, 4 * sizeof *dims);
    dims[1] = idx_const(s->l.c->arith, (d[1] + w - 1) / w);
    dims[4] = idx_const(s->l.c->arith, w);
    return expr_var(s->l.c, "x", type_tensor(s->l.c, e->type->dtype, 5, dims), NO_LOC);
}

bool is_blocked_operand(const Expr *call, const Expr *x)
{
    int64_t in[4], out[4];

    return x->kind != EXPR_CONST && image_dims(x->type, in) && image_dims(call->type, out) &&
           (in[1] == out[1] || call_nargs(call) == 1);
}

static const Expr *tuple_stand_in(const Choice *s, const Expr *t, uint32_t layout)
{
    const Expr **fields = NEW_ARRAY(s->l.c->scratch, const Expr *, t->nkids + 1);

    for (uint32_t i = 0; i < t->nkids; i++)
        if (!(fields[i] = stand_in(s, t->kids[i], layout)))
            return NULL;
    return expr_tuple(s->l.c, t->nkids, fields, NO_LOC);
}

static bool takes(const Choice *s, const Expr *e, uint32_t layout)
{
    const Expr **args = NEW_ARRAY(s->l.c->scratch, const Expr *, call_nargs(e) + 1), *now;
    uint32_t     errors = diag_errors(s->l.c->diags);
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
    now = any ? call_op(e)->block(s->l.c, e, args, s->l.plan.width[layout]) : NULL;
    if (diag_errors(s->l.c->diags) != errors)
        diag_drop(s->l.c->diags, errors); /* a refusal, not a fault of the model */
    return now != NULL;
}

static uint32_t widths_for(const Choice *s, const Expr *e)
{
    return dtype_is_float(e->type->dtype) ? s->l.plan.n : s->l.plan.n < 2 ? s->l.plan.n : 2;
}

static void offer_conv(const Choice *s, Chooser *x, const ConvDims *d)
{
    uint32_t widths = widths_for(s, call_arg(x->e, 0));

    if (!d->depthwise && !is_constant(call_arg(x->e, 1)))
        return; /* blocked rules pack the weights */
    for (uint32_t o = 1; o < widths; o++)
        for (uint32_t i = 0; i < widths; i++) {
            Layouts l = {(uint8_t)i, (uint8_t)o};

            if (s->l.costs->reads(&s->l, d, l))
                offer(x, i, o, s->l.costs->conv(&s->l, d, l));
        }
    if (x->n)
        offer(x, 0, 0, s->l.costs->conv(&s->l, d, (Layouts){0}));
}

static void offer_other(const Choice *s, Chooser *x)
{
    for (uint32_t l = 1; l < widths_for(s, x->e); l++)
        if (takes(s, x->e, l))
            offer(x, l, l, s->l.costs->other(&s->l, x->e, x->dims, l));
    if (x->n)
        offer(x, 0, 0, s->l.costs->other(&s->l, x->e, x->dims, 0));
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
            cost[i * ny + k] = s->l.costs->repack(&s->l, e, dims, x ? x->choice[i].out : 0,
                                                  y ? y->choice[k].in : 0);
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

    if (!call_op(e) || !call_op(e)->block || !image_dims(e->type, t.dims) ||
        !s->l.costs->blocks(e->type->dtype))
        return;
    if (!call_is(e, "nn.conv2d"))
        offer_other(s, &t);
    else if (conv_dims(&s->l, e, &d))
        offer_conv(s, &t, &d);
    if (!t.n)
        return;
    x = DUP_ARRAY(s->l.c->scratch, &t, 1);
    x->node = pbqp_node(s->g, x->n, x->cost);
    map_put(s->of, PTR_KEY(e), x);
    vec_push(s->l.c->scratch, &s->choosers, x);
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
    uint32_t *best = NEW_ARRAY(s->l.c->scratch, uint32_t, n + 1),
             *other = NEW_ARRAY(s->l.c->scratch, uint32_t, n + 1);

    pbqp_solve(s->g, best);
    for (uint32_t l = 1; l < s->l.plan.n; l++) {
        uniform(s, l, other);
        if (pbqp_cost(s->g, other) < pbqp_cost(s->g, best) * (1 - 1e-9))
            memcpy(best, other, n * sizeof *best);
    }
    for (uint32_t i = 0; i < n; i++) {
        const Chooser *x = s->choosers.at[i];

        map_put(s->l.plan.of, PTR_KEY(x->e), (void *)(uintptr_t)&x->choice[best[i]]);
    }
}

typedef struct {
    TargetClass        cls;
    const LayoutCosts *costs;
} LayoutRow;

static LayoutSpace space_of(Ctx *c, const ExprList *function)
{
    static const LayoutRow rows[] = {
#define LAYOUTS(cls, costs) {CLASS_##cls, &costs},
#include "passes/graph/layouts.def"
#undef LAYOUTS
    };
    const Target *t = c->target;
    LayoutSpace   l = {.c = c, .machine = network_machine(c), .plan = {.n = 1}};

    for (const LayoutRow *row = rows; row < rows + COUNT(rows); row++)
        if (row->cls == t->cls)
            l.costs = row->costs;
    l.costs->widths(&l, function);
    return l;
}

double conv2d_cycles(Ctx *c, const Expr *conv, int64_t group_in, int64_t group_out)
{
    ExprList           alone = {0};
    Choice             s = {.l = space_of(c, &alone)};
    const LayoutCosts *costs = s.l.costs;
    Chooser            x = {.e = conv};
    ConvDims           d;
    double             best, more;

    if (!conv_dims(&s.l, conv, &d))
        return 0;
    int64_t in = d.groups * (group_in ? group_in : d.group_in),
            out = group_out ? d.groups * group_out : d.out[1];

    more = filled_cycles(&s.l, &d, in, out);
    d.in[1] = in;
    d.group_in = in / d.groups;
    d.out[1] = out;
    best = costs->conv(&s.l, &d, (Layouts){0});
    offer_conv(&s, &x, &d);
    for (uint32_t i = 0; i + 1 < x.n; i++) {
        double cost = x.cost[i] + costs->repack(&s.l, conv, d.in, 0, x.choice[i].in) +
                      costs->repack(&s.l, conv, d.out, x.choice[i].out, 0);

        best = cost < best ? cost : best;
    }
    return best + more;
}

LayoutPlan choose_layouts(Ctx *c, const Expr *func)
{
    ExprList list = expr_post_order(c, func);
    Choice   s = {.l = space_of(c, &list)};

    s.g = pbqp_new(c->scratch);
    s.of = map_new(c->scratch);
    s.l.plan.of = map_new(c->scratch);
    for (uint32_t i = 0; i < list.n; i++)
        add_chooser(&s, list.at[i]);
    for (uint32_t i = 0; i < list.n; i++)
        add_edges(&s, list.at[i]);
    choose(&s);
    return s.l.plan;
}
