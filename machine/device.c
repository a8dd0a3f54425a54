/* What kernels cost on a GPU: which of a core's units is busy longest, what threads wait for, and
 * how evenly the blocks lie on the cores. */
#include "machine/machine.h"

#include <math.h>

/* Addresses, counters and what was just loaded; cycles of a barrier; instructions of a multiply-add
 * that loads what it reads. */
enum { OTHER_REGS = 20, MEET = 30, MADE = 3 };

int64_t device_quad(const Machine *m, int64_t bytes)
{
    return bytes < m->load_bytes ? m->load_bytes / bytes : 1;
}

int64_t device_tile_regs(const DeviceTile *t)
{
    int64_t words = t->bytes > 4 ? t->bytes / 4 : 1;

    return (t->tm * t->tn + t->tm + t->tn) * words + OTHER_REGS;
}

/* Rows are a quad longer where they are stored across. */
int64_t device_tile_bytes(const Machine *m, const DeviceTile *t)
{
    return t->chunk * (t->bm + t->bn + 2 * device_quad(m, t->bytes)) * t->bytes;
}

/* Blocks that a core holds at a time. */
static double blocks_held(const Machine *m, const DeviceTile *t, double threads)
{
    double held = (double)m->unit_regs / (threads * (double)device_tile_regs(t));

    held = fmin(held, (double)m->unit_threads / threads);
    held = fmin(held, 2 * (double)m->shared_bytes / (double)device_tile_bytes(m, t));
    return held < 1 ? 1 : floor(held);
}

double device_tile_cycles(const Machine *m, const DeviceTile *t)
{
    enum { ROWS_APART = 2, COPY = 4 };
    double quad = (double)device_quad(m, t->bytes), bytes = (double)t->bytes;
    double threads = (double)(t->bm / t->tm) * (double)(t->bn / t->tn);
    double warps = ceil(threads / (double)m->warp), lanes = warps * (double)m->warp;
    double blocks =
        (double)t->batch * ceil((double)t->m / (double)t->bm) * ceil((double)t->n / (double)t->bn);
    double here = ceil(blocks / (double)m->units); /* on the core that has most of them */
    double held = fmin(blocks_held(m, t, lanes), here);

    /* Of one step of the sum: the products and the copies of both panels; what a thread loads of
     * them, a quad at a time; the panels on their way to the core. */
    double numbers = (double)(t->bm + t->bn);
    double loads = ceil((double)t->tm / quad) + ceil((double)t->tn / quad);
    double issued = lanes * ((double)(t->tm * t->tn) + loads + t->tested) + COPY * numbers +
                    (double)(t->bm * t->made) * MADE;
    double shared = warps * loads * ROWS_APART * (double)m->warp * bytes / m->shared_rate;
    double step = fmax(fmax(issued / (double)m->unit_macs, shared), numbers * bytes / m->unit_rate);

    /* Blocks side by side hide what each waits for before a chunk, and that a thread takes one
     * instruction after the other. */
    double own = fmax(step, (double)(t->tm * t->tn) + loads + COPY * numbers / threads);
    double chunk = fmax(held * step * (double)t->chunk, m->unit_wait + own * (double)t->chunk);
    double chunks = ceil((double)t->k / (double)t->chunk);
    chunk += 2 * MEET;
    double stores = here * (double)(t->bm * t->bn) * bytes / m->unit_rate;
    return ceil(here / held) * (chunks * chunk + m->unit_wait) + stores;
}

/* Columns that a thread loads at a time. */
static int64_t columns_at_once(const Machine *m, const DeviceAttention *a)
{
    int64_t quad = device_quad(m, a->bytes), across = a->chunk / a->tn;
    int64_t each = (a->e + across - 1) / across;

    return each < quad ? each : quad;
}

int64_t device_attention_columns(const Machine *m, const DeviceAttention *a)
{
    int64_t once = columns_at_once(m, a), across = a->chunk / a->tn * once;

    return (a->e + across - 1) / across * once;
}

int64_t device_attention_width(const Machine *m, const DeviceAttention *a)
{
    return device_attention_columns(m, a) * (a->chunk / a->tn);
}

/* Cells of a row that is stored across, whose neighbours lie a quad of banks further on. */
static int64_t row_across(int64_t cells, int64_t quad)
{
    enum { BANKS = 32 };

    return (cells - quad + BANKS - 1) / BANKS * BANKS + quad;
}

/* Scores, results and numbers of rows, and what is copied of queries, keys and values. */
static double attention_bytes(const Machine *m, const DeviceAttention *a)
{
    enum { OF_ROW = 8 };
    int64_t width = device_attention_width(m, a), quad = device_quad(m, a->bytes);
    int64_t results = a->n > a->chunk ? width : 2 * width; /* of one round, or before and after */
    int64_t cells = (a->chunk + results + OF_ROW) * a->rows;
    int64_t copied = row_across(a->rows, quad) + row_across(a->chunk, quad) + width;

    return (double)((cells + a->part * copied) * a->bytes);
}

double device_attention_cycles(const Machine *m, const DeviceAttention *a)
{
    enum {
        ROWS_APART = 2,
        COPY = 4,
        SOFTMAX = 18,
        UPDATE = 4,
        MEETINGS = 8,
        ROW_STEP = 8,
        LATENCY = 4
    };
    if (a->rows < a->tm || a->rows > a->m || a->chunk < a->tn || a->chunk % a->tn ||
        a->part > a->chunk)
        return NAN;
    int64_t threads = a->rows / a->tm * (a->chunk / a->tn), te = device_attention_columns(m, a);
    int64_t words = a->bytes > 4 ? a->bytes / 4 : 1, most = a->tn > te ? a->tn : te;
    int64_t regs = (a->tm * most + a->tm + most) * words + OTHER_REGS;
    double  bytes = attention_bytes(m, a), quad = (double)device_quad(m, a->bytes);

    if (a->chunk / a->tn < a->tm || threads > limit_gpu_tile_threads(m) ||
        threads < limit_gpu_least_threads(m) || regs > m->regs ||
        (m->shared_bytes && bytes > (double)m->shared_bytes))
        return NAN;
    double rows = (double)a->rows, chunk = (double)a->chunk, tm = (double)a->tm;
    double width = (double)device_attention_width(m, a), part = (double)a->part;
    double of_k = fmin(part, (double)a->k), k = ceil((double)a->k / of_k) * of_k;
    double here = ceil((double)a->heads * ceil((double)a->m / rows) / (double)m->units);
    double held = fmin((double)m->unit_regs / (double)(threads * regs),
                       (double)m->unit_threads / (double)threads);
    held = fmin(fmin(held, 2 * (double)m->shared_bytes / bytes), here);
    held = held < 1 ? 1 : floor(held);

    double score = 1 + (ceil(tm / quad) + ceil((double)a->tn / quad)) / (tm * (double)a->tn);
    double sums = 1 + (ceil(tm / quad) + ceil((double)te / quad)) / (tm * (double)te);
    double moved = k * (rows + chunk) + chunk * (double)a->e;
    double issued =
        rows * chunk * (k * score + width * sums + SOFTMAX) + COPY * moved + rows * width * UPDATE;
    double loads = rows * chunk * (k * (score - 1) + width * (sums - 1));
    double shared = loads * ROWS_APART * (double)a->bytes / m->shared_rate;
    double work =
        fmax(fmax(issued / (double)m->unit_macs, shared), moved * (double)a->bytes / m->unit_rate);
    double waits = (ceil(k / of_k) + ceil(chunk / part)) * (m->unit_wait + 2 * MEET) +
                   MEETINGS * MEET + 2 * chunk * ROW_STEP;
    /* A thread takes its products one by one, and what the softmax has of each score in a chain. */
    double own =
        rows / (double)threads * (chunk * (k * score + SOFTMAX * LATENCY) + chunk * width * sums);
    double rounds = ceil((double)a->n / chunk);
    return ceil(here / held) * (rounds * fmax(held * work, waits + fmax(work, own)) + m->unit_wait);
}

DeviceAttention device_attention_best(const Machine *m, DeviceAttention a)
{
    enum { LEAST = 16, MOST = 128, LEAST_ROWS = 8 };
    DeviceAttention best = a;
    double          least = INFINITY;
    int64_t         from = a.chunk ? a.chunk : LEAST, to = a.chunk ? a.chunk : MOST;

    best.rows = 0;
    for (a.chunk = from; a.chunk <= to; a.chunk *= 2)
        for (a.rows = LEAST_ROWS; a.rows <= MOST; a.rows *= 2)
            for (a.tm = 4; a.tm <= limit_gpu_cells(m); a.tm *= 2)
                for (a.tn = 4; a.tn <= limit_gpu_cells(m); a.tn *= 2)
                    for (a.part = limit_gpu_least_chunk(m); a.part <= limit_gpu_chunk(m);
                         a.part *= 2) {
                        double cycles = device_attention_cycles(m, &a);
                        if (cycles < least)
                            least = cycles, best = a;
                    }
    return best;
}

/* ---- by instructions of warps -------------------------------------------------------------------- */

/* Rows of both panels are 16 bytes longer. */
int64_t device_mma_bytes(const DeviceTile *t)
{
    return (t->bm + t->bn) * (t->chunk * t->bytes + 16);
}

/* Sums, and for the steps of an instruction, 32 bytes, what a warp multiplies. */
int64_t device_mma_regs(const Machine *m, const DeviceTile *t)
{
    return (t->tm * t->bn + (t->tm + t->bn) * 8) / m->warp + OTHER_REGS;
}

double device_mma_cycles(const Machine *m, const DeviceTile *t)
{
    enum { COPY = 4 };
    double bytes = (double)t->bytes, warps = (double)(t->bm / t->tm);
    double threads = warps * (double)m->warp, numbers = (double)(t->bm + t->bn);
    double blocks =
        (double)t->batch * ceil((double)t->m / (double)t->bm) * ceil((double)t->n / (double)t->bn);
    double here = ceil(blocks / (double)m->units), held;

    held = fmin((double)m->unit_regs / (threads * (double)device_mma_regs(m, t)),
                fmin((double)m->unit_threads / threads,
                     2 * (double)m->shared_bytes / (double)device_mma_bytes(t)));
    held = fmin(fmax(1, floor(held)), here);

    /* Of one step of the sum: the matrix unit, which is quicker with smaller numbers; what warps
     * load of shared memory; the copies; the panels on their way to the core. */
    double unit = (double)(t->bm * t->bn) * bytes / 2 / (double)m->tensor_macs;
    double shared = (warps * (double)(t->tm + t->bn) + numbers) * bytes / m->shared_rate;
    double copies = COPY * numbers / (double)(t->wide > 1 ? t->wide : 1) / (double)m->unit_macs;
    double step = fmax(fmax(unit, shared), fmax(copies, numbers * bytes / m->unit_rate));

    double chunk = fmax(held * step * (double)t->chunk, m->unit_wait + step * (double)t->chunk);
    double chunks = ceil((double)t->k / (double)t->chunk);
    double stores = here * (double)(t->bm * t->bn) * 4 / m->unit_rate;
    return ceil(here / held) * (chunks * (chunk + 2 * MEET) + m->unit_wait) + stores;
}

double device_cells_cycles(const Machine *m, double cells, double macs, double bytes)
{
    double issued = cells * macs * MADE / (double)m->unit_macs,
           moved = 2 * cells * bytes / m->unit_rate;

    return fmax(issued, moved) / (double)m->units + m->unit_wait;
}

double device_launch_cycles(const Machine *m)
{
    return (double)m->kernel_ns * m->device_ghz;
}

double device_rows_cycles(const Machine *m, const DeviceRows *r, int64_t threads)
{
    enum { INSTRUCTIONS = 6, STEP = 8, LINE = 4 };
    double block = (double)(threads > 1 ? threads : limit_gpu_threads(m)),
           own = block / (double)threads;
    double blocks = ceil((double)r->rows / own), cores = fmin(blocks, (double)m->units);
    double held = fmax(1, floor((double)m->unit_threads / block));
    double waves = ceil(blocks / (cores * held)), cells = (double)r->rows * (double)r->cells;

    /* Threads that have a row each use a few bytes of every line that they load. */
    double apart = threads == 1 && r->along ? LINE : 1;
    double issued = cells * INSTRUCTIONS / (double)m->unit_macs / cores;
    double moved = cells * (double)r->bytes * apart / m->unit_rate / cores;

    /* Partial sums of a quarter of the threads are added up by some, then by all of them. */
    double parts = threads > 1 ? 2 * sqrt((double)threads) * STEP + 3 * MEET : 0;
    double chain = ceil((double)r->cells / (double)threads) * STEP + m->unit_wait + parts;
    return (double)r->stages * fmax(fmax(issued, moved), waves * chain);
}
