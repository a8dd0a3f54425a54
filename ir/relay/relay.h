/* Relay: the graph language.  Functional, typed, immutable; all frontends produce it.
 *
 * Nodes live in the arena and never change once made.  The makers below are the only way to make
 * one; they compute `type` at once when all operands are typed (so frontends always see types), and
 * leave NULL otherwise (recursive functions, untyped text), which `infer_type` completes.
 * Kids are uniform, so walk, rewrite, equality and hash are written once.  Graphs are deep: no
 * recursion over kids.
 *
 *   type.c    types
 *   graph.c   makers, walk, rewrite
 *   reach.c   functions that a run may come to
 *   scope.c   where a node must be computed
 *   same.c    equality and hash
 *   infer.c   types of a whole module
 *   verify.c  what a module promises
 *   eval.c    the interpreter */
#ifndef TVMCC_IR_RELAY_RELAY_H
#define TVMCC_IR_RELAY_RELAY_H

#include "ir/core.h"

/* ---- type.c: types are interned, equal means same pointer --------------------------------------- */

typedef enum { TYPE_TENSOR, TYPE_TUPLE, TYPE_FUNC, TYPE_REF, TYPE_ADT, TYPE_VAR } TypeKind;

/* Extra cells before and after each dimension, which hold `value` once the producer is done. */
typedef struct Halo {
    uint32_t        ndim;
    double          value;
    const uint32_t *lo, *hi; /* [ndim] */
} Halo;

struct Type {
    TypeKind           kind;
    uint32_t           id;
    DType              dtype; /* TENSOR */
    uint32_t           n;     /* TENSOR: ndim; TUPLE: fields; FUNC: parameters; ADT: arguments */
    const Idx *const  *dims;  /* TENSOR: constants, or forms over symbolic dims */
    const Halo        *halo;  /* TENSOR: NULL mostly */
    const Type *const *parts; /* TUPLE fields, FUNC parameters, ADT arguments, REF: one */
    const Type        *ret;   /* FUNC */
    const char        *name;  /* ADT, VAR */
};

const Type *type_tensor(Ctx *c, DType t, uint32_t ndim, const Idx *const *dims);
const Type *type_tensor_i64(Ctx *c, DType t, uint32_t ndim, const int64_t *dims);
const Type *type_with_halo(Ctx *c, const Type *t, const Halo *halo); /* NULL removes it */
const Type *type_tuple(Ctx *c, uint32_t n, const Type *const *fields);
const Type *type_func(Ctx *c, uint32_t n, const Type *const *params, const Type *ret);
const Type *type_ref(Ctx *c, const Type *t);
const Type *type_adt(Ctx *c, const char *name, uint32_t n, const Type *const *args);
const Type *type_var(Ctx *c, const char *name);
const Type *type_plain(Ctx *c, const Type *t); /* without halos, in parts too */
/* A tensor type with that as its first dimension; NULL: it has none. */
const Type *type_with_first(Ctx *c, const Type *t, const Idx *n);
/* How many tensors like `part`, whose first dimension is a number, make `whole` along it, or NULL.
 */
const Idx *type_rounds(Ctx *c, const Type *whole, const Type *part);
/* Dimension i as a number; false if symbolic. */
bool       type_dim(const Type *t, uint32_t i, int64_t *v);
bool       type_static(const Type *t);            /* every dim a number, tuples too */
bool       type_elems(const Type *t, int64_t *n); /* product of dims; false: symbolic or overflow */
bool       type_elems_most(const Type *t, int64_t *n);     /* ... of the largest, or usual, sizes */
const Idx *type_cells(Ctx *c, const Type *t);              /* ... as an index */
void       type_print(Ctx *c, const Type *t, StrBuf *out); /* Tensor[(1, 8, 56), f32] */
const char *type_text(Ctx *c, const Type *t);              /* the same, in scratch */
const char *dim_text(Ctx *c, const Idx *x);                /* of dim_print, in scratch */

/* A symbolic dimension: `dim N in 1..512 multiple 8`.  Same name, same atom, within one Ctx. */
const Idx *dim_var(Ctx *c, const char *name, int64_t lo, int64_t hi);
/* ... that values of a run decide, of which no more is known than a form over others. */
const Idx *dim_within(Ctx *c, const char *name, int64_t lo, const Idx *most);
bool       is_dim(Ctx *c, const Atom *a); /* made by these */
/* Calls fn for each dimension that a form, a type (parts and results too) or a call's attributes
 * mention, as often as they do. */
typedef void DimFn(void *user, const Atom *dim);
void         form_mentions(const Idx *x, DimFn *fn, void *user);
void         type_mentions(const Type *t, DimFn *fn, void *user);
void         attrs_mentions(const AttrRecord *r, const void *attrs, DimFn *fn, void *user);

/* ---- graph.c ---------------------------------------------------------------------------------------- */

/* A constant's data: a view of the mapped model file, or memory of the arena.  Row-major, packed,
 * little-endian, aligned to its element.  Compared by content only where `sha` is wanted. */
struct Const {
    const char *name; /* for people: the initializer's name; made unique when printed */
    const Type *type; /* static tensor type */
    Bytes       data;
};

typedef enum {
    EXPR_CONST,     /* u.constant */
    EXPR_VAR,       /* u.var: a parameter, let-bound or pattern-bound name */
    EXPR_GLOBAL,    /* u.name: @f */
    EXPR_OP,        /* u.op: an operator as a value (callee of most calls) */
    EXPR_CTOR,      /* u.ctor: constructor of an ADT */
    EXPR_TUPLE,     /* kids: fields */
    EXPR_PROJ,      /* kids: tuple; u.index */
    EXPR_CALL,      /* kids: callee, arguments; u.attrs */
    EXPR_LET,       /* kids: var, value, body */
    EXPR_IF,        /* kids: condition (scalar bool), then, else */
    EXPR_FUNC,      /* kids: parameters (vars), body; u.func */
    EXPR_REF_NEW,   /* kids: value */
    EXPR_REF_READ,  /* kids: ref */
    EXPR_REF_WRITE, /* kids: ref, value */
    EXPR_MATCH      /* kids: value, one body a clause; u.match */
} ExprKind;

typedef enum { PAT_WILD, PAT_VAR, PAT_CTOR, PAT_TUPLE } PatKind;
typedef struct Pattern {
    PatKind                      kind;
    const Expr                  *var;  /* PAT_VAR */
    const struct Ctor           *ctor; /* PAT_CTOR */
    uint32_t                     nkids;
    const struct Pattern *const *kids;
} Pattern;

typedef struct Ctor {
    const char        *name;
    const struct Adt  *adt;
    uint32_t           tag, nfields;
    const Type *const *fields; /* over the ADT's type variables */
} Ctor;
typedef struct Adt {
    const char        *name;
    uint32_t           nvars, nctors;
    const Type *const *vars;
    const Ctor *const *ctors;
} Adt;

typedef struct {
    const char *name;       /* without % ; interned */
    const Type *annotation; /* or NULL */
} VarData;
typedef struct {
    bool        primitive; /* the result of fuse_ops: becomes one kernel */
    bool        host;      /* ... of the CPU that drives the device (keep_on_host, plan_devices) */
    const Type *ret;       /* annotation, or NULL */
    const char *compiler;  /* NULL: ours */
} FuncData;
typedef struct {
    bool                  complete; /* the checker proved all cases covered */
    const Pattern *const *patterns; /* nkids - 1 */
} MatchData;

struct Expr {
    ExprKind           kind; /* selects the arm of u */
    uint32_t           id;   /* dense: index for side tables */
    Loc                loc;  /* where in the model it came from */
    const Type        *type; /* NULL until known */
    uint32_t           nkids;
    const Expr *const *kids;
    union {
        const Const *constant;
        VarData      var;
        const char  *name;
        const Op    *op;
        const Ctor  *ctor;
        uint32_t     index;
        const void  *attrs;
        FuncData     func;
        MatchData    match;
    } u;
};

const Const *const_new(Ctx *c, const char *name, const Type *type, Bytes data);
const Expr  *expr_const(Ctx *c, const Const *k, Loc loc);
const Expr  *expr_const_i64s(Ctx *c, const int64_t *v, uint32_t n); /* one dimension */
const Expr  *expr_scalar(Ctx *c, DType t, double v);
const Expr  *expr_var(Ctx *c, const char *name, const Type *annotation, Loc loc);
const Expr  *expr_global(Ctx *c, const char *name, const Type *type, Loc loc);
const Expr  *expr_op(Ctx *c, const Op *op);
const Expr  *expr_ctor(Ctx *c, const Ctor *k);
const Expr  *expr_tuple(Ctx *c, uint32_t n, const Expr *const *fields, Loc loc);
const Expr  *expr_proj(Ctx *c, const Expr *tuple, uint32_t index, Loc loc);
/* A call of an operator.  Runs its type relation when all arguments are typed; NULL with an error
 * recorded if they do not fit.  `attrs` is a record of op->attrs, NULL for defaults. */
/* The type of a call by its operator's relation; NULL with an error. */
const Type *op_rel(Ctx *c, const Op *op, Loc loc, const void *attrs, const Type *const *in,
                   uint32_t n);
const Expr *expr_call(Ctx *c, const Op *op, uint32_t n, const Expr *const *args, const void *attrs,
                      Loc loc);
/* The same by operator name; for passes and frontends: call1(c, "nn.relu", x, NULL, loc). */
const Expr *expr_call_name(Ctx *c, const char *op, uint32_t n, const Expr *const *args,
                           const void *attrs, Loc loc);
const Expr *expr_apply(Ctx *c, const Expr *callee, uint32_t n, const Expr *const *args, Loc loc);
const Expr *expr_let(Ctx *c, const Expr *var, const Expr *value, const Expr *body, Loc loc);
const Expr *expr_if(Ctx *c, const Expr *cond, const Expr *then, const Expr *other, Loc loc);
const Expr *expr_func(Ctx *c, uint32_t nparams, const Expr *const *params, const Expr *body,
                      FuncData data, Loc loc);
const Expr *expr_ref_new(Ctx *c, const Expr *value, Loc loc);
const Expr *expr_ref_read(Ctx *c, const Expr *ref, Loc loc);
const Expr *expr_ref_write(Ctx *c, const Expr *ref, const Expr *value, Loc loc);
const Expr *expr_match(Ctx *c, const Expr *value, uint32_t n, const Pattern *const *patterns,
                       const Expr *const *bodies, bool complete, Loc loc);
/* The same node with other kids (and its type computed again). */
const Expr *expr_with_kids(Ctx *c, const Expr *e, const Expr *const *kids);
/* The same node with another type: for infer_type, and for plan_halo, which puts a halo on the
 * result of a call.  expr_with_kids keeps that halo. */
const Expr *expr_with_type(Ctx *c, const Expr *e, const Type *t);

/* Names for people. */
static inline const Op *call_op(const Expr *e) /* NULL: not a call of an operator */
{
    return e->kind == EXPR_CALL && e->kids[0]->kind == EXPR_OP ? e->kids[0]->u.op : NULL;
}
static inline uint32_t call_nargs(const Expr *e)
{
    return e->nkids - 1;
}
static inline const Expr *call_arg(const Expr *e, uint32_t i)
{
    return e->kids[1 + i];
}
static inline uint32_t func_nparams(const Expr *e)
{
    return e->nkids - 1;
}
static inline const Expr *func_param(const Expr *e, uint32_t i)
{
    return e->kids[i];
}
static inline const Expr *func_body(const Expr *e)
{
    return e->kids[e->nkids - 1];
}
static inline const Expr *let_var(const Expr *e)
{
    return e->kids[0];
}
static inline const Expr *let_value(const Expr *e)
{
    return e->kids[1];
}
static inline const Expr *let_body(const Expr *e)
{
    return e->kids[2];
}
bool call_is(const Expr *e, const char *op); /* a call of the operator of this name */
bool expr_is_tensor(const Expr *e);          /* typed, of static shape; false for NULL */
bool expr_has_shape(const Expr *e);          /* ... of any shape */
/* What a call of bind_dims binds; false: it is another expression. */
bool expr_binds(const Expr *e, Dims *out);
/* The raw values of a constant expression as int64 / double; false if it is no constant. */
bool expr_ints(Ctx *c, const Expr *e, Ints *out);
bool expr_const_f(const Expr *e, double *v); /* a constant whose elements all equal v */

/* A module: functions by name in order (main is what is compiled), ADTs, symbolic dims. */
typedef struct {
    const char *name; /* without @ */
    const Expr *func; /* EXPR_FUNC */
} GlobalDef;
/* What is said of a parameter or result of main beyond its type. */
typedef struct {
    const char *layout; /* "NHWC"; NULL: unknown */
    uint32_t    state;  /* results: 1 + the parameter that may lie in the same memory; else 0 */
} ModuleIO;
struct Module {
    uint32_t           nfuncs, nadts;
    const GlobalDef   *funcs;
    const Adt *const  *adts;
    const char        *file;     /* what it was imported from */
    uint32_t           noutputs; /* names of main's results, in order (may be 0) */
    const char *const *output_names;
    const ModuleIO    *in_info, *out_info; /* for all parameters and results of main, or NULL */
    Sha256             sha;                /* of the model file, zero if none */
    DType              products; /* the 16 bits that all products had before they became f32 (pass
                                    widen_half); bits 0: they had not */
};
const Module *module_new(Ctx *c, const Module *like, uint32_t n, const GlobalDef *funcs);
const Expr   *module_func(const Module *m, const char *name); /* NULL if absent */
const Module *module_with_func(Ctx *c, const Module *m, const char *name, const Expr *func);

/* Every node under `root`, kids before parents, each once, in scratch.  Explicit stack. */
typedef struct {
    uint32_t           n;
    const Expr *const *at;
} ExprList;
ExprList expr_post_order(Ctx *c, const Expr *root);
/* Functions that a run of `main` may come to, what a function calls before it, main last, in
 * scratch; calls of what has not ended, as loops make them, are not followed. */
typedef struct {
    uint32_t         n;
    const GlobalDef *at;
} GlobalList;
GlobalList module_reached(Ctx *c, const Module *m);

/* Rebuild bottom-up: `fn` sees each node with its kids already rewritten (`now`, equal to `was` if
 * nothing below changed) and gives the node to use; NULL stops with an error.  Shared nodes once.
 */
typedef const Expr *RewriteFn(Ctx *c, void *user, const Expr *was, const Expr *now);
const Expr         *expr_rewrite(Ctx *c, const Expr *root, RewriteFn *fn, void *user);
const Module       *module_rewrite(Ctx *c, const Module *m, RewriteFn *fn, void *user);
/* Replace variables. */
const Expr *expr_bind(Ctx *c, const Expr *root, uint32_t n, const Expr *const *vars,
                      const Expr *const *values);

/* ---- scope.c: where nodes of a graph belong --------------------------------------------------------- */

/* Function bodies, branches, clauses and what follows a `let` are scopes; a node belongs to the
 * innermost scope that holds all its uses. */
typedef struct GraphScope {
    struct GraphScope *parent;
    uint32_t           depth;
    VEC(const Expr *) stmts; /* for the printer */
} GraphScope;

typedef struct {
    GraphScope  *scope;   /* innermost that holds all uses; NULL: none does */
    GraphScope  *sub[2];  /* FUNC, LET: [0] body; IF: then, else */
    GraphScope **clauses; /* MATCH: [k] holds kid k */
    uint32_t     uses;
    uint32_t     depth;  /* for the printer: inline nesting */
    bool         result; /* its only use is as the value of a scope or let */
    bool         stmt;   /* for the printer */
} NodeInfo;

/* Fills `info` (node to NodeInfo) for everything used under root; the scope of root itself.
 * Variables that are bound but not used have no info.  Several functions may fill one map: what two
 * of them share, such as a constant, has no scope. */
GraphScope *scopes_of(Ctx *c, const Expr *root, Map *info);

/* ---- same.c: equality up to names of bound variables; constants by content ----------------------- */

bool expr_same(Ctx *c, const Expr *a, const Expr *b);
/* Equal graphs have equal hashes.  `known` (may be NULL) keeps those of all nodes for the next
 * call, so that hashes of many nodes of one graph take the time of one. */
uint64_t expr_hash(Ctx *c, const Expr *e, Map *known);
bool     module_same(Ctx *c, const Module *a, const Module *b);

/* ---- text ------------------------------------------------------------------------------------------- */

/* docs/ir/relay.md.  Canonical: print(parse(print(m))) == print(m) byte for byte.  Constants over
 * 16 bytes print as sha256; their data go to and come from a side file (`relay_consts`). */
typedef struct {
    bool locs;  /* print loc("file":node) */
    bool types; /* print // Tensor[..] after each statement */
} RelayPrint;
void        relay_print(Ctx *c, const Module *m, RelayPrint how, StrBuf *out);
const char *expr_text(Ctx *c, const Expr *e); /* for messages and tests */
/* `consts`: side file with the data of large constants, empty if there are none. */
const Module *relay_parse(Ctx *c, const char *file, Bytes text, Bytes consts);
Bytes         relay_consts(Ctx *c, const Module *m); /* what goes to the side file */
bool          relay_verify(Ctx *c, const Module *m); /* false with errors E_VERIFY recorded */

/* ---- types of a whole module -------------------------------------------------------------------------- */

/* Complete every type, by relations and unification; NULL with errors if types do not fit. */
const Module *relay_infer(Ctx *c, const Module *m);

/* ---- eval.c: the interpreter, slow and obvious: the oracle ------------------------------------------ */

/* Value of main applied to constants; results as constants (tuples flattened). */
bool relay_eval(Ctx *c, const Module *m, uint32_t nin, const Const *const *in, uint32_t *nout,
                const Const *const **out);
/* The default Evaluator. */
extern const Evaluator eval_interp;

#endif
