/* LSTM.  Inputs, 0 the data:
 *
 *     1 .. 4     weights of the gates i f c o, [H, I]
 *     5 .. 8     those of the state, [H, O]
 *     9 .. 11    from the cell to the gates i f o, [H]
 *     12 .. 15   biases, [H]
 *     16, 17     projection, [O, H] and [O]
 *     18, 19     first state and cell, [N, O] and [N, H]
 *     20 .. 23   factors of normalized gates, [H]
 *
 * Without the weights 1, 5 and 9 the gate i is 1 - f.  A layer with no more than gates and biases
 * is nn.lstm; else it is a loop, of which a round is
 *
 *     g = x W + h R + c p + b           of each gate, or norm(x W + h R + c p) factor + b
 *     c = s(g_f) c + s(g_i) act(g_c)
 *     h = (s(g_o) act(c)) P + b_p       s: sigmoid */
#include "frontends/tflite/recurrent.h"

/* ---- loops ---------------------------------------------------------------------------------------- */

static const Expr *clipped(const Build *b, const Expr *x, double limit)
{
    return limit > 0 ? build_clip(b, x, -limit, limit) : x;
}

/* (x - mean) / sqrt(variance) along rows [N, H]. */
static const Expr *normalized(const Build *b, const Expr *x)
{
    int64_t     last = 1;
    const Expr *mean = build_reduce(b, "mean", x, 1, &last, true), *square;

    x = build_sub(b, x, mean);
    square = build_reduce(b, "mean", build_mul(b, x, x), 1, &last, true);
    return build_div(b, x, build1(b, "sqrt", build_by(b, "add", square, 1e-8), NULL));
}

/* Gate i of g [N, gates * H] before its activation. */
static const Expr *gate(const Layer *k, const Build *b, const Expr *g, const Expr *c, uint32_t i)
{
    int64_t     at = (i - k->first) * k->H;
    const Expr *x = build_slice(b, g, 1, at, at + k->H);

    if (k->peephole[i])
        x = build_add(b, x, build_mul(b, c, k->peephole[i]));
    if (!k->factor)
        return x;
    x = build_mul(b, normalized(b, x), build_slice(b, k->factor, 0, at, at + k->H));
    return build_add(b, x, build_slice(b, k->bias, 0, at, at + k->H));
}

static const Expr *sigmoid(const Build *b, const Expr *x)
{
    return build1(b, "sigmoid", x, NULL);
}

/* States: h, c, x W of all steps, the results. */
static bool lstm_round(const Build *b, void *user, const Expr *i, const Expr *const *in,
                       const Expr **next)
{
    const Layer *k = user;
    const Expr  *g = build_take(b, in[2], i, 0), *forget, *c = in[1], *h;

    g = build_add(b, g, layer_product(k, b, in[0], k->r, k->state_scales));
    forget = sigmoid(b, gate(k, b, g, c, F_GATE));
    h = k->first == I_GATE ? sigmoid(b, gate(k, b, g, c, I_GATE))
        : forget           ? build_sub(b, build_scalar(b, forget, 1), forget)
                           : NULL;
    h = build_mul(b, h, tflite_activated(k->n, k->act, gate(k, b, g, c, C_GATE)));
    c = clipped(b, build_add(b, build_mul(b, forget, c), h), k->cell_clip);
    c = layer_rounded(k, k->at->memory, c);
    h = build_mul(b, sigmoid(b, gate(k, b, g, c, O_GATE)), tflite_activated(k->n, k->act, c));
    if (k->projection) {
        h = layer_product(k, b, h, k->projection, k->proj_scales);
        h = clipped(b, k->proj_bias ? build_add(b, h, k->proj_bias) : h, k->proj_clip);
    }
    next[0] = layer_rounded(k, k->at->state, h);
    next[1] = c;
    next[2] = in[2];
    next[3] = build3(b, "update_slice", in[3], next[0], i, NULL);
    return next[3] != NULL;
}

/* ---- a layer -------------------------------------------------------------------------------------- */

static const Expr *biases(const Layer *k)
{
    const Expr *part[GATES];

    for (uint32_t i = k->first; i < GATES; i++)
        part[i] = layer_bias(k, k->at->biases + i, k->at->weights + i, &k->H);
    return build_concat(&k->n->b, k->gates, part + k->first, 0);
}

/* What nn.lstm does not know. */
static bool is_special(const Layer *k)
{
    const Inputs *at = k->at;

    return k->first != I_GATE || k->act != 4 || k->cell_clip > 0 || k->projection || k->factor ||
           layer_any(k->n, at->cell, at->cell + 3) || tflite_is_quantized(tflite_in(k->n, 0));
}

static bool read_lstm(Layer *k)
{
    static const uint32_t gate_of[] = {I_GATE, F_GATE, O_GATE};
    TfliteNode           *n = k->n;
    const Inputs         *at = k->at;

    k->first = tflite_has(n, at->weights) ? I_GATE : F_GATE;
    k->gates = GATES - k->first;
    if (!tflite_has(n, at->weights + 7) || !tflite_rank(n, at->weights + 7, 2, 2))
        return tflite_has(n, at->weights + 7)
                   ? false
                   : tflite_error(n, E_IMPORT, "input %u is missing", at->weights + 7);
    k->H = build_dim(&n->b, n->in[at->weights + 7], 0);
    k->O = build_dim(&n->b, n->in[at->weights + 7], 1);
    if (k->H < 1 || k->H > INT32_MAX / GATES)
        return tflite_error(n, E_IMPORT, "a cell of %lld numbers", (long long)k->H);
    if (k->first != I_GATE &&
        (tflite_has(n, at->weights + 4) || tflite_has(n, at->cell) || tflite_has(n, at->biases)))
        return tflite_error(n, E_IMPORT, "input %u is missing", at->weights);
    for (uint32_t i = 0; i < 3; i++)
        if (tflite_has(n, at->cell + i) &&
            !(k->peephole[gate_of[i]] = layer_value(n, at->cell + i, 1, &k->H)))
            return false;
    if (at->norm && layer_any(n, at->norm, at->norm + GATES) &&
        !(k->factor = layer_gates(k, at->norm, 1, &k->H)))
        return false;
    if (tflite_has(n, at->projection) &&
        !(k->projection = layer_value(n, at->projection, 2, (int64_t[]){k->O, k->H})))
        return false;
    if (!k->projection && k->O != k->H)
        return tflite_error(n, E_IMPORT, "a state of %lld numbers for a cell of %lld",
                            (long long)k->O, (long long)k->H);
    if (tflite_has(n, at->projection + 1) &&
        !(k->proj_bias = layer_bias(k, at->projection + 1, at->projection, &k->O)))
        return false;
    return (k->bias = biases(k)) != NULL;
}

/* Of the gates in the order of nn.lstm, i o f c. */
static const Expr *reordered(const Layer *k, const Expr *x)
{
    static const uint32_t order[] = {I_GATE, O_GATE, F_GATE, C_GATE};
    const Expr           *part[GATES];

    for (uint32_t i = 0; i < GATES; i++)
        part[i] = build_slice(&k->n->b, x, 0, order[i] * k->H, (order[i] + 1) * k->H);
    return layer_lifted(&k->n->b, build_concat(&k->n->b, GATES, part, 0));
}

/* nn.lstm's results, [T, N, H]. */
static const Expr *plain_lstm(Layer *k, const Expr *h, const Expr *c, const Expr *w)
{
    const Build *b = &k->n->b;
    LstmAttrs   *a = ATTRS(b, LstmAttrs);
    int64_t      cells = GATES * k->H;
    const Idx   *dims[3] = {k->T, k->N, idx_const(b->c->arith, k->H)};
    const Expr  *in[6] = {k->x,
                          reordered(k, w),
                          reordered(k, k->r),
                          reordered(k, k->bias),
                          layer_lifted(b, h),
                          layer_lifted(b, c)};

    in[3] = build_concat(
        b, 2, (const Expr *[]){in[3], layer_lifted(b, build_zeros(b, DT_F32, 1, &cells))}, 1);
    a->direction = k->at->reverse ? "reverse" : "forward";
    h = build_call(b, "nn.lstm", 6, in, a);
    return layer_keep(k, build_proj(b, h, 1), build_proj(b, h, 2))
               ? build_reshape_to(b, build_proj(b, h, 0), 3, dims)
               : NULL;
}

/* Weights of 8 bits and data in floats: the kernel rounds the rows of both products' data. */
static bool read_hybrid(Layer *k, const Expr **w)
{
    const Inputs *at = k->at;

    if (at->aux || !layer_is_hybrid(k, at->weights, 2 * GATES))
        return true;
    k->both_ends = tflite_int(k->n, "asymmetric_quantize_inputs");
    *w = layer_bytes(k, at->weights, &k->data_scales);
    k->r = layer_bytes(k, at->weights + GATES, &k->state_scales);
    if (k->projection && layer_is_hybrid(k, at->projection, 1)) {
        k->projection = k->n->in[at->projection];
        k->proj_scales = tflite_unit_scales(k->n, at->projection, 2);
    }
    return *w && k->r;
}

/* All results, [T, N, O]. */
static const Expr *lstm(Layer *k)
{
    TfliteNode *n = k->n;
    const Expr *w, *h, *c;

    k->act = tflite_int(n, "fused_activation_function");
    k->cell_clip = tflite_float(n, "cell_clip");
    k->proj_clip = tflite_float(n, "proj_clip");
    if (!read_lstm(k) || !(w = layer_data_weights(k)) ||
        !(k->r = layer_gates(k, k->at->weights + 4, 2, (int64_t[]){k->H, k->O})) ||
        !(h = layer_state(n, k->at->state, k->N, k->O)) ||
        !(c = layer_state(n, k->at->memory, k->N, k->H)))
        return NULL;
    if (lstm_is_integer(k))
        return lstm_in_integers(k);
    if (lstm_is_of_bytes(k))
        return lstm_of_bytes(k);
    if (!read_hybrid(k, &w))
        return NULL;
    return k->data_scales || is_special(k) ? layer_loop(k, h, c, w, lstm_round)
                                           : plain_lstm(k, h, c, w);
}

bool tflite_sequence_lstm(TfliteNode *n)
{
    static const Inputs at = {1, 9, 12, 16, 20, 18, 19, 0, false};
    bool                time_major = tflite_int(n, "time_major");
    Layer               k = {.n = n, .at = &at};

    if (tflite_int(n, "diagonal_recurrent_tensors"))
        return tflite_error(n, E_UNSUPPORTED, "diagonal_recurrent_tensors");
    return layer_data(&k, 0, 0, time_major) &&
           tflite_done(n, layer_steps(&n->b, lstm(&k), time_major));
}

static bool basic_keep(TfliteNode *n)
{
    return tflite_keep(n, 1, n->out[0]) && tflite_keep(n, 4, n->out[1]);
}

/* One step of the kernel BASIC: data [N, I], state [N, H], weights [4 * H, I + H] of the gates i c
 * f o, biases [4 * H], cell [N, H]. */
static bool basic_lstm(TfliteNode *n)
{
    const Build *b = &n->b;
    const Expr  *x[5], *g[GATES], *both, *all, *c;
    int64_t      H;

    if (n->nin != 5 || n->nout > 4)
        return tflite_error(n, E_IMPORT, "%u inputs and %u outputs", n->nin, n->nout);
    for (uint32_t i = 0; i < 5; i++) {
        if (!tflite_has(n, i))
            return tflite_error(n, E_IMPORT, "input %u is missing", i);
        if (!tflite_rank(n, i, i == 3 ? 1 : 2, i == 3 ? 1 : 2))
            return false;
        if (i != 3 && !(x[i] = tflite_value(n, i)))
            return false;
    }
    H = build_dim(b, x[4], 1);
    both = build_concat(b, 2, (const Expr *[]){x[0], x[1]}, 1);
    if (!both || build_dim(b, x[2], 0) != GATES * H || expr_form(x[2], 1) != expr_form(both, 1))
        return both && tflite_error(n, E_IMPORT, "the weight is %s", type_text(b->c, x[2]->type));
    Layer k = {.n = n};
    H *= GATES;
    if (!(x[3] = layer_bias(&k, 3, 2, &H)))
        return false;
    H /= GATES;
    if (lstm_is_basic_integer(n))
        return lstm_basic_in_integers(n, H) && basic_keep(n);
    all = build_add(b, build2(b, "nn.dense", both, x[2], NULL), x[3]);
    for (uint32_t i = 0; i < GATES; i++) {
        g[i] = build_slice(b, all, 1, i * H, (i + 1) * H);
        g[i] = i == 1 ? build1(b, "tanh", g[i], NULL) : sigmoid(b, g[i]);
    }
    c = build_add(b, build_mul(b, g[2], x[4]), build_mul(b, g[0], g[1]));
    n->out[0] = build_mul(b, g[3], build1(b, "tanh", c, NULL));
    n->out[1] = c;
    n->out[2] = both;
    n->out[3] = all;
    return n->out[0] && basic_keep(n);
}

/* One step of data [N, I]. */
bool tflite_lstm(TfliteNode *n)
{
    static const Inputs at = {1, 9, 12, 16, 20, 18, 19, 0, false};
    const Build        *b = &n->b;
    Layer               k = {.n = n, .at = &at};
    const Expr         *y;

    if (tflite_int(n, "kernel_type") == 1)
        return basic_lstm(n);
    if (!tflite_rank(n, 0, 2, 2))
        return false;
    n->in[0] = build_expand_dims(b, n->in[0], 0, 1);
    if (!n->in[0] || !layer_data(&k, 0, 0, true) || !(y = lstm(&k)))
        return false;
    return tflite_done(
        n, build_reshape_to(b, y, 2, (const Idx *[]){k.N, idx_const(b->c->arith, k.O)}));
}

/* A second layer, from input 18 on, goes backwards; states from 35 on, data beside at 39. */
bool tflite_bidirectional_lstm(TfliteNode *n)
{
    static const Inputs at[] = {{1, 9, 12, 16, 0, 35, 36, 0, false},
                                {18, 26, 29, 33, 0, 37, 38, 0, true}};
    bool                time_major = tflite_int(n, "time_major");
    bool                beside = tflite_has(n, 39), weights = beside && layer_any(n, 40, 48);
    const Expr         *y[2];

    for (uint32_t i = 0; i < 2; i++) {
        Inputs in = at[i];
        Layer  k = {.n = n, .at = &in};

        in.aux = weights ? 40 + 4 * i : 0;
        if (!layer_data_of(&k, i, beside ? 39 : 0, weights, time_major) || !(y[i] = lstm(&k)))
            return false;
    }
    return layer_both_done(n, y, time_major);
}
