/* Parts and mirrors of one tensor: strided_slice, reverse.
 *
 *     %1 = strided_slice(%0, begin=[-1], end=[-1000], strides=[-1], axes=[2]);     // x[:, :, ::-1]
 *
 * As in Python: negative positions count from the end, then everything is clamped.  Positions may
 * be forms over symbolic dimensions; what is clamped then is a form, too: min(N, 100). */
#include "ops/common.h"

/* Start, step and length along each dimension. */
typedef struct {
    const Idx *start[TE_MAX_AXES], *n[TE_MAX_AXES];
    int64_t    step[TE_MAX_AXES];
    bool       cut[TE_MAX_AXES]; /* false: the whole dimension */
} Slice;

/* Far positions are clamped first, so that nothing overflows. */
static const Idx *near(Ctx *c, const Idx *x)
{
    int64_t v, most = INT64_C(1) << 40;

    return !idx_is_const(x, &v) ? x
           : v < -most          ? idx_const(c->arith, -most)
           : v > most           ? idx_const(c->arith, most)
                                : x;
}

/* Position x of a dimension, from its end if it is below 0, clamped to lo .. hi; NULL with an error
 * if it may be either. */
static const Idx *position(Ctx *c, Loc loc, const Idx *x, const Idx *dim, const Idx *lo,
                           const Idx *hi)
{
    x = near(c, x);
    if (x->lo < 0 && x->hi >= 0)
        return error_at(c, E_DIM, loc, "a slice at %s, which may be below 0 or not",
                        dim_text(c, x));
    if (x->hi < 0)
        x = idx_add(c->arith, x, dim);
    return idx_max(c->arith, lo, idx_min(c->arith, x, hi));
}

static bool slice_of(Ctx *c, Loc loc, const StridedSliceAttrs *a, const Type *t, Slice *s)
{
    Arith   *A = c->arith;
    uint32_t n = a->begin.n, seen = 0;

    *s = (Slice){0};
    if (a->end.n != n || (a->strides.n && a->strides.n != n) || (a->axes.n && a->axes.n != n) ||
        n > t->n)
        return error_at(c, E_TYPE, loc,
                        "a slice of %s with %u begins, %u ends, %u strides, %u axes",
                        type_text(c, t), n, a->end.n, a->strides.n, a->axes.n);
    for (uint32_t i = 0; i < n; i++) {
        const Idx *begin = a->begin.at[i], *end = a->end.at[i], *dim, *lo, *hi;
        int64_t    step;
        uint32_t   axis = i;

        if (a->axes.n && !rel_axis(c, loc, a->axes.at[i], t->n, &axis))
            return false;
        step = a->strides.n ? a->strides.at[i] : 1;
        if (!step || step < -INT32_MAX || step > INT32_MAX || seen >> axis & 1)
            return error_at(c, E_TYPE, loc, "stride %lld along axis %u", (long long)step, axis);
        seen |= 1u << axis;
        dim = t->dims[axis];
        lo = idx_const(A, step < 0 ? -1 : 0);
        hi = step < 0 ? idx_addc(A, dim, -1) : dim;
        if (!(begin = position(c, loc, begin, dim, lo, hi)) ||
            !(end = position(c, loc, end, dim, lo, hi)))
            return false;
        if (begin == idx_const(A, 0) && end == dim && step == 1)
            continue;
        s->cut[axis] = true;
        s->start[axis] = begin;
        s->step[axis] = step;
        end = step > 0 ? idx_addc(A, idx_sub(A, end, begin), step - 1)
                       : idx_addc(A, idx_sub(A, begin, end), -step - 1);
        s->n[axis] = idx_max(A, idx_const(A, 0), idx_divc(A, end, step > 0 ? step : -step));
    }
    return true;
}

const Type *rel_strided_slice(Ctx *c, Loc loc, const void *attrs, const Type *const *in,
                              uint32_t nin)
{
    const Idx *dims[TE_MAX_AXES];
    Slice      s;

    if (!rel_tensors(c, loc, in, nin) || !slice_of(c, loc, attrs, in[0], &s))
        return NULL;
    for (uint32_t i = 0; i < in[0]->n; i++)
        dims[i] = s.cut[i] ? s.n[i] : in[0]->dims[i];
    return rel_tensor(c, loc, in[0]->dtype, in[0]->n, dims);
}

bool slice_begin(Ctx *c, const Expr *slice, int64_t *begin)
{
    const Type *t = type_plain(c, call_arg(slice, 0)->type);
    Slice       s;

    if (!slice_of(c, slice->loc, slice->u.attrs, t, &s))
        return false;
    for (uint32_t i = 0; i < t->n; i++) {
        begin[i] = 0;
        if (s.cut[i] && (s.step[i] != 1 || !idx_is_const(s.start[i], &begin[i])))
            return false;
    }
    return true;
}

bool slice_along(Ctx *c, const Expr *slice, uint32_t axis, const Idx **begin, int64_t *step)
{
    Slice s;

    if (!slice_of(c, slice->loc, slice->u.attrs, type_plain(c, call_arg(slice, 0)->type), &s) ||
        !s.cut[axis])
        return false;
    *begin = s.start[axis];
    *step = s.step[axis];
    return true;
}

bool te_strided_slice(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    Axes       a = te_axes_of(c, call->out[0]);
    const Idx *at[TE_MAX_AXES];
    Slice      s;

    if (!slice_of(c, call->loc, call->attrs, call->in[0], &s))
        return false;
    for (uint32_t i = 0; i < a.n; i++)
        at[i] = !s.cut[i] ? a.at[i]
                          : idx_add(c->arith, idx_mulc(c->arith, a.at[i], s.step[i]), s.start[i]);
    return te_out(c, call, &a, te_at(c, in[0], at), out);
}

/* ---- reverse ------------------------------------------------------------------------------------- */

const Type *rel_reverse(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const ReverseAttrs *a = attrs;
    uint32_t            axis;

    return rel_tensors(c, loc, in, nin) && rel_axis(c, loc, a->axis, in[0]->n, &axis) ? in[0]
                                                                                      : NULL;
}

bool te_reverse(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const ReverseAttrs *attrs = call->attrs;
    Axes                a = te_axes_of(c, call->out[0]);
    uint32_t            axis = axis_of(attrs->axis, a.n);
    const Idx          *at[TE_MAX_AXES];

    for (uint32_t i = 0; i < a.n; i++)
        at[i] =
            i == axis ? idx_sub(c->arith, idx_addc(c->arith, a.extent[i], -1), a.at[i]) : a.at[i];
    return te_out(c, call, &a, te_at(c, in[0], at), out);
}
