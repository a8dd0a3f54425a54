/* Convolutions and products of 8-bit integers with sums of 32 bits, by dot4.
 *
 *   %conv[n,o,y,x,j] = sum[c,kh,kw,i] i32(%pad[n,c,y*s+kh,x*s+kw,i]) * i32(%w[o*16+j, c*16+i, kh,
 * kw])
 *
 * The nest is that of conv2d.c; but a step of the reduction takes four neighbouring channels: one
 * word of four pixels' bytes, spread over the lanes, times a vector with four weights a lane, which
 * therefore lie `(.., c%4)` innermost.  Bytes are a quarter of floats, so chunks of the reduction
 * are rarely needed: the weights of an output block stay in L2, and are read from there at less
 * than a quarter of a vector a cycle. */
#include "schedules/cpu/cpu.h"

/* A step of the reduction: how many products, in how many instructions (0: none that is quick). */
typedef struct {
    uint32_t ops;
    int64_t  terms;
    int64_t  weight_bytes; /* two, where the pass widen_weights was there */
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

    if (!v || v->kind != PRIM_ADD || !dtype_eq(v->dtype, DT_I32))
        return (Dot){0, 4, 1};
    v = v->kids[v->kids[0]->kind == PRIM_MUL ? 0 : 1];
    const Prim *x = v->kind == PRIM_MUL ? small_operand(v->kids[0]) : NULL;
    const Prim *y = v->kind == PRIM_MUL ? small_operand(v->kids[1]) : NULL;
    if (!x || !y)
        return (Dot){0, 4, 1};
    if (dot4_terms(x->dtype, y->dtype) == 2)
        return (Dot){s->target->dot2, 2, y->dtype.bits / 8};
    return (Dot){x->dtype.code == y->dtype.code ? s->target->dot4_ii : s->target->dot4_ui, 4, 1};
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
static int64_t most_pixels(const Sched *s, uint32_t ops, int64_t nv)
{
    int64_t regs = s->target->vector_regs ? s->target->vector_regs : 16;

    return (regs - (ops > 2 ? 2 : 1) * nv - (ops > 2 ? 3 : ops)) / nv;
}

/* `whole`: all panels have nv vectors; else the last may have fewer. */
static RegTile best_tile(const Sched *s, uint32_t ops, int64_t vectors, int64_t pixels, bool whole)
{
    RegTile best = {1, 1};
    double  cost = 1e30;

    for (int64_t nv = 1; nv <= 6 && nv <= vectors; nv++) {
        int64_t most = most_pixels(s, ops, nv), rest = vectors % nv;
        if (most < 1 || (whole && rest))
            continue;
        double c = (double)(vectors / nv) * dot_step_cycles(ops, pixels, most, nv);
        if (rest)
            c += dot_step_cycles(ops, pixels, most, rest);
        if (c < cost - 1e-9)
            cost = c, best = (RegTile){most, nv};
    }
    return best;
}

/* Input blocks of a chunk: weights of an output block within half of L2. */
static int64_t chunk(const Sched *s, const ConvSizes *z, int64_t nv, int64_t weight_bytes)
{
    int64_t l2 = machine_of(s->target).l2;

    int64_t depth = z->i ? z->i : 1, vector = weight_bytes * nv * z->lanes;

    return divisor_upto(z->c, l2 / 2 / (depth * z->kh * z->kw * vector) + 1);
}

/* Groups of rows of a pixel block: its input within a quarter of L2, beside the weights. */
static int64_t block_groups(const Sched *s, const ConvSizes *z, int64_t groups, int64_t rows,
                            int64_t oc)
{
    int64_t l2 = machine_of(s->target).l2;
    int64_t bytes = z->c * (z->i ? z->i : 1) * rows * z->x, gb = groups, best;

    while (gb > 1 && gb * bytes > l2 / 4)
        gb = divisor_upto(groups, gb - 1);
    best = gb;
    while (gb > 1 && thread_balance(groups / best * oc) < 0.95) {
        gb = divisor_upto(groups, gb - 1);
        if (thread_balance(groups / gb * oc) > thread_balance(groups / best * oc) + 0.02)
            best = gb;
    }
    return best;
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
    ConvSizes z = conv_sizes(s);
    Dot       d = dot_of(s, "conv");

    if (!d.ops || !z.c || (z.i ? z.i : z.kw) % d.terms)
        return false;
    const char *out = prepare_anchor(s, "conv", true);
    int64_t     rows = joined_rows(z.y, z.x), depth = z.i ? z.i : 1;
    RegTile     t = best_tile(s, d.ops, z.o, rows * z.x, true);
    int64_t     kb = chunk(s, &z, t.nv, d.weight_bytes), groups = z.y / rows, oc = z.o / t.nv;
    int64_t     gb = block_groups(s, &z, groups, rows, oc);
    bool        own = false; /* a thread makes its padded copies itself */

    split_fours(s, &z, t.nv * z.lanes, d.terms);
    step(s, "split %%conv.o by %lld -> %%oc, %%ov", (long long)t.nv);
    step(s, "split %%conv.y by %lld -> %%gg, %%r", (long long)rows);
    step(s, "split %%gg by %lld -> %%yb, %%g", (long long)gb);
    step(s, "split %%conv.c by %lld -> %%kc, %%cb", (long long)kb);
    /* Not the fours are written out: LLVM would load the weights of the next ones early, and spill
     * a sum for them. */
    TileNest tile = {.block = "conv",
                     .line = "conv.x",
                     .joined = rows > 1 ? "r" : NULL,
                     .tiles = "t",
                     .pixel = "p",
                     .pixels = t.pixels,
                     .sums = z.i ? "%cb, %conv.kh, %conv.kw, %k4" : "%cb, %conv.kh, %k4",
                     .vectors = "%ov, %conv.j",
                     .four = "four",
                     .lane = "conv.j",
                     .unroll = "%p, %ov",
                     .out = out};
    step(s, "reorder %%conv.n, %%yb, %%oc, %%kc, %%g, %%r, %%conv.x, %s, %s, %%four", tile.sums,
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
bool dense_dot(Sched *s)
{
    int64_t  b = block_work(s, "dense"), m = iter_extent(s, "dense", "m");
    int64_t  n = iter_extent(s, "dense", "n"), k = iter_extent(s, "dense", "k");
    int64_t  lanes = cpu_lanes(s), rows = m ? m : 1, vectors = ceil_div(n, lanes);
    int64_t  l2 = machine_of(s->target).l2;
    uint32_t ops = dot_of(s, "dense").ops;

    RegTile   t = rows == 1 ? (RegTile){1, vectors < 4 ? vectors : 4}
                            : best_tile(s, ops, vectors, rows, false);
    long long width = (long long)(t.nv * lanes);
    int64_t   kb = divisor_upto(k / 4, l2 / 2 / (4 * width) + 1);

    if (!ops || k % 4 || n < lanes || /* a weight that is not constant is refused */
        !try_step(s, "transform_layout %%w (n, k) -> (n//%lld, k//4, n%%%lld, k%%4)", width, width))
        return false;
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
                     .lane = "j",
                     .unroll = "%p, %nv",
                     .out = out};
    tile_sums(s, &tile);
    step(s, "split %%ni by %lld tail=peel -> %%nv, %%j", (long long)lanes);
    tile_marks(s, &tile);
    if (!is_tiny(s, b / 4))
        step(s, "parallel %s", iter_extent(s, "dense", "b") > 1 ? "%b" : "%nc");
    step(s, "outline %%t -> @gemm");
    return true;
}
