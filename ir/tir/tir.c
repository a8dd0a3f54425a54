/* Statements, functions and modules of TIR: the makers.
 *
 * A statement is immutable once made; a sequence never holds a sequence or an empty one, so equal
 * programs have equal shapes.  Walks are in map.c. */
#include "ir/tir/tir.h"

#include <string.h>

/* ---- statements ------------------------------------------------------------------------------ */

static Stmt *stmt_new(Ctx *c, StmtKind kind, uint32_t n, const Stmt *const *kids, Loc loc)
{
    Stmt *s = NEW(c->arena, Stmt);

    s->kind = kind;
    s->id = c->next_stmt++;
    s->loc = loc;
    s->nkids = n;
    s->kids = n ? DUP_ARRAY(c->arena, kids, n) : NULL;
    return s;
}

bool stmt_has_barrier(const Stmt *s)
{
    if (s->kind == STMT_BARRIER)
        return true;
    for (uint32_t i = 0; i < s->nkids; i++)
        if (stmt_has_barrier(s->kids[i]))
            return true;
    return false;
}

bool stmt_is_empty(const Stmt *s)
{
    return s->kind == STMT_SEQ && s->nkids == 0;
}

enum { MOST_WRITTEN = 512 };

/* Stores of s when all is written out, which makes `rounds` of it; MOST_WRITTEN if a loop stays. */
static int64_t written(const Stmt *s, int64_t rounds, int64_t few)
{
    const LoopData *l = &s->u.loop;
    int64_t         n = s->kind == STMT_STORE, all = 1;

    if (s->kind == STMT_FOR && !l->vector && !l->intrin && l->bind == AXIS_NONE) {
        all = l->extent->hi < 1 ? 1 : l->extent->hi;
        if (!l->unroll && all > (l->rounds ? l->rounds : few / rounds))
            return MOST_WRITTEN;
        rounds *= l->unroll || l->rounds ? 1 : all;
    }
    for (uint32_t i = 0; i < s->nkids && n < MOST_WRITTEN; i++)
        n += written(s->kids[i], rounds, few);
    return n > MOST_WRITTEN / all ? MOST_WRITTEN : n * all;
}

bool stmt_is_written_out(const Stmt *s, int64_t few)
{
    return written(s, 1, few) < MOST_WRITTEN;
}

const Stmt *stmt_seq(Ctx *c, uint32_t n, const Stmt *const *kids)
{
    VEC(const Stmt *) all = {0};

    for (uint32_t i = 0; i < n; i++) {
        if (!kids[i])
            continue; /* so that a caller can list what may be absent */
        if (kids[i]->kind != STMT_SEQ) {
            vec_push(c->scratch, &all, kids[i]);
            continue;
        }
        for (uint32_t j = 0; j < kids[i]->nkids; j++)
            vec_push(c->scratch, &all, kids[i]->kids[j]);
    }
    return all.n == 1 ? all.at[0] : stmt_new(c, STMT_SEQ, all.n, all.at, NO_LOC);
}

const Stmt *stmt_for(Ctx *c, LoopData loop, const Stmt *body, Loc loc)
{
    Stmt *s = stmt_new(c, STMT_FOR, 1, &body, loc);
    s->u.loop = loop;
    return s;
}

const Stmt *stmt_while(Ctx *c, const Prim *cond, const Stmt *body)
{
    Stmt *s = stmt_new(c, STMT_WHILE, 1, &body, NO_LOC);
    s->u.cond = cond;
    return s;
}

const Stmt *stmt_if(Ctx *c, const Prim *cond, const Stmt *then, const Stmt *other)
{
    const Stmt *kids[2] = {then, other};

    if (cond->kind == PRIM_INT)
        return cond->u.i ? then : other ? other : stmt_seq(c, 0, NULL);
    Stmt *s = stmt_new(c, STMT_IF, other && !stmt_is_empty(other) ? 2 : 1, kids, NO_LOC);
    s->u.cond = cond;
    return s;
}

const Stmt *stmt_alloc(Ctx *c, const Buffer *b, const Stmt *body)
{
    Stmt *s = stmt_new(c, STMT_ALLOC, 1, &body, NO_LOC);
    s->u.buffer = b;
    return s;
}

const Stmt *stmt_storev(Ctx *c, const Buffer *b, const Idx *const *index, const Prim *value,
                        const Prim *mask)
{
    Stmt *s = stmt_new(c, STMT_STORE, 0, NULL, NO_LOC);
    s->u.store = (StoreData){b,     b->ndim, b->ndim ? DUP_ARRAY(c->arena, index, b->ndim) : NULL,
                             value, mask,    NULL};
    return s;
}

const Stmt *stmt_store(Ctx *c, const Buffer *b, const Idx *const *index, const Prim *value)
{
    return stmt_storev(c, b, index, value, NULL);
}

const Stmt *stmt_block(Ctx *c, BlockData b, uint32_t n, const Stmt *const *kids, Loc loc)
{
    uint32_t iters = b.nspatial + b.nreduce + b.nseq;
    Stmt    *s = stmt_new(c, STMT_BLOCK, n, kids, loc);

    b.name = intern(c->strings, b.name);
    b.iter = iters ? DUP_ARRAY(c->arena, b.iter, iters) : NULL;
    b.bind = iters ? DUP_ARRAY(c->arena, b.bind, iters) : NULL;
    b.where.ge0 = b.where.n ? DUP_ARRAY(c->arena, b.where.ge0, b.where.n) : NULL;
    s->u.block = b;
    return s;
}

const Stmt *stmt_call(Ctx *c, const char *callee, uint32_t n, const Arg *args, bool on0, Loc loc)
{
    Stmt *s = stmt_new(c, STMT_CALL, 0, NULL, loc);
    s->u.call =
        (StmtCall){intern(c->strings, callee), n, n ? DUP_ARRAY(c->arena, args, n) : NULL, on0};
    return s;
}

const Stmt *stmt_prefetch(Ctx *c, const Buffer *b, const Idx *const *index, uint32_t lines)
{
    Stmt *s = stmt_new(c, STMT_PREFETCH, 0, NULL, NO_LOC);
    s->u.prefetch =
        (PrefetchData){b, b->ndim, lines, b->ndim ? DUP_ARRAY(c->arena, index, b->ndim) : NULL};
    return s;
}

const Stmt *stmt_barrier(Ctx *c)
{
    return stmt_new(c, STMT_BARRIER, 0, NULL, NO_LOC);
}

const Stmt *stmt_await(Ctx *c, AwaitData what)
{
    Stmt *s = stmt_new(c, STMT_AWAIT, 0, NULL, NO_LOC);

    s->u.await = what;
    return s;
}

const Stmt *stmt_region(Ctx *c, RegionData r, const Stmt *body)
{
    Stmt *s = stmt_new(c, STMT_REGION, 1, &body, NO_LOC);
    s->u.region = r;
    return s;
}

const Stmt *stmt_launch(Ctx *c, LaunchData l, Loc loc)
{
    Stmt *s = stmt_new(c, STMT_LAUNCH, 0, NULL, loc);
    l.kernel = intern(c->strings, l.kernel);
    l.args = l.nargs ? DUP_ARRAY(c->arena, l.args, l.nargs) : NULL;
    s->u.launch = l;
    return s;
}

const Stmt *stmt_copy(Ctx *c, CopyData d)
{
    Stmt *s = stmt_new(c, STMT_COPY, 0, NULL, NO_LOC);
    s->u.copy = d;
    return s;
}

const Stmt *stmt_view(Ctx *c, const Buffer *b, const Prim *at, const Stmt *body)
{
    Stmt *s = stmt_new(c, STMT_VIEW, 1, &body, NO_LOC);
    s->u.view = (ViewData){b, at};
    return s;
}

const Stmt *stmt_put(Ctx *c, const Buffer *b, const Idx *const *index, const AbiMember *m,
                     const Prim *value)
{
    Stmt *s = stmt_new(c, STMT_STORE, 0, NULL, NO_LOC);
    s->u.store = (StoreData){b,     b->ndim, b->ndim ? DUP_ARRAY(c->arena, index, b->ndim) : NULL,
                             value, NULL,    m};
    return s;
}

const Stmt *stmt_invoke(Ctx *c, InvokeData d)
{
    Stmt *s = stmt_new(c, STMT_INVOKE, 0, NULL, NO_LOC);
    d.args = d.nargs ? DUP_ARRAY(c->arena, d.args, d.nargs) : NULL;
    s->u.invoke = d;
    return s;
}

const Stmt *stmt_switch(Ctx *c, const Prim *value, uint32_t n, const int64_t *end,
                        const Stmt *const *arms)
{
    Stmt *s = stmt_new(c, STMT_SWITCH, n, arms, NO_LOC);
    s->u.cases = (SwitchData){value, DUP_ARRAY(c->arena, end, n)};
    return s;
}

const Stmt *stmt_return(Ctx *c, const Prim *value)
{
    Stmt *s = stmt_new(c, STMT_RETURN, 0, NULL, NO_LOC);
    s->u.cond = value;
    return s;
}

const Stmt *stmt_fail(Ctx *c, int32_t code)
{
    Stmt *s = stmt_new(c, STMT_FAIL, 0, NULL, NO_LOC);
    s->u.code = code;
    return s;
}

const Stmt *stmt_with_kids(Ctx *c, const Stmt *s, const Stmt *const *kids)
{
    bool same = true;

    for (uint32_t i = 0; i < s->nkids; i++)
        same = same && kids[i] == s->kids[i];
    if (same)
        return s;
    if (s->kind == STMT_SEQ)
        return stmt_seq(c, s->nkids, kids);
    if (s->kind == STMT_IF)
        return stmt_if(c, s->u.cond, kids[0], s->nkids > 1 ? kids[1] : NULL);
    Stmt *n = stmt_new(c, s->kind, s->nkids, kids, s->loc);
    n->u = s->u;
    return n;
}

/* ---- buffers ----------------------------------------------------------------------------------- */

const Buffer *buffer_new(Ctx *c, const char *name, DType t, Scope scope, uint32_t ndim,
                         const Idx *const *extent)
{
    Buffer b = {.name = intern(c->strings, name), .dtype = t, .scope = scope, .ndim = ndim};

    b.extent = ndim ? DUP_ARRAY(c->arena, extent, ndim) : NULL;
    return buffer_copy(c, &b, b);
}

const Buffer *buffer_copy(Ctx *c, const Buffer *like, Buffer changed)
{
    (void)like;
    changed.id = c->next_buffer++;
    return arena_dup(c->arena, &changed, sizeof changed);
}

void buffer_strides(Ctx *c, const Buffer *b, const Idx **stride)
{
    const Idx *s = idx_const(c->arith, 1);
    int64_t    cells;

    for (uint32_t d = b->ndim; d-- > 0;) {
        if (b->pitch && b->pitch->dim == d && idx_is_const(s, &cells))
            s = idx_addc(c->arith, s, floor_mod(b->pitch->offset - cells, b->pitch->factor));
        stride[d] = b->stride ? b->stride[d] : s;
        const Idx *extent = b->extent[d];
        if (b->halo)
            extent = idx_addc(c->arith, extent, (int64_t)b->halo->lo[d] + b->halo->hi[d]);
        s = idx_mul(c->arith, s, extent);
    }
}

static bool most(const Idx *x, int64_t *v)
{
    return *v = idx_usual(x), true;
}

static bool size_by(Ctx *c, const Buffer *b, bool (*number)(const Idx *x, int64_t *v),
                    int64_t *elems, int64_t *origin)
{
    const Idx **stride = NEW_ARRAY(c->scratch, const Idx *, b->ndim + 1);
    int64_t     n = 1, at = 0, packed = 1;

    buffer_strides(c, b, stride);
    for (uint32_t d = 0; d < b->ndim; d++) {
        int64_t extent, step, part, lo = b->halo ? b->halo->lo[d] : 0,
                                    hi = b->halo ? b->halo->hi[d] : 0;
        if (!number(b->extent[d], &extent) || !number(stride[d], &step))
            return false;
        if (extent + lo + hi <= 0)
            return *elems = 0, *origin = 0, true;
        if (!checked_mul(packed, extent + lo + hi, &packed))
            return false; /* strides may have wrapped */
        if (!checked_mul(extent + lo + hi - 1, step, &part) || !checked_add(n, part, &n))
            return false;
        if (!checked_mul(lo, step, &part) || !checked_add(at, part, &at))
            return false;
    }
    *elems = n;
    *origin = at;
    return true;
}

bool buffer_size(Ctx *c, const Buffer *b, int64_t *elems, int64_t *origin)
{
    return size_by(c, b, idx_is_const, elems, origin);
}

bool buffer_size_most(Ctx *c, const Buffer *b, int64_t *elems, int64_t *origin)
{
    return size_by(c, b, most, elems, origin);
}

/* ---- functions and modules ------------------------------------------------------------------------ */

const Func *func_new(Ctx *c, Func f)
{
    f.name = intern(c->strings, f.name);
    f.params = f.nparams ? DUP_ARRAY(c->arena, f.params, f.nparams) : NULL;
    return arena_dup(c->arena, &f, sizeof f);
}

uint32_t func_dims(const Func *f)
{
    uint32_t n = 0;

    while (n < f->nparams && f->params[n].scalar)
        n++;
    return n;
}

const Atom *func_scalar(const Func *f, const char *name, uint32_t *at)
{
    for (uint32_t i = 0; i < f->nparams; i++)
        if (f->params[i].scalar && !strcmp(f->params[i].scalar->name, name)) {
            if (at)
                *at = i;
            return f->params[i].scalar;
        }
    return NULL;
}

const Func *func_with_body(Ctx *c, const Func *f, const Stmt *body)
{
    Func g = *f;

    if (body == f->body)
        return f;
    g.body = body;
    return func_new(c, g);
}

typedef struct {
    Ctx        *c;
    const Idx **axis;
} Axes;

static bool note_axis(void *user, const Stmt *s)
{
    Axes           *x = user;
    const LoopData *l = &s->u.loop;

    if (s->kind == STMT_FOR && l->bind)
        x->axis[l->bind] =
            x->axis[l->bind] ? idx_max(x->c->arith, x->axis[l->bind], l->extent) : l->extent;
    return true;
}

void func_axes(Ctx *c, const Func *f, const Idx *axis[AXIS_COUNT])
{
    Axes     x = {c, axis};
    TirVisit v = {&x, note_axis, NULL, NULL, NULL};

    for (int i = 0; i < AXIS_COUNT; i++)
        axis[i] = NULL;
    stmt_visit(f->body, &v);
}

const TirModule *tirmod_new(Ctx *c, uint32_t n, const Func *const *funcs)
{
    TirModule *m = NEW(c->arena, TirModule);

    m->nfuncs = n;
    m->funcs = n ? DUP_ARRAY(c->arena, funcs, n) : NULL;
    return m;
}

const TirModule *tirmod_data(Ctx *c, const TirModule *m, uint32_t n, const Data *data)
{
    TirModule *with = DUP_ARRAY(c->arena, m, 1);

    if (!n)
        return m;
    with->ndata = n;
    with->data = DUP_ARRAY(c->arena, data, n);
    return with;
}

const Func *tirmod_find(const TirModule *m, const char *name)
{
    for (uint32_t i = 0; m && i < m->nfuncs; i++)
        if (!strcmp(m->funcs[i]->name, name))
            return m->funcs[i];
    return NULL;
}

const TirModule *tirmod_map(Ctx *c, const TirModule                                    *m,
                            const Func *(*fn)(Ctx *c, void *user, const Func *f), void *user)
{
    const Func **funcs = NEW_ARRAY(c->scratch, const Func *, m->nfuncs + 1);
    bool         same = true;

    for (uint32_t i = 0; i < m->nfuncs; i++) {
        if (!(funcs[i] = fn(c, user, m->funcs[i])))
            return NULL;
        same = same && funcs[i] == m->funcs[i];
    }
    return same ? m : tirmod_data(c, tirmod_new(c, m->nfuncs, funcs), m->ndata, m->data);
}
