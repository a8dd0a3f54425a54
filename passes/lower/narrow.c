/* Weights stored in 16 bits: -fweights-dtype=float16|bfloat16.
 *
 *     func @dense.1f (%x: f32[768], %w: f32[768000] @const, ..)     .. %w[%k*32 : 32] ..
 *  -> func @dense.1f.f16 (%x: f32[768], %w: f16[768000] @const, ..) .. f32(%w[%k*32 : 32]) ..
 *
 * All arithmetic stays in f32: a load of a weight becomes a load of half the bytes and a
 * conversion, one instruction where the processor has it (vcvtph2ps, fcvtl; for bf16 a shift).
 * This happens to finished kernels, whatever rule arranged them, so schedules, layouts and
 * Winograd's transformed weights need to know nothing of it; packing stores what it computed
 * rounded to nearest.  Narrowed are f32 constants of at least SMALL elements that a kernel only
 * loads, if every call of it passes a constant; biases and scales stay exact.  Values have no
 * say, as a plan does not depend on them: one that f16 cannot hold is an error of the packing. */
#include "passes/lower/lower.h"

#include <string.h>

enum { SMALL = 1024 };

/* A parameter of a kernel. */
typedef struct {
    const Buffer *from, *to; /* `to` NULL: it stays as it is */
} Weight;

typedef struct {
    Kernel *kernel;
    Weight *at; /* [kernel->nin] */
} Weights;

typedef struct {
    Ctx     *c;
    DType    to;
    uint32_t n; /* kernels */
    Weights *of;
    ItemList items; /* of main, wherever they stand */
} Narrowing;

/* ---- which parameters ---------------------------------------------------------------------------- */

static bool is_weight(Ctx *c, const Buffer *b)
{
    int64_t elems = 0, origin;

    return b && b->scope == SCOPE_CONST && dtype_eq(b->dtype, DT_F32) && !b->halo && !b->data &&
           buffer_size(c, b, &elems, &origin) && elems >= SMALL;
}

static void keep(Weights *w, const Buffer *b)
{
    for (uint32_t i = 0; i < w->kernel->nin; i++)
        if (w->at[i].from == b)
            w->at[i].to = NULL;
}

/* What goes to a function of another kind as a pointer is not only loaded. */
static bool keep_arguments(void *user, const Stmt *s)
{
    for (uint32_t i = 0; s->kind == STMT_CALL && i < s->u.call.nargs; i++)
        keep(user, s->u.call.args[i].buffer);
    return true;
}

static Weights weights_of(Narrowing *x, Kernel *k)
{
    Weights  w = {k, NEW_ARRAY(x->c->arena, Weight, k->nin + 1)};
    TirVisit v = {.user = &w, .enter = keep_arguments};

    for (uint32_t i = 0; i < k->nin; i++) {
        const Buffer *b = k->flat->params[func_dims(k->flat) + i].buffer;

        if (!is_weight(x->c, b))
            continue;
        Buffer half = *b;
        half.dtype = x->to;
        w.at[i] = (Weight){b, buffer_copy(x->c, b, half)};
    }
    stmt_visit(k->flat->body, &v);
    return w;
}

static Weights *find(Narrowing *x, const Kernel *k)
{
    for (uint32_t i = 0; i < x->n; i++)
        if (x->of[i].kernel == k)
            return &x->of[i];
    BUG("a call of no kernel");
}

/* All of main; a parameter that is not always a constant stays as it is. */
static void find_items(Narrowing *x, ItemList *main_items)
{
    VEC(ItemList *) todo = {0};

    vec_push(x->c->scratch, &todo, main_items);
    while (todo.n) {
        ItemList *list = todo.at[--todo.n];

        for (uint32_t i = 0; i < list->n; i++) {
            Item *it = list->at[i];

            vec_push(x->c->scratch, &x->items, it);
            if (it->kind == ITEM_IF) {
                vec_push(x->c->scratch, &todo, &it->then);
                vec_push(x->c->scratch, &todo, &it->other);
            }
            for (uint32_t k = 0; it->kind == ITEM_CALL && k < it->nin; k++)
                if (it->in[k].slot->place != PLACE_CONST)
                    find(x, it->kernel)->at[k].to = NULL;
        }
    }
}

/* ---- kernels -------------------------------------------------------------------------------------- */

static const Prim *widen(Ctx *c, void *user, const Prim *now)
{
    const Weights  *w = user;
    const LoadData *l = &now->u.load;
    DType           wide = now->dtype;

    for (uint32_t i = 0; now->kind == PRIM_LOAD && i < w->kernel->nin; i++)
        if (w->at[i].to && w->at[i].from == l->buffer)
            return prim_cast(c, wide,
                             wide.lanes > 1 || l->mask
                                 ? prim_loadv(c, w->at[i].to, l->index, wide.lanes, l->mask)
                                 : prim_load(c, w->at[i].to, l->index));
    return now;
}

/* The kernel with another name: its code is another. */
static void narrow_kernel(Narrowing *x, Weights *w)
{
    Ctx   *c = x->c;
    TirMap m = {.user = w, .prim = widen};
    Func   f = *w->kernel->flat;
    Param *params = DUP_ARRAY(c->arena, f.params, f.nparams);
    bool   any = false;

    for (uint32_t i = 0; i < w->kernel->nin; i++)
        if (w->at[i].to) {
            params[func_dims(&f) + i].buffer = w->at[i].to;
            any = true;
        }
    if (!any)
        return;
    f.params = params;
    f.body = stmt_map(c, f.body, &m);
    f.name = intern_printf(c->strings, "%s.%s", f.name, dtype_text(c, x->to));
    w->kernel->flat = func_new(c, f);
}

/* ---- constants ------------------------------------------------------------------------------------ */

/* The plan's constant i in 16 bits; `of` remembers it. */
static uint32_t narrow_const(Narrowing *x, Program *p, uint32_t *of, uint32_t i)
{
    PlanConst q = p->consts.at[i];

    if (!of[i]) {
        q.type = type_tensor(x->c, x->to, q.type->n, q.type->dims);
        q.bytes /= 2;
        vec_push(x->c->arena, &p->consts, q);
        of[i] = p->consts.n - 1;
    }
    return of[i];
}

/* Calls that take a constant in 16 bits get it so, each in a slot of its own: others may take the
 * same one as it is. */
static void narrow_arguments(Narrowing *x, Program *p)
{
    uint32_t *of = NEW_ARRAY(x->c->scratch, uint32_t, p->consts.n + 1);

    for (uint32_t i = 0; i < x->items.n; i++) {
        Item *it = x->items.at[i];

        for (uint32_t k = 0; it->kind == ITEM_CALL && k < it->nin; k++) {
            if (!find(x, it->kernel)->at[k].to)
                continue;
            Slot *own = DUP_ARRAY(x->c->arena, it->in[k].slot, 1);
            own->index = narrow_const(x, p, of, own->index);
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
static void drop_unused(Narrowing *x, Program *p)
{
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

bool narrow_weights(Program *p, DType to)
{
    Narrowing x = {.c = p->c, .to = to, .n = p->kernels->all.n};

    if (p->device)
        return error_at(p->c, E_UNSUPPORTED, NO_LOC,
                        "-fweights-dtype is for processors, not for '%s'", p->c->target->text);
    x.of = NEW_ARRAY(x.c->arena, Weights, x.n + 1);
    for (uint32_t i = 0; i < x.n; i++)
        x.of[i] = weights_of(&x, p->kernels->all.at[i]);
    find_items(&x, &p->items);
    for (uint32_t i = 0; i < x.n; i++)
        narrow_kernel(&x, &x.of[i]);
    narrow_arguments(&x, p);
    drop_unused(&x, p);
    return true;
}
