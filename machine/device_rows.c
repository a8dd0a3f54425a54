/* What softmax, norms and reductions cost on a GPU: all stages of a row in one launch by the
 * threads that have it, or each reduction apart, by as many threads of as many blocks as pay. */
#include "machine/device.h"

#include <math.h>

/* A load or store and what counts it; cycles of a step of a sum; numbers of a row that a thread
 * keeps in registers from its first stage on; registers of a thread of a reduction.  A division or
 * a function is a dozen instructions one after the other, and none of the next cell's begins before
 * (machine code for sm_90). */
enum { ACCESS = 3, STEP = 8, KEPT = 32, CALL = 12, CALL_WAIT = 60, LINE = 4, REGISTERS = 32 };
enum { EXCHANGE = 28 }; /* cycles of a step of a sum by the threads of a warp */

/* ---- all stages in a launch ----------------------------------------------------------------------- */

/* What comes to a thread with a cell: a sector at most, where neighbours of the row lie apart and
 * no thread beside it has what lies between. */
static double apart_bytes(const DeviceRows *r)
{
    return fmin((double)r->step * (double)r->bytes, fmax(DEVICE_SECTOR, (double)r->bytes));
}

/* Of rows and cells of these numbers. */
static double rows_cycles(const Machine *m, const DeviceRows *r, int64_t threads)
{
    double block = (double)(threads > 1 ? threads : limit_gpu_threads(m)),
           own = block / (double)threads;
    double blocks = ceil((double)r->rows / own), cores = fmin(blocks, (double)m->units);
    double held = fmax(1, floor((double)m->unit_threads / block));
    double waves = ceil(blocks / (cores * held)), cells = (double)r->rows * (double)r->cells;
    double lanes = threads > 1 ? (double)r->lanes : 1;
    double each = ceil((double)r->cells / ((double)threads * lanes)) * lanes;
    double stages = (double)r->stages, reads = threads > 1 && each <= KEPT ? 1 : stages;

    /* Threads that have a row each use a few bytes of every line that they load. */
    double number = threads > 1 ? apart_bytes(r) : (double)r->bytes * (r->along ? LINE : 1);
    double issued = cells / (double)m->unit_issue / cores *
                    (ACCESS * (reads + 1) / lanes + (double)r->work + CALL * (double)r->calls);
    double moved = cells * (number * reads + (double)r->stored) / m->unit_rate / cores;

    /* Partial sums of a quarter of the threads are added up by some, then by all of them; those of
     * a warp by exchanges between its threads, then a number a warp by all. */
    double parts = threads > 1 ? 2 * sqrt((double)threads) * STEP + 3 * DEVICE_MEET : 0;
    if (threads > 1 && r->warp)
        parts = log2((double)r->warp) * EXCHANGE +
                (threads > r->warp ? (double)(threads / r->warp) * STEP + 2 * DEVICE_MEET : 0);
    double chain = each * (STEP * stages + CALL_WAIT * (double)r->calls) +
                   (reads + 1) * m->unit_wait + stages * parts;
    moved = fmax(moved, device_memory_cycles(m, cells * ((double)r->bytes + (double)r->stored)));
    return fmax(fmax(issued, moved), (waves - 1) * chain) + chain;
}

/* ---- each reduction apart ------------------------------------------------------------------------- */

/* Stages that read all numbers; what they compute counts for each alike. */
static double passes(const DeviceRows *r)
{
    return (double)(r->sums + (r->stored > 0));
}

/* Bytes of sectors, and of lines, that come with a number to a block that has so many rows side by
 * side. */
static double bytes_beside(const DeviceRows *r, int64_t beside, double least)
{
    double run = (double)(beside < r->beside ? beside : r->beside), bytes = (double)r->bytes;

    if (r->step == 1 || (run == (double)r->beside && r->step == r->beside)) /* line after line */
        return bytes;
    return fmax(bytes, least / run);
}

/* One reduction of r's by one launch. */
static double launch_cycles(const Machine *m, const DeviceRows *r, const DeviceReduction *d)
{
    double threads = (double)(d->beside * d->threads), parts = (double)d->parts;
    double blocks = ceil((double)r->rows / (double)d->beside) * parts;
    double cores = fmin(blocks, (double)m->units), cells = (double)r->rows * (double)r->cells;
    double held = device_blocks_held(m, threads, REGISTERS, threads * (double)r->bytes);
    double waves = ceil(blocks / (cores * held)), lanes = (double)r->lanes;
    double each = ceil((double)r->cells / (lanes * (double)d->threads * parts)) * lanes;
    double calls = (double)r->calls / passes(r), work = (double)r->work / passes(r) + CALL * calls;
    double warps = ceil(threads / (double)m->warp) * (double)m->warp;

    double issued = blocks * warps * each * (ACCESS / lanes + work) / (double)m->unit_issue;
    double moved =
        cells * fmax(bytes_beside(r, d->beside, DEVICE_SECTOR) / m->unit_rate,
                     bytes_beside(r, d->beside, (double)limit_gpu_line(m)) / m->shared_rate);
    double busy =
        fmax(fmax(issued, moved) / cores, device_memory_cycles(m, cells * (double)r->bytes));
    /* What is written out waits together. */
    double chain = fmax(each * (STEP + CALL_WAIT * calls),
                        ceil(each / (lanes * (double)limit_gpu_written(m))) * m->unit_wait);
    double join = d->threads > 1 ? 2 * sqrt((double)d->threads) * STEP + 3 * DEVICE_MEET : 0;
    return fmax(busy, waves * (chain + join)) + m->unit_wait + join;
}

/* The partial results of r's rows, as rows of their own. */
static DeviceRows partial(const DeviceRows *r, int64_t parts)
{
    return (DeviceRows){.rows = r->rows,
                        .cells = parts,
                        .sums = 1,
                        .bytes = r->bytes,
                        .lanes = 1,
                        .work = 1,
                        .step = r->rows,
                        .beside = r->rows};
}

DeviceReduction device_partial_reduction(const Machine *m, const DeviceRows *r, int64_t parts)
{
    DeviceRows      z = partial(r, parts);
    DeviceReduction d = {1, 1, 1}, best = d;
    double          least = INFINITY;

    for (d.beside = 1; d.beside < 2 * z.rows && d.beside <= limit_gpu_threads(m); d.beside *= 2)
        for (d.threads = 1; d.threads <= parts; d.threads *= 2) {
            double cycles = device_reduction_fits(m, &d) ? launch_cycles(m, &z, &d) : INFINITY;
            if (cycles < least) {
                least = cycles;
                best = d;
            }
        }
    return best;
}

bool device_reduction_fits(const Machine *m, const DeviceReduction *d)
{
    enum { NUMBER = 8 }; /* bytes of the longest */
    int64_t threads = d->beside * d->threads;

    return threads <= limit_gpu_tile_threads(m) &&
           (d->threads == 1 || 2 * threads * NUMBER <= m->shared_bytes);
}

/* What a cell of a row becomes, once its reductions are there. */
static double last_cycles(const Machine *m, const DeviceRows *r)
{
    double cells = (double)r->rows * (double)r->cells;
    double bytes = cells * (double)(r->bytes + r->stored);
    double issued = cells * (2 * ACCESS / (double)r->lanes +
                             ((double)r->work + CALL * (double)r->calls) / passes(r));

    return fmax(fmax(issued / (double)m->unit_issue, bytes / m->unit_rate) / (double)m->units,
                device_memory_cycles(m, bytes)) +
           2 * m->unit_wait;
}

static double apart_cycles(const Machine *m, const DeviceRows *r, const DeviceReduction *d)
{
    double reductions = (double)r->sums, launches = reductions, each = launch_cycles(m, r, d);

    if (d->parts > 1) {
        DeviceRows      z = partial(r, d->parts);
        DeviceReduction join = device_partial_reduction(m, r, d->parts);
        each += launch_cycles(m, &z, &join);
        launches += reductions;
    }
    if (r->single && d->threads * d->parts > 1) /* a launch of one thread ends each */
        launches += reductions;
    double all = reductions * each;
    if (r->stored) {
        all += last_cycles(m, r);
        launches++;
    }
    all += (launches - 1) * device_launch_cycles(m);
    return launches > 1 ? limit_gpu_parts_gain(m) * all : all;
}

/* ---- sizes that a run decides --------------------------------------------------------------------- */

typedef struct {
    const Machine         *m;
    const DeviceRows      *r;
    int64_t                threads;
    const DeviceReduction *apart; /* NULL: by so many threads of a row */
} OpenRows;

static double cycles_of(const OpenRows *o, const DeviceRows *r)
{
    return o->apart ? apart_cycles(o->m, r, o->apart) : rows_cycles(o->m, r, o->threads);
}

static double part_of_rows(const void *user, int64_t part)
{
    const OpenRows *o = user;
    DeviceRows      at = *o->r;

    at.rows = device_part(at.rows, at.open.rows, part);
    at.cells = device_part(at.cells, at.open.cells, part);
    return cycles_of(o, &at);
}

static double open_cycles(const OpenRows *o)
{
    const DeviceRows *r = o->r;
    int64_t           most = r->open.rows > r->open.cells ? r->open.rows : r->open.cells;

    return most ? device_mean_cycles(most, part_of_rows, o) : cycles_of(o, r);
}

double device_rows_cycles(const Machine *m, const DeviceRows *r, int64_t threads)
{
    return open_cycles(&(OpenRows){.m = m, .r = r, .threads = threads});
}

double device_apart_cycles(const Machine *m, const DeviceRows *r, const DeviceReduction *d)
{
    return open_cycles(&(OpenRows){.m = m, .r = r, .apart = d});
}
