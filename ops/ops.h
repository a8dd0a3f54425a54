/* Operators: the table, and the attribute records as structs. */
#ifndef TVMCC_OPS_H
#define TVMCC_OPS_H

#include "ir/te/te.h"

/* The C type of an attribute field, by its ATTR_ name. */
typedef int64_t     AttrC_INT;
typedef bool        AttrC_BOOL;
typedef double      AttrC_FLOAT;
typedef const char *AttrC_STR;
typedef DType       AttrC_DTYPE;
typedef Ints        AttrC_INTS;
typedef Floats      AttrC_FLOATS;
typedef Dims        AttrC_DIMS;

#define RECORD(name) typedef struct name {
#define FIELD(record, name, type, fallback) AttrC_##type name;
#define END(name) \
    }             \
    name;         \
    extern const AttrRecord attrs_##name;
#include "ops/attrs.def"
#undef RECORD
#undef FIELD
#undef END

/* Ids: OP_NN_CONV2D; the row is op_table.at[OP_NN_CONV2D]. */
typedef enum {
#define OP(id, ...) OP_##id,
#include "ops/ops.def"
#undef OP
    OP_COUNT
} OpId;

extern const OpTable op_table;

/* ---- variants: another algorithm for the same call ------------------------------------------------ */

/* How nn.conv2d multiplies (its attribute `algorithm`): element by element; four products of bytes
 * a step; two of i16, bytes being widened as they are padded; in f32, where all sums are whole;
 * with all lanes of blocks, those that are no channel, too. */
typedef enum { CONV_DIRECT, CONV_DOT4, CONV_WORDS, CONV_FLOATS, CONV_BLOCKS } ConvAlgorithm;

/* All sizes of one nn.conv2d. */
typedef struct {
    ConvAlgorithm algorithm;
    int64_t       in_block, out_block; /* 0: plain */
    int64_t       groups, in_c, out_c; /* channels of all groups */
    int64_t       group_in, group_out; /* channels of one */
    int64_t       k[2], stride[2], dilation[2], pad_lo[2], pad_hi[2];
    int64_t       pad_value;
    bool          depthwise; /* one input channel a group */
    bool          within;    /* more, but blocks of channels hold whole groups */
    int64_t       columns;   /* of the kernel as computed: k[1], or more with weights of zero */
    int64_t       part;      /* channels of an input block that the sum takes at a time */
} Conv2d;
/* Blocks of that many channels hold whole groups of so many, and what a block of outputs reads lies
 * in one block of inputs. */
bool conv2d_groups_within(int64_t group_in, int64_t group_out, int64_t block);

/* Those of a typed call. */
bool conv2d_of(Ctx *c, const Expr *conv, Conv2d *v);
/* Columns of the kernel are taken together: neighbours along a row, not channels, make the steps of
 * dot4 and words. */
bool conv2d_by_columns(const Conv2d *v);
/* Does a tap whose first place reads cell `at` of a dimension (below 0: of the padding) meet one of
 * its `size` cells, for one of `out` places? */
bool conv_tap_is_live(int64_t at, int64_t stride, int64_t size, int64_t out);
/* Its sums of 8-bit integers are exact in f32. */
bool conv2d_sums_are_whole(const Conv2d *v, DType data, DType weight);
/* Columns of weights of zero that the formula of this nn.conv2d takes behind the kernel's own, so
 * that a step of a sum of bytes is whole: it reads that many more cells at the end of a row. */
int64_t conv2d_surplus_columns(Ctx *c, const Expr *conv);

/* nn.conv2d as Winograd's, with tiles of 2, 4 or 6 (of a 3x3 kernel; tile + 2 cells of input), if
 * its stride is 1, its kernel of at most tile + 1, and blocks divide its channels, and its groups
 * or the other way round.  The weight's transform is a call of its own, to be folded. */
bool conv2d_suits_winograd(const Expr *conv, int64_t tile);
/* Where a run decides how many tiles there are, parts of them are at most so many. */
enum { WINOGRAD_OPEN_TILES = 48 };
/* Cells of a tile along an axis, by the size of a 3x3 kernel's; 0: not for this kernel. */
int64_t winograd_cells(int64_t tile, const int64_t k[2], uint32_t axis);
/* Cells that a short tile of `edge` outputs of a kernel of k has of its a. */
int64_t     winograd_short_cells(int64_t a, int64_t k, int64_t edge);
const Expr *conv2d_winograd(Ctx *c, const Expr *conv, int64_t tile, bool short_tiles);

/* nn.dense as Strassen's product, if dimensions are even numbers.  The weight's transform is a call
 * of its own, to be folded. */
bool        dense_suits_strassen(const Expr *dense);
const Expr *dense_strassen(Ctx *c, const Expr *dense);

/* Rows of numbers can be sorted by a network, of which so many are wanted: of a length that is a
 * number, in tensors of not too many dimensions. */
bool sort_suits_network(const Type *x, uint32_t axis, const Idx *wanted);
/* Bytes of what such a network compares: of an element's key. */
int64_t sort_key_bytes(DType t);
/* What is in order of a row: `valid` cells in runs of `width` each, of which the last may be
 * shorter; how they came so: by networks of so many cells (0: by merges of pairs of runs). */
typedef struct {
    int64_t runs, width, valid, network;
} SortRuns;
/* One step further, where the first k are wanted; the first is from n runs of a cell each. */
SortRuns sort_next(const SortRuns *from, int64_t k, int64_t chunk);
/* How often 1 is doubled until it is n or more: rounds of such sums, stages of a network. */
int64_t doublings(int64_t n);
/* Rows of numbers can be summed up by doubling. */
bool scan_suits_doubling(const Type *x, uint32_t axis);

/* ---- what passes ask about a call ----------------------------------------------------------------- */

/* Where a strided_slice begins, one position a dimension; false: its steps are not all 1. */
bool slice_begin(Ctx *c, const Expr *slice, int64_t *begin);
/* Where a strided_slice begins along a dimension, and its step; false: it takes all of it. */
bool slice_along(Ctx *c, const Expr *slice, uint32_t axis, const Idx **begin, int64_t *step);
/* Part i of a split: its range along the axis; false: it depends on symbolic dimensions. */
bool split_range(Ctx *c, const Expr *split, uint32_t i, int64_t *lo, int64_t *hi);

/* What a call of an operator that is simpler ones becomes, and a field of a tuple that is written;
 * `e` where it is neither.  NULL after an error. */
const Expr *op_expand(Ctx *c, const Expr *e);
#define MAX_EXPANSIONS 8 /* one within the other */

/* Can it be differentiated (ops/gradient/adjoints.def)?  What expands into others need not. */
bool op_has_adjoint(const Op *op);

/* ---- macs.c --------------------------------------------------------------------------------------- */

/* Multiply-adds of a run of the module, which is typed: those that the model asks for, whatever its
 * compiled code does; at most, where dimensions are dynamic; of one round, where a run decides how
 * many a loop has. */
int64_t relay_macs(Ctx *c, const Module *m);
/* Its constants of at least one dimension, each once. */
typedef struct {
    uint32_t n;
    int64_t  cells, bytes;
} WeightCount;
WeightCount count_weights(Ctx *c, const Module *m);
/* Calls of each operator, by its id, in all functions that a run may come to; in c->arena. */
uint32_t *count_operators(Ctx *c, const Module *m);

#endif
