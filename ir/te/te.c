/* Tensor expressions: the makers, and the first nest of loops.
 *
 * A tensor is a buffer together with what defines its cells.  Bodies load from buffers, so the way
 * from a load back to its tensor is a map in Ctx, by buffer id.  `te_lower` walks the definitions
 * in order of dependency and writes one nest for each:
 *
 *     for %n<1 { for %o<8 { .. block conv [n=%n, o=%o, ..; c=%c, kh=%kh, ..] {
 *       init %conv[n,o,..] = 0.0
 *       %conv[n,o,..] = %conv[n,o,..] + %pad[..] * %w[..] } } }
 *
 * The block's iterators are the axes of the definition; the loop variables are fresh and named
 * after them.  Buffers that neither come in nor go out are allocated around everything; the pass
 * `compact` moves them inwards. */
#include "ir/te/impl.h"

#include <math.h>

/* ---- tensors -----------------------------------------------------------------------------------
 */

Tensor *tensor_new(Ctx *c, TensorKind kind, const Buffer *b)
{
    Tensor *t = NEW(c->arena, Tensor);

    t->id = c->next_tensor++;
    t->kind = kind;
    t->buffer = b;
    if (!c->tensors)
        c->tensors = map_new(c->arena);
    map_put(c->tensors, b->id, t);
    return t;
}

const Tensor *te_param(Ctx *c, const char *name, const Type *t, bool constant, const Const *data)
{
    const Buffer *b = buffer_new(c, intern(c->strings, name), dtype_cell(t->dtype),
                                 constant ? SCOPE_CONST : SCOPE_ARENA, t->n, t->dims);

    if (t->halo || data) {
        Buffer changed = *b;

        changed.halo = t->halo;
        changed.data = data;
        b = buffer_copy(c, b, changed);
    }
    Tensor *x = tensor_new(c, TENSOR_PARAM, b);
    Axes    a = te_axes(c, t->n, t->dims, NULL);

    x->naxis = t->n;
    x->axis = DUP_ARRAY(c->arena, a.atom, t->n);
    return x;
}

Axes te_axes(Ctx *c, uint32_t n, const Idx *const *extents, const char *const *names)
{
    Axes a = {.n = n};

    if (n > TE_MAX_AXES)
        BUG("a tensor expression of %u dimensions", n);
    for (uint32_t i = 0; i < n; i++) {
        const char *name =
            names ? intern(c->strings, names[i]) : intern_printf(c->strings, "i%u", i);

        a.atom[i] = atom_upto(c->arith, name, extents[i]);
        a.at[i] = idx_atom(c->arith, a.atom[i]);
        a.extent[i] = extents[i];
    }
    return a;
}

Axes te_axes_of(Ctx *c, const Type *t)
{
    return te_axes(c, t->n, t->dims, NULL);
}

Axes te_raxes(Ctx *c, uint32_t n, const int64_t *extents, const char *const *names)
{
    const Idx *dims[TE_MAX_AXES];

    if (n > TE_MAX_AXES)
        BUG("a reduction over %u axes", n);
    for (uint32_t i = 0; i < n; i++)
        dims[i] = idx_const(c->arith, extents[i]);
    return te_axes(c, n, dims, names);
}

/* ---- what a body reads --------------------------------------------------------------------------
 */

typedef struct {
    Ctx     *c;
    Map     *seen; /* prims by id */
    Tensors *deps;
} DepWalk;

static void deps_of_prim(DepWalk *w, const Prim *p);

static void deps_of_idx(DepWalk *w, const Idx *x)
{
    for (uint32_t i = 0; i < x->nterms; i++) {
        const Atom *a = x->t[i].atom;

        if (a->a)
            deps_of_idx(w, a->a);
        if (a->b)
            deps_of_idx(w, a->b);
        if (a->kind == ATOM_LOAD)
            deps_of_prim(w, a->load);
    }
}

static void add_dep(DepWalk *w, const Tensor *t)
{
    for (uint32_t i = 0; i < w->deps->n; i++)
        if (w->deps->at[i] == t)
            return;
    vec_push(w->c->arena, w->deps, t);
}

static void deps_of_prim(DepWalk *w, const Prim *p)
{
    if (map_find(w->seen, p->id, NULL))
        return;
    map_put(w->seen, p->id, w);
    for (uint32_t i = 0; i < p->nkids; i++)
        deps_of_prim(w, p->kids[i]);
    if (p->kind == PRIM_INDEX || p->kind == PRIM_CASE || p->kind == PRIM_RAMP)
        deps_of_idx(w, p->u.index);
    if (p->kind != PRIM_LOAD)
        return;
    const Tensor *t = map_get(w->c->tensors, p->u.load.buffer->id);

    if (!t)
        BUG("'%s' belongs to no tensor", p->u.load.buffer->name);
    for (uint32_t i = 0; i < p->u.load.n; i++)
        deps_of_idx(w, p->u.load.index[i]);
    add_dep(w, t);
}

void add_loads(Ctx *c, const Prim *p, Tensors *to)
{
    DepWalk w = {c, map_new(c->scratch), to};

    deps_of_prim(&w, p);
}

/* ---- definitions
 * ---------------------------------------------------------------------------------- */

const Prim *te_at(Ctx *c, const Tensor *t, const Idx *const *at)
{
    return prim_load(c, t->buffer, at);
}

const Prim *te_at_bcast(Ctx *c, const Tensor *t, uint32_t n, const Idx *const *at)
{
    uint32_t   nd = t->buffer->ndim;
    const Idx *index[TE_MAX_AXES];

    if (nd > n)
        BUG("'%s' has %u dimensions, broadcast to %u", t->buffer->name, nd, n);
    for (uint32_t i = 0; i < nd; i++) {
        int64_t extent;

        index[i] = idx_is_const(t->buffer->extent[i], &extent) && extent == 1
                       ? idx_const(c->arith, 0)
                       : at[n - nd + i];
    }
    return te_at(c, t, index);
}

static Tensor *define(Ctx *c, TensorKind kind, const char *name, DType t, const Axes *axes,
                      const Prim *body)
{
    const Buffer *b = buffer_new(c, intern(c->strings, name), t, SCOPE_ARENA, axes->n,
                                 DUP_ARRAY(c->arena, axes->extent, axes->n));
    Tensor       *x = tensor_new(c, kind, b);

    if (!dtype_eq(body->dtype, t))
        BUG("'%s' is %s, its body %s", name, dtype_text(c, t), dtype_text(c, body->dtype));
    x->naxis = axes->n;
    x->axis = DUP_ARRAY(c->arena, axes->atom, axes->n);
    x->body = body;
    Tensors deps = {0};
    add_loads(c, body, &deps);
    x->ndeps = deps.n;
    x->deps = deps.at;
    return x;
}

const Tensor *te_compute(Ctx *c, const char *name, DType t, Axes axes, const Prim *body)
{
    return define(c, TENSOR_COMPUTE, name, t, &axes, body);
}

const Tensor *te_reduce(Ctx *c, const char *name, DType t, Axes axes, Combiner comb, Axes raxes,
                        const Prim *body)
{
    Tensor *x = define(c, TENSOR_REDUCE, name, t, &axes, body);

    x->comb = comb;
    x->nreduce = raxes.n;
    x->raxis = DUP_ARRAY(c->arena, raxes.atom, raxes.n);
    x->rextent = DUP_ARRAY(c->arena, raxes.extent, raxes.n);
    return x;
}

const Tensor *te_extern_out(Ctx *c, const char *name, const Type *t)
{
    const Buffer *b = buffer_new(c, intern(c->strings, name), t->dtype, SCOPE_ARENA, t->n, t->dims);
    Tensor       *x = tensor_new(c, TENSOR_EXTERN, b);
    Axes          a = te_axes(c, t->n, t->dims, NULL);

    x->naxis = t->n;
    x->axis = DUP_ARRAY(c->arena, a.atom, t->n);
    return x;
}

void te_extern(Ctx *c, uint32_t nin, const Tensor *const *in, uint32_t nout, const Tensor **outs,
               const Stmt *body)
{
    Extern *e = NEW(c->arena, Extern);

    e->body = body;
    e->nin = nin;
    e->in = DUP_ARRAY(c->arena, in, nin);
    e->nout = nout;
    e->out = DUP_ARRAY(c->arena, outs, nout);
    for (uint32_t i = 0; i < nout; i++) {
        Tensor *t = (Tensor *)outs[i]; /* made by te_extern_out a moment ago, not yet shared */

        t->ext = e;
        t->ndeps = nin;
        t->deps = e->in;
    }
}

/* ---- combiners
 * -------------------------------------------------------------------------------------- */

const Prim *comb_identity(Ctx *c, Combiner k, DType t)
{
    switch (k) {
    case COMB_SUM: return prim_num(c, t, 0);
    case COMB_PROD: return prim_num(c, t, 1);
    case COMB_MAX:
    case COMB_MAXNUM:
        if (dtype_is_float(t))
            return prim_float(c, t, -INFINITY);
        if (t.code == DT_INT && t.bits == 64)
            return prim_int(c, t, INT64_MIN);
        return prim_num(c, t, dtype_min(t));
    case COMB_MIN:
        if (dtype_is_float(t))
            return prim_float(c, t, INFINITY);
        if (t.bits == 64) /* all ones read as unsigned; doubles do not hold either end */
            return prim_int(c, t, t.code == DT_INT ? INT64_MAX : -1);
        return prim_num(c, t, dtype_max(t));
    case COMB_ANY: return prim_int(c, t, 0);
    case COMB_ALL: return prim_int(c, t, 1);
    }
    return NULL;
}

const Prim *comb_apply(Ctx *c, Combiner k, const Prim *a, const Prim *b)
{
    switch (k) {
    case COMB_SUM: return prim_add(c, a, b);
    case COMB_PROD: return prim_mul(c, a, b);
    case COMB_MAX: return prim_max(c, a, b);
    /* One instruction: a began with -inf and so is never NaN. */
    case COMB_MAXNUM: return prim_select(c, prim_lt(c, a, b), b, a);
    case COMB_MIN: return prim_min(c, a, b);
    case COMB_ANY: return prim_or(c, a, b);
    case COMB_ALL: return prim_and(c, a, b);
    }
    return NULL;
}

/* ---- a function's definitions
 * ------------------------------------------------------------------------ */

/* The tensors that are defined together with t. */
static TensorList sisters(const Tensor *t)
{
    if (t->kind == TENSOR_EXTERN)
        return (TensorList){t->ext->nout, (const Tensor *const *)t->ext->out};
    if (t->kind == TENSOR_SCAN)
        return (TensorList){t->scan->out.n, t->scan->out.at};
    return (TensorList){0};
}

/* Depth first with an explicit stack; what an extern or a scan defines comes together. */
TensorList te_defs(Ctx *c, const TeFunc *f)
{
    typedef struct {
        const Tensor *t;
        uint32_t      next; /* dependency to look at */
    } Frame;
    Map *seen = map_new(c->scratch);
    VEC(Frame) stack = {0};
    VEC(const Tensor *) order = {0};

    for (uint32_t i = 0; i < f->nparams; i++)
        map_put(seen, f->params[i]->id, c);
    for (uint32_t o = 0; o < f->nouts; o++) {
        if (!map_find(seen, f->outs[o]->id, NULL)) {
            map_put(seen, f->outs[o]->id, c);
            vec_push(c->scratch, &stack, ((Frame){f->outs[o], 0}));
        }
        while (stack.n) {
            Frame *top = &stack.at[stack.n - 1];

            if (top->next < top->t->ndeps) {
                const Tensor *d = top->t->deps[top->next++];

                if (!map_find(seen, d->id, NULL)) {
                    map_put(seen, d->id, c);
                    vec_push(c->scratch, &stack, ((Frame){d, 0}));
                }
                continue;
            }
            const Tensor *t = top->t;

            stack.n--;
            if (t->kind == TENSOR_PARAM)
                BUG("te @%s reads '%s', which is no parameter", f->name, t->buffer->name);
            TensorList all = sisters(t);

            if (!all.n)
                vec_push(c->scratch, &order, t);
            for (uint32_t i = 0; i < all.n; i++) {
                if (all.at[i] == t || !map_find(seen, all.at[i]->id, NULL))
                    vec_push(c->scratch, &order, all.at[i]);
                map_put(seen, all.at[i]->id, c);
            }
        }
    }
    return (TensorList){order.n, order.at};
}

/* A tensor that is no scan's as a definition of no outer axes. */
static ScanDef plain_def(const Tensor *t, const Idx *const *at)
{
    return (ScanDef){.t = t,
                     .at = at,
                     .naxis = t->naxis,
                     .axis = t->axis,
                     .extent = t->buffer->extent,
                     .reduces = t->kind == TENSOR_REDUCE,
                     .comb = t->comb,
                     .nreduce = t->nreduce,
                     .raxis = t->raxis,
                     .rextent = t->rextent,
                     .body = t->body};
}

/* Multiply-adds of a definition, of the scan k or none: of sums, the cells times the length. */
static void add_macs(int64_t *total, const ScanDef *d, const Scan *k)
{
    int64_t cells = 1;
    bool    known = d->reduces && d->comb == COMB_SUM;

    if (known && k && d->part == SCAN_EACH) /* of a dynamic dimension: at most */
        known = checked_mul(cells, idx_usual(k->rounds), &cells);
    for (uint32_t i = 0; known && k && i < k->outer.n; i++)
        known = checked_mul(cells, idx_usual(k->outer.extent[i]), &cells);
    for (uint32_t i = 0; known && i < d->naxis; i++)
        known = checked_mul(cells, idx_usual(d->extent[i]), &cells);
    for (uint32_t i = 0; known && i < d->nreduce; i++)
        known = checked_mul(cells, idx_usual(d->rextent[i]), &cells);
    if (known && !checked_add(*total, cells, total))
        *total = INT64_MAX;
}

int64_t te_macs(Ctx *c, const TeFunc *f)
{
    TensorList defs = te_defs(c, f);
    int64_t    total = 0;

    for (uint32_t i = 0; i < defs.n; i++) {
        const Tensor *t = defs.at[i];
        const Scan   *k = t->scan;
        ScanDef       plain = plain_def(t, NULL);

        if (t->kind == TENSOR_REDUCE)
            add_macs(&total, &plain, NULL);
        for (uint32_t j = 0; k && t == k->out.at[0] && j < k->defs.n; j++)
            add_macs(&total, &k->defs.at[j], k);
    }
    return total;
}

/* ---- the first nest
 * -------------------------------------------------------------------------------------- */

const Stmt *loops_around(Ctx *c, uint32_t n, const Atom *const *vars, const Idx *const *extents,
                         uint32_t nspatial, const Stmt *body, Loc loc)
{
    for (uint32_t i = n; i-- > 0;) {
        LoopData l = {.var = vars[i],
                      .lo = idx_const(c->arith, 0),
                      .extent = extents[i],
                      .kind = i < nspatial ? LOOP_SPATIAL : LOOP_REDUCE};

        body = stmt_for(c, l, body, loc);
    }
    return body;
}

/* Does it reduce nothing?  Then it is its start value: no loop of no rounds would store that. */
static bool of_nothing(const ScanDef *d)
{
    for (uint32_t i = 0; d->reduces && i < d->nreduce; i++)
        if (d->rextent[i]->hi <= 0)
            return true;
    return false;
}

const Stmt *nest_of(Ctx *c, const char *name, const ScanDef *d, const Axes *iters,
                    const Atom *const *around, Loc loc)
{
    bool         reduces = d->reduces && !of_nothing(d);
    uint32_t     nreduce = reduces ? d->nreduce : 0;
    uint32_t     nspatial = iters->n + d->naxis, n = nspatial + nreduce;
    const Atom **iter = NEW_ARRAY(c->arena, const Atom *, n);
    const Atom **vars = NEW_ARRAY(c->arena, const Atom *, n);
    const Idx  **extent = NEW_ARRAY(c->arena, const Idx *, n);
    const Idx  **bind = NEW_ARRAY(c->arena, const Idx *, n);
    BlockData    b = {.name = name,
                      .nspatial = nspatial,
                      .nreduce = nreduce,
                      .iter = iter,
                      .bind = bind,
                      .has_init = reduces};

    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = i - iters->n, r = i - nspatial;

        iter[i] = i < iters->n ? iters->atom[i] : i < nspatial ? d->axis[k] : d->raxis[r];
        extent[i] = i < iters->n ? iters->extent[i] : i < nspatial ? d->extent[k] : d->rextent[r];
        vars[i] = i < iters->n ? around[i] : atom_like(c->arith, iter[i]->name, iter[i]);
        bind[i] = idx_atom(c->arith, vars[i]);
    }
    const Buffer *to = d->t->buffer;
    const Stmt   *kids[2];
    uint32_t      nkids = 0;

    if (d->reduces)
        kids[nkids++] = stmt_store(c, to, d->at, comb_identity(c, d->comb, to->dtype));
    if (reduces)
        kids[nkids++] =
            stmt_store(c, to, d->at, comb_apply(c, d->comb, te_at(c, d->t, d->at), d->body));
    else if (!d->reduces)
        kids[nkids++] = stmt_store(c, to, d->at, d->body);
    return loops_around(c, n - iters->n, vars + iters->n, extent + iters->n, d->naxis,
                        stmt_block(c, b, nkids, kids, loc), loc);
}

static const Stmt *lower_def(Ctx *c, const Tensor *t, const char *name, Loc loc)
{
    const Idx *at[TE_MAX_AXES];
    ScanDef    d = plain_def(t, at);

    for (uint32_t i = 0; i < t->naxis; i++)
        at[i] = idx_atom(c->arith, t->axis[i]);
    return nest_of(c, name, &d, &(Axes){0}, NULL, loc);
}

static const Stmt *lower_extern(Ctx *c, const Tensor *t, const char *name, Loc loc)
{
    BlockData b = {.name = name, .opaque = true};

    return stmt_block(c, b, 1, &t->ext->body, loc);
}

/* A result that is a parameter, or the same tensor as another result, is copied. */
static const Tensor *copy_of(Ctx *c, const Tensor *t)
{
    Axes a = te_axes(c, t->naxis, t->buffer->extent, NULL);

    return te_compute(c, "out", t->buffer->dtype, a, te_at(c, t, a.at));
}

static const TeFunc *with_own_outputs(Ctx *c, const TeFunc *f)
{
    const Tensor **outs = DUP_ARRAY(c->arena, f->outs, f->nouts);
    TeFunc        *g = DUP_ARRAY(c->arena, f, 1);

    for (uint32_t i = 0; i < f->nouts; i++) {
        bool taken = outs[i]->kind == TENSOR_PARAM;

        for (uint32_t k = 0; k < i; k++)
            taken |= outs[k] == outs[i];
        if (taken)
            outs[i] = copy_of(c, outs[i]);
    }
    g->outs = outs;
    return g;
}

typedef struct {
    Map *taken;   /* names in use, interned */
    Map *renamed; /* buffer id -> Buffer of another name */
} Names;

static void name_buffer(Ctx *c, Names *names, const Buffer *b)
{
    const char *name = b->name;

    if (map_find(names->renamed, b->id, NULL))
        return;
    for (uint32_t i = 1; map_get(names->taken, PTR_KEY(name)); i++)
        name = intern_printf(c->strings, "%s.%u", b->name, i);
    map_put(names->taken, PTR_KEY(name), names);
    if (name != b->name) {
        Buffer changed = *b;

        changed.name = name;
        map_put(names->renamed, b->id, (void *)buffer_copy(c, b, changed));
    }
}

static const Buffer *renamed_buffer(Ctx *c, void *user, const Buffer *b)
{
    const Names  *names = user;
    const Buffer *now = map_get(names->renamed, b->id);

    (void)c;
    return now ? now : b;
}

static const char *name_of(void *user, const Tensor *t)
{
    return renamed_buffer(NULL, user, t->buffer)->name;
}

const Func *te_lower(Ctx *c, const TeFunc *given, const Target *target)
{
    const TeFunc *f = with_own_outputs(c, given);
    TensorList    defs = te_defs(c, f);
    const Stmt  **stmts = NEW_ARRAY(c->scratch, const Stmt *, defs.n);
    Names         names = {map_new(c->scratch), map_new(c->scratch)};
    uint32_t      n = 0;

    for (uint32_t i = 0; i < f->nparams; i++)
        name_buffer(c, &names, f->params[i]->buffer);
    for (uint32_t i = 0; i < defs.n; i++)
        name_buffer(c, &names, defs.at[i]->buffer);
    for (uint32_t i = 0; i < defs.n; i++) {
        const Tensor *t = defs.at[i];
        const char   *name = name_of(&names, t);

        switch (t->kind) {
        case TENSOR_PARAM: break;
        case TENSOR_COMPUTE:
        case TENSOR_REDUCE: stmts[n++] = lower_def(c, t, name, f->loc); break;
        case TENSOR_SCAN:
            if (t == t->scan->out.at[0])
                stmts[n++] = scan_nest(c, t->scan, name_of, &names, f->loc);
            break;
        case TENSOR_EXTERN:
            if (t == t->ext->out[0])
                stmts[n++] = lower_extern(c, t, name, f->loc);
            break;
        }
    }
    const Stmt *body = stmt_seq(c, n, stmts);

    if (map_count(names.renamed)) {
        TirMap m = {.user = &names, .buffer = renamed_buffer};

        body = stmt_map(c, body, &m);
    }
    for (uint32_t i = defs.n; i-- > 0;) {
        bool out = false;

        for (uint32_t k = 0; k < f->nouts; k++)
            out |= f->outs[k] == defs.at[i];
        if (!out)
            body = stmt_alloc(c, renamed_buffer(c, &names, defs.at[i]->buffer), body);
    }
    uint32_t       npointers = f->nparams + f->nouts;
    const Buffer **pointers = NEW_ARRAY(c->scratch, const Buffer *, npointers + 1);

    for (uint32_t i = 0; i < npointers; i++) {
        const Tensor *t = i < f->nparams ? f->params[i] : f->outs[i - f->nparams];
        pointers[i] = renamed_buffer(c, &names, t->buffer);
    }
    AtomList dims = stmt_free(c, npointers, pointers, body);
    Param   *params = NEW_ARRAY(c->arena, Param, dims.n + npointers);

    for (uint32_t i = 0; i < dims.n; i++)
        params[i].scalar = dims.at[i];
    for (uint32_t i = 0; i < npointers; i++)
        params[dims.n + i] = (Param){.buffer = pointers[i], .written = i >= f->nparams};
    return func_new(c, (Func){.name = f->name,
                              .kind = FUNC_KERNEL,
                              .target = target,
                              .nparams = dims.n + npointers,
                              .params = params,
                              .body = body,
                              .loc = f->loc,
                              .macs = te_macs(c, f)});
}

void te_set_halo(const Tensor *t, const Halo *halo)
{
    /* Loads point at the buffer itself, so it is changed in place. */
    ((Buffer *)(uintptr_t)t->buffer)->halo = halo;
}
