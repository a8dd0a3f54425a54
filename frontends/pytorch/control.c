/* Graphs within the graph that values of the run choose or repeat: torch.cond, while_loop, scan,
 * map.
 *
 *     while_loop(test, body, (a, b), (c,))     a, b = @while(.., a, b, c).0, .1
 *
 * A branch is an `if`, a loop a function of the module (frontends/loops.c), which sees its
 * variables and constants; what a loop only reads is a variable that stays as it is. */
#include "frontends/pytorch/pytorch.h"

#include <string.h>

/* ---- arguments ---------------------------------------------------------------------------------- */

static const PtGraph *graph_at(PtNode *n, uint32_t i)
{
    if (i >= n->p->nin || n->p->in[i].kind != PT_GRAPH)
        return pt_error(n, E_IMPORT, "argument %u should be a graph", i);
    n->read[i] = true;
    return n->p->in[i].graph;
}

/* The tensors of a list, which may be left out. */
typedef struct {
    uint32_t     n;
    const Expr **at;
} Tensors;

static bool tensors_at(PtNode *n, uint32_t i, Tensors *out)
{
    const PtArg *a = i < n->p->nin ? &n->p->in[i] : NULL;

    *out = (Tensors){0, NEW_ARRAY(n->b.c->arena, const Expr *, a ? a->n + 1 : 1)};
    if (!a)
        return true;
    n->read[i] = true;
    if (a->kind == PT_NONE)
        return true;
    if (a->kind != PT_LIST)
        return pt_error(n, E_IMPORT, "argument %u should be a list of tensors", i);
    for (uint32_t k = 0; k < a->n; k++) {
        const PtValue *v = a->at[k].kind == PT_TENSOR ? pt_value_of(n->im, &a->at[k]) : NULL;

        if (!v || !v->t)
            return pt_error(n, E_UNSUPPORTED, "argument %u of its graph is no tensor", k);
        if (!(out->at[out->n++] = pt_real(n, v->t)))
            return false;
    }
    return true;
}

static Tensors joined(Arena *a, uint32_t count, const Tensors *parts)
{
    Tensors all = {0};

    for (uint32_t i = 0; i < count; i++)
        all.n += parts[i].n;
    all.at = NEW_ARRAY(a, const Expr *, all.n + 1);
    all.n = 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < parts[i].n; k++)
            all.at[all.n++] = parts[i].at[k];
    return all;
}

/* What a graph makes of these, in a scope of its own. */
static bool graph_of(PtNode *n, const PtGraph *g, const Tensors *in, const Expr **out)
{
    Arena    *a = n->b.c->arena;
    PtValue **values = NEW_ARRAY(a, PtValue *, in->n + 1),
            *made = NEW_ARRAY(a, PtValue, g->nout + 1);
    uint32_t scope = n->im->scope;
    bool     ok;

    n->im->scope = ++n->im->scopes;
    for (uint32_t i = 0; i < in->n; i++) {
        PtValue v = pt_tensor_value(n->b.c, in->at[i]);

        v.t->scope = n->im->scope;
        values[i] = DUP_ARRAY(a, &v, 1);
    }
    ok = pt_region(n, g, in->n, values, made);
    for (uint32_t i = 0; i < g->nout && ok; i++)
        ok = (made[i].t && (out[i] = pt_real(n, made[i].t))) ||
             pt_error(n, E_UNSUPPORTED, "output %u of its graph is no tensor", i);
    n->im->scope = scope;
    return ok;
}

static bool done_all(PtNode *n, uint32_t count, const Expr *const *es)
{
    if (n->nout == 1 && n->p->out[0].kind == PT_LIST)
        return pt_done_list(n, count, es);
    if (n->nout != count)
        return pt_error(n, E_IMPORT, "its graph has %u outputs, not %u", count, n->nout);
    for (uint32_t i = 0; i < count; i++)
        if (!pt_done_at(n, i, es[i]))
            return false;
    return true;
}

/* ---- branches ----------------------------------------------------------------------------------- */

/* cond(condition, yes, no, operands) */
bool pt_cond(PtNode *n)
{
    const PtGraph *g[2] = {graph_at(n, 1), graph_at(n, 2)};
    Tensors        in;
    const Expr   **out[2], *cond;
    PtOperand      v;
    double         k;

    if (!g[0] || !g[1] || !pt_operand(n, n->p->names[0], &v) || !tensors_at(n, 3, &in))
        return false;
    if (!v.e)
        v.e = pt_as(n, &v, DT_BOOL);
    if (!(cond = build_condition(&n->b, v.e)))
        return false;
    for (uint32_t i = 0; i < 2; i++)
        out[i] = NEW_ARRAY(n->b.c->arena, const Expr *, g[i]->nout + 1);
    if (expr_const_f(cond, &k))
        return graph_of(n, g[k == 0], &in, out[0]) && done_all(n, g[k == 0]->nout, out[0]);
    if (g[0]->nout != g[1]->nout)
        return pt_error(n, E_IMPORT, "its branches have %u and %u outputs", g[0]->nout, g[1]->nout);
    for (uint32_t i = 0; i < 2; i++)
        if (!graph_of(n, g[i], &in, out[i]))
            return build_no_branch(&n->b, &n->im->shapes, cond,
                                   i ? NO_ELSE_BRANCH : NO_THEN_BRANCH);
    if (!build_choose(&n->b, cond, g[0]->nout, out[0], out[1], out[0]))
        return build_no_branch(&n->b, &n->im->shapes, cond, BRANCHES_DIFFER);
    return done_all(n, g[0]->nout, out[0]);
}

/* ---- loops -------------------------------------------------------------------------------------- */

static bool goes_on(PtNode *n, const PtGraph *g, const Tensors *states, const Expr **go)
{
    const Expr *e;

    if (g->nout != 1)
        return pt_error(n, E_IMPORT, "its condition has %u outputs", g->nout);
    return graph_of(n, g, states, &e) && (*go = build_condition(&n->b, e)) != NULL;
}

static bool same_types(PtNode *n, uint32_t count, const Expr *const *was, const Expr *const *now)
{
    for (uint32_t i = 0; i < count; i++)
        if (was[i]->type != now[i]->type)
            return pt_error(n, E_UNSUPPORTED, "state %u is %s, and %s after a round", i,
                            type_text(n->b.c, was[i]->type), type_text(n->b.c, now[i]->type));
    return true;
}

const char *pt_loop_name(PtImport *im, const char *kind)
{
    return intern_printf(im->c->strings, "%s%u", kind, im->functions.n);
}

/* while_loop(condition, body, states, what they read beside) */
bool pt_while_loop(PtNode *n)
{
    const PtGraph *test = graph_at(n, 0), *body = graph_at(n, 1);
    Arena         *a = n->b.c->arena;
    Tensors        parts[2], first, var, next;
    const Expr    *all;
    BuildLoop      l = {.lifts = true};
    double         k;

    if (!test || !body || !tensors_at(n, 2, &parts[0]) || !tensors_at(n, 3, &parts[1]))
        return false;
    l.n = parts[0].n;
    if (body->nout != l.n)
        return pt_error(n, E_IMPORT, "its body has %u outputs for %u states", body->nout, l.n);
    first = joined(a, 2, parts);
    var = joined(a, 2, parts);
    next = joined(a, 2, parts);
    for (uint32_t i = 0; i < l.n; i++)
        var.at[i] = expr_var(n->b.c, "state", first.at[i]->type, n->b.loc);
    if (!goes_on(n, test, &first, &l.first_go) || !graph_of(n, body, &var, next.at) ||
        !same_types(n, l.n, var.at, next.at) || !goes_on(n, test, &next, &l.next_go))
        return false;
    if (expr_const_f(l.next_go, &k) && k != 0)
        return pt_error(n, E_IMPORT, "a loop without an end");
    l.name = pt_loop_name(n->im, "while");
    l.var = var.at, l.first = first.at, l.next = next.at;
    if (!(all = build_while(&n->b, &l, &n->im->functions)))
        return false;
    for (uint32_t i = 0; i < l.n; i++)
        next.at[i] = build_proj(&n->b, all, i);
    return done_all(n, l.n, next.at);
}

/* States of a scan, in this order: carried, rows that are made, rows that are read, what is read
 * beside.  The graph takes carried, a row of each that is read, and the rest. */
typedef struct {
    PtNode        *n;
    const PtGraph *g;
    uint32_t       carried, made, rows, beside;
} Rounds;

static const Expr *row_of(const Build *b, const Expr *x, const Expr *i)
{
    TakeAttrs *a = ATTRS(b, TakeAttrs);

    a->axis = 0;
    return build2(b, "take", x, i, a);
}

/* What the graph makes in round i: carried, and a row of each. */
static bool scan_round(const Rounds *s, const Expr *i, const Expr *const *state, const Expr **out)
{
    Arena             *a = s->n->b.c->arena;
    Tensors            in = {0, NEW_ARRAY(a, const Expr *, s->carried + s->rows + s->beside + 1)};
    const Expr *const *rows = state + s->carried + s->made;

    for (uint32_t k = 0; k < s->carried; k++)
        in.at[in.n++] = state[k];
    for (uint32_t k = 0; k < s->rows; k++)
        if (!(in.at[in.n++] = row_of(&s->n->b, rows[k], i)))
            return false;
    for (uint32_t k = 0; k < s->beside; k++)
        in.at[in.n++] = rows[s->rows + k];
    return graph_of(s->n, s->g, &in, out);
}

static bool next_states(const Build *b, void *user, const Expr *i, const Expr *const *state,
                        const Expr **next)
{
    const Rounds *s = user;
    uint32_t      all = s->carried + s->made + s->rows + s->beside;
    const Expr  **out = NEW_ARRAY(b->c->arena, const Expr *, s->g->nout + 1);

    memcpy(next, state, all * sizeof *next);
    if (!scan_round(s, i, state, out) || !same_types(s->n, s->carried, state, out))
        return false;
    for (uint32_t k = 0; k < s->carried; k++)
        next[k] = out[k];
    for (uint32_t k = s->carried; k < s->carried + s->made; k++)
        if (!(next[k] = build3(b, "update_slice", state[k], out[k], i, NULL)))
            return false;
    return true;
}

/* Room for the rows that each round makes, which a first look at the graph says. */
static bool make_room(Rounds *s, const Idx *count, const Expr **states)
{
    PtNode      *n = s->n;
    const Expr **out = NEW_ARRAY(n->b.c->arena, const Expr *, s->g->nout + 1);

    if (!scan_round(s, expr_scalar(n->b.c, DT_I64, 0), states, out))
        return false;
    for (uint32_t k = 0; k < s->made; k++) {
        const Expr *row = out[s->carried + k];
        const Idx  *dims[MAX_RANK + 1] = {count};

        memcpy(dims + 1, expr_forms(row).at, expr_rank(row) * sizeof *dims);
        if (!(states[s->carried + k] =
                  build_zeros_of(&n->b, expr_dtype(row), expr_rank(row) + 1, dims)))
            return false;
    }
    return true;
}

static bool scan(PtNode *n, const Tensors *carried, const Tensors *rows, const Tensors *beside)
{
    Rounds       s = {n, graph_at(n, 0), carried->n, 0, rows->n, beside->n};
    Tensors      parts[4] = {*carried, {0}, *rows, *beside}, states;
    const Idx   *count;
    const Expr **out;

    if (!s.g)
        return false;
    if (s.g->nout < s.carried || rows->n == 0)
        return pt_error(n, E_IMPORT, "its graph has %u outputs for %u states and %u rows",
                        s.g->nout, s.carried, rows->n);
    s.made = s.g->nout - s.carried;
    parts[1] = (Tensors){s.made, NEW_ARRAY(n->b.c->arena, const Expr *, s.made + 1)};
    states = joined(n->b.c->arena, 4, parts);
    for (uint32_t i = 0; i < rows->n; i++)
        if (expr_rank(rows->at[i]) < 1 || expr_form(rows->at[i], 0) != expr_form(rows->at[0], 0))
            return pt_error(n, E_IMPORT, "rows of %s", type_text(n->b.c, rows->at[i]->type));
    count = expr_form(rows->at[0], 0);
    if (count->hi < 1)
        return pt_error(n, E_UNSUPPORTED, "no rows");
    out = NEW_ARRAY(n->b.c->arena, const Expr *, states.n + 1);
    return make_room(&s, count, states.at) &&
           build_rounds(&n->b, pt_loop_name(n->im, "scan"), count, states.n, states.at, next_states,
                        &s, out, &n->im->functions) &&
           done_all(n, s.g->nout, out);
}

/* scan(graph, first states, rows, what it reads beside) */
bool pt_scan(PtNode *n)
{
    Tensors t[3];

    for (uint32_t i = 0; i < 3; i++)
        if (!tensors_at(n, i + 1, &t[i]))
            return false;
    return scan(n, &t[0], &t[1], &t[2]);
}

/* map(graph, rows, what it reads beside) */
bool pt_map(PtNode *n)
{
    Tensors t[3] = {{0}};

    for (uint32_t i = 1; i < 3; i++)
        if (!tensors_at(n, i, &t[i]))
            return false;
    return scan(n, &t[0], &t[1], &t[2]);
}
