/* libtiny.so: how long a call of a compiled function takes, for tiny.py, whose own calls cost more
 * than what they would measure. */
#include <stdint.h>
#include <time.h>

typedef int32_t Call(const void *in, void *out, const void *params);

static double now(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Microseconds of a call: the least of batches of some tens of microseconds that begin within so
 * many seconds.  `processor`: what the process took, not what went by. */
double tiny_time(Call *call, const void *in, void *out, const void *params, double seconds,
                 int32_t processor)
{
    enum { BATCH_US = 40 };
    clockid_t clock = processor ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
    double    least = 1e9, end = now(CLOCK_MONOTONIC) + seconds;
    int64_t   n = 1;

    while (now(CLOCK_MONOTONIC) < end) {
        double start = now(clock), took;

        for (int64_t i = 0; i < n; i++)
            if (call(in, out, params))
                return -1;
        took = (now(clock) - start) * 1e6;
        if (took < BATCH_US / 2) {
            n *= 2;
            continue;
        }
        least = took / (double)n < least ? took / (double)n : least;
    }
    return least;
}
