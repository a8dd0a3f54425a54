/* TIR: scalar expressions, buffers, loops and blocks; one language from the first nest to flat
 * code.
 *
 * Prims are pure and interned per Ctx (equal means same pointer).  Statements are immutable; a
 * rewrite rebuilds the path from root to change and shares the rest.  Three stages use the same
 * nodes (ir/tir/verify.c says what holds in each):
 *   nest   loops around blocks; what schedule steps work on
 *   lowered  no blocks: stores, ifs, allocs, loops with marks
 *   flat   every buffer has one dimension (stride 1) or none (`reg` variables); vector prims; no
 *          marks left; calls of outlined tiles pass buffer + offset
 *
 *   prim.c       leaves, memory, vectors; prims are interned here
 *   prim_fold.c  the makers that fold
 *   intrin.def   instructions of targets, by what they compute: intrin.h, intrin.c, intrin_match.c
 *   mark.def     what is said of loops and buffers: mark.h, mark.c
 *   tir.c        statements, functions, modules
 *   map.c        walk, rewrite
 *   free.c       variables that come from outside
 *   verify.c     what each stage promises
 *   eval.c       the interpreter */
#ifndef TVMCC_IR_TIR_TIR_H
#define TVMCC_IR_TIR_TIR_H

#include "ir/core.h"
#include "ir/relay/relay.h"
#include "ir/tir/mark.h"
#include "ir/tir/record.h"

/* ---- buffers -------------------------------------------------------------------------------------- */

typedef enum {
    SCOPE_ARENA,   /* parameters and intermediates between kernels */
    SCOPE_CONST,   /* weights: read only */
    SCOPE_PRIVATE, /* scratch of one thread, memory */
    SCOPE_STACK,   /* small scratch on the stack */
    SCOPE_REG,     /* registers: only constant indices after unroll, then promoted to variables */
    SCOPE_SHARED,  /* GPU block */
    SCOPE_LOCAL,   /* GPU thread */
    SCOPE_FRAG,    /* matrices of a warp, whose parts no thread sees: backends/common/matrices.h */
    SCOPES
} Scope;

/* A buffer's pointer addresses cell 0 of the interior; legal read indices of dimension i run from
 * -halo->lo[i] to extent[i] + halo->hi[i] - 1. */
struct Buffer {
    uint32_t          id;
    const char       *name;
    DType             dtype; /* lanes > 1 only for promoted `reg` variables */
    Scope             scope;
    uint32_t          ndim; /* 0: one cell */
    const Idx *const *extent;
    const Idx *const *stride; /* in elements; NULL: packed row-major, halo included */
    const Halo       *halo;   /* NULL: none */
    const Buffer     *alias;  /* shares the storage of this one (inplace), or NULL */
    const Const      *data;   /* SCOPE_CONST with known contents, or NULL */
    const AbiRecord
        *record; /* its cells are such structs (dtype u8, which nothing reads); or NULL */
#define BUFFER_MARK(id, field, form, text, most, stage, by, reader) MarkOf##form field;
#include "ir/tir/mark.def"
};

enum { CACHE_LINE = 64, MAX_LINES = 256 };

const Buffer *buffer_new(Ctx *c, const char *name, DType t, Scope scope, uint32_t ndim,
                         const Idx *const *extent);
const Buffer *buffer_copy(Ctx *c, const Buffer *like, Buffer changed); /* a fresh id */
/* Element strides of each dimension, halo included. */
void buffer_strides(Ctx *c, const Buffer *b, const Idx **stride);
/* Elements from the first cell (halo included) to the last; where cell 0 lies in it.  False where
 * dimensions are symbolic, or too large. */
bool buffer_size(Ctx *c, const Buffer *b, int64_t *elems, int64_t *origin);
/* ... at most, for any size of symbolic dimensions. */
bool buffer_size_most(Ctx *c, const Buffer *b, int64_t *elems, int64_t *origin);

/* ---- prims ------------------------------------------------------------------------------------------ */

typedef enum {
    PRIM_INT,   /* u.i, also bool */
    PRIM_FLOAT, /* u.f, rounded to dtype */
    PRIM_INDEX, /* u.index as an integer of dtype */
    PRIM_LOAD,  /* u.load */
    PRIM_ADD,
    PRIM_SUB,
    PRIM_MUL,
    PRIM_DIV, /* floats: IEEE; integers: truncates, x/0 = 0 */
    PRIM_REM, /* sign of the dividend (C); x%0 = 0 */
    PRIM_MIN,
    PRIM_MAX, /* floats: NaN propagates, -0 < +0 */
    PRIM_MINNUM,
    PRIM_MAXNUM, /* floats: NaN is ignored: maxnum(a, b) = b > a || a is NaN ? b : a */
    PRIM_FMA,    /* a*b + c, one rounding */
    PRIM_INTRIN, /* an instruction of some target, by its row: u.intrin (ir/tir/intrin.h) */
    PRIM_AND,
    PRIM_OR,
    PRIM_XOR,
    PRIM_SHL,
    PRIM_SHR, /* integers and bool; shift
               * amounts modulo the width, SHR arithmetic if signed */
    PRIM_NOT, /* bool: !a; integers: ~a */
    PRIM_EQ,
    PRIM_NE,
    PRIM_LT,
    PRIM_LE,     /* dtype bool; GT and GE are swapped; unordered: false, NE true */
    PRIM_SELECT, /* cond, then, else: only the chosen arm's loads need be legal */
    PRIM_CAST,   /* to dtype; float to int truncates and saturates, NaN gives 0 */
    PRIM_BITS,   /* reinterpret the bits as dtype of equal size */
    PRIM_ADDR,   /* u.load: the address of a cell or of a member, a handle */
    PRIM_SYMBOL, /* u.symbol: the address of a function or of data, a handle */
    PRIM_SIZEOF, /* u.size: how many bytes of it, a u32 of the target */
    PRIM_MATH,   /* u.math of the kids */
    PRIM_CASE,   /* kids: e0..en; u.index selects; only that arm is evaluated */
    /* vectors */
    PRIM_SPLAT,  /* kid scalar in every lane */
    PRIM_RAMP,   /* u.index + lane * 1 as integers (dtype lanes) */
    PRIM_VEC,    /* kids: one scalar a lane */
    PRIM_SHUFFLE /* lane i is lane u.from[i] of the kid */
} PrimKind;

/* Rows: id, text, operands.  Vector forms of EXP..SIGMOID are expanded by passes/tir/lower_math.c;
 * the rest become calls of libm. */
typedef enum {
#define MATH(id, text, n) MATH_##id,
#include "ir/tir/math.def"
#undef MATH
    MATH_COUNT
} MathFn;
#define MATH_BIT(fn) (UINT32_C(1) << (fn)) /* of a set of them */

typedef struct {
    const Buffer     *buffer;
    uint32_t          n;     /* = buffer->ndim */
    const Idx *const *index; /* of lane 0; a vector load (dtype.lanes > 1) reads the cells after
                              * it along the last dimension */
    const Prim      *mask;   /* bool per lane: lanes off read nothing and give 0; NULL: all on */
    const AbiMember *member; /* of a buffer of records, else NULL */
} LoadData;

/* Bytes of a struct, or those before one of its members. */
typedef struct {
    const AbiRecord *record;
    const AbiMember *before; /* NULL: all */
} SizeData;

struct Prim {
    PrimKind           kind;
    uint32_t           id;
    DType              dtype;
    uint32_t           nkids;
    const Prim *const *kids;
    union {
        int64_t         i;
        double          f;
        const Idx      *index;
        LoadData        load;
        MathFn          math;
        const Intrin   *intrin;
        const uint16_t *from;
        const char     *symbol;
        SizeData        size;
    } u;
};

const Prim *prim_int(Ctx *c, DType t, int64_t v);
const Prim *prim_float(Ctx *c, DType t, double v);
const Prim *prim_num(Ctx *c, DType t, double v); /* int or float, splat if t has lanes */
const Prim *prim_index(Ctx *c, DType t, const Idx *x);
const Prim *prim_load(Ctx *c, const Buffer *b, const Idx *const *index);
const Prim *prim_loadv(Ctx *c, const Buffer *b, const Idx *const *index, uint16_t lanes,
                       const Prim *mask);
/* A member of a record, the address of a cell or (member not NULL) of a member, of a symbol, NULL.
 */
const Prim *prim_member(Ctx *c, const Buffer *b, const Idx *const *index, const AbiMember *m);
const Prim *prim_addr(Ctx *c, const Buffer *b, const Idx *const *index, const AbiMember *m);
const Prim *prim_symbol(Ctx *c, const char *name);
const Prim *prim_null(Ctx *c);
uint32_t    size_bytes(SizeData s, uint32_t pointer_bits);
const Prim *prim_sizeof(Ctx *c, const AbiRecord *r);
const Prim *prim_offsetof(Ctx *c, const AbiRecord *r, const AbiMember *m);
/* Makers fold constants exactly as the target would compute them (f32 in f32), and nothing that
 * could change bits: x*1, x/1, x-0 fold, x+0 and x*0 do not for floats.  A scalar operand of a
 * vector is splat.  Comparisons of indices take the one form `0 <= e`, `e == 0`, `e != 0`
 * (prim_fold.c). */
const Prim *prim_bin(Ctx *c, PrimKind k, const Prim *a, const Prim *b);
const Prim *prim_add(Ctx *c, const Prim *a, const Prim *b);
const Prim *prim_sub(Ctx *c, const Prim *a, const Prim *b);
const Prim *prim_mul(Ctx *c, const Prim *a, const Prim *b);
const Prim *prim_div(Ctx *c, const Prim *a, const Prim *b);
const Prim *prim_min(Ctx *c, const Prim *a, const Prim *b);
const Prim *prim_max(Ctx *c, const Prim *a, const Prim *b);
const Prim *prim_neg(Ctx *c, const Prim *a); /* -0.0 - a for floats */
const Prim *prim_fma(Ctx *c, const Prim *a, const Prim *b, const Prim *d);
const Prim *prim_lt(Ctx *c, const Prim *a, const Prim *b);
const Prim *prim_le(Ctx *c, const Prim *a, const Prim *b);
const Prim *prim_eq(Ctx *c, const Prim *a, const Prim *b);
const Prim *prim_and(Ctx *c, const Prim *a, const Prim *b);
const Prim *prim_or(Ctx *c, const Prim *a, const Prim *b);
const Prim *prim_not(Ctx *c, const Prim *a);
const Prim *prim_select(Ctx *c, const Prim *cond, const Prim *a, const Prim *b);
const Prim *prim_cast(Ctx *c, DType t, const Prim *a);
const Prim *prim_bits(Ctx *c, DType t, const Prim *a);
const Prim *prim_math(Ctx *c, MathFn fn, const Prim *a, const Prim *b); /* b NULL for one operand */
const Prim *prim_case(Ctx *c, const Idx *which, uint32_t n, const Prim *const *arms);
const Prim *prim_splat(Ctx *c, const Prim *scalar, uint16_t lanes);
const Prim *prim_ramp(Ctx *c, DType t, const Idx *base, uint16_t lanes);
const Prim *prim_vec(Ctx *c, uint32_t lanes, const Prim *const *scalars);
/* Lanes from[0] .. from[lanes - 1] of a vector; a scalar for one lane. */
const Prim *prim_shuffle(Ctx *c, const Prim *v, uint16_t lanes, const uint16_t *from);
/* The same prim with other kids; folds again. */
const Prim *prim_with_kids(Ctx *c, const Prim *p, const Prim *const *kids);

/* Conditions on indices as prims, and back: 0 <= e, conjunctions; false if p is not of that form.
 */
const Prim *pred_prim(Ctx *c, Pred p);
bool        prim_pred(Ctx *c, const Prim *p, Pred *out);

/* ---- statements -------------------------------------------------------------------------------------- */

typedef enum {
    STMT_SEQ,      /* kids in order; 0 kids: nothing */
    STMT_FOR,      /* u.loop; kids: body */
    STMT_WHILE,    /* u.cond; kids: body */
    STMT_IF,       /* u.cond; kids: then [, else] */
    STMT_ALLOC,    /* u.buffer; kids: where it lives.  Contents start undefined */
    STMT_STORE,    /* u.store */
    STMT_BLOCK,    /* u.block; kids: [init] store.. ; opaque: one statement */
    STMT_CALL,     /* u.call: kernel from host, tile from kernel */
    STMT_PREFETCH, /* u.prefetch: a hint, which no value depends on; kernels only */
    STMT_BARRIER,  /* all threads of the region */
    STMT_AWAIT,    /* u.await: ends a group of the thread's async copies, or of its products by four
                    * warps, and waits until all but the last so many groups have arrived */
    STMT_REGION,   /* u.region; kids: body; host only: run by nt threads */
    STMT_LAUNCH,   /* u.launch: a device kernel */
    STMT_COPY,     /* u.copy: between host and device memory */
    STMT_VIEW,     /* u.view; kids: where the buffer is known */
    STMT_INVOKE,   /* u.invoke: a function with a signature, by its address */
    STMT_SWITCH,   /* u.cases; kids: one an arm */
    STMT_RETURN,   /* u.cond: leave the function, with this result (NULL: none; kernels: code 0) */
    STMT_FAIL      /* u.code: leave the host function with an error */
} StmtKind;

typedef enum { LOOP_SPATIAL, LOOP_REDUCE, LOOP_SEQ } LoopKind;

typedef struct {
    const Atom *var; /* ATOM_VAR with the range lo .. lo+extent-1 */
    const Idx  *lo, *extent;
    LoopKind    kind;
#define LOOP_MARK(id, field, form, text, most, stage, by, reader) MarkOf##form field;
#include "ir/tir/mark.def"
} LoopData;

uint32_t loop_marks(const LoopData *l); /* MARK_PARALLEL | .. */

typedef struct {
    const char        *name;
    uint32_t           nspatial, nreduce, nseq;
    const Atom *const *iter;      /* spatial, then reduce, then sequential; each owns its domain */
    const Idx *const  *bind;      /* value of each iterator over loop variables outside */
    Pred               where;     /* over loop variables: the block runs only there */
    bool               has_init;  /* kids[0] runs where all reduce iterators are 0 */
    bool               redundant; /* may run twice for one cell (compute_at) */
    bool               opaque;    /* any statement; no step touches it */
} BlockData;

typedef struct {
    const Buffer     *buffer;
    uint32_t          n;
    const Idx *const *index; /* of lane 0, as for loads */
    const Prim       *value;
    const Prim       *mask;   /* vector stores: lanes off are left alone; NULL: all on */
    const AbiMember  *member; /* of a buffer of records, else NULL */
} StoreData;

/* Cache lines from a cell on, which may lie beyond the buffer's end. */
typedef struct {
    const Buffer     *buffer;
    uint32_t          n, lines;
    const Idx *const *index;
} PrefetchData;

typedef struct {
    uint32_t groups;   /* of which so many may still be on their way */
    bool     products; /* of products by four warps (group.c), not of copies */
} AwaitData;

/* An argument: a buffer's pointer plus `offset` bytes, or a scalar. */
typedef struct {
    const Buffer *buffer; /* NULL: scalar */
    const Idx    *offset; /* bytes from the buffer's pointer */
    const Idx    *scalar;
} Arg;

typedef struct {
    const char *callee; /* name of a Func of the module */
    uint32_t    nargs;
    const Arg  *args;
    bool        on0; /* in a region: only thread 0 makes the call */
} StmtCall;

typedef struct {
    const Atom *tid, *nt;
} RegionData;

typedef struct {
    const char *kernel; /* name of a KIND device Func */
    const Idx  *grid[3], *block[3];
    uint32_t    nargs;
    const Arg  *args;
} LaunchData;

typedef struct {
    Arg        dst, src;
    const Idx *bytes;
    bool       to_device;
} CopyData;

/* A buffer whose cell 0 lies where a handle points. */
typedef struct {
    const Buffer *buffer;
    const Prim   *at;
} ViewData;

typedef struct {
    const Signature   *sig;
    const Prim        *fn; /* a symbol, or what a record holds */
    uint32_t           nargs;
    const Prim *const *args;
    const Buffer      *result; /* a variable of the result's type; NULL: it is dropped */
} InvokeData;

/* Arm i runs for values from end[i-1] (0 for the first) to end[i] - 1; none for others. */
typedef struct {
    const Prim    *value;
    const int64_t *end;
} SwitchData;

struct Stmt {
    StmtKind           kind;
    uint32_t           id;
    Loc                loc;
    uint32_t           nkids;
    const Stmt *const *kids;
    union {
        LoopData      loop;
        BlockData     block;
        StoreData     store;
        const Prim   *cond;
        const Buffer *buffer;
        PrefetchData  prefetch;
        StmtCall      call;
        RegionData    region;
        LaunchData    launch;
        CopyData      copy;
        ViewData      view;
        InvokeData    invoke;
        SwitchData    cases;
        int32_t       code;
        AwaitData     await;
    } u;
};

const Stmt *stmt_seq(Ctx *c, uint32_t n, const Stmt *const *kids); /* flattens; 1 kid: that kid */
const Stmt *stmt_for(Ctx *c, LoopData loop, const Stmt *body, Loc loc);
const Stmt *stmt_while(Ctx *c, const Prim *cond, const Stmt *body);
const Stmt *stmt_if(Ctx *c, const Prim *cond, const Stmt *then, const Stmt *other);
const Stmt *stmt_alloc(Ctx *c, const Buffer *b, const Stmt *body);
const Stmt *stmt_store(Ctx *c, const Buffer *b, const Idx *const *index, const Prim *value);
const Stmt *stmt_storev(Ctx *c, const Buffer *b, const Idx *const *index, const Prim *value,
                        const Prim *mask);
const Stmt *stmt_block(Ctx *c, BlockData b, uint32_t n, const Stmt *const *kids, Loc loc);
const Stmt *stmt_call(Ctx *c, const char *callee, uint32_t n, const Arg *args, bool on0, Loc loc);
const Stmt *stmt_prefetch(Ctx *c, const Buffer *b, const Idx *const *index, uint32_t lines);
const Stmt *stmt_barrier(Ctx *c);
const Stmt *stmt_await(Ctx *c, AwaitData what);
const Stmt *stmt_region(Ctx *c, RegionData r, const Stmt *body);
const Stmt *stmt_launch(Ctx *c, LaunchData l, Loc loc);
const Stmt *stmt_copy(Ctx *c, CopyData d);
const Stmt *stmt_view(Ctx *c, const Buffer *b, const Prim *at, const Stmt *body);
const Stmt *stmt_put(Ctx *c, const Buffer *b, const Idx *const *index, const AbiMember *m,
                     const Prim *value);
const Stmt *stmt_invoke(Ctx *c, InvokeData d);
const Stmt *stmt_switch(Ctx *c, const Prim *value, uint32_t n, const int64_t *end,
                        const Stmt *const *arms);
const Stmt *stmt_return(Ctx *c, const Prim *value); /* NULL: no result */
const Stmt *stmt_fail(Ctx *c, int32_t code);
const Stmt *stmt_with_kids(Ctx *c, const Stmt *s, const Stmt *const *kids);
bool        stmt_is_empty(const Stmt *s);
bool        stmt_has_barrier(const Stmt *s); /* s itself, or inside it */
/* No loop in s stays one: all are written out, by a mark, or by a device's compiler, as a hint says
 * or since their rounds, together, are `few`; and that is no more than such compilers write out. */
bool stmt_is_written_out(const Stmt *s, int64_t few);

/* Rebuild: maps are applied bottom-up; NULL callbacks are identity.  `stmt` may give an empty seq
 * to delete.  Indices and prims are mapped in every data arm (bounds, bindings, where, args,
 * loads). */
typedef struct {
    void *user;
    const Stmt *(*stmt)(Ctx *c, void *user, const Stmt *was, const Stmt *now);
    const Prim *(*prim)(Ctx *c, void *user, const Prim *now); /* after its kids */
    const Idx *(*idx)(Ctx *c, void *user, const Idx *x);
    const Buffer *(*buffer)(Ctx *c, void *user, const Buffer *b);
} TirMap;
const Stmt *stmt_map(Ctx *c, const Stmt *s, const TirMap *m);
const Prim *prim_map(Ctx *c, const Prim *p, const TirMap *m);
/* Substitute variables everywhere (bindings of block iterators are not variables of the loops). */
const Stmt *stmt_subst(Ctx *c, const Stmt *s, IdxSubst *sub);
const Prim *prim_subst(Ctx *c, const Prim *p, IdxSubst *sub);
const void *load_subst(void *ctx, IdxSubst *sub, const void *load); /* for arith_on_load */
/* Visit in execution order, parents first; `enter` false skips the kids.  A prim that a statement
 * holds more than once is visited once. */
typedef struct {
    void *user;
    bool (*enter)(void *user, const Stmt *s);
    void (*leave)(void *user, const Stmt *s);
    void (*prim)(void *user, const Prim *p); /* every prim of a statement, kids first */
    void (*idx)(void *user, const Idx *x);   /* every index */
} TirVisit;
void stmt_visit(const Stmt *s, const TirVisit *v);
void prim_visit(const Prim *p, const TirVisit *v);
void idx_visit(const Idx *x, const TirVisit *v);

/* free.c: variables that the extents of n buffers and s use and s does not declare, in the order of
 * their first use. */
typedef struct {
    uint32_t           n;
    const Atom *const *at;
} AtomList;
AtomList stmt_free(Ctx *c, uint32_t n, const Buffer *const *buffers, const Stmt *s);

/* ---- functions and modules ------------------------------------------------------------------------------ */

typedef enum {
    FUNC_HOST,
    FUNC_KERNEL,
    FUNC_DEVICE,
    FUNC_TILE,
    FUNC_PREPACK,
    FUNC_ENTRY /* has a signature; of passes/lower/entry/ */
} FuncKind;

typedef struct {
    const Buffer *buffer;  /* pointer parameter, or NULL */
    const Atom   *scalar;  /* integer parameter (i64 in code; bool flags are 0..1) */
    bool          written; /* pointer: the function stores through it */
} Param;

/* Names of the scalars that the host program gives to every kernel that has them: the thread's
 * number, how many threads there are, and the number of the phase, each of which ends in a barrier.
 */
#define TIR_TID "tid"
#define TIR_NT "nt"
#define TIR_PHASE "phase"

/* A kernel's parameters are the dimensions that its shapes depend on, its inputs, its outputs, then
 * tid and nt (after `spmd`).  All pointer parameters are noalias except pairs that `alias` each
 * other. */
struct Func {
    const char   *name; /* without @; kernels: stem.hash */
    FuncKind      kind;
    const Target *target;
    uint32_t      nparams;
    const Param  *params;
    const Stmt   *body;
    Loc           loc;  /* of the anchor operator */
    int64_t       macs; /* multiply-accumulates of one run, 0 if unknown */
    /* FUNC_ENTRY: handles are pointer parameters, integers scalars. */
    const Signature *sig;
    bool             exported;
    bool             any_cpu; /* runs before the CPU was asked what it has */
};

/* lacking.c: what of a prim, or of a function first, code of the target cannot have ("exp of f64",
 * "f64"); NULL: it has all of it, or there is no target. */
const char *prim_lacking(Ctx *c, const Target *t, const Prim *p);
const char *func_lacking(Ctx *c, const Target *t, const Func *f);

/* A value of constant data: bytes (text with its final 0 is one, too), the address of a symbol
 * (NULL: no address), or a number, which may be the size of a record. */
typedef struct {
    AbiType          type; /* ABI_NONE: bytes */
    Bytes            bytes;
    const char      *symbol;
    int64_t          i;       /* floats: 0 is all there is */
    const AbiRecord *size_of; /* or NULL */
} DataItem;

/* Constant data: items one after the other, each aligned to its own size.  No items: it is defined
 * elsewhere. */
typedef struct {
    const char      *name;
    const AbiRecord *record; /* items are the members of so many of these; or NULL */
    bool             exported;
    uint32_t         align; /* 0: its first item's own */
    uint32_t         nitems;
    const DataItem  *items;
} Data;

typedef struct TirModule {
    uint32_t           nfuncs, ndata;
    const Func *const *funcs; /* callees before callers; the last is the host's entry, if any */
    const Data        *data;
} TirModule;

const Func *func_new(Ctx *c, Func f);
const Atom *func_scalar(const Func *f, const char *name, uint32_t *at); /* a parameter, or NULL */
uint32_t    func_dims(const Func *f); /* how many parameters before the first pointer */
const Func *func_with_body(Ctx *c, const Func *f, const Stmt *body);
/* What a launch of a device function needs: by BindAxis, the largest extent of the loops bound to
 * it, NULL where none is. */
void func_axes(Ctx *c, const Func *f, const Idx *axis[AXIS_COUNT]);
enum { SHARED_BORDER = 16 };
/* The border on which an array of what a block shares begins; the widest of a function. */
int64_t buffer_border(const Buffer *b);
int64_t func_shared_border(const Func *f);
/* ... and bytes that a block shares, each array from a border on; INT64_MAX: what it allocates has
 * no constant size, or too many. */
int64_t func_shared_bytes(Ctx *c, const Func *f);
/* Of a buffer that has a place: where it begins, in bytes. */
int64_t shared_offset(const Buffer *b);
/* Where a buffer begins in one memory that all have theirs in, as func_shared_bytes counts them;
 * `all`: bytes of those before it, and with it.  Sizes are constant. */
int64_t shared_at(Ctx *c, const Buffer *b, int64_t *all);
/* They have cells in the same memory. */
bool shared_overlap(Ctx *c, const Buffer *a, const Buffer *b);
/* How much memory all take where those that are not in use at the same time lie in the same;
 * INT64_MAX: not known.  `places` gets buffer id -> the mark `place`. */
int64_t shared_places(Ctx *c, const Func *f, Map *places);
/* How much a block of f needs on its target, of which buffers have places or get them (overlay).
 * `instead`: buffer id -> one whose size counts in its place, or NULL. */
int64_t          shared_needed(Ctx *c, const Func *f, const Map *instead);
const TirModule *tirmod_new(Ctx *c, uint32_t n, const Func *const *funcs);
/* The same functions with these data. */
const TirModule *tirmod_data(Ctx *c, const TirModule *m, uint32_t n, const Data *data);
const Func      *tirmod_find(const TirModule *m, const char *name);
/* Apply to every function; NULL stops with the error recorded. */
const TirModule *tirmod_map(Ctx *c, const TirModule                                    *m,
                            const Func *(*fn)(Ctx *c, void *user, const Func *f), void *user);

/* ---- text, verifier, interpreter ---------------------------------------------------------------------------- */

void             tir_print(Ctx *c, const TirModule *m, StrBuf *out);
void             tir_print_bare(Ctx *c, const TirModule *m, StrBuf *out); /* no loc(..) */
void             func_print(Ctx *c, const Func *f, StrBuf *out);
const char      *stmt_text(Ctx *c, const Stmt *s);
const TirModule *tir_parse(Ctx *c, const char *file, Bytes text);
/* The function without what does not count: called @f, names replaced by position, no locations;
 * with the target.  It parses back. */
void func_canonical(Ctx *c, const Func *f, StrBuf *out);
/* Hash of the canonical text. */
Sha256 func_hash(Ctx *c, const Func *f);

bool tir_verify(Ctx *c, const TirModule *m, TirStage stage); /* false with E_VERIFY recorded */

/* Run a function.  buffers[i] is the memory of the i-th pointer parameter (cell 0 of the interior),
 * scalars in order of the scalar parameters.  Every access is checked against the buffer's extent
 * and halo; false with an error recorded on a bad access.  `m` finds callees (NULL: none). */
bool tir_eval(Ctx *c, const TirModule *m, const Func *f, uint32_t nbuffers, void *const *buffers,
              uint32_t nscalars, const int64_t *scalars);

#endif
