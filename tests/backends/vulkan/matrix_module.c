/* The words of matrix_module.h, in the order of a module's sections. */
#include "tests/backends/vulkan/matrix_module.h"
#include "tests/backends/vulkan/spirv.h"

#include <string.h>

enum { SHARED_CELLS = SIDE * TILES * SIDE };

/* ---- words --------------------------------------------------------------------------------------- */

enum { HEAD, GLOBALS, BODY, PARTS, WORDS_MOST = MODULE_WORDS_MOST / 4, CONSTANTS_MOST = 64 };

typedef struct {
    uint32_t words[PARTS][WORDS_MOST], n[PARTS], last;
    uint32_t u32, constant[CONSTANTS_MOST], value[CONSTANTS_MOST], nconstants;
} Code;

static void put(Code *c, int part, Opcode op, uint32_t n, const uint32_t *operands)
{
    uint32_t *to = c->words[part] + c->n[part];

    to[0] = (n + 1) << 16 | (uint32_t)op;
    memcpy(to + 1, operands, n * sizeof *to);
    c->n[part] += n + 1;
}

/* An instruction with a result, and a type of it if that is not 0; the result. */
static uint32_t make(Code *c, int part, Opcode op, uint32_t type, uint32_t n,
                     const uint32_t *operands)
{
    uint32_t all[16] = {type}, at = type != 0, id = ++c->last;

    all[at] = id;
    memcpy(all + at + 1, operands, n * sizeof *all);
    put(c, part, op, n + at + 1, all);
    return id;
}

#define LIST(...)                                                      \
    sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), (uint32_t[]) \
    {                                                                  \
        __VA_ARGS__                                                    \
    }
#define SAY(op, ...) put(c, HEAD, op, LIST(__VA_ARGS__))
#define TYPE(op, ...) make(c, GLOBALS, op, 0, LIST(__VA_ARGS__))
#define CONSTANT(op, type, ...) make(c, GLOBALS, op, type, LIST(__VA_ARGS__))
#define DO(op, ...) put(c, BODY, op, LIST(__VA_ARGS__))
#define GET(op, type, ...) make(c, BODY, op, type, LIST(__VA_ARGS__))
#define PLAIN(part, op) put(c, part, op, 0, (uint32_t[]){0})

static void put_text(Code *c, Opcode op, uint32_t n, const uint32_t *operands, const char *text)
{
    uint32_t all[16] = {0};

    memcpy(all, operands, n * sizeof *all);
    for (uint32_t i = 0; text[i]; i++)
        all[n + i / 4] |= (uint32_t)text[i] << i % 4 * 8;
    put(c, HEAD, op, n + (uint32_t)strlen(text) / 4 + 1, all);
}

/* A constant of 32 bits. */
static uint32_t k(Code *c, uint32_t v)
{
    uint32_t i = 0;

    while (i < c->nconstants && c->value[i] != v)
        i++;
    if (i == c->nconstants) {
        c->value[c->nconstants++] = v;
        c->constant[i] = CONSTANT(OpConstant, c->u32, v);
    }
    return c->constant[i];
}

static void label(Code *c, uint32_t id)
{
    DO(OpLabel, id);
}

/* ---- the module ---------------------------------------------------------------------------------- */

typedef struct {
    Code           c;
    const Variant *v;
    uint32_t       none, truth, number, pair; /* types: void, bool, of sums, of two words */
    uint32_t       matrix[3], half_sums;      /* a, b, sums; sums of 16 bits */
    uint32_t       push, shared, sums;        /* variables */
    uint32_t       thread, subgroup;          /* numbers along x, along y */
    uint32_t       main;
} Builder;

/* Types that are no aggregates are declared once. */
static uint32_t pointer_to(Code *c, uint32_t storage, uint32_t to)
{
    const uint32_t *w = c->words[GLOBALS];

    for (uint32_t i = 0; i < c->n[GLOBALS]; i += w[i] >> 16)
        if (w[i] == (4u << 16 | OpTypePointer) && w[i + 2] == storage && w[i + 3] == to)
            return w[i + 1];
    return TYPE(OpTypePointer, storage, to);
}

static void put_head(Builder *b)
{
    Code          *c = &b->c;
    const bool     vulkan = b->v->fault != OTHER_MODEL;
    const uint32_t entry[] = {EXECUTION_COMPUTE, b->main};

    SAY(OpCapability, CapabilityShader);
    SAY(OpCapability, CapabilityPhysicalStorageBufferAddresses);
    SAY(OpCapability, CapabilityCooperativeMatrixKHR);
    if (vulkan)
        SAY(OpCapability, CapabilityVulkanMemoryModel);
    put_text(c, OpExtension, 0, entry, "SPV_KHR_cooperative_matrix");
    SAY(OpMemoryModel, ADDRESSING_PHYSICAL64, vulkan ? MODEL_VULKAN : MODEL_GLSL450);
    put_text(c, OpEntryPoint, 2, entry, "main");
    SAY(OpExecutionMode, b->main, ModeLocalSize, b->v->fault == NARROW ? 16 : 32,
        b->v->fault == NARROW ? 1 : SUBGROUPS, 1);
}

static void put_types(Builder *b)
{
    Code    *c = &b->c;
    uint32_t steps, of;

    b->none = make(c, GLOBALS, OpTypeVoid, 0, 0, &b->main);
    b->truth = make(c, GLOBALS, OpTypeBool, 0, 0, &b->main);
    c->u32 = TYPE(OpTypeInt, 32, 0);
    b->pair = TYPE(OpTypeVector, c->u32, 2);
    b->number = b->v->bytes ? c->u32 : TYPE(OpTypeFloat, 32);
    of = b->v->bytes ? TYPE(OpTypeInt, 8, 0) : TYPE(OpTypeFloat, 16);
    steps = k(c, b->v->bytes ? 32 : 16);
    b->matrix[0] = TYPE(OpTypeCooperativeMatrixKHR, of, k(c, 3), k(c, SIDE), steps, k(c, 0));
    b->matrix[1] = TYPE(OpTypeCooperativeMatrixKHR, of, k(c, 3), steps, k(c, SIDE), k(c, 1));
    b->matrix[2] =
        TYPE(OpTypeCooperativeMatrixKHR, b->number, k(c, 3), k(c, SIDE), k(c, SIDE), k(c, 2));
    b->half_sums = b->v->bytes ? 0
                               : TYPE(OpTypeCooperativeMatrixKHR, of, k(c, 3), k(c, SIDE),
                                      k(c, SIDE), k(c, 2));
}

/* The address that push constant i is, as a pointer to struct { cell at[]; }. */
static uint32_t buffer(Builder *b, uint32_t i, uint32_t cell, uint32_t stride)
{
    Code    *c = &b->c;
    uint32_t array = TYPE(OpTypeRuntimeArray, cell), all = TYPE(OpTypeStruct, array), at;
    uint32_t pointer = pointer_to(c, STORAGE_PUSH, b->pair);

    SAY(OpDecorate, array, DecorationArrayStride, stride);
    SAY(OpMemberDecorate, all, 0, DecorationOffset, 0);
    at = GET(OpLoad, b->pair, GET(OpAccessChain, pointer, b->push, k(c, i)));
    return GET(OpBitcast, pointer_to(c, STORAGE_PHYSICAL, all), at);
}

static uint32_t cell_of(Builder *b, uint32_t buffer, uint32_t cell, uint32_t i)
{
    Code *c = &b->c;

    return GET(OpAccessChain, pointer_to(c, STORAGE_PHYSICAL, cell), buffer, k(c, 0), i);
}

static void put_variables(Builder *b)
{
    Code    *c = &b->c;
    uint32_t vec3 = TYPE(OpTypeVector, c->u32, 3), input = pointer_to(c, STORAGE_INPUT, vec3);
    uint32_t push = TYPE(OpTypeStruct, b->pair, b->pair, b->pair);
    uint32_t array = TYPE(OpTypeArray, c->u32, k(c, SUBGROUPS * SHARED_CELLS));
    uint32_t sums = TYPE(OpTypeArray, b->matrix[2], k(c, TILES)), id;

    for (uint32_t i = 0; i < 3; i++)
        SAY(OpMemberDecorate, push, i, DecorationOffset, 8 * i);
    b->push = CONSTANT(OpVariable, pointer_to(c, STORAGE_PUSH, push), STORAGE_PUSH);
    b->shared = CONSTANT(OpVariable, pointer_to(c, STORAGE_WORKGROUP, array), STORAGE_WORKGROUP);
    b->sums = GET(OpVariable, pointer_to(c, STORAGE_FUNCTION, sums), STORAGE_FUNCTION);
    id = CONSTANT(OpVariable, input, STORAGE_INPUT);
    SAY(OpDecorate, id, DecorationBuiltIn, BUILTIN_LOCAL_ID);
    id = GET(OpLoad, vec3, id);
    b->thread = GET(OpCompositeExtract, c->u32, id, 0);
    b->subgroup = GET(OpCompositeExtract, c->u32, id, 1);
}

/* `then` of the thread with that number along x, else `other`. */
static uint32_t for_thread(Builder *b, uint32_t number, uint32_t then, uint32_t other)
{
    Code    *c = &b->c;
    uint32_t is = GET(OpIEqual, b->truth, b->thread, k(c, number));

    return GET(OpSelect, c->u32, is, then, other);
}

/* One thread leaves, or goes on at `around`. */
static void part(Builder *b, uint32_t number, uint32_t around)
{
    Code    *c = &b->c;
    uint32_t is = GET(OpIEqual, b->truth, b->thread, k(c, number)), leave = ++c->last;
    uint32_t stay = ++c->last;

    DO(OpSelectionMerge, around ? around : stay, 0);
    DO(OpBranchConditional, is, around ? around : leave, stay);
    if (!around) {
        label(c, leave);
        PLAIN(BODY, OpReturn);
    }
    label(c, stay);
}

/* The subgroup's tile of `a`. */
static uint32_t load_a(Builder *b)
{
    Code       *c = &b->c;
    const Fault fault = b->v->fault;
    uint32_t    u16 = TYPE(OpTypeInt, 16, 0), a = buffer(b, 0, u16, 2);
    uint32_t    line = b->v->layout[0] && b->v->bytes ? 8 : 16; /* numbers of 16 bits */
    uint32_t    stride = k(c, fault == ODD_STRIDE ? line + 1 : line), around = 0;
    uint32_t    at = GET(OpIMul, c->u32, b->subgroup, k(c, TILE_BYTES / 2)), id;

    if (fault == OTHER_STRIDE)
        stride = for_thread(b, 3, k(c, 24), stride);
    if (fault == OTHER_POINTER || fault == OFF_BORDER)
        at = GET(OpIAdd, c->u32, at,
                 fault == OFF_BORDER ? k(c, 1) : for_thread(b, 31, k(c, 8), k(c, 0)));
    at = cell_of(b, a, u16, at);
    if (fault == STAYS_AWAY)
        part(b, 5, around = ++c->last);
    if (fault == LEAVES)
        part(b, 5, 0);
    if (fault == NO_STRIDE)
        id = GET(OpCooperativeMatrixLoadKHR, b->matrix[0], at, k(c, b->v->layout[0]));
    else if (fault == NO_ALIGNED)
        id = GET(OpCooperativeMatrixLoadKHR, b->matrix[0], at, k(c, b->v->layout[0]), stride);
    else
        id =
            GET(OpCooperativeMatrixLoadKHR, b->matrix[0], at, k(c, b->v->layout[0]), stride, 2, 16);
    if (around) {
        DO(OpBranch, around);
        label(c, around);
    }
    return id;
}

static uint32_t load_b(Builder *b, uint32_t memory, uint32_t tile)
{
    Code    *c = &b->c;
    uint32_t line = !b->v->layout[1] && b->v->bytes ? 2 : 4; /* pairs of words */
    uint32_t at = cell_of(b, memory, b->pair, k(c, tile * TILE_BYTES / 8));

    return GET(OpCooperativeMatrixLoadKHR, b->matrix[1], at, k(c, b->v->layout[1]), k(c, line), 2,
               16);
}

/* Each element of the thread's own, one by one: doubled. */
static void double_elements(Builder *b, uint32_t sums)
{
    Code    *c = &b->c;
    uint32_t before = ++c->last, header = ++c->last, body = ++c->last, done = ++c->last;
    uint32_t next = ++c->last, n, i, at, v;

    n = GET(OpCooperativeMatrixLengthKHR, c->u32, b->matrix[2]);
    DO(OpBranch, before);
    label(c, before);
    DO(OpBranch, header);
    label(c, header);
    i = GET(OpPhi, c->u32, k(c, 0), before, next, body);
    v = GET(OpULessThan, b->truth, i, n);
    DO(OpLoopMerge, done, body, 0);
    DO(OpBranchConditional, v, body, done);
    label(c, body);
    at = GET(OpAccessChain, pointer_to(c, STORAGE_FUNCTION, b->number), sums, i);
    v = GET(OpLoad, b->number, at);
    v = GET(b->v->bytes ? OpIAdd : OpFAdd, b->number, v, v);
    DO(OpStore, at, v);
    DO(OpIAdd, c->u32, next, i, k(c, b->v->fault != ENDLESS));
    DO(OpBranch, header);
    label(c, done);
}

/* A pointer to a cell of what the workgroup shares. */
static uint32_t shared_cell(Builder *b, uint32_t i)
{
    Code *c = &b->c;

    return GET(OpAccessChain, pointer_to(c, STORAGE_WORKGROUP, c->u32), b->shared, i);
}

/* The first tile begins with 0.5, or 5, doubled as a matrix; the other with 0.25, or 3, doubled
 * element by element. */
static void multiply(Builder *b)
{
    Code    *c = &b->c;
    uint32_t bytes = b->v->bytes, start[TILES], at[TILES], a, memory, m, v, first;
    uint32_t flags = b->v->signs, mul = OpCooperativeMatrixMulAddKHR;

    start[0] = CONSTANT(OpConstant, b->number, bytes ? 5 : 0x3f000000);
    start[1] = CONSTANT(OpConstant, b->number, bytes ? 3 : 0x3e800000);
    start[0] = CONSTANT(OpConstantComposite, b->matrix[2], start[0]);
    start[1] = GET(OpCompositeConstruct, b->matrix[2], start[1]);
    start[1] = GET(bytes ? OpIAdd : OpFAdd, b->matrix[2], start[1],
                   make(c, GLOBALS, OpConstantNull, b->matrix[2], 0, &b->main));
    a = load_a(b);
    memory = buffer(b, 1, b->pair, 8);
    for (uint32_t t = 0; t < TILES; t++) {
        at[t] = GET(OpAccessChain, pointer_to(c, STORAGE_FUNCTION, b->matrix[2]), b->sums, k(c, t));
        DO(OpStore, at[t], make(c, GLOBALS, OpUndef, b->matrix[2], 0, &b->main));
        DO(OpStore, at[t], start[t]);
        m = load_b(b, memory, t);
        v = GET(OpLoad, b->matrix[2], at[t]);
        if (b->v->fault == OTHER_USES)
            v = GET(mul, b->matrix[2], m, a, v);
        else if (bytes)
            v = GET(mul, b->matrix[2], a, m, v, flags);
        else
            v = GET(mul, b->matrix[2], a, m, v);
        DO(OpStore, at[t], v);
    }
    v = GET(OpLoad, b->matrix[2], at[0]);
    DO(OpStore, at[0], GET(bytes ? OpIAdd : OpFAdd, b->matrix[2], v, v));
    double_elements(b, at[1]);
    first = GET(OpIMul, c->u32, b->subgroup, k(c, SHARED_CELLS));
    for (uint32_t t = 0; t < TILES - (b->v->fault == HALF_STORED); t++) {
        uint32_t to = shared_cell(b, GET(OpIAdd, c->u32, first, k(c, t * SIDE)));
        v = GET(OpLoad, b->matrix[2], at[t]);
        if (!bytes) { /* through 16 bits and back */
            v = GET(OpFConvert, b->half_sums, v);
            v = GET(OpFConvert, b->matrix[2], v);
        }
        if (b->v->fault == PRIVATE)
            DO(OpCooperativeMatrixStoreKHR, to, v, k(c, 0), k(c, TILES * SIDE));
        else
            DO(OpCooperativeMatrixStoreKHR, to, v, k(c, 0), k(c, TILES * SIDE), 32);
    }
}

/* Of the cells that the subgroup has shared each thread copies some of the other one. */
static void copy_out(Builder *b)
{
    Code    *c = &b->c;
    uint32_t out = buffer(b, 2, c->u32, 4), first, at, v;

    first = GET(OpISub, c->u32, k(c, SUBGROUPS - 1), b->subgroup);
    first = GET(OpIMul, c->u32, first, k(c, SHARED_CELLS));
    first = GET(OpIAdd, c->u32, first, b->thread);
    for (uint32_t i = 0; i < SHARED_CELLS; i += 32) {
        at = GET(OpIAdd, c->u32, first, k(c, i));
        v = GET(OpLoad, c->u32, shared_cell(b, at), 32);
        DO(OpStore, cell_of(b, out, c->u32, at), v, 2, 4);
    }
}

static void barrier(Builder *b)
{
    Code    *c = &b->c;
    uint32_t scope = k(c, SCOPE_OF_WORKGROUP);

    if (b->v->fault == DIVERGENT)
        part(b, 7, 0);
    DO(OpControlBarrier, scope, scope, k(c, b->v->fault == WEAK_BARRIER ? 0x108 : 0x6108));
}

uint32_t module_build(const Variant *v, uint32_t out[MODULE_WORDS_MOST])
{
    Builder  builder = {.v = v, .main = 1}, *b = &builder;
    Code    *c = &b->c;
    uint32_t n = 5;

    c->last = b->main;
    put_head(b);
    put_types(b);
    DO(OpFunction, b->none, b->main, 0, TYPE(OpTypeFunction, b->none));
    label(c, ++c->last);
    put_variables(b);
    multiply(b);
    barrier(b);
    copy_out(b);
    if (v->fault == UNKNOWN)
        DO((Opcode)63, b->shared, b->shared);
    PLAIN(BODY, OpReturn);
    PLAIN(BODY, OpFunctionEnd);
    memcpy(out, ((uint32_t[]){0x07230203, 0x00010500, 0, c->last + 1, 0}), 5 * sizeof *out);
    for (int i = 0; i < PARTS; i++) {
        memcpy(out + n, c->words[i], c->n[i] * sizeof *out);
        n += c->n[i];
    }
    return v->fault == UNENDED ? n - 4 : n;
}
