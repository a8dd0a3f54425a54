/* alter_layout: blocked channels (NCHW8c) for convolutions and what lies between.
 *
 *   %0 = nn.conv2d(%x, const @w);  %1 = nn.relu(%0);  nn.softmax(%1)
 *     -> %0 = layout_transform(%x, "NCHW", "NCHW8c");  %1 = nn.conv2d(%0, const @w, "NCHW8c");
 *        %2 = nn.relu(%1);  %3 = layout_transform(%2, "NCHW8c", "NCHW");  nn.softmax(%3)
 *
 * A vector of channels lies together in memory, so that a convolution loads, multiplies and stores
 * whole vectors whatever its image size.  Every value has a plain and a blocked version, each made
 * when first asked for.  A convolution with a vector or more of channels asks for blocked data;
 * with fewer input channels (the image) it reads plain data and gives blocked ones.  Any other
 * operator is blocked if one of its operands is, provided it can be (`block` in ops.def); the rest
 * asks for plain values.  Transforms appear only where the two kinds meet, and where height and
 * width are 1 they are reshapes.
 *
 * Channels that the block does not divide leave surplus lanes, which hold zero (docs/ir/te.md).
 * The block is the target's vector; without one, or without vectors, nothing changes.  Weights stay
 * OIHW: packing them is a schedule step.  Cost: one walk. */
#include "passes/graph/graph.h"

#include <string.h>

/* The versions of one value. */
typedef struct {
    const Expr *was;
    const Expr *plain;   /* NULL: not made yet */
    const Expr *blocked; /* NULL: none */
} Value;

typedef struct {
    Ctx        *c;
    uint32_t    block;
    const char *layout; /* "NCHW8c" */
    Map        *values; /* node of the old graph to Value */
} Alter;

static Value *value_of(Alter *a, const Expr *e)
{
    return map_get(a->values, PTR_KEY(e));
}

/* ---- from one version to the other ---------------------------------------------------------- */

/* f32, and what quantized networks are made of. */
static bool blocks_well(DType t)
{
    return dtype_eq(t, DT_F32) || dtype_eq(t, DT_U8) || dtype_eq(t, DT_I8) || dtype_eq(t, DT_I32);
}

/* N, C, H, W of a static image; false for other types. */
static bool image_dims(const Type *t, int64_t dims[4])
{
    if (!t || t->kind != TYPE_TENSOR || t->n != 4 || !blocks_well(t->dtype))
        return false;
    for (uint32_t i = 0; i < 4; i++)
        if (!type_dim(t, i, &dims[i]) || dims[i] < 1)
            return false;
    return true;
}

static const Expr *transform(Alter *a, const Expr *x, const int64_t dims[4], bool to_blocked,
                             Loc loc)
{
    int64_t               b = a->block, blocked[5] = {dims[0], dims[1] / b, dims[2], dims[3], b};
    LayoutTransformAttrs *attrs;

    if (dims[1] % b == 0 && dims[2] == 1 && dims[3] == 1) /* the same bytes */
        return to_blocked ? make_reshape(a->c, x, 5, blocked, loc)
                          : make_reshape(a->c, x, 4, dims, loc);
    attrs = ATTRS_NEW(a->c, LayoutTransformAttrs);
    attrs->src_layout = to_blocked ? "NCHW" : a->layout;
    attrs->dst_layout = to_blocked ? a->layout : "NCHW";
    if (!to_blocked && dims[1] % b)
        attrs->channels = dims[1];
    return make1(a->c, "layout_transform", x, attrs, loc);
}

static const Expr *blocked_of(Alter *a, const Expr *e);

/* The plain version; tuples are put together when asked for. */
static const Expr *plain_of(Alter *a, const Expr *e)
{
    Value   *v = value_of(a, e);
    int64_t  dims[4];
    uint32_t i;

    if (v->plain)
        return v->plain;
    if (e->kind == EXPR_TUPLE) {
        const Expr **fields = NEW_ARRAY(a->c->scratch, const Expr *, e->nkids + 1);
        bool         changed = false;

        for (i = 0; i < e->nkids; i++) {
            if (!(fields[i] = plain_of(a, e->kids[i])))
                return NULL;
            changed |= fields[i] != e->kids[i];
        }
        return v->plain = changed ? expr_with_kids(a->c, e, fields) : e;
    }
    if (!v->blocked || !image_dims(e->type, dims))
        BUG("a value without versions");
    return v->plain = transform(a, v->blocked, dims, false, e->loc);
}

/* The blocked version, made if need be; NULL if there can be none. */
static const Expr *blocked_of(Alter *a, const Expr *e)
{
    Value  *v = value_of(a, e);
    int64_t dims[4];

    if (!v->blocked && v->plain && image_dims(e->type, dims))
        v->blocked = transform(a, v->plain, dims, true, e->loc);
    return v->blocked;
}

/* ---- choosing ------------------------------------------------------------------------------- */

/* A convolution's data operand as it should read it; NULL: leave the call plain. */
static const Expr *conv_data(Alter *a, const Expr *e)
{
    const Conv2dAttrs *attrs = ATTRS_OF(Conv2dAttrs, e);
    const Expr        *x = call_arg(e, 0);
    int64_t            in[4], out[4];

    if (strcmp(attrs->data_layout, "NCHW") != 0 || *attrs->out_layout || !image_dims(x->type, in) ||
        !image_dims(e->type, out))
        return NULL;
    /* Few channels out of blocked data: surplus lanes cost less than the way back. */
    if (out[1] < a->block && !value_of(a, x)->blocked)
        return NULL;
    if (in[1] < a->block)
        return attrs->groups == 1 ? plain_of(a, x) : NULL;
    return blocked_of(a, x);
}

/* Fields of a tuple, blocked if at least one of them is already; NULL: leave it plain. */
static const Expr *tuple_data(Alter *a, const Expr *t)
{
    const Expr **fields = NEW_ARRAY(a->c->scratch, const Expr *, t->nkids + 1);
    bool         any = false;

    if (t->kind != EXPR_TUPLE)
        return NULL;
    for (uint32_t i = 0; i < t->nkids; i++)
        any |= value_of(a, t->kids[i])->blocked != NULL;
    for (uint32_t i = 0; i < t->nkids; i++)
        if (!any || !(fields[i] = blocked_of(a, t->kids[i])))
            return NULL;
    return expr_tuple(a->c, t->nkids, fields, t->loc);
}

/* Operands for a blocked call: blocked where there is such a version.  False: the call stays plain.
 */
static bool blocked_args(Alter *a, const Expr *e, const Expr **args)
{
    bool any = false;

    if (call_is(e, "nn.conv2d")) {
        args[0] = conv_data(a, e);
        args[1] = args[0] ? plain_of(a, call_arg(e, 1)) : NULL;
        return args[1] != NULL;
    }
    for (uint32_t i = 0; i < call_nargs(e); i++) {
        const Expr *x = call_arg(e, i);
        Value      *v = value_of(a, x);

        if (x->type && x->type->kind == TYPE_TUPLE)
            args[i] = tuple_data(a, x);
        else
            args[i] = v->blocked;
        any |= args[i] != NULL;
        if (!args[i])
            args[i] = plain_of(a, x);
    }
    return any;
}

/* The call on blocked data, or NULL. */
static const Expr *block_call(Alter *a, const Expr *e)
{
    const Op    *op = call_op(e);
    const Expr **args = NEW_ARRAY(a->c->scratch, const Expr *, call_nargs(e) + 1), *now;
    int64_t      dims[4];
    uint32_t     errors = diag_errors(a->c->diags);

    if (!op || !op->block || !image_dims(e->type, dims) || !blocked_args(a, e, args))
        return NULL;
    now = op->block(a->c, e, args, a->block);
    if (!now && diag_errors(a->c->diags) != errors)
        diag_drop(a->c->diags, errors); /* a refusal, not a fault of the model */
    return now;
}

static bool alter_node(Alter *a, const Expr *e)
{
    Value       *v = NEW(a->c->scratch, Value);
    const Expr **kids;
    bool         changed = false;

    v->was = e;
    map_put(a->values, PTR_KEY(e), v);
    if (e->kind == EXPR_TUPLE || (v->blocked = block_call(a, e)))
        return true;
    kids = NEW_ARRAY(a->c->scratch, const Expr *, e->nkids + 1);
    for (uint32_t i = 0; i < e->nkids; i++) {
        if (!(kids[i] = plain_of(a, e->kids[i])))
            return false;
        changed |= kids[i] != e->kids[i];
    }
    v->plain = changed ? expr_with_kids(a->c, e, kids) : e;
    return v->plain != NULL;
}

static const Expr *alter_func(Ctx *c, const Expr *func)
{
    Alter    a = {c, c->target->vector_bytes / 4, NULL, map_new(c->scratch)};
    ExprList list = expr_post_order(c, func);

    a.layout = intern_printf(c->strings, "NCHW%uc", a.block);
    for (uint32_t i = 0; i < list.n; i++)
        if (!alter_node(&a, list.at[i]))
            return NULL;
    return plain_of(&a, func);
}

const Module *alter_layout(Ctx *c, const Module *m)
{
    GlobalDef *defs = NEW_ARRAY(c->scratch, GlobalDef, m->nfuncs ? m->nfuncs : 1);
    bool       changed = false;

    if (!has_vectors(c))
        return m;
    for (uint32_t i = 0; i < m->nfuncs; i++) {
        defs[i] = m->funcs[i];
        if (!(defs[i].func = alter_func(c, m->funcs[i].func)))
            return NULL;
        changed |= defs[i].func != m->funcs[i].func;
    }
    if (!changed)
        return m;
    /* Operands per channel were blocked by calls on constants; views may follow views. */
    m = fold_constant(c, module_new(c, m, m->nfuncs, defs));
    return m ? simplify_expr(c, m) : NULL;
}
