/* One line on a terminal while something takes long.
 *
 *     [6/7] code 31/57  1.2 s  24.8/s  conv2d_bias_add_relu.7cd1ffd9
 *
 * A thread rewrites the line in place five times a second, so that it moves during long steps too;
 * what is quick is not announced.  The line is wiped at the end, so that messages and products
 * stand alone.  Anywhere but on a terminal nothing is printed and no thread is started. */
#include "driver/driver.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

struct Progress {
    bool            on, running, stop;
    double          start; /* seconds */
    const char     *step;
    uint32_t        done, total;
    const char     *what;         /* of the step: what was done last */
    uint32_t        part, of;     /* ... and how much of it; of 0: not counted */
    uint32_t        part_from;    /* where the count began, for the rate */
    double          counted_from; /* ... and when */
    pthread_t       thread;
    pthread_mutex_t lock; /* of what stands above */
    pthread_cond_t  wake;
};

static double seconds_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

enum { LINE = 256 };

/* Columns that a line may take without being broken. */
static size_t columns(void)
{
    struct winsize w;
    size_t         n = ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col ? w.ws_col : 80;

    return n - 1 < LINE - 1 ? n - 1 : LINE - 1;
}

/* What matters comes first: the end is cut. */
static void show_line(const Progress *p)
{
    static const char dots[] = "...";
    char              line[LINE];
    double            now = seconds_now(), took = now - p->counted_from;
    size_t            width = columns();
    int               n = 0;

#define ADD(...) n += snprintf(line + n, n < LINE ? (size_t)(LINE - n) : 0, __VA_ARGS__)
    if (p->total)
        ADD("[%u/%u] ", p->done, p->total);
    ADD("%s", p->step);
    if (p->of)
        ADD(" %u/%u", p->part, p->of);
    ADD("  %.1f s", now - p->start);
    if (p->part > p->part_from && took > 0)
        ADD("  %.1f/s", (p->part - p->part_from) / took);
    if (p->what)
        ADD("  %s", p->what);
#undef ADD
    if ((size_t)n > width) {
        if (width > 2 * sizeof dots)
            memcpy(line + width - (sizeof dots - 1), dots, sizeof dots - 1);
        line[width] = '\0';
    }
    fprintf(stderr, "\r\033[K%s", line);
    fflush(stderr);
}

static void *rewrite(void *self)
{
    Progress *p = self;
    bool      shown = false;

    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        struct timespec until;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 200000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        while (!p->stop && pthread_cond_timedwait(&p->wake, &p->lock, &until) == 0)
            continue;
        if (!p->stop) {
            show_line(p);
            shown = true;
        }
    }
    if (shown)
        fprintf(stderr, "\r\033[K");
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

bool stderr_is_terminal(void)
{
    const char *term = getenv("TERM");

    return isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

bool color_wanted(ColorMode mode)
{
    const char *no = getenv("NO_COLOR"), *force = getenv("CLICOLOR_FORCE");

    if (mode != COLOR_AUTO)
        return mode == COLOR_ALWAYS;
    if (no && *no)
        return false;
    return (force && *force && strcmp(force, "0") != 0) || stderr_is_terminal();
}

Progress *progress_new(Arena *a)
{
    Progress *p = NEW(a, Progress);

    p->on = stderr_is_terminal();
    p->start = seconds_now();
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    return p;
}

/* Signals are for the thread that compiles. */
static void start_thread(Progress *p)
{
    sigset_t all, old;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    p->stop = false;
    p->running = pthread_create(&p->thread, NULL, rewrite, p) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void progress_step(Progress *p, const char *step, uint32_t done, uint32_t total)
{
    if (!p->on)
        return;
    pthread_mutex_lock(&p->lock);
    p->step = step;
    p->done = done;
    p->total = total;
    p->what = NULL;
    p->part = p->of = 0;
    pthread_mutex_unlock(&p->lock);
    if (!p->running)
        start_thread(p);
}

void progress_count(Progress *p, uint32_t done, uint32_t total, const char *what)
{
    if (!p->on)
        return;
    pthread_mutex_lock(&p->lock);
    if (!p->of) {
        p->counted_from = seconds_now();
        p->part_from = done;
    }
    if (done >= p->part) { /* two threads may come in another order */
        p->part = done;
        p->what = what;
    }
    p->of = total;
    pthread_mutex_unlock(&p->lock);
}

void progress_end(Progress *p)
{
    if (!p->running)
        return;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    p->running = false;
}

void say(Driver *driver, const char *fmt, ...)
{
    va_list ap;

    progress_end(driver->progress);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
}

void say_table(Driver *driver, const Columns *table)
{
    StrBuf s = strbuf(driver->arena);

    columns_print(table, 0, &s);
    if (s.n)
        say(driver, "%s", s.at);
}
