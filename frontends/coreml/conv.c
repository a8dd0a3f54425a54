/* Convolutions, over one to three dimensions. */
#include "frontends/coreml/coreml.h"

#include <string.h>

/* The window is that of the weight, which has as many dimensions as the data. */
static bool kernel_of(CmlNode *n, BuildConv *k)
{
    const Build *b = &n->b;

    if (!k->x || !k->w)
        return false;
    if (expr_rank(k->w) != k->dims + 2 || expr_rank(k->x) != k->dims + 2)
        return cml_error(n, E_IMPORT, "the weight is %s for data %s", type_text(b->c, k->w->type),
                         type_text(b->c, k->x->type));
    for (uint32_t i = 0; i < k->dims; i++)
        k->window.kernel[i] = build_dim(b, k->w, 2 + i);
    return true;
}

/* Cut from what a transposed convolution gives so that `size` cells are left; below 0: added at
 * the end. */
static void cut(BuildConv *k, uint32_t i, int64_t in, int64_t size, bool lower)
{
    int64_t full =
        (in - 1) * k->window.stride[i] + (k->window.kernel[i] - 1) * k->window.dilation[i] + 1;
    int64_t all = full > size ? full - size : 0;

    k->window.begin[i] = lower ? all - all / 2 : all / 2;
    k->window.end[i] = all - k->window.begin[i];
    k->extra[i] = full < size ? size - full : 0;
}

/* As many cells as there are steps, the odd one behind or before. */
static bool same(CmlNode *n, BuildConv *k, bool lower)
{
    const Build *b = &n->b;

    for (uint32_t i = 0; i < k->dims; i++) {
        int64_t begin, end;

        if (k->transposed) {
            int64_t in = build_dim(b, k->x, 2 + i);

            cut(k, i, in, in * k->window.stride[i], lower);
            continue;
        }
        if (!build_same(b, expr_form(k->x, 2 + i), k->window.kernel[i], k->window.stride[i],
                        k->window.dilation[i], &begin, &end))
            return false;
        k->window.begin[i] = lower ? end : begin;
        k->window.end[i] = lower ? begin : end;
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

static bool layer_weights(CmlNode *n, BuildConv *k, int64_t out, int64_t in)
{
    int64_t dims[2 + CML_SPATIAL] = {k->transposed ? in : out,
                                     k->transposed ? out / k->groups : in};

    for (uint32_t i = 0; i < k->dims; i++)
        dims[2 + i] = k->window.kernel[i];
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
    BuildConv  k = {.x = cml_image(n, "x", 2), .dims = 2, .groups = cml_int(n, "n_groups", 1)};
    int64_t    out = cml_int(n, "output_channels", 0), in = cml_int(n, "kernel_channels", 0);
    CmlMessage pad;
    Ints       shape;

    k.transposed = cml_bool(n, "is_deconvolution", false);
    k.groups = k.groups ? k.groups : 1;
    if (!k.x || !cml_numbers(n, "kernel_size", 2, 3, 1, k.window.kernel) ||
        !cml_numbers(n, "stride", 2, 1, 1, k.window.stride) ||
        !cml_numbers(n, "dilation_factor", 2, 1, 1, k.window.dilation) ||
        !cml_ints(n, "output_shape", &shape))
        return false;
    if (k.groups < 1 || out < 1 || in < 1 || out % k.groups)
        return cml_error(n, E_IMPORT, "%lld output and %lld kernel channels in %lld groups",
                         (long long)out, (long long)in, (long long)k.groups);
    if (k.transposed)
        k.window.dilation[0] = k.window.dilation[1] = 1;
    if (!layer_weights(n, &k, out, in) || !kernel_of(n, &k) ||
        !cml_layer_borders(n, k.window.begin, k.window.end))
        return false;
    if (cml_message(n, "same", &pad) && !same(n, &k, cml_read_int(&pad, "asymmetry_mode") == 1))
        return false;
    for (uint32_t i = 0; k.transposed && shape.n == 2 && i < 2; i++)
        cut(&k, i, build_dim(&n->b, k.x, 2 + i), shape.at[i], false);
    return cml_done_image(n, build_conv(&n->b, &k));
}

/* Fields of volumes are told apart by words. */
static bool volume_field(CmlNode *n, const char *what, int64_t *out)
{
    static const char *const words[] = {"depth", "height", "width"};

    for (uint32_t i = 0; i < CML_SPATIAL; i++) {
        const char *name = arena_printf(n->b.c->arena, "%s_%s", what, words[i]);

        out[i] = cml_int(n, name, 0);
        if (out[i] < 0 || out[i] > INT32_MAX)
            return cml_error(n, E_IMPORT, "'%s' is %lld", name, (long long)out[i]);
        out[i] += out[i] == 0; /* not said */
    }
    return true;
}

bool cml_volume_borders(CmlNode *n, int64_t *begin, int64_t *end)
{
    static const char *const words[] = {"front", "back", "top", "bottom", "left", "right"};

    for (uint32_t i = 0; i < 2 * CML_SPATIAL; i++) {
        int64_t v = cml_int(n, arena_printf(n->b.c->arena, "custom_padding_%s", words[i]), 0);

        if (v < 0 || v > INT32_MAX)
            return cml_error(n, E_IMPORT, "padding %lld", (long long)v);
        (i % 2 ? end : begin)[i / 2] = v;
    }
    return true;
}

bool cml_volume_window(CmlNode *n, int64_t *kernel, int64_t *stride)
{
    return volume_field(n, "kernel", kernel) && volume_field(n, "stride", stride);
}

bool cml_layer_conv3d(CmlNode *n)
{
    enum { CUSTOM, VALID, SAME };
    BuildConv k = {.x = cml_x(n, "x"), .dims = 3, .groups = cml_int(n, "n_groups", 1)};
    int64_t   out = cml_int(n, "output_channels", 0), in = cml_int(n, "input_channels", 0);
    int64_t   type = cml_int(n, "padding_type", 0), custom[2][CML_SPATIAL];
    Ints      shape;

    k.transposed = cml_bool(n, "is_deconvolution", false);
    k.groups = k.groups ? k.groups : 1;
    if (!cml_volume_window(n, k.window.kernel, k.window.stride) ||
        !volume_field(n, "dilation", k.window.dilation) || !k.x ||
        !cml_ints(n, "output_shape", &shape) || !cml_volume_borders(n, custom[0], custom[1]))
        return false;
    if (k.groups < 1 || out < 1 || in < 1 || out % k.groups || in % k.groups)
        return cml_error(n, E_IMPORT, "%lld output and %lld input channels in %lld groups",
                         (long long)out, (long long)in, (long long)k.groups);
    if (!layer_weights(n, &k, out, k.transposed ? in : in / k.groups) || !kernel_of(n, &k))
        return false;
    if (type == CUSTOM) {
        memcpy(k.window.begin, custom[0], sizeof k.window.begin);
        memcpy(k.window.end, custom[1], sizeof k.window.end);
    } else if (type == SAME ? !same(n, &k, false) : type != VALID) {
        return cml_error(n, E_UNSUPPORTED, "padding type %lld", (long long)type);
    }
    for (uint32_t i = 0; k.transposed && shape.n == CML_SPATIAL && i < CML_SPATIAL; i++)
        cut(&k, i, build_dim(&n->b, k.x, 2 + i), shape.at[i], false);
    return cml_done(n, build_conv(&n->b, &k));
}

/* ---- operators --------------------------------------------------------------------------------------- */

bool cml_pad_type(CmlNode *n, uint32_t dims, int64_t *begin, int64_t *end, CmlPadding *how)
{
    const char *type = cml_text(n, "pad_type", "valid");
    int64_t     pad[2 * CML_SPATIAL];

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

static bool read_conv(CmlNode *n, BuildConv *k)
{
    CmlPadding how;

    k->x = cml_x(n, "x");
    k->w = k->x ? cml_x(n, "weight") : NULL;
    k->groups = cml_int(n, "groups", 1);
    if (!k->w || !cml_maybe(n, "bias", &k->bias))
        return false;
    k->dims = expr_rank(k->x) - 2;
    if (k->dims < 1 || k->dims > CML_SPATIAL)
        return cml_error(n, E_UNSUPPORTED, "a convolution of %s", type_text(n->b.c, k->x->type));
    return cml_numbers(n, "strides", k->dims, 1, 1, k->window.stride) &&
           cml_numbers(n, "dilations", k->dims, 1, 1, k->window.dilation) && kernel_of(n, k) &&
           cml_pad_type(n, k->dims, k->window.begin, k->window.end, &how) &&
           (how != CML_SAME || same(n, k, false)) && (how != CML_SAME_LOWER || same(n, k, true));
}

bool cml_conv(CmlNode *n)
{
    BuildConv k = {0};

    return read_conv(n, &k) && cml_done(n, build_conv(&n->b, &k));
}

/* A number, or one for each channel of the result, for weights of so many dimensions. */
static const Expr *per_channel(CmlNode *n, const char *name, const BuildConv *k)
{
    const Expr *v = cml_x(n, name);
    int64_t     dims[MAX_RANK] = {0}, cells;

    if (!v || !type_elems(v->type, &cells))
        return NULL;
    for (uint32_t i = 0; i < k->dims + 2; i++)
        dims[i] = i ? 1 : cells;
    if (cells != 1 && cells != build_dim(&n->b, k->w, 0))
        return cml_error(n, E_IMPORT, "'%s' is %s, weights are %s", name,
                         type_text(n->b.c, v->type), type_text(n->b.c, k->w->type));
    return build_cast(&n->b, build_reshape(&n->b, v, k->dims + 2, dims), expr_dtype(k->x));
}

/* Weights are bytes times a scale, and a number that is added. */
bool cml_conv_quantized(CmlNode *n)
{
    const char *how = cml_text(n, "quantization_type", "linear");
    int64_t     bits = cml_int(n, "nbits", 8); /* each has a byte of its own */
    BuildConv   k = {0};
    const Expr *scale, *more;

    if (strcmp(how, "linear") != 0 || bits < 1 || bits > 8)
        return cml_error(n, E_UNSUPPORTED, "quantization_type '%s' of %lld bits", how,
                         (long long)bits);
    if (!read_conv(n, &k) || !(scale = per_channel(n, "quant_scale", &k)) ||
        !(more = per_channel(n, "quant_bias", &k)))
        return false;
    k.w = build_mul(&n->b, build_cast(&n->b, k.w, expr_dtype(k.x)), scale);
    k.w = build_add(&n->b, k.w, more);
    if (k.bias)
        k.bias = build_cast(&n->b, k.bias, expr_dtype(k.x));
    return k.w && cml_done(n, build_conv(&n->b, &k));
}

bool cml_conv_transpose(CmlNode *n)
{
    BuildConv k = {.transposed = true};
    Ints      shape;

    if (!read_conv(n, &k) || !cml_ints(n, "output_shape", &shape))
        return false;
    if (shape.n && shape.n != k.dims + 2)
        return cml_error(n, E_IMPORT, "output_shape has %u numbers", shape.n);
    for (uint32_t i = 0; shape.n && i < k.dims; i++) {
        int64_t begin = k.window.begin[i], in = build_dim(&n->b, k.x, 2 + i), left;

        cut(&k, i, in, shape.at[2 + i], false);
        if (!begin)
            continue;
        left = k.window.begin[i] + k.window.end[i] - k.extra[i] -
               begin; /* what is cut in front is said */
        k.window.begin[i] = begin;
        k.window.end[i] = left > 0 ? left : 0;
        k.extra[i] = left < 0 ? -left : 0;
    }
    return cml_done(n, build_conv(&n->b, &k));
}
