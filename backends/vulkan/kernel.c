/* A device function as an entry point of a SPIR-V module: its parameters, and statements as blocks
 * of structured control flow.
 *
 *     for %i < 8 { .. }     header: %i = phi(0, %i + 1); merge   test: %i < 8 ? body : merge
 *                           body: ..   next: %i + 1, header      merge:
 *
 * Variables are variables of the function, which every driver turns into values. */
#include "backends/vulkan/vulkan.h"

#include "backends/common/plain.h"
#include "ir/tir/intrin.h"

/* ---- instructions -------------------------------------------------------------------------------- */

uint32_t emit_op(Gen *g, SpvOp op, uint32_t type, uint32_t n, const uint32_t *operands)
{
    uint32_t *words = NEW_ARRAY(g->c->arena, uint32_t, n + 2), id = spv_id(g->s);

    words[0] = type;
    words[1] = id;
    for (uint32_t i = 0; i < n; i++)
        words[2 + i] = operands[i];
    spv_put(g->s, &g->code, op, n + 2, words);
    return id;
}

void emit_label(Gen *g, uint32_t label)
{
    PUT(g->s, &g->code, OpLabel, label);
    g->block = label;
}

void emit_branch(Gen *g, uint32_t label)
{
    PUT(g->s, &g->code, OpBranch, label);
}

uint32_t emit_fail(Gen *g, const char *what)
{
    if (!g->failed)
        error_at(g->c, E_CODEGEN, g->f->loc, "SPIR-V for Vulkan has no %s, which kernel '%s' uses",
                 what, g->f->name);
    g->failed = true;
    return 0;
}

/* ---- statements ---------------------------------------------------------------------------------- */

static void stmt(Gen *g, const Stmt *s);

/* A block of its own, which goes on to `done`. */
static void block(Gen *g, const Stmt *s, uint32_t label, uint32_t done)
{
    GenMark m = emit_mark(g);

    emit_label(g, label);
    stmt(g, s);
    emit_drop(g, m);
    emit_branch(g, done);
}

static void branch_if(Gen *g, uint32_t cond, const Stmt *then, const Stmt *other)
{
    uint32_t yes = spv_id(g->s), no = other ? spv_id(g->s) : 0, done = spv_id(g->s);

    PUT(g->s, &g->code, OpSelectionMerge, done, 0);
    PUT(g->s, &g->code, OpBranchConditional, cond, yes, other ? no : done);
    block(g, then, yes, done);
    if (other)
        block(g, other, no, done);
    emit_label(g, done);
}

static void bound(Gen *g, const Stmt *s)
{
    const LoopData *l = &s->u.loop;
    uint32_t        at = g->thread[l->bind], v = at, end;

    emit_fresh(g);
    if (!idx_is_const(l->lo, NULL) || l->lo->lo)
        v = OP2(g, OpIAdd, spv_type(g->s, g->index), at, emit_index(g, l->lo));
    emit_know(g, ATOM_KEY(l->var), v);
    if (l->extent == g->axis[l->bind]) {
        stmt(g, s->kids[0]);
        return;
    }
    end = emit_index(g, l->extent); /* the launch is sized by another loop */
    branch_if(g, OP2(g, OpSLessThan, spv_type(g->s, DT_BOOL), at, end), s->kids[0], NULL);
}

static void loop(Gen *g, const Stmt *s)
{
    const LoopData *l = &s->u.loop;
    uint32_t        header = spv_id(g->s), test = spv_id(g->s), body = spv_id(g->s);
    uint32_t        again = spv_id(g->s), done = spv_id(g->s), next = spv_id(g->s), v;
    uint32_t        t = spv_type(g->s, g->index), one = spv_int(g->s, g->index, 1);

    emit_fresh(g);
    uint32_t lo = emit_index(g, l->lo), end;
    end = emit_index(g, idx_add(g->c->arith, l->lo, l->extent));
    uint32_t before = g->block;
    emit_branch(g, header);
    emit_label(g, header);
    v = emit_op(g, OpPhi, t, 4, (uint32_t[]){lo, before, next, again});
    emit_know(g, ATOM_KEY(l->var), v);
    if (l->rounds && idx_is_const(l->extent, NULL) && l->rounds >= l->extent->lo)
        PUT(g->s, &g->code, OpLoopMerge, done, again, SpvUnroll);
    else if (l->rounds > 1)
        PUT(g->s, &g->code, OpLoopMerge, done, again, SpvPartialCount, l->rounds);
    else
        PUT(g->s, &g->code, OpLoopMerge, done, again, 0);
    emit_branch(g, test);
    emit_label(g, test);
    uint32_t goes_on = OP2(g, OpSLessThan, spv_type(g->s, DT_BOOL), v, end);
    PUT(g->s, &g->code, OpBranchConditional, goes_on, body, done);
    block(g, s->kids[0], body, again);
    emit_label(g, again);
    PUT(g->s, &g->code, OpIAdd, t, next, v, one);
    emit_branch(g, header);
    emit_label(g, done);
}

static void loop_while(Gen *g, const Stmt *s)
{
    uint32_t header = spv_id(g->s), test = spv_id(g->s), body = spv_id(g->s);
    uint32_t again = spv_id(g->s), done = spv_id(g->s);
    GenMark  m;

    emit_fresh(g);
    m = emit_mark(g);
    emit_branch(g, header);
    emit_label(g, header);
    PUT(g->s, &g->code, OpLoopMerge, done, again, 0);
    emit_branch(g, test);
    emit_label(g, test);
    uint32_t cond = emit_prim(g, s->u.cond);
    PUT(g->s, &g->code, OpBranchConditional, cond, body, done);
    block(g, s->kids[0], body, again);
    emit_drop(g, m);
    emit_label(g, again);
    emit_branch(g, header);
    emit_label(g, done);
}

static void alloc(Gen *g, const Stmt *s)
{
    const Buffer *b = s->u.buffer;
    SpvEnum       storage = b->scope == SCOPE_SHARED ? SpvWorkgroup : SpvFunction;
    int64_t       elems = 1, origin = 0;
    uint32_t      type, id;

    if (b->scope == SCOPE_FRAG) {
        emit_matrices(g, b);
        stmt(g, s->kids[0]);
        return;
    }
    if (b->dtype.lanes > 1 && (b->ndim || storage != SpvFunction))
        emit_fail(g, "arrays of vectors");
    if (b->ndim && !buffer_size(g->c, b, &elems, &origin))
        emit_fail(g, "memory of a size that only a run knows");
    if (g->failed)
        return;
    type = b->dtype.lanes > 1
               ? spv_vector(g->s, spv_type(g->s, dtype_lanes(b->dtype, 1)), b->dtype.lanes)
               : spv_cell(g->s, b->dtype, storage);
    const int64_t cell = panel_numbers(g, b);
    if (cell > 1)
        type = spv_vector(g->s, type, (uint32_t)cell);
    if (b->ndim)
        type = spv_array(g->s, type, elems > 0 ? (elems + cell - 1) / cell : 1);
    if (storage == SpvWorkgroup) {
        id = spv_variable(g->s, storage, type);
        vec_push(g->c->arena, &g->interface, id);
    } else {
        id = spv_id(g->s);
        PUT(g->s, &g->vars, OpVariable, spv_pointer(g->s, storage, type), id, (uint32_t)storage);
    }
    emit_know(g, BUFFER_KEY(b), id);
    stmt(g, s->kids[0]);
}

/* The threads of a block meet, and see what the others have put in shared memory. */
static void barrier(Gen *g)
{
    enum {
        WORKGROUP = 2,
        ACQUIRE_RELEASE = 8,
        WORKGROUP_MEMORY = 0x100,
        AVAILABLE_VISIBLE = 0x2000 | 0x4000 /* which Vulkan's memory model wants said */
    };
    uint32_t scope = spv_int(g->s, DT_U32, WORKGROUP);

    PUT(g->s, &g->code, OpControlBarrier, scope, scope,
        spv_int(g->s, DT_U32,
                ACQUIRE_RELEASE | WORKGROUP_MEMORY | (g->s->matrices ? AVAILABLE_VISIBLE : 0)));
}

static void store(Gen *g, const StoreData *d)
{
    const MatrixOp *op = matrix_op(g->matrices, d);

    emit_fresh(g);
    if (op)
        emit_matrix_op(g, op);
    else
        emit_store(g, d);
}

static void stmt(Gen *g, const Stmt *s)
{
    if (g->failed)
        return;
    switch (s->kind) {
    case STMT_SEQ:
        for (uint32_t i = 0; i < s->nkids; i++)
            stmt(g, s->kids[i]);
        return;
    case STMT_FOR:
        if (s->u.loop.bind)
            bound(g, s);
        else
            loop(g, s);
        return;
    case STMT_IF:
        emit_fresh(g);
        branch_if(g, emit_prim(g, s->u.cond), s->kids[0], s->nkids > 1 ? s->kids[1] : NULL);
        return;
    case STMT_WHILE: loop_while(g, s); return;
    case STMT_ALLOC: alloc(g, s); return;
    case STMT_STORE: store(g, &s->u.store); return;
    case STMT_PREFETCH: return; /* a hint: devices hide what they wait for */
    case STMT_BARRIER: barrier(g); return;
    case STMT_AWAIT: return; /* copies are made where they stand */
    case STMT_RETURN:
        PUT(g->s, &g->code, OpReturn);
        emit_label(g, spv_id(g->s)); /* of what is never run */
        return;
    case STMT_BLOCK:
    case STMT_CALL:
    case STMT_REGION:
    case STMT_LAUNCH:
    case STMT_COPY:
    case STMT_VIEW:
    case STMT_INVOKE:
    case STMT_SWITCH:
    case STMT_FAIL: BUG("SPIR-V: a statement of kind %d in '%s'", (int)s->kind, g->f->name);
    }
}

/* ---- the function -------------------------------------------------------------------------------- */

/* Member i of a table. */
static uint32_t member(Gen *g, SpvEnum storage, uint32_t table, uint32_t i)
{
    uint32_t address = spv_address(g->s), at;

    at =
        OP2(g, OpAccessChain, spv_pointer(g->s, storage, address), table, spv_int(g->s, DT_I32, i));
    return emit_op(g, OpLoad, address, storage == SpvPushConstant ? 1 : 3,
                   (uint32_t[]){at, SpvAligned, 8});
}

/* What it is the address of. */
static uint32_t pointed(Gen *g, SpvEnum storage, uint32_t type, uint32_t address)
{
    return OP1(g, OpBitcast, spv_pointer(g->s, storage, type), address);
}

/* A member that is a size: two words, the lower one first. */
static uint32_t size(Gen *g, uint32_t words)
{
    if (g->narrow)
        words = OP2(g, OpCompositeExtract, spv_type(g->s, DT_U32), words, 0);
    return OP1(g, OpBitcast, spv_type(g->s, g->index), words);
}

/* Addresses of buffers and sizes, 8 bytes each: push constants, or in a table that the only one is
 * the address of. */
static void params(Gen *g)
{
    uint32_t n = g->f->nparams, push, table;
    bool     direct = n * 8 <= PUSH_BYTES;
    SpvEnum  storage = direct ? SpvPushConstant : SpvPhysicalStorageBuffer;

    if (!n)
        return;
    table = push = spv_variable(g->s, SpvPushConstant, spv_table(g->s, direct ? n : 1));
    vec_push(g->c->arena, &g->interface, push);
    if (!direct)
        table = pointed(g, storage, spv_table(g->s, n), member(g, SpvPushConstant, push, 0));
    for (uint32_t i = 0; i < n; i++) {
        const Param *p = &g->f->params[i];
        uint32_t     v = member(g, storage, table, i);

        if (p->buffer)
            emit_know(g, BUFFER_KEY(p->buffer),
                      pointed(g, SpvPhysicalStorageBuffer,
                              spv_buffer(g->s, p->buffer->dtype, p->written), v));
        else
            emit_know(g, ATOM_KEY(p->scalar), size(g, v));
    }
}

static int64_t threads_along(const Gen *g, BindAxis a)
{
    return g->axis[a] ? g->axis[a]->lo : 1;
}

/* Subgroups are whole, and threads with neighbouring numbers, only if all threads lie along x. */
static void unfold_threads(Gen *g)
{
    uint32_t u32 = spv_type(g->s, DT_U32), at = spv_built_in(g->s, SpvLocalInvocationId);

    vec_push(g->c->arena, &g->interface, at);
    at = OP2(g, OpCompositeExtract, u32, OP1(g, OpLoad, spv_vec3(g->s), at), 0);
    for (int a = AXIS_THREAD_X; a <= AXIS_THREAD_Z; a++) {
        uint32_t n = spv_int(g->s, DT_U32, threads_along(g, (BindAxis)a));
        g->thread[a] = a == AXIS_THREAD_Z ? at : OP2(g, OpUMod, u32, at, n);
        at = a == AXIS_THREAD_Z ? at : OP2(g, OpUDiv, u32, at, n);
    }
}

/* Block numbers and thread numbers along the axes that loops are bound to. */
static void threads(Gen *g)
{
    uint32_t u32 = spv_type(g->s, DT_U32), both[2] = {0};

    for (int a = AXIS_BLOCK_X; a <= AXIS_THREAD_Z; a++) {
        bool     is_thread = a >= AXIS_THREAD_X;
        uint32_t axis = (uint32_t)(a - (is_thread ? AXIS_THREAD_X : AXIS_BLOCK_X));

        if (!g->axis[a] || (is_thread && has_matrices(g->matrices)))
            continue;
        if (!both[is_thread]) {
            uint32_t v = spv_built_in(g->s, is_thread ? SpvLocalInvocationId : SpvWorkgroupId);
            vec_push(g->c->arena, &g->interface, v);
            both[is_thread] = OP1(g, OpLoad, spv_vec3(g->s), v);
        }
        g->thread[a] = OP2(g, OpCompositeExtract, u32, both[is_thread], axis);
    }
    if (has_matrices(g->matrices))
        unfold_threads(g);
}

/* A number of blocks, which may be a run's, as a u32. */
static uint32_t blocks_number(Gen *g, const Idx *n)
{
    if (idx_is_const(n, NULL))
        return spv_int(g->s, DT_U32, n->lo);
    return OP1(g, g->narrow ? OpBitcast : OpUConvert, spv_type(g->s, DT_U32), emit_index(g, n));
}

/* n / by, rounded up; n is not 0. */
static uint32_t rounded_up(Gen *g, uint32_t n, uint32_t by)
{
    uint32_t u32 = spv_type(g->s, DT_U32), one = spv_int(g->s, DT_U32, 1);

    return OP2(g, OpIAdd, u32, OP2(g, OpUDiv, u32, OP2(g, OpISub, u32, n, one), by), one);
}

/* More blocks along x than every device has lie in rows along z: the number of such a block; those
 * behind the last one leave. */
static void unfold(Gen *g)
{
    const Idx *x = g->axis[AXIS_BLOCK_X], *z = g->axis[AXIS_BLOCK_Z];
    uint32_t   u32 = spv_type(g->s, DT_U32), at, all, row, leave, stay, in;

    if (!x || x->hi <= GROUPS_MOST)
        return;
    if (z && z->hi > 1) {
        emit_fail(g, arena_printf(g->c->arena, "%lld blocks along x beside some along z",
                                  (long long)x->hi));
        return;
    }
    all = blocks_number(g, x);
    row = rounded_up(g, all, rounded_up(g, all, spv_int(g->s, DT_U32, GROUPS_MOST)));
    at = OP1(g, OpLoad, spv_vec3(g->s), spv_built_in(g->s, SpvWorkgroupId));
    at = OP2(g, OpCompositeExtract, u32, at, 2);
    at = OP2(g, OpIMul, u32, at, row);
    g->thread[AXIS_BLOCK_X] = at = OP2(g, OpIAdd, u32, at, g->thread[AXIS_BLOCK_X]);
    in = OP2(g, OpULessThan, spv_type(g->s, DT_BOOL), at, all);
    leave = spv_id(g->s);
    stay = spv_id(g->s);
    PUT(g->s, &g->code, OpSelectionMerge, stay, 0);
    PUT(g->s, &g->code, OpBranchConditional, in, stay, leave);
    emit_label(g, leave);
    PUT(g->s, &g->code, OpReturn);
    emit_label(g, stay);
}

/* Indices of 64 bits need those numbers so. */
static void widen(Gen *g)
{
    for (int a = AXIS_BLOCK_X; !g->narrow && a <= AXIS_THREAD_Z; a++)
        if (g->thread[a])
            g->thread[a] = OP1(g, OpUConvert, spv_type(g->s, DT_I64), g->thread[a]);
}

/* Floats as IEEE 754 has them: by default a driver may take subnormal numbers for 0, and assume
 * that there is no NaN.  A device that has no such mode is not told of it
 * (runtime/device/vulkan_modes.c).  Nothing is rounded to f16. */
static void float_modes(Gen *g, uint32_t function)
{
    static const struct {
        SpvEnum  capability;
        SpvMode  mode;
        uint32_t least; /* bits */
    } modes[] = {{SpvDenormPreserve, SpvModeDenormPreserve, 16},
                 {SpvSignedZeroInfNanPreserve, SpvModeSignedZeroInfNanPreserve, 16},
                 {SpvRoundingModeRTE, SpvModeRoundingModeRTE, 32}};

    for (size_t i = 0; i < COUNT(modes) && g->s->floats; i++) {
        spv_capability(g->s, modes[i].capability);
        for (uint32_t bits = modes[i].least; bits <= 64; bits *= 2)
            if (g->s->floats & bits)
                PUT(g->s, &g->s->modes, OpExecutionMode, function, modes[i].mode, bits);
    }
}

static void finish(Gen *g, uint32_t function, uint32_t start)
{
    Ctx     *c = g->c;
    Words   *to = &g->s->functions;
    uint32_t size[3];

    PUT(g->s, to, OpFunction, spv_void(g->s), function, 0, spv_procedure(g->s));
    PUT(g->s, to, OpLabel, start);
    for (uint32_t i = 0; i < g->vars.n; i++)
        vec_push(c->arena, to, g->vars.at[i]);
    for (uint32_t i = 0; i < g->code.n; i++)
        vec_push(c->arena, to, g->code.at[i]);
    PUT(g->s, to, OpReturn);
    PUT(g->s, to, OpFunctionEnd);
    for (int i = 0; i < 3; i++)
        size[i] = (uint32_t)threads_along(g, (BindAxis)(AXIS_THREAD_X + i));
    if (has_matrices(g->matrices)) {
        size[0] *= size[1] * size[2];
        size[1] = size[2] = 1;
    }
    PUT(g->s, &g->s->modes, OpExecutionMode, function, SpvModeLocalSize, size[0], size[1], size[2]);
    float_modes(g, function);
    spv_entry(g->s, function, device_symbol(c, g->f->name), &g->interface);
}

static bool has_intrin(const void *user, IntrinId id)
{
    const Target *t = user; /* those of warps stay */

    return t->intrin_ops[id] != 0;
}

static bool has_vector(const void *user, DType vector, Scope scope)
{
    (void)user;
    return vector.bits <= 32 && scope != SCOPE_SHARED;
}

enum { PANEL_BYTES = 8 }; /* of an operand's numbers that a thread stores at once */

bool vulkan_function(Spirv *s, const Func *f)
{
    Ctx     *c = s->c;
    uint32_t function = spv_id(s), start = spv_id(s);

    s->floats = 0;
    f = plain_instructions(c, f, has_intrin, f->target);
    f = plain_halves(c,
                     plain_scalars(c, f,
                                   s->matrices           ? PANEL_BYTES
                                   : multiplies_words(f) ? WORD
                                                         : 0),
                     NULL);
    f = plain_wide(c, plain_loads(c, f, has_vector, NULL), has_vector, NULL);
    Gen g = {.s = s,
             .c = c,
             .f = f,
             .block = start,
             .known = map_new(c->arena),
             .matrices = find_matrices(c, f),
             .narrow = func_index_fits(f)};
    if (!g.matrices)
        return false;
    find_panels(&g);
    g.index = g.narrow ? DT_I32 : DT_I64;
    func_axes(c, f, g.axis);
    for (int a = AXIS_THREAD_X; a <= AXIS_THREAD_Z; a++)
        if (g.axis[a] && !idx_is_const(g.axis[a], NULL))
            emit_fail(&g, "blocks of so many threads as only a run knows");
    if (!g.failed) {
        params(&g);
        threads(&g);
        unfold(&g);
        widen(&g);
        stmt(&g, f->body);
    }
    if (!g.failed)
        finish(&g, function, start);
    return !g.failed;
}
