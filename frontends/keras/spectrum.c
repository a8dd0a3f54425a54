/* STFTSpectrogram: frames of a signal by frequency, as a convolution with windowed cosines and
 * sines.
 *
 *     x [N, T, C], kernels [frame, 1, F]  ->  [N, t, C * F], or with expand_dims [N, t, F, C] */
#include "frontends/keras/keras.h"

#include <string.h>

#define EPSILON 1e-7 /* keras.backend.epsilon() */

/* [N * C, F, t] of x [N, C, T] in one channel. */
static const Expr *part(KerasNode *n, const Expr *x, const char *name)
{
    static const int64_t turned[] = {2, 1, 0};
    const Build         *b = &n->b;
    Arith               *A = b->c->arith;
    const Expr          *w = keras_weight_moved(n, name, 3, turned);
    int64_t              frame = keras_int(n, "frame_length", 0), step;
    KerasWindow          win = {.dims = 1, .at = {.dilation = {1}}};
    const Idx           *dims[3] = {idx_mul(A, expr_form(x, 0), expr_form(x, 1)), idx_const(A, 1),
                                    expr_form(x, 2)};

    step = keras_json(n, "frame_step") ? keras_int(n, "frame_step", 0) : frame / 2;
    if (!w || step < 1 || step > INT32_MAX || build_dim(b, w, 1) != 1)
        return w ? keras_error(n, E_IMPORT, "a step of %lld, its kernel is %s", (long long)step,
                               type_text(b->c, w->type))
                 : NULL;
    win.at.kernel[0] = build_dim(b, w, 2);
    win.at.stride[0] = step;
    x = build_reshape_to(b, x, 3, dims);
    return x && keras_padding(n, x, keras_text(n, "padding", "valid"), &win)
               ? keras_conv(n, x, w, &win, 1)
               : NULL;
}

/* Of real and imaginary parts, NULL where the mode does not need one. */
static const Expr *combined(KerasNode *n, const char *mode, const Expr *re, const Expr *im)
{
    const Build *b = &n->b;
    const Expr  *power;
    int64_t      last;

    if (!re || !im)
        return re ? re : im;
    if (!strcmp(mode, "angle"))
        return build_atan2(b, im, re);
    if (!strcmp(mode, "stft"))
        return build_concat(b, 2, (const Expr *[]){re, im}, 1);
    power = build_add(b, build_mul(b, re, re), build_mul(b, im, im));
    if (!power)
        return NULL;
    last = build_dim(b, power, 1) - 1;
    if (!strcmp(mode, "psd"))
        return last < 1 ? power
                        : build_add(b, power,
                                    build_pad(b, build_slice(b, power, 1, 1, last),
                                              (int64_t[]){0, 0, 1, 1, 0, 0}, 0, NULL));
    power = build1(b, "sqrt", build_by(b, "maximum", power, EPSILON), NULL);
    if (!strcmp(mode, "magnitude"))
        return power;
    if (strcmp(mode, "log") != 0)
        return keras_error(n, E_UNSUPPORTED, "mode '%s'", mode);
    return power ? build1(b, "log", build_by(b, "maximum", power, EPSILON), NULL) : NULL;
}

bool keras_stft_spectrogram(KerasNode *n)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    const Expr  *x = keras_in(n), *re = NULL, *im = NULL, *y;
    const char  *mode = keras_text(n, "mode", "log");
    bool         first = keras_channels_first(n), apart = keras_bool(n, "expand_dims", false);
    const Idx   *dims[4];

    if (!x || !keras_rank(n, x, 3, 3))
        return false;
    x = build_cast(b, x, n->dtype);
    if (!first)
        x = build_transpose(b, x, 3, (int64_t[]){0, 2, 1});
    if (!x || (strcmp(mode, "imag") && !(re = part(n, x, "real_kernel"))) ||
        (strcmp(mode, "real") && !(im = part(n, x, "imag_kernel"))) ||
        !(y = combined(n, mode, re, im)))
        return false;
    dims[0] = expr_form(x, 0);
    dims[1] = expr_form(x, 1);
    dims[2] = expr_form(y, 1);
    dims[3] = expr_form(y, 2);
    if (apart) /* [N, C, F, t] */
        return keras_done(
            n, build_transpose(b, build_reshape_to(b, y, 4, dims), 4,
                               first ? (int64_t[]){0, 1, 3, 2} : (int64_t[]){0, 3, 2, 1}));
    dims[1] = idx_mul(A, dims[1], dims[2]);
    dims[2] = dims[3];
    y = build_reshape_to(b, y, 3, dims);
    return keras_done(n, first ? y : build_transpose(b, y, 3, (int64_t[]){0, 2, 1}));
}
