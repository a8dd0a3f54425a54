/* Pooling, of quantized values in their integers. */
#include "frontends/tflite/tflite.h"

#include <string.h>

#define MOST_SUMMED 32768 /* cells of 16 bits that i32 holds the sum of */

static const Expr *pool(TfliteNode *n, const char *op, const Expr *x, bool rounded)
{
    const Build *b = &n->b;
    int64_t      kernel[2] = {tflite_int(n, "filter_height"), tflite_int(n, "filter_width")};
    int64_t      ones[2] = {1, 1};
    Pool2dAttrs *a = ATTRS(b, Pool2dAttrs);
    TfliteWindow w;

    if (!x || !tflite_window(n, x, kernel, ones, &w))
        return NULL;
    a->pool_size = ints_dup(b->c, w.kernel, 2);
    a->strides = ints_dup(b->c, w.stride, 2);
    a->padding = tflite_pads(b, &w);
    a->rounded = rounded;
    return build1(b, op, x, a);
}

/* In integers, whose sums fit. */
static bool in_steps(const TfliteNode *n)
{
    int64_t cells;

    return tflite_steps_alike(n) && tflite_is_quantized(tflite_out(n, 0)) &&
           checked_mul(tflite_int(n, "filter_height"), tflite_int(n, "filter_width"), &cells) &&
           cells <= MOST_SUMMED;
}

bool tflite_pool(TfliteNode *n)
{
    bool average = !strcmp(n->row->relay, "nn.avg_pool2d");

    if (!in_steps(n))
        return tflite_image_done(n, pool(n, n->row->relay, tflite_image(n, 0), false));
    return tflite_activated_steps(n, pool(n, n->row->relay, tflite_integer_image(n, 0), average));
}

/* The root of the mean of squares, of cells that are there. */
bool tflite_l2_pool(TfliteNode *n)
{
    const Expr *x = tflite_image(n, 0);

    x = pool(n, "nn.avg_pool2d", x ? build_mul(&n->b, x, x) : NULL, false);
    return tflite_image_done(n, build1(&n->b, "sqrt", x, NULL));
}
