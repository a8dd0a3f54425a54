/* Convolutions over one to three dimensions, [N, C, ..], as formats have them in one operator:
 * nn.conv1d, nn.conv2d, or those of volumes (volume.c); transposed ones of lines are those of
 * images of one row.  Halves are summed in f32 and rounded once. */
#include "frontends/calls.h"

const char *build_sum_dtype(const Expr *x)
{
    return dtype_is_float(expr_dtype(x)) && expr_dtype(x).bits == 16 ? "f32" : "";
}

static Ints numbers(const Build *b, const BuildConv *k, const int64_t *v)
{
    return ints_dup(b->c, v, k->dims);
}

static Ints borders(const Build *b, const BuildConv *k)
{
    int64_t v[4];

    for (uint32_t i = 0; i < k->dims; i++) {
        v[i] = k->window.begin[i];
        v[k->dims + i] = k->window.end[i];
    }
    return ints_dup(b->c, v, 2 * k->dims);
}

static const Expr *conv1d(const Build *b, const BuildConv *k, const char *out_dtype)
{
    Conv1dAttrs *a = ATTRS(b, Conv1dAttrs);

    a->strides = numbers(b, k, k->window.stride);
    a->dilation = numbers(b, k, k->window.dilation);
    a->padding = borders(b, k);
    a->groups = k->groups;
    a->channels = build_dim(b, k->w, 0);
    a->kernel_size = numbers(b, k, k->window.kernel);
    a->out_dtype = out_dtype;
    return build2(b, "nn.conv1d", k->x, k->w, a);
}

static const Expr *conv2d(const Build *b, const BuildConv *k, const char *out_dtype)
{
    Conv2dAttrs *a = ATTRS(b, Conv2dAttrs);

    a->strides = numbers(b, k, k->window.stride);
    a->dilation = numbers(b, k, k->window.dilation);
    a->padding = borders(b, k);
    a->groups = k->groups;
    a->channels = build_dim(b, k->w, 0);
    a->kernel_size = numbers(b, k, k->window.kernel);
    a->out_dtype = out_dtype;
    return build2(b, "nn.conv2d", k->x, k->w, a);
}

static const Expr *conv2d_transpose(const Build *b, const BuildConv *k)
{
    Conv2dTransposeAttrs *a = ATTRS(b, Conv2dTransposeAttrs);

    a->strides = numbers(b, k, k->window.stride);
    a->dilation = numbers(b, k, k->window.dilation);
    a->padding = borders(b, k);
    a->output_padding = numbers(b, k, k->extra);
    a->groups = k->groups;
    a->channels = build_dim(b, k->w, 1) * k->groups;
    a->kernel_size = numbers(b, k, k->window.kernel);
    return build2(b, "nn.conv2d_transpose", k->x, k->w, a);
}

/* [.., W] as [.., 1, W], and back. */
static const Expr *conv1d_transpose(const Build *b, const BuildConv *k)
{
    const BuildWindow *w = &k->window;
    BuildConv          image = *k;
    const Expr        *y;

    image.dims = 2;
    image.x = build_expand_dims(b, k->x, 2, 1);
    image.w = build_expand_dims(b, k->w, 2, 1);
    image.window = (BuildWindow){{1, w->kernel[0]},
                                 {1, w->stride[0]},
                                 {1, w->dilation[0]},
                                 {0, w->begin[0]},
                                 {0, w->end[0]}};
    image.extra[0] = 0;
    image.extra[1] = k->extra[0];
    if (!image.x || !image.w || !(y = conv2d_transpose(b, &image)))
        return NULL;
    return build_reshape_to(b, y, 3,
                            (const Idx *[]){expr_form(y, 0), expr_form(y, 1), expr_form(y, 3)});
}

static const Expr *transposed(const Build *b, const BuildConv *k)
{
    return k->dims == 1 ? conv1d_transpose(b, k)
           : k->dims == 2
               ? conv2d_transpose(b, k)
               : build_conv_transpose_volume(b, k->x, k->w, &k->window, k->extra, k->groups);
}

static const Expr *straight(const Build *b, const BuildConv *k)
{
    const char *sum = build_sum_dtype(k->x);

    return k->dims == 1   ? conv1d(b, k, sum)
           : k->dims == 2 ? conv2d(b, k, sum)
                          : build_conv_volume(b, k->x, k->w, &k->window, k->groups, sum);
}

/* Do the numbers fit the operators, and the weight the data? */
static bool check(const Build *b, const BuildConv *k)
{
    const BuildWindow *w = &k->window;
    int64_t            channels = build_dim(b, k->x, 1), of = build_dim(b, k->w, 0);

    for (uint32_t i = 0; i < k->dims; i++) {
        if (w->stride[i] < 1 || w->dilation[i] < 1 || w->stride[i] > INT32_MAX ||
            w->dilation[i] > INT32_MAX)
            return build_error(b, E_IMPORT, "a stride of %lld, a dilation of %lld",
                               (long long)w->stride[i], (long long)w->dilation[i]);
        if (w->begin[i] < 0 || w->end[i] < 0 || k->extra[i] < 0 || w->begin[i] > INT32_MAX ||
            w->end[i] > INT32_MAX || k->extra[i] > INT32_MAX)
            return build_error(b, E_IMPORT, "a padding of %lld and %lld cells, %lld more behind",
                               (long long)w->begin[i], (long long)w->end[i],
                               (long long)k->extra[i]);
        if (build_dim(b, k->w, 2 + i) != w->kernel[i] || w->kernel[i] < 1)
            return build_error(b, E_IMPORT, "the weight is %s for a kernel of %lld cells",
                               type_text(b->c, k->w->type), (long long)w->kernel[i]);
    }
    if (k->groups < 1 || k->groups > INT32_MAX || of % k->groups ||
        (k->transposed ? of : build_dim(b, k->w, 1) * k->groups) != channels)
        return build_error(b, E_IMPORT, "the weight is %s for data %s in %lld groups",
                           type_text(b->c, k->w->type), type_text(b->c, k->x->type),
                           (long long)k->groups);
    return true;
}

const Expr *build_conv(const Build *b, const BuildConv *k)
{
    BiasAddAttrs *a = ATTRS(b, BiasAddAttrs);
    const Expr   *y;

    if (!k->x || !k->w)
        return NULL;
    if (k->dims < 1 || k->dims > 3 || expr_rank(k->x) != k->dims + 2 ||
        expr_rank(k->w) != k->dims + 2)
        return build_error(b, E_UNSUPPORTED, "the weight is %s for data %s",
                           type_text(b->c, k->w->type), type_text(b->c, k->x->type));
    if (!check(b, k) || !(y = k->transposed ? transposed(b, k) : straight(b, k)))
        return NULL;
    a->axis = 1;
    if (dtype_is_float(expr_dtype(k->x)))
        y = build_cast(b, y, expr_dtype(k->x));
    return y && k->bias ? build2(b, "nn.bias_add", y, k->bias, a) : y;
}
