/* sink_views: rows that are put together for a product stay so in what follows cell by cell.
 *
 *   %1 = nn.bias_add(nn.dense(%0: [1024, 768], const @w), const @b)
 *   add(reshape(%1, newshape=[8, 128, 768]), %x)
 *     -> reshape(add(%1, reshape(%x, newshape=[1024, 768])), newshape=[8, 128, 768])
 *
 * A view between a product and what follows keeps them two kernels; behind all of these it moves
 * nothing.  Such a view puts leading dimensions together or apart and leaves the last one.  It goes
 * behind calls whose other operands are of the same shape (which are seen as the product's), a
 * number, or a number for each cell of the last dimension.  What a bias or a norm of quantized
 * numbers names as its axis has to be that one.
 *
 * Cost: one rewrite. */
#include "passes/graph/graph.h"

#include <string.h>

enum { MAX_IN = 4, MAX_DEPTH = 8 };

static bool is_elementwise(const Op *op)
{
    return op && (op->fusion == FUSE_ELEMWISE || op->fusion == FUSE_BROADCAST);
}

/* The number of cells; NULL: one of the dimensions may be 0, which reshape reads otherwise. */
static const Idx *cells_of(Ctx *c, const Type *t)
{
    const Idx *n = idx_const(c->arith, 1);

    for (uint32_t i = 0; i < t->n; i++) {
        if (t->dims[i]->lo < 1)
            return NULL;
        n = idx_mul(c->arith, n, t->dims[i]);
    }
    return n;
}

/* Other leading dimensions for the same rows. */
static bool same_rows(Ctx *c, const Type *a, const Type *b)
{
    return a->n && b->n && a->dims[a->n - 1] == b->dims[b->n - 1] && cells_of(c, a) &&
           cells_of(c, a) == cells_of(c, b);
}

/* What e shows other rows of, if that is a product or was computed behind one. */
static const Expr *rows_of(Ctx *c, const Map *made, const Expr *e)
{
    const Expr *x = is_view(e) ? call_arg(e, 0) : NULL;

    return x && expr_has_shape(e) && expr_has_shape(x) && map_get(made, PTR_KEY(x)) &&
                   same_rows(c, e->type, x->type)
               ? x
               : NULL;
}

/* Attributes that know no shape, but an axis perhaps, the last one of e. */
static bool attrs_fit(const Expr *e)
{
    const AttrRecord *r = call_op(e)->attrs;

    for (uint32_t i = 0; r && i < r->nfields; i++) {
        const AttrField *f = &r->fields[i];

        if (f->type == ATTR_INTS || f->type == ATTR_DIMS)
            return false;
        if (!strcmp(f->name, "axis")) {
            int64_t axis = *(const int64_t *)((const char *)e->u.attrs + f->offset);
            if (axis_from_front(axis, e->type->n) + 1 != e->type->n)
                return false;
        }
    }
    return true;
}

/* The same attributes, for another number of dimensions. */
static const void *attrs_for(Ctx *c, const Expr *e, uint32_t n)
{
    const AttrRecord *r = call_op(e)->attrs;
    void             *now = r ? arena_dup(c->arena, e->u.attrs, r->size) : NULL;

    for (uint32_t i = 0; r && i < r->nfields; i++)
        if (!strcmp(r->fields[i].name, "axis"))
            *(int64_t *)((char *)now + r->fields[i].offset) = n - 1;
    return now;
}

static const Expr *with_dims(Ctx *c, const Expr *x, uint32_t n, const Idx *const *dims)
{
    const Const *k = x->kind == EXPR_CONST ? x->u.constant : NULL;

    return k ? expr_const(c,
                          const_new(c, k->name, type_tensor(c, x->type->dtype, n, dims), k->data),
                          x->loc)
             : make_reshape_to(c, x, n, dims, x->loc);
}

typedef struct {
    Map       *made; /* products, and what was computed behind one */
    const Map *uses; /* of nodes of the old graph */
} State;

/* How a call's operands are to be: of other rows than they were. */
typedef struct {
    const State *s;
    const Type  *was, *rows;
} To;

static const Expr *beside(Ctx *c, const To *to, const Expr *was, const Expr *x, int depth);

/* The same call of such operands; NULL: one does not go there. */
static const Expr *call_of_rows(Ctx *c, const To *to, const Expr *was, const Expr *e, int depth)
{
    uint32_t    n = call_nargs(e);
    const Expr *args[MAX_IN];

    if (depth == 0 || call_op(was) != call_op(e) || !is_elementwise(call_op(e)) || n > MAX_IN ||
        n != call_nargs(was) || !attrs_fit(e))
        return NULL;
    for (uint32_t i = 0; i < n; i++)
        if (!(args[i] = beside(c, to, call_arg(was, i), call_arg(e, i), depth - 1)))
            return NULL;
    return expr_call(c, call_op(e), n, args, attrs_for(c, e, to->rows->n), e->loc);
}

/* Operand x; what serves nothing else is computed of these rows, too, so that kernels may begin
 * with it. */
static const Expr *beside(Ctx *c, const To *to, const Expr *was, const Expr *x, int depth)
{
    const Expr *now;
    int64_t     v;

    if (!expr_has_shape(x))
        return NULL;
    if (x->type->n <= 1) /* the dimension is the last one here and there */
        return x;
    if (same_dims(x->type, to->was)) {
        while (is_view(x) && expr_has_shape(call_arg(x, 0)) && !same_dims(x->type, to->rows))
            x = call_arg(x, 0);
        if (same_dims(x->type, to->rows))
            return x;
        now = uses_of(to->s->uses, was) == 1 ? call_of_rows(c, to, was, x, depth) : NULL;
        return now ? now : with_dims(c, x, to->rows->n, to->rows->dims);
    }
    for (uint32_t i = 0; i + 1 < x->type->n; i++)
        if (!type_dim(x->type, i, &v) || v != 1)
            return NULL;
    return with_dims(c, x, 1, x->type->dims + x->type->n - 1);
}

/* e of the rows x, seen as e was; e itself if it stays. */
static const Expr *of_rows(Ctx *c, const State *s, const Expr *was, const Expr *e, const Expr *x)
{
    const To    to = {s, e->type, x->type};
    const Expr *now = call_of_rows(c, &to, was, e, MAX_DEPTH);

    if (!now || !same_dims(now->type, x->type))
        return e;
    map_put(s->made, PTR_KEY(now), s->made);
    return make_reshape_to(c, now, e->type->n, e->type->dims, e->loc);
}

/* A view of what was seen otherwise behind these calls. */
static const Expr *view_of(Ctx *c, const Map *made, const Expr *e)
{
    const Expr *x = call_arg(e, 0);

    if (!is_view(x) || !map_get(made, PTR_KEY(call_arg(x, 0))) || !cells_of(c, e->type))
        return e;
    x = call_arg(x, 0);
    return e->type == x->type ? x : make_reshape_to(c, x, e->type->n, e->type->dims, e->loc);
}

static const Expr *sink(Ctx *c, void *user, const Expr *was, const Expr *e)
{
    const State *s = user;
    const Expr  *x;

    if (!call_op(e) || !expr_has_shape(e))
        return e;
    if (is_view(e))
        return view_of(c, s->made, e);
    if (call_op(e)->fusion == FUSE_OUT_FUSABLE)
        map_put(s->made, PTR_KEY(e), s->made);
    if (!is_elementwise(call_op(e)))
        return e;
    for (uint32_t i = 0; i < call_nargs(e); i++)
        if (map_get(s->made, PTR_KEY(call_arg(e, i))) && same_dims(call_arg(e, i)->type, e->type)) {
            map_put(s->made, PTR_KEY(e), s->made);
            return e;
        }
    for (uint32_t i = 0; i < call_nargs(e); i++)
        if (same_dims(call_arg(e, i)->type, e->type) && (x = rows_of(c, s->made, call_arg(e, i))))
            return of_rows(c, s, was, e, x);
    return e;
}

const Module *sink_views(Ctx *c, const Module *m)
{
    State s = {map_new(c->scratch), count_uses(c, m)};

    return module_rewrite(c, m, sink, &s);
}
