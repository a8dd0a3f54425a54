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
