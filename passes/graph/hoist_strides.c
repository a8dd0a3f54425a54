/* hoist_strides: strides of 1x1 convolutions go to the convolution that makes what they read.
 *
 *   %0 = nn.conv2d(%x, const @w, padding=[1, 1, 1, 1]);  %1 = nn.relu(%0);
 *   nn.conv2d(%1, const @v, kernel_size=[1, 1], strides=[2, 2])
 *     -> %0 = nn.conv2d(%x, const @w, padding=[1, 1, 1, 1], strides=[2, 2]);  %1 = nn.relu(%0);
 *        nn.conv2d(%1, const @v, kernel_size=[1, 1])
 *
 * A 1x1 convolution of stride 2 reads a quarter of its image, and the rest is computed for nobody.
 * What the readers of a value ask for goes up through what is computed cell by cell, as far as all
 * of them ask for as much, to convolutions, whose stride grows by it.  A value of which somebody
 * needs all stays, and so does one that no convolution makes.  Cost: two walks, again where
 * a value that stays after all needs others. */
#include "passes/graph/graph.h"

#include <string.h>

enum { ROUNDS = 16 };

/* Of rows and columns: each how-many-th is needed.  0: nobody has asked yet. */
typedef struct {
    uint32_t at[2];
} Steps;

static const Steps all_cells = {{1, 1}};

static Steps steps_get(const Map *m, const Expr *e)
{
    const Steps *s = map_get(m, PTR_KEY(e));

    return s ? *s : (Steps){{0, 0}};
}

static bool steps_eq(Steps a, Steps b)
{
    return a.at[0] == b.at[0] && a.at[1] == b.at[1];
}

static uint32_t gcd(uint32_t a, uint32_t b)
{
    while (b) {
        uint32_t r = a % b;

        a = b;
        b = r;
    }
    return a;
}

static bool is_image(const Expr *e)
{
    return expr_has_shape(e) && e->type->n == 4;
}

static bool is_plain_conv(const Expr *e)
{
    return call_is(e, "nn.conv2d") && is_image(e) && is_image(call_arg(e, 0)) &&
           !strcmp(ATTRS_OF(Conv2dAttrs, e)->data_layout, "NCHW");
}

static bool is_pointwise(const Expr *e)
{
    const Conv2dAttrs *a = ATTRS_OF(Conv2dAttrs, e);
    const Type        *w = call_arg(e, 1)->type;
    int64_t            kh, kw;

    return ints_all(a->padding, 0) && w->n == 4 && type_dim(w, 2, &kh) && kh == 1 &&
           type_dim(w, 3, &kw) && kw == 1;
}

/* An operand that is the same for all pixels of an image. */
static bool is_pixel(const Expr *call, const Expr *x)
{
    uint32_t n = expr_has_shape(x) ? x->type->n : UINT32_MAX;
    int64_t  d;

    if (call_is(call, "nn.bias_add"))
        return x == call_arg(call, 1) && n == 1 &&
               axis_from_front(ATTRS_OF(BiasAddAttrs, call)->axis, 4) == 1;
    for (uint32_t i = n; i > 0 && i + 2 > n; i--)
        if (n > call->type->n || !type_dim(x->type, i - 1, &d) || d != 1)
            return false;
    return n <= call->type->n;
}

/* The state of a function: of its nodes, what is asked for, and which stay whole. */
typedef struct {
    Ctx *c;
    Map *steps, *whole;
} Hoist;

/* Cell by cell, of images of its own size, at least one, and numbers for all pixels. */
static bool is_cellwise(const Expr *e)
{
    const Op *op = call_op(e);
    bool      any = false;

    if (!op || (op->fusion != FUSE_ELEMWISE && op->fusion != FUSE_BROADCAST) || !is_image(e))
        return false;
    for (uint32_t i = 0; i < call_nargs(e); i++) {
        const Expr *x = call_arg(e, i);

        if (is_pixel(e, x))
            continue;
        if (!is_image(x) || !same_dims(x->type, e->type))
            return false;
        any = true;
    }
    return any;
}

static bool may_shrink(const Hoist *h, const Expr *e)
{
    return !map_get(h->whole, PTR_KEY(e)) && (is_plain_conv(e) || is_cellwise(e));
}

static void ask(Hoist *h, const Expr *e, Steps s)
{
    Steps had = steps_get(h->steps, e);

    for (int i = 0; i < 2; i++)
        s.at[i] = gcd(s.at[i], had.at[i]);
    map_put(h->steps, PTR_KEY(e), arena_dup(h->c->scratch, &s, sizeof s));
}

/* What a call needs of its operand, if it gives each so many of its own pixels. */
static Steps needs(const Expr *e, uint32_t arg, Steps own)
{
    Steps s = all_cells;

    if (is_plain_conv(e) && is_pointwise(e) && arg == 0) {
        for (int i = 0; i < 2; i++) {
            int64_t stride = ATTRS_OF(Conv2dAttrs, e)->strides.at[i] * (int64_t)own.at[i];
            if (stride > INT32_MAX)
                return all_cells;
            s.at[i] = (uint32_t)stride;
        }
        return s;
    }
    return is_cellwise(e) && !is_pixel(e, call_arg(e, arg)) ? own : all_cells;
}

/* What is asked for of the nodes of a function, readers before what they read. */
static void ask_all(Hoist *h, const ExprList *list)
{
    for (uint32_t i = list->n; i-- > 0;) {
        const Expr *e = list->at[i];

        if (i + 1 == list->n || !may_shrink(h, e))
            ask(h, e, all_cells);
        for (uint32_t k = 0; k < e->nkids && !call_op(e); k++)
            ask(h, e->kids[k], all_cells);
        for (uint32_t k = 0; call_op(e) && k < call_nargs(e); k++)
            ask(h, call_arg(e, k), needs(e, k, steps_get(h->steps, e)));
    }
}

/* Marks what has to stay whole, since not all that it is made of cell by cell shrinks with it. */
static bool keep_whole(Hoist *h, const ExprList *list)
{
    bool any = false;

    for (uint32_t i = 0; i < list->n; i++) {
        const Expr *e = list->at[i];
        Steps       own = steps_get(h->steps, e);

        if (steps_eq(own, all_cells) || !is_cellwise(e))
            continue;
        for (uint32_t k = 0; k < call_nargs(e); k++) {
            const Expr *x = call_arg(e, k);

            if (is_pixel(e, x) ||
                (!map_get(h->whole, PTR_KEY(x)) && steps_eq(steps_get(h->steps, x), own)))
                continue;
            map_put(h->whole, PTR_KEY(e), h);
            any = true;
        }
    }
    return any;
}

static const Expr *rewrite(Ctx *c, void *user, const Expr *was, const Expr *e)
{
    const Hoist *h = user;

    if (!is_plain_conv(was) || !call_is(e, "nn.conv2d"))
        return e;
    Steps        own = steps_get(h->steps, was), in = steps_get(h->steps, call_arg(was, 0));
    Conv2dAttrs *a = ATTRS_COPY(c, Conv2dAttrs, was);
    int64_t      strides[2];

    for (int i = 0; i < 2; i++)
        strides[i] = a->strides.at[i] * (int64_t)own.at[i] / (int64_t)in.at[i];
    if (strides[0] == a->strides.at[0] && strides[1] == a->strides.at[1])
        return e;
    a->strides = ints_dup(c, strides, 2);
    return make2(c, "nn.conv2d", call_arg(e, 0), call_arg(e, 1), a, e->loc);
}

const Module *hoist_strides(Ctx *c, const Module *m)
{
    Hoist h = {.c = c, .whole = map_new(c->scratch)};
    bool  again = true;

    for (int round = 0; again; round++) {
        if (round == ROUNDS)
            return m;
        again = false;
        h.steps = map_new(c->scratch);
        for (uint32_t i = 0; i < m->nfuncs; i++) {
            ExprList list = expr_post_order(c, m->funcs[i].func);

            ask_all(&h, &list);
            again |= keep_whole(&h, &list);
        }
    }
    return module_rewrite(c, m, rewrite, &h);
}
