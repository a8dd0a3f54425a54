/* nn.softmax, nn.log_softmax along one axis.               %1 = nn.softmax(%0, axis=-1);
 *
 *     %max[r] = max[k] %x[r, k]          %exp[r, k] = exp(%x[r, k] - %max[r])
 *     %sum[r] = sum[k] %exp[r, k]        %inverse[r] = 1 / %sum[r]
 *     %out[r, k] = %exp[r, k] * %inverse[r]
 *
 * A division a row instead of one a cell: 1.5 ULP more at most.  A NaN reaches the whole row
 * through its exponential, so max need not show it (maxnum).  The logarithm is x - max - log(sum).
 * The row's coordinates keep their places; `k` stands where the axis was. */
#include "ops/common.h"

const Type *rel_softmax(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const SoftmaxAttrs *a = attrs;
    uint32_t            axis;

    if (!rel_tensors(c, loc, in, nin) || !rel_axis(c, loc, a->axis, in[0]->n, &axis))
        return NULL;
    if (!dtype_is_float(in[0]->dtype))
        return error_at(c, E_TYPE, loc, "softmax of %s", dtype_text(c, in[0]->dtype));
    return in[0];
}

typedef struct {
    uint32_t axis;
    DType    dtype;
    Axes     all, row; /* all axes; those of a row's result */
    Axes     rall, k;  /* row's axes with the reduced one in its place; the reduced one */
} Softmax;

static Axes without(const Axes *a, uint32_t axis)
{
    Axes r = {0};

    for (uint32_t i = 0; i < a->n; i++) {
        if (i == axis)
            continue;
        r.atom[r.n] = a->atom[i];
        r.at[r.n] = a->at[i];
        r.extent[r.n++] = a->extent[i];
    }
    return r;
}

/* Fresh axes each time: an atom belongs to one definition. */
static void fresh(Ctx *c, Softmax *s, const Type *t)
{
    static const char *const k[] = {"k"};
    Axes                     a = te_axes_of(c, t);

    s->row = without(&a, s->axis);
    s->k = te_axes(c, 1, &t->dims[s->axis], k);
    s->rall = a;
    s->rall.at[s->axis] = s->k.at[0];
}

static const Prim *at_row(Ctx *c, const Tensor *t, const Axes *all, uint32_t axis)
{
    Axes r = without(all, axis);

    return te_at(c, t, r.at);
}

/* Definitions max and sum; exp is given back where it is a definition of its own. */
static void stages(Ctx *c, Softmax *s, const OpCall *call, const Tensor *x, bool keep_exp,
                   const Tensor **max, const Tensor **exp, const Tensor **sum)
{
    const Type *t = call->in[0];

    s->axis = axis_of(((const SoftmaxAttrs *)call->attrs)->axis, t->n);
    s->dtype = t->dtype;
    fresh(c, s, t);
    *max = te_reduce(c, "max", s->dtype, s->row, COMB_MAXNUM, s->k, te_at(c, x, s->rall.at));
    s->all = te_axes_of(c, t);
    if (keep_exp) {
        const Prim *d = prim_sub(c, te_at(c, x, s->all.at), at_row(c, *max, &s->all, s->axis));

        *exp = te_compute(c, "exp", s->dtype, s->all, prim_math(c, MATH_EXP, d, NULL));
    }
    fresh(c, s, t);
    const Prim *e = NULL;

    if (keep_exp)
        e = te_at(c, *exp, s->rall.at);
    else
        e = prim_math(c, MATH_EXP,
                      prim_sub(c, te_at(c, x, s->rall.at), at_row(c, *max, &s->rall, s->axis)),
                      NULL);
    *sum = te_reduce(c, "sum", s->dtype, s->row, COMB_SUM, s->k, e);
    s->all = te_axes_of(c, t);
}

bool te_softmax(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    Softmax       s;
    const Tensor *max, *exp, *sum;

    stages(c, &s, call, in[0], true, &max, &exp, &sum);
    fresh(c, &s, call->in[0]);
    const Tensor *inverse =
        te_compute(c, "inverse", s.dtype, s.row,
                   prim_div(c, prim_num(c, s.dtype, 1), te_at(c, sum, s.row.at)));

    s.all = te_axes_of(c, call->in[0]);
    return te_out(c, call, &s.all,
                  prim_mul(c, te_at(c, exp, s.all.at), at_row(c, inverse, &s.all, s.axis)), out);
}

bool te_log_softmax(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    Softmax       s;
    const Tensor *max, *exp, *sum;

    stages(c, &s, call, in[0], false, &max, &exp, &sum);
    fresh(c, &s, call->in[0]);
    const Tensor *log =
        te_compute(c, "log", s.dtype, s.row, prim_math(c, MATH_LOG, te_at(c, sum, s.row.at), NULL));

    s.all = te_axes_of(c, call->in[0]);
    const Prim *d = prim_sub(c, te_at(c, in[0], s.all.at), at_row(c, max, &s.all, s.axis));
    return te_out(c, call, &s.all, prim_sub(c, d, at_row(c, log, &s.all, s.axis)), out);
}
