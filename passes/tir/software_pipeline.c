/* software_pipeline: loops that are marked `stages n` copy to shared memory what a later round
 * computes with, so that the copies' way and the computing take place at the same time.
 *
 *   for %k < 9 stages 2 { for %i < 4 { %s[%i*8+%t] = %x[%k*32+%i*8+%t] }  .. %s[..] .. }
 *     -> for %i < 4 { %s[0,%i*8+%t] = %x[%i*8+%t] }
 *        for %k < 9 {
 *          alloc %s.next: f32[4] @reg
 *          if %k < 8 { for %i < 4 unroll { %s.next[%i] = %x[(%k+1)*32+%i*8+%t] } }
 *          .. %s[%k%2,..] ..
 *          if %k < 8 { for %i < 4 unroll { %s[(%k+1)%2,%i*8+%t] = %s.next[%i] } } }
 *
 * The shared buffers get n stages, of which round k reads stage k%n while that of round k+n-1 is
 * filled.  What is copied past the registers (async_copy) is on its way meanwhile; `await` says of
 * how many rounds it may still be.  All else is loaded before the round computes and stored behind
 * that.  One barrier a round is left, which thread_sync finds.  Of two stages compilers of devices
 * are asked to write out two rounds, where all of one is by marks (loops that they had left were
 * written out with it, for twice the registers): in each the stages are then known,
 * and the loop's own instructions are half (products of 8x4 cells in chunks of 8: 641 instructions
 * for 512 multiply-adds, 696 without).
 *
 * Products of four warps go on beside the threads, as copies do, and `await products` says of how
 * many rounds they may still be.  In loops of enough stages (limit_gpu_stages_apart) that is one:
 * copies fill the stage before the one that it reads, are a round less ahead, and begin behind the
 * products of their round.
 *
 *   for %k < 9 stages 4 { async_copy %s[..] = %x[%k*32..]  .. tensorize %s[..] .. }
 *     -> .. two rounds' copies ..
 *        for %k < 9 { await 1  .. tensorize %s[%k%4,..] ..
 *          if %k < 7 { async_copy %s[(%k+2)%4,..] = %x[(%k+2)*32..] }  await products 1 }
 *        await products 0
 *
 * Elsewhere they are awaited at once.
 *
 * A run may decide the rounds: copies before the loop are then under conditions, too, where there
 * may be fewer.  A loop stays as it is where it does not begin with copies of memory that the
 * launch does not write, where others see the shared buffers, or where two stages leave no room in
 * shared memory or in registers; where n stages do not fit, fewer are taken.  Copies of other loops
 * are awaited where they end.  Runs after launches, before thread_sync.  Cost: a few walks for each
 * marked loop. */
#include "ir/tir/intrin.h"
#include "machine/machine.h"
#include "passes/passes.h"

enum { MOST_REGS = 64, BORDER = 16 }; /* that wait for a round's end; bytes */

/* ---- copies and products are awaited ------------------------------------------------------------ */

/* s does nothing but start copies. */
static bool only_copies(Ctx *c, const Stmt *s)
{
    if (s->kind == STMT_FOR && loop_copies(c, &s->u.loop))
        return true;
    if (s->kind == STMT_STORE)
        return s->u.store.value->kind == PRIM_INTRIN && intrin_copies(s->u.store.value->u.intrin);
    if (s->kind != STMT_FOR && s->kind != STMT_IF && s->kind != STMT_SEQ)
        return false;
    for (uint32_t i = 0; i < s->nkids; i++)
        if (!only_copies(c, s->kids[i]))
            return false;
    return s->nkids > 0;
}

static const Stmt *await_all(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    const AwaitData products = {.products = true};
    VEC(const Stmt *) all = {0};
    bool waiting = false, found = false;

    (void)user;
    (void)was;
    if (now->kind == STMT_FOR && loop_is_of_group(c, &now->u.loop)) {
        const Stmt *both[] = {now, stmt_await(c, products)};
        return stmt_seq(c, 2, both);
    }
    if (now->kind != STMT_SEQ)
        return now;
    for (uint32_t i = 0; i < now->nkids; i++) {
        bool copies = only_copies(c, now->kids[i]);
        if (waiting && !copies && now->kids[i]->kind != STMT_AWAIT)
            vec_push(c->arena, &all, stmt_await(c, (AwaitData){0})), found = true;
        waiting = copies;
        vec_push(c->arena, &all, now->kids[i]);
    }
    return found ? stmt_seq(c, all.n, all.at) : now;
}

/* ---- what a loop begins with --------------------------------------------------------------------- */

typedef struct {
    Ctx        *c;
    const Func *f;
    const Stmt *loop;
    const Idx  *rounds; /* which a run may decide */
    int64_t     stages;
    uint32_t    nfills; /* kids of the loop's body that fill, .. */
    uint32_t    from;   /* .. and the first that computes */
    Map        *tile;   /* id of a shared buffer: the one with stages */
    VEC(const Buffer *) tiles;
    const Idx *stage; /* that is filled, or read */
    int64_t    regs;
    bool       copies; /* some fills are async */
    bool       ok;
} Loop;

/* s stores to shared memory what it reads elsewhere. */
static bool fills(const Stmt *s)
{
    if (s->kind == STMT_STORE)
        return s->u.store.buffer->scope == SCOPE_SHARED && !s->u.store.mask;
    if (s->kind != STMT_FOR && s->kind != STMT_SEQ && s->kind != STMT_IF)
        return false;
    for (uint32_t i = 0; i < s->nkids; i++)
        if (!fills(s->kids[i]))
            return false;
    return s->nkids > 0;
}

static bool note_tile(void *user, const Stmt *s)
{
    Loop *x = user;

    if (s->kind != STMT_STORE || map_get(x->tile, s->u.store.buffer->id))
        return true;
    map_put(x->tile, s->u.store.buffer->id, (void *)(uintptr_t)s->u.store.buffer);
    vec_push(x->c->arena, &x->tiles, s->u.store.buffer);
    return true;
}

/* Accesses of tiles, and what else is stored to. */
typedef struct {
    Loop    *x;
    Map     *stored;
    uint32_t n;
    bool     reads_stored;
} Uses;

static bool use_store(void *user, const Stmt *s)
{
    Uses *u = user;

    if (s->kind == STMT_STORE) {
        u->n += map_get(u->x->tile, s->u.store.buffer->id) != NULL;
        map_put(u->stored, s->u.store.buffer->id, u);
        if (s->u.store.buffer->alias)
            map_put(u->stored, s->u.store.buffer->alias->id, u);
    }
    return true;
}

static void use_load(void *user, const Prim *p)
{
    Uses *u = user;

    if (p->kind == PRIM_LOAD && map_get(u->x->tile, p->u.load.buffer->id))
        u->n++;
}

static Uses uses(Loop *x, const Stmt *s)
{
    Uses u = {.x = x, .stored = map_new(x->c->scratch)};

    stmt_visit(s, &(TirVisit){&u, use_store, NULL, use_load, NULL});
    return u;
}

/* A copy may be made earlier if nobody stores to what it reads. */
static void reads_stored(void *user, const Prim *p)
{
    Uses *u = user;

    if (p->kind == PRIM_LOAD)
        u->reads_stored =
            u->reads_stored || map_get(u->stored, p->u.load.buffer->id) ||
            p->u.load.buffer->scope == SCOPE_SHARED ||
            (p->u.load.buffer->alias && map_get(u->stored, p->u.load.buffer->alias->id));
}

static void by_index(void *user, const Idx *x)
{
    Uses *u = user;

    u->reads_stored = u->reads_stored || idx_reads_memory(x);
}

typedef struct {
    Ctx        *c;
    const Atom *var;
    bool        apart;
} Lie;

static void lies_apart(void *user, const Prim *p)
{
    Lie    *l = user;
    int64_t step;

    l->apart = l->apart || (p->kind == PRIM_LOAD &&
                            !(intrin_step(l->c, &p->u.load, l->var, &step) && step == 1));
}

/* What a word, or an access, is filled with comes as one. */
static bool comes_at_once(Ctx *c, const Stmt *loop)
{
    Lie l = {c, loop->u.loop.var, false};

    stmt_visit(loop->kids[0], &(TirVisit){.user = &l, .prim = lies_apart});
    return !l.apart;
}

/* Of so many numbers side by side. */
static int64_t registers_of(int64_t rounds, const Stmt *store)
{
    enum { WORD = 4 };
    int64_t bytes =
        store->kind == STMT_STORE ? rounds * dtype_bytes(store->u.store.buffer->dtype) : WORD;

    return (bytes + WORD - 1) / WORD;
}

/* Numbers that a thread keeps of s from one end of a round to the other. */
static int64_t registers(Ctx *c, const Stmt *s)
{
    int64_t n = 0, rounds = 1;

    if (s->kind == STMT_STORE)
        return 1;
    if (s->kind == STMT_FOR &&
        (!idx_is_const(s->u.loop.extent, &rounds) || rounds > MOST_REGS || s->u.loop.intrin))
        return MOST_REGS + 1;
    for (uint32_t i = 0; i < s->nkids; i++)
        n += registers(c, s->kids[i]);
    if (s->kind == STMT_FOR && s->u.loop.vector && comes_at_once(c, s))
        return n * registers_of(rounds, s->kids[0]);
    return n > MOST_REGS / rounds ? MOST_REGS + 1 : n * rounds;
}

/* Stages begin on borders of 16 bytes. */
static const Buffer *with_stages(Ctx *c, const Buffer *b, int64_t stages)
{
    const Idx **extent = NEW_ARRAY(c->arena, const Idx *, b->ndim + 1),
              **stride = NEW_ARRAY(c->scratch, const Idx *, b->ndim + 1);
    Buffer  to = *b;
    int64_t n = 1, step = 1, cells = BORDER / dtype_bytes(b->dtype);

    extent[0] = idx_const(c->arith, stages);
    for (uint32_t d = 0; d < b->ndim; d++)
        extent[d + 1] = b->extent[d];
    if (b->ndim) {
        buffer_strides(c, b, stride);
        if (!idx_is_const(b->extent[0], &n) || !idx_is_const(stride[0], &step))
            return NULL;
        while (cells > 1 && n * step % cells)
            n++;
        extent[1] = idx_const(c->arith, n);
    }
    to.ndim = b->ndim + 1;
    to.extent = extent;
    if (b->pitch) {
        Pitch *p = DUP_ARRAY(c->arena, b->pitch, 1);
        p->dim++;
        to.pitch = p;
    }
    return buffer_copy(c, b, to);
}

/* The most stages for which there is room in shared memory, up to what is asked for. */
static bool make_room(Loop *x)
{
    const Target *t = x->f->target;

    for (; x->stages > 1; x->stages--) {
        for (uint32_t i = 0; i < x->tiles.n; i++) {
            const Buffer *b = x->tiles.at[i], *to;
            if (b->stride || b->halo || b->alias || !(to = with_stages(x->c, b, x->stages)))
                return false;
            map_put(x->tile, b->id, (void *)(uintptr_t)to);
        }
        if (!t || !t->host || shared_needed(x->c, x->f, x->tile) <= t->shared_bytes)
            return true;
    }
    return false;
}

static bool can_pipeline(Loop *x)
{
    const LoopData *l = &x->loop->u.loop;
    const Stmt     *s = x->loop->kids[0];
    int64_t         lo;

    x->rounds = l->extent;
    if (!idx_is_const(l->lo, &lo) || lo != 0 || s->kind != STMT_SEQ)
        return false;
    x->stages = l->stages < x->rounds->hi ? l->stages : x->rounds->hi;
    for (; x->nfills < s->nkids && fills(s->kids[x->nfills]); x->nfills++) {
        stmt_visit(s->kids[x->nfills], &(TirVisit){x, note_tile, NULL, NULL, NULL});
        if (only_copies(x->c, s->kids[x->nfills]))
            x->copies = true;
        else
            x->regs += registers(x->c, s->kids[x->nfills]);
    }
    x->from = x->nfills;
    if (x->from < s->nkids && s->kids[x->from]->kind == STMT_AWAIT)
        x->from++;
    if (!x->nfills || x->from == s->nkids || x->regs > MOST_REGS)
        return false;

    Uses     all = uses(x, x->f->body);
    uint32_t here = uses(x, x->loop).n, inside = 0, stores = 0;
    for (uint32_t i = 0; i < x->nfills; i++) {
        stmt_visit(s->kids[i], &(TirVisit){&all, NULL, NULL, reads_stored, by_index});
        stores += uses(x, s->kids[i]).n;
    }
    for (uint32_t i = x->from; i < s->nkids; i++) {
        Uses u = uses(x, s->kids[i]);
        inside += u.n;
        for (uint32_t k = 0; k < x->tiles.n; k++)
            if (map_get(u.stored, x->tiles.at[k]->id))
                return false;
    }
    return !all.reads_stored && all.n == here && here == stores + inside && make_room(x);
}

/* ---- the loop ------------------------------------------------------------------------------------ */

static const Idx *const *in_stage(Loop *x, uint32_t n, const Idx *const *index)
{
    const Idx **at = NEW_ARRAY(x->c->arena, const Idx *, n + 1);

    at[0] = x->stage;
    for (uint32_t i = 0; i < n; i++)
        at[i + 1] = index[i];
    return at;
}

static const Prim *stage_load(Ctx *c, void *user, const Prim *p)
{
    Loop         *x = user;
    const Buffer *b = p->kind == PRIM_LOAD ? map_get(x->tile, p->u.load.buffer->id) : NULL;

    return b ? prim_loadv(c, b, in_stage(x, p->u.load.n, p->u.load.index), p->dtype.lanes,
                          p->u.load.mask)
             : p;
}

static const Stmt *stage_store(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    Loop            *x = user;
    const StoreData *d = &now->u.store;
    const Buffer    *b = now->kind == STMT_STORE ? map_get(x->tile, d->buffer->id) : NULL;

    (void)was;
    return b ? stmt_storev(c, b, in_stage(x, d->n, d->index), d->value, d->mask) : now;
}

/* s, whose accesses of tiles are those of a stage. */
static const Stmt *staged(Loop *x, const Stmt *s, const Idx *stage)
{
    x->stage = stage;
    return stmt_map(x->c, s, &(TirMap){.user = x, .stmt = stage_store, .prim = stage_load});
}

/* s of the round `at`. */
static const Stmt *of_round(Loop *x, const Stmt *s, const Idx *at)
{
    IdxSubst *sub = subst_new(x->c->arith, x->c->arena);

    subst_bind(sub, x->loop->u.loop.var, at);
    return stmt_subst(x->c, s, sub);
}

/* A fill cut in two: loads to registers, and what stores them. */
typedef struct {
    const Stmt *load, *store;
} Halves;

typedef struct {
    uint32_t   n;
    const Idx *extent[MOST_REGS], *index[MOST_REGS];
    VEC(const Buffer *) regs;
} Nest;

static Halves halves(Loop *x, const Stmt *s, Nest *nest)
{
    Ctx   *c = x->c;
    Halves h;

    if (s->kind == STMT_STORE) {
        const StoreData *d = &s->u.store;
        const char      *name = intern_printf(c->strings, "%s.next", d->buffer->name);
        const Buffer    *r = buffer_new(c, name, d->value->dtype, SCOPE_REG, nest->n, nest->extent);
        vec_push(c->arena, &nest->regs, r);
        h.load = stmt_store(c, r, nest->index, d->value);
        h.store = stmt_store(c, d->buffer, d->index, prim_load(c, r, nest->index));
        return h;
    }
    const Stmt **load = NEW_ARRAY(c->arena, const Stmt *, s->nkids),
               **store = NEW_ARRAY(c->arena, const Stmt *, s->nkids);
    LoopData l = s->u.loop;
    int64_t  rounds = 1;

    if (s->kind == STMT_FOR && idx_is_const(l.extent, &rounds) && rounds > 1) {
        nest->extent[nest->n] = l.extent;
        nest->index[nest->n++] = idx_sub(c->arith, idx_atom(c->arith, l.var), l.lo);
    }
    for (uint32_t i = 0; i < s->nkids; i++) {
        h = halves(x, s->kids[i], nest);
        load[i] = h.load;
        store[i] = h.store;
    }
    if (s->kind != STMT_FOR)
        return (Halves){stmt_with_kids(c, s, load), stmt_with_kids(c, s, store)};
    nest->n -= rounds > 1;
    l.rounds = 0;
    l.unroll = !l.vector;
    return (Halves){stmt_for(c, l, load[0], s->loc), stmt_for(c, l, store[0], s->loc)};
}

/* Only where there is that round. */
static const Stmt *if_round(Loop *x, const Idx *at, const Stmt *s)
{
    Arith     *A = x->c->arith;
    const Idx *left = idx_sub(A, idx_addc(A, x->rounds, -1), at);

    if (left->lo >= 0)
        return s;
    return stmt_if(x->c, pred_prim(x->c, pred_and(A, x->c->arena, PRED_TRUE, left)), s, NULL);
}

/* s does nothing but start products, and wait for them. */
static bool only_products(Ctx *c, const Stmt *s)
{
    if (s->kind == STMT_AWAIT || (s->kind == STMT_FOR && loop_is_of_group(c, &s->u.loop)))
        return true;
    if (s->kind != STMT_FOR && s->kind != STMT_SEQ)
        return false;
    for (uint32_t i = 0; i < s->nkids; i++)
        if (!only_products(c, s->kids[i]))
            return false;
    return s->nkids > 0;
}

/* A round does nothing but copy and multiply. */
static bool products_go_on(Loop *x)
{
    const Stmt   *body = x->loop->kids[0];
    const Machine m = machine_of(x->f->target);
    bool          all = x->copies && !x->regs && x->stages >= limit_gpu_stages_apart(&m);

    for (uint32_t i = x->from; all && i < body->nkids; i++)
        all = only_products(x->c, body->kids[i]);
    return all;
}

static const Stmt *drop_await(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    (void)user;
    (void)was;
    return now->kind == STMT_AWAIT ? stmt_seq(c, 0, NULL) : now;
}

static const Stmt *pipelined(Loop *x)
{
    Ctx          *c = x->c;
    Arith        *A = c->arith;
    const Stmt   *body = x->loop->kids[0];
    const bool    go_on = products_go_on(x);
    const int64_t rounds = x->stages - (go_on ? 2 : 1); /* ahead */
    const Idx    *k = idx_atom(A, x->loop->u.loop.var), *ahead = idx_addc(A, k, rounds),
              *stage = idx_modc(A, k, x->stages);
    LoopData l = x->loop->u.loop;
    Nest     nest = {0};
    VEC(const Stmt *) all = {0}, early = {0}, late = {0}, in = {0};
    const AwaitData copies = {.groups = (uint32_t)rounds - 1}, one = {1, true}, none = {0, true};

    for (int64_t s = 0; s < rounds; s++) {
        const Idx *at = idx_const(A, s);
        for (uint32_t i = 0; i < x->nfills; i++)
            vec_push(c->arena, &all,
                     if_round(x, at, of_round(x, staged(x, body->kids[i], at), at)));
        if (x->copies && s + 1 < rounds)
            vec_push(c->arena, &all, stmt_await(c, copies));
    }
    for (uint32_t i = 0; i < x->nfills; i++) {
        const Stmt *s = body->kids[i];
        Halves      h = {s, NULL};
        if (!only_copies(c, s))
            h = halves(x, s, &nest);
        vec_push(c->arena, &early, of_round(x, staged(x, h.load, stage), ahead));
        if (h.store)
            vec_push(c->arena, &late, of_round(x, staged(x, h.store, stage), ahead));
    }
    const Stmt *fill = if_round(x, ahead, stmt_seq(c, early.n, early.at));
    if (x->copies)
        vec_push(c->arena, &in, stmt_await(c, copies));
    if (!go_on)
        vec_push(c->arena, &in, fill);
    for (uint32_t i = x->from; i < body->nkids; i++) {
        const Stmt *s = staged(x, body->kids[i], stage);
        vec_push(c->arena, &in, go_on ? stmt_map(c, s, &(TirMap){.stmt = drop_await}) : s);
    }
    if (go_on) {
        vec_push(c->arena, &in, fill);
        vec_push(c->arena, &in, stmt_await(c, one));
    }
    if (late.n)
        vec_push(c->arena, &in, if_round(x, ahead, stmt_seq(c, late.n, late.at)));
    const Stmt *round = stmt_seq(c, in.n, in.at);
    for (uint32_t i = nest.regs.n; i-- > 0;)
        round = stmt_alloc(c, nest.regs.at[i], round);
    l.stages = 0;
    if (x->stages == 2 && x->rounds->hi > x->stages && !l.rounds && stmt_is_written_out(round, 1))
        l.rounds = (uint32_t)x->stages;
    vec_push(c->arena, &all, stmt_for(c, l, round, x->loop->loc));
    if (go_on)
        vec_push(c->arena, &all, stmt_await(c, none));
    return stmt_seq(c, all.n, all.at);
}

/* ---- functions ----------------------------------------------------------------------------------- */

typedef struct {
    Loop       *x;
    const Stmt *to;
} Put;

static const Stmt *put(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    Put          *p = user;
    const Buffer *b = now->kind == STMT_ALLOC ? map_get(p->x->tile, now->u.buffer->id) : NULL;

    if (was == p->x->loop)
        return p->to;
    return b ? stmt_alloc(c, b, now->kids[0]) : now;
}

static bool find_marked(void *user, const Stmt *s)
{
    Loop *x = user;

    if (!x->loop && s->kind == STMT_FOR && s->u.loop.stages)
        x->loop = s;
    return !x->loop;
}

static const Func *pipeline_func(Ctx *c, void *user, const Func *f)
{
    (void)user;
    if (f->kind != FUNC_DEVICE)
        return f;
    f = func_with_body(c, f, stmt_map(c, f->body, &(TirMap){.stmt = await_all}));
    for (;;) {
        Loop x = {.c = c, .f = f, .tile = map_new(c->arena)};
        stmt_visit(f->body, &(TirVisit){&x, find_marked, NULL, NULL, NULL});
        if (!x.loop)
            return f;
        Put p = {.x = &x};
        if (can_pipeline(&x)) {
            p.to = pipelined(&x);
        } else {
            LoopData l = x.loop->u.loop;
            l.stages = 0;
            x.tile = map_new(c->scratch);
            p.to = stmt_for(c, l, x.loop->kids[0], x.loop->loc);
        }
        f = func_with_body(c, f, stmt_map(c, f->body, &(TirMap){.user = &p, .stmt = put}));
    }
}

const TirModule *software_pipeline(Ctx *c, const TirModule *m)
{
    return tirmod_map(c, m, pipeline_func, NULL);
}
