/* Images in another size. */
#include "frontends/tflite/tflite.h"

#include <string.h>

static const Expr *resized(TfliteNode *n, const char *method, const char *half_pixel,
                           const char *rounding)
{
    const Build   *b = &n->b;
    Resize2dAttrs *a = ATTRS(b, Resize2dAttrs);
    const Expr    *x = tflite_image(n, 0);
    bool corners = tflite_int(n, "align_corners"), half = tflite_int(n, "half_pixel_centers");

    if (!x || !tflite_forms(n, 1, &a->size))
        return NULL;
    if (a->size.n != 2 || a->size.at[0]->lo < 1 || a->size.at[1]->lo < 1)
        return tflite_error(n, E_IMPORT, "a size of %u numbers, or below 1", a->size.n);
    if (corners && half)
        return tflite_error(n, E_IMPORT, "both align_corners and half_pixel_centers");
    a->method = method;
    a->rounding_method = rounding;
    a->coordinate_transformation_mode = corners ? "align_corners"
                                        : half  ? half_pixel
                                                : "asymmetric";
    return build1(b, "image.resize2d", x, a);
}

bool tflite_resize_bilinear(TfliteNode *n)
{
    return tflite_done(n, resized(n, "linear", "half_pixel", "floor"));
}

/* The cell that holds the position, but with align_corners the nearest. */
bool tflite_resize_nearest(TfliteNode *n)
{
    return tflite_done(n, resized(n, "nearest_neighbor", "tf_half_pixel_for_nn",
                                  tflite_int(n, "align_corners") ? "round_prefer_ceil" : "floor"));
}
