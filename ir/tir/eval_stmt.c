/* The interpreter's statements; its memory and its values are in eval.c. */
#include "ir/tir/eval.h"

#include <inttypes.h>
#include <string.h>

/* ---- statements --------------------------------------------------------------------------------------------- */

static void call(Eval *e, const char *callee, uint32_t nargs, const Arg *args,
                 const LaunchData *launch);
static void invoke(Eval *e, const InvokeData *d);

static void exec_store(Eval *e, const StoreData *d)
{
    uint32_t n = d->value->dtype.lanes;

    if (n > MAX_LANES) {
        eval_fail(e, "a vector of %u lanes", n);
        return;
    }
    if (d->buffer->scope == SCOPE_CONST)
        eval_fail(e, "store to '%s', which is const", d->buffer->name);
    e->stamp++;
    for (uint32_t i = 0; i < n && !e->bad; i++) {
        e->on[i] = !d->mask || eval_prim(e, d->mask, i).i;
        if (e->on[i])
            e->lanes[i] = eval_prim(e, d->value, i);
    }
    eval_store_lanes(e, d);
}

/* On its way beside the thread, as loops of that name or as one instruction. */
static bool is_copy(const Eval *e, const StoreData *d)
{
    return e->launch && d->buffer->scope == SCOPE_SHARED &&
           (e->copying || (d->value->kind == PRIM_INTRIN && intrin_copies(d->value->u.intrin)));
}

void eval_store_lanes(Eval *e, const StoreData *d)
{
    uint32_t n = d->value->dtype.lanes, bytes = dtype_bytes(dtype_lanes(d->value->dtype, 1));
    uint8_t *at, cell[16];

    for (uint32_t i = 0; i < n && !e->bad; i++)
        if (e->on[i] && (at = eval_address(e, d->buffer, d->index, d->member, i))) {
            scalar_put(d->value->dtype, cell, e->lanes[i]);
            if (e->launch)
                launch_write(e, d->buffer, at, cell, bytes);
            if (is_copy(e, d))
                copies_start(e, d->buffer, at, cell, bytes);
            else
                memcpy(at, cell, bytes);
        }
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

    if (l->bind && e->launch) {
        eval_bound(e, s);
        return;
    }
    int64_t lo = eval_idx(e, l->lo), n = eval_idx(e, l->extent);

    bool copying = e->copying;

    if (n > 1 && runs_nothing(s->kids[0]))
        return;
    e->copying = copying || loop_copies(e->c, l);
    for (int64_t i = 0; i < n && !e->bad && !e->left; i++) {
        eval_set_var(e, l->var, lo + i);
        eval_stmt(e, s->kids[0]);
    }
    e->copying = copying;
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
            eval_set_var(e, b->iter[i], eval_idx(e, b->bind[i]));
        for (uint32_t i = b->nspatial; i < b->nspatial + b->nreduce; i++)
            first = first && eval_var(e, b->iter[i]) == b->iter[i]->lo;
        for (uint32_t i = 0; i < s->nkids && !e->bad && !e->left; i++)
            if (i > 0 || !b->has_init || first)
                eval_stmt(e, s->kids[i]);
    }
    e->block = was;
}

static void exec_switch(Eval *e, const Stmt *s)
{
    int64_t v = eval_prim(e, s->u.cases.value, 0).i;

    for (uint32_t i = 0; v >= 0 && i < s->nkids; i++)
        if (v < s->u.cases.end[i]) {
            eval_stmt(e, s->kids[i]);
            return;
        }
}

static void exec_copy(Eval *e, const CopyData *d)
{
    Mem     *src = eval_mem(e, d->src.buffer), *dst = eval_mem(e, d->dst.buffer);
    int64_t  n = eval_idx(e, d->bytes);
    uint8_t *from, *to;

    if (!src || !dst)
        return;
    from = src->at + (d->src.offset ? eval_idx(e, d->src.offset) : 0);
    to = dst->at + (d->dst.offset ? eval_idx(e, d->dst.offset) : 0);
    if (n < 0 || from < src->first || from > src->end || n > src->end - from || to < dst->first ||
        to > dst->end || n > dst->end - to)
        eval_fail(e, "copy of %" PRId64 " bytes from '%s' to '%s' leaves them", n,
                  d->src.buffer->name, d->dst.buffer->name);
    else
        memmove(to, from, (size_t)n);
}

void eval_stmt(Eval *e, const Stmt *s)
{
    if (e->bad || e->left)
        return;
    e->stamp++; /* indices of this statement may read memory */
    switch (s->kind) {
    case STMT_SEQ:
        for (uint32_t i = 0; i < s->nkids; i++)
            eval_stmt(e, s->kids[i]);
        return;
    case STMT_FOR: exec_for(e, s); return;
    case STMT_WHILE:
        while (!e->bad && !e->left && eval_cond(e, s->u.cond))
            eval_stmt(e, s->kids[0]);
        return;
    case STMT_IF:
        if (eval_cond(e, s->u.cond))
            eval_stmt(e, s->kids[0]);
        else if (s->nkids > 1)
            eval_stmt(e, s->kids[1]);
        return;
    case STMT_ALLOC:
        eval_alloc(e, s->u.buffer);
        eval_stmt(e, s->kids[0]);
        return;
    case STMT_VIEW:
        eval_view(e, s->u.view.buffer, (uint8_t *)(intptr_t)eval_prim(e, s->u.view.at, 0).i);
        eval_stmt(e, s->kids[0]);
        return;
    case STMT_INVOKE: invoke(e, &s->u.invoke); return;
    case STMT_SWITCH: exec_switch(e, s); return;
    case STMT_STORE: exec_store(e, &s->u.store); return;
    case STMT_BLOCK: exec_block(e, s); return;
    case STMT_CALL: call(e, s->u.call.callee, s->u.call.nargs, s->u.call.args, NULL); return;
    case STMT_LAUNCH:
        call(e, s->u.launch.kernel, s->u.launch.nargs, s->u.launch.args, &s->u.launch);
        return;
    case STMT_PREFETCH:
    case STMT_BARRIER: return;
    case STMT_AWAIT:
        if (e->launch)
            launch_await(e, s->u.await);
        return;
    case STMT_REGION:
        eval_set_var(e, s->u.region.tid, 0);
        eval_set_var(e, s->u.region.nt, 1);
        eval_stmt(e, s->kids[0]);
        return;
    case STMT_COPY: exec_copy(e, &s->u.copy); return;
    case STMT_RETURN:
        if (s->u.cond)
            e->result = eval_prim(e, s->u.cond, 0);
        e->left = true;
        return;
    case STMT_FAIL: eval_fail(e, "fails with code %d", (int)s->u.code); return;
    }
}

/* Arguments are evaluated in the caller before any parameter is set. */
static void call(Eval *e, const char *callee, uint32_t nargs, const Arg *args,
                 const LaunchData *launch)
{
    const Func *f = tirmod_find(e->m, callee), *was = e->f;
    const char *block = e->block;
    enum { FEW = 64 };
    Mem     few_from[FEW], *from = few_from;
    int64_t few_values[FEW], *value = few_values, grid[3], threads[3];

    if (!f || f->nparams != nargs || ++e->depth > 64) {
        eval_fail(e,
                  f ? "call of @%s with %u arguments" : "there is no function @%s (%u arguments)",
                  callee, nargs);
        return;
    }
    if (nargs > FEW) {
        from = NEW_ARRAY(e->arena, Mem, nargs);
        value = NEW_ARRAY(e->arena, int64_t, nargs);
    }
    for (uint32_t i = 0; i < nargs && !e->bad; i++) {
        Mem *m = args[i].buffer ? eval_mem(e, args[i].buffer) : NULL;
        if ((args[i].buffer != NULL) != (f->params[i].buffer != NULL))
            eval_fail(e, "argument %u of @%s is of the other kind", i, callee);
        if (e->bad)
            return;
        if (m) {
            from[i] = *m;
            from[i].at += args[i].offset ? eval_idx(e, args[i].offset) : 0;
        } else {
            value[i] = eval_idx(e, args[i].scalar);
        }
    }
    for (int i = 0; launch && i < 3; i++) {
        grid[i] = eval_idx(e, launch->grid[i]);
        threads[i] = eval_idx(e, launch->block[i]);
    }
    e->f = f;
    e->block = "";
    for (uint32_t i = 0; i < nargs && !e->bad; i++)
        if (f->params[i].scalar)
            eval_set_var(e, f->params[i].scalar, value[i]);
    for (uint32_t i = 0; i < nargs && !e->bad; i++)
        if (f->params[i].buffer)
            eval_set_mem(e, f->params[i].buffer, from[i].at, from[i].first, from[i].end);
    if (launch)
        eval_launch(e, f, grid, threads);
    else
        eval_stmt(e, f->body);
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
        eval_fail(e, "no function '%s' to invoke", d->sig->name);
        return;
    }
    for (uint32_t i = 0; i < d->nargs; i++)
        value[i] = eval_prim(e, d->args[i], 0);
    e->f = f;
    for (uint32_t i = 0; i < d->nargs && !e->bad; i++) {
        if (f->params[i].scalar)
            eval_set_var(e, f->params[i].scalar, value[i].i);
        else
            eval_view(e, f->params[i].buffer, (uint8_t *)(intptr_t)value[i].i);
    }
    eval_stmt(e, f->body);
    e->left = false;
    e->f = was;
    e->depth--;
    e->stamp++;
    if (d->result && !e->bad && (at = eval_address(e, d->result, NULL, NULL, 0)))
        scalar_put(d->result->dtype, at, e->result);
}
