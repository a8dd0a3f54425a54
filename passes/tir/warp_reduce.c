/* warp_reduce: reductions among the threads of a warp by instructions that give all of them the
 * result, where a schedule has marked the nests (tensorize with @warp32_sum).
 *
 *   alloc %part: f32[128] @shared
 *   for %y < 4 bind(threadIdx.y) { for %x < 32 bind(threadIdx.x) { .. %part[%y*32+%x] = %own[] } }
 *   for %w < 4 bind(threadIdx.y) {
 *     %r[] = 0.0   for %l < 32 reduce tensorize(warp32_sum) { %r[] = %r[] + %part[%w*32+%l] } .. }
 *     -> alloc %part: f32[] @reg
 *        .. %part[] = %own[] ..
 *        .. %r[] = 0.0   for %l < 32 bind(threadIdx.x) { %r[] = warp32_sum(%part[], %r[]) } ..
 *
 * All threads of a warp have to come to such a nest alike: a warp's are those along x, no loop
 * around the nest is bound to x, no condition around it is one that memory decides.  Elsewhere, and
 * where passes before have made something else of the nest, it stays loops.  What the instruction
 * reads is shared no longer if each thread reads the cell that it has stored itself.  Runs before
 * thread_sync, which has fewer barriers to place then.  Cost: two walks. */
#include "ir/tir/intrin.h"
#include "passes/passes.h"
#include "passes/tir/util.h"

/* What all accesses of a buffer have in common. */
typedef struct {
    bool              seen;
    const Idx *const *index; /* of one cell, over the numbers of the threads; NULL: of several */
    const Buffer     *own;   /* in its place, of each thread; NULL: it stays as it is */
} Cell;

typedef struct {
    Ctx       *c;
    const Idx *axis[AXIS_COUNT];
    Threads    threads;
    Map       *read; /* id of a buffer that the instructions read -> Cell */
} Reduce;

static void find_load(void *user, const Prim *p)
{
    bool *found = user;

    *found = *found || p->kind == PRIM_LOAD;
}

static bool memory_decides(const Stmt *s)
{
    bool found = false;

    prim_visit(s->u.cond, &(TirVisit){.user = &found, .prim = find_load});
    return found;
}

static const Stmt *reduction(Reduce *x, const Stmt *s, bool alike)
{
    Ctx            *c = x->c;
    LoopData        loop = s->u.loop;
    const LoopData *loops[] = {&loop};
    const Stmt     *body = s->kids[0];
    const Idx      *threads = x->axis[AXIS_THREAD_X];
    int64_t         n = 0;
    IntrinMatch     m;

    loop.intrin = NULL;
    if (!alike || !threads || !idx_is_const(threads, &n) || body->kind != STMT_STORE ||
        !intrin_match(c, s->u.loop.intrin, 1, loops, &body->u.store, &m) ||
        n != warp_threads(m.row->warp))
        return stmt_for(c, loop, body, s->loc);
    if (!map_get(x->read, m.operand[0]->u.load.buffer->id))
        map_put(x->read, m.operand[0]->u.load.buffer->id, NEW(c->scratch, Cell));
    LoopData all = {.var = atom_var(c->arith, loop.var->name, 0, n - 1),
                    .lo = idx_const(c->arith, 0),
                    .extent = threads,
                    .bind = AXIS_THREAD_X};
    return stmt_for(c, all, lanes_stmt(c, &m, &body->u.store, idx_atom(c->arith, all.var)), s->loc);
}

/* alike: all threads of a warp come to s together. */
static const Stmt *walk(Reduce *x, const Stmt *s, bool alike)
{
    const Stmt  **kids = NEW_ARRAY(x->c->arena, const Stmt *, s->nkids + 1);
    const Intrin *row = s->kind == STMT_FOR && s->u.loop.intrin
                            ? intrin_find(x->c, s->u.loop.intrin, 0, NULL)
                            : NULL;

    if (row && row->lanes)
        return reduction(x, s, alike);
    alike = alike && !(s->kind == STMT_FOR && s->u.loop.bind == AXIS_THREAD_X) &&
            !((s->kind == STMT_IF || s->kind == STMT_WHILE) && memory_decides(s));
    for (uint32_t i = 0; i < s->nkids; i++)
        kids[i] = walk(x, s->kids[i], alike);
    return stmt_with_kids(x->c, s, kids);
}

/* ---- cells of a thread's own ------------------------------------------------------------------- */

static void see_cell(Reduce *x, const Buffer *b, const Idx *const *index, bool whole)
{
    Cell       *cell = map_get(x->read, b->id);
    bool        same = whole && cell && (cell->index || !cell->seen);
    const Idx **at = NEW_ARRAY(x->c->scratch, const Idx *, b->ndim + 1);

    if (!cell)
        return;
    for (uint32_t d = 0; d < b->ndim; d++) {
        at[d] = idx_subst(x->threads.numbers, index[d]);
        same = same && (!cell->index || cell->index[d] == at[d]);
    }
    cell->index = same ? at : NULL;
    cell->seen = true;
}

static bool see_store(void *user, const Stmt *s)
{
    if (s->kind == STMT_STORE)
        see_cell(user, s->u.store.buffer, s->u.store.index, !s->u.store.mask);
    return true;
}

static void see_load(void *user, const Prim *p)
{
    if (p->kind == PRIM_LOAD || p->kind == PRIM_ADDR)
        see_cell(user, p->u.load.buffer, p->u.load.index,
                 p->kind == PRIM_LOAD && p->dtype.lanes == 1);
}

/* No two threads of a block have that cell. */
static bool is_own(const Reduce *x, const Buffer *b, const Idx *const *index)
{
    const LoopData *loops[3];
    uint32_t        n = 0;

    for (uint32_t i = 0; i < COUNT(x->threads.loop); i++) {
        if (!x->threads.loop[i].var && x->axis[AXIS_THREAD_X + i])
            return false;
        if (x->threads.loop[i].var)
            loops[n++] = &x->threads.loop[i];
    }
    return own_cells(x->c, b->ndim, index, NULL, n, loops);
}

static bool make_own(void *user, const Stmt *s)
{
    Reduce *x = user;
    Cell   *cell = s->kind == STMT_ALLOC ? map_get(x->read, s->u.buffer->id) : NULL;

    if (!cell)
        return true;
    Buffer own = *s->u.buffer;
    own.scope = SCOPE_REG;
    own.ndim = 0;
    cell->own = own.dtype.lanes == 1 && s->u.buffer->scope == SCOPE_SHARED && cell->index &&
                        is_own(x, s->u.buffer, cell->index)
                    ? buffer_copy(x->c, s->u.buffer, own)
                    : NULL;
    return true;
}

static const Buffer *own_buffer(const Reduce *x, const Buffer *b)
{
    const Cell *cell = map_get(x->read, b->id);

    return cell ? cell->own : NULL;
}

static const Prim *own_load(Ctx *c, void *user, const Prim *p)
{
    const Buffer *own = p->kind == PRIM_LOAD ? own_buffer(user, p->u.load.buffer) : NULL;

    return own ? prim_load(c, own, NULL) : p;
}

static const Stmt *own_stmt(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    const Buffer *own = now->kind == STMT_ALLOC   ? own_buffer(user, now->u.buffer)
                        : now->kind == STMT_STORE ? own_buffer(user, now->u.store.buffer)
                                                  : NULL;

    (void)was;
    if (!own)
        return now;
    return now->kind == STMT_ALLOC ? stmt_alloc(c, own, now->kids[0])
                                   : stmt_store(c, own, NULL, now->u.store.value);
}

static const Func *reduce_func(Ctx *c, void *user, const Func *f)
{
    Reduce x = {.c = c, .read = map_new(c->scratch)};

    (void)user;
    if (f->kind != FUNC_DEVICE)
        return f;
    func_axes(c, f, x.axis);
    const Stmt *body = walk(&x, f->body, true);
    if (body == f->body)
        return f;
    f = func_with_body(c, f, body);
    x.threads = threads_of(c, f);
    stmt_visit(body, &(TirVisit){.user = &x, .enter = see_store, .prim = see_load});
    stmt_visit(body, &(TirVisit){.user = &x, .enter = make_own});
    return func_with_body(
        c, f, stmt_map(c, body, &(TirMap){.user = &x, .stmt = own_stmt, .prim = own_load}));
}

const TirModule *warp_reduce(Ctx *c, const TirModule *m)
{
    return tirmod_map(c, m, reduce_func, NULL);
}
