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
