/* MXNet: a graph, model-symbol.json, and its values, model-0000.params, to a Relay module.
 *
 *   symbol.c      the JSON: nodes, graphs within nodes, what older versions wrote otherwise
 *   attrs.c       texts as the numbers and lists that attributes are
 *   params.c      the file of values, and where it is
 *   declared.c    what is known of variables
 *   survey.c      whether the nodes are supported, before anything is built
 *   import.c      inputs, results and names; one node after another
 *   node.c        what converters ask of a node: attributes, operands, layouts
 *   table.c       the tables: ops.def, schema.def
 *   describe.c    inputs, outputs and operators as the file has them
 *   math.c nn.c norm.c pool.c shape.c slice.c reduce.c gather.c make.c vision.c boxes.c
 * sample.c recurrent.c attention.c control.c quant.c      converters by family
 *
 * A converter reads n->in and gives results with mx_done and mx_put; false after an error.  Nodes
 * come after what they need, so that a graph is walked once, from its first node to its last. */
#ifndef TVMCC_FRONTENDS_MXNET_H
#define TVMCC_FRONTENDS_MXNET_H

#include "formats/formats.h"
#include "frontends/calls.h"

/* ---- table.c ---------------------------------------------------------------------------------------- */

typedef struct MxNode MxNode;
typedef bool          MxConvert(MxNode *n);
typedef enum { MX_ALL, MX_FIRST } MxHow; /* which operands are needed */

typedef struct {
    const char *name, *inputs, *outputs, *attrs;
} MxSchema;
typedef struct {
    const char     *name;
    MxHow           how;
    const char     *relay;
    MxConvert      *convert;
    const MxSchema *schema;
} MxRow;

const MxRow *mx_row(const char *op); /* by any of its names; NULL: there is none */

/* An attribute as the schema has it: "axis:int=0". */
typedef enum { MX_INT, MX_BOOL, MX_FLOAT, MX_TEXT, MX_WORD, MX_SHAPE, MX_SHAPES, MX_FLOATS } MxKind;
typedef struct {
    Bytes  name, words, fallback; /* words: "a|b"; fallback.at NULL: it has to be given */
    MxKind kind;
    bool   maybe; /* may be None */
} MxAttrSpec;
bool mx_next_attr(const char **at, MxAttrSpec *out);
bool mx_attr_spec(const MxSchema *s, const char *name, MxAttrSpec *out);
/* An operand: "bias?no_bias=0", "data[num_args]", "data*". */
typedef struct {
    Bytes name, count, attr, value;
    bool  any;
} MxArgSpec;
bool mx_next_arg(const char **at, MxArgSpec *out);
/* All names of attributes of the schema, interned; for the nearest one. */
void mx_attr_names(Ctx *c, const MxSchema *s, TextList *out);

/* ---- attrs.c ------------------------------------------------------------------------------------------ */

#define MX_NONE INT64_MIN /* None among whole numbers */

bool mx_parse_int(const char *text, int64_t *out);
bool mx_parse_bool(const char *text, bool *out);
bool mx_parse_float(const char *text, double *out);
/* "(1, 2)", "[1, None]", "3"; lists within lists are one after another. */
bool mx_parse_ints(Ctx *c, const char *text, Ints *out);
bool mx_parse_floats(Ctx *c, const char *text, uint32_t *n, double **out);
bool mx_is_none(const char *text);
/* Whether a text can be what the schema says. */
bool mx_check_value(Ctx *c, const MxAttrSpec *s, const char *text);

/* ---- symbol.c ----------------------------------------------------------------------------------------- */

#define MX_MAX_NESTING 16

typedef struct {
    const char *key, *value;
} MxPair;
typedef struct {
    uint32_t node, port;
} MxPort;
typedef struct MxGraph MxGraph;
typedef struct {
    const char  *name, *op; /* interned; op NULL: a variable */
    const MxRow *row;       /* NULL: a variable, or not known */
    uint32_t     nattrs, nin, nsub;
    uint32_t     nout; /* as many as are used */
    MxPair      *attrs;
    MxPort      *in;
    MxGraph     *sub;
} MxOp;
struct MxGraph {
    uint32_t  n, nheads, nvars;
    MxOp     *op;
    MxPort   *heads;
    uint32_t *vars; /* nodes that are variables, in their order */
};

/* False with an error. */
bool        mx_read_symbol(Ctx *c, const char *path, Bytes file, MxGraph *out);
const char *mx_attr(const MxOp *p, const char *name); /* as text; NULL: it is not given */
/* The value of an attribute, or what the schema has for it. */
const char *mx_attr_text(Ctx *c, const MxOp *p, const char *name);
/* How many operands such a spec means. */
uint32_t mx_arg_count(Ctx *c, const MxOp *p, const MxArgSpec *s);
/* The role of operand i, "weight". */
Bytes mx_arg_role(Ctx *c, const MxOp *p, uint32_t i);
/* What MXNet calls a node's output: "fc1_output". */
const char *mx_port_name(Ctx *c, const MxGraph *g, MxPort p);

/* ---- params.c ----------------------------------------------------------------------------------------- */

typedef struct {
    const char    *name; /* interned */
    DType          dtype;
    uint32_t       rank;
    const int64_t *dims;
    Bytes          data; /* a view of the file */
} MxArray;
typedef struct {
    const char *path; /* NULL: there is no such file */
    uint32_t    n;
    MxArray    *at;
    Map        *index; /* of names, to arrays */
} MxParams;

/* The file that the user names, or that of the greatest epoch beside the graph; false with an
 * error. */
bool           mx_open_params(Ctx *c, const char *symbol, const char *given, ImportFiles *files,
                              MxParams *out);
const MxArray *mx_param(const MxParams *p, const char *name); /* NULL: it is not there */
bool           mx_dtype(int64_t number, DType *out);          /* by MXNet's numbers */
bool           mx_dtype_name(const char *name, DType *out);   /* "float32" */

/* ---- declared.c --------------------------------------------------------------------------------------- */

/* The first node that takes a variable, and as which operand; false: none. */
bool mx_consumer(const MxGraph *g, uint32_t at, const MxOp **p, uint32_t *operand);
bool mx_is_trained(Bytes role); /* is it one of weights? */
/* Its type and shape, as far as they are known; rank UINT32_MAX: not even that. */
void mx_declared(Ctx *c, const MxGraph *g, const MxParams *params, uint32_t at, DType *t,
                 uint32_t *rank, InputDim *dims);

/* ---- import.c ----------------------------------------------------------------------------------------- */

typedef struct {
    Ctx        *c;
    const char *path;
    MxGraph     graph;
    MxParams    params;
    Shapes      shapes;
    NamedValues inputs;
    GlobalDefs  functions;
    uint32_t    loops, converted;
} MxImport;

typedef struct {
    const Expr **out; /* of one node; NULL: not computed, and each of them, too */
} MxValues;
typedef struct {
    MxImport      *im;
    const MxGraph *g;
    MxValues      *values; /* by node */
    uint32_t       depth;
    const char    *within; /* the node whose graph it is, or NULL */
} MxScope;

struct MxNode {
    Build        b;
    MxImport    *im;
    MxScope     *scope;
    const MxOp  *op;
    const MxRow *row;
    uint32_t     nin, nout;
    const Expr **in, **out;
};

/* The heads of a graph within a node, whose variables have these values, in their order. */
bool mx_subgraph(MxNode *n, uint32_t sub, const Expr *const *vars, const Expr **heads);
/* False with errors, all at once, if some node that is needed cannot be what it says. */
bool mx_survey(Ctx *c, const char *path, const MxGraph *g, const bool *needed);
/* Which nodes these outputs need; more NULL: the heads. */
bool *mx_needed(Ctx *c, const MxGraph *g, uint32_t n, const MxPort *more);

/* ---- node.c ------------------------------------------------------------------------------------------- */

#define mx_error(n, ...) build_error(&(n)->b, __VA_ARGS__)

/* Attributes, as the node or else the schema has them; survey.c checked them. */
bool        mx_has(const MxNode *n, const char *name); /* given, and not None */
int64_t     mx_int(const MxNode *n, const char *name);
bool        mx_bool(const MxNode *n, const char *name);
double      mx_float(const MxNode *n, const char *name);
const char *mx_text(const MxNode *n, const char *name);
bool        mx_is(const MxNode *n, const char *name, const char *word);
Ints        mx_ints(const MxNode *n, const char *name);
void        mx_floats(const MxNode *n, const char *name, uint32_t *count, double **out);
/* `count` of them, each from least to INT32_MAX; an empty list is `fallback`s. */
bool mx_sizes(const MxNode *n, const char *name, uint32_t count, int64_t least, int64_t fallback,
              int64_t *out);
/* "float32"; None: t stays what it is. */
bool mx_type(const MxNode *n, const char *name, DType *t);

bool mx_done(MxNode *n, const Expr *y); /* is the first output */
bool mx_put(MxNode *n, uint32_t i, const Expr *y);
bool mx_rank(const MxNode *n, uint32_t i, uint32_t least, uint32_t most);
/* An axis, which may be negative. */
bool mx_axis(const MxNode *n, int64_t axis, uint32_t rank, uint32_t *out);
/* Is `layout` one with the channels last?  False with an error in *ok: it is not for this rank. */
bool mx_channels_last(const MxNode *n, uint32_t rank, bool *ok);
/* A result in the layout that it is asked for, from one with its channels first. */
bool mx_image_done(MxNode *n, bool last, const Expr *y);

/* ---- shared by families -------------------------------------------------------------------------------- */

/* Comparison and logic give numbers of x's type. */
const Expr *mx_as_number(const Build *b, const Expr *truth, DType t);
const Expr *mx_truth(const Build *b, const Expr *x); /* not 0 */
/* Convolution by the attributes of the node, without its bias, in NCHW.. */
const Expr *mx_dense(MxNode *n, const Expr *x, const Expr *w, const char *out_dtype);
const Expr *mx_bias(const Build *b, const Expr *y, const Expr *bias, uint32_t axis);
const Expr *mx_pool(MxNode *n, const Expr *x);
/* Of matrices, or of batches of them: BuildEinsum.product. */
const Expr *mx_product(const Build *b, void *user, const Expr *x, const Expr *y);

/* The converters of ops.def. */
#define none NULL
#define MX(name, how, relay, convert) MxConvert convert;
#include "frontends/mxnet/ops.def"
#undef MX
#undef none

#endif
