/* Choices that depend on each other in pairs: on random graphs never better than the best of all
 * combinations, the best itself where nodes of two neighbours can be taken away until none is left,
 * and near it elsewhere. */
#include "tests/unit/check.h"

#include "passes/graph/graph.h"

static uint32_t seed;

static uint32_t pick(uint32_t below)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 10) % below;
}

enum { MOST = 7, CHOICES = 4 };

typedef struct {
    Pbqp    *g;
    uint32_t n, choices[MOST];
} Graph;

static void add_edge(Graph *x, uint32_t u, uint32_t v)
{
    double cost[CHOICES * CHOICES];

    for (uint32_t i = 0; i < x->choices[u] * x->choices[v]; i++)
        cost[i] = pick(100);
    pbqp_edge(x->g, u, v, cost);
}

static Graph nodes(Arena *a, uint32_t n)
{
    Graph x = {pbqp_new(a), n, {0}};

    for (uint32_t i = 0; i < n; i++) {
        double cost[CHOICES];

        x.choices[i] = 1 + pick(CHOICES);
        for (uint32_t k = 0; k < CHOICES; k++)
            cost[k] = pick(100);
        CHECK_INT(pbqp_node(x.g, x.choices[i], cost), i);
    }
    return x;
}

static double best_of_all(const Graph *x)
{
    uint32_t choice[MOST] = {0}, i;
    double   least = 1e30;

    do {
        double cost = pbqp_cost(x->g, choice);

        least = cost < least ? cost : least;
        for (i = 0; i < x->n && ++choice[i] == x->choices[i]; i++)
            choice[i] = 0;
    } while (i < x->n);
    return least;
}

static double solved(const Graph *x)
{
    uint32_t choice[MOST];

    pbqp_solve(x->g, choice);
    for (uint32_t i = 0; i < x->n; i++)
        CHECK(choice[i] < x->choices[i]);
    return pbqp_cost(x->g, choice);
}

/* A ladder without rungs across: each node joins one or both ends of an edge that is there. */
static void test_exact(void)
{
    for (seed = 1; seed <= 300; seed++) {
        uint32_t was = seed, ends[MOST][2] = {{0}};
        Arena   *a = arena_new(NULL);
        Graph    x = nodes(a, 3 + pick(MOST - 2));

        add_edge(&x, 1, 0);
        ends[1][1] = 1;
        for (uint32_t i = 2; i < x.n; i++) {
            uint32_t at = 1 + pick(i - 1), one = pick(2);

            add_edge(&x, i, ends[at][one]);
            if (pick(3))
                add_edge(&x, ends[at][!one], i);
            ends[i][0] = i;
            ends[i][1] = ends[at][one];
        }
        CHECK(solved(&x) == best_of_all(&x));
        arena_free(a);
        seed = was;
    }
}

static void test_near(void)
{
    uint32_t exact = 0;
    double   sum = 0, least = 0;

    for (uint32_t round = 1; round <= 200; round++) {
        Arena *a = arena_new(NULL);

        seed = round * 2654435761u;
        Graph x = nodes(a, MOST);

        for (uint32_t u = 0; u < MOST; u++)
            for (uint32_t v = 0; v < u; v++)
                if (pick(3))
                    add_edge(&x, u, v);
        double cost = solved(&x), best = best_of_all(&x);

        CHECK(cost >= best);
        exact += cost == best;
        sum += cost;
        least += best;
        arena_free(a);
    }
    CHECK(exact >= 80);
    CHECK(sum < 1.05 * least);
}

int main(void)
{
    RUN(test_exact);
    RUN(test_near);
    return check_result();
}
