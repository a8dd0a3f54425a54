/* Matrices of scope frag, which a warp has and no thread sees a part of (Metal's SIMD-groups,
 * Vulkan's cooperative matrices), as a backend writes them.
 *
 * In TIR each thread moves its part, as if devices told which it is (LAYOUT_SIMDGROUP and its kin
 * in ir/tir/fragment.c):
 *
 *     %sum[2*t : 2] = splat(0, 2)                                fill
 *     %a.part[0 : 2] = %a.shared[8*%z + 24*%y + 2*%x : 2]        load: from 8*%z on, rows 24 apart
 *     %sum[2*t : 2] = simdgroup_f16(%a.part[0 : 2], %b.part[0 : 2], %sum[2*t : 2])
 *     %to.shared[40*%y + 2*%x : 2] = %sum[2*t : 2]               store */
#ifndef TVMCC_BACKENDS_MATRICES_H
#define TVMCC_BACKENDS_MATRICES_H

#include "ir/tir/intrin.h"

/* One of the matrices of a buffer. */
typedef struct {
    const Buffer *buffer;
    int64_t       at;
} MatrixRef;

typedef enum { MATRIX_FILL, MATRIX_LOAD, MATRIX_MULTIPLY, MATRIX_STORE } MatrixOpKind;
typedef struct {
    MatrixOpKind  kind;
    MatrixRef     it;        /* filled, loaded or stored; to which is added */
    const Prim   *value;     /* of FILL: each number */
    MatrixRef     factor[2]; /* of MULTIPLY */
    const Buffer *memory;    /* of LOAD and STORE: shared, .. */
    const Idx    *first;     /* .. the first number's place, .. */
    int64_t       apart;     /* .. and how far lines, rows of a and c, columns of b, are apart */
} MatrixOp;

/* Has the function buffers of scope frag? */
bool uses_matrices(const Func *f);

typedef struct Matrices Matrices;

/* Those of f; NULL with E_CODEGEN recorded: a thread does something else with its part. */
const Matrices *find_matrices(Ctx *c, const Func *f);
bool            has_matrices(const Matrices *m);
/* Which of an instruction's matrices those of the buffer are. */
const Intrin *matrix_row(const Matrices *m, const Buffer *b, Matrix *of);
int64_t       matrix_count(const Matrices *m, const Buffer *b);
/* What the store does; NULL: nothing to matrices. */
const MatrixOp *matrix_op(const Matrices *m, const StoreData *d);

#endif
