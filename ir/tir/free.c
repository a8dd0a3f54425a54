/* Free variables of a nest: what its shapes depend on, and so what its caller has to give it. */
#include "ir/tir/tir.h"

typedef struct {
    Ctx *c;
    Map *seen; /* atom id: declared inside, or in the list already */
    VEC(const Atom *) out;
} Free;

static void index_atoms(void *user, const Idx *x)
{
    Free *f = user;

    for (uint32_t i = 0; i < x->nterms; i++) {
        const Atom *a = x->t[i].atom;

        if (a->kind != ATOM_VAR || map_get(f->seen, a->id))
            continue;
        map_put(f->seen, a->id, f);
        if (a->below) /* what it says of itself needs them */
            idx_visit(a->below, &(TirVisit){.user = f, .idx = index_atoms});
        vec_push(f->c->arena, &f->out, a);
    }
}

static void declare(Free *f, const Atom *a)
{
    map_put(f->seen, a->id, f);
}

static void buffer_atoms(Free *f, const Buffer *b)
{
    for (uint32_t i = 0; i < b->ndim; i++)
        idx_visit(b->extent[i], &(TirVisit){.user = f, .idx = index_atoms});
}

static bool enter(void *user, const Stmt *s)
{
    Free *f = user;

    switch (s->kind) {
    case STMT_FOR: declare(f, s->u.loop.var); break;
    case STMT_BLOCK:
        for (uint32_t i = 0; i < s->u.block.nspatial + s->u.block.nreduce + s->u.block.nseq; i++)
            declare(f, s->u.block.iter[i]);
        break;
    case STMT_REGION:
        declare(f, s->u.region.tid);
        declare(f, s->u.region.nt);
        break;
    case STMT_ALLOC: buffer_atoms(f, s->u.buffer); break;
    case STMT_VIEW: buffer_atoms(f, s->u.view.buffer); break;
    case STMT_SEQ:
    case STMT_WHILE:
    case STMT_IF:
    case STMT_STORE:
    case STMT_CALL:
    case STMT_PREFETCH:
    case STMT_BARRIER:
    case STMT_AWAIT:
    case STMT_LAUNCH:
    case STMT_COPY:
    case STMT_INVOKE:
    case STMT_SWITCH:
    case STMT_RETURN:
    case STMT_FAIL: break;
    }
    return true;
}

AtomList stmt_free(Ctx *c, uint32_t n, const Buffer *const *buffers, const Stmt *s)
{
    Free f = {.c = c, .seen = map_new(c->scratch)};

    for (uint32_t i = 0; i < n; i++)
        buffer_atoms(&f, buffers[i]);
    stmt_visit(s, &(TirVisit){.user = &f, .enter = enter, .idx = index_atoms});
    return (AtomList){f.out.n, f.out.at};
}
