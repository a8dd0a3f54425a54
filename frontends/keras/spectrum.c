/* STFTSpectrogram and MelSpectrogram: frames of a signal by frequency, as a convolution with
 * windowed cosines and sines.
 *
 *     x [N, T, C], kernels [frame, 1, F]  ->  [N, t, C * F], or with expand_dims [N, t, F, C]
 *     x [N, T]  ->  [N, mel, t] */
#include "frontends/keras/keras.h"

#include <math.h>
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

/* ---- mel ---------------------------------------------------------------------------------------------- */

#define MOST_POINTS 4096

typedef struct {
    int64_t points, frame, step, bins, bands, rate;
    double  low, high;
    bool    hann;
} Mel;

static double mel_of(double hertz)
{
    return 1127 * log(1 + hertz / 700);
}

/* [2 * bins, 1, points]: cosines, then sines, within the window, which stands in the middle. */
static const Expr *waves(const Build *b, const Mel *m)
{
    int64_t dims[] = {2 * m->bins, 1, m->points}, before = (m->points - m->frame) / 2,
            period = m->frame - m->frame % 2;
    float *at = NEW_ARRAY(b->c->arena, float, (size_t)(dims[0] * dims[2]));

    memset(at, 0, (size_t)(dims[0] * dims[2]) * sizeof *at);
    for (int64_t k = 0; k < m->bins; k++)
        for (int64_t i = 0; i < m->frame; i++) {
            double phase = 2 * M_PI * (double)((i + before) * k % m->points) / (double)m->points;
            double turn = cos(2 * M_PI * (double)i / (double)period);
            double window = m->hann ? 0.5 - 0.5 * turn : 0.54 - 0.46 * turn;

            at[k * m->points + before + i] = (float)(cos(phase) * window);
            at[(m->bins + k) * m->points + before + i] = (float)(-sin(phase) * window);
        }
    return build_const(b, DT_F32, 3, dims, at);
}

/* [bands, bins, 1]: triangles of equal width in mel; the lowest bin is in none. */
static const Expr *triangles(const Build *b, const Mel *m)
{
    int64_t dims[] = {m->bands, m->bins, 1};
    double  low = mel_of(m->low), width = (mel_of(m->high) - low) / (double)(m->bands + 1);
    float  *at = NEW_ARRAY(b->c->arena, float, (size_t)(dims[0] * dims[1]));

    for (int64_t j = 0; j < m->bands; j++)
        for (int64_t k = 0; k < m->bins; k++) {
            double hertz = (double)m->rate / 2 * (double)k / (double)(m->bins - 1);
            double x = (mel_of(hertz) - low) / width - (double)j; /* 1: the middle of the band */

            at[j * m->bins + k] = k ? (float)fmax(0, fmin(x, 2 - x)) : 0;
        }
    return build_const(b, DT_F32, 3, dims, at);
}

static bool read_mel(KerasNode *n, Mel *m)
{
    const char *window = keras_text(n, "window", "");

    *m = (Mel){.points = keras_int(n, "fft_length", 2048),
               .step = keras_int(n, "sequence_stride", 512),
               .bands = keras_int(n, "num_mel_bins", 128),
               .rate = keras_int(n, "sampling_rate", 16000),
               .low = keras_float(n, "min_freq", 20),
               .hann = !strcmp(window, "hann")};
    m->frame = keras_int(n, "sequence_length", m->points);
    m->high = keras_float(n, "max_freq", (double)(m->rate / 2));
    m->bins = m->points / 2 + 1;
    if (!m->hann && strcmp(window, "hamming") != 0)
        return keras_error(n, E_UNSUPPORTED, "window '%s'", window);
    if (m->points < 2 || m->points > MOST_POINTS || m->frame < 2 || m->frame > m->points ||
        m->step < 1 || m->step > INT32_MAX || m->bands < 1 || m->bands > MOST_POINTS ||
        m->rate < 1 || !(m->low >= 0 && m->high > m->low))
        return keras_error(
            n, E_UNSUPPORTED, "%lld bands from %g to %g Hz of %lld points, %lld apart",
            (long long)m->bands, m->low, m->high, (long long)m->points, (long long)m->step);
    return true;
}

static const Expr *log10_of(const Build *b, const Expr *x, double least)
{
    x = x ? build_by(b, "maximum", x, least) : NULL;
    return x ? build_by(b, "multiply", build1(b, "log", x, NULL), 10 / log(10)) : NULL;
}

/* Ten times the logarithm by that of the reference, and no less than top_db below the largest. */
static const Expr *decibels(KerasNode *n, const Expr *x)
{
    static const int64_t all[] = {0, 1, 2};
    const Build         *b = &n->b;
    double      least = keras_float(n, "min_power", 1e-10), by = keras_float(n, "ref_power", 1);
    const Expr *most;

    if (!(least > 0))
        return keras_error(n, E_UNSUPPORTED, "min_power %g", least);
    x = log10_of(b, x, least);
    x = x ? build_by(b, "subtract", x, 10 * log10(fmax(fabs(by), least))) : NULL;
    most = x ? build_reduce(b, "max", x, 3, all, true) : NULL;
    most = most ? build_by(b, "subtract", most, keras_float(n, "top_db", 80)) : NULL;
    return build2(b, "maximum", x, most, NULL);
}

bool keras_mel_spectrogram(KerasNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = keras_in(n), *re, *im;
    KerasWindow  frames = {.dims = 1}, each = {.dims = 1};
    double       power = keras_float(n, "mag_exp", 2);
    Mel          m;

    if (!x || !keras_rank(n, x, 2, 2) || !read_mel(n, &m))
        return false;
    x = build_expand_dims(b, build_cast(b, x, DT_F32), 1, 1);
    x = build_pad(b, x, (int64_t[]){0, 0, 0, 0, m.points / 2, m.points / 2}, 0, "reflect");
    frames.at = (BuildWindow){.kernel = {m.points}, .stride = {m.step}, .dilation = {1}};
    each.at = (BuildWindow){.kernel = {1}, .stride = {1}, .dilation = {1}};
    x = keras_conv(n, x, waves(b, &m), &frames, 1);
    re = build_slice(b, x, 1, 0, m.bins);
    im = build_slice(b, x, 1, m.bins, 2 * m.bins);
    x = build_add(b, build_mul(b, re, re), build_mul(b, im, im));
    if (power != 2)
        x = build_by(b, "power", build1(b, "sqrt", x, NULL), power);
    x = keras_conv(n, x, triangles(b, &m), &each, 1);
    if (keras_bool(n, "power_to_db", true))
        x = decibels(n, x);
    return keras_done(n, build_cast(b, x, n->dtype));
}
