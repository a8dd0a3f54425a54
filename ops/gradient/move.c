/* Adjoints of what moves cells: each gives its gradient to the cell that it came from. */
#include "ops/gradient/gradient.h"

#include <string.h>

/* The gradient is summed over what was broadcast (grad_fit). */
void adjoint_broadcast(const Adjoint *a)
{
    a->dx[0] = a->dy[0];
}

void adjoint_reshape(const Adjoint *a)
{
    a->dx[0] = grad_like(a->b, a->dy[0], a->x[0]);
}

void adjoint_transpose(const Adjoint *a)
{
    Ints     axes = ATTRS(TransposeAttrs, a->call)->axes;
    uint32_t n = a->x[0]->type->n;
    int64_t  back[TE_MAX_AXES];

    for (uint32_t i = 0; i < n; i++)
        back[axes.n ? axis_of(axes.at[i], n) : n - 1 - i] = i;
    a->dx[0] = build_transpose(a->b, a->dy[0], n, back);
}

void adjoint_reverse(const Adjoint *a)
{
    a->dx[0] = build1(a->b, "reverse", a->dy[0], a->call->u.attrs);
}

void adjoint_trilu(const Adjoint *a)
{
    a->dx[0] = build1(a->b, "trilu", a->dy[0], a->call->u.attrs);
}

/* ---- parts ------------------------------------------------------------------------------------------- */

void adjoint_concatenate(const Adjoint *a)
{
    const Type *parts = call_arg(a->call, 0)->type;
    uint32_t    axis = axis_of(ATTRS(ConcatenateAttrs, a->call)->axis, a->call->type->n);
    const Idx  *at = idx_const(a->b->c->arith, 0), *end;

    for (uint32_t i = 0; i < parts->n; i++, at = end) {
        end = idx_add(a->b->c->arith, at, a->x[i]->type->dims[axis]);
        a->dx[i] = build_slice_to(a->b, a->dy[0], axis, at, end);
    }
}

void adjoint_stack(const Adjoint *a)
{
    const Type *parts = call_arg(a->call, 0)->type;
    uint32_t    axis = axis_of(ATTRS(StackAttrs, a->call)->axis, a->call->type->n);

    for (uint32_t i = 0; i < parts->n; i++) {
        const Idx *at = idx_const(a->b->c->arith, i), *end = idx_const(a->b->c->arith, i + 1);

        a->dx[i] = grad_like(a->b, build_slice_to(a->b, a->dy[0], axis, at, end), a->x[i]);
    }
}

void adjoint_split(const Adjoint *a)
{
    const SplitAttrs *attrs = ATTRS(SplitAttrs, a->call);
    ConcatenateAttrs *whole = NEW_ATTRS(a->b->c, ConcatenateAttrs);

    whole->axis = attrs->axis;
    a->dx[0] =
        build1(a->b, "concatenate", expr_tuple(a->b->c, a->call->type->n, a->dy, a->b->loc), whole);
}

/* Where cell i of a dimension of n cells with such a border comes from. */
static int64_t pad_source(bool reflect, int64_t i, int64_t lo, int64_t hi, int64_t n)
{
    int64_t at = i - lo, last = n - 1;

    if (!reflect)
        return at < 0 ? 0 : at > last ? last : at;
    at = lo > 0 && at < 0 ? -at : at;
    return hi > 0 && at > last ? 2 * last - at : at;
}

/* A border of copies: their gradients are added to those of the cells. */
static const Expr *gathered(const Adjoint *a, const PadAttrs *attrs, const Expr *dy)
{
    const Type *t = a->x[0]->type;

    for (uint32_t i = 0; dy && i < t->n; i++) {
        int64_t    n, cells, lo = attrs->pad_width.at[2 * i], hi = attrs->pad_width.at[2 * i + 1];
        const Idx *dims[TE_MAX_AXES], *along[TE_MAX_AXES];
        int64_t   *from;

        if (!lo && !hi)
            continue;
        if (!rel_dim(a->b->c, a->b->loc, t, i, &n))
            return NULL;
        cells = n + lo + hi;
        from = NEW_ARRAY(a->b->c->scratch, int64_t, (size_t)cells + 1);
        for (int64_t k = 0; k < cells; k++)
            from[k] = pad_source(!strcmp(attrs->pad_mode, "reflect"), k, lo, hi, n);
        for (uint32_t d = 0; d < t->n; d++) {
            dims[d] = dy->type->dims[d];
            along[d] = d == i ? dims[d] : idx_const(a->b->c->arith, 1);
        }
        const Expr *at = expr_const_i64s(a->b->c, from, (uint32_t)cells);
        const Type *all = type_tensor(a->b->c, DT_I64, t->n, dims);

        dims[i] = t->dims[i];
        const Expr *zeros = grad_zeros(a->b, type_tensor(a->b->c, t->dtype, t->n, dims));

        at = grad_fit(a->b, build_reshape_to(a->b, at, t->n, along), all);
        dy = zeros ? grad_scatter(a->b, zeros, at, dy, i) : NULL;
    }
    return dy;
}

/* Widths below 0 cut cells off, which then have no gradient: the same with the signs turned. */
void adjoint_pad(const Adjoint *a)
{
    const PadAttrs *attrs = ATTRS(PadAttrs, a->call);
    int64_t         back[2 * TE_MAX_AXES];

    for (uint32_t i = 0; i < attrs->pad_width.n; i++)
        back[i] = -attrs->pad_width.at[i];
    a->dx[0] = strcmp(attrs->pad_mode, "constant") ? gathered(a, attrs, a->dy[0])
                                                   : build_pad(a->b, a->dy[0], back, 0, NULL);
}

/* x with zeros before and behind along the axis, [begin, begin + its own) of n. */
static const Expr *placed(const Adjoint *a, const Expr *x, uint32_t axis, const Idx *begin,
                          const Idx *n)
{
    Arith            *A = a->b->c->arith;
    ConcatenateAttrs *attrs = NEW_ATTRS(a->b->c, ConcatenateAttrs);
    const Idx        *dims[TE_MAX_AXES], *rest;
    const Expr       *zeros[2];
    int64_t           widths[2 * TE_MAX_AXES] = {0};

    if (!x)
        return NULL;
    rest = idx_sub(A, idx_sub(A, n, begin), x->type->dims[axis]);
    if (idx_is_const(begin, &widths[2 * axis]) && idx_is_const(rest, &widths[2 * axis + 1]))
        return build_pad(a->b, x, widths, 0, NULL);
    for (uint32_t i = 0; i < x->type->n; i++)
        dims[i] = x->type->dims[i];
    for (uint32_t i = 0; i < 2; i++) {
        dims[axis] = i ? rest : begin;
        zeros[i] = grad_zeros(a->b, type_tensor(a->b->c, x->type->dtype, x->type->n, dims));
    }
    attrs->axis = axis;
    if (!zeros[0] || !zeros[1])
        return NULL;
    return build1(a->b, "concatenate",
                  expr_tuple(a->b->c, 3, (const Expr *[]){zeros[0], x, zeros[1]}, a->b->loc),
                  attrs);
}

/* n cells along the axis as n * step, zeros behind each. */
static const Expr *stretched(const Adjoint *a, const Expr *x, uint32_t axis, int64_t step)
{
    const Idx *dims[TE_MAX_AXES + 1];
    int64_t    widths[2 * (TE_MAX_AXES + 1)] = {0};
    uint32_t   n = x->type->n;

    for (uint32_t i = 0; i <= n; i++)
        dims[i] = i == axis + 1 ? idx_const(a->b->c->arith, 1) : x->type->dims[i - (i > axis)];
    widths[2 * (axis + 1) + 1] = step - 1;
    x = build_pad(a->b, build_reshape_to(a->b, x, n + 1, dims), widths, 0, NULL);
    dims[axis] = idx_mulc(a->b->c->arith, dims[axis], step);
    for (uint32_t i = axis + 1; i < n; i++)
        dims[i] = dims[i + 1];
    return build_reshape_to(a->b, x, n, dims);
}

void adjoint_strided_slice(const Adjoint *a)
{
    Arith      *A = a->b->c->arith;
    const Type *t = a->x[0]->type;
    const Expr *dx = a->dy[0];

    for (uint32_t i = 0; dx && i < t->n; i++) {
        const Idx *begin, *n = dx->type->dims[i];
        int64_t    step;

        if (!slice_along(a->b->c, a->call, i, &begin, &step))
            continue; /* all of it */
        if (n->hi == 0) {
            dx = grad_zeros(a->b, t);
            break;
        }
        if (step < 0) {
            dx = grad_reverse(a->b, dx, i);
            begin = idx_add(A, begin, idx_mulc(A, idx_addc(A, n, -1), step));
            step = -step;
        }
        if (step > 1 && dx) /* what it is longer than x is cut off again */
            dx = stretched(a, dx, i, step);
        dx = placed(a, dx, i, begin, t->dims[i]);
    }
    a->dx[0] = dx;
}

/* ---- copies of cells --------------------------------------------------------------------------------- */

/* Dimension `axis`, in which `times` parts lie, one behind the other or, `inner`, cell by cell:
 * summed over them. */
static const Expr *summed(const Adjoint *a, const Expr *x, uint32_t axis, const Idx *part,
                          const Idx *times, bool inner)
{
    const Idx *dims[TE_MAX_AXES + 1];
    uint32_t   n;

    if (!x || times == idx_const(a->b->c->arith, 1))
        return x;
    n = x->type->n;
    for (uint32_t i = 0; i <= n; i++)
        dims[i] = x->type->dims[i - (i > axis)];
    dims[axis + inner] = times;
    dims[axis + !inner] = part;
    x = grad_reduce(a->b, "sum", build_reshape_to(a->b, x, n + 1, dims), 1u << (axis + inner));
    dims[axis] = part;
    for (uint32_t i = axis + 1; i < n; i++)
        dims[i] = dims[i + 1];
    return build_reshape_to(a->b, x, n, dims);
}

void adjoint_tile(const Adjoint *a)
{
    Dims        reps = ATTRS(TileAttrs, a->call)->reps;
    const Type *t = a->x[0]->type;
    const Expr *dx = a->dy[0];
    uint32_t    n = dx->type->n;

    for (uint32_t i = 0; i < reps.n; i++) {
        uint32_t   axis = n - reps.n + i;
        const Idx *part =
            axis < n - t->n ? idx_const(a->b->c->arith, 1) : t->dims[axis - (n - t->n)];

        dx = summed(a, dx, axis, part, reps.at[i], false);
    }
    a->dx[0] = grad_like(a->b, dx, a->x[0]);
}

void adjoint_repeat(const Adjoint *a)
{
    const RepeatAttrs *attrs = ATTRS(RepeatAttrs, a->call);
    const Type        *t = a->x[0]->type;
    uint32_t           axis = axis_of(attrs->axis, t->n);

    a->dx[0] =
        summed(a, a->dy[0], axis, t->dims[axis], idx_const(a->b->c->arith, attrs->repeats), true);
}

/* ---- cells by index ----------------------------------------------------------------------------------- */

/* Indices into a dimension of n cells as scatters take them, which wrap. */
static const Expr *wrapped(const Adjoint *a, const Expr *indices, const char *mode, const Idx *n)
{
    ClipAttrs *attrs;
    int64_t    cells;

    if (strcmp(mode, "clip"))
        return indices;
    if (!idx_is_const(n, &cells)) {
        adjoint_refuse(a, "indices that are clipped to a size of the run");
        return NULL;
    }
    attrs = NEW_ATTRS(a->b->c, ClipAttrs);
    attrs->a_min = 0;
    attrs->a_max = (double)(cells - 1);
    return build1(a->b, "clip", indices, attrs);
}

/* The indices lie along one dimension, and are the same for all others but those of the batch. */
void adjoint_take(const Adjoint *a)
{
    const TakeAttrs *attrs = ATTRS(TakeAttrs, a->call);
    const Type      *t = a->x[0]->type, *ids = a->x[1]->type;
    uint32_t         axis = axis_of(attrs->axis, t->n), batch = (uint32_t)attrs->batch_dims;
    const Idx       *flat[TE_MAX_AXES], *dims[TE_MAX_AXES], *n = idx_const(a->b->c->arith, 1);
    const Expr      *at;

    for (uint32_t i = batch; i < ids->n; i++)
        n = idx_mul(a->b->c->arith, n, ids->dims[i]);
    for (uint32_t i = 0; i < t->n; i++) {
        flat[i] = i < batch ? t->dims[i] : i == axis ? n : idx_const(a->b->c->arith, 1);
        dims[i] = i == axis ? n : t->dims[i];
    }
    at = build_reshape_to(a->b, wrapped(a, a->x[1], attrs->mode, t->dims[axis]), t->n, flat);
    at = grad_fit(a->b, at, type_tensor(a->b->c, ids->dtype, t->n, dims));
    a->dx[0] = grad_scatter(a->b, a->x[0], at, build_reshape_to(a->b, a->dy[0], t->n, dims), axis);
}

void adjoint_gather(const Adjoint *a)
{
    const GatherAttrs *attrs = ATTRS(GatherAttrs, a->call);
    uint32_t           axis = axis_of(attrs->axis, a->x[0]->type->n);
    const Expr        *at = wrapped(a, a->x[1], attrs->mode, a->x[0]->type->dims[axis]);

    a->dx[0] = grad_scatter(a->b, a->x[0], at, a->dy[0], axis);
}

/* Its values where it is on, and where it is off. */
void adjoint_one_hot(const Adjoint *a)
{
    const OneHotAttrs *attrs = ATTRS(OneHotAttrs, a->call);
    const Expr        *one = expr_scalar(a->b->c, a->call->type->dtype, 1);
    const Expr        *zero = expr_scalar(a->b->c, a->call->type->dtype, 0);

    a->dx[1] = build_mul(a->b, a->dy[0], build3(a->b, "one_hot", a->x[0], one, zero, attrs));
    a->dx[2] = build_mul(a->b, a->dy[0], build3(a->b, "one_hot", a->x[0], zero, one, attrs));
}

void adjoint_gather_nd(const Adjoint *a)
{
    ScatterNdAttrs *attrs = NEW_ATTRS(a->b->c, ScatterNdAttrs);

    if (ATTRS(GatherNdAttrs, a->call)->batch_dims) {
        adjoint_refuse(a, "batch_dims");
        return;
    }
    attrs->mode = intern(a->b->c->strings, "add");
    a->dx[0] =
        build3(a->b, "scatter_nd", grad_zeros(a->b, a->x[0]->type), a->x[1], a->dy[0], attrs);
}

/* Data keep their gradient where nothing was written over them; false: they are combined in a way
 * that has none here. */
static bool scattered(const Adjoint *a, const char *op, const char *mode)
{
    const Expr *none = grad_zeros(a->b, a->x[2]->type);

    if (!strcmp(mode, "add")) {
        a->dx[0] = a->dy[0];
        return true;
    }
    if (!strcmp(mode, "update")) {
        a->dx[0] = build3(a->b, op, a->dy[0], a->x[1], none, a->call->u.attrs);
        return true;
    }
    adjoint_refuse(a, arena_printf(a->b->c->arena, "updates by \"%s\"", mode));
    return false;
}

void adjoint_scatter_elements(const Adjoint *a)
{
    const ScatterElementsAttrs *attrs = ATTRS(ScatterElementsAttrs, a->call);
    GatherAttrs                *at = NEW_ATTRS(a->b->c, GatherAttrs);

    at->axis = attrs->axis;
    if (scattered(a, "scatter_elements", attrs->reduction))
        a->dx[2] = build2(a->b, "gather", a->dy[0], a->x[1], at);
}

void adjoint_scatter_nd(const Adjoint *a)
{
    const ScatterNdAttrs *attrs = ATTRS(ScatterNdAttrs, a->call);

    if (attrs->axes.n)
        adjoint_refuse(a, "coordinates of chosen dimensions");
    else if (scattered(a, "scatter_nd", attrs->mode))
        a->dx[2] = build2(a->b, "gather_nd", a->dy[0], a->x[1], NULL);
}

static const Expr *number_of(const Build *b, const Idx *n)
{
    DimValuesAttrs *attrs = NEW_ATTRS(b->c, DimValuesAttrs);

    attrs->dims = dims_dup(b->c, &n, 1);
    return build_reshape_to(b, build_call(b, "dim_values", 0, NULL, attrs), 0, NULL);
}

/* x where `at` is a position of a dimension of n cells, else 0. */
static const Expr *where_inside(const Build *b, const Expr *at, const Idx *n, const Expr *x)
{
    const Expr *inside = build2(b, "logical_and", build2(b, "less", at, number_of(b, n), NULL),
                                build_by(b, "greater_equal", at, 0), NULL);

    return x ? build_where(b, inside, x, grad_zeros(b, x->type)) : NULL;
}

/* A slice along the first dimension. */
void adjoint_update_slice(const Adjoint *a)
{
    const Build *b = a->b;
    const Expr  *none = grad_zeros(b, a->x[1]->type), *at = build_cast(b, a->x[2], DT_I64);
    TakeAttrs   *first = NEW_ATTRS(b->c, TakeAttrs);

    a->dx[0] = build3(b, "update_slice", a->dy[0], none, a->x[2], NULL);
    a->dx[1] = where_inside(b, at, a->x[0]->type->dims[0], build2(b, "take", a->dy[0], at, first));
}

/* A new cell has the gradient of the place that it went to, if there is one. */
void adjoint_update_range(const Adjoint *a)
{
    const Build            *b = a->b;
    const UpdateRangeAttrs *attrs = ATTRS(UpdateRangeAttrs, a->call);
    const Type             *t = a->x[1]->type;
    uint32_t                axis = axis_of(attrs->axis, t->n);
    const Idx              *room = a->x[0]->type->dims[axis];
    GatherAttrs            *along = NEW_ATTRS(b->c, GatherAttrs);
    const Expr             *at = build_along(b, build_cast(b, a->x[2], DT_I64), t->n, 0);

    at = build_add(b, at, build_along(b, build_arange(b, t->dims[axis], DT_I64), t->n, axis));
    at = build_broadcast_to(b, at, t->n, t->dims);
    if (attrs->circular)
        at = build2(b, "floor_mod", at, number_of(b, room), NULL);
    along->axis = axis;
    along->mode = "clip";
    a->dx[0] = build3(b, "update_range", a->dy[0], grad_zeros(b, t), a->x[2], attrs);
    a->dx[1] = where_inside(b, at, room, build2(b, "gather", a->dy[0], at, along));
}
