/* The program: main as a list of kernel calls over values.
 *
 * Main's body is walked in order of dependency, with an explicit stack.  A call of a primitive
 * function becomes an item; tuples are lists of values; `reshape`-like calls between kernels that
 * keep the row-major bytes are views of their operand's storage, concatenations and slices that
 * plan_views chose are parts of one (docs/design/views.md); `if` becomes two nested lists that
 * write the same result slots, and a node needed by both a branch and the code around it is
 * computed before the `if`.  Every slot records the first and last position that touches it: its
 * life.  What main takes and gives is in main.c. */
#include "passes/lower/lower.h"

#include "passes/graph/graph.h"

#include <string.h>

Values *values_new(Program *p, uint32_t n)
{
    Values *v = NEW(p->c->arena, Values);

    *v = (Values){n, NEW_ARRAY(p->c->arena, Value, n + 1)};
    return v;
}

Values *values_of(const ValueScope *s, const Expr *e)
{
    for (; s; s = s->up) {
        Values *v = map_get(s->values, e->id);
        if (v)
            return v;
    }
    return NULL;
}

/* ---- constants of the weights blob ---- */

static uint32_t plan_const(Program *p, const Const *data, const Kernel *k, uint32_t param)
{
    const Func *prepack = NULL;
    const char *map = "";

    for (uint32_t i = 0; k && k->sched && i < k->sched->prepacks.n; i++)
        if (k->sched->prepacks.at[i].param == param) {
            prepack = k->sched->prepacks.at[i].prepack;
            map = k->sched->prepacks.at[i].map;
        }
    for (uint32_t i = 0; i < p->consts.n; i++) {
        PlanConst *q = &p->consts.at[i];
        bool       same =
            q->data == data || (q->data->data.at == data->data.at && q->data->type == data->type);
        if (same && (q->prepack == prepack || (q->prepack && prepack && q->map == map)))
            return i;
    }
    const Type *t = data->type;
    if (prepack) {
        const Buffer *out = prepack->params[prepack->nparams - 1].buffer;
        t = type_tensor(p->c, out->dtype, out->ndim, out->extent);
    }
    int64_t n = 0;
    type_elems(t, &n);
    vec_push(p->c->arena, &p->consts,
             ((PlanConst){data, prepack, map, t, 0, (uint64_t)n * dtype_bytes(t->dtype),
                          data->name ? data->name : ""}));
    return p->consts.n - 1;
}

static Value const_value(Program *p, const Const *data, const Kernel *k, uint32_t param)
{
    uint32_t i = plan_const(p, data, k, param);

    return (Value){slot_new(p, PLACE_CONST, i, p->consts.at[i].type, data->name), data->type};
}

/* ---- walking ---- */

bool is_kernel_call(const Expr *e)
{
    return e->kind == EXPR_CALL && e->kids[0]->kind == EXPR_FUNC && e->kids[0]->u.func.primitive;
}

/* The operands that have to be values before e; the branches of an `if` are not. */
static uint32_t operands(const Expr *e, const Expr *const **at)
{
    switch (e->kind) {
    case EXPR_CALL:
        *at = e->kids + 1 + is_map(e); /* not the function */
        return e->nkids - 1 - is_map(e);
    case EXPR_TUPLE:
    case EXPR_PROJ: *at = e->kids; return e->nkids;
    case EXPR_IF: *at = e->kids; return 1;
    case EXPR_LET: *at = e->kids + 1; return 2;
    case EXPR_CONST:
    case EXPR_VAR:
    case EXPR_GLOBAL:
    case EXPR_OP:
    case EXPR_CTOR:
    case EXPR_FUNC:
    case EXPR_REF_NEW:
    case EXPR_REF_READ:
    case EXPR_REF_WRITE:
    case EXPR_MATCH: *at = NULL; return 0;
    }
}

/* Of the caller's shapes, or bound before. */
static bool has_dim(const Program *p, const ValueScope *s, const Atom *dim)
{
    for (uint32_t i = 0; i < p->dims.n; i++)
        if (p->dims.at[i] == dim)
            return true;
    for (; s; s = s->up ? s->up : s->caller)
        for (uint32_t i = 0; i < s->bound.n; i++)
            if (s->bound.at[i] == dim)
                return true;
    return false;
}

static bool has_dims(Program *p, const ValueScope *s, AtomList dims, Loc loc)
{
    for (uint32_t i = 0; i < dims.n; i++)
        if (!has_dim(p, s, dims.at[i]))
            return error_at(p->c, E_DIM, loc, "dimension '%s' has no value here", dims.at[i]->name);
    return true;
}

Item *item_new(Program *p, ValueScope *s, ItemKind kind, Loc loc)
{
    Item *it = NEW(p->c->arena, Item);

    *it = (Item){.kind = kind, .loc = loc};
    it->at = ++p->at;
    vec_push(p->c->arena, s->items, it);
    return it;
}

/* Where the result of a kernel that only changes cells of its first operand lies already: nobody
 * reads that later, or it is a copy of a state that is going to be the output. */
static bool lies_there(Program *p, ValueScope *s, const Expr *e, Value *to)
{
    const Expr *f = e->kids[0], *update = func_body(f), *x;
    const Op   *op = call_op(update);
    uint32_t    uses = 0;

    if (p->device || !op || op->fusion != FUSE_UPDATE)
        return false;
    x = call_arg(e, 0);
    if (x->kind == EXPR_CONST)
        return false;
    for (uint32_t i = 0; i < call_nargs(update); i++)
        uses += call_arg(update, i) == func_param(f, 0);
    if (uses != 1 || call_arg(update, 0) != func_param(f, 0))
        return false;
    *to = values_of(s, x)->at[0];
    if (to->type != e->type && (to->type->halo || e->type->halo)) /* there is no border there */
        return false;
    if (is_last_use(s, x))
        return true;
    if (!is_state_input(p, to->slot))
        return false;
    *to = copied(p, s, *to, "update", e->loc);
    return true;
}

static bool emit_call(Program *p, ValueScope *s, const Expr *e, Values **out)
{
    Ctx     *c = p->c;
    AtomList dims;
    Value    to;
    bool     in_place = lies_there(p, s, e, &to);
    Kernel  *k = kernel_of_call(p->kernels, e, in_place, &dims);
    bool     here = p->device && runs_here(e);
    VEC(Value) in = {0};

    if (!k || !has_dims(p, s, dims, e->loc))
        return false;
    uint32_t param = 0;
    for (uint32_t i = in_place; i < call_nargs(e); i++) {
        const Expr *a = call_arg(e, i);
        if (a->kind == EXPR_CONST) {
            vec_push(c->arena, &in, const_value(p, a->u.constant, k, param++));
            continue;
        }
        const Values *v = values_of(s, a);
        if (!v)
            BUG("an operand of a kernel has no value");
        for (uint32_t j = 0; j < v->n; j++, param++) {
            /* A constant that came through a let or a tuple still needs this kernel's packing. */
            if (v->at[j].slot->place == PLACE_CONST && k->sched && k->sched->prepacks.n) {
                const Const *data = p->consts.at[v->at[j].slot->index].data;
                vec_push(c->arena, &in, const_value(p, data, k, param));
            } else {
                vec_push(c->arena, &in, v->at[j]);
            }
        }
    }
    for (uint32_t i = 0; i < in.n; i++)
        in.at[i] = on_side(p, s, in.at[i], here, e->loc);
    if (in.n != k->nin)
        BUG("kernel %s takes %u tensors, its call has %u", k->nest->name, k->nin, in.n);
    Item        *it = item_new(p, s, ITEM_CALL, e->loc);
    uint32_t     nout = type_tensors(e->type), n = 0;
    const Type **types = NEW_ARRAY(c->arena, const Type *, nout + 1);
    type_flatten(e->type, types, &n);
    it->kernel = k;
    it->dims = dims;
    it->in = in.at;
    it->nin = in.n;
    for (uint32_t i = 0; i < in.n; i++)
        slot_touch(p, in.at[i].slot);
    *out = values_new(p, nout);
    for (uint32_t i = 0; i < nout && !in_place; i++) {
        (*out)->at[i] = (Value){slot_new(p, PLACE_ARENA, 0, types[i], k->nest->name), types[i]};
        (*out)->at[i].slot->here = here;
    }
    if (in_place) {
        (*out)->at[0] = (Value){to.slot, e->type};
        slot_touch(p, to.slot);
    }
    it->out = (*out)->at;
    it->nout = nout;
    return true;
}

void item_copy(Program *p, ValueScope *s, Value from, Value to, Loc loc)
{
    Item *it = item_new(p, s, ITEM_COPY, loc);

    it->nin = it->nout = 1;
    it->in = DUP_ARRAY(p->c->arena, &from, 1);
    it->out = DUP_ARRAY(p->c->arena, &to, 1);
    slot_touch(p, from.slot);
    slot_touch(p, to.slot);
}

Value copied(Program *p, ValueScope *s, Value from, const char *name, Loc loc)
{
    return copied_to(p, s, from, lies_here(p, from.slot), name, loc);
}

/* ---- parts of one memory: what plan_views left outside of kernels ---------------------------- */

/* Can all of a value's memory become a part of another? */
static bool can_be_part(Program *p, const Value *v, bool here)
{
    const Slot *s = v->slot;

    return s->here == here && s->place == PLACE_ARENA && !s->in && s->kind != SLOT_CARRIED &&
           slot_fits(p, s, v->type);
}

static bool all_here(const Program *p, const Values *v)
{
    bool here = p->device;

    for (uint32_t i = 0; i < v->n; i++)
        here = here && v->at[i].slot->here;
    return here;
}

static bool emit_join(Program *p, ValueScope *s, const Expr *e, Value *out)
{
    const Values *v = values_of(s, call_arg(e, 0));
    Slot         *whole = slot_new(p, PLACE_ARENA, 0, e->type, "concatenate");
    uint64_t      at = 0;
    const Idx    *way = idx_const(p->c->arith, 0);

    whole->kind = SLOT_JOINED;
    whole->here = all_here(p, v);
    for (uint32_t i = 0; i < v->n; i++) {
        Slot *part = v->at[i].slot;
        if (!can_be_part(p, &v->at[i], whole->here)) {
            if (v->at[i].type->halo)
                return error_at(p->c, E_PASS, e->loc, "operand %u cannot lie in the result", i);
            part = copied_to(p, s, v->at[i], whole->here, "copy", e->loc).slot;
        }
        if (part->kind == SLOT_OWN)
            part->kind = SLOT_PART;
        part->in = whole;
        part->at = at;
        at += part->bytes;
        if (p->open) {
            part->open.at = way;
            way = idx_add(p->c->arith, way, part->open.bytes);
        }
        if (part->first < whole->first)
            whole->first = part->first;
    }
    if (at != whole->bytes || (p->open && way != whole->open.bytes))
        return error_at(p->c, E_PASS, e->loc, "the operands of this view are not its parts");
    *out = (Value){whole, e->type};
    return true;
}

static bool emit_slice(Program *p, const Expr *e, Value from, Value *out)
{
    const Type *t = from.type;
    Buffer      b = {.dtype = t->dtype, .ndim = t->n, .extent = t->dims, .halo = t->halo};
    Slot       *part = slot_new(p, PLACE_ARENA, 0, e->type, "slice");
    int64_t     begin[TE_MAX_AXES], at = 0, step;
    const Idx  *stride[TE_MAX_AXES], *way = idx_const(p->c->arith, 0);

    buffer_strides(p->c, &b, stride);
    if (!slice_begin(p->c, e, begin))
        return error_at(p->c, E_PASS, e->loc, "a slice with steps is no view");
    for (uint32_t i = 0; i < t->n; i++) {
        if (idx_is_const(stride[i], &step))
            at += begin[i] * step;
        way = idx_add(p->c->arith, way, idx_mulc(p->c->arith, stride[i], begin[i]));
    }
    if (p->open) {
        part->open.at = idx_mulc(p->c->arith, way, dtype_bytes(t->dtype));
        at = idx_usual(way);
    }
    part->kind = SLOT_SLICE;
    part->in = from.slot;
    part->here = from.slot->here;
    part->at = (uint64_t)at * dtype_bytes(t->dtype);
    if (part->at + part->bytes > from.slot->bytes)
        return error_at(p->c, E_PASS, e->loc, "this slice is no range of its operand");
    *out = (Value){part, e->type};
    return true;
}

/* Nodes reachable from root without entering the branches of an `if`. */
static Map *outside(Program *p, const Expr *root)
{
    Map *seen = map_new(p->c->arena);
    VEC(const Expr *) todo = {0};

    vec_push(p->c->arena, &todo, root);
    while (todo.n) {
        const Expr        *e = todo.at[--todo.n];
        const Expr *const *kids;
        if (map_get(seen, e->id))
            continue;
        map_put(seen, e->id, (void *)1);
        for (uint32_t n = operands(e, &kids), i = 0; i < n; i++)
            vec_push(p->c->arena, &todo, kids[i]);
    }
    return seen;
}

static bool emit_if(Program *p, ValueScope *s, const Expr *e, Map *around, Values **out)
{
    Ctx          *c = p->c;
    const Values *cond = values_of(s, e->kids[0]);

    /* What the branches share with the code around them comes first. */
    for (uint32_t b = 1; b <= 2; b++) {
        ExprList list = expr_post_order(c, e->kids[b]);
        for (uint32_t i = 0; i < list.n; i++)
            if (map_get(around, list.at[i]->id) && list.at[i]->kind != EXPR_OP &&
                list.at[i]->kind != EXPR_FUNC && !values_of(s, list.at[i]) &&
                !program_walk(p, s, list.at[i]))
                return false;
    }
    Item *it = item_new(p, s, ITEM_IF, e->loc);
    it->nin = 1;
    it->in = DUP_ARRAY(c->arena, &cond->at[0], 1);
    slot_touch(p, cond->at[0].slot);
    uint32_t     nout = type_tensors(e->type), n = 0;
    const Type **types = NEW_ARRAY(c->arena, const Type *, nout + 1);
    type_flatten(e->type, types, &n);
    *out = values_new(p, nout);
    for (uint32_t i = 0; i < nout; i++)
        (*out)->at[i] = (Value){slot_new(p, PLACE_ARENA, 0, types[i], "if"), types[i]};
    for (uint32_t b = 1; b <= 2; b++) {
        ValueScope in = {
            .values = map_new(c->arena), .up = s, .items = b == 1 ? &it->then : &it->other};
        if (!program_walk(p, &in, e->kids[b]))
            return false;
        const Values *v = values_of(&in, e->kids[b]);
        for (uint32_t i = 0; i < nout; i++)
            item_copy(p, &in, v->at[i], (*out)->at[i], e->loc);
    }
    /* Alive from the first branch on: the other must not reuse the storage.  A thread may be late
     * to read the condition. */
    slot_touch(p, cond->at[0].slot);
    for (uint32_t i = 0; i < nout; i++) {
        (*out)->at[i].slot->first = it->at;
        slot_touch(p, (*out)->at[i].slot);
    }
    return true;
}

/* ---- a function mapped over a batch: a loop --------------------------------------------------- */

/* What one of `rounds` rounds has of a value, as a value of type t. */
static Value part_of_round(Program *p, Value whole, const Type *t, const Idx *rounds)
{
    Slot *s = slot_new(p, PLACE_ARENA, 0, t, whole.slot->name);

    s->kind = SLOT_ROUND;
    s->in = whole.slot;
    s->step = s->bytes;
    s->open.step = s->open.bytes;
    if (!slot_makes_up(p, s, rounds, whole.slot))
        BUG("the parts of a batch are not its rounds");
    return (Value){s, t};
}

/* The result of the rounds: written in place by the kernel that makes it, if it has memory of its
 * own, else copied there. */
static void emit_result(Program *p, ValueScope *in, Value from, Value whole, const Idx *rounds,
                        Loc loc)
{
    Slot *s = from.slot;

    if (s->place == PLACE_ARENA && s->kind == SLOT_OWN && !s->in && !s->type->halo &&
        slot_makes_up(p, s, rounds, whole.slot)) {
        s->kind = SLOT_ROUND;
        s->in = whole.slot;
        s->step = s->bytes;
        s->open.step = s->open.bytes;
        return;
    }
    item_copy(p, in, from, part_of_round(p, whole, from.type, rounds), loc);
}

static bool emit_map(Program *p, ValueScope *s, const Expr *e, Values **out)
{
    Ctx         *c = p->c;
    const Expr  *f = module_func(p->m, call_arg(e, 0)->u.name);
    const Type **types;
    uint32_t     nout = type_tensors(e->type), n = 0, from = p->kernels->all.n;
    const Idx   *rounds;

    if (!f || s->up || p->device ||
        !(rounds = type_rounds(c, call_arg(e, 1)->type, func_param(f, 0)->type)))
        return error_at(c, E_UNSUPPORTED, e->loc, "this map cannot be compiled to an object");
    Item      *it = item_new(p, s, ITEM_LOOP, e->loc);
    ValueScope in = {.values = map_new(c->arena), .up = s, .items = &it->then};
    it->rounds = rounds;
    for (uint32_t i = 0; i < func_nparams(f); i++) {
        Value  *x = values_of(s, call_arg(e, i + 1))->at;
        Values *v = values_new(p, 1);
        v->at[0] = part_of_round(p, *x, func_param(f, i)->type, rounds);
        slot_touch(p, x->slot);
        map_put(in.values, func_param(f, i)->id, v);
    }
    types = NEW_ARRAY(c->arena, const Type *, nout + 1);
    type_flatten(e->type, types, &n);
    *out = values_new(p, nout);
    for (uint32_t i = 0; i < nout; i++)
        (*out)->at[i] = (Value){slot_new(p, PLACE_ARENA, 0, types[i], "batch"), types[i]};
    uint64_t *calls = NEW_ARRAY(c->arena, uint64_t, from + 1);
    for (uint32_t i = 0; i < from; i++)
        calls[i] = p->kernels->all.at[i]->calls;
    if (!program_walk(p, &in, func_body(f)))
        return false;
    const Values *v = values_of(&in, func_body(f));
    for (uint32_t i = 0; i < nout; i++)
        emit_result(p, &in, v->at[i], (*out)->at[i], rounds, e->loc);
    for (uint32_t i = 0; i < p->kernels->all.n; i++) {
        Kernel  *k = p->kernels->all.at[i];
        uint64_t before = i < from ? calls[i] : 0;
        k->calls = before + (k->calls - before) * (uint64_t)rounds->hi;
    }
    /* Alive in all rounds. */
    ++p->at;
    for (uint32_t i = 0; i < func_nparams(f); i++)
        slot_touch(p, values_of(s, call_arg(e, i + 1))->at[0].slot);
    for (uint32_t i = 0; i < nout; i++)
        slot_touch(p, (*out)->at[i].slot);
    return true;
}

/* ---- dimensions that a value decides ---------------------------------------------------------- */

/* Cells of `t` that a kernel may write straight to where main has its dimensions. */
static bool can_be_dims(const Program *p, const Value *v)
{
    const Slot *s = v->slot;

    return (!p->device || s->here) && s->place == PLACE_ARENA && s->kind == SLOT_OWN && !s->in &&
           !s->type->halo && dtype_eq(s->type->dtype, DT_I64);
}

static bool no_bound(Program *p, const Atom *dim, Loc loc)
{
    error_at(p->c, E_DIM, loc, "values of the run decide dimension '%s', which has no upper bound",
             dim->name);
    diag_hint(p->c->diags, "give it one, such as --dim %s=0..4096", dim->name);
    return false;
}

/* Main's cells for these dimensions: of a function that is called again, the same. */
static bool find_cells(Program *p, Dims dims, Loc loc, uint32_t *cell)
{
    const Atom *dim;

    for (uint32_t i = 0; i < p->binds.n; i++) {
        Dims was = p->binds.at[i].dims;
        *cell = p->binds.at[i].cell;
        if (was.n == dims.n && !memcmp(was.at, dims.at, dims.n * sizeof *dims.at))
            return true;
    }
    *cell = p->ncells;
    vec_push(p->c->arena, &p->binds, ((BoundDims){dims, p->ncells}));
    for (uint32_t i = 0; i < dims.n; i++, p->ncells++) {
        if (!idx_is_atom(dims.at[i], &dim))
            continue;
        if (atom_is_open(dim))
            return no_bound(p, dim, loc);
        for (uint32_t k = 0; k < p->bound.n; k++)
            if (p->bound.at[k].dim == dim)
                return error_at(p->c, E_DIM, loc, "dimension '%s' is bound twice", dim->name);
        vec_push(p->c->arena, &p->bound, ((BoundDim){dim, p->ncells}));
    }
    return true;
}

static bool emit_bind(Program *p, ValueScope *s, const Expr *e, Value *v)
{
    Ctx     *c = p->c;
    Dims     dims;
    uint32_t cell;

    expr_binds(e, &dims);
    if (!find_cells(p, dims, e->loc, &cell))
        return false;
    if (can_be_dims(p, v)) {
        v->slot->place = PLACE_DIMS;
        v->slot->index = cell;
    } else {
        Value to = {slot_new(p, PLACE_DIMS, cell, v->type, "dims"), v->type};
        item_copy(p, s, *v, to, e->loc);
    }
    Item *it = item_new(p, s, ITEM_BIND, e->loc);
    it->bound = dims;
    it->cell = cell;
    for (uint32_t i = 0; i < dims.n; i++) {
        const Atom *dim;
        if (!idx_is_atom(dims.at[i], &dim))
            continue;
        if (has_dim(p, s, dim))
            return error_at(c, E_DIM, e->loc, "dimension '%s' has a value already", dim->name);
        vec_push(c->arena, &s->bound, dim);
    }
    return true;
}

static bool emit(Program *p, ValueScope *s, const Expr *e, Map *around)
{
    Ctx    *c = p->c;
    Values *v = NULL;

    switch (e->kind) {
    case EXPR_CONST:
        v = values_new(p, 1);
        v->at[0] = const_value(p, e->u.constant, NULL, 0);
        break;
    case EXPR_TUPLE: {
        uint32_t n = 0;
        for (uint32_t i = 0; i < e->nkids; i++)
            n += values_of(s, e->kids[i])->n;
        v = values_new(p, n);
        n = 0;
        for (uint32_t i = 0; i < e->nkids; i++) {
            const Values *k = values_of(s, e->kids[i]);
            for (uint32_t j = 0; j < k->n; j++)
                v->at[n++] = k->at[j];
        }
        break;
    }
    case EXPR_PROJ: {
        const Values *k = values_of(s, e->kids[0]);
        uint32_t      at = 0;
        for (uint32_t i = 0; i < e->u.index; i++)
            at += type_tensors(e->kids[0]->type->parts[i]);
        v = values_new(p, type_tensors(e->type));
        for (uint32_t i = 0; i < v->n; i++)
            v->at[i] = k->at[at + i];
        break;
    }
    case EXPR_LET: v = values_of(s, let_body(e)); break;
    case EXPR_IF:
        if (!emit_if(p, s, e, around, &v))
            return false;
        break;
    case EXPR_CALL:
        if (is_kernel_call(e)) {
            if (!emit_call(p, s, e, &v))
                return false;
        } else if (is_map(e)) {
            if (!emit_map(p, s, e, &v))
                return false;
        } else if (is_update(e)) {
            emit_update(p, s, e, &v);
        } else if (is_bind(e)) {
            v = values_of(s, call_arg(e, 0));
            if (!emit_bind(p, s, e, &v->at[0]))
                return false;
        } else if (is_view(e)) {
            Value from = values_of(s, call_arg(e, 0))->at[0];
            v = values_new(p, 1);
            v->at[0] = (Value){from.slot, e->type};
        } else if (is_part_view(e)) {
            v = values_new(p, 1);
            if (call_is(e, "concatenate")
                    ? !emit_join(p, s, e, v->at)
                    : !emit_slice(p, e, values_of(s, call_arg(e, 0))->at[0], v->at))
                return false;
        } else if (e->kids[0]->kind == EXPR_GLOBAL) {
            if (!emit_apply(p, s, e, &v))
                return false;
        } else {
            return error_at(c, E_PASS, e->loc, "a call that no kernel does is left in main");
        }
        break;
    case EXPR_VAR: return error_at(c, E_PASS, e->loc, "variable '%s' has no value", e->u.var.name);
    case EXPR_GLOBAL:
    case EXPR_OP:
    case EXPR_CTOR:
    case EXPR_FUNC:
    case EXPR_REF_NEW:
    case EXPR_REF_READ:
    case EXPR_REF_WRITE:
    case EXPR_MATCH:
        return error_at(c, E_UNSUPPORTED, e->loc,
                        "closures, references and matches cannot be compiled to an object yet");
    }
    map_put(s->values, e->id, v);
    return true;
}

bool program_walk(Program *p, ValueScope *s, const Expr *root)
{
    VEC(const Expr *) todo = {0};
    Map *around = outside(p, root);

    vec_push(p->c->arena, &todo, root);
    while (todo.n) {
        const Expr        *e = todo.at[todo.n - 1];
        const Expr *const *kids;
        uint32_t           n = operands(e, &kids), missing = 0;
        if (values_of(s, e)) {
            todo.n--;
            continue;
        }
        if (e->kind == EXPR_LET) { /* value, then the name, then the body */
            Values *value = values_of(s, let_value(e));
            if (value && !values_of(s, let_var(e)))
                map_put(s->values, let_var(e)->id, value);
            n = value ? 2 : 1;
        }
        for (uint32_t i = n; i-- > 0;)
            if (!values_of(s, kids[i]) &&
                !(e->kind == EXPR_CALL && kids[i]->kind == EXPR_CONST && is_kernel_call(e))) {
                vec_push(p->c->arena, &todo, kids[i]);
                missing++;
            }
        if (missing)
            continue;
        todo.n--;
        if (!emit(p, s, e, around))
            return false;
    }
    return true;
}
