/* The host program as TIR, and the plan (docs/ir/tir.md).
 *
 *   func @net kind(host) (%x, %out, %arena, %weights) {
 *     region -> (%tid, %nt) {
 *       call @conv2d_relu.51ce02aa(%x+0, %weights+64, %weights+9280, %arena+0, %tid, %nt)
 *       barrier
 *       call @dense.02aa71b3(..) on 0 } }
 *
 * A model without any parallel kernel has no region: the calling thread does it all, and so it does
 * where other threads would save less than it costs to call them (`worth_threads`, threads.c).
 * A kernel with a parallel loop gets (tid, nt) and, if it has several phases, is called once a
 * phase with a barrier between; any other runs on thread 0.  A barrier stands wherever one thread
 * may read or overwrite what another one touched: between any two calls of which one is parallel.
 */
#include "passes/lower/lower.h"

#include "tvmcc/abi.h"

#include <string.h>

typedef enum { CLEAN, DIRTY_0, DIRTY_ALL } Dirty; /* who touched memory since the last barrier */

typedef struct {
    Ctx           *c;
    Program       *p;
    const Buffer **in, **out;
    const Buffer  *arena, *weights, *dims; /* dims NULL: no value decides one */
    const Buffer  *here, *here_weights;    /* arena and weights of the host beside a device */
    uint64_t       here_bytes;
    const Atom    *tid, *nt;
    const Atom    *round; /* of the loop around, or NULL */
    uint64_t       arena_bytes, private_bytes;
    const Idx     *arena_form, *private_form; /* both, of an open program as forms */
    uint64_t       weights_bytes;
    Copies         copies;
    Dirty          dirty;
    const Slot    *asked;     /* a condition that other threads may be about to read, or NULL */
    const Idx     *own;       /* the thread, in a loop whose rounds are divided; else NULL */
    uint64_t       own_bytes; /* of a thread's values in such loops */
    bool           alone;     /* threads would not pay: one runs it all, no region */
    bool           one_by_one;
} Host;

typedef VEC(const Stmt *) StmtList;

/* How far this thread's own memory lies behind that of the first. */
static const Idx *own_way(const Host *h)
{
    return idx_mul(h->c->arith, h->own, h->private_form);
}

static Arg slot_arg(Host *h, const Slot *part)
{
    Arith      *A = h->c->arith;
    uint64_t    o;
    const Slot *s = slot_root(part, &o);
    const Idx  *at = idx_addc(A, slot_way(h->c, part), (int64_t)part->origin);
    const Idx  *step = part->open.step ? part->open.step : idx_const(A, (int64_t)part->step);

    if (part->step)
        at = idx_add(A, at, idx_mul(A, idx_atom(A, h->round), step));
    switch (s->place) {
    case PLACE_INPUT: return (Arg){h->in[s->index], at, NULL};
    case PLACE_OUTPUT: return (Arg){h->out[s->index], at, NULL};
    case PLACE_ARENA:
        at = s->open.offset ? idx_add(A, at, s->open.offset) : idx_addc(A, at, (int64_t)s->offset);
        if (s->own)
            at = idx_add(A, at, own_way(h));
        return (Arg){s->here ? h->here : h->arena, at, NULL};
    case PLACE_CONST:
        return (Arg){s->here ? h->here_weights : h->weights,
                     idx_addc(A, at, (int64_t)h->p->consts.at[s->index].offset), NULL};
    case PLACE_DIMS:
        return (Arg){h->dims, idx_addc(A, at, (int64_t)s->index * dtype_bytes(DT_I64)), NULL};
    }
    BUG("place %d", (int)s->place);
}

static void meet(Host *h, StmtList *out)
{
    if (!h->alone)
        vec_push(h->c->arena, out, stmt_barrier(h->c));
    h->dirty = CLEAN;
    h->asked = NULL;
}

static void barrier(Host *h, StmtList *out)
{
    if (h->dirty != CLEAN)
        meet(h, out);
}

static bool writes(const Item *it, const Slot *root)
{
    uint64_t at;

    for (uint32_t i = 0; i < it->nout; i++)
        if (slot_root(it->out[i].slot, &at) == root)
            return true;
    return false;
}

static void before(Host *h, StmtList *out, const Item *it, bool parallel)
{
    if (h->asked && writes(it, h->asked))
        meet(h, out);
    if (h->dirty == DIRTY_ALL || (h->dirty == DIRTY_0 && parallel))
        barrier(h, out);
    if (parallel)
        h->dirty = DIRTY_ALL;
    else if (h->dirty == CLEAN)
        h->dirty = DIRTY_0;
}

/* Bytes of the scratch b of a call's kernel, from its first cell; where cell 0 lies in them.  The
 * kernel knows dimensions by its parameters. */
static const Idx *scratch_bytes(Ctx *c, const Item *it, const Buffer *b, int64_t *origin)
{
    const Func *f = it->kernel->flat;
    IdxSubst   *sub = subst_new(c->arith, c->scratch);
    int64_t     elems = 0, step = dtype_bytes(b->dtype);

    *origin = 0;
    buffer_size_most(c, b, &elems, origin);
    *origin *= step;
    if (b->ndim != 1 || idx_is_const(b->extent[0], NULL))
        return idx_const(c->arith, elems * step);
    for (uint32_t i = 0; i < it->dims.n; i++)
        subst_bind(sub, f->params[i].scalar, idx_atom(c->arith, it->dims.at[i]));
    const Idx *cells = idx_addc(c->arith, idx_subst(sub, b->extent[0]),
                                b->halo ? (int64_t)b->halo->lo[0] + b->halo->hi[0] : 0);
    return idx_mulc(c->arith, cells, step);
}

static void call_kernel(Host *h, StmtList *out, const Item *it, const Idx *phase)
{
    Ctx        *c = h->c;
    const Func *f = it->kernel->flat;
    Arg        *a = NEW_ARRAY(c->arena, Arg, f->nparams + 1);
    uint32_t    pointers = 0, work = 0, ndims = func_dims(f);
    const Idx  *scratch = idx_const(c->arith, 0);
    const Idx  *tid = h->alone ? idx_const(c->arith, 0) : idx_atom(c->arith, h->tid);
    const Idx  *nt = h->alone ? idx_const(c->arith, 1) : idx_atom(c->arith, h->nt);

    for (uint32_t i = 0; i < f->nparams; i++) {
        const Param *p = &f->params[i];
        if (i < ndims) {
            a[i] = (Arg){NULL, NULL, idx_atom(c->arith, it->dims.at[i])};
        } else if (p->scalar) {
            const char *name = p->scalar->name;
            const Idx  *v = !strcmp(name, TIR_TID) ? tid : !strcmp(name, TIR_NT) ? nt : phase;
            a[i] = (Arg){NULL, NULL, v};
        } else if (pointers < it->nin) {
            a[i] = slot_arg(h, it->in[pointers++].slot);
        } else if (pointers < it->nin + it->nout) {
            a[i] = slot_arg(h, it->out[pointers++ - it->nin].slot);
        } else if (p->buffer->scope == SCOPE_ARENA) {
            a[i] = slot_arg(h, it->work[work++]);
        } else {
            int64_t    origin;
            const Idx *bytes = scratch_bytes(c, it, p->buffer, &origin);
            const Idx *base =
                h->p->device ? idx_const(c->arith, (int64_t)h->here_bytes) : h->arena_form;
            const Idx *at = idx_addc(c->arith, idx_add(c->arith, base, scratch), origin);
            if (h->own)
                at = idx_addc(c->arith, idx_add(c->arith, at, own_way(h)), (int64_t)h->own_bytes);
            else if (func_is_parallel(f) && !h->one_by_one)
                at = idx_add(c->arith, at, idx_mul(c->arith, tid, h->private_form));
            a[i] = (Arg){h->p->device ? h->here : h->arena, at, NULL};
            scratch = idx_add(c->arith, scratch, arena_aligned(c, bytes));
        }
    }
    if (!it->kernel->nlaunches)
        vec_push(c->arena, out,
                 stmt_call(c, f->name, f->nparams, a, !h->alone && !func_is_parallel(f), it->loc));
    for (uint32_t i = 0; i < it->kernel->nlaunches; i++)
        vec_push(c->arena, out, launch_stmt(c, it->kernel->launches[i], a, it->loc));
}

enum { MOST_PHASES = 8 }; /* of a kernel, that are written out */

/* All phases of a kernel with barriers between them; many of them in a loop. */
static void call_phases(Host *h, StmtList *out, const Item *it)
{
    Ctx     *c = h->c;
    int64_t  n = func_phases(it->kernel->flat), i = 1;
    StmtList body = {0};

    call_kernel(h, out, it, idx_const(c->arith, 0));
    for (; i < n && n <= MOST_PHASES; i++) {
        barrier(h, out);
        h->dirty = DIRTY_ALL;
        call_kernel(h, out, it, idx_const(c->arith, i));
    }
    if (i == n)
        return;
    const Atom *phase = atom_var(c->arith, TIR_PHASE, 1, n - 1);
    LoopData    loop = {.var = phase,
                        .lo = idx_const(c->arith, 1),
                        .extent = idx_const(c->arith, n - 1),
                        .kind = LOOP_SEQ};
    barrier(h, &body);
    h->dirty = DIRTY_ALL;
    call_kernel(h, &body, it, idx_atom(c->arith, phase));
    vec_push(c->arena, out, stmt_for(c, loop, stmt_seq(c, body.n, body.at), NO_LOC));
}

/* A call of a function of copies.c: scalars, if it takes any, and tensors. */
static void call_copy(Host *h, const Item *it, const Func *k, const Arg *args, StmtList *out)
{
    Ctx *c = h->c;

    if (k->kind == FUNC_DEVICE)
        vec_push(c->arena, out, launch_stmt(c, k, args, it->loc));
    else
        vec_push(c->arena, out, stmt_call(c, k->name, k->nparams, args, !h->alone, it->loc));
}

/* From a state's input to its output: the caller may have given one memory for both. */
static bool copies_state(const Host *h, const Item *it)
{
    uint64_t    i, o;
    const Slot *from = slot_root(it->in[0].slot, &i), *to = slot_root(it->out[0].slot, &o);

    return from->place == PLACE_INPUT && to->place == PLACE_OUTPUT && i == 0 && o == 0 &&
           is_state(h->p, to->index, from->index);
}

static void emit_copy(Host *h, const Item *it, StmtList *out)
{
    const Idx *n = type_cells(h->c, it->in[0].type);
    Arg        a[3] = {{NULL, NULL, n}, slot_arg(h, it->in[0].slot), slot_arg(h, it->out[0].slot)};
    bool       from = lies_here(h->p, it->in[0].slot), to = lies_here(h->p, it->out[0].slot);

    if (n->hi == 0)
        return;
    before(h, out, it, false);
    if (from != to) {
        CopyData d = {a[2], a[1], idx_mulc(h->c->arith, n, dtype_bytes(it->in[0].type->dtype)),
                      from};
        vec_push(h->c->arena, out, stmt_copy(h->c, d));
        return;
    }
    const Func *k =
        copy_kernel(&h->copies, it->in[0].type->dtype, n, copies_state(h, it), h->p->device && !to);
    call_copy(h, it, k, k->nparams == COUNT(a) ? a : a + 1, out);
}

static void emit_slice(Host *h, const Item *it, StmtList *out)
{
    const Idx *n = type_cells(h->c, it->in[0].type), *slices = it->out[0].type->dims[0];
    Arg        a[5] = {{NULL, NULL, slices},
                       {NULL, NULL, n},
                       slot_arg(h, it->in[0].slot),
                       slot_arg(h, it->in[1].slot),
                       slot_arg(h, it->out[0].slot)};

    if (n->hi == 0 || slices->hi == 0)
        return;
    before(h, out, it, false);
    const Func *k = update_kernel(&h->copies, it->in[0].type->dtype, it->in[1].type->dtype, slices,
                                  n, h->p->device && !lies_here(h->p, it->out[0].slot));
    call_copy(h, it, k, k->nparams == COUNT(a) ? a : a + 2, out);
}

static const Prim *dim_cell(Host *h, uint32_t i)
{
    const Idx *at = idx_const(h->c->arith, i);

    return prim_load(h->c, h->dims, &at);
}

/* Dimensions that were computed now are within their bounds, or the run ends: in all threads, which
 * read the same. */
static void emit_bound(Host *h, const Item *it, StmtList *out)
{
    Ctx        *c = h->c;
    const Prim *bad = prim_int(c, DT_BOOL, 0);

    barrier(h, out);
    for (uint32_t i = 0; i < it->bound.n; i++) {
        const Idx  *dim = it->bound.at[i], *most = dim;
        const Prim *n = dim_cell(h, it->cell + i);
        const Atom *a;
        if (idx_is_atom(dim, &a))
            most = atom_most(c->arith, a);
        bad = prim_or(c, bad, prim_lt(c, n, prim_int(c, DT_I64, dim->lo)));
        bad = prim_or(c, bad, prim_lt(c, prim_index(c, DT_I64, most), n));
    }
    vec_push(c->arena, out, stmt_if(c, bad, stmt_fail(c, TVMCC_E_SHAPE), NULL));
}

/* The dimensions that values decide as what is read of main's cells. */
static const Stmt *with_bound_dims(Host *h, const Stmt *s)
{
    Ctx      *c = h->c;
    IdxSubst *sub = subst_new(c->arith, c->arena);

    for (uint32_t i = 0; i < h->p->bound.n; i++) {
        BoundDim b = h->p->bound.at[i];
        subst_bind(sub, b.dim, idx_load(c->arith, dim_cell(h, b.cell), b.dim->lo, b.dim->hi));
    }
    return h->p->bound.n ? stmt_subst(c, s, sub) : s;
}

static void emit_items(Host *h, const ItemList *items, StmtList *out);

/* What stands in memory at the end of a round is not known at its begin. */
static void emit_rounds(Host *h, const Item *it, LoopData loop, StmtList *out)
{
    Ctx     *c = h->c;
    StmtList body = {0};

    h->round = loop.var;
    h->dirty = DIRTY_ALL;
    emit_items(h, &it->then, &body);
    vec_push(c->arena, out, stmt_for(c, loop, stmt_seq(c, body.n, body.at), NO_LOC));
    h->round = NULL;
}

/* Each thread has its rounds, and does all of them. */
static void emit_divided(Host *h, const Item *it, LoopData loop, StmtList *out)
{
    Arith     *A = h->c->arith;
    const Idx *n = it->rounds, *tid = idx_atom(A, h->tid), *nt = idx_atom(A, h->nt);
    bool       alone = h->alone;

    h->own = alone || h->one_by_one ? idx_const(A, 0) : tid;
    if (!alone) {
        const Idx *end = idx_div(A, idx_mul(A, n, idx_addc(A, tid, 1)), nt);
        loop.lo = idx_div(A, idx_mul(A, n, tid), nt);
        loop.extent = idx_sub(A, end, loop.lo);
    }
    h->alone = true;
    emit_rounds(h, it, loop, out);
    h->alone = alone;
    h->own = NULL;
    h->dirty = DIRTY_ALL;
}

static void emit_loop(Host *h, const Item *it, StmtList *out)
{
    Arith   *A = h->c->arith;
    LoopData loop = {.var = atom_upto(A, "round", it->rounds),
                     .lo = idx_const(A, 0),
                     .extent = it->rounds,
                     .kind = LOOP_SEQ};

    barrier(h, out);
    if (it->divided)
        emit_divided(h, it, loop, out);
    else
        emit_rounds(h, it, loop, out);
}

/* Where the host keeps a condition that a device computes; NULL: it lies in memory anyway. */
static const Buffer *device_condition(Host *h, const Item *it)
{
    const Idx *one = idx_const(h->c->arith, 1);
    bool       there = h->p->device && !lies_here(h->p, it->in[0].slot);

    return there ? buffer_new(h->c, "cond", DT_U8, SCOPE_STACK, 1, &one) : NULL;
}

static const Stmt *fetch_condition(Host *h, const Item *it, const Buffer *here)
{
    Arg to = {here, idx_const(h->c->arith, 0), NULL};

    return stmt_copy(h->c,
                     (CopyData){to, slot_arg(h, it->in[0].slot), idx_const(h->c->arith, 1), false});
}

/* The condition of an item as the host sees it: in memory, or, of a device, in `here`. */
static const Prim *condition(Host *h, const Item *it, const Buffer *here)
{
    Ctx        *c = h->c;
    const Idx  *zero = idx_const(c->arith, 0);
    Arg         at = slot_arg(h, it->in[0].slot);
    const Prim *load = here ? prim_load(c, here, &zero) : prim_load(c, at.buffer, &at.offset);

    if (!dtype_is_bool(load->dtype))
        load = prim_not(c, prim_eq(c, load, prim_num(c, load->dtype, 0)));
    return it->until ? prim_not(c, load) : load;
}

/* `s` with the condition of a device at hand. */
static const Stmt *with_condition(Host *h, const Item *it, const Buffer *here, const Stmt *s)
{
    Ctx        *c = h->c;
    const Stmt *two[2] = {NULL, s};

    if (!here)
        return s;
    two[0] = fetch_condition(h, it, here);
    return stmt_alloc(c, here, stmt_seq(c, 2, two));
}

static void emit_branch(Host *h, const ItemList *items, StmtList *out)
{
    h->asked = NULL;
    emit_items(h, items, out);
    /* Whatever comes next may be where the condition lay. */
    if (out->n)
        barrier(h, out);
    else
        meet(h, out);
}

static void emit_if(Host *h, const Item *it, StmtList *out)
{
    Ctx          *c = h->c;
    StmtList      then = {0}, other = {0};
    const Buffer *here = device_condition(h, it);

    if (h->asked)
        meet(h, out);
    barrier(h, out);
    emit_branch(h, &it->then, &then);
    emit_branch(h, &it->other, &other);
    const Stmt *s = stmt_if(c, condition(h, it, here), stmt_seq(c, then.n, then.at),
                            stmt_seq(c, other.n, other.at));
    vec_push(c->arena, out, with_condition(h, it, here, s));
}

/* All threads ask for the condition between two barriers: one behind all that a round wrote, and
 * one before anybody writes it again. */
static void emit_while(Host *h, const Item *it, StmtList *out)
{
    Ctx          *c = h->c;
    StmtList      body = {0};
    const Buffer *here = device_condition(h, it);
    uint64_t      at;

    if (h->asked)
        meet(h, out);
    barrier(h, out);
    h->asked = slot_root(it->in[0].slot, &at);
    emit_items(h, &it->then, &body);
    barrier(h, &body);
    if (here)
        vec_push(c->arena, &body, fetch_condition(h, it, here));
    const Stmt *s = stmt_while(c, condition(h, it, here), stmt_seq(c, body.n, body.at));
    vec_push(c->arena, out, with_condition(h, it, here, s));
    h->asked = NULL;
    h->dirty = DIRTY_ALL; /* what comes next may be where the condition lay */
}

static void emit_items(Host *h, const ItemList *items, StmtList *out)
{
    for (uint32_t i = 0; i < items->n; i++) {
        const Item *it = items->at[i];
        switch (it->kind) {
        case ITEM_CALL: {
            before(h, out, it, func_is_parallel(it->kernel->flat));
            call_phases(h, out, it);
            break;
        }
        case ITEM_COPY: emit_copy(h, it, out); break;
        case ITEM_UPDATE: emit_slice(h, it, out); break;
        case ITEM_LOOP: emit_loop(h, it, out); break;
        case ITEM_WHILE: emit_while(h, it, out); break;
        case ITEM_IF: emit_if(h, it, out); break;
        case ITEM_BIND: emit_bound(h, it, out); break;
        }
    }
}

/* Storage for the scratch that all threads of a kernel share. */
static void plan_work(Program *p, const ItemList *items)
{
    Ctx *c = p->c;

    for (uint32_t i = 0; i < items->n; i++) {
        Item *it = items->at[i];
        plan_work(p, &it->then);
        plan_work(p, &it->other);
        if (it->kind != ITEM_CALL)
            continue;
        const Func *f = it->kernel->flat;
        VEC(Slot *) work = {0};
        for (uint32_t j = 0, pointers = 0; j < f->nparams; j++) {
            const Buffer *b = f->params[j].buffer;
            if (!b || pointers++ < it->nin + it->nout || b->scope != SCOPE_ARENA)
                continue;
            int64_t    origin, step = dtype_bytes(b->dtype);
            const Idx *cells = idx_divc(c->arith, scratch_bytes(c, it, b, &origin), step);
            Slot *s = slot_new(p, PLACE_ARENA, 0, type_tensor(c, b->dtype, 1, &cells), b->name);
            s->origin = (uint64_t)origin;
            s->here = p->device && f->kind != FUNC_DEVICE;
            s->first = s->last = it->at;
            vec_push(c->arena, &work, s);
        }
        it->work = work.at;
        it->nwork = work.n;
    }
}

/* What a thread of some call needs for itself, the most of all; in rounds that threads divide it is
 * behind the values of these. */
static const Idx *private_need(const Host *h, const ItemList *items, bool divided, const Idx *most)
{
    const Program *p = h->p;
    Ctx           *c = h->c;

    for (uint32_t i = 0; i < items->n; i++) {
        const Item *it = items->at[i];
        const Func *f = it->kind == ITEM_CALL ? it->kernel->flat : NULL;
        const Idx  *n = idx_const(c->arith, divided ? (int64_t)h->own_bytes : 0);
        uint32_t    pointers = 0;
        int64_t     origin;

        most = private_need(h, &it->other, divided, most);
        most = private_need(h, &it->then, divided || it->divided, most);
        for (uint32_t k = 0; f && k < f->nparams; k++) {
            const Buffer *b = f->params[k].buffer;

            if (b && pointers++ >= it->nin + it->nout && b->scope != SCOPE_ARENA)
                n = idx_add(c->arith, n, arena_aligned(c, scratch_bytes(c, it, b, &origin)));
        }
        most = idx_max(c->arith, most, size_most(c, n, p->bound.n, p->bound.at));
    }
    return most;
}

/* A parameter of main.  It does not know dimensions that are computed later: room for the most. */
static const Buffer *io_buffer(const Program *p, const char *name, const Type *t)
{
    Ctx       *c = p->c;
    const Idx *extent = type_cells(c, t);

    for (uint32_t i = 0; i < p->bound.n; i++)
        if (idx_uses(extent, p->bound.at[i].dim))
            extent = p->open ? size_most(c, extent, p->bound.n, p->bound.at)
                             : idx_const(c->arith, extent->hi);
    return buffer_new(c, name, dtype_cell(t->dtype), SCOPE_ARENA, 1, &extent);
}

static const Func *main_func(Host *h, const char *entry)
{
    Ctx     *c = h->c;
    Program *p = h->p;
    uint32_t n = p->dims.n + p->n_in + p->results.n + 2 + 2 * p->mixed + (h->dims != NULL), k = 0;
    Param   *params = NEW_ARRAY(c->arena, Param, n);
    StmtList body = {0};

    for (uint32_t i = 0; i < p->dims.n; i++)
        params[k++] = (Param){NULL, p->dims.at[i], false};
    for (uint32_t i = 0; i < p->n_in; i++)
        params[k++] = (Param){h->in[i], NULL, false};
    for (uint32_t i = 0; i < p->results.n; i++)
        params[k++] = (Param){h->out[i], NULL, true};
    params[k++] = (Param){h->arena, NULL, true};
    params[k++] = (Param){h->weights, NULL, false};
    if (p->mixed) {
        params[k++] = (Param){h->here, NULL, true};
        params[k++] = (Param){h->here_weights, NULL, false};
    }
    if (h->dims)
        params[k++] = (Param){h->dims, NULL, true};
    emit_items(h, &p->items, &body);
    RegionData  r = {h->tid, h->nt};
    const Stmt *s = with_bound_dims(h, stmt_seq(c, body.n, body.at));
    if (!h->alone)
        s = stmt_region(c, r, s);
    Func f = {.name = entry,
              .kind = FUNC_HOST,
              .target = p->kernels->target,
              .nparams = n,
              .params = params,
              .body = s};
    return func_new(c, f);
}

/* What a process can address: all that a pointer of 32 bits can, and of 64 what the largest
 * machines have. */
static uint64_t address_space(const Target *t)
{
    return t && t->pointer_bits == 32 ? (uint64_t)1 << 32 : (uint64_t)1 << 56;
}

static void add_bytes(uint64_t *sum, uint64_t bytes)
{
    if (!checked_add(*sum, bytes, sum))
        *sum = UINT64_MAX;
}

static void add_values(uint64_t *sum, uint32_t n, const Type *const *types)
{
    for (uint32_t i = 0; i < n; i++) {
        int64_t bytes;

        if (type_elems_most(types[i], &bytes))
            add_bytes(sum, checked_mul(bytes, dtype_bytes(types[i]->dtype), &bytes)
                               ? (uint64_t)bytes
                               : UINT64_MAX);
    }
}

static bool addressable(Ctx *c, uint64_t bytes)
{
    if (bytes <= address_space(c->target))
        return true;
    return error_at(c, E_CODEGEN, NO_LOC,
                    "the model needs %llu bytes of memory, a program of target '%s' has %llu",
                    (unsigned long long)bytes, c->target ? c->target->text : "",
                    (unsigned long long)address_space(c->target));
}

/* Before the plan adds sizes up: values that could only lie one behind the other far beyond any
 * address are no model. */
static bool values_addressable(const Program *p)
{
    uint64_t all = 0;

    for (uint32_t i = 0; i < p->slots.n; i++)
        add_bytes(&all, p->slots.at[i]->bytes);
    return all <= INT64_MAX || addressable(p->c, all);
}

/* Offsets that count from the lowest constant in memory; gives what lies between it and the last.
 */
static uint64_t place_where_they_are(Program *p)
{
    uintptr_t low = UINTPTR_MAX, high = 0;

    for (uint32_t i = 0; i < p->consts.n; i++) {
        uintptr_t at = (uintptr_t)p->consts.at[i].data->data.at;

        low = at < low ? at : low;
        high = at + p->consts.at[i].bytes > high ? at + p->consts.at[i].bytes : high;
    }
    low &= ~(uintptr_t)63; /* as weights have to be aligned */
    for (uint32_t i = 0; i < p->consts.n; i++)
        p->consts.at[i].offset = (uintptr_t)p->consts.at[i].data->data.at - low;
    return p->consts.n ? high - low : 0;
}

/* `open` allocates a device's memory, before any run. */
static const Plan *no_device_bound(const Program *p)
{
    uint32_t i = 0;

    while (!atom_is_open(p->dims.at[i]))
        i++;
    error_at(p->c, E_UNSUPPORTED, NO_LOC,
             "dimension '%s' has no upper bound, and a device's memory is allocated before a run",
             p->dims.at[i]->name);
    diag_hint(p->c->diags, "give it one, such as --dim %s=1..512", p->dims.at[i]->name);
    return NULL;
}

const Plan *lower(Ctx *c, const Module *m, const char *entry, const PassOptions *o)
{
    const Expr *f = module_func(m, "main");
    Kernels     kernels = {.c = c,
                           .o = o,
                           .target = c->target,
                           .by_text = map_new(c->arena),
                           .layouts = map_new(c->arena)};
    Program     p = {.c = c, .m = m, .kernels = &kernels, .device = c->target && c->target->host};

    if (!f)
        return error_at(c, E_PASS, NO_LOC, "the module has no function 'main'");
    if (!share_layouts(&kernels, m) || !program_of_main(&p, f) || !kernels_finish(&kernels))
        return NULL;
    if (p.device && p.open)
        return no_device_bound(&p);
    plan_work(&p, &p.items);
    divide_rounds(&p);

    Host       h = {.c = c, .p = &p, .one_by_one = o->one_by_one, .copies = {.c = c, .p = &p}};
    Plan      *plan = NEW(c->arena, Plan);
    uint64_t   here_floor;
    const Idx *here_form;
    VEC(const Func *) funcs = {0};
    const char **names = NEW_ARRAY(c->arena, const char *, p.results.n + 1);
    const Type **types = NEW_ARRAY(c->arena, const Type *, p.results.n + 1);
    if (!values_addressable(&p))
        return NULL;
    if (c->target && c->target->asks_cpu && !p.device)
        p.arena_first = CPU_NOTE_BYTES;
    h.arena_bytes = memory_plan(&p, false, &plan->arena_floor, &plan->arena);
    h.own_bytes = memory_plan_own(&p, h.arena_bytes) - h.arena_bytes;
    if (p.mixed)
        h.here_bytes = memory_plan(&p, true, &here_floor, &here_form);
    if (!run_program_passes(c, &p, o))
        return NULL;
    h.private_form = private_need(&h, &p.items, false, idx_const(c->arith, 0));
    h.private_bytes = (uint64_t)idx_usual(h.private_form);
    plan->scratch = p.open ? h.private_form : NULL;
    h.arena_form = p.open ? plan->arena : idx_const(c->arith, (int64_t)h.arena_bytes);
    if (o->in_place)
        h.weights_bytes = place_where_they_are(&p);
    for (uint32_t i = 0; !o->in_place && i < p.consts.n; i++) {
        p.consts.at[i].offset = h.weights_bytes;
        h.weights_bytes += align_up(p.consts.at[i].bytes, 64);
    }
    h.in = NEW_ARRAY(c->arena, const Buffer *, p.n_in + 1);
    h.out = NEW_ARRAY(c->arena, const Buffer *, p.results.n + 1);
    for (uint32_t i = 0; i < p.n_in; i++)
        h.in[i] = io_buffer(&p, p.in_names[i], p.in_types[i]);
    for (uint32_t i = 0; i < p.results.n; i++) {
        types[i] = p.results.at[i].type;
        names[i] = i < m->noutputs ? m->output_names[i] : intern_printf(c->strings, "output%u", i);
        h.out[i] = io_buffer(&p, names[i], types[i]);
    }
    uint64_t all = o->in_place ? 0 : h.weights_bytes;
    add_bytes(&all, h.arena_bytes);
    add_bytes(&all, h.private_bytes);
    add_bytes(&all, h.here_bytes);
    add_values(&all, p.n_in, p.in_types);
    add_values(&all, p.results.n, types);
    if (!addressable(c, all))
        return NULL;
    /* The first thread's private part is the arena's end. */
    const Idx    *na = p.device ? h.arena_form : idx_add(c->arith, h.arena_form, h.private_form);
    const int64_t nw = (int64_t)h.weights_bytes;
    h.arena = io_buffer(&p, "arena", type_tensor(c, DT_U8, 1, &na));
    h.weights = io_buffer(&p, "weights", type_tensor_i64(c, DT_U8, 1, &nw));
    if (p.mixed) {
        const int64_t bytes = (int64_t)(h.here_bytes + h.private_bytes);
        h.here = io_buffer(&p, "here", type_tensor_i64(c, DT_U8, 1, &bytes));
        h.here_weights = io_buffer(&p, "here_weights", type_tensor_i64(c, DT_U8, 1, &nw));
    }
    if (p.ncells) {
        const int64_t cells = p.ncells;
        h.dims = io_buffer(&p, "dims", type_tensor_i64(c, DT_I64, 1, &cells));
    }
    h.tid = atom_var(c->arith, TIR_TID, 0, 1023);
    h.nt = atom_var(c->arith, TIR_NT, 1, 1024);
    h.alone = !worth_threads(&p);
    const Func *host = main_func(&h, entry);
    for (uint32_t i = 0; i < h.copies.all.n; i++)
        vec_push(c->arena, &funcs, h.copies.all.at[i]);
    vec_push(c->arena, &funcs, host);

    plan->name = entry;
    plan->target = c->target;
    plan->tir = kernels_module(&kernels, funcs.n, funcs.at);
    plan->nconsts = p.consts.n;
    plan->consts = p.consts.at;
    plan->symbols = p.dims;
    plan->ncells = p.ncells;
    plan->nbound = p.bound.n;
    plan->bound = p.bound.at;
    plan->nin = p.n_in;
    plan->in = plan_io(c, p.n_in, p.in_names, p.in_types, m->in_info);
    plan->nout = p.results.n;
    plan->out = plan_io(c, p.results.n, names, types, m->out_info);
    plan->slots = plan_slots(&p, &plan->nslots);
    plan->nkernels = kernels.all.n;
    plan->kernels = plan_kernels(&kernels);
    plan->arena_bytes = h.arena_bytes;
    plan->private_bytes = p.device ? 0 : h.private_bytes;
    plan->mixed = p.mixed;
    plan->here_bytes = p.mixed ? h.here_bytes + h.private_bytes : 0;
    plan->weights_bytes = h.weights_bytes;
    if (arith_overflow(c->arith))
        return error_at(c, E_DIM, NO_LOC, "an index overflows 64 bits");
    return plan;
}
