/* Instructions of targets as rows of a table (ir/tir/intrin.def): what a unit computes, as TE.
 *
 * A prim of kind PRIM_INTRIN is one instruction, or several of them side by side: its kids are
 * vectors that hold the operands' cells.  All that asks what it means asks the description:
 * `tensorize` and `vectorize` find a nest that computes it (intrin_match), the interpreter and
 * backends that have no such instruction write it out (intrin_expand). */
#ifndef TVMCC_IR_TIR_INTRIN_H
#define TVMCC_IR_TIR_INTRIN_H

#include "ir/tir/tir.h"

enum { INTRIN_OPERANDS = 3, INTRIN_AXES = 6 };

/* An operand or the result of one unit, row-major. */
typedef struct {
    const Buffer *buffer;
    DType         dtype;
    uint32_t      cells;
    int64_t       by[INTRIN_AXES]; /* cells from one value of each axis to the next */
} IntrinBox;

struct Intrin {
    IntrinId    id;
    const char *text;
    uint32_t    n; /* operands; of a sum the last is what the result held */
    IntrinBox   operand[INTRIN_OPERANDS], result;
    bool        sums;
    /* All threads of a warp compute it together, each with such parts; NULL: one does alone. */
    const struct WarpLayout *warp;
    bool                     group; /* .. of four warps */
    bool                     lanes; /* .. each has a cell of the operand and the result (lanes.c) */
    uint32_t    naxis, nreduce;     /* the result's axes, and behind them those of the sum */
    int64_t     extent[INTRIN_AXES];
    const Prim *step; /* the value of a cell, of a sum after one step */
};

const Intrin *intrin_of(Ctx *c, IntrinId id);
void          intrins_free(Ctx *c);
const char   *intrin_text(IntrinId id);
const char   *intrin_te(IntrinId id);
/* The row of that text for operands of these types, whose lanes do not count; of several rows with
 * the text the first for n = 0.  NULL: there is none. */
const Intrin *intrin_find(Ctx *c, const char *text, uint32_t n, const DType *operand);

/* It moves cells past the thread's registers and does nothing else (async_copy); loops that are
 * such an instruction. */
bool intrin_copies(const Intrin *row);
bool loop_copies(Ctx *c, const LoopData *l);
/* Loops that are products of four warps, which go on beside the threads that start them. */
bool loop_is_of_group(Ctx *c, const LoopData *l);

/* How many instructions the target needs for a unit's worth of a register; 0: it has none, or they
 * are no quicker than the single operations. */
uint32_t intrin_ops(Ctx *c, const char *text, DType a, DType b);

/* The kids of one instruction: operand i has all cells of `lanes` / row->cells units, or those of
 * one, which are then the same for all. */
bool        intrin_fits(const Intrin *row, uint32_t n, const Prim *const *kids);
const Prim *prim_intrin(Ctx *c, const Intrin *row, const Prim *const *kids);
/* The same by single operations on vectors. */
const Prim *intrin_expand(Ctx *c, const Prim *p);
const Func *intrins_expand(Ctx *c, const Func *f);

/* ---- fragment.c: what the threads of a warp have of an instruction's matrices --------------------- */

enum {
    WARP_BYTES = 16, /* of an access */
    WARP_MOST = 64,  /* threads of a warp */
    WARP_PART = 32   /* bytes that a thread has of a matrix, at most */
};

/* A digit of the number of a row, column or piece: from / over % size, of the thread's place along
 * x or y or of the number of its own piece. */
typedef enum { BY_X, BY_Y, OWN } WarpFrom;
typedef struct {
    uint8_t from, over, size;
} WarpDigit;
/* Rows of a and columns of b by pieces of the sum; rows of the result by columns. */
typedef enum { MATRIX_A, MATRIX_B, MATRIX_C, MATRICES } Matrix;
typedef struct WarpLayout {
    uint8_t   x, y;               /* threads */
    bool      ldmatrix;           /* operands are words, which that instruction hands out */
    bool      opaque;             /* devices do not tell who has which part: scope frag */
    WarpDigit of[MATRICES][2][2]; /* of either coordinate, the first counts more */
} WarpLayout;
typedef enum {
    LAYOUT_NVIDIA,
    LAYOUT_CDNA,
    LAYOUT_RDNA3,
    LAYOUT_RDNA4,
    LAYOUT_SIMDGROUP,
    LAYOUT_COOPERATIVE,
    LAYOUT_LANES32, /* no matrices: threads alone */
    LAYOUT_LANES64
} LayoutId;

const WarpLayout *warp_layout(LayoutId id);
uint32_t          warp_threads(const WarpLayout *l);
/* How many values a coordinate has (0: rows of a and of the result, columns of b); how many of them
 * a thread's own pieces have; how many pieces it has; bytes of an operand's. */
uint32_t warp_side(const WarpLayout *l, Matrix m, uint32_t coordinate);
uint32_t warp_own(const WarpLayout *l, Matrix m, uint32_t coordinate);
uint32_t warp_pieces(const WarpLayout *l, Matrix m);
uint32_t warp_piece_bytes(const Intrin *row, Matrix m);
/* What the threads get for what they give: kid[k][t] is what thread t has for operand k. */
void warp_compute(const Intrin *row, uint8_t (*const *kid)[WARP_PART], uint8_t (*out)[WARP_PART]);

/* ---- warp.c: nests that the threads of a warp compute together ------------------------------------ */

bool is_warp_store(const Stmt *s);
/* It fills, loads, multiplies or stores matrices of scope frag. */
bool is_matrix_store(const StoreData *d);
/* A nest whose tiles are such products: the loops that count tiles, outermost first, and the three
 * that are a thread's part of one: of its rows, of its columns (NULL: it has one), of the sum. */
typedef struct {
    const Intrin   *row;
    uint32_t        ntiles;
    const LoopData *tile[INTRIN_AXES], *part[3];
    Matrix          side[INTRIN_AXES]; /* a tile of other rows (a) or of other columns (b) */
    const Atom     *x, *y;             /* threadIdx.x, threadIdx.y: a warp's */
    const Atom     *z;                 /* threadIdx.z, of which four are a group; or NULL */
    const Prim     *a, *b;             /* loads of shared memory */
} WarpMatch;
/* `thread`: the loops over the threads of a block, of x, y and z; NULL where there is none. */
bool warp_match(Ctx *c, const char *text, const LoopData *const thread[3], uint32_t nloops,
                const LoopData *const *loops, const StoreData *store, WarpMatch *out);
/* The nest as loads of the operands' parts and products; NULL: operands do not lie on borders of 16
 * bytes, or of a piece. */
const Stmt *warp_stmt(Ctx *c, const WarpMatch *m, const StoreData *store);

/* ---- group.c: instructions of four warps -------------------------------------------------------- */

enum {
    GROUP_WARPS = 4,
    GROUP_THREADS = 128,
    GROUP_ROWS = 64,     /* of an instruction */
    GROUP_UNITS = 32,    /* of 8 columns, at most */
    GROUP_LINE = 128,    /* bytes of a row of either side, .. */
    GROUP_BORDER = 1024, /* .. of which eight begin on such a border */
    UNIT_NUMBERS = 4     /* of a thread, of a unit's result */
};

/* How far from where eight rows begin the cell lies that is `at` cells on where rows lie one after
 * the other. */
int64_t group_cell(DType t, int64_t at);
/* The nest, which is one with a row of GROUP, as an instruction; NULL: operands do not lie so. */
const Stmt *group_stmt(Ctx *c, const WarpMatch *m, const StoreData *store);

/* ---- lanes.c: reductions among the threads of a warp ---------------------------------------------- */

/* What all threads get for the cells that they give: kid[0][t] is thread t's, kid[1][t] what its
 * result held before. */
void lanes_compute(const Intrin *row, uint8_t (*const *kid)[WARP_PART], uint8_t (*out)[WARP_PART]);

/* ---- intrin_match.c ------------------------------------------------------------------------------ */

/* A nest that computes a row: what the instruction reads, and where its result goes.  Operands are
 * loads of one cell over the variables of the loops; `apart` are those whose cells are no
 * neighbours, but near each other. */
typedef struct {
    const Intrin *row;
    const Prim   *operand[INTRIN_OPERANDS];
    bool          apart[INTRIN_OPERANDS];
    const Atom   *var[INTRIN_AXES]; /* of the loop that is each axis */
    const Idx    *lo[INTRIN_AXES];
    const Prim   *where; /* zeros are copied where it does not hold; NULL: nowhere */
} IntrinMatch;

/* Some row of that text computes what `store` does in the loops around it, outermost first. */
bool intrin_match(Ctx *c, const char *text, uint32_t nloops, const LoopData *const *loops,
                  const StoreData *store, IntrinMatch *out);
/* How many cells further a load reads with the next value of var; false: that differs. */
bool intrin_step(Ctx *c, const LoadData *l, const Atom *var, int64_t *cells);
/* The nest as one store. */
const Stmt *intrin_stmt(Ctx *c, const IntrinMatch *m, const StoreData *store);
/* ... of a row with lanes, by thread x of the warp. */
const Stmt *lanes_stmt(Ctx *c, const IntrinMatch *m, const StoreData *store, const Idx *x);

#endif
