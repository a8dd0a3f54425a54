/* GEMM and GEMV: nn.dense, nn.matmul, nn.batch_matmul.
 *
 *   %dense[m,n] = sum[k] %x[m,k] * %w[n,k]
 *
 * A constant weight is packed into panels of NV vectors, `(n//32, k, n%32)`, read strictly in
 * order. Rows are cut into tiles of up to P rows by NV vectors of columns (accumulators in
 * registers); a chunk of k keeps a panel in L1 while all row tiles use it.  One row (GEMV) keeps
 * more columns instead, since the stream of weights is what limits it. */
#include "schedules/cpu/cpu.h"

typedef struct {
    int64_t b, m, n, k;
} GemmSizes;

static GemmSizes gemm_sizes(const Sched *s)
{
    GemmSizes z = {iter_extent(s, "dense", "b"), iter_extent(s, "dense", "m"),
                   iter_extent(s, "dense", "n"), iter_extent(s, "dense", "k")};

    return z;
}

/* k of a chunk: a panel of at most 24 KiB, no fewer than 96 steps. */
static int64_t chunk_k(const GemmSizes *z, int64_t width)
{
    int64_t most = 24576 / (width * 4), kb = divisor_upto(z->k, most < 1 ? 1 : most);

    return kb < 96 ? z->k : kb;
}

void sched_dense(Sched *s)
{
    GemmSizes   z = gemm_sizes(s);
    int64_t     lanes = cpu_lanes(s), rows = z.m ? z.m : 1;
    const char *out;

    inline_prologue(s, "dense");
    try_step(s, "fold_init bias -> dense");
    if (s->target->has_fma)
        step(s, "contract dense");
    out = inline_epilogue(s, "dense");

    int64_t vectors = z.n / lanes;
    if (z.n % lanes || vectors == 0) {
        dense_ragged(s, out);
        return;
    }
    RegTile t = rows == 1
                    ? (RegTile){1, divisor_upto(vectors, s->target->vector_regs > 16 ? 16 : 8)}
                    : cpu_tile(s, vectors, rows);
    int64_t kb = rows == 1 ? z.k : chunk_k(&z, t.nv * lanes);
    try_step(s, "transform_layout %%w (n, k) -> (n//%lld, k, n%%%lld)", (long long)(t.nv * lanes),
             (long long)(t.nv * lanes));
    step(s, "split %%n by %lld -> %%nc, %%ni", (long long)(t.nv * lanes));
    step(s, "split %%ni by %lld -> %%nv, %%j", (long long)lanes);
    step(s, "split %%k by %lld -> %%kc, %%kb", (long long)kb);
    step(s, "reorder %%nc, %%kc, %%m, %%kb, %%nv, %%j");
    step(s, "split %%m by %lld tail=even -> %%t, %%p", (long long)t.pixels);
    step(s, "reorder %%kb, %%p, %%nv, %%j");
    step(s, "cache_write dense reg at %%t");
    if (out)
        step(s, "reverse_compute_at %s %%t", out);
    step(s, "vectorize %%j");
    step(s, "unroll %%p, %%nv");
    if (!is_tiny(s, (z.b ? z.b : 1) * rows * z.n * z.k)) {
        if (z.b > 1)
            step(s, "parallel %%b");
        else
            step(s, "parallel %%nc");
    }
    step(s, "outline %%t -> @gemm");
}

/* Columns that are no whole number of vectors: the weight is padded to whole ones (surplus lanes
 * are zero), the stores of the last panel are masked. */
void dense_ragged(Sched *s, const char *out)
{
    int64_t lanes = cpu_lanes(s);

    if (lanes > 1) {
        try_step(s, "transform_layout %%w (n, k) -> (n//%lld, k, n%%%lld)", (long long)lanes,
                 (long long)lanes);
        step(s, "split %%n by %lld tail=if -> %%nc, %%j", (long long)lanes);
        step(s, "reorder %%nc, %%m, %%k, %%j");
        step(s, "cache_write dense reg at %%m");
        if (out)
            step(s, "reverse_compute_at %s %%m", out);
        step(s, "vectorize %%j");
    }
}
