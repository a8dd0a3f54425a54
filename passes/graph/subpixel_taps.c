/* Transposed convolutions to few channels as the products of all taps, which are then summed.
 *
 *   nn.conv2d_transpose(%x, const @w, strides=[2, 2], padding=[1, 1, 1, 1])  // @w: I 1 4 4
 *     -> %0 = nn.conv2d(%x, const @w');                        // @w': 16 I 1 1, tap by tap
 *        %1 = nn.pad(%0);                                      // a border of zeros
 *        %2 = %1[taps 5 at (1, 1)] + %1[taps 7 at (1, 0)] + .. // row 0, column 0 of each cell
 *        ..
 *        nn.depth_to_space(concatenate((%2, ..)), block_size=[2, 2])
 *
 * One channel of all places has 4 outputs with windows of 3x3, 36 products of which 20 are by zero;
 * its 16 taps are a whole vector.  This is what engines do by a matrix product and col2im; here the
 * sums have a place each, so no cell is written twice. */
#include "passes/graph/subpixel.h"

#include <string.h>

double subpixel_taps_vectors(const Machine *m, const Subpixel *p, int64_t lanes)
{
    int64_t taps = p->out * p->k[0] * p->k[1];

    return subpixel_vectors(taps, p->size[1], lanes) +
           limit_tap_vectors(m) * (double)taps / (double)(lanes * p->in);
}

/* kh*kw*O I 1 1, from I O kh kw. */
static const Expr *by_tap(Ctx *c, const Subpixel *p, const Expr *w)
{
    int64_t      taps = p->k[0] * p->k[1], dims[4] = {taps * p->out, p->in, 1, 1};
    size_t       n = (size_t)(dims[0] * dims[1]);
    float       *to = arena_array(c->arena, n, sizeof *to);
    const float *from = (const void *)w->u.constant->data.at;

    for (int64_t i = 0; i < p->in; i++)
        for (int64_t o = 0; o < p->out; o++)
            for (int64_t t = 0; t < taps; t++)
                memcpy(to + (t * p->out + o) * p->in + i, from + (i * p->out + o) * taps + t,
                       sizeof *to);
    return expr_const(c,
                      const_new(c, w->u.constant->name, type_tensor_i64(c, w->type->dtype, 4, dims),
                                (Bytes){(const uint8_t *)to, n * sizeof *to}),
                      w->loc);
}

/* The products of all taps with zeros around. */
static const Expr *products(Ctx *c, const Subpixel *p, const Part *all, const Expr *deconv)
{
    Conv2dAttrs *a = ATTRS_NEW(c, Conv2dAttrs);
    PadAttrs    *around = ATTRS_NEW(c, PadAttrs);
    int64_t      width[8] = {0, 0, 0, 0, all->pad[0], all->pad[2], all->pad[1], all->pad[3]};
    const Expr  *e;

    a->channels = p->out * p->k[0] * p->k[1];
    a->kernel_size = ints_of(c, 2, 1, 1);
    around->pad_width = ints_dup(c, width, 8);
    e = make2(c, "nn.conv2d", call_arg(deconv, 0), by_tap(c, p, call_arg(deconv, 1)), a,
              deconv->loc);
    return e ? make1(c, "nn.pad", e, around, deconv->loc) : NULL;
}

/* What tap (k[0], k[1]) adds to the cells of place r; false: it has no part in them. */
static bool reaches(const Subpixel *p, const Part *all, const int64_t r[2], const int64_t k[2],
                    int64_t at[2])
{
    for (int i = 0; i < 2; i++) {
        int64_t from = r[i] + p->top[i] - k[i] * p->d[i];

        if (from % p->s[i])
            return false;
        at[i] = from / p->s[i] - all->lo[i];
    }
    return true;
}

static const Expr *tap(Ctx *c, const Subpixel *p, const Expr *e, int64_t k, const int64_t at[2])
{
    StridedSliceAttrs *a = ATTRS_NEW(c, StridedSliceAttrs);
    int64_t            begin[3] = {k * p->out, at[0], at[1]};
    int64_t            end[3] = {(k + 1) * p->out, at[0] + p->cells[0], at[1] + p->cells[1]};

    a->axes = ints_of(c, 3, 1, 2, 3);
    a->begin = dims_of_i64(c, begin, 3);
    a->end = dims_of_i64(c, end, 3);
    return make1(c, "strided_slice", e, a, e->loc);
}

/* The sum of the taps of place r. */
static const Expr *place(Ctx *c, const Subpixel *p, const Part *all, const Expr *e,
                         const int64_t r[2])
{
    const Expr *sum = NULL;
    int64_t     at[2];

    for (int64_t k = 0; k < p->k[0] * p->k[1]; k++) {
        if (!reaches(p, all, r, (int64_t[]){k / p->k[1], k % p->k[1]}, at))
            continue;

        const Expr *t = tap(c, p, e, k, at);

        sum = !t ? NULL : sum ? make2(c, "add", sum, t, NULL, e->loc) : t;
        if (!sum)
            return NULL;
    }
    return sum;
}

const Expr **subpixel_taps(Ctx *c, const Subpixel *p, const Part *all, const Expr *deconv,
                           const Expr *bias)
{
    int64_t      places = p->s[0] * p->s[1];
    const Expr **parts = NEW_ARRAY(c->arena, const Expr *, places);
    const Expr  *e = products(c, p, all, deconv);

    for (int64_t i = 0; e && i < places; i++) {
        parts[i] = place(c, p, all, e, (int64_t[]){i / p->s[1], i % p->s[1]});
        if (parts[i] && bias)
            parts[i] =
                make2(c, "nn.bias_add", parts[i], bias, ATTRS_NEW(c, BiasAddAttrs), deconv->loc);
        if (!parts[i])
            return NULL;
    }
    return e ? parts : NULL;
}
