/* Calls the model of counted.relay: a value of the run decides the rows of two results.  With one
 * thread, with threads that meet at barriers, and phase by phase; cancelled at each of its first
 * STEPS steps. */
#include "net.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64, ROWS = 48, WIDE = 256, PARTS = 3 };

static float x[MOST * WIDE], w[WIDE * WIDE], a[ROWS * WIDE], b[2 * ROWS], c[MOST * WIDE];
static int   failures;

static void expect(int ok, const char *what, int64_t n, int64_t k)
{
    if (ok)
        return;
    printf("N = %d, K = %d: %s\n", (int)n, (int)k, what);
    failures++;
}

/* ---- threads ---------------------------------------------------------------------------------- */

typedef struct {
    void (*worker)(void *ctx, uint32_t part, uint32_t parts);
    void    *ctx;
    uint32_t part, parts;
} Work;

static pthread_barrier_t meeting;

static void *work(void *arg)
{
    Work *p = arg;

    p->worker(p->ctx, p->part, p->parts);
    return NULL;
}

static int32_t launch(void *user, void (*worker)(void *, uint32_t, uint32_t), void *ctx,
                      uint32_t parts)
{
    pthread_t thread[PARTS];
    Work      all[PARTS];

    (void)user;
    for (uint32_t i = 0; i < parts; i++) {
        all[i] = (Work){worker, ctx, i, parts};
        pthread_create(&thread[i], NULL, work, &all[i]);
    }
    for (uint32_t i = 0; i < parts; i++)
        pthread_join(thread[i], NULL);
    return 0;
}

static void meet(void *user, uint32_t part)
{
    (void)user;
    (void)part;
    pthread_barrier_wait(&meeting);
}

static int32_t cancel(void *user, uint32_t event, uint32_t step, uint32_t part)
{
    (void)event, (void)part;
    return step == *(uint32_t *)user;
}

/* ---- values ----------------------------------------------------------------------------------- */

static int row_agrees(const float *row, const float *got)
{
    for (int o = 0; o < WIDE; o++) {
        double sum = 0, d;

        for (int i = 0; i < WIDE; i++)
            sum += (double)row[i] * w[o * WIDE + i];
        d = sum - got[o];
        if (!(d < 1e-3 && d > -1e-3))
            return 0;
    }
    return 1;
}

static void check(int64_t n, int64_t k)
{
    expect(row_agrees(x + (n - 1) * WIDE, c + (n - 1) * WIDE), "other values", n, k);
    for (int64_t r = 0; r < k; r++) {
        for (int i = 0; i < WIDE; i++)
            if (c[r * WIDE + i] < 0 ? a[r * WIDE + i] != 0 : a[r * WIDE + i] != c[r * WIDE + i]) {
                expect(0, "other values", n, k);
                return;
            }
    }
    for (int64_t i = 0; i < 2 * k; i++)
        expect(b[i] == (float)i, "other numbers", n, k);
    for (size_t i = (size_t)k * WIDE * sizeof(float); i < sizeof a; i++)
        if (((unsigned char *)a)[i] != 0xff) {
            expect(0, "stores behind the result", n, k);
            return;
        }
}

int main(void)
{
    void        *arena = aligned_alloc(64, NET_ARENA_BYTES(PARTS));
    tvmcc_params params[3] = {{.struct_bytes = sizeof params[0], .threads = 1}};

    for (int i = 0; i < MOST * WIDE; i++)
        x[i] = (float)(i % 13) / 16 - 0.375f;
    for (int i = 0; i < WIDE * WIDE; i++)
        w[i] = (float)(i % 7) / 32 - 0.09375f;
    pthread_barrier_init(&meeting, NULL, PARTS);
    params[0].arena = arena;
    params[0].arena_bytes = NET_ARENA_BYTES(PARTS);
    params[1] = params[0], params[1].threads = PARTS, params[1].launch = launch;
    params[2] = params[1], params[2].barrier = meet;
    for (int64_t n = 1; n <= MOST; n += n == 1 ? 6 : 19)
        for (int64_t k = 0; k <= n; k += k < 2 ? 1 : 7)
            for (int how = 0; how < 3; how++) {
                int64_t     dx[2] = {n, WIDE}, da[2] = {-7, -7}, db[1] = {-7}, dc[2];
                tvmcc_value vx = {TVMCC_FLOAT, 32, 1, 2, dx, x, 0};
                tvmcc_value va = {0, 0, 0, 2, da, a, sizeof a}, vb = {0, 0, 0, 1, db, b, sizeof b},
                            vc = {0, 0, 0, 2, dc, c, sizeof c};
                net_inputs  in = {&vx, w};
                net_outputs out = {&va, &vb, &vc};

                for (int64_t r = 0; r < n; r++)
                    x[r * WIDE] = r % 2 == 0                ? r / 2 < k ? 1.0f : -1.0f
                                  : (n + 1) / 2 + r / 2 < k ? 1.0f
                                                            : -1.0f;
                memset(a, 0xff, sizeof a), memset(b, 0xff, sizeof b);
                int32_t rc = net_run_ex(&in, &out, &params[how]);
                if (k > ROWS) {
                    expect(rc == TVMCC_E_SHAPE, "beyond the bounds", n, k);
                    continue;
                }
                expect(rc == 0, tvmcc_strerror(rc), n, k);
                check(n, k);
                expect(da[0] == k && da[1] == WIDE && db[0] == 2 * k && dc[0] == n, "other shapes",
                       n, k);
                expect(va.bytes == (size_t)k * WIDE * 4 && vb.bytes == (size_t)k * 8, "other bytes",
                       n, k);
                vb.bytes = sizeof b - 1;
                expect(net_run_ex(&in, &out, &params[how]) == TVMCC_E_CAPACITY &&
                           vb.bytes == sizeof b,
                       "too little room", n, k);
                vb.bytes = sizeof b;
                for (int at = 0; at < STEPS; at++) { /* also before it is counted */
                    uint32_t     step = (uint32_t)at;
                    tvmcc_params p = params[how];
                    p.instrument = cancel, p.instrument_user = &step;
                    expect(net_run_ex(&in, &out, &p) == TVMCC_E_CANCELLED, "not cancelled", n, k);
                }
            }
    free(arena);
    return failures != 0;
}
