/* Fourier transforms (frontends/fourier.c). */
#include "frontends/tvm/tvm.h"

#include <math.h>

/* Real and imaginary parts, along the last dimension. */
const Expr *tv_dft(TvNode *n)
{
    const Build *b = &n->b;
    uint32_t     rank = expr_rank(n->in[0]);
    BuildComplex x = {n->in[0], n->in[1]};
    BuildFourier f = {.inverse = tv_bool(n, "inverse", false)};

    if (rank < 1 || n->in[0]->type != n->in[1]->type || !dtype_is_float(expr_dtype(n->in[0])))
        return tv_error(n, E_IMPORT, "%s and %s", type_text(b->c, n->in[0]->type),
                        type_text(b->c, n->in[1]->type));
    f.length = f.bins = build_dim(b, n->in[0], rank - 1);
    return build_fourier(b, &f, rank - 1, &x)
               ? expr_tuple(b->c, 2, (const Expr *[]){x.re, x.im}, b->loc)
               : NULL;
}

/* A signal [N, length], of whose frames each is multiplied with the window: [N, bins, frames, 2].
 */
const Expr *tv_stft(TvNode *n)
{
    const Build *b = &n->b;
    int64_t      points = tv_int(n, "n_fft", 0), hop = tv_int(n, "hop_length", 0), *at, frames,
            width = tv_int(n, "win_length", points), order[] = {0, 2, 1};
    BuildFourier f = {.length = points};
    BuildComplex x = {NULL, NULL};

    if (expr_rank(n->in[0]) != 2 || expr_rank(n->in[1]) != 1 || hop < 1 || points < 1 ||
        points > BUILD_FOURIER_MOST || build_dim(b, n->in[0], 1) < points ||
        build_dim(b, n->in[1], 0) != width)
        return tv_error(n, E_IMPORT, "frames of %lld every %lld of %s, a window of %s",
                        (long long)points, (long long)hop, type_text(b->c, n->in[0]->type),
                        type_text(b->c, n->in[1]->type));
    if (width != points)
        return tv_error(n, E_UNSUPPORTED, "'win_length' is %lld, and 'n_fft' %lld",
                        (long long)width, (long long)points);
    frames = (build_dim(b, n->in[0], 1) - points) / hop + 1;
    f.bins = tv_bool(n, "onesided", true) ? points / 2 + 1 : points;
    if (frames > INT32_MAX / points)
        return tv_error(n, E_UNSUPPORTED, "%lld frames", (long long)frames);
    at = arena_array(b->c->arena, (size_t)(frames * points), sizeof *at);
    for (int64_t i = 0; i < frames * points; i++)
        at[i] = i / points * hop + i % points;
    x.re = build_take(b, n->in[0], build_const(b, DT_I64, 2, (int64_t[]){frames, points}, at), 1);
    x.re = build_mul(b, x.re, n->in[1]);
    if (x.re && tv_bool(n, "normalized", false))
        x.re = build_by(b, "multiply", x.re, 1 / sqrt((double)points));
    if (!x.re || !build_fourier(b, &f, 2, &x))
        return NULL;
    x.re = build_transpose(b, x.re, 3, order);
    x.im = build_transpose(b, x.im, 3, order);
    return build_complex_pairs(b, x);
}
