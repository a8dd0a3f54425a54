/* Pooling over one to three dimensions, and images of other sizes. */
#include "frontends/pytorch/pytorch.h"

#include <math.h>
#include <string.h>

typedef struct {
    const Expr *x;
    uint32_t    dims;
    int64_t     kernel[3], stride[3], dilation[3], pad[3];
    bool        ceil_mode, include_pad, batch;
} Pool;

static bool read_data(PtNode *n, uint32_t dims, Pool *k)
{
    const Build *b = &n->b;

    k->dims = dims;
    if (!(k->x = pt_tensor(n, "self")))
        return false;
    k->batch = expr_rank(k->x) == dims + 2;
    if (!k->batch && expr_rank(k->x) != dims + 1)
        return pt_error(n, E_IMPORT, "the data are %s", type_text(b->c, k->x->type));
    if (!k->batch)
        k->x = build_expand_dims(b, k->x, 0, 1);
    return k->x != NULL;
}

static bool read_window(PtNode *n, Pool *k)
{
    if (!pt_numbers(n, "kernel_size", k->dims, 0, k->kernel) ||
        !pt_numbers(n, "stride", k->dims, 0, k->stride) ||
        !pt_numbers(n, "padding", k->dims, 0, k->pad) ||
        !pt_numbers(n, "dilation", k->dims, 1, k->dilation))
        return false;
    for (uint32_t i = 0; i < k->dims; i++) {
        k->stride[i] = k->stride[i] ? k->stride[i] : k->kernel[i]; /* left out */
        if (k->kernel[i] < 1 || k->stride[i] < 1 || k->dilation[i] < 1 || k->pad[i] < 0 ||
            k->pad[i] > k->kernel[i] / 2)
            return pt_error(n, E_IMPORT, "a window of %lld by steps of %lld, padded by %lld",
                            (long long)k->kernel[i], (long long)k->stride[i], (long long)k->pad[i]);
    }
    k->ceil_mode = pt_bool(n, "ceil_mode", false);
    return true;
}

/* The result without the dimensions that were added. */
static const Expr *finished(const Build *b, const Pool *k, const Expr *y)
{
    const Idx *dims[5];
    uint32_t   d = 0;

    if (!y)
        return NULL;
    for (uint32_t i = 0; i < expr_rank(y); i++)
        if (!(i == 0 && !k->batch) && !(i == 2 && k->dims == 1 && expr_rank(y) == 4))
            dims[d++] = expr_form(y, i);
    return build_reshape_to(b, y, d, dims);
}

static const Expr *pooled_volume(const Build *b, const char *op, const Pool *k)
{
    BuildWindow w;

    memcpy(w.kernel, k->kernel, sizeof w.kernel);
    memcpy(w.stride, k->stride, sizeof w.stride);
    memcpy(w.dilation, k->dilation, sizeof w.dilation);
    memcpy(w.begin, k->pad, sizeof w.begin);
    memcpy(w.end, k->pad, sizeof w.end);
    return finished(
        b, k, build_pool_volume(b, op, k->x, &w, (BuildPooling){k->ceil_mode, k->include_pad}));
}

static const Expr *pooled(PtNode *n, const char *op, const Pool *k)
{
    const Build *b = &n->b;
    Pool2dAttrs *a = ATTRS(b, Pool2dAttrs);
    bool         one = k->dims == 1;
    uint32_t     last = k->dims - 1;

    if (k->dims == 3)
        return pooled_volume(b, op, k);

    const Expr *x = one ? build_expand_dims(b, k->x, 2, 1) : k->x;

    a->pool_size = ints_of(b->c, 2, one ? 1 : (int)k->kernel[0], (int)k->kernel[last]);
    a->strides = ints_of(b->c, 2, one ? 1 : (int)k->stride[0], (int)k->stride[last]);
    a->dilation = ints_of(b->c, 2, one ? 1 : (int)k->dilation[0], (int)k->dilation[last]);
    a->padding = ints_of(b->c, 4, one ? 0 : (int)k->pad[0], (int)k->pad[last],
                         one ? 0 : (int)k->pad[0], (int)k->pad[last]);
    a->ceil_mode = k->ceil_mode;
    a->count_include_pad = k->include_pad;
    return finished(b, k, build1(b, op, x, a));
}

static uint32_t spatial(const PtNode *n)
{
    return strstr(n->p->target, "pool1d") ? 1 : strstr(n->p->target, "pool3d") ? 3 : 2;
}

bool aten_max_pool(PtNode *n)
{
    Pool k = {0};

    return read_data(n, spatial(n), &k) && read_window(n, &k) &&
           pt_done(n, pooled(n, "nn.max_pool2d", &k));
}

bool aten_avg_pool(PtNode *n)
{
    Pool    k = {0};
    double  cells = 1;
    int64_t divisor = pt_int(n, "divisor_override", 0);

    k.include_pad = pt_bool(n, "count_include_pad", true);
    if (!read_data(n, spatial(n), &k) || !read_window(n, &k))
        return false;
    for (uint32_t i = 0; i < k.dims; i++)
        cells *= (double)k.kernel[i];
    if (divisor && k.ceil_mode)
        return pt_error(n, E_UNSUPPORTED, "divisor_override with ceil_mode");
    k.include_pad |= divisor != 0;
    const Expr *y = pooled(n, "nn.avg_pool2d", &k);
    return pt_done(n, divisor ? build_by(&n->b, "multiply", y, cells / (double)divisor) : y);
}

/* ---- adaptive ------------------------------------------------------------------------------------------ */

/* Row o of the matrix has 1/n for the cells of window o, from o*in/out to ceil((o+1)*in/out). */
static const Expr *averages(const Build *b, DType t, int64_t in, int64_t out)
{
    int64_t  dims[2] = {out, in}, cells;
    uint32_t size = dtype_bytes(t);
    uint8_t *at;

    if (!checked_mul(in, out, &cells) || cells > 1 << 24)
        return NULL;
    at = arena_array(b->c->arena, (size_t)cells + 1, size);
    for (int64_t o = 0; o < out; o++) {
        int64_t from = o * in / out, to = ((o + 1) * in + out - 1) / out;

        for (int64_t i = from; i < to; i++)
            dtype_put_f(t, at + (o * in + i) * size, 1 / (double)(to - from));
    }
    return build_const(b, t, 2, dims, at);
}

/* Uneven windows as products with matrices, along one dimension after another. */
static const Expr *by_averages(PtNode *n, const Expr *x, const int64_t *want, uint32_t dims)
{
    const Build *b = &n->b;
    DType        t = expr_dtype(x);
    uint32_t     rank = expr_rank(x);
    int64_t      axes[MAX_RANK];

    for (uint32_t i = 0; i < dims && x; i++) {
        uint32_t    axis = rank - 1 - i;
        const Expr *m = averages(b, t, build_dim(b, x, axis), want[dims - 1 - i]);

        if (!m)
            return pt_error(n, E_UNSUPPORTED, "windows of %s", type_text(b->c, x->type));
        for (uint32_t d = 0; d < rank; d++)
            axes[d] = d == axis ? rank - 1 : d == rank - 1 ? axis : d;
        x = i == 0 ? x : build_transpose(b, x, rank, axes);
        x = pt_linear(n, x, m, NULL);
        x = i == 0 ? x : build_transpose(b, x, rank, axes);
    }
    return x;
}

static const Expr *whole(PtNode *n, const char *op, const Pool *k)
{
    int64_t axes[3] = {2, 3, 4};

    if (k->dims == 2)
        return build1(&n->b, !strcmp(op, "max") ? "nn.global_max_pool2d" : "nn.global_avg_pool2d",
                      k->x, NULL);
    return build_reduce(&n->b, op, k->x, k->dims, axes, true);
}

static bool adaptive(PtNode *n, const char *op)
{
    const Build *b = &n->b;
    Pool         k = {0};
    int64_t      want[3];
    bool         all = true, even = true;
    Dims         size;

    if (!read_data(n, spatial(n), &k) || !pt_forms(n, "output_size", &size))
        return false;
    if (size.n != k.dims)
        return pt_error(n, E_IMPORT, "output_size has %u numbers, not %u", size.n, k.dims);
    for (uint32_t i = 0; i < k.dims; i++) {
        if (!idx_is_const(size.at[i], &want[i]) || want[i] < 1)
            return pt_error(n, E_UNSUPPORTED, "output_size is %s", dim_text(b->c, size.at[i]));
        all &= want[i] == 1;
    }
    if (all)
        return pt_done(n, finished(b, &(Pool){.dims = 2, .batch = k.batch}, whole(n, op, &k)));
    for (uint32_t i = 0; i < k.dims; i++) {
        int64_t in = build_dim(b, k.x, 2 + i);

        even &= in % want[i] == 0;
        k.kernel[i] = k.stride[i] = in / want[i];
        k.dilation[i] = 1;
    }
    if (even)
        return pt_done(n, pooled(n, !strcmp(op, "max") ? "nn.max_pool2d" : "nn.avg_pool2d", &k));
    if (!strcmp(op, "max"))
        return pt_error(n, E_UNSUPPORTED, "windows of different sizes, %s to [%lld, %lld]",
                        type_text(b->c, k.x->type), (long long)want[0],
                        (long long)want[k.dims - 1]);
    return pt_done(
        n, finished(b, &(Pool){.dims = 2, .batch = k.batch}, by_averages(n, k.x, want, k.dims)));
}

bool aten_adaptive_avg_pool(PtNode *n)
{
    return adaptive(n, "mean");
}

bool aten_adaptive_max_pool(PtNode *n)
{
    return adaptive(n, "max");
}

/* ---- other sizes ---------------------------------------------------------------------------------------- */

/* A size, and the factor that it came from, of each dimension. */
typedef struct {
    uint32_t    dims;
    const Idx  *size[3];
    double      scale[3]; /* 0: not given */
    const char *method, *coordinates, *rounding;
} Resize;

static void read_factors(PtNode *n, Resize *r)
{
    static const char *const names[] = {"scales_d", "scales_h", "scales_w"};
    const PtArg             *f = pt_arg(n, "scale_factors");

    for (uint32_t i = 0; i < r->dims; i++)
        r->scale[i] = pt_float(n, r->dims == 1 ? "scales" : names[3 - r->dims + i], 0);
    for (uint32_t i = 0; f && f->kind != PT_LIST && i < r->dims; i++)
        r->scale[i] = f->f;
    for (uint32_t i = 0; f && f->kind == PT_LIST && f->n == r->dims && i < r->dims; i++)
        r->scale[i] = f->at[i].f;
}

static const Idx *size_by(PtNode *n, const Idx *d, double factor)
{
    int64_t in;

    if (!(factor > 0) || factor > 1e6)
        return pt_error(n, E_IMPORT, "a factor of %g", factor);
    if (idx_is_const(d, &in))
        return idx_const(n->b.c->arith, (int64_t)floor((double)in * factor));
    if (factor == floor(factor))
        return idx_mulc(n->b.c->arith, d, (int64_t)factor);
    return pt_error(n, E_UNSUPPORTED, "a factor of %g for %s", factor, dim_text(n->b.c, d));
}

static bool read_sizes(PtNode *n, const Expr *x, Resize *r)
{
    const PtArg *a = pt_arg(n, "output_size");
    Dims         given;

    if (a && a->kind != PT_LIST) { /* one for all */
        for (uint32_t i = 0; i < r->dims; i++)
            if (!(r->size[i] = pt_form(n, "output_size", NULL)))
                return false;
        return true;
    }
    if (a) {
        if (!pt_forms(n, "output_size", &given))
            return false;
        if (given.n != r->dims)
            return pt_error(n, E_IMPORT, "output_size should have %u numbers", r->dims);
        memcpy(r->size, given.at, r->dims * sizeof *r->size);
        return true;
    }
    for (uint32_t i = 0; i < r->dims; i++)
        if (!(r->size[i] = size_by(n, expr_form(x, 2 + i), r->scale[i])))
            return false;
    return true;
}

/* Of [N, C, H, W]; cells lie as half_pixel or align_corners has them. */
static const Expr *resize_image(const Build *b, const Expr *x, const Resize *r, const Idx *rows,
                                double row_scale, const Idx *columns, double column_scale)
{
    Resize2dAttrs *a = ATTRS(b, Resize2dAttrs);

    a->size = dims_dup(b->c, (const Idx *[]){rows, columns}, 2);
    if (row_scale > 0 && column_scale > 0 && strcmp(r->coordinates, "align_corners") != 0) {
        double *s = NEW_ARRAY(b->c->arena, double, 2);

        s[0] = row_scale, s[1] = column_scale;
        a->scales = (Floats){2, s};
    }
    a->method = r->method;
    a->coordinate_transformation_mode = r->coordinates;
    a->rounding_method = r->rounding;
    return build1(b, "image.resize2d", x, a);
}

/* The slices of a volume, then its depth with a slice as one row. */
static const Expr *resize_volume(const Build *b, const Expr *x, const Resize *r)
{
    Arith     *A = b->c->arith;
    const Idx *n = expr_form(x, 0), *c = expr_form(x, 1), *d = expr_form(x, 2);
    const Idx *cells = idx_mul(A, r->size[1], r->size[2]);
    const Idx *as_slices[] = {n, idx_mul(A, c, d), expr_form(x, 3), expr_form(x, 4)};
    const Idx *as_rows[] = {n, c, d, cells};
    const Idx *out[] = {n, c, r->size[0], r->size[1], r->size[2]};

    x = resize_image(b, build_reshape_to(b, x, 4, as_slices), r, r->size[1], r->scale[1],
                     r->size[2], r->scale[2]);
    x = resize_image(b, build_reshape_to(b, x, 4, as_rows), r, r->size[0], r->scale[0], cells, 1);
    return build_reshape_to(b, x, 5, out);
}

static bool resized(PtNode *n, const char *method, const char *coordinates, const char *rounding)
{
    const Build *b = &n->b;
    const Expr  *x = pt_tensor(n, pt_has(n, "self") ? "self" : "input");
    Resize       r = {.method = method, .coordinates = coordinates, .rounding = rounding};

    if (!x)
        return false;
    r.dims = strstr(n->p->target, "1d")   ? 1
             : strstr(n->p->target, "3d") ? 3
             : strstr(n->p->target, "2d") ? 2
                                          : expr_rank(x) - 2;
    if (expr_rank(x) != r.dims + 2 || r.dims < 1 || r.dims > 3)
        return pt_error(n, E_UNSUPPORTED, "an image of %u dimensions", expr_rank(x));
    read_factors(n, &r);
    if (!read_sizes(n, x, &r))
        return false;
    if (r.dims == 3)
        return pt_done(n, resize_volume(b, x, &r));
    if (r.dims == 2)
        return pt_done(n, resize_image(b, x, &r, r.size[0], r.scale[0], r.size[1], r.scale[1]));
    x = resize_image(b, build_expand_dims(b, x, 2, 1), &r, idx_const(b->c->arith, 1), 1, r.size[0],
                     r.scale[0]);
    return pt_done(n, finished(b, &(Pool){.dims = 1, .batch = true}, x));
}

bool aten_upsample_nearest(PtNode *n)
{
    return resized(n, "nearest_neighbor", "asymmetric", "floor");
}

bool aten_upsample_linear(PtNode *n)
{
    return resized(n, "linear", pt_bool(n, "align_corners", false) ? "align_corners" : "half_pixel",
                   "round_prefer_floor");
}

bool aten_upsample_bicubic(PtNode *n)
{
    return resized(n, "cubic", pt_bool(n, "align_corners", false) ? "align_corners" : "half_pixel",
                   "round_prefer_floor");
}

/* As TorchScript of torch 1 calls it: by the mode's name. */
bool aten_interpolate(PtNode *n)
{
    const char *mode = pt_string(n, "mode", "nearest");

    (void)pt_arg(n, "recompute_scale_factor"); /* sizes that are computed are the same */
    if (!strcmp(mode, "nearest"))
        return aten_upsample_nearest(n);
    if (!strcmp(mode, "bicubic"))
        return aten_upsample_bicubic(n);
    if (!strcmp(mode, "linear") || !strcmp(mode, "bilinear") || !strcmp(mode, "trilinear"))
        return aten_upsample_linear(n);
    return pt_error(n, E_UNSUPPORTED, "mode '%s'", mode);
}
