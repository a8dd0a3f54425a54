/* Boxes of which the best are kept: an operator, a layer, and the model at the end of detectors.
 *
 * Boxes are centers and sizes (x, y, width, height), scores those of classes; a box has the best of
 * its scores and, where classes are kept apart, the class of that.  What is below the least score
 * is not there; what overlaps a better box by more than the threshold goes. */
#include "frontends/coreml/coreml.h"

#include <float.h>
#include <math.h>
#include <string.h>

typedef struct {
    const Expr *boxes, *scores;  /* [N, B, 4], [N, B, C] */
    const Expr *overlap, *least; /* numbers; least NULL: none */
    int64_t     most;
    bool        apart; /* classes */
} Suppress;

static const Expr *number_of(const Build *b, const Expr *x)
{
    return x ? build_reshape(b, build_cast(b, x, DT_F32), 0, NULL) : NULL;
}

/* Best first, -FLT_MAX and below: those that are not there. */
static const Expr *ordered(const Build *b, const Expr *scores)
{
    SortAttrs *a = ATTRS(b, SortAttrs);

    a->is_ascend = false;
    a->dtype = DT_I64;
    return scores ? build1(b, "argsort", scores, a) : NULL;
}

/* Scores [N, C, B] of boxes in lists of their own, C, each up to `room`: [N, C, room]. */
static const Expr *kept_of(const Build *b, const Suppress *s, const Expr *scores, int64_t room)
{
    NonMaxSuppressionAttrs *a = ATTRS(b, NonMaxSuppressionAttrs);
    const Expr             *in[6] = {s->boxes,           scores,
                                     ordered(b, scores), expr_scalar(b->c, DT_I64, (double)room),
                                     s->overlap,         expr_scalar(b->c, DT_F32, -FLT_MAX)};

    a->center = true;
    a->room = dims_dup(b->c, (const Idx *[]){idx_const(b->c->arith, room)}, 1);
    return in[0] && in[2] && in[4] ? build_call(b, "vision.non_max_suppression", 6, in, a) : NULL;
}

/* Those of classes apart, in one list by their scores [N, B]: [N, most]. */
static const Expr *merged(const Build *b, const Expr *kept, const Expr *best, int64_t most)
{
    GatherAttrs *a = ATTRS(b, GatherAttrs);
    int64_t      N = build_dim(b, best, 0), all = build_dim(b, kept, 1) * build_dim(b, kept, 2);
    const Expr  *there, *scores, *order;

    kept = build_reshape(b, kept, 2, (int64_t[]){N, all});
    there = build_by(b, "greater_equal", kept, 0);
    a->axis = 1;
    scores = build2(b, "gather", best, build_by(b, "maximum", kept, 0), a);
    scores = scores ? build_where(b, there, scores, build_scalar(b, scores, -INFINITY)) : NULL;
    order = build_slice(b, ordered(b, scores), 1, 0, most);
    return order ? build2(b, "gather", kept, order, a) : NULL;
}

/* Positions of the boxes that stay, best first, [N, most] with -1 behind them; *best: scores [N,
 * B]. */
static const Expr *suppressed(const Build *b, const Suppress *s, const Expr **best)
{
    ArgReduceAttrs *a = ATTRS(b, ArgReduceAttrs);
    OneHotAttrs    *hot = ATTRS(b, OneHotAttrs);
    int64_t         axis = 2, N, B, C, room, pads[4] = {0};
    const Expr     *scores, *at, *own;

    if (!s->boxes || !s->scores)
        return NULL;
    N = build_dim(b, s->scores, 0), B = build_dim(b, s->scores, 1), C = build_dim(b, s->scores, 2);
    if (B < 1 || C < 1 || N < 1 || expr_rank(s->boxes) != 3 || build_dim(b, s->boxes, 0) != N ||
        build_dim(b, s->boxes, 1) != B || build_dim(b, s->boxes, 2) != 4 || s->most < 1 ||
        s->most > MAX_ELEMS)
        return build_error(b, E_IMPORT, "%s and %s, of which %lld are to stay",
                           type_text(b->c, s->boxes->type), type_text(b->c, s->scores->type),
                           (long long)s->most);
    *best = scores = build_reduce(b, "max", s->scores, 1, &axis, false);
    if (scores && s->least)
        scores = build_where(b, build2(b, "greater_equal", scores, s->least, NULL), scores,
                             build_scalar(b, scores, -INFINITY));
    scores = build_expand_dims(b, scores, 1, 1); /* [N, 1, B] */
    if (!scores)
        return NULL;
    room = s->most < B ? s->most : B;
    if (s->apart && C > 1) {
        a->axis = 2;
        a->dtype = DT_I64;
        hot->depth = C;
        hot->axis = 1;
        hot->dtype = DT_F32;
        own = build3(b, "one_hot", build1(b, "argmax", s->scores, a), expr_scalar(b->c, DT_F32, 1),
                     expr_scalar(b->c, DT_F32, 0), hot);
        scores = build_where(b, build_by(b, "greater", own, 0), scores,
                             build_scalar(b, scores, -INFINITY));
        at = merged(b, scores ? kept_of(b, s, scores, room) : NULL, *best, room);
    } else {
        at = build_reshape(b, kept_of(b, s, scores, room), 2, (int64_t[]){N, room});
    }
    pads[3] = s->most - room;
    return build_pad(b, at, pads, -1, NULL);
}

/* Rows of x [N, B, K] at these positions, 0 where there is none. */
static const Expr *rows_at(const Build *b, const Expr *x, const Expr *at)
{
    GatherNdAttrs *a = ATTRS(b, GatherNdAttrs);
    const Expr    *rows, *there = build_expand_dims(b, build_by(b, "greater_equal", at, 0), 2, 1);

    a->batch_dims = 1;
    rows = build_expand_dims(b, build_by(b, "maximum", at, 0), 0, 1);
    rows = rows && x ? build2(b, "gather_nd", x, rows, a) : NULL;
    return rows ? build_where(b, there, rows, build_scalar(b, rows, 0)) : NULL;
}

/* ---- operators, layers -------------------------------------------------------------------------------- */

/* A setting of the operator, which of a layer may be an operand, too. */
static const Expr *threshold(CmlNode *n, const char *name, const char *field)
{
    return cml_arg(n, name) ? number_of(&n->b, cml_x(n, name))
                            : expr_scalar(n->b.c, DT_F32, cml_float(n, field, 0));
}

static bool suppress(CmlNode *n, Suppress *s, bool last, bool counted)
{
    const Build    *b = &n->b;
    int64_t         axis = 1;
    const Expr     *boxes = s->boxes, *scores = s->scores, *at, *best, *first, *count;
    DType           t = boxes ? expr_dtype(boxes) : DT_F32, index = n->layer ? DT_F32 : DT_I32;
    ArgReduceAttrs *a = ATTRS(b, ArgReduceAttrs);

    if (!boxes || !scores || !s->overlap || expr_rank(boxes) != 3 || expr_rank(scores) != 3)
        return boxes && scores && s->overlap
                   ? cml_error(n, E_IMPORT, "boxes %s and scores %s", type_text(b->c, boxes->type),
                               type_text(b->c, scores->type))
                   : false;
    if (last) { /* [N, 4, B], [N, C, B] */
        boxes = build_transpose(b, boxes, 3, (int64_t[]){0, 2, 1});
        scores = build_transpose(b, scores, 3, (int64_t[]){0, 2, 1});
    }
    s->boxes = build_cast(b, boxes, DT_F32);
    s->scores = build_cast(b, scores, DT_F32);
    if (!(at = suppressed(b, s, &best)))
        return false;
    if (n->layer) { /* none is above the least score: the best one */
        a->axis = 1;
        a->keepdims = true;
        a->dtype = DT_I64;
        first = build_slice(b, at, 1, 0, 1);
        first = build_where(b, build_by(b, "less", first, 0), build1(b, "argmax", best, a), first);
        at = s->most > 1
                 ? build_concat(b, 2, (const Expr *[]){first, build_slice(b, at, 1, 1, s->most)}, 1)
                 : first;
    }
    boxes = rows_at(b, boxes, at);
    scores = rows_at(b, scores, at);
    if (last && boxes && scores) {
        boxes = build_transpose(b, boxes, 3, (int64_t[]){0, 2, 1});
        scores = build_transpose(b, scores, 3, (int64_t[]){0, 2, 1});
    }
    count = build_by(b, "greater_equal", at, 0);
    count = count ? build_reduce(b, "sum", build_cast(b, count, DT_I32), 1, &axis, false) : NULL;
    if (!boxes || !scores || !count)
        return false;
    return cml_done_at(n, 0, build_cast(b, boxes, t)) &&
           cml_done_at(n, 1, build_cast(b, scores, t)) &&
           cml_done_at(n, 2, build_cast(b, at, index)) &&
           (!counted || cml_done_at(n, 3, build_cast(b, count, index)));
}

/* Without a least score boxes lie along the last dimension, and nobody counts them. */
bool cml_non_maximum_suppression(CmlNode *n)
{
    bool     old = cml_arg(n, "score_threshold") != NULL;
    Suppress s = {.boxes = cml_x(n, "boxes"),
                  .scores = cml_x(n, "scores"),
                  .overlap = threshold(n, "iou_threshold", "iou_threshold"),
                  .most = cml_int(n, "max_boxes", 0),
                  .apart = cml_bool(n, "per_class_suppression", false)};

    if (old && !(s.least = threshold(n, "score_threshold", "score_threshold")))
        return false;
    return suppress(n, &s, !old, old);
}

bool cml_layer_non_maximum_suppression(CmlNode *n)
{
    Suppress s = {.boxes = cml_x(n, "boxes"),
                  .scores = cml_x(n, "scores"),
                  .overlap = threshold(n, "overlap", "iou_threshold"),
                  .least = threshold(n, "least", "score_threshold"),
                  .most = cml_int(n, "max_boxes", 0),
                  .apart = cml_bool(n, "per_class_suppression", false)};
    Ints     most;

    if (cml_arg(n, "most")) {
        if (!cml_ints(n, "most", &most) || most.n != 1)
            return cml_error(n, E_UNSUPPORTED, "how many boxes, the run is to decide");
        s.most = most.at[0];
    }
    return s.least && suppress(n, &s, false, true);
}

/* ---- the model at the end of a pipeline ------------------------------------------------------------------- */

typedef struct {
    CmlImport   *im;
    const Build *b;
} Bound;

static const Idx *bound_dim(void *user, const Expr *total, const Idx *most)
{
    Bound      *u = user;
    const Expr *bind;
    const char *name = intern(u->im->c->strings, "boxes.0");
    const Idx  *k = build_bound_dim(u->b, &u->im->shapes, name, total, most, &bind);

    if (k)
        vec_push(u->im->c->arena, &u->im->binds, bind);
    return k;
}

/* A threshold that an input of the model gives, or the model itself. */
static const Expr *given_number(const Build *b, const CmlScope *features, const char *name,
                                double fallback)
{
    const CmlValue *v = name && *name ? cml_find(features, name) : NULL;

    return v ? number_of(b, v->e) : expr_scalar(b->c, DT_F32, fallback);
}

bool cml_suppression_model(CmlImport *im, CmlScope *features, const CmlSuppression *m)
{
    Build     b = {im->c, {.file = im->path}, "nonMaximumSuppression"};
    CmlValue *scores = m->scores_in ? cml_find(features, m->scores_in) : NULL,
             *boxes = m->boxes_in ? cml_find(features, m->boxes_in) : NULL;
    Bound       u = {im, &b};
    BoundDim    bound = {bound_dim, &u};
    Suppress    s = {.apart = m->pick_top && m->pick_top->per_class};
    const Expr *at, *best, *count, *out[2];
    int64_t     B, axis = 0;
    const Idx  *k;

    if (!scores || !boxes || !scores->e || !boxes->e || !m->scores_out || !m->boxes_out)
        return build_error(&b, E_IMPORT, "boxes '%s' or scores '%s' come from nowhere",
                           m->boxes_in ? m->boxes_in : "", m->scores_in ? m->scores_in : "");
    if (expr_rank(scores->e) != 2 || expr_rank(boxes->e) != 2)
        return build_error(&b, E_IMPORT, "boxes %s and scores %s", type_text(im->c, boxes->e->type),
                           type_text(im->c, scores->e->type));
    B = build_dim(&b, scores->e, 0);
    s.most = B;
    s.boxes = build_expand_dims(&b, build_cast(&b, boxes->e, DT_F32), 0, 1);
    s.scores = build_expand_dims(&b, build_cast(&b, scores->e, DT_F32), 0, 1);
    s.overlap = given_number(&b, features, m->overlap_in, m->overlap);
    s.least = given_number(&b, features, m->least_in, m->least);
    if (!s.overlap || !s.least || !(at = suppressed(&b, &s, &best)))
        return false;
    at = build_reshape(&b, at, 1, &B);
    count = build_by(&b, "greater_equal", at, 0);
    count = count ? build_reduce(&b, "sum", build_cast(&b, count, DT_I64), 1, &axis, true) : NULL;
    if (!count || !(k = bound.fn(bound.user, count, idx_const(im->c->arith, B))))
        return false;
    at = build_slice_to(&b, at, 0, idx_const(im->c->arith, 0), k);
    out[0] = build_take(&b, scores->e, at, 0);
    out[1] = build_take(&b, boxes->e, at, 0);
    if (!out[0] || !out[1])
        return false;
    cml_put(features, m->scores_out, (CmlValue){.e = out[0]});
    cml_put(features, m->boxes_out, (CmlValue){.e = out[1]});
    return true;
}
