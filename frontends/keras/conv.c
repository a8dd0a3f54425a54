/* Convolutions over lines, images and volumes. */
#include "frontends/keras/keras.h"

#include <string.h>

/* ---- windows ---------------------------------------------------------------------------------------- */

bool keras_padding(const KerasNode *n, const Expr *x, const char *padding, KerasWindow *w)
{
    bool is_same = !strcmp(padding, "same"), causal = !strcmp(padding, "causal");

    for (uint32_t i = 0; i < w->dims; i++) {
        w->at.begin[i] = w->at.end[i] = 0;
        if (is_same && !build_same(&n->b, expr_form(x, 2 + i), w->at.kernel[i], w->at.stride[i],
                                   w->at.dilation[i], &w->at.begin[i], &w->at.end[i]))
            return false;
        if (causal)
            w->at.begin[i] = (w->at.kernel[i] - 1) * w->at.dilation[i];
    }
    return is_same || (causal && w->dims == 1) || !strcmp(padding, "valid") ||
           keras_error(n, E_UNSUPPORTED, "padding '%s'", padding);
}

/* strides and dilation_rate; the kernel is that of the weight. */
static bool read_window(const KerasNode *n, const Expr *x, KerasWindow *w)
{
    return keras_ints(n, "strides", w->dims, 1, 1, w->at.stride) &&
           keras_ints(n, "dilation_rate", w->dims, 1, 1, w->at.dilation) &&
           keras_padding(n, x, keras_text(n, "padding", "valid"), w);
}

/* ---- one convolution -------------------------------------------------------------------------------- */

/* Data with channels first, weights [O, I of a group, ..]. */
const Expr *keras_conv(const KerasNode *n, const Expr *x, const Expr *w, const KerasWindow *win,
                       int64_t groups)
{
    BuildConv k = {.x = x, .w = w, .dims = win->dims, .groups = groups, .window = win->at};

    return x && w ? build_conv(&n->b, &k) : NULL;
}

static const Expr *with_extents(const KerasNode *n, const Expr *k, KerasWindow *w)
{
    for (uint32_t i = 0; k && i < w->dims; i++)
        w->at.kernel[i] = build_dim(&n->b, k, 2 + i);
    return k;
}

/* The weight in another order, and its extents as the window's. */
static const Expr *kernel(KerasNode *n, const char *name, const int64_t *axes, KerasWindow *w)
{
    return with_extents(n, keras_weight_moved(n, name, w->dims + 2, axes), w);
}

/* Of Keras 1 with Theano's order the weights are [O, I, H, W] already. */
static bool old_order(const KerasNode *n)
{
    const char *order = json_string_value(json_object_get(n->layer->config, "dim_ordering"));

    return order && !strcmp(order, "th");
}

/* Of lines in Keras 1: [W, 1, I, O], in its first versions [O, I, W, 1]. */
static const Expr *old_line_kernel(KerasNode *n, const char *name)
{
    const Expr *w = keras_weight(n, name);
    int64_t     taps, dims[3], first[] = {0, 1, 2}, now[] = {3, 2, 0};
    bool        oldest;

    if (!w || !keras_ints(n, "kernel_size", 1, 1, 1, &taps))
        return NULL;
    oldest = build_dim(&n->b, w, 1) != 1 || build_dim(&n->b, w, 0) != taps ||
             build_dim(&n->b, w, 3) != keras_int(n, "filters", 0);
    if (build_dim(&n->b, w, oldest ? 3 : 1) != 1)
        return keras_error(n, E_IMPORT, "its weight '%s' is %s", name, type_text(n->b.c, w->type));
    for (uint32_t i = 0; i < 3; i++)
        dims[i] = build_dim(&n->b, w, (uint32_t)(oldest ? first : now)[i]);
    w = oldest ? w : build_transpose(&n->b, w, 4, (int64_t[]){3, 2, 0, 1});
    w = keras_folded(n, name, build_reshape(&n->b, w, 3, dims));
    return n->im->flipped ? keras_folded(n, name, build_reverse(&n->b, w, 1, (int64_t[]){2})) : w;
}

static const Expr *plain_kernel(KerasNode *n, const char *name, KerasWindow *w)
{
    static const int64_t orders[3][5] = {{2, 1, 0}, {3, 2, 0, 1}, {4, 3, 0, 1, 2}},
                         as_is[5] = {0, 1, 2, 3, 4};
    const Expr *k;

    if (w->dims == 1 && n->im->major < 2 && keras_weight_rank(n, name) == 4)
        k = old_line_kernel(n, name);
    else
        k = keras_kernel(n, name, w->dims, old_order(n) ? as_is : orders[w->dims - 1]);
    return with_extents(n, k, w);
}

static const Expr *biased(KerasNode *n, const Expr *y)
{
    const Expr *bias;

    if (!y || !keras_has_weight(n, "bias"))
        return y;
    bias = keras_weight(n, "bias");
    if (bias && (expr_rank(bias) != 1 || expr_form(bias, 0) != expr_form(y, 1)))
        return keras_error(n, E_IMPORT, "its bias is %s for a result of %s",
                           type_text(n->b.c, bias->type), type_text(n->b.c, y->type));
    return build2(&n->b, "nn.bias_add", y, bias, NULL);
}

static bool finish(KerasNode *n, const Expr *y)
{
    uint32_t channels = keras_channels_first(n) && y ? expr_rank(y) - 1 : 1;

    return keras_image_done(n, keras_activated(n, "activation", "linear", biased(n, y), channels));
}

static uint32_t dims_of(const KerasNode *n)
{
    return strstr(n->layer->class_name, "1D") ? 1 : strstr(n->layer->class_name, "2D") ? 2 : 3;
}

bool keras_convolution(KerasNode *n)
{
    KerasWindow win = {.dims = dims_of(n)};
    const Expr *x = keras_image(n, win.dims), *w = x ? plain_kernel(n, "kernel", &win) : NULL;
    int64_t     channels = x ? build_dim(&n->b, x, 1) : 0, of = w ? build_dim(&n->b, w, 1) : 0;

    if (!w || !read_window(n, x, &win))
        return false;
    if (of < 1 || channels % of)
        return keras_error(n, E_IMPORT, "its weight is for %lld channels, the data have %lld",
                           (long long)of, (long long)channels);
    return finish(n, keras_conv(n, x, w, &win, channels / of));
}

/* Weights [.., I, M] as [I*M, 1, ..]. */
static const Expr *depth_kernel(KerasNode *n, const char *name, KerasWindow *w)
{
    static const int64_t orders[2][4] = {{1, 2, 0}, {2, 3, 0, 1}};
    const Build         *b = &n->b;
    uint32_t             rank = w->dims + 2;
    const Expr          *k = kernel(n, name, orders[w->dims - 1], w);
    int64_t              dims[4];

    if (!k)
        return NULL;
    dims[0] = build_dim(b, k, 0) * build_dim(b, k, 1);
    dims[1] = 1;
    for (uint32_t i = 2; i < rank; i++)
        dims[i] = build_dim(b, k, i);
    return keras_folded(n, name, build_reshape(b, k, rank, dims));
}

bool keras_depthwise(KerasNode *n)
{
    KerasWindow win = {.dims = dims_of(n)};
    const Expr *x = keras_image(n, win.dims), *w = x ? depth_kernel(n, "kernel", &win) : NULL;

    return w && read_window(n, x, &win) &&
           finish(n, keras_conv(n, x, w, &win, build_dim(&n->b, x, 1)));
}

bool keras_separable(KerasNode *n)
{
    KerasWindow win = {.dims = dims_of(n)}, one = {.dims = win.dims};
    const Expr *x = keras_image(n, win.dims);
    const Expr *deep = x ? depth_kernel(n, "depthwise_kernel", &win) : NULL;
    const Expr *wide = deep ? plain_kernel(n, "pointwise_kernel", &one) : NULL;

    if (!wide || !read_window(n, x, &win))
        return false;
    for (uint32_t i = 0; i < one.dims; i++)
        one.at.stride[i] = one.at.dilation[i] = 1;
    x = keras_conv(n, x, deep, &win, build_dim(&n->b, x, 1));
    return finish(n, keras_conv(n, x, wide, &one, 1));
}

/* ---- transposed ------------------------------------------------------------------------------------- */

/* Of Keras 1 the layer says how many cells come out: [batch, H, W, C] or [batch, C, H, W]. */
static bool read_old_shape(const KerasNode *n, const json_t *shape, const KerasWindow *w,
                           int64_t *cells)
{
    uint32_t first = keras_channels_first(n) ? 2 : 1;

    for (uint32_t i = 0; i < w->dims; i++)
        if (json_array_size(shape) != w->dims + 2 ||
            !json_int(json_array_get(shape, first + i), &cells[i]) || cells[i] < 1 ||
            cells[i] > INT32_MAX)
            return keras_error(n, E_IMPORT, "setting 'output_shape' is no shape of %u dimensions",
                               w->dims + 2);
    return true;
}

/* How many cells come out, and what is cut off or added for that; extra: at the end. */
static bool transposed_window(const KerasNode *n, const Expr *x, KerasWindow *w, int64_t *extra)
{
    const char   *padding = keras_text(n, "padding", "valid");
    const json_t *given = keras_json(n, "output_padding"), *told = keras_json(n, "output_shape");
    bool          is_same = !strcmp(padding, "same");
    Arith        *A = n->b.c->arith;
    int64_t       more[3], cells[3];

    if (!is_same && strcmp(padding, "valid") != 0)
        return keras_error(n, E_UNSUPPORTED, "padding '%s'", padding);
    if (!keras_ints(n, "strides", w->dims, 1, 1, w->at.stride) ||
        !keras_ints(n, "dilation_rate", w->dims, 1, 1, w->at.dilation) ||
        !keras_ints(n, "output_padding", w->dims, 0, 0, more) ||
        (told && !read_old_shape(n, told, w, cells)))
        return false;
    for (uint32_t i = 0; i < w->dims; i++) {
        const Idx *in = expr_form(x, 2 + i), *out, *rest;
        int64_t    span = (w->at.kernel[i] - 1) * w->at.dilation[i] + 1, cut;
        int64_t    least = (is_same ? span : 1) - w->at.stride[i];
        const Idx *full = idx_addc(A, idx_mulc(A, idx_addc(A, in, -1), w->at.stride[i]), span);

        if (told)
            out = idx_const(A, cells[i]);
        else if (given)
            out = idx_addc(A, full, more[i] - (is_same ? 2 * (span / 2) : 0));
        else
            out = idx_addc(A, idx_mulc(A, in, w->at.stride[i]),
                           is_same || span < w->at.stride[i] ? 0 : span - w->at.stride[i]);
        rest = idx_sub(A, full, out);
        if (!idx_is_const(rest, &cut))
            return keras_error(n, E_UNSUPPORTED, "its padding is %s, which is no number",
                               dim_text(n->b.c, rest));
        if (told && (cut < least || cut >= least + w->at.stride[i]))
            return keras_error(n, E_IMPORT, "%lld cells of output_shape do not come of %s",
                               (long long)cells[i], dim_text(n->b.c, in));
        extra[i] = cut < 0 ? -cut : 0;
        cut = cut < 0 ? 0 : cut;
        w->at.begin[i] = is_same ? cut / 2 : 0;
        w->at.end[i] = cut - w->at.begin[i];
    }
    return true;
}

/* Weights [H, W, O, I] as [I, O, H, W]; of Keras 1 they are [H, W, I, O] or [O, I, H, W]. */
bool keras_transposed(KerasNode *n)
{
    static const int64_t orders[3][5] = {{2, 1, 0}, {3, 2, 0, 1}, {4, 3, 0, 1, 2}},
                         old[] = {2, 3, 0, 1}, theano[] = {1, 0, 2, 3};
    bool           is_old = n->im->major < 2 && dims_of(n) == 2;
    const int64_t *axes = is_old ? (old_order(n) ? theano : old) : orders[dims_of(n) - 1];
    KerasWindow    win = {.dims = dims_of(n)};
    BuildConv      k = {
             .x = keras_image(n, win.dims), .dims = win.dims, .groups = 1, .transposed = true};

    k.w = k.x ? with_extents(n, keras_kernel(n, "kernel", win.dims, axes), &win) : NULL;
    if (!k.w || !transposed_window(n, k.x, &win, k.extra))
        return false;
    k.window = win.at;
    return finish(n, build_conv(&n->b, &k));
}
