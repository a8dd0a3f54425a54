/* What sorts and running sums by threads of a block cost: rounds in which every cell of a row meets
 * another one in shared memory, and merges of what blocks have sorted. */
#include "machine/device.h"

#include <math.h>

enum {
    LOAD_WAIT = 30, /* cycles until a load of shared memory is there; */
    WAITS = 2,      /* of a cell: where the other one lies, and what it is */
    REGISTERS = 40, /* of a thread */
    /* Operations of a cell that meets another one, or that another one is added to (PTX of sm_90);
     * bytes of a position, and of what a table says of a round. */
    COMPARISON = 24,
    ADDITION = 12,
    INDEX = 4
};

DeviceRounds device_network(int64_t rows, int64_t cells, int64_t rounds, int64_t bytes)
{
    return (DeviceRounds){.rows = rows,
                          .cells = cells,
                          .rounds = rounds,
                          .bytes = 2 * (bytes + INDEX),
                          .tables = rounds * INDEX,
                          .work = COMPARISON};
}

DeviceRounds device_doubling(int64_t rows, int64_t cells, int64_t rounds, int64_t bytes)
{
    return (DeviceRounds){
        .rows = rows, .cells = cells, .rounds = rounds, .bytes = 2 * bytes, .work = ADDITION};
}

static double known_cycles(const Machine *m, const DeviceRounds *z, int64_t rows, int64_t threads)
{
    double warps = ceil((double)(rows * threads) / (double)m->warp) * (double)m->warp;
    double each = ceil((double)z->cells / (double)threads), work = (double)z->work;
    double blocks = ceil((double)z->rows / (double)rows), here = ceil(blocks / (double)m->units);
    double shared = (double)(rows * z->cells * z->bytes);
    double held = fmin(here, device_blocks_held(m, warps, REGISTERS, shared));
    double issued = warps * each * work / (double)m->unit_issue;
    double own = each * (work * m->unit_turn + WAITS * LOAD_WAIT);
    double round = fmax(held * issued, own) + DEVICE_MEET;

    return ceil(here / held) * ((double)z->rounds * round + 2 * m->unit_wait);
}

typedef struct {
    const Machine      *m;
    const DeviceRounds *z;
    int64_t             rows, threads;
} OpenRounds;

static double part_of_rounds(const void *user, int64_t part)
{
    const OpenRounds *o = user;
    DeviceRounds      at = *o->z;

    at.rows = device_part(at.rows, at.open, part);
    return known_cycles(o->m, &at, o->rows, o->threads);
}

double device_rounds_cycles(const Machine *m, const DeviceRounds *z, int64_t rows, int64_t threads)
{
    return z->open ? device_mean_cycles(z->open, part_of_rounds, &(OpenRounds){m, z, rows, threads})
                   : known_cycles(m, z, rows, threads);
}

int64_t device_rounds_threads(const Machine *m, const DeviceRounds *z, int64_t i)
{
    const int64_t least = limit_gpu_least_threads(m);
    int64_t       threads = z->cells;

    /* As many for all cells as have a cell, two, four, .. each. */
    for (; i > 0; i--)
        threads = ceil_div(threads, 2);
    return threads < z->cells && 2 * threads <= least ? 0
           : threads > m->block_threads               ? -1
                                                      : threads;
}

double device_rounds_best(const Machine *m, const DeviceRounds *z)
{
    double  best = INFINITY;
    int64_t threads;

    for (int64_t i = 0; (threads = device_rounds_threads(m, z, i)) != 0; i++)
        for (int64_t rows = 1; threads > 0 && device_rounds_fit(m, z, rows, threads); rows *= 2)
            best = fmin(best, device_rounds_cycles(m, z, rows, threads));
    return best;
}

bool device_rounds_fit(const Machine *m, const DeviceRounds *z, int64_t rows, int64_t threads)
{
    return rows * z->cells * z->bytes + rows * z->tables <= m->shared_bytes &&
           rows * threads <= (rows > 1 ? limit_gpu_tile_threads(m) : m->block_threads) &&
           (rows == 1 || (!z->open && rows / 2 < (z->together ? z->together : z->rows)));
}

double device_search_cycles(const Machine *m, double cells, double steps, double bytes)
{
    /* Instructions of a step that halves what is searched, and of the rest. */
    enum { STEP = 20, REST = 30, TENSORS = 5 };
    DeviceThread t = {.threads = (int64_t)cells,
                      .tensors = TENSORS,
                      .issued = STEP * steps + REST,
                      .lines = steps * 2 * bytes,
                      .moved = (steps + 4) * bytes,
                      .once = 4 * bytes};

    return device_thread_cycles(m, &t) + steps * m->unit_wait;
}

double device_columns_cycles(const Machine *m, double threads, double cells)
{
    double block = (double)limit_gpu_threads(m), waves = ceil(threads / block / (double)m->units);

    return cells * fmax(m->unit_wait, waves * block * ADDITION / (double)m->unit_issue);
}

double device_alone_cycles(const Machine *m, double cells)
{
    return cells * fmax(1, log2(cells + 1)) * m->unit_wait;
}
