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

/* Columns of a panel in vectors.  One row is bound by the stream of weights: enough vectors to
 * cover the latency of their multiply-adds, no more, so that panels balance among the threads. */
static RegTile panel_tile(Sched *s, int64_t vectors, int64_t rows)
{
    int64_t most = s->target->vector_regs > 16 ? 4 : 8;
    RegTile t;

    if (rows == 1)
        return (RegTile){1, vectors < most ? vectors : most};
    /* As if any number of vectors divided the columns: the last panel is smaller. */
    t = cpu_tile(s, 60, rows);
    return vectors % t.nv == 0 || vectors > 8 * t.nv ? t : cpu_tile(s, vectors, rows);
}

/* The tensor of the rows; NULL if they are computed on the way. */
static const char *rows_tensor(const Sched *s)
{
    const Stmt *b = sched_block(s, "dense");
    const Prim *v = b ? b->kids[b->nkids - 1]->u.store.value : NULL;

    if (v && v->kind == PRIM_ADD) /* not contracted: dense + x * w */
        v = v->kids[1];
    if (!v || (v->kind != PRIM_FMA && v->kind != PRIM_MUL) || v->kids[0]->kind != PRIM_LOAD)
        return NULL;
    return v->kids[0]->u.load.buffer->name;
}

/* Rows of many columns of x conflict in the caches, or do not stay there while all panels go by:
 * then a chunk of x is copied, and the chunks go outside the panels. */
static bool wants_copy(const Sched *s, const GemmSizes *z, int64_t rows, int64_t panels, int64_t kb)
{
    int64_t l2 = s->target->l2_bytes ? s->target->l2_bytes : 262144;

    return rows >= 16 && panels >= 8 && kb < z->k && rows * kb * 4 <= l2 / 2 &&
           (rows * z->k * 4 > l2 / 2 || z->k * 4 % 4096 == 0);
}

void sched_dense(Sched *s)
{
    GemmSizes   z = gemm_sizes(s);
    int64_t     lanes = cpu_lanes(s), rows = z.m ? z.m : 1, vectors = z.n / lanes;
    const char *out;

    inline_prologue(s, "dense");
    try_step(s, "fold_init bias -> dense");
    if (s->target->has_fma)
        try_step(s, "contract dense"); /* integers have none */
    out = inline_epilogue(s, "dense");
    /* Less than a vector: as many lanes as there are columns. */
    if (!vectors)
        lanes = z.n, vectors = 1;

    RegTile t = panel_tile(s, vectors, rows);
    int64_t width = t.nv * lanes;
    int64_t kb = rows == 1 ? z.k : chunk_k(&z, width);
    try_step(s, "transform_layout %%w (n, k) -> (n//%lld, k, n%%%lld)", (long long)width,
             (long long)width);
    int64_t     panels = z.n / width;
    const char *x = rows_tensor(s);
    bool        copy = x && wants_copy(s, &z, rows, panels, kb);
    step(s, "reorder %%n, %%m");
    if (copy) /* groups of panels for the threads, each with a copy of its own */
        step(s, "split %%n by %lld -> %%nb, %%ng", (long long)(ceil_div(panels, 4) * width));
    step(s, "split %s by %lld tail=peel -> %%nc, %%ni", copy ? "%ng" : "%n", (long long)width);
    step(s, "split %%k by %lld -> %%kc, %%kb", (long long)kb);
    if (copy) {
        step(s, "reorder %%kc, %%nc, %%m, %%kb, %%ni");
        step(s, "cache_read %%%s dense private at %%kc", x);
    } else {
        step(s, "reorder %%kc, %%m, %%kb, %%ni");
    }
    step(s, "split %%m by %lld tail=even -> %%t, %%p", (long long)t.pixels);
    step(s, "reorder %%kb, %%p, %%ni");
    step(s, "cache_write dense reg at %%t");
    if (out)
        step(s, "reverse_compute_at %s %%t", out);
    if (out && kb < z.k)
        try_step(s, "inplace %%dense -> %%%s", out);
    /* Now every copy: the panel that is left may end with a part of a vector. */
    step(s, "split %%ni by %lld tail=peel -> %%nv, %%j", (long long)lanes);
    step(s, "vectorize %%j");
    step(s, "unroll %%p, %%nv");
    if (!is_tiny(s, (z.b ? z.b : 1) * rows * z.n * z.k)) {
        if (z.b > 1)
            step(s, "parallel %%b");
        else
            step(s, "parallel %s", copy ? "%nb" : "%nc");
    }
    step(s, "outline %%t -> @gemm");
}
