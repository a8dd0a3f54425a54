/* image.resize2d, as ONNX Resize of the last two dimensions of NCHW or NCHW<b>c.
 *
 *     %1 = image.resize2d(%0, size=[26, 26], method="nearest_neighbor",
 *                         coordinate_transformation_mode="asymmetric", rounding_method="floor");
 *
 * Where output cell y lies in the input is a fraction, (a*y + b) / d with whole numbers: half_pixel
 * is ((2y + 1)*in - out) / (2*out).  So positions are exact index arithmetic, and doubling by
 * nearest neighbour is y//2.  A scale that the model states as a float is a fraction as well: the
 * simplest one that rounds to it.  Where a run decides sizes, a, b and d are forms, numbers if the
 * sizes have a fixed ratio.
 *
 *     %rows[n, c, h, x] = %d[n, c, h, x0] * (1 - f) + %d[n, c, h, x1] * f
 *     %out[n, c, y, x] = %rows[n, c, y0, x] * (1 - g) + %rows[n, c, y1, x] * g */
#include "ops/common.h"

#include <math.h>
#include <string.h>

typedef enum { NEAREST, LINEAR, CUBIC } Method;
typedef enum { FLOOR, CEIL, PREFER_FLOOR, PREFER_CEIL } Rounding;

typedef struct {
    Method     method;
    Rounding   rounding;
    double     alpha;
    const Idx *in[2];
    const Idx *a[2], *b[2], *d[2]; /* position of y: (a*y + b) / d */
} Resize;

static bool choice(Ctx *c, Loc loc, const char *what, const char *text, uint32_t n,
                   const char *const *names, uint32_t *at)
{
    for (*at = 0; *at < n; ++*at)
        if (!strcmp(text, names[*at]))
            return true;
    return error_at(c, E_TYPE, loc, "there is no %s '%s'", what, text);
}

/* scale = p / q, the simplest fraction that has this value as a float: 0.3 is 3/10, and position
 * 30 / 0.3 is 100.  The continued fraction of what rounds to it; 1 <= p, q. */
static bool fraction(double scale, int64_t *p, int64_t *q)
{
    const float f = (float)scale;
    int64_t     p0 = 0, q0 = 1, p1 = 1, q1 = 0;
    double      lo, hi;

    if (!(scale > 0x1p-16 && scale < 0x1p16))
        return false;
    lo = ((double)f + (double)nextafterf(f, 0)) / 2;
    hi = ((double)f + (double)nextafterf(f, INFINITY)) / 2;
    for (;;) {
        bool    last = floor(lo) + 1 <= hi || floor(lo) == lo;
        int64_t k = (int64_t)floor(lo) + (last && floor(lo) != lo);
        double  below = hi - (double)k;

        *p = k * p1 + p0;
        *q = k * q1 + q0;
        if (last || *p > 1 << 24 || *q > 1 << 24)
            break;
        p0 = p1, p1 = *p, q0 = q1, q1 = *q;
        hi = 1 / (lo - (double)k);
        lo = 1 / below;
    }
    if ((float)((double)*p / (double)*q) != f) { /* lost on the way: the float's own bits */
        int e;

        *p = (int64_t)ldexp(frexp((double)f, &e), 24);
        *q = (int64_t)1 << (e < 24 ? 24 - e : 0);
    }
    return true;
}

/* size / in as a fraction, without scales; in lowest terms if one is a multiple of the other. */
static void ratio(Ctx *c, const Idx *size, const Idx *in, const Idx **p, const Idx **q)
{
    const Idx *k, *one = idx_const(c->arith, 1);
    int64_t    v;

    *p = size, *q = in;
    if (idx_is_const(size, &v) && idx_is_const(in, &v))
        return;
    if ((k = idx_div_exact(c->arith, size, in)) && idx_is_const(k, &v))
        *p = k, *q = one;
    else if ((k = idx_div_exact(c->arith, in, size)) && idx_is_const(k, &v))
        *p = one, *q = k;
}

/* Fill in position forms: out cells of `size`, scale = p / q = out / in or as stated. */
static bool positions(Ctx *c, Loc loc, const Resize2dAttrs *a, uint32_t i, const Idx *size,
                      Resize *r)
{
    static const char *const modes[] = {"half_pixel",           "align_corners",
                                        "asymmetric",           "pytorch_half_pixel",
                                        "tf_half_pixel_for_nn", "half_pixel_symmetric"};
    Arith                   *A = c->arith;
    const Idx               *zero = idx_const(A, 0), *one = idx_const(A, 1), *p, *q;
    int64_t                  up = 1, down = 1;
    uint32_t                 mode;

    if (!choice(c, loc, "coordinate mode", a->coordinate_transformation_mode, COUNT(modes), modes,
                &mode))
        return false;
    if (a->scales.n && !fraction(a->scales.at[i], &up, &down))
        return error_at(c, E_TYPE, loc, "a scale of %g", a->scales.at[i]);
    p = idx_const(A, up), q = idx_const(A, down);
    if (!a->scales.n)
        ratio(c, size, r->in[i], &p, &q);
    if (p->lo < 1)
        return error_at(c, E_DIM, loc, "resizing %s cells to %s, which may be none",
                        dim_text(c, r->in[i]), dim_text(c, size));
    if (mode == 1) { /* the first and last cells coincide; of one cell only y = 0 is asked for */
        r->a[i] = size->hi > 1 ? idx_addc(A, r->in[i], -1) : zero;
        r->b[i] = zero;
        r->d[i] = idx_max(A, idx_addc(A, size, -1), one);
    } else if (mode == 2) {
        r->a[i] = q;
        r->b[i] = zero;
        r->d[i] = p;
    } else { /* (y + 1/2) * q/p - 1/2; one without the half, one with the rest spread evenly */
        r->a[i] = idx_mulc(A, q, 2);
        r->b[i] = mode == 4 ? q : idx_sub(A, q, p);
        r->d[i] = idx_mulc(A, p, 2);
        if (mode == 3) /* one cell lies at 0 */
            r->b[i] = idx_mul(A, r->b[i], idx_min(A, idx_addc(A, size, -1), one));
        if (mode == 5)
            r->b[i] = idx_add(A, r->b[i], idx_sub(A, idx_mul(A, r->in[i], p), idx_mul(A, size, q)));
    }
    return true;
}

static bool resize_of(Ctx *c, Loc loc, const Resize2dAttrs *a, const Type *t, Resize *r)
{
    static const char *const methods[] = {"nearest_neighbor", "linear", "cubic"};
    static const char *const roundings[] = {"floor", "ceil", "round_prefer_floor",
                                            "round_prefer_ceil"};
    int64_t                  block;
    uint32_t                 method, rounding;

    if (!rel_dims(c, loc, "size", a->size, 2, 1) ||
        !rel_layout(c, loc, a->layout, "NCHW", &block) ||
        !rel_rank(c, loc, t, block ? 5 : 4, "data") ||
        !choice(c, loc, "method", a->method, COUNT(methods), methods, &method) ||
        !choice(c, loc, "rounding", a->rounding_method, COUNT(roundings), roundings, &rounding))
        return false;
    if (a->scales.n && a->scales.n != 2)
        return error_at(c, E_TYPE, loc, "'scales' must have 2 numbers, not %u", a->scales.n);
    if (method != NEAREST && !dtype_is_float(t->dtype))
        return error_at(c, E_TYPE, loc, "interpolation of %s", dtype_text(c, t->dtype));
    *r =
        (Resize){.method = (Method)method, .rounding = (Rounding)rounding, .alpha = a->cubic_alpha};
    for (uint32_t i = 0; i < 2; i++) {
        r->in[i] = t->dims[i + 2];
        if (r->in[i]->lo < 1 || idx_usual(r->in[i]) > INT32_MAX)
            return error_at(c, E_TYPE, loc, "resizing of %s", type_text(c, t));
        if (!positions(c, loc, a, i, a->size.at[i], r))
            return false;
    }
    return true;
}

const Type *rel_resize2d(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const Resize2dAttrs *a = attrs;
    const Idx           *dims[5];
    Resize               r;

    if (!rel_tensors(c, loc, in, nin) || !resize_of(c, loc, a, in[0], &r))
        return NULL;
    for (uint32_t i = 0; i < in[0]->n; i++)
        dims[i] = i == 2 || i == 3 ? a->size.at[i - 2] : in[0]->dims[i];
    return rel_tensor(c, loc, in[0]->dtype, in[0]->n, dims);
}

/* ---- compute ------------------------------------------------------------------------------------- */

/* The numerator of the position of y. */
static const Idx *numerator(Ctx *c, const Resize *r, uint32_t i, const Idx *y)
{
    return idx_add(c->arith, idx_mul(c->arith, y, r->a[i]), r->b[i]);
}

static const Idx *clamped(Ctx *c, const Resize *r, uint32_t i, const Idx *x)
{
    return idx_max(c->arith, idx_const(c->arith, 0),
                   idx_min(c->arith, x, idx_addc(c->arith, r->in[i], -1)));
}

static const Idx *nearest(Ctx *c, const Resize *r, uint32_t i, const Idx *y)
{
    Arith     *A = c->arith;
    const Idx *num = numerator(c, r, i, y), *d = r->d[i], *below = idx_addc(A, d, -1);

    switch (r->rounding) {
    case FLOOR: break;
    case CEIL: num = idx_add(A, num, below); break;
    case PREFER_FLOOR: /* ceil(x - 1/2) = floor((2*num + d - 1) / 2d) */
        num = idx_add(A, idx_mulc(A, num, 2), below);
        d = idx_mulc(A, d, 2);
        break;
    case PREFER_CEIL:
        num = idx_add(A, idx_mulc(A, num, 2), d);
        d = idx_mulc(A, d, 2);
        break;
    }
    return clamped(c, r, i, idx_div(A, num, d));
}

/* Weights of the cells floor(x) - taps/2 + 1 .. of one dimension. */
static void weights(Ctx *c, const Resize *r, uint32_t i, DType t, const Idx *num, const Prim **w)
{
    const Prim *one = prim_num(c, t, 1);
    const Prim *f =
        prim_div(c, te_number(c, t, idx_mod(c->arith, num, r->d[i])), te_number(c, t, r->d[i]));
    double a = r->alpha;

    if (r->method == LINEAR) {
        w[0] = prim_sub(c, one, f);
        w[1] = f;
        return;
    }
    for (int k = 0; k < 4; k++) { /* Keys' kernel at distance f + 1, f, 1 - f, 2 - f */
        const Prim *s = k == 0   ? prim_add(c, f, one)
                        : k == 1 ? f
                        : k == 2 ? prim_sub(c, one, f)
                                 : prim_sub(c, prim_num(c, t, 2), f);
        const Prim *p;

        if (k == 1 || k == 2) { /* ((a+2)s - (a+3))s^2 + 1 */
            p = prim_sub(c, prim_mul(c, prim_num(c, t, a + 2), s), prim_num(c, t, a + 3));
            w[k] = prim_add(c, prim_mul(c, prim_mul(c, p, s), s), one);
        } else { /* ((a s - 5a)s + 8a)s - 4a */
            p = prim_sub(c, prim_mul(c, prim_num(c, t, a), s), prim_num(c, t, 5 * a));
            p = prim_add(c, prim_mul(c, p, s), prim_num(c, t, 8 * a));
            w[k] = prim_sub(c, prim_mul(c, p, s), prim_num(c, t, 4 * a));
        }
    }
}

/* The cells that position y of dimension i lies between, and what they weigh: two of them, or four.
 * Those outside repeat the edge. */
typedef struct {
    int         n;
    const Idx  *cell[4];
    const Prim *weight[4];
} Taps;

static Taps taps_of(Ctx *c, const Resize *r, uint32_t i, DType t, const Idx *y)
{
    Taps       p = {.n = r->method == LINEAR ? 2 : 4};
    const Idx *num = numerator(c, r, i, y);
    const Idx *first = idx_addc(c->arith, idx_div(c->arith, num, r->d[i]), 1 - p.n / 2);

    weights(c, r, i, t, num, p.weight);
    for (int k = 0; k < p.n; k++)
        p.cell[k] = clamped(c, r, i, idx_addc(c->arith, first, k));
    return p;
}

/* The sum of the taps of dimension i, where all other positions are those of `a`. */
static const Prim *interpolate(Ctx *c, const Resize *r, uint32_t i, const Tensor *x, const Axes *a)
{
    const Idx  *at[5] = {a->at[0], a->at[1], a->at[2], a->at[3], a->at[4]};
    Taps        p = taps_of(c, r, i, x->buffer->dtype, a->at[i + 2]);
    const Prim *sum = NULL;

    for (int k = 0; k < p.n; k++) {
        at[i + 2] = p.cell[k];
        const Prim *term = prim_mul(c, te_at(c, x, at), p.weight[k]);

        sum = sum ? prim_add(c, sum, term) : term;
    }
    return sum;
}

/* Along the rows first: `rows` has the operand's height and the result's width. */
static const Tensor *rows_of(Ctx *c, const OpCall *call, const Resize *r, const Tensor *x)
{
    static const char *const names[] = {"n", "c", "h", "x", "j"};
    const Type              *t = call->out[0];
    const Idx               *dims[5];

    for (uint32_t i = 0; i < t->n; i++)
        dims[i] = i == 2 ? r->in[0] : t->dims[i];
    Axes a = te_axes(c, t->n, dims, names);

    return te_compute(c, "rows", t->dtype, a, interpolate(c, r, 1, x, &a));
}

bool te_resize2d(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    Axes   a = te_axes_of(c, call->out[0]);
    Resize r;

    if (!resize_of(c, call->loc, call->attrs, call->in[0], &r))
        return false;
    if (r.method != NEAREST)
        return te_out(c, call, &a, interpolate(c, &r, 0, rows_of(c, call, &r, in[0]), &a), out);
    const Idx *at[5] = {a.at[0], a.at[1], nearest(c, &r, 0, a.at[2]), nearest(c, &r, 1, a.at[3]),
                        a.at[4]};

    return te_out(c, call, &a, te_at(c, in[0], at), out);
}

const Expr *block_resize2d(Ctx *c, const Expr *e, const Expr *const *args, uint32_t block)
{
    Resize2dAttrs *b = DUP_ARRAY(c->arena, ATTRS(Resize2dAttrs, e), 1);

    if (args[0]->type->n != 5)
        return NULL;
    b->layout = intern_printf(c->strings, "NCHW%uc", block);
    return expr_call(c, call_op(e), 1, args, b, e->loc);
}
