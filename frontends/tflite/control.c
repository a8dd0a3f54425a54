/* Control flow, and variables.
 *
 * Graphs of branches and loops see nothing but their inputs.  A loop is a function of the module
 * (frontends/loops.c).  States that the body hands on as they came, and that are constants before
 * the loop, stay constants in it, as sizes often do.
 *
 * Variables have the values that CALL_ONCE gives them; those that a run changes would have to last
 * until the next one, which the caller has no part in. */
#include "frontends/tflite/tflite.h"

#include <string.h>

static const Expr *condition(TfliteNode *n, const Expr *e)
{
    const Expr *k;

    if (!dtype_is_bool(expr_dtype(e)) || !expr_single(e))
        return tflite_error(n, E_IMPORT, "the condition is %s, not one bool",
                            type_text(n->b.c, e->type));
    e = build_reshape(&n->b, e, 0, NULL);
    k = e ? build_fold(&n->b, e) : NULL;
    return k ? k : e;
}

/* ---- branches ------------------------------------------------------------------------------------- */

static bool branch(TfliteNode *n, int64_t graph, const Expr **out)
{
    const TfliteGraph *g = tflite_graph(n, graph);

    if (!g)
        return false;
    if (g->out.n != n->nout)
        return tflite_error(n, E_IMPORT, "a branch has %u outputs, not %u", g->out.n, n->nout);
    return tflite_subgraph(n, graph, n->nin - 1, n->in + 1, out);
}

bool tflite_if(TfliteNode *n)
{
    const Expr **out[2], *cond = condition(n, n->in[0]);
    int64_t graph[2] = {tflite_int(n, "then_subgraph_index"), tflite_int(n, "else_subgraph_index")};
    double  v;

    for (uint32_t i = 0; i < 2; i++)
        out[i] = NEW_ARRAY(n->b.c->arena, const Expr *, n->nout + 1);
    if (!cond)
        return false;
    if (expr_const_f(cond, &v))
        return branch(n, graph[v == 0], n->out);
    for (uint32_t i = 0; i < 2; i++)
        if (!branch(n, graph[i], out[i]))
            return build_no_branch(&n->b, &n->im->shapes, cond,
                                   i ? NO_ELSE_BRANCH : NO_THEN_BRANCH);
    return build_choose(&n->b, cond, n->nout, out[0], out[1], n->out) ||
           build_no_branch(&n->b, &n->im->shapes, cond, BRANCHES_DIFFER);
}

/* The branch of that number; the last one, if there is none. */
bool tflite_case(TfliteNode *n)
{
    const Build *b = &n->b;
    Ints         graph = tflite_int_list(n, "branch_subgraph_indices");
    const Expr  *at = n->in[0], *cond, **out;
    double       v;

    if (graph.n < 1 || !dtype_is_int(expr_dtype(at)) || !expr_single(at))
        return tflite_error(n, E_IMPORT, "%u branches, the number of one is %s", graph.n,
                            type_text(b->c, at->type));
    if (expr_const_f(at, &v))
        return branch(n, graph.at[v >= 0 && v < graph.n ? (uint32_t)v : graph.n - 1], n->out);
    at = build_reshape(b, at, 0, NULL);
    out = NEW_ARRAY(b->c->arena, const Expr *, n->nout + 1);
    if (!branch(n, graph.at[graph.n - 1], n->out))
        return build_no_branch(b, &n->im->shapes, at, BRANCHES_DIFFER);
    for (uint32_t i = graph.n - 1; i-- > 0;) { /* from the last one on, each before those so far */
        cond = build2(b, "equal", at, build_scalar(b, at, i), NULL);
        const Expr **rest = DUP_ARRAY(b->c->arena, n->out, n->nout);

        if (!cond || !branch(n, graph.at[i], out) ||
            !build_choose(b, cond, n->nout, out, rest, n->out))
            return build_no_branch(b, &n->im->shapes, at, BRANCHES_DIFFER);
    }
    return true;
}

/* A graph in the place of the operator. */
static bool in_place(TfliteNode *n, int64_t graph)
{
    const TfliteGraph *g = tflite_graph(n, graph);

    if (!g)
        return false;
    if (g->out.n != n->nout)
        return tflite_error(n, E_IMPORT, "its graph has %u outputs, not %u", g->out.n, n->nout);
    return tflite_subgraph(n, graph, n->nin, n->in, n->out);
}

bool tflite_call(TfliteNode *n)
{
    return in_place(n, tflite_int(n, "subgraph"));
}

bool tflite_stablehlo_composite(TfliteNode *n)
{
    return in_place(n, tflite_int(n, "decomposition_subgraph_index"));
}

/* ---- loops ---------------------------------------------------------------------------------------- */

/* The states of a loop: those that change are variables of its function. */
typedef struct {
    uint32_t     n, nvars;
    const Expr **value; /* of all, in a round */
    uint32_t    *var;   /* the numbers of those that are variables */
} States;

static bool goes_on(TfliteNode *n, const Expr *const *states, const Expr **go)
{
    const TfliteGraph *g = tflite_graph(n, tflite_int(n, "cond_subgraph_index"));
    const Expr        *e;

    if (!g)
        return false;
    if (g->out.n != 1)
        return tflite_error(n, E_IMPORT, "its condition has %u outputs", g->out.n);
    return tflite_subgraph(n, tflite_int(n, "cond_subgraph_index"), n->nin, states, &e) &&
           (*go = condition(n, e)) != NULL;
}

static States states_of(TfliteNode *n, const TfliteGraph *body)
{
    Arena *a = n->b.c->arena;
    States s = {n->nin, 0, NEW_ARRAY(a, const Expr *, n->nin + 1),
                NEW_ARRAY(a, uint32_t, n->nin + 1)};

    for (uint32_t i = 0; i < s.n; i++) {
        bool same = fb_int_at(body->in, FB_I32, i) == fb_int_at(body->out, FB_I32, i);

        s.value[i] = n->in[i];
        if (same && n->in[i]->kind == EXPR_CONST)
            continue;
        s.value[i] = expr_var(n->b.c, tflite_tensor(body, fb_int_at(body->in, FB_I32, i))->name,
                              n->in[i]->type, n->b.loc);
        s.var[s.nvars++] = i;
    }
    return s;
}

static const char *loop_name(TfliteNode *n)
{
    return intern_printf(n->b.c->strings, "while%u", n->im->loops++);
}

/* The last values of the variables. */
static const Expr *rounds(TfliteNode *n, const States *s, const Expr *first_go, const Expr *next_go,
                          const Expr *const *next)
{
    Arena       *a = n->b.c->arena;
    const Expr **to = NEW_ARRAY(a, const Expr *, s->nvars),
               **var = NEW_ARRAY(a, const Expr *, s->nvars),
               **first = NEW_ARRAY(a, const Expr *, s->nvars);
    BuildLoop l = {loop_name(n), s->nvars, var, first, to, first_go, next_go, false};

    for (uint32_t i = 0; i < s->nvars; i++) {
        var[i] = s->value[s->var[i]];
        first[i] = n->in[s->var[i]];
        to[i] = next[s->var[i]];
    }
    return build_while(&n->b, &l, &n->im->functions);
}

bool tflite_rounds(TfliteNode *n, const Idx *count, uint32_t nstates, const Expr *const *first,
                   BuildRound *fn, void *user, const Expr **out)
{
    return build_rounds(&n->b, loop_name(n), count, nstates, first, fn, user, out,
                        &n->im->functions);
}

bool tflite_while(TfliteNode *n)
{
    const Build       *b = &n->b;
    const TfliteGraph *body = tflite_graph(n, tflite_int(n, "body_subgraph_index"));
    const Expr       **next = NEW_ARRAY(b->c->arena, const Expr *, n->nin + 1);
    const Expr        *first_go, *next_go, *result;
    States             s;
    double             v;

    if (!body)
        return false;
    if (n->nout != n->nin || body->out.n != n->nin || body->in.n != n->nin)
        return tflite_error(n, E_IMPORT, "%u inputs and %u outputs, its body has %u and %u", n->nin,
                            n->nout, body->in.n, body->out.n);
    s = states_of(n, body);
    if (!goes_on(n, n->in, &first_go) ||
        !tflite_subgraph(n, tflite_int(n, "body_subgraph_index"), n->nin, s.value, next) ||
        !goes_on(n, next, &next_go))
        return false;
    for (uint32_t i = 0; i < n->nin; i++)
        if (next[i]->type != s.value[i]->type) {
            tflite_error(n, E_UNSUPPORTED, "state %u has another type after a round", i);
            diag_note(b->c->diags, b->loc, "%s before it, %s after it",
                      type_text(b->c, s.value[i]->type), type_text(b->c, next[i]->type));
            return false;
        }
    if (expr_const_f(next_go, &v) && v != 0)
        return tflite_error(n, E_IMPORT, "a loop without an end");
    memcpy(n->out, n->in, n->nin * sizeof *n->in);
    if (s.nvars == 0)
        return true;
    if (!(result = rounds(n, &s, first_go, next_go, next)))
        return false;
    for (uint32_t i = 0; i < s.nvars; i++)
        if (!(n->out[s.var[i]] = build_proj(b, result, i)))
            return false;
    return true;
}
