/* Rules for CPUs, and what they share (common.c).
 *
 *   conv2d.c     blocked direct convolution, 1x1 as GEMM, first layers   depthwise.c
 *   open.c       both where a run decides the size of the image
 *   groups.c     convolution in groups that are narrower than a vector
 *   cut.c        convolution whose taps meet data on a part of the image
 *   pair.c       both of these as one
 *   planar.c     convolution without blocks, in groups
 *   plain.c      what tiles of first layers and depthwise convolutions take
 *   dense.c      GEMM and GEMV
 *   dot.c        both for 8-bit integers
 *   attention.c  two products with softmax between them  linear_attention.c  by a state
 *   pool.c       pooling
 *   reduce.c     softmax, norms, reductions            short_rows.c  of rows as lanes
 *   recurrent.c  LSTM, GRU, RNN                        scan.c  running sums
 *   transpose.c  what lies across its operand: tiles turned in registers
 *   tile.c       the register tile of all products
 *   injective.c  the rest                              positions.c  of which memory says some
 *   divide.c     loops that threads divide */
#ifndef TVMCC_SCHEDULES_CPU_H
#define TVMCC_SCHEDULES_CPU_H

#include "schedules/schedules.h"

/* Lanes of the widest vector for 4-byte elements, at least 1. */
int64_t cpu_lanes(const Sched *s);
/* n cells are a vector, the widest or a narrower one: blocks of channels may be either. */
bool is_block(const Sched *s, int64_t n);
/* Lanes for an innermost dimension of n: all of it where that is a vector, else the widest. */
int64_t inner_lanes(const Sched *s, int64_t n);
/* A loop of so many cells as vectors, %<names>o of %<names>i if they are several; what is left over
 * too, if it has `least` cells. */
void loop_vectors(Sched *s, const char *loop, int64_t cells, int64_t lanes, int64_t least,
                  const char *names);
/* Domain of a block's iterator by name, 0 if it has none; of a symbolic one the largest. */
int64_t iter_extent(const Sched *s, const char *block, const char *iter);
bool    is_symbolic(const Sched *s, const char *block, const char *iter);
/* Of a symbolic one what its extents are multiples of, as far as its form tells: 16 of 16*W. */
int64_t iter_unit(const Sched *s, const char *block, const char *iter);
/* Extent of a loop by its name, 0 if there is none. */
int64_t loop_extent(const Sched *s, const char *loop);
bool    has_block(const Sched *s, const char *block);

/* The tile of a matrix product, and how much of k a panel takes at a time (dense.c), as decisions
 * of these names.  `whole`: only vectors of a panel that divide all; `part`: what the last vector,
 * alone, takes of a whole one's cycles; `times`: how many such products there are. */
RegTile pick_gemm_tile(Sched *s, const char *name, int64_t vectors, Rows rows, int64_t k,
                       bool whole, double part, int64_t times);
int64_t pick_gemm_chunk(Sched *s, const char *name, const Panels *panels);
/* Steps of a chunk that are written out. */
int64_t pick_steps(Sched *s, const char *name, const Panels *panels, int64_t chunk);
/* A tensor [.., k, n], with `batch` dimensions before, in panels as a product reads them. */
void pack_columns(Sched *s, const char *tensor, uint32_t batch, int64_t width);

/* The iterators of a convolution's block; 0 for those that it has not. */
typedef struct {
    int64_t     lanes, n, o, y, x, c, kh, kw, i; /* o, c in blocks; i is 1 for planar input */
    int64_t     group;                           /* blocks of outputs that read the same channels */
    const char *row, *line, *kernel_row, *kernel_line; /* names of y, x, kh, kw */
} ConvSizes;
ConvSizes conv_sizes(const Sched *s);
/* ... of which x is the longer way where an image is one pixel wide: y, x and kh, kw change places.
 */
ConvSizes conv_lines(const Sched *s);
/* Channels that an output adds up; 0 of depthwise ones. */
int64_t conv_channels(const ConvSizes *z);
/* Steps of the reduction: channels and cells of the kernel. */
int64_t conv_steps(const ConvSizes *z);
/* Multiply-adds of vectors. */
double conv_madds(const ConvSizes *z);
/* Which of its outer loops is outside, and how decisions call it. */
enum { ROWS_FIRST, OUTPUTS_FIRST };
extern const char *const conv_orders[];
/* Input blocks of a chunk of its reduction, with tiles of nv vectors; weights packed for them. */
int64_t conv_chunk(const Sched *s, const ConvSizes *z, int64_t nv);
void    conv_pack(Sched *s, const ConvSizes *z, int64_t nv);
/* The convolution of an image whose size a run decides; false: it has another. */
bool conv2d_open(Sched *s, const ConvSizes *z);
/* How a convolution in groups of at most a vector of outputs reads a row. */
typedef struct {
    int64_t lanes, kw, stride, dilation;
    int64_t spread; /* channels of a group where a vector holds several, else 0 */
} GroupRow;
/* How its block reads the data, or the padded copy of them; NULL: not in this form. */
const LoadData *conv_data(const Sched *s);
/* A pixel of an output is a sum over the channels of that pixel alone, so that rows need not be
 * told apart. */
bool conv_is_pointwise(const Sched *s, const ConvSizes *z);
/* Its data have a border that takes the place of the padded copy. */
bool     has_halo(const Sched *s);
GroupRow group_row(const Sched *s, const ConvSizes *z);
/* Cycles of a step of its reduction, all columns of the kernel, over a line of so many pixels. */
double group_row_cycles(const Machine *m, const GroupRow *r, int64_t line);
/* Numbers that n pixels of a line read in a row of the kernel, each once (plain.c). */
int64_t row_numbers(const GroupRow *r, int64_t n);
/* Lines of so many pixels, whose numbers come one by one, by a kernel of so many rows in all
 * channels; `move` as of TileEnd. */
typedef struct {
    GroupRow row;
    int64_t  line, rows;
    bool     joined; /* several rows are the line, each tile written out for itself */
    double   move;
} PlainWork;
/* Cycles of a line in tiles of at most t.pixels, the columns of the kernel written out or not. */
double plain_line_cycles(const Machine *m, const PlainWork *w, RegTile t, bool written);
/* They are best written out, and are not too much code. */
bool plain_written(const Machine *m, const PlainWork *w, RegTile t);
enum { MOST_LINE = 128 }; /* pixels of joined rows */
/* Rows that are walked as one line: short ones are joined until tiles are full. */
int64_t joined_rows(const Machine *m, int64_t y, int64_t x);
/* Cells that a block looks at; 0 if there is no such block. */
int64_t block_work(const Sched *s, const char *block);

/* Everything between the anchor and the last block is inlined into the last; returns its name, or
 * NULL if the anchor is the last. */
const char *inline_epilogue(Sched *s, const char *anchor);
/* Elementwise blocks before the anchor are inlined into it, but for copies: `pad`, `panel`. */
void inline_prologue(Sched *s, const char *anchor);
/* What most rules begin with: both of these, and between them a bias is where sums start, products
 * are contracted and, if `halo`, padding is read from the input's border.  As inline_epilogue. */
const char *prepare_anchor(Sched *s, const char *anchor, bool halo);
/* Pixels of a row that a depthwise convolution sums at a time, as the decision `pixels`: one vector
 * of weights and one of what is between stay beside the sums. */
int64_t pick_depthwise_pixels(Sched *s, int64_t x);
/* Blocks that the y rows of an image are divided into before its channels are. */
int64_t row_blocks(const Sched *s, int64_t y);
/* So few multiply-adds that a second thread costs more than it brings; the same of a kernel all of
 * whose blocks are estimated by what a cell loads and computes. */
bool is_tiny(const Sched *s, int64_t work);
bool is_tiny_kernel(const Sched *s);
/* Divides nested loops, outermost first, among the threads: the first one, or as many as one loop
 * of this name as are even parts (divide.c).  False: nothing is divided. */
bool divide_loops(Sched *s, const char *name, const char *const *loops, uint32_t n);
/* Rows of a block of an image, of y: all, where these are even parts for all threads, else those
 * of `row_blocks`. */
int64_t block_rows(const Sched *s, int64_t y);
/* Divides the loops %yb, `channels` and `rows`, those of a block, by rows before channels. */
bool divide_image(Sched *s, const char *channels, const char *rows);
/* What a cell of the block loads and computes. */
CellWork cell_work(const Stmt *block);

/* A register tile of sums (tile.c).  Loops are named without %, lists of them as a step takes them,
 * outermost first. */
typedef struct {
    const char *block;
    const char *line;          /* the loop whose pixels, or rows, tiles hold; */
    const char *joined;        /* the one around it that becomes part of it first, or NULL */
    const char *tiles, *pixel; /* what it becomes: tiles, and pixels of one, */
    int64_t     pixels;        /* so many at most */
    bool        each;          /* of symbolic lines: what is left over is one piece */
    const char *sums;          /* list: the reduction of a tile, */
    const char *round;         /* its last loop, where several steps are written out: */
    int64_t     steps;         /* so many; 0, 1: one */
    const char *vectors;       /* list: outputs, and what is inside of them */
    const char *four;          /* the innermost loop where it is one instruction, or NULL */
    const char *instruction;   /* which: dot4, dot2 */
    const char *lane;          /* the loop over the lanes of a vector */
    const char *unroll;        /* list: what is written out */
    const char *out;           /* the block that is computed where sums are stored, or NULL */
    bool        chunks;        /* the reduction has loops outside of the tile */
} TileNest;
/* The next lower height of tiles that makes more of a line of so many pixels; 0: there is none. */
int64_t lower_tile(int64_t line, int64_t pixels);
/* What happens when a tile's sums are complete. */
typedef struct {
    double steps; /* of the reduction before */
    double move;  /* cycles for what is stored and read of a vector of sums, beyond L2 */
} TileEnd;
TileEnd tile_end(const Sched *s, const ConvSizes *z, const char *out);
/* Images of so many dimensions, as large as the result, that are stored, or read beside the sums.
 */
int64_t result_streams(const Sched *s, const char *out, uint32_t ndim);
/* Tiles of a convolution that are worth a choice, with the cycles of all multiply-adds. */
typedef struct {
    int64_t          lanes, vectors, line, parts; /* as of tile_best */
    double           madds;                       /* of vectors */
    const TileEnd   *end;                         /* NULL: not known */
    const PlainWork *plain;                       /* NULL: numbers come in blocks */
} TileWork;
void    tile_candidates(Candidates *k, const Machine *m, const TileWork *w);
RegTile pick_reg_tile(Sched *s, const char *name, const Candidates *k);
/* The divisors of n, none of them estimated. */
void divisors(Candidates *k, int64_t n);

/* A block's sums are in registers inside of a loop, and what they multiply is loaded in time. */
void sums_in_registers(Sched *s, const char *block, const char *at);
/* TapCuts the line, puts the tile's loops in order and its sums into registers. */
void tile_sums(Sched *s, const TileNest *n);
/* Lanes and what is written out: when all of its loops are cut. */
void tile_marks(Sched *s, const TileNest *n);

/* %w is a constant, so its packed form is made at compile time (dense.c). */
bool is_packed(const Sched *s);

/* dot.c: convolutions and products of small integers by dot4 (false: not this one). */
bool conv2d_dot(Sched *s);
/* Cells of an axis of a convolution that have the same taps, all of which meet data, or that meet
 * none (one is counted); up to so many strips of them, 0: there are more. */
enum { MOST_STRIPS = 32 };
typedef struct {
    int64_t at, cells, taps;
} Strip;
typedef struct {
    uint32_t n;
    Strip    of[MOST_STRIPS];
} Strips;
typedef struct {
    Strips y, x;
} TapCuts;
/* Where zeros around the image make the taps of `conv` change (cut.c); false: nowhere, or it is not
 * known. */
bool tap_cuts(const Sched *s, TapCuts *cuts);
/* Taps of all cells. */
double strip_taps(const Strips *r);
/* So few strips that each pair of them may have code of its own. */
bool few_strips(const Machine *m, const TapCuts *cuts);
/* TapCuts %conv.y and the %conv.x directly in it, once `pad` is inlined, and leaves out taps. */
void cut_loops(Sched *s, const TapCuts *cuts);
/* Strips of the axes where they are known; false: there is but one. */
bool work_cuts(const ConvWork *w, TapCuts *cuts);
/* Cycles in the best strips, times what they have to be quicker by; INFINITY: in none. */
double conv_cut_cycles(const Machine *m, const ConvWork *w);
/* ... whole (conv2d.c). */
double conv_whole_cycles(const Machine *m, const ConvWork *w);
/* A convolution in blocks of channels in strips; false, and nothing done: it is better whole. */
bool conv2d_cut(Sched *s, const ConvSizes *z);
bool depthwise_dot(const Sched *s); /* a depthwise one whose columns are taken by fours */
bool dense_dot(Sched *s);

/* Called from sched_conv2d and sched_dense for the forms they do not take themselves. */
void conv2d_depthwise(Sched *s);
void conv2d_groups(Sched *s);
void conv2d_planar(Sched *s);
void conv2d_pair(Sched *s);
/* What a reduction adds up (reduce.c): rows of `wide` cells, or columns, `wide` of them side by
 * side.
 */
typedef struct {
    bool   along;
    double times, steps, wide; /* columns: of so many steps */
} SumSizes;
SumSizes sum_sizes(Sched *s, const char *block, bool along);
/* Vectors of sums that go on at a time in all of these, as the decision `sums`; the best by
 * estimate for a block. */
int64_t pick_sums(Sched *s, const SumSizes *all, uint32_t n);
int64_t best_sums(Sched *s, const char *block, bool along);
/* A reduction's loops outside, its innermost spatial loop, of so many dimensions, as vectors, so
 * many of them accumulators in registers. */
void vector_accumulate(Sched *s, const char *block, int64_t chains, uint32_t dims);
/* A reduction along the row as partial sums side by side, then their sum (reduce.c). */
void vector_sum(Sched *s, const char *block, int64_t chains);
/* A reduction along the dimension whose cells lie side by side. */
bool sums_rows(const Sched *s, const char *block);
/* Do all stages go along so many leading dimensions, whose rows are shorter than a vector or hardly
 * longer?  These with rows as lanes (short_rows.c). */
bool has_short_rows(Sched *s, const char *const *names, uint32_t n, uint32_t rows);
bool short_rows_marks(Sched *s, const char *const *names, uint32_t n, uint32_t rows);
/* Cells of so many innermost dimensions; these as one loop where that can be, else the innermost,
 * with its cells; that as vectors. */
int64_t line_cells(const Sched *s, const char *block, uint32_t dims);
void    line_vectors(Sched *s, const char *block, uint32_t dims);
/* Rows shorter than a vector that lie one behind the other, beside operands of a row that are the
 * same in all of them: the lanes of the least vectors that end with a row; 0: they are not so. */
int64_t     wide_lanes(Sched *s, const char *block);
const char *line_loop(Sched *s, const char *block, uint32_t dims, int64_t *cells);
/* How many innermost dimensions of a block, those of its result, are one line in memory for all
 * that it reads and writes; 1 where rows end with whole vectors as they are (injective.c).  Last
 * dimensions of one cell are always part of it. */
uint32_t line_dims(Sched *s, const char *block);
/* The parts of a row that is put together, each as vectors (parts.c); false: it has none, or too
 * many. */
bool part_vectors(Sched *s, const char *block);
/* Equal parts of a few cells by turns, as vectors of several rows (parts.c), so many innermost
 * dimensions of them as one line; false: they are not so, and nothing is done. */
bool turned_parts(Sched *s, const char *block, uint32_t *dims);
/* A block's inner loop as vectors, with a remainder. */
void vector_marks(Sched *s, const char *block);
/* The block `pad`: computed in the loop `at` (NULL: where it is, divided among the threads), its
 * rows as a border and an interior that is a plain copy. */
void pad_marks(Sched *s, const char *at);
/* How cells come that do not lie side by side in the operand: one by one; as tiles that are turned
 * in registers; from a few rows by turns.  False, and nothing done, for blocks that are not of that
 * kind (transpose.c); turn_marks takes either of the latter. */
typedef enum { CELLS_AS_THEY_LIE, CELLS_TURNED, CELLS_BY_TURNS } Cells;
bool cells_marks(Sched *s, const char *block, Cells how, bool parallel);
bool turn_marks(Sched *s, const char *block, bool parallel);
/* Blocks of channels that a plain operand does not fill, as bytes are that are not turned: cut off,
 * so that the others ask no lane whether it has a cell (transpose.c). */
void surplus_marks(Sched *s, const char *block);
/* Rows of a block along dimension dim that read by the same positions, which memory says; kept for
 * so many rows, those along by[n] (positions.c). */
typedef struct {
    const char *block;
    uint32_t    dim, n, by[TE_MAX_AXES];
    int64_t     rows;            /* 0: there are none */
    double      each_time, kept; /* cycles of what the positions take */
} PositionsPlan;
PositionsPlan positions_plan(Sched *s, const char *block);
void          keep_positions(Sched *s, const PositionsPlan *p);
/* The last block's inner loop as vectors, its first loop divided among the threads. */
void spatial_marks(Sched *s, const char *block);

#endif
