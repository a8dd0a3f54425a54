/* Steps on loops: split, fuse, reorder, partition.
 *
 *     split %x by 6 tail=even -> %t, %p      56 = 6 tiles of 6 and 4 of 5: two copies of %t
 *
 * None of them changes which cells a block computes: the loop variable is replaced by a form over
 * the new ones, in bindings, conditions and bodies alike. */
#include "ir/sched/impl.h"

#include <string.h>

/* ---- split ------------------------------------------------------------------------------------- */

enum { MOST_SIZES = 64 }; /* of pieces, each of which is code */

/* v = lo + base + o*step + i  for o < no, i < ni, around a copy of the body. */
typedef struct {
    const Idx *base, *no;
    int64_t    step, ni;
} Piece;

static const Stmt *split_piece(Work *w, const Stmt *loop, Piece p, bool fresh, const Idx *guard_end)
{
    Ctx            *c = w->c;
    const LoopData *l = &loop->u.loop;
    const Atom     *o = atom_upto(c->arith, w->st->out[0], p.no),
               *i = fresh_var(c, w->st->out[1], p.ni);
    const Idx *v =
        idx_add(c->arith, idx_mulc(c->arith, idx_atom(c->arith, o), p.step), idx_atom(c->arith, i));
    v = idx_add(c->arith, idx_add(c->arith, v, p.base), l->lo);
    IdxSubst *sub = subst_new(c->arith, c->scratch);
    subst_bind(sub, l->var, v);
    const Stmt *body =
        fresh ? fresh_copy(c, body_of(loop), sub) : stmt_subst(c, body_of(loop), sub);
    if (guard_end) /* v <= guard_end */
        body = blocks_guard(c, body, idx_sub(c->arith, guard_end, v));
    body = loop_around(c, i, idx_const(c->arith, p.ni), l->kind, body, loop->loc);
    return loop_around(c, o, p.no, l->kind, body, loop->loc);
}

/* The loop as pieces one behind the other, those that are always empty left out. */
static const Func *split_pieces(Work *w, const Stmt *loop, uint32_t n, const Piece *p)
{
    Ctx         *c = w->c;
    const Stmt **parts = NEW_ARRAY(c->scratch, const Stmt *, n);
    uint32_t     np = 0;

    for (uint32_t i = 0; i < n; i++)
        if (p[i].no->hi > 0 && p[i].ni) {
            parts[np] = split_piece(w, loop, p[i], np > 0, NULL);
            np++;
        }
    if (np > 1 && loop->u.loop.kind == LOOP_REDUCE) {
        vec_push(c->scratch, &w->cut, w->st->out[0]);
        vec_push(c->scratch, &w->cut, w->st->out[1]);
    }
    edit(w, loop, stmt_seq(c, np, parts));
    return w->f;
}

/* One loop for all rounds, the last of them under a condition. */
static const Func *split_guarded(Work *w, const Stmt *loop, const Idx *outer, int64_t inner)
{
    Arith     *A = w->c->arith;
    const Idx *end = idx_add(A, loop->u.loop.lo, idx_addc(A, loop->u.loop.extent, -1));
    Piece      all = {idx_const(A, 0), outer, inner, inner};

    edit(w, loop, split_piece(w, loop, all, false, end));
    return w->f;
}

/* One loop for all rounds, of which the last has what is left. */
static const Func *split_short(Work *w, const Stmt *loop, int64_t n)
{
    Ctx            *c = w->c;
    Arith          *A = c->arith;
    const LoopData *l = &loop->u.loop;
    const Idx      *rounds = idx_divc(A, idx_addc(A, l->extent, n - 1), n);
    const Atom     *o = atom_upto(A, w->st->out[0], rounds);
    const Idx      *at = idx_mulc(A, idx_atom(A, o), n);
    const Idx      *size = idx_min(A, idx_const(A, n), idx_sub(A, l->extent, at));
    const Atom     *i = atom_upto(A, w->st->out[1], size);
    IdxSubst       *sub = subst_new(A, c->scratch);

    subst_bind(sub, l->var, idx_add(A, idx_add(A, at, idx_atom(A, i)), l->lo));
    const Stmt *body = stmt_subst(c, body_of(loop), sub);
    body = loop_around(c, i, size, l->kind, body, loop->loc);
    edit(w, loop, loop_around(c, o, rounds, l->kind, body, loop->loc));
    return w->f;
}

static bool is_guarded(const char *tail)
{
    return !strcmp(tail, "if") || !strcmp(tail, "mask");
}

/* A loop of E rounds, a number that a run decides: E/n pieces of n, and of what is left one of each
 * power of two that its binary digits name, so that all have a constant size; with tail=each one
 * piece, there is one for every size that it may have.  23 by 6 is three of 6, one of 4 and one of
 * 1; or three of 6 and one of 5. */
static const Func *split_symbolic(Work *w, const Stmt *loop, int64_t n, const char *tail)
{
    Arith     *A = w->c->arith;
    const Idx *e = loop->u.loop.extent, *rest = idx_modc(A, e, n), *at = idx_sub(A, e, rest);
    bool       each = !strcmp(tail, "each");
    uint32_t   np = 0;
    Piece     *p = NEW_ARRAY(w->c->scratch, Piece, 32 + (each ? (size_t)n : 0));

    if (is_guarded(tail) && (rest->lo || rest->hi))
        return split_guarded(w, loop, idx_divc(A, idx_addc(A, e, n - 1), n), n);
    if (!strcmp(tail, "short") && (rest->lo || rest->hi))
        return split_short(w, loop, n);
    p[np++] = (Piece){idx_const(A, 0), idx_divc(A, e, n), n, n};
    for (int64_t size = n - 1; each && size > 0; size--) /* E - size is a multiple of n */
        p[np++] = (Piece){at,
                          idx_sub(A, idx_divc(A, idx_addc(A, e, -size), n),
                                  idx_divc(A, idx_addc(A, e, -size - 1), n)),
                          size, size};
    for (int k = 30; k >= 0 && !each; k--) {
        int64_t size = INT64_C(1) << k;

        if (size < n)
            p[np++] = (Piece){idx_add(A, at, idx_sub(A, rest, idx_modc(A, rest, 2 * size))),
                              idx_modc(A, idx_divc(A, rest, size), 2), size, size};
    }
    return split_pieces(w, loop, np, p);
}

static const Func *split_copy(Work *w, uint32_t site, int64_t n, bool into, const char *tail)
{
    Arith          *A = w->c->arith;
    const Stmt     *loop = stmt_at(w, site);
    const LoopData *l = &loop->u.loop;
    int64_t         e = 0;

    if (!loop_extent_of(loop, &e) && into)
        return refuse(w, "the extent of %%%s is not constant", l->var->name);
    if (has_opaque(w, site))
        return refuse(w, "%%%s holds hand-written code", l->var->name);
    if (loop_marks(l))
        return refuse(w, "%%%s is already marked", l->var->name);
    if (!l->extent->hi)
        return refuse(w, "%%%s is empty", l->var->name);
    if (!loop_extent_of(loop, NULL))
        return split_symbolic(w, loop, n, tail);
    int64_t    outer = into ? n : (e + n - 1) / n, inner = into ? (e + n - 1) / n : n;
    const Idx *zero = idx_const(A, 0);
    if (e % n == 0) {
        Piece all = {zero, idx_const(A, outer), inner, inner};
        edit(w, loop, split_piece(w, loop, all, false, NULL));
        return w->f;
    }
    if (is_guarded(tail))
        return split_guarded(w, loop, idx_const(A, outer), inner);
    if (!strcmp(tail, "short"))
        return refuse(w, "%%%s has a known number of rounds: tail=peel", l->var->name);
    Piece p[2];
    if (!strcmp(tail, "even") || !strcmp(tail, "each")) {
        int64_t q = e / outer, r = e % outer;
        p[0] = (Piece){zero, idx_const(A, r), q + 1, q + 1};
        p[1] = (Piece){idx_const(A, r * (q + 1)), idx_const(A, outer - r), q, q};
    } else {
        p[0] = (Piece){zero, idx_const(A, e / inner), inner, inner};
        p[1] = (Piece){idx_const(A, e / inner * inner), idx_const(A, 1), 0, e % inner};
    }
    return split_pieces(w, loop, COUNT(p), p);
}

/* A loop that is cut in copies stays so under another name. */
static void inherit_cut(Work *w, const char *was, const char *now)
{
    for (uint32_t i = 0; i < w->s->cut.n; i++)
        if (w->s->cut.at[i] == was) {
            vec_push(w->c->scratch, &w->cut, now);
            return;
        }
}

const Func *step_split(Work *w)
{
    const StepArg *l = step_arg(w->st, 0), *by = step_option(w->st, "by");
    const StepArg *into = step_option(w->st, "into"), *tail = step_option(w->st, "tail");
    const StepArg *n = by ? by : into;
    Sites          loops;

    if (!l || !l->name || !n || n->name || w->st->nouts != 2)
        return refuse(w, "write `split %%x by 8 -> %%o, %%i`");
    if (w->st->out[0] == w->st->out[1])
        return refuse(w, "the two new names are the same");
    if (n->num <= 0 || n->num > INT32_MAX)
        return refuse(w, "the factor must be positive");
    const char *how = tail && tail->name ? tail->name : "even";
    if (strcmp(how, "even") && strcmp(how, "each") && strcmp(how, "peel") && strcmp(how, "if") &&
        strcmp(how, "mask") && strcmp(how, "short"))
        return refuse(w, "tail is even, each, peel, short, if or mask");
    if (!strcmp(how, "each") && n->num > MOST_SIZES)
        return refuse(w, "tail=each is for factors of at most %d", MOST_SIZES);
    if (!loops_named(w, l->name, &loops) || !name_is_free(w, w->st->out[0], &loops) ||
        !name_is_free(w, w->st->out[1], &loops))
        return NULL;
    inherit_cut(w, loop_at(w, loops.at[0])->var->name, w->st->out[0]);
    inherit_cut(w, loop_at(w, loops.at[0])->var->name, w->st->out[1]);
    for (uint32_t i = 0; i < loops.n; i++)
        if (!split_copy(w, loops.at[i], n->num, into != NULL, how))
            return NULL;
    return finish(w);
}

/* ---- partition --------------------------------------------------------------------------------- */

const Func *step_partition(Work *w)
{
    const StepArg *l = step_arg(w->st, 0), *at = step_option(w->st, "at");
    Ctx           *c = w->c;
    Sites          loops;

    if (!l || !l->name || !at || at->name)
        return refuse(w, "write `partition %%x at 8`");
    if (!loops_named(w, l->name, &loops))
        return NULL;
    for (uint32_t k = 0; k < loops.n; k++) {
        const Stmt     *loop = stmt_at(w, loops.at[k]);
        const LoopData *d = &loop->u.loop;
        int64_t         e;
        if (!loop_extent_of(loop, &e))
            return refuse(w, "the extent of %%%s is not constant", d->var->name);
        if (at->num <= 0 || at->num >= e)
            return refuse(w, "%%%s runs from 0 to %lld", d->var->name, (long long)e - 1);
        if (has_opaque(w, loops.at[k]) || loop_marks(d))
            return refuse(w, "%%%s is marked or holds hand-written code", d->var->name);
        const Stmt *parts[2];
        for (int side = 0; side < 2; side++) {
            const Atom *v = fresh_var(c, d->var->name, side ? e - at->num : at->num);
            IdxSubst   *sub = subst_new(c->arith, c->scratch);
            const Idx  *x = idx_add(c->arith, idx_atom(c->arith, v), d->lo);
            subst_bind(sub, d->var, side ? idx_addc(c->arith, x, at->num) : x);
            const Stmt *body =
                side ? fresh_copy(c, body_of(loop), sub) : stmt_subst(c, body_of(loop), sub);
            parts[side] = loop_of(c, v, d->kind, body, loop->loc);
        }
        if (d->kind == LOOP_REDUCE)
            vec_push(c->scratch, &w->cut, d->var->name);
        edit(w, loop, stmt_seq(c, 2, parts));
    }
    return finish(w);
}

/* ---- fuse -------------------------------------------------------------------------------------- */

/* The loop of that name alone and directly inside `loop`, or NULL with a refusal. */
static const Stmt *fuse_inner(Work *w, const Stmt *loop, const char *name)
{
    Sites named;
    if (!loops_named(w, name, &named))
        return NULL;
    const Stmt *in = body_of(loop);
    for (uint32_t i = 0; i < named.n; i++)
        if (stmt_at(w, named.at[i]) == in)
            return in;
    refuse(w, "%%%s is not alone and directly inside %%%s", name, loop->u.loop.var->name);
    return NULL;
}

/* `any`: the extents of inner loops need not be numbers, which costs a division a round. */
static const Func *fuse_copy(Work *w, const Stmt *first, bool any)
{
    Ctx        *c = w->c;
    const Stmt *loop[MAX_STEP_ARGS];
    uint32_t    n = step_nargs(w->st);

    for (uint32_t i = 0; i < n; i++) {
        loop[i] = i ? fuse_inner(w, loop[i - 1], step_arg(w->st, i)->name) : first;
        if (!loop[i])
            return NULL;
        const LoopData *l = &loop[i]->u.loop;
        if (i && !any && !idx_is_const(l->extent, NULL))
            return refuse(w, "the extent of %%%s is not constant", l->var->name);
        if (i && l->extent->hi && l->extent->lo < 1)
            return refuse(w, "%%%s may be empty", l->var->name);
        for (uint32_t k = 0; k < i; k++)
            if (idx_uses(l->extent, loop[k]->u.loop.var))
                return refuse(w, "the extent of %%%s changes with %%%s", l->var->name,
                              loop[k]->u.loop.var->name);
        if (l->kind != first->u.loop.kind)
            return refuse(w, "%%%s and %%%s are loops of different kinds", first->u.loop.var->name,
                          l->var->name);
        if (l->kind == LOOP_SEQ)
            return refuse(w, "%%%s is sequential", l->var->name);
        if (loop_marks(l))
            return refuse(w, "%%%s is already marked", l->var->name);
        if (!l->extent->hi)
            return refuse(w, "%%%s is empty", l->var->name);
    }
    if (has_opaque(w, site_of(w, first)))
        return refuse(w, "%%%s holds hand-written code", first->u.loop.var->name);
    const Idx *total = first->u.loop.extent;
    for (uint32_t i = 1; i < n; i++)
        total = idx_mul(c->arith, total, loop[i]->u.loop.extent);
    const Atom *f = atom_upto(c->arith, w->st->out[0], total);
    const Idx  *left = idx_atom(c->arith, f);
    IdxSubst   *sub = subst_new(c->arith, c->scratch);
    for (uint32_t i = n; i-- > 0;) {
        const Idx *extent = loop[i]->u.loop.extent;
        const Idx *v = i ? idx_mod(c->arith, left, extent) : left;
        left = i ? idx_div(c->arith, left, extent) : left;
        subst_bind(sub, loop[i]->u.loop.var, idx_add(c->arith, v, loop[i]->u.loop.lo));
    }
    const Stmt *body = stmt_subst(c, body_of(loop[n - 1]), sub);
    edit(w, first, loop_around(c, f, total, first->u.loop.kind, body, first->loc));
    return w->f;
}

const Func *step_fuse(Work *w)
{
    uint32_t       n = step_nargs(w->st);
    const StepArg *extents = step_option(w->st, "extents");
    Sites          loops, all;

    if (n < 2 || w->st->nouts != 1)
        return refuse(w, "write `fuse %%a, %%b -> %%f`");
    if (extents && (!extents->name || strcmp(extents->name, "any")))
        return refuse(w, "extents is any");
    for (uint32_t i = 0; i < n; i++)
        if (!step_arg(w->st, i)->name)
            return refuse(w, "write `fuse %%a, %%b -> %%f`");
    if (!loops_named(w, step_arg(w->st, 0)->name, &loops))
        return NULL;
    Sites except = {0};
    for (uint32_t i = 0; i < n; i++) {
        if (!loops_named(w, step_arg(w->st, i)->name, &all))
            return NULL;
        if (!strchr(step_arg(w->st, i)->name, '#') && all.n != loops.n && i)
            return refuse(w, "%%%s has %u copies, %%%s %u", loop_at(w, loops.at[0])->var->name,
                          loops.n, loop_at(w, all.at[0])->var->name, all.n);
        for (uint32_t k = 0; k < all.n; k++)
            vec_push(w->c->scratch, &except, all.at[k]);
        inherit_cut(w, loop_at(w, all.at[0])->var->name, w->st->out[0]);
    }
    if (!name_is_free(w, w->st->out[0], &except))
        return NULL;
    for (uint32_t i = 0; i < loops.n; i++)
        if (!fuse_copy(w, stmt_at(w, loops.at[i]), extents != NULL))
            return NULL;
    return finish(w);
}

/* ---- reorder ----------------------------------------------------------------------------------- */

/* Which of the named loops this is; step_nargs if none. */
static uint32_t named_as(const Work *w, const Sites *named, const Stmt *s)
{
    uint32_t n = step_nargs(w->st);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < named[i].n; k++)
            if (stmt_at(w, named[i].at[k]) == s)
                return i;
    return n;
}

static bool is_unit(const Stmt *loop)
{
    return loop->u.loop.var->lo == loop->u.loop.var->hi;
}

static bool reduces(const Stmt *loop)
{
    return loop->u.loop.kind == LOOP_REDUCE && !is_unit(loop);
}

/* A reduce loop (of more than one iteration) that `order` moves past another, or NULL. */
static const Stmt *moved_reduction(const Stmts *chain, const Stmt *const *order)
{
    uint32_t i = 0, k = 0;
    for (;; i++, k++) {
        while (i < chain->n && !reduces(chain->at[i]))
            i++;
        while (k < chain->n && !reduces(order[k]))
            k++;
        if (i == chain->n || k == chain->n)
            return NULL;
        if (chain->at[i] != order[k])
            return order[k];
    }
}

/* Blocks besides the reduction run by its progress, and it is not rectangular: in another order the
 * iteration with the highest value need not come last. */
static bool waits(Work *w, uint32_t top)
{
    Sites    blocks = blocks_in(w, top);
    AtomSet *reduce = atomset_new(w->c->scratch);
    bool     mixed = false, guarded = false;
    for (uint32_t i = top; i < w->nest.at[top].end; i++)
        if (stmt_at(w, i)->kind == STMT_FOR && loop_at(w, i)->kind == LOOP_REDUCE)
            atomset_add(reduce, loop_at(w, i)->var);
    for (uint32_t i = 0; i < blocks.n; i++) {
        const BlockData *b = block_at(w, blocks.at[i]);
        mixed |= b->name != block_at(w, blocks.at[0])->name;
        for (uint32_t k = 0; b->nreduce && k < b->where.n; k++)
            guarded |= idx_uses_any(b->where.ge0[k], reduce);
    }
    return mixed && guarded;
}

static uint32_t place_in(const Stmt *const *order, const Stmt *loop)
{
    uint32_t i = 0;

    while (order[i] != loop)
        i++;
    return i;
}

/* Sequential loops keep their places among each other and among reductions, and pass a spatial loop
 * only if nothing goes from one of its iterations to another. */
static bool keeps_rounds(Work *w, const Stmts *chain, const Stmt *const *order)
{
    for (uint32_t q = 0; q < chain->n; q++) {
        const LoopData *seq = &chain->at[q]->u.loop;

        for (uint32_t i = 0; i < chain->n && seq->kind == LOOP_SEQ && !is_unit(chain->at[q]); i++) {
            const Stmt *s = chain->at[i];
            bool        passes = (i < q) != (place_in(order, s) < place_in(order, chain->at[q]));

            if (!passes || i == q || is_unit(s))
                continue;
            if (s->u.loop.kind != LOOP_SPATIAL)
                return refuse(w, "%%%s is sequential", seq->var->name) != NULL;
            const Buffer *shared = shared_cells(w, site_of(w, s), i > q ? seq->var : NULL);
            if (shared)
                return refuse(w,
                              "%%%s is sequential: iterations of %%%s touch the same cells of %%%s",
                              seq->var->name, s->u.loop.var->name, shared->name) != NULL;
        }
    }
    return true;
}

/* The chain from the outermost named loop `top` down to the last named one. */
static const Func *reorder_chain(Work *w, const Sites *named, const Stmt *top)
{
    Ctx     *c = w->c;
    uint32_t n = step_nargs(w->st), found = 0, at[MAX_STEP_ARGS];
    Stmts    chain = {0};

    for (uint32_t i = 0; i < n; i++)
        at[i] = NO_SITE;
    for (const Stmt *s = top; found < n; s = body_of(s)) {
        if (s->kind != STMT_FOR) {
            uint32_t missing = 0;
            while (at[missing] != NO_SITE)
                missing++;
            return refuse(w, "%%%s is not in one chain of loops with %%%s",
                          step_arg(w->st, missing)->name, top->u.loop.var->name);
        }
        uint32_t i = named_as(w, named, s);
        if (i < n) {
            at[i] = chain.n;
            found++;
        }
        vec_push(c->scratch, &chain, s);
    }
    if (has_opaque(w, site_of(w, top)))
        return refuse(w, "%%%s holds hand-written code", top->u.loop.var->name);
    /* The places of named loops get them in the order of the step. */
    const Stmt **order = NEW_ARRAY(c->scratch, const Stmt *, chain.n);
    uint32_t     next = 0;
    for (uint32_t k = 0; k < chain.n; k++)
        order[k] = named_as(w, named, chain.at[k]) < n ? chain.at[at[next++]] : chain.at[k];
    const Stmt *was_red = moved_reduction(&chain, order);
    if (!keeps_rounds(w, &chain, order))
        return NULL;
    if (was_red && waits(w, site_of(w, top)))
        return refuse(w, "other blocks wait for the end of the reduction over %%%s",
                      was_red->u.loop.var->name);
    if (was_red)
        w->exact = false;
    for (uint32_t k = 0; k < chain.n; k++)
        if (order[k] != chain.at[k] && order[k]->u.loop.outline)
            return refuse(w, "%%%s is outlined", order[k]->u.loop.var->name);
    const Stmt *body = body_of(chain.at[chain.n - 1]);
    for (uint32_t k = chain.n; k-- > 0;)
        body = stmt_for(c, order[k]->u.loop, body, order[k]->loc);
    edit(w, top, body);
    return w->f;
}

const Func *step_reorder(Work *w)
{
    uint32_t n = step_nargs(w->st);
    Sites    named[MAX_STEP_ARGS];

    if (n < 2)
        return refuse(w, "write `reorder %%a, %%b`");
    for (uint32_t i = 0; i < n; i++) {
        const char *name = step_arg(w->st, i)->name;
        if (!name || !loops_named(w, name, &named[i]))
            return name ? NULL : refuse(w, "write `reorder %%a, %%b`");
        for (uint32_t k = 0; k < i; k++)
            if (named[k].at[0] == named[i].at[0])
                return refuse(w, "%%%s is named twice", name);
    }
    /* Each outermost named loop starts a chain. */
    for (uint32_t k = 0; k < w->nest.n; k++) {
        if (named_as(w, named, stmt_at(w, k)) == n)
            continue;
        if (!reorder_chain(w, named, stmt_at(w, k)))
            return NULL;
        k = w->nest.at[k].end - 1;
    }
    return finish(w);
}
