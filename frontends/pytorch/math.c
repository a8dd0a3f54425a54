/* Element by element. */
#include "frontends/pytorch/pytorch.h"

#include <math.h>
#include <string.h>

/* What has no integers in PyTorch's results: they become f32. */
static const Expr *floating(const Build *b, const Expr *x)
{
    return x && pt_dtype_kind(expr_dtype(x)) < 2 ? build_cast(b, x, DT_F32) : x;
}

bool aten_unary(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self");

    if (x && pt_dtype_kind(expr_dtype(x)) < 2 &&
        (!strcmp(n->relay, "floor") || !strcmp(n->relay, "ceil") || !strcmp(n->relay, "round") ||
         !strcmp(n->relay, "trunc")))
        return pt_done(n, x);
    if (x && !strcmp(n->relay, "bitwise_not") && dtype_is_bool(expr_dtype(x)))
        return pt_done(n, build1(&n->b, "logical_not", x, NULL));
    return pt_done(n, build1(&n->b, n->relay, x, NULL));
}

bool aten_float_unary(PtNode *n)
{
    return pt_done(n, build1(&n->b, n->relay, floating(&n->b, pt_tensor(n, "self")), NULL));
}

/* ---- two operands ------------------------------------------------------------------------------- */

static bool operands(PtNode *n, PtOperand v[2], DType *t)
{
    if (!pt_operand(n, "self", &v[0]) || !pt_operand(n, "other", &v[1]))
        return false;
    *t = pt_promoted(2, v);
    return true;
}

static const Expr *two(PtNode *n, const char *op, const PtOperand v[2], DType t)
{
    return build2(&n->b, op, pt_as(n, &v[0], t), pt_as(n, &v[1], t), NULL);
}

bool aten_binary(PtNode *n)
{
    PtOperand v[2];
    DType     t;

    return operands(n, v, &t) && pt_done(n, two(n, n->relay, v, t));
}

/* self + alpha * other; of bools it is `or`. */
static bool sum(PtNode *n, bool swap)
{
    PtOperand   v[2], alpha = {.scalar = true, .v = 1, .i = 1, .kind = 1};
    DType       t;
    const Expr *x, *y;

    if (!operands(n, v, &t) || (pt_has(n, "alpha") && !pt_operand(n, "alpha", &alpha)))
        return false;
    x = pt_as(n, &v[swap], t);
    y = pt_as(n, &v[!swap], t);
    if (alpha.e || alpha.v != 1)
        y = build2(&n->b, "multiply", y, pt_as(n, &alpha, t), NULL);
    return pt_done(n, build2(&n->b, dtype_is_bool(t) ? "logical_or" : n->relay, x, y, NULL));
}

bool aten_sum_of(PtNode *n)
{
    return sum(n, false);
}

bool aten_rsub(PtNode *n)
{
    return sum(n, true);
}

bool aten_mul(PtNode *n)
{
    PtOperand v[2];
    DType     t;

    return operands(n, v, &t) &&
           pt_done(n, two(n, dtype_is_bool(t) ? "logical_and" : "multiply", v, t));
}

static const Expr *quotient(PtNode *n, const PtOperand v[2], DType t, const char *mode)
{
    const Expr *x;

    if (!mode)
        return two(n, "divide", v, pt_dtype_kind(t) == 2 ? t : DT_F32);
    if (pt_dtype_kind(t) < 2)
        return two(n, !strcmp(mode, "floor") ? "floor_divide" : "divide", v, t);
    x = two(n, "divide", v, t);
    return build1(&n->b, !strcmp(mode, "floor") ? "floor" : "trunc", x, NULL);
}

bool aten_div(PtNode *n)
{
    const char *mode = pt_string(n, "rounding_mode", NULL);
    PtOperand   v[2];
    DType       t;

    if (mode && strcmp(mode, "floor") != 0 && strcmp(mode, "trunc") != 0)
        return pt_error(n, E_IMPORT, "rounding_mode is '%s'", mode);
    return operands(n, v, &t) && pt_done(n, quotient(n, v, t, mode));
}

bool aten_floor_divide(PtNode *n)
{
    PtOperand v[2];
    DType     t;

    return operands(n, v, &t) && pt_done(n, quotient(n, v, t, "floor"));
}

bool aten_compare(PtNode *n)
{
    PtOperand v[2];
    DType     t;

    if (!operands(n, v, &t))
        return false;
    if (dtype_is_bool(t) && strcmp(n->relay, "equal") != 0 && strcmp(n->relay, "not_equal") != 0)
        t = DT_U8;
    return pt_done(n, two(n, n->relay, v, t));
}

static const Expr *truth(const Build *b, const Expr *x)
{
    return !x || dtype_is_bool(expr_dtype(x)) ? x : build_by(b, "not_equal", x, 0);
}

bool aten_logical(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self"), *y = x ? pt_tensor(n, "other") : NULL;

    return pt_done(n, build2(&n->b, n->relay, truth(&n->b, x), truth(&n->b, y), NULL));
}

bool aten_logical_not(PtNode *n)
{
    return pt_done(n, build1(&n->b, "logical_not", truth(&n->b, pt_tensor(n, "self")), NULL));
}

/* Of bools, logical_and for bitwise_and and so on. */
bool aten_bitwise(PtNode *n)
{
    PtOperand v[2];
    DType     t;

    if (!operands(n, v, &t))
        return false;
    return pt_done(n, two(n,
                          dtype_is_bool(t) ? arena_printf(n->b.c->arena, "logical_%s", n->relay + 8)
                                           : n->relay,
                          v, t));
}

bool aten_pow(PtNode *n)
{
    PtOperand   v[2];
    DType       t;
    const Expr *x;

    if (!pt_operand(n, "self", &v[0]) || !pt_operand(n, "exponent", &v[1]))
        return false;
    t = pt_promoted(2, v);
    x = pt_as(n, &v[0], t);
    if (x && v[1].scalar && !v[1].e && v[1].v == 2)
        return pt_done(n, build2(&n->b, "multiply", x, x, NULL));
    if (x && v[1].scalar && !v[1].e && v[1].v == 0.5 && pt_dtype_kind(t) == 2)
        return pt_done(n, build1(&n->b, "sqrt", x, NULL));
    return pt_done(n, build2(&n->b, "power", x, pt_as(n, &v[1], t), NULL));
}

bool aten_where(PtNode *n)
{
    const Expr *cond = pt_tensor(n, "condition");
    PtOperand   v[2];
    DType       t;

    if (!cond || !operands(n, v, &t))
        return false;
    return pt_done(n,
                   build_where(&n->b, truth(&n->b, cond), pt_as(n, &v[0], t), pt_as(n, &v[1], t)));
}

bool aten_masked_fill(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self"), *mask = x ? pt_tensor(n, "mask") : NULL;
    PtOperand   v;

    return mask && pt_operand(n, "value", &v) &&
           pt_done(n, build_where(&n->b, truth(&n->b, mask), pt_as(n, &v, expr_dtype(x)), x));
}

/* Bounds are numbers or tensors; the result has the type of all. */
bool aten_clamp(PtNode *n)
{
    PtOperand   v[3];
    uint32_t    count = 1;
    bool        lo = pt_has(n, "min"), hi = pt_has(n, "max");
    const Expr *x;
    DType       t;

    if (!pt_operand(n, "self", &v[0]) || (lo && !pt_operand(n, "min", &v[count++])) ||
        (hi && !pt_operand(n, "max", &v[count++])))
        return false;
    t = pt_promoted(count, v);
    x = pt_as(n, &v[0], t);
    if (pt_dtype_kind(t) == 2 && (!lo || !v[1].e) && (!hi || !v[count - 1].e) &&
        (!lo || !hi || v[1].v <= v[2].v))
        return pt_done(
            n, build_clip(&n->b, x, lo ? v[1].v : -INFINITY, hi ? v[count - 1].v : INFINITY));
    if (lo)
        x = build2(&n->b, "maximum", x, pt_as(n, &v[1], t), NULL);
    if (hi)
        x = build2(&n->b, "minimum", x, pt_as(n, &v[count - 1], t), NULL);
    return pt_done(n, x);
}

/* ---- one operand, several steps ------------------------------------------------------------------ */

static const Expr *input(PtNode *n)
{
    return floating(&n->b, pt_tensor(n, "self"));
}

static const Expr *by(const Build *b, const char *op, const Expr *x, double v)
{
    return build_by(b, op, x, v);
}

static const Expr *one(const Build *b, const char *op, const Expr *x)
{
    return build1(b, op, x, NULL);
}

bool aten_log1p(PtNode *n)
{
    const Expr *x = input(n);

    return x && pt_done(n, build_log1p(&n->b, x));
}

bool aten_expm1(PtNode *n)
{
    const Expr *x = input(n);

    return x && pt_done(n, build_expm1(&n->b, x));
}

bool aten_log_base(PtNode *n)
{
    double base = strstr(n->p->target, "log2") ? M_LN2 : M_LN10;

    return pt_done(n, by(&n->b, "multiply", one(&n->b, "log", input(n)), 1 / base));
}

bool aten_exp2(PtNode *n)
{
    return pt_done(n, one(&n->b, "exp", by(&n->b, "multiply", input(n), M_LN2)));
}

bool aten_erfc(PtNode *n)
{
    const Expr *x = one(&n->b, "erf", input(n));

    return x && pt_done(n, build_sub(&n->b, build_scalar(&n->b, x, 1), x));
}

bool aten_reciprocal(PtNode *n)
{
    const Expr *x = input(n);

    return x && pt_done(n, build_div(&n->b, build_scalar(&n->b, x, 1), x));
}

bool aten_square(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self");

    return x && pt_done(n, build_mul(&n->b, x, x));
}

bool aten_isfinite(PtNode *n)
{
    const Expr *x = input(n), *inf = one(&n->b, "isinf", x), *nan = one(&n->b, "isnan", x);

    return nan &&
           pt_done(n, one(&n->b, "logical_not", build2(&n->b, "logical_or", inf, nan, NULL)));
}

bool aten_relu6(PtNode *n)
{
    return pt_done(n, build_clip(&n->b, pt_tensor(n, "self"), 0, 6));
}

bool aten_hardtanh(PtNode *n)
{
    return pt_done(n, build_clip(&n->b, pt_tensor(n, "self"), pt_float(n, "min_val", -1),
                                 pt_float(n, "max_val", 1)));
}

bool aten_leaky_relu(PtNode *n)
{
    LeakyReluAttrs *a = ATTRS(&n->b, LeakyReluAttrs);
    bool            between = strstr(n->p->target, "rrelu") != NULL; /* in training, at random */

    if (between && pt_bool(n, "training", false))
        return pt_for_training(n);
    a->alpha = between ? (pt_float(n, "lower", 1.0 / 8) + pt_float(n, "upper", 1.0 / 3)) / 2
                       : pt_float(n, "negative_slope", 0.01);
    return pt_done(n, build1(&n->b, "nn.leaky_relu", pt_tensor(n, "self"), a));
}

/* A slope for each cell of dimension 1, or one for all. */
bool aten_prelu(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = pt_tensor(n, "self"), *slope = x ? pt_tensor(n, "weight") : NULL;

    if (!slope)
        return false;
    if (expr_rank(slope) == 1 && expr_rank(x) >= 2 && expr_form(slope, 0) == expr_form(x, 1))
        return pt_done(n, build2(b, "nn.prelu", x, slope, NULL));
    if (!expr_single(slope))
        return pt_error(n, E_IMPORT, "the slopes are %s for %s", type_text(b->c, slope->type),
                        type_text(b->c, x->type));
    return pt_done(n, build_if_negative(b, x, build_mul(b, x, build_reshape(b, slope, 0, NULL))));
}

bool aten_elu(PtNode *n)
{
    const Build *b = &n->b;
    double       scale = pt_float(n, "scale", 1);
    const Expr  *x = input(n);

    x = x ? build_elu(b, x, pt_float(n, "alpha", 1), pt_float(n, "input_scale", 1)) : NULL;
    return pt_done(n, scale == 1 ? x : by(b, "multiply", x, scale));
}

bool aten_selu(PtNode *n)
{
    const Expr *x = input(n);

    return x &&
           pt_done(n, build_selu(&n->b, x, 1.67326324235437728481704, 1.05070098735548049341933));
}

bool aten_celu(PtNode *n)
{
    double      alpha = pt_float(n, "alpha", 1);
    const Expr *x = input(n);

    return x && pt_done(n, build_elu(&n->b, x, alpha, 1 / alpha));
}

bool aten_gelu(PtNode *n)
{
    const char *how = pt_string(n, "approximate", "none");
    bool        by_tanh = !strcmp(how, "tanh");
    const Expr *x = input(n);

    if (!by_tanh && strcmp(how, "none"))
        return pt_error(n, E_UNSUPPORTED, "approximate is '%s'", how);
    return x && pt_done(n, build_gelu(&n->b, x, by_tanh));
}

bool aten_silu(PtNode *n)
{
    const Expr *x = input(n);

    return x && pt_done(n, build_swish(&n->b, x, 1));
}

bool aten_mish(PtNode *n)
{
    const Expr *x = input(n);

    return x && pt_done(n, build_mish(&n->b, x));
}

bool aten_hardsigmoid(PtNode *n)
{
    const Expr *x = input(n);

    return x && pt_done(n, build_hard_sigmoid(&n->b, x, 1.0 / 6, 0.5));
}

bool aten_hardswish(PtNode *n)
{
    const Expr *x = input(n);

    return x && pt_done(n, build_hard_swish(&n->b, x));
}

/* log(1 + exp(beta * x)) / beta, beyond the threshold x itself. */
bool aten_softplus(PtNode *n)
{
    const Build *b = &n->b;
    double       beta = pt_float(n, "beta", 1), threshold = pt_float(n, "threshold", 20);
    const Expr  *x = input(n), *xb = beta == 1 ? x : by(b, "multiply", x, beta), *y;

    if (!xb || !(y = build_softplus(b, xb)))
        return false;
    y = beta == 1 ? y : by(b, "multiply", y, 1 / beta);
    return pt_done(n, build_where(b, by(b, "greater", xb, threshold), x, y));
}

bool aten_log_sigmoid(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = input(n);

    return x && pt_done(n, one(b, "negative", build_softplus(b, one(b, "negative", x))));
}

bool aten_softsign(PtNode *n)
{
    const Expr *x = input(n);

    return x && pt_done(n, build_softsign(&n->b, x));
}

bool aten_tanhshrink(PtNode *n)
{
    const Expr *x = input(n);

    return x && pt_done(n, build_sub(&n->b, x, one(&n->b, "tanh", x)));
}

/* hardshrink keeps x outside [-lambd, lambd]; softshrink moves it by lambd towards 0 as well. */
bool aten_shrink(PtNode *n)
{
    const Build *b = &n->b;
    double       lambd = pt_float(n, "lambd", 0.5);
    double       by_how = strstr(n->p->target, "soft") ? lambd : 0;
    const Expr  *x = input(n), *r;

    if (!x)
        return false;
    r = build_where(b, by(b, "greater", x, lambd), by(b, "subtract", x, by_how),
                    build_scalar(b, x, 0));
    return pt_done(n, build_where(b, by(b, "less", x, -lambd), by(b, "add", x, by_how), r));
}

bool aten_threshold(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = pt_tensor(n, "self");

    return x && pt_done(n, build_where(b, by(b, "greater", x, pt_float(n, "threshold", 0)), x,
                                       build_scalar(b, x, pt_float(n, "value", 0))));
}

/* x[first half] * sigmoid(x[second half]) */
bool aten_glu(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = pt_tensor(n, "self");
    uint32_t     axis;
    int64_t      half;

    if (!x || !pt_axis(n, pt_int(n, "dim", -1), expr_rank(x), &axis))
        return false;
    half = build_dim(b, x, axis) / 2;
    return pt_done(n, build_mul(b, build_slice(b, x, axis, 0, half),
                                one(b, "sigmoid", build_slice(b, x, axis, half, 2 * half))));
}

/* self + value * t1 * t2, or t1 / t2 */
bool aten_addc(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = pt_tensor(n, "self"), *y = x ? pt_tensor(n, "tensor1") : NULL;
    const Expr  *z = y ? pt_tensor(n, "tensor2") : NULL;

    if (!z)
        return false;
    y = build2(b, n->relay, y, z, NULL);
    return pt_done(n, build_add(b, x, by(b, "multiply", y, pt_float(n, "value", 1))));
}

bool aten_lerp(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = pt_tensor(n, "self"), *y = x ? pt_tensor(n, "end") : NULL;
    PtOperand    w;

    return y && pt_operand(n, "weight", &w) &&
           pt_done(n,
                   build_add(b, x, build_mul(b, build_sub(b, y, x), pt_as(n, &w, expr_dtype(x)))));
}

bool aten_logaddexp(PtNode *n)
{
    const Build *b = &n->b;
    PtOperand    v[2];
    DType        t;
    const Expr  *d, *max;

    if (!operands(n, v, &t))
        return false;
    max = two(n, "maximum", v, t);
    d = one(b, "exp", one(b, "negative", one(b, "abs", two(n, "subtract", v, t))));
    return d && pt_done(n, build_add(b, max, build_log1p(b, d)));
}

bool aten_atan2(PtNode *n)
{
    PtOperand   v[2];
    DType       t;
    const Expr *y, *x;

    if (!operands(n, v, &t))
        return false;
    t = pt_dtype_kind(t) == 2 ? t : DT_F32;
    return (y = pt_as(n, &v[0], t)) && (x = pt_as(n, &v[1], t)) &&
           pt_done(n, build_atan2(&n->b, y, x));
}

/* Its result is written to `out`. */
bool aten_atan2_out(PtNode *n)
{
    const PtArg   *a = pt_arg(n, "out");
    const PtValue *to = a && a->kind == PT_TENSOR ? pt_value_of(n->im, a) : NULL;
    const Expr    *was = to && to->t ? pt_read(n, to->t) : NULL, *e;

    if (!n->nout)
        return pt_error(n, E_IMPORT, "there is no result");
    if (!was || !aten_atan2(n))
        return was || pt_tensor(n, "out");
    e = build_cast(&n->b, n->out[0].t->e, expr_dtype(was));
    if (e && !expr_has_forms(e, expr_rank(was), expr_forms(was).at))
        return pt_error(n, E_IMPORT, "out is %s", type_text(n->b.c, was->type));
    n->out[0] = *to;
    return e && pt_write(n, to->t, e);
}

/* ---- types ----------------------------------------------------------------------------------------- */

bool aten_identity(PtNode *n)
{
    return pt_done(n, pt_tensor(n, "self"));
}

bool aten_to(PtNode *n)
{
    const Expr *x, *other;
    DType       t;

    if (pt_makes_complex(n))
        return pt_to_complex(n);
    if (!(x = pt_tensor(n, "self")) || !pt_maybe(n, "other", &other))
        return false;
    return pt_type(n, "dtype", expr_dtype(other ? other : x), &t) &&
           pt_done(n, build_cast(&n->b, x, t));
}

bool aten_type_as(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self"), *like = x ? pt_tensor(n, "other") : NULL;

    return like && pt_done(n, build_cast(&n->b, x, expr_dtype(like)));
}

/* What is left out of dropout when nothing is trained. */
bool aten_dropout(PtNode *n)
{
    const Expr *x = pt_tensor(n, n->p->nin ? n->p->names[0] : "input");

    if (!x)
        return false;
    if (pt_bool(n, "train", false) && pt_float(n, "p", 0.5) != 0)
        return pt_for_training(n);
    (void)pt_float(n, "p", 0.5);
    return pt_done(n, x);
}

/* src in the form of self. */
bool aten_copy(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self"), *y = x ? pt_tensor(n, "src") : NULL;

    return y && pt_done(n, build_broadcast_to(&n->b, build_cast(&n->b, y, expr_dtype(x)),
                                              expr_rank(x), expr_forms(x).at));
}

bool aten_fill(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self");
    PtOperand   v = {.scalar = true, .kind = 1};

    return x && (!pt_has(n, "value") || pt_operand(n, "value", &v)) &&
           pt_done(n, build_broadcast_to(&n->b, pt_as(n, &v, expr_dtype(x)), expr_rank(x),
                                         expr_forms(x).at));
}
