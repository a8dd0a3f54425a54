/* What a kernel takes on a device and on the CPU that drives it, and what a copy between them does:
 * nanoseconds, of work that has no schedule yet. */
#include "machine/machine.h"

#include <math.h>

/* Steps of one thread, each of which waits for what it loads. */
static double one_by_one(double cells)
{
    return cells * fmax(1, log2(cells + 1));
}

double placed_cpu_ns(const Machine *m, const PlacedWork *w)
{
    double ns = w->macs / m->macs_ns + w->bytes / m->stream_ns;

    return w->one_thread ? ns + gather_cycles(m, one_by_one(w->cells)) / m->ghz : ns;
}

double placed_cpu_start_ns(const Machine *m)
{
    return m->start_cycles / m->ghz;
}

double placed_device_ns(const Machine *m, const PlacedWork *w)
{
    if (w->cells <= 0)
        return 0;
    if (w->one_thread)
        return device_alone_cycles(m, w->cells) / m->device_ghz;
    return device_cells_cycles(m, w->cells, w->macs / w->cells, w->bytes / w->cells) /
           m->device_ghz;
}

double placed_device_start_ns(const Machine *m)
{
    return (double)m->kernel_ns;
}

double placed_copy_ns(const Machine *m, double bytes, bool to_host)
{
    return (to_host ? 2 : 1) * (double)m->kernel_ns + bytes / m->transfer_ns;
}
