/* alter_layout: blocked channels (NCHW8c) for convolutions and what lies between.
 *
 *   %0 = nn.conv2d(%x, const @w);  %1 = nn.relu(%0);  nn.softmax(%1)
 *     -> %0 = layout_transform(%x, "NCHW", "NCHW8c");  %1 = nn.conv2d(%0, const @w, "NCHW8c");
 *        %2 = nn.relu(%1);  %3 = layout_transform(%2, "NCHW8c", "NCHW");  nn.softmax(%3)
 *
 * A block of channels lies together in memory, so that a convolution loads, multiplies and stores
 * whole vectors, or what an instruction of warps takes, whatever its image size.  Which values are
 * blocked, and how widely, is chosen for the whole function first (layout_choice.c).  Then every
 * value is made in its layout, and in others when first asked for: transforms appear only where two
 * kinds meet, and where height and width are 1 they are reshapes.
 *
 * Channels that the block does not divide leave surplus lanes, which hold zero (docs/ir/te.md).
 * The class of the target says how wide blocks may be; where it has none, nothing changes.
 * Weights stay OIHW: packing them is a schedule step.  Cost: the choice, and one walk. */
#include "passes/graph/graph.h"

#include <string.h>

/* The versions of one value, by layout; NULL: not made yet. */
typedef struct {
    const Expr *in[MAX_WIDTHS];
} Value;

typedef struct {
    Ctx       *c;
    LayoutPlan plan;
    Map       *values; /* node of the old graph to Value */
} Alter;

static Value *value_of(Alter *a, const Expr *e)
{
    return map_get(a->values, PTR_KEY(e));
}

/* ---- from one version to another ------------------------------------------------------------- */

static const char *layout_text(const Alter *a, uint32_t layout)
{
    return layout ? intern_printf(a->c->strings, "NCHW%uc", a->plan.width[layout]) : "NCHW";
}

static const Expr *transform(Alter *a, const Expr *x, const Type *plain, uint32_t from, uint32_t to,
                             Loc loc)
{
    Arith                *A = a->c->arith;
    int64_t               dims[4], ch, b = to ? a->plan.width[to] : 1;
    LayoutTransformAttrs *attrs;
    bool                  surplus;

    if (!image_dims(plain, dims))
        BUG("a value without channels");
    ch = dims[1];
    surplus = from && ch % a->plan.width[from];
    if (!surplus && ch % b == 0 && dims[2] == 1 && dims[3] == 1) { /* the same bytes */
        const Idx *blocked[5] = {plain->dims[0], idx_const(A, ch / b), plain->dims[2],
                                 plain->dims[3], idx_const(A, b)};

        return make_reshape_to(a->c, x, to ? 5 : 4, to ? blocked : plain->dims, loc);
    }
    attrs = ATTRS_NEW(a->c, LayoutTransformAttrs);
    attrs->src_layout = layout_text(a, from);
    attrs->dst_layout = layout_text(a, to);
    if (surplus)
        attrs->channels = ch;
    return make1(a->c, "layout_transform", x, attrs, loc);
}

/* The value in a layout; tuples are put together when asked for, of fields in it. */
static const Expr *version(Alter *a, const Expr *e, uint32_t layout)
{
    Value   *v = value_of(a, e);
    uint32_t from = 0;

    if (v->in[layout])
        return v->in[layout];
    if (e->kind == EXPR_TUPLE) {
        const Expr **fields = NEW_ARRAY(a->c->scratch, const Expr *, e->nkids + 1);
        bool         changed = false;

        for (uint32_t i = 0; i < e->nkids; i++) {
            if (!(fields[i] = version(a, e->kids[i], layout)))
                return NULL;
            changed |= fields[i] != e->kids[i];
        }
        return v->in[layout] = changed ? expr_with_kids(a->c, e, fields) : e;
    }
    while (from < MAX_WIDTHS && !v->in[from])
        from++;
    if (from == MAX_WIDTHS)
        BUG("a value without versions");
    return v->in[layout] = transform(a, v->in[from], e->type, from, layout, e->loc);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* A convolution that sums all lanes of its operand's blocks. */
static const Expr *sum_blocks(Alter *a, const Expr *conv)
{
    Conv2dAttrs *whole = DUP_ARRAY(a->c->arena, ATTRS_OF(Conv2dAttrs, conv), 1);
    Conv2d       v;

    if (!conv2d_of(a->c, conv, &v) || v.groups > 1 || v.group_in % v.in_block == 0)
        return conv;
    whole->algorithm = intern(a->c->strings, "blocks");
    return expr_call(a->c, call_op(conv), call_nargs(conv), conv->kids + 1, whole, conv->loc);
}

/* The call on blocked data, or NULL. */
static const Expr *block_call(Alter *a, const Expr *e, Layouts l)
{
    const Expr **args = NEW_ARRAY(a->c->scratch, const Expr *, call_nargs(e) + 1), *now;
    uint32_t     errors = diag_errors(a->c->diags);

    for (uint32_t i = 0; i < call_nargs(e); i++) {
        const Expr *x = call_arg(e, i);
        bool        data =
            call_is(e, "nn.conv2d") ? i == 0 : x->kind == EXPR_TUPLE || is_blocked_operand(e, x);

        if (!(args[i] = version(a, x, data ? l.in : 0)))
            return NULL;
    }
    now = call_op(e)->block(a->c, e, args, a->plan.width[l.out]);
    if (!now && diag_errors(a->c->diags) != errors)
        diag_drop(a->c->diags, errors); /* a refusal, not a fault of the model */
    return now && a->plan.whole && l.in && call_is(e, "nn.conv2d") ? sum_blocks(a, now) : now;
}

static bool alter_node(Alter *a, const Expr *e)
{
    Value         *v = NEW(a->c->scratch, Value);
    const Layouts *l = map_get(a->plan.of, PTR_KEY(e));
    const Expr   **kids;
    bool           changed = false;

    map_put(a->values, PTR_KEY(e), v);
    if (e->kind == EXPR_TUPLE || (l && l->out && (v->in[l->out] = block_call(a, e, *l))))
        return true;
    kids = NEW_ARRAY(a->c->scratch, const Expr *, e->nkids + 1);
    for (uint32_t i = 0; i < e->nkids; i++) {
        if (!(kids[i] = version(a, e->kids[i], 0)))
            return false;
        changed |= kids[i] != e->kids[i];
    }
    v->in[0] = changed ? expr_with_kids(a->c, e, kids) : e;
    return v->in[0] != NULL;
}

static const Expr *alter_func(Ctx *c, const Expr *func)
{
    Alter    a = {c, choose_layouts(c, func), map_new(c->scratch)};
    ExprList list = expr_post_order(c, func);

    for (uint32_t i = 0; i < list.n; i++)
        if (!alter_node(&a, list.at[i]))
            return NULL;
    return version(&a, func, 0);
}

const Module *alter_layout(Ctx *c, const Module *m)
{
    GlobalDef *defs = NEW_ARRAY(c->scratch, GlobalDef, m->nfuncs ? m->nfuncs : 1);
    bool       changed = false;

    if (!c->target)
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
