/* What products cost on a GPU whose threads load what they multiply from memory, without panels in
 * shared memory (schedules/gpu/direct.c). */
#include "machine/device.h"

#include <math.h>

/* Instructions: of a round of the loop over chunks; that find a number that conditions choose,
 * beside its load, and in a window's row, which shares most of its conditions. */
enum { ROUND = 4, CHOSEN = 3, CHOSEN_IN_ROW = 1 };

/* Of an operand and a step of the sum: loads of a thread, bytes of the lines that these take, and
 * instructions, the loads among them. */
typedef struct {
    double loads, lines, issued;
} Loaded;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* A thread's cells lie in runs of a quad, neighbours' one behind the other, or each far from the
 * next. */
static Loaded loaded(const DeviceTile *t, const DeviceLoad *l, int64_t cells, int64_t quad,
                     int64_t chunk)
{
    const int64_t run = least(cells, quad), beside = least(cells, l->cells);
    const double  line = l->along ? DEVICE_SECTOR : (double)(run * t->bytes);
    double        loads = (double)cells / (double)beside;

    if (l->row && chunk % l->row == 0)
        loads *= fmin(1, (double)((run - 1) * l->apart + l->row) / (double)(run * l->row));
    else if (l->steps > 1 && chunk % l->steps == 0)
        loads /= (double)l->steps;
    const int finds = !l->chosen ? 0 : l->row ? CHOSEN_IN_ROW : CHOSEN;
    return (Loaded){loads, loads * line, loads * (1 + finds)};
}

/* How many of a warp's threads load what no other does, of a side that the block's threads have in
 * so many parts, by so many that share each. */
static double loading_threads(const Machine *m, const DeviceLoad *l, int64_t own, int64_t others)
{
    const int64_t n = l->across ? m->warp : (m->warp + others - 1) / others;

    return (double)least(own, n);
}

static double lines_cycles(const Machine *m, const DeviceTile *t, double of_m, double of_n)
{
    const int64_t x = t->bm / t->tm, y = t->bn / t->tn;
    const double  warps = device_tile_lanes(m, t) / (double)m->warp;
    const double  groups = t->groups > 1 ? (double)t->groups : 1;

    return warps / groups *
           (of_m * loading_threads(m, &t->load_m, x, y) +
            of_n * loading_threads(m, &t->load_n, y, x)) /
           m->direct_rate;
}

double device_cached_cycles(const Machine *m, const DeviceTile *t)
{
    const double quad = (double)device_quad(m, t->bytes), bytes = quad * (double)t->bytes;

    return lines_cycles(m, t, bytes * ceil((double)t->tm / quad),
                        bytes * ceil((double)t->tn / quad));
}

int64_t device_direct_kept(const DeviceTile *t)
{
    const int64_t own = t->chunk / (t->groups > 1 ? t->groups : 1);

    return t->tm * (t->load_m.along ? own : 1) + t->tn * (t->load_n.along ? own : 1);
}

double device_direct_cycles(const Machine *m, const DeviceTile *t, double held)
{
    const double  groups = t->groups > 1 ? (double)t->groups : 1, lanes = device_tile_lanes(m, t);
    const int64_t own = t->chunk / (int64_t)groups, quad = device_quad(m, t->bytes);
    const Loaded  a = loaded(t, &t->load_m, t->tm, quad, own),
                 b = loaded(t, &t->load_n, t->tn, quad, own);

    /* Of one step of the sum, which one group makes.  What one thread loads others of the block
     * find in the core's cache. */
    const double macs = (double)(t->tm * t->tn);
    const double rounds = fmax((double)own, (double)limit_gpu_written(m));
    const double loads = a.issued + b.issued + ROUND / rounds;
    const double moved = lines_cycles(m, t, a.lines, b.lines);
    double       step = fmax(lanes / groups * macs / (double)m->unit_macs,
                             lanes / groups * (macs + loads) / (double)m->unit_issue);
    step = fmax(step, fmax(moved, (double)((t->bm + t->bn) * t->bytes) / m->unit_rate));

    /* A thread waits for all loads that are written out at once. */
    const double turn = fmax(m->unit_turn, (double)m->unit_issue / (double)m->unit_macs);
    const double alone = fmax(step, (macs * turn + loads * m->unit_turn) / groups);
    const double at_once = fmin(rounds * groups, (double)t->k);
    double chunk = fmax(held * step * at_once, DEVICE_MEMORY * m->unit_wait + alone * at_once);
    chunk += held * moved * at_once / DEVICE_AMONG_EQUALS;
    return (double)t->k / at_once * chunk;
}
