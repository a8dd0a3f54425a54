/* TVM: Relay's text as TVM writes it (astext, Model Library Format) or its nodes as JSON, and files
 * of parameters.
 *
 *     #[version = "0.0.5"]
 *     def @main(%x: Tensor[(1, 4), float32], %w: Tensor[(2, 4), float32]) -> Tensor[(1, 2),
 * float32] { %0 = nn.dense(%x, %w, units=2); add(%0, meta[relay.Constant][0])
 *     }
 *     #[metadata]
 *     {"root": 1, "nodes": [..], "b64ndarrays": [..]}
 *
 *   text.c       text as tokens
 *   graph.c      nodes that tvm.ir.save_json wrote as tokens
 *   read.c       tokens one after another; types, numbers, attributes
 *   parse.c      tokens as terms: the grammar, names and what they stand for
 *   module.c     functions and data types of a module
 *   eval.c       what terms come to: calls are converted, functions carried out
 *   data.c       what is known of values while that is done
 *   loop.c       functions that call themselves as the run decides
 *   values.c     arrays: .params files, constants of the metadata
 *   import.c     bids, inputs, results
 *   node.c       what converters ask of a call: attributes, layouts
 *   table.c      the table of operators, ops.def
 *   nn.c image.c tensor.c shape.c layout.c qnn.c random.c sparse.c boxes.c loss.c signal.c
 *                converters by family; dynamic.c those of sizes that are operands
 *
 * Functions of the module from tensors to tensors are functions here.  All others, data types and
 * references are carried out while the module is read: what is left are calls of operators. */
#ifndef TVMCC_FRONTENDS_TVM_H
#define TVMCC_FRONTENDS_TVM_H

#include "base/json.h"
#include "frontends/calls.h"

/* ---- text.c ----------------------------------------------------------------------------------------- */

typedef enum {
    TV_END,
    TV_LOCAL,  /* %x, %0: text without % */
    TV_GLOBAL, /* @f: text without @ */
    TV_WORD,   /* nn.relu, let, Tensor */
    TV_NUMBER, /* -1i64, 0.5f */
    TV_TEXT,   /* "..", without quotes */
    TV_META,   /* meta[relay.Constant][0]: the kind; number: which one */
    TV_ARROW,  /* -> or => */
    TV_SIGN    /* one character */
} TvKind;
typedef struct {
    TvKind      kind;
    uint32_t    line, col, number;
    const char *text; /* interned */
} TvToken;
typedef struct {
    const char *path;
    uint32_t    n, cap;
    TvToken    *at;       /* the last one is TV_END */
    Bytes       metadata; /* what follows #[metadata] */
} TvTokens;

bool tv_lex(Ctx *c, const char *path, Bytes text, TvTokens *out);

/* ---- values.c --------------------------------------------------------------------------------------- */

typedef struct {
    const char   *path; /* NULL: there is no such file */
    uint32_t      n;
    const Const **at;
    Map          *index; /* of names, to constants */
} TvParams;
/* "float32", "bool". */
bool tv_dtype(const char *name, DType *out);
bool tv_is_params(Bytes file); /* does it begin like one? */
bool tv_read_params(Ctx *c, const char *path, Bytes file, TvParams *out);
/* Arrays in base64, a list of which is in JSON; they are constants 0, 1 .. */
bool tv_read_arrays(Ctx *c, const char *path, const json_t *list, uint32_t *n, const Const ***out);
/* The constants that meta[relay.Constant] has, in order. */
bool tv_read_metadata(Ctx *c, const char *path, Bytes json, uint32_t *n, const Const ***out);

/* ---- graph.c ---------------------------------------------------------------------------------------- */

/* What tvm.ir.save_json wrote, as the tokens of its text; meta[relay.Constant][i] is constant i. */
bool tv_read_graph(Ctx *c, const char *path, Bytes file, TvTokens *out, uint32_t *nconsts,
                   const Const ***consts);

/* ---- table.c ---------------------------------------------------------------------------------------- */

typedef struct TvNode TvNode;
typedef const Expr   *TvConvert(TvNode *n);
/* TUPLE: one operand, a tuple of tensors; MIXED: the converter looks at them */
typedef enum { TV_TENSORS, TV_TUPLE, TV_MIXED } TvTakes;
/* What becomes of images with their channels last: the converter sees to it, or it works on cells,
 * or along one axis. */
typedef enum { TV_STAYS, TV_CELLS, TV_AXIS } TvMoves;
typedef struct {
    const char *name;
    uint32_t    least, most; /* operands */
    TvTakes     takes;
    TvMoves     moves;
    const char *relay, *attrs;
    TvConvert  *convert;
} TvRow;
const TvRow *tv_row(const char *op); /* NULL: there is none */
/* What to do instead of an operator that has no row, or an attribute that its row does not
 * have; NULL: nobody knows. */
const char *tv_unknown_op(Ctx *c, const char *op);
const char *tv_unknown_attr(Ctx *c, const TvRow *row, const char *name);

/* A word of TvRow.attrs: "axis", "axes>axis", "rounding=UPWARD", "data_layout!". */
typedef enum { TV_SAME, TV_FIXED, TV_READ } TvUse;
typedef struct {
    const char *name, *other; /* interned: of our field, or the only value */
    TvUse       use;
} TvAttrSpec;
bool tv_next_attr(Ctx *c, const char **at, TvAttrSpec *out);

/* ---- node.c ----------------------------------------------------------------------------------------- */

typedef enum { TV_NONE, TV_INT, TV_FLOAT, TV_BOOL, TV_STRING, TV_LIST } TvValueKind;
typedef struct TvValue {
    TvValueKind     kind;
    int64_t         i; /* INT, BOOL */
    double          f; /* INT too */
    const char     *text;
    uint32_t        n;
    struct TvValue *list;
} TvValue;
typedef struct {
    const char *name;
    TvValue     value;
} TvAttr;
struct TvNode {
    Build        b;
    const TvRow *row;
    uint32_t     nin, nattrs;
    const Expr **in;
    TvAttr      *attrs;
};

const Expr *tv_convert(TvNode *n); /* checks operands and attributes, then converts */
/* NULL: not given, or None; what is given in another kind is an error, beside the fallback. */
const TvValue *tv_attr(const TvNode *n, const char *name);
int64_t        tv_int(const TvNode *n, const char *name, int64_t fallback);
bool           tv_bool(const TvNode *n, const char *name, bool fallback);
double         tv_float(const TvNode *n, const char *name, double fallback);
const char    *tv_text(const TvNode *n, const char *name, const char *fallback);
/* All numbers of a list, within lists too; false with an error: there are others. */
bool tv_ints(const TvNode *n, const char *name, Ints *out);
/* `count` of them; one stands for all. */
bool tv_sizes(const TvNode *n, const char *name, uint32_t count, int64_t fallback, int64_t *out);
/* Padding before and after of each of `count` dimensions, as one, `count` or twice as many numbers.
 */
bool tv_padding(const TvNode *n, uint32_t count, int64_t *begin, int64_t *end);
bool tv_type(const TvNode *n, const char *name, DType *t);
/* The cells of operand i; false with an error: they are not known. */
bool tv_constant(const TvNode *n, uint32_t i, TvValue *out);
/* A record of the operator with what the call says. */
void *tv_record(const TvNode *n, const char *op);
#define tv_error(n, ...) build_error(&(n)->b, __VA_ARGS__)

/* ---- nn.c ------------------------------------------------------------------------------------------- */

/* A convolution with data in NCHW and weights in OIHW, or IOHW if it is transposed. */
typedef struct {
    BuildConv conv;
    bool      last; /* the result has its channels last */
} TvConv;
bool        tv_read_conv(TvNode *n, TvConv *out);
const Expr *tv_convolved(TvNode *n, const TvConv *k);
/* "NCHW" or "NHWC", and the like of other ranks; false with an error. */
bool tv_layout(const TvNode *n, const char *attr, uint32_t rank, bool *last);
/* Windows of x, [N, C, ..]. */
const Expr *tv_pooled(const TvNode *n, const Expr *x, bool mean, const BuildWindow *w,
                      BuildPooling how);

/* ---- layout.c ---------------------------------------------------------------------------------------- */

/* Does the layout that an attribute says have blocks, as NCHW8c? */
bool tv_is_blocked(const TvNode *n, const char *attr);
/* `convert` for data, and weights unless NULL, whose layouts in these attributes have blocks. */
const Expr *tv_unblocked(TvNode *n, const char *data, const char *weight, TvConvert *convert);

/* ---- tensor.c, shape.c ------------------------------------------------------------------------------ */

Dims        tv_dims(const TvNode *n, Ints v);
const Expr *tv_rounded(const Build *b, const Expr *x); /* halves away from 0 */
/* Of matrices, or of batches of them: BuildEinsum.product. */
const Expr *tv_product(const Build *b, void *user, const Expr *x, const Expr *y);

/* ---- terms: programs as they are written ------------------------------------------------------------- */

typedef struct {
    const char *name; /* interned; of a parameter, or NULL */
    Loc         loc;
    const Type *type; /* NULL: not said, or not all of it is known: */
    bool        tensor;
    DType       dtype;
    uint32_t    rank;
    InputDim    dims[MAX_RANK];
} TvParam;
typedef VEC(TvParam) TvParamList;

/* A constructor of a data type. */
typedef struct {
    const char *name;
    uint32_t    nfields;
} TvCtor;

typedef enum { TV_WILD, TV_BIND, TV_CTOR, TV_FIELDS } TvPatternKind;
typedef struct TvPattern {
    TvPatternKind                  kind;
    uint32_t                       slot; /* BIND */
    const TvCtor                  *ctor; /* CTOR */
    uint32_t                       n;    /* CTOR, FIELDS */
    const struct TvPattern *const *kids;
} TvPattern;

typedef enum {
    TERM_CONST,
    TERM_LOCAL,  /* u.local */
    TERM_GLOBAL, /* u.def */
    TERM_OP,     /* at->text */
    TERM_CTOR,   /* u.ctor */
    TERM_FUNC,   /* u.func */
    TERM_TUPLE,  /* kids: fields */
    TERM_PROJ,   /* kids: tuple; u.index */
    TERM_CALL,   /* kids: callee, arguments; u.call */
    TERM_LET,    /* kids: value; u.let.  Only in a block */
    TERM_BLOCK,  /* kids: lets, and what is done for its effect; the result */
    TERM_IF,     /* kids: condition, then, else */
    TERM_MATCH,  /* kids: data, one body a clause; u.match */
    TERM_REF,    /* kids: value */
    TERM_READ,   /* kids: reference */
    TERM_WRITE   /* kids: reference, value */
} TvTermKind;
typedef struct TvTerm {
    TvTermKind                  kind;
    const TvToken              *at;
    const char                 *name; /* what it is bound to; NULL: nothing */
    uint32_t                    n;
    const struct TvTerm *const *kids;
    union {
        const Expr *constant;
        struct {
            uint32_t up, slot; /* how many functions further out */
        } local;
        uint32_t             def;
        const TvCtor        *ctor;
        const struct TvFunc *func;
        uint32_t             index;
        struct {
            uint32_t n;
            TvAttr  *at;
        } call;
        struct {
            uint32_t    slot;
            const Type *type;
        } let;
        const TvPattern *const *match;
    } u;
} TvTerm;
/* Each activation has `nslots` values: those of its parameters first. */
typedef struct TvFunc {
    const char    *name; /* NULL: it has none */
    const TvToken *at;
    TvParamList    params;
    const Type    *ret; /* NULL: not known */
    uint32_t       nslots;
    const TvTerm  *body;
    const Type *type; /* of a function of the module, from tensors to tensors; NULL: it is none */
} TvFunc;

/* ---- the parser -------------------------------------------------------------------------------------- */

/* What a name means from here on, and what it meant before. */
struct TvBound {
    const char           *name;
    uint32_t              level, slot;
    const struct TvBound *before;
};
typedef struct {
    const char *name;
    uint32_t    at; /* the token behind it */
    TvFunc     *func;
} TvDef;
typedef VEC(const char *) TvNames;
typedef struct {
    Ctx     *c;
    TvTokens tokens;
    uint32_t at, depth, level; /* level: functions within each other */
    TvFunc  *func;             /* whose body is read */
    Map     *names;            /* to struct TvBound */
    VEC(struct TvBound *) bound;
    VEC(TvDef) defs;
    Map          *types, *ctors; /* types: those of the module; ctors: to TvCtor */
    TvNames       vars;          /* that are types */
    TextList      results;       /* names of main's, if it says some */
    uint32_t      nconsts;
    const Const **consts;
} TvParser;

/* ---- read.c ----------------------------------------------------------------------------------------- */

const TvToken *tv_peek(const TvParser *p);
const TvToken *tv_next(TvParser *p);
Loc            tv_place(const TvParser *p, const TvToken *t);
void          *tv_expected(const TvParser *p, const char *wanted); /* NULL with the error */
bool           tv_is_sign(const TvParser *p, const char *sign);
bool           tv_is_word(const TvParser *p, const char *word);
bool           tv_accept(TvParser *p, const char *sign); /* the sign, if it is next */
bool           tv_want(TvParser *p, const char *sign);
/* One level more, which the caller takes off again; false with an error: there are too many. */
bool tv_deeper(TvParser *p);
bool tv_parse_number(TvParser *p, DType *t, TvValue *out);
bool tv_parse_type(TvParser *p, TvParam *out);
bool tv_at_attr(const TvParser *p);
bool tv_parse_attr(TvParser *p, TvAttr *out);

/* [A, B]: names that are types from here on, until tv_drop_vars; nothing if there is no bracket. */
bool tv_parse_vars(TvParser *p);
void tv_drop_vars(TvParser *p, uint32_t until);

/* ---- parse.c ---------------------------------------------------------------------------------------- */

/* [A](%x: A, ..) -> A { .. }, behind fn or its name; results: where names of results go, or NULL.
 */
bool tv_parse_func(TvParser *p, TvFunc *f, TextList *results);

/* ---- module.c --------------------------------------------------------------------------------------- */

/* The whole module; NULL with an error: main. */
const TvFunc *tv_parse(TvParser *p);

/* ---- data.c: what terms come to ---------------------------------------------------------------------- */

/* What is known of a value while the module is read.  Tensors are expressions, and so are tuples of
 * them; data types, functions and references are gone when it is done. */
typedef enum {
    DATA_EXPR,
    DATA_TUPLE, /* of which not all parts are expressions */
    DATA_CTOR,
    DATA_FUNC,
    DATA_OP,
    DATA_MAKER,  /* a constructor as a function */
    DATA_REF,    /* index */
    DATA_CHOICE, /* parts 0 or 1, of different forms, by what the run says of expr */
    DATA_NOTHING /* what a loop comes to, while that is found out */
} TvDataKind;
typedef struct TvData {
    TvDataKind                  kind;
    uint32_t                    n, index, depth, size;
    const struct TvData *const *parts;
    const Expr                 *expr;
    const TvCtor               *ctor;
    const TvFunc               *func;
    struct TvEnv               *env;
    const TvToken              *op;
} TvData;
/* What names stand for in one activation of a function. */
typedef struct TvEnv {
    struct TvEnv  *up;
    const TvData **slots;
} TvEnv;
typedef VEC(const Expr *) TvLeaves;

const TvData *tv_data_expr(Ctx *c, const Expr *e);
const TvData *tv_data_parts(Ctx *c, TvDataKind kind, const TvCtor *ctor, uint32_t n,
                            const TvData *const *parts);
/* "Cons", "a function", Tensor[..] */
const char *tv_data_text(Ctx *c, const TvData *d);
/* A tuple as its parts, if it is an expression. */
const TvData *tv_spread(Ctx *c, const TvData *d);
/* NULL: it is not only tensors and tuples of them. */
const Expr *tv_data_tensors(Ctx *c, const TvData *d);
/* Tensors as one expression: itself, or a tuple. */
const Expr *tv_pack(Ctx *c, const TvLeaves *leaves);
/* Its expressions, in order; and the same data with others. */
void          tv_leaves(Ctx *c, const TvData *d, TvLeaves *out);
const TvData *tv_with_leaves(Ctx *c, const TvData *d, const Expr *const **next);
/* Are they equal but for values of tensors?  `types`: of the same types, too. */
bool tv_same_form(Ctx *c, const TvData *a, const TvData *b, bool types);
/* What a run decides; NULL with an error. */
const TvData *tv_join(Ctx *c, Loc loc, const Expr *cond, const TvData *then, const TvData *other);
/* d with `by` in place of a choice within it. */
const TvData *tv_replaced(Ctx *c, const TvData *d, const TvData *choice, const TvData *by);

/* ---- eval.c, loop.c ----------------------------------------------------------------------------------- */

/* A function that calls itself as the run decides, while its body is read. */
typedef struct TvLoop {
    struct TvLoop       *outer;
    const TvFunc        *func;
    const TvEnv         *env;
    const char          *name;
    Loc                  loc;
    uint32_t             n, nvars, nfuncs; /* arguments; tensors in them; functions before it */
    const TvData *const *args;             /* with variables */
    const Expr         **vars, **first;
    const TvData        *form; /* of what it comes to; NULL: not known yet */
    const Type          *type; /* of the function it becomes */
} TvLoop;

typedef VEC(const TvData *) TvCells;
typedef struct {
    const TvTerm        *t;
    TvEnv               *env;
    uint32_t             done; /* kids that have been begun */
    const TvData       **got;
    const TvFunc        *func; /* the function that runs, if it is a call */
    TvEnv               *outer;
    const TvData *const *args;
    uint32_t             caller; /* 1 + the place of the call around it */
    uint32_t             undecided;
    TvLoop              *loop;
    TvCells              cells;  /* of references, when it began */
    const TvData        *choice; /* what is tried both ways, or NULL */
    const Expr          *cond;
    const TvData        *first; /* what came of the first way */
    TvCells              written;
} TvFrame;
typedef struct {
    Ctx            *c;
    const TvParser *p;
    GlobalDefs     *functions;
    VEC(TvFrame) frames;
    const TvData *value;  /* of the term that has been done last */
    TvCells       cells;  /* of references */
    VEC(TvLoop *) owners; /* of references: the loops in which they were made */
    TvLoop  *loop;
    uint32_t caller, undecided, calls, names;
    int64_t  steps;
} TvMachine;

/* What main comes to with these values of its parameters; NULL with an error.  Functions that stay
 * some are added. */
const Expr *tv_eval(const TvParser *p, const TvFunc *main, const Expr *const *args,
                    GlobalDefs *functions);
bool tv_enter(TvMachine *m, uint32_t frame, const TvFunc *f, TvEnv *env, const TvData *const *args);
void tv_restore(TvMachine *m, const TvCells *cells);
/* A call of a loop around it: true, and its value, or NULL with an error. */
bool tv_calls_loop(TvMachine *m, const TvTerm *t, const TvFunc *f, const TvEnv *env,
                   const TvData *const *args, const TvData **out);
/* The call of the same function around this one that has to be a loop; UINT32_MAX: none. */
uint32_t tv_loop_begins(TvMachine *m, const TvFunc *f, const TvEnv *env, const TvData *const *args);
bool     tv_begin_loop(TvMachine *m, uint32_t frame);
/* Its body has come to m->value: true if the frame is done with *out. */
bool tv_end_loop(TvMachine *m, uint32_t frame, const TvData **out);

/* The converters of ops.def. */
#define none NULL
#define TV(name, least, most, takes, moves, relay, attrs, convert) TvConvert convert;
#include "frontends/tvm/ops.def"
#undef TV
#undef none

#endif
