/* fold_scale_axis: scales and shifts per channel disappear into weights and biases.
 *
 *   %0 = nn.conv2d(%x, const @w);  %1 = multiply(%0, const @s);  %2 = add(%1, const @t)
 *     -> %0 = nn.conv2d(%x, const @w);  %1 = nn.bias_add(%0, const @t)      with @w scaled by @s
 *
 * This is what batch normalization after a convolution is once simplify_inference has opened it: it
 * vanishes.  A chain  [bias_add] (conv | dense)  of single uses is kept in the form  w, b  while
 * multiply, divide, add and subtract by constants per channel are folded into it; the new weights
 * are calls on constants, which fold_constant, run at the end, evaluates.  A scale before a relu or
 * a padded convolution cannot be folded and stays one multiply and one add.
 *
 *   nn.dense(add(multiply(nn.relu(%0), const @s), const @t), const @v)
 *     -> nn.bias_add(nn.dense(nn.relu(%0), const @v'), const @b)            @v' = @v @s, @b = @v @t
 *
 * Behind an activation they go into the dense layers that read them, where nothing else does, or
 * one call cell by cell, whose kernel has them then; some exporters do so, too.  A scale that
 * stands within a product stands behind it.
 *
 * Rounding changes, as the products are formed in another order.  Cost: one rewrite. */
#include "passes/graph/graph.h"

#include <string.h>

/* How an operator's weight is laid out. */
typedef struct {
    const char *op;
    uint32_t    weight_axis; /* of the output channel in the weight, from the front ... */
    bool        last;        /* channel of the result: last dimension, else dimension 1 */
} Linear;

static const Linear linears[] = {
    {"nn.conv1d", 0, false}, {"nn.conv2d", 0, false}, {"nn.conv2d_transpose", 1, false},
    {"nn.dense", 0, true},   {"nn.matmul", 1, true},
};

static const Linear *linear_of(const Expr *e)
{
    const Op *op = call_op(e);

    for (size_t i = 0; op && i < COUNT(linears); i++)
        if (!strcmp(op->text, linears[i].op))
            return &linears[i];
    return NULL;
}

/* The operator, if its output channels are one axis of a constant weight. */
static const Linear *foldable(const Expr *e, uint32_t *axis)
{
    const Linear *l = linear_of(e);

    if (!l || !expr_has_shape(e) || !is_float(e) || !is_constant(call_arg(e, 1)) ||
        !expr_is_tensor(call_arg(e, 1)) || !dtype_eq(e->type->dtype, call_arg(e, 1)->type->dtype))
        return NULL;
    *axis = l->weight_axis;
    if (call_is(e, "nn.conv2d_transpose") && ATTRS_OF(Conv2dTransposeAttrs, e)->groups != 1)
        return NULL;
    if (call_is(e, "nn.conv2d") && strcmp(ATTRS_OF(Conv2dAttrs, e)->data_layout, "NCHW") != 0)
        return NULL;
    if (call_is(e, "nn.matmul")) {
        const MatmulAttrs *a = ATTRS_OF(MatmulAttrs, e);

        *axis = a->transpose_b ? 0 : 1;
    }
    return l;
}

/* A chain: bias_add of a foldable call, or the call alone. */
typedef struct {
    const Expr   *call, *bias; /* bias NULL: none */
    const Linear *l;
    uint32_t      axis;    /* of the channel in the weight */
    uint32_t      channel; /* ... and in the result */
    Loc           bias_loc;
} Chain;

typedef struct {
    const Map *uses;
    Map       *layers, *cells; /* ... by dense layers as their input, and cell by cell */
} State;

static bool chain_of(const State *s, const Expr *was, const Expr *now, Chain *out)
{
    *out = (Chain){0};
    if (uses_of(s->uses, was) != 1)
        return false;
    if (call_is(now, "nn.bias_add") && is_constant(call_arg(now, 1))) {
        const Expr *inner = call_arg(now, 0);

        if (!(out->l = foldable(inner, &out->axis)))
            return false;
        out->call = inner;
        out->bias = call_arg(now, 1);
        out->bias_loc = now->loc;
        out->channel = out->l->last ? now->type->n - 1 : 1;
        /* The convolution must have no other use: only the one below this bias_add. */
        if (axis_from_front(ATTRS_OF(BiasAddAttrs, now)->axis, now->type->n) != out->channel)
            return false;
        return was->kind != EXPR_CALL || !call_is(was, "nn.bias_add") ||
               uses_of(s->uses, call_arg(was, 0)) == 1;
    }
    if (!(out->l = foldable(now, &out->axis)))
        return false;
    out->call = now;
    out->channel = out->l->last ? now->type->n - 1 : 1;
    return true;
}

/* A constant that is one number, or one for each channel of a result of type t, as [C] or [1]. */
static const Expr *per_channel(Ctx *c, const Expr *k, const Type *t, uint32_t channel)
{
    int64_t n = 1, v, want;

    if (!is_constant(k) || !expr_is_tensor(k) || k->type->n > t->n || !type_dim(t, channel, &want))
        return NULL;
    for (uint32_t i = 0; i < k->type->n; i++) {
        if (!type_dim(k->type, i, &v))
            return NULL;
        if (v == 1)
            continue;
        if (t->n - k->type->n + i != channel || v != want)
            return NULL;
        n = v;
    }
    if (k->type->n == 1)
        return k;
    return make_reshape(c, k, 1, &n, k->loc);
}

/* [C] or [1] shaped so that it multiplies along `axis` of the weight. */
static const Expr *along_weight(Ctx *c, const Expr *k, const Type *weight, uint32_t axis)
{
    int64_t dims[8], n;

    if (weight->n > 8 || !type_dim(k->type, 0, &n))
        return NULL;
    for (uint32_t i = 0; i < weight->n; i++)
        dims[i] = i == axis ? n : 1;
    return make_reshape(c, k, weight->n, dims, k->loc);
}

/* [1] as [C], for a bias. */
static const Expr *whole_bias(Ctx *c, const Expr *k, const Type *t, uint32_t channel)
{
    BroadcastToAttrs *a;
    int64_t           n, want;

    if (!type_dim(k->type, 0, &n) || !type_dim(t, channel, &want))
        return NULL;
    if (n == want)
        return k;
    a = ATTRS_NEW(c, BroadcastToAttrs);
    a->shape = dims_of_i64(c, &want, 1);
    return make1(c, "broadcast_to", k, a, k->loc);
}

static const Expr *with_weight(Ctx *c, const Expr *call, const Expr *weight)
{
    const Expr *args[2] = {call_arg(call, 0), weight};

    return weight ? expr_call(c, call_op(call), 2, args, call->u.attrs, call->loc) : NULL;
}

static const Expr *with_bias(Ctx *c, const Chain *k, const Expr *call, const Expr *bias, Loc loc)
{
    BiasAddAttrs *a;

    if (!bias || !call)
        return call;
    a = ATTRS_NEW(c, BiasAddAttrs);
    a->axis = k->l->last ? -1 : 1;
    return make2(c, "nn.bias_add", call, bias, a, loc.file ? loc : call->loc);
}

/* chain * k or chain / k: into the weight, and into the bias if there is one. */
static const Expr *scale(Ctx *c, const Chain *k, const Expr *by, const char *op, Loc loc)
{
    const Expr *weight = call_arg(k->call, 1);
    const Expr *w = make2(c, op, weight, along_weight(c, by, weight->type, k->axis), NULL, loc);
    const Expr *b = k->bias ? make2(c, op, k->bias, by, NULL, loc) : NULL;

    if (!w || (k->bias && !b))
        return NULL;
    return with_bias(c, k, with_weight(c, k->call, w), b, k->bias_loc);
}

/* chain + k or chain - k: into the bias. */
static const Expr *shift(Ctx *c, const Chain *k, const Expr *by, const char *op, Loc loc)
{
    const Expr *b = whole_bias(c, by, k->call->type, k->channel);

    if (b && k->bias)
        b = make2(c, op, k->bias, b, NULL, loc);
    else if (b && !strcmp(op, "subtract"))
        b = make1(c, "negative", b, NULL, loc);
    return b ? with_bias(c, k, k->call, b, k->bias ? k->bias_loc : loc) : NULL;
}

/* bias_add of a bias_add. */
static const Expr *fold_bias(Ctx *c, const Chain *k, const Expr *now)
{
    const Expr *b = make2(c, "add", k->bias, call_arg(now, 1), NULL, now->loc);

    return b ? with_bias(c, k, k->call, b, k->bias_loc) : NULL;
}

/* ---- behind an activation ------------------------------------------------------------------- */

enum { MAX_DEPTH = 8 };

/* Is it made cell by cell of one linear call, and more than that call with its bias? */
static bool is_activation(const Expr *e)
{
    const Expr *stack[MAX_DEPTH], *linear = NULL;
    uint32_t    n = 0, steps = 0, axis;
    bool        any = false;

    for (stack[n++] = e; n; steps++) {
        const Op *op;

        e = stack[--n];
        op = call_op(e);
        if (is_constant(e))
            continue;
        if (foldable(e, &axis)) {
            if (linear && linear != e)
                return false;
            linear = e;
            continue;
        }
        if (!op || (op->fusion != FUSE_ELEMWISE && op->fusion != FUSE_BROADCAST) ||
            n + call_nargs(e) > MAX_DEPTH || steps > 2 * MAX_DEPTH)
            return false;
        any |= !call_is(e, "nn.bias_add");
        for (uint32_t i = 0; i < call_nargs(e); i++)
            stack[n++] = call_arg(e, i);
    }
    return linear && any;
}

/* x * by + plus, a number for each cell of the last dimension; NULL: there is none. */
typedef struct {
    const Expr *x, *by, *plus;
} Affine;

static bool affine_of(Ctx *c, const Expr *e, Affine *out)
{
    uint32_t last = expr_has_shape(e) && e->type->n ? e->type->n - 1 : 0;

    *out = (Affine){.x = e};
    if (!last || !is_float(e))
        return false;
    for (uint32_t step = 0; step < 2; step++) {
        const Expr *now = out->x, *k;
        bool        bias = call_is(now, "nn.bias_add"), sum = bias || call_is(now, "add");

        if ((sum && step) || (!sum && !call_is(now, "multiply")) ||
            (bias && axis_from_front(ATTRS_OF(BiasAddAttrs, now)->axis, last + 1) != last))
            break;
        for (uint32_t i = 0; i < (bias ? 1u : 2u) && out->x == now; i++)
            if ((k = per_channel(c, call_arg(now, 1 - i), now->type, last)) &&
                call_arg(now, i)->type == now->type) {
                out->x = call_arg(now, i);
                *(sum ? &out->plus : &out->by) = k;
            }
        if (!sum || out->x == now)
            break;
    }
    return out->x != e && is_activation(out->x);
}

static bool is_cellwise(const Expr *e)
{
    const Op *op = call_op(e);

    return op && (op->fusion == FUSE_ELEMWISE || op->fusion == FUSE_BROADCAST);
}

/* How often each node is read by layers, and cell by cell. */
static void count_readers(Ctx *c, const Module *m, State *s)
{
    for (uint32_t i = 0; i < m->nfuncs; i++) {
        ExprList list = expr_post_order(c, m->funcs[i].func);

        for (uint32_t k = 0; k < list.n; k++) {
            const Expr *e = list.at[k];
            Map        *of = call_is(e, "nn.dense") || call_is(e, "nn.matmul") ? s->layers
                             : is_cellwise(e)                                  ? s->cells
                                                                               : NULL;

            for (uint32_t j = 1; of && j < (of == s->layers ? 2 : e->nkids); j++)
                map_put(of, PTR_KEY(e->kids[j]),
                        (void *)((uintptr_t)map_get(of, PTR_KEY(e->kids[j])) + 1));
        }
    }
}

/* A layer of what is scaled and shifted: one of what that is made of. */
static const Expr *fold_input(Ctx *c, const State *s, const Expr *was, const Expr *e)
{
    bool          dense = call_is(e, "nn.dense");
    const Expr   *w = call_arg(e, 1), *args[2], *shift = NULL;
    uint32_t      in;
    Affine        a;
    BiasAddAttrs *bias;
    int64_t       n;
    uint32_t      cells = uses_of(s->cells, call_arg(was, 0));

    if (cells > 1 ||
        uses_of(s->layers, call_arg(was, 0)) + cells != uses_of(s->uses, call_arg(was, 0)))
        return e;
    if (!foldable(e, &in) || w->type->n != 2 || (!dense && ATTRS_OF(MatmulAttrs, e)->transpose_a) ||
        !affine_of(c, call_arg(e, 0), &a) ||
        !type_dim(w->type, in, &n)) /* in: of the output channels */
        return e;
    if (a.plus) {
        int64_t row[2] = {1, 0};

        args[0] = whole_bias(c, a.plus, call_arg(e, 0)->type, call_arg(e, 0)->type->n - 1);
        if (!args[0] || !type_dim(args[0]->type, 0, &row[1]))
            return NULL;
        args[0] = make_reshape(c, args[0], 2, row, e->loc);
        args[1] = w;
        shift = args[0] ? expr_call(c, call_op(e), 2, args, e->u.attrs, e->loc) : NULL;
        if (!shift || !(shift = make_reshape(c, shift, 1, &n, e->loc)))
            return NULL;
    }
    if (a.by)
        w = make2(c, "multiply", w, along_weight(c, a.by, w->type, 1 - in), NULL, e->loc);
    args[0] = a.x;
    args[1] = w;
    e = w ? expr_call(c, call_op(e), 2, args, e->u.attrs, e->loc) : NULL;
    bias = ATTRS_NEW(c, BiasAddAttrs);
    bias->axis = -1;
    return shift && e ? make2(c, "nn.bias_add", e, shift, bias, e->loc) : e;
}

/* x * (y * k) of numbers for the last dimension: the numbers last. */
static const Expr *numbers_last(Ctx *c, const State *s, const Expr *was, const Expr *e)
{
    for (uint32_t i = 0; i < 2; i++) {
        const Expr *inner = call_arg(e, i), *x = call_arg(e, 1 - i), *k;
        int64_t     n;

        if (!call_is(inner, "multiply") || x->type != e->type || inner->type != e->type ||
            !is_float(e) || uses_of(s->uses, call_arg(was, i)) != 1 || e->type->n < 2)
            continue;
        for (uint32_t j = 0; j < 2; j++) {
            k = per_channel(c, call_arg(inner, j), e->type, e->type->n - 1);
            if (!k || !type_dim(k->type, 0, &n) || n == 1 ||
                call_arg(inner, 1 - j)->type != e->type)
                continue;
            x = make2(c, "multiply", x, call_arg(inner, 1 - j), NULL, inner->loc);
            return make2(c, "multiply", x, call_arg(inner, j), NULL, e->loc);
        }
    }
    return e;
}

static const Expr *fold(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    const State *s = user;
    const char  *op = call_op(now) ? call_op(now)->text : "";
    bool         product = !strcmp(op, "multiply"), quotient = !strcmp(op, "divide");
    bool         sum = !strcmp(op, "add"), difference = !strcmp(op, "subtract");
    Chain        k;

    if (!call_op(now) || call_nargs(now) != 2 || !now->type || was->nkids != now->nkids)
        return now;
    if (!strcmp(op, "nn.bias_add")) {
        if (is_constant(call_arg(now, 1)) && chain_of(s, call_arg(was, 0), call_arg(now, 0), &k) &&
            k.bias && axis_from_front(ATTRS_OF(BiasAddAttrs, now)->axis, now->type->n) == k.channel)
            return fold_bias(c, &k, now);
        return now;
    }
    if (!strcmp(op, "nn.dense") || !strcmp(op, "nn.matmul"))
        return fold_input(c, s, was, now);
    if (!product && !quotient && !sum && !difference)
        return now;
    for (uint32_t i = 0; i < (product || sum ? 2u : 1u); i++) {
        const Expr *by;

        if (!chain_of(s, call_arg(was, i), call_arg(now, i), &k) ||
            type_plain(c, now->type) != type_plain(c, call_arg(now, i)->type))
            continue;
        if (!(by = per_channel(c, call_arg(now, 1 - i), now->type, k.channel)))
            continue;
        return product || quotient ? scale(c, &k, by, op, now->loc)
                                   : shift(c, &k, by, op, now->loc);
    }
    return product ? numbers_last(c, s, was, now) : now;
}

const Module *fold_scale_axis(Ctx *c, const Module *m)
{
    State         s = {count_uses(c, m), map_new(c->scratch), map_new(c->scratch)};
    const Module *now;

    count_readers(c, m, &s);
    now = module_rewrite(c, m, fold, &s);

    return now && now != m ? fold_constant(c, now) : now;
}
