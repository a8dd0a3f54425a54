/* Convolutions and products of 8-bit integers with sums of 32 bits, by dot4; of 16-bit ones by
 * dot2.
 *
 *   %conv[n,o,y,x,j] = sum[c,kh,kw,i] i32(%pad[n,c,y*s+kh,x*s+kw,i]) * i32(%w[o*16+j, c*16+i, kh,
 * kw])
 *
 * The nest is that of conv2d.c; but a step of the reduction takes four neighbouring channels: one
 * word of four pixels' bytes, spread over the lanes, times a vector with four weights a lane, which
 * therefore lie `(.., c%4)` innermost.  Bytes are a quarter of floats, so chunks of the reduction
 * are rarely needed: the weights of an output block stay in L2, and are read from there at less
 * than a quarter of a vector a cycle. */
#include "ir/tir/intrin.h"
#include "schedules/cpu/cpu.h"

#include <math.h>

/* A step of the reduction: how many products, in how many instructions (0: none that is quick). */
typedef struct {
    uint32_t    ops;
    int64_t     terms;
    const char *text;         /* of the instruction */
    int64_t     weight_bytes; /* two, where the pass widen_weights was there */
} Dot;

/* The operands of a sum of products: load or select(.., load, 0) under a cast. */
static const Prim *small_operand(const Prim *p)
{
    if (p->kind != PRIM_CAST)
        return NULL;
    p = p->kids[0];
    return dtype_is_int(p->dtype) && (p->dtype.bits == 8 || dtype_eq(p->dtype, DT_I16)) ? p : NULL;
}

static Dot dot_of(const Sched *s, const char *block)
{
    const Stmt *b = sched_block(s, block);
    const Prim *v = b && b->nkids ? b->kids[b->nkids - 1]->u.store.value : NULL;

    Dot none = {0, 4, "dot4", 1};

    if (!v || v->kind != PRIM_ADD || !dtype_eq(v->dtype, DT_I32))
        return none;
    v = v->kids[v->kids[0]->kind == PRIM_MUL ? 0 : 1];
    const Prim *x = v->kind == PRIM_MUL ? small_operand(v->kids[0]) : NULL;
    const Prim *y = v->kind == PRIM_MUL ? small_operand(v->kids[1]) : NULL;
    if (!x || !y)
        return none;
    DType         types[] = {x->dtype, y->dtype};
    const Intrin *row = intrin_find(s->c, "dot4", 2, types);
    if (!row)
        row = intrin_find(s->c, "dot2", 2, types);
    return row ? (Dot){s->target->intrin_ops[row->id], row->operand[0].cells, row->text,
                       y->dtype.bits / 8}
               : none;
}

/* Each lane reads its own channel, and a dot4 is one instruction. */
bool depthwise_dot(const Sched *s)
{
    const Stmt *b = sched_block(s, "conv");
    const Prim *v = b && b->nkids ? b->kids[b->nkids - 1]->u.store.value : NULL;
    Dot         d = dot_of(s, "conv");

    if (d.ops != 1 || d.terms != 4)
        return false;
    v = v->kids[v->kids[0]->kind == PRIM_MUL ? 0 : 1];
    const Prim *x = small_operand(v->kids[0]);
    const Idx *lane = x->kind == PRIM_LOAD && x->u.load.n ? x->u.load.index[x->u.load.n - 1] : NULL;
    return lane && lane->nterms == 1 && lane->t[0].coef == 1 && lane->t[0].atom->kind == ATOM_VAR;
}

/* Registers: sums, weights, one spread word, and what is between two instructions; where dot4 is
 * four, weights and words are split in even and odd bytes. */
static int64_t most_pixels(const Machine *m, uint32_t ops, int64_t nv)
{
    int64_t regs = tile_regs(m, m->vector_bytes / 4, nv);

    return (regs - (ops > 2 ? 2 : 1) * nv - (ops > 2 ? 3 : ops)) / nv;
}

/* `whole`: all panels have nv vectors; else the last may have fewer. */
static RegTile dot_tile(Sched *s, uint32_t ops, int64_t vectors, int64_t pixels, bool whole,
                        double times)
{
    Machine    m = machine_of(s->target);
    Candidates k = candidates(s);

    for (int64_t nv = 1; nv <= limit_tile_most_vectors(&m) && nv <= vectors; nv++) {
        int64_t most = most_pixels(&m, ops, nv), rest = vectors % nv;

        for (int64_t p = whole && rest ? 0 : most; p > 0; p = lower_tile(pixels, p)) {
            double c = (double)(vectors / nv) * dot_step_cycles(&m, ops, pixels, p, nv);
            if (rest)
                c += dot_step_cycles(&m, ops, pixels, p, rest);
            if (p == most || p * nv >= limit_tile_least_sums(&m))
                candidate(&k, p, nv, c * times);
        }
    }
    if (!k.of.n)
        candidate(&k, 1, 1, NAN);
    return pick_reg_tile(s, "tile", &k);
}

/* `of` n, where so many bytes of each are best within `room_weights`. */
static int64_t pick_chunk(Sched *s, int64_t n, int64_t bytes)
{
    Machine    m = machine_of(s->target);
    Candidates k = candidates(s);

    divisors(&k, n);
    usual(&k, divisor_upto(n, room_weights(&m) / bytes + 1), 0);
    return pick_factor(s, "chunk", &k);
}

/* Groups of rows of a pixel block: its input within a quarter of L2, beside the weights. */
static int64_t pick_block(Sched *s, const ConvSizes *z, int64_t groups, int64_t rows, int64_t oc)
{
    Machine    m = machine_of(s->target);
    int64_t    bytes = conv_channels(z) * rows * z->x, gb = groups, best;
    Candidates k = candidates(s);

    while (gb > 1 && gb * bytes > room_image_bytes(&m))
        gb = divisor_upto(groups, gb - 1);
    best = gb;
    while (gb > 1 && thread_balance(groups / best * oc) < limit_balance_rows(&m)) {
        gb = divisor_upto(groups, gb - 1);
        if (thread_balance(groups / gb * oc) >
            thread_balance(groups / best * oc) + limit_balance_gain(&m))
            best = gb;
    }
    divisors(&k, groups);
    usual(&k, best, 0);
    return pick_factor(s, "block", &k);
}

/* What is decided, and from what. */
typedef struct {
    ConvSizes z;
    Dot       dot;
    int64_t   rows, chunk, block; /* as of conv2d.c */
    RegTile   tile;
} DotPlan;

static void decide_conv(Sched *s, void *plan)
{
    DotPlan         *p = plan;
    const ConvSizes *z = &p->z;
    Machine          m = machine_of(s->target);
    int64_t          depth = z->i ? z->i : 1, cells = depth * z->kh * z->kw;
    int64_t          best = joined_rows(&m, z->y, z->x);
    Candidates       rows = candidates(s);

    for (int64_t r = 1; r <= z->y && (r == 1 || r * z->x <= MOST_LINE); r++)
        if (z->y % r == 0)
            candidate(&rows, r, 0, NAN);
    usual(&rows, best, 0);
    p->rows = pick_factor(s, "rows", &rows);
    p->tile =
        dot_tile(s, p->dot.ops, z->o, p->rows * z->x, true,
                 (double)(z->n * z->y / p->rows) * (double)(z->c * cells) / (double)p->dot.terms);
    p->chunk = pick_chunk(s, z->c, cells * p->dot.weight_bytes * p->tile.nv * z->lanes);
    p->block = pick_block(s, z, z->y / p->rows, p->rows, z->o / p->tile.nv);
}

/* The loops of a step: four channels of a block, or four columns of a first layer's kernel; two,
 * where data are i16. */
static void split_fours(Sched *s, const ConvSizes *z, int64_t width, int64_t terms)
{
    long long w = (long long)width, i = (long long)z->i, n = (long long)terms;

    if (z->i) {
        step(s,
             "transform_layout %%w (o, c, h, v) -> (o//%lld, c//%lld, h, v, c%%%lld//%lld, "
             "o%%%lld, c%%%lld)",
             w, i, i, n, w, n);
        step(s, "split %%conv.i by %lld -> %%k4, %%four", n);
    } else {
        step(s, "transform_layout %%w (o, c, h, v) -> (o//%lld, c, h, v//%lld, o%%%lld, v%%%lld)",
             w, n, w, n);
        step(s, "split %%conv.kw by %lld -> %%k4, %%four", n);
    }
}

bool conv2d_dot(Sched *s)
{
    ConvSizes z = conv_lines(s);
    Dot       d = dot_of(s, "conv");

    if (!d.ops || !z.c || (z.i ? z.i : z.kw) % d.terms)
        return false;
    const char *out = prepare_anchor(s, "conv", true);
    const char *x = intern_printf(s->c->strings, "conv.%s", z.line);
    DotPlan     p = {.z = z, .dot = d};
    sched_decide(s, decide_conv, &p);
    RegTile t = p.tile;
    int64_t rows = p.rows, depth = z.i ? z.i : 1, kb = p.chunk, gb = p.block;
    int64_t groups = z.y / rows, oc = z.o / t.nv;
    bool    own = false; /* a thread makes its padded copies itself */

    split_fours(s, &z, t.nv * z.lanes, d.terms);
    step(s, "split %%conv.o by %lld -> %%oc, %%ov", (long long)t.nv);
    step(s, "split %%conv.%s by %lld -> %%gg, %%r", z.row, (long long)rows);
    step(s, "split %%gg by %lld -> %%yb, %%g", (long long)gb);
    step(s, "split %%conv.c by %lld -> %%kc, %%cb", (long long)kb);
    /* Not the fours are written out: LLVM would load the weights of the next ones early, and spill
     * a sum for them. */
    TileNest tile = {.block = "conv",
                     .line = x,
                     .joined = rows > 1 ? "r" : NULL,
                     .tiles = "t",
                     .pixel = "p",
                     .pixels = t.pixels,
                     .sums = z.i ? "%cb, %conv.kh, %conv.kw, %k4" : "%cb, %conv.kh, %k4",
                     .vectors = "%ov, %conv.j",
                     .four = "four",
                     .instruction = d.text,
                     .lane = "conv.j",
                     .unroll = "%p, %ov",
                     .out = out};
    step(s, "reorder %%conv.n, %%yb, %%oc, %%kc, %%g, %%r, %%%s, %s, %s, %%four", x, tile.sums,
         tile.vectors);
    tile_sums(s, &tile);
    tile_marks(s, &tile);
    if (!is_tiny(s, z.n * z.o * z.lanes * z.y * z.x * z.c * depth * z.kh * z.kw / 4)) {
        own = d.terms == 2 && groups / gb > 1;
        if (groups / gb > 1 && oc > 1 && !own) {
            step(s, "fuse %%yb, %%oc -> %%u");
            step(s, "parallel %%u");
        } else {
            step(s, "parallel %s", groups / gb > 1 ? "%yb" : "%oc");
        }
    }
    step(s, "outline %%t -> @tile");
    if (!s->refusal && has_block(s, "pad"))
        pad_marks(s, own ? "%yb" : NULL);
    return true;
}

/* A matrix product by the same steps: panels of nv vectors of columns, tiles of rows, and four
 * neighbours of k a step.  Panels lie `(n//32, k//4, n%32, k%4)`; a chunk of k only where a panel
 * would not stay in L2.  One row is bound by the stream of weights, as in dense.c. */
typedef struct {
    int64_t  vectors, rows, k, times;
    uint32_t ops;
    RegTile  tile;
    int64_t  chunk; /* of k, in fours */
} DotGemmPlan;

static void decide_dense(Sched *s, void *plan)
{
    DotGemmPlan *p = plan;
    Machine      m = machine_of(s->target);
    int64_t      best = limit_row_byte_vectors(&m);
    Candidates   row = candidates(s);

    if (p->rows == 1) {
        for (int64_t nv = 1; nv <= limit_tile_most_vectors(&m) && nv <= p->vectors; nv++)
            candidate(&row, 1, nv, NAN);
        usual(&row, 1, p->vectors < best ? p->vectors : best);
        p->tile = pick_reg_tile(s, "tile", &row);
    } else {
        p->tile = dot_tile(s, p->ops, p->vectors, p->rows, false, (double)(p->times * (p->k / 4)));
    }
    p->chunk = pick_chunk(s, p->k / 4, 4 * p->tile.nv * cpu_lanes(s));
}

bool dense_dot(Sched *s)
{
    int64_t  b = block_work(s, "dense"), m = iter_extent(s, "dense", "m");
    int64_t  n = iter_extent(s, "dense", "n"), k = iter_extent(s, "dense", "k");
    int64_t  lanes = cpu_lanes(s), rows = m ? m : 1, vectors = ceil_div(n, lanes);
    Dot      d = dot_of(s, "dense");
    uint32_t ops = d.terms == 4 ? d.ops : 0;

    if (!ops || k % 4 || n < LEAST_LANES || !is_packed(s))
        return false;
    DotGemmPlan p = {
        .vectors = vectors, .rows = rows, .k = k, .times = b / (rows * n * k), .ops = ops};
    sched_decide(s, decide_dense, &p);
    RegTile   t = p.tile;
    long long width = (long long)(t.nv * lanes);
    int64_t   kb = p.chunk;
    step(s, "transform_layout %%w (n, k) -> (n//%lld, k//4, n%%%lld, k%%4)", width, width);
    const char *out = prepare_anchor(s, "dense", false);

    step(s, "reorder %%n, %%m");
    step(s, "split %%n by %lld tail=peel -> %%nc, %%ni", width);
    step(s, "split %%k by 4 -> %%k4, %%four");
    step(s, "split %%k4 by %lld -> %%kc, %%kb", (long long)kb);
    step(s, "reorder %%kc, %%m, %%kb, %%ni, %%four");
    TileNest tile = {.block = "dense",
                     .line = "m",
                     .tiles = "t",
                     .pixel = "p",
                     .pixels = t.pixels,
                     .sums = "%kb",
                     .vectors = "%ni",
                     .four = "four",
                     .instruction = d.text,
                     .lane = "j",
                     .unroll = "%p, %nv",
                     .out = out};
    tile_sums(s, &tile);
    step(s, "split %%ni by %lld tail=peel -> %%nv, %%j", (long long)lanes);
    tile_marks(s, &tile);
    if (!is_tiny(s, b / 4))
        step(s, "parallel %s",
             iter_extent(s, "dense", "b") > 1     ? "%b"
             : n <= width && m > 1 && kb == k / 4 ? "%t"
                                                  : "%nc");
    step(s, "outline %%t -> @gemm");
    return true;
}
