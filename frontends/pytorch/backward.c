/* Derivatives that core ATen has as operators: of the sum of grad_output * forward(..) by its
 * operands.
 *
 *     aten.convolution_backward(grad, x, w, ..)
 *         gradient(fn (%input, %weight) { multiply(convolution(%input, %weight), %grad) }, %x, %w)
 *
 * Convolutions and averages are converted once more, forward, as the function of Relay's `gradient`
 * (docs/design/autodiff.md).  What the forward operator found out already (positions of largest
 * cells, means and deviations) is used instead of being computed again. */
#include "frontends/pytorch/pytorch.h"

#include <string.h>

/* ---- by the forward operator ---------------------------------------------------------------------- */

enum { MOST_PARAMS = 3 };

/* What the derivatives are by: arguments of the forward operator, NULL: not asked for. */
typedef struct {
    const char *forward; /* "aten.convolution" */
    uint32_t    n;
    const char *names[MOST_PARAMS];
    const Type *types[MOST_PARAMS];
    const Expr *values[MOST_PARAMS];
} Backward;

/* The node's arguments but for grad_output, with variables in the places of parameters. */
static PtOp *forward_op(PtNode *n, const Backward *w, const Expr *const *vars)
{
    Arena      *a = n->b.c->arena;
    const PtOp *p = n->p;
    PtOp       *op = arena_dup(a, p, sizeof *p);

    op->nin = 0;
    op->nout = 1;
    op->in_place = false;
    op->in = NEW_ARRAY(a, PtArg, p->nin + MOST_PARAMS);
    op->names = NEW_ARRAY(a, const char *, p->nin + MOST_PARAMS);
    for (uint32_t i = 0; i < pt_nrows; i++)
        if (!strcmp(pt_rows[i].name, w->forward))
            op->row = &pt_rows[i];
    for (uint32_t k = 0; k < w->n; k++) {
        PtValue v = pt_tensor_value(n->b.c, vars[k]);

        op->names[op->nin] = w->names[k];
        op->in[op->nin++] =
            (PtArg){.kind = PT_TENSOR, .text = "", .value = arena_dup(a, &v, sizeof v)};
    }
    for (uint32_t i = 0; i < p->nin; i++) {
        bool ignored, param = false;

        for (uint32_t k = 0; k < w->n; k++)
            param |= !strcmp(p->names[i], w->names[k]);
        if (param || !pt_row_has(op->row, p->names[i], &ignored))
            continue;
        (void)pt_arg(n, p->names[i]); /* read by the forward operator */
        op->names[op->nin] = p->names[i];
        op->in[op->nin++] = p->in[i];
    }
    return op;
}

/* The derivatives by all parameters, a tuple. */
static const Expr *derivatives(PtNode *n, const Backward *w)
{
    const Build *b = &n->b;
    const Expr  *vars[MOST_PARAMS], *args[MOST_PARAMS + 1], *grad = pt_tensor(n, "grad_output"), *y;
    PtNode       m;

    if (!grad)
        return NULL;
    for (uint32_t i = 0; i < w->n; i++) {
        vars[i] = expr_var(b->c, w->names[i], w->types[i], b->loc);
        args[i + 1] = w->values[i];
    }
    m = pt_node(n->im, forward_op(n, w, vars));
    if (!pt_convert(&m) || !(y = m.out[0].t ? m.out[0].t->e : NULL))
        return NULL;
    if (!expr_has_forms(y, expr_rank(grad), expr_forms(grad).at))
        return pt_error(n, E_IMPORT, "grad_output is %s, the result %s",
                        type_text(b->c, grad->type), type_text(b->c, y->type));
    args[0] = expr_func(b->c, w->n, vars, build_mul(b, y, grad), (FuncData){0}, b->loc);
    return args[0] ? build_call(b, "gradient", w->n + 1, args, NULL) : NULL;
}

/* Which of the three results are asked for. */
static bool masked(PtNode *n, bool asked[3])
{
    const PtArg *mask = pt_arg(n, "output_mask");

    if (!mask || mask->kind != PT_LIST || mask->n != 3)
        return pt_error(n, E_IMPORT, "output_mask should be a list of three");
    for (uint32_t i = 0; i < 3; i++)
        asked[i] = mask->at[i].i != 0;
    return true;
}

bool aten_convolution_backward(PtNode *n)
{
    static const char *const names[] = {"input", "weight", "bias"};
    const Build             *b = &n->b;
    const Expr *x = pt_tensor(n, "input"), *weight = x ? pt_tensor(n, "weight") : NULL, *all;
    Backward    w = {.forward = "aten.convolution"};
    bool        asked[3];
    Ints        sizes;

    if (!weight || !masked(n, asked))
        return false;
    for (uint32_t i = 0; i < 3; i++) {
        const Expr *v = i == 0 ? x : weight;

        if (i == 2 && (!asked[2] || !pt_ints(n, "bias_sizes", &sizes)))
            continue;
        if (i == 2)
            v = build_zeros(b, expr_dtype(x), sizes.n, sizes.at);
        if (!v)
            return false;
        w.names[w.n] = names[i];
        w.values[w.n] = v;
        w.types[w.n++] = v->type;
    }
    (void)pt_arg(n, "bias_sizes");
    if (!(all = derivatives(n, &w)))
        return false;
    for (uint32_t i = 0; i < w.n; i++)
        if (asked[i] && !pt_done_at(n, i, build_proj(b, all, i)))
            return false;
    return true;
}

/* Of one operand. */
static bool backward_of_self(PtNode *n, const char *forward)
{
    const Expr *x = pt_tensor(n, "self"), *all;
    Backward    w = {.forward = forward, .n = 1, .names = {"self"}};

    if (!x)
        return false;
    w.values[0] = x;
    w.types[0] = x->type;
    return (all = derivatives(n, &w)) &&
           pt_done(n, all->type->kind == TYPE_TUPLE ? build_proj(&n->b, all, 0) : all);
}

bool aten_avg_pool_backward(PtNode *n)
{
    return backward_of_self(n, "aten.avg_pool2d");
}

/* The mean of windows that do not overlap where the sizes divide; else by weights, as forward. */
bool aten_adaptive_avg_pool_backward(PtNode *n)
{
    const Expr *grad = pt_tensor(n, "grad_output");
    PtOp       *op = arena_dup(n->b.c->arena, n->p, sizeof *n->p);
    PtArg      *size;
    PtNode      m;

    if (!grad || expr_rank(grad) < 3)
        return grad && pt_error(n, E_IMPORT, "grad_output is %s", type_text(n->b.c, grad->type));
    (void)pt_arg(n, "self");
    size = NEW_ARRAY(n->b.c->arena, PtArg, 2);
    for (uint32_t i = 0; i < 2; i++)
        size[i] = (PtArg){.kind = PT_INT, .i = build_dim(&n->b, grad, expr_rank(grad) - 2 + i)};
    op->in = NEW_ARRAY(n->b.c->arena, PtArg, op->nin + 1);
    op->names = NEW_ARRAY(n->b.c->arena, const char *, op->nin + 1);
    memcpy(op->in, n->p->in, n->p->nin * sizeof *op->in);
    memcpy(op->names, n->p->names, n->p->nin * sizeof *op->names);
    op->names[op->nin] = "output_size";
    op->in[op->nin++] = (PtArg){.kind = PT_LIST, .n = 2, .at = size};
    m = pt_node(n->im, op);
    return backward_of_self(&m, "aten._adaptive_avg_pool2d") && pt_done(n, m.out[0].t->e);
}

/* ---- by what is known of the forward operator --------------------------------------------------------- */

/* Each cell goes to where the window's largest one was. */
bool aten_max_pool_backward(PtNode *n)
{
    static const char *const forward[] = {"kernel_size", "stride", "padding", "dilation",
                                          "ceil_mode"};
    const Build             *b = &n->b;
    const Expr *grad = pt_tensor(n, "grad_output"), *x = grad ? pt_tensor(n, "self") : NULL;
    const Expr *at = x ? pt_tensor(n, "indices") : NULL;
    ScatterElementsAttrs *a = ATTRS(b, ScatterElementsAttrs);
    const Idx            *flat[MAX_RANK];
    uint32_t              rank;

    for (uint32_t i = 0; i < COUNT(forward); i++)
        (void)pt_arg(n, forward[i]); /* the indices say it all */
    if (!at)
        return false;
    rank = expr_rank(x);
    if (rank < 3 || expr_rank(grad) != rank || !expr_has_forms(at, rank, expr_forms(grad).at))
        return pt_error(n, E_IMPORT, "indices are %s", type_text(b->c, at->type));
    for (uint32_t i = 0; i < rank; i++)
        flat[i] = expr_form(x, i);
    flat[rank - 2] = idx_mul(b->c->arith, flat[rank - 2], flat[rank - 1]);
    a->axis = rank - 2;
    a->reduction = "add";
    x = build_zeros_of(b, expr_dtype(grad), rank - 1, flat);
    flat[rank - 2] = idx_mul(b->c->arith, expr_form(at, rank - 2), expr_form(at, rank - 1));
    x = build3(b, "scatter_elements", x, build_reshape_to(b, at, rank - 1, flat),
               build_reshape_to(b, grad, rank - 1, flat), a);
    const Expr *self = pt_tensor(n, "self");

    return pt_done(n, build_reshape_to(b, x, rank, expr_forms(self).at));
}

/* Rows of the gradient into those of the table that they were taken from. */
bool aten_embedding_backward(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *grad = pt_tensor(n, "grad_output"), *at = grad ? pt_tensor(n, "indices") : NULL,
               *keep;
    int64_t    rows = pt_int(n, "num_weights", 0), left_out = pt_int(n, "padding_idx", -1);
    const Idx *flat[2], *count;

    if (!at)
        return false;
    if (pt_bool(n, "scale_grad_by_freq", false))
        return pt_error(n, E_UNSUPPORTED, "scale_grad_by_freq");
    if (rows < 1 || expr_rank(grad) != expr_rank(at) + 1)
        return pt_error(n, E_IMPORT, "%lld rows, and %s", (long long)rows,
                        type_text(b->c, grad->type));
    count = type_cells(b->c, at->type);
    flat[0] = count, flat[1] = expr_form(grad, expr_rank(at));
    at = build_cast(b, build_reshape_to(b, at, 1, &count), DT_I64);
    grad = build_reshape_to(b, grad, 2, flat);
    keep = build2(b, "not_equal", at, build_scalar(b, at, (double)left_out), NULL);
    grad = build_where(b, build_expand_dims(b, keep, 1, 1), grad, build_scalar(b, grad, 0));
    return pt_done(n, grad ? build_segments(b, "add", grad, at, rows) : NULL);
}

/* A normalization over `axes` of x, where x and grad are of one shape, weights are spread to it,
 * and mean and rstd keep the axes as dimensions of 1. */
typedef struct {
    const Expr    *grad, *x, *mean, *rstd, *weight;
    uint32_t       n;
    const int64_t *axes;
} Normed;

/* rstd * (g - mean(g) - xhat * mean(g * xhat)), where g is grad * weight; *xhat: x normalized. */
static const Expr *normed_backward(const Build *b, const Normed *w, const Expr **xhat)
{
    const Expr *g = w->weight ? build_mul(b, w->grad, w->weight) : w->grad, *both;

    *xhat = build_mul(b, build_sub(b, w->x, w->mean), w->rstd);
    both = build_reduce(b, "mean", *xhat && g ? build_mul(b, g, *xhat) : NULL, w->n, w->axes, true);
    g = g ? build_sub(b, g, build_reduce(b, "mean", g, w->n, w->axes, true)) : NULL;
    return build_mul(b, w->rstd, build_sub(b, g, build_mul(b, *xhat, both)));
}

/* The sum over the first dimensions; x itself where there are none. */
static const Expr *over_rows(const Build *b, const Expr *x, uint32_t count, const int64_t *axes)
{
    return count ? build_reduce(b, "sum", x, count, axes, false) : x;
}

bool aten_layer_norm_backward(PtNode *n)
{
    const Build *b = &n->b;
    Normed       w = {.grad = pt_tensor(n, "grad_out"),
                      .x = pt_tensor(n, "input"),
                      .mean = pt_tensor(n, "mean"),
                      .rstd = pt_tensor(n, "rstd")};
    const Expr  *xhat, *dx;
    int64_t      last[MAX_RANK], rows[MAX_RANK];
    bool         asked[3];
    Dims         shape;
    uint32_t     first;

    if (!w.grad || !w.x || !w.mean || !w.rstd || !pt_maybe(n, "weight", &w.weight) ||
        !masked(n, asked) || !pt_forms(n, "normalized_shape", &shape))
        return false;
    (void)pt_arg(n, "bias");
    if (shape.n < 1 || shape.n > expr_rank(w.x))
        return pt_error(n, E_IMPORT, "%u dimensions of %u", shape.n, expr_rank(w.x));
    first = expr_rank(w.x) - shape.n;
    for (uint32_t i = 0; i < expr_rank(w.x); i++)
        (i < first ? rows + i : last + (i - first))[0] = i;
    w.n = shape.n;
    w.axes = last;
    if (!(dx = normed_backward(b, &w, &xhat)))
        return false;
    return (!asked[0] || pt_done_at(n, 0, dx)) &&
           (!asked[1] || pt_done_at(n, 1, over_rows(b, build_mul(b, w.grad, xhat), first, rows))) &&
           (!asked[2] || pt_done_at(n, 2, over_rows(b, w.grad, first, rows)));
}

/* Groups of channels of [N, C, ..]: as [N, groups, C / groups, cells]. */
bool aten_group_norm_backward(PtNode *n)
{
    const Build *b = &n->b;
    Normed       w = {.grad = pt_tensor(n, "grad_out"),
                      .x = pt_tensor(n, "input"),
                      .mean = pt_tensor(n, "mean"),
                      .rstd = pt_tensor(n, "rstd"),
                      .n = 2,
                      .axes = (int64_t[]){2, 3}};
    const Expr  *xhat, *dx, *x = w.x;
    int64_t groups = pt_int(n, "group", 1), batch = pt_int(n, "N", 1), channels = pt_int(n, "C", 1);
    int64_t cells = pt_int(n, "HxW", 1), of_channel[] = {0, 2};
    bool    asked[3];

    if (!w.grad || !w.x || !w.mean || !w.rstd || !pt_maybe(n, "weight", &w.weight) ||
        !masked(n, asked))
        return false;
    if (groups < 1 || channels < 1 || channels % groups || expr_rank(x) < 2)
        return pt_error(n, E_IMPORT, "%lld groups of %s", (long long)groups,
                        type_text(b->c, x->type));
    int64_t four[] = {batch, groups, channels / groups, cells}, one[] = {batch, groups, 1, 1};
    int64_t per[] = {1, groups, channels / groups, 1}, three[] = {batch, channels, cells};

    w.weight = w.weight ? build_reshape(b, w.weight, 4, per) : NULL;
    w.x = build_reshape(b, w.x, 4, four), w.grad = build_reshape(b, w.grad, 4, four);
    w.mean = build_reshape(b, w.mean, 4, one), w.rstd = build_reshape(b, w.rstd, 4, one);
    if (!w.x || !w.grad || !w.mean || !w.rstd || !(dx = normed_backward(b, &w, &xhat)))
        return false;
    xhat = build_reshape(b, build_mul(b, w.grad, xhat), 3, three);
    return (!asked[0] ||
            pt_done_at(n, 0, build_reshape_to(b, dx, expr_rank(x), expr_forms(x).at))) &&
           (!asked[1] || pt_done_at(n, 1, build_reduce(b, "sum", xhat, 2, of_channel, false))) &&
           (!asked[2] || pt_done_at(n, 2,
                                    build_reduce(b, "sum", build_reshape(b, w.grad, 3, three), 2,
                                                 of_channel, false)));
}
