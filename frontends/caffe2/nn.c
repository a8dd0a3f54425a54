/* Convolutions, products, pooling, what normalizes, images of other sizes. */
#include "frontends/caffe2/caffe2.h"

#include <string.h>

static Ints pads_of(const Build *b, const BuildWindow *w)
{
    return ints_of(b->c, 4, (int)w->begin[0], (int)w->begin[1], (int)w->end[0], (int)w->end[1]);
}

static const Expr *with_bias(C2Node *n, const Expr *y)
{
    BiasAddAttrs *a = ATTRS(&n->b, BiasAddAttrs);

    a->axis = 1;
    return y && n->nin > 2 ? build2(&n->b, "nn.bias_add", y, n->in[2], a) : y;
}

/* ---- convolutions ----------------------------------------------------------------------------------- */

/* legacy_pad of Caffe2's first versions: none of them, VALID, SAME, and Caffe's way to count
 * windows. */
enum { NOTSET, VALID, SAME, CAFFE };

static bool legacy_pads(C2Node *n, const Expr *x, uint32_t dims, BuildWindow *w, bool *ceil)
{
    int64_t legacy = c2_int(n, "legacy_pad", NOTSET);

    *ceil = legacy == CAFFE;
    if (legacy < NOTSET || legacy > CAFFE)
        return c2_error(n, E_IMPORT, "legacy_pad=%lld", (long long)legacy);
    for (uint32_t i = 0; i < dims && legacy == VALID; i++)
        w->begin[i] = w->end[i] = 0;
    for (uint32_t i = 0; i < dims && legacy == SAME; i++)
        if (!build_same(&n->b, expr_form(x, 2 + i), w->kernel[i], w->stride[i], w->dilation[i],
                        &w->begin[i], &w->end[i]))
            return false;
    return true;
}

/* Operands with their channels first, and the window. */
static bool read_conv(C2Node *n, BuildConv *k)
{
    bool        ok, last = c2_channels_last(n, &ok);
    const Expr *w;

    k->w = n->in[1];
    k->bias = n->nin > 2 ? n->in[2] : NULL;
    k->groups = c2_int(n, "group", 1);
    if (!ok || !(k->x = c2_image(n, 0, 3, 5)) || !c2_rank(n, 1, expr_rank(k->x), expr_rank(k->x)))
        return false;
    if (last && (k->w = build_channels_first(&n->b, k->w)) && !n->scales[1] &&
        (w = build_fold(&n->b, k->w)))
        k->w = w;
    k->dims = expr_rank(k->x) - 2;
    return k->w && c2_window(n, k->dims, &k->window);
}

bool c2_conv(C2Node *n)
{
    BuildConv k = {.transposed = false};
    bool      ceil;

    return read_conv(n, &k) && legacy_pads(n, k.x, k.dims, &k.window, &ceil) &&
           c2_image_done(n, build_conv(&n->b, &k));
}

bool c2_conv_transpose(C2Node *n)
{
    static const char *const each[] = {"adj_h", "adj_w"};
    BuildConv                k = {.transposed = true};

    if (c2_int(n, "legacy_pad", NOTSET) != NOTSET)
        return c2_error(n, E_UNSUPPORTED, "legacy_pad");
    return read_conv(n, &k) &&
           c2_sizes(n, "adj", "adjs", k.dims, k.dims == 2 ? each : NULL, 0, 0, k.extra) &&
           c2_image_done(n, build_conv(&n->b, &k));
}

/* ---- products --------------------------------------------------------------------------------------- */

/* As [before axis, from it on]. */
static const Expr *as_matrix(C2Node *n, uint32_t i, const char *name)
{
    uint32_t axis, rank = expr_rank(n->in[i]);

    if (!c2_rank(n, i, 1, MAX_RANK) || !c2_axis(n, c2_int(n, name, 1), rank + 1, &axis))
        return NULL;
    return rank == 2 && axis == 1 ? n->in[i] : build_matrix(&n->b, n->in[i], axis);
}

/* Weights [outputs, inputs], of FCTransposed [inputs, outputs]. */
bool c2_fc(C2Node *n)
{
    const Build *b = &n->b;
    const Expr  *x = as_matrix(n, 0, "axis"), *w = x ? as_matrix(n, 1, "axis_w") : NULL, *y;
    uint32_t     axis;
    const Idx   *dims[MAX_RANK + 1];

    if (!w || !c2_axis(n, c2_int(n, "axis", 1), expr_rank(n->in[0]) + 1, &axis))
        return false;
    y = with_bias(n, build2(b, n->row->relay, x, w, NULL));
    if (!y || axis == 1)
        return c2_done(n, y);
    for (uint32_t i = 0; i < axis; i++)
        dims[i] = expr_form(n->in[0], i);
    dims[axis] = expr_form(y, 1);
    return c2_done(n, build_reshape_to(b, y, axis + 1, dims));
}

bool c2_matmul(C2Node *n)
{
    MatmulAttrs *a = ATTRS(&n->b, MatmulAttrs);
    const Expr  *x = as_matrix(n, 0, "axis_a"), *y = x ? as_matrix(n, 1, "axis_b") : NULL;

    a->transpose_a = c2_int(n, "trans_a", 0);
    a->transpose_b = c2_int(n, "trans_b", 0);
    return y && c2_done(n, build2(&n->b, "nn.matmul", x, y, a));
}

bool c2_batch_matmul(C2Node *n)
{
    BatchMatmulAttrs *a = ATTRS(&n->b, BatchMatmulAttrs);

    if (!c2_rank(n, 0, 3, MAX_RANK) || !c2_rank(n, 1, 3, MAX_RANK))
        return false;
    a->transpose_a = c2_int(n, "trans_a", 0);
    a->transpose_b = c2_int(n, "trans_b", 0);
    return c2_done(n, build2(&n->b, "nn.batch_matmul", n->in[0], n->in[1], a));
}

/* ---- pooling ---------------------------------------------------------------------------------------- */

bool c2_pool(C2Node *n)
{
    const Build *b = &n->b;
    Pool2dAttrs *a = ATTRS(b, Pool2dAttrs);
    const Expr  *x = c2_image(n, 0, 4, 5);
    uint32_t     dims = x ? expr_rank(x) - 2 : 0;
    bool         mean = !strcmp(n->row->name, "AveragePool"), ceil;
    BuildWindow  w = {.kernel = {0}};

    if (!x)
        return false;
    if (c2_int(n, "global_pooling", 0))
        return c2_image_done(
            n, build_reduce_image(b, mean ? "mean" : "max", x, dims, (int64_t[]){2, 3, 4}, true));
    if (!c2_window(n, dims, &w) || !legacy_pads(n, x, dims, &w, &ceil))
        return false;
    for (uint32_t i = 0; i < dims; i++)
        if (w.begin[i] >= w.kernel[i] || w.end[i] >= w.kernel[i] || (mean && w.dilation[i] != 1))
            return c2_error(n, E_IMPORT, "windows of %lld, %lld apart, and %lld cells of padding",
                            (long long)w.kernel[i], (long long)w.dilation[i],
                            (long long)w.begin[i]);
    if (dims == 3)
        return c2_image_done(
            n, build_pool_volume(b, n->row->relay, x, &w,
                                 (BuildPooling){ceil, mean && c2_int(n, "count_include_pad", 0)}));
    a->pool_size = ints_dup(b->c, w.kernel, 2);
    a->strides = ints_dup(b->c, w.stride, 2);
    a->dilation = ints_dup(b->c, w.dilation, 2);
    a->padding = pads_of(b, &w);
    a->ceil_mode = ceil;
    a->count_include_pad = mean && c2_int(n, "count_include_pad", 0);
    return c2_image_done(n, build1(b, n->row->relay, x, a));
}

/* ---- softmax, what normalizes ----------------------------------------------------------------------- */

/* Over all cells from the axis on. */
bool c2_softmax(C2Node *n)
{
    const Build  *b = &n->b;
    SoftmaxAttrs *a = ATTRS(b, SoftmaxAttrs);
    uint32_t      axis, rank = expr_rank(n->in[0]);
    const Expr   *y;

    if (!c2_rank(n, 0, 1, MAX_RANK) || !c2_axis(n, c2_int(n, "axis", rank > 1), rank, &axis))
        return false;
    a->axis = axis;
    if (axis + 1 == rank)
        return c2_done(n, build1(b, n->row->relay, n->in[0], a));
    a->axis = 1;
    y = build1(b, n->row->relay, build_matrix(b, n->in[0], axis), a);
    return c2_done(n, y ? build_reshape_to(b, y, rank, expr_forms(n->in[0]).at) : NULL);
}

bool c2_spatial_bn(C2Node *n)
{
    const Build    *b = &n->b;
    BatchNormAttrs *a = ATTRS(b, BatchNormAttrs);
    const Expr     *x = c2_image(n, 0, 2, 5), *args[5] = {x};

    if (!x)
        return false;
    if (!c2_int(n, "is_test", 0))
        return c2_error(n, E_UNSUPPORTED, "is_test=0, which is for training");
    for (uint32_t i = 1; i < 5; i++) {
        if (!c2_rank(n, i, 1, 1))
            return false;
        args[i] = n->in[i];
    }
    a->epsilon = c2_float(n, "epsilon", 1e-5);
    return c2_image_done(n, build_proj(b, build_call(b, n->row->relay, 5, args, a), 0));
}

/* Groups of channels; a scale and a shift for each channel. */
bool c2_group_norm(C2Node *n)
{
    const Expr *x = c2_image(n, 0, 2, 5);

    if (!x || !c2_rank(n, 1, 1, 1) || !c2_rank(n, 2, 1, 1))
        return false;
    x = build_groups(&n->b, x, c2_int(n, "group", 32), c2_float(n, "epsilon", 1e-5));
    return c2_image_done(n, build_scaled(&n->b, x, n->in[1], n->in[2], 1));
}

bool c2_affine_channel(C2Node *n)
{
    const Expr *x = c2_image(n, 0, 2, 5);

    return x && c2_rank(n, 1, 1, 1) && c2_rank(n, 2, 1, 1) &&
           c2_image_done(n, build_scaled(&n->b, x, n->in[1], n->in[2], 1));
}

bool c2_instance_norm(C2Node *n)
{
    const Expr *x = c2_image(n, 0, 4, 4);

    if (!x || !c2_rank(n, 1, 1, 1) || !c2_rank(n, 2, 1, 1))
        return false;
    x = build_instances(&n->b, x, c2_float(n, "epsilon", 1e-5));
    return c2_image_done(n, build_scaled(&n->b, x, n->in[1], n->in[2], 1));
}

bool c2_lrn(C2Node *n)
{
    const Expr *x = c2_image(n, 0, 4, 4);
    int64_t     size = c2_int(n, "size", 0);

    if (!x)
        return false;
    if (size < 1 || size > 4096 || size % 2 == 0)
        return c2_error(n, E_IMPORT, "size=%lld", (long long)size);
    return c2_image_done(n,
                         build_lrn(&n->b, x, size / 2, size / 2, c2_float(n, "bias", 1),
                                   c2_float(n, "alpha", 0) / (double)size, c2_float(n, "beta", 0)));
}

/* ---- images ----------------------------------------------------------------------------------------- */

bool c2_resize(C2Node *n)
{
    const Build   *b = &n->b;
    Resize2dAttrs *a = ATTRS(b, Resize2dAttrs);
    bool           near = strcmp(n->row->name, "UpsampleBilinear") != 0;
    const Expr    *x = c2_image(n, 0, 4, 4);
    int64_t        size[2];
    double         all = strcmp(n->row->name, "UpsampleNearest") ? 1 : c2_float(n, "scale", 2);
    double         scale[2] = {c2_float(n, "height_scale", all), c2_float(n, "width_scale", all)};

    for (uint32_t i = 0; i < 2 && x; i++) {
        if (!(scale[i] > 0 && scale[i] < 4096))
            return c2_error(n, E_IMPORT, "a scale of %g", scale[i]);
        size[i] = (int64_t)((double)build_dim(b, x, 2 + i) * scale[i]);
        if (size[i] < 1 || size[i] > INT32_MAX)
            return c2_error(n, E_IMPORT, "%lld cells", (long long)size[i]);
    }
    if (!x)
        return false;
    a->size = dims_of_i64(b->c, size, 2);
    a->method = near ? "nearest_neighbor" : "linear";
    a->coordinate_transformation_mode = near ? "asymmetric" : "align_corners";
    a->rounding_method = "floor";
    return c2_image_done(n, build1(b, "image.resize2d", x, a));
}

/* [g, C / g] channels become [C / g, g]. */
bool c2_channel_shuffle(C2Node *n)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    const Expr  *x = c2_image(n, 0, 4, 4), *y;
    int64_t      group = c2_int(n, "group", 1), C;

    if (!x)
        return false;
    C = build_dim(b, x, 1);
    if (group < 1 || C % group)
        return c2_error(n, E_IMPORT, "%lld groups of %lld channels", (long long)group,
                        (long long)C);
    y = build_reshape_to(b, x, 5,
                         (const Idx *[]){expr_form(x, 0), idx_const(A, group),
                                         idx_const(A, C / group), expr_form(x, 2),
                                         expr_form(x, 3)});
    y = build_transpose(b, y, 5, (int64_t[]){0, 2, 1, 3, 4});
    return c2_image_done(n, y ? build_reshape_to(b, y, 4, expr_forms(x).at) : NULL);
}

bool c2_pad_image(C2Node *n)
{
    static const char *const each[] = {"pad_t", "pad_l", "pad_b", "pad_r"};
    const Expr              *x = c2_image(n, 0, 4, 4);
    int64_t                  v[4], pads[8] = {0};
    const char              *mode = c2_text(n, "mode", "constant");

    if (!x || !c2_sizes(n, "pad", "pads", 4, each, 0, 0, v))
        return false;
    if (strcmp(mode, "constant") && strcmp(mode, "reflect") && strcmp(mode, "edge"))
        return c2_error(n, E_UNSUPPORTED, "mode '%s'", mode);
    pads[4] = v[0], pads[5] = v[2], pads[6] = v[1], pads[7] = v[3];
    return c2_image_done(n, build_pad(&n->b, x, pads, c2_float(n, "value", 0), mode));
}

/* Means in the bins of regions [R, 5], the first number of which says whose they are, or [R, 4] of
 * one image. */
bool c2_roi_align(C2Node *n)
{
    const Build   *b = &n->b;
    RoiAlignAttrs *a = ATTRS(b, RoiAlignAttrs);
    const Expr    *x = c2_image(n, 0, 4, 4), *boxes = n->in[1], *whose;
    int64_t        size[2] = {c2_int(n, "pooled_h", 1), c2_int(n, "pooled_w", 1)}, fields;
    const Idx     *R;

    if (!x || !c2_rank(n, 1, 2, 2))
        return false;
    R = expr_form(boxes, 0), fields = build_dim(b, boxes, 1);
    if (fields != 4 && fields != 5)
        return c2_error(n, E_IMPORT, "regions %s", type_text(b->c, boxes->type));
    whose = fields == 4
                ? build_zeros_of(b, DT_I64, 1, &R)
                : build_cast(b, build_reshape_to(b, build_slice(b, boxes, 1, 0, 1), 1, &R), DT_I64);
    a->pooled_size = ints_dup(b->c, size, 2);
    a->spatial_scale = c2_float(n, "spatial_scale", 1);
    a->sample_ratio = c2_int(n, "sampling_ratio", -1) > 0 ? c2_int(n, "sampling_ratio", -1) : 0;
    a->aligned = c2_int(n, "aligned", 0) != 0;
    return c2_image_done(n, build3(b, "vision.roi_align", x,
                                   build_slice(b, boxes, 1, fields - 4, fields), whose, a));
}
