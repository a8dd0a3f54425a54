/* pbqp: choices of many nodes that depend on each other in pairs (partitioned boolean quadratic
 * programming), as alter_layout has them: operators choose layouts, and edges cost repacking.
 *
 * Nodes are taken away one by one.  One without neighbours chooses its cheapest.  One with one
 * neighbour is cheapest in one way for each choice of that neighbour, whose costs grow by it; one
 * with two becomes an edge between them.  So far nothing is lost, and chains, trees and residual
 * blocks come out exactly.  What is left has three neighbours and more: the first of them, in the
 * order in which the nodes were made, takes what is cheapest with each neighbour at its best, and
 * the others go on.  Backwards, every node then takes the choice that belongs to its neighbours'.
 * The result is improved node by node until no single change helps.
 *
 * Scholz and Eckstein, "Register Allocation for Irregular Architectures", 2002.  Cost: linear in
 * nodes and edges for a bounded number of choices. */
#include "passes/graph/graph.h"

#include <string.h>

typedef struct {
    uint32_t u, v;
    double  *cost; /* n(u) rows of n(v) */
    bool     gone;
} Edge;

typedef struct {
    uint32_t n;
    double  *cost;
    uint32_t degree;
    VEC(uint32_t) edges; /* of both kinds; some may be gone */
} Node;

struct Pbqp {
    Arena *a;
    VEC(Node) nodes;
    VEC(Edge) edges;
    Map *between; /* pair of nodes to edge + 1 */
};

Pbqp *pbqp_new(Arena *a)
{
    Pbqp *g = NEW(a, Pbqp);

    g->a = a;
    g->between = map_new(a);
    return g;
}

uint32_t pbqp_node(Pbqp *g, uint32_t n, const double *cost)
{
    Node node = {.n = n, .cost = arena_dup(g->a, cost, n * sizeof *cost)};

    vec_push(g->a, &g->nodes, node);
    return g->nodes.n - 1;
}

void pbqp_add(Pbqp *g, uint32_t u, const double *cost)
{
    for (uint32_t i = 0; i < g->nodes.at[u].n; i++)
        g->nodes.at[u].cost[i] += cost[i];
}

static uint64_t pair_key(uint32_t u, uint32_t v)
{
    return ((uint64_t)u << 32 | v) + 1;
}

void pbqp_edge(Pbqp *g, uint32_t u, uint32_t v, const double *cost)
{
    bool     transposed = u > v;
    uint32_t a = transposed ? v : u, b = transposed ? u : v, na = g->nodes.at[a].n,
             nb = g->nodes.at[b].n;
    uintptr_t at = (uintptr_t)map_get(g->between, pair_key(a, b));

    if (!at) {
        Edge e = {a, b, NEW_ARRAY(g->a, double, (size_t)na *nb), false};

        vec_push(g->a, &g->edges, e);
        at = g->edges.n;
        map_put(g->between, pair_key(a, b), (void *)at);
        for (int k = 0; k < 2; k++) {
            Node *x = &g->nodes.at[k ? b : a];

            vec_push(g->a, &x->edges, (uint32_t)at - 1);
            x->degree++;
        }
    }
    double *to = g->edges.at[at - 1].cost;
    for (uint32_t i = 0; i < na; i++)
        for (uint32_t k = 0; k < nb; k++)
            to[i * nb + k] += transposed ? cost[k * na + i] : cost[i * nb + k];
}

static double edge_cost(const Pbqp *g, const Edge *e, uint32_t at, uint32_t mine, uint32_t other)
{
    uint32_t nv = g->nodes.at[e->v].n;

    return at == e->u ? e->cost[mine * nv + other] : e->cost[other * nv + mine];
}

static uint32_t other_end(const Edge *e, uint32_t at)
{
    return e->u == at ? e->v : e->u;
}

double pbqp_cost(const Pbqp *g, const uint32_t *choice)
{
    double sum = 0;

    for (uint32_t i = 0; i < g->nodes.n; i++)
        sum += g->nodes.at[i].cost[choice[i]];
    for (uint32_t i = 0; i < g->edges.n; i++) {
        const Edge *e = &g->edges.at[i];

        sum += edge_cost(g, e, e->u, choice[e->u], choice[e->v]);
    }
    return sum;
}

/* The best choice of a node, given those of its neighbours by edges that `since` still had. */
static uint32_t best_choice(const Pbqp *g, uint32_t at, const uint32_t *edges, uint32_t n,
                            const uint32_t *choice)
{
    const Node *x = &g->nodes.at[at];
    uint32_t    best = 0;
    double      least = 0;

    for (uint32_t i = 0; i < x->n; i++) {
        double cost = x->cost[i];

        for (uint32_t k = 0; k < n; k++) {
            const Edge *e = &g->edges.at[edges[k]];

            cost += edge_cost(g, e, at, i, choice[other_end(e, at)]);
        }
        if (i == 0 || cost < least)
            least = cost, best = i;
    }
    return best;
}

enum { ROUNDS = 8 };

void pbqp_improve(const Pbqp *g, uint32_t *choice)
{
    for (int round = 0; round < ROUNDS; round++) {
        bool changed = false;

        for (uint32_t i = 0; i < g->nodes.n; i++) {
            const Node *x = &g->nodes.at[i];
            uint32_t    old = choice[i], best;

            best = best_choice(g, i, x->edges.at, x->edges.n, choice);
            choice[i] = best;
            changed |= best != old;
        }
        if (!changed)
            return;
    }
}

/* ---- taking nodes away ---------------------------------------------------------------------- */

/* A node that was taken away: the edges it had then, and what it chose if that is fixed. */
typedef struct {
    uint32_t at, n;
    uint32_t edges[2];
    bool     fixed;
} Taken;

typedef struct {
    Pbqp *g; /* a copy that is used up */
    bool *gone;
    VEC(uint32_t) small; /* nodes of two neighbours at most */
    VEC(Taken) order;
    uint32_t *choice;
} Solver;

static Pbqp *copy_of(const Pbqp *from)
{
    Pbqp *g = pbqp_new(from->a);

    for (uint32_t i = 0; i < from->nodes.n; i++)
        pbqp_node(g, from->nodes.at[i].n, from->nodes.at[i].cost);
    for (uint32_t i = 0; i < from->edges.n; i++)
        pbqp_edge(g, from->edges.at[i].u, from->edges.at[i].v, from->edges.at[i].cost);
    return g;
}

/* The edges that a node still has, at most `most`. */
static uint32_t live_edges(const Pbqp *g, uint32_t at, uint32_t most, uint32_t *edges)
{
    const Node *x = &g->nodes.at[at];
    uint32_t    n = 0;

    for (uint32_t i = 0; i < x->edges.n && n < most; i++)
        if (!g->edges.at[x->edges.at[i]].gone)
            edges[n++] = x->edges.at[i];
    return n;
}

static void drop_edge(Solver *s, uint32_t edge, uint32_t keep)
{
    Edge *e = &s->g->edges.at[edge];
    Node *x = &s->g->nodes.at[keep];

    e->gone = true;
    map_put(s->g->between, pair_key(e->u, e->v), NULL);
    if (--x->degree <= 2)
        vec_push(s->g->a, &s->small, keep);
}

/* One or two neighbours: what the node costs for each of their choices becomes theirs. */
static void fold_node(Solver *s, uint32_t at, uint32_t n, const uint32_t *edges)
{
    Pbqp    *g = s->g;
    uint32_t y = other_end(&g->edges.at[edges[0]], at),
             z = n > 1 ? other_end(&g->edges.at[edges[1]], at) : y;
    uint32_t ny = g->nodes.at[y].n, nz = n > 1 ? g->nodes.at[z].n : 1;
    double  *sum = NEW_ARRAY(g->a, double, (size_t)ny *nz);

    for (uint32_t i = 0; i < ny; i++)
        for (uint32_t k = 0; k < nz; k++) {
            double least = 0;

            for (uint32_t m = 0; m < g->nodes.at[at].n; m++) {
                double cost =
                    g->nodes.at[at].cost[m] + edge_cost(g, &g->edges.at[edges[0]], at, m, i);

                if (n > 1)
                    cost += edge_cost(g, &g->edges.at[edges[1]], at, m, k);
                if (m == 0 || cost < least)
                    least = cost;
            }
            sum[i * nz + k] = least;
        }
    drop_edge(s, edges[0], y);
    if (n > 1) {
        drop_edge(s, edges[1], z);
        pbqp_edge(g, y, z, sum);
        return;
    }
    pbqp_add(g, y, sum);
}

static void take_small(Solver *s)
{
    while (s->small.n) {
        Taken t = {.at = s->small.at[--s->small.n]};

        if (s->gone[t.at] || s->g->nodes.at[t.at].degree > 2)
            continue;
        s->gone[t.at] = true;
        t.n = live_edges(s->g, t.at, 2, t.edges);
        vec_push(s->g->a, &s->order, t);
        if (t.n)
            fold_node(s, t.at, t.n, t.edges);
    }
}

/* Many neighbours: each at its best, which may not hold together. */
static void take_large(Solver *s, uint32_t at)
{
    Pbqp     *g = s->g;
    uint32_t  nx = g->nodes.at[at].n, best = 0;
    double    least = 0;
    uint32_t *edges = NEW_ARRAY(g->a, uint32_t, g->nodes.at[at].degree + 1);
    uint32_t  n = live_edges(g, at, g->nodes.at[at].degree, edges);
    Taken     t = {.at = at, .fixed = true};

    for (uint32_t m = 0; m < nx; m++) {
        double cost = g->nodes.at[at].cost[m];

        for (uint32_t i = 0; i < n; i++) {
            uint32_t y = other_end(&g->edges.at[edges[i]], at);
            double   near = 0;

            for (uint32_t k = 0; k < g->nodes.at[y].n; k++) {
                double c = g->nodes.at[y].cost[k] + edge_cost(g, &g->edges.at[edges[i]], at, m, k);
                if (k == 0 || c < near)
                    near = c;
            }
            cost += near;
        }
        if (m == 0 || cost < least)
            least = cost, best = m;
    }
    s->choice[at] = best;
    s->gone[at] = true;
    vec_push(g->a, &s->order, t);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t y = other_end(&g->edges.at[edges[i]], at);

        for (uint32_t k = 0; k < g->nodes.at[y].n; k++)
            g->nodes.at[y].cost[k] += edge_cost(g, &g->edges.at[edges[i]], at, best, k);
        drop_edge(s, edges[i], y);
    }
}

void pbqp_solve(const Pbqp *from, uint32_t *choice)
{
    Solver s = {.g = copy_of(from), .choice = choice};

    s.gone = NEW_ARRAY(from->a, bool, from->nodes.n + 1);
    for (uint32_t i = from->nodes.n; i-- > 0;)
        if (s.g->nodes.at[i].degree <= 2)
            vec_push(from->a, &s.small, i);
    take_small(&s);
    for (uint32_t i = 0; i < from->nodes.n; i++)
        if (!s.gone[i]) {
            take_large(&s, i);
            take_small(&s);
        }
    for (uint32_t i = s.order.n; i-- > 0;) {
        const Taken *t = &s.order.at[i];

        if (!t->fixed)
            choice[t->at] = best_choice(s.g, t->at, t->edges, t->n, choice);
    }
    pbqp_improve(from, choice);
}
