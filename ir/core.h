/* What every level of the IR shares: element types, attributes, the operator row, targets and Ctx.
 *
 * `ir/` knows the shape of an operator row and of a target, but no row: `Ctx` carries the tables,
 * so that printer, parser and interpreter can stay low. */
#ifndef TVMCC_IR_CORE_H
#define TVMCC_IR_CORE_H

#include "base/base.h"
#include "ir/arith/arith.h"

typedef struct Ctx    Ctx;
typedef struct Op     Op;
typedef struct Type   Type;
typedef struct Expr   Expr;
typedef struct Module Module;
typedef struct Const  Const;
typedef struct Tensor Tensor;
typedef struct Prim   Prim;
typedef struct Buffer Buffer;
typedef struct Stmt   Stmt;
typedef struct Func   Func;
typedef struct Target Target;
typedef struct Intrin Intrin;

/* "..": a string of all languages of the IR, as parse_string reads it (parse_lex.c). */
void print_quoted(StrBuf *out, const char *s);

/* ---- dtype.c ------------------------------------------------------------------------------- */

typedef struct {
    uint8_t  code, bits; /* DLPack codes */
    uint16_t lanes;      /* 1: scalar */
} DType;

enum { DT_INT = 0, DT_UINT = 1, DT_FLOAT = 2, DT_POINTER = 3, DT_BFLOAT = 4, DT_BOOLEAN = 6 };

#define DT_BOOL ((DType){DT_BOOLEAN, 8, 1})
#define DT_I8 ((DType){DT_INT, 8, 1})
#define DT_I16 ((DType){DT_INT, 16, 1})
#define DT_I32 ((DType){DT_INT, 32, 1})
#define DT_I64 ((DType){DT_INT, 64, 1})
#define DT_U8 ((DType){DT_UINT, 8, 1})
#define DT_U16 ((DType){DT_UINT, 16, 1})
#define DT_U32 ((DType){DT_UINT, 32, 1})
#define DT_U64 ((DType){DT_UINT, 64, 1})
#define DT_F16 ((DType){DT_FLOAT, 16, 1})
#define DT_BF16 ((DType){DT_BFLOAT, 16, 1})
#define DT_F32 ((DType){DT_FLOAT, 32, 1})
#define DT_F64 ((DType){DT_FLOAT, 64, 1})
/* A pointer of the target, whatever its width there: in host functions of TIR, no tensor's type. */
#define DT_HANDLE ((DType){DT_POINTER, 64, 1})

static inline bool dtype_eq(DType a, DType b)
{
    return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}
static inline bool dtype_is_float(DType t)
{
    return t.code == DT_FLOAT || t.code == DT_BFLOAT;
}
static inline bool dtype_is_half(DType t)
{
    return dtype_is_float(t) && t.bits == 16;
}
static inline bool dtype_is_bool(DType t)
{
    return t.code == DT_BOOLEAN;
}
static inline bool dtype_is_handle(DType t)
{
    return t.code == DT_POINTER;
}
static inline bool dtype_is_int(DType t)
{
    return t.code == DT_INT || t.code == DT_UINT;
}
static inline uint32_t dtype_bytes(DType t)
{
    return (t.bits + 7u) / 8 * t.lanes;
}
static inline DType dtype_lanes(DType t, uint16_t lanes)
{
    t.lanes = lanes;
    return t;
}
const char *dtype_text(Ctx *c, DType t); /* "f32", "f32x8"; interned */
bool        dtype_known(DType t);        /* a row of dtype.def or stored.def, of one lane */
bool        dtype_parse(const char *text, DType *out);
/* n f32 of any alignment rounded to f16 or bf16, to nearest even; may be the same memory.  What was
 * lost is added to `loss`. */
typedef struct {
    double error, largest; /* of one value; the largest value */
    bool   overflow;       /* a finite value became infinite */
} NarrowLoss;
void dtype_narrow(DType to, const void *from, void *out, size_t n, NarrowLoss *loss);
/* Smallest and largest finite value as doubles (integers saturate to what a double holds). */
double dtype_min(DType t);
double dtype_max(DType t);
/* One element of memory as double / int64 and back (round to nearest even; f16 and bf16 too). */
double  dtype_get_f(DType t, const void *p);
int64_t dtype_get_i(DType t, const void *p);
void    dtype_put_f(DType t, void *p, double v);
void    dtype_put_i(DType t, void *p, int64_t v);

/* ---- stored.c: types that only memory has (ir/stored.def) ---- */

typedef enum { STORED_NONE, STORED_IEEE, STORED_FN, STORED_FNUZ } StoredSpecial;
typedef struct {
    const char   *text;
    DType         type, cell, number;
    uint8_t       exponent, mantissa; /* bits; 0, 0: an integer */
    int           bias;
    StoredSpecial special;
} StoredType;
const StoredType *dtype_stored(DType t);  /* NULL: it is one to compute with */
const StoredType *stored_at(uint32_t i);  /* row i; NULL: there are no more */
bool              dtype_is_real(DType t); /* a float, to compute with or stored */
DType             dtype_cell(DType t);    /* of an element in memory; t itself if not stored */
DType             dtype_number(DType t);  /* what is computed in; the same */
uint32_t          stored_largest(const StoredType *s); /* code of the largest finite float */
uint32_t          stored_nan(const StoredType *s);     /* of NaN, or what it becomes */
/* The value of a cell; and the nearest code, saturated, of an integer the low bits. */
double  stored_get(const StoredType *s, uint8_t cell);
uint8_t stored_put(const StoredType *s, double v);

/* ---- attrs.c: attribute records of operators -------------------------------------------------- */

typedef struct {
    uint32_t       n;
    const int64_t *at;
} Ints;
typedef struct {
    uint32_t      n;
    const double *at;
} Floats;
typedef struct {
    uint32_t          n;
    const Idx *const *at;
} Dims;

typedef enum {
    ATTR_INT,
    ATTR_BOOL,
    ATTR_FLOAT,
    ATTR_STR,
    ATTR_DTYPE,
    ATTR_INTS,
    ATTR_FLOATS,
    ATTR_DIMS /* numbers, or forms over symbolic dimensions */
} AttrType;

typedef struct {
    const char *name;
    AttrType    type;
    size_t      offset;   /* of the field in the record's struct */
    const char *fallback; /* default as text, e.g. "[1, 1]", "1e-05", "NCHW"; NULL: required */
} AttrField;

/* One record: declared once in ops/attrs.def; struct, defaults, text, equality and hash follow. */
typedef struct {
    const char      *name;
    size_t           size;
    uint32_t         nfields;
    const AttrField *fields;
} AttrRecord;

void    *attrs_new(Ctx *c, const AttrRecord *r); /* all defaults */
bool     attrs_equal(const AttrRecord *r, const void *a, const void *b);
uint64_t attrs_hash(const AttrRecord *r, const void *a);
/* Prints `, name=value` for every field that differs from its default (strings quoted). */
void attrs_print(Ctx *c, const AttrRecord *r, const void *a, StrBuf *out);
/* Set a field from its text; false: no such field or the text does not fit.  `dims` says what names
 * of dimensions mean; NULL: there are none. */
bool attrs_set_text(Ctx *c, const AttrRecord *r, void *a, const char *field, const char *text,
                    const IdxParser *dims);
/* The dimensions that field i holds; none if it holds something else. */
Dims attrs_dims(const AttrRecord *r, const void *a, uint32_t i);
bool attrs_static(const AttrRecord *r, const void *a); /* no field has a symbolic dimension */
/* The record with numbers for its forms. */
const void *attrs_at(Ctx *c, const AttrRecord *r, const void *a, const IdxEnv *env);
Ints        ints_dup(Ctx *c, const int64_t *at, uint32_t n);
Ints        ints_of(Ctx *c, uint32_t n, ...); /* n int arguments */
bool        ints_all(Ints v, int64_t want);   /* each of them is it */
Dims        dims_dup(Ctx *c, const Idx *const *at, uint32_t n);
Dims        dims_of_i64(Ctx *c, const int64_t *at, uint32_t n);
void        dim_print(const Idx *x, StrBuf *out); /* `2*N+1`: names of dimensions have no % */

/* ---- the operator row ---------------------------------------------------------------------------- */

/* How an operator may be fused (the classic six). */
typedef enum {
    FUSE_ELEMWISE,    /* one output cell reads the cell of the same index */
    FUSE_BROADCAST,   /* ... or of a broadcast operand */
    FUSE_INJECTIVE,   /* ... of any index map without reduction (reshape, transpose, slice) */
    FUSE_COMM_REDUCE, /* a reduction */
    FUSE_OUT_FUSABLE, /* a heavy reduction that takes elementwise consumers (conv2d, dense) */
    FUSE_OPAQUE,      /* stands alone */
    FUSE_UPDATE       /* ... and gives its first operand with some cells changed */
} FusionKind;

/* What a compute function is told about its call. */
typedef struct {
    const Op          *op;
    const void        *attrs;
    uint32_t           nin, nout;
    const Type *const *in;  /* tensor types of the operands, tuples flattened */
    const Type *const *out; /* tensor types of the results, tuples flattened */
    Loc                loc;
    bool
        in_place; /* FUSE_UPDATE: the result's memory holds the first operand, which in[0] is not */
} OpCall;

/* Type relation: result type from operand types (`in` as written, tuples not flattened); NULL with
 * an error recorded if they do not fit. */
typedef const Type *RelFn(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin);
/* Compute: out[i] as tensor expressions over in[..] (ir/te/te.h); false with an error recorded. */
typedef bool ComputeFn(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out);
/* The same call as simpler operators (batch_norm for inference, dropout), or NULL. */
typedef const Expr *ExpandFn(Ctx *c, const Expr *call);
/* The same call with its data operands in blocked layout NCHW<block>c (shape N, ceil(C/block), H,
 * W, block), or NULL if it cannot; args[i] is the blocked operand or the original one where it has
 * no channel dimension of its own.  See passes/graph/alter_layout.c. */
typedef const Expr *BlockFn(Ctx *c, const Expr *call, const Expr *const *args, uint32_t block);
/* Products that a call asks for, whatever computes it (ops/macs.c). */
typedef int64_t MacsFn(const Expr *call);

struct Op {
    uint32_t          id;
    const char       *text; /* "nn.conv2d" */
    uint32_t          min_in, max_in;
    const AttrRecord *attrs; /* NULL: none */
    RelFn            *rel;
    FusionKind        fusion;
    ComputeFn        *compute; /* NULL: only through expand */
    ExpandFn         *expand;  /* NULL: none */
    BlockFn          *block;   /* NULL: needs plain layouts */
    MacsFn           *macs;    /* NULL: no products */
};

typedef struct {
    uint32_t  n;
    const Op *at;
} OpTable;
const Op *op_find(const Ctx *c, const char *text); /* NULL if unknown */

/* ---- what code is generated for; backends make them --------------------------------------------- */

/* What kind of machine it is, whoever writes its code: passes and rules ask for this. */
typedef enum { CLASS_CPU, CLASS_GPU } TargetClass;

/* Instructions that compute more than one operation: rows of ir/tir/intrin.def. */
typedef enum {
#define INTRIN(id, text, te) INTRIN_##id,
#include "ir/tir/intrin.def"
#undef INTRIN
    INTRIN_COUNT
} IntrinId;

/* Which 8-bit data dot products take. */
typedef enum { DOTS_UNSIGNED /* x86 */, DOTS_SIGNED /* Arm */, DOTS_EITHER } DotData;

/* What not every device of its kind has (Target.has); others refuse a product that uses it. */
enum {
    HAS_HALF = 1,     /* arithmetic of f16 */
    HAS_DOTS = 2,     /* sums of four products of bytes */
    HAS_MATRICES = 4, /* products of matrices by the threads of a warp */
    HAS_F64 = 8,      /* numbers of 64 bits; kernels with them are the host's elsewhere */
};

enum { CPU_WORDS = 8 }; /* words of CPUID in which features are looked up */

struct Target {
    const struct Backend *backend; /* who writes its code: of no interest before that */
    TargetClass           cls;
    const char   *text; /* canonical string: "llvm -mtriple=x86_64-linux-gnu -mcpu=haswell" */
    const char   *triple, *mcpu; /* LLVM's spelling */
    const char   *features;      /* "+avx2,+fma" as LLVM wants it */
    const char   *abi;           /* -mabi= as LLVM wants it; "" for the default */
    const char   *arch, *cpu;    /* "x86", "apple-m1" as the user may spell it; NULL: not a CPU's */
    const char   *gpu;  /* "sm_80", "mali": of a device target, the least it is for; NULL: any */
    const Target *host; /* of a device target; NULL for CPUs */
    const struct Machine *machine; /* of a file: what work costs there (machine/); NULL: none */
    /* Limits that rules and passes ask for; never compare names. */
    uint32_t pointer_bits;
    uint32_t vector_bytes; /* widest register worth using: 16, 32, 64; 4: no vectors, and GPUs */
    uint32_t vector_regs;  /* architectural vector registers: 16, 32 */
    bool     has_fma;
    bool     fma_mem_splat; /* FMA can broadcast from memory (AVX-512) */
    DotData  dots;
    uint8_t  intrin_ops[INTRIN_COUNT];     /* how many it takes for each of these; 0: not quick */
    uint32_t l1_bytes, l2_bytes, l3_bytes; /* as the machine of the compile says; 0: not asked */
    uint32_t max_threads;                  /* per GPU block; 1 on CPUs */
    uint32_t shared_bytes;                 /* per GPU block */
    bool     shared_overlaid;              /* .. of which buffers may have the same */
    uint32_t warp;                         /* threads of a GPU that take one step together */
    uint32_t max_blocks[3];                /* of a launch on a GPU, along each axis */
    uint32_t has;                          /* HAS_ .. of a device */
    uint32_t max_args;                     /* of a GPU's kernel, 8 bytes each; 0: not known */
    uint32_t max_buffers;                  /* ... among them; 0: not known */
    bool     has_round, has_sqrt;          /* of f32, as instructions */
    bool     has_stream;                   /* vectors can be stored past the caches */
    bool     fast_math, winograd;
    bool     small;       /* short code counts for more than time: -Os */
    bool     no_libm;     /* code calls no function of libm */
    bool     has_math;    /* its language has the functions of ir/tir/math.def, and quick */
    bool     no_f64;      /* there are no such numbers; kernels with them are the host's .. */
    uint32_t no_f64_math; /* .. or no functions of them: MATH_BIT of ir/tir/tir.h */
    bool     no_threads;  /* no launches, no barriers: one thread runs it all */
    bool     asks_cpu;    /* products test whether the CPU has what the code needs */
    uint32_t cpu_needs[CPU_WORDS]; /* ... which bits */
};

/* ---- evaluator: how passes compute with the program's own operators ------------------------------ */

typedef struct Evaluator {
    /* Value of a closed expression whose leaves are constants.  The result is a constant, a tuple
     * of constants, or NULL with an error recorded. */
    const Expr *(*eval)(const struct Evaluator *ev, Ctx *c, const Expr *e);
    void *state;
} Evaluator;

/* ---- ctx.c: one compile ---------------------------------------------------------------------------- */

/* -ffile-prefix-map: paths that begin with `from` are written with `to` in its place. */
typedef struct {
    const char *from, *to;
} PathMap;

/* Asked between passes and between kernels, from any thread of the compile; true: give it up. */
typedef struct {
    bool (*asked)(void *user);
    void *user;
} Cancel;

/* Products of 16 bits in a model of f32 (passes/graph/to_mixed_precision.c). */
typedef struct {
    DType              type; /* f16, bf16 */
    bool               narrow_sums;
    uint32_t           nops; /* 0: all that can be */
    const char *const *ops;
} MixedPrecision;

/* Passes that choose: what they may not take, and where they say what they chose among. */
typedef struct {
    const MixedPrecision *mixed;   /* NULL: everything is as the model has it */
    uint64_t              without; /* bits of algorithms (Pass.algorithm) */
    StrBuf               *said;    /* NULL: nobody asks */
    double                weights; /* bytes of the network's constants; 0: not known */
} Choices;

struct Ctx {
    Arena           *arena;   /* lives as long as the compile */
    Arena           *scratch; /* until the end of the pass */
    Strings         *strings;
    Diags           *diags;
    Arith           *arith;
    struct Interner *nodes;   /* types, prims: equal means same pointer */
    struct Intrins  *intrins; /* ir/tir/intrin.c; NULL until the first is asked for */
    Map    *tensors; /* Tensor by the id of its Buffer (ir/te/te.c), NULL until the first */
    OpTable ops;
    const Evaluator *eval;   /* default: ir/relay/eval.c, slow and obvious */
    const Target    *target; /* NULL until chosen */
    uint32_t         next_expr, next_buffer, next_stmt, next_tensor;
    uint32_t         npath_maps;
    const PathMap   *path_maps;
    const Cancel    *cancel; /* NULL: nobody will */
    Choices          choices;
};

Ctx *ctx_new(Arena *arena, Diags *d, OpTable ops);
void ctx_free(Ctx *c); /* the scratch arena; c->arena is the caller's */

/* Is the compile given up?  Then there is an error (E_CANCELLED, unless there is one already). */
bool ctx_cancelled(Ctx *c);

/* A file's name as texts have it, in loc(..); the last map that fits counts.  Messages have the
 * name that the user gave. */
const char *ctx_path(const Ctx *c, const char *path);

/* Record an error at loc and return NULL (see diag_error). */
#define error_at(c, id, loc, ...) diag_error((c)->diags, (id), (loc), __VA_ARGS__)

#endif
