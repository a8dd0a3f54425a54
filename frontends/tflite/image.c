/* Images in another size. */
#include "frontends/tflite/tflite.h"

#include <string.h>

enum { PARTS = 1024, MOST_SIDE = 1 << 14 };

static const Expr *resized(TfliteNode *n, const Expr *x, const char *method, const char *half_pixel,
                           const char *rounding, int64_t parts)
{
    const Build   *b = &n->b;
    Resize2dAttrs *a = ATTRS(b, Resize2dAttrs);
    bool corners = tflite_int(n, "align_corners"), half = tflite_int(n, "half_pixel_centers");

    if (!x || !tflite_forms(n, 1, &a->size))
        return NULL;
    if (a->size.n != 2 || a->size.at[0]->lo < 1 || a->size.at[1]->lo < 1)
        return tflite_error(n, E_IMPORT, "a size of %u numbers, or below 1", a->size.n);
    if (corners && half)
        return tflite_error(n, E_IMPORT, "both align_corners and half_pixel_centers");
    a->method = method;
    a->rounding_method = rounding;
    a->parts = parts;
    a->coordinate_transformation_mode = corners ? "align_corners"
                                        : half  ? half_pixel
                                                : "asymmetric";
    return build1(b, "image.resize2d", x, a);
}

/* Integers with a sign are interpolated in integers, between whole parts of cells. */
static bool has_parts(const TfliteNode *n)
{
    const Expr *x = n->in[0];
    int64_t     dim;
    bool        fit = expr_rank(x) == IMAGE_RANK;
    Ints        size;

    for (uint32_t i = 1; fit && i < IMAGE_RANK; i++)
        fit = type_dim(x->type, i, &dim) && dim <= MOST_SIDE;
    return fit && expr_dtype(x).code == DT_INT && tflite_steps_alike(n) &&
           expr_ints(n->b.c, n->in[1], &size) && size.n == 2 && size.at[0] <= MOST_SIDE &&
           size.at[1] <= MOST_SIDE;
}

bool tflite_resize_bilinear(TfliteNode *n)
{
    const Build *b = &n->b;
    DType        t = expr_dtype(n->in[0]);
    const Expr  *x, *half;

    if (!has_parts(n))
        return tflite_done(n, resized(n, tflite_image(n, 0), "linear", "half_pixel", "floor", 0));
    x = build_cast(b, tflite_integer_image(n, 0), t.bits == 8 ? DT_I32 : DT_I64);
    x = resized(n, x, "linear", "half_pixel", "floor", PARTS);
    if (!x)
        return false;
    half = build_scalar(b, x, PARTS * PARTS / 2);
    half = build_where(b, build2(b, "greater", x, build_scalar(b, x, 0), NULL), half,
                       build1(b, "negative", half, NULL));
    x = build_by(b, "divide", build_add(b, x, half), PARTS * PARTS);
    return tflite_done(n, build_cast(b, x, t));
}

/* The cell that holds the position, but with align_corners the nearest. */
bool tflite_resize_nearest(TfliteNode *n)
{
    const char *rounding = tflite_int(n, "align_corners") ? "round_prefer_ceil" : "floor";

    return tflite_done(
        n, resized(n, tflite_image(n, 0), "nearest_neighbor", "tf_half_pixel_for_nn", rounding, 0));
}
