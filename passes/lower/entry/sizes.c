/* The arena of plans with dimensions that have no upper bound (docs/design/shapes.md): its size is
 * a form, which a run computes of its dimensions, and the caller before it.
 *
 *     i64 net_arena_bytes(dims, threads)
 *       if %dims[0] < 1 || 2147483647 < %dims[0] { return (i64(-4)) }
 *       if f64(2.81e14) < f64(%dims[0])*f64(15360) + .. { return (i64(-4)) }
 *       return (%dims[0]*15360 + 64 + threads*(%dims[0]*64))
 *     net_sizes()  = the address of a constant: the dimensions, and that function
 *
 * The sum in f64 is that of all sizes of a run, arguments included, without what is subtracted.
 * Below its limit no index and no size overflows 64 bits, nor what a process can address. */
#include "passes/lower/entry/entry.h"

uint64_t most_bytes(const Plan *p)
{
    return UINT64_C(1) << (p->target->pointer_bits == 32 ? 31 : 48);
}

/* ---- a bound in f64 ---------------------------------------------------------------------------- */

static const Prim *real(Entry *e, double v)
{
    return prim_num(e->c, DT_F64, v);
}

static const Prim *bound_of(Entry *e, const Buffer *dims, const Idx *x);

/* What a run computes for the atom, and on the way to it, is at most that. */
static const Prim *atom_bound(Entry *e, const Buffer *dims, const Atom *a)
{
    Ctx *c = e->c;

    switch (a->kind) {
    case ATOM_VAR:
        for (uint32_t i = 0; i < e->plan->symbols.n; i++)
            if (e->plan->symbols.at[i] == a)
                return prim_cast(c, DT_F64, at(e, dims, i));
        return a->below ? bound_of(e, dims, a->below) : real(e, (double)a->hi);
    case ATOM_DIV: return bound_of(e, dims, a->a);
    case ATOM_PROD: return prim_mul(c, bound_of(e, dims, a->a), bound_of(e, dims, a->b));
    case ATOM_SYMDIV:
    case ATOM_MIN:
    case ATOM_MAX: return prim_add(c, bound_of(e, dims, a->a), bound_of(e, dims, a->b));
    case ATOM_LOAD: return real(e, (double)a->hi);
    }
    BUG("atom kind %d", (int)a->kind);
}

static const Prim *bound_of(Entry *e, const Buffer *dims, const Idx *x)
{
    const Prim *sum = real(e, x->c0 < 0 ? -(double)x->c0 : (double)x->c0);

    for (uint32_t i = 0; i < x->nterms; i++) {
        double q = (double)x->t[i].coef;

        sum = prim_add(e->c, sum,
                       prim_mul(e->c, real(e, q < 0 ? -q : q), atom_bound(e, dims, x->t[i].atom)));
    }
    return sum;
}

static const Prim *io_bound(Entry *e, const Buffer *dims, uint32_t n, const PlanIO *io,
                            const Prim *sum)
{
    for (uint32_t i = 0; i < n; i++) {
        const Prim *bytes = real(e, dtype_bytes(io[i].type->dtype));

        for (uint32_t k = 0; k < io[i].type->n; k++)
            bytes = prim_mul(e->c, bytes, bound_of(e, dims, io[i].type->dims[k]));
        sum = prim_add(e->c, sum, bytes);
    }
    return sum;
}

static const Prim *too_large(Entry *e, const Buffer *dims, const Prim *threads)
{
    Ctx        *c = e->c;
    const Plan *p = e->plan;
    const Prim *all = bound_of(e, dims, p->scratch);

    all = prim_mul(c, all, prim_cast(c, DT_F64, threads));
    all = prim_add(c, all, bound_of(e, dims, p->arena));
    all = io_bound(e, dims, p->nin, p->in, all);
    all = io_bound(e, dims, p->nout, p->out, all);
    return prim_lt(c, real(e, (double)most_bytes(p)), all);
}

void check_sizes(Entry *e, Code *code, const Buffer *dims, const Prim *threads)
{
    fail_if(e, code, too_large(e, dims, threads), TVMCC_E_SHAPE);
}

/* ---- the size ---------------------------------------------------------------------------------- */

const Prim *arena_need(Entry *e, const Buffer *dims, const Prim *threads)
{
    Ctx        *c = e->c;
    const Plan *p = e->plan;
    IdxSubst   *sub = subst_new(c->arith, c->arena);
    const Prim *own;

    for (uint32_t i = 0; i < p->symbols.n; i++) {
        const Atom *a = p->symbols.at[i];

        subst_bind(sub, a, idx_load(c->arith, at(e, dims, i), a->lo, a->hi));
    }
    own = prim_index(c, DT_I64, idx_subst(sub, p->scratch));
    return prim_add(c, prim_index(c, DT_I64, idx_subst(sub, p->arena)),
                    prim_mul(c, prim_cast(c, DT_I64, threads), own));
}

static void end_if(Entry *e, Code *code, const Prim *cond, int32_t with)
{
    add(e, code, stmt_if(e->c, cond, stmt_return(e->c, num(e, DT_I64, with)), NULL));
}

/* That of the plan that takes most. */
static void define_arena_bytes(Entry *e, const Plan *plans)
{
    Ctx          *c = e->c;
    const Buffer *dims = array_of(e, "dims", DT_I64, plans->symbols.n), *most, *parts;
    Param         params[2] = {pointer(dims), scalar(e, "threads", 0, UINT32_MAX)};
    const Prim   *threads = prim_index(c, DT_U32, idx_atom(c->arith, params[1].scalar));
    Code          code = {0};

    end_if(e, &code, is_null(e, address(e, dims)), TVMCC_E_NULL);
    for (uint32_t i = 0; i < plans->symbols.n; i++) {
        const Atom *a = plans->symbols.at[i];
        const Prim *n = at(e, dims, i);

        end_if(e, &code, prim_lt(c, n, num(e, DT_I64, a->lo)), TVMCC_E_SHAPE);
        end_if(e, &code, prim_lt(c, num(e, DT_I64, a->hi), n), TVMCC_E_SHAPE);
    }
    parts = variable(e, &code, "parts", DT_U32);
    set(e, &code, parts,
        prim_select(c, prim_eq(c, threads, num(e, DT_U32, 0)), num(e, DT_U32, 1), threads));
    threads = value_of(e, parts);
    end_if(e, &code, prim_lt(c, num(e, DT_U32, 1 << 16), threads), TVMCC_E_MISMATCH);
    most = variable(e, &code, "most", DT_I64);
    set(e, &code, most, num(e, DT_I64, 0));
    for (const Plan *p = plans; p; p = p->next) {
        Code        more = {0};
        const Prim *need;

        use_plan(e, p);
        end_if(e, &code, too_large(e, dims, threads), TVMCC_E_SHAPE);
        need = arena_need(e, dims, threads);
        set(e, &more, most, need);
        add(e, &code, stmt_if(c, prim_lt(c, value_of(e, most), need), code_end(e, &more), NULL));
    }
    give(e, &code, value_of(e, most));
    define(e, "_arena_bytes", "arena_bytes", true, 2, params, &code);
}

/* Where the caller has dimension a alone, as a run reads it. */
static void dim_place(Entry *e, Items *all, const Plan *p, const Atom *a)
{
    for (uint32_t i = 0; i < p->nin; i++)
        for (uint32_t k = 0; k < p->in[i].type->n; k++) {
            const Idx *x = p->in[i].type->dims[k];

            if (x->nterms != 1 || x->t[0].atom != a || x->t[0].coef <= 0)
                continue;
            item(e, all, ABI_U32, i);
            item(e, all, ABI_U32, k);
            item(e, all, ABI_U32, x->t[0].coef);
            item(e, all, ABI_I32, x->c0);
            return;
        }
    BUG("no input has dimension '%s'", a->name);
}

void define_sizes(Entry *e, const Plan *plans)
{
    Items dims = {0}, all = {0};
    Code  code = {0};

    define_arena_bytes(e, plans);
    for (uint32_t i = 0; i < plans->symbols.n; i++) {
        const Atom *a = plans->symbols.at[i];

        item_symbol(e, &dims, text_constant(e, a->name));
        item(e, &dims, ABI_U32, a->lo);
        item(e, &dims, ABI_U32, atom_is_open(a) ? 0 : a->hi);
        dim_place(e, &dims, plans, a);
    }
    item_sizeof(e, &all, "size_info");
    item(e, &all, ABI_U32, plans->symbols.n);
    item_symbol(e, &all, records(e, &dims, "dim_info"));
    item_symbol(e, &all, symbol(e, "_arena_bytes"));
    give(e, &code, prim_symbol(e->c, records(e, &all, "size_info")));
    define(e, "_sizes", "sizes", true, 0, NULL, &code);
}
