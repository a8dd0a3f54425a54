/* Stores of long formulas, several at a time.
 *
 *   %y[0 : 16] = f(%a);  %y[16 : 16] = f(%b);  ..      f: two dozen operations, each of the last
 *
 * Statement after statement, each operation waits for the one before it, 4 cycles, and a processor
 * that looks a hundred operations ahead finds few that could run meanwhile.  So the operations of
 * neighbouring statements go by turns, one of each; the stores come last.  No statement of a group
 * may read what another one stores.
 *
 * A chain of functions waits for all of them, and what a processor sees ahead is the same function
 * of the same vectors.  So where there are several, eight vectors go function by function, with 16
 * registers two at a time, else four: between two functions a vector is one number, which is
 * spilled at little cost.  Chains of two to four took 0.84, 0.8 and 0.76 of the time with AVX2,
 * 0.84 to 0.8 with AVX-512, of four at a time through all functions (Zen 4).
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
    MOST = 4,   /* formulas at a time: 4 cycles, and registers for what they hold */
    CHAINS = 8, /* ... of several functions, which take turns after each, */
    PAIR = 2    /* and with few registers those that go on side by side */
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

static bool is_whole(const Prim *p)
{
    return p->kind == PRIM_INTRIN || p->kind == PRIM_CASE || p->kind == PRIM_VEC;
}

/* The first operand that is not computed yet; NULL if p can be, or has to be computed as a whole.
 */
static const Prim *missing(Gen *g, const Prim *p)
{
    if (is_whole(p))
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

/* ---- chains of functions ----------------------------------------------------------------------------- */

static bool is_constant(const Prim *p)
{
    while (p->kind == PRIM_SPLAT)
        p = p->kids[0];
    return p->kind == PRIM_INT || p->kind == PRIM_FLOAT;
}

/* The operations of a formula, but for constants, in the order of `advance`, and their places. */
static Chain in_order(Gen *g, const Prim *value, Map *place)
{
    Chain todo = {0}, order = {0};

    vec_push(g->a, &todo, value);
    while (todo.n) {
        const Prim *p = todo.at[todo.n - 1], *kid = NULL;

        for (uint32_t i = 0; i < p->nkids && !kid && !is_whole(p); i++)
            if (!is_constant(p->kids[i]) && !map_get(place, PTR_KEY(p->kids[i])))
                kid = p->kids[i];
        if (kid) {
            vec_push(g->a, &todo, kid);
            continue;
        }
        todo.n--;
        if (map_get(place, PTR_KEY(p)))
            continue;
        vec_push(g->a, &order, p);
        map_put(place, PTR_KEY(p), (void *)(uintptr_t)order.n);
    }
    return order;
}

/* What the functions of a chain make: of each the number from which all that follows is computed,
 * the formula's value last. */
static Chain results_of(Gen *g, const Prim *value)
{
    Map      *place = map_new(g->a);
    Chain     order = in_order(g, value, place), results = {0};
    uint32_t *last = NEW_ARRAY(g->a, uint32_t, order.n), *done = NEW_ARRAY(g->a, uint32_t, order.n);
    uint32_t  held = 0, from = 0;

    for (uint32_t i = 0; i < order.n; i++)
        for (uint32_t k = 0; k < order.at[i]->nkids; k++) {
            uintptr_t at = (uintptr_t)map_get(place, PTR_KEY(order.at[i]->kids[k]));
            if (at)
                last[at - 1] = i;
        }
    for (uint32_t i = 0; i + 1 < order.n; i++)
        done[last[i]]++;
    for (uint32_t i = 0; i + LEAST < order.n; i++) {
        held = held + 1 - done[i];
        if (held == 1 && i + 1 >= from + LEAST) {
            vec_push(g->a, &results, order.at[i]);
            from = i + 1;
        }
    }
    vec_push(g->a, &results, value);
    return results;
}

uint32_t gen_woven(Gen *g, uint32_t n, const Stmt *const *s)
{
    Chain    chains[CHAINS] = {{0}}, results[CHAINS];
    uint32_t m = 0, left;
    bool     several = true; /* functions, of all */
    GenMark  mark = gen_mark(g);

    if (g->mask)
        return 0;
    while (m < n && m < CHAINS && joins(g->t, s, m))
        m++;
    if (m < 2)
        return 0;
    for (uint32_t i = 0; i < m; i++) {
        results[i] = results_of(g, s[i]->u.store.value);
        several &= results[i].n > 1 && results[i].n == results[0].n;
    }
    /* 5 are 3 and 2, not 4 and 1. */
    if (m > MOST && (m < CHAINS || !several))
        m = m < 2 * MOST ? (m + 1) / 2 : MOST;
    uint32_t functions = several ? results[0].n : 1;
    uint32_t beside = several && g->t->vector_regs < 32 ? PAIR : MOST;
    for (uint32_t e = 0; e < functions; e++)
        for (uint32_t first = 0; first < m; first += beside) {
            uint32_t end = first + beside < m ? first + beside : m;

            for (uint32_t i = first; i < end; i++)
                vec_push(g->a, &chains[i], several ? results[i].at[e] : s[i]->u.store.value);
            do {
                left = 0;
                for (uint32_t i = first; i < end; i++)
                    left += advance(g, &chains[i]);
            } while (left);
            for (uint32_t i = first; i < end && e + 1 == functions; i++)
                gen_store(g, &s[i]->u.store);
        }
    mark.block = g->block.keys.n;
    gen_drop(g, mark);
    return m;
}
