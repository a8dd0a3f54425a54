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
 */
#include "ops/common.h"

const Type *rel_scan(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const ScanAttrs *a = attrs;
    uint32_t         axis;

    if (!rel_tensors(c, loc, in, nin) || !rel_number(c, loc, in[0]) ||
        !rel_axis(c, loc, a->axis, in[0]->n, &axis))
        return NULL;
    return in[0];
}

typedef struct {
    Ctx          *c;
    const Tensor *x;
    const Type   *t;
    uint32_t      axis;
    bool          exclusive, product;
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

/* The sum starts from -0, to which any number can be added unchanged; an exclusive one is seen. */
static const Tensor *along_rows(const Sums *s)
{
    Ctx        *c = s->c;
    uint32_t    n = s->axis;
    bool        seen = s->exclusive || s->product || !dtype_is_float(s->t->dtype);
    Axes        outer = te_axes(c, n, s->t->dims, NULL);
    Scan       *k = te_scan(c, outer, "k", s->t->dims[n]);
    const Idx  *extent[TE_MAX_AXES], *first[TE_MAX_AXES], *now[TE_MAX_AXES], *next[TE_MAX_AXES];
    const Idx  *at[TE_MAX_AXES];
    const Prim *start = seen ? nothing(s) : prim_num(c, s->t->dtype, -0.0);

    for (uint32_t i = 0; i < n; i++) {
        extent[i + 1] = outer.extent[i];
        at[i] = first[i + 1] = now[i + 1] = next[i + 1] = outer.at[i];
    }
    extent[0] = idx_addc(c->arith, s->t->dims[n], 1);
    first[0] = idx_const(c->arith, 0);
    at[n] = now[0] = k->t;
    next[0] = idx_addc(c->arith, k->t, 1);
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

static bool scan(Ctx *c, const OpCall *call, const Tensor *const *in, bool product,
                 const Tensor **out)
{
    const ScanAttrs *a = call->attrs;
    Sums    s = {c, in[0], call->out[0], axis_of(a->axis, call->out[0]->n), a->exclusive, product};
    Axes    all = te_axes_of(c, s.t);
    int64_t cells = 1;

    if (s.axis + 1 == s.t->n)
        out[0] = along_rows(&s);
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
