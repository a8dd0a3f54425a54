/* Views, and what changes a tensor in place.
 *
 *     slice = aten.slice(cache, 1, 2, 3); aten.copy_(slice, x); y = aten.sum(cache)
 *
 * `slice` is a view of `cache`, made by its node.  The copy writes slice, which goes back to its
 * base as a scattered slice; `cache` is then another expression, and what else is a view of it is
 * made anew by its node when it is read.  Where it hangs on strides whether memory is shared
 * (reshape, contiguous), a change of one of both makes the other unreadable: reading it is an
 * error. */
#include "frontends/pytorch/pytorch.h"

#include <string.h>

PtValue pt_tensor_value(Ctx *c, const Expr *e)
{
    PtTensor *t = NEW(c->arena, PtTensor);

    t->e = e;
    return (PtValue){.t = t};
}

static const Expr *made_anew(PtNode *n, PtTensor *t, const PtTensor *base)
{
    PtNode   m = pt_node(n->im, t->made);
    PtValue *v = m.out;

    m.self = base;
    if (!pt_convert(&m))
        return NULL;
    if (v->list)
        v = t->out < v->n ? &v->at[t->out] : NULL;
    return v && v->t ? v->t->e : NULL;
}

/* The way up from a view may be long: a stack, no recursion. */
const Expr *pt_read(PtNode *n, PtTensor *t)
{
    VEC(PtTensor *) way = {0};

    for (PtTensor *x = t; x; x = x->maybe ? NULL : x->base)
        vec_push(n->b.c->scratch, &way, x);
    for (uint32_t i = way.n; i-- > 0;) {
        PtTensor *x = way.at[i];

        if (x->spoilt || (x->maybe && x->of_base != x->base->version))
            return pt_error(n, E_UNSUPPORTED,
                            "it reads a tensor that was changed in place by "
                            "another name, and may be a copy of it or not");
        if (!x->base || x->of_base == x->base->version)
            continue;
        if (!(x->e = made_anew(n, x, x->base)))
            return NULL;
        x->of_base = x->base->version;
        x->version++;
    }
    return t->e;
}

/* Axes that undo the order of a permutation. */
static const Expr *permuted_back(PtNode *n, const PtOp *made, const Expr *e)
{
    PtNode  m = pt_node(n->im, made);
    int64_t axes[MAX_RANK], back[MAX_RANK];
    Ints    v;

    if (!pt_ints(&m, "dims", &v) || !pt_axes(&m, v, expr_rank(e), axes))
        return NULL;
    for (uint32_t i = 0; i < v.n; i++)
        back[axes[i]] = i;
    return build_transpose(&n->b, e, v.n, back);
}

/* The base of t, of which t is e. */
static const Expr *put_back(PtNode *n, PtTensor *t, const Expr *base, const Expr *e)
{
    PtNode   m = pt_node(n->im, t->made);
    PtTensor changed = *t;

    if (t->cells != PT_REAL && t->made->row->alias != RESHAPED)
        return pt_error(n, E_UNSUPPORTED, "it changes a part of what is complex or quantized");
    changed.e = e;
    m.self = &changed;
    switch (t->made->row->alias) {
    case RESHAPED: return build_reshape_to(&n->b, e, expr_rank(base), expr_forms(base).at);
    case SWAPPED: return pt_convert(&m) ? m.out->t->e : NULL;
    case PERMUTED: return permuted_back(n, t->made, e);
    case SLICED: return pt_scattered(&m, true, base, e);
    case SELECTED: return pt_scattered(&m, false, base, e);
    case PLAIN:
    case MAYBE:
    case VIEW: break;
    }
    return pt_error(n, E_UNSUPPORTED, "it changes what %s '%s' is a view of", t->made->target,
                    t->made->name);
}

bool pt_becomes_state(PtImport *im, const char *name)
{
    uint64_t key = PTR_KEY(name);

    if (!im->found || (map_get(im->states, key) && !map_get(im->found, key)))
        return false;
    map_put(im->found, key, im);
    map_put(im->states, key, im);
    return true;
}

static bool writable(PtNode *n, const PtTensor *t)
{
    if (t->scope < n->im->scope)
        return pt_error(
            n, E_UNSUPPORTED,
            "it changes a tensor in place where values of the run decide whether it does");
    if (!t->constant)
        return true;
    if (pt_becomes_state(n->im, t->constant))
        return true;
    pt_error(n, E_UNSUPPORTED, "it changes '%s', which the model keeps from run to run",
             t->constant);
    diag_hint(n->b.c->diags, "make it an input and an output of forward(): --state joins them");
    return false;
}

static void spoil(PtTensor *t)
{
    for (; t; t = t->base)
        t->spoilt = true;
}

bool pt_write(PtNode *n, PtTensor *t, const Expr *e)
{
    for (; e; t = t->base) {
        const Expr *base;

        if (!writable(n, t))
            return false;
        if (t->base && t->maybe) {
            for (const PtTensor *x = t->base; x; x = x->base)
                if (!writable(n, x))
                    return false;
            spoil(t->base);
        }
        if (!t->base || t->maybe) {
            t->e = e;
            t->version++;
            return true;
        }
        if (!(base = pt_read(n, t->base)) || !(base = put_back(n, t, base, e)))
            return false;
        t->e = e;
        t->version++;
        t->of_base = t->base->version + 1; /* as it will be */
        e = base;
    }
    return false;
}

static void note_view(PtValue *v, uint32_t out, PtNode *n, PtTensor *base)
{
    if (!v->t || v->t == base)
        return;
    v->t->base = base;
    v->t->made = n->p;
    v->t->out = out;
    v->t->of_base = base->version;
    v->t->maybe = n->p->row->alias == MAYBE;
}

void pt_note_views(PtNode *n)
{
    PtValue *first;

    if (n->p->row->alias == PLAIN || !n->p->nin || n->p->in[0].kind != PT_TENSOR ||
        !(first = pt_value_of(n->im, &n->p->in[0])) || !first->t)
        return;
    for (uint32_t i = 0; i < n->nout; i++)
        note_view(&n->out[i], i, n, first->t);
    for (uint32_t i = 0; n->nout && n->out->list && i < n->out->n; i++)
        note_view(&n->out->at[i], i, n, first->t);
}
