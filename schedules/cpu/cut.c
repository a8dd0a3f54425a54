/* Convolutions whose taps meet data on a part of the image only: dilated ones, and large kernels on
 * small images.
 *
 *   3x3 with rate 6 on 17x17:  rows 0..5 have taps 1 and 2, rows 6..10 all three, rows 11..16 taps
 *   0 and 1, and so have columns: 25 of 36 .. products are left of nine strips of 5 or 6 by 5 or 6
 *
 * The loops over rows and columns are cut where the taps change (`partition`), and each copy leaves
 * out the taps that only meet padding (`skip_zeros`).  Nothing is padded then. */
#include "schedules/cpu/cpu.h"

#include <string.h>

/* What a definition `pad` copies, along the dimension that an iterator of it walks. */
typedef struct {
    const Stmt     *pad;
    const LoadData *load;
} Copied;

static void find_copied(void *user, const Prim *p)
{
    Copied *k = user;

    if (p->kind == PRIM_LOAD)
        k->load = &p->u.load;
}

/* The padding is zeros around a plain copy. */
static bool copied_of(const Sched *s, Copied *k)
{
    k->pad = sched_block(s, "pad");
    if (!k->pad || k->pad->nkids != 1 || k->pad->kids[0]->kind != STMT_STORE)
        return false;
    const Prim *v = k->pad->kids[0]->u.store.value;
    if (v->kind != PRIM_SELECT || v->kids[1]->kind != PRIM_LOAD || v->kids[2]->kind != PRIM_FLOAT ||
        v->kids[2]->u.f != 0)
        return false;
    prim_visit(v->kids[1], &(TirVisit){.user = k, .prim = find_copied});
    return k->load != NULL;
}

/* Taps of an axis: tap k of cell v reads cell v * stride + k * dilation - before of `size`. */
typedef struct {
    int64_t cells, taps, stride, dilation, before, size;
} TapAxis;

static bool is_live(const TapAxis *a, int64_t v, int64_t k)
{
    int64_t at = v * a->stride + k * a->dilation - a->before;

    return at >= 0 && at < a->size;
}

/* The strips of an axis; n = 0: more than there is room for. */
static Strips strips_of(const TapAxis *a)
{
    Strips  r = {0};
    int64_t first = -1, taps = -1;

    for (int64_t v = 0; v < a->cells; v++) {
        int64_t f = 0, n = 0;

        while (f < a->taps && !is_live(a, v, f))
            f++;
        while (f + n < a->taps && is_live(a, v, f + n))
            n++;
        if (v == 0 || f != first || n != taps) {
            if (r.n == MOST_STRIPS)
                return (Strips){0};
            r.of[r.n++] = (Strip){v, 0, n > 0 ? n : 1};
        }
        r.of[r.n - 1].cells++;
        first = f;
        taps = n;
    }
    return r;
}

/* One of the two axes: iterators of `conv` and of `pad`, dimension of the copied tensor. */
static bool tap_axis(const Sched *s, const Copied *k, const char *cell, const char *tap,
                     const char *of_pad, uint32_t dim, TapAxis *a)
{
    const Stmt      *conv = sched_block(s, "conv");
    const BlockData *b = &conv->u.block;
    const Atom      *y = NULL, *kh = NULL, *at = NULL;
    const LoadData  *pad = conv_data(s);

    for (uint32_t i = 0; i < b->nspatial + b->nreduce; i++) {
        y = strcmp(b->iter[i]->name, cell) ? y : b->iter[i];
        kh = strcmp(b->iter[i]->name, tap) ? kh : b->iter[i];
    }
    for (uint32_t i = 0; i < k->pad->u.block.nspatial; i++)
        if (!strcmp(k->pad->u.block.iter[i]->name, of_pad))
            at = k->pad->u.block.iter[i];
    if (!pad || pad->n <= dim || k->load->n <= dim || !y || !kh || !at || y->below || kh->below ||
        !idx_is_const(k->load->buffer->extent[dim], &a->size))
        return false;
    a->cells = atom_usual(y);
    a->taps = atom_usual(kh);
    a->stride = idx_coef(pad->index[dim], y);
    a->dilation = idx_coef(pad->index[dim], kh);
    a->before = -k->load->index[dim]->c0;
    /* Axes of one cell or one tap do not occur in the index. */
    return (a->stride > 0 || a->cells == 1) && (a->dilation > 0 || a->taps == 1) &&
           (idx_coef(k->load->index[dim], at) == 1 || a->size == 1);
}

bool tap_cuts(const Sched *s, TapCuts *cuts)
{
    Copied  k = {0};
    TapAxis y, x;

    *cuts = (TapCuts){0};
    if (!copied_of(s, &k) || !tap_axis(s, &k, "y", "kh", "y", 2, &y) ||
        !tap_axis(s, &k, "x", "kw", "x", 3, &x))
        return false;
    cuts->y = strips_of(&y);
    cuts->x = strips_of(&x);
    return cuts->y.n && cuts->x.n && cuts->y.n * cuts->x.n > 1;
}

double strip_taps(const Strips *r)
{
    double sum = 0;

    for (uint32_t i = 0; i < r->n; i++)
        sum += (double)(r->of[i].cells * r->of[i].taps);
    return sum;
}

/* TapCuts one copy of a loop, the last strip first: the copy keeps its number. */
static void cut_copy(Sched *s, const char *loop, uint32_t copy, const Strips *r)
{
    for (uint32_t i = r->n; i-- > 1;)
        step(s, "partition %%conv.%s#%u at %lld", loop, copy, (long long)r->of[i].at);
}

void cut_loops(Sched *s, const TapCuts *cuts)
{
    if (cuts->x.n > 1) {
        step(s, "reorder %%conv.x, %%conv.y");
        cut_copy(s, "x", 0, &cuts->x);
        step(s, "reorder %%conv.y, %%conv.x");
    }
    for (uint32_t i = cuts->x.n; i-- > 0;)
        cut_copy(s, "y", i, &cuts->y);
    step(s, "skip_zeros conv");
}

/* ---- images in blocks of channels ------------------------------------------------------------- */

typedef struct {
    const ConvSizes *z;
    const TapCuts   *cuts;
    bool             alone;
    int64_t          chunk;
    RegTile          tile;
    bool             channels;
} CutPlan;

/* Cycles of all tiles, which end once a chunk. */
static double cut_cycles(const Machine *m, const CutPlan *p, RegTile t, double chunks)
{
    const ConvSizes *z = p->z;
    double           step = 0, ends = 0, rows = 0;

    for (uint32_t i = 0; i < p->cuts->x.n; i++) {
        const Strip *x = &p->cuts->x.of[i];
        int64_t      tiles = ceil_div(x->cells, t.pixels);

        step += (double)x->taps * strip_step_cycles(m, z->lanes, x->cells, t.nv, tiles);
        ends += (double)tiles;
    }
    for (uint32_t i = 0; i < p->cuts->y.n; i++)
        rows += (double)p->cuts->y.of[i].cells;
    return (double)(z->n * (z->o / t.nv)) *
           (step * strip_taps(&p->cuts->y) * (double)(z->c * z->i) +
            chunks * ends * rows * tile_end_cycles(m, 0, 0));
}

/* ... without cuts, the padded copy with them, which is stored and read again. */
static double whole_cycles(const Sched *s, const CutPlan *p)
{
    const ConvSizes *z = p->z;
    Machine          m = machine_of(s->target);
    ConvWork         w = {.lanes = z->lanes,
                          .n = z->n,
                          .o = z->o,
                          .y = z->y,
                          .x = z->x,
                          .kw = z->kw,
                          .stride = 1,
                          .dilation = 1,
                          .group = z->group,
                          .sum = conv_steps(z)};
    double           copy = (double)block_work(s, "pad") * 4;

    return cpu_conv_cycles(s->target, &w) +
           (has_halo(s) ? 0 : time_traffic(moved_time(&m, copy, copy, copy)));
}

static void decide_cut(Sched *s, void *plan)
{
    CutPlan         *p = plan;
    const ConvSizes *z = p->z;
    Machine          m = machine_of(s->target);
    Candidates       tile = candidates(s), chunk = candidates(s);

    for (int64_t nv = 1; nv <= limit_tile_most_vectors(&m) && nv <= z->group; nv++) {
        int64_t most = tile_pixels_most(&m, z->lanes, nv);

        if (z->group % nv == 0 && most > 0)
            candidate(&tile, most, nv, cut_cycles(&m, p, (RegTile){most, nv}, 1));
    }
    p->tile = pick_reg_tile(s, "tile", &tile);
    if (p->alone || z->o > p->tile.nv) {
        divisors(&chunk, z->c);
        usual(&chunk, conv_chunk(s, z, p->tile.nv), 0);
    } else { /* threads divide rows, which lie inside of chunks */
        candidate(&chunk, z->c, 0, 0);
    }
    p->chunk = pick_factor(s, "chunk", &chunk);
    int64_t code = p->tile.pixels * p->tile.nv * z->i * p->cuts->x.n * p->cuts->y.n;
    p->channels = pick_bool(s, "unroll.channels", code <= limit_code_madds(&m));
}

bool conv2d_cut(Sched *s, const ConvSizes *z)
{
    TapCuts     cuts;
    Machine     m = machine_of(s->target);
    CutPlan     p = {.z = z, .cuts = &cuts};
    const char *out;

    if (!z->c || !z->i || strcmp(z->line, "x") || !tap_cuts(s, &cuts))
        return false;
    RegTile best = tile_best(&m, z->lanes, z->group, cuts.x.of[0].cells, 0);
    if (cut_cycles(&m, &p, best, 1) * limit_cut_gain(&m) > whole_cycles(s, &p))
        return false;
    p.alone = is_tiny(s, (int64_t)((double)(z->n * z->o * z->lanes * z->c * z->i) *
                                   strip_taps(&cuts.y) * strip_taps(&cuts.x)));
    inline_prologue(s, "conv");
    step(s, "compute_inline pad");
    out = prepare_anchor(s, "conv", false);
    sched_decide(s, decide_cut, &p);
    RegTile t = p.tile;

    conv_pack(s, z, t.nv);
    step(s, "split %%conv.o by %lld -> %%oc, %%ov", (long long)t.nv);
    step(s, "split %%conv.c by %lld -> %%kc, %%cb", (long long)p.chunk);
    TileNest tile = {.block = "conv",
                     .line = "conv.x",
                     .tiles = "t",
                     .pixel = "p",
                     .pixels = t.pixels,
                     .sums = "%cb, %conv.kh, %conv.kw, %conv.i",
                     .vectors = "%ov, %conv.j",
                     .lane = "conv.j",
                     .unroll = "%p, %ov",
                     .out = out,
                     .chunks = p.chunk < z->c};
    step(s, "reorder %%conv.n, %%oc, %%kc, %%conv.y, %%conv.x, %s, %s", tile.sums, tile.vectors);
    cut_loops(s, &cuts);
    tile_sums(s, &tile);
    tile_marks(s, &tile);
    if (p.channels)
        step(s, "unroll %%conv.i");
    if (!p.alone)
        step(s, "parallel %s", z->o > t.nv ? "%oc" : "%conv.y");
    step(s, "outline %%t -> @tile");
    return true;
}
