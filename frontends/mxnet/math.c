/* Cell by cell.  Comparison and logic of MXNet's first operators give numbers of the type of their
 * operands; those of numpy give bools, and take operands of two types. */
#include "frontends/mxnet/mxnet.h"

#include <math.h>
#include <string.h>

bool mx_same(MxNode *n)
{
    return mx_done(n, n->in[0]);
}

bool mx_unary(MxNode *n)
{
    return mx_done(n, build1(&n->b, n->row->relay, n->in[0], NULL));
}

/* ---- rounding --------------------------------------------------------------------------------------- */

/* Halves away from zero. */
bool mx_round(MxNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *t, *rest;

    if (!dtype_is_float(expr_dtype(x)))
        return mx_done(n, x);
    t = build1(b, "trunc", x, NULL);
    rest = build_sub(b, x, t);
    rest = build1(b, "trunc", build_add(b, rest, rest), NULL);
    return mx_done(n, build_add(b, t, rest));
}

/* Halves down. */
bool mx_rint(MxNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *low;

    if (!dtype_is_float(expr_dtype(x)))
        return mx_done(n, x);
    low = build1(b, "floor", x, NULL);
    return mx_done(n, build_where(b, build_by(b, "greater", build_sub(b, x, low), 0.5),
                                  build_by(b, "add", low, 1), low));
}

/* ---- functions -------------------------------------------------------------------------------------- */

bool mx_square(MxNode *n)
{
    return mx_done(n, build_mul(&n->b, n->in[0], n->in[0]));
}

bool mx_reciprocal(MxNode *n)
{
    return mx_done(n, build_div(&n->b, build_scalar(&n->b, n->in[0], 1), n->in[0]));
}

bool mx_cbrt(MxNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *y;
    double       p = !strcmp(n->row->name, "cbrt") ? 1.0 / 3 : -1.0 / 3;

    y = build_by(b, "power", build1(b, "abs", x, NULL), p);
    return mx_done(n, build_mul(b, build1(b, "sign", x, NULL), y));
}

bool mx_expm1(MxNode *n)
{
    return mx_done(n, build_expm1(&n->b, n->in[0]));
}

bool mx_log1p(MxNode *n)
{
    return mx_done(n, build_log1p(&n->b, n->in[0]));
}

bool mx_log_base(MxNode *n)
{
    double base = strstr(n->row->name, "log2") ? M_LN2 : M_LN10;

    return mx_done(n, build_by(&n->b, "divide", build1(&n->b, "log", n->in[0], NULL), base));
}

bool mx_degrees(MxNode *n)
{
    double by = strstr(n->row->name, "degrees") ? 180 / M_PI : M_PI / 180;

    return mx_done(n, build_by(&n->b, "multiply", n->in[0], by));
}

bool mx_softsign(MxNode *n)
{
    return mx_done(n, build_softsign(&n->b, n->in[0]));
}

bool mx_hard_sigmoid(MxNode *n)
{
    return mx_done(n,
                   build_hard_sigmoid(&n->b, n->in[0], mx_float(n, "alpha"), mx_float(n, "beta")));
}

/* A parabola around 0, lines outside. */
bool mx_smooth_l1(MxNode *n)
{
    const Build *b = &n->b;
    double       square = mx_float(n, "scalar") * mx_float(n, "scalar");
    const Expr  *x = n->in[0], *size = build1(b, "abs", x, NULL);

    return mx_done(n, build_where(b, build_by(b, "greater", size, 1 / square),
                                  build_by(b, "add", size, -0.5 / square),
                                  build_by(b, "multiply", build_mul(b, x, x), 0.5 * square)));
}

bool mx_clip(MxNode *n)
{
    return mx_done(n, build_clip(&n->b, n->in[0], mx_float(n, "a_min"), mx_float(n, "a_max")));
}

/* ---- types ------------------------------------------------------------------------------------------ */

bool mx_cast(MxNode *n)
{
    DType t = expr_dtype(n->in[0]);

    if (!strcmp(n->row->name, "amp_cast") && !dtype_is_float(t))
        return mx_done(n, n->in[0]); /* it changes floats only */
    return mx_type(n, "dtype", &t) && mx_done(n, build_cast(&n->b, n->in[0], t));
}

/* All floats to the widest of their types, or the narrowest. */
bool mx_amp_multicast(MxNode *n)
{
    bool  narrow = mx_bool(n, "cast_narrow"), any = false;
    DType t = DT_F32;

    for (uint32_t i = 0; i < n->nin; i++) {
        DType x = expr_dtype(n->in[i]);

        if (!dtype_is_float(x))
            continue;
        if (!any || (narrow ? x.bits < t.bits : x.bits > t.bits))
            t = x;
        any = true;
    }
    for (uint32_t i = 0; i < n->nin; i++)
        if (!mx_put(n, i,
                    dtype_is_float(expr_dtype(n->in[i])) ? build_cast(&n->b, n->in[i], t)
                                                         : n->in[i]))
            return false;
    return true;
}

const Expr *mx_as_number(const Build *b, const Expr *truth, DType t)
{
    return truth ? build_cast(b, truth, t) : NULL;
}

const Expr *mx_truth(const Build *b, const Expr *x)
{
    if (!x || dtype_is_bool(expr_dtype(x)))
        return x;
    return build_by(b, "not_equal", x, 0);
}

/* ---- two operands ----------------------------------------------------------------------------------- */

/* The remainder has the sign of the divisor, and is 0 for one of 0. */
static const Expr *arithmetic(const Build *b, const char *op, const Expr *x, const Expr *y)
{
    const Expr *none;

    if (strcmp(op, "floor_mod") != 0)
        return build2(b, op, x, y, NULL);
    none = build_by(b, "equal", y, 0);
    if (!none)
        return NULL;
    y = build_where(b, none, build_scalar(b, y, 1), y);
    return build_where(b, none, build_scalar(b, x, 0), build2(b, op, x, y, NULL));
}

bool mx_binary(MxNode *n)
{
    return mx_done(n, arithmetic(&n->b, n->row->relay, n->in[0], n->in[1]));
}

bool mx_hypot(MxNode *n)
{
    const Build *b = &n->b;
    const Expr  *sum =
        build_add(b, build_mul(b, n->in[0], n->in[0]), build_mul(b, n->in[1], n->in[1]));

    return mx_done(n, build1(b, "sqrt", sum, NULL));
}

bool mx_add_n(MxNode *n)
{
    const Expr *sum = n->nin ? n->in[0] : mx_error(n, E_IMPORT, "a sum of nothing");

    for (uint32_t i = 1; i < n->nin; i++)
        sum = build_add(&n->b, sum, n->in[i]);
    return mx_done(n, sum);
}

bool mx_compare(MxNode *n)
{
    return mx_done(n, mx_as_number(&n->b, build2(&n->b, n->row->relay, n->in[0], n->in[1], NULL),
                                   expr_dtype(n->in[0])));
}

bool mx_logical(MxNode *n)
{
    const Build *b = &n->b;

    return mx_done(n, mx_as_number(b,
                                   build2(b, n->row->relay, mx_truth(b, n->in[0]),
                                          mx_truth(b, n->in[1]), NULL),
                                   expr_dtype(n->in[0])));
}

bool mx_logical_not(MxNode *n)
{
    return mx_done(
        n, mx_as_number(&n->b, build_by(&n->b, "equal", n->in[0], 0), expr_dtype(n->in[0])));
}

/* ---- a number --------------------------------------------------------------------------------------- */

static const Expr *by_scalar(MxNode *n, const Expr *x, bool reverse)
{
    const Build *b = &n->b;
    const Expr  *v = build_scalar(b, x, mx_float(n, "scalar"));

    return arithmetic(b, n->row->relay, reverse ? v : x, reverse ? x : v);
}

bool mx_scalar(MxNode *n)
{
    return mx_done(n, by_scalar(n, n->in[0], false));
}

bool mx_reverse_scalar(MxNode *n)
{
    return mx_done(n, by_scalar(n, n->in[0], true));
}

bool mx_compare_scalar(MxNode *n)
{
    return mx_done(n, mx_as_number(&n->b, by_scalar(n, n->in[0], false), expr_dtype(n->in[0])));
}

bool mx_logical_scalar(MxNode *n)
{
    const Build *b = &n->b;
    const Expr  *v = expr_scalar(b->c, DT_BOOL, mx_float(n, "scalar") != 0);

    return mx_done(n, mx_as_number(b, build2(b, n->row->relay, mx_truth(b, n->in[0]), v, NULL),
                                   expr_dtype(n->in[0])));
}

/* Conditions of one dimension choose rows. */
bool mx_where(MxNode *n)
{
    const Build *b = &n->b;
    const Expr  *cond = mx_truth(b, n->in[0]);
    uint32_t     rank = expr_rank(n->in[1]);

    if (cond && !strcmp(n->row->name, "where") && expr_rank(cond) == 1 && rank > 1)
        cond = build_along(b, cond, rank, 0);
    return mx_done(n, cond ? build_where(b, cond, n->in[1], n->in[2]) : NULL);
}

/* ---- numpy's ---------------------------------------------------------------------------------------- */

static const Expr *as_float(const Build *b, const Expr *x)
{
    return dtype_is_float(expr_dtype(x)) ? x : build_cast(b, x, DT_F32);
}

/* Floats before whole numbers before bools, and the wider one. */
static DType common_type(DType x, DType y)
{
    int kind_x = dtype_is_float(x) ? 2 : !dtype_is_bool(x),
        kind_y = dtype_is_float(y) ? 2 : !dtype_is_bool(y);

    if (kind_x != kind_y)
        return kind_x > kind_y ? x : y;
    return x.bits >= y.bits ? x : y;
}

static void align_types(MxNode *n, uint32_t i, uint32_t k)
{
    DType t = common_type(expr_dtype(n->in[i]), expr_dtype(n->in[k]));

    n->in[i] = build_cast(&n->b, n->in[i], t);
    n->in[k] = build_cast(&n->b, n->in[k], t);
}

bool mx_np_unary(MxNode *n)
{
    return mx_done(n, build1(&n->b, n->row->relay, as_float(&n->b, n->in[0]), NULL));
}

bool mx_np_binary(MxNode *n)
{
    align_types(n, 0, 1);
    return mx_binary(n);
}

bool mx_np_divide(MxNode *n)
{
    align_types(n, 0, 1);
    return mx_done(n, build_div(&n->b, as_float(&n->b, n->in[0]), as_float(&n->b, n->in[1])));
}

bool mx_np_compare(MxNode *n)
{
    align_types(n, 0, 1);
    return mx_done(n, build2(&n->b, n->row->relay, n->in[0], n->in[1], NULL));
}

/* Whole numbers stay such beside a whole number, but when they are divided. */
static const Expr *np_operand(MxNode *n)
{
    bool whole = mx_bool(n, "is_int") && strcmp(n->row->relay, "divide") != 0;

    if (whole && dtype_is_bool(expr_dtype(n->in[0])))
        return build_cast(&n->b, n->in[0], DT_I64);
    return whole ? n->in[0] : as_float(&n->b, n->in[0]);
}

bool mx_np_scalar(MxNode *n)
{
    return mx_done(n, by_scalar(n, np_operand(n), false));
}

bool mx_np_reverse_scalar(MxNode *n)
{
    return mx_done(n, by_scalar(n, np_operand(n), true));
}

bool mx_np_compare_scalar(MxNode *n)
{
    const Expr *x = np_operand(n);

    return mx_done(n, build2(&n->b, n->row->relay, x,
                             x ? build_scalar(&n->b, x, mx_float(n, "scalar")) : NULL, NULL));
}

/* A number where the condition does not hold, or where it does. */
bool mx_np_where_scalar(MxNode *n)
{
    const Build *b = &n->b;
    const Expr  *v = build_scalar(b, n->in[1], mx_float(n, "scalar"));
    bool         right = strstr(n->row->name, "rscalar") != NULL;

    return mx_done(
        n, build_where(b, mx_truth(b, n->in[0]), right ? n->in[1] : v, right ? v : n->in[1]));
}
