/* Boxes of detectors: what a network says of anchors and regions, and the best of those that
 * overlap. How many there are, the run decides: the results share a dimension "NAME.0".
 *
 * Boxes are corners; by Caffe's first convention (legacy_plus_one, which is the default) the last
 * cell belongs to a box, so that its width is x2 - x1 + 1. */
#include "frontends/caffe2/caffe2.h"

#include <math.h>
#include <string.h>

static bool is_upright(C2Node *n)
{
    return !c2_int(n, "rotated", 0) || c2_error(n, E_UNSUPPORTED, "boxes that are rotated");
}

double c2_plus_one(C2Node *n)
{
    return c2_int(n, "legacy_plus_one", 1) != 0;
}

/* Of which result c2_set_flags counts the rows. */
typedef struct {
    C2Node  *n;
    uint32_t result;
} Counted;

static const Idx *bound_dim(void *user, const Expr *total, const Idx *most)
{
    Counted    *of = user;
    C2Node     *n = of->n;
    const char *name = intern_printf(n->b.c->strings, "%s.0", n->op->output.at[of->result]);
    const Expr *bind;
    const Idx  *k = build_bound_dim(&n->b, &n->im->shapes, name, total, most, &bind);

    if (k)
        vec_push(n->b.c->arena, &n->im->binds, bind);
    return k;
}

const Expr *c2_set_flags(C2Node *n, uint32_t result, const Expr *flags)
{
    Counted     of = {n, result};
    const Expr *at = build_find(&n->b, &(BoundDim){bound_dim, &of}, flags);
    const Idx  *k = at ? expr_form(at, 0) : NULL;

    return at ? build_reshape_to(&n->b, at, 1, &k) : NULL;
}

/* ---- from what a network says to boxes -------------------------------------------------------------- */

/* Boxes [.., 4] moved by x [.., 4], within images of which `size` has two numbers for each row: the
 * height and the width. */
static const Expr *moved(C2Node *n, const Expr *boxes, const Expr *x, const double *spread,
                         const Expr *const *size)
{
    const Build *b = &n->b;
    double       one = c2_plus_one(n);
    double       less = (double)c2_int(n, "correct_transform_coords", one > 0);
    uint32_t     last = boxes ? expr_rank(boxes) - 1 : 0;
    const Expr  *centre[4], *out[4];

    if (!boxes || !x)
        return NULL;
    for (int64_t i = 0; i < 2; i++) {
        centre[2 + i] = build_by(
            b, "add", build_sub(b, build_column(b, boxes, 2 + i), build_column(b, boxes, i)), one);
        centre[i] =
            build_add(b, build_column(b, boxes, i), build_by(b, "multiply", centre[2 + i], 0.5));
    }
    x = build_decoded(b, x, build_concat(b, 4, centre, last), false, spread, log(1000.0 / 16));
    for (int64_t i = 0; i < 4 && x; i++) {
        out[i] = i < 2 ? build_column(b, x, i) : build_by(b, "add", build_column(b, x, i), -less);
        out[i] = build2(b, "minimum", out[i], build_by(b, "add", size[1 - i % 2], -one), NULL);
        out[i] = build_by(b, "maximum", out[i], 0);
    }
    return x ? build_concat(b, 4, out, last) : NULL;
}

/* Regions [M, 4], or [M, 5] with the number of their image, moved for each of K classes, [M, 4K].
 */
bool c2_bbox_transform(C2Node *n)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    const Expr  *rois = n->in[0], *info = n->in[2], *whose, *rows, *scale, *size[2], *y;
    const C2Arg *w = c2_arg_of(n->op, "weights");
    const Idx   *M, *one = idx_const(A, 1), *four = idx_const(A, 4), *K;
    double       spread[4] = {1, 1, 1, 1};
    int64_t      fields, images, axis = 1;

    if (!is_upright(n) || !c2_rank(n, 0, 2, 2) || !c2_rank(n, 1, 2, 2) || !c2_rank(n, 2, 2, 2))
        return false;
    M = expr_form(rois, 0), fields = build_dim(b, rois, 1), images = build_dim(b, info, 0);
    if ((fields != 4 && fields != 5) || build_dim(b, n->in[1], 1) % 4 ||
        build_dim(b, info, 1) != 3 || images < 1 || (fields == 4 && images != 1))
        return c2_error(n, E_IMPORT, "%s, %s and %s", type_text(b->c, rois->type),
                        type_text(b->c, n->in[1]->type), type_text(b->c, info->type));
    for (uint32_t i = 0; w && i < 4; i++) {
        float f;

        if (w->floats.data.n != sizeof spread / 2)
            return c2_error(n, E_IMPORT, "weights are not four numbers");
        memcpy(&f, w->floats.data.at + i * sizeof f, sizeof f);
        if (!(f > 0))
            return c2_error(n, E_IMPORT, "a weight of %g", (double)f);
        spread[i] = 1 / (double)f;
    }
    K = idx_const(A, build_dim(b, n->in[1], 1) / 4);
    whose = fields == 5 ? build_reshape_to(b, build_column(b, rois, 0), 1, &M)
                        : build_zeros_of(b, DT_F32, 1, &M);
    rows = build_take(b, info, whose ? build_cast(b, whose, DT_I64) : NULL, 0);
    rows = rows ? build_reshape_to(b, rows, 3, (const Idx *[]){M, one, idx_const(A, 3)}) : NULL;
    if (!rows)
        return false;
    scale = build_column(b, rows, 2);
    for (int64_t i = 0; i < 2; i++)
        size[i] =
            build1(b, "trunc",
                   build_by(b, "add", build_div(b, build_column(b, rows, i), scale), 0.5), NULL);
    rois = build_reshape_to(b, build_slice(b, rois, 1, fields - 4, fields), 3,
                            (const Idx *[]){M, one, four});
    y = moved(n, rois ? build_div(b, rois, scale) : NULL,
              build_reshape_to(b, n->in[1], 3, (const Idx *[]){M, K, four}), spread, size);
    if (y && c2_int(n, "apply_scale", 1))
        y = build_mul(b, y, scale);
    whose = build_expand_dims(b, whose, 0, 1);
    rows = build_expand_dims(b, build_arange(b, idx_const(A, images), DT_F32), 1, 1);
    rows = build_cast(b, build2(b, "equal", whose, rows, NULL), DT_F32);
    return y && c2_done(n, build_reshape_to(b, y, 2, (const Idx *[]){M, expr_form(n->in[1], 1)})) &&
           c2_put(n, 1, build_reduce(b, "sum", rows, 1, &axis, false));
}

/* ---- proposals -------------------------------------------------------------------------------------- */

/* Anchors [A, 4] at each place, [1, H*W*A, 4]. */
static const Expr *everywhere(const Build *b, const Expr *anchors, int64_t H, int64_t W,
                              double stride)
{
    float      *at = arena_array(b->c->arena, (size_t)(H * W) * 4, sizeof *at);
    const Expr *x;

    for (int64_t i = 0; i < H * W * 4; i++)
        at[i] = (float)((double)(i % 2 ? i / 4 / W : i / 4 % W) * stride);
    x = build_const(b, DT_F32, 3, (int64_t[]){H * W, 1, 4}, at);
    x = build_add(b, x, build_expand_dims(b, anchors, 0, 1));
    return build_reshape(b, x, 3, (int64_t[]){1, H * W * build_dim(b, anchors, 0), 4});
}

/* A box that is as large as it says, and whose middle is in the image. */
static const Expr *valid_boxes(C2Node *n, const Expr *boxes, const Expr *const *info)
{
    const Build *b = &n->b;
    const Expr  *least = build_by(b, "multiply", info[2], c2_float(n, "min_size", 16)), *all = NULL;

    for (int64_t i = 0; i < 2; i++) {
        const Expr *from = build_column(b, boxes, i), *side, *is;

        side =
            build_by(b, "add", build_sub(b, build_column(b, boxes, 2 + i), from), c2_plus_one(n));
        is = build2(b, "greater_equal", side, least, NULL);
        all = all ? build2(b, "logical_and", all, is, NULL) : is;
        from = build_add(b, from, build_by(b, "multiply", side, 0.5));
        all = build2(b, "logical_and", all, build_less(b, from, info[1 - i]), NULL);
    }
    return all;
}

/* scores [N, A, H, W], what is said of boxes [N, 4A, H, W], images' height, width and scale [N, 3],
 * anchors [A, 4]: regions [k, 5] with the number of their image, and their scores [k]. */
bool c2_generate_proposals(C2Node *n)
{
    static const double spread[4] = {1, 1, 1, 1};
    const Build        *b = &n->b;
    const Expr         *boxes, *scores, *info[3], *anchors, *at, *best, *batch;
    TopKAttrs          *top = ATTRS(b, TopKAttrs);
    const float         last[4] = {0, 0, 1, 1};
    double              scale = c2_float(n, "spatial_scale", 1.0 / 16);
    int64_t             N, A, H, W, B, before = c2_int(n, "pre_nms_topN", 6000),
                           after = c2_int(n, "post_nms_topN", 300);

    if (!is_upright(n) || !c2_rank(n, 0, 4, 4) || !c2_rank(n, 1, 4, 4) || !c2_rank(n, 2, 2, 2) ||
        !c2_rank(n, 3, 2, 2))
        return false;
    N = build_dim(b, n->in[0], 0), A = build_dim(b, n->in[0], 1);
    H = build_dim(b, n->in[0], 2), W = build_dim(b, n->in[0], 3);
    if (N < 1 || A < 1 || A > 1024 || H < 1 || W < 1 || H > 4096 || W > 4096 ||
        build_dim(b, n->in[1], 0) != N || build_dim(b, n->in[1], 1) != 4 * A ||
        build_dim(b, n->in[1], 2) != H || build_dim(b, n->in[1], 3) != W ||
        build_dim(b, n->in[2], 0) != N || build_dim(b, n->in[2], 1) != 3 ||
        build_dim(b, n->in[3], 0) != A || build_dim(b, n->in[3], 1) != 4 || !(scale > 0))
        return c2_error(n, E_IMPORT, "scores %s of boxes %s", type_text(b->c, n->in[0]->type),
                        type_text(b->c, n->in[1]->type));
    B = H * W * A;
    before = before < 1 || before > B ? B : before;
    after = after < 1 || after > before ? before : after;
    for (int64_t i = 0; i < 3; i++)
        info[i] = build_expand_dims(b, build_column(b, n->in[2], i), 2, 1);
    top->k = before;
    top->axis = 1;
    top->dtype = DT_I64;
    scores = build_reshape(b, build_by_place(b, n->in[0], 1), 2, (int64_t[]){N, B});
    at = scores ? build1(b, "topk", scores, top) : NULL;
    scores = build_proj(b, at, 0);
    at = build_proj(b, at, 1);
    anchors = everywhere(b, n->in[3], H, W, 1 / scale);
    anchors = anchors ? build_broadcast(b, anchors, 3, (int64_t[]){N, B, 4}) : NULL;
    boxes = build_rows_at(b, build_by_place(b, n->in[1], 4), at);
    anchors = build_rows_at(b, anchors, at);
    if (!boxes || !anchors)
        return false;
    boxes = moved(
        n, anchors, boxes, spread,
        (const Expr *[]){build1(b, "trunc", info[0], NULL), build1(b, "trunc", info[1], NULL)});
    at = boxes ? valid_boxes(n, boxes, info) : NULL;
    at = at ? build_best_scores(b, scores, build_reshape(b, at, 2, (int64_t[]){N, before}), 0)
            : NULL;
    best = c2_plus_one(n) > 0 ? build_add(b, boxes, build_const(b, DT_F32, 1, (int64_t[]){4}, last))
                              : boxes;
    at = at ? build_kept(b, best, at, NULL, c2_float(n, "nms_thresh", 0.7)) : NULL;
    at = at ? build_slice(b, at, 1, 0, after) : NULL;
    if (!at)
        return false;
    best = build_by(b, "maximum", at, 0);
    batch = build_expand_dims(b, build_arange(b, idx_const(b->c->arith, N), DT_F32), 1, 2);
    batch = build_broadcast(b, batch, 3, (int64_t[]){N, after, 1});
    boxes = build_concat(b, 2, (const Expr *[]){batch, build_rows_at(b, boxes, best)}, 2);
    boxes = build_reshape(b, boxes, 2, (int64_t[]){N * after, 5});
    scores = build_reshape(b, build_rows_at(b, scores, best), 1, (int64_t[]){N * after});
    at = c2_set_flags(
        n, 0, build_reshape(b, build_by(b, "greater_equal", at, 0), 1, (int64_t[]){N * after}));
    return at && c2_done(n, build_take(b, boxes, at, 0)) &&
           (n->nout < 2 || c2_put(n, 1, build_take(b, scores, at, 0)));
}

/* ---- the best boxes of each class ------------------------------------------------------------------- */

typedef struct {
    const Expr *scores, *boxes; /* [G, M], [G, M, 4]: of each class of each image */
    const Expr *at;             /* [G, room], -1 behind the last */
    const Expr *flags;          /* [images, classes * room]: those that stay */
    const Expr *first;          /* [images, 1]: number of its first row */
    int64_t     images, classes, room;
    const Idx  *rows;
} Limit;

/* Rows of an image lie together; those of the others have no score.  [images, 1, M]. */
static const Expr *of_image(C2Node *n, Limit *k, const Expr *splits)
{
    const Build *b = &n->b;
    const Expr  *end, *at = build_arange(b, k->rows, DT_F32), *is;

    splits = build_cast(b, splits, DT_F32);
    end = splits ? build_scan(b, "cumsum", splits, 0, false, false) : NULL;
    k->first = build_expand_dims(b, build_sub(b, end, splits), 1, 1);
    end = build_expand_dims(b, end, 1, 1);
    is = build2(b, "logical_and", build2(b, "greater_equal", at, k->first, NULL),
                build_less(b, at, end), NULL);
    return build_expand_dims(b, is, 1, 1);
}

/* Operands as groups. */
static bool read_limit(C2Node *n, Limit *k)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    bool         alike = c2_int(n, "cls_agnostic_bbox_reg", 0) != 0;
    int64_t      from = c2_int(n, "input_boxes_include_bg_cls", 1) != 0, C, K;
    const Idx   *G, *four = idx_const(A, 4), *N, *Cs;
    const Expr  *is;

    if (!is_upright(n) || !c2_rank(n, 0, 2, 2) || !c2_rank(n, 1, 2, 2) ||
        (n->nin > 2 && !c2_rank(n, 2, 1, 1)))
        return false;
    if (c2_int(n, "soft_nms_enabled", 0))
        return c2_error(n, E_UNSUPPORTED, "soft_nms_enabled");
    if (!c2_int(n, "input_scores_include_bg_cls", 1))
        return c2_error(n, E_UNSUPPORTED, "input_scores_include_bg_cls=0");
    k->rows = expr_form(n->in[0], 0);
    C = build_dim(b, n->in[0], 1), K = alike ? 1 : C - 1 + from;
    if (C < 2 || build_dim(b, n->in[1], 1) != 4 * K || k->rows->hi < 1 || k->rows->hi > INT32_MAX)
        return c2_error(n, E_IMPORT, "scores %s of boxes %s", type_text(b->c, n->in[0]->type),
                        type_text(b->c, n->in[1]->type));
    k->images = n->nin > 2 ? build_dim(b, n->in[2], 0) : 1;
    k->classes = C - 1;
    N = idx_const(A, k->images), Cs = idx_const(A, k->classes);
    G = idx_const(A, k->images * k->classes);
    k->scores = build_transpose(b, build_slice(b, n->in[0], 1, 1, C), 2, (int64_t[]){1, 0});
    k->boxes = build_reshape_to(b, n->in[1], 3, (const Idx *[]){k->rows, idx_const(A, K), four});
    k->boxes = build_slice(b, k->boxes, 1, alike ? 0 : from, K);
    k->boxes = build_transpose(b, k->boxes, 3, (int64_t[]){1, 0, 2});
    if (!k->boxes || !k->scores)
        return false;
    k->boxes = build_broadcast_to(b, build_expand_dims(b, k->boxes, 0, 1), 4,
                                  (const Idx *[]){N, Cs, k->rows, four});
    k->scores = build_broadcast_to(b, build_expand_dims(b, k->scores, 0, 1), 3,
                                   (const Idx *[]){N, Cs, k->rows});
    if (n->nin > 2) {
        is = of_image(n, k, n->in[2]);
        k->scores = build_where(b, is, k->scores, build_scalar(b, k->scores, -INFINITY));
    } else {
        k->first = build_zeros(b, DT_F32, 2, (int64_t[]){1, 1});
    }
    k->scores = build_reshape_to(b, k->scores, 2, (const Idx *[]){G, k->rows});
    k->boxes = build_reshape_to(b, k->boxes, 3, (const Idx *[]){G, k->rows, four});
    return k->scores && k->boxes;
}

static bool choose(C2Node *n, Limit *k)
{
    const Build            *b = &n->b;
    NonMaxSuppressionAttrs *a = ATTRS(b, NonMaxSuppressionAttrs);
    int64_t                 most = c2_int(n, "detections_per_im", 100), G = k->images * k->classes,
            dims[2] = {k->images, 0};
    const float last[4] = {0, 0, 1, 1};
    const Expr *in[6], *is;

    k->room = most > 0 && most < k->rows->hi ? most : k->rows->hi;
    dims[1] = k->classes * k->room;
    in[0] = c2_plus_one(n) > 0
                ? build_add(b, k->boxes, build_const(b, DT_F32, 1, (int64_t[]){4}, last))
                : k->boxes;
    in[1] = build_expand_dims(b, k->scores, 1, 1);
    in[2] = build_expand_dims(b, build_falling(b, k->scores), 1, 1);
    in[3] = expr_scalar(b->c, DT_I64, (double)k->room);
    in[4] = expr_scalar(b->c, DT_F32, c2_float(n, "nms", 0.3));
    in[5] = expr_scalar(b->c, DT_F32, c2_float(n, "score_thresh", 0.05));
    a->room = dims_dup(b->c, (const Idx *[]){idx_const(b->c->arith, k->room)}, 1);
    k->at = build_reshape(b, build_call(b, "vision.non_max_suppression", 6, in, a), 2,
                          (int64_t[]){G, k->room});
    if (!k->at)
        return false;
    is = build_reshape(b, build_by(b, "greater_equal", k->at, 0), 2, dims);
    k->at = build_by(b, "maximum", k->at, 0);
    k->scores = build_reshape(b, build_rows_at(b, k->scores, k->at), 2, dims);
    k->boxes = build_rows_at(b, k->boxes, k->at);
    if (!is || !k->scores || !k->boxes)
        return false;
    k->flags = build_by(b, "greater", build_best_scores(b, k->scores, is, most), -INFINITY);
    return k->flags != NULL;
}

/* The numbers of classes, and how many rows of each class of each image stay. */
bool c2_box_with_nms_limit(C2Node *n)
{
    const Build *b = &n->b;
    Limit        k = {0};
    const Expr  *at, *classes, *counts, *sizes, *keeps;
    int64_t      all, axes[1] = {2};
    double       from = c2_int(n, "output_classes_include_bg_cls", 1) != 0;

    if (!read_limit(n, &k) || !choose(n, &k))
        return false;
    all = k.images * k.classes * k.room;
    if (!(at = c2_set_flags(n, 0, build_reshape(b, k.flags, 1, &all))))
        return false;
    classes = build_by(b, "add", build_arange(b, idx_const(b->c->arith, k.classes), DT_F32), from);
    classes = build_broadcast(b, build_expand_dims(b, classes, 1, 1), 3,
                              (int64_t[]){k.images, k.classes, k.room});
    sizes = build_reshape(b, build_cast(b, k.flags, DT_I32), 3,
                          (int64_t[]){k.images, k.classes, k.room});
    sizes = build_reduce(b, "sum", sizes, 1, axes, false);
    axes[0] = 1;
    counts = build_cast(b, build_reduce(b, "sum", sizes, 1, axes, false), DT_F32);
    keeps = build_reshape(b, k.at, 2, (int64_t[]){k.images, k.classes * k.room});
    keeps = build_cast(b, build_sub(b, keeps, build_cast(b, k.first, expr_dtype(k.at))), DT_I32);
    sizes = build_pad(b, sizes, (int64_t[]){0, 0, 1, 0}, 0, NULL);
    return c2_done(n, build_take(b, build_reshape(b, k.scores, 1, &all), at, 0)) &&
           c2_put(n, 1, build_take(b, build_reshape(b, k.boxes, 2, (int64_t[]){all, 4}), at, 0)) &&
           c2_put(n, 2, build_take(b, build_reshape(b, classes, 1, &all), at, 0)) &&
           c2_put(n, 3, counts) &&
           c2_put(n, 4, build_take(b, build_reshape(b, keeps, 1, &all), at, 0)) &&
           c2_put(n, 5, sizes);
}
