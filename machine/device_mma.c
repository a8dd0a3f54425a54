/* What products cost on a GPU by instructions of warps, whose matrix unit works beside the loads
 * and copies (schedules/gpu/tensor.c). */
#include "machine/device.h"

#include <math.h>

/* Of tiles that keep the matrix unit busy, that which loads least of shared memory: such a part of
 * those loads counts as if they waited for the unit. */
enum { AMONG_EQUALS = 64 };

int64_t device_mma_warps(const DeviceTile *t)
{
    return t->bm / t->tm * (t->bn / t->tn);
}

int64_t device_mma_bytes(const DeviceTile *t)
{
    int64_t stages = t->stages > 1 ? t->stages : 1;

    return stages * (t->bm + t->bn) * t->chunk * t->bytes;
}

/* Sums, and for the steps of an instruction, 32 bytes, what a warp multiplies; what is copied ahead
 * a number at a time, and where each comes from. */
int64_t device_mma_regs(const Machine *m, const DeviceTile *t)
{
    return (t->tm * t->tn + (t->tm + t->tn) * 8) / m->warp + DEVICE_OTHER_REGS +
           2 * device_kept(t, m->warp * device_mma_warps(t));
}

double device_mma_cycles(const Machine *m, const DeviceTile *t)
{
    double bytes = (double)t->bytes, warps = (double)device_mma_warps(t);
    double threads = warps * (double)m->warp, numbers = (double)(t->bm + t->bn);
    double blocks =
        (double)t->batch * ceil((double)t->m / (double)t->bm) * ceil((double)t->n / (double)t->bn);
    double here = ceil(blocks / (double)m->units);
    double held = fmin(
        device_blocks_held(m, threads, (double)device_mma_regs(m, t), (double)device_mma_bytes(t)),
        here);

    /* Of one step of the sum: the matrix unit, which is quicker with smaller numbers; what warps
     * load of shared memory; the copies; the panels on their way to the core. */
    double unit = (double)(t->bm * t->bn) * bytes / 2 / (double)m->tensor_macs;
    double shared = (warps * (double)(t->tm + t->tn) * bytes + numbers * bytes) / m->shared_rate;
    double wide = (double)t->wide;
    double copies =
        DEVICE_COPY *
        ((double)t->bm / (t->keeps_m ? 1 : wide) + (double)t->bn / (t->keeps_n ? 1 : wide)) /
        (double)m->unit_macs;
    double step = fmax(fmax(unit, shared), fmax(copies, numbers * bytes / m->unit_rate));
    step += shared / AMONG_EQUALS;

    /* Each scheduler of a core has a part of the matrix unit, which a block with fewer warps than
     * there are of these leaves idle. */
    double own = fmax(step, unit * fmax(1, (double)(m->unit_issue / m->warp) / warps));
    double chunk =
        device_chunk_cycles(m, t, 1, held * step * (double)t->chunk, own * (double)t->chunk);
    double chunks = ceil((double)t->k / (double)t->chunk);
    double stores = here * (double)(t->bm * t->bn) * 4 / m->unit_rate;
    return ceil(here / held) * (chunks * chunk + m->unit_wait) + stores;
}
