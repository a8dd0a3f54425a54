/* pair_depthwise: a depthwise convolution joins the 1x1 convolution that reads it.
 *
 *   %1 = fn primitive (%x, %w, ..) { nn.conv2d(.., groups=96); .. }(..)
 *   %2 = fn primitive (%x, %v, ..) { nn.conv2d(.., kernel_size=[1, 1]); .. }(%1, ..)
 *     -> %2 = fn primitive (%x, %w, .., %v, ..) { %3 = nn.conv2d(.., groups=96); ..
 *                                                 nn.conv2d(%3, ..); .. }(..)
 *
 * A row of the 1x1 convolution needs the same row of the depthwise one and no other, so that one
 * kernel can make some rows of the first and use them at once: the value between never leaves the
 * nearest cache and has no place in the arena (schedules/cpu/pair.c).  In return the weights of the
 * 1x1 convolution are read once a group of rows.  Joined are pairs whose weights and rows lie in L2
 * together, while the whole value between is far larger; on GPUs, whose tiles make the pixels that
 * they read, those where that costs less than a launch.  Runs behind fuse_ops.  Cost: one walk. */
#include "passes/graph/graph.h"

#include "schedules/schedules.h"

/* The only heavy call of a primitive function; NULL: none, or several. */
static const Expr *heavy_call(Ctx *c, const Expr *f)
{
    ExprList    list = expr_post_order(c, func_body(f));
    const Expr *found = NULL;

    for (uint32_t i = 0; i < list.n; i++) {
        const Op *op = call_op(list.at[i]);
        if (!op || op->fusion <= FUSE_INJECTIVE)
            continue;
        if (found)
            return NULL;
        found = list.at[i];
    }
    return found;
}

static const Expr *conv_of(Ctx *c, const Expr *call)
{
    const Expr *f = call->kind == EXPR_CALL ? call->kids[0] : NULL, *conv;

    if (!f || f->kind != EXPR_FUNC || !f->u.func.primitive || !expr_is_tensor(call))
        return NULL;
    conv = heavy_call(c, f);
    return conv && call_is(conv, "nn.conv2d") && dtype_eq(conv->type->dtype, DT_F32) &&
                   conv->type->n == (stores_apart(c->target) ? 4 : 5)
               ? conv
               : NULL;
}

/* In groups of one channel, on blocks, if any, as its result has them, with something behind it. */
static bool is_depthwise(const Expr *conv, const Expr *f)
{
    const Type *x = call_arg(conv, 0)->type;
    int64_t     blocks, lanes = 1;

    return func_body(f) != conv && x->n == conv->type->n && x->dims[1] == conv->type->dims[1] &&
           type_dim(x, 1, &blocks) && (x->n == 4 || type_dim(x, 4, &lanes)) &&
           ATTRS_OF(Conv2dAttrs, conv)->groups == blocks * lanes;
}

static bool is_pointwise(const Expr *conv)
{
    const Conv2dAttrs *a = ATTRS_OF(Conv2dAttrs, conv);
    const Type        *w = call_arg(conv, 1)->type;
    int64_t            kh, kw;

    return a->groups == 1 && ints_all(a->strides, 1) && ints_all(a->padding, 0) &&
           type_dim(w, 2, &kh) && kh == 1 && type_dim(w, 3, &kw) && kw == 1 &&
           call_arg(conv, 0)->kind == EXPR_VAR && call_arg(conv, 0)->type->n == conv->type->n;
}

static bool pays(Ctx *c, const Expr *between, const Expr *result)
{
    const Type *kernel = call_arg(between, 1)->type;
    PairWork    w = {.lanes = 1};
    int64_t     n, lanes = 1, kh, kw;
    bool        plain = between->type->n == 4;

    if (!type_dim(between->type, 0, &n) || n != 1 || !type_dim(between->type, 1, &w.c) ||
        !type_dim(between->type, 2, &w.y) || !type_dim(between->type, 3, &w.x) ||
        !type_dim(result->type, 1, &w.o) || !type_dim(kernel, 2, &kh) ||
        !type_dim(kernel, 3, &kw) ||
        (!plain && (stores_apart(c->target) || !type_dim(between->type, 4, &lanes) ||
                    !type_dim(result->type, 4, &w.lanes))))
        return false;
    w.c *= lanes;
    return plain ? gpu_pair_pays(c->target, &w, kh * kw) : cpu_pair_rows(c->target, &w) > 0;
}

static uint32_t param_of(const Expr *f, const Expr *v)
{
    uint32_t i = 0;

    while (i < func_nparams(f) && func_param(f, i) != v)
        i++;
    return i;
}

static const Expr *join(Ctx *c, const Expr *first, const Expr *second, uint32_t at)
{
    const Expr  *f = first->kids[0], *g = second->kids[0], *body, *both, *call;
    uint32_t     nf = func_nparams(f), n = nf + func_nparams(g) - 1, k = nf;
    const Expr **params = NEW_ARRAY(c->scratch, const Expr *, n + 1);
    const Expr **args = NEW_ARRAY(c->scratch, const Expr *, n + 1);

    for (uint32_t i = 0; i < nf; i++)
        params[i] = func_param(f, i), args[i] = call_arg(first, i);
    for (uint32_t i = 0; i < func_nparams(g); i++)
        if (i != at)
            params[k] = func_param(g, i), args[k++] = call_arg(second, i);
    const Expr *between = func_param(g, at), *value = func_body(f);
    body = expr_bind(c, func_body(g), 1, &between, &value);
    if (!body || !(both = expr_func(c, n, params, body, (FuncData){.primitive = true}, g->loc)) ||
        !(call = expr_apply(c, both, n, args, second->loc)))
        return NULL;
    return expr_with_type(c, call, second->type);
}

static const Expr *pair(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    const Map  *uses = user;
    const Expr *second = conv_of(c, now), *first;
    uint32_t    at;

    if (!second || !is_pointwise(second))
        return now;
    at = param_of(now->kids[0], call_arg(second, 0));
    if (at == func_nparams(now->kids[0]))
        return now;
    const Expr *before = call_arg(now, at);
    first = conv_of(c, before);
    if (!first || !is_depthwise(first, before->kids[0]) || before->type->halo ||
        uses_of(uses, call_arg(was, at)) != 1 || !pays(c, first, second))
        return now;
    for (uint32_t i = 0; i < func_nparams(now->kids[0]); i++) /* read by the convolution alone */
        if (i != at && call_arg(now, i) == before)
            return now;
    return join(c, before, now, at);
}

const Module *pair_depthwise(Ctx *c, const Module *m)
{
    bool pairs = has_vectors(c->target) || stores_apart(c->target);

    return pairs ? module_rewrite(c, m, pair, count_uses(c, m)) : m;
}
