/* Images of other sizes: resizing, windows that fit a size, cells between cells, blocks. */
#include "frontends/tvm/tvm.h"

#include <math.h>
#include <string.h>

enum { MAX_BINS = 1024 };

/* ---- resizing --------------------------------------------------------------------------------------- */

typedef struct {
    const char *method, *mode, *rounding;
    double      cubic_alpha;
} Resizing;

/* [N, C, H, W] */
static const Expr *resized(const TvNode *n, const Expr *x, int64_t h, int64_t w, const Resizing *r)
{
    const Build   *b = &n->b;
    Resize2dAttrs *a = ATTRS(b, Resize2dAttrs);
    const Idx    **size = NEW_ARRAY(b->c->arena, const Idx *, 2);
    bool           align = !strcmp(r->mode, "align_corners");

    if (h < 1 || w < 1 || h > INT32_MAX || w > INT32_MAX)
        return tv_error(n, E_IMPORT, "a size of %lld x %lld", (long long)h, (long long)w);
    if (!strcmp(r->mode, "tf_crop_and_resize"))
        return tv_error(n, E_UNSUPPORTED, "'coordinate_transformation_mode' is %s", r->mode);
    a->method = r->method;
    a->coordinate_transformation_mode = r->mode;
    a->rounding_method = !*r->rounding                   ? align ? "round_prefer_ceil" : "floor"
                         : !strcmp(r->rounding, "round") ? "round_prefer_ceil"
                                                         : r->rounding;
    a->cubic_alpha = r->cubic_alpha;
    size[0] = idx_const(b->c->arith, h);
    size[1] = idx_const(b->c->arith, w);
    a->size = (Dims){2, size};
    return build1(b, "image.resize2d", x, a);
}

/* [N, C, W], or [N, C, D, H, W]: the rows and columns of all depths, then the depths. */
static const Expr *resized_line(const TvNode *n, const Expr *x, int64_t w, const Resizing *r)
{
    const Expr *y = resized(n, build_expand_dims(&n->b, x, 2, 1), 1, w, r);

    return build_squeeze(&n->b, y, 1, (int64_t[]){2});
}

static const Expr *resized_volume(const TvNode *n, const Expr *x, const int64_t *to,
                                  const Resizing *r)
{
    const Build *b = &n->b;
    Ints         d = build_dims(b, x);
    int64_t      cells;

    if (to[1] < 1 || to[2] < 1 || to[1] > INT32_MAX || to[2] > INT32_MAX)
        return tv_error(n, E_IMPORT, "a size of %lld x %lld", (long long)to[1], (long long)to[2]);
    cells = to[1] * to[2];
    x = build_reshape(b, x, 4, (int64_t[]){d.at[0], d.at[1] * d.at[2], d.at[3], d.at[4]});
    x = resized(n, x, to[1], to[2], r);
    x = build_reshape(b, x, 4, (int64_t[]){d.at[0], d.at[1], d.at[2], cells});
    /* Along the columns each cell stays where it is. */
    x = x ? resized(n, x, to[0], cells, r) : NULL;
    return build_reshape(b, x, 5, (int64_t[]){d.at[0], d.at[1], to[0], to[1], to[2]});
}

static const Expr *resized_as(const TvNode *n, const int64_t *to, const Resizing *r)
{
    const Build *b = &n->b;
    const Expr  *x, *y;
    uint32_t     rank = expr_rank(n->in[0]);
    bool         last;

    if (!tv_layout(n, "layout", rank, &last))
        return NULL;
    x = last ? build_channels_first(b, n->in[0]) : n->in[0];
    y = !x          ? NULL
        : rank == 3 ? resized_line(n, x, to[0], r)
        : rank == 4 ? resized(n, x, to[0], to[1], r)
                    : resized_volume(n, x, to, r);
    return last ? build_channels_last(b, y) : y;
}

const Expr *tv_resize(TvNode *n)
{
    uint32_t rank = expr_rank(n->in[0]);
    Resizing r = {tv_text(n, "method", "linear"),
                  tv_text(n, "coordinate_transformation_mode", "half_pixel"),
                  tv_text(n, "rounding_method", "round"), tv_float(n, "cubic_alpha", -0.5)};
    Ints     v;

    if (!tv_ints(n, "size", &v))
        return NULL;
    if (rank != (uint32_t)(strstr(n->row->name, "resize")[6] - '0') + 2 || v.n + 2 != rank)
        return tv_error(n, E_IMPORT, "'size' has %u numbers for data of %u dimensions", v.n, rank);
    return resized_as(n, v.at, &r);
}

const Expr *tv_upsampling(TvNode *n)
{
    const char *names[] = {"scale_d", "scale_h", "scale_w"}, *method;
    uint32_t    rank = expr_rank(n->in[0]), volume = rank == 5;
    bool        last;
    Resizing    r = {NULL, tv_bool(n, "align_corners", false) ? "align_corners" : "asymmetric", "",
                     -0.5};
    int64_t     to[3];

    if (rank != (strstr(n->row->name, "3d") ? 5 : 4))
        return tv_error(n, E_IMPORT, "data of %u dimensions", rank);
    method = tv_text(n, "method", "nearest_neighbor");
    if (volume)
        r.mode = tv_text(n, "coordinate_transformation_mode", "half_pixel");
    /* "bilinear", "trilinear", "bicubic" */
    r.method = strstr(method, "linear") ? "linear" : strstr(method, "cubic") ? "cubic" : method;
    if (!tv_layout(n, "layout", rank, &last))
        return NULL;
    for (uint32_t i = 0; i + 2 < rank; i++) {
        double cells = (double)build_dim(&n->b, n->in[0], i + (last ? 1 : 2)) *
                       tv_float(n, names[i + !volume], 0);

        if (!(cells >= 0.5 && cells < INT32_MAX))
            return tv_error(n, E_IMPORT, "'%s' is missing or out of range", names[i + !volume]);
        to[i] = (int64_t)round(cells);
    }
    return resized_as(n, to, &r);
}

/* ---- windows that fit a size -------------------------------------------------------------------------- */

/* Along one axis, bins from i * in / out, rounded down, to (i + 1) * in / out, rounded up. */
static const Expr *binned(const TvNode *n, const Expr *x, uint32_t axis, int64_t out,
                          const char *how)
{
    const Build *b = &n->b;
    int64_t      cells = build_dim(b, x, axis), at = axis;
    const Expr **parts;

    if (out < 1 || out > MAX_BINS || cells < 1)
        return tv_error(n, E_UNSUPPORTED, "%lld cells in %lld bins", (long long)cells,
                        (long long)out);
    parts = NEW_ARRAY(b->c->arena, const Expr *, (size_t)out);
    for (int64_t i = 0; i < out; i++)
        parts[i] = build_reduce(
            b, how, build_slice(b, x, at, i * cells / out, ((i + 1) * cells + out - 1) / out), 1,
            &at, true);
    return out == 1 ? parts[0] : build_concat(b, (uint32_t)out, parts, at);
}

/* Bins that do not divide the data are taken axis by axis: those of a mean weigh the same. */
const Expr *tv_adaptive_pool(TvNode *n)
{
    const Build *b = &n->b;
    bool         mean = strstr(n->row->name, "avg_") != NULL, last, even = true;
    uint32_t     rank = expr_rank(n->in[0]), dims = rank - 2;
    BuildWindow  w = {.kernel = {0}};
    int64_t      out[3];
    const Expr  *x;

    if (!tv_layout(n, "layout", rank, &last))
        return NULL;
    if (dims != (uint32_t)(strstr(n->row->name, "pool")[4] - '0'))
        return tv_error(n, E_IMPORT, "data of %u dimensions", rank);
    x = last ? build_channels_first(b, n->in[0]) : n->in[0];
    if (!x || !tv_sizes(n, "output_size", dims, 0, out))
        return NULL;
    for (uint32_t i = 0; i < dims; i++) {
        int64_t cells = build_dim(b, x, 2 + i);

        out[i] = out[i] ? out[i] : cells;
        if (!out[i])
            return tv_error(n, E_IMPORT, "data without cells");
        even &= cells % out[i] == 0;
        w.kernel[i] = w.stride[i] = cells / out[i];
        w.dilation[i] = 1;
    }
    if (even) {
        x = tv_pooled(n, x, mean, &w, (BuildPooling){false, false});
    } else {
        for (uint32_t i = 0; x && i < dims; i++)
            x = binned(n, x, 2 + i, out[i], mean ? "mean" : "max");
    }
    return last ? build_channels_last(b, x) : x;
}

/* ---- cells between cells ------------------------------------------------------------------------------ */

/* From -1 to 1, the ends included. */
static const Expr *ends(const Build *b, int64_t cells, DType t)
{
    const Expr *at = build_arange(b, idx_const(b->c->arith, cells), t);

    return build_by(b, "add", build_by(b, "multiply", at, 2 / (double)(cells - 1)), -1);
}

/* [N, 2, 3] times (x, y, 1) of each place: [N, 2, H, W]. */
const Expr *tv_affine_grid(TvNode *n)
{
    const Build *b = &n->b;
    const Expr  *m = n->in[0], *part[3], *x, *y;
    int64_t      size[2];

    if (!tv_sizes(n, "target_shape", 2, 0, size))
        return NULL;
    if (expr_rank(m) != 3 || build_dim(b, m, 1) != 2 || build_dim(b, m, 2) != 3 || size[0] < 2 ||
        size[1] < 2)
        return tv_error(n, E_IMPORT, "matrices %s for %lld x %lld places", type_text(b->c, m->type),
                        (long long)size[0], (long long)size[1]);
    x = build_reshape(b, ends(b, size[1], expr_dtype(m)), 2, (int64_t[]){1, size[1]});
    y = build_reshape(b, ends(b, size[0], expr_dtype(m)), 2, (int64_t[]){size[0], 1});
    for (uint32_t i = 0; i < 3; i++) /* [N, 2, 1, 1] */
        part[i] = build_expand_dims(b, build_slice(b, m, 2, i, i + 1), 3, 1);
    return build_add(b, build_add(b, build_mul(b, part[0], x), build_mul(b, part[1], y)), part[2]);
}

/* A grid has its places before their coordinates elsewhere, behind them in TVM. */
const Expr *tv_grid_sample(TvNode *n)
{
    const Build  *b = &n->b;
    uint32_t      rank = expr_rank(n->in[0]);
    const char   *method = tv_text(n, "method", "bilinear"), *layout;
    BuildSampling how = {.padding = tv_text(n, "padding_mode", "zeros"),
                         .align = tv_bool(n, "align_corners", true)};

    layout = tv_text(n, "layout", "NCHW");
    how.mode = !strcmp(method, "bilinear")  ? "linear"
               : !strcmp(method, "bicubic") ? "cubic"
                                            : method;
    if (strcmp(how.mode, "linear") != 0 && strcmp(how.mode, "cubic") != 0 &&
        strcmp(how.mode, "nearest") != 0)
        return tv_error(n, E_UNSUPPORTED, "'method' is %s", method);
    if (strcmp(how.padding, "zeros") != 0 && strcmp(how.padding, "border") != 0 &&
        strcmp(how.padding, "reflection") != 0)
        return tv_error(n, E_UNSUPPORTED, "'padding_mode' is %s", how.padding);
    if ((rank != 4 && rank != 5) || expr_rank(n->in[1]) != rank ||
        strcmp(layout, rank == 4 ? "NCHW" : "NCDHW") != 0)
        return tv_error(n, E_UNSUPPORTED, "data %s in 'layout' %s", type_text(b->c, n->in[0]->type),
                        layout);
    return build_grid_sample(b, n->in[0], build_channels_last(b, n->in[1]), &how);
}

/* Images, boxes [R, 4] of y, x, y, x as shares of them, of which image each is. */
const Expr *tv_crop_and_resize(TvNode *n)
{
    const Build *b = &n->b;
    const char  *method = tv_text(n, "method", "bilinear");
    BuildCrops   k = {.nearest = !strcmp(method, "nearest_neighbor"),
                      .fill = tv_float(n, "extrapolation_value", 0)};
    const Expr  *x, *y;
    bool         last;

    if (expr_rank(n->in[0]) != 4 || !tv_layout(n, "layout", 4, &last) ||
        !tv_sizes(n, "crop_size", 2, 0, k.size))
        return NULL;
    if (!k.nearest && strcmp(method, "bilinear") != 0)
        return tv_error(n, E_UNSUPPORTED, "'method' is %s", method);
    x = last ? build_channels_first(b, n->in[0]) : n->in[0];
    y = x ? build_crops(b, x, n->in[1], n->in[2], &k) : NULL;
    return last ? build_channels_last(b, y) : y;
}

/* The largest sum of a cell, 0 around the image, and its weight in each window; weights [C, h, w].
 */
const Expr *tv_dilation2d(TvNode *n)
{
    const Build *b = &n->b;
    bool         last;
    const char  *layout = tv_text(n, "kernel_layout", "IHW");
    int64_t      step[2], apart[2], begin[2], end[2], pads[8] = {0}, out[2], cells[2];
    const Expr  *x = n->in[0], *w = n->in[1], *y = NULL;

    if (expr_rank(x) != 4 || expr_rank(w) != 3 || !tv_layout(n, "data_layout", 4, &last) ||
        !tv_sizes(n, "strides", 2, 1, step) || !tv_sizes(n, "dilations", 2, 1, apart) ||
        !tv_padding(n, 2, begin, end))
        return tv_error(n, E_IMPORT, "%s and %s", type_text(b->c, x->type),
                        type_text(b->c, w->type));
    if (strcmp(layout, "IHW") != 0 && strcmp(layout, "HWI") != 0)
        return tv_error(n, E_UNSUPPORTED, "'kernel_layout' is %s", layout);
    x = last ? build_channels_first(b, x) : x;
    w = !strcmp(layout, "HWI") ? build_transpose(b, w, 3, (int64_t[]){2, 0, 1}) : w;
    for (uint32_t i = 0; x && w && i < 2; i++) {
        pads[4 + 2 * i] = begin[i], pads[5 + 2 * i] = end[i];
        cells[i] = build_dim(b, w, 1 + i);
        out[i] = build_dim(b, x, 2 + i) + begin[i] + end[i] - (cells[i] - 1) * apart[i];
        if (step[i] < 1 || apart[i] < 1 || cells[i] < 1 || cells[i] > 64 || out[i] < 1)
            return tv_error(n, E_UNSUPPORTED, "a window of %lld cells, %lld apart",
                            (long long)cells[i], (long long)apart[i]);
        out[i] = (out[i] - 1) / step[i] + 1;
    }
    x = x && w ? build_pad(b, x, pads, 0, NULL) : NULL;
    for (int64_t k = 0; x && k < cells[0] * cells[1]; k++) {
        StridedSliceAttrs *a = ATTRS(b, StridedSliceAttrs);
        int64_t            from[] = {k / cells[1] * apart[0], k % cells[1] * apart[1]},
                to[] = {from[0] + (out[0] - 1) * step[0] + 1, from[1] + (out[1] - 1) * step[1] + 1};
        const Expr *part, *by;

        a->begin = tv_dims(n, (Ints){2, from});
        a->end = tv_dims(n, (Ints){2, to});
        a->strides = ints_dup(b->c, step, 2);
        a->axes = ints_of(b->c, 2, 2, 3);
        part = build1(b, "strided_slice", x, a);
        by = build_slice(b, build_slice(b, w, 1, k / cells[1], k / cells[1] + 1), 2, k % cells[1],
                         k % cells[1] + 1);
        part = build_add(b, part, by);
        y = y ? build2(b, "maximum", y, part, NULL) : part;
        if (!y)
            return NULL;
    }
    return last ? build_channels_last(b, y) : y;
}

/* data, offset, weight */
const Expr *tv_deformable_conv2d(TvNode *n)
{
    const Build  *b = &n->b;
    BuildDeformed d = {.ends = false, .product = tv_product};
    TvConv        k;
    TvNode        plain = *n;
    const Expr   *in[2] = {n->in[0], n->in[2]};

    plain.in = in;
    plain.nin = 2;
    if (!tv_read_conv(&plain, &k))
        return NULL;
    if (k.last)
        return tv_error(n, E_UNSUPPORTED, "'data_layout' is %s", tv_text(n, "data_layout", ""));
    d.x = k.conv.x;
    d.weight = k.conv.w;
    d.offset = n->in[1];
    d.window = k.conv.window;
    d.group = k.conv.groups;
    d.parts = tv_int(n, "deformable_groups", 1);
    return build_deform_conv(b, &d);
}

/* Boxes [R, 5], whose first number says of which picture they are. */
const Expr *tv_roi_align(TvNode *n)
{
    const Build   *b = &n->b;
    RoiAlignAttrs *a = tv_record(n, "vision.roi_align");
    const Expr    *whose;

    if (!a)
        return NULL;
    if (expr_rank(n->in[1]) != 2 || build_dim(b, n->in[1], 1) != 5)
        return tv_error(n, E_IMPORT, "boxes %s", type_text(b->c, n->in[1]->type));
    a->sample_ratio = a->sample_ratio > 0 ? a->sample_ratio : 0;
    whose = build_squeeze(b, build_slice(b, n->in[1], 1, 0, 1), 1, (int64_t[]){1});
    return build3(b, "vision.roi_align", n->in[0], build_slice(b, n->in[1], 1, 1, 5),
                  whose ? build_cast(b, whose, DT_I64) : NULL, a);
}

/* ---- blocks ------------------------------------------------------------------------------------------- */

const Expr *tv_space_to_batch(TvNode *n)
{
    bool to_batch = strstr(n->row->name, "space_to") != NULL;
    Ints size, around;

    if (!tv_ints(n, "block_shape", &size) || !tv_ints(n, to_batch ? "paddings" : "crops", &around))
        return NULL;
    if (tv_float(n, "pad_value", 0) != 0)
        return tv_error(n, E_UNSUPPORTED, "'pad_value' is %g", tv_float(n, "pad_value", 0));
    if (!size.n || around.n != 2 * size.n || expr_rank(n->in[0]) <= size.n)
        return tv_error(n, E_IMPORT, "blocks of %u dimensions, %u numbers around them", size.n,
                        around.n);
    return to_batch ? build_space_to_batch(&n->b, n->in[0], size, around)
                    : build_batch_to_space(&n->b, n->in[0], size, around);
}

/* Cells apart: each gets stride - 1 others behind it, and those behind the last go. */
const Expr *tv_dilate(TvNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0];
    uint32_t     rank = expr_rank(x);
    Ints         stride;

    if (!tv_ints(n, "strides", &stride))
        return NULL;
    if (stride.n != rank || rank >= MAX_RANK)
        return tv_error(n, E_IMPORT, "'strides' has %u numbers", stride.n);
    for (uint32_t i = 0; x && i < rank; i++) {
        int64_t pads[2 * MAX_RANK] = {0}, dims[MAX_RANK], s = stride.at[i],
                         cells = build_dim(b, x, i);

        if (s < 1 || s > INT32_MAX || cells < 1 || cells > MAX_ELEMS / s)
            return tv_error(n, E_IMPORT, "'strides' has %lld", (long long)s);
        if (s == 1)
            continue;
        for (uint32_t k = 0; k < rank; k++)
            dims[k] = k == i ? cells * s : build_dim(b, x, k);
        pads[2 * (i + 1) + 1] = s - 1;
        x = build_pad(b, build_expand_dims(b, x, i + 1, 1), pads, tv_float(n, "dilation_value", 0),
                      NULL);
        x = build_slice(b, build_reshape(b, x, rank, dims), i, 0, (cells - 1) * s + 1);
    }
    return x;
}
