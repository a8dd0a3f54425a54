/* What is made from shapes and numbers, and what stays what it is. */
#include "frontends/tensorflow/tensorflow.h"

#include <math.h>
#include <string.h>

bool tf_const(TfNode *n)
{
    const TfValueDef *v = tf_attr(n->op, "value");

    if (!v || !v->tensor)
        return tf_error(n, E_IMPORT, "it has no value");
    if (v->tensor->dtype == TF_COMPLEX64)
        return tf_complex_const(n, v->tensor);
    return tf_done(n, tf_constant(n->im, v->tensor, n->op->name, n->b.loc));
}

/* Inputs of the model have their values before. */
bool tf_placeholder(TfNode *n)
{
    return tf_error(n, E_IMPORT, "it is no input of the model, and has no value");
}

bool tf_same(TfNode *n)
{
    for (uint32_t i = 0; i < n->nout && i < n->nin; i++)
        n->out[i] = n->given[i];
    return true;
}

bool tf_nothing(TfNode *n)
{
    (void)n;
    return true;
}

/* ---- shapes ----------------------------------------------------------------------------------------- */

static const Expr *shape_values(TfNode *n, Dims v, uint32_t rank)
{
    DType t;

    if (!tf_type(n, "out_type", &t))
        return NULL;
    return build_values(&n->b, type_tensor_i64(n->b.c, t, rank, (int64_t[]){v.n}), v);
}

bool tf_shape(TfNode *n)
{
    return tf_done(n, shape_values(n, expr_forms(n->in[0]), 1));
}

bool tf_shape_n(TfNode *n)
{
    for (uint32_t i = 0; i < n->nin; i++)
        if (!tf_put(n, i, shape_values(n, expr_forms(n->in[i]), 1)))
            return false;
    return true;
}

bool tf_size(TfNode *n)
{
    const Idx *cells = type_cells(n->b.c, n->in[0]->type);

    return tf_done(n, shape_values(n, (Dims){1, &cells}, 0));
}

bool tf_rank_of(TfNode *n)
{
    return tf_done(n, expr_scalar(n->b.c, DT_I32, expr_rank(n->in[0])));
}

/* The shape that two shapes broadcast to. */
bool tf_broadcast_args(TfNode *n)
{
    Dims  x, y, v;
    DType t;

    return tf_forms(n, 0, &x) && tf_forms(n, 1, &y) && tf_type(n, "T", &t) &&
           build_broadcast_dims(&n->b, x, y, &v) &&
           tf_done(n, build_values(&n->b, type_tensor_i64(n->b.c, t, 1, (int64_t[]){v.n}), v));
}

/* ---- cells ------------------------------------------------------------------------------------------ */

bool tf_fill(TfNode *n)
{
    Dims v;

    return tf_forms(n, 0, &v) && build_check_shape(&n->b, v) && tf_rank(n, 1, 0, 0) &&
           tf_done(n, build_broadcast_to(&n->b, n->in[1], v.n, v.at));
}

bool tf_like(TfNode *n)
{
    double v = !strcmp(n->row->name, "OnesLike");

    return tf_done(n, build_filled(&n->b, n->in[0], v, expr_forms(n->in[0])));
}

/* From input 0 up to input 1 in steps of input 2. */
bool tf_range(TfNode *n)
{
    double v[3];

    for (uint32_t i = 0; i < 3; i++) {
        if (!expr_single(n->in[i]))
            return tf_error(n, E_IMPORT, "input %u is no scalar", i);
        if (!expr_const_f(n->in[i], &v[i]) || !isfinite(v[i]))
            return tf_done(n, build_range_forms(&n->b, n->in[0], n->in[1], n->in[2]));
    }
    return tf_done(n, build_range(&n->b, expr_dtype(n->in[0]), v[0], v[1], v[2]));
}

/* Inputs: the first, the last, how many. */
bool tf_lin_space(TfNode *n)
{
    const Build *b = &n->b;
    const Expr  *step, *i;
    int64_t      count;

    if (!tf_number(n, 2, &count) || !tf_rank(n, 0, 0, 0) || !tf_rank(n, 1, 0, 0))
        return false;
    if (count < 1 || count > 1 << 24)
        return tf_error(n, E_IMPORT, "%lld cells", (long long)count);
    if (count == 1)
        return tf_done(n, build_reshape(b, n->in[0], 1, &count));
    step = build_by(b, "divide", build_sub(b, n->in[1], n->in[0]), (double)(count - 1));
    i = build_arange(b, idx_const(b->c->arith, count), expr_dtype(n->in[0]));
    return tf_done(n, build_add(b, build_mul(b, i, step), n->in[0]));
}

/* y[x[i]] = i */
bool tf_invert_permutation(TfNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0];

    if (!tf_rank(n, 0, 1, 1))
        return false;
    return tf_done(n, build3(b, "scatter_nd", build_filled(b, x, 0, expr_forms(x)),
                             build_expand_dims(b, x, 0, 1),
                             build_arange(b, expr_form(x, 0), expr_dtype(x)), NULL));
}

/* Inputs: numbers of cells, or one, and a shape: the positions, [rank, numbers]. */
bool tf_unravel_index(TfNode *n)
{
    Ints dims;

    return tf_ints(n, 1, &dims) && tf_done(n, build_unravel_index(&n->b, n->in[0], dims));
}

/* ---- random numbers --------------------------------------------------------------------------------- */

/* Those of the first run; without seeds its place in the model is one. */
bool tf_random(TfNode *n)
{
    uint64_t seed = (uint64_t)tf_int(n, "seed"), seed2 = (uint64_t)tf_int(n, "seed2");
    DType    t;
    Ints     shape;

    if (!seed && !seed2)
        seed = n->im->converted;
    if (!tf_type(n, "dtype", &t) || !tf_ints(n, 0, &shape))
        return false;
    return tf_done(n, build_cast(&n->b,
                                 build_random(&n->b, philox_new(seed, seed2),
                                              !strcmp(n->row->name, "RandomUniform"), shape),
                                 t));
}
