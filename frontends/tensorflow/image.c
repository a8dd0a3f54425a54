/* Images in another size, and boxes in them. */
#include "frontends/tensorflow/tensorflow.h"

#include <math.h>
#include <string.h>

/* ---- another size ----------------------------------------------------------------------------------- */

static const Expr *image_of(TfNode *n)
{
    const Expr *x;

    if (!tf_rank(n, 0, IMAGE_RANK, IMAGE_RANK))
        return NULL;
    x = build_channels_first(&n->b, n->in[0]);
    return x && !dtype_is_float(expr_dtype(x)) ? build_cast(&n->b, x, DT_F32) : x;
}

static bool resized(TfNode *n, const Expr *x, const char *method, const char *half_pixel,
                    const char *rounding)
{
    const Build   *b = &n->b;
    Resize2dAttrs *a = ATTRS(b, Resize2dAttrs);
    bool           corners = tf_int(n, "align_corners"), half = tf_int(n, "half_pixel_centers");

    if (!x || !tf_forms(n, 1, &a->size))
        return false;
    if (a->size.n != 2)
        return tf_error(n, E_IMPORT, "a size of %u numbers", a->size.n);
    for (uint32_t i = 0; i < 2; i++)
        if (a->size.at[i]->lo < 1)
            return tf_error(n, E_IMPORT, "%s %s, which %s below 1",
                            i ? "a width of" : "a height of", dim_text(b->c, a->size.at[i]),
                            a->size.at[i]->hi < 1 ? "is" : "may be");
    if (corners && half)
        return tf_error(n, E_IMPORT, "both align_corners and half_pixel_centers");
    a->method = method;
    a->rounding_method = rounding;
    a->coordinate_transformation_mode = corners ? "align_corners"
                                        : half  ? half_pixel
                                                : "asymmetric";
    x = build1(b, "image.resize2d", x, a);
    return tf_done(n, x ? build_channels_last(b, x) : NULL);
}

bool tf_resize_bilinear(TfNode *n)
{
    return resized(n, image_of(n), "linear", "half_pixel", "floor");
}

/* The cell that holds the position, but with align_corners the nearest; any type. */
bool tf_resize_nearest(TfNode *n)
{
    if (!tf_rank(n, 0, IMAGE_RANK, IMAGE_RANK))
        return false;
    return resized(n, build_channels_first(&n->b, n->in[0]), "nearest_neighbor",
                   "tf_half_pixel_for_nn",
                   tf_int(n, "align_corners") ? "round_prefer_ceil" : "floor");
}

/* A cubic at distance x, up to 2, with that parameter. */
static float cubic(float a, float x)
{
    return x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

enum { CUBIC_STEPS = 1 << 10 }; /* positions between two cells that TensorFlow tells apart */

/* [out, in]: how much of each cell.  With half_pixel_centers those outside have no part in it, else
 * the last one stands for them. */
static const Expr *cubic_weights(TfNode *n, int64_t in, int64_t out)
{
    bool  corners = tf_int(n, "align_corners"), half = tf_int(n, "half_pixel_centers");
    float a = half ? -0.5f : -0.75f, *w = NEW_ARRAY(n->b.c->arena, float, (size_t)(in * out));
    float scale = corners && out > 1 ? (float)(in - 1) / (float)(out - 1) : (float)in / (float)out;

    for (int64_t i = 0; i < out; i++) {
        float   at = half ? ((float)i + 0.5f) * scale - 0.5f : (float)i * scale, sum = 0;
        float   first = floorf(at), past = rintf((at - first) * CUBIC_STEPS) / CUBIC_STEPS;
        float   each[4] = {cubic(a, past + 1), cubic(a, past), cubic(a, 1 - past),
                           cubic(a, 2 - past)};
        int64_t from = (int64_t)first - 1;

        for (int64_t k = 0; k < 4; k++)
            if (half && (from + k < 0 || from + k >= in))
                each[k] = 0;
            else
                sum += each[k];
        for (int64_t k = 0; k < 4; k++) {
            int64_t cell = from + k < 0 ? 0 : from + k >= in ? in - 1 : from + k;

            w[i * in + cell] += half ? each[k] / sum : each[k];
        }
    }
    return build_const(&n->b, DT_F32, 2, (int64_t[]){out, in}, w);
}

/* A product with the weights along each dimension. */
bool tf_resize_bicubic(TfNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = image_of(n);
    int64_t      N, C, H, W, h, w, most = 1 << 14;
    Ints         size;

    if (!x || !tf_ints(n, 1, &size))
        return false;
    N = build_dim(b, x, 0), C = build_dim(b, x, 1), H = build_dim(b, x, 2), W = build_dim(b, x, 3);
    if (size.n != 2 || size.at[0] < 1 || size.at[1] < 1 || size.at[0] > most || size.at[1] > most ||
        H < 1 || W < 1 || H > most || W > most)
        return tf_error(n, E_UNSUPPORTED, "a size of %u numbers, or one that is too large", size.n);
    if (tf_int(n, "align_corners") && tf_int(n, "half_pixel_centers"))
        return tf_error(n, E_IMPORT, "both align_corners and half_pixel_centers");
    h = size.at[0], w = size.at[1];
    x = build_reshape(b, x, 2, (int64_t[]){N * C * H, W});
    x = build2(b, "nn.dense", x, cubic_weights(n, W, w), NULL);
    x = build_reshape(b, x, 3, (int64_t[]){N * C, H, w});
    x = build_reshape(b, build_transpose(b, x, 3, (int64_t[]){0, 2, 1}), 2,
                      (int64_t[]){N * C * w, H});
    x = build2(b, "nn.dense", x, cubic_weights(n, H, h), NULL);
    x = build_reshape(b, x, 4, (int64_t[]){N, C, w, h});
    return tf_done(n, x ? build_transpose(b, x, 4, (int64_t[]){0, 3, 2, 1}) : NULL);
}

/* ---- crops ------------------------------------------------------------------------------------------ */

/* Where the cells of a crop lie along rows (0) or columns (1) of images: [boxes, size]. */
static const Expr *crop_positions(const Build *b, const Expr *boxes, uint32_t along, int64_t cells,
                                  int64_t size)
{
    const Expr *from = build_slice(b, boxes, 1, along, along + 1), *step;
    const Expr *to = build_slice(b, boxes, 1, along + 2, along + 3);
    double      last = (double)(cells - 1);

    if (size == 1)
        return build_by(b, "multiply", build_add(b, from, to), 0.5 * last);
    step = build_by(b, "multiply", build_sub(b, to, from), last / (double)(size - 1));
    return build_add(b, build_by(b, "multiply", from, last),
                     build_mul(b, build_arange(b, idx_const(b->c->arith, size), DT_F32), step));
}

typedef struct {
    const Expr *at[2]; /* rows, columns: [boxes, size], floats */
    const Expr *box;   /* which image: [boxes, 1, 1] */
    int64_t     N, h, w, H, W;
} Crop;

/* The cells of images [B, H, W, C] there, each position rounded as it says, after `more` is added.
 */
static const Expr *crop_cells(TfNode *n, const Crop *c, double more, const char *row,
                              const char *column)
{
    const Build *b = &n->b;
    int64_t      dims[] = {c->N, c->h, c->w};
    const Expr  *at[3] = {c->box};

    for (uint32_t i = 0; i < 2; i++) {
        const Expr *p = more ? build_by(b, "add", c->at[i], more) : c->at[i];

        p = build1(b, i ? column : row, p, NULL);

        p = build_clip(b, p, 0, (double)((i ? c->W : c->H) - 1));
        at[1 + i] = build_expand_dims(b, p ? build_cast(b, p, DT_I32) : NULL, i ? 1 : 2, 1);
    }
    for (uint32_t i = 0; i < 3; i++)
        at[i] = build_expand_dims(b, build_broadcast(b, at[i], 3, dims), 0, 1);
    return build2(b, "gather_nd", build_cast(b, n->in[0], DT_F32), build_concat(b, 3, at, 0), NULL);
}

/* How far a position is past the cell before it: [boxes, h, 1, 1] or [boxes, 1, w, 1]. */
static const Expr *crop_fraction(const Build *b, const Crop *c, uint32_t i)
{
    const Expr *f = build_sub(b, c->at[i], build1(b, "floor", c->at[i], NULL));

    return build_expand_dims(b, build_expand_dims(b, f, i ? 1 : 2, 1), 3, 1);
}

static const Expr *crop_inside(const Build *b, const Crop *c, uint32_t i)
{
    const Expr *p = c->at[i];
    const Expr *low = build2(b, "greater_equal", p, build_scalar(b, p, 0), NULL);
    const Expr *high =
        build2(b, "less_equal", p, build_scalar(b, p, (double)((i ? c->W : c->H) - 1)), NULL);

    p = build2(b, "logical_and", low, high, NULL);
    return build_expand_dims(b, build_expand_dims(b, p, i ? 1 : 2, 1), 3, 1);
}

/* Inputs: images [B, H, W, C], boxes [N, 4], the image of each, the size of crops. */
bool tf_crop_and_resize(TfNode *n)
{
    const Build *b = &n->b;
    const char  *method = tf_text(n, "method");
    bool         near = !strcmp(method, "nearest");
    const Expr  *y, *in;
    Crop         c;
    Ints         size;

    if (!near && strcmp(method, "bilinear") != 0)
        return tf_error(n, E_UNSUPPORTED, "method is '%s'", method);
    if (!tf_rank(n, 0, 4, 4) || !tf_rank(n, 1, 2, 2) || !tf_rank(n, 2, 1, 1) ||
        !tf_ints(n, 3, &size))
        return false;
    if (size.n != 2 || size.at[0] < 1 || size.at[1] < 1 || build_dim(b, n->in[1], 1) != 4)
        return tf_error(n, E_IMPORT, "crops of %u dimensions, or below 1", size.n);
    c = (Crop){.N = build_dim(b, n->in[1], 0),
               .h = size.at[0],
               .w = size.at[1],
               .H = build_dim(b, n->in[0], 1),
               .W = build_dim(b, n->in[0], 2)};
    c.at[0] = crop_positions(b, n->in[1], 0, c.H, c.h);
    c.at[1] = crop_positions(b, n->in[1], 1, c.W, c.w);
    c.box = build_reshape(b, n->in[2], 3, (int64_t[]){c.N, 1, 1});
    if (!c.at[0] || !c.at[1] || !c.box)
        return false;
    if (near) {
        y = crop_cells(n, &c, 0.5, "floor", "floor");
    } else {
        const Expr *v = crop_fraction(b, &c, 0), *u = crop_fraction(b, &c, 1), *row[2];

        for (uint32_t i = 0; i < 2; i++) {
            const Expr *left = crop_cells(n, &c, 0, i ? "ceil" : "floor", "floor");
            const Expr *right = crop_cells(n, &c, 0, i ? "ceil" : "floor", "ceil");

            row[i] = build_add(b, left, build_mul(b, build_sub(b, right, left), u));
        }
        y = build_add(b, row[0], build_mul(b, build_sub(b, row[1], row[0]), v));
    }
    in = build2(b, "logical_and", crop_inside(b, &c, 0), crop_inside(b, &c, 1), NULL);
    return tf_done(n,
                   y ? build_where(b, in, y, build_scalar(b, y, tf_float(n, "extrapolation_value")))
                     : NULL);
}

/* ---- boxes of which the best are kept --------------------------------------------------------------- */

static const Expr *number(TfNode *n, uint32_t i)
{
    return expr_single(n->in[i])
               ? build_cast(&n->b, build_reshape(&n->b, n->in[i], 0, NULL), DT_F32)
               : tf_error(n, E_IMPORT, "input %u is %s", i, type_text(n->b.c, n->in[i]->type));
}

/* Boxes, scores, how many at most, overlap, from version 3 on least score, in version 5 how much
 * scores fade, which is only known as 0.  Without padding a run decides how many there are. */
bool tf_non_max_suppression(TfNode *n)
{
    const Build *b = &n->b;
    bool         pads = n->nout > 1 && tf_int(n, "pad_to_max_output_size");
    const Expr  *overlap, *least, *at, *there, *count, *scores;
    const Idx   *most, *boxes, *room;
    int64_t      axis = 0;
    double       sigma = 0;
    Dims         wanted;

    if (!tf_rank(n, 0, 2, 2) || !tf_rank(n, 1, 1, 1) || !tf_forms(n, 2, &wanted) ||
        !(overlap = number(n, 3)))
        return false;
    least = n->nin > 4 ? number(n, 4) : expr_scalar(b->c, DT_F32, -3.40282346638528860e38);
    if (!least)
        return false;
    if (n->nin > 5 && (!expr_const_f(n->in[5], &sigma) || sigma != 0))
        return tf_error(n, E_UNSUPPORTED, "scores that fade");
    boxes = expr_form(n->in[1], 0);
    most = wanted.n == 1 ? wanted.at[0] : idx_const(b->c->arith, 0);
    if (most->hi < 1 || idx_usual(most) > INT32_MAX || boxes->hi < 1)
        return tf_error(n, E_IMPORT, "the best %s of %s", dim_text(b->c, most),
                        dim_text(b->c, boxes));
    room = build_best_room(b, &n->im->shapes, boxes, most);
    scores = build_cast(b, n->in[1], DT_F32);
    at = build_cast(b, n->in[0], DT_F32);
    at = pads ? build_best_padded(b, &n->im->shapes, at, scores, most, overlap, least)
              : build_best_boxes(b, at, scores, room, build_number(b, most), overlap, least);
    there = at ? build2(b, "greater_equal", at, build_scalar(b, at, 0), NULL) : NULL;
    count = there ? build_reduce(b, "sum", build_cast(b, there, DT_I64), 1, &axis, true) : NULL;
    if (!count)
        return false;
    scores = build_picked(b, n->in[1], at, there);
    at = build_cast(b, build_by(b, "maximum", at, 0), DT_I32);
    if (!pads) {
        const Idx *k = tf_bound_dim(n, 0, count, room), *zero = idx_const(b->c->arith, 0);

        if (!k)
            return false;
        at = build_slice_to(b, at, 0, zero, k);
        scores = build_slice_to(b, scores, 0, zero, k);
    }
    count = build_cast(b, build_reshape(b, count, 0, NULL), DT_I32);
    if (n->nout > 2)
        tf_put(n, 1, scores);
    return (n->nout < 2 || tf_put(n, n->nout - 1, count)) && scores && tf_done(n, at);
}

/* Boxes [B, N, 1 or classes, 4], scores [B, N, classes], how many of a class, how many in all,
 * overlap, least score: the best of all classes. */
bool tf_combined_non_max_suppression(TfNode *n)
{
    const Build            *b = &n->b;
    NonMaxSuppressionAttrs *a = ATTRS(b, NonMaxSuppressionAttrs);
    SortAttrs              *by = ATTRS(b, SortAttrs);
    TakeAttrs              *rows = ATTRS(b, TakeAttrs);
    TopKAttrs              *top = ATTRS(b, TopKAttrs);
    const Expr             *boxes, *scores, *at, *there, *in[6], *both, *classes, *count;
    int64_t                 each, total, B, N, C, Q, all, axis = 1;

    if (!tf_rank(n, 0, 4, 4) || !tf_rank(n, 1, 3, 3) || !tf_number(n, 2, &each) ||
        !tf_number(n, 3, &total) || !(in[4] = number(n, 4)) || !(in[5] = number(n, 5)))
        return false;
    B = build_dim(b, n->in[1], 0), N = build_dim(b, n->in[1], 1), C = build_dim(b, n->in[1], 2);
    Q = build_dim(b, n->in[0], 2);
    if (each < 1 || total < 1 || N < 1 || C < 1 || B < 1 || (Q != 1 && Q != C) ||
        each > INT32_MAX || total > INT32_MAX)
        return tf_error(n, E_IMPORT, "the best %lld of %lld boxes", (long long)total, (long long)N);
    if (tf_int(n, "pad_per_class") && total > each * C)
        total = each * C;
    each = each < N ? each : N;
    all = C * each;
    boxes = build_transpose(b, n->in[0], 4, (int64_t[]){0, 2, 1, 3});
    boxes = build_broadcast(b, boxes, 4, (int64_t[]){B, C, N, 4});
    boxes = build_reshape(b, boxes, 3, (int64_t[]){B * C, N, 4});
    scores = build_transpose(b, n->in[1], 3, (int64_t[]){0, 2, 1});
    scores = build_reshape(b, scores, 3, (int64_t[]){B * C, 1, N});
    by->is_ascend = false;
    by->dtype = DT_I64;
    in[0] = boxes, in[1] = scores, in[2] = build1(b, "argsort", scores, by);
    in[3] = expr_scalar(b->c, DT_I64, (double)each);
    a->room = dims_dup(b->c, (const Idx *[]){idx_const(b->c->arith, each)}, 1);
    at = build_call(b, "vision.non_max_suppression", 6, in, a);
    at = build_reshape(b, at, 2, (int64_t[]){B * C, each});
    there = at ? build2(b, "greater_equal", at, build_scalar(b, at, 0), NULL) : NULL;
    at = build_by(b, "maximum", at, 0);
    rows->axis = 1;
    rows->batch_dims = 1;
    scores = build2(b, "take", build_reshape(b, scores, 2, (int64_t[]){B * C, N}), at, rows);
    boxes = build2(b, "take", boxes, at, rows);
    scores = scores ? build_where(b, there, scores, build_scalar(b, scores, -INFINITY)) : NULL;
    scores = build_reshape(b, scores, 2, (int64_t[]){B, all});
    boxes = build_reshape(b, boxes, 3, (int64_t[]){B, all, 4});
    top->k = total < all ? total : all;
    top->axis = 1;
    top->dtype = DT_I64;
    both = build1(b, "topk", scores, top);
    scores = build_proj(b, both, 0);
    at = build_proj(b, both, 1);
    if (!scores || !at || !boxes)
        return false;
    there = build2(b, "greater", scores, build_scalar(b, scores, -INFINITY), NULL);
    boxes = build2(b, "take", boxes, at, rows);
    if (tf_int(n, "clip_boxes"))
        boxes = build_clip(b, boxes, 0, 1);
    boxes =
        boxes ? build_where(b, build_expand_dims(b, there, 2, 1), boxes, build_scalar(b, boxes, 0))
              : NULL;
    classes = build_cast(b, build_by(b, "floor_divide", at, (double)each), DT_F32);
    classes = build_where(b, there, classes, build_scalar(b, scores, 0));
    scores = build_where(b, there, scores, build_scalar(b, scores, 0));
    count = build_reduce(b, "sum", build_cast(b, there, DT_I32), 1, &axis, false);
    if (total > all) {
        int64_t more[6] = {0, 0, 0, total - all};

        boxes = build_pad(b, boxes, more, 0, "constant");
        scores = build_pad(b, scores, more, 0, "constant");
        classes = build_pad(b, classes, more, 0, "constant");
    }
    return tf_put(n, 1, scores) && tf_put(n, 2, classes) && tf_put(n, 3, count) &&
           tf_done(n, boxes);
}
