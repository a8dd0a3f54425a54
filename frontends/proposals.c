/* Proposals: boxes around anchors at each place, the best of which become regions for what follows.
 */
#include "frontends/calls.h"

#include <math.h>
#include <string.h>

typedef struct {
    const Build          *b;
    const BuildProposals *of;
    int64_t               N, A, H, W, before; /* images, anchors, places; boxes before the choice */
    const Expr           *sizes;
} Proposals;

/* Halves away from zero, as C rounds. */
static double rounded(double x)
{
    return floor(x + 0.5);
}

/* The anchors of one place: a square of the stride, in all ratios, then scales. */
static void anchors_of(double stride, const double *ratios, uint32_t nratios, const double *scales,
                       uint32_t nscales, double *out)
{
    double middle = 0.5 * (stride - 1), area = stride * stride;

    for (uint32_t i = 0; i < nratios; i++)
        for (uint32_t k = 0; k < nscales; k++) {
            double w = rounded(sqrt(floor(area / ratios[i]))), h = rounded(w * ratios[i]);

            w *= scales[k], h *= scales[k];
            *out++ = middle - 0.5 * (w - 1), *out++ = middle - 0.5 * (h - 1);
            *out++ = middle + 0.5 * (w - 1), *out++ = middle + 0.5 * (h - 1);
        }
}

/* Anchors at all places, [1, H*W*A, 4]. */
static const Expr *all_anchors(const Proposals *p)
{
    const BuildProposals *of = p->of;
    int64_t               count = p->H * p->W * p->A;
    float                *out = arena_array(p->b->c->arena, (size_t)count * 4 + 1, sizeof *out);
    double               *one;

    if ((int64_t)of->nratios * of->nscales != p->A)
        return build_error(p->b, E_IMPORT, "%u ratios and %u scales for %lld anchors", of->nratios,
                           of->nscales, (long long)p->A);
    one = NEW_ARRAY(p->b->c->arena, double, (size_t)p->A * 4);
    anchors_of(of->stride, of->ratios, of->nratios, of->scales, of->nscales, one);
    for (int64_t i = 0; i < count * 4; i++) {
        int64_t place = i / (4 * p->A);
        double  at = (double)(i % 2 ? place / p->W : place % p->W);

        out[i] = (float)(one[i % (4 * p->A)] + at * of->stride);
    }
    return build_const(p->b, DT_F32, 3, (int64_t[]){1, count, 4}, out);
}

const Expr *build_by_place(const Build *b, const Expr *x, int64_t k)
{
    int64_t N, A, H, W;

    if (!x)
        return NULL;
    N = build_dim(b, x, 0), A = build_dim(b, x, 1) / k, H = build_dim(b, x, 2),
    W = build_dim(b, x, 3);
    x = build_reshape(b, x, 5, (int64_t[]){N, A, k, H, W});
    x = build_transpose(b, x, 5, (int64_t[]){0, 3, 4, 1, 2});
    return build_reshape(b, x, 3, (int64_t[]){N, H * W * A, k});
}

/* Column i of the pictures' sizes, [N, 1, 1]. */
static const Expr *info(const Proposals *p, int64_t i)
{
    return build_expand_dims(p->b, build_column(p->b, p->sizes, i), 2, 1);
}

/* Boxes within their pictures, [N, B, 4]. */
static const Expr *boxes_of(const Proposals *p, const Expr *anchors, const Expr *x)
{
    const Build *b = p->b;
    const Expr  *out[4];

    for (int64_t i = 0; i < 2; i++) {
        const Expr *from = build_column(b, anchors, i), *to = build_column(b, anchors, 2 + i),
                   *size, *middle, *most = build_by(b, "add", info(p, 1 - i), -1);

        if (p->of->corners) {
            out[i] = build_add(b, from, build_column(b, x, i));
            out[2 + i] = build_add(b, to, build_column(b, x, 2 + i));
        } else {
            size = build_by(b, "add", build_sub(b, to, from), 1);
            middle = build_add(b, from, build_by(b, "multiply", build_by(b, "add", size, -1), 0.5));
            middle = build_add(b, build_mul(b, build_column(b, x, i), size), middle);
            size = build_mul(b, build1(b, "exp", build_column(b, x, 2 + i), NULL), size);
            size = build_by(b, "multiply", build_by(b, "add", size, -1), 0.5);
            out[i] = build_sub(b, middle, size);
            out[2 + i] = build_add(b, middle, size);
        }
        for (int64_t k = 0; k < 3; k += 2)
            out[i + k] = build_by(b, "maximum", build2(b, "minimum", out[i + k], most, NULL), 0);
    }
    return build_concat(b, 4, out, 2);
}

/* Boxes that are too small grow, and those that are behind the picture stay: their scores become
 * -1. */
static const Expr *filtered(const Proposals *p, const Expr *boxes, const Expr **scores)
{
    const Build *b = p->b;
    double       least = p->of->least;
    const Expr  *size = build_by(b, "multiply", info(p, 2), least), *small = NULL, *beyond = NULL,
               *half, *out[4];
    float *cells = arena_array(b->c->arena, (size_t)(p->H * p->W * p->A) * 2, sizeof *cells);

    for (int64_t i = 0; i < 2; i++) {
        int64_t     count = p->H * p->W * p->A;
        const Expr *side = build_by(
            b, "add", build_sub(b, build_column(b, boxes, 2 + i), build_column(b, boxes, i)), 1);
        const Expr *is = build_less(b, side, size), *real, *at;

        for (int64_t k = 0; k < count; k++) {
            int64_t place = k / p->A;

            cells[i * count + k] = (float)(i ? place / p->W : place % p->W);
        }
        real = build1(b, "trunc", build_by(b, "divide", info(p, 1 - i), p->of->stride), NULL);
        at = build_const(b, DT_F32, 3, (int64_t[]){1, count, 1}, cells + i * count);
        at = build2(b, "greater_equal", at, real, NULL);
        small = small ? build2(b, "logical_or", small, is, NULL) : is;
        beyond = beyond ? build2(b, "logical_or", beyond, at, NULL) : at;
    }
    half = build_by(b, "multiply", size, 0.5);
    half = small ? build_where(b, small, half, build_scalar(b, boxes, 0)) : NULL;
    for (int64_t i = 0; i < 4; i++)
        out[i] = i < 2 ? build_sub(b, build_column(b, boxes, i), half)
                       : build_add(b, build_column(b, boxes, i), half);
    *scores = build_where(b, build2(b, "logical_or", small, beyond, NULL),
                          build_scalar(b, *scores, -1), *scores);
    return build_concat(b, 4, out, 2);
}

/* Positions of the boxes that stay, [N, after]: if they are too few they begin anew. */
static const Expr *chosen(const Proposals *p, const Expr *boxes, const Expr *scores)
{
    const Build            *b = p->b;
    NonMaxSuppressionAttrs *a = ATTRS(b, NonMaxSuppressionAttrs);
    SortAttrs              *by = ATTRS(b, SortAttrs);
    int64_t                 axis = 1;
    /* A box has the cells from its first to its last. */
    const float one[4] = {0, 0, 1, 1};
    const Expr *in[6], *at, *count, *i;

    by->is_ascend = false;
    by->dtype = DT_I64;
    in[0] = build_add(b, boxes, build_const(b, DT_F32, 1, (int64_t[]){4}, one));
    in[1] = build_expand_dims(b, scores, 1, 1);
    in[2] = build1(b, "argsort", in[1], by);
    in[3] = expr_scalar(b->c, DT_I64, (double)p->of->after);
    in[4] = expr_scalar(b->c, DT_F32, p->of->threshold);
    in[5] = expr_scalar(b->c, DT_F32, -3e38);
    a->room = dims_dup(b->c, (const Idx *[]){idx_const(b->c->arith, p->of->after)}, 1);
    at = build_reshape(b, build_call(b, "vision.non_max_suppression", 6, in, a), 2,
                       (int64_t[]){p->N, p->of->after});
    count = build_by(b, "greater_equal", at, 0);
    count = count ? build_reduce(b, "sum", build_cast(b, count, DT_I64), 1, &axis, true) : NULL;
    i = build_arange(b, idx_const(b->c->arith, p->of->after), DT_I64);
    i = build2(b, "floor_mod", i, build_by(b, "maximum", count, 1), NULL);
    return build_rows_at(b, at, i);
}

bool build_proposals(const Build *b, const BuildProposals *of, const Expr *scores,
                     const Expr *boxes, const Expr *sizes, const Expr **regions, const Expr **best)
{
    TopKAttrs  *top = ATTRS(b, TopKAttrs);
    const Expr *anchors, *at, *batch;
    Proposals   p = {.b = b, .of = of, .sizes = sizes};
    int64_t     count, channels;

    if (expr_rank(scores) != 4 || expr_rank(boxes) != 4 || expr_rank(sizes) != 2)
        return build_error(b, E_IMPORT, "%s, %s and %s", type_text(b->c, scores->type),
                           type_text(b->c, boxes->type), type_text(b->c, sizes->type));
    p.N = build_dim(b, scores, 0), channels = build_dim(b, scores, 1);
    p.A = channels / 2;
    p.H = build_dim(b, scores, 2), p.W = build_dim(b, scores, 3);
    count = p.H * p.W * p.A;
    if (p.A < 1 || p.A > 1024 || of->stride < 1 || channels != 2 * p.A || p.H > 4096 ||
        p.W > 4096 || build_dim(b, boxes, 0) != p.N || build_dim(b, boxes, 1) != 4 * p.A ||
        build_dim(b, boxes, 2) != p.H || build_dim(b, boxes, 3) != p.W ||
        build_dim(b, sizes, 1) != 3 || build_dim(b, sizes, 0) != p.N)
        return build_error(b, E_IMPORT, "%s, %s and %s", type_text(b->c, scores->type),
                           type_text(b->c, boxes->type), type_text(b->c, sizes->type));
    p.before = of->before < 1 || of->before > count ? count : of->before;
    if (of->after < 1 || of->after > p.before)
        return build_error(b, E_UNSUPPORTED, "%lld regions of %lld boxes", (long long)of->after,
                           (long long)p.before);
    if (!(anchors = all_anchors(&p)))
        return false;
    scores = build_by_place(b, build_slice(b, scores, 1, p.A, 2 * p.A), 1);
    boxes = filtered(&p, boxes_of(&p, anchors, build_by_place(b, boxes, 4)), &scores);
    scores = build_reshape(b, scores, 2, (int64_t[]){p.N, count});
    top->k = p.before;
    top->axis = 1;
    top->dtype = DT_I64;
    at = scores ? build1(b, "topk", scores, top) : NULL;
    boxes = build_rows_at(b, boxes, build_proj(b, at, 1));
    scores = build_proj(b, at, 0);
    if (!boxes || !scores)
        return false;
    at = chosen(&p, boxes, scores);
    boxes = build_reshape(b, build_rows_at(b, boxes, at), 2, (int64_t[]){p.N * of->after, 4});
    *best = build_reshape(b, build_rows_at(b, scores, at), 2, (int64_t[]){p.N * of->after, 1});
    batch = build_expand_dims(b, build_arange(b, idx_const(b->c->arith, p.N), DT_F32), 1, 1);
    batch = build_reshape(b, build_broadcast(b, batch, 2, (int64_t[]){p.N, of->after}), 2,
                          (int64_t[]){p.N * of->after, 1});
    *regions = build_concat(b, 2, (const Expr *[]){batch, boxes}, 1);
    return *regions && *best;
}
