/* Rules for GPUs, and what they share (common.c).
 *
 *   product.c    convolutions and matrix products: tiles in shared memory and registers
 *   direct.c     ... or operands from memory into registers
 *   tile.c       their tiles
 *   tensor.c     ... by instructions of warps
 *   store.c      ... and how their sums become the result
 *   rows.c       softmax, norms, reductions: a block of threads a row
 *   reduce.c     reductions by threads, rows beside each other, parts of rows
 *   attention.c  two products and the softmax between them, keys by chunks
 *   attention_warps.c  ... by instructions of warps
 *   recurrent.c  LSTM, GRU and RNN: a block of threads a direction
 *   rounds.c     sorts and running sums: a block of threads a row, or a chunk of it
 *   turn.c       transposes: tiles in shared memory
 *   nest.c       the rest: a cell or several a thread
 *   cells.c      .. and how many */
#ifndef TVMCC_SCHEDULES_GPU_H
#define TVMCC_SCHEDULES_GPU_H

#include "schedules/schedules.h"

enum { MAX_BLOCKS = 64, MAX_LOOPS = 16 };

/* Loops in the order of the nest, by name, and how many rounds they have together: at most, where a
 * run decides. */
typedef struct {
    uint32_t    n;
    int64_t     cells, open; /* of those that a run decides, alone; 0: there is none */
    const char *at[MAX_LOOPS];
} Loops;

void        loops_add(const Sched *s, Loops *l, const char *name);
const char *loops_text(const Sched *s, uint32_t n, const Loops *const *lists); /* "%a, %b" */
/* Those that a run decides first: as one loop, which rounds of the others a round of it is takes no
 * division by a number that the run decides. */
void open_first(const Sched *s, Loops *l);
/* They become blocks: one loop along x, of that name if it is made of several, whose name is left
 * in the list; of several that a run decides the outer ones lie along y and z, as far as these
 * axes have so many. */
void bind_blocks(Sched *s, Loops *l, const char *name);
/* They become one loop, of that name if they were several; that one is bound to the axis. */
void loops_fuse(Sched *s, Loops *l, const char *name);
void loops_bind(Sched *s, Loops *l, const char *name, const char *axis);

/* What the block reads of a tensor in a round of `at`, in that scope, as a rule `shared`: a cell
 * for each round of loops of the sum and of the threads.  What makes the tensor goes into the copy.
 */
void copy_cells(Sched *s, const char *tensor, const char *scope, const char *block,
                const Loops *sum, const Loops *thread, const char *at);
/* ... of so many loops of the sum, whose steps of the sum lie side by side in memory and are
 * fetched so; rows longer by `quad` cells, each of so many numbers, keep threads in banks of their
 * own.  `fours`: a thread has all cells of the last loop of the threads and stores them at once. */
void transpose_copy(Sched *s, const char *tensor, uint32_t nsum, const Loops *thread, int64_t quad,
                    int64_t numbers, bool fours);

/* Rounds of a block's sum; where these are few, a window's, its loops are written out, and what
 * they choose is found once. */
int64_t sum_rounds(const Sched *s, const char *block);
/* Operations of a cell, or of a round of its sum, as they are written out (limit_gpu_operations).
 */
int64_t written_operations(Sched *s, const char *block);
void    write_short_sum(Sched *s, const char *block);
/* .. the loops inside of a long one. */
void write_inner_sum(Sched *s, const char *block);

/* One of a product's two factors. */
typedef struct {
    const Buffer     *tensor;
    const Idx *const *index; /* over the iterators */
    uint32_t          loads;
    bool              alike; /* all loads are of that cell */
} Operand;

/* A block as a product (product.c). */
typedef struct {
    const char *block, *follow;
    const char *first; /* a reduction that makes what `a` holds; NULL: none */
    Operand     a, b;
    Loops       both, m, n, k;
    const Atom *grouped; /* of which only a part chooses the weights, .. */
    const char *groups;  /* .. its loop, */
    int64_t     group;   /* .. this many to a group; 0: none */
    bool        m_inner; /* the result lies along m */
    bool        beside;  /* cells side by side are other products: lanes of groups */
    bool        a_along_k, b_along_k;
    const char *words; /* the sum of four products of bytes, .. */
    const Atom *word;  /* .. of parts of this iterator; NULL: none */
} Product;
/* Bytes of a word: a step of a sum multiplies so many, where the target adds their products (dot4);
 * cells of shared memory are stored so many at once. */
enum { WORD = 4 };
/* How an operand comes to a thread that loads it from memory directly (direct.c), `moved`: a
 * constant whose cells of the sum lie first; and the steps: the numbers of these loops of the sum
 * and of the thread, in a chunk that is written out at `at`. */
DeviceLoad direct_load(Sched *s, const Product *p, const Operand *o, const Loops *side, bool moved);
void load_direct(Sched *s, const Product *p, const Operand *o, const Loops *k, const Loops *rows,
                 const char *at);
/* How the result of a product by instructions of warps lies along its columns, and what is added to
 * each cell; and its sums by way of shared memory, in the loop over blocks (store.c). */
void find_result(Sched *s, const Product *p, const Loops *columns, DeviceTile *t);
void store_staged(Sched *s, const Product *p, const DeviceTile *t, const char *blk);
/* Loops of the block's iterators from..to. */
Loops iter_loops(const Sched *s, const char *block, uint32_t from, uint32_t to);

/* A reduction by the threads of a block (reduce.c). */
typedef struct {
    const char *block, *tensor; /* it, and where its result is */
    const char *loop;           /* over what is reduced; NULL: that is divided already */
    int64_t     threads, lanes; /* of a row; numbers side by side of each */
    const char *at, *beside;    /* loops over blocks, over rows side by side in there; NULL: none */
    const char *words;          /* the sum of four products of bytes, or NULL */
    int64_t     warp;           /* threads of a line; 0: all of them are one */
    const char *instruction;    /* by which they combine what they have; NULL: in shared memory */
} ThreadSum;
/* The loop's rounds are the threads of a block, a line of them for each warp; 0: one line. */
void bind_threads(Sched *s, const char *loop, int64_t threads, int64_t warp);
/* In how many levels, each a nest of its own in front; 0: refused. */
uint32_t reduce_by_threads(Sched *s, const ThreadSum *t);

/* How the numbers of a reduction's rows lie, in the tensor that has most: how many rows have theirs
 * side by side (1: none), whether a block can have some of these, how far apart those of a row are,
 * bytes of one, and whether a row's innermost lie along the tensor's last dimension. */
typedef struct {
    int64_t beside, step, bytes;
    bool    divides, along;
} RowsLie;
RowsLie rows_lie(Sched *s, const char *block);

/* How a kernel of rows is divided: one launch has all stages, each reduction has launches of its
 * own, or a thread has a cell of each stage. */
typedef enum { ROWS_TOGETHER, ROWS_APART, ROWS_CELLS } RowsForm;
/* A kernel of rows: what it is, and what is chosen of it. */
typedef struct {
    DeviceRows      size;     /* .. with the cells that a thread has side by side, */
    bool            together; /* whether one launch can have all stages, */
    bool            apart;    /* .. each reduction launches of its own, */
    bool            divides;  /* .. and blocks of them rows side by side, */
    const char     *words;    /* the sum of four products of bytes, or NULL, */
    double          cells;    /* and what threads with several cells take, or NAN: given */
    RowsForm        form;
    int64_t         threads; /* together: of a row; 1: a thread has a row */
    int64_t         warp;    /* .. of them, that combine their sums by an instruction; 0: none */
    DeviceReduction by;      /* apart */
} RowsPlan;
/* The block's launches; true: so is what follows, a number a row (NULL: there is none). */
bool reduce_apart(Sched *s, const char *block, const char *follow, const RowsPlan *p);

/* A product with a single row, as a reduction; `words`: of bytes, four a step by that instruction;
 * `cells`: cycles that it takes by threads with several cells, NAN: there is no such way. */
void sched_gpu_row_of(Sched *s, const char *words, double cells);
/* Steps of the window that the sum walks for each channel; 0: there is none. */
int64_t window_steps(const Sched *s, const Product *p);
/* The steps of a product by instructions of warps (tensor.c); false: none, and nothing has changed.
 */
bool tensor_product(Sched *s, const Product *p);

/* The target copies 16 bytes of such numbers to shared memory past the registers. */
bool gpu_copies(Ctx *c, const Target *target, DType t);
/* The instruction for these types that the target has, of one warp or of four; NULL: none. */
const Intrin *gpu_instruction(Ctx *c, const Target *target, DType rows, DType columns, bool group);

/* Splits `<name>u`, a loop over an instruction's rows (0) or columns (1): what a thread has of them
 * (`<name>h` of rows, `<name>j` of columns), and the threads, `<name>y` and `<name>x`. */
void gpu_split_line(Sched *s, const Intrin *unit, uint32_t which, const char *name);

/* Attention: how its stages are divided among the threads of a block (attention.c). */
typedef struct {
    DeviceAttention a;    /* its sizes and the chunk are given */
    DType           type; /* of the operands of an instruction */
    int64_t x, y, z;      /* threads; z: warps, of tm rows each; 0: all have cells of their own */
    int64_t quad;         /* numbers that a thread loads at a time */
    int64_t once, times;  /* columns that a thread has side by side, and how often */
    int64_t written;      /* rounds of a sum that are written out */
} AttentionPlan;
/* The stage's loop over rows.  Those behind it have theirs no more: stages are arranged from the
 * last to the first.  `behind`: that of the stage itself, where its partial results come first. */
const char *attention_rows(const Sched *s, const char *stage, bool behind);
/* So many rounds of a loop of a stage, %b.y, %b.x and perhaps %b.z, by threads that have the inner
 * loop each (NULL: there is none). */
void attention_threads(Sched *s, const char *b, const char *loop, int64_t rounds, const char *inner,
                       const AttentionPlan *p);

/* ... by instructions of warps (attention_warps.c): that for the operands, whose type it says,
 * NULL: none; decisions; stages, of tensors that lie along the sum, or not. */
const Intrin *attention_unit(Sched *s, const DeviceAttention *a, DType *type);
void          decide_warps(Sched *s, const Machine *m, AttentionPlan *p);
void          attention_warp_layouts(Sched *s, const AttentionPlan *p);
void          attention_warp_scores(Sched *s, const AttentionPlan *p, const char *queries,
                                    bool queries_along, bool keys_along);
void          attention_warp_reduction(Sched *s, const char *stage, const AttentionPlan *p);
void          attention_warp_exp(Sched *s, const AttentionPlan *p);
void          attention_warp_results(Sched *s, const AttentionPlan *p, bool values_along);

/* A product in tiles, as decisions (tile.c): what it is, and what is chosen of it. */
enum { TILE_PARTS = 7, TILE_SIDES = 6, TILE_GROUPS = 5 }; /* powers of 2 that are looked at */
typedef struct {
    DeviceTile of;    /* its sizes, */
    bool       whole; /* whether the sum cannot be made in parts, */
    bool       words; /* whether bytes come four at a time, whose chunks end with the sum, */
    int64_t    first; /* and rounds of the sum's first loop: given */
    uint32_t   nsum;  /* loops of the sum, and their rounds: of the others given, */
    int64_t    sum[MAX_LOOPS];
    bool       any[MAX_LOOPS]; /* a run decides how many of them: given, */
    bool       shares;         /* whether its panels are always shared: given, */
    DeviceTile t;              /* of a part of the sum, */
    int64_t    parts;          /* of so many */
    uint32_t   level;          /* the first loop that a chunk has a part of, */
    int64_t    part;           /* so many rounds; 0: no tile fits */
    int64_t    groups;         /* of threads, each with a part of those rounds */
    int64_t    quad, written;  /* numbers that a thread loads at a time; rounds written out */
    double known[2][TILE_PARTS][TILE_SIDES][TILE_SIDES][TILE_GROUPS]; /* estimates; 0: not yet */
} TilePlan;
Decide decide_tile;
/* Cycles of the device of a product in the tiles that decide_tile takes. */
double gpu_tile_cycles(const Machine *m, DeviceTile of);

/* Cells of a thread: neighbours of all loops as one, so many times as many of one of them
 * (cells.c). */
typedef struct {
    int64_t     rows, cells;
    const char *row_loop; /* NULL: there is one row */
} CellTile;
CellTile decide_thread_cells(Sched *s, const char *block);
/* The least estimate of these; NAN: there is none. */
double thread_cells_cycles(Sched *s, const char *block);

/* A loop over the cells of a block by threads, so many of a block of them; the name of the loop
 * over threads or NULL (nest.c). */
const char *bind_cells(Sched *s, const char *name, const char *loop, int64_t most);
/* All cells of a block by threads, each with such a tile of them. */
void bind_own_cells(Sched *s, const char *name, const CellTile *tile);

/* The block behind the given one, others between inlined into it; NULL: there is none.  *alone:
 * there are no more. */
const char *only_follower(Sched *s, const char *block, bool *alone);

#endif
