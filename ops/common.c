/* Checks that type relations share, and the small parts of compute functions. */
#include "ops/common.h"

#include <string.h>

/* ---- type relations
 * ------------------------------------------------------------------------------ */

bool rel_tensors(Ctx *c, Loc loc, const Type *const *in, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (in[i]->kind != TYPE_TENSOR)
            return error_at(c, E_TYPE, loc, "operand %u must be a tensor, not %s", i,
                            type_text(c, in[i]));
    return true;
}

bool rel_rank(Ctx *c, Loc loc, const Type *t, uint32_t ndim, const char *what)
{
    if (t->n == ndim)
        return true;
    return error_at(c, E_TYPE, loc, "the %s must have %u dimensions, not %s", what, ndim,
                    type_text(c, t));
}

bool rel_same_dtype(Ctx *c, Loc loc, const Type *a, const Type *b)
{
    if (dtype_eq(a->dtype, b->dtype))
        return true;
    return error_at(c, E_TYPE, loc, "operands of different types: %s and %s",
                    dtype_text(c, a->dtype), dtype_text(c, b->dtype));
}

bool rel_number(Ctx *c, Loc loc, const Type *t)
{
    if (!dtype_is_bool(t->dtype))
        return true;
    return error_at(c, E_TYPE, loc, "arithmetic of bool; logical operators take it");
}

bool rel_int_dtype(Ctx *c, Loc loc, const Type *t, const char *what)
{
    if (dtype_is_int(t->dtype))
        return true;
    return error_at(c, E_TYPE, loc, "the %s must be integers, not %s", what,
                    dtype_text(c, t->dtype));
}

bool rel_algorithm(Ctx *c, Loc loc, const char *algorithm, uint32_t n, const char *const *known)
{
    StrBuf all = strbuf(c->scratch);

    if (!strcmp(algorithm, "direct"))
        return true;
    for (uint32_t i = 0; i < n; i++) {
        if (!strcmp(algorithm, known[i]))
            return true;
        str_printf(&all, i + 1 < n ? ", %s" : " or %s", known[i]);
    }
    return error_at(c, E_TYPE, loc, "algorithm '%s' is not direct%s", algorithm, all.at);
}

bool rel_dim(Ctx *c, Loc loc, const Type *t, uint32_t i, int64_t *v)
{
    if (type_dim(t, i, v))
        return true;
    return error_at(c, E_DIM, loc, "dimension %u of %s must be a number here", i, type_text(c, t));
}

bool rel_axis(Ctx *c, Loc loc, int64_t axis, uint32_t ndim, uint32_t *out)
{
    if (axis < -(int64_t)ndim || axis >= (int64_t)ndim)
        return error_at(c, E_TYPE, loc, "axis %lld of a tensor of %u dimensions", (long long)axis,
                        ndim);
    *out = axis_of(axis, ndim);
    return true;
}

bool rel_axes(Ctx *c, Loc loc, Ints axes, uint32_t ndim, uint32_t *set)
{
    *set = axes.n ? 0 : (1u << ndim) - 1;
    for (uint32_t i = 0; i < axes.n; i++) {
        uint32_t axis;

        if (!rel_axis(c, loc, axes.at[i], ndim, &axis))
            return false;
        if (*set >> axis & 1)
            return error_at(c, E_TYPE, loc, "axis %u is named twice", axis);
        *set |= 1u << axis;
    }
    return true;
}

bool rel_ints(Ctx *c, Loc loc, const char *name, Ints v, uint32_t n, int64_t least)
{
    if (v.n != n)
        return error_at(c, E_TYPE, loc, "'%s' must have %u numbers, not %u", name, n, v.n);
    for (uint32_t i = 0; i < n; i++)
        if (v.at[i] < least || v.at[i] > INT32_MAX)
            return error_at(c, E_TYPE, loc, "'%s' must be at least %lld, not %lld", name,
                            (long long)least, (long long)v.at[i]);
    return true;
}

bool rel_dims(Ctx *c, Loc loc, const char *name, Dims v, uint32_t n, int64_t least)
{
    if (v.n != n)
        return error_at(c, E_TYPE, loc, "'%s' must have %u dimensions, not %u", name, n, v.n);
    for (uint32_t i = 0; i < n; i++)
        if (v.at[i]->lo < least || (!idx_is_open(v.at[i]) && v.at[i]->hi > INT32_MAX))
            return error_at(c, E_TYPE, loc, "'%s' must be at least %lld, not %s", name,
                            (long long)least, dim_text(c, v.at[i]));
    return true;
}

typedef VEC(const Atom *) Vars;

static void add_vars(Ctx *c, Vars *v, const Idx *x)
{
    for (uint32_t i = 0; i < x->nterms; i++) {
        const Atom *a = x->t[i].atom;
        bool        known = a->kind != ATOM_VAR;

        for (uint32_t k = 0; k < v->n; k++)
            known |= v->at[k] == a;
        if (!known)
            vec_push(c->scratch, v, a);
        if (a->a)
            add_vars(c, v, a->a);
        if (a->b)
            add_vars(c, v, a->b);
    }
}

/* Are these equal where all variables are multiples of k? */
static bool equal_in_units(Ctx *c, const Vars *v, int64_t k, const Idx *a, const Idx *b)
{
    IdxSubst *sub = subst_new(c->arith, c->scratch);

    for (uint32_t i = 0; i < v->n; i++) {
        const Atom *x = v->at[i];
        int64_t     least = ceil_div(x->lo < 1 ? 1 : x->lo, k);

        if (x->hi / k <= least)
            return false; /* one size has no need of a form */
        x = atom_var(c->arith, x->name, least, atom_is_open(x) ? x->hi : x->hi / k);
        subst_bind(sub, v->at[i], idx_mulc(c->arith, idx_atom(c->arith, x), k));
    }
    return idx_subst(sub, a) == idx_subst(sub, b);
}

/* Networks that halve an image some times and double it again take multiples of a power of two. */
static void hint_of_units(Ctx *c, const Idx *a, const Idx *b)
{
    enum { MOST_UNIT = 256 };
    Vars v = {0};

    add_vars(c, &v, a);
    add_vars(c, &v, b);
    for (int64_t k = 2; v.n && k <= MOST_UNIT; k++)
        if (equal_in_units(c, &v, k, a, b)) {
            diag_hint(c->diags,
                      "they are where %lld divides %s%s: --shape <input>:[..,%lld*n,..] --dim "
                      "n=.. says so",
                      (long long)k, v.at[0]->name, v.n > 1 ? " and the others" : "", (long long)k);
            return;
        }
}

bool rel_dims_equal(Ctx *c, Loc loc, const Idx *a, const Idx *b, const char *what)
{
    int64_t x, y;

    if (a == b)
        return true;
    if (idx_is_const(a, &x) && idx_is_const(b, &y))
        return error_at(c, E_TYPE, loc, "%s: %lld and %lld", what, (long long)x, (long long)y);
    error_at(c, E_TYPE, loc, "%s: %s and %s are not known to be equal", what, dim_text(c, a),
             dim_text(c, b));
    hint_of_units(c, a, b);
    return false;
}

const Type *rel_tensor(Ctx *c, Loc loc, DType t, uint32_t n, const Idx *const *dims)
{
    int64_t elems = 1;

    if (n > TE_MAX_AXES)
        return error_at(c, E_TYPE, loc, "a tensor of %u dimensions; at most %u are supported", n,
                        TE_MAX_AXES);
    for (uint32_t i = 0; i < n; i++) {
        if (dims[i]->lo < 0)
            return error_at(c, E_TYPE, loc, "dimension %u of the result would be negative", i);
        if (!checked_mul(elems, idx_usual(dims[i]), &elems) || elems >= INT64_C(1) << 47)
            return error_at(c, E_TYPE, loc, "the result is too large");
    }
    return type_tensor(c, t, n, dims);
}

const Type *rel_tensor_i64(Ctx *c, Loc loc, DType t, uint32_t n, const int64_t *dims)
{
    const Idx *d[TE_MAX_AXES];

    for (uint32_t i = 0; i < n && i < TE_MAX_AXES; i++)
        d[i] = idx_const(c->arith, dims[i]);
    return rel_tensor(c, loc, t, n, d);
}

bool rel_bcast_dims(Ctx *c, Loc loc, const Type *a, const Type *b, uint32_t *n, const Idx **dims)
{
    uint32_t nd = a->n > b->n ? a->n : b->n;

    if (nd > TE_MAX_AXES)
        return error_at(c, E_TYPE, loc, "a tensor of %u dimensions; at most %u are supported", nd,
                        TE_MAX_AXES);
    for (uint32_t i = 0; i < nd; i++) {
        const Idx *x = i < nd - a->n ? NULL : a->dims[i - (nd - a->n)];
        const Idx *y = i < nd - b->n ? NULL : b->dims[i - (nd - b->n)];
        int64_t    v;

        if (!x || !y)
            dims[i] = x ? x : y;
        else if (x == y || (idx_is_const(y, &v) && v == 1))
            dims[i] = x;
        else if (idx_is_const(x, &v) && v == 1)
            dims[i] = y;
        else
            return error_at(c, E_TYPE, loc, "%s and %s do not broadcast", type_text(c, a),
                            type_text(c, b));
    }
    *n = nd;
    return true;
}

bool rel_dtype(Ctx *c, Loc loc, const char *text, DType fallback, DType *out)
{
    *out = fallback;
    if (!text || !*text || dtype_parse(text, out))
        return true;
    return error_at(c, E_TYPE, loc, "there is no element type '%s'", text);
}

/* ---- compute
 * ------------------------------------------------------------------------------------- */

uint32_t axis_of(int64_t axis, uint32_t ndim)
{
    return (uint32_t)(axis < 0 ? axis + ndim : axis);
}

uint32_t axes_of(Ints axes, uint32_t ndim)
{
    uint32_t set = axes.n ? 0 : (1u << ndim) - 1;

    for (uint32_t i = 0; i < axes.n; i++)
        set |= 1u << axis_of(axes.at[i], ndim);
    return set;
}

const Prim *te_in(Ctx *c, const Tensor *t, const Axes *a)
{
    return te_at_bcast(c, t, a->n, a->at);
}

bool te_out(Ctx *c, const OpCall *call, const Axes *a, const Prim *body, const Tensor **out)
{
    out[0] = te_compute(c, "out", call->out[0]->dtype, *a, body);
    return true;
}

bool te_known(const Tensor *t, double *v)
{
    const Const *k = t->buffer->data;

    if (!k || k->data.n != dtype_bytes(k->type->dtype))
        return false;
    *v = dtype_get_f(k->type->dtype, k->data.at);
    return true;
}

const Idx *te_number_at(Ctx *c, const Prim *load)
{
    DType   t = load->dtype;
    int64_t lo = t.code == DT_UINT ? 0
                 : t.bits >= 64    ? INT64_MIN / 2
                                   : -(INT64_C(1) << (t.bits - 1));
    int64_t hi = t.bits >= 64 ? INT64_MAX / 2 : (INT64_C(1) << t.bits) - 1;

    return idx_load(c->arith, load, lo, hi);
}

const Idx *te_index(Ctx *c, const Prim *load, const Idx *n, IndexMode mode)
{
    const Idx *x = te_number_at(c, load);

    n = idx_max(c->arith, n, idx_const(c->arith, 1));
    if (mode == INDEX_WRAP)
        return idx_mod(c->arith, x, n);
    return idx_max(c->arith, idx_const(c->arith, 0),
                   idx_min(c->arith, idx_addc(c->arith, n, -1), x));
}

int64_t dim_of(const Type *t, uint32_t i)
{
    int64_t v;

    if (!type_dim(t, i, &v))
        BUG("dimension %u is no number", i);
    return v;
}

const Prim *te_number(Ctx *c, DType t, const Idx *x)
{
    bool small = x->lo >= INT32_MIN && x->hi <= INT32_MAX;

    if (dtype_is_int(t))
        return prim_index(c, t, x);
    return prim_cast(c, t, prim_index(c, small ? DT_I32 : DT_I64, x));
}

const Prim *te_between(Ctx *c, const Idx *a, const Idx *x, const Idx *b)
{
    Pred p = pred_and(c->arith, c->arena, PRED_TRUE, idx_sub(c->arith, x, a));

    p = pred_and(c->arith, c->arena, p, idx_addc(c->arith, idx_sub(c->arith, b, x), -1));
    return pred_prim(c, p);
}

const Prim *te_magnitude(Ctx *c, const Prim *x)
{
    if (dtype_is_float(x->dtype))
        return prim_math(c, MATH_ABS, x, NULL);
    if (x->dtype.code == DT_UINT)
        return x;
    return prim_select(c, prim_lt(c, x, prim_int(c, x->dtype, 0)), prim_neg(c, x), x);
}

const Prim *te_is_nan(Ctx *c, const Prim *x)
{
    return dtype_is_float(x->dtype) ? prim_not(c, prim_eq(c, x, x)) : prim_int(c, DT_BOOL, 0);
}

/* max(x, k) and min(x, k) give what the select gives, unless zeros of either sign meet; x is
 * written once, so that chains of bounds do not double what is before them. */
static bool is_plain_bound(const Prim *k)
{
    return k->kind == PRIM_INT || (k->kind == PRIM_FLOAT && k->u.f != 0 && k->u.f == k->u.f);
}

const Prim *te_at_least(Ctx *c, const Prim *x, const Prim *k)
{
    if (is_plain_bound(k))
        return prim_max(c, x, k);
    return prim_select(c, prim_lt(c, x, k), k, x);
}

const Prim *te_at_most(Ctx *c, const Prim *x, const Prim *k)
{
    if (is_plain_bound(k))
        return prim_min(c, x, k);
    return prim_select(c, prim_lt(c, k, x), k, x);
}

bool te_scan_done(Ctx *c, Scan *k)
{
    const char *fault = te_scan_end(c, k);

    if (fault)
        BUG("a scan: %s", fault);
    return true;
}

const Atom *te_loop_var(Ctx *c, const char *name, const Idx *n)
{
    return atom_upto(c->arith, intern(c->strings, name), n);
}

const Stmt *loop_stmt(Ctx *c, const Atom *var, const Idx *n, const Stmt *body)
{
    LoopData l = {.var = var, .lo = idx_const(c->arith, 0), .extent = n, .kind = LOOP_SEQ};

    return stmt_for(c, l, body, NO_LOC);
}

/* ---- calls of operators
 * ----------------------------------------------------------------------------- */

const Expr *call1(Ctx *c, const char *op, const Expr *x, const void *attrs, Loc loc)
{
    return x ? expr_call_name(c, op, 1, &x, attrs, loc) : NULL;
}

const Expr *call2(Ctx *c, const char *op, const Expr *x, const Expr *y, const void *attrs, Loc loc)
{
    const Expr *args[2] = {x, y};

    return x && y ? expr_call_name(c, op, 2, args, attrs, loc) : NULL;
}

const Expr *call_reshape_to(Ctx *c, const Expr *x, uint32_t n, const Idx *const *dims, Loc loc)
{
    ReshapeAttrs *a = NEW_ATTRS(c, ReshapeAttrs);

    a->newshape = dims_dup(c, dims, n);
    return call1(c, "reshape", x, a, loc);
}

const Expr *call_reshape(Ctx *c, const Expr *x, uint32_t n, const int64_t *dims, Loc loc)
{
    return call_reshape_to(c, x, n, dims_of_i64(c, dims, n).at, loc);
}
