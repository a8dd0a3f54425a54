/* live_taps: kernels of convolutions without the rows and columns that meet nothing but padding.
 *
 *   nn.conv2d(%x, const @w, padding=[18, 18, 18, 18], dilation=[18, 18])      // %x: 1 8 17 17, @w:
 * 4 8 3 3
 *     -> nn.conv2d(%x, const @w', kernel_size=[1, 1])                         // its middle
 *
 * So it is with wide kernels and rates on small images, which networks for large pictures have at
 * their ends. Row k reads rows y*stride + k*dilation - top of the image for rows y of the result;
 * where none of these exists, its products are zeros.  First and last rows go, as far as the
 * padding does not become negative, and where one is left the dilation too.  Weights that are no
 * constants are cut at run time.
 *
 * Where the kernel is then as large as the image, images are rows of a product:
 *
 *   nn.conv2d(%x, const @w)                          // %x: 4 224 1 1, @w: 1113 224 1 1
 *     -> reshape(nn.dense(reshape(%x), const @w')) */
#include "passes/graph/graph.h"

#include <string.h>

/* Of the rows, or the columns. */
typedef struct {
    int64_t first, n; /* taps that stay */
    int64_t lo, hi;   /* padding */
    int64_t dilation;
} Taps;

/* Does tap k meet a cell of the image for one of `out` places? */
static bool is_live(const Conv2dAttrs *a, int i, int64_t size, int64_t out, int64_t k)
{
    return conv_tap_is_live(k * a->dilation.at[i] - a->padding.at[i], a->strides.at[i], size, out);
}

static Taps live_taps_of(const Conv2dAttrs *a, int i, int64_t kernel, int64_t size, int64_t out)
{
    int64_t d = a->dilation.at[i], last = kernel - 1;
    Taps    t = {.lo = a->padding.at[i], .hi = a->padding.at[i + 2], .dilation = d};

    while (t.first < last && t.lo >= d && !is_live(a, i, size, out, t.first)) {
        t.first++;
        t.lo -= d;
    }
    while (t.first < last && t.hi >= d && !is_live(a, i, size, out, last)) {
        last--;
        t.hi -= d;
    }
    t.n = last - t.first + 1;
    if (t.n == 1)
        t.dilation = 1;
    return t;
}

static const Expr *cut(Ctx *c, const Expr *w, const Taps t[2])
{
    StridedSliceAttrs *a = ATTRS_NEW(c, StridedSliceAttrs);
    int64_t            begin[2] = {t[0].first, t[1].first};
    int64_t            end[2] = {t[0].first + t[0].n, t[1].first + t[1].n};

    a->axes = ints_of(c, 2, 2, 3);
    a->begin = dims_of_i64(c, begin, 2);
    a->end = dims_of_i64(c, end, 2);
    return make1(c, "strided_slice", w, a, w->loc);
}

/* The product of rows that a kernel of the size of its images makes; NULL: it is none.  A cell of
 * one image stays what it is, whose neighbours are images. */
static const Expr *product(Ctx *c, const Expr *e)
{
    const Conv2dAttrs *a = ATTRS_OF(Conv2dAttrs, e);
    const Expr        *x = call_arg(e, 0), *w = call_arg(e, 1);
    int64_t            d[4], k[4], out[4];

    for (uint32_t i = 0; i < 4; i++)
        if (!type_dim(x->type, i, &d[i]) || !type_dim(w->type, i, &k[i]) ||
            !type_dim(e->type, i, &out[i]))
            return NULL;
    if ((d[0] < 2 && d[2] * d[3] < 2) || a->groups != 1 || *a->out_dtype || !is_float(e) ||
        out[2] != 1 || out[3] != 1 || k[2] != d[2] || k[3] != d[3] || a->padding.at[0] ||
        a->padding.at[1])
        return NULL;
    x = make_reshape(c, x, 2, (int64_t[]){d[0], d[1] * d[2] * d[3]}, e->loc);
    w = make_reshape(c, w, 2, (int64_t[]){k[0], k[1] * k[2] * k[3]}, e->loc);
    e = x && w ? make2(c, "nn.dense", x, w, ATTRS_NEW(c, DenseAttrs), e->loc) : NULL;
    return e ? make_reshape(c, e, 4, out, e->loc) : NULL;
}

static const Expr *rewrite(Ctx *c, void *user, const Expr *was, const Expr *e)
{
    const Conv2dAttrs *a;
    Conv2dAttrs       *now;
    const Expr        *w, *rows;
    Taps               t[2];
    bool               less = false;

    (void)was;
    (void)user;
    if (!call_is(e, "nn.conv2d") || !expr_has_shape(e) || !expr_has_shape(call_arg(e, 0)) ||
        !expr_has_shape(call_arg(e, 1)))
        return e;
    a = ATTRS_OF(Conv2dAttrs, e);
    w = call_arg(e, 1);
    if (strcmp(a->data_layout, "NCHW") || a->pad_value != 0 || e->type->n != 4)
        return e;
    for (int i = 0; i < 2; i++) {
        int64_t k, size, out;

        if (!type_dim(w->type, (uint32_t)i + 2, &k) ||
            !type_dim(call_arg(e, 0)->type, (uint32_t)i + 2, &size) ||
            !type_dim(e->type, (uint32_t)i + 2, &out))
            return e;
        t[i] = live_taps_of(a, i, k, size, out);
        less |= t[i].n < k;
    }
    if (!less)
        return (rows = product(c, e)) ? rows : e;
    now = ATTRS_COPY(c, Conv2dAttrs, e);
    now->padding = ints_dup(c, (int64_t[]){t[0].lo, t[1].lo, t[0].hi, t[1].hi}, 4);
    now->dilation = ints_dup(c, (int64_t[]){t[0].dilation, t[1].dilation}, 2);
    now->kernel_size = ints_dup(c, (int64_t[]){t[0].n, t[1].n}, 2);
    w = cut(c, w, t);
    e = w ? make2(c, "nn.conv2d", call_arg(e, 0), w, now, e->loc) : NULL;
    return e && (rows = product(c, e)) ? rows : e;
}

const Module *live_taps(Ctx *c, const Module *m)
{
    const Module *now = module_rewrite(c, m, rewrite, NULL);

    return now && now != m ? fold_constant(c, now) : now;
}
