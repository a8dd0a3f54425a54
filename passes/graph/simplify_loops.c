/* simplify_loops: loops with the parameters that they need, in one order, and one counter.
 *
 *   fn @while(%go, %i: i32, %k: i32, %w, %h, %last, %y) {
 *     if %go { %0 = add(%i, 1); %1 = add(%k, 1);  %2 = tanh(nn.matmul(%h, %w));
 *       @while(logical_and(less(%1, 5), less(%0, 5)), %0, %1, %w, %2, %2, update_slice(%y, %2, %i))
 *     } else { (%i, %k, %w, %h, %last, %y) }
 *   }
 *   %3 = @while(true, 0, 0, const @w, %x, const @zeros, const @list);  strided_slice(%3.5, 4 to 5)
 *     -> fn @while(%go, %i: i64, %h) {
 *          if %go { .. @while(less(add(%i, 1), 5), add(%i, 1), tanh(nn.matmul(%h, const @w))) }
 *          else { (%h,) } }
 *        %3 = @while(true, 0_i64, %x);  reshape(%3.0)
 *
 * Exporters hand weights through the rounds of a loop, count twice, and keep lists and states that
 * nobody reads; each costs kernels and copies in every round.  So of a loop that one place calls:
 * constants that every round passes on are constants of its body; parameters that begin and go on
 * alike are one; where counters say how many rounds there are, one counts in i64 from 0 and the
 * others are made of it, and a state or the last row of a list that is another's value in the end
 * is that; what neither a read result nor a further round needs is dropped, results too.
 * Parameters then stand in the order in which they are needed: condition, counter, the results as
 * the caller reads them, what their values are made of.  Functions stand in the order in which main
 * comes to them.  Nothing is computed otherwise.  Cost: a walk and two rewrites of each loop. */
#include "passes/graph/simplify_loops.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_NESTING = 8 };

/* ---- what is there ------------------------------------------------------------------------------ */

uint32_t param_at(const Loop *l, const Expr *e)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (e == l->param[i])
            return i;
    return UINT32_MAX;
}

bool is_last_row(const Expr *e)
{
    const StridedSliceAttrs *a;
    const Type              *t;
    int64_t                  rows, from, to;

    if (!call_is(e, "strided_slice"))
        return false;
    a = ATTRS_OF(StridedSliceAttrs, e);
    t = call_arg(e, 0)->type;
    if (!expr_has_shape(e) || !t->n || !type_dim(t, 0, &rows) || a->begin.n != 1 ||
        (a->axes.n && axis_from_front(a->axes.at[0], t->n) != 0) || !ints_all(a->strides, 1) ||
        !idx_is_const(a->begin.at[0], &from) || !idx_is_const(a->end.at[0], &to))
        return false;
    return (from == rows - 1 || from == -1) && to >= rows;
}

uint32_t result_at(const Loop *l, const Expr *e)
{
    if (!l->tuple)
        return e == l->call ? 0 : UINT32_MAX;
    return e->kind == EXPR_PROJ && e->kids[0] == l->call ? e->u.index : UINT32_MAX;
}

static bool find_reads(Ctx *c, const Module *m, Loop *l)
{
    for (uint32_t i = 0; i < m->nfuncs; i++) {
        ExprList list = expr_post_order(c, m->funcs[i].func);

        for (uint32_t k = 0; k < list.n; k++) {
            const Expr *e = list.at[k];

            for (uint32_t j = 0; j < e->nkids; j++) {
                uint32_t r = result_at(l, e->kids[j]);

                if (r == UINT32_MAX)
                    continue;
                l->result[r].other |= !is_last_row(e);
                if (!l->result[r].read)
                    l->used[l->nused++] = r;
                l->result[r].read = true;
            }
        }
    }
    return l->nused > 0;
}

static bool read_loop(Ctx *c, const Module *m, uint32_t at, Loop *l)
{
    const Expr *f = m->funcs[at].func, *end;
    Arena      *a = c->scratch;

    *l = (Loop){.c = c, .name = intern(c->strings, m->funcs[at].name), .f = f};
    if (!is_loop(c, f, l->name, &l->form))
        return false;
    l->tuple = l->form.end->kind == EXPR_TUPLE;
    if (!(l->call = loop_call(c, m, l->name, &l->form, l->tuple)) || !l->call->type)
        return false;
    l->n = func_nparams(f);
    l->param = NEW_ARRAY(a, const Expr *, l->n + 2);
    l->next = NEW_ARRAY(a, const Expr *, l->n + 2);
    l->first = NEW_ARRAY(a, const Expr *, l->n + 2);
    l->value = NEW_ARRAY(a, const Expr *, l->n + 2);
    l->order = NEW_ARRAY(a, uint32_t, l->n + 2);
    l->live = NEW_ARRAY(a, bool, l->n + 2);
    l->counts = NEW_ARRAY(a, bool, l->n + 2);
    l->reads = NEW_ARRAY(a, bool, l->n + 2);
    l->last = NEW_ARRAY(a, int64_t, l->n + 2);
    for (uint32_t i = 0; i < l->n; i++) {
        l->param[i] = l->value[i] = func_param(f, i);
        l->next[i] = call_arg(l->form.again, i);
        l->first[i] = call_arg(l->call, i);
        if (!l->param[i]->type || l->param[i]->type != l->first[i]->type)
            return false;
    }
    end = l->form.end;
    l->nresults = l->tuple ? end->nkids : 1;
    l->result = NEW_ARRAY(a, Result, l->nresults + 1);
    l->used = NEW_ARRAY(a, uint32_t, l->nresults + 1);
    for (uint32_t i = 0; i < l->nresults; i++)
        if ((l->result[i].param = param_at(l, l->tuple ? end->kids[i] : end)) == UINT32_MAX)
            return false;
    return find_reads(c, m, l);
}

/* ---- one value for each parameter ---------------------------------------------------------------- */

static const Expr *by_number(Ctx *c, const char *op, const Expr *e, int64_t v)
{
    return make2(c, op, e, expr_scalar(c, e->type->dtype, (double)v), NULL, e->loc);
}

/* Adds a parameter. */
static const Expr *new_param(Loop *l, const char *name, DType t)
{
    const Expr *v = expr_var(l->c, name, type_tensor(l->c, t, 0, NULL), l->f->loc);

    l->param[l->n] = l->value[l->n] = v;
    l->first[l->n] = expr_scalar(l->c, t, dtype_eq(t, DT_BOOL));
    l->n++;
    return v;
}

/* Is the last value of a counter, and the number of rounds, one of its type? */
static bool last_value(const Loop *l, uint32_t k, int64_t from, int64_t step, int64_t *last)
{
    DType   t = l->param[k]->type->dtype;
    int64_t most = t.bits >= 64 ? INT64_MAX : (INT64_C(1) << (t.bits - 1)) - 1;

    return l->param[k]->type->n == 0 && checked_mul(step, l->rounds, last) &&
           checked_add(*last, from, last) && llabs(*last) <= most && llabs(from) <= most &&
           l->rounds <= most;
}

/* The counter that all are made of is the first like it, or new. */
static bool count_once(Loop *l)
{
    Ctx     *c = l->c;
    int64_t  from, step;
    uint32_t go = param_at(l, l->form.cond), had = l->n;

    l->i = loop_index(c, l->f, &l->form, l->call);
    l->go = go < l->n ? l->param[go] : new_param(l, "go", DT_BOOL);
    l->i = l->i ? l->i : new_param(l, "i", DT_I64);
    for (uint32_t k = 0; k < had; k++) {
        const Expr *v = l->i;
        DType       t = l->param[k]->type->dtype;

        if (!loop_counter(c, l->f, &l->form, l->call, k, &from, &step) ||
            !last_value(l, k, from, step, &l->last[k]))
            continue;
        l->counts[k] = true;
        v = dtype_eq(t, DT_I64) ? v : make_cast(c, v, t, l->f->loc);
        v = v && step != 1 ? by_number(c, "multiply", v, step) : v;
        v = v && from ? by_number(c, "add", v, from) : v;
        if (!v)
            return false;
        l->value[k] = v;
    }
    return true;
}

/* The condition and the counter of the next round. */
static bool go_on(Loop *l)
{
    const Expr *next = by_number(l->c, "add", l->i, 1);
    const Expr *more = next ? by_number(l->c, "less", next, l->rounds) : NULL;
    uint32_t    go = param_at(l, l->go), i = param_at(l, l->i);

    l->next[i] = next;
    l->next[go] = more;
    return more != NULL;
}

static bool begin_alike(Ctx *c, const Expr *a, const Expr *b)
{
    return a == b || (is_constant(a) && is_constant(b) && expr_same(c, a, b));
}

/* Constants that are passed on, and parameters that are another's twin. */
static void find_values(Loop *l)
{
    for (uint32_t k = 0; k < l->n; k++) {
        bool same = l->next[k] == l->param[k];

        if (l->value[k] != l->param[k])
            continue;
        if (same && is_constant(l->first[k])) {
            if (l->param[k] != l->form.cond) /* a loop that only its caller ends stays one */
                l->value[k] = l->first[k];
            continue;
        }
        for (uint32_t i = 0; i < k && l->value[k] == l->param[k]; i++)
            if (l->value[i] == l->param[i] && l->param[i]->type == l->param[k]->type &&
                (same ? l->next[i] == l->param[i] : l->next[i] == l->next[k]) &&
                l->param[i] != l->i && l->param[k] != l->i &&
                begin_alike(l->c, l->first[i], l->first[k]))
                l->value[k] = l->param[i];
    }
}

/* ---- the round ----------------------------------------------------------------------------------- */

static bool is_counter_cast(const Loop *l, const Expr *e)
{
    return call_is(e, "cast") && call_arg(e, 0) == l->i;
}

/* Rows that the counter tells: it may be of any integer type, and is within the tensor. */
static const Expr *row_by_counter(Ctx *c, const Loop *l, const Expr *e)
{
    const TakeAttrs *a = ATTRS_OF(TakeAttrs, e);
    const Type      *t = call_arg(e, 0)->type;
    const Expr      *args[2] = {call_arg(e, 0), call_arg(e, 1)};
    TakeAttrs       *now;
    int64_t          rows;

    if (is_counter_cast(l, args[1]))
        args[1] = l->i;
    if (args[1] != l->i)
        return e;
    now = ATTRS_COPY(c, TakeAttrs, e);
    if (!a->batch_dims && type_dim(t, axis_from_front(a->axis, t->n), &rows) && rows >= l->rounds)
        now->mode = "clip";
    return expr_call(c, call_op(e), 2, args, now, e->loc);
}

const Expr *in_round(Ctx *c, void *user, const Expr *was, const Expr *e)
{
    const Loop *l = user;
    uint32_t    k = was->kind == EXPR_VAR ? param_at(l, was) : UINT32_MAX;

    if (k != UINT32_MAX)
        return l->value[k];
    if (!l->i || !expr_has_shape(e))
        return e;
    if (call_is(e, "cast") && is_counter_cast(l, call_arg(e, 0)))
        return dtype_eq(e->type->dtype, DT_I64) ? l->i : make_cast(c, l->i, e->type->dtype, e->loc);
    if (call_is(e, "take"))
        return row_by_counter(c, l, e);
    if (call_is(e, "update_slice") && is_counter_cast(l, call_arg(e, 2))) {
        const Expr *args[3] = {call_arg(e, 0), call_arg(e, 1), l->i};

        return expr_call(c, call_op(e), 3, args, e->u.attrs, e->loc);
    }
    return e;
}

/* All next values anew, together, so that what they share stays shared. */
static bool rewrite_round(Loop *l)
{
    uint32_t    had = func_nparams(l->f);
    const Expr *all = expr_tuple(l->c, had, l->next, l->f->loc);
    ExprList    list;

    if (!all || !(all = expr_rewrite(l->c, all, in_round, l)))
        return false;
    memcpy(l->next, all->kids, had * sizeof *l->next);
    if (l->rounds && !go_on(l))
        return false;
    list = expr_post_order(l->c, all);
    for (uint32_t i = 0; i + 1 < list.n; i++) {
        const Expr *e = list.at[i];
        bool        list_at = call_is(e, "update_slice");

        for (uint32_t j = list_at ? 2 : 0; j < e->nkids; j++) {
            uint32_t k = e->kids[j]->kind == EXPR_VAR ? param_at(l, e->kids[j]) : UINT32_MAX;

            if (k != UINT32_MAX)
                l->reads[k] = true;
        }
        for (uint32_t k = 0; list_at && k < l->n; k++) /* of a list, its own next value aside */
            if (call_arg(e, 0) == l->param[k] && l->next[k] != e)
                l->reads[k] = true;
    }
    return true;
}

/* The loop of function `at` with what it needs; m itself where it has that. */
static const Module *simplified(Ctx *c, const Module *m, uint32_t at)
{
    Loop l;

    if (!read_loop(c, m, at, &l))
        return m;
    l.rounds = loop_rounds(c, l.f, &l.form, l.call);
    if (l.rounds && !count_once(&l))
        return NULL;
    find_values(&l);
    return rewrite_round(&l) ? loop_anew(c, m, at, &l) : NULL;
}

/* Functions in the order in which main comes to them, behind those that it does not come to. */
static const Module *in_order_of_calls(Ctx *c, const Module *m)
{
    GlobalList reached = module_reached(c, m);
    GlobalDef *defs = NEW_ARRAY(c->scratch, GlobalDef, m->nfuncs + 1);
    uint32_t   n = 0;
    bool       same = true;

    for (uint32_t i = 0; i < m->nfuncs; i++) {
        bool found = false;

        for (uint32_t k = 0; k < reached.n && !found; k++)
            found = reached.at[k].func == m->funcs[i].func;
        if (!found)
            defs[n++] = m->funcs[i];
    }
    if (n + reached.n != m->nfuncs)
        return m; /* two of one name */
    memcpy(defs + n, reached.at, reached.n * sizeof *defs);
    for (uint32_t i = 0; i < m->nfuncs; i++)
        same &= defs[i].func == m->funcs[i].func;
    return same ? m : module_new(c, m, m->nfuncs, defs);
}

const Module *simplify_loops(Ctx *c, const Module *m)
{
    const Module *begin = m;

    for (uint32_t depth = 0; depth < MAX_NESTING; depth++) {
        const Module *was = m;

        for (uint32_t i = 0; i < m->nfuncs; i++)
            if (!(m = simplified(c, m, i)))
                return NULL;
        if (m == was)
            break;
    }
    return m == begin ? m : in_order_of_calls(c, m);
}
