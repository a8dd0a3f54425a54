/* Quantized values: whole numbers, and two numbers that say which range they stand for.  That of
 * 8-bit integers with a sign lies evenly around 0, -127.5 .. 127.5 for -most .. most; that of those
 * without, 0 .. 255.5, goes from the one number to the other. */
#include "frontends/mxnet/mxnet.h"

#include <math.h>
#include <string.h>

#define SIGNED_RANGE 127.5
#define UNSIGNED_RANGE 255.5

/* One number, as a scalar of floats. */
static const Expr *number(const Build *b, const Expr *x)
{
    return x && expr_single(x) ? build_cast(b, build_reshape(b, x, 0, NULL), DT_F32)
           : x                 ? build_error(b, E_IMPORT, "a range of %s", type_text(b->c, x->type))
                               : NULL;
}

/* max(|low|, |high|), folded where it is known. */
static const Expr *most_of(const Build *b, const Expr *low, const Expr *high)
{
    const Expr *y = build2(b, "maximum", build1(b, "abs", number(b, low), NULL),
                           build1(b, "abs", number(b, high), NULL), NULL);
    const Expr *k = y ? build_fold(b, y) : NULL;

    return k ? k : y;
}

static bool put_range(MxNode *n, const Expr *low, const Expr *high)
{
    const Build *b = &n->b;

    return mx_put(n, 1, build_reshape(b, low, 1, (int64_t[]){1})) &&
           mx_put(n, 2, build_reshape(b, high, 1, (int64_t[]){1}));
}

/* The range that was calibrated, or that of the data. */
static bool range_of(MxNode *n, const Expr *x, const Expr **low, const Expr **high)
{
    const Build *b = &n->b;
    double       from = mx_float(n, "min_calib_range"), to = mx_float(n, "max_calib_range");

    if (mx_has(n, "min_calib_range") && mx_has(n, "max_calib_range")) {
        if (!(from <= to) || from - from != 0 || to - to != 0)
            return mx_error(n, E_IMPORT, "a range from %g to %g", from, to);
        *low = expr_scalar(b->c, DT_F32, from);
        *high = expr_scalar(b->c, DT_F32, to);
        return true;
    }
    *low = build_reduce(b, "min", x, 0, NULL, false);
    *high = build_reduce(b, "max", x, 0, NULL, false);
    return *low && *high;
}

/* Halves away from zero. */
static const Expr *signed_cells(const Build *b, const Expr *x, const Expr *most)
{
    const Expr *scale = build_div(b, build_scalar(b, most, SIGNED_RANGE), most);
    const Expr *y = build_mul(b, build1(b, "abs", x, NULL), scale);

    y = build1(b, "floor", build_by(b, "add", y, 0.5), NULL);
    y = build_clip(b, build_mul(b, build1(b, "sign", x, NULL), y), -128, 127);
    return y ? build_cast(b, y, DT_I8) : NULL;
}

bool mx_quantize(MxNode *n)
{
    const Build *b = &n->b;
    const char  *type = mx_text(n, "out_type");
    const Expr  *x = n->in[0], *low, *high, *most, *y;
    double       from;

    if (dtype_is_int(expr_dtype(x))) /* it is already */
        return mx_error(n, E_UNSUPPORTED, "data of %s", type_text(b->c, x->type));
    x = build_cast(b, x, DT_F32);
    if (!range_of(n, x, &low, &high))
        return false;
    if (!strcmp(type, "auto")) {
        if (!expr_const_f(low, &from))
            return mx_error(n, E_UNSUPPORTED, "out_type=auto without min_calib_range");
        type = from >= 0 ? "uint8" : "int8";
    }
    if (!strcmp(type, "int8")) {
        most = most_of(b, low, high);
        return mx_done(n, signed_cells(b, x, most)) &&
               put_range(n, build1(b, "negative", most, NULL), most);
    }
    y = build_div(b, build_scalar(b, high, UNSIGNED_RANGE), build_sub(b, high, low));
    y = build_by(b, "add", build_mul(b, build_sub(b, x, low), y), 0.5);
    y = build1(b, "floor", build_clip(b, y, 0, 255), NULL);
    return y && mx_done(n, build_cast(b, y, DT_U8)) && put_range(n, low, high);
}

bool mx_dequantize(MxNode *n)
{
    const Build *b = &n->b;
    DType        t = expr_dtype(n->in[0]);
    const Expr  *x = build_cast(b, n->in[0], DT_F32), *low = number(b, n->in[1]),
               *high = number(b, n->in[2]);

    if (dtype_eq(t, DT_U8)) {
        x = build_mul(b, x, build_by(b, "divide", build_sub(b, high, low), UNSIGNED_RANGE));
        return mx_done(n, build_add(b, x, low));
    }
    if (!dtype_eq(t, DT_I8) && !dtype_eq(t, DT_I32))
        return mx_error(n, E_UNSUPPORTED, "data of %s", type_text(b->c, n->in[0]->type));
    return mx_done(n, build_mul(b, x,
                                build_by(b, "divide", most_of(b, low, high),
                                         t.bits == 8 ? SIGNED_RANGE : 2147483647)));
}

/* The same cells in another form, or fewer of them. */
static bool same_range(MxNode *n, const Expr *y)
{
    return mx_done(n, y) && mx_put(n, 1, n->in[1]) && mx_put(n, 2, n->in[2]);
}

bool mx_quantized_act(MxNode *n)
{
    if (!mx_is(n, "act_type", "relu"))
        return mx_error(n, E_UNSUPPORTED, "act_type=%s", mx_text(n, "act_type"));
    return same_range(n, build1(&n->b, "nn.relu", n->in[0], NULL));
}

bool mx_quantized_flatten(MxNode *n)
{
    return mx_rank(n, 0, 1, MAX_RANK) && same_range(n, build_matrix(&n->b, n->in[0], 1));
}

bool mx_quantized_ring_buffer(MxNode *n)
{
    MxNode      plain = *n;
    const Expr *y = NULL;

    plain.nin = 2;
    plain.nout = 1;
    plain.out = &y;
    return mx_ring_buffer(&plain) && mx_done(n, y) && mx_put(n, 1, n->in[2]) &&
           mx_put(n, 2, n->in[3]);
}

bool mx_quantized_pooling(MxNode *n)
{
    if (!mx_rank(n, 0, 4, 4))
        return false;
    if (!mx_is(n, "pool_type", "max") ||
        !(mx_is(n, "layout", "None") || mx_is(n, "layout", "NCHW")))
        return mx_error(n, E_UNSUPPORTED, "pool_type=%s, layout=%s", mx_text(n, "pool_type"),
                        mx_text(n, "layout"));
    return same_range(n, mx_pool(n, n->in[0]));
}

/* Values, then the ends of the range of each: all come to the widest of them. */
bool mx_quantized_concat(MxNode *n)
{
    const Build *b = &n->b;
    int64_t      count = mx_int(n, "num_args");
    const Expr **x, **most, *widest = NULL;
    uint32_t     axis;

    if (count < 1 || count > 1 << 16 || n->nin != 3 * count)
        return mx_error(n, E_IMPORT, "%u operands for %lld values", n->nin, (long long)count);
    x = NEW_ARRAY(b->c->arena, const Expr *, (size_t)count);
    most = NEW_ARRAY(b->c->arena, const Expr *, (size_t)count);
    for (int64_t i = 0; i < count; i++) {
        const Expr *const *ends = n->in + count + 2 * i;

        if (!dtype_eq(expr_dtype(n->in[i]), DT_I8))
            return mx_error(n, E_UNSUPPORTED, "data of %s", type_text(b->c, n->in[i]->type));
        most[i] = most_of(b, ends[0], ends[1]);
        widest = i ? build2(b, "maximum", widest, most[i], NULL) : most[i];
    }
    for (int64_t i = 0; i < count; i++) {
        const Expr *y =
            build_mul(b, build_cast(b, n->in[i], DT_F32), build_div(b, most[i], widest));

        y = build1(b, "round", y, NULL);
        x[i] = y ? build_cast(b, build_clip(b, y, -128, 127), DT_I8) : NULL;
    }
    return mx_axis(n, mx_int(n, "dim"), expr_rank(n->in[0]), &axis) &&
           mx_done(n, build_concat(b, (uint32_t)count, x, axis)) &&
           put_range(n, build1(b, "negative", widest, NULL), widest);
}

/* ---- what oneDNN computes at once -------------------------------------------------------------------- */

/* Values by a scale alone: those without a sign begin at 0. */
static const Expr *scaled_down(MxNode *n, const Expr *q, const Expr *low, const Expr *high)
{
    const Build     *b = &n->b;
    DequantizeAttrs *a = ATTRS(b, DequantizeAttrs);
    DType            t = expr_dtype(q);
    const Expr      *most = most_of(b, low, high), *scale;

    if (!most || (!dtype_eq(t, DT_I8) && !dtype_eq(t, DT_U8)))
        return most ? mx_error(n, E_UNSUPPORTED, "data of %s", type_text(b->c, q->type)) : NULL;
    scale = build_by(b, "divide", most, dtype_eq(t, DT_I8) ? SIGNED_RANGE : UNSIGNED_RANGE);
    scale = scale && build_fold(b, scale) ? build_fold(b, scale) : scale;
    return scale ? build3(b, "qnn.dequantize", q, scale, build_zeros(b, DT_I32, 0, NULL), a) : NULL;
}

static bool scaled_up(MxNode *n, const Expr *y)
{
    const Build   *b = &n->b;
    QuantizeAttrs *a = ATTRS(b, QuantizeAttrs);
    double         from = mx_float(n, "min_calib_range"), to = mx_float(n, "max_calib_range"), most;

    if (!mx_has(n, "min_calib_range") || !mx_has(n, "max_calib_range") || !(from <= to))
        return mx_error(n, E_UNSUPPORTED, "a result whose range was not calibrated");
    most = fmax(fabs(from), fabs(to));
    if (!(most > 0 && most < HUGE_VAL))
        return mx_error(n, E_IMPORT, "a range from %g to %g", from, to);
    a->out_dtype = from >= 0 ? DT_U8 : DT_I8;
    y = build3(b, "qnn.quantize", build_cast(b, y, DT_F32),
               expr_scalar(b->c, DT_F32, most / (from >= 0 ? UNSIGNED_RANGE : SIGNED_RANGE)),
               build_zeros(b, DT_I32, 0, NULL), a);
    return mx_done(n, y) &&
           put_range(n, expr_scalar(b->c, DT_F32, from), expr_scalar(b->c, DT_F32, to));
}

/* Weights as oneDNN has them, 8 bits and a scale for each channel of the result: w itself where its
 * values are not known. */
static const Expr *in_bytes(MxNode *n, const Expr *w, bool channels)
{
    const Build     *b = &n->b;
    DequantizeAttrs *a = ATTRS(b, DequantizeAttrs);
    int64_t          all, count, each;
    int8_t          *q;
    float           *scale;

    if (w->kind != EXPR_CONST || !dtype_eq(expr_dtype(w), DT_F32))
        return w;
    all = build_elems(b, w);
    count = channels && expr_rank(w) ? build_dim(b, w, 0) : 1;
    if (count < 1 || all < 1)
        return w;
    each = all / count;
    q = arena_array(b->c->arena, (size_t)all, 1);
    scale = arena_array(b->c->arena, (size_t)count, sizeof *scale);
    for (int64_t k = 0; k < count; k++) {
        const uint8_t *at = w->u.constant->data.at + (size_t)(k * each) * sizeof(float);
        double         most = 0;

        for (int64_t i = 0; i < each; i++)
            most = fmax(most, fabs(dtype_get_f(DT_F32, at + (size_t)i * sizeof(float))));
        scale[k] = most > 0 && most < HUGE_VAL ? (float)(most / SIGNED_RANGE) : 1;
        for (int64_t i = 0; i < each; i++) {
            double v = rint(dtype_get_f(DT_F32, at + (size_t)i * sizeof(float)) / (double)scale[k]);

            q[k * each + i] = (int8_t)(v > INT8_MIN ? v < INT8_MAX ? v : INT8_MAX : INT8_MIN);
        }
    }
    a->axis = 0;
    return build3(b, "qnn.dequantize", build_const(b, DT_I8, expr_rank(w), build_dims(b, w).at, q),
                  build_const(b, DT_F32, count > 1, &count, scale), build_zeros(b, DT_I32, 0, NULL),
                  a);
}

/* In floats between the numbers of its operand and its result. */
bool mx_quantized_batch_norm(MxNode *n)
{
    const Expr *in[5], *y = scaled_down(n, n->in[0], n->in[5], n->in[6]);
    MxNode      plain = *n;

    for (uint32_t i = 0; i < 5; i++)
        in[i] = i ? n->in[i] : y;
    plain.in = in;
    plain.nin = 5;
    plain.nout = 1;
    plain.out = &y;
    return y && mx_batch_norm(&plain) && scaled_up(n, y);
}

/* A convolution or product and what follows it, as a graph: its operands, then the ranges of those
 * that are quantized.  It is computed in floats between its operands' numbers and its result's. */
static bool fused(MxNode *n, bool channels)
{
    const MxGraph *g = n->op->nsub == 1 ? n->op->sub : NULL;
    const Expr   **vars, *heads[2];
    uint32_t       at;

    if (!g || g->nheads != 1 || g->nvars < 2 || n->nin < g->nvars)
        return mx_error(n, E_IMPORT, "it has no graph of one result, or too few operands");
    vars = NEW_ARRAY(n->b.c->arena, const Expr *, g->nvars);
    at = g->nvars;
    for (uint32_t i = 0; i < g->nvars; i++) {
        vars[i] = n->in[i];
        if (!mx_bool(n, "quantized") || dtype_is_float(expr_dtype(n->in[i])))
            continue;
        if (at + 2 > n->nin)
            return mx_error(n, E_IMPORT, "operand %u has no range", i);
        if (!(vars[i] = scaled_down(n, n->in[i], n->in[at], n->in[at + 1])))
            return false;
        at += 2;
    }
    if (mx_bool(n, "quantized"))
        vars[1] = in_bytes(n, vars[1], channels);
    if (!vars[1] || !mx_subgraph(n, 0, vars, heads))
        return false;
    return !mx_bool(n, "quantized") || mx_bool(n, "enable_float_output") ? mx_done(n, heads[0])
                                                                         : scaled_up(n, heads[0]);
}

bool mx_fused_conv(MxNode *n)
{
    return fused(n, true);
}

bool mx_fused_dense(MxNode *n)
{
    return fused(n, mx_bool(n, "channel_wise_quantize"));
}
