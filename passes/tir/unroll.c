/* unroll: loops marked `unroll` are written out.
 *
 *   for %p<3 unroll { %a[%p] = %x[%p*2] }  ->  %a[0] = %x[0]  %a[1] = %x[2]  %a[2] = %x[4]
 *
 * Index arithmetic folds as the constants go in, `case` takes its arm, and conditions that became
 * constant disappear.  The size is bounded before anything is expanded: the product of the unroll
 * marks times the body's nodes is at most 20,000 a loop nest; a loop that would pass it stays a
 * loop if it can (no register is indexed by it: promote says so otherwise). Cost: linear in the
 * result. */
#include "passes/passes.h"

enum { UNROLL_LIMIT = 20000 };

static uint64_t unrolled_size(const Stmt *s)
{
    uint64_t n = 1;

    for (uint32_t i = 0; i < s->nkids; i++)
        n += unrolled_size(s->kids[i]);
    int64_t extent;
    if (s->kind == STMT_FOR && s->u.loop.unroll && idx_is_const(s->u.loop.extent, &extent) &&
        extent > 0)
        n = n > UNROLL_LIMIT || extent > UNROLL_LIMIT ? UNROLL_LIMIT + 1 : n * (uint64_t)extent;
    return n;
}

static const Stmt *unroll_stmt(Ctx *c, const Stmt *s, bool *changed)
{
    const Stmt **kids = NEW_ARRAY(c->arena, const Stmt *, s->nkids + 1);
    int64_t      extent;

    if (s->kind == STMT_FOR && s->u.loop.unroll) {
        *changed = true;
        if (!idx_is_const(s->u.loop.extent, &extent) || unrolled_size(s) > UNROLL_LIMIT) {
            LoopData loop = s->u.loop;
            loop.unroll = false;
            return stmt_for(c, loop, unroll_stmt(c, s->kids[0], changed), s->loc);
        }
        if (extent < 0)
            extent = 0; /* of text; it never runs */
        const Stmt  *body = unroll_stmt(c, s->kids[0], changed);
        const Stmt **all = NEW_ARRAY(c->arena, const Stmt *, (size_t)extent + 1);
        for (int64_t i = 0; i < extent; i++) {
            IdxSubst *sub = subst_new(c->arith, c->arena);
            subst_bind(sub, s->u.loop.var, idx_addc(c->arith, s->u.loop.lo, i));
            all[i] = stmt_subst(c, body, sub);
            if (s->u.loop.outline) { /* each copy is a tile: a loop that runs once */
                const Idx *at = idx_addc(c->arith, s->u.loop.lo, i);
                LoopData   once = s->u.loop;
                once.var = atom_var(c->arith, s->u.loop.var->name, at->lo, at->hi);
                once.lo = at;
                once.extent = idx_const(c->arith, 1);
                once.unroll = false;
                all[i] = stmt_for(c, once, all[i], s->loc);
            }
        }
        return stmt_seq(c, (uint32_t)extent, all);
    }
    for (uint32_t i = 0; i < s->nkids; i++)
        kids[i] = unroll_stmt(c, s->kids[i], changed);
    return stmt_with_kids(c, s, kids);
}

static const Func *unroll_func(Ctx *c, void *user, const Func *f)
{
    bool        changed = false;
    const Stmt *body = unroll_stmt(c, f->body, &changed);

    (void)user;
    return changed ? func_with_body(c, f, body) : f;
}

const TirModule *unroll(Ctx *c, const TirModule *m)
{
    return tirmod_map(c, m, unroll_func, NULL);
}
