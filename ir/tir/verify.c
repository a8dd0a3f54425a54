/* What each stage of TIR promises.
 *
 *   all       variables and buffers are declared where they are used, once; indices have the
 *             buffer's dimensions, stores its type; const memory is not written; masks, conditions
 *             and calls fit; a loop variable's range holds its loop; barriers are not in parallel
 *             loops
 *   nest      stores are in blocks; blocks nest only in opaque ones; a parallel or vector loop
 *             binds no reduce iterator
 *   lowered   no blocks
 *   flat      no marks but `bind`; a buffer has one dimension of stride 1, or none; `reg` has none
 *
 *   entry     parameters, results and arguments have the types of their signature; members are
 * those of the buffer's record; nothing is computed with handles
 *
 * Messages name the function and the innermost loop or block. */
#include "ir/text/print_tir.h"
#include "ir/tir/intrin.h"

#include <inttypes.h>
#include <string.h>

typedef struct {
    Ctx             *c;
    const TirModule *m;
    const Func      *f;
    TirStage         stage;
    Map             *atoms, *buffers; /* in scope */
    Map             *funcs;           /* before this one, by interned name */
    const char      *where;           /* innermost loop or block, for messages */
    Loc              loc;
    int              opaque, blocks, parallel, region;
    bool             ok;
} Verify;

static void complain(Verify *v, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void complain(Verify *v, const char *fmt, ...)
{
    StrBuf  s = strbuf(v->c->scratch);
    va_list ap;

    va_start(ap, fmt);
    str_vprintf(&s, fmt, ap);
    va_end(ap);
    v->ok = false;
    error_at(v->c, E_VERIFY, v->loc, "@%s%s: %s", v->f->name, v->where, s.at);
}

/* ---- scope -------------------------------------------------------------------------------------- */

static void enter_atom(Verify *v, const Atom *a)
{
    if (map_get(v->atoms, PTR_KEY(a)))
        complain(v, "variable '%s' is declared twice", a->name);
    if (a->kind != ATOM_VAR)
        complain(v, "a loop over something that is no variable");
    map_put(v->atoms, PTR_KEY(a), v);
}

static void leave_atom(Verify *v, const Atom *a)
{
    map_del(v->atoms, PTR_KEY(a));
}

static void check_idx(void *user, const Idx *x)
{
    Verify *v = user;

    for (uint32_t i = 0; i < x->nterms; i++) {
        const Atom *a = x->t[i].atom;
        if (a->kind == ATOM_VAR && !map_get(v->atoms, PTR_KEY(a)) && !is_dim(v->c, a))
            complain(v, "variable '%s' is used outside its scope", a->name);
    }
}

/* A mark that should have been carried out by now. */
static bool is_late(const Verify *v, const Mark *m, const void *of)
{
    return v->stage > m->stage && mark_is_set(m, of);
}

static void check_buffer_form(Verify *v, const Buffer *b)
{
    int64_t step;

    if (b->dtype.lanes > 1 && b->scope != SCOPE_REG)
        complain(v, "buffer '%s' of vectors is not in scope reg", b->name);
    if (v->stage != TIR_FLAT)
        return;
    for (uint32_t i = 0; i < buffer_mark_table.n; i++)
        if (is_late(v, &buffer_mark_table.at[i], b))
            complain(v, "buffer '%s' has a %s", b->name, buffer_mark_table.at[i].text);
    if (b->ndim > 1)
        complain(v, "buffer '%s' has %u dimensions", b->name, b->ndim);
    if (b->ndim == 1 && b->stride && (!idx_is_const(b->stride[0], &step) || step != 1))
        complain(v, "buffer '%s' has a stride", b->name);
    if (b->scope == SCOPE_REG && b->ndim)
        complain(v, "buffer '%s' in scope reg is no variable", b->name);
}

static void enter_buffer(Verify *v, const Buffer *b)
{
    if (map_get(v->buffers, PTR_KEY(b)))
        complain(v, "buffer '%s' is declared twice", b->name);
    if (b->alias && !map_get(v->buffers, PTR_KEY(b->alias)))
        complain(v, "buffer '%s' shares the storage of '%s', which is not declared", b->name,
                 b->alias->name);
    for (uint32_t i = 0; i < b->ndim; i++) {
        check_idx(v, b->extent[i]);
        if (b->stride)
            check_idx(v, b->stride[i]);
    }
    check_buffer_form(v, b);
    map_put(v->buffers, PTR_KEY(b), v);
}

static void check_use(Verify *v, const Buffer *b, uint32_t n)
{
    if (!map_get(v->buffers, PTR_KEY(b)))
        complain(v, "buffer '%s' is used outside its scope", b->name);
    if (n != b->ndim)
        complain(v, "%u indices for '%s', which has %u dimensions", n, b->name, b->ndim);
}

/* ---- prims ------------------------------------------------------------------------------------------ */

static void check_mask(Verify *v, const Prim *mask, uint16_t lanes)
{
    if (mask && (!dtype_is_bool(mask->dtype) || mask->dtype.lanes != lanes))
        complain(v, "a mask of type %s for %u lanes", dtype_text(v->c, mask->dtype), lanes);
}

/* Pointers are compared, chosen, and cast to see their alignment. */
static bool takes_handles(const Prim *p)
{
    return p->kind == PRIM_EQ || p->kind == PRIM_NE || p->kind == PRIM_SELECT ||
           (p->kind == PRIM_CAST && dtype_eq(p->dtype, DT_U64));
}

static void check_member(Verify *v, const Buffer *b, const AbiMember *m, bool whole)
{
    if (m && (!b->record || record_member(b->record, m->name) != m))
        complain(v, "'%s' has no member '%s'", b->name, m->name);
    if (!m && b->record && !whole)
        complain(v, "a struct of '%s' is no value", b->name);
}

static void check_prim(void *user, const Prim *p)
{
    Verify *v = user;

    if (p->kind == PRIM_LOAD || p->kind == PRIM_ADDR) {
        check_use(v, p->u.load.buffer, p->u.load.n);
        check_member(v, p->u.load.buffer, p->u.load.member, p->kind == PRIM_ADDR);
        check_mask(v, p->u.load.mask, p->dtype.lanes);
    }
    if (p->kind == PRIM_INTRIN && p->u.intrin->warp && v->f->kind != FUNC_DEVICE)
        complain(v, "%s, an instruction of a warp, in a function of a CPU", p->u.intrin->text);
    for (uint32_t i = 0; i < p->nkids; i++)
        if (dtype_is_handle(p->kids[i]->dtype) && !takes_handles(p))
            complain(v, "arithmetic with a handle");
    if (v->stage == TIR_NEST && p->dtype.lanes > 1)
        complain(v, "a vector of type %s before vectorize", dtype_text(v->c, p->dtype));
}

/* ---- statements -------------------------------------------------------------------------------------- */

static void check_stmt(Verify *v, const Stmt *s);

/* Everything that hangs in the statement itself: prims, indices, their names. */
static bool only_this(void *user, const Stmt *s)
{
    (void)user;
    (void)s;
    return true;
}

static void check_arms(Verify *v, const Stmt *s)
{
    TirVisit visit = {v, only_this, NULL, check_prim, check_idx};
    Stmt     alone = *s;

    alone.nkids = 0;
    stmt_visit(&alone, &visit);
}

static void check_store(Verify *v, const StoreData *d)
{
    const Buffer *b = d->buffer;

    check_use(v, b, d->n);
    check_member(v, b, d->member, false);
    check_mask(v, d->mask, d->value->dtype.lanes);
    if (b->scope == SCOPE_CONST)
        complain(v, "store to '%s', which is const", b->name);
    if (d->member && !dtype_eq(d->value->dtype, abi_dtype(d->member->type)))
        complain(v, "store of %s to member '%s'", dtype_text(v->c, d->value->dtype),
                 d->member->name);
    if (d->member)
        return;
    if (d->value->dtype.code != b->dtype.code || d->value->dtype.bits != b->dtype.bits ||
        (b->dtype.lanes > 1 && b->dtype.lanes != d->value->dtype.lanes) ||
        (b->ndim == 0 && b->dtype.lanes != d->value->dtype.lanes))
        complain(v, "store of %s to '%s' of %s", dtype_text(v->c, d->value->dtype), b->name,
                 dtype_text(v->c, b->dtype));
    if (v->stage == TIR_NEST && !v->blocks)
        complain(v, "store to '%s' outside any block", b->name);
}

static void check_for(Verify *v, const Stmt *s)
{
    const LoopData *l = &s->u.loop;
    const char     *was = v->where;
    int64_t         lo, n;

    v->where = arena_printf(v->c->scratch, ": loop '%s'", l->var->name);
    if (idx_is_const(l->lo, &lo) && idx_is_const(l->extent, &n) && n > 0 &&
        (lo < l->var->lo || lo + n - 1 > l->var->hi))
        complain(v,
                 "runs from %" PRId64 " to %" PRId64 ", its variable from %" PRId64 " to %" PRId64,
                 lo, lo + n - 1, l->var->lo, l->var->hi);
    for (uint32_t i = 0; i < loop_mark_table.n; i++)
        if (is_late(v, &loop_mark_table.at[i], l))
            complain(v, "still has a mark");
    if (l->vector && (!idx_is_const(l->extent, NULL) || l->kind != LOOP_SPATIAL))
        complain(v, "a vector loop is spatial and of constant extent");
    if (l->unroll && !idx_is_const(l->extent, NULL))
        complain(v, "an unrolled loop has a constant extent");
    enter_atom(v, l->var);
    v->parallel += l->parallel;
    check_stmt(v, s->kids[0]);
    v->parallel -= l->parallel;
    leave_atom(v, l->var);
    v->where = was;
}

/* A marked loop binds no reduce iterator: walk down from the loop to the blocks. */
typedef struct {
    Verify     *v;
    const Stmt *loop;
} LoopUse;

static bool check_reduce_use(void *user, const Stmt *s)
{
    LoopUse         *u = user;
    const BlockData *b = &s->u.block;

    if (s->kind != STMT_BLOCK || b->opaque)
        return s->kind != STMT_BLOCK;
    for (uint32_t i = b->nspatial; i < b->nspatial + b->nreduce; i++)
        if (idx_uses(b->bind[i], u->loop->u.loop.var))
            complain(u->v, "block '%s' reduces over loop '%s', which is parallel or a vector",
                     b->name, u->loop->u.loop.var->name);
    return false;
}

static void check_block(Verify *v, const Stmt *s)
{
    const BlockData *b = &s->u.block;
    uint32_t         n = b->nspatial + b->nreduce + b->nseq;
    const char      *was = v->where;
    Loc              loc = v->loc;

    v->where = arena_printf(v->c->scratch, ": block '%s'", b->name);
    v->loc = s->loc.file ? s->loc : loc;
    if (v->stage != TIR_NEST)
        complain(v, "a block after lower_blocks");
    if (v->blocks > v->opaque)
        complain(v, "a block inside a block");
    if (b->has_init && s->nkids == 0)
        complain(v, "an init that is not there");
    for (uint32_t i = 0; i < n; i++) {
        if (b->bind[i]->hi < b->iter[i]->lo || b->bind[i]->lo > b->iter[i]->hi)
            complain(v, "iterator '%s' is never in its domain", b->iter[i]->name);
        enter_atom(v, b->iter[i]);
    }
    v->blocks++;
    v->opaque += b->opaque;
    for (uint32_t i = 0; i < s->nkids; i++)
        check_stmt(v, s->kids[i]);
    v->opaque -= b->opaque;
    v->blocks--;
    for (uint32_t i = 0; i < n; i++)
        leave_atom(v, b->iter[i]);
    v->where = was;
    v->loc = loc;
}

static void check_call(Verify *v, const char *callee, uint32_t n, const Arg *args)
{
    const Func *f = tirmod_find(v->m, callee);

    for (uint32_t i = 0; i < n; i++)
        if (args[i].buffer && !map_get(v->buffers, PTR_KEY(args[i].buffer)))
            complain(v, "buffer '%s' is used outside its scope", args[i].buffer->name);
    if (!f) {
        complain(v, "calls @%s, which is not there", callee);
        return;
    }
    if (!map_get(v->funcs, PTR_KEY(f)))
        complain(v, "calls @%s, which comes later", callee);
    if (f->nparams != n) {
        complain(v, "calls @%s with %u arguments, not %u", callee, n, f->nparams);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        if ((args[i].buffer != NULL) != (f->params[i].buffer != NULL))
            complain(v, "argument %u of @%s is %s", i, callee,
                     args[i].buffer ? "a buffer" : "no buffer");
}

static void check_cond(Verify *v, const Prim *p)
{
    if (!dtype_eq(p->dtype, DT_BOOL))
        complain(v, "a condition of type %s", dtype_text(v->c, p->dtype));
}

static void check_type(Verify *v, AbiType want, const Prim *p, const char *what)
{
    if (!dtype_eq(p->dtype, abi_dtype(want)))
        complain(v, "%s of type %s, not %s", what, dtype_text(v->c, p->dtype),
                 dtype_text(v->c, abi_dtype(want)));
}

static void check_invoke(Verify *v, const InvokeData *d)
{
    uint32_t n = signature_params(d->sig);

    check_type(v, ABI_HANDLE, d->fn, "a function");
    if (d->nargs != n) {
        complain(v, "%u arguments of '%s', not %u", d->nargs, d->sig->name, n);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        check_type(v, d->sig->param[i], d->args[i], "an argument");
    if (!d->result)
        return;
    check_use(v, d->result, 0);
    if (d->sig->result == ABI_NONE)
        complain(v, "'%s' has no result", d->sig->name);
    else if (d->result->record || !dtype_eq(d->result->dtype, abi_dtype(d->sig->result)))
        complain(v, "the result of '%s' in '%s'", d->sig->name, d->result->name);
}

static void check_return(Verify *v, const Prim *value)
{
    const Signature *sig = v->f->sig;

    if (!value && sig && sig->result != ABI_NONE)
        complain(v, "a return without a result");
    else if (value && (!sig || sig->result == ABI_NONE))
        complain(v, "a result where there is none");
    else if (value)
        check_type(v, sig->result, value, "a result");
}

static void check_switch(Verify *v, const SwitchData *d, uint32_t n)
{
    if (!dtype_is_int(d->value->dtype) || d->value->dtype.lanes != 1)
        complain(v, "a switch over %s", dtype_text(v->c, d->value->dtype));
    for (uint32_t i = 0; i < n; i++)
        if (d->end[i] <= (i ? d->end[i - 1] : 0))
            complain(v, "an arm for no value");
}

/* Pointers and integers of the parameters are those of the signature. */
static void check_signature(Verify *v, const Func *f)
{
    if ((f->kind == FUNC_ENTRY) != (f->sig != NULL)) {
        complain(v, "a signature is for functions of kind entry");
        return;
    }
    if (!f->sig)
        return;
    if (f->nparams != signature_params(f->sig)) {
        complain(v, "%u parameters, '%s' has %u", f->nparams, f->sig->name,
                 signature_params(f->sig));
        return;
    }
    for (uint32_t i = 0; i < f->nparams; i++)
        if ((f->params[i].buffer != NULL) != (f->sig->param[i] == ABI_HANDLE))
            complain(v, "parameter %u is %s pointer", i, f->params[i].buffer ? "a" : "no");
}

static void check_stmt(Verify *v, const Stmt *s)
{
    check_arms(v, s);
    switch (s->kind) {
    case STMT_FOR:
        if ((s->u.loop.parallel || s->u.loop.vector) && v->stage == TIR_NEST) {
            LoopUse  use = {v, s};
            TirVisit visit = {&use, check_reduce_use, NULL, NULL, NULL};
            stmt_visit(s->kids[0], &visit);
        }
        check_for(v, s);
        return;
    case STMT_ALLOC:
        enter_buffer(v, s->u.buffer);
        check_stmt(v, s->kids[0]);
        map_del(v->buffers, PTR_KEY(s->u.buffer));
        return;
    case STMT_VIEW:
        check_type(v, ABI_HANDLE, s->u.view.at, "a view");
        enter_buffer(v, s->u.view.buffer);
        check_stmt(v, s->kids[0]);
        map_del(v->buffers, PTR_KEY(s->u.view.buffer));
        return;
    case STMT_BLOCK: check_block(v, s); return;
    case STMT_REGION:
        if (v->f->kind != FUNC_HOST || v->region)
            complain(v, "a region outside a host function, or inside another");
        enter_atom(v, s->u.region.tid);
        enter_atom(v, s->u.region.nt);
        v->region++;
        check_stmt(v, s->kids[0]);
        v->region--;
        leave_atom(v, s->u.region.tid);
        leave_atom(v, s->u.region.nt);
        return;
    case STMT_WHILE:
    case STMT_IF: check_cond(v, s->u.cond); break;
    case STMT_STORE: check_store(v, &s->u.store); break;
    case STMT_CALL: check_call(v, s->u.call.callee, s->u.call.nargs, s->u.call.args); break;
    case STMT_LAUNCH: check_call(v, s->u.launch.kernel, s->u.launch.nargs, s->u.launch.args); break;
    case STMT_PREFETCH: check_use(v, s->u.prefetch.buffer, s->u.prefetch.n); break;
    case STMT_BARRIER:
        if (v->parallel)
            complain(v, "a barrier inside a parallel loop");
        break;
    case STMT_AWAIT:
        if (v->f->kind != FUNC_DEVICE)
            complain(v, "an await outside a device function");
        break;
    case STMT_COPY:
        check_use(v, s->u.copy.src.buffer, s->u.copy.src.buffer->ndim);
        check_use(v, s->u.copy.dst.buffer, s->u.copy.dst.buffer->ndim);
        break;
    case STMT_FAIL:
        if (v->f->kind != FUNC_HOST)
            complain(v, "a fail outside a host function");
        break;
    case STMT_INVOKE: check_invoke(v, &s->u.invoke); break;
    case STMT_SWITCH: check_switch(v, &s->u.cases, s->nkids); break;
    case STMT_RETURN: check_return(v, s->u.cond); break;
    case STMT_SEQ: break;
    }
    for (uint32_t i = 0; i < s->nkids; i++)
        check_stmt(v, s->kids[i]);
}

bool tir_verify(Ctx *c, const TirModule *m, TirStage stage)
{
    Verify v = {.c = c, .m = m, .stage = stage, .ok = true, .where = ""};

    v.funcs = map_new(c->scratch);
    for (uint32_t i = 0; i < m->nfuncs; i++) {
        v.f = m->funcs[i];
        v.loc = v.f->loc;
        v.atoms = map_new(c->scratch);
        v.buffers = map_new(c->scratch);
        if (tirmod_find(m, v.f->name) != v.f)
            complain(&v, "there are two functions of this name");
        for (uint32_t k = 0; k < v.f->nparams; k++) {
            if (v.f->params[k].scalar)
                enter_atom(&v, v.f->params[k].scalar);
            else
                enter_buffer(&v, v.f->params[k].buffer);
        }
        check_signature(&v, v.f);
        check_stmt(&v, v.f->body);
        map_put(v.funcs, PTR_KEY(v.f), &v);
    }
    return v.ok;
}
