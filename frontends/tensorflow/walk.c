/* All nodes that the outputs need, in the main graph and in functions: each once. */
#include "frontends/tensorflow/tensorflow.h"

#include <string.h>

typedef struct {
    const TfGraph *g;
    uint32_t       at;
    bool           order; /* met as one that only comes before */
} Visit;

typedef struct {
    TfModel *m;
    VEC(Visit) todo;
    Map *seen, *ordered; /* by node */
} Walk;

static void meet(Walk *w, const TfGraph *g, uint32_t at, bool order)
{
    if (at < g->n)
        vec_push(w->m->c->scratch, &w->todo, ((Visit){g, at, order}));
}

static void meet_function(Walk *w, const char *name)
{
    const TfGraph *f = tf_function(w->m, name);

    for (uint32_t i = 0; f && i < f->nrets; i++)
        meet(w, f, f->rets[i].node, false);
}

static void meet_functions(Walk *w, const TfOp *p)
{
    if (!p->row)
        meet_function(w, p->op);
    for (uint32_t i = 0; i < p->def->attr.n; i++) {
        const TfAttr *a = p->def->attr.at[i];

        if (!a->key || !a->value || *a->key == '_')
            continue;
        if (a->value->func && a->value->func->name)
            meet_function(w, a->value->func->name);
        for (uint32_t k = 0; a->value->list && k < a->value->list->func.n; k++) {
            const TfFunc *f = a->value->list->func.at[k];

            if (f->name)
                meet_function(w, f->name);
        }
    }
}

/* Inputs of the model, whose values are given. */
static bool is_fed(const TfModel *m, const TfGraph *g, uint32_t at)
{
    for (uint32_t i = 0; g == &m->graph && i < m->in.n; i++)
        if (m->in.at[i].port.node == at)
            return true;
    return false;
}

void tf_walk(TfModel *m, TfVisit *fn, void *user)
{
    Walk w = {.m = m, .seen = map_new(m->c->scratch), .ordered = map_new(m->c->scratch)};

    for (uint32_t i = 0; i < m->out.n; i++)
        meet(&w, &m->graph, m->out.at[i].port.node, false);
    while (w.todo.n) {
        Visit       v = w.todo.at[--w.todo.n];
        const TfOp *p = &v.g->op[v.at];

        if (map_get(w.seen, PTR_KEY(p)) || (v.order && map_get(w.ordered, PTR_KEY(p))))
            continue;
        map_put(v.order ? w.ordered : w.seen, PTR_KEY(p), m);
        if (is_fed(m, v.g, v.at))
            continue;
        fn(user, v.g, p, v.order);
        for (uint32_t i = 0; i < p->nctrl; i++)
            meet(&w, v.g, p->ctrl[i], true);
        for (uint32_t i = 0; i < p->nin; i++)
            meet(&w, v.g, p->in[i].node, v.order);
        if (!v.order)
            meet_functions(&w, p);
    }
}
