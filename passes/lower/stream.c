/* Results that no cache holds until they are read: stored past the caches.
 *
 *     func @relu.1f (%x: .., %y: f32[17040384]) -> func @relu.1f.stream (.., %y: .. align 64
 * stream)
 *
 * A store brings its line into the cache first.  Where a kernel touches more than the last cache
 * holds (a quarter of L3 is counted: other programs and machines have it too), the beginning of a
 * large result is gone when the next one asks for it, so that the line was read for nothing: a
 * third of the traffic between two kernels (docs/design/schedules.md). This happens to finished
 * kernels once it is known where values lie: the result of every call must be a value of the arena
 * on a line's border (what a caller gives may lie anywhere), and the kernel must not read it again.
 * `stream` is a mark: the code generator uses it for stores of vectors, and where the processor has
 * an instruction. */
#include "machine/machine.h"
#include "passes/lower/lower.h"

typedef struct {
    const Buffer *from, *to; /* `to` NULL: it stays as it is */
    bool          fits;
} Result;

typedef struct {
    Kernel *kernel;
    Result *at; /* [kernel->nout] */
} Results;

/* Bytes of values that a call touches: as many lie between the store of a cell and its first load.
 */
static uint64_t touched(const Item *it)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < it->nin; i++)
        n += it->in[i].slot->place == PLACE_CONST ? 0 : it->in[i].slot->bytes;
    for (uint32_t i = 0; i < it->nout; i++)
        n += it->out[i].slot->bytes;
    return n;
}

static bool on_a_line(const Slot *s)
{
    uint64_t    at;
    const Slot *root = slot_root(s, &at);

    return root->place == PLACE_ARENA && (root->offset + at + s->origin) % CACHE_LINE == 0 &&
           s->step % CACHE_LINE == 0;
}

static void look_at_calls(const ItemList *items, uint64_t most, uint32_t n, Results *of)
{
    for (uint32_t i = 0; i < items->n; i++) {
        const Item *it = items->at[i];

        look_at_calls(&it->then, most, n, of);
        look_at_calls(&it->other, most, n, of);
        for (uint32_t k = 0; it->kind == ITEM_CALL && k < n; k++)
            for (uint32_t j = 0; of[k].kernel == it->kernel && j < it->nout; j++)
                of[k].at[j].fits &= touched(it) > most && it->out[j].slot->bytes > most / 4 &&
                                    on_a_line(it->out[j].slot);
    }
}

static void find_load(void *user, const Prim *p)
{
    Results *r = user;

    for (const Buffer *b = p->kind == PRIM_LOAD ? p->u.load.buffer : NULL; b; b = b->alias)
        for (uint32_t i = 0; i < r->kernel->nout; i++)
            r->at[i].fits &= r->at[i].from != b;
}

static const Buffer *streamed(Ctx *c, void *user, const Buffer *b)
{
    const Results *r = user;

    (void)c;
    for (uint32_t i = 0; i < r->kernel->nout; i++)
        if (r->at[i].to && r->at[i].from == b)
            return r->at[i].to;
    return b;
}

/* The kernel with another name: its code is another. */
static void stream_kernel(Ctx *c, Results *r)
{
    TirVisit v = {.user = r, .prim = find_load};
    TirMap   m = {.user = r, .buffer = streamed};
    Func     f = *r->kernel->flat;
    Param   *params = DUP_ARRAY(c->arena, f.params, f.nparams);
    bool     any = false;

    stmt_visit(f.body, &v);
    for (uint32_t i = 0; i < r->kernel->nout; i++) {
        if (!r->at[i].fits)
            continue;
        Buffer to = *r->at[i].from;
        to.stream = any = true;
        to.align = CACHE_LINE;
        params[func_dims(&f) + r->kernel->nin + i].buffer = r->at[i].to =
            buffer_copy(c, r->at[i].from, to);
    }
    if (!any)
        return;
    f.params = params;
    f.body = stmt_map(c, f.body, &m);
    f.name = intern_printf(c->strings, "%s.stream", f.name);
    r->kernel->flat = func_new(c, f);
}

void stream_results(Program *p)
{
    Ctx     *c = p->c;
    uint32_t n = p->kernels->all.n;
    Results *of = NEW_ARRAY(c->arena, Results, n + 1);

    if (p->device || !p->kernels->target->has_stream)
        return;
    for (uint32_t k = 0; k < n; k++) {
        Kernel *x = p->kernels->all.at[k];

        of[k] = (Results){x, NEW_ARRAY(c->arena, Result, x->nout + 1)};
        for (uint32_t i = 0; i < x->nout; i++)
            of[k].at[i] =
                (Result){x->flat->params[func_dims(x->flat) + x->nin + i].buffer, NULL, true};
    }
    look_at_calls(&p->items, (uint64_t)machine_of(p->kernels->target).l3 / 4, n, of);
    for (uint32_t k = 0; k < n; k++)
        stream_kernel(c, &of[k]);
}
