/* A loop as a function that calls itself at its end (docs/design/flow.md).
 *
 *     fn @loop0(%go, %i, %s, %x) { if %go { ..  @loop0(%go1, %i + 1, %s1, %x) } else { (%s,) } }
 *
 * A body is converted once, with variables for what changes from round to round.  What it uses and
 * does not depend on them belongs to the code around it (frontends/lift.c).  A state whose sizes
 * change from round to round is carried with the room of the largest, and its sizes (packed.c). */
#include "frontends/onnx/onnx.h"

#include <string.h>

/* Does e bind such a dimension, or is it made with one? */
static bool mentions(const Expr *e, const Map *dims)
{
    OnnxMention m = {dims, false};

    if (e->type)
        type_mentions(e->type, onnx_note_mention, &m);
    if (e->kind == EXPR_CALL && call_op(e) && e->u.attrs)
        attrs_mentions(call_op(e)->attrs, e->u.attrs, onnx_note_mention, &m);
    return m.found;
}

/* The round's result with parameters for what it uses from outside.  What mentions a dimension that
 * it binds is none of that; a node from before the loop is, whatever is bound within it.  since:
 * the id of the first node that the loop made. */
static const Expr *lift(Node *n, BuildLift *l, const Expr *round, uint32_t since, uint32_t nvars,
                        const Expr *const *vars)
{
    Ctx     *c = n->b.c;
    ExprList list = expr_post_order(c, round);
    Map     *dims = map_new(c->scratch);

    for (uint32_t i = 0; i < list.n; i++)
        if (list.at[i]->id >= since)
            onnx_note_bound(dims, list.at[i]);
    build_lift_begin(&n->b, l, nvars, vars);
    for (uint32_t i = 0; i < list.n; i++) {
        if (list.at[i]->id < since)
            continue;
        if (mentions(list.at[i], dims) || list.at[i]->kind == EXPR_LET)
            map_put(l->inside, PTR_KEY(list.at[i]), l->inside);
        for (uint32_t k = 0; list.at[i]->kind == EXPR_LET && k < 2; k++) /* with variable, value */
            map_put(l->inside, PTR_KEY(list.at[i]->kids[k]), l->inside);
    }
    return build_lift(&n->b, l, round);
}

/* ---- the function ------------------------------------------------------------------------------- */

/* Variables of a function that is a loop, with their values in the first round, and, made of them,
 * in the next one.  Rounds are run while the first of them holds. */
typedef struct {
    VEC(const Expr *) var, first, next;
    OnnxBinds  binds; /* that values of a round decide */
    const Map *dims;  /* of those: their names */
    uint32_t   since; /* the id of the first node of the loop */
} Rounds;

static void carry(Ctx *c, Rounds *r, const Expr *var, const Expr *first, const Expr *next)
{
    vec_push(c->arena, &r->var, var);
    vec_push(c->arena, &r->first, first);
    vec_push(c->arena, &r->next, next);
}

/* Its call; gives the last values of all variables but the first, as a tuple. */
static const Expr *call_rounds(Node *n, Rounds *r)
{
    Ctx         *c = n->b.c;
    Loc          loc = n->b.loc;
    BuildLift    l;
    const char  *name = intern_printf(c->strings, "loop%u", n->im->loops++);
    uint32_t     nvars = r->var.n, all;
    const Expr  *round = expr_tuple(c, nvars, r->next.at, loc), *end, *again, *body, *func, *self;
    const Expr **args;
    const Type **types;

    if (!round || !(round = onnx_binds_around(n->im, &r->binds, round)) ||
        !(round = lift(n, &l, round, r->since, nvars, r->var.at)) ||
        !(end = expr_tuple(c, nvars - 1, r->var.at + 1, loc)))
        return NULL;
    all = nvars + l.params.n;
    args = NEW_ARRAY(c->arena, const Expr *, all);
    types = NEW_ARRAY(c->arena, const Type *, all);
    for (uint32_t i = 0; i < all; i++) {
        args[i] = i >= nvars                  ? l.params.at[i - nvars]
                  : round->kind == EXPR_TUPLE ? round->kids[i]
                                              : build_proj(&n->b, round, i);
        types[i] = i < nvars ? r->var.at[i]->type : args[i]->type;
    }
    self = expr_global(c, name, type_func(c, all, types, end->type), loc);
    if (!(again = expr_apply(c, self, all, args, loc)) ||
        !(body = expr_if(c, r->var.at[0], again, end, loc)))
        return NULL;
    for (uint32_t i = 0; i < nvars; i++)
        args[i] = r->var.at[i];
    if (!(func = expr_func(c, all, args, body, (FuncData){.ret = end->type}, loc)))
        return NULL;
    vec_push(c->arena, &n->im->functions, ((GlobalDef){name, func}));
    for (uint32_t i = 0; i < all; i++)
        if (!(args[i] = i < nvars ? r->first.at[i] : l.args.at[i - nvars]))
            return NULL;
    return expr_apply(c, self, all, args, loc);
}

/* ---- its round ---------------------------------------------------------------------------------- */

static const Expr *i64(const Build *b, int64_t v)
{
    return build_const(b, DT_I64, 0, NULL, &v);
}

static const Expr *folded(const Build *b, const Expr *e)
{
    const Expr *k = e ? build_fold(b, e) : NULL;

    return k ? k : e;
}

static const Expr *both(const Build *b, const Expr *x, const Expr *y)
{
    return !x ? y : !y ? x : folded(b, build2(b, "logical_and", x, y, NULL));
}

/* A constant that is not 0? */
static bool is_true(const Expr *e)
{
    double v;

    return e && expr_const_f(e, &v) && v != 0;
}

static const Expr *scalar(const Build *b, const Expr *x)
{
    return x && expr_rank(x) ? folded(b, build_reshape(b, x, 0, NULL)) : x;
}

static bool uses(Ctx *c, uint32_t n, const Expr *const *e, const Expr *var)
{
    for (uint32_t k = 0; k < n; k++) {
        ExprList list = expr_post_order(c, e[k]);

        for (uint32_t i = 0; i < list.n; i++)
            if (list.at[i] == var)
                return true;
    }
    return false;
}

/* The position of round i along something that is read or written from its end. */
static const Expr *position(const Build *b, const OnnxLoop *l, const Expr *i, bool reverse)
{
    if (!reverse)
        return i;
    return build2(b, "subtract", build2(b, "subtract", l->limit, i64(b, 1), NULL), i, NULL);
}

/* The states of a loop: how each is carried, and the variables and first values of all. */
typedef struct {
    OnnxPack   **pack;
    const Expr **begins; /* what each is before the first round; the loop's `first` */
    OnnxParts    var, first;
    uint32_t     widened; /* so often */
} States;

static const char *state_name(const OnnxLoop *l, uint32_t k)
{
    uint32_t         at = k + (l->scan ? 0 : 2);
    const OnnxValue *v = at < l->g->input.n ? l->g->input.at[at] : NULL;

    return v && v->name && *v->name ? v->name : "state";
}

/* The operands of the body: a variable for each tensor of a state. */
static bool bind_body(Node *n, const OnnxLoop *l, const Expr *i, States *s, const Expr **in)
{
    const Build *b = &n->b;
    uint8_t      yes = 1;
    uint32_t     at = 0;

    s->var.n = s->first.n = 0;
    if (!l->scan) {
        in[at++] = i;
        in[at++] = build_const(b, DT_BOOL, 0, NULL, &yes);
    }
    for (uint32_t k = 0; k < l->states; k++, at++) {
        const Expr *const *parts;
        uint32_t           from = s->first.n;

        pack_value(n->im, b, s->pack[k], l->first[k], &s->first);
        for (uint32_t j = from; j < s->first.n; j++) {
            if (!s->first.at[j])
                return false;
            vec_push(b->c->arena, &s->var,
                     expr_var(b->c, state_name(l, k), s->first.at[j]->type, b->loc));
        }
        parts = from < s->var.n ? s->var.at + from : NULL; /* an empty sequence has none */
        if (!(in[at] = pack_back(n, s->pack[k], &parts, k)))
            return false;
        list_fix(n->im, in[at]);
    }
    for (uint32_t k = 0; k < l->slices; k++, at++)
        if (!(in[at] = build_take(b, l->x[k], position(b, l, i, l->x_reverse[k]), l->x_axis[k])))
            return false;
    return true;
}

#define DEFAULT_ELEMENTS 64 /* of a sequence that a loop of unknown length makes */
#define MAX_ELEMENTS (1 << 20)

/* A list that rounds make longer has room for all of them. */
static bool leave_room(Node *n, const OnnxLoop *l, uint32_t k, const OnnxPack *had, OnnxPack *now)
{
    int64_t before, more, lo, hi, trips;

    had = had->kind == PACK_OPTIONAL ? had->of : had;
    now = now->kind == PACK_OPTIONAL ? now->of : now;
    if (!had || !now || now->kind != PACK_LIST)
        return true;
    before = had->kind == PACK_LIST ? had->most : had->n;
    if ((more = now->most - before) <= 0)
        return true;
    trips = l->trips ? l->trips->hi : INT64_MAX;
    if (k < n->nout && shapes_given(n->im->shapes, n->p->output.at[k], &lo, &hi)) {
        now->most = hi;
    } else if (trips == INT64_MAX) {
        now->most = before + DEFAULT_ELEMENTS;
        diag_warn(n->b.c->diags, W_DIM_BOUND, n->b.loc,
                  "Loop '%s': the run decides how many elements state '%s' has: at most %lld are "
                  "taken",
                  onnx_node_name(n->p), state_name(l, k), (long long)now->most);
        if (k < n->nout)
            diag_hint(n->b.c->diags, "--dim %s=0..%lld says how many it may have",
                      n->p->output.at[k], (long long)now->most);
    } else if (!checked_mul(more, trips, &more) || !checked_add(before, more, &now->most)) {
        now->most = INT64_MAX;
    }
    return (now->most > 0 && now->most <= MAX_ELEMENTS) ||
           node_error(n, E_DIM, "state '%s' may have %lld elements", state_name(l, k),
                      (long long)now->most);
}

#define MAX_WIDENINGS 4

/* A tensor that rounds still make larger has room for all of them, too. */
static bool leave_cells(Node *n, const OnnxLoop *l, uint32_t k, const OnnxPack *had, OnnxPack *now)
{
    for (uint32_t i = 0; now->kind == PACK_TENSOR && i < now->n; i++) {
        int64_t     most = now->room[i]->hi, more = most - had->room[i]->hi, lo, all;
        const char *out = k < n->nout ? n->p->output.at[k] : "";

        if (!now->open[i] || more <= 0)
            continue;
        if (shapes_given(n->im->shapes, arena_printf(n->b.c->arena, "%s.%u", out, i), &lo, &all)) {
            most = all > most ? all : most;
            more = MAX_ELEMS; /* however it grows */
        } else if (!l->trips || !checked_mul(more, l->trips->hi, &all) ||
                   !checked_add(most, all, &most)) {
            return true; /* widened once more */
        }
        if (most > MAX_ELEMS)
            return node_error(n, E_DIM, "state '%s' is too large", state_name(l, k));
        now->grows[i] = more;
        now->room[i] = idx_const(n->b.c->arith, most);
    }
    return true;
}

/* What a body takes and gives, and the dimensions that it binds. */
typedef struct {
    const Expr *const *in, *const *made;
    const Map *dims;
} Body;

/* A state that begins as something else than what rounds make of it, as PaddlePaddle's exporter has
 * them: a number of another rank gets that rank; what no round reads may be anything. */
static bool begin_alike(Node *n, const OnnxLoop *l, const Body *body, States *s, uint32_t k)
{
    const Build   *b = &n->b;
    const uint32_t nmade = l->states + l->pieces + !l->scan;
    const Expr    *first = s->begins[k], *out = body->made[k + !l->scan];
    const Expr    *var = body->in[k + (l->scan ? 0 : 2)];

    if (!expr_has_shape(first) || !expr_has_shape(out) || mentions(out, body->dims))
        return false;
    if (expr_single(first) && expr_single(out) && dtype_eq(expr_dtype(first), expr_dtype(out)))
        s->begins[k] = build_reshape_to(b, first, out->type->n, out->type->dims);
    else if (var->kind == EXPR_VAR && !uses(b->c, nmade, body->made, var))
        s->begins[k] = build_zeros_of(b, expr_dtype(out), out->type->n, out->type->dims);
    else
        return false;
    s->pack[k] = pack_of(n->im, s->begins[k], body->dims);
    return true;
}

/* What holds the states before and after a round; *same if nothing had to be widened. */
static bool widen_states(Node *n, const OnnxLoop *l, const Body *body, States *s, bool *same)
{
    const Build       *b = &n->b;
    const Expr *const *out = body->made + !l->scan;

    *same = true;
    for (uint32_t k = 0; k < l->states; k++) {
        OnnxPack *had = s->pack[k], *now = pack_join(b->c, had, pack_of(n->im, out[k], body->dims));

        if (now && pack_same(had, now))
            continue;
        if (!now && s->widened < MAX_WIDENINGS && begin_alike(n, l, body, s, k)) {
            *same = false;
            continue;
        }
        if (!now || s->widened == MAX_WIDENINGS) {
            node_error(n, E_UNSUPPORTED, "state '%s' has another type after a round",
                       state_name(l, k));
            diag_note(b->c->diags, b->loc, "%s before it, %s after it",
                      type_text(b->c, l->first[k]->type), type_text(b->c, out[k]->type));
            if (now && now->kind == PACK_TENSOR && k < n->nout)
                diag_hint(b->c->diags, "say how large it may become: --dim %s.0=0..64",
                          n->p->output.at[k]);
            return false;
        }
        if (!leave_room(n, l, k, had, now) || (s->widened && !leave_cells(n, l, k, had, now)))
            return false;
        s->pack[k] = now;
        *same = false;
    }
    s->widened++;
    return true;
}

/* The pieces of a scan output are of one size: where values of a round decide it, of the one that
 * the body declares, or the run ends. */
static bool size_pieces(Node *n, const OnnxLoop *l, const Map *dims, const Expr **made)
{
    for (uint32_t k = l->states + !l->scan; k < l->states + !l->scan + l->pieces; k++) {
        const OnnxValue *v = l->g->output.at[k];
        const OnnxShape *shape = v->type && v->type->tensor ? v->type->tensor->shape : NULL;
        const Idx       *want[MAX_RANK] = {NULL};

        if (!expr_has_shape(made[k]) || !mentions(made[k], dims) || !shape ||
            shape->dims.n != expr_rank(made[k]))
            continue;
        for (uint32_t i = 0; i < shape->dims.n; i++) {
            const OnnxDim *d = shape->dims.at[i];
            OnnxMention    m = {dims, false};

            form_mentions(expr_form(made[k], i), onnx_note_mention, &m);
            if (m.found && d->has_value && d->value >= 0)
                want[i] = idx_const(n->b.c->arith, d->value);
        }
        if (!(made[k] = node_sized(n, made[k], want)))
            return false;
    }
    return true;
}

/* The body's results, with states that are carried as each round leaves them.  Sizes that grow
 * without a bound are refused. */
static bool convert_body(Node *n, const OnnxLoop *l, const Expr *i, States *s, uint32_t nin,
                         const Expr **in, const Expr **made, Rounds *r)
{
    Import  *im = n->im;
    Map     *none = map_new(n->b.c->scratch);
    uint32_t bound = im->binds.n, functions = im->functions.n;
    bool     same = false;

    s->pack = NEW_ARRAY(n->b.c->arena, OnnxPack *, l->states + 1);
    for (uint32_t k = 0; k < l->states; k++)
        s->pack[k] = pack_of(im, l->first[k], none);
    while (!same) {
        im->binds.n = bound;
        im->functions.n = functions;
        if (!bind_body(n, l, i, s, in) || !onnx_subgraph(n, l->g, nin, in, made))
            return false;
        r->dims = onnx_bound_since(im, bound);
        if (!widen_states(n, l, &(Body){in, made, r->dims}, s, &same))
            return false;
    }
    return size_pieces(n, l, r->dims, made);
}

static bool carry_states(Node *n, const OnnxLoop *l, Rounds *r, const States *s,
                         const Expr *const *out)
{
    OnnxParts next = {0};

    for (uint32_t k = 0; k < l->states; k++)
        pack_value(n->im, &n->b, s->pack[k], out[k], &next);
    for (uint32_t k = 0; k < next.n; k++) {
        if (!next.at[k])
            return false;
        carry(n->b.c, r, s->var.at[k], s->first.at[k], next.at[k]);
    }
    return true;
}

/* All pieces x as one tensor, which gets one at position `at` of its first dimension each round; if
 * values of a round decide their size, with that of the last one behind it. */
static bool carry_piece(Node *n, Rounds *r, const Expr *x, const Idx *count, const Expr *at,
                        const OnnxPack **pack)
{
    const Build *b = &n->b;
    const Expr  *var, *next, *args[3] = {NULL, NULL, at};
    const Idx   *dims[MAX_RANK + 1] = {count};
    OnnxPack    *p;
    int64_t      rank;

    if (x->type->kind != TYPE_TENSOR || x->type->n >= MAX_RANK)
        return node_error(n, E_UNSUPPORTED, "a piece of a scan output is %s",
                          type_text(b->c, x->type));
    *pack = p = pack_of(n->im, x, r->dims ? r->dims : map_new(b->c->scratch));
    for (uint32_t d = 0; d < p->n; d++)
        dims[d + 1] = p->room[d];
    var = expr_var(b->c, "scan", type_tensor(b->c, p->dtype, p->n + 1, dims), b->loc);
    args[0] = var;
    args[1] = pack_padded(b, p, x);
    next = at ? build_call(b, "update_slice", 3, args, NULL) : NULL;
    if (!next)
        return false;
    carry(b->c, r, var, build_zeros_of(b, p->dtype, p->n + 1, dims), next);
    if (pack_open(p)) {
        rank = p->n;
        var = expr_var(b->c, "sizes", type_tensor_i64(b->c, DT_I64, 1, &rank), b->loc);
        carry(b->c, r, var, build_i64s(b, p->n, p->least), pack_sizes(b, x));
    }
    return true;
}

static bool carry_pieces(Node *n, const OnnxLoop *l, Rounds *r, const Expr *i,
                         const Expr *const *piece, const OnnxPack **packs)
{
    for (uint32_t k = 0; k < l->pieces; k++) {
        if (!l->trips) {
            node_error(n, E_UNSUPPORTED, "scan output %u has as many pieces as a run decides", k);
            diag_hint(n->b.c->diags, "a loop has a known number of rounds if its condition stays "
                                     "true");
            return false;
        }
        if (!carry_piece(n, r, piece[k], l->trips,
                         position(&n->b, l, i, l->scan && l->piece_reverse[k]), &packs[k]))
            return false;
    }
    return true;
}

/* The first dimension as dimension `axis`. */
static const Expr *move_first(Node *n, const Expr *x, int64_t axis)
{
    int64_t  axes[MAX_RANK];
    uint32_t to, rank = expr_rank(x);

    if (!node_axis(n, axis, rank, &to))
        return NULL;
    for (uint32_t k = 0; k < rank; k++)
        axes[k] = k < to ? k + 1 : k == to ? 0 : k;
    return to ? build_transpose(&n->b, x, rank, axes) : x;
}

/* The first one, while i is below the limit and `go` holds; NULL: always. */
static const Expr *condition(Node *n, const OnnxLoop *l, const Expr *i, const Expr *go)
{
    const Build *b = &n->b;

    return both(b, is_true(go) ? NULL : go,
                l->limit ? folded(b, build2(b, "less", i, l->limit, NULL)) : NULL);
}

/* The condition is what rounds hand on first; NULL for that of the first round: it holds. */
static void carry_condition(const Build *b, Rounds *r, const Expr *first, const Expr *next)
{
    uint8_t yes = 1;

    carry(b->c, r, expr_var(b->c, "go", type_tensor(b->c, DT_BOOL, 0, NULL), b->loc),
          first ? first : build_const(b, DT_BOOL, 0, NULL, &yes), next);
}

/* Of a loop that ends at its limit, if it runs at all, the number of rounds as a dimension. */
static bool bind_trips(Node *n, OnnxLoop *l)
{
    const Build *b = &n->b;
    int64_t      one = 1;
    uint32_t     out = l->states;
    const Expr  *count = build_reshape(b, l->limit, 1, &one);

    while (out + 1 < l->states + l->pieces && !*n->p->output.at[out])
        out++;
    count = build2(b, "maximum", count, cell_number(b, 0), NULL);
    if (l->go)
        count = build_where(b, build_reshape(b, l->go, 1, &one), count, cell_number(b, 0));
    RunDim d = {count, 0, l->trips && l->trips->hi > 0 ? l->trips : NULL, 0, 1};
    return onnx_bind(n, out, 1, &d, &l->trips);
}

/* How many rounds there are, where that is known before the first. */
static const Idx *counted(Node *n, const OnnxLoop *l, const Body *body)
{
    const Idx  *rounds = onnx_count(n, l, body->in, body->made);
    OnnxMention inner = {body->dims, false};

    if (rounds)
        form_mentions(rounds, onnx_note_mention, &inner);
    return inner.found ? NULL : rounds;
}

/* A list that rounds made longer than there is room for ends the run. */
static bool keeps(Node *n, const Expr *state)
{
    const OnnxOptional *o = onnx_optional(n->im, state);
    const OnnxList     *l = onnx_list(n->im, o && o->value ? o->value : state);

    return !l || list_keeps(n, l);
}

bool onnx_loop(Node *n, const OnnxLoop *of, const Expr **out)
{
    const Build     *b = &n->b;
    Ctx             *c = b->c;
    OnnxLoop         l = *of;
    Rounds           r = {.since = c->next_expr};
    uint32_t         takes = l.scan ? 0 : 2, gives = l.scan ? 0 : 1; /* before the states */
    uint32_t         nin = takes + l.states + l.slices, bound = n->im->binds.n;
    const Expr     **made = NEW_ARRAY(c->arena, const Expr *, l.g->output.n + 1);
    const Expr     **in = NEW_ARRAY(c->arena, const Expr *, nin + 1);
    const Expr      *i = expr_var(c, "i", type_tensor(c, DT_I64, 0, NULL), b->loc);
    const Expr      *more = build2(b, "add", i, i64(b, 1), NULL), *go, *first, *next, *all;
    const OnnxPack **pieces = NEW_ARRAY(c->arena, const OnnxPack *, l.pieces + 1);
    OnnxParts        parts = {0};
    States           s = {0};
    const Idx       *rounds;

    s.begins = NEW_ARRAY(c->arena, const Expr *, l.states + 1);
    memcpy(s.begins, l.first, l.states * sizeof *l.first);
    l.first = s.begins;
    l.go = l.go ? scalar(b, l.go) : NULL;
    if (!convert_body(n, &l, i, &s, nin, in, made, &r))
        return false;
    r.binds = onnx_binds_taken(n->im, bound);
    if (!l.scan &&
        (!expr_has_shape(made[0]) || !expr_single(made[0]) || !dtype_is_bool(expr_dtype(made[0]))))
        return node_error(n, E_IMPORT, "the condition that its body gives is %s, not one bool",
                          type_text(c, made[0]->type));
    go = l.scan ? NULL : scalar(b, made[0]);
    if (go && !is_true(go) && (rounds = counted(n, &l, &(Body){in, made, r.dims}))) {
        go = l.go = NULL;
        l.limit = build_number(b, rounds);
        l.trips = rounds;
    } else if (go && !is_true(go))
        l.trips = NULL;
    else if (!l.scan && l.limit && l.pieces && (!l.trips || (l.go && !is_true(l.go))) &&
             !bind_trips(n, &l))
        return false;
    next = condition(n, &l, more, go);
    first = condition(n, &l, i64(b, 0), l.go);
    if (!next)
        return node_error(n, E_IMPORT, "a loop without an end");
    carry_condition(b, &r, first, next);
    if (!carry_states(n, &l, &r, &s, made + gives) ||
        !carry_pieces(n, &l, &r, i, made + gives + l.states, pieces))
        return false;
    if (uses(c, r.next.n, r.next.at, i))
        carry(c, &r, i, i64(b, 0), more);
    if (!(all = call_rounds(n, &r)))
        return false;
    for (uint32_t k = 0; k + 1 < r.var.n; k++)
        vec_push(c->arena, &parts, build_proj(b, all, k));
    const Expr *const *at = parts.at;
    for (uint32_t k = 0; k < l.states; k++)
        if (!(out[k] = pack_back(n, s.pack[k], &at, k)) || !keeps(n, out[k]))
            return false;
    for (uint32_t k = 0; k < l.pieces; k++) {
        const Expr *x = *at++;

        x = pack_cut(n, pieces[k], x, 1, pack_open(pieces[k]) ? *at++ : NULL, l.states + k);
        x = x && l.scan ? move_first(n, x, l.piece_axis[k]) : x;
        if (!(out[l.states + k] = x))
            return false;
    }
    return true;
}

bool onnx_rounds(Node *n, const Idx *count, uint32_t states, const Expr *const *first,
                 uint32_t pieces, OnnxRound *fn, void *user, const Expr **out)
{
    const Build *b = &n->b;
    Ctx         *c = b->c;
    Rounds       r = {.since = c->next_expr};
    OnnxLoop     l = {.limit = build_values(b, type_tensor(c, DT_I64, 0, NULL), (Dims){1, &count})};
    const Expr  *i = expr_var(c, "n", type_tensor(c, DT_I64, 0, NULL), b->loc), *all;
    const Expr  *more = build2(b, "add", i, i64(b, 1), NULL), *begins, *next;
    const Expr **in = NEW_ARRAY(c->arena, const Expr *, states + 1);
    uint32_t     bound = n->im->binds.n;
    const OnnxPack *pack;

    for (uint32_t k = 0; k < states; k++)
        in[k] = expr_var(c, "state", first[k]->type, b->loc);
    if (!l.limit || !fn(n, user, i, in, out, out + states) ||
        !(next = condition(n, &l, more, NULL)) || !(begins = condition(n, &l, i64(b, 0), NULL)))
        return false;
    r.dims = onnx_bound_since(n->im, bound);
    r.binds = onnx_binds_taken(n->im, bound);
    carry_condition(b, &r, is_true(begins) ? NULL : begins, next);
    for (uint32_t k = 0; k < states; k++)
        carry(c, &r, in[k], first[k], out[k]);
    for (uint32_t k = 0; k < pieces; k++)
        if (!carry_piece(n, &r, out[states + k], count, i, &pack))
            return false;
    carry(c, &r, i, i64(b, 0), more);
    if (!(all = call_rounds(n, &r)))
        return false;
    for (uint32_t k = 0; k < states + pieces; k++)
        if (!(out[k] = build_proj(b, all, k)))
            return false;
    return true;
}

typedef struct {
    OnnxEach          *fn;
    void              *user;
    uint32_t           nin;
    const Expr *const *x;
} Each;

static bool element(Node *n, void *user, const Expr *i, const Expr *const *state, const Expr **next,
                    const Expr **piece)
{
    const Each  *e = user;
    const Expr **in = NEW_ARRAY(n->b.c->arena, const Expr *, e->nin + 1);

    (void)state, (void)next;
    for (uint32_t k = 0; k < e->nin; k++)
        if (!(in[k] = build_take(&n->b, e->x[k], i, 0)))
            return false;
    return e->fn(n, e->user, in, piece);
}

bool onnx_each(Node *n, const Idx *count, uint32_t nin, const Expr *const *x, OnnxEach *fn,
               void *user, uint32_t nout, const Expr **out)
{
    return onnx_rounds(n, count, 0, NULL, nout, element, &(Each){fn, user, nin, x}, out);
}
