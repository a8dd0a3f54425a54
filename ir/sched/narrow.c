/* narrow %t type=f16: %t holds numbers of fewer bits.  What is stored is rounded, what is loaded is
 * widened again:
 *
 *     %y[k, n] = select(n < 75, f32(%x[n, k]), 0.0)   ..  %q[k] * %y[k, n]
 *     -> %y[k, n] = select(n < 75, %x[n, k], 0.0)     ..  %q[k] * f32(%y[k, n])
 *
 * Copies of numbers that had that type before keep their bits.  Sums are not narrowed: each of
 * their steps would be rounded. */
#include "ir/sched/impl.h"

/* p, which is of more bits, as a number of type t; *exact: no bit is lost. */
static const Prim *narrowed(Ctx *c, DType t, const Prim *p, bool *exact)
{
    if (p->kind == PRIM_CAST && dtype_eq(p->kids[0]->dtype, t))
        return p->kids[0];
    if (p->kind == PRIM_SELECT)
        return prim_select(c, p->kids[0], narrowed(c, t, p->kids[1], exact),
                           narrowed(c, t, p->kids[2], exact));
    *exact = *exact && p->kind == PRIM_FLOAT && p->u.f == 0;
    return prim_cast(c, t, p);
}

typedef struct {
    const Buffer *was, *now;
    bool          exact;
} Narrow;

static const Prim *narrow_load(Ctx *c, void *user, const Prim *p)
{
    const Narrow *n = user;

    if (p->kind != PRIM_LOAD || p->u.load.buffer != n->was)
        return p;
    return prim_cast(c, n->was->dtype, prim_load(c, n->now, p->u.load.index));
}

static const Stmt *narrow_stmt(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    Narrow *n = user;

    (void)was;
    if (now->kind == STMT_ALLOC && now->u.buffer == n->was)
        return stmt_alloc(c, n->now, now->kids[0]);
    if (now->kind != STMT_STORE || now->u.store.buffer != n->was)
        return now;
    return stmt_store(c, n->now, now->u.store.index,
                      narrowed(c, n->now->dtype, now->u.store.value, &n->exact));
}

const Func *step_narrow(Work *w)
{
    const StepArg *ta = step_arg(w->st, 0), *type = step_option(w->st, "type");
    Sites          all = blocks_in(w, NO_SITE);
    DType          t;

    if (!ta || !ta->name || !type || !type->name || !dtype_parse(type->name, &t) || t.lanes != 1)
        return refuse(w, "write `narrow %%t type=f16`");
    const Buffer *b = buffer_named(w, ta->name);
    if (!b)
        return NULL;
    if (is_param(w, b))
        return refuse(w, "%%%s is a parameter", b->name);
    if (!dtype_is_float(b->dtype) || !dtype_is_float(t) || t.bits >= b->dtype.bits)
        return refuse(w, "%%%s is of %s", b->name, dtype_text(w->c, b->dtype));
    for (uint32_t i = 0; i < all.n; i++) {
        const Stmt *s = stmt_at(w, all.at[i]);
        Access      a = access_of(s, b);
        if ((a.loads || a.stores) && (a.in_index || s->u.block.opaque))
            return refuse(w, "'%s' is hand-written, or an index", s->u.block.name);
        if (a.stores && (s->u.block.nreduce || a.loads))
            return refuse(w, "'%s' sums in %%%s", s->u.block.name, b->name);
    }
    Buffer changed = *b;
    changed.dtype = t;
    Narrow      n = {b, buffer_copy(w->c, b, changed), true};
    const Func *f =
        func_with_body(w->c, w->f,
                       stmt_map(w->c, w->f->body,
                                &(TirMap){.user = &n, .stmt = narrow_stmt, .prim = narrow_load}));
    w->exact = w->exact && n.exact;
    return f;
}
