/* A SPIR-V module while it is written: a list of words for each section.
 *
 *     %u32 = OpTypeInt 32 0
 *
 * Types, constants and pointers are made where they are asked for and found again by the words of
 * their instruction, so ids depend on the kernels alone: equal kernels give equal bytes. */
#include "backends/vulkan/vulkan.h"

#include <string.h>

enum { MAGIC = 0x07230203, VERSION = 0x00010500 /* 1.5, that of Vulkan 1.2 */ };

typedef struct Known Known;
struct Known {
    const Known    *next; /* of the same hash */
    uint32_t        id, n;
    const uint32_t *words;
};

static void add_words(Ctx *c, Words *to, uint32_t n, const uint32_t *words)
{
    for (uint32_t i = 0; i < n; i++)
        vec_push(c->arena, to, words[i]);
}

void spv_put(Spirv *s, Words *to, SpvOp op, uint32_t n, const uint32_t *operands)
{
    vec_push(s->c->arena, to, (n + 1) << 16 | (uint32_t)op);
    add_words(s->c, to, n, operands);
}

uint32_t spv_id(Spirv *s)
{
    return ++s->last;
}

/* ---- things that are made once ------------------------------------------------------------------- */

static uint64_t hash_of(uint32_t n, const uint32_t *words)
{
    uint64_t h = UINT64_C(14695981039346656037);

    for (uint32_t i = 0; i < n; i++)
        h = (h ^ words[i]) * UINT64_C(1099511628211);
    return h;
}

/* The id under these words; 0: it is a fresh one, which they then stand for. */
static uint32_t look_up(Spirv *s, uint32_t n, const uint32_t *words, uint32_t *id)
{
    uint64_t     h = hash_of(n, words);
    const Known *first = map_get(s->known, h), *k = first;

    while (k && (k->n != n || memcmp(k->words, words, n * sizeof *words) != 0))
        k = k->next;
    if (k)
        return *id = k->id;
    Known fresh = {first, *id = spv_id(s), n, DUP_ARRAY(s->c->arena, words, n)};
    map_put(s->known, h, DUP_ARRAY(s->c->arena, &fresh, 1));
    return 0;
}

/* An instruction of the section of types, whose result stands before or behind its type; `mark`
 * tells those apart that have equal words and other decorations. */
static uint32_t global(Spirv *s, SpvOp op, uint32_t type, uint32_t n, const uint32_t *operands,
                       uint32_t mark, bool *fresh)
{
    uint32_t *words = NEW_ARRAY(s->c->arena, uint32_t, n + 4), id, at = 0;

    words[0] = (uint32_t)op;
    words[1] = type;
    words[2] = mark;
    memcpy(words + 3, operands, n * sizeof *words);
    *fresh = !look_up(s, n + 3, words, &id);
    if (!*fresh)
        return id;
    if (type)
        words[at++] = type;
    words[at++] = id;
    memmove(words + at, operands, n * sizeof *words);
    spv_put(s, &s->globals, op, n + at, words);
    return id;
}

#define GLOBAL(s, op, type, ...)                                              \
    global(s, op, type, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), \
           (uint32_t[]){__VA_ARGS__}, 0, &(bool){false})

void spv_capability(Spirv *s, SpvEnum what)
{
    uint32_t words[2] = {OpCapability, (uint32_t)what}, id;

    if (!look_up(s, 2, words, &id))
        PUT(s, &s->capabilities, OpCapability, (uint32_t)what);
}

static uint32_t string_words(const char *text, uint32_t room, uint32_t *words)
{
    uint32_t n = (uint32_t)strlen(text) / 4 + 1;

    if (n > room)
        BUG("a name of %u words", n);
    memset(words, 0, n * sizeof *words);
    for (uint32_t i = 0; text[i]; i++)
        words[i / 4] |= (uint32_t)(uint8_t)text[i] << i % 4 * 8;
    return n;
}

uint32_t spv_glsl(Spirv *s)
{
    uint32_t words[8];

    if (s->glsl)
        return s->glsl;
    words[0] = s->glsl = spv_id(s);
    spv_put(s, &s->imports, OpExtInstImport, 1 + string_words("GLSL.std.450", 7, words + 1), words);
    return s->glsl;
}

void spv_entry(Spirv *s, uint32_t function, const char *name, const Words *interface)
{
    uint32_t  room = (uint32_t)strlen(name) / 4 + 1, n = 2;
    uint32_t *words = NEW_ARRAY(s->c->arena, uint32_t, room + interface->n + 2);

    words[0] = SpvGLCompute;
    words[1] = function;
    n += string_words(name, room, words + 2);
    for (uint32_t i = 0; i < interface->n; i++)
        words[n++] = interface->at[i];
    spv_put(s, &s->entries, OpEntryPoint, n, words);
}

/* ---- types --------------------------------------------------------------------------------------- */

static uint32_t int_type(Spirv *s, uint32_t bits)
{
    return GLOBAL(s, OpTypeInt, 0, bits, 0); /* signs are the instructions' */
}

uint32_t spv_type(Spirv *s, DType t)
{
    if (dtype_is_bool(t))
        return global(s, OpTypeBool, 0, 0, (uint32_t[]){0}, 0, &(bool){false});
    if (t.bits == 64)
        spv_capability(s, dtype_is_float(t) ? SpvFloat64 : SpvInt64);
    if (dtype_is_float(t) && !dtype_is_half(t)) {
        s->floats |= t.bits;
        return GLOBAL(s, OpTypeFloat, 0, t.bits);
    }
    return int_type(s, t.bits == 64 ? 64 : 32);
}

uint32_t spv_cell(Spirv *s, DType t, SpvEnum storage)
{
    if (t.bits >= 32 || storage == SpvFunction)
        return spv_type(s, t);
    /* To load and store them the storage alone would do, by the specification; spirv-val refuses
     * addresses then. */
    spv_capability(s, t.bits == 8 ? SpvInt8 : SpvInt16);
    if (storage == SpvPhysicalStorageBuffer)
        spv_capability(s, t.bits == 8 ? SpvStorageBuffer8BitAccess : SpvStorageBuffer16BitAccess);
    return int_type(s, t.bits);
}

uint32_t spv_pointer(Spirv *s, SpvEnum storage, uint32_t to)
{
    return GLOBAL(s, OpTypePointer, 0, (uint32_t)storage, to);
}

uint32_t spv_array(Spirv *s, uint32_t cell, int64_t n)
{
    return GLOBAL(s, OpTypeArray, 0, cell, spv_int(s, DT_U32, n));
}

uint32_t spv_vec3(Spirv *s)
{
    return GLOBAL(s, OpTypeVector, 0, int_type(s, 32), 3);
}

uint32_t spv_vector(Spirv *s, uint32_t of, uint32_t lanes)
{
    return GLOBAL(s, OpTypeVector, 0, of, lanes);
}

uint32_t spv_matrix(Spirv *s, uint32_t of, int64_t rows, int64_t columns, uint32_t use)
{
    enum { SUBGROUP = 3 };

    return GLOBAL(s, OpTypeCooperativeMatrixKHR, 0, of, spv_int(s, DT_U32, SUBGROUP),
                  spv_int(s, DT_U32, rows), spv_int(s, DT_U32, columns), spv_int(s, DT_U32, use));
}

uint32_t spv_float16(Spirv *s)
{
    spv_capability(s, SpvFloat16);
    return GLOBAL(s, OpTypeFloat, 0, 16);
}

uint32_t spv_void(Spirv *s)
{
    return global(s, OpTypeVoid, 0, 0, (uint32_t[]){0}, 0, &(bool){false});
}

uint32_t spv_procedure(Spirv *s)
{
    return GLOBAL(s, OpTypeFunction, 0, spv_void(s));
}

uint32_t spv_procedure_of(Spirv *s, uint32_t t)
{
    return GLOBAL(s, OpTypeFunction, 0, t, t, t);
}

uint32_t spv_buffer(Spirv *s, DType cell, bool written)
{
    uint32_t at = spv_cell(s, cell, SpvPhysicalStorageBuffer), id;
    bool     fresh;

    uint32_t cells = global(s, OpTypeRuntimeArray, 0, 1, &at, 0, &fresh);
    if (fresh)
        PUT(s, &s->notes, OpDecorate, cells, SpvArrayStride, dtype_bytes(cell));
    id = global(s, OpTypeStruct, 0, 1, &cells, 1 + written, &fresh);
    if (fresh) {
        PUT(s, &s->notes, OpDecorate, id, SpvBlock);
        PUT(s, &s->notes, OpMemberDecorate, id, 0, SpvOffset, 0);
        if (!written)
            PUT(s, &s->notes, OpMemberDecorate, id, 0, SpvNonWritable);
    }
    return id;
}

uint32_t spv_address(Spirv *s)
{
    return GLOBAL(s, OpTypeVector, 0, int_type(s, 32), 2);
}

uint32_t spv_table(Spirv *s, uint32_t n)
{
    uint32_t *members = NEW_ARRAY(s->c->arena, uint32_t, n + 1);
    bool      fresh;

    for (uint32_t i = 0; i < n; i++)
        members[i] = spv_address(s);
    uint32_t id = global(s, OpTypeStruct, 0, n, members, 0, &fresh);
    if (fresh)
        PUT(s, &s->notes, OpDecorate, id, SpvBlock);
    for (uint32_t i = 0; fresh && i < n; i++)
        PUT(s, &s->notes, OpMemberDecorate, id, i, SpvOffset, 8 * i);
    return id;
}

/* ---- variables and constants --------------------------------------------------------------------- */

uint32_t spv_variable(Spirv *s, SpvEnum storage, uint32_t type)
{
    uint32_t id = spv_id(s);

    PUT(s, &s->globals, OpVariable, spv_pointer(s, storage, type), id, (uint32_t)storage);
    return id;
}

uint32_t spv_built_in(Spirv *s, SpvEnum what)
{
    uint32_t words[2] = {OpVariable, (uint32_t)what}, id;
    uint32_t type = spv_pointer(s, SpvInput, spv_vec3(s));

    if (look_up(s, 2, words, &id))
        return id;
    PUT(s, &s->globals, OpVariable, type, id, SpvInput);
    PUT(s, &s->notes, OpDecorate, id, SpvBuiltIn, (uint32_t)what);
    return id;
}

uint32_t spv_bool(Spirv *s, bool v)
{
    return global(s, v ? OpConstantTrue : OpConstantFalse, spv_type(s, DT_BOOL), 0, (uint32_t[]){0},
                  0, &(bool){false});
}

uint32_t spv_int(Spirv *s, DType t, int64_t v)
{
    uint32_t type = spv_type(s, t);

    if (t.bits == 64)
        return GLOBAL(s, OpConstant, type, (uint32_t)(uint64_t)v, (uint32_t)((uint64_t)v >> 32));
    return GLOBAL(s, OpConstant, type, (uint32_t)v);
}

uint32_t spv_real(Spirv *s, DType t, double v)
{
    uint32_t type = spv_type(s, t), bits[2] = {0};

    dtype_put_f(t, bits, v);
    return t.bits == 64 ? GLOBAL(s, OpConstant, type, bits[0], bits[1])
                        : GLOBAL(s, OpConstant, type, bits[0]);
}

/* ---- the whole ----------------------------------------------------------------------------------- */

static void extension(Spirv *s, const char *name)
{
    uint32_t words[16];

    spv_put(s, &s->extensions, OpExtension, string_words(name, COUNT(words), words), words);
}

void spv_dots(Spirv *s)
{
    if (s->dots)
        return;
    s->dots = true;
    spv_capability(s, SpvDotProductKHR);
    spv_capability(s, SpvDotProductInput4x8BitPackedKHR);
    extension(s, "SPV_KHR_integer_dot_product");
}

Spirv *spv_new(Ctx *c, bool matrices)
{
    Spirv *s = NEW(c->arena, Spirv);

    s->c = c;
    s->known = map_new(c->arena);
    spv_capability(s, SpvShader);
    spv_capability(s, SpvPhysicalStorageBufferAddresses);
    s->matrices = matrices;
    if (matrices) {
        spv_capability(s, SpvVulkanMemoryModel);
        spv_capability(s, SpvCooperativeMatrixKHR);
        extension(s, "SPV_KHR_cooperative_matrix");
    }
    return s;
}

Bytes spv_bytes(Spirv *s)
{
    Words        out = {0}, model = {0};
    const Words *parts[] = {&s->capabilities, &s->extensions, &s->imports,
                            &model,           &s->entries,    &s->modes,
                            &s->notes,        &s->globals,    &s->functions};
    uint32_t     head[] = {MAGIC, VERSION, 0, s->last + 1, 0};

    PUT(s, &model, OpMemoryModel, SpvPhysicalStorageBuffer64, s->matrices ? SpvVulkan : SpvGLSL450);
    add_words(s->c, &out, COUNT(head), head);
    for (size_t i = 0; i < COUNT(parts); i++)
        add_words(s->c, &out, parts[i]->n, parts[i]->at);
    return (Bytes){(const uint8_t *)out.at, out.n * sizeof *out.at};
}
