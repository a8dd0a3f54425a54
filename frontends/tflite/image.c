/* Images in another size.
 *
 * Quantized ones are interpolated as LiteRT's reference kernels do it, those with a sign between
 * whole parts of cells, in integers.  Others are so in floats there: in integers here where floats
 * would not round, as when sides are doubled, else in the same floats. */
#include "frontends/tflite/tflite.h"

#include <math.h>

enum { PART_BITS = 10, PARTS = 1 << PART_BITS, MOST_SIDE = 1 << 14 };
enum { FINEST = 128 }; /* parts of a cell, of which products of two and a byte fit a float */

static const Expr *resized(TfliteNode *n, const Expr *x, const char *method, const char *half_pixel,
                           const char *rounding)
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
    a->coordinate_transformation_mode = corners ? "align_corners"
                                        : half  ? half_pixel
                                                : "asymmetric";
    return build1(b, "image.resize2d", x, a);
}

/* Sizes are known, and what a converter may ask for. */
static bool is_of_sides(const TfliteNode *n, Ints *size)
{
    const Expr *x = n->in[0];
    int64_t     dim;
    bool        fit = expr_rank(x) == IMAGE_RANK;

    for (uint32_t i = 1; fit && i < IMAGE_RANK; i++)
        fit = type_dim(x->type, i, &dim) && dim >= 1 && dim <= MOST_SIDE;
    if (!fit || (tflite_int(n, "align_corners") && tflite_int(n, "half_pixel_centers")) ||
        !expr_ints(n->b.c, n->in[1], size) || size->n != 2)
        return false;
    for (uint32_t i = 0; i < 2; i++)
        fit &= size->at[i] >= 1 && size->at[i] <= MOST_SIDE;
    return fit;
}

/* From cell to cell: of so many cells of the image, that many of the result. */
static void step_of(const TfliteNode *n, uint32_t i, int64_t out, int64_t *from, int64_t *to)
{
    int64_t less = tflite_int(n, "align_corners") && out > 1;

    *from = build_dim(&n->b, n->in[0], 1 + i) - less;
    *to = out - less;
}

/* Are positions few binary digits, so that floats interpolate without rounding? */
static bool has_few_digits(const TfliteNode *n, Ints size)
{
    for (uint32_t i = 0; i < size.n; i++) {
        int64_t from, to;

        step_of(n, i, size.at[i], &from, &to);
        if (to < 1 || from * FINEST % to)
            return false;
    }
    return true;
}

/* Along one dimension: the cells before and behind each position, and what these weigh, in floats
 * or whole parts. */
typedef struct {
    const Expr *cell[2], *weight[2];
} Between;

static Between places(const TfliteNode *n, uint32_t i, int64_t out, bool whole)
{
    const Build *b = &n->b;
    bool         half = tflite_int(n, "half_pixel_centers");
    int64_t      from, to, last = build_dim(b, n->in[0], 1 + i) - 1, dims[2] = {out, 1}, parts;
    int32_t     *at[2], *part[2];
    float       *w[2], step;
    Between      p;

    step_of(n, i, out, &from, &to);
    step = (float)from / (float)to;
    parts = (PARTS * from + to / 2) / to;
    for (uint32_t k = 0; k < 2; k++) {
        at[k] = NEW_ARRAY(b->c->arena, int32_t, (size_t)out);
        part[k] = NEW_ARRAY(b->c->arena, int32_t, (size_t)out);
        w[k] = NEW_ARRAY(b->c->arena, float, (size_t)out);
    }
    for (int64_t y = 0; y < out; y++) {
        float   place = half ? ((float)y + 0.5F) * step - 0.5F : (float)y * step;
        int64_t whole_place = y * parts + (half ? parts / 2 - PARTS / 2 : 0);
        double  lies = whole ? (double)whole_place / PARTS : (double)place;

        at[0][y] = (int32_t)fmax(fmin(floor(lies), (double)last), 0);
        at[1][y] = (int32_t)fmax(fmin(ceil(lies), (double)last), 0);
        w[1][y] = place - (float)at[0][y];
        w[0][y] = 1 - w[1][y];
        part[1][y] = (int32_t)(whole_place - PARTS * at[0][y]);
        part[0][y] = PARTS - part[1][y];
    }
    for (uint32_t k = 0; k < 2; k++) {
        p.cell[k] = build_const(b, DT_I32, 1, &out, at[k]);
        p.weight[k] = whole ? build_const(b, DT_I32, i == 0 ? 2 : 1, dims, part[k])
                            : build_const(b, DT_F32, i == 0 ? 2 : 1, dims, w[k]);
    }
    return p;
}

/* The four cells around each position by their weights, in that type and the kernel's order. */
static const Expr *interpolated(TfliteNode *n, Ints size, DType t)
{
    const Build *b = &n->b;
    bool         whole = dtype_is_int(t);
    Between      y = places(n, 0, size.at[0], whole), x = places(n, 1, size.at[1], whole);
    const Expr  *image = build_cast(b, tflite_integer_image(n, 0), t), *sum = NULL;

    for (uint32_t k = 0; image && k < 4; k++) {
        const Expr *v = build_take(b, image, y.cell[k % 2], 2);

        v = build_take(b, v, x.cell[k / 2], 3);
        v = build_mul(b, v, build_cast(b, y.weight[k % 2], t));
        v = build_mul(b, v, build_cast(b, x.weight[k / 2], t));
        sum = sum ? build_add(b, sum, v) : v;
    }
    return sum;
}

/* In integers, between whole parts of cells; halves away from 0. */
static bool between_parts(TfliteNode *n, Ints size)
{
    const Build *b = &n->b;
    DType        t = expr_dtype(n->in[0]), wide = t.bits == 8 ? DT_I32 : DT_I64;
    const Expr  *x = interpolated(n, size, wide), *below = NULL;

    if (t.code == DT_INT)
        below = build_by(b, "right_shift", x, wide.bits - 1);
    x = build_by(b, "add", below ? build_add(b, x, below) : x, PARTS * PARTS / 2);
    return tflite_done(n, build_cast(b, build_by(b, "right_shift", x, 2 * PART_BITS), t));
}

/* In floats, each product and sum rounded as the kernel rounds it, which cuts off in the end. */
static bool between_floats(TfliteNode *n, Ints size)
{
    const Build *b = &n->b;
    const Expr  *x = interpolated(n, size, DT_F32);

    return tflite_done(n, build_cast(b, build_by(b, "add", x, 0.5), expr_dtype(n->in[0])));
}

bool tflite_resize_bilinear(TfliteNode *n)
{
    Ints size;

    if (!is_of_sides(n, &size) || !dtype_is_int(expr_dtype(n->in[0])) || !tflite_steps_alike(n))
        return tflite_done(n, resized(n, tflite_image(n, 0), "linear", "half_pixel", "floor"));
    return expr_dtype(n->in[0]).code == DT_INT || has_few_digits(n, size) ? between_parts(n, size)
                                                                          : between_floats(n, size);
}

/* The cells along one dimension that are nearest by positions in floats; `other`: some are not so
 * by those without rounding, which are fractions. */
static const Expr *nearest(const TfliteNode *n, uint32_t i, int64_t out, bool *other)
{
    const Build *b = &n->b;
    int32_t     *at = NEW_ARRAY(b->c->arena, int32_t, (size_t)out);
    bool    corners = tflite_int(n, "align_corners"), half = tflite_int(n, "half_pixel_centers");
    float   step;
    int64_t from, to, last = build_dim(b, n->in[0], 1 + i) - 1;

    step_of(n, i, out, &from, &to);
    step = (float)from / (float)to;
    for (int64_t y = 0; y < out; y++) {
        float   place = ((float)y + (half ? 0.5F : 0)) * step;
        int64_t exact = ((2 * y + half) * from + (corners ? to : 0)) / (2 * to);

        place = corners ? roundf(place) : floorf(place);
        at[y] = (int32_t)fmin((double)place, (double)last);
        *other |= at[y] != (exact < last ? exact : last);
    }
    return build_const(b, DT_I32, 1, &out, at);
}

/* The cell that holds the position, but with align_corners the nearest. */
bool tflite_resize_nearest(TfliteNode *n)
{
    const Build *b = &n->b;
    const char  *rounding = tflite_int(n, "align_corners") ? "round_prefer_ceil" : "floor";
    bool         other = false;
    const Expr  *x, *at[2];
    Ints         size;

    if (is_of_sides(n, &size)) {
        for (uint32_t i = 0; i < 2; i++)
            at[i] = nearest(n, i, size.at[i], &other);
        if (other) {
            x = tflite_steps_alike(n) ? tflite_integer_image(n, 0) : tflite_image(n, 0);
            return tflite_done(n, build_take(b, build_take(b, x, at[0], 2), at[1], 3));
        }
    }
    x = tflite_image(n, 0);
    return tflite_done(n, resized(n, x, "nearest_neighbor", "tf_half_pixel_for_nn", rounding));
}
