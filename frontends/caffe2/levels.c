/* Regions of pyramids of features (FPN): the best of all levels, and each by its size to the level
 * that it is cut out of. How many a level has, the run decides: a dimension "NAME.0" of each. */
#include "frontends/caffe2/caffe2.h"

#include <math.h>

/* The best `rpn_post_nms_topN` of the regions [R, 5] of half of the operands, by their scores [R]
 * or [R, 1], which are the other half; the first of those that are equal. */
static const Expr *collected(C2Node *n)
{
    const Build *b = &n->b;
    SortAttrs   *by = ATTRS(b, SortAttrs);
    const Expr **score = NEW_ARRAY(b->c->arena, const Expr *, n->nin), *rois, *scores;
    int64_t      most = c2_int(n, "rpn_post_nms_topN", 2000);
    uint32_t     levels = n->nin / 2;
    const Idx   *all;

    if (n->nin % 2)
        return c2_error(n, E_IMPORT, "%u operands, of which half are scores", n->nin);
    for (uint32_t i = 0; i < levels; i++) {
        const Expr *x = n->in[i], *s = n->in[levels + i];

        if (!c2_rank(n, i, 2, 2) || build_dim(b, x, 1) != 5 || !c2_rank(n, levels + i, 1, 2) ||
            type_cells(b->c, s->type) != expr_form(x, 0))
            return c2_error(n, E_IMPORT, "scores %s of regions %s", type_text(b->c, s->type),
                            type_text(b->c, x->type));
        score[i] = build_reshape_to(b, s, 1, (const Idx *[]){expr_form(x, 0)});
    }
    rois = build_concat(b, levels, n->in, 0);
    scores = build_concat(b, levels, score, 0);
    if (!rois || !scores)
        return NULL;
    by->is_ascend = false;
    by->dtype = DT_I64;
    rois = build_take(b, rois, build1(b, "argsort", scores, by), 0);
    all = expr_form(scores, 0);
    return rois && most > 0 && most < all->hi
               ? build_slice_to(b, rois, 0, idx_const(b->c->arith, 0),
                                idx_min(b->c->arith, all, idx_const(b->c->arith, most)))
               : rois;
}

bool c2_collect_rpn_proposals(C2Node *n)
{
    return c2_done(n, collected(n));
}

/* floor(canonical level + log2(sqrt(area) / canonical scale + 1e-6)), [R, 1], of regions [R, 5]. */
static const Expr *level_of(C2Node *n, const Expr *rois, double one)
{
    const Build *b = &n->b;
    const Expr  *side[2], *x;

    for (int64_t i = 0; i < 2; i++)
        side[i] =
            build_by(b, "add",
                     build_sub(b, build_column(b, rois, 3 + i), build_column(b, rois, 1 + i)), one);
    x = build1(b, "sqrt", build_mul(b, side[0], side[1]), NULL);
    x = build_by(b, "divide", x, (double)c2_int(n, "roi_canonical_scale", 224));
    x = build1(b, "log", build_by(b, "add", x, 1e-6), NULL);
    x = build_by(b, "divide", x, log(2));
    x = build_by(b, "add", x, (double)c2_int(n, "roi_canonical_level", 4));
    return build1(b, "floor", x, NULL);
}

/* The regions of each level to the results from `first` on, and behind them for each region its
 * place among the levels, one behind the other. */
static bool distribute(C2Node *n, const Expr *rois, uint32_t first, double one)
{
    const Build *b = &n->b;
    int64_t      lo = c2_int(n, "roi_min_level", 2), hi = c2_int(n, "roi_max_level", 5);
    const Expr  *level, *place = NULL, *before = NULL;
    const Idx   *R;

    if (lo < 0 || lo > hi || hi - lo > 30 || n->nout != first + (uint32_t)(hi - lo) + 2)
        return c2_error(n, E_IMPORT, "%u results, for levels from %lld to %lld", n->nout,
                        (long long)lo, (long long)hi);
    R = expr_form(rois, 0);
    level = build_clip(b, level_of(n, rois, one), (double)lo, (double)hi);
    level = level ? build_reshape_to(b, level, 1, &R) : NULL;
    if (!level)
        return false;
    for (int64_t i = lo; i <= hi; i++) {
        const Expr *is = build_by(b, "equal", level, (double)i), *ones, *at, *sum;
        uint32_t    out = first + (uint32_t)(i - lo);

        ones = is ? build_cast(b, is, DT_I32) : NULL;
        at = ones ? c2_set_flags(n, out, is) : NULL;
        sum = at ? build1(b, "cumsum", ones, NULL) : NULL;
        if (!sum || !c2_put(n, out, build_take(b, rois, at, 0)))
            return false;
        sum = build_by(b, "subtract", sum, 1);
        sum = before ? build_add(b, sum, before) : sum;
        place = place ? build_where(b, is, sum, place) : sum;
        ones = build_reduce(b, "sum", ones, 1, (int64_t[]){0}, false);
        before = before ? build_add(b, before, ones) : ones;
    }
    return c2_put(n, n->nout - 1, place);
}

bool c2_distribute_fpn_proposals(C2Node *n)
{
    if (!c2_rank(n, 0, 2, 2) || build_dim(&n->b, n->in[0], 1) != 5)
        return c2_error(n, E_IMPORT, "regions %s", type_text(n->b.c, n->in[0]->type));
    return distribute(n, n->in[0], 0, c2_plus_one(n));
}

bool c2_collect_and_distribute(C2Node *n)
{
    const Expr *rois = collected(n);

    return rois && c2_done(n, rois) && distribute(n, rois, 1, 1);
}
