/* What a kernel takes on a device and on the CPU that drives it, and what a copy between them does:
 * nanoseconds, of work that has no schedule yet. */
#include "machine/machine.h"

#include <math.h>

double placed_cpu_ns(const Machine *m, const PlacedWork *w)
{
    return w->macs / m->macs_ns + w->bytes / m->stream_ns;
}

double placed_cpu_start_ns(const Machine *m)
{
    return m->start_cycles / m->ghz;
}

double placed_device_ns(const Machine *m, const PlacedWork *w)
{
    if (w->cells <= 0)
        return 0;
    return device_cells_cycles(m, w->cells, w->macs / w->cells, w->bytes / w->cells) /
           m->device_ghz;
}

/* Nanoseconds of one thread: every step waits for what it loads. */
static double thread_ns(const Machine *m, const PlacedPart *p)
{
    double at_once = p->sums ? (double)limit_gpu_written(m) : 1;

    return p->steps * m->unit_wait / at_once / m->device_ghz;
}

double placed_part_ns(const Machine *m, const PlacedPart *p)
{
    return fmax(thread_ns(m, p), device_cells_cycles(m, p->threads, p->steps, 0) / m->device_ghz);
}

double placed_part_cpu_ns(const Machine *m, const PlacedPart *p)
{
    return gather_cycles(m, p->threads * p->steps) / m->ghz;
}

double placed_device_start_ns(const Machine *m)
{
    return (double)m->kernel_ns;
}

double placed_copy_ns(const Machine *m, double bytes, bool to_host)
{
    return (to_host ? 2 : 1) * (double)m->kernel_ns + bytes / m->transfer_ns;
}

bool placed_is_sequential(const Machine *m, const PlacedPart *p)
{
    double copies = placed_copy_ns(m, 0, true) + placed_copy_ns(m, 0, false);

    return p->threads < (double)(m->units * m->warp) && thread_ns(m, p) > copies;
}
