/* plan_halo: padding becomes a border of the producer's buffer.
 *
 *   %1 = nn.relu(%0);  nn.conv2d(%1, const @w, padding=[1, 1, 1, 1])
 *     -> %1: Tensor[(1, 8, 56, 56, 8), f32] halo(2:1+1, 3:1+1) = 0.0 = nn.relu(%0);  nn.conv2d(%1,
 * ..)
 *
 * A halo is extra cells around the interior that hold a stated value once the producer is done
 * (docs/ir/relay.md); a consumer whose padding lies within it reads the border instead of testing
 * each index.  A value gets the union of its consumers' paddings that ask for the same fill: zeros
 * for convolutions and average pools (quantized data: their zero point), minus infinity or the
 * least integer where only max pools read it.
 *
 * Only values of our own kernels can have one: no parameters, constants or results of the function,
 * no operand of a reshape (which needs packed bytes), no field of a tuple.  A concatenation or
 * slice that is a view has the border of its parts, so these are one value here: all ask together,
 * and one that cannot have a border bars all.  Not for GPUs, where filling a border
 * would be a launch of its own: they test indices where they copy to shared memory.  Runs on the
 * graph before fusion: a value that a convolution or pool reads is always the last of its kernel.
 * Cost: one walk. */
#include "passes/graph/graph.h"

#include <math.h>
#include <string.h>

#define MAX_HALO 8 /* cells on a side; more is cheaper as a test */

/* A border that consumers ask for. */
typedef struct {
    bool     any;
    double   fill;
    uint32_t lo[2], hi[2]; /* height, width */
} Border;

/* What the consumers of one value ask for; a border of `sums` goes before one of max pools. */
typedef struct Wish {
    struct Wish *up;     /* of a view: what all in this memory ask for; NULL: this one */
    bool         barred; /* some consumer cannot read a halo */
    Border       sums;   /* convolutions, average pools: zeros, or what stands for zero */
    Border       maxima; /* max pools: the least number */
} Wish;

/* What a call pads its first operand with. */
typedef struct {
    Ints   pad;
    double fill;
    bool   maxima;
} Padding;

static Wish *wish_of(Ctx *c, Map *wishes, const Expr *e)
{
    Wish *w = map_get(wishes, PTR_KEY(e));

    if (!w) {
        w = NEW(c->scratch, Wish);
        map_put(wishes, PTR_KEY(e), w);
    }
    return w;
}

static Wish *root(Wish *w)
{
    while (w->up) {
        if (w->up->up)
            w->up = w->up->up;
        w = w->up;
    }
    return w;
}

/* Consumers that want another fill than the first one test their indices. */
static void grow(Border *b, const Border *more)
{
    if (!more->any || (b->any && b->fill != more->fill))
        return;
    b->any = true;
    b->fill = more->fill;
    for (uint32_t i = 0; i < 2; i++) {
        if (more->lo[i] > b->lo[i])
            b->lo[i] = more->lo[i];
        if (more->hi[i] > b->hi[i])
            b->hi[i] = more->hi[i];
    }
}

static Border border_for(const Padding *p)
{
    Border b = {true, p->fill, {0}, {0}};

    for (uint32_t i = 0; i < 2; i++) {
        b.lo[i] = (uint32_t)p->pad.at[i];
        b.hi[i] = (uint32_t)p->pad.at[i + 2];
    }
    return b;
}

static bool some_padding(Ints pad)
{
    bool any = false;

    for (uint32_t i = 0; i < pad.n; i++) {
        if (pad.at[i] < 0 || pad.at[i] > MAX_HALO)
            return false;
        any |= pad.at[i] > 0;
    }
    return any && pad.n == 4;
}

/* Padding of a call's first operand; false: none. */
static bool padding_of(Ctx *c, const Expr *e, Padding *p)
{
    const Type *t = e->type;

    if (!call_op(e) || !t || t->kind != TYPE_TENSOR)
        return false;
    *p = (Padding){0};
    if (call_is(e, "nn.conv2d")) {
        const Conv2dAttrs *a = ATTRS_OF(Conv2dAttrs, e);

        int64_t *at = DUP_ARRAY(c->scratch, a->padding.at, 4);

        at[3] += conv2d_surplus_columns(c, e);
        p->pad = (Ints){4, at};
        p->fill = (double)a->pad_value;
        return strncmp(a->data_layout, "NCHW", 4) == 0 && some_padding(a->padding);
    }
    if (call_is(e, "nn.contrib_conv2d_winograd_without_weight_transform")) {
        const Conv2dWinogradAttrs *a = ATTRS_OF(Conv2dWinogradAttrs, e);
        int64_t                   *at = DUP_ARRAY(c->scratch, a->padding.at, 4), y;

        for (uint32_t i = 0; i < 2; i++) { /* whole tiles */
            const int64_t *k = a->kernel_size.at;
            int64_t        m = winograd_cells(a->tile_size, k, i) + 1 - k[i];

            if (!type_dim(t, i + 2, &y))
                return false;
            at[i + 2] += round_up(y, m) - y;
        }
        p->pad = (Ints){4, at};
        p->fill = (double)a->pad_value;
        return some_padding(p->pad);
    }
    if (call_is(e, "nn.max_pool2d") || call_is(e, "nn.avg_pool2d")) {
        const Pool2dAttrs *a = ATTRS_OF(Pool2dAttrs, e);

        p->pad = a->padding;
        p->maxima = call_is(e, "nn.max_pool2d");
        if (p->maxima)
            p->fill = dtype_is_float(t->dtype) ? -INFINITY : dtype_min(t->dtype);
        return strncmp(a->layout, "NCHW", 4) == 0 && !a->ceil_mode && some_padding(p->pad);
    }
    return false;
}

/* A value that a kernel of ours writes into a buffer of its own, or a view of such.  Without cells
 * there is nothing that a border could lie around. */
static bool can_have_halo(const Expr *e)
{
    if (!call_op(e) || is_view(e) || is_map(e) || is_update(e) || !static_but_first(e) ||
        e->type->n < 4 || e->type->halo || e->type->dims[0]->lo < 1)
        return false;
    return is_part_view(e) || (!call_is(e, "concatenate") && !call_is(e, "stack"));
}

static void join(Wish *a, Wish *b)
{
    a = root(a);
    b = root(b);
    if (a == b)
        return;
    b->up = a;
    a->barred |= b->barred;
    grow(&a->sums, &b->sums);
    grow(&a->maxima, &b->maxima);
}

/* Parts of one memory have one border, within each part: none along what is cut. */
static void wish_view(Ctx *c, Map *wishes, const Expr *view)
{
    const Expr        *x = call_arg(view, 0);
    const Expr *const *part = x->kind == EXPR_TUPLE ? x->kids : &x;
    uint32_t           n = x->kind == EXPR_TUPLE ? x->nkids : 1;
    Wish              *w = wish_of(c, wishes, view);

    for (uint32_t i = 0; i < n; i++) {
        bool bar = !can_have_halo(part[i]) || view->type->n < 4;

        for (uint32_t d = 2; d < view->type->n && !bar; d++)
            bar = part[i]->type->dims[d] != view->type->dims[d];
        join(w, wish_of(c, wishes, part[i]));
        root(w)->barred |= bar;
    }
}

/* The fields of a view may have a border; those of other tuples may not. */
static bool reads_borders(const Expr *user, const Map *views)
{
    return (call_op(user) && !is_view(user) && !is_map(user) && !is_update(user)) ||
           map_get(views, PTR_KEY(user));
}

static void wish(Ctx *c, Map *wishes, const Expr *user, const Map *views)
{
    Padding p;

    if (is_part_view(user))
        wish_view(c, wishes, user);
    for (uint32_t i = 0; i < user->nkids; i++) {
        Wish *w = root(wish_of(c, wishes, user->kids[i]));

        if (!reads_borders(user, views))
            w->barred = true;
        if (i == 1 && padding_of(c, user, &p)) {
            Border b = border_for(&p);

            grow(p.maxima ? &w->maxima : &w->sums, &b);
        }
    }
}

/* One border for both where they hold the same, else that of the sums. */
static Border border_of(const Wish *w)
{
    Border b = w->sums.any ? w->sums : w->maxima;

    grow(&b, &w->maxima);
    return b;
}

static const Type *with_halo(Ctx *c, const Type *t, const Wish *w)
{
    uint32_t *lo = NEW_ARRAY(c->scratch, uint32_t, t->n),
             *hi = NEW_ARRAY(c->scratch, uint32_t, t->n);
    Border b = border_of(w);
    Halo   h = {t->n, b.fill, lo, hi};

    for (uint32_t i = 0; i < 2; i++) {
        lo[i + 2] = b.lo[i];
        hi[i + 2] = b.hi[i];
    }
    return type_with_halo(c, t, &h);
}

static const Expr *give(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    Map  *wishes = user;
    Wish *w = map_get(wishes, PTR_KEY(was));

    if (!w || !can_have_halo(was))
        return now;
    w = root(w);
    if (w->barred || (!w->sums.any && !w->maxima.any))
        return now;
    return expr_with_type(c, now, with_halo(c, now->type, w));
}

/* Tuples that only views read. */
static Map *view_tuples(Ctx *c, ExprList list)
{
    Map *tuples = map_new(c->scratch);

    for (uint32_t i = 0; i < list.n; i++)
        if (is_part_view(list.at[i]) && call_arg(list.at[i], 0)->kind == EXPR_TUPLE)
            map_put(tuples, PTR_KEY(call_arg(list.at[i], 0)), tuples);
    for (uint32_t i = 0; i < list.n; i++)
        for (uint32_t k = 0; k < list.at[i]->nkids && !is_part_view(list.at[i]); k++)
            map_del(tuples, PTR_KEY(list.at[i]->kids[k]));
    return tuples;
}

const Module *plan_halo(Ctx *c, const Module *m)
{
    Map *wishes = map_new(c->scratch);

    if (!fills_borders(c->target))
        return m;
    for (uint32_t i = 0; i < m->nfuncs; i++) {
        ExprList list = expr_post_order(c, m->funcs[i].func);
        Map     *tuples = view_tuples(c, list);

        for (uint32_t k = 0; k < list.n; k++)
            wish(c, wishes, list.at[k], tuples);
    }
    return module_rewrite(c, m, give, wishes);
}
