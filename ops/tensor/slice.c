/* Parts and mirrors of one tensor: strided_slice, reverse.
 *
 *     %1 = strided_slice(%0, begin=[-1], end=[-1000], strides=[-1], axes=[2]);     // x[:, :, ::-1]
 *
 * As in Python: negative positions count from the end, then everything is clamped. */
#include "ops/common.h"

/* Start, step and length along each dimension. */
typedef struct {
    int64_t start[TE_MAX_AXES], step[TE_MAX_AXES], n[TE_MAX_AXES];
    bool    cut[TE_MAX_AXES]; /* false: the whole dimension */
} Slice;

static int64_t clamp(int64_t v, int64_t lo, int64_t hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

static bool slice_of(Ctx *c, Loc loc, const StridedSliceAttrs *a, const Type *t, Slice *s)
{
    uint32_t n = a->begin.n, seen = 0;

    *s = (Slice){0};
    if (a->end.n != n || (a->strides.n && a->strides.n != n) || (a->axes.n && a->axes.n != n) ||
        n > t->n)
        return error_at(c, E_TYPE, loc,
                        "a slice of %s with %u begins, %u ends, %u strides, %u axes",
                        type_text(c, t), n, a->end.n, a->strides.n, a->axes.n);
    for (uint32_t i = 0; i < n; i++) {
        int64_t  begin = a->begin.at[i], end = a->end.at[i], step, dim;
        uint32_t axis = i;

        if (a->axes.n && !rel_axis(c, loc, a->axes.at[i], t->n, &axis))
            return false;
        step = a->strides.n ? a->strides.at[i] : 1;
        if (!step || step < -INT32_MAX || step > INT32_MAX || seen >> axis & 1)
            return error_at(c, E_TYPE, loc, "stride %lld along axis %u", (long long)step, axis);
        seen |= 1u << axis;
        if (begin == 0 && step == 1 && end >= t->dims[axis]->hi)
            continue; /* also of a symbolic dimension */
        if (!rel_dim(c, loc, t, axis, &dim))
            return false;
        /* Far positions are clamped first, so that nothing overflows. */
        begin = clamp(begin, -dim - 1, dim);
        end = clamp(end, -dim - 1, dim);
        begin = clamp(begin < 0 ? begin + dim : begin, step < 0 ? -1 : 0, step < 0 ? dim - 1 : dim);
        end = clamp(end < 0 ? end + dim : end, step < 0 ? -1 : 0, step < 0 ? dim - 1 : dim);
        s->cut[axis] = true;
        s->start[axis] = begin;
        s->step[axis] = step;
        s->n[axis] = step > 0 ? (end - begin + step - 1) / step : (begin - end - step - 1) / -step;
        if (s->n[axis] < 0)
            s->n[axis] = 0;
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
        dims[i] = s.cut[i] ? idx_const(c->arith, s.n[i]) : in[0]->dims[i];
    return rel_tensor(c, loc, in[0]->dtype, in[0]->n, dims);
}

bool slice_begin(Ctx *c, const Expr *slice, int64_t *begin)
{
    const Type *t = type_plain(c, call_arg(slice, 0)->type);
    Slice       s;

    if (!slice_of(c, slice->loc, slice->u.attrs, t, &s))
        return false;
    for (uint32_t i = 0; i < t->n; i++) {
        begin[i] = s.cut[i] ? s.start[i] : 0;
        if (s.cut[i] && s.step[i] != 1)
            return false;
    }
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
                          : idx_addc(c->arith, idx_mulc(c->arith, a.at[i], s.step[i]), s.start[i]);
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
