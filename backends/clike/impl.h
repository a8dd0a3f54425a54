/* What the parts of the printer share.
 *
 *   clike.c  statements, functions
 *   names.c  names for values used more than once
 *   prim.c   expressions
 *   index.c  indices; numbers of loop variables and buffers */
#ifndef TVMCC_BACKENDS_CLIKE_IMPL_H
#define TVMCC_BACKENDS_CLIKE_IMPL_H

#include "backends/clike/clike.h"

typedef VEC(const Prim *) PrimList;

typedef struct {
    Ctx                *c;
    const ClikeDialect *d;
    const Func         *f;
    StrBuf             *out;
    int                 depth;
    Map                *temps;   /* prim id -> name, within one statement */
    Map                *uses;    /* prim id -> count, within one statement */
    PrimList            shared;  /* prims used twice, within one statement: bits of `sure` */
    Map                *bits;    /* prim id -> its place in `shared` + 1 */
    Map                *sure;    /* prim id -> set of shared values that are computed when it is */
    Map                *walked;  /* prims that `declare` has been at, in the block at hand */
    PrimList            named;   /* in the order of their names: those of a block are forgotten */
    Map                *numbers; /* of loop variables and buffers: id -> n + 1 */
    uint32_t            next_temp, next_var, next_buffer;
    const Idx          *axis[AXIS_COUNT]; /* extents of the launch */
    bool                failed;
} Clike;

/* ---- clike.c ---- */

void        clike_indent(Clike *x);
const char *clike_cell(const Clike *x, const Buffer *b); /* behind its name, without dimensions */

/* ---- names.c ---- */

void clike_fresh(Clike *x); /* a statement begins: no value has a name */
/* p as text for one statement, its shared values declared before. */
const char *clike_expression(Clike *x, const Prim *p);

/* ---- prim.c ---- */

const char *clike_type(Clike *x, DType t); /* E_CODEGEN if the language has none */
void        clike_prim(Clike *x, const Prim *p, StrBuf *s);
void        clike_node(Clike *x, const Prim *p, StrBuf *s); /* ... were it to have no name */

/* ---- index.c ---- */

uint32_t clike_var(Clike *x, const Atom *a);      /* i<n> */
uint32_t clike_buffer(Clike *x, const Buffer *b); /* b<n> */
void     clike_index(Clike *x, const Idx *i, StrBuf *s);

#endif
