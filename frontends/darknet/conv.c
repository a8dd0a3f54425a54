/* Convolutions, matrix products, normalization, and what is done cell by cell. */
#include "frontends/darknet/darknet.h"

#include <math.h>
#include <string.h>

/* ---- batch normalization -------------------------------------------------------------------------- */

static const char *named(DarknetNode *n, const char *role, const char *name)
{
    return intern_printf(n->b.c->strings, "%s%s", role, name);
}

/* The first program divides by sqrt(variance) + 1e-6, the second one by sqrt(variance + 1e-5). */
static const Expr *variances(DarknetNode *n, const char *role, int64_t channels)
{
    const float *v;
    float       *out;

    if (n->im->forked)
        return darknet_weights(n, role, 1, &channels);
    if (!(v = darknet_floats(n, role, channels)))
        return NULL;
    out = NEW_ARRAY(n->b.c->arena, float, (size_t)channels + 1);
    for (int64_t i = 0; i < channels; i++) {
        double root = sqrt((double)v[i]) + 1e-6;

        out[i] = (float)(root * root);
    }
    return build_const(&n->b, DT_F32, 1, &channels, out);
}

static bool read_scales(DarknetNode *n, const char *role, int64_t channels, DarknetNorm *out)
{
    return (out->scale = darknet_weights(n, named(n, role, "scales"), 1, &channels)) &&
           (out->mean = darknet_weights(n, named(n, role, "means"), 1, &channels)) &&
           (out->variance = variances(n, named(n, role, "variances"), channels));
}

static const Expr *normalized(const DarknetNode *n, const Expr *y, const DarknetNorm *k)
{
    const Build *b = &n->b;

    if (k->scale) {
        const Expr     *args[] = {y, k->scale, k->bias, k->mean, k->variance};
        BatchNormAttrs *a = ATTRS(b, BatchNormAttrs);

        a->epsilon = n->im->forked ? 1e-5 : 0;
        return y ? build_proj(b, build_call(b, "nn.batch_norm", 5, args, a), 0) : NULL;
    }
    return build2(b, "nn.bias_add", y, k->bias, NULL);
}

/* ---- convolution ---------------------------------------------------------------------------------- */

bool darknet_padding(const DarknetNode *n, DarknetConv *k)
{
    if (!darknet_size(n, "padding", 0, &k->padding))
        return false;
    if (darknet_int(n, "pad"))
        k->padding = k->size / 2;
    if (k->size == 1)
        k->dilation = 1;
    return true;
}

static bool check_groups(const DarknetNode *n, int64_t channels, int64_t groups, int64_t filters)
{
    return (channels % groups == 0 && filters % groups == 0) ||
           darknet_error(n, E_IMPORT, "%lld groups of %lld channels and %lld filters",
                         (long long)groups, (long long)channels, (long long)filters);
}

bool darknet_read_filters(DarknetNode *n, int64_t channels, const DarknetConv *k, const char *role,
                          DarknetFilters *out)
{
    *out = (DarknetFilters){.how = *k};
    if (!check_groups(n, channels, k->groups, k->filters))
        return false;
    if (k->padding * k->dilation > INT32_MAX)
        return darknet_error(n, E_IMPORT, "the padding is too large");
    if (!(out->norm.bias = darknet_weights(n, named(n, role, "biases"), 1, &k->filters)) ||
        (k->batch_normalize && !read_scales(n, role, k->filters, &out->norm)))
        return false;
    if (k->flipped) {
        int64_t dims[4] = {channels / k->groups, k->size, k->size, k->filters};

        out->w = darknet_weights(n, named(n, role, "weights"), 4, dims);
        out->w = build_transpose(&n->b, out->w, 4, (int64_t[]){3, 0, 1, 2});
    } else {
        int64_t dims[4] = {k->filters, channels / k->groups, k->size, k->size};

        out->w = darknet_weights(n, named(n, role, "weights"), 4, dims);
    }
    return out->w != NULL;
}

const Expr *darknet_filtered(DarknetNode *n, const Expr *x, const DarknetFilters *f)
{
    const Build       *b = &n->b;
    const DarknetConv *k = &f->how;
    Conv2dAttrs       *a = ATTRS(b, Conv2dAttrs);
    int                pad = (int)(k->padding * k->dilation);

    a->strides = ints_of(b->c, 2, (int)k->stride_y, (int)k->stride_x);
    a->dilation = ints_of(b->c, 2, (int)k->dilation, (int)k->dilation);
    a->padding = ints_of(b->c, 4, pad, pad, pad, pad);
    a->groups = k->groups;
    a->channels = k->filters;
    a->kernel_size = ints_of(b->c, 2, (int)k->size, (int)k->size);
    return darknet_activate(n, k->activation,
                            normalized(n, build2(b, "nn.conv2d", x, f->w, a), &f->norm));
}

const Expr *darknet_conv2d(DarknetNode *n, const Expr *x, const DarknetConv *k, const char *role)
{
    DarknetFilters f;

    return x && darknet_read_filters(n, build_dim(&n->b, x, 1), k, role, &f)
               ? darknet_filtered(n, x, &f)
               : NULL;
}

bool darknet_convolutional(DarknetNode *n)
{
    DarknetConv k = {.batch_normalize = darknet_int(n, "batch_normalize"),
                     .flipped = darknet_int(n, "flipped"),
                     .activation = darknet_text(n, "activation")};
    int64_t     stride;

    if (!darknet_size(n, "filters", 1, &k.filters) || !darknet_size(n, "groups", 1, &k.groups) ||
        !darknet_size(n, "size", 1, &k.size) || !darknet_size(n, "stride", 1, &stride) ||
        !darknet_size(n, "dilation", 1, &k.dilation) || !darknet_padding(n, &k))
        return false;
    k.stride_x = darknet_int(n, "stride_x") < 1 ? stride : darknet_int(n, "stride_x");
    k.stride_y = darknet_int(n, "stride_y") < 1 ? stride : darknet_int(n, "stride_y");
    return darknet_done(n, darknet_conv2d(n, darknet_image(n, n->x), &k, ""));
}

/* Weights [C, O, H, W]. */
bool darknet_deconvolutional(DarknetNode *n)
{
    const Build          *b = &n->b;
    Conv2dTransposeAttrs *a = ATTRS(b, Conv2dTransposeAttrs);
    DarknetConv           k = {.groups = 1, .dilation = 1};
    const Expr           *x = darknet_image(n, n->x), *w;
    int64_t               stride, channels;
    DarknetNorm           norm = {0};

    if (!darknet_size(n, "filters", 1, &k.filters) || !darknet_size(n, "size", 1, &k.size) ||
        !darknet_size(n, "stride", 1, &stride) || !darknet_padding(n, &k))
        return false;
    channels = build_dim(b, x, 1);
    if (!(norm.bias = darknet_weights(n, "biases", 1, &k.filters)) ||
        (darknet_int(n, "batch_normalize") && !read_scales(n, "", k.filters, &norm)) ||
        !(w = darknet_weights(n, "weights", 4, (int64_t[]){channels, k.filters, k.size, k.size})))
        return false;
    a->strides = ints_of(b->c, 2, (int)stride, (int)stride);
    a->padding = ints_of(b->c, 4, (int)k.padding, (int)k.padding, (int)k.padding, (int)k.padding);
    a->channels = k.filters;
    a->kernel_size = ints_of(b->c, 2, (int)k.size, (int)k.size);
    return darknet_done(
        n, darknet_activate(n, darknet_text(n, "activation"),
                            normalized(n, build2(b, "nn.conv2d_transpose", x, w, a), &norm)));
}

/* The cells that one cell of a kernel meets, [N, C, out, out]. */
static const Expr *tap(const DarknetNode *n, const Expr *x, const int64_t *at, const int64_t *out,
                       int64_t stride)
{
    StridedSliceAttrs *a = ATTRS(&n->b, StridedSliceAttrs);
    const Idx        **range = NEW_ARRAY(n->b.c->arena, const Idx *, 4);

    for (uint32_t i = 0; i < 2; i++) {
        range[i] = idx_const(n->b.c->arith, at[i]);
        range[2 + i] = idx_const(n->b.c->arith, at[i] + (out[i] - 1) * stride + 1);
    }
    a->begin = (Dims){2, range};
    a->end = (Dims){2, range + 2};
    a->strides = ints_of(n->b.c, 2, (int)stride, (int)stride);
    a->axes = ints_of(n->b.c, 2, 2, 3);
    return build1(&n->b, "strided_slice", x, a);
}

/* A convolution with weights of its own for each place, [places, filters, C * size * size]. */
bool darknet_local(DarknetNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = darknet_image(n, n->x), *w, *bias;
    int64_t filters, size, stride, pad = darknet_int(n, "pad") != 0, in[3], out[2], cells, places;
    const Expr **taps;

    if (!darknet_size(n, "filters", 1, &filters) || !darknet_size(n, "size", 1, &size) ||
        !darknet_size(n, "stride", 1, &stride))
        return false;
    for (uint32_t i = 0; i < 3; i++)
        in[i] = build_dim(b, x, 1 + i);
    for (uint32_t i = 0; i < 2; i++) {
        out[i] = (in[1 + i] - (pad ? 1 : size)) / stride + 1;
        if (in[1 + i] + 2 * pad < size || (in[1 + i] + 2 * pad - size) / stride + 1 != out[i])
            return darknet_error(n, E_IMPORT, "a kernel of %lld does not fit %lld cells",
                                 (long long)size, (long long)in[1 + i]);
    }
    places = out[0] * out[1];
    if (size > 64)
        return darknet_error(n, E_UNSUPPORTED, "a kernel of %lld cells", (long long)size);
    cells = in[0] * size * size;
    bias = darknet_weights(n, "biases", 3, (int64_t[]){filters, out[0], out[1]});
    w = bias ? darknet_weights(n, "weights", 3, (int64_t[]){places, filters, cells}) : NULL;
    if (!w)
        return false;
    x = build_pad(b, x, (int64_t[]){0, 0, 0, 0, pad, pad, pad, pad}, 0, NULL);
    taps = NEW_ARRAY(b->c->arena, const Expr *, (size_t)(size * size));
    for (int64_t t = 0; t < size * size; t++)
        taps[t] =
            build_expand_dims(b, tap(n, x, (int64_t[]){t / size, t % size}, out, stride), 2, 1);
    x = build_concat(b, (uint32_t)(size * size), taps, 2); /* [N, C, taps, out, out] */
    if (!x)
        return false;
    x = build_reshape_to(b, x, 3,
                         (const Idx *[]){expr_form(x, 0), idx_const(b->c->arith, cells),
                                         idx_const(b->c->arith, places)});
    x = build_transpose(b, x, 3, (int64_t[]){2, 0, 1}); /* [places, N, cells] */
    x = build2(b, "nn.batch_matmul", x, w, NULL);       /* [places, N, filters] */
    x = build_transpose(b, x, 3, (int64_t[]){1, 2, 0});
    if (!x)
        return false;
    x = build_reshape_to(b, x, 4,
                         (const Idx *[]){expr_form(x, 0), expr_form(x, 1),
                                         idx_const(b->c->arith, out[0]),
                                         idx_const(b->c->arith, out[1])});
    return darknet_done(n,
                        darknet_activate(n, darknet_text(n, "activation"), build_add(b, x, bias)));
}

/* ---- matrix products ------------------------------------------------------------------------------ */

/* Weights [outputs, inputs], or transposed as the file says; biases first, scales last. */
const Expr *darknet_dense(DarknetNode *n, const Expr *x, int64_t outputs, bool batch_normalize,
                          const char *activation, const char *role)
{
    const Build *b = &n->b;
    DenseAttrs  *a = ATTRS(b, DenseAttrs);
    int64_t      dims[2] = {outputs, x ? build_dim(b, x, 1) : 0};
    const Expr  *w;
    DarknetNorm  norm = {0};

    if (!x || !(norm.bias = darknet_weights(n, named(n, role, "biases"), 1, &outputs)))
        return NULL;
    if (n->im->transposed) {
        w = darknet_weights(n, named(n, role, "weights"), 2, (int64_t[]){dims[1], dims[0]});
        w = build_transpose(b, w, 2, (int64_t[]){1, 0});
    } else {
        w = darknet_weights(n, named(n, role, "weights"), 2, dims);
    }
    if (!w || (batch_normalize && !read_scales(n, role, outputs, &norm)))
        return NULL;
    a->units = outputs;
    return darknet_activate(n, activation, normalized(n, build2(b, "nn.dense", x, w, a), &norm));
}

bool darknet_connected(DarknetNode *n)
{
    int64_t outputs;

    return darknet_size(n, "output", 1, &outputs) &&
           darknet_done(n, darknet_dense(n, darknet_vector(n, n->x), outputs,
                                         darknet_int(n, "batch_normalize"),
                                         darknet_text(n, "activation"), ""));
}

/* ---- normalization -------------------------------------------------------------------------------- */

/* The first program has no biases here. */
bool darknet_batchnorm(DarknetNode *n)
{
    const Expr *x = darknet_image(n, n->x);
    int64_t     channels = build_dim(&n->b, x, 1);
    DarknetNorm norm;

    norm.bias = n->im->forked ? darknet_weights(n, "biases", 1, &channels)
                              : build_zeros(&n->b, DT_F32, 1, &channels);
    return norm.bias && read_scales(n, "", channels, &norm) &&
           darknet_done(n, normalized(n, x, &norm));
}

/* x / (kappa + alpha * the sum of squares over `size` channels) ^ beta: (size - 1) / 2 before, size
 * / 2 behind. */
bool darknet_lrn(DarknetNode *n)
{
    int64_t size;

    return darknet_size(n, "size", 1, &size) &&
           darknet_done(n, build_lrn(&n->b, darknet_image(n, n->x), (size - 1) / 2, size / 2,
                                     darknet_float(n, "kappa"), darknet_float(n, "alpha"),
                                     darknet_float(n, "beta")));
}

bool darknet_l2norm(DarknetNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = darknet_image(n, n->x);
    const Expr  *sum = build_reduce(b, "sum", build_mul(b, x, x), 1, (int64_t[]){1}, true);

    return darknet_done(n, build_div(b, x, build1(b, "sqrt", sum, NULL)));
}

/* ---- cell by cell --------------------------------------------------------------------------------- */

bool darknet_activation(DarknetNode *n)
{
    return darknet_done(n, darknet_activate(n, darknet_text(n, "activation"), n->x));
}

bool darknet_logistic(DarknetNode *n)
{
    return darknet_done(n, build1(&n->b, "sigmoid", n->x, NULL));
}

/* Of all cells in `groups` parts; spatial: of the channels at each place. */
bool darknet_softmax(DarknetNode *n)
{
    const Build  *b = &n->b;
    SoftmaxAttrs *a = ATTRS(b, SoftmaxAttrs);
    double        temperature = darknet_float(n, "temperature");
    const Expr   *x = n->x, *all;
    int64_t       groups, cells;

    if (temperature == 0 || !darknet_size(n, "groups", 1, &groups))
        return darknet_error(n, E_IMPORT, "a temperature of 0, or no groups");
    if (temperature != 1)
        x = build_by(b, "multiply", x, 1 / temperature);
    if (darknet_float(n, "spatial")) {
        a->axis = 1;
        return darknet_done(n, build1(b, "nn.softmax", darknet_image(n, x), a));
    }
    if (!(all = darknet_vector(n, x)))
        return false;
    cells = build_dim(b, all, 1);
    if (groups == 1)
        return darknet_done(n, build1(b, "nn.softmax", all, a));
    if (cells % groups)
        return darknet_error(n, E_IMPORT, "%lld groups of %lld cells", (long long)groups,
                             (long long)cells);
    x = build_reshape_to(b, all, 3,
                         (const Idx *[]){expr_form(all, 0), idx_const(b->c->arith, groups),
                                         idx_const(b->c->arith, cells / groups)});
    return darknet_done(n, build_matrix(b, build1(b, "nn.softmax", x, a), 1));
}

/* Weights that are a result. */
bool darknet_implicit(DarknetNode *n)
{
    int64_t filters, atoms;

    return darknet_size(n, "filters", 1, &filters) && darknet_size(n, "atoms", 1, &atoms) &&
           darknet_done(n, darknet_weights(n, "weights", 4, (int64_t[]){1, filters, atoms, 1}));
}

bool darknet_same(DarknetNode *n)
{
    return darknet_done(n, n->x);
}
