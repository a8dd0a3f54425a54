/* Element by element: unary and binary operators, activations, casts. */
#include "frontends/onnx/onnx.h"

#include <math.h>
#include <string.h>

bool convert_unary(Node *n)
{
    return node_need_rank(n, 0, 0, MAX_RANK) &&
           node_done(n, build1(&n->b, n->relay, n->in[0], NULL));
}

bool convert_identity(Node *n)
{
    node_ignore(n, "type"); /* of Optional: its value says it */
    return node_has(n, 0) ? node_done(n, n->in[0])
                          : node_error(n, E_IMPORT, "input 0 is missing") != NULL;
}

static bool tensors(Node *n, uint32_t least)
{
    for (uint32_t i = 0; i < n->nin || i < least; i++)
        if (!node_need_rank(n, i, 0, MAX_RANK))
            return false;
    return true;
}

bool convert_isinf(Node *n)
{
    const Build *b = &n->b;
    bool         neg = node_int(n, "detect_negative", 1), pos = node_int(n, "detect_positive", 1);
    const Expr  *x, *r;

    if (!tensors(n, 1))
        return false;
    x = n->in[0];
    r = build1(b, "isinf", x, NULL);
    if (!neg)
        r = build2(b, "logical_and", r, build_by(b, "greater", x, 0), NULL);
    if (!pos)
        r = build2(b, "logical_and", r, build_by(b, "less", x, 0), NULL);
    return node_done(n, r);
}

bool convert_reciprocal(Node *n)
{
    const Build *b = &n->b;

    return tensors(n, 1) &&
           node_done(n, build2(b, "divide", build_scalar(b, n->in[0], 1), n->in[0], NULL));
}

/* ---- activations ------------------------------------------------------------------------------- */

bool convert_softplus(Node *n)
{
    return tensors(n, 1) && node_done(n, build_softplus(&n->b, n->in[0]));
}

bool convert_softsign(Node *n)
{
    return tensors(n, 1) && node_done(n, build_softsign(&n->b, n->in[0]));
}

bool convert_elu(Node *n)
{
    return tensors(n, 1) && node_done(n, build_elu(&n->b, n->in[0], node_float(n, "alpha", 1), 1));
}

bool convert_selu(Node *n)
{
    double alpha = node_float(n, "alpha", 1.67326319217681884765625);
    double gamma = node_float(n, "gamma", 1.05070102214813232421875);

    return tensors(n, 1) && node_done(n, build_selu(&n->b, n->in[0], alpha, gamma));
}

bool convert_celu(Node *n)
{
    double alpha = node_float(n, "alpha", 1);

    return tensors(n, 1) && node_done(n, build_elu(&n->b, n->in[0], alpha, 1 / alpha));
}

bool convert_leaky_relu(Node *n)
{
    LeakyReluAttrs *a = ATTRS(&n->b, LeakyReluAttrs);

    a->alpha = node_float(n, "alpha", 0.01f);
    return tensors(n, 1) && node_done(n, build1(&n->b, n->relay, n->in[0], a));
}

/* A slope for each channel is nn.prelu; any other broadcast is spelled out. */
bool convert_prelu(Node *n)
{
    const Build *b = &n->b;
    const Expr  *x, *slope;
    uint32_t     rank, r;
    bool         channels;

    if (!tensors(n, 2))
        return false;
    x = n->in[0];
    slope = n->in[1];
    rank = expr_rank(x);
    r = expr_rank(slope);
    channels = rank >= 2 && (r + 1 == rank || n->opset < 7) && r > 0 &&
               build_dim(b, slope, 0) == build_dim(b, x, 1) &&
               build_elems(b, slope) == build_dim(b, x, 1);
    if (channels)
        return node_done(n,
                         build2(b, n->relay, x,
                                build_reshape(b, slope, 1, (int64_t[]){build_dim(b, x, 1)}), NULL));
    return node_done(n, build_if_negative(b, x, build2(b, "multiply", x, slope, NULL)));
}

bool convert_thresholded_relu(Node *n)
{
    const Build *b = &n->b;
    double       alpha = node_float(n, "alpha", 1);
    const Expr  *x;

    if (!tensors(n, 1))
        return false;
    x = n->in[0];
    return node_done(n, build_where(b, build_by(b, "greater", x, alpha), x, build_scalar(b, x, 0)));
}

bool convert_hard_sigmoid(Node *n)
{
    double alpha = node_float(n, "alpha", 0.2f), beta = node_float(n, "beta", 0.5);

    return tensors(n, 1) && node_done(n, build_hard_sigmoid(&n->b, n->in[0], alpha, beta));
}

bool convert_hard_swish(Node *n)
{
    return tensors(n, 1) && node_done(n, build_hard_swish(&n->b, n->in[0]));
}

bool convert_mish(Node *n)
{
    return tensors(n, 1) && node_done(n, build_mish(&n->b, n->in[0]));
}

bool convert_gelu(Node *n)
{
    const char *how = node_str(n, "approximate", "none");
    bool        by_tanh = !strcmp(how, "tanh");

    if (!by_tanh && strcmp(how, "none"))
        return node_error(n, E_UNSUPPORTED, "approximate is '%s'", how);
    return tensors(n, 1) && node_done(n, build_gelu(&n->b, n->in[0], by_tanh));
}

bool convert_swish(Node *n)
{
    double rate = node_float(n, "alpha", str_starts(n->p->op_type, "Quick") ? 1.702f : 1);

    return tensors(n, 1) && node_done(n, build_swish(&n->b, n->in[0], rate));
}

/* Swish of the first, times the second; their shapes have to be alike. */
bool convert_swiglu(Node *n)
{
    if (!tensors(n, 2))
        return false;
    for (uint32_t i = 0; i < expr_rank(n->in[0]); i++)
        if (expr_rank(n->in[1]) != expr_rank(n->in[0]) ||
            expr_form(n->in[0], i) != expr_form(n->in[1], i))
            return node_error(n, E_IMPORT, "the operands are %s and %s",
                              type_text(n->b.c, n->in[0]->type), type_text(n->b.c, n->in[1]->type));
    return convert_swish(n) && node_done(n, build2(&n->b, "multiply", n->out[0], n->in[1], NULL));
}

/* x < -lambd ? x + bias : x > lambd ? x - bias : 0; of integers too, by the same numbers */
bool convert_shrink(Node *n)
{
    const Build *b = &n->b;
    double       lambd = node_float(n, "lambd", 0.5), bias = node_float(n, "bias", 0);
    const Expr  *x, *r;
    DType        t;

    if (!tensors(n, 1))
        return false;
    x = n->in[0];
    t = expr_dtype(x);
    if (!dtype_is_float(t))
        x = build_cast(b, x, DT_F64);
    r = build_where(b, build_by(b, "greater", x, lambd), build_by(b, "add", x, -bias),
                    build_scalar(b, x, 0));
    r = build_where(b, build_by(b, "less", x, -lambd), build_by(b, "add", x, bias), r);
    return node_done(n, build_cast(b, r, t));
}

/* ---- clip, cast ---------------------------------------------------------------------------------- */

/* From opset 6 on a bound that is not given is the type's lowest or largest finite number. */
bool convert_clip_attr(Node *n)
{
    double lo = -INFINITY, hi = INFINITY;

    if (!tensors(n, 1))
        return false;
    if (n->opset >= 6) {
        lo = dtype_min(expr_dtype(n->in[0]));
        hi = dtype_max(expr_dtype(n->in[0]));
    }
    lo = node_float(n, "min", lo);
    hi = node_float(n, "max", hi);
    return node_done(n, build_clip(&n->b, n->in[0], lo, hi));
}

/* Bounds are numbers almost always; then this is `clip`. */
bool convert_clip(Node *n)
{
    const Build *b = &n->b;
    double       lo, hi;
    const Expr  *x, *k;
    bool         numbers = true;
    DType        t;

    if (!node_need_rank(n, 0, 0, MAX_RANK))
        return false;
    x = n->in[0];
    t = expr_dtype(x);
    lo = dtype_min(t);
    hi = dtype_max(t);
    if (node_has(n, 1))
        numbers &= (k = build_fold(b, n->in[1])) && expr_const_f(k, &lo);
    if (node_has(n, 2))
        numbers &= (k = build_fold(b, n->in[2])) && expr_const_f(k, &hi);
    if (numbers && lo <= hi && (t.bits < 64 || dtype_is_float(t)))
        return node_done(n, build_clip(b, x, lo, hi));
    /* The upper bound wins, also one that is not given: all is finite in the end. */
    if (node_has(n, 1))
        x = build2(b, "maximum", x, n->in[1], NULL);
    else if (x && dtype_is_float(t))
        x = build_clip(b, x, lo, INFINITY);
    if (node_has(n, 2))
        x = build2(b, "minimum", x, n->in[2], NULL);
    else if (x && dtype_is_float(t))
        x = build_clip(b, x, -INFINITY, hi);
    return node_done(n, x);
}

/* How to round to 8-bit floats is said by attributes. */
static bool cast_to(Node *n, DType t)
{
    static const char *const rounds[] = {"up", "down", "nearest", NULL};
    CastAttrs               *a = ATTRS(&n->b, CastAttrs);

    a->dtype = t;
    a->saturate = node_int(n, "saturate", 1);
    return node_choice(n, "round_mode", rounds, &a->round_mode) && tensors(n, 1) &&
           node_done(n, dtype_eq(expr_dtype(n->in[0]), t) ? n->in[0]
                                                          : build1(&n->b, "cast", n->in[0], a));
}

bool convert_cast(Node *n)
{
    int64_t to = node_int(n, "to", 0);
    bool    text = n->in[0] && onnx_is_string(n->im, n->in[0]);
    DType   t;

    if (to == ONNX_STRING)
        return text ? node_done(n, n->in[0]) : onnx_cast_to_string(n);
    if (!onnx_dtype(to, &t))
        return node_error(n, E_UNSUPPORTED, "a cast to %s", onnx_dtype_text(to));
    return text ? onnx_cast_string(n, t) : cast_to(n, t);
}

/* The same bytes as another type of their size. */
bool convert_bit_cast(Node *n)
{
    int64_t       to = node_int(n, "to", 0);
    BitcastAttrs *a = ATTRS(&n->b, BitcastAttrs);

    if (!onnx_dtype(to, &a->dtype) || dtype_stored(a->dtype))
        return node_error(n, E_UNSUPPORTED, "bits as %s", onnx_dtype_text(to));
    return tensors(n, 1) && node_done(n, build1(&n->b, n->relay, n->in[0], a));
}

bool convert_cast_like(Node *n)
{
    bool text;

    if (!tensors(n, 2))
        return false;
    text = onnx_is_string(n->im, n->in[0]);
    if (onnx_is_string(n->im, n->in[1]))
        return text ? node_done(n, n->in[0]) : onnx_cast_to_string(n);
    return text ? onnx_cast_string(n, expr_dtype(n->in[1])) : cast_to(n, expr_dtype(n->in[1]));
}

/* ---- two and more operands ------------------------------------------------------------------------ */

bool convert_binary(Node *n)
{
    return tensors(n, 2) && node_agree(n) &&
           node_done(n, build2(&n->b, n->relay, n->in[0], n->in[1], NULL));
}

/* Before opset 7 the second operand's shape is a part of the first's, which begins at `axis`. */
bool convert_binary_axis(Node *n)
{
    const Build *b = &n->b;
    const Expr  *y;
    uint32_t     rank, r, axis;
    int64_t      dims[MAX_RANK];

    if (!tensors(n, 2))
        return false;
    node_ignore(n, "axis"); /* where shapes are alike or there is one number */
    y = n->in[1];
    rank = expr_rank(n->in[0]);
    r = expr_rank(y);
    if (node_int(n, "broadcast", 0) && node_attr(n, "axis") && r > 0 && r < rank) {
        if (!node_axis(n, node_int(n, "axis", 0), rank, &axis))
            return false;
        if (axis + r > rank)
            return node_error(n, E_IMPORT, "axis %u for operands of %u and %u dimensions", axis,
                              rank, r);
        for (uint32_t i = 0; i < rank - axis; i++)
            dims[i] = i < r ? build_dim(b, y, i) : 1;
        y = build_reshape(b, y, rank - axis, dims);
    }
    return node_done(n, build2(b, n->relay, n->in[0], y, NULL));
}

/* Shifts by less than 0 or the whole width and more: all bits go, those of the sign stay. */
bool convert_bit_shift(Node *n)
{
    const Build *b = &n->b;
    const char  *way = node_str(n, "direction", "");
    const Expr  *x, *by, *out, *r, *known;
    bool         left = !strcmp(way, "LEFT"), fits = true;
    double       bits;
    Ints         v;

    if (!left && strcmp(way, "RIGHT") != 0)
        return node_error(n, E_IMPORT, "direction is '%s', not LEFT or RIGHT", way);
    if (!tensors(n, 2))
        return false;
    x = n->in[0];
    by = n->in[1];
    bits = expr_dtype(x).bits;
    known = build_fold(b, by);
    if (known && expr_ints(b->c, known, &v)) {
        for (uint32_t i = 0; i < v.n; i++)
            fits &= v.at[i] >= 0 && v.at[i] < bits;
        if (fits)
            return node_done(n, build2(b, left ? "left_shift" : "right_shift", x, by, NULL));
    }
    out = build2(b, "logical_or", build_by(b, "less", by, 0),
                 build_by(b, "greater_equal", by, bits), NULL);
    by = build_where(b, out, build_scalar(b, by, bits - 1), by);
    r = build2(b, left ? "left_shift" : "right_shift", x, by, NULL);
    if (left || expr_dtype(x).code == DT_UINT)
        r = build_where(b, out, build_scalar(b, x, 0), r);
    return node_done(n, r);
}

/* fmod 0: the sign of the divisor, as Python; 1: of the dividend, as C. */
bool convert_mod(Node *n)
{
    return tensors(n, 2) && node_done(n, build2(&n->b, node_int(n, "fmod", 0) ? "mod" : "floor_mod",
                                                n->in[0], n->in[1], NULL));
}

/* x^0.5, which of -inf is inf. */
static const Expr *root(const Build *b, const Expr *x)
{
    const Expr *least = build_scalar(b, x, -INFINITY);

    return build_where(b, build2(b, "equal", x, least, NULL), build_scalar(b, x, INFINITY),
                       build1(b, "sqrt", x, NULL));
}

/* Small whole powers are products; the exponent may have another type than the base. */
bool convert_pow(Node *n)
{
    const Build *b = &n->b;
    const Expr  *x, *y, *k;
    double       v;
    DType        t;

    if (!tensors(n, 2))
        return false;
    x = n->in[0];
    y = n->in[1];
    t = expr_dtype(x);
    if (expr_rank(y) <= expr_rank(x) && expr_single(y) && (k = build_fold(b, y)) &&
        expr_const_f(k, &v)) {
        if (v == 1)
            return node_done(n, x);
        if (v == 2)
            return node_done(n, build2(b, "multiply", x, x, NULL));
        if (v == 3)
            return node_done(n, build2(b, "multiply", build2(b, "multiply", x, x, NULL), x, NULL));
        if (v == 0.5 && dtype_is_float(t))
            return node_done(n, root(b, x));
    }
    if (dtype_is_int(t) || !dtype_eq(t, expr_dtype(y))) {
        DType wide = t.bits >= 64 || expr_dtype(y).bits >= 64 || dtype_is_int(t) ? DT_F64 : DT_F32;

        return node_done(
            n, build_cast(
                   b, build2(b, "power", build_cast(b, x, wide), build_cast(b, y, wide), NULL), t));
    }
    return node_done(n, build2(b, "power", x, y, NULL));
}

static const Expr *fold_all(Node *n)
{
    const Expr *r = n->in[0];

    for (uint32_t i = 1; i < n->nin; i++)
        r = build2(&n->b, n->relay, r, n->in[i], NULL);
    return r;
}

bool convert_variadic(Node *n)
{
    return tensors(n, 1) && node_agree(n) && node_done(n, fold_all(n));
}

bool convert_mean(Node *n)
{
    return tensors(n, 1) && node_agree(n) &&
           node_done(n, build_by(&n->b, "multiply", fold_all(n), 1.0 / n->nin));
}

bool convert_where(Node *n)
{
    return tensors(n, 3) && node_agree(n) &&
           node_done(n, build_where(&n->b, n->in[0], n->in[1], n->in[2]));
}
