/* simplify_pick: what picks or orders the cells of a tensor, in fewer steps (simplify_expr.c).
 *
 *   reverse(view(reverse(x)))                    -> view(x)      along one dimension
 *   reverse(view(x))                             -> view(reverse(x))
 *   concatenate of views                         -> view(concatenate)      without 1s
 *   the last row of nn.recurrent(..).0           -> nn.recurrent(..).1    the last state
 *   take(x, where(%i < 0, %i + n, %i), "wrap")   -> take(x, %i, mode="wrap")    n rows
 *   cast(%b) * %p + %q * cast(logical_not(%b))   -> where(%b, %p, %q)
 *   where(%b, %p, const of equal v)              -> where(%b, %p, v)
 *   a slice of all of some dimensions            -> a slice of the others
 *   less(cast(%i, dtype=f32), 0.0)               -> less(%i, 0)
 *   logical_not(equal(%i, 0))                    -> not_equal(%i, 0)
 *
 * Frameworks that have neither backward layers nor positions from the end write these; a choice of
 * floats by sums, which tf2onnx writes, makes NaN of an infinite cell that is not chosen. */
#include "passes/graph/simplify.h"

#include <string.h>

enum { MAX_VIEWS = 8 }; /* and transposes, between two calls that belong together */

/* ---- through views ------------------------------------------------------------------------------- */

/* The dimension of e's operand that is dimension `axis` of e, a view or a transpose. */
static bool axis_before(const Expr *e, uint32_t *axis)
{
    const Type *to = e->type, *from = call_arg(e, 0)->type;
    uint32_t    axes[16];
    int64_t     before = 1, cells = 1, d;

    if (!expr_has_shape(e) || !from || from->kind != TYPE_TENSOR || to->n > 16)
        return false;
    if (call_is(e, "transpose")) {
        axes_of_transpose(e, axes);
        *axis = axes[*axis];
        return true;
    }
    if (!is_view(e))
        return false;
    for (uint32_t i = 0; i < *axis; i++) {
        if (!type_dim(to, i, &d))
            return false;
        before *= d;
    }
    for (uint32_t i = 0; i < from->n; i++) {
        if (cells == before && from->dims[i] == to->dims[*axis]) {
            *axis = i;
            return true;
        }
        if (!type_dim(from, i, &d))
            return false;
        cells *= d;
    }
    return false;
}

/* Views and transposes from e down, outermost first; what they are of, whose dimension is *axis. */
static const Expr *through(const Expr *e, uint32_t *axis, uint32_t *n, const Expr **views)
{
    for (*n = 0; *n < MAX_VIEWS && (is_view(e) || call_is(e, "transpose")); e = call_arg(e, 0)) {
        if (!axis_before(e, axis))
            return NULL;
        views[(*n)++] = e;
    }
    return e;
}

static const Expr *rebuilt(Ctx *c, const Expr *x, uint32_t n, const Expr *const *views)
{
    while (x && n-- > 0)
        x = expr_call(c, call_op(views[n]), 1, &x, views[n]->u.attrs, views[n]->loc);
    return x;
}

const Expr *unreversed(Ctx *c, const Expr *e, uint32_t axis)
{
    uint32_t    n;
    const Expr *views[MAX_VIEWS], *x = through(e, &axis, &n, views);

    if (!x || !call_is(x, "reverse") ||
        axis_from_front(ATTRS_OF(ReverseAttrs, x)->axis, x->type->n) != axis)
        return NULL;
    return rebuilt(c, call_arg(x, 0), n, views);
}

/* reverse(view(x)): x is reversed, so that views meet. */
static const Expr *reversed_below(Ctx *c, const Expr *e)
{
    uint32_t      axis = axis_from_front(ATTRS_OF(ReverseAttrs, e)->axis, e->type->n);
    ReverseAttrs *a = ATTRS_COPY(c, ReverseAttrs, e);
    const Expr   *x = call_arg(e, 0);

    for (; is_view(x) && axis_before(x, &axis); x = call_arg(x, 0))
        ;
    if (x == call_arg(e, 0) || !expr_has_shape(x))
        return e;
    a->axis = axis;
    x = make1(c, "reverse", x, a, e->loc);
    return x ? make_reshape_to(c, x, e->type->n, e->type->dims, e->loc) : NULL;
}

static const Expr *reversed_twice(Ctx *c, const Expr *e)
{
    const Expr *x =
        unreversed(c, call_arg(e, 0), axis_from_front(ATTRS_OF(ReverseAttrs, e)->axis, e->type->n));

    return x ? x : reversed_below(c, e);
}

/* ---- the last step of a recurrent layer ---------------------------------------------------------- */

/* All dimensions are in order. */
static bool only_views(uint32_t n, const Expr *const *views)
{
    for (uint32_t i = 0; i < n; i++)
        if (!is_view(views[i]))
            return false;
    return true;
}

static const Expr *last_step(Ctx *c, const Expr *e)
{
    const StridedSliceAttrs *a = ATTRS_OF(StridedSliceAttrs, e);
    const RecurrentAttrs    *r;
    const Expr              *views[MAX_VIEWS], *y;
    const Type              *t = call_arg(e, 0)->type;
    uint32_t                 axis, n;
    int64_t                  from, steps, rows;

    if (a->begin.n != 1 || !expr_has_shape(e) || !expr_has_shape(call_arg(e, 0)) ||
        !idx_is_const(a->begin.at[0], &from))
        return e;
    axis = a->axes.n ? axis_from_front(a->axes.at[0], t->n) : 0;
    if (!type_dim(t, axis, &steps) || !type_dim(e->type, axis, &rows) || rows != 1 || steps < 2)
        return e;
    from += from < 0 ? steps : 0;
    y = through(call_arg(e, 0), &axis, &n, views);
    if (y && call_is(y, "reverse") &&
        axis_from_front(ATTRS_OF(ReverseAttrs, y)->axis, y->type->n) == axis) {
        from = steps - 1 - from;
        y = only_views(n, views) ? through(call_arg(y, 0), &axis, &n, views) : NULL;
    }
    if (!y || axis != 0 || y->kind != EXPR_PROJ || y->u.index != 0 ||
        !call_is(y->kids[0], "nn.recurrent") || !only_views(n, views))
        return e;
    r = ATTRS_OF(RecurrentAttrs, y->kids[0]);
    if (from != (strcmp(r->direction, "reverse") ? steps - 1 : 0) ||
        !strcmp(r->direction, "bidirectional"))
        return e;
    return make_reshape_to(c, expr_proj(c, y->kids[0], 1, e->loc), e->type->n, e->type->dims,
                           e->loc);
}

/* ---- what is put together ------------------------------------------------------------------------ */

/* Views of up to three dimensions, which no layout has a word for, one of which is 1. */
static const Expr *together(Ctx *c, const Expr *e)
{
    const Expr       *all = call_arg(e, 0), **parts, *x;
    ConcatenateAttrs *a;
    const Idx        *dims[3];
    uint32_t          axis, n, rank = 0, at = 0;

    if (all->kind != EXPR_TUPLE || !expr_has_shape(e) || e->type->n > 3)
        return e;
    n = all->nkids;
    axis = axis_from_front(ATTRS_OF(ConcatenateAttrs, e)->axis, e->type->n);
    parts = NEW_ARRAY(c->arena, const Expr *, n);
    for (uint32_t i = 0; i < n; i++) {
        x = all->kids[i];
        if (!expr_has_shape(x) || (is_view(x) && !expr_has_shape(call_arg(x, 0))))
            return e;
        rank = 0;
        for (uint32_t k = 0; k < x->type->n; k++) {
            const Idx *d = x->type->dims[k];

            if (d->lo < 1)
                return e;
            if (k == axis)
                at = rank;
            if (k == axis || d->lo != 1 || d->hi != 1)
                dims[rank++] = d;
        }
        if (rank == e->type->n)
            return e;
        parts[i] = make_reshape_to(c, is_view(x) ? call_arg(x, 0) : x, rank, dims, x->loc);
    }
    a = ATTRS_COPY(c, ConcatenateAttrs, e);
    a->axis = at;
    for (uint32_t i = 0; i < n; i++)
        if (!parts[i])
            return NULL;
    x = make1(c, "concatenate", expr_tuple(c, n, parts, e->loc), a, e->loc);
    return x ? make_reshape_to(c, x, e->type->n, e->type->dims, e->loc) : NULL;
}

/* ---- positions from the end ---------------------------------------------------------------------- */

/* where(%i < 0, %i + n, %i) */
static const Expr *from_end(const Expr *e, int64_t n)
{
    const Expr *i, *below, *moved;
    double      v;

    if (!call_is(e, "where"))
        return NULL;
    below = call_arg(e, 0);
    moved = call_arg(e, 1);
    i = call_arg(e, 2);
    if (is_float(i) || !call_is(below, "less") || call_arg(below, 0) != i ||
        !expr_const_f(call_arg(below, 1), &v) || v != 0 || !call_is(moved, "add"))
        return NULL;
    for (uint32_t k = 0; k < 2; k++)
        if (call_arg(moved, k) == i && expr_const_f(call_arg(moved, 1 - k), &v) && v == (double)n &&
            i->type == e->type)
            return i;
    return NULL;
}

static const Expr *take_from_end(Ctx *c, const Expr *e)
{
    const Expr *x = call_arg(e, 0), *i;
    int64_t     n;

    if (!expr_has_shape(x) || !expr_has_shape(e) || x->type->n == 0 ||
        strcmp(ATTRS_OF(TakeAttrs, e)->mode, "wrap") != 0 ||
        !type_dim(x->type, axis_from_front(ATTRS_OF(TakeAttrs, e)->axis, x->type->n), &n) ||
        !(i = from_end(call_arg(e, 1), n)))
        return e;
    return make2(c, "take", x, i, e->u.attrs, e->loc);
}

/* The operand b of cast(b), where it is a bool. */
static const Expr *cast_bool(const Expr *e)
{
    const Expr *b = call_is(e, "cast") ? call_arg(e, 0) : NULL;

    return b && b->type && b->type->kind == TYPE_TENSOR && dtype_is_bool(b->type->dtype) ? b : NULL;
}

/* cast(b) * x with either first. */
static bool masked(const Expr *e, const Expr **b, const Expr **x)
{
    for (uint32_t i = 0; call_is(e, "multiply") && i < 2; i++)
        if ((*b = cast_bool(call_arg(e, i)))) {
            *x = call_arg(e, 1 - i);
            return (*x)->type == e->type;
        }
    return false;
}

/* One number beside a tensor of all cells. */
const Expr *where_number(Ctx *c, const Expr *e)
{
    const Expr *args[3] = {call_arg(e, 0), call_arg(e, 1), call_arg(e, 2)};
    double      v;

    for (uint32_t i = 1; i < 3; i++)
        if (args[i]->kind == EXPR_CONST && args[i]->type->n && expr_const_f(args[i], &v) &&
            v == (double)(float)v && call_arg(e, 3 - i)->type == e->type)
            args[i] = expr_scalar(c, e->type->dtype, v);
    return args[1] == call_arg(e, 1) && args[2] == call_arg(e, 2)
               ? e
               : expr_call(c, call_op(e), 3, args, e->u.attrs, e->loc);
}

static const Expr *sum_as_where(Ctx *c, const Expr *e)
{
    const Expr *b[2], *x[2];

    if (!masked(call_arg(e, 0), &b[0], &x[0]) || !masked(call_arg(e, 1), &b[1], &x[1]) ||
        x[0]->type != e->type || x[1]->type != e->type)
        return e;
    for (uint32_t i = 0; i < 2; i++)
        if (call_is(b[1 - i], "logical_not") && call_arg(b[1 - i], 0) == b[i])
            return where_number(c, expr_call_name(c, "where", 3,
                                                  (const Expr *[]){b[i], x[i], x[1 - i]}, NULL,
                                                  e->loc));
    return e;
}

/* A slice of numbers names the dimensions that it cuts, in order, and from where to where. */
static const Expr *slice_form(Ctx *c, const Expr *e)
{
    const StridedSliceAttrs *a = ATTRS_OF(StridedSliceAttrs, e);
    const Type              *t = call_arg(e, 0)->type;
    StridedSliceAttrs       *now;
    int64_t  from[TE_MAX_AXES], begin[TE_MAX_AXES], end[TE_MAX_AXES], axes[TE_MAX_AXES], n, left;
    uint32_t k = 0;

    if (!expr_is_tensor(e) || !expr_is_tensor(call_arg(e, 0)) || t->n > TE_MAX_AXES ||
        !ints_all(a->strides, 1) || a->begin.n > t->n)
        return e;
    memset(from, 0, sizeof from);
    for (uint32_t i = 0; i < a->begin.n; i++) {
        uint32_t dim = a->axes.n ? axis_from_front(a->axes.at[i], t->n) : i;

        if (!idx_is_const(a->begin.at[i], &from[dim]) || !type_dim(t, dim, &n))
            return e;
        from[dim] = from[dim] < 0 ? from[dim] + n : from[dim];
        from[dim] = from[dim] < 0 ? 0 : from[dim] < n ? from[dim] : n;
    }
    for (uint32_t i = 0; i < t->n; i++) {
        if (!type_dim(t, i, &n) || !type_dim(e->type, i, &left))
            return e;
        if (left == n)
            continue;
        begin[k] = from[i];
        end[k] = from[i] + left;
        axes[k++] = i;
    }
    if (k == 0 || (k == a->begin.n && a->axes.n))
        return e;
    now = ATTRS_COPY(c, StridedSliceAttrs, e);
    now->begin = dims_of_i64(c, begin, k);
    now->end = dims_of_i64(c, end, k);
    now->axes = ints_dup(c, axes, k);
    now->strides = (Ints){0};
    return make1(c, "strided_slice", call_arg(e, 0), now, e->loc);
}

static const Expr *slice(Ctx *c, const Expr *e)
{
    const Expr *now = last_step(c, e);

    return now == e ? slice_form(c, e) : now;
}

static const Expr *not_compared(Ctx *c, const Expr *e)
{
    const Expr *x = call_arg(e, 0);
    bool        same = call_is(x, "equal");

    return same || call_is(x, "not_equal") ? make2(c, same ? "not_equal" : "equal", call_arg(x, 0),
                                                   call_arg(x, 1), NULL, e->loc)
                                           : e;
}

static const Expr *less_of_integers(Ctx *c, const Expr *e)
{
    const Expr *x = call_arg(e, 0), *i = call_is(x, "cast") ? call_arg(x, 0) : NULL;
    double      v;

    if (!i || !expr_has_shape(i) || !dtype_is_int(i->type->dtype) || !is_float(x) ||
        !expr_const_f(call_arg(e, 1), &v) || v != 0 || !same_dims(x->type, e->type))
        return e;
    return make2(c, "less", i, expr_scalar(c, i->type->dtype, 0), NULL, e->loc);
}

const Expr *simplify_pick(Ctx *c, const Expr *e)
{
    static const struct {
        const char *op;
        const Expr *(*form)(Ctx *c, const Expr *e);
    } rows[] = {{"reverse", reversed_twice},  {"strided_slice", slice}, {"concatenate", together},
                {"take", take_from_end},      {"add", sum_as_where},    {"less", less_of_integers},
                {"logical_not", not_compared}};

    for (uint32_t i = 0; i < COUNT(rows); i++)
        if (call_is(e, rows[i].op))
            return rows[i].form(c, e);
    return e;
}
