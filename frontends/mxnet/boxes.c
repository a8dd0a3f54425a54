/* Boxes: anchors, what networks say of them, and the best of those that overlap. */
#include "frontends/mxnet/mxnet.h"

#include <math.h>
#include <string.h>

static const Expr *column(const Build *b, const Expr *x, int64_t i)
{
    return x ? build_slice(b, x, expr_rank(x) - 1, i, i + 1) : NULL;
}

/* ---- anchors ---------------------------------------------------------------------------------------- */

/* Around the middle of each cell: all sizes with the first ratio, then the first size with the
 * other ratios. */
bool mx_multibox_prior(MxNode *n)
{
    const Build *b = &n->b;
    uint32_t     nsizes, nratios, nsteps, noffsets;
    double      *sizes, *ratios, *steps, *offsets;
    int64_t      H, W, each, dims[3] = {1};
    float       *out, *p;

    mx_floats(n, "sizes", &nsizes, &sizes);
    mx_floats(n, "ratios", &nratios, &ratios);
    mx_floats(n, "steps", &nsteps, &steps);
    mx_floats(n, "offsets", &noffsets, &offsets);
    if (!mx_rank(n, 0, 4, 4))
        return false;
    H = build_dim(b, n->in[0], 2), W = build_dim(b, n->in[0], 3);
    if (nsizes < 1 || nratios < 1 || nsteps != 2 || noffsets != 2 || nsizes > 256 ||
        nratios > 256 || H < 1 || W < 1 || H > 1 << 12 || W > 1 << 12)
        return mx_error(n, E_IMPORT, "%u sizes, %u ratios, %u steps, %u offsets", nsizes, nratios,
                        nsteps, noffsets);
    each = nsizes + nratios - 1;
    dims[1] = H * W * each, dims[2] = 4;
    p = out = arena_array(b->c->arena, (size_t)(dims[1] * 4), sizeof *out);
    for (int64_t i = 0; i < dims[1]; i++) {
        int64_t cell = i / each, k = i % each;
        double  y = ((double)(cell / W) + offsets[0]) * (steps[0] > 0 ? steps[0] : 1 / (double)H),
               x = ((double)(cell % W) + offsets[1]) * (steps[1] > 0 ? steps[1] : 1 / (double)W);
        double size = sizes[k < nsizes ? k : 0],
               ratio = sqrt(ratios[k < nsizes ? 0 : k - nsizes + 1]);
        double w = size * (double)H / (double)W * ratio / 2, h = size / ratio / 2;

        *p++ = (float)(x - w), *p++ = (float)(y - h);
        *p++ = (float)(x + w), *p++ = (float)(y + h);
    }
    for (p = out; mx_bool(n, "clip") && p < out + dims[1] * 4; p++)
        *p = fminf(fmaxf(*p, 0), 1);
    return mx_done(n, build_const(b, DT_F32, 3, dims, out));
}

/* ---- from anchors to boxes -------------------------------------------------------------------------- */

/* What the network says, [.., 4], of anchors given as corners, or as middles and sizes: corners. */
static const Expr *decoded(const Build *b, const Expr *x, const Expr *anchors, bool corners,
                           const double *spread, double most)
{
    const Expr *side[2], *middle[2], *half[2], *out[4];

    for (int64_t i = 0; i < 2; i++) {
        const Expr *p = column(b, anchors, i), *q = column(b, anchors, 2 + i), *size;

        side[i] = corners ? build_sub(b, q, p) : q;
        middle[i] = corners ? build_by(b, "multiply", build_add(b, p, q), 0.5) : p;
        p = build_by(b, "multiply", column(b, x, i), spread[i]);
        middle[i] = build_add(b, build_mul(b, p, side[i]), middle[i]);
        size = build_by(b, "multiply", column(b, x, 2 + i), spread[2 + i]);
        if (most > 0)
            size = build_by(b, "minimum", size, most);
        half[i] = build_mul(b, build1(b, "exp", size, NULL), build_by(b, "multiply", side[i], 0.5));
        out[i] = build_sub(b, middle[i], half[i]);
        out[2 + i] = build_add(b, middle[i], half[i]);
    }
    return out[3] ? build_concat(b, 4, out, expr_rank(out[3]) - 1) : NULL;
}

bool mx_box_decode(MxNode *n)
{
    double spread[4] = {mx_float(n, "std0"), mx_float(n, "std1"), mx_float(n, "std2"),
                        mx_float(n, "std3")};

    return mx_rank(n, 0, 3, 3) && mx_rank(n, 1, 3, 3) &&
           mx_done(n, decoded(&n->b, n->in[0], n->in[1], mx_is(n, "format", "corner"), spread,
                              mx_float(n, "clip")));
}

static const Expr *as_corners(const Build *b, const Expr *x)
{
    const Expr *middle = build_slice(b, x, expr_rank(x) - 1, 0, 2),
               *half = build_by(b, "multiply", build_slice(b, x, expr_rank(x) - 1, 2, 4), 0.5);

    return build_concat(b, 2,
                        (const Expr *[]){build_sub(b, middle, half), build_add(b, middle, half)},
                        expr_rank(x) - 1);
}

static const Expr *as_centers(const Build *b, const Expr *x)
{
    const Expr *from = build_slice(b, x, expr_rank(x) - 1, 0, 2),
               *to = build_slice(b, x, expr_rank(x) - 1, 2, 4);

    return build_concat(b, 2,
                        (const Expr *[]){build_by(b, "multiply", build_add(b, from, to), 0.5),
                                         build_sub(b, to, from)},
                        expr_rank(x) - 1);
}

/* Boxes [.., A, 4] and [.., B, 4]: the share that both cover, [.., A, .., B] without leading
 * dimensions. */
bool mx_box_iou(MxNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *y = n->in[1], *both = NULL, *areas[2] = {NULL, NULL}, *all;

    if (!mx_rank(n, 0, 2, 2) || !mx_rank(n, 1, 2, 2))
        return false;
    if (mx_is(n, "format", "center")) {
        x = as_corners(b, x);
        y = as_corners(b, y);
    }
    x = build_expand_dims(b, x, 1, 1);
    y = build_expand_dims(b, y, 0, 1);
    for (int64_t i = 0; i < 2; i++) {
        const Expr *from = build2(b, "maximum", column(b, x, i), column(b, y, i), NULL);
        const Expr *to = build2(b, "minimum", column(b, x, 2 + i), column(b, y, 2 + i), NULL);
        const Expr *side = build_by(b, "maximum", build_sub(b, to, from), 0);
        const Expr *of[2] = {build_sub(b, column(b, x, 2 + i), column(b, x, i)),
                             build_sub(b, column(b, y, 2 + i), column(b, y, i))};

        both = both ? build_mul(b, both, side) : side;
        for (uint32_t k = 0; k < 2; k++)
            areas[k] = i ? build_mul(b, areas[k], of[k]) : of[k];
    }
    all = build_sub(b, build_add(b, areas[0], areas[1]), both);
    if (!all)
        return false;
    both = build_where(b, build_by(b, "greater", all, 0), build_div(b, both, all),
                       build_scalar(b, both, 0));
    return mx_done(n, build_squeeze(b, both, 1, (int64_t[]){2}));
}

/* ---- the best of them -------------------------------------------------------------------------------- */

/* Rows by their number, [N, K] of [N, B, ..]. */
static const Expr *rows_at(const Build *b, const Expr *x, const Expr *at)
{
    TakeAttrs *a = ATTRS(b, TakeAttrs);

    a->axis = a->batch_dims = 1;
    return build2(b, "take", x, at, a);
}

/* Positions by falling scores, [N, B]. */
static const Expr *falling(const Build *b, const Expr *scores)
{
    SortAttrs *a = ATTRS(b, SortAttrs);

    a->axis = 1;
    a->is_ascend = false;
    a->dtype = DT_I64;
    return build1(b, "argsort", scores, a);
}

/* The boxes [N, B, 4] that stay, by falling scores [N, B], -1 behind them: those with a score of
 * -inf do not; with ids [N, B], only boxes of one id stand in each other's way: each id has a place
 * of its own, so far apart that doubles tell them. */
static const Expr *kept_of(const Build *b, const Expr *boxes, const Expr *scores, const Expr *ids,
                           double overlap)
{
    NonMaxSuppressionAttrs *a = ATTRS(b, NonMaxSuppressionAttrs);
    int64_t                 axes[3] = {0, 1, 2}, N, B;
    const Expr             *in[6], *range;

    if (!boxes || !scores)
        return NULL;
    N = build_dim(b, scores, 0), B = build_dim(b, scores, 1);
    boxes = build_cast(b, boxes, DT_F64);
    if (ids) {
        range = build_sub(b, build_reduce(b, "max", boxes, 3, axes, true),
                          build_reduce(b, "min", boxes, 3, axes, true));
        range = build_by(b, "add", range, 1);
        ids = build_expand_dims(b, build_cast(b, ids, DT_F64), 2, 1);
        boxes = build_add(b, boxes, build_mul(b, ids, range));
    }
    in[0] = boxes;
    in[1] = build_cast(b, scores, DT_F64);
    in[1] = build_expand_dims(b, in[1], 1, 1);
    in[2] = build_expand_dims(b, falling(b, scores), 1, 1);
    in[3] = expr_scalar(b->c, DT_I64, (double)B);
    in[4] = expr_scalar(b->c, DT_F64, overlap);
    in[5] = expr_scalar(b->c, DT_F64, -1e300);
    a->room = dims_dup(b->c, (const Idx *[]){idx_const(b->c->arith, B)}, 1);
    return build_reshape(b, build_call(b, "vision.non_max_suppression", 6, in, a), 2,
                         (int64_t[]){N, B});
}

/* Scores of all but the best k, and of what is not considered, become -inf. */
static const Expr *best_scores(const Build *b, const Expr *scores, const Expr *valid, int64_t k)
{
    int64_t     B = build_dim(b, scores, 1);
    const Expr *order, *rank, *low = build_scalar(b, scores, -INFINITY);
    SortAttrs  *a = ATTRS(b, SortAttrs);

    scores = build_where(b, valid, scores, low);
    if (!scores || k < 1 || k >= B)
        return scores;
    order = falling(b, scores);
    a->axis = 1;
    a->dtype = DT_I64;
    rank = build1(b, "argsort", order, a);
    return build_where(b, build_by(b, "less", rank, (double)k), scores, low);
}

/* Data [.., B, K]: rows with a score, coordinates and perhaps an id, best first; those that go are
 * -1. */
bool mx_box_nms(MxNode *n)
{
    const Build *b = &n->b;
    uint32_t     rank = expr_rank(n->in[0]);
    const Expr  *x = n->in[0], *scores, *boxes, *ids = NULL, *valid, *at, *there;
    int64_t      coord = mx_int(n, "coord_start"), score = mx_int(n, "score_index"),
            id = mx_int(n, "id_index"), N, B, K;
    double overlap = mx_float(n, "overlap_thresh");

    if (!mx_rank(n, 0, 2, MAX_RANK))
        return false;
    B = build_dim(b, x, rank - 2), K = build_dim(b, x, rank - 1);
    if (coord < 0 || coord + 4 > K || score < 0 || score >= K || id >= K || B < 1)
        return mx_error(n, E_IMPORT, "rows of %lld numbers", (long long)K);
    N = build_elems(b, x) / (B * K);
    x = build_reshape(b, x, 3, (int64_t[]){N, B, K});
    scores = build_reshape(b, column(b, x, score), 2, (int64_t[]){N, B});
    boxes = build_slice(b, x, 2, coord, coord + 4);
    valid = build_by(b, "greater", scores, mx_float(n, "valid_thresh"));
    if (id >= 0)
        ids = build_reshape(b, column(b, x, id), 2, (int64_t[]){N, B});
    if (id >= 0 && mx_int(n, "background_id") >= 0)
        valid = build2(b, "logical_and", valid,
                       build_by(b, "not_equal", ids, (double)mx_int(n, "background_id")), NULL);
    if (mx_is(n, "in_format", "center"))
        boxes = as_corners(b, boxes);
    at = kept_of(b, boxes, best_scores(b, scores, valid, mx_int(n, "topk")),
                 mx_bool(n, "force_suppress") ? NULL : ids, overlap);
    there = build_expand_dims(b, build_by(b, "greater_equal", at, 0), 2, 1);
    x = rows_at(b, x, build_by(b, "maximum", at, 0));
    if (!x || !there)
        return false;
    if (strcmp(mx_text(n, "in_format"), mx_text(n, "out_format")) != 0) {
        const Expr *parts[3] = {build_slice(b, x, 2, 0, coord),
                                build_slice(b, x, 2, coord, coord + 4),
                                build_slice(b, x, 2, coord + 4, K)};

        parts[1] =
            mx_is(n, "in_format", "center") ? as_corners(b, parts[1]) : as_centers(b, parts[1]);
        x = build_concat(b, coord + 4 < K ? 3 : 2, coord ? parts : parts + 1, 2);
        if (!coord)
            x = coord + 4 < K ? build_concat(b, 2, parts + 1, 2) : parts[1];
    }
    x = x ? build_where(b, there, x, build_scalar(b, x, -1)) : NULL;
    return mx_done(n, x ? build_reshape_to(b, x, rank, expr_forms(n->in[0]).at) : NULL);
}

/* Which positions are among those that stay, [N, B] of bools. */
static const Expr *marked(const Build *b, const Expr *at, int64_t N, int64_t B)
{
    const Expr *rows, *none, *flags;

    at = at ? build_where(b, build_by(b, "less", at, 0), build_scalar(b, at, (double)B), at) : NULL;
    rows = build_expand_dims(b, build_arange(b, idx_const(b->c->arith, N), DT_I64), 1, 1);
    rows = build_broadcast(b, rows, 2, (int64_t[]){N, B});
    at = build_concat(
        b, 2, (const Expr *[]){build_expand_dims(b, rows, 0, 1), build_expand_dims(b, at, 0, 1)},
        0);
    none = build_zeros(b, DT_F32, 2, (int64_t[]){N, B + 1});
    flags = build_broadcast(b, expr_scalar(b->c, DT_F32, 1), 2, (int64_t[]){N, B});
    none = build3(b, "scatter_nd", none, at, flags, NULL);
    return build_by(b, "greater", build_slice(b, none, 1, 0, B), 0);
}

/* The best k rows, and behind them what MXNet leaves there: those of that place in the order of the
 * anchors, as none that stays. */
static const Expr *with_tail(const Build *b, const Expr *rows, const Expr *order, const Expr *valid,
                             int64_t k)
{
    const Expr *at = build_arange(b, idx_const(b->c->arith, build_dim(b, rows, 1)), DT_I64),
               *first = build_by(b, "less", at, (double)k), *id;

    order = build_where(b, first, order, falling(b, build_cast(b, valid, DT_F32)));
    rows = rows_at(b, rows, order);
    id = column(b, rows, 0);
    id = id ? build_where(b, build_expand_dims(b, first, 1, 1), id, build_scalar(b, id, -1)) : NULL;
    return id ? build_concat(
                    b, 2, (const Expr *[]){id, build_slice(b, rows, 2, 1, build_dim(b, rows, 2))},
                    2)
              : NULL;
}

/* Probabilities [N, classes, A], of which the first is the background, boxes [N, A*4] and anchors
 * [1, A, 4]: rows of class, probability and corners, best first; the class of what overlaps a
 * better one is -1. */
bool mx_multibox_detection(MxNode *n)
{
    const Build    *b = &n->b;
    ArgReduceAttrs *a = ATTRS(b, ArgReduceAttrs);
    uint32_t        nspread;
    double         *spread, overlap = mx_float(n, "nms_threshold");
    int64_t         N, C, A, axis = 1, topk = mx_int(n, "nms_topk");
    const Expr     *p, *score, *id, *valid, *boxes, *best, *kept, *rows, *order;

    mx_floats(n, "variances", &nspread, &spread);
    if (!mx_rank(n, 0, 3, 3) || !mx_rank(n, 1, 2, 2) || !mx_rank(n, 2, 3, 3))
        return false;
    N = build_dim(b, n->in[0], 0), C = build_dim(b, n->in[0], 1), A = build_dim(b, n->in[0], 2);
    if (nspread != 4 || C < 2 || A < 1 || build_dim(b, n->in[1], 1) != A * 4 ||
        build_dim(b, n->in[2], 1) != A || build_dim(b, n->in[2], 2) != 4)
        return mx_error(n, E_IMPORT, "%s, %s and %s", type_text(b->c, n->in[0]->type),
                        type_text(b->c, n->in[1]->type), type_text(b->c, n->in[2]->type));
    if (mx_int(n, "background_id") != 0)
        return mx_error(n, E_UNSUPPORTED, "background_id=%s", mx_text(n, "background_id"));
    p = build_slice(b, n->in[0], 1, 1, C);
    score = build_reduce(b, "max", p, 1, &axis, false);
    a->axis = 1;
    a->dtype = DT_I64;
    id = build1(b, "argmax", p, a);
    valid = build_by(b, "greater_equal", score, mx_float(n, "threshold"));
    boxes =
        decoded(b, build_reshape(b, n->in[1], 3, (int64_t[]){N, A, 4}), n->in[2], true, spread, 0);
    if (mx_bool(n, "clip"))
        boxes = build_clip(b, boxes, 0, 1);
    best = best_scores(b, score, valid, topk);
    if (!best || !id || !boxes)
        return false;
    if (overlap > 0 && overlap <= 1) {
        /* What overlaps as much goes, too. */
        kept = marked(b,
                      kept_of(b, boxes, best, mx_bool(n, "force_suppress") ? NULL : id,
                              nextafterf((float)overlap, 0)),
                      N, A);
        order = falling(b, build_where(b, valid, score, build_scalar(b, score, -INFINITY)));
    } else { /* in the order of the anchors */
        kept = valid;
        order = falling(b, build_cast(b, valid, DT_F32));
    }
    id = build_cast(b, id, expr_dtype(score));
    id = build_where(b, kept, id, build_scalar(b, id, -1));
    rows = build_concat(
        b, 3,
        (const Expr *[]){build_expand_dims(b, id, 2, 1), build_expand_dims(b, score, 2, 1), boxes},
        2);
    rows = rows ? build_where(b, build_expand_dims(b, valid, 2, 1), rows, build_scalar(b, rows, -1))
                : NULL;
    if (overlap > 0 && overlap <= 1 && topk > 0 && topk < A)
        return mx_done(n, with_tail(b, rows, order, valid, topk));
    return mx_done(n, rows_at(b, rows, order));
}
