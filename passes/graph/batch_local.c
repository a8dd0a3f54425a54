/* Which calls work on each image of a batch alone?
 *
 *   nn.conv2d(%x, const @w)  yes, %x is cut     nn.softmax(%x, axis=0)  no     add(%x, %b[8])  yes
 *
 * The answer is read off the call's formula: with n the first axis of the result, every definition
 * that has n as its first axis may load others at [n, ..], whose first axis is n too, or at indices
 * without n; n may stand nowhere else. */
#include "passes/graph/graph.h"

#include <string.h>

typedef enum { UNSEEN, WHOLE, CUT, MIXED } Role;

typedef struct {
    const TeFunc *te;
    TensorList    defs;
    Role         *param, *def;
    const Atom   *n; /* of the definition that is looked at; NULL: it is read whole */
    bool          bad;
} Local;

static Role *role_of(Local *l, const Buffer *b)
{
    for (uint32_t i = 0; i < l->te->nparams; i++)
        if (l->te->params[i]->buffer == b)
            return &l->param[i];
    for (uint32_t i = 0; i < l->defs.n; i++)
        if (l->defs.at[i]->buffer == b)
            return &l->def[i];
    return NULL;
}

static void see(Local *l, const Buffer *b, Role now)
{
    Role *r = role_of(l, b);

    if (!r)
        l->bad = true;
    else
        *r = *r == UNSEEN || *r == now ? now : MIXED;
}

static void look_at(void *user, const Prim *p)
{
    Local      *l = user;
    const Atom *first;

    if (p->kind == PRIM_LOAD) {
        const LoadData *d = &p->u.load;
        bool            cut = l->n && d->n && idx_is_atom(d->index[0], &first) && first == l->n;

        for (uint32_t i = cut; l->n && i < d->n; i++)
            l->bad |= idx_uses(d->index[i], l->n);
        see(l, d->buffer, cut ? CUT : WHOLE);
    } else if (l->n && (p->kind == PRIM_INDEX || p->kind == PRIM_RAMP || p->kind == PRIM_CASE)) {
        l->bad |= idx_uses(p->u.index, l->n);
    }
}

/* From the results backwards. */
static bool formula_is_local(Ctx *c, Local *l)
{
    TirVisit v = {.user = l, .prim = look_at};

    l->defs = te_defs(c, l->te);
    l->param = NEW_ARRAY(c->scratch, Role, l->te->nparams + 1);
    l->def = NEW_ARRAY(c->scratch, Role, l->defs.n + 1);
    for (uint32_t i = 0; i < l->te->nouts; i++)
        see(l, l->te->outs[i]->buffer, CUT);
    for (uint32_t i = l->defs.n; i-- > 0 && !l->bad;) {
        const Tensor *t = l->defs.at[i];

        if (t->kind == TENSOR_EXTERN || t->kind == TENSOR_SCAN || l->def[i] == MIXED ||
            (l->def[i] == CUT && !t->naxis))
            return false;
        l->n = l->def[i] == CUT ? t->axis[0] : NULL;
        prim_visit(t->body, &v);
    }
    return !l->bad;
}

/* The type with n in front instead of `was`; NULL: it has something else there, or another
 * dimension that is no number. */
static const Type *with_images(Ctx *c, const Type *t, const Idx *was, const Idx *n)
{
    if (!t || t->kind != TYPE_TENSOR || !t->n || t->dims[0] != was)
        return NULL;
    for (uint32_t i = 1; i < t->n; i++)
        if (!idx_is_const(t->dims[i], NULL))
            return NULL;
    return type_with_first(c, t, n);
}

static bool same_but_images(Ctx *c, const Type *t, const Type *now, const Idx *was, const Idx *n)
{
    if (!t || !now || t->kind != now->kind)
        return false;
    if (t->kind == TYPE_TENSOR)
        return with_images(c, t, was, n) == now;
    if (t->kind != TYPE_TUPLE || t->n != now->n)
        return false;
    for (uint32_t i = 0; i < t->n; i++)
        if (!same_but_images(c, t->parts[i], now->parts[i], was, n))
            return false;
    return true;
}

const Expr *batch_resized(Ctx *c, const Expr *e, const Expr *const *kids, const Idx *was,
                          int64_t images)
{
    uint32_t    errors = diag_errors(c->diags);
    const Idx  *n = idx_const(c->arith, images);
    const Expr *now;

    if (call_is(e, "reshape") && ATTRS_OF(ReshapeAttrs, e)->newshape.n &&
        ATTRS_OF(ReshapeAttrs, e)->newshape.at[0] == was) {
        ReshapeAttrs *a = ATTRS_COPY(c, ReshapeAttrs, e);
        const Idx   **to = DUP_ARRAY(c->arena, a->newshape.at, a->newshape.n);

        to[0] = n;
        a->newshape.at = to;
        now = expr_call(c, call_op(e), e->nkids - 1, kids + 1, a, e->loc);
    } else {
        now = expr_with_kids(c, e, kids);
    }
    if (!now)
        diag_drop(c->diags, errors);
    return now && same_but_images(c, e->type, now->type, was, n) ? now : NULL;
}

/* A fresh variable for an operand, or a tuple of them, for one image where it can be cut. */
static const Expr *variable(Ctx *c, const Expr *like, const Idx *n, bool one)
{
    const Type *t = like->type, *cut;
    const Idx  *image = idx_const(c->arith, 1);

    if (t->kind == TYPE_TUPLE) {
        const Expr **fields = NEW_ARRAY(c->scratch, const Expr *, t->n + 1);
        for (uint32_t i = 0; i < t->n; i++) {
            cut = one ? with_images(c, t->parts[i], n, image) : NULL;
            fields[i] = expr_var(c, "x", cut ? cut : t->parts[i], like->loc);
        }
        return expr_tuple(c, t->n, fields, like->loc);
    }
    cut = one ? with_images(c, t, n, image) : NULL;
    return expr_var(c, "x", cut ? cut : t, like->loc);
}

/* The call alone, as a function that is made a formula. */
static const TeFunc *formula(Ctx *c, const Expr *call)
{
    const Expr **kids = DUP_ARRAY(c->scratch, call->kids, call->nkids);
    VEC(const Expr *) params = {0};
    const Expr *body, *f;

    for (uint32_t i = 1; i < call->nkids; i++) {
        int64_t elems = 0;
        if (kids[i]->kind == EXPR_CONST && type_elems(kids[i]->type, &elems) && elems == 1)
            continue; /* a number of the formula */
        kids[i] = variable(c, kids[i], NULL, false);
        for (uint32_t k = 0; kids[i]->kind == EXPR_TUPLE && k < kids[i]->nkids; k++)
            vec_push(c->scratch, &params, kids[i]->kids[k]);
        if (kids[i]->kind == EXPR_VAR)
            vec_push(c->scratch, &params, kids[i]);
    }
    if (!(body = expr_with_kids(c, call, kids)) ||
        !(f = expr_func(c, params.n, params.at, body, (FuncData){.primitive = true}, call->loc)))
        return NULL;
    return te_of_func(c, f, NULL, false, "formula");
}

bool batch_local(Ctx *c, const Expr *call, const Idx *n, bool *cut)
{
    uint32_t     errors = diag_errors(c->diags), param = 0;
    Local        l = {0};
    const Expr **kids = DUP_ARRAY(c->scratch, call->kids, call->nkids);

    if (!call_op(call) || !call_op(call)->compute ||
        !same_but_images(c, call->type, call->type, n, n))
        return false;
    if (!(l.te = formula(c, call))) {
        diag_drop(c->diags, errors);
        return false;
    }
    if (!formula_is_local(c, &l))
        return false;
    for (uint32_t i = 0; i < call_nargs(call); i++) {
        const Expr *a = call_arg(call, i);
        int64_t     elems = 0;
        uint32_t    fields = a->type->kind == TYPE_TUPLE ? a->type->n : 1;

        cut[i] = false;
        if (a->kind == EXPR_CONST && type_elems(a->type, &elems) && elems == 1)
            continue;
        for (uint32_t k = 0; k < fields; k++, param++) {
            if (l.param[param] == MIXED || (k && cut[i] != (l.param[param] == CUT)))
                return false;
            cut[i] = l.param[param] == CUT;
        }
        kids[i + 1] = cut[i] ? variable(c, a, n, true) : a;
        if (cut[i] && a->kind == EXPR_CONST)
            return false;
    }
    return batch_resized(c, call, kids, n, 1) != NULL;
}
