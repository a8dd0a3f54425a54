/* Models whose kernels run on a device: the state between runs, and runs made of launches and
 * copies.
 *
 *     run_ex(..) {
 *       check the arguments; steps(run); wait for the device, whatever they gave }
 *     steps(run) {
 *       copies in; replay what open recorded, or launches(run); copies out }
 *
 * The state, which the caller keeps between open and close (device_open.c), is an array of handles:
 * device, arena, weights, recording, and what the program needs, kernels first.  A run drives the
 * device from the calling thread. */
#include "passes/lower/entry/device.h"

#include <string.h>

/* ---- the state --------------------------------------------------------------------------------- */

const DeviceCode *code_of(const Entry *e)
{
    return e->plan->device;
}

uint32_t state_cells(const Entry *e)
{
    return plan_state_cells(code_of(e)->nkernels);
}

const Buffer *state_buffer(Entry *e)
{
    return array_of(e, "state", DT_HANDLE, state_cells(e));
}

const Prim *cell_address(Entry *e, const Buffer *b, const Idx *i)
{
    return prim_addr(e->c, b, &i, NULL);
}

const Idx *index_of(Entry *e, uint32_t i)
{
    return idx_const(e->c->arith, i);
}

void set_cell(Entry *e, Code *code, const Buffer *b, const Idx *i, const Prim *value)
{
    add(e, code, stmt_store(e->c, b, &i, value));
}

void check_state_bytes(Entry *e, Code *code, const Buffer *params)
{
    uint32_t bytes = state_cells(e) * e->plan->target->pointer_bits / 8;

    fail_if(e, code, prim_lt(e->c, get(e, params, "state_bytes"), num(e, DT_U64, bytes)),
            TVMCC_E_MISMATCH);
}

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

/* ---- calls of the device ----------------------------------------------------------------------- */

void pass_on(Entry *e, Code *code, const Buffer *result)
{
    const Prim *failed = prim_not(e->c, prim_eq(e->c, value_of(e, result), status(e, 0)));

    add(e, code, stmt_if(e->c, failed, stmt_return(e->c, value_of(e, result)), NULL));
}

void need(Entry *e, Code *code, const char *sig, const char *member, uint32_t n, const Prim **args)
{
    const Buffer *d = e->dev.device;

    args[0] = get(e, d, "self");
    invoke(e, code, e->dev.result, sig, get(e, d, member), n, args);
    pass_on(e, code, e->dev.result);
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

void split_main(Entry *e)
{
    memset(&e->dev.parts, 0, sizeof e->dev.parts);
    e->dev.parts.fixed = true;
    split(e, e->main->body);
    e->dev.parts.fixed = e->dev.parts.fixed && e->dev.parts.launches.n;
}

/* ---- a run ------------------------------------------------------------------------------------- */

/* A run that is not to wait begins what it asked for; one that failed waits all the same.  The
 * first code that is not 0 counts. */
const Prim *run_steps(Entry *e, Code *code, const Buffer *params, const Buffer *state)
{
    Ctx          *c = e->c;
    const Buffer *result = variable(e, code, "result", DT_I32);
    const Buffer *waited = variable(e, code, "waited", DT_I32);
    const Buffer *d = view_struct(e, code, "device", "device", at(e, state, S_DEVICE));
    const Prim   *args[1] = {address(e, e->run)}, *none = status(e, 0);
    const Prim   *flags = newer_param(e, code, params, "flags", DT_U32);
    const Prim   *async = prim_bin(c, PRIM_AND, flags, num(e, DT_U32, TVMCC_RUN_ASYNC));
    Code          begun = {0}, wait = {0}, busy = {0};

    invoke(e, code, result, "steps", function(e, own(e, "__steps")), 1, args);
    args[0] = get(e, d, "self");
    invoke(e, &wait, waited, "wait", get(e, d, "wait"), 1, args);
    invoke(e, &begun, waited, "wait", get(e, d, "poll"), 1, args);
    set(e, &busy, waited, none);
    add(e, &begun, stmt_if(c, prim_lt(c, none, value_of(e, waited)), code_end(e, &busy), NULL));
    const Prim *begin = prim_and(c, prim_eq(c, value_of(e, result), none),
                                 prim_not(c, prim_eq(c, async, num(e, DT_U32, 0))));
    add(e, code, stmt_if(c, begin, code_end(e, &begun), code_end(e, &wait)));
    pass_on(e, code, result);
    return value_of(e, waited);
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
    invoke(e, &launched, e->dev.result, "steps", function(e, own(e, "__launches")), 1, run);
    pass_on(e, &launched, e->dev.result);
    need(e, &replayed, "replay", "replay", 2, args);
    add(e, code, stmt_if(e->c, plain, code_end(e, &launched), code_end(e, &replayed)));
    copies(e, code, &e->dev.parts.out);
}

static const Buffer *view_places(Entry *e, Code *code, const Buffer *params)
{
    Buffer        all = *array_of(e, "places", DT_U8, INT32_MAX);
    const Buffer *b;

    all.record = record_find("place");
    b = buffer_copy(e->c, &all, all);
    add(e, code,
        stmt_view(e->c, b, newer_param(e, code, params, "places", DT_HANDLE),
                  stmt_seq(e->c, 0, NULL)));
    return b;
}

static const Prim *place_of(Entry *e, uint32_t tensor, const char *member)
{
    const Idx *i = index_of(e, tensor);

    return prim_member(e->c, e->dev.places, &i, record_member(e->dev.places->record, member));
}

/* Does a tensor of the caller lie in the device's memory? */
static const Prim *is_placed(Entry *e, Code *code, uint32_t tensor)
{
    Ctx          *c = e->c;
    const Buffer *placed = variable(e, code, "placed", DT_BOOL);
    const Prim   *kind = place_of(e, tensor, "kind");
    const Prim   *here = prim_eq(c, kind, num(e, DT_U32, TVMCC_DEVICE_CPU));
    const Prim   *ours = prim_eq(c, kind, num(e, DT_U32, code_of(e)->kind));
    Code          some = {0};

    set(e, code, placed, num(e, DT_BOOL, 0));
    set(e, &some, placed, ours);
    fail_if(e, &some, prim_not(c, prim_or(c, here, ours)), TVMCC_E_DEVICE);
    add(e, code,
        stmt_if(c, prim_not(c, is_null(e, address(e, e->dev.places))), code_end(e, &some), NULL));
    return value_of(e, placed);
}

typedef struct {
    const Buffer *b;
    bool          found;
} Touched;

static bool find_touched(void *user, const Stmt *s)
{
    Touched *x = user;

    for (uint32_t i = 0; s->kind == STMT_CALL && i < s->u.call.nargs; i++)
        x->found = x->found || s->u.call.args[i].buffer == x->b;
    return true;
}

/* Tensors that kernels of the host read or write are the host's: TVMCC_E_DEVICE. */
static void check_touched_here(Entry *e, Code *code)
{
    for (uint32_t i = 0; e->plan->mixed && i < e->plan->nin + e->plan->nout; i++) {
        Touched x = {e->main->params[i].buffer, false};

        stmt_visit(e->main->body, &(TirVisit){.user = &x, .enter = find_touched});
        if (x.found)
            fail_if(e, code, is_placed(e, code, i), TVMCC_E_DEVICE);
    }
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
    if (tensors)
        e->dev.places = view_places(e, &code, e->dev.params);
    if (!replays) {
        e->dev.args = on_stack(e, &code, "args", DT_U8, 2 * (int64_t)most, "arg");
        e->dev.values = on_stack(e, &code, "values", DT_I64, most, NULL);
        e->dev.grid = on_stack(e, &code, "grid", DT_U32, 3, NULL);
        e->dev.block = on_stack(e, &code, "block", DT_U32, 3, NULL);
    }
    if (tensors)
        check_touched_here(e, &code);
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
        define_part(e, own(e, "__launches"),
                    stmt_seq(e->c, e->dev.parts.launches.n, e->dev.parts.launches.at), false,
                    false);
    define_part(e, own(e, "__steps"), s, true, e->dev.parts.fixed);
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

/* Which of the caller's tensors a buffer of main is; false: none, a condition. */
static bool find_tensor(const Entry *e, const Buffer *b, uint32_t *tensor)
{
    for (*tensor = 0; *tensor < e->plan->nin + e->plan->nout; ++*tensor)
        if (e->main->params[*tensor].buffer == b)
            return true;
    return false;
}

/* No tensor of the caller lies on a device: TVMCC_E_DEVICE. */
void check_all_here(Entry *e, Code *code, const Buffer *params)
{
    Ctx *c = e->c;
    Code some = {0};

    e->dev.places = view_places(e, code, params);
    for (uint32_t i = 0; i < e->plan->nin + e->plan->nout; i++) {
        const Prim *here = prim_eq(c, place_of(e, i, "kind"), num(e, DT_U32, TVMCC_DEVICE_CPU));
        fail_if(e, &some, prim_not(c, here), TVMCC_E_DEVICE);
    }
    add(e, code,
        stmt_if(c, prim_not(c, is_null(e, address(e, e->dev.places))), code_end(e, &some), NULL));
}

/* Between a tensor of the caller and the arena, wherever that tensor lies. */
static void copy_tensor(Entry *e, Code *code, const CopyData *d, uint32_t tensor, Code *host)
{
    Ctx        *c = e->c;
    const Arg  *theirs = d->to_device ? &d->src : &d->dst;
    const Arg  *ours = d->to_device ? &d->dst : &d->src;
    Code        there = {0};
    const Prim *placed = is_placed(e, code, tensor);
    const Prim *at =
        prim_add(c, place_of(e, tensor, "offset"), prim_index(c, DT_U64, offset_of(e, theirs)));
    const Prim *their[2] = {address(e, theirs->buffer), at};
    const Prim *our[2] = {address(e, ours->buffer), prim_index(c, DT_U64, offset_of(e, ours))};
    const Prim *const *to = d->to_device ? our : their, *const *from = d->to_device ? their : our;
    const Prim        *args[6] = {NULL,    to[0],   to[1],
                                  from[0], from[1], prim_index(e->c, DT_U64, d->bytes)};

    need(e, &there, "copy", "copy", 6, args);
    add(e, code, stmt_if(c, placed, code_end(e, &there), code_end(e, host)));
}

/* Outputs need not be there before the run's end, a condition has to be at once. */
const Stmt *device_copy(Entry *e, const Stmt *s)
{
    const CopyData *d = &s->u.copy;
    const Arg *here = d->to_device ? &d->src : &d->dst, *there = d->to_device ? &d->dst : &d->src;
    uint32_t   tensor;
    bool       is_tensor = find_tensor(e, here->buffer, &tensor);
    Code       code = {0}, host = {0};
    const Buffer *bytes = view_array(e, &host, "bytes", DT_U8, INT32_MAX, address(e, here->buffer));
    const Prim   *cell = cell_address(e, bytes, offset_of(e, here));
    const Prim   *memory = address(e, there->buffer);
    const Prim   *offset = prim_index(e->c, DT_U64, offset_of(e, there));
    const Prim   *up[5] = {NULL, memory, offset, cell, prim_index(e->c, DT_U64, d->bytes)};
    const Prim   *down[5] = {NULL, cell, memory, offset, prim_index(e->c, DT_U64, d->bytes)};

    if (d->to_device)
        need(e, &host, "upload", "upload", 5, up);
    else
        need(e, &host, "download", is_tensor ? "download_later" : "download", 5, down);
    if (!is_tensor)
        return code_end(e, &host);
    copy_tensor(e, &code, d, tensor, &host);
    return code_end(e, &code);
}
