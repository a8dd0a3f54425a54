/* Pointers that go along with a loop, and where cells lie.
 *
 *     for (int i4 = 0; i4 < 16; i4++) { .. b0[r + 3136*i4] .. }
 *         -> const float *b9 = b0;
 *            for (int i4 = 0; i4 < 16; i4++, b9 += 3136) { .. b9[r] .. }
 *
 * What is left of the index is the same in all rounds and is computed before the loop.  Compilers
 * of devices do not find that by themselves where they mix sums of many indices: they compute each
 * anew in every round (a window's number took 16 instructions to copy, 6 so).  For loops whose
 * rounds are not written out, dialects that ask for it, and buffers all of whose indices step
 * alike. */
#include "backends/clike/impl.h"

struct Running {
    const Running *outer;
    const Buffer  *of;
    const Atom    *along;
    int64_t        step;
    const char    *name;
};

/* The innermost of the pointers that go along, or the buffer itself. */
static const char *name_of(Clike *x, const Buffer *b)
{
    for (const Running *r = x->running; r; r = r->outer)
        if (r->of == b)
            return r->name;
    return clike_buffer(x, b);
}

const char *clike_place(Clike *x, const Buffer *b, const Idx *index)
{
    Arith *A = x->c->arith;

    for (const Running *r = x->running; r; r = r->outer)
        if (r->of == b)
            index = idx_sub(A, index, idx_mulc(A, idx_atom(A, r->along), r->step));
    return arena_printf(x->c->arena, "%s[%s]", name_of(x, b),
                        clike_bare(x, clike_index_text(x, index)));
}

typedef struct {
    Ctx          *c;
    const Buffer *of;
    const Atom   *along;
    int64_t       step;
    bool          any, apart;
} Steps;

static void add_step(Steps *z, const Buffer *b, uint32_t n, const Idx *const *index)
{
    if (b != z->of || n != 1)
        return;
    Arith  *A = z->c->arith;
    int64_t step = idx_coef(index[0], z->along);
    bool rest = idx_uses(idx_sub(A, index[0], idx_mulc(A, idx_atom(A, z->along), step)), z->along);
    z->apart = z->apart || rest || (z->any && step != z->step);
    z->any = true;
    z->step = step;
}

static void load(void *user, const Prim *p)
{
    if (p->kind == PRIM_LOAD)
        add_step(user, p->u.load.buffer, p->u.load.n, p->u.load.index);
}

static bool store(void *user, const Stmt *s)
{
    if (s->kind == STMT_STORE)
        add_step(user, s->u.store.buffer, s->u.store.n, s->u.store.index);
    return true;
}

const char *clike_run_along(Clike *x, const Stmt *loop)
{
    const LoopData *l = &loop->u.loop;
    StrBuf          steps = strbuf(x->c->arena);
    int64_t         lo;

    if (!x->d->runs || l->rounds || !idx_is_const(l->lo, &lo) || lo)
        return "";
    for (uint32_t i = 0; i < x->f->nparams; i++) {
        const Param *p = &x->f->params[i];
        Steps        z = {.c = x->c, .of = p->buffer, .along = l->var};

        if (!p->buffer)
            continue;
        stmt_visit(loop->kids[0], &(TirVisit){&z, store, NULL, load, NULL});
        if (!z.any || z.apart || !z.step)
            continue;
        const char *name = intern_printf(x->c->strings, "b%u", x->next_buffer++);
        clike_indent(x);
        str_printf(x->out, "%s%s = %s;\n", clike_pointer(x, p), name, name_of(x, p->buffer));
        str_printf(&steps, ", %s += %lld", name, (long long)z.step);
        Running *r = NEW(x->c->arena, Running);
        *r = (Running){x->running, p->buffer, l->var, z.step, name};
        x->running = r;
    }
    return steps.n ? steps.at : "";
}
