/* Recurrent layers, as nn.lstm and nn.rnn have them.
 *
 * Inputs of an LSTM, 0 the data:
 *     1 .. 4    weights of the gates i f c o, [H, I]        5 .. 8   those of the state, [H, H]
 *     9 .. 11   from the cell to the gates                 12 .. 15  biases, [H]
 *     16, 17    projection                                 18, 19    first state and cell, [N, H]
 *     20 .. 23  factors of normalized gates
 * States that the file keeps from run to run begin each run as zeros. */
#include "frontends/tflite/tflite.h"

#include <string.h>

/* A layer in one direction: data [T, N, I]. */
typedef struct {
    const Expr *x, *h, *c;
    int64_t     H, I;
    const Idx  *N;
} Cell;

/* Weights in floats, one above the other. */
static const Expr *stacked(TfliteNode *n, uint32_t count, const uint32_t *at, uint32_t rank,
                           const int64_t *dims)
{
    const Expr *part[4];

    for (uint32_t i = 0; i < count; i++) {
        if (!tflite_has(n, at[i]) || !(part[i] = tflite_value(n, at[i])))
            return tflite_error(n, E_UNSUPPORTED, "input %u is missing", at[i]);
        part[i] = build_cast(&n->b, part[i], DT_F32);
        if (expr_rank(part[i]) != rank)
            return tflite_error(n, E_IMPORT, "input %u is %s", at[i],
                                type_text(n->b.c, part[i]->type));
        for (uint32_t k = 0; k < rank; k++)
            if (build_dim(&n->b, part[i], k) != dims[k])
                return tflite_error(n, E_IMPORT, "input %u is %s", at[i],
                                    type_text(n->b.c, part[i]->type));
    }
    return build_concat(&n->b, count, part, 0);
}

static const Expr *lifted(const Build *b, const Expr *x)
{
    return x ? build_expand_dims(b, x, 0, 1) : NULL;
}

/* A state [1, N, H]; zeros if the file has none. */
static const Expr *state(TfliteNode *n, uint32_t i, const Cell *k)
{
    const Idx *dims[3] = {idx_const(n->b.c->arith, 1), k->N, idx_const(n->b.c->arith, k->H)};

    if (!tflite_has(n, i))
        return build_zeros_of(&n->b, DT_F32, 3, dims);
    if (expr_rank(n->in[i]) != 2 || expr_form(n->in[i], 0) != k->N ||
        expr_form(n->in[i], 1) != dims[2])
        return tflite_error(n, E_IMPORT, "input %u is %s", i, type_text(n->b.c, n->in[i]->type));
    return lifted(&n->b, n->in[i]);
}

static bool without(TfliteNode *n, uint32_t from, uint32_t to, const char *what)
{
    for (uint32_t i = from; i <= to; i++)
        if (tflite_has(n, i))
            return tflite_error(n, E_UNSUPPORTED, "%s", what);
    return true;
}

/* Data [T, N, I], sizes by the state's weights at `weight`. */
static bool read_cell(TfliteNode *n, uint32_t weight, bool time_major, Cell *k)
{
    const Build *b = &n->b;

    if (!tflite_rank(n, 0, 3, 3) || !tflite_has(n, weight) || !tflite_rank(n, weight, 2, 2))
        return tflite_has(n, weight) ? false
                                     : tflite_error(n, E_IMPORT, "input %u is missing", weight);
    k->x = tflite_value(n, 0);
    if (!dtype_eq(expr_dtype(k->x), DT_F32) || tflite_is_quantized(tflite_in(n, 0)))
        return tflite_error(n, E_UNSUPPORTED, "a recurrent layer of %s",
                            dtype_text(b->c, expr_dtype(n->in[0])));
    if (!time_major)
        k->x = build_transpose(b, k->x, 3, (int64_t[]){1, 0, 2});
    k->I = build_dim(b, k->x, 2);
    k->H = build_dim(b, n->in[weight], 0);
    k->N = expr_form(k->x, 1);
    return true;
}

/* [T, 1, N, H] as the layer's layout has it. */
static const Expr *steps_of(const Build *b, const Expr *y, bool time_major)
{
    const Idx *dims[3];

    if (!y)
        return NULL;
    dims[0] = expr_form(y, 0), dims[1] = expr_form(y, 2), dims[2] = expr_form(y, 3);
    y = build_reshape_to(b, y, 3, dims);
    return time_major ? y : build_transpose(b, y, 3, (int64_t[]){1, 0, 2});
}

/* Where the inputs of one direction are. */
typedef struct {
    uint32_t weights, cell, biases, projection, state, memory;
    bool     reverse;
} LstmInputs;

/* All steps [T, 1, N, H] in one direction. */
static const Expr *lstm(TfliteNode *n, const LstmInputs *at, bool time_major)
{
    const uint32_t w = at->weights, bias = at->biases;
    const Build   *b = &n->b;
    LstmAttrs     *a = ATTRS(b, LstmAttrs);
    const Expr    *in[6], *gates;
    int64_t        cells;
    Cell           k;

    if (!without(n, at->cell, at->cell + 2, "weights from the cell to the gates") ||
        !without(n, at->projection, at->projection + 1, "a projection") ||
        !read_cell(n, w + 5, time_major, &k))
        return NULL;
    cells = 4 * k.H;
    in[0] = k.x;
    in[1] =
        lifted(b, stacked(n, 4, (uint32_t[]){w, w + 3, w + 1, w + 2}, 2, (int64_t[]){k.H, k.I}));
    in[2] = lifted(
        b, stacked(n, 4, (uint32_t[]){w + 4, w + 7, w + 5, w + 6}, 2, (int64_t[]){k.H, k.H}));
    gates = stacked(n, 4, (uint32_t[]){bias, bias + 3, bias + 1, bias + 2}, 1, &k.H);
    if (!in[1] || !in[2] || !gates)
        return NULL;
    in[3] = lifted(
        b, build_concat(b, 2, (const Expr *[]){gates, build_zeros(b, DT_F32, 1, &cells)}, 0));
    in[4] = state(n, at->state, &k);
    in[5] = state(n, at->memory, &k);
    a->direction = at->reverse ? "reverse" : "forward";
    return build_proj(b, build_call(b, "nn.lstm", 6, in, a), 0);
}

static bool plain_lstm(TfliteNode *n)
{
    if (tflite_int(n, "fused_activation_function") != 4)
        return tflite_error(n, E_UNSUPPORTED, "an activation other than tanh");
    return (tflite_float(n, "cell_clip") == 0 && tflite_float(n, "proj_clip") == 0) ||
           tflite_error(n, E_UNSUPPORTED, "cell_clip or proj_clip");
}

bool tflite_sequence_lstm(TfliteNode *n)
{
    static const LstmInputs at = {1, 9, 12, 16, 18, 19, false};
    bool                    time_major = tflite_int(n, "time_major");

    if (tflite_int(n, "diagonal_recurrent_tensors"))
        return tflite_error(n, E_UNSUPPORTED, "diagonal_recurrent_tensors");
    return plain_lstm(n) && without(n, 20, 23, "normalized gates") &&
           tflite_done(n, steps_of(&n->b, lstm(n, &at, time_major), time_major));
}

/* The same for a second layer, from input 18 on, that goes backwards; states from 35 on. */
bool tflite_bidirectional_lstm(TfliteNode *n)
{
    static const LstmInputs at[] = {{1, 9, 12, 16, 35, 36, false}, {18, 26, 29, 33, 37, 38, true}};
    bool                    time_major = tflite_int(n, "time_major");
    const Expr             *y[2];

    if (!plain_lstm(n) || !without(n, 39, 47, "auxiliary data"))
        return false;
    for (uint32_t i = 0; i < 2; i++)
        if (!(y[i] = steps_of(&n->b, lstm(n, &at[i], time_major), time_major)))
            return false;
    if (tflite_int(n, "merge_outputs"))
        return tflite_done(n, build_concat(&n->b, 2, y, 2));
    n->out[0] = y[0];
    n->out[1] = y[1];
    return true;
}

/* Inputs: data, weights [H, I], those of the state [H, H], bias, first state. */
bool tflite_sequence_rnn(TfliteNode *n)
{
    const Build *b = &n->b;
    bool         steps = !strcmp(n->row->name, "UNIDIRECTIONAL_SEQUENCE_RNN");
    bool         time_major = steps && tflite_int(n, "time_major");
    int64_t      act = tflite_int(n, "fused_activation_function");
    RnnAttrs    *a = ATTRS(b, RnnAttrs);
    const Expr  *in[5], *y, *bias;
    Cell         k;

    if (act != 1 && act != 4)
        return tflite_error(n, E_UNSUPPORTED, "activation %lld", (long long)act);
    a->f = act == 1 ? "relu" : "tanh";
    if (!steps) /* one step */
        n->in[0] = build_expand_dims(b, n->in[0], 1, 1);
    if (!n->in[0] || !read_cell(n, 2, time_major, &k))
        return false;
    in[0] = k.x;
    in[1] = lifted(b, stacked(n, 1, (uint32_t[]){1}, 2, (int64_t[]){k.H, k.I}));
    in[2] = lifted(b, stacked(n, 1, (uint32_t[]){2}, 2, (int64_t[]){k.H, k.H}));
    if (!in[1] || !in[2] || !(bias = stacked(n, 1, (uint32_t[]){3}, 1, &k.H)))
        return false;
    in[3] =
        lifted(b, build_concat(b, 2, (const Expr *[]){bias, build_zeros(b, DT_F32, 1, &k.H)}, 0));
    in[4] = state(n, 4, &k);
    y = steps_of(b, build_proj(b, build_call(b, "nn.rnn", 5, in, a), 0), time_major);
    if (!steps && y)
        y = build_reshape_to(b, y, 2, (const Idx *[]){k.N, idx_const(b->c->arith, k.H)});
    return tflite_done(n, y);
}
