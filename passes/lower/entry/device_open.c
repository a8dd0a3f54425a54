/* <entry>_open and <entry>_close of a model on a device.
 *
 *     open(state, params) {
 *       find the device of our kind among those of params; remember it in the state
 *       load the embedded program, allocate arena and weights, upload the weights
 *       record the launches, where main is copies in, launches, copies out
 *       on failure: close, return the code } */
#include "passes/lower/entry/device.h"

/* ---- open -------------------------------------------------------------------------------------- */

/* for i < n { body } */
static const Atom *counter(Entry *e, int64_t most)
{
    return atom_var(e->c->arith, "i", 0, most > 0 ? most - 1 : 0);
}

static void loop(Entry *e, Code *code, const Atom *i, const Idx *n, Code *inner)
{
    LoopData l = {.var = i, .lo = index_of(e, 0), .extent = n, .kind = LOOP_SEQ};

    add(e, code, stmt_for(e->c, l, code_end(e, inner), NO_LOC));
}

static void clear(Entry *e, Code *code, const Buffer *state)
{
    const Atom *i = counter(e, state_cells(e));
    Code        inner = {0};

    set_cell(e, &inner, state, idx_atom(e->c->arith, i), prim_null(e->c));
    loop(e, code, i, index_of(e, state_cells(e)), &inner);
}

/* The device of our kind; which of two it is nobody says. */
static void find_device(Entry *e, Code *code, const Buffer *params, const Buffer *state)
{
    Ctx          *c = e->c;
    const Atom   *i = counter(e, INT32_MAX);
    const Idx    *n = idx_load(c->arith, get(e, params, "device_count"), 0, INT32_MAX);
    Code          inner = {0}, some = {0}, ours = {0}, second = {0};
    const Buffer *list, *d;
    const Prim   *it;

    list = view_array(e, &inner, "devices", DT_HANDLE, INT32_MAX, get(e, params, "devices"));
    it = cell(e, list, idx_atom(c->arith, i));
    d = view_struct(e, &some, "device", "device", it);
    set_cell(e, &second, state, index_of(e, S_DEVICE), prim_null(c));
    give(e, &second, status(e, TVMCC_E_MISMATCH));
    add(e, &ours,
        stmt_if(c, prim_not(c, is_null(e, at(e, state, S_DEVICE))), code_end(e, &second), NULL));
    set_cell(e, &ours, state, index_of(e, S_DEVICE), it);
    add(e, &some,
        stmt_if(c, prim_eq(c, get(e, d, "kind"), num(e, DT_U32, code_of(e)->kind)),
                code_end(e, &ours), NULL));
    add(e, &inner, stmt_if(c, prim_not(c, is_null(e, it)), code_end(e, &some), NULL));
    loop(e, code, i, n, &inner);
}

static void allocate(Entry *e, Code *code, const Buffer *state, uint64_t bytes, uint32_t to)
{
    const Prim *args[3] = {NULL, num(e, DT_U64, (int64_t)bytes),
                           cell_address(e, state, index_of(e, to))};

    if (bytes)
        need(e, code, "alloc", "alloc", 3, args);
}

/* Up to the last that the plan uses: what comes behind are weights of later targets. */
static uint64_t used_weights(const Plan *p)
{
    uint64_t end = 0;

    for (uint32_t i = 0; i < p->nconsts; i++)
        if (p->consts[i].offset + p->consts[i].bytes > end)
            end = p->consts[i].offset + p->consts[i].bytes;
    end = (end + WEIGHTS_ALIGN - 1) / WEIGHTS_ALIGN * WEIGHTS_ALIGN;
    return end < p->weights_bytes ? end : p->weights_bytes;
}

/* By the hash that the model's info has. */
static void load_weights(Entry *e, Code *code, const Buffer *state, const Prim *weights)
{
    const Buffer *info =
        view_struct(e, code, "info", "weight_info", prim_symbol(e->c, weight_info(e)));
    const Prim *sha = prim_addr(e->c, info, NULL, record_member(info->record, "sha256"));
    const Prim *args[5] = {NULL, sha, weights, num(e, DT_U64, (int64_t)used_weights(e->plan)),
                           cell_address(e, state, index_of(e, S_WEIGHTS))};

    need(e, code, "weights_load", "weights_load", 5, args);
}

/* Launches become a recording, if the device makes any. */
static void record(Entry *e, Code *code, const Buffer *state)
{
    Code          some = {0};
    const Buffer *d = e->dev.device, *params, *run;
    const Prim   *end[2] = {NULL, cell_address(e, state, index_of(e, S_RECORDING))}, *args[1];

    params = cleared(e, &some, "params");
    put(e, &some, params, "state", address(e, state));
    run = cleared(e, &some, "run");
    put(e, &some, run, "params", address(e, params));
    put(e, &some, run, "arena", at(e, state, S_ARENA));
    put(e, &some, run, "weights", at(e, state, S_WEIGHTS));
    need(e, &some, "wait", "record_begin", 1, args);
    args[0] = address(e, run);
    const Buffer *launched = variable(e, &some, "launched", DT_I32);
    invoke(e, &some, launched, "steps", function(e, own(e, "__launches")), 1, args);
    need(e, &some, "record_end", "record_end", 2, end); /* whatever the launches gave */
    pass_on(e, &some, launched);
    add(e, code,
        stmt_if(e->c, prim_not(e->c, is_null(e, get(e, d, "record_begin"))), code_end(e, &some),
                NULL));
}

/* i32 load(state, weights): all that can fail halfway. */
static void define_load(Entry *e)
{
    uint64_t      bytes = e->plan->weights_bytes;
    const Buffer *state = state_buffer(e);
    const Buffer *weights = array_of(e, "weights", DT_U8, (int64_t)bytes);
    Param         params[2] = {pointer(state), pointer(weights)};
    const Prim   *args[3] = {NULL, prim_symbol(e->c, e->dev.program),
                             cell_address(e, state, index_of(e, S_KERNELS))};
    Code          code = {0};

    e->dev.device = view_struct(e, &code, "device", "device", at(e, state, S_DEVICE));
    e->dev.result = variable(e, &code, "result", DT_I32);
    need(e, &code, "program_load", "program_load", 3, args);
    allocate(e, &code, state, code_of(e)->arena_bytes, S_ARENA);
    if (bytes)
        load_weights(e, &code, state, address(e, weights));
    if (e->dev.parts.fixed)
        record(e, &code, state);
    give(e, &code, status(e, 0));
    define(e, own(e, "__load"), "open", false, 2, params, &code);
}

/* Its table has all members that we know of; one without is forgotten, for close could not use it.
 */
static void check_device(Entry *e, Code *code, const Buffer *state)
{
    Code          old = {0};
    const Buffer *d = view_struct(e, code, "found", "device", at(e, state, S_DEVICE));

    set_cell(e, &old, state, index_of(e, S_DEVICE), prim_null(e->c));
    give(e, &old, status(e, TVMCC_E_MISMATCH));
    add(e, code,
        stmt_if(e->c, prim_lt(e->c, get(e, d, "struct_bytes"), prim_sizeof(e->c, d->record)),
                code_end(e, &old), NULL));
}

static void define_open(Entry *e)
{
    const Buffer *state = state_buffer(e), *result;
    const Buffer *params = struct_of(e, "params", "params", SCOPE_ARENA);
    Param         all[2] = {pointer(state), pointer(params)};
    const Prim   *args[2] = {address(e, state), NULL}, *both[2] = {args[0], address(e, params)};
    Code          code = {0}, failed = {0};

    fail_if(e, &code, is_null(e, args[0]), TVMCC_E_NULL);
    fail_if(e, &code, is_null(e, address(e, params)), TVMCC_E_NULL);
    check_params(e, &code, params);
    check_state_bytes(e, &code, params);
    clear(e, &code, state);
    args[1] = check_weights(e, &code, params);
    find_device(e, &code, params, state);
    fail_if(e, &code, is_null(e, at(e, state, S_DEVICE)), TVMCC_E_DEVICE);
    check_device(e, &code, state);
    result = variable(e, &code, "result", DT_I32);
    invoke(e, &code, result, "open", function(e, own(e, "__load")), 2, args);
    invoke(e, &failed, NULL, "close", function(e, own(e, "_close")), 2, both);
    add(e, &code,
        stmt_if(e->c, prim_not(e->c, prim_eq(e->c, value_of(e, result), status(e, 0))),
                code_end(e, &failed), NULL));
    give(e, &code, value_of(e, result));
    define(e, own(e, "_open"), "open", !*e->own, 2, all, &code);
}

/* ---- close ------------------------------------------------------------------------------------- */

static void release(Entry *e, Code *code, const Buffer *state, const Idx *i, const char *member)
{
    const Buffer *d = e->dev.device;
    const Prim   *args[2] = {get(e, d, "self"), cell(e, state, i)};
    Code          some = {0};

    invoke(e, &some, NULL, "free", get(e, d, member), 2, args);
    set_cell(e, &some, state, i, prim_null(e->c));
    add(e, code, stmt_if(e->c, prim_not(e->c, is_null(e, args[1])), code_end(e, &some), NULL));
}

static void define_close(Entry *e)
{
    const Buffer *state = state_buffer(e);
    const Buffer *params = struct_of(e, "params", "params", SCOPE_ARENA);
    Param         all[2] = {pointer(state), pointer(params)};
    Code          code = {0}, open = {0};

    e->dev.device = view_struct(e, &open, "device", "device", at(e, state, S_DEVICE));
    release(e, &open, state, index_of(e, S_RECORDING), "recording_free");
    const Prim *args[3] = {get(e, e->dev.device, "self"), prim_symbol(e->c, e->dev.program),
                           cell_address(e, state, index_of(e, S_KERNELS))};
    invoke(e, &open, NULL, "program_free", get(e, e->dev.device, "program_free"), 3, args);
    release(e, &open, state, index_of(e, S_ARENA), "free");
    release(e, &open, state, index_of(e, S_WEIGHTS), "weights_free");
    set_cell(e, &open, state, index_of(e, S_DEVICE), prim_null(e->c));
    add(e, &code,
        stmt_if(e->c, prim_not(e->c, is_null(e, at(e, state, S_DEVICE))), code_end(e, &open),
                NULL));
    define(e, own(e, "_close"), "close", !*e->own, 2, all, &code);
}

void define_open_close(Entry *e)
{
    define_program(e);
    split_main(e);
    define_close(e);
    define_load(e);
    define_open(e);
}
