/* What kernels cost on a GPU: which of a core's units is busy longest, what threads wait for, and
 * how evenly the blocks lie on the cores.  Attention is in device_attention.c, products by
 * instructions of warps in device_mma.c, those without shared memory in device_direct.c, softmax,
 * norms and reductions in device_rows.c, sorts and running sums in device_rounds.c. */
#include "machine/device.h"

#include <math.h>

/* Instructions of a multiply-add that loads what it reads. */
enum { MADE = 3 };

int64_t device_quad(const Machine *m, int64_t bytes)
{
    return bytes < m->load_bytes ? m->load_bytes / bytes : 1;
}

/* Registers of a thread for what waits there until a chunk is done. */
static int64_t kept_regs(const DeviceTile *t, int64_t threads)
{
    int64_t numbers = (t->keeps_m ? t->bm : 0) + (t->keeps_n ? t->bn : 0);

    return t->stages > 1 ? (numbers * t->chunk + threads - 1) / threads : 0;
}

int64_t device_tile_threads(const DeviceTile *t)
{
    return (t->groups > 1 ? t->groups : 1) * (t->bm / t->tm) * (t->bn / t->tn);
}

int64_t device_tile_regs(const DeviceTile *t)
{
    int64_t words = t->bytes > 4 ? t->bytes / 4 : 1;
    int64_t operands =
        t->direct ? device_direct_kept(t) : t->tm + t->tn + kept_regs(t, device_tile_threads(t));

    return (t->tm * t->tn + operands) * words + DEVICE_OTHER_REGS;
}

/* Rows are a quad longer where they are stored across; partial sums lie there, too. */
int64_t device_tile_bytes(const Machine *m, const DeviceTile *t)
{
    int64_t stages = t->stages > 1 ? t->stages : 1;
    int64_t panels =
        t->direct ? 0 : stages * t->chunk * (t->bm + t->bn + 2 * device_quad(m, t->bytes));
    int64_t sums = t->groups > 1 ? t->groups * t->bm * t->bn : 0;

    return panels * t->bytes + sums * t->sum_bytes;
}

double device_chunk_cycles(bool ahead, double wait, double all, double own)
{
    return ahead ? fmax(all, fmax(own, wait)) + DEVICE_MEET
                 : fmax(all, wait + own) + 2 * DEVICE_MEET;
}

double device_blocks_held(const Machine *m, double threads, double regs, double bytes)
{
    double held = (double)m->unit_regs / (threads * regs);

    held = fmin(held, (double)m->unit_threads / threads);
    held = fmin(held, (double)m->unit_shared / bytes);
    return held < 1 ? 1 : floor(held);
}

/* All threads copy the same step of the window at a time, which takes them constants to find. */
static bool walks_window(const DeviceTile *t)
{
    return t->chunk % t->window == 0 && t->chunk / t->window * t->bm % device_tile_threads(t) == 0;
}

/* Instructions that copy a step of both panels, but for what is made there. */
static double copies(const DeviceTile *t)
{
    double wide = t->wide > 1 ? (double)t->wide : 1;
    double each = t->window && !walks_window(t) ? DEVICE_GATHER : DEVICE_COPY;

    return each * (double)t->bm / (t->keeps_m ? 1 : wide) +
           DEVICE_COPY * (double)t->bn / (t->keeps_n ? 1 : wide);
}

/* Partial sums of groups of threads go through shared memory, each once. */
static double join_cycles(const Machine *m, const DeviceTile *t)
{
    double numbers = (double)(t->groups * t->bm * t->bn);

    if (t->groups < 2)
        return 0;
    return 2 * DEVICE_MEET + 2 * fmax(numbers * (double)t->sum_bytes / m->shared_rate,
                                      numbers / (double)m->unit_issue);
}

/* How often a thread waits for numbers that it copies through its registers: for all that are
 * written out at once. */
static double copy_waits(const Machine *m, const DeviceTile *t)
{
    double threads = (double)device_tile_threads(t), chunk = (double)t->chunk, waits = 0;

    for (int side = 0; side < 2; side++) {
        double rounds = ceil((double)(side ? t->bn : t->bm) * chunk / threads);
        if (side ? t->keeps_n : t->keeps_m)
            waits += rounds <= (double)limit_gpu_filling(m)
                         ? 1
                         : ceil(rounds / (double)limit_gpu_written(m));
    }
    return fmax(waits, 1);
}

double device_tile_lanes(const Machine *m, const DeviceTile *t)
{
    return ceil((double)device_tile_threads(t) / (double)m->warp) * (double)m->warp;
}

/* The sum by way of panels in shared memory, of so many blocks that a core holds. */
static double staged_cycles(const Machine *m, const DeviceTile *t, double held)
{
    double quad = (double)device_quad(m, t->bytes), bytes = (double)t->bytes;
    double groups = t->groups > 1 ? (double)t->groups : 1;
    double threads = (double)device_tile_threads(t), lanes = device_tile_lanes(m, t);

    /* Of one step of the sum, which one group makes: the products; all instructions, those of the
     * copies of both panels, too; what a thread loads of them, a quad at a time, and what is stored
     * there; the panels on their way to the core. */
    double numbers = (double)(t->bm + t->bn), macs = (double)(t->tm * t->tn);
    double loads = ceil((double)t->tm / quad) + ceil((double)t->tn / quad);
    double made = (double)(t->bm * t->made) * MADE;
    double issued = lanes / groups * (macs + loads + t->tested) + copies(t) + made;
    double loaded = m->shared_cached ? device_cached_cycles(m, t)
                                     : lanes / groups * loads * quad * bytes / m->shared_rate;
    double copied = numbers * bytes / m->shared_rate;
    double shared = loaded + copied + (m->shared_cached ? numbers * bytes / m->direct_rate : 0);
    double step = fmax(lanes / groups * macs / (double)m->unit_macs,
                       fmax(issued / (double)m->unit_issue, shared));

    /* Blocks side by side hide what each waits for before a chunk, and that a thread takes one
     * instruction after the other. */
    step = fmax(step, numbers * bytes / m->unit_rate);
    double turn = fmax(m->unit_turn, (double)m->unit_issue / (double)m->unit_macs);
    double own = fmax(step, (macs * turn + loads * m->unit_turn) / groups +
                                copies(t) * m->unit_turn / threads);
    double waits = t->stages > 1 ? 1 / (double)(t->stages - 1) : copy_waits(m, t);
    double chunk = device_chunk_cycles(t->stages > 1, waits * DEVICE_MEMORY * m->unit_wait,
                                       held * step * (double)t->chunk, own * (double)t->chunk);
    chunk += held * loaded * (double)t->chunk / DEVICE_AMONG_EQUALS;
    return ceil((double)t->k / (double)t->chunk) * chunk;
}

double device_tile_cycles(const Machine *m, const DeviceTile *t)
{
    double blocks =
        (double)t->batch * ceil((double)t->m / (double)t->bm) * ceil((double)t->n / (double)t->bn);
    double here = ceil(blocks / (double)m->units); /* on the core that has most of them */
    double held = fmin(device_blocks_held(m, device_tile_lanes(m, t), (double)device_tile_regs(t),
                                          (double)device_tile_bytes(m, t)),
                       here);
    double sum = t->direct ? device_direct_cycles(m, t, held) : staged_cycles(m, t, held);
    double stores = here * (double)(t->bm * t->bn * t->bytes) / m->unit_rate;

    return ceil(here / held) * (sum + m->unit_wait + held * join_cycles(m, t)) + stores;
}

int64_t device_part(int64_t all, int64_t open, int64_t part)
{
    return open ? all / open * (open > part ? open / part : 1) : all;
}

double device_mean_cycles(int64_t most, PartCycles *cycles, const void *user)
{
    double sum = 0;
    int    sizes = 0;

    for (int64_t part = 1; part <= most; part *= 2, sizes++)
        sum += log(cycles(user, part));
    return exp(sum / sizes);
}

typedef struct {
    const Machine    *m;
    const DeviceTile *t;
    DeviceTileCycles *cycles;
} OpenTile;

static double part_of_tile(const void *user, int64_t part)
{
    const OpenTile *o = user;
    DeviceTile      at = *o->t;

    at.m = device_part(at.m, at.open.m, part);
    at.n = device_part(at.n, at.open.n, part);
    at.k = device_part(at.k, at.open.k, part);
    at.batch = device_part(at.batch, at.open.batch, part);
    return o->cycles(o->m, &at);
}

double device_open_cycles(const Machine *m, const DeviceTile *t, DeviceTileCycles *cycles)
{
    int64_t rows = t->open.m > t->open.n ? t->open.m : t->open.n,
            rest = t->open.k > t->open.batch ? t->open.k : t->open.batch,
            most = rows > rest ? rows : rest;

    return most ? device_mean_cycles(most, part_of_tile, &(OpenTile){m, t, cycles}) : cycles(m, t);
}

double device_cells_cycles(const Machine *m, double cells, double macs, double bytes)
{
    double issued = cells * macs * MADE / (double)m->unit_macs,
           moved = 2 * cells * bytes / m->unit_rate;

    return fmax(issued, moved) / (double)m->units + m->unit_wait;
}

int64_t device_lanes(const Machine *m, int64_t bytes)
{
    enum { MOST = 4 }; /* numbers of a vector, in all languages */
    int64_t n = device_quad(m, bytes);

    return n < MOST ? n : MOST;
}

double device_memory_cycles(const Machine *m, double bytes)
{
    return fmax(0, bytes - (double)m->device_cache) * m->device_ghz / m->device_ns;
}

double device_thread_cycles(const Machine *m, const DeviceThread *t)
{
    /* Instructions until a thread knows its cells and where each tensor lies (machine code for
     * sm_80). */
    enum { BEGIN = 6, TENSOR = 7, REGISTERS = 32 };
    double block = (double)limit_gpu_threads(m);
    double issued = BEGIN + TENSOR * (double)t->tensors + t->issued;
    double blocks = ceil((double)t->threads / block), here = ceil(blocks / (double)m->units);
    double held = fmin(here, device_blocks_held(m, block, REGISTERS, 1));
    double busy = fmax(issued / (double)m->unit_issue, t->lines / m->shared_rate);
    double threads = (double)t->threads;
    double moved = fmax(threads * t->moved / m->unit_rate / (double)m->units,
                        device_memory_cycles(m, threads * t->once));

    return fmax(here * block * busy, moved) + ceil(here / held) * (m->unit_wait + issued);
}

double device_launch_cycles(const Machine *m)
{
    return (double)m->kernel_ns * m->device_ghz;
}

double device_copy_cycles(const Machine *m, double bytes)
{
    return device_launch_cycles(m) + m->unit_wait + bytes / m->unit_rate / (double)m->units;
}

int64_t device_turn_threads(const Machine *m, const DeviceTurn *t)
{
    int64_t most = limit_gpu_tile_threads(m), rows = 1;

    if (t->tile_on > most)
        return 0;
    while (2 * rows <= t->tile_up && 2 * rows * t->tile_on <= most)
        rows *= 2;
    return rows * t->tile_on;
}

/* What moves to read or write a cell where so many of a line lie side by side: whole sectors, one
 * more where lines begin anywhere. */
static double line_bytes(double bytes, double together, int64_t line)
{
    bool whole = line * (int64_t)bytes % DEVICE_SECTOR == 0;

    return whole ? fmax(bytes, DEVICE_SECTOR / together)
                 : bytes + (DEVICE_SECTOR - bytes) / together;
}

double device_turn_cycles(const Machine *m, const DeviceTurn *t)
{
    /* Instructions until a thread knows its cells and where both tensors lie (machine code for
     * sm_90). */
    enum { BEGIN = 40, REGISTERS = 32 };
    int64_t threads = device_turn_threads(m, t);
    int64_t shared = t->tile_on * (t->tile_up + 1) * t->bytes;
    double  cells = (double)(t->up * t->on * t->times), bytes = (double)t->bytes;

    if (!threads || shared > m->shared_bytes)
        return NAN;
    double blocks = (double)t->times * ceil((double)t->up / (double)t->tile_up) *
                    ceil((double)t->on / (double)t->tile_on);
    double made = blocks * ((double)threads * BEGIN +
                            (double)(t->tile_up * t->tile_on) * (DEVICE_COPY + MADE));
    double moved = cells * (line_bytes(bytes, (double)t->tile_up, t->up) +
                            line_bytes((double)t->stored, (double)t->tile_on, t->on));
    double held = device_blocks_held(m, (double)threads, REGISTERS, (double)shared);
    double cores = fmin(blocks, (double)m->units);
    double wait = m->unit_wait + DEVICE_MEET;
    return fmax(fmax(made / (double)m->unit_issue, moved / m->unit_rate) / cores,
                device_memory_cycles(m, cells * (bytes + (double)t->stored))) +
           ceil(blocks / (cores * held)) * wait;
}

double device_state_cycles(const Machine *m, const DeviceState *z, int64_t threads)
{
    double warps = ceil((double)threads / (double)m->warp) * (double)m->warp;
    double rounds = ceil((double)z->units / (double)threads), units = (double)z->units;
    double own = rounds * units * (double)z->sums * (double)(z->rows + 1);
    double loads = rounds * units / (double)limit_gpu_written(m) * m->unit_wait;
    double issued = own * warps / (double)m->unit_macs;
    double moved = units * units * (double)(z->sums * z->bytes) / m->unit_rate;

    return fmax(fmax(issued, moved), fmax(own, loads)) + 2 * DEVICE_MEET;
}
