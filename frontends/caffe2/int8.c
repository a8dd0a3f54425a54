/* Tensors of bytes with a scale and a zero point, which what made them says (Y_scale,
 * Y_zero_point). An operator Int8X is qnn.dequantize of its operands, X in floats, and qnn.quantize
 * of its result, of which the passes make integers; what only moves cells takes the bytes as they
 * are.
 *
 *     Int8ConvRelu(x, w, b)     // quantize(relu(Conv(dequantize(x), dequantize(w),
 * dequantize(b))))
 *
 * Their images are NHWC, whether they say so or not. */
#include "frontends/caffe2/caffe2.h"

#include <math.h>
#include <string.h>

/* ---- from bytes to numbers and back ----------------------------------------------------------------- */

static bool read_scale(C2Node *n, C2Scale *out)
{
    out->scale = c2_float(n, "Y_scale", 1);
    out->zero = c2_int(n, "Y_zero_point", 0);
    if (!(out->scale > 0 && out->scale < 1e30))
        return c2_error(n, E_IMPORT, "a scale of %g", out->scale);
    if (out->zero < 0 || out->zero > 255)
        return c2_error(n, E_IMPORT, "a zero point of %lld", (long long)out->zero);
    return true;
}

/* The sums that a bias is added to are in steps of the product of both scales, whatever its own
 * says. */
static const Expr *dequantized(C2Node *n, uint32_t i)
{
    const Build     *b = &n->b;
    const C2Scale   *s = n->scales[i];
    DequantizeAttrs *a = ATTRS(b, DequantizeAttrs);
    DType            t = expr_dtype(n->in[i]);
    bool             bias = dtype_eq(t, DT_I32) && i == 2 && c2_role(n->row, 2) == 'w';
    double           scale = bias ? n->scales[0]->scale * n->scales[1]->scale : s->scale;

    a->axis = -1;
    return build3(b, "qnn.dequantize", n->in[i], expr_scalar(b->c, DT_F32, scale),
                  expr_scalar(b->c, t, dtype_eq(t, DT_I32) ? 0 : (double)s->zero), a);
}

static bool quantize(C2Node *n, const Expr *y)
{
    const Build   *b = &n->b;
    QuantizeAttrs *a = ATTRS(b, QuantizeAttrs);

    a->out_dtype = DT_U8;
    a->axis = -1;
    n->gives = NEW(b->c->arena, C2Scale);
    return y && read_scale(n, n->gives) &&
           c2_done(n, build3(b, "qnn.quantize", y, expr_scalar(b->c, DT_F32, n->gives->scale),
                             expr_scalar(b->c, DT_U8, (double)n->gives->zero), a));
}

bool c2_int8_quantize(C2Node *n)
{
    return quantize(n, n->in[0]);
}

bool c2_int8_dequantize(C2Node *n)
{
    return c2_done(n, dequantized(n, 0));
}

/* ---- operators -------------------------------------------------------------------------------------- */

/* The operator in floats: "Int8Conv" is "Conv", "Int8ConvRelu" is, too. */
static bool begin(C2Node *n, size_t ending, C2Node *of)
{
    const char *name = n->row->name + strlen("Int8");

    if (strcmp(c2_text(n, "order", "NHWC"), "NHWC"))
        return c2_error(n, E_UNSUPPORTED, "order is '%s', of bytes 'NHWC'",
                        c2_text(n, "order", ""));
    *of = *n;
    of->row = c2_row(intern_n(n->b.c->strings, name, strlen(name) - ending));
    of->order = "NHWC";
    return true;
}

static bool in_floats(C2Node *n, const char *relu)
{
    C2Node of;

    if (!begin(n, strlen(relu), &of))
        return false;
    of.in = NEW_ARRAY(n->b.c->arena, const Expr *, n->nin + 1);
    for (uint32_t i = 0; i < n->nin; i++)
        if (!(of.in[i] = dequantized(n, i)))
            return false;
    return of.row->convert(&of) &&
           quantize(n, *relu ? build1(&n->b, "nn.relu", n->out[0], NULL) : n->out[0]);
}

bool c2_int8(C2Node *n)
{
    return in_floats(n, "");
}

bool c2_int8_relu(C2Node *n)
{
    return in_floats(n, "Relu");
}

/* What moves cells: all operands and the result are of one scale. */
bool c2_int8_moves(C2Node *n)
{
    const C2Scale *first = n->scales[0];
    C2Scale        said;
    C2Node         of;

    if (!read_scale(n, &said) || !begin(n, 0, &of))
        return false;
    for (uint32_t i = 1; i < n->nin; i++)
        if (n->scales[i]->scale != first->scale || n->scales[i]->zero != first->zero)
            return c2_error(n, E_UNSUPPORTED, "operands of scales %g and %g", first->scale,
                            n->scales[i]->scale);
    if ((c2_has(n, "Y_scale") && said.scale != first->scale) ||
        (c2_has(n, "Y_zero_point") && said.zero != first->zero))
        return c2_error(n, E_UNSUPPORTED,
                        "a result of scale %g, zero point %lld of cells of %g, %lld", said.scale,
                        (long long)said.zero, first->scale, (long long)first->zero);
    n->gives = NEW(n->b.c->arena, C2Scale);
    *n->gives = *first;
    return of.row->convert(&of);
}

/* ---- values ----------------------------------------------------------------------------------------- */

/* Bytes as text, or whole numbers. */
bool c2_int8_given(C2Node *n)
{
    const Build *b = &n->b;
    const C2Arg *a = c2_arg_of(n->op, "values");
    bool         bytes = !strcmp(n->row->name, "Int8GivenTensorFill");
    int64_t      cells, have = !a ? 0 : bytes ? (int64_t)a->s.n : a->ints.n;
    int32_t     *at;
    Ints         shape;

    n->gives = NEW(b->c->arena, C2Scale);
    if (!read_scale(n, n->gives) || !c2_shape(n, &shape, &cells))
        return false;
    if (have != cells)
        return c2_error(n, E_IMPORT, "%lld values for %lld cells", (long long)have,
                        (long long)cells);
    if (bytes)
        return c2_done(n, build_const(b, DT_U8, shape.n, shape.at, cells ? a->s.at : NULL));
    at = arena_array(b->c->arena, (size_t)cells + 1, sizeof *at);
    for (int64_t i = 0; i < cells; i++) {
        if (a->ints.at[i] < INT32_MIN || a->ints.at[i] > INT32_MAX)
            return c2_error(n, E_IMPORT, "cell %lld is %lld", (long long)i,
                            (long long)a->ints.at[i]);
        at[i] = (int32_t)a->ints.at[i];
    }
    return c2_done(n, build_const(b, DT_I32, shape.n, shape.at, at));
}
