/* Boxes: anchors, what networks say of them, and the best of those that overlap. */
#include "frontends/mxnet/mxnet.h"

#include <math.h>
#include <string.h>

/* ---- anchors ---------------------------------------------------------------------------------------- */

bool mx_multibox_prior(MxNode *n)
{
    BuildAnchors a = {.clip = mx_bool(n, "clip")};
    uint32_t     nsteps, noffsets;

    mx_floats(n, "sizes", &a.nsizes, &a.sizes);
    mx_floats(n, "ratios", &a.nratios, &a.ratios);
    mx_floats(n, "steps", &nsteps, &a.steps);
    mx_floats(n, "offsets", &noffsets, &a.offsets);
    if (nsteps != 2 || noffsets != 2)
        return mx_error(n, E_IMPORT, "%u steps, %u offsets", nsteps, noffsets);
    a.first = a.nratios ? a.ratios[0] : 1;
    return mx_rank(n, 0, 4, 4) && mx_done(n, build_anchors(&n->b, n->in[0], &a));
}

/* ---- from anchors to boxes -------------------------------------------------------------------------- */

bool mx_box_decode(MxNode *n)
{
    double spread[4] = {mx_float(n, "std0"), mx_float(n, "std1"), mx_float(n, "std2"),
                        mx_float(n, "std3")};

    return mx_rank(n, 0, 3, 3) && mx_rank(n, 1, 3, 3) &&
           mx_done(n, build_decoded(&n->b, n->in[0], n->in[1], mx_is(n, "format", "corner"), spread,
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
        const Expr *from = build2(b, "maximum", build_column(b, x, i), build_column(b, y, i), NULL);
        const Expr *to =
            build2(b, "minimum", build_column(b, x, 2 + i), build_column(b, y, 2 + i), NULL);
        const Expr *side = build_by(b, "maximum", build_sub(b, to, from), 0);
        const Expr *of[2] = {build_sub(b, build_column(b, x, 2 + i), build_column(b, x, i)),
                             build_sub(b, build_column(b, y, 2 + i), build_column(b, y, i))};

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
    scores = build_reshape(b, build_column(b, x, score), 2, (int64_t[]){N, B});
    boxes = build_slice(b, x, 2, coord, coord + 4);
    valid = build_by(b, "greater", scores, mx_float(n, "valid_thresh"));
    if (id >= 0)
        ids = build_reshape(b, build_column(b, x, id), 2, (int64_t[]){N, B});
    if (id >= 0 && mx_int(n, "background_id") >= 0)
        valid = build2(b, "logical_and", valid,
                       build_by(b, "not_equal", ids, (double)mx_int(n, "background_id")), NULL);
    if (mx_is(n, "in_format", "center"))
        boxes = as_corners(b, boxes);
    at = build_kept(b, boxes, build_best_scores(b, scores, valid, mx_int(n, "topk")),
                    mx_bool(n, "force_suppress") ? NULL : ids, overlap);
    there = build_expand_dims(b, build_by(b, "greater_equal", at, 0), 2, 1);
    x = build_rows_at(b, x, build_by(b, "maximum", at, 0));
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

/* The best k rows, and behind them what MXNet leaves there: those of that place in the order of the
 * anchors, as none that stays. */
static const Expr *with_tail(const Build *b, const Expr *rows, const Expr *order, const Expr *valid,
                             int64_t k)
{
    const Expr *at = build_arange(b, idx_const(b->c->arith, build_dim(b, rows, 1)), DT_I64),
               *first = build_by(b, "less", at, (double)k), *id;

    order = build_where(b, first, order, build_falling(b, build_cast(b, valid, DT_F32)));
    rows = build_rows_at(b, rows, order);
    id = build_column(b, rows, 0);
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
    boxes = build_decoded(b, build_reshape(b, n->in[1], 3, (int64_t[]){N, A, 4}), n->in[2], true,
                          spread, 0);
    if (mx_bool(n, "clip"))
        boxes = build_clip(b, boxes, 0, 1);
    best = build_best_scores(b, score, valid, topk);
    if (!best || !id || !boxes)
        return false;
    if (overlap > 0 && overlap <= 1) {
        /* What overlaps as much goes, too. */
        kept = build_marked(b,
                            build_kept(b, boxes, best, mx_bool(n, "force_suppress") ? NULL : id,
                                       nextafterf((float)overlap, 0)),
                            N, A);
        order = build_falling(b, build_where(b, valid, score, build_scalar(b, score, -INFINITY)));
    } else { /* in the order of the anchors */
        kept = valid;
        order = build_falling(b, build_cast(b, valid, DT_F32));
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
    return mx_done(n, build_rows_at(b, rows, order));
}
