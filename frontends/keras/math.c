/* Functions of keras.ops, cell by cell and along axes. */
#include "frontends/keras/keras.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* The word of the row for argument `i`: "x2|y". */
static const char *names_of(const KerasNode *n, uint32_t i)
{
    const char *p = n->row->weights;

    for (; i; i--)
        p += strcspn(p, " ") + 1;
    return intern_n(n->b.c->strings, p, strcspn(p, " "));
}

const Expr *keras_op_arg(KerasNode *n, uint32_t i)
{
    KerasValue v;

    return keras_operand(n, i, names_of(n, i), false, &v) ? v.e : NULL;
}

/* ---- two operands ----------------------------------------------------------------------------------- */

static bool is_number(const KerasNode *n, uint32_t i)
{
    const KerasArg *a = keras_arg(n, i, names_of(n, i));

    return a && a->kind == KERAS_JSON && json_is_number(a->json);
}

/* The type of both: a number of the program takes the tensor's, unless that has no fractions. */
static DType joined(const KerasNode *n, uint32_t i, const Expr *x, const Expr *y)
{
    DType a = expr_dtype(x), b = expr_dtype(y);

    if (dtype_eq(a, b))
        return a;
    if (is_number(n, i) && dtype_is_float(b))
        return b;
    if (is_number(n, i + 1) && dtype_is_float(a))
        return a;
    if (dtype_is_float(a) != dtype_is_float(b))
        return dtype_is_float(a) ? a : b;
    if (dtype_is_bool(a) || dtype_is_bool(b))
        return dtype_is_bool(a) ? b : a;
    return a.bits >= b.bits ? a : b;
}

bool keras_op_binary(KerasNode *n)
{
    const Expr *x = keras_op_arg(n, 0), *y = x ? keras_op_arg(n, 1) : NULL;
    DType       t;

    if (!y)
        return false;
    t = joined(n, 0, x, y);
    if (!strcmp(n->row->relay, "divide") && !dtype_is_float(t))
        t = DT_F32;
    if (str_starts(n->row->relay, "logical"))
        t = DT_BOOL;
    return keras_done(
        n, build2(&n->b, n->row->relay, build_cast(&n->b, x, t), build_cast(&n->b, y, t), NULL));
}

bool keras_op_where(KerasNode *n)
{
    const Expr *c = keras_op_arg(n, 0), *x = c ? keras_op_arg(n, 1) : NULL,
               *y = x ? keras_op_arg(n, 2) : NULL;
    DType t;

    if (!y)
        return false;
    t = joined(n, 1, x, y);
    return keras_done(n, build_where(&n->b, build_cast(&n->b, c, DT_BOOL), build_cast(&n->b, x, t),
                                     build_cast(&n->b, y, t)));
}

/* ---- one operand ------------------------------------------------------------------------------------ */

bool keras_op_unary(KerasNode *n)
{
    const Expr *x = keras_op_arg(n, 0);

    if (x && keras_int(n, "decimals", 0))
        return keras_error(n, E_UNSUPPORTED, "decimals");
    return x && keras_done(n, build1(&n->b, n->row->relay, x, NULL));
}

bool keras_op_square(KerasNode *n)
{
    const Expr *x = keras_op_arg(n, 0);

    return x && keras_done(n, build_mul(&n->b, x, x));
}

bool keras_op_reciprocal(KerasNode *n)
{
    const Expr *x = keras_op_arg(n, 0);

    return x && keras_done(n, build_div(&n->b, build_scalar(&n->b, x, 1), x));
}

bool keras_op_log1p(KerasNode *n)
{
    const Expr *x = keras_op_arg(n, 0);

    return x && keras_done(n, build_log1p(&n->b, x));
}

bool keras_op_clip(KerasNode *n)
{
    const Expr   *x = keras_op_arg(n, 0);
    const json_t *lo = keras_json(n, "x_min"), *hi = keras_json(n, "x_max");
    KerasValue    least, most;

    if (!x)
        return false;
    if (json_is_number(lo) && json_is_number(hi))
        return keras_done(n, build_clip(&n->b, x, json_number_value(lo), json_number_value(hi)));
    return keras_operand(n, 1, names_of(n, 1), false, &least) &&
           keras_operand(n, 2, names_of(n, 2), false, &most) &&
           keras_done(n, build2(&n->b, "minimum",
                                build2(&n->b, "maximum", x,
                                       build_cast(&n->b, least.e, expr_dtype(x)), NULL),
                                build_cast(&n->b, most.e, expr_dtype(x)), NULL));
}

bool keras_op_cast(KerasNode *n)
{
    const Expr *x = keras_op_arg(n, 0);
    const char *name = keras_text(n, "dtype", "float32");
    DType       t;

    if (!x || !keras_dtype(name, &t))
        return x && keras_error(n, E_UNSUPPORTED, "a cast to %s", name);
    return keras_done(n, build_cast(&n->b, x, t));
}

bool keras_op_same(KerasNode *n)
{
    return keras_done(n, keras_op_arg(n, 0));
}

/* ---- activations ------------------------------------------------------------------------------------ */

/* HardSilu is hard_silu. */
bool keras_op_activation(KerasNode *n)
{
    const Expr *x = keras_op_arg(n, 0);

    if (keras_float(n, "b", 4) != 4)
        return keras_error(n, E_UNSUPPORTED, "another b than 4");
    return x && keras_done(n, keras_apply(n, keras_snake(n->b.c->arena, n->row->name), x,
                                          expr_rank(x) ? expr_rank(x) - 1 : 0));
}

bool keras_op_elu(KerasNode *n)
{
    const Expr *x = keras_op_arg(n, 0);

    return x && keras_done(n, build_elu(&n->b, x, keras_float(n, "alpha", 1), 1));
}

bool keras_op_leaky_relu(KerasNode *n)
{
    const Expr     *x = keras_op_arg(n, 0);
    LeakyReluAttrs *a = ATTRS(&n->b, LeakyReluAttrs);

    a->alpha = keras_float(n, "negative_slope", 0.2);
    return x && keras_done(n, build1(&n->b, "nn.leaky_relu", x, a));
}

bool keras_op_gelu(KerasNode *n)
{
    const Expr *x = keras_op_arg(n, 0);

    return x && keras_done(n, build_gelu(&n->b, x, keras_bool(n, "approximate", true)));
}

bool keras_op_softmax(KerasNode *n)
{
    const Expr *x = keras_op_arg(n, 0);
    uint32_t    axis;
    Ints        axes;

    if (!x || !keras_list(n, "axis", &axes))
        return false;
    if (axes.n > 1)
        return keras_error(n, E_UNSUPPORTED, "several axes");
    return keras_axis(n, axes.n ? axes.at[0] : -1, expr_rank(x), &axis) &&
           keras_done(n, keras_softmax(&n->b, n->row->relay, x, axis));
}

/* ---- along axes ------------------------------------------------------------------------------------- */

/* The setting `axis`: all if there is none. */
static bool read_axes(KerasNode *n, const Expr *x, uint32_t *count, int64_t *axes)
{
    Ints list;

    if (!keras_list(n, "axis", &list))
        return false;
    if (list.n)
        return build_axes(&n->b, list, expr_rank(x), n->moved ? n->rank : 0, count, axes);
    *count = expr_rank(x);
    for (uint32_t i = 0; i < *count; i++)
        axes[i] = i;
    return true;
}

bool keras_op_reduce(KerasNode *n)
{
    const Expr *x = keras_op_arg(n, 0);
    int64_t     axes[MAX_RANK];
    uint32_t    count;
    bool        keep = keras_bool(n, "keepdims", false);

    if (x && (!strcmp(n->row->relay, "any") || !strcmp(n->row->relay, "all")))
        x = build_cast(&n->b, x, DT_BOOL);
    if (!x || !read_axes(n, x, &count, axes))
        return false;
    if (count == 0)
        return keras_done(n, x);
    return keras_done(n, n->moved ? build_reduce_moved(&n->b, n->row->relay, x, count, axes, keep)
                                  : build_reduce(&n->b, n->row->relay, x, count, axes, keep));
}

bool keras_op_variance(KerasNode *n)
{
    const Build   *b = &n->b;
    const Expr    *x = keras_op_arg(n, 0), *y;
    VarianceAttrs *a = ATTRS(b, VarianceAttrs);
    int64_t        axes[MAX_RANK];
    uint32_t       count;

    if (!x || !read_axes(n, x, &count, axes))
        return false;
    a->axis = ints_dup(b->c, axes, count);
    a->keepdims = keras_bool(n, "keepdims", false);
    y = build2(b, "variance", x, build_reduce(b, "mean", x, count, axes, true), a);
    return keras_done(n, !strcmp(n->row->name, "Std") ? build1(b, "sqrt", y, NULL) : y);
}

bool keras_op_arg_reduce(KerasNode *n)
{
    const Build    *b = &n->b;
    const Expr     *x = keras_op_arg(n, 0);
    ArgReduceAttrs *a = ATTRS(b, ArgReduceAttrs);
    uint32_t        axis;
    Ints            axes;

    if (!x || !keras_list(n, "axis", &axes))
        return false;
    if (axes.n == 0) {
        int64_t cells = build_elems(b, x);

        x = build_reshape(b, x, 1, &cells);
        axis = 0;
    } else if (!keras_axis(n, axes.at[0], expr_rank(x), &axis)) {
        return false;
    }
    a->axis = axis;
    a->keepdims = keras_bool(n, "keepdims", false);
    a->dtype = DT_I32;
    return keras_done(n, build1(b, n->row->relay, x, a));
}

bool keras_op_scan(KerasNode *n)
{
    const Expr *x = keras_op_arg(n, 0);
    ScanAttrs  *a = ATTRS(&n->b, ScanAttrs);
    uint32_t    axis;

    if (!x || !keras_json(n, "axis"))
        return x && keras_error(n, E_UNSUPPORTED, "no axis");
    if (!keras_axis(n, keras_int(n, "axis", 0), expr_rank(x), &axis))
        return false;
    a->axis = axis;
    return keras_done(n, build1(&n->b, n->row->relay, x, a));
}

/* log(sum(exp(x))), of numbers of any size. */
bool keras_op_logsumexp(KerasNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = keras_op_arg(n, 0), *most, *y;
    int64_t      axes[MAX_RANK];
    uint32_t     count;

    if (!x || !read_axes(n, x, &count, axes))
        return false;
    if (count == 0)
        return keras_done(n, x);
    most = build_reduce(b, "max", x, count, axes, true);
    y = build_reduce(b, "sum", build1(b, "exp", build_sub(b, x, most), NULL), count, axes, true);
    y = build_add(b, build1(b, "log", y, NULL), most);
    return keras_done(n, keras_bool(n, "keepdims", false) ? y : build_squeeze(b, y, count, axes));
}

bool keras_op_expm1(KerasNode *n)
{
    const Expr *x = keras_op_arg(n, 0);

    return x && keras_done(n, build_expm1(&n->b, x));
}

/* Log2, Log10 */
bool keras_op_log_base(KerasNode *n)
{
    const Expr *x = keras_op_arg(n, 0);

    return x && keras_done(n, build_by(&n->b, "multiply", build1(&n->b, "log", x, NULL),
                                       !strcmp(n->row->name, "Log2") ? M_LOG2E : M_LOG10E));
}

bool keras_op_isfinite(KerasNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = keras_op_arg(n, 0), *y;

    y = x ? build2(b, "logical_or", build1(b, "isnan", x, NULL), build1(b, "isinf", x, NULL), NULL)
          : NULL;
    return y && keras_done(n, build1(b, "logical_not", y, NULL));
}

bool keras_op_arctan2(KerasNode *n)
{
    const Expr *x = keras_op_arg(n, 0), *y = x ? keras_op_arg(n, 1) : NULL;

    return y && keras_done(n, build_atan2(&n->b, x, y));
}

bool keras_op_outer(KerasNode *n)
{
    const Expr *x = keras_op_arg(n, 0), *y = x ? keras_op_arg(n, 1) : NULL;
    const Idx  *cells[2], *one = idx_const(n->b.c->arith, 1);

    if (!y)
        return false;
    cells[0] = type_cells(n->b.c, x->type), cells[1] = type_cells(n->b.c, y->type);
    return keras_done(n, build_mul(&n->b,
                                   build_reshape_to(&n->b, x, 2, (const Idx *[]){cells[0], one}),
                                   build_reshape_to(&n->b, y, 1, &cells[1])));
}
