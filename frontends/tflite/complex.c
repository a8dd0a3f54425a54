/* Complex numbers, which are pairs of real and imaginary parts, (re, im).
 *
 * What makes them is RFFT2D, a transform of each row, and of each column then
 * (frontends/fourier.c).  What only moves cells moves both parts (tflite_parts). */
#include "frontends/tflite/tflite.h"

#include <string.h>

bool tflite_is_complex(const Expr *x)
{
    return x && x->type->kind == TYPE_TUPLE && x->type->n == 2;
}

bool tflite_parts(TfliteNode *n, TfliteConvert *convert)
{
    Ctx         *c = n->b.c;
    const Expr **in = DUP_ARRAY(c->arena, n->in, n->nin), *pair[2];
    const Expr **first = NEW_ARRAY(c->arena, const Expr *, n->nout + 1);

    for (uint32_t part = 0; part < 2; part++) {
        for (uint32_t i = 0; i < n->nin; i++)
            n->in[i] = tflite_is_complex(in[i]) ? build_proj(&n->b, in[i], part) : in[i];
        n->moved = false;
        if (!convert(n))
            return false;
        if (part == 0)
            memcpy(first, n->out, n->nout * sizeof *first);
    }
    for (uint32_t i = 0; i < n->nout; i++) {
        pair[0] = first[i], pair[1] = n->out[i];
        if (!(n->out[i] = expr_tuple(c, 2, pair, n->b.loc)))
            return false;
    }
    return true;
}

/* ---- parts ---------------------------------------------------------------------------------------- */

static bool read_pair(TfliteNode *n, BuildComplex *x)
{
    if (!tflite_is_complex(n->in[0]))
        return tflite_error(n, E_IMPORT, "its input is no complex number");
    x->re = build_proj(&n->b, n->in[0], 0);
    x->im = build_proj(&n->b, n->in[0], 1);
    return x->re && x->im;
}

bool tflite_real(TfliteNode *n)
{
    BuildComplex x;

    return read_pair(n, &x) && tflite_done(n, x.re);
}

bool tflite_imag(TfliteNode *n)
{
    BuildComplex x;

    return read_pair(n, &x) && tflite_done(n, x.im);
}

bool tflite_complex_abs(TfliteNode *n)
{
    BuildComplex x;

    return read_pair(n, &x) && tflite_done(n, build_complex_abs(&n->b, x));
}

/* ---- transforms ----------------------------------------------------------------------------------- */

/* Images [.., H, W] to the first half of the spectrum of their rows, that of their columns. */
bool tflite_rfft2d(TfliteNode *n)
{
    const Build *b = &n->b;
    BuildFourier f[2] = {0};
    BuildComplex x;
    Ints         length;

    if (!tflite_rank(n, 0, 2, MAX_RANK) || !tflite_ints(n, 1, &length))
        return false;
    if (length.n != 2)
        return tflite_error(n, E_IMPORT, "input 1 has %u numbers, not 2", length.n);
    f[0].length = f[0].bins = length.at[0];
    f[1].length = length.at[1];
    f[1].bins = length.at[1] / 2 + 1;
    x = (BuildComplex){n->in[0], NULL};
    return build_fouriers(b, 2, f, &x) &&
           tflite_done(n, expr_tuple(b->c, 2, (const Expr *[]){x.re, x.im}, b->loc));
}
