/* Which tile of a product on a GPU: the least of the estimates of machine/device.c. */
#include "schedules/gpu/gpu.h"

#include <math.h>

/* A block has enough threads and not too many, and all groups as many of the sums to add up. */
static bool has_threads(const Machine *m, const DeviceTile *t)
{
    int64_t threads = device_tile_threads(t);

    return t->bm >= t->tm && t->bn >= t->tn && t->tm * t->tn % t->groups == 0 &&
           threads <= limit_gpu_tile_threads(m) && threads >= limit_gpu_least_threads(m);
}

static bool is_legal(const Machine *m, const DeviceTile *t)
{
    return has_threads(m, t) && device_tile_regs(t) <= m->regs &&
           (m->shared_bytes == 0 || device_tile_bytes(m, t) <= limit_gpu_tile_bytes(m));
}

/* A chunk that waits in registers for the one before to be done takes a second stage, no more. */
static int64_t most_stages(const Machine *m, const DeviceTile *t)
{
    if (!m->shared_bytes || t->direct || t->made || t->chunk >= t->k)
        return 1;
    return t->keeps_m || t->keeps_n ? 2 : limit_gpu_stages(m);
}

/* A tile that hangs over the edge is copied number by number, and so are shorter runs of cells. */
static void keep_tails(DeviceTile *t)
{
    t->keeps_m = t->keeps_m || t->open.m || t->m % t->bm || t->tm < t->wide;
    t->keeps_n = t->keeps_n || t->open.n || t->n % t->bn || t->tn < t->wide;
}

static double tile_cycles(const Machine *m, DeviceTile t)
{
    double least = NAN;

    keep_tails(&t);
    for (t.stages = 1; t.stages <= most_stages(m, &t); t.stages++)
        if (is_legal(m, &t))
            least = fmin(least, device_open_cycles(m, &t, device_tile_cycles));
    return least;
}

/* Steps of a chunk; those of operands that come directly are written out, a few or a window's. */
static int64_t most_chunk(const Machine *m, const DeviceTile *t)
{
    const int64_t few = limit_gpu_written(m);

    if (!t->direct)
        return limit_gpu_chunk(m);
    return t->window > few && t->window <= limit_gpu_direct(m) ? t->window : few;
}

/* A chunk is a part of one loop of the sum with all loops inside: that way the order stays.  Parts
 * that divide the loop need no condition.  Groups of threads have parts of a part.  A loop whose
 * rounds a run decides is inside of no chunk.  The least of their estimates; all of them are
 * candidates of k, where there is one. */
static double chunks_cycles(const Machine *m, const TilePlan *d, DeviceTile t, Candidates *k)
{
    const int64_t most = t.groups * most_chunk(m, &t);
    int64_t       inner = 1;
    double        least = NAN;

    for (uint32_t i = d->nsum; i-- > 0 && inner <= most; inner *= d->any[i] ? most + 1 : d->sum[i])
        for (int64_t f = d->sum[i] < most / inner ? d->sum[i] : most / inner; f >= 1; f--) {
            t.chunk = inner * f;
            if (f == 1 && i + 1 < d->nsum) /* the loop inside, whole */
                continue;
            t.tested = d->any[i] || d->sum[i] % f != 0;
            if (t.tested && (t.direct || d->words || f & (f - 1) || f < limit_gpu_least_chunk(m)))
                continue;
            if (t.groups > 1 && (t.tested || f % t.groups))
                continue;
            double cycles = tile_cycles(m, t);
            least = fmin(least, cycles);
            if (k && !isnan(cycles))
                candidate(k, t.chunk, 0, cycles);
        }
    return least;
}

/* ... with the chunk that suits it, of any where the loops of the sum are not known. */
static double best_cycles(const Machine *m, const TilePlan *d, DeviceTile t)
{
    double least = NAN;

    if (d->nsum)
        return chunks_cycles(m, d, t, NULL);
    t.chunk = t.groups * (t.direct ? limit_gpu_least_chunk(m) : limit_gpu_chunk(m));
    for (; t.chunk >= t.groups * limit_gpu_least_chunk(m); t.chunk /= 2)
        least = fmin(least, tile_cycles(m, t));
    return least;
}

/* Sides of tiles: none is twice as long as what there is. */
enum { LEAST_SIDE = 4, MOST_SIDE = LEAST_SIDE << (TILE_SIDES - 1) };

static bool fits_side(int64_t side, int64_t cells)
{
    return side == LEAST_SIDE || side < 2 * cells;
}

static int log_of(int64_t power)
{
    int n = 0;

    while (power >> (n + 1))
        n++;
    return n;
}

/* The least of a block's tile and groups, whatever its threads have of it; found once, since a walk
 * through the space asks for each of them again and again. */
static double cells_cycles(const Machine *m, TilePlan *d, DeviceTile t)
{
    double *known = &d->known[t.direct][log_of(t.batch / d->of.batch)][log_of(t.bm / LEAST_SIDE)]
                             [log_of(t.bn / LEAST_SIDE)][log_of(t.groups)];
    double least = NAN;

    if (*known)
        return *known;
    for (t.tm = 1; t.tm <= limit_gpu_cells(m); t.tm *= 2)
        for (t.tn = 1; t.tn <= limit_gpu_cells(m); t.tn *= 2)
            if (fits_side(t.bm, t.m) && fits_side(t.bn, t.n) && has_threads(m, &t))
                least = fmin(least, best_cycles(m, d, t));
    return *known = least;
}

static double side_cycles(const Machine *m, TilePlan *d, DeviceTile t)
{
    double least = NAN;

    for (t.groups = 1; t.groups <= d->groups; t.groups *= 2)
        least = fmin(least, cells_cycles(m, d, t));
    return least;
}

/* The most groups, for each of which a chunk has a part. */
enum { MOST_GROUPS = 1 << (TILE_GROUPS - 1) };

static int64_t most_groups(const Machine *m, const TilePlan *d)
{
    int64_t n = 1, inner = 1;

    if (d->of.made || !m->shared_bytes)
        return 1;
    for (uint32_t i = d->nsum; i-- > 0; inner *= d->sum[i])
        while (n < limit_gpu_groups(m) && n < MOST_GROUPS && d->sum[i] % (2 * n) == 0 &&
               inner <= limit_gpu_chunk(m))
            n *= 2;
    return n;
}

/* Panels in shared memory, or operands from memory directly. */
enum { PANELS_SHARED, PANELS_DIRECT };
static const char *const panels[] = {"shared", "direct"};

/* NAN: what a tile makes is always shared, and so are words of bytes, which are put together once.
 */
static double way_cycles(const Machine *m, TilePlan *d, DeviceTile t, bool direct)
{
    double least = NAN;

    t.direct = direct;
    if (direct && d->shares)
        return NAN;
    for (t.bm = LEAST_SIDE; t.bm <= MOST_SIDE; t.bm *= 2)
        for (t.bn = LEAST_SIDE; t.bn <= MOST_SIDE; t.bn *= 2)
            least = fmin(least, side_cycles(m, d, t));
    return least;
}

/* Of the way that decide_direct takes. */
static double least_cycles(const Machine *m, TilePlan *d, DeviceTile t)
{
    const double shared = way_cycles(m, d, t, false), direct = way_cycles(m, d, t, true);

    return isnan(shared) || limit_gpu_direct_gain(m) * direct < shared ? direct : shared;
}

static bool decide_direct(Sched *s, const Machine *m, TilePlan *d)
{
    Candidates k = candidates(s);

    for (int direct = PANELS_SHARED; direct <= PANELS_DIRECT; direct++) {
        double cycles = way_cycles(m, d, d->t, direct);
        if (direct)
            cycles *= limit_gpu_direct_gain(m);
        if (!isnan(cycles))
            candidate(&k, direct, 0, cycles);
    }
    return k.of.n && pick_order(s, "panels", &k, panels) == PANELS_DIRECT;
}

/* Parts of the sum's outermost loop, each by blocks of its own, and a launch that adds them up. */
enum { MOST_PARTS = 1 << (TILE_PARTS - 1) };

static void decide_parts(Sched *s, const Machine *m, TilePlan *d)
{
    Candidates k = candidates(s);

    for (int64_t n = 1; n == 1 || (!d->whole && n <= MOST_PARTS && d->first % n == 0); n *= 2) {
        DeviceTile t = d->of;
        t.k /= n;
        t.batch *= n;
        d->sum[0] = d->first / n;
        d->groups = most_groups(m, d);
        double cells = (double)(t.m * t.n) * (double)t.batch, cycles = least_cycles(m, d, t);
        if (n > 1)
            cycles = limit_gpu_parts_gain(m) *
                     (cycles + device_launch_cycles(m) + device_cells_cycles(m, cells, 1, t.bytes));
        if (!isnan(cycles))
            candidate(&k, n, 0, cycles);
    }
    d->parts = k.of.n ? pick_factor(s, "parts", &k) : 1;
    d->t = d->of;
    d->t.k /= d->parts;
    d->t.batch *= d->parts;
    d->sum[0] = d->first / d->parts;
}

void decide_tile(Sched *s, void *plan)
{
    TilePlan   *d = plan;
    Machine     m = machine_of(s->target);
    DeviceTile *t = &d->t, best;
    Candidates  tiles = candidates(s), cells = candidates(s), groups = candidates(s),
               parts = candidates(s), stages = candidates(s);
    const Candidate *c;

    decide_parts(s, &m, d);
    d->groups = most_groups(&m, d);
    t->direct = decide_direct(s, &m, d);
    d->quad = device_quad(&m, t->bytes);
    d->written = limit_gpu_written(&m);
    t->chunk = t->k < limit_gpu_least_chunk(&m) ? t->k : limit_gpu_least_chunk(&m);
    best = *t;
    for (best.bm = LEAST_SIDE; best.bm <= MOST_SIDE; best.bm *= 2)
        for (best.bn = LEAST_SIDE; best.bn <= MOST_SIDE; best.bn *= 2) {
            double least = side_cycles(&m, d, best);
            if (!isnan(least))
                candidate(&tiles, best.bm, best.bn, least);
        }
    if (!tiles.of.n)
        return;
    c = pick_tile(s, "tile", &tiles);
    t->bm = c->v[0];
    t->bn = c->v[1];
    best = *t;
    for (best.groups = 1; best.groups <= d->groups; best.groups *= 2) {
        double least = cells_cycles(&m, d, best);
        if (!isnan(least))
            candidate(&groups, best.groups, 0, least);
    }
    d->groups = t->groups = pick_factor(s, "groups", &groups);
    best = *t;
    for (best.tm = 1; best.tm <= limit_gpu_cells(&m); best.tm *= 2)
        for (best.tn = 1; best.tn <= limit_gpu_cells(&m); best.tn *= 2) {
            double least = has_threads(&m, &best) ? best_cycles(&m, d, best) : NAN;
            if (!isnan(least))
                candidate(&cells, best.tm, best.tn, least);
        }
    c = pick_tile(s, "cells", &cells);
    t->tm = c->v[0];
    t->tn = c->v[1];
    chunks_cycles(&m, d, *t, &parts);
    t->chunk = d->part = pick_factor(s, "chunk", &parts);
    keep_tails(t);
    for (t->stages = 1; t->stages <= most_stages(&m, t); t->stages++)
        if (is_legal(&m, t))
            candidate(&stages, t->stages, 0, device_open_cycles(&m, t, device_tile_cycles));
    t->stages = pick_factor(s, "stages", &stages);
    for (d->level = d->nsum - 1; d->part > d->sum[d->level]; d->level--)
        d->part /= d->sum[d->level];
}

/* ---- what passes ask ---------------------------------------------------------------------------- */

/* As loads are where only sizes are known: data one by one, weights side by side. */
static DeviceTile plain_loads(const Machine *m, DeviceTile t)
{
    t.load_m = (DeviceLoad){.cells = 1, .steps = 1, .chosen = t.window, .across = true};
    t.load_n = (DeviceLoad){.cells = device_quad(m, t.bytes), .steps = 1};
    return t;
}

/* Numbers that are copied one by one; bytes as words. */
double gpu_tile_cycles(const Machine *m, DeviceTile of)
{
    TilePlan d = {.groups = 1};

    if (of.bytes == 1 && of.k % WORD == 0)
        of.bytes = WORD, of.k /= WORD, d.shares = true;
    of.keeps_m = of.keeps_n = true;
    of.wide = 0;
    d.of = of = plain_loads(m, of);
    return least_cycles(m, &d, of);
}

/* A depthwise convolution and what reads it: each tile makes what it reads, so several tiles side
 * by side make it several times. */
bool gpu_pair_pays(const Target *t, const PairWork *w, int64_t taps)
{
    Machine    m = machine_of(t);
    DeviceTile one = {.m = w->y * w->x,
                      .n = w->o * w->lanes,
                      .k = w->c,
                      .batch = 1,
                      .bytes = 4,
                      .sum_bytes = 4,
                      .keeps_m = true,
                      .keeps_n = true};
    one = plain_loads(&m, one);
    TilePlan apart = {.of = one, .groups = 1}, joined = apart;
    double   between = (double)(w->c * w->y * w->x);
    double   two = least_cycles(&m, &apart, one) + device_launch_cycles(&m) +
                 device_cells_cycles(&m, between, (double)taps, 4);

    one.made = taps;
    joined.shares = true;
    return least_cycles(&m, &joined, one) < two;
}
