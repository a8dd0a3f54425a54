/* Cells by their positions. */
#include "frontends/coreml/coreml.h"

#include <string.h>

/* Positions as whole numbers, those below 0 counted from the end. */
static const Expr *positions(CmlNode *n, const char *name, const Idx *cells)
{
    const Build *b = &n->b;
    const Expr  *at = cml_x(n, name), *size;
    Dims         one = {1, &cells};

    if (!at)
        return NULL;
    if (!dtype_is_int(expr_dtype(at)))
        at = build_cast(b, at, DT_I32);
    size = build_values(b, type_tensor_i64(b->c, expr_dtype(at), 0, NULL), one);
    return size ? build_where(b, build_less(b, at, build_scalar(b, at, 0)), build_add(b, at, size),
                              at)
                : NULL;
}

static const Expr *folded(CmlNode *n, const Expr *e)
{
    const Expr *k = e && e->kind != EXPR_CONST ? build_fold(&n->b, e) : NULL;

    return k ? k : e;
}

/* x[i] */
bool cml_gather(CmlNode *n)
{
    const Expr *x = cml_x(n, "x"), *at;
    int64_t     said = cml_int(n, "axis", 0), batches = n->layer ? 0 : cml_int(n, "batch_dims", 0);
    uint32_t    axis;
    TakeAttrs  *a = ATTRS(&n->b, TakeAttrs);

    (void)cml_arg(n, "validate_indices");
    if (!x || !cml_axis(n, said, expr_rank(x), &axis) ||
        !(at = folded(n, positions(n, "indices", expr_form(x, axis)))))
        return false;
    batches = batches < 0 ? batches + expr_rank(at) : batches;
    if (batches < 0 || batches > axis || batches > expr_rank(at))
        return cml_error(n, E_IMPORT, "%lld batch_dims", (long long)batches);
    a->axis = axis;
    a->batch_dims = batches;
    return cml_done(n, build2(&n->b, "take", x, at, a));
}

bool cml_gather_along(CmlNode *n)
{
    const Expr  *x = cml_x(n, "x"), *at;
    GatherAttrs *a = ATTRS(&n->b, GatherAttrs);
    uint32_t     axis;

    (void)cml_arg(n, "validate_indices");
    if (!x || !cml_axis(n, cml_int(n, "axis", 0), expr_rank(x), &axis) ||
        !(at = folded(n, positions(n, "indices", expr_form(x, axis)))))
        return false;
    a->axis = axis;
    return cml_done(n, build2(&n->b, "gather", x, at, a));
}

/* Positions [.., M] below 0 counted from the ends of the dimensions of x from `first` on. */
static const Expr *positions_nd(CmlNode *n, const Expr *x, uint32_t first)
{
    const Build *b = &n->b;
    const Expr  *at = cml_x(n, "indices"), *size;
    int64_t      m;
    Dims         d;

    if (!at)
        return NULL;
    if (!dtype_is_int(expr_dtype(at)))
        at = build_cast(b, at, DT_I32);
    if (expr_rank(at) < 1)
        return cml_error(n, E_IMPORT, "its indices are a scalar");
    m = build_dim(b, at, expr_rank(at) - 1);
    if (m < 0 || m + first > expr_rank(x))
        return cml_error(n, E_IMPORT, "%lld indices for %s", (long long)m,
                         type_text(b->c, x->type));
    d = (Dims){(uint32_t)m, expr_forms(x).at + first};
    size = build_values(b, type_tensor_i64(b->c, expr_dtype(at), 1, &m), d);
    return size ? folded(n, build_where(b, build_less(b, at, build_scalar(b, at, 0)),
                                        build_add(b, at, size), at))
                : NULL;
}

bool cml_gather_nd(CmlNode *n)
{
    const Build   *b = &n->b;
    const Expr    *x = cml_x(n, "x"), *at;
    GatherNdAttrs *a = ATTRS(b, GatherNdAttrs);
    int64_t        batches = n->layer ? 0 : cml_int(n, "batch_dims", 0);

    (void)cml_arg(n, "validate_indices");
    if (!x)
        return false;
    if (batches < 0 || batches >= expr_rank(x))
        return cml_error(n, E_IMPORT, "%lld batch_dims", (long long)batches);
    if (!(at = positions_nd(n, x, (uint32_t)batches)))
        return false;
    a->batch_dims = batches;
    return cml_done(n, build2(b, "gather_nd", x, build_positions(b, at), a));
}

/* How scattered cells meet those that are there: a number in layers. */
static const char *reduction(CmlNode *n)
{
    static const char *const numbers[] = {"update", "add", "sub", "mul", "div", "max", "min"};
    const char              *mode = n->layer ? NULL : cml_text(n, "mode", "add");
    int64_t                  i = n->layer ? cml_int(n, "mode", 0) : 0;

    (void)cml_arg(n, "validate_indices");
    for (; n->layer && i >= 0 && i < (int64_t)COUNT(numbers);)
        return numbers[i];
    for (uint32_t k = 0; mode && k < COUNT(numbers); k++)
        if (!strcmp(numbers[k], mode))
            return numbers[k];
    return cml_error(n, E_UNSUPPORTED, "mode %s", mode ? mode : "of that number");
}

/* sub and div as add and mul of what is opposite. */
static const Expr *updates(CmlNode *n, const char **mode)
{
    const Build *b = &n->b;
    const Expr  *u = cml_x(n, "updates");

    if (u && !strcmp(*mode, "sub")) {
        *mode = "add";
        return build1(b, "negative", u, NULL);
    }
    if (u && !strcmp(*mode, "div")) {
        *mode = "mul";
        return build_div(b, build_scalar(b, u, 1), u);
    }
    return u;
}

bool cml_scatter_along(CmlNode *n)
{
    const Expr           *x = cml_x(n, "data"), *at, *u;
    const char           *mode = reduction(n);
    ScatterElementsAttrs *a = ATTRS(&n->b, ScatterElementsAttrs);
    uint32_t              axis;

    if (!x || !mode || !cml_axis(n, cml_int(n, "axis", 0), expr_rank(x), &axis) ||
        !(at = positions(n, "indices", expr_form(x, axis))) || !(u = updates(n, &mode)))
        return false;
    a->axis = axis;
    a->reduction = mode;
    return cml_done(n, build3(&n->b, "scatter_elements", x, at, u, a));
}

bool cml_scatter_nd(CmlNode *n)
{
    const Build    *b = &n->b;
    const Expr     *x = cml_x(n, "data"), *at, *u;
    const char     *mode = reduction(n);
    ScatterNdAttrs *a = ATTRS(b, ScatterNdAttrs);

    if (!x || !mode || !(at = positions_nd(n, x, 0)) || !(u = updates(n, &mode)))
        return false;
    a->mode = mode;
    return cml_done(n, build3(b, "scatter_nd", x, build_positions(b, at), u, a));
}

/* Slices of data along the axis; of the updates the dimensions of the indices come first. */
bool cml_scatter(CmlNode *n)
{
    const Build    *b = &n->b;
    const Expr     *x = cml_x(n, "data"), *at, *u;
    const char     *mode = reduction(n);
    ScatterNdAttrs *a = ATTRS(b, ScatterNdAttrs);
    uint32_t        axis, rank, k;
    int64_t         moved[2 * MAX_RANK];

    if (!x || !mode || !cml_axis(n, cml_int(n, "axis", 0), rank = expr_rank(x), &axis) ||
        !(at = positions(n, "indices", expr_form(x, axis))) || !(u = updates(n, &mode)))
        return false;
    k = expr_rank(at);
    if (expr_rank(u) != rank - 1 + k || rank - 1 + k > MAX_RANK)
        return cml_error(n, E_IMPORT, "the updates are %s for indices of %u dimensions",
                         type_text(b->c, u->type), k);
    for (uint32_t i = 0; i < rank - 1 + k; i++)
        moved[i] = i < k ? axis + i : i < k + axis ? i - k : i;
    a->mode = mode;
    a->axes = ints_of(b->c, 1, (int)axis);
    u = build_transpose(b, u, rank - 1 + k, moved);
    return cml_done(n, build3(b, "scatter_nd", x, build_expand_dims(b, at, 0, 1), u, a));
}

/* ---- embeddings ------------------------------------------------------------------------------------------ */

/* The columns of [channels, words]. */
static const Expr *embedded(CmlNode *n, const Expr *at, int64_t channels, int64_t words)
{
    const Build *b = &n->b;
    int64_t      dims[2] = {channels, words};
    const Expr  *w = cml_weight(n, "weights", 2, dims, 0), *bias = NULL;
    TakeAttrs   *a = ATTRS(b, TakeAttrs);

    if (!w || !at)
        return NULL;
    if (cml_bool(n, "has_bias", false)) {
        if (!(bias = cml_weight(n, "bias", 1, &channels, 0)))
            return NULL;
    } else {
        (void)cml_has(n, "bias");
    }
    a->axis = 0;
    w = build2(b, "take", build_transpose(b, w, 2, (int64_t[]){1, 0}), build_cast(b, at, DT_I32),
               a);
    return bias ? build_add(b, w, bias) : w;
}

/* [N, 1, 1, 1] to [N, channels, 1, 1]. */
bool cml_embedding(CmlNode *n)
{
    const Build *b = &n->b;
    int64_t      words = cml_int(n, "input_dim", 0), channels = cml_int(n, "output_channels", 0);
    const Expr  *x = cml_image(n, "x", 2), *y;
    const Idx   *one = idx_const(b->c->arith, 1);

    if (!x)
        return false;
    for (uint32_t i = 1; i < 4; i++)
        if (expr_form(x, i) != one)
            return cml_error(n, E_IMPORT, "its input is %s", type_text(b->c, x->type));
    y = embedded(n, build_reshape_to(b, x, 1, expr_forms(x).at), channels, words);
    return y && cml_done_image(
                    n, build_reshape_to(
                           b, y, 4, (const Idx *[]){expr_form(y, 0), expr_form(y, 1), one, one}));
}

/* [.., 1] to [.., channels]. */
bool cml_embedding_nd(CmlNode *n)
{
    const Build *b = &n->b;
    int64_t      words = cml_int(n, "vocab_size", 0), channels = cml_int(n, "embedding_size", 0);
    const Expr  *x = cml_x(n, "x");
    uint32_t     rank = x ? expr_rank(x) : 0;

    if (!x)
        return false;
    if (rank < 1 || expr_form(x, rank - 1) != idx_const(b->c->arith, 1))
        return cml_error(n, E_IMPORT, "its input is %s", type_text(b->c, x->type));
    return cml_done(
        n, embedded(n, build_reshape_to(b, x, rank - 1, expr_forms(x).at), channels, words));
}

/* ---- where, bands ----------------------------------------------------------------------------------------- */

bool cml_non_zero(CmlNode *n)
{
    const Build *b = &n->b;
    BoundDim     bound = {cml_bound, n};
    const Expr  *x = cml_x(n, "x");

    if (!x)
        return false;
    x = build_find(b, &bound, x);
    return cml_done(n, build_cast(b, x, n->layer ? DT_F32 : DT_I32));
}

bool cml_one_hot(CmlNode *n)
{
    const Build *b = &n->b;
    OneHotAttrs *a = ATTRS(b, OneHotAttrs);
    int64_t      depth = cml_int(n, "one_hot_vector_size", 0), axis = cml_int(n, "axis", -1);
    const Expr  *at = cml_x(n, "indices"), *on, *off;
    uint32_t     place;
    Dims         d;

    if (!at)
        return false;
    if (n->layer && n->nargs > 1 &&
        (!cml_operand_forms(n, "one_hot_vector_size", &d) || d.n != 1 ||
         !idx_is_const(d.at[0], &depth)))
        return cml_error(n, E_UNSUPPORTED, "its size has to be known when it is compiled");
    if (depth < 1 || depth > MAX_ELEMS || !cml_axis(n, axis, expr_rank(at) + 1, &place))
        return cml_error(n, E_IMPORT, "%lld classes along axis %lld", (long long)depth,
                         (long long)axis);
    if (n->layer) {
        on = expr_scalar(b->c, DT_F32, cml_float(n, "on_value", 1));
        off = expr_scalar(b->c, DT_F32, cml_float(n, "off_value", 0));
    } else if (!cml_maybe(n, "on_value", &on) || !cml_maybe(n, "off_value", &off)) {
        return false;
    }
    on = on ? on : expr_scalar(b->c, DT_I32, 1);
    off = off ? off : build_scalar(b, on, 0);
    a->depth = depth;
    a->axis = place;
    a->dtype = expr_dtype(on);
    return cml_done(n, build3(b, "one_hot", build_cast(b, at, DT_I32), on, off, a));
}

static const Expr *triangle(const Build *b, const Expr *x, int64_t k, bool upper)
{
    TriluAttrs *a = ATTRS(b, TriluAttrs);

    a->upper = upper;
    a->k = k;
    return build1(b, "trilu", x, a);
}

/* Below 0: all. */
bool cml_band_part(CmlNode *n)
{
    int64_t     lower = cml_int(n, n->layer ? "num_lower" : "lower", -1);
    int64_t     upper = cml_int(n, n->layer ? "num_upper" : "upper", -1);
    const Expr *x = cml_x(n, "x");

    if (x && lower >= 0)
        x = triangle(&n->b, x, -lower, true);
    return cml_done(n, x && upper >= 0 ? triangle(&n->b, x, upper, false) : x);
}

bool cml_triangle(CmlNode *n)
{
    const Expr *x = cml_x(n, "x");

    return cml_done(n, x ? triangle(&n->b, x, cml_int(n, "k", 0), n->row->number == 1325) : NULL);
}
