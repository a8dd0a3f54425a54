/* Which call of which layer is made when: each after those whose results it takes. */
#include "frontends/keras/keras.h"

#include <string.h>

typedef VEC(KerasStep) Steps;

typedef struct {
    KerasReading *r;
    KerasModel   *m;
    Map          *first; /* layer -> number of its first call, plus one */
} Order;

/* ---- references ------------------------------------------------------------------------------------- */

static bool bad_reference(KerasReading *r, const KerasArg *a, const char *who)
{
    return error_at(r->c, E_IMPORT, (Loc){.file = r->path},
                    "'%s' takes result %lld of call %lld of layer '%s', which is not there", who,
                    (long long)a->tensor, (long long)a->call, a->layer);
}

/* Calls of models count from 1 in older files, and in lists of outputs: call 0 is that by which
 * the model was made. */
static bool resolve_one(KerasReading *r, KerasModel *m, KerasArg *a, bool output, const char *who)
{
    KerasLayer *l = map_get(m->names, PTR_KEY(a->layer));
    bool        counted;

    if (!l)
        return error_at(r->c, E_IMPORT, (Loc){.file = r->path},
                        "'%s' takes a result of layer '%s', which is not there", who, a->layer);
    counted = l->model && (r->major < 3 || (output && !l->model->sequential));
    if ((counted && a->call > 0) || (l->model && a->call == (int64_t)l->calls.n))
        a->call--;
    if (a->call < 0 || a->call >= (int64_t)l->calls.n || a->tensor < 0)
        return bad_reference(r, a, who);
    a->from = l;
    return true;
}

/* Arguments were read KERAS_MAX_NESTING deep at most. */
static bool resolve(KerasReading *r, KerasModel *m, KerasArg *a, bool output, const char *who,
                    Steps *deps)
{
    if (a->kind == KERAS_TENSOR) {
        if (!resolve_one(r, m, a, output, who))
            return false;
        vec_push(r->c->scratch, deps, ((KerasStep){a->from, (uint32_t)a->call}));
    }
    for (uint32_t i = 0; i < a->n; i++)
        if (!resolve(r, m, &a->at[i], output, who, deps))
            return false;
    return true;
}

/* ---- the order -------------------------------------------------------------------------------------- */

typedef struct {
    KerasStep step;
    Steps     deps;
    uint32_t  next;
    bool      open, done;
} Visit;

static Visit *visit_of(const Order *o, Visit *all, KerasStep s)
{
    return &all[(uintptr_t)map_get(o->first, PTR_KEY(s.layer)) - 1 + s.call];
}

static bool visit_from(Order *o, Visit *all, KerasStep root)
{
    VEC(Visit *) stack = {0};
    Arena *a = o->r->c->arena;

    vec_push(a, &stack, visit_of(o, all, root));
    while (stack.n) {
        Visit *v = stack.at[stack.n - 1];

        v->open = true;
        if (v->done || v->next == v->deps.n) {
            if (!v->done)
                vec_push(a, &o->m->order, v->step);
            v->done = true;
            stack.n--;
            continue;
        }
        Visit *w = visit_of(o, all, v->deps.at[v->next++]);
        if (w->open && !w->done)
            return error_at(o->r->c, E_IMPORT, (Loc){.file = o->r->path},
                            "layer '%s' takes its own result", w->step.layer->name);
        if (!w->done)
            vec_push(a, &stack, w);
    }
    return true;
}

bool keras_order(KerasReading *r, KerasModel *m)
{
    Order    o = {r, m, map_new(r->c->scratch)};
    Steps    roots = {0};
    uint32_t n = 0;
    Visit   *all;

    for (uint32_t i = 0; i < m->self->kids.n; i++) {
        KerasLayer *l = m->self->kids.at[i];

        map_put(o.first, PTR_KEY(l), (void *)(uintptr_t)(n + 1));
        n += l->calls.n;
    }
    all = NEW_ARRAY(r->c->scratch, Visit, n + 1);
    for (uint32_t i = 0; i < m->self->kids.n; i++) {
        KerasLayer *l = m->self->kids.at[i];

        for (uint32_t k = 0; k < l->calls.n; k++) {
            KerasStep s = {l, k};
            Visit    *v = visit_of(&o, all, s);

            v->step = s;
            for (uint32_t j = 0; j < l->calls.at[k].n; j++)
                if (!resolve(r, m, &l->calls.at[k].args[j], false, l->name, &v->deps))
                    return false;
        }
    }
    if (!resolve(r, m, &m->in, false, m->self->name, &roots) ||
        !resolve(r, m, &m->out, true, m->self->name, &roots))
        return false;
    for (uint32_t i = 0; i < roots.n; i++)
        if (!visit_from(&o, all, roots.at[i]))
            return false;
    return true;
}
