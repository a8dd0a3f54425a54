/* Copies that go on beside the thread that started them (async_copy), in the interpreter: what they
 * copy is in its cell once the thread has waited for it, and not before, however quick a device may
 * be.
 *
 * Each thread has a list of what is on its way, in groups that `await` ends.  Until then the cell
 * may not be touched: that is an error, like a race.  For the other threads of the block the cell
 * is stored to where its thread waits.  Used by eval_launch.c. */
#include "ir/tir/eval.h"

#include <string.h>

typedef struct {
    const Buffer *buffer;
    uint8_t      *at, value[16];
    uint32_t      n, group;
} Copy;

typedef struct {
    VEC(Copy) on_the_way;
    uint32_t group; /* the one that copies are added to */
} Thread;

struct Copies {
    Thread  *threads;
    uint32_t n, thread; /* that runs */
    Map     *cells;     /* that something is on its way to */
};

Copies *copies_new(Arena *a, uint32_t threads)
{
    Copies *x = NEW(a, Copies);

    x->threads = NEW_ARRAY(a, Thread, threads);
    x->n = threads;
    x->cells = map_new(a);
    return x;
}

void copies_of_thread(Copies *x, uint32_t thread)
{
    x->thread = thread;
}

/* Another block: what was still on its way has gone nowhere. */
void copies_drop(Copies *x)
{
    for (uint32_t i = 0; i < x->n; i++) {
        Thread *t = &x->threads[i];
        for (uint32_t k = 0; k < t->on_the_way.n; k++)
            map_del(x->cells, PTR_KEY(t->on_the_way.at[k].at));
        t->on_the_way.n = 0;
        t->group = 0;
    }
}

bool copies_reach(const Copies *x, const uint8_t *at)
{
    return map_get(x->cells, PTR_KEY(at)) != NULL;
}

void copies_start(Eval *e, const Buffer *b, uint8_t *at, const uint8_t *value, uint32_t n)
{
    Copies *x = e->copies;
    Thread *t = &x->threads[x->thread];
    Copy    one = {.buffer = b, .at = at, .n = n, .group = t->group};

    memcpy(one.value, value, n);
    memset(at, 0xff, n);
    vec_push(e->arena, &t->on_the_way, one);
    map_put(x->cells, PTR_KEY(at), x);
}

void copies_await(Eval *e, uint32_t groups)
{
    Copies  *x = e->copies;
    Thread  *t = &x->threads[x->thread];
    uint32_t left = 0;

    t->group++;
    for (uint32_t i = 0; i < t->on_the_way.n; i++) {
        Copy *one = &t->on_the_way.at[i];
        if (one->group + groups >= t->group) {
            t->on_the_way.at[left++] = *one;
            continue;
        }
        map_del(x->cells, PTR_KEY(one->at));
        launch_write(e, one->buffer, one->at, one->value, one->n);
        memcpy(one->at, one->value, one->n);
    }
    t->on_the_way.n = left;
}
