/* Launches on the CPU: blocks one after the other, their threads in turn. */
#include "mock.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { STACK = 64 * 1024, MARK = 64, HEAD = 256 };

/* ---- one thread at a time ------------------------------------------------------------------------ */

static pthread_mutex_t alone = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

int mock_enter(void)
{
    return pthread_mutex_lock(&alone);
}

void mock_leave(const int *was)
{
    (void)was;
    pthread_mutex_unlock(&alone);
}

/* ---- a block as fibers --------------------------------------------------------------------------- */

typedef enum { READY, AT_BARRIER, IN_GROUP, DONE } FiberState;

typedef struct {
    ucontext_t  context;
    char       *stack;
    MockIndex   thread;
    FiberState  state;
    MockMeeting meeting; /* IN_GROUP */
} Fiber;

static struct {
    ucontext_t        back;
    Fiber             fiber[MOCK_THREADS], *now;
    const MockKernel *k;
    void            **args;
} block;

static void leave(FiberState state)
{
    block.now->state = state;
    swapcontext(&block.now->context, &block.back);
}

static void at_barrier(void)
{
    leave(AT_BARRIER);
}

static void in_group(const MockMeeting *meeting)
{
    block.now->meeting = *meeting;
    leave(IN_GROUP);
}

static void start(void)
{
    block.k->run(block.args);
    leave(DONE);
}

static void make_fibers(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        Fiber *b = &block.fiber[i];

        if (!b->stack)
            b->stack = malloc(STACK);
        b->state = READY;
        getcontext(&b->context);
        b->context.uc_stack.ss_sp = b->stack;
        b->context.uc_stack.ss_size = STACK;
        b->context.uc_link = NULL;
        makecontext(&b->context, start, 0);
    }
}

static void go_on(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        block.now = &block.fiber[i];
        if (block.now->state != READY)
            continue;
        *block.k->thread = block.now->thread;
        *block.k->number = i;
        swapcontext(&block.back, &block.now->context);
    }
}

/* How many of a group have come to where thread i waits for them? */
static unsigned together(unsigned i, unsigned n)
{
    const MockMeeting *m = &block.fiber[i].meeting;
    const unsigned     first = i - i % m->threads;
    unsigned           come = 0;

    for (unsigned j = first; j < first + m->threads && j < n; j++) {
        const MockMeeting *other = &block.fiber[j].meeting;

        come += block.fiber[j].state == IN_GROUP && other->place == m->place &&
                other->threads == m->threads && other->x == m->x && other->y == m->y;
    }
    return come;
}

/* Groups that have come as a whole may go on; false: there is none. */
static bool meet(unsigned n)
{
    bool any = false;

    for (unsigned i = 0; i < n; i++) {
        const unsigned size = block.fiber[i].meeting.threads;

        if (block.fiber[i].state != IN_GROUP || i % size || together(i, n) < size)
            continue;
        for (unsigned j = i; j < i + size; j++)
            block.fiber[j].state = READY;
        any = true;
    }
    return any;
}

/* From where threads wait to where they wait; false if not all come there. */
static bool run_fibers(unsigned n)
{
    *block.k->barrier = at_barrier;
    *block.k->group = in_group;
    make_fibers(n);
    for (;;) {
        unsigned done = 0;

        go_on(n);
        if (meet(n))
            continue;
        for (unsigned i = 0; i < n; i++) {
            const MockMeeting *m = &block.fiber[i].meeting;

            if (block.fiber[i].state == IN_GROUP) {
                fprintf(stderr, "mock: of a group's %u threads %u come to %s together\n",
                        m->threads, together(i, n), m->what);
                return false;
            }
            done += block.fiber[i].state == DONE;
        }
        if (done)
            return done == n; /* else some ended where others wait */
        for (unsigned i = 0; i < n; i++)
            block.fiber[i].state = READY;
    }
}

static bool run_block(unsigned threads)
{
    const MockKernel *k = block.k;

    if (k->barriers)
        return run_fibers(threads);
    for (unsigned i = 0; i < threads; i++) {
        *k->thread = block.fiber[i].thread;
        *k->number = i;
        k->run(block.args);
    }
    return true;
}

bool mock_run(const MockKernel *k, MockIndex grid, MockIndex size, void **args)
{
    MOCK_ALONE;
    unsigned n = 0;

    block.k = k;
    block.args = args;
    for (unsigned z = 0; z < size.z; z++)
        for (unsigned y = 0; y < size.y; y++)
            for (unsigned x = 0; x < size.x; x++)
                block.fiber[n++].thread = (MockIndex){x, y, z};
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x; x++) {
                *k->block = (MockIndex){x, y, z};
                if (!run_block(n))
                    return false;
            }
    return true;
}

/* ---- kernels ------------------------------------------------------------------------------------- */

static void *symbol(void *library, const char *prefix, const char *name)
{
    char text[300];

    snprintf(text, sizeof text, "%s%s", prefix, name);
    return dlsym(library, text);
}

bool mock_find(void *library, const char *name, MockKernel *out)
{
    void *run = symbol(library, "mock_run_", name);

    if (!run)
        return false;
    memcpy(&out->run, &run, sizeof run);
    out->threads = *(const int *)symbol(library, "mock_threads_", name);
    out->barriers = *(const int *)symbol(library, "mock_barriers_", name);
    out->nargs = *(const int *)symbol(library, "mock_args_", name);
    out->thread = dlsym(library, "mock_thread");
    out->block = dlsym(library, "mock_block");
    out->number = dlsym(library, "mock_number");
    out->barrier = dlsym(library, "mock_barrier");
    out->group = dlsym(library, "mock_group");
    return true;
}

/* ---- memory -------------------------------------------------------------------------------------- */

void *mock_alloc(size_t bytes)
{
    size_t all = (bytes + MARK + HEAD - 1) / HEAD * HEAD + HEAD;
    char  *p = aligned_alloc(HEAD, all);

    memset(p, 0xff, all);
    memcpy(p, &bytes, sizeof bytes);
    return p + HEAD;
}

void mock_free(void *memory, const char *who)
{
    unsigned char *p = memory;
    size_t         bytes;

    memcpy(&bytes, p - HEAD, sizeof bytes);
    for (long i = 0; i < MARK; i++)
        if (p[(long)bytes + i] != 0xff || p[-i - 1] != 0xff) {
            fprintf(stderr, "mock %s: memory beside an allocation was written\n", who);
            abort();
        }
    free(p - HEAD);
}
