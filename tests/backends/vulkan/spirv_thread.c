/* One thread, from instruction to instruction until it is done or waits for others: control flow,
 * memory, composites. */
#include "tests/backends/vulkan/spirv.h"

#include <string.h>

/* ---- values in memory ---------------------------------------------------------------------------- */

/* An element of a matrix takes a word: how they lie is nobody's business. */
static uint32_t component_bytes(const Type *t)
{
    return t->op == OpTypeCooperativeMatrixKHR ? sizeof(uint64_t)
                                               : (uint32_t)component_of(t)->bytes;
}

static void unpack(const Type *t, const uint8_t *at, uint64_t *v)
{
    const uint32_t each = component_bytes(t);

    for (uint32_t i = 0; i < t->words; i++) {
        v[i] = 0;
        memcpy(&v[i], at + i * each, each);
    }
}

static void pack(const Type *t, const uint64_t *v, uint8_t *at)
{
    const uint32_t each = component_bytes(t);

    for (uint32_t i = 0; i < t->words; i++)
        memcpy(at + i * each, &v[i], each);
}

/* A number, some side by side, or a matrix. */
static bool lies_in_memory(const Type *t)
{
    return t->words && t->bytes;
}

bool access_allowed(Run *r, const Type *pointer, uint64_t address, uint32_t i)
{
    enum { VOLATILE = 1, ALIGNED = 2, NONTEMPORAL = 4, AVAILABLE = 8, VISIBLE = 16 };
    enum { NON_PRIVATE = 32, ALL = 63 };
    const uint32_t mask = operand(r, i), border = mask & ALIGNED ? operand(r, i + 1) : 0;
    const uint32_t words =
        (i < operand_count(r)) + !!(mask & ALIGNED) + !!(mask & AVAILABLE) + !!(mask & VISIBLE);

    if (mask & ~(uint32_t)ALL)
        run_fail(r, "operands %#x of an access, which the interpreter does not know", mask);
    else if (operand_count(r) != i + words)
        run_fail(r, "%u operands", operand_count(r));
    else if (mask & ALIGNED && (!border || address % border))
        run_fail(r, "address %#llx is no multiple of %u", (unsigned long long)address, border);
    else if (pointer->storage == STORAGE_PHYSICAL && !border)
        run_fail(r, "an access by an address that does not say how it is aligned");
    else if (pointer->storage == STORAGE_WORKGROUP && r->m.memory_model == MODEL_VULKAN &&
             !(mask & NON_PRIVATE))
        run_fail(r, "an access to memory of the workgroup that is not NonPrivatePointer");
    return !r->error;
}

/* The bytes of an access to what the pointer points to; NULL with an error. */
static uint8_t *accessed(Run *r, Thread *t, uint32_t id, const Type *what, uint32_t i, bool writes)
{
    const Type     *p = type_of(r, id);
    const uint64_t *v = value_at(r, t, id);

    if (p->op != OpTypePointer || p->of != what || !lies_in_memory(what))
        run_fail(r, "%%%u does not point to such a value", id);
    else if (access_allowed(r, p, v[0], i) && v[0] % component_bytes(what))
        run_fail(r, "address %#llx is no multiple of %u", (unsigned long long)v[0],
                 component_bytes(what));
    return r->error ? NULL : region_at(r, v, what->bytes, writes);
}

static void load(Run *r, Thread *t)
{
    const Type    *what = type_of(r, operand(r, 1));
    const uint8_t *at = accessed(r, t, operand(r, 2), what, 3, false);

    if (at)
        unpack(what, at, value_at(r, t, operand(r, 1)));
}

static void store(Run *r, Thread *t)
{
    const Type *what = type_of(r, operand(r, 1));
    uint8_t    *at = accessed(r, t, operand(r, 0), what, 2, true);

    if (at)
        pack(what, value_at(r, t, operand(r, 1)), at);
}

/* Each time that its function begins, what is in it is anything: ones, a NaN in every float type.
 */
static void forget(Run *r, Thread *t)
{
    Region *x = (Region *)(uintptr_t)value_at(r, t, operand(r, 1))[1];

    if (operand(r, 2) != STORAGE_FUNCTION) {
        run_fail(r, "a variable of storage class %u in a function", operand(r, 2));
        return;
    }
    memset(x->at, 0xff, x->bytes);
}

/* ---- pointers ------------------------------------------------------------------------------------ */

/* What lies at an index in a value of that type, and how many bytes from its start. */
static const Type *part_at(Run *r, const Type *t, int64_t i, int64_t *offset)
{
    const bool bounded = t->op != OpTypeRuntimeArray;

    if (bounded && (i < 0 || i >= t->n)) {
        run_fail(r, "index %lld of %u", (long long)i, t->n);
        return t;
    }
    switch (t->op) {
    case OpTypeStruct: *offset = t->offsets[i]; return type_at(r, t->members[i]);
    case OpTypeArray:
    case OpTypeRuntimeArray: *offset = i * t->stride; return t->of;
    case OpTypeVector:
    case OpTypeCooperativeMatrixKHR: *offset = i * component_bytes(t); return t->of;
    default: run_fail(r, "an index of what has no parts"); return t;
    }
}

static void access_chain(Run *r, Thread *t)
{
    const Type *p = type_of(r, operand(r, 2)), *to = type_of(r, operand(r, 1)), *what = p->of;
    uint64_t   *out = value_at(r, t, operand(r, 1)), *base = value_at(r, t, operand(r, 2));
    uint64_t    at = base[0];

    for (uint32_t i = 3; i < operand_count(r) && p->op == OpTypePointer && !r->error; i++) {
        const Type *index = type_of(r, operand(r, i));
        int64_t     offset = 0;

        if (index->op != OpTypeInt)
            run_fail(r, "%%%u is no index", operand(r, i));
        else
            what =
                part_at(r, what, signed_of(index->bits, *value_at(r, t, operand(r, i))), &offset);
        at += (uint64_t)offset;
    }
    if (p->op != OpTypePointer || to->op != OpTypePointer || to->of != what ||
        to->storage != p->storage)
        run_fail(r, "a pointer to something else");
    out[0] = at;
    out[1] = base[1];
}

/* Bits as they are; of two words, or of another pointer, an address. */
static void bitcast(Run *r, Thread *t)
{
    enum { BYTES = 4 * sizeof(uint64_t) };
    const Type     *to = type_of(r, operand(r, 1)), *from = type_of(r, operand(r, 2));
    const uint64_t *v = value_at(r, t, operand(r, 2));
    uint64_t       *out = value_at(r, t, operand(r, 1));
    uint8_t         bytes[BYTES];

    if (to->op == OpTypePointer && from->op == OpTypePointer && to->storage == from->storage) {
        memcpy(out, v, 2 * sizeof *out);
    } else if (to->op == OpTypePointer && from->bytes == sizeof *out && from->words <= 2 &&
               to->storage == STORAGE_PHYSICAL) {
        pack(from, v, bytes);
        memcpy(out, bytes, sizeof *out);
        out[1] = (uintptr_t)region_find(r, out[0]);
    } else if (to->bytes && to->bytes == from->bytes && to->words <= 4 && from->words <= 4 &&
               to->words && from->words) {
        pack(from, v, bytes);
        unpack(to, bytes, out);
    } else {
        run_fail(r, "bits of another size");
    }
}

/* ---- composites ---------------------------------------------------------------------------------- */

/* A vector of its parts, numbers or shorter vectors; a matrix of one number. */
static void construct(Run *r, Thread *t)
{
    const Type *to = type_of(r, operand(r, 1)), *each = component_of(to);
    uint64_t   *out = value_at(r, t, operand(r, 1));
    uint32_t    n = 0;
    const bool  fills = to->op == OpTypeCooperativeMatrixKHR;

    if (fills && (operand_count(r) != 3 || type_of(r, operand(r, 2)) != each)) {
        run_fail(r, "a matrix that is not made of one number of its type");
        return;
    }
    for (uint32_t i = 0; fills && i < to->words; i++)
        out[i] = *value_at(r, t, operand(r, 2));
    for (uint32_t i = 2; !fills && i < operand_count(r) && !r->error; i++) {
        const Type     *part = type_of(r, operand(r, i));
        const uint64_t *v = value_at(r, t, operand(r, i));

        if (to->op != OpTypeVector || component_of(part) != each || n + part->words > to->words)
            run_fail(r, "a part that does not fit");
        for (uint32_t k = 0; k < part->words && !r->error; k++)
            out[n++] = v[k];
    }
    if (!fills && n != to->words)
        run_fail(r, "%u parts of %u", n, to->words);
}

static void extract(Run *r, Thread *t)
{
    const Type    *from = type_of(r, operand(r, 2));
    const uint32_t i = operand(r, 3);

    if (component_of(from) == from || operand_count(r) != 4 || i >= from->words ||
        type_of(r, operand(r, 1)) != from->of)
        run_fail(r, "part %u of what has none", i);
    else
        *value_at(r, t, operand(r, 1)) = value_at(r, t, operand(r, 2))[i];
}

static void choose(Run *r, Thread *t)
{
    const Type     *to = type_of(r, operand(r, 1)), *by = type_of(r, operand(r, 2));
    const uint64_t *cond = value_at(r, t, operand(r, 2)), *a = value_at(r, t, operand(r, 3));
    const uint64_t *b = value_at(r, t, operand(r, 4));
    uint64_t       *out = value_at(r, t, operand(r, 1));

    if (component_of(by)->op != OpTypeBool || (by->words != 1 && by->words != to->words) ||
        type_of(r, operand(r, 3)) != to || type_of(r, operand(r, 4)) != to)
        run_fail(r, "a choice of other types");
    for (uint32_t i = 0; i < to->words && !r->error; i++)
        out[i] = cond[by->words == 1 ? 0 : i] ? a[i] : b[i];
}

/* ---- control flow -------------------------------------------------------------------------------- */

static Opcode op_at(const Run *r, uint32_t at)
{
    return at < r->m.n ? (Opcode)(r->m.words[at] & 0xffff) : OpFunctionEnd;
}

static void copy_value(Run *r, Thread *t, uint32_t to, uint32_t from)
{
    const Type *a = type_of(r, to), *b = type_of(r, from);

    if (a != b)
        run_fail(r, "%%%u of another type", from);
    else
        memcpy(value_at(r, t, to), value_at(r, t, from), a->words * sizeof(uint64_t));
}

/* The phis of a block all have what there was before it. */
static void take_phis(Run *r, Thread *t)
{
    const uint32_t first = t->frame.pc;
    uint32_t       n = 0;

    for (r->at = first; op_at(r, r->at) == OpPhi && !r->error; r->at += operand_count(r) + 1) {
        const Type *what = type_of(r, operand(r, 1));
        uint32_t    i = 2;

        while (i < operand_count(r) && operand(r, i + 1) != t->frame.before)
            i += 2;
        if (i >= operand_count(r) || type_of(r, operand(r, i)) != what)
            run_fail(r, "no value for block %%%u", t->frame.before);
        else
            memcpy(r->scratch + n, value_at(r, t, operand(r, i)), what->words * sizeof(uint64_t));
        n += what->words;
    }
    n = 0;
    for (r->at = first; op_at(r, r->at) == OpPhi && !r->error; r->at += operand_count(r) + 1) {
        const Type *what = type_of(r, operand(r, 1));

        memcpy(value_at(r, t, operand(r, 1)), r->scratch + n, what->words * sizeof(uint64_t));
        n += what->words;
    }
    t->frame.pc = r->at;
}

static void branch(Run *r, Thread *t, uint32_t label)
{
    if (label >= r->m.bound || r->m.ids[label].op != OpLabel) {
        run_fail(r, "%%%u is no label", label);
        return;
    }
    t->frame.before = t->frame.label;
    t->frame.label = label;
    t->frame.pc = r->m.ids[label].at + 2;
    take_phis(r, t);
}

static void branch_by(Run *r, Thread *t)
{
    const uint32_t cond = operand(r, 0);

    if (type_of(r, cond)->op != OpTypeBool)
        run_fail(r, "%%%u is no condition", cond);
    else
        branch(r, t, operand(r, *value_at(r, t, cond) ? 1 : 2));
}

static void branch_among(Run *r, Thread *t)
{
    const Type    *by = type_of(r, operand(r, 0));
    const uint64_t v = *value_at(r, t, operand(r, 0));
    const uint32_t words = by->bits == 64 ? 2 : 1;
    uint32_t       to = operand(r, 1);

    if (by->op != OpTypeInt || by->bits < 32)
        run_fail(r, "a switch by what is no number of 32 bits or 64");
    for (uint32_t i = 2; i + words < operand_count(r); i += words + 1) {
        uint64_t one = operand(r, i) | (words == 2 ? (uint64_t)operand(r, i + 1) << 32 : 0);
        if (one == v) {
            to = operand(r, i + words);
            break;
        }
    }
    if (!r->error)
        branch(r, t, to);
}

static void call(Run *r, Thread *t)
{
    const uint32_t f = operand(r, 2), result = operand(r, 1);
    uint32_t       at = f < r->m.bound && r->m.ids[f].op == OpFunction ? r->m.ids[f].at : 0, i = 3;

    if (!at)
        run_fail(r, "%%%u is no function", f);
    else if (t->depth == CALLS_MOST)
        run_fail(r, "calls that are too deep");
    if (r->error)
        return;
    for (at += r->m.words[at] >> 16; op_at(r, at) == OpFunctionParameter && !r->error;
         at += r->m.words[at] >> 16)
        copy_value(r, t, r->m.words[at + 2], operand(r, i++));
    if (i != operand_count(r))
        run_fail(r, "%u arguments", operand_count(r) - 3);
    t->calls[t->depth] = t->frame;
    t->calls[t->depth++].result = result;
    t->frame = (Frame){.pc = at};
}

static void leave(Run *r, Thread *t, bool with_value)
{
    if (!t->depth) {
        t->state = THREAD_DONE;
        return;
    }
    if (with_value)
        copy_value(r, t, t->calls[t->depth - 1].result, operand(r, 0));
    t->frame = t->calls[--t->depth];
}

/* All threads of the workgroup meet, and what they have stored is there for the others. */
static void barrier(Run *r, Thread *t)
{
    enum { ACQUIRE_RELEASE = 0x8, OF_WORKGROUP = 0x100, AVAILABLE = 0x2000, VISIBLE = 0x4000 };
    const uint32_t scope = constant_at(r, operand(r, 0)), memory = constant_at(r, operand(r, 1));
    const uint32_t orders = constant_at(r, operand(r, 2));
    uint32_t       needs = ACQUIRE_RELEASE | OF_WORKGROUP;

    if (r->m.memory_model == MODEL_VULKAN)
        needs |= AVAILABLE | VISIBLE;
    if (scope != SCOPE_OF_WORKGROUP || memory != SCOPE_OF_WORKGROUP)
        run_fail(r, "a barrier of scope %u, of memory of scope %u", scope, memory);
    else if ((orders & needs) != needs)
        run_fail(r, "a barrier that does not order memory of the workgroup: %#x", orders);
    t->state = THREAD_AT_BARRIER;
    t->frame.pc = r->at;
}

/* ---- instructions -------------------------------------------------------------------------------- */

static void step(Run *r, Thread *t, Opcode op)
{
    switch (op) {
    case OpFunction:
    case OpFunctionParameter:
    case OpUndef:
    case OpLoopMerge:
    case OpSelectionMerge: return;
    case OpLabel: t->frame.label = operand(r, 0); return;
    case OpBranch: branch(r, t, operand(r, 0)); return;
    case OpBranchConditional: branch_by(r, t); return;
    case OpSwitch: branch_among(r, t); return;
    case OpFunctionCall: call(r, t); return;
    case OpReturn:
    case OpReturnValue: leave(r, t, op == OpReturnValue); return;
    case OpControlBarrier: barrier(r, t); return;
    case OpVariable: forget(r, t); return;
    case OpLoad: load(r, t); return;
    case OpStore: store(r, t); return;
    case OpAccessChain: access_chain(r, t); return;
    case OpBitcast: bitcast(r, t); return;
    case OpCompositeConstruct: construct(r, t); return;
    case OpCompositeExtract: extract(r, t); return;
    case OpSelect: choose(r, t); return;
    case OpSDotKHR:
    case OpUDotKHR:
    case OpSUDotKHR: dot_step(r, t, op); return;
    case OpCooperativeMatrixLengthKHR:
        *value_at(r, t, operand(r, 1)) = type_at(r, operand(r, 2))->n;
        return;
    default: break;
    }
    if (matrix_has(op)) {
        t->state = THREAD_AT_MATRIX;
        t->frame.pc = r->at;
    } else if (arith_has(op)) {
        arith_step(r, t, op);
    } else {
        run_fail(r, "not an instruction of a function's block");
    }
}

void thread_run(Run *r, Thread *t)
{
    enum { STEPS_MOST = 1 << 26 };

    for (uint32_t n = 0; t->state == THREAD_RUNS && !r->error; n++) {
        if (t->frame.pc >= r->m.n || n == STEPS_MOST) {
            run_fail(r, "a function that does not end");
            return;
        }
        r->at = t->frame.pc;
        t->frame.pc += operand_count(r) + 1;
        step(r, t, op_at(r, r->at));
    }
}
