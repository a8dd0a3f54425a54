/* subpixel: transposed convolutions as convolutions of more channels, whose cells are interleaved.
 *
 *   nn.conv2d_transpose(%x, const @w, strides=[2, 2])       // @w: I O 2 2
 *     -> %0 = nn.conv2d(%x, const @w');                     // @w': O*4 I 1 1
 *        reshape(transpose(reshape(%0, [N, O, 2, 2, H, W]), [0, 1, 4, 2, 5, 3]), [N, O, 2H, 2W])
 *
 * Output row s*y + r takes the kernel rows k = s*t + q, q = (r + top) mod s, from input rows
 * y + d - t, d = (r + top) div s.  All rows r of one y together look at the input rows from the
 * least d - t to the largest d: that window is the new kernel, with zeros where a row r has no tap
 * there.  The zeros cost products (2.25 times as many for 4x4 by 2), but the fast convolutions
 * apply (Shi et al., "Real-Time Single Image and Video Super-Resolution ..", 2016).  Weights are
 * rearranged here and must be constant.  Cost: one walk and a copy of the weights. */
#include "passes/graph/graph.h"

#include <string.h>

typedef struct {
    int64_t n, in, out;                             /* images, channels */
    int64_t size[2], k[2], s[2], top[2], result[2]; /* of the rows, of the columns */
    int64_t lo[2], window[2];                       /* input cells from y + lo on */
    int64_t pad[4];                                 /* of the new convolution */
} Subpixel;

static int64_t taps(const Subpixel *p, int i, int64_t r)
{
    int64_t q = (r + p->top[i]) % p->s[i];

    return q < p->k[i] ? (p->k[i] - q - 1) / p->s[i] + 1 : 0;
}

/* The window of dimension i and its padding; false where the form does not fit. */
static bool find_window(Subpixel *p, int i)
{
    int64_t lo = INT64_MAX, hi = INT64_MIN, cells;

    if (p->s[i] > 8 || p->k[i] > 64 || p->top[i] > 64 || p->result[i] % p->s[i])
        return false;
    for (int64_t r = 0; r < p->s[i]; r++) {
        int64_t d = (r + p->top[i]) / p->s[i], n = taps(p, i, r);

        if (!n)
            continue;
        lo = d - n + 1 < lo ? d - n + 1 : lo;
        hi = d > hi ? d : hi;
    }
    if (lo > hi || lo > 0)
        return false;
    cells = p->result[i] / p->s[i];
    p->lo[i] = lo;
    p->window[i] = hi - lo + 1;
    p->pad[i] = -lo;
    p->pad[i + 2] = cells - p->size[i] + lo + p->window[i] - 1;
    return p->pad[i + 2] >= 0;
}

static bool subpixel_of(const Expr *e, Subpixel *p)
{
    const Conv2dTransposeAttrs *a = ATTRS_OF(Conv2dTransposeAttrs, e);
    const Type                 *x = call_arg(e, 0)->type, *w = call_arg(e, 1)->type;
    int64_t                     d[4], k[4], y[4];

    if (a->groups != 1 || call_arg(e, 1)->kind != EXPR_CONST || !e->type || !x || x->n != 4 ||
        !dtype_eq(x->dtype, DT_F32) || !dtype_eq(e->type->dtype, DT_F32) ||
        a->dilation.at[0] != 1 || a->dilation.at[1] != 1)
        return false;
    for (uint32_t i = 0; i < 4; i++)
        if (!type_dim(x, i, &d[i]) || !type_dim(w, i, &k[i]) || !type_dim(e->type, i, &y[i]) ||
            d[i] < 1)
            return false;
    *p = (Subpixel){.n = d[0], .in = d[1], .out = k[1]};
    for (int i = 0; i < 2; i++) {
        p->size[i] = d[i + 2];
        p->k[i] = k[i + 2];
        p->s[i] = a->strides.at[i];
        p->top[i] = a->padding.at[i];
        p->result[i] = y[i + 2];
        if (!find_window(p, i))
            return false;
    }
    /* Four times the products is where plain loops would be better. */
    return p->s[0] * p->s[1] > 1 &&
           p->window[0] * p->window[1] * p->s[0] * p->s[1] <= 4 * p->k[0] * p->k[1];
}

/* The kernel row that output row r takes at cell u of the window, or -1. */
static int64_t tap_at(const Subpixel *p, int i, int64_t r, int64_t u)
{
    int64_t t = (r + p->top[i]) / p->s[i] - (u + p->lo[i]);

    return t >= 0 && t < taps(p, i, r) ? p->s[i] * t + (r + p->top[i]) % p->s[i] : -1;
}

/* [out, s, s] outputs of [in] channels and the window, from I O kh kw. */
static const Expr *rearranged(Ctx *c, const Subpixel *p, const Expr *w)
{
    int64_t dims[4] = {p->out * p->s[0] * p->s[1], p->in, p->window[0], p->window[1]}, n = 1;
    size_t  at = 0;

    for (int i = 0; i < 4; i++)
        if (!checked_mul(n, dims[i], &n))
            return NULL;
    float         *to = arena_alloc(c->arena, (size_t)n * sizeof *to);
    const uint8_t *from = w->u.constant->data.at;

    for (int64_t o = 0; o < dims[0]; o++) {
        int64_t of = o / (p->s[0] * p->s[1]), ry = o / p->s[1] % p->s[0], rx = o % p->s[1];

        for (int64_t i = 0; i < p->in; i++)
            for (int64_t uy = 0; uy < p->window[0]; uy++)
                for (int64_t ux = 0; ux < p->window[1]; ux++) {
                    int64_t ky = tap_at(p, 0, ry, uy), kx = tap_at(p, 1, rx, ux);
                    size_t  cell = (size_t)(((i * p->out + of) * p->k[0] + ky) * p->k[1] + kx);

                    to[at] = 0;
                    if (ky >= 0 && kx >= 0)
                        memcpy(&to[at], from + cell * sizeof *to, sizeof *to);
                    at++;
                }
    }
    return expr_const(c,
                      const_new(c, w->u.constant->name, type_tensor_i64(c, DT_F32, 4, dims),
                                (Bytes){(uint8_t *)to, (size_t)n * sizeof *to}),
                      w->loc);
}

static const Expr *rewrite(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    static const int64_t interleave[6] = {0, 1, 4, 2, 5, 3};
    Subpixel             p;
    const Expr          *w;

    (void)user;
    (void)was;
    if (!call_is(now, "nn.conv2d_transpose") || !subpixel_of(now, &p) ||
        !(w = rearranged(c, &p, call_arg(now, 1))))
        return now;
    int64_t      y = p.result[0] / p.s[0], x = p.result[1] / p.s[1];
    int64_t      apart[6] = {p.n, p.out, p.s[0], p.s[1], y, x};
    int64_t      whole[4] = {p.n, p.out, p.result[0], p.result[1]};
    Conv2dAttrs *a = ATTRS_NEW(c, Conv2dAttrs);
    a->padding = ints_dup(c, p.pad, 4);
    a->channels = p.out * p.s[0] * p.s[1];
    a->kernel_size = ints_dup(c, p.window, 2);
    const Expr *e = make2(c, "nn.conv2d", call_arg(now, 0), w, a, now->loc);
    e = e ? make_reshape(c, e, 6, apart, now->loc) : NULL;
    TransposeAttrs *t = ATTRS_NEW(c, TransposeAttrs);
    t->axes = ints_dup(c, interleave, 6);
    e = e ? make1(c, "transpose", e, t, now->loc) : NULL;
    return e ? make_reshape(c, e, 4, whole, now->loc) : NULL;
}

const Module *subpixel(Ctx *c, const Module *m)
{
    if (!has_vectors(c))
        return m;
    return module_rewrite(c, m, rewrite, NULL);
}
