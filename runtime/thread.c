/* thread.c: a pool of threads for compiled models.
 *
 * A model asks for one launch per inference and meets in barriers between its kernels, dozens of
 * times in a few milliseconds, so both must cost well under a microsecond: waiting threads spin
 * (about 1,000 spaced pauses, 20 microseconds), then yield the CPU in case the machine is
 * over-committed, and at last sleep on a futex: an idle pool costs nothing, and where others hold
 * the processor that a thread needs, the one that waits for it leaves its own free.
 *
 *   launch: fn, ctx, gate -> job;  go[1..parts-1]++  -> workers join -> run -> left reaches 0
 *
 * Each worker has a mailbox `go` on a cache line of its own.  A worker takes part only if it joins
 * at the gate before the launch closes it.  A barrier waits for all parts, so a thread that sleeps,
 * or whose processor somebody else holds, would make all others wait: up to a millisecond where the
 * processor is a virtual one, which is 50 times what a small model takes.  So a launch waits no
 * longer than others can save, goes on with those that came, as that many parts, and with none of
 * them alone.  It knows what launches of the same function took, alone and together (`Past`), and
 * tries anew what was slower, but seldom: no function is slower than on one thread by more than two
 * per cent.  Who was woken for one launch and came too late is awake for the next one, which
 * therefore calls again: later it would sleep again, and each launch wake it in vain.
 *
 * Who goes to sleep says so first and then looks at the word again; who changes the word looks for
 * sleepers after that; one of the two always sees the other (all four accesses are sequentially
 * consistent).
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

enum { LINE = 64, SPINS = 1000, MAX_THREADS = 1024 };

/* Nanoseconds.  An idle thread sleeps after PATIENCE; a first guess of what waking one takes; how
 * long a launch waits for threads that are awake, and the first one of a function for all; launches
 * that long, on all threads, are tried on one. */
enum { PATIENCE = 200000, WAKE = 50000, AT_HAND = 2000, FIRST_WAIT = 1000000, TRIAL = 4000000 };

/* What was lost is not put at risk again before this many times that has been run: less than two
 * per cent are. */
enum { RETRY = 64 };

/* A word that threads wait for, and how many of them sleep. */
typedef struct {
    alignas(LINE) atomic_uint word;
    atomic_uint sleepers;
} Signal;

typedef struct {
    Signal       go; /* changes when there is work */
    atomic_bool  in; /* it has joined the launch */
    pthread_t    thread;
    uint32_t     part;
    int64_t      retry;  /* launches do without it until then, by the pool's clock */
    bool         late;   /* for the last launch, which has woken it */
    atomic_llong called; /* when it was, last */
    tvmrt_pool  *pool;
} Worker;

/* The gate: how many workers are wanted, how many have joined, and who may pass.  Full, or once it
 * is OPEN, those that joined run; nobody joins any more when it is full or CLOSED.  ALL: nobody was
 * left out, so that a full gate means that each worker has its own part. */
enum { JOINED = 0x7ff, WANTED_SHIFT = 11, CLOSED = 1 << 22, OPEN = 1 << 23, ALL = 1 << 24 };

/* What launches of one function took, in nanoseconds, 0: not known. */
typedef struct {
    tvmcc_part_fn fn;
    int64_t       alone, together;
    int64_t       debt;  /* to be run alone before others are called again */
    int64_t       woken; /* lost by waking who came too late for the last launch that called */
    uint32_t      fails, launches;
} Past;

struct tvmrt_pool {
    alignas(LINE) atomic_uint busy; /* one launch at a time */
    uint32_t      threads;
    tvmcc_part_fn fn; /* the job: written by launch, read by its parts */
    void         *ctx;
    atomic_uint   parts;
    atomic_bool   quit;
    pid_t         owner;          /* the process that has the threads */
    int64_t       started, ended; /* this launch, and the last one */
    int64_t       clock;          /* the time of all launches */
    atomic_llong  wake;           /* what waking a thread took, 0: not known */
    Past          past[8];        /* by address */
    alignas(LINE) atomic_uint gate;
    Signal left; /* parts of workers still running */
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

static int64_t nanoseconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Until the word is no longer `seen`; did it take sleep?  Yields are counted by the clock: one
 * takes half a microsecond where nobody else wants the processor, and a time slice where somebody
 * does. */
static bool wait_change(Signal *s, uint32_t seen, int64_t patience)
{
    for (uint32_t spins = 0; spins < SPINS; spins++) {
        if (atomic_load_explicit(&s->word, memory_order_acquire) != seen)
            return false;
        pause_cpu();
    }
    for (int64_t until = nanoseconds() + patience; nanoseconds() < until;) {
        if (atomic_load_explicit(&s->word, memory_order_acquire) != seen)
            return false;
        sched_yield();
    }
    atomic_fetch_add(&s->sleepers, 1);
    while (atomic_load(&s->word) == seen)
        sleep_while(&s->word, seen);
    atomic_fetch_sub(&s->sleepers, 1);
    return true;
}

/* Somebody waits for who sleeps, or will: not before that took as long as to wake it. */
static bool wait_for_parts(tvmrt_pool *pool, Signal *s, uint32_t seen)
{
    int64_t wake = atomic_load_explicit(&pool->wake, memory_order_relaxed);

    return wait_change(s, seen, wake > PATIENCE ? wake : PATIENCE);
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

static uint32_t wanted(uint32_t gate)
{
    return gate >> WANTED_SHIFT & JOINED;
}

static bool is_full(uint32_t gate)
{
    return (gate & JOINED) == wanted(gate);
}

/* Which part of how many this worker is; false: the launch goes on without it. */
static bool join(tvmrt_pool *pool, Worker *w, uint32_t *part, uint32_t *parts)
{
    uint32_t gate = atomic_load(&pool->gate), spins = 0;

    do {
        if (gate & CLOSED || is_full(gate) || (gate & ALL && w->part > wanted(gate)))
            return false;
        *part = (gate & JOINED) + 1;
    } while (!atomic_compare_exchange_weak(&pool->gate, &gate, gate + 1));
    atomic_store_explicit(&w->in, true, memory_order_relaxed);
    while (!is_full(gate = atomic_load_explicit(&pool->gate, memory_order_acquire)) &&
           !(gate & OPEN))
        wait_step(&spins);
    if (is_full(gate) && gate & ALL)
        *part = w->part; /* the same in all launches: its caches have what that one reads */
    *parts = (gate & JOINED) + 1;
    return true;
}

/* What waking it took; who was not called, or in a process that was stopped, says nothing. */
static void has_woken(tvmrt_pool *pool, Worker *w)
{
    int64_t took = nanoseconds() - atomic_load_explicit(&w->called, memory_order_relaxed);
    int64_t wake = atomic_load_explicit(&pool->wake, memory_order_relaxed);

    if (took < TRIAL)
        atomic_store_explicit(&pool->wake, wake ? (3 * wake + took) / 4 : took,
                              memory_order_relaxed);
}

static void *worker_main(void *arg)
{
    Worker     *w = arg;
    tvmrt_pool *pool = w->pool;

    for (uint32_t seen = 0;;) {
        uint32_t part, parts;

        if (wait_for_parts(pool, &w->go, seen))
            has_woken(pool, w);
        seen = atomic_load(&w->go.word);
        if (atomic_load(&pool->quit))
            return NULL;
        if (!join(pool, w, &part, &parts))
            continue;
        pool->fn(pool->ctx, part, parts);
        if (atomic_fetch_sub(&pool->left.word, 1) == 1)
            tell(&pool->left);
    }
}

static Past *past_of(tvmrt_pool *pool, tvmcc_part_fn fn)
{
    uintptr_t at = (uintptr_t)fn;
    Past     *p = &pool->past[(at >> 4 ^ at >> 10) % 8];

    if (p->fn != fn)
        *p = (Past){.fn = fn};
    return p;
}

/* Few launches are shorter than what they do, many longer. */
static int64_t settle(int64_t before, int64_t now)
{
    return !before || now < before ? now + 1 : before + (now - before) / 16;
}

/* What a launch with `came` workers took: all of it, and without waiting for them.  `wake`: how
 * long those need to wake whom it has woken in vain; 0: none. */
static void learn(Past *p, uint32_t came, bool called, int64_t wake, int64_t all, int64_t run)
{
    int64_t lost = came ? (p->alone ? all - p->alone : 0) : all - run, most;

    p->launches++;
    if (came)
        p->together = settle(p->together, all);
    else
        p->alone = settle(p->alone, run);
    if (!called) {
        p->debt -= all;
        return;
    }
    if (wake && !p->woken) { /* soon they are awake */
        p->woken = lost;
        p->debt = wake - all;
        return;
    }
    lost += p->woken;
    p->woken = 0;
    p->fails = lost > 0 ? p->fails + (p->fails < 10) : 0;
    most = p->alone << (4 + p->fails);
    p->debt = lost <= 0 ? 0 : lost < most / RETRY ? lost * RETRY : most;
}

/* Calls those of the first n workers that are not given up for now; how many, and how many of them
 * sleep. */
static uint32_t call_workers(tvmrt_pool *pool, uint32_t n, uint32_t *asleep)
{
    uint32_t called = 0;

    for (uint32_t i = 1; i <= n; i++)
        called += pool->clock >= pool->workers[i].retry;
    atomic_store_explicit(&pool->left.word, called, memory_order_relaxed);
    atomic_store_explicit(&pool->parts, called + 1, memory_order_relaxed);
    atomic_store(&pool->gate, called << WANTED_SHIFT | (called == n ? ALL : 0));
    *asleep = 0;
    for (uint32_t i = 1; i <= n; i++) {
        Worker *w = &pool->workers[i];

        if (pool->clock < w->retry)
            continue;
        atomic_store_explicit(&w->in, false, memory_order_relaxed);
        atomic_store_explicit(&w->called, pool->started, memory_order_relaxed);
        atomic_fetch_add(&w->go.word, 1);
        *asleep += atomic_load(&w->go.sleepers) != 0;
    }
    return called;
}

/* Launches do without those of the first n workers that did not come: for long, but for who was
 * woken and may be awake next time. */
static void give_up(tvmrt_pool *pool, uint32_t n, bool woken, int64_t spent)
{
    for (uint32_t i = 1; i <= n; i++) {
        Worker *w = &pool->workers[i];

        if (pool->clock < w->retry)
            continue;
        if (atomic_load_explicit(&w->in, memory_order_relaxed)) {
            w->late = false;
        } else if (woken && !w->late) {
            w->late = true;
        } else {
            w->late = false;
            w->retry = pool->clock + RETRY * spent;
        }
    }
}

/* The workers that come, of the first n; `woken`: how long those need to wake who were woken. */
static uint32_t gather(tvmrt_pool *pool, const Past *past, uint32_t n, int64_t *woken)
{
    int64_t  wake = atomic_load_explicit(&pool->wake, memory_order_relaxed), spent = 0;
    int64_t  work = past->alone ? past->alone : past->together * (n + 1), wait;
    int64_t  saved = work - work / (n + 1);
    uint32_t asleep, called = call_workers(pool, n, &asleep), spins = 0, came;
    bool     patient = !work || saved > (wake ? wake : WAKE);
    bool     recent = pool->started - pool->ended < PATIENCE; /* launches follow each other */

    wait = !work ? FIRST_WAIT : patient ? saved : AT_HAND;
    *woken = !asleep || !(patient || recent) ? 0 : wake ? wake : WAKE;
    for (uint32_t i = 1; *woken && i <= n; i++)
        if (pool->clock >= pool->workers[i].retry)
            tell(&pool->workers[i].go); /* for the next launch, if this one does not wait */
    while ((atomic_load(&pool->gate) & JOINED) < (patient ? called : called - asleep) &&
           spent < wait) {
        wait_step(&spins);
        if (spins % 8 == 0)
            spent = nanoseconds() - pool->started;
    }
    came = atomic_fetch_or(&pool->gate, CLOSED) & JOINED;
    if (asleep && !*woken)
        atomic_store(&pool->wake, wake - wake / 1024); /* it may have been bad luck */
    if (came && came < called)
        give_up(pool, n, *woken > 0, nanoseconds() - pool->started);
    return came;
}

/* Is it worth calling others?  Once the job is run alone, to know: soon if it is short, else when
 * that is little beside what has been run. */
static bool calls(const Past *past, uint32_t parts)
{
    bool soon = past->together < TRIAL / parts || past->launches >= 16 * parts;

    return parts > 1 && past->debt <= 0 && (past->alone || !past->together || !soon);
}

static bool is_forked(const tvmrt_pool *pool)
{
    return getpid() != pool->owner;
}

int32_t tvmrt_launch(void *user, tvmcc_part_fn fn, void *ctx, uint32_t parts)
{
    tvmrt_pool *pool = user;
    uint32_t    spins = 0, came;
    int64_t     run, woken;
    bool        call;
    Past       *past;

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
    past = past_of(pool, fn);
    pool->started = nanoseconds();
    pool->fn = fn;
    pool->ctx = ctx;
    call = calls(past, parts);
    came = gather(pool, past, call ? parts - 1 : 0, &woken);
    if (!is_full(atomic_load(&pool->gate))) {
        atomic_store_explicit(&pool->parts, came + 1, memory_order_relaxed);
        atomic_store_explicit(&pool->left.word, came, memory_order_relaxed);
        atomic_fetch_or(&pool->gate, OPEN);
    }
    run = call ? nanoseconds() : pool->started;
    fn(ctx, 0, came + 1);
    for (uint32_t left; (left = atomic_load_explicit(&pool->left.word, memory_order_acquire));)
        wait_for_parts(pool, &pool->left, left);
    pool->ended = nanoseconds();
    pool->clock += pool->ended - pool->started;
    learn(past, came, call, came ? 0 : woken, pool->ended - pool->started, pool->ended - run);
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
    wait_for_parts(pool, &pool->generation, generation);
}

size_t tvmrt_pool_bytes(uint32_t threads)
{
    if (threads == 0 || threads > MAX_THREADS)
        return 0;
    return sizeof(tvmrt_pool) + threads * sizeof(Worker);
}

static void stop_workers(tvmrt_pool *pool, uint32_t n)
{
    atomic_store(&pool->quit, true);
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
