/* Recurrent layers: what those of one kind of cell (lstm.c) and another (recurrent.c) share. */
#ifndef TVMCC_FRONTENDS_TFLITE_RECURRENT_H
#define TVMCC_FRONTENDS_TFLITE_RECURRENT_H

#include "frontends/tflite/tflite.h"

enum { I_GATE, F_GATE, C_GATE, O_GATE, GATES };

/* Where the inputs of one direction are; 0: there is no such input. */
typedef struct {
    uint32_t weights, cell, biases, projection, norm, state, memory, aux;
    bool     reverse;
} Inputs;

/* A layer in one direction: data [T, N, I]. */
typedef struct {
    TfliteNode   *n;
    const Inputs *at;
    const Expr   *x;
    int64_t       I, H, O; /* cells of the data, the cell and the state */
    const Idx    *T, *N;
    bool          time_major;   /* as the file has the data */
    uint32_t      first, gates; /* the gate that the others follow */
    int64_t       act;
    double        cell_clip, proj_clip;
    const Expr   *r, *bias, *peephole[GATES], *factor, *projection, *proj_bias;
    /* Of weights that stay bytes, for each row; NULL: they are floats. */
    const Expr *data_scales, *state_scales, *proj_scales;
    bool        both_ends; /* how the data for these are rounded */
} Layer;

/* Are all n weights from input `from` on that there are bytes, and the data floats? */
bool layer_is_hybrid(const Layer *k, uint32_t from, uint32_t n);
/* Weights of all gates as bytes, one above the other; and their scales. */
const Expr *layer_bytes(const Layer *k, uint32_t from, const Expr **scales);
/* x [N, K] times such weights, or floats where scales is NULL. */
const Expr *layer_product(const Layer *k, const Build *b, const Expr *x, const Expr *w,
                          const Expr *scales);

/* Input i in floats, of these dimensions. */
const Expr *layer_value(TfliteNode *n, uint32_t i, uint32_t rank, const int64_t *dims);
/* A vector for the product with the weights at `weight`. */
const Expr *layer_bias(const Layer *k, uint32_t i, uint32_t weight, const int64_t *dims);
/* Of all gates that there are, one above the other, from that of gate i on. */
const Expr *layer_gates(const Layer *k, uint32_t from, uint32_t rank, const int64_t *dims);
/* A state [N, cells]; zeros if the file says nothing else. */
const Expr *layer_state(TfliteNode *n, uint32_t i, const Idx *N, int64_t cells);
/* Data [T, N, I], with those of a layer that stands beside it at the end of each row. */
bool        layer_data(Layer *k, uint32_t x, uint32_t aux, bool time_major);
const Expr *layer_data_weights(const Layer *k);
const Expr *layer_lifted(const Build *b, const Expr *x);                /* [1, ..] */
bool        layer_any(const TfliteNode *n, uint32_t from, uint32_t to); /* inputs from .. to - 1 */

/* lstm_integer.c: of data and weights of 8 bits, a cell of 16, and the scales of what lies between.
 */
bool        lstm_is_integer(const Layer *k);
const Expr *lstm_in_integers(Layer *k);
/* Tensor i between. */
const TfliteTensor *lstm_between(const Layer *k, uint32_t i);
/* Input i is quantized so, with one scale and, if it is symmetric, the zero point 0; so are those
 * of n inputs that there are. */
bool   lstm_is_of(const Layer *k, uint32_t i, DType t, bool symmetric);
bool   lstm_are_of(const Layer *k, uint32_t from, uint32_t n, DType t);
double lstm_scale(const Layer *k, uint32_t i); /* of an input */
/* Input i as it is in the file, in i32; zeros if there is none. */
const Expr *lstm_integers(const Layer *k, uint32_t i, int64_t cells);
/* What a real limit is in that scale; 0: there is none. */
double      lstm_limit(double limit, double scale, DType t);
const Expr *lstm_limited(const Build *b, const Expr *x, double limit);
/* (q - zero) W, q of 8 bits. */
const Expr *lstm_sums(const Build *b, const Expr *q, double zero, const Expr *w);
const Expr *lstm_words(const Build *b, const Expr *x); /* within 16 bits */
/* x y / 2^bits, rounded. */
const Expr *lstm_product(const Build *b, const Expr *x, const Expr *y, int bits);
/* The first value of a state [N, cells]; `zero` where the file says none. */
const Expr *lstm_first(const Layer *k, uint32_t i, int64_t cells, DType t, double zero);

/* lstm_bytes.c: one step, of 8 bits throughout; and of the kernel BASIC. */
bool        lstm_is_of_bytes(const Layer *k);
const Expr *lstm_of_bytes(Layer *k);
bool        lstm_is_basic_integer(const TfliteNode *n);
bool        lstm_basic_in_integers(TfliteNode *n, int64_t H);

/* As cells of that input are, if it is quantized. */
const Expr *layer_rounded(const Layer *k, uint32_t i, const Expr *x);
/* What is in the states behind the layer, [N, ..] or more dimensions of as many cells; c: NULL if
 * there is none. */
bool layer_keep(Layer *k, const Expr *h, const Expr *c);
/* All results, [T, N, O], of rounds of which the states are h, c if it is not NULL, x W of all
 * steps, and the results. */
const Expr *layer_loop(Layer *k, const Expr *h, const Expr *c, const Expr *w, BuildRound *fn);
/* [T, N, O] as the layer's layout has it. */
const Expr *layer_steps(const Build *b, const Expr *y, bool time_major);

/* Two directions: data of another layer at `aux`, for which both have weights, or that the one
 * backwards reads instead; and both results. */
bool layer_data_of(Layer *k, uint32_t i, uint32_t aux, bool weights, bool time_major);
bool layer_both_done(TfliteNode *n, const Expr **y, bool time_major);

#endif
