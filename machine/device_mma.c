/* What products cost on a GPU by instructions of warps, whose matrix unit works beside the loads
 * and copies (schedules/gpu/tensor.c). */
#include "ir/tir/intrin.h"
#include "machine/device.h"

#include <math.h>

/* Instructions that copy a number by registers; of a window, whose rows and columns are found for
 * each (machine code: 9 and 17 a number of ResNet-50's convolutions). */
enum { COPIED = 9, GATHERED = 17 };

/* Cells of a thread whose loads come before its stores, of sums alone and where something is added,
 * which memory brings (with 16 of residuals 8 KB are on their way to a core, which an H100 takes
 * 1,300 cycles for: 141 us where memory needs 70); bytes of a sum; banks of shared memory. */
enum { AT_ONCE = 16, ADDED = 32, SUM = 4, BANKS = 32 };

int64_t device_unit_rows(const DeviceTile *t)
{
    return warp_side(t->unit->warp, MATRIX_C, 0);
}

int64_t device_unit_columns(const DeviceTile *t)
{
    return warp_side(t->unit->warp, MATRIX_C, 1);
}

static int64_t lanes(const DeviceTile *t)
{
    return warp_threads(t->unit->warp);
}

/* Of an instruction of four warps: rows, the most columns, bytes of the sum that are begun at once;
 * cycles from the first until the last is known beside those of the unit, if it is waited for.
 * Copies stand beside it: a byte takes half as long again as the caches' shared memory stores one.
 * Measured (H100, 8192^3 of f16, cycles of a chunk at 1.76 GHz): 2,270 by tiles of 256x192, 1,661
 * by 128x256 and 256x128, 1,315 by 128x192, two chunks on their way; 450 to 520 more waited for. */
enum { GROUP = 64, GROUP_COLUMNS = 256, GROUP_STEPS = 128, GROUP_WAIT = 450 };
static const double beside = 1.5;

int64_t device_mma_warps(const DeviceTile *t)
{
    return t->bm / t->tm * (t->bn / t->tn);
}

bool device_mma_fits(const DeviceTile *t)
{
    return !t->group || (t->tn == t->bn && t->bn <= GROUP_COLUMNS &&
                         t->bm % (GROUP / device_unit_rows(t) * t->tm) == 0 &&
                         t->chunk * t->bytes == GROUP_STEPS);
}

int64_t device_mma_staged(const DeviceTile *t)
{
    enum { MOST = 4 }; /* numbers of an access (backends/common/wide.c) */
    int64_t cells = t->tm * t->tn / lanes(t);

    for (int64_t n = MOST; n > 1; n /= 2)
        if (t->run % n == 0 && cells % n == 0)
            return t->run ? n : 0;
    return t->run > 0;
}

int64_t device_mma_places(const DeviceTile *t)
{
    int64_t n = (t->added_bytes ? ADDED : AT_ONCE) / t->staged,
            rounds = t->tm * t->tn / lanes(t) / t->staged;

    while (rounds % n)
        n--;
    return n;
}

/* So that rows of neighbouring threads lie in different banks, but begin with an access of four. */
int64_t device_mma_apart(const DeviceTile *t)
{
    enum { QUAD = 4 };
    const WarpDigit *rows = t->unit->warp->of[MATRIX_C][0];
    int64_t          apart = device_unit_columns(t) / (rows[0].from == BY_Y ? rows[1].size : 1);

    return apart > QUAD ? apart : QUAD;
}

/* Sums in shared memory. */
static int64_t staged_bytes(const DeviceTile *t)
{
    int64_t apart = device_mma_apart(t);

    return t->staged ? t->bm * ((t->bn + BANKS - 1 - apart) / BANKS * BANKS + apart) * SUM : 0;
}

int64_t device_mma_pad(const DeviceTile *t)
{
    return t->unit->warp->opaque ? WARP_BYTES / t->bytes : 0;
}

/* Sums take the place of panels where parts of shared memory may overlap; by instructions of one
 * warp tiles are those for which there is room beside each other: larger ones leave a thread no
 * register (ptxas, sm_80: 192x64 by 128 threads spills). */
int64_t device_mma_bytes(const Machine *m, const DeviceTile *t)
{
    int64_t stages = t->stages > 1 ? t->stages : 1, sums = staged_bytes(t);
    int64_t panels = stages * (t->bm + t->bn) * (t->chunk + device_mma_pad(t)) * t->bytes;
    int64_t larger = panels > sums ? panels : sums;

    return m->overlaid && t->group && larger > limit_gpu_apart(m) ? larger : panels + sums;
}

/* What is copied by registers, ahead, is there with where it comes from.  On a side that is no
 * power of two each number comes from a place that the others' do not tell, and compilers begin all
 * copies of a chunk at once even where none is ahead. */
static int64_t copy_regs(const DeviceTile *t, int64_t side, int64_t threads)
{
    enum { COPIED_AHEAD = 2, COPIED_APART = 3 };
    int64_t numbers = (side * t->chunk + threads - 1) / threads;

    return side & (side - 1) ? COPIED_APART * numbers : t->stages > 1 ? COPIED_AHEAD * numbers : 0;
}

/* Registers of a warp for an operand's tile of so many rows, or columns. */
static int64_t part_regs(const DeviceTile *t, Matrix m, int64_t side)
{
    int64_t bytes = warp_pieces(t->unit->warp, m) * warp_piece_bytes(t->unit, m);

    return side / warp_side(t->unit->warp, m, 0) * bytes * lanes(t) / SUM;
}

/* Sums, and for the steps of an instruction what a warp multiplies, where that passes registers;
 * what is copied a number at a time.  Where sums take most of them, so does where each 16 bytes
 * come from (ptxas, sm_90a: 146 of 128x192, 168 of 128x256 by 256 threads). */
int64_t device_mma_regs(const Machine *m, const DeviceTile *t)
{
    enum { COPY = 2 };
    int64_t threads = m->warp * device_mma_warps(t);
    int64_t copies = t->wide > 1 ? (t->bm + t->bn) * t->chunk / (threads * t->wide) : 0;
    int64_t parts = t->group ? 0 : part_regs(t, MATRIX_A, t->tm) + part_regs(t, MATRIX_B, t->tn);

    return (t->tm * t->tn + parts) / m->warp + DEVICE_OTHER_REGS +
           (t->group  ? COPY * copies
            : t->held ? copies * WARP_BYTES / SUM
                      : 0) +
           (t->keeps_m ? copy_regs(t, t->bm, threads) : 0) +
           (t->keeps_n ? copy_regs(t, t->bn, threads) : 0);
}

/* Measured (H200, 316 launches of BERT, ResNet-50 and a product of 8192^3 with other decisions):
 * waits for memory are twice those for caches; a part of a sector costs three of what the caches
 * move; where a thread loads what is added to two cells at a time, half of a wait is hidden by the
 * next; a warp alone takes an instruction of its copies in 3/2 cycles. */
enum { PART = 3, NEXT = 2 };
static const double alone = 1.5;

/* What moves of each cell where threads store so many side by side: whole sectors, or parts. */
static double moved_bytes(double bytes, double together)
{
    return bytes * together < DEVICE_SECTOR ? PART * DEVICE_SECTOR / together : bytes;
}

/* From the sums to the result, for all blocks that a core holds: what moves; what passes shared
 * memory, twice; and a wait for each round of loads of what is added. */
static double store_part(const Machine *m, const DeviceTile *t, double held)
{
    double cells = (double)(t->bm * t->bn), own = (double)(t->tm * t->tn / lanes(t));
    double run = t->run ? (double)t->run : 1, together = fmin(run, (double)device_unit_columns(t));
    double shared = 0, waits = own / warp_own(t->unit->warp, MATRIX_C, 1) * m->unit_wait / NEXT;

    if (t->staged) {
        together = fmin(run, (double)t->bn);
        waits = own / (double)(t->staged * device_mma_places(t)) * DEVICE_MEMORY * m->unit_wait;
        shared = 2 * cells * SUM / m->shared_rate + DEVICE_MEET;
    }
    double moved = cells * moved_bytes((double)t->result_bytes, together);
    if (t->added_bytes)
        moved += cells * moved_bytes((double)t->added_bytes, together);
    return fmax(held * (moved / m->unit_rate + shared), t->added_bytes ? waits : 0);
}

/* Products of two chunks are on their way (passes/tir/software_pipeline.c). */
static bool goes_on(const Machine *m, const DeviceTile *t)
{
    return t->group && !t->keeps_m && !t->keeps_n && !t->held &&
           t->stages >= limit_gpu_stages_apart(m);
}

/* From one chunk to the next.  What passes registers is on its way while one chunk is multiplied,
 * however many stages there are. */
static double chunk_cycles(const Machine *m, const DeviceTile *t, double all, double own)
{
    const bool go_on = goes_on(m, t);
    double     wait = DEVICE_MEMORY * m->unit_wait;

    if (t->group && !go_on)
        own += GROUP_WAIT;
    if (t->stages < 2)
        return device_chunk_cycles(false, wait, all, own);
    wait /= t->keeps_m || t->keeps_n || t->held ? 1 : (double)(t->stages - (go_on ? 2 : 1));
    return device_chunk_cycles(true, wait, all, own) + wait / DEVICE_AMONG_EQUALS;
}

double device_mma_cycles(const Machine *m, const DeviceTile *t)
{
    double bytes = (double)t->bytes, warps = (double)device_mma_warps(t);
    double threads = warps * (double)m->warp, numbers = (double)(t->bm + t->bn);
    double blocks =
        (double)t->batch * ceil((double)t->m / (double)t->bm) * ceil((double)t->n / (double)t->bn);
    double here = ceil(blocks / (double)m->units);
    double held = fmin(device_blocks_held(m, threads, (double)device_mma_regs(m, t),
                                          (double)device_mma_bytes(m, t)),
                       here);

    /* Of one step of the sum: the matrix unit, which is quicker with smaller numbers; what warps
     * load of shared memory; the copies; the panels on their way to the core. */
    double macs = (double)(t->group ? m->group_macs : m->tensor_macs);
    double unit = (double)(t->bm * t->bn) * bytes / 2 / macs;
    double read = t->group ? (double)(t->bm / GROUP) * (double)(GROUP + t->tn)
                           : warps * (double)(t->tm + t->tn);
    double shared = (read + numbers) * bytes / m->shared_rate;
    double number = t->window ? GATHERED : COPIED, wide = DEVICE_COPY / (double)t->wide;
    double copies =
        (double)t->bm * (t->keeps_m ? number : wide) + (double)t->bn * (t->keeps_n ? number : wide);
    double step =
        fmax(fmax(unit, shared), fmax(copies / m->unit_macs, numbers * bytes / m->unit_rate));
    if (t->group)
        step = fmax(step, unit + beside * numbers * bytes / m->shared_rate);
    step += shared / DEVICE_AMONG_EQUALS;

    /* Each scheduler of a core has a part of the matrix unit, which a block with fewer warps than
     * there are of these leaves idle. */
    double own = fmax(step, unit * fmax(1, (double)(m->unit_issue / m->warp) / warps));
    double loads = (double)(t->tm + t->tn) / (double)device_unit_rows(t);
    double products =
        (double)(t->tm * t->tn) / (double)(device_unit_rows(t) * device_unit_columns(t));
    double taken = t->group ? 0 : products + loads;
    own = fmax(own, alone * (copies / threads + taken / (double)t->unit->extent[2]));
    double chunk = chunk_cycles(m, t, held * step * (double)t->chunk, own * (double)t->chunk);
    double chunks = ceil((double)t->k / (double)t->chunk);
    return ceil(here / held) *
           (chunks * chunk + DEVICE_MEMORY * m->unit_wait + store_part(m, t, held));
}
