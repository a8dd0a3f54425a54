/* Control flow: graphs within nodes, whose variables are operands of the node.
 *
 * Loops are functions that call themselves (frontends/loops.c); these see their states and
 * constants, so that what a body takes from outside is a state, too.  Results of rounds are written
 * into values with one row for each, whose shapes are known from converting the body once. */
#include "frontends/mxnet/mxnet.h"

#include <string.h>

static const char *loop_name(MxNode *n)
{
    return intern_printf(n->b.c->strings, "loop%u", n->im->loops++);
}

static bool need_graphs(const MxNode *n, uint32_t count)
{
    return n->op->nsub == count || mx_error(n, E_IMPORT, "%u graphs, not %u", n->op->nsub, count);
}

/* Positions among `below` values, `count` of them (UINT32_MAX: any). */
static bool places(const MxNode *n, const char *name, uint32_t count, uint32_t below, Ints *out)
{
    *out = mx_ints(n, name);
    if (count != UINT32_MAX && out->n != count)
        return mx_error(n, E_IMPORT, "'%s' has %u numbers, not %u", name, out->n, count);
    for (uint32_t i = 0; i < out->n; i++)
        if (out->at[i] < 0 || out->at[i] >= below)
            return mx_error(n, E_IMPORT, "'%s' is %s", name, mx_text(n, name));
    return true;
}

/* Graph `sub` with the operands that `at` says. */
static bool call_with(MxNode *n, uint32_t sub, const Expr *const *from, Ints at, const Expr **heads)
{
    const Expr **vars = NEW_ARRAY(n->b.c->arena, const Expr *, at.n + 1);

    for (uint32_t i = 0; i < at.n; i++)
        vars[i] = from[at.at[i]];
    return mx_subgraph(n, sub, vars, heads);
}

static const Expr **room_for(MxNode *n, uint32_t sub, uint32_t least)
{
    uint32_t heads = n->op->sub[sub].nheads;

    return NEW_ARRAY(n->b.c->arena, const Expr *, (heads > least ? heads : least) + 1);
}

/* ---- branches --------------------------------------------------------------------------------------- */

bool mx_cond(MxNode *n)
{
    static const char *const locs[] = {"cond_input_locs", "then_input_locs", "else_input_locs"};
    const Expr             **out[3];
    const Expr              *cond;
    Ints                     at[3];
    double                   v;

    if (!need_graphs(n, 3))
        return false;
    for (uint32_t i = 0; i < 3; i++)
        if (!places(n, locs[i], n->op->sub[i].nvars, n->nin, &at[i]))
            return false;
    if (n->op->sub[0].nheads != 1 || n->op->sub[1].nheads != n->op->sub[2].nheads)
        return mx_error(n, E_IMPORT, "branches with %u and %u results", n->op->sub[1].nheads,
                        n->op->sub[2].nheads);
    for (uint32_t i = 0; i < 3; i++)
        out[i] = room_for(n, i, n->nout);
    if (!call_with(n, 0, n->in, at[0], out[0]) || !(cond = build_condition(&n->b, out[0][0])))
        return false;
    if (expr_const_f(cond, &v)) {
        uint32_t taken = v != 0 ? 1 : 2;

        if (!call_with(n, taken, n->in, at[taken], out[1]))
            return false;
    } else if (!call_with(n, 1, n->in, at[1], out[1])) {
        return build_no_branch(&n->b, &n->im->shapes, cond, NO_THEN_BRANCH);
    } else if (!call_with(n, 2, n->in, at[2], out[2])) {
        return build_no_branch(&n->b, &n->im->shapes, cond, NO_ELSE_BRANCH);
    } else if (!build_choose(&n->b, cond, n->op->sub[1].nheads, out[1], out[2], out[1])) {
        return build_no_branch(&n->b, &n->im->shapes, cond, BRANCHES_DIFFER);
    }
    for (uint32_t i = 0; i < n->op->sub[1].nheads; i++)
        mx_put(n, i, out[1][i]);
    return true;
}

/* ---- loops ------------------------------------------------------------------------------------------ */

/* States: those that change, rows of results, and operands that a body only reads. */
typedef struct {
    MxNode      *n;
    uint32_t     nstates, nrows, nread;
    const Expr **first, **var, **next; /* nstates + nrows + nread of each */
} Loop;

static Loop loop_new(MxNode *n, uint32_t states, uint32_t rows)
{
    Arena   *a = n->b.c->arena;
    uint32_t all = states + rows + n->nin + 1;

    return (Loop){n,
                  states,
                  rows,
                  0,
                  NEW_ARRAY(a, const Expr *, all),
                  NEW_ARRAY(a, const Expr *, all),
                  NEW_ARRAY(a, const Expr *, all)};
}

/* What a body sees of operand i: itself if it is known, or a state. */
static uint32_t read_by(Loop *l, const Expr *x)
{
    l->first[l->nstates + l->nrows + l->nread] = x;
    return l->nstates + l->nrows + l->nread++;
}

static bool is_known(const Expr *x)
{
    return x->kind == EXPR_CONST || call_is(x, "dim_values");
}

static const Expr *empty_rows(const Build *b, const Idx *count, const Expr *row)
{
    const Idx *dims[MAX_RANK + 1] = {count};
    Dims       d = expr_forms(row);

    if (d.n >= MAX_RANK)
        return build_error(b, E_UNSUPPORTED, "results of %u dimensions", d.n);
    memcpy(dims + 1, d.at, d.n * sizeof *dims);
    return build_zeros_of(b, expr_dtype(row), d.n + 1, dims);
}

static bool check_states(const Loop *l, const Expr *const *next)
{
    for (uint32_t i = 0; i < l->nstates; i++)
        if (next[i]->type != l->first[i]->type)
            return mx_error(l->n, E_UNSUPPORTED, "state %u is %s before a round, %s after it", i,
                            type_text(l->n->b.c, l->first[i]->type),
                            type_text(l->n->b.c, next[i]->type));
    return true;
}

/* A body's results of a round: those for rows, then the next states. */
static bool keep_round(const Loop *l, const Expr *at, const Expr *const *states,
                       const Expr *const *heads, const Expr **next)
{
    if (!check_states(l, heads + l->nrows))
        return false;
    for (uint32_t i = 0; i < l->nstates; i++)
        next[i] = heads[l->nrows + i];
    for (uint32_t i = 0; i < l->nrows; i++)
        if (!(next[l->nstates + i] =
                  build3(&l->n->b, "update_slice", states[l->nstates + i], heads[i], at, NULL)))
            return false;
    for (uint32_t i = l->nstates + l->nrows; i < l->nstates + l->nrows + l->nread; i++)
        next[i] = states[i];
    return true;
}

/* Where the variables of a body come from: a constant, or a state, or a row of one. */
typedef struct {
    const Expr *known;
    uint32_t    state;
    bool        row;
} Source;
typedef struct {
    Loop   *l;
    Source *from; /* of the body's variables */
} Foreach;

static bool foreach_body(const Foreach *f, const Expr *i, const Expr *const *states,
                         const Expr **heads)
{
    MxNode      *n = f->l->n;
    uint32_t     count = n->op->sub[0].nvars;
    const Expr **vars = NEW_ARRAY(n->b.c->arena, const Expr *, count + 1);

    for (uint32_t k = 0; k < count; k++) {
        const Source *s = &f->from[k];

        vars[k] = s->known ? s->known : states[s->state];
        if (s->row && !(vars[k] = build_take(&n->b, vars[k], i, 0)))
            return false;
    }
    return mx_subgraph(n, 0, vars, heads);
}

static bool foreach_round(const Build *b, void *user, const Expr *i, const Expr *const *state,
                          const Expr **next)
{
    const Foreach *f = user;
    const Expr   **heads = room_for(f->l->n, 0, 0);

    (void)b;
    return foreach_body(f, i, state, heads) && keep_round(f->l, i, state, heads, next);
}

/* Operands: data, of which each round sees a row, states, and others. */
bool mx_foreach(MxNode *n)
{
    const Build *b = &n->b;
    Ints         data, states, others;
    int64_t      rows = mx_int(n, "num_out_data");
    const Expr **heads, **out;
    const Idx   *count;
    uint32_t     nvars, all, functions, loops;
    bool        *taken;
    Foreach      f;
    Loop         l;

    if (!need_graphs(n, 1))
        return false;
    nvars = n->op->sub[0].nvars;
    if (!places(n, "in_data_locs", UINT32_MAX, nvars, &data) ||
        !places(n, "in_state_locs", UINT32_MAX, nvars, &states) ||
        !places(n, "remain_locs", UINT32_MAX, nvars, &others))
        return false;
    if (data.n < 1 || data.n + states.n + others.n != n->nin || n->nin != nvars || rows < 0 ||
        rows + states.n != n->op->sub[0].nheads)
        return mx_error(n, E_IMPORT, "%u operands for a body with %u variables and %u results",
                        n->nin, nvars, n->op->sub[0].nheads);
    l = loop_new(n, states.n, (uint32_t)rows);
    f = (Foreach){&l, NEW_ARRAY(b->c->arena, Source, nvars + 1)};
    taken = NEW_ARRAY(b->c->arena, bool, nvars + 1);
    for (uint32_t i = 0; i < n->nin; i++) {
        bool    row = i < data.n, state = !row && i < data.n + states.n;
        int64_t at = row     ? data.at[i]
                     : state ? states.at[i - data.n]
                             : others.at[i - data.n - states.n];
        Source *s = &f.from[at];

        if (taken[at])
            return mx_error(n, E_IMPORT, "two operands for variable %lld of the body",
                            (long long)at);
        taken[at] = true;
        if (row &&
            (!mx_rank(n, i, 1, MAX_RANK) || expr_form(n->in[i], 0) != expr_form(n->in[0], 0)))
            return mx_error(n, E_IMPORT, "data are %s", type_text(b->c, n->in[i]->type));
        s->row = row;
        if (state) {
            s->state = i - data.n;
            l.first[s->state] = n->in[i];
        } else if (is_known(n->in[i])) {
            s->known = n->in[i];
        } else {
            s->state = read_by(&l, n->in[i]);
        }
    }
    count = expr_form(n->in[0], 0);
    heads = room_for(n, 0, 0);
    functions = n->im->functions.n, loops = n->im->loops;
    if (!foreach_body(&f, expr_scalar(b->c, DT_I64, 0), l.first, heads))
        return false;
    n->im->functions.n = functions, n->im->loops = loops; /* it was for the shapes only */
    for (uint32_t i = 0; i < l.nrows; i++)
        if (!(l.first[l.nstates + i] = empty_rows(b, count, heads[i])))
            return false;
    all = l.nstates + l.nrows + l.nread;
    out = NEW_ARRAY(b->c->arena, const Expr *, all + 1);
    if (!build_rounds(b, loop_name(n), count, all, l.first, foreach_round, &f, out,
                      &n->im->functions))
        return false;
    for (uint32_t i = 0; i < l.nrows; i++)
        mx_put(n, i, out[l.nstates + i]);
    for (uint32_t i = 0; i < l.nstates; i++)
        mx_put(n, l.nrows + i, out[i]);
    return true;
}

/* ---- while ------------------------------------------------------------------------------------------ */

typedef struct {
    Loop   *l;
    Ints    cond, func, vars; /* operands of the two graphs; which of the second's are states */
    Source *from;             /* of operands */
    int64_t most;
} While;

/* Operands as they are in a round. */
static const Expr **operands(const While *w, const Expr *const *states)
{
    MxNode      *n = w->l->n;
    const Expr **out = NEW_ARRAY(n->b.c->arena, const Expr *, n->nin + 1);

    for (uint32_t i = 0; i < n->nin; i++)
        out[i] = w->from[i].known ? w->from[i].known : states[w->from[i].state];
    return out;
}

static const Expr *goes_on(const While *w, const Expr *i, const Expr *const *states)
{
    MxNode      *n = w->l->n;
    const Expr **go = room_for(n, 0, 1), *more, *cond;

    if (!call_with(n, 0, operands(w, states), w->cond, go) ||
        !(cond = build_condition(&n->b, go[0])))
        return NULL;
    more = build_less(&n->b, i, expr_scalar(n->b.c, DT_I64, (double)w->most));
    return build2(&n->b, "logical_and", more, cond, NULL);
}

static bool read_while(MxNode *n, Loop *l, While *w)
{
    int64_t rows = mx_int(n, "num_out_data"), outputs = mx_int(n, "num_outputs");

    if (!need_graphs(n, 2) ||
        !places(n, "cond_input_locs", n->op->sub[0].nvars, n->nin, &w->cond) ||
        !places(n, "func_input_locs", n->op->sub[1].nvars, n->nin, &w->func) ||
        !places(n, "func_var_locs", UINT32_MAX, n->op->sub[1].nvars, &w->vars))
        return false;
    w->most = mx_int(n, "max_iterations");
    if (rows < 0 || rows + w->vars.n != outputs || outputs != n->op->sub[1].nheads ||
        n->op->sub[0].nheads != 1 || w->most < 1 || w->most > INT32_MAX)
        return mx_error(n, E_IMPORT, "%lld outputs, and a body with %u results and %u variables",
                        (long long)outputs, n->op->sub[1].nheads, w->vars.n);
    *l = loop_new(n, w->vars.n, (uint32_t)rows);
    w->l = l;
    w->from = NEW_ARRAY(n->b.c->arena, Source, n->nin + 1);
    for (uint32_t i = 0; i < n->nin; i++)
        w->from[i].state = UINT32_MAX;
    for (uint32_t i = 0; i < w->vars.n; i++) {
        uint32_t at = (uint32_t)w->func.at[w->vars.at[i]];

        w->from[at].state = i;
        l->first[i] = n->in[at];
    }
    for (uint32_t i = 0; i < n->nin; i++) {
        if (w->from[i].state != UINT32_MAX)
            continue;
        if (is_known(n->in[i]))
            w->from[i].known = n->in[i];
        else
            w->from[i].state = read_by(l, n->in[i]);
    }
    return true;
}

/* Rows behind the last round are 0. */
bool mx_while_loop(MxNode *n)
{
    const Build *b = &n->b;
    While        w = {0};
    Loop         l;
    const Expr **heads, *i = expr_var(b->c, "i", type_tensor(b->c, DT_I64, 0, NULL), b->loc);
    const Expr  *zero = expr_scalar(b->c, DT_I64, 0), *last;
    uint32_t     all, functions, loops;
    BuildLoop    loop;

    if (!read_while(n, &l, &w))
        return false;
    heads = room_for(n, 1, 0);
    functions = n->im->functions.n, loops = n->im->loops;
    if (!call_with(n, 1, operands(&w, l.first), w.func, heads))
        return false;
    n->im->functions.n = functions, n->im->loops = loops;
    for (uint32_t k = 0; k < l.nrows; k++)
        if (!(l.first[l.nstates + k] = empty_rows(b, idx_const(b->c->arith, w.most), heads[k])))
            return false;
    all = l.nstates + l.nrows + l.nread;
    for (uint32_t k = 0; k < all; k++)
        l.var[k] = expr_var(b->c, "state", l.first[k]->type, b->loc);
    if (!call_with(n, 1, operands(&w, l.var), w.func, heads) ||
        !keep_round(&l, i, l.var, heads, l.next))
        return false;
    l.var[all] = i;
    l.first[all] = zero;
    l.next[all] = build_by(b, "add", i, 1);
    loop = (BuildLoop){
        .name = loop_name(n),
        .n = all + 1,
        .var = l.var,
        .first = l.first,
        .next = l.next,
        .first_go = goes_on(&w, zero, l.first),
        .next_go = l.next[all] ? goes_on(&w, l.next[all], l.next) : NULL,
    };
    if (!loop.first_go || !loop.next_go || !(last = build_while(b, &loop, &n->im->functions)))
        return false;
    for (uint32_t k = 0; k < l.nrows; k++)
        mx_put(n, k, build_proj(b, last, l.nstates + k));
    for (uint32_t k = 0; k < l.nstates; k++)
        mx_put(n, l.nrows + k, build_proj(b, last, k));
    return true;
}
