/* Layers that prepare pictures. */
#include "frontends/keras/keras.h"

#include <string.h>

/* To another size, without regard to the picture's proportions. */
bool keras_resizing(KerasNode *n)
{
    const Build   *b = &n->b;
    const Expr    *x = keras_image(n, 2);
    const char    *how = keras_text(n, "interpolation", "bilinear");
    Resize2dAttrs *a = ATTRS(b, Resize2dAttrs);
    bool           linear = !strcmp(how, "bilinear");
    int64_t        size[2] = {keras_int(n, "height", 0), keras_int(n, "width", 0)};

    if (!x)
        return false;
    if (!linear && strcmp(how, "nearest") != 0)
        return keras_error(n, E_UNSUPPORTED, "interpolation '%s'", how);
    if (keras_bool(n, "crop_to_aspect_ratio", false) ||
        keras_bool(n, "pad_to_aspect_ratio", false) || keras_bool(n, "antialias", false))
        return keras_error(n, E_UNSUPPORTED, "keeping the proportions, or antialias");
    if (size[0] < 1 || size[1] < 1 || size[0] > INT32_MAX || size[1] > INT32_MAX)
        return keras_error(n, E_IMPORT, "a picture of %lld x %lld", (long long)size[0],
                           (long long)size[1]);
    a->size = dims_dup(
        b->c, (const Idx *[]){idx_const(b->c->arith, size[0]), idx_const(b->c->arith, size[1])}, 2);
    a->method = linear ? "linear" : "nearest_neighbor";
    a->coordinate_transformation_mode = "half_pixel";
    a->rounding_method = linear ? "round_prefer_floor" : "round_prefer_ceil";
    return keras_image_done(n, build1(b, "image.resize2d", build_cast(b, x, n->dtype), a));
}

/* The middle; a smaller picture would be enlarged first. */
bool keras_center_crop(KerasNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = keras_image(n, 2);
    int64_t      size[2] = {keras_int(n, "height", 0), keras_int(n, "width", 0)};

    for (uint32_t i = 0; x && i < 2; i++) {
        int64_t in = build_dim(b, x, 2 + i), from = (in - size[i]) / 2;

        if (size[i] < 1 || size[i] > in)
            return keras_error(n, E_UNSUPPORTED, "%lld of %lld rows or columns", (long long)size[i],
                               (long long)in);
        x = build_slice(b, x, 2 + i, from, from + size[i]);
    }
    return x && keras_image_done(n, x);
}

/* Outside of training Keras 3 leaves the picture as it is; older versions gave it that size. */
bool keras_random_crop(KerasNode *n)
{
    const Expr *x = keras_image(n, 2);

    if (!x)
        return false;
    if (n->im->major < 3 && (build_dim(&n->b, x, 2) != keras_int(n, "height", 0) ||
                             build_dim(&n->b, x, 3) != keras_int(n, "width", 0)))
        return keras_error(n, E_UNSUPPORTED, "a picture that it has to resize");
    return keras_done(n, n->in[0].e);
}

/* ---- contrast --------------------------------------------------------------------------------------- */

static bool value_range(const KerasNode *n, double *lo, double *hi)
{
    const json_t *v = keras_json(n, "value_range");

    *lo = 0;
    *hi = 255;
    if (!v)
        return true;
    if (json_array_size(v) != 2)
        return keras_error(n, E_IMPORT, "a value_range of %zu numbers", json_array_size(v));
    *lo = json_number_value(json_array_get(v, 0));
    *hi = json_number_value(json_array_get(v, 1));
    return *lo < *hi || keras_error(n, E_IMPORT, "a value_range from %g to %g", *lo, *hi);
}

/* x * factor + offset */
static const Expr *scaled(const Build *b, const Expr *x, double factor, double offset)
{
    if (factor == 1 && offset == 0)
        return x;
    x = build_by(b, "multiply", x, factor);
    return x ? build_by(b, "add", x, offset) : NULL;
}

/* From the darkest cell to the lightest one of each channel; what has one value stays. */
bool keras_auto_contrast(KerasNode *n)
{
    static const int64_t axes[] = {1, 2};
    const Build         *b = &n->b;
    const Expr          *x = keras_in(n), *y, *low, *scale;
    double               lo, hi;

    if (!x || !keras_rank(n, x, 4, 4) || !value_range(n, &lo, &hi))
        return false;
    x = build_cast(b, x, n->dtype);
    y = scaled(b, x, 255 / (hi - lo), -lo * 255 / (hi - lo));
    low = y ? build_reduce(b, "min", y, 2, axes, true) : NULL;
    scale = low ? build_sub(b, build_reduce(b, "max", y, 2, axes, true), low) : NULL;
    scale = scale ? build_div(b, build_scalar(b, scale, 255), scale) : NULL;
    if (!scale)
        return false;
    y = build_sub(b, build_mul(b, y, scale), build_mul(b, low, scale));
    y = scaled(b, build_clip(b, y, 0, 255), (hi - lo) / 255, lo);
    return keras_done(n, build_where(b, build1(b, "isnan", y, NULL), x, y));
}
