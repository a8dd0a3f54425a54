/* How kernels that are finished store and load: what could only be decided once it was known what
 * they are called with, and where that lies.
 *
 *     func @dense.1f (%x: f32[768], %w: f32[768000] @const, ..)     .. %w[%k*32 : 32] ..
 *  -> func @dense.1f.f16 (%x: f32[768], %w: f16[768000] @const, ..) .. f32(%w[%k*32 : 32]) ..
 *
 * Weights in 16 bits (-fweights-dtype=float16|bfloat16).  All arithmetic stays in f32: a load of a
 * weight becomes a load of half the bytes and a conversion, one instruction where the processor has
 * it (vcvtph2ps, fcvtl; for bf16 a shift).  Whatever rule arranged a kernel, schedules, layouts and
 * Winograd's transformed weights need to know nothing of it; packing stores what it computed
 * rounded to nearest.  Narrowed are f32 constants of at least `limit_narrow_cells` elements that a
 * kernel only loads, if every call of it passes a constant; biases and scales stay exact.  Values
 * have no say, as a plan does not depend on them: one that f16 cannot hold is an error of the
 * packing.
 *
 *     func @relu.1f (%x: .., %y: f32[17040384])
 *  -> func @relu.1f.stream (%x: .., %y: f32[17040384] align 64 stream)
 *
 * Results that no cache holds until they are read.  A store brings its line into the cache first.
 * Where a kernel touches more than the last cache holds (a quarter of L3 is counted: other programs
 * and machines have it too), the beginning of a large result is gone when the next one asks for it,
 * so that the line was read for nothing: a third of the traffic between two kernels
 * (docs/design/schedules.md).  Of sizes that a run decides none is taken for large: what
 * then lies in a cache would come from memory, which costs as much as is gained where it does not
 * (a 1x1 convolution of 40x40 pixels within 160x160: 1.4 times as long; Zen 3).
 * The result of every call must be a value of the arena on a line's
 * border (what a caller gives may lie anywhere), and the kernel must not read it again.  Every
 * store must be of an aligned vector: a line that is written partly past the caches and partly not
 * is written to memory more than once (rows of 20 cells took 60 times as long; Zen 5).  `stream` is
 * a mark, for which the code generator needs an instruction of the processor. */
#include "machine/machine.h"
#include "passes/lower/lower.h"

#include <string.h>

/* A pointer parameter. */
typedef struct {
    const Buffer *from, *to; /* `to` NULL: it stays as it is */
} Change;

typedef struct {
    Kernel *kernel;
    Change *in, *out; /* [kernel->nin], [kernel->nout] */
} Changes;

typedef struct {
    Ctx     *c;
    Program *p;
    uint32_t n; /* kernels */
    Changes *of;
    ItemList items; /* of main, wherever they stand */
} Storage;

static Changes *find(Storage *x, const Kernel *k)
{
    for (uint32_t i = 0; i < x->n; i++)
        if (x->of[i].kernel == k)
            return &x->of[i];
    BUG("a call of no kernel");
}

static void find_items(Storage *x, ItemList *main_items)
{
    VEC(ItemList *) todo = {0};

    vec_push(x->c->scratch, &todo, main_items);
    while (todo.n) {
        ItemList *list = todo.at[--todo.n];

        for (uint32_t i = 0; i < list->n; i++) {
            vec_push(x->c->scratch, &x->items, list->at[i]);
            vec_push(x->c->scratch, &todo, &list->at[i]->then);
            vec_push(x->c->scratch, &todo, &list->at[i]->other);
        }
    }
}

static void find_parameters(Storage *x)
{
    x->n = x->p->kernels->all.n;
    x->of = NEW_ARRAY(x->c->arena, Changes, x->n + 1);
    for (uint32_t i = 0; i < x->n; i++) {
        Kernel      *k = x->p->kernels->all.at[i];
        const Param *first = k->flat->params + func_dims(k->flat);

        x->of[i] = (Changes){k, NEW_ARRAY(x->c->arena, Change, k->nin + 1),
                             NEW_ARRAY(x->c->arena, Change, k->nout + 1)};
        for (uint32_t j = 0; j < k->nin; j++)
            x->of[i].in[j].from = first[j].buffer;
        for (uint32_t j = 0; j < k->nout; j++)
            x->of[i].out[j].from = first[k->nin + j].buffer;
    }
}

/* ---- weights in 16 bits ---------------------------------------------------------------------------- */

static bool is_weight(Ctx *c, const Buffer *b)
{
    Machine m = machine_of(c->target);
    int64_t elems = 0, origin;

    return b && b->scope == SCOPE_CONST && dtype_eq(b->dtype, DT_F32) && !b->halo && !b->data &&
           buffer_size(c, b, &elems, &origin) && elems >= limit_narrow_cells(&m);
}

/* What goes to a function of another kind as a pointer is not only loaded. */
static bool keep_arguments(void *user, const Stmt *s)
{
    Changes *k = user;

    for (uint32_t i = 0; s->kind == STMT_CALL && i < s->u.call.nargs; i++)
        for (uint32_t j = 0; j < k->kernel->nin; j++)
            if (k->in[j].from == s->u.call.args[i].buffer)
                k->in[j].to = NULL;
    return true;
}

static void narrow_weights(Storage *x, DType to)
{
    for (uint32_t i = 0; i < x->n; i++) {
        Changes *k = &x->of[i];

        for (uint32_t j = 0; j < k->kernel->nin; j++)
            if (is_weight(x->c, k->in[j].from)) {
                Buffer half = *k->in[j].from;
                half.dtype = to;
                k->in[j].to = buffer_copy(x->c, k->in[j].from, half);
            }
        stmt_visit(k->kernel->flat->body, &(TirVisit){.user = k, .enter = keep_arguments});
    }
    /* A parameter that is not always a constant stays as it is. */
    for (uint32_t i = 0; i < x->items.n; i++) {
        const Item *it = x->items.at[i];

        for (uint32_t k = 0; it->kind == ITEM_CALL && k < it->nin; k++)
            if (it->in[k].slot->place != PLACE_CONST)
                find(x, it->kernel)->in[k].to = NULL;
    }
}

/* The plan's constant i in 16 bits; `of` remembers it. */
static uint32_t narrow_const(Storage *x, DType to, uint32_t *of, uint32_t i)
{
    Program  *p = x->p;
    PlanConst q = p->consts.at[i];

    if (!of[i]) {
        q.type = type_tensor(x->c, to, q.type->n, q.type->dims);
        q.bytes /= 2;
        vec_push(x->c->arena, &p->consts, q);
        of[i] = p->consts.n - 1;
    }
    return of[i];
}

/* Calls that take a constant in 16 bits get it so, each in a slot of its own: others may take the
 * same one as it is. */
static void narrow_arguments(Storage *x, DType to)
{
    Program  *p = x->p;
    uint32_t *of = NEW_ARRAY(x->c->scratch, uint32_t, p->consts.n + 1);

    for (uint32_t i = 0; i < x->items.n; i++) {
        Item *it = x->items.at[i];

        for (uint32_t k = 0; it->kind == ITEM_CALL && k < it->nin; k++) {
            if (!find(x, it->kernel)->in[k].to)
                continue;
            Slot *own = DUP_ARRAY(x->c->arena, it->in[k].slot, 1);
            own->index = narrow_const(x, to, of, own->index);
            vec_push(x->c->arena, &p->slots, own);
            it->in[k].slot = own;
        }
    }
}

static void use(bool *used, const Value *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (v[i].slot->place == PLACE_CONST)
            used[v[i].slot->index] = true;
}

/* Without the constants that nobody takes as they were. */
static void drop_unused(Storage *x)
{
    Program  *p = x->p;
    bool     *used = NEW_ARRAY(x->c->scratch, bool, p->consts.n + 1);
    uint32_t *number = NEW_ARRAY(x->c->scratch, uint32_t, p->consts.n + 1), n = 0;

    for (uint32_t i = 0; i < x->items.n; i++)
        use(used, x->items.at[i]->in, x->items.at[i]->nin);
    use(used, p->results.at, p->results.n);
    for (uint32_t i = 0; i < p->consts.n; i++)
        if (used[i]) {
            number[i] = n;
            p->consts.at[n++] = p->consts.at[i];
        }
    p->consts.n = n;
    for (uint32_t i = 0; i < p->slots.n; i++)
        if (p->slots.at[i]->place == PLACE_CONST)
            p->slots.at[i]->index = number[p->slots.at[i]->index];
}

/* ---- results past the caches --------------------------------------------------------------------- */

/* Bytes of values that a call touches: as many lie between the store of a cell and its first load.
 */
static uint64_t touched(const Item *it)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < it->nin; i++)
        n += it->in[i].slot->place == PLACE_CONST ? 0 : it->in[i].slot->bytes;
    for (uint32_t i = 0; i < it->nout; i++)
        n += it->out[i].slot->bytes;
    return n;
}

static bool on_a_line(Ctx *c, const Slot *s)
{
    uint64_t    at;
    const Slot *root = slot_root(s, &at);
    int64_t     rest;

    if (root->open.offset && /* that itself is on one */
        (!idx_is_const(idx_modc(c->arith, slot_way(c, s), CACHE_LINE), &rest) || rest ||
         (s->open.step &&
          (!idx_is_const(idx_modc(c->arith, s->open.step, CACHE_LINE), &rest) || rest))))
        return false;
    return root->place == PLACE_ARENA && (root->offset + at + s->origin) % CACHE_LINE == 0 &&
           s->step % CACHE_LINE == 0;
}

static void find_load(void *user, const Prim *p)
{
    Changes *k = user;

    for (const Buffer *b = p->kind == PRIM_LOAD ? p->u.load.buffer : NULL; b; b = b->alias)
        for (uint32_t i = 0; i < k->kernel->nout; i++)
            if (k->out[i].from == b)
                k->out[i].to = NULL;
}

/* The vector loop around a store, and the kernel's results. */
typedef struct {
    Arith      *A;
    Changes    *k;
    const Atom *lane;
    int64_t     lanes;
} Stores;

/* Does it store vectors, each on a border of its own size, or of a line's? */
static bool stores_vectors(const Stores *v, const StoreData *d)
{
    const Idx *at = d->n == 1 ? d->index[0] : NULL;
    int64_t    line = CACHE_LINE / dtype_bytes(d->buffer->dtype), rest;

    if (!at || !v->lane || idx_coef(at, v->lane) != 1)
        return false;
    at = idx_sub(v->A, at, idx_atom(v->A, v->lane));
    return !idx_uses(at, v->lane) &&
           idx_is_const(idx_modc(v->A, at, v->lanes < line ? v->lanes : line), &rest) && !rest;
}

static bool see_store(void *user, const Stmt *s)
{
    Stores *v = user;

    if (s->kind == STMT_FOR && s->u.loop.vector) {
        v->lane = s->u.loop.var;
        if (!idx_is_const(s->u.loop.extent, &v->lanes))
            v->lane = NULL;
    }
    for (uint32_t i = 0; s->kind == STMT_STORE && i < v->k->kernel->nout; i++)
        if (v->k->out[i].from == s->u.store.buffer && !stores_vectors(v, &s->u.store))
            v->k->out[i].to = NULL;
    return true;
}

static void stream_results(Storage *x)
{
    Machine  m = machine_of(x->p->kernels->target);
    uint64_t most = (uint64_t)room_shared(&m), least = (uint64_t)room_result(&m);

    for (uint32_t i = 0; i < x->n; i++)
        for (uint32_t j = 0; j < x->of[i].kernel->nout; j++) {
            Change *r = &x->of[i].out[j];
            Buffer  to = *r->from;
            to.stream = true;
            to.align = CACHE_LINE;
            r->to = buffer_copy(x->c, r->from, to);
        }
    for (uint32_t i = 0; i < x->items.n; i++) {
        const Item *it = x->items.at[i];

        for (uint32_t j = 0; it->kind == ITEM_CALL && j < it->nout; j++)
            if (!type_static(it->out[j].slot->type) || touched(it) <= most ||
                it->out[j].slot->bytes <= least || !on_a_line(x->c, it->out[j].slot))
                find(x, it->kernel)->out[j].to = NULL;
    }
    for (uint32_t i = 0; i < x->n; i++) {
        const Stmt *body = x->of[i].kernel->flat->body;
        Stores      v = {.A = x->c->arith, .k = &x->of[i]};

        stmt_visit(body, &(TirVisit){.user = &x->of[i], .prim = find_load});
        stmt_visit(body, &(TirVisit){.user = &v, .enter = see_store});
    }
}

/* ---- kernels -------------------------------------------------------------------------------------- */

static const Prim *widen(Ctx *c, void *user, const Prim *now)
{
    const Changes  *k = user;
    const LoadData *l = &now->u.load;
    DType           wide = now->dtype;

    for (uint32_t i = 0; now->kind == PRIM_LOAD && i < k->kernel->nin; i++)
        if (k->in[i].to && k->in[i].from == l->buffer)
            return prim_cast(c, wide,
                             wide.lanes > 1 || l->mask
                                 ? prim_loadv(c, k->in[i].to, l->index, wide.lanes, l->mask)
                                 : prim_load(c, k->in[i].to, l->index));
    return now;
}

static const Buffer *streamed(Ctx *c, void *user, const Buffer *b)
{
    const Changes *k = user;

    (void)c;
    for (uint32_t i = 0; i < k->kernel->nout; i++)
        if (k->out[i].to && k->out[i].from == b)
            return k->out[i].to;
    return b;
}

static bool any_changed(uint32_t n, const Change *of, Param *params)
{
    bool any = false;

    for (uint32_t i = 0; i < n; i++)
        if (of[i].to) {
            params[i].buffer = of[i].to;
            any = true;
        }
    return any;
}

/* The kernel with another name: its code is another. */
static void change_kernel(Ctx *c, Changes *k, DType weights)
{
    TirMap m = {.user = k, .prim = widen, .buffer = streamed};
    Func   f = *k->kernel->flat;
    Param *params = DUP_ARRAY(c->arena, f.params, f.nparams), *first = params + func_dims(&f);
    bool   narrow = any_changed(k->kernel->nin, k->in, first);
    bool   stream = any_changed(k->kernel->nout, k->out, first + k->kernel->nin);

    if (!narrow && !stream)
        return;
    f.params = params;
    f.body = stmt_map(c, f.body, &m);
    f.name = intern_printf(c->strings, "%s%s%s%s", f.name, narrow ? "." : "",
                           narrow ? dtype_text(c, weights) : "", stream ? ".stream" : "");
    k->kernel->flat = func_new(c, f);
}

bool storage(Program *p)
{
    Storage x = {.c = p->c, .p = p};
    DType   weights = p->kernels->o->weights;

    if (p->device)
        return weights.bits != 16 ||
               error_at(p->c, E_UNSUPPORTED, NO_LOC,
                        "-fweights-dtype is for processors, not for '%s'", p->c->target->text);
    find_parameters(&x);
    find_items(&x, &p->items);
    if (weights.bits == 16)
        narrow_weights(&x, weights);
    if (p->kernels->target->has_stream)
        stream_results(&x);
    for (uint32_t i = 0; i < x.n; i++)
        change_kernel(x.c, &x.of[i], weights);
    if (weights.bits == 16) {
        narrow_arguments(&x, weights);
        drop_unused(&x);
    }
    return true;
}
