/* promote: `reg` buffers with constant indices become variables.
 *
 *   alloc %a: f32[96] @reg { %a[0] = f32x8 ..  %a[8] = f32x8 .. }
 *     -> alloc %a.0: f32x8 @reg { alloc %a.8: f32x8 @reg { %a.0 = ..  %a.8 = .. } }
 *
 * Runs after unroll and vectorize.  Every access must have a constant offset and the accesses of
 * one offset the same number of lanes, without overlap between offsets; a buffer that breaks this
 * (its loop was too large to unroll) goes to the stack, which is right but slow.  What is left of
 * `%a[0] = %a[0] + (nothing)` goes: C compilers warn of `a = a`.  Cost: one walk a buffer. */
#include "passes/passes.h"
#include "passes/tir/util.h"

typedef struct {
    int64_t       at;
    uint16_t      lanes;
    const Buffer *var;
} Cell;

typedef struct {
    Ctx          *c;
    const Buffer *b;
    VEC(Cell) cells;
    bool ok;
} Promote;

static void add_cell(Promote *x, uint32_t n, const Idx *const *index, uint16_t lanes, bool masked)
{
    int64_t at = 0;

    if (n > 1 || masked || (n == 1 && !idx_is_const(index[0], &at))) {
        x->ok = false;
        return;
    }
    for (uint32_t i = 0; i < x->cells.n; i++) {
        Cell *k = &x->cells.at[i];
        if (k->at == at && k->lanes == lanes)
            return;
        if (at < k->at + k->lanes && k->at < at + lanes) {
            x->ok = false;
            return;
        }
    }
    vec_push(x->c->arena, &x->cells, ((Cell){at, lanes, NULL}));
}

static bool see_stmt(void *user, const Stmt *s)
{
    Promote *x = user;

    if (s->kind == STMT_STORE && s->u.store.buffer == x->b)
        add_cell(x, s->u.store.n, s->u.store.index, s->u.store.value->dtype.lanes,
                 s->u.store.mask != NULL);
    if (s->kind == STMT_CALL)
        for (uint32_t i = 0; i < s->u.call.nargs; i++)
            if (s->u.call.args[i].buffer == x->b)
                x->ok = false;
    return true;
}

static void see_prim(void *user, const Prim *p)
{
    Promote *x = user;

    if (p->kind == PRIM_LOAD && p->u.load.buffer == x->b)
        add_cell(x, p->u.load.n, p->u.load.index, p->dtype.lanes, p->u.load.mask != NULL);
}

static const Buffer *cell_of(const Promote *x, uint32_t n, const Idx *const *index)
{
    int64_t at = n ? index[0]->c0 : 0;

    for (uint32_t i = 0; i < x->cells.n; i++)
        if (x->cells.at[i].at == at)
            return x->cells.at[i].var;
    return NULL;
}

static const Prim *to_var_prim(Ctx *c, void *user, const Prim *p)
{
    const Promote *x = user;

    if (p->kind != PRIM_LOAD || p->u.load.buffer != x->b)
        return p;
    return prim_loadv(c, cell_of(x, p->u.load.n, p->u.load.index), NULL, p->dtype.lanes, NULL);
}

static const Stmt *to_var_stmt(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    const Promote *x = user;

    (void)was;
    if (now->kind != STMT_STORE || now->u.store.buffer != x->b)
        return now;
    const StoreData *d = &now->u.store;
    const Buffer    *var = cell_of(x, d->n, d->index);
    if (d->value->kind == PRIM_LOAD && d->value->u.load.buffer == var)
        return stmt_seq(c, 0, NULL);
    return stmt_storev(c, var, NULL, d->value, NULL);
}

static const Stmt *promote_stmt(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    (void)user;
    (void)was;
    if (now->kind != STMT_ALLOC || now->u.buffer->scope != SCOPE_REG || now->u.buffer->ndim == 0)
        return now;
    Promote  x = {.c = c, .b = now->u.buffer, .ok = true};
    TirVisit v = {&x, see_stmt, NULL, see_prim, NULL};
    stmt_visit(now->kids[0], &v);
    if (!x.ok) {
        Buffer n = *x.b;
        n.scope = SCOPE_STACK;
        n.align = 64;
        const Buffer *to = buffer_copy(c, x.b, n);
        return stmt_alloc(c, to, buffer_replace(c, now->kids[0], x.b, to));
    }
    for (uint32_t i = 0; i < x.cells.n; i++) {
        Cell  *k = &x.cells.at[i];
        Buffer n = *x.b;
        n.ndim = 0;
        n.extent = NULL;
        n.halo = NULL;
        n.stride = NULL;
        n.pitch = NULL;
        n.dtype = dtype_lanes(x.b->dtype, k->lanes);
        k->var = buffer_copy(c, x.b, n);
    }
    TirMap      m = {&x, to_var_stmt, to_var_prim, NULL, NULL};
    const Stmt *s = stmt_map(c, now->kids[0], &m);
    for (uint32_t i = x.cells.n; i-- > 0;)
        s = stmt_alloc(c, x.cells.at[i].var, s);
    return s;
}

static const Func *promote_func(Ctx *c, void *user, const Func *f)
{
    TirMap m = {NULL, promote_stmt, NULL, NULL, NULL};

    (void)user;
    return func_with_body(c, f, stmt_map(c, f->body, &m));
}

const TirModule *promote(Ctx *c, const TirModule *m)
{
    return tirmod_map(c, m, promote_func, NULL);
}
