/* Memory that a block of threads shares: how much of it a function takes, and where in it buffers
 * lie.
 *
 * Without places (the mark `place`) each buffer has memory of its own.  With them those that are
 * never in use at the same time may lie in the same: in use from the first access to the last as
 * the function runs, and where a loop comes to a buffer that was there before it, in all of its
 * rounds.  What threads may come to or not (conditions, loops that not all threads of the block
 * take, or whose rounds differ) uses all that is in it at once: nobody could wait there. */
#include "ir/tir/tir.h"

#include "base/base.h"

int64_t buffer_border(const Buffer *b)
{
    return b->align > SHARED_BORDER ? b->align : SHARED_BORDER;
}

static bool to_border(int64_t *n, int64_t border)
{
    if (!checked_add(*n, border - 1, n))
        return false;
    *n = *n / border * border;
    return true;
}

/* Up to the next border; INT64_MAX where that is not known. */
static int64_t shared_size(Ctx *c, const Buffer *b)
{
    int64_t elems, origin, bytes;

    return buffer_size(c, b, &elems, &origin) &&
                   checked_mul(elems, dtype_bytes(b->dtype), &bytes) &&
                   to_border(&bytes, SHARED_BORDER)
               ? bytes
               : INT64_MAX;
}

static void place_behind(int64_t *all, const Buffer *b, int64_t bytes)
{
    if (!to_border(all, buffer_border(b)) || !checked_add(*all, bytes, all))
        *all = INT64_MAX;
}

static bool note_border(void *user, const Stmt *s)
{
    int64_t *border = user;

    if (s->kind == STMT_ALLOC && s->u.buffer->scope == SCOPE_SHARED &&
        buffer_border(s->u.buffer) > *border)
        *border = buffer_border(s->u.buffer);
    return true;
}

int64_t func_shared_border(const Func *f)
{
    int64_t border = SHARED_BORDER;

    stmt_visit(f->body, &(TirVisit){.user = &border, .enter = note_border});
    return border;
}

typedef struct {
    Ctx       *c;
    const Map *instead;
    int64_t    bytes;
} Shared;

static const Buffer *counted(const Map *instead, const Buffer *b)
{
    const Buffer *to = instead ? map_get(instead, b->id) : NULL;

    return to ? to : b;
}

static bool add_shared(void *user, const Stmt *s)
{
    Shared       *x = user;
    const Buffer *b = s->u.buffer;

    if (s->kind != STMT_ALLOC || b->scope != SCOPE_SHARED)
        return true;
    int64_t bytes = shared_size(x->c, counted(x->instead, b)), end;
    if (!b->place)
        place_behind(&x->bytes, b, bytes);
    else if (!checked_add(shared_offset(b), bytes, &end))
        x->bytes = INT64_MAX;
    else
        x->bytes = end > x->bytes ? end : x->bytes;
    return true;
}

static int64_t bytes_apart(Ctx *c, const Func *f, const Map *instead)
{
    Shared x = {c, instead, 0};

    stmt_visit(f->body, &(TirVisit){.user = &x, .enter = add_shared});
    return x.bytes;
}

int64_t func_shared_bytes(Ctx *c, const Func *f)
{
    return bytes_apart(c, f, NULL);
}

int64_t shared_offset(const Buffer *b)
{
    return ((int64_t)b->place - 1) * SHARED_BORDER;
}

int64_t shared_at(Ctx *c, const Buffer *b, int64_t *all)
{
    int64_t at = b->place ? shared_offset(b) : round_up(*all, buffer_border(b));
    int64_t end = at + shared_size(c, b);

    *all = end > *all ? end : *all;
    return at;
}

bool shared_overlap(Ctx *c, const Buffer *a, const Buffer *b)
{
    return a == b ||
           (a->place && b->place && shared_offset(a) < shared_offset(b) + shared_size(c, b) &&
            shared_offset(b) < shared_offset(a) + shared_size(c, a));
}

/* ---- places ---------------------------------------------------------------------------------------- */

typedef struct {
    const Buffer *b;
    uint32_t      known, first, last; /* when its alloc was come to; accesses, 0: none */
    int64_t       at, bytes;
} Use;

typedef struct {
    Ctx       *c;
    const Idx *axis[AXIS_COUNT];
    uint32_t   now;
    Map       *of; /* buffer id -> 1 + its number */
    VEC(Use) all;
} Uses;

static void touch(Uses *x, const Buffer *b)
{
    uintptr_t i = b->scope == SCOPE_SHARED ? (uintptr_t)map_get(x->of, b->id) : 0;

    if (!i)
        return;
    Use *u = &x->all.at[i - 1];
    u->first = u->first ? u->first : x->now;
    u->last = x->now;
}

static bool touch_store(void *user, const Stmt *s)
{
    if (s->kind == STMT_STORE)
        touch(user, s->u.store.buffer);
    return true;
}

static void touch_load(void *user, const Prim *p)
{
    if (p->kind == PRIM_LOAD)
        touch(user, p->u.load.buffer);
}

static void walk(Uses *x, const Stmt *s);

/* What was there before the loop is in use in all of its rounds. */
static void walk_loop(Uses *x, const Stmt *s)
{
    uint32_t begin = ++x->now;

    for (uint32_t i = 0; i < s->nkids; i++)
        walk(x, s->kids[i]);
    x->now++;
    for (uint32_t i = 0; i < x->all.n; i++) {
        Use *u = &x->all.at[i];
        if (u->known > begin || u->last < begin)
            continue;
        u->first = u->first > begin ? begin : u->first;
        u->last = x->now;
    }
}

static bool find_buffer(void *user, const Stmt *s)
{
    Uses *x = user;

    if (s->kind == STMT_ALLOC && s->u.buffer->scope == SCOPE_SHARED) {
        vec_push(x->c->scratch, &x->all, ((Use){.b = s->u.buffer, .known = x->now}));
        map_put(x->of, s->u.buffer->id, (void *)(uintptr_t)x->all.n);
    }
    return true;
}

static void walk(Uses *x, const Stmt *s)
{
    const LoopData *l = &s->u.loop;
    const bool      bound = s->kind == STMT_FOR && l->bind;

    x->now++;
    if (s->kind == STMT_SEQ || s->kind == STMT_ALLOC ||
        (bound && (l->bind < AXIS_THREAD_X || l->extent == x->axis[l->bind]))) {
        if (s->kind == STMT_ALLOC)
            find_buffer(x, s);
        for (uint32_t i = 0; i < s->nkids; i++)
            walk(x, s->kids[i]);
    } else if (s->kind == STMT_FOR && !bound && idx_is_const(l->extent, NULL)) {
        walk_loop(x, s);
    } else {
        stmt_visit(s, &(TirVisit){.user = x, .enter = find_buffer});
        stmt_visit(s, &(TirVisit){.user = x, .enter = touch_store, .prim = touch_load});
    }
}

/* The first place from the front that none has who is in use meanwhile. */
static void place(const Uses *x, uint32_t n)
{
    Use *u = &x->all.at[n];

    for (uint32_t i = 0; i < n; i++) {
        const Use *o = &x->all.at[i];
        bool       meet = o->first && u->first && o->first <= u->last && u->first <= o->last;
        if (!meet || u->at >= o->at + o->bytes || o->at >= u->at + u->bytes)
            continue;
        u->at = o->at + o->bytes;
        if (!to_border(&u->at, buffer_border(u->b)))
            u->at = INT64_MAX / 2;
        i = UINT32_MAX; /* from the first again */
    }
}

static int64_t places_of(Ctx *c, const Func *f, const Map *instead, Map *places)
{
    Uses    x = {.c = c, .of = map_new(c->scratch)};
    int64_t all = 0;

    func_axes(c, f, x.axis);
    walk(&x, f->body);
    for (uint32_t i = 0; i < x.all.n; i++) {
        Use *u = &x.all.at[i];
        u->bytes = shared_size(c, counted(instead, u->b));
        if (u->bytes > INT32_MAX)
            return INT64_MAX;
        place(&x, i);
        all = u->at + u->bytes > all ? u->at + u->bytes : all;
        if (places)
            map_put(places, u->b->id, (void *)(uintptr_t)(u->at / SHARED_BORDER + 1));
    }
    return all;
}

int64_t shared_needed(Ctx *c, const Func *f, const Map *instead)
{
    return f->target && f->target->shared_overlaid ? places_of(c, f, instead, NULL)
                                                   : bytes_apart(c, f, instead);
}

int64_t shared_places(Ctx *c, const Func *f, Map *places)
{
    return places_of(c, f, NULL, places);
}
