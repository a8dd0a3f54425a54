/* Functions of a program for a CPU: declarations, calls, and what host functions have beside loops:
 * structs, views of memory, calls by address (docs/design/host.md).
 *
 * A pointer is to constants unless the function, or one that it calls, stores through it.  Kernels
 * get typed pointers with `restrict`, since compilers make little of it elsewhere; host functions
 * cast what they hand out:
 *
 *     net__relu((const float *)(const void *)(weights + 320), (float *)(void *)(arena + 8192)); */
#include "backends/clike/impl.h"
#include "ir/tir/intrin.h"

#include <string.h>

/* ---- what is written, what is used ------------------------------------------------------------- */

static const ClikeFunc *callee_of(const ClikeProgram *p, const Stmt *s)
{
    const ClikeFunc *f = map_get(p->funcs, PTR_KEY(intern(p->c->strings, s->u.call.callee)));

    if (!f)
        BUG("@%s is called before it is known", s->u.call.callee);
    return f;
}

static void mark(Map *set, const Buffer *b)
{
    for (; b; b = b->alias)
        map_put(set, b->id, set);
}

static bool is_written(const Map *written, const Buffer *b)
{
    for (; b; b = b->alias)
        if (map_get(written, b->id))
            return true;
    return false;
}

static void find_written(const ClikeProgram *p, const Stmt *s, Map *written)
{
    if (s->kind == STMT_STORE)
        mark(written, s->u.store.buffer);
    if (s->kind == STMT_CALL) {
        const ClikeFunc *callee = callee_of(p, s);

        for (uint32_t i = 0; i < s->u.call.nargs; i++)
            if (s->u.call.args[i].buffer && callee->written[i])
                mark(written, s->u.call.args[i].buffer);
    }
    for (uint32_t i = 0; i < s->nkids; i++)
        find_written(p, s->kids[i], written);
    if (s->kind == STMT_VIEW && s->u.view.at->kind == PRIM_ADDR &&
        is_written(written, s->u.view.buffer))
        mark(written, s->u.view.at->u.load.buffer);
}

static void use_prim(void *user, const Prim *p)
{
    if (p->kind == PRIM_LOAD || p->kind == PRIM_ADDR)
        map_put(user, p->u.load.buffer->id, user);
}

static void use_idx(void *user, const Idx *x)
{
    for (uint32_t i = 0; i < x->nterms; i++)
        if (x->t[i].atom->kind == ATOM_VAR)
            map_put(user, x->t[i].atom->id | ATOM_KEY, user);
}

static bool use_stmt(void *user, const Stmt *s)
{
    if (s->kind == STMT_STORE)
        map_put(user, s->u.store.buffer->id, user);
    if (s->kind == STMT_INVOKE && s->u.invoke.result)
        map_put(user, s->u.invoke.result->id, user);
    for (uint32_t i = 0; s->kind == STMT_CALL && i < s->u.call.nargs; i++)
        if (s->u.call.args[i].buffer)
            map_put(user, s->u.call.args[i].buffer->id, user);
    return true;
}

static Map *find_used(Ctx *c, const Stmt *s)
{
    Map     *used = map_new(c->arena);
    TirVisit v = {.user = used, .enter = use_stmt, .prim = use_prim, .idx = use_idx};

    stmt_visit(s, &v);
    return used;
}

/* ---- types ------------------------------------------------------------------------------------- */

const char *clike_cells(Clike *x, const Buffer *b)
{
    if (b->record)
        return x->program->record(x->program->user, b->record);
    if (dtype_is_handle(b->dtype))
        return b->ndim ? "void *" : "const void *";
    return clike_type(x, b->dtype);
}

/* "const float *", to a buffer's cells. */
static const char *pointer_type(Clike *x, const Buffer *b)
{
    if (dtype_is_handle(b->dtype))
        return "void *const *";
    return arena_printf(x->c->arena, "%s%s *", is_written(x->written, b) ? "" : "const ",
                        clike_cells(x, b));
}

static bool alone(const Func *f, uint32_t i)
{
    for (uint32_t k = 0; k < f->nparams; k++)
        for (const Buffer *a = f->params[i].buffer; a && k != i; a = a->alias)
            for (const Buffer *b = f->params[k].buffer; b; b = b->alias)
                if (a == b)
                    return false;
    return true;
}

static const char *abi_text(Clike *x, AbiType t)
{
    switch (t) {
    case ABI_NONE: return "void";
    case ABI_HANDLE: return "const void *";
    case ABI_SIZE: return "size_t";
    case ABI_U8:
    case ABI_U16:
    case ABI_U32:
    case ABI_I32:
    case ABI_SHARED:
    case ABI_F32:
    case ABI_I64: return clike_type(x, abi_dtype(t));
    case ABI_SHA: break;
    }
    BUG("type %d of the ABI", (int)t);
}

const AbiRecord *clike_result(const Signature *s)
{
    return s->result != ABI_HANDLE
               ? NULL
               : record_find(strcmp(s->name, "sizes") ? "model_info" : "size_info");
}

static const char *result_type(Clike *x, const Func *f)
{
    const AbiRecord *to = f->kind == FUNC_ENTRY ? clike_result(f->sig) : NULL;

    if (f->kind != FUNC_ENTRY)
        return "void ";
    if (to)
        return arena_printf(x->c->arena, "const %s *", x->program->record(x->program->user, to));
    return arena_printf(x->c->arena, "%s ", abi_text(x, f->sig->result));
}

/* ---- functions --------------------------------------------------------------------------------- */

static Clike begin(ClikeProgram *p, const Func *f)
{
    Clike x = {.c = p->c,
               .d = p->d,
               .f = f,
               .program = p,
               .written = map_new(p->c->arena),
               .depth = 1,
               .names = map_new(p->c->arena),
               .taken = map_new(p->c->arena),
               .order = map_new(p->c->arena),
               .unrolled = map_new(p->c->arena),
               .narrow = func_index_fits(f)};

    x.index = x.narrow ? p->d->narrow : p->d->wide;
    find_written(p, f->body, x.written);
    x.used = find_used(p->c, f->body);
    return x;
}

static void print_param(Clike *x, uint32_t i, StrBuf *out)
{
    const Func  *f = x->f;
    const Param *p = &f->params[i];

    if (p->buffer && f->kind == FUNC_ENTRY && dtype_eq(p->buffer->dtype, DT_U8) &&
        !p->buffer->record)
        str_printf(out, "void *%s", clike_buffer(x, p->buffer)); /* memory of any type */
    else if (p->buffer)
        str_printf(out, "%s%s%s%s", pointer_type(x, p->buffer),
                   f->kind != FUNC_ENTRY && alone(f, i) ? x->d->noalias : "",
                   f->kind != FUNC_ENTRY && alone(f, i) ? " " : "", clike_buffer(x, p->buffer));
    else if (f->kind == FUNC_ENTRY)
        str_printf(out, "%s %s_given", abi_text(x, f->sig->param[i]), clike_var(x, p->scalar));
    else /* whatever indices the function has, its callers agree */
        str_printf(out, "%s %s%s", x->d->wide, clike_var(x, p->scalar), x->narrow ? "_given" : "");
}

static void print_head(Clike *x, StrBuf *out)
{
    const Func *f = x->f;

    str_printf(out, "%s%s(", result_type(x, f), x->program->symbol(x->program->user, f->name));
    for (uint32_t i = 0; i < f->nparams; i++) {
        str_add(out, i ? ", " : "");
        print_param(x, i, out);
    }
    str_add(out, f->nparams ? ")" : "void)");
}

/* Scalars as indices; what nobody uses. */
static void print_scalars(Clike *x)
{
    const Func *f = x->f;

    for (uint32_t i = 0; i < f->nparams; i++) {
        const Param *p = &f->params[i];
        const char  *name = p->buffer ? clike_buffer(x, p->buffer) : clike_var(x, p->scalar);
        bool used = map_get(x->used, p->buffer ? p->buffer->id : p->scalar->id | ATOM_KEY) != NULL;
        bool other = p->scalar && (f->kind == FUNC_ENTRY || x->narrow);

        if (!used)
            str_printf(x->out, "    (void)%s%s;\n", name, other ? "_given" : "");
        else if (other)
            str_printf(x->out, "    const %s %s = (%s)%s_given;\n", x->index, name, x->index, name);
    }
}

static const Func *prepared(const ClikeProgram *p, const Func *f)
{
    Ctx *c = p->c;

    f = intrins_expand(c, f); /* no dialect has instructions of its own */
    if (!p->vectors)
        f = plain_scalars(c, f, WORD);
    return clike_drop_unread(c, plain_halves(c, f, NULL));
}

bool clike_function(ClikeProgram *p, const Func *f, StrBuf *head, StrBuf *out)
{
    f = prepared(p, f);

    Clike      x = begin(p, f);
    ClikeFunc *known = NEW(p->c->arena, ClikeFunc);

    known->f = f;
    known->written = NEW_ARRAY(p->c->arena, bool, f->nparams + 1);
    for (uint32_t i = 0; i < f->nparams; i++)
        known->written[i] = f->params[i].buffer && is_written(x.written, f->params[i].buffer);
    map_put(p->funcs, PTR_KEY(intern(p->c->strings, f->name)), known);
    print_head(&x, head);
    if (x.failed)
        return false;
    x.out = out;
    str_printf(out, "%s\n{\n", head->at);
    print_scalars(&x);
    clike_stmt(&x, f->body, true);
    str_add(out, "}\n");
    return !x.failed;
}

/* ---- calls ------------------------------------------------------------------------------------- */

/* x / k where k divides every part of it, else NULL. */
static const Idx *exactly(Ctx *c, const Idx *x, int64_t k)
{
    bool all = x->c0 % k == 0;

    for (uint32_t i = 0; i < x->nterms; i++)
        all = all && x->t[i].coef % k == 0;
    return all ? idx_divc(c->arith, x, k) : NULL;
}

/* A buffer's pointer and some bytes, as a pointer to the cells of the parameter `to`. */
static void print_pointer(Clike *x, const Arg *a, const Buffer *to, bool written, StrBuf *s)
{
    const Buffer *b = a->buffer;
    const char   *name = clike_buffer(x, b), *constant = written ? "" : "const ";
    const Idx    *at = a->offset ? exactly(x->c, a->offset, dtype_bytes(b->dtype)) : NULL;
    bool          none = !a->offset || (idx_is_const(a->offset, NULL) && !a->offset->lo);
    bool          same = dtype_eq(b->dtype, to->dtype);

    if (!same || (!none && !at))
        str_printf(s, "(%s%s *)(%svoid *)", constant, clike_cells(x, to), constant);
    if (none)
        str_add(s, name);
    else if (at)
        str_printf(s, same ? "%s + %s" : "(%s + %s)", name, clike_index_text(x, at));
    else
        str_printf(s, "((%sunsigned char *)%s + %s)", constant, name,
                   clike_index_text(x, a->offset));
}

void clike_call(Clike *x, const Stmt *s)
{
    const StmtCall  *call = &s->u.call;
    const ClikeFunc *callee = callee_of(x->program, s);
    StrBuf           args = strbuf(x->c->arena);

    clike_fresh(x);
    for (uint32_t i = 0; i < call->nargs; i++) {
        str_add(&args, i ? ", " : "");
        if (call->args[i].buffer)
            print_pointer(x, &call->args[i], callee->f->params[i].buffer, callee->written[i],
                          &args);
        else
            clike_index(x, call->args[i].scalar, &args);
    }
    clike_indent(x);
    str_printf(x->out, "%s(%s);\n", x->program->symbol(x->program->user, call->callee),
               args.n ? args.at : "");
}

void clike_invoke(Clike *x, const InvokeData *d)
{
    StrBuf text = strbuf(x->c->arena);

    clike_fresh(x);
    if (d->result)
        str_printf(&text, "%s%s = ", clike_buffer(x, d->result), clike_cell(x, d->result));
    clike_prim(x, d->fn, &text);
    str_add(&text, "(");
    for (uint32_t i = 0; i < d->nargs; i++) {
        str_add(&text, i ? ", " : "");
        clike_prim(x, d->args[i], &text);
    }
    clike_indent(x);
    str_printf(x->out, "%s);\n", text.at);
}

/* ---- addresses, views -------------------------------------------------------------------------- */

void clike_address(Clike *x, const Prim *p, StrBuf *s)
{
    const LoadData *l = &p->u.load;

    if (p->kind == PRIM_SYMBOL) {
        str_add(s, x->program->symbol(x->program->user, p->u.symbol));
        return;
    }
    const char *name = clike_buffer(x, l->buffer);
    bool        local = l->buffer->record && l->buffer->scope == SCOPE_STACK;
    if (l->member)
        str_printf(s, "&%s%s%s", name, local ? "." : "->", l->member->name);
    else if (l->n && (l->index[0]->nterms || l->index[0]->c0))
        str_printf(s, "&%s[%s]", name, clike_index_text(x, l->index[0]));
    else
        str_printf(s, "%s%s", local ? "&" : "", name);
}

void clike_view(Clike *x, const Stmt *s, bool tail)
{
    const Buffer *b = s->u.view.buffer;
    const Prim   *at = s->u.view.at;
    StrBuf        from = strbuf(x->c->arena);

    clike_fresh(x);
    clike_prim(x, at, &from);
    if (!tail) {
        clike_indent(x);
        str_add(x->out, "{\n");
        x->depth++;
    }
    const char *cells = at->kind == PRIM_SYMBOL && dtype_is_handle(b->dtype)
                            ? x->program->cells(x->program->user, at->u.symbol)
                            : NULL;
    const char *type = cells ? arena_printf(x->c->arena, "%s const *", cells) : pointer_type(x, b);
    clike_indent(x);
    if (cells)
        str_printf(x->out, "%s%s = %s;\n", type, clike_buffer(x, b), from.at);
    else
        str_printf(x->out, "%s%s = (%s)%s;\n", type, clike_buffer(x, b), type, from.at);
    clike_stmt(x, s->kids[0], true);
    if (tail)
        return;
    x->depth--;
    clike_indent(x);
    str_add(x->out, "}\n");
}

/* Arms are few: a chain of conditions. */
void clike_switch(Clike *x, const Stmt *s)
{
    const SwitchData *d = &s->u.cases;

    clike_fresh(x);
    const char *value = clike_expression(x, d->value);
    clike_indent(x);
    str_printf(x->out, "if (%s < 0) {\n", value);
    for (uint32_t i = 0; i < s->nkids; i++) {
        clike_indent(x);
        str_printf(x->out, "} else if (%s < %lld) {\n", value, (long long)d->end[i]);
        x->depth++;
        clike_stmt(x, s->kids[i], true);
        x->depth--;
    }
    clike_indent(x);
    str_add(x->out, "}\n");
}
