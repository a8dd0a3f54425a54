/* Winograd's convolution, F(2x2) and F(4x4), on blocked layouts (ops/nn/conv2d_winograd.c).
 *
 *   %v1, %v  input transform    %m[r,q,t,o] = sum[c,i] %v * %u    %y1, %y  output transform
 *
 * Two orders.  Small images: three nests one after another, each divided among the threads: the
 * whole of %v by channels, the products by cells of the transform (a panel of %v stays in L1 while
 * the weights of its cell stream by once), the outputs by channels.  Large images: blocks of tiles,
 * divided among the threads; a block's %v stays in L2, and for each group of outputs the products
 * of all cells go through a small private %m. */
#include "schedules/cpu/cpu.h"

#include <string.h>

typedef struct {
    int64_t lanes, a, m, tiles, c, i, o; /* o: channels */
} WinoSizes;

static const char *name_of(const Sched *s, const char *block, uint32_t k)
{
    return sched_block(s, block)->u.block.iter[k]->name;
}

/* The products as register tiles; weights lie as they are read, cell by cell or output by output.
 */
static void product_tiles(Sched *s, const WinoSizes *z, RegTile t, bool by_cell)
{
    int64_t width = t.nv * z->lanes;

    if (by_cell)
        step(s, "transform_layout %%w (r, q, o, c) -> (r, q, o//%lld, c, o%%%lld)",
             (long long)width, (long long)width);
    else
        step(s, "transform_layout %%w (r, q, o, c) -> (o//%lld, r, q, c, o%%%lld)",
             (long long)width, (long long)width);
    step(s, "split %%m.o by %lld -> %%mc, %%mo", (long long)width);
    step(s, "split %%mo by %lld -> %%mv, %%mj", (long long)z->lanes);
    step(s, "reorder %%m.r, %%m.q, %%mc, %%m.t, %%m.c, %%m.i, %%mv, %%mj");
    step(s, "split %%m.t by %lld tail=even -> %%mt, %%mp", (long long)t.pixels);
    step(s, "reorder %%m.c, %%m.i, %%mp, %%mv, %%mj");
    step(s, "cache_write m reg at %%mt");
    step(s, "vectorize %%mj");
    step(s, "unroll %%m.i, %%mp, %%mv");
    step(s, "outline %%mt -> @tile");
}

void sched_winograd(Sched *s)
{
    WinoSizes   z = {.lanes = cpu_lanes(s),
                     .a = iter_extent(s, "m", "r"),
                     .m = iter_extent(s, "y1", "a"),
                     .tiles = iter_extent(s, "m", "t"),
                     .c = iter_extent(s, "m", "c"),
                     .i = iter_extent(s, "m", "i"),
                     .o = iter_extent(s, "m", "o")};
    const char *out;

    if (!z.i || z.i != z.lanes) {
        s->refusal = "the data are not in blocks";
        return;
    }
    try_step(s, "elide_pad pad");
    if (s->target->has_fma)
        step(s, "contract m");
    out = inline_epilogue(s, "y1");
    if (!out || sched_block(s, out)->u.block.nspatial != 5) {
        s->refusal = "the result is not in blocks";
        return;
    }
    const char *n = name_of(s, out, 0), *o = name_of(s, out, 1), *y = name_of(s, out, 2),
               *x = name_of(s, out, 3), *j = name_of(s, out, 4);
    int64_t rows = ceil_div(iter_extent(s, out, y), z.m),
            cols = ceil_div(iter_extent(s, out, x), z.m);
    int64_t l2 = s->target->l2_bytes ? s->target->l2_bytes : 524288;
    int64_t bytes = z.tiles * z.a * z.a * 4 * (z.c * z.i + z.o), block = rows;
    bool    whole = iter_extent(s, out, n) > 1 || bytes <= 3 * l2 || rows < 4;

    /* Rows of tiles of a block: %v within half of L2. */
    while (!whole && block > 1 && block * cols * z.a * z.a * 4 * z.c * z.i > l2 / 2)
        block = divisor_upto(rows, block - 1);
    while (!whole && block > 1 && (rows / block < 4 || thread_balance(rows / block) < 0.9))
        block = divisor_upto(rows, block - 1);
    int64_t tiles = whole ? z.tiles : block * cols;
    RegTile t = cpu_tile(s, z.o / z.lanes, tiles);

    step(s, "split %%%s.%s by %lld tail=if -> %%ty, %%yy", out, y, (long long)z.m);
    step(s, "split %%%s.%s by %lld tail=if -> %%tx, %%xx", out, x, (long long)z.m);
    step(s, "split %%%s.%s by %lld -> %%oc, %%ov", out, o, (long long)t.nv);
    if (whole) {
        step(s, "reorder %%%s.%s, %%oc, %%ov, %%ty, %%tx, %%yy, %%xx, %%%s.%s", out, n, out, j);
        step(s, "compute_at y1 %%tx");
    } else {
        step(s, "split %%ty by %lld -> %%blk, %%tr", (long long)block);
        step(s, "reorder %%%s.%s, %%blk, %%oc, %%tr, %%tx, %%ov, %%yy, %%xx, %%%s.%s", out, n, out,
             j);
        step(s, "compute_at y1 %%ov");
        step(s, "compute_at m %%oc");
        step(s, "compute_at v %%blk");
        step(s, "parallel %%blk");
        step(s, "set_scope %%m private");
        step(s, "set_scope %%v private");
    }
    step(s, "reorder %%v.c, %%v.t, %%v.r, %%v.q, %%v.i");
    step(s, "compute_at v1 %%v.t");
    product_tiles(s, &z, t, whole);
    step(s, "set_scope %%v1 reg");
    step(s, "set_scope %%y1 reg");
    step(s, "vectorize %%v1.i");
    step(s, "vectorize %%v.i");
    step(s, "unroll %%v1.r, %%v1.q");
    step(s, "unroll %%v.r, %%v.q");
    step(s, "vectorize %%y1.o");
    step(s, "unroll %%y1.a, %%y1.q");
    step(s, "vectorize %%%s.%s", out, j);
    step(s, "unroll %%yy, %%xx");
    if (whole) {
        step(s, "parallel %%v.c");
        step(s, "fuse %%m.r, %%m.q -> %%xi");
        step(s, "parallel %%xi");
        step(s, "parallel %%oc");
    }
    if (!s->refusal && has_block(s, "pad"))
        pad_marks(s, NULL);
}
