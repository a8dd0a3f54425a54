/* One line on a terminal while something takes long.
 *
 *     [ 3/54] codegen  1.2 s
 *
 * The line is rewritten in place at most ten times a second and wiped at the end, so that messages
 * and products stand alone.  Anywhere but on a terminal nothing is printed. */
#include "driver/driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct Progress {
    bool   on, shown;
    double start, last; /* seconds */
};

static double seconds_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

Progress *progress_new(Arena *a)
{
    Progress   *p = NEW(a, Progress);
    const char *term = getenv("TERM");

    p->on = isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
    p->start = seconds_now();
    p->last = p->start;
    return p;
}

void progress_step(Progress *p, const char *step, uint32_t done, uint32_t total)
{
    double now;

    if (!p->on)
        return;
    now = seconds_now();
    if (now - p->last < 0.1) /* what is quick is not announced */
        return;
    p->last = now;
    p->shown = true;
    fprintf(stderr, "\r\033[K");
    if (total)
        fprintf(stderr, "[%*u/%u] ", total < 10 ? 1 : total < 100 ? 2 : 3, done, total);
    fprintf(stderr, "%.60s  %.1f s", step, now - p->start);
    fflush(stderr);
}

void progress_end(Progress *p)
{
    if (p->shown)
        fprintf(stderr, "\r\033[K");
    p->shown = false;
}

void say(Driver *driver, const char *fmt, ...)
{
    va_list ap;

    progress_end(driver->progress);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
}
