/* The interpreter's own: what its files share.  The interface is spirv_run.h.
 *
 *   spirv.def        instructions, capabilities, modes
 *   spirv_module.c   a module's types, constants and places of labels, read once
 *   spirv_run.c      a launch: memory, workgroups, the turns of threads
 *   spirv_thread.c   control flow, memory and composites of one thread
 *   spirv_arith.c    arithmetic, component by component
 *   spirv_matrix.c   what a subgroup does together: cooperative matrices
 *
 * A value is a list of 64-bit words in the thread's table, a word for each component, zeros above
 * its bits.  A pointer has two words: an address, and the Region where it lies.  Of a cooperative
 * matrix a thread has its share of the elements, so whatever works on components works on it. */
#ifndef TVMCC_TESTS_SPIRV_H
#define TVMCC_TESTS_SPIRV_H

#include "base/base.h"
#include "tests/backends/vulkan/spirv_run.h"

typedef enum {
#define OP(name, number, result, least) Op##name = number,
#include "tests/backends/vulkan/spirv.def"
} Opcode;

enum {
#define GLSL(name, number, operands, of) Glsl##name = number,
#include "tests/backends/vulkan/spirv.def"
};

enum {
#define CAPABILITY(name, number) Capability##name = number,
#include "tests/backends/vulkan/spirv.def"
};

enum {
#define MODE(name, number) Mode##name = number,
#include "tests/backends/vulkan/spirv.def"
};

enum {
#define DECORATION(name, number) Decoration##name = number,
#include "tests/backends/vulkan/spirv.def"
};

enum { STORAGE_INPUT = 1, STORAGE_WORKGROUP = 4, STORAGE_FUNCTION = 7, STORAGE_PUSH = 9 };
enum { STORAGE_PHYSICAL = 5349 };
enum { SCOPE_OF_WORKGROUP = 2, SCOPE_OF_SUBGROUP = 3 };
enum { ADDRESSING_PHYSICAL64 = 5348, MODEL_GLSL450 = 1, MODEL_VULKAN = 3, EXECUTION_COMPUTE = 5 };
enum { BUILTIN_WORKGROUP_ID = 26, BUILTIN_LOCAL_ID = 27 };
enum { NOTHING = UINT32_MAX };

/* ---- spirv_module.c ------------------------------------------------------------------------------ */

typedef struct Type Type;
struct Type {
    Opcode          op;
    uint32_t        bits;            /* of a number; a boolean has 1 */
    uint32_t        n;               /* components, elements, members */
    uint32_t        rows, cols, use; /* of a matrix */
    uint32_t        words;           /* of a value */
    uint32_t        storage;         /* of a pointer */
    const Type     *of;              /* component, element, what is pointed to, what is returned */
    const uint32_t *members;         /* ids */
    uint32_t       *offsets;         /* of a struct's members; NOTHING: none is given */
    uint32_t        stride;          /* from element to element; 0: none is given */
    uint64_t        bytes;           /* in memory; 0: only a run knows, or it never lies there */
};

typedef struct {
    uint32_t    at;       /* word of its instruction; 0: there is none */
    uint32_t    op, slot; /* of its value in a thread's table; NOTHING: it has none */
    Type       *is;       /* the type that it is, or NULL */
    const Type *type;     /* of its value, or NULL */
    uint32_t    built_in; /* of a variable; 0: none */
    uint32_t    stride;
} Id;

typedef struct {
    uint32_t id, member, kind, value;
} MemberNote;

typedef struct {
    const uint32_t *words;
    uint32_t        n, bound;
    Id             *ids;
    uint64_t       *constants; /* a table of values as all threads begin with */
    uint32_t        slots;
    uint32_t        entry, function; /* words of the entry's function, from OpFunction on; its id */
    uint32_t        size[3];
    uint32_t        glsl;
    uint32_t        memory_model;
    bool            matrices, vulkan_memory, dots, packed_dots; /* capabilities */
    VEC(uint32_t) variables;                                    /* ids, of all storage classes */
    VEC(MemberNote) notes;
} SpirvModule;

typedef struct Run Run;

/* The rows of spirv.def by number; NULL: none. */
typedef struct {
    uint32_t    number, least;
    const char *name;
    char        result;
} OpRow;
const OpRow *op_row(uint32_t number);

void        module_read(Run *r, const uint32_t *words, size_t n);
const Type *type_at(Run *r, uint32_t id);     /* never NULL; an error if it is none */
uint32_t    constant_at(Run *r, uint32_t id); /* of 32 bits; an error if it is none */

/* Of a vector, of a matrix; else t itself. */
static inline const Type *component_of(const Type *t)
{
    return t->op == OpTypeVector || t->op == OpTypeCooperativeMatrixKHR ? t->of : t;
}

/* ---- spirv_run.c --------------------------------------------------------------------------------- */

/* Memory that is accessed as a whole: a buffer, a variable. */
typedef struct {
    uint8_t    *at;
    size_t      bytes;
    uint8_t    *stored; /* a byte each: has something been stored there?  NULL: everywhere */
    const char *what;
    bool        constant;
} Region;

typedef enum { THREAD_RUNS, THREAD_AT_BARRIER, THREAD_AT_MATRIX, THREAD_DONE } ThreadState;

enum { CALLS_MOST = 8 };

typedef struct {
    uint32_t pc;            /* word of the instruction */
    uint32_t label, before; /* ids of its block and of the one before */
    uint32_t result;        /* id of the call */
} Frame;

typedef struct {
    ThreadState state;
    Frame       frame; /* of the function that runs */
    Frame       calls[CALLS_MOST];
    uint32_t    depth, number;
    uint64_t   *values;
    Region     *variables; /* by the place in SpirvModule.variables; those of storage Function */
    uint32_t    local[3];
} Thread;

struct Run {
    Arena             *arena;
    const SpirvLaunch *launch;
    SpirvModule        m;
    Region            *memory;
    Region            *shared;        /* by the place in SpirvModule.variables */
    Thread            *threads, *now; /* NULL: none runs */
    uint32_t           nthreads, group[3];
    uint32_t           at;      /* word of the instruction */
    uint64_t          *scratch; /* as large as a table of values, and as any short one */
    char              *error;   /* malloc'd; the first */
};

/* The first error, which ends the run, with instruction and thread before it. */
void run_fail(Run *r, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* n bytes that an access reads or writes; NULL with an error: it may not. */
uint8_t *region_at(Run *r, const uint64_t pointer[2], uint64_t n, bool writes);
Region  *region_find(Run *r, uint64_t address); /* NULL: no memory has it */

/* ---- the instruction at hand --------------------------------------------------------------------- */

static inline uint32_t operand_count(const Run *r)
{
    return (r->m.words[r->at] >> 16) - 1;
}

/* The i-th, from 0; 0: there is none. */
static inline uint32_t operand(const Run *r, uint32_t i)
{
    return i < operand_count(r) ? r->m.words[r->at + 1 + i] : 0;
}

/* Never NULL; an error if the id has no value. */
static inline uint64_t *value_at(Run *r, Thread *t, uint32_t id)
{
    if (id < r->m.bound && r->m.ids[id].slot != NOTHING)
        return t->values + r->m.ids[id].slot;
    run_fail(r, "%%%u has no value", id);
    return r->scratch;
}

/* Of a value; void with an error. */
static inline const Type *type_of(Run *r, uint32_t id)
{
    static const Type none = {.op = OpTypeVoid};

    if (id < r->m.bound && r->m.ids[id].type)
        return r->m.ids[id].type;
    run_fail(r, "%%%u has no value", id);
    return &none;
}

/* ---- spirv_thread.c ------------------------------------------------------------------------------ */

/* The thread goes on until it is done or waits. */
void thread_run(Run *r, Thread *t);
/* Operands of an access from the i-th on: false with an error where they are not as they have to
 * be for what the pointer leads to. */
bool access_allowed(Run *r, const Type *pointer, uint64_t address, uint32_t i);

/* ---- spirv_arith.c ------------------------------------------------------------------------------- */

bool     arith_has(Opcode op);
void     arith_step(Run *r, Thread *t, Opcode op);
void     dot_step(Run *r, Thread *t, Opcode op);
uint64_t cut_to(uint32_t bits, uint64_t v);
int64_t  signed_of(uint32_t bits, uint64_t v);
double   real_of(uint32_t bits, uint64_t v);
uint64_t of_real(uint32_t bits, double v); /* to nearest, ties to even */

/* ---- spirv_matrix.c ------------------------------------------------------------------------------ */

bool matrix_has(Opcode op); /* carried out by a subgroup together */
/* The threads of a subgroup, from `first` on, that have all come to such an instruction. */
void     matrix_step(Run *r, Thread *first);
uint32_t matrix_share(uint32_t rows, uint32_t cols); /* elements that a thread has, at most */

#endif
