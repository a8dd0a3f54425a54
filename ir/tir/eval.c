/* The interpreter of TIR: slow and obvious, the oracle of everything that compiles TIR.
 *
 * It follows the meaning of each node literally.  Marks do not matter: parallel loops run in order,
 * a region runs once as thread 0 of 1.  Vectors are evaluated lane by lane; a store evaluates all
 * its lanes before it writes one.  Fresh memory is filled with 0xff, a NaN in every float type, so
 * reading what was never written shows.  Every access is checked: against the buffer's extents and
 * halo, and against the memory that was really passed.
 *
 * Values of variables, buffers and shared prims lie in tables indexed by id; `measure` finds the
 * ranges of ids first.  A prim that is reached twice in one evaluation is computed once. */
#include "ir/scalar.h"
#include "ir/tir/intrin.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_LANES = 1024 };

/* A buffer's memory. */
typedef struct {
    uint8_t *at;          /* cell 0 of the interior */
    uint8_t *first, *end; /* what may be touched at all */
    int64_t *extent, *stride;
    uint8_t *own; /* storage of an alloc */
    size_t   bytes;
} Mem;

typedef struct {
    uint64_t stamp; /* of the evaluation that computed it */
    uint32_t lane;
    Scalar   v;
} Memo;

typedef struct {
    uint32_t lo, hi; /* ids seen; lo > hi: none */
} Range;

typedef struct {
    Ctx             *c;
    Arena           *arena;
    const TirModule *m;
    Map             *measured; /* functions */
    Map             *expanded; /* instructions: prim id -> what they compute */
    Range            atoms, prims, buffers;
    int64_t         *var;
    bool            *bound;
    Mem            **mem;
    Memo            *memo;
    uint64_t         stamp;
    const Func      *f;     /* for messages */
    const char      *block; /* "" outside */
    bool             bad, left;
    Scalar           result; /* of the function that was left */
    int              depth;
    IdxEnv           env;
    Scalar           lanes[MAX_LANES];
    bool             on[MAX_LANES];
} Eval;

static void fail(Eval *e, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void fail(Eval *e, const char *fmt, ...)
{
    StrBuf  s = strbuf(e->arena);
    va_list ap;

    if (e->bad)
        return;
    e->bad = true;
    va_start(ap, fmt);
    str_vprintf(&s, fmt, ap);
    va_end(ap);
    error_at(e->c, E_RUN, e->f->loc, "@%s%s%s: %s", e->f->name, *e->block ? ": block " : "",
             e->block, s.at);
}

/* ---- which ids there are ------------------------------------------------------------------------ */

static void seen(Range *r, uint32_t id)
{
    if (r->lo > r->hi)
        *r = (Range){id, id};
    r->lo = id < r->lo ? id : r->lo;
    r->hi = id > r->hi ? id : r->hi;
}

static size_t span(Range r)
{
    return r.lo > r.hi ? 1 : (size_t)(r.hi - r.lo) + 1;
}

static void measure_idx(void *user, const Idx *x)
{
    Eval *e = user;

    for (uint32_t i = 0; i < x->nterms; i++) {
        const Atom *a = x->t[i].atom;
        if (a->kind == ATOM_VAR)
            seen(&e->atoms, a->id);
        if (a->a)
            measure_idx(user, a->a);
        if (a->b)
            measure_idx(user, a->b);
    }
}

static void measure_buffer(Eval *e, const Buffer *b)
{
    seen(&e->buffers, b->id);
    for (uint32_t i = 0; i < b->ndim; i++) {
        measure_idx(e, b->extent[i]);
        if (b->stride)
            measure_idx(e, b->stride[i]);
    }
}

/* Instructions are evaluated by what they compute. */
static void measure_prim(void *user, const Prim *p)
{
    Eval *e = user;

    seen(&e->prims, p->id);
    if (p->kind != PRIM_INTRIN || map_get(e->expanded, p->id))
        return;
    const Prim *x = intrin_expand(e->c, p);

    map_put(e->expanded, p->id, (void *)(uintptr_t)x);
    prim_visit(x, &(TirVisit){.user = e, .prim = measure_prim, .idx = measure_idx});
}

static void measure_func(Eval *e, const Func *f);

static bool measure_stmt(void *user, const Stmt *s)
{
    Eval            *e = user;
    const BlockData *b = &s->u.block;

    switch (s->kind) {
    case STMT_FOR: seen(&e->atoms, s->u.loop.var->id); break;
    case STMT_ALLOC: measure_buffer(e, s->u.buffer); break;
    case STMT_VIEW: measure_buffer(e, s->u.view.buffer); break;
    case STMT_INVOKE:
        if (s->u.invoke.fn->kind == PRIM_SYMBOL)
            measure_func(e, tirmod_find(e->m, s->u.invoke.fn->u.symbol));
        break;
    case STMT_BLOCK:
        for (uint32_t i = 0; i < b->nspatial + b->nreduce + b->nseq; i++)
            seen(&e->atoms, b->iter[i]->id);
        break;
    case STMT_REGION:
        seen(&e->atoms, s->u.region.tid->id);
        seen(&e->atoms, s->u.region.nt->id);
        break;
    case STMT_CALL: measure_func(e, tirmod_find(e->m, s->u.call.callee)); break;
    case STMT_LAUNCH: measure_func(e, tirmod_find(e->m, s->u.launch.kernel)); break;
    case STMT_SEQ:
    case STMT_WHILE:
    case STMT_IF:
    case STMT_STORE:
    case STMT_PREFETCH:
    case STMT_BARRIER:
    case STMT_COPY:
    case STMT_SWITCH:
    case STMT_RETURN:
    case STMT_FAIL: break;
    }
    return true;
}

static void measure_func(Eval *e, const Func *f)
{
    TirVisit v = {e, measure_stmt, NULL, measure_prim, measure_idx};

    if (!f || map_get(e->measured, PTR_KEY(f)))
        return;
    map_put(e->measured, PTR_KEY(f), e);
    for (uint32_t i = 0; i < f->nparams; i++) {
        if (f->params[i].buffer)
            measure_buffer(e, f->params[i].buffer);
        if (f->params[i].scalar)
            seen(&e->atoms, f->params[i].scalar->id);
    }
    stmt_visit(f->body, &v);
}

/* ---- variables and indices --------------------------------------------------------------------------- */

static Scalar eval_prim(Eval *e, const Prim *p, uint32_t lane);

static int64_t eval_atom(void *user, const Atom *a)
{
    Eval *e = user;

    if (a->kind == ATOM_LOAD) {
        int64_t v = eval_prim(e, a->load, 0).i;
        if (v < a->lo || v > a->hi)
            fail(e, "an index read from memory is %" PRId64 ", outside %" PRId64 "..%" PRId64, v,
                 a->lo, a->hi);
        return v;
    }
    if (a->id < e->atoms.lo || a->id > e->atoms.hi || !e->bound[a->id - e->atoms.lo]) {
        fail(e, "variable '%s' has no value", a->name);
        return a->lo;
    }
    return e->var[a->id - e->atoms.lo];
}

static int64_t eval_idx(Eval *e, const Idx *x)
{
    return x->nterms ? idx_eval(x, &e->env) : x->c0;
}

static void set_var(Eval *e, const Atom *a, int64_t v)
{
    if (v < a->lo || v > a->hi)
        fail(e, "'%s' is %" PRId64 ", outside its range %" PRId64 "..%" PRId64, a->name, v, a->lo,
             a->hi);
    e->var[a->id - e->atoms.lo] = v;
    e->bound[a->id - e->atoms.lo] = true;
}

static bool eval_pred(Eval *e, Pred p)
{
    for (uint32_t i = 0; i < p.n; i++)
        if (eval_idx(e, p.ge0[i]) < 0)
            return false;
    return true;
}

/* ---- memory ---------------------------------------------------------------------------------------------- */

static Mem *mem_of(Eval *e, const Buffer *b)
{
    Mem *m = b->id < e->buffers.lo || b->id > e->buffers.hi ? NULL : e->mem[b->id - e->buffers.lo];

    if (!m || !m->at)
        fail(e, "buffer '%s' has no memory here", b->name);
    return m && m->at ? m : NULL;
}

/* Handles are real pointers here, so structs lie as this machine lays them out. */
enum { HERE = 8 * sizeof(void *) };

static size_t cell_bytes(const Buffer *b)
{
    return b->record ? record_bytes(b->record, HERE) : dtype_bytes(b->dtype);
}

/* Sizes of b under the current variables; cells before cell 0 and after it, its own included. */
static Mem *measure_mem(Eval *e, const Buffer *b, int64_t *before, int64_t *after)
{
    Mem        *m = e->mem[b->id - e->buffers.lo];
    const Idx **stride = NEW_ARRAY(e->c->scratch, const Idx *, b->ndim + 1);

    if (!m) {
        m = NEW(e->arena, Mem);
        m->extent = NEW_ARRAY(e->arena, int64_t, b->ndim + 1);
        m->stride = NEW_ARRAY(e->arena, int64_t, b->ndim + 1);
        e->mem[b->id - e->buffers.lo] = m;
        buffer_strides(e->c, b, stride);
        for (uint32_t i = 0; i < b->ndim; i++)
            measure_idx(e, stride[i]);
    }
    buffer_strides(e->c, b, stride);
    *before = 0;
    *after = 1;
    for (uint32_t i = 0; i < b->ndim; i++) {
        int64_t lo = b->halo ? b->halo->lo[i] : 0, hi = b->halo ? b->halo->hi[i] : 0, part, more;
        m->extent[i] = eval_idx(e, b->extent[i]);
        m->stride[i] = eval_idx(e, stride[i]);
        if (m->extent[i] + lo + hi <= 0) {
            *before = *after = 0;
            return m;
        }
        if (!checked_mul(m->extent[i] + hi - 1, m->stride[i], &part) ||
            !checked_add(*after, part, after) || !checked_mul(lo, m->stride[i], &more) ||
            !checked_add(*before, more, before) || *before + *after > INT64_MAX / 4096) {
            fail(e, "buffer '%s' is too large", b->name);
            *before = *after = 0;
        }
    }
    return m;
}

static void set_mem(Eval *e, const Buffer *b, uint8_t *at, uint8_t *first, uint8_t *end)
{
    int64_t before, after;
    Mem    *m = measure_mem(e, b, &before, &after);

    m->at = at;
    m->first = first;
    m->end = end;
}

static void alloc_mem(Eval *e, const Buffer *b)
{
    int64_t before, after;
    Mem    *m = measure_mem(e, b, &before, &after), *shared;
    size_t  cell = cell_bytes(b), bytes = (size_t)(before + after) * cell;

    if (b->alias) {
        if ((shared = mem_of(e, b->alias)))
            m->at = shared->at, m->first = shared->first, m->end = shared->end;
        return;
    }
    if (!m->own || bytes > m->bytes) {
        m->own = arena_alloc(e->arena, bytes ? bytes : 1);
        m->bytes = bytes;
    }
    if (bytes)
        memset(m->own, 0xff, bytes);
    m->at = m->own + (size_t)before * cell;
    m->first = m->own;
    m->end = m->own + bytes;
}

/* Address of a lane of a cell, or NULL if that may not be touched. */
static uint8_t *address(Eval *e, const Buffer *b, const Idx *const *index, uint32_t lane)
{
    Mem     *m = mem_of(e, b);
    size_t   one = b->record ? cell_bytes(b) : dtype_bytes(dtype_lanes(b->dtype, 1));
    int64_t  cell = 0;
    uint8_t *at;

    if (!m)
        return NULL;
    for (uint32_t i = 0; i < b->ndim; i++) {
        int64_t lo = b->halo ? b->halo->lo[i] : 0, hi = b->halo ? b->halo->hi[i] : 0;
        int64_t x = eval_idx(e, index[i]);
        if (i + 1 == b->ndim && b->dtype.lanes == 1)
            x += lane;
        if (x < -lo || x >= m->extent[i] + hi) {
            fail(e, "index %" PRId64 " of dimension %u of '%s' is outside %" PRId64 "..%" PRId64, x,
                 i, b->name, -lo, m->extent[i] + hi - 1);
            return NULL;
        }
        cell += x * m->stride[i];
    }
    if (b->dtype.lanes > 1)
        cell = cell * b->dtype.lanes + lane;
    at = m->at + cell * (int64_t)one;
    if (at < m->first || at + one > m->end) {
        fail(e, "cell %" PRId64 " of '%s' is outside the memory it was given", cell, b->name);
        return NULL;
    }
    return at;
}

/* ---- prims -------------------------------------------------------------------------------------------------- */

static Scalar eval_load(Eval *e, const Prim *p, uint32_t lane)
{
    const LoadData *l = &p->u.load;
    uint8_t        *at;

    if (l->mask && !eval_prim(e, l->mask, lane).i)
        return dtype_is_float(p->dtype) ? (Scalar){.f = 0} : (Scalar){.i = 0};
    at = address(e, l->buffer, l->index, lane);
    if (at && l->member)
        at += record_offset(l->buffer->record, l->member, HERE);
    return at ? scalar_get(p->dtype, at) : (Scalar){.i = 0};
}

static Scalar compute(Eval *e, const Prim *p, uint32_t lane)
{
    DType   t = dtype_lanes(p->dtype, 1), kt = p->nkids ? dtype_lanes(p->kids[0]->dtype, 1) : t;
    Scalar  a, b;
    int64_t arm;

    switch (p->kind) {
    case PRIM_INT: return (Scalar){.i = p->u.i};
    case PRIM_FLOAT: return (Scalar){.f = p->u.f};
    case PRIM_INDEX: return (Scalar){.i = scalar_wrap(t, eval_idx(e, p->u.index))};
    case PRIM_RAMP: return (Scalar){.i = scalar_wrap(t, eval_idx(e, p->u.index) + lane)};
    case PRIM_LOAD: return eval_load(e, p, lane);
    case PRIM_ADDR: {
        const LoadData *l = &p->u.load;
        uint8_t        *at = address(e, l->buffer, l->index, 0);
        if (at && l->member)
            at += record_offset(l->buffer->record, l->member, HERE);
        return (Scalar){.i = (int64_t)(intptr_t)at};
    }
    case PRIM_SIZEOF: return (Scalar){.i = record_bytes(p->u.record, HERE)};
    case PRIM_SYMBOL: fail(e, "@%s has no address here", p->u.symbol); return (Scalar){.i = 0};
    case PRIM_ADD:
    case PRIM_SUB:
    case PRIM_MUL:
    case PRIM_DIV:
    case PRIM_REM:
    case PRIM_MIN:
    case PRIM_MAX:
    case PRIM_MINNUM:
    case PRIM_MAXNUM:
    case PRIM_AND:
    case PRIM_OR:
    case PRIM_XOR:
    case PRIM_SHL:
    case PRIM_SHR:
    case PRIM_EQ:
    case PRIM_NE:
    case PRIM_LT:
    case PRIM_LE:
        a = eval_prim(e, p->kids[0], lane);
        b = eval_prim(e, p->kids[1], lane);
        return scalar_bin(p->kind, kt, a, b);
    case PRIM_FMA:
        a = eval_prim(e, p->kids[0], lane);
        b = eval_prim(e, p->kids[1], lane);
        return scalar_fma(t, a, b, eval_prim(e, p->kids[2], lane));
    case PRIM_INTRIN: return eval_prim(e, map_get(e->expanded, p->id), lane);
    case PRIM_NOT: return scalar_not(t, eval_prim(e, p->kids[0], lane));
    case PRIM_SELECT:
        a = eval_prim(e, p->kids[0], p->kids[0]->dtype.lanes == 1 ? 0 : lane);
        return eval_prim(e, p->kids[a.i ? 1 : 2], lane);
    case PRIM_CAST: return scalar_cast(t, kt, eval_prim(e, p->kids[0], lane));
    case PRIM_BITS: return scalar_bits(t, kt, eval_prim(e, p->kids[0], lane));
    case PRIM_MATH:
        a = eval_prim(e, p->kids[0], lane);
        b = p->nkids > 1 ? eval_prim(e, p->kids[1], lane) : a;
        return scalar_math(p->u.math, t, a, b);
    case PRIM_CASE:
        arm = eval_idx(e, p->u.index);
        if (arm >= 0 && arm < p->nkids)
            return eval_prim(e, p->kids[arm], lane);
        fail(e, "arm %" PRId64 " of a case with %u", arm, p->nkids);
        return (Scalar){.i = 0};
    case PRIM_SPLAT: return eval_prim(e, p->kids[0], 0);
    case PRIM_VEC: return eval_prim(e, p->kids[lane], 0);
    case PRIM_SHUFFLE: return eval_prim(e, p->kids[0], p->u.from[lane]);
    }
    BUG("prim of kind %d", (int)p->kind);
}

static Scalar eval_prim(Eval *e, const Prim *p, uint32_t lane)
{
    Memo *memo = &e->memo[p->id - e->prims.lo];

    if (memo->stamp == e->stamp && memo->lane == lane)
        return memo->v;
    Scalar v = compute(e, p, lane);
    *memo = (Memo){e->stamp, lane, v};
    return v;
}

static bool eval_cond(Eval *e, const Prim *p)
{
    e->stamp++;
    return eval_prim(e, p, 0).i != 0;
}

/* ---- statements --------------------------------------------------------------------------------------------- */

static void exec(Eval *e, const Stmt *s);
static void call(Eval *e, const char *callee, uint32_t nargs, const Arg *args);
static void invoke(Eval *e, const InvokeData *d);

static void exec_store(Eval *e, const StoreData *d)
{
    uint32_t n = d->value->dtype.lanes;
    uint8_t *at;

    if (n > MAX_LANES) {
        fail(e, "a vector of %u lanes", n);
        return;
    }
    if (d->buffer->scope == SCOPE_CONST)
        fail(e, "store to '%s', which is const", d->buffer->name);
    e->stamp++;
    for (uint32_t i = 0; i < n && !e->bad; i++) {
        e->on[i] = !d->mask || eval_prim(e, d->mask, i).i;
        if (e->on[i])
            e->lanes[i] = eval_prim(e, d->value, i);
    }
    for (uint32_t i = 0; i < n && !e->bad; i++)
        if (e->on[i] && (at = address(e, d->buffer, d->index, i)))
            scalar_put(d->value->dtype,
                       at + (d->member ? record_offset(d->buffer->record, d->member, HERE) : 0),
                       e->lanes[i]);
}

/* Some loop of the nest has no rounds: those around it may have very many. */
static bool runs_nothing(const Stmt *s)
{
    int64_t n;

    for (; s->kind == STMT_FOR; s = s->kids[0])
        if (idx_is_const(s->u.loop.extent, &n) && n <= 0)
            return true;
    return false;
}

static void exec_for(Eval *e, const Stmt *s)
{
    const LoopData *l = &s->u.loop;
    int64_t         lo = eval_idx(e, l->lo), n = eval_idx(e, l->extent);

    if (n > 1 && runs_nothing(s->kids[0]))
        return;
    for (int64_t i = 0; i < n && !e->bad && !e->left; i++) {
        set_var(e, l->var, lo + i);
        exec(e, s->kids[0]);
    }
}

static void exec_block(Eval *e, const Stmt *s)
{
    const BlockData *b = &s->u.block;
    uint32_t         n = b->nspatial + b->nreduce + b->nseq;
    const char      *was = e->block;
    bool             first = true;

    e->block = b->name;
    e->stamp++;
    if (eval_pred(e, b->where)) {
        for (uint32_t i = 0; i < n; i++)
            set_var(e, b->iter[i], eval_idx(e, b->bind[i]));
        for (uint32_t i = b->nspatial; i < b->nspatial + b->nreduce; i++)
            first = first && e->var[b->iter[i]->id - e->atoms.lo] == b->iter[i]->lo;
        for (uint32_t i = 0; i < s->nkids && !e->bad && !e->left; i++)
            if (i > 0 || !b->has_init || first)
                exec(e, s->kids[i]);
    }
    e->block = was;
}

/* As much memory as the buffer says there is. */
static void view_mem(Eval *e, const Buffer *b, uint8_t *at)
{
    int64_t before, after, cell = (int64_t)cell_bytes(b);
    Mem    *m = measure_mem(e, b, &before, &after);

    m->at = at;
    m->first = at - before * cell;
    m->end = at + after * cell;
}

static void exec_switch(Eval *e, const Stmt *s)
{
    int64_t v = eval_prim(e, s->u.cases.value, 0).i;

    for (uint32_t i = 0; v >= 0 && i < s->nkids; i++)
        if (v < s->u.cases.end[i]) {
            exec(e, s->kids[i]);
            return;
        }
}

static void exec_copy(Eval *e, const CopyData *d)
{
    Mem     *src = mem_of(e, d->src.buffer), *dst = mem_of(e, d->dst.buffer);
    uint8_t *from, *to;

    if (!src || !dst)
        return;
    from = src->at + (d->src.offset ? eval_idx(e, d->src.offset) : 0);
    to = dst->at + (d->dst.offset ? eval_idx(e, d->dst.offset) : 0);
    if (from < src->first || from > src->end || d->bytes > src->end - from || to < dst->first ||
        to > dst->end || d->bytes > dst->end - to)
        fail(e, "copy of %" PRId64 " bytes from '%s' to '%s' leaves them", d->bytes,
             d->src.buffer->name, d->dst.buffer->name);
    else
        memmove(to, from, (size_t)d->bytes);
}

static void exec(Eval *e, const Stmt *s)
{
    if (e->bad || e->left)
        return;
    e->stamp++; /* indices of this statement may read memory */
    switch (s->kind) {
    case STMT_SEQ:
        for (uint32_t i = 0; i < s->nkids; i++)
            exec(e, s->kids[i]);
        return;
    case STMT_FOR: exec_for(e, s); return;
    case STMT_WHILE:
        while (!e->bad && !e->left && eval_cond(e, s->u.cond))
            exec(e, s->kids[0]);
        return;
    case STMT_IF:
        if (eval_cond(e, s->u.cond))
            exec(e, s->kids[0]);
        else if (s->nkids > 1)
            exec(e, s->kids[1]);
        return;
    case STMT_ALLOC:
        alloc_mem(e, s->u.buffer);
        exec(e, s->kids[0]);
        return;
    case STMT_VIEW:
        view_mem(e, s->u.view.buffer, (uint8_t *)(intptr_t)eval_prim(e, s->u.view.at, 0).i);
        exec(e, s->kids[0]);
        return;
    case STMT_INVOKE: invoke(e, &s->u.invoke); return;
    case STMT_SWITCH: exec_switch(e, s); return;
    case STMT_STORE: exec_store(e, &s->u.store); return;
    case STMT_BLOCK: exec_block(e, s); return;
    case STMT_CALL: call(e, s->u.call.callee, s->u.call.nargs, s->u.call.args); return;
    case STMT_LAUNCH: call(e, s->u.launch.kernel, s->u.launch.nargs, s->u.launch.args); return;
    case STMT_PREFETCH:
    case STMT_BARRIER: return;
    case STMT_REGION:
        set_var(e, s->u.region.tid, 0);
        set_var(e, s->u.region.nt, 1);
        exec(e, s->kids[0]);
        return;
    case STMT_COPY: exec_copy(e, &s->u.copy); return;
    case STMT_RETURN:
        if (s->u.cond)
            e->result = eval_prim(e, s->u.cond, 0);
        e->left = true;
        return;
    case STMT_FAIL: fail(e, "fails with code %d", (int)s->u.code); return;
    }
}

/* Arguments are evaluated in the caller before any parameter is set. */
static void call(Eval *e, const char *callee, uint32_t nargs, const Arg *args)
{
    const Func *f = tirmod_find(e->m, callee), *was = e->f;
    const char *block = e->block;
    Mem         from[64];
    int64_t     value[64];

    if (!f || f->nparams != nargs || nargs > COUNT(from) || ++e->depth > 64) {
        fail(e, f ? "call of @%s with %u arguments" : "there is no function @%s (%u arguments)",
             callee, nargs);
        return;
    }
    for (uint32_t i = 0; i < nargs && !e->bad; i++) {
        Mem *m = args[i].buffer ? mem_of(e, args[i].buffer) : NULL;
        if ((args[i].buffer != NULL) != (f->params[i].buffer != NULL))
            fail(e, "argument %u of @%s is of the other kind", i, callee);
        if (e->bad)
            return;
        if (m) {
            from[i] = *m;
            from[i].at += args[i].offset ? eval_idx(e, args[i].offset) : 0;
        } else {
            value[i] = eval_idx(e, args[i].scalar);
        }
    }
    e->f = f;
    e->block = "";
    for (uint32_t i = 0; i < nargs && !e->bad; i++)
        if (f->params[i].scalar)
            set_var(e, f->params[i].scalar, value[i]);
    for (uint32_t i = 0; i < nargs && !e->bad; i++)
        if (f->params[i].buffer)
            set_mem(e, f->params[i].buffer, from[i].at, from[i].first, from[i].end);
    exec(e, f->body);
    e->left = false;
    e->f = was;
    e->block = block;
    e->depth--;
}

/* Only functions of the module: what a handle points to is not known here. */
static void invoke(Eval *e, const InvokeData *d)
{
    const Func *f = d->fn->kind == PRIM_SYMBOL ? tirmod_find(e->m, d->fn->u.symbol) : NULL;
    const Func *was = e->f;
    Scalar      value[MAX_SIGNATURE];
    uint8_t    *at;

    if (!f || f->nparams != d->nargs || f->sig != d->sig || ++e->depth > 64) {
        fail(e, "no function '%s' to invoke", d->sig->name);
        return;
    }
    for (uint32_t i = 0; i < d->nargs; i++)
        value[i] = eval_prim(e, d->args[i], 0);
    e->f = f;
    for (uint32_t i = 0; i < d->nargs && !e->bad; i++) {
        if (f->params[i].scalar)
            set_var(e, f->params[i].scalar, value[i].i);
        else
            view_mem(e, f->params[i].buffer, (uint8_t *)(intptr_t)value[i].i);
    }
    exec(e, f->body);
    e->left = false;
    e->f = was;
    e->depth--;
    e->stamp++;
    if (d->result && !e->bad && (at = address(e, d->result, NULL, 0)))
        scalar_put(d->result->dtype, at, e->result);
}

/* ---- entry ---------------------------------------------------------------------------------------------------- */

static bool enter(Eval *e, const Func *f, uint32_t nbuffers, void *const *buffers,
                  uint32_t nscalars, const int64_t *scalars)
{
    uint32_t nb = 0, ns = 0;

    for (uint32_t i = 0; i < f->nparams; i++)
        *(f->params[i].buffer ? &nb : &ns) += 1;
    if (nb != nbuffers || ns != nscalars) {
        fail(e, "%u buffers and %u scalars, where %u and %u are parameters", nbuffers, nscalars, nb,
             ns);
        return false;
    }
    ns = nb = 0;
    for (uint32_t i = 0; i < f->nparams; i++)
        if (f->params[i].scalar)
            set_var(e, f->params[i].scalar, scalars[ns++]);
    for (uint32_t i = 0; i < f->nparams && !e->bad; i++) {
        const Buffer *b = f->params[i].buffer;
        int64_t       before, after, cell;
        uint8_t      *at;
        Mem          *m;
        if (!b)
            continue;
        m = measure_mem(e, b, &before, &after);
        cell = (int64_t)cell_bytes(b);
        at = buffers[nb++];
        m->at = at;
        m->first = at - before * cell;
        m->end = at + after * cell;
    }
    return !e->bad;
}

bool tir_eval(Ctx *c, const TirModule *m, const Func *f, uint32_t nbuffers, void *const *buffers,
              uint32_t nscalars, const int64_t *scalars)
{
    Arena *arena = arena_new(NULL);
    Eval  *e = NEW(arena, Eval);
    bool   ok;

    e->c = c;
    e->arena = arena;
    e->m = m;
    e->f = f;
    e->block = "";
    e->measured = map_new(arena);
    e->expanded = map_new(arena);
    e->atoms = e->prims = e->buffers = (Range){1, 0};
    e->env = (IdxEnv){eval_atom, e};
    e->stamp = 1; /* 0 is that of an empty memo */
    measure_func(e, f);
    e->var = NEW_ARRAY(arena, int64_t, span(e->atoms));
    e->bound = NEW_ARRAY(arena, bool, span(e->atoms));
    e->mem = NEW_ARRAY(arena, Mem *, span(e->buffers));
    e->memo = NEW_ARRAY(arena, Memo, span(e->prims));
    if (enter(e, f, nbuffers, buffers, nscalars, scalars))
        exec(e, f->body);
    ok = !e->bad;
    arena_free(arena);
    return ok;
}
