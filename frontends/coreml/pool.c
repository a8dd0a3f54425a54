/* Pooling, over one to three dimensions. */
#include "frontends/coreml/coreml.h"

#include <string.h>

typedef enum { POOL_MAX, POOL_AVERAGE, POOL_L2 } PoolKind;

typedef struct {
    PoolKind    kind;
    const Expr *x;
    uint32_t    dims;
    BuildWindow w;
    bool        ceil_mode, include_pad;
} Pool;

static const Expr *pooled2d(const Build *b, const char *op, const Pool *k, const Expr *x)
{
    Pool2dAttrs *a = ATTRS(b, Pool2dAttrs);
    const Expr  *y;
    bool         one = k->dims == 1;
    uint32_t     last = k->dims - 1;

    if (one)
        x = build_expand_dims(b, x, 2, 1);
    a->pool_size = ints_of(b->c, 2, one ? 1 : (int)k->w.kernel[0], (int)k->w.kernel[last]);
    a->strides = ints_of(b->c, 2, one ? 1 : (int)k->w.stride[0], (int)k->w.stride[last]);
    a->padding = ints_of(b->c, 4, one ? 0 : (int)k->w.begin[0], (int)k->w.begin[last],
                         one ? 0 : (int)k->w.end[0], (int)k->w.end[last]);
    a->ceil_mode = k->ceil_mode;
    a->count_include_pad = k->include_pad;
    y = build1(b, op, x, a);
    return !one ? y
           : y  ? build_reshape_to(
                     b, y, 3, (const Idx *[]){expr_form(y, 0), expr_form(y, 1), expr_form(y, 3)})
               : NULL;
}

static const Expr *pooled(CmlNode *n, const Pool *k)
{
    const Build *b = &n->b;
    const char  *op = k->kind == POOL_MAX ? "nn.max_pool2d" : "nn.avg_pool2d";
    const Expr  *x = k->kind == POOL_L2 ? build_mul(b, k->x, k->x) : k->x, *y;
    Pool         counted = *k;
    double       cells = 1;

    /* The root of the sum of squares, not of their mean. */
    counted.include_pad = k->include_pad || k->kind == POOL_L2;
    for (uint32_t i = 0; i < k->dims; i++)
        cells *= (double)k->w.kernel[i];
    y = k->dims == 3
            ? build_pool_volume(b, op, x, &k->w, (BuildPooling){k->ceil_mode, counted.include_pad})
            : pooled2d(b, op, &counted, x);
    return k->kind == POOL_L2 ? build1(b, "sqrt", build_by(b, "multiply", y, cells), NULL) : y;
}

static bool same(CmlNode *n, Pool *k, bool lower)
{
    for (uint32_t i = 0; i < k->dims; i++) {
        int64_t begin, end;

        if (!build_same(&n->b, expr_form(k->x, 2 + i), k->w.kernel[i], k->w.stride[i], 1, &begin,
                        &end))
            return false;
        k->w.begin[i] = lower ? end : begin;
        k->w.end[i] = lower ? begin : end;
    }
    return true;
}

/* Over all rows and columns, which stay as 1. */
static const Expr *global(CmlNode *n, PoolKind kind, const Expr *x)
{
    const Build *b = &n->b;
    int64_t      axes[CML_SPATIAL];
    uint32_t     dims;

    if (!x)
        return NULL;
    dims = expr_rank(x) - 2;
    for (uint32_t i = 0; i < dims; i++)
        axes[i] = 2 + i;
    if (kind == POOL_L2)
        return build1(b, "sqrt", build_reduce(b, "sum", build_mul(b, x, x), dims, axes, true),
                      NULL);
    if (dims == 2)
        return build1(b, kind == POOL_MAX ? "nn.global_max_pool2d" : "nn.global_avg_pool2d", x,
                      NULL);
    return build_reduce(b, kind == POOL_MAX ? "max" : "mean", x, dims, axes, true);
}

/* ---- layers ------------------------------------------------------------------------------------------ */

static bool known_kind(CmlNode *n, int64_t type)
{
    return (type >= 0 && type <= POOL_L2) ||
           cml_error(n, E_UNSUPPORTED, "pooling of the kind %lld", (long long)type);
}

/* As much around as is said, and at the end as the last window that begins inside needs. */
static bool include_last(CmlNode *n, Pool *k, const CmlMessage *m)
{
    Ints v = cml_read_ints(m, "padding_amounts");

    if (v.n != 0 && v.n != 2)
        return cml_error(n, E_IMPORT, "its padding has %u numbers, not 2", v.n);
    for (uint32_t i = 0; i < v.n; i++) {
        if (v.at[i] < 0 || v.at[i] > INT32_MAX)
            return cml_error(n, E_IMPORT, "padding %lld", (long long)v.at[i]);
        k->w.begin[i] = k->w.end[i] = v.at[i];
    }
    k->ceil_mode = true;
    return true;
}

bool cml_layer_pool(CmlNode *n)
{
    int64_t    type = cml_int(n, "type", 0);
    Pool       k = {.kind = (PoolKind)type, .x = cml_image(n, "x", 2), .dims = 2};
    CmlMessage m;

    k.include_pad = !cml_bool(n, "avg_pool_exclude_padding", false);
    for (uint32_t i = 0; i < CML_SPATIAL; i++)
        k.w.dilation[i] = 1;
    if (!k.x || !known_kind(n, type) || !cml_numbers(n, "kernel_size", 2, 3, 0, k.w.kernel) ||
        !cml_numbers(n, "stride", 2, 1, 0, k.w.stride) || !cml_layer_borders(n, k.w.begin, k.w.end))
        return false;
    if (cml_message(n, "same", &m) && !same(n, &k, cml_read_int(&m, "asymmetry_mode") == 1))
        return false;
    if (cml_message(n, "include_last_pixel", &m) && !include_last(n, &k, &m))
        return false;
    if (cml_bool(n, "global_pooling", false))
        return cml_done_image(n, global(n, k.kind, k.x));
    for (uint32_t i = 0; i < 2; i++)
        if (k.w.kernel[i] < 1 || k.w.stride[i] < 1)
            return cml_error(n, E_IMPORT, "a kernel or stride below 1");
    return cml_done_image(n, pooled(n, &k));
}

bool cml_layer_pool3d(CmlNode *n)
{
    enum { CUSTOM, VALID, SAME };
    int64_t type = cml_int(n, "type", 0), padding = cml_int(n, "padding_type", 0);
    Pool    k = {.kind = (PoolKind)type, .x = cml_x(n, "x"), .dims = 3};
    int64_t begin[CML_SPATIAL], end[CML_SPATIAL];

    k.include_pad = !cml_bool(n, "count_exclude_padding", false);
    cml_volume_window(n, k.w.kernel, k.w.stride);
    for (uint32_t i = 0; i < CML_SPATIAL; i++)
        k.w.dilation[i] = 1;
    if (!k.x || !known_kind(n, type) || !cml_volume_borders(n, begin, end))
        return false;
    if (expr_rank(k.x) != 5)
        return cml_error(n, E_IMPORT, "the data are %s", type_text(n->b.c, k.x->type));
    if (padding == CUSTOM) {
        memcpy(k.w.begin, begin, sizeof begin);
        memcpy(k.w.end, end, sizeof end);
    } else if (padding == SAME ? !same(n, &k, false) : padding != VALID) {
        return cml_error(n, E_UNSUPPORTED, "padding type %lld", (long long)padding);
    }
    return cml_done(n, pooled(n, &k));
}

bool cml_layer_global_pool3d(CmlNode *n)
{
    const Expr *x = cml_x(n, "x");
    int64_t     type = cml_int(n, "type", 0);

    if (!x || !known_kind(n, type))
        return false;
    if (expr_rank(x) != 5)
        return cml_error(n, E_IMPORT, "the data are %s", type_text(n->b.c, x->type));
    return cml_done(n, global(n, (PoolKind)type, x));
}

/* ---- operators --------------------------------------------------------------------------------------- */

bool cml_pool(CmlNode *n)
{
    const char *name = n->row->name;
    Pool        k = {.kind = !strcmp(name, "max_pool")   ? POOL_MAX
                             : !strcmp(name, "avg_pool") ? POOL_AVERAGE
                                                         : POOL_L2,
                     .x = cml_x(n, "x")};
    CmlPadding  how;

    if (!k.x)
        return false;
    k.dims = expr_rank(k.x) - 2;
    if (k.dims < 1 || k.dims > CML_SPATIAL)
        return cml_error(n, E_UNSUPPORTED, "pooling of %s", type_text(n->b.c, k.x->type));
    k.ceil_mode = cml_bool(n, "ceil_mode", false);
    k.include_pad = k.kind == POOL_AVERAGE && !cml_bool(n, "exclude_padding_from_average", false);
    for (uint32_t i = 0; i < CML_SPATIAL; i++)
        k.w.dilation[i] = 1;
    return cml_numbers(n, "kernel_sizes", k.dims, 1, 1, k.w.kernel) &&
           cml_numbers(n, "strides", k.dims, 1, 1, k.w.stride) &&
           cml_pad_type(n, k.dims, k.w.begin, k.w.end, &how) &&
           (how != CML_SAME || same(n, &k, false)) &&
           (how != CML_SAME_LOWER || same(n, &k, true)) && cml_done(n, pooled(n, &k));
}
