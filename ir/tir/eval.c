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
#include "ir/tir/eval.h"

#include <inttypes.h>
#include <string.h>

void eval_fail(Eval *e, const char *fmt, ...)
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

size_t eval_span(Range r)
{
    return r.lo > r.hi ? 1 : (size_t)(r.hi - r.lo) + 1;
}

static void measure_idx(void *user, const Idx *x)
{
    Eval *e = user;

    for (uint32_t i = 0; i < x->nterms; i++) {
        const Atom *a = x->t[i].atom;
        if (a->kind == ATOM_VAR)
            seen(&e->n.atoms, a->id);
        if (a->a)
            measure_idx(user, a->a);
        if (a->b)
            measure_idx(user, a->b);
    }
}

static void measure_buffer(Eval *e, const Buffer *b)
{
    seen(&e->n.buffers, b->id);
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
    if (p->kind != PRIM_INTRIN || p->u.intrin->warp)
        return;
    const Prim *x = map_get(e->expanded, p->id);

    if (!x)
        map_put(e->expanded, p->id, (void *)(uintptr_t)(x = intrin_expand(e->c, p)));
    prim_visit(x, &(TirVisit){.user = e, .prim = measure_prim, .idx = measure_idx});
}

static void measure_func(Eval *e, const Func *f);

static bool measure_stmt(void *user, const Stmt *s)
{
    Eval            *e = user;
    const BlockData *b = &s->u.block;

    switch (s->kind) {
    case STMT_FOR: seen(&e->n.atoms, s->u.loop.var->id); break;
    case STMT_ALLOC: measure_buffer(e, s->u.buffer); break;
    case STMT_VIEW: measure_buffer(e, s->u.view.buffer); break;
    case STMT_INVOKE:
        if (s->u.invoke.fn->kind == PRIM_SYMBOL)
            measure_func(e, tirmod_find(e->m, s->u.invoke.fn->u.symbol));
        break;
    case STMT_BLOCK:
        for (uint32_t i = 0; i < b->nspatial + b->nreduce + b->nseq; i++)
            seen(&e->n.atoms, b->iter[i]->id);
        break;
    case STMT_REGION:
        seen(&e->n.atoms, s->u.region.tid->id);
        seen(&e->n.atoms, s->u.region.nt->id);
        break;
    case STMT_CALL: measure_func(e, tirmod_find(e->m, s->u.call.callee)); break;
    case STMT_LAUNCH: measure_func(e, tirmod_find(e->m, s->u.launch.kernel)); break;
    case STMT_SEQ:
    case STMT_WHILE:
    case STMT_IF:
    case STMT_STORE:
    case STMT_PREFETCH:
    case STMT_BARRIER:
    case STMT_AWAIT:
    case STMT_COPY:
    case STMT_SWITCH:
    case STMT_RETURN:
    case STMT_FAIL: break;
    }
    return true;
}

static void join(Range *to, Range more)
{
    if (more.lo <= more.hi) {
        seen(to, more.lo);
        seen(to, more.hi);
    }
}

/* Callees are measured within: a function's ids are its own and theirs. */
static void measure_func(Eval *e, const Func *f)
{
    TirVisit v = {e, measure_stmt, NULL, measure_prim, measure_idx};
    Names    outer = e->n, *own;

    if (!f || map_get(e->measured, PTR_KEY(f)))
        return;
    own = NEW(e->arena, Names);
    map_put(e->measured, PTR_KEY(f), own);
    e->n.atoms = e->n.buffers = (Range){1, 0};
    for (uint32_t i = 0; i < f->nparams; i++) {
        if (f->params[i].buffer)
            measure_buffer(e, f->params[i].buffer);
        if (f->params[i].scalar)
            seen(&e->n.atoms, f->params[i].scalar->id);
    }
    stmt_visit(f->body, &v);
    *own = e->n;
    join(&e->n.atoms, outer.atoms);
    join(&e->n.buffers, outer.buffers);
}

/* ---- variables and indices --------------------------------------------------------------------------- */

static int64_t eval_atom(void *user, const Atom *a)
{
    Eval *e = user;

    if (a->kind == ATOM_LOAD) {
        int64_t v = eval_prim(e, a->load, 0).i;
        if (v < a->lo || v > a->hi)
            eval_fail(e, "an index read from memory is %" PRId64 ", outside %" PRId64 "..%" PRId64,
                      v, a->lo, a->hi);
        return v;
    }
    eval_fail(e, "variable '%s' has no value", a->name);
    return a->lo;
}

int64_t eval_idx(Eval *e, const Idx *x)
{
    return x->nterms ? idx_eval(x, &e->env) : x->c0;
}

void eval_set_var(Eval *e, const Atom *a, int64_t v)
{
    if (v < a->lo || v > a->hi)
        eval_fail(e, "'%s' is %" PRId64 ", outside its range %" PRId64 "..%" PRId64, a->name, v,
                  a->lo, a->hi);
    e->n.vars.value[a->id - e->n.vars.lo] = v;
    e->n.vars.bound[a->id - e->n.vars.lo] = true;
}

int64_t eval_var(const Eval *e, const Atom *a)
{
    return e->n.vars.value[a->id - e->n.vars.lo];
}

IdxTable eval_vars(Arena *a, Range atoms)
{
    size_t n = eval_span(atoms);

    return (IdxTable){atoms.lo, (uint32_t)n, NEW_ARRAY(a, int64_t, n), NEW_ARRAY(a, bool, n)};
}

bool eval_pred(Eval *e, Pred p)
{
    for (uint32_t i = 0; i < p.n; i++)
        if (eval_idx(e, p.ge0[i]) < 0)
            return false;
    return true;
}

/* ---- memory ---------------------------------------------------------------------------------------------- */

Mem *eval_mem(Eval *e, const Buffer *b)
{
    Mem *m = b->id < e->n.buffers.lo || b->id > e->n.buffers.hi ? NULL
                                                                : e->n.mem[b->id - e->n.buffers.lo];

    if (!m || !m->at)
        eval_fail(e, "buffer '%s' has no memory here", b->name);
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
    Mem        *m = e->n.mem[b->id - e->n.buffers.lo];
    const Idx **stride = NEW_ARRAY(e->c->scratch, const Idx *, b->ndim + 1);

    if (!m) {
        m = NEW(e->arena, Mem);
        m->extent = NEW_ARRAY(e->arena, int64_t, b->ndim + 1);
        m->stride = NEW_ARRAY(e->arena, int64_t, b->ndim + 1);
        m->lane = (uint32_t)cell_bytes(b) / (b->record ? 1 : b->dtype.lanes);
        e->n.mem[b->id - e->n.buffers.lo] = m;
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
            eval_fail(e, "buffer '%s' is too large", b->name);
            *before = *after = 0;
        }
    }
    return m;
}

void eval_set_mem(Eval *e, const Buffer *b, uint8_t *at, uint8_t *first, uint8_t *end)
{
    int64_t before, after;
    Mem    *m = measure_mem(e, b, &before, &after);

    m->at = at;
    m->first = first;
    m->end = end;
}

void eval_alloc(Eval *e, const Buffer *b)
{
    int64_t before, after;
    Mem    *m = measure_mem(e, b, &before, &after), *shared;
    size_t  cell = cell_bytes(b), bytes = (size_t)(before + after) * cell;

    if (b->alias) {
        if ((shared = eval_mem(e, b->alias)))
            m->at = shared->at, m->first = shared->first, m->end = shared->end,
            m->one = shared->one;
        return;
    }
    if (b->place && e->launch) {
        m->own = launch_memory(e) + shared_offset(b);
        m->bytes = bytes;
    } else if (!m->own || bytes > m->bytes) {
        m->own = arena_alloc(e->arena, bytes ? bytes : 1);
        m->bytes = bytes;
    }
    if (bytes)
        memset(m->own, 0xff, bytes);
    m->at = m->own + (size_t)before * cell;
    m->first = m->own;
    m->end = m->own + bytes;
    m->one = e->launch && b->scope != SCOPE_SHARED;
}

/* As much memory as the buffer says there is. */
void eval_view(Eval *e, const Buffer *b, uint8_t *at)
{
    int64_t before, after, cell = (int64_t)cell_bytes(b);
    Mem    *m = measure_mem(e, b, &before, &after);

    m->at = at;
    m->first = at - before * cell;
    m->end = at + after * cell;
}

uint8_t *eval_address(Eval *e, const Buffer *b, const Idx *const *index, const AbiMember *member,
                      uint32_t lane)
{
    Mem     *m = eval_mem(e, b);
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
            eval_fail(e,
                      "index %" PRId64 " of dimension %u of '%s' is outside %" PRId64 "..%" PRId64,
                      x, i, b->name, -lo, m->extent[i] + hi - 1);
            return NULL;
        }
        cell += x * m->stride[i];
    }
    if (b->dtype.lanes > 1)
        cell = cell * b->dtype.lanes + lane;
    at = m->at + cell * m->lane;
    if (at < m->first || at + m->lane > m->end) {
        eval_fail(e, "cell %" PRId64 " of '%s' is outside the memory it was given", cell, b->name);
        return NULL;
    }
    return at + (member ? record_offset(b->record, member, HERE) : 0);
}

/* ---- prims -------------------------------------------------------------------------------------------------- */

static Scalar eval_load(Eval *e, const Prim *p, uint32_t lane)
{
    const LoadData *l = &p->u.load;
    uint8_t        *at;

    if (l->mask && !eval_prim(e, l->mask, lane).i)
        return dtype_is_float(p->dtype) ? (Scalar){.f = 0} : (Scalar){.i = 0};
    at = eval_address(e, l->buffer, l->index, l->member, lane);
    if (at && e->launch)
        launch_read(e, l->buffer, at);
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
        uint8_t        *at = eval_address(e, l->buffer, l->index, l->member, 0);
        return (Scalar){.i = (int64_t)(intptr_t)at};
    }
    case PRIM_SIZEOF: return (Scalar){.i = size_bytes(p->u.size, HERE)};
    case PRIM_SYMBOL: eval_fail(e, "@%s has no address here", p->u.symbol); return (Scalar){.i = 0};
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
    case PRIM_INTRIN:
        if (!p->u.intrin->warp)
            return eval_prim(e, map_get(e->expanded, p->id), lane);
        eval_fail(e, "an instruction of a warp, %s, where one thread runs", p->u.intrin->text);
        return (Scalar){0};
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
        eval_fail(e, "arm %" PRId64 " of a case with %u", arm, p->nkids);
        return (Scalar){.i = 0};
    case PRIM_SPLAT: return eval_prim(e, p->kids[0], 0);
    case PRIM_VEC: return eval_prim(e, p->kids[lane], 0);
    case PRIM_SHUFFLE: return eval_prim(e, p->kids[0], p->u.from[lane]);
    }
    BUG("prim of kind %d", (int)p->kind);
}

Scalar eval_prim(Eval *e, const Prim *p, uint32_t lane)
{
    Memo *memo = &e->memo[p->id - e->prims.lo];

    if (memo->stamp == e->stamp && memo->lane == lane)
        return memo->v;
    Scalar v = compute(e, p, lane);
    *memo = (Memo){e->stamp, lane, v};
    return v;
}

bool eval_cond(Eval *e, const Prim *p)
{
    e->stamp++;
    return eval_prim(e, p, 0).i != 0;
}

/* ---- entry ---------------------------------------------------------------------------------------------------- */

static bool enter(Eval *e, const Func *f, uint32_t nbuffers, void *const *buffers,
                  uint32_t nscalars, const int64_t *scalars)
{
    uint32_t nb = 0, ns = 0;

    for (uint32_t i = 0; i < f->nparams; i++)
        *(f->params[i].buffer ? &nb : &ns) += 1;
    if (nb != nbuffers || ns != nscalars) {
        eval_fail(e, "%u buffers and %u scalars, where %u and %u are parameters", nbuffers,
                  nscalars, nb, ns);
        return false;
    }
    ns = nb = 0;
    for (uint32_t i = 0; i < f->nparams; i++)
        if (f->params[i].scalar)
            eval_set_var(e, f->params[i].scalar, scalars[ns++]);
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
    e->n.atoms = e->prims = e->n.buffers = (Range){1, 0};
    e->env = (IdxEnv){eval_atom, e, &e->n.vars};
    e->stamp = 1; /* 0 is that of an empty memo */
    measure_func(e, f);
    e->n.vars = eval_vars(arena, e->n.atoms);
    e->n.mem = NEW_ARRAY(arena, Mem *, eval_span(e->n.buffers));
    e->memo = NEW_ARRAY(arena, Memo, eval_span(e->prims));
    if (enter(e, f, nbuffers, buffers, nscalars, scalars))
        eval_stmt(e, f->body);
    ok = !e->bad;
    arena_free(arena);
    return ok;
}
