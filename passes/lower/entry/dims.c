/* Dimensions that a run decides (docs/design/shapes.md): read from the caller's tensors, which are
 * tvmcc_value where some dimension is symbolic, checked, and written to those of the results.
 *
 *     %dims[0] = %shape[1]                     the first input that has %N alone says what it is
 *     if %dims[0] < 1 || 64 < %dims[0] { return (i32(-4)) }
 *     if %shape.1[0] != %dims[0]*2 { return (i32(-4)) }           the others have to agree
 *     %shape.2[0] = %dims[0]                   results: their shape, and the bytes they take
 *     %value.bytes = ..
 *
 * In main the dimensions are integers of that array, `read(%dims[0], 1, 64)`.  Behind them lie
 * those that main computes; results whose shape has one get it when main is done, and need the room
 * of the largest before. */
#include "passes/lower/entry/entry.h"

bool is_dynamic(const PlanIO *io)
{
    return !type_static(io->type);
}

/* ---- main over an array ------------------------------------------------------------------------ */

typedef struct {
    uint32_t       n;
    const Buffer **was, **now;
} Renamed;

static const Buffer *renamed(Ctx *c, void *user, const Buffer *b)
{
    const Renamed *r = user;

    (void)c;
    for (uint32_t i = 0; i < r->n; i++)
        if (r->was[i] == b)
            return r->now[i];
    return b;
}

static uint32_t dim_cells(const Entry *e)
{
    return e->plan->symbols.n + e->plan->ncells;
}

/* The dimensions as cells of an array.  A plan that was read has other atoms in the parameters of
 * main than in its tensors: both. */
static IdxSubst *dims_in(Entry *e, const Buffer *array, const Param *params)
{
    const AtomList *dims = &e->plan->symbols;
    IdxSubst       *sub = subst_new(e->c->arith, e->c->arena);

    for (uint32_t i = 0; i < dims->n; i++) {
        const Idx *n = idx_load(e->c->arith, at(e, array, i), dims->at[i]->lo, dims->at[i]->hi);
        subst_bind(sub, dims->at[i], n);
        if (params)
            subst_bind(sub, params[i].scalar, n);
    }
    for (uint32_t i = 0; i < e->plan->nbound; i++) {
        BoundDim   b = e->plan->bound[i];
        const Idx *n = idx_load(e->c->arith, at(e, array, dims->n + b.cell), b.dim->lo, b.dim->hi);
        subst_bind(sub, b.dim, n);
    }
    return sub;
}

void use_dims(Entry *e)
{
    Ctx        *c = e->c;
    const Func *f = e->main;
    uint32_t    ndims = e->plan->symbols.n, n = f->nparams - ndims;

    if (!dim_cells(e))
        return;
    e->dims = array_of(e, "dims", DT_I64, dim_cells(e));
    if (!ndims)
        return;
    Renamed r = {n, NEW_ARRAY(c->arena, const Buffer *, n), NEW_ARRAY(c->arena, const Buffer *, n)};
    Param  *params = DUP_ARRAY(c->arena, f->params + ndims, n);
    TirMap  m = {.user = &r, .buffer = renamed};
    Func    g = *f;
    IdxSubst *sub = dims_in(e, e->dims, f->params);

    for (uint32_t i = 0; i < n; i++) {
        Buffer     b = *params[i].buffer;
        const Idx *most = idx_is_open(b.extent[0]) ? idx_subst(sub, b.extent[0])
                                                   : idx_const(c->arith, b.extent[0]->hi);

        b.extent = DUP_ARRAY(c->arena, &most, 1);
        r.was[i] = params[i].buffer;
        params[i].buffer = r.now[i] = buffer_copy(c, params[i].buffer, b);
    }
    g.nparams = n;
    g.params = params;
    g.body = stmt_map(c, stmt_subst(c, f->body, sub), &m);
    e->main = func_new(c, g);
}

/* ---- what the caller's tensors say ------------------------------------------------------------- */

typedef struct {
    const PlanIO *io;
    const Buffer *value, *shape;
} Given;

static Given given(Entry *e, Code *code, const Buffer *list, uint32_t i, const PlanIO *io,
                   const Buffer *b)
{
    Ctx  *c = e->c;
    Given g = {.io = io};

    fail_if(e, code, is_null(e, at(e, list, i)), TVMCC_E_NULL);
    g.value = view_struct(e, code, "value", "value", at(e, list, i));
    fail_if(e, code, is_null(e, get(e, g.value, "data")), TVMCC_E_NULL);
    fail_if(e, code, is_null(e, get(e, g.value, "dims")), TVMCC_E_NULL);
    check_aligned(e, code, get(e, g.value, "data"), io_align(io, b));
    fail_if(e, code, prim_bin(c, PRIM_NE, get(e, g.value, "ndim"), num(e, DT_U32, io->type->n)),
            TVMCC_E_SHAPE);
    g.shape = view_array(e, code, "shape", DT_I64, io->type->n, get(e, g.value, "dims"));
    return g;
}

static void check_type(Entry *e, Code *code, const Given *g)
{
    Ctx  *c = e->c;
    DType t = g->io->type->dtype;

    fail_if(e, code, prim_bin(c, PRIM_NE, get(e, g->value, "code"), num(e, DT_U8, t.code)),
            TVMCC_E_SHAPE);
    fail_if(e, code, prim_bin(c, PRIM_NE, get(e, g->value, "bits"), num(e, DT_U8, t.bits)),
            TVMCC_E_SHAPE);
}

/* c0 + q*dim: which dimension, not found so far. */
static bool says(const Entry *e, const Idx *x, const bool *found, uint32_t *dim)
{
    for (uint32_t i = 0; x->nterms == 1 && i < e->plan->symbols.n; i++)
        if (x->t[0].atom == e->plan->symbols.at[i] && !found[i] && x->t[0].coef > 0)
            return *dim = i, true;
    return false;
}

static void find_dim(Entry *e, Code *code, const Buffer *dims, uint32_t dim, const Prim *size,
                     const Idx *x)
{
    Ctx        *c = e->c;
    const Atom *a = e->plan->symbols.at[dim];
    const Idx  *cell = idx_const(c->arith, dim);
    const Prim *q = num(e, DT_I64, x->t[0].coef), *v = prim_sub(c, size, num(e, DT_I64, x->c0)), *n;

    if (x->t[0].coef > 1)
        fail_if(e, code, prim_bin(c, PRIM_NE, prim_bin(c, PRIM_REM, v, q), num(e, DT_I64, 0)),
                TVMCC_E_SHAPE);
    add(e, code, stmt_store(c, dims, &cell, prim_div(c, v, q)));
    n = at(e, dims, dim);
    fail_if(e, code,
            prim_or(c, prim_lt(c, n, num(e, DT_I64, a->lo)), prim_lt(c, num(e, DT_I64, a->hi), n)),
            TVMCC_E_SHAPE);
}

static const Prim *size_of(Entry *e, IdxSubst *sub, const Idx *x)
{
    return prim_index(e->c, DT_I64, idx_subst(sub, x));
}

static const Prim *bytes_of(Entry *e, IdxSubst *sub, const Idx *cells, DType t)
{
    return prim_cast(e->c, DT_U64, size_of(e, sub, idx_mulc(e->c->arith, cells, dtype_bytes(t))));
}

static void put_shape(Entry *e, Code *code, const Given *g, IdxSubst *sub)
{
    const Type *t = g->io->type;

    for (uint32_t k = 0; k < t->n; k++) {
        const Idx *cell = idx_const(e->c->arith, k);
        add(e, code, stmt_store(e->c, g->shape, &cell, size_of(e, sub, t->dims[k])));
    }
}

/* Does main compute a dimension of this shape?  Then it may be any within its bounds. */
static bool is_computed(const Entry *e, const Type *t)
{
    for (uint32_t i = 0; i < e->plan->nbound; i++)
        for (uint32_t k = 0; k < t->n; k++)
            if (idx_uses(t->dims[k], e->plan->bound[i].dim))
                return true;
    return false;
}

/* Its shape and the bytes it takes, of a computed one the most; `small` becomes 1 if the caller has
 * less. */
static void put_result(Entry *e, Code *code, const Given *g, IdxSubst *sub, const Buffer *small)
{
    Ctx        *c = e->c;
    const Type *t = g->io->type;
    bool        computed = is_computed(e, t);
    const Idx  *cells = size_most(c, type_cells(c, t), e->plan->nbound, e->plan->bound);
    const Prim *bytes = computed && io_bytes(g->io) ? num(e, DT_U64, (int64_t)io_bytes(g->io))
                                                    : bytes_of(e, sub, cells, t->dtype);
    Code        less = {0};

    if (!computed)
        put_shape(e, code, g, sub);
    set(e, &less, small, status(e, 1));
    add(e, code,
        stmt_if(c, prim_lt(c, get(e, g->value, "bytes"), bytes), code_end(e, &less), NULL));
    put(e, code, g->value, "code", num(e, DT_U8, t->dtype.code));
    put(e, code, g->value, "bits", num(e, DT_U8, t->dtype.bits));
    put(e, code, g->value, "lanes", num(e, DT_U16, 1));
    put(e, code, g->value, "bytes", bytes);
}

void put_computed(Entry *e, Code *code, const Buffer *dims, const Buffer *out)
{
    IdxSubst *sub = dims ? dims_in(e, dims, NULL) : NULL;

    for (uint32_t i = 0; dims && i < e->plan->nout; i++) {
        const PlanIO *io = &e->plan->out[i];
        Given         g = {.io = io};

        if (!is_computed(e, io->type))
            continue;
        g.value = view_struct(e, code, "value", "value", at(e, out, i));
        g.shape = view_array(e, code, "shape", DT_I64, io->type->n, get(e, g.value, "dims"));
        put_shape(e, code, &g, sub);
        put(e, code, g.value, "bytes",
            bytes_of(e, sub, type_cells(e->c, io->type), io->type->dtype));
    }
}

const Buffer *check_dims(Entry *e, Code *code, const Buffer *in, const Buffer *out,
                         const Buffer *params, const Prim *threads)
{
    Ctx          *c = e->c;
    const Plan   *p = e->plan;
    const Buffer *dims, *small;
    bool         *found = NEW_ARRAY(c->scratch, bool, p->symbols.n + 1);
    Given        *all = NEW_ARRAY(c->scratch, Given, p->nin + p->nout + 1);
    Code          later = {0};
    uint32_t      dim;

    if (!dim_cells(e))
        return NULL;
    Buffer stack = *array_of(e, "found", DT_I64, dim_cells(e));
    stack.scope = SCOPE_STACK;
    dims = buffer_copy(c, &stack, stack);
    add(e, code, stmt_alloc(c, dims, stmt_seq(c, 0, NULL)));
    /* A run that is cancelled may skip what computes them. */
    for (uint32_t i = p->symbols.n; i < dim_cells(e); i++) {
        const Idx *cell = idx_const(c->arith, i);
        add(e, code, stmt_store(c, dims, &cell, num(e, DT_I64, 0)));
    }
    IdxSubst *sub = dims_in(e, dims, NULL);
    for (uint32_t i = 0; i < p->nin; i++) {
        const Type *t = p->in[i].type;

        if (!is_dynamic(&p->in[i]))
            continue;
        all[i] = given(e, code, in, i, &p->in[i], e->main->params[i].buffer);
        check_type(e, code, &all[i]);
        for (uint32_t k = 0; k < t->n; k++) {
            const Prim *size = at(e, all[i].shape, k);

            if (says(e, t->dims[k], found, &dim)) {
                find_dim(e, code, dims, dim, size, t->dims[k]);
                found[dim] = true;
            } else {
                fail_if(e, &later, prim_bin(c, PRIM_NE, size, size_of(e, sub, t->dims[k])),
                        TVMCC_E_SHAPE);
            }
        }
    }
    for (uint32_t i = 0; i < later.n; i++)
        add(e, code, later.at[i]);
    if (p->arena) {
        check_sizes(e, code, dims, threads);
        fail_if(e, code,
                prim_lt(c, get(e, params, "arena_bytes"),
                        prim_cast(c, DT_U64, arena_need(e, dims, threads))),
                TVMCC_E_MISMATCH);
    }
    for (uint32_t i = 0; i < p->nout; i++)
        if (is_dynamic(&p->out[i]))
            all[p->nin + i] =
                given(e, code, out, i, &p->out[i], e->main->params[p->nin + i].buffer);
    small = variable(e, code, "small", DT_I32);
    set(e, code, small, status(e, 0));
    for (uint32_t i = 0; i < p->nout; i++)
        if (is_dynamic(&p->out[i]))
            put_result(e, code, &all[p->nin + i], sub, small);
    fail_if(e, code, prim_eq(c, value_of(e, small), status(e, 1)), TVMCC_E_CAPACITY);
    return dims;
}

const Prim *tensor_data(Entry *e, Code *code, const Buffer *list, uint32_t i, const PlanIO *io)
{
    if (!is_dynamic(io))
        return at(e, list, i);
    return get(e, view_struct(e, code, "value", "value", at(e, list, i)), "data");
}
