/* Pooling over lines, images and volumes: windows, all of it, or as many windows as come out. */
#include "frontends/keras/keras.h"

#include <math.h>
#include <string.h>

static uint32_t dims_of(const KerasNode *n)
{
    return strstr(n->layer->class_name, "1D") ? 1 : strstr(n->layer->class_name, "2D") ? 2 : 3;
}

static bool is_max(const KerasNode *n)
{
    return strstr(n->layer->class_name, "Max") != NULL;
}

/* Lines are images of one row. */
static const Expr *pooled(const KerasNode *n, const Expr *x, const KerasWindow *w)
{
    const Build *b = &n->b;
    const char  *op = is_max(n) ? "nn.max_pool2d" : "nn.avg_pool2d";
    Pool2dAttrs *a = ATTRS(b, Pool2dAttrs);
    bool         line = w->dims == 1;
    uint32_t     last = w->dims - 1;
    const Expr  *y;

    if (w->dims == 3)
        return build_pool_volume(b, op, x, &w->at, (BuildPooling){0});
    a->pool_size = ints_of(b->c, 2, line ? 1 : (int)w->at.kernel[0], (int)w->at.kernel[last]);
    a->strides = ints_of(b->c, 2, line ? 1 : (int)w->at.stride[0], (int)w->at.stride[last]);
    a->padding = ints_of(b->c, 4, line ? 0 : (int)w->at.begin[0], (int)w->at.begin[last],
                         line ? 0 : (int)w->at.end[0], (int)w->at.end[last]);
    y = build1(b, op, line ? build_expand_dims(b, x, 2, 1) : x, a);
    if (y && line)
        y = build_reshape_to(b, y, 3,
                             (const Idx *[]){expr_form(y, 0), expr_form(y, 1), expr_form(y, 3)});
    return y;
}

bool keras_pool(KerasNode *n)
{
    KerasWindow   w = {.dims = dims_of(n), .at.dilation = {1, 1, 1}};
    const Expr   *x = keras_image(n, w.dims);
    const json_t *strides = keras_json(n, "strides");

    if (!x || !keras_ints(n, "pool_size", w.dims, 2, 1, w.at.kernel))
        return false;
    memcpy(w.at.stride, w.at.kernel, sizeof w.at.stride);
    if (strides && !keras_ints(n, "strides", w.dims, 1, 1, w.at.stride))
        return false;
    return keras_padding(n, x, keras_text(n, "padding", "valid"), &w) &&
           keras_image_done(n, pooled(n, x, &w));
}

/* The mean of the steps that a mask has. */
static const Expr *masked_mean(const Build *b, const Expr *x, const Expr *mask)
{
    const Expr *m = build_cast(b, mask, expr_dtype(x));
    int64_t     steps = 2, one = 1;

    m = build_expand_dims(b, m, 1, 1); /* [N, 1, T] beside [N, C, T] */
    return build_div(
        b, build_reduce(b, "sum", build_mul(b, x, m), 1, &steps, false),
        build_reshape_to(b, build_reduce(b, "sum", m, 1, &steps, false), 2,
                         (const Idx *[]){expr_form(x, 0), idx_const(b->c->arith, one)}));
}

bool keras_global_pool(KerasNode *n)
{
    const Build *b = &n->b;
    uint32_t     dims = dims_of(n);
    const Expr  *x = keras_image(n, dims), *y;
    bool         keep = keras_bool(n, "keepdims", false);
    int64_t      axes[3] = {2, 3, 4};

    if (!x)
        return false;
    if (dims == 1 && !is_max(n) && n->in[0].mask && !keras_channels_first(n)) {
        y = masked_mean(b, x, n->in[0].mask);
        return keras_done(n, keep ? build_expand_dims(b, y, 1, 1) : y);
    }
    if (dims == 2)
        y = build1(b, is_max(n) ? "nn.global_max_pool2d" : "nn.global_avg_pool2d", x, NULL);
    else
        y = build_reduce(b, is_max(n) ? "max" : "mean", x, dims, axes, true);
    if (keep)
        return keras_image_done(n, y);
    return y && keras_done(n, build_reshape_to(b, y, 2,
                                               (const Idx *[]){expr_form(y, 0), expr_form(y, 1)}));
}

/* ---- adaptive --------------------------------------------------------------------------------------- */

/* Window o of `out` is from o*in/out to (o+1)*in/out, rounded up: slices side by side. */
static const Expr *adapted(KerasNode *n, const Expr *x, uint32_t axis, int64_t out)
{
    const Build *b = &n->b;
    int64_t      in = build_dim(b, x, axis), at = axis;
    const Expr **parts;

    if (out > 1 << 12 || in < 1)
        return keras_error(n, E_UNSUPPORTED, "%lld windows over %lld cells", (long long)out,
                           (long long)in);
    parts = NEW_ARRAY(b->c->arena, const Expr *, (size_t)out);
    for (int64_t o = 0; o < out; o++) {
        const Expr *part = build_slice(b, x, axis, o * in / out, ((o + 1) * in + out - 1) / out);

        if (!(parts[o] = build_reduce(b, is_max(n) ? "max" : "mean", part, 1, &at, true)))
            return NULL;
    }
    return build_concat(b, (uint32_t)out, parts, axis);
}

bool keras_adaptive_pool(KerasNode *n)
{
    KerasWindow w = {.dims = dims_of(n), .at.dilation = {1, 1, 1}};
    const Expr *x = keras_image(n, w.dims);
    int64_t     want[3];
    bool        even = true;

    if (!x || !keras_ints(n, "output_size", w.dims, 1, 1, want))
        return false;
    for (uint32_t i = 0; i < w.dims; i++) {
        int64_t in = build_dim(&n->b, x, 2 + i);

        even &= in % want[i] == 0 && in > 0;
        w.at.kernel[i] = w.at.stride[i] = in / want[i];
    }
    if (even)
        return keras_image_done(n, pooled(n, x, &w));
    for (uint32_t i = 0; x && i < w.dims; i++)
        x = adapted(n, x, 2 + i, want[i]);
    return keras_image_done(n, x);
}
