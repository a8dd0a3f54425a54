/* Signals: windows and bands of mel.  Sizes and frequencies are constants, or what the run says. */
#include "frontends/onnx/onnx.h"

#include <math.h>

/* ---- windows: a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n) --------------------------------------- */

static bool cosine_window(Node *n, double a0, double a1, double a2)
{
    const Build *b = &n->b;
    const Expr  *size = node_cells(n, 0), *span, *phase, *y;
    const Idx   *cells;
    DType        t;

    if (!onnx_dtype(node_int(n, "output_datatype", ONNX_FLOAT), &t))
        return node_error(n, E_UNSUPPORTED, "output_datatype");
    if (!size || !expr_single(size))
        return size && node_error(n, E_IMPORT, "the size is not one number");
    RunDim d = {size, 1, NULL, 0, 1};
    if (!onnx_bind(n, 0, 1, &d, &cells))
        return false;
    span = node_int(n, "periodic", 1) ? size : build_sub(b, size, cell_number(b, 1));
    span = build_cast(b, build2(b, "maximum", span, cell_number(b, 1), NULL), DT_F64);
    phase = build_div(b, build_by(b, "multiply", build_arange(b, cells, DT_F64), 2 * M_PI), span);
    y = build_by(b, "multiply", build1(b, "cos", phase, NULL), -a1);
    if (a2 != 0) {
        phase = build1(b, "cos", build_by(b, "multiply", phase, 2), NULL);
        y = build_add(b, y, build_by(b, "multiply", phase, a2));
    }
    return node_done(n, build_cast(b, build_by(b, "add", y, a0), t));
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

/* 2595 log10(1 + hertz / 700) */
static const Expr *mel_of(const Build *b, const Expr *hertz)
{
    const Expr *x = build_by(b, "add", build_by(b, "divide", hertz, 700), 1);

    return build_by(b, "multiply", build1(b, "log", x, NULL), 2595 / log(10));
}

static const Expr *hertz_of(const Build *b, const Expr *mel)
{
    const Expr *x = build1(b, "exp", build_by(b, "divide", mel, 2595 / log(10)), NULL);

    return build_by(b, "multiply", build_by(b, "subtract", x, 1), 700);
}

/* Input i, one number. */
static const Expr *number_of(Node *n, uint32_t i, DType t)
{
    int64_t one = 1;

    if (!node_need_rank(n, i, 0, 1))
        return NULL;
    if (!expr_single(n->in[i]))
        return node_error(n, E_IMPORT, "input %u ('%s') should be one number", i,
                          n->p->input.at[i]);
    return build_cast(&n->b, build_reshape(&n->b, n->in[i], 1, &one), t);
}

/* Matrix [bins, bands]: a band rises from its left corner to its middle, and falls to its right
 * one. Corners are bins, equally far apart in mel. */
bool convert_mel_weight_matrix(Node *n)
{
    const Build *b = &n->b;
    const Expr  *bands = number_of(n, 0, DT_I64), *length = number_of(n, 1, DT_I64),
               *rate = number_of(n, 2, DT_F64), *lower = number_of(n, 3, DT_F64),
               *upper = number_of(n, 4, DT_F64), *step, *bin, *corner[3], *up, *down, *y;
    const Expr *zero = build_f64(b, 0), *one = build_f64(b, 1);
    const Idx  *dims[2];
    DType       t;

    if (!bands || !length || !rate || !lower || !upper)
        return false;
    if (!onnx_dtype(node_int(n, "output_datatype", ONNX_FLOAT), &t))
        return node_error(n, E_UNSUPPORTED, "output_datatype");
    bin = build2(b, "floor_divide", length, cell_number(b, 2), NULL);
    RunDim d[2] = {{build_add(b, bin, cell_number(b, 1)), 1, NULL, 0, 1}, {bands, 1, NULL, 1, 1}};
    if (!onnx_bind(n, 0, 2, d, dims))
        return false;
    lower = mel_of(b, lower);
    step = build_by(b, "add", build_cast(b, bands, DT_F64), 2);
    step = build_div(b, build_sub(b, mel_of(b, upper), lower), step);
    length = build_by(b, "add", build_cast(b, length, DT_F64), 1);
    for (int i = 0; i < 3; i++) {
        const Expr *at = build_by(b, "add", build_arange(b, dims[1], DT_F64), i);

        at = hertz_of(b, build_add(b, lower, build_mul(b, at, step)));
        corner[i] = build1(b, "floor", build_div(b, build_mul(b, length, at), rate), NULL);
    }
    bin = build_reduce(b, "max", corner[2], 1, (int64_t[]){0}, true);
    bin = build2(b, "maximum", build_sub(b, bin, cell_f64(b, dims[0])), zero, NULL);
    if (!onnx_require(n, build_cast(b, build1(b, "ceil", bin, NULL), DT_I64),
                      "a band reaches beyond the spectrum"))
        return false;
    bin = build_along(b, build_arange(b, dims[0], DT_F64), 2, 0);
    up = build_div(b, build_sub(b, bin, corner[0]),
                   build2(b, "maximum", build_sub(b, corner[1], corner[0]), one, NULL));
    down = build_div(b, build_sub(b, corner[2], bin),
                     build2(b, "maximum", build_sub(b, corner[2], corner[1]), one, NULL));
    y = build_where(b, build_less(b, bin, corner[2]), down, zero);
    y = build_where(b, build_less(b, bin, corner[1]), build2(b, "maximum", up, zero, NULL), y);
    /* The middle counts even if both sides are empty. */
    y = build_where(b, build2(b, "equal", bin, corner[1], NULL), one, y);
    return node_done(n, build_cast(b, y, t));
}
