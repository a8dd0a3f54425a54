/* Recurrent layers: their inputs, loops, two directions; RNN.
 *
 * Layers that need no more than ONNX's are nn.lstm and nn.rnn; others are loops, of which a round
 * is a step.  Quantized ones, but for LSTM in integers (lstm_integer.c), compute in floats and
 * round states as their tensors have them.  What the file keeps from run to run is a state
 * (variables.c), or begins each run as the file says, else as zeros. */
#include "frontends/tflite/recurrent.h"

#include <string.h>

/* ---- inputs --------------------------------------------------------------------------------------- */

/* Input i in floats, of these dimensions. */
const Expr *layer_value(TfliteNode *n, uint32_t i, uint32_t rank, const int64_t *dims)
{
    const Expr *x;

    if (!tflite_has(n, i))
        return tflite_error(n, E_IMPORT, "input %u is missing", i);
    x = build_cast(&n->b, tflite_value(n, i), DT_F32);
    if (!x)
        return NULL;
    if (expr_rank(x) != rank)
        return tflite_error(n, E_IMPORT, "input %u is %s", i, type_text(n->b.c, x->type));
    for (uint32_t k = 0; k < rank; k++)
        if (build_dim(&n->b, x, k) != dims[k])
            return tflite_error(n, E_IMPORT, "input %u is %s", i, type_text(n->b.c, x->type));
    return x;
}

/* Integers of 32 bits of a bias stand for the product of the scales of data and weights, or have
 * one of their own. */
const Expr *layer_bias(const Layer *k, uint32_t i, uint32_t weight, const int64_t *dims)
{
    TfliteNode         *n = k->n;
    const TfliteTensor *t, *x = tflite_in(n, 0),
                           *w = tflite_has(n, weight) ? tflite_in(n, weight) : NULL;
    const Expr *v = layer_value(n, i, 1, dims);
    double      scale;

    if (!v || !dtype_is_int(expr_dtype(n->in[i])) || expr_dtype(n->in[i]).bits < 32)
        return v;
    t = tflite_in(n, i);
    if (tflite_scales(t) == 1)
        scale = tflite_scale(t, 0);
    else if (w && tflite_scales(x) == 1 && tflite_scales(w) == 1)
        scale = tflite_scale(x, 0) * tflite_scale(w, 0);
    else
        return tflite_error(n, E_IMPORT, "a bias of integers without a scale");
    return build_by(&n->b, "multiply", v, scale);
}

/* Of all gates that there are, one above the other. */
const Expr *layer_gates(const Layer *k, uint32_t from, uint32_t rank, const int64_t *dims)
{
    const Expr *part[GATES];

    for (uint32_t i = k->first; i < k->first + k->gates; i++)
        part[i] = layer_value(k->n, from + i, rank, dims);
    return build_concat(&k->n->b, k->gates, part + k->first, 0);
}

const Expr *layer_lifted(const Build *b, const Expr *x)
{
    return x ? build_expand_dims(b, x, 0, 1) : NULL;
}

/* A state [N, cells]; zeros if the file says nothing else. */
const Expr *layer_state(TfliteNode *n, uint32_t i, const Idx *N, int64_t cells)
{
    const Idx  *dims[2] = {N, idx_const(n->b.c->arith, cells)};
    const Expr *x;

    if (!tflite_has(n, i))
        return build_zeros_of(&n->b, DT_F32, 2, dims);
    x = tflite_value(n, i);
    if (x && (expr_rank(x) != 2 || expr_form(x, 0) != N || expr_form(x, 1) != dims[1]))
        return tflite_error(n, E_IMPORT, "input %u is %s", i, type_text(n->b.c, x->type));
    return build_cast(&n->b, x, DT_F32);
}

/* Data [T, N, I], with those of a layer that stands beside it at the end of each row. */
bool layer_data(Layer *k, uint32_t x, uint32_t aux, bool time_major)
{
    TfliteNode  *n = k->n;
    const Build *b = &n->b;
    const Expr  *all[2];
    uint32_t     count = aux ? 2 : 1;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i ? aux : x;

        if (!tflite_rank(n, at, 3, 3) || !(all[i] = build_cast(b, tflite_value(n, at), DT_F32)))
            return false;
        if (!time_major)
            all[i] = build_transpose(b, all[i], 3, (int64_t[]){1, 0, 2});
    }
    k->x = count > 1 ? build_concat(b, count, all, 2) : all[0];
    if (!k->x)
        return false;
    k->time_major = time_major;
    k->I = build_dim(b, all[0], 2);
    k->T = expr_form(k->x, 0);
    k->N = expr_form(k->x, 1);
    return true;
}

/* The weights of the data, and behind them in each row those of the data beside it. */
const Expr *layer_data_weights(const Layer *k)
{
    const Build *b = &k->n->b;
    const Expr  *w = layer_gates(k, k->at->weights, 2, (int64_t[]){k->H, k->I}), *beside;

    if (!w || !k->at->aux)
        return w;
    beside = layer_gates(k, k->at->aux, 2, (int64_t[]){k->H, build_dim(b, k->x, 2) - k->I});
    return beside ? build_concat(b, 2, (const Expr *[]){w, beside}, 1) : NULL;
}
bool layer_any(const TfliteNode *n, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        if (tflite_has(n, i))
            return true;
    return false;
}

/* ---- weights that stay bytes ------------------------------------------------------------------------ */

bool layer_is_hybrid(const Layer *k, uint32_t from, uint32_t n)
{
    bool any = false;

    for (uint32_t i = from; i < from + n; i++) {
        if (!tflite_has(k->n, i))
            continue;
        if (!tflite_is_hybrid(k->n, 0, i, 0) || tflite_scales(tflite_in(k->n, i)) != 1)
            return false;
        any = true;
    }
    return any;
}

const Expr *layer_bytes(const Layer *k, uint32_t from, const Expr **scales)
{
    const Build *b = &k->n->b;
    const Expr  *part[GATES];
    int64_t      cells = k->gates * k->H;
    float       *v = NEW_ARRAY(b->c->arena, float, (size_t)cells);

    for (int64_t i = 0; i < cells; i++)
        v[i] = (float)tflite_scale(tflite_in(k->n, from + k->first + (uint32_t)(i / k->H)), 0);
    for (uint32_t i = k->first; i < k->first + k->gates; i++)
        part[i] = k->n->in[from + i];
    *scales = build_const(b, DT_F32, 1, &cells, v);
    return build_concat(b, k->gates, part + k->first, 0);
}

const Expr *layer_product(const Layer *k, const Build *b, const Expr *x, const Expr *w,
                          const Expr *scales)
{
    return scales ? tflite_hybrid_dense(b, x, w, scales, k->both_ends)
                  : build2(b, "nn.dense", x, w, NULL);
}

/* ---- loops ---------------------------------------------------------------------------------------- */

/* x W + b of all steps, [T, N, gates * H] */
static const Expr *of_data(const Layer *k, const Expr *w, const Expr *bias)
{
    const Build *b = &k->n->b;
    Arith       *A = b->c->arith;
    const Idx   *rows[2] = {idx_mul(A, k->T, k->N), expr_form(k->x, 2)},
              *steps[3] = {k->T, k->N, idx_const(A, k->gates * k->H)};
    const Expr *y = layer_product(k, b, build_reshape_to(b, k->x, 2, rows), w, k->data_scales);

    return build_reshape_to(b, bias ? build_add(b, y, bias) : y, 3, steps);
}
/* As cells of that tensor are, if it is quantized. */
const Expr *layer_rounded(const Layer *k, uint32_t i, const Expr *x)
{
    const TfliteTensor *t;

    if (i >= k->n->p->in.n || tflite_in_index(k->n->p, i) < 0)
        return x;
    t = tflite_in(k->n, i);
    return tflite_is_quantized(t)
               ? tflite_dequantize(&k->n->b, t, tflite_quantize(&k->n->b, t, x, -1), -1)
               : x;
}
static bool keep(Layer *k, uint32_t i, const Expr *x, int64_t cells)
{
    const Build *b = &k->n->b;

    if (!tflite_is_kept(k->n, i))
        return true;
    x = build_reshape_to(b, x, 2, (const Idx *[]){k->N, idx_const(b->c->arith, cells)});
    return x && tflite_keep(k->n, i, x);
}

bool layer_keep(Layer *k, const Expr *h, const Expr *c)
{
    return keep(k, k->at->state, h, k->O) && (!c || keep(k, k->at->memory, c, k->H));
}

static const Expr *reversed(const Layer *k, const Expr *x)
{
    return build_reverse(&k->n->b, x, k->at->reverse, (int64_t[]){0});
}

/* All results, [T, N, O]. */
const Expr *layer_loop(Layer *k, const Expr *h, const Expr *c, const Expr *w, BuildRound *fn)
{
    const Build *b = &k->n->b;
    const Idx   *all[3] = {k->T, k->N, idx_const(b->c->arith, k->O)};
    const Expr  *first[4], *last[4];
    uint32_t     n = 0;

    if (!(k->x = reversed(k, k->x)))
        return NULL;
    first[n++] = h;
    if (c)
        first[n++] = c;
    first[n++] = of_data(k, w, k->factor ? NULL : k->bias);
    first[n++] = build_zeros_of(b, DT_F32, 3, all);
    if (!tflite_rounds(k->n, k->T, n, first, fn, k, last) ||
        !layer_keep(k, last[0], c ? last[1] : NULL))
        return NULL;
    return reversed(k, last[n - 1]);
}

/* [T, N, O] as the layer's layout has it. */
const Expr *layer_steps(const Build *b, const Expr *y, bool time_major)
{
    return !y || time_major ? y : build_transpose(b, y, 3, (int64_t[]){1, 0, 2});
}
/* ---- two directions ------------------------------------------------------------------------------- */

/* Data of another layer at `aux`, for which both directions have weights, or that the one backwards
 * reads instead. */
bool layer_data_of(Layer *k, uint32_t i, uint32_t aux, bool weights, bool time_major)
{
    bool instead = aux && !weights && i == 1;

    return layer_data(k, instead ? aux : 0, aux && weights ? aux : 0, time_major);
}

bool layer_both_done(TfliteNode *n, const Expr **y, bool time_major)
{
    for (uint32_t i = 0; i < 2; i++)
        if (!(y[i] = layer_steps(&n->b, y[i], time_major)))
            return false;
    if (tflite_int(n, "merge_outputs"))
        return tflite_done(n, build_concat(&n->b, 2, y, 2));
    n->out[0] = y[0];
    n->out[1] = y[1];
    return true;
}
/* ---- RNN ------------------------------------------------------------------------------------------ */

/* States: h, x W of all steps, the results. */
static bool rnn_round(const Build *b, void *user, const Expr *i, const Expr *const *in,
                      const Expr **next)
{
    const Layer *k = user;
    const Expr  *x = build_take(b, in[1], i, 0);

    x = build_add(b, x, layer_product(k, b, in[0], k->r, k->state_scales));
    next[0] = layer_rounded(k, k->at->state, tflite_activated(k->n, k->act, x));
    next[1] = in[1];
    next[2] = build3(b, "update_slice", in[2], next[0], i, NULL);
    return next[2] != NULL;
}

/* Weights [H, I], those of the state [H, H], bias, first state: all results, [T, N, H]. */
static const Expr *rnn(Layer *k)
{
    TfliteNode  *n = k->n;
    const Build *b = &n->b;
    uint32_t     at = k->at->weights;
    RnnAttrs    *a = ATTRS(b, RnnAttrs);
    const Idx   *dims[3] = {k->T, k->N};
    const Expr  *w, *h, *in[5];

    k->act = tflite_int(n, "fused_activation_function");
    if (!tflite_has(n, at + 1) || !tflite_rank(n, at + 1, 2, 2))
        return tflite_has(n, at + 1) ? NULL
                                     : tflite_error(n, E_IMPORT, "input %u is missing", at + 1);
    k->H = k->O = build_dim(b, n->in[at + 1], 0);
    k->gates = 1;
    if (!(w = layer_data_weights(k)) ||
        !(k->r = layer_value(n, at + 1, 2, (int64_t[]){k->H, k->H})) ||
        !(k->bias = layer_bias(k, at + 2, at, &k->H)) ||
        !(h = layer_state(n, k->at->state, k->N, k->H)))
        return NULL;
    if (!k->at->aux && layer_is_hybrid(k, at, 2)) {
        k->both_ends = tflite_int(n, "asymmetric_quantize_inputs");
        w = layer_bytes(k, at, &k->data_scales);
        k->r = layer_bytes(k, at + 1, &k->state_scales);
    }
    if (k->data_scales || (k->act != 1 && k->act != 4))
        return layer_loop(k, h, NULL, w, rnn_round);
    a->f = k->act == 1 ? "relu" : "tanh";
    a->direction = k->at->reverse ? "reverse" : "forward";
    dims[2] = idx_const(b->c->arith, k->H);
    in[0] = k->x;
    in[1] = layer_lifted(b, w);
    in[2] = layer_lifted(b, k->r);
    in[3] = layer_lifted(
        b, build_concat(b, 2, (const Expr *[]){k->bias, build_zeros(b, DT_F32, 1, &k->H)}, 0));
    in[4] = layer_lifted(b, h);
    h = build_call(b, "nn.rnn", 5, in, a);
    return layer_keep(k, build_proj(b, h, 1), NULL)
               ? build_reshape_to(b, build_proj(b, h, 0), 3, dims)
               : NULL;
}

bool tflite_sequence_rnn(TfliteNode *n)
{
    static const Inputs at = {.weights = 1, .state = 4};
    const Build        *b = &n->b;
    bool                steps = !strcmp(n->row->name, "UNIDIRECTIONAL_SEQUENCE_RNN");
    bool                time_major = steps && tflite_int(n, "time_major");
    Layer               k = {.n = n, .at = &at};
    const Expr         *y;

    if (!steps) /* one step */
        n->in[0] = build_expand_dims(b, n->in[0], 1, 1);
    if (!n->in[0] || !layer_data(&k, 0, 0, time_major))
        return false;
    y = layer_steps(b, rnn(&k), time_major);
    if (!steps && y)
        y = build_reshape_to(b, y, 2, (const Idx *[]){k.N, idx_const(b->c->arith, k.H)});
    return tflite_done(n, y);
}

/* Data; weights, those of the state, bias and state of both directions; data beside, and weights of
 * both directions for them. */
bool tflite_bidirectional_rnn(TfliteNode *n)
{
    bool        time_major = tflite_int(n, "time_major");
    bool        beside = tflite_has(n, 9), weights = beside && layer_any(n, 10, 12);
    const Expr *y[2];

    for (uint32_t i = 0; i < 2; i++) {
        Inputs at = {.weights = 1 + 4 * i,
                     .state = 4 + 4 * i,
                     .aux = weights ? 10 + i : 0,
                     .reverse = i == 1};
        Layer  k = {.n = n, .at = &at};

        if (!layer_data_of(&k, i, beside ? 9 : 0, weights, time_major) || !(y[i] = rnn(&k)))
            return false;
    }
    return layer_both_done(n, y, time_major);
}
