/* flatten: indices become offsets; every buffer has one dimension; scratch becomes parameters.
 *
 *   %y: f32[1,8,56,56,8] halo(2:1+1, 3:1+1)   %y[0,%o,%y,%x,%j]
 *     -> %y: f32[..]                          %y[%o*26912+%y*464+%x*8+%j]
 *
 * A pointer addresses cell 0 of the interior, so halo cells before it have negative offsets.  An
 * buffer that is marked `swizzle` has its cells in other places of their line.  An
 * alloc of `arena` scope (shared between threads) or a `private` one of more than 4 KiB becomes a
 * parameter, which the host passes from the arena; smaller ones go to the stack.  Each has its own
 * storage: parameters are noalias.  Conditions that the loops' ranges decide disappear.
 * Cost: one walk. */
#include "passes/passes.h"
#include "passes/tir/util.h"

enum { STACK_LIMIT = 4096, STACK_TOTAL = 16384 };

typedef struct {
    Ctx *c;
    Map *flat;   /* buffer id -> const Buffer * */
    Map *stride; /* buffer id -> const Idx ** */
    VEC(Param) scratch;
    int64_t stack; /* bytes of stack used so far */
    bool    failed;
} Flatten;

/* Cells from cell 0 of the interior to the end of the halo behind it, and those before it, whose
 * strides are numbers (plan_halo). */
static const Idx *symbolic_cells(Ctx *c, const Buffer *b, const Idx *const *stride, int64_t *before)
{
    const Idx *n = idx_const(c->arith, 1);
    int64_t    step;

    for (uint32_t i = 0; i < b->ndim; i++) {
        const Idx *last = idx_addc(c->arith, b->extent[i], (int64_t)b->halo->hi[i] - 1);

        n = idx_add(c->arith, n, idx_mul(c->arith, last, stride[i]));
        if (b->halo->lo[i] && !idx_is_const(stride[i], &step))
            BUG("halo of '%s' along a dimension without a fixed stride", b->name);
        if (b->halo->lo[i])
            *before += b->halo->lo[i] * step;
    }
    return n;
}

enum { PLACE = 16, BANKS = 128 }; /* bytes that are loaded at a time; .. of all banks */

/* Places of 16 bytes that rows have, at most those of all banks. */
static int64_t places_of(const Buffer *b)
{
    if (b->exchanged)
        return BANKS / PLACE;
    int64_t bytes = (int64_t)b->swizzle * dtype_bytes(b->dtype);

    return b->swizzle ? (bytes < BANKS ? bytes : BANKS) / PLACE : 0;
}

static const Buffer *flat_buffer(Flatten *x, const Buffer *b)
{
    const Buffer *f = map_get(x->flat, b->id);
    int64_t       elems = 0, origin = 0;

    if (f)
        return f;
    if (b->ndim == 0) {
        map_put(x->flat, b->id, (void *)(uintptr_t)b);
        return b;
    }
    const Idx **stride = NEW_ARRAY(x->c->arena, const Idx *, b->ndim);
    buffer_strides(x->c, b, stride);
    Buffer n = *b;
    n.ndim = 1;
    n.stride = NULL;
    n.pitch = NULL;
    n.swizzle = 0;
    n.exchanged = false;
    n.halo = NULL;
    n.alias = b->alias ? flat_buffer(x, b->alias) : NULL;
    if (buffer_size(x->c, b, &elems, &origin)) {
        int64_t whole = places_of(b) * PLACE / dtype_bytes(b->dtype); /* places change within */
        if (whole > 1)
            elems = (elems + whole - 1) / whole * whole;
        const Idx *extent = idx_const(x->c->arith, elems - origin);
        n.extent = DUP_ARRAY(x->c->arena, &extent, 1);
    } else {
        const Idx *total = b->halo ? symbolic_cells(x->c, b, stride, &origin)
                                   : idx_mul(x->c->arith, b->extent[0], stride[0]);
        n.extent = DUP_ARRAY(x->c->arena, &total, 1);
    }
    if (origin) {
        Halo     *h = NEW(x->c->arena, Halo);
        uint32_t *lo = NEW(x->c->arena, uint32_t), *hi = NEW(x->c->arena, uint32_t);
        *lo = (uint32_t)origin;
        *h = (Halo){1, b->halo->value, lo, hi};
        n.halo = h;
    }
    f = buffer_copy(x->c, b, n);
    map_put(x->flat, b->id, (void *)(uintptr_t)f);
    map_put(x->stride, b->id, stride);
    return f;
}

/* Place p of a line of all banks is p ^ n of the n-th of eight such lines, bit by bit. */
static const Idx *exchanged(Ctx *c, const Buffer *b, const Idx *at)
{
    Arith     *A = c->arith;
    int64_t    cells = PLACE / dtype_bytes(b->dtype), line = BANKS / dtype_bytes(b->dtype);
    const Idx *to = idx_modc(A, at, cells);

    for (int64_t bit = 1; bit < BANKS / PLACE; bit *= 2) {
        const Idx *both = idx_add(A, idx_divc(A, at, cells * bit), idx_divc(A, at, line * bit));
        to = idx_add(A, to, idx_mulc(A, idx_modc(A, both, 2), cells * bit));
    }
    return idx_add(A, idx_mulc(A, idx_divc(A, at, line), line), to);
}

/* Places of a row turn by one from one line of all banks to the next. */
static const Idx *swizzled(Ctx *c, const Buffer *b, const Idx *at)
{
    Arith  *A = c->arith;
    int64_t places = places_of(b), cells = PLACE / dtype_bytes(b->dtype);

    if (places < 2)
        return at;
    const Idx *place = idx_divc(A, at, cells), *line = idx_divc(A, at, cells * (BANKS / PLACE));
    const Idx *from = idx_modc(A, place, places),
              *to = idx_modc(A, idx_add(A, place, line), places);
    return idx_add(A, at, idx_mulc(A, idx_sub(A, to, from), cells));
}

static const Idx *offset(Flatten *x, const Buffer *b, const Idx *const *index)
{
    const Idx *const *stride = map_get(x->stride, b->id);
    const Idx        *at = idx_const(x->c->arith, 0);

    for (uint32_t d = 0; d < b->ndim; d++)
        at = idx_add(x->c->arith, at, idx_mul(x->c->arith, index[d], stride[d]));
    return b->exchanged ? exchanged(x->c, b, at) : swizzled(x->c, b, at);
}

static const Prim *flat_prim(Ctx *c, void *user, const Prim *p)
{
    Flatten *x = user;

    if (p->kind != PRIM_LOAD || p->u.load.n == 0)
        return p;
    const Buffer *b = flat_buffer(x, p->u.load.buffer);
    if (!map_get(x->stride, p->u.load.buffer->id))
        return p; /* already flat */
    const Idx *at = offset(x, p->u.load.buffer, p->u.load.index);
    return prim_loadv(c, b, &at, p->dtype.lanes, p->u.load.mask);
}

/* Of a size that only a run knows, with no bound. */
static bool is_open(const Buffer *b)
{
    for (uint32_t d = 0; d < b->ndim; d++)
        if (idx_is_open(b->extent[d]))
            return true;
    return false;
}

static const Stmt *flat_alloc(Flatten *x, const Stmt *s)
{
    Ctx          *c = x->c;
    const Buffer *b = s->u.buffer, *f = flat_buffer(x, b);
    int64_t       elems = 1, origin = 0;

    if (b->scope == SCOPE_REG || b->scope == SCOPE_SHARED || b->scope == SCOPE_LOCAL ||
        b->scope == SCOPE_FRAG || b->scope == SCOPE_STACK)
        return stmt_alloc(c, f, s->kids[0]);
    if (!buffer_size_most(c, b, &elems, &origin)) {
        x->failed = true;
        return error_at(c, E_DIM, s->loc, "scratch buffer '%s' is too large", b->name), s;
    }
    int64_t    bytes = elems * dtype_bytes(b->dtype);
    const Idx *cells = idx_const(c->arith, elems - origin);
    bool       open = is_open(b);
    Buffer     n = *f;
    if (!open)
        n.extent = DUP_ARRAY(c->arena, &cells, 1); /* of symbolic dimensions, the largest */
    if (b->scope != SCOPE_ARENA && !open && bytes <= STACK_LIMIT &&
        x->stack + bytes <= STACK_TOTAL) {
        x->stack += bytes;
        n.scope = SCOPE_STACK;
        n.align = 64;
        const Buffer *to = buffer_copy(c, f, n);
        return stmt_alloc(c, to, buffer_replace(c, s->kids[0], f, to));
    }
    n.align = 64;
    n.scope = b->scope == SCOPE_ARENA ? SCOPE_ARENA : SCOPE_PRIVATE;
    const Buffer *to = buffer_copy(c, f, n);
    vec_push(c->arena, &x->scratch, ((Param){to, NULL, true}));
    return buffer_replace(c, s->kids[0], f, to);
}

static const Stmt *flat_stmt(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    Flatten *x = user;

    (void)was;
    switch (now->kind) {
    case STMT_STORE: {
        const StoreData *d = &now->u.store;
        if (d->n == 0)
            return now;
        const Buffer *b = flat_buffer(x, d->buffer);
        if (!map_get(x->stride, d->buffer->id))
            return now;
        const Idx *at = offset(x, d->buffer, d->index);
        return stmt_storev(c, b, &at, d->value, d->mask);
    }
    case STMT_PREFETCH: {
        const PrefetchData *d = &now->u.prefetch;
        const Buffer       *b = flat_buffer(x, d->buffer);
        if (!map_get(x->stride, d->buffer->id))
            return now;
        const Idx *at = offset(x, d->buffer, d->index);
        return stmt_prefetch(c, b, &at, d->lines);
    }
    case STMT_ALLOC: return flat_alloc(x, now);
    case STMT_IF:
        if (now->u.cond->kind != PRIM_INT)
            return now;
        return now->u.cond->u.i ? now->kids[0]
               : now->nkids > 1 ? now->kids[1]
                                : stmt_seq(c, 0, NULL);
    case STMT_FOR: {
        /* A loop that runs once is its body; none is nothing. */
        int64_t n;
        if (!idx_is_const(now->u.loop.extent, &n) || n > 1)
            return now;
        if (n <= 0)
            return stmt_seq(c, 0, NULL);
        if (now->u.loop.outline || now->u.loop.bind)
            return now;
        IdxSubst *sub = subst_new(c->arith, c->arena);
        subst_bind(sub, now->u.loop.var, now->u.loop.lo);
        return stmt_subst(c, now->kids[0], sub);
    }
    case STMT_SEQ:
    case STMT_WHILE:
    case STMT_BLOCK:
    case STMT_CALL:
    case STMT_BARRIER:
    case STMT_AWAIT:
    case STMT_REGION:
    case STMT_LAUNCH:
    case STMT_COPY:
    case STMT_VIEW:
    case STMT_INVOKE:
    case STMT_SWITCH:
    case STMT_RETURN:
    case STMT_FAIL: return now;
    }
    return now;
}

static const Func *flatten_func(Ctx *c, void *user, const Func *f)
{
    Flatten x = {.c = c, .flat = map_new(c->arena), .stride = map_new(c->arena)};
    TirMap  m = {&x, flat_stmt, flat_prim, NULL, NULL};

    (void)user;
    for (uint32_t i = 0; i < f->nparams; i++)
        if (f->params[i].buffer)
            flat_buffer(&x, f->params[i].buffer);
    Func g = *f;
    g.body = stmt_map(c, f->body, &m);
    if (x.failed)
        return NULL;
    Param *params = NEW_ARRAY(c->arena, Param, f->nparams + x.scratch.n + 1);
    for (uint32_t i = 0; i < f->nparams; i++) {
        params[i] = f->params[i];
        if (params[i].buffer)
            params[i].buffer = flat_buffer(&x, params[i].buffer);
    }
    for (uint32_t i = 0; i < x.scratch.n; i++)
        params[f->nparams + i] = x.scratch.at[i];
    g.params = params;
    g.nparams = f->nparams + x.scratch.n;
    return func_new(c, g);
}

const TirModule *flatten(Ctx *c, const TirModule *m)
{
    return tirmod_map(c, m, flatten_func, NULL);
}
