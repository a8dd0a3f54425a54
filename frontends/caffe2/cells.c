/* Cell by cell. */
#include "frontends/caffe2/caffe2.h"

#include <string.h>

bool c2_same(C2Node *n)
{
    return c2_done(n, n->in[0]);
}

bool c2_dropout(C2Node *n)
{
    if (!c2_int(n, "is_test", 0))
        return c2_error(n, E_UNSUPPORTED, "is_test=0, which makes results random");
    return c2_done(n, n->in[0]);
}

bool c2_unary(C2Node *n)
{
    return c2_done(n, build1(&n->b, n->row->relay, n->in[0], NULL));
}

bool c2_sqr(C2Node *n)
{
    return c2_done(n, build_mul(&n->b, n->in[0], n->in[0]));
}

bool c2_softplus(C2Node *n)
{
    return c2_done(n, build_softplus(&n->b, n->in[0]));
}

bool c2_softsign(C2Node *n)
{
    return c2_done(n, build_softsign(&n->b, n->in[0]));
}

bool c2_swish(C2Node *n)
{
    return c2_done(n, build_swish(&n->b, n->in[0], 1));
}

bool c2_gelu(C2Node *n)
{
    return c2_done(n, build_gelu(&n->b, n->in[0], c2_int(n, "fast_gelu", 0)));
}

bool c2_elu(C2Node *n)
{
    return c2_done(n, build_elu(&n->b, n->in[0], c2_float(n, "alpha", 1), 1));
}

bool c2_selu(C2Node *n)
{
    return c2_done(n, build_selu(&n->b, n->in[0], c2_float(n, "alpha", 1.6732632423543772848),
                                 c2_float(n, "scale", 1.0507009873554804934)));
}

bool c2_leaky_relu(C2Node *n)
{
    LeakyReluAttrs *a = ATTRS(&n->b, LeakyReluAttrs);

    a->alpha = c2_float(n, "alpha", 0.01);
    return c2_done(n, build1(&n->b, n->row->relay, n->in[0], a));
}

bool c2_hard_sigmoid(C2Node *n)
{
    return c2_done(n, build_hard_sigmoid(&n->b, n->in[0], c2_float(n, "alpha", 0.2),
                                         c2_float(n, "beta", 0.5)));
}

/* One slope for all, or one for each channel. */
bool c2_prelu(C2Node *n)
{
    const Build  *b = &n->b;
    BiasAddAttrs *a = ATTRS(b, BiasAddAttrs);
    const Expr   *x = c2_image(n, 0, 1, MAX_RANK), *slope = n->in[1];

    if (!x || !c2_rank(n, 1, 1, 1))
        return false;
    if (expr_rank(x) == 1 || expr_form(slope, 0) != expr_form(x, 1))
        return c2_image_done(n, build_if_negative(b, x, build_mul(b, x, slope)));
    a->axis = 1;
    return c2_image_done(n, build2(b, "nn.prelu", x, slope, a));
}

bool c2_clip(C2Node *n)
{
    const double most = 3.40282346638528860e38;

    return c2_done(
        n, build_clip(&n->b, n->in[0], c2_float(n, "min", -most), c2_float(n, "max", most)));
}

bool c2_scale(C2Node *n)
{
    return c2_done(n, build_by(&n->b, "multiply", n->in[0], c2_float(n, "scale", 1)));
}

/* By the numbers of TensorProto, or by their names. */
bool c2_cast(C2Node *n)
{
    static const struct {
        int64_t     number;
        const char *name;
        DType       type;
    } types[] = {{1, "float", DT_F32},  {2, "int32", DT_I32},  {5, "bool", DT_BOOL},
                 {6, "uint8", DT_U8},   {7, "int8", DT_I8},    {8, "uint16", DT_U16},
                 {9, "int16", DT_I16},  {10, "int64", DT_I64}, {12, "float16", DT_F16},
                 {13, "double", DT_F64}};
    const C2Arg *to = c2_arg_of(n->op, "to");
    const char  *name = to && to->has_s ? c2_text(n, "to", "") : "";
    int64_t      number = to && !to->has_s ? c2_int(n, "to", 0) : 0;

    for (uint32_t i = 0; i < COUNT(types); i++)
        if (number == types[i].number || !strcasecmp(name, types[i].name))
            return c2_done(n, build_cast(&n->b, n->in[0], types[i].type));
    return to && to->has_s ? c2_error(n, E_UNSUPPORTED, "to='%s'", name)
                           : c2_error(n, E_UNSUPPORTED, "to=%lld", (long long)number);
}

/* ---- several operands ------------------------------------------------------------------------------- */

/* broadcast=1: the second operand lies along the first one's dimensions from `axis` on, else the
 * last ones. */
static bool align(C2Node *n)
{
    const Build *b = &n->b;
    const char  *letter = c2_text(n, "axis_str", ""), *order = c2_text(n, "order", "NCHW"), *at;
    uint32_t     x = expr_rank(n->in[0]), y = expr_rank(n->in[1]), axis;
    int64_t      from = c2_int(n, "axis", -1);

    if (*letter) {
        if (letter[1] || !(at = strchr(order, *letter)))
            return c2_error(n, E_IMPORT, "axis_str is '%s'", letter);
        from = at - order;
    }
    if (!c2_int(n, "broadcast", 0) || from < 0)
        return true;
    if (!c2_axis(n, from, x, &axis))
        return false;
    if (axis + y > x)
        return c2_error(n, E_IMPORT, "%u dimensions from %u on of %u", y, axis, x);
    if (axis + y < x)
        n->in[1] = build_expand_dims(b, n->in[1], y, x - axis - y);
    return n->in[1] != NULL;
}

bool c2_binary(C2Node *n)
{
    return align(n) && c2_done(n, build2(&n->b, n->row->relay, n->in[0], n->in[1], NULL));
}

bool c2_pow(C2Node *n)
{
    if (n->nin > 1)
        return c2_binary(n);
    if (!c2_has(n, "exponent"))
        return c2_error(n, E_IMPORT, "it has no exponent");
    return c2_done(n, build_by(&n->b, "power", n->in[0], c2_float(n, "exponent", 1)));
}

bool c2_many(C2Node *n)
{
    const Expr *y = n->in[0];

    for (uint32_t i = 1; i < n->nin; i++)
        y = build2(&n->b, n->row->relay, y, n->in[i], NULL);
    if (!strcmp(n->row->name, "Mean"))
        y = build_by(&n->b, "divide", y, n->nin);
    return c2_done(n, y);
}

/* (x - mean) / deviation, for each picture's channels. */
bool c2_normalize_yuv(C2Node *n)
{
    const Build *b = &n->b;
    const Expr  *y = n->in[0];

    if (!c2_rank(n, 0, 4, 4) || !c2_rank(n, 1, 2, 2) || !c2_rank(n, 2, 2, 2))
        return false;
    y = build_sub(b, y, build_expand_dims(b, n->in[1], 2, 2));
    return c2_done(n, build_div(b, y, build_expand_dims(b, n->in[2], 2, 2)));
}
