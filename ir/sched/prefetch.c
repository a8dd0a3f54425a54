/* Hints to the memory: what is read soon is asked for now.
 *
 *     prefetch %w by 4096                  with every vector that is loaded, the one 4096 bytes on
 *     prefetch_next %x at %q over %blk     during %blk, what its next round reads of %x
 *     load_ahead %sums by 4                what these multiply, 4 sums before
 * (passes/tir/load_ahead.c)
 *
 * The second is for a tensor that is read in one part of a round, while another part computes and
 * leaves the memory idle.  The box that a round reads is cut into as many runs of cache lines as
 * %q runs in a round, or a small multiple; each asks for its own.  Runs beyond the box, and the box
 * behind the last round, are harmless. */
#include "ir/sched/impl.h"

#include <string.h>

const Func *step_prefetch(Work *w)
{
    const StepArg *ta = step_arg(w->st, 0), *by = step_option(w->st, "by");

    if (!ta || !ta->name || !by || by->num < 1 || by->num > MAX_AHEAD)
        return refuse(w, "write `prefetch %%t by 4096`, bytes up to %d", MAX_AHEAD);
    const Buffer *t = buffer_named(w, ta->name);
    if (!t)
        return NULL;
    Buffer now = *t;
    now.ahead = (uint32_t)by->num;
    return with_buffer(w, w->f, t, buffer_copy(w->c, t, now));
}

const Func *step_load_ahead(Work *w)
{
    const StepArg *ta = step_arg(w->st, 0), *by = step_option(w->st, "by");

    if (!ta || !ta->name || !by || by->num < 1 || by->num > MAX_HINT)
        return refuse(w, "write `load_ahead %%t by 4`, sums up to %d", MAX_HINT);
    const Buffer *t = buffer_named(w, ta->name);
    if (!t)
        return NULL;
    if (t->scope != SCOPE_REG)
        return refuse(w, "%%%s is not in registers", t->name);
    const Func *f = w->f;
    for (uint32_t i = 0; i < w->nest.n; i++) { /* loops that were peeled have one each */
        const Buffer *b = stmt_at(w, i)->kind == STMT_ALLOC ? stmt_at(w, i)->u.buffer : NULL;

        if (!b || b->scope != SCOPE_REG || strcmp(b->name, t->name))
            continue;
        Buffer now = *b;
        now.early = (uint32_t)by->num;
        f = with_buffer(w, f, b, buffer_copy(w->c, b, now));
    }
    return f;
}

/* The box of a round: `rows` runs of memory, its outer dimensions counted row-major; a run is along
 * dimension `last`. */
typedef struct {
    const Idx **lo;
    int64_t    *extent;
    uint32_t    last;
    int64_t     rows, line; /* cells of the inner dimensions of one index of `last` */
} Box;

/* False: there are too many rows to count. */
static bool box_runs(const Buffer *t, Box *b)
{
    int64_t whole, lines = CACHE_LINE / dtype_bytes(t->dtype);

    b->last = t->ndim - 1;
    b->line = 1;
    while (b->last > 0 && idx_is_const(t->extent[b->last], &whole) && b->extent[b->last] == whole &&
           b->line * whole <= lines)
        b->line *= whole, b->last--;
    b->rows = 1;
    for (uint32_t d = 0; d < b->last; d++)
        if (!checked_mul(b->rows, b->extent[d], &b->rows))
            return false;
    return true;
}

/* How the rows are cut: `each` runs in one of `rounds`, a row in `parts`; least is left over. */
static void share(int64_t rows, int64_t rounds, int64_t *parts, int64_t *each)
{
    double least = 2;

    for (int64_t n = 1; n <= 4 || least > 1; n++) {
        int64_t cut = n * rounds / rows;
        double  waste = cut ? 1 - (double)(rows * cut) / (double)(n * rounds) : 2;
        if (waste < least - 0.05)
            least = waste, *parts = cut, *each = n;
    }
}

static const Stmt *ask(Work *w, const Buffer *t, const Box *b, const Idx *run, int64_t parts)
{
    Arith      *A = w->c->arith;
    int64_t     width = (b->extent[b->last] + parts - 1) / parts;
    int64_t     lines = (width * b->line * dtype_bytes(t->dtype) + CACHE_LINE - 1) / CACHE_LINE;
    const Idx **at = NEW_ARRAY(w->c->scratch, const Idx *, t->ndim + 1);
    const Idx  *row = idx_divc(A, run, parts);

    for (uint32_t d = 0; d < t->ndim; d++)
        at[d] = b->lo[d];
    at[b->last] = idx_add(A, at[b->last], idx_mulc(A, idx_modc(A, run, parts), width));
    for (uint32_t d = b->last; d-- > 0;) {
        const Idx *digit = d ? idx_modc(A, row, b->extent[d]) : row;
        at[d] = idx_add(A, at[d], digit);
        row = idx_divc(A, row, b->extent[d]);
    }
    return stmt_prefetch(w->c, t, at, (uint32_t)(lines < MAX_LINES ? lines : MAX_LINES));
}

/* The loop at site `q` in the loop at site `o`. */
static bool ask_in(Work *w, const Buffer *t, uint32_t q, uint32_t o)
{
    Arith    *A = w->c->arith;
    AtomSet  *inner = atomset_new(w->c->scratch);
    Box       b = {NEW_ARRAY(w->c->scratch, const Idx *, t->ndim + 1),
                   NEW_ARRAY(w->c->scratch, int64_t, t->ndim + 1), 0, 0, 0};
    Sites     path = loops_around_site(w, o, q);
    int64_t   rounds = 1, n, parts = 1, each = 1;
    IdxSubst *next = subst_new(A, w->c->scratch);
    VEC(const Stmt *) body = {0};
    const Idx *round = idx_const(A, 0);

    for (uint32_t i = o + 1; i < w->nest.at[o].end; i++)
        if (stmt_at(w, i)->kind == STMT_FOR)
            atomset_add(inner, loop_at(w, i)->var);
    if (!region_of_reads(w->c, body_of(stmt_at(w, o)), t, inner, b.lo, b.extent) || !t->ndim)
        return refuse(w, "nothing in %%%s reads %%%s", loop_at(w, o)->var->name, t->name), false;
    vec_push(w->c->scratch, &path, q);
    for (uint32_t i = 0; i < path.n; i++) {
        const LoopData *l = loop_at(w, path.at[i]);
        if (!loop_extent_of(stmt_at(w, path.at[i]), &n) || !checked_mul(rounds, n, &rounds))
            return refuse(w, "the extent of %%%s is not known", l->var->name), false;
        round = idx_add(A, idx_mulc(A, round, n), idx_sub(A, idx_atom(A, l->var), l->lo));
    }
    subst_bind(next, loop_at(w, o)->var, idx_addc(A, idx_atom(A, loop_at(w, o)->var), 1));
    for (uint32_t d = 0; d < t->ndim; d++)
        b.lo[d] = idx_subst(next, b.lo[d]);
    if (!box_runs(t, &b) || b.rows > 64 * rounds)
        return refuse(w, "%%%s runs too seldom for %lld rows of %%%s", loop_at(w, q)->var->name,
                      (long long)b.rows, t->name),
               false;
    share(b.rows, rounds, &parts, &each);
    for (int64_t i = 0; i < each; i++)
        vec_push(w->c->scratch, &body,
                 ask(w, t, &b, idx_addc(A, idx_mulc(A, round, each), i), parts));
    vec_push(w->c->scratch, &body, body_with_edits(w, q));
    const Stmt *s = stmt_at(w, q);
    edit(w, s, stmt_for(w->c, s->u.loop, stmt_seq(w->c, body.n, body.at), s->loc));
    return true;
}

const Func *step_prefetch_next(Work *w)
{
    const StepArg *ta = step_arg(w->st, 0), *at = step_option(w->st, "at"),
                  *over = step_option(w->st, "over");
    Sites inner, outer;

    if (!ta || !ta->name || !at || !at->name || !over || !over->name)
        return refuse(w, "write `prefetch_next %%t at %%inner over %%outer`");
    const Buffer *t = buffer_named(w, ta->name);
    if (!t || !loops_named(w, at->name, &inner) || !loops_named(w, over->name, &outer))
        return NULL;
    if (!is_param(w, t))
        return refuse(w, "%%%s is no parameter", t->name);
    for (uint32_t i = 0; i < inner.n; i++) {
        uint32_t o = NO_SITE;
        for (uint32_t k = 0; k < outer.n; k++)
            if (outer.at[k] != inner.at[i] && inside(w, inner.at[i], outer.at[k]))
                o = outer.at[k];
        if (o == NO_SITE)
            return refuse(w, "%%%s is not in %%%s", at->name, over->name);
        if (loop_at(w, inner.at[i])->vector)
            return refuse(w, "%%%s is a vector loop", at->name);
        if (!ask_in(w, t, inner.at[i], o))
            return NULL;
    }
    return finish(w);
}
