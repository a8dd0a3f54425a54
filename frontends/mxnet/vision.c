/* Regions of pictures, and how alike two pictures are. */
#include "frontends/mxnet/mxnet.h"

#include <math.h>
#include <string.h>

/* Boxes [R, 5], the first number of which says whose they are. */
static bool read_regions(const MxNode *n, int64_t *size)
{
    if (!mx_rank(n, 0, 4, 4) || !mx_rank(n, 1, 2, 2) || !mx_sizes(n, "pooled_size", 2, 1, 1, size))
        return false;
    if (build_dim(&n->b, n->in[1], 1) != 5)
        return mx_error(n, E_IMPORT, "regions are %s", type_text(n->b.c, n->in[1]->type));
    return true;
}

static const Expr *column(const Build *b, const Expr *x, int64_t i)
{
    return build_slice(b, x, expr_rank(x) - 1, i, i + 1);
}

static const Expr *pictures_of(MxNode *n)
{
    const Expr *at = column(&n->b, n->in[1], 0);

    at = build_squeeze(&n->b, at, 1, (int64_t[]){1});
    return at ? build_cast(&n->b, at, DT_I64) : NULL;
}

bool mx_roi_align(MxNode *n)
{
    const Build   *b = &n->b;
    RoiAlignAttrs *a = ATTRS(b, RoiAlignAttrs);
    int64_t        size[2];

    if (!read_regions(n, size))
        return false;
    if (mx_bool(n, "position_sensitive"))
        return mx_error(n, E_UNSUPPORTED, "position_sensitive");
    a->pooled_size = ints_dup(b->c, size, 2);
    a->spatial_scale = mx_float(n, "spatial_scale");
    a->sample_ratio = mx_int(n, "sample_ratio") > 0 ? mx_int(n, "sample_ratio") : 0;
    a->aligned = mx_bool(n, "aligned");
    return mx_done(n, build3(b, "vision.roi_align", n->in[0], build_slice(b, n->in[1], 1, 1, 5),
                             pictures_of(n), a));
}

/* ---- largest cells of bins -------------------------------------------------------------------------- */

/* Halves away from zero. */
static const Expr *rounded(const Build *b, const Expr *x)
{
    return build1(b, "floor", build_by(b, "add", x, 0.5), NULL);
}

/* Which of `cells` along one axis each of `bins` sees, of regions from..to: [R, bins, cells]. */
static const Expr *seen(MxNode *n, int64_t axis, int64_t bins, int64_t cells)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    double       scale = mx_float(n, "spatial_scale");
    const Expr  *from = rounded(b, build_by(b, "multiply", column(b, n->in[1], 1 + axis), scale));
    const Expr  *to = rounded(b, build_by(b, "multiply", column(b, n->in[1], 3 + axis), scale));
    const Expr  *size, *bin, *first, *last, *at;

    size = build_by(b, "maximum", build_by(b, "add", build_sub(b, to, from), 1), 1);
    bin = build_by(b, "divide", size, (double)bins);
    if (!bin)
        return NULL;
    at = build_arange(b, idx_const(A, bins), expr_dtype(bin));
    first = build1(b, "floor", build_mul(b, at, bin), NULL);
    last = build1(b, "ceil", build_mul(b, build_by(b, "add", at, 1), bin), NULL);
    first = build_expand_dims(b, build_add(b, first, from), 2, 1);
    last = build_expand_dims(b, build_add(b, last, from), 2, 1);
    at = build_arange(b, idx_const(A, cells), expr_dtype(bin));
    return build2(b, "logical_and", build2(b, "greater_equal", at, first, NULL),
                  build_less(b, at, last), NULL);
}

/* First the largest cells of columns in each bin, then those of rows; a bin without cells is 0. */
bool mx_roi_pooling(MxNode *n)
{
    const Build *b = &n->b;
    int64_t      size[2], H, W, R;
    const Expr  *x, *in, *y, *low;

    if (!read_regions(n, size))
        return false;
    H = build_dim(b, n->in[0], 2), W = build_dim(b, n->in[0], 3), R = build_dim(b, n->in[1], 0);
    low = build_scalar(b, n->in[0], -INFINITY);
    x = build_expand_dims(b, build_take(b, n->in[0], pictures_of(n), 0), 3, 1); /* R C H 1 W */
    in = build_reshape(b, seen(n, 0, size[1], W), 5, (int64_t[]){R, 1, 1, size[1], W});
    y = build_reduce(b, "max", build_where(b, in, x, low), 1, (int64_t[]){4}, false);
    y = build_expand_dims(b, y, 2, 1); /* R C 1 H w */
    in = build_reshape(b, seen(n, 1, size[0], H), 5, (int64_t[]){R, 1, size[0], H, 1});
    y = build_reduce(b, "max", build_where(b, in, y, low), 1, (int64_t[]){3}, false);
    if (!y)
        return false;
    return mx_done(n, build_where(b, build2(b, "equal", y, low, NULL), build_scalar(b, y, 0), y));
}

/* ---- correlation ------------------------------------------------------------------------------------ */

typedef struct {
    int64_t kernel, most, stride1, stride2, pad, out[2], region[2], from;
} Shift;

static bool read_shift(MxNode *n, Shift *s)
{
    static const char *const names[] = {"kernel_size", "max_displacement", "stride1", "stride2",
                                        "pad_size"};
    int64_t *const           to[] = {&s->kernel, &s->most, &s->stride1, &s->stride2, &s->pad};

    if (!mx_rank(n, 0, 4, 4) || n->in[0]->type != n->in[1]->type)
        return mx_error(n, E_IMPORT, "%s and %s", type_text(n->b.c, n->in[0]->type),
                        type_text(n->b.c, n->in[1]->type));
    for (uint32_t i = 0; i < COUNT(names); i++) {
        *to[i] = mx_int(n, names[i]);
        if (*to[i] < (i == 1 || i == 4 ? 0 : 1) || *to[i] > 256)
            return mx_error(n, E_UNSUPPORTED, "'%s' is %lld", names[i], (long long)*to[i]);
    }
    if (s->kernel % 2 == 0 || s->most / s->stride2 > 32)
        return mx_error(n, E_UNSUPPORTED, "a kernel of %lld, and %lld steps each way",
                        (long long)s->kernel, (long long)(s->most / s->stride2));
    s->from = s->most;
    for (uint32_t i = 0; i < 2; i++) {
        int64_t cells =
            build_dim(&n->b, n->in[0], 2 + i) + 2 * s->pad - 2 * (s->most + s->kernel / 2);

        if (cells < 1)
            return mx_error(n, E_IMPORT, "pictures that are too small to be moved by %lld",
                            (long long)s->most);
        s->out[i] = (cells + s->stride1 - 1) / s->stride1;
        s->region[i] = (s->out[i] - 1) * s->stride1 + s->kernel;
    }
    return true;
}

static const Expr *moved(const Build *b, const Expr *x, const Shift *s, int64_t down, int64_t right)
{
    x = build_slice(b, x, 2, s->from + down, s->from + down + s->region[0]);
    return build_slice(b, x, 3, s->from + right, s->from + right + s->region[1]);
}

/* For each way in which the second picture may be moved, the mean over channels and a window of the
 * products of cells, or of their distances. */
bool mx_correlation(MxNode *n)
{
    const Build *b = &n->b;
    Pool2dAttrs *a = ATTRS(b, Pool2dAttrs);
    int64_t      pads[8] = {0}, each, steps;
    const Expr **out, *x, *y;
    Shift        s;

    if (!read_shift(n, &s))
        return false;
    pads[4] = pads[5] = pads[6] = pads[7] = s.pad;
    /* Windows at the end may begin in what the division leaves. */
    pads[5] += s.stride1, pads[7] += s.stride1;
    x = build_pad(b, n->in[0], pads, 0, "constant");
    y = build_pad(b, n->in[1], pads, 0, "constant");
    steps = s.most / s.stride2;
    each = 2 * steps + 1;
    out = NEW_ARRAY(b->c->arena, const Expr *, (size_t)(each * each));
    a->pool_size = ints_of(b->c, 2, (int)s.kernel, (int)s.kernel);
    a->strides = ints_of(b->c, 2, (int)s.stride1, (int)s.stride1);
    for (int64_t i = 0; i < each * each; i++) {
        const Expr *p = moved(b, x, &s, 0, 0), *q = moved(b, y, &s, (i / each - steps) * s.stride2,
                                                          (i % each - steps) * s.stride2);

        p = mx_bool(n, "is_multiply") ? build_mul(b, p, q)
                                      : build1(b, "abs", build_sub(b, p, q), NULL);
        p = build_reduce(b, "mean", p, 1, (int64_t[]){1}, true);
        if (s.kernel > 1 || s.stride1 > 1)
            p = build1(b, "nn.avg_pool2d", p, a);
        if (!(out[i] = p))
            return false;
    }
    return mx_done(n, build_concat(b, (uint32_t)(each * each), out, 1));
}
