/* The model of a machine: what work costs on the CPU that a target describes.
 *
 * Rules and passes choose among ways to compute the same thing by estimates.  What those are made
 * of stands here, so that a constant has one place and says what it was measured on.  Times of
 * computing are cycles of one core, times in which threads meet nanoseconds.  Nothing here knows an
 * operator, and kernel.c and program.c alone a loop.
 *
 *   machine.c   the figures of a machine (machine.def), and what is known of CPUs (cpus.def)
 *               and GPUs (gpus.def)
 *   file.c      figures as a file, for a target
 *   tile.c      cycles of register tiles
 *   loops.c     ... of sums, windows, and cells that are moved
 *   kernel.c    what a kernel takes, from its loops (kernel.h)
 *   program.c   ... and from where its operands were left
 *   time.c      what work takes that computes and moves data at the same time
 *   traffic.c   bytes a cycle between the core and where data lie
 *   product.c   cycles of whole products, by algorithm
 *   placement.c  ... on a device, and on the CPU beside it
 *   threads.c   what threads gain and lose
 *   limits.c    thresholds, where there is no estimate (limits.def) */
#ifndef TVMCC_MACHINE_H
#define TVMCC_MACHINE_H

#include "ir/core.h"

#include <stddef.h>

/* ---- machine.c -------------------------------------------------------------------------------- */

typedef enum { FIGURE_OF_FEATURES, FIGURE_OF_CPU, FIGURE_OF_GPU } FigureOf;

typedef enum {
#define MACHINE(type, name, of, unit, least, most, rule, about) FIGURE_##name,
#include "machine/machine.def"
#undef MACHINE
    FIGURE_COUNT
} FigureId;

/* Where a figure comes from; the later ones know better. */
typedef enum {
    FROM_RULE,     /* machine.def */
    FROM_FEATURES, /* the target's features */
    FROM_CPU,      /* cpus.def */
    FROM_GPU,      /* gpus.def */
    FROM_SYSTEM,   /* the machine of the compile says so, for -mcpu=native */
    FROM_FILE      /* a file of --machine= */
} Origin;

typedef struct Machine {
#define MACHINE(type, name, of, unit, least, most, rule, about) type name;
#include "machine/machine.def"
#undef MACHINE
    uint8_t from[FIGURE_COUNT]; /* Origin */
    bool    small;              /* of the target: short code counts for more than time */
    double  weights; /* bytes of those of the network, if it is known; 0: as many as no cache has */
} Machine;

typedef struct {
    const char *name, *unit, *about;
    FigureOf    of;
    size_t      offset;
    bool        whole; /* int64_t, else double */
    double      least, most;
} Figure;

extern const Figure figure_table[];                     /* by FigureId */
bool   figure_counts(const Figure *f, const Target *t); /* machines of its class have that */
double figure_get(const Machine *m, uint32_t figure);
void   figure_set(Machine *m, uint32_t figure, double value, Origin from);

/* The machine of a target, which may be NULL: one without vectors and with small caches. */
Machine machine_of(const Target *t);
/* Code for it is made of vectors of 16 bytes or more; never for GPUs, whose lanes are threads. */
bool has_vectors(const Target *t);
/* The border of a tensor is filled by the kernel that writes it, without a launch of its own. */
bool fills_borders(const Target *t);
/* Cells of a result that lie apart are stored about as quickly as a row: each has a thread. */
bool stores_apart(const Target *t);
/* Threads that go through a row together have memory of their own, where its cells meet. */
bool shares_rows(const Target *t);
/* Lanes of the narrowest vector. */
enum { LEAST_LANES = 4 };
/* Multiply-adds of vectors of that many 4-byte lanes that are done in a cycle. */
double fma_rate(const Machine *m, int64_t lanes);

/* ---- file.c ----------------------------------------------------------------------------------- */

/* What a file says of a machine: figures of origin FROM_FILE, the others 0. */
typedef struct {
    const char *path, *arch, *cpu; /* cpu NULL: not said */
    uint32_t    arch_line;
    Machine     m;
} MachineFile;

/* False after errors (E_MACHINE), each with its line. */
bool machine_read(Diags *d, Arena *a, const char *path, Bytes text, MachineFile *out);
void machine_print(Arena *a, const MachineFile *f, StrBuf *out);
/* A figure as files have it. */
const char *figure_text(Arena *a, const Machine *m, uint32_t figure);
/* The target with the costs of the file, which lives as long; a device's host where the file is of
 * that.  NULL, with an error, if it is of another architecture. */
const Target *machine_for(Ctx *c, const Target *t, const MachineFile *f);

/* ---- tile.c ----------------------------------------------------------------------------------- */

/* Pixels times vectors of a register tile: pixels*nv accumulators, nv weights, one splat. */
typedef struct {
    int64_t pixels, nv;
} RegTile;

/* Sums of a tile before which what they multiply has to be loaded; 0: cores look ahead. */
int64_t tile_loads_ahead(const Machine *m, int64_t lanes);
/* Registers of a tile of nv vectors, but for numbers and weights that are loaded ahead. */
int64_t tile_regs(const Machine *m, int64_t lanes, int64_t nv);
/* Pixels that fit into these beside nv vectors of weights. */
int64_t tile_pixels_most(const Machine *m, int64_t lanes, int64_t nv);
/* Cycles of one step of the reduction over tiles of all these pixels by nv vectors. */
double tile_step_cycles(const Machine *m, int64_t lanes, int64_t pixels, int64_t nv);
/* ... of tiles that ask for their weights ahead, and whose numbers and weights come from L2 or
 * beyond, in order. */
double fed_step_cycles(const Machine *m, int64_t lanes, int64_t pixels, int64_t nv);
/* Of so many bytes of weights from L2. */
double weights_cycles(const Machine *m, double bytes);
/* ... of tiles that wait for loads: what asking for so many weights adds to these. */
double asked_cycles(const Machine *m, double bytes);
/* ... and pixels, per multiply-add of a vector, in tiles of at most t.pixels; with what tile_best
 * counts beside it for `parts`. */
double tile_madd_cycles(const Machine *m, int64_t lanes, int64_t vectors, int64_t pixels,
                        int64_t parts, RegTile t);
/* The best tile for `vectors` vectors of outputs and `pixels` pixels (docs/design/schedules.md).
 * Not 0: threads divide that many parts, each by output blocks; half of what they lose by an uneven
 * division counts, since one thread loses nothing. */
RegTile tile_best(const Machine *m, int64_t lanes, int64_t vectors, int64_t pixels, int64_t parts);
/* Tiles of so many pixels take six cycles or more with a line of weights: there is room to ask for
 * one further on (`prefetch`). */
bool tile_feeds_lines(const Machine *m, int64_t lanes, int64_t pixels);
/* The same for rows of `data` bytes of an image that L2 does not hold, of which each step of a sum
 * reads another page, which no prefetcher follows: a vector asks for one, and takes as long as its
 * outputs. */
bool row_asks_ahead(const Machine *m, double data, int64_t lanes, int64_t outputs);
/* Cycles of one step of the reduction of a convolution over these pixels by nv vectors, cut into
 * `tiles` equal tiles. */
double conv_step_cycles(const Machine *m, int64_t lanes, int64_t pixels, int64_t nv, int64_t tiles);
/* ... of a strip of an image, whose weights come from L2 for each tile. */
double strip_step_cycles(const Machine *m, int64_t lanes, int64_t pixels, int64_t nv,
                         int64_t tiles);
/* A line of pixels with the cells of a kernel written out. */
typedef struct {
    double  madds;              /* of a vector */
    int64_t taps, chain, tiles; /* cells; at most of one pixel; tiles of the line */
} WrittenLine;
double written_cycles(const Machine *m, int64_t lanes, const WrittenLine *w, int64_t nv);
/* ... of all of so few steps, one of many such sums that do not wait for each other. */
double short_sums_cycles(const Machine *m, int64_t lanes, int64_t pixels, int64_t nv, int64_t tiles,
                         double steps);
/* A row of a kernel of so many rows, in a tile whose numbers come one by one: as often as they are
 * used, or, where the columns are written out, once. */
typedef struct {
    int64_t lanes, columns, rows;
    int64_t numbers; /* that are loaded, */
    int64_t held;    /* and lie in registers, at most */
    bool    written;
} PlainRow;
double plain_row_cycles(const Machine *m, const PlainRow *r, RegTile t);
/* Times what estimates of tiles are, where all keep the units busy: less for those that load less.
 */
double loads_price(RegTile t);
/* Cycles of so many rounds of a loop, beside what they compute. */
double round_cycles(const Machine *m, double rounds);
/* Cycles that a tile takes at its end: to turn to the next one, of `compute` cycles, and to wait
 * for what is stored and read there, which takes `move` a sum, while that begins. */
double tile_end_cycles(const Machine *m, double compute, double sums, double move);
/* ... of a tile of so many sums, one vector wide, of which each takes so many products, with as
 * many vectors of weights; the numbers that these share are spread over all lanes (`spread` 0),
 * or several over so many each. */
double row_step_cycles(const Machine *m, int64_t lanes, int64_t sums, int64_t weights,
                       int64_t numbers, int64_t spread);
/* ... of a matrix product: all tiles of a panel of nv vectors, none taller than `most` rows. */
double panel_step_cycles(const Machine *m, int64_t rows, int64_t most, int64_t nv);
/* ... of a sum of dot products of small integers, each of `ops` instructions (Target.intrin_ops).
 */
double dot_step_cycles(const Machine *m, uint32_t ops, int64_t pixels, int64_t most, int64_t nv);
/* ... of a recurrent network's product of a matrix of `vectors` vectors with `rows` rows of the
 * state; vectors of that many bytes. */
double state_step_cycles(const Machine *m, int64_t vectors, int64_t rows, int64_t bytes);

/* Measured on Zen 4: a step of two products of i16, a multiplication and an addition, to one of
 * floats (all four vector units are then busy); a 3x3 convolution's tiles to the most that the
 * units do; Winograd's transforms, cycles of a vector's cell of a tile. */
#define PAIR_STEP 1.28
#define DIRECT_3X3 1.4
#define WINOGRAD_INPUT 1.25
#define WINOGRAD_OUTPUT 1.0

/* Blocks narrower than the widest vector: they must be worth it, being twice as many instructions.
 */
#define NARROW_BLOCKS 1.04

/* ---- loops.c ------------------------------------------------------------------------------------- */

/* Cycles of the sum of a row of so many vectors, as so many sums side by side; of the sums of
 * columns of so many vectors, that many of them at a time. */
double row_sum_cycles(const Machine *m, double vectors, int64_t chains);
double column_sum_cycles(const Machine *m, double vectors, double steps, int64_t chains);
/* A window that moves along a row, and which of its loops are written out. */
typedef struct {
    int64_t kh, kw, stride;
    bool    maximum; /* of floats, not their sum */
} Window;
typedef enum { WRITTEN_NONE, WRITTEN_COLUMNS, WRITTEN_ALL } Written;
/* Cycles of a tile of so many pixels, a vector each. */
double window_cycles(const Machine *m, int64_t lanes, const Window *w, int64_t pixels,
                     Written written);
/* Windows of plain images: so many, each of so many rows of so many cells, read from rows of so
 * many; of the padded copy so many rows, 0: there is none. */
typedef struct {
    double images, y, x, in_x, copied;
    Window window;
} PlainWindows;
/* Cycles with vectors of so many lanes; the rows of a window first, then its columns, or all of its
 * cells at once. */
double plain_windows_cycles(const Machine *m, int64_t lanes, const PlainWindows *p,
                            bool rows_first);
/* Cycles of interpolating so many rows of so many cells by `taps` of each dimension: plain rows;
 * blocks of so many channels, a vector each. */
double interpolate_rows_cycles(const Machine *m, int64_t lanes, double taps, double rows, double x);
double interpolate_blocks_cycles(double taps, double vectors);
/* Cycles of a tile of so many outputs, which share a vector of each of so many plain rows in each
 * step, `stride` cells apart. */
double planar_tile_cycles(const Machine *m, int64_t lanes, int64_t outputs, int64_t rows,
                          int64_t steps, int64_t stride);
/* ... of a padded copy of so many bytes. */
double padded_copy_cycles(double bytes);
/* What shows of a chain of so many cycles, of work of so many operations that repeats: a core looks
 * ahead. */
double hidden_cycles(const Machine *m, double chain, double operations);
/* Cycles of counting rounds; of indices that become positions; of cells that lie apart, loaded one
 * by one; as tiles that are turned in registers; as rows by turns that are shuffled together. */
double rounds_cycles(double rounds);
/* ... of a vector of a formula of so many operations, so many of which are written out and go by
 * turns; of code of so many operations that is run for the first time. */
double formula_cycles(const Machine *m, int64_t operations, int64_t formulas);
double first_run_cycles(int64_t operations);
double position_cycles(double positions);
double gather_cycles(const Machine *m, double cells);
double lane_cycles(double lanes);
double turn_cycles(const Machine *m, int64_t lanes, double cells);
double weave_cycles(const Machine *m, int64_t lanes, double cells, int64_t rows);
/* Cycles that a stage takes to read so many vectors that the one before stored, a group of so many
 * vectors and bytes at a time. */
double handed_cycles(const Machine *m, double vectors, double group, double bytes);

/* ---- traffic.c ---------------------------------------------------------------------------------- */

typedef enum { LEVEL_L2, LEVEL_L3, LEVEL_MEMORY, LEVELS } Level;

/* Bytes a cycle that a core reads in order from there. */
double level_rate(const Machine *m, Level level);
/* ... and stores. */
double level_store_rate(const Machine *m, Level level);
/* Shares by level of what is touched again after so many other bytes; of L1, which costs nothing.
 */
double cache_shares(const Machine *m, double between, double share[LEVELS]);
/* Of L3, since other programs have it too. */
#define L3_SHARE 0.25

/* ---- time.c ------------------------------------------------------------------------------------- */

typedef struct {
    double compute;         /* cycles of a core's units */
    double traffic[LEVELS]; /* cycles of waiting for data from there, were there nothing else */
    double ahead;           /* ... for data that are asked for ahead, wherever they lie */
    double sync;            /* cycles of waiting for other threads */
} Time;

Time time_compute(double cycles);
/* fed_step_cycles. */
Time tile_time(const Machine *m, int64_t lanes, int64_t pixels, int64_t nv);
/* Reading in order from a level. */
Time level_time(const Machine *m, Level level, double bytes);
/* ... and storing, of what was touched so many bytes ago. */
Time moved_time(const Machine *m, double read, double stored, double between);
/* Weights, from where those of the whole network stay between its runs; asked for ahead, beside
 * products. */
Time weights_time(const Machine *m, double bytes);
Time fetched_time(const Machine *m, double bytes);
/* The same for data that the code asks for ahead. */
Time time_ahead(Time t);
/* What comes from beyond L2, taken away from `t`. */
Time time_take_far(Time *t);
/* The same n times; two that go on side by side. */
Time time_times(double n, Time t);
Time time_beside(Time a, Time b);
/* Waiting for data, all of it. */
double time_traffic(Time t);
/* All of it, with what overlaps. */
double time_cycles(const Machine *m, Time t);
/* The longer of two that go on at the same time, though not wholly: so much of the other one shows.
 */
double overlap(double a, double b, double shows);
/* What plain rows wait for of what comes from beyond L2; `broken`: several rows at a time. */
double rows_far_cycles(const Machine *m, Time t, bool broken);
/* What the work of `parts` equal parts takes of each thread, as thread_balance says, were it that
 * of one. */
double divided(double cycles, int64_t parts);
/* ... that of one where the parts are even enough (limit_balance_panels). */
double divided_panels(const Machine *m, double cycles, int64_t parts);

/* ---- product.c ---------------------------------------------------------------------------------- */

/* The rows of a matrix product: symbolic ones at most so many.  What tiles leave over of these is
 * pieces of powers of two, or one piece, `each` size of which is written out.  `unit`: there are
 * multiples of so many; 0: any number.  `far`: the share of the weights that comes from beyond L2
 * for the first tile, asked for ahead. */
typedef struct {
    int64_t n;
    bool    symbolic, each;
    double  far;
    int64_t unit;
} Rows;
/* Cycles of a step of the reduction over all of these, in tiles of at most p by nv vectors. */
double rows_step_cycles(const Machine *m, Rows rows, int64_t p, int64_t nv);
/* What a panel of so many columns, fewer than the lanes, takes of the cycles of one of a vector; 1
 * for 0. */
double part_vector(const Machine *m, int64_t lanes, int64_t part);
/* ... of one row by a panel of nv vectors of columns over so many steps, each sum as `sums` of them
 * side by side. */
double row_panel_cycles(const Machine *m, int64_t lanes, int64_t nv, int64_t steps, int64_t sums);
/* `times` panels of matrix products: so many rows by tile.nv vectors of columns, in tiles of at
 * most tile.pixels rows, k steps; results of a row lie `stride` bytes behind those of the one
 * before. `far`: the share of the times that it is computed in which its weights come from afar. */
typedef struct {
    int64_t lanes, rows, k, stride, times;
    RegTile tile;
    double  far;
} Panels;
/* Rows of their tallest tile. */
int64_t panels_tall(const Panels *panels);
/* Cycles of these, of which `chunk` steps at a time go through all tiles. */
double panels_cycles(const Machine *m, const Panels *panels, int64_t chunk);
/* Cycles to begin so many panels anew, of a product whose rows have so many bytes. */
double panels_begin_cycles(const Machine *m, double bytes, int64_t panels);
/* True if it pays to ask for the weights of such chunks ahead. */
bool panels_ask_ahead(const Machine *m, const Panels *panels, int64_t chunk);
/* Cycles of a convolution with so many multiply-adds and weights, and vectors of that many lanes:
 * of floats; of bytes as pairs of i16, as sums of four (`ops` instructions each), one by one. */
double conv_cycles(const Machine *m, double macs, double weights, int64_t lanes);
double conv_words_cycles(const Machine *m, double macs, double weights, int64_t lanes);
double conv_dot4_cycles(const Machine *m, double macs, double weights, int64_t lanes, uint32_t ops);
double conv_bytes_cycles(const Machine *m, double macs, double weights, int64_t lanes);
/* ... of a depthwise one of bytes: taps by fours, one instruction each; in f32. */
double depthwise_dot4_cycles(double macs, int64_t lanes);
double depthwise_floats_cycles(double macs, int64_t lanes);
/* The share of Winograd's transforms that those of an axis of that many cells take; 1 of two axes
 * of 4 or 6. */
double winograd_way(int64_t cells);
/* ... of Winograd's transforms in groups: a vector's cell of a tile of `tile` by `tile`, one way;
 * `within`: it holds several groups. */
double winograd_group_cell_cycles(const Machine *m, int64_t lanes, int64_t tile, bool within);
/* ... of a matrix product of floats, of the turned copy of a matrix, of m rows by a weight [n, k]
 * by Strassen's algorithm. */
double dense_cycles(const Machine *m, double macs, double weights, int64_t lanes);
/* ... of any work beside so many weights (f32) that are asked for ahead. */
double fetched_cycles(const Machine *m, double compute, double weights);
/* ... of a row of a product with a weight [n, k] that takes so many rows at a time. */
double product_row_cycles(const Machine *m, int64_t rows, double n, double k);
/* Data [k, n] of a product that are read piece by piece, for each tile of so many rows: cycles that
 * this costs beside the products, and those of a copy whose pieces lie in order; `all` cells of
 * all matrices like it. */
double pieces_cycles(const Machine *m, double rows, double n, double k, double all);
double pieces_copy_cycles(const Machine *m, double n, double k, double all);
double panel_copy_cycles(const Machine *m, double cells);
double strassen_cycles(const Machine *m, double rows, double n, double k, int64_t lanes);
/* Measured: the tiles of a large product to the most that the units do. */
#define DENSE 1.05

/* ---- device.c ----------------------------------------------------------------------------------- */

/* How numbers of one side of a product come from memory to the thread that multiplies them. */
typedef struct {
    int64_t cells, steps; /* that a load takes at a time: of this side, or of the sum */
    int64_t row, apart;   /* of a window's row of so many steps, neighbouring cells, so many numbers
                             apart, read the same ones; 0: no row */
    bool chosen;          /* conditions choose between a number and a border's zero */
    bool along;           /* steps lie side by side in memory, each cell's elsewhere */
    bool across;          /* threads side by side have neighbouring cells of this side */
} DeviceLoad;
/* A product of m by n cells, each the sum of k, `batch` times, in tiles that a block of threads
 * shares: bm by bn cells, tm by tn of a thread, `chunk` steps of the sum at a time from shared
 * memory. */
typedef struct {
    int64_t m, n, k, batch;
    int64_t bm, bn, tm, tn, chunk;
    int64_t bytes;     /* of a number */
    int64_t sum_bytes; /* of a partial sum: products of f16 may be added up in f32 */
    bool    tested;    /* each step is under a condition */
    int64_t wide;      /* numbers that are copied at a time, of what is not kept; 0: one */
    int64_t made;      /* multiply-adds that make a number of the rows' panel; 0: it is copied */
    int64_t stages;    /* chunks that shared memory holds, to copy ahead; 0: one */
    int64_t window;    /* steps of the windows whose cells the rows' panel has; 0: it has none */
    int64_t groups;    /* of threads: each has the whole tile and a part of every chunk; 0: one */
    bool    keeps_m, keeps_n; /* of either panel, what is copied passes registers, one by one */
    const Intrin *unit;       /* the instruction of warps that makes it; NULL: threads multiply */
    bool          group; /* four warps multiply 64 rows together, out of shared memory (wgmma) */
    bool          held;  /* what is copied 16 bytes at a time passes registers, too */
    int64_t staged; /* cells that a thread has side by side of sums that went through shared memory;
                       0: it stores its own */
    int64_t run;    /* cells of the result that lie side by side along columns; 0: not known */
    int64_t result_bytes, added_bytes; /* of its cells; of what is loaded for each to add to it */
    bool    direct; /* threads load what they multiply from memory, and write a chunk out, .. */
    DeviceLoad load_m, load_n; /* .. of either side so */
    struct {
        int64_t m, n, k, batch;
    } open; /* of these, how many a run decides, at most; 0: none */
} DeviceTile;
/* Numbers that a thread loads at a time. */
int64_t device_quad(const Machine *m, int64_t bytes);
/* Bytes of shared memory; registers of a thread, about. */
int64_t device_tile_bytes(const Machine *m, const DeviceTile *t);
int64_t device_tile_regs(const DeviceTile *t);
int64_t device_tile_threads(const DeviceTile *t); /* of a block */
/* Cycles of the device's cores until the last is done. */
double device_tile_cycles(const Machine *m, const DeviceTile *t);
/* By that estimate; where a run decides sizes, the geometric mean over these, from the largest by
 * halves to one. */
typedef double DeviceTileCycles(const Machine *m, const DeviceTile *t);
double         device_open_cycles(const Machine *m, const DeviceTile *t, DeviceTileCycles *cycles);

/* Cycles of a kernel that makes so many numbers of so many multiply-adds each, a thread one. */
double device_cells_cycles(const Machine *m, double cells, double macs, double bytes);
/* Cells side by side of memory that one access of a thread moves; at least one. */
int64_t device_lanes(const Machine *m, int64_t bytes);
/* A kernel of so many threads and tensors, whose threads do not wait for each other: what each
 * issues beside finding out which it is and where tensors lie, bytes of lines that its accesses
 * take, bytes that come from the caches of all cores or go there, and those of them that memory has
 * once. */
typedef struct {
    int64_t threads, tensors;
    double  issued, lines, moved, once;
} DeviceThread;
double device_thread_cycles(const Machine *m, const DeviceThread *t);
/* ... until another kernel has begun. */
double device_launch_cycles(const Machine *m);
/* A launch that reads and stores so many bytes of the caches that all cores share. */
double device_copy_cycles(const Machine *m, double bytes);
/* Cells that are turned: `up` of them side by side in the operand, `on` in the result, so many
 * times, so many bytes there and here; by tiles of tile_up by tile_on through shared memory, of a
 * block of threads. */
typedef struct {
    int64_t up, on, times, bytes, stored;
    int64_t tile_up, tile_on, threads;
} DeviceTurn;
/* As many threads as a tile's block may have, by whole rows of it; 0: not even one row. */
int64_t device_turn_threads(const Machine *m, const DeviceTurn *t);
/* Cycles of the device's cores; NAN where a block has too much of something. */
double device_turn_cycles(const Machine *m, const DeviceTurn *t);
/* A step of a recurrent cell: units of the state, rows of the batch, products of a unit, bytes of a
 * weight. */
typedef struct {
    int64_t units, rows, sums, bytes;
} DeviceState;
/* Cycles of a step by one block of so many threads, each with units of its own. */
double device_state_cycles(const Machine *m, const DeviceState *z, int64_t threads);

/* ---- device_rows.c ------------------------------------------------------------------------------ */

/* So many rows of `cells` numbers, read `stages` times; a thread has `lanes` side by side.  Of a
 * cell of all stages: operations, and divisions and functions among them; bytes that are stored. */
typedef struct {
    int64_t rows, cells, stages, bytes, lanes;
    int64_t work, calls, stored;
    int64_t sums;   /* reductions among the stages */
    int64_t step;   /* numbers from one of a row to the next, 1 where that is not known */
    int64_t beside; /* rows whose numbers lie side by side; 1: there are none */
    bool    along;  /* a row's cells lie side by side, not those of neighbouring rows */
    bool    single; /* it is one row, of results without dimensions */
    int64_t warp;   /* threads that combine partial sums by an instruction; 0: in shared memory */
    struct {
        int64_t rows, cells;
    } open; /* of these, how many a run decides, at most; 0: none */
} DeviceRows;
/* Cycles with so many threads for a row, which meet after each stage; 1: a thread has a row. */
double device_rows_cycles(const Machine *m, const DeviceRows *r, int64_t threads);
/* Each reduction by launches of its own: a block of threads has so many rows side by side, so many
 * threads for each, and one of `parts` of these rows; a second launch puts the parts together. */
typedef struct {
    int64_t beside, threads, parts;
} DeviceReduction;
/* Such a block has no more threads than are good, nor shared memory than there is. */
bool device_reduction_fits(const Machine *m, const DeviceReduction *d);
/* Cycles of all launches, which have to pay well where there are several (limit_gpu_parts_gain). */
double device_apart_cycles(const Machine *m, const DeviceRows *r, const DeviceReduction *d);
/* How so many parts of each of r's rows are put together. */
DeviceReduction device_partial_reduction(const Machine *m, const DeviceRows *r, int64_t parts);

/* ---- device_rounds.c -------------------------------------------------------------------------- */

/* So many rows of cells that meet in shared memory, where each has so many bytes and a row so many
 * more, once in every round; operations of a cell in a round; most rows of a block (0: any); rows
 * of which a run decides how many, at most (0: none). */
typedef struct {
    int64_t rows, cells, rounds, bytes, tables, work, together, open;
} DeviceRounds;
/* A network that sorts rows of so many cells, whose keys have so many bytes; running sums of them
 * by doubling.  The rounds are given. */
DeviceRounds device_network(int64_t rows, int64_t cells, int64_t rounds, int64_t bytes);
DeviceRounds device_doubling(int64_t rows, int64_t cells, int64_t rounds, int64_t bytes);
/* Threads of a row, as many as it has cells, half as many (i = 1), a quarter ..; -1: too many,
 * 0: no more. */
int64_t device_rounds_threads(const Machine *m, const DeviceRounds *z, int64_t i);
/* A block may have so many rows, of so many threads each; where a run decides how many there are,
 * one. */
bool device_rounds_fit(const Machine *m, const DeviceRounds *z, int64_t rows, int64_t threads);
/* Cycles of the device's cores with these; the least of all, INFINITY: no block has a row. */
double device_rounds_cycles(const Machine *m, const DeviceRounds *z, int64_t rows, int64_t threads);
double device_rounds_best(const Machine *m, const DeviceRounds *z);
/* ... of as many threads as there are cells, each of which is found by halving, in so many steps,
 * what has so many bytes a cell; of one thread that sorts or sums up so many cells. */
double device_search_cycles(const Machine *m, double cells, double steps, double bytes);
/* ... of so many threads that sum up a column of so many cells each. */
double device_columns_cycles(const Machine *m, double threads, double cells);
double device_alone_cycles(const Machine *m, double cells);

/* ---- device_attention.c ---------------------------------------------------------------------- */

/* Attention of m rows of queries over n keys, of k and e columns, for so many heads: a block of
 * threads has `rows` of them and takes the keys by chunks, tm by tn scores of a thread, `part`
 * steps of a sum at a time from shared memory. */
typedef struct {
    int64_t       heads, m, n, k, e;
    int64_t       rows, chunk, tm, tn, part;
    int64_t       bytes; /* of a number */
    const Intrin *unit;  /* the instruction of warps that may make it; NULL: none */
    struct {
        int64_t heads, m, n;
    } open; /* of these, how many a run decides, at most; 0: none */
} DeviceAttention;
/* Columns of the result that a thread has, a quad at a time, and of all threads together. */
int64_t device_attention_columns(const Machine *m, const DeviceAttention *a);
int64_t device_attention_width(const Machine *m, const DeviceAttention *a);
/* Cycles of the device's cores; NAN where a block has too much of something. */
double device_attention_cycles(const Machine *m, const DeviceAttention *a);
/* The best by that, of those with this chunk; 0: of all.  rows is 0 if there is none. */
DeviceAttention device_attention_best(const Machine *m, DeviceAttention a);
/* The same by instructions of warps, of operands of 16 bits: a warp has tm rows of all columns. */
double          device_attention_warp_cycles(const Machine *m, const DeviceAttention *a);
DeviceAttention device_attention_warp_best(const Machine *m, DeviceAttention a);

/* ---- device_mma.c ---------------------------------------------------------------------------- */

/* A tile by instructions of warps, each of which has tm rows of tn columns: how many they are,
 * bytes of shared memory, registers of a thread, cycles. */
int64_t device_mma_warps(const DeviceTile *t);
/* Of an instruction; of one of four warps what each of them has. */
int64_t device_unit_rows(const DeviceTile *t);
int64_t device_unit_columns(const DeviceTile *t);
/* A tile of four warps' instructions: warps above each other, a line of the sum at a time. */
bool    device_mma_fits(const DeviceTile *t);
int64_t device_mma_bytes(const Machine *m, const DeviceTile *t);
int64_t device_mma_regs(const Machine *m, const DeviceTile *t);
double  device_mma_cycles(const Machine *m, const DeviceTile *t);
/* How many cells side by side a thread may have of sums that go through shared memory (0: they
 * cannot), and of how many places it takes such cells before it stores them. */
int64_t device_mma_staged(const DeviceTile *t);
int64_t device_mma_places(const DeviceTile *t);
/* By so many numbers such sums' rows are longer than a multiple of the banks. */
int64_t device_mma_apart(const DeviceTile *t);
/* Numbers that a panel's lines are longer, so that those loaded together lie in different banks:
 * where the device finds them by their distance, they cannot change places. */
int64_t device_mma_pad(const DeviceTile *t);

/* ---- placement.c ------------------------------------------------------------------------------ */

/* An operator of a kernel: cells of the largest of its tensors, multiply-adds, bytes of all. */
typedef struct {
    double cells, macs, bytes;
} PlacedWork;
/* A part of a kernel that no rule divides: so many threads, steps of each. */
typedef struct {
    double threads, steps;
    bool   sums; /* steps are terms of a sum, which are loaded some at a time */
} PlacedPart;
/* Nanoseconds of it on the CPU of m, or the device, and of starting a kernel there. */
double placed_cpu_ns(const Machine *m, const PlacedWork *w);
double placed_cpu_start_ns(const Machine *m);
double placed_device_ns(const Machine *m, const PlacedWork *w);
double placed_device_start_ns(const Machine *m);
/* ... of such a part, beside what its operators move. */
double placed_part_ns(const Machine *m, const PlacedPart *p);
double placed_part_cpu_ns(const Machine *m, const PlacedPart *p);
/* The threads are fewer than the device has cores for, and longer at it than two empty copies: it
 * might be better off on the CPU. */
bool placed_is_sequential(const Machine *m, const PlacedPart *p);
/* ... of a copy between the device of m and its host, which waits for what the device does. */
double placed_copy_ns(const Machine *m, double bytes, bool to_host);

/* ---- threads.c ---------------------------------------------------------------------------------- */

/* What share of the ideal several threads reach that divide n equal iterations: 2 threads above
 * all, 4 too. */
double thread_balance(int64_t n);
/* So many equal parts are even enough for any number of this machine's threads. */
bool even_parts(const Machine *m, int64_t n);
/* What share of an image's rows two threads both read when they divide blocks of rows, then
 * channels: all of one block, none of an even number. */
double rows_shared(int64_t blocks);
/* Cycles that a thread loses when two divide blocks * panels iterations of a kernel with so many
 * bytes of weights and of input. */
double division_cycles(const Machine *m, double weights, double input, int64_t blocks,
                       int64_t panels);
/* Twice what the one of two threads takes that has most, of n pieces of so many cycles and what is
 * left over: that is the first's, which has fewer of an odd number of pieces. */
double halves_cycles(int64_t n, double cycles, double left);
/* Work of so many nanoseconds is too short for a second thread. */
bool too_short(const Machine *m, double ns);
/* What a cell of a block reads and computes, and nanoseconds of that. */
typedef struct {
    int64_t bytes, math, divisions, others;
} CellWork;
double cell_ns(const Machine *m, const CellWork *w);
/* Instructions of it as a vector, about. */
int64_t cell_operations(const CellWork *w);
/* ... of so many multiply-adds. */
double products_ns(const Machine *m, int64_t macs);
/* Nanoseconds of so many multiply-adds, or of reading and writing so many bytes, whichever is more.
 */
double work_ns(const Machine *m, double macs, double bytes);
/* ... of reading so many bytes that were read just before. */
double again_ns(const Machine *m, double bytes);
/* ... that a second thread saves of a kernel of so many, in which threads meet `meets` times. */
double second_thread_saves(const Machine *m, double ns, int64_t meets);
/* What threads cost that meet so often: each waits for the other; that need not meet, at the end.
 */
double meeting_ns(const Machine *m, int64_t meets);
double apart_ns(const Machine *m);
/* Cycles of work that two threads share, which wait for each other so many nanoseconds. */
double shared_cycles(const Machine *m, double cycles, double ns);
/* A run of which so much is saved is worth calling other threads. */
bool worth_launch(const Machine *m, double saved_ns);

/* ---- limits.c ----------------------------------------------------------------------------------- */

#define LIMIT(type, name, unit, value) type name(const Machine *m);
#include "machine/limits.def"
#undef LIMIT

#endif
