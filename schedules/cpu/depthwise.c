/* Depthwise convolution on blocked layouts.
 *
 *   %conv[n,o,y,x,j] = sum[kh,kw] %pad[n,o,y*s+kh,x*s+kw,j] * %w[o*8+j, 0, kh, kw]
 *
 * Up to 8 pixels of a row are accumulators, one weight vector is live at a time and the inputs are
 * memory operands: the kernel is bound by loads, and 8 chains cover the latency of the FMA.
 *
 * 8-bit integers are computed so too, in f32 (ops/nn/conv2d.c): a pixel is widened and converted
 * once for the columns of a row of the kernel, so these are innermost, pixel after pixel, and few
 * pixels are live at a time.  Where a dot4 is one instruction they take four columns of the kernel
 * a step (dot4): as many pixels are as many neighbouring bytes as a vector holds, turned
 * so that a lane has its four. */
#include "schedules/cpu/cpu.h"

#include <math.h>

/* Floats that are made of integers. */
static bool converts(const Sched *s)
{
    const Stmt *b = sched_block(s, "conv");
    const Prim *v = b && b->nkids ? b->kids[b->nkids - 1]->u.store.value : NULL;

    if (!v || v->kind != PRIM_ADD || !dtype_is_float(v->dtype))
        return false;
    v = v->kids[v->kids[0]->kind == PRIM_MUL ? 0 : 1];
    return v->kind == PRIM_MUL && v->kids[0]->kind == PRIM_CAST &&
           dtype_is_int(v->kids[0]->kids[0]->dtype);
}

/* What is decided, and from what. */
typedef struct {
    int64_t x, y, kh, taps; /* taps: steps of the kernel that may be written out at most */
    int64_t cells;          /* of the kernel */
    int64_t pixels, rows;   /* of a tile; of a block */
    bool    columns;        /* rows of the kernel are written out */
} DepthwisePlan;

/* Integers are widened first: as many pixels as were measured for floats. */
int64_t pick_depthwise_pixels(Sched *s, int64_t x)
{
    Machine    m = machine_of(s->target);
    ConvSizes  z = conv_sizes(s);
    PlainWork  w = {.row = group_row(s, &z), .line = x, .rows = z.kh};
    int64_t    free = tile_regs(&m, z.lanes, 1) - 2, most = free < x ? free : x;
    int64_t    best = limit_depthwise_pixels(&m);
    bool       floats = !converts(s) && !depthwise_dot(s);
    double     lines = (double)(z.n * z.o * z.y);
    Candidates k = candidates(s);

    for (int64_t n = most; n > 0 && (n == most || n >= limit_tile_least_sums(&m));
         n = lower_tile(x, n))
        if (floats || ceil_div(x, n) != ceil_div(x, best))
            candidate(&k, n, 0,
                      floats ? lines * plain_line_cycles(&m, &w, (RegTile){n, 1}, true) : NAN);
    if (!floats)
        usual(&k, best, 0);
    return pick_factor(s, "pixels", &k);
}

static void decide_depthwise(Sched *s, void *plan)
{
    DepthwisePlan *p = plan;
    Candidates     rows = candidates(s);

    p->pixels = pick_depthwise_pixels(s, p->x);
    divisors(&rows, p->y);
    usual(&rows, block_rows(s, p->y), 0);
    p->rows = pick_factor(s, "rows", &rows);
    p->columns = p->cells * p->pixels <= p->taps;
    if (p->kh > 1)
        p->columns = pick_bool(s, "unroll.kernel", p->columns);
}

void conv2d_depthwise(Sched *s)
{
    int64_t lanes = iter_extent(s, "conv", "j"), o = iter_extent(s, "conv", "o"),
            y = iter_extent(s, "conv", "y");
    int64_t     x = iter_extent(s, "conv", "x"), kh = iter_extent(s, "conv", "kh");
    int64_t     kw = iter_extent(s, "conv", "kw");
    bool        dot = kw % 4 == 0 && depthwise_dot(s);
    bool        turned = converts(s);
    Machine     m = machine_of(s->target);
    const char *out, *k = dot ? "%k4" : "%conv.kw", *four = dot ? ", %four" : "";

    out = prepare_anchor(s, "conv", true);
    if (dot) {
        step(s, "transform_layout %%w (o, c, h, v) -> (o//%lld, c, h, v//4, o%%%lld, v%%4)",
             (long long)lanes, (long long)lanes);
        step(s, "split %%conv.kw by 4 -> %%k4, %%four");
    } else {
        try_step(s, "transform_layout %%w (o, c, h, v) -> (o//%lld, c, h, v, o%%%lld)",
                 (long long)lanes, (long long)lanes);
    }
    DepthwisePlan p = {.x = x,
                       .y = y,
                       .kh = kh,
                       .cells = kh * kw,
                       .taps = dot ? 2 * limit_code_taps(&m) : limit_code_taps(&m)};
    sched_decide(s, decide_depthwise, &p);
    step(s, "split %%conv.y by %lld -> %%yb, %%r", (long long)p.rows);
    step(s, "reorder %%conv.n, %%yb, %%conv.o, %%r, %%conv.x, %%conv.kh, %s, %%conv.j%s", k, four);
    TileNest tile = {.block = "conv",
                     .line = "conv.x",
                     .tiles = "t",
                     .pixel = "p",
                     .pixels = p.pixels,
                     .sums = turned ? "%conv.kh"
                             : dot  ? "%conv.kh, %k4"
                                    : "%conv.kh, %conv.kw",
                     .vectors = turned ? "%conv.kw, %conv.j" : "%conv.j",
                     .four = dot ? "four" : NULL,
                     .instruction = "dot4",
                     .lane = "conv.j",
                     .unroll = dot ? "%p, %k4" : "%p, %conv.kw",
                     .out = out};
    tile_sums(s, &tile);
    tile_marks(s, &tile);
    if (p.columns)
        step(s, "unroll %%conv.kh");
    if (!is_tiny(s, o * lanes * y * x * kh * kw))
        divide_image(s, "conv.o", "r");
    step(s, "outline %%t -> @dw");
}
