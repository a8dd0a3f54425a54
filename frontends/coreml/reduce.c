/* Reductions, and what orders. */
#include "frontends/coreml/coreml.h"

#include <string.h>

typedef struct {
    const Expr *x;
    int64_t     axes[MAX_RANK];
    uint32_t    n;
    bool        keep;
} Reduce;

static bool read_reduce(CmlNode *n, Reduce *r)
{
    bool all = n->layer && cml_bool(n, "reduce_all", false);

    r->keep = cml_bool(n, "keep_dims", false);
    if (!(r->x = cml_x(n, "x")) || !cml_axes(n, "axes", expr_rank(r->x), &r->n, r->axes))
        return false;
    if (r->n && !all)
        return true;
    r->n = expr_rank(r->x);
    for (uint32_t i = 0; i < r->n; i++)
        r->axes[i] = i;
    return true;
}

static const Expr *reduced(CmlNode *n, const char *op, const Reduce *r, const Expr *x)
{
    return r->n ? build_reduce_image(&n->b, op, x, r->n, r->axes, r->keep) : x;
}

bool cml_reduce(CmlNode *n)
{
    Reduce r;

    return read_reduce(n, &r) && cml_done(n, reduced(n, n->row->relay, &r, r.x));
}

bool cml_reduce_l1(CmlNode *n)
{
    Reduce r;

    return read_reduce(n, &r) &&
           cml_done(n, reduced(n, "sum", &r, build1(&n->b, "abs", r.x, NULL)));
}

bool cml_reduce_l2(CmlNode *n)
{
    Reduce r;

    return read_reduce(n, &r) &&
           cml_done(n,
                    build1(&n->b, "sqrt", reduced(n, "sum", &r, build_mul(&n->b, r.x, r.x)), NULL));
}

bool cml_reduce_sum_square(CmlNode *n)
{
    Reduce r;

    return read_reduce(n, &r) && cml_done(n, reduced(n, "sum", &r, build_mul(&n->b, r.x, r.x)));
}

bool cml_reduce_log_sum(CmlNode *n)
{
    Reduce r;

    return read_reduce(n, &r) &&
           cml_done(n, build1(&n->b, "log", reduced(n, "sum", &r, r.x), NULL));
}

/* Less its largest value, so that nothing overflows. */
bool cml_reduce_log_sum_exp(CmlNode *n)
{
    const Build *b = &n->b;
    const Expr  *most, *y;
    Reduce       r;

    if (!read_reduce(n, &r))
        return false;
    most = build_reduce(b, "max", r.x, r.n, r.axes, true);
    y = build1(b, "exp", most ? build_sub(b, r.x, most) : NULL, NULL);
    y = build1(b, "log", reduced(n, "sum", &r, y), NULL);
    if (y && !r.keep)
        most = build_reshape_to(b, most, expr_rank(y), expr_forms(y).at);
    return cml_done(n, build_add(b, y, most));
}

static const Expr *position(const Build *b, const char *op, const Expr *x, uint32_t axis, bool keep,
                            DType t)
{
    ArgReduceAttrs *a = ATTRS(b, ArgReduceAttrs);

    a->axis = axis;
    a->keepdims = keep;
    a->dtype = t;
    return build1(b, op, x, a);
}

/* Of the last three dimensions; what is reduced stays as 1. */
bool cml_layer_reduce(CmlNode *n)
{
    enum { SUM, AVG, PROD, LOGSUM, SUMSQUARE, L1, L2, MAX, MIN, ARGMAX };
    static const char *const ops[] = {"sum", "mean", "prod", "sum", "sum",
                                      "sum", "sum",  "max",  "min", "argmax"};
    static const struct {
        uint32_t n;
        int64_t  axes[3];
    } of[] = {{3, {1, 2, 3}}, {2, {2, 3}}, {1, {1}}, {1, {2}}, {1, {3}}};
    const Build *b = &n->b;
    int64_t      mode = cml_int(n, "mode", 0), axis = cml_int(n, "axis", 0);
    double       eps = cml_float(n, "epsilon", 0);
    const Expr  *x = cml_image(n, "x", 2), *y;

    if (!x)
        return false;
    if (mode < 0 || mode > ARGMAX || axis < 0 || axis >= (int64_t)COUNT(of) ||
        (mode == ARGMAX && of[axis].n != 1))
        return cml_error(n, E_UNSUPPORTED, "mode %lld of axis %lld", (long long)mode,
                         (long long)axis);
    if (mode == ARGMAX)
        return cml_done_image(
            n, build_cast(b, position(b, "argmax", x, (uint32_t)of[axis].axes[0], true, DT_I32),
                          DT_F32));
    if (mode == LOGSUM)
        x = build1(b, "log", build_by(b, "add", x, eps != 0 ? eps : 1e-6), NULL);
    else if (mode == L1)
        x = build1(b, "abs", x, NULL);
    else if (mode == SUMSQUARE || mode == L2)
        x = build_mul(b, x, x);
    y = x ? build_reduce_image(b, ops[mode], x, of[axis].n, of[axis].axes, true) : NULL;
    return cml_done_image(n, mode == L2 ? build1(b, "sqrt", y, NULL) : y);
}

/* ---- positions ------------------------------------------------------------------------------------------ */

bool cml_reduce_arg(CmlNode *n)
{
    const Expr *x = cml_x(n, "x");
    const char *type = cml_text(n, "output_dtype", "int32");
    bool        keep = cml_bool(n, "keep_dims", false);
    uint32_t    axis;
    DType       t;

    if (!x || !cml_axis(n, cml_int(n, "axis", -1), expr_rank(x), &axis))
        return false;
    if (!cml_dtype_named(type, &t))
        return cml_error(n, E_UNSUPPORTED, "positions as %s", type);
    return cml_done(n, build_cast(&n->b, position(&n->b, n->row->relay, x, axis, keep, DT_I32), t));
}

bool cml_layer_arg(CmlNode *n)
{
    const Expr *x = cml_x(n, "x");
    bool        drop = cml_bool(n, "remove_dim", false);
    uint32_t    axis;

    return x && cml_axis(n, cml_int(n, "axis", 0), expr_rank(x), &axis) &&
           cml_done(n, build_cast(&n->b, position(&n->b, n->row->relay, x, axis, !drop, DT_I32),
                                  DT_F32));
}

static bool best(CmlNode *n, int64_t k, int64_t axis_said, bool least, bool positions, DType t)
{
    const Build *b = &n->b;
    TopKAttrs   *a = ATTRS(b, TopKAttrs);
    const Expr  *x = cml_x(n, "x"), *both;
    uint32_t     axis;

    if (!x || !cml_axis(n, axis_said, expr_rank(x), &axis))
        return false;
    if (k == -1)
        k = build_dim(b, x, axis);
    if (k < 1 || k > build_dim(b, x, axis))
        return cml_error(n, E_IMPORT, "the best %lld of %s", (long long)k,
                         type_text(b->c, x->type));
    a->k = k;
    a->axis = axis;
    a->is_ascend = least;
    a->dtype = DT_I32;
    both = build1(b, "topk", x, a);
    return cml_done_at(n, 0, build_proj(b, both, 0)) &&
           (!positions || cml_done_at(n, 1, build_cast(b, build_proj(b, both, 1), t)));
}

bool cml_topk(CmlNode *n)
{
    const char *type = cml_text(n, "output_indices_dtype", "int32");
    bool        least = cml_bool(n, "ascending", false);
    bool        positions = cml_bool(n, "return_indices", true);
    DType       t;

    (void)cml_bool(n, "sort", true); /* sorted, too, where the order does not matter */
    if (!cml_dtype_named(type, &t))
        return cml_error(n, E_UNSUPPORTED, "positions as %s", type);
    return best(n, cml_int(n, "k", 1), cml_int(n, "axis", -1), least, positions, t);
}

/* How many may be an operand that is known. */
bool cml_layer_topk(CmlNode *n)
{
    bool    least = cml_bool(n, "use_bottom_k", false);
    int64_t axis = cml_int(n, "axis", 0), k = cml_int(n, "k", 1);
    Dims    d;

    if (n->nargs > 1 && (!cml_operand_forms(n, "k", &d) || d.n != 1 || !idx_is_const(d.at[0], &k)))
        return cml_error(n, E_UNSUPPORTED, "its input 'k' has to be known when it is compiled");
    return best(n, k, axis, least, true, DT_F32);
}

static bool sorted(CmlNode *n, bool ascending, DType t)
{
    const Build *b = &n->b;
    SortAttrs   *a = ATTRS(b, SortAttrs);
    const Expr  *x = cml_x(n, "x");
    uint32_t     axis;

    if (!x || !cml_axis(n, cml_int(n, "axis", -1), expr_rank(x), &axis))
        return false;
    a->axis = axis;
    a->is_ascend = ascending;
    return cml_done(n, build_cast(b, build1(b, "argsort", x, a), t));
}

bool cml_argsort(CmlNode *n)
{
    return sorted(n, cml_bool(n, "ascending", false), DT_I32);
}

bool cml_layer_argsort(CmlNode *n)
{
    return sorted(n, !cml_bool(n, "descending", false), DT_F32);
}

static bool scan(CmlNode *n, int64_t said, bool exclusive, bool back)
{
    const Expr *x = cml_x(n, "x");
    uint32_t    axis;

    return x && cml_axis(n, said, expr_rank(x), &axis) &&
           cml_done(n, build_scan(&n->b, "cumsum", x, axis, exclusive, back));
}

bool cml_cumsum(CmlNode *n)
{
    bool exclusive = cml_bool(n, "exclusive", false), back = cml_bool(n, "reverse", false);

    return scan(n, cml_int(n, "axis", 0), exclusive, back);
}

bool cml_layer_cumsum(CmlNode *n)
{
    bool    exclusive = cml_bool(n, "exclude_final_sum", false);
    bool    back = cml_bool(n, "reverse", false);
    int64_t axis = cml_int(n, "axis", 0);
    Dims    d;

    if (n->nargs > 1 &&
        (!cml_operand_forms(n, "axis", &d) || d.n != 1 || !idx_is_const(d.at[0], &axis)))
        return cml_error(n, E_UNSUPPORTED, "its input 'axis' has to be known when it is compiled");
    return scan(n, axis, exclusive, back);
}
