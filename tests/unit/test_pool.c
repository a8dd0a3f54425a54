/* The thread pool: every part runs once, barriers hold, idle workers wake up again. */
#include "tests/unit/check.h"
#include "tvmcc/runtime.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 5, ROUNDS = 40, LAUNCHES = 200 };

static alignas(64) char memory[16 * 1024];

typedef struct {
    tvmrt_pool *pool;
    uint32_t    seen[THREADS]; /* plain memory: a barrier that leaks is a data race */
    uint32_t    wrong[THREADS], parts[THREADS];
} Job;

/* Each round every part writes its slot, meets the others, and reads all slots. */
static void part(void *ctx, uint32_t id, uint32_t parts)
{
    Job *job = ctx;

    for (uint32_t round = 1; round <= ROUNDS; round++) {
        job->seen[id] = round;
        tvmrt_barrier(job->pool, id);
        for (uint32_t i = 0; i < parts; i++)
            job->wrong[id] += job->seen[i] != round;
        tvmrt_barrier(job->pool, id);
    }
    job->parts[id] = parts;
}

/* How many things went wrong: checks are counted by the main thread alone. */
static uint32_t run(tvmrt_pool *pool, uint32_t parts)
{
    Job      job = {.pool = pool};
    uint32_t wrong = tvmrt_launch(pool, part, &job, parts) != TVMCC_OK, came = job.parts[0];

    wrong += came < 1 || came > parts;
    for (uint32_t i = 0; i < THREADS; i++)
        wrong += job.wrong[i] + (job.seen[i] != (i < came ? ROUNDS : 0)) +
                 (job.parts[i] != (i < came ? came : 0));
    return wrong;
}

static tvmrt_pool *shared_pool;

static void *other_thread(void *result)
{
    uint32_t *wrong = result;

    for (int i = 0; i < 20; i++)
        *wrong += run(shared_pool, 3);
    return NULL;
}

static void add_part(void *ctx, uint32_t id, uint32_t parts)
{
    (void)parts;
    ((uint32_t *)ctx)[id]++;
}

/* All that a part does is meet the others, who may have gone on without it. */
static void meet_part(void *ctx, uint32_t id, uint32_t parts)
{
    Job *job = ctx;

    job->parts[id] = parts;
    for (uint32_t i = 0; i < ROUNDS; i++)
        tvmrt_barrier(job->pool, id);
}

/* Of a function never seen the first launch waits for all parts, within reason. */
static void test_together(void)
{
    bool all = false;

    for (int i = 0; i < 5000 && !all; i++) {
        tvmrt_pool *pool = tvmrt_pool_new(memory, sizeof memory, 2);
        Job         job = {.pool = pool};

        CHECK(tvmrt_launch(pool, meet_part, &job, 2) == TVMCC_OK);
        all = job.parts[0] == 2 && job.parts[1] == 2;
        tvmrt_pool_free(pool);
    }
    CHECK(all);
}

/* A job shorter than it takes to wake a thread is done without those that sleep; on a busy machine
 * one may be kept from it. */
static void test_short(tvmrt_pool *pool)
{
    uint32_t counts[THREADS] = {0}, launches = LAUNCHES, alone = 0;

    for (uint32_t i = 0; i < LAUNCHES; i++)
        CHECK(tvmrt_launch(pool, add_part, counts, THREADS) == TVMCC_OK);
    while (alone < 3 && launches < 2 * LAUNCHES) {
        uint32_t before = counts[1] + counts[2] + counts[3] + counts[4];

        nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
        CHECK(tvmrt_launch(pool, add_part, counts, THREADS) == TVMCC_OK);
        launches++;
        alone += counts[1] + counts[2] + counts[3] + counts[4] == before;
    }
    CHECK_INT(counts[0], launches);
    CHECK_INT(alone, 3);
}

/* Meets itself, for which other parts would be waited for. */
static void alone_part(void *ctx, uint32_t id, uint32_t parts)
{
    Job *job = ctx;

    tvmrt_barrier(job->pool, id);
    job->seen[id] += parts;
}

/* In a child of fork, which has none of the threads. */
static bool runs_alone(tvmrt_pool *pool)
{
    Job  job = {.pool = pool};
    bool ok = true;

    for (uint32_t i = 1; i <= 2; i++)
        ok = ok && tvmrt_launch(pool, alone_part, &job, THREADS) == TVMCC_OK && job.seen[0] == i &&
             !job.seen[1];
    tvmrt_pool_free(pool);
    return ok;
}

static int child_status(tvmrt_pool *pool)
{
    int   status = -1;
    pid_t child;

    fflush(stdout);
    if ((child = fork()) == 0) {
        alarm(20);
        _exit(!runs_alone(pool));
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return status;
}

/* While a launch is under way in the parent. */
static void forking_part(void *ctx, uint32_t id, uint32_t parts)
{
    Job *job = ctx;

    (void)parts;
    if (id == 0)
        job->wrong[0] = (uint32_t)child_status(job->pool);
    tvmrt_barrier(job->pool, id);
}

static void test_fork(tvmrt_pool *pool)
{
    Job job = {.pool = pool};

    CHECK_INT(child_status(pool), 0);
    CHECK(tvmrt_launch(pool, forking_part, &job, 3) == TVMCC_OK);
    CHECK_INT(job.wrong[0], 0);
    CHECK_INT(run(pool, THREADS), 0); /* the parent's threads are as they were */
}

static void test_null(void)
{
    tvmcc_params params = {.threads = 3};
    uint32_t     count = 0;

    tvmrt_pool_use(NULL, &params);
    CHECK(params.threads == 1 && !params.launch && !params.barrier && !params.user);
    tvmrt_pool_use(NULL, NULL);
    CHECK_INT(tvmrt_pool_threads(NULL), 1);
    CHECK(tvmrt_launch(NULL, add_part, &count, 1) == TVMCC_E_NULL);
    tvmrt_barrier(NULL, 0);
    tvmrt_pool_free(NULL);
    CHECK(!tvmrt_pool_new(NULL, 0, 1));
    CHECK(!tvmrt_pool_new(memory, sizeof memory, UINT32_MAX));
}

int main(void)
{
    tvmcc_params params = {.struct_bytes = sizeof params};
    uint32_t     counts[THREADS] = {0}, wrong = 0;
    pthread_t    thread;
    tvmrt_pool  *pool;

    CHECK(tvmrt_pool_bytes(0) == 0);
    CHECK(tvmrt_pool_bytes(THREADS) <= sizeof memory);
    CHECK(!tvmrt_pool_new(memory, tvmrt_pool_bytes(THREADS) - 1, THREADS));
    CHECK(!tvmrt_pool_new(memory + 8, sizeof memory - 8, THREADS));
    pool = tvmrt_pool_new(memory, sizeof memory, THREADS);
    CHECK(pool != NULL);
    if (!pool)
        return 1;
    shared_pool = pool;
    tvmrt_pool_use(pool, &params);
    CHECK(params.threads == THREADS && params.user == pool);
    CHECK(params.launch == tvmrt_launch && params.barrier == tvmrt_barrier);

    for (uint32_t i = 0; i < 30; i++)
        CHECK_INT(run(pool, 1 + i % THREADS), 0);
    test_short(pool);
    CHECK(tvmrt_launch(pool, add_part, counts, 0) == TVMCC_OK);
    CHECK(tvmrt_launch(pool, add_part, counts, THREADS + 1) == TVMCC_E_MISMATCH);
    CHECK(tvmrt_launch(pool, NULL, counts, 1) == TVMCC_E_NULL);

    for (int i = 0; i < 3; i++) { /* long enough for the workers to sleep */
        nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
        CHECK_INT(run(pool, THREADS), 0);
    }
    CHECK(pthread_create(&thread, NULL, other_thread, &wrong) == 0);
    for (int i = 0; i < 20; i++)
        CHECK_INT(run(pool, 4), 0);
    pthread_join(thread, NULL);
    CHECK_INT(wrong, 0);
    test_fork(pool);
    tvmrt_pool_free(pool);
    test_null();
    test_together();

    pool = tvmrt_pool_new(memory, sizeof memory, 1);
    CHECK_INT(run(pool, 1), 0);
    tvmrt_pool_free(pool);
    CHECK(tvmrt_cpu_count() >= 1);
    return check_result();
}
