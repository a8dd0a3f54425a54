/* Convolutions, pooling, normalization, padding.  Data with their channels last are seen with their
 * channels first, and results go back. */
#include "frontends/tvm/tvm.h"

#include <string.h>

bool tv_layout(const TvNode *n, const char *attr, uint32_t rank, bool *last)
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

/* Weights in the wanted layout from one of the same letters. */
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

/* Depthwise weights in HWIO have their groups in I. */
static const Expr *depthwise_weight(const Build *b, const Expr *x, const Expr *w, const int64_t *k,
                                    int64_t groups)
{
    int64_t shape[5] = {build_dim(b, w, 0) * groups, 1, k[0], k[1], k[2]},
            axes[5] = {1, 0, 2, 3, 4};
    const Expr *v;

    if (groups == 1 || build_dim(b, x, 1) != groups || build_dim(b, w, 1) != groups)
        return w;
    w = build_reshape(b, build_transpose(b, w, expr_rank(w), axes), expr_rank(w), shape);
    v = w ? build_fold(b, w) : NULL;
    return v ? v : w;
}

bool tv_read_conv(TvNode *n, TvConv *out)
{
    static const char *const plain[2][3] = {{"OIW", "OIHW", "OIDHW"}, {"IOW", "IOHW", "IODHW"}};
    const Build             *b = &n->b;
    BuildConv               *k = &out->conv;
    const char              *layout;
    uint32_t                 dims = expr_rank(n->in[0]) - 2;
    int64_t                  sizes[3];

    *out = (TvConv){.conv = {.dims = dims, .groups = tv_int(n, "groups", 1)}};
    k->transposed = strstr(n->row->name, "_transpose") != NULL;
    if (!tv_layout(n, "data_layout", dims + 2, &out->last))
        return false;
    if (dims != (uint32_t)(strstr(n->row->name, "conv")[4] - '0'))
        return tv_error(n, E_IMPORT, "data of %u dimensions", dims + 2);
    layout = plain[k->transposed][dims - 1];
    if (!(k->w = weight_of(n, n->in[1], tv_text(n, "kernel_layout", layout), layout)) ||
        !tv_sizes(n, "strides", dims, 1, k->window.stride) ||
        !tv_sizes(n, "dilation", dims, 1, k->window.dilation) ||
        !tv_sizes(n, "output_padding", dims, 0, k->extra) ||
        !tv_padding(n, dims, k->window.begin, k->window.end) ||
        !tv_sizes(n, "kernel_size", dims, 0, sizes))
        return false;
    for (uint32_t i = 0; i < dims; i++) {
        k->window.kernel[i] = build_dim(b, k->w, 2 + i);
        if (sizes[i] && sizes[i] != k->window.kernel[i])
            return tv_error(n, E_IMPORT, "'kernel_size' does not fit weights %s",
                            type_text(b->c, k->w->type));
    }
    if (!(k->x = out->last ? build_channels_first(b, n->in[0]) : n->in[0]))
        return false;
    if (!k->transposed)
        k->w = depthwise_weight(b, k->x, k->w, k->window.kernel, k->groups);
    return k->w != NULL;
}

const Expr *tv_convolved(TvNode *n, const TvConv *k)
{
    const Build *b = &n->b;
    BuildConv    conv = k->conv;
    DType        t = expr_dtype(conv.x);
    int64_t      channels = tv_int(n, "channels", 0);
    const Expr  *y;

    if (!tv_type(n, "out_dtype", &t))
        return NULL;
    /* Sums in another type are those of operands in that type. */
    if (!dtype_eq(t, expr_dtype(conv.x))) {
        conv.x = build_cast(b, conv.x, t);
        conv.w = build_cast(b, conv.w, t);
    }
    if (!(y = build_conv(b, &conv)))
        return NULL;
    if (channels && channels != build_dim(b, y, 1))
        return tv_error(n, E_IMPORT, "'channels' is %lld, of %lld", (long long)channels,
                        (long long)build_dim(b, y, 1));
    y = build_cast(b, y, t);
    return k->last ? build_channels_last(b, y) : y;
}

const Expr *tv_conv(TvNode *n)
{
    TvConv k;

    if (tv_is_blocked(n, "data_layout") || tv_is_blocked(n, "kernel_layout"))
        return tv_unblocked(n, "data_layout", "kernel_layout", tv_conv);
    return tv_read_conv(n, &k) ? tv_convolved(n, &k) : NULL;
}

/* ---- pooling ---------------------------------------------------------------------------------------- */

const Expr *tv_pooled(const TvNode *n, const Expr *x, bool mean, const BuildWindow *w,
                      BuildPooling how)
{
    const Build *b = &n->b;
    const char  *op = mean ? "nn.avg_pool2d" : "nn.max_pool2d";
    Pool2dAttrs *a = ATTRS(b, Pool2dAttrs);
    uint32_t     i = x && expr_rank(x) == 3 ? 0 : 1;
    const Expr  *y;

    if (!x || expr_rank(x) == 5)
        return x ? build_pool_volume(b, op, x, w, how) : NULL;
    a->pool_size = ints_of(b->c, 2, i ? (int)w->kernel[0] : 1, (int)w->kernel[i]);
    a->strides = ints_of(b->c, 2, i ? (int)w->stride[0] : 1, (int)w->stride[i]);
    a->dilation = ints_of(b->c, 2, i ? (int)w->dilation[0] : 1, (int)w->dilation[i]);
    a->padding = ints_of(b->c, 4, i ? (int)w->begin[0] : 0, (int)w->begin[i],
                         i ? (int)w->end[0] : 0, (int)w->end[i]);
    a->ceil_mode = how.ceil_mode;
    a->count_include_pad = how.count_include_pad;
    y = build1(b, op, i ? x : build_expand_dims(b, x, 2, 1), a);
    return i ? y : build_squeeze(b, y, 1, (int64_t[]){2});
}

const Expr *tv_pool(TvNode *n)
{
    const Build *b = &n->b;
    bool         last;
    uint32_t     rank = expr_rank(n->in[0]), dims = rank - 2;
    BuildWindow  w = {.kernel = {0}};
    BuildPooling how = {tv_bool(n, "ceil_mode", false), tv_bool(n, "count_include_pad", false)};
    const Expr  *y;

    if (tv_is_blocked(n, "layout"))
        return tv_unblocked(n, "layout", NULL, tv_pool);
    if (!tv_layout(n, "layout", rank, &last))
        return NULL;
    if (dims != (uint32_t)(strstr(n->row->name, "pool")[4] - '0'))
        return tv_error(n, E_IMPORT, "data of %u dimensions", rank);
    if (!tv_sizes(n, "pool_size", dims, 0, w.kernel) ||
        !tv_sizes(n, "strides", dims, 1, w.stride) ||
        !tv_sizes(n, "dilation", dims, 1, w.dilation) || !tv_padding(n, dims, w.begin, w.end))
        return NULL;
    for (uint32_t i = 0; i < dims; i++)
        if (!w.kernel[i] || !w.stride[i] || !w.dilation[i])
            return tv_error(n, E_IMPORT, "a window of 0 cells, or steps of 0");
    y = tv_pooled(n, last ? build_channels_first(b, n->in[0]) : n->in[0],
                  strstr(n->row->name, "avg_") != NULL, &w, how);
    return last ? build_channels_last(b, y) : y;
}

const Expr *tv_global_pool(TvNode *n)
{
    const Build *b = &n->b;
    const Expr  *y;
    bool         last;

    if (tv_is_blocked(n, "layout"))
        return tv_unblocked(n, "layout", NULL, tv_global_pool);
    if (!tv_layout(n, "layout", expr_rank(n->in[0]), &last))
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

/* (x - mean) / sqrt(variance + epsilon) along the axes. */
static const Expr *normalized(const TvNode *n, const Expr *x, uint32_t count, const int64_t *axes)
{
    return build_standardized(&n->b, x, count, axes, tv_float(n, "epsilon", 1e-5));
}

/* .. times gamma plus beta along another one. */
static const Expr *scaled(const TvNode *n, const Expr *y, uint32_t axis)
{
    bool scale = tv_bool(n, "scale", true), center = tv_bool(n, "center", true);

    if (!y || expr_rank(n->in[1]) != 1 || expr_rank(n->in[2]) != 1)
        return y ? tv_error(n, E_IMPORT, "gamma or beta is no vector") : NULL;
    return build_scaled(&n->b, y, scale ? n->in[1] : NULL, center ? n->in[2] : NULL, axis);
}

/* Each channel of each picture by itself. */
const Expr *tv_instance_norm(TvNode *n)
{
    uint32_t rank = expr_rank(n->in[0]), axis, count = 0;
    int64_t  axes[MAX_RANK];

    if (!build_axis(&n->b, tv_int(n, "axis", 1), rank, 0, &axis))
        return NULL;
    for (uint32_t i = 1; i < rank; i++)
        if (i != axis)
            axes[count++] = i;
    return scaled(n, normalized(n, n->in[0], count, axes), axis);
}

/* The channels in groups, each of them with all places of a picture. */
const Expr *tv_group_norm(TvNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *y;
    uint32_t     rank = expr_rank(x), axis, count = 0;
    int64_t      groups = tv_int(n, "num_groups", 0), channels, dims[MAX_RANK], axes[MAX_RANK];

    if (!build_axis(b, tv_int(n, "axis", 1), rank, 0, &axis))
        return NULL;
    channels = build_dim(b, x, axis);
    if (groups < 1 || channels % groups || rank == MAX_RANK)
        return tv_error(n, E_IMPORT, "%lld groups of %lld channels", (long long)groups,
                        (long long)channels);
    for (uint32_t i = 0; i < rank; i++) {
        dims[i + (i > axis)] = build_dim(b, x, i);
        if (i && i != axis)
            axes[count++] = i + (i > axis);
    }
    dims[axis] = groups;
    dims[axis + 1] = channels / groups;
    axes[count++] = axis + 1;
    y = normalized(n, build_reshape(b, x, rank + 1, dims), count, axes);
    return scaled(n, build_reshape_to(b, y, rank, expr_forms(x).at), axis);
}

/* x / sqrt(max(sum of squares, eps)) */
const Expr *tv_l2_normalize(TvNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *sum;
    uint32_t     count = 0;
    int64_t      at[MAX_RANK];
    Ints         axes;

    if (!tv_ints(n, "axis", &axes) || !build_axes(b, axes, expr_rank(x), 0, &count, at))
        return NULL;
    for (; !axes.n && count < expr_rank(x); count++)
        at[count] = count;
    sum = build_reduce(b, "sum", build_mul(b, x, x), count, at, true);
    sum = build_by(b, "maximum", sum, tv_float(n, "eps", 0));
    return build_div(b, x, build1(b, "sqrt", sum, NULL));
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

/* ---- padding, blocks ----------------------------------------------------------------------------------------- */

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
    const Expr *x = n->in[0];
    double      fill = 0;
    int64_t     moved[2 * MAX_RANK];
    uint32_t    rank = expr_rank(x);
    Ints        pads;

    if (!pads_of(n, &pads))
        return NULL;
    if (!expr_const_f(n->in[1], &fill) && !strcmp(mode, "constant"))
        return tv_error(n, E_UNSUPPORTED, "'pad_value' is no constant");
    if (strcmp(mode, "constant") != 0 && strcmp(mode, "edge") != 0 && strcmp(mode, "reflect") != 0)
        return tv_error(n, E_IMPORT, "'pad_mode' is %s", mode);
    if (!build_is_moved(x))
        return build_pad(&n->b, x, pads.at, fill, mode);
    for (uint32_t i = 0; i < 2 * rank; i++)
        moved[2 * moved_axis(i / 2, rank, rank) + i % 2] = pads.at[i];
    return build_channels_last(&n->b,
                               build_pad(&n->b, build_channels_first(&n->b, x), moved, fill, mode));
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
