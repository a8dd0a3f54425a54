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
 * alike.
 *
 * Where a round is one piece of code that copies a chunk and computes with it, it is short enough
 * for a sum of indices to show that was hoisted and is computed anew all the same, since registers
 * seem dear: what all of a buffer's indices have in common is then where the pointer begins, as
 * what goes along cannot be computed anew, and constants are left.
 *
 *         -> const float *b9 = b0 + r;  for (..) { .. b9[0] .. b9[96] .. } */
#include "backends/clike/impl.h"

enum { FEW_ROUNDS = 4 }; /* NVRTC writes them out unasked, as a rule */

struct Running {
    const Running *outer;
    const Buffer  *of;
    const Atom    *along;
    int64_t        step;
    const Idx     *begin; /* beyond the pointer around it */
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

/* What is left of an index beyond the pointers that go along. */
static const Idx *left_of(Arith *A, const Running *r, const Buffer *b, const Idx *index)
{
    for (; r; r = r->outer)
        if (r->of == b)
            index = idx_sub(A, index,
                            idx_add(A, r->begin, idx_mulc(A, idx_atom(A, r->along), r->step)));
    return index;
}

const char *clike_place(Clike *x, const Buffer *b, const Idx *index)
{
    index = left_of(x->c->arith, x->running, b, index);
    return arena_printf(x->c->arena, "%s[%s]", name_of(x, b),
                        clike_bare(x, clike_index_text(x, index)));
}

typedef struct {
    Clike        *x;
    const Buffer *of;
    const Atom   *along;
    AtomSet      *inner; /* variables of loops inside */
    int64_t       step;
    const Idx    *begin; /* of all indices so far, without their constants */
    bool          apart;
} Steps;

/* The terms of i that do not change in the loop, and that `begin`, where there is one, has too. */
static const Idx *common_terms(const Steps *z, const Idx *i)
{
    Arith     *A = z->x->c->arith;
    const Idx *all = idx_const(A, 0);

    for (uint32_t k = 0; k < i->nterms; k++) {
        const Idx *atom = idx_atom(A, i->t[k].atom);
        bool       same = !z->begin || idx_coef(z->begin, i->t[k].atom) == i->t[k].coef;
        if (same && !idx_uses_any(atom, z->inner) && !idx_reads_memory(atom))
            all = idx_add(A, all, idx_mulc(A, atom, i->t[k].coef));
    }
    return all;
}

static void add_step(Steps *z, const Buffer *b, uint32_t n, const Idx *const *index)
{
    if (b != z->of || n != 1)
        return;
    Arith     *A = z->x->c->arith;
    const Idx *left = left_of(A, z->x->running, b, index[0]);
    int64_t    step = idx_coef(left, z->along);
    left = idx_sub(A, left, idx_mulc(A, idx_atom(A, z->along), step));
    z->apart = z->apart || idx_uses(left, z->along) || (z->begin && step != z->step);
    z->begin = common_terms(z, left);
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

typedef struct {
    AtomSet *vars; /* of loops inside */
    bool     meet; /* threads do */
} Inside;

static bool look_inside(void *user, const Stmt *s)
{
    Inside *in = user;

    in->meet = in->meet || s->kind == STMT_BARRIER;
    if (s->kind == STMT_FOR)
        atomset_add(in->vars, s->u.loop.var);
    return true;
}

static bool is_written_out(const LoopData *l)
{
    return l->rounds && l->extent->hi <= l->rounds;
}

const char *clike_run_along(Clike *x, const Stmt *loop)
{
    const LoopData *l = &loop->u.loop;
    StrBuf          steps = strbuf(x->c->arena);
    Inside          in = {.vars = atomset_new(x->c->scratch)};
    int64_t         lo;

    if (!x->d->runs || is_written_out(l) || !idx_is_const(l->lo, &lo) || lo)
        return "";
    stmt_visit(loop->kids[0], &(TirVisit){&in, look_inside, NULL, NULL, NULL});
    const bool chunks = in.meet && stmt_is_written_out(loop->kids[0], FEW_ROUNDS);
    for (uint32_t i = 0; i < x->f->nparams; i++) {
        const Param *p = &x->f->params[i];
        Steps        z = {.x = x, .of = p->buffer, .along = l->var, .inner = in.vars};

        if (!p->buffer)
            continue;
        stmt_visit(loop->kids[0], &(TirVisit){&z, store, NULL, load, NULL});
        if (!z.begin || z.apart || !z.step)
            continue;
        if (!chunks)
            z.begin = idx_const(x->c->arith, 0);
        const char *name = intern_printf(x->c->strings, "b%u", x->next_buffer++);
        clike_indent(x);
        str_printf(x->out, "%s%s = ", clike_pointer(x, p), name);
        if (z.begin->nterms)
            str_printf(x->out, "&%s[%s];\n", name_of(x, p->buffer),
                       clike_bare(x, clike_index_text(x, z.begin)));
        else
            str_printf(x->out, "%s;\n", name_of(x, p->buffer));
        str_printf(&steps, ", %s += %lld", name, (long long)z.step);
        Running *r = NEW(x->c->arena, Running);
        *r = (Running){x->running, p->buffer, l->var, z.step, z.begin, name};
        x->running = r;
    }
    return steps.n ? steps.at : "";
}
