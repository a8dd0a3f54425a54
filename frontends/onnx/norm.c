/* Normalization and softmax. */
#include "frontends/onnx/onnx.h"

#include <math.h>
#include <string.h>

static const Expr *square(const Build *b, const Expr *x)
{
    return build2(b, "multiply", x, x, NULL);
}

/* [C] along dimension 1 of x. */
static const Expr *channelwise(const Build *b, const Expr *x, const Expr *v)
{
    return build_along(b, build_cast(b, v, expr_dtype(x)), expr_rank(x), 1);
}

/* was * momentum + now * (1 - momentum), in the type of `was`. */
static const Expr *moved(const Build *b, const Expr *was, const Expr *now, double momentum)
{
    now = build_cast(b, build_reshape_to(b, now, 1, expr_forms(was).at), expr_dtype(was));
    was = build_by(b, "multiply", was, momentum);
    return build2(b, "add", was,
                  build2(b, "multiply", now, build_scalar(b, was, 1 - momentum), NULL), NULL);
}

/* By the mean and the variance of the data themselves, which move the running ones. */
static bool batch_norm_training(Node *n)
{
    const Build *b = &n->b;
    double       momentum = node_float(n, "momentum", 0.9f);
    int64_t      axes[MAX_RANK];
    const Expr  *x = n->in[0], *mean, *var, *y;
    uint32_t     rank = expr_rank(x), k = 0;
    DType        t = expr_dtype(x);

    for (uint32_t i = 0; i < rank; i++)
        if (i != 1)
            axes[k++] = i;
    x = build_cast(b, x, dtype_eq(t, DT_F64) ? t : DT_F32);
    mean = build_reduce(b, "mean", x, k, axes, true);
    y = build2(b, "subtract", x, mean, NULL);
    if (!y || !(var = build_reduce(b, "mean", square(b, y), k, axes, true)))
        return false;
    n->out[1] = moved(b, n->in[3], mean, momentum);
    n->out[2] = moved(b, n->in[4], var, momentum);
    var = build2(b, "add", var, build_scalar(b, x, node_float(n, "epsilon", 1e-5f)), NULL);
    y = build2(b, "multiply", y, build1(b, "rsqrt", var, NULL), NULL);
    y = build2(b, "multiply", y, channelwise(b, x, n->in[1]), NULL);
    y = build2(b, "add", y, channelwise(b, x, n->in[2]), NULL);
    return n->out[1] && n->out[2] && y && node_done(n, build_cast(b, y, t));
}

bool convert_batch_norm(Node *n)
{
    const Build    *b = &n->b;
    BatchNormAttrs *a = ATTRS(b, BatchNormAttrs);
    const Expr     *args[5];

    if (!node_need_rank(n, 0, 2, MAX_RANK))
        return false;
    /* What is compiled infers; exporters leave is_test out, which would mean training. */
    node_ignore(n, "is_test");
    node_ignore(n, "momentum");
    if (node_int(n, "spatial", 1) != 1)
        return node_error(n, E_UNSUPPORTED, "spatial 0");
    args[0] = n->in[0];
    for (uint32_t i = 1; i < 5; i++) {
        if (!node_need_rank(n, i, 1, 1))
            return false;
        if (build_dim(b, n->in[i], 0) != build_dim(b, n->in[0], 1))
            return node_error(n, E_IMPORT, "input %u has %lld numbers for %lld channels", i,
                              (long long)build_dim(b, n->in[i], 0),
                              (long long)build_dim(b, n->in[0], 1));
        args[i] = build_cast(b, n->in[i], expr_dtype(n->in[0]));
    }
    if (node_int(n, "training_mode", 0))
        return batch_norm_training(n);
    a->epsilon = node_float(n, "epsilon", 1e-5f);
    return node_done(n, build_proj(b, build_call(b, n->relay, 5, args, a), 0));
}

static const Expr *centered(const Build *b, const Expr *x, uint32_t naxes, const int64_t *axes)
{
    return build2(b, "subtract", x, build_reduce(b, "mean", x, naxes, axes, true), NULL);
}

/* Of what is centered. */
static const Expr *variance(const Build *b, const Expr *d, uint32_t naxes, const int64_t *axes)
{
    return d ? build_reduce(b, "mean", square(b, d), naxes, axes, true) : NULL;
}

bool convert_instance_norm(Node *n)
{
    const Expr *y;

    if (!node_need_rank(n, 0, 3, MAX_RANK) || !node_need_rank(n, 1, 1, 1) ||
        !node_need_rank(n, 2, 1, 1))
        return false;
    y = build_instances(&n->b, n->in[0], node_float(n, "epsilon", 1e-5f));
    return node_done(n, build_scaled(&n->b, y, n->in[1], n->in[2], 1));
}

/* x in the type that mean and variance are computed in, which is no smaller than its own. */
static const Expr *stashed(Node *n, const Expr *x, DType *stash)
{
    int64_t to = node_int(n, "stash_type", ONNX_FLOAT);

    if (!onnx_dtype(to, stash) || !dtype_is_float(*stash))
        return node_error(n, E_UNSUPPORTED, "stash_type %s", onnx_dtype_text(to));
    return expr_dtype(x).bits < stash->bits ? build_cast(&n->b, x, *stash) : x;
}

/* Groups of channels become a dimension; before opset 21 scale and bias are for groups. */
bool convert_group_norm(Node *n)
{
    const Build *b = &n->b;
    int64_t      groups = node_int(n, "num_groups", 0);
    double       eps = node_float(n, "epsilon", 1e-5f);
    const Expr  *x, *y;
    DType        stash;

    if (!node_need_rank(n, 0, 3, MAX_RANK) || !node_need_rank(n, 1, 1, 1) ||
        !node_need_rank(n, 2, 1, 1) || !(y = stashed(n, n->in[0], &stash)))
        return false;
    x = n->in[0];
    if (groups < 1 || build_dim(b, x, 1) % groups)
        return node_error(n, E_IMPORT, "num_groups is %lld, which does not divide %lld channels",
                          (long long)groups, (long long)build_dim(b, x, 1));
    if (expr_empty(x))
        return node_done(n, x);
    y = y ? build_grouped(b, y, groups) : NULL;
    y = y ? build_standardized(b, y, 1, (int64_t[]){2}, eps) : NULL;
    y = y ? build_cast(b, y, expr_dtype(x)) : NULL;
    if (build_elems(b, n->in[1]) == groups && build_dim(b, x, 1) != groups)
        return node_done(n, build_reshape_to(b, build_scaled(b, y, n->in[1], n->in[2], 1),
                                             expr_rank(x), expr_forms(x).at));
    y = build_reshape_to(b, y, expr_rank(x), expr_forms(x).at);
    return node_done(n, build_scaled(b, y, n->in[1], n->in[2], 1));
}

/* The normalized dimensions: axis .. last. */
static bool last_axes(Node *n, int64_t fallback, int64_t *axes, uint32_t *naxes, uint32_t *first)
{
    uint32_t rank;

    if (!node_need_rank(n, 0, 1, MAX_RANK))
        return false;
    rank = expr_rank(n->in[0]);
    if (!node_axis(n, node_int(n, "axis", fallback), rank, first))
        return false;
    for (uint32_t i = *first; i < rank; i++)
        axes[i - *first] = i;
    *naxes = rank - *first;
    return true;
}

static const Expr *layer_norm(Node *n, const Expr *x, const Expr *gamma, const Expr *beta,
                              uint32_t first, double epsilon)
{
    const Build    *b = &n->b;
    LayerNormAttrs *a = ATTRS(b, LayerNormAttrs);
    Dims            d = expr_forms(x);

    a->axis = first;
    a->epsilon = epsilon;
    if (!beta) {
        int64_t zeros[MAX_RANK];

        for (uint32_t i = first; i < d.n; i++)
            zeros[i - first] = build_dim(b, x, i);
        beta = build_zeros(b, expr_dtype(gamma), d.n - first, zeros);
    }
    if (expr_rank(gamma) != d.n - first || gamma->type != beta->type)
        gamma = build_broadcast_to(b, gamma, d.n - first, d.at + first);
    if (expr_rank(beta) != d.n - first || (gamma && gamma->type != beta->type))
        beta = build_broadcast_to(b, beta, d.n - first, d.at + first);
    return build3(b, "nn.layer_norm", x, build_cast(b, gamma, expr_dtype(x)),
                  build_cast(b, beta, expr_dtype(x)), a);
}

bool convert_layer_norm(Node *n)
{
    const Build *b = &n->b;
    int64_t      axes[MAX_RANK];
    uint32_t     naxes, first;
    double       eps = node_float(n, "epsilon", 1e-5f);
    DType        stash;
    const Expr  *x;

    if (!last_axes(n, -1, axes, &naxes, &first) || !node_need_rank(n, 1, 0, MAX_RANK) ||
        (node_has(n, 2) && !node_need_rank(n, 2, 0, MAX_RANK)))
        return false;
    if (!(x = stashed(n, n->in[0], &stash)))
        return false;
    if (n->nout > 1) {
        const Expr *mean = build_reduce(b, "mean", x, naxes, axes, true);
        const Expr *d = build2(b, "subtract", x, mean, NULL);
        const Expr *var = d ? build_reduce(b, "mean", square(b, d), naxes, axes, true) : NULL;

        /* Both are of the type that stash_type names. */
        n->out[1] = build_cast(b, mean, stash);
        n->out[2] = build_cast(b,
                               build2(b, "divide", build_scalar(b, x, 1),
                                      build1(b, "sqrt", build_by(b, "add", var, eps), NULL), NULL),
                               stash);
    }
    x = layer_norm(n, x, n->in[1], node_has(n, 2) ? n->in[2] : NULL, first, eps);
    return x && node_done(n, build_cast(b, x, expr_dtype(n->in[0])));
}

bool convert_skip_layer_norm(Node *n)
{
    const Build *b = &n->b;
    const Expr  *x;

    if (!node_need_rank(n, 0, 2, MAX_RANK) || !node_need_rank(n, 1, 1, MAX_RANK) ||
        !node_need_rank(n, 2, 1, 1))
        return false;
    x = build2(b, "add", n->in[0], n->in[1], NULL);
    if (node_has(n, 4))
        x = build2(b, "add", x, n->in[4], NULL);
    if (!x)
        return false;
    if (n->nout > 3)
        n->out[3] = x;
    return node_done(n, layer_norm(n, x, n->in[2], node_has(n, 3) ? n->in[3] : NULL,
                                   expr_rank(x) - 1, node_float(n, "epsilon", 1e-12f)));
}

bool convert_rms_norm(Node *n)
{
    const Build *b = &n->b;
    int64_t      axes[MAX_RANK];
    uint32_t     naxes, first;
    DType        stash;
    const Expr  *x, *s;

    if (!last_axes(n, -1, axes, &naxes, &first) || !node_need_rank(n, 1, 0, MAX_RANK) ||
        !(x = stashed(n, n->in[0], &stash)))
        return false;
    s = build_reduce(b, "mean", square(b, x), naxes, axes, true);
    s = build1(b, "rsqrt", build_by(b, "add", s, node_float(n, "epsilon", 1e-5f)), NULL);
    x = build_cast(b, build2(b, "multiply", x, s, NULL), expr_dtype(n->in[0]));
    return node_done(n, build2(b, "multiply", x, n->in[1], NULL));
}

bool convert_lp_norm(Node *n)
{
    const Build *b = &n->b;
    int64_t      p = node_int(n, "p", 2), at;
    uint32_t     axis;
    const Expr  *x, *s;

    if (!node_need_rank(n, 0, 1, MAX_RANK) ||
        !node_axis(n, node_int(n, "axis", -1), expr_rank(n->in[0]), &axis))
        return false;
    if (p != 1 && p != 2)
        return node_error(n, E_UNSUPPORTED, "p is %lld, not 1 or 2", (long long)p);
    x = n->in[0];
    at = axis;
    s = p == 1 ? build1(b, "abs", x, NULL) : square(b, x);
    s = s ? build_reduce(b, "sum", s, 1, &at, true) : NULL;
    if (p == 2)
        s = build1(b, "sqrt", s, NULL);
    if (!s)
        return false;
    /* A norm of 0 gives 0, not 0 / 0. */
    s = build_where(b, build_by(b, "equal", s, 0), build_scalar(b, s, 1), s);
    return node_done(n, build2(b, "divide", x, s, NULL));
}

/* (x - mean) / (sqrt(var) + 1e-9): here it is the deviation that is kept from 0. */
bool convert_mean_variance_norm(Node *n)
{
    const Build *b = &n->b;
    const Expr  *d, *var;
    int64_t      axes[MAX_RANK] = {0, 2, 3};
    Ints         v = {3, (int64_t[]){0, 2, 3}};

    if (!node_need_rank(n, 0, 1, MAX_RANK))
        return false;
    node_ints(n, "axes", &v);
    if (!node_axes(n, v, expr_rank(n->in[0]), axes))
        return false;
    d = centered(b, n->in[0], v.n, axes);
    var = variance(b, d, v.n, axes);
    return node_done(
        n, build2(b, "divide", d, build_by(b, "add", build1(b, "sqrt", var, NULL), 1e-9), NULL));
}

/* x / (bias + alpha/size * sum of squares over `size` channels)^beta: the sum as shifted slices of
 * a tensor that is padded with zeros. */
bool convert_lrn(Node *n)
{
    int64_t size = node_int(n, "size", 0);
    double  alpha = node_float(n, "alpha", 1e-4f), beta = node_float(n, "beta", 0.75);

    if (!node_need_rank(n, 0, 2, MAX_RANK))
        return false;
    if (size < 1 || size > 1024)
        return node_error(n, E_IMPORT, "size is %lld, not 1 to 1024", (long long)size);
    return node_done(n, build_lrn(&n->b, n->in[0], (size - 1) / 2, size / 2,
                                  node_float(n, "bias", 1), alpha / (double)size, beta));
}

/* ---- softmax ------------------------------------------------------------------------------------- */

bool convert_softmax(Node *n)
{
    SoftmaxAttrs *a = ATTRS(&n->b, SoftmaxAttrs);
    uint32_t      axis;

    if (!node_need_rank(n, 0, 1, MAX_RANK) ||
        !node_axis(n, node_int(n, "axis", -1), expr_rank(n->in[0]), &axis))
        return false;
    a->axis = axis;
    return node_done(n, build1(&n->b, n->relay, n->in[0], a));
}

/* Before opset 13 the tensor counts as a matrix, [dims before axis, dims from axis on]. */
static const Expr *flat(Node *n, bool *last)
{
    const Expr *x;
    uint32_t    rank, axis;

    if (!node_need_rank(n, 0, 1, MAX_RANK))
        return NULL;
    x = n->in[0];
    rank = expr_rank(x);
    if (!node_axis(n, node_int(n, "axis", 1), rank, &axis))
        return NULL;
    *last = axis + 1 == rank; /* the matrix changes nothing */
    return *last ? x : build_matrix(&n->b, x, axis);
}

bool convert_softmax_flat(Node *n)
{
    bool        last;
    const Expr *x = flat(n, &last), *y = build1(&n->b, n->relay, x, NULL);

    if (!y || last)
        return node_done(n, y);
    return node_done(n, build_reshape_to(&n->b, y, expr_rank(n->in[0]), expr_forms(n->in[0]).at));
}

/* 1 where the largest number is for the first time, else 0. */
static const Expr *hardmax(const Build *b, const Expr *x, uint32_t axis)
{
    ArgReduceAttrs *r = ATTRS(b, ArgReduceAttrs);
    OneHotAttrs    *o = ATTRS(b, OneHotAttrs);

    if (expr_empty(x))
        return x;
    r->axis = axis;
    o->axis = axis;
    o->depth = build_dim(b, x, axis);
    o->dtype = expr_dtype(x);
    return build3(b, "one_hot", build1(b, "argmax", x, r), build_scalar(b, x, 1),
                  build_scalar(b, x, 0), o);
}

bool convert_hardmax(Node *n)
{
    uint32_t axis;

    return node_need_rank(n, 0, 1, MAX_RANK) &&
           node_axis(n, node_int(n, "axis", -1), expr_rank(n->in[0]), &axis) &&
           node_done(n, hardmax(&n->b, n->in[0], axis));
}

bool convert_hardmax_flat(Node *n)
{
    bool        last;
    const Expr *x = flat(n, &last), *y = x ? hardmax(&n->b, x, expr_rank(x) - 1) : NULL;

    return node_done(n, y ? build_reshape_to(&n->b, y, expr_rank(n->in[0]), expr_forms(n->in[0]).at)
                          : NULL);
}

/* At inference the data pass, and the mask is all true. */
bool convert_dropout(Node *n)
{
    const Build *b = &n->b;
    Ints         mode;

    if (!node_need_rank(n, 0, 0, MAX_RANK))
        return false;
    if (node_has(n, 2) && expr_single(n->in[2])) {
        const Expr *training = build_reshape(b, n->in[2], 0, NULL);
        const Expr *known = build_fold(b, training);

        if (!known || (expr_ints(b->c, known, &mode) && mode.at[0]))
            return onnx_dropout_training(n, training);
    }
    node_ignore(n, "is_test"); /* these are all about training */
    node_ignore(n, "ratio");
    node_ignore(n, "seed");
    if (node_has(n, 2) && !expr_single(n->in[2]))
        return node_error(n, E_IMPORT, "training_mode should be one number");
    if (n->nout > 1 && *n->p->output.at[1]) {
        InitAttrs *a = ATTRS(b, InitAttrs);

        a->shape = expr_forms(n->in[0]);
        a->dtype = n->opset >= 10 ? DT_BOOL : expr_dtype(n->in[0]);
        n->out[1] = build_call(b, "ones", 0, NULL, a);
    }
    return node_done(n, n->in[0]);
}
