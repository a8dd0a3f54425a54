/* Several plans of one model in one product: CPU variants, shape buckets, targets of which a run
 * takes the first that it has.
 *
 * The model is compiled once for each variant and bucket, up to its weights; then constants with
 * equal bytes are put into one blob once, and ir/plan/join.c moves the plans' offsets there.  A
 * constant of one plan takes the place of at most one of another's, in their order, so that what is
 * shared follows from how plans are made and not from values that happen to be equal. */
#include "compile/compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PLANS = 64 };

typedef struct {
    const char    *target;
    uint32_t       level;
    const PlanDim *dims; /* of all bucket dimensions */
} Alternative;

typedef VEC(Alternative) Alternatives;

/* ---- which ---------------------------------------------------------------------------------------- */

static uint32_t level_of(const char *mcpu)
{
    static const char *const names[] = {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};

    for (uint32_t i = 0; i < COUNT(names); i++)
        if (!strcmp(names[i], mcpu))
            return i + 1;
    return 0;
}

/* Variants from the lowest level up; one without a level if none is asked for. */
static bool list_variants(Ctx *c, const CompileOptions *o, Alternatives *out)
{
    const char *base = o->target ? o->target : "llvm";

    for (uint32_t i = 0; i < o->variants.n; i++)
        if (!level_of(o->variants.at[i])) {
            error_at(c, E_USAGE, NO_LOC, "'%s' is no CPU variant", o->variants.at[i]);
            diag_hint(c->diags, "the levels of x86-64 can be: x86-64, x86-64-v2, -v3 and -v4");
            return false;
        }
    for (uint32_t level = 1; level <= 4; level++) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < o->variants.n; i++) {
            Alternative a = {.level = level};

            if (level_of(o->variants.at[i]) != level)
                continue;
            if (n++)
                return error_at(c, E_USAGE, NO_LOC, "the CPU variant '%s' is there twice",
                                o->variants.at[i]);
            a.target = intern_printf(c->strings, "%s -mcpu=%s", base, o->variants.at[i]);
            vec_push(c->arena, out, a);
        }
    }
    for (uint32_t i = 0; i < o->fallbacks.n; i++)
        vec_push(c->arena, out, ((Alternative){.target = o->fallbacks.at[i]}));
    if (!out->n)
        vec_push(c->arena, out, ((Alternative){.target = base}));
    return true;
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static uint64_t volume(const PlanDim *d, uint32_t n)
{
    uint64_t v = 1;

    for (uint32_t i = 0; i < n; i++)
        if (!checked_mul(v, (uint64_t)d[i].size, &v))
            return UINT64_MAX;
    return v;
}

/* All combinations of the dimensions' sizes, those with fewer cells first. */
static bool list_buckets(Ctx *c, const CompileOptions *o, uint32_t *n, PlanDim ***out)
{
    uint32_t  total = 1, nd = o->buckets.n;
    int64_t  *sorted[MAX_PLANS] = {0};
    PlanDim **all;

    for (uint32_t d = 0; d < nd; d++) {
        const BucketDim *b = &o->buckets.at[d];

        if (d == MAX_PLANS || b->n > MAX_PLANS / total)
            return error_at(c, E_USAGE, NO_LOC, "more than %d shape buckets", MAX_PLANS);
        total *= b->n;
        sorted[d] = DUP_ARRAY(c->arena, b->sizes, b->n);
        qsort(sorted[d], b->n, sizeof *sorted[d], by_size);
        for (uint32_t i = 0; i + 1 < b->n; i++)
            if (sorted[d][i] == sorted[d][i + 1])
                return error_at(c, E_USAGE, NO_LOC, "%s=%lld is there twice", b->name,
                                (long long)sorted[d][i]);
        for (uint32_t e = 0; e < d; e++)
            if (!strcmp(o->buckets.at[e].name, b->name))
                return error_at(c, E_USAGE, NO_LOC, "dimension '%s' has buckets twice", b->name);
    }
    all = NEW_ARRAY(c->arena, PlanDim *, total);
    for (uint32_t i = 0; i < total; i++) {
        uint32_t rest = i;

        all[i] = NEW_ARRAY(c->arena, PlanDim, nd + 1);
        for (uint32_t d = nd; d-- > 0; rest /= o->buckets.at[d].n)
            all[i][d] = (PlanDim){o->buckets.at[d].name, sorted[d][rest % o->buckets.at[d].n]};
    }
    for (uint32_t i = 1; i < total; i++) /* few, and equal ones keep their order */
        for (uint32_t k = i; k && volume(all[k], nd) < volume(all[k - 1], nd); k--) {
            PlanDim *swap = all[k];
            all[k] = all[k - 1];
            all[k - 1] = swap;
        }
    *n = total;
    *out = all;
    return true;
}

/* Variants outside, buckets inside. */
static bool list_all(Ctx *c, const CompileOptions *o, Alternatives *out)
{
    Alternatives variants = {0};
    PlanDim    **buckets;
    uint32_t     n;

    if (!list_variants(c, o, &variants) || !list_buckets(c, o, &n, &buckets))
        return false;
    if (n * variants.n > MAX_PLANS)
        return error_at(c, E_USAGE, NO_LOC, "more than %d variants and buckets", MAX_PLANS);
    for (uint32_t v = 0; v < variants.n; v++)
        for (uint32_t b = 0; b < n; b++) {
            Alternative a = variants.at[v];

            a.dims = buckets[b];
            vec_push(c->arena, out, a);
        }
    return true;
}

/* ---- each ------------------------------------------------------------------------------------------ */

static void add_files(Ctx *c, ImportFiles *to, const ImportFiles *from)
{
    for (uint32_t i = 0; i < from->n; i++) {
        bool have = false;

        for (uint32_t k = 0; k < to->n; k++)
            have = have || !strcmp(to->at[k], from->at[i]);
        if (!have)
            vec_push(c->arena, to, from->at[i]);
    }
}

/* The options for one alternative alone. */
static CompileOptions options_of(Ctx *c, const CompileOptions *all, const Alternative *a)
{
    CompileOptions o = *all;

    memset(&o.dims, 0, sizeof o.dims); /* what is added is not for the others */
    for (uint32_t i = 0; i < all->dims.n; i++)
        vec_push(c->arena, &o.dims, all->dims.at[i]);
    for (uint32_t i = 0; i < all->buckets.n; i++)
        vec_push(c->arena, &o.dims,
                 ((ImportDim){a->dims[i].name, a->dims[i].size, a->dims[i].size}));
    o.target = a->target;
    o.variants.n = o.buckets.n = o.fallbacks.n = 0;
    return o;
}

/* c->target, fit for alternatives; `several` targets may be devices. */
static bool set_target(Ctx *c, Compiled *k, const Alternative *a, bool several)
{
    if (!compile_target(c, k))
        return false;
    if (c->target->host && !several)
        return error_at(c, E_USAGE, NO_LOC, "variants and buckets are for CPUs, not for '%s'",
                        c->target->text);
    if (a->level && !str_starts(c->target->triple, "x86_64"))
        return error_at(c, E_USAGE, NO_LOC, "CPU variants are levels of x86-64, not of '%s'",
                        c->target->triple);
    if (a->level) { /* which of them, is always asked */
        Target *t = DUP_ARRAY(c->arena, c->target, 1);

        t->asks_cpu = true;
        c->target = t;
    }
    return true;
}

bool compile_largest(Ctx *c, const CompileOptions *o, CompileOptions *out)
{
    const CompileOptions all = *o; /* which may be `out` */
    Alternatives         list = {0};

    *out = all;
    if (!all.variants.n && !all.buckets.n)
        return true;
    if (!list_all(c, &all, &list))
        return false;
    for (uint32_t i = 0; i < list.n; i++) {
        Compiled k;

        *out = options_of(c, &all, &list.at[i]);
        compile_start(c, &k, out);
        if (!set_target(c, &k, &list.at[i], false))
            return false;
    }
    return true;
}

static bool open_bucket(Ctx *c, const Plan *p)
{
    uint32_t i = 0;

    while (!atom_is_open(p->symbols.at[i]))
        i++;
    error_at(c, E_UNSUPPORTED, NO_LOC,
             "dimension '%s' has no upper bound, which a model with shape buckets needs",
             p->symbols.at[i]->name);
    diag_hint(c->diags, "give it one: --dim %s=%lld..512", p->symbols.at[i]->name,
              (long long)p->symbols.at[i]->lo);
    return false;
}

static bool make_one(Ctx *c, Compiled *k, const Alternative *a, CompileOptions *o, Compiled *out)
{
    Plan *p;

    *o = options_of(c, k->o, a);
    compile_start(c, out, o);
    out->entry = k->entry;
    if (!set_target(c, out, a, k->o->fallbacks.n > 0))
        return false;
    if (!compile_import(c, out) || !compile_graph(c, out) || !compile_plan(c, out) ||
        !compile_weights(c, out) || diag_errors(c->diags))
        return false;
    if (k->o->buckets.n && out->plan->arena)
        return open_bucket(c, out->plan);
    p = DUP_ARRAY(c->arena, out->plan, 1);
    p->level = a->level;
    p->ndims = k->o->buckets.n;
    p->dims = a->dims;
    out->plan = p;
    return true;
}

/* Tensors may differ in the sizes of their dimensions and in nothing else. */
static bool same_tensors(Ctx *c, const char *what, uint32_t n, const PlanIO *a, uint32_t m,
                         const PlanIO *b)
{
    bool same = n == m;

    for (uint32_t i = 0; same && i < n; i++)
        same = !strcmp(a[i].name, b[i].name) && dtype_eq(a[i].type->dtype, b[i].type->dtype) &&
               a[i].type->n == b[i].type->n;
    return same || error_at(c, E_DIM, NO_LOC, "the buckets have different %ss", what);
}

/* One CPU runs the entry functions of all targets. */
static bool same_host(Ctx *c, const Target *a, const Target *b)
{
    const char *first = (a->host ? a->host : a)->text, *other = (b->host ? b->host : b)->text;

    return !strcmp(first, other) ||
           error_at(c, E_USAGE, NO_LOC, "'%s' is for the CPU '%s', targets before it for '%s'",
                    b->text, other, first);
}

/* ---- weights --------------------------------------------------------------------------------------- */

typedef struct {
    const uint8_t *at;
    uint64_t       bytes, offset;
    uint32_t       user; /* 1 + the last plan that took it */
    uint32_t       next; /* 1 + the next with the same hash */
} Shared;

typedef struct {
    VEC(Shared) all;
    Map     *first; /* hash -> 1 + index */
    uint64_t bytes;
} Pool;

/* Where the constant lies in the common blob. */
static uint64_t place(Ctx *c, Pool *pool, uint32_t plan, const uint8_t *at, uint64_t bytes)
{
    uint64_t key = hash_bytes(at, bytes, bytes);
    uint32_t i = (uint32_t)(uintptr_t)map_get(pool->first, key), *link = NULL;
    Shared   s = {at, bytes, pool->bytes, plan + 1, 0};

    for (; i; link = &pool->all.at[i - 1].next, i = *link) {
        Shared *q = &pool->all.at[i - 1];

        if (q->user == plan + 1 || q->bytes != bytes || memcmp(q->at, at, bytes) != 0)
            continue;
        q->user = plan + 1;
        return q->offset;
    }
    if (link)
        *link = pool->all.n + 1;
    else
        map_put(pool->first, key, (void *)(uintptr_t)(pool->all.n + 1));
    vec_push(c->arena, &pool->all, s);
    pool->bytes += align_up(bytes, 64);
    return s.offset;
}

static void join(Ctx *c, Compiled *k, uint32_t n, const Compiled *each)
{
    Pool             pool = {.first = map_new(c->arena)};
    const Plan     **plans = NEW_ARRAY(c->arena, const Plan *, n);
    const uint64_t **offsets = NEW_ARRAY(c->arena, const uint64_t *, n);
    uint8_t         *blob;

    for (uint32_t i = 0; i < n; i++) {
        const Plan *p = plans[i] = each[i].plan;
        uint64_t   *at = NEW_ARRAY(c->arena, uint64_t, p->nconsts + 1);

        for (uint32_t j = 0; j < p->nconsts; j++)
            at[j] =
                place(c, &pool, i, each[i].weights.at + p->consts[j].offset, p->consts[j].bytes);
        offsets[i] = at;
    }
    blob = arena_alloc(c->arena, pool.bytes + 64);
    blob = (uint8_t *)(((uintptr_t)blob + 63) & ~(uintptr_t)63);
    for (uint32_t i = 0; i < pool.all.n; i++)
        memcpy(blob + pool.all.at[i].offset, pool.all.at[i].at, pool.all.at[i].bytes);
    k->weights = (Bytes){blob, pool.bytes};
    k->plan = plan_join(c, n, plans, offsets, pool.bytes);
}

/* ---- all of it ------------------------------------------------------------------------------------- */

bool compile_alternatives(Ctx *c, Compiled *k)
{
    Alternatives    list = {0};
    Compiled       *each;
    CompileOptions *options;

    if (!list_all(c, k->o, &list))
        return false;
    each = NEW_ARRAY(c->arena, Compiled, list.n);
    options = NEW_ARRAY(c->arena, CompileOptions, list.n);
    for (uint32_t i = 0; i < list.n; i++) {
        if (!make_one(c, k, &list.at[i], &options[i], &each[i]) ||
            !same_tensors(c, "input", each[0].plan->nin, each[0].plan->in, each[i].plan->nin,
                          each[i].plan->in) ||
            !same_tensors(c, "output", each[0].plan->nout, each[0].plan->out, each[i].plan->nout,
                          each[i].plan->out) ||
            (k->o->fallbacks.n && !same_host(c, each[0].plan->target, each[i].plan->target)))
            return false;
        add_files(c, &k->files, &each[i].files);
        for (uint32_t s = 0; s < COUNT(k->seconds); s++)
            k->seconds[s] += each[i].seconds[s];
    }
    join(c, k, list.n, each);
    k->backend = each[0].backend;
    k->imported = each[list.n - 1].imported; /* the largest: what the header describes */
    k->module = each[list.n - 1].module;
    c->target = k->plan->target;
    return true;
}
