/* Windows, pooling, and convolutions of volumes. */
#include "frontends/tensorflow/window.h"

#include <string.h>

/* ---- windows ---------------------------------------------------------------------------------------- */

/* The numbers of an attribute for the dimensions of images: batch and channels have to be 1. */
static bool along(TfNode *n, Ints v, const char *name, uint32_t ndim, int64_t *out)
{
    bool     ok, first = tf_channels_first(n, &ok);
    uint32_t channel = first ? 1 : ndim + 1, k = 0;

    if (!ok)
        return false;
    if (v.n != ndim + 2)
        return tf_error(n, E_IMPORT, "%s has %u numbers for %u dimensions", name, v.n, ndim + 2);
    for (uint32_t i = 0; i < v.n; i++) {
        if (v.at[i] < 1 || v.at[i] > INT32_MAX)
            return tf_error(n, E_IMPORT, "%s is %lld along dimension %u", name, (long long)v.at[i],
                            i);
        if (i != 0 && i != channel)
            out[k++] = v.at[i];
        else if (v.at[i] != 1)
            return tf_error(n, E_UNSUPPORTED, "%s is %lld along the %s", name, (long long)v.at[i],
                            i ? "channels" : "batch");
    }
    return true;
}

static uint32_t dims_of(const TfNode *n)
{
    return strlen(tf_text(n, "data_format")) > 4 ? 3 : 2;
}

bool tf_window_sizes(TfNode *n, TfWindow *w)
{
    uint32_t   ndim = dims_of(n);
    TfAttrSpec s;

    for (uint32_t i = 0; i < ndim; i++) {
        w->dilation[i] = 1;
        if (w->kernel[i] < 1 || w->kernel[i] > INT32_MAX)
            return tf_error(n, E_IMPORT, "a window of %lld cells", (long long)w->kernel[i]);
    }
    if (!along(n, tf_int_list(n, "strides"), "strides", ndim, w->stride))
        return false;
    return !tf_attr_spec(n->row->schema, "dilations", &s) ||
           along(n, tf_int_list(n, "dilations"), "dilations", ndim, w->dilation);
}

/* explicit_paddings: before and after each dimension. */
static bool explicit_window(TfNode *n, uint32_t ndim, TfWindow *w)
{
    bool ok, first = tf_channels_first(n, &ok);
    Ints v = tf_int_list(n, "explicit_paddings");

    if (v.n != 2 * (ndim + 2))
        return tf_error(n, E_IMPORT, "explicit_paddings has %u numbers", v.n);
    for (uint32_t i = 0; i < ndim; i++) {
        w->begin[i] = v.at[2 * ((first ? 2 : 1) + i)];
        w->end[i] = v.at[2 * ((first ? 2 : 1) + i) + 1];
        if (w->begin[i] < 0 || w->end[i] < 0 || w->begin[i] > INT32_MAX || w->end[i] > INT32_MAX)
            return tf_error(n, E_IMPORT, "%lld cells of padding", (long long)w->begin[i]);
    }
    return true;
}

bool tf_window(TfNode *n, const Expr *x, TfWindow *w)
{
    const char *padding = tf_text(n, "padding");
    uint32_t    ndim = dims_of(n);

    if (!tf_window_sizes(n, w))
        return false;
    if (!strcmp(padding, "EXPLICIT"))
        return explicit_window(n, ndim, w);
    if (strcmp(padding, "SAME") != 0 && strcmp(padding, "VALID") != 0)
        return tf_error(n, E_UNSUPPORTED, "padding is '%s'", padding);
    for (uint32_t i = 0; i < ndim; i++) {
        w->begin[i] = w->end[i] = 0;
        if (!strcmp(padding, "SAME") &&
            !build_same(&n->b, expr_form(x, 2 + i), w->kernel[i], w->stride[i], w->dilation[i],
                        &w->begin[i], &w->end[i]))
            return false;
    }
    return true;
}

/* ---- pooling ---------------------------------------------------------------------------------------- */

static bool pool(TfNode *n, Ints ksize)
{
    const Build *b = &n->b;
    Pool2dAttrs *a = ATTRS(b, Pool2dAttrs);
    const Expr  *x = tf_image(n, 0);
    TfWindow     w = {0};

    if (!x || !along(n, ksize, "ksize", 2, w.kernel) || !tf_window(n, x, &w))
        return false;
    a->pool_size = ints_dup(b->c, w.kernel, 2);
    a->strides = ints_dup(b->c, w.stride, 2);
    a->padding = ints_of(b->c, 4, (int)w.begin[0], (int)w.begin[1], (int)w.end[0], (int)w.end[1]);
    return tf_image_done(n, build1(b, n->row->relay, x, a));
}

bool tf_pool(TfNode *n)
{
    return pool(n, tf_int_list(n, "ksize"));
}

/* Inputs: data, the window, its strides. */
bool tf_pool_v2(TfNode *n)
{
    const Build *b = &n->b;
    Pool2dAttrs *a = ATTRS(b, Pool2dAttrs);
    const Expr  *x = tf_image(n, 0);
    const char  *padding = tf_text(n, "padding");
    TfWindow     w = {0};
    Ints         ksize, strides;

    if (!x || !tf_ints(n, 1, &ksize) || !tf_ints(n, 2, &strides) ||
        !along(n, ksize, "ksize", 2, w.kernel) || !along(n, strides, "strides", 2, w.stride))
        return false;
    for (uint32_t i = 0; i < 2 && !strcmp(padding, "SAME"); i++)
        if (!build_same(b, expr_form(x, 2 + i), w.kernel[i], w.stride[i], 1, &w.begin[i],
                        &w.end[i]))
            return false;
    a->pool_size = ints_dup(b->c, w.kernel, 2);
    a->strides = ints_dup(b->c, w.stride, 2);
    a->padding = ints_of(b->c, 4, (int)w.begin[0], (int)w.begin[1], (int)w.end[0], (int)w.end[1]);
    return tf_image_done(n, build1(b, n->row->relay, x, a));
}

/* ---- volumes ---------------------------------------------------------------------------------------- */

enum { VOLUME_RANK = 5 };
static const int64_t to_first[VOLUME_RANK] = {0, 4, 1, 2, 3},
                     to_last[VOLUME_RANK] = {0, 2, 3, 4, 1};

static const Expr *volume(TfNode *n, uint32_t i)
{
    bool ok, first = tf_channels_first(n, &ok);

    if (!ok || !tf_rank(n, i, VOLUME_RANK, VOLUME_RANK))
        return NULL;
    return first ? n->in[i] : build_transpose(&n->b, n->in[i], VOLUME_RANK, to_first);
}

static bool volume_done(TfNode *n, const Expr *y)
{
    bool ok, first = tf_channels_first(n, &ok);

    return ok && tf_done(n, y && !first ? build_transpose(&n->b, y, VOLUME_RANK, to_last) : y);
}

bool tf_pool_volume(TfNode *n)
{
    const Expr *x = volume(n, 0);
    TfWindow    w = {0};

    return x && along(n, tf_int_list(n, "ksize"), "ksize", 3, w.kernel) && tf_window(n, x, &w) &&
           volume_done(n, build_pool_volume(&n->b, n->row->relay, x, &w, (BuildPooling){0}));
}

/* Weights [D, H, W, I, O]. */
bool tf_conv3d(TfNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = volume(n, 0), *w;
    TfWindow     win = {0};
    int64_t      in, of;

    if (!x || !tf_rank(n, 1, VOLUME_RANK, VOLUME_RANK) ||
        !(w = tf_folded(n, 1,
                        build_transpose(b, n->in[1], VOLUME_RANK, (int64_t[]){4, 3, 0, 1, 2}))))
        return false;
    for (uint32_t i = 0; i < 3; i++)
        win.kernel[i] = build_dim(b, w, 2 + i);
    in = build_dim(b, x, 1), of = build_dim(b, w, 1);
    if (of < 1 || in < 1 || in % of || build_dim(b, w, 0) % (in / of))
        return tf_error(n, E_IMPORT, "the weight is for %lld input channels, the data have %lld",
                        (long long)of, (long long)in);
    return tf_window(n, x, &win) && volume_done(n, build_conv_volume(b, x, w, &win, in / of, ""));
}

/* Inputs: the shape of the result, weights [D, H, W, O, I], data. */
bool tf_conv3d_backprop_input(TfNode *n)
{
    const Build *b = &n->b;
    bool         ok, first = tf_channels_first(n, &ok);
    const Expr  *x, *w;
    int64_t      extra[3], size[3], cells[3];
    TfWindow     win = {0};
    Ints         shape;

    if (!ok || !tf_ints(n, 0, &shape) || !tf_rank(n, 1, VOLUME_RANK, VOLUME_RANK))
        return false;
    if (!(x = volume(n, 2)) ||
        !(w = tf_folded(n, 1,
                        build_transpose(b, n->in[1], VOLUME_RANK, (int64_t[]){4, 3, 0, 1, 2}))))
        return false;
    if (shape.n != VOLUME_RANK || build_dim(b, w, 0) != build_dim(b, x, 1))
        return tf_error(n, E_IMPORT, "the weight is for %lld input channels, the data have %lld",
                        (long long)build_dim(b, w, 0), (long long)build_dim(b, x, 1));
    for (uint32_t i = 0; i < 3; i++) {
        win.kernel[i] = build_dim(b, w, 2 + i);
        cells[i] = build_dim(b, x, 2 + i);
        size[i] = shape.at[(first ? 2 : 1) + i];
    }
    return tf_window_sizes(n, &win) &&
           tf_transposed(n, 3, cells, size, tf_text(n, "padding"), &win, extra) &&
           volume_done(n, build_conv_transpose_volume(b, x, w, &win, extra, 1));
}
