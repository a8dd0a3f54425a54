/* Models whose kernels run on a device: <entry>_open, <entry>_close, and runs made of launches and
 * copies.
 *
 *     open(state, params) {
 *       find the device of our kind among those of params; remember it in the state
 *       load the embedded code, make its kernels, allocate arena and weights, upload the weights
 *       on failure: close, return the code }
 *     run_ex(..) {
 *       check the arguments; steps(run); wait for the device, whatever they gave }
 *
 * The state, which the caller keeps between the two, is an array of handles: device, module, arena,
 * weights, kernels.  A run drives the device from the calling thread. */
#include "passes/lower/entry/entry.h"

#include <string.h>

/* Cells of the state. */
enum { S_DEVICE, S_MODULE, S_ARENA, S_WEIGHTS, S_KERNELS = STATE_POINTERS };

static const DeviceCode *code_of(const Entry *e)
{
    return e->o->device;
}

static uint32_t state_cells(const Entry *e)
{
    return S_KERNELS + code_of(e)->nkernels;
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

static const Idx *kernel_cell(Entry *e, const Atom *i)
{
    return idx_addc(e->c->arith, idx_atom(e->c->arith, i), S_KERNELS);
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

static const char *names_table(Entry *e)
{
    const DeviceCode *d = code_of(e);
    Items             all = {0};

    for (uint32_t i = 0; i < d->nkernels; i++)
        item_symbol(e, &all, text_constant(e, d->symbols[i]));
    return constant(e, &all);
}

static const char *code_constant(Entry *e)
{
    Items all = {0};

    item_bytes(e, &all, code_of(e)->code.at, code_of(e)->code.n);
    item(e, &all, ABI_U8, 0); /* sources are texts */
    return constant(e, &all);
}

static void make_kernels(Entry *e, Code *code, const Buffer *state)
{
    uint32_t      n = code_of(e)->nkernels;
    const Atom   *i = counter(e, n);
    const Prim   *args[4] = {NULL, at(e, state, S_MODULE)};
    Code          inner = {0};
    const Buffer *names;

    if (!n)
        return;
    names = view_array(e, &inner, "names", DT_HANDLE, n, prim_symbol(e->c, names_table(e)));
    args[2] = cell(e, names, idx_atom(e->c->arith, i));
    args[3] = cell_address(e, state, kernel_cell(e, i));
    need(e, &inner, "kernel", "kernel", 4, args);
    loop(e, code, i, index_of(e, n), &inner);
}

static void allocate(Entry *e, Code *code, const Buffer *state, uint64_t bytes, uint32_t to)
{
    const Prim *args[3] = {NULL, num(e, DT_U64, (int64_t)bytes),
                           cell_address(e, state, index_of(e, to))};

    if (bytes)
        need(e, code, "alloc", "alloc", 3, args);
}

/* i32 load(state, weights): all that can fail halfway. */
static void define_load(Entry *e)
{
    const DeviceCode *d = code_of(e);
    uint64_t          bytes = e->plan->weights_bytes;
    const Buffer     *state = state_buffer(e);
    const Buffer     *weights = array_of(e, "weights", DT_U8, (int64_t)bytes);
    Param             params[2] = {pointer(state), pointer(weights)};
    const Prim       *args[6] = {NULL,
                                 num(e, DT_U32, d->form),
                                 prim_symbol(e->c, code_constant(e)),
                                 num(e, DT_U64, (int64_t)d->code.n),
                                 prim_symbol(e->c, text_constant(e, d->options)),
                                 cell_address(e, state, index_of(e, S_MODULE))};
    Code              code = {0};

    e->dev.device = view_struct(e, &code, "device", "device", at(e, state, S_DEVICE));
    e->dev.result = variable(e, &code, "result", DT_I32);
    need(e, &code, "module_load", "module_load", 6, args);
    make_kernels(e, &code, state);
    allocate(e, &code, state, d->arena_bytes, S_ARENA);
    allocate(e, &code, state, bytes, S_WEIGHTS);
    if (bytes) {
        const Prim *up[5] = {NULL, at(e, state, S_WEIGHTS), num(e, DT_U64, 0), address(e, weights),
                             num(e, DT_U64, (int64_t)bytes)};

        need(e, &code, "upload", "upload", 5, up);
    }
    give(e, &code, status(e, 0));
    define(e, "__load", "open", false, 2, params, &code);
}

static void check_state_bytes(Entry *e, Code *code, const Buffer *params)
{
    uint32_t bytes = state_cells(e) * e->plan->target->pointer_bits / 8;

    fail_if(e, code, prim_lt(e->c, get(e, params, "state_bytes"), num(e, DT_U64, bytes)),
            TVMCC_E_MISMATCH);
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
    const Atom   *i = counter(e, code_of(e)->nkernels);
    Code          code = {0}, open = {0}, inner = {0};

    e->dev.device = view_struct(e, &open, "device", "device", at(e, state, S_DEVICE));
    release(e, &inner, state, kernel_cell(e, i), "kernel_free");
    if (code_of(e)->nkernels)
        loop(e, &open, i, index_of(e, code_of(e)->nkernels), &inner);
    release(e, &open, state, index_of(e, S_MODULE), "module_free");
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

void define_device_steps(Entry *e)
{
    const Buffer *run = struct_of(e, "run", "run", SCOPE_ARENA), *params, *was = e->run;
    Param         p[1] = {pointer(run)};
    uint32_t      most = 1;
    TirVisit      visit = {&most, count_args, NULL, NULL, NULL};
    Code          code = {0};

    stmt_visit(e->main->body, &visit);
    e->run = run;
    params = view_struct(e, &code, "params", "params", get(e, run, "params"));
    e->dev.state =
        view_array(e, &code, "state", DT_HANDLE, state_cells(e), get(e, params, "state"));
    e->dev.device = view_struct(e, &code, "device", "device", at(e, e->dev.state, S_DEVICE));
    e->dev.args = on_stack(e, &code, "args", DT_U8, 2 * (int64_t)most, "arg");
    e->dev.values = on_stack(e, &code, "values", DT_I64, most, NULL);
    e->dev.grid = on_stack(e, &code, "grid", DT_U32, 3, NULL);
    e->dev.block = on_stack(e, &code, "block", DT_U32, 3, NULL);
    e->dev.result = variable(e, &code, "result", DT_I32);
    view_main(e, &code);
    add(e, &code, body(e, e->main->body));
    give(e, &code, status(e, 0));
    define(e, "__steps", "steps", false, 1, p, &code);
    e->run = was;
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
        if (!strcmp(d->kernels[i], name))
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
    Code              code = {0};
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
