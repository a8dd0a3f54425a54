/* fill_halo: the borders of what a kernel writes get their value.
 *
 *   func @k(%y: f32[1,8,56,56,8] halo(2:1+1, 3:1+1) = 0.0) { .. }
 *     -> the same with, first,  for %c<8 { %y[0,%c,-1,..] = 0  %y[0,%c,56,..] = 0  .. }
 *
 * Cells outside the interior hold the halo's value whenever the producer has finished
 * (docs/ir/te.md); memory of the arena is reused, so this happens in every run.  Border and
 * interior are disjoint: in a parallel kernel every thread fills its share without a barrier.  An
 * alloc with a halo is filled where it begins.  Runs after spmd. Cost: one walk. */
#include "machine/machine.h"
#include "passes/passes.h"

#include <string.h>

typedef struct {
    Ctx       *c;
    const Idx *tid, *nt; /* NULL: serial */
} Fill;

/* One side of dimension d: dimensions before it run over the interior, those after it over all. */
static const Stmt *fill_side(Fill *x, const Buffer *b, uint32_t d, int64_t from, int64_t n)
{
    Ctx        *c = x->c;
    Arith      *A = c->arith;
    const Idx **index = NEW_ARRAY(c->arena, const Idx *, b->ndim);
    LoopData   *loops = NEW_ARRAY(c->arena, LoopData, b->ndim);
    bool        shared = !x->tid;
    Machine     m = machine_of(c->target);

    for (uint32_t i = 0; i < b->ndim; i++) {
        const Idx *e = b->extent[i];
        int64_t    lo = 0;
        if (i == d)
            lo = from, e = idx_const(A, n);
        if (i > d) {
            lo = -(int64_t)b->halo->lo[i];
            e = idx_addc(A, e, (int64_t)b->halo->lo[i] + b->halo->hi[i]);
        }
        int64_t     extent = e->hi;
        const Atom *v = !lo && !idx_is_const(e, NULL) ? atom_upto(A, "h", e)
                                                      : atom_var(A, "h", lo, lo + extent - 1);
        const Idx  *at = idx_const(A, lo);
        if (!shared && extent > 1) { /* the first loop worth it is divided */
            const Idx *first = idx_div(A, idx_mul(A, e, x->tid), x->nt);
            at = idx_add(A, at, first);
            e = idx_sub(A, idx_div(A, idx_mul(A, e, idx_addc(A, x->tid, 1)), x->nt), first);
            shared = true;
        }
        bool vector = i + 1 == b->ndim && i != d && extent <= limit_border_lanes(&m) &&
                      extent > 1 && idx_is_const(e, NULL);
        loops[i] = (LoopData){.var = v, .lo = at, .extent = e, .vector = vector};
        index[i] = idx_atom(A, v);
    }
    const Stmt *s = stmt_store(c, b, index, prim_num(c, b->dtype, b->halo->value));
    for (uint32_t i = b->ndim; i-- > 0;)
        s = stmt_for(c, loops[i], s, NO_LOC);
    return s;
}

static const Stmt *fill_buffer(Fill *x, const Buffer *b)
{
    VEC(const Stmt *) all = {0};

    for (uint32_t d = 0; d < b->ndim; d++) {
        if (b->halo->lo[d])
            vec_push(x->c->arena, &all,
                     fill_side(x, b, d, -(int64_t)b->halo->lo[d], b->halo->lo[d]));
        if (b->halo->hi[d])
            vec_push(x->c->arena, &all, fill_side(x, b, d, b->extent[d]->hi, b->halo->hi[d]));
    }
    return stmt_seq(x->c, all.n, all.at);
}

static const Stmt *fill_alloc(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    Fill serial = {c, NULL, NULL};

    (void)user;
    (void)was;
    if (now->kind != STMT_ALLOC || !now->u.buffer->halo)
        return now;
    const Stmt *both[] = {fill_buffer(&serial, now->u.buffer), now->kids[0]};
    return stmt_alloc(c, now->u.buffer, stmt_seq(c, 2, both));
}

static const Func *fill_func(Ctx *c, void *user, const Func *f)
{
    TirMap      m = {NULL, fill_alloc, NULL, NULL, NULL};
    const Stmt *body = stmt_map(c, f->body, &m);
    const Atom *tid = func_scalar(f, TIR_TID, NULL), *nt = func_scalar(f, TIR_NT, NULL),
               *phase = func_scalar(f, TIR_PHASE, NULL);
    Fill x = {c, tid ? idx_atom(c->arith, tid) : NULL, nt ? idx_atom(c->arith, nt) : NULL};
    VEC(const Stmt *) all = {0};

    (void)user;
    for (uint32_t i = 0; i < f->nparams; i++)
        if (f->params[i].buffer && f->params[i].written && f->params[i].buffer->halo)
            vec_push(c->arena, &all, fill_buffer(&x, f->params[i].buffer));
    if (all.n) {
        const Stmt *fill = stmt_seq(c, all.n, all.at);
        if (phase) {
            const Prim *first = prim_eq(c, prim_index(c, DT_I64, idx_atom(c->arith, phase)),
                                        prim_int(c, DT_I64, 0));
            fill = stmt_if(c, first, fill, NULL);
        }
        const Stmt *both[] = {fill, body};
        body = stmt_seq(c, 2, both);
    }
    return func_with_body(c, f, body);
}

const TirModule *fill_halo(Ctx *c, const TirModule *m)
{
    return tirmod_map(c, m, fill_func, NULL);
}
