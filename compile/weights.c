/* The weights of a plan: constants in the order in which its kernels read them.
 *
 * Each is packed by the function that its schedule ordered, compiled for this machine and run here,
 * and rounded if it is stored in 16 bits; straight into the file that will have them, if there is
 * one, so that no second copy of a large model is in memory. */
#include "compile/compile.h"

#include <string.h>

/* All prepack functions, flattened, each once. */
static const TirModule *prepack_module(Ctx *c, const Plan *p, const PassOptions *o)
{
    VEC(const Func *) funcs = {0};
    Map *seen = map_new(c->arena);

    for (uint32_t i = 0; i < p->nconsts; i++) {
        const Func *f = p->consts[i].prepack;
        if (!f || map_get(seen, PTR_KEY(f)))
            continue;
        map_put(seen, PTR_KEY(f), (void *)1);
        Func g = *f;
        g.name = intern_printf(c->strings, "prepack%u", i);
        map_put(seen, PTR_KEY(f), (void *)(uintptr_t)g.name);
        vec_push(c->arena, &funcs, func_new(c, g));
    }
    if (!funcs.n)
        return tirmod_new(c, 0, NULL);
    return run_tir_passes(c, tirmod_new(c, funcs.n, funcs.at), o, TIR_TO_BOTH);
}

typedef void JitFn(void *const *buffers, const int64_t *scalars);

/* Where packed constants go: straight into a file, through memory that is used again for each, or
 * into memory that stays. */
typedef struct {
    FileOut *file; /* NULL: memory */
    uint8_t *all;  /* of all, where there is no file */
    uint8_t *one;  /* for one, as f32 if it is narrowed */
    Arena   *own;  /* of `one` */
} WeightsOut;

/* It is computed in f32 and stored in 16 bits. */
static bool is_narrowed(const PlanConst *q)
{
    DType was = q->data->type->dtype;

    if (q->prepack)
        was = q->prepack->params[q->prepack->nparams - 1].buffer->dtype;
    return q->type && q->type->dtype.bits < was.bits;
}

static uint8_t *aligned(Arena *a, uint64_t bytes)
{
    uint8_t *p = arena_alloc(a, bytes + 64);

    return (uint8_t *)(((uintptr_t)p + 63) & ~(uintptr_t)63);
}

static void weights_begin(Ctx *c, const Compiled *k, WeightsOut *w)
{
    const Plan *p = k->plan;
    uint64_t    one = 0;

    *w = (WeightsOut){.file = p->weights_bytes ? k->o->weights_out : NULL, .own = arena_new(NULL)};
    for (uint32_t i = 0; i < p->nconsts; i++) {
        const PlanConst *q = &p->consts[i];
        uint64_t         need = is_narrowed(q) ? 2 * q->bytes : w->file ? q->bytes : 0;

        if (need > one && (q->prepack || is_narrowed(q)))
            one = need;
    }
    w->one = aligned(w->own, one);
    if (!w->file)
        w->all = aligned(c->arena, p->weights_bytes);
}

static bool overlap(Bytes x, Bytes y)
{
    return x.at < y.at + y.n && y.at < x.at + x.n;
}

/* Is a constant after number i made of the same bytes? */
static bool needed_later(const Plan *p, uint32_t i)
{
    Bytes from = p->consts[i].data->data;

    for (uint32_t k = i + 1; k < p->nconsts; k++)
        if (overlap(from, p->consts[k].data->data))
            return true;
    return false;
}

/* Constant i has been packed: if no later one is made of the same bytes, they need no memory. */
static void weights_forget(Ctx *c, const WeightsOut *w, const Plan *p, uint32_t i)
{
    Bytes from = p->consts[i].data->data;

    if (needed_later(p, i))
        return;
    file_forget(c->diags, from);
    if (w->file) /* else somebody may still print them */
        arena_forget(c->arena, (void *)(uintptr_t)from.at, from.n);
}

static bool narrow(Ctx *c, Compiled *k, const PlanConst *q, const uint8_t *from, uint8_t *to)
{
    NarrowLoss loss = {0};
    double     relative;

    dtype_narrow(q->type->dtype, from, to, q->bytes / 2, &loss);
    k->narrowed += q->bytes;
    if (loss.overflow) {
        error_at(c, E_PASS, NO_LOC, "the weights '%s' reach %.3g, which %s cannot hold", q->name,
                 loss.largest, dtype_text(c, q->type->dtype));
        diag_hint(c->diags, "bfloat16 has the range of float32");
        return false;
    }
    relative = loss.largest > 0 ? loss.error / loss.largest : 0;
    if (relative > k->narrow_error || !k->narrow_worst) {
        k->narrow_error = relative;
        k->narrow_worst = q->name;
    }
    return true;
}

/* Bytes of the model as they are.  A slice of a file that is mapped leaves memory when it has been
 * copied, so that a tensor of gigabytes is never there as a whole. */
static bool put_slices(Ctx *c, FileOut *file, uint64_t at, Bytes from, bool forget)
{
    enum { SLICE = 16 << 20 };

    for (size_t done = 0; done < from.n; done += SLICE) {
        Bytes slice = {from.at + done, from.n - done < SLICE ? from.n - done : SLICE};

        if (!file_out_put(file, at + done, slice))
            return false;
        if (forget)
            file_forget(c->diags, slice);
    }
    return true;
}

static bool weights_add(Ctx *c, Compiled *k, WeightsOut *w, uint32_t i, JitFn *prepack)
{
    const PlanConst *q = &k->plan->consts[i];
    const uint8_t   *from = q->data->data.at;
    bool             thin = is_narrowed(q);
    uint8_t         *to = w->file || thin ? w->one : w->all + q->offset;

    if (prepack) {
        void *buffers[2] = {(void *)(uintptr_t)from, to};

        memset(to, 0, thin ? 2 * q->bytes : q->bytes);
        prepack(buffers, NULL);
        from = to;
    }
    if (thin && !narrow(c, k, q, from, to))
        return false;
    if (thin)
        from = to;
    if (w->file)
        return put_slices(c, w->file, WEIGHTS_AT + q->offset, (Bytes){from, q->bytes},
                          from == q->data->data.at && !needed_later(k->plan, i));
    if (from != w->all + q->offset && q->bytes)
        memcpy(w->all + q->offset, from, q->bytes);
    return true;
}

static bool weights_end(Compiled *k, WeightsOut *w, bool ok)
{
    uint64_t n = k->plan->weights_bytes;
    Bytes    all;

    arena_free(w->own);
    if (!w->file) {
        k->weights = (Bytes){w->all, n};
        return ok;
    }
    if (!ok || !file_out_map(w->file, WEIGHTS_AT + n, &all))
        return false;
    k->weights = (Bytes){all.at + WEIGHTS_AT, n};
    return true;
}

bool compile_weights(Ctx *c, Compiled *k)
{
    const Plan    *p = k->plan;
    const Backend *b = backend_cpu();
    const Target  *host = b->parse_target(c, "llvm");
    const Target  *saved = c->target;
    PassOptions    po = {.jobs = 1};
    Map           *name = map_new(c->arena);
    WeightsOut     out;
    Jit           *j = NULL;
    bool           ok = true;

    if (!host)
        return false;
    c->target = host;
    const TirModule *m = prepack_module(c, p, &po);
    c->target = saved;
    if (!m)
        return false;
    if (m->nfuncs && !(j = b->jit(c, m, host)))
        return false;
    for (uint32_t i = 0; i < p->nconsts; i++) {
        const Func *f = p->consts[i].prepack;
        if (f && !map_get(name, PTR_KEY(f)))
            map_put(name, PTR_KEY(f), (void *)(uintptr_t)intern_printf(c->strings, "prepack%u", i));
    }
    weights_begin(c, k, &out);
    for (uint32_t i = 0; ok && i < p->nconsts; i++) {
        const PlanConst *q = &p->consts[i];
        void  *sym = q->prepack ? b->jit_symbol(j, map_get(name, PTR_KEY(q->prepack))) : NULL;
        JitFn *fn = NULL;

        if (q->prepack && !sym)
            BUG("a prepack function was lost");
        memcpy(&fn, &sym, sizeof sym);
        ok = !ctx_cancelled(c) && weights_add(c, k, &out, i, fn);
        weights_forget(c, &out, p, i);
    }
    if (j)
        b->jit_free(j);
    return weights_end(k, &out, ok);
}
