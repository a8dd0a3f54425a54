/* keep_on_host: kernels that a device's code cannot have, which drives it.
 *
 *   fn primitive (%x: Tensor[(8), f64]) { exp(%x) }(%0)
 *     ->  fn primitive host (%x: Tensor[(8), f64]) { exp(%x) }(%0)
 *
 * A target says what it lacks (ir/tir/lacking.c), and a kernel's formula what it needs: powers of
 * integers go through f64, whatever their types.  fuse_ops joins no call that the device has with
 * one that it lacks, so that such a kernel is no larger than it must be; plan_devices chooses what
 * lies between two of them.  Cost: the formula of every call, once more. */
#include "passes/graph/graph.h"

#include <string.h>

/* What the target lacks for a primitive function; NULL: nothing.  False after an error. */
static bool kernel_lacking(Ctx *c, const Expr *primitive, const char **what)
{
    const TeFunc *te = te_of_func(c, primitive, NULL, false, "kernel");

    if (!te)
        return false;
    *what = func_lacking(c, c->target, te_lower(c, te, c->target));
    return true;
}

bool target_lacks_some(const Target *t)
{
    return t && t->host && (t->no_f64 || t->no_f64_math);
}

bool call_lacking(Ctx *c, const Expr *call, bool *lacks)
{
    const Expr **kids = DUP_ARRAY(c->scratch, call->kids, call->nkids), *body, *f;
    const char  *what;
    VEC(const Expr *) params = {0};

    *lacks = false;
    if (!target_lacks_some(c->target) || !call_op(call)->compute)
        return true;
    for (uint32_t i = 1; i < call->nkids; i++) {
        if (is_inline_scalar(kids[i]))
            continue;
        kids[i] = expr_var(c, "x", kids[i]->type, kids[i]->loc);
        vec_push(c->scratch, &params, kids[i]);
    }
    if (!(body = expr_with_kids(c, call, kids)) ||
        !(f = expr_func(c, params.n, params.at, body, (FuncData){.primitive = true}, call->loc)) ||
        !kernel_lacking(c, f, &what))
        return false;
    *lacks = what != NULL;
    return true;
}

/* `net.onnx:3:exp1: kernel on the host: vulkan has no exp of f64`. */
static void say(Ctx *c, Loc l, const char *what)
{
    const char *text = c->target->text;

    if (c->choices.said)
        str_printf(c->choices.said, "%s:%u:%s%s kernel on the host: %.*s has no %s\n",
                   l.file ? l.file : "", l.line, l.name ? l.name : "", l.name ? ":" : "",
                   (int)strcspn(text, ","), text, what);
}

static const Expr *keep(Ctx *c, UNUSED void *user, UNUSED const Expr *was, const Expr *now)
{
    const char *what;

    if (!is_kernel(now) || now->kids[0]->u.func.host)
        return now;
    if (!kernel_lacking(c, now->kids[0], &what))
        return NULL;
    if (!what)
        return now;
    say(c, now->loc, what);
    return kernel_on_host(c, now);
}

const Module *keep_on_host(Ctx *c, const Module *m)
{
    return target_lacks_some(c->target) ? module_rewrite(c, m, keep, NULL) : m;
}
