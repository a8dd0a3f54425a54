/* What recurrent.c and cell.c share: cells, and sequences of their steps. */
#ifndef TVMCC_FRONTENDS_KERAS_RECURRENT_H
#define TVMCC_FRONTENDS_KERAS_RECURRENT_H

#include "frontends/keras/keras.h"

typedef enum { KERAS_RNN, KERAS_LSTM, KERAS_GRU } KerasKind;
typedef struct {
    KerasNode   n; /* with the cell's settings and weights */
    KerasKind   kind;
    uint32_t    gates;
    int64_t     units;
    const char *activation, *gate;         /* functions of the state, of the gates */
    const Expr *kernel, *recurrent, *bias; /* as the file has them; bias: NULL for none */
    bool        after;                     /* GRU: r times the product, not the product of r*h */
} KerasCell;

/* How the steps are taken. */
typedef struct {
    const Expr *mask;           /* [T, N], NULL: none */
    bool        reverse, zeros; /* zeros: what masked steps give; else what the step before gave */
} KerasSteps;

typedef struct {
    const Expr *all;       /* [T, N, H], in the order of the data */
    const Expr *last;      /* [N, H], of the step that was taken last */
    const Expr *states[2]; /* [N, H] */
} KerasSequence;

bool     keras_cell(KerasImport *im, KerasLayer *l, DType t, KerasCell *k);
uint32_t keras_states(const KerasCell *k);
bool keras_sequence(KerasCell *k, const Expr *x, const KerasSteps *how, const Expr *const *states,
                    KerasSequence *out);
const Expr *keras_cell_weight(KerasCell *k, const char *name); /* NULL: none */
/* cell.c: the same by a loop, for any functions and masks. */
bool keras_by_steps(KerasCell *k, const Expr *x, const KerasSteps *how, const Expr *const *states,
                    KerasSequence *out);

#endif
