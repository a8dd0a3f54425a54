/* Equality and hash of graphs: up to the names of bound variables, constants by content.
 *
 * Sharing does not matter: a graph equals its unfolded tree.  Pairs still to be compared lie on a
 * stack, pairs seen are not compared again, so the work is about the size of the graphs. */
#include "ir/relay/relay.h"

#include <string.h>

typedef struct {
    const Expr *a, *b;
} Pair;

typedef struct {
    Ctx *c;
    VEC(Pair) todo;
    Map *seen;  /* pairs, by hash, with the pair to be sure */
    Map *bound; /* variable of a to variable of b */
    bool binds; /* there is one */
} Compare;

static const Type *plain(Ctx *c, const Type *t)
{
    return t ? type_plain(c, t) : NULL;
}

static bool bind_var(Compare *s, const Expr *a, const Expr *b)
{
    map_put(s->bound, PTR_KEY(a), (void *)(uintptr_t)b);
    s->binds = true;
    return a->type == b->type || plain(s->c, a->type) == plain(s->c, b->type);
}

static bool same_pattern(Compare *s, const Pattern *a, const Pattern *b)
{
    if (a->kind != b->kind || a->nkids != b->nkids)
        return false;
    if (a->kind == PAT_CTOR && strcmp(a->ctor->name, b->ctor->name) != 0)
        return false;
    if (a->kind == PAT_VAR && !bind_var(s, a->var, b->var))
        return false;
    for (uint32_t i = 0; i < a->nkids; i++)
        if (!same_pattern(s, a->kids[i], b->kids[i]))
            return false;
    return true;
}

static const Halo *halo_of(const Expr *e)
{
    return e->type && e->type->kind == TYPE_TENSOR ? e->type->halo : NULL;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

/* The nodes themselves, without their kids; binds variables. */
static bool same_node(Compare *s, const Expr *a, const Expr *b)
{
    if (a->kind != b->kind || a->nkids != b->nkids)
        return false;
    if (halo_of(a) != halo_of(b) && (!halo_of(a) || !halo_of(b) || a->type != b->type))
        return false;
    switch (a->kind) {
    case EXPR_CONST: {
        const Const *x = a->u.constant, *y = b->u.constant;

        return x == y || (x->type == y->type && x->data.n == y->data.n &&
                          (x->data.at == y->data.at || !memcmp(x->data.at, y->data.at, x->data.n)));
    }
    case EXPR_VAR: {
        const Expr *to = map_get(s->bound, PTR_KEY(a));

        return to ? to == b : a == b;
    }
    case EXPR_GLOBAL: return !strcmp(a->u.name, b->u.name);
    case EXPR_OP: return a->u.op == b->u.op;
    case EXPR_CTOR: return !strcmp(a->u.ctor->name, b->u.ctor->name);
    case EXPR_PROJ: return a->u.index == b->u.index;
    case EXPR_CALL: {
        const Op *op = call_op(a);

        return op == call_op(b) && (!op || attrs_equal(op->attrs, a->u.attrs, b->u.attrs));
    }
    case EXPR_LET: return bind_var(s, let_var(a), let_var(b));
    case EXPR_FUNC:
        for (uint32_t i = 0; i < func_nparams(a); i++)
            if (!bind_var(s, func_param(a, i), func_param(b, i)))
                return false;
        return a->u.func.primitive == b->u.func.primitive && a->u.func.host == b->u.func.host &&
               plain(s->c, a->u.func.ret) == plain(s->c, b->u.func.ret) &&
               same_text(a->u.func.compiler, b->u.func.compiler);
    case EXPR_MATCH:
        for (uint32_t i = 0; i + 1 < a->nkids; i++)
            if (!same_pattern(s, a->u.match.patterns[i], b->u.match.patterns[i]))
                return false;
        return a->u.match.complete == b->u.match.complete;
    case EXPR_TUPLE:
    case EXPR_IF:
    case EXPR_REF_NEW:
    case EXPR_REF_READ:
    case EXPR_REF_WRITE: return true;
    }
    return false;
}

static bool seen_before(Compare *s, const Expr *a, const Expr *b)
{
    uint64_t    key = hash_mix(PTR_KEY(a), PTR_KEY(b));
    const Pair *was = map_get(s->seen, key);
    Pair       *now;

    if (was && was->a == a && was->b == b)
        return true;
    now = NEW(s->c->scratch, Pair);
    *now = (Pair){a, b};
    map_put(s->seen, key, now);
    return false;
}

bool expr_same(Ctx *c, const Expr *a, const Expr *b)
{
    Compare s = {.c = c, .seen = map_new(c->scratch), .bound = map_new(c->scratch)};

    vec_push(c->scratch, &s.todo, ((Pair){a, b}));
    while (s.todo.n) {
        Pair p = s.todo.at[--s.todo.n];

        if (p.a == p.b && !s.binds)
            continue;
        /* A bound variable is looked up each time: its partner may have changed. */
        if (p.a->kind != EXPR_VAR && seen_before(&s, p.a, p.b))
            continue;
        if (!same_node(&s, p.a, p.b))
            return false;
        for (uint32_t i = p.a->nkids; i-- > 0;)
            vec_push(c->scratch, &s.todo, ((Pair){p.a->kids[i], p.b->kids[i]}));
    }
    return true;
}

/* ---- hash ------------------------------------------------------------------------------------ */

static uint64_t hash_text(const char *s, uint64_t h)
{
    return s ? hash_bytes(s, strlen(s), h) : h;
}

static uint64_t hash_pattern(const Pattern *p, uint64_t h)
{
    h = hash_mix(hash_mix(h, p->kind), p->nkids);
    if (p->kind == PAT_CTOR)
        h = hash_text(p->ctor->name, h);
    for (uint32_t i = 0; i < p->nkids; i++)
        h = hash_pattern(p->kids[i], h);
    return h;
}

static uint64_t hash_node(Ctx *c, const Expr *e)
{
    uint64_t h = hash_mix((uint64_t)e->kind, e->nkids);

    switch (e->kind) {
    case EXPR_CONST: {
        const Const *k = e->u.constant;

        h = hash_mix(h, k->type->id);
        return hash_bytes(k->data.at, k->data.n < 65536 ? k->data.n : 65536, h);
    }
    case EXPR_VAR: return hash_mix(h, e->type ? plain(c, e->type)->id : 0);
    case EXPR_GLOBAL: return hash_text(e->u.name, h);
    case EXPR_OP: return hash_text(e->u.op->text, h);
    case EXPR_CTOR: return hash_text(e->u.ctor->name, h);
    case EXPR_PROJ: return hash_mix(h, e->u.index);
    case EXPR_CALL: return call_op(e) ? hash_mix(h, attrs_hash(call_op(e)->attrs, e->u.attrs)) : h;
    case EXPR_FUNC:
        return hash_text(e->u.func.compiler,
                         hash_mix(h, e->u.func.primitive + 2u * e->u.func.host));
    case EXPR_MATCH:
        for (uint32_t i = 0; i + 1 < e->nkids; i++)
            h = hash_pattern(e->u.match.patterns[i], h);
        return h;
    case EXPR_TUPLE:
    case EXPR_LET:
    case EXPR_IF:
    case EXPR_REF_NEW:
    case EXPR_REF_READ:
    case EXPR_REF_WRITE: return h;
    }
    return h;
}

uint64_t expr_hash(Ctx *c, const Expr *root, Map *known)
{
    VEC(const Expr *) todo = {0};

    known = known ? known : map_new(c->scratch);
    vec_push(c->scratch, &todo, root);
    while (todo.n) {
        const Expr *e = todo.at[todo.n - 1];
        uint64_t   *h;
        bool        ready = true;

        for (uint32_t k = e->nkids; k-- > 0;)
            if (!map_get(known, PTR_KEY(e->kids[k]))) {
                vec_push(c->scratch, &todo, e->kids[k]);
                ready = false;
            }
        if (!ready)
            continue;
        todo.n--;
        if (map_get(known, PTR_KEY(e)))
            continue;
        h = NEW(c->arena, uint64_t);
        *h = hash_node(c, e);
        for (uint32_t k = 0; k < e->nkids; k++)
            *h = hash_mix(*h, *(uint64_t *)map_get(known, PTR_KEY(e->kids[k])));
        map_put(known, PTR_KEY(e), h);
    }
    return *(uint64_t *)map_get(known, PTR_KEY(root));
}

/* ---- modules -------------------------------------------------------------------------------- */

static bool same_adt(Ctx *c, const Adt *a, const Adt *b)
{
    if (strcmp(a->name, b->name) != 0 || a->nvars != b->nvars || a->nctors != b->nctors)
        return false;
    for (uint32_t i = 0; i < a->nctors; i++) {
        const Ctor *x = a->ctors[i], *y = b->ctors[i];

        if (strcmp(x->name, y->name) != 0 || x->nfields != y->nfields)
            return false;
        for (uint32_t k = 0; k < x->nfields; k++)
            if (strcmp(type_text(c, x->fields[k]), type_text(c, y->fields[k])) != 0)
                return false;
    }
    return true;
}

bool module_same(Ctx *c, const Module *a, const Module *b)
{
    if (a->nfuncs != b->nfuncs || a->nadts != b->nadts)
        return false;
    for (uint32_t i = 0; i < a->nadts; i++)
        if (!same_adt(c, a->adts[i], b->adts[i]))
            return false;
    for (uint32_t i = 0; i < a->nfuncs; i++)
        if (strcmp(a->funcs[i].name, b->funcs[i].name) != 0 ||
            !expr_same(c, a->funcs[i].func, b->funcs[i].func))
            return false;
    return true;
}
