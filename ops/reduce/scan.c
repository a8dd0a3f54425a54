/* cumsum, cumprod: running sums and products along an axis.    %1 = cumsum(%0, axis=1);
 *
 * Along the last axis a number holds what was summed so far,
 *
 *     scan k<100 [i0<4] { %total[0<101,i0<4] = -0.0
 *                         each { %total[k+1<101,i0<4] = %total[k,i0] + %x[i0,k]
 *                                %out[i0<4,k<100] = %total[k+1,i0] } }
 *
 * along another one the row of the result before does:
 *
 *     scan k<99 { %out[0<100,j<8] = %x[0,j]  each { %out[k+1<100,j<8] = %out[k,j] + %x[k+1,j] } }
 *
 * Algorithm `columns`: along any axis as along the last one, so that each column is a scan of its
 * own.  Algorithm `doubling`: in each round all cells add what stands 1, 2, 4, .. before them,
 *
 *     scan t<10 [i0<4, b<1] {
 *       %total[i0,b,0,j<1000] = %x[i0,j]
 *       each { %total[i0,b,t+1,j] = %total[i0,b,t,j-2^t] + %total[i0,b,t,j], if there is one } .. }
 *
 * in chunks of a row, the sums of which are summed up the same way and added to those behind. */
#include "ops/common.h"

#include <string.h>

const Type *rel_scan(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const ScanAttrs *a = attrs;
    uint32_t         axis;

    if (!rel_tensors(c, loc, in, nin) || !rel_number(c, loc, in[0]) ||
        !rel_axis(c, loc, a->axis, in[0]->n, &axis) ||
        !rel_algorithm(c, loc, a->algorithm, 2, (const char *[]){"columns", "doubling"}))
        return NULL;
    if (a->chunk < 0)
        return error_at(c, E_TYPE, loc, "chunks of %lld cells", (long long)a->chunk);
    return in[0];
}

typedef struct {
    Ctx          *c;
    const Tensor *x;
    const Type   *t;
    uint32_t      axis;
    bool          exclusive, product;
    uint32_t      step; /* doubling: the number of the scan, whose axes have names of their own */
} Sums;

static const Prim *more(const Sums *s, const Prim *so_far, const Prim *x)
{
    return (s->product ? prim_mul : prim_add)(s->c, so_far, x);
}

/* What an exclusive one begins with. */
static const Prim *nothing(const Sums *s)
{
    return prim_num(s->c, s->t->dtype, s->product);
}

static const char *axis_name(const Sums *s, const char *name)
{
    return s->step ? intern_printf(s->c->strings, "%s.%u", name, s->step) : name;
}

/* Axes over all dimensions but the one that is summed along, then `more` others. */
static Axes outer_axes(const Sums *s, uint32_t more, const int64_t *extent,
                       const char *const *names)
{
    const Idx  *extents[TE_MAX_AXES];
    const char *all[TE_MAX_AXES];
    uint32_t    n = 0;

    for (uint32_t i = 0; i < s->t->n; i++)
        if (i != s->axis) {
            extents[n] = s->t->dims[i];
            all[n++] = axis_name(s, intern_printf(s->c->strings, "i%u", i));
        }
    for (uint32_t i = 0; i < more; i++) {
        extents[n] = idx_const(s->c->arith, extent[i]);
        all[n++] = axis_name(s, names[i]);
    }
    return te_axes(s->c, n, extents, all);
}

/* Cell `at` of the row that such axes say. */
static void cell_of(const Sums *s, const Idx *const *outer, const Idx *at, const Idx **cell)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->t->n; i++)
        cell[i] = i == s->axis ? at : outer[n++];
}

/* A number holds the sum of each row.  It starts from -0, to which any number can be added
 * unchanged; an exclusive one is seen. */
static const Tensor *row_sums(const Sums *s)
{
    Ctx        *c = s->c;
    uint32_t    n = s->t->n - 1;
    bool        seen = s->exclusive || s->product || !dtype_is_float(s->t->dtype);
    Axes        outer = outer_axes(s, 0, NULL, NULL);
    Scan       *k = te_scan(c, outer, "k", s->t->dims[s->axis]);
    const Idx  *extent[TE_MAX_AXES], *first[TE_MAX_AXES], *now[TE_MAX_AXES], *next[TE_MAX_AXES];
    const Idx  *at[TE_MAX_AXES];
    const Prim *start = seen ? nothing(s) : prim_num(c, s->t->dtype, -0.0);

    for (uint32_t i = 0; i < n; i++) {
        extent[i + 1] = outer.extent[i];
        first[i + 1] = now[i + 1] = next[i + 1] = outer.at[i];
    }
    extent[0] = idx_addc(c->arith, s->t->dims[s->axis], 1);
    first[0] = idx_const(c->arith, 0);
    now[0] = k->t;
    next[0] = idx_addc(c->arith, k->t, 1);
    cell_of(s, outer.at, k->t, at);
    const Tensor *total = te_scan_tensor(c, k, "total", s->t->dtype, n + 1, extent);
    const Tensor *out = te_scan_tensor(c, k, "out", s->t->dtype, n + 1, s->t->dims);
    const Prim   *sum = more(s, te_at(c, total, now), te_at(c, s->x, at));

    te_scan_def(c, k, SCAN_START, total, first, (Axes){0}, start);
    if (s->exclusive)
        te_scan_def(c, k, SCAN_EACH, out, at, (Axes){0}, te_at(c, total, now));
    te_scan_def(c, k, SCAN_EACH, total, next, (Axes){0}, sum);
    if (!s->exclusive)
        te_scan_def(c, k, SCAN_EACH, out, at, (Axes){0}, te_at(c, total, next));
    te_scan_done(c, k);
    return out;
}

static const Tensor *row_by_row(const Sums *s)
{
    Ctx        *c = s->c;
    uint32_t    n = s->axis, behind = s->t->n - n - 1;
    Axes        outer = te_axes(c, n, s->t->dims, NULL);
    Axes        own[2]; /* of the start, of each round */
    const Idx  *first[TE_MAX_AXES], *now[TE_MAX_AXES], *next[TE_MAX_AXES];
    Scan       *k = te_scan(c, outer, "k", idx_addc(c->arith, s->t->dims[n], -1));
    const char *names[TE_MAX_AXES];

    for (uint32_t i = 0; i < behind; i++)
        names[i] = intern_printf(c->strings, "j%u", i);
    for (int i = 0; i < 2; i++)
        own[i] = te_axes(c, behind, s->t->dims + n + 1, names);
    for (uint32_t i = 0; i < s->t->n; i++) {
        first[i] = i < n ? outer.at[i] : i > n ? own[0].at[i - n - 1] : idx_const(c->arith, 0);
        now[i] = next[i] = i < n ? outer.at[i] : i > n ? own[1].at[i - n - 1] : k->t;
    }
    next[n] = idx_addc(c->arith, k->t, 1);
    const Tensor *out = te_scan_tensor(c, k, "out", s->t->dtype, s->t->n, s->t->dims);
    const Prim   *x = te_at(c, s->x, s->exclusive ? now : next);

    te_scan_def(c, k, SCAN_START, out, first, own[0],
                s->exclusive ? nothing(s) : te_at(c, s->x, first));
    te_scan_def(c, k, SCAN_EACH, out, next, own[1], more(s, te_at(c, out, now), x));
    te_scan_done(c, k);
    return out;
}

/* ---- doubling ------------------------------------------------------------------------------------ */

/* Number i of a row of n that are to be summed: of the operand (NULL), or of [rows, n]. */
static const Prim *term(const Sums *s, const Tensor *of, const Idx *const *rows, const Idx *i)
{
    Ctx       *c = s->c;
    const Idx *at[TE_MAX_AXES], *before;

    if (of) {
        memcpy(at, rows, (s->t->n - 1) * sizeof *at);
        at[s->t->n - 1] = i;
        return te_at(c, of, at);
    }
    before = idx_max(c->arith, idx_addc(c->arith, i, -1), idx_const(c->arith, 0));
    cell_of(s, rows, s->exclusive ? before : i, at);
    if (!s->exclusive)
        return te_at(c, s->x, at);
    return prim_select(c, prim_lt(c, prim_int(c, DT_I32, 0), prim_index(c, DT_I32, i)),
                       te_at(c, s->x, at), nothing(s));
}

/* Running sums of n numbers of each row, chunk by chunk: [rows, chunks, chunk], or, of a single
 * chunk, the result; *whole: the sum of each chunk. */
static const Tensor *doubled(const Sums *s, const Tensor *of, int64_t n, int64_t chunk,
                             const Tensor **whole)
{
    Ctx     *c = s->c;
    Arith   *A = c->arith;
    int64_t  chunks = ceil_div(n, chunk), rounds = doublings(chunk);
    uint32_t rows = s->t->n - 1;

    Axes        outer = outer_axes(s, 1, &chunks, (const char *[]){"b"});
    Scan       *k = te_scan(c, outer, "t", idx_const(A, rounds));
    const Idx  *cells = idx_const(A, chunk), *b = outer.at[rows];
    const char *j = "j";
    Axes        own[3]; /* of the start, of each round, of the end */
    const Idx  *extent[TE_MAX_AXES], *at[TE_MAX_AXES], *before[TE_MAX_AXES], *result[TE_MAX_AXES];

    for (int i = 0; i < 3; i++)
        own[i] = te_axes(c, 1, &cells, &j);
    memcpy(extent, outer.extent, outer.n * sizeof *extent);
    memcpy(at, outer.at, outer.n * sizeof *at);
    extent[rows + 1] = idx_const(A, rounds + 1);
    extent[rows + 2] = cells;
    const Tensor *total = te_scan_tensor(c, k, "total", s->t->dtype, rows + 3, extent);
    const Idx    *i = idx_add(A, idx_mulc(A, b, chunk), own[0].at[0]);

    at[rows + 1] = idx_const(A, 0);
    at[rows + 2] = own[0].at[0];
    te_scan_def(c, k, SCAN_START, total, at, own[0],
                term(s, of, outer.at, idx_min(A, i, idx_const(A, n - 1))));
    const Prim *by = prim_bin(c, PRIM_SHL, prim_int(c, DT_I32, 1), prim_index(c, DT_I32, k->t));
    const Prim *from = prim_sub(c, prim_index(c, DT_I32, own[1].at[0]), by);
    const Prim *zero = prim_int(c, DT_I32, 0);

    at[rows + 1] = k->t;
    at[rows + 2] = own[1].at[0];
    memcpy(before, at, sizeof at);
    before[rows + 2] = idx_load(A, prim_max(c, from, zero), 0, chunk - 1);
    const Prim *mine = te_at(c, total, at), *both = more(s, te_at(c, total, before), mine);

    at[rows + 1] = idx_addc(A, k->t, 1);
    te_scan_def(c, k, SCAN_EACH, total, at, own[1],
                prim_select(c, prim_le(c, zero, from), both, mine));
    const Tensor *sums;

    at[rows + 1] = k->rounds;
    at[rows + 2] = own[2].at[0];
    if (chunks > 1 || of) {
        extent[rows] = chunks > 1 ? outer.extent[rows] : cells;
        extent[rows + 1] = cells;
        memcpy(result, outer.at, outer.n * sizeof *result);
        result[chunks > 1 ? rows + 1 : rows] = own[2].at[0];
        sums = te_scan_tensor(c, k, "sums", s->t->dtype, rows + (chunks > 1 ? 2 : 1), extent);
    } else {
        cell_of(s, outer.at, own[2].at[0], result);
        sums = te_scan_tensor(c, k, "out", s->t->dtype, rows + 1, s->t->dims);
    }
    te_scan_def(c, k, SCAN_END, sums, result, own[2], te_at(c, total, at));
    if (chunks > 1) {
        at[rows + 2] = idx_const(A, chunk - 1);
        *whole = te_scan_tensor(c, k, "whole", s->t->dtype, outer.n, outer.extent);
        te_scan_def(c, k, SCAN_END, *whole, outer.at, (Axes){0}, te_at(c, total, at));
    }
    te_scan_done(c, k);
    return sums;
}

/* What chunk by chunk was summed up, with the sum of all chunks before: the result, or [rows, n].
 */
static const Tensor *joined(const Sums *s, bool result, int64_t n, int64_t chunk,
                            const Tensor *sums, const Tensor *before)
{
    Ctx       *c = s->c;
    Arith     *A = c->arith;
    uint32_t   rows = s->t->n - 1;
    Axes       all = result ? te_axes_of(c, s->t) : outer_axes(s, 1, &n, (const char *[]){"j"});
    const Idx *i = result ? all.at[s->axis] : all.at[rows], *at[TE_MAX_AXES];
    uint32_t   k = 0;

    for (uint32_t d = 0; d < s->t->n; d++)
        if (d != (result ? s->axis : rows))
            at[k++] = all.at[d];
    at[rows] = idx_divc(A, i, chunk);
    at[rows + 1] = idx_modc(A, i, chunk);
    const Prim *mine = te_at(c, sums, at);

    at[rows] = idx_max(A, idx_addc(A, at[rows], -1), idx_const(A, 0));
    const Prim *both = more(s, te_at(c, before, at), mine);
    const Prim *first = prim_lt(c, prim_index(c, DT_I32, i), prim_int(c, DT_I32, chunk));

    return te_compute(c, result ? "out" : "joined", s->t->dtype, all,
                      prim_select(c, first, mine, both));
}

static const Tensor *by_doubling(const Sums *s, const Tensor *of, int64_t n, int64_t chunk)
{
    const Tensor *whole = NULL;
    Sums          next = *s;

    chunk = chunk < 2 || chunk > n ? n : chunk;
    const Tensor *sums = doubled(s, of, n, chunk, &whole);

    if (!whole)
        return sums;
    next.step++;
    return joined(s, !of, n, chunk, sums, by_doubling(&next, whole, ceil_div(n, chunk), chunk));
}

int64_t doublings(int64_t n)
{
    int64_t k = 0;

    while ((int64_t)1 << k < n)
        k++;
    return k;
}

bool scan_suits_doubling(const Type *x, uint32_t axis)
{
    int64_t n;

    return x->n + 2 < TE_MAX_AXES && idx_is_const(x->dims[axis], &n) && n > 1;
}

static bool scan(Ctx *c, const OpCall *call, const Tensor *const *in, bool product,
                 const Tensor **out)
{
    const ScanAttrs *a = call->attrs;
    Sums s = {c, in[0], call->out[0], axis_of(a->axis, call->out[0]->n), a->exclusive, product, 0};
    Axes all = te_axes_of(c, s.t);
    int64_t cells = 1;

    if (!strcmp(a->algorithm, "doubling") && scan_suits_doubling(s.t, s.axis))
        out[0] = by_doubling(&s, NULL, dim_of(s.t, s.axis), a->chunk);
    else if (s.axis + 1 == s.t->n || !strcmp(a->algorithm, "columns"))
        out[0] = row_sums(&s);
    else if (idx_is_const(s.t->dims[s.axis], &cells) && !cells) /* there is no first row */
        return te_out(c, call, &all, te_at(c, in[0], all.at), out);
    else
        out[0] = row_by_row(&s);
    return true;
}

bool te_cumsum(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return scan(c, call, in, false, out);
}

bool te_cumprod(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return scan(c, call, in, true, out);
}
