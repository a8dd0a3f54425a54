/* Boxes of which the best are kept. */
#include "frontends/calls.h"

/* The best `most`, an i64, of boxes [B, 4] (y, x, y, x) by scores [B] above `least` that overlap
 * none of those before by more than `overlap`: their positions [room], -1 behind the last. */
const Expr *build_best_boxes(const Build *b, const Expr *boxes, const Expr *scores, const Idx *room,
                             const Expr *most, const Expr *overlap, const Expr *least)
{
    NonMaxSuppressionAttrs *a = ATTRS(b, NonMaxSuppressionAttrs);
    SortAttrs              *by = ATTRS(b, SortAttrs);
    const Idx              *one = idx_const(b->c->arith, 1), *n;
    const Expr             *in[6];

    if (!boxes || !scores || !most)
        return NULL;
    n = expr_form(scores, 0);
    in[0] = build_reshape_to(b, boxes, 3, (const Idx *[]){one, n, idx_const(b->c->arith, 4)});
    in[1] = build_reshape_to(b, scores, 3, (const Idx *[]){one, one, n});
    by->is_ascend = false;
    by->dtype = DT_I64;
    in[2] = build1(b, "argsort", in[1], by);
    in[3] = most;
    in[4] = overlap;
    in[5] = least;
    a->room = dims_dup(b->c, &room, 1);
    return build_reshape_to(b, build_call(b, "vision.non_max_suppression", 6, in, a), 1, &room);
}

/* Room for the best of those boxes, within which a run counts them. */
const Idx *build_best_room(const Build *b, const Shapes *s, const Idx *boxes, const Idx *most)
{
    return shapes_most(s, idx_min(b->c->arith, boxes, most));
}

const Expr *build_best_padded(const Build *b, const Shapes *s, const Expr *boxes,
                              const Expr *scores, const Idx *most, const Expr *overlap,
                              const Expr *least)
{
    Arith      *A = b->c->arith;
    const Idx  *room, *rest;
    const Expr *at, *none;
    int64_t     v;

    if (!boxes || !scores)
        return NULL;
    room = build_best_room(b, s, expr_form(scores, 0), most);
    at = build_best_boxes(b, boxes, scores, room, build_number(b, most), overlap, least);
    rest = idx_sub(A, shapes_most(s, most), room);
    if (at && rest->hi > 0) {
        rest = idx_max(A, rest, idx_const(A, 0));
        none = build_broadcast_to(b, expr_scalar(b->c, DT_I64, -1), 1, &rest);
        at = build_concat(b, 2, (const Expr *[]){at, none}, 0);
    }
    return idx_is_const(most, &v) ? at : build_slice_to(b, at, 0, idx_const(A, 0), most);
}

/* Cells at these positions, where there is one (it is not -1), else 0. */
const Expr *build_picked(const Build *b, const Expr *cells, const Expr *at, const Expr *there)
{
    const Expr *x = build_take(b, cells, build_by(b, "maximum", at, 0), 0);

    return build_where(b, there, x, build_scalar(b, x, 0));
}
