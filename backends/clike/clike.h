/* clike: flat TIR as the text of a C-like language, shared by all text backends.
 *
 * A dialect says how its language spells types, numbers, addresses, thread numbers and functions;
 * the printer does the rest.  Most have scalars alone: schedules of text targets do not vectorize,
 * and what is stored as a vector nevertheless becomes a loop over its lanes
 * (backends/common/lanes.c). */
#ifndef TVMCC_BACKENDS_CLIKE_H
#define TVMCC_BACKENDS_CLIKE_H

#include "backends/common/matrices.h"
#include "backends/common/plain.h"

/* Threads of a block, along x, y and z and in all; 0: a run decides. */
typedef struct {
    int64_t along[3], threads;
} ClikeBlock;

/* Parameters of a kernel that are images of a buffer: "p4x32_1" for b1, by texels of four numbers
 * of 32 bits, of which each access is one. */
typedef struct {
    uint32_t lanes, bits;
} ClikeTexel;

typedef struct {
    const char *type;                              /* before such a name */
    void (*find)(Ctx *c, const Func *f, Map *out); /* buffer's id -> ClikeTexel */
    /* A texel as a value of that type, which the language calls so. */
    void (*read)(Ctx *c, StrBuf *s, DType t, const char *type, const char *image, const char *at);
} ClikeImages;

typedef struct ClikeDialect {
    const char *name;
    /* Spelling of a scalar type in registers and in memory; NULL: the language has none. */
    const char *(*type)(DType t);
    /* "__global" and its kin, before a pointer's type; "": nothing. */
    const char *(*space)(Scope s, bool written);
    const char *shared; /* before memory that a block shares: "__local" */
    /* Optional: before that, where it begins on a wider border than 16 bytes: "__align__(1024) ".
     */
    void (*border)(StrBuf *s, int64_t bytes);
    /* 16 bytes of it, which begins on such a border, come in one access. */
    bool shared_wide;
    /* ... so many bytes at most, which a thread's registers hold at once; 0: a word. */
    uint32_t shared_bytes;
    /* Bytes of it that a kernel may declare, and what the memory is called that it is given instead
     * where it needs more; 0: it declares all. */
    int64_t     declares;
    const char *given;
    const char *own; /* before a pointer to a thread's own memory: "thread"; NULL: nothing */
    /* Block and thread numbers, as an expression; NULL: functions are for a CPU. */
    const char *(*axis)(BindAxis a);
    /* Function of MATH_x, e.g. "exp"; NULL: none. */
    const char *(*math)(MathFn fn, DType t);
    void (*integer)(StrBuf *s, DType t, int64_t v);
    void (*real)(StrBuf *s, DType t, double v);
    /* A function that converts as PRIM_CAST does; NULL, or it gives NULL: the prelude's, or a cast.
     */
    const char *(*convert)(Ctx *c, DType to, DType from);
    /* One that takes the bits of a float as an integer's, or back; NULL: the prelude's, for
     * languages whose f16 are their bits. */
    const char *(*bits)(DType to, DType from);
    /* What stands before a kernel's name. */
    void (*kernel)(StrBuf *s, ClikeBlock block);
    /* Optional: what says behind a kernel's buffer which it is; values of 64 bits then come as an
     * array, declared by `values` behind the buffers, and `last` follows all parameters. */
    void (*slot)(StrBuf *s, uint32_t i);
    const char *values, *last;
    const char *function; /* before a function of the prelude: "static" */
    /* Optional: operations on f16 that the language has, for which that is a type of its own; NULL:
     * f16 are their bits. */
    HasHalfFn *has_half;
    /* Optional: bodies of f32_of_f16 of `h` and f16_of_f32 of `v`, and the condition of the
     * preprocessor under which they have these; NULL: in any case. */
    const char *half_if, *half_to, *half_from;
    const char *extreme_if, *min, *max; /* Optional: .. min_f32 and max_f32 of `a` and `b` these */
    /* Optional: a vector's type, "float4", NULL for one that the language has not; what stands
     * before its name and behind it to make one of numbers: "make_", "(". */
    const char *(*vector)(Ctx *c, DType t);
    const char *make[2];
    /* Numbers that make a word are one of 32 bits: compilers take vectors of them apart. */
    bool               words;
    const char        *noalias; /* "restrict" */
    bool               runs;    /* pointers go along with loops (running.c) */
    const ClikeImages *images;  /* NULL: there are none */
    const char        *barrier; /* statement */
    const char        *fma;     /* function; NULL: the helper of the type */
    /* Text that defines a function of the name of an instruction (clike_instruction); NULL, or it
     * gives NULL: the language has none. */
    const char *(*instruction)(IntrinId id);
    /* ... of one of four warps (clike_group), behind that; the barrier where a kernel has some. */
    void (*group)(Ctx *c, const Intrin *row, uint32_t units, StrBuf *out);
    const char *group_barrier;
    /* Optional: matrices that a warp has (backends/common/matrices.h).  A type; what is done with
     * one, the names of which, `it` and those of its factors, and where it lies in memory stand in
     * text[0], [1], [2] and [3]. */
    const char *(*matrix)(const Intrin *row, Matrix of);
    void (*matrix_op)(StrBuf *s, const Intrin *row, Matrix of, const MatrixOp *op,
                      const char *const text[4]);
    /* Types of indices: of 64 bits, and of 32 where these hold every index of the function. */
    const char *wide, *narrow;
    /* Integers are promoted as C has it, where an int may have 16 bits or 32. */
    bool promotes;
    /* Variables are called what people call them, unless the language needs the name: "i0", "b0".
     */
    bool (*taken)(const char *name);
} ClikeDialect;

/* One function, kind(device): a kernel whose pointer parameters are each followed by an offset in
 * bytes, since a device's API passes whole buffers.  False with E_CODEGEN recorded if the dialect
 * lacks something. */
bool clike_kernel(Ctx *c, const ClikeDialect *d, const Func *f, const char *name, StrBuf *out);

/* All functions of that kind among them, called as device_symbol says. */
bool clike_kernels(Ctx *c, const ClikeDialect *d, uint32_t n, const Func *const *funcs,
                   StrBuf *out);

/* What an instruction is called: "mma_s8"; a sum of a thread's own "dot4_u8_i8", a function of
 * words and of what is added to. */
const char *clike_instruction(Ctx *c, const Intrin *row);
/* ... one of four warps, of so many units. */
const char *clike_group(Ctx *c, const Intrin *row, uint32_t units);

/* ---- prelude.c: functions that stand in for operators ------------------------------------------- */

/* Definitions of those that `code` calls. */
void clike_prelude(Ctx *c, const ClikeDialect *d, const char *code, StrBuf *out);
bool clike_calls(const char *text, const char *name); /* is the function called in the text? */
bool clike_is_helper(const char *name);               /* such a name is no one else's */
/* Of the library of C: ClikeDialect.math for languages that have it; abs and copysign are the
 * prelude's. */
const char *clike_math(MathFn fn, DType t);
/* Types by the short names of OpenCL and Metal, "uchar"; floats of 16 bits are their bits. */
const char *clike_short_type(DType t);
const char *clike_short_vector(Ctx *c, DType t); /* "uchar4", of 32 bits at most */
/* ... for languages whose functions take every type: "exp". */
const char *clike_math_overloaded(MathFn fn, DType t);
/* The bits of a number of 16 bits, as f16 is one where a dialect has no such type, and bf16. */
void clike_half(StrBuf *s, DType t, double v);

/* ---- cpu.c: functions that call each other, of one program ------------------------------------- */

/* The struct that an entry function gives the address of; NULL: it gives a number. */
const AbiRecord *clike_result(const Signature *s);

typedef struct ClikeProgram {
    Ctx                *c;
    const ClikeDialect *d;
    void               *user;
    /* What a function, or data whose address is taken, is called. */
    const char *(*symbol)(void *user, const char *name);
    const char *(*record)(void *user, const AbiRecord *r); /* type of a struct */
    /* Of the cells of data, where these are addresses: "const tvmcc_model_info *". */
    const char *(*cells)(void *user, const char *data);
    Map *funcs;   /* interned name -> ClikeFunc */
    bool vectors; /* the text has GNU's vectors */
} ClikeProgram;

/* f, which its callers know from here on: `head` is its declaration without storage and semicolon,
 * `out` the same with its body. */
bool clike_function(ClikeProgram *p, const Func *f, StrBuf *head, StrBuf *out);

#endif
