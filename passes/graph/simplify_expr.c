/* simplify_expr: local rewrites that remove work or bring calls to one form.
 *
 *   reshape(reshape(x))           -> reshape(x)          views of the same type, of views
 *   transpose(transpose(x))       -> transpose(x)        or x, or a reshape if only 1s move
 *   transpose(reshape(transpose(x))) -> reshape(x)       if all is moved back
 *   transpose(layout_transform(x)) -> layout_transform(x)
 *   layout_transform(layout_transform(x)) -> x           if it is back in its layout
 *   transpose(scatter_nd(transpose(x))) -> scatter_nd(x, axes=..)    if both undo each other
 *   cast(x) to x's own type, copy, broadcast_to, tile, pad by nothing, slice of all -> x
 *   x * 1, x / 1, x - 0           -> x                   the same bits
 *   x / 2^k                       -> x * 2^-k            exact
 *   x + const [1, 1]              -> x + v                of any such arithmetic
 *   clip(x, 0, v) * (1 / v)       -> clip(x, 0, v) / v            a hard_sigmoid, v no power of 2
 *   clip(x + (y + 3), 0, 6)       -> clip((x + y) + 3, 0, 6)      of a sum
 *   power(x, 2)                   -> x * x
 *   add(x, const [C, 1, 1])       -> nn.bias_add(x, const [C])    what layouts and fusion know
 *   add(const [C], nn.dense(x))   -> nn.bias_add(nn.dense(x), const [C])    also of
 * reshape(nn.dense(x)) reshape(nn.dense(reshape(x))) -> nn.dense(x)         of one matrix; bias too
 *   transpose(nn.pad(x))          -> nn.pad(transpose(x))
 *   nn.conv2d(nn.pad(x))          -> nn.conv2d(x, padding=..)     zeros around the image
 *   nn.batch_matmul(x, const [1, k, n])  -> nn.dense(x, const [n, k]), nn.matmul likewise
 *   tile(x)                       -> reshape(broadcast_to(reshape(x)))    rows are read in order
 *   nn.batch_matmul(x, transpose(y))  -> nn.batch_matmul(x, y, transpose_b=..)    rows and columns
 *   nn.batch_matmul(x, y: [b, k, 1])  -> reshape(nn.batch_matmul(reshape(y), x, transpose_b))
 *   nn.global_avg_pool2d(x: [N, C, 1, W]) -> mean(x)      of images of one row
 *   nn.relu(nn.relu(x))           -> nn.relu(x)
 *   nn.bias_add(nn.conv2d(x), zeros) -> nn.conv2d(x)      or another sum of products
 *   (x.0, x.1) of a pair x        -> x
 *   and what simplify_pick.c says of what picks or orders cells, simplify_slope.c of slopes below 0
 *
 * All are exact but those of the clip, whose quotient is rounded once, where the factor was rounded
 * before, and whose sum is rounded in the order of layers, and that choices of floats which are
 * sums (simplify_pick.c) make no NaN of what is not chosen.  One rewrite, kids first, so that
 * chains collapse. */
#include "passes/graph/simplify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A constant whose elements all equal v, and that does not make the result larger than x. */
static bool splat_beside(const Expr *k, const Expr *x, const Expr *result, double *v)
{
    return expr_const_f(k, v) && x->type && result->type && same_dims(x->type, result->type) &&
           dtype_eq(x->type->dtype, result->type->dtype);
}

static bool exact_reciprocal(double v, DType t)
{
    int e;

    return isfinite(v) && v != 0 && fabs(frexp(v, &e)) == 0.5 && abs(e) < (t.bits == 16 ? 12 : 100);
}

/* One number beside a tensor has no dimensions. */
static const Expr *number_form(Ctx *c, const Expr *e)
{
    static const char *const op[] = {"add",     "subtract", "multiply", "divide",
                                     "maximum", "minimum",  "power"};
    const Expr              *args[2];
    int64_t                  cells;
    uint32_t                 at = 0;
    double                   v;

    while (at < COUNT(op) && !call_is(e, op[at]))
        at++;
    if (at == COUNT(op))
        return e;
    for (uint32_t i = 0; i < 2; i++) {
        const Expr *k = call_arg(e, i);

        args[i] = k;
        if (k->kind == EXPR_CONST && expr_has_shape(k) && k->type->n &&
            type_elems(k->type, &cells) && cells == 1 &&
            splat_beside(k, call_arg(e, 1 - i), e, &v) && v == (double)(float)v)
            args[i] = expr_scalar(c, k->type->dtype, v);
    }
    return args[0] == call_arg(e, 0) && args[1] == call_arg(e, 1)
               ? e
               : expr_call(c, call_op(e), 2, args, e->u.attrs, e->loc);
}

/* clip(x, 0, v) * k, where k is 1 / v as x's type has it: the share of v that a hard_sigmoid is, as
 * an exporter writes the division.  0: it is something else. */
static double share_of(const Expr *x, const Expr *k, const Expr *e)
{
    double v, by;

    if (!call_is(x, "clip") || !is_float(e) || e->type->dtype.bits < 32 ||
        ATTRS_OF(ClipAttrs, x)->a_min != 0 || !splat_beside(k, x, e, &by))
        return 0;
    v = ATTRS_OF(ClipAttrs, x)->a_max;
    if (!(v > 0) || exact_reciprocal(v, e->type->dtype))
        return 0;
    return by == (e->type->dtype.bits == 32 ? (double)(float)(1 / v) : 1 / v) ? v : 0;
}

/* The number that an addition adds; what it is added to. */
static bool adds_number(const Expr *e, const Expr **x, const Expr **k)
{
    double v;

    for (uint32_t i = 0; call_is(e, "add") && i < 2; i++) {
        *x = call_arg(e, i);
        *k = call_arg(e, 1 - i);
        if ((*k)->kind == EXPR_CONST && splat_beside(*k, *x, e, &v))
            return true;
    }
    return false;
}

/* clip(x + (y + v)): the sum before the number, as a layer before its hard_sigmoid. */
static const Expr *clip_of_sum(Ctx *c, const Expr *e)
{
    const Expr *sum = call_arg(e, 0), *x, *y, *k;

    if (!is_float(e) || !call_is(sum, "add") || adds_number(sum, &x, &k))
        return e;
    for (uint32_t i = 0; i < 2; i++) {
        x = call_arg(sum, 1 - i);
        if (!adds_number(call_arg(sum, i), &y, &k) || x->type != sum->type || y->type != sum->type)
            continue;
        x = make2(c, "add", i ? x : y, i ? y : x, NULL, sum->loc);
        return make1(c, "clip", make2(c, "add", x, k, NULL, sum->loc), e->u.attrs, e->loc);
    }
    return e;
}

static const Expr *arithmetic(Ctx *c, const Expr *e)
{
    const Expr *x = call_arg(e, 0), *y = call_arg(e, 1);
    double      v;

    if (call_is(e, "multiply")) {
        if (splat_beside(y, x, e, &v) && v == 1)
            return x;
        if (splat_beside(x, y, e, &v) && v == 1)
            return y;
        for (uint32_t i = 0; i < 2; i++)
            if ((v = share_of(call_arg(e, i), call_arg(e, 1 - i), e)) > 0)
                return make2(c, "divide", call_arg(e, i), expr_scalar(c, e->type->dtype, v), NULL,
                             e->loc);
    } else if (call_is(e, "divide") && splat_beside(y, x, e, &v)) {
        if (v == 1)
            return x;
        if (is_float(e) && exact_reciprocal(v, e->type->dtype))
            return make2(c, "multiply", x, expr_scalar(c, e->type->dtype, 1 / v), NULL, e->loc);
    } else if (call_is(e, "subtract") && splat_beside(y, x, e, &v) && v == 0 && !signbit(v)) {
        return x;
    } else if (call_is(e, "add") && !is_float(e)) {
        if (splat_beside(y, x, e, &v) && v == 0)
            return x;
        if (splat_beside(x, y, e, &v) && v == 0)
            return y;
    } else if (call_is(e, "power") && is_float(e) && splat_beside(y, x, e, &v)) {
        if (v == 2)
            return make2(c, "multiply", x, x, NULL, e->loc);
        if (v == 1)
            return x;
    }
    return e;
}

/* ---- views, transposes ---------------------------------------------------------------------- */

static const Expr *reshape_to(Ctx *c, const Expr *x, const Type *t, Loc loc)
{
    return make_reshape_to(c, x, t->n, t->dims, loc);
}

static bool no_zero_dim(const Type *t)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (t->dims[i]->hi == 0) /* reshape reads 0 as "the same" */
            return false;
    return true;
}

static const Expr *view(Ctx *c, const Expr *e);

/* The layer in a view of e, which its bias may follow; NULL: there is none. */
static const Expr *dense_of(const Expr *e)
{
    if (call_is(e, "nn.bias_add") && expr_has_shape(e) &&
        axis_from_front(ATTRS_OF(BiasAddAttrs, e)->axis, e->type->n) + 1 == e->type->n)
        e = call_arg(e, 0);
    return call_is(e, "nn.dense") ? e : NULL;
}

/* Is all but the last two dimensions 1?  Rows of others would be batches, each a product of its
 * own.
 */
static bool is_matrix(const Type *t)
{
    int64_t v;

    for (uint32_t i = 0; i + 2 < t->n; i++)
        if (!type_dim(t, i, &v) || v != 1)
            return false;
    return true;
}

/* reshape(nn.dense(reshape(x))): the rows that were put together stay apart, so that what follows
 * can join the product. */
static const Expr *rows_apart(Ctx *c, const Expr *e, const Expr *dense)
{
    const Expr   *v = call_arg(dense, 0), *w = call_arg(dense, 1), *x, *y;
    const Idx    *dims[TE_MAX_AXES];
    uint32_t      n = e->type->n;
    BiasAddAttrs *a = ATTRS_NEW(c, BiasAddAttrs);

    if (!is_view(v) || !expr_has_shape(e) || n <= v->type->n || n > TE_MAX_AXES ||
        !is_matrix(e->type) || !no_zero_dim(e->type) || !no_zero_dim(v->type) ||
        e->type->dims[n - 1] != w->type->dims[0])
        return e;
    memcpy(dims, e->type->dims, n * sizeof *dims);
    dims[n - 1] = v->type->dims[v->type->n - 1];
    x = view(c, make_reshape_to(c, v, n, dims, v->loc));
    y = make2(c, "nn.dense", x, w, ATTRS_COPY(c, DenseAttrs, dense), dense->loc);
    if (!y || y->type != e->type || call_arg(e, 0) == dense)
        return y && y->type == e->type ? y : e;
    a->axis = n - 1;
    return make2(c, "nn.bias_add", y, call_arg(call_arg(e, 0), 1), a, call_arg(e, 0)->loc);
}

static const Expr *view(Ctx *c, const Expr *e)
{
    const Expr *x = call_arg(e, 0);

    if (dense_of(x))
        return rows_apart(c, e, dense_of(x));

    if (e->type == x->type)
        return x;
    if (expr_has_shape(e) && expr_has_shape(x) && no_zero_dim(e->type) &&
        (is_view(x) || !call_is(e, "reshape"))) {
        while (is_view(x) && expr_has_shape(call_arg(x, 0)))
            x = call_arg(x, 0);
        return e->type == x->type ? x : reshape_to(c, x, e->type, e->loc);
    }
    return e;
}

/* transpose(layout_transform(x, .., "NCHW"), axes) gives the permuted layout at once. */
static const Expr *transposed_layout(Ctx *c, const Expr *e, const Expr *x, const uint32_t *axes)
{
    LayoutTransformAttrs *a = ATTRS_COPY(c, LayoutTransformAttrs, x);
    char                  layout[17] = {0};

    if (strlen(a->dst_layout) != e->type->n)
        return e; /* blocked */
    for (uint32_t i = 0; i < e->type->n; i++)
        layout[i] = a->dst_layout[axes[i]];
    a->dst_layout = intern(c->strings, layout);
    return make1(c, "layout_transform", call_arg(x, 0), a, e->loc);
}

/* Blocks as plain channels, and as the same blocks again. */
static const Expr *layout_back(const Expr *e)
{
    const Expr                 *x = call_arg(e, 0);
    const LayoutTransformAttrs *a = ATTRS_OF(LayoutTransformAttrs, e),
                               *was = ATTRS_OF(LayoutTransformAttrs, x);
    bool back = call_is(x, "layout_transform") && !a->channels && !was->channels &&
                !strcmp(a->src_layout, was->dst_layout) &&
                !strcmp(a->dst_layout, was->src_layout) && e->type == call_arg(x, 0)->type;

    return back ? call_arg(x, 0) : e;
}

/* Cells of a transposed tensor, which is then transposed back, are cells of the tensor. */
static const Expr *transposed_scatter(Ctx *c, const Expr *e, const Expr *x, const uint32_t *outer)
{
    const Expr     *data = call_arg(x, 0), *indices = call_arg(x, 1), *updates = call_arg(x, 2);
    ScatterNdAttrs *a = ATTRS_COPY(c, ScatterNdAttrs, x);
    TransposeAttrs *t = ATTRS_NEW(c, TransposeAttrs);
    uint32_t        n = e->type->n, inner[16], k = 0;
    int64_t         axes[16], order[32], m;
    bool            same = true;

    if (a->axes.n || !call_is(data, "transpose") || !type_dim(indices->type, 0, &m))
        return e;
    axes_of_transpose(data, inner);
    for (uint32_t i = 0; i < n; i++)
        if (inner[outer[i]] != i)
            return e;
    for (uint32_t i = 0; i < m; i++)
        axes[i] = inner[i];
    /* Behind what is indexed, updates have the other dimensions of x, in its order. */
    for (; k + 1 < indices->type->n; k++)
        order[k] = k;
    for (uint32_t i = 0; i < n; i++)
        if (outer[i] >= m)
            order[k++] = indices->type->n - 1 + outer[i] - m;
    for (uint32_t i = 0; i < k; i++)
        same &= order[i] == i;
    t->axes = ints_dup(c, order, k);
    a->axes = ints_dup(c, axes, (uint32_t)m);
    if (!same && !(updates = make1(c, "transpose", updates, t, e->loc)))
        return NULL;
    return expr_call_name(c, "scatter_nd", 3, (const Expr *[]){call_arg(data, 0), indices, updates},
                          a, e->loc);
}

/* transpose(nn.pad(x)), where the border is around an image: it is put around what is transposed,
 * as a convolution behind it takes it. */
static const Expr *pad_transposed(Ctx *c, const Expr *e)
{
    const Expr     *p = call_arg(e, 0), *x;
    const PadAttrs *w = ATTRS_OF(PadAttrs, p);
    PadAttrs       *now;
    uint32_t        axes[16], n = e->type->n;
    int64_t         width[32];

    if (n > 16 || w->pad_width.n != 2 * n || strcmp(w->pad_mode, "constant") != 0)
        return e;
    axes_of_transpose(e, axes);
    for (uint32_t i = 0; i < n; i++) {
        width[2 * i] = w->pad_width.at[2 * axes[i]];
        width[2 * i + 1] = w->pad_width.at[2 * axes[i] + 1];
    }
    now = ATTRS_COPY(c, PadAttrs, p);
    now->pad_width = ints_dup(c, width, 2 * n);
    x = make1(c, "transpose", call_arg(p, 0), e->u.attrs, e->loc);
    return x ? make1(c, "nn.pad", x, now, p->loc) : NULL;
}

/* A transpose of a view of a transposed tensor, which moves everything back: a view of it. */
static const Expr *moves_back(Ctx *c, const Expr *e)
{
    ViewAxes v;

    return view_axes(c, e, &v) && in_order(&v) && no_zero_dim(e->type)
               ? view(c, reshape_to(c, v.of, e->type, e->loc))
               : e;
}

static const Expr *transpose(Ctx *c, const Expr *e)
{
    const Expr     *x = call_arg(e, 0);
    uint32_t        n = e->type->n, outer[16], inner[16], last = 0;
    bool            identity = true, units_only = true;
    TransposeAttrs *a;
    int64_t         axes[16], v;

    if (n > 16)
        return e;
    axes_of_transpose(e, outer);
    if (call_is(x, "transpose")) {
        axes_of_transpose(x, inner);
        for (uint32_t i = 0; i < n; i++)
            outer[i] = inner[outer[i]];
        x = call_arg(x, 0);
    }
    for (uint32_t i = 0; i < n; i++) {
        axes[i] = outer[i];
        identity &= outer[i] == i;
        if (type_dim(x->type, outer[i], &v) && v == 1)
            continue;
        units_only &= outer[i] >= last;
        last = outer[i];
    }
    if (identity)
        return x;
    if (call_is(x, "layout_transform"))
        return transposed_layout(c, e, x, outer);
    if (call_is(x, "scatter_nd"))
        return transposed_scatter(c, e, x, outer);
    if (call_is(x, "nn.pad") && x == call_arg(e, 0))
        return pad_transposed(c, e);
    if (units_only && expr_has_shape(e) && no_zero_dim(e->type))
        return view(c, reshape_to(c, x, e->type, e->loc));
    if (x == call_arg(e, 0))
        return is_view(x) ? moves_back(c, e) : e;
    a = ATTRS_NEW(c, TransposeAttrs);
    a->axes = ints_dup(c, axes, n);
    e = make1(c, "transpose", x, a, e->loc);
    return e && is_view(x) ? moves_back(c, e) : e;
}

/* ---- what gives its operand back ------------------------------------------------------------ */

static bool is_identity(const Expr *e)
{
    const Expr *x = call_arg(e, 0);

    if (!expr_has_shape(e) || x->type != e->type)
        return false;
    if (call_is(e, "cast") || call_is(e, "copy") || call_is(e, "broadcast_to") ||
        call_is(e, "tile") || (call_is(e, "nn.relu") && call_is(x, "nn.relu")))
        return true;
    if (call_is(e, "strided_slice"))
        return ints_all(ATTRS_OF(StridedSliceAttrs, e)->strides, 1);
    if (call_is(e, "nn.pad"))
        return ints_all(ATTRS_OF(PadAttrs, e)->pad_width, 0);
    return false;
}

/* A tuple of all fields of one tuple, in order. */
static const Expr *whole_tuple(const Expr *e)
{
    const Expr *of = e->nkids && e->kids[0]->kind == EXPR_PROJ ? e->kids[0]->kids[0] : NULL;

    if (!of || !of->type || of->type->kind != TYPE_TUPLE || of->type->n != e->nkids)
        return e;
    for (uint32_t i = 0; i < e->nkids; i++)
        if (e->kids[i]->kind != EXPR_PROJ || e->kids[i]->kids[0] != of || e->kids[i]->u.index != i)
            return e;
    return of;
}

/* ---- forms that later passes know ----------------------------------------------------------- */

/* add(x, const [C, 1, 1]) over NCHW. */
static const Expr *bias_form(Ctx *c, const Expr *e)
{
    for (uint32_t i = 0; i < 2; i++) {
        const Expr *x = call_arg(e, i), *k = call_arg(e, 1 - i);
        int64_t     n, channels, v;

        if (!expr_has_shape(e) || !expr_has_shape(x) || !expr_has_shape(k) || !is_float(e) ||
            e->type->n != 4 || !same_dims(x->type, e->type) || k->kind != EXPR_CONST ||
            k->type->n < 3 || !type_dim(k->type, k->type->n - 3, &n) ||
            !type_dim(x->type, 1, &channels) || n != channels || n < 2 ||
            !type_elems(k->type, &v) || v != n)
            continue;
        return make2(c, "nn.bias_add", x, make_reshape(c, k, 1, &n, k->loc),
                     ATTRS_NEW(c, BiasAddAttrs), e->loc);
    }
    return e;
}

/* A number for each unit of a dense layer, in any order and of any rank. */
static const Expr *dense_bias_form(Ctx *c, const Expr *e)
{
    for (uint32_t i = 0; i < 2; i++) {
        const Expr   *x = call_arg(e, i), *k = call_arg(e, 1 - i);
        BiasAddAttrs *a;
        int64_t       units, n;

        if (!call_is(x, "nn.dense") || k->kind != EXPR_CONST || !is_float(e) ||
            x->type != e->type || k->type->n < 1 || k->type->n > x->type->n ||
            !type_dim(x->type, x->type->n - 1, &units) || !type_elems(k->type, &n) || n != units ||
            k->type->dims[k->type->n - 1] != x->type->dims[x->type->n - 1])
            continue;
        a = ATTRS_NEW(c, BiasAddAttrs);
        a->axis = x->type->n - 1;
        return make2(c, "nn.bias_add", x, k->type->n == 1 ? k : make_reshape(c, k, 1, &n, k->loc),
                     a, e->loc);
    }
    return e;
}

/* A number for each unit of a dense layer whose units are seen as several dimensions: [4, 32]
 * beside [1, 64, 4, 32] of 128 units. */
static const Expr *viewed_bias_form(Ctx *c, const Expr *e)
{
    for (uint32_t i = 0; i < 2; i++) {
        const Expr   *v = call_arg(e, i), *k = call_arg(e, 1 - i), *x;
        BiasAddAttrs *a;
        int64_t       units, n, cells = 1, d;
        uint32_t      last;

        if (!is_view(v) || !call_is(x = call_arg(v, 0), "nn.dense") || k->kind != EXPR_CONST ||
            !is_float(e) || v->type != e->type || k->type->n > v->type->n || x->type->n < 1 ||
            !type_dim(x->type, x->type->n - 1, &units) || !type_elems(k->type, &n) || n != units)
            continue;
        /* The constant's last dimensions are all units, and those of the view, too. */
        for (last = 0; last < k->type->n && cells < units; last++) {
            if (k->type->dims[k->type->n - 1 - last] != v->type->dims[v->type->n - 1 - last] ||
                !type_dim(v->type, v->type->n - 1 - last, &d))
                break;
            cells *= d;
        }
        if (cells != units)
            continue;
        a = ATTRS_NEW(c, BiasAddAttrs);
        a->axis = x->type->n - 1;
        x = make2(c, "nn.bias_add", x, make_reshape(c, k, 1, &n, k->loc), a, e->loc);
        return x ? reshape_to(c, x, e->type, e->loc) : NULL;
    }
    return e;
}

/* The axis of a bias counts from the front.  Zeros are none behind sums, which begin at 0 and so
 * never are -0. */
static const Expr *bias_axis(Ctx *c, const Expr *e)
{
    const BiasAddAttrs *a = ATTRS_OF(BiasAddAttrs, e);
    const Op           *op = call_op(call_arg(e, 0));
    BiasAddAttrs       *now;
    double              v;

    if (op && op->fusion == FUSE_OUT_FUSABLE && call_nargs(call_arg(e, 0)) > 1 && is_float(e) &&
        e->type == call_arg(e, 0)->type && expr_const_f(call_arg(e, 1), &v) && v == 0)
        return call_arg(e, 0);

    if (a->axis >= 0 || *a->layout || !expr_has_shape(e))
        return e;
    now = ATTRS_COPY(c, BiasAddAttrs, e);
    now->axis = axis_from_front(a->axis, e->type->n);
    return make2(c, "nn.bias_add", call_arg(e, 0), call_arg(e, 1), now, e->loc);
}

/* A border of zeros, or of what stands for zero, becomes the convolution's own padding. */
static const Expr *pad_into_conv(Ctx *c, const Expr *e)
{
    const Expr        *p = call_arg(e, 0), *args[2];
    const Conv2dAttrs *a = ATTRS_OF(Conv2dAttrs, e);
    const PadAttrs    *w = ATTRS_OF(PadAttrs, p);
    Conv2dAttrs       *now;
    int64_t            pad[4];

    if (strcmp(a->data_layout, "NCHW") != 0 || strcmp(w->pad_mode, "constant") != 0 ||
        w->pad_width.n != 8 || (!ints_all(a->padding, 0) && w->pad_value != (double)a->pad_value) ||
        (is_float(e) && w->pad_value != 0) || !(fabs(w->pad_value) < 1 << 30))
        return e;
    for (uint32_t i = 0; i < 8; i++)
        if (w->pad_width.at[i] < 0 || (i < 4 && w->pad_width.at[i] != 0))
            return e;
    pad[0] = a->padding.at[0] + w->pad_width.at[4];
    pad[1] = a->padding.at[1] + w->pad_width.at[6];
    pad[2] = a->padding.at[2] + w->pad_width.at[5];
    pad[3] = a->padding.at[3] + w->pad_width.at[7];
    now = ATTRS_COPY(c, Conv2dAttrs, e);
    now->padding = ints_dup(c, pad, 4);
    now->pad_value = (int64_t)w->pad_value;
    args[0] = call_arg(p, 0);
    args[1] = call_arg(e, 1);
    return expr_call(c, call_op(e), 2, args, now, e->loc);
}

/* Each repeated dimension as two, the copies and the cells: rows of cells are then copied as
 * vectors, where the formula takes each cell's position modulo the dimension.  Not for rows shorter
 * than half a vector. */
static const Expr *tile_form(Ctx *c, const Expr *e)
{
    const Expr       *x = call_arg(e, 0);
    int64_t           from[TE_MAX_AXES], to[TE_MAX_AXES], d, n, row = 1;
    uint32_t          rank = 0, front;
    bool              any = false;
    BroadcastToAttrs *a;

    if (!has_vectors(c->target) || !expr_has_shape(e) || !expr_has_shape(x) ||
        !no_zero_dim(e->type) || !no_zero_dim(x->type))
        return e;
    front = e->type->n - x->type->n; /* dimensions that only the result has */
    for (uint32_t i = 0; i < e->type->n; i++) {
        d = 1;
        if (!type_dim(e->type, i, &n) || (i >= front && !type_dim(x->type, i - front, &d)) ||
            rank + 2 > TE_MAX_AXES)
            return e;
        if (d > 1 && n > d) {
            from[rank] = 1, to[rank++] = n / d;
            any = true;
            row = 1;
        }
        from[rank] = d, to[rank++] = d > 1 ? d : n;
        row *= d > 1 ? d : n;
    }
    if (!any || row * 8 < c->target->vector_bytes)
        return e;
    a = ATTRS_NEW(c, BroadcastToAttrs);
    a->shape = dims_of_i64(c, to, rank);
    x = make_reshape(c, x, rank, from, e->loc);
    x = x ? make1(c, "broadcast_to", x, a, e->loc) : NULL;
    return x ? reshape_to(c, x, e->type, e->loc) : NULL;
}

/* Does it swap the rows and columns of matrices, and nothing else? */
static bool turns_matrices(const Expr *e)
{
    uint32_t axes[16], n;

    if (!call_is(e, "transpose") || !expr_has_shape(e) || e->type->n < 2 || e->type->n > 16)
        return false;
    n = e->type->n;
    axes_of_transpose(e, axes);
    for (uint32_t i = 0; i + 2 < n; i++)
        if (axes[i] != i)
            return false;
    return axes[n - 2] == n - 1 && axes[n - 1] == n - 2;
}

/* A product turns its second matrix as it packs it. */
static const Expr *product_of_transposed(Ctx *c, const Expr *e)
{
    const Expr *y = call_arg(e, 1);

    if (!turns_matrices(y) || !is_float(e))
        return e;
    if (call_is(e, "nn.matmul")) {
        MatmulAttrs *a = ATTRS_COPY(c, MatmulAttrs, e);

        a->transpose_b = !a->transpose_b;
        return make2(c, "nn.matmul", call_arg(e, 0), call_arg(y, 0), a, e->loc);
    }
    BatchMatmulAttrs *a = ATTRS_COPY(c, BatchMatmulAttrs, e);

    a->transpose_b = !a->transpose_b;
    return make2(c, "nn.batch_matmul", call_arg(e, 0), call_arg(y, 0), a, e->loc);
}

/* A product with one constant matrix for all batches is a dense layer. */
static const Expr *dense_form(Ctx *c, const Expr *e)
{
    bool        batched = call_is(e, "nn.batch_matmul");
    bool        ta = batched ? ATTRS_OF(BatchMatmulAttrs, e)->transpose_a
                             : ATTRS_OF(MatmulAttrs, e)->transpose_a;
    bool        tb = batched ? ATTRS_OF(BatchMatmulAttrs, e)->transpose_b
                             : ATTRS_OF(MatmulAttrs, e)->transpose_b;
    const char *out_dtype =
        batched ? ATTRS_OF(BatchMatmulAttrs, e)->out_dtype : ATTRS_OF(MatmulAttrs, e)->out_dtype;
    const Expr *x = call_arg(e, 0), *w = call_arg(e, 1), *y;
    DenseAttrs *d;

    if (ta || *out_dtype || !is_float(e) || w->kind != EXPR_CONST || w->type->n < 2 ||
        x->type->n < 2)
        return e;
    for (uint32_t i = 0; i + 2 < w->type->n; i++)
        if (w->type->dims[i]->lo != 1 || w->type->dims[i]->hi != 1)
            return e;
    if (w->type->n > 2)
        w = make_reshape_to(c, w, 2, w->type->dims + w->type->n - 2, w->loc);
    if (w && !tb)
        w = make1(c, "transpose", w, ATTRS_NEW(c, TransposeAttrs), w->loc);
    d = ATTRS_NEW(c, DenseAttrs);
    y = w ? make2(c, "nn.dense", x, w, d, e->loc) : NULL;
    return y && y->type == type_plain(c, e->type) ? y : e;
}

/* Matrices by a vector each: the vector is a row, whose product reads the matrix as it lies. */
static const Expr *row_form(Ctx *c, const Expr *e)
{
    const Expr *x = call_arg(e, 0), *y = call_arg(e, 1);
    uint32_t    n = e->type->n;
    int64_t     rows, columns;

    if (!is_float(e) || n < 2 || n > 16 || x->type->n != n || y->type->n != n ||
        !type_dim(e->type, n - 2, &rows) || !type_dim(e->type, n - 1, &columns) || columns != 1 ||
        rows == 1)
        return e;
    MatmulAttrs      *a = NULL;
    BatchMatmulAttrs *b = NULL;
    if (call_is(e, "nn.matmul"))
        a = ATTRS_COPY(c, MatmulAttrs, e);
    else if (call_is(e, "nn.batch_matmul"))
        b = ATTRS_COPY(c, BatchMatmulAttrs, e);
    if ((!a && !b) || (a ? a->transpose_a : b->transpose_a))
        return e;
    if (!(a ? a->transpose_b : b->transpose_b)) {
        const Idx *dims[16];

        memcpy(dims, y->type->dims, n * sizeof *dims);
        dims[n - 1] = y->type->dims[n - 2];
        dims[n - 2] = y->type->dims[n - 1];
        y = make_reshape_to(c, y, n, dims, e->loc);
    }
    if (a)
        a->transpose_b = true;
    else
        b->transpose_b = true;
    y = y ? make2(c, a ? "nn.matmul" : "nn.batch_matmul", y, x, a ? (void *)a : (void *)b, e->loc)
          : NULL;
    return y ? make_reshape_to(c, y, n, e->type->dims, e->loc) : NULL;
}

/* The mean of images of one row. */
static const Expr *mean_of_rows(Ctx *c, const Expr *e)
{
    const Expr  *x = call_arg(e, 0);
    ReduceAttrs *a;
    int64_t      rows;

    if (!expr_has_shape(x) || !type_dim(x->type, 2, &rows) || rows != 1 ||
        strcmp(ATTRS_OF(GlobalPool2dAttrs, e)->layout, "NCHW") ||
        !dtype_eq(x->type->dtype, e->type->dtype) || !is_float(e))
        return e;
    a = ATTRS_NEW(c, ReduceAttrs);
    a->axis = ints_dup(c, (int64_t[]){3}, 1);
    a->keepdims = true;
    return make1(c, "mean", x, a, e->loc);
}

static const Expr *simplify(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    const Expr *e = now;

    (void)user;
    (void)was;
    if (e->kind == EXPR_PROJ && e->kids[0]->kind == EXPR_TUPLE)
        return e->kids[0]->kids[e->u.index];
    if (e->kind == EXPR_TUPLE)
        return whole_tuple(e);
    if (!call_op(e) || !e->type || call_nargs(e) == 0)
        return e;
    if (is_identity(e))
        return call_arg(e, 0);
    if (is_view(e))
        return view(c, e);
    if (call_is(e, "transpose"))
        return transpose(c, e);
    if (call_is(e, "layout_transform"))
        return layout_back(e);
    if (call_is(e, "concatenate") && call_arg(e, 0)->kind == EXPR_TUPLE &&
        call_arg(e, 0)->nkids == 1)
        return call_arg(e, 0)->kids[0];
    if (call_is(e, "tile"))
        return tile_form(c, e);
    if (call_is(e, "nn.global_avg_pool2d"))
        return mean_of_rows(c, e);
    if (call_is(e, "where") || call_is(e, "nn.prelu"))
        return simplify_slope(c, call_is(e, "where") ? where_number(c, e) : e);
    if (call_is(e, "clip"))
        return clip_of_sum(c, e);
    if (call_is(e, "nn.batch_matmul") || call_is(e, "nn.matmul"))
        return row_form(c, dense_form(c, product_of_transposed(c, e)));
    if (call_is(e, "nn.conv2d") && call_is(call_arg(e, 0), "nn.pad"))
        return pad_into_conv(c, e);
    if ((e = simplify_pick(c, e)) != now || !e)
        return e;
    if (call_nargs(e) == 2)
        e = arithmetic(c, number_form(c, e));
    if (e && call_is(e, "add"))
        e = bias_form(c, e);
    if (e && call_is(e, "add"))
        e = dense_bias_form(c, e);
    if (e && call_is(e, "add"))
        e = viewed_bias_form(c, e);
    if (e && call_is(e, "nn.bias_add"))
        e = bias_axis(c, e);
    return e;
}

const Module *simplify_expr(Ctx *c, const Module *m)
{
    const Module *now = module_rewrite(c, m, simplify, NULL);

    return now && now != m ? fold_constant(c, now) : now;
}
