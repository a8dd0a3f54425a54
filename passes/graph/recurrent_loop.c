/* recurrent_loop: a loop over the steps of an LSTM, a GRU or an RNN becomes that operator.
 *
 *   fn @while(%go, %i, %x, %h, %c, %y) {
 *     if %go { .. @while(less(add(%i, 1), 50), add(%i, 1), %x, %h1, %c1, update_slice(%y, %h1, %i))
 * } else { (%i, %x, %h, %c, %y) }
 *   }
 *   @while(true, 0, %0, %h0, %c0, const @zeros)
 *     -> %1 = nn.lstm(%0, .., expand_dims(%h0), expand_dims(%c0), hidden_size=128);  (50, %0, ..)
 *
 * TensorFlow writes recurrent layers so, and what is converted from it.  Each variable of the loop
 * is one of these (`Role`): the same in all rounds, a counter, the state or its cell, the list of
 * all states, the last state.  The round is the cell that recurrent_cell.c reads, of the state, of
 * row %i of a tensor that is the same in all rounds, and of weights and biases that are.  Counters
 * begin at numbers, and end the loop after as many rounds as %x has rows.  Where %x is reversed,
 * the operator goes backwards, and its list is reversed.  Of the operator only the form is made
 * here; where a loop is anything else, it stays as it is.  The pass comes first of all, since what
 * the operator is made of is simplified like that of a model which had it.  Sums are rounded in
 * another order.  Cost: a walk of each loop, and one rewrite. */
#include "passes/graph/recurrent.h"
#include "passes/graph/simplify.h"

#include <string.h>

enum { MAX_NESTING = 8 }; /* of operators that make a weight */

typedef enum {
    ROLE_OTHER, /* not known (yet) */
    ROLE_GO,    /* whether there is another round */
    ROLE_SAME,
    ROLE_COUNTER,
    ROLE_STATE,
    ROLE_CELL,
    ROLE_LIST,
    ROLE_LAST,     /* the last state, */
    ROLE_LAST_CELL /* ... cell, which rounds do not read */
} Role;

typedef struct {
    const char *name;
    const Expr *f;
    LoopForm    form;
    Cell        cell;
    Role       *role;  /* of each parameter */
    uint32_t    state; /* the number of its parameter, */
    uint32_t    c;     /* ... of an LSTM's cell, */
    uint32_t    x;     /* of all steps' inputs, */
    bool       *tells; /* of each counter: it is the step, so it begins at 0 */
    int64_t     in;    /* columns of a step's input */
} Loop;

/* ---- the loop ----------------------------------------------------------------------------------- */

static bool is_param(const Loop *l, const Expr *e, uint32_t *at)
{
    for (uint32_t i = 0; i < func_nparams(l->f); i++)
        if (e == func_param(l->f, i)) {
            *at = i;
            return true;
        }
    return false;
}

/* One more than a parameter, which is counted up. */
static bool is_count(const Loop *l, const Expr *e, uint32_t *at)
{
    double one;

    for (uint32_t i = 0; call_is(e, "add") && i < 2; i++)
        if (expr_const_f(call_arg(e, i), &one) && one == 1 && is_param(l, call_arg(e, 1 - i), at))
            return !is_float(e) && call_arg(l->form.again, *at) == e;
    return false;
}

static const Expr *without_casts(const Expr *e)
{
    while (call_is(e, "cast") || is_view(e))
        e = call_arg(e, 0);
    return e;
}

/* The step: a counter, perhaps as another integer. */
static bool is_step(const Loop *l, const Expr *e)
{
    uint32_t at;

    e = without_casts(e);
    if (!is_param(l, e, &at) || l->role[at] != ROLE_COUNTER)
        return false;
    l->tells[at] = true;
    return true;
}

static bool is_first(const Expr *e)
{
    double v;

    return expr_const_f(without_casts(e), &v) && v == 0;
}

/* Constants, parameters that are the same in all rounds, and what is made of such, nested at most a
 * few deep. */
static bool is_same(const Loop *l, const Expr *e, int depth)
{
    uint32_t at;

    if (e->kind == EXPR_CONST || is_param(l, e, &at))
        return e->kind == EXPR_CONST || l->role[at] == ROLE_SAME;
    if (depth == 0 || (!call_op(e) && e->kind != EXPR_PROJ && e->kind != EXPR_TUPLE))
        return false;
    for (uint32_t i = call_op(e) ? 1 : 0; i < e->nkids; i++)
        if (!is_same(l, e->kids[i], depth - 1))
            return false;
    return true;
}

/* Row `step` of what is the same in all rounds: the input of a step. */
static bool is_input(Loop *l, const Expr *e)
{
    const TakeAttrs *a;
    uint32_t         at;

    e = without_views(e);
    if (!call_is(e, "take") || !is_param(l, call_arg(e, 0), &at) || l->role[at] != ROLE_SAME)
        return false;
    a = ATTRS_OF(TakeAttrs, e);
    if (a->batch_dims || axis_from_front(a->axis, call_arg(e, 0)->type->n) != 0 ||
        !is_step(l, call_arg(e, 1)))
        return false;
    if (l->x == UINT32_MAX)
        l->x = at;
    return l->x == at;
}

static bool is_state(const Loop *l, const Expr *e)
{
    return without_views(e) == func_param(l->f, l->state);
}

/* Weights, or a bias for all rows, of the state's type. */
static bool weights_fit(const Loop *l, const Term *t)
{
    const Type *w = t->w->type;
    int64_t     cells, width;

    if (!is_same(l, t->w, MAX_NESTING) ||
        !dtype_eq(w->dtype, func_param(l->f, l->state)->type->dtype))
        return false;
    return t->x
               ? dtype_eq(t->x->type->dtype, w->dtype)
               : type_elems(w, &cells) && idx_is_const(w->dims[w->n - 1], &width) && cells == width;
}

/* A sum is one product of the input, one of the state where it may be, and biases. */
static bool sum_fits(Loop *l, const Sum *s, bool input, bool state)
{
    uint32_t inputs = 0, states = 0;

    for (uint32_t i = 0; i < s->n; i++) {
        const Term *t = &s->at[i];

        if (!weights_fit(l, t))
            return false;
        if (!t->x)
            continue;
        if (is_state(l, t->x) && t->nrow == l->cell.units)
            states++;
        else if (is_input(l, t->x) && (!l->in || l->in == t->nrow)) {
            l->in = t->nrow;
            inputs++;
        } else
            return false;
    }
    return inputs == input && states == state;
}

static bool cell_fits(Loop *l)
{
    const Cell *k = &l->cell;

    if (k->h0 && !is_state(l, k->h0))
        return false;
    for (uint32_t i = 0; i < k->gates; i++)
        if (!sum_fits(l, &k->gate[i], true, k->kind != CELL_GRU_LINEAR || i != 2))
            return false;
    return k->kind != CELL_GRU_LINEAR || sum_fits(l, &k->inner, false, true);
}

/* A state of the loop: what every round makes, and what it reads instead, is of the same cells. */
static bool find_cell(Loop *l)
{
    uint32_t n = func_nparams(l->f);

    for (uint32_t i = 0; i < n; i++) {
        const Expr *e = without_views(call_arg(l->form.again, i));
        uint32_t    c = UINT32_MAX;

        if (l->role[i] != ROLE_OTHER || !recurrent_cell(e, &l->cell))
            continue;
        l->state = i;
        l->x = UINT32_MAX;
        memset(l->tells, 0, n * sizeof *l->tells);
        l->in = 0;
        if (l->cell.kind == CELL_LSTM && (!is_param(l, without_views(l->cell.c0), &c) ||
                                          without_views(call_arg(l->form.again, c)) != l->cell.c1))
            continue;
        if (!cell_fits(l))
            continue;
        l->c = c;
        return true;
    }
    return false;
}

/* What each round makes of parameter i. */
static bool find_role(Loop *l, uint32_t i)
{
    const Expr *e = call_arg(l->form.again, i), *made = call_arg(l->form.again, l->state);

    if (l->role[i] != ROLE_OTHER)
        return true;
    made = without_views(made);
    if (i == l->state || i == l->c)
        l->role[i] = i == l->c ? ROLE_CELL : ROLE_STATE;
    else if (without_views(e) == made)
        l->role[i] = ROLE_LAST;
    else if (l->c != UINT32_MAX && without_views(e) == l->cell.c1)
        l->role[i] = ROLE_LAST_CELL;
    else if (call_is(e, "update_slice") && call_arg(e, 0) == func_param(l->f, i) &&
             without_views(call_arg(e, 1)) == made) {
        int64_t rows;

        if (is_step(l, call_arg(e, 2)))
            l->role[i] = ROLE_LIST;
        else if (is_first(call_arg(e, 2)) && idx_is_const(e->type->dims[0], &rows) && rows == 1)
            l->role[i] = ROLE_LAST;
    }
    return l->role[i] != ROLE_OTHER;
}

static bool read_loop(Ctx *c, const Expr *f, const char *name, Loop *l)
{
    uint32_t n = func_nparams(f), at;

    *l = (Loop){.f = f, .name = intern(c->strings, name)};
    if (!is_loop(c, f, name, &l->form) || l->form.until)
        return false;
    l->role = NEW_ARRAY(c->scratch, Role, n + 1);
    l->tells = NEW_ARRAY(c->scratch, bool, n + 1);
    for (uint32_t i = 0; i < n; i++)
        l->role[i] = passes_on(f, &l->form, i)                      ? ROLE_SAME
                     : is_count(l, call_arg(l->form.again, i), &at) ? ROLE_COUNTER
                     : l->form.cond == func_param(f, i)             ? ROLE_GO
                                                                    : ROLE_OTHER;
    if (!find_cell(l))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!find_role(l, i))
            return false;
    return true;
}

/* ---- the operator ------------------------------------------------------------------------------- */

typedef struct {
    Ctx        *c;
    const Loop *l;
    Loc         loc;
    const Type *like; /* of the state */
} Make;

static const Expr *sliced(const Make *k, const Expr *x, int64_t axis, int64_t from, int64_t n)
{
    int64_t all;

    if (x && idx_is_const(x->type->dims[axis], &all) && all == n)
        return x;
    return make_slice(k->c, x, axis, from, from + n, k->loc);
}

/* The part of a matrix that a term multiplies with, as [units, rows]. */
static const Expr *matrix_of(const Make *k, const Term *t)
{
    const Expr     *w = sliced(k, t->w, t->transposed ? 0 : 1, t->from, k->l->cell.units);
    TransposeAttrs *a = ATTRS_NEW(k->c, TransposeAttrs);

    w = w ? sliced(k, w, t->transposed ? 1 : 0, t->row, t->nrow) : NULL;
    a->axes = ints_of(k->c, 2, 1, 0);
    return t->transposed ? w : make1(k->c, "transpose", w, a, k->loc);
}

static const Expr *side_by_side(const Make *k, uint32_t n, const Expr *const *parts)
{
    for (uint32_t i = 0; i < n; i++)
        if (!parts[i])
            return NULL;
    return make1(k->c, "concatenate", expr_tuple(k->c, n, parts, k->loc), NULL, k->loc);
}

/* The matrices of all gates, of the input or of the state, as [1, gates * units, ..]. */
static const Expr *matrices_of(const Make *k, bool state)
{
    const Cell *cell = &k->l->cell;
    const Expr *part[MAX_GATES] = {0}, *w;

    for (uint32_t i = 0; i < cell->gates; i++) {
        const Sum *s =
            state && cell->kind == CELL_GRU_LINEAR && i == 2 ? &cell->inner : &cell->gate[i];

        for (uint32_t n = 0; n < s->n; n++)
            if (s->at[n].x && is_state(k->l, s->at[n].x) == state)
                part[i] = matrix_of(k, &s->at[n]);
    }
    w = side_by_side(k, cell->gates, part);
    return w ? make_reshape(
                   k->c, w, 3,
                   (int64_t[]){1, cell->gates * cell->units, state ? cell->units : k->l->in},
                   k->loc)
             : NULL;
}

/* The biases of a sum, [units]. */
static const Expr *bias_of(const Make *k, const Sum *s)
{
    int64_t     units = k->l->cell.units;
    const Type *t = type_tensor_i64(k->c, k->like->dtype, 1, &units);
    uint64_t    bytes = (uint64_t)units * dtype_bytes(t->dtype);
    const Expr *b = NULL;

    for (uint32_t i = 0; s && i < s->n; i++) {
        const Expr *v = s->at[i].w;
        int64_t     cells;

        if (s->at[i].x)
            continue;
        if (!type_elems(v->type, &cells) || !(v = make_reshape(k->c, v, 1, &cells, k->loc)) ||
            !(v = sliced(k, v, 0, s->at[i].from, units)))
            return NULL;
        b = b ? make2(k->c, "add", b, v, NULL, k->loc) : v;
    }
    return b ? b
             : expr_const(
                   k->c,
                   const_new(k->c, NULL, t, (Bytes){NEW_ARRAY(k->c->arena, uint8_t, bytes), bytes}),
                   k->loc);
}

/* Those of the input, which are all but a GRU's behind r, then those of the state. */
static const Expr *biases(const Make *k)
{
    const Cell *cell = &k->l->cell;
    const Expr *part[2 * MAX_GATES] = {0}, *b;
    uint32_t    n = cell->gates;

    for (uint32_t i = 0; i < n; i++) {
        part[i] = bias_of(k, &cell->gate[i]);
        part[n + i] = bias_of(k, cell->kind == CELL_GRU_LINEAR && i == 2 ? &cell->inner : NULL);
    }
    b = side_by_side(k, 2 * n, part);
    return b ? make_reshape(k->c, b, 2, (int64_t[]){1, 2 * n * cell->units}, k->loc) : NULL;
}

static const Expr *operator_of(const Make *k, int64_t steps)
{
    const Loop *l = k->l;
    const Cell *cell = &l->cell;
    Ctx        *c = k->c;
    int64_t     state[3] = {1, cell->rows, cell->units}, x[3] = {steps, cell->rows, l->in};
    const Expr *h = func_param(l->f, l->state), *args[6];
    bool        lstm = cell->kind == CELL_LSTM;
    uint32_t    n = lstm ? 6 : 5;

    args[0] = make_reshape(c, func_param(l->f, l->x), 3, x, k->loc);
    args[1] = matrices_of(k, false);
    args[2] = matrices_of(k, true);
    args[3] = biases(k);
    args[4] = make_reshape(c, h, 3, state, k->loc);
    args[5] = lstm ? make_reshape(c, func_param(l->f, l->c), 3, state, k->loc) : NULL;
    for (uint32_t i = 0; i < n; i++)
        if (!args[i])
            return NULL;
    if (lstm) {
        LstmAttrs *a = ATTRS_NEW(c, LstmAttrs);

        a->hidden_size = cell->units;
        return expr_call_name(c, "nn.lstm", n, args, a, k->loc);
    }
    if (cell->kind == CELL_RNN) {
        RnnAttrs *a = ATTRS_NEW(c, RnnAttrs);

        a->hidden_size = cell->units;
        a->f = cell->f;
        return expr_call_name(c, "nn.rnn", n, args, a, k->loc);
    }
    GruAttrs *a = ATTRS_NEW(c, GruAttrs);

    a->hidden_size = cell->units;
    a->linear_before_reset = cell->kind == CELL_GRU_LINEAR;
    return expr_call_name(c, "nn.gru", n, args, a, k->loc);
}

/* ---- the rewrite -------------------------------------------------------------------------------- */

/* Do the tensors that a call brings have a row a round, and do lists begin at the first? */
static bool call_fits(Ctx *c, const Loop *l, const Expr *call, int64_t steps)
{
    for (uint32_t i = 0; i < func_nparams(l->f); i++) {
        const Type *t = func_param(l->f, i)->type;
        int64_t     rows, from;

        if (l->tells[i] && (!expr_number(c, call_arg(call, i), &from) || from))
            return false;
        if ((i == l->x || l->role[i] == ROLE_LIST) &&
            (!t || t->kind != TYPE_TENSOR || !t->n || !idx_is_const(t->dims[0], &rows) ||
             rows != steps))
            return false;
    }
    return true;
}

/* What parameter i is in the end. */
static const Expr *final_of(const Make *k, uint32_t i, const Expr *call, const Expr *const *op,
                            int64_t steps)
{
    Ctx        *c = k->c;
    const Type *t = func_param(k->l->f, i)->type;
    int64_t     from = 0;

    switch (k->l->role[i]) {
    case ROLE_OTHER: return NULL;
    case ROLE_GO: return expr_scalar(c, t->dtype, 0);
    case ROLE_SAME: return call_arg(call, i);
    case ROLE_COUNTER:
        return expr_number(c, call_arg(call, i), &from) && checked_add(from, steps, &from)
                   ? expr_scalar(c, t->dtype, (double)from)
                   : NULL;
    case ROLE_LIST: return make_reshape_to(c, op[0], t->n, t->dims, k->loc);
    case ROLE_STATE:
    case ROLE_LAST: return make_reshape_to(c, op[1], t->n, t->dims, k->loc);
    case ROLE_CELL:
    case ROLE_LAST_CELL: return make_reshape_to(c, op[2], t->n, t->dims, k->loc);
    }
    return NULL;
}

typedef struct {
    uint32_t n;
    Loop    *at;
} Loops;

/* What a layer gives.  Where its steps are reversed, it goes the other way over them, and its list
 * is reversed. */
static const Expr *over_reversed(Ctx *c, const Expr *op, const Expr *out[3])
{
    const Expr *args[8], *x, *y;
    bool        lstm = call_is(op, "nn.lstm"), gru = call_is(op, "nn.gru"), odd = false;
    const char *way = lstm  ? ATTRS_OF(LstmAttrs, op)->direction
                      : gru ? ATTRS_OF(GruAttrs, op)->direction
                            : ATTRS_OF(RnnAttrs, op)->direction;
    uint32_t    n = call_nargs(op), results = op->type->n;

    memcpy(args, op->kids + 1, n * sizeof *args);
    for (; strcmp(way, "bidirectional") && (x = unreversed(c, args[0], 0)); args[0] = x)
        odd = !odd;
    if (args[0] != call_arg(op, 0)) {
        LstmAttrs *l = lstm ? ATTRS_COPY(c, LstmAttrs, op) : NULL;
        GruAttrs  *g = gru ? ATTRS_COPY(c, GruAttrs, op) : NULL;
        RnnAttrs  *r = lstm || gru ? NULL : ATTRS_COPY(c, RnnAttrs, op);

        way = odd == !strcmp(way, "forward") ? "reverse" : "forward";
        *(lstm ? &l->direction : gru ? &g->direction : &r->direction) = way;
        op = expr_call(c, call_op(op), n, args, lstm ? (void *)l : gru ? (void *)g : r, op->loc);
    }
    for (uint32_t i = 0; op && i < results; i++)
        out[i] = expr_proj(c, op, i, op->loc);
    y = op && odd ? make1(c, "reverse", out[0], ATTRS_NEW(c, ReverseAttrs), op->loc) : NULL;
    out[0] = odd ? y : out[0];
    return op && out[0] ? op : NULL;
}

static const Expr *replaced(Ctx *c, const Loop *l, const Expr *call)
{
    uint32_t     n = func_nparams(l->f);
    const Expr **final = NEW_ARRAY(c->scratch, const Expr *, n + 1), *op, *out[3];
    Make         k = {c, l, call->loc, func_param(l->f, l->state)->type};
    int64_t      steps = loop_rounds(c, l->f, &l->form, call);

    if (!steps || !call_fits(c, l, call, steps))
        return call;
    if (!(op = operator_of(&k, steps)) || !(op = expr_bind(c, op, n, l->f->kids, call->kids + 1)) ||
        !over_reversed(c, op, out))
        return NULL;
    for (uint32_t i = 0; i < n; i++)
        if (!(final[i] = final_of(&k, i, call, out, steps)))
            return NULL;
    return expr_bind(c, l->form.end, n, l->f->kids, final);
}

static const Expr *replace(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    const Loops *all = user;

    if (now != was && now->kind == EXPR_PROJ && now->kids[0]->kind == EXPR_TUPLE)
        return now->kids[0]->kids[now->u.index]; /* what a loop was used for */
    for (uint32_t i = 0; was->kind == EXPR_CALL && was->kids[0]->kind == EXPR_GLOBAL && i < all->n;
         i++)
        if (all->at[i].name == was->kids[0]->u.name)
            return was == all->at[i].form.again ? now : replaced(c, &all->at[i], now);
    if ((call_is(now, "nn.lstm") || call_is(now, "nn.gru") || call_is(now, "nn.rnn")) &&
        unreversed(c, call_arg(now, 0), 0)) {
        const Expr *out[3], *op = over_reversed(c, now, out);

        return op ? expr_tuple(c, op->type->n, out, op->loc) : NULL;
    }
    return now;
}

const Module *recurrent_loop(Ctx *c, const Module *m)
{
    Loops loops = {0, NEW_ARRAY(c->scratch, Loop, m->nfuncs + 1)};

    for (uint32_t i = 0; i < m->nfuncs; i++)
        if (read_loop(c, m->funcs[i].func, m->funcs[i].name, &loops.at[loops.n]))
            loops.n++;
    return module_rewrite(c, m, replace, &loops);
}
