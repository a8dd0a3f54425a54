/* Threads for tests: a launch makes as many as it has parts, and none of them is ever done without,
 * as the pool of the runtime does with those that do not come. */
#ifndef TVMCC_TESTS_UNIT_GANG_H
#define TVMCC_TESTS_UNIT_GANG_H

#include "tvmcc/abi.h"

#include <pthread.h>
#include <stdlib.h>

enum { GANG_MOST = 16 };

typedef struct {
    pthread_barrier_t barrier;
    tvmcc_part_fn     fn;
    void             *ctx;
    uint32_t          parts;
} Gang;

typedef struct {
    Gang    *gang;
    uint32_t part;
} GangPart;

static inline void *gang_part(void *arg)
{
    const GangPart *p = arg;

    p->gang->fn(p->gang->ctx, p->part, p->gang->parts);
    return NULL;
}

static inline int32_t gang_launch(void *user, tvmcc_part_fn fn, void *ctx, uint32_t parts)
{
    Gang     *g = user;
    pthread_t threads[GANG_MOST];
    GangPart  part[GANG_MOST];

    if (!parts || parts > GANG_MOST || pthread_barrier_init(&g->barrier, NULL, parts))
        return TVMCC_E_MISMATCH;
    g->fn = fn;
    g->ctx = ctx;
    g->parts = parts;
    for (uint32_t i = 0; i < parts; i++) {
        part[i] = (GangPart){g, i};
        if (i && pthread_create(&threads[i], NULL, gang_part, &part[i]))
            abort(); /* the others would wait for it for ever */
    }
    fn(ctx, 0, parts);
    for (uint32_t i = 1; i < parts; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&g->barrier);
    return TVMCC_OK;
}

static inline void gang_barrier(void *user, uint32_t part)
{
    Gang *g = user;

    (void)part;
    pthread_barrier_wait(&g->barrier);
}

static inline void gang_use(Gang *g, uint32_t threads, tvmcc_params *params)
{
    params->threads = threads;
    params->launch = gang_launch;
    params->barrier = gang_barrier;
    params->user = g;
}

#endif
