/* Substitution and evaluation.  A substitution is memoised by form id, so substituting in a nest
 * costs its distinct forms; what is rebuilt goes through the makers and simplifies itself. */
#include "ir/arith/arith_impl.h"

struct IdxSubst {
    Arith    *A;
    Arena    *scratch;
    Map      *vars, *memo;  /* atom -> Idx, form -> Idx */
    IdxSubst *beside_loads; /* NULL until it is asked for */
    bool      skips_loads;
    const void *(*on_load)(void *user, const void *load);
    void *user;
};

static IdxSubst *subst_of(Arith *A, Arena *scratch, Map *vars)
{
    IdxSubst *s = NEW(scratch, IdxSubst);
    s->A = A;
    s->scratch = scratch;
    s->vars = vars;
    s->memo = map_new(scratch);
    return s;
}

IdxSubst *subst_new(Arith *A, Arena *scratch)
{
    return subst_of(A, scratch, map_new(scratch));
}

IdxSubst *subst_beside_loads(IdxSubst *s)
{
    if (!s->beside_loads) {
        s->beside_loads = subst_of(s->A, s->scratch, s->vars);
        s->beside_loads->skips_loads = true;
    }
    return s->beside_loads;
}

void arith_on_load(Arith *A, const void *(*fn)(void *user, IdxSubst *s, const void *load),
                   void  *user)
{
    A->on_load = fn;
    A->user = user;
}

void subst_bind(IdxSubst *s, const Atom *var, const Idx *value)
{
    map_put(s->vars, PTR_KEY(var), (void *)(uintptr_t)value);
}

const Idx *subst_get(const IdxSubst *s, const Atom *var)
{
    return map_get(s->vars, PTR_KEY(var));
}

void subst_on_load(IdxSubst *s, const void *(*fn)(void *user, const void *load), void *user)
{
    s->on_load = fn;
    s->user = user;
}

static const Idx *atom_subst(IdxSubst *s, const Atom *a)
{
    Arith *A = s->A;
    switch (a->kind) {
    case ATOM_VAR: {
        const Idx *v = subst_get(s, a);
        return v ? v : idx_atom(A, a);
    }
    case ATOM_DIV: return idx_divc(A, idx_subst(s, a->a), a->k);
    case ATOM_PROD: return idx_mul(A, idx_subst(s, a->a), idx_subst(s, a->b));
    case ATOM_SYMDIV: return idx_div(A, idx_subst(s, a->a), idx_subst(s, a->b));
    case ATOM_MIN: return idx_min(A, idx_subst(s, a->a), idx_subst(s, a->b));
    case ATOM_MAX: return idx_max(A, idx_subst(s, a->a), idx_subst(s, a->b));
    case ATOM_LOAD:
        if (s->on_load)
            return idx_load(A, s->on_load(s->user, a->load), a->lo, a->hi);
        if (A->on_load && !s->skips_loads)
            return idx_load(A, A->on_load(A->user, s, a->load), a->lo, a->hi);
        return idx_atom(A, a);
    }
    BUG("atom kind %d", (int)a->kind);
}

const Idx *idx_subst(IdxSubst *s, const Idx *x)
{
    if (!x->nterms)
        return x;
    const Idx *r = map_get(s->memo, PTR_KEY(x));
    if (r)
        return r;
    r = idx_const(s->A, x->c0);
    for (uint32_t i = 0; i < x->nterms; i++)
        r = idx_lin(s->A, r, 1, atom_subst(s, x->t[i].atom), x->t[i].coef, 0);
    map_put(s->memo, PTR_KEY(x), (void *)(uintptr_t)r);
    return r;
}

static int64_t atom_eval(const Atom *a, const IdxEnv *env)
{
    switch (a->kind) {
    case ATOM_VAR:
    case ATOM_LOAD: return env->var(env->user, a);
    case ATOM_DIV: return floor_div(idx_eval(a->a, env), a->k);
    case ATOM_PROD: return idx_eval(a->a, env) * idx_eval(a->b, env);
    case ATOM_SYMDIV: {
        int64_t d = idx_eval(a->b, env);
        return floor_div(idx_eval(a->a, env), d > 1 ? d : 1);
    }
    case ATOM_MIN:
    case ATOM_MAX: {
        int64_t x = idx_eval(a->a, env), y = idx_eval(a->b, env);
        return (x < y) == (a->kind == ATOM_MIN) ? x : y;
    }
    }
    BUG("atom kind %d", (int)a->kind);
}

int64_t idx_eval(const Idx *x, const IdxEnv *env)
{
    const IdxTable *t = env->table;
    int64_t         v = x->c0;

    for (uint32_t i = 0; i < x->nterms; i++) {
        const Atom *a = x->t[i].atom;
        uint32_t    at = t ? a->id - t->lo : 0;
        /* almost all are variables */
        v += x->t[i].coef * (a->kind != ATOM_VAR              ? atom_eval(a, env)
                             : t && at < t->n && t->bound[at] ? t->value[at]
                                                              : env->var(env->user, a));
    }
    return v;
}
