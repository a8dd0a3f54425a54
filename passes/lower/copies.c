/* Kernels that move values from one place to another: no operator's, they are made as flat TIR.
 *
 *     func @copy.f32.4 (%src: f32[4], %dst: f32[4] written) { for %i < 4 { %dst[%i] = %src[%i] } }
 *     func @state.f32.4 (%src: f32[4], %dst: f32[4] written) {
 *       if addr(%src[0]) != addr(%dst[0]) { for %i < 4 { %dst[%i] = %src[%i] } } }
 *     func @update.f32.i64.8x4 (%src: f32[4], %at: i64[1], %dst: f32[32] written) {
 *       if 0 <= %at[0] && %at[0] < 8 {
 *         for %i < 4 { %dst[4*read(%at[0], 0, 7) + %i] = %src[%i] } } }
 *
 * Where sizes are symbolic, they are the first parameters. */
#include "passes/lower/lower.h"

static const Func *find_copy(const Copies *x, const char *name)
{
    for (uint32_t i = 0; i < x->all.n; i++)
        if (x->all.at[i]->name == name)
            return x->all.at[i];
    return NULL;
}

/* The name that a kernel has in the end: that of its only launch, on a device. */
static const char *last_name(const Copies *x, const char *name, bool device)
{
    return device ? intern_printf(x->c->strings, "%s.0", name) : name;
}

/* Bits are copied, so a device without f64 copies whole numbers. */
static DType cell_of(const Copies *x, DType dtype, bool device)
{
    const DType t = dtype_cell(dtype);

    return device && x->p->kernels->target->no_f64 && dtype_eq(t, DT_F64) ? DT_I64 : t;
}

static const Func *add_copy(Copies *x, const char *name, uint32_t nparams, const Param *params,
                            const Stmt *body, bool device)
{
    Ctx          *c = x->c;
    const Target *t = x->p->kernels->target;
    Func          f = {.name = name,
                       .kind = device ? FUNC_DEVICE : FUNC_KERNEL,
                       .target = !device && x->p->device ? t->host : t,
                       .nparams = nparams,
                       .params = DUP_ARRAY(c->arena, params, nparams),
                       .body = body};
    const Func   *k = func_new(c, f);

    if (device)
        k = launches(c, tirmod_new(c, 1, &k))->funcs[0];
    vec_push(c->arena, &x->all, k);
    return k;
}

/* A number that a kernel knows, or a parameter that says it. */
static const Idx *size_of(Ctx *c, const char *name, const Idx *n, Param *params, uint32_t *nparams)
{
    const Atom *a;

    if (idx_is_const(n, NULL))
        return n;
    a = atom_var(c->arith, name, 0, n->hi);
    params[(*nparams)++] = (Param){NULL, a, false};
    return idx_atom(c->arith, a);
}

static const Stmt *for_all(Ctx *c, const Atom *i, const Idx *n, const Stmt *body)
{
    LoopData loop = {.var = i, .lo = idx_const(c->arith, 0), .extent = n};

    return stmt_for(c, loop, body, NO_LOC);
}

/* Does b begin elsewhere than a? */
static const Prim *elsewhere(Ctx *c, const Buffer *a, const Buffer *b)
{
    const Idx *zero = idx_const(c->arith, 0);

    return prim_not(c, prim_eq(c, prim_addr(c, a, &zero, NULL), prim_addr(c, b, &zero, NULL)));
}

const Func *copy_kernel(Copies *x, DType dtype, const Idx *n, bool unless_there, bool device)
{
    Ctx        *c = x->c;
    DType       t = cell_of(x, dtype, device);
    const char *name =
        intern_printf(c->strings, "%s.%s.%s%lld", unless_there ? "state" : "copy", dtype_text(c, t),
                      idx_is_const(n, NULL) ? "" : "upto", (long long)n->hi);
    const Func *had = find_copy(x, last_name(x, name, device));
    Param       params[3];
    uint32_t    nparams = 0;

    if (had)
        return had;
    const Idx    *extent = size_of(c, "n", n, params, &nparams);
    const Buffer *src = buffer_new(c, "src", t, SCOPE_ARENA, 1, &extent);
    const Buffer *dst = buffer_new(c, "dst", t, SCOPE_ARENA, 1, &extent);
    const Atom   *i = atom_var(c->arith, "i", 0, n->hi - 1);
    const Idx    *at = idx_atom(c->arith, i);

    params[nparams++] = (Param){src, NULL, false};
    params[nparams++] = (Param){dst, NULL, true};
    const Stmt *copy = for_all(c, i, extent, stmt_store(c, dst, &at, prim_load(c, src, &at)));
    if (unless_there)
        copy = stmt_if(c, elsewhere(c, src, dst), copy, NULL);
    return add_copy(x, name, nparams, params, copy, device);
}

const Func *update_kernel(Copies *x, DType dtype, DType position, const Idx *slices, const Idx *n,
                          bool device)
{
    Ctx        *c = x->c;
    DType       t = cell_of(x, dtype, device);
    bool        fixed = idx_is_const(slices, NULL) && idx_is_const(n, NULL);
    const char *name = intern_printf(c->strings, "update.%s.%s.%s%lldx%lld", dtype_text(c, t),
                                     dtype_text(c, position), fixed ? "" : "upto",
                                     (long long)slices->hi, (long long)n->hi);
    const Func *had = find_copy(x, last_name(x, name, device));
    const Idx  *zero = idx_const(c->arith, 0), *one = idx_const(c->arith, 1), *to;
    Param       params[5];
    uint32_t    nparams = 0;

    if (had)
        return had;
    if (!fixed) { /* both are parameters, or none */
        const Atom *a = atom_var(c->arith, "slices", 0, slices->hi),
                   *b = atom_var(c->arith, "n", 0, n->hi);
        params[nparams++] = (Param){NULL, a, false};
        params[nparams++] = (Param){NULL, b, false};
        slices = idx_atom(c->arith, a);
        n = idx_atom(c->arith, b);
    }
    const Idx    *cells = idx_mul(c->arith, slices, n);
    const Buffer *src = buffer_new(c, "src", t, SCOPE_ARENA, 1, &n);
    const Buffer *at = buffer_new(c, "at", position, SCOPE_ARENA, 1, &one);
    const Buffer *dst = buffer_new(c, "dst", t, SCOPE_ARENA, 1, &cells);
    const Atom   *i = atom_var(c->arith, "i", 0, n->hi - 1);
    const Idx    *from = idx_atom(c->arith, i);
    const Prim   *k = prim_cast(c, DT_I64, prim_load(c, at, &zero));
    const Prim   *there = prim_and(c, prim_le(c, prim_int(c, DT_I64, 0), k),
                                   prim_lt(c, k, prim_index(c, DT_I64, slices)));

    to = idx_mul(c->arith, idx_load(c->arith, prim_load(c, at, &zero), 0, slices->hi - 1), n);
    to = idx_add(c->arith, to, from);
    params[nparams++] = (Param){src, NULL, false};
    params[nparams++] = (Param){at, NULL, false};
    params[nparams++] = (Param){dst, NULL, true};
    return add_copy(x, name, nparams, params,
                    stmt_if(c, there,
                            for_all(c, i, n, stmt_store(c, dst, &to, prim_load(c, src, &from))),
                            NULL),
                    device);
}
