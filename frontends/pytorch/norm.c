/* Normalization. */
#include "frontends/pytorch/pytorch.h"

#include <math.h>
#include <string.h>

static const Expr *filled(const Build *b, DType t, const Idx *cells, double v)
{
    return build_broadcast_to(b, expr_scalar(b->c, t, v), 1, &cells);
}

/* By statistics that are kept: (x - mean) / sqrt(var + eps) * weight + bias. */
bool aten_batch_norm(PtNode *n)
{
    static const char *const names[] = {"weight", "bias", "running_mean", "running_var"};
    const Build             *b = &n->b;
    BatchNormAttrs          *a = ATTRS(b, BatchNormAttrs);
    const Expr              *args[5] = {pt_tensor(n, "input")};

    (void)pt_float(n, "momentum", 0.1); /* of training */
    (void)pt_bool(n, "cudnn_enabled", false);
    if (!args[0])
        return false;
    if (pt_bool(n, "training", false))
        return pt_for_training(n);
    if (expr_rank(args[0]) < 2)
        return pt_error(n, E_IMPORT, "the data are %s", type_text(b->c, args[0]->type));
    for (uint32_t i = 0; i < 4; i++) {
        if (!pt_maybe(n, names[i], &args[1 + i]))
            return false;
        if (!args[1 + i] && i >= 2)
            return pt_error(n, E_UNSUPPORTED, "it keeps no statistics");
        if (!args[1 + i])
            args[1 + i] = filled(b, expr_dtype(args[0]), expr_form(args[0], 1), i == 0);
        if (!args[1 + i] || expr_rank(args[1 + i]) != 1 ||
            expr_form(args[1 + i], 0) != expr_form(args[0], 1))
            return pt_error(n, E_IMPORT, "argument '%s' does not fit the channels", names[i]);
        args[1 + i] = build_cast(b, args[1 + i], expr_dtype(args[0]));
    }
    a->epsilon = pt_float(n, "eps", 1e-5);
    return pt_done(n, build_proj(b, build_call(b, "nn.batch_norm", 5, args, a), 0));
}

/* The last dimensions, as many as normalized_shape has. */
static bool last_axes(PtNode *n, const Expr *x, uint32_t *first)
{
    Dims shape;

    if (!pt_forms(n, "normalized_shape", &shape))
        return false;
    if (shape.n < 1 || shape.n > expr_rank(x))
        return pt_error(n, E_IMPORT, "%u dimensions of %u", shape.n, expr_rank(x));
    *first = expr_rank(x) - shape.n;
    for (uint32_t i = 0; i < shape.n; i++)
        if (shape.at[i] != expr_form(x, *first + i))
            return pt_error(n, E_IMPORT, "normalized_shape does not fit %s",
                            type_text(n->b.c, x->type));
    return true;
}

static const Expr *shaped(PtNode *n, const char *name, const Expr *x, uint32_t first, double v)
{
    Dims        d = expr_forms(x);
    const Expr *e;

    if (!pt_maybe(n, name, &e))
        return NULL;
    e = e ? build_cast(&n->b, e, expr_dtype(x)) : expr_scalar(n->b.c, expr_dtype(x), v);
    return build_broadcast_to(&n->b, e, d.n - first, d.at + first);
}

/* native_layer_norm gives mean and 1 / deviation as well. */
bool aten_layer_norm(PtNode *n)
{
    const Build    *b = &n->b;
    LayerNormAttrs *a = ATTRS(b, LayerNormAttrs);
    const Expr     *x = pt_tensor(n, "input"), *gamma, *beta, *mean, *d, *var;
    int64_t         axes[MAX_RANK];
    uint32_t        first;

    (void)pt_bool(n, "cudnn_enable", false);
    if (!x || !last_axes(n, x, &first) || !(gamma = shaped(n, "weight", x, first, 1)) ||
        !(beta = shaped(n, "bias", x, first, 0)))
        return false;
    a->axis = first;
    a->epsilon = pt_float(n, "eps", 1e-5);
    if (!pt_done(n, build3(b, "nn.layer_norm", x, gamma, beta, a)))
        return false;
    if (!strstr(n->p->target, "native"))
        return true;
    for (uint32_t i = first; i < expr_rank(x); i++)
        axes[i - first] = i;
    mean = build_reduce(b, "mean", x, expr_rank(x) - first, axes, true);
    d = build_sub(b, x, mean);
    var = d ? build_reduce(b, "mean", build_mul(b, d, d), expr_rank(x) - first, axes, true) : NULL;
    return pt_done_at(n, 1, mean) &&
           pt_done_at(n, 2, build1(b, "rsqrt", build_by(b, "add", var, a->epsilon), NULL));
}

bool aten_rms_norm(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = pt_tensor(n, "input"), *w, *f, *s;
    int64_t      axes[MAX_RANK];
    uint32_t     first;
    double       eps;

    if (!x || !last_axes(n, x, &first) || !pt_maybe(n, "weight", &w))
        return false;
    eps = pt_float(n, "eps", expr_dtype(x).bits == 64 ? 0x1p-52 : 0x1p-23);
    for (uint32_t i = first; i < expr_rank(x); i++)
        axes[i - first] = i;
    f = dtype_eq(expr_dtype(x), DT_F64) ? x : build_cast(b, x, DT_F32);
    s = build_reduce(b, "mean", f ? build_mul(b, f, f) : NULL, expr_rank(x) - first, axes, true);
    s = build1(b, "rsqrt", build_by(b, "add", s, eps), NULL);
    s = build_cast(b, build_mul(b, f, s), expr_dtype(x));
    return pt_done(n, s && w ? build_mul(b, s, w) : s);
}

static bool scaled(PtNode *n, const Expr *y)
{
    const Expr *w, *bias;

    return y && pt_maybe(n, "weight", &w) && pt_maybe(n, "bias", &bias) &&
           pt_done(n, build_scaled(&n->b, y, w, bias, 1));
}

bool aten_group_norm(PtNode *n)
{
    const Expr *x = pt_tensor(n, "input");
    int64_t     groups = pt_int(n, pt_has(n, "group") ? "group" : "num_groups", 1);

    (void)pt_bool(n, "cudnn_enabled", false);
    for (uint32_t i = 0; i < 3; i++) /* of native_group_norm: the data say them */
        (void)pt_has(n, (const char *const[]){"N", "C", "HxW"}[i]);
    if (!x)
        return false;
    if (expr_rank(x) < 2)
        return pt_error(n, E_IMPORT, "%lld groups of %s", (long long)groups,
                        type_text(n->b.c, x->type));
    return scaled(n, build_groups(&n->b, x, groups, pt_float(n, "eps", 1e-5)));
}

/* By the statistics of all cells of a channel, as instance_norm is written in core ATen, whose
 * batch is 1 then. */
bool aten_batch_norm_no_stats(PtNode *n)
{
    const Expr *x = pt_tensor(n, "input");
    int64_t     batch;

    (void)pt_float(n, "momentum", 0.1);
    (void)pt_bool(n, "training", true);
    if (!x)
        return false;
    if (expr_rank(x) < 3 || !idx_is_const(expr_form(x, 0), &batch) || batch != 1)
        return pt_error(n, E_UNSUPPORTED, "statistics of a batch, %s", type_text(n->b.c, x->type));
    return scaled(n, build_instances(&n->b, x, pt_float(n, "eps", 1e-5)));
}

bool aten_instance_norm(PtNode *n)
{
    const Expr *x = pt_tensor(n, "input");

    (void)pt_bool(n, "cudnn_enabled", false);
    (void)pt_float(n, "momentum", 0.1);
    if (!x)
        return false;
    if (expr_rank(x) < 3)
        return pt_error(n, E_IMPORT, "the data are %s", type_text(n->b.c, x->type));
    if (!pt_bool(n, "use_input_stats", true))
        return pt_error(n, E_UNSUPPORTED, "it normalizes by statistics that are kept");
    (void)pt_has(n, "running_mean"), (void)pt_has(n, "running_var");
    return scaled(n, build_instances(&n->b, x, pt_float(n, "eps", 1e-5)));
}

/* v * g / the norm of v over all dimensions but one. */
bool aten_weight_norm(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *v = pt_tensor(n, "v"), *g = v ? pt_tensor(n, "g") : NULL, *norm;
    uint32_t     dim, count = 0;
    int64_t      axes[MAX_RANK];

    if (!g || !pt_axis(n, pt_int(n, "dim", 0), expr_rank(v), &dim))
        return false;
    for (uint32_t i = 0; i < expr_rank(v); i++)
        if (i != dim)
            axes[count++] = i;
    norm = build_mul(b, v, v);
    norm = count ? build_reduce(b, "sum", norm, count, axes, true) : norm;
    norm = build1(b, "sqrt", norm, NULL);
    return pt_done_at(n, 0, build_mul(b, v, build_div(b, g, norm))) &&
           (n->nout < 2 || pt_done_at(n, 1, norm));
}
