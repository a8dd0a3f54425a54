/* The words in which entry functions are written.  Every helper takes the list that it adds to;
 * values are prims, variables are `reg` buffers that backends keep in registers. */
#include "passes/lower/entry/entry.h"

#include <string.h>

/* ---- lists of statements ----------------------------------------------------------------------- */

void add(Entry *e, Code *code, const Stmt *s)
{
    vec_push(e->c->arena, code, s);
}

static bool is_open(const Stmt *s)
{
    return (s->kind == STMT_ALLOC || s->kind == STMT_VIEW) && stmt_is_empty(s->kids[0]);
}

/* From the end: what follows an alloc is its body. */
const Stmt *code_end(Entry *e, Code *code)
{
    Ctx        *c = e->c;
    uint32_t    end = code->n;
    const Stmt *rest = NULL;

    for (uint32_t i = code->n; i-- > 0;) {
        const Stmt *s = code->at[i];

        if (!is_open(s))
            continue;
        const Stmt *both[2] = {stmt_seq(c, end - i - 1, code->at + i + 1), rest};
        const Stmt *inner = stmt_seq(c, 2, both);
        rest = s->kind == STMT_ALLOC ? stmt_alloc(c, s->u.buffer, inner)
                                     : stmt_view(c, s->u.view.buffer, s->u.view.at, inner);
        end = i;
    }
    const Stmt *both[2] = {stmt_seq(c, end, code->at), rest};
    return stmt_seq(c, 2, both);
}

static const Stmt *nothing(Entry *e)
{
    return stmt_seq(e->c, 0, NULL);
}

/* ---- values ------------------------------------------------------------------------------------ */

const char *symbol(Entry *e, const char *suffix)
{
    return intern_printf(e->c->strings, "%s%s", e->o->entry, suffix);
}

const Prim *num(Entry *e, DType t, int64_t v)
{
    return prim_int(e->c, t, v);
}

const Prim *status(Entry *e, int32_t code)
{
    return num(e, DT_I32, code);
}

const Prim *is_null(Entry *e, const Prim *handle)
{
    return prim_eq(e->c, handle, prim_null(e->c));
}

const Prim *address(Entry *e, const Buffer *b)
{
    const Idx *zero = idx_const(e->c->arith, 0);

    return prim_addr(e->c, b, &zero, NULL);
}

static const AbiMember *member_of(const Buffer *b, const char *name)
{
    const AbiMember *m = record_member(b->record, name);

    if (!m)
        BUG("'%s' has no member '%s'", b->record->name, name);
    return m;
}

const Prim *get(Entry *e, const Buffer *b, const char *member)
{
    return prim_member(e->c, b, NULL, member_of(b, member));
}

void put(Entry *e, Code *code, const Buffer *b, const char *member, const Prim *value)
{
    add(e, code, stmt_put(e->c, b, NULL, member_of(b, member), value));
}

const Prim *cell(Entry *e, const Buffer *b, const Idx *i)
{
    return prim_load(e->c, b, &i);
}

const Prim *at(Entry *e, const Buffer *b, uint32_t i)
{
    return cell(e, b, idx_const(e->c->arith, i));
}

/* ---- buffers ----------------------------------------------------------------------------------- */

const Buffer *struct_of(Entry *e, const char *name, const char *record, Scope scope)
{
    Buffer b = {.name = intern(e->c->strings, name), .dtype = DT_U8, .scope = scope};

    b.record = record_find(record);
    if (!b.record)
        BUG("there is no record '%s'", record);
    return buffer_copy(e->c, &b, b);
}

const Buffer *cleared(Entry *e, Code *code, const char *record)
{
    const Buffer *b = struct_of(e, record, record, SCOPE_STACK);

    add(e, code, stmt_alloc(e->c, b, nothing(e)));
    for (uint32_t i = 0; i < b->record->n; i++) {
        const AbiMember *m = &b->record->members[i];

        put(e, code, b, m->name,
            m->type == ABI_HANDLE ? prim_null(e->c) : num(e, abi_dtype(m->type), 0));
    }
    return b;
}

const Buffer *array_of(Entry *e, const char *name, DType t, int64_t n)
{
    const Idx *extent = idx_const(e->c->arith, n);

    return buffer_new(e->c, name, t, SCOPE_ARENA, 1, &extent);
}

const Buffer *variable(Entry *e, Code *code, const char *name, DType t)
{
    const Buffer *b = buffer_new(e->c, name, t, SCOPE_REG, 0, NULL);

    add(e, code, stmt_alloc(e->c, b, nothing(e)));
    return b;
}

void set(Entry *e, Code *code, const Buffer *var, const Prim *value)
{
    add(e, code, stmt_store(e->c, var, NULL, value));
}

const Prim *value_of(Entry *e, const Buffer *var)
{
    return prim_load(e->c, var, NULL);
}

const Buffer *view_struct(Entry *e, Code *code, const char *name, const char *record,
                          const Prim *at)
{
    const Buffer *b = struct_of(e, name, record, SCOPE_ARENA);

    add(e, code, stmt_view(e->c, b, at, nothing(e)));
    return b;
}

const Buffer *view_array(Entry *e, Code *code, const char *name, DType t, int64_t n, const Prim *at)
{
    const Buffer *b = array_of(e, name, t, n);

    add(e, code, stmt_view(e->c, b, at, nothing(e)));
    return b;
}

/* ---- control flow ------------------------------------------------------------------------------ */

void give(Entry *e, Code *code, const Prim *result)
{
    add(e, code, stmt_return(e->c, result));
}

void fail_if(Entry *e, Code *code, const Prim *cond, int32_t with)
{
    add(e, code, stmt_if(e->c, cond, stmt_return(e->c, status(e, with)), NULL));
}

void invoke(Entry *e, Code *code, const Buffer *result, const char *sig, const Prim *fn, uint32_t n,
            const Prim *const *args)
{
    InvokeData d = {signature_find(sig), fn, n, args, result};

    if (!d.sig || signature_params(d.sig) != n)
        BUG("%u arguments for '%s'", n, sig);
    add(e, code, stmt_invoke(e->c, d));
}

/* ---- functions --------------------------------------------------------------------------------- */

const Prim *function(Entry *e, const char *suffix)
{
    return prim_symbol(e->c, symbol(e, suffix));
}

const char *own(Entry *e, const char *suffix)
{
    return intern_printf(e->c->strings, "%s%s", e->own, suffix);
}

Param scalar(Entry *e, const char *name, int64_t lo, int64_t hi)
{
    return (Param){NULL, atom_var(e->c->arith, name, lo, hi), false};
}

Param pointer(const Buffer *b)
{
    return (Param){b, NULL, false};
}

void define(Entry *e, const char *suffix, const char *sig, bool exported, uint32_t n,
            const Param *params, Code *code)
{
    Func f = {.name = symbol(e, suffix),
              .kind = FUNC_ENTRY,
              .target = e->plan->target,
              .nparams = n,
              .params = params,
              .body = code_end(e, code),
              .sig = signature_find(sig),
              .exported = exported,
              .any_cpu = e->any_cpu};

    vec_push(e->c->arena, &e->funcs, func_new(e->c, f));
}

/* ---- constant data ----------------------------------------------------------------------------- */

void item(Entry *e, Items *items, AbiType t, int64_t v)
{
    vec_push(e->c->arena, items, ((DataItem){.type = t, .i = v}));
}

void item_symbol(Entry *e, Items *items, const char *symbol)
{
    vec_push(e->c->arena, items, ((DataItem){.type = ABI_HANDLE, .symbol = symbol}));
}

void item_bytes(Entry *e, Items *items, const void *bytes, size_t n)
{
    vec_push(e->c->arena, items, ((DataItem){.bytes = {bytes, n}}));
}

void item_sizeof(Entry *e, Items *items, const char *record)
{
    vec_push(e->c->arena, items, ((DataItem){.type = ABI_U32, .size_of = record_find(record)}));
}

static const char *data_of(Entry *e, const Items *items, const AbiRecord *r)
{
    Data d = {.record = r, .nitems = items->n, .items = items->at};

    if (!items->n)
        return NULL;
    d.name = intern_printf(e->c->strings, "%s__const%u", e->o->entry, e->nconstants++);
    vec_push(e->c->arena, &e->data, d);
    return d.name;
}

const char *constant(Entry *e, const Items *items)
{
    return data_of(e, items, NULL);
}

/* Structs are written member by member, so that none is left out. */
const char *records(Entry *e, const Items *items, const char *record)
{
    const AbiRecord *r = record_find(record);

    if (items->n % r->n)
        BUG("%u items for %s, which has %u members", items->n, record, r->n);
    for (uint32_t i = 0; i < items->n; i++) {
        const AbiMember *m = &r->members[i % r->n];

        if (items->at[i].type != m->type &&
            (m->type != ABI_SHA || items->at[i].bytes.n != abi_bytes(ABI_SHA, 0)))
            BUG("%s.%s is of another type", record, m->name);
    }
    return data_of(e, items, r);
}

const char *text_constant(Entry *e, const char *text)
{
    Items items = {0};

    item_bytes(e, &items, text, strlen(text) + 1);
    return constant(e, &items);
}
