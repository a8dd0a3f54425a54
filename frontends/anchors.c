/* Anchors, and what detectors make of them: boxes, the best of which stay. */
#include "frontends/calls.h"

#include <math.h>

/* Around the middle of each cell: all sizes with the first ratio, then the first size with the
 * other ratios. */
const Expr *build_anchors(const Build *b, const Expr *x, const BuildAnchors *a)
{
    int64_t H = build_dim(b, x, 2), W = build_dim(b, x, 3), each, dims[3] = {1};
    float  *out, *p;

    if (a->nsizes < 1 || a->nratios < 1 || a->nsizes > 256 || a->nratios > 256 || H < 1 || W < 1 ||
        H > 1 << 12 || W > 1 << 12)
        return build_error(b, E_IMPORT, "%u sizes, %u ratios of %s", a->nsizes, a->nratios,
                           type_text(b->c, x->type));
    each = a->nsizes + a->nratios - 1;
    dims[1] = H * W * each, dims[2] = 4;
    p = out = arena_array(b->c->arena, (size_t)(dims[1] * 4), sizeof *out);
    for (int64_t i = 0; i < dims[1]; i++) {
        int64_t cell = i / each, k = i % each;
        double  high = a->steps[0] > 0 ? a->steps[0] : 1 / (double)H,
               wide = a->steps[1] > 0 ? a->steps[1] : 1 / (double)W;
        double y = ((double)(cell / W) + a->offsets[0]) * high,
               x0 = ((double)(cell % W) + a->offsets[1]) * wide;
        double size = a->sizes[k < a->nsizes ? k : 0],
               ratio = sqrt(k < a->nsizes ? a->first : a->ratios[k - a->nsizes + 1]);
        double w = size * (double)H / (double)W * ratio / 2, h = size / ratio / 2;

        *p++ = (float)(x0 - w), *p++ = (float)(y - h);
        *p++ = (float)(x0 + w), *p++ = (float)(y + h);
    }
    for (p = out; a->clip && p < out + dims[1] * 4; p++)
        *p = fminf(fmaxf(*p, 0), 1);
    return build_const(b, DT_F32, 3, dims, out);
}

/* ---- from anchors to boxes -------------------------------------------------------------------------- */

/* What the network says, [.., 4], of anchors given as corners, or as middles and sizes: corners. */
const Expr *build_decoded(const Build *b, const Expr *x, const Expr *anchors, bool corners,
                          const double *spread, double most)
{
    const Expr *side[2], *middle[2], *half[2], *out[4];

    for (int64_t i = 0; i < 2; i++) {
        const Expr *p = build_column(b, anchors, i), *q = build_column(b, anchors, 2 + i), *size;

        side[i] = corners ? build_sub(b, q, p) : q;
        middle[i] = corners ? build_by(b, "multiply", build_add(b, p, q), 0.5) : p;
        p = build_by(b, "multiply", build_column(b, x, i), spread[i]);
        middle[i] = build_add(b, build_mul(b, p, side[i]), middle[i]);
        size = build_by(b, "multiply", build_column(b, x, 2 + i), spread[2 + i]);
        if (most > 0)
            size = build_by(b, "minimum", size, most);
        half[i] = build_mul(b, build1(b, "exp", size, NULL), build_by(b, "multiply", side[i], 0.5));
        out[i] = build_sub(b, middle[i], half[i]);
        out[2 + i] = build_add(b, middle[i], half[i]);
    }
    return out[3] ? build_concat(b, 4, out, expr_rank(out[3]) - 1) : NULL;
}

/* ---- the best of them -------------------------------------------------------------------------------- */

/* Rows by their number, [N, K] of [N, B, ..]. */
const Expr *build_rows_at(const Build *b, const Expr *x, const Expr *at)
{
    TakeAttrs *a = ATTRS(b, TakeAttrs);

    a->axis = a->batch_dims = 1;
    return build2(b, "take", x, at, a);
}

/* Positions by falling scores, [N, B]. */
const Expr *build_falling(const Build *b, const Expr *scores)
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
const Expr *build_kept(const Build *b, const Expr *boxes, const Expr *scores, const Expr *ids,
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
    in[2] = build_expand_dims(b, build_falling(b, scores), 1, 1);
    in[3] = expr_scalar(b->c, DT_I64, (double)B);
    in[4] = expr_scalar(b->c, DT_F64, overlap);
    in[5] = expr_scalar(b->c, DT_F64, -1e300);
    a->room = dims_dup(b->c, (const Idx *[]){idx_const(b->c->arith, B)}, 1);
    return build_reshape(b, build_call(b, "vision.non_max_suppression", 6, in, a), 2,
                         (int64_t[]){N, B});
}

/* Scores of all but the best k, and of what is not considered, become -inf. */
const Expr *build_best_scores(const Build *b, const Expr *scores, const Expr *valid, int64_t k)
{
    int64_t     B = build_dim(b, scores, 1);
    const Expr *order, *rank, *low = build_scalar(b, scores, -INFINITY);
    SortAttrs  *a = ATTRS(b, SortAttrs);

    scores = build_where(b, valid, scores, low);
    if (!scores || k < 1 || k >= B)
        return scores;
    order = build_falling(b, scores);
    a->axis = 1;
    a->dtype = DT_I64;
    rank = build1(b, "argsort", order, a);
    return build_where(b, build_by(b, "less", rank, (double)k), scores, low);
}

/* Which positions are among those that stay, [N, B] of bools. */
const Expr *build_marked(const Build *b, const Expr *at, int64_t N, int64_t B)
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
