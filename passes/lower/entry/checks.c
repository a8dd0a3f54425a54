/* What a run asks of its arguments before it touches anything, in the order of docs/abi.md: the
 * first that does not hold decides the code. */
#include "passes/lower/entry/entry.h"

uint64_t io_bytes(const PlanIO *io)
{
    int64_t n = 0;

    for (uint32_t i = 0; i < io->type->n; i++)
        if (idx_is_open(io->type->dims[i]))
            return 0;
    return type_elems_most(io->type, &n) ? (uint64_t)n * dtype_bytes(io->type->dtype) : 1;
}

uint32_t io_align(const PlanIO *io, const Buffer *b)
{
    uint32_t align = dtype_bytes(io->type->dtype);

    return b->align > align ? b->align : align;
}

void check_aligned(Entry *e, Code *code, const Prim *handle, uint32_t align)
{
    Ctx        *c = e->c;
    const Prim *low;

    if (align <= 1)
        return;
    low = prim_bin(c, PRIM_AND, prim_cast(c, DT_U64, handle), num(e, DT_U64, align - 1));
    fail_if(e, code, prim_bin(c, PRIM_NE, low, num(e, DT_U64, 0)), TVMCC_E_ALIGN);
}

/* The members before `places` are as old as the struct. */
const Prim *params_too_short(Entry *e, const Buffer *params)
{
    const AbiMember *newer = record_member(params->record, "places");

    return prim_lt(e->c, get(e, params, "struct_bytes"),
                   prim_offsetof(e->c, params->record, newer));
}

void check_params(Entry *e, Code *code, const Buffer *params)
{
    fail_if(e, code, params_too_short(e, params), TVMCC_E_MISMATCH);
}

/* Of members from `places` on. */
const Prim *newer_param(Entry *e, Code *code, const Buffer *params, const char *member, DType t)
{
    const Buffer *var = variable(e, code, member, t);
    const Prim   *none = dtype_eq(t, DT_HANDLE) ? prim_null(e->c) : num(e, t, 0);
    Code          there = {0};

    set(e, code, var, none);
    set(e, &there, var, get(e, params, member));
    add(e, code,
        stmt_if(e->c,
                prim_le(e->c, prim_sizeof(e->c, params->record), get(e, params, "struct_bytes")),
                code_end(e, &there), NULL));
    return value_of(e, var);
}

/* Arena and number of threads; gives the threads, at least 1. */
const Prim *check_arena(Entry *e, Code *code, const Buffer *params, int64_t most)
{
    Ctx          *c = e->c;
    const Plan   *p = e->plan;
    const Buffer *threads = variable(e, code, "threads", DT_U32);
    const Prim   *n = get(e, params, "threads"), *arena = get(e, params, "arena"), *need;

    n = prim_select(c, prim_eq(c, n, num(e, DT_U32, 0)), num(e, DT_U32, 1), n);
    set(e, code, threads, n);
    n = value_of(e, threads);
    fail_if(e, code, prim_lt(c, num(e, DT_U32, most), n), TVMCC_E_MISMATCH);
    if (p->arena || p->arena_bytes || p->private_bytes)
        fail_if(e, code, is_null(e, arena), TVMCC_E_NULL);
    check_aligned(e, code, arena, ARENA_ALIGN);
    if (p->arena || (!p->arena_bytes && !p->private_bytes)) /* check_dims knows how large it is */
        return n;
    need = prim_mul(c, prim_cast(c, DT_U64, n), num(e, DT_U64, (int64_t)p->private_bytes));
    need = prim_add(c, need, num(e, DT_U64, (int64_t)p->arena_bytes));
    fail_if(e, code, prim_lt(c, get(e, params, "arena_bytes"), need), TVMCC_E_MISMATCH);
    return n;
}

/* The weights that params bring, checked, else the embedded ones. */
const Prim *check_weights(Entry *e, Code *code, const Buffer *params)
{
    Ctx          *c = e->c;
    const Prim   *given = get(e, params, "weights"), *w;
    const Buffer *var;
    Code          own = {0}, theirs = {0};

    if (!e->plan->weights_bytes)
        return given;
    var = variable(e, code, "weights", DT_HANDLE);
    set(e, code, var, given);
    w = value_of(e, var);
    check_aligned(e, &theirs, w, WEIGHTS_ALIGN);
    fail_if(e, &theirs,
            prim_lt(c, get(e, params, "weights_bytes"),
                    num(e, DT_U64, (int64_t)e->plan->weights_bytes)),
            TVMCC_E_MISMATCH);
    if (e->weights) {
        set(e, &own, var, prim_symbol(c, e->weights));
        add(e, code, stmt_if(c, is_null(e, w), code_end(e, &own), code_end(e, &theirs)));
    } else {
        fail_if(e, code, is_null(e, w), TVMCC_E_NULL);
        add(e, code, code_end(e, &theirs));
    }
    return w;
}

void check_tensors(Entry *e, Code *code, const Buffer *list, uint32_t n, const PlanIO *io,
                   const Param *params)
{
    for (uint32_t i = 0; i < n; i++) {
        if (is_dynamic(&io[i]) || !io_bytes(&io[i]))
            continue;
        fail_if(e, code, is_null(e, at(e, list, i)), TVMCC_E_NULL);
        check_aligned(e, code, at(e, list, i), io_align(&io[i], params[i].buffer));
    }
}
