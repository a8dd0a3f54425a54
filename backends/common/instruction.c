/* Instructions (ir/tir/intrin.def) of devices: those that a backend has stay, all others are
 * written out as what they compute.
 *
 *     %a.shared[8*i : 8] = async_copy(%a[64*j : 8])
 *
 * A copy to shared memory stays where both sides lie on borders of 16 bytes, as memory of devices
 * and what blocks share do; under a condition, one for all cells, zeros are copied where it does
 * not hold (%a[64*j : 8] mask(splat(j < 3, 8))).  Four bytes that are multiplied together are words
 * that lie on borders of 4 bytes.  Copies go on beside what follows until a thread
 * waits for its own: it does so before it comes to anything but a copy. */
#include "backends/common/plain.h"
#include "ir/tir/intrin.h"

enum { BORDER = 16 };

bool is_async_copy(const Prim *p)
{
    return p->kind == PRIM_INTRIN && intrin_copies(p->u.intrin);
}

static bool stays(Ctx *c, const StoreData *d)
{
    const LoadData *from = &d->value->kids[0]->u.load;

    return d->value->kids[0]->kind == PRIM_LOAD && dtype_bytes(d->value->dtype) == BORDER &&
           !d->mask && (!from->mask || from->mask->kind == PRIM_SPLAT) &&
           d->buffer->scope == SCOPE_SHARED &&
           (from->buffer->scope == SCOPE_ARENA || from->buffer->scope == SCOPE_CONST) &&
           is_on_border(c, d->buffer, d->index, BORDER) &&
           is_on_border(c, from->buffer, from->index, BORDER);
}

/* What a sum of products multiplies are words of memory. */
static bool takes_words(Ctx *c, const Prim *p)
{
    for (uint32_t i = 0; i + 1 < p->nkids; i++) {
        const Prim *k = p->kids[i];
        if (k->kind != PRIM_LOAD || k->u.load.mask || dtype_bytes(k->dtype) != WORD ||
            !is_on_border(c, k->u.load.buffer, k->u.load.index, WORD))
            return false;
    }
    return p->u.intrin->sums && p->dtype.lanes == 1;
}

typedef struct {
    Ctx         *c;
    HasIntrinFn *has;
    const void  *user;
    Map         *kept, *written; /* prim id: as the stores want it */
} Expand;

static bool note_store(void *user, const Stmt *s)
{
    Expand     *x = user;
    const Prim *p = s->kind == STMT_STORE ? s->u.store.value : NULL;

    if (p && is_async_copy(p))
        map_put(x->has(x->user, p->u.intrin->id) && stays(x->c, &s->u.store) ? x->kept : x->written,
                p->id, x);
    return true;
}

static const Prim *expand(Ctx *c, void *user, const Prim *p)
{
    const Expand *x = user;

    if (p->kind != PRIM_INTRIN || p->u.intrin->warp ||
        (map_get(x->kept, p->id) && !map_get(x->written, p->id)) ||
        (takes_words(c, p) && x->has(x->user, p->u.intrin->id)))
        return p;
    return intrin_expand(c, p);
}

/* What there is to be waited for. */
typedef struct {
    bool copies, products;
} Awaited;

static void find_awaited(void *user, const Prim *p)
{
    Awaited *x = user;

    x->copies = x->copies || is_async_copy(p);
    x->products = x->products || (p->kind == PRIM_INTRIN && p->u.intrin->group);
}

static const Stmt *drop_await(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    const Awaited *x = user;

    (void)was;
    if (now->kind != STMT_AWAIT || (now->u.await.products ? x->products : x->copies))
        return now;
    return stmt_seq(c, 0, NULL);
}

const Func *plain_instructions(Ctx *c, const Func *f, HasIntrinFn *has, const void *user)
{
    Expand x = {c, has, user, map_new(c->scratch), map_new(c->scratch)};

    stmt_visit(f->body, &(TirVisit){.user = &x, .enter = note_store});
    const Stmt *body = stmt_map(c, f->body, &(TirMap){.user = &x, .prim = expand});
    Awaited     awaited = {0};
    stmt_visit(body, &(TirVisit){.user = &awaited, .prim = find_awaited});
    return func_with_body(c, f, stmt_map(c, body, &(TirMap){.user = &awaited, .stmt = drop_await}));
}
