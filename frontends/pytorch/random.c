/* Random numbers (frontends/random.c): those of one run, since what is compiled has no state.  A
 * node's seed is its number in the program. */
#include "frontends/pytorch/pytorch.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ORDER = 1 << 20 };

/* Sizes that are numbers. */
static bool sizes_of(PtNode *n, Dims dims, Ints *out)
{
    int64_t *v = NEW_ARRAY(n->b.c->arena, int64_t, dims.n + 1);

    for (uint32_t i = 0; i < dims.n; i++)
        if (!idx_is_const(dims.at[i], &v[i]))
            return pt_error(n, E_UNSUPPORTED, "random numbers of %s cells",
                            dim_text(n->b.c, dims.at[i]));
    *out = (Ints){dims.n, v};
    return true;
}

/* In [0, 1) if flat, else normal. */
static const Expr *numbers(PtNode *n, bool flat, Dims dims)
{
    Ints shape;

    return sizes_of(n, dims, &shape)
               ? build_random(&n->b, philox_new(n->p->ordinal, 0), flat, shape)
               : NULL;
}

static bool shape_of(PtNode *n, Dims *dims, DType *t)
{
    const Expr *x;

    *t = DT_F32;
    if (pt_has(n, "size"))
        return pt_forms(n, "size", dims) && build_check_shape(&n->b, *dims) &&
               pt_type(n, "dtype", DT_F32, t);
    if (!(x = pt_tensor(n, "self")))
        return false;
    *dims = expr_forms(x);
    return pt_type(n, "dtype", expr_dtype(x), t);
}

/* rand, rand_like, and their normal sisters */
bool aten_random(PtNode *n)
{
    Dims  dims;
    DType t;

    return shape_of(n, &dims, &t) &&
           pt_done(n, build_cast(&n->b, numbers(n, !strstr(n->p->target, "randn"), dims), t));
}

bool aten_randint(PtNode *n)
{
    const Build *b = &n->b;
    int64_t      low = pt_int(n, "low", 0), high = pt_int(n, "high", 0), count;
    const Expr  *x;
    Dims         dims;
    DType        t;

    if (!pt_forms(n, "size", &dims) || !build_check_shape(b, dims) ||
        !pt_type(n, "dtype", DT_I64, &t))
        return false;
    if (high <= low || !checked_sub(high, low, &count) || count > 1 << 24)
        return pt_error(n, E_UNSUPPORTED, "numbers from %lld to %lld", (long long)low,
                        (long long)high);
    x = build_by(b, "multiply", numbers(n, true, dims), (double)count);
    return pt_done(n,
                   build_cast(b, build_by(b, "add", build1(b, "floor", x, NULL), (double)low), t));
}

/* normal, where it makes a tensor: means and deviations, one of which is a tensor. In TorchScript
 * its arguments come by the places of those of normal_. */
static bool normal(PtNode *n)
{
    const Build *b = &n->b;
    bool         placed = pt_has(n, "self");
    const char  *by = placed ? "mean" : "std";
    PtOperand    mean, std = {.e = expr_scalar(b->c, DT_F32, 1)};
    const Expr  *x[2];
    Dims         dims;

    if (!pt_operand(n, placed ? "self" : "mean", &mean) ||
        (pt_has(n, by) && !pt_operand(n, by, &std)))
        return false;
    if (!mean.e && !std.e)
        return pt_error(n, E_UNSUPPORTED, "a mean and a deviation that are numbers");
    x[0] = pt_as(n, &mean, DT_F32), x[1] = pt_as(n, &std, DT_F32);
    return x[0] && x[1] && build_broadcast_dims(b, expr_forms(x[0]), expr_forms(x[1]), &dims) &&
           pt_done(n, build_cast(b, build_add(b, build_mul(b, numbers(n, false, dims), x[1]), x[0]),
                                 expr_dtype(mean.e ? mean.e : std.e)));
}

/* uniform and normal, which fill a tensor, from one number to another or of a mean and a deviation
 */
bool aten_filled_randomly(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = pt_tensor(n, "self"), *v;
    bool         flat = pt_has(n, "from") || strstr(n->p->target, "uniform") != NULL;
    double       at = flat ? pt_float(n, "from", 0) : pt_float(n, "mean", 0);
    double       by = flat ? pt_float(n, "to", 1) - at : pt_float(n, "std", 1);

    if (!x)
        return false;
    v = build_by(b, "multiply", numbers(n, flat, expr_forms(x)), by);
    return pt_done(n, build_cast(b, build_by(b, "add", v, at), expr_dtype(x)));
}

bool aten_normal(PtNode *n)
{
    return n->p->in_place ? aten_filled_randomly(n) : normal(n);
}

/* -log(1 - u) / lambd */
bool aten_exponential(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = pt_tensor(n, "self"), *u;
    double       rate = pt_float(n, "lambd", 1);

    if (!x)
        return false;
    if (!(rate > 0))
        return pt_error(n, E_IMPORT, "lambd is %g", rate);
    u = build1(b, "negative", numbers(n, true, expr_forms(x)), NULL);
    u = build1(b, "log", build_by(b, "add", u, 1), NULL);
    return pt_done(n, build_cast(b, build_by(b, "divide", u, -rate), expr_dtype(x)));
}

bool aten_bernoulli(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = pt_tensor(n, "self"), *u;
    PtOperand    p = {.e = x};

    if (!x || (pt_has(n, "p") && !pt_operand(n, "p", &p)))
        return false;
    u = numbers(n, true, expr_forms(x));
    return pt_done(n, build_cast(b, build_less(b, u, pt_as(n, &p, DT_F32)), expr_dtype(x)));
}

typedef struct {
    uint32_t key;
    int64_t  at;
} Keyed;

static int by_key(const void *a, const void *b)
{
    const Keyed *x = a, *y = b;

    return x->key != y->key ? (x->key < y->key ? -1 : 1) : (x->at > y->at) - (x->at < y->at);
}

bool aten_randperm(PtNode *n)
{
    int64_t  count = pt_int(n, "n", 0), *at;
    Philox   p = philox_new(n->p->ordinal, 0);
    uint32_t four[4];
    Keyed   *keys;
    DType    t;

    if (!pt_type(n, "dtype", DT_I64, &t))
        return false;
    if (count < 0 || count > MOST_ORDER)
        return pt_error(n, E_UNSUPPORTED, "an order of %lld", (long long)count);
    keys = NEW_ARRAY(n->b.c->arena, Keyed, count + 1);
    at = NEW_ARRAY(n->b.c->arena, int64_t, count + 1);
    for (int64_t i = 0; i < count; i++) {
        if (i % 4 == 0)
            philox_next(&p, four);
        keys[i] = (Keyed){four[i % 4], i};
    }
    qsort(keys, (size_t)count, sizeof *keys, by_key);
    for (int64_t i = 0; i < count; i++)
        at[i] = keys[i].at;
    return pt_done(n, build_cast(&n->b, build_const(&n->b, DT_I64, 1, &count, at), t));
}

/* Classes by odds [.., C].  Again and again: the first whose sum of odds is above a number; each
 * once: the largest of log(odds) - log(-log(number)) (Gumbel's). */
bool aten_multinomial(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = pt_tensor(n, "self"), *u, *sum, *total;
    int64_t      count = pt_int(n, "num_samples", 1), axis, classes;
    bool         again = pt_bool(n, "replacement", false) || count == 1;
    TopKAttrs   *top = ATTRS(b, TopKAttrs);
    const Idx   *dims[2];
    uint32_t     rank;

    if (!x)
        return false;
    rank = expr_rank(x);
    if (rank < 1 || rank > 2 || pt_dtype_kind(expr_dtype(x)) != 2)
        return pt_error(n, E_IMPORT, "odds are %s", type_text(b->c, x->type));
    axis = rank - 1;
    classes = build_dim(b, x, rank - 1);
    if (count < 1 || (!again && count > classes))
        return pt_error(n, E_IMPORT, "%lld of %lld classes", (long long)count, (long long)classes);
    x = build_cast(b, x, DT_F32);
    memcpy(dims, expr_forms(x).at, rank * sizeof *dims);
    if (!again) {
        u = build_by(b, "maximum", numbers(n, true, expr_forms(x)), 1e-7);
        u = build1(b, "log", build1(b, "negative", build1(b, "log", u, NULL), NULL), NULL);
        top->k = count;
        top->axis = axis;
        top->dtype = DT_I64;
        x = build1(b, "topk", build_sub(b, build1(b, "log", x, NULL), u), top);
        return pt_done(n, build_proj(b, x, 1));
    }
    dims[axis] = idx_const(b->c->arith, count);
    sum = build_scan(b, "cumsum", x, axis, false, false);
    total = build_reduce(b, "sum", x, 1, &axis, true);
    u = build_mul(b, numbers(n, true, (Dims){rank, dims}), total);
    sum = build2(b, "less_equal", build_expand_dims(b, sum, axis, 1),
                 build_expand_dims(b, u, rank, 1), NULL);
    x = build_reduce(b, "sum", build_cast(b, sum, DT_I64), 1, (int64_t[]){(int64_t)rank}, false);
    return pt_done(n, build_by(b, "minimum", x, (double)(classes - 1)));
}
