/* Algorithms of sorts and running sums, which are one thing after the other: fine for a CPU, of
 * which a GPU has one slow thread.  Threads of a block go through a row in rounds instead, in each
 * of which every cell meets another one in shared memory, chunk by chunk where a row is longer than
 * that; or each has a column of its own.
 *
 *   sort(%x)    ->  sort(%x, algorithm="network", chunk=1024)
 *   cumsum(%x)  ->  cumsum(%x, algorithm="doubling") */
#include "passes/graph/choose_algorithms.h"

#include <math.h>

/* The rows of a call. */
typedef struct {
    Machine  m;
    uint32_t axis;
    int64_t  rows, n, open; /* open: of the rows, how many a run decides */
    double   behind;        /* neighbours of a cell that other rows have */
} RowWork;

static bool rows_of(const Ctx *c, const Expr *call, int64_t axis, RowWork *r)
{
    const Type *x = call_arg(call, 0)->type;

    *r = (RowWork){.rows = 1};
    if (!shares_rows(c->target))
        return false;
    r->m = machine_of(c->target);
    r->axis = axis_from_front(axis, x->n);
    for (uint32_t i = 0; i < x->n; i++) {
        int64_t cells = idx_usual(x->dims[i]);

        if (i == r->axis) {
            r->n = cells;
            continue;
        }
        if (!checked_mul(r->rows, cells, &r->rows))
            return false;
        if (!idx_is_const(x->dims[i], NULL))
            r->open = (r->open ? r->open : 1) * cells;
    }
    return r->rows > 0;
}

/* ---- sorts --------------------------------------------------------------------------------------- */

typedef struct {
    RowWork of;
    DType   type;
    int64_t k;
} SortWork;

static bool sort_work(const Ctx *c, const Expr *call, SortWork *w)
{
    const Type *x = call_arg(call, 0)->type;
    bool        first = call_is(call, "topk");

    if (!rows_of(c, call, first ? ATTRS_OF(TopKAttrs, call)->axis : ATTRS_OF(SortAttrs, call)->axis,
                 &w->of))
        return false;
    w->type = x->dtype;
    w->k = first ? ATTRS_OF(TopKAttrs, call)->k : w->of.n;
    return true;
}

static double network_cycles(const void *work, int64_t chunk)
{
    const SortWork *w = work;
    const RowWork  *r = &w->of;
    int64_t         key = sort_key_bytes(w->type);
    SortRuns        runs = {.runs = r->n, .width = 1, .valid = r->n};
    double          cycles = 0;

    while (runs.runs > 1) {
        SortRuns next = sort_next(&runs, w->k, chunk);

        if (next.network) {
            int64_t      stages = doublings(next.network);
            DeviceRounds z =
                device_network(r->rows * next.runs, next.network, stages * (stages + 1) / 2, key);
            z.open = r->open;
            cycles += device_rounds_best(&r->m, &z);
        } else {
            double cells = (double)r->rows * (double)next.valid;
            cycles += device_search_cycles(&r->m, cells, log2((double)runs.width) + 1, (double)key);
        }
        cycles += device_launch_cycles(&r->m);
        runs = next;
    }
    return cycles;
}

/* Cycles of all rows in chunks of so many cells. */
typedef double ChunkCycles(const void *work, int64_t chunk);

/* The best size of chunks; 0: all of a row. */
static int64_t best_chunk(const RowWork *r, ChunkCycles *of, const void *work, double *cycles)
{
    int64_t chunk = 0;
    double  each;

    *cycles = of(work, r->n);
    for (int64_t n = limit_gpu_row_chunk(&r->m); n < r->n && n <= r->m.shared_bytes; n *= 2)
        if ((each = of(work, n)) < *cycles) {
            *cycles = each;
            chunk = n;
        }
    return chunk;
}

static int64_t best_network(const SortWork *w, double *cycles)
{
    return best_chunk(&w->of, network_cycles, w, cycles);
}

double time_sort(Ctx *c, const Expr *call, const Algorithm *a)
{
    SortWork w;

    (void)a;
    return sort_work(c, call, &w) ? device_alone_cycles(&w.of.m, (double)w.of.rows * (double)w.of.n)
                                  : NEVER;
}

double time_sort_network(Ctx *c, const Expr *call, const Algorithm *a)
{
    const Type *x = call_arg(call, 0)->type;
    SortWork    w;
    double      cycles;

    (void)a;
    if (!sort_work(c, call, &w) || !sort_suits_network(x, w.of.axis, idx_const(c->arith, w.k)))
        return NEVER;
    best_network(&w, &cycles);
    return fmin(cycles, NEVER);
}

const Expr *make_sort_network(Ctx *c, const Expr *call, const Algorithm *a)
{
    const Expr *e = set_algorithm(c, call, a);
    SortWork    w;
    double      cycles;

    if (!sort_work(c, call, &w))
        return NULL;
    return set_chunk(c, e, best_network(&w, &cycles));
}

/* ---- running sums -------------------------------------------------------------------------------- */

static bool scan_rows(const Ctx *c, const Expr *call, RowWork *r)
{
    return rows_of(c, call, ATTRS_OF(ScanAttrs, call)->axis, r);
}

double time_scan(Ctx *c, const Expr *call, const Algorithm *a)
{
    RowWork r;

    (void)a;
    return scan_rows(c, call, &r) ? device_columns_cycles(&r.m, 1, (double)r.rows * (double)r.n)
                                  : NEVER;
}

double time_scan_columns(Ctx *c, const Expr *call, const Algorithm *a)
{
    RowWork r;

    (void)a;
    return scan_rows(c, call, &r) && r.rows > 1
               ? device_launch_cycles(&r.m) +
                     device_columns_cycles(&r.m, (double)r.rows, (double)r.n)
               : NEVER;
}

static double doubling_cycles(const RowWork *r, int64_t n, int64_t chunk, int64_t bytes)
{
    int64_t      chunks = ceil_div(n, chunk);
    DeviceRounds z = device_doubling(r->rows * chunks, chunk, doublings(chunk), bytes);

    z.open = r->open;
    double cycles = device_launch_cycles(&r->m) + device_rounds_best(&r->m, &z);

    if (chunks == 1)
        return cycles;
    return cycles + doubling_cycles(r, chunks, chunk < chunks ? chunk : chunks, bytes) +
           device_copy_cycles(&r->m, (double)(r->rows * 3 * bytes) * (double)n);
}

typedef struct {
    const RowWork *rows;
    int64_t        bytes;
} SumWork;

static double sums_cycles(const void *work, int64_t chunk)
{
    const SumWork *w = work;

    return doubling_cycles(w->rows, w->rows->n, chunk, w->bytes);
}

static int64_t best_sums(const RowWork *r, int64_t bytes, double *cycles)
{
    return best_chunk(r, sums_cycles, &(SumWork){r, bytes}, cycles);
}

double time_scan_doubling(Ctx *c, const Expr *call, const Algorithm *a)
{
    RowWork r;
    double  cycles;

    (void)a;
    if (!scan_rows(c, call, &r) || !scan_suits_doubling(call->type, r.axis))
        return NEVER;
    best_sums(&r, dtype_bytes(call->type->dtype), &cycles);
    return fmin(cycles, NEVER);
}

const Expr *make_scan_doubling(Ctx *c, const Expr *call, const Algorithm *a)
{
    const Expr *e = set_algorithm(c, call, a);
    RowWork     r;
    double      cycles;

    if (!scan_rows(c, call, &r))
        return NULL;
    return set_chunk(c, e, best_sums(&r, dtype_bytes(call->type->dtype), &cycles));
}
