/* Expressions, indices and memory as SPIR-V.
 *
 * Prims and indices are interned, so what a statement has computed is found again by its key.
 * Values of a statement are forgotten when the next one begins, since memory may have changed;
 * indices that read no memory when the block ends in which they were computed.  A select whose arms
 * read memory becomes branches: only the arm that is taken may be read. */
#include "backends/common/plain.h"
#include "backends/vulkan/vulkan.h"

#define PRIM_KEY(p) (UINT64_C(3) << 60 | (p)->id)
#define INDEX_KEY(i) (UINT64_C(4) << 60 | (i)->id)
#define WORD_KEY(p) (UINT64_C(5) << 60 | (p)->id)

/* ---- what is known ------------------------------------------------------------------------------- */

uint32_t emit_known(const Gen *g, uint64_t key)
{
    return (uint32_t)(uintptr_t)map_get(g->known, key);
}

void emit_know(Gen *g, uint64_t key, uint32_t id)
{
    map_put(g->known, key, (void *)(uintptr_t)id);
}

static void know_for(Gen *g, Keys *until, uint64_t key, uint32_t id)
{
    emit_know(g, key, id);
    vec_push(g->c->arena, until, key);
}

static void drop(Gen *g, Keys *keys, uint32_t n)
{
    while (keys->n > n)
        map_del(g->known, keys->at[--keys->n]);
}

GenMark emit_mark(const Gen *g)
{
    return (GenMark){g->stmt.n, g->path.n};
}

void emit_drop(Gen *g, GenMark m)
{
    drop(g, &g->stmt, m.stmt);
    drop(g, &g->path, m.path);
}

void emit_fresh(Gen *g)
{
    drop(g, &g->stmt, 0);
}

/* ---- does it read memory? ------------------------------------------------------------------------ */

static bool index_reads(const Idx *i)
{
    for (uint32_t k = 0; i && k < i->nterms; k++) {
        const Atom *a = i->t[k].atom;

        if (a->kind == ATOM_LOAD || index_reads(a->a) || index_reads(a->b))
            return true;
    }
    return false;
}

static bool reads(Gen *g, const Prim *p, Map *seen)
{
    void *was;

    if (emit_known(g, PRIM_KEY(p)))
        return false;
    if (map_find(seen, p->id, &was))
        return was != NULL;
    map_put(seen, p->id, NULL);
    bool yes = p->kind == PRIM_LOAD && p->u.load.n > 0;
    if (p->kind == PRIM_INDEX || p->kind == PRIM_CASE)
        yes = index_reads(p->u.index);
    for (uint32_t i = 0; i < p->nkids && !yes; i++)
        yes = reads(g, p->kids[i], seen);
    if (yes)
        map_put(seen, p->id, seen);
    return yes;
}

/* ---- indices ------------------------------------------------------------------------------------- */

static uint32_t floor_of(Gen *g, const Idx *a, uint32_t by)
{
    uint32_t t = spv_type(g->s, g->index), x = emit_index(g, a), q, r, zero;

    if (a->lo >= 0)
        return OP2(g, OpUDiv, t, x, by);
    zero = spv_int(g->s, g->index, 0);
    q = OP2(g, OpSDiv, t, x, by);
    r = OP2(g, OpISub, t, x, OP2(g, OpIMul, t, q, by));
    r = OP2(g, OpSLessThan, spv_type(g->s, DT_BOOL), r, zero);
    return OP2(g, OpISub, t, q, OP3(g, OpSelect, t, r, spv_int(g->s, g->index, 1), zero));
}

static uint32_t atom(Gen *g, const Atom *a)
{
    uint32_t t = spv_type(g->s, g->index), id = emit_known(g, ATOM_KEY(a));

    if (id)
        return id;
    switch (a->kind) {
    case ATOM_VAR: BUG("@%s: a variable '%s' without a loop", g->f->name, a->name);
    case ATOM_DIV: return floor_of(g, a->a, spv_int(g->s, g->index, a->k));
    case ATOM_SYMDIV: return floor_of(g, a->a, emit_index(g, idx_divisor(g->c->arith, a)));
    case ATOM_PROD: return OP2(g, OpIMul, t, emit_index(g, a->a), emit_index(g, a->b));
    case ATOM_MIN:
    case ATOM_MAX:
        return emit_op(g, OpExtInst, t, 4,
                       (uint32_t[]){spv_glsl(g->s), a->kind == ATOM_MIN ? GlslSMin : GlslSMax,
                                    emit_index(g, a->a), emit_index(g, a->b)});
    case ATOM_LOAD: break;
    }
    const Prim *load = a->load;
    return emit_cast(g, emit_prim(g, load), g->index, load->dtype);
}

uint32_t emit_index(Gen *g, const Idx *i)
{
    uint32_t t = spv_type(g->s, g->index), sum = emit_known(g, INDEX_KEY(i));

    if (sum)
        return sum;
    for (uint32_t k = 0; k < i->nterms; k++) {
        int64_t  by = i->t[k].coef;
        bool     less = by < 0 && by != INT64_MIN && sum;
        uint32_t v = atom(g, i->t[k].atom);

        by = less ? -by : by;
        if (by != 1)
            v = OP2(g, OpIMul, t, v, spv_int(g->s, g->index, by));
        sum = !sum ? v : OP2(g, less ? OpISub : OpIAdd, t, sum, v);
    }
    if (!sum)
        return spv_int(g->s, g->index, i->c0);
    if (i->c0)
        sum = OP2(g, OpIAdd, t, sum, spv_int(g->s, g->index, i->c0));
    know_for(g, index_reads(i) ? &g->stmt : &g->path, INDEX_KEY(i), sum);
    return sum;
}

/* ---- memory -------------------------------------------------------------------------------------- */

static SpvEnum storage_of(const Gen *g, const Buffer *b)
{
    for (uint32_t i = 0; i < g->f->nparams; i++)
        if (g->f->params[i].buffer == b)
            return SpvPhysicalStorageBuffer;
    return b->scope == SCOPE_SHARED ? SpvWorkgroup : SpvFunction;
}

/* In memory; narrower numbers than 32 bits are wider in registers. */
static uint32_t cells_type(Gen *g, DType t)
{
    return spv_vector(g->s, spv_cell(g->s, dtype_lanes(t, 1), SpvPhysicalStorageBuffer), t.lanes);
}

static uint32_t lanes_type(Gen *g, DType t)
{
    return spv_vector(g->s, spv_type(g->s, dtype_lanes(t, 1)), t.lanes);
}

/* The address of a cell: of a variable's own, of an array's, of one in a buffer. */
static uint32_t address(Gen *g, const Buffer *b, uint32_t n, const Idx *const *index)
{
    SpvEnum  storage = storage_of(g, b);
    uint32_t base = emit_known(g, BUFFER_KEY(b));
    uint32_t cell =
        b->dtype.lanes > 1 ? lanes_type(g, b->dtype) : spv_cell(g->s, b->dtype, storage);
    uint32_t   to = spv_pointer(g->s, storage, cell);
    int64_t    elems, origin = 0;
    const Idx *at = n ? index[0] : idx_const(g->c->arith, 0);

    if (!base)
        BUG("@%s: a buffer '%s' that is nowhere", g->f->name, b->name);
    if (storage == SpvPhysicalStorageBuffer) {
        uint32_t i = emit_index(g, at), t = spv_type(g->s, g->index);
        i = g->guard ? OP3(g, OpSelect, t, g->guard, i, spv_int(g->s, g->index, 0)) : i;
        return OP3(g, OpAccessChain, to, base, spv_int(g->s, DT_I32, 0), i);
    }
    if (!b->ndim)
        return base;
    if (buffer_size(g->c, b, &elems, &origin) && origin)
        at = idx_addc(g->c->arith, at, origin);
    if (panel_numbers(g, b) > 1) {
        at = idx_divc(g->c->arith, at, panel_numbers(g, b));
        to = spv_pointer(g->s, storage, spv_vector(g->s, cell, panel_numbers(g, b)));
    }
    return OP2(g, OpAccessChain, to, base, emit_index(g, at));
}

/* Cells side by side, whose address is a vector's where they lie on its border (wide.c). */
static uint32_t vector_at(Gen *g, const Buffer *b, const Idx *const *index, uint32_t vector)
{
    uint32_t to = spv_pointer(g->s, SpvPhysicalStorageBuffer, vector);

    return OP1(g, OpBitcast, to, address(g, b, 1, index));
}

static uint32_t load(Gen *g, const Prim *p);
static uint32_t load_panel(Gen *g, const Prim *p);

static uint32_t load_vector(Gen *g, const Prim *p)
{
    const LoadData *l = &p->u.load;
    uint32_t        type = lanes_type(g, p->dtype), cells, each[4];

    if (l->mask || p->dtype.bits > 32 || p->dtype.lanes > COUNT(each))
        return emit_fail(g, "vectors");
    if (!l->n)
        return OP1(g, OpLoad, type, address(g, l->buffer, 0, NULL));
    if (storage_of(g, l->buffer) == SpvPhysicalStorageBuffer &&
        is_on_border(g->c, l->buffer, l->index, dtype_bytes(p->dtype))) {
        cells = cells_type(g, p->dtype);
        each[0] = OP3(g, OpLoad, cells, vector_at(g, l->buffer, l->index, cells), SpvAligned,
                      dtype_bytes(p->dtype));
        if (p->dtype.bits == 32)
            return each[0];
        return OP1(g, p->dtype.code == DT_INT ? OpSConvert : OpUConvert, type, each[0]);
    }
    if (panel_numbers(g, l->buffer) == p->dtype.lanes)
        return OP1(g, p->dtype.code == DT_INT ? OpSConvert : OpUConvert, type, load_panel(g, p));
    for (uint32_t i = 0; i < p->dtype.lanes; i++) {
        const Idx *at = idx_addc(g->c->arith, l->index[0], i);
        each[i] = load(g, prim_load(g->c, l->buffer, &at));
    }
    return emit_op(g, OpCompositeConstruct, type, p->dtype.lanes, each);
}

static uint32_t guarded(Gen *g, const Prim *p, uint32_t cond);

/* Cells of a buffer where a condition holds, else numbers. */
static bool is_guarded_load(const Gen *g, const Prim *p)
{
    return p->kind == PRIM_SELECT && p->kids[0]->dtype.lanes == 1 &&
           p->kids[1]->kind == PRIM_LOAD && p->kids[1]->u.load.n &&
           storage_of(g, p->kids[1]->u.load.buffer) == SpvPhysicalStorageBuffer &&
           p->kids[2]->kind != PRIM_LOAD;
}

/* One number of a vector; NULL: it is not known so. */
static const Prim *lane_of(Ctx *c, const Prim *p, uint16_t i)
{
    const Prim *arm[2], *lane;

    if (p->kind == PRIM_SELECT) {
        arm[0] = lane_of(c, p->kids[1], i);
        arm[1] = lane_of(c, p->kids[2], i);
        return p->kids[0]->dtype.lanes == 1 && arm[0] && arm[1]
                   ? prim_select(c, p->kids[0], arm[0], arm[1])
                   : NULL;
    }
    lane = prim_shuffle(c, p, 1, &i);
    /* A lane of a register, or of what is no vector that is asked for now. */
    return lane->kind == PRIM_SHUFFLE && lane->kids[0] == p && p->kind != PRIM_LOAD ? NULL : lane;
}

static uint32_t vector(Gen *g, const Prim *p)
{
    const uint32_t type = lanes_type(g, p->dtype);
    uint32_t       each[4];

    if (p->kind == PRIM_LOAD)
        return load_vector(g, p);
    if (is_guarded_load(g, p)) {
        uint32_t cond = emit_prim(g, p->kids[0]), other = emit_prim(g, p->kids[2]);
        return OP3(g, OpSelect, type, cond, guarded(g, p->kids[1], cond), other);
    }
    if (p->dtype.bits > 32 || p->dtype.lanes > COUNT(each))
        return emit_fail(g, "vectors");
    for (uint16_t i = 0; i < p->dtype.lanes; i++) {
        const Prim *one = lane_of(g->c, p, i);
        each[i] = one ? emit_prim(g, one) : emit_fail(g, "vectors");
    }
    return emit_op(g, OpCompositeConstruct, type, p->dtype.lanes, each);
}

/* What is said of an access, behind its operands: how many words.  Vulkan's memory model has to be
 * told that threads share memory. */
static uint32_t access_words(const Gen *g, SpvEnum storage, uint32_t bytes, uint32_t words[2])
{
    if (storage == SpvPhysicalStorageBuffer) {
        words[0] = SpvAligned, words[1] = bytes;
        return 2;
    }
    words[0] = SpvNonPrivatePointer;
    return storage == SpvWorkgroup && g->s->matrices;
}

static void put_store(Gen *g, SpvEnum storage, uint32_t at, uint32_t v, uint32_t bytes)
{
    uint32_t words[4] = {at, v};

    spv_put(g->s, &g->code, OpStore, 2 + access_words(g, storage, bytes, words + 2), words);
}

static uint32_t load(Gen *g, const Prim *p)
{
    const LoadData *l = &p->u.load;
    DType           d = l->buffer->dtype;
    SpvEnum         storage = storage_of(g, l->buffer);
    uint32_t        at = address(g, l->buffer, l->n, l->index), v;
    uint32_t        words[3] = {at};

    v = emit_op(g, OpLoad, spv_cell(g->s, d, storage),
                1 + access_words(g, storage, dtype_bytes(d), words + 1), words);
    if (d.bits >= 32 || storage == SpvFunction)
        return v;
    v = OP1(g, d.code == DT_INT ? OpSConvert : OpUConvert, spv_type(g->s, DT_U32), v);
    if (dtype_is_bool(d))
        v = OP2(g, OpINotEqual, spv_type(g->s, d), v, spv_int(g->s, DT_U32, 0));
    return v;
}

/* Numbers of shared memory that are a cell. */
static uint32_t load_panel(Gen *g, const Prim *p)
{
    const LoadData *l = &p->u.load;
    const uint32_t  cell = spv_cell(g->s, dtype_lanes(p->dtype, 1), SpvWorkgroup);
    uint32_t        words[3] = {address(g, l->buffer, l->n, l->index)};

    return emit_op(g, OpLoad, spv_vector(g->s, cell, p->dtype.lanes),
                   1 + access_words(g, SpvWorkgroup, 0, words + 1), words);
}

uint32_t emit_word(Gen *g, const Prim *p)
{
    const LoadData *l = &p->u.load;
    const uint32_t  u32 = spv_type(g->s, DT_U32);
    uint32_t        id = emit_known(g, WORD_KEY(p)), bytes;

    if (id)
        return id;
    if (storage_of(g, l->buffer) == SpvPhysicalStorageBuffer) {
        id = OP3(g, OpLoad, u32, vector_at(g, l->buffer, l->index, u32), SpvAligned, WORD);
    } else if (panel_numbers(g, l->buffer) == WORD) {
        id = OP1(g, OpBitcast, u32, load_panel(g, p));
    } else {
        bytes = spv_vector(g->s, spv_cell(g->s, dtype_lanes(p->dtype, 1), SpvWorkgroup), WORD);
        id = OP1(g, OpBitcast, u32, OP1(g, OpUConvert, bytes, emit_prim(g, p)));
    }
    know_for(g, &g->stmt, WORD_KEY(p), id);
    return id;
}

/* Several numbers of shared memory: a cell of a panel, or one by one. */
static void store_shared(Gen *g, const StoreData *d, uint32_t v)
{
    const DType    t = dtype_lanes(d->buffer->dtype, 1);
    const uint32_t n = d->value->dtype.lanes, all = panel_numbers(g, d->buffer),
                   cell = spv_cell(g->s, t, SpvWorkgroup), type = spv_type(g->s, t);

    for (uint32_t i = 0; i < n; i += all) {
        uint32_t one = all == n ? v : OP2(g, OpCompositeExtract, type, v, i);
        uint32_t at = emit_cell(g, d->buffer, idx_addc(g->c->arith, d->index[0], i));
        if (t.bits < 32)
            one = OP1(g, OpUConvert, all == n ? spv_vector(g->s, cell, n) : cell, one);
        put_store(g, SpvWorkgroup, at, one, 0);
    }
}

void emit_store(Gen *g, const StoreData *d)
{
    DType    t = d->buffer->dtype, all = d->value->dtype;
    SpvEnum  storage = storage_of(g, d->buffer);
    uint32_t v = emit_prim(g, d->value), at;

    if (all.lanes > 1 && d->n && !d->mask && storage == SpvWorkgroup && !dtype_is_bool(t)) {
        store_shared(g, d, v);
        return;
    }
    if (d->mask || (all.lanes > 1 && d->n && storage != SpvPhysicalStorageBuffer)) {
        emit_fail(g, "vectors");
        return;
    }
    if (all.lanes > 1 && d->n) {
        at = vector_at(g, d->buffer, d->index, cells_type(g, all));
        if (all.bits < 32)
            v = OP1(g, OpUConvert, cells_type(g, all), v);
        put_store(g, storage, at, v, dtype_bytes(all));
        return;
    }
    at = address(g, d->buffer, d->n, d->index);
    if (t.bits < 32 && storage != SpvFunction) {
        if (dtype_is_bool(t))
            v = emit_cast(g, v, DT_U8, t);
        v = OP1(g, OpUConvert, spv_cell(g->s, t, storage), v);
    }
    put_store(g, storage, at, v, dtype_bytes(t));
}

uint32_t emit_cell(Gen *g, const Buffer *b, const Idx *at)
{
    return address(g, b, 1, &at);
}

/* ---- choices ------------------------------------------------------------------------------------- */

/* An arm in a block of its own, which goes on to `done`; where it ends. */
static uint32_t arm(Gen *g, const Prim *p, uint32_t label, uint32_t done, uint32_t *end)
{
    GenMark m = emit_mark(g);

    emit_label(g, label);
    uint32_t v = emit_prim(g, p);
    emit_drop(g, m);
    *end = g->block;
    emit_branch(g, done);
    return v;
}

/* p where `cond` holds, else `other`, which has been computed. */
static uint32_t where(Gen *g, uint32_t cond, const Prim *p, uint32_t other)
{
    uint32_t yes = spv_id(g->s), done = spv_id(g->s), before = g->block, end, v;

    PUT(g->s, &g->code, OpSelectionMerge, done, 0);
    PUT(g->s, &g->code, OpBranchConditional, cond, yes, done);
    v = arm(g, p, yes, done, &end);
    emit_label(g, done);
    return emit_op(g, OpPhi, spv_type(g->s, p->dtype), 4, (uint32_t[]){v, end, other, before});
}

/* c ? a : d ? b : .. one after the other, since drivers nest tens of branches, not hundreds:
 *     v = 0;  if (c) v = a;  if (!c && d) v = b; .. */
static uint32_t chain(Gen *g, const Prim *p)
{
    uint32_t type = spv_type(g->s, DT_BOOL), open = 0, cond, v;

    v = dtype_is_bool(p->dtype) ? spv_bool(g->s, false)
        : dtype_is_float(p->dtype) && !dtype_is_half(p->dtype)
            ? spv_real(g->s, p->dtype, 0)
            : spv_int(g->s, dtype_is_half(p->dtype) ? DT_U32 : p->dtype, 0);
    for (; p->kind == PRIM_SELECT && !emit_known(g, PRIM_KEY(p)) &&
           !(open && reads(g, p->kids[0], map_new(g->c->arena)));
         p = p->kids[2]) {
        cond = emit_prim(g, p->kids[0]);
        v = where(g, open ? OP2(g, OpLogicalAnd, type, open, cond) : cond, p->kids[1], v);
        cond = OP1(g, OpLogicalNot, type, cond);
        open = open ? OP2(g, OpLogicalAnd, type, open, cond) : cond;
    }
    return where(g, open, p, v);
}

/* A few operations on cells of buffers, at indices that read none: cheaper than a branch, behind
 * which nothing is loaded ahead. */
static bool is_light(const Gen *g, const Prim *p, int *left)
{
    if (--*left < 0 || p->dtype.lanes > 1 || p->kind == PRIM_SELECT || p->kind == PRIM_CASE ||
        p->kind == PRIM_MATH || p->kind == PRIM_DIV || p->kind == PRIM_REM)
        return false;
    if (p->kind == PRIM_LOAD)
        return p->u.load.n == 1 && !p->u.load.mask && !index_reads(p->u.load.index[0]) &&
               storage_of(g, p->u.load.buffer) == SpvPhysicalStorageBuffer;
    for (uint32_t i = 0; i < p->nkids; i++)
        if (!is_light(g, p->kids[i], left))
            return false;
    return p->kind != PRIM_INDEX || !index_reads(p->u.index);
}

/* An arm that is computed in any case, of cells that may be loaded. */
static uint32_t guarded(Gen *g, const Prim *p, uint32_t cond)
{
    const uint32_t outer = g->guard;
    GenMark        m = emit_mark(g);

    g->guard = outer ? OP2(g, OpLogicalAnd, spv_type(g->s, DT_BOOL), outer, cond) : cond;
    uint32_t v = emit_prim(g, p);
    g->guard = outer;
    emit_drop(g, m);
    return v;
}

static uint32_t select(Gen *g, const Prim *p)
{
    enum { FEW = 8 };
    int few = FEW;

    uint32_t t = spv_type(g->s, p->dtype), cond = emit_prim(g, p->kids[0]), v[2], end[2];
    Map     *seen = map_new(g->c->arena);

    if (!reads(g, p->kids[1], seen) && !reads(g, p->kids[2], seen)) {
        v[0] = emit_prim(g, p->kids[1]);
        v[1] = emit_prim(g, p->kids[2]);
        return OP3(g, OpSelect, t, cond, v[0], v[1]);
    }
    if (!reads(g, p->kids[2], map_new(g->c->arena)) && is_light(g, p->kids[1], &few)) {
        v[1] = emit_prim(g, p->kids[2]);
        return OP3(g, OpSelect, t, cond, guarded(g, p->kids[1], cond), v[1]);
    }
    if (p->kids[2]->kind == PRIM_SELECT && reads(g, p->kids[2], map_new(g->c->arena)))
        return chain(g, p);
    uint32_t label[2] = {spv_id(g->s), spv_id(g->s)}, done = spv_id(g->s);
    PUT(g->s, &g->code, OpSelectionMerge, done, 0);
    PUT(g->s, &g->code, OpBranchConditional, cond, label[0], label[1]);
    for (int i = 0; i < 2; i++)
        v[i] = arm(g, p->kids[1 + i], label[i], done, &end[i]);
    emit_label(g, done);
    return emit_op(g, OpPhi, t, 4, (uint32_t[]){v[0], end[0], v[1], end[1]});
}

static uint32_t choose(Gen *g, const Prim *p)
{
    uint32_t  n = p->nkids, done = spv_id(g->s), words = 2;
    uint32_t *in = NEW_ARRAY(g->c->arena, uint32_t, 2 * n);
    uint32_t *label = NEW_ARRAY(g->c->arena, uint32_t, n);
    uint32_t *to = NEW_ARRAY(g->c->arena, uint32_t, 3 * n + 2);

    to[0] = emit_index(g, p->u.index);
    for (uint32_t i = 0; i < n; i++)
        label[i] = spv_id(g->s);
    to[1] = label[n - 1];
    for (uint32_t i = 0; i + 1 < n; i++) {
        to[words++] = i;
        if (!g->narrow)
            to[words++] = 0;
        to[words++] = label[i];
    }
    PUT(g->s, &g->code, OpSelectionMerge, done, 0);
    spv_put(g->s, &g->code, OpSwitch, words, to);
    for (uint32_t i = 0; i < n; i++)
        in[2 * i] = arm(g, p->kids[i], label[i], done, &in[2 * i + 1]);
    emit_label(g, done);
    return emit_op(g, OpPhi, spv_type(g->s, p->dtype), 2 * n, in);
}

/* ---- expressions --------------------------------------------------------------------------------- */

/* Comparisons of indices, which are i64, where these have 32 bits. */
static bool is_narrow(const Gen *g, const Prim *p)
{
    return g->narrow && dtype_eq(p->dtype, DT_I64) &&
           (p->kind == PRIM_INDEX ||
            (p->kind == PRIM_INT && p->u.i >= INT32_MIN && p->u.i <= INT32_MAX));
}

static uint32_t index_or_int(Gen *g, const Prim *p)
{
    return p->kind == PRIM_INT ? spv_int(g->s, g->index, p->u.i) : emit_index(g, p->u.index);
}

static uint32_t compare_indices(Gen *g, const Prim *p)
{
    SpvOp op = p->kind == PRIM_EQ   ? OpIEqual
               : p->kind == PRIM_NE ? OpINotEqual
               : p->kind == PRIM_LT ? OpSLessThan
                                    : OpSLessThanEqual;

    return OP2(g, op, spv_type(g->s, DT_BOOL), index_or_int(g, p->kids[0]),
               index_or_int(g, p->kids[1]));
}

static uint32_t number(Gen *g, const Prim *p)
{
    uint16_t half;

    if (dtype_is_bool(p->dtype))
        return spv_bool(g->s, p->u.i != 0);
    if (!dtype_is_float(p->dtype))
        return spv_int(g->s, p->dtype, p->u.i);
    if (!dtype_is_half(p->dtype))
        return spv_real(g->s, p->dtype, p->u.f);
    dtype_put_f(p->dtype, &half, p->u.f);
    return spv_int(g->s, DT_U32, half);
}

static uint32_t value(Gen *g, const Prim *p)
{
    switch (p->kind) {
    case PRIM_INT:
    case PRIM_FLOAT: return number(g, p);
    case PRIM_INDEX: return emit_cast(g, emit_index(g, p->u.index), p->dtype, g->index);
    case PRIM_LOAD: return load(g, p);
    case PRIM_SELECT: return select(g, p);
    case PRIM_CASE: return choose(g, p);
    case PRIM_CAST: return emit_cast(g, emit_prim(g, p->kids[0]), p->dtype, p->kids[0]->dtype);
    case PRIM_BITS: return emit_bits(g, emit_prim(g, p->kids[0]), p->dtype, p->kids[0]->dtype);
    case PRIM_EQ:
    case PRIM_NE:
    case PRIM_LT:
    case PRIM_LE:
        if (is_narrow(g, p->kids[0]) && is_narrow(g, p->kids[1]))
            return compare_indices(g, p);
        return emit_arith(g, p);
    case PRIM_ADD:
    case PRIM_SUB:
    case PRIM_MUL:
    case PRIM_DIV:
    case PRIM_REM:
    case PRIM_MIN:
    case PRIM_MAX:
    case PRIM_MINNUM:
    case PRIM_MAXNUM:
    case PRIM_FMA:
    case PRIM_AND:
    case PRIM_OR:
    case PRIM_XOR:
    case PRIM_SHL:
    case PRIM_SHR:
    case PRIM_NOT:
    case PRIM_MATH: return emit_arith(g, p);
    case PRIM_SHUFFLE: /* a lane */
        return OP2(g, OpCompositeExtract, spv_type(g->s, p->dtype), emit_prim(g, p->kids[0]),
                   p->u.from[0]);
    case PRIM_SPLAT:
    case PRIM_RAMP:
    case PRIM_VEC: return emit_fail(g, "vectors");
    case PRIM_INTRIN: return emit_dot(g, p);
    case PRIM_ADDR:
    case PRIM_SYMBOL:
    case PRIM_SIZEOF: break;
    }
    BUG("@%s: an expression of kind %d in a kernel", g->f->name, (int)p->kind);
}

uint32_t emit_prim(Gen *g, const Prim *p)
{
    uint32_t id = emit_known(g, PRIM_KEY(p));

    if (id || g->failed)
        return id;
    if (p->kind == PRIM_LOAD && p->u.load.mask)
        id = emit_fail(g, "masks");
    else
        id = p->dtype.lanes > 1 ? vector(g, p) : value(g, p);
    if (!g->failed && p->kind != PRIM_INT && p->kind != PRIM_FLOAT)
        know_for(g, &g->stmt, PRIM_KEY(p), id);
    return id;
}
