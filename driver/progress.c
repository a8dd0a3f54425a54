/* One line on a terminal while something takes long.
 *
 *     [3/7] kernels  1.2 s
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
#include <time.h>
#include <unistd.h>

struct Progress {
    bool            on, running, stop;
    double          start; /* seconds */
    const char     *step;
    uint32_t        done, total;
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

static void show_line(const Progress *p)
{
    fprintf(stderr, "\r\033[K");
    if (p->total)
        fprintf(stderr, "[%*u/%u] ", p->total < 10 ? 1 : p->total < 100 ? 2 : 3, p->done, p->total);
    fprintf(stderr, "%.60s  %.1f s", p->step, seconds_now() - p->start);
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

Progress *progress_new(Arena *a)
{
    Progress   *p = NEW(a, Progress);
    const char *term = getenv("TERM");

    p->on = isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
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
    pthread_mutex_unlock(&p->lock);
    if (!p->running)
        start_thread(p);
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
