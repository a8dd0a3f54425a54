/* What frontends share, beside the calls of operators, which are made with ops/build.h.
 *
 *   shapes.c     types of inputs                  values.c   values for inputs
 *   findings.c   faults of nodes, all at once     forms.c    arithmetic of shapes
 *   sizes.c      sizes that operators are given
 *   loops.c      loops                            volume.c   convolutions of volumes
 *   layout.c     images, NHWC or NCHW             main.c     the module
 *   activations.c, cells.c  functions of cells     slices.c   slices, mirrored ends
 *   blocks.c     shapes, blocks of pixels         rows.c     segments, sequences, diagonals
 *   find.c       where, which values              boxes.c    boxes of which the best are kept
 *   einsum.c     sums of products                 random.c   random numbers
 */
#ifndef TVMCC_FRONTENDS_COMMON_H
#define TVMCC_FRONTENDS_COMMON_H

#include "frontends/frontends.h"
#include "ops/build.h"

#define MAX_ELEMS ((int64_t)1 << 40)

/* ---- shapes.c --------------------------------------------------------------------------------- */

typedef struct {
    const char *input, *name;
    uint32_t    at;
    Ints        shape; /* of its input, -1 what is not known */
} MissingDim;

typedef struct {
    const char *name;
    const Idx  *value; /* a number, or a symbolic dimension */
} KnownDim;

/* The options, and what is learned while importing: a dimension's name used twice has one value. */
typedef struct {
    Ctx                 *c;
    const ImportOptions *o;
    bool                *used, *used_dims; /* of o->shapes, o->dims */
    bool                *later;            /* of o->dims: they may be of what nodes make */
    bool                 reshaped;         /* an input has another size than the model says */
    VEC(KnownDim) dims;
    VEC(const char *) names;  /* of the model's dimensions */
    VEC(const char *) inputs; /* that were seen */
    VEC(MissingDim) missing;
} Shapes;

Shapes shapes_new(Ctx *c, const ImportOptions *o);
/* Look at each input before the first is asked for: a shape given for a later one may say what a
 * name is. */
void shapes_see(Shapes *s, const char *input, uint32_t ndim, const InputDim *dims);
/* The type of an input; ndim UINT32_MAX: the model does not say its rank.  A batch without a
 * value becomes 1 with a warning.  NULL: an error, or something is missing: go on with the others,
 * then call shapes_check. */
const Type *shapes_input(Shapes *s, Loc loc, const char *input, DType t, uint32_t ndim,
                         const InputDim *dims);
/* The element type given for an input whose model does not say one. */
DType shapes_dtype(const Shapes *s, const char *input, DType fallback);
/* Dimensions without a value, and shapes and dimensions that do not exist: E_DIM. */
bool shapes_check(Shapes *s, Loc loc, uint32_t n, const char *const *inputs);
/* The bounds that --dim gives a dimension that no input has; false: none. */
bool shapes_given(Shapes *s, const char *name, int64_t *lo, int64_t *hi);
/* The bounds that the model itself gives a dimension, for which the user's go; call it after all
 * inputs were seen. */
void shapes_bound(Shapes *s, Loc loc, const char *name, int64_t lo, int64_t hi);
/* The same of dimensions that were left for later. */
bool shapes_check_dims(Shapes *s, Loc loc);
/* A name that says no more than that the size is not known. */
bool shapes_placeholder(const char *name);
/* For a module whose types are known: do the shapes given for its inputs agree with them? */
bool shapes_check_module(Ctx *c, const Module *m, const ImportOptions *o, Loc loc);

/* ---- values.c --------------------------------------------------------------------------------- */

const ImportValue *value_given(const ImportOptions *o, const char *input); /* NULL: none */
/* The constant that an input of type t becomes. */
const Expr *value_expr(Ctx *c, Loc loc, const ImportValue *v, const Type *t);

/* ---- findings.c: a look at all nodes before anything is built ------------------------------------- */

typedef struct {
    DiagId      id;
    const char *op; /* "Conv": the fault is one of nodes; NULL: of their kind, which `text` names */
    const char *text, *hint,
        *first;              /* hint: may be NULL; first: the name of the first node with it */
    uint32_t ordinal, count; /* of that node, 0: none; how many nodes have it */
} Finding;

typedef struct {
    const char *path, *noun; /* of the model; what the format calls a node */
    VEC(Finding) list;
} Findings;

/* One node more has it: the same fault of the same kind of node is said once. */
void finding_add(Ctx *c, Findings *f, Finding x);
void finding_addv(Ctx *c, Findings *f, Finding x, const char *fmt, va_list ap); /* its text */
/* "Conv 'y': text (and 2 more nodes)", or of a kind: "text: 3 nodes, first 'y'". */
void findings_report(Ctx *c, const Findings *f);

/* One operator more of that name; `ops` has room for all, `index` is the map of one signature. */
void signature_count(Ctx *c, Map *index, ModelSignature *s, OpTally *ops, const char *name);

/* ---- main.c: inputs and results of a model ------------------------------------------------------- */

typedef struct {
    VEC(const Expr *) at;
    VEC(const char *) names; /* interned; of inputs there are more: those that are constants */
} NamedValues;
typedef VEC(GlobalDef) GlobalDefs;

/* One more; false with an error: there is one of that name, or it is no tensor; or it is NULL. */
bool result_add(Ctx *c, NamedValues *r, const char *name, const Expr *v, Loc loc);
/* main, in which the bind_dims stand around the results; it is added to the functions. */
const Module *build_module(Ctx *c, const char *path, const NamedValues *params,
                           const NamedValues *results, uint32_t nbinds, const Expr *const *binds,
                           GlobalDefs *functions);

/* ---- builders: ops/build.h ---------------------------------------------------------------------- */

#define ATTRS(b, Record) ((Record *)attrs_new((b)->c, &attrs_##Record))

/* ---- sizes.c ---------------------------------------------------------------------------------- */

/* "Conv 'y': text" */
void *build_error(const Build *b, DiagId id, const char *fmt, ...) PRINTF_LIKE(3, 4);
#define build_error(...) null_of(build_error(__VA_ARGS__))
/* A shape of as many dimensions and cells as there may be, none below 0; false with an error. */
bool build_check_shape(const Build *b, Dims shape);
/* The shape that two shapes broadcast to. */
bool build_broadcast_dims(const Build *b, Dims x, Dims y, Dims *out);

/* ---- loops.c ---------------------------------------------------------------------------------- */

/* A loop while `go` holds.  Its variables have their first values, and in each round the next ones.
 */
typedef struct {
    const char        *name;
    uint32_t           n;
    const Expr *const *var, *const *first, *const *next; /* next: of the variables */
    const Expr *first_go, *next_go;
} BuildLoop;

/* The tuple of the variables' last values; the loop's function is to be added to the module. */
const Expr *build_while(const Build *b, const BuildLoop *l, GlobalDef *made);

/* Round i, i64, from the states of the one before. */
typedef bool BuildRound(const Build *b, void *user, const Expr *i, const Expr *const *state,
                        const Expr **next);
/* The states after `count` rounds.  One round needs no function: made->name is NULL then. */
bool build_rounds(const Build *b, const char *name, const Idx *count, uint32_t n,
                  const Expr *const *first, BuildRound *fn, void *user, const Expr **out,
                  GlobalDef *made);

/* ---- activations.c ------------------------------------------------------------------------------ */

const Expr *build_if_negative(const Build *b, const Expr *x, const Expr *y); /* x < 0 ? y : x */
const Expr *build_log1p(const Build *b, const Expr *x);                      /* log(1 + x) */
const Expr *build_softplus(const Build *b, const Expr *x);                   /* log(1 + exp(x)) */
const Expr *build_softsign(const Build *b, const Expr *x);
/* Below 0: alpha * (exp(rate * x) - 1). */
const Expr *build_elu(const Build *b, const Expr *x, double alpha, double rate);
const Expr *build_selu(const Build *b, const Expr *x, double alpha, double gamma);
/* x times the normal distribution up to x, by erf or by the usual approximation. */
const Expr *build_gelu(const Build *b, const Expr *x, bool by_tanh);
const Expr *build_swish(const Build *b, const Expr *x, double rate); /* x * sigmoid(rate * x) */
const Expr *build_mish(const Build *b, const Expr *x);               /* x * tanh(softplus(x)) */
/* alpha * x + beta, from 0 to 1. */
const Expr *build_hard_sigmoid(const Build *b, const Expr *x, double alpha, double beta);
const Expr *build_hard_swish(const Build *b, const Expr *x); /* x * hard_sigmoid(x, 1/6, 1/2) */
/* ---- layout.c: images, NHWC in some formats and NCHW in Relay ---------------------------------- */

enum { IMAGE_RANK = 4 };

bool        build_is_moved(const Expr *x); /* an NCHW image, seen as NHWC */
const Expr *build_channels_first(const Build *b, const Expr *x);
const Expr *build_channels_last(const Build *b, const Expr *x);
/* Where an axis (from 0 on) of NHWC lies in NCHW; of other ranks than 4 it stays. */
int64_t moved_axis(int64_t axis, uint32_t rank);
/* An operand that broadcasts with images in NHWC, as one that does with them in NCHW. */
const Expr *build_cells_moved(const Build *b, const Expr *x);
/* A reduction of an image x in NCHW along its axes, without them; what stays, in NHWC's order. */
const Expr *build_reduce_moved(const Build *b, const char *op, const Expr *x, uint32_t n,
                               const int64_t *axes);
/* Cells before and after a dimension of `in` cells: SAME gives in / stride, rounded up. */
bool build_same(const Build *b, const Idx *in, int64_t kernel, int64_t stride, int64_t dilation,
                int64_t *begin, int64_t *end);

/* ---- cells.c ---------------------------------------------------------------------------------- */

const Expr *build_atan2(const Build *b, const Expr *y, const Expr *x);
const Expr *build_fake_quant(const Build *b, const Expr *x, double lo, double hi, int64_t bits,
                             bool narrow);
/* Of an image in NCHW, over its channels. */
const Expr *build_lrn(const Build *b, const Expr *x, int64_t radius, double bias, double alpha,
                      double beta);

/* ---- slices.c --------------------------------------------------------------------------------- */

/* Where a part begins and how many cells it has, -1: up to the end. */
const Expr *build_part(const Build *b, const Expr *x, Dims begin, Dims size);
/* Bit i is of position i; offset: ends count from where the slice begins. */
typedef struct {
    int64_t begin, end, ellipsis, fresh, shrink;
    bool    offset;
} StrideMasks;
const Expr *build_strides(const Build *b, const Expr *x, Dims begin, Dims end, Ints step,
                          const StrideMasks *m);
/* Before and after each dimension; again: the last cell comes twice. */
const Expr *build_mirror_pad(const Build *b, const Expr *x, const int64_t *pads, bool again);

/* ---- blocks.c --------------------------------------------------------------------------------- */

/* In a shape that may have one -1. */
const Expr *build_reshape_left(const Build *b, const Expr *x, Dims v);
/* Of images in NCHW, blocks of s by s. */
const Expr *build_depth_to_space(const Build *b, const Expr *x, int64_t s);
const Expr *build_space_to_depth(const Build *b, const Expr *x, int64_t s);
/* Of the dimensions behind the batch; around: what is put around or cut off, two numbers each. */
const Expr *build_space_to_batch(const Build *b, const Expr *x, Ints size, Ints around);
const Expr *build_batch_to_space(const Build *b, const Expr *x, Ints size, Ints around);

/* ---- rows.c ----------------------------------------------------------------------------------- */

/* Positions [.., M] as Relay has them, [M, ..]. */
const Expr *build_positions(const Build *b, const Expr *x);
const Expr *build_filled(const Build *b, const Expr *like, double v, Dims dims);
const Expr *build_sparse_to_dense(const Build *b, const Expr *at, Dims dims, const Expr *cells,
                                  const Expr *rest);
/* Rows into the segments that ids name: "add", "mul", "max", "min"; of those without any the
 * neutral value. */
const Expr *build_segments(const Build *b, const char *how, const Expr *x, const Expr *ids,
                           int64_t segments);
const Expr *build_reverse_rows(const Build *b, const Expr *x, const Expr *lengths, uint32_t along,
                               uint32_t batch);
const Expr *build_matrix_diag(const Build *b, const Expr *x);
const Expr *build_matrix_set_diag(const Build *b, const Expr *x, const Expr *d);

/* ---- find.c ----------------------------------------------------------------------------------- */

/* Gives the dimension that holds this number, `total` of shape [1], from 0 to `most`; NULL with an
 * error. */
typedef struct {
    const Idx *(*fn)(void *user, const Expr *total, int64_t most);
    void *user;
} BoundDim;
/* Positions of cells that are not 0, [k, rank], i64. */
const Expr *build_find(const Build *b, const BoundDim *bound, const Expr *x);
/* Values in the order in which they come first, and of each cell the number of its value, i64. */
typedef struct {
    const Expr *values, *number;
} UniqueCells;
bool build_unique(const Build *b, const BoundDim *bound, const Expr *x, UniqueCells *out);

/* ---- einsum.c --------------------------------------------------------------------------------- */

/* product: of matrices, or of batches of them. */
typedef struct {
    const char        *equation;
    uint32_t           n;
    const Expr *const *x;
    const Expr *(*product)(const Build *b, void *user, const Expr *x, const Expr *y);
    void *user;
} BuildEinsum;
const Expr *build_einsum(const Build *b, const BuildEinsum *s);

/* ---- random.c --------------------------------------------------------------------------------- */

typedef struct {
    uint32_t counter[4], key[2];
} Philox;
Philox philox_new(uint64_t seed, uint64_t seed2);
void   philox_next(Philox *p, uint32_t *out); /* the next four */
/* A constant: numbers in [0, 1) if flat, else normal ones. */
const Expr *build_random(const Build *b, Philox p, bool flat, Ints shape);
/* How many cells of that shape; false with an error: too many. */
bool random_cells(const Build *b, uint32_t rank, const int64_t *dims, int64_t *cells);

/* ---- boxes.c ---------------------------------------------------------------------------------- */

const Expr *build_best_boxes(const Build *b, const Expr *boxes, const Expr *scores, int64_t room,
                             const Expr *overlap, const Expr *least);
/* The same for any `most`: -1 also where there are fewer boxes. */
const Expr *build_best_padded(const Build *b, const Expr *boxes, const Expr *scores, int64_t most,
                              const Expr *overlap, const Expr *least);
const Expr *build_picked(const Build *b, const Expr *cells, const Expr *at, const Expr *there);

/* ---- volume.c: convolution and pooling of [N, C, D, H, W] ---------------------------------------- */

/* Along depth, height and width. */
typedef struct {
    int64_t kernel[3], stride[3], dilation[3], begin[3], end[3];
} BuildWindow;
/* How it counts the padding and what hangs over it. */
typedef struct {
    bool ceil_mode, count_include_pad;
} BuildPooling;

/* out_dtype: of the sums, "": that of x */
const Expr *build_conv_volume(const Build *b, const Expr *x, const Expr *w, const BuildWindow *win,
                              int64_t group, const char *out_dtype);
/* extra: cells more at the ends */
const Expr *build_conv_transpose_volume(const Build *b, const Expr *x, const Expr *w,
                                        const BuildWindow *win, const int64_t *extra,
                                        int64_t group);
const Expr *build_pool_volume(const Build *b, const char *op, const Expr *x, const BuildWindow *w,
                              BuildPooling how);

/* ---- forms.c ---------------------------------------------------------------------------------- */

/* The cells of a closed, small expression of integers as forms over dimensions; false: not known.
 */
bool build_forms(const Build *b, const Expr *e, Dims *out);
/* Forms as the cells of a tensor: a constant if they are numbers, or dim_values. */
const Expr *build_values(const Build *b, const Type *t, Dims v);
/* That of such an expression; NULL: not known. */
const Expr *build_fold_forms(const Build *b, const Expr *e);
/* v, which is computed from `in`.  Where these are sizes and constants it is sizes, too, if its
 * forms are known; `known` has the sizes so far.  Floats on the way stay calls. */
const Expr *build_fold_sizes(const Build *b, Map *known, uint32_t nin, const Expr *const *in,
                             const Expr *v);

#endif
