/* What the files of the Vulkan backend share.
 *
 *   vulkan.c   the Backend struct
 *   spirv.def  the part of SPIR-V that is written
 *   module.c   a module's words: sections; types, constants and variables, each made once
 *   text.c     words as assembly, which spirv-as reads
 *   kernel.c   device functions: parameters, statements
 *   values.c   expressions, indices, memory
 *   arith.c    arithmetic, functions, conversions
 *   exact.c    quotients and remainders of floats
 *   panels.c   shared arrays of vectors
 *   matrices.c cooperative matrices
 *   target.c   words of target strings
 *   images.c   the kernels of a plan, a module each
 *
 * A kernel's parameters are addresses of buffers, 8 bytes each, as push constants; where these are
 * too few, the only push constant is the address of a table of them.  Values have 32 bits or 64:
 * narrower numbers are only in memory, so few kernels need more than what all devices have. */
#ifndef TVMCC_BACKENDS_VULKAN_H
#define TVMCC_BACKENDS_VULKAN_H

#include "backends/backend.h"
#include "backends/common/device.h"
#include "backends/common/matrices.h"

enum {
    PUSH_BYTES = 128,    /* of push constants that every device has */
    BUFFERS_MOST = 4096, /* of a kernel, whose addresses the runtime gathers */
    GROUPS_MOST = 65535  /* blocks of a launch along an axis; more along x are folded into z */
};

/* ---- module.c ------------------------------------------------------------------------------------ */

typedef enum {
#define OP(name, number, form) Op##name = number,
#include "backends/vulkan/spirv.def"
} SpvOp;

typedef enum {
#define ENUM(letter, name, value) Spv##name = value,
#include "backends/vulkan/spirv.def"
} SpvEnum;

typedef enum {
#define MODE(name, value) SpvMode##name = value,
#include "backends/vulkan/spirv.def"
} SpvMode;

typedef enum {
#define GLSL(name, number) Glsl##name = number,
#include "backends/vulkan/spirv.def"
} SpvGlsl;

typedef VEC(uint32_t) Words;

typedef struct {
    Ctx  *c;
    Words capabilities, extensions, imports, entries, modes, notes, globals,
        functions;  /* in this order */
    uint32_t last;  /* id that was given */
    Map     *known; /* hash of an instruction without its result -> Known */
    uint32_t glsl;
    uint32_t divide, remainder[2]; /* functions of exact.c; 0: not yet */
    uint32_t floats;   /* bits 16, 32, 64: of the floats that the function at hand has */
    bool     dots;     /* products of words */
    bool     matrices; /* cooperative ones, which want the memory model of Vulkan */
} Spirv;

/* One instruction at the end of `to`. */
void spv_put(Spirv *s, Words *to, SpvOp op, uint32_t n, const uint32_t *operands);
#define PUT(s, to, op, ...)                                                  \
    spv_put(s, to, op, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), \
            (uint32_t[]){__VA_ARGS__})

Spirv   *spv_new(Ctx *c, bool matrices);
uint32_t spv_id(Spirv *s);
void     spv_capability(Spirv *s, SpvEnum what);
void     spv_dots(Spirv *s); /* what products of words need */
uint32_t spv_glsl(Spirv *s); /* the set of instructions */

/* Of a value: bool, 32 bits, or 64 with the capability for it. */
uint32_t spv_type(Spirv *s, DType t);
/* Of a cell in memory of that class; one of 8 or 16 bits needs a capability. */
uint32_t spv_cell(Spirv *s, DType t, SpvEnum storage);
uint32_t spv_pointer(Spirv *s, SpvEnum storage, uint32_t to);
uint32_t spv_array(Spirv *s, uint32_t cell, int64_t n);
uint32_t spv_vec3(Spirv *s); /* of u32 */
uint32_t spv_vector(Spirv *s, uint32_t of, uint32_t lanes);
/* Of a subgroup: rows by columns, as which operand (0, 1; 2: the sum). */
uint32_t spv_matrix(Spirv *s, uint32_t of, int64_t rows, int64_t columns, uint32_t use);
uint32_t spv_float16(Spirv *s); /* of matrices; values are wider */
uint32_t spv_void(Spirv *s);
uint32_t spv_procedure(Spirv *s);                /* void (void) */
uint32_t spv_procedure_of(Spirv *s, uint32_t t); /* t (t, t) */
/* struct { cell at[]; } in a buffer. */
uint32_t spv_buffer(Spirv *s, DType cell, bool written);
uint32_t spv_address(Spirv *s);           /* two u32: most devices have no integers of 64 bits */
uint32_t spv_table(Spirv *s, uint32_t n); /* struct of so many addresses */

uint32_t spv_variable(Spirv *s, SpvEnum storage, uint32_t type); /* of the module */
uint32_t spv_built_in(Spirv *s, SpvEnum what);

uint32_t spv_bool(Spirv *s, bool v);
uint32_t spv_int(Spirv *s, DType t, int64_t v); /* of 32 or 64 bits */
uint32_t spv_real(Spirv *s, DType t, double v); /* f32, f64 */

void spv_entry(Spirv *s, uint32_t function, const char *name, const Words *interface);

/* Its words: header and sections. */
Bytes spv_bytes(Spirv *s);

/* ---- text.c -------------------------------------------------------------------------------------- */

void spv_text(Ctx *c, Bytes module, StrBuf *out);

/* ---- kernel.c ------------------------------------------------------------------------------------ */

typedef VEC(uint64_t) Keys;

typedef struct {
    Spirv      *s;
    Ctx        *c;
    const Func *f;
    const char *name;
    Words       vars, code; /* of the function: its variables stand first */
    Words       interface;  /* global variables that it uses */
    uint32_t    block;      /* label of the block at hand */
    bool        narrow;     /* 32 bits hold all indices */
    DType       index;      /* type of indices */
    Map        *known;      /* keys of atoms, buffers, prims, indices -> id */
    Keys       stmt, path; /* what is known of the statement, of the blocks before, to be dropped */
    uint32_t   guard; /* where that does not hold, cell 0 of a buffer is loaded; 0: all are legal */
    const Idx *axis[AXIS_COUNT]; /* extents of the launch */
    uint32_t   thread[AXIS_COUNT];
    const Matrices *matrices;
    Map            *panels; /* shared buffer's id -> numbers of a cell of its array */
    bool            failed;
} Gen;

/* One function as an entry point of the module; false with an error recorded. */
bool vulkan_function(Spirv *s, const Func *f);

/* An instruction with a result of that type. */
uint32_t emit_op(Gen *g, SpvOp op, uint32_t type, uint32_t n, const uint32_t *operands);
#define OP1(g, op, type, a) emit_op(g, op, type, 1, (uint32_t[]){a})
#define OP2(g, op, type, a, b) emit_op(g, op, type, 2, (uint32_t[]){a, b})
#define OP3(g, op, type, a, b, d) emit_op(g, op, type, 3, (uint32_t[]){a, b, d})
void     emit_label(Gen *g, uint32_t label);
void     emit_branch(Gen *g, uint32_t label);
uint32_t emit_fail(Gen *g, const char *what); /* E_CODEGEN: SPIR-V has no `what`; 0 */

/* ---- values.c ------------------------------------------------------------------------------------ */

typedef struct {
    uint32_t stmt, path;
} GenMark;

GenMark  emit_mark(const Gen *g);
void     emit_drop(Gen *g, GenMark m);                 /* forgets what is known since */
void     emit_fresh(Gen *g);                           /* a statement begins */
void     emit_know(Gen *g, uint64_t key, uint32_t id); /* until the function ends */
uint32_t emit_known(const Gen *g, uint64_t key);
#define ATOM_KEY(a) (UINT64_C(1) << 60 | (a)->id)
#define BUFFER_KEY(b) (UINT64_C(2) << 60 | (b)->id)

uint32_t emit_prim(Gen *g, const Prim *p);
uint32_t emit_index(Gen *g, const Idx *i);
uint32_t emit_word(Gen *g, const Prim *load); /* of four bytes on their border */
void     emit_store(Gen *g, const StoreData *d);
/* The address of a cell; of shared arrays whose cells hold several numbers, the one that begins
 * there. */
uint32_t emit_cell(Gen *g, const Buffer *b, const Idx *at);

/* ---- arith.c ------------------------------------------------------------------------------------- */

uint32_t emit_arith(Gen *g, const Prim *p); /* of kids that are values */
uint32_t emit_cast(Gen *g, uint32_t v, DType to, DType from);
uint32_t emit_bits(Gen *g, uint32_t v, DType to, DType from);
/* A sum of products of words, four a step; has the function some? */
uint32_t emit_dot(Gen *g, const Prim *p);
bool     multiplies_words(const Func *f);

/* ---- exact.c ------------------------------------------------------------------------------------- */

/* As IEEE 754 has them, calls of functions that the module gets; of f32, of f32 and f64. */
uint32_t exact_divide(Gen *g, uint32_t a, uint32_t b);
uint32_t exact_remainder(Gen *g, DType t, uint32_t a, uint32_t b);

/* ---- panels.c ------------------------------------------------------------------------------------ */

/* Shared arrays of which threads store several numbers at a time, and load none alone: their cells
 * are vectors of so many (1: of all others). */
void     find_panels(Gen *g);
uint32_t panel_numbers(const Gen *g, const Buffer *b);

/* ---- matrices.c ---------------------------------------------------------------------------------- */

/* Variables for the matrices of a buffer; one operation on them. */
void emit_matrices(Gen *g, const Buffer *b);
void emit_matrix_op(Gen *g, const MatrixOp *op);

/* ---- target.c ------------------------------------------------------------------------------------ */

bool vulkan_canonical(Ctx *c, Target *t, StrBuf *text);

/* ---- images.c ------------------------------------------------------------------------------------ */

/* All kernels as text of one module; a module for each. */
bool vulkan_source(Ctx *c, const TirModule *m, StrBuf *out);
bool vulkan_images(Ctx *c, const TirModule *m, const Target *t, const CodegenOptions *o,
                   DeviceImages *out);

#endif
