/* Convolutions, pooling, normalization, images.  Data with their channels last are seen with their
 * channels first, and results go back. */
#include "frontends/tvm/tvm.h"

#include <string.h>

/* "NCHW" or "NHWC", and the like of other ranks; false with an error. */
static bool layout_of(const TvNode *n, const char *attr, uint32_t rank, bool *last)
{
    static const char *const first[] = {"NCW", "NCHW", "NCDHW"}, *const behind[] = {"NWC", "NHWC",
                                                                                    "NDHWC"};
    const char *out = tv_text(n, "out_layout", ""), *in;

    if (rank < 3 || rank > 5)
        return tv_error(n, E_IMPORT, "data of %u dimensions", rank);
    in = tv_text(n, attr, first[rank - 3]);
    *last = !strcmp(in, behind[rank - 3]);
    if (!*last && strcmp(in, first[rank - 3]) != 0)
        return tv_error(n, E_UNSUPPORTED, "'%s' is %s", attr, in);
    return !*out || !strcmp(out, in) ||
           tv_error(n, E_UNSUPPORTED, "'out_layout' is %s", out) != NULL;
}

/* Weights as OIHW from a layout of the same letters. */
static const Expr *weight_of(const TvNode *n, const Expr *w, const char *layout, const char *wanted)
{
    int64_t     axes[5];
    uint32_t    rank = (uint32_t)strlen(wanted);
    const Expr *k;

    if (strlen(layout) != rank || expr_rank(w) != rank)
        return tv_error(n, E_UNSUPPORTED, "'kernel_layout' is %s, of weights %s", layout,
                        type_text(n->b.c, w->type));
    if (!strcmp(layout, wanted))
        return w;
    for (uint32_t i = 0; i < rank; i++) {
        const char *p = strchr(layout, wanted[i]);

        if (!p)
            return tv_error(n, E_UNSUPPORTED, "'kernel_layout' is %s", layout);
        axes[i] = p - layout;
    }
    w = build_transpose(&n->b, w, rank, axes);
    k = w ? build_fold(&n->b, w) : NULL;
    return k ? k : w;
}

static const Expr *conv_of(TvNode *n, const Expr *x, const Expr *w, uint32_t dims, BuildWindow *k,
                           int64_t groups, const char *out_dtype)
{
    const Build *b = &n->b;
    Conv1dAttrs *line = ATTRS(b, Conv1dAttrs);
    Conv2dAttrs *a = ATTRS(b, Conv2dAttrs);

    if (dims == 3)
        return build_conv_volume(b, x, w, k, groups, out_dtype);
    if (dims == 1) {
        line->strides = ints_dup(b->c, k->stride, 1);
        line->dilation = ints_dup(b->c, k->dilation, 1);
        line->padding = ints_of(b->c, 2, (int)k->begin[0], (int)k->end[0]);
        line->groups = groups;
        line->out_dtype = out_dtype;
        return build2(b, "nn.conv1d", x, w, line);
    }
    a->strides = ints_dup(b->c, k->stride, 2);
    a->dilation = ints_dup(b->c, k->dilation, 2);
    a->padding =
        ints_of(b->c, 4, (int)k->begin[0], (int)k->begin[1], (int)k->end[0], (int)k->end[1]);
    a->groups = groups;
    a->channels = build_dim(b, w, 0);
    a->kernel_size = ints_dup(b->c, k->kernel, 2);
    a->out_dtype = out_dtype;
    return build2(b, "nn.conv2d", x, w, a);
}

const Expr *tv_conv(TvNode *n)
{
    static const char *const plain[] = {"OIW", "OIHW", "OIDHW"};
    const Build             *b = &n->b;
    const Expr              *x = n->in[0], *w, *y;
    uint32_t                 rank = expr_rank(x), dims = rank - 2;
    int64_t     groups = tv_int(n, "groups", 1), channels = tv_int(n, "channels", 0), sizes[3];
    BuildWindow k = {.kernel = {0}};
    const char *out_dtype = tv_text(n, "out_dtype", "");
    DType       t;
    bool        last;

    if (!layout_of(n, "data_layout", rank, &last) ||
        !(w = weight_of(n, n->in[1], tv_text(n, "kernel_layout", plain[rank - 3]),
                        plain[rank - 3])))
        return NULL;
    if (dims != (uint32_t)(n->row->name[7] - '0'))
        return tv_error(n, E_IMPORT, "data of %u dimensions", rank);
    if (!tv_sizes(n, "strides", dims, 1, k.stride) ||
        !tv_sizes(n, "dilation", dims, 1, k.dilation) || !tv_padding(n, dims, k.begin, k.end) ||
        !tv_sizes(n, "kernel_size", dims, 0, sizes) || !tv_type(n, "out_dtype", &t))
        return NULL;
    for (uint32_t i = 0; i < dims; i++) {
        k.kernel[i] = build_dim(b, w, 2 + i);
        if (!k.stride[i] || !k.dilation[i] || (sizes[i] && sizes[i] != k.kernel[i]))
            return tv_error(n, E_IMPORT,
                            "'kernel_size', 'strides' or 'dilation' does not fit "
                            "weights %s",
                            type_text(b->c, w->type));
    }
    x = last ? build_channels_first(b, x) : x;
    /* Depthwise weights in HWIO have their groups in I. */
    if (x && groups > 1 && build_dim(b, w, 0) * groups == build_dim(b, x, 1) * build_dim(b, w, 0) &&
        build_dim(b, w, 1) == groups) {
        int64_t shape[5] = {build_dim(b, w, 0) * groups, 1, k.kernel[0], k.kernel[1], k.kernel[2]};
        int64_t axes[5] = {1, 0, 2, 3, 4};

        w = build_reshape(b, build_transpose(b, w, rank, axes), rank, shape);
        w = w && build_fold(b, w) ? build_fold(b, w) : w;
    }
    if (!x || !w)
        return NULL;
    if (groups < 1 || groups > INT32_MAX || build_dim(b, x, 1) != build_dim(b, w, 1) * groups ||
        build_dim(b, w, 0) % groups || (channels && channels != build_dim(b, w, 0)))
        return tv_error(n, E_IMPORT, "weights %s in %lld groups for data %s",
                        type_text(b->c, w->type), (long long)groups, type_text(b->c, x->type));
    y = conv_of(n, x, w, dims, &k, groups, *out_dtype ? dtype_text(b->c, t) : "");
    return last ? build_channels_last(b, y) : y;
}

/* ---- pooling ---------------------------------------------------------------------------------------- */

const Expr *tv_pool(TvNode *n)
{
    const Build *b = &n->b;
    bool         mean = n->row->name[3] == 'a', last;
    const char  *op = mean ? "nn.avg_pool2d" : "nn.max_pool2d";
    uint32_t     rank = expr_rank(n->in[0]), dims = rank - 2, i;
    BuildWindow  w = {.kernel = {0}};
    BuildPooling how = {tv_bool(n, "ceil_mode", false), tv_bool(n, "count_include_pad", false)};
    Pool2dAttrs *a = ATTRS(b, Pool2dAttrs);
    const Expr  *x, *y;

    if (!layout_of(n, "layout", rank, &last))
        return NULL;
    if (dims != (uint32_t)(n->row->name[11] - '0'))
        return tv_error(n, E_IMPORT, "data of %u dimensions", rank);
    if (!tv_sizes(n, "pool_size", dims, 0, w.kernel) ||
        !tv_sizes(n, "strides", dims, 1, w.stride) ||
        !tv_sizes(n, "dilation", dims, 1, w.dilation) || !tv_padding(n, dims, w.begin, w.end))
        return NULL;
    for (i = 0; i < dims; i++)
        if (!w.kernel[i] || !w.stride[i] || !w.dilation[i])
            return tv_error(n, E_IMPORT, "a window of 0 cells, or steps of 0");
    x = last ? build_channels_first(b, n->in[0]) : n->in[0];
    if (dims == 3) {
        y = build_pool_volume(b, op, x, &w, how);
        return last ? build_channels_last(b, y) : y;
    }
    i = dims == 1 ? 0 : 1;
    a->pool_size = ints_of(b->c, 2, i ? (int)w.kernel[0] : 1, (int)w.kernel[i]);
    a->strides = ints_of(b->c, 2, i ? (int)w.stride[0] : 1, (int)w.stride[i]);
    a->dilation = ints_of(b->c, 2, i ? (int)w.dilation[0] : 1, (int)w.dilation[i]);
    a->padding = ints_of(b->c, 4, i ? (int)w.begin[0] : 0, (int)w.begin[i], i ? (int)w.end[0] : 0,
                         (int)w.end[i]);
    a->ceil_mode = how.ceil_mode;
    a->count_include_pad = how.count_include_pad;
    y = build1(b, op, i ? x : build_expand_dims(b, x, 2, 1), a);
    y = i ? y : build_squeeze(b, y, 1, (int64_t[]){2});
    return last ? build_channels_last(b, y) : y;
}

const Expr *tv_global_pool(TvNode *n)
{
    const Build *b = &n->b;
    const Expr  *y;
    bool         last;

    if (!layout_of(n, "layout", expr_rank(n->in[0]), &last))
        return NULL;
    y = build1(b, n->row->relay, last ? build_channels_first(b, n->in[0]) : n->in[0], NULL);
    return last ? build_channels_last(b, y) : y;
}

/* ---- normalization ---------------------------------------------------------------------------------- */

/* TVM's is along one axis: ours along all from it on. */
const Expr *tv_layer_norm(TvNode *n)
{
    LayerNormAttrs *a = tv_record(n, "nn.layer_norm");
    uint32_t        rank = expr_rank(n->in[0]), axis;

    if (!a || !build_axis(&n->b, tv_int(n, "axis", -1), rank, 0, &axis))
        return NULL;
    if (axis + 1 != rank)
        return tv_error(n, E_UNSUPPORTED, "along axis %u of %u", axis, rank);
    a->axis = -1;
    return build_call(&n->b, "nn.layer_norm", 3, n->in, a);
}

/* (bias + alpha / size * sum of squares)^beta */
const Expr *tv_lrn(TvNode *n)
{
    int64_t size = tv_int(n, "size", 5);

    if (tv_int(n, "axis", 1) != 1 || expr_rank(n->in[0]) != 4)
        return tv_error(n, E_UNSUPPORTED, "along axis %lld", (long long)tv_int(n, "axis", 1));
    if (size < 1 || size > INT32_MAX || size % 2 == 0)
        return tv_error(n, E_IMPORT, "'size' is %lld", (long long)size);
    return build_lrn(&n->b, n->in[0], size / 2, size / 2, tv_float(n, "bias", 2),
                     tv_float(n, "alpha", 1e-4) / (double)size, tv_float(n, "beta", 0.75));
}

const Expr *tv_batch_flatten(TvNode *n)
{
    return build_matrix(&n->b, n->in[0], 1);
}

/* ---- images ----------------------------------------------------------------------------------------- */

static bool pads_of(const TvNode *n, Ints *out)
{
    if (!tv_ints(n, "pad_width", out))
        return false;
    return out->n == 2 * expr_rank(n->in[0]) ||
           tv_error(n, E_IMPORT, "'pad_width' has %u numbers", out->n) != NULL;
}

const Expr *tv_pad(TvNode *n)
{
    const char *mode = tv_text(n, "pad_mode", "constant");
    double      fill = 0;
    Ints        pads;

    if (!pads_of(n, &pads))
        return NULL;
    if (!expr_const_f(n->in[1], &fill) && !strcmp(mode, "constant"))
        return tv_error(n, E_UNSUPPORTED, "'pad_value' is no constant");
    if (strcmp(mode, "constant") != 0 && strcmp(mode, "edge") != 0 && strcmp(mode, "reflect") != 0)
        return tv_error(n, E_IMPORT, "'pad_mode' is %s", mode);
    return build_pad(&n->b, n->in[0], pads.at, fill, mode);
}

const Expr *tv_mirror_pad(TvNode *n)
{
    const char *mode = tv_text(n, "mode", "SYMMETRIC");
    Ints        pads;

    return pads_of(n, &pads)
               ? build_mirror_pad(&n->b, n->in[0], pads.at, !strcmp(mode, "SYMMETRIC"))
               : NULL;
}

const Expr *tv_blocks(TvNode *n)
{
    int64_t size = tv_int(n, "block_size", 0);

    if (size < 1 || size > INT32_MAX || expr_rank(n->in[0]) != 4)
        return tv_error(n, E_IMPORT, "'block_size' is %lld", (long long)size);
    return n->row->relay ? build_depth_to_space(&n->b, n->in[0], size)
                         : build_space_to_depth(&n->b, n->in[0], size);
}

const Expr *tv_resize2d(TvNode *n)
{
    const Build   *b = &n->b;
    Resize2dAttrs *a = tv_record(n, "image.resize2d");
    const Idx    **size = NEW_ARRAY(b->c->arena, const Idx *, 2);
    const Expr    *y;
    bool           last;
    Ints           v;

    if (!a || !layout_of(n, "layout", expr_rank(n->in[0]), &last) || !tv_ints(n, "size", &v))
        return NULL;
    if (expr_rank(n->in[0]) != 4 || v.n != 2 || v.at[0] < 1 || v.at[1] < 1 || v.at[0] > INT32_MAX ||
        v.at[1] > INT32_MAX)
        return tv_error(n, E_IMPORT, "'size' has %u numbers, or some below 1", v.n);
    if (!strcmp(a->coordinate_transformation_mode, "tf_crop_and_resize"))
        return tv_error(n, E_UNSUPPORTED, "'coordinate_transformation_mode' is %s",
                        a->coordinate_transformation_mode);
    if (!*a->rounding_method || !strcmp(a->rounding_method, "round"))
        a->rounding_method = strcmp(a->coordinate_transformation_mode, "align_corners") != 0 &&
                                     strcmp(a->coordinate_transformation_mode, "half_pixel") != 0
                                 ? "floor"
                                 : "round_prefer_ceil";
    for (uint32_t i = 0; i < 2; i++)
        size[i] = idx_const(b->c->arith, v.at[i]);
    a->size = (Dims){2, size};
    y = build1(b, "image.resize2d", last ? build_channels_first(b, n->in[0]) : n->in[0], a);
    return last ? build_channels_last(b, y) : y;
}
