/* What is made from shapes and numbers. */
#include "frontends/coreml/coreml.h"

#include <math.h>

/* Layers that share a converter. */
enum { LOAD_CONSTANT = 290, RANGE_STATIC = 635 };

bool cml_shape(CmlNode *n)
{
    const Expr *x = cml_x(n, "x"), *y;

    if (!x)
        return false;
    y = build_values(
        &n->b, type_tensor_i64(n->b.c, n->layer ? DT_I64 : DT_I32, 1, (int64_t[]){expr_rank(x)}),
        expr_forms(x));
    return cml_done(n, n->layer ? build_cast(&n->b, y, DT_F32) : y);
}

/* [C, H, W] of the first versions, or of any dimensions. */
bool cml_load_constant(CmlNode *n)
{
    Ints        v;
    const Expr *e;

    if (!cml_ints(n, "shape", &v))
        return false;
    if (v.n > MAX_RANK)
        return cml_error(n, E_UNSUPPORTED, "a tensor of %u dimensions", v.n);
    e = cml_weight(n, "data", v.n, v.at, v.n);
    if (n->row->number != LOAD_CONSTANT || !e)
        return cml_done(n, e);
    if (v.n != 3)
        return cml_error(n, E_IMPORT, "a shape of %u dimensions", v.n);
    return cml_done_seq(n, 0, build_expand_dims(&n->b, e, 0, 1), 1);
}

static bool filled(CmlNode *n, const Expr *v, Dims d)
{
    return v && build_check_shape(&n->b, d) && cml_done(n, build_broadcast_to(&n->b, v, d.n, d.at));
}

bool cml_fill(CmlNode *n)
{
    Dims        d;
    const Expr *v;

    if (!cml_forms(n, "shape", &d) || !cml_maybe(n, "value", &v))
        return false;
    return filled(n, v ? v : expr_scalar(n->b.c, DT_F32, 0), d);
}

bool cml_fill_like(CmlNode *n)
{
    const Expr *like = cml_x(n, "ref_tensor"), *v;

    if (!like || !cml_maybe(n, "value", &v))
        return false;
    return filled(n, v ? v : expr_scalar(n->b.c, DT_F32, 0), expr_forms(like));
}

bool cml_layer_fill(CmlNode *n)
{
    double value = cml_float(n, "value", 0);
    Dims   d;

    return cml_forms(n, "target_shape", &d) && filled(n, expr_scalar(n->b.c, DT_F32, value), d);
}

bool cml_layer_fill_like(CmlNode *n)
{
    double      value = cml_float(n, "value", 0);
    const Expr *like = cml_x(n, "like");

    return like && filled(n, expr_scalar(n->b.c, DT_F32, value), expr_forms(like));
}

/* ---- ranges --------------------------------------------------------------------------------------------- */

static bool number(CmlNode *n, const char *name, double *out)
{
    const Expr *e = cml_x(n, name), *k;

    if (!e)
        return false;
    k = e->kind == EXPR_CONST ? e : build_fold(&n->b, e);
    return (k && expr_single(k) && expr_const_f(k, out) && isfinite(*out)) ||
           cml_error(n, E_UNSUPPORTED, "its input '%s' has to be known when it is compiled", name);
}

static bool number_is(CmlNode *n, const char *name, double v)
{
    const Expr *e = cml_x(n, name);
    double      is;

    return e && e->kind == EXPR_CONST && expr_const_f(e, &is) && is == v;
}

bool cml_range(CmlNode *n)
{
    static const char *const names[] = {"start", "end", "step"};
    double                   v[3];
    const Expr              *end = cml_x(n, "end");
    Dims                     d;
    int64_t                  first;

    if (!end)
        return false;
    /* 0, 1 .. of as many as a dimension has. */
    if (dtype_is_int(expr_dtype(end)) && number_is(n, "start", 0) && number_is(n, "step", 1) &&
        build_forms(&n->b, end, &d) && d.n == 1 && !idx_is_const(d.at[0], &first))
        return cml_done(n, build_arange(&n->b, d.at[0], expr_dtype(end)));
    for (uint32_t i = 0; i < 3; i++)
        if (!number(n, names[i], &v[i]))
            return false;
    return cml_done(n, build_range(&n->b, expr_dtype(end), v[0], v[1], v[2]));
}

/* What is no operand is a field. */
bool cml_layer_range(CmlNode *n)
{
    double v[3] = {cml_float(n, "start_value", 0),
                   n->row->number == RANGE_STATIC ? cml_float(n, "end_value", 0) : 0,
                   cml_float(n, "step_size_value", 1)};

    if ((cml_arg(n, "end") && !number(n, "end", &v[1])) ||
        (cml_arg(n, "start") && !number(n, "start", &v[0])) ||
        (cml_arg(n, "step") && !number(n, "step", &v[2])))
        return false;
    return cml_done(n, build_range(&n->b, DT_F32, v[0], v[1], v[2]));
}

/* program.c reads constants. */
bool cml_const(CmlNode *n)
{
    return cml_error(n, E_IMPORT, "a constant with operands");
}
