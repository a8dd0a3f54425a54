/* Calls of a module's functions, and loops: functions that call themselves at their end
 * (docs/design/flow.md).
 *
 *     fn @loop(%go, %s, %w) { if %go { ..  @loop(%go1, %s1, %w) } else { exp(%s) } }
 *     main: @loop(true, %x, %w)
 *
 *  -> copy true -> %go   copy %x -> %s      what the first round starts from
 *     while %go {
 *       ..                                  the operands of the inner call
 *       copy %go1 -> %go  copy %s1 -> %s    all at once
 *     }
 *     exp(%s)                               the other branch
 *
 * A parameter that every round passes on as it came stands for the argument.  Every other one is
 * carried: it has memory of its own, alive from before the loop until behind it.  A new value that
 * is made after the last read of the old one is made in its place, and nothing is copied. */
#include "passes/graph/graph.h"
#include "passes/lower/lower.h"

/* Of functions in functions, and of functions at all: each call is written out. */
enum { MAX_DEPTH = 64, MAX_CALLS = 100000 };

/* A tensor that a round hands on to the next one. */
typedef struct Carried {
    Value    at;      /* its place */
    Value    next;    /* what the round made of it */
    uint32_t reads;   /* moves to come that read the place .. */
    uint64_t readers; /* .. and the sum of their numbers */
    bool     moved;
} Carried;

typedef struct {
    Program *p;
    uint32_t n;
    Carried *at;
    Map     *of; /* a place -> its Carried */
} Round;

/* ---- memory that is overwritten ------------------------------------------------------------------ */

Map *uses_below(Ctx *c, const Expr *e)
{
    ExprList list = expr_post_order(c, e);
    Map     *uses = map_new(c->arena);

    for (uint32_t i = 0; i < list.n; i++)
        for (uint32_t k = 0; k < list.at[i]->nkids; k++) {
            uint64_t  key = PTR_KEY(list.at[i]->kids[k]);
            uintptr_t n = (uintptr_t)map_get(uses, key);

            map_put(uses, key, (void *)(n + 1));
        }
    return uses;
}

bool is_last_use(const ValueScope *s, const Expr *e)
{
    /* What is read only as something else. */
    while (s->uses && is_view(e) && (uintptr_t)map_get(s->uses, PTR_KEY(e)) == 1)
        e = call_arg(e, 0);

    Values *v = s->uses ? map_get(s->values, e->id) : NULL;
    bool    of_round = false;

    /* What a round gets in a place of its own it may also change there. */
    if (s->uses && !v && s->up && e->kind == EXPR_VAR) {
        v = map_get(s->up->values, e->id);
        of_round = v && v->n == 1 && v->at[0].slot->kind == SLOT_CARRIED;
    }
    if (!v || v->n != 1 || (uintptr_t)map_get(s->uses, PTR_KEY(e)) != 1)
        return false;
    if (of_round)
        return true;
    /* Views share memory with others. */
    return ((e->kind == EXPR_CALL && e->kids[0]->kind == EXPR_FUNC) || is_update(e)) &&
           v->at[0].slot->kind == SLOT_OWN && !v->at[0].slot->in &&
           v->at[0].slot->place == PLACE_ARENA && !v->at[0].slot->type->halo;
}

void emit_update(Program *p, ValueScope *s, const Expr *e, Values **out)
{
    const Expr *x = call_arg(e, 0);
    Value       to = values_of(s, x)->at[0], in[2];
    Item       *it;

    if (!is_last_use(s, x))
        to = copied_to(p, s, (Value){to.slot, e->type}, to.slot->here, "update", e->loc);
    else
        forget_twin(p, s, to.slot);
    for (uint32_t i = 0; i < 2; i++)
        in[i] = on_side(p, s, values_of(s, call_arg(e, i + 1))->at[0], to.slot->here, e->loc);
    it = item_new(p, s, ITEM_UPDATE, e->loc);
    it->nin = 2;
    it->in = DUP_ARRAY(p->c->arena, in, 2);
    it->nout = 1;
    it->out = DUP_ARRAY(p->c->arena, &to, 1);
    for (uint32_t i = 0; i < 2; i++)
        slot_touch(p, in[i].slot);
    slot_touch(p, to.slot);
    *out = values_new(p, 1);
    (*out)->at[0] = to;
}

/* ---- from round to round ------------------------------------------------------------------------- */

/* Can the kernel that makes the new value write it where the old one lies?  `begin`: the position
 * of the loop. */
static bool fits_in_place(const Carried *x, uint32_t begin)
{
    const Slot *s = x->next.slot, *to = x->at.slot;

    return s->here == to->here && s->place == PLACE_ARENA && s->kind == SLOT_OWN && !s->in &&
           s->first > begin && !s->type->halo && s->bytes == to->bytes &&
           s->open.bytes == to->open.bytes && to->last < s->first && !x->reads;
}

/* The one whose place x becomes a copy of, or NULL. */
static Carried *source(const Round *r, const Carried *x)
{
    uint64_t at;

    return map_get(r->of, PTR_KEY(slot_root(x->next.slot, &at)));
}

/* Decides which new values are made where the old ones lie; gives how many are left to move. */
static uint32_t place_rounds(Round *r, uint32_t begin)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < r->n; i++) {
        Carried *x = &r->at[i], *from = source(r, x);

        x->moved = x->next.slot == x->at.slot;
        if (from && !x->moved) {
            from->reads++;
            from->readers += i;
        }
    }
    for (uint32_t i = 0; i < r->n; i++) {
        Carried *x = &r->at[i];

        if (!x->moved && fits_in_place(x, begin)) {
            x->next.slot->kind = SLOT_SLICE;
            x->next.slot->in = x->at.slot;
            x->moved = true;
        }
        left += !x->moved;
    }
    return left;
}

/* Every place gets its new value, as if all at once: one that others are copied from waits for
 * them. Where each waits for another, every one has one reader, and one of them is put aside. */
static void move_all(Round *r, ValueScope *s, uint32_t begin, Loc loc)
{
    Program *p = r->p;
    uint32_t left = place_rounds(r, begin), next = 0;
    VEC(Carried *) ready = {0};

    for (uint32_t i = 0; i < r->n; i++)
        if (!r->at[i].moved && !r->at[i].reads)
            vec_push(p->c->scratch, &ready, &r->at[i]);
    for (; left; left--) {
        if (!ready.n) {
            while (r->at[next].moved)
                next++;
            Carried *x = &r->at[next];
            r->at[x->readers].next = copied(p, s, x->at, x->at.slot->name, loc);
            x->reads = 0;
            vec_push(p->c->scratch, &ready, x);
        }
        Carried *x = ready.at[--ready.n], *from = source(r, x);
        item_copy(p, s, x->next, x->at, loc);
        x->moved = true;
        if (from && !from->moved) {
            from->readers -= (uint64_t)(x - r->at);
            if (--from->reads == 0)
                vec_push(p->c->scratch, &ready, from);
        }
    }
}

/* ---- calls --------------------------------------------------------------------------------------- */

typedef struct {
    Program    *p;
    ValueScope *s;    /* around the call */
    ValueScope  head; /* the function's parameters */
    const Expr *call, *f;
    LoopForm    form;
    Round       round;
} Loop;

static Values *arg_values(const Loop *l, uint32_t i)
{
    return values_of(l->s, call_arg(l->call, i));
}

/* A place of its own for a tensor that the loop changes, with its value for the first round: that
 * value's, if nobody else reads it. */
static Value carry(Loop *l, Value from, const char *name, bool taken)
{
    Value at = taken ? from : copied_to(l->p, l->s, from, from.slot->here, name, l->call->loc);

    at.slot->kind = SLOT_CARRIED;
    return at;
}

static void begin_loop(Loop *l)
{
    Program *p = l->p;
    Round   *r = &l->round;
    uint32_t most = 0;

    for (uint32_t i = 0; i < func_nparams(l->f); i++)
        most += passes_on(l->f, &l->form, i) ? 0 : arg_values(l, i)->n;
    *r = (Round){p, 0, NEW_ARRAY(p->c->arena, Carried, most + 1), map_new(p->c->arena)};
    for (uint32_t i = 0; i < func_nparams(l->f); i++) {
        const Expr *param = func_param(l->f, i);
        Values     *v = arg_values(l, i),
               *places = passes_on(l->f, &l->form, i) ? v : values_new(p, v->n);
        bool taken = is_last_use(l->s, call_arg(l->call, i));

        for (uint32_t k = 0; places != v && k < v->n; k++) {
            Carried *x = &r->at[r->n++];
            x->at = places->at[k] = carry(l, v->at[k], param->u.var.name, taken);
            map_put(r->of, PTR_KEY(x->at.slot), x);
        }
        map_put(l->head.values, param->id, places);
    }
}

/* The operands of the next round in one node, so that what they share is computed once. */
static bool walk_round(Loop *l, ValueScope *in)
{
    const Expr *again = l->form.again, *all;
    Values     *v;

    all = expr_tuple(l->p->c, call_nargs(again), again->kids + 1, again->loc);
    if (!all)
        return false;
    in->uses = uses_below(l->p->c, all);
    if (!program_walk(l->p, in, all))
        return false;
    for (uint32_t i = 0, n = 0; i < func_nparams(l->f); i++) {
        v = values_of(in, call_arg(again, i));
        for (uint32_t k = 0; !passes_on(l->f, &l->form, i) && k < v->n; k++)
            l->round.at[n++].next = v->at[k];
    }
    return true;
}

/* What the condition is in a scope of its own, where the program is now. */
static bool walk_cond(Loop *l, ItemList *items, Value *out)
{
    ValueScope in = {.values = map_new(l->p->c->arena), .up = &l->head, .items = items};

    if (!program_walk(l->p, &in, l->form.cond))
        return false;
    *out = values_of(&in, l->form.cond)->at[0];
    return true;
}

/* Alive in all rounds: what the loop takes from outside, and what it hands on. */
static void end_loop(Loop *l, Value cond)
{
    Program *p = l->p;

    ++p->at;
    slot_touch(p, cond.slot);
    for (uint32_t i = 0; i < func_nparams(l->f); i++) {
        Values *v = values_of(&l->head, func_param(l->f, i));
        for (uint32_t k = 0; k < v->n; k++)
            slot_touch(p, v->at[k].slot);
    }
}

static bool emit_loop(Loop *l)
{
    Program *p = l->p;
    Value    cond, again;
    bool     computed = l->form.cond->kind != EXPR_VAR;

    begin_loop(l);
    if (!walk_cond(l, l->s->items, &cond))
        return false;
    if (computed)
        cond = carry(l, cond, "go", false);
    Item *it = item_new(p, l->s, ITEM_WHILE, l->call->loc);
    it->nin = 1;
    it->in = DUP_ARRAY(p->c->arena, &cond, 1);
    it->until = l->form.until;
    ValueScope in = {.values = map_new(p->c->arena), .up = &l->head, .items = &it->then};
    if (!walk_round(l, &in))
        return false;
    move_all(&l->round, &in, it->at, l->call->loc);
    if (computed) {
        if (!walk_cond(l, &it->then, &again))
            return false;
        item_copy(p, &in, again, cond, l->call->loc);
    }
    end_loop(l, cond);
    return true;
}

bool emit_apply(Program *p, ValueScope *s, const Expr *e, Values **out)
{
    Ctx        *c = p->c;
    const char *name = e->kids[0]->u.name;
    const Expr *f = module_func(p->m, name), *body;
    Loop        l = {.p = p,
                     .s = s,
                     .call = e,
                     .f = f,
                     .head = {.values = map_new(c->arena), .items = s->items, .caller = s}};

    if (!f)
        return error_at(c, E_PASS, e->loc, "there is no function '@%s'", name);
    for (uint32_t i = 0; i < p->calling.n; i++)
        if (p->calling.at[i] == name)
            return error_at(c, E_UNSUPPORTED, e->loc,
                            "'@%s' calls itself otherwise than as the last thing that it does, "
                            "which needs a stack at run time",
                            name);
    if (++p->calls > MAX_CALLS)
        return error_at(c, E_UNSUPPORTED, e->loc, "functions are called in more than %d places",
                        MAX_CALLS);
    if (p->calling.n == MAX_DEPTH)
        return error_at(c, E_UNSUPPORTED, e->loc, "functions call each other more than %d deep",
                        MAX_DEPTH);
    vec_push(c->arena, &p->calling, name);
    body = func_body(f);
    if (is_loop(c, f, name, &l.form)) {
        if (!emit_loop(&l))
            return false;
        body = l.form.end;
    } else {
        for (uint32_t i = 0; i < func_nparams(f); i++)
            map_put(l.head.values, func_param(f, i)->id, arg_values(&l, i));
    }
    ValueScope in = {.values = map_new(c->arena), .up = &l.head, .items = s->items};
    if (!program_walk(p, &in, body))
        return false;
    p->calling.n--;
    *out = values_of(&in, body);
    return true;
}
