/* What main takes and gives.
 *
 * A result is written straight into the caller's output where its storage allows.  On a device,
 * inputs and outputs are copies to and from values in the arena.
 *
 * A result that is a state, the next run's input, may lie in that input's memory.  So it is written
 * only when the input was read for the last time.  What begins as a copy of the input, as what a
 * loop carries or an update changes, is the output itself; whether there is something to copy then
 * is seen when it runs (`copy_kernel`). */
#include "passes/lower/lower.h"

#include "passes/graph/graph.h"

bool is_state(const Program *p, uint32_t out, uint32_t in)
{
    return p->m->out_info && p->m->out_info[out].state == in + 1;
}

bool is_state_input(const Program *p, const Slot *s)
{
    uint32_t n = type_tensors(func_body(module_func(p->m, "main"))->type);

    for (uint32_t i = 0; s->place == PLACE_INPUT && !s->in && i < n; i++)
        if (is_state(p, i, s->index))
            return true;
    return false;
}

/* The input that may lie where result i does, or NULL. */
static const Slot *state_of(const Program *p, const ValueScope *s, const Expr *f, uint32_t i)
{
    uint32_t in = p->m->out_info ? p->m->out_info[i].state : 0;

    return in ? values_of(s, func_param(f, in - 1))->at[0].slot : NULL;
}

/* Storage that can be the caller's output instead of the arena: a kernel, a copy or an `if` made
 * all of it, it has no border, and no other output took it. */
static bool can_be_output(const Slot *s, const Type *t, const Slot *state)
{
    return s->place == PLACE_ARENA && !s->in && !t->halo && !s->type->halo &&
           (!state || s->first > state->last || (s->first == state->last && s->copy_of == state));
}

/* Results that are inputs as they came, before any output that may lie on an input is written; but
 * for those that stay where they are. */
static void save_inputs(Program *p, ValueScope *s, Value *out, uint32_t n, Loc loc)
{
    for (uint32_t i = 0; i < n; i++)
        if (out[i].slot->place == PLACE_INPUT && !is_state(p, i, out[i].slot->index))
            out[i] = copied(p, s, out[i], "state", loc);
}

static bool has_states(const Program *p, uint32_t n)
{
    for (uint32_t i = 0; p->m->out_info && i < n; i++)
        if (p->m->out_info[i].state)
            return true;
    return false;
}

/* The symbolic dimensions of main's parameters, in order. */
static AtomList types_dims(Ctx *c, uint32_t n, const Type *const *t)
{
    const Buffer **b = NEW_ARRAY(c->scratch, const Buffer *, n + 1);

    for (uint32_t i = 0; i < n; i++)
        b[i] = buffer_new(c, "x", t[i]->dtype, SCOPE_ARENA, t[i]->n, t[i]->dims);
    return stmt_free(c, n, b, stmt_seq(c, 0, NULL));
}

/* Has a parameter a dimension without an upper bound? */
static bool has_open_dim(const Expr *f)
{
    for (uint32_t i = 0; i < func_nparams(f); i++) {
        const Type *t = func_param(f, i)->type;

        for (uint32_t k = 0; t && t->kind == TYPE_TENSOR && k < t->n; k++)
            if (idx_is_open(t->dims[k]))
                return true;
    }
    return false;
}

/* plan_devices gave some kernels to the host. */
static bool has_host_kernel(Ctx *c, const Module *m)
{
    for (uint32_t i = 0; i < m->nfuncs; i++) {
        ExprList list = expr_post_order(c, m->funcs[i].func);

        for (uint32_t k = 0; k < list.n; k++)
            if (list.at[k]->kind == EXPR_FUNC && list.at[k]->u.func.host)
                return true;
    }
    return false;
}

bool program_of_main(Program *p, const Expr *f)
{
    Ctx       *c = p->c;
    ValueScope s = {
        .values = map_new(c->arena), .items = &p->items, .uses = uses_below(c, func_body(f))};
    VEC(const Type *) types = {0};
    VEC(const char *) names = {0};

    p->open = has_open_dim(f);
    p->mixed = p->device && has_host_kernel(c, p->m);
    for (uint32_t i = 0; i < func_nparams(f); i++) {
        const Expr *v = func_param(f, i);
        if (!v->type || v->type->kind != TYPE_TENSOR)
            return error_at(c, E_DIM, v->loc, "input '%s' is no tensor", v->u.var.name);
        Values *in = values_new(p, 1);
        in->at[0] = (Value){slot_new(p, PLACE_INPUT, i, v->type, v->u.var.name), v->type};
        if (p->device && !p->mixed) /* before all launches, so that these can be recorded */
            in->at[0] = on_side(p, &s, in->at[0], false, v->loc);
        map_put(s.values, v->id, in);
        vec_push(c->arena, &types, v->type);
        vec_push(c->arena, &names, v->u.var.name);
    }
    p->dims = types_dims(c, types.n, types.at);
    p->n_in = types.n;
    p->in_types = types.at;
    p->in_names = names.at;
    if (!program_walk(p, &s, func_body(f)))
        return false;
    Values *out = values_of(&s, func_body(f));
    if (has_states(p, out->n))
        save_inputs(p, &s, out->at, out->n, f->loc);
    for (uint32_t i = 0; i < out->n; i++) {
        Value v = out->at[i];
        if ((!p->device || v.slot->here) && can_be_output(v.slot, v.type, state_of(p, &s, f, i))) {
            v.slot->place = PLACE_OUTPUT;
            v.slot->index = i;
        } else {
            Value to = {slot_new(p, PLACE_OUTPUT, i, v.type, "output"), v.type};
            item_copy(p, &s, v, to, f->loc);
            v = to;
        }
        vec_push(c->arena, &p->results, v);
    }
    return true;
}
