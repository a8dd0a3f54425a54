/* Random small networks, for tests of what passes do to graphs: a generator, and its calls. */
#ifndef TVMCC_TESTS_NET_H
#define TVMCC_TESTS_NET_H

#include "ir/plan/plan.h"
#include "ops/ops.h"

typedef struct {
    Ctx     *c;
    uint32_t seed;
    VEC(const Expr *) pool; /* images made so far */
} Net;

static inline uint32_t pick(Net *n, uint32_t below)
{
    n->seed = n->seed * 1664525u + 1013904223u;
    return (n->seed >> 10) % below;
}

/* Numbers from lo to hi, as f32. */
static inline const Const *float_noise(Net *n, const Type *t, double lo, double hi)
{
    int64_t elems = 0;
    float  *v;

    type_elems(t, &elems);
    v = NEW_ARRAY(n->c->arena, float, (size_t)elems + 1);
    for (int64_t i = 0; i < elems; i++)
        v[i] = (float)(lo + (hi - lo) * pick(n, 1000) / 1000);
    return const_new(n->c, "k", t, (Bytes){(const uint8_t *)v, (size_t)elems * 4});
}

static inline int64_t dim(const Expr *e, uint32_t i)
{
    int64_t v = 0;

    type_dim(e->type, i, &v);
    return v;
}

static inline const Expr *call(Net *n, const char *op, const Expr *a, const Expr *b,
                               const void *attrs)
{
    const Expr *args[] = {a, b};

    return expr_call_name(n->c, op, b ? 2 : 1, args, attrs, NO_LOC);
}

/* Aligned, and full of NaN. */
static inline uint8_t *memory(Ctx *c, uint64_t bytes)
{
    uint8_t *at = arena_alloc(c->arena, (size_t)bytes + 64);

    at += 64 - (uintptr_t)at % 64;
    memset(at, 0xff, (size_t)bytes);
    return at;
}

/* The weights of a plan, put where it wants them. */
static inline bool fill_weights(Ctx *c, const Plan *p, uint8_t *weights)
{
    for (uint32_t i = 0; i < p->nconsts; i++) {
        const PlanConst *k = &p->consts[i];
        void            *args[2] = {(void *)(uintptr_t)k->data->data.at, weights + k->offset};

        if (!k->prepack)
            memcpy(args[1], args[0], (size_t)k->bytes);
        else if (!tir_eval(c, NULL, k->prepack, 2, args, 0, NULL))
            return false;
    }
    return true;
}

#endif
