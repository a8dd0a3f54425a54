/* Quantized operators, in the integers that TVM computes them in.
 *
 * qnn.requantize multiplies by a quotient of scales as a fixed-point number, m / 2^s with 31 bits:
 *
 *     (x * m + 2^(s - 1)) >> s          in 64 bits; halves go up (UPWARD), or away from 0
 * (TONEAREST)
 *
 * which is what TVM does where its compute_dtype is int64; float32 and float64 are read, too.
 * Convolutions and products are sums of cells less their zero points, in 32 bits.  Sums and
 * products of cells requantize their operands or their result.  What has no rule of its own
 * (qnn.tanh ..) is computed in floats between qnn.dequantize and qnn.quantize. */
#include "frontends/tvm/tvm.h"

#include <math.h>
#include <string.h>

enum { FIXED_BITS = 31, SOFTMAX_BITS = 30, MAX_SHIFT = 31 };

/* ---- scales and zero points ------------------------------------------------------------------------- */

/* Scales are constants: one, or one for each cell of an axis. */
typedef struct {
    uint32_t n;
    double  *at;
} Scales;

static bool read_scales(const TvNode *n, const Expr *e, Scales *out)
{
    const Build *b = &n->b;
    int64_t      cells;

    if (!e || !expr_is_tensor(e) || !(e = build_fold(b, e)) || e->kind != EXPR_CONST ||
        !dtype_is_float(expr_dtype(e)) || expr_rank(e) > 1 || !type_elems(e->type, &cells) ||
        cells < 1 || cells > 1 << 20)
        return tv_error(n, E_UNSUPPORTED, "a scale is no constant");
    *out = (Scales){(uint32_t)cells, arena_array(b->c->arena, (size_t)cells, sizeof(double))};
    for (uint32_t i = 0; i < out->n; i++) {
        DType t = expr_dtype(e);

        out->at[i] = dtype_get_f(t, e->u.constant->data.at + (size_t)i * dtype_bytes(t));
        if (!(out->at[i] >= 0 && out->at[i] < HUGE_VAL))
            return tv_error(n, E_IMPORT, "a scale of %g", out->at[i]);
    }
    return true;
}

static bool read_scale(const TvNode *n, const Expr *e, double *out)
{
    Scales s;

    if (!read_scales(n, e, &s))
        return false;
    if (s.n != 1 || s.at[0] == 0)
        return tv_error(n, E_UNSUPPORTED, "%u scales, or one of 0, of a whole tensor", s.n);
    *out = s.at[0];
    return true;
}

/* A number, or one for each cell of an axis of x, in type t. */
static const Expr *along(const TvNode *n, const Expr *p, const Expr *x, int64_t axis, DType t)
{
    const Build *b = &n->b;
    uint32_t     at;

    if (!p || !x || !expr_is_tensor(p) || expr_rank(p) > 1)
        return tv_error(n, E_IMPORT, "scales or zero points of other than one dimension");
    if (expr_rank(p) && expr_single(p))
        p = build_reshape(b, p, 0, NULL);
    if (!p || !expr_rank(p))
        return p ? build_cast(b, p, t) : NULL;
    if (!build_axis(b, axis, expr_rank(x), 0, &at))
        return NULL;
    if (build_dim(b, p, 0) != build_dim(b, x, at))
        return tv_error(n, E_IMPORT, "%lld scales or zero points for %s",
                        (long long)build_dim(b, p, 0), type_text(b->c, x->type));
    return build_cast(b, build_along(b, p, expr_rank(x), at), t);
}

/* x - zero, in t; nothing is taken away where zero is the constant 0. */
static const Expr *centred(const TvNode *n, const Expr *x, const Expr *zero, int64_t axis, DType t)
{
    double v;

    if (!(zero = along(n, zero, x, axis, t)))
        return NULL;
    x = build_cast(&n->b, x, t);
    return expr_const_f(zero, &v) && v == 0 ? x : build_sub(&n->b, x, zero);
}

static const Expr *clipped(const Build *b, const Expr *x, DType t)
{
    return x ? build_cast(b, build_clip(b, x, dtype_min(t), dtype_max(t)), t) : NULL;
}

/* The first operands are tensors of integers. */
static bool check_ints(const TvNode *n, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!dtype_is_int(expr_dtype(n->in[i])))
            return tv_error(n, E_IMPORT, "operand %u is %s, not of integers", i,
                            type_text(n->b.c, n->in[i]->type));
    return true;
}

/* ---- fixed point ------------------------------------------------------------------------------------ */

/* v = multiplier / 2^31 * 2^shift. */
static void fixed_of(double v, int64_t *multiplier, int64_t *shift)
{
    int exponent = 0;

    *multiplier = (int64_t)round(frexp(v, &exponent) * ((int64_t)1 << FIXED_BITS));
    if (*multiplier == (int64_t)1 << FIXED_BITS) {
        *multiplier /= 2;
        exponent++;
    }
    *shift = exponent;
}

/* Constants that fit x: one number, or `count` along an axis. */
static const Expr *numbers(const TvNode *n, const Expr *x, uint32_t count, const int64_t *v,
                           int64_t axis)
{
    int64_t dims[1] = {count};

    return along(n, build_const(&n->b, DT_I64, count > 1, dims, v), x, axis, DT_I64);
}

/* x times each of the values, in i32. */
static const Expr *times_fixed(const TvNode *n, const Expr *x, Scales v, int64_t axis, bool nearest)
{
    const Build *b = &n->b;
    int64_t     *m = arena_array(b->c->arena, v.n * (size_t)4 + 4, sizeof *m), *left = m + v.n,
            *right = left + v.n, *half = right + v.n, most = 0;
    const Expr *add;

    for (uint32_t i = 0; i < v.n; i++) {
        int64_t shift;

        fixed_of(v.at[i], &m[i], &shift);
        if (shift > MAX_SHIFT || shift < -MAX_SHIFT)
            return tv_error(n, E_UNSUPPORTED, "scales whose quotient is %g", v.at[i]);
        left[i] = shift > 0 ? shift : 0;
        right[i] = FIXED_BITS + (shift > 0 ? 0 : -shift);
        half[i] = (int64_t)1 << (right[i] - 1);
        most = left[i] > most ? left[i] : most;
    }
    x = build_cast(b, x, DT_I64);
    if (most)
        x = build2(b, "left_shift", x, numbers(n, x, v.n, left, axis), NULL);
    x = build_mul(b, x, x ? numbers(n, x, v.n, m, axis) : NULL);
    if (!x || !(add = numbers(n, x, v.n, half, axis)))
        return NULL;
    if (nearest)
        add = build_where(b, build_by(b, "less", x, 0), build_by(b, "subtract", add, 1), add);
    x = build2(b, "right_shift", build_add(b, x, add), numbers(n, x, v.n, right, axis), NULL);
    return x ? build_cast(b, x, DT_I32) : NULL;
}

const Expr *tv_fixed_point_multiply(TvNode *n)
{
    int64_t multiplier = tv_int(n, "multiplier", 0), shift = tv_int(n, "shift", 0);
    double  v;

    if (!dtype_eq(expr_dtype(n->in[0]), DT_I32) || multiplier < 0 || shift < -MAX_SHIFT ||
        shift > MAX_SHIFT)
        return tv_error(n, E_UNSUPPORTED, "data of %s, a multiplier of %lld, a shift of %lld",
                        type_text(n->b.c, n->in[0]->type), (long long)multiplier, (long long)shift);
    v = ldexp((double)multiplier, (int)shift - FIXED_BITS);
    return times_fixed(n, n->in[0], (Scales){1, &v}, 0, false);
}

/* x, multipliers, shifts to the left and to the right: a number for each cell of an axis. */
const Expr *tv_fixed_point_multiply_per_axis(TvNode *n)
{
    static const char *const asked[] = {"is_lshift_required", "is_rshift_required"};
    TvValue                  v[3];
    Scales                   s;
    Ints                     axes;

    for (uint32_t i = 0; i < 3; i++)
        if (!tv_constant(n, 1 + i, &v[i]))
            return NULL;
    if (!tv_ints(n, "axes", &axes))
        return NULL;
    if (!dtype_eq(expr_dtype(n->in[0]), DT_I32) || axes.n != 1 || v[0].kind != TV_LIST ||
        v[1].kind != TV_LIST || v[2].kind != TV_LIST || v[1].n != v[0].n || v[2].n != v[0].n)
        return tv_error(n, E_UNSUPPORTED, "data of %s, multipliers of %s along %u axes",
                        type_text(n->b.c, n->in[0]->type), type_text(n->b.c, n->in[1]->type),
                        axes.n);
    s = (Scales){v[0].n, arena_array(n->b.c->arena, v[0].n + (size_t)1, sizeof *s.at)};
    for (uint32_t i = 0; i < s.n; i++) {
        int64_t left = tv_bool(n, asked[0], true) ? v[1].list[i].i : 0,
                right = tv_bool(n, asked[1], true) ? v[2].list[i].i : 0;

        if (v[0].list[i].i < 0 || left < 0 || left > MAX_SHIFT || right < 0 || right > MAX_SHIFT)
            return tv_error(n, E_IMPORT, "a multiplier of %lld, shifts of %lld and %lld",
                            (long long)v[0].list[i].i, (long long)left, (long long)right);
        s.at[i] = ldexp((double)v[0].list[i].i, (int)(left - right) - FIXED_BITS);
    }
    return times_fixed(n, n->in[0], s, axes.at[0], false);
}

/* ---- floats on the grid of integers -------------------------------------------------------------------- */

/* Data, which integers (0: none, as they are), scale, zero point. */
const Expr *tv_simulated(TvNode *n)
{
    static const DType types[] = {DT_F32, DT_I8, DT_U8, DT_I32};
    const Build       *b = &n->b;
    bool               to = strstr(n->row->name, "_quantize") != NULL;
    const Expr        *x = n->in[0], *scale, *zero;
    int64_t            axis = tv_int(n, "axis", -1);
    double             code;

    if (!expr_const_f(n->in[1], &code) || !(code >= 0 && code < COUNT(types)))
        return tv_error(n, E_UNSUPPORTED, "the kind of its integers is no constant, or not known");
    if ((int)code == 0)
        return x;
    scale = along(n, n->in[2], x, axis, expr_dtype(x));
    zero = along(n, n->in[3], x, axis, expr_dtype(x));
    if (!scale || !zero)
        return NULL;
    if (!to)
        return build_mul(b, build_sub(b, x, zero), scale);
    return build_clip(b, build_add(b, tv_rounded(b, build_div(b, x, scale)), zero),
                      dtype_min(types[(int)code]), dtype_max(types[(int)code]));
}

/* Data, scale, least and most: in steps of the scale; kind 0 leaves them. */
const Expr *tv_annotated(TvNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *scale = n->in[1];

    if (tv_int(n, "kind", 1) == 0)
        return x;
    x = build2(b, "minimum", build_div(b, x, scale), n->in[3], NULL);
    x = tv_rounded(b, build2(b, "maximum", x, n->in[2], NULL));
    return build_mul(b, x, scale);
}

/* ---- requantize ------------------------------------------------------------------------------------- */

/* What qnn.requantize is told; of other operators, the defaults. */
typedef struct {
    int64_t axis;
    bool    nearest;
    DType   compute; /* i64: in fixed point; f32, f64 */
} Rounding;

static const Expr *rounded_up(const Build *b, const Expr *x)
{
    return build1(b, "floor", build_by(b, "add", x, 0.5), NULL);
}

/* Operands: data, input_scale, input_zero, output_scale, output_zero. */
static const Expr *requantized(const TvNode *n, const Expr *const *in, Rounding r, DType t)
{
    const Build *b = &n->b;
    bool         fixed = dtype_eq(r.compute, DT_I64);
    DType        work = fixed ? DT_I32 : r.compute;
    const Expr  *x;
    Scales       s;
    double       to, zero;
    bool         same;

    if (!in[0] || !read_scales(n, in[1], &s) || !read_scale(n, in[3], &to) ||
        !(x = centred(n, in[0], in[2], r.axis, work)))
        return NULL;
    same = s.n == 1 && s.at[0] == to;
    for (uint32_t i = 0; i < s.n; i++)
        s.at[i] /= to;
    if (fixed && !same) {
        x = times_fixed(n, x, s, r.axis, r.nearest);
    } else if (!same) {
        const Expr *by = build_const(b, DT_F64, s.n > 1, (int64_t[]){s.n}, s.at);

        x = build_mul(b, x, along(n, by, x, r.axis, work));
    }
    if (!x || !(in[4] && expr_const_f(in[4], &zero) && zero == 0))
        x = x ? build_add(b, x, along(n, in[4], x, r.axis, work)) : NULL;
    if (!fixed && x)
        x = r.nearest ? tv_rounded(b, x) : rounded_up(b, x);
    if (!x)
        return NULL;
    return dtype_eq(t, DT_I32) && fixed ? x : clipped(b, x, t);
}

static const Rounding plain = {-1, false, {DT_INT, 64, 1}};

/* In i32 with the scale and zero point of the result. */
static const Expr *at_result(const TvNode *n, const Expr *const *in, int64_t axis)
{
    double from, to, zero, zero_to;
    Scales s;

    if (!read_scales(n, in[1], &s) || !read_scale(n, in[3], &to))
        return NULL;
    from = s.n == 1 ? s.at[0] : -1;
    if (from == to && expr_const_f(in[2], &zero) && expr_const_f(in[4], &zero_to) &&
        zero == zero_to)
        return build_cast(&n->b, in[0], DT_I32);
    return requantized(n, in, (Rounding){axis, false, DT_I64}, DT_I32);
}

const Expr *tv_requantize(TvNode *n)
{
    const char *rounding = tv_text(n, "rounding", "None"), *compute;
    Rounding    r = {tv_int(n, "axis", -1), !strcmp(rounding, "TONEAREST"), DT_I64};
    DType       t = DT_I8;

    compute = tv_text(n, "compute_dtype", "None");
    if (!r.nearest && strcmp(rounding, "UPWARD") != 0 && strcmp(rounding, "None") != 0)
        return tv_error(n, E_IMPORT, "'rounding' is %s", rounding);
    if (strcmp(compute, "None") != 0 &&
        (!tv_dtype(compute, &r.compute) || dtype_bytes(r.compute) < 4 ||
         (!dtype_is_float(r.compute) && !dtype_eq(r.compute, DT_I64))))
        return tv_error(n, E_IMPORT, "'compute_dtype' is %s", compute);
    if (!tv_type(n, "out_dtype", &t) || !check_ints(n, 1))
        return NULL;
    if (!dtype_is_int(t))
        return tv_error(n, E_IMPORT, "'out_dtype' is %s", dtype_text(n->b.c, t));
    return requantized(n, n->in, r, t);
}

/* ---- quantize, dequantize ----------------------------------------------------------------------------- */

/* round(x / scale) + zero, halves away from 0, within t. */
static const Expr *quantized(const TvNode *n, const Expr *x, const Expr *scale, const Expr *zero,
                             int64_t axis, DType t)
{
    const Build *b = &n->b;

    if (!x || !dtype_is_float(expr_dtype(x)) || !dtype_is_int(t))
        return x ? tv_error(n, E_IMPORT, "%s becomes %s", type_text(b->c, x->type),
                            dtype_text(b->c, t))
                 : NULL;
    scale = along(n, scale, x, axis, expr_dtype(x));
    zero = along(n, zero, x, axis, expr_dtype(x));
    return clipped(b, build_add(b, tv_rounded(b, build_div(b, x, scale)), zero), t);
}

static const Expr *dequantized(const TvNode *n, const Expr *x, const Expr *scale, const Expr *zero,
                               int64_t axis)
{
    x = centred(n, x, zero, axis, DT_I32);
    return x ? build_mul(&n->b, build_cast(&n->b, x, DT_F32), along(n, scale, x, axis, DT_F32))
             : NULL;
}

const Expr *tv_quantize(TvNode *n)
{
    DType t = DT_I8;

    return tv_type(n, "out_dtype", &t)
               ? quantized(n, n->in[0], n->in[1], n->in[2], tv_int(n, "axis", -1), t)
               : NULL;
}

const Expr *tv_dequantize(TvNode *n)
{
    DType       t = DT_F32;
    const Expr *x = dequantized(n, n->in[0], n->in[1], n->in[2], tv_int(n, "axis", -1));

    return x && tv_type(n, "out_dtype", &t) ? build_cast(&n->b, x, t) : NULL;
}

/* ---- convolutions, products: data, weights, their zero points, their scales ---------------------------- */

const Expr *tv_qnn_conv(TvNode *n)
{
    TvConv k;

    if (!check_ints(n, 2) || !tv_read_conv(n, &k))
        return NULL;
    k.conv.x = centred(n, k.conv.x, n->in[2], 1, DT_I32);
    k.conv.w = centred(n, k.conv.w, n->in[3], k.conv.transposed, DT_I32);
    return tv_convolved(n, &k);
}

const Expr *tv_qnn_dense(TvNode *n)
{
    DType       t = DT_I32;
    const Expr *x = centred(n, n->in[0], n->in[2], -1, DT_I32);
    const Expr *w = centred(n, n->in[1], n->in[3], 0, DT_I32);
    int64_t     units = tv_int(n, "units", 0);

    if (!check_ints(n, 2) || !x || !w || !tv_type(n, "out_dtype", &t))
        return NULL;
    if (units && units != build_dim(&n->b, w, 0))
        return tv_error(n, E_IMPORT, "'units' is %lld for weights %s", (long long)units,
                        type_text(n->b.c, n->in[1]->type));
    return build2(&n->b, "nn.dense", build_cast(&n->b, x, t), build_cast(&n->b, w, t), NULL);
}

const Expr *tv_qnn_batch_matmul(TvNode *n)
{
    BatchMatmulAttrs *a = ATTRS(&n->b, BatchMatmulAttrs);
    const Expr       *x = centred(n, n->in[0], n->in[2], -1, DT_I32);

    a->transpose_b = true;
    return build2(&n->b, "nn.batch_matmul", x, centred(n, n->in[1], n->in[3], -1, DT_I32), a);
}

/* ---- cells: lhs, rhs, the scale and zero point of each, those of the result ----------------------------- */

/* Both in the result's scale; a sum has its zero point once too often, a difference never. */
const Expr *tv_qnn_sum(TvNode *n)
{
    const Build      *b = &n->b;
    const Expr *const one[5] = {n->in[0], n->in[2], n->in[3], n->in[6], n->in[7]};
    const Expr *const two[5] = {n->in[1], n->in[4], n->in[5], n->in[6], n->in[7]};
    const Expr       *x = at_result(n, one, tv_int(n, "lhs_axis", -1));
    const Expr       *y = at_result(n, two, tv_int(n, "rhs_axis", -1));
    const Expr       *zero = build_cast(b, n->in[7], DT_I32);
    bool              sum = !strcmp(n->row->relay, "add");

    if (!check_ints(n, 2))
        return NULL;
    x = build2(b, n->row->relay, x, y, NULL);
    return clipped(b, build2(b, sum ? "subtract" : "add", x, zero, NULL), expr_dtype(n->in[0]));
}

const Expr *tv_qnn_mul(TvNode *n)
{
    const Build *b = &n->b;
    int64_t      axis = tv_int(n, "lhs_axis", -1);
    const Expr  *x = centred(n, n->in[0], n->in[3], axis, DT_I32);
    const Expr  *y = centred(n, n->in[1], n->in[5], tv_int(n, "rhs_axis", -1), DT_I32);
    Scales       s, v;

    if (!check_ints(n, 2) || !read_scales(n, n->in[2], &s) || !read_scales(n, n->in[4], &v))
        return NULL;
    if (s.n != v.n || (s.n > 1 && axis != tv_int(n, "rhs_axis", -1)))
        return tv_error(n, E_UNSUPPORTED, "%u and %u scales, or some of different axes", s.n, v.n);
    for (uint32_t i = 0; i < s.n; i++) /* TVM rounds the product to f32 */
        s.at[i] = (double)((float)s.at[i] * (float)v.at[i]);
    return requantized(n,
                       (const Expr *[]){build_mul(b, x, y),
                                        build_const(b, DT_F64, s.n > 1, (int64_t[]){s.n}, s.at),
                                        build_zeros(b, DT_I32, 0, NULL), n->in[6], n->in[7]},
                       (Rounding){axis, false, DT_I64}, expr_dtype(n->in[0]));
}

/* Tuples of data, of scales and of zero points; the scale and zero point of the result. */
const Expr *tv_qnn_concatenate(TvNode *n)
{
    const Build *b = &n->b;
    const Type  *t = n->in[0]->type;
    const Expr **parts;

    for (uint32_t i = 0; i < 3; i++)
        if (!n->in[i]->type || n->in[i]->type->kind != TYPE_TUPLE || n->in[i]->type->n != t->n ||
            !t->n)
            return tv_error(n, E_IMPORT, "operand %u is no tuple of as many tensors", i);
    parts = NEW_ARRAY(b->c->arena, const Expr *, t->n);
    for (uint32_t i = 0; i < t->n; i++) {
        const Expr *in[5] = {build_proj(b, n->in[0], i), build_proj(b, n->in[1], i),
                             build_proj(b, n->in[2], i), n->in[3], n->in[4]};

        if (!expr_is_tensor(in[0]) || !dtype_is_int(expr_dtype(in[0])))
            return tv_error(n, E_IMPORT, "part %u is no tensor of integers", i);
        if (!(in[0] = at_result(n, in, -1)))
            return NULL;
        parts[i] = clipped(b, in[0], expr_dtype(build_proj(b, n->in[0], i)));
    }
    return build_concat(b, t->n, parts, tv_int(n, "axis", 0));
}

/* ---- x, its scale and zero point, those of the result ---------------------------------------------------- */

/* In floats. */
const Expr *tv_qnn_unary(TvNode *n)
{
    const Expr *x = check_ints(n, 1) ? dequantized(n, n->in[0], n->in[1], n->in[2], -1) : NULL;

    x = !x                                   ? NULL
        : !strcmp(n->row->relay, "multiply") ? build_hard_swish(&n->b, x)
                                             : build1(&n->b, n->row->relay, x, NULL);
    return quantized(n, x, n->in[3], n->in[4], -1, expr_dtype(n->in[0]));
}

/* Below the zero point alpha * x + (1 - alpha) * zero, in fixed point. */
const Expr *tv_qnn_leaky_relu(TvNode *n)
{
    const Build *b = &n->b;
    double       alpha = tv_float(n, "alpha", 0.25), rest = 1 - alpha;
    const Expr  *x = at_result(n, n->in, -1), *y, *zero = build_cast(b, n->in[4], DT_I32);

    if (!check_ints(n, 1) || !x || !zero)
        return NULL;
    if (!(alpha >= 0 && alpha <= 1))
        return tv_error(n, E_UNSUPPORTED, "'alpha' is %g", alpha);
    y = build_add(b, times_fixed(n, x, (Scales){1, &alpha}, 0, false),
                  times_fixed(n, zero, (Scales){1, &rest}, 0, false));
    y = build_where(
        b, build_less(b, build_cast(b, n->in[0], DT_I32), build_cast(b, n->in[2], DT_I32)), y, x);
    return clipped(b, y, expr_dtype(n->in[0]));
}

/* The mean of requantized cells, rounded towards 0. */
const Expr *tv_qnn_avg_pool(TvNode *n)
{
    const Build *b = &n->b;
    TvNode       pool = *n;
    const Expr  *x = at_result(n, n->in, -1), *y;

    if (!check_ints(n, 1) || !x)
        return NULL;
    x = build_cast(b, x, DT_F64); /* sums are exact, and quotients on the right side of a number */
    pool.in = &x;
    y = tv_pool(&pool);
    return clipped(b, y ? build1(b, "trunc", y, NULL) : NULL, expr_dtype(n->in[0]));
}

/* Powers of two by shifts and a line between them, after Lin et al., "I-ViT", algorithm 1. */
const Expr *tv_qnn_softmax(TvNode *n)
{
    const Build *b = &n->b;
    int64_t      axis = tv_int(n, "axis", -1), one = 7;
    const Expr  *x = centred(n, n->in[0], n->in[2], axis, DT_I32), *top, *p, *q, *r, *e, *sum;
    double       scale, unit;

    if (!x || !read_scale(n, n->in[1], &scale))
        return NULL;
    if (scale > 1)
        return tv_error(n, E_UNSUPPORTED, "an input scale of %g, above 1", scale);
    unit = round(1 / (double)(float)scale);
    if (unit > INT32_MAX / 4)
        return tv_error(n, E_UNSUPPORTED, "an input scale of %g", scale);
    x = build_sub(b, x, build_reduce(b, "max", x, 1, &axis, true));
    p = build_add(b, x, build_by(b, "right_shift", x, 1));
    p = build_sub(b, p, build_by(b, "right_shift", x, 4));
    q = build_clip(b, build_by(b, "divide", p, -unit), 0, 20);
    top = build_reduce(b, "max", q, 1, &axis, true);
    r = build_add(b, p, build_by(b, "multiply", q, unit));
    e = build_by(b, "add", build_by(b, "right_shift", r, 1), unit);
    e = build2(b, "left_shift", e, build_sub(b, top, q), NULL);
    sum = build_reduce(b, "sum", e, 1, &axis, true);
    if (!sum)
        return NULL;
    e = build_mul(b, build_div(b, build_scalar(b, sum, 1 << SOFTMAX_BITS), sum), e);
    e = build_by(b, "right_shift", e, SOFTMAX_BITS - one);
    return requantized(n,
                       (const Expr *[]){e, expr_scalar(b->c, DT_F32, 1.0 / (1 << one)),
                                        build_zeros(b, DT_I32, 0, NULL), n->in[3], n->in[4]},
                       plain, DT_I8);
}
