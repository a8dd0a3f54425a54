/* One product for several targets, tried in order: devices, and a CPU behind them.
 *
 *     open(state, params) {
 *       for each target: its own open, which fails without the device; the first that does not
 *         is noted in the state, as its info
 *       what the last gave }
 *     run_ex(in, out, params) { the noted info's run; on the CPU no tensor may lie on a device }
 *     close(state, params) { the noted info's close, if it has one }
 *
 * Each target's functions are those of a product for it alone, <entry>__<number>_open and so on. */
#include "passes/lower/entry/device.h"

#include <string.h>

typedef struct {
    Entry       *e;
    uint32_t     n, cells; /* of the state: the most of all */
    const char **info;     /* symbols */
    const char **own;      /* "__0": of each target's functions */
    const bool  *on_cpu;
} Fallbacks;

static const char *info_of(Entry *e, const Plan *p)
{
    const char *run = own(e, "_run_ex");

    if (p->device) {
        define_open_close(e);
        define_device_steps(e);
    }
    define_run_ex(e, run, false);
    return model_info(e, symbol(e, run), p->device ? symbol(e, own(e, "_open")) : NULL,
                      p->device ? symbol(e, own(e, "_close")) : NULL, NULL);
}

/* Of the first targets that cannot be opened, on to the next. */
static void try_target(const Fallbacks *x, uint32_t i, Code *code, const Buffer *state,
                       const Buffer *params, const Buffer *result)
{
    Entry      *e = x->e;
    Ctx        *c = e->c;
    const Prim *args[2] = {address(e, state), address(e, params)}, *none = status(e, 0);
    Code        taken = {0};

    if (!x->on_cpu[i]) {
        const char *open = intern_printf(c->strings, "%s_open", x->own[i]);
        invoke(e, code, result, "open", function(e, open), 2, args);
    } else if (e->any_cpu) {
        Code unfit = {0};

        invoke(e, code, result, "which", function(e, "__which"), 0, NULL);
        set(e, &unfit, result, status(e, TVMCC_E_CPU));
        add(e, code, stmt_if(c, prim_eq(c, value_of(e, result), none), code_end(e, &unfit), NULL));
    } else {
        set(e, code, result, none);
    }
    set_cell(e, &taken, state, index_of(e, S_TAKEN), prim_symbol(c, x->info[i]));
    give(e, &taken, none);
    add(e, code, stmt_if(c, prim_le(c, none, value_of(e, result)), code_end(e, &taken), NULL));
}

static const Buffer *state_of(const Fallbacks *x)
{
    return array_of(x->e, "state", DT_HANDLE, x->cells);
}

static void define_open(const Fallbacks *x)
{
    Entry        *e = x->e;
    const Buffer *state = state_of(x), *result;
    const Buffer *params = struct_of(e, "params", "params", SCOPE_ARENA);
    Param         all[2] = {pointer(state), pointer(params)};
    uint32_t      bytes = x->cells * e->plan->target->pointer_bits / 8;
    Code          code = {0};

    for (uint32_t i = 0; i < 2; i++)
        fail_if(e, &code, is_null(e, address(e, all[i].buffer)), TVMCC_E_NULL);
    check_params(e, &code, params);
    fail_if(e, &code, prim_lt(e->c, get(e, params, "state_bytes"), num(e, DT_U64, bytes)),
            TVMCC_E_MISMATCH);
    set_cell(e, &code, state, index_of(e, S_DEVICE), prim_null(e->c));
    set_cell(e, &code, state, index_of(e, S_TAKEN), prim_null(e->c));
    check_weights(e, &code, params); /* a caller's mistake is no reason to try the next */
    result = variable(e, &code, "result", DT_I32);
    for (uint32_t i = 0; i < x->n; i++)
        try_target(x, i, &code, state, params, result);
    give(e, &code, value_of(e, result));
    define(e, "_open", "open", true, 2, all, &code);
}

static void define_close(const Fallbacks *x)
{
    Entry        *e = x->e;
    Ctx          *c = e->c;
    const Buffer *state = state_of(x), *info;
    const Buffer *params = struct_of(e, "params", "params", SCOPE_ARENA);
    Param         all[2] = {pointer(state), pointer(params)};
    const Prim   *args[2] = {address(e, state), address(e, params)};
    Code          code = {0}, open = {0}, closes = {0};

    info = view_struct(e, &open, "info", "model_info", at(e, state, S_TAKEN));
    invoke(e, &closes, NULL, "close", get(e, info, "close"), 2, args);
    add(e, &open,
        stmt_if(c, prim_not(c, is_null(e, get(e, info, "close"))), code_end(e, &closes), NULL));
    set_cell(e, &open, state, index_of(e, S_TAKEN), prim_null(c));
    add(e, &code,
        stmt_if(c, prim_not(c, is_null(e, at(e, state, S_TAKEN))), code_end(e, &open), NULL));
    define(e, "_close", "close", true, 2, all, &code);
}

static void define_run_taken(const Fallbacks *x)
{
    Entry        *e = x->e;
    const Buffer *params = struct_of(e, "params", "params", SCOPE_ARENA), *state, *info, *result;
    Param         all[3] = {pointer(array_of(e, "inputs", DT_HANDLE, e->plan->nin)),
                            pointer(array_of(e, "outputs", DT_HANDLE, e->plan->nout)), pointer(params)};
    const Prim   *args[3];
    Code          code = {0}, cpu = {0};

    for (uint32_t i = 0; i < 3; i++)
        args[i] = address(e, all[i].buffer);
    fail_if(e, &code, is_null(e, args[2]), TVMCC_E_NULL);
    check_params(e, &code, params);
    fail_if(e, &code, is_null(e, get(e, params, "state")), TVMCC_E_NULL);
    state = view_array(e, &code, "state", DT_HANDLE, x->cells, get(e, params, "state"));
    fail_if(e, &code, is_null(e, at(e, state, S_TAKEN)), TVMCC_E_DEVICE);
    info = view_struct(e, &code, "info", "model_info", at(e, state, S_TAKEN));
    if (x->on_cpu[x->n - 1]) {
        const Prim *taken = get(e, info, "device");
        check_all_here(e, &cpu, params);
        add(e, &code,
            stmt_if(e->c, prim_eq(e->c, taken, num(e, DT_U32, TVMCC_DEVICE_CPU)), code_end(e, &cpu),
                    NULL));
    }
    result = variable(e, &code, "result", DT_I32);
    invoke(e, &code, result, "run", get(e, info, "run"), 3, args);
    give(e, &code, value_of(e, result));
    define(e, "_run_ex", "run", true, 3, all, &code);
}

static const char *targets_of(Ctx *c, const Plan *plans)
{
    StrBuf s = strbuf(c->arena);

    for (const Plan *p = plans; p; p = p->next)
        str_printf(&s, "%s%s", s.n ? "; " : "", p->device ? p->device->target : p->target->text);
    return s.at;
}

void define_fallbacks(Entry *e, const Plan *plans)
{
    const char *all[MAX_TARGETS], *owns[MAX_TARGETS];
    bool        on_cpu[MAX_TARGETS];
    Fallbacks   x = {.e = e, .info = all, .own = owns, .on_cpu = on_cpu};
    Items       infos = {0};
    Code        code = {0};

    for (const Plan *p = plans; p; p = p->next) {
        uint32_t i = x.n++;

        use_plan(e, p);
        e->own = owns[i] = intern_printf(e->c->strings, "__%u", i);
        on_cpu[i] = !p->device;
        all[i] = info_of(e, p);
        item_symbol(e, &infos, all[i]);
        uint32_t cells = p->device ? state_cells(e) : STATE_POINTERS;
        x.cells = cells > x.cells ? cells : x.cells;
    }
    e->own = "";
    e->any_cpu = !e->plan->device && e->plan->target->asks_cpu;
    if (e->any_cpu)
        define_cpu_check(e, e->plan);
    define_open(&x);
    define_close(&x);
    define_run_taken(&x);
    Others o = {.nfallbacks = x.n,
                .device = plans->device->kind,
                .state_cells = x.cells,
                .fallbacks = constant(e, &infos),
                .targets = targets_of(e->c, plans)};
    give(e, &code,
         prim_symbol(e->c, model_info(e, symbol(e, "_run_ex"), symbol(e, "_open"),
                                      symbol(e, "_close"), &o)));
    define(e, "_info", "info", true, 0, NULL, &code);
}
