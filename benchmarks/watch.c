/* An instrument callback (abi.h) that keeps the least processor time of each step of a run:
 * shapes.py loads it, for a callback in Python would take longer than the steps. */
#include "tvmcc/abi.h"

#include <time.h>

enum { MOST_STEPS = 256 };

typedef struct {
    double begin, took[MOST_STEPS], least[MOST_STEPS]; /* seconds; least: 0, not run */
} Watch;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A step may begin several times in a run. */
int32_t watch(void *user, uint32_t event, uint32_t step, uint32_t part)
{
    Watch *w = user;

    if (part || step >= MOST_STEPS)
        return 0;
    if (event == TVMCC_EVENT_BEGIN)
        w->begin = now();
    else
        w->took[step] += now() - w->begin;
    return 0;
}

void watch_end_of_run(Watch *w)
{
    for (int i = 0; i < MOST_STEPS; i++) {
        if (w->took[i] > 0 && (!w->least[i] || w->took[i] < w->least[i]))
            w->least[i] = w->took[i];
        w->took[i] = 0;
    }
}
