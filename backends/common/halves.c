/* f16 and bf16 where the language has no such numbers: each operation goes through f32 and rounds,
 * as it does in compiled code (backends/llvm/codegen_half.c).
 *
 *     max(%a[i], %b[i])     f16(max(f32(%a[i]), f32(%b[i])))
 *
 * The larger of two needs no rounding, so a register that only such numbers come to is one of f32,
 * and what was f32 is not made f16 and f32 again:
 *
 *     %m[] = max(%m[], %a[i])     %m[] = max(%m[], f32(%a[i])) */
#include "backends/common/plain.h"

typedef struct {
    HasHalfFn *has;  /* operations on f16 that stay; NULL: none */
    Map       *kept; /* register's id -> that of f32 in its place, */
    Map       *is;   /* .. whose id is here */
} Halves;

static bool is_extreme(const Prim *p)
{
    return p->kind == PRIM_MIN || p->kind == PRIM_MAX || p->kind == PRIM_MINNUM ||
           p->kind == PRIM_MAXNUM;
}

/* ---- registers ------------------------------------------------------------------------------------- */

/* Is it one of several numbers of 16 bits? */
static bool chooses(const Prim *p)
{
    if (is_extreme(p))
        return chooses(p->kids[0]) && chooses(p->kids[1]);
    return p->kind == PRIM_LOAD || p->kind == PRIM_FLOAT ||
           (p->kind == PRIM_SELECT && chooses(p->kids[1]) && chooses(p->kids[2]));
}

typedef struct {
    Map *extreme; /* buffer's id -> such numbers come to it, */
    Map *other;   /* .. others do */
} Seen;

static bool see_store(void *user, const Stmt *s)
{
    Seen            *seen = user;
    const StoreData *d = &s->u.store;

    if (s->kind == STMT_STORE && is_extreme(d->value))
        map_put(seen->extreme, d->buffer->id, seen);
    if (s->kind == STMT_STORE && (!chooses(d->value) || d->mask || d->value->dtype.lanes > 1))
        map_put(seen->other, d->buffer->id, seen);
    return true;
}

static void see_load(void *user, const Prim *p)
{
    Seen *seen = user;

    if (p->kind == PRIM_LOAD && p->dtype.lanes > 1)
        map_put(seen->other, p->u.load.buffer->id, seen);
}

typedef struct {
    Ctx    *c;
    Seen    seen;
    Halves *h;
} Keep;

static bool keep_register(void *user, const Stmt *s)
{
    Keep         *k = user;
    const Buffer *b = s->kind == STMT_ALLOC ? s->u.buffer : NULL;

    if (b && !(k->h->has && b->dtype.code == DT_FLOAT) && b->scope == SCOPE_REG &&
        dtype_is_half(b->dtype) && b->dtype.lanes == 1 && !b->alias &&
        map_get(k->seen.extreme, b->id) && !map_get(k->seen.other, b->id)) {
        Buffer own = *b;
        own.dtype = DT_F32;
        const Buffer *now = buffer_copy(k->c, b, own);
        map_put(k->h->kept, b->id, (void *)(uintptr_t)now);
        map_put(k->h->is, now->id, k);
    }
    return true;
}

/* ---- operations ------------------------------------------------------------------------------------ */

/* Is that f32 a number of 16 bits? */
static bool is_half(const Halves *h, const Prim *p)
{
    if (is_extreme(p))
        return is_half(h, p->kids[0]) && is_half(h, p->kids[1]);
    return p->kind == PRIM_LOAD ? map_get(h->is, p->u.load.buffer->id) != NULL
                                : p->kind == PRIM_CAST && dtype_is_half(p->kids[0]->dtype);
}

/* p as f32. */
static const Prim *widen(Ctx *c, const Halves *h, const Prim *p)
{
    if (p->kind == PRIM_CAST && is_half(h, p->kids[0]))
        return p->kids[0];
    return prim_cast(c, dtype_lanes(DT_F32, p->dtype.lanes), p);
}

static const Prim *half_prim(Ctx *c, void *user, const Prim *p)
{
    const Halves *h = user;
    const Prim  **kids = NEW_ARRAY(c->arena, const Prim *, p->nkids + 1);

    if (p->kind == PRIM_LOAD && map_get(h->kept, p->u.load.buffer->id))
        return prim_cast(c, p->dtype,
                         prim_load(c, map_get(h->kept, p->u.load.buffer->id), p->u.load.index));
    switch (p->kind) {
    case PRIM_ADD:
    case PRIM_SUB:
    case PRIM_MUL:
    case PRIM_DIV:
    case PRIM_REM:
    case PRIM_MIN:
    case PRIM_MAX:
    case PRIM_MINNUM:
    case PRIM_MAXNUM:
    case PRIM_FMA:
    case PRIM_MATH:
    case PRIM_EQ:
    case PRIM_NE:
    case PRIM_LT:
    case PRIM_LE: break;
    case PRIM_INT:
    case PRIM_FLOAT:
    case PRIM_INDEX:
    case PRIM_LOAD:
    case PRIM_INTRIN:
    case PRIM_AND:
    case PRIM_OR:
    case PRIM_XOR:
    case PRIM_SHL:
    case PRIM_SHR:
    case PRIM_NOT:
    case PRIM_SELECT:
    case PRIM_CAST:
    case PRIM_BITS:
    case PRIM_ADDR:
    case PRIM_SYMBOL:
    case PRIM_SIZEOF:
    case PRIM_CASE:
    case PRIM_SPLAT:
    case PRIM_RAMP:
    case PRIM_VEC:
    case PRIM_SHUFFLE: return p; /* bits stay what they are */
    }
    if (!p->nkids || !dtype_is_half(p->kids[0]->dtype) ||
        (h->has && p->kids[0]->dtype.code == DT_FLOAT && h->has(p)))
        return p;
    for (uint32_t i = 0; i < p->nkids; i++)
        kids[i] = widen(c, h, p->kids[i]);
    const Prim *wide = prim_with_kids(c, p, kids);
    return dtype_is_bool(p->dtype) ? wide : prim_cast(c, p->dtype, wide);
}

static const Stmt *half_stmt(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    const Halves *h = user;
    const Buffer *b = now->kind == STMT_ALLOC   ? now->u.buffer
                      : now->kind == STMT_STORE ? now->u.store.buffer
                                                : NULL;
    const Buffer *kept = b ? map_get(h->kept, b->id) : NULL;

    (void)was;
    if (!kept)
        return now;
    if (now->kind == STMT_ALLOC)
        return stmt_alloc(c, kept, now->kids[0]);
    return stmt_store(c, kept, now->u.store.index, widen(c, h, now->u.store.value));
}

const Func *plain_halves(Ctx *c, const Func *f, HasHalfFn *has)
{
    Halves h = {has, map_new(c->scratch), map_new(c->scratch)};
    Keep   k = {c, {map_new(c->scratch), map_new(c->scratch)}, &h};
    TirMap m = {.user = &h, .prim = half_prim, .stmt = half_stmt};

    stmt_visit(f->body, &(TirVisit){.user = &k.seen, .enter = see_store, .prim = see_load});
    stmt_visit(f->body, &(TirVisit){.user = &k, .enter = keep_register});
    return func_with_body(c, f, stmt_map(c, f->body, &m));
}
