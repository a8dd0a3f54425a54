/* Pooling, and images of other sizes. */
#include "frontends/mxnet/mxnet.h"

#include <math.h>
#include <string.h>

/* ---- windows ---------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t    dims;
    BuildWindow w;
    bool        ceil, inclusive;
} Pool;

/* Windows that hang over the end.  Relay's count of them, PyTorch's, leaves out one that begins
 * behind the data; where that makes a difference, the padding is longer instead. */
static bool hang_over(const MxNode *n, const Expr *x, bool same, Pool *p)
{
    for (uint32_t i = 0; i < p->dims; i++) {
        BuildWindow *w = &p->w;
        int64_t cells = build_dim(&n->b, x, 2 + i), all = cells + w->begin[i] + w->end[i], extra,
                out;

        if (!same && all < w->kernel[i])
            return mx_error(n, E_IMPORT, "a window of %lld over %lld cells",
                            (long long)w->kernel[i], (long long)all);
        out = same ? (all + w->stride[i] - 1) / w->stride[i]
                   : (all - w->kernel[i] + w->stride[i] - 1) / w->stride[i] + 1;
        extra = (out - 1) * w->stride[i] + w->kernel[i] - all;
        if (extra <= 0)
            continue;
        if (!same && extra < w->stride[i] && (out - 1) * w->stride[i] < cells + w->begin[i]) {
            p->ceil = true;
        } else if (p->inclusive) {
            return mx_error(n, E_UNSUPPORTED, "a mean with padding behind which windows begin");
        } else {
            w->end[i] += extra;
        }
    }
    return true;
}

static bool read_pool(const MxNode *n, const Expr *x, bool mean, Pool *p)
{
    const char *convention = mx_text(n, "pooling_convention");
    MxAttrSpec  s;

    p->dims = expr_rank(x) - 2;
    if (!mx_sizes(n, "kernel", p->dims, 1, 1, p->w.kernel) ||
        !mx_sizes(n, "stride", p->dims, 1, 1, p->w.stride) ||
        !mx_sizes(n, "pad", p->dims, 0, 0, p->w.begin))
        return false;
    if (!mx_ints(n, "kernel").n)
        return mx_error(n, E_IMPORT, "attribute 'kernel' is missing");
    for (uint32_t i = 0; i < 3; i++) {
        p->w.dilation[i] = 1;
        p->w.end[i] = p->w.begin[i];
        if (i < p->dims && p->w.begin[i] >= p->w.kernel[i])
            return mx_error(n, E_IMPORT, "windows of %lld, and %lld cells of padding",
                            (long long)p->w.kernel[i], (long long)p->w.begin[i]);
    }
    p->inclusive =
        mean && (!mx_attr_spec(n->row->schema, "count_include_pad", &s) ||
                 mx_is_none(mx_text(n, "count_include_pad")) || mx_bool(n, "count_include_pad"));
    return !strcmp(convention, "valid") || hang_over(n, x, !strcmp(convention, "same"), p);
}

/* As pictures or volumes: lines are pictures of one row. */
static const Expr *pooled(const Build *b, const char *op, const Expr *x, const Pool *p)
{
    const BuildWindow *w = &p->w;
    Pool2dAttrs       *a = ATTRS(b, Pool2dAttrs);
    const Expr        *y;
    uint32_t           i = p->dims == 1 ? 0 : 1;

    if (p->dims == 3)
        return build_pool_volume(b, op, x, w, (BuildPooling){p->ceil, p->inclusive});
    a->pool_size = ints_of(b->c, 2, i ? (int)w->kernel[0] : 1, (int)w->kernel[i]);
    a->strides = ints_of(b->c, 2, i ? (int)w->stride[0] : 1, (int)w->stride[i]);
    a->padding = ints_of(b->c, 4, i ? (int)w->begin[0] : 0, (int)w->begin[i],
                         i ? (int)w->end[0] : 0, (int)w->end[i]);
    a->ceil_mode = p->ceil;
    a->count_include_pad = p->inclusive;
    y = build1(b, op, i ? x : build_expand_dims(b, x, 2, 1), a);
    return i ? y : build_squeeze(b, y, 1, (int64_t[]){2});
}

/* The sum over windows: the mean of zeros around, times their cells. */
static const Expr *summed(MxNode *n, const Expr *x, Pool p)
{
    const Build *b = &n->b;
    int64_t      pads[10] = {0}, cells = 1;

    for (uint32_t i = 0; i < p.dims; i++) {
        int64_t rest = build_dim(b, x, 2 + i) + p.w.begin[i] + p.w.end[i] - p.w.kernel[i];

        pads[4 + 2 * i] = p.w.begin[i];
        pads[5 + 2 * i] = p.w.end[i];
        if (p.ceil && rest % p.w.stride[i])
            pads[5 + 2 * i] += p.w.stride[i] - rest % p.w.stride[i];
        p.w.begin[i] = p.w.end[i] = 0;
        if (!checked_mul(cells, p.w.kernel[i], &cells))
            return mx_error(n, E_IMPORT, "a window of %s", mx_text(n, "kernel"));
    }
    p.ceil = false;
    p.inclusive = true;
    x = build_pad(b, x, pads, 0, "constant");
    return x ? build_by(b, "multiply", pooled(b, "nn.avg_pool2d", x, &p), (double)cells) : NULL;
}

/* Over all places. */
static const Expr *pool_all(MxNode *n, const Expr *x, const char *type)
{
    const char *op = !strcmp(type, "avg") ? "mean" : !strcmp(type, "max") ? "max" : "sum";
    int64_t     axes[3] = {2, 3, 4};

    return build_reduce_image(&n->b, op, x, expr_rank(x) - 2, axes, true);
}

static const Expr *pool_by(MxNode *n, const Expr *x, const char *type)
{
    Pool p = {0};
    bool mean = !strcmp(type, "avg");

    if (mx_bool(n, "global_pool"))
        return pool_all(n, x, type);
    if (!read_pool(n, x, mean, &p))
        return NULL;
    if (!strcmp(type, "sum"))
        return summed(n, x, p);
    return pooled(&n->b, mean ? "nn.avg_pool2d" : "nn.max_pool2d", x, &p);
}

const Expr *mx_pool(MxNode *n, const Expr *x)
{
    const Build *b = &n->b;
    const char  *type = mx_text(n, "pool_type");
    int64_t      p;
    const Expr  *y;

    if (strcmp(type, "lp") != 0)
        return pool_by(n, x, type);
    p = mx_has(n, "p_value") ? mx_int(n, "p_value") : 2;
    if (p < 1 || p > 64)
        return mx_error(n, E_UNSUPPORTED, "p_value=%lld", (long long)p);
    x = build1(b, "abs", x, NULL);
    y = pool_by(n, build_by(b, "power", x, (double)p), "sum");
    return build_by(b, "power", y, 1 / (double)p);
}

bool mx_pooling(MxNode *n)
{
    bool        ok = true, last = false;
    MxAttrSpec  s;
    const Expr *x = n->in[0];

    if (!mx_rank(n, 0, 3, 5))
        return false;
    if (mx_attr_spec(n->row->schema, "layout", &s))
        last = mx_channels_last(n, expr_rank(x), &ok);
    x = last ? build_channels_first(&n->b, x) : x;
    return ok && x && mx_image_done(n, last, mx_pool(n, x));
}

/* ---- other sizes ------------------------------------------------------------------------------------ */

static const Expr *resized(const Build *b, const Expr *x, int64_t h, int64_t w, const char *method,
                           const char *mode)
{
    Resize2dAttrs *a = ATTRS(b, Resize2dAttrs);

    a->size = dims_of_i64(b->c, (int64_t[]){h, w}, 2);
    a->method = method;
    a->coordinate_transformation_mode = mode;
    a->rounding_method = "floor";
    return build1(b, "image.resize2d", x, a);
}

/* Which cells each of `out` is the mean of, [out, cells]. */
static const Expr *means(const Build *b, const Expr *like, int64_t cells, int64_t out)
{
    float *at = arena_array(b->c->arena, (size_t)(cells * out), sizeof *at);

    for (int64_t i = 0; i < out; i++) {
        int64_t from = i * cells / out, to = ((i + 1) * cells + out - 1) / out;

        for (int64_t k = from; k < to; k++)
            at[i * cells + k] = 1 / (float)(to - from);
    }
    return build_cast(b, build_const(b, DT_F32, 2, (int64_t[]){out, cells}, at), expr_dtype(like));
}

/* Windows that share cells where the sizes do not divide. */
bool mx_adaptive_pooling(MxNode *n)
{
    const Build *b = &n->b;
    Ints         size = mx_ints(n, "output_size");
    Pool2dAttrs *a = ATTRS(b, Pool2dAttrs);
    const Expr  *x = n->in[0];
    int64_t      out[2], in[2];

    if (!mx_rank(n, 0, 4, 4))
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        out[i] = !size.n ? 1 : size.at[size.n > 1 ? i : 0];
        in[i] = build_dim(b, x, 2 + i);
        if (size.n > 2 || out[i] < 1 || out[i] > 1 << 14 || in[i] < 1 || in[i] > 1 << 14)
            return mx_error(n, E_IMPORT, "'output_size' is %s for %s", mx_text(n, "output_size"),
                            type_text(b->c, x->type));
    }
    if (out[0] == 1 && out[1] == 1)
        return mx_done(n, build1(b, "nn.global_avg_pool2d", x, NULL));
    if (in[0] % out[0] == 0 && in[1] % out[1] == 0) {
        a->pool_size = a->strides = ints_dup(b->c, (int64_t[]){in[0] / out[0], in[1] / out[1]}, 2);
        return mx_done(n, build1(b, "nn.avg_pool2d", x, a));
    }
    x = build2(b, "nn.dense", x, means(b, x, in[1], out[1]), NULL);
    x = build_transpose(b, x, 4, (int64_t[]){0, 1, 3, 2});
    x = x ? build2(b, "nn.dense", x, means(b, x, in[0], out[0]), NULL) : NULL;
    return mx_done(n, build_transpose(b, x, 4, (int64_t[]){0, 1, 3, 2}));
}

/* The size along one dimension, as the mode says; below 1: none. */
static int64_t resize_to(const MxNode *n, const char *mode, int64_t cells, const char *size,
                         const char *scale)
{
    double by = mx_has(n, scale) ? mx_float(n, scale) : 0;
    bool   odd = cells % 2;

    if (!(by >= 0 && by < 1 << 20))
        return 0;
    if (!strcmp(mode, "size"))
        return by > 0 ? (int64_t)((double)cells * by) : mx_int(n, size);
    if (!strcmp(mode, "odd_scale"))
        return odd ? (int64_t)((double)(cells - 1) * by) + 1 : (int64_t)((double)cells * by);
    if (!strcmp(mode, "to_even_down"))
        return cells - odd;
    if (!strcmp(mode, "to_even_up"))
        return cells + odd;
    return !strcmp(mode, "to_odd_down") ? cells - !odd : cells + !odd;
}

bool mx_bilinear_resize(MxNode *n)
{
    const char  *mode = mx_text(n, "mode");
    const Build *b = &n->b;
    int64_t      h, w;

    if (!mx_rank(n, 0, 4, 4) || (n->nin > 1 && !mx_rank(n, 1, 4, 4)))
        return false;
    if (n->nin > 1) {
        h = build_dim(b, n->in[1], 2);
        w = build_dim(b, n->in[1], 3);
    } else {
        h = resize_to(n, mode, build_dim(b, n->in[0], 2), "height", "scale_height");
        w = resize_to(n, mode, build_dim(b, n->in[0], 3), "width", "scale_width");
    }
    if (h < 1 || w < 1 || h > INT32_MAX || w > INT32_MAX)
        return mx_error(n, E_IMPORT, "a size of %lld x %lld", (long long)h, (long long)w);
    return mx_done(n, resized(b, n->in[0], h, w, "linear",
                              mx_bool(n, "align_corners") ? "align_corners" : "half_pixel"));
}

/* A transposed convolution of each channel, by weights of the model. */
static const Expr *upsampled_by_weight(MxNode *n, int64_t scale)
{
    const Build          *b = &n->b;
    Conv2dTransposeAttrs *a = ATTRS(b, Conv2dTransposeAttrs);
    int                   kernel = (int)(2 * scale - scale % 2), pad = (int)(scale / 2);

    if (!mx_rank(n, 1, 4, 4))
        return NULL;
    if (build_dim(b, n->in[1], 2) != kernel || build_dim(b, n->in[1], 3) != kernel ||
        build_dim(b, n->in[1], 0) != build_dim(b, n->in[0], 1) || build_dim(b, n->in[1], 1) != 1)
        return mx_error(n, E_IMPORT, "weights %s", type_text(b->c, n->in[1]->type));
    a->strides = ints_of(b->c, 2, (int)scale, (int)scale);
    a->padding = ints_of(b->c, 4, pad, pad, pad, pad);
    a->groups = a->channels = build_dim(b, n->in[0], 1);
    a->kernel_size = ints_of(b->c, 2, kernel, kernel);
    return build2(b, "nn.conv2d_transpose", n->in[0], n->in[1], a);
}

/* All to the size of the first one times the scale, then side by side or added. */
bool mx_upsampling(MxNode *n)
{
    const Build *b = &n->b;
    int64_t      scale = mx_int(n, "scale"), h, w;
    const Expr  *sum = NULL;

    if (!n->nin || !mx_rank(n, 0, 4, 4))
        return n->nin ? false : mx_error(n, E_IMPORT, "no data");
    if (scale < 1 || scale > 4096)
        return mx_error(n, E_IMPORT, "a scale of %lld", (long long)scale);
    if (mx_is(n, "sample_type", "bilinear")) {
        if (n->nin != 2)
            return mx_error(n, E_UNSUPPORTED, "%u operands of which one is weights", n->nin);
        return mx_done(n, upsampled_by_weight(n, scale));
    }
    h = build_dim(b, n->in[0], 2) * scale, w = build_dim(b, n->in[0], 3) * scale;
    for (uint32_t i = 0; i < n->nin; i++) {
        if (!mx_rank(n, i, 4, 4))
            return false;
        if (h % build_dim(b, n->in[i], 2) || w % build_dim(b, n->in[i], 3))
            return mx_error(n, E_IMPORT, "operand %u is %s, which does not become %lld x %lld", i,
                            type_text(b->c, n->in[i]->type), (long long)h, (long long)w);
        n->in[i] = resized(b, n->in[i], h, w, "nearest_neighbor", "asymmetric");
        sum =
            i ? build_add(b, sum, mx_is(n, "multi_input_mode", "sum") ? n->in[i] : NULL) : n->in[i];
    }
    return mx_done(n, n->nin == 1 || mx_is(n, "multi_input_mode", "sum")
                          ? sum
                          : build_concat(b, n->nin, n->in, 1));
}
