/* nn.lstm, nn.gru and nn.rnn, as ONNX has them (no peepholes).
 *
 *     %6 = nn.lstm(%x, %w, %r, %b, %h0, %c0, direction="bidirectional");        // (y, h, c)
 *     %7 = nn.gru(%x, %w, %r, %b, %h0, linear_before_reset=true);               // (y, h)
 *
 * What does not depend on the step before is one matrix product for all steps and directions; the
 * rest is nn.recurrent:
 *
 *     %xw = x * w' + (the input's bias + the state's bias)      [T, N, D * gates * H]
 *     %6  = nn.recurrent(%xw, r, %h0, %c0, cell="lstm")
 *
 * A single step from a state of zeros multiplies the state by nothing: it is the functions of the
 * cell behind the first product. */
#include "ops/common.h"

#include <math.h>
#include <string.h>

/* ---- types --------------------------------------------------------------------------------------- */

/* x [T, N, I], w [D, G*H, I], r [D, G*H, H], b [D, 2*G*H], h0 [D, N, H] (and c0 alike). */
static const Type *rel_cell(Ctx *c, Loc loc, const char *direction, int64_t hidden, int64_t gates,
                            const Type *const *in, uint32_t nin)
{
    static const char *const what[] = {"data", "weight",      "recurrent weight",
                                       "bias", "first state", "first cell"};
    static const uint32_t    rank[] = {3, 3, 3, 2, 3, 3};
    int64_t                  d, h, units, width;

    if (!rel_tensors(c, loc, in, nin) || !rel_direction(c, loc, direction, &d))
        return NULL;
    for (uint32_t i = 0; i < nin; i++)
        if (!rel_rank(c, loc, in[i], rank[i], what[i]) || !rel_same_dtype(c, loc, in[0], in[i]))
            return NULL;
    if (!dtype_is_float(in[0]->dtype))
        return error_at(c, E_TYPE, loc, "a recurrent layer of %s", dtype_text(c, in[0]->dtype));
    if (!rel_dim(c, loc, in[0], 2, &width) || !rel_dim(c, loc, in[2], 2, &h))
        return NULL;
    units = hidden ? hidden : h;
    if (h != units || h < 1 || h > INT32_MAX / 8)
        return error_at(c, E_TYPE, loc, "hidden_size is %lld, the recurrent weight is %s",
                        (long long)units, type_text(c, in[2]));
    const Idx  *y[4] = {in[0]->dims[0], idx_const(c->arith, d), in[0]->dims[1],
                        idx_const(c->arith, h)};
    const Type *state = type_tensor(c, in[0]->dtype, 3, y + 1);
    const Type *want[6] = {in[0],
                           type_tensor_i64(c, in[0]->dtype, 3, (int64_t[]){d, gates * h, width}),
                           type_tensor_i64(c, in[0]->dtype, 3, (int64_t[]){d, gates * h, h}),
                           type_tensor_i64(c, in[0]->dtype, 2, (int64_t[]){d, 2 * gates * h}),
                           state,
                           state};

    for (uint32_t i = 1; i < nin; i++)
        if (want[i] != in[i])
            return error_at(c, E_TYPE, loc, "the %s must be %s, not %s", what[i],
                            type_text(c, want[i]), type_text(c, in[i]));
    const Type *fields[3] = {rel_tensor(c, loc, in[0]->dtype, 4, y), state, state};

    return fields[0] ? type_tuple(c, nin > 5 ? 3 : 2, fields) : NULL;
}

const Type *rel_lstm(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const LstmAttrs *a = attrs;

    return rel_cell(c, loc, a->direction, a->hidden_size, 4, in, nin);
}

const Type *rel_gru(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const GruAttrs *a = attrs;

    return rel_cell(c, loc, a->direction, a->hidden_size, 3, in, nin);
}

const Type *rel_rnn(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const RnnAttrs *a = attrs;

    return rel_cell(c, loc, a->direction, a->hidden_size, 1, in, nin);
}

/* ---- expansion ------------------------------------------------------------------------------------ */

typedef struct {
    Ctx        *c;
    const Expr *e;
    const Idx  *T, *N;
    int64_t     I, D, H, gates;
} Layer;

static const Expr *transposed(const Layer *k, const Expr *x, Ints axes)
{
    TransposeAttrs *a = NEW_ATTRS(k->c, TransposeAttrs);

    a->axes = axes;
    return call1(k->c, "transpose", x, a, k->e->loc);
}

/* Parts [from, to) of dimension `axis`. */
static const Expr *slice(const Layer *k, const Expr *x, int64_t axis, int64_t from, int64_t to)
{
    StridedSliceAttrs *s = NEW_ATTRS(k->c, StridedSliceAttrs);

    s->begin = dims_of_i64(k->c, &from, 1);
    s->end = dims_of_i64(k->c, &to, 1);
    s->axes = ints_of(k->c, 1, axis);
    return call1(k->c, "strided_slice", x, s, k->e->loc);
}

/* Gates [from, to) of w [D, G*H, H] as nn.recurrent reads them: [D, H, to - from, H]. */
static const Expr *state_weight(const Layer *k, int64_t from, int64_t to)
{
    const Expr *w = call_reshape(k->c, call_arg(k->e, 2), 4,
                                 (int64_t[]){k->D, k->gates, k->H, k->H}, k->e->loc);

    if (w && (from > 0 || to < k->gates))
        w = slice(k, w, 1, from, to);
    return w ? transposed(k, w, ints_of(k->c, 4, 0, 3, 1, 2)) : NULL;
}

/* The input's bias plus the state's, of all gates or all but the last: [D, G*H]. */
static const Expr *bias_sum(const Layer *k, bool all)
{
    Ctx        *c = k->c;
    int64_t     half = k->gates * k->H, most = all ? half : half - k->H;
    const Expr *b = call_arg(k->e, 3), *of_x = slice(k, b, 1, 0, half),
               *of_h = slice(k, b, 1, half, half + most);

    if (of_h && most < half) {
        PadAttrs *p = NEW_ATTRS(c, PadAttrs);

        p->pad_width = ints_of(c, 4, 0, 0, 0, half - most);
        of_h = call1(c, "nn.pad", of_h, p, k->e->loc);
    }
    return of_x && of_h ? call2(c, "add", of_x, of_h, NULL, k->e->loc) : NULL;
}

/* Of the last gate, weights as [D, H, H] and the state's bias, [D, H]. */
static const Expr *last_weight(const Layer *k)
{
    const Expr *w = state_weight(k, k->gates - 1, k->gates);

    return w ? call_reshape(k->c, w, 3, (int64_t[]){k->D, k->H, k->H}, k->e->loc) : NULL;
}

static const Expr *last_bias(const Layer *k)
{
    int64_t all = 2 * k->gates * k->H;

    return slice(k, call_arg(k->e, 3), 1, all - k->H, all);
}

static Layer layer_of(Ctx *c, const Expr *e, int64_t gates)
{
    const Type *x = call_arg(e, 0)->type, *state = call_arg(e, 4)->type;
    Layer       k = {.c = c, .e = e, .gates = gates};

    k.T = x->dims[0];
    k.N = x->dims[1];
    k.I = dim_of(x, 2);
    k.D = dim_of(state, 0);
    k.H = dim_of(state, 2);
    return k;
}

/* x * w' + b for all steps and directions. */
static const Expr *projection(const Layer *k, bool all_biases)
{
    Ctx        *c = k->c;
    Loc         loc = k->e->loc;
    int64_t     width = k->D * k->gates * k->H;
    const Idx  *rows[3] = {k->T, k->N, idx_const(c->arith, width)};
    const Idx  *flat[2] = {idx_mul(c->arith, k->T, k->N), idx_const(c->arith, k->I)};
    const Expr *x = call_reshape_to(c, call_arg(k->e, 0), 2, flat, loc);
    const Expr *w = call_reshape(c, call_arg(k->e, 1), 2, (int64_t[]){width, k->I}, loc);
    const Expr *b = bias_sum(k, all_biases);

    b = b ? call_reshape(c, b, 1, &width, loc) : NULL;
    if (!x || !w || !b)
        return NULL;
    x = call2(c, "nn.bias_add", call2(c, "nn.dense", x, w, NULL, loc), b, NULL, loc);
    return x ? call_reshape_to(c, x, 3, rows, loc) : NULL;
}

/* ---- one step from a state of zeros ----------------------------------------------------------------- */

static bool is_zeros(const Expr *e)
{
    double v;

    return expr_const_f(e, &v) && v == 0;
}

/* Nothing in it makes anything else than 0 of a 0. */
static bool is_finite(const Expr *e)
{
    if (e->kind != EXPR_CONST)
        return false;
    const Const *k = e->u.constant;
    uint32_t     size = dtype_bytes(k->type->dtype);

    for (size_t i = 0; i + size <= k->data.n; i += size)
        if (!isfinite(dtype_get_f(k->type->dtype, (const char *)k->data.at + i)))
            return false;
    return true;
}

static bool is_first_step(const Layer *k)
{
    return idx_is_const(k->T, NULL) && k->T->c0 == 1 && idx_is_const(k->N, NULL) &&
           is_zeros(call_arg(k->e, 4)) && is_finite(call_arg(k->e, 2));
}

/* Gate i of xw [1, N, D * gates * H] as [D, N, H]. */
static const Expr *first_gate(const Layer *k, const Expr *xw, int64_t i)
{
    int64_t     N = k->N->c0, rows[3] = {N, k->D, k->gates * k->H};
    const Expr *x = xw ? call_reshape(k->c, xw, 3, rows, k->e->loc) : NULL;

    x = x ? slice(k, x, 2, i * k->H, (i + 1) * k->H) : NULL;
    return x ? transposed(k, x, ints_of(k->c, 3, 1, 0, 2)) : NULL;
}

static const Expr *activated(const Layer *k, const char *f, const Expr *x)
{
    return x ? call1(k->c, !strcmp(f, "relu") ? "nn.relu" : f, x, NULL, k->e->loc) : NULL;
}

static const Expr *paired(const Layer *k, const char *op, const Expr *x, const Expr *y)
{
    return x && y ? call2(k->c, op, x, y, NULL, k->e->loc) : NULL;
}

/* (y, h), of an LSTM (y, h, c). */
static const Expr *first_results(const Layer *k, const Expr *h, const Expr *cell, uint32_t n)
{
    int64_t     dims[4] = {1, k->D, k->N->c0, k->H};
    const Expr *y = h ? call_reshape(k->c, h, 4, dims, k->e->loc) : NULL;

    if (!y || (n > 2 && !cell))
        return NULL;
    return expr_tuple(k->c, n, (const Expr *[]){y, h, cell}, k->e->loc);
}

static const Expr *first_lstm(const Layer *k, const Expr *xw)
{
    const Expr *i = activated(k, "sigmoid", first_gate(k, xw, 0)),
               *o = activated(k, "sigmoid", first_gate(k, xw, 1)), *was = call_arg(k->e, 5),
               *cell = paired(k, "multiply", i, activated(k, "tanh", first_gate(k, xw, 3)));

    if (!is_zeros(was)) {
        const Expr *f = activated(k, "sigmoid", first_gate(k, xw, 2));
        cell = paired(k, "add", paired(k, "multiply", f, was), cell);
    }
    return first_results(k, paired(k, "multiply", o, activated(k, "tanh", cell)), cell, 3);
}

/* (1 - z) * g(x), where the reset gate has nothing to do unless it comes behind the product, whose
 * bias is left. */
static const Expr *first_gru(const Layer *k, const GruAttrs *a, const Expr *xw)
{
    const Expr *z = activated(k, a->f, first_gate(k, xw, 0)), *x = first_gate(k, xw, 2),
               *one = expr_scalar(k->c, k->e->type->parts[0]->dtype, 1);

    if (a->linear_before_reset) {
        const Expr *r = activated(k, a->f, first_gate(k, xw, 1)), *b = last_bias(k);
        b = b ? call_reshape(k->c, b, 3, (int64_t[]){k->D, 1, k->H}, k->e->loc) : NULL;
        x = paired(k, "add", x, paired(k, "multiply", r, b));
    }
    return first_results(
        k, paired(k, "multiply", paired(k, "subtract", one, z), activated(k, a->g, x)), NULL, 2);
}

/* ---- expansion to nn.recurrent ------------------------------------------------------------------------ */

static const Expr *recurrent(const Layer *k, const RecurrentAttrs *a, const Expr *xw, const Expr *r,
                             const Expr *more, uint32_t n)
{
    const Expr *args[4] = {xw, r, call_arg(k->e, 4), more};

    for (uint32_t i = 0; i < n; i++)
        if (!args[i])
            return NULL;
    return expr_call_name(k->c, "nn.recurrent", n, args, a, k->e->loc);
}

static RecurrentAttrs *attrs_of(const Layer *k, const char *cell, const char *direction,
                                const char *f, const char *g)
{
    RecurrentAttrs *a = NEW_ATTRS(k->c, RecurrentAttrs);

    a->cell = cell;
    a->direction = direction;
    a->f = f;
    a->g = g;
    return a;
}

const Expr *expand_lstm(Ctx *c, const Expr *e)
{
    Layer k = layer_of(c, e, 4);

    if (is_first_step(&k))
        return first_lstm(&k, projection(&k, true));
    return recurrent(&k, attrs_of(&k, "lstm", ATTRS(LstmAttrs, e)->direction, "sigmoid", "tanh"),
                     projection(&k, true), state_weight(&k, 0, 4), call_arg(e, 5), 4);
}

const Expr *expand_gru(Ctx *c, const Expr *e)
{
    const GruAttrs *a = ATTRS(GruAttrs, e);
    bool            linear = a->linear_before_reset;
    Layer           k = layer_of(c, e, 3);

    if (is_first_step(&k))
        return first_gru(&k, a, projection(&k, !linear));
    return recurrent(&k, attrs_of(&k, linear ? "gru_linear" : "gru", a->direction, a->f, a->g),
                     projection(&k, !linear), state_weight(&k, 0, linear ? 3 : 2),
                     linear ? last_bias(&k) : last_weight(&k), 4);
}

const Expr *expand_rnn(Ctx *c, const Expr *e)
{
    const RnnAttrs *a = ATTRS(RnnAttrs, e);
    Layer           k = layer_of(c, e, 1);

    if (is_first_step(&k))
        return first_results(&k, activated(&k, a->f, first_gate(&k, projection(&k, true), 0)), NULL,
                             2);
    return recurrent(&k, attrs_of(&k, "rnn", a->direction, a->f, "tanh"), projection(&k, true),
                     state_weight(&k, 0, 1), NULL, 3);
}
