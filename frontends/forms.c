/* Arithmetic of shapes: tensors whose cells are forms over symbolic dimensions.
 *
 *     %0 = dim_values(dims=[N, T, 768]);  %1 = strided_slice(%0, begin=[1], end=[2]);
 *     concatenate((multiply(%1, 2), const [-1]), axis=0)       ->  [2*T, -1]
 *
 * Exporters compute shapes with operators of the model.  An expression of constants and dim_values
 * is evaluated here cell by cell, as build_fold does with numbers.  A cell is a quotient of a form
 * and a number, since sizes are scaled as floats, or not known: then nothing is said of it, and it
 * is data of the run like any other.  So are cells beside it: [1, h] is known by half. */
#include "frontends/calls.h"

#include <math.h>
#include <string.h>

enum { MAX_CELLS = 64, MAX_NODES = 256, PICK_RANK = 4 };

typedef struct {
    const Idx *x; /* NULL: not known */
    int64_t    q; /* x/q; 1 but for floats */
} Cell;

typedef struct {
    uint32_t n;
    Cell    *at;
} Cells;

typedef struct {
    Ctx *c;
    Map *known; /* node to Cells */
} Eval;

static Cell whole(const Idx *x)
{
    return (Cell){x, 1};
}

static Cell number(const Eval *ev, int64_t v)
{
    return whole(idx_const(ev->c->arith, v));
}

static const Cell unknown = {NULL, 1};

static Cell fraction(Arith *A, const Idx *x, int64_t q)
{
    const Idx *k = x ? idx_div_exact(A, x, idx_const(A, q)) : NULL;

    return k ? whole(k) : (Cell){x, q};
}

/* ---- one cell ------------------------------------------------------------------------------------ */

/* A double as a fraction by a power of two. */
static Cell cell_of_double(const Eval *ev, double v)
{
    int64_t q = 1;

    for (; q < 1 << 20 && v != floor(v); q *= 2)
        v *= 2;
    if (v != floor(v) || fabs(v) > 0x1p40)
        return unknown;
    return fraction(ev->c->arith, idx_const(ev->c->arith, (int64_t)v), q);
}

static Cell cell_of_const(const Eval *ev, const Const *k, uint32_t i)
{
    DType       t = k->type->dtype;
    const void *at = k->data.at + (size_t)i * dtype_bytes(t);

    if (dtype_is_float(t))
        return cell_of_double(ev, dtype_get_f(t, at));
    return number(ev, dtype_get_i(t, at));
}

static Cell floor_of(Arith *A, Cell a)
{
    return a.x ? whole(idx_divc(A, a.x, a.q)) : a;
}

static Cell ceil_of(Arith *A, Cell a)
{
    return a.x ? whole(idx_divc(A, idx_addc(A, a.x, a.q - 1), a.q)) : a;
}

/* Does the type hold all that it may be, floats exactly?  Sizes without an upper bound are not
 * known to be beyond: frameworks that hold shapes in 32 bits have no larger ones. */
static bool fits(DType t, const Idx *x)
{
    int    digits = t.bits == 64 ? 53 : t.bits == 32 ? 24 : 8; /* of floats */
    double most = dtype_is_float(t) ? ldexp(1, digits) : dtype_max(t);
    double least = dtype_is_float(t) ? -most : dtype_min(t);

    return (double)x->lo >= least && ((double)x->hi <= most || (t.bits >= 32 && idx_is_open(x)));
}

static Cell cast(Arith *A, DType t, Cell a)
{
    if (!a.x)
        return a;
    if (dtype_is_bool(t)) {
        bool zero = a.x->lo == 0 && a.x->hi == 0, other = a.x->lo > 0 || a.x->hi < 0;

        return zero || other ? whole(idx_const(A, other)) : unknown;
    }
    if (!dtype_is_float(t) && a.q != 1) /* towards zero */
        a = a.x->lo >= 0 ? floor_of(A, a) : a.x->hi <= 0 ? ceil_of(A, a) : unknown;
    return a.x && fits(t, a.x) ? a : unknown;
}

/* x/y, towards zero for integers, exactly for floats. */
static Cell divide(Arith *A, Cell a, Cell b, bool floats)
{
    const Idx *q;
    int64_t    k;

    if (floats && idx_is_const(b.x, &k) && k > 0)
        return fraction(A, idx_mulc(A, a.x, b.q), a.q * k);
    if (floats || b.x->lo <= 0)
        return unknown;
    if ((q = idx_div_exact(A, a.x, b.x)))
        return whole(q);
    return a.x->lo >= 0 ? whole(idx_div(A, a.x, b.x)) : unknown;
}

/* -1, 0, 1: the sign of a - b, where that is always the same; else 2. */
static int compare(Arith *A, Cell a, Cell b, bool or_equal)
{
    const Idx *d = idx_sub(A, idx_mulc(A, a.x, b.q), idx_mulc(A, b.x, a.q));

    if (d->hi < 0 || (or_equal && d->hi <= 0))
        return -1;
    if (d->lo > 0 || (or_equal && d->lo >= 0))
        return 1;
    return d->lo == 0 && d->hi == 0 ? 0 : 2;
}

static Cell truth(Arith *A, bool known, bool is)
{
    return known ? whole(idx_const(A, is)) : unknown;
}

static Cell less(Arith *A, Cell a, Cell b)
{
    int below = compare(A, a, b, false), not_below = compare(A, a, b, true);

    return below == -1 ? truth(A, true, true) : truth(A, not_below == 1 || below == 0, false);
}

static Cell equal(Arith *A, Cell a, Cell b, bool negated)
{
    int d = compare(A, a, b, false);

    return truth(A, d != 2, (d == 0) != negated);
}

static Cell not(Arith * A, Cell a)
{
    return a.x ? whole(idx_sub(A, idx_const(A, 1), a.x)) : a;
}

static bool is_number(Cell a, int64_t v)
{
    return a.x && a.x->lo == v && a.x->hi == v;
}

/* Both are known but for the logical ones, of which one may decide. */
static Cell binary(const Eval *ev, const char *op, DType t, Cell a, Cell b)
{
    Arith *A = ev->c->arith;
    bool   floats = dtype_is_float(t);

    if (!strcmp(op, "logical_and"))
        return is_number(a, 0) || is_number(b, 0)   ? number(ev, 0)
               : is_number(a, 1) && is_number(b, 1) ? number(ev, 1)
                                                    : unknown;
    if (!strcmp(op, "logical_or"))
        return is_number(a, 1) || is_number(b, 1)   ? number(ev, 1)
               : is_number(a, 0) && is_number(b, 0) ? number(ev, 0)
                                                    : unknown;
    if (!a.x || !b.x)
        return unknown;
    if (!strcmp(op, "add") || !strcmp(op, "subtract")) {
        const Idx *x = idx_mulc(A, a.x, b.q), *y = idx_mulc(A, b.x, a.q);

        return fraction(A, *op == 'a' ? idx_add(A, x, y) : idx_sub(A, x, y), a.q * b.q);
    }
    if (!strcmp(op, "multiply"))
        return fraction(A, idx_mul(A, a.x, b.x), a.q * b.q);
    if (!strcmp(op, "divide"))
        return divide(A, a, b, floats);
    if (!strcmp(op, "equal") || !strcmp(op, "not_equal"))
        return equal(A, a, b, *op == 'n');
    if (!strcmp(op, "less"))
        return less(A, a, b);
    if (!strcmp(op, "greater"))
        return less(A, b, a);
    if (!strcmp(op, "greater_equal"))
        return not(A, less(A, a, b));
    if (!strcmp(op, "less_equal"))
        return not(A, less(A, b, a));
    if (a.q != 1 || b.q != 1)
        return unknown;
    if (!strcmp(op, "maximum") || !strcmp(op, "minimum"))
        return whole(op[1] == 'a' ? idx_max(A, a.x, b.x) : idx_min(A, a.x, b.x));
    if (b.x->lo <= 0)
        return unknown;
    if (!strcmp(op, "floor_divide"))
        return whole(idx_div(A, a.x, b.x));
    if (!strcmp(op, "floor_mod") || (!strcmp(op, "mod") && a.x->lo >= 0))
        return whole(idx_mod(A, a.x, b.x));
    return unknown;
}

static Cell unary(const Eval *ev, const char *op, Cell a)
{
    Arith *A = ev->c->arith;

    if (!a.x)
        return a;
    if (!strcmp(op, "copy") || (!strcmp(op, "abs") && a.x->lo >= 0))
        return a;
    if (!strcmp(op, "floor") || (!strcmp(op, "trunc") && a.x->lo >= 0))
        return floor_of(A, a);
    if (!strcmp(op, "ceil"))
        return ceil_of(A, a);
    if (!strcmp(op, "negative"))
        return (Cell){idx_mulc(A, a.x, -1), a.q};
    if (!strcmp(op, "logical_not"))
        return not(A, a);
    return unknown;
}

static Cell choose(Cell cond, Cell a, Cell b)
{
    if (is_number(cond, 1) || (a.x == b.x && a.q == b.q))
        return a;
    return is_number(cond, 0) ? b : unknown;
}

/* ---- one operator ---------------------------------------------------------------------------------- */

/* Cell i of a result of type t, in an operand that broadcasts to it. */
static Cell broadcast(const Type *t, uint32_t i, const Type *from, Cells cells)
{
    int64_t at = 0, step = 1, n, m;

    for (uint32_t k = t->n; k-- > 0;) {
        uint32_t left = t->n - k;

        if (!type_dim(t, k, &n) || n < 1)
            return unknown;
        if (left <= from->n) {
            if (!type_dim(from, from->n - left, &m))
                return unknown;
            at += m > 1 ? i % n * step : 0;
            step *= m;
        }
        i = (uint32_t)(i / n);
    }
    return at < (int64_t)cells.n ? cells.at[at] : unknown;
}

static const Cells *known(const Eval *ev, const Expr *e)
{
    return map_get(ev->known, PTR_KEY(e));
}

static bool elementwise(const Eval *ev, const Expr *e, Cells out)
{
    const char  *op = call_op(e)->text;
    uint32_t     n = call_nargs(e);
    const Cells *in[3];

    if (n < 1 || n > 3 || call_op(e)->fusion > FUSE_BROADCAST || !strcmp(op, "full"))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!(in[i] = known(ev, call_arg(e, i))))
            return false;
    for (uint32_t i = 0; i < out.n; i++) {
        Cell a[3];

        for (uint32_t k = 0; k < n; k++)
            a[k] = broadcast(e->type, i, call_arg(e, k)->type, *in[k]);
        out.at[i] = !strcmp(op, "cast")           ? cast(ev->c->arith, e->type->dtype, a[0])
                    : !strcmp(op, "broadcast_to") ? a[0]
                    : n == 3                      ? choose(a[0], a[1], a[2])
                    : n == 1                      ? unary(ev, op, a[0])
                             : binary(ev, op, call_arg(e, 0)->type->dtype, a[0], a[1]);
        if (out.at[i].x && !dtype_is_bool(e->type->dtype) && !fits(e->type->dtype, out.at[i].x))
            out.at[i] = unknown;
    }
    return true;
}

/* The cells of x that lie `begin` and so many steps from there along each axis of x, in the order
 * of the result, whose axis k is axis `of[k]` of x. */
static bool pick(const Type *t, const Type *from, const Cells *x, const uint32_t *of,
                 const int64_t *begin, const int64_t *step, Cells out)
{
    int64_t stride[PICK_RANK], cells = 1, extent, n;

    for (uint32_t k = from->n; k-- > 0; cells *= extent) {
        stride[k] = cells;
        if (!type_dim(from, k, &extent))
            return false;
    }
    for (uint32_t i = 0; i < out.n; i++) {
        int64_t rest = i, at = 0;
        bool    inside = true;

        for (uint32_t k = t->n; k-- > 0;) {
            if (!type_dim(t, k, &n) || !type_dim(from, of[k], &extent) || n < 1)
                return false;
            int64_t where = begin[of[k]] + rest % n * step[of[k]];

            inside &= where >= 0 && where < extent;
            at += where * stride[of[k]];
            rest /= n;
        }
        out.at[i] = inside && at < (int64_t)x->n ? x->at[at] : unknown;
    }
    return true;
}

static bool slice(const Eval *ev, const Expr *e, Cells out)
{
    const StridedSliceAttrs *a = e->u.attrs;
    const Type              *from = call_arg(e, 0)->type;
    const Cells             *x = known(ev, call_arg(e, 0));
    int64_t                  begin[PICK_RANK], step[PICK_RANK], extent;
    uint32_t                 of[PICK_RANK];

    if (!x || from->n > PICK_RANK || from->n != e->type->n)
        return false;
    for (uint32_t k = 0; k < from->n; k++)
        of[k] = k, begin[k] = 0, step[k] = 1;
    for (uint32_t i = 0; i < a->begin.n; i++) {
        int64_t axis = a->axes.n ? a->axes.at[i] : i;
        int64_t k = axis < 0 ? axis + from->n : axis;

        if (!type_dim(from, (uint32_t)k, &extent) || !idx_is_const(a->begin.at[i], &begin[k]))
            return false;
        step[k] = a->strides.n ? a->strides.at[i] : 1;
        begin[k] += begin[k] < 0 ? extent : 0;
        begin[k] = begin[k] < 0 ? 0 : begin[k] >= extent ? extent - (step[k] < 0) : begin[k];
    }
    return pick(e->type, from, x, of, begin, step, out);
}

static bool transpose(const Eval *ev, const Expr *e, Cells out)
{
    static const int64_t  zeros[PICK_RANK], ones[PICK_RANK] = {1, 1, 1, 1};
    const TransposeAttrs *a = e->u.attrs;
    const Type           *from = call_arg(e, 0)->type;
    const Cells          *x = known(ev, call_arg(e, 0));
    uint32_t              of[PICK_RANK];

    if (!x || from->n > PICK_RANK)
        return false;
    for (uint32_t k = 0; k < from->n; k++) {
        int64_t axis = a->axes.n ? a->axes.at[k] : from->n - 1 - k;

        of[k] = (uint32_t)(axis < 0 ? axis + from->n : axis);
    }
    return pick(e->type, from, x, of, zeros, ones, out);
}

static bool concatenate(const Eval *ev, const Expr *e, Cells out)
{
    const Expr *t = call_arg(e, 0);
    uint32_t    n = 0;

    if (t->kind != EXPR_TUPLE || e->type->n != 1)
        return false;
    for (uint32_t i = 0; i < t->nkids; i++) {
        const Cells *x = known(ev, t->kids[i]);

        if (!x || x->n > out.n - n)
            return false;
        memcpy(out.at + n, x->at, x->n * sizeof *x->at);
        n += x->n;
    }
    return n == out.n;
}

static bool take(const Eval *ev, const Expr *e, Cells out)
{
    const TakeAttrs *a = e->u.attrs;
    const Cells     *x = known(ev, call_arg(e, 0)), *at = known(ev, call_arg(e, 1));
    int64_t          k;

    if (!x || !at || call_arg(e, 0)->type->n != 1 || a->batch_dims || at->n != out.n)
        return false;
    for (uint32_t i = 0; i < out.n; i++) {
        if (!at->at[i].x || !idx_is_const(at->at[i].x, &k))
            return false;
        if (k < 0 && !strcmp(a->mode, "wrap"))
            k += x->n;
        out.at[i] = k >= 0 && k < x->n ? x->at[k] : unknown;
    }
    return true;
}

/* Of lists; torch.onnx puts a size into a shape so. */
static bool scatter(const Eval *ev, const Expr *e, Cells out)
{
    const ScatterElementsAttrs *a = e->u.attrs;
    const Cells                *x = known(ev, call_arg(e, 0)), *at = known(ev, call_arg(e, 1));
    const Cells                *v = known(ev, call_arg(e, 2));
    int64_t                     k;

    if (!x || !at || !v || e->type->n != 1 || strcmp(a->reduction, "update") != 0)
        return false;
    memcpy(out.at, x->at, out.n * sizeof *out.at);
    for (uint32_t i = 0; i < at->n && i < v->n; i++) {
        if (!at->at[i].x || !idx_is_const(at->at[i].x, &k))
            return false;
        k += k < 0 ? out.n : 0;
        if (k >= 0 && k < out.n)
            out.at[k] = v->at[i];
    }
    return true;
}

static bool reduce(const Eval *ev, const Expr *e, Cells out)
{
    const char  *op = !strcmp(call_op(e)->text, "prod")  ? "multiply"
                      : !strcmp(call_op(e)->text, "sum") ? "add"
                      : !strcmp(call_op(e)->text, "max") ? "maximum"
                                                         : "minimum";
    const Cells *x = known(ev, call_arg(e, 0));

    if (!x || !x->n || out.n != 1)
        return false;
    out.at[0] = x->at[0];
    for (uint32_t i = 1; i < x->n; i++)
        out.at[0] = binary(ev, op, e->type->dtype, out.at[0], x->at[i]);
    return true;
}

static bool same_cells(const Eval *ev, const Expr *e, Cells out)
{
    const Cells *x = known(ev, call_arg(e, 0));

    if (!x || x->n != out.n)
        return false;
    memcpy(out.at, x->at, out.n * sizeof *out.at);
    return true;
}

static bool fill(const Eval *ev, const Expr *e, Cells out)
{
    const Cells *x = call_nargs(e) ? known(ev, call_arg(e, 0)) : NULL;

    if (call_nargs(e) && (!x || x->n != 1))
        return false;
    for (uint32_t i = 0; i < out.n; i++)
        out.at[i] = x ? x->at[0] : number(ev, call_is(e, "ones"));
    return true;
}

static bool list(const Eval *ev, const Expr *e, Cells out)
{
    const DimValuesAttrs *a = e->u.attrs;

    for (uint32_t i = 0; i < out.n; i++)
        out.at[i] = fits(a->dtype, a->dims.at[i]) ? whole(a->dims.at[i]) : unknown;
    (void)ev;
    return true;
}

static bool call(const Eval *ev, const Expr *e, Cells out)
{
    static const struct {
        const char *op;
        bool (*fn)(const Eval *ev, const Expr *e, Cells out);
    } rows[] = {{"dim_values", list},
                {"strided_slice", slice},
                {"take", take},
                {"scatter_elements", scatter},
                {"concatenate", concatenate},
                {"prod", reduce},
                {"sum", reduce},
                {"max", reduce},
                {"min", reduce},
                {"transpose", transpose},
                {"reshape", same_cells},
                {"expand_dims", same_cells},
                {"squeeze", same_cells},
                {"full", fill},
                {"zeros", fill},
                {"ones", fill}};

    for (uint32_t i = 0; i < COUNT(rows); i++)
        if (call_is(e, rows[i].op))
            return rows[i].fn(ev, e, out);
    return elementwise(ev, e, out);
}

/* ---- expressions ------------------------------------------------------------------------------------ */

static bool is_small(const Expr *e)
{
    int64_t n;

    return expr_is_tensor(e) && type_elems(e->type, &n) && n <= MAX_CELLS;
}

/* Cells of what is no operator of shapes are data of the run. */
static void evaluate(const Eval *ev, const Expr *e)
{
    int64_t n;
    Cells  *out;

    if (!is_small(e))
        return;
    type_elems(e->type, &n);
    out = NEW(ev->c->scratch, Cells);
    *out = (Cells){(uint32_t)n, NEW_ARRAY(ev->c->scratch, Cell, (size_t)n + 1)};
    if (e->kind == EXPR_CONST)
        for (uint32_t i = 0; i < out->n; i++)
            out->at[i] = cell_of_const(ev, e->u.constant, i);
    else if (!call_op(e) || !call(ev, e, *out))
        for (uint32_t i = 0; i < out->n; i++)
            out->at[i] = unknown;
    map_put(ev->known, PTR_KEY(e), out);
}

/* The next operand of e that is worth a look: small, or a list of such. */
static const Expr *next_operand(const Expr *e, uint32_t *at)
{
    bool open = e->kind == EXPR_TUPLE || call_op(e);

    while (open && *at < e->nkids) {
        const Expr *kid = e->kids[(*at)++];

        if (is_small(kid) || kid->kind == EXPR_TUPLE)
            return kid;
    }
    return NULL;
}

typedef struct {
    const Expr *e;
    uint32_t    next;
} Visit;

/* Operands first, no farther than over so many nodes. */
static const Cells *cells_of(Ctx *c, const Expr *e)
{
    Eval ev = {c, map_new(c->scratch)};
    Map *seen = map_new(c->scratch);
    VEC(Visit) stack = {0};
    uint32_t nodes = 0;

    if (is_small(e))
        vec_push(c->scratch, &stack, ((Visit){e, 0}));
    while (stack.n > 0) {
        Visit      *top = &stack.at[stack.n - 1];
        const Expr *kid = next_operand(top->e, &top->next);

        if (!kid) {
            evaluate(&ev, top->e);
            stack.n--;
        } else if (nodes < MAX_NODES && !map_get(seen, PTR_KEY(kid))) {
            map_put(seen, PTR_KEY(kid), seen);
            nodes++;
            vec_push(c->scratch, &stack, ((Visit){kid, 0}));
        }
    }
    return known(&ev, e);
}

bool build_forms(const Build *b, const Expr *e, Dims *out)
{
    const Cells *v = cells_of(b->c, e);
    const Idx  **dims;

    if (!v)
        return false;
    dims = NEW_ARRAY(b->c->arena, const Idx *, v->n + 1);
    for (uint32_t i = 0; i < v->n; i++)
        if (v->at[i].q != 1 || !(dims[i] = v->at[i].x))
            return false;
    *out = (Dims){v->n, dims};
    return true;
}

const Expr *build_values(const Build *b, const Type *t, Dims v)
{
    uint32_t        size = dtype_bytes(t->dtype);
    uint8_t        *at = arena_array(b->c->arena, v.n + 1, size);
    bool            numbers = true;
    DimValuesAttrs *a;

    for (uint32_t i = 0; i < v.n; i++) {
        int64_t k = 0;

        numbers &= idx_is_const(v.at[i], &k);
        dtype_put_i(t->dtype, at + i * size, k);
    }
    if (numbers)
        return expr_const(b->c, const_new(b->c, NULL, t, (Bytes){at, v.n * size}), b->loc);
    a = ATTRS(b, DimValuesAttrs);
    a->dims = dims_dup(b->c, v.at, v.n);
    a->dtype = t->dtype;
    return build_reshape_to(b, build_call(b, "dim_values", 0, NULL, a), t->n, t->dims);
}

const Expr *build_number(const Build *b, const Idx *v)
{
    return build_values(b, type_tensor(b->c, DT_I64, 0, NULL), (Dims){1, &v});
}

const Expr *build_fold_forms(const Build *b, const Expr *e)
{
    Dims v;

    return !dtype_is_float(expr_dtype(e)) && build_forms(b, e, &v) ? build_values(b, e->type, v)
                                                                   : NULL;
}

/* Dimensions as numbers, as dim_values makes them. */
static bool is_sizes(const Expr *v)
{
    return call_is(call_is(v, "reshape") ? call_arg(v, 0) : v, "dim_values");
}

const Expr *build_fold_sizes(const Build *b, Map *known, uint32_t nin, const Expr *const *in,
                             const Expr *v)
{
    bool        sizes = false, closed = true;
    const Expr *folded;

    for (uint32_t i = 0; i < nin; i++) {
        bool size = in[i] && map_get(known, PTR_KEY(in[i]));

        sizes |= size;
        closed &= size || !in[i] || in[i]->kind == EXPR_CONST;
    }
    if (!expr_is_tensor(v) || v->kind == EXPR_CONST || (!(sizes && closed) && !is_sizes(v)))
        return v;
    if ((folded = build_fold_forms(b, v)))
        v = folded;
    if (v->kind != EXPR_CONST)
        map_put(known, PTR_KEY(v), (void *)(uintptr_t)v);
    return v;
}
