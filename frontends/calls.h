/* What frontends share of operators, beside the calls of Relay's, which are made with ops/build.h:
 * functions that frameworks have as one operator and Relay as a few calls, so that they are the
 * same kernels in the end, whichever format they came from.
 *
 *   sizes.c      sizes that operators are given      forms.c    arithmetic of shapes
 *   loops.c, lift.c   loops                          layout.c   images, NHWC or NCHW; axes
 *   branches.c   branches                        recurrent.c   recurrent layers
 *   activations.c, cells.c   cell by cell            blocks.c   shapes, blocks of pixels
 *   slices.c     slices, parts, mirrored ends        rows.c     segments, diagonals, ranges
 *   find.c       where, which values                 boxes.c, anchors.c   boxes, the best of them
 *   regions.c    regions of images                   proposals.c   regions around anchors
 *   einsum.c     sums of products                    conv.c, volume.c   convolutions
 *   random.c     random numbers                      grid.c     cells between cells
 *   complex.c    complex numbers                     fourier.c  their transforms
 *   strings.c    strings as bytes                norms.c    instances, groups of channels
 *
 * NULL and false come with an error, recorded here or by what gave a NULL argument.
 */
#ifndef TVMCC_FRONTENDS_CALLS_H
#define TVMCC_FRONTENDS_CALLS_H

#include "frontends/common.h"

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
    bool        lifts; /* what its body uses from outside becomes variables, too */
} BuildLoop;

/* The tuple of the variables' last values, perhaps with more behind them; the loop's function is
 * added to `functions`. */
const Expr *build_while(const Build *b, const BuildLoop *l, GlobalDefs *functions);

/* Round i, i64, from the states of the one before. */
typedef bool BuildRound(const Build *b, void *user, const Expr *i, const Expr *const *state,
                        const Expr **next);
/* The states after `count` rounds.  One round needs no function. */
bool build_rounds(const Build *b, const char *name, const Idx *count, uint32_t n,
                  const Expr *const *first, BuildRound *fn, void *user, const Expr **out,
                  GlobalDefs *functions);

/* ---- branches.c -------------------------------------------------------------------------------- */

/* One cell as a bool without dimensions, a constant if it is known; a number holds unless it is 0.
 * e may be NULL. */
const Expr *build_condition(const Build *b, const Expr *e);
/* out[i], n of them: yes[i] where the condition holds, else no[i], which has its type; out may be
 * one of them. */
bool build_choose(const Build *b, const Expr *cond, uint32_t n, const Expr *const *yes,
                  const Expr *const *no, const Expr **out);

typedef enum { NO_THEN_BRANCH, NO_ELSE_BRANCH, BRANCHES_DIFFER } BranchFault;
/* After the error: if inputs of one cell decide the condition (a bool, or the number of a branch),
 * a hint at the --value that does without the branch.  False. */
bool build_no_branch(const Build *b, const Shapes *s, const Expr *cond, BranchFault fault);

/* ---- lift.c ------------------------------------------------------------------------------------ */

/* Of a round of a loop: what belongs to it, and the parameters that stand for what does not, with
 * their values before the loop. */
typedef struct {
    Map *inside; /* its nodes: the variables, and what the caller says; then what depends on them */
    Map *brought; /* nodes that are used by one of them: the parameter */
    VEC(const Expr *) params, args;
} BuildLift;
void        build_lift_begin(const Build *b, BuildLift *l, uint32_t n, const Expr *const *vars);
const Expr *build_lift(const Build *b, BuildLift *l, const Expr *round);

/* ---- activations.c ------------------------------------------------------------------------------ */

const Expr *build_if_negative(const Build *b, const Expr *x, const Expr *y); /* x < 0 ? y : x */
const Expr *build_log1p(const Build *b, const Expr *x);                      /* log(1 + x) */
const Expr *build_expm1(const Build *b, const Expr *x);                      /* exp(x) - 1 */
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
const Expr *build_relu6_share(const Build *b, const Expr *x); /* clip(x + 3, 0, 6) / 6 */
const Expr *build_hard_swish(const Build *b, const Expr *x);  /* x times that */

/* ---- layout.c: images, NHWC in some formats and NCHW in Relay; lines and volumes alike ----------- */

enum { IMAGE_RANK = 4 };

/* A value of rank 3 to 5 with its channels first (NCHW), seen with its channels last (NHWC). */
bool        build_is_moved(const Expr *x);
const Expr *build_channels_first(const Build *b, const Expr *x);
const Expr *build_channels_last(const Build *b, const Expr *x);
/* Where an axis of NHWC, from 0 on, lies in values of rank `moved`, which are NCHW (0: none are);
 * in values of another rank it stays. */
int64_t moved_axis(int64_t axis, uint32_t rank, uint32_t moved);
/* The same of an axis that may be negative; false with an error: there is none. */
bool build_axis(const Build *b, int64_t axis, uint32_t rank, uint32_t moved, uint32_t *out);
/* .. of several, each once. */
bool build_axes(const Build *b, Ints v, uint32_t rank, uint32_t moved, uint32_t *count,
                int64_t *axes);
/* An operand that broadcasts with images in NHWC, as one that does with them in NCHW. */
const Expr *build_cells_moved(const Build *b, const Expr *x);
/* A reduction of what may be an image in NCHW: the mean of its rows and columns is pooling. */
const Expr *build_reduce_image(const Build *b, const char *op, const Expr *x, uint32_t n,
                               const int64_t *axes, bool keep);
/* A reduction of x, whose channels lie first, along its axes: with them (keep) in NCHW, or without,
 * what stays in NHWC's order. */
const Expr *build_reduce_moved(const Build *b, const char *op, const Expr *x, uint32_t n,
                               const int64_t *axes, bool keep);
/* Cells before and after a dimension of `in` cells: SAME gives in / stride, rounded up. */
bool build_same(const Build *b, const Idx *in, int64_t kernel, int64_t stride, int64_t dilation,
                int64_t *begin, int64_t *end);

/* ---- cells.c ---------------------------------------------------------------------------------- */

/* The angle of (x, y), from -pi to pi. */
const Expr *build_atan2(const Build *b, const Expr *y, const Expr *x);
const Expr *build_fake_quant(const Build *b, const Expr *x, double lo, double hi, int64_t bits,
                             bool narrow);
/* x * (bias + alpha * sum of squares)^-beta: of [N, C, ..], over a channel with those
 * `before` and `behind` it. */
const Expr *build_lrn(const Build *b, const Expr *x, int64_t before, int64_t behind, double bias,
                      double alpha, double beta);

/* ---- slices.c --------------------------------------------------------------------------------- */

/* Strides of strided_slice: none where each is 1. */
Ints build_steps(const Build *b, const int64_t *at, uint32_t n);
/* Where a part begins and how many cells it has, -1: up to the end. */
const Expr *build_part(const Build *b, const Expr *x, Dims begin, Dims size);
/* n parts along an axis: of these sizes, one of which may be -1, or alike (NULL). */
bool build_split(const Build *b, const Expr *x, uint32_t axis, const Ints *sizes, uint32_t n,
                 const Expr **out);
/* n parts of one cell each, without the axis. */
bool build_unstack(const Build *b, const Expr *x, uint32_t axis, uint32_t n, const Expr **out);
/* Bit i is of position i; offset: ends count from where the slice begins. */
typedef struct {
    int64_t begin, end, ellipsis, fresh, shrink;
    bool    offset;
} StrideMasks;
const Expr *build_strides(const Build *b, const Expr *x, Dims begin, Dims end, Ints step,
                          const StrideMasks *m);
/* From the last cell to the first along each of n axes. */
const Expr *build_reverse(const Build *b, const Expr *x, uint32_t n, const int64_t *axes);
/* Before and after each dimension; again: the last cell comes twice. */
const Expr *build_mirror_pad(const Build *b, const Expr *x, const int64_t *pads, bool again);

/* ---- recurrent.c ------------------------------------------------------------------------------ */

/* gates: 4 of an LSTM, 3 of a GRU, 1 of a simple layer, whose function is f ("tanh", "relu").
 * direction: "forward", "reverse", "bidirectional"; linear_before_reset: of a GRU whose reset gate
 * multiplies after the product with the state. */
typedef struct {
    uint32_t    gates;
    int64_t     hidden; /* cells of the state */
    const char *direction, *f;
    bool        linear_before_reset;
} BuildRecurrent;
/* The attributes of nn.lstm, nn.gru or nn.rnn. */
const void *build_recurrent_attrs(const Build *b, const BuildRecurrent *k);
/* What such a layer gives in all steps, [T, D, N, H], as [T, N, D*H]; y may be NULL. */
const Expr *build_recurrent_steps(const Build *b, const Expr *y);

/* ---- norms.c ---------------------------------------------------------------------------------- */

/* (x - mean) / sqrt(variance + epsilon) along n axes. */
const Expr *build_standardized(const Build *b, const Expr *x, uint32_t n, const int64_t *axes,
                               double epsilon);
/* .. of each channel, dimension 1, of x: [N, C, ..]. */
const Expr *build_instances(const Build *b, const Expr *x, double epsilon);
/* .. of each group of channels; as x: [N, groups, cells of each]. */
const Expr *build_groups(const Build *b, const Expr *x, int64_t groups, double epsilon);
const Expr *build_grouped(const Build *b, const Expr *x, int64_t groups);
/* y * gamma + beta along an axis, either of which may be NULL.  What would be 0 or 1 for all is
 * left out: it changes no more than the sign of a zero. */
const Expr *build_scaled(const Build *b, const Expr *y, const Expr *gamma, const Expr *beta,
                         uint32_t axis);

/* ---- blocks.c --------------------------------------------------------------------------------- */

/* In a shape that may have one -1. */
const Expr *build_reshape_left(const Build *b, const Expr *x, Dims v);
/* Without these dimensions, which are 1, or without all that are (n 0). */
const Expr *build_squeeze(const Build *b, const Expr *x, uint32_t n, const int64_t *axes);
/* A transpose by a permutation as a model has it. */
const Expr *build_permuted(const Build *b, const Expr *x, Ints axes);
/* Of images in NCHW, blocks of s by s. */
const Expr *build_depth_to_space(const Build *b, const Expr *x, int64_t s);
const Expr *build_space_to_depth(const Build *b, const Expr *x, int64_t s);
/* Of the dimensions behind the batch; around: what is put around or cut off, two numbers each. */
const Expr *build_space_to_batch(const Build *b, const Expr *x, Ints size, Ints around);
const Expr *build_batch_to_space(const Build *b, const Expr *x, Ints size, Ints around);

/* ---- rows.c ----------------------------------------------------------------------------------- */

/* Positions [.., M] as Relay has them, [M, ..]. */
const Expr *build_positions(const Build *b, const Expr *x);
/* Cells at positions, where others than x has are an error of the model: some cell of x is taken,
 * so that a model may count from the end beforehand or not (simplify_pick.c). */
const Expr *build_gathered(const Build *b, const Expr *x, const Expr *at, uint32_t axis,
                           int64_t batch);
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
/* "cumsum", "cumprod" .. along an axis, from its end if `back`. */
const Expr *build_scan(const Build *b, const char *op, const Expr *x, int64_t axis, bool exclusive,
                       bool back);
/* A constant: first, first + step .. before end. */
const Expr *build_range(const Build *b, DType t, double first, double end, double step);
/* How many there are; step is not 0. */
const Idx *build_range_cells(Arith *A, const Idx *first, const Idx *end, int64_t step);
/* .. between ends that dimensions decide: forms, in whole steps; they are of one type. */
const Expr *build_range_forms(const Build *b, const Expr *first, const Expr *end, const Expr *step);
/* Numbers of cells in a shape as positions, [rank, ..]. */
const Expr *build_unravel_index(const Build *b, const Expr *x, Ints dims);

/* ---- find.c ----------------------------------------------------------------------------------- */

/* Gives the dimension that holds this number, `total` of shape [1], from 0 to `most`; NULL with an
 * error. */
typedef struct {
    const Idx *(*fn)(void *user, const Expr *total, const Idx *most);
    void *user;
} BoundDim;
/* How a frontend makes one: the dimension `name`, for which --dim may give bounds; *bind is the
 * bind_dims that build_module puts around the results. */
const Idx *build_bound_dim(const Build *b, Shapes *s, const char *name, const Expr *total,
                           const Idx *most, const Expr **bind);
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

const Idx  *build_best_room(const Build *b, const Shapes *s, const Idx *boxes, const Idx *most);
const Expr *build_best_boxes(const Build *b, const Expr *boxes, const Expr *scores, const Idx *room,
                             const Expr *most, const Expr *overlap, const Expr *least);
/* The same with as many results as `most` says: -1 also where there are fewer boxes. */
const Expr *build_best_padded(const Build *b, const Shapes *s, const Expr *boxes,
                              const Expr *scores, const Idx *most, const Expr *overlap,
                              const Expr *least);
const Expr *build_picked(const Build *b, const Expr *cells, const Expr *at, const Expr *there);

/* ---- anchors.c -------------------------------------------------------------------------------- */

/* Around the middle of each cell of an image: all sizes with ratio `first`, then the first size
 * with the other ratios.  steps, offsets: of rows and columns, shares of the image; steps of 0 or
 * less: a cell. */
typedef struct {
    uint32_t nsizes, nratios;
    double  *sizes, *ratios, *steps, *offsets, first;
    bool     clip; /* to the image */
} BuildAnchors;
const Expr *build_anchors(const Build *b, const Expr *x, const BuildAnchors *a);
/* Corners, from what a network says, [.., 4], of anchors given as corners, or as middles and sizes;
 * spread: four factors; most: of logarithms of sizes, 0: any. */
const Expr *build_decoded(const Build *b, const Expr *x, const Expr *anchors, bool corners,
                          const double *spread, double most);
/* Rows by their number, [N, K] of [N, B, ..]; positions by falling scores [N, B]. */
const Expr *build_rows_at(const Build *b, const Expr *x, const Expr *at);
const Expr *build_falling(const Build *b, const Expr *scores);
/* Positions of the boxes [N, B, 4] that stay, by falling scores [N, B], -1 behind them: those with
 * a score of -inf do not.  ids: NULL, or [N, B] of boxes that are in each other's way. */
const Expr *build_kept(const Build *b, const Expr *boxes, const Expr *scores, const Expr *ids,
                       double overlap);
/* Scores of all but the best k (0: all), and of those that are not valid, become -inf. */
const Expr *build_best_scores(const Build *b, const Expr *scores, const Expr *valid, int64_t k);
/* Which of B positions are among `at`, [N, B] of bools. */
const Expr *build_marked(const Build *b, const Expr *at, int64_t N, int64_t B);

/* ---- regions.c -------------------------------------------------------------------------------- */

/* The largest cells of x [N, C, H, W] in size[0] x size[1] bins of regions [R, 5], the first number
 * of which says whose they are; 0 of a bin without cells. */
const Expr *build_roi_pool(const Build *b, const Expr *x, const Expr *regions, const int64_t *size,
                           double scale);
/* Boxes [R, 4] of y, x, y, x as shares of images [N, C, H, W], and of which image each is [R], as
 * images of one size: [R, C, size[0], size[1]]; cells outside an image are `fill`. */
typedef struct {
    int64_t size[2];
    bool    nearest;
    double  fill;
} BuildCrops;
const Expr *build_crops(const Build *b, const Expr *x, const Expr *boxes, const Expr *which,
                        const BuildCrops *k);
/* The same where the places of cells are computed, in cells of the image: [R, size[0]] along its
 * rows, [R, size[1]] along its columns. */
const Expr *build_crops_at(const Build *b, const Expr *x, const Expr *const *places,
                           const Expr *which, const BuildCrops *k);
/* How alike two images [N, C, H, W] are, one of which is moved: for each way the mean over channels
 * and a window of the products of cells, or of their distances. */
typedef struct {
    int64_t kernel, most, stride1, stride2, pad;
    bool    products;
} BuildCorrelation;
const Expr *build_correlation(const Build *b, const Expr *x, const Expr *y,
                              const BuildCorrelation *k);

/* ---- proposals.c ------------------------------------------------------------------------------ */

/* Boxes around anchors at each place, the best of which become regions. */
typedef struct {
    uint32_t nratios, nscales;
    double  *ratios, *scales, stride, threshold, least; /* least: size in the image */
    int64_t  before, after; /* how many boxes there are before and behind the choice */
    bool     corners;       /* what the network says is added to corners */
} BuildProposals;
/* scores [N, 2A, H, W], boxes [N, 4A, H, W], sizes of images [N, 3]: regions [N*after, 5] and their
 * scores [N*after, 1]. */
bool build_proposals(const Build *b, const BuildProposals *p, const Expr *scores, const Expr *boxes,
                     const Expr *sizes, const Expr **regions, const Expr **best);
/* What is said of the boxes around A anchors at each place: [N, A*k, H, W] as [N, H*W*A, k]. */
const Expr *build_by_place(const Build *b, const Expr *x, int64_t k);

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

/* ---- conv.c ----------------------------------------------------------------------------------- */

/* In which type products with x are summed up, as operators' out_dtype. */
const char *build_sum_dtype(const Expr *x);

/* x [N, C, ..] and w [O, C of a group, ..], or transposed [C, O of a group, ..], with one to three
 * dimensions behind; all sizes but N and those of x behind its channels are known.  bias NULL or
 * [O]; extra: of transposed ones, cells more at the ends.  The result has x's type; of integers of
 * 8 bits, i32. */
typedef struct {
    const Expr *x, *w, *bias;
    uint32_t    dims;
    BuildWindow window; /* its kernel is that of w */
    int64_t     extra[3], groups;
    bool        transposed;
} BuildConv;
const Expr *build_conv(const Build *b, const BuildConv *k);

/* ---- grid.c ----------------------------------------------------------------------------------- */

/* mode: "linear", "cubic", "nearest"; padding: "zeros", "border", "reflection"; align: -1 and 1 are
 * the middles of the outer cells, not their edges. */
typedef struct {
    const char *mode, *padding;
    bool        align;
} BuildSampling;

/* x [N, C, H, W] at grid [N, H', W', 2] of (x, y) from -1 to 1; or [N, C, D, H, W] at
 * [N, D', H', W', 3] of (x, y, z). */
const Expr *build_grid_sample(const Build *b, const Expr *x, const Expr *grid,
                              const BuildSampling *how);
/* A convolution of cells beside their places: x [N, C, H, W], weight [O, C/group, h, w], offset
 * [N, parts*h*w*2, H', W'] of (y, x), mask NULL or [N, parts*h*w, H', W']; a window of two
 * dimensions.  product: of batches of matrices. */
typedef struct {
    const Expr *x, *weight, *offset, *mask;
    bool        ends; /* cells go on to their far ends, and end there: else they fade to 0 */
    BuildWindow window;
    int64_t     group, parts;
    const Expr *(*product)(const Build *b, void *user, const Expr *x, const Expr *y);
    void *user;
} BuildDeformed;
const Expr *build_deform_conv(const Build *b, const BuildDeformed *d);

/* ---- complex.c --------------------------------------------------------------------------------- */

typedef struct {
    const Expr *re, *im; /* im NULL: real numbers */
} BuildComplex;
/* Real numbers come of real ones. */
typedef bool BuildComplexBinary(const Build *b, BuildComplex x, BuildComplex y, BuildComplex *out);
BuildComplexBinary build_complex_product, build_complex_quotient;
bool        build_polar(const Build *b, const Expr *size, const Expr *angle, BuildComplex *out);
const Expr *build_complex_abs(const Build *b, BuildComplex x);
const Expr *build_complex_angle(const Build *b, BuildComplex x);
/* Pairs [.., 2] of real and imaginary parts: part 0 or 1 of them, and them of both. */
const Expr *build_complex_part(const Build *b, const Expr *pairs, uint32_t part);
const Expr *build_complex_pairs(const Build *b, BuildComplex x);

/* ---- fourier.c --------------------------------------------------------------------------------- */

#define BUILD_FOURIER_MOST 4096 /* points */

/* Of `length` points to the first `bins` frequencies; inverse: back to points.  half: from the
 * first half of a spectrum back to real numbers. */
typedef struct {
    int64_t length, bins;
    bool    inverse, half;
} BuildFourier;
/* *x becomes its transform along a dimension. */
bool build_fourier(const Build *b, const BuildFourier *f, uint32_t axis, BuildComplex *x);
/* The same along the last n dimensions, of which f[n - 1] is the last. */
bool build_fouriers(const Build *b, uint32_t n, const BuildFourier *f, BuildComplex *x);

/* The same of rows [rows, points, parts], with the parts of a number beside each other; all sizes
 * may be the run's.  length: i64, one cell.  The result is [rows, bins, 2], or with half, for which
 * there are two parts, [rows, bins, 1]. */
typedef struct {
    const Idx  *points, *bins;
    const Expr *length;
    int64_t     parts;
    bool        inverse, half;
} BuildSpectrum;
const Expr *build_spectrum(const Build *b, const BuildSpectrum *f, const Expr *x);

/* ---- strings.c: [S] strings are [S, room] bytes, with zeros behind each --------------------------- */

/* The last dimension of an input of n others: as --dim INPUT.bytes says, or a default. */
InputDim string_room_dim(Shapes *s, const char *input, uint32_t n);
/* False with an error: there is none.  Warns if the default is taken, unless it is given as a
 * whole. */
bool       string_check_room(Shapes *s, Loc loc, const char *input, const Type *t, bool given);
const Idx *string_room(const Expr *x);
/* Strings whose bytes a caller gives: what is behind the first zero byte counts as zero. */
const Expr *string_input(const Build *b, const Expr *x);
/* With more room; the least that all have. */
const Expr *string_fitted(const Build *b, const Expr *x, const Idx *room);
const Idx  *string_common_room(const Build *b, uint32_t n, const Expr *const *xs);
/* Which are equal, broadcast; without the room. */
const Expr *string_equal(const Build *b, const Expr *x, const Expr *y);

/* ---- forms.c ---------------------------------------------------------------------------------- */

/* The cells of a closed, small expression of integers as forms over dimensions; false: not known.
 */
bool build_forms(const Build *b, const Expr *e, Dims *out);
/* Forms as the cells of a tensor: a constant if they are numbers, or dim_values. */
const Expr *build_values(const Build *b, const Type *t, Dims v);
const Expr *build_number(const Build *b, const Idx *v); /* an i64 */
/* That of such an expression; NULL: not known. */
const Expr *build_fold_forms(const Build *b, const Expr *e);
/* v, which is computed from `in`.  Where these are sizes and constants it is sizes, too, if its
 * forms are known; `known` has the sizes so far.  Floats on the way stay calls. */
const Expr *build_fold_sizes(const Build *b, Map *known, uint32_t nin, const Expr *const *in,
                             const Expr *v);

#endif
