/* Where heat maps of boxes are highest, between their cells: around the highest cell a map is taken
 * for a polynomial of the second degree, whose top is at delta, with A delta = b. */
#include "frontends/caffe2/caffe2.h"

#define MOST_DELTA 1.5 /* the engine's own limits */
#define LEAST_DET 1e-4

/* Positions one cell before or behind `at`, [R, K, 1], of S; beyond an end, that on its other side.
 */
static const Expr *beside(const Build *b, const Expr *at, int64_t S, bool behind)
{
    const Expr *before = build_by(b, "subtract", at, 1), *after = build_by(b, "add", at, 1);

    return behind ? build_where(b, build_by(b, "equal", at, (double)(S - 1)), before, after)
                  : build_where(b, build_by(b, "equal", at, 0), after, before);
}

/* The sum of some of 3 x 3 cells [R, K, 9], each times a factor. */
typedef struct {
    uint32_t cell;
    double   factor;
} Term;
static const Expr *sum_of(const Build *b, const Expr *f, uint32_t n, const Term *t)
{
    const Expr *y = NULL, *x;

    for (uint32_t i = 0; i < n; i++) {
        x = build_by(b, "multiply", build_column(b, f, t[i].cell), t[i].factor);
        y = y ? build_add(b, y, x) : x;
    }
    return y;
}

static const Expr *times2(const Build *b, const Expr *x, const Expr *y, const Expr *z,
                          const Expr *w, const char *op)
{
    return build2(b, op, build_mul(b, x, y), build_mul(b, z, w), NULL);
}

/* Moves the highest cells by delta, [R, K, 1] each; *score: what is there. */
static bool between_cells(const Build *b, const Expr *f, const Expr **dx, const Expr **dy,
                          const Expr **score)
{
    static const Term along_x[] = {{5, -0.5}, {3, 0.5}}, along_y[] = {{7, -0.5}, {1, 0.5}},
                      xx[] = {{3, 1}, {4, -2}, {5, 1}}, yy[] = {{1, 1}, {4, -2}, {7, 1}},
                      xy[] = {{8, 0.25}, {6, -0.25}, {2, -0.25}, {0, 0.25}};
    const Expr *bx = sum_of(b, f, 2, along_x), *by = sum_of(b, f, 2, along_y);
    const Expr *A = sum_of(b, f, 3, xx), *C = sum_of(b, f, 4, xy), *D = sum_of(b, f, 3, yy),
               *top = build_column(b, f, 4);
    const Expr *det = times2(b, A, D, C, C, "subtract"), *flat, *far, *large, *zero, *less, *half;

    flat = build_less(b, build1(b, "abs", det, NULL), build_scalar(b, det, LEAST_DET));
    det = build_where(b, flat, build_scalar(b, det, 1), det);
    *dx = build_div(b, times2(b, D, bx, C, by, "subtract"), det);
    *dy = build_div(b, times2(b, A, by, C, bx, "subtract"), det);
    large = build2(b, "maximum", build1(b, "abs", *dx, NULL), build1(b, "abs", *dy, NULL), NULL);
    far = build_by(b, "greater", large, MOST_DELTA);
    if (!large || !far || !flat)
        return false;
    zero = build_scalar(b, large, 0);
    large = build_where(b, far, large, build_scalar(b, large, MOST_DELTA));
    *dx = build_by(b, "multiply", build_div(b, *dx, large), MOST_DELTA);
    *dy = build_by(b, "multiply", build_div(b, *dy, large), MOST_DELTA);
    *dx = build_where(b, flat, zero, *dx);
    *dy = build_where(b, flat, zero, *dy);
    less = times2(b, bx, *dx, by, *dy, "add");
    half = times2(b, build_mul(b, A, *dx), *dx, build_mul(b, D, *dy), *dy, "add");
    half =
        build_add(b, build_by(b, "multiply", half, 0.5), build_mul(b, build_mul(b, C, *dx), *dy));
    *score = build_add(b, build_sub(b, top, less), half);
    return *dx && *dy && *score;
}

/* Side `axis` of boxes [R, 1, 4]: from its first edge, as long as it is, at least 1. */
static const Expr *in_box(const Build *b, const Expr *boxes, int64_t axis, const Expr *at,
                          const Expr *delta, int64_t S)
{
    const Expr *from = build_column(b, boxes, axis);
    const Expr *size =
        build_by(b, "maximum", build_sub(b, build_column(b, boxes, 2 + axis), from), 1);

    at = build_add(b, build_by(b, "add", build_cast(b, at, DT_F32), 0.5), delta);
    return build_add(b, from, build_by(b, "divide", build_mul(b, at, size), (double)S));
}

/* maps [R, K, S, S], boxes [R, 4 or more]: [R, 4, K] of x, y, the height there and the share of its
 * cell, which is 0 unless should_output_softmax. */
bool c2_heatmap_max_keypoint(C2Node *n)
{
    const Build    *b = &n->b;
    ArgReduceAttrs *first = ATTRS(b, ArgReduceAttrs);
    const Expr     *x = n->in[0], *boxes = n->in[1], *at, *pos[2][3], *cells[9], *f, *out[4];
    const Expr     *dx, *dy, *share;
    int64_t         S, last = 2;

    if (!c2_rank(n, 0, 4, 4) || !c2_rank(n, 1, 2, 2))
        return false;
    S = build_dim(b, x, 2);
    if (S < 2 || S > 4096 || build_dim(b, x, 3) != S || build_dim(b, boxes, 1) < 4 ||
        expr_form(boxes, 0) != expr_form(x, 0))
        return c2_error(n, E_IMPORT, "maps %s of boxes %s", type_text(b->c, x->type),
                        type_text(b->c, boxes->type));
    x = build_reshape_to(
        b, x, 3, (const Idx *[]){expr_form(x, 0), expr_form(x, 1), idx_const(b->c->arith, S * S)});
    first->axis = 2;
    first->keepdims = true;
    first->dtype = DT_I64;
    at = build1(b, "argmax", x, first);
    pos[0][1] = build_by(b, "floor_divide", at, (double)S);
    pos[1][1] = build_by(b, "floor_mod", at, (double)S);
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t k = 0; k < 3; k += 2)
            pos[i][k] = beside(b, pos[i][1], S, k > 0);
    for (uint32_t i = 0; i < 9; i++)
        cells[i] = build_add(b, build_by(b, "multiply", pos[0][i / 3], (double)S), pos[1][i % 3]);
    f = build_gathered(b, x, build_concat(b, 9, cells, 2), 2, 2);
    if (!f || !between_cells(b, f, &dx, &dy, &out[2]))
        return false;
    boxes = build_expand_dims(b, boxes, 1, 1);
    out[0] = in_box(b, boxes, 0, pos[1][1], dx, S);
    out[1] = in_box(b, boxes, 1, pos[0][1], dy, S);
    out[3] = build_zeros_of(b, DT_F32, 3, expr_forms(out[2]).at);
    if (c2_int(n, "should_output_softmax", 0)) {
        share = build_sub(b, x, build_column(b, f, 4));
        share = build_reduce(b, "sum", build1(b, "exp", share, NULL), 1, &last, true);
        out[3] = share ? build_div(b, build_scalar(b, share, 1), share) : NULL;
    }
    return c2_done(n, build_transpose(b, build_concat(b, 4, out, 2), 3, (int64_t[]){0, 2, 1}));
}
