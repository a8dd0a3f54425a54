/* cache_index: positions that memory says, each computed once.
 *
 *     cache_index out stack %out.i1 at %rows
 *
 *     %out[y, x] = %t[y, read(%ids[x]) % 20]         for x < 100, in every row of %rows
 *
 *       alloc %out.at: i32[100]
 *         block out.at  %out.at[a] = read(%ids[a]) % 20
 *         %out[y, x] = %t[y, read(%out.at[x])]
 *
 * There is a position for each round of the loops that are named.  Of a block that reads by several
 * (gather_nd) each has a table: `%out.at`, `%out.at1`, .. */
#include "ir/sched/impl.h"

enum { MOST_INDICES = 4 };

typedef struct {
    Work         *w;
    const Stmt   *block;
    uint32_t      loop;
    Sites         by; /* the loops with a position for each round */
    uint32_t      n;
    const Idx    *was[MOST_INDICES]; /* over the block's iterators */
    const Buffer *table[MOST_INDICES];
    const Idx    *now[MOST_INDICES];
    bool          many; /* more than there is room for */
} Indices;

static void see_load(void *user, const Prim *p)
{
    Indices *k = user;

    for (uint32_t d = 0; p->kind == PRIM_LOAD && d < p->u.load.n; d++) {
        const Idx *x = p->u.load.index[d];
        uint32_t   i = 0;

        if (!idx_reads_memory(x))
            continue;
        while (i < k->n && k->was[i] != x)
            i++;
        k->many |= i == MOST_INDICES;
        if (i == k->n && !k->many)
            k->was[k->n++] = x;
    }
}

/* The named loops, which hold the block inside of the loop. */
static bool find_rounds(Indices *k)
{
    Work    *w = k->w;
    uint32_t site = site_of(w, k->block);

    for (uint32_t i = 2; i < step_nargs(w->st); i++) {
        Sites    named;
        uint32_t found = NO_SITE;

        if (!step_arg(w->st, i)->name || !loops_named(w, step_arg(w->st, i)->name, &named))
            return false;
        for (uint32_t j = 0; j < named.n; j++)
            if (inside(w, site, named.at[j]) && inside(w, named.at[j], k->loop))
                found = named.at[j];
        if (found == NO_SITE || !loop_extent_of(stmt_at(w, found), NULL))
            return refuse(w, "%%%s is no loop of constant extent around '%s' inside of %%%s",
                          step_arg(w->st, i)->name, k->block->u.block.name,
                          loop_at(w, k->loop)->var->name) != NULL;
        vec_push(w->c->scratch, &k->by, found);
    }
    return true;
}

/* The table's loops, where its formula stands for those of the block. */
static const Stmt *fill(const Indices *k, uint32_t i, const Idx *x)
{
    Work        *w = k->w;
    Ctx         *c = w->c;
    Arith       *A = c->arith;
    Loc          loc = stmt_at(w, k->loop)->loc;
    Sites        outer = loops_around_site(w, NO_SITE, site_of(w, k->block));
    const Atom **var = NEW_ARRAY(c->scratch, const Atom *, k->by.n + 1);
    const Atom **iter = NEW_ARRAY(c->arena, const Atom *, outer.n + 1);
    const Idx  **bind = NEW_ARRAY(c->arena, const Idx *, outer.n + 1);
    const Idx  **to = NEW_ARRAY(c->arena, const Idx *, k->by.n + 1);
    IdxSubst    *sub = subst_new(A, c->scratch);
    BlockData    b = {.name = k->table[i]->name, .iter = iter, .bind = bind, .redundant = true};

    for (uint32_t j = 0; j < k->by.n; j++) {
        const LoopData *l = loop_at(w, k->by.at[j]);
        int64_t         n = k->table[i]->extent[j]->hi;

        var[j] = fresh_var(c, intern_printf(c->strings, "%s.a%u", b.name, j), n);
        iter[j] = atom_var(A, intern_printf(c->strings, "a%u", j), 0, n - 1);
        bind[j] = idx_atom(A, var[j]);
        to[j] = idx_atom(A, iter[j]);
        subst_bind(sub, l->var, idx_add(A, l->lo, to[j]));
    }
    b.nspatial = k->by.n;
    for (uint32_t j = 0; j < outer.n; j++) { /* the block speaks of iterators alone */
        const Atom *v = loop_at(w, outer.at[j])->var;

        if (subst_get(sub, v) || !idx_uses(x, v))
            continue;
        iter[b.nspatial] = atom_var(A, intern_printf(c->strings, "b%u", j), v->lo, v->hi);
        bind[b.nspatial] = idx_atom(A, v);
        subst_bind(sub, v, idx_atom(A, iter[b.nspatial++]));
    }
    const Prim *value = prim_index(c, k->table[i]->dtype, idx_subst(sub, x));
    const Stmt *store = stmt_store(c, k->table[i], to, value);
    const Stmt *nest = stmt_block(c, b, 1, &store, loc);

    for (uint32_t j = k->by.n; j-- > 0;)
        nest = loop_of(c, var[j], LOOP_SPATIAL, nest, loc);
    return nest;
}

static const Prim *read_table(Ctx *c, void *user, const Prim *p)
{
    const Indices *k = user;
    bool           any = false;

    if (p->kind != PRIM_LOAD)
        return p;
    const Idx **at = NEW_ARRAY(c->arena, const Idx *, p->u.load.n + 1);
    for (uint32_t d = 0; d < p->u.load.n; d++) {
        at[d] = p->u.load.index[d];
        for (uint32_t i = 0; i < k->n; i++)
            if (p->u.load.index[d] == k->was[i])
                at[d] = k->now[i], any = true;
    }
    return any ? prim_load(c, p->u.load.buffer, at) : p;
}

/* The table of index i, which is x over the loops; false: refused. */
static bool make_table(Indices *k, uint32_t i, const Idx *x, Scope scope)
{
    Work       *w = k->w;
    Ctx        *c = w->c;
    Arith      *A = c->arith;
    const Idx **extent = NEW_ARRAY(c->arena, const Idx *, k->by.n + 1);
    const Idx **cell = NEW_ARRAY(c->arena, const Idx *, k->by.n + 1);
    const char *name =
        intern_printf(c->strings, i ? "%s.at%u" : "%s.at", k->block->u.block.name, i);
    Sites    inner = loops_around_site(w, k->loop, site_of(w, k->block));
    AtomSet *others = atomset_new(c->scratch);
    bool     small = x->lo >= INT32_MIN && x->hi <= INT32_MAX;
    int64_t  cells = 1, n;

    for (uint32_t j = 0; j < inner.n; j++) {
        bool named = false;
        for (uint32_t r = 0; r < k->by.n; r++)
            named |= k->by.at[r] == inner.at[j];
        if (!named)
            atomset_add(others, loop_at(w, inner.at[j])->var);
    }
    if (idx_uses_any(x, others))
        return refuse(w, "other loops choose the position, too") != NULL;
    for (uint32_t j = 0; j < k->by.n; j++) {
        const LoopData *l = loop_at(w, k->by.at[j]);

        loop_extent_of(stmt_at(w, k->by.at[j]), &n);
        if (!checked_mul(cells, n, &cells) || cells > INT32_MAX)
            return refuse(w, "there are too many positions") != NULL;
        extent[j] = idx_const(A, n);
        cell[j] = idx_sub(A, idx_atom(A, l->var), l->lo);
    }
    k->table[i] = buffer_new(c, name, small ? DT_I32 : DT_I64, scope, k->by.n, extent);
    k->now[i] = idx_load(A, prim_load(c, k->table[i], cell), x->lo, x->hi);
    return true;
}

static const Func *index_in(Work *w, uint32_t loop, uint32_t site, Scope scope)
{
    Ctx        *c = w->c;
    Indices     k = {.w = w, .block = stmt_at(w, site), .loop = loop};
    IdxSubst   *iters = subst_new(c->arith, c->scratch);
    const Stmt *parts[MOST_INDICES + 1];

    if (k.block->u.block.opaque)
        return refuse(w, "'%s' is opaque", k.block->u.block.name);
    stmt_visit(k.block, &(TirVisit){.user = &k, .prim = see_load});
    if (!k.n || k.many)
        return refuse(w,
                      k.n ? "'%s' reads by too many positions that memory says"
                          : "'%s' reads by no position that memory says",
                      k.block->u.block.name);
    if (!find_rounds(&k))
        return NULL;
    bind_iters(k.block, iters);
    for (uint32_t i = 0; i < k.n; i++) {
        const Idx *x = idx_subst(iters, k.was[i]);

        if (!make_table(&k, i, x, scope))
            return NULL;
        parts[i] = fill(&k, i, x);
    }
    edit(w, k.block, stmt_map(c, k.block, &(TirMap){.user = &k, .prim = read_table}));
    const Stmt *s = stmt_at(w, loop);
    parts[k.n] = body_with_edits(w, loop);
    const Stmt *body = stmt_seq(c, k.n + 1, parts);
    for (uint32_t i = k.n; i-- > 0;)
        body = stmt_alloc(c, k.table[i], body);
    edit(w, s, stmt_for(c, s->u.loop, body, s->loc));
    return w->f;
}

const Func *step_cache_index(Work *w)
{
    static const char usage[] = "cache_index b stack %i at %l";

    return step_nargs(w->st) < 3 ? refuse(w, "write `%s`", usage)
                                 : each_block_at(w, index_in, usage);
}
