/* Regions of images: their largest cells by bins; how alike two images are, one of which is moved.
 */
#include "frontends/calls.h"

#include <math.h>

/* ---- largest cells of bins -------------------------------------------------------------------------- */

/* Halves away from zero. */
static const Expr *rounded(const Build *b, const Expr *x)
{
    return build1(b, "floor", build_by(b, "add", x, 0.5), NULL);
}

/* Which of `cells` along one axis each of `bins` sees, of regions from..to: [R, bins, cells]. */
static const Expr *seen(const Build *b, const Expr *regions, double scale, int64_t axis,
                        int64_t bins, int64_t cells)
{
    Arith      *A = b->c->arith;
    const Expr *from =
        rounded(b, build_by(b, "multiply", build_column(b, regions, 1 + axis), scale));
    const Expr *to = rounded(b, build_by(b, "multiply", build_column(b, regions, 3 + axis), scale));
    const Expr *size, *bin, *first, *last, *at;

    size = build_by(b, "maximum", build_by(b, "add", build_sub(b, to, from), 1), 1);
    bin = build_by(b, "divide", size, (double)bins);
    if (!bin)
        return NULL;
    at = build_arange(b, idx_const(A, bins), expr_dtype(bin));
    first = build1(b, "floor", build_mul(b, at, bin), NULL);
    last = build1(b, "ceil", build_mul(b, build_by(b, "add", at, 1), bin), NULL);
    first = build_expand_dims(b, build_add(b, first, from), 2, 1);
    last = build_expand_dims(b, build_add(b, last, from), 2, 1);
    at = build_arange(b, idx_const(A, cells), expr_dtype(bin));
    return build2(b, "logical_and", build2(b, "greater_equal", at, first, NULL),
                  build_less(b, at, last), NULL);
}

/* First the largest cells of columns in each bin, then those of rows; a bin without cells is 0. */
const Expr *build_roi_pool(const Build *b, const Expr *x, const Expr *regions, const int64_t *size,
                           double scale)
{
    int64_t     H = build_dim(b, x, 2), W = build_dim(b, x, 3), R = build_dim(b, regions, 0);
    const Expr *in, *y, *low = build_scalar(b, x, -INFINITY),
                        *at = build_squeeze(b, build_column(b, regions, 0), 1, (int64_t[]){1});

    x = at ? build_expand_dims(b, build_take(b, x, build_cast(b, at, DT_I64), 0), 3, 1)
           : NULL; /* R C H 1 W */
    in = build_reshape(b, seen(b, regions, scale, 0, size[1], W), 5,
                       (int64_t[]){R, 1, 1, size[1], W});
    y = build_reduce(b, "max", build_where(b, in, x, low), 1, (int64_t[]){4}, false);
    y = build_expand_dims(b, y, 2, 1); /* R C 1 H w */
    in = build_reshape(b, seen(b, regions, scale, 1, size[0], H), 5,
                       (int64_t[]){R, 1, size[0], H, 1});
    y = build_reduce(b, "max", build_where(b, in, y, low), 1, (int64_t[]){3}, false);
    return y ? build_where(b, build2(b, "equal", y, low, NULL), build_scalar(b, y, 0), y) : NULL;
}

/* ---- images of boxes -------------------------------------------------------------------------------- */

/* Places along one axis of `cells`, [R, count]: from the first edge to the second, or the middle.
 */
static const Expr *places(const Build *b, const Expr *boxes, uint32_t axis, int64_t cells,
                          int64_t count)
{
    const Expr *from = build_by(b, "multiply", build_column(b, boxes, axis), (double)(cells - 1));
    const Expr *to = build_by(b, "multiply", build_column(b, boxes, 2 + axis), (double)(cells - 1));
    const Expr *at = build_arange(b, idx_const(b->c->arith, count), expr_dtype(boxes));

    if (count == 1)
        return build_by(b, "multiply", build_add(b, from, to), 0.5);
    at = build_by(b, "multiply", at, 1 / (double)(count - 1));
    return build_add(b, from, build_mul(b, build_sub(b, to, from), at));
}

const Expr *build_crops_at(const Build *b, const Expr *x, const Expr *const *places,
                           const Expr *which, const BuildCrops *k)
{
    const BuildSampling how = {"linear", "border", true};
    const Expr         *at[2], *in = NULL, *y;
    int64_t             R = build_dim(b, which, 0), C = build_dim(b, x, 1);

    for (uint32_t i = 0; i < 2; i++) {
        int64_t     cells = build_dim(b, x, 2 + i), dims[] = {R, 1, 1, 1};
        const Expr *place = places[i], *is;

        if (!place)
            return NULL;
        is = build2(b, "logical_and", build_by(b, "greater_equal", place, 0),
                    build_by(b, "less_equal", place, (double)(cells - 1)), NULL);
        place = k->nearest ? rounded(b, place) : place;
        place = build_by(b, "multiply", place, cells > 1 ? 2 / (double)(cells - 1) : 0);
        place = build_by(b, "add", place, cells > 1 ? -1 : 0);
        dims[1 + i] = k->size[i];
        at[i] = build_broadcast(b, build_reshape(b, place, 4, dims), 4,
                                (int64_t[]){R, k->size[0], k->size[1], 1});
        dims[1] = 1, dims[2 + i] = k->size[i];
        dims[3 - i] = 1;
        is = build_reshape(b, is, 4, dims);
        in = in ? build2(b, "logical_and", in, is, NULL) : is;
    }
    y = build_take(b, x, build_cast(b, which, DT_I64), 0);
    at[0] = build_concat(b, 2, (const Expr *[]){at[1], at[0]}, 3);
    y = y && at[0] ? build_grid_sample(b, y, at[0], &how) : NULL;
    if (!y || !in)
        return NULL;
    in = build_broadcast(b, in, 4, (int64_t[]){R, C, k->size[0], k->size[1]});
    return build_where(b, in, y, build_scalar(b, y, k->fill));
}

const Expr *build_crops(const Build *b, const Expr *x, const Expr *boxes, const Expr *which,
                        const BuildCrops *k)
{
    const Expr *at[2];

    if (expr_rank(boxes) != 2 || build_dim(b, boxes, 1) != 4 || expr_rank(which) != 1 ||
        k->size[0] < 1 || k->size[1] < 1)
        return build_error(b, E_IMPORT, "boxes %s of images %s", type_text(b->c, boxes->type),
                           type_text(b->c, which->type));
    for (uint32_t i = 0; i < 2; i++)
        at[i] = places(b, boxes, i, build_dim(b, x, 2 + i), k->size[i]);
    return build_crops_at(b, x, at, which, k);
}

/* ---- correlation ------------------------------------------------------------------------------------ */

/* What both images have of cells: regions of so many rows and columns. */
static bool regions_of(const Build *b, const Expr *x, const BuildCorrelation *k, int64_t *size)
{
    const int64_t given[] = {k->kernel, k->stride1, k->stride2, k->most + 1, k->pad + 1};

    for (uint32_t i = 0; i < COUNT(given); i++)
        if (given[i] < 1 || given[i] > 257)
            return build_error(
                b, E_UNSUPPORTED,
                "a kernel of %lld, steps of %lld and %lld up to %lld, padding of %lld",
                (long long)k->kernel, (long long)k->stride1, (long long)k->stride2,
                (long long)k->most, (long long)k->pad);
    if (k->kernel % 2 == 0 || k->most / k->stride2 > 32)
        return build_error(b, E_UNSUPPORTED, "a kernel of %lld, and %lld steps each way",
                           (long long)k->kernel, (long long)(k->most / k->stride2));
    for (uint32_t i = 0; i < 2; i++) {
        int64_t cells = build_dim(b, x, 2 + i) + 2 * k->pad - 2 * (k->most + k->kernel / 2);

        if (cells < 1)
            return build_error(b, E_IMPORT, "images that are too small to be moved by %lld",
                               (long long)k->most);
        size[i] = (cells + k->stride1 - 1) / k->stride1;
        size[i] = (size[i] - 1) * k->stride1 + k->kernel;
    }
    return true;
}

static const Expr *moved(const Build *b, const Expr *x, const BuildCorrelation *k,
                         const int64_t *size, int64_t down, int64_t right)
{
    x = build_slice(b, x, 2, k->most + down, k->most + down + size[0]);
    return build_slice(b, x, 3, k->most + right, k->most + right + size[1]);
}

const Expr *build_correlation(const Build *b, const Expr *x, const Expr *y,
                              const BuildCorrelation *k)
{
    Pool2dAttrs *a = ATTRS(b, Pool2dAttrs);
    int64_t      pads[8] = {0}, each, steps, size[2];
    const Expr **out;

    if (x->type != y->type || expr_rank(x) != 4)
        return build_error(b, E_IMPORT, "%s and %s", type_text(b->c, x->type),
                           type_text(b->c, y->type));
    if (!regions_of(b, x, k, size))
        return NULL;
    pads[4] = pads[5] = pads[6] = pads[7] = k->pad;
    /* Windows at the end may begin in what the division leaves. */
    pads[5] += k->stride1, pads[7] += k->stride1;
    x = build_pad(b, x, pads, 0, "constant");
    y = build_pad(b, y, pads, 0, "constant");
    steps = k->most / k->stride2;
    each = 2 * steps + 1;
    out = NEW_ARRAY(b->c->arena, const Expr *, (size_t)(each * each));
    a->pool_size = ints_of(b->c, 2, (int)k->kernel, (int)k->kernel);
    a->strides = ints_of(b->c, 2, (int)k->stride1, (int)k->stride1);
    for (int64_t i = 0; i < each * each; i++) {
        const Expr *p = moved(b, x, k, size, 0, 0),
                   *q = moved(b, y, k, size, (i / each - steps) * k->stride2,
                              (i % each - steps) * k->stride2);

        p = k->products ? build_mul(b, p, q) : build1(b, "abs", build_sub(b, p, q), NULL);
        p = build_reduce(b, "mean", p, 1, (int64_t[]){1}, true);
        if (k->kernel > 1 || k->stride1 > 1)
            p = build1(b, "nn.avg_pool2d", p, a);
        if (!(out[i] = p))
            return NULL;
    }
    return build_concat(b, (uint32_t)(each * each), out, 1);
}
