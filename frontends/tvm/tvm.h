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
 *   parse.c      tokens as expressions: the grammar, names and what they stand for
 *   values.c     arrays: .params files, constants of the metadata
 *   import.c     bids, inputs, results
 *   node.c       what converters ask of a call: attributes, layouts
 *   table.c      the table of operators, ops.def
 *   nn.c image.c tensor.c shape.c layout.c qnn.c random.c sparse.c boxes.c loss.c signal.c
 *                converters by family; dynamic.c those of sizes that are operands
 *
 * A value is bound to a name once, and text comes in order, so that calls are converted as they are
 * read.  Functions of the module are functions here; local ones are put where they are called. */
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

/* ---- the parser -------------------------------------------------------------------------------------- */

typedef struct {
    const char *name; /* interned; of a parameter, or NULL */
    Loc         loc;
    const Type *type; /* NULL: not said, or not all dimensions are known: */
    bool        tensor;
    DType       dtype;
    uint32_t    rank;
    InputDim    dims[MAX_RANK];
} TvParam;
typedef VEC(TvParam) TvParamList;
typedef struct {
    const char *name;
    uint32_t    at; /* the token behind it */
    const Type *type;
} TvDef;
typedef struct {
    Ctx     *c;
    TvTokens tokens;
    uint32_t at, depth;
    int64_t  copied; /* nodes of local functions that were put where they are called */
    Map     *names;  /* to expressions */
    VEC(struct TvBound {
        const char *name;
        const Expr *before;
    })
    bound;
    VEC(TvDef) defs;
    TextList      results; /* names of main's, if it says some */
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

/* What to do without data types and references. */
#define TV_EVALUATE                                                                                \
    "relay.transform.PartialEvaluate() puts in their place what is known of them, and lists of a " \
    "known length are better tuples"

/* ---- parse.c ---------------------------------------------------------------------------------------- */

/* All functions but main are parsed; main's parameters are in *params and p->at is at its body. */
bool        tv_begin(TvParser *p, TvParamList *params, GlobalDefs *functions);
void        tv_bind(TvParser *p, const char *name, const Expr *value);
const Expr *tv_body(TvParser *p); /* up to its } */

/* The converters of ops.def. */
#define none NULL
#define TV(name, least, most, takes, moves, relay, attrs, convert) TvConvert convert;
#include "frontends/tvm/ops.def"
#undef TV
#undef none

#endif
