/* Matrix products on a GPU: square tiles through memory that a block of threads shares.
 *
 *     split m by 16 -> mb, mt;  split n by 16 -> nb, nt;  split k by 16 -> ko, ki
 *     reorder mb, nb, mt, nt, ko, ki        a block of 16 x 16 threads, one cell each
 *     bind mb blockIdx.y, nb blockIdx.x, mt threadIdx.y, nt threadIdx.x
 *     bind b blockIdx.z                     of a batch, a product each
 *     cache_write dense reg at nt           the sum in a register, in the order of k
 *     cache_read both operands shared at ko each element is fetched once a block, not once a thread
 *     reverse_compute_at last nt
 *
 * Only where the sizes are multiples of the tile; sched_gpu takes the rest. */
#include "schedules/schedules.h"

#include <math.h>
#include <string.h>

static const char *const loops[] = {"dense.m", "dense.n", "dense.k"};

/* Tiles of that side divide the product, and a block may have as many threads as it has cells. */
static bool fits(const Sched *s, int64_t side)
{
    int64_t e = 0;

    for (uint32_t i = 0; i < COUNT(loops); i++)
        if (!sched_loop_extent(s, loops[i], &e) || e % side)
            return false;
    return s->target->max_threads >= side * side;
}

static int64_t usual_side(const Sched *s)
{
    Machine m = machine_of(s->target);

    return limit_gpu_side(&m);
}

/* Several products: as many blocks above each other as devices can count. */
static bool fits_batch(const Sched *s, bool *several)
{
    Machine m = machine_of(s->target);
    int64_t e = 0;

    *several = sched_loop_extent(s, "dense.b", &e);
    return !*several || e <= limit_gpu_batch(&m);
}

static void decide(Sched *s, void *plan)
{
    int64_t   *side = plan;
    Machine    m = machine_of(s->target);
    Candidates k = candidates(s);

    for (int64_t n = limit_gpu_least_side(&m); n <= limit_gpu_most_side(&m); n *= 2)
        if (fits(s, n))
            candidate(&k, n, 0, NAN);
    usual(&k, usual_side(s), 0);
    *side = pick_factor(s, "side", &k);
}

void sched_gpu_dense(Sched *s)
{
    const char *names[64], *follow;
    uint32_t    n = sched_blocks(s, names, COUNT(names));
    const Stmt *b = sched_block(s, "dense");
    int64_t     side;
    bool        batch;

    for (uint32_t i = 0; i + 1 < n; i++)
        try_step(s, "compute_inline %s", names[i]);
    n = sched_blocks(s, names, COUNT(names));
    follow = n == 2 && !strcmp(names[0], "dense") ? names[1] : NULL;
    if (!b || (n != 1 && !follow) || !fits(s, usual_side(s)) || !fits_batch(s, &batch)) {
        sched_gpu(s);
        return;
    }
    sched_decide(s, decide, &side);
    step(s, "split %%dense.m by %lld -> %%mb, %%mt", (long long)side);
    step(s, "split %%dense.n by %lld -> %%nb, %%nt", (long long)side);
    step(s, "split %%dense.k by %lld -> %%ko, %%ki", (long long)side);
    step(s, "reorder %s%%mb, %%nb, %%mt, %%nt, %%ko, %%ki", batch ? "%dense.b, " : "");
    if (batch)
        step(s, "bind %%dense.b blockIdx.z");
    step(s, "bind %%mb blockIdx.y");
    step(s, "bind %%nb blockIdx.x");
    step(s, "bind %%mt threadIdx.y");
    step(s, "bind %%nt threadIdx.x");
    step(s, "cache_write dense reg at %%nt");
    if (follow)
        step(s, "reverse_compute_at %s %%nt", follow);
    try_step(s, "cache_read %%p0 dense shared at %%ko");
    try_step(s, "cache_read %%w dense shared at %%ko");
}
