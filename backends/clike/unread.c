/* Memory and views of a function that nothing reads, and what is stored there: compilers would say
 * so.
 *
 *     alloc %pos: i32[8]                      %out[i] = %p0[i]
 *     %pos[0] = 0; %out[i] = %p0[i]
 *
 * What only such stores read is next. */
#include "backends/clike/impl.h"

typedef struct {
    Map *own, *used; /* ids of buffers: that are allocated here, that something needs */
    bool changed;
} Unread;

static void use(Unread *u, const Buffer *b)
{
    for (; b; b = b->alias)
        map_put(u->used, b->id, u);
}

static void use_prim(void *user, const Prim *p)
{
    if (p->kind == PRIM_LOAD || p->kind == PRIM_ADDR)
        use(user, p->u.load.buffer);
}

static void use_all(Unread *u, const Stmt *s);

static bool use_stmt(void *user, const Stmt *s)
{
    Unread *u = user;

    if (s->kind == STMT_VIEW) { /* one that nothing needs needs nothing */
        use_all(u, s->kids[0]);
        if (map_get(u->used, s->u.view.buffer->id))
            prim_visit(s->u.view.at, &(TirVisit){.user = u, .prim = use_prim});
        return false;
    }
    if (s->kind == STMT_ALLOC)
        map_put(u->own, s->u.buffer->id, u);
    if (s->kind == STMT_STORE)
        use(u,
            map_get(u->own, s->u.store.buffer->id) ? s->u.store.buffer->alias : s->u.store.buffer);
    if (s->kind == STMT_INVOKE)
        use(u, s->u.invoke.result);
    for (uint32_t i = 0; s->kind == STMT_CALL && i < s->u.call.nargs; i++)
        use(u, s->u.call.args[i].buffer);
    return true;
}

static void use_all(Unread *u, const Stmt *s)
{
    stmt_visit(s, &(TirVisit){.user = u, .enter = use_stmt, .prim = use_prim});
}

static const Stmt *drop_stmt(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    Unread *u = user;

    (void)was;
    if ((now->kind == STMT_ALLOC && !map_get(u->used, now->u.buffer->id)) ||
        (now->kind == STMT_VIEW && !map_get(u->used, now->u.view.buffer->id)))
        return now->kids[0];
    if (now->kind != STMT_STORE || map_get(u->used, now->u.store.buffer->id))
        return now;
    u->changed = true;
    return stmt_seq(c, 0, NULL);
}

const Func *clike_drop_unread(Ctx *c, const Func *f)
{
    Unread u;

    do {
        u = (Unread){map_new(c->scratch), map_new(c->scratch), false};
        use_all(&u, f->body);
        f = func_with_body(c, f, stmt_map(c, f->body, &(TirMap){.user = &u, .stmt = drop_stmt}));
    } while (u.changed);
    return f;
}
