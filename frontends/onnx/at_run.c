/* Shapes and positions that values of the run say: the converters of slice.c, shape.c and make.c
 * come here where an operand is neither constant nor made of dimensions.
 *
 * Positions stay data: Slice takes cells begin + i*step, so that only how many there are is a
 * dimension.  Sizes are dimensions (bound.c), each a cell of the operand. */
#include "frontends/onnx/onnx.h"

#include <string.h>

/* The only form that a cell may be. */
static const Idx *known_cell(const Build *b, const Expr *cell)
{
    Dims v;

    return cell && build_forms(b, cell, &v) ? v.at[0] : NULL;
}

/* ---- Slice ------------------------------------------------------------------------------------ */

/* Positions of one dimension, each Tensor[(1), i64]. */
typedef struct {
    const Expr *start, *end, *step;
} Range;

/* A position from the end if it is below 0, then within lo .. hi; hi where that is below lo, as the
 * last cell of none is, so that a step backwards takes nothing there. */
static const Expr *clamped(const Build *b, const Expr *x, const Expr *extent, const Expr *lo,
                           const Expr *hi)
{
    const Expr *below = build2(b, "less", x, cell_number(b, 0), NULL);

    x = build_where(b, below, build2(b, "add", x, extent, NULL), x);
    return build2(b, "minimum", build2(b, "maximum", x, lo, NULL), hi, NULL);
}

static const Expr *cut(Node *n, const Expr *x, uint32_t d, const Range *r)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    const Idx   *extent = expr_form(x, d), *from, *step = known_cell(b, r->step), *count;
    const Expr  *all = cell_form(b, extent), *last = cell_form(b, idx_addc(A, extent, -1));
    const Expr  *zero = cell_number(b, 0), *one = cell_number(b, 1), *none = cell_number(b, -1);
    const Expr  *up = build2(b, "less", zero, r->step, NULL), *begin, *end, *way, *by;
    int64_t      v;

    begin = clamped(b, r->start, all, zero, build_where(b, up, all, last));
    end = clamped(b, r->end, all, build_where(b, up, zero, none), build_where(b, up, all, last));
    way = build2(b, "multiply", build2(b, "subtract", end, begin, NULL),
                 build_where(b, up, one, none), NULL);
    /* A step over all cells is as good as a longer one. */
    by = cell_clamp(b, build1(b, "abs", r->step, NULL), one, build2(b, "maximum", all, one, NULL));
    way = build2(b, "add", way, build2(b, "subtract", by, one, NULL), NULL);
    RunDim k = {build2(b, "floor_divide", build2(b, "maximum", way, zero, NULL), by, NULL), 0,
                extent, d, 1};
    from = known_cell(b, r->start);
    if (from && from->lo >= 0 && from->hi <= extent->lo)
        k.most = idx_addc(A, extent, -from->lo);
    else
        from = NULL;
    if (!onnx_bind(n, 0, 1, &k, &count))
        return NULL;
    if (from && step && idx_is_const(step, &v) && v == 1)
        return build_slice_to(b, x, d, from, idx_add(A, from, count));
    if (extent->hi < 1)
        x = with_a_cell(b, x, d, 0);
    by = build2(b, "multiply", build_arange(b, count, DT_I64),
                build_where(b, up, by, build1(b, "negative", by, NULL)), NULL);
    return build_take(b, x, build2(b, "add", begin, by, NULL), d);
}

const Expr *cell_said(const Build *b, const Expr *list, const Expr *is, uint32_t j,
                      const Expr *otherwise)
{
    const Expr *zero = cell_number(b, 0), *v;

    if (!is || !list)
        return list ? cell_of(b, list, j) : otherwise;
    v = build_reduce(b, "sum", build_where(b, is, list, zero), 1, (int64_t[]){0}, true);
    return build_where(b, build_reduce(b, "any", is, 1, (int64_t[]){0}, true), v, otherwise);
}

bool slice_at_run(Node *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *starts = node_cells(n, 1), *ends = node_cells(n, 2), *steps = NULL,
               *axes = NULL;
    int64_t  axis[MAX_RANK], k;
    uint32_t rank = expr_rank(x);
    Ints     given;

    if (!starts || !ends || (node_has(n, 3) && !(axes = node_cells(n, 3))) ||
        (node_has(n, 4) && !(steps = node_cells(n, 4))))
        return false;
    type_dim(starts->type, 0, &k);
    if (!expr_is_tensor(ends) || build_elems(b, ends) != k || k > rank ||
        (axes && build_elems(b, axes) != k) || (steps && build_elems(b, steps) != k))
        return node_error(n, E_IMPORT, "starts, ends, axes and steps differ in number");
    for (uint32_t i = 0; i < rank; i++)
        axis[i] = i;
    if (axes && node_known(n, 3)) {
        if (!node_const_ints(n, 3, &given) || !node_axes(n, given, rank, axis))
            return false;
        axes = NULL;
    }
    for (uint32_t i = 0; i < (axes ? rank : (uint32_t)k); i++) {
        uint32_t    d = axes ? i : (uint32_t)axis[i];
        const Expr *is = axes ? axis_matches(b, axes, d, rank) : NULL;

        Range r = {cell_said(b, starts, is, i, cell_number(b, 0)),
                   cell_said(b, ends, is, i, cell_number(b, INT64_MAX)),
                   cell_said(b, steps, is, i, cell_number(b, 1))};
        if (!(x = cut(n, x, d, &r)))
            return false;
    }
    return node_done(n, x);
}

/* ---- Split: the sizes of the parts ------------------------------------------------------------ */

bool parts_at_run(Node *n, uint32_t axis, uint32_t parts, const Expr **out)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *sizes = node_cells(n, 1), *begin = cell_number(b, 0), *rest;
    const Idx   *extent = expr_form(x, axis), *k, *none;

    if (!sizes)
        return false;
    for (uint32_t i = 0; i < parts; i++) {
        RunDim d = {cell_of(b, sizes, i), 0, extent, axis, 1};

        if (!onnx_bind(n, i < n->nout ? i : 0, 1, &d, &k))
            return false;
        out[i] = x;
        if (extent->hi == 0) /* parts of nothing */
            continue;
        out[i] = build_take(b, x, build2(b, "add", build_arange(b, k, DT_I64), begin, NULL), axis);
        if (!out[i])
            return false;
        begin = build2(b, "add", begin, d.cell, NULL);
    }
    /* They are all of it, or the run ends. */
    rest = build2(b, "subtract", cell_form(b, extent), begin, NULL);
    RunDim d = {rest, 0, idx_const(b->c->arith, 0), axis, 1};
    return onnx_bind(n, 0, 1, &d, &none);
}

bool split_at_run(Node *n, uint32_t axis)
{
    const Expr *sizes = node_cells(n, 1);
    int64_t     parts;

    if (!sizes)
        return false;
    type_dim(sizes->type, 0, &parts);
    if (parts != n->nout)
        return node_error(n, E_IMPORT, "%lld sizes for %u outputs", (long long)parts, n->nout);
    return parts_at_run(n, axis, n->nout, n->out);
}

/* ---- Range ------------------------------------------------------------------------------------ */

bool range_at_run(Node *n)
{
    const Build *b = &n->b;
    DType        t = expr_dtype(n->in[0]);
    bool         floats = dtype_is_float(t);
    int64_t      one = 1;
    const Expr  *v[3], *count, *step;
    const Idx   *cells;

    for (uint32_t i = 0; i < 3; i++)
        v[i] = build_reshape(b, build_cast(b, n->in[i], floats ? DT_F64 : DT_I64), 1, &one);
    count = build2(b, "subtract", v[1], v[0], NULL);
    step = v[2];
    if (floats) {
        count = build1(b, "ceil", build2(b, "divide", count, step, NULL), NULL);
        count = build_cast(b, count, DT_I64);
    } else { /* up to a rest, rounded away from 0 */
        const Expr *rest = build2(b, "subtract", step, build1(b, "sign", step, NULL), NULL);

        count = build2(b, "divide", build2(b, "add", count, rest, NULL), step, NULL);
    }
    RunDim d = {build2(b, "maximum", count, cell_number(b, 0), NULL), 0, NULL, 0, 1};
    if (!d.cell || !onnx_bind(n, 0, 1, &d, &cells))
        return false;
    count =
        build_cast(b, build_arange(b, cells, floats ? DT_F64 : DT_I64), floats ? DT_F64 : DT_I64);
    return node_done(
        n,
        build_cast(b, build2(b, "add", v[0], build2(b, "multiply", count, step, NULL), NULL), t));
}

/* ---- shapes ----------------------------------------------------------------------------------- */

/* A cell for each number of a shape that input i holds, and how many there are. */
static bool shape_cells(Node *n, uint32_t i, const Expr **cells, uint32_t *k)
{
    const Expr *list = node_cells(n, i);

    if (!list)
        return false;
    *k = (uint32_t)build_elems(&n->b, list);
    if (build_elems(&n->b, list) > MAX_RANK)
        return node_error(n, E_UNSUPPORTED, "a shape of more than %d dimensions", MAX_RANK);
    for (uint32_t j = 0; j < *k; j++)
        if (!(cells[j] = cell_of(&n->b, list, j)))
            return false;
    return true;
}

/* Cells in another shape, of which nobody knows but the run that it has as many. */
const Expr *in_shape_at_run(Node *n, const Expr *x, uint32_t k, const Idx *const *dims)
{
    const Build *b = &n->b;
    const Idx   *total = type_cells(b->c, x->type), *cells = idx_const(b->c->arith, 1);

    for (uint32_t i = 0; i < k; i++)
        cells = idx_mul(b->c->arith, cells, dims[i]);
    if (cells == total)
        return build_reshape_to(b, x, k, dims);
    if (idx_usual(cells) > MAX_ELEMS)
        return node_error(n, E_UNSUPPORTED, "%s cells in a shape of %s", dim_text(b->c, total),
                          dim_text(b->c, cells));
    x = build_reshape_to(b, x, 1, &total);
    if (total->hi < 1)
        x = with_a_cell(b, x, 0, 0);
    x = build_take(b, x, build_arange(b, cells, DT_I64), 0);
    return build_reshape_to(b, x, k, dims);
}

bool reshape_at_run(Node *n)
{
    const Build *b = &n->b;
    bool         zero = node_int(n, "allowzero", 0);
    const Expr  *x = n->in[0], *cells[MAX_RANK], *left[MAX_RANK], *product = NULL, *rest;
    const Idx   *total = type_cells(b->c, x->type), *dims[MAX_RANK + 1];
    RunDim       d[MAX_RANK + 1];
    uint32_t     k;

    if (!shape_cells(n, 1, cells, &k))
        return false;
    for (uint32_t i = 0; i < k; i++) {
        const Expr *copy = i < expr_rank(x) ? cell_form(b, expr_form(x, i)) : NULL;
        const Expr *none = build2(b, "equal", cells[i], cell_number(b, 0), NULL);

        if (copy && !zero)
            cells[i] = build_where(b, none, copy, cells[i]);
        left[i] = build2(b, "equal", cells[i], cell_number(b, -1), NULL);
        rest = build_where(b, left[i], cell_number(b, 1), cells[i]);
        product = product ? build2(b, "multiply", product, rest, NULL) : rest;
    }
    rest = k ? build2(b, "divide", cell_form(b, total), product, NULL) : NULL;
    for (uint32_t i = 0; i < k; i++)
        d[i] = (RunDim){build_where(b, left[i], rest, cells[i]), 0, k == 1 ? total : NULL, i, 1};
    if (!onnx_bind(n, 0, k, d, dims))
        return false;
    /* It has as many cells, or the run ends. */
    for (uint32_t i = 0; i < k; i++)
        product = i ? build2(b, "multiply", product, d[i].cell, NULL) : d[i].cell;
    d[0] =
        (RunDim){k ? build2(b, "subtract", product, cell_form(b, total), NULL) : cell_number(b, 0),
                 0, idx_const(b->c->arith, 0), 0, 1};
    return onnx_bind(n, 0, 1, d, dims + k) && node_done(n, in_shape_at_run(n, x, k, dims));
}

/* Dimensions of x that are not 1 stay; the run says the others. */
bool expand_at_run(Node *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *cells[MAX_RANK];
    const Idx   *dims[MAX_RANK], *bound[MAX_RANK], *one = idx_const(b->c->arith, 1);
    RunDim       d[MAX_RANK];
    uint32_t     k, rank, asked = 0, at[MAX_RANK];

    if (!shape_cells(n, 1, cells, &k))
        return false;
    rank = k > expr_rank(x) ? k : expr_rank(x);
    for (uint32_t i = 0; i < rank; i++) {
        bool has = i + expr_rank(x) >= rank;

        dims[i] = has ? expr_form(x, i + expr_rank(x) - rank) : one;
        if (dims[i] != one || i + k < rank)
            continue;
        at[asked] = i;
        d[asked++] = (RunDim){cells[i + k - rank], 0, NULL, i, 1};
    }
    if (!onnx_bind(n, 0, asked, d, bound))
        return false;
    for (uint32_t i = 0; i < asked; i++)
        dims[at[i]] = bound[i];
    return node_done(n, build_broadcast_to(b, x, rank, dims));
}

bool tile_at_run(Node *n)
{
    const Build *b = &n->b;
    TileAttrs   *a = ATTRS(b, TileAttrs);
    const Expr  *x = n->in[0], *cells[MAX_RANK];
    const Idx  **reps = NEW_ARRAY(b->c->arena, const Idx *, MAX_RANK), *bound[MAX_RANK];
    RunDim       d[MAX_RANK];
    uint32_t     k, at[MAX_RANK], asked = 0;

    if (!shape_cells(n, 1, cells, &k))
        return false;
    if (k != expr_rank(x))
        return node_error(n, E_IMPORT, "%u repeats for %u dimensions", k, expr_rank(x));
    for (uint32_t i = 0; i < k; i++) {
        int64_t times = idx_usual(expr_form(x, i));

        reps[i] = idx_const(b->c->arith, 1); /* of a dimension of nothing, however often */
        if (times <= 0)
            continue;
        at[asked] = i;
        d[asked++] = (RunDim){cells[i], 0, NULL, i, times};
    }
    if (!onnx_bind(n, 0, asked, d, bound))
        return false;
    for (uint32_t i = 0; i < asked; i++)
        reps[at[i]] = bound[i];
    a->reps = (Dims){k, reps};
    return node_done(n, build1(b, "tile", x, a));
}
