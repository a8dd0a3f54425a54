/* What is made from sizes and numbers. */
#include "frontends/mxnet/mxnet.h"

#include <math.h>
#include <string.h>

static const Expr *filled(const Build *b, DType t, double v, Dims d)
{
    return build_check_shape(b, d) ? build_broadcast_to(b, expr_scalar(b->c, t, v), d.n, d.at)
                                   : NULL;
}

/* A dimension of 0 is one that MXNet finds out from what the value is used for, such as the batch
 * of a first state: it is 1 here, and broadcasts. */
bool mx_full(MxNode *n)
{
    Ints     v = mx_ints(n, "shape");
    int64_t *at = DUP_ARRAY(n->b.c->arena, v.at, v.n);
    double   value = 0;
    DType    t = DT_F32;

    if (!mx_type(n, "dtype", &t))
        return false;
    if (!strcmp(n->row->name, "_full"))
        value = mx_float(n, "value");
    else
        value = str_ends(n->row->name, "ones");
    for (uint32_t i = 0; i < v.n; i++)
        at[i] = at[i] == 0 ? 1 : at[i];
    return mx_done(n, filled(&n->b, t, value, dims_of_i64(n->b.c, at, v.n)));
}

bool mx_full_like(MxNode *n)
{
    return mx_done(n, filled(&n->b, expr_dtype(n->in[0]), !strcmp(n->row->name, "ones_like"),
                             expr_forms(n->in[0])));
}

static const Expr *repeated(MxNode *n, const Expr *x)
{
    RepeatAttrs *a = ATTRS(&n->b, RepeatAttrs);

    a->repeats = mx_int(n, "repeat");
    if (a->repeats < 1 || a->repeats > INT32_MAX)
        return mx_error(n, E_IMPORT, "'repeat' is %s", mx_text(n, "repeat"));
    return a->repeats == 1 ? x : build1(&n->b, "repeat", x, a);
}

/* From 0 to `start`, if that is all. */
bool mx_arange(MxNode *n)
{
    double from = mx_float(n, "start"), to, step = mx_float(n, "step");
    DType  t = DT_F32;

    if (!mx_type(n, "dtype", &t))
        return false;
    if (mx_bool(n, "infer_range"))
        return mx_error(n, E_UNSUPPORTED, "infer_range, whose length follows from what uses it");
    to = mx_has(n, "stop") ? mx_float(n, "stop") : from;
    from = mx_has(n, "stop") ? from : 0;
    if (!isfinite(from) || !isfinite(to) || !isfinite(step))
        return mx_error(n, E_IMPORT, "from %g to %g by %g", from, to, step);
    return mx_done(n, repeated(n, build_range(&n->b, t, from, to, step)));
}

/* As many as there are cells, in their shape, or as many as lie along an axis. */
bool mx_arange_like(MxNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *y;
    int64_t      repeat = mx_int(n, "repeat");
    bool         all = mx_is_none(mx_text(n, "axis"));
    const Idx   *cells;
    uint32_t     axis;

    if (!all && !mx_axis(n, mx_int(n, "axis"), expr_rank(x), &axis))
        return false;
    cells = all ? type_cells(b->c, x->type) : expr_form(x, axis);
    if (repeat < 1 || repeat > INT32_MAX)
        return mx_error(n, E_IMPORT, "'repeat' is %lld", (long long)repeat);
    y = build_arange(b, idx_divc(b->c->arith, idx_addc(b->c->arith, cells, repeat - 1), repeat),
                     expr_dtype(x));
    y = build_by(b, "add", build_by(b, "multiply", y, mx_float(n, "step")), mx_float(n, "start"));
    if (!(y = repeated(n, y)))
        return false;
    if (repeat > 1)
        y = build_slice_to(b, y, 0, idx_const(b->c->arith, 0), cells);
    return mx_done(n, all ? build_reshape_to(b, y, expr_rank(x), expr_forms(x).at) : y);
}

bool mx_shape_array(MxNode *n)
{
    const Build *b = &n->b;
    Dims         d = expr_forms(n->in[0]);
    const Idx   *cells = type_cells(b->c, n->in[0]->type);

    if (!strcmp(n->row->name, "size_array"))
        d = (Dims){1, &cells};
    return mx_done(n, build_values(b, type_tensor_i64(b->c, DT_I64, 1, (int64_t[]){d.n}), d));
}
