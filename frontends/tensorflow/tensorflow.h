/* TensorFlow: a frozen GraphDef (.pb, .pbtxt) or the folder of a SavedModel to a Relay module.
 *
 *   proto.c      messages of TensorFlow's .proto files
 *   model.c      the file: which graph, its inputs and outputs
 *   graph.c      nodes of a graph or function, and which outputs their inputs are
 *   bundle.c     checkpoints: names to tensors        variable.c  variables' values
 *   lookup.c     tables of numbers
 *   walk.c       all nodes that the outputs need
 *   survey.c     whether these are supported, before anything is built
 *   import.c     inputs, outputs and names; what a node needs before the node
 *   node.c       what converters ask of a node: attributes, values, images, axes
 *   table.c      the tables: ops.def, schema.def
 *   describe.c   inputs, outputs and operators as the file has them
 *   ops.def      operator, how it takes values, converter
 *   schema.def   inputs, outputs and attributes of these operators, as TensorFlow registers them
 *   function.c frames.c loop.c list.c complex.c
 *                control flow: functions, that of TensorFlow 1, loops, lists of tensors
 *   math.c nn.c pool.c shape.c slice.c reduce.c gather.c make.c image.c ..
 *                converters by family
 *
 * A converter reads n->in, Relay expressions, and stores values with tf_done and tf_put; false
 * after an error.  Nodes are converted as the outputs need them, so what nothing needs may be
 * anything. Edges that only order nodes are not followed: what is compiled has no state.
 *
 * Layout.  As in other formats that have NHWC (frontends/layout.c): TF_CELLS and TF_AXES work on
 * images as they lie (n->moved). */
#ifndef TVMCC_FRONTENDS_TENSORFLOW_H
#define TVMCC_FRONTENDS_TENSORFLOW_H

#include "formats/formats.h"
#include "frontends/calls.h"

/* ---- proto.c: the messages, with the fields that are used ---------------------------------------- */

typedef struct {
    int64_t     size; /* -1: not known */
    const char *name;
} TfDim;
typedef struct {
    PbMsgs  dim; /* TfDim */
    int64_t unknown_rank;
} TfShape;
typedef struct {
    int64_t  dtype;
    TfShape *shape;
    Bytes    content; /* all cells; or the first ones in one of: */
    PbInts   half_val, int_val, int64_val, bool_val, uint32_val, uint64_val;
    PbPacked float_val, scomplex_val, double_val;
    PbBlobs  string_val;
} TfTensor;
typedef struct {
    const char *name;
    PbMsgs      attr; /* TfAttr */
} TfFunc;
typedef struct {
    PbBlobs  s;
    PbInts   i, b, type;
    PbPacked f;
    PbMsgs   shape, func; /* TfShape, TfFunc */
} TfListValue;
typedef struct {
    Bytes        s;
    int64_t      i, b, type;
    float        f;
    bool         has_s, has_i, has_f, has_b, has_type;
    TfShape     *shape;
    TfTensor    *tensor;
    TfListValue *list;
    TfFunc      *func;
    const char  *placeholder;
} TfValueDef;
typedef struct {
    const char *key;
    TfValueDef *value;
} TfAttr;
typedef struct {
    const char *name, *op;
    PbTexts     input;
    PbMsgs      attr; /* TfAttr */
} TfNodeDef;
typedef struct {
    const char *name;
    int64_t     type;
    const char *number_attr, *type_list_attr;
} TfArg;
typedef struct {
    const char *name;
    PbMsgs      input, output; /* TfArg */
} TfSignatureDef;
typedef struct {
    const char *key, *value;
} TfRet;
typedef struct {
    TfSignatureDef *signature;
    PbMsgs          node, ret; /* TfNodeDef, TfRet */
} TfFunctionDef;
typedef struct {
    PbMsgs function; /* TfFunctionDef */
} TfLibrary;
typedef struct {
    PbMsgs     node; /* TfNodeDef */
    TfLibrary *library;
} TfGraphDef;
typedef struct {
    const char *name; /* "serving_default_x:0" */
    int64_t     dtype;
    TfShape    *shape;
} TfPortDef;
typedef struct {
    const char *key;
    TfPortDef  *value;
} TfPortEntry;
typedef struct {
    PbMsgs      input, output; /* TfPortEntry */
    const char *method;
} TfEntryDef;
typedef struct {
    const char *key;
    TfEntryDef *value;
} TfEntry;
typedef struct {
    PbTexts tags;
} TfMetaInfo;
typedef struct {
    const char *restore;
} TfSaver;
typedef struct {
    TfMetaInfo *info;
    TfGraphDef *graph;
    TfSaver    *saver;
    PbMsgs      entry; /* TfEntry: signatures */
} TfMetaGraph;
typedef struct {
    int64_t version;
    PbMsgs  meta; /* TfMetaGraph */
} TfSavedModel;
typedef struct {
    int64_t shards, endianness;
} TfBundleHeader;
typedef struct {
    int64_t  dtype, shard, offset, size;
    TfShape *shape;
    PbBlobs  slices;
} TfBundleEntry;

extern const PbMessage tf_graph_def, tf_saved_model, tf_bundle_header, tf_bundle_entry;

/* Element types by TensorFlow's numbers. */
enum {
    TF_FLOAT = 1,
    TF_DOUBLE,
    TF_INT32,
    TF_UINT8,
    TF_INT16,
    TF_INT8,
    TF_STRING,
    TF_COMPLEX64,
    TF_INT64,
    TF_BOOL,
    TF_BFLOAT16 = 14,
    TF_UINT16 = 17,
    TF_HALF = 19,
    TF_RESOURCE = 20,
    TF_VARIANT = 21,
    TF_UINT32 = 22,
    TF_UINT64 = 23,
    TF_REF = 100 /* on top: of a variable of TensorFlow 1 */
};
/* The element type of that number, in memory; false: none of ours. */
bool        tf_dtype(int64_t type, DType *out);
const char *tf_dtype_name(Ctx *c, int64_t type); /* "f32", "string" */
/* A hint: what serves examples as strings reads them before the model that counts. */
#define TF_NO_STRINGS "strings are not compiled: export the model behind what reads them"

/* ---- table.c --------------------------------------------------------------------------------------- */

typedef struct TfNode TfNode;
typedef bool          TfConvert(TfNode *n);

/* How an operator takes its values. */
typedef enum {
    TF_PLAIN,  /* tensors as they lie */
    TF_CELLS,  /* .. cell by cell, which broadcast */
    TF_AXES,   /* .. along axes (tf_axis) */
    TF_VALUES, /* variables and lists of tensors, too: n->given */
    TF_FLOW    /* control flow of TensorFlow 1, which says itself what it needs (frames.c) */
} TfHow;

typedef struct {
    const char *name, *inputs, *outputs, *attrs; /* "values[N] axis", "N:int T:type" */
} TfSchema;
typedef struct {
    const char     *name;
    TfHow           how;
    const char     *relay;
    TfConvert      *convert;
    const TfSchema *schema;
} TfRow;

extern const TfRow    tf_rows[];
extern const uint32_t tf_nrows;

const TfRow *tf_row(const char *op); /* NULL: there is none */
/* An attribute as the schema has it: "padding:string=SAME"; false: there is none of that name. */
typedef struct {
    Bytes name, kind, fallback; /* fallback.at NULL: it has to be given */
} TfAttrSpec;
bool tf_next_attr(const char **at, TfAttrSpec *out);
bool tf_attr_spec(const TfSchema *s, const char *name, TfAttrSpec *out);
/* Operands: "values[N]"; their number is that of an attribute's, or of the types that it lists. */
typedef struct {
    Bytes name, count; /* count.at NULL: one */
} TfArgSpec;
bool tf_next_arg(const char **at, TfArgSpec *out);

/* ---- graph.c: nodes and edges ----------------------------------------------------------------------- */

typedef struct {
    uint32_t node, port; /* node TF_ARGUMENT: argument `port` of the function */
} TfPort;
enum { TF_ARGUMENT = UINT32_MAX, TF_NOWHERE = UINT32_MAX - 1 };

typedef struct {
    const TfNodeDef *def;
    const char      *name, *op; /* interned */
    const TfRow     *row;       /* NULL: there is none */
    uint32_t         nin, nctrl, nout;
    TfPort          *in;    /* node TF_NOWHERE: `missing` names it */
    uint32_t        *ctrl;  /* nodes that come before it */
    const char     **edges; /* in, as the file has them */
} TfOp;
typedef struct TfGraph {
    const char    *name; /* NULL: the main graph */
    uint32_t       n, nargs, nrets;
    TfOp          *op;
    Map           *index; /* name to number, plus one */
    const char   **args;  /* names */
    const int64_t *arg_types;
    TfPort        *rets;
} TfGraph;

typedef struct TfModel TfModel;

/* The function of that name, read when it is asked for first; NULL without an error: none. */
const TfGraph *tf_function(TfModel *m, const char *name);
bool           tf_read_graph(TfModel *m, const PbMsgs *nodes, TfGraph *out);
/* "x:1" of the main graph; false: there is no such node. */
bool tf_find_port(const TfModel *m, const char *text, TfPort *out);
/* Bytes of the file as text, interned. */
const char *tf_string(Ctx *c, Bytes text);
/* The attribute of a node, NULL: it is not given. */
const TfValueDef *tf_attr(const TfOp *p, const char *name);
/* How many operands such a spec means. */
uint32_t tf_arg_count(const TfModel *m, const TfOp *p, const TfArgSpec *s);

/* ---- model.c ---------------------------------------------------------------------------------------- */

typedef struct {
    const char    *name; /* of the model's input or output */
    TfPort         port;
    int64_t        dtype;
    const TfShape *shape; /* NULL: not said */
} TfPortal;

struct TfModel {
    Ctx             *c;
    const char      *path;
    const TfLibrary *library; /* may be NULL */
    Map             *functions;
    TfGraph          graph;
    VEC(TfPortal) in, out;
    const char        *restore;   /* the node that gives variables their values, or NULL */
    const char        *signature; /* its name; NULL: a frozen graph */
    uint32_t           nsignatures;
    const char *const *signatures; /* all that can be compiled, by name */
    bool               saved;      /* a SavedModel: there may be a checkpoint */
};

/* `signature` NULL: serving_default, or the only one.  False with errors. */
bool tf_read_model(Ctx *c, const char *path, Bytes file, const char *signature, TfModel *out);

/* ---- walk.c ----------------------------------------------------------------------------------------- */

/* order: it is only needed before another node, not for its value. */
typedef void TfVisit(void *user, const TfGraph *g, const TfOp *p, bool order);
/* All nodes that the outputs need, those of functions, too. */
void tf_walk(TfModel *m, TfVisit *fn, void *user);

/* ---- bundle.c, variable.c ------------------------------------------------------------------------- */

typedef struct TfBundle TfBundle;

/* The checkpoint beside a SavedModel's file; NULL with an error. */
TfBundle *tf_bundle_open(Ctx *c, const char *path, ImportFiles *files);
/* A tensor of it, a view; NULL with an error. */
const Expr *tf_bundle_tensor(TfBundle *t, const char *key, const char *name, Loc loc);

typedef struct {
    const char *name, *key; /* key: of the checkpoint, NULL: it is not in there */
    const Expr *value;      /* NULL: not read yet */
} TfVariable;

/* ---- import.c ---------------------------------------------------------------------------------------- */

#define TF_MAX_NESTING 32
#define TF_MAX_NODES 1000000 /* converted, as functions are called again */

typedef enum { TF_NONE, TF_TENSOR, TF_VARIABLE_OF, TF_TABLE_OF, TF_LIST, TF_COMPLEX } TfKind;

/* What a node gives. */
typedef struct {
    TfKind      kind;
    const Expr *e; /* of a list its elements, one on top of the other; NULL: of no shape yet */
    uint32_t    variable; /* its number; of a table that of its node */
    const Idx  *room;     /* of a list: how many elements */
    DType       dtype;    /* .. their type */
    const Expr *im;       /* of complex numbers the imaginary parts; e: the real ones */
} TfValue;

typedef struct TfImport {
    Ctx         *c;
    const char  *path;
    TfModel     *model;
    ImportFiles *files;
    uint32_t     ordinal; /* of the main graph's node */
    Shapes       shapes;
    Map         *sizes;     /* values computed from symbolic dimensions alone */
    GlobalDefs   functions; /* loops; those within others first */
    uint32_t     loops, converted;
    VEC(TfVariable) variables;
    Map      *variable_index; /* name to number, plus one */
    bool      restored;       /* their keys are known */
    TfBundle *bundle;
    VEC(const Expr *) binds; /* bind_dims that are to stand around what is made */
} TfImport;

/* A graph in which some values are known. */
typedef struct TfScope {
    TfImport       *im;
    const TfGraph  *g;
    TfValue       **values; /* by node, NULL: not computed */
    const TfValue  *args;
    uint32_t        depth;
    bool            looped; /* within a branch or loop */
    struct TfScope *outer;  /* of a frame: where it is entered */
    const char     *frame;
    Map            *frames; /* name of a frame to what its exits give */
    bool           *open;   /* nodes that wait for others */
} TfScope;

struct TfNode {
    Build          b;
    TfImport      *im;
    TfScope       *scope;
    const TfOp    *op;
    const TfRow   *row;
    uint32_t       at, nin, nout;
    const Expr   **in;    /* tensors, NULL: it is none */
    const TfValue *given; /* all of them */
    TfValue       *out;
    bool           moved; /* images of four dimensions are NCHW */
};

TfScope tf_scope(TfImport *im, const TfGraph *g, uint32_t depth);
/* The value of an output; NULL: it is not computed, or does not exist. */
const TfValue *tf_value_at(const TfScope *s, TfPort p);
/* Computes that output, and what it needs; NULL with an error. */
const TfValue *tf_evaluate(TfScope *s, TfPort p, Loc loc);
/* The function's results, for these arguments. */
bool        tf_call_function(TfNode *n, const char *name, uint32_t nargs, const TfValue *args,
                             uint32_t nrets, TfValue *out);
const char *tf_node_name(TfImport *im, const TfGraph *g, const TfOp *p);
/* false with an error: the value is no tensor. */
bool    tf_is_tensor(TfNode *n, const TfValue *v, const char *what);
TfValue tf_tensor_value(const Expr *e);

/* ---- survey.c, variable.c, constant.c --------------------------------------------------------------- */

/* False with errors, all at once, if some node that is needed cannot be what it says. */
bool        tf_survey(TfImport *im);
const Expr *tf_constant(TfImport *im, const TfTensor *t, const char *name, Loc loc);
/* The value of a variable; NULL with an error. */
const Expr *tf_variable(TfNode *n, uint32_t number);

/* ---- frames.c, loop.c -------------------------------------------------------------------------------- */

/* What a node of control flow needs now; false with an error.  None: it can be converted. */
typedef VEC(TfPort) TfPorts;
bool tf_flow_needs(TfNode *n, TfPorts *out);

/* A loop over values: round and condition from states. */
typedef struct {
    uint32_t       n;
    const TfValue *first;
    const bool    *fixed; /* a round hands it on as it came, and need not say so in `next` */
    void          *user;
    bool (*go)(TfNode *n, void *user, const TfValue *state, const Expr **out);
    bool (*round)(TfNode *n, void *user, const TfValue *state, TfValue *next);
} TfLoop;
bool tf_loop(TfNode *n, const TfLoop *l, TfValue *out);
/* One bool, folded if it is known; NULL with an error. */
const Expr *tf_condition(TfNode *n, const Expr *e);
/* yes where the condition holds, else no. */
bool tf_choose(TfNode *n, const Expr *cond, uint32_t count, const TfValue *yes, const TfValue *no,
               TfValue *out);
/* The states after `count` rounds, which see nothing but their states and constants. */
bool tf_rounds(TfNode *n, const Idx *count, uint32_t nstates, const Expr *const *first,
               BuildRound *fn, void *user, const Expr **out);

/* ---- complex.c -------------------------------------------------------------------------------------- */

bool tf_complex_const(TfNode *n, const TfTensor *t);
bool tf_has_complex(const TfNode *n); /* and its converter takes tensors */
/* What converts real tensors, for real and for imaginary parts. */
bool tf_parts(TfNode *n, TfConvert *convert);

/* ---- node.c ---------------------------------------------------------------------------------------- */

#define tf_error(n, ...) build_error(&(n)->b, __VA_ARGS__)

/* Attributes, as the node or else the schema has them. */
bool        tf_has_attr(const TfNode *n, const char *name);
int64_t     tf_int(const TfNode *n, const char *name); /* and bools, and numbers of types */
double      tf_float(const TfNode *n, const char *name);
const char *tf_text(const TfNode *n, const char *name);
Ints        tf_int_list(const TfNode *n, const char *name);         /* .. */
bool        tf_type(const TfNode *n, const char *name, DType *out); /* false with an error */
/* What row->how says of the values, and their results. */
bool tf_prepare(TfNode *n);
bool tf_finish(TfNode *n);
bool tf_done(TfNode *n, const Expr *y); /* is the first output */
bool tf_put(TfNode *n, uint32_t i, const Expr *y);
/* Input i NCHW, as data_format says it lies; of four dimensions, or an error. */
const Expr *tf_image(TfNode *n, uint32_t i);
/* The first output, which is NCHW, as data_format has it. */
bool tf_image_done(TfNode *n, const Expr *y);
/* data_format has channels before rows; false with an error in *ok: it is neither. */
bool tf_channels_first(TfNode *n, bool *ok);
/* e, computed from input i, as a constant of its name where it is known and small. */
const Expr *tf_folded(const TfNode *n, uint32_t i, const Expr *e);
bool        tf_rank(const TfNode *n, uint32_t i, uint32_t least, uint32_t most);
/* An axis of a tensor of that rank, which may be negative, in its dimensions as they lie now. */
bool tf_axis(const TfNode *n, int64_t axis, uint32_t rank, uint32_t *out);
/* The numbers of an input that has to be known; as forms over dimensions. */
bool tf_ints(const TfNode *n, uint32_t i, Ints *out);
bool tf_number(const TfNode *n, uint32_t i, int64_t *out);
bool tf_forms(const TfNode *n, uint32_t i, Dims *out);
/* The dimension of output i that holds this number, `total` of shape [1], from 0 to `most`. */
const Idx *tf_bound_dim(TfNode *n, uint32_t i, const Expr *total, const Idx *most);

/* The converters of ops.def, and that of nodes whose operator is a function's name. */
bool tf_call_by_name(TfNode *n);
#define none NULL
#define TF(name, how, relay, convert) TfConvert convert;
#include "frontends/tensorflow/ops.def"
#undef TF
#undef none

#endif
