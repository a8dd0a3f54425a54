/* Sampling a picture at computed places: GridSample, AffineGrid, DeformConv. */
#include "frontends/onnx/onnx.h"

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

/* X [N, C, H, W] at grid [N, H', W', 2] of (x, y) from -1 to 1; or [N, C, D, H, W] at
 * [N, D', H', W', 3] of (x, y, z). */
bool convert_grid_sample(Node *n)
{
    const Build *b = &n->b;
    const char  *mode = node_str(n, "mode", "linear"), *pad = node_str(n, "padding_mode", "zeros");
    Grid         g = {.b = b, .align = node_int(n, "align_corners", 0) != 0};
    const Expr  *at[3], *y;
    int64_t      cells = 1, dims[5];
    Ints         d, o;

    if (!node_need_rank(n, 0, 4, 5) ||
        !node_need_rank(n, 1, expr_rank(n->in[0]), expr_rank(n->in[0])))
        return false;
    g.dims = expr_rank(n->in[0]) - 2;
    mode = !strncmp(mode, "bi", 2) ? mode + 2 : mode;
    if ((strcmp(mode, "linear") && strcmp(mode, "cubic") && strcmp(mode, "nearest")) ||
        (g.dims == 3 && *mode == 'c'))
        return node_error(n, E_UNSUPPORTED, "mode '%s' of %u dimensions", mode, g.dims);
    g.padding = !strcmp(pad, "zeros") ? ZEROS : !strcmp(pad, "border") ? BORDER : REFLECTION;
    if (g.padding == REFLECTION && strcmp(pad, "reflection"))
        return node_error(n, E_UNSUPPORTED, "padding_mode '%s'", pad);
    d = build_dims(b, n->in[0]);
    o = build_dims(b, n->in[1]);
    dims[0] = g.N = d.at[0], dims[1] = g.C = d.at[1], g.P = 1;
    for (uint32_t i = 0; i < g.dims; i++) {
        g.size[i] = d.at[2 + i];
        g.P *= dims[2 + i] = o.at[1 + i];
        cells *= g.size[i];
    }
    if (o.at[0] != d.at[0] || o.at[g.dims + 1] != g.dims || cells < 1)
        return node_error(n, E_IMPORT, "the grid is %s", type_text(b->c, n->in[1]->type));
    g.x = build_reshape(b, n->in[0], 3, (int64_t[]){g.N, g.C, cells});
    for (uint32_t i = 0; i < g.dims; i++) {
        int64_t k = g.dims - 1 - i; /* x comes first, and is the last axis */

        at[i] = build_reshape(b, build_slice(b, n->in[1], g.dims + 1, k, k + 1), 3,
                              (int64_t[]){g.N, 1, g.P});
        if (!at[i] || !(at[i] = place(&g, at[i], i)))
            return false;
    }
    y = sample(&g, mode, at);
    return node_done(n, build_reshape(b, y, g.dims + 2, dims));
}

/* The middles of `cells` cells between -1 and 1, or places from -1 to 1, of f64. */
static const Expr *linear_places(const Build *b, const Idx *cells, bool align)
{
    const Expr *at = build_arange(b, cells, DT_F64), *size = cell_f64(b, cells),
               *one = build_f64(b, 1), *apart;

    at = build_mul(b, at, build_f64(b, 2));
    if (!align)
        return build_sub(b, build_div(b, build_add(b, at, one), size), one);
    apart = build2(b, "maximum", build_sub(b, size, one), one, NULL);
    /* A single place is in the middle. */
    return build_where(b, build_less(b, one, size), build_sub(b, build_div(b, at, apart), one),
                       build_f64(b, 0));
}

/* theta [N, 2, 3] times the places of a picture of size [N, C, H, W]; or [N, 3, 4] of a volume. */
bool convert_affine_grid(Node *n)
{
    const Build *b = &n->b;
    bool         align = node_int(n, "align_corners", 0) != 0;
    const Expr  *theta = n->in[0], *size, *y = NULL;
    const Idx   *dims[5], *column[5], *one = idx_const(b->c->arith, 1);
    RunDim       d[3];
    int64_t      k;

    if (!node_need_rank(n, 0, 3, 3) || !(size = node_cells(n, 1)))
        return false;
    k = build_elems(b, size) - 2;
    if ((k != 2 && k != 3) || build_dim(b, theta, 1) != k || build_dim(b, theta, 2) != k + 1)
        return node_error(n, E_IMPORT, "theta is %s for a size of %lld numbers",
                          type_text(b->c, theta->type), (long long)k + 2);
    dims[0] = column[0] = expr_form(theta, 0);
    column[k + 1] = dims[k + 1] = idx_const(b->c->arith, k);
    for (uint32_t i = 0; i < k; i++) {
        d[i] = (RunDim){cell_of(b, size, 2 + i), 1, NULL, 1 + i, 1};
        column[1 + i] = one;
    }
    if (!onnx_require(n, build_sub(b, cell_of(b, size, 0), cell_form(b, dims[0])),
                      "size has another batch than theta") ||
        !onnx_bind(n, 0, (uint32_t)k, d, dims + 1))
        return false;
    for (uint32_t i = 0; i <= k; i++) {         /* the last column is added as it is */
        int64_t     at = i < k ? k - 1 - i : k; /* x comes first, and is the last axis */
        const Expr *v = build_reshape_to(b, build_slice(b, theta, 2, at, at + 1), (uint32_t)k + 2,
                                         column),
                   *place = i < k ? linear_places(b, dims[1 + i], align) : NULL;

        if (place) {
            place = build_cast(b, place, expr_dtype(theta));
            v = build_mul(b, v, build_along(b, place, (uint32_t)k + 2, 1 + i));
        }
        y = y ? build_add(b, y, v) : v;
    }
    return node_done(n, y);
}

/* ---- DeformConv ---------------------------------------------------------------------------------------- */

/* Where tap k of the window of each result is along an axis, without its offset: [1, taps, H', W'].
 */
static const Expr *regular(const Build *b, const Expr *like, const OnnxWindow *w, uint32_t axis,
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

typedef struct {
    int64_t    N, C, taps, group, parts, out[2];
    OnnxWindow w;
} Deformed;

static bool deformed(Node *n, Deformed *d)
{
    const Build *b = &n->b;
    Ints         x, w;
    int64_t      kernel[2];

    for (uint32_t i = 0; i < 3; i++)
        if (!node_need_rank(n, i, 4, 4))
            return false;
    x = build_dims(b, n->in[0]);
    w = build_dims(b, n->in[1]);
    d->N = x.at[0], d->C = x.at[1];
    d->group = node_int(n, "group", 1), d->parts = node_int(n, "offset_group", 1);
    kernel[0] = w.at[2], kernel[1] = w.at[3];
    node_ignore(n, "kernel_shape"); /* the weight has it */
    if (!onnx_window(n, n->in[0], kernel, 2, &d->w))
        return false;
    d->taps = kernel[0] * kernel[1];
    if (d->group < 1 || d->parts < 1 || d->C % d->group || d->C % d->parts || w.at[0] % d->group ||
        w.at[1] * d->group != d->C || x.at[2] < 1 || x.at[3] < 1)
        return node_error(n, E_IMPORT, "weight %s, group %lld and offset_group %lld for data %s",
                          type_text(b->c, n->in[1]->type), (long long)d->group, (long long)d->parts,
                          type_text(b->c, n->in[0]->type));
    for (uint32_t i = 0; i < 2; i++) {
        int64_t reach = (kernel[i] - 1) * d->w.dilation[i] + 1;

        d->out[i] = (x.at[2 + i] + d->w.begin[i] + d->w.end[i] - reach) / d->w.stride[i] + 1;
    }
    for (uint32_t i = 2; i < 5; i += 2) {
        int64_t want[4] = {d->N, d->parts * d->taps * (i == 2 ? 2 : 1), d->out[0], d->out[1]};

        if (!node_has(n, i))
            continue;
        if (!node_need_rank(n, i, 4, 4))
            return false;
        for (uint32_t k = 0; k < 4; k++)
            if (build_dim(b, n->in[i], k) != want[k] || want[k] < 1)
                return node_error(n, E_IMPORT, "input %u is %s, dimension %u should be %lld", i,
                                  type_text(b->c, n->in[i]->type), k, (long long)want[k]);
    }
    return true;
}

/* The cells that each result sees, sampled beside their places by the offsets and times the mask,
 * are columns of a matrix product with the weight: [N, group, C/group * taps, H'*W']. */
bool convert_deform_conv(Node *n)
{
    const Build *b = &n->b;
    Deformed     d;
    Grid         g = {.b = b, .padding = ZEROS, .dims = 2};
    const Expr  *at[2], *offset, *x, *w, *mask;
    int64_t      places, out;

    if (!deformed(n, &d))
        return false;
    places = d.out[0] * d.out[1];
    g.N = d.N * d.parts, g.C = d.C / d.parts, g.P = d.taps * places;
    g.size[0] = build_dim(b, n->in[0], 2), g.size[1] = build_dim(b, n->in[0], 3);
    g.x = build_reshape(b, n->in[0], 3, (int64_t[]){g.N, g.C, g.size[0] * g.size[1]});
    offset = build_reshape(b, n->in[2], 5, (int64_t[]){g.N, d.taps, 2, d.out[0], d.out[1]});
    for (uint32_t i = 0; i < 2; i++) {
        at[i] = build_reshape(b, build_slice(b, offset, 2, i, i + 1), 4,
                              (int64_t[]){g.N, d.taps, d.out[0], d.out[1]});
        at[i] = build2(b, "add", at[i], at[i] ? regular(b, at[i], &d.w, i, d.out) : NULL, NULL);
        at[i] = build_reshape(b, at[i], 3, (int64_t[]){g.N, 1, g.P});
    }
    if (!at[0] || !at[1] || !g.x)
        return false;
    x = sample(&g, "linear", at);
    if (node_has(n, 4)) {
        mask = build_reshape(b, n->in[4], 3, (int64_t[]){g.N, 1, g.P});
        x = build2(b, "multiply", x, mask, NULL);
    }
    out = build_dim(b, n->in[1], 0);
    x = build_reshape(b, x, 4, (int64_t[]){d.N, d.group, d.C / d.group * d.taps, places});
    w = build_reshape(b, n->in[1], 4,
                      (int64_t[]){1, d.group, out / d.group, d.C / d.group * d.taps});
    if (!x || !w || !(x = onnx_matmul(n, w, x)))
        return false;
    x = build_reshape(b, x, 4, (int64_t[]){d.N, out, d.out[0], d.out[1]});
    return node_done(n, onnx_bias(n, x, node_has(n, 3) ? n->in[3] : NULL));
}
