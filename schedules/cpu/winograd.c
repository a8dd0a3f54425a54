/* Winograd's convolution, tiles of 4x4 to 8x8 cells, on blocked layouts
 * (ops/nn/conv2d_winograd.c).
 *
 *   %v1, %v  input transform    %m[r,q,t,o] = sum[c,i] %v * %u    %y1, %y  output transform
 *
 * The image is cut into blocks, some rows of tiles or a part of one.  A block's %v is made first;
 * then, for each group of outputs, the products of all cells of the transform go through a small
 * private %m.  Threads
 * take blocks, each with a %v of its own.  One block for all (few tiles, many weights) has two
 * phases: threads divide the making of %v, then the groups of outputs, so that each weight is read
 * once.  The block and the register tile are chosen by what is moved (`cut_cost`).
 *
 * In groups, which read no channels of another, a group takes its blocks by turns: a block's v and
 * m and the group's weights stay in L1.
 *
 * 8-bit integers take two channels a step, as in dot.c: %v and %u are i16. */
#include "ops/ops.h"
#include "schedules/cpu/cpu.h"

#include <math.h>
#include <string.h>

typedef struct {
    int64_t lanes, c, i, o; /* o: channels */
    int64_t a[2], m[2];     /* cells and outputs of a tile */
    int64_t n, rows, cols;  /* images; tiles of one */
    int64_t edge[2];        /* outputs of the last row's and column's tiles; m: no short ones */
    bool    ints;           /* sums of i32, of products of i16 by dot2 */
    bool    open;           /* a run decides how many tiles there are: one row of them */
    int64_t group;          /* vectors of outputs that read the same c blocks */
    bool    within;         /* blocks hold whole groups, of i channels and `out` outputs */
    int64_t out;
} WinoSizes;

/* The 36 cells of a tile are used together: a line's odd number apart they lie in 36 sets of the
 * first cache; 16 tiles of 64 channels would lie in one, which holds 8 lines.  Cells that are half
 * a line longer than whole ones (7 tiles of 8 channels) lie apart by themselves. */
static void spread_cells(Sched *s, const char *tensor, long long bytes, long long cell)
{
    long long line = CACHE_LINE / bytes;

    if (cell * bytes % CACHE_LINE)
        return;
    step(s, "storage_align %%%s dim=1 by %lld offset=%lld", tensor, 2 * line, line);
}

static const char *name_of(const Sched *s, const char *block, uint32_t k)
{
    return sched_block(s, block)->u.block.iter[k]->name;
}

/* Are the last tiles of an axis short, and of how many cells. */
static bool is_short(const WinoSizes *z, uint32_t axis)
{
    return z->edge[axis] < z->m[axis];
}

static int64_t last_cells(const WinoSizes *z, uint32_t axis)
{
    int64_t a = z->a[axis], m = z->m[axis];

    return is_short(z, axis) ? winograd_short_cells(a, a + 1 - m, z->edge[axis]) : a;
}

static bool is_grouped(const WinoSizes *z)
{
    return z->within || z->group < z->o / z->lanes;
}

/* Bytes. */
static double group_weights(const WinoSizes *z)
{
    return (double)(z->a[0] * z->a[1] * z->c * z->i * z->group * z->lanes * 4);
}

/* How the image is cut: a block is some rows of tiles, or a part of one row; and the register tile.
 */
typedef struct {
    int64_t rows, cols;
    RegTile tile;
} Cut;

static bool is_whole(const WinoSizes *z, Cut cut)
{
    return !is_grouped(z) && !z->open && cut.rows == z->rows && cut.cols == z->cols;
}

/* Of a block. */
static int64_t cut_tiles(const WinoSizes *z, Cut cut)
{
    return is_whole(z, cut) ? z->n * z->rows * z->cols : cut.rows * cut.cols;
}

/* Weights come from beyond L1 for each block.  Of groups of 32 channels (147 KB) asking took 0.69
 * to 0.85 of the time at 28x28, 0.8 to 1 at 7x7; of 16, which stay in L1, 0.93 to 1.07, of 8 0.8 to
 * 1.13 (Zen 5, AVX-512 and AVX2).  Short tiles at the end of rows read them with gaps that
 * hardware's prefetchers do not follow: where one block uses weights that L2 does not hold, asking
 * took 0.94 of the time (1024 channels in groups of 8 at 7x7, AVX2) and 0.87 (512 at 14x14), 0.5 to
 * 0.8 while others used L3; with AVX-512, where each vector is a line to ask for, 1.07. */
static bool feeds_weights(const Machine *m, const WinoSizes *z, Cut cut)
{
    double w = group_weights(z), panel = w * (double)cut.tile.nv / (double)z->group;
    bool   once = cut.rows == z->rows && cut.cols == z->cols && z->lanes * 4 < CACHE_LINE;

    return !is_grouped(z) || panel > (double)room_stages(m) ||
           (once && is_short(z, 1) &&
            w * (double)(z->o / z->lanes / z->group) > (double)room_weights(m));
}

/* The products as register tiles; weights lie as they are read. */
static void product_tiles(Sched *s, const WinoSizes *z, Cut cut)
{
    Machine  m = machine_of(s->target);
    RegTile  t = cut.tile;
    int64_t  width = t.nv * z->lanes;
    TileNest tile = {.block = "m",
                     .line = "ml",
                     .tiles = "mt",
                     .pixel = "mp",
                     .pixels = t.pixels,
                     .sums = z->ints     ? "%m.c, %k2"
                             : z->within ? "%m.i"
                                         : "%m.c, %m.i",
                     .vectors = z->within ? "%mv, %m.l" : "%mv, %mj",
                     .four = z->ints ? "two" : NULL,
                     .instruction = "dot2",
                     .lane = z->within ? "m.l" : "mj",
                     /* Of integers not the steps: dot.c. */
                     .unroll = z->ints ? "%mp, %mv" : "%m.i, %mp, %mv"};

    if (z->ints) {
        step(s, "transform_layout %%w (r, q, o, c) -> (o//%lld, r, q, c//2, o%%%lld, c%%2)",
             (long long)width, (long long)width);
        step(s, "split %%m.i by 2 -> %%k2, %%two");
    } else if (z->within && z->out < z->lanes) {
        step(s,
             "transform_layout %%w (r, q, o, c) -> (o//%lld, r, q, c, o%%%lld//%lld, o%%%lld, "
             "o%%%lld//%lld)",
             (long long)width, (long long)width, (long long)z->lanes, (long long)z->out,
             (long long)z->lanes, (long long)z->out);
    } else {
        step(s, "transform_layout %%w (r, q, o, c) -> (o//%lld, r, q, c, o%%%lld)",
             (long long)width, (long long)width);
    }
    if (feeds_weights(&m, z, cut))
        step(s, "prefetch %%w by %lld", (long long)limit_page_bytes(&m));
    if (z->within) {
        step(s, "split %%m.o by %lld -> %%mc, %%mv", (long long)t.nv);
    } else {
        step(s, "split %%m.o by %lld -> %%mc, %%mo", (long long)width);
        step(s, "split %%mo by %lld -> %%mv, %%mj", (long long)z->lanes);
    }
    step(s, "reorder %%mc, %%m.h, %%m.w, %s, %s%s", tile.sums, tile.vectors,
         z->ints ? ", %two" : "");
    step(s, "fuse %%m.h, %%m.w -> %%ml");
    tile_sums(s, &tile);
    tile_marks(s, &tile);
    /* Few products of one tile are not worth a call. */
    if (!is_grouped(z) || cut_tiles(z, cut) > t.pixels)
        step(s, "outline %%mt -> @tile");
}

/* Cells of the transform of all tiles of an axis. */
static int64_t axis_cells(const WinoSizes *z, int axis)
{
    int64_t tiles = axis ? z->cols : z->rows;

    return tiles * z->a[axis] - (z->a[axis] - last_cells(z, (uint32_t)axis));
}

/* Products of one cell of the transform, of so many tiles, with a block's outputs. */
static double cell_products(const Machine *at, const WinoSizes *z, Cut cut, int64_t tiles)
{
    double steps = (double)(z->c * z->i) * (z->ints ? PAIR_STEP / 2 : 1);

    if (is_grouped(z))
        return (double)z->group / (double)cut.tile.nv *
               short_sums_cycles(at, z->lanes, tiles, cut.tile.nv, ceil_div(tiles, cut.tile.pixels),
                                 steps);
    return (double)(z->o / z->lanes / cut.tile.nv) * steps *
           tile_time(at, z->lanes, tiles, cut.tile.nv).compute;
}

/* Of all cells of a block, the last one of the image or another: those that all of its tiles have,
 * and those that short ones leave out. */
static double block_products(const Machine *at, const WinoSizes *z, Cut cut, bool last)
{
    int64_t tiles = cut_tiles(z, cut);
    bool    low = last && is_short(z, 0), slim = is_short(z, 1);
    int64_t r[2] = {low ? last_cells(z, 0) : z->a[0], 0}, q[2] = {last_cells(z, 1), 0};
    double  cycles = 0;

    if (!low && !slim)
        return (double)(z->a[0] * z->a[1]) * cell_products(at, z, cut, tiles);
    r[1] = z->a[0] - r[0];
    q[1] = z->a[1] - q[0];
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++) {
            int64_t of = (cut.rows - (i && low)) * (cut.cols - (k && slim));

            if (r[i] * q[k] * of > 0)
                cycles += (double)(r[i] * q[k]) * cell_products(at, z, cut, of);
        }
    return cycles;
}

/* Of the transforms of both dimensions. */
static double winograd_ways(const int64_t a[2])
{
    return winograd_way(a[0]) + winograd_way(a[1]);
}

/* ... in groups: one after the other, all blocks of it.  Transforms are most of the work, and wait
 * for L2 where a block's v and m do not stay in L1 beside the weights: pieces of a few lines, which
 * nobody asks for ahead.  While products read one cell of v after the other they store as many of
 * m, so that each comes back after half of the others.  Weights come once from memory, before the
 * products or, where they are asked for, beside them. */
static double grouped_cost(const Machine *at, const WinoSizes *z, Cut cut)
{
    int64_t blocks = z->n * (z->rows / cut.rows) * (z->cols / cut.cols);
    int64_t groups = z->o / z->lanes / z->group;
    double  cells = (double)(z->n * axis_cells(z, 0) * axis_cells(z, 1)) / (double)blocks;
    double  c = (double)z->c, ends = is_short(z, 0) ? 1 / (double)blocks : 0;
    double  vectors = (double)z->group, parts = vectors / (double)cut.tile.nv;
    double  bytes = (double)(z->lanes * 4), v = cells * c * bytes;
    double  m = cells * (double)cut.tile.nv * bytes;
    double  w = group_weights(z);
    int64_t tile = (z->a[0] > z->a[1] ? z->a[0] : z->a[1]) - 2;
    double  cell = winograd_group_cell_cycles(at, z->lanes, tile, z->within) * winograd_ways(z->a);
    bool    feeds = feeds_weights(at, z, cut);
    Time    t = {0};

    if (w / parts + v + m > (double)room_stages(at)) {
        double others = w / parts / 2;
        Time   weights = moved_time(at, w, 0, w / parts + v + m);

        weights = feeds ? time_ahead(weights) : time_times(at->apart, weights);
        t = moved_time(at, at->apart * v * parts, v, v + m / 2 + others);
        t = time_beside(t, moved_time(at, at->apart * m * parts, m * parts, m + v / 2 + others));
        t = time_beside(t, weights);
    }
    double products =
        (1 - ends) * block_products(at, z, cut, false) + ends * block_products(at, z, cut, true);
    t.compute = products + cells * (c + vectors) * cell + (feeds ? asked_cycles(at, w) : 0);
    double all = divided((double)(blocks * groups) * time_cycles(at, t), groups);

    w *= (double)groups;
    products *= (double)(blocks * groups);
    return feeds ? all - products +
                       time_cycles(at, time_beside(time_compute(products), fetched_time(at, w)))
                 : all + time_traffic(weights_time(at, w));
}

/* Cycles of one core for all blocks of a number of tiles that is known: v is made, then by groups
 * m, which becomes the result.  Each of these finds what the one before stored where the bytes that
 * passed between have left it.  What comes beside the products they hide, for the most part;
 * transforms compute little and wait, and so do products for v beyond L2, which a tile reads in
 * pieces of its rows, too short to be foreseen. Weights come once a block, to the first one from
 * memory, during the first register tiles, and each panel again for the tiles that follow.  What
 * reading the image and storing the result takes is the same for all cuts. */
static double known_cost(const Machine *at, const WinoSizes *z, Cut cut)
{
    double  a2 = (double)(z->a[0] * z->a[1]), in = (double)(z->c * z->i);
    int64_t blocks = z->n * (z->rows / cut.rows) * (z->cols / cut.cols);
    int64_t tiles = cut_tiles(z, cut), groups = z->o / z->lanes / cut.tile.nv;

    if (is_grouped(z))
        return grouped_cost(at, z, cut);
    double width = (double)(cut.tile.nv * z->lanes), wide = (double)z->o, n = (double)groups;

    if (is_whole(z, cut)) /* one block of all images */
        blocks = 1;
    double passes = (double)ceil_div(tiles, cut.tile.pixels);
    double cells = (double)(z->n * axis_cells(z, 0) * axis_cells(z, 1)) / (double)blocks;
    double bytes = z->ints ? 2 : 4, image = (double)(tiles * z->m[0] * z->m[1]) * (in + wide) * 4;
    double v = cells * in * bytes, m = cells * width * 4;
    double panel = in * width * bytes, w = a2 * in * wide * bytes;
    double rows = (double)(cut.tile.pixels * CACHE_LINE);
    double group = v + m + w / n, block = v + m + w + image;
    double products = block_products(at, z, cut, true);
    double transforms = cells / (double)z->lanes * (in * WINOGRAD_INPUT + wide * WINOGRAD_OUTPUT) *
                        winograd_ways(z->a);
    double once = w / (double)blocks; /* of a block, on the average */
    Time   weights = time_beside(fetched_time(at, once), moved_time(at, w - once, 0, block));
    Time   first = time_ahead(weights);
    Time   waits = time_beside(moved_time(at, 0, v, block), moved_time(at, n * m, 0, group));
    Time   reads =
        time_beside(moved_time(at, v, 0, v + panel), moved_time(at, (n - 1) * v, 0, group));

    waits = time_beside(waits, time_take_far(&reads));
    Time beside = time_beside(reads, moved_time(at, 0, n * m, group));

    beside = time_beside(beside, moved_time(at, (passes - 1) * w, 0, panel + rows));
    first.compute = products / passes;
    beside.compute = time_cycles(at, first) + (products - first.compute);
    return divided((double)blocks * (time_cycles(at, beside) + transforms + time_traffic(waits)),
                   blocks > 1 || z->open ? blocks : groups);
}

/* Where a run decides how many tiles there are, the geometric mean of squares from 4 of them up to
 * the usual number, each of which counts as much as any other. */
static double cut_cost(const Machine *at, const WinoSizes *z, Cut cut)
{
    double cycles = 0, all = 0;

    if (!z->open)
        return known_cost(at, z, cut);
    for (int64_t side = 2; side == 2 || side * side <= z->cols; side += 1 + side / 2, all++) {
        WinoSizes some = *z;

        some.cols = round_up(side * side, cut.cols);
        cycles += log(known_cost(at, &some, cut));
    }
    return exp(cycles / all);
}

/* Integers need a register for what is between two instructions. */
static int64_t most_tiles(const Machine *m, const WinoSizes *z, int64_t nv)
{
    int64_t most = tile_pixels_most(m, z->lanes, nv);

    if (z->within)
        most = (tile_regs(m, z->lanes, nv) - nv - 1) / nv;
    while (z->ints && most > 1 && most * nv + nv + 2 > tile_regs(m, z->lanes, nv))
        most--;
    return most;
}

/* The tile of nv vectors; without pixels: there is none. */
static RegTile wino_tile(const Machine *m, const WinoSizes *z, int64_t nv)
{
    int64_t most = z->group % nv ? 0 : most_tiles(m, z, nv);

    return (RegTile){most > 0 ? most : 0, nv};
}

static int64_t most_wide(const Machine *m, const WinoSizes *z)
{
    return z->ints ? limit_winograd_int_vectors(m) : limit_winograd_vectors(m);
}

/* Parts of a row, then groups of rows; of a number that a run decides those that divide the most
 * tiles of a part (ops/nn/conv2d_winograd.c).  False: that was all. */
static bool next_cut(const WinoSizes *z, Cut *cut)
{
    int64_t cols = z->open ? WINOGRAD_OPEN_TILES : z->cols;

    if (cut->cols < cols)
        cut->cols = divisor_from(cols, cut->cols + 1);
    else if (!z->open && cut->rows < z->rows)
        cut->rows = divisor_from(z->rows, cut->rows + 1);
    else
        return false;
    return true;
}

/* Short tiles are the last ones of whole rows, and without groups of a block for all: threads would
 * divide blocks that are alike apart from the last one. */
static Cut first_cut(const WinoSizes *z, RegTile t)
{
    bool low = is_short(z, 0), slim = is_short(z, 1), all = !is_grouped(z) && (low || slim);

    return (Cut){all ? z->rows : 1, all || slim ? z->cols : 1, t};
}

/* The cheapest cut for the tile, and its cycles. */
static Cut cut_for(const Machine *m, const WinoSizes *z, RegTile t, double *cycles)
{
    Cut cut = first_cut(z, t), best = cut;

    *cycles = cut_cost(m, z, cut);
    while (next_cut(z, &cut)) {
        double c = cut_cost(m, z, cut);
        if (c < *cycles)
            *cycles = c, best = cut;
    }
    return best;
}

static Cut best_cut(const Machine *m, const WinoSizes *z)
{
    Cut    best = {z->rows, z->cols, {1, 1}};
    double least = INFINITY, cycles;

    for (int64_t nv = 1; nv <= most_wide(m, z); nv++) {
        RegTile t = wino_tile(m, z, nv);
        if (!t.pixels)
            continue;
        Cut cut = cut_for(m, z, t, &cycles);
        if (cycles < least)
            least = cycles, best = cut;
    }
    return best;
}

typedef struct {
    WinoSizes z;
    Cut       cut;
} WinoPlan;

static void decide_cut(Sched *s, void *plan)
{
    WinoPlan        *p = plan;
    const WinoSizes *z = &p->z;
    Machine          m = machine_of(s->target);
    Candidates       tiles = candidates(s), blocks = candidates(s);
    Cut              cut = first_cut(z, (RegTile){1, 1});
    double           cycles;

    for (int64_t nv = 1; nv <= most_wide(&m, z); nv++) {
        RegTile t = wino_tile(&m, z, nv);
        if (!t.pixels)
            continue;
        cut_for(&m, z, t, &cycles);
        /* Without groups fed_step_cycles counts loads. */
        candidate(&tiles, t.pixels, nv, is_grouped(z) ? cycles * loads_price(t) : cycles);
    }
    if (!tiles.of.n)
        candidate(&tiles, 1, 1, NAN);
    cut.tile = pick_reg_tile(s, "tile", &tiles);
    do
        candidate(&blocks, cut.rows, cut.cols, cut_cost(&m, z, cut));
    while (next_cut(z, &cut));
    const Candidate *block = pick_tile(s, "block", &blocks);
    p->cut = (Cut){block->v[0], block->v[1], cut.tile};
}

/* What a run decides: as many as usual, in one row. */
static void tiles_in_line(WinoSizes *z)
{
    z->cols *= z->rows;
    z->rows = 1;
}

double winograd_cycles(const Machine *at, const WinogradShape *shape, int64_t tile)
{
    int64_t   lanes = shape->lanes;
    WinoSizes z = {.lanes = lanes,
                   .c = ceil_div(shape->in, lanes),
                   .i = lanes,
                   .o = ceil_div(shape->out, lanes) * lanes,
                   .ints = shape->ints,
                   .n = shape->n,
                   .open = shape->open};

    for (uint32_t i = 0; i < 2; i++) {
        z.a[i] = winograd_cells(tile, shape->k, i);
        z.m[i] = z.edge[i] = z.a[i] + 1 - shape->k[i];
        if (!z.a[i] || shape->k[0] * shape->k[1] < 2)
            return INFINITY;
    }
    z.rows = ceil_div(shape->y, z.m[0]);
    z.cols = ceil_div(shape->x, z.m[1]);
    if (z.open)
        tiles_in_line(&z);
    z.group = z.o / lanes;
    if (shape->groups > 1 && shape->in / shape->groups < lanes) {
        z.within = true;
        z.c = 1;
        z.i = shape->in / shape->groups;
        z.out = shape->out / shape->groups;
        z.group = shape->out / shape->in;
    } else if (shape->groups > 1) {
        z.c /= shape->groups;
        z.group /= shape->groups;
    }
    if (shape->short_tiles && z.rows > 1 && shape->y % z.m[0])
        z.edge[0] = shape->y % z.m[0];
    if (shape->short_tiles && z.cols > 1 && shape->x % z.m[1])
        z.edge[1] = shape->x % z.m[1];
    Cut cut = best_cut(at, &z);

    if (z.open)
        z.cols = round_up(z.cols, cut.cols);
    return known_cost(at, &z, cut);
}

/* The last tiles of an axis are short: what the block makes of them is another case. */
static bool makes_short(const Sched *s, const char *block)
{
    const Stmt *b = sched_block(s, block);
    const Prim *v = b && b->nkids ? b->kids[0]->u.store.value : NULL;

    return v && v->kind == PRIM_CASE && v->kids[0]->kind == PRIM_CASE;
}

/* Arms of the case that chooses among a tile's columns; 1: there is one to choose. */
static int64_t tile_columns(const Sched *s, bool ints, int64_t a)
{
    const Stmt *b = sched_block(s, "y");
    const Prim *v = b && b->nkids ? b->kids[0]->u.store.value : NULL;

    if (ints)
        return a - 2;
    if (v && v->kind == PRIM_CASE && v->kids[0]->kind == PRIM_CASE)
        v = v->kids[0];
    return v && v->kind == PRIM_CASE ? v->nkids : 1;
}

static bool sums_ints(const Sched *s)
{
    const Stmt *m = sched_block(s, "m");

    return m && m->nkids && dtype_is_int(m->kids[m->nkids - 1]->u.store.value->dtype);
}

typedef struct {
    const Sched *s;
    Machine      m;
    const char  *name[4];
    uint32_t     n;
} Large;

/* Parameters in blocks that are no weights and of which half of L2 holds no two. */
static void add_large(void *user, const Prim *p)
{
    Large        *l = user;
    const Buffer *b = p->kind == PRIM_LOAD ? p->u.load.buffer : NULL;
    int64_t       cells, origin;
    bool          known = !b || b->ndim != 5;

    for (uint32_t i = 0; b && i < l->n; i++)
        known |= !strcmp(l->name[i], b->name);
    if (known || l->n == COUNT(l->name) || !buffer_size(l->s->c, b, &cells, &origin) ||
        cells * dtype_bytes(b->dtype) <= room_next(&l->m))
        return;
    l->name[l->n++] = b->name;
}

/* Memory is idle during the products: meanwhile what the transforms of the next block will read is
 * brought to L2. */
static void ask_early(Sched *s, const char *block, const char *round)
{
    const Stmt *reader = sched_block(s, block);
    Large       l = {.s = s, .m = machine_of(s->target)};

    if (reader)
        stmt_visit(reader, &(TirVisit){.user = &l, .prim = add_large});
    for (uint32_t i = 0; i < l.n; i++)
        try_step(s, "prefetch_next %%%s at %%m.q over %%%s", l.name[i], round);
}

/* Written out: arms of one case share their sums.  A transform ends with one column of cells after
 * the other, each of which needs 6 of the 36 numbers between its two ways: row after row would need
 * all of them for each row, of which 16 registers hold few. */
static void transform_marks(Sched *s, const WinoSizes *z, Cut cut, const char *out,
                            const char *lane)
{
    int64_t tiles = cut_tiles(z, cut);

    spread_cells(s, "v", z->ints ? 2 : 4, z->c * tiles * z->lanes);
    spread_cells(s, "m", 4, tiles * cut.tile.nv * z->lanes);
    step(s, "set_scope %%v1 reg");
    step(s, "set_scope %%y1 reg");
    step(s, "reorder %%y1.q, %%y1.a, %%y1.o");
    step(s, "vectorize %%v1.i");
    step(s, "vectorize %%v.i");
    step(s, "unroll %%v1.r, %%v1.q");
    step(s, "unroll %%v.r, %%v.q");
    step(s, "vectorize %%y1.o");
    step(s, "unroll %%y1.a, %%y1.q");
    step(s, "vectorize %%%s.%s", out, lane);
    step(s, "unroll %%yy, %%xx");
}

/* Strips of tiles, short ones apart from whole ones; gives which copy of the loop over blocks has
 * the last row. */
static int64_t short_strips(Sched *s, const WinoSizes *z, Cut cut)
{
    int64_t blocks = z->rows / cut.rows, last = is_short(z, 0) && blocks > 1;

    if (last)
        step(s, "partition %%blk at %lld", (long long)blocks - 1);
    if (is_short(z, 0) && cut.rows > 1)
        step(s, "partition %%tr#%lld at %lld", (long long)last, (long long)cut.rows - 1);
    if (is_short(z, 1) && cut.cols > 1)
        step(s, "partition %%tc at %lld", (long long)cut.cols - 1);
    return last;
}

/* What short tiles' results do not need: of m's products, in that copy of the loop around; of v's
 * cells. */
static void short_products(Sched *s, const WinoSizes *z, int64_t copy)
{
    bool low = is_short(z, 0), slim = is_short(z, 1);

    if (low)
        step(s, "partition %%m.r#%lld at %lld", (long long)copy, (long long)last_cells(z, 0));
    if (slim)
        step(s, "partition %%m.q at %lld", (long long)last_cells(z, 1));
    if (low || slim)
        step(s, "skip_unread m");
}

static void short_inputs(Sched *s, const WinoSizes *z, Cut cut, int64_t copy)
{
    bool low = is_short(z, 0) && cut.rows > 1, slim = is_short(z, 1) && cut.cols > 1;

    if (low)
        step(s, "partition %%v.h#%lld at %lld", (long long)copy, (long long)cut.rows - 1);
    if (slim)
        step(s, "partition %%v.w at %lld", (long long)cut.cols - 1);
    if (low || slim)
        step(s, "skip_unread v");
}

/* A group reads no channels of another, so all of its blocks come first, whose v and m are small;
 * its weights stay near.  Threads divide rows before groups, as other convolutions, unless all
 * weights would come from afar once more for each part of the rows, or short tiles make the last
 * rows a loop of their own. */
static void grouped_nest(Sched *s, const WinoPlan *p, const char *out)
{
    const WinoSizes *z = &p->z;
    Cut              cut = p->cut;
    const char      *n = name_of(s, out, 0), *o = name_of(s, out, 1), *j = name_of(s, out, 4);
    int64_t          rows = z->rows / cut.rows, parts = row_blocks(s, rows);
    Machine          m = machine_of(s->target);

    if (is_short(z, 0) ||
        group_weights(z) * (double)(z->o / z->lanes / z->group) > (double)room_weights(&m))
        parts = 1;

    step(s, "split %%%s.%s by %lld -> %%grp, %%og", out, o, (long long)z->group);
    step(s, "split %%og by %lld -> %%oc, %%ov", (long long)cut.tile.nv);
    step(s, "split %%ty by %lld -> %%yb, %%tr", (long long)cut.rows);
    step(s, "split %%yb by %lld -> %%part, %%blk", (long long)(rows / parts));
    step(s, "split %%tx by %lld -> %%xb, %%tc", (long long)cut.cols);
    step(s,
         "reorder %%%s.%s, %%part, %%grp, %%blk, %%xb, %%oc, %%tr, %%tc, %%ov, %%yy, %%xx, %%%s.%s",
         out, n, out, j);
    int64_t last = short_strips(s, z, cut);

    step(s, "compute_at y1 %%ov");
    if (is_short(z, 1))
        step(s, "skip_unread y1");
    step(s, "compute_at m %%oc");
    step(s, "set_scope %%m private");
    short_products(s, z, last);
    step(s, "compute_at v %%xb");
    step(s, "set_scope %%v private");
    step(s, "reorder %%v.c, %%v.h, %%v.w, %%v.q, %%v.r, %%v.i");
    short_inputs(s, z, cut, last);
    step(s, "compute_at v1 %%v.w");
    product_tiles(s, z, cut);
    transform_marks(s, z, cut, out, j);
    step(s, "fuse %%part, %%grp -> %%u");
    step(s, "parallel %%u");
    if (!s->refusal && has_block(s, "pad"))
        pad_marks(s, NULL);
}

/* The line of tiles in parts: the last one may go beyond the image, where nothing is stored. */
static void open_nest(Sched *s, const WinoPlan *p, const char *out)
{
    const WinoSizes *z = &p->z;
    Cut              cut = p->cut;
    const char      *n = name_of(s, out, 0), *o = name_of(s, out, 1), *y = name_of(s, out, 2),
               *x = name_of(s, out, 3), *j = name_of(s, out, 4);

    step(s, "split %%%s.%s by %lld tail=if -> %%ty, %%yy", out, y, (long long)z->m[0]);
    step(s, "split %%%s.%s by %lld tail=if -> %%tx, %%xx", out, x, (long long)z->m[1]);
    step(s, "split %%%s.%s by %lld -> %%oc, %%ov", out, o, (long long)cut.tile.nv);
    step(s, "reorder %%%s.%s, %%ty, %%tx, %%oc, %%ov, %%yy, %%xx, %%%s.%s", out, n, out, j);
    step(s, "fuse %%ty, %%tx extents=any -> %%all");
    step(s, "split %%all by %lld tail=if -> %%part, %%tc", (long long)cut.cols);
    step(s, "reorder %%part, %%oc, %%tc, %%ov, %%yy, %%xx, %%%s.%s", out, j);
    step(s, "compute_at y1 %%ov");
    step(s, "compute_at m %%oc");
    step(s, "set_scope %%m private");
    step(s, "compute_at v %%part");
    step(s, "set_scope %%v private");
    step(s, "parallel %%part");
    step(s, "reorder %%v.c, %%v.h, %%v.w, %%v.q, %%v.r, %%v.i");
    step(s, "compute_at v1 %%v.w");
    product_tiles(s, z, cut);
    transform_marks(s, z, cut, out, j);
    if (!s->refusal && has_block(s, "pad"))
        pad_marks(s, NULL);
}

void sched_winograd(Sched *s)
{
    WinoSizes   z = {.a = {iter_extent(s, "m", "r"), iter_extent(s, "m", "q")},
                     .c = iter_extent(s, "m", "c"),
                     .i = iter_extent(s, "m", "i"),
                     .o = iter_extent(s, "m", "o"),
                     .ints = sums_ints(s),
                     .within = !iter_extent(s, "m", "c")};
    const char *out;
    bool        low = makes_short(s, "y1"), slim = makes_short(s, "y");

    z.c = z.within ? 1 : z.c;
    z.m[0] = iter_extent(s, "y1", "a");
    z.m[1] = tile_columns(s, z.ints, z.a[1]);

    if (z.a[0] < 1 || z.a[1] < 1 || z.m[0] < 1 || z.m[1] < 1 || z.c < 1 || z.o < 1) {
        s->refusal = "'m' and 'y1' have not the iterators of Winograd's convolution";
        return;
    }
    z.lanes = iter_extent(s, "v", "i");
    if (!is_block(s, z.lanes)) {
        s->refusal = "the data are not in blocks";
        return;
    }
    int64_t groups = iter_extent(s, "v", "c") / z.c;

    if (z.within)
        z.o *= z.lanes;
    z.group = z.o / z.lanes / (groups > 0 ? groups : 1);
    if (z.within)
        z.out = z.i * z.group;
    try_step(s, "elide_pad pad");
    out = inline_epilogue(s, "y1");
    if (s->target->has_fma && !z.ints) {
        step(s, "contract m");
        try_step(s, "contract v1");
        try_step(s, "contract v");
        try_step(s, "contract y1");
        if (out)
            try_step(s, "contract %s", out);
    }
    if (!out || sched_block(s, out)->u.block.nspatial != 5) {
        s->refusal = "the result is not in blocks";
        return;
    }
    const char *n = name_of(s, out, 0), *o = name_of(s, out, 1), *y = name_of(s, out, 2),
               *x = name_of(s, out, 3), *j = name_of(s, out, 4);
    z.n = iter_extent(s, out, n);
    z.rows = ceil_div(iter_extent(s, out, y), z.m[0]);
    z.cols = ceil_div(iter_extent(s, out, x), z.m[1]);
    z.open = is_symbolic(s, "m", "w");
    if (z.open && (is_grouped(&z) || z.n != 1)) {
        s->refusal = "sizes that a run decides, of groups or of several images";
        return;
    }
    if (z.open)
        tiles_in_line(&z);
    z.edge[0] = low ? iter_extent(s, out, y) % z.m[0] : z.m[0];
    z.edge[1] = slim ? iter_extent(s, out, x) % z.m[1] : z.m[1];
    WinoPlan p = {.z = z};
    sched_decide(s, decide_cut, &p);
    Cut  cut = p.cut;
    bool whole = is_whole(&z, cut), shorter = is_short(&z, 0) || is_short(&z, 1);

    if (z.open) {
        open_nest(s, &p, out);
        return;
    }
    step(s, "split %%%s.%s by %lld tail=if -> %%ty, %%yy", out, y, (long long)z.m[0]);
    step(s, "split %%%s.%s by %lld tail=if -> %%tx, %%xx", out, x, (long long)z.m[1]);
    if (is_grouped(&z)) {
        grouped_nest(s, &p, out);
        return;
    }
    step(s, "split %%%s.%s by %lld -> %%oc, %%ov", out, o, (long long)cut.tile.nv);
    step(s, "split %%ty by %lld -> %%blk, %%tr", (long long)cut.rows);
    step(s, "split %%tx by %lld -> %%part, %%tc", (long long)cut.cols);
    if (whole) {
        step(s, "reorder %%oc, %%%s.%s, %%blk, %%part, %%tr, %%tc, %%ov, %%yy, %%xx, %%%s.%s", out,
             n, out, j);
        short_strips(s, &z, cut);
    } else {
        step(s, "reorder %%%s.%s, %%blk, %%part, %%oc, %%tr, %%tc, %%ov, %%yy, %%xx, %%%s.%s", out,
             n, out, j);
        step(s, "fuse %%blk, %%part -> %%blk");
    }
    step(s, "compute_at y1 %%ov");
    if (is_short(&z, 1))
        step(s, "skip_unread y1");
    step(s, "compute_at m %%oc");
    step(s, "set_scope %%m private");
    short_products(s, &z, 0);
    if (!whole) {
        step(s, "compute_at v %%blk");
        step(s, "set_scope %%v private");
    }
    if (!whole && z.n > 1)
        step(s, "fuse %%%s.%s, %%blk -> %%all", out, n);
    const char *round = whole ? "oc" : z.n > 1 ? "all" : "blk";
    step(s, "parallel %%%s", round);
    step(s, "reorder %%v.c, %%v.h, %%v.w, %%v.q, %%v.r, %%v.i");
    short_inputs(s, &z, cut, 0);
    if (whole && !shorter)
        step(s, "fuse %%v.c, %%v.h, %%v.w -> %%vt");
    step(s, "compute_at v1 %%%s", whole && !shorter ? "vt" : "v.w");
    product_tiles(s, &z, cut);
    transform_marks(s, &z, cut, out, j);
    if (whole) {
        step(s, "parallel %%%s", shorter ? "v.c" : "vt");
    } else {
        ask_early(s, "v1", round);
        ask_early(s, out, round);
    }
    if (!s->refusal && has_block(s, "pad"))
        pad_marks(s, NULL);
}
