/* loop_layouts: what a loop carries lies as its rounds compute it, not transposed.
 *
 *   fn @loop(%go, %i, %h: [1, 16, 16, 8]) {
 *     .. %0 = tanh(nn.conv2d(transpose(%h, axes=[0, 3, 1, 2]), const @w));
 *     @loop(.., transpose(%0, axes=[0, 2, 3, 1])) }
 *   %1 = @loop(true, 0_i64, %x);  %1.0
 *     -> fn @loop(%go, %i, %h: [1, 8, 16, 16]) { .. @loop(.., tanh(nn.conv2d(%h, const @w))) }
 *        %1 = @loop(true, 0_i64, transpose(%x, axes=[0, 3, 1, 2]));  transpose(%1.0, axes=[0, 2, 3,
 * 1])
 *
 * States of NHWC and the images of convolutions are so in every round; now they are transposed once
 * before the loop and once behind it, where most meet another transpose and are gone.  So are lists
 * of such images.  Transposes go behind what is computed cell by cell, in the round, where they
 * meet those of others, and behind the loop; if fewer are left in the round, it is changed.  Cost:
 * a rewrite of each loop that has such a state. */
#include "passes/graph/graph.h"

#include <string.h>

enum { MAX_DIMS = 8, MAX_IN = 3 };

/* A parameter as it is carried now: its dimensions are those of `now` in the order of `axes`. */
typedef struct {
    const Expr *now; /* NULL: as it was */
    bool        list;
    uint32_t    axes[MAX_DIMS];
} State;

typedef struct {
    Ctx        *c;
    const char *name;
    const Expr *f, *call, *made; /* made: the call of the new loop */
    LoopForm    form;
    State      *state; /* of each parameter */
    const Type *ret;
} Carried;

/* ---- transposes ---------------------------------------------------------------------------------- */

static void inverse(uint32_t n, const uint32_t *axes, uint32_t *out)
{
    for (uint32_t i = 0; i < n; i++)
        out[axes[i]] = i;
}

/* Views that lead back to a tensor's own dimensions are none. */
static const Expr *without_detours(const Expr *e)
{
    for (const Expr *x = e; is_view(x);) {
        x = call_arg(x, 0);
        if (x->type == e->type)
            e = x;
    }
    return e;
}

/* x in another order; of a transpose what it is of. */
static const Expr *transposed(Ctx *c, const Expr *x, const uint32_t *axes)
{
    TransposeAttrs *a;
    uint32_t        inner[MAX_DIMS], n = x->type->n;
    int64_t         to[MAX_DIMS];
    bool            moved = false;

    for (uint32_t i = 0; i < n; i++)
        to[i] = axes[i];
    x = without_detours(x);
    if (call_is(x, "transpose")) {
        axes_of_transpose(x, inner);
        for (uint32_t i = 0; i < n; i++)
            to[i] = inner[axes[i]];
        x = call_arg(x, 0);
    }
    for (uint32_t i = 0; i < n; i++)
        moved |= to[i] != i;
    if (!moved)
        return x;
    a = ATTRS_NEW(c, TransposeAttrs);
    a->axes = ints_dup(c, to, n);
    return make1(c, "transpose", x, a, x->loc);
}

static const Expr *transposed_back(Ctx *c, const Expr *x, const uint32_t *axes)
{
    uint32_t back[MAX_DIMS];

    inverse(x->type->n, axes, back);
    return transposed(c, x, back);
}

static bool is_transpose(const Expr *e)
{
    return call_is(e, "transpose") && expr_has_shape(e) && e->type->n > 1 && e->type->n < MAX_DIMS;
}

static bool is_one_number(const Expr *e)
{
    int64_t n;

    return expr_has_shape(e) && type_elems(e->type, &n) && n == 1;
}

/* What is computed cell by cell of tensors that are transposed alike is transposed behind that. */
static const Expr *lifted(Ctx *c, const Expr *e)
{
    const Op   *op = call_op(e);
    const Expr *args[MAX_IN];
    uint32_t    axes[MAX_DIMS], other[MAX_DIMS], n = 0;
    bool        any = false;

    if (!op || !expr_has_shape(e) || !call_nargs(e) || call_nargs(e) > MAX_IN ||
        (op->fusion != FUSE_ELEMWISE && op->fusion != FUSE_BROADCAST) || !op->block ||
        call_is(e, "nn.bias_add") || call_is(e, "nn.prelu"))
        return e;
    for (uint32_t i = 0; i < call_nargs(e); i++) {
        const Expr *x = call_arg(e, i);

        args[i] = x;
        if (is_one_number(x))
            continue;
        if (!is_transpose(x) || !same_dims(x->type, e->type))
            return e;
        n = x->type->n;
        axes_of_transpose(x, any ? other : axes);
        if (any && memcmp(axes, other, n * sizeof *axes))
            return e;
        any = true;
        args[i] = call_arg(x, 0);
    }
    for (uint32_t i = 0; i < call_nargs(e); i++) /* its number's dimensions are 1s in any order */
        if (any && is_one_number(args[i]) && args[i]->type->n > n)
            return e;
    e = any ? expr_call(c, op, call_nargs(e), args, e->u.attrs, e->loc) : e;
    return e && any ? transposed(c, e, axes) : e;
}

/* ---- the loop ------------------------------------------------------------------------------------ */

/* How often the round reads parameter k, but where it is passed on. */
static uint32_t reads_of(const Carried *l, ExprList round, uint32_t k)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i + 1 < round.n; i++)
        for (uint32_t j = 0; j < round.at[i]->nkids; j++)
            n += round.at[i]->kids[j] == func_param(l->f, k);
    return n;
}

/* A state, or a list of such, which each round hands on transposed. */
static bool find_state(Carried *l, ExprList round, uint32_t k)
{
    const Expr *p = func_param(l->f, k), *e = call_arg(l->form.again, k);
    State      *s = &l->state[k];
    uint32_t    axes[MAX_DIMS], back[MAX_DIMS], n = p->type->kind == TYPE_TENSOR ? p->type->n : 0;
    const Idx  *dims[MAX_DIMS];

    if (!expr_has_shape(p) || n < 2 || n > MAX_DIMS)
        return false;
    s->list = call_is(e, "update_slice") && call_arg(e, 0) == p;
    if (s->list && reads_of(l, round, k) != 1)
        return false;
    e = without_detours(s->list ? call_arg(e, 1) : e);
    if (!is_transpose(e))
        return false;
    axes_of_transpose(e, axes);
    s->axes[0] = 0;
    for (uint32_t i = 0; i < e->type->n; i++)
        s->axes[i + s->list] = axes[i] + s->list;
    inverse(n, s->axes, back);
    for (uint32_t i = 0; i < n; i++)
        dims[i] = p->type->dims[back[i]];
    s->now = expr_var(l->c, p->u.var.name, type_tensor(l->c, p->type->dtype, n, dims), p->loc);
    return true;
}

static const Expr *call_of(const Carried *l, const Expr *call, const Expr *const *args)
{
    uint32_t     n = func_nparams(l->f);
    const Type **types = NEW_ARRAY(l->c->scratch, const Type *, n + 1), *t;

    for (uint32_t i = 0; i < n; i++)
        types[i] = args[i]->type;
    t = type_func(l->c, n, types, l->ret);
    return expr_apply(l->c, expr_global(l->c, l->name, t, call->loc), n, args, call->loc);
}

/* The next round's call, or the first one, with states as they lie now. */
static const Expr *new_call(const Carried *l, const Expr *call)
{
    uint32_t     n = func_nparams(l->f);
    const Expr **args = NEW_ARRAY(l->c->scratch, const Expr *, n + 1), *piece;

    for (uint32_t i = 0; i < n; i++) {
        const State *s = &l->state[i];
        const Expr  *e = args[i] = call_arg(call, i);

        if (!s->now)
            continue;
        if (s->list && call_is(e, "update_slice") && call != l->call) {
            uint32_t axes[MAX_DIMS];

            for (uint32_t k = 1; k < e->type->n; k++)
                axes[k - 1] = s->axes[k] - 1;
            piece = transposed_back(l->c, call_arg(e, 1), axes);
            args[i] = piece ? expr_call(l->c, call_op(e), 3,
                                        (const Expr *[]){s->now, piece, call_arg(e, 2)}, e->u.attrs,
                                        e->loc)
                            : NULL;
        } else {
            args[i] = transposed_back(l->c, e, s->axes);
        }
        if (!args[i])
            return NULL;
    }
    return call_of(l, call, args);
}

static const Expr *in_loop(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    const Carried *l = user;
    const Expr   **kids;

    if (was == l->form.again)
        return new_call(l, now);
    if (was == l->form.end) {
        kids = DUP_ARRAY(c->scratch, was->kids, was->nkids);
        for (uint32_t i = 0; i < was->nkids; i++)
            for (uint32_t k = 0; k < func_nparams(l->f); k++)
                if (was->kids[i] == func_param(l->f, k) && l->state[k].now)
                    kids[i] = l->state[k].now;
        return expr_tuple(c, was->nkids, kids, was->loc);
    }
    for (uint32_t k = 0; was->kind == EXPR_VAR && k < func_nparams(l->f); k++)
        if (was == func_param(l->f, k) && l->state[k].now)
            return transposed(c, l->state[k].now, l->state[k].axes);
    if (is_transpose(now)) {
        uint32_t axes[MAX_DIMS];

        axes_of_transpose(now, axes);
        return call_is(call_arg(now, 0), "transpose") ? transposed(c, call_arg(now, 0), axes) : now;
    }
    return lifted(c, now);
}

static const Expr *in_others(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    const Carried *l = user;
    const Expr    *e;

    if (was->kind != EXPR_PROJ || was->kids[0] != l->call)
        return now;
    e = expr_proj(c, l->made, was->u.index, was->loc);
    for (uint32_t k = 0; e && k < func_nparams(l->f); k++)
        if (l->form.end->kids[was->u.index] == func_param(l->f, k) && l->state[k].now)
            return transposed(c, e, l->state[k].axes);
    return e;
}

/* ---- behind loops -------------------------------------------------------------------------------- */

enum { MAX_CHAIN = 8 };

/* Numbers along at most one dimension of what views and transposes show of a tensor: beside that
 * tensor; NULL: they are others. */
static const Expr *numbers_beside(Ctx *c, const Expr *k, const Expr *shown, const ViewAxes *v)
{
    const Idx *dims[MAX_DIMS];
    uint32_t   n = v->of->type->n, at = MAX_DIMS;
    int64_t    d;

    if (is_one_number(k))
        return k->type->n ? NULL : k;
    if (!is_constant(k) || !expr_is_tensor(k) || k->type->n > shown->type->n || n > MAX_DIMS)
        return NULL;
    for (uint32_t i = 0; i < n; i++)
        dims[i] = idx_const(c->arith, 1);
    for (uint32_t i = 0; i < k->type->n; i++) {
        uint32_t dim = shown->type->n - k->type->n + i, parts = 0;

        if (!type_dim(k->type, i, &d))
            return NULL;
        if (d == 1)
            continue;
        for (uint32_t p = 0; p < v->n; p++)
            if (v->part[p].dim == dim && v->part[p].size == v->of->type->dims[v->part[p].from] &&
                v->part[p].size == k->type->dims[i] && ++parts)
                at = at == MAX_DIMS ? v->part[p].from : n;
        if (parts != 1 || at >= n)
            return NULL;
        dims[at] = k->type->dims[i];
    }
    at = at < n ? at : n - 1;
    return make_reshape_to(c, k, n - at, dims + at, k->loc);
}

/* What a loop gives, or what is computed of that here. */
static bool is_result(const Map *made, const Expr *e)
{
    return map_get(made, PTR_KEY(e)) || (e->kind == EXPR_PROJ && e->kids[0]->kind == EXPR_CALL &&
                                         e->kids[0]->kids[0]->kind == EXPR_GLOBAL);
}

/* Cell by cell of what a loop gives, transposed, beside numbers: transposed behind that. */
static const Expr *behind_loops(Ctx *c, void *user, const Expr *was, const Expr *e)
{
    Map        *made = user;
    const Op   *op = call_op(e);
    const Expr *chain[MAX_CHAIN], *args[2], *x;
    uint32_t    n = 0, at = 0;
    bool        moved = false;
    ViewAxes    v;

    (void)was;
    if (!op || !op->block || (op->fusion != FUSE_ELEMWISE && op->fusion != FUSE_BROADCAST) ||
        !expr_is_tensor(e) || call_nargs(e) < 1 || call_nargs(e) > 2 || call_is(e, "nn.prelu") ||
        call_is(e, "nn.bias_add"))
        return e;
    at = call_nargs(e) == 2 && is_constant(call_arg(e, 0));
    for (x = call_arg(e, at); (is_view(x) || call_is(x, "transpose")) && n < MAX_CHAIN;
         x = call_arg(x, 0)) {
        moved |= call_is(x, "transpose");
        chain[n++] = x;
    }
    if (!moved || !is_result(made, x) || !same_dims(call_arg(e, at)->type, e->type) ||
        !view_axes(c, call_arg(e, at), &v) || v.of != x)
        return e;
    args[at] = x;
    if (call_nargs(e) == 2 &&
        !(args[1 - at] = numbers_beside(c, call_arg(e, 1 - at), call_arg(e, at), &v)))
        return e;
    x = expr_call(c, op, call_nargs(e), args, e->u.attrs, e->loc);
    if (x)
        map_put(made, PTR_KEY(x), made);
    while (n-- && x)
        x = expr_call(c, call_op(chain[n]), 1, &x, chain[n]->u.attrs, chain[n]->loc);
    return x;
}

/* ---- the pass ------------------------------------------------------------------------------------ */

static uint32_t transposes(ExprList list)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < list.n; i++)
        n += call_is(list.at[i], "transpose");
    return n;
}

/* The type of what the loop gives. */
static const Type *new_results(const Carried *l)
{
    const Expr  *end = l->form.end;
    const Type **types = NEW_ARRAY(l->c->scratch, const Type *, end->nkids + 1);

    for (uint32_t i = 0; i < end->nkids; i++) {
        types[i] = end->kids[i]->type;
        for (uint32_t k = 0; k < func_nparams(l->f); k++)
            if (end->kids[i] == func_param(l->f, k) && l->state[k].now)
                types[i] = l->state[k].now->type;
    }
    return type_tuple(l->c, end->nkids, types);
}

static const Module *changed(Ctx *c, const Module *m, uint32_t at)
{
    GlobalDef *defs = DUP_ARRAY(c->scratch, m->funcs, m->nfuncs);
    Carried    l = {.c = c, .name = intern(c->strings, m->funcs[at].name), .f = m->funcs[at].func};
    uint32_t   n = func_nparams(l.f);
    const Expr **params = NEW_ARRAY(c->scratch, const Expr *, n + 1), *body;
    FuncData     data = l.f->u.func;
    ExprList     round;
    bool         any = false;

    if (!is_loop(c, l.f, l.name, &l.form) || l.form.end->kind != EXPR_TUPLE ||
        !(l.call = loop_call(c, m, l.name, &l.form, true)))
        return m;
    round = expr_post_order(c, l.form.again);
    l.state = NEW_ARRAY(c->scratch, State, n + 1);
    for (uint32_t k = 0; k < n; k++) {
        any |= find_state(&l, round, k);
        params[k] = l.state[k].now ? l.state[k].now : func_param(l.f, k);
    }
    if (!any)
        return m;
    l.ret = data.ret = new_results(&l);
    if (!(body = expr_rewrite(c, func_body(l.f), in_loop, &l)) || !(l.made = new_call(&l, l.call)))
        return NULL;
    if (transposes(expr_post_order(c, body->kids[l.form.until ? 2 : 1])) >= transposes(round))
        return m;
    for (uint32_t i = 0; i < m->nfuncs; i++) {
        defs[i].func = i == at ? expr_func(c, n, params, body, data, l.f->loc)
                               : expr_rewrite(c, defs[i].func, in_others, &l);
        if (!defs[i].func)
            return NULL;
    }
    return module_new(c, m, m->nfuncs, defs);
}

const Module *loop_layouts(Ctx *c, const Module *m)
{
    const Module *was = m;

    for (uint32_t i = 0; i < m->nfuncs; i++)
        if (!(m = changed(c, m, i)))
            return NULL;
    if (m->nfuncs > 1 && !(m = module_rewrite(c, m, behind_loops, map_new(c->scratch))))
        return NULL;
    return m == was ? m : fold_constant(c, m);
}
