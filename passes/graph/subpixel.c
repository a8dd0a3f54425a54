/* subpixel: transposed convolutions as convolutions of more channels, whose cells are interleaved.
 *
 *   nn.conv2d_transpose(%x, const @w, strides=[2, 2])       // @w: I O 2 2
 *     -> %0 = nn.conv2d(%x, const @w');                     // @w': 4*O I 1 1
 *        nn.depth_to_space(%0, block_size=[2, 2])
 *
 * Output row s*y + r takes the kernel rows k for which s divides r + top - k*dilation, from input
 * row y + (r + top - k*dilation) / s.  All rows r of one y together look at a window of input rows,
 * which is the new kernel, with zeros where a row r has no tap there (Shi et al., "Real-Time Single
 * Image and Video Super-Resolution ..", 2016).  A stride of 1 is a convolution with the kernel
 * turned round, whose dilation stays.
 *
 * Zeros cost products: 16 instead of 9 for 3x3 by 2.  So each place (row r, column) may have a
 * convolution of its own, with its own taps, which write parts of one memory (plan_views).  One for
 * all is taken where Winograd's algorithm makes it the cheaper one (4x4 by 2: windows of 3x3), or
 * where the few channels of one place do not fill a vector.  There the products of all taps may
 * come first, without zeros, and then their sums (subpixel_taps.c).
 *
 * Channels of one place lie together and are filled up to whole blocks, if that is little, so that
 * interleaving moves vectors.  Results that the stride does not divide are cut.  A bias behind it
 * is added before.  Weights are rearranged here and must be constant.  Those of a quantized model
 * are rearranged as the integers that they are, before quantized_to_integer makes integers of the
 * convolutions (subpixel_quantized).  Cost: one walk and a copy of the weights. */
#include "passes/graph/subpixel.h"

#include "passes/graph/quantized.h"

#include <math.h>
#include <string.h>

enum {
    MOST_STRIDE = 16,
    MOST_PARTS = 16,
    MOST_REACH = 256, /* cells between the first and the last tap */
};

/* The window of dimension i and its padding; false where the form does not fit. */
static bool find_window(Subpixel *p, Part *a, int i)
{
    int64_t lo = 0, hi = INT64_MIN, reach = (p->k[i] - 1) * p->d[i], size = p->size[i];

    if (p->s[i] > MOST_STRIDE || p->k[i] > MOST_REACH || p->d[i] > MOST_REACH ||
        p->top[i] > MOST_REACH || reach > MOST_REACH || p->size_out[i] < 1)
        return false;
    for (int64_t r = a->r0[i]; r < a->r1[i]; r++)
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
    a->lo[i] = lo;
    if (p->cells[i] - size < -MOST_REACH)
        return false;
    while (p->cells[i] - size + hi < 0)
        hi += p->step[i];
    a->window[i] = (hi - lo) / p->step[i] + 1;
    a->pad[i] = -lo;
    a->pad[i + 2] = p->cells[i] - size + hi;
    return a->window[i] <= MOST_REACH;
}

/* Channels of a place, filled up to whole blocks of the widest vector for which that is little. */
static int64_t filled_channels(Ctx *c, const Subpixel *p, const Part *all)
{
    double  sum = (double)p->in * (double)(all->window[0] * all->window[1]);
    Machine m = machine_of(c->target);

    for (int64_t w = c->target->vector_bytes / 4; w >= LEAST_LANES; w /= 2) {
        int64_t n = (p->out + w - 1) / w * w;

        if (sum * (double)(n - p->out) <= limit_filling_macs(&m) * (double)p->out)
            return n;
    }
    return 0;
}

static int64_t products(const Part *a)
{
    return a->window[0] * a->window[1] * (a->r1[0] - a->r0[0]) * (a->r1[1] - a->r0[1]);
}

double subpixel_vectors(int64_t outs, int64_t row, int64_t lanes)
{
    return fmin((double)ceil_div(outs, lanes), (double)(outs * ceil_div(row, lanes)) / (double)row);
}

/* Vectors of products for a cell of the new result. */
static double vectors(const Subpixel *p, const Part *a, int64_t lanes)
{
    int64_t outs = p->filled ? p->filled : p->out;

    outs *= (a->r1[0] - a->r0[0]) * (a->r1[1] - a->r0[1]);
    return (double)(a->window[0] * a->window[1]) * subpixel_vectors(outs, p->cells[1], lanes);
}

/* ... of one convolution for all places. */
static double vectors_of_one(const Ctx *c, const Subpixel *p, const Part *all, int64_t lanes)
{
    int64_t outs = (p->filled ? p->filled : p->out) * p->s[0] * p->s[1];
    int64_t out[4] = {p->n, outs, p->cells[0], p->cells[1]};
    double  one = vectors(p, all, lanes);

    return c->target->winograd && p->in % lanes == 0
               ? one * winograd_gain(c, out, p->in, all->window, lanes)
               : one;
}

/* The constant that is rearranged: the weights themselves, or those that are dequantized (q->q). */
static const Expr *weights_of(const Expr *w, Quantized *q)
{
    if (w->kind == EXPR_CONST) {
        *q = (Quantized){0};
        return dtype_eq(w->type->dtype, DT_F32) ? w : NULL;
    }
    if (!quantized_of(w, q) || q->q->kind != EXPR_CONST || q->scale->kind != EXPR_CONST ||
        q->zero->kind != EXPR_CONST || !is_8bit(q->q->type->dtype))
        return NULL;
    return q->q;
}

/* Cells of the operand and of the result.  Of sizes that a run decides the usual ones, where the
 * result has so many cells more than the stride's multiple, whichever they are. */
static bool sizes_of(Arith *A, const Idx *x, const Idx *y, int64_t stride, int64_t *in,
                     int64_t *out)
{
    int64_t more = 0;

    *in = idx_usual(x);
    *out = idx_usual(y);
    if (idx_is_const(x, in) && idx_is_const(y, out))
        return *in > 0;
    return *in > 0 && idx_is_const(idx_sub(A, y, idx_mulc(A, x, stride)), &more) &&
           more % stride == 0 && (*out = *in * stride + more) > 0;
}

static bool subpixel_of(Ctx *c, const Expr *e, Subpixel *p, Part *all)
{
    const Conv2dTransposeAttrs *a = ATTRS_OF(Conv2dTransposeAttrs, e);
    const Type                 *x = call_arg(e, 0)->type, *w = call_arg(e, 1)->type;
    int64_t                     d[4], k[4], y[4];
    Machine                     m = machine_of(c->target);
    Quantized                   q;

    if (a->groups < 1 || !weights_of(call_arg(e, 1), &q) || !e->type || !x || x->n != 4 ||
        !dtype_eq(x->dtype, DT_F32) || !dtype_eq(e->type->dtype, DT_F32))
        return false;
    for (uint32_t i = 0; i < 4; i++)
        if (!type_dim(w, i, &k[i]) || !sizes_of(c->arith, x->dims[i], e->type->dims[i],
                                                i < 2 ? 1 : a->strides.at[i - 2], &d[i], &y[i]))
            return false;
    *p = (Subpixel){.n = d[0], .in = d[1] / a->groups, .out = k[1], .groups = a->groups};
    for (int i = 0; i < 2; i++) {
        p->size[i] = d[i + 2];
        p->k[i] = k[i + 2];
        p->s[i] = a->strides.at[i];
        p->d[i] = a->dilation.at[i];
        p->top[i] = a->padding.at[i];
        p->size_out[i] = y[i + 2];
        all->r0[i] = 0;
        all->r1[i] = p->s[i];
        if (!find_window(p, all, i))
            return false;
    }
    p->filled = p->groups == 1 && p->s[0] * p->s[1] > 1 ? filled_channels(c, p, all) : 0;
    return products(all) <= limit_transposed_products(&m) * p->k[0] * p->k[1];
}

/* A convolution for each place, if that is cheaper than one for all; how many. */
static uint32_t parts_of(Ctx *c, Subpixel *p, const Part *all, Part *parts)
{
    int64_t  lanes = has_vectors(c->target) ? c->target->vector_bytes / 4 : 1;
    double   own = 0;
    uint32_t n = 0;
    Machine  m = machine_of(c->target);

    parts[0] = *all;
    if (!p->filled || p->n != 1 || p->s[0] * p->s[1] > MOST_PARTS)
        return 1;
    for (int64_t i = 0; i < p->s[0] * p->s[1]; i++) {
        Part   *a = &parts[n++];
        int64_t r[2] = {i / p->s[1], i % p->s[1]};

        for (int k = 0; k < 2; k++) {
            a->r0[k] = r[k];
            a->r1[k] = r[k] + 1;
            if (!find_window(p, a, k))
                return parts[0] = *all, 1;
        }
        own += vectors(p, a, lanes);
    }
    if (vectors_of_one(c, p, all, lanes) > limit_parts_gain(&m) * own)
        return n;
    parts[0] = *all;
    return 1;
}

/* The kernel row that output row r takes at cell u of the window, or -1. */
static int64_t tap_at(const Subpixel *p, const Part *a, int i, int64_t r, int64_t u)
{
    int64_t from = r + p->top[i] - (u * p->step[i] + a->lo[i]) * p->s[i];

    return from >= 0 && from % p->d[i] == 0 && from / p->d[i] < p->k[i] ? from / p->d[i] : -1;
}

/* Output channel o of a part: which channel of the group's weights, and its place; false: filling.
 */
static bool channel_at(const Subpixel *p, const Part *a, int64_t o, int64_t *of, int64_t r[2])
{
    int64_t columns = a->r1[1] - a->r0[1], places = (a->r1[0] - a->r0[0]) * columns;
    int64_t place = p->filled ? o / p->filled : o % places;

    *of = p->filled ? o % p->filled : o / places;
    r[0] = a->r0[0] + place / columns;
    r[1] = a->r0[1] + place % columns;
    return !p->filled || *of < p->out;
}

static int64_t channels_of(const Subpixel *p, const Part *a)
{
    return (p->filled ? p->filled : p->groups * p->out) * (a->r1[0] - a->r0[0]) *
           (a->r1[1] - a->r0[1]);
}

/* A number for each channel of a part, `rest` for those that fill it up. */
static const Expr *repeated(Ctx *c, const Subpixel *p, const Part *a, const Expr *k, double rest)
{
    int64_t  n = channels_of(p, a);
    DType    t = k->type->dtype;
    size_t   cell = (size_t)dtype_bytes(t);
    uint8_t *to = arena_alloc(c->arena, (size_t)n * cell);

    for (int64_t o = 0; o < n; o++) {
        int64_t of, r[2];

        if (channel_at(p, a, o, &of, r))
            memcpy(to + (size_t)o * cell, k->u.constant->data.at + (size_t)of * cell, cell);
        else
            dtype_put_f(t, to + (size_t)o * cell, rest);
    }
    return expr_const(c,
                      const_new(c, k->u.constant->name, type_tensor_i64(c, t, 1, &n),
                                (Bytes){to, (size_t)n * cell}),
                      k->loc);
}

/* A scale or a zero; one for several channels stays as it is. */
static const Expr *repeated_scale(Ctx *c, const Subpixel *p, const Part *a, const Expr *k,
                                  double rest)
{
    int64_t cells;

    if (!k->type->n || (type_elems(k->type, &cells) && cells < p->groups * p->out))
        return k;
    return repeated(c, p, a, k, rest);
}

/* The part's outputs of [in] channels and its window, from I O kh kw; what stands for 0 of output o
 * is zero[o]. */
static const Expr *rearranged_cells(Ctx *c, const Subpixel *p, const Part *a, const Expr *w,
                                    const Expr *zero)
{
    int64_t dims[4] = {channels_of(p, a), p->in, a->window[0], a->window[1]};
    int64_t n = 1;
    DType   t = w->type->dtype;
    size_t  cell = (size_t)dtype_bytes(t);

    for (int i = 0; i < 4; i++)
        if (!checked_mul(n, dims[i], &n))
            return NULL;
    uint8_t       *data = arena_alloc(c->arena, (size_t)n * cell), *to = data;
    const uint8_t *from = w->u.constant->data.at;

    for (int64_t o = 0; o < dims[0]; o++) {
        int64_t of, r[2];
        bool    real = channel_at(p, a, o, &of, r);
        int64_t first = of / p->out * p->in; /* channel of the group */
        double  none = zero ? const_at(zero, o) : 0;

        for (int64_t i = 0; i < p->in; i++)
            for (int64_t uy = 0; uy < a->window[0]; uy++)
                for (int64_t ux = 0; ux < a->window[1]; ux++, to += cell) {
                    int64_t ky = tap_at(p, a, 0, r[0], uy), kx = tap_at(p, a, 1, r[1], ux);
                    int64_t row = ((first + i) * p->out + of % p->out) * p->k[0] + ky;

                    if (real && ky >= 0 && kx >= 0)
                        memcpy(to, from + (size_t)(row * p->k[1] + kx) * cell, cell);
                    else
                        dtype_put_f(t, to, none);
                }
    }
    return expr_const(c,
                      const_new(c, w->u.constant->name, type_tensor_i64(c, t, 4, dims),
                                (Bytes){data, (size_t)n * cell}),
                      w->loc);
}

static const Expr *rearranged(Ctx *c, const Subpixel *p, const Part *a, const Expr *w)
{
    Quantized   q;
    const Expr *k = weights_of(w, &q), *zero;

    if (!q.q)
        return rearranged_cells(c, p, a, k, NULL);
    zero = repeated_scale(c, p, a, q.zero, 0);
    return make_dequantize(c, rearranged_cells(c, p, a, k, zero),
                           repeated_scale(c, p, a, q.scale, 1), zero, 0, w->loc);
}

/* The cells of all places interleaved, of which the result's channels, rows and columns. */
static const Expr *interleaved(Ctx *c, const Subpixel *p, const Expr *e, Loc loc)
{
    DepthToSpaceAttrs *a = ATTRS_NEW(c, DepthToSpaceAttrs);

    if (!e || p->s[0] * p->s[1] == 1)
        return e;
    a->block_size = ints_dup(c, p->s, 2);
    a->mode = p->filled ? "DCR" : "CRD";
    if (p->filled > p->out)
        a->channels = p->out;
    if (p->cells[0] * p->s[0] != p->size_out[0] || p->cells[1] * p->s[1] != p->size_out[1])
        a->size = ints_dup(c, p->size_out, 2);
    return make1(c, "nn.depth_to_space", e, a, loc);
}

/* The bias of a part, of a constant or a dequantized one. */
static const Expr *bias_of(Ctx *c, const Subpixel *p, const Part *a, const Expr *bias)
{
    Quantized q;

    if (!quantized_of(bias, &q))
        return repeated(c, p, a, bias, 0);
    return make_dequantize(c, repeated(c, p, a, q.q, 0), repeated_scale(c, p, a, q.scale, 1),
                           q.zero, 0, bias->loc);
}

/* One part's convolution, with the bias if there is one. */
static const Expr *convolution(Ctx *c, const Subpixel *p, const Part *part, const Expr *deconv,
                               const Expr *bias)
{
    Conv2dAttrs *a = ATTRS_NEW(c, Conv2dAttrs);
    const Expr  *w = rearranged(c, p, part, call_arg(deconv, 1)), *e;

    if (!w)
        return NULL;
    a->padding = ints_dup(c, part->pad, 4);
    a->dilation = ints_dup(c, p->step, 2);
    a->groups = p->groups;
    a->channels = channels_of(p, part);
    a->kernel_size = ints_dup(c, part->window, 2);
    e = make2(c, "nn.conv2d", call_arg(deconv, 0), w, a, deconv->loc);
    if (!e || !bias)
        return e;
    bias = bias_of(c, p, part, bias);
    return make2(c, "nn.bias_add", e, bias, ATTRS_NEW(c, BiasAddAttrs), deconv->loc);
}

/* Are the products of all taps, and then their sums, cheaper than one convolution for all places?
 * Each place must have a tap, and the sums know how large the picture is. */
static bool taps_first(Ctx *c, const Subpixel *p, const Part *all, const Expr *deconv)
{
    int64_t lanes = c->target->vector_bytes / 4, size;
    Machine m = machine_of(c->target);

    for (uint32_t i = 0; i < 2; i++)
        if (p->k[i] < p->s[i] || (p->d[i] > 1 && p->s[i] > 1) ||
            !type_dim(call_arg(deconv, 0)->type, i + 2, &size))
            return false;
    return has_vectors(c->target) && call_arg(deconv, 1)->kind == EXPR_CONST && !p->filled &&
           p->groups == 1 && p->s[0] * p->s[1] > 1 &&
           p->out * p->k[0] * p->k[1] <= limit_tap_channels(&m) &&
           limit_parts_gain(&m) * subpixel_taps_vectors(&m, p, lanes) <
               vectors_of_one(c, p, all, lanes);
}

/* Convolutions of one place or several each; how many, 0 with an error. */
static uint32_t by_parts(Ctx *c, Subpixel *p, const Part *all, const Expr *deconv, const Expr *bias,
                         const Expr **e)
{
    Part     parts[MOST_PARTS];
    uint32_t n = parts_of(c, p, all, parts);

    for (uint32_t i = 0; i < n; i++)
        if (!(e[i] = convolution(c, p, &parts[i], deconv, bias)))
            return 0;
    return n;
}

/* `bias`: what is added behind it, or NULL. */
static const Expr *convolutions(Ctx *c, const Expr *deconv, const Expr *bias)
{
    Subpixel    p;
    Part        all;
    const Expr *parts[MOST_PARTS], *const *e = parts, *x;
    uint32_t          n;
    ConcatenateAttrs *a;

    if (!subpixel_of(c, deconv, &p, &all))
        return NULL;
    if (taps_first(c, &p, &all, deconv)) {
        n = (uint32_t)(p.s[0] * p.s[1]);
        p.filled = p.out;
        e = subpixel_taps(c, &p, &all, deconv, bias);
    } else {
        n = by_parts(c, &p, &all, deconv, bias, parts);
    }
    if (!e || !n)
        return NULL;
    x = e[0];
    if (n > 1) {
        a = ATTRS_NEW(c, ConcatenateAttrs);
        a->axis = 1;
        x = make1(c, "concatenate", expr_tuple(c, n, e, deconv->loc), a, deconv->loc);
    }
    return interleaved(c, &p, x, deconv->loc);
}

typedef struct {
    const Map *uses;
    Map       *was;       /* what a transposed convolution became, to itself */
    bool       quantized; /* only those with quantized weights; else only others */
} Rewritten;

/* A bias that can be repeated; NULL: it is something else. */
static const Expr *known_bias(Ctx *c, const Expr *bias, bool quantized)
{
    Quantized q;

    if (bias->kind == EXPR_CONST || !quantized)
        return bias->kind == EXPR_CONST ? bias : NULL;
    if (quantized_of(bias, &q) && q.q->kind == EXPR_CONST && q.scale->kind == EXPR_CONST)
        return bias;
    return const_value(c, bias);
}

/* A bias goes before the interleaving, where the convolution's kernel adds it. */
static const Expr *rewrite(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    Rewritten  *done = user;
    const Expr *deconv = now, *e, *bias;
    Quantized   q;

    if (call_is(now, "nn.bias_add")) {
        deconv = map_get(done->was, PTR_KEY(call_arg(now, 0)));
        if (!deconv || uses_of(done->uses, call_arg(was, 0)) != 1 ||
            ATTRS_OF(BiasAddAttrs, now)->axis != 1 ||
            !(bias = known_bias(c, call_arg(now, 1), done->quantized)))
            return now;
        e = convolutions(c, deconv, bias);
        return e ? e : now;
    }
    if (!call_is(now, "nn.conv2d_transpose") || !weights_of(call_arg(now, 1), &q) ||
        (q.q && quantized_of(call_arg(now, 0), &q)) != done->quantized ||
        !(e = convolutions(c, now, NULL)))
        return now;
    map_put(done->was, PTR_KEY(e), (void *)(uintptr_t)now);
    return e;
}

static const Module *rewritten(Ctx *c, const Module *m, bool quantized)
{
    Rewritten done = {count_uses(c, m), map_new(c->scratch), quantized};

    if (!has_vectors(c->target) && !stores_apart(c->target))
        return m;
    return module_rewrite(c, m, rewrite, &done);
}

const Module *subpixel(Ctx *c, const Module *m)
{
    return rewritten(c, m, false);
}

const Module *subpixel_quantized(Ctx *c, const Module *m)
{
    return rewritten(c, m, true);
}
