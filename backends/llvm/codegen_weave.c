/* Stores of long formulas, several at a time.
 *
 *   %y[0 : 16] = f(%a);  %y[16 : 16] = f(%b);  ..      f: two dozen operations, each of the last
 *
 * Statement after statement, each operation waits for the one before it, 4 cycles, and a processor
 * that looks a hundred operations ahead finds few that could run meanwhile.  So the operations of
 * neighbouring statements go by turns, one of each; the stores come last.  No statement of a group
 * may read what another one stores.
 *
 * A group of four wants registers beside those that hold results for later groups: with 16, what is
 * spilled costs more than waiting where there are such (a tile with 12 sums and a sigmoid took 1.2
 * times as long) and where formulas are short (a sigmoid 1.07, exp 0.93, erf 0.71 and log of exp
 * 0.55; Zen 4). */
#include "backends/llvm/llvm.h"

enum {
    LEAST = 16, /* operations of a formula for which this pays, */
    FEW = 22,   /* ... with few registers, */
    LOADS = 3,  /* and the most that it reads: of many operands much runs side by side */
    MOST = 4    /* formulas at a time: 4 cycles, and registers for what they hold */
};

/* A formula that is partly computed: what waits for its operands. */
typedef VEC(const Prim *) Chain;

static const Buffer *memory_of(const Buffer *b)
{
    while (b->alias)
        b = b->alias;
    return b;
}

/* ---- which statements -------------------------------------------------------------------------------- */

typedef struct {
    const Stmt *const *stores; /* a load of what one of these stores ends the group */
    uint32_t           nstores, ops, loads;
    bool               reads, held; /* ..; of what is in registers */
} Look;

static void look_prim(void *user, const Prim *p)
{
    Look *l = user;

    l->ops += p->nkids > 0 && p->kind != PRIM_SPLAT;
    l->loads += p->kind == PRIM_LOAD;
    l->held |= p->kind == PRIM_LOAD && p->u.load.buffer->scope == SCOPE_REG;
    for (uint32_t i = 0; p->kind == PRIM_LOAD && i < l->nstores; i++)
        l->reads |= memory_of(p->u.load.buffer) == memory_of(l->stores[i]->u.store.buffer);
}

/* May s[n] be computed together with s[0] to s[n-1]? */
static bool joins(const Target *t, const Stmt *const *s, uint32_t n)
{
    const bool few = t->vector_regs < 32;
    Look       l = {.stores = s, .nstores = n + 1};

    if (s[n]->kind != STMT_STORE)
        return false;
    stmt_visit(s[n], &(TirVisit){.user = &l, .prim = look_prim});
    return !l.reads && l.ops >= (few ? FEW : LEAST) && !(few && l.held) && l.loads <= LOADS;
}

/* ---- one operation at a time ------------------------------------------------------------------------- */

/* The first operand that is not computed yet; NULL if p can be, or has to be computed as a whole.
 */
static const Prim *missing(Gen *g, const Prim *p)
{
    if (p->kind == PRIM_INTRIN || p->kind == PRIM_CASE || p->kind == PRIM_VEC)
        return NULL;
    if (p->kind == PRIM_SELECT && gen_known(g, p->kids[0]) &&
        (gen_reads(g, p->kids[1]) || gen_reads(g, p->kids[2])))
        return NULL;
    for (uint32_t i = 0; i < p->nkids; i++)
        if (!gen_known(g, p->kids[i]))
            return p->kids[i];
    return NULL;
}

/* The next operation of a formula; false if there is none left. */
static bool advance(Gen *g, Chain *chain)
{
    while (chain->n) {
        const Prim *p = chain->at[chain->n - 1], *kid;

        if (gen_known(g, p))
            chain->n--;
        else if ((kid = missing(g, p)))
            vec_push(g->a, chain, kid);
        else {
            gen_prim(g, p);
            chain->n--;
            return true;
        }
    }
    return false;
}

uint32_t gen_woven(Gen *g, uint32_t n, const Stmt *const *s)
{
    Chain    chains[MOST] = {{0}};
    uint32_t m = 0, left;
    GenMark  mark = gen_mark(g);

    if (g->mask)
        return 0;
    while (m < n && m < 2 * MOST && joins(g->t, s, m))
        m++;
    if (m < 2)
        return 0;
    /* 5 are 3 and 2, not 4 and 1. */
    if (m > MOST)
        m = m < 2 * MOST ? (m + 1) / 2 : MOST;
    for (uint32_t i = 0; i < m; i++)
        vec_push(g->a, &chains[i], s[i]->u.store.value);
    do {
        left = 0;
        for (uint32_t i = 0; i < m; i++)
            left += advance(g, &chains[i]);
    } while (left);
    for (uint32_t i = 0; i < m; i++)
        gen_store(g, &s[i]->u.store);
    mark.block = g->block.keys.n;
    gen_drop(g, mark);
    return m;
}
