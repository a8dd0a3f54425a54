/* Where a condition holds, and which values there are: how many, a run decides
 * (docs/design/shapes.md). */
#include "frontends/calls.h"

/* Numbers of the cells of flags [cells] that are set, in order: [k], i64. */
static const Expr *positions(const Build *b, const BoundDim *bound, const Expr *flags)
{
    Arith                *A = b->c->arith;
    const Idx            *cells = expr_form(flags, 0), *room = idx_addc(A, cells, 1), *k;
    ScatterElementsAttrs *first = ATTRS(b, ScatterElementsAttrs);
    const Expr           *ones = build_cast(b, flags, DT_I64), *sum, *total, *to, *all;

    sum = build1(b, "cumsum", ones, NULL);
    total = build_reduce(b, "sum", ones, 1, (int64_t[]){0}, true);
    if (!sum || !total || !(k = bound->fn(bound->user, total, cells)))
        return NULL;
    /* Those that are not set go behind the end. */
    to = build_where(b, flags, build_by(b, "subtract", sum, 1),
                     build_by(b, "add", build_scalar(b, sum, 0), (double)cells->hi));
    all = build3(b, "scatter_elements", build_zeros_of(b, DT_I64, 1, &room), to,
                 build_arange(b, cells, DT_I64), first);
    return build_slice_to(b, all, 0, idx_const(A, 0), k);
}

const Idx *build_bound_dim(const Build *b, Shapes *s, const char *name, const Expr *total,
                           const Idx *most, const Expr **bind)
{
    BindDimsAttrs *a = ATTRS(b, BindDimsAttrs);
    const Idx     *k;
    const Atom    *dim;
    int64_t        lo = 0, hi;

    most = shapes_most(s, most);
    hi = most->hi;
    if (shapes_given(s, name, &lo, &hi)) {
        if (lo < 0 || hi > most->hi)
            return build_error(b, E_DIM, "dimension '%s' is at most %s", name,
                               dim_text(b->c, most));
        most = idx_const(b->c->arith, hi);
    }
    k = lo < hi ? dim_within(b->c, name, lo, most) : idx_const(b->c->arith, lo);
    if (idx_is_atom(k, &dim))
        atomset_add(s->decided, dim);
    a->dims = dims_dup(b->c, &k, 1);
    return (*bind = build1(b, "bind_dims", total, a)) ? k : NULL;
}

/* x op a size. */
static const Expr *by_size(const Build *b, const char *op, const Expr *x, const Idx *size)
{
    int64_t v;

    if (idx_is_const(size, &v))
        return build_by(b, op, x, (double)v);
    return build2(b, op, x, build_values(b, type_tensor(b->c, DT_I64, 0, NULL), (Dims){1, &size}),
                  NULL);
}

/* The positions, [k, rank]. */
const Expr *build_find(const Build *b, const BoundDim *bound, const Expr *x)
{
    const Expr *at, *column[MAX_RANK];
    uint32_t    rank = expr_rank(x);
    Dims        dims = expr_forms(x);
    const Idx  *cells, *stride = idx_const(b->c->arith, 1);

    if (rank < 1)
        return build_error(b, E_IMPORT, "positions in a scalar");
    cells = type_cells(b->c, x->type);
    if (cells->hi < 1)
        return build_zeros(b, DT_I64, 2, (int64_t[]){0, rank});
    if (!dtype_is_bool(expr_dtype(x)))
        x = build2(b, "not_equal", x, build_scalar(b, x, 0), NULL);
    if (!x || !(x = build_reshape_to(b, x, 1, &cells)) || !(at = positions(b, bound, x)))
        return NULL;
    for (uint32_t i = rank; i-- > 0;) {
        column[i] = by_size(b, "floor_divide", at, stride);
        column[i] = build_expand_dims(b, by_size(b, "floor_mod", column[i], dims.at[i]), 1, 1);
        stride = idx_mul(b->c->arith, stride, dims.at[i]);
    }
    return build_concat(b, rank, column, 1);
}

/* Which values x [cells] has, in the order in which they come first, and of each cell the number of
 * its value.
 *
 *     x       2 1 1 3 4 3     in order     1 1 2 3 3 4
 *     order   1 2 0 3 5 4     begins       1 0 1 1 0 1     start   1 1 0 3 3 4 (the cell it begins
 * at) first   1 1 0 1 1 0     values 2 1 3 4               number  0 1 1 2 3 2
 *
 * Sorting is stable, so that those that are equal begin with the first of them. */
bool build_unique(const Build *b, const BoundDim *bound, const Expr *x, UniqueCells *out)
{
    SortAttrs            *sort = ATTRS(b, SortAttrs);
    ScatterElementsAttrs *put = ATTRS(b, ScatterElementsAttrs);
    ScanAttrs            *scan = ATTRS(b, ScanAttrs);
    const Expr           *order, *sorted, *at, *begins, *group, *start, *first, *number;
    const Idx            *cells, *room;

    if (expr_rank(x) != 1)
        return build_error(b, E_UNSUPPORTED, "%u dimensions", expr_rank(x));
    cells = expr_form(x, 0);
    room = idx_addc(b->c->arith, cells, 1);
    if (cells->hi < 1)
        return build_error(b, E_UNSUPPORTED, "a tensor that is empty");
    sort->axis = 0;
    sort->is_ascend = true;
    sort->dtype = DT_I64;
    order = build1(b, "argsort", x, sort);
    sorted = build_take(b, x, order, 0);
    at = build_arange(b, cells, DT_I64);
    begins = build2(b, "not_equal", sorted,
                    build_take(b, sorted, build_by(b, "subtract", at, 1), 0), NULL);
    begins = build2(b, "logical_or", begins, build_by(b, "equal", at, 0), NULL);
    if (!begins)
        return false;
    group = build_by(b, "subtract", build1(b, "cumsum", build_cast(b, begins, DT_I64), scan), 1);
    /* Those that begin nothing go behind the end. */
    start =
        build3(b, "scatter_elements", build_zeros_of(b, DT_I64, 1, &room),
               build_where(b, begins, group, build_scalar(b, at, (double)cells->hi)), order, put);
    start = build_take(b, start, group, 0);
    first = build3(b, "scatter_elements", build_zeros_of(b, DT_I64, 1, &cells), order,
                   build_cast(b, begins, DT_I64), put);
    number = build_by(b, "subtract", build1(b, "cumsum", first, scan), 1);
    number = build3(b, "scatter_elements", build_zeros_of(b, DT_I64, 1, &cells), order,
                    build_take(b, number, start, 0), put);
    first = first ? positions(b, bound, build_cast(b, first, DT_BOOL)) : NULL;
    if (!first || !number)
        return false;
    out->number = number;
    out->values = build_take(b, x, first, 0);
    return out->values != NULL;
}
