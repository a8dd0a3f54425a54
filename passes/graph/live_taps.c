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
 * constants are cut at run time. */
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

static const Expr *rewrite(Ctx *c, void *user, const Expr *was, const Expr *e)
{
    const Conv2dAttrs *a;
    Conv2dAttrs       *now;
    const Expr        *w;
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
        return e;
    now = ATTRS_COPY(c, Conv2dAttrs, e);
    now->padding = ints_dup(c, (int64_t[]){t[0].lo, t[1].lo, t[0].hi, t[1].hi}, 4);
    now->dilation = ints_dup(c, (int64_t[]){t[0].dilation, t[1].dilation}, 2);
    now->kernel_size = ints_dup(c, (int64_t[]){t[0].n, t[1].n}, 2);
    w = cut(c, w, t);
    return w ? make2(c, "nn.conv2d", call_arg(e, 0), w, now, e->loc) : NULL;
}

const Module *live_taps(Ctx *c, const Module *m)
{
    const Module *now = module_rewrite(c, m, rewrite, NULL);

    return now && now != m ? fold_constant(c, now) : now;
}
