/* Adjoints of what slides a window: convolutions and pooling.
 *
 * A convolution's operand gets the transposed convolution of the gradient with the same weights,
 * which is a convolution where steps are 1. Its weights get a convolution, too, in which pictures
 * are channels: the gradient is the kernel, strides and dilation change places. */
#include "ops/gradient/gradient.h"

#include <math.h>

/* ---- convolutions ------------------------------------------------------------------------------------- */

typedef struct {
    Ints    strides, dilation, padding;
    int64_t groups;
} Window;

static const Expr *conv(const Adjoint *a, const Window *w, const Expr *x, const Expr *k)
{
    Conv2dAttrs *attrs = NEW_ATTRS(a->b->c, Conv2dAttrs);

    attrs->strides = w->strides;
    attrs->dilation = w->dilation;
    attrs->padding = w->padding;
    attrs->groups = w->groups;
    return build2(a->b, "nn.conv2d", x, k, attrs);
}

/* With steps of 1 the transposed convolution is one with the kernel turned round, channels of each
 * group exchanged: there are better schedules for that.  NULL: it is not, or not within its
 * padding. */
static const Expr *conv_turned(const Adjoint *a, const Window *w, const Expr *y, const Expr *k)
{
    static const int64_t swap[] = {0, 2, 1, 3, 4};
    const Type          *t = k->type;
    Arith               *A = a->b->c->arith;
    const Idx           *g = idx_const(A, w->groups), *out = idx_divc(A, t->dims[0], w->groups);
    Window               v = *w;
    int64_t              pad[4];

    for (uint32_t i = 0; i < 4; i++) {
        pad[i] = (dim_of(t, i % 2 + 2) - 1) * w->dilation.at[i % 2] - w->padding.at[i];
        if (w->strides.at[i % 2] != 1 || pad[i] < 0)
            return NULL;
    }
    v.padding = ints_dup(a->b->c, pad, 4);
    k = build_reshape_to(a->b, k, 5, (const Idx *[]){g, out, t->dims[1], t->dims[2], t->dims[3]});
    k = build_reshape_to(a->b, build_transpose(a->b, k, 5, swap), 4,
                         (const Idx *[]){idx_mul(A, g, t->dims[1]), out, t->dims[2], t->dims[3]});
    return conv(a, &v, y, grad_reverse(a->b, grad_reverse(a->b, k, 2), 3));
}

/* The cells that read y, as many as `like` has. */
static const Expr *conv_back(const Adjoint *a, const Window *w, const Expr *y, const Expr *k,
                             const Type *like)
{
    Conv2dTransposeAttrs *attrs = NEW_ATTRS(a->b->c, Conv2dTransposeAttrs);
    int64_t               extra[2], in, out, size;
    const Expr           *turned;

    if (!y || !k)
        return NULL;
    for (uint32_t i = 0; i < 2; i++) {
        if (!rel_dim(a->b->c, a->b->loc, y->type, i + 2, &out) ||
            !rel_dim(a->b->c, a->b->loc, k->type, i + 2, &size) ||
            !rel_dim(a->b->c, a->b->loc, like, i + 2, &in))
            return NULL;
        extra[i] = in + w->padding.at[i] + w->padding.at[i + 2] -
                   ((out - 1) * w->strides.at[i] + (size - 1) * w->dilation.at[i] + 1);
    }
    if (!extra[0] && !extra[1] && (turned = conv_turned(a, w, y, k)))
        return turned;
    attrs->strides = w->strides;
    attrs->dilation = w->dilation;
    attrs->padding = w->padding;
    attrs->groups = w->groups;
    attrs->output_padding = ints_dup(a->b->c, extra, 2);
    return build2(a->b, "nn.conv2d_transpose", y, k, attrs);
}

/* [N, groups * C, ..] -> [C, groups * N, ..], or with `within` [groups * C, N, ..]. */
static const Expr *as_channels(const Adjoint *a, const Expr *x, int64_t groups, bool within)
{
    static const int64_t out[] = {2, 1, 0, 3, 4}, in[] = {1, 2, 0, 3, 4};
    Arith               *A = a->b->c->arith;
    const Idx           *n = x->type->dims[0], *ch = idx_divc(A, x->type->dims[1], groups);
    const Idx           *g = idx_const(A, groups), *h = x->type->dims[2], *w = x->type->dims[3];

    x = build_transpose(a->b, build_reshape_to(a->b, x, 5, (const Idx *[]){n, g, ch, h, w}), 5,
                        within ? in : out);
    return build_reshape_to(a->b, x, 4,
                            within ? (const Idx *[]){idx_mul(A, g, ch), n, h, w}
                                   : (const Idx *[]){ch, idx_mul(A, g, n), h, w});
}

static const Expr *conv_weight(const Adjoint *a, const Window *w, const Expr *x, const Expr *dy,
                               const Type *like)
{
    static const int64_t swap[] = {1, 0, 2, 3};
    Window               v = {w->dilation, w->strides, w->padding, w->groups};
    const Idx           *none = idx_const(a->b->c->arith, 0);

    x = conv(a, &v, as_channels(a, x, w->groups, false), as_channels(a, dy, w->groups, true));
    for (uint32_t i = 2; x && i < 4; i++) /* rows and columns that no window reached */
        if (x->type->dims[i] != like->dims[i])
            x = build_slice_to(a->b, x, i, none, like->dims[i]);
    return x ? build_transpose(a->b, x, 4, swap) : NULL;
}

void adjoint_conv2d(const Adjoint *a)
{
    const Conv2dAttrs *attrs = ATTRS(Conv2dAttrs, a->call);
    Window             w = {attrs->strides, attrs->dilation, attrs->padding, attrs->groups};

    if (a->x[0]->type->n != 4) {
        adjoint_refuse(a, "channels in blocks");
        return;
    }
    a->dx[0] = conv_back(a, &w, a->dy[0], a->x[1], a->x[0]->type);
    a->dx[1] = conv_weight(a, &w, a->x[0], a->dy[0], a->x[1]->type);
}

void adjoint_conv2d_transpose(const Adjoint *a)
{
    const Conv2dTransposeAttrs *attrs = ATTRS(Conv2dTransposeAttrs, a->call);
    Window w = {attrs->strides, attrs->dilation, attrs->padding, attrs->groups};

    a->dx[0] = conv(a, &w, a->dy[0], a->x[1]);
    for (uint32_t i = 2; a->dx[0] && i < 4; i++) /* beyond what output_padding added */
        if (a->dx[0]->type->dims[i] != a->x[0]->type->dims[i])
            a->dx[0] = build_slice_to(a->b, a->dx[0], i, idx_const(a->b->c->arith, 0),
                                      a->x[0]->type->dims[i]);
    a->dx[1] = conv_weight(a, &w, a->dy[0], a->x[0], a->x[1]->type);
}

/* ---- pooling -------------------------------------------------------------------------------------------- */

/* Sizes of a pooling whose rows and columns are numbers. */
typedef struct {
    Window  w; /* without padding .. */
    int64_t k[2], out[2], channels;
    int64_t border[8], back[8]; /* .. which is put on, and taken off, by nn.pad */
} Pool;

static bool pool_of(const Adjoint *a, Pool *p)
{
    const Pool2dAttrs *attrs = ATTRS(Pool2dAttrs, a->call);
    const Type        *x = a->x[0]->type, *y = a->call->type;

    if (x->n != 4) {
        adjoint_refuse(a, "channels in blocks");
        return false;
    }
    *p = (Pool){.w = {attrs->strides, attrs->dilation, ints_of(a->b->c, 4, 0, 0, 0, 0), 1}};
    if (!rel_dim(a->b->c, a->b->loc, x, 1, &p->channels))
        return false;
    p->w.groups = p->channels;
    for (uint32_t i = 0; i < 2; i++) {
        int64_t in, *border = p->border + 4 + 2 * i;

        p->k[i] = attrs->pool_size.at[i];
        if (!rel_dim(a->b->c, a->b->loc, x, i + 2, &in) ||
            !rel_dim(a->b->c, a->b->loc, y, i + 2, &p->out[i]))
            return false;
        border[0] = attrs->padding.at[i];
        border[1] = (p->out[i] - 1) * attrs->strides.at[i] + (p->k[i] - 1) * attrs->dilation.at[i] +
                    1 - border[0] - in;
    }
    for (uint32_t i = 0; i < 8; i++)
        p->back[i] = -p->border[i];
    return true;
}

/* Channels of y, of which each of x has as many as there are weights [n, 1, kh, kw], spread over
 * their windows; the border is taken off. */
static const Expr *spread(const Adjoint *a, const Pool *p, const Expr *y, const Expr *weights)
{
    const Type *t = a->x[0]->type;
    const Idx  *dims[4] = {t->dims[0], t->dims[1], NULL, NULL};
    TileAttrs  *all = NEW_ATTRS(a->b->c, TileAttrs);

    for (uint32_t i = 2; i < 4; i++)
        dims[i] = idx_addc(a->b->c->arith, t->dims[i], p->border[2 * i] + p->border[2 * i + 1]);
    all->reps = dims_of_i64(a->b->c, (int64_t[]){p->channels, 1, 1, 1}, 4);
    y = conv_back(a, &p->w, y, build1(a->b, "tile", weights, all),
                  type_tensor(a->b->c, t->dtype, 4, dims));
    return build_pad(a->b, y, p->back, 0, NULL);
}

static const Expr *numbers(const Adjoint *a, const int64_t dims[4], const double *v)
{
    const Type *t = type_tensor_i64(a->b->c, a->x[0]->type->dtype, 4, dims);
    uint32_t    size = dtype_bytes(t->dtype);
    size_t      n = (size_t)(dims[0] * dims[1] * dims[2] * dims[3]);
    uint8_t    *data = arena_array(a->b->c->arena, n + 1, size);

    for (size_t i = 0; i < n; i++)
        dtype_put_f(t->dtype, data + i * size, v[i]);
    return expr_const(a->b->c, const_new(a->b->c, NULL, t, (Bytes){data, n * size}), a->b->loc);
}

/* Cells of each window that count: rows times columns. */
static const Expr *window_cells(const Adjoint *a, const Pool *p)
{
    const Pool2dAttrs *attrs = ATTRS(Pool2dAttrs, a->call);
    double            *v = NEW_ARRAY(a->b->c->scratch, double, (size_t)(p->out[0] * p->out[1]) + 1);

    for (int64_t y = 0; y < p->out[0] * p->out[1]; y++) {
        int64_t at[2] = {y / p->out[1], y % p->out[1]}, n[2] = {0, 0};

        for (uint32_t i = 0; i < 2; i++) {
            int64_t in = dim_of(a->x[0]->type, i + 2), lo = 0, hi = in;

            if (attrs->count_include_pad) {
                lo = -attrs->padding.at[i];
                hi = in + attrs->padding.at[i + 2];
            }
            for (int64_t k = 0; k < p->k[i]; k++) {
                int64_t x =
                    at[i] * p->w.strides.at[i] + k * p->w.dilation.at[i] - attrs->padding.at[i];

                n[i] += lo <= x && x < hi;
            }
        }
        v[y] = n[0] && n[1] ? (double)(n[0] * n[1]) : 1;
    }
    return numbers(a, (int64_t[]){1, 1, p->out[0], p->out[1]}, v);
}

void adjoint_avg_pool2d(const Adjoint *a)
{
    Pool p;

    if (!pool_of(a, &p))
        return;
    const Type *ones =
        type_tensor_i64(a->b->c, a->x[0]->type->dtype, 4, (int64_t[]){1, 1, p.k[0], p.k[1]});
    a->dx[0] = spread(a, &p, build_div(a->b, a->dy[0], window_cells(a, &p)), grad_ones(a->b, ones));
}

enum { MAX_WINDOW = 64 }; /* cells; each is a slice of the operand */

/* The cells that windows see, [N, C, K, rows, columns]. */
static const Expr *seen(const Adjoint *a, const Pool *p)
{
    PadAttrs   *pad = NEW_ATTRS(a->b->c, PadAttrs);
    StackAttrs *stack = NEW_ATTRS(a->b->c, StackAttrs);
    const Expr *x, *at[MAX_WINDOW];
    uint32_t    n = 0;

    pad->pad_width = ints_dup(a->b->c, p->border, 8);
    pad->pad_value = -INFINITY;
    stack->axis = 2;
    if (!(x = build1(a->b, "nn.pad", a->x[0], pad)))
        return NULL;
    for (int64_t i = 0; i < p->k[0] * p->k[1]; i++) {
        StridedSliceAttrs *cut = NEW_ATTRS(a->b->c, StridedSliceAttrs);
        int64_t begin[2] = {i / p->k[1] * p->w.dilation.at[0], i % p->k[1] * p->w.dilation.at[1]};
        int64_t end[2];

        for (uint32_t k = 0; k < 2; k++)
            end[k] = begin[k] + (p->out[k] - 1) * p->w.strides.at[k] + 1;
        cut->begin = dims_of_i64(a->b->c, begin, 2);
        cut->end = dims_of_i64(a->b->c, end, 2);
        cut->strides = p->w.strides;
        cut->axes = ints_of(a->b->c, 2, 2, 3);
        if (!(at[n++] = build1(a->b, "strided_slice", x, cut)))
            return NULL;
    }
    return build1(a->b, "stack", expr_tuple(a->b->c, n, at, a->b->loc), stack);
}

/* The gradient goes to the first of the largest cells of a window. */
void adjoint_max_pool2d(const Adjoint *a)
{
    ArgReduceAttrs *which = NEW_ATTRS(a->b->c, ArgReduceAttrs);
    OneHotAttrs    *hot = NEW_ATTRS(a->b->c, OneHotAttrs);
    const Type     *t = a->call->type;
    const Idx      *one = idx_const(a->b->c->arith, 1);
    const Expr     *dy, *to;
    double          eye[MAX_WINDOW * MAX_WINDOW] = {0};
    int64_t         cells;
    Pool            p;

    if (!pool_of(a, &p))
        return;
    cells = p.k[0] * p.k[1];
    if (p.k[0] > MAX_WINDOW || p.k[1] > MAX_WINDOW || cells > MAX_WINDOW) {
        adjoint_refuse(a, "a window of more than 64 cells");
        return;
    }
    which->axis = hot->axis = 2;
    hot->depth = cells;
    hot->dtype = t->dtype;
    to = build3(a->b, "one_hot", build1(a->b, "argmax", seen(a, &p), which),
                expr_scalar(a->b->c, t->dtype, 1), expr_scalar(a->b->c, t->dtype, 0), hot);
    dy = build_reshape_to(a->b, a->dy[0], 5,
                          (const Idx *[]){t->dims[0], t->dims[1], one, t->dims[2], t->dims[3]});
    dy = build_reshape_to(a->b, build_mul(a->b, to, dy), 4,
                          (const Idx *[]){t->dims[0], idx_mulc(a->b->c->arith, t->dims[1], cells),
                                          t->dims[2], t->dims[3]});
    for (int64_t i = 0; i < cells; i++)
        eye[i * cells + i] = 1;
    a->dx[0] = spread(a, &p, dy, numbers(a, (int64_t[]){cells, 1, p.k[0], p.k[1]}, eye));
}

enum { ROWS_AND_COLUMNS = 1 << 2 | 1 << 3 };

void adjoint_global_avg_pool2d(const Adjoint *a)
{
    a->dx[0] = build_div(a->b, a->dy[0], grad_count(a->b, a->x[0], ROWS_AND_COLUMNS));
}

void adjoint_global_max_pool2d(const Adjoint *a)
{
    a->dx[0] = grad_of_extremum(a, a->x[0], ROWS_AND_COLUMNS);
}
