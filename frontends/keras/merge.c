/* What makes one value of several, and products of matrices. */
#include "frontends/keras/keras.h"

#include <math.h>
#include <string.h>

/* ---- masks of several values ------------------------------------------------------------------------ */

/* Steps that any has, or (`all`) that all have; a value without a mask has all. */
static const Expr *joined_mask(KerasNode *n, bool all)
{
    const Expr *mask = NULL;

    for (uint32_t i = 0; i < n->nin; i++) {
        const Expr *m = n->in[i].mask;

        if (!m && !all)
            return NULL;
        if (m)
            mask = mask ? build2(&n->b, all ? "logical_and" : "logical_or", mask, m, NULL) : m;
    }
    return mask;
}

/* ---- cell by cell ----------------------------------------------------------------------------------- */

/* Dimensions of 1 behind the batch, up to that rank. */
static const Expr *widened(const Build *b, const Expr *x, uint32_t rank)
{
    return x && expr_rank(x) < rank && expr_rank(x) > 0
               ? build_expand_dims(b, x, 1, rank - expr_rank(x))
               : x;
}

static bool merged(KerasNode *n, const char *op, bool mean)
{
    const Build *b = &n->b;
    const Expr  *y;
    uint32_t     rank = 0;

    if (!keras_count(n, 1, UINT32_MAX))
        return false;
    for (uint32_t i = 0; i < n->nin; i++)
        rank = expr_rank(n->in[i].e) > rank ? expr_rank(n->in[i].e) : rank;
    y = widened(b, n->in[0].e, rank);
    for (uint32_t i = 1; i < n->nin && y; i++)
        y = build2(b, op, y, widened(b, n->in[i].e, rank), NULL);
    if (mean && y)
        y = build_by(b, "multiply", y, 1.0 / n->nin);
    return keras_done_masked(n, y, joined_mask(n, n->im->major < 3 || !strcmp(op, "multiply")));
}

bool keras_merge(KerasNode *n)
{
    return merged(n, n->row->relay, false);
}

bool keras_average(KerasNode *n)
{
    return merged(n, "add", true);
}

static bool concatenated(KerasNode *n, int64_t at)
{
    const Build *b = &n->b;
    const Expr **xs = NEW_ARRAY(b->c->arena, const Expr *, n->nin + 1), *mask;
    uint32_t     axis;

    if (!keras_count(n, 1, UINT32_MAX))
        return false;
    for (uint32_t i = 0; i < n->nin; i++)
        xs[i] = n->in[i].e;
    if (!keras_axis(n, at, expr_rank(xs[0]), &axis))
        return false;
    mask = joined_mask(n, n->im->major < 3);
    if (mask && axis == 1 && !n->moved) { /* along the steps */
        const Expr **ms = NEW_ARRAY(b->c->arena, const Expr *, n->nin + 1);

        for (uint32_t i = 0; i < n->nin; i++)
            ms[i] = n->in[i].mask ? n->in[i].mask
                                  : build_broadcast_to(b, expr_scalar(b->c, DT_BOOL, 1), 2,
                                                       expr_forms(xs[i]).at);
        mask = build_concat(b, n->nin, ms, 1);
    }
    return keras_done_masked(n, build_concat(b, n->nin, xs, axis), mask);
}

bool keras_concatenate(KerasNode *n)
{
    return concatenated(n, keras_int(n, "axis", -1));
}

/* ---- products --------------------------------------------------------------------------------------- */

static const Expr *product2(const Build *b, const Expr *x, const Expr *y, bool ty)
{
    MatmulAttrs *a = ATTRS(b, MatmulAttrs);
    DenseAttrs  *d = ATTRS(b, DenseAttrs);
    const Expr  *r;

    if (!x || !y)
        return NULL;
    a->out_dtype = d->out_dtype = build_sum_dtype(x);
    r = ty ? build2(b, "nn.dense", x, y, d) : build2(b, "nn.matmul", x, y, a);
    return r ? build_cast(b, r, expr_dtype(x)) : NULL;
}

static const Expr *product3(const Build *b, const Expr *x, const Expr *y, bool ty)
{
    BatchMatmulAttrs *a = ATTRS(b, BatchMatmulAttrs);
    const Expr       *r;

    if (!x || !y)
        return NULL;
    a->out_dtype = build_sum_dtype(x);
    a->transpose_b = ty;
    r = build2(b, "nn.batch_matmul", x, y, a);
    return r ? build_cast(b, r, expr_dtype(x)) : NULL;
}

/* x times y, or (ty) the transposed y; all rows of x against one matrix are one product. */
const Expr *keras_matmul(const KerasNode *n, const Expr *x, const Expr *y, bool ty)
{
    const Build *b = &n->b;
    const Idx   *dims[MAX_RANK], *rows;
    uint32_t     rank;
    const Expr  *r;

    if (!x || !y)
        return NULL;
    rank = expr_rank(x);
    if (rank < 1 || expr_rank(y) < 2 ||
        expr_form(x, rank - 1) != expr_form(y, expr_rank(y) - (ty ? 1 : 2)))
        return keras_error(n, E_IMPORT, "the operands do not fit: %s times %s",
                           type_text(b->c, x->type), type_text(b->c, y->type));
    if (expr_rank(y) > 2) {
        for (uint32_t i = rank; i < expr_rank(y); i++)
            x = build_expand_dims(b, x, 0, 1);
        return product3(b, x, y, ty);
    }
    if (rank == 2)
        return product2(b, x, y, ty);
    rows = idx_const(b->c->arith, 1);
    for (uint32_t i = 0; i + 1 < rank; i++)
        rows = idx_mul(b->c->arith, rows, dims[i] = expr_form(x, i));
    dims[rank - 1] = expr_form(y, !ty);
    r = build_reshape_to(b, x, 2, (const Idx *[]){rows, expr_form(x, rank - 1)});
    return build_reshape_to(b, product2(b, r, y, ty), rank, dims);
}

/* Weights [units, k], as dense layers have them in Relay; the bias may be NULL. */
const Expr *keras_dense(const KerasNode *n, const Expr *x, const Expr *w, const Expr *bias)
{
    const Build  *b = &n->b;
    BiasAddAttrs *a = ATTRS(b, BiasAddAttrs);
    const Idx    *dims[MAX_RANK], *rows;
    uint32_t      rank;
    const Expr   *y = x;

    if (!x || !w)
        return NULL;
    rank = expr_rank(x);
    if (rank < 1 || expr_rank(w) != 2 || expr_form(w, 1) != expr_form(x, rank - 1))
        return keras_error(n, E_IMPORT, "its weight is %s for data %s", type_text(b->c, w->type),
                           type_text(b->c, x->type));
    if (bias && (expr_rank(bias) != 1 || expr_form(bias, 0) != expr_form(w, 0)))
        return keras_error(n, E_IMPORT, "its bias is %s for %s units", type_text(b->c, bias->type),
                           dim_text(b->c, expr_form(w, 0)));
    rows = idx_const(b->c->arith, 1);
    for (uint32_t i = 0; i + 1 < rank; i++)
        rows = idx_mul(b->c->arith, rows, dims[i] = expr_form(x, i));
    if (rank != 2)
        y = build_reshape_to(b, x, 2, (const Idx *[]){rows, expr_form(x, rank - 1)});
    y = product2(b, y, w, true);
    if (y && bias)
        y = build2(b, "nn.bias_add", y, bias, a);
    dims[rank - 1] = expr_form(w, 0);
    return rank == 2 || !y ? y : build_reshape_to(b, y, rank, dims);
}

/* The dimensions of x but the batch and `axis`, then (or first) that one. */
static const Expr *matrix(const Build *b, const Expr *x, uint32_t axis)
{
    uint32_t   rank = expr_rank(x), k = 1;
    int64_t    axes[MAX_RANK];
    const Idx *rows = idx_const(b->c->arith, 1);

    axes[0] = 0;
    for (uint32_t i = 1; i < rank; i++)
        if (i != axis) {
            axes[k++] = i;
            rows = idx_mul(b->c->arith, rows, expr_form(x, i));
        }
    axes[k] = axis;
    if (axis + 1 != rank)
        x = build_transpose(b, x, rank, axes);
    return x ? build_reshape_to(b, x, 3,
                                (const Idx *[]){expr_form(x, 0), rows, expr_form(x, rank - 1)})
             : NULL;
}

/* Of each of the batch the product over axes ax and ay: what is left of x, then of y. */
const Expr *keras_batch_dot(const KerasNode *n, const Expr *x, const Expr *y, uint32_t ax,
                            uint32_t ay)
{
    const Build *b = &n->b;
    const Idx   *dims[2 * MAX_RANK];
    uint32_t     k = 0;
    const Expr  *r;

    if (expr_form(x, ax) != expr_form(y, ay) || expr_rank(x) + expr_rank(y) > MAX_RANK)
        return keras_error(n, E_IMPORT, "the operands do not fit: %s times %s",
                           type_text(b->c, x->type), type_text(b->c, y->type));
    r = product3(b, matrix(b, x, ax), matrix(b, y, ay), true);
    dims[k++] = expr_form(x, 0);
    for (uint32_t i = 1; i < expr_rank(x); i++)
        if (i != ax)
            dims[k++] = expr_form(x, i);
    for (uint32_t i = 1; i < expr_rank(y); i++)
        if (i != ay)
            dims[k++] = expr_form(y, i);
    if (k == 1)
        dims[k++] = idx_const(b->c->arith, 1);
    return build_reshape_to(b, r, k, dims);
}

static const Expr *unit(const Build *b, const Expr *x, int64_t axis)
{
    const Expr *sum = build_reduce(b, "sum", build_mul(b, x, x), 1, &axis, true);

    sum = sum ? build2(b, "maximum", sum, build_scalar(b, sum, 1e-12), NULL) : NULL;
    return build_mul(b, x, build1(b, "rsqrt", sum, NULL));
}

static bool dotted(KerasNode *n, const char *setting, bool normalize)
{
    const Expr *x, *y;
    uint32_t    ax, ay;
    Ints        axes;

    if (!keras_count(n, 2, 2) || !keras_list(n, setting, &axes))
        return false;
    x = n->in[0].e;
    y = n->in[1].e;
    if (axes.n < 1 || axes.n > 2 || expr_rank(x) < 2 || expr_rank(y) < 2)
        return keras_error(n, E_UNSUPPORTED, "%u axes", axes.n);
    if (!keras_axis(n, axes.at[0], expr_rank(x), &ax) ||
        !keras_axis(n, axes.at[axes.n - 1], expr_rank(y), &ay))
        return false;
    if (ax == 0 || ay == 0)
        return keras_error(n, E_UNSUPPORTED, "a product over the batch");
    if (normalize) {
        x = unit(&n->b, x, ax);
        y = unit(&n->b, y, ay);
    }
    return x && y && keras_done(n, keras_batch_dot(n, x, y, ax, ay));
}

bool keras_dot(KerasNode *n)
{
    return dotted(n, "axes", keras_bool(n, "normalize", false));
}

/* ---- Keras 1 ---------------------------------------------------------------------------------------- */

/* The setting `mode` says which of the others it is. */
bool keras_old_merge(KerasNode *n)
{
    static const struct {
        const char *mode, *op;
    } modes[] = {{"sum", "add"}, {"mul", "multiply"}, {"max", "maximum"}, {"ave", "add"}};
    const char *mode = keras_text(n, "mode", "sum");

    if (!strcmp(mode, "concat"))
        return concatenated(n, keras_int(n, "concat_axis", -1));
    for (uint32_t i = 0; i < COUNT(modes); i++)
        if (!strcmp(mode, modes[i].mode))
            return merged(n, modes[i].op, !strcmp(mode, "ave"));
    if (!strcmp(mode, "dot"))
        return dotted(n, "dot_axes", false);
    return keras_error(n, E_UNSUPPORTED, "mode '%s'", mode);
}
