/* A module, read once from its first word to its last: types with their sizes, constants, where
 * functions and labels are, and a place in a thread's table for each value. */
#include "tests/backends/vulkan/spirv.h"

#include <string.h>

enum {
    HEAD = 5,
    MAGIC = 0x07230203,
    VERSION_1_6 = 0x00010600,
    IDS_MOST = 1 << 22,
    SLOTS_MOST = 1 << 22,
    BYTES_MOST = 1 << 26 /* of what has a size */
};

static const OpRow rows[] = {
#define OP(name, number, result, least) {number, least, "Op" #name, result},
#include "tests/backends/vulkan/spirv.def"
};

const OpRow *op_row(uint32_t number)
{
    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].number == number)
            return &rows[i];
    return NULL;
}

/* ---- what is known of an id ---------------------------------------------------------------------- */

static Id *id_at(Run *r, uint32_t id)
{
    if (id && id < r->m.bound)
        return &r->m.ids[id];
    run_fail(r, "%%%u is no id below the bound", id);
    return &r->m.ids[0];
}

const Type *type_at(Run *r, uint32_t id)
{
    static const Type none = {.op = OpTypeVoid};
    const Id         *x = id_at(r, id);

    if (!x->is)
        run_fail(r, "%%%u is no type", id);
    return x->is ? x->is : &none;
}

uint32_t constant_at(Run *r, uint32_t id)
{
    const Id *x = id_at(r, id);

    if (x->op == OpConstant && x->type->op == OpTypeInt && x->type->bits == 32)
        return r->m.words[x->at + 3];
    run_fail(r, "%%%u is no constant of 32 bits", id);
    return 0;
}

/* ---- sections before functions ------------------------------------------------------------------- */

/* A name in words, of which the last one has a zero; "" with an error: it ends nowhere. */
static const char *text_from(Run *r, uint32_t i)
{
    const char *text = (const char *)(r->m.words + r->at + 1 + i);

    if (i < operand_count(r) && memchr(text, 0, (operand_count(r) - i) * sizeof(uint32_t)))
        return text;
    run_fail(r, "a name without an end");
    return "";
}

static bool knows_number(uint32_t number, const uint32_t *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] == number)
            return true;
    return false;
}

static void capability(Run *r, uint32_t number)
{
    static const uint32_t known[] = {
#define CAPABILITY(name, number) number,
#include "tests/backends/vulkan/spirv.def"
    };

    if (!knows_number(number, known, COUNT(known)))
        run_fail(r, "capability %u, which the interpreter does not know", number);
    r->m.matrices = r->m.matrices || number == CapabilityCooperativeMatrixKHR;
    r->m.dots = r->m.dots || number == CapabilityDotProductKHR;
    r->m.packed_dots = r->m.packed_dots || number == CapabilityDotProductInput4x8BitPackedKHR;
    r->m.vulkan_memory = r->m.vulkan_memory || number == CapabilityVulkanMemoryModel;
}

static void extension(Run *r)
{
    static const char *const known[] = {
#define EXTENSION(name) #name,
#include "tests/backends/vulkan/spirv.def"
    };
    const char *name = text_from(r, 0);

    for (size_t i = 0; i < COUNT(known); i++)
        if (!strcmp(known[i], name))
            return;
    run_fail(r, "extension %s, which the interpreter does not know", name);
}

/* Matrices are of modules with Vulkan's memory model (SPV_KHR_cooperative_matrix). */
static void memory_model(Run *r, uint32_t addressing, uint32_t model)
{
    r->m.memory_model = model;
    if (addressing != ADDRESSING_PHYSICAL64)
        run_fail(r, "addressing model %u", addressing);
    else if (model != (r->m.vulkan_memory ? MODEL_VULKAN : MODEL_GLSL450))
        run_fail(r, "memory model %u %s capability VulkanMemoryModel", model,
                 r->m.vulkan_memory ? "with" : "without");
    else if (r->m.matrices && model != MODEL_VULKAN)
        run_fail(r, "cooperative matrices without the memory model Vulkan");
}

static void execution_mode(Run *r)
{
    static const uint32_t known[] = {
#define MODE(name, number) number,
#include "tests/backends/vulkan/spirv.def"
    };
    const uint32_t mode = operand(r, 1);

    if (!knows_number(mode, known, COUNT(known)))
        run_fail(r, "execution mode %u, which the interpreter does not know", mode);
    for (uint32_t i = 0; i < 3 && mode == ModeLocalSize && operand(r, 0) == r->m.function; i++)
        r->m.size[i] = operand(r, 2 + i);
}

static void decorate(Run *r, bool member)
{
    static const uint32_t known[] = {
#define DECORATION(name, number) number,
#include "tests/backends/vulkan/spirv.def"
    };
    const uint32_t id = operand(r, 0), i = member ? 2 : 1, kind = operand(r, i);
    const uint32_t value = operand(r, i + 1);

    if (!knows_number(kind, known, COUNT(known)))
        run_fail(r, "decoration %u, which the interpreter does not know", kind);
    if (member)
        vec_push(r->arena, &r->m.notes, ((MemberNote){id, operand(r, 1), kind, value}));
    else if (kind == DecorationArrayStride)
        id_at(r, id)->stride = value;
    else if (kind == DecorationBuiltIn)
        id_at(r, id)->built_in = value;
}

/* ---- types --------------------------------------------------------------------------------------- */

static void number_type(Run *r, Type *t, uint32_t bits)
{
    const bool fits = bits == 16 || bits == 32 || bits == 64 || (bits == 8 && t->op == OpTypeInt);

    t->bits = bits;
    t->words = 1;
    t->bytes = bits / 8;
    if (!fits)
        run_fail(r, "a number of %u bits", bits);
}

static void vector_type(Run *r, Type *t)
{
    t->of = type_at(r, operand(r, 1));
    t->n = t->words = operand(r, 2);
    t->bytes = t->n * t->of->bytes;
    if (!t->of->bits || t->n < 2 || t->n > 4)
        run_fail(r, "a vector of %u components", t->n);
}

static void array_type(Run *r, Type *t, uint32_t stride)
{
    t->of = type_at(r, operand(r, 1));
    t->stride = stride ? stride : (uint32_t)t->of->bytes;
    if (!t->of->bytes)
        run_fail(r, "an array of what has no size");
    if (t->op == OpTypeRuntimeArray)
        return;
    t->n = constant_at(r, operand(r, 2));
    t->bytes = (uint64_t)t->n * t->stride;
    if (!t->n || t->bytes > BYTES_MOST)
        run_fail(r, "an array of %u elements", t->n);
}

static void struct_type(Run *r, Type *t, uint32_t id)
{
    t->n = operand_count(r) - 1;
    t->members = r->m.words + r->at + 2;
    t->offsets = NEW_ARRAY(r->arena, uint32_t, t->n + 1);
    for (uint32_t i = 0; i < t->n; i++)
        t->offsets[i] = NOTHING;
    for (uint32_t i = 0; i < r->m.notes.n; i++) {
        const MemberNote *x = &r->m.notes.at[i];
        if (x->id == id && x->member < t->n && x->kind == DecorationOffset)
            t->offsets[x->member] = x->value;
    }
    for (uint32_t i = 0; i < t->n; i++) {
        const uint64_t bytes = type_at(r, t->members[i])->bytes;
        if (t->offsets[i] == NOTHING)
            run_fail(r, "member %u has no offset", i);
        t->bytes = t->offsets[i] + bytes > t->bytes ? t->offsets[i] + bytes : t->bytes;
    }
    if (t->bytes > BYTES_MOST)
        run_fail(r, "a struct of %llu bytes", (unsigned long long)t->bytes);
}

static void matrix_type(Run *r, Type *t)
{
    enum { SIDE_MOST = 256, USES = 3 };
    const uint32_t scope = constant_at(r, operand(r, 2));

    t->of = type_at(r, operand(r, 1));
    t->rows = constant_at(r, operand(r, 3));
    t->cols = constant_at(r, operand(r, 4));
    t->use = constant_at(r, operand(r, 5));
    if (!r->m.matrices)
        run_fail(r, "a cooperative matrix without its capability");
    else if (scope != SCOPE_OF_SUBGROUP)
        run_fail(r, "a matrix of scope %u, not of a subgroup", scope);
    else if (t->use >= USES || !t->rows || !t->cols || t->rows > SIDE_MOST || t->cols > SIDE_MOST)
        run_fail(r, "a matrix of %u x %u, use %u", t->rows, t->cols, t->use);
    else if (t->of->op != OpTypeInt && t->of->op != OpTypeFloat)
        run_fail(r, "a matrix of what is no number");
    t->n = t->words = r->error ? 1 : matrix_share(t->rows, t->cols);
    t->bytes = t->words * sizeof(uint64_t);
}

static void type(Run *r, Opcode op, Id *x)
{
    Type *t = x->is = NEW(r->arena, Type);

    t->op = op;
    switch (op) {
    case OpTypeBool: t->bits = t->words = 1, t->bytes = 1; return;
    case OpTypeInt:
    case OpTypeFloat: number_type(r, t, operand(r, 1)); return;
    case OpTypeVector: vector_type(r, t); return;
    case OpTypeArray:
    case OpTypeRuntimeArray: array_type(r, t, x->stride); return;
    case OpTypeStruct: struct_type(r, t, operand(r, 0)); return;
    case OpTypePointer:
        t->storage = operand(r, 1);
        t->of = type_at(r, operand(r, 2));
        t->words = 2;
        return;
    case OpTypeFunction: t->of = type_at(r, operand(r, 1)); return;
    case OpTypeCooperativeMatrixKHR: matrix_type(r, t); return;
    default: return; /* OpTypeVoid */
    }
}

/* ---- constants ----------------------------------------------------------------------------------- */

/* A constant's words; what nobody has defined is all ones, a NaN in every float type. */
static void constant(Run *r, Opcode op, const Id *x, uint64_t *out)
{
    const Type    *t = x->type;
    const bool     one = t->op == OpTypeCooperativeMatrixKHR;
    const uint32_t bits = component_of(t)->bits, parts = operand_count(r) - 2;

    if (op == OpConstant) {
        out[0] = operand(r, 2) | (bits == 64 ? (uint64_t)operand(r, 3) << 32 : 0);
        out[0] = cut_to(bits, out[0]);
    }
    if (op == OpConstantComposite && parts != (one ? 1 : t->n)) {
        run_fail(r, "%u parts of a value that has %u", parts, t->words);
        return;
    }
    for (uint32_t i = 0; i < t->words; i++) {
        if (op == OpConstantTrue)
            out[i] = 1;
        if (op == OpUndef)
            out[i] = cut_to(bits, UINT64_MAX);
        if (op == OpConstantComposite) {
            const Id *part = id_at(r, operand(r, 2 + (one ? 0 : i)));
            if (part->slot == NOTHING || part->type != component_of(t))
                run_fail(r, "a part that is of another type");
            else
                out[i] = r->m.constants[part->slot];
        }
    }
}

/* ---- the whole ----------------------------------------------------------------------------------- */

/* Room for a value of the type. */
static uint32_t new_slot(Run *r, const Type *t)
{
    const uint32_t at = r->m.slots;

    if (at + t->words > SLOTS_MOST)
        run_fail(r, "more values than the interpreter has room for");
    else
        r->m.slots += t->words;
    return r->error ? 0 : at;
}

static void result(Run *r, Opcode op, char kind)
{
    const uint32_t at = kind == 't' ? 1 : 0;
    Id            *x = id_at(r, operand(r, at));

    if (r->error)
        return;
    if (x->at) {
        run_fail(r, "%%%u has two definitions", operand(r, at));
        return;
    }
    x->at = r->at;
    x->op = op;
    if (kind == 't') {
        x->type = type_at(r, operand(r, 0));
        x->slot = new_slot(r, x->type);
    }
}

/* What an instruction says before a thread comes to it. */
static void section(Run *r, Opcode op)
{
    Id *x = op_row(op)->result == 'r' ? id_at(r, operand(r, 0)) : NULL;

    switch (op) {
    case OpCapability: capability(r, operand(r, 0)); return;
    case OpExtension: extension(r); return;
    case OpMemoryModel: memory_model(r, operand(r, 0), operand(r, 1)); return;
    case OpExtInstImport:
        if (strcmp(text_from(r, 1), "GLSL.std.450"))
            run_fail(r, "instructions of another set");
        r->m.glsl = operand(r, 0);
        return;
    case OpEntryPoint:
        if (!strcmp(text_from(r, 2), r->launch->entry) && operand(r, 0) == EXECUTION_COMPUTE)
            r->m.function = operand(r, 1);
        return;
    case OpExecutionMode: execution_mode(r); return;
    case OpDecorate:
    case OpMemberDecorate: decorate(r, op == OpMemberDecorate); return;
    case OpVariable: vec_push(r->arena, &r->m.variables, operand(r, 1)); return;
    case OpTypeVoid:
    case OpTypeBool:
    case OpTypeInt:
    case OpTypeFloat:
    case OpTypeVector:
    case OpTypeArray:
    case OpTypeRuntimeArray:
    case OpTypeStruct:
    case OpTypePointer:
    case OpTypeFunction:
    case OpTypeCooperativeMatrixKHR: type(r, op, x); return;
    default: return;
    }
}

static bool is_constant(Opcode op)
{
    return op == OpUndef || op == OpConstantTrue || op == OpConstantFalse || op == OpConstant ||
           op == OpConstantComposite || op == OpConstantNull;
}

/* The next instruction's number, a row of the table; false at the end and at an error. */
static bool next(Run *r, Opcode *op)
{
    const uint32_t at = r->at = r->at ? r->at + (r->m.words[r->at] >> 16) : HEAD;

    if (r->error || at >= r->m.n)
        return false;
    const uint32_t words = r->m.words[at] >> 16, number = r->m.words[at] & 0xffff;
    const OpRow   *row = op_row(number);
    if (!row)
        run_fail(r, "instruction %u, which the interpreter does not know", number);
    else if (words <= row->least || words > r->m.n - at)
        run_fail(r, "an instruction of %u words", words);
    *op = (Opcode)number;
    return !r->error;
}

static void find_entry(Run *r)
{
    const Id *f = r->m.function ? id_at(r, r->m.function) : NULL;

    if (r->error)
        return;
    if (!f || f->op != OpFunction)
        run_fail(r, "no entry point '%s' of compute shaders", r->launch->entry);
    else if (!r->m.size[0])
        run_fail(r, "'%s' has no local size", r->launch->entry);
    else
        r->m.entry = f->at;
}

void module_read(Run *r, const uint32_t *words, size_t n)
{
    SpirvModule *m = &r->m;
    Opcode       op;

    *m = (SpirvModule){.words = words, .n = (uint32_t)n};
    if (n <= HEAD || n > UINT32_MAX || words[0] != MAGIC || words[1] > VERSION_1_6 || !words[3] ||
        words[3] > IDS_MOST) {
        run_fail(r, "not a module of SPIR-V");
        return;
    }
    m->bound = words[3];
    m->ids = NEW_ARRAY(r->arena, Id, m->bound);
    for (uint32_t i = 0; i < m->bound; i++)
        m->ids[i].slot = NOTHING;
    for (r->at = 0; next(r, &op);) {
        if (op_row(op)->result != '-')
            result(r, op, op_row(op)->result);
        section(r, op);
    }
    /* again, since there has to be room for all values before some are put there */
    m->constants = NEW_ARRAY(r->arena, uint64_t, m->slots + 1);
    for (r->at = 0; next(r, &op);)
        if (is_constant(op)) {
            const Id *x = id_at(r, operand(r, 1));
            constant(r, op, x, m->constants + x->slot);
        }
    r->at = 0;
    if (!r->error)
        find_entry(r);
}
