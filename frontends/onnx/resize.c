/* Resize and its ancestor Upsample.
 *
 * Interpolation is separable, so a tensor of any rank is resized an axis at a time, as a picture of
 * [cells before, 1, this axis, cells after]; the usual case, height and width, in one go. */
#include "frontends/onnx/onnx.h"

#include <math.h>
#include <string.h>

typedef struct {
    const char *method, *coordinates, *rounding;
    double      cubic;
    bool        by_size; /* the scale is size / input, exactly */
} Mode;

static const Expr *resize2d(Node *n, const Mode *m, const Expr *x, const int64_t size[2],
                            const double scale[2])
{
    Resize2dAttrs *a = ATTRS(&n->b, Resize2dAttrs);

    a->size = dims_of_i64(n->b.c, size, 2);
    if (!m->by_size)
        a->scales = (Floats){2, arena_dup(n->b.c->arena, scale, 2 * sizeof *scale)};
    a->method = m->method;
    a->coordinate_transformation_mode = m->coordinates;
    a->rounding_method = m->rounding;
    a->cubic_alpha = m->cubic;
    return build1(&n->b, "image.resize2d", x, a);
}

static const Expr *resize(Node *n, const Mode *m, const Expr *x, const int64_t *size,
                          const double *scale)
{
    const Build *b = &n->b;
    uint32_t     rank = expr_rank(x);
    int64_t      dims[MAX_RANK], out[MAX_RANK];

    memcpy(dims, expr_dims(b->c, x).at, rank * sizeof *dims);
    for (uint32_t i = 0; i < rank; i++)
        if (size[i] == 0)
            return build_zeros(b, expr_dtype(x), rank, size);
    for (uint32_t i = 0; i < rank && x; i++) {
        bool    pair = i + 2 == rank;
        int64_t before = 1, after = 1, channels = 1;

        if (scale[i] == 1 && size[i] == dims[i] && !(pair && scale[i + 1] != 1))
            continue;
        for (uint32_t k = 0; k < rank; k++) {
            out[k] = dims[k];
            if (k < i)
                before *= dims[k];
            else if (k > i)
                after *= dims[k];
        }
        if (rank == 4 && pair) {
            before = dims[0];
            channels = dims[1];
        }
        x = build_reshape(b, x, 4, (int64_t[]){before, channels, dims[i], after});
        x = resize2d(n, m, x, (int64_t[]){size[i], pair ? size[i + 1] : after},
                     (double[]){scale[i], pair ? scale[i + 1] : 1});
        out[i] = dims[i] = size[i];
        if (pair)
            out[i + 1] = dims[i + 1] = size[i + 1];
        x = build_reshape(b, x, rank, out);
        if (pair)
            break;
    }
    return x;
}

/* Sizes of the result from scales: in f32, in which 0.7 times 10 is 7. */
static bool sizes_of(Node *n, const Expr *x, const double *scale, int64_t *size)
{
    for (uint32_t i = 0; i < expr_rank(x); i++) {
        double d = floor((double)((float)expr_dim(x, i) * (float)scale[i]));

        if (!(scale[i] > 0) || !(d >= 0 && d < INT32_MAX))
            return node_error(n, E_IMPORT, "scale %g of dimension %u", scale[i], i);
        size[i] = (int64_t)d;
    }
    return true;
}

static bool const_floats(Node *n, uint32_t i, uint32_t count, double *out)
{
    const Expr *k = node_has(n, i) ? build_fold(&n->b, n->in[i]) : NULL;

    if (!k)
        return node_error(n, E_UNSUPPORTED, "input %u has to be a constant", i);
    if (expr_elems(k) != count)
        return node_error(n, E_IMPORT, "input %u holds %lld numbers, not %u", i,
                          (long long)expr_elems(k), count);
    for (uint32_t j = 0; j < count; j++)
        out[j] = dtype_get_f(expr_dtype(k),
                             k->u.constant->data.at + (size_t)j * dtype_bytes(expr_dtype(k)));
    return true;
}

static bool method(Node *n, Mode *m)
{
    const char *mode = node_str(n, "mode", "nearest");

    m->cubic = node_float(n, "cubic_coeff_a", -0.75);
    if (!strcmp(mode, "nearest"))
        m->method = "nearest_neighbor";
    else if (!strcmp(mode, "linear") || !strcmp(mode, "bilinear"))
        m->method = "linear";
    else if (!strcmp(mode, "cubic"))
        m->method = "cubic";
    else
        return node_error(n, E_UNSUPPORTED, "mode '%s'", mode);
    return true;
}

/* Upsample, and Resize of opset 10: x_original = x_resized / scale. */
bool convert_upsample(Node *n)
{
    Mode     m = {.coordinates = "asymmetric", .rounding = "floor"};
    double   scale[MAX_RANK];
    int64_t  size[MAX_RANK];
    uint32_t rank;

    if (!node_need_rank(n, 0, 1, MAX_RANK) || !method(n, &m))
        return false;
    rank = expr_rank(n->in[0]);
    if (n->opset < 9) {
        const OnnxAttr *a = node_attr(n, "scales");

        if (!a || a->floats.data.n != rank * sizeof(float))
            return node_error(n, E_IMPORT, "scales are missing or not %u", rank);
        for (uint32_t i = 0; i < rank; i++) {
            float f;

            memcpy(&f, a->floats.data.at + i * sizeof f, sizeof f);
            scale[i] = f;
        }
    } else if (!const_floats(n, 1, rank, scale)) {
        return false;
    }
    return sizes_of(n, n->in[0], scale, size) && node_done(n, resize(n, &m, n->in[0], size, scale));
}

/* Scales and sizes are for all axes, or those of the attribute `axes`. */
bool convert_resize(Node *n)
{
    static const char *const coordinates[] = {
        "half_pixel", "pytorch_half_pixel",   "align_corners",
        "asymmetric", "tf_half_pixel_for_nn", "half_pixel_symmetric",
        NULL};
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                            "ceil", NULL};
    static const char *const policies[] = {"stretch", "not_larger", "not_smaller", NULL};
    Mode                     m = {0};
    double                   scale[MAX_RANK], part[MAX_RANK];
    int64_t                  size[MAX_RANK], axes[MAX_RANK];
    uint32_t                 rank, k;
    const Expr              *x;
    const char              *policy;
    Ints                     ax, v;

    if (!node_need_rank(n, 0, 1, MAX_RANK) || !method(n, &m) ||
        !node_choice(n, "coordinate_transformation_mode", coordinates, &m.coordinates) ||
        !node_choice(n, "nearest_mode", roundings, &m.rounding) ||
        !node_choice(n, "keep_aspect_ratio_policy", policies, &policy))
        return false;
    node_ignore(n, "extrapolation_value"); /* of tf_crop_and_resize, which is refused */
    if (node_int(n, "antialias", 0) || node_int(n, "exclude_outside", 0))
        return node_error(n, E_UNSUPPORTED, "antialias or exclude_outside");
    x = n->in[0];
    k = rank = expr_rank(x);
    for (uint32_t i = 0; i < rank; i++) {
        axes[i] = i;
        scale[i] = 1;
        size[i] = expr_dim(x, i);
    }
    if (node_ints(n, "axes", &ax)) {
        if (!node_axes(n, ax, rank, axes))
            return false;
        k = ax.n;
    }
    if (node_has(n, 2) && expr_elems(n->in[2]) > 0) {
        if (!const_floats(n, 2, k, part))
            return false;
        for (uint32_t i = 0; i < k; i++)
            scale[axes[i]] = part[i];
        return sizes_of(n, x, scale, size) && node_done(n, resize(n, &m, x, size, scale));
    }
    if (!node_const_ints(n, 3, &v))
        return false;
    if (v.n != k)
        return node_error(n, E_IMPORT, "%u sizes for %u axes", v.n, k);
    for (uint32_t i = 0; i < k; i++) {
        if (v.at[i] < 1 || v.at[i] > INT32_MAX || expr_dim(x, (uint32_t)axes[i]) < 1)
            return node_error(n, E_IMPORT, "size %lld of axis %lld", (long long)v.at[i],
                              (long long)axes[i]);
        part[i] = (double)v.at[i] / (double)expr_dim(x, (uint32_t)axes[i]);
    }
    if (strcmp(policy, "stretch")) {
        double all = part[0];

        for (uint32_t i = 1; i < k; i++)
            all = !strcmp(policy, "not_larger") ? fmin(all, part[i]) : fmax(all, part[i]);
        for (uint32_t i = 0; i < k; i++) {
            scale[axes[i]] = all;
            size[axes[i]] = (int64_t)floor(all * (double)expr_dim(x, (uint32_t)axes[i]) + 0.5);
        }
        return node_done(n, resize(n, &m, x, size, scale));
    }
    m.by_size = true;
    for (uint32_t i = 0; i < k; i++) {
        scale[axes[i]] = part[i];
        size[axes[i]] = v.at[i];
    }
    return node_done(n, resize(n, &m, x, size, scale));
}
