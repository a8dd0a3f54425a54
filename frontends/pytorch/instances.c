/* What torchvision's detectors do with the boxes that they found, by functions whose code goes
 * through them one by one, each resized to its own size: here as products with a matrix of weights
 * for each axis.
 *
 *     paste_masks_in_image     masks of boxes as masks of the picture, all at once
 *     heatmaps_to_keypoints    where maps of boxes are highest, once they are as large as these
 *
 * The second resizes one box after another, into room for the largest: its height and width are
 * dimensions that the run decides. */
#include "frontends/pytorch/pytorch.h"

/* ---- masks ---------------------------------------------------------------------------------------- */

/* Boxes [N, 4] along one axis, [N, 1]. */
typedef struct {
    const Expr *first, *last; /* cells, whole numbers as f32 */
} Span;

static const Expr *column(const Build *b, const Expr *boxes, int64_t at)
{
    return build_slice(b, boxes, 1, at, at + 1);
}

static const Expr *whole(const Build *b, const Expr *x)
{
    return build_cast(b, build_cast(b, x, DT_I64), DT_F32);
}

/* The cells that a box covers which is `scale` times as large around its middle. */
static Span expanded(const Build *b, const Expr *boxes, uint32_t axis, double scale)
{
    const Expr *from = column(b, boxes, axis), *to = column(b, boxes, axis + 2);
    const Expr *half = build_by(b, "multiply", build_sub(b, to, from), 0.5),
               *middle = build_by(b, "multiply", build_add(b, to, from), 0.5);

    half = build_by(b, "multiply", half, scale);
    return (Span){whole(b, build_sub(b, middle, half)), whole(b, build_add(b, middle, half))};
}

/* [N, cells, size]: of how much of each of `size` cells, which the span is resized from, a cell of
 * the picture is made; linear, 0 outside the span. */
static const Expr *linear_weights(const Build *b, Span s, int64_t cells, int64_t size)
{
    Arith      *A = b->c->arith;
    const Expr *at = build_expand_dims(b, build_arange(b, idx_const(A, cells), DT_F32), 0, 1),
               *tap = build_arange(b, idx_const(A, size), DT_F32), *from, *inside, *w;
    const Expr *count = build_by(b, "add", build_sub(b, s.last, s.first), 1);

    at = build_sub(b, at, s.first);
    inside = build2(b, "logical_and",
                    build2(b, "greater_equal", at, at ? build_scalar(b, at, 0) : NULL, NULL),
                    build_less(b, at, count), NULL);
    count = build_by(b, "maximum", count, 1);
    from = build_div(b, count ? build_scalar(b, count, (double)size) : NULL, count);
    from = build_by(b, "subtract", build_mul(b, build_by(b, "add", at, 0.5), from), 0.5);
    from = build_expand_dims(b, build_clip(b, from, 0, (double)(size - 1)), 2, 1);
    w = build1(b, "abs", build_sub(b, from, tap), NULL);
    w = build_by(b, "maximum", build_by(b, "add", build_by(b, "multiply", w, -1), 1), 0);
    return build_where(b, build_expand_dims(b, inside, 2, 1), w, w ? build_scalar(b, w, 0) : NULL);
}

/* masks [N, 1, M, M] of boxes [N, 4] (x, y, x, y), to [N, 1, height, width]. */
bool vision_paste_masks(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *masks = pt_tensor(n, "masks"), *boxes = masks ? pt_tensor(n, "boxes") : NULL, *y;
    int64_t      pad = pt_int(n, "padding", 1), size[2], m;
    const Idx   *dims[4];
    Ints         shape;

    if (!boxes || !pt_ints(n, "img_shape", &shape))
        return boxes && pt_error(n, E_UNSUPPORTED, "the size of the picture is not known");
    if (expr_rank(masks) != 4 || expr_rank(boxes) != 2 || build_dim(b, boxes, 1) != 4 ||
        build_dim(b, masks, 1) != 1 || (m = build_dim(b, masks, 2)) != build_dim(b, masks, 3) ||
        m < 1 || pad < 0 || pad > 1024 || shape.n != 2)
        return pt_error(n, E_IMPORT, "masks are %s, boxes %s", type_text(b->c, masks->type),
                        type_text(b->c, boxes->type));
    for (uint32_t i = 0; i < 2; i++)
        if ((size[i] = shape.at[i]) < 1 || size[i] > 1 << 16)
            return pt_error(n, E_UNSUPPORTED, "a picture of %lld cells", (long long)size[i]);
    dims[0] = expr_form(masks, 0);
    dims[1] = dims[2] = idx_const(b->c->arith, m);
    y = build_pad(b, build_reshape_to(b, masks, 3, dims), (int64_t[]){0, 0, pad, pad, pad, pad}, 0,
                  NULL);
    double      scale = (double)(m + 2 * pad) / (double)m;
    const Expr *rows = linear_weights(b, expanded(b, boxes, 1, scale), size[0], m + 2 * pad),
               *columns = linear_weights(b, expanded(b, boxes, 0, scale), size[1], m + 2 * pad);

    if (!y || !rows || !columns)
        return false;
    y = pt_matmul(n, rows, y);
    y = y ? pt_matmul(n, y, build_transpose(b, columns, 3, (int64_t[]){0, 2, 1})) : NULL;
    dims[1] = idx_const(b->c->arith, 1);
    dims[2] = idx_const(b->c->arith, size[0]);
    dims[3] = idx_const(b->c->arith, size[1]);
    return y && pt_done(n, build_reshape_to(b, y, 4, dims));
}

/* ---- keypoints ------------------------------------------------------------------------------------ */

enum { REACH = 2, USUAL_BOX = 1024 };

/* Keys' cubic, of how far away a cell is: a is -0.75. */
static const Expr *cubic(const Build *b, const Expr *x)
{
    const Expr *near, *far;

    x = build1(b, "abs", x, NULL);
    near = build_by(b, "subtract", build_by(b, "multiply", x, 1.25), 2.25);
    near = build_by(b, "add", build_mul(b, build_mul(b, near, x), x), 1);
    far = build_by(b, "subtract", build_by(b, "multiply", x, -0.75), -3.75);
    far = build_by(b, "subtract", build_mul(b, far, x), 6);
    far = build_by(b, "add", build_mul(b, far, x), 3);
    if (!near || !far)
        return NULL;
    far = build_where(b, build_less(b, x, build_scalar(b, x, 2)), far, build_scalar(b, x, 0));
    return build_where(b, build_less(b, x, build_scalar(b, x, 1)), near, far);
}

/* [room, size + 2 * REACH], of a map of `size` cells with its ends repeated, which becomes `count`
 * cells, [1]. */
static const Expr *cubic_weights(const Build *b, const Idx *room, const Expr *count, int64_t size)
{
    Arith      *A = b->c->arith;
    const Expr *at = build_arange(b, room, DT_F32),
               *tap = build_arange(b, idx_const(A, size + 2 * REACH), DT_F32);

    if (!at || !tap || !count)
        return NULL;
    at = build_mul(b, build_by(b, "add", at, 0.5),
                   build_div(b, build_scalar(b, count, (double)size), count));
    at = build_expand_dims(b, build_by(b, "subtract", at, 0.5), 1, 1);
    return cubic(b, build_sub(b, at, build_by(b, "subtract", tap, REACH)));
}

/* Maps of one box after another. */
typedef struct {
    PtNode    *n;
    int64_t    points, size; /* maps of a box, their cells along an axis */
    const Idx *room[2];      /* rows, columns of the largest box */
} Keypoints;

enum { PLACES, SCORES, MAPS, BOXES, STATES };
enum { BOX_X, BOX_Y, BOX_WIDTH, BOX_HEIGHT, BOX_COLUMNS, BOX_ROWS, BOX_NUMBERS };

static const Expr *number_of(const Build *b, const Expr *box, int64_t i)
{
    return build_slice(b, box, 0, i, i + 1);
}

/* Cells before a size. */
static const Expr *before(const Build *b, const Idx *room, const Expr *size)
{
    const Expr *at = build_arange(b, room, DT_F32);

    return at && size ? build_less(b, at, size) : NULL;
}

/* A map as large as its box [points, rows * columns]; outside it is lower than anything else. */
static const Expr *resized(const Keypoints *k, const Expr *map, const Expr *box)
{
    const Build *b = &k->n->b;
    const Expr  *rows = number_of(b, box, BOX_ROWS), *columns = number_of(b, box, BOX_COLUMNS);
    const Expr  *x, *y = cubic_weights(b, k->room[0], rows, k->size), *inside;
    const Idx   *flat[2] = {idx_const(b->c->arith, k->points),
                            idx_mul(b->c->arith, k->room[0], k->room[1])};

    if (!map || !y || !(x = cubic_weights(b, k->room[1], columns, k->size)))
        return NULL;
    y = pt_matmul(k->n, y, map);
    y = y ? pt_matmul(k->n, y, build_transpose(b, x, 2, (int64_t[]){1, 0})) : NULL;
    inside = build2(b, "logical_and", build_expand_dims(b, before(b, k->room[0], rows), 1, 1),
                    before(b, k->room[1], columns), NULL);
    y = y ? build_where(b, inside, y, build_scalar(b, y, -3.4028234663852886e38)) : NULL;
    return build_reshape_to(b, y, 2, flat);
}

/* The middle of cell `at` of so many, in the picture; [points, 1]. */
static const Expr *in_picture(const Build *b, const Expr *at, const Expr *box, int64_t axis)
{
    const Expr *step =
        build_div(b, number_of(b, box, BOX_WIDTH + axis), number_of(b, box, BOX_COLUMNS + axis));

    at = build_by(b, "add", build_cast(b, at, DT_F32), 0.5);
    at = build_add(b, build_mul(b, at, step), number_of(b, box, BOX_X + axis));
    return build_expand_dims(b, at, 1, 1);
}

static bool keypoint_round(const Build *b, void *user, const Expr *i, const Expr *const *state,
                           const Expr **next)
{
    const Keypoints *k = user;
    const Type      *number = type_tensor(b->c, DT_I64, 0, NULL);
    const Expr      *box = build_take(b, state[BOXES], i, 0),
               *y = resized(k, build_take(b, state[MAPS], i, 0), box), *at, *row, *column, *best;
    const Expr     *columns = build_values(b, number, (Dims){1, &k->room[1]});
    ArgReduceAttrs *a = ATTRS(b, ArgReduceAttrs);

    a->axis = 1;
    a->dtype = DT_I64;
    if (!y || !columns || !(at = build1(b, "argmax", y, a)))
        return false;
    best = build_reduce(b, "max", y, 1, (int64_t[]){1}, false);
    row = build2(b, "floor_divide", at, columns, NULL);
    column = build_sub(b, at, build_mul(b, row, columns));
    at = build_concat(
        b, 2, (const Expr *[]){in_picture(b, column, box, 0), in_picture(b, row, box, 1)}, 1);
    next[MAPS] = state[MAPS];
    next[BOXES] = state[BOXES];
    next[PLACES] = at ? build3(b, "update_slice", state[PLACES], at, i, NULL) : NULL;
    next[SCORES] = best ? build3(b, "update_slice", state[SCORES], best, i, NULL) : NULL;
    return next[PLACES] && next[SCORES];
}

/* [N, BOX_NUMBERS] of boxes [N, 4]. */
static const Expr *box_numbers(const Build *b, const Expr *boxes)
{
    const Expr *v[BOX_NUMBERS];

    for (uint32_t i = 0; i < 2; i++) {
        v[BOX_X + i] = column(b, boxes, i);
        v[BOX_WIDTH + i] =
            build_by(b, "maximum", build_sub(b, column(b, boxes, 2 + i), v[BOX_X + i]), 1);
        v[BOX_COLUMNS + i] = build1(b, "ceil", v[BOX_WIDTH + i], NULL);
    }
    return build_concat(b, BOX_NUMBERS, v, 1);
}

/* The most of a column of the boxes, and 1 at least; [1]. */
static const Expr *largest(const Build *b, const Expr *boxes, int64_t at)
{
    const Expr *x = build_reduce(b, "max", column(b, boxes, at), 1, (int64_t[]){0}, false);

    return build_cast(b, build_by(b, "maximum", x, 1), DT_I64);
}

/* maps [N, points, S, S] of boxes [N, 4] (x, y, x, y): places [N, points, 3] (x, y, 1) where they
 * are highest, and how high, [N, points]. */
bool vision_keypoints(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *maps = pt_tensor(n, "maps"), *boxes = maps ? pt_tensor(n, "rois") : NULL;
    const Expr  *first[STATES], *last[STATES], *ones, *total;
    Keypoints    k = {.n = n};
    const Idx   *dims[3];

    if (!boxes)
        return false;
    if (expr_rank(maps) != 4 || expr_rank(boxes) != 2 || build_dim(b, boxes, 1) != 4 ||
        (k.points = build_dim(b, maps, 1)) < 1 || (k.size = build_dim(b, maps, 2)) < 1 ||
        k.size != build_dim(b, maps, 3) || expr_form(maps, 0) != expr_form(boxes, 0) ||
        !dtype_eq(expr_dtype(maps), DT_F32))
        return pt_error(n, E_IMPORT, "maps are %s, boxes %s", type_text(b->c, maps->type),
                        type_text(b->c, boxes->type));
    dims[0] = expr_form(maps, 0);
    dims[1] = idx_const(b->c->arith, k.points);
    dims[2] = idx_const(b->c->arith, 2);
    first[BOXES] = box_numbers(b, boxes);
    first[MAPS] =
        build_pad(b, maps, (int64_t[]){0, 0, 0, 0, REACH, REACH, REACH, REACH}, 0, "edge");
    first[PLACES] = build_zeros_of(b, DT_F32, 3, dims);
    first[SCORES] = build_zeros_of(b, DT_F32, 2, dims);
    for (uint32_t i = 0; i < 2; i++)
        if (!first[BOXES] || !(total = largest(b, first[BOXES], i ? BOX_COLUMNS : BOX_ROWS)) ||
            !(k.room[i] = pt_decided_dim(n, total, USUAL_BOX)))
            return false;
    if (!build_rounds(b, pt_loop_name(n->im, "keypoints"), dims[0], STATES, first, keypoint_round,
                      &k, last, &n->im->functions))
        return false;
    dims[2] = idx_const(b->c->arith, 1);
    ones = build_by(b, "add", build_zeros_of(b, DT_F32, 3, dims), 1);
    return pt_done_at(n, 0, build_concat(b, 2, (const Expr *[]){last[PLACES], ones}, 2)) &&
           pt_done_at(n, 1, last[SCORES]);
}
