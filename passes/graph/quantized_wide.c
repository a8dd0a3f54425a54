/* Sums of products of 16-bit data that 32 bits do not hold.
 *
 *   sum over 128 channels, of which only 64 are sure to fit:
 *     %0 = nn.conv2d(strided_slice(%x, begin=[0], end=[64], axes=[1]), const @w.0)     // i32
 *     %1 = nn.conv2d(strided_slice(%x, begin=[64], end=[128], axes=[1]), const @w.1)   // i32
 *     add(cast(%0, dtype=i64), cast(%1, dtype=i64))
 *
 * The weights are constants, so the largest sum that slices of the input channels can have is
 * known. A product summed in i64 takes no dot products and half as many lanes, which is ten times
 * slower than all slices together.  Cost: a walk over the weights for each number of slices that is
 * tried. */
#include "passes/graph/quantized.h"

#include <math.h>
#include <string.h>

/* Weights [channels][inputs][window] i8. */
typedef struct {
    const int8_t *at;
    int64_t       channels, inputs, window;
} Weights;

/* The largest sum of magnitudes of a channel over the inputs from..to. */
static int64_t most_of(const Weights *w, int64_t from, int64_t to)
{
    int64_t most = 0;

    for (int64_t o = 0; o < w->channels; o++) {
        const int8_t *at = w->at + (o * w->inputs + from) * w->window;
        int64_t       sum = 0;

        for (int64_t i = 0; i < (to - from) * w->window; i++)
            sum += at[i] < 0 ? -at[i] : at[i];
        most = sum > most ? sum : most;
    }
    return most;
}

static bool all_fit(const Weights *w, int64_t width, double reach)
{
    for (int64_t i = 0; i < w->inputs; i += width) {
        int64_t end = i + width < w->inputs ? i + width : w->inputs;

        if ((double)most_of(w, i, end) * reach > dtype_max(DT_I32))
            return false;
    }
    return true;
}

/* Inputs of a slice: as many as fit, by blocks of channels where there are so many; 0: none fit. */
static int64_t slice_width(const Weights *w, double reach)
{
    static const int64_t units[] = {64, 16, 1};
    enum { MOST_SLICES = 64 };

    for (size_t u = 0; u < COUNT(units); u++)
        for (int64_t n = 2; n <= MOST_SLICES && (n - 1) * units[u] < w->inputs; n++) {
            int64_t width = (w->inputs + n * units[u] - 1) / (n * units[u]) * units[u];

            if (width < w->inputs && all_fit(w, width, reach))
                return width;
        }
    return 0;
}

static const Expr *sliced_weight(Ctx *c, const Expr *k, const Weights *w, int64_t from, int64_t to)
{
    int64_t row = (to - from) * w->window, dims[4];
    int8_t *data = NEW_ARRAY(c->arena, int8_t, (size_t)(w->channels * row));

    for (int64_t o = 0; o < w->channels; o++)
        memcpy(data + o * row, w->at + (o * w->inputs + from) * w->window, (size_t)row);
    for (uint32_t i = 0; i < k->type->n; i++)
        type_dim(k->type, i, &dims[i]);
    dims[1] = to - from;
    return expr_const(c,
                      const_new(c, k->u.constant->name, type_tensor_i64(c, DT_I8, k->type->n, dims),
                                (Bytes){(const uint8_t *)data, (size_t)(w->channels * row)}),
                      k->loc);
}

const Expr *wide_product(Ctx *c, const Expr *e, const Expr *x, const Expr *k, double zx)
{
    Weights     w = {(const int8_t *)k->u.constant->data.at, 0, 0, 1};
    DType       t = x->type->dtype;
    uint32_t    axis = call_is(e, "nn.conv2d") ? 1 : x->type->n - 1;
    const Expr *sum = NULL;
    int64_t     width, n;

    if (call_is(e, "nn.conv2d") && ATTRS_OF(Conv2dAttrs, e)->groups != 1)
        return NULL;
    type_dim(k->type, 0, &w.channels);
    type_dim(k->type, 1, &w.inputs);
    for (uint32_t i = 2; i < k->type->n; i++) {
        type_dim(k->type, i, &n);
        w.window *= n;
    }
    if (!(width = slice_width(&w, fmax(dtype_max(t), -dtype_min(t)))))
        return NULL;
    for (int64_t i = 0; i < w.inputs; i += width) {
        int64_t     end = i + width < w.inputs ? i + width : w.inputs;
        const Expr *part = integer_call(c, e, make_slice(c, x, axis, i, end, e->loc),
                                        sliced_weight(c, k, &w, i, end), zx, DT_I32);

        part = make_cast(c, part, DT_I64, e->loc);
        sum = part && sum ? make2(c, "add", sum, part, NULL, e->loc) : part;
        if (!sum)
            return NULL;
    }
    return sum;
}
