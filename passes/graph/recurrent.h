/* What the reading of a written-out recurrent cell (recurrent_cell.c) and of the loop around it
 * (recurrent_loop.c) share. */
#ifndef TVMCC_PASSES_RECURRENT_H
#define TVMCC_PASSES_RECURRENT_H

#include "passes/graph/graph.h"

enum { MAX_TERMS = 8, MAX_GATES = 4 };

/* A term of the sum of a gate: a product, of which the gate takes `units` columns, or a bias. */
typedef struct {
    const Expr *x;          /* [rows, n]; NULL: a bias */
    const Expr *w;          /* the matrix [.., ..]; or the bias */
    bool        transposed; /* the matrix has columns before rows */
    int64_t     from;       /* first column */
    int64_t     row, nrow;  /* the rows of the matrix that x meets */
} Term;

typedef struct {
    uint32_t n;
    Term     at[MAX_TERMS];
} Sum;

typedef enum { CELL_LSTM, CELL_GRU, CELL_GRU_LINEAR, CELL_RNN } CellKind;

typedef struct {
    CellKind    kind;
    int64_t     rows, units; /* of the state: of the batch, of the layer */
    const Expr *h0;          /* the state before, of a GRU; else NULL */
    const Expr *c0, *c1;     /* an LSTM's cell before and after */
    const char *f;           /* an RNN's activation */
    uint32_t    gates;       /* in the order of the operators: i o f c, z r h */
    Sum         gate[MAX_GATES];
    Sum         inner; /* CELL_GRU_LINEAR: what r is multiplied with */
} Cell;

/* Is e, of static shape, the state after a step? */
bool        recurrent_cell(const Expr *e, Cell *out);
const Expr *without_views(const Expr *e);

#endif
