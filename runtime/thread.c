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
 * per cent.  Waking somebody pays for all launches that find him awake, so they are counted
 * together: what the first one lost, and what those behind it gained.
 *
 * Who is woken is kept from the processors of those that are awake until it runs, and so is who
 * waits on the caller's.  Kernels like to wake a thread where its waker is, which here goes on:
 * both would share one processor, and take turns at each barrier, while another one idles.
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

/* Others are given up for a function after so many launches, since their caches, too, are cold at
 * first, or once they lost what so many take alone; what they gained before counts as much. */
enum { TRIES = 4, CREDIT = 2 };

enum { CPUS = 1024, CPU_BITS = 8 * sizeof(unsigned long) };

/* A set of processors, as Linux has it. */
typedef struct {
    unsigned long word[CPUS / CPU_BITS];
} Cpus;

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
    atomic_int   id;     /* with the system */
    atomic_int   cpu;    /* on which it was last */
    atomic_bool  kept;   /* from some processors: it may run on `may` */
    Cpus         may;
    tvmrt_pool  *pool;
} Worker;

/* The gate: how many workers are wanted, how many have joined, and who may pass.  Full, or once it
 * is OPEN, those that joined run; nobody joins any more when it is full or CLOSED.  ALL: nobody was
 * left out, so that a full gate means that each worker has its own part. */
enum { JOINED = 0x7ff, WANTED_SHIFT = 11, CLOSED = 1 << 22, OPEN = 1 << 23, ALL = 1 << 24 };

/* What launches of one function took, in nanoseconds, 0: not known. */
typedef struct {
    tvmcc_part_fn fn;
    int64_t       alone[2]; /* of those behind another launch; of those after a pause */
    int64_t       together;
    int64_t       debt;  /* to be run alone before others are called again */
    int64_t       lost;  /* by calling, since somebody was woken; less than 0: gained */
    uint32_t      tries; /* launches that this counts */
    uint32_t      fails, launches;
} Past;

/* A launch that has been. */
typedef struct {
    uint32_t came;     /* workers */
    bool     called;   /* them */
    bool     first;    /* after a pause: nothing is in the caches */
    int64_t  wake;     /* how long those need to wake who were woken; 0: nobody was */
    int64_t  all, run; /* what it took, and without waiting for workers */
} Launch;

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
    atomic_llong  wake;           /* what waking a thread takes */
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

static void add_cpu(Cpus *set, int cpu)
{
    if (cpu >= 0 && cpu < CPUS)
        set->word[(uint32_t)cpu / CPU_BITS] |= 1UL << (uint32_t)cpu % CPU_BITS;
}

#ifdef __linux__
static int thread_id(void)
{
    return (int)syscall(SYS_gettid);
}

/* That the calling thread is on; -1: not known. */
static int this_cpu(void)
{
    return sched_getcpu();
}

/* Until it is released the thread runs on none of the held processors; false: it has no other, or
 * the system does not say.  `may`, all 0 at first, becomes what to release it with. */
static bool keep_from(const Cpus *held, int thread, Cpus *may)
{
    Cpus rest;

    if (!thread || syscall(SYS_sched_getaffinity, thread, sizeof *may, may) <= 0)
        return false;
    for (uint32_t i = 0; i < CPUS / CPU_BITS; i++)
        rest.word[i] = may->word[i] & ~held->word[i];
    return syscall(SYS_sched_setaffinity, thread, sizeof rest, &rest) == 0;
}

static void release(const Cpus *may)
{
    (void)!syscall(SYS_sched_setaffinity, 0, sizeof *may, may);
}

static void sleep_while(atomic_uint *word, uint32_t value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake(atomic_uint *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}
#else
static int thread_id(void)
{
    return 0;
}

static int this_cpu(void)
{
    return -1;
}

static bool keep_from(const Cpus *held, int thread, Cpus *may)
{
    (void)held;
    (void)thread;
    (void)may;
    return false;
}

static void release(const Cpus *may)
{
    (void)may;
}

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
        atomic_store_explicit(&pool->wake, (3 * wake + took) / 4, memory_order_relaxed);
}

static void *worker_main(void *arg)
{
    Worker     *w = arg;
    tvmrt_pool *pool = w->pool;

    atomic_store(&w->id, thread_id());
    for (uint32_t seen = 0;;) {
        uint32_t part, parts;

        if (wait_for_parts(pool, &w->go, seen))
            has_woken(pool, w);
        if (atomic_load_explicit(&w->kept, memory_order_acquire)) {
            release(&w->may);
            atomic_store_explicit(&w->kept, false, memory_order_release);
        }
        atomic_store_explicit(&w->cpu, this_cpu(), memory_order_relaxed);
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

/* What the function takes alone, behind another launch or after a pause: the other one if only
 * that is known. */
static int64_t alone(const Past *p, bool first)
{
    return p->alone[first] ? p->alone[first] : p->alone[!first];
}

/* Ends the count that began when somebody was woken: what was lost is not put at risk again for
 * long. */
static void settle_up(Past *p)
{
    int64_t most;

    p->fails = p->lost > 0 ? p->fails + (p->fails < 10) : 0;
    most = alone(p, false) << (4 + p->fails);
    p->debt = p->lost <= 0 ? 0 : p->lost < most / RETRY ? p->lost * RETRY : most;
    p->tries = 0;
}

static void learn(Past *p, const Launch *l)
{
    int64_t usual = p->alone[l->first];
    int64_t lost = !l->came ? l->all - l->run : usual ? l->all - usual : 0, most;

    p->launches++;
    if (l->came)
        p->together = settle(p->together, l->all);
    else
        p->alone[l->first] = settle(usual, l->run);
    if (!l->called) {
        p->debt -= l->all;
        return;
    }
    p->lost = p->tries ? p->lost + lost : lost;
    p->tries += p->tries < TRIES;
    most = CREDIT * alone(p, false);
    if (p->lost < -most)
        p->lost = -most;
    if (p->lost > most || (!l->wake && p->tries == TRIES && lost > 0 && p->lost > 0))
        settle_up(p);
    else if (l->wake && !l->came) /* soon they are awake */
        p->debt = l->wake - l->all;
}

/* Do launches go without it for now? */
static bool is_given_up(const tvmrt_pool *pool, const Worker *w)
{
    return pool->clock < w->retry;
}

/* Is one asleep of the first n workers that are not given up for now? */
static bool is_asleep(const tvmrt_pool *pool, uint32_t n)
{
    for (uint32_t i = 1; i <= n; i++)
        if (!is_given_up(pool, &pool->workers[i]) && atomic_load(&pool->workers[i].go.sleepers))
            return true;
    return false;
}

/* Calls those of the first n workers that are not given up for now; how many, and how many of them
 * sleep. */
static uint32_t call_workers(tvmrt_pool *pool, uint32_t n, uint32_t *asleep)
{
    uint32_t called = 0;

    for (uint32_t i = 1; i <= n; i++)
        called += !is_given_up(pool, &pool->workers[i]);
    atomic_store_explicit(&pool->left.word, called, memory_order_relaxed);
    atomic_store_explicit(&pool->parts, called + 1, memory_order_relaxed);
    atomic_store(&pool->gate, called << WANTED_SHIFT | (called == n ? ALL : 0));
    *asleep = 0;
    for (uint32_t i = 1; i <= n; i++) {
        Worker *w = &pool->workers[i];

        if (is_given_up(pool, w))
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

        if (is_given_up(pool, w))
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

/* Of the first n workers, wakes those that sleep, if so wanted, where no other one is, and moves
 * away those that wait where the caller is. */
static void place_workers(tvmrt_pool *pool, uint32_t n, bool wakes)
{
    Cpus held = {0};
    int  here = this_cpu();

    add_cpu(&held, here);
    for (uint32_t i = 1; i <= n; i++) {
        Worker *w = &pool->workers[i];
        int     cpu = atomic_load_explicit(&w->cpu, memory_order_relaxed);
        bool    sleeps = atomic_load(&w->go.sleepers);

        if (is_given_up(pool, w) || (sleeps && !wakes))
            continue;
        if ((sleeps || (cpu == here && cpu >= 0)) &&
            !atomic_load_explicit(&w->kept, memory_order_acquire) &&
            keep_from(&held, atomic_load(&w->id), &w->may))
            atomic_store_explicit(&w->kept, true, memory_order_release);
        if (sleeps)
            tell(&w->go);
        add_cpu(&held, cpu);
    }
}

/* The workers that come, of the first n; `woken`: how long those need to wake who were woken. */
static uint32_t gather(tvmrt_pool *pool, const Past *past, uint32_t n, bool first, int64_t *woken)
{
    int64_t  wake = atomic_load_explicit(&pool->wake, memory_order_relaxed), spent = 0;
    int64_t  usual = alone(past, first), work = usual ? usual : past->together * (n + 1), wait;
    int64_t  saved = work - work / (n + 1);
    uint32_t asleep, called = call_workers(pool, n, &asleep), spins = 0, came;
    bool     patient = !work || saved > wake;

    wait = !work ? FIRST_WAIT : patient ? saved : AT_HAND;
    *woken = !asleep || (first && !patient) ? 0 : wake;
    if (called)
        place_workers(pool, n, *woken); /* for the next launch, if this one does not wait */
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
static bool calls(const Past *past, uint32_t parts, bool first)
{
    bool soon = past->together < TRIAL / parts || past->launches >= 16 * parts;

    return parts > 1 && past->debt <= 0 && (past->alone[first] || !past->together || !soon);
}

static bool is_forked(const tvmrt_pool *pool)
{
    return getpid() != pool->owner;
}

int32_t tvmrt_launch(void *user, tvmcc_part_fn fn, void *ctx, uint32_t parts)
{
    tvmrt_pool *pool = user;
    uint32_t    spins = 0;
    int64_t     run;
    Launch      l = {0};
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
    l.first = pool->started - pool->ended >= PATIENCE;
    if (past->tries == TRIES && is_asleep(pool, parts - 1))
        settle_up(past);
    l.called = calls(past, parts, l.first);
    l.came = gather(pool, past, l.called ? parts - 1 : 0, l.first, &l.wake);
    if (!is_full(atomic_load(&pool->gate))) {
        atomic_store_explicit(&pool->parts, l.came + 1, memory_order_relaxed);
        atomic_store_explicit(&pool->left.word, l.came, memory_order_relaxed);
        atomic_fetch_or(&pool->gate, OPEN);
    }
    run = l.called ? nanoseconds() : pool->started;
    fn(ctx, 0, l.came + 1);
    for (uint32_t left; (left = atomic_load_explicit(&pool->left.word, memory_order_acquire));)
        wait_for_parts(pool, &pool->left, left);
    pool->ended = nanoseconds();
    pool->clock += pool->ended - pool->started;
    l.all = pool->ended - pool->started;
    l.run = pool->ended - run;
    learn(past, &l);
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
    atomic_store(&pool->wake, WAKE);
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
