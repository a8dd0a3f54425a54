/* What attention costs on a GPU as one launch, in which a block of threads has some rows of queries
 * and takes the keys by chunks (schedules/gpu/attention.c), and which division is the best. */
#include "ir/tir/intrin.h"
#include "machine/device.h"

#include <math.h>

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
    int64_t results =
        a->n > a->chunk && !a->open.n ? width : 2 * width; /* of one round, or before and after */
    int64_t cells = (a->chunk + results + OF_ROW) * a->rows;
    int64_t copied = row_across(a->rows, quad) + row_across(a->chunk, quad) + width;

    return (double)((cells + a->part * copied) * a->bytes);
}

typedef double AttentionCycles(const Machine *m, const DeviceAttention *a);

typedef struct {
    const Machine         *m;
    const DeviceAttention *a;
    AttentionCycles       *cycles;
} OpenAttention;

static double part_of_attention(const void *user, int64_t part)
{
    const OpenAttention *o = user;
    DeviceAttention      at = *o->a;

    at.heads = device_part(at.heads, at.open.heads, part);
    at.m = device_part(at.m, at.open.m, part);
    at.m = at.m < at.rows ? at.rows : at.m; /* a block computes all of its rows */
    at.n = device_part(at.n, at.open.n, part);
    return o->cycles(o->m, &at);
}

static double open_cycles(const Machine *m, const DeviceAttention *a, AttentionCycles *cycles)
{
    int64_t most = a->open.m > a->open.n ? a->open.m : a->open.n;

    if (most < a->open.heads)
        most = a->open.heads;
    return most && a->rows <= a->m
               ? device_mean_cycles(most, part_of_attention, &(OpenAttention){m, a, cycles})
               : cycles(m, a);
}

static double thread_cycles(const Machine *m, const DeviceAttention *a)
{
    enum { SOFTMAX = 18, UPDATE = 4, MEETINGS = 8, ROW_STEP = 8, LATENCY = 4 };
    if (a->rows < a->tm || a->rows > a->m || a->chunk < a->tn || a->chunk % a->tn ||
        a->part > a->chunk)
        return NAN;
    int64_t threads = a->rows / a->tm * (a->chunk / a->tn), te = device_attention_columns(m, a);
    int64_t words = a->bytes > 4 ? a->bytes / 4 : 1, most = a->tn > te ? a->tn : te;
    int64_t regs = (a->tm * most + a->tm + most) * words + DEVICE_OTHER_REGS;
    double  bytes = attention_bytes(m, a), quad = (double)device_quad(m, a->bytes);

    if (a->chunk / a->tn < a->tm || threads > limit_gpu_tile_threads(m) ||
        threads < limit_gpu_least_threads(m) || regs > m->regs ||
        (m->shared_bytes && bytes > (double)m->shared_bytes))
        return NAN;
    double rows = (double)a->rows, chunk = (double)a->chunk, tm = (double)a->tm;
    double width = (double)device_attention_width(m, a), part = (double)a->part;
    double of_k = fmin(part, (double)a->k), k = ceil((double)a->k / of_k) * of_k;
    double here = ceil((double)a->heads * ceil((double)a->m / rows) / (double)m->units);
    double held = fmin(device_blocks_held(m, (double)threads, (double)regs, bytes), here);

    double score = 1 + (ceil(tm / quad) + ceil((double)a->tn / quad)) / (tm * (double)a->tn);
    double sums = 1 + (ceil(tm / quad) + ceil((double)te / quad)) / (tm * (double)te);
    double moved = k * (rows + chunk) + chunk * (double)a->e;
    double issued = rows * chunk * (k * score + width * sums + SOFTMAX) + DEVICE_COPY * moved +
                    rows * width * UPDATE;
    double loads = rows * chunk * (k * (score - 1) + width * (sums - 1));
    double shared = loads * DEVICE_ROWS_APART * (double)a->bytes / m->shared_rate;
    double work =
        fmax(fmax(issued / (double)m->unit_macs, shared), moved * (double)a->bytes / m->unit_rate);
    double waits = (ceil(k / of_k) + ceil(chunk / part)) * (m->unit_wait + 2 * DEVICE_MEET) +
                   MEETINGS * DEVICE_MEET + 2 * chunk * ROW_STEP;
    /* A thread takes its products one by one, and what the softmax has of each score in a chain. */
    double own =
        rows / (double)threads * (chunk * (k * score + SOFTMAX * LATENCY) + chunk * width * sums);
    double rounds = ceil((double)a->n / chunk);
    return ceil(here / held) * (rounds * fmax(held * work, waits + fmax(work, own)) + m->unit_wait);
}

double device_attention_cycles(const Machine *m, const DeviceAttention *a)
{
    return open_cycles(m, a, thread_cycles);
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

/* ---- by instructions of warps ---------------------------------------------------------------------- */

enum { HALF = 2, ACROSS = 8 }; /* bytes of an operand; registers of a row's part of a warp */

/* Measured (H100, H200, 12 heads of 128x64 in f16): 3.6 and 3.7 times the cycles counted below, of
 * 1 and 64 texts, where those of threads are 1.9 and 2.4 times the count above. */
static const double beyond_count = 1.7;

/* Columns of the results, in whole instructions. */
static int64_t result_columns(const DeviceAttention *a)
{
    int64_t columns = a->unit->extent[1];

    return (a->e + columns - 1) / columns * columns;
}

/* Queries, a chunk of keys and of values, and exponentials as they are multiplied; scores and
 * results; numbers of rows, and what threads along x found of one: the largest score, and the sum.
 */
static double warp_bytes(const Machine *m, const DeviceAttention *a)
{
    enum { OF_ROW = 6, PIECE = 8, ASIDE = 4, FOUND_ASIDE = 8 };
    int64_t columns = result_columns(a),
            results = a->n > a->chunk && !a->open.n ? columns : 2 * columns;
    int64_t row = row_across(a->rows, ASIDE);
    int64_t found = (m->overlaid ? 1 : 2) * a->unit->warp->x * row_across(a->rows, FOUND_ASIDE);
    int64_t halves = (a->rows + a->chunk) * (a->k + PIECE) + (a->rows + columns) * a->chunk;

    return (double)(HALF * halves +
                    a->bytes * (row * (a->chunk + results) + a->rows * OF_ROW + found));
}

static double warp_cycles(const Machine *m, const DeviceAttention *a)
{
    enum { SOFTMAX = 18, UPDATE = 4, MEETINGS = 8, ROW_STEP = 8, TURNED = 9, WIDE = 8 };
    enum { NUMBERS = 5, PASSES = 2 };
    int64_t columns = result_columns(a), most = a->chunk > columns ? a->chunk : columns;
    int64_t threads = a->tm ? a->rows / a->tm * m->warp : 0;
    int64_t regs = (a->tm * most + (a->tm + most) * ACROSS) / m->warp + DEVICE_OTHER_REGS;
    double  bytes = warp_bytes(m, a);

    if (!threads || a->rows % a->tm || threads > limit_gpu_tile_threads(m) || a->rows > a->m ||
        regs > limit_gpu_tensor_regs(m) || threads * regs > m->unit_regs ||
        bytes > (double)m->shared_bytes)
        return NAN;
    double rows = (double)a->rows, chunk = (double)a->chunk, k = (double)a->k;
    double e = (double)columns, warps = rows / (double)a->tm, cells = rows * chunk;
    double here = ceil((double)a->heads * ceil((double)a->m / rows) / (double)m->units);
    double held = fmin(device_blocks_held(m, (double)threads, (double)regs, bytes), here);

    /* Of a chunk: the matrix unit; what warps load of both sides of both products, numbers of the
     * softmax and results in shared memory; instructions, of values a number at a time. */
    double unit = cells * (k + e) / (double)m->tensor_macs;
    double sides = warps * HALF * ((double)(a->tm + a->chunk) * k + ((double)a->tm + e) * chunk);
    double numbers = (NUMBERS * cells + PASSES * rows * e) * (double)a->bytes;
    double moved = chunk * (k + (double)a->e) * HALF;
    double shared = (sides + numbers + moved) / m->shared_rate;
    double issued = cells * SOFTMAX + chunk * (double)a->e * TURNED +
                    chunk * k * DEVICE_COPY / WIDE + rows * e * UPDATE;
    double work =
        fmax(fmax(unit, shared), fmax(issued / (double)m->unit_macs, moved / m->unit_rate));
    /* A thread takes its scores of a row one by one, for the maximum and for the sum. */
    double waits =
        2 * m->unit_wait + MEETINGS * DEVICE_MEET + 2 * (double)a->tm * chunk / m->warp * ROW_STEP;
    double own =
        fmax(unit * fmax(1, (double)(m->unit_issue / m->warp) / warps), issued / (double)threads);
    double rounds = ceil((double)a->n / chunk), start = rows * k * HALF / m->unit_rate;
    return beyond_count * ceil(here / held) *
           (rounds * fmax(held * work, waits + fmax(work, own)) + held * start + 2 * m->unit_wait);
}

double device_attention_warp_cycles(const Machine *m, const DeviceAttention *a)
{
    return open_cycles(m, a, warp_cycles);
}

DeviceAttention device_attention_warp_best(const Machine *m, DeviceAttention a)
{
    DeviceAttention best = a;
    double          least = INFINITY;

    best.rows = 0;
    for (a.tm = a.unit->extent[0]; a.tm <= limit_gpu_tensor_side(m); a.tm *= 2)
        for (a.rows = a.tm; a.rows <= limit_gpu_tensor_side(m); a.rows *= 2) {
            double cycles = device_attention_warp_cycles(m, &a);
            if (cycles < least)
                least = cycles, best = a;
        }
    return best;
}
