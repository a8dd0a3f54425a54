/* Functions: in the place of the node that calls them, as branches, as loops. */
#include "frontends/tensorflow/tensorflow.h"

#include <string.h>

/* ---- calls ------------------------------------------------------------------------------------------ */

static bool call(TfNode *n, const char *name, bool looped, uint32_t nargs, const TfValue *args,
                 uint32_t nrets, TfValue *out)
{
    const TfGraph *g = tf_function(n->im->model, name);
    TfScope        s;

    if (!g)
        return tf_error(n, E_IMPORT, "function '%s' does not exist", name);
    s = tf_scope(n->im, g, n->scope->depth + 1);
    s.args = args;
    s.looped = looped || n->scope->looped;
    if (s.depth > TF_MAX_NESTING)
        return tf_error(n, E_UNSUPPORTED, "functions are nested more than %d deep", TF_MAX_NESTING);
    if (g->nargs != nargs || g->nrets != nrets)
        return tf_error(n, E_IMPORT, "function '%s' has %u arguments and %u results, not %u and %u",
                        name, g->nargs, g->nrets, nargs, nrets);
    for (uint32_t i = 0; i < nrets; i++) {
        const TfValue *v = tf_evaluate(&s, g->rets[i], n->b.loc);

        if (!v)
            return false;
        out[i] = *v;
    }
    return true;
}

static const char *function_of(const TfNode *n, const char *attr)
{
    const TfValueDef *v = tf_attr(n->op, attr);

    return v && v->func && v->func->name ? v->func->name : "";
}

bool tf_call_by_name(TfNode *n)
{
    return call(n, n->op->op, false, n->nin, n->given, n->nout, n->out);
}

bool tf_partitioned_call(TfNode *n)
{
    return call(n, function_of(n, "f"), false, n->nin, n->given, n->nout, n->out);
}

/* ---- branches --------------------------------------------------------------------------------------- */

const Expr *tf_condition(TfNode *n, const Expr *e)
{
    const Expr *k;

    if (!expr_single(e))
        return tf_error(n, E_UNSUPPORTED, "the condition is %s, not one bool",
                        type_text(n->b.c, e->type));
    if (!dtype_is_bool(expr_dtype(e)))
        e = build2(&n->b, "not_equal", e, build_scalar(&n->b, e, 0), NULL);
    e = build_reshape(&n->b, e, 0, NULL);
    k = e ? build_fold(&n->b, e) : NULL;
    return k ? k : e;
}

/* Both are there, alike; NULL with an error. */
static bool check_alike(TfNode *n, uint32_t i, const TfValue *yes, const TfValue *no)
{
    const Build *b = &n->b;

    if (yes->kind != no->kind || yes->variable != no->variable || !yes->e != !no->e)
        return tf_error(n, E_UNSUPPORTED, "output %u is of another kind in the other branch", i);
    if (yes->kind == TF_COMPLEX && (yes->e != no->e || yes->im != no->im))
        return tf_error(n, E_UNSUPPORTED, "output %u of its branches is complex", i);
    if (yes->e && yes->e->type != no->e->type)
        return tf_error(n, E_UNSUPPORTED, "output %u is %s in one branch and %s in the other", i,
                        type_text(b->c, yes->e->type), type_text(b->c, no->e->type));
    return true;
}

bool tf_choose(TfNode *n, const Expr *cond, uint32_t count, const TfValue *yes, const TfValue *no,
               TfValue *out)
{
    const Build *b = &n->b;
    Arena       *a = b->c->arena;
    const Expr **x = NEW_ARRAY(a, const Expr *, count + 1),
               **y = NEW_ARRAY(a, const Expr *, count + 1), *both;
    uint32_t *at = NEW_ARRAY(a, uint32_t, count + 1), k = 0;

    for (uint32_t i = 0; i < count; i++) {
        out[i] = yes[i];
        if (!check_alike(n, i, &yes[i], &no[i]))
            return false;
        if (!yes[i].e || yes[i].e == no[i].e)
            continue;
        x[k] = yes[i].e;
        y[k] = no[i].e;
        at[k++] = i;
    }
    if (k == 0)
        return true;
    if (k == 1) {
        out[at[0]].e = both = expr_if(b->c, cond, x[0], y[0], b->loc);
        return both != NULL;
    }
    both =
        expr_if(b->c, cond, expr_tuple(b->c, k, x, b->loc), expr_tuple(b->c, k, y, b->loc), b->loc);
    for (uint32_t i = 0; i < k; i++)
        if (!(out[at[i]].e = build_proj(b, both, i)))
            return false;
    return true;
}

static bool branch(TfNode *n, const char *name, TfValue *out)
{
    return call(n, name, true, n->nin - 1, n->given + 1, n->nout, out);
}

bool tf_if(TfNode *n)
{
    const char *yes = function_of(n, "then_branch"), *no = function_of(n, "else_branch");
    TfValue    *out = NEW_ARRAY(n->b.c->arena, TfValue, 2 * n->nout + 1);
    const Expr *cond;
    double      v;

    if (!tf_is_tensor(n, &n->given[0], "its condition") || !(cond = tf_condition(n, n->given[0].e)))
        return false;
    if (expr_const_f(cond, &v))
        return call(n, v != 0 ? yes : no, false, n->nin - 1, n->given + 1, n->nout, n->out);
    if (!branch(n, yes, out))
        return build_no_branch(&n->b, &n->im->shapes, cond, NO_THEN_BRANCH);
    if (!branch(n, no, out + n->nout))
        return build_no_branch(&n->b, &n->im->shapes, cond, NO_ELSE_BRANCH);
    return tf_choose(n, cond, n->nout, out, out + n->nout, n->out) ||
           build_no_branch(&n->b, &n->im->shapes, cond, BRANCHES_DIFFER);
}

/* The branch of that number; the last one, if there is none. */
bool tf_case(TfNode *n)
{
    const Build      *b = &n->b;
    const TfValueDef *v = tf_attr(n->op, "branches");
    const PbMsgs     *f = v && v->list ? &v->list->func : NULL;
    TfValue          *out = NEW_ARRAY(b->c->arena, TfValue, n->nout + 1);
    const Expr       *at;
    double            k;

    if (!f || f->n < 1 || !tf_is_tensor(n, &n->given[0], "the number of its branch"))
        return f && f->n ? false : tf_error(n, E_IMPORT, "no branches");
    at = n->given[0].e;
    if (!expr_single(at) || !dtype_is_int(expr_dtype(at)))
        return tf_error(n, E_IMPORT, "the number of its branch is %s", type_text(b->c, at->type));
    if (expr_const_f(at, &k))
        return call(n, ((TfFunc *)f->at[k >= 0 && k < f->n ? (uint32_t)k : f->n - 1])->name, false,
                    n->nin - 1, n->given + 1, n->nout, n->out);
    at = build_reshape(b, at, 0, NULL);
    if (!branch(n, ((TfFunc *)f->at[f->n - 1])->name, n->out))
        return build_no_branch(b, &n->im->shapes, at, BRANCHES_DIFFER);
    for (uint32_t i = f->n - 1; i-- > 0;) { /* from the last one on, each before those so far */
        const Expr *cond = build2(b, "equal", at, build_scalar(b, at, i), NULL);
        TfValue    *rest = DUP_ARRAY(b->c->arena, n->out, n->nout);

        if (!cond || !branch(n, ((TfFunc *)f->at[i])->name, out) ||
            !tf_choose(n, cond, n->nout, out, rest, n->out))
            return build_no_branch(b, &n->im->shapes, at, BRANCHES_DIFFER);
    }
    return true;
}

/* ---- loops ------------------------------------------------------------------------------------------ */

static bool goes_on(TfNode *n, void *user, const TfValue *state, const Expr **out)
{
    TfValue go;

    (void)user;
    return call(n, function_of(n, "cond"), true, n->nin, state, 1, &go) &&
           tf_is_tensor(n, &go, "its condition") && (*out = tf_condition(n, go.e)) != NULL;
}

static bool next_round(TfNode *n, void *user, const TfValue *state, TfValue *next)
{
    (void)user;
    return call(n, function_of(n, "body"), true, n->nin, state, n->nin, next);
}

/* Does the body hand on its argument i as its result i? */
static bool hands_on(const TfGraph *g, uint32_t i)
{
    TfPort p = g->rets[i];

    while (p.node < g->n && !strcmp(g->op[p.node].op, "Identity") && g->op[p.node].nin == 1)
        p = g->op[p.node].in[0];
    return p.node == TF_ARGUMENT && p.port == i;
}

bool tf_while(TfNode *n)
{
    const TfGraph *body = tf_function(n->im->model, function_of(n, "body"));
    bool          *fixed = NEW_ARRAY(n->b.c->arena, bool, n->nin + 1);
    TfLoop         l = {n->nin, n->given, fixed, NULL, goes_on, next_round};

    if (!body)
        return tf_error(n, E_IMPORT, "function '%s' does not exist", function_of(n, "body"));
    if (body->nrets != n->nin || n->nout != n->nin)
        return tf_error(n, E_IMPORT, "%u inputs, %u outputs, and a body with %u results", n->nin,
                        n->nout, body->nrets);
    for (uint32_t i = 0; i < n->nin; i++)
        fixed[i] = hands_on(body, i);
    return tf_loop(n, &l, n->out);
}
