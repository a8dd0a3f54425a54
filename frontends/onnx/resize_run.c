/* Resize where the run gives scales, sizes or the part that is cropped.
 *
 * Along each axis, one after the other: where the cells of the result lie, and of one, two or four
 * cells around each place those of the data times weights.
 *
 *     y[o] = sum over taps t of w[t][o] * x[clamp(floor(place[o]) + t)]
 *
 * Places are f64, as they are where all is known when compiling (resize_matrix.c). */
#include "frontends/onnx/onnx.h"

#include <string.h>

#define MAX_TAPS 4

typedef struct {
    const Idx  *in, *out;
    const Expr *scale, *from, *to; /* Tensor[(1), f64]; from and to: of tf_crop_and_resize */
} Axis;

static bool is(const OnnxResizeForm *f, const char *coordinates)
{
    return !strcmp(f->coordinates, coordinates);
}

/* ---- along one axis --------------------------------------------------------------------------- */

/* Where the cells of the result lie among those of the data, [out] of f64. */
static const Expr *places(const Build *b, const OnnxResizeForm *f, const Axis *a)
{
    const Expr *in = cell_f64(b, a->in), *out = cell_f64(b, a->out), *one = build_f64(b, 1),
               *zero = build_f64(b, 0), *half = build_f64(b, 0.5), *many = build_less(b, one, out),
               *x, *last, *apart;

    x = build_cast(b, build_arange(b, a->out, DT_I64), DT_F64);
    last = build_sub(b, in, one);
    apart = build2(b, "maximum", build_sub(b, out, one), one, NULL);
    if (is(f, "tf_crop_and_resize")) {
        x = build_div(b, build_mul(b, build_mul(b, x, build_sub(b, a->to, a->from)), last), apart);
        return build_where(b, many, build_add(b, build_mul(b, a->from, last), x),
                           build_mul(b, build_mul(b, half, build_add(b, a->from, a->to)), last));
    }
    if (is(f, "align_corners"))
        return build_where(b, many, build_div(b, build_mul(b, x, last), apart), zero);
    if (is(f, "asymmetric"))
        return build_div(b, x, a->scale);
    x = build_div(b, build_add(b, x, half), a->scale);
    if (is(f, "tf_half_pixel_for_nn"))
        return x;
    x = build_sub(b, x, half);
    if (is(f, "pytorch_half_pixel"))
        return build_where(b, many, x, zero);
    if (is(f, "half_pixel_symmetric"))
        x = build_add(b, x,
                      build_mul(b, build_div(b, in, build_f64(b, 2)),
                                build_sub(b, one, build_div(b, out, build_mul(b, a->scale, in)))));
    return x;
}

static const Expr *nearest(const Build *b, const char *how, const Expr *x)
{
    if (!strcmp(how, "floor") || !strcmp(how, "ceil"))
        return build1(b, how, x, NULL);
    return !strcmp(how, "round_prefer_ceil")
               ? build1(b, "floor", build_add(b, x, build_f64(b, 0.5)), NULL)
               : build1(b, "ceil", build_sub(b, x, build_f64(b, 0.5)), NULL);
}

/* The cubic kernel at distance d, which is at most 1, or between 1 and 2. */
static const Expr *cubic(const Build *b, double k, const Expr *d, bool far)
{
    const double  near_c[] = {k + 2, -(k + 3), 0, 1}, far_c[] = {k, -5 * k, 8 * k, -4 * k};
    const double *c = far ? far_c : near_c;
    const Expr   *y = build_f64(b, c[0]);

    for (uint32_t i = 1; i < 4; i++)
        y = build_add(b, build_mul(b, y, d), build_f64(b, c[i]));
    return y;
}

typedef struct {
    uint32_t    n;
    const Expr *at[MAX_TAPS], *weight[MAX_TAPS]; /* [out] of f64 */
} Taps;

static void taps_of(const Build *b, const OnnxResizeForm *f, const Axis *a, const Expr *place,
                    Taps *t)
{
    const Expr *low, *up, *zero = build_f64(b, 0), *one = build_f64(b, 1), *in, *sum = NULL;

    if (*f->method == 'n') {
        *t = (Taps){1, {nearest(b, f->rounding, place)}, {NULL}};
        return;
    }
    low = build1(b, "floor", place, NULL);
    up = build_sub(b, place, low);
    if (*f->method == 'l') {
        *t = (Taps){2, {low, build_add(b, low, one)}, {build_sub(b, one, up), up}};
        return;
    }
    t->n = 4;
    for (uint32_t i = 0; i < 4; i++) {
        const Expr *d =
            i < 2 ? build_add(b, up, build_f64(b, 1 - i)) : build_sub(b, build_f64(b, i - 1), up);

        t->at[i] = build_add(b, low, build_f64(b, (double)i - 1));
        t->weight[i] = cubic(b, f->cubic, d, i == 0 || i == 3);
    }
    if (!f->exclude_outside)
        return;
    in = cell_f64(b, a->in);
    for (uint32_t i = 0; i < 4; i++) {
        const Expr *inside = build2(b, "logical_and", build_less(b, build_f64(b, -1), t->at[i]),
                                    build_less(b, t->at[i], in), NULL);

        t->weight[i] = build_where(b, inside, t->weight[i], zero);
        sum = sum ? build_add(b, sum, t->weight[i]) : t->weight[i];
    }
    for (uint32_t i = 0; i < 4; i++)
        t->weight[i] = build_div(b, t->weight[i], sum);
}

static const Expr *along_axis(const Build *b, const OnnxResizeForm *f, const Axis *a, const Expr *x,
                              uint32_t axis, const Expr *place)
{
    const Expr *last = build_sub(b, cell_f64(b, a->in), build_f64(b, 1)), *y = NULL;
    Taps        t;

    taps_of(b, f, a, place, &t);
    for (uint32_t i = 0; i < t.n; i++) {
        const Expr *at = build_cast(b, cell_clamp(b, t.at[i], build_f64(b, 0), last), DT_I64), *tap;

        if (!at || !(tap = build_take(b, x, at, axis)))
            return NULL;
        if (t.weight[i]) {
            const Expr *w = build_cast(b, t.weight[i], expr_dtype(x));

            tap = w ? build_mul(b, tap, build_along(b, w, expr_rank(x), axis)) : NULL;
        }
        y = y ? build_add(b, y, tap) : tap;
    }
    return y;
}

/* ---- with antialias: all cells under a kernel that is as much wider as the result is smaller ------ */

/* The kernel at places apart [.., ..] of f64. */
static const Expr *kernel_at(const Build *b, const OnnxResizeForm *f, const Expr *d)
{
    const Expr *one = build_f64(b, 1), *zero = build_f64(b, 0), *y;

    d = build1(b, "abs", d, NULL);
    if (*f->method == 'l')
        return build2(b, "maximum", build_sub(b, one, d), zero, NULL);
    y = build_where(b, build_less(b, d, build_f64(b, 2)), cubic(b, f->cubic, d, true), zero);
    return build_where(b, build_less(b, one, d), y, cubic(b, f->cubic, d, false));
}

/* What the cells from `first` on, as many, weigh in each result: [out, cells]. */
static const Expr *weights_from(const Build *b, const OnnxResizeForm *f, const Expr *place,
                                const Expr *scale, const Expr *first, const Idx *cells)
{
    const Expr *at = build_add(b, build_arange(b, cells, DT_F64), first);

    at = build_sub(b, build_along(b, at, 2, 1), build_along(b, place, 2, 0));
    return kernel_at(b, f, build_mul(b, at, scale));
}

/* Weights [out, in]; cells outside count as those at the ends, or not at all. */
static const Expr *weights(const Build *b, const OnnxResizeForm *f, const Axis *a,
                           const Expr *place)
{
    Arith      *A = b->c->arith;
    int64_t     across[] = {1};
    const Expr *in = cell_f64(b, a->in), *zero = build_f64(b, 0), *one = build_f64(b, 1), *w, *sum;
    const Expr *scale = build2(b, "minimum", a->scale, one, NULL), *last = build_sub(b, in, one);
    const Expr *at = build_along(b, build_arange(b, a->in, DT_F64), 2, 1);

    w = weights_from(b, f, place, scale, zero, a->in);
    if (!f->exclude_outside) { /* a kernel reaches no farther than over two results */
        const Idx  *reach = idx_addc(A, idx_mulc(A, a->in, 3), 3);
        const Expr *before = build_sub(b, zero, cell_f64(b, reach)), *left, *right;

        left = build_reduce(b, "sum", weights_from(b, f, place, scale, before, reach), 1, across,
                            true);
        right =
            build_reduce(b, "sum", weights_from(b, f, place, scale, in, reach), 1, across, true);
        left = build_where(b, build2(b, "equal", at, zero, NULL), left, zero);
        right = build_where(b, build2(b, "equal", at, last, NULL), right, zero);
        w = build_add(b, w, build_add(b, left, right));
    }
    sum = build_reduce(b, "sum", w, 1, across, true);
    return build_div(b, w, sum);
}

static const Expr *by_weights(Node *n, const OnnxResizeForm *f, const Axis *a, const Expr *x,
                              uint32_t axis, const Expr *place)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    const Expr  *w = build_cast(b, weights(b, f, a, place), expr_dtype(x));
    const Idx   *three[3] = {idx_const(A, 1), a->in, idx_const(A, 1)}, *dims[MAX_RANK];
    uint32_t     rank = expr_rank(x);

    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = i == axis ? a->out : expr_form(x, i);
        if (i != axis)
            three[i < axis ? 0 : 2] = idx_mul(A, three[i < axis ? 0 : 2], dims[i]);
    }
    x = build_reshape_to(b, x, 3, three);
    x = w && x ? onnx_matmul(n, w, x) : NULL;
    return build_reshape_to(b, x, rank, dims);
}

/* ---- all axes --------------------------------------------------------------------------------- */

/* Input i as k numbers. */
static const Expr *floats(Node *n, uint32_t i, uint32_t k, DType t)
{
    int64_t cells = k;

    if (!node_has(n, i) || !expr_has_shape(n->in[i]))
        return node_error(n, E_IMPORT, "input %u is missing", i);
    if (build_elems(&n->b, n->in[i]) != k)
        return node_error(n, E_IMPORT, "input %u holds %lld numbers, not %u", i,
                          (long long)build_elems(&n->b, n->in[i]), k);
    return build_cast(&n->b, build_reshape(&n->b, n->in[i], 1, &cells), t);
}

/* Scales of `axes`, and the sizes that follow: floor(d * scale) in f32, in which 0.7 times 10 is 7.
 */
static bool from_scales(Node *n, uint32_t i, const int64_t *axes, uint32_t k, Axis *of, RunDim *d)
{
    const Build *b = &n->b;
    const Expr  *scale = floats(n, i, k, DT_F32);

    for (uint32_t j = 0; j < k && scale; j++) {
        const Expr *s = cell_of(b, scale, j);
        const Expr *in = build_cast(b, cell_form(b, of[axes[j]].in), DT_F32);

        d[j] = (RunDim){build_cast(b, build1(b, "floor", build_mul(b, in, s), NULL), DT_I64), 0,
                        NULL, (uint32_t)axes[j], 1};
        of[axes[j]].scale = build_cast(b, s, DT_F64);
    }
    return scale;
}

/* Sizes of `axes`, or the one scale that keeps the aspect. */
static bool from_sizes(Node *n, const char *policy, const int64_t *axes, uint32_t k, Axis *of,
                       RunDim *d)
{
    const Build *b = &n->b;
    const Expr  *size = node_cells(n, 3), *all = NULL;
    bool         stretch = !strcmp(policy, "stretch");

    if (!size || build_elems(b, size) != k)
        return size && node_error(n, E_IMPORT, "%lld sizes for %u axes",
                                  (long long)build_elems(b, size), k);
    for (uint32_t j = 0; j < k; j++) {
        Axis *a = &of[axes[j]];

        d[j] = (RunDim){cell_of(b, size, j), 1, NULL, (uint32_t)axes[j], 1};
        a->scale = build_div(b, build_cast(b, d[j].cell, DT_F64), cell_f64(b, a->in));
        all = !all ? a->scale
                   : build2(b, !strcmp(policy, "not_larger") ? "minimum" : "maximum", all, a->scale,
                            NULL);
    }
    for (uint32_t j = 0; j < k && !stretch; j++) {
        Axis       *a = &of[axes[j]];
        const Expr *whole = build_add(b, build_mul(b, all, cell_f64(b, a->in)), build_f64(b, 0.5));

        a->scale = all;
        d[j].cell = build_cast(b, build1(b, "floor", whole, NULL), DT_I64);
    }
    return true;
}

static const Expr *resized(Node *n, const OnnxResizeForm *f, const Axis *of)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *out = NULL, *in;
    DType        t = expr_dtype(x);
    uint32_t     rank = expr_rank(x);
    bool         crop = is(f, "tf_crop_and_resize");
    int64_t      was, now;

    if (*f->method != 'n')
        x = build_cast(b, x, dtype_eq(t, DT_F64) ? t : DT_F32);
    for (uint32_t i = 0; i < rank && x; i++) {
        const Axis *a = &of[i];
        const Expr *place;

        if (!a->scale || (idx_is_const(a->in, &was) && idx_is_const(a->out, &now) && was == 1 &&
                          now == 1 && !crop))
            continue;
        place = places(b, f, a);
        x = !place         ? NULL
            : f->antialias ? by_weights(n, f, a, x, i, place)
                           : along_axis(b, f, a, x, i, place);
        if (!x || !crop)
            continue;
        in = build_sub(b, cell_f64(b, a->in), build_f64(b, 1));
        in = build2(b, "logical_or", build_less(b, place, build_f64(b, 0)),
                    build_less(b, in, place), NULL);
        in = in ? build_along(b, in, rank, i) : NULL;
        out = out ? build2(b, "logical_or", out, in, NULL) : in;
    }
    if (out && x)
        x = build_where(b, out, build_scalar(b, x, f->extrapolation), x);
    return x ? build_cast(b, x, t) : NULL;
}

bool onnx_resize_at_run(Node *n, const OnnxResizeForm *f, uint32_t scales, const char *policy,
                        const int64_t *axes, uint32_t k)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *roi;
    bool         crop = is(f, "tf_crop_and_resize");
    bool         whole = *f->method == 'n' && !crop; /* cells as they are */
    uint32_t     rank = expr_rank(x);
    Axis         of[MAX_RANK] = {0};
    RunDim       d[MAX_RANK];
    const Idx   *dims[MAX_RANK];

    if (!dtype_is_float(expr_dtype(x)) && !whole)
        return node_error(n, E_UNSUPPORTED, "%s of %s by scales or sizes that the run gives",
                          crop ? "tf_crop_and_resize" : "interpolation",
                          dtype_text(b->c, expr_dtype(x)));
    for (uint32_t i = 0; i < rank; i++) {
        of[i].in = of[i].out = expr_form(x, i);
        if (of[i].in->lo < 1)
            return node_error(n, E_UNSUPPORTED, "dimension %u may be empty", i);
    }
    if (node_has(n, scales) && !expr_empty(n->in[scales]) ? !from_scales(n, scales, axes, k, of, d)
                                                          : !from_sizes(n, policy, axes, k, of, d))
        return false;
    if (crop && !(roi = floats(n, 1, 2 * k, DT_F64)))
        return false;
    for (uint32_t j = 0; j < k && crop; j++) {
        of[axes[j]].from = cell_of(b, roi, j);
        of[axes[j]].to = cell_of(b, roi, k + j);
    }
    if (!onnx_bind(n, 0, k, d, dims))
        return false;
    for (uint32_t j = 0; j < k; j++)
        of[axes[j]].out = dims[j];
    return node_done(n, resized(n, f, of));
}
