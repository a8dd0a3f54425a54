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
    const Expr **in = DUP_ARRAY(c->arena, n->in, n->nin + 1), *pair[2];
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

static bool read_pair(TfliteNode *n, const Expr **re, const Expr **im)
{
    if (!tflite_is_complex(n->in[0]))
        return tflite_error(n, E_IMPORT, "its input is no complex number");
    *re = build_proj(&n->b, n->in[0], 0);
    *im = build_proj(&n->b, n->in[0], 1);
    return *re && *im;
}

bool tflite_real(TfliteNode *n)
{
    const Expr *re, *im;

    return read_pair(n, &re, &im) && tflite_done(n, re);
}

bool tflite_imag(TfliteNode *n)
{
    const Expr *re, *im;

    return read_pair(n, &re, &im) && tflite_done(n, im);
}

bool tflite_complex_abs(TfliteNode *n)
{
    const Build *b = &n->b;
    const Expr  *re, *im;

    return read_pair(n, &re, &im) &&
           tflite_done(n, build1(b, "sqrt",
                                 build_add(b, build_mul(b, re, re), build_mul(b, im, im)), NULL));
}

/* ---- transforms ----------------------------------------------------------------------------------- */

static const Expr *last_two_swapped(const Build *b, const Expr *x)
{
    int64_t  axes[MAX_RANK];
    uint32_t rank;

    if (!x)
        return NULL;
    rank = expr_rank(x);
    for (uint32_t i = 0; i < rank; i++)
        axes[i] = i;
    axes[rank - 1] = rank - 2, axes[rank - 2] = rank - 1;
    return build_transpose(b, x, rank, axes);
}

/* Images [.., H, W] to the first half of the spectrum of their rows, that of their columns. */
bool tflite_rfft2d(TfliteNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *pair[2];
    BuildFourier rows = {0}, columns = {0};
    Ints         length;

    if (!tflite_rank(n, 0, 2, MAX_RANK) || !tflite_ints(n, 1, &length))
        return false;
    if (length.n != 2)
        return tflite_error(n, E_IMPORT, "input 1 has %u numbers, not 2", length.n);
    rows.length = length.at[1];
    rows.bins = rows.length / 2 + 1;
    columns.length = columns.bins = length.at[0];
    if (!build_fourier(b, &rows, x, NULL, pair))
        return false;
    for (uint32_t i = 0; i < 2; i++)
        pair[i] = last_two_swapped(b, pair[i]);
    if (!pair[0] || !pair[1] || !build_fourier(b, &columns, pair[0], pair[1], pair))
        return false;
    for (uint32_t i = 0; i < 2; i++)
        if (!(pair[i] = last_two_swapped(b, pair[i])))
            return false;
    return tflite_done(n, expr_tuple(b->c, 2, pair, b->loc));
}
