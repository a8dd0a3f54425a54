/* Convolutions whose weights differ from place to place: LocallyConnected1D and 2D of Keras 1
 * and 2.
 *
 * The cells that each place sees are rows of a product with that place's matrix,
 *
 *     [places, N, taps] * [places, taps, filters]
 *
 * Weights are kept so (implementation 1), or for all cells and places, of which those within the
 * windows count (implementation 2). */
#include "frontends/keras/keras.h"

#include <string.h>

typedef struct {
    uint32_t dims;
    bool     first; /* channels */
    int64_t  size[2], out[2], kernel[2], stride[2], channels, places, taps;
} Local;

enum { MOST_CELLS = 1 << 24 };

static bool read_local(KerasNode *n, const Expr *x, Local *l)
{
    int64_t stride[2], kernel[2];

    l->dims = strstr(n->layer->class_name, "1D") ? 1 : 2;
    l->first = keras_channels_first(n);
    if (!keras_rank(n, x, l->dims + 2, l->dims + 2) ||
        !keras_ints(n, "kernel_size", l->dims, 1, 1, kernel) ||
        !keras_ints(n, "strides", l->dims, 1, 1, stride))
        return false;
    if (strcmp(keras_text(n, "padding", "valid"), "valid") != 0)
        return keras_error(n, E_UNSUPPORTED, "padding '%s'", keras_text(n, "padding", "valid"));
    l->channels = build_dim(&n->b, x, l->first ? 1 : l->dims + 1);
    l->places = 1;
    l->taps = l->channels;
    for (uint32_t i = 0; i < 2; i++) { /* a line is a picture of one row */
        bool there = l->dims == 2 || i == 1;

        l->kernel[i] = there ? kernel[i - (2 - l->dims)] : 1;
        l->stride[i] = there ? stride[i - (2 - l->dims)] : 1;
        l->size[i] = there ? build_dim(&n->b, x, i - (2 - l->dims) + (l->first ? 2 : 1)) : 1;
        if (l->size[i] < l->kernel[i])
            return keras_error(n, E_IMPORT, "a window of %lld in %lld cells",
                               (long long)l->kernel[i], (long long)l->size[i]);
        l->out[i] = (l->size[i] - l->kernel[i]) / l->stride[i] + 1;
        if (!checked_mul(l->places, l->out[i], &l->places) ||
            !checked_mul(l->taps, l->kernel[i], &l->taps))
            return keras_error(n, E_UNSUPPORTED, "it is too large");
    }
    return true;
}

/* The cell of a picture without batch that place p sees as tap t, which are in the data's order. */
static int64_t cell_of(const Local *l, int64_t p, int64_t t)
{
    int64_t taps = l->kernel[0] * l->kernel[1];
    int64_t c = l->first ? t / taps : t % l->channels, k = l->first ? t % taps : t / l->channels;
    int64_t y = p / l->out[1] * l->stride[0] + k / l->kernel[1];
    int64_t x = p % l->out[1] * l->stride[1] + k % l->kernel[1];

    return l->first ? (c * l->size[0] + y) * l->size[1] + x
                    : (y * l->size[1] + x) * l->channels + c;
}

static const Expr *seen(KerasNode *n, const Local *l, const Expr *x)
{
    const Build *b = &n->b;
    int64_t      all, *at;
    const Idx   *N = expr_form(x, 0), *cells;

    if (!checked_mul(l->places, l->taps, &all) || all > MOST_CELLS)
        return keras_error(n, E_UNSUPPORTED, "%lld places of %lld cells", (long long)l->places,
                           (long long)l->taps);
    at = NEW_ARRAY(b->c->arena, int64_t, (size_t)all + 1);
    for (int64_t i = 0; i < all; i++)
        at[i] = cell_of(l, i / l->taps, i % l->taps);
    cells = idx_const(b->c->arith, l->size[0] * l->size[1] * l->channels);
    x = build_take(b, build_reshape_to(b, x, 2, (const Idx *[]){N, cells}),
                   build_i64s(b, (uint32_t)all, at), 1);
    x = build_reshape_to(
        b, x, 3,
        (const Idx *[]){N, idx_const(b->c->arith, l->places), idx_const(b->c->arith, l->taps)});
    return build_transpose(b, x, 3, (int64_t[]){1, 0, 2});
}

/* [places, taps, filters] */
static const Expr *matrices(KerasNode *n, const Local *l)
{
    const Build *b = &n->b;
    const Expr  *w = keras_weight(n, "kernel");
    int64_t      cells = l->size[0] * l->size[1] * l->channels, all, filters, *at, p, t;
    Ints         d;

    if (!w)
        return NULL;
    d = build_dims(b, w);
    if (d.n == 3 && d.at[0] == l->places && d.at[1] == l->taps)
        return w;
    if (keras_int(n, "implementation", 1) != 2)
        return keras_error(n, E_UNSUPPORTED, "its weight is %s: implementation %lld",
                           type_text(b->c, w->type), (long long)keras_int(n, "implementation", 1));
    all = build_elems(b, w);
    filters = keras_int(n, "filters", 0);
    if (filters < 1 || filters > INT32_MAX || all != cells * l->places * filters ||
        all > MOST_CELLS || l->first)
        return keras_error(n, E_UNSUPPORTED, "its weight is %s", type_text(b->c, w->type));
    at = NEW_ARRAY(b->c->arena, int64_t, (size_t)(l->places * l->taps * filters));
    all = 0;
    for (p = 0; p < l->places; p++)
        for (t = 0; t < l->taps; t++)
            for (int64_t f = 0; f < filters; f++)
                at[all++] = (cell_of(l, p, t) * l->places + p) * filters + f;
    cells = build_elems(b, w);
    w = build_take(b, build_reshape(b, w, 1, &cells), build_i64s(b, (uint32_t)all, at), 0);
    return keras_folded(n, "kernel",
                        build_reshape(b, w, 3, (int64_t[]){l->places, l->taps, filters}));
}

bool keras_locally_connected(KerasNode *n)
{
    const Build      *b = &n->b;
    const Expr       *x = keras_in(n), *w, *y, *bias = NULL;
    BatchMatmulAttrs *a = ATTRS(b, BatchMatmulAttrs);
    const Idx        *dims[4];
    uint32_t          d = 0;
    Local             l;

    if (!x || !read_local(n, x, &l) || !(w = matrices(n, &l)))
        return false;
    a->transpose_b = false;
    y = build2(b, "nn.batch_matmul", seen(n, &l, x), w, a);
    if (!y || (keras_has_weight(n, "bias") && !(bias = keras_weight(n, "bias"))))
        return false;
    y = build_transpose(b, y, 3, l.first ? (int64_t[]){1, 2, 0} : (int64_t[]){1, 0, 2});
    dims[d++] = expr_form(x, 0);
    if (l.first)
        dims[d++] = expr_form(w, 2);
    for (uint32_t i = 2 - l.dims; i < 2; i++)
        dims[d++] = idx_const(b->c->arith, l.out[i]);
    if (!l.first)
        dims[d++] = expr_form(w, 2);
    y = build_reshape_to(b, y, d, dims);
    if (bias)
        y = build_add(b, y, bias);
    return keras_done(n, keras_activated(n, "activation", "linear", y, l.first ? 1 : l.dims + 1));
}
