/* overlay: buffers that a block shares and that are never in use at the same time get places in the
 * same memory, where the device can have that.
 *
 *   alloc %save: f32[64, 64] @shared   alloc %a: f16[4, 4096] @shared
 *   for %k < 9 { .. %a[..] .. }  %save[..] = %sum[..]  %y[..] = %save[..]
 *     -> alloc %save: f32[64, 64] @shared place 1   alloc %a: f16[4, 4096] @shared place 1  ..
 *
 * What is in use when is ir/tir/shared.c's to say.  Where nothing is saved, or little is taken
 * (limit_gpu_apart), buffers stay without places.  Runs after software_pipeline, which makes
 * buffers larger, and before thread_sync, by which a thread that comes to the next buffer waits for
 * those that are still at the one before. Cost: a walk. */
#include "machine/machine.h"
#include "passes/passes.h"

typedef struct {
    Ctx *c;
    Map *place, *to; /* buffer id -> its place; -> the buffer with it */
} Overlay;

static const Buffer *placed(Overlay *x, const Buffer *b)
{
    const Buffer *to = map_get(x->to, b->id);

    if (to || !map_get(x->place, b->id))
        return to ? to : b;
    Buffer n = *b;
    n.place = (uint32_t)(uintptr_t)map_get(x->place, b->id);
    to = buffer_copy(x->c, b, n);
    map_put(x->to, b->id, (void *)(uintptr_t)to);
    return to;
}

static const Prim *placed_load(Ctx *c, void *user, const Prim *p)
{
    const LoadData *l = &p->u.load;

    if (p->kind != PRIM_LOAD || placed(user, l->buffer) == l->buffer)
        return p;
    return prim_loadv(c, placed(user, l->buffer), l->index, p->dtype.lanes, l->mask);
}

static const Stmt *placed_stmt(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    const StoreData *d = &now->u.store;

    (void)was;
    if (now->kind == STMT_ALLOC && placed(user, now->u.buffer) != now->u.buffer)
        return stmt_alloc(c, placed(user, now->u.buffer), now->kids[0]);
    if (now->kind == STMT_STORE && placed(user, d->buffer) != d->buffer)
        return stmt_storev(c, placed(user, d->buffer), d->index, d->value, d->mask);
    return now;
}

static const Func *overlay_func(Ctx *c, void *user, const Func *f)
{
    Overlay x = {c, map_new(c->arena), map_new(c->arena)};

    (void)user;
    if (f->kind != FUNC_DEVICE || !f->target || !f->target->shared_overlaid)
        return f;
    const Machine m = machine_of(f->target);
    int64_t       all = shared_places(c, f, x.place);
    if (all <= limit_gpu_apart(&m) || all >= func_shared_bytes(c, f))
        return f;
    return func_with_body(
        c, f,
        stmt_map(c, f->body, &(TirMap){.user = &x, .stmt = placed_stmt, .prim = placed_load}));
}

const TirModule *overlay(Ctx *c, const TirModule *m)
{
    return tirmod_map(c, m, overlay_func, NULL);
}
