/* Sums, extremes, order.  What reduces all dimensions gives one cell, in one dimension. */
#include "frontends/mxnet/mxnet.h"

#include <string.h>

/* The axes of an attribute, or with `exclude` all others; none are all. */
static bool axes_of(const MxNode *n, const char *name, bool exclude, uint32_t *count, int64_t *axes)
{
    uint32_t rank = expr_rank(n->in[0]), k = 0;
    int64_t  given[MAX_RANK];

    if (!build_axes(&n->b, mx_ints(n, name), rank, 0, count, given))
        return false;
    exclude = exclude || !*count;
    for (uint32_t i = 0; i < rank; i++) {
        bool in = false;

        for (uint32_t j = 0; j < *count; j++)
            in |= given[j] == i;
        if (in != exclude)
            axes[k++] = i;
    }
    *count = k;
    return true;
}

static const Expr *at_least_one(const Build *b, const Expr *y)
{
    return y && expr_rank(y) == 0 ? build_reshape(b, y, 1, (int64_t[]){1}) : y;
}

bool mx_reduce(MxNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0];
    int64_t      axes[MAX_RANK];
    uint32_t     count;

    if (!axes_of(n, "axis", mx_bool(n, "exclude"), &count, axes))
        return false;
    if (str_starts(n->row->name, "nan"))
        x = build_where(b, build1(b, "isnan", x, NULL),
                        build_scalar(b, x, !strcmp(n->row->name, "nanprod")), x);
    if (!count) /* all were excluded */
        return mx_done(n, x);
    return mx_done(n, at_least_one(b, build_reduce_image(b, n->row->relay, x, count, axes,
                                                         mx_bool(n, "keepdims"))));
}

bool mx_norm(MxNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0];
    bool         one = mx_int(n, "ord") == 1;
    DType        t = expr_dtype(x);
    int64_t      axes[MAX_RANK];
    uint32_t     count;

    if (!one && mx_int(n, "ord") != 2)
        return mx_error(n, E_UNSUPPORTED, "ord=%s", mx_text(n, "ord"));
    if (!axes_of(n, "axis", false, &count, axes) || !mx_type(n, "out_dtype", &t))
        return false;
    x = build_cast(b, x, t);
    x = one ? build1(b, "abs", x, NULL) : build_mul(b, x, x);
    x = build_reduce(b, "sum", x, count, axes, mx_bool(n, "keepdims"));
    return mx_done(n, at_least_one(b, one ? x : build1(b, "sqrt", x, NULL)));
}

/* Mean and variance. */
bool mx_moments(MxNode *n)
{
    const Build   *b = &n->b;
    VarianceAttrs *v = ATTRS(b, VarianceAttrs);
    bool           keep = mx_bool(n, "keepdims");
    int64_t        axes[MAX_RANK];
    uint32_t       count;

    if (!axes_of(n, "axes", false, &count, axes))
        return false;
    v->axis = ints_dup(b->c, axes, count);
    v->keepdims = keep;
    return mx_done(n, at_least_one(b, build_reduce(b, "mean", n->in[0], count, axes, keep))) &&
           mx_put(n, 1,
                  at_least_one(b, build2(b, "variance", n->in[0],
                                         build_reduce(b, "mean", n->in[0], count, axes, true), v)));
}

/* ---- order ------------------------------------------------------------------------------------------ */

/* The operand and its axis, by an attribute that may be None: of all cells in a row. */
static const Expr *along(MxNode *n, uint32_t *axis)
{
    const Idx *cells = type_cells(n->b.c, n->in[0]->type);
    MxAttrSpec s;
    bool       none = mx_attr_spec(n->row->schema, "axis", &s) && mx_is_none(mx_text(n, "axis"));

    *axis = 0;
    if (none)
        return build_reshape_to(&n->b, n->in[0], 1, &cells);
    return mx_rank(n, 0, 1, MAX_RANK) && mx_axis(n, mx_int(n, "axis"), expr_rank(n->in[0]), axis)
               ? n->in[0]
               : NULL;
}

static bool arg_reduce(MxNode *n, const Expr *x, uint32_t axis, bool keep)
{
    const Build    *b = &n->b;
    ArgReduceAttrs *a = ATTRS(b, ArgReduceAttrs);
    const Expr     *y;

    if (!x)
        return false;
    a->axis = axis;
    a->keepdims = keep;
    a->dtype = DT_I64;
    y = build1(b, n->row->relay, x, a);
    return mx_done(n, at_least_one(b, y ? build_cast(b, y, expr_dtype(n->in[0])) : NULL));
}

/* Positions are numbers of the data's type. */
bool mx_arg_reduce(MxNode *n)
{
    bool        keep = mx_bool(n, "keepdims");
    uint32_t    axis, rank = expr_rank(n->in[0]);
    const Expr *x = along(n, &axis);

    if (!arg_reduce(n, x, axis, keep))
        return false;
    if (mx_has(n, "axis") || !keep)
        return true;
    return mx_done(
        n, build_reshape(&n->b, n->out[0], rank,
                         (int64_t[MAX_RANK]){1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}));
}

bool mx_argmax_channel(MxNode *n)
{
    return mx_rank(n, 0, 1, MAX_RANK) && arg_reduce(n, n->in[0], expr_rank(n->in[0]) - 1, false);
}

bool mx_topk(MxNode *n)
{
    const Build *b = &n->b;
    TopKAttrs   *a = ATTRS(b, TopKAttrs);
    const char  *what = mx_text(n, "ret_typ");
    uint32_t     axis;
    const Expr  *x = along(n, &axis), *both, *at;
    int64_t      cells;
    DType        t = DT_F32;

    if (!x || !mx_type(n, "dtype", &t))
        return false;
    if (!strcmp(what, "mask"))
        return mx_error(n, E_UNSUPPORTED, "ret_typ=mask");
    cells = build_dim(b, x, axis);
    a->k = mx_int(n, "k");
    a->k = a->k < 1 || a->k > cells ? cells : a->k;
    a->axis = axis;
    a->is_ascend = mx_bool(n, "is_ascend");
    a->dtype = DT_I64;
    both = build1(b, "topk", x, a);
    at = build_proj(b, both, 1);
    at = at ? build_cast(b, at, t) : NULL;
    if (!strcmp(what, "indices"))
        return mx_done(n, at);
    return mx_done(n, build_proj(b, both, 0)) && at && (strcmp(what, "both") || mx_put(n, 1, at));
}

/* Values in their order, or where they were. */
bool mx_sort(MxNode *n)
{
    const Build *b = &n->b;
    SortAttrs   *a = ATTRS(b, SortAttrs);
    uint32_t     axis;
    const Expr  *x = along(n, &axis), *y;
    DType        t = DT_F32;
    bool         values = !strcmp(n->row->name, "sort");

    if (!x || (!values && !mx_type(n, "dtype", &t)))
        return false;
    a->axis = axis;
    a->is_ascend = mx_bool(n, "is_ascend");
    a->dtype = DT_I64;
    y = build1(b, n->row->relay, x, a);
    return mx_done(n, y && !values ? build_cast(b, y, t) : y);
}
