/* Steps of optimizers (ai.onnx.preview.training): Adagrad, Adam and Momentum.
 *
 * The inputs are a rate, how many steps there were, and groups of as many tensors each: parameters,
 * their gradients, and what the optimizer remembers of the steps before.  The outputs are the
 * groups without the gradients, as they are after this step. */
#include "frontends/onnx/onnx.h"

#define MAX_GROUPS 4

typedef struct {
    const Build *b;
    const Expr  *rate, *steps; /* scalars of the tensors' type; steps counts from 0 */
    const Expr  *in[MAX_GROUPS], *out[MAX_GROUPS - 1];
} Step;

static const Expr *add(const Step *s, const Expr *x, const Expr *y)
{
    return build2(s->b, "add", x, y, NULL);
}

static const Expr *times(const Step *s, const Expr *x, const Expr *y)
{
    return build2(s->b, "multiply", x, y, NULL);
}

static const Expr *scaled(const Step *s, const Expr *x, double v)
{
    return v == 1 ? x : build_by(s->b, "multiply", x, v);
}

static const Expr *less(const Step *s, const Expr *x, const Expr *y)
{
    return build2(s->b, "subtract", x, y, NULL);
}

/* sqrt(x) + epsilon */
static const Expr *root(const Step *s, const Expr *x, double epsilon)
{
    return build_by(s->b, "add", build1(s->b, "sqrt", x, NULL), epsilon);
}

/* The gradient with that of norm / 2 * |x|^2. */
static const Expr *gradient(Node *n, const Step *s)
{
    double norm = node_float(n, "norm_coefficient", 0);

    return norm == 0 ? s->in[1] : add(s, s->in[1], scaled(s, s->in[0], norm));
}

/* One cell of input i, of type t. */
static const Expr *number(Node *n, uint32_t i, DType t)
{
    if (!node_need_rank(n, i, 0, MAX_RANK))
        return NULL;
    if (!expr_single(n->in[i]))
        return node_error(n, E_IMPORT, "input %u is %s, not one number", i,
                          type_text(n->b.c, n->in[i]->type));
    return build_cast(&n->b, build_reshape(&n->b, n->in[i], 0, NULL), t);
}

typedef bool StepOf(Node *n, Step *s);

/* Each parameter by itself. */
static bool each_step(Node *n, uint32_t groups, StepOf *step)
{
    uint32_t count = n->nin > 2 ? (n->nin - 2) / groups : 0;

    if (count == 0 || n->nin != 2 + count * groups || n->nout != count * (groups - 1))
        return node_error(n, E_IMPORT,
                          "%u inputs and %u outputs, which are no %u groups of tensors", n->nin,
                          n->nout, groups);
    for (uint32_t i = 0; i < count; i++) {
        Step s = {.b = &n->b};

        for (uint32_t k = 0; k < groups; k++) {
            if (!node_need_rank(n, 2 + k * count + i, 0, MAX_RANK))
                return false;
            s.in[k] = n->in[2 + k * count + i];
            if (s.in[k]->type != s.in[0]->type || !dtype_is_float(expr_dtype(s.in[k])))
                return node_error(n, E_IMPORT, "input %u is %s for a parameter %s",
                                  2 + k * count + i, type_text(n->b.c, s.in[k]->type),
                                  type_text(n->b.c, s.in[0]->type));
        }
        if (!(s.rate = number(n, 0, expr_dtype(s.in[0]))) ||
            !(s.steps = number(n, 1, expr_dtype(s.in[0]))) || !step(n, &s))
            return false;
        for (uint32_t k = 0; k + 1 < groups; k++)
            if (!(n->out[k * count + i] = s.out[k]))
                return false;
    }
    return true;
}

/* ---- Adagrad: each cell by the squares of its gradients ------------------------------------------ */

static bool adagrad(Node *n, Step *s)
{
    double      decay = node_float(n, "decay_factor", 0);
    double      epsilon = node_float(n, "epsilon", 1e-6);
    const Expr *g = gradient(n, s), *slower = build_by(s->b, "add", scaled(s, s->steps, decay), 1);
    const Expr *rate = build2(s->b, "divide", s->rate, slower, NULL);

    s->out[1] = add(s, s->in[2], times(s, g, g));
    s->out[0] = less(s, s->in[0],
                     build2(s->b, "divide", times(s, rate, g), root(s, s->out[1], epsilon), NULL));
    return true;
}

bool convert_adagrad(Node *n)
{
    return each_step(n, 3, adagrad);
}

/* ---- Adam: means of gradients and of their squares ----------------------------------------------- */

/* 1 - v^steps, where there were steps. */
static const Expr *bias(const Step *s, double v)
{
    const Expr *power = build2(s->b, "power", build_scalar(s->b, s->steps, v), s->steps, NULL);

    return less(s, build_scalar(s->b, s->steps, 1), power);
}

static bool adam(Node *n, Step *s)
{
    const Build *b = s->b;
    double       alpha = node_float(n, "alpha", 0.9F), beta = node_float(n, "beta", 0.999F);
    double       epsilon = node_float(n, "epsilon", 1e-6);
    double       post = node_float(n, "norm_coefficient_post", 0);
    const Expr  *g = gradient(n, s), *none = build_scalar(b, s->steps, 0), *rate, *x;

    s->out[1] = add(s, scaled(s, s->in[2], alpha), scaled(s, g, 1 - alpha));
    s->out[2] = add(s, scaled(s, s->in[3], beta), scaled(s, times(s, g, g), 1 - beta));
    rate = build2(b, "divide", build1(b, "sqrt", bias(s, beta), NULL), bias(s, alpha), NULL);
    rate =
        build_where(b, build2(b, "less", none, s->steps, NULL), times(s, s->rate, rate), s->rate);
    x = build2(b, "divide", times(s, rate, s->out[1]), root(s, s->out[2], epsilon), NULL);
    s->out[0] = scaled(s, less(s, s->in[0], x), 1 - post);
    return true;
}

bool convert_adam(Node *n)
{
    return each_step(n, 4, adam);
}

/* ---- Momentum ------------------------------------------------------------------------------------- */

static bool momentum(Node *n, Step *s)
{
    static const char *const modes[] = {"standard", "nesterov", NULL};
    const Build             *b = s->b;
    double                   alpha = node_float(n, "alpha", 0), beta = node_float(n, "beta", 1);
    const Expr              *g = gradient(n, s), *none = build_scalar(b, s->steps, 0), *scale, *by;
    const char              *mode;

    if (!node_choice(n, "mode", modes, &mode))
        return false;
    scale = build_where(b, build2(b, "less", none, s->steps, NULL), build_scalar(b, s->steps, beta),
                        build_scalar(b, s->steps, 1));
    s->out[1] = add(s, scaled(s, s->in[2], alpha), times(s, scale, g));
    by = *mode == 'n' ? add(s, g, scaled(s, s->out[1], alpha)) : s->out[1];
    s->out[0] = less(s, s->in[0], times(s, s->rate, by));
    return true;
}

bool convert_momentum(Node *n)
{
    return each_step(n, 3, momentum);
}
