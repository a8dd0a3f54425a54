/* Signals: windows, bands of mel, and Fourier transforms as products with constant matrices. */
#include "frontends/onnx/onnx.h"

#include <math.h>
#include <string.h>

#define MAX_POINTS 4096

/* ---- windows: a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n) --------------------------------------- */

/* A size that the run says. */
static bool window_at_run(Node *n, DType t, double a0, double a1, double a2)
{
    const Build *b = &n->b;
    const Expr  *size = node_cells(n, 0), *span, *phase, *y;
    const Idx   *cells;

    if (!size)
        return false;
    if (!expr_single(size))
        return node_error(n, E_IMPORT, "the size is not one number");
    RunDim d = {size, 1, INT64_MAX, 0, 1};
    if (!onnx_bind(n, 0, 1, &d, &cells))
        return false;
    span = node_int(n, "periodic", 1) ? size : build2(b, "subtract", size, cell_number(b, 1), NULL);
    span = build_cast(b, build2(b, "maximum", span, cell_number(b, 1), NULL), DT_F64);
    phase = build2(b, "divide", build_by(b, "multiply", build_arange(b, cells, DT_F64), 2 * M_PI),
                   span, NULL);
    y = build_by(b, "multiply", build1(b, "cos", phase, NULL), -a1);
    if (a2 != 0)
        y = build2(
            b, "add", y,
            build_by(b, "multiply", build1(b, "cos", build_by(b, "multiply", phase, 2), NULL), a2),
            NULL);
    return node_done(n, build_cast(b, build_by(b, "add", y, a0), t));
}

static bool cosine_window(Node *n, double a0, double a1, double a2)
{
    const Build *b = &n->b;
    double      *at, span;
    Ints         size;
    DType        t;

    if (!onnx_dtype(node_int(n, "output_datatype", ONNX_FLOAT), &t))
        return node_error(n, E_UNSUPPORTED, "output_datatype");
    if (!build_fold(b, n->in[0]))
        return window_at_run(n, t, a0, a1, a2);
    if (!node_const_ints(n, 0, &size))
        return false;
    if (size.n != 1 || size.at[0] < 1 || size.at[0] > 1 << 20)
        return node_error(n, E_IMPORT, "the size is not one number in 1 .. 2^20");
    span = (double)size.at[0] - (node_int(n, "periodic", 1) ? 0 : 1);
    at = NEW_ARRAY(b->c->arena, double, (size_t)size.at[0]);
    for (int64_t i = 0; i < size.at[0]; i++) {
        double phase = span > 0 ? 2 * M_PI * (double)i / span : 0;

        dtype_put_f(t, (uint8_t *)at + i * dtype_bytes(t),
                    a0 - a1 * cos(phase) + a2 * cos(2 * phase));
    }
    return node_done(n, build_const(b, t, 1, size.at, at));
}

bool convert_hann_window(Node *n)
{
    return cosine_window(n, 0.5, 0.5, 0);
}

bool convert_hamming_window(Node *n)
{
    return cosine_window(n, 25.0 / 46, 21.0 / 46, 0);
}

bool convert_blackman_window(Node *n)
{
    return cosine_window(n, 0.42, 0.5, 0.08);
}

/* ---- mel scale: bins of a spectrum to bands of equal width in mel -------------------------------- */

static double mel_of(double hertz)
{
    return 2595 * log1p(hertz / 700) / log(10);
}

static double hertz_of(double mel)
{
    return 700 * expm1(mel / 2595 * log(10));
}

/* Band `m` of `bands` rises from its left corner to its middle, and falls to its right one: corners
 * are bins, at[row of the bin][m]. */
static bool mel_band(const int64_t corner[3], int64_t bins, int64_t bands, int64_t m, double *at)
{
    int64_t left = corner[0], middle = corner[1], right = corner[2];

    if (left < 0 || left > middle || middle > right || right > bins || middle >= bins)
        return false;
    if (left == middle)
        at[middle * bands + m] = 1;
    for (int64_t i = left; i <= middle && left < middle; i++)
        at[i * bands + m] = (double)(i - left) / (double)(middle - left);
    for (int64_t i = middle; i < right; i++)
        at[i * bands + m] = (double)(right - i) / (double)(right - middle);
    return true;
}

/* Matrix [bins, bands] of bands between two frequencies; everything is known when compiling. */
bool convert_mel_weight_matrix(Node *n)
{
    const Build *b = &n->b;
    int64_t      bands, length, rate, bins;
    double       lower, upper, step, *at;
    DType        t;

    if (!node_const_int(n, 0, &bands) || !node_const_int(n, 1, &length) ||
        !node_const_int(n, 2, &rate) || !node_const_float(n, 3, &lower) ||
        !node_const_float(n, 4, &upper))
        return false;
    if (!onnx_dtype(node_int(n, "output_datatype", ONNX_FLOAT), &t))
        return node_error(n, E_UNSUPPORTED, "output_datatype");
    bins = length / 2 + 1;
    if (bands < 1 || bands > 1 << 16 || length < 1 || length > 1 << 20 || rate < 1 ||
        bins * bands > 1 << 24 || !(lower >= 0 && lower <= upper && upper < INT32_MAX))
        return node_error(n, E_IMPORT, "%lld bands of %lld points at %lld Hz, from %g to %g Hz",
                          (long long)bands, (long long)length, (long long)rate, lower, upper);
    at = NEW_ARRAY(b->c->arena, double, (size_t)(bins * bands));
    step = (mel_of(upper) - mel_of(lower)) / (double)(bands + 2);
    for (int64_t m = 0; m < bands; m++) {
        int64_t corner[3];

        for (int i = 0; i < 3; i++)
            corner[i] =
                (int64_t)floor((double)(length + 1) *
                               hertz_of(mel_of(lower) + (double)(m + i) * step) / (double)rate);
        if (!mel_band(corner, bins, bands, m, at))
            return node_error(n, E_IMPORT, "band %lld reaches beyond the spectrum", (long long)m);
    }
    return node_done(n, build_cast(b, build_const(b, DT_F64, 2, (int64_t[]){bins, bands}, at), t));
}

/* ---- transforms ------------------------------------------------------------------------------------ */

/* The matrix [points * parts, bins * 2] that takes rows of (real, imaginary) to bins of the same:
 *     (x + iy)(c - is) = (xc + ys) + i(yc - xs) */
static const Expr *matrix(const Build *b, DType t, int64_t points, int64_t parts, int64_t bins,
                          int64_t length, bool inverse)
{
    uint32_t size = dtype_bytes(t);
    uint8_t *at = arena_array(b->c->arena, (size_t)(points * parts * bins * 2), size);

    for (int64_t i = 0; i < points; i++)
        for (int64_t k = 0; k < bins; k++) {
            double phase = 2 * M_PI * (double)(i * k % length) / (double)length;
            double s = inverse ? 1 / (double)length : 1;
            double co = cos(phase) * s, si = sin(phase) * (inverse ? -s : s);

            for (int64_t p = 0; p < parts; p++) {
                uint8_t *row = at + ((i * parts + p) * bins + k) * 2 * size;

                dtype_put_f(t, row, p ? si : co);
                dtype_put_f(t, row + size, p ? co : -si);
            }
        }
    return build_const(b, t, 2, (int64_t[]){points * parts, bins * 2}, at);
}

/* The matrix [bins * 2, length] that takes the first half of a spectrum, whose rest mirrors it,
 * back to real numbers: the bins between the first and the middle count twice. */
static const Expr *half_matrix(const Build *b, DType t, int64_t bins, int64_t length)
{
    uint32_t size = dtype_bytes(t);
    uint8_t *at = arena_array(b->c->arena, (size_t)(bins * 2 * length), size);

    for (int64_t k = 0; k < bins; k++)
        for (int64_t i = 0; i < length; i++) {
            double phase = 2 * M_PI * (double)(i * k % length) / (double)length;
            double s = (k == 0 || 2 * k == length ? 1 : 2) / (double)length;

            dtype_put_f(t, at + (2 * k * length + i) * size, s * cos(phase));
            dtype_put_f(t, at + ((2 * k + 1) * length + i) * size, -s * sin(phase));
        }
    return build_const(b, t, 2, (int64_t[]){bins * 2, length}, at);
}

/* x [rows, bins, 2] -> [rows, length, 1] */
static const Expr *back_to_real(Node *n, const Expr *x, int64_t length)
{
    const Build *b = &n->b;
    int64_t      rows = build_dim(b, x, 0), bins = build_dim(b, x, 1), most = length / 2 + 1;

    if (length < 1 || length > MAX_POINTS)
        return node_error(n, E_UNSUPPORTED, "a transform of %lld points", (long long)length);
    if (build_dim(b, x, 2) != 2)
        return node_error(n, E_IMPORT, "the last dimension of a spectrum should be 2");
    bins = bins < most ? bins : most;
    x = build_reshape(b, build_slice(b, x, 1, 0, bins), 2, (int64_t[]){rows, bins * 2});
    x = x ? onnx_matmul(n, x, half_matrix(b, expr_dtype(x), bins, length)) : NULL;
    return build_reshape(b, x, 3, (int64_t[]){rows, length, 1});
}

/* x [rows, points, parts] -> [rows, bins, 2] */
static const Expr *transform(Node *n, const Expr *x, int64_t length, bool onesided, bool inverse)
{
    const Build *b = &n->b;
    int64_t      rows = build_dim(b, x, 0), points = build_dim(b, x, 1), parts = build_dim(b, x, 2);
    int64_t      bins = onesided ? length / 2 + 1 : length;

    if (length < 1 || length > MAX_POINTS)
        return node_error(n, E_UNSUPPORTED, "a transform of %lld points", (long long)length);
    if (points > length) {
        x = build_slice(b, x, 1, 0, length);
        points = length;
    }
    x = build_reshape(b, x, 2, (int64_t[]){rows, points * parts});
    x = x ? onnx_matmul(n, x, matrix(b, expr_dtype(x), points, parts, bins, length, inverse))
          : NULL;
    return build_reshape(b, x, 3, (int64_t[]){rows, bins, 2});
}

/* x [.., points, .., 1 or 2]; the axis is moved next to the last. */
bool convert_dft(Node *n)
{
    const Build *b = &n->b;
    bool    inverse = node_int(n, "inverse", 0) != 0, onesided = node_int(n, "onesided", 0) != 0;
    int64_t axis = node_int(n, "axis", n->opset >= 20 ? -2 : 1), length, perm[MAX_RANK],
            back[MAX_RANK];
    int64_t     dims[MAX_RANK];
    const Expr *x;
    uint32_t    rank, at, k = 0;

    if (!node_need_rank(n, 0, 2, MAX_RANK))
        return false;
    x = n->in[0];
    rank = expr_rank(x);
    if (node_has(n, 2)) {
        if (!node_const_int(n, 2, &axis))
            return false;
    }
    if (!node_axis(n, axis, rank, &at))
        return false;
    if (at + 1 == rank || build_dim(b, x, rank - 1) < 1 || build_dim(b, x, rank - 1) > 2)
        return node_error(n, E_IMPORT, "the last dimension should be 1 or 2, real and imaginary");
    length = build_dim(b, x, at);
    if (inverse && onesided)
        length = 2 * (length - 1);
    if (node_has(n, 1)) {
        if (!node_const_int(n, 1, &length))
            return false;
    }
    for (uint32_t i = 0; i + 1 < rank; i++)
        if (i != at)
            perm[k++] = i;
    perm[rank - 2] = at;
    perm[rank - 1] = rank - 1;
    if (!(x = build_transpose(b, x, rank, perm)))
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        back[perm[i]] = i;
        dims[i] = build_dim(b, x, i);
    }
    if (expr_empty(x))
        return node_error(n, E_UNSUPPORTED, "an empty signal");
    x = build_reshape(b, x, 3,
                      (int64_t[]){build_elems(b, x) / dims[rank - 2] / dims[rank - 1],
                                  dims[rank - 2], dims[rank - 1]});
    if (x && inverse && onesided)
        x = back_to_real(n, x, length);
    else
        x = x ? transform(n, x, length, onesided, inverse) : NULL;
    if (!x)
        return false;
    dims[rank - 2] = build_dim(b, x, 1);
    dims[rank - 1] = build_dim(b, x, 2);
    return node_done(n, build_transpose(b, build_reshape(b, x, rank, dims), rank, back));
}

/* Frames of the signal [N, length, 1 or 2], each times the window: [N, frames, bins, 2]. */
bool convert_stft(Node *n)
{
    const Build *b = &n->b;
    bool         onesided = node_int(n, "onesided", 1) != 0;
    int64_t      step, length = 0, N, L, parts, frames, *at, rank;
    const Expr  *x, *w;

    if (!node_need_rank(n, 0, 2, 3) || !node_const_int(n, 1, &step))
        return false;
    x = n->in[0];
    rank = expr_rank(x);
    N = build_dim(b, x, 0), L = build_dim(b, x, 1), parts = rank == 3 ? build_dim(b, x, 2) : 1;
    if (node_has(n, 2)) {
        if (!node_need_rank(n, 2, 1, 1))
            return false;
        length = build_dim(b, n->in[2], 0);
    }
    if (node_has(n, 3)) {
        if (!node_const_int(n, 3, &length))
            return false;
    }
    if (step < 1 || length < 1 || length > L || length > MAX_POINTS || parts < 1 || parts > 2)
        return node_error(n, E_IMPORT, "frames of %lld, a step of %lld, a signal of %lld",
                          (long long)length, (long long)step, (long long)L);
    frames = (L - length) / step + 1;
    if (frames > (1 << 24) / length)
        return node_error(n, E_UNSUPPORTED, "%lld frames", (long long)frames);
    at = NEW_ARRAY(b->c->arena, int64_t, (size_t)(frames * length));
    for (int64_t i = 0; i < frames; i++)
        for (int64_t k = 0; k < length; k++)
            at[i * length + k] = i * step + k;
    x = build_take(b, x, build_const(b, DT_I64, 2, (int64_t[]){frames, length}, at), 1);
    x = build_reshape(b, x, 4, (int64_t[]){N, frames, length, parts});
    if (node_has(n, 2)) {
        if (build_dim(b, n->in[2], 0) != length)
            return node_error(n, E_IMPORT, "a window of %lld for frames of %lld",
                              (long long)build_dim(b, n->in[2], 0), (long long)length);
        w = build_reshape(b, n->in[2], 2, (int64_t[]){length, 1});
        x = build2(b, "multiply", x, w, NULL);
    }
    x = build_reshape(b, x, 3, (int64_t[]){N * frames, length, parts});
    if (!x || !(x = transform(n, x, length, onesided, false)))
        return false;
    return node_done(n, build_reshape(b, x, 4, (int64_t[]){N, frames, build_dim(b, x, 1), 2}));
}
