/* Kernels: every distinct primitive function once.
 *
 * Two calls whose unscheduled nests have one canonical hash share a kernel, so equal layers are
 * scheduled, lowered and compiled once.  A kernel is named after its operators
 * and the canonical hash of its scheduled nest: `conv2d_bias_add_relu.51ce02aa`. */
#include "passes/lower/lower.h"

#include "schedules/schedules.h"

#include <string.h>

enum { LONG_NAME = 72 }; /* of a kernel, which its operators make */

static int rank(FusionKind k)
{
    switch (k) {
    case FUSE_OUT_FUSABLE: return 5;
    case FUSE_OPAQUE:
    case FUSE_UPDATE: return 4;
    case FUSE_COMM_REDUCE: return 3;
    case FUSE_INJECTIVE: return 2;
    case FUSE_BROADCAST: return 1;
    case FUSE_ELEMWISE: return 0;
    }
    return 0;
}

/* The heaviest operator of a primitive function, and a name from all of them. */
static const Op *anchor_of(Ctx *c, const Expr *primitive, const char **name)
{
    ExprList  list = expr_post_order(c, func_body(primitive));
    StrBuf    text = strbuf(c->arena);
    const Op *best = NULL;

    for (uint32_t i = 0; i < list.n; i++) {
        const Op *op = call_op(list.at[i]);
        if (!op)
            continue;
        if (!best || rank(op->fusion) > rank(best->fusion))
            best = op;
        const char *stem = strrchr(op->text, '.') ? strrchr(op->text, '.') + 1 : op->text;
        if (text.n + strlen(stem) < LONG_NAME)
            str_printf(&text, "%s%s", text.n ? "_" : "", stem);
    }
    *name = intern(c->strings, text.n ? text.at : "kernel");
    return best;
}

Sched *schedule_kernel(Ctx *c, const TeFunc *te, const Op *anchor, const Target *t,
                       const PassOptions *o, const char **rule, Refusals *refused)
{
    Sched *chosen = NULL;
    StrBuf all = strbuf(c->arena);

    *refused = (Refusals){0};

    for (uint32_t i = 0; o->opt_level > 0 && i < schedule_count; i++) {
        const ScheduleRow *row = &schedule_table[i];
        if (!schedule_takes(row, t, anchor))
            continue;
        Sched *s = sched_new(c, t, te);
        row->rule(s);
        if (!s->refusal) {
            chosen = s;
            *rule = row->name;
            break;
        }
        if (!refused->why)
            refused->why = s->refusal, refused->rule = row->name;
        str_printf(&all, "%s does not fit: %s\n", row->name, s->refusal);
    }
    refused->all = all.n ? all.at : NULL;
    return chosen ? chosen : sched_new(c, t, te);
}

/* The best of the schedules that were measured for this kernel whose steps it takes; NULL: none. */
static Sched *tuned_schedule(Kernels *k, const TeFunc *te, const Op *anchor, const Target *target,
                             Sha256 workload)
{
    Ctx          *c = k->c;
    const Tuning *t = k->o->tuning;
    TunedSchedule r;
    uint32_t      n = 0;

    for (; t && t->find(t->user, workload, target, n, &r); n++) {
        uint32_t errors = diag_errors(c->diags);
        Sched   *s = sched_new(c, target, te);

        Bytes text = {(const uint8_t *)r.text, strlen(r.text)};

        if (r.decided ? schedule_replay(s, anchor, r.text) : sched_parse(c, r.loc.file, text, s))
            return s;
        diag_drop(c->diags, errors);
        if (t->require)
            error_at(c, E_TUNING, r.loc, "the record of kernel '%s' does not fit: %s", te->name,
                     s->refusal);
        else
            diag_warn(c->diags, W_TUNING, r.loc, "the record of kernel '%s' does not fit: %s",
                      te->name, s->refusal);
    }
    if (t && t->require && n == 0)
        error_at(c, E_TUNING, te->loc, "kernel '%s' has no record in the tuning logs", te->name);
    return NULL;
}

/* Do both schedules repack the same constants in the same way?  Weights of 11 and of 12 input
 * channels have one packed form and give one nest, but are read differently. */
static bool same_packing(Ctx *c, const Sched *a, const Sched *b)
{
    if (!a || a->prepacks.n != b->prepacks.n)
        return false;
    for (uint32_t i = 0; i < a->prepacks.n; i++) {
        Sha256 x = func_hash(c, a->prepacks.at[i].prepack),
               y = func_hash(c, b->prepacks.at[i].prepack);
        if (a->prepacks.at[i].param != b->prepacks.at[i].param || memcmp(x.b, y.b, sizeof x.b) != 0)
            return false;
    }
    return true;
}

static AtomList dims_of(Ctx *c, const Func *f)
{
    VEC(const Atom *) dims = {0};

    for (uint32_t n = func_dims(f), i = 0; i < n; i++)
        vec_push(c->arena, &dims, f->params[i].scalar);
    return (AtomList){dims.n, dims.at};
}

static Kernel *use(const Kernels *k, Kernel *x)
{
    x->calls += !k->looking;
    x->called = x->called || !k->looking;
    return x;
}

bool runs_here(const Expr *call)
{
    return call->kids[0]->u.func.host;
}

/* Whose code a call is: a device's, or that of its host. */
static const Target *call_target(const Kernels *k, const Expr *call)
{
    return runs_here(call) && k->target && k->target->host ? k->target->host : k->target;
}

/* A device lacks what the kernel needs, and the pass that looks for such was left out. */
static bool is_lacking(Ctx *c, const Func *f, const Target *t, const TeFunc *te)
{
    const char *what = t && t->host ? func_lacking(c, t, f) : NULL;

    if (!what)
        return false;
    error_at(c, E_CODEGEN, te->loc, "%.*s has no %s, which kernel '%s' needs",
             (int)strcspn(t->text, ","), t->text, what, te->name);
    diag_hint(c->diags, "the pass keep_on_host gives it to the CPU that drives the device");
    return true;
}

Kernel *kernel_of_call(Kernels *k, const Expr *call, bool in_place, AtomList *dims)
{
    Ctx          *c = k->c;
    const char   *stem;
    const Expr   *fn = call->kids[0];
    const Op     *anchor = anchor_of(c, fn, &stem);
    const TeFunc *te = ctx_cancelled(c) ? NULL : te_of_func(c, fn, call, in_place, stem);
    const Target *target = call_target(k, call);
    uint64_t      key;

    if (!te)
        return NULL;
    const Func *first = te_lower(c, te, target);
    if (is_lacking(c, first, target, te))
        return NULL;
    const TakenLayout *taken = in_place ? NULL : map_get(k->layouts, call->id);
    Sha256             h = func_hash(c, first);
    *dims = dims_of(c, first);
    memcpy(&key, h.b, sizeof key);
    if (target != k->target)
        key = ~key;
    if (taken)
        key ^= hash_bytes(taken->map, strlen(taken->map), 0);
    Kernel *found = map_get(k->by_text, key);
    if (found)
        return use(k, found);
    const char *rule = NULL;
    Refusals    refused = {0};
    Sched      *s = tuned_schedule(k, te, anchor, target, h);
    if (s)
        rule = plan_tuned;
    else
        s = schedule_kernel(c, te, anchor, target, k->o, &rule, &refused);
    if (!s || !s->f)
        return NULL;
    if (taken)
        try_step(s, "transform_layout %%%s %s",
                 s->f->params[func_dims(s->f) + taken->param].buffer->name, taken->map);
    char hex[65];
    sha256_hex(func_hash(c, s->f), hex);
    Func f = *s->f;
    f.name = intern_printf(c->strings, "%s.%.8s", stem, hex);
    for (uint32_t i = 0; i < k->all.n; i++) {
        Kernel *same = k->all.at[i];
        if (same->nest->name != f.name)
            continue;
        if (same->nest->target == target &&
            same_packing(c, same->sched, s)) { /* another text, the same nest */
            vec_push(c->arena, &same->workloads, h);
            map_put(k->by_text, key, same);
            return use(k, same);
        }
        f.name = intern_printf(c->strings, "%s.p", f.name);
        i = UINT32_MAX; /* from the first again */
    }
    f.loc = te->loc;
    f.macs = te_macs(c, te);
    f.kind = target && target->host ? FUNC_DEVICE : FUNC_KERNEL;
    Kernel *fresh = NEW(c->arena, Kernel);
    *fresh = (Kernel){.nest = func_new(c, f),
                      .sched = s,
                      .rule = rule,
                      .refused = refused,
                      .nin = te->nparams,
                      .nout = te->nouts,
                      .macs = f.macs,
                      .by_cells = k->target && f.kind != FUNC_DEVICE ? cpu_cells_ns(s) : 0};
    vec_push(c->arena, &fresh->workloads, h);
    vec_push(c->arena, &k->all, fresh);
    map_put(k->by_text, key, fresh);
    return use(k, fresh);
}

/* The parts that the pass `launches` made. */
static void find_launches(Ctx *c, const TirModule *m, Kernel *k)
{
    VEC(const Func *) parts = {0};

    for (const Func *f;; vec_push(c->arena, &parts, f))
        if (!(f = tirmod_find(m, intern_printf(c->strings, "%s.%u", k->nest->name, parts.n))))
            break;
    k->nlaunches = parts.n;
    k->launches = parts.at;
    k->flat = parts.n ? parts.at[0] : NULL;
}

/* One warning for all kernels of the model, which is about the first. */
static void warn_of_refusals(const Kernels *k)
{
    const Kernel *first = NULL;
    const char   *others = "";
    uint32_t      more = 0;

    for (uint32_t i = 0; i < k->all.n; i++) {
        const Kernel *x = k->all.at[i];

        if (!x->refused.why)
            continue;
        if (first)
            more++;
        else
            first = x;
    }
    if (!first)
        return;
    if (more)
        others = arena_printf(k->c->arena, " (and %u more kernel%s with rules that do not fit)",
                              more, more > 1 ? "s" : "");
    diag_warn(k->c->diags, W_SCHEDULE_REFUSED, first->nest->loc,
              "rule %s does not fit kernel '%.*s': %s%s", first->refused.rule,
              (int)strcspn(first->nest->name, "."), first->nest->name, first->refused.why, others);
    if (more)
        diag_hint(k->c->diags,
                  "--explain lists the rules of each that did not fit, and the one taken");
}

bool kernels_finish(Kernels *k)
{
    const TirModule *out;
    const Func     **funcs = NEW_ARRAY(k->c->arena, const Func *, k->all.n + 1);
    uint32_t         called = 0;

    for (uint32_t i = 0; i < k->all.n; i++) /* some were only looked at */
        if (k->all.at[i]->called)
            k->all.at[called++] = k->all.at[i];
    k->all.n = called;
    warn_of_refusals(k);
    for (uint32_t i = 0; i < k->all.n; i++)
        funcs[i] = k->all.at[i]->nest;
    out = run_tir_passes(k->c, tirmod_new(k->c, k->all.n, funcs), k->o, TIR_TO_PLAN);
    if (!out)
        return false;
    for (uint32_t i = 0; i < k->all.n; i++) {
        Kernel *x = k->all.at[i];
        if (x->nest->kind == FUNC_DEVICE)
            find_launches(k->c, out, x);
        else
            x->flat = tirmod_find(out, x->nest->name);
        if (!x->flat)
            BUG("kernel %s was lost by the TIR passes", x->nest->name);
    }
    return true;
}

const TirModule *kernels_module(const Kernels *k, uint32_t n, const Func *const *more)
{
    Ctx *c = k->c;
    VEC(const Func *) all = {0};

    for (uint32_t i = 0; i < k->all.n; i++) {
        const Kernel *x = k->all.at[i];
        for (uint32_t j = 0; j < x->nlaunches; j++)
            vec_push(c->arena, &all, x->launches[j]);
        if (!x->nlaunches)
            vec_push(c->arena, &all, x->flat);
    }
    for (uint32_t i = 0; i < n; i++)
        vec_push(c->arena, &all, more[i]);
    return tirmod_new(c, all.n, all.at);
}
