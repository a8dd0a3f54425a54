/* Which functions of a module a run of `main` may come to. */
#include "ir/relay/relay.h"

typedef struct {
    uint32_t func; /* of the module */
    ExprList list;
    uint32_t next; /* of its nodes */
} Frame;

GlobalList module_reached(Ctx *c, const Module *m)
{
    Map *of = map_new(c->scratch), *seen = map_new(c->scratch); /* 1 + its number, by name */
    VEC(Frame) stack = {0};
    VEC(GlobalDef) done = {0};
    void *at;

    for (uint32_t i = m->nfuncs; i-- > 0;) /* of equal names the first counts */
        map_put(of, PTR_KEY(intern(c->strings, m->funcs[i].name)), (void *)(uintptr_t)(i + 1));
    for (const char *name = "main"; name;) {
        at = map_get(of, PTR_KEY(intern(c->strings, name)));
        if (at && !map_get(seen, PTR_KEY(at))) {
            uint32_t i = (uint32_t)(uintptr_t)at - 1;

            map_put(seen, PTR_KEY(at), seen);
            vec_push(c->scratch, &stack, ((Frame){i, expr_post_order(c, m->funcs[i].func), 0}));
        }
        for (name = NULL; stack.n && !name;) {
            Frame *top = &stack.at[stack.n - 1];

            while (top->next < top->list.n && !name) {
                const Expr *e = top->list.at[top->next++];
                name = e->kind == EXPR_GLOBAL ? e->u.name : NULL;
            }
            if (!name)
                vec_push(c->scratch, &done, m->funcs[stack.at[--stack.n].func]);
        }
    }
    return (GlobalList){done.n, done.at};
}
