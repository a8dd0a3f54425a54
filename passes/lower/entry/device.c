/* Models whose kernels run on a device: <entry>_open, <entry>_close, and runs made of launches and
 * copies.
 *
 *     open(state, params) {
 *       find the device of our kind among those of params; remember it in the state
 *       load the embedded program, allocate arena and weights, upload the weights
 *       record the launches, where main is copies in, launches, copies out
 *       on failure: close, return the code }
 *     run_ex(..) {
 *       check the arguments; steps(run); wait for the device, whatever they gave }
 *     steps(run) {
 *       copies in; replay what open recorded, or launches(run); copies out }
 *
 * The state, which the caller keeps between the two, is an array of handles: device, arena,
 * weights, recording, and what the program needs, kernels first.  A run drives the device from the
 * calling thread. */
#include "passes/lower/entry/entry.h"

#include <string.h>

/* Cells of the state. */
enum { S_DEVICE, S_ARENA, S_WEIGHTS, S_RECORDING, S_KERNELS = STATE_POINTERS };

static const DeviceCode *code_of(const Entry *e)
{
    return e->o->device;
}

static uint32_t state_cells(const Entry *e)
{
    return plan_state_cells(code_of(e)->nkernels);
}

static const Buffer *state_buffer(Entry *e)
{
    return array_of(e, "state", DT_HANDLE, state_cells(e));
}

static const Prim *cell_address(Entry *e, const Buffer *b, const Idx *i)
{
    return prim_addr(e->c, b, &i, NULL);
}

static const Idx *index_of(Entry *e, uint32_t i)
{
    return idx_const(e->c->arith, i);
}

static void set_cell(Entry *e, Code *code, const Buffer *b, const Idx *i, const Prim *value)
{
    add(e, code, stmt_store(e->c, b, &i, value));
}

/* ---- calls of the device ----------------------------------------------------------------------- */

/* Returns what the function gave unless that is 0. */
static void pass_on(Entry *e, Code *code, const Buffer *result)
{
    const Prim *failed = prim_not(e->c, prim_eq(e->c, value_of(e, result), status(e, 0)));

    add(e, code, stmt_if(e->c, failed, stmt_return(e->c, value_of(e, result)), NULL));
}

/* result = device->member(self, args[1] ..), which has to succeed. */
static void need(Entry *e, Code *code, const char *sig, const char *member, uint32_t n,
                 const Prim **args)
{
    const Buffer *d = e->dev.device;

    args[0] = get(e, d, "self");
    invoke(e, code, e->dev.result, sig, get(e, d, member), n, args);
    pass_on(e, code, e->dev.result);
}

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

/* ---- the parts of main -------------------------------------------------------------------------- */

static bool is_fixed(const Idx *x)
{
    return !x || idx_is_const(x, NULL);
}

/* A launch is the same in every run. */
static bool is_fixed_launch(const LaunchData *l)
{
    bool fixed = true;

    for (uint32_t i = 0; i < l->nargs; i++)
        fixed = fixed && is_fixed(l->args[i].offset) && is_fixed(l->args[i].scalar);
    for (uint32_t i = 0; i < 3; i++)
        fixed = fixed && is_fixed(l->grid[i]) && is_fixed(l->block[i]);
    return fixed;
}

static void split(Entry *e, const Stmt *s)
{
    const bool in = s->kind == STMT_COPY && s->u.copy.to_device, out = s->kind == STMT_COPY && !in;

    if (s->kind == STMT_SEQ) {
        for (uint32_t i = 0; i < s->nkids; i++)
            split(e, s->kids[i]);
    } else if (in && !e->dev.parts.launches.n && !e->dev.parts.out.n) {
        vec_push(e->c->arena, &e->dev.parts.in, s);
    } else if (s->kind == STMT_LAUNCH && !e->dev.parts.out.n && is_fixed_launch(&s->u.launch)) {
        vec_push(e->c->arena, &e->dev.parts.launches, s);
    } else if (out) {
        vec_push(e->c->arena, &e->dev.parts.out, s);
    } else {
        e->dev.parts.fixed = false;
    }
}

/* Copies in, launches, copies out; `fixed` if main is that, and the launches are alike in all runs.
 */
static void split_main(Entry *e)
{
    memset(&e->dev.parts, 0, sizeof e->dev.parts);
    e->dev.parts.fixed = true;
    split(e, e->main->body);
    e->dev.parts.fixed = e->dev.parts.fixed && e->dev.parts.launches.n;
}

/* ---- open -------------------------------------------------------------------------------------- */

static void clear(Entry *e, Code *code, const Buffer *state)
{
    const Atom *i = counter(e, state_cells(e));
    Code        inner = {0};

    set_cell(e, &inner, state, idx_atom(e->c->arith, i), prim_null(e->c));
    loop(e, code, i, index_of(e, state_cells(e)), &inner);
}

/* The last device of our kind. */
static void find_device(Entry *e, Code *code, const Buffer *params, const Buffer *state)
{
    Ctx          *c = e->c;
    const Atom   *i = counter(e, INT32_MAX);
    const Idx    *n = idx_load(c->arith, get(e, params, "device_count"), 0, INT32_MAX);
    Code          inner = {0}, some = {0}, ours = {0};
    const Buffer *list, *d;
    const Prim   *it;

    list = view_array(e, &inner, "devices", DT_HANDLE, INT32_MAX, get(e, params, "devices"));
    it = cell(e, list, idx_atom(c->arith, i));
    d = view_struct(e, &some, "device", "device", it);
    set_cell(e, &ours, state, index_of(e, S_DEVICE), it);
    add(e, &some,
        stmt_if(c, prim_eq(c, get(e, d, "kind"), num(e, DT_U32, code_of(e)->kind)),
                code_end(e, &ours), NULL));
    add(e, &inner, stmt_if(c, prim_not(c, is_null(e, it)), code_end(e, &some), NULL));
    loop(e, code, i, n, &inner);
}

/* ---- the program ------------------------------------------------------------------------------- */

static const char *parts_of(Entry *e, const DeviceImage *image)
{
    Items all = {0};

    for (uint32_t i = 0; i < image->parts.n; i++) {
        Items bytes = {0};

        item_bytes(e, &bytes, image->parts.at[i].at, image->parts.at[i].n);
        item(e, &bytes, ABI_U8, 0); /* sources are texts */
        item_symbol(e, &all, constant(e, &bytes));
        item(e, &all, ABI_SIZE, (int64_t)image->parts.at[i].n);
    }
    return records(e, &all, "code_part");
}

static const char *codes_of(Entry *e, const DeviceCode *d)
{
    Items all = {0};

    for (uint32_t i = 0; i < d->images.n; i++) {
        const DeviceImage *image = &d->images.at[i];

        item(e, &all, ABI_U32, image->form);
        item(e, &all, ABI_U32, image->parts.n);
        item_symbol(e, &all, text_constant(e, image->target));
        item_symbol(e, &all, text_constant(e, d->options));
        item_symbol(e, &all, parts_of(e, image));
    }
    return records(e, &all, "code");
}

static const char *kernels_of(Entry *e, const DeviceCode *d)
{
    Items all = {0};

    for (uint32_t i = 0; i < d->nkernels; i++) {
        const DeviceKernel *k = &d->kernels[i];

        item_symbol(e, &all, text_constant(e, k->symbol));
        item(e, &all, ABI_U32, k->buffers);
        item(e, &all, ABI_U32, k->value_bytes);
        for (uint32_t t = 0; t < 3; t++)
            item(e, &all, ABI_U32, k->threads[t]);
        item(e, &all, ABI_U32, k->shared_bytes);
    }
    return records(e, &all, "kernel_info");
}

static void define_program(Entry *e)
{
    const DeviceCode *d = code_of(e);
    Items             all = {0};

    item_sizeof(e, &all, "program");
    item(e, &all, ABI_U32, state_cells(e) - S_KERNELS);
    item(e, &all, ABI_U32, d->images.n);
    item(e, &all, ABI_U32, d->nkernels);
    item_symbol(e, &all, codes_of(e, d));
    item_symbol(e, &all, kernels_of(e, d));
    e->dev.program = records(e, &all, "program");
}

/* ---- open, continued ---------------------------------------------------------------------------- */

static void allocate(Entry *e, Code *code, const Buffer *state, uint64_t bytes, uint32_t to)
{
    const Prim *args[3] = {NULL, num(e, DT_U64, (int64_t)bytes),
                           cell_address(e, state, index_of(e, to))};

    if (bytes)
        need(e, code, "alloc", "alloc", 3, args);
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
    invoke(e, &some, launched, "steps", function(e, "__launches"), 1, args);
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
    allocate(e, &code, state, bytes, S_WEIGHTS);
    if (bytes) {
        const Prim *up[5] = {NULL, at(e, state, S_WEIGHTS), num(e, DT_U64, 0), address(e, weights),
                             num(e, DT_U64, (int64_t)bytes)};

        need(e, &code, "upload", "upload", 5, up);
    }
    if (e->dev.parts.fixed)
        record(e, &code, state);
    give(e, &code, status(e, 0));
    define(e, "__load", "open", false, 2, params, &code);
}

static void check_state_bytes(Entry *e, Code *code, const Buffer *params)
{
    uint32_t bytes = state_cells(e) * e->plan->target->pointer_bits / 8;

    fail_if(e, code, prim_lt(e->c, get(e, params, "state_bytes"), num(e, DT_U64, bytes)),
            TVMCC_E_MISMATCH);
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
    invoke(e, &code, result, "open", function(e, "__load"), 2, args);
    invoke(e, &failed, NULL, "close", function(e, "_close"), 2, both);
    add(e, &code,
        stmt_if(e->c, prim_not(e->c, prim_eq(e->c, value_of(e, result), status(e, 0))),
                code_end(e, &failed), NULL));
    give(e, &code, value_of(e, result));
    define(e, "_open", "open", true, 2, all, &code);
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
    release(e, &open, state, index_of(e, S_WEIGHTS), "free");
    set_cell(e, &open, state, index_of(e, S_DEVICE), prim_null(e->c));
    add(e, &code,
        stmt_if(e->c, prim_not(e->c, is_null(e, at(e, state, S_DEVICE))), code_end(e, &open),
                NULL));
    define(e, "_close", "close", true, 2, all, &code);
}

void define_open_close(Entry *e)
{
    define_program(e);
    split_main(e);
    define_close(e);
    define_load(e);
    define_open(e);
}

/* ---- a run ------------------------------------------------------------------------------------- */

const Buffer *check_state(Entry *e, Code *code, const Buffer *params)
{
    const Prim   *state = get(e, params, "state");
    const Buffer *view;

    fail_if(e, code, is_null(e, state), TVMCC_E_NULL);
    check_state_bytes(e, code, params);
    view = view_array(e, code, "state", DT_HANDLE, state_cells(e), state);
    fail_if(e, code, is_null(e, at(e, view, S_DEVICE)), TVMCC_E_DEVICE);
    return view;
}

const Prim *device_memory(Entry *e, const Buffer *state, bool weights)
{
    return at(e, state, weights ? S_WEIGHTS : S_ARENA);
}

/* Both ways out wait; the first code that is not 0 counts. */
void run_steps(Entry *e, Code *code, const Buffer *state)
{
    const Buffer *result = variable(e, code, "result", DT_I32);
    const Buffer *waited = variable(e, code, "waited", DT_I32);
    const Buffer *d = view_struct(e, code, "device", "device", at(e, state, S_DEVICE));
    const Prim   *args[1] = {address(e, e->run)};

    invoke(e, code, result, "steps", function(e, "__steps"), 1, args);
    args[0] = get(e, d, "self");
    invoke(e, code, waited, "wait", get(e, d, "wait"), 1, args);
    pass_on(e, code, result);
    give(e, code, value_of(e, waited));
}

static bool count_args(void *user, const Stmt *s)
{
    uint32_t *n = user;

    if (s->kind == STMT_LAUNCH && s->u.launch.nargs > *n)
        *n = s->u.launch.nargs;
    return true;
}

static const Buffer *on_stack(Entry *e, Code *code, const char *name, DType t, int64_t n,
                              const char *record)
{
    Buffer b = *array_of(e, name, t, n);

    b.scope = SCOPE_STACK;
    b.record = record ? record_find(record) : NULL;
    const Buffer *own = buffer_copy(e->c, &b, b);
    add(e, code, stmt_alloc(e->c, own, stmt_seq(e->c, 0, NULL)));
    return own;
}

static void copies(Entry *e, Code *code, const Code *part)
{
    add(e, code, body(e, stmt_seq(e->c, part->n, part->at)));
}

/* Someone is told when a step begins and ends: the end is that of the kernel. */
static const Prim *is_watched(Entry *e)
{
    return prim_not(e->c, is_null(e, get(e, e->dev.params, "instrument")));
}

/* Copies in; the recording, unless there is none or someone watches the steps; copies out. */
static void replay_main(Entry *e, Code *code)
{
    const Prim *recording = at(e, e->dev.state, S_RECORDING);
    const Prim *plain = prim_or(e->c, is_null(e, recording), is_watched(e));
    const Prim *args[2] = {NULL, recording}, *run[1] = {address(e, e->run)};
    Code        launched = {0}, replayed = {0};

    copies(e, code, &e->dev.parts.in);
    invoke(e, &launched, e->dev.result, "steps", function(e, "__launches"), 1, run);
    pass_on(e, &launched, e->dev.result);
    need(e, &replayed, "replay", "replay", 2, args);
    add(e, code, stmt_if(e->c, plain, code_end(e, &launched), code_end(e, &replayed)));
    copies(e, code, &e->dev.parts.out);
}

/* i32 <suffix>(run), of these statements of main. */
static void define_part(Entry *e, const char *suffix, const Stmt *s, bool tensors, bool replays)
{
    const Buffer *run = struct_of(e, "run", "run", SCOPE_ARENA), *was = e->run;
    Param         p[1] = {pointer(run)};
    uint32_t      most = 1;
    TirVisit      visit = {&most, count_args, NULL, NULL, NULL};
    Code          code = {0};

    stmt_visit(s, &visit);
    e->run = run;
    e->dev.params = view_struct(e, &code, "params", "params", get(e, run, "params"));
    e->dev.state =
        view_array(e, &code, "state", DT_HANDLE, state_cells(e), get(e, e->dev.params, "state"));
    e->dev.device = view_struct(e, &code, "device", "device", at(e, e->dev.state, S_DEVICE));
    e->dev.result = variable(e, &code, "result", DT_I32);
    if (!replays) {
        e->dev.args = on_stack(e, &code, "args", DT_U8, 2 * (int64_t)most, "arg");
        e->dev.values = on_stack(e, &code, "values", DT_I64, most, NULL);
        e->dev.grid = on_stack(e, &code, "grid", DT_U32, 3, NULL);
        e->dev.block = on_stack(e, &code, "block", DT_U32, 3, NULL);
    }
    view_main(e, &code, tensors);
    if (replays)
        replay_main(e, &code);
    else
        add(e, &code, body(e, s));
    give(e, &code, status(e, 0));
    define(e, suffix, "steps", false, 1, p, &code);
    e->run = was;
}

void define_device_steps(Entry *e)
{
    const Stmt *s = e->main->body;

    if (e->dev.parts.fixed)
        define_part(e, "__launches",
                    stmt_seq(e->c, e->dev.parts.launches.n, e->dev.parts.launches.at), false,
                    false);
    define_part(e, "__steps", s, true, e->dev.parts.fixed);
}

static void put_arg(Entry *e, Code *code, uint32_t i, uint32_t kind, const Prim *p)
{
    const Buffer *b = e->dev.args;
    const Idx    *k = index_of(e, i);

    add(e, code, stmt_put(e->c, b, &k, record_member(b->record, "kind"), num(e, DT_U32, kind)));
    add(e, code, stmt_put(e->c, b, &k, record_member(b->record, "bytes"), num(e, DT_U32, 8)));
    add(e, code, stmt_put(e->c, b, &k, record_member(b->record, "p"), p));
}

static uint32_t kernel_index(Entry *e, const char *name)
{
    const DeviceCode *d = code_of(e);

    for (uint32_t i = 0; i < d->nkernels; i++)
        if (!strcmp(d->kernels[i].func, name))
            return i;
    BUG("@%s launches @%s, which the device's code lacks", e->main->name, name);
}

static void set_dims(Entry *e, Code *code, const Buffer *b, const Idx *const *dims)
{
    for (uint32_t i = 0; i < 3; i++)
        set_cell(e, code, b, index_of(e, i),
                 prim_index(e->c, DT_U32, dims[i] ? dims[i] : index_of(e, 1)));
}

static const Idx *offset_of(Entry *e, const Arg *a)
{
    return a->offset ? a->offset : index_of(e, 0);
}

const Stmt *device_launch(Entry *e, const Stmt *s)
{
    const LaunchData *l = &s->u.launch;
    const Prim       *step[4] = {address(e, e->run), num(e, DT_U32, e->step++), num(e, DT_U32, 0),
                                 status(e, 0)};
    const Prim       *alone[1];
    Code              code = {0}, watched = {0};
    uint32_t          n = 0;

    invoke(e, &code, e->dev.result, "begin", function(e, "__begin"), 4, step);
    fail_if(e, &code, prim_eq(e->c, value_of(e, e->dev.result), status(e, 0)), TVMCC_E_CANCELLED);
    for (uint32_t i = 0; i < l->nargs; i++) {
        const Arg *a = &l->args[i];
        const Idx *k = index_of(e, i);

        set_cell(e, &code, e->dev.values, k,
                 prim_index(e->c, DT_I64, a->buffer ? offset_of(e, a) : a->scalar));
        if (a->buffer)
            put_arg(e, &code, n++, TVMCC_ARG_BUFFER, address(e, a->buffer));
        put_arg(e, &code, n++, TVMCC_ARG_VALUE, cell_address(e, e->dev.values, k));
    }
    set_dims(e, &code, e->dev.grid, l->grid);
    set_dims(e, &code, e->dev.block, l->block);
    const Prim *args[6] = {NULL,
                           at(e, e->dev.state, S_KERNELS + kernel_index(e, l->kernel)),
                           address(e, e->dev.grid),
                           address(e, e->dev.block),
                           address(e, e->dev.args),
                           num(e, DT_U32, n)};
    need(e, &code, "launch_kernel", "launch", 6, args);
    need(e, &watched, "wait", "wait", 1, alone);
    add(e, &code, stmt_if(e->c, is_watched(e), code_end(e, &watched), NULL));
    invoke(e, &code, NULL, "end", function(e, "__end"), 3, step);
    return code_end(e, &code);
}

const Stmt *device_copy(Entry *e, const Stmt *s)
{
    const CopyData *d = &s->u.copy;
    const Arg *here = d->to_device ? &d->src : &d->dst, *there = d->to_device ? &d->dst : &d->src;
    Code       code = {0};
    const Buffer *bytes = view_array(e, &code, "bytes", DT_U8, INT32_MAX, address(e, here->buffer));
    const Prim   *host = cell_address(e, bytes, offset_of(e, here));
    const Prim   *memory = address(e, there->buffer);
    const Prim   *offset = prim_index(e->c, DT_U64, offset_of(e, there));
    const Prim   *up[5] = {NULL, memory, offset, host, num(e, DT_U64, d->bytes)};
    const Prim   *down[5] = {NULL, host, memory, offset, num(e, DT_U64, d->bytes)};

    if (d->to_device)
        need(e, &code, "upload", "upload", 5, up);
    else
        need(e, &code, "download", "download", 5, down);
    return code_end(e, &code);
}
