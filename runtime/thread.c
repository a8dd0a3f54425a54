/* thread.c: a pool of threads for compiled models.
 *
 * A model asks for one launch per inference and meets in barriers between its kernels, dozens of
 * times in a few milliseconds, so both must cost well under a microsecond: waiting threads spin
 * (about 1,000 spaced pauses, 20 microseconds), then yield the CPU in case the machine is
 * over-committed, and at last sleep on a futex: an idle pool costs nothing, and where others hold
 * the processor that a thread needs, the one that waits for it leaves its own free.
 *
 *   launch: fn, ctx, parts -> job;  go[1..parts-1]++  -> workers run -> left reaches 0
 *
 * Each worker has a mailbox `go` on a cache line of its own.  Only those that take part in a launch
 * are told of it, so the job is never written while somebody may read it.  Who goes to sleep says
 * so first and then looks at the word again; who changes the word looks for sleepers after that;
 * one of the two always sees the other (all four accesses are sequentially consistent).
 *
 * A process that fork made has the pool's memory and none of its threads.  Only its process id
 * tells it so: asking for it at a launch costs a twentieth of a microsecond.
 */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* syscall, sched_getaffinity */
#endif
#include "tvmcc/runtime.h"

#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

enum { LINE = 64, SPINS = 1000, PATIENCE_US = 200, MAX_THREADS = 1024 };

/* A word that threads wait for, and how many of them sleep. */
typedef struct {
    alignas(LINE) atomic_uint word;
    atomic_uint sleepers;
} Signal;

typedef struct {
    Signal      go; /* changes when there is work */
    pthread_t   thread;
    uint32_t    part;
    tvmrt_pool *pool;
} Worker;

struct tvmrt_pool {
    alignas(LINE) atomic_uint busy; /* one launch at a time */
    uint32_t      threads;
    tvmcc_part_fn fn; /* the job: written by launch, read by its parts */
    void         *ctx;
    atomic_uint   parts;
    bool          quit;
    pid_t         owner; /* the process that has the threads */
    Signal        left;  /* parts of workers still running */
    alignas(LINE) atomic_uint arrived;
    Signal generation; /* of the barrier */
    Worker workers[];  /* part 0 is the caller: workers[0] is unused */
};

static void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
    /* Hypervisors watch for loops of pauses closer together than about 128 cycles and take the
     * processor away (pause-loop exiting): a launch then costs 150 us instead of 1. */
    __builtin_ia32_pause();
    for (int i = 0; i < 100; i++)
        __asm__ volatile("nop");
#elif defined(__aarch64__) || (defined(__arm__) && __ARM_ARCH >= 7)
    __asm__ volatile("yield");
#else
    atomic_signal_fence(memory_order_seq_cst);
#endif
}

/* One step of waiting: cheap at first, then let others run. */
static void wait_step(uint32_t *spins)
{
    if (*spins < SPINS) {
        ++*spins;
        pause_cpu();
    } else {
        sched_yield();
    }
}

#ifdef __linux__
static void sleep_while(atomic_uint *word, uint32_t value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake(atomic_uint *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}
#else
/* Without a futex who sleeps looks every 100 microseconds. */
static void sleep_while(atomic_uint *word, uint32_t value)
{
    if (atomic_load(word) == value)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

static void wake(atomic_uint *word)
{
    (void)word;
}
#endif

static int64_t microseconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* Until the word is no longer `seen`.  Yields are counted by the clock: one takes half a
 * microsecond where nobody else wants the processor, and a time slice where somebody does. */
static void wait_change(Signal *s, uint32_t seen)
{
    for (uint32_t spins = 0; spins < SPINS; spins++) {
        if (atomic_load_explicit(&s->word, memory_order_acquire) != seen)
            return;
        pause_cpu();
    }
    for (int64_t until = microseconds() + PATIENCE_US; microseconds() < until;) {
        if (atomic_load_explicit(&s->word, memory_order_acquire) != seen)
            return;
        sched_yield();
    }
    atomic_fetch_add(&s->sleepers, 1);
    while (atomic_load(&s->word) == seen)
        sleep_while(&s->word, seen);
    atomic_fetch_sub(&s->sleepers, 1);
}

/* After the word has changed. */
static void tell(Signal *s)
{
    if (atomic_load(&s->sleepers))
        wake(&s->word);
}

static void worker_tell(Worker *w)
{
    atomic_fetch_add(&w->go.word, 1);
    tell(&w->go);
}

static void *worker_main(void *arg)
{
    Worker     *w = arg;
    tvmrt_pool *pool = w->pool;

    for (uint32_t seen = 0;; seen++) {
        wait_change(&w->go, seen);
        if (pool->quit)
            return NULL;
        pool->fn(pool->ctx, w->part, atomic_load_explicit(&pool->parts, memory_order_relaxed));
        if (atomic_fetch_sub(&pool->left.word, 1) == 1)
            tell(&pool->left);
    }
}

static bool is_forked(const tvmrt_pool *pool)
{
    return getpid() != pool->owner;
}

int32_t tvmrt_launch(void *user, tvmcc_part_fn fn, void *ctx, uint32_t parts)
{
    tvmrt_pool *pool = user;
    uint32_t    spins = 0;

    if (!pool || !fn)
        return TVMCC_E_NULL;
    if (parts > pool->threads)
        return TVMCC_E_MISMATCH;
    if (parts == 0)
        return TVMCC_OK;
    if (is_forked(pool)) { /* `busy` may be a thread's of the parent */
        atomic_store_explicit(&pool->parts, 1, memory_order_relaxed);
        fn(ctx, 0, 1);
        return TVMCC_OK;
    }
    while (atomic_exchange_explicit(&pool->busy, 1, memory_order_acquire))
        wait_step(&spins);
    pool->fn = fn;
    pool->ctx = ctx;
    atomic_store_explicit(&pool->parts, parts, memory_order_relaxed);
    atomic_store_explicit(&pool->left.word, parts - 1, memory_order_relaxed);
    for (uint32_t i = 1; i < parts; i++)
        worker_tell(&pool->workers[i]);
    fn(ctx, 0, parts);
    for (uint32_t left; (left = atomic_load_explicit(&pool->left.word, memory_order_acquire));)
        wait_change(&pool->left, left);
    atomic_store_explicit(&pool->busy, 0, memory_order_release);
    return TVMCC_OK;
}

void tvmrt_barrier(void *user, uint32_t part)
{
    tvmrt_pool *pool = user;
    uint32_t    generation, parts;

    (void)part;
    parts = pool ? atomic_load_explicit(&pool->parts, memory_order_relaxed) : 0;
    if (parts < 2)
        return;
    generation = atomic_load_explicit(&pool->generation.word, memory_order_acquire);
    if (atomic_fetch_add_explicit(&pool->arrived, 1, memory_order_acq_rel) + 1 == parts) {
        atomic_store_explicit(&pool->arrived, 0, memory_order_relaxed);
        atomic_store(&pool->generation.word, generation + 1);
        tell(&pool->generation);
        return;
    }
    wait_change(&pool->generation, generation);
}

size_t tvmrt_pool_bytes(uint32_t threads)
{
    if (threads == 0 || threads > MAX_THREADS)
        return 0;
    return sizeof(tvmrt_pool) + threads * sizeof(Worker);
}

static void stop_workers(tvmrt_pool *pool, uint32_t n)
{
    pool->quit = true;
    for (uint32_t i = 1; i < n; i++)
        worker_tell(&pool->workers[i]);
    for (uint32_t i = 1; i < n; i++)
        pthread_join(pool->workers[i].thread, NULL);
}

tvmrt_pool *tvmrt_pool_new(void *memory, size_t bytes, uint32_t threads)
{
    tvmrt_pool *pool = memory;
    size_t      need = tvmrt_pool_bytes(threads);

    if (!memory || !need || bytes < need || (uintptr_t)memory % LINE)
        return NULL;
    memset(memory, 0, need);
    pool->threads = threads;
    pool->owner = getpid();
    for (uint32_t i = 1; i < threads; i++) {
        Worker *w = &pool->workers[i];

        w->part = i;
        w->pool = pool;
        if (pthread_create(&w->thread, NULL, worker_main, w)) {
            stop_workers(pool, i);
            return NULL;
        }
    }
    return pool;
}

void tvmrt_pool_free(tvmrt_pool *pool)
{
    if (pool && !is_forked(pool))
        stop_workers(pool, pool->threads);
}

uint32_t tvmrt_pool_threads(const tvmrt_pool *pool)
{
    return pool ? pool->threads : 1;
}

void tvmrt_pool_use(tvmrt_pool *pool, tvmcc_params *params)
{
    if (!params)
        return;
    params->threads = tvmrt_pool_threads(pool);
    params->launch = pool ? tvmrt_launch : NULL;
    params->barrier = pool ? tvmrt_barrier : NULL;
    params->user = pool;
}

uint32_t tvmrt_cpu_count(void)
{
    long n;
#ifdef __linux__
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return (uint32_t)CPU_COUNT(&set);
#endif
    n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (uint32_t)n : 1;
}
