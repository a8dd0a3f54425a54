/* Products of quantized values: convolutions and matrix products in integers, and their bias.
 *
 *   nn.conv2d(qnn.dequantize(%x, sx, zx), qnn.dequantize(const @w, sw, zw))
 *     -> %0 = nn.conv2d(%x, const @w', pad_value=zx)                        // i32
 *        %1 = nn.bias_add(%0, const @c)             c[o] = -zx * sum of w' of output channel o
 *        qnn.dequantize(%1, sx * sw, 0, axis=1)
 *
 * w' = w - zw as i8, or as i16 where the zero point lies so that i8 does not hold all.  This is
 * exact, as sums of products of 8-bit numbers fit 32 bits up to 65,793 products, which is asked
 * for; data of 16 bits are summed in i64 where the weights are so large that 32 bits might not do
 * (quantized_wide.c).  Padding cells hold zx, the number that stands for zero.  A bias that
 * follows, round(b / (sx * sw)), goes into the same vector of integers.
 *
 * A multiplication per channel that follows (a batch normalization) goes into the scale.
 *
 * What does not fit stays as it is: weights that are not constant, or whose scales run along
 * another axis than the output channels.  Products with a constant matrix all become nn.dense with
 * [units, k]. */
#include "passes/graph/quantized.h"

#include <math.h>
#include <string.h>

#define MAX_PRODUCTS 65793 /* 255 * 128 * n < 2^31 */

static bool plain_conv(const Expr *e)
{
    const Conv2dAttrs *a = ATTRS_OF(Conv2dAttrs, e);

    return !strcmp(a->data_layout, "NCHW") && !*a->out_layout && !*a->out_dtype;
}

bool product_kind(const Expr *e, Product *p)
{
    if (call_is(e, "nn.conv2d") && plain_conv(e))
        return p->conv = true;
    if (call_is(e, "nn.dense"))
        return !*ATTRS_OF(DenseAttrs, e)->out_dtype;
    if (call_is(e, "nn.matmul")) {
        p->transposed = !ATTRS_OF(MatmulAttrs, e)->transpose_b;
        return !ATTRS_OF(MatmulAttrs, e)->transpose_a && !*ATTRS_OF(MatmulAttrs, e)->out_dtype;
    }
    if (call_is(e, "nn.batch_matmul")) {
        p->transposed = !ATTRS_OF(BatchMatmulAttrs, e)->transpose_b;
        return !ATTRS_OF(BatchMatmulAttrs, e)->transpose_a &&
               !*ATTRS_OF(BatchMatmulAttrs, e)->out_dtype;
    }
    return false;
}

/* One scale for all, or one for each output channel. */
static bool fits_channels(const Expr *p, int64_t axis, const Type *w, const Product *v)
{
    int64_t n;

    if (!p || !type_elems(p->type, &n))
        return false;
    return n == 1 || (n == v->channels && axis_from_front(axis, w->n) == (v->transposed ? 1 : 0));
}

bool weight_sizes(Product *p)
{
    int64_t n;

    if (!p->k || p->k->type->n != (p->conv ? 4u : 2u) ||
        !type_dim(p->k->type, p->transposed ? 1 : 0, &p->channels) || !type_elems(p->k->type, &n) ||
        n < 1)
        return false;
    p->products = n / p->channels;
    return p->products <= MAX_PRODUCTS;
}

/* The weight is a dequantized constant. */
static bool product_of(Ctx *c, const Expr *e, Product *p)
{
    Quantized w;

    *p = (Product){0};
    if (!product_kind(e, p) || !quantized_of(call_arg(e, 1), &w) || !is_8bit(w.q->type->dtype))
        return false;
    p->k = const_value(c, w.q);
    p->scale = const_value(c, w.scale);
    p->zero = const_value(c, w.zero);
    return weight_sizes(p) && fits_channels(p->scale, w.axis, p->k->type, p) &&
           fits_channels(p->zero, w.axis, p->k->type, p);
}

/* The constant is what it should be: it stays a view of the model file. */
static bool is_centred(const Product *p)
{
    double zero;

    return dtype_eq(p->k->type->dtype, DT_I8) && !p->transposed && expr_const_f(p->zero, &zero) &&
           zero == 0;
}

static int64_t centred_at(const Product *p, int64_t o, int64_t i)
{
    DType   t = p->k->type->dtype;
    int64_t at = p->transposed ? i * p->channels + o : o * p->products + i;

    return dtype_get_i(t, (const char *)p->k->u.constant->data.at + at * dtype_bytes(t)) -
           (int64_t)const_at(p->zero, o);
}

DType weight_sums(const Product *p, int64_t *sums, int64_t *most)
{
    bool narrow = true;

    *most = 0;
    for (int64_t o = 0; o < p->channels; o++) {
        int64_t magnitude = 0;

        sums[o] = 0;
        for (int64_t i = 0; i < p->products; i++) {
            int64_t v = centred_at(p, o, i);

            narrow &= v >= -128 && v <= 127;
            sums[o] += v;
            magnitude += v < 0 ? -v : v;
        }
        *most = magnitude > *most ? magnitude : *most;
    }
    return narrow ? DT_I8 : DT_I16;
}

bool weight_offsets(const Product *p, int64_t *offsets)
{
    for (int64_t o = 0; o < p->channels; o++) {
        int64_t least = 0, most = 0;

        for (int64_t i = 0; i < p->products; i++) {
            int64_t v = centred_at(p, o, i);

            least = v < least ? v : least;
            most = v > most ? v : most;
        }
        if (most - least > 255)
            return false;
        offsets[o] = most > 127 ? most - 127 : least < -128 ? least + 128 : 0;
    }
    return true;
}

const Expr *centred_weight(Ctx *c, const Product *p, DType t)
{
    int64_t  n = p->channels * p->products, dims[4] = {p->channels, p->products};
    size_t   size = (size_t)(n * dtype_bytes(t));
    uint8_t *data;

    if (is_centred(p))
        return p->k;
    data = arena_alloc(c->arena, size);
    for (int64_t o = 0; o < p->channels; o++)
        for (int64_t i = 0; i < p->products; i++)
            dtype_put_i(t, data + (o * p->products + i) * dtype_bytes(t), centred_at(p, o, i));
    for (uint32_t i = 0; p->conv && i < 4; i++)
        type_dim(p->k->type, i, &dims[i]);
    return expr_const(c,
                      const_new(c, p->k->u.constant->name,
                                type_tensor_i64(c, t, p->conv ? 4 : 2, dims), (Bytes){data, size}),
                      p->k->loc);
}

/* sx * sw: a vector if sw is one. */
static const Expr *product_scale(Ctx *c, const Product *p, double sx)
{
    int64_t n;
    float  *data;

    type_elems(p->scale->type, &n);
    data = arena_alloc(c->arena, (size_t)n * sizeof *data);
    for (int64_t i = 0; i < n; i++) {
        data[i] = (float)sx * (float)const_at(p->scale, i);
        if (!isfinite(data[i]) || data[i] == 0)
            return NULL;
    }
    return expr_const(c,
                      const_new(c, p->scale->u.constant->name,
                                type_tensor_i64(c, DT_F32, n > 1, &n),
                                (Bytes){(const uint8_t *)data, (size_t)n * sizeof *data}),
                      p->scale->loc);
}

/* Half of what a sum of that type holds. */
static int64_t half_range(DType t)
{
    return INT64_C(1) << (t.bits - 2);
}

/* What a bias may be in a sum of products of such data. */
static int64_t most_bias(DType data, DType sum)
{
    return is_8bit(data) || sum.bits > 32 ? half_range(sum) : half_range(sum) / 4;
}

DType sum_dtype(DType data, double zx, DType weight, int64_t most)
{
    double reach = fmax(dtype_max(data), -dtype_min(data)) + fabs(zx);
    double room = dtype_max(DT_I32) - (double)most_bias(data, DT_I32);
    bool   bytes = is_8bit(data) && is_8bit(weight);

    return bytes || (double)most * reach <= room ? DT_I32 : DT_I64;
}

const Expr *sum_vector(Ctx *c, const int64_t *v, int64_t n, DType t, const char *name, Loc loc)
{
    size_t   size = (size_t)n * (size_t)dtype_bytes(t);
    uint8_t *data = arena_alloc(c->arena, size);

    for (int64_t i = 0; i < n; i++) {
        if (v[i] < -half_range(t) || v[i] > half_range(t))
            return NULL; /* with the sum of products it might not fit */
        dtype_put_i(t, data + i * dtype_bytes(t), v[i]);
    }
    return expr_const(c, const_new(c, name, type_tensor_i64(c, t, 1, &n), (Bytes){data, size}),
                      loc);
}

const Expr *with_bias(Ctx *c, const Expr *sum, const Expr *bias, bool conv, Loc loc)
{
    BiasAddAttrs *a = ATTRS_NEW(c, BiasAddAttrs);

    a->axis = conv ? 1 : -1;
    return make2(c, "nn.bias_add", sum, bias, a, loc);
}

const Expr *integer_call(Ctx *c, const Expr *e, const Expr *x, const Expr *w, double zx, DType t)
{
    const Expr  *args[2] = {x, w};
    Conv2dAttrs *a;

    if (!call_is(e, "nn.conv2d")) {
        DenseAttrs *d = ATTRS_NEW(c, DenseAttrs);

        if (!dtype_eq(t, DT_I32))
            d->out_dtype = dtype_text(c, t);
        return make2(c, "nn.dense", x, w, d, e->loc);
    }
    a = ATTRS_COPY(c, Conv2dAttrs, e);
    a->out_dtype = dtype_text(c, t);
    for (uint32_t i = 0; i < a->padding.n; i++)
        if (a->padding.at[i])
            a->pad_value = (int64_t)zx;
    return expr_call(c, call_op(e), 2, args, a, e->loc);
}

const Expr *integer_product(Ctx *c, const Expr *e)
{
    Product     p;
    Quantized   x;
    double      sx, zx;
    int64_t    *sums, most;
    const Expr *w, *scale, *bias = NULL, *sum;
    DType       t, wt;

    if (!call_op(e) || !product_of(c, e, &p) || !quantized_tensor(call_arg(e, 0), &x, &sx, &zx))
        return e;
    if (wants_other_sign(c, x.q->type->dtype) && !(x.q = with_other_sign(c, x.q, &zx, e->loc)))
        return NULL;
    sums = NEW_ARRAY(c->scratch, int64_t, (size_t)p.channels);
    wt = weight_sums(&p, sums, &most);
    t = sum_dtype(x.q->type->dtype, zx, wt, most);
    if ((dtype_eq(wt, DT_I16) && (dtype_eq(t, DT_I64) || !is_8bit(x.q->type->dtype))) ||
        !(scale = product_scale(c, &p, sx)))
        return e;
    w = centred_weight(c, &p, wt);
    for (int64_t o = 0; o < p.channels; o++)
        sums[o] *= -(int64_t)zx;
    if (zx != 0 && !(bias = sum_vector(c, sums, p.channels, t, p.k->u.constant->name, e->loc)))
        return e;
    sum = dtype_eq(t, DT_I64) ? wide_product(c, e, x.q, w, zx) : NULL;
    if (!sum)
        sum = integer_call(c, e, x.q, w, zx, t);
    if (sum && bias)
        sum = with_bias(c, sum, bias, p.conv, e->loc);
    return make_dequantize(c, sum, scale, expr_scalar(c, t, 0), p.conv ? 1 : -1, e->loc);
}

/* ---- bias ----------------------------------------------------------------------------------- */

static bool is_sum_type(DType t)
{
    return dtype_eq(t, DT_I32) || dtype_eq(t, DT_I64);
}

/* Sums of products as integer_product makes them. */
typedef struct {
    const Expr *sum;     /* without the bias */
    const Expr *product; /* the call, or one of them */
    const Expr *bias;    /* NULL: none */
} Sum;

static bool is_sum(const Expr *e, Sum *s)
{
    s->sum = call_is(e, "nn.bias_add") ? call_arg(e, 0) : e;
    s->bias = call_is(e, "nn.bias_add") ? call_arg(e, 1) : NULL;
    s->product = call_is(s->sum, "add") ? call_arg(s->sum, 1) : s->sum;
    if (call_is(s->product, "cast"))
        s->product = call_arg(s->product, 0);
    return (call_is(s->product, "nn.conv2d") || call_is(s->product, "nn.dense")) &&
           is_sum_type(s->sum->type->dtype) &&
           is_quantized_type(call_arg(s->product, 0)->type->dtype) &&
           (!s->bias || s->bias->kind == EXPR_CONST);
}

/* One number for each channel of t, in order: [C], or [1, C, 1, 1] and the like for `add`. */
static bool per_channel(const Type *b, const Type *t, uint32_t channel, int64_t *n)
{
    int64_t v;

    if (!type_dim(t, channel, n) || b->n > t->n)
        return false;
    for (uint32_t i = 0; i < b->n; i++)
        if (!type_dim(b, i, &v) || (t->n - b->n + i == channel ? v != *n : v != 1))
            return false;
    return b->n > 0 && t->n - b->n <= channel;
}

static bool bias_operand(const Expr *e, uint32_t channel, const Expr **sum, const Expr **b)
{
    const Type *t = e->type;
    int64_t     n;

    if (call_is(e, "nn.bias_add")) {
        *sum = call_arg(e, 0);
        *b = call_arg(e, 1);
        return axis_from_front(ATTRS_OF(BiasAddAttrs, e)->axis, t->n) == channel;
    }
    for (uint32_t i = 0; i < 2; i++) {
        *sum = call_arg(e, i);
        *b = call_arg(e, 1 - i);
        if (is_constant(*b) && same_dims((*sum)->type, t) &&
            per_channel((*b)->type, t, channel, &n))
            return true;
    }
    return false;
}

/* The bias in steps of `scale`: as stored, if it has been quantized so, else rounded.  False: it is
 * not constant, or larger than `most`. */
static bool bias_steps(Ctx *c, const Expr *b, const Expr *scale, int64_t n, int64_t most,
                       int64_t *out)
{
    Quantized q;
    bool      quantized = quantized_of(b, &q) && is_sum_type(q.q->type->dtype);

    if (quantized) {
        q.q = const_value(c, q.q);
        q.scale = const_value(c, q.scale);
        q.zero = const_value(c, q.zero);
        quantized = q.q && q.scale && q.zero;
    }
    b = quantized ? b : const_value(c, b);
    if (!b)
        return false;
    for (int64_t i = 0; i < n; i++) {
        double s = const_at(scale, i), v;

        if (quantized) {
            double own = const_at(q.scale, i);

            v = const_at(q.q, i) - const_at(q.zero, i);
            if (fabs(own - s) > 1e-5 * fabs(s))
                v = nearbyint(v * own / s);
        } else {
            v = nearbyint(const_at(b, i) / s);
        }
        if (!(fabs(v) < (double)most))
            return false;
        out[i] += (int64_t)v;
    }
    return true;
}

const Expr *integer_bias(Ctx *c, const Expr *e)
{
    const Expr *sum, *b;
    Quantized   q;
    Sum         s;
    int64_t     n, *steps;
    bool        conv;

    if (!(call_is(e, "nn.bias_add") || call_is(e, "add")) || !expr_has_shape(e))
        return e;
    for (uint32_t i = 0; i < 2; i++) { /* the quicker test first */
        if (!quantized_of(call_arg(e, i), &q) || !is_sum(q.q, &s))
            continue;
        conv = call_is(s.product, "nn.conv2d");
        if (!bias_operand(e, conv ? 1 : e->type->n - 1, &sum, &b) || sum != call_arg(e, i) ||
            !type_dim(e->type, conv ? 1 : e->type->n - 1, &n))
            continue;
        steps = NEW_ARRAY(c->scratch, int64_t, (size_t)n);
        for (int64_t k = 0; k < n; k++)
            steps[k] = s.bias ? (int64_t)const_at(s.bias, k) : 0;
        DType   t = s.sum->type->dtype;
        int64_t most = most_bias(call_arg(s.product, 0)->type->dtype, t);

        if (!bias_steps(c, b, q.scale, n, most, steps) ||
            !(b = sum_vector(c, steps, n, t, NULL, e->loc)))
            return e;
        return make_dequantize(c, with_bias(c, s.sum, b, conv, e->loc), q.scale, q.zero, q.axis,
                               e->loc);
    }
    return e;
}

/* ---- scale ---------------------------------------------------------------------------------- */

/* dequantize(sum, s) * k, with k constant for each channel: dequantize(sum, s * k). */
const Expr *integer_scale(Ctx *c, const Expr *e)
{
    const Expr *sum, *k;
    Quantized   q;
    Sum         s;
    int64_t     n;
    float      *data;

    if (!call_is(e, "multiply") || !expr_has_shape(e))
        return e;
    for (uint32_t i = 0; i < 2; i++) {
        if (!quantized_of(call_arg(e, i), &q) || !is_sum(q.q, &s))
            continue;
        uint32_t channel = call_is(s.product, "nn.conv2d") ? 1 : e->type->n - 1;

        if (!bias_operand(e, channel, &sum, &k) || sum != call_arg(e, i) ||
            !type_dim(e->type, channel, &n) || !(k = const_value(c, k)))
            continue;
        data = arena_alloc(c->arena, (size_t)n * sizeof *data);
        for (int64_t o = 0; o < n; o++) {
            data[o] = (float)const_at(q.scale, o) * (float)const_at(k, o);
            if (!isfinite(data[o]) || data[o] == 0)
                return e;
        }
        const Expr *scale =
            expr_const(c,
                       const_new(c, k->u.constant->name, type_tensor_i64(c, DT_F32, 1, &n),
                                 (Bytes){(const uint8_t *)data, (size_t)n * sizeof *data}),
                       e->loc);
        return make_dequantize(c, q.q, scale, q.zero, channel, e->loc);
    }
    return e;
}
