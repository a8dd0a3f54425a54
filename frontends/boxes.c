/* Boxes of which the best are kept. */
#include "frontends/calls.h"

/* The best `room` of boxes [B, 4] (y, x, y, x) by scores [B] above `least` that overlap none of
 * those before by more than `overlap`: their positions [room], -1 behind the last. */
const Expr *build_best_boxes(const Build *b, const Expr *boxes, const Expr *scores, int64_t room,
                             const Expr *overlap, const Expr *least)
{
    NonMaxSuppressionAttrs *a = ATTRS(b, NonMaxSuppressionAttrs);
    SortAttrs              *by = ATTRS(b, SortAttrs);
    const Idx              *one = idx_const(b->c->arith, 1), *n;
    const Expr             *in[6];

    if (!boxes || !scores)
        return NULL;
    n = expr_form(scores, 0);
    in[0] = build_reshape_to(b, boxes, 3, (const Idx *[]){one, n, idx_const(b->c->arith, 4)});
    in[1] = build_reshape_to(b, scores, 3, (const Idx *[]){one, one, n});
    by->is_ascend = false;
    by->dtype = DT_I64;
    in[2] = build1(b, "argsort", in[1], by);
    in[3] = expr_scalar(b->c, DT_I64, (double)room);
    in[4] = overlap;
    in[5] = least;
    a->room = dims_dup(b->c, (const Idx *[]){idx_const(b->c->arith, room)}, 1);
    return build_reshape(b, build_call(b, "vision.non_max_suppression", 6, in, a), 1, &room);
}

const Expr *build_best_padded(const Build *b, const Expr *boxes, const Expr *scores, int64_t most,
                              const Expr *overlap, const Expr *least)
{
    int64_t     n, rest;
    const Expr *at, *none;

    if (!boxes || !scores)
        return NULL;
    n = build_dim(b, scores, 0);
    rest = most - n;
    at = build_best_boxes(b, boxes, scores, most < n ? most : n, overlap, least);
    if (!at || rest <= 0)
        return at;
    none = build_broadcast(b, expr_scalar(b->c, DT_I64, -1), 1, &rest);
    return build_concat(b, 2, (const Expr *[]){at, none}, 0);
}

/* Cells at these positions, where there is one (it is not -1), else 0. */
const Expr *build_picked(const Build *b, const Expr *cells, const Expr *at, const Expr *there)
{
    const Expr *x = build_take(b, cells, build_by(b, "maximum", at, 0), 0);

    return build_where(b, there, x, build_scalar(b, x, 0));
}
