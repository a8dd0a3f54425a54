/* Cells between cells: sampling pictures and volumes at computed places, and convolutions of such
 * cells. */
#include "frontends/calls.h"

#include <math.h>
#include <string.h>

typedef enum { ZEROS, BORDER, REFLECTION } Padding;

typedef struct {
    const Build *b;
    const Expr  *x;                /* [N, C, H*W], or of volumes */
    int64_t      N, C, P, size[3]; /* P places in each picture; H, W, or D, H, W */
    uint32_t     dims;
    Padding      padding;
    bool         align;
} Grid;

/* Mirrored into lo .. hi as often as needed. */
static const Expr *reflect(const Build *b, const Expr *x, double lo, double hi)
{
    double      range = hi - lo;
    const Expr *t, *turns;

    if (range <= 0)
        return build_by(b, "multiply", x, 0);
    t = build_by(b, "subtract", x, lo);
    turns = build1(b, "floor", build_by(b, "divide", t, 2 * range), NULL);
    t = build2(b, "subtract", t, build_by(b, "multiply", turns, 2 * range), NULL);
    /* min(t, 2 range - t) */
    t = t ? build2(b, "minimum", t, build2(b, "subtract", build_scalar(b, t, 2 * range), t, NULL),
                   NULL)
          : NULL;
    return build_by(b, "add", t, lo);
}

/* A coordinate -1 .. 1 as a cell of `size`, folded back in as the padding says. */
static const Expr *place(const Grid *g, const Expr *at, uint32_t axis)
{
    const Build *b = g->b;
    double       size = (double)g->size[axis];

    at = build_by(b, "add", at, 1);
    at = g->align ? build_by(b, "multiply", at, (size - 1) / 2)
                  : build_by(b, "divide",
                             build_by(b, "subtract", build_by(b, "multiply", at, size), 1), 2);
    return at;
}

static const Expr *inside(const Grid *g, const Expr *at, uint32_t axis)
{
    double size = (double)g->size[axis];

    if (g->padding == BORDER)
        return build_clip(g->b, at, 0, size - 1);
    if (g->padding == REFLECTION)
        return reflect(g->b, at, g->align ? 0 : -0.5, g->align ? size - 1 : size - 0.5);
    return at;
}

/* The cells at whole coordinates of [N, 1, P] each: [N, C, P]. */
static const Expr *tap(const Grid *g, const Expr *const *place)
{
    const Build *b = g->b;
    const Expr  *at = NULL, *v, *in = NULL;
    GatherAttrs *a = ATTRS(b, GatherAttrs);

    for (uint32_t i = 0; i < g->dims; i++) {
        const Expr *x = g->padding == REFLECTION ? inside(g, place[i], i) : place[i];
        const Expr *cell = build_clip(b, x, 0, (double)g->size[i] - 1), *hit;

        if (g->padding == ZEROS) {
            hit = build2(b, "equal", cell, x, NULL);
            in = in ? build2(b, "logical_and", in, hit, NULL) : hit;
        }
        cell = cell ? build_cast(b, cell, DT_I64) : NULL;
        at = i ? build2(b, "add", build_by(b, "multiply", at, (double)g->size[i]), cell, NULL)
               : cell;
    }
    a->axis = 2;
    a->mode = "clip";
    at = build_broadcast(b, at, 3, (int64_t[]){g->N, g->C, g->P});
    v = build2(b, "gather", g->x, at, a);
    return in ? build_where(b, in, v, v ? build_scalar(b, v, 0) : NULL) : v;
}

static const Expr *sum2(const Build *b, const Expr *x, const Expr *y)
{
    return x ? build2(b, "add", x, y, NULL) : y;
}

/* Weights of the four cells around, a = -0.75. */
static void cubic(const Build *b, const Expr *t, const Expr **w)
{
    const double a = -0.75;

    for (int i = 0; i < 4; i++) {
        const Expr *d = i < 2 ? build_by(b, "add", t, 1 - i)
                              : build2(b, "subtract", build_scalar(b, t, i - 1), t, NULL);
        bool        outer = i == 0 || i == 3;
        double      k3 = outer ? a : a + 2, k2 = outer ? -5 * a : -(a + 3), k1 = outer ? 8 * a : 0;
        double      k0 = outer ? -4 * a : 1;

        w[i] = build_by(b, "add", build_by(b, "multiply", d, k3), k2);
        w[i] = build_by(b, "add", build2(b, "multiply", w[i], d, NULL), k1);
        w[i] = build_by(b, "add", build2(b, "multiply", w[i], d, NULL), k0);
    }
}

/* Interpolation along the axes from `axis` on; `at` holds the whole coordinates before it. */
typedef struct {
    const Grid *g;
    int         taps, first;
    const Expr *floor[3], *w[3][4];
} Taps;

static const Expr *interpolated(const Taps *t, uint32_t axis, const Expr **at)
{
    const Build *b = t->g->b;
    const Expr  *sum = NULL;

    if (axis == t->g->dims)
        return tap(t->g, at);
    for (int i = 0; i < t->taps; i++) {
        const Expr *v;

        if (!(at[axis] = build_by(b, "add", t->floor[axis], t->first + i)))
            return NULL;
        v = build2(b, "multiply", interpolated(t, axis + 1, at), t->w[axis][i], NULL);
        if (!(sum = sum2(b, sum, v)))
            return NULL;
    }
    return sum;
}

static const Expr *sample(const Grid *g, const char *mode, const Expr *const *place)
{
    const Build *b = g->b;
    const Expr  *at[3];
    Taps         t = {g, *mode == 'c' ? 4 : 2, *mode == 'c' ? -1 : 0, {0}, {{0}}};

    for (uint32_t i = 0; i < g->dims; i++) {
        at[i] = place[i];
        if (*mode == 'n') {
            at[i] = inside(g, build1(b, "round", at[i], NULL), i);
            continue;
        }
        if (t.taps == 2) /* cubic folds back each tap instead, as PyTorch does */
            at[i] = inside(g, at[i], i);
        if (!(t.floor[i] = build1(b, "floor", at[i], NULL)))
            return NULL;
        t.w[i][1] = build2(b, "subtract", at[i], t.floor[i], NULL);
        if (t.taps == 4)
            cubic(b, t.w[i][1], t.w[i]);
        else
            t.w[i][0] = build2(b, "subtract", build_scalar(b, at[i], 1), t.w[i][1], NULL);
    }
    return *mode == 'n' ? tap(g, at) : interpolated(&t, 0, at);
}

const Expr *build_grid_sample(const Build *b, const Expr *x, const Expr *grid,
                              const BuildSampling *how)
{
    Grid        g = {.b = b, .align = how->align};
    const char *mode = how->mode;
    const Expr *at[3], *y;
    int64_t     cells = 1, dims[5];
    Ints        d, o;

    if (expr_rank(x) < 4 || expr_rank(x) > 5 || expr_rank(grid) != expr_rank(x))
        return build_error(b, E_IMPORT, "the grid is %s for %s", type_text(b->c, grid->type),
                           type_text(b->c, x->type));
    g.dims = expr_rank(x) - 2;
    if ((strcmp(mode, "linear") && strcmp(mode, "cubic") && strcmp(mode, "nearest")) ||
        (g.dims == 3 && *mode == 'c'))
        return build_error(b, E_UNSUPPORTED, "mode '%s' of %u dimensions", mode, g.dims);
    g.padding = !strcmp(how->padding, "zeros")    ? ZEROS
                : !strcmp(how->padding, "border") ? BORDER
                                                  : REFLECTION;
    if (g.padding == REFLECTION && strcmp(how->padding, "reflection"))
        return build_error(b, E_UNSUPPORTED, "padding_mode '%s'", how->padding);
    d = build_dims(b, x);
    o = build_dims(b, grid);
    dims[0] = g.N = d.at[0], dims[1] = g.C = d.at[1], g.P = 1;
    for (uint32_t i = 0; i < g.dims; i++) {
        g.size[i] = d.at[2 + i];
        g.P *= dims[2 + i] = o.at[1 + i];
        cells *= g.size[i];
    }
    if (o.at[0] != d.at[0] || o.at[g.dims + 1] != g.dims || cells < 1)
        return build_error(b, E_IMPORT, "the grid is %s", type_text(b->c, grid->type));
    g.x = build_reshape(b, x, 3, (int64_t[]){g.N, g.C, cells});
    for (uint32_t i = 0; i < g.dims; i++) {
        int64_t k = g.dims - 1 - i; /* x comes first, and is the last axis */

        at[i] = build_reshape(b, build_slice(b, grid, g.dims + 1, k, k + 1), 3,
                              (int64_t[]){g.N, 1, g.P});
        if (!at[i] || !(at[i] = place(&g, at[i], i)))
            return NULL;
    }
    y = sample(&g, mode, at);
    return build_reshape(b, y, g.dims + 2, dims);
}

/* ---- deformable convolution ------------------------------------------------------------------- */

/* Where tap k of the window of each result is along an axis, without its offset: [1, taps, H', W'].
 */
static const Expr *regular(const Build *b, const Expr *like, const BuildWindow *w, uint32_t axis,
                           const int64_t *out)
{
    DType    t = expr_dtype(like);
    int64_t  taps = w->kernel[0] * w->kernel[1], dims[4] = {1, taps, 1, 1};
    uint8_t *at = arena_array(b->c->arena, (size_t)(taps * out[axis]), dtype_bytes(t));

    dims[2 + axis] = out[axis];
    for (int64_t k = 0; k < taps; k++)
        for (int64_t o = 0; o < out[axis]; o++) {
            int64_t tap = axis == 0 ? k / w->kernel[1] : k % w->kernel[1];

            dtype_put_f(t, at + (k * out[axis] + o) * dtype_bytes(t),
                        (double)(o * w->stride[axis] + tap * w->dilation[axis] - w->begin[axis]));
        }
    return build_const(b, t, 4, dims, at);
}

/* The result's rows and columns; false with an error: something does not fit. */
static bool deformed_size(const Build *b, const BuildDeformed *d, int64_t *out)
{
    Ints              x = build_dims(b, d->x), w = build_dims(b, d->weight);
    const Expr *const beside[2] = {d->offset, d->mask};

    if (d->group < 1 || d->parts < 1 || x.at[1] % d->group || x.at[1] % d->parts ||
        w.at[0] % d->group || w.at[1] * d->group != x.at[1] || x.at[2] < 1 || x.at[3] < 1)
        return build_error(b, E_IMPORT, "weight %s, group %lld and offset_group %lld for data %s",
                           type_text(b->c, d->weight->type), (long long)d->group,
                           (long long)d->parts, type_text(b->c, d->x->type));
    for (uint32_t i = 0; i < 2; i++) {
        int64_t reach = (d->window.kernel[i] - 1) * d->window.dilation[i] + 1;

        out[i] =
            (x.at[2 + i] + d->window.begin[i] + d->window.end[i] - reach) / d->window.stride[i] + 1;
    }
    for (uint32_t i = 0; i < 2; i++) {
        int64_t taps = d->window.kernel[0] * d->window.kernel[1];
        int64_t want[4] = {x.at[0], d->parts * taps * (i == 0 ? 2 : 1), out[0], out[1]};

        for (uint32_t k = 0; k < 4 && beside[i]; k++)
            if (expr_rank(beside[i]) != 4 || build_dim(b, beside[i], k) != want[k] || want[k] < 1)
                return build_error(b, E_IMPORT, "the %s are %s, dimension %u should be %lld",
                                   i ? "factors" : "offsets", type_text(b->c, beside[i]->type), k,
                                   (long long)want[k]);
    }
    return true;
}

/* Where places are of the picture. */
static const Expr *within(const Grid *g, const Expr *const *at)
{
    const Build *b = g->b;
    const Expr  *in[2];

    for (uint32_t i = 0; i < 2; i++)
        in[i] = build2(b, "logical_and", build_by(b, "greater_equal", at[i], 0),
                       build_by(b, "less", at[i], (double)g->size[i]), NULL);
    return build2(b, "logical_and", in[0], in[1], NULL);
}

/* The cells that each result sees, sampled beside their places by the offsets and times the mask,
 * are columns of a matrix product with the weight: [N, group, C/group * taps, H'*W']. */
const Expr *build_deform_conv(const Build *b, const BuildDeformed *d)
{
    Grid        g = {.b = b, .dims = 2};
    int64_t     size[2], places, taps = d->window.kernel[0] * d->window.kernel[1], channels;
    int64_t     N = build_dim(b, d->x, 0), C = build_dim(b, d->x, 1);
    const Expr *at[2], *offset, *x, *w;

    if (!deformed_size(b, d, size))
        return NULL;
    places = size[0] * size[1];
    g.N = N * d->parts, g.C = C / d->parts, g.P = taps * places;
    g.size[0] = build_dim(b, d->x, 2), g.size[1] = build_dim(b, d->x, 3);
    g.x = build_reshape(b, d->x, 3, (int64_t[]){g.N, g.C, g.size[0] * g.size[1]});
    offset = build_reshape(b, d->offset, 5, (int64_t[]){g.N, taps, 2, size[0], size[1]});
    for (uint32_t i = 0; i < 2; i++) {
        at[i] = build_reshape(b, build_slice(b, offset, 2, i, i + 1), 4,
                              (int64_t[]){g.N, taps, size[0], size[1]});
        at[i] =
            build2(b, "add", at[i], at[i] ? regular(b, at[i], &d->window, i, size) : NULL, NULL);
        at[i] = build_reshape(b, at[i], 3, (int64_t[]){g.N, 1, g.P});
    }
    if (!at[0] || !at[1] || !g.x)
        return NULL;
    g.padding = d->ends ? BORDER : ZEROS;
    x = sample(&g, "linear", at);
    if (d->ends && x)
        x = build_where(b, within(&g, at), x, build_scalar(b, x, 0));
    if (d->mask)
        x = build2(b, "multiply", x, build_reshape(b, d->mask, 3, (int64_t[]){g.N, 1, g.P}), NULL);
    channels = build_dim(b, d->weight, 0);
    x = build_reshape(b, x, 4, (int64_t[]){N, d->group, C / d->group * taps, places});
    w = build_reshape(b, d->weight, 4,
                      (int64_t[]){1, d->group, channels / d->group, C / d->group * taps});
    x = x && w ? d->product(b, d->user, w, x) : NULL;
    return build_reshape(b, x, 4, (int64_t[]){N, channels, size[0], size[1]});
}
