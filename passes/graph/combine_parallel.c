/* combine_parallel_conv2d, combine_parallel_dense: siblings that read the same input become one
 * call.
 *
 *   %0 = nn.dense(%x, const @q);  %1 = nn.dense(%x, const @k);  %2 = nn.dense(%x, const @v)
 *     -> %0 = nn.dense(%x, const @qkv);  %1 = split(%0, indices=[64, 128], axis=1);  %1.0 .. %1.1
 * .. %1.2
 *
 * The weights of siblings (same operand, same attributes, constant weights of the same shape but
 * for the output channels) are put one behind the other along the output channel; bias_adds that
 * follow each of them, as their only use, go along.  One call reads the input once and has more
 * parallel work, but its result must be taken apart again.  So it is done only where each sibling
 * alone is small: it is then bound by reading its input and by starting up, which are saved.
 *
 * Convolutions are combined only on targets without vectors of channels, because a split result
 * leaves blocked layouts; and in loops, whose states have none, those of one image, whatever their
 * size: its parts are views.  Where parts of two such results
 * are added one by one, as the gates of a recurrent layer are, the sum is taken apart.  Cost: one
 * walk, one rewrite. */
#include "passes/graph/graph.h"

#include <string.h>

#define MAX_SIBLINGS 16

typedef struct {
    const Expr *call;  /* conv2d or dense */
    const Expr *end;   /* it, or the bias_add behind it */
    int64_t     width; /* output channels */
    const Expr *value; /* what replaces `end` */
} Sibling;

typedef struct Group {
    uint32_t      n;
    Sibling       at[MAX_SIBLINGS];
    bool          made;
    const Expr   *whole; /* before it is taken apart */
    const Expr   *sum;   /* of this and the group that is added to it, taken apart */
    struct Group *next;  /* of the same input */
} Group;

typedef struct {
    const char *op;
    bool        conv, loops; /* loops: only there, parts of one image, which are its views */
    int64_t     most;        /* multiply-adds of a sibling */
    Map        *members;     /* end of a sibling in the old graph to its Group */
    Map        *uses, *user; /* how often a node is read, and by which last */
} State;

/* ---- finding siblings ----------------------------------------------------------------------- */

static int64_t macs_of(const Expr *call)
{
    const Type *w = call_arg(call, 1)->type;
    int64_t     out, weights, channels, v;

    if (!type_elems_most(call->type, &out) || !type_elems(w, &weights) ||
        !type_dim(w, 0, &channels) || channels < 1 || !checked_mul(out, weights / channels, &v))
        return INT64_MAX;
    return v;
}

static bool may_combine(const State *s, const Expr *e)
{
    int64_t images;

    if (!call_is(e, s->op) || !expr_has_shape(e) || call_arg(e, 1)->kind != EXPR_CONST ||
        (!s->loops && macs_of(e) > s->most))
        return false;
    if (s->conv) {
        const Conv2dAttrs *a = ATTRS_OF(Conv2dAttrs, e);

        if (s->loops && (!type_dim(e->type, 0, &images) || images != 1))
            return false;
        return a->groups == 1 && !strcmp(a->data_layout, "NCHW") && !*a->out_layout;
    }
    return true;
}

static bool same_attrs(Ctx *c, const State *s, const Expr *a, const Expr *b)
{
    if (s->conv) {
        Conv2dAttrs *x = ATTRS_COPY(c, Conv2dAttrs, a), *y = ATTRS_COPY(c, Conv2dAttrs, b);

        x->channels = y->channels = 0;
        return attrs_equal(&attrs_Conv2dAttrs, x, y);
    }
    DenseAttrs *x = ATTRS_COPY(c, DenseAttrs, a), *y = ATTRS_COPY(c, DenseAttrs, b);

    x->units = y->units = 0;
    return attrs_equal(&attrs_DenseAttrs, x, y);
}

/* Equal but for the output channels. */
static bool siblings(Ctx *c, const State *s, const Sibling *a, const Sibling *b)
{
    const Type *x = call_arg(a->call, 1)->type, *y = call_arg(b->call, 1)->type;

    if (x->n != y->n || !dtype_eq(x->dtype, y->dtype) ||
        (a->call == a->end) != (b->call == b->end) || !same_attrs(c, s, a->call, b->call))
        return false;
    for (uint32_t i = 1; i < x->n; i++)
        if (x->dims[i] != y->dims[i])
            return false;
    return a->call == a->end || attrs_equal(&attrs_BiasAddAttrs, a->end->u.attrs, b->end->u.attrs);
}

/* The bias_add that is the only use of a call. */
static const Expr *only_bias(const Map *uses, const Map *user, const Expr *e)
{
    const Expr *u = map_get(user, PTR_KEY(e));

    if (uses_of(uses, e) == 1 && u && call_is(u, "nn.bias_add") && call_arg(u, 0) == e &&
        call_arg(u, 1)->kind == EXPR_CONST)
        return u;
    return e;
}

static void add_sibling(Ctx *c, State *s, Map *by_input, Sibling one)
{
    const Expr *x = call_arg(one.call, 0);
    Group      *first = map_get(by_input, PTR_KEY(x)), *g;

    for (g = first; g; g = g->next)
        if (g->n < MAX_SIBLINGS && siblings(c, s, &g->at[0], &one))
            break;
    if (!g) {
        g = NEW(c->scratch, Group);
        g->next = first;
        map_put(by_input, PTR_KEY(x), g);
    }
    g->at[g->n++] = one;
    map_put(s->members, PTR_KEY(one.end), g);
}

static void find_siblings(Ctx *c, State *s, const Expr *func)
{
    ExprList list = expr_post_order(c, func);
    Map     *uses = s->uses, *user = s->user, *by_input = map_new(c->scratch);

    for (uint32_t i = 0; i < list.n; i++)
        for (uint32_t k = 0; k < list.at[i]->nkids; k++)
            map_put(user, PTR_KEY(list.at[i]->kids[k]), (void *)(uintptr_t)list.at[i]);
    for (uint32_t i = 0; i < list.n; i++) {
        Sibling one = {.call = list.at[i]};

        if (!may_combine(s, one.call) || !type_dim(call_arg(one.call, 1)->type, 0, &one.width))
            continue;
        one.end = only_bias(uses, user, one.call);
        add_sibling(c, s, by_input, one);
    }
}

/* ---- making the one call -------------------------------------------------------------------- */

static const Expr *join(Ctx *c, const Group *g, bool bias)
{
    const Expr       *parts[MAX_SIBLINGS];
    ConcatenateAttrs *a = ATTRS_NEW(c, ConcatenateAttrs);
    Loc               loc = g->at[0].call->loc;

    for (uint32_t i = 0; i < g->n; i++)
        parts[i] = call_arg(bias ? g->at[i].end : g->at[i].call, 1);
    a->axis = 0;
    return make1(c, "concatenate", expr_tuple(c, g->n, parts, loc), a, loc);
}

static const void *joined_attrs(Ctx *c, const State *s, const Expr *call, int64_t width)
{
    if (s->conv) {
        Conv2dAttrs *a = ATTRS_COPY(c, Conv2dAttrs, call);

        a->channels = a->channels ? width : 0;
        return a;
    }
    DenseAttrs *a = ATTRS_COPY(c, DenseAttrs, call);

    a->units = a->units ? width : 0;
    return a;
}

static bool make_group(Ctx *c, const State *s, Group *g, const Expr *x)
{
    const Expr *call = g->at[0].call, *args[2] = {x, join(c, g, false)}, *e;
    SplitAttrs *split = ATTRS_NEW(c, SplitAttrs);
    int64_t     at[MAX_SIBLINGS], width = 0;

    for (uint32_t i = 0; i < g->n; i++) {
        width += g->at[i].width;
        at[i] = width;
    }
    if (!args[1] ||
        !(e = expr_call(c, call_op(call), 2, args, joined_attrs(c, s, call, width), call->loc)))
        return false;
    if (g->at[0].end != call && !(e = make2(c, "nn.bias_add", e, join(c, g, true),
                                            g->at[0].end->u.attrs, g->at[0].end->loc)))
        return false;
    g->whole = e;
    split->indices = dims_of_i64(c, at, g->n - 1);
    split->axis = s->conv ? 1 : e->type->n - 1;
    if (!(e = make1(c, "split", e, split, call->loc)))
        return false;
    for (uint32_t i = 0; i < g->n; i++)
        g->at[i].value = expr_proj(c, e, i, g->at[i].end->loc);
    g->made = true;
    return true;
}

static uint32_t place_in(const Group *g, const Expr *end)
{
    uint32_t i = 0;

    while (i < g->n && g->at[i].end != end)
        i++;
    return i;
}

/* Is each part of one group added to the same part of the other, and neither read elsewhere? */
static bool are_added(const State *s, const Group *g, const Group *h)
{
    if (g == h || g->n < 2 || g->n != h->n)
        return false;
    for (uint32_t i = 0; i < g->n; i++) {
        const Expr *a = g->at[i].end, *b = h->at[i].end, *sum = map_get(s->user, PTR_KEY(a));

        if (g->at[i].width != h->at[i].width || uses_of(s->uses, a) != 1 ||
            uses_of(s->uses, b) != 1 || !call_is(sum, "add") || call_arg(sum, 0) != a ||
            call_arg(sum, 1) != b || a->type != b->type)
            return false;
    }
    return true;
}

/* The sum of two groups' parts, as a part of their sum. */
static const Expr *sum_of_parts(Ctx *c, const State *s, const Expr *was, const Expr *now)
{
    Group *g = map_get(s->members, PTR_KEY(call_arg(was, 0)));
    Group *h = map_get(s->members, PTR_KEY(call_arg(was, 1)));

    if (!g || !h || !are_added(s, g, h) || !g->made || !h->made || g->whole->type != h->whole->type)
        return now;
    if (!g->sum) {
        const Expr *split = g->at[0].value->kids[0];

        g->sum = make2(c, "add", g->whole, h->whole, NULL, now->loc);
        g->sum = g->sum ? make1(c, "split", g->sum, split->u.attrs, now->loc) : NULL;
    }
    return g->sum ? expr_proj(c, g->sum, place_in(g, call_arg(was, 0)), now->loc) : NULL;
}

/* The first sibling met makes the call; its input is rewritten already. */
static const Expr *combine(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    State *s = user;
    Group *g = map_get(s->members, PTR_KEY(was));

    if (call_is(was, "add"))
        return sum_of_parts(c, s, was, now);
    if (!g || g->n < 2)
        return now;
    if (!g->made) {
        const Expr *call = g->at[0].end == g->at[0].call ? now : call_arg(now, 0);

        if (!make_group(c, s, g, call_arg(call, 0)))
            return NULL;
    }
    return g->at[place_in(g, was)].value;
}

static const Module *combine_module(Ctx *c, const Module *m, const char *op, bool conv)
{
    Machine       at = machine_of(c->target);
    bool          loops = conv && has_vectors(c->target);
    State         s = {op,
                       conv,
                       loops,
                       limit_combined_macs(&at),
                       map_new(c->scratch),
                       count_uses(c, m),
                       map_new(c->scratch)};
    const Module *now;
    LoopForm      form;

    for (uint32_t i = 0; i < m->nfuncs; i++)
        if (!loops || is_loop(c, m->funcs[i].func, m->funcs[i].name, &form))
            find_siblings(c, &s, m->funcs[i].func);
    now = module_rewrite(c, m, combine, &s);
    return now && now != m ? fold_constant(c, now) : now;
}

const Module *combine_parallel_dense(Ctx *c, const Module *m)
{
    return combine_module(c, m, "nn.dense", false);
}

const Module *combine_parallel_conv2d(Ctx *c, const Module *m)
{
    return combine_module(c, m, "nn.conv2d", true);
}
