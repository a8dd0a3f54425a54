/* Resize in its rarer forms, antialias, exclude_outside and tf_crop_and_resize: along each axis a
 * product with a matrix of weights, which is known when compiling.
 *
 *     y[o] = sum over i of w[o][i] * x[i]
 *
 * A row of the matrix holds the weights of the cells around the place of a result.  Where places
 * lie outside of the data, tf_crop_and_resize gives extrapolation_value. */
#include "frontends/onnx/onnx.h"

#include <math.h>
#include <string.h>

/* Of all axes together. */
#define MAX_WEIGHTS (1 << 23)

/* Where cell x of the result lies among the cells of the data. */
typedef double Place(const OnnxResizeAxis *a, double x);

static double crop_place(const OnnxResizeAxis *a, double x)
{
    double last = (double)a->in - 1;

    return a->out > 1 ? a->roi[0] * last + x * (a->roi[1] - a->roi[0]) * last / ((double)a->out - 1)
                      : 0.5 * (a->roi[0] + a->roi[1]) * last;
}

static double corner_place(const OnnxResizeAxis *a, double x)
{
    return a->out > 1 ? x * ((double)a->in - 1) / ((double)a->out - 1) : 0;
}

static double start_place(const OnnxResizeAxis *a, double x)
{
    return x / a->scale;
}

static double middle_place(const OnnxResizeAxis *a, double x)
{
    return (x + 0.5) / a->scale;
}

static double half_place(const OnnxResizeAxis *a, double x)
{
    return (x + 0.5) / a->scale - 0.5;
}

static double pytorch_place(const OnnxResizeAxis *a, double x)
{
    return a->out == 1 ? 0 : half_place(a, x);
}

static double symmetric_place(const OnnxResizeAxis *a, double x)
{
    double in = (double)a->in;

    return half_place(a, x) + in / 2 * (1 - (double)a->out / (a->scale * in));
}

static Place *place_of(const OnnxResizeForm *f)
{
    static const struct {
        const char *name;
        Place      *place;
    } known[] = {{"tf_crop_and_resize", crop_place},
                 {"align_corners", corner_place},
                 {"asymmetric", start_place},
                 {"tf_half_pixel_for_nn", middle_place},
                 {"pytorch_half_pixel", pytorch_place},
                 {"half_pixel", half_place},
                 {"half_pixel_symmetric", symmetric_place}};

    for (size_t i = 0; i < COUNT(known); i++)
        if (!strcmp(known[i].name, f->coordinates))
            return known[i].place;
    BUG("no coordinates '%s'", f->coordinates);
}

static double half_up(double x)
{
    return floor(x + 0.5);
}

static double half_down(double x)
{
    return ceil(x - 0.5);
}

/* The cell that a place is nearest to, as a function of the place. */
typedef double Nearest(double x);

static Nearest *nearest_of(const OnnxResizeForm *f)
{
    if (!strcmp(f->rounding, "floor"))
        return floor;
    if (!strcmp(f->rounding, "ceil"))
        return ceil;
    return !strcmp(f->rounding, "round_prefer_ceil") ? half_up : half_down;
}

/* The weight of a cell at distance d. */
static double kernel_at(const OnnxResizeForm *f, double d)
{
    double a = f->cubic;

    d = fabs(d);
    if (*f->method == 'l')
        return d < 1 ? 1 - d : 0;
    if (d <= 1)
        return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

/* The weights of one result; with antialias a smaller result sees as many more cells. */
static void weights_of(const OnnxResizeForm *f, Nearest *nearest, const OnnxResizeAxis *a, double x,
                       double *row)
{
    double s = f->antialias && a->scale < 1 ? a->scale : 1, sum = 0;
    double reach = (*f->method == 'l' ? 1 : 2) / s;

    if (*f->method == 'n') {
        double at = nearest(x);

        row[(int64_t)fmin(fmax(at, 0), (double)a->in - 1)] = 1;
        return;
    }
    for (double i = floor(x - reach) + 1; i < x + reach; i++) {
        double w = kernel_at(f, (i - x) * s);

        if (f->exclude_outside && (i < 0 || i >= (double)a->in))
            continue;
        row[(int64_t)fmin(fmax(i, 0), (double)a->in - 1)] += w;
        sum += w;
    }
    for (int64_t i = 0; i < a->in && (f->exclude_outside || s < 1) && sum != 0; i++)
        row[i] /= sum;
}

static const Expr *along_axis(Node *n, const OnnxResizeForm *f, const OnnxResizeAxis *a,
                              const Expr *x, uint32_t axis)
{
    const Build *b = &n->b;
    Ints         d = build_dims(b, x);
    int64_t      before = 1, after = 1, dims[MAX_RANK];
    double      *w;
    const Expr  *m;
    Place       *place = place_of(f);
    Nearest     *nearest = nearest_of(f);

    w = NEW_ARRAY(b->c->arena, double, (size_t)(a->in * a->out));
    for (int64_t o = 0; o < a->out; o++) {
        double at = place(a, (double)o);

        if (!isfinite(at) || fabs(at) > 1e9)
            return node_error(n, E_IMPORT, "cell %lld of axis %u lies at %g", (long long)o, axis,
                              at);
        weights_of(f, nearest, a, at, w + o * a->in);
    }
    m = build_cast(b, build_const(b, DT_F64, 2, (int64_t[]){a->out, a->in}, w), expr_dtype(x));
    for (uint32_t i = 0; i < d.n; i++) {
        dims[i] = i == axis ? a->out : d.at[i];
        before *= i < axis ? d.at[i] : 1;
        after *= i > axis ? d.at[i] : 1;
    }
    if (after == 1) {
        x = build_reshape(b, x, 2, (int64_t[]){before, a->in});
        m = build_transpose(b, m, 2, (int64_t[]){1, 0});
        x = x && m ? onnx_matmul(n, x, m) : NULL;
    } else {
        x = build_reshape(b, x, 3, (int64_t[]){before, a->in, after});
        x = x && m ? onnx_matmul(n, m, x) : NULL;
    }
    return build_reshape(b, x, d.n, dims);
}

/* Is the place of each cell along the axis outside of the data?  NULL: none is. */
static const Expr *outside(Node *n, const OnnxResizeForm *f, const OnnxResizeAxis *a, uint32_t rank,
                           uint32_t axis)
{
    const Build *b = &n->b;
    bool        *at = NEW_ARRAY(b->c->arena, bool, (size_t)a->out + 1), any = false;
    int64_t      dims[MAX_RANK];
    Place       *place = place_of(f);

    for (uint32_t i = 0; i < rank; i++)
        dims[i] = i == axis ? a->out : 1;
    for (int64_t o = 0; o < a->out; o++) {
        double x = place(a, (double)o);

        at[o] = x < 0 || x > (double)a->in - 1;
        any |= at[o];
    }
    return any ? build_const(b, DT_BOOL, rank, dims, at) : NULL;
}

const Expr *onnx_resize_by_weights(Node *n, const OnnxResizeForm *f, const Expr *x,
                                   const OnnxResizeAxis *axes)
{
    const Build *b = &n->b;
    DType        t = expr_dtype(x);
    uint32_t     rank = expr_rank(x);
    bool         crop = !strcmp(f->coordinates, "tf_crop_and_resize");
    const Expr  *out = NULL, *o;
    int64_t      weights = 0;

    if (!dtype_is_float(t))
        return node_error(n, E_UNSUPPORTED,
                          "antialias, exclude_outside or tf_crop_and_resize of %s",
                          dtype_text(b->c, t));
    x = build_cast(b, x, dtype_eq(t, DT_F64) ? t : DT_F32);
    for (uint32_t i = 0; i < rank && x; i++) {
        const OnnxResizeAxis *a = &axes[i];

        if (a->in == a->out && a->scale == 1 && (!crop || (a->roi[0] == 0 && a->roi[1] == 1)))
            continue;
        if (!a->in || a->out > (MAX_WEIGHTS - weights) / a->in)
            return node_error(n, E_UNSUPPORTED, "%lld cells made of %lld by weights",
                              (long long)a->out, (long long)a->in);
        weights += a->in * a->out;
        x = along_axis(n, f, a, x, i);
        if (x && crop && (o = outside(n, f, a, rank, i)))
            out = out ? build2(b, "logical_or", out, o, NULL) : o;
    }
    if (out)
        x = build_where(b, out, build_scalar(b, x, f->extrapolation), x);
    return x ? build_cast(b, x, t) : NULL;
}
