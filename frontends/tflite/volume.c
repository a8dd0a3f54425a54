/* Convolutions of volumes, NDHWC. */
#include "frontends/tflite/tflite.h"

#include <string.h>

static const int64_t to_first[] = {0, 4, 1, 2, 3}, to_last[] = {0, 2, 3, 4, 1};

static bool read_window(TfliteNode *n, const Expr *w, BuildWindow *win)
{
    static const char *const        strides[] = {"stride_d", "stride_h", "stride_w"},
                             *const dilations[] = {"dilation_dfactor", "dilation_h_factor",
                                                   "dilation_w_factor"};

    *win = (BuildWindow){0};
    for (uint32_t i = 0; i < 3; i++) {
        win->kernel[i] = build_dim(&n->b, w, 2 + i);
        win->stride[i] = tflite_int(n, strides[i]);
        win->dilation[i] = tflite_int(n, dilations[i]);
        if (win->kernel[i] < 1 || win->stride[i] < 1 || win->dilation[i] < 1)
            return tflite_error(n, E_IMPORT, "kernel, strides and dilations have to be above 0");
    }
    return tflite_int(n, "padding") == 0 || tflite_int(n, "padding") == 1 ||
           tflite_error(n, E_UNSUPPORTED, "padding %lld", (long long)tflite_int(n, "padding"));
}

/* Behind the bias and the activation, as NDHWC. */
static bool volume_done(TfliteNode *n, const Expr *y, uint32_t bias)
{
    const Build *b = &n->b;

    y = y ? build_transpose(b, y, 5, to_last) : NULL;
    if (y && tflite_has(n, bias)) {
        if (!tflite_rank(n, bias, 1, 1) || expr_form(n->in[bias], 0) != expr_form(y, 4))
            return tflite_error(n, E_IMPORT, "the bias is %s, the result %s",
                                type_text(b->c, n->in[bias]->type), type_text(b->c, y->type));
        y = build_add(b, y, n->in[bias]);
    }
    return tflite_done(n, tflite_activate(n, y));
}

static const Expr *weights(TfliteNode *n, const int64_t *axes)
{
    return tflite_folded(n, 1, build_transpose(&n->b, n->in[1], 5, axes));
}

/* Weights [D, H, W, I, O]. */
bool tflite_conv_3d(TfliteNode *n)
{
    const Build *b = &n->b;
    const Expr  *x, *w;
    BuildWindow  win;

    if (!tflite_rank(n, 0, 5, 5) || !tflite_rank(n, 1, 5, 5) ||
        !(x = build_transpose(b, n->in[0], 5, to_first)) ||
        !(w = weights(n, (int64_t[]){4, 3, 0, 1, 2})) || !read_window(n, w, &win))
        return false;
    if (build_dim(b, w, 1) != build_dim(b, x, 1))
        return tflite_error(n, E_IMPORT,
                            "the weight is for %lld input channels, the data have %lld",
                            (long long)build_dim(b, w, 1), (long long)build_dim(b, x, 1));
    for (uint32_t i = 0; tflite_int(n, "padding") == 0 && i < 3; i++)
        if (!build_same(b, expr_form(x, 2 + i), win.kernel[i], win.stride[i], win.dilation[i],
                        &win.begin[i], &win.end[i]))
            return false;
    return volume_done(n, build_conv_volume(b, x, w, &win, 1, ""), 2);
}

/* Inputs: the shape of the result, weights [D, H, W, O, I], data, bias. */
bool tflite_conv_3d_transpose(TfliteNode *n)
{
    const Build *b = &n->b;
    int64_t      extra[3];
    const Expr  *x, *w;
    BuildWindow  win;
    Ints         shape;

    if (!tflite_ints(n, 0, &shape) || !tflite_rank(n, 1, 5, 5) || !tflite_rank(n, 2, 5, 5) ||
        !(x = build_transpose(b, n->in[2], 5, to_first)) ||
        !(w = weights(n, (int64_t[]){4, 3, 0, 1, 2})) || !read_window(n, w, &win))
        return false;
    if (shape.n != 5 || build_dim(b, w, 0) != build_dim(b, x, 1))
        return tflite_error(n, E_IMPORT,
                            "the weight is for %lld input channels, the data have %lld",
                            (long long)build_dim(b, w, 0), (long long)build_dim(b, x, 1));
    for (uint32_t i = 0; i < 3; i++) {
        int64_t cells = build_dim(b, x, 2 + i), most = INT32_MAX;
        int64_t total = (cells - 1) * win.stride[i] + (win.kernel[i] - 1) * win.dilation[i] + 1 -
                        shape.at[1 + i];

        if (shape.at[1 + i] < 1 || total < -most || total > most)
            return tflite_error(n, E_IMPORT, "dimension %u of the result is %lld", 1 + i,
                                (long long)shape.at[1 + i]);
        extra[i] = total < 0 ? -total : 0;
        win.begin[i] = total < 0 ? 0 : total / 2;
        win.end[i] = total < 0 ? 0 : total - total / 2;
    }
    return volume_done(n, build_conv_transpose_volume(b, x, w, &win, extra, 1), 3);
}
