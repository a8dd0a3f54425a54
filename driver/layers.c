/* verify --per-layer: which kernel of a product computes something else than it should?
 *
 * The product runs once, as a program that records what every step of the model changes in the
 * arena and in the outputs (share/tvmcc/runner.c).  The records are replayed here: before each
 * step, the memory is what the product had; the step's kernel, as the plan has it, is run by the
 * interpreter on a copy of it, and what it writes must agree with what the product wrote.  So each
 * kernel is judged on the product's own inputs, errors do not pile up, and the first that differs
 * is the culprit.
 *
 *     main:   call @conv2d(%x+0, %weights+0, %arena+0, %tid, %nt)        step 0
 *             call @dense(%arena+0, %weights+576, %out+0, %tid, %nt)     step 1 */
#include "driver/session.h"

#include <math.h>
#include <string.h>

enum { RECORD_WEIGHTS = 1, RECORD_CHANGE = 2, RECORD_STEP = 3 };

/* The memory of a run: arena, then outputs. */
typedef struct {
    uint32_t  n;
    size_t   *bytes;
    uint8_t **at;
} Memory;

typedef struct {
    Session           *s;
    const Plan        *plan;
    const Func        *main;
    const Stmt *const *calls; /* by step */
    uint32_t           ncalls, nsteps;
    Memory             got, want; /* of the product; of the interpreter */
    Bytes              weights;
    double             worst; /* largest error relative to what is allowed */
    const char        *worst_name;
} Layers;

static Memory memory_new(Layers *l)
{
    const tvmcc_model_info *info = l->s->info;
    Arena                  *a = l->s->driver->arena;
    Memory                  m = {.n = info->noutputs + 1};

    m.bytes = NEW_ARRAY(a, size_t, m.n);
    m.at = NEW_ARRAY(a, uint8_t *, m.n);
    for (uint32_t i = 0; i < m.n; i++) {
        m.bytes[i] = i ? info->outputs[i - 1].bytes : info->arena_shared;
        m.at[i] = NEW_ARRAY(a, uint8_t, m.bytes[i] + 64);
        m.at[i] += 64 - (uintptr_t)m.at[i] % 64;
    }
    return m;
}

/* ---- the calls of main, in the order in which code generation numbers them ---- */

typedef struct {
    Arena *a;
    VEC(const Stmt *) all;
} Calls;

static bool note_call(void *user, const Stmt *s)
{
    Calls *c = user;

    if (s->kind == STMT_CALL)
        vec_push(c->a, &c->all, s);
    return true;
}

static void find_calls(Layers *l)
{
    Calls    c = {.a = l->s->driver->arena};
    TirVisit v = {.user = &c, .enter = note_call};

    l->main = l->plan->tir->funcs[l->plan->tir->nfuncs - 1];
    stmt_visit(l->main->body, &v);
    l->calls = c.all.at;
    l->ncalls = c.all.n;
}

/* ---- one step ---- */

/* One thread: %tid is 0 and %nt is 1. */
static int64_t thread_value(void *user, const Atom *a)
{
    (void)user;
    return a->kind == ATOM_VAR && !strcmp(a->name, TIR_NT);
}

/* Where an argument of main's call points to in the memory of one of the two sides. */
static uint8_t *pointer(Layers *l, const Memory *m, const Arg *arg)
{
    static const IdxEnv env = {.var = thread_value};
    const Plan         *p = l->plan;
    int64_t             offset = idx_eval(arg->offset, &env);
    uint32_t            i = 0;

    while (i < l->main->nparams && l->main->params[i].buffer != arg->buffer)
        i++;
    if (i < p->nin)
        return (uint8_t *)l->s->in[i] + offset;
    if (i < p->nin + p->nout)
        return m->at[1 + i - p->nin] + offset;
    return i == p->nin + p->nout ? m->at[0] + offset : (uint8_t *)(uintptr_t)l->weights.at + offset;
}

/* What the kernel wrote through one parameter, on both sides. */
static bool agree(Layers *l, uint32_t step, const Func *f, const Buffer *b, const uint8_t *got,
                  const uint8_t *want)
{
    const Options *o = &l->s->driver->opt;
    DType          t = dtype_lanes(b->dtype, 1);
    uint32_t       bytes = dtype_bytes(t);
    int64_t        n = 0, origin = 0, at = 0;
    double         err = 0, most = 0, limit;
    bool           nan = false;

    if (!buffer_size(l->s->c, b, &n, &origin))
        return true;
    for (int64_t i = 0; i < n; i++) {
        double x = dtype_get_f(t, got + (i - origin) * bytes);
        double y = dtype_get_f(t, want + (i - origin) * bytes);
        double e = x == y || (isnan(x) && isnan(y)) ? 0 : fabs(x - y);

        if (isnan(e) && !nan)
            nan = true, at = i;
        if (e > err && !nan)
            at = i;
        if (e > err)
            err = e;
        if (isfinite(y) && fabs(y) > most)
            most = fabs(y);
    }
    limit = o->rtol * most + o->atol;
    if (limit > 0 && err / limit > l->worst) {
        l->worst = err / limit;
        l->worst_name = f->name;
    }
    if (!nan && err <= limit)
        return true;
    return diag_error(l->s->driver->diags, E_MISMATCH, NO_LOC,
                      "step %u, @%s, is the first that differs: by %.3g in '%s' at %lld, which is "
                      "%.6g and not %.6g; at most %.3g is allowed",
                      step, f->name, err, b->name, (long long)(at - origin),
                      dtype_get_f(t, got + (at - origin) * bytes),
                      dtype_get_f(t, want + (at - origin) * bytes), limit);
}

static bool check_step(Layers *l, uint32_t step)
{
    static const IdxEnv env = {.var = thread_value};
    const StmtCall     *call = &l->calls[step]->u.call;
    const Func         *f = tirmod_find(l->plan->tir, call->callee);
    Arena              *a = l->s->driver->arena;
    void              **buffers;
    int64_t            *scalars;
    uint32_t            np = 0, ns = 0;

    if (!f)
        BUG("the plan has no kernel '%s'", call->callee);
    buffers = NEW_ARRAY(a, void *, f->nparams + 1);
    scalars = NEW_ARRAY(a, int64_t, f->nparams + 1);
    for (uint32_t i = 0; i < f->nparams; i++)
        if (call->args[i].buffer)
            buffers[np++] = pointer(l, &l->want, &call->args[i]);
        else
            scalars[ns++] = idx_eval(call->args[i].scalar, &env);
    if (!tir_eval(l->s->c, l->plan->tir, f, np, buffers, ns, scalars))
        return false;
    for (uint32_t i = 0; i < f->nparams; i++)
        if (call->args[i].buffer && f->params[i].written &&
            f->params[i].buffer->scope == SCOPE_ARENA &&
            !agree(l, step, f, f->params[i].buffer, pointer(l, &l->got, &call->args[i]),
                   pointer(l, &l->want, &call->args[i])))
            return false;
    for (uint32_t i = 0; i < l->got.n; i++)
        memcpy(l->want.at[i], l->got.at[i], l->got.bytes[i]);
    l->nsteps++;
    return true;
}

/* ---- all of them ---- */

static bool replay(Layers *l, Bytes records)
{
    Diags *d = l->s->driver->diags;
    Reader r = reader(records);

    while (reader_left(&r)) {
        uint32_t kind = read_u32(&r), region = read_u32(&r), offset = read_u32(&r);
        Bytes    data = read_bytes(&r, read_u32(&r));

        if (r.bad || kind < RECORD_WEIGHTS || kind > RECORD_STEP ||
            (kind == RECORD_STEP && region >= l->ncalls) ||
            (kind == RECORD_CHANGE && (region >= l->got.n || offset > l->got.bytes[region] ||
                                       data.n > l->got.bytes[region] - offset)) ||
            (kind == RECORD_WEIGHTS && data.n < l->plan->weights_bytes))
            return diag_error(d, E_RUN, NO_LOC, "the product is not of this plan");
        if (kind == RECORD_WEIGHTS)
            l->weights = data;
        else if (kind == RECORD_CHANGE)
            memcpy(l->got.at[region] + offset, data.at, data.n);
        else if (!check_step(l, region))
            return false;
    }
    if (l->nsteps)
        return true;
    diag_error(d, E_UNSUPPORTED, NO_LOC, "the product tells of no steps");
    diag_hint(d, "those of -fthreads=none do not");
    return false;
}

static bool find_plan(Layers *l)
{
    Session       *s = l->s;
    const Options *o = &s->driver->opt;

    if (!s->compiled && !o->plan) {
        diag_error(s->driver->diags, E_USAGE, NO_LOC,
                   "--per-layer needs the plan of a product, with --plan, or the model itself");
        return false;
    }
    if (!s->compiled && !compile_read_plan(s->c, &s->job.k, o->plan))
        return false;
    l->plan = s->job.k.plan;
    if (l->plan->next || l->plan->target->host)
        return diag_error(s->driver->diags, E_UNSUPPORTED, NO_LOC,
                          "variants, buckets and devices are not looked at kernel by kernel");
    if (l->plan->ncells)
        return diag_error(s->driver->diags, E_UNSUPPORTED, NO_LOC,
                          "models whose values decide sizes are not looked at kernel by kernel");
    if (l->plan->nin != s->info->ninputs || l->plan->nout != s->info->noutputs ||
        l->plan->arena_bytes + l->plan->private_bytes != s->info->arena_shared)
        return diag_error(s->driver->diags, E_RUN, NO_LOC, "the product is not of this plan");
    return true;
}

bool session_layers(Session *s)
{
    Layers l = {.s = s};
    Bytes  records;

    if (!find_plan(&l) || !remote_steps(s->remote, s->in, &records))
        return false;
    find_calls(&l);
    l.got = memory_new(&l);
    l.want = memory_new(&l);
    if (!replay(&l, records))
        return false;
    if (s->driver->opt.json)
        str_printf(&s->json, ", \"layers\": %u", l.nsteps);
    else
        say(s->driver, "%u steps agree, each by itself%s%s\n", l.nsteps,
            l.worst_name ? "; nearest to the limit is @" : "", l.worst_name ? l.worst_name : "");
    return true;
}
