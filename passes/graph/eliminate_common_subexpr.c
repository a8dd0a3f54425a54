/* eliminate_common_subexpr: one node for equal pure calls.
 *
 *   %0 = exp(%x);  %1 = exp(%x);  add(%0, %1)    ->    %0 = exp(%x);  add(%0, %0)
 *
 * Operators are pure, so two calls of one operator with equal attributes and the same operands are
 * one value; tuples, fields and constants of equal content likewise.  References, functions and
 * control flow are left alone.  Kids come first, so that equal kids are the same node already and a
 * node's key is its operator, attributes and the identity of its operands.
 *
 * Cost: one rewrite with a hash table. */
#include "passes/graph/graph.h"

#include <string.h>

typedef struct Entry {
    const Expr         *e;
    const struct Entry *next;
} Entry;

static uint64_t key_of(const Expr *e)
{
    enum { HASHED = 4096 }; /* bytes of a constant */
    const Op *op = call_op(e);
    uint64_t  h = hash_mix((uint64_t)e->kind, e->nkids);

    if (e->kind == EXPR_CONST)
        return hash_bytes(e->u.constant->data.at,
                          e->u.constant->data.n < HASHED ? e->u.constant->data.n : HASHED, h);
    if (e->kind == EXPR_PROJ)
        h = hash_mix(h, e->u.index);
    if (op)
        h = hash_mix(hash_mix(h, op->id), attrs_hash(op->attrs, e->u.attrs));
    for (uint32_t i = op ? 1 : 0; i < e->nkids; i++)
        h = hash_mix(h, PTR_KEY(e->kids[i]));
    return h;
}

static bool equal(const Expr *a, const Expr *b)
{
    const Op *op = call_op(a);

    if (a->kind != b->kind || a->nkids != b->nkids || a->type != b->type)
        return false;
    if (a->kind == EXPR_CONST) {
        Bytes x = a->u.constant->data, y = b->u.constant->data;

        return x.n == y.n && (x.at == y.at || !memcmp(x.at, y.at, x.n));
    }
    if (a->kind == EXPR_PROJ && a->u.index != b->u.index)
        return false;
    if (op != call_op(b) || (op && !attrs_equal(op->attrs, a->u.attrs, b->u.attrs)))
        return false;
    for (uint32_t i = op ? 1 : 0; i < a->nkids; i++)
        if (a->kids[i] != b->kids[i])
            return false;
    return true;
}

static const Expr *unite(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    Map         *seen = user;
    const Entry *first, *i;
    Entry       *entry;
    uint64_t     key;

    (void)was;
    if (now->kind != EXPR_CONST && now->kind != EXPR_TUPLE && now->kind != EXPR_PROJ &&
        !call_op(now))
        return now;
    key = key_of(now);
    first = map_get(seen, key);
    for (i = first; i; i = i->next)
        if (equal(i->e, now))
            return i->e;
    entry = NEW(c->scratch, Entry);
    *entry = (Entry){now, first};
    map_put(seen, key, entry);
    return now;
}

const Module *eliminate_common_subexpr(Ctx *c, const Module *m)
{
    GlobalDef *defs = NEW_ARRAY(c->scratch, GlobalDef, m->nfuncs ? m->nfuncs : 1);
    bool       changed = false;

    /* Nodes of different functions stay apart: each function gets its own table. */
    for (uint32_t i = 0; i < m->nfuncs; i++) {
        defs[i] = m->funcs[i];
        if (!(defs[i].func = expr_rewrite(c, m->funcs[i].func, unite, map_new(c->scratch))))
            return NULL;
        changed |= defs[i].func != m->funcs[i].func;
    }
    return changed ? module_new(c, m, m->nfuncs, defs) : m;
}
