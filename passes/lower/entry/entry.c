/* Which entry functions a plan has.
 *
 *     run_ex(in, out, params) {
 *       check the arguments; fill in a `run` on the stack; the body of main }
 *     run(in, out, arena)    = run_ex with one thread and the embedded weights
 *     info()                 = the address of a constant
 *
 * Several plans, or a CPU that has to be asked: choice.c makes them. */
#include "passes/lower/entry/entry.h"

void use_plan(Entry *e, const Plan *p)
{
    e->plan = p;
    e->main = p->tir->funcs[p->tir->nfuncs - 1];
    e->step = 0;
    e->dims = NULL;
    use_dims(e);
    if (e->main->kind != FUNC_HOST || e->main->nparams + p->symbols.n != plan_params(p))
        BUG("the plan of '%s' does not end in its host function", p->name);
}

/* The number of threads of main's first region. */
static const Atom *region_nt(const Stmt *s)
{
    if (s->kind == STMT_REGION)
        return s->u.region.nt;
    for (uint32_t i = 0; i < s->nkids; i++) {
        const Atom *a = region_nt(s->kids[i]);

        if (a)
            return a;
    }
    return NULL;
}

static void fill_run(Entry *e, Code *code, const Buffer *in, const Buffer *out,
                     const Buffer *params, const Prim *arena, const Prim *weights,
                     const Prim *parts, const Buffer *dims)
{
    const Buffer *run = e->run = struct_of(e, "run", "run", SCOPE_STACK);

    add(e, code, stmt_alloc(e->c, run, stmt_seq(e->c, 0, NULL)));
    put(e, code, run, "params", address(e, params));
    put(e, code, run, "inputs", address(e, in));
    put(e, code, run, "outputs", address(e, out));
    put(e, code, run, "arena", arena);
    put(e, code, run, "weights", weights);
    put(e, code, run, "parts", parts);
    put(e, code, run, "phase", status(e, 0));
    put(e, code, run, "stop", status(e, NEVER));
    if (has_fail(e->main->body))
        put(e, code, run, "status", status(e, 0));
    if (dims)
        put(e, code, run, "dims", address(e, dims));
}

void define_run_ex(Entry *e, const char *suffix, bool exported)
{
    Ctx          *c = e->c;
    const Plan   *p = e->plan;
    const Atom   *nt = region_nt(e->main->body);
    int64_t       most = nt && nt->hi > 0 && nt->hi < 1 << 16 ? nt->hi : 1 << 16;
    const Buffer *in = array_of(e, "inputs", DT_HANDLE, p->nin);
    const Buffer *out = array_of(e, "outputs", DT_HANDLE, p->nout);
    const Buffer *params = struct_of(e, "params", "params", SCOPE_ARENA);
    Param         all[3] = {pointer(in), pointer(out), pointer(params)};
    const Buffer *state = NULL, *dims;
    const Prim   *threads, *arena, *weights, *one = num(e, DT_U32, 1);
    Code          code = {0};

    for (uint32_t i = 0; i < 3; i++)
        fail_if(e, &code, is_null(e, address(e, all[i].buffer)), TVMCC_E_NULL);
    check_params(e, &code, params);
    threads = check_arena(e, &code, params, most);
    if (e->plan->device)
        state = check_state(e, &code, params);
    weights = state ? device_memory(e, state, true) : check_weights(e, &code, params);
    arena = state ? device_memory(e, state, false) : get(e, params, "arena");
    check_tensors(e, &code, in, p->nin, p->in, e->main->params);
    check_tensors(e, &code, out, p->nout, p->out, e->main->params + p->nin);
    dims = check_dims(e, &code, in, out, params, threads);

    if (!state && (nt || p->target->no_threads)) /* else all of it in this function */
        threads = prim_select(c, is_null(e, get(e, params, "launch")), one, threads);
    else
        threads = one;
    fill_run(e, &code, in, out, params, arena, weights, threads, dims);
    if (p->mixed) {
        put(e, &code, e->run, "here", get(e, params, "arena"));
        put(e, &code, e->run, "here_weights", check_weights(e, &code, params));
    }
    if (state) {
        const Prim *result = run_steps(e, &code, params, state);
        put_computed(e, &code, dims, out);
        give(e, &code, result);
        define(e, suffix, "run", exported, 3, all, &code);
        return;
    }
    view_main(e, &code, true);
    add(e, &code, body(e, e->main->body));
    if (!nt && !p->target->no_threads) /* regions tell it themselves */
        fail_if(e, &code, prim_not(c, prim_eq(c, get(e, e->run, "stop"), status(e, NEVER))),
                TVMCC_E_CANCELLED);
    put_computed(e, &code, dims, out);
    give(e, &code, status(e, 0));
    define(e, suffix, "run", exported, 3, all, &code);
}

void define_run(Entry *e, uint64_t arena)
{
    Code          code = {0};
    const Buffer *params = cleared(e, &code, "params"), *result;
    const Buffer *in = array_of(e, "inputs", DT_HANDLE, e->plan->nin);
    const Buffer *out = array_of(e, "outputs", DT_HANDLE, e->plan->nout);
    const Buffer *memory = array_of(e, "arena", DT_U8, (int64_t)arena);
    Param         all[3] = {pointer(in), pointer(out), pointer(memory)};
    const Prim   *args[3] = {address(e, in), address(e, out), address(e, params)};

    put(e, &code, params, "struct_bytes", prim_sizeof(e->c, params->record));
    put(e, &code, params, "threads", num(e, DT_U32, 1));
    put(e, &code, params, "arena", address(e, memory));
    put(e, &code, params, "arena_bytes", num(e, DT_U64, (int64_t)arena));
    result = variable(e, &code, "result", DT_I32);
    invoke(e, &code, result, "run", function(e, "_run_ex"), 3, args);
    give(e, &code, value_of(e, result));
    define(e, "_run", "run", true, 3, all, &code);
}

/* One plan: it is the model. */
static void define_alone(Entry *e, const Plan *p)
{
    Code        code = {0};
    bool        device = e->plan->device != NULL;
    const char *run = symbol(e, "_run_ex"), *open = device ? symbol(e, "_open") : NULL,
               *close = device ? symbol(e, "_close") : NULL;

    if (device) {
        define_open_close(e);
        define_device_steps(e);
    }
    define_run_ex(e, "_run_ex", true);
    if (!device) /* without params there is no device */
        define_run(e, p->arena ? most_bytes(p) : p->arena_bytes + p->private_bytes);
    give(e, &code, prim_symbol(e->c, model_info(e, run, open, close, NULL)));
    define(e, "_info", "info", true, 0, NULL, &code);
}

/* The symbol of the weights in the object: another object's, or, where objects are not joined, data
 * of this one. */
static void declare_weights(Entry *e)
{
    Data d = {.name = symbol(e, "_weights"), .exported = true, .align = WEIGHTS_ALIGN};

    if (!e->o->embed_weights || !e->plan->weights_bytes)
        return;
    if (e->o->weights.n && !e->o->extern_weights) {
        DataItem all = {.bytes = e->o->weights};

        d.nitems = 1;
        d.items = DUP_ARRAY(e->c->arena, &all, 1);
    }
    e->weights = d.name;
    vec_push(e->c->arena, &e->data, d);
}

const TirModule *entry_functions(Ctx *c, const Plan *p, const CodegenOptions *o,
                                 const CodegenInfo *info)
{
    Entry e = {.c = c, .o = o, .info = info, .own = ""};

    use_plan(&e, p);
    declare_weights(&e);
    define_steps_of_all(&e);
    if (plan_has_fallbacks(p))
        define_fallbacks(&e, p);
    else if (p->next || p->ndims || (plan_asks_cpu(p) && !p->device))
        define_choice(&e, p);
    else
        define_alone(&e, p);
    if (p->arena)
        define_sizes(&e, p);
    return tirmod_data(c, tirmod_new(c, e.funcs.n, e.funcs.at), e.data.n, e.data.at);
}
