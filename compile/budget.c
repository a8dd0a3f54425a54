/* --max-weights and --max-arena: is the product within its limits, and if not, what fills it?
 *
 *     net.onnx: error: the arena of 'net' has 21120 bytes, the limit is 16384 [E0803]
 *     net.onnx:1:1: note: 'conv1': 8192 bytes from call 1 to 2, result of
 * conv2d_bias_add_relu.42ff41c9 hint: ..
 *
 * The tensors named are the largest of those that are alive together when the arena is fullest, or
 * the largest constants.  --max-code is audited with the object (packaging/audit.c).
 */
#include "compile/compile.h"

#include <string.h>

enum { NAMED = 3 };

typedef unsigned long long ull;

static bool alive(const PlanSlot *s, uint32_t call)
{
    return s->first <= call && call <= s->last;
}

/* The call of main at which most bytes are alive; peaks are where something begins. */
static uint32_t fullest_call(const Plan *p)
{
    uint32_t best = 0;
    uint64_t most = 0;

    for (uint32_t i = 0; i < p->nslots; i++) {
        uint64_t bytes = 0;

        for (uint32_t k = 0; k < p->nslots; k++)
            bytes += alive(&p->slots[k], p->slots[i].first) ? p->slots[k].bytes : 0;
        if (bytes > most) {
            most = bytes;
            best = p->slots[i].first;
        }
    }
    return best;
}

static const Func *kernel_named(const Plan *p, const char *name)
{
    for (uint32_t i = 0; i < p->nkernels; i++)
        if (strcmp(p->kernels[i].func->name, name) == 0)
            return p->kernels[i].func;
    return NULL;
}

/* The kernel that makes the tensor, or uses it as scratch; NULL: none is known. */
static const Func *kernel_of(const Plan *p, const PlanSlot *s)
{
    const Func *f = kernel_named(p, s->name);

    for (uint32_t i = 0; i < p->nslots && !f; i++)
        if (p->slots[i].first == s->first)
            f = kernel_named(p, p->slots[i].name);
    return f;
}

/* How many slots of its name begin before it. */
static uint32_t ordinal(const Plan *p, const PlanSlot *s)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->nslots; i++)
        n += strcmp(p->slots[i].name, s->name) == 0 && p->slots[i].first < s->first;
    return n;
}

/* Where the n-th call of a kernel comes from: equal kernels of several nodes are one function. */
static Loc loc_of_call(Arena *a, const Plan *p, const Func *f, uint32_t n)
{
    VEC(const Stmt *) stack = {0};

    vec_push(a, &stack, p->tir->funcs[p->tir->nfuncs - 1]->body);
    while (stack.n) {
        const Stmt *s = stack.at[--stack.n];

        if (s->kind == STMT_CALL && strcmp(s->u.call.callee, f->name) == 0 && n-- == 0)
            return s->loc.file ? s->loc : f->loc;
        for (uint32_t i = s->nkids; i-- > 0;)
            vec_push(a, &stack, s->kids[i]);
    }
    return f->loc;
}

static void note_slot(Ctx *c, const Plan *p, const PlanSlot *s)
{
    const Func *f = kernel_of(p, s);

    if (!f)
        diag_note(c->diags, NO_LOC, "'%s': %llu bytes from call %u to %u", s->name, (ull)s->bytes,
                  s->first, s->last);
    else if (strcmp(f->name, s->name) == 0)
        diag_note(c->diags, loc_of_call(c->arena, p, f, ordinal(p, s)),
                  "%llu bytes from call %u to %u, result of %s", (ull)s->bytes, s->first, s->last,
                  f->name);
    else
        diag_note(c->diags, f->loc, "%llu bytes in call %u, '%s' inside of %s", (ull)s->bytes,
                  s->first, s->name, f->name);
}

static void note_arena(Ctx *c, const Plan *p)
{
    uint32_t        call = fullest_call(p);
    const PlanSlot *named[NAMED] = {NULL};
    bool            winograd = false;

    for (uint32_t n = 0; n < NAMED; n++) {
        for (uint32_t i = 0; i < p->nslots; i++) {
            const PlanSlot *s = &p->slots[i];
            bool            taken = !alive(s, call);

            for (uint32_t k = 0; k < n; k++)
                taken = taken || s == named[k];
            if (!taken && (!named[n] || s->bytes > named[n]->bytes))
                named[n] = s;
        }
        if (!named[n])
            break;
        winograd = winograd || strstr(named[n]->name, "winograd");
        note_slot(c, p, named[n]);
    }
    diag_hint(c->diags,
              "call %u needs most; tensors alive at once have %llu bytes and a thread's own %llu: "
              "smaller inputs or batches%s take less",
              call, (ull)p->arena_floor, (ull)p->private_bytes, winograd ? ", -fno-winograd," : "");
}

static void note_weights(Diags *d, const Plan *p)
{
    const PlanConst *named[NAMED] = {NULL};

    for (uint32_t n = 0; n < NAMED; n++) {
        for (uint32_t i = 0; i < p->nconsts; i++) {
            const PlanConst *k = &p->consts[i];
            bool             taken = false;

            for (uint32_t j = 0; j < n; j++)
                taken = taken || k == named[j];
            if (!taken && (!named[n] || k->bytes > named[n]->bytes))
                named[n] = k;
        }
        if (!named[n])
            break;
        const char *order =
            named[n]->map && *named[n]->map ? ", in the order that its kernel wants" : "";

        if (*named[n]->name)
            diag_note(d, NO_LOC, "constant '%s': %llu bytes%s", named[n]->name,
                      (ull)named[n]->bytes, order);
        else
            diag_note(d, NO_LOC, "a constant without a name: %llu bytes%s", (ull)named[n]->bytes,
                      order);
    }
    diag_hint(d, "-fweights-dtype=float16 halves large ones; -Os does without Winograd's, which "
                 "are larger than the model's");
}

bool budget_fits(Ctx *c, const Compiled *k)
{
    const CompileOptions *o = k->o;
    Diags                *d = c->diags;
    const Plan           *p = k->plan, *largest = p;
    Loc                   loc = {.file = k->files.n ? k->files.at[0] : NULL};
    uint64_t              arena;

    for (const Plan *q = p; q; q = q->next)
        if (q->arena_bytes + q->private_bytes > largest->arena_bytes + largest->private_bytes)
            largest = q;
    arena = largest->arena_bytes + largest->private_bytes;
    if (o->max_weights && p->weights_bytes > o->max_weights) {
        diag_error(d, E_BUDGET, loc, "the weights of '%s' have %llu bytes, the limit is %llu",
                   k->entry, (ull)p->weights_bytes, (ull)o->max_weights);
        note_weights(d, p);
    }
    if (o->max_arena && arena > o->max_arena) {
        diag_error(d, E_BUDGET, loc, "the arena of '%s' has %llu bytes, the limit is %llu",
                   k->entry, (ull)arena, (ull)o->max_arena);
        note_arena(c, largest);
    }
    return !diag_errors(d);
}
