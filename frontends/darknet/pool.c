/* Pooling, resizing, and cells in another order. */
#include "frontends/darknet/darknet.h"

/* ---- pooling -------------------------------------------------------------------------------------- */

typedef struct {
    int64_t size, stride[2], padding; /* down, across; of both sides together */
} Window;

static bool window_of(const DarknetNode *n, Window *w)
{
    int64_t stride;

    if (!darknet_size(n, "stride", 1, &stride))
        return false;
    w->stride[0] = darknet_int(n, "stride_y") < 1 ? stride : darknet_int(n, "stride_y");
    w->stride[1] = darknet_int(n, "stride_x") < 1 ? stride : darknet_int(n, "stride_x");
    w->size = darknet_has(n, "size") ? darknet_int(n, "size") : stride;
    w->padding = darknet_has(n, "padding") ? darknet_int(n, "padding") : w->size - 1;
    return (w->size >= 1 && w->padding >= 0 && w->padding < 2 * w->size) ||
           darknet_error(n, E_IMPORT, "a window of %lld with a padding of %lld", (long long)w->size,
                         (long long)w->padding);
}

/* `padding` cells in all, half of them before, and as many windows as fit: the last may hang over.
 */
static const Expr *pool(const DarknetNode *n, const char *op, const Expr *x, const Window *w)
{
    const Build *b = &n->b;
    Pool2dAttrs *a = ATTRS(b, Pool2dAttrs);
    int          before = (int)(w->padding / 2), pads[4];

    for (uint32_t i = 0; i < 2; i++) {
        int64_t in = build_dim(b, x, 2 + i), out = (in + w->padding - w->size) / w->stride[i] + 1;
        int64_t end = (out - 1) * w->stride[i] + w->size - before - in;

        if (in + w->padding < w->size)
            return darknet_error(n, E_IMPORT, "a window of %lld does not fit %lld cells",
                                 (long long)w->size, (long long)in);
        pads[i] = before;
        pads[2 + i] = end > 0 ? (int)end : 0;
    }
    a->pool_size = ints_of(b->c, 2, (int)w->size, (int)w->size);
    a->strides = ints_of(b->c, 2, (int)w->stride[0], (int)w->stride[1]);
    a->padding = ints_of(b->c, 4, pads[0], pads[1], pads[2], pads[3]);
    return build1(b, op, x, a);
}

/* The largest of channels g, g + out, g + 2 * out ..; no windows. */
static const Expr *max_of_channels(DarknetNode *n, const Expr *x)
{
    const Build *b = &n->b;
    int64_t      out, channels = build_dim(b, x, 1);
    const Expr  *y = NULL;

    if (!darknet_size(n, "out_channels", 1, &out))
        return NULL;
    if (out > channels || channels / out > 64)
        return darknet_error(n, E_UNSUPPORTED, "the largest of %lld channels, %lld of them",
                             (long long)channels, (long long)out);
    for (int64_t from = 0; from < channels; from += out) {
        const Expr *part =
            build_slice(b, x, 1, from, from + out < channels ? from + out : channels);

        if (from + out > channels) { /* some have one channel more */
            const Expr *rest = build_slice(b, y, 1, channels - from, out);

            y = build2(b, "maximum", build_slice(b, y, 1, 0, channels - from), part, NULL);
            y = build_concat(b, 2, (const Expr *[]){y, rest}, 1);
        } else {
            y = y ? build2(b, "maximum", y, part, NULL) : part;
        }
    }
    return y;
}

bool darknet_maxpool(DarknetNode *n)
{
    const Expr *x = darknet_image(n, n->x);
    Window      w;

    if (darknet_int(n, "maxpool_depth"))
        return darknet_done(n, max_of_channels(n, x));
    return window_of(n, &w) && darknet_done(n, pool(n, "nn.max_pool2d", x, &w));
}

/* Of the cells that are there. */
bool darknet_local_avgpool(DarknetNode *n)
{
    Window w;

    return window_of(n, &w) &&
           darknet_done(n, pool(n, "nn.avg_pool2d", darknet_image(n, n->x), &w));
}

bool darknet_avgpool(DarknetNode *n)
{
    return darknet_done(
        n, darknet_vector(n, build1(&n->b, "nn.global_avg_pool2d", darknet_image(n, n->x), NULL)));
}

/* ---- resizing ------------------------------------------------------------------------------------- */

/* Each cell `stride` times both ways; a stride below 0 goes back: sums of cells. */
bool darknet_upsample(DarknetNode *n)
{
    const Build   *b = &n->b;
    const Expr    *x = darknet_image(n, n->x), *y;
    int64_t        stride = darknet_int(n, "stride");
    double         scale = darknet_float(n, "scale");
    Resize2dAttrs *a = ATTRS(b, Resize2dAttrs);

    if (stride == 0 || stride > 1024 || stride < -1024)
        return darknet_error(n, E_IMPORT, "a stride of %lld", (long long)stride);
    if (stride < 0) {
        Window w = {-stride, {-stride, -stride}, 0};

        if (build_dim(b, x, 2) % stride || build_dim(b, x, 3) % stride)
            return darknet_error(n, E_IMPORT, "a stride of %lld does not divide %s",
                                 (long long)stride, type_text(b->c, x->type));
        y = pool(n, "nn.avg_pool2d", x, &w);
        scale *= (double)(stride * stride);
    } else {
        const Idx **size = NEW_ARRAY(b->c->arena, const Idx *, 2);

        for (uint32_t i = 0; i < 2; i++)
            size[i] = idx_mulc(b->c->arith, expr_form(x, 2 + i), stride);
        a->size = (Dims){2, size};
        a->method = intern(b->c->strings, "nearest_neighbor");
        a->coordinate_transformation_mode = intern(b->c->strings, "asymmetric");
        a->rounding_method = intern(b->c->strings, "floor");
        y = build1(b, "image.resize2d", x, a);
    }
    return darknet_done(n, scale == 1 ? y : build_by(b, "multiply", y, scale));
}

/* ---- cells in another order ----------------------------------------------------------------------- */

/* Blocks of stride * stride cells to channels; reverse: channels to blocks.  [reorg] takes its data
 * for an image of the other size, [reorg3d] for what it is. */
bool darknet_reorg(DarknetNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = darknet_image(n, n->x);
    bool         reverse = darknet_int(n, "reverse"), as_is = n->s->row == darknet_row("reorg3d");
    int64_t      s, in[3], out[3], c, h, w; /* c, h, w: of the order with more channels */

    if (!darknet_size(n, "stride", 1, &s))
        return false;
    for (uint32_t i = 0; i < 3; i++)
        in[i] = build_dim(b, x, 1 + i);
    if (s > 1024 || (reverse ? in[0] % (s * s) : in[1] % s || in[2] % s) ||
        (!reverse && !as_is && in[0] % (s * s)))
        return darknet_error(n, E_IMPORT, "a stride of %lld does not divide %lld x %lld x %lld",
                             (long long)s, (long long)in[0], (long long)in[1], (long long)in[2]);
    out[0] = reverse ? in[0] / (s * s) : in[0] * s * s;
    out[1] = reverse ? in[1] * s : in[1] / s;
    out[2] = reverse ? in[2] * s : in[2] / s;
    /* The walk is over `out` of [reorg3d], over `in` of [reorg]. */
    c = as_is ? out[0] : in[0];
    h = as_is ? out[1] : in[1];
    w = as_is ? out[2] : in[2];
    if (as_is && reverse && out[0] % (s * s))
        return darknet_error(n, E_IMPORT, "%lld channels", (long long)in[0]);
    if (reverse) {
        x = build_reshape_to(b, x, 6,
                             (const Idx *[]){expr_form(x, 0), idx_const(b->c->arith, s),
                                             idx_const(b->c->arith, s),
                                             idx_const(b->c->arith, c / (s * s)),
                                             idx_const(b->c->arith, h), idx_const(b->c->arith, w)});
        x = build_transpose(b, x, 6, (int64_t[]){0, 3, 4, 1, 5, 2});
    } else {
        x = build_reshape_to(b, x, 6,
                             (const Idx *[]){expr_form(x, 0), idx_const(b->c->arith, c / (s * s)),
                                             idx_const(b->c->arith, h), idx_const(b->c->arith, s),
                                             idx_const(b->c->arith, w), idx_const(b->c->arith, s)});
        x = build_transpose(b, x, 6, (int64_t[]){0, 3, 5, 1, 2, 4});
    }
    return x && darknet_done(n, build_reshape_to(b, x, 4,
                                                 (const Idx *[]){expr_form(x, 0),
                                                                 idx_const(b->c->arith, out[0]),
                                                                 idx_const(b->c->arith, out[1]),
                                                                 idx_const(b->c->arith, out[2])}));
}

/* The middle of a picture; cells from 0 to 1 become cells from -1 to 1. */
bool darknet_crop(DarknetNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = darknet_image(n, n->x);
    int64_t      size[2];

    if (!darknet_size(n, "crop_height", 1, &size[0]) || !darknet_size(n, "crop_width", 1, &size[1]))
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        int64_t in = build_dim(b, x, 2 + i), from = (in - size[i]) / 2;

        if (size[i] > in)
            return darknet_error(n, E_IMPORT, "%lld cells of %lld", (long long)size[i],
                                 (long long)in);
        x = build_slice(b, x, 2 + i, from, from + size[i]);
    }
    if (!darknet_int(n, "noadjust"))
        x = build_by(b, "add", build_by(b, "multiply", x, 2), -1);
    return darknet_done(n, x);
}
