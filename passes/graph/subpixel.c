/* subpixel: transposed convolutions as convolutions of more channels, whose cells are interleaved.
 *
 *   nn.conv2d_transpose(%x, const @w, strides=[2, 2])       // @w: I O 2 2
 *     -> %0 = nn.conv2d(%x, const @w');                     // @w': O*4 I 1 1
 *        reshape(transpose(reshape(%0, [N, O, 2, 2, H, W]), [0, 1, 4, 2, 5, 3]), [N, O, 2H, 2W])
 *
 * Output row s*y + r takes the kernel rows k for which s divides r + top - k*dilation, from input
 * row y + (r + top - k*dilation) / s.  All rows r of one y together look at a window of input rows,
 * which is the new kernel, with zeros where a row r has no tap there.  The zeros cost products
 * (1.8 times as many for 3x3 by 2), but the fast convolutions apply (Shi et al., "Real-Time Single
 * Image and Video Super-Resolution ..", 2016).  A stride of 1 is a convolution with the kernel
 * turned round, whose dilation stays.  Results that the stride does not divide are cut.  A bias
 * behind it is added before.  Weights are rearranged here and must be constant.  Cost: one walk and
 * a copy of the weights. */
#include "passes/graph/graph.h"

#include <string.h>

enum {
    MOST_STRIDE = 16,
    MOST_REACH = 256,   /* cells between the first and the last tap */
    MOST_PRODUCTS = 16, /* times those of the formula: what plain loops are slower */
};

typedef struct {
    int64_t n, in, out, groups; /* images, channels of a group, groups */
    int64_t size[2], k[2], s[2], d[2], top[2], size_out[2]; /* of the rows, of the columns */
    int64_t lo[2], step[2], window[2], cells[2]; /* input cells y + lo, y + lo + step, .. */
    int64_t pad[4];                              /* of the new convolution */
} Subpixel;

/* The window of dimension i and its padding; false where the form does not fit. */
static bool find_window(Subpixel *p, int i)
{
    int64_t lo = 0, hi = INT64_MIN, reach = (p->k[i] - 1) * p->d[i], size = p->size[i];

    if (p->s[i] > MOST_STRIDE || p->k[i] > MOST_REACH || p->d[i] > MOST_REACH ||
        p->top[i] > MOST_REACH || reach > MOST_REACH || p->size_out[i] < 1)
        return false;
    for (int64_t r = 0; r < p->s[i]; r++)
        for (int64_t k = 0; k < p->k[i]; k++) {
            int64_t from = r + p->top[i] - k * p->d[i], e = from / p->s[i];

            if (from % p->s[i])
                continue;
            lo = hi == INT64_MIN || e < lo ? e : lo;
            hi = e > hi ? e : hi;
        }
    if (hi == INT64_MIN)
        return false;
    p->step[i] = p->s[i] == 1 ? p->d[i] : 1;
    /* Padding is never negative: the window begins at the cell or before. */
    while (lo > 0)
        lo -= p->step[i];
    p->cells[i] = (p->size_out[i] + p->s[i] - 1) / p->s[i];
    p->lo[i] = lo;
    if (p->cells[i] - size < -MOST_REACH)
        return false;
    while (p->cells[i] - size + hi < 0)
        hi += p->step[i];
    p->window[i] = (hi - lo) / p->step[i] + 1;
    p->pad[i] = -lo;
    p->pad[i + 2] = p->cells[i] - size + hi;
    return p->window[i] <= MOST_REACH;
}

static bool subpixel_of(const Expr *e, Subpixel *p)
{
    const Conv2dTransposeAttrs *a = ATTRS_OF(Conv2dTransposeAttrs, e);
    const Type                 *x = call_arg(e, 0)->type, *w = call_arg(e, 1)->type;
    int64_t                     d[4], k[4], y[4];

    if (a->groups < 1 || call_arg(e, 1)->kind != EXPR_CONST || !e->type || !x || x->n != 4 ||
        !dtype_eq(x->dtype, DT_F32) || !dtype_eq(e->type->dtype, DT_F32))
        return false;
    for (uint32_t i = 0; i < 4; i++)
        if (!type_dim(x, i, &d[i]) || !type_dim(w, i, &k[i]) || !type_dim(e->type, i, &y[i]) ||
            d[i] < 1)
            return false;
    *p = (Subpixel){.n = d[0], .in = d[1] / a->groups, .out = k[1], .groups = a->groups};
    for (int i = 0; i < 2; i++) {
        p->size[i] = d[i + 2];
        p->k[i] = k[i + 2];
        p->s[i] = a->strides.at[i];
        p->d[i] = a->dilation.at[i];
        p->top[i] = a->padding.at[i];
        p->size_out[i] = y[i + 2];
        if (!find_window(p, i))
            return false;
    }
    return p->window[0] * p->window[1] * p->s[0] * p->s[1] <= MOST_PRODUCTS * p->k[0] * p->k[1];
}

/* The kernel row that output row r takes at cell u of the window, or -1. */
static int64_t tap_at(const Subpixel *p, int i, int64_t r, int64_t u)
{
    int64_t from = r + p->top[i] - (u * p->step[i] + p->lo[i]) * p->s[i];

    return from >= 0 && from % p->d[i] == 0 && from / p->d[i] < p->k[i] ? from / p->d[i] : -1;
}

/* [groups, out, s, s] outputs of [in] channels and the window, from I O kh kw. */
static const Expr *rearranged(Ctx *c, const Subpixel *p, const Expr *w)
{
    int64_t dims[4] = {p->groups * p->out * p->s[0] * p->s[1], p->in, p->window[0], p->window[1]};
    int64_t n = 1;
    size_t  at = 0;

    for (int i = 0; i < 4; i++)
        if (!checked_mul(n, dims[i], &n))
            return NULL;
    float         *to = arena_alloc(c->arena, (size_t)n * sizeof *to);
    const uint8_t *from = w->u.constant->data.at;

    for (int64_t o = 0; o < dims[0]; o++) {
        int64_t of = o / (p->s[0] * p->s[1]), ry = o / p->s[1] % p->s[0], rx = o % p->s[1];
        int64_t first = of / p->out * p->in; /* channel of the group */

        for (int64_t i = 0; i < p->in; i++)
            for (int64_t uy = 0; uy < p->window[0]; uy++)
                for (int64_t ux = 0; ux < p->window[1]; ux++) {
                    int64_t ky = tap_at(p, 0, ry, uy), kx = tap_at(p, 1, rx, ux);
                    int64_t row = ((first + i) * p->out + of % p->out) * p->k[0] + ky;

                    to[at] = 0;
                    if (ky >= 0 && kx >= 0)
                        memcpy(&to[at], from + (size_t)(row * p->k[1] + kx) * sizeof *to,
                               sizeof *to);
                    at++;
                }
    }
    return expr_const(c,
                      const_new(c, w->u.constant->name, type_tensor_i64(c, DT_F32, 4, dims),
                                (Bytes){(uint8_t *)to, (size_t)n * sizeof *to}),
                      w->loc);
}

/* [N, O*s*s, H, W] to [N, O, H*s, W*s], of which the result's rows and columns. */
static const Expr *interleaved(Ctx *c, const Subpixel *p, const Expr *e, Loc loc)
{
    static const int64_t order[6] = {0, 1, 4, 2, 5, 3}, zero[2] = {0, 0}, axes[2] = {2, 3};
    int64_t              o = p->groups * p->out, y = p->cells[0], x = p->cells[1];
    int64_t              apart[6] = {p->n, o, p->s[0], p->s[1], y, x};
    int64_t              whole[4] = {p->n, o, y * p->s[0], x * p->s[1]};

    if (e && p->s[0] * p->s[1] > 1) {
        TransposeAttrs *t = ATTRS_NEW(c, TransposeAttrs);

        t->axes = ints_dup(c, order, 6);
        e = make_reshape(c, e, 6, apart, loc);
        e = e ? make1(c, "transpose", e, t, loc) : NULL;
        e = e ? make_reshape(c, e, 4, whole, loc) : NULL;
    }
    if (!e || (whole[2] == p->size_out[0] && whole[3] == p->size_out[1]))
        return e;
    StridedSliceAttrs *s = ATTRS_NEW(c, StridedSliceAttrs);
    s->begin = ints_dup(c, zero, 2);
    s->end = ints_dup(c, p->size_out, 2);
    s->axes = ints_dup(c, axes, 2);
    return make1(c, "strided_slice", e, s, loc);
}

/* Each number as often as a channel has new ones. */
static const Expr *repeated(Ctx *c, const Subpixel *p, const Expr *bias)
{
    int64_t n = p->groups * p->out, times = p->s[0] * p->s[1], cells, at = 0;

    if (!checked_mul(n, times, &cells))
        return NULL;
    float         *to = arena_alloc(c->arena, (size_t)cells * sizeof *to);
    const uint8_t *from = bias->u.constant->data.at;

    for (int64_t o = 0; o < n; o++)
        for (int64_t i = 0; i < times; i++)
            memcpy(&to[at++], from + (size_t)o * sizeof *to, sizeof *to);
    return expr_const(c,
                      const_new(c, bias->u.constant->name, type_tensor_i64(c, DT_F32, 1, &cells),
                                (Bytes){(uint8_t *)to, (size_t)cells * sizeof *to}),
                      bias->loc);
}

/* A bias goes before the interleaving, where the convolution's kernel adds it. */
static const Expr *bias_first(Ctx *c, const Map *uses, const Expr *was, const Expr *now)
{
    const Expr         *deconv = call_arg(was, 0), *bias = call_arg(now, 1), *e = call_arg(now, 0);
    const BiasAddAttrs *a = ATTRS_OF(BiasAddAttrs, now);
    Subpixel            p;

    if (!call_is(deconv, "nn.conv2d_transpose") || e == deconv || uses_of(uses, deconv) != 1 ||
        bias->kind != EXPR_CONST || a->axis != 1 || !subpixel_of(deconv, &p))
        return now;
    while (!call_is(e, "nn.conv2d"))
        e = call_arg(e, 0);
    bias = repeated(c, &p, bias);
    return bias ? interleaved(c, &p, make2(c, "nn.bias_add", e, bias, a, now->loc), now->loc)
                : NULL;
}

static const Expr *rewrite(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    Subpixel    p;
    const Expr *w;

    if (call_is(now, "nn.bias_add"))
        return bias_first(c, user, was, now);
    if (!call_is(now, "nn.conv2d_transpose") || !subpixel_of(now, &p) ||
        !(w = rearranged(c, &p, call_arg(now, 1))))
        return now;
    Conv2dAttrs *a = ATTRS_NEW(c, Conv2dAttrs);
    a->padding = ints_dup(c, p.pad, 4);
    a->dilation = ints_dup(c, p.step, 2);
    a->groups = p.groups;
    a->channels = p.groups * p.out * p.s[0] * p.s[1];
    a->kernel_size = ints_dup(c, p.window, 2);
    return interleaved(c, &p, make2(c, "nn.conv2d", call_arg(now, 0), w, a, now->loc), now->loc);
}

const Module *subpixel(Ctx *c, const Module *m)
{
    if (!has_vectors(c))
        return m;
    return module_rewrite(c, m, rewrite, count_uses(c, m));
}
