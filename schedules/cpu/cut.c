/* Convolutions whose taps meet data on a part of the image only: dilated ones, and large kernels on
 * small images.
 *
 *   3x3 with rate 6 on 17x17:  rows 0..5 have taps 1 and 2, rows 6..10 all three, rows 11..16 taps
 *   0 and 1, and so have columns: 25 of 36 .. products are left of nine strips of 5 or 6 by 5 or 6
 *
 * The loops over rows and columns are cut where the taps change (`partition`), and each copy leaves
 * out the taps that only meet padding (`skip_zeros`).  Nothing is padded then.
 *
 * Strips of a short row are few pixels each, and a tile of few pixels waits.  Such a row is one
 * tile, whose columns of the kernel are written out: each adds to the pixels where it meets data
 * (`guard_zeros`).
 *
 *   11x11 on 5x5:  column 1 adds to pixel 4, column 5 to all five, column 9 to pixel 0
 *
 * Where columns would be too many strips and too much code, rows alone are cut: the image has its
 * border, or a padded copy, and each strip of rows the kernel's rows that meet data. */
#include "schedules/cpu/cpu.h"

#include <math.h>
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

static bool is_live(const TapAxis *a, int64_t v, int64_t k)
{
    int64_t at = v * a->stride + k * a->dilation - a->before;

    return at >= 0 && at < a->size;
}

/* The first cell behind v for which a tap begins or ends to meet the image. */
static int64_t next_change(const TapAxis *a, int64_t v)
{
    int64_t next = a->cells;

    for (int64_t k = 0; k < a->taps && a->stride > 0; k++) {
        int64_t begin = a->before - k * a->dilation, end = begin + a->size;

        begin = begin > 0 ? ceil_div(begin, a->stride) : 0;
        end = end > 0 ? ceil_div(end, a->stride) : 0;
        if (begin == end) /* it lies between cells */
            continue;
        if (begin > v && begin < next)
            next = begin;
        if (end > v && end < next)
            next = end;
    }
    return next;
}

/* The strips of an axis; n = 0: more than there is room for. */
static Strips strips_of(const TapAxis *a)
{
    Strips r = {0};

    for (int64_t v = 0, next; v < a->cells; v = next) {
        int64_t f = 0, n = 0;

        if (r.n == MOST_STRIPS)
            return (Strips){0};
        while (f < a->taps && !is_live(a, v, f))
            f++;
        while (f + n < a->taps && is_live(a, v, f + n))
            n++;
        next = next_change(a, v);
        r.of[r.n++] = (Strip){v, next - v, n > 0 ? n : 1};
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

bool work_cuts(const ConvWork *w, TapCuts *cuts)
{
    *cuts = (TapCuts){0};
    if (w->rows.size < 1 || w->columns.size < 1)
        return false;
    cuts->y = strips_of(&w->rows);
    cuts->x = strips_of(&w->columns);
    return cuts->y.n && cuts->x.n && cuts->y.n * cuts->x.n > 1;
}

double strip_taps(const Strips *r)
{
    double sum = 0;

    for (uint32_t i = 0; i < r->n; i++)
        sum += (double)(r->of[i].cells * r->of[i].taps);
    return sum;
}

bool few_strips(const Machine *m, const TapCuts *cuts)
{
    return cuts->y.n <= limit_strips(m) && cuts->x.n <= limit_strips(m);
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
    if (cuts->x.n * cuts->y.n > 1)
        step(s, "skip_zeros conv");
}

/* ---- images in blocks of channels ------------------------------------------------------------- */

typedef struct {
    const ConvSizes *z;
    const TapCuts   *cuts;
    bool             alone;
    uint32_t         form;
    int64_t          chunk;
    RegTile          tile;
    bool             channels;
    double           copy; /* cycles of a padded copy, where the image has no border */
} CutPlan;

/* Columns of the kernel are cut in strips, written out over a row, or all there with the padding.
 */
enum { STRIPS, COLUMNS, ROWS, FORMS };
static const char *const form_names[] = {"strips", "columns", "rows"};

/* Of one cell, at most. */
static int64_t most_taps(const Strips *r)
{
    int64_t most = 0;

    for (uint32_t i = 0; i < r->n; i++)
        most = r->of[i].taps > most ? r->of[i].taps : most;
    return most;
}

/* Multiply-adds that are written out, but for channels. */
static int64_t written(const CutPlan *p, RegTile t)
{
    if (p->form != COLUMNS)
        return t.pixels * t.nv * (p->form == ROWS ? 1 : p->cuts->x.n) * p->cuts->y.n;
    return (int64_t)strip_taps(&p->cuts->x) * t.nv * p->cuts->y.n;
}

/* Cycles of a row with all columns of the kernel. */
static double row_cycles(const Machine *m, const CutPlan *p, RegTile t)
{
    const ConvSizes *z = p->z;
    double           step = 0;

    if (p->form == ROWS)
        return (double)z->kw * strip_step_cycles(m, z->lanes, z->x, t.nv, ceil_div(z->x, t.pixels));
    if (p->form == COLUMNS) {
        WrittenLine w = {.madds = strip_taps(&p->cuts->x),
                         .taps = z->kw,
                         .chain = most_taps(&p->cuts->x),
                         .tiles = ceil_div(p->z->x, t.pixels)};

        return written_cycles(m, z->lanes, &w, t.nv);
    }
    for (uint32_t i = 0; i < p->cuts->x.n; i++) {
        const Strip *x = &p->cuts->x.of[i];

        step += (double)x->taps *
                strip_step_cycles(m, z->lanes, x->cells, t.nv, ceil_div(x->cells, t.pixels));
    }
    return step;
}

static double row_tiles(const CutPlan *p, RegTile t)
{
    double tiles = 0;

    if (p->form != STRIPS)
        return (double)ceil_div(p->z->x, t.pixels);
    for (uint32_t i = 0; i < p->cuts->x.n; i++)
        tiles += (double)ceil_div(p->cuts->x.of[i].cells, t.pixels);
    return tiles;
}

/* Cycles of all tiles, which end once a chunk. */
static double cut_cycles(const Machine *m, const CutPlan *p, RegTile t, double chunks)
{
    const ConvSizes *z = p->z;
    double           rows = (double)z->y;

    return (double)(z->n * (z->o / t.nv)) *
               (row_cycles(m, p, t) * strip_taps(&p->cuts->y) * (double)conv_channels(z) +
                chunks * row_tiles(p, t) * rows * tile_end_cycles(m, 0, 0, 0)) +
           (p->form == ROWS ? p->copy : 0);
}

static bool has_form(const Machine *m, const CutPlan *p)
{
    if (p->form == COLUMNS)
        return p->cuts->x.n > 1;
    return p->z->i && (p->form == ROWS ? p->cuts->y.n > 1 : few_strips(m, p->cuts));
}

/* The tile of nv vectors in the plan's form, and its cycles; INFINITY: there is none. */
static RegTile form_tile(const Machine *m, const CutPlan *p, int64_t nv, double *cycles)
{
    const ConvSizes *z = p->z;
    RegTile          t = {tile_pixels_most(m, z->lanes, nv), nv};

    if (!has_form(m, p) || z->group % nv || t.pixels < 1 ||
        (p->form != STRIPS && written(p, t) > limit_code_madds(m)))
        *cycles = INFINITY;
    else
        *cycles = cut_cycles(m, p, t, 1);
    return t;
}

static double least_cycles(const Machine *m, CutPlan *p, uint32_t form)
{
    double least = INFINITY, cycles;

    p->form = form;
    for (int64_t nv = 1; nv <= limit_tile_most_vectors(m) && nv <= p->z->group; nv++) {
        form_tile(m, p, nv, &cycles);
        least = fmin(least, cycles);
    }
    return least;
}

/* Times what they have to be quicker by. */
static double priced_cycles(const Machine *m, CutPlan *p, uint32_t form)
{
    return least_cycles(m, p, form) * (form == STRIPS ? limit_cut_gain(m) : limit_columns_gain(m));
}

static double best_cycles(const Machine *m, CutPlan *p)
{
    double best = INFINITY;

    for (uint32_t form = 0; form < FORMS; form++)
        best = fmin(best, priced_cycles(m, p, form));
    return best;
}

double conv_cut_cycles(const Machine *m, const ConvWork *w)
{
    TapCuts   cuts;
    ConvSizes z = {.lanes = w->lanes,
                   .n = w->n,
                   .o = w->o,
                   .y = w->y,
                   .x = w->x,
                   .i = !w->plain,
                   .kh = w->rows.taps,
                   .kw = w->columns.taps,
                   .group = w->group};
    CutPlan   p = {.z = &z, .cuts = &cuts};

    if (!work_cuts(w, &cuts) || w->x < 2)
        return INFINITY;
    z.c = w->sum / (w->rows.taps * w->columns.taps);
    return best_cycles(m, &p);
}

/* Those of a padded copy, which is stored and read again. */
static double copy_cycles(const Sched *s)
{
    Machine m = machine_of(s->target);
    double  copy = (double)block_work(s, "pad") * 4;

    return has_halo(s) ? 0 : time_traffic(moved_time(&m, copy, copy, copy));
}

/* ... without cuts. */
static double whole_cycles(const Sched *s, const ConvSizes *z)
{
    Machine  m = machine_of(s->target);
    ConvWork w = {.lanes = z->lanes,
                  .n = z->n,
                  .o = z->o,
                  .y = z->y,
                  .x = z->x,
                  .kw = z->kw,
                  .stride = 1,
                  .dilation = 1,
                  .group = z->group,
                  .sum = conv_steps(z),
                  .plain = !z->i};

    return conv_whole_cycles(&m, &w) + copy_cycles(s);
}

static void decide_cut(Sched *s, void *plan)
{
    CutPlan         *p = plan;
    const ConvSizes *z = p->z;
    Machine          m = machine_of(s->target);
    Candidates       form = candidates(s), tile = candidates(s), chunk = candidates(s);

    for (uint32_t f = 0; f < FORMS; f++) {
        double cycles = priced_cycles(&m, p, f);

        if (cycles < INFINITY)
            candidate(&form, f, 0, cycles);
    }
    p->form = pick_order(s, "form", &form, form_names);
    for (int64_t nv = 1; nv <= limit_tile_most_vectors(&m) && nv <= z->group; nv++) {
        double  cycles;
        RegTile t = form_tile(&m, p, nv, &cycles);

        if (cycles < INFINITY)
            candidate(&tile, t.pixels, nv, cycles);
    }
    p->tile = pick_reg_tile(s, "tile", &tile);
    if (p->alone || z->o > p->tile.nv) {
        divisors(&chunk, z->c);
        usual(&chunk, conv_chunk(s, z, p->tile.nv), 0);
    } else { /* threads divide rows, which lie inside of chunks */
        candidate(&chunk, z->c, 0, 0);
    }
    p->chunk = pick_factor(s, "chunk", &chunk);
    p->channels =
        z->i && pick_bool(s, "unroll.channels", written(p, p->tile) * z->i <= limit_code_madds(&m));
}

/* Weights in the order in which the sums take them. */
static void pack(Sched *s, const ConvSizes *z, const CutPlan *p)
{
    long long o = (long long)(p->tile.nv * z->lanes), i = (long long)z->i;

    if (!i || p->form != COLUMNS)
        conv_pack(s, z, p->tile.nv);
    else
        step(s, "transform_layout %%w (o, c, h, v) -> (o//%lld, c//%lld, h, c%%%lld, v, o%%%lld)",
             o, i, i, o);
}

bool conv2d_cut(Sched *s, const ConvSizes *z)
{
    TapCuts     cuts, rows;
    Machine     m = machine_of(s->target);
    CutPlan     p = {.z = z, .cuts = &cuts};
    const char *out;

    if (!z->c || strcmp(z->line, "x") || !tap_cuts(s, &cuts))
        return false;
    p.copy = copy_cycles(s);
    if (best_cycles(&m, &p) > whole_cycles(s, z))
        return false;
    p.alone = is_tiny(s, (int64_t)((double)(z->n * z->o * z->lanes * conv_channels(z)) *
                                   strip_taps(&cuts.y) * strip_taps(&cuts.x)));
    inline_prologue(s, "conv");
    sched_decide(s, decide_cut, &p);
    RegTile t = p.tile;
    if (p.form != ROWS)
        step(s, "compute_inline pad");
    out = prepare_anchor(s, "conv", false);

    rows = cuts;
    if (p.form != STRIPS)
        rows.x = (Strips){1, {{0, z->x, z->kw}}};
    pack(s, z, &p);
    step(s, "split %%conv.o by %lld -> %%oc, %%ov", (long long)t.nv);
    step(s, "split %%conv.c by %lld -> %%kc, %%cb", (long long)p.chunk);
    TileNest tile = {.block = "conv",
                     .line = "conv.x",
                     .tiles = "t",
                     .pixel = "p",
                     .pixels = t.pixels,
                     .sums = !z->i               ? "%cb, %conv.kh, %conv.kw"
                             : p.form == COLUMNS ? "%cb, %conv.kh, %conv.i, %conv.kw"
                                                 : "%cb, %conv.kh, %conv.kw, %conv.i",
                     .vectors = "%ov, %conv.j",
                     .lane = "conv.j",
                     .unroll = p.form == COLUMNS ? "%conv.kw, %p, %ov" : "%p, %ov",
                     .out = out,
                     .chunks = p.chunk < z->c};
    step(s, "reorder %%conv.n, %%oc, %%kc, %%conv.y, %%conv.x, %s, %s", tile.sums, tile.vectors);
    cut_loops(s, &rows);
    if (p.form == ROWS)
        try_step(s, "elide_pad pad");
    tile_sums(s, &tile);
    if (p.form == COLUMNS) {
        step(s, "guard_zeros conv");
        step(s, "unroll %%t"); /* each has columns of its own */
    }
    tile_marks(s, &tile);
    if (p.channels)
        step(s, "unroll %%conv.i");
    if (!p.alone)
        step(s, "parallel %s", z->o > t.nv ? "%oc" : z->n > 1 ? "%conv.n" : "%conv.y");
    step(s, "outline %%t -> @tile");
    if (!s->refusal && has_block(s, "pad"))
        pad_marks(s, NULL);
    return true;
}
