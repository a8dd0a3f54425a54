/* Steps that say how code is made: the marks (parallel, vectorize, unroll, bind, outline) and
 * contract.  Marks change nothing here; the passes of passes/tir carry them out. */
#include "ir/sched/impl.h"
#include "ir/tir/intrin.h"

#include <string.h>

/* Gives the loops the marks of `with`. */
static const Func *mark(Work *w, const Sites *loops, LoopData with)
{
    for (uint32_t i = loops->n; i-- > 0;) { /* inner copies first: none lies in another */
        const Stmt *loop = stmt_at(w, loops->at[i]);
        LoopData    l = loop->u.loop;
        marks_add(&loop_mark_table, &l, &with);
        edit(w, loop, stmt_for(w->c, l, body_of(loop), loop->loc));
    }
    return finish(w);
}

/* The one loop argument, all copies. */
static bool one_loop(Work *w, Sites *loops)
{
    const StepArg *l = step_arg(w->st, 0);
    if (!l || !l->name)
        return refuse(w, "which loop?") != NULL;
    if (!loops_named(w, l->name, loops))
        return false;
    for (uint32_t i = 1; i < loops->n; i++)
        if (inside(w, loops->at[i], loops->at[i - 1]))
            return refuse(w, "a copy of %%%s lies inside another", l->name) != NULL;
    return true;
}

/* ---- parallel and bind ------------------------------------------------------------------------- */

/* Every access to b lies inside the site: it can live there.  A halo is filled by every thread. */
static bool is_local(const Work *w, const Buffer *b, uint32_t site)
{
    if (is_param(w, b))
        return false;
    Sites all = blocks_in(w, NO_SITE);
    for (uint32_t i = 0; i < all.n; i++) {
        if (inside(w, all.at[i], site) || is_halo_of(block_at(w, all.at[i]), b))
            continue;
        Access a = access_of(stmt_at(w, all.at[i]), b);
        if (a.loads || a.stores)
            return false;
    }
    return true;
}

static bool uses_spatially(const BlockData *b, const Atom *var)
{
    for (uint32_t i = 0; i < b->nspatial; i++)
        if (idx_uses(b->bind[i], var))
            return true;
    return false;
}

/* The cells of the block tell which iteration of the loop writes them. */
static bool cells_tell(Work *w, const BlockData *b, const Atom *var)
{
    const Idx *out;

    return invert(w->c, b->nspatial, b->bind, b->bind, 1, &var, &out) && out;
}

/* Iterations of the loop write different cells, or cells of their own.  Arena buffers that live
 * inside become private (their scope is changed in `priv`). */
static bool check_parallel(Work *w, uint32_t site, Buffers *priv)
{
    const LoopData *l = loop_at(w, site);
    Sites           blocks = blocks_in(w, site);
    bool            same = true;

    if (l->kind != LOOP_SPATIAL)
        for (uint32_t i = 0; i < blocks.n; i++) {
            const BlockData *b = block_at(w, blocks.at[i]);
            for (uint32_t k = b->nspatial; k < b->nspatial + b->nreduce; k++)
                if (l->var->lo == l->var->hi || idx_uses(b->bind[k], l->var))
                    return refuse(w, "'%s' reduces over it; rfactor first", b->name) != NULL;
        }
    if (l->kind != LOOP_SPATIAL)
        return refuse(w, "%%%s is not spatial", l->var->name) != NULL;
    for (uint32_t i = 1; i < blocks.n; i++)
        same &= block_at(w, blocks.at[i])->name == block_at(w, blocks.at[0])->name;
    for (uint32_t i = 0; i < blocks.n; i++) {
        const BlockData *b = block_at(w, blocks.at[i]);
        if (b->opaque)
            return refuse(w, "'%s' is hand-written", b->name) != NULL;
        Buffers out = buffers_written(w->c, stmt_at(w, blocks.at[i]));
        for (uint32_t k = 0; k < out.n; k++) {
            if (is_local(w, out.at[k], site)) {
                if (out.at[k]->scope == SCOPE_ARENA)
                    vec_push(w->c->scratch, priv, out.at[k]);
                continue;
            }
            bool unit = l->var->lo == l->var->hi;
            if ((!unit && !uses_spatially(b, l->var)) ||
                (b->redundant && !same && !cells_tell(w, b, l->var)))
                return refuse(w, "its iterations write the same cells of %%%s", out.at[k]->name) !=
                       NULL;
        }
    }
    return true;
}

static const Buffer *to_private(Ctx *c, void *user, const Buffer *b)
{
    Map          *m = user;
    const Buffer *now = map_get(m, b->id);
    if (!now)
        return b;
    if (now == b) { /* the first time */
        Buffer changed = *b;
        changed.scope = SCOPE_PRIVATE;
        now = buffer_copy(c, b, changed);
        map_put(m, b->id, (void *)(uintptr_t)now);
    }
    return now;
}

static const Func *make_private(Work *w, const Func *f, const Buffers *priv)
{
    if (!f || !priv->n)
        return f;
    Map *m = map_new(w->c->scratch);
    for (uint32_t i = 0; i < priv->n; i++)
        map_put(m, priv->at[i]->id, (void *)(uintptr_t)priv->at[i]);
    return func_with_body(w->c, f,
                          stmt_map(w->c, f->body, &(TirMap){.user = m, .buffer = to_private}));
}

const Func *step_parallel(Work *w)
{
    Sites   loops;
    Buffers priv = {0};

    if (!one_loop(w, &loops))
        return NULL;
    for (uint32_t i = 0; i < loops.n; i++) {
        Sites outer = loops_around_site(w, NO_SITE, loops.at[i]);
        if (loop_at(w, loops.at[i])->vector)
            return refuse(w, "its rounds are lanes of a vector");
        for (uint32_t k = 0; k < outer.n; k++)
            if (loop_at(w, outer.at[k])->parallel)
                return refuse(w, "it lies inside the parallel loop %%%s",
                              loop_at(w, outer.at[k])->var->name);
        for (uint32_t k = loops.at[i] + 1; k < w->nest.at[loops.at[i]].end; k++)
            if (stmt_at(w, k)->kind == STMT_FOR && loop_at(w, k)->parallel)
                return refuse(w, "the parallel loop %%%s lies inside it", loop_at(w, k)->var->name);
        if (!check_parallel(w, loops.at[i], &priv))
            return NULL;
    }
    return make_private(w, mark(w, &loops, (LoopData){.parallel = true}), &priv);
}

/* The loop that is bound to an axis of blocks, around the site. */
static uint32_t block_loop(const Work *w, uint32_t site)
{
    Sites outer = loops_around_site(w, NO_SITE, site);

    for (uint32_t i = 0; i < outer.n; i++)
        if (loop_at(w, outer.at[i])->bind && loop_at(w, outer.at[i])->bind < AXIS_THREAD_X)
            return outer.at[i];
    return NO_SITE;
}

/* Threads that share a sequential loop meet in every round of it: those of a block can, in memory
 * that it shares; nothing makes others wait for each other in a launch. */
static bool meets_by_rounds(Work *w, uint32_t loop, BindAxis axis)
{
    uint32_t top = top_of(w, loop), block = axis >= AXIS_THREAD_X ? block_loop(w, loop) : NO_SITE;

    for (uint32_t k = top; k < w->nest.at[top].end; k++) {
        if (stmt_at(w, k)->kind != STMT_FOR || loop_at(w, k)->kind != LOOP_SEQ ||
            inside(w, k, loop))
            continue;
        const char *name = loop_at(w, k)->var->name;
        if (block == NO_SITE || !inside(w, k, block))
            return refuse(w, "the sequential loop %%%s does not lie inside it", name) != NULL;
        Buffers out = buffers_written(w->c, stmt_at(w, block));
        for (uint32_t i = 0; i < out.n; i++) {
            Access a = access_of(stmt_at(w, block), out.at[i]);
            if (a.loads && !is_local(w, out.at[i], block))
                return refuse(w, "threads hand on %%%s in rounds of %%%s, and others see it",
                              out.at[i]->name, name) != NULL;
        }
    }
    return true;
}

const Func *step_bind(Work *w)
{
    static const char *const axes[] = {"blockIdx.x",  "blockIdx.y",  "blockIdx.z",
                                       "threadIdx.x", "threadIdx.y", "threadIdx.z"};
    const StepArg           *a = step_arg(w->st, 1);
    Sites                    loops;
    Buffers                  priv = {0};
    BindAxis                 axis = AXIS_BLOCK_X;
    int64_t                  n;

    if (!a || !a->name || !one_loop(w, &loops))
        return a && a->name ? NULL : refuse(w, "write `bind %%x threadIdx.x`");
    while (axis < AXIS_COUNT && strcmp(axes[axis - AXIS_BLOCK_X], a->name) != 0)
        axis++;
    if (!strcmp(a->name, "threadIdx"))
        axis = AXIS_THREAD_X;
    if (axis == AXIS_COUNT)
        return refuse(w, "there is no axis %s", a->name);
    for (uint32_t i = 0; i < loops.n; i++) {
        n = loop_at(w, loops.at[i])->extent->hi;
        if (axis >= AXIS_THREAD_X && !loop_extent_of(stmt_at(w, loops.at[i]), &n))
            return refuse(w, "a run decides how many threads that would be");
        if (axis >= AXIS_THREAD_X && w->s->target && w->s->target->max_threads > 1 &&
            n > w->s->target->max_threads)
            return refuse(w, "%lld threads, the target has %u", (long long)n,
                          w->s->target->max_threads);
        Sites outer = loops_around_site(w, NO_SITE, loops.at[i]);
        for (uint32_t k = 0; k < outer.n; k++)
            if (loop_at(w, outer.at[k])->bind == axis)
                return refuse(w, "%%%s outside is bound to it", loop_at(w, outer.at[k])->var->name);
        if (!meets_by_rounds(w, loops.at[i], axis))
            return NULL;
        if (!check_parallel(w, loops.at[i], &priv))
            return NULL;
    }
    return mark(w, &loops, (LoopData){.bind = axis});
}

/* ---- vectorize and unroll ------------------------------------------------------------------------ */

enum { MAX_LANES = 64, MAX_UNROLLED = 40000 };

const Func *step_vectorize(Work *w)
{
    Sites   loops;
    int64_t n;

    if (!one_loop(w, &loops))
        return NULL;
    for (uint32_t i = 0; i < loops.n; i++) {
        const LoopData *l = loop_at(w, loops.at[i]);
        if (!loop_extent_of(stmt_at(w, loops.at[i]), &n))
            return refuse(w, "its extent is not constant");
        if (n > MAX_LANES)
            return refuse(w, "%lld lanes are too many; split it", (long long)n);
        if (l->kind != LOOP_SPATIAL)
            return refuse(w, "it is not spatial");
        if (l->unroll || l->parallel || l->bind)
            return refuse(w, "it is already marked");
        for (uint32_t k = loops.at[i] + 1; k < w->nest.at[loops.at[i]].end; k++)
            if (stmt_at(w, k)->kind == STMT_ALLOC ||
                (stmt_at(w, k)->kind == STMT_FOR && loop_at(w, k)->vector))
                return refuse(w, "it holds an alloc or another vector loop");
        if (has_opaque(w, loops.at[i]))
            return refuse(w, "it holds hand-written code");
    }
    return mark(w, &loops, (LoopData){.vector = true});
}

/* Operations of a prim, one arm of a case. */
static uint64_t prim_size(const Prim *p)
{
    uint64_t n = 1, arm = 0;
    for (uint32_t i = 0; i < p->nkids; i++) {
        uint64_t k = prim_size(p->kids[i]);
        if (p->kind == PRIM_CASE)
            arm = k > arm ? k : arm;
        else
            n += k;
        if (n > MAX_UNROLLED)
            return n;
    }
    return n + arm;
}

/* Stores and operations once `unroll` marks are carried out; loops in `more` count as marked. */
static uint64_t unrolled_size(const Stmt *s, const Map *more)
{
    uint64_t n = s->kind == STMT_STORE ? 1 + prim_size(s->u.store.value) : 0;
    for (uint32_t i = 0; i < s->nkids; i++)
        n += unrolled_size(s->kids[i], more);
    if (s->kind == STMT_FOR && (s->u.loop.unroll || map_get(more, PTR_KEY(s)))) {
        int64_t e;
        if (loop_extent_of(s, &e) && n <= MAX_UNROLLED)
            n *= (uint64_t)(e < MAX_UNROLLED ? e : MAX_UNROLLED);
    }
    return n;
}

static const Stmt *mark_unroll(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    if (was->kind != STMT_FOR || !map_get(user, PTR_KEY(was)))
        return now;
    LoopData l = now->u.loop;
    l.unroll = true;
    return stmt_for(c, l, now->kids[0], now->loc);
}

const Func *step_unroll(Work *w)
{
    Sites    all = {0}, loops;
    Map     *more = map_new(w->c->scratch);
    int64_t  e;
    uint64_t before = unrolled_size(w->s->f->body, more);

    for (uint32_t i = 0; i < step_nargs(w->st); i++) {
        const char *name = step_arg(w->st, i)->name;
        if (!name || !loops_named(w, name, &loops))
            return name ? NULL : refuse(w, "which loop?");
        for (uint32_t k = 0; k < loops.n; k++) {
            if (!loop_extent_of(stmt_at(w, loops.at[k]), &e))
                return refuse(w, "the extent of %%%s is not constant", name);
            if (loop_marks(loop_at(w, loops.at[k])) & ~(uint32_t)MARK_UNROLL)
                return refuse(w, "%%%s is already marked", name);
            if (has_opaque(w, loops.at[k]))
                return refuse(w, "%%%s holds hand-written code", name);
            map_put(more, PTR_KEY(stmt_at(w, loops.at[k])), w);
            vec_push(w->c->scratch, &all, loops.at[k]);
        }
    }
    if (!all.n)
        return refuse(w, "which loop?");
    uint64_t after = unrolled_size(w->s->f->body, more);
    if (after > MAX_UNROLLED && after > before)
        return refuse(w, "%llu operations unrolled, the limit is %d", (unsigned long long)after,
                      MAX_UNROLLED);
    /* One loop may lie in another: marks are set in one walk, not by edits. */
    return func_with_body(w->c, w->f,
                          stmt_map(w->c, w->f->body, &(TirMap){.user = more, .stmt = mark_unroll}));
}

/* A loop whose rounds are too many, or not known, to be written out here. */
const Func *step_unroll_hint(Work *w)
{
    const StepArg *by = step_option(w->st, "by");
    Sites          loops;

    if (!by || by->num < 1 || by->num > MAX_HINT)
        return refuse(w, "write `unroll_hint %%k by 4`, rounds up to %d", MAX_HINT);
    if (!one_loop(w, &loops))
        return NULL;
    for (uint32_t i = 0; i < loops.n; i++)
        if (loop_marks(loop_at(w, loops.at[i])))
            return refuse(w, "it is already marked");
    return mark(w, &loops, (LoopData){.rounds = (uint32_t)by->num});
}

static bool find_shared(void *user, const Stmt *s)
{
    bool *found = user;

    *found = *found || (s->kind == STMT_ALLOC && s->u.buffer->scope == SCOPE_SHARED);
    return !*found;
}

/* What its rounds copy to shared memory is copied rounds ahead: the pass software_pipeline does it
 * where it can. */
const Func *step_pipeline(Work *w)
{
    const StepArg *by = step_option(w->st, "by");
    Sites          loops;

    if (!by || by->num < 2 || by->num > MAX_STAGES)
        return refuse(w, "write `pipeline %%k by 2`, stages up to %d", MAX_STAGES);
    if (!one_loop(w, &loops))
        return NULL;
    for (uint32_t i = 0; i < loops.n; i++) {
        const LoopData *l = loop_at(w, loops.at[i]);
        if (l->bind || l->unroll || l->vector || l->intrin || l->stages)
            return refuse(w, "it is already marked");
        Sites outer = loops_around_site(w, NO_SITE, loops.at[i]);
        for (uint32_t k = 0; k < outer.n; k++)
            if (idx_uses(l->extent, loop_at(w, outer.at[k])->var))
                return refuse(w, "its extent changes with %%%s",
                              loop_at(w, outer.at[k])->var->name);
        bool copies = false;
        stmt_visit(stmt_at(w, loops.at[i])->kids[0],
                   &(TirVisit){.user = &copies, .enter = find_shared});
        if (!copies)
            return refuse(w, "its rounds copy nothing to shared memory");
    }
    return mark(w, &loops, (LoopData){.stages = (uint32_t)by->num});
}

/* ---- tensorize ---------------------------------------------------------------------------------- */

/* One of the loops decides a condition of the block. */
static bool where_in(const BlockData *b, IdxSubst *bound, uint32_t n, const LoopData *const *loops)
{
    for (uint32_t i = 0; i < b->where.n; i++)
        for (uint32_t k = 0; k < n; k++)
            if (idx_uses(idx_subst(bound, b->where.ge0[i]), loops[k]->var))
                return true;
    return false;
}

/* The loop and those in it, down to one block with one store, compute a row of the intrinsic. */
static bool check_intrin(Work *w, uint32_t site, const char *text)
{
    const LoopData *loops[INTRIN_AXES];
    const LoopData *thread[AXIS_COUNT] = {NULL};
    const Stmt     *s = stmt_at(w, site), *store;
    IdxSubst       *bound = subst_new(w->c->arith, w->c->scratch);
    const Intrin   *row = intrin_find(w->c, text, 0, NULL);
    Sites           around = loops_around_site(w, NO_SITE, site);
    uint32_t        n = 0;
    IntrinMatch     m;
    WarpMatch       warp;
    bool            fits;

    if (row->warp && !(w->s->target && w->s->target->intrin_ops[row->id]))
        return refuse(w, "the target has no %s", text) != NULL;
    for (uint32_t i = 0; i < around.n; i++)
        thread[loop_at(w, around.at[i])->bind] = loop_at(w, around.at[i]);

    for (; s->kind == STMT_FOR && n < INTRIN_AXES; s = body_of(s)) {
        if (loop_marks(&s->u.loop))
            return refuse(w, "%%%s is already marked", s->u.loop.var->name) != NULL;
        loops[n++] = &s->u.loop;
    }
    if (s->kind != STMT_BLOCK || !(store = store_of(s)))
        return refuse(w, "it does not hold one block with one store") != NULL;
    bind_iters(s, bound);
    if (s->u.block.has_init || where_in(&s->u.block, bound, n, loops))
        return refuse(w, "'%s' starts its sum, or has a condition, inside", s->u.block.name) !=
               NULL;
    store = stmt_subst(w->c, store, bound);
    fits = row->warp && !row->lanes
               ? warp_match(w->c, text, &thread[AXIS_THREAD_X], n, loops, &store->u.store, &warp)
               : intrin_match(w->c, text, n, loops, &store->u.store, &m);
    if (!fits)
        return refuse(w, "'%s' in these loops is no %s", s->u.block.name, text) != NULL;
    if (row->sums && dtype_is_float(row->result.dtype))
        w->exact = false; /* instructions add in an order of their own */
    return true;
}

const Func *step_tensorize(Work *w)
{
    const StepArg *with = step_option(w->st, "with");
    Sites          loops;

    if (!with || !with->name)
        return refuse(w, "write `tensorize %%d with @dot4`");
    if (!intrin_find(w->c, with->name, 0, NULL))
        return refuse(w, "there is no intrinsic @%s", with->name);
    if (!one_loop(w, &loops))
        return NULL;
    for (uint32_t i = 0; i < loops.n; i++)
        if (!check_intrin(w, loops.at[i], with->name))
            return NULL;
    return mark(w, &loops, (LoopData){.intrin = with->name});
}

/* ---- outline ------------------------------------------------------------------------------------- */

const Func *step_outline(Work *w)
{
    Sites loops;

    if (w->st->nouts != 1)
        return refuse(w, "write `outline %%t -> @tile`");
    if (!one_loop(w, &loops))
        return NULL;
    for (uint32_t i = 0; i < loops.n; i++)
        for (uint32_t k = loops.at[i]; k < w->nest.at[loops.at[i]].end; k++) {
            if (stmt_at(w, k)->kind != STMT_FOR)
                continue;
            const LoopData *l = loop_at(w, k);
            if (l->bind || (l->parallel && k != loops.at[i]))
                return refuse(w, "%%%s inside is divided among threads", loop_at(w, k)->var->name);
            if (k != loops.at[i] && l->outline)
                return refuse(w, "%%%s inside is outlined", loop_at(w, k)->var->name);
        }
    return mark(w, &loops, (LoopData){.outline = w->st->out[0]});
}

/* ---- contract ------------------------------------------------------------------------------------ */

static const Prim *contract_prim(Ctx *c, void *user, const Prim *p)
{
    bool *changed = user;
    if ((p->kind != PRIM_ADD && p->kind != PRIM_SUB) || !dtype_is_float(p->dtype))
        return p;
    const Prim *a = p->kids[0], *b = p->kids[1];
    bool        add = p->kind == PRIM_ADD;
    if (b->kind == PRIM_MUL) {
        *changed = true;
        return prim_fma(c, add ? b->kids[0] : prim_neg(c, b->kids[0]), b->kids[1], a);
    }
    if (a->kind == PRIM_MUL) {
        *changed = true;
        return prim_fma(c, a->kids[0], a->kids[1], add ? b : prim_neg(c, b));
    }
    return p;
}

const Func *step_contract(Work *w)
{
    const StepArg *b = step_arg(w->st, 0);
    Sites          blocks;
    bool           changed = false;

    if (!b || !b->name)
        return refuse(w, "which block?");
    if (!blocks_named(w, b->name, &blocks))
        return NULL;
    if (w->s->target && !w->s->target->has_fma)
        return refuse(w, "the target has no fma");
    for (uint32_t i = 0; i < blocks.n; i++) {
        const Stmt *s = stmt_at(w, blocks.at[i]);
        edit(w, s, stmt_map(w->c, s, &(TirMap){.user = &changed, .prim = contract_prim}));
    }
    if (!changed)
        return refuse(w, "'%s' has no a*b+c", b->name);
    return finish(w);
}
