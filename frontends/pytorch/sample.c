/* Pictures at computed places, boxes in them, and windows as columns of a matrix. */
#include "frontends/pytorch/pytorch.h"

#include <string.h>

/* ---- grids -------------------------------------------------------------------------------------- */

bool aten_grid_sampler(PtNode *n)
{
    static const char *const modes[] = {"linear", "nearest", "cubic"};
    static const char *const pads[] = {"zeros", "border", "reflection"};
    const Expr              *x = pt_tensor(n, "input"), *grid = x ? pt_tensor(n, "grid") : NULL;
    int64_t mode = pt_int(n, "interpolation_mode", 0), pad = pt_int(n, "padding_mode", 0);

    if (!grid)
        return false;
    if (mode < 0 || mode > 2 || pad < 0 || pad > 2)
        return pt_error(n, E_IMPORT, "mode %lld, padding %lld", (long long)mode, (long long)pad);
    return pt_done(n, build_grid_sample(&n->b, x, grid,
                                        &(BuildSampling){modes[mode], pads[pad],
                                                         pt_bool(n, "align_corners", false)}));
}

/* theta [N, 2, 3] times the places of a picture of size [N, C, H, W] from -1 to 1; or [N, 3, 4] of
 * a volume. */
bool aten_affine_grid_generator(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *theta = pt_tensor(n, "theta"), *y;
    bool         align = pt_bool(n, "align_corners", false);
    int64_t      cells = 1, dims[MAX_RANK];
    uint32_t     k;
    double      *at;
    Ints         size;

    if (!theta || !pt_ints(n, "size", &size))
        return theta && pt_error(n, E_IMPORT, "it has no size");
    k = size.n - 2;
    if (size.n < 4 || size.n > 5 || expr_rank(theta) != 3 || build_dim(b, theta, 0) != size.at[0] ||
        build_dim(b, theta, 1) != k || build_dim(b, theta, 2) != k + 1)
        return pt_error(n, E_IMPORT, "theta is %s for a size of %u numbers",
                        type_text(b->c, theta->type), size.n);
    for (uint32_t i = 0; i < k; i++)
        if ((dims[1 + i] = size.at[2 + i]) < 1 || !checked_mul(cells, size.at[2 + i], &cells) ||
            cells > 1 << 22)
            return pt_error(n, E_UNSUPPORTED, "a picture of %lld cells", (long long)cells);
    at = NEW_ARRAY(b->c->arena, double, (size_t)cells *(k + 1));
    for (int64_t i = 0; i < cells; i++) {
        int64_t rest = i;

        for (uint32_t d = 0; d < k; d++) { /* x comes first, and is the last dimension */
            int64_t d_size = size.at[size.n - 1 - d], p = rest % d_size;

            rest /= d_size;
            at[i * (k + 1) + d] =
                align ? (d_size > 1 ? -1 + 2.0 * (double)p / (double)(d_size - 1) : 0)
                      : (double)(2 * p + 1) / (double)d_size - 1;
        }
        at[i * (k + 1) + k] = 1;
    }
    y = build_const(b, DT_F64, 3, (int64_t[]){1, cells, k + 1}, at);
    y = build_cast(b, y, expr_dtype(theta));
    y = pt_matmul(n, build_broadcast(b, y, 3, (int64_t[]){size.at[0], cells, k + 1}),
                  build_transpose(b, theta, 3, (int64_t[]){0, 2, 1}));
    dims[0] = size.at[0];
    dims[k + 1] = k;
    return pt_done(n, build_reshape(b, y, k + 2, dims));
}

static const Expr *product(const Build *b, void *n, const Expr *x, const Expr *y)
{
    (void)b;
    return pt_matmul(n, x, y);
}

/* torchvision.ops.deform_conv2d */
bool vision_deform_conv2d(PtNode *n)
{
    const Build  *b = &n->b;
    const Expr   *bias = NULL, *y;
    BuildDeformed d = {.product = product, .user = n};

    d.group = pt_int(n, "groups", 1);
    d.parts = pt_int(n, "offset_groups", 1);
    if (!(d.x = pt_tensor(n, "input")) || !(d.weight = pt_tensor(n, "weight")) ||
        !(d.offset = pt_tensor(n, "offset")) ||
        (pt_bool(n, "use_mask", true) && !(d.mask = pt_tensor(n, "mask"))) ||
        !pt_maybe(n, "bias", &bias))
        return false;
    (void)pt_has(n, "mask");
    if (expr_rank(d.x) != 4 || expr_rank(d.weight) != 4 || expr_rank(d.offset) != 4)
        return pt_error(n, E_IMPORT, "data %s, weight %s, offsets %s", type_text(b->c, d.x->type),
                        type_text(b->c, d.weight->type), type_text(b->c, d.offset->type));
    for (uint32_t i = 0; i < 2; i++) {
        static const char *const        strides[] = {"stride_h", "stride_w"},
                                 *const pads[] = {"pad_h", "pad_w"},
                                 *const dilations[] = {"dilation_h", "dilation_w"};
        BuildWindow                    *w = &d.window;

        w->kernel[i] = build_dim(b, d.weight, 2 + i);
        w->stride[i] = pt_int(n, strides[i], 1);
        w->begin[i] = w->end[i] = pt_int(n, pads[i], 0);
        w->dilation[i] = pt_int(n, dilations[i], 1);
        if (w->stride[i] < 1 || w->dilation[i] < 1 || w->begin[i] < 0 || w->kernel[i] < 1 ||
            w->begin[i] > INT32_MAX || w->dilation[i] > INT32_MAX)
            return pt_error(n, E_IMPORT, "a stride or dilation below 1, or a padding below 0");
    }
    y = build_deform_conv(b, &d);
    return pt_done(n, y && bias ? build2(b, "nn.bias_add", y, bias, NULL) : y);
}

/* ---- boxes -------------------------------------------------------------------------------------- */

/* torchvision.ops.roi_align: rows of boxes are (picture, x, y, x, y) */
bool vision_roi_align(PtNode *n)
{
    const Build   *b = &n->b;
    RoiAlignAttrs *a = ATTRS(b, RoiAlignAttrs);
    const Expr    *x = pt_tensor(n, "input"), *rois = x ? pt_tensor(n, "rois") : NULL, *of;
    int64_t        size[2] = {pt_int(n, "pooled_height", 1), pt_int(n, "pooled_width", 1)}, ratio;
    const Idx     *count;

    if (!rois)
        return false;
    if (expr_rank(rois) != 2 || build_dim(b, rois, 1) != 5)
        return pt_error(n, E_IMPORT, "boxes are %s", type_text(b->c, rois->type));
    ratio = pt_int(n, "sampling_ratio", -1);
    a->pooled_size = ints_dup(b->c, size, 2);
    a->spatial_scale = pt_float(n, "spatial_scale", 1);
    a->sample_ratio = ratio < 0 ? 0 : ratio;
    a->aligned = pt_bool(n, "aligned", false);
    count = expr_form(rois, 0);
    of = build_reshape_to(b, build_slice(b, rois, 1, 0, 1), 1, &count);
    return pt_done(n, build3(b, "vision.roi_align", x, build_slice(b, rois, 1, 1, 5),
                             build_cast(b, of, DT_I64), a));
}

/* Positions of the boxes (x, y, x, y) that are kept, by their scores. */
static bool best_boxes(PtNode *n, const Expr *boxes, const Expr *scores)
{
    const Build *b = &n->b;
    double       overlap = pt_float(n, "iou_threshold", 0.5);
    const Idx   *room;
    const Expr  *at;

    if (expr_rank(boxes) != 2 || expr_rank(scores) != 1 || build_dim(b, boxes, 1) != 4 ||
        (room = expr_form(scores, 0))->hi < 1)
        return pt_error(n, E_IMPORT, "boxes are %s, scores %s", type_text(b->c, boxes->type),
                        type_text(b->c, scores->type));
    room = build_best_room(b, &n->im->shapes, room, room);
    at = build_best_boxes(b, boxes, scores, room, build_number(b, room),
                          expr_scalar(b->c, DT_F32, overlap),
                          expr_scalar(b->c, DT_F32, -3.4028234663852886e38));
    return pt_done(
        n,
        pt_found(n, at, at ? build2(b, "greater_equal", at, build_scalar(b, at, 0), NULL) : NULL));
}

bool vision_nms(PtNode *n)
{
    const Expr *boxes = pt_tensor(n, "dets"), *scores = boxes ? pt_tensor(n, "scores") : NULL;

    return scores && best_boxes(n, boxes, scores);
}

/* Of each class on its own: boxes of different ones are moved apart. */
bool vision_batched_nms(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *boxes = pt_tensor(n, "boxes"), *scores = boxes ? pt_tensor(n, "scores") : NULL;
    const Expr *class = scores ? pt_tensor(n, "idxs") : NULL, *apart;

    if (!class)
        return false;
    apart = build_by(b, "add", build_reduce(b, "max", boxes, 0, NULL, false), 1);
    apart = build_mul(b, build_cast(b, class, expr_dtype(boxes)), apart);
    boxes = build_add(b, boxes, build_expand_dims(b, apart, 1, 1));
    return boxes && best_boxes(n, boxes, scores);
}

/* ---- windows ------------------------------------------------------------------------------------ */

typedef struct {
    int64_t kernel[2], dilation[2], pad[2], stride[2], size[2], out[2]; /* size: of the picture */
} Windows;

static bool read_windows(PtNode *n, Windows *w)
{
    if (!pt_numbers(n, "kernel_size", 2, 1, w->kernel) ||
        !pt_numbers(n, "dilation", 2, 1, w->dilation) || !pt_numbers(n, "padding", 2, 0, w->pad) ||
        !pt_numbers(n, "stride", 2, 1, w->stride))
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;

        if (w->kernel[i] < 1 || w->dilation[i] < 1 || w->pad[i] < 0 || w->stride[i] < 1 ||
            w->size[i] < 1 || w->size[i] > INT32_MAX || w->size[i] + 2 * w->pad[i] < reach)
            return pt_error(n, E_IMPORT, "a window of %lld in %lld cells", (long long)w->kernel[i],
                            (long long)w->size[i]);
        w->out[i] = (w->size[i] + 2 * w->pad[i] - reach) / w->stride[i] + 1;
    }
    return true;
}

/* Where each tap of each window lies in the padded picture: [taps * windows]; NULL with an error.
 */
static const Expr *taps_of(PtNode *n, const Windows *w)
{
    int64_t count = 1, *at, k = 0, columns = w->size[1] + 2 * w->pad[1];

    for (uint32_t i = 0; i < 2; i++)
        if (!checked_mul(count, w->kernel[i], &count) || !checked_mul(count, w->out[i], &count) ||
            count > 1 << 24)
            return pt_error(n, E_UNSUPPORTED, "windows of more than %d cells", 1 << 24);
    at = NEW_ARRAY(n->b.c->arena, int64_t, (size_t)count);
    for (int64_t y = 0; y < w->kernel[0]; y++)
        for (int64_t x = 0; x < w->kernel[1]; x++)
            for (int64_t i = 0; i < w->out[0]; i++)
                for (int64_t j = 0; j < w->out[1]; j++)
                    at[k++] = (i * w->stride[0] + y * w->dilation[0]) * columns + j * w->stride[1] +
                              x * w->dilation[1];
    return build_i64s(&n->b, (uint32_t)count, at);
}

/* [N, C, H, W] -> [N, C * taps, windows] */
bool aten_im2col(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = pt_tensor(n, "self"), *at;
    Windows      w;
    int64_t      pads[8] = {0};
    Ints         d;

    if (!x)
        return false;
    if (expr_rank(x) != 4)
        return pt_error(n, E_UNSUPPORTED, "an image of %u dimensions", expr_rank(x));
    d = build_dims(b, x);
    w.size[0] = d.at[2], w.size[1] = d.at[3];
    if (!read_windows(n, &w) || !(at = taps_of(n, &w)))
        return false;
    pads[4] = pads[5] = w.pad[0];
    pads[6] = pads[7] = w.pad[1];
    x = build_pad(b, x, pads, 0, "constant");
    x = build_reshape(
        b, x, 3,
        (int64_t[]){d.at[0], d.at[1], (w.size[0] + 2 * w.pad[0]) * (w.size[1] + 2 * w.pad[1])});
    return pt_done(n, build_reshape(b, build_take(b, x, at, 2), 3,
                                    (int64_t[]){d.at[0], d.at[1] * w.kernel[0] * w.kernel[1],
                                                w.out[0] * w.out[1]}));
}

/* [N, C * taps, windows] -> [N, C, H, W], sums of what falls on one cell */
bool aten_col2im(PtNode *n)
{
    const Build    *b = &n->b;
    ScatterNdAttrs *a = ATTRS(b, ScatterNdAttrs);
    const Expr     *x = pt_tensor(n, "self"), *at, *y;
    Windows         w;
    int64_t         cells, channels, rows[2], taps;
    Ints            d;

    if (!x || !pt_numbers(n, "output_size", 2, 1, w.size) || !read_windows(n, &w))
        return false;
    d = build_dims(b, x);
    taps = w.kernel[0] * w.kernel[1];
    if (d.n != 3 || d.at[1] % taps || d.at[2] != w.out[0] * w.out[1] || d.at[0] < 1 || d.at[1] < 1)
        return pt_error(n, E_UNSUPPORTED, "columns of %s", type_text(b->c, x->type));
    channels = d.at[1] / taps;
    rows[0] = w.size[0] + 2 * w.pad[0], rows[1] = w.size[1] + 2 * w.pad[1];
    cells = rows[0] * rows[1];
    if (!(at = taps_of(n, &w)))
        return false;
    x = build_reshape(b, x, 2, (int64_t[]){d.at[0] * channels, taps * d.at[2]});
    x = build_transpose(b, x, 2, (int64_t[]){1, 0});
    a->mode = "add";
    y = build_broadcast(b, x ? build_scalar(b, x, 0) : NULL, 2,
                        (int64_t[]){cells, d.at[0] * channels});
    y = build3(b, "scatter_nd", y, build_expand_dims(b, at, 0, 1), x, a);
    y = build_transpose(b, y, 2, (int64_t[]){1, 0});
    y = build_reshape(b, y, 4, (int64_t[]){d.at[0], channels, rows[0], rows[1]});
    for (uint32_t i = 0; i < 2; i++)
        y = build_slice(b, y, 2 + i, w.pad[i], w.pad[i] + w.size[i]);
    return pt_done(n, y);
}
