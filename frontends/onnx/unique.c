/* Unique: cells, or rows along an axis, that are equal count once.
 *
 *     x      2 1 1 3 4 3        rows in order, each beside the one before it; those that differ
 *     order  1 2 0 3 5 4        begin a group
 *     begins 1 0 1 1 0 1
 *     group  0 0 1 2 2 3
 *     values 1 2 3 4   indices 1 0 3 4   inverse 1 0 0 2 3 2   counts 2 1 2 1
 *
 * Sorting is stable, so a group begins with its first row.  How many groups there are is a
 * dimension that values decide. */
#include "frontends/onnx/onnx.h"

/* Rows in order by one column after the other, from the last: the order of those before it is kept.
 */
typedef struct {
    const Expr *rows; /* [n, columns] */
    const Idx  *columns;
} Rows;

static const Expr *sorted_by(const Build *b, const Expr *order, const Expr *key)
{
    SortAttrs *a = ATTRS(b, SortAttrs);

    a->axis = 0;
    a->is_ascend = true;
    a->dtype = DT_I64;
    key = build_take(b, key, order, 0);
    return key ? build_take(b, order, build1(b, "argsort", key, a), 0) : NULL;
}

static bool by_column(Node *n, void *user, const Expr *i, const Expr *const *state,
                      const Expr **next, const Expr **piece)
{
    const Rows  *c = user;
    const Build *b = &n->b;
    const Expr  *last = build_reshape(b, cell_form(b, c->columns), 0, NULL), *at;

    (void)piece;
    at = build_by(b, "subtract", build_sub(b, last, i), 1);
    return (next[0] = sorted_by(b, state[0], build_take(b, c->rows, at, 1))) != NULL;
}

/* The order of rows [n, columns].  Where the run says how many there are, but not more than a
 * number, as many are sorted as there may be, those behind the end last. */
static const Expr *order_of(Node *n, const Expr *rows)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    const Idx   *count = expr_form(rows, 0),
              *most = idx_is_open(count) ? count : idx_const(A, count->hi);
    const Expr *first = build_arange(b, most, DT_I64), *beyond = NULL, *order;
    Rows        c = {rows, expr_form(rows, 1)};
    int64_t     one;

    if (count != most) {
        beyond = build2(b, "less_equal", cell_form(b, count), first, NULL);
        c.rows = build_take(b, rows, first, 0);
    }
    if (idx_is_const(c.columns, &one) && one == 1)
        order = sorted_by(b, first, build_reshape_to(b, c.rows, 1, &most));
    else if (!onnx_rounds(n, c.columns, 1, &first, 0, by_column, &c, &order))
        return NULL;
    if (beyond)
        order = sorted_by(b, order, build_cast(b, beyond, DT_I32));
    return build_slice_to(b, order, 0, idx_const(A, 0), count);
}

/* Do rows [n, columns] in order differ from the ones before them?  NaN is equal to NaN. */
static const Expr *begins_of(const Build *b, const Expr *rows)
{
    const Idx  *count = expr_form(rows, 0);
    int64_t     across = 1;
    const Expr *at = build_arange(b, count, DT_I64), *before, *differ;

    before = build2(b, "maximum", build_by(b, "subtract", at, 1), cell_number(b, 0), NULL);
    before = build_take(b, rows, before, 0);
    differ = build2(b, "not_equal", rows, before, NULL);
    if (dtype_is_float(expr_dtype(rows))) {
        const Expr *none = build2(b, "logical_and", build2(b, "not_equal", rows, rows, NULL),
                                  build2(b, "not_equal", before, before, NULL), NULL);

        differ = build2(b, "logical_and", differ, build1(b, "logical_not", none, NULL), NULL);
    }
    differ = build_reduce(b, "any", differ, 1, &across, false);
    return build2(b, "logical_or", differ, build_by(b, "equal", at, 0), NULL);
}

/* to[at[i]] = v[i], of n cells. */
static const Expr *scattered(const Build *b, const Idx *n, const Expr *at, const Expr *v)
{
    return build3(b, "scatter_elements", build_zeros_of(b, DT_I64, 1, &n), at, v,
                  ATTRS(b, ScatterElementsAttrs));
}

/* Rows [n, columns]; x in which they lie along `axis`. */
static bool unique_rows(Node *n, const Expr *x, uint32_t axis, const Expr *rows, bool sorted)
{
    const Build *b = &n->b;
    const Idx   *count = expr_form(rows, 0), *groups;
    const Expr  *order = order_of(n, rows), *begins, *group, *at, *indices, *inverse, *end, *sizes;

    begins = order ? begins_of(b, build_take(b, rows, order, 0)) : NULL;
    if (!begins || !(at = onnx_positions(n, begins, 0, axis, &group)))
        return false;
    groups = expr_form(at, 0);
    indices = build_take(b, order, at, 0);
    inverse = scattered(b, count, order, group);
    end = build_by(b, "add", build_arange(b, groups, DT_I64), 1);
    end = build_where(b, build2(b, "equal", end, cell_form(b, groups), NULL), cell_form(b, count),
                      build_take(b, at, end, 0));
    sizes = build_sub(b, end, at);
    if (!sorted) { /* groups in the order of their first rows */
        const Expr *number = build_arange(b, count, DT_I64), *first, *place, *from;

        first = build2(b, "equal", build_take(b, indices, inverse, 0), number, NULL);
        first = build1(b, "cumsum", build_cast(b, first, DT_I64), NULL);
        place = build_by(b, "subtract", build_take(b, first, indices, 0), 1);
        from =
            scattered(b, idx_addc(b->c->arith, groups, 1), place, build_arange(b, groups, DT_I64));
        from = build_slice_to(b, from, 0, idx_const(b->c->arith, 0), groups);
        indices = build_take(b, indices, from, 0);
        sizes = build_take(b, sizes, from, 0);
        inverse = build_take(b, place, inverse, 0);
    }
    n->out[0] = build_take(b, x, indices, axis);
    n->out[1] = indices;
    n->out[2] = inverse;
    n->out[3] = sizes;
    return n->out[0] && indices && inverse && sizes;
}

bool convert_unique(Node *n)
{
    return onnx_unique(n, node_int(n, "sorted", 1) != 0);
}

bool onnx_unique(Node *n, bool sorted)
{
    const Build *b = &n->b;
    const Expr  *x, *rows;
    const Idx   *flat[2], *none[1] = {idx_const(b->c->arith, 0)};
    int64_t      perm[MAX_RANK];
    uint32_t     axis = 0, rank;

    if (!node_need_rank(n, 0, 0, MAX_RANK))
        return false;
    x = n->in[0];
    if (!node_attr(n, "axis")) {
        flat[0] = type_cells(b->c, x->type);
        x = build_reshape_to(b, x, 1, flat);
    } else if (!node_axis(n, node_int(n, "axis", 0), expr_rank(x), &axis)) {
        return false;
    }
    if (!x)
        return false;
    if (expr_empty(x)) {
        if (expr_form(x, axis)->hi > 0)
            return node_error(n, E_UNSUPPORTED, "rows without cells");
        n->out[0] = x;
        for (uint32_t i = 1; i < 4; i++)
            n->out[i] = build_zeros_of(b, DT_I64, 1, none);
        return true;
    }
    rank = expr_rank(x);
    for (uint32_t i = 0; i < rank; i++)
        perm[i] = i == 0 ? axis : i <= axis ? i - 1 : i;
    rows = build_transpose(b, x, rank, perm);
    if (dtype_is_bool(expr_dtype(x)))
        rows = build_cast(b, rows, DT_I32);
    flat[0] = flat[1] = idx_const(b->c->arith, 1);
    for (uint32_t i = 0; rows && i < rank; i++)
        flat[i > 0] = idx_mul(b->c->arith, flat[i > 0], expr_form(rows, i));
    rows = build_reshape_to(b, rows, 2, flat);
    return rows && unique_rows(n, x, axis, rows, sorted);
}
