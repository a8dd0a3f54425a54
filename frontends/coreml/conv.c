/* Convolutions, over one to three dimensions. */
#include "frontends/coreml/coreml.h"

#include <string.h>

const char *cml_sum_dtype(const Expr *x)
{
    return dtype_is_float(expr_dtype(x)) && expr_dtype(x).bits == 16 ? "f32" : "";
}

enum { SPATIAL = 3 };

typedef struct {
    const Expr *x, *w, *bias;
    uint32_t    dims;
    int64_t     stride[SPATIAL], dilation[SPATIAL], begin[SPATIAL], end[SPATIAL];
    int64_t     extra[SPATIAL], kernel[SPATIAL], groups;
    bool        transposed;
} Conv;

static Ints pair(Ctx *c, const Conv *k, const int64_t *v, int64_t first)
{
    return ints_of(c, 2, (int)(k->dims == 1 ? first : v[0]), (int)v[k->dims - 1]);
}

static Ints borders(Ctx *c, const Conv *k)
{
    bool one = k->dims == 1;

    return ints_of(c, 4, one ? 0 : (int)k->begin[0], (int)k->begin[k->dims - 1],
                   one ? 0 : (int)k->end[0], (int)k->end[k->dims - 1]);
}

static const Expr *conv1d(const Build *b, const Conv *k)
{
    Conv1dAttrs *a = ATTRS(b, Conv1dAttrs);

    a->strides = ints_dup(b->c, k->stride, 1);
    a->dilation = ints_dup(b->c, k->dilation, 1);
    a->padding = ints_of(b->c, 2, (int)k->begin[0], (int)k->end[0]);
    a->groups = k->groups;
    a->channels = build_dim(b, k->w, 0);
    a->kernel_size = ints_dup(b->c, k->kernel, 1);
    a->out_dtype = cml_sum_dtype(k->x);
    return build2(b, "nn.conv1d", k->x, k->w, a);
}

static const Expr *conv2d(const Build *b, const Conv *k)
{
    Conv2dAttrs *a = ATTRS(b, Conv2dAttrs);

    a->strides = ints_dup(b->c, k->stride, 2);
    a->dilation = ints_dup(b->c, k->dilation, 2);
    a->padding = borders(b->c, k);
    a->groups = k->groups;
    a->channels = build_dim(b, k->w, 0);
    a->kernel_size = ints_dup(b->c, k->kernel, 2);
    a->out_dtype = cml_sum_dtype(k->x);
    return build2(b, "nn.conv2d", k->x, k->w, a);
}

/* [.., W] -> [.., 1, W], and back. */
static const Expr *lifted(const Build *b, const Expr *x)
{
    return build_expand_dims(b, x, 2, 1);
}

static const Expr *dropped(const Build *b, const Expr *y)
{
    return y ? build_reshape_to(b, y, 3,
                                (const Idx *[]){expr_form(y, 0), expr_form(y, 1), expr_form(y, 3)})
             : NULL;
}

static const Expr *conv_transpose(const Build *b, const Conv *k)
{
    Conv2dTransposeAttrs *a = ATTRS(b, Conv2dTransposeAttrs);
    bool                  one = k->dims == 1;
    const Expr           *y;

    a->strides = pair(b->c, k, k->stride, 1);
    a->dilation = pair(b->c, k, k->dilation, 1);
    a->padding = borders(b->c, k);
    a->output_padding = pair(b->c, k, k->extra, 0);
    a->groups = k->groups;
    a->channels = build_dim(b, k->w, 1) * k->groups;
    a->kernel_size = pair(b->c, k, k->kernel, 1);
    y = build2(b, "nn.conv2d_transpose", one ? lifted(b, k->x) : k->x, one ? lifted(b, k->w) : k->w,
               a);
    return one ? dropped(b, y) : y;
}

static const Expr *conv3d(const Build *b, const Conv *k)
{
    BuildWindow w;

    memcpy(w.kernel, k->kernel, sizeof w.kernel);
    memcpy(w.stride, k->stride, sizeof w.stride);
    memcpy(w.dilation, k->dilation, sizeof w.dilation);
    memcpy(w.begin, k->begin, sizeof w.begin);
    memcpy(w.end, k->end, sizeof w.end);
    return k->transposed ? build_conv_transpose_volume(b, k->x, k->w, &w, k->extra, k->groups)
                         : build_conv_volume(b, k->x, k->w, &w, k->groups, cml_sum_dtype(k->x));
}

/* x and w are known and fit each other. */
static bool check(CmlNode *n, Conv *k)
{
    const Build *b = &n->b;
    int64_t      channels, of, in;

    if (!k->x || !k->w)
        return false;
    if (expr_rank(k->w) != k->dims + 2 || expr_rank(k->x) != k->dims + 2)
        return cml_error(n, E_IMPORT, "the weight is %s for data %s", type_text(b->c, k->w->type),
                         type_text(b->c, k->x->type));
    channels = build_dim(b, k->x, 1);
    of = build_dim(b, k->w, 0);
    in = build_dim(b, k->w, 1);
    if (k->groups < 1 || of % k->groups || (k->transposed ? of : in * k->groups) != channels)
        return cml_error(n, E_IMPORT, "the weight is %s for data %s in %lld groups",
                         type_text(b->c, k->w->type), type_text(b->c, k->x->type),
                         (long long)k->groups);
    for (uint32_t i = 0; i < k->dims; i++) {
        k->kernel[i] = build_dim(b, k->w, 2 + i);
        if (k->kernel[i] < 1 || k->stride[i] < 1 || k->dilation[i] < 1)
            return cml_error(n, E_IMPORT, "a kernel, stride or dilation below 1");
    }
    return true;
}

static const Expr *convolved(CmlNode *n, const Conv *k)
{
    const Build *b = &n->b;
    const Expr  *y = k->dims == 3    ? conv3d(b, k)
                     : k->transposed ? conv_transpose(b, k)
                     : k->dims == 1  ? conv1d(b, k)
                                     : conv2d(b, k);

    y = y ? build_cast(b, y, expr_dtype(k->x)) : NULL;
    return y && k->bias ? build2(b, "nn.bias_add", y, k->bias, NULL) : y;
}

/* Cut from what a transposed convolution gives so that `size` cells are left; below 0: added at
 * the end. */
static void cut(Conv *k, uint32_t i, int64_t in, int64_t size, bool lower)
{
    int64_t full = (in - 1) * k->stride[i] + (k->kernel[i] - 1) * k->dilation[i] + 1;
    int64_t all = full > size ? full - size : 0;

    k->begin[i] = lower ? all - all / 2 : all / 2;
    k->end[i] = all - k->begin[i];
    k->extra[i] = full < size ? size - full : 0;
}

/* As many cells as there are steps, the odd one behind or before. */
static bool same(CmlNode *n, Conv *k, bool lower)
{
    const Build *b = &n->b;

    for (uint32_t i = 0; i < k->dims; i++) {
        int64_t begin, end;

        if (k->transposed) {
            int64_t in = build_dim(b, k->x, 2 + i);

            cut(k, i, in, in * k->stride[i], lower);
            continue;
        }
        if (!build_same(b, expr_form(k->x, 2 + i), k->kernel[i], k->stride[i], k->dilation[i],
                        &begin, &end))
            return false;
        k->begin[i] = lower ? end : begin;
        k->end[i] = lower ? begin : end;
    }
    return true;
}

/* ---- layers ------------------------------------------------------------------------------------------ */

bool cml_edges(CmlNode *n, const CmlMessage *m, int64_t *begin, int64_t *end)
{
    uint32_t count = cml_read_count(m, "border_amounts");

    begin[0] = begin[1] = end[0] = end[1] = 0;
    if (count != 0 && count != 2)
        return cml_error(n, E_IMPORT, "it has %u borders, not 2", count);
    for (uint32_t i = 0; i < count; i++) {
        CmlMessage edge;

        (void)cml_read_message(m, "border_amounts", i, &edge);
        begin[i] = cml_read_int(&edge, "start_edge_size");
        end[i] = cml_read_int(&edge, "end_edge_size");
        if (begin[i] < 0 || begin[i] > INT32_MAX || end[i] < 0 || end[i] > INT32_MAX)
            return cml_error(n, E_IMPORT, "a border of %lld and %lld cells", (long long)begin[i],
                             (long long)end[i]);
    }
    return true;
}

bool cml_layer_borders(CmlNode *n, int64_t *begin, int64_t *end)
{
    CmlMessage valid, amounts;

    return !cml_message(n, "valid", &valid) ||
           !cml_read_message(&valid, "padding_amounts", 0, &amounts) ||
           cml_edges(n, &amounts, begin, end);
}

static bool layer_weights(CmlNode *n, Conv *k, int64_t out, int64_t in)
{
    int64_t dims[2 + SPATIAL] = {k->transposed ? in : out, k->transposed ? out / k->groups : in};

    for (uint32_t i = 0; i < k->dims; i++)
        dims[2 + i] = k->kernel[i];
    if (n->nargs > 1) { /* as operands of the layer */
        (void)cml_has(n, "weights");
        return (k->w = cml_x(n, "weight")) != NULL && cml_maybe(n, "bias", &k->bias);
    }
    k->w = cml_weight(n, "weights", 2 + k->dims, dims, k->transposed);
    if (cml_bool(n, "has_bias", false))
        k->bias = cml_weight(n, "bias", 1, &out, 0);
    else
        (void)cml_has(n, "bias");
    return k->w && (k->bias || !cml_bool(n, "has_bias", false));
}

bool cml_layer_conv(CmlNode *n)
{
    Conv       k = {.x = cml_image(n, "x", 2), .dims = 2, .groups = cml_int(n, "n_groups", 1)};
    int64_t    out = cml_int(n, "output_channels", 0), in = cml_int(n, "kernel_channels", 0);
    CmlMessage pad;
    Ints       shape;

    k.transposed = cml_bool(n, "is_deconvolution", false);
    k.groups = k.groups ? k.groups : 1;
    if (!k.x || !cml_numbers(n, "kernel_size", 2, 3, 1, k.kernel) ||
        !cml_numbers(n, "stride", 2, 1, 1, k.stride) ||
        !cml_numbers(n, "dilation_factor", 2, 1, 1, k.dilation) ||
        !cml_ints(n, "output_shape", &shape))
        return false;
    if (k.groups < 1 || out < 1 || in < 1 || out % k.groups)
        return cml_error(n, E_IMPORT, "%lld output and %lld kernel channels in %lld groups",
                         (long long)out, (long long)in, (long long)k.groups);
    if (k.transposed)
        k.dilation[0] = k.dilation[1] = 1;
    if (!layer_weights(n, &k, out, in) || !check(n, &k) || !cml_layer_borders(n, k.begin, k.end))
        return false;
    if (cml_message(n, "same", &pad) && !same(n, &k, cml_read_int(&pad, "asymmetry_mode") == 1))
        return false;
    for (uint32_t i = 0; k.transposed && shape.n == 2 && i < 2; i++)
        cut(&k, i, build_dim(&n->b, k.x, 2 + i), shape.at[i], false);
    return cml_done_image(n, convolved(n, &k));
}

/* Fields of volumes are told apart by words. */
static void volume_field(CmlNode *n, const char *what, int64_t *out)
{
    static const char *const words[] = {"depth", "height", "width"};

    for (uint32_t i = 0; i < SPATIAL; i++) {
        out[i] = cml_int(n, arena_printf(n->b.c->arena, "%s_%s", what, words[i]), 0);
        out[i] = out[i] < 1 || out[i] > INT32_MAX ? 1 : out[i];
    }
}

bool cml_volume_borders(CmlNode *n, int64_t *begin, int64_t *end)
{
    static const char *const words[] = {"front", "back", "top", "bottom", "left", "right"};

    for (uint32_t i = 0; i < 2 * SPATIAL; i++) {
        int64_t v = cml_int(n, arena_printf(n->b.c->arena, "custom_padding_%s", words[i]), 0);

        if (v < 0 || v > INT32_MAX)
            return cml_error(n, E_IMPORT, "padding %lld", (long long)v);
        (i % 2 ? end : begin)[i / 2] = v;
    }
    return true;
}

void cml_volume_window(CmlNode *n, int64_t *kernel, int64_t *stride)
{
    volume_field(n, "kernel", kernel);
    volume_field(n, "stride", stride);
}

bool cml_layer_conv3d(CmlNode *n)
{
    enum { CUSTOM, VALID, SAME };
    Conv    k = {.x = cml_x(n, "x"), .dims = 3, .groups = cml_int(n, "n_groups", 1)};
    int64_t out = cml_int(n, "output_channels", 0), in = cml_int(n, "input_channels", 0);
    int64_t type = cml_int(n, "padding_type", 0), custom[2][SPATIAL];
    Ints    shape;

    k.transposed = cml_bool(n, "is_deconvolution", false);
    k.groups = k.groups ? k.groups : 1;
    cml_volume_window(n, k.kernel, k.stride);
    volume_field(n, "dilation", k.dilation);
    if (!k.x || !cml_ints(n, "output_shape", &shape) ||
        !cml_volume_borders(n, custom[0], custom[1]))
        return false;
    if (k.groups < 1 || out < 1 || in < 1 || out % k.groups || in % k.groups)
        return cml_error(n, E_IMPORT, "%lld output and %lld input channels in %lld groups",
                         (long long)out, (long long)in, (long long)k.groups);
    if (!layer_weights(n, &k, out, k.transposed ? in : in / k.groups) || !check(n, &k))
        return false;
    if (type == CUSTOM) {
        memcpy(k.begin, custom[0], sizeof k.begin);
        memcpy(k.end, custom[1], sizeof k.end);
    } else if (type == SAME ? !same(n, &k, false) : type != VALID) {
        return cml_error(n, E_UNSUPPORTED, "padding type %lld", (long long)type);
    }
    for (uint32_t i = 0; k.transposed && shape.n == SPATIAL && i < SPATIAL; i++)
        cut(&k, i, build_dim(&n->b, k.x, 2 + i), shape.at[i], false);
    return cml_done(n, convolved(n, &k));
}

/* ---- operators --------------------------------------------------------------------------------------- */

bool cml_pad_type(CmlNode *n, uint32_t dims, int64_t *begin, int64_t *end, CmlPadding *how)
{
    const char *type = cml_text(n, "pad_type", "valid");
    int64_t     pad[2 * SPATIAL];

    *how = !strcmp(type, "valid")        ? CML_VALID
           : !strcmp(type, "same")       ? CML_SAME
           : !strcmp(type, "same_lower") ? CML_SAME_LOWER
                                         : CML_CUSTOM;
    if (*how == CML_CUSTOM && strcmp(type, "custom") != 0)
        return cml_error(n, E_UNSUPPORTED, "pad_type '%s'", type);
    if (!cml_numbers(n, "pad", 2 * dims, 0, 0, pad))
        return false;
    for (uint32_t i = 0; i < dims && *how == CML_CUSTOM; i++) {
        begin[i] = pad[2 * i];
        end[i] = pad[2 * i + 1];
    }
    return true;
}

static bool read_conv(CmlNode *n, Conv *k)
{
    CmlPadding how;

    k->x = cml_x(n, "x");
    k->w = k->x ? cml_x(n, "weight") : NULL;
    k->groups = cml_int(n, "groups", 1);
    if (!k->w || !cml_maybe(n, "bias", &k->bias))
        return false;
    k->dims = expr_rank(k->x) - 2;
    if (k->dims < 1 || k->dims > SPATIAL)
        return cml_error(n, E_UNSUPPORTED, "a convolution of %s", type_text(n->b.c, k->x->type));
    return cml_numbers(n, "strides", k->dims, 1, 1, k->stride) &&
           cml_numbers(n, "dilations", k->dims, 1, 1, k->dilation) && check(n, k) &&
           cml_pad_type(n, k->dims, k->begin, k->end, &how) &&
           (how != CML_SAME || same(n, k, false)) && (how != CML_SAME_LOWER || same(n, k, true));
}

bool cml_conv(CmlNode *n)
{
    Conv k = {0};

    return read_conv(n, &k) && cml_done(n, convolved(n, &k));
}

bool cml_conv_transpose(CmlNode *n)
{
    Conv k = {.transposed = true};
    Ints shape;

    if (!read_conv(n, &k) || !cml_ints(n, "output_shape", &shape))
        return false;
    if (shape.n && shape.n != k.dims + 2)
        return cml_error(n, E_IMPORT, "output_shape has %u numbers", shape.n);
    for (uint32_t i = 0; shape.n && i < k.dims; i++) {
        int64_t begin = k.begin[i], in = build_dim(&n->b, k.x, 2 + i), left;

        cut(&k, i, in, shape.at[2 + i], false);
        if (!begin)
            continue;
        left = k.begin[i] + k.end[i] - k.extra[i] - begin; /* what is cut in front is said */
        k.begin[i] = begin;
        k.end[i] = left > 0 ? left : 0;
        k.extra[i] = left < 0 ? -left : 0;
    }
    return cml_done(n, convolved(n, &k));
}
