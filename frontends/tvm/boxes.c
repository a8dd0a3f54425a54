/* Boxes: anchors, what detectors say of them, and those that stay; regions of images. */
#include "frontends/tvm/tvm.h"

#include <math.h>
#include <string.h>

static bool numbers(const TvNode *n, const char *name, uint32_t count, const double *usual,
                    uint32_t *found, double **out)
{
    const TvValue *v = tv_attr(n, name);

    *found = v ? v->n : count;
    *out = NEW_ARRAY(n->b.c->arena, double, *found + 1);
    if (v && v->kind != TV_LIST)
        return tv_error(n, E_IMPORT, "'%s' is no list of numbers", name);
    for (uint32_t i = 0; i < *found; i++) {
        if (v && v->list[i].kind != TV_FLOAT && v->list[i].kind != TV_INT)
            return tv_error(n, E_IMPORT, "'%s' is no list of numbers", name);
        (*out)[i] = v ? v->list[i].f : usual[i];
    }
    return true;
}

static bool need_rank(const TvNode *n, uint32_t i, uint32_t rank)
{
    return expr_rank(n->in[i]) == rank ||
           tv_error(n, E_IMPORT, "operand %u is %s", i, type_text(n->b.c, n->in[i]->type)) != NULL;
}

static const Expr *tuple(const TvNode *n, uint32_t count, const Expr *const *x)
{
    for (uint32_t i = 0; i < count; i++)
        if (!x[i])
            return NULL;
    return expr_tuple(n->b.c, count, x, n->b.loc);
}

/* ---- anchors ---------------------------------------------------------------------------------------- */

/* Sizes are those of squares, whatever the first ratio. */
const Expr *tv_multibox_prior(TvNode *n)
{
    static const double one[] = {1}, whole[] = {-1, -1}, middle[] = {0.5, 0.5};
    BuildAnchors        a = {.first = 1, .clip = tv_bool(n, "clip", false)};
    uint32_t            nsteps, noffsets;

    if (!need_rank(n, 0, 4) || !numbers(n, "sizes", 1, one, &a.nsizes, &a.sizes) ||
        !numbers(n, "ratios", 1, one, &a.nratios, &a.ratios) ||
        !numbers(n, "steps", 2, whole, &nsteps, &a.steps) ||
        !numbers(n, "offsets", 2, middle, &noffsets, &a.offsets))
        return NULL;
    if (nsteps != 2 || noffsets != 2)
        return tv_error(n, E_IMPORT, "%u steps, %u offsets", nsteps, noffsets);
    return build_anchors(&n->b, n->in[0], &a);
}

/* Those of [N, B] that hold come first, in their order: their positions, and how many they are. */
static const Expr *first_of(const Build *b, const Expr *holds, const Expr **count)
{
    int64_t axis = 1;

    *count = build_reduce(b, "sum", build_cast(b, holds, DT_I32), 1, &axis, false);
    return build_falling(b, build_cast(b, holds, DT_F32));
}

/* Which of B positions are before `count`, [N, B]. */
static const Expr *before(const Build *b, const Expr *count, int64_t B)
{
    const Expr *at = build_arange(b, idx_const(b->c->arith, B), DT_I32);

    return build_less(b, at, build_expand_dims(b, build_cast(b, count, DT_I32), 1, 1));
}

/* x where `there` [N, B] holds, -1 elsewhere; x [N, B] or [N, B, K]. */
static const Expr *or_none(const Build *b, const Expr *there, const Expr *x)
{
    if (!x || !there)
        return NULL;
    if (expr_rank(x) == 3)
        there = build_expand_dims(b, there, 2, 1);
    return build_where(b, there, x, build_scalar(b, x, -1));
}

/* Probabilities [N, C, A], of which the first is the background, boxes [N, A*4], anchors
 * [1, A, 4]: rows of class, probability and corners of what is something, [N, A, 6]; how many. */
const Expr *tv_multibox_transform_loc(TvNode *n)
{
    static const double usual[] = {0.1, 0.1, 0.2, 0.2};
    const Build        *b = &n->b;
    ArgReduceAttrs     *a = ATTRS(b, ArgReduceAttrs);
    int64_t             N, C, A, axis = 1;
    const Expr         *p, *score, *id, *valid, *boxes, *rows, *out[2];
    double             *spread;
    uint32_t            count;

    if (!need_rank(n, 0, 3) || !need_rank(n, 1, 2) || !need_rank(n, 2, 3) ||
        !numbers(n, "variances", 4, usual, &count, &spread))
        return NULL;
    N = build_dim(b, n->in[0], 0), C = build_dim(b, n->in[0], 1), A = build_dim(b, n->in[0], 2);
    if (count != 4 || C < 2 || A < 1 || build_dim(b, n->in[1], 1) != A * 4 ||
        build_dim(b, n->in[2], 1) != A || build_dim(b, n->in[2], 2) != 4)
        return tv_error(n, E_IMPORT, "%s, %s and %s", type_text(b->c, n->in[0]->type),
                        type_text(b->c, n->in[1]->type), type_text(b->c, n->in[2]->type));
    p = build_slice(b, n->in[0], 1, 1, C);
    score = build_reduce(b, "max", p, 1, &axis, false);
    a->axis = 1;
    id = build1(b, "argmax", p, a);
    valid = build_by(b, "greater_equal", score, tv_float(n, "threshold", 0.01));
    boxes = build_decoded(b, build_reshape(b, n->in[1], 3, (int64_t[]){N, A, 4}), n->in[2], true,
                          spread, 0);
    if (tv_bool(n, "clip", true))
        boxes = build_clip(b, boxes, 0, 1);
    if (!score || !id)
        return NULL;
    id = build_expand_dims(b, build_cast(b, id, expr_dtype(score)), 2, 1);
    rows = build_concat(b, 3, (const Expr *[]){id, build_expand_dims(b, score, 2, 1), boxes}, 2);
    rows = build_rows_at(b, rows, first_of(b, valid, &out[1]));
    out[0] = or_none(b, out[1] ? before(b, out[1], A) : NULL, rows);
    return tuple(n, 2, out);
}

/* ---- those that stay --------------------------------------------------------------------------------- */

/* Data [N, B, K]: how many rows have a score above the threshold, these rows, their numbers. */
const Expr *tv_get_valid_counts(TvNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *valid, *order, *there, *out[3];
    int64_t      id = tv_int(n, "id_index", 0), score = tv_int(n, "score_index", 1), N, B, K;
    double       least = tv_float(n, "score_threshold", 0);

    if (!need_rank(n, 0, 3) || (n->nin == 2 && !expr_const_f(n->in[1], &least)))
        return tv_error(n, E_UNSUPPORTED, "data %s, or a threshold that is no constant",
                        type_text(b->c, x->type));
    N = build_dim(b, x, 0), B = build_dim(b, x, 1), K = build_dim(b, x, 2);
    if (score < 0 || score >= K || id >= K)
        return tv_error(n, E_IMPORT, "rows of %lld numbers", (long long)K);
    valid = build_by(b, "greater", build_column(b, x, score), least);
    if (id >= 0)
        valid = build2(b, "logical_and", valid,
                       build_by(b, "greater_equal", build_column(b, x, id), 0), NULL);
    order = first_of(b, build_reshape(b, valid, 2, (int64_t[]){N, B}), &out[0]);
    there = out[0] ? before(b, out[0], B) : NULL;
    out[1] = or_none(b, there, build_rows_at(b, x, order));
    out[2] = or_none(b, there, order ? build_cast(b, order, DT_I32) : NULL);
    return tuple(n, 3, out);
}

/* Each box without a class is one by itself. */
static const Expr *classes(const Build *b, const Expr *ids, int64_t B)
{
    const Expr *own = build_by(
        b, "subtract",
        build1(b, "negative", build_arange(b, idx_const(b->c->arith, B), DT_F32), NULL), 1);

    ids = ids ? build_cast(b, ids, DT_F32) : NULL;
    return ids ? build_where(b, build_by(b, "less", ids, 0), own, ids) : NULL;
}

/* The first `most` of positions [N, B]; -1 all. */
static const Expr *at_most(const Build *b, const Expr *at, int64_t most, int64_t B)
{
    const Expr *i = build_arange(b, idx_const(b->c->arith, B), DT_I64);

    return most < 0 || !at
               ? at
               : build_where(b, build_by(b, "less", i, (double)most), at, build_scalar(b, at, -1));
}

/* Data [N, B, K], how many of them count, their numbers; most, overlap.  With return_indices the
 * numbers of those that stay, [N, B], and how many; else their rows, best first, and -1 for the
 * others, which may all be behind them. */
const Expr *tv_non_max_suppression(TvNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *scores, *boxes, *valid, *there, *at, *order, *ids = NULL, *out[2];
    int64_t      coord = tv_int(n, "coord_start", 2), score = tv_int(n, "score_index", 1),
            id = tv_int(n, "id_index", 0), axis = 1, N, B, K;
    double most, overlap;

    if (!need_rank(n, 0, 3) || !need_rank(n, 1, 1) || !need_rank(n, 2, 2))
        return NULL;
    if (!expr_const_f(n->in[3], &most) || !expr_const_f(n->in[4], &overlap) || !(overlap > 0))
        return tv_error(n, E_UNSUPPORTED,
                        "how many stay, and what they may overlap, are no "
                        "constants, or 0");
    N = build_dim(b, x, 0), B = build_dim(b, x, 1), K = build_dim(b, x, 2);
    if (coord < 0 || coord + 4 > K || score < 0 || score >= K || id >= K || B < 1 ||
        !(fabs(most) < INT32_MAX))
        return tv_error(n, E_IMPORT, "rows of %lld numbers", (long long)K);
    scores = build_reshape(b, build_column(b, x, score), 2, (int64_t[]){N, B});
    boxes = build_slice(b, x, 2, coord, coord + 4);
    valid =
        build2(b, "logical_and", before(b, n->in[1], B), build_by(b, "greater", scores, 0), NULL);
    if (id >= 0 && !tv_bool(n, "force_suppress", false))
        ids = classes(b, build_reshape(b, build_column(b, x, id), 2, (int64_t[]){N, B}), B);
    scores = build_best_scores(b, scores, valid, tv_int(n, "top_k", -1));
    /* What overlaps as much goes, too. */
    at = at_most(b, build_kept(b, boxes, scores, ids, nextafterf((float)overlap, 0)), (int64_t)most,
                 B);
    if (!at)
        return NULL;
    if (tv_bool(n, "return_indices", true)) {
        there = build_by(b, "greater_equal", at, 0);
        out[1] = build_cast(b, there, DT_I32);
        out[1] = out[1] ? build_reduce(b, "sum", out[1], 1, &axis, true) : NULL;
        at = build_rows_at(b, n->in[2], build_by(b, "maximum", at, 0));
        out[0] = or_none(b, there, at);
        return tuple(n, 2, out);
    }
    if (tv_bool(n, "invalid_to_bottom", false)) {
        there = build_by(b, "greater_equal", at, 0);
        return or_none(b, there, build_rows_at(b, x, build_by(b, "maximum", at, 0)));
    }
    order = build_falling(b, scores);
    there = build_cast(b, build_marked(b, at, N, B), DT_I32);
    there = there ? build_by(b, "greater", build_rows_at(b, there, order), 0) : NULL;
    return or_none(b, there, build_rows_at(b, x, order));
}

/* Boxes [N, B, 4], scores [N, C, B], how many of a class, overlap, least score: image, class and
 * box of those that stay, [N*C*B, 3], and how many. */
const Expr *tv_all_class_non_max_suppression(TvNode *n)
{
    const Build            *b = &n->b;
    Arith                  *A = b->c->arith;
    NonMaxSuppressionAttrs *a = ATTRS(b, NonMaxSuppressionAttrs);
    SortAttrs              *by = ATTRS(b, SortAttrs);
    const char             *format = tv_text(n, "output_format", "onnx");
    int64_t                 N, C, B, axis = 1, all;
    const Expr             *in[6], *at, *flat, *parts[3], *there, *out[2];

    if (strcmp(format, "onnx") != 0)
        return tv_error(n, E_UNSUPPORTED, "'output_format' is %s", format);
    if (!need_rank(n, 0, 3) || !need_rank(n, 1, 3))
        return NULL;
    N = build_dim(b, n->in[1], 0), C = build_dim(b, n->in[1], 1), B = build_dim(b, n->in[1], 2);
    if (N < 1 || C < 1 || B < 1 || build_dim(b, n->in[0], 0) != N ||
        build_dim(b, n->in[0], 1) != B || build_dim(b, n->in[0], 2) != 4 ||
        !checked_mul(N, C, &all) || !checked_mul(all, B, &all) || all > INT32_MAX)
        return tv_error(n, E_IMPORT, "%s and %s", type_text(b->c, n->in[0]->type),
                        type_text(b->c, n->in[1]->type));
    by->is_ascend = false;
    by->dtype = DT_I64;
    memcpy(in, n->in, 2 * sizeof *in);
    in[2] = build1(b, "argsort", in[1], by);
    for (uint32_t i = 2; i < 5; i++)
        in[i + 1] = build_reshape(b, n->in[i], 0, NULL);
    in[3] = in[3] ? build_cast(b, in[3], DT_I64) : NULL;
    a->room = dims_dup(b->c, (const Idx *[]){idx_const(A, B)}, 1);
    at = build_reshape(b, build_call(b, "vision.non_max_suppression", 6, in, a), 2,
                       (int64_t[]){1, all});
    there = at ? build_by(b, "greater_equal", at, 0) : NULL;
    flat = there ? first_of(b, there, &out[1]) : NULL;
    if (!flat || !out[1])
        return NULL;
    parts[0] = build_by(b, "floor_divide", flat, (double)(C * B));
    parts[1] = build_by(b, "floor_mod", build_by(b, "floor_divide", flat, (double)B), (double)C);
    parts[2] = build_rows_at(b, at, flat);
    there = before(b, out[1], all);
    for (uint32_t i = 0; i < 3; i++) {
        parts[i] = parts[i] ? build_cast(b, parts[i], DT_I64) : NULL;
        parts[i] = parts[i] ? build_where(b, there, parts[i], build_scalar(b, parts[i], 0)) : NULL;
        parts[i] = build_reshape(b, parts[i], 2, (int64_t[]){all, 1});
    }
    out[0] = build_concat(b, 3, parts, axis);
    out[1] = build_cast(b, out[1], DT_I64);
    return tuple(n, 2, out);
}

/* ---- regions ------------------------------------------------------------------------------------------ */

/* Probabilities of anchors, what to change of them, sizes of images [N, 3]. */
const Expr *tv_proposal(TvNode *n)
{
    static const double scales[] = {4, 8, 16, 32}, ratios[] = {0.5, 1, 2};
    BuildProposals      p = {.stride = (double)tv_int(n, "feature_stride", 16),
                             .threshold = tv_float(n, "threshold", 0.7),
                             .least = (double)tv_int(n, "rpn_min_size", 16),
                             .before = tv_int(n, "rpn_pre_nms_top_n", 6000),
                             .after = tv_int(n, "rpn_post_nms_top_n", 300),
                             .corners = tv_bool(n, "iou_loss", false)};
    const Expr         *regions, *best;

    return numbers(n, "scales", 4, scales, &p.nscales, &p.scales) &&
                   numbers(n, "ratios", 3, ratios, &p.nratios, &p.ratios) &&
                   build_proposals(&n->b, &p, n->in[0], n->in[1], n->in[2], &regions, &best)
               ? regions
               : NULL;
}

const Expr *tv_roi_pool(TvNode *n)
{
    int64_t size[2];

    if (!need_rank(n, 0, 4) || !need_rank(n, 1, 2) || !tv_sizes(n, "pooled_size", 2, 1, size))
        return NULL;
    if (build_dim(&n->b, n->in[1], 1) != 5 || size[0] < 1 || size[1] < 1)
        return tv_error(n, E_IMPORT, "regions %s", type_text(n->b.c, n->in[1]->type));
    return build_roi_pool(&n->b, n->in[0], n->in[1], size, tv_float(n, "spatial_scale", 1));
}

/* As Darknet has it: the cells of an image of a share of the channels, and so much wider and
 * higher, as blocks. */
const Expr *tv_yolo_reorg(TvNode *n)
{
    const Build *b = &n->b;
    int64_t      s = tv_int(n, "stride", 1), C, H, W, N;

    if (!need_rank(n, 0, 4))
        return NULL;
    N = build_dim(b, n->in[0], 0), C = build_dim(b, n->in[0], 1);
    H = build_dim(b, n->in[0], 2), W = build_dim(b, n->in[0], 3);
    if (s < 1 || s > 1024 || C % (s * s) || H % s || W % s)
        return tv_error(n, E_IMPORT, "blocks of %lld of %s", (long long)s,
                        type_text(b->c, n->in[0]->type));
    return build_reshape(
        b,
        build_space_to_depth(
            b, build_reshape(b, n->in[0], 4, (int64_t[]){N, C / (s * s), H * s, W * s}), s),
        4, (int64_t[]){N, C * s * s, H / s, W / s});
}

const Expr *tv_correlation(TvNode *n)
{
    BuildCorrelation k = {.kernel = tv_int(n, "kernel_size", 1),
                          .most = tv_int(n, "max_displacement", 1),
                          .stride1 = tv_int(n, "stride1", 1),
                          .stride2 = tv_int(n, "stride2", 1),
                          .products = tv_bool(n, "is_multiply", true)};
    Ints             pad;

    if (!tv_ints(n, "padding", &pad))
        return NULL;
    for (uint32_t i = 0; i < pad.n; i++) {
        if (pad.at[i] != pad.at[0])
            return tv_error(n, E_UNSUPPORTED, "a padding of %lld and %lld", (long long)pad.at[0],
                            (long long)pad.at[i]);
        k.pad = pad.at[i];
    }
    return build_correlation(&n->b, n->in[0], n->in[1], &k);
}
