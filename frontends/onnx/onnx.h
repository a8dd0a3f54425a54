/* ONNX: ModelProto to a Relay module.
 *
 *   proto.c     the messages of onnx.proto as field tables
 *   survey.c    all nodes before anything is built: what is not supported, what should not be there
 *   import.c    model, graphs, inputs and outputs; one node after another
 *   values.c    inputs and outputs, of which sequences and optional values are several tensors
 *   declared.c  types that the model declares, against those that its values have
 *   tensor.c    TensorProto: raw data, typed fields
 *   external.c  .. and data in files beside the model
 *   describe.c  inputs, outputs and operators as the file has them
 *   node.c      what converters ask of a node: attributes, constant inputs
 *   ops.def     operator, domain, versions, Relay operator, converter
 *   schema.def  operator, domain, version, what a node of it may have
 *   math.c nn.c einsum.c pool.c norm.c reduce.c make.c shape.c slice.c pad.c gather.c
 *   resize.c resize_matrix.c resize_run.c recurrent.c recurrent_loop.c attention.c state.c loss.c
 *   grid.c patch.c signal.c fourier.c unique.c quant.c contrib.c nbits.c nhwc.c nchwc.c
 *   sequence.c optional.c control.c det.c trees.c learned.c svm.c labels.c random.c
 * fused_attention.c group_attention.c training.c gradient.c converters by family string.c strings
 * as bytes, and operators that only move them    strings.def  who takes them string_ops.c tfidf.c
 * operators that look at them      regex.h  regular expressions packed.c    values of different
 * sizes as tensors of one type: branches, states of loops ranks.c     values of which a run decides
 * how many dimensions they have list.c      sequences whose length a run decides loop.c      loops
 * as functions of the module
 *
 * A converter reads a Node, whose inputs are Relay expressions, and stores Relay expressions in
 * n->out.  It returns false after recording an error.  Shape arithmetic is folded as it is met, so
 * an operand that must be known (axes, a new shape) is a constant by then, or dim_values of forms
 * over symbolic dimensions.  Where a converter asks for a number (build_dim) and there is none,
 * that is an error.
 */
#ifndef TVMCC_FRONTENDS_ONNX_H
#define TVMCC_FRONTENDS_ONNX_H

#include "formats/formats.h"
#include "frontends/calls.h"

/* ---- proto.c: the messages, with the fields that are used ----------------------------------------- */

typedef struct {
    int64_t     value;
    bool        has_value;
    const char *param;
} OnnxDim;
typedef struct {
    PbMsgs dims; /* OnnxDim */
} OnnxShape;
typedef struct {
    int64_t    elem_type;
    OnnxShape *shape; /* NULL: unknown rank */
} OnnxTensorType;
typedef struct {
    int64_t unused;
} OnnxOther;
typedef struct OnnxType OnnxType;
typedef struct {
    OnnxType *type; /* NULL: not said */
} OnnxOfType;
struct OnnxType {
    OnnxTensorType *tensor;
    OnnxOfType     *sequence, *optional;
    OnnxOther      *map, *sparse;
};
typedef struct {
    const char *name;
    OnnxType   *type;
} OnnxValue;
typedef struct OnnxGraph OnnxGraph;
typedef struct {
    const char *name;
    float       f;
    int64_t     i;
    Bytes       s;
    OnnxTensor *t;
    OnnxGraph  *g;
    PbPacked    floats;
    PbInts      ints;
    PbBlobs     strings;
    int64_t     type;
    const char *ref; /* of a function's node: the function's attribute */
} OnnxAttr;
typedef enum {
    ONNX_ATTR_FLOAT = 1,
    ONNX_ATTR_INT,
    ONNX_ATTR_STRING,
    ONNX_ATTR_TENSOR,
    ONNX_ATTR_GRAPH,
    ONNX_ATTR_FLOATS,
    ONNX_ATTR_INTS,
    ONNX_ATTR_STRINGS,
    ONNX_ATTR_TENSORS,
    ONNX_ATTR_GRAPHS,
    ONNX_ATTR_SPARSE_TENSOR,
    ONNX_ATTR_SPARSE_TENSORS,
    ONNX_ATTR_TYPE,
    ONNX_ATTR_TYPES
} OnnxAttrType; /* of onnx.proto */
typedef struct {
    PbTexts     input, output;
    const char *name, *op_type, *domain;
    PbMsgs      attribute; /* OnnxAttr */
} OnnxNode;
struct OnnxGraph {
    PbMsgs      node; /* OnnxNode */
    const char *name;
    PbMsgs      initializer; /* OnnxTensor */
    PbMsgs      sparse;
    PbMsgs      input, output, value_info; /* OnnxValue */
};
typedef struct {
    const char *domain;
    int64_t     version;
} OnnxOpset;
typedef struct {
    const char *name, *domain;
    PbTexts     input, output, attribute;
    PbMsgs      node, opset_import, attribute_proto, value_info;
} OnnxFunction;
typedef struct {
    int64_t    ir_version;
    PbMsgs     opset_import; /* OnnxOpset */
    OnnxGraph *graph;
    PbMsgs     functions; /* OnnxFunction */
} OnnxModel;

extern const PbMessage onnx_model;

/* The element type of that number; false: none of ours. */
bool onnx_dtype(int64_t type, DType *out);

/* ---- tensor.c ---------------------------------------------------------------------------------- */

typedef struct Import Import;

/* A constant: a view of the model file where it is aligned.  NULL with an error. */
const Expr *onnx_constant(Import *im, const OnnxTensor *t, Loc loc);

/* ---- external.c -------------------------------------------------------------------------------- */

/* The data of tensor `name` in another file, a view of it; where the model does not say how many
 * bytes, `need` of them. */
bool onnx_external(Import *im, const OnnxTensor *t, const char *name, Loc loc, uint64_t need,
                   Bytes *out);

/* ---- import.c ------------------------------------------------------------------------------------ */

#define ONNX_MAX_NESTING 24    /* of subgraphs and functions */
#define ONNX_MAX_NODES 1000000 /* made by unrolling loops and inlining functions */

struct Import {
    Ctx             *c;
    const char      *path;
    const OnnxModel *model;
    uint32_t         ordinal;      /* of the top-level node being converted */
    bool             surplus;      /* some node has more inputs than its operator takes */
    bool             reshaped;     /* an input has another size than the model says */
    Map             *contradicted; /* declared types of which that was said */
    Map             *sizes;        /* values computed from symbolic dimensions alone */
    Map             *optionals;    /* values that may not be there: OnnxOptional * */
    Map             *lists;        /* sequences of lengths that a run decides: OnnxList * */
    Map             *ranks;        /* values whose rank a run decides */
    Map             *strings;      /* tensors of strings: anything but NULL */
    uint32_t         converted;    /* nodes so far, repeated ones too */
    VEC(GlobalDef) functions;      /* loops; those within others first */
    uint32_t loops;                /* .. and those that were given up */
    Shapes  *shapes;
    Map     *dim_names;      /* of dimensions that there are */
    Map     *decided;        /* their atoms, where values of the run decide them */
    Map     *guessed;        /* places in tensors, of which that was said already */
    Map     *hashes;         /* of expr_hash */
    uint32_t vars;           /* whose hashes are their own */
    Map     *folds;          /* what was folded, by its hash: import.c */
    Map     *cells;          /* that were bound, by their hash: bound.c */
    VEC(const Expr *) binds; /* bind_dims that are to stand around what is made */
    ImportFiles *files;
    Map         *mapped; /* files beside the model that have been read: Bytes * by path */
};

/* Names of a graph: values by name; outer graphs are seen too. */
typedef struct OnnxScope {
    Import                 *im;
    const struct OnnxScope *up;
    Map                    *values;   /* interned name -> const Expr * */
    Map                    *declared; /* interned name -> OnnxTensorType * */
    uint32_t                depth;
    const PbMsgs           *nodes;    /* of the graph or function */
    const OnnxFunction     *body;     /* the function being inlined, or NULL */
    const struct Node      *function; /* its call: gives ref_attr_name its value */
} OnnxScope;

typedef struct Node {
    Build            b; /* context and place: &n->b for the builders */
    Import          *im;
    const OnnxScope *scope;
    const OnnxNode  *p;
    int64_t          opset; /* version of its domain */
    const char      *relay; /* the row's Relay operator, NULL: none */
    uint32_t         nin, nout;
    const Expr     **in; /* NULL: left out */
    const Expr     **out;
    bool            *read;   /* of each of its attributes: by the converter */
    uint32_t         errors; /* there were, before it */
} Node;

typedef bool OnnxConvert(Node *n);

/* The model in the file; true: it has a graph. */
bool onnx_read(Ctx *c, const char *path, Bytes file, OnnxModel *out);

/* Convert a subgraph in a new scope whose first names are `inputs`; its outputs to out[noutputs].
 */
bool onnx_subgraph(Node *n, const OnnxGraph *g, uint32_t ninputs, const Expr *const *inputs,
                   const Expr **out);

/* Convert nodes of the graph of n in a new scope in which these names have other values; what is
 * then computed for `name` to *out. */
bool onnx_again(Node *n, const PbMsgs *nodes, uint32_t count, const char *const *names,
                const Expr *const *values, const char *name, const Expr **out);

/* ---- optional.c ------------------------------------------------------------------------------------ */

/* A value that a run may not have.  Those that are certainly there are themselves. */
typedef struct {
    const Expr *given; /* is it there?  Tensor[(), bool] */
    const Expr *value; /* anything where it is not; NULL: nothing says what it would be */
} OnnxOptional;

const Expr         *onnx_optional_new(Import *im, Loc loc, OnnxOptional o);
const OnnxOptional *onnx_optional(const Import *im, const Expr *e); /* NULL: it is there */

/* ---- sequence.c ----------------------------------------------------------------------------------- */

/* A sequence is a tuple of as many elements, or a list. */
bool        is_sequence(const Import *im, const Expr *e);
const Expr *sequence_element(const Build *b, const Expr *sequence, uint32_t i);

/* ---- packed.c ------------------------------------------------------------------------------------- */

typedef enum { PACK_TENSOR, PACK_SEQUENCE, PACK_LIST, PACK_OPTIONAL } PackKind;

/* How a value is laid out as tensors that have one type wherever it comes from. */
typedef struct OnnxPack OnnxPack;
struct OnnxPack {
    PackKind   kind;
    bool       string; /* of a tensor: it is one of strings */
    DType      dtype;
    uint32_t   n;               /* dimensions of a tensor, elements of a sequence */
    const Idx *room[MAX_RANK];  /* numbers where open */
    bool       open[MAX_RANK];  /* each value has a size of its own .. */
    int64_t    least[MAX_RANK]; /* .. from this one on */
    int64_t    grows[MAX_RANK]; /* it has room for rounds that add so many cells each; 0: not */
    OnnxPack **at;              /* elements of a sequence */
    int64_t    most;            /* elements of a list */
    OnnxPack  *of;              /* an element of a list; an optional value, or NULL */
};

/* A sequence whose length, or order, a run decides (list.c). */
typedef struct {
    OnnxPack   *element; /* PACK_TENSOR */
    int64_t     most;
    bool        fixed; /* a loop's state, which has room for all that its rounds may add */
    const Expr *count; /* Tensor[(), i64] */
    const Expr *cells; /* [most, room ..] */
    const Expr *sizes; /* [most, rank] of i64; NULL: all have those of the room */
} OnnxList;

typedef VEC(const Expr *) OnnxParts;

/* The dimensions that e, if it is bind_dims, binds, by name; those bound since there were `from`.
 */
void onnx_note_bound(Map *names, const Expr *e);
Map *onnx_bound_since(Import *im, uint32_t from);
/* Is one of these dimensions mentioned?  A DimFn for form_mentions and the like. */
typedef struct {
    const Map *names;
    bool       found;
} OnnxMention;
void onnx_note_mention(void *mention, const Atom *dim);
/* Of one value; dimensions of `inner` are others elsewhere, NULL: all that are no numbers. */
OnnxPack *pack_of(Import *im, const Expr *e, const Map *inner);
OnnxPack *pack_join(Ctx *c, OnnxPack *a, OnnxPack *b); /* NULL: nothing holds both */
bool      pack_same(const OnnxPack *a, const OnnxPack *b);
/* The tensors of a value, which the pack holds, and a value of tensors, from *parts on; dimensions
 * of output `out` are bound for it. */
void pack_value(Import *im, const Build *b, const OnnxPack *p, const Expr *e, OnnxParts *out);
const Expr *pack_back(Node *n, const OnnxPack *p, const Expr *const **parts, uint32_t out);
/* Of tensors: has it sizes of its own?  those; x with the room of all; and back. */
bool        pack_open(const OnnxPack *p);
const Expr *pack_sizes(const Build *b, const Expr *x);
const Expr *pack_padded(const Build *b, const OnnxPack *p, const Expr *x);
/* Its dimensions are those of x from `axis` on. */
const Expr *pack_cut(Node *n, const OnnxPack *p, const Expr *x, uint32_t axis, const Expr *sizes,
                     uint32_t out);

/* ---- ranks.c -------------------------------------------------------------------------------------- */

/* Tensors of one cell that differ in their rank get the larger one; false: nothing was done. */
bool onnx_join_ranks(Node *n, const Expr **x, const Expr **y);
void onnx_note_ranks(Import *im, const Expr *e);
bool onnx_has_ranks(const Import *im, const Expr *e);
/* May the node, which becomes that operator, have the inputs it has?  *noted: its outputs are such
 * values, too.  False with an error. */
bool node_ranks(Node *n, const char *relay, bool *noted);

/* ---- list.c --------------------------------------------------------------------------------------- */

const Expr     *onnx_list_new(Import *im, Loc loc, OnnxList l);
const OnnxList *onnx_list(const Import *im, const Expr *e); /* NULL: e is none */
void            list_fix(const Import *im, const Expr *e);
OnnxList        list_of_elements(const Build *b, OnnxPack *of, int64_t most, uint32_t count,
                                 const Expr *const *at);
/* A sequence or list as a list of that room. */
OnnxList list_fitted(Import *im, const Build *b, OnnxPack *of, int64_t most, const Expr *e);
bool     list_of(Node *n, uint32_t i, OnnxList *out); /* input i */
bool     list_at(Node *n, const OnnxList *l);
bool     list_insert(Node *n, const OnnxList *l);
bool     list_erase(Node *n, const OnnxList *l);
bool     list_concat(Node *n, const OnnxList *l, uint32_t axis, bool fresh);
/* The number of its elements as a dimension; it has no more than there is room for, or the run
 * ends.
 */
bool list_keeps(Node *n, const OnnxList *l);
bool list_count(Node *n, const OnnxList *l, uint32_t out, const Idx **count);

/* ---- string.c: [S] strings are [S, room] bytes, with zeros behind each ----------------------------- */

/* Notes that these bytes are strings, and gives them back. */
const Expr *onnx_string(Import *im, const Expr *cells);
bool        onnx_is_string(const Import *im, const Expr *e);
/* Its type, of strings without the room. */
const Type *onnx_value_type(Import *im, const Expr *e);
/* Strings whose bytes a caller gives: what is behind the first zero byte counts as zero. */
const Expr *onnx_string_input(Import *im, const Expr *x);
const Expr *onnx_string_constant(Import *im, const OnnxTensor *t, Loc loc);
const Expr *onnx_strings_of(Node *n, uint32_t count, const Bytes *strings); /* [count] */
/* Does it take strings, and if so, its converter for them; false with an error. */
bool onnx_takes_strings(const Node *n);
struct OnnxRow;
bool onnx_convert_strings(Node *n, const struct OnnxRow *row);

/* [S, 1] of i64 */
const Expr *string_length(const Build *b, const Expr *x);
/* All in one dimension, [N, room]; these with a zero byte behind each; of each of those K parts of
 * `length` bytes from `from` on, [N, K, 1] of i64. */
const Expr *string_rows(const Build *b, const Expr *x);
const Expr *string_ended(const Build *b, const Expr *rows);
const Expr *string_parts(const Build *b, const Expr *rows, const Expr *from, const Expr *length);
/* An automaton over bytes goes along each row: its last states [N], or all [N, room], as i32. */
typedef struct {
    int32_t        states, classes, start;
    const uint8_t *class_of; /* [256] */
    const int32_t *next;     /* [states * classes] */
} StringAutomaton;
const Expr *string_walk(Node *n, const Expr *rows, const StringAutomaton *a, bool all);

/* string_cast.c: input 0, strings, as numbers of t; integers as strings. */
bool onnx_cast_string(Node *n, DType t);
bool onnx_cast_to_string(Node *n);

/* Of strings.def; `as_numbers` is the operator's own converter. */
bool convert_strings_moved(Node *n, OnnxConvert *as_numbers);
bool convert_strings_reshaped(Node *n, OnnxConvert *as_numbers);
bool convert_strings_counted(Node *n, OnnxConvert *as_numbers);
bool convert_strings_equal(Node *n, OnnxConvert *as_numbers);

/* ---- values.c ------------------------------------------------------------------------------------- */

/* The inputs of the model's graph, in its scope, as parameters of main; what is missing is said at
 * once. */
bool onnx_inputs(Import *im, OnnxScope *s, const OnnxGraph *g, const ImportOptions *o, Loc loc,
                 NamedValues *params);
/* The tensors of an output. */
bool onnx_result(Import *im, const OnnxScope *s, NamedValues *r, Loc loc, const OnnxValue *v,
                 const Expr *value);

bool        onnx_scope_put(OnnxScope *s, const char *name, const Expr *value);
const Expr *onnx_scope_get(const OnnxScope *s, const char *name);

/* ---- loop.c --------------------------------------------------------------------------------------- */

/* A Loop or a Scan.  The body's graph takes (Loop: the number of the round, the condition,) states
 * and (Scan:) slices, and gives (Loop: a condition,) states and pieces of the scan outputs. */
typedef struct {
    const OnnxGraph   *g;
    bool               scan;
    uint32_t           states, slices, pieces;
    const Expr *const *first; /* states before the first round */
    const Expr        *go;    /* does the first round run?  NULL: yes */
    const Expr        *limit; /* of the number of rounds, a scalar i64; NULL: none */
    const Idx         *trips; /* the number of rounds; NULL: a run decides it */
    const Expr *const *x;     /* Scan: what the slices are of */
    const uint32_t    *x_axis;
    const bool        *x_reverse;
    const int64_t     *piece_axis; /* Scan; may be negative */
    const bool        *piece_reverse;
} OnnxLoop;

/* The number of rounds of a Loop, at least one, whose condition counts; in, out: what its body
 * takes and gives. NULL: a run decides it.  (count.c) */
const Idx *onnx_count(Node *n, const OnnxLoop *l, const Expr *const *in, const Expr *const *out);
/* A function of the module, called once, whose rounds are those of the loop; its results to out. */
bool onnx_loop(Node *n, const OnnxLoop *l, const Expr **out);
/* What `fn` makes of element i of each of x, along their first dimension, for all i below count;
 * its nout results put together likewise. */
/* Rounds below count: of the number of a round, i, a scalar i64, and the states `fn` makes the next
 * states and pieces, which are put together along a new first dimension.  Both to out. */
typedef bool OnnxRound(Node *n, void *user, const Expr *i, const Expr *const *state,
                       const Expr **next, const Expr **piece);
bool         onnx_rounds(Node *n, const Idx *count, uint32_t states, const Expr *const *first,
                         uint32_t pieces, OnnxRound *fn, void *user, const Expr **out);
typedef bool OnnxEach(Node *n, void *user, const Expr *const *in, const Expr **out);
bool         onnx_each(Node *n, const Idx *count, uint32_t nin, const Expr *const *x, OnnxEach *fn,
                       void *user, uint32_t nout, const Expr **out);

/* ---- survey.c ------------------------------------------------------------------------------------ */

/* False with errors, all at once, if some node cannot be what it says. */
bool onnx_survey(Import *im);

const char *onnx_text(const char *s);        /* "" for NULL */
const char *onnx_domain(const char *domain); /* "ai.onnx" is another name of "" */
const char *onnx_op(const OnnxNode *p);
const char *onnx_node_name(const OnnxNode *p); /* or that of its first output */
/* The model-local function of that name, or NULL. */
const OnnxFunction *onnx_function_of(const Import *im, const char *domain, const char *op);
/* The version of a domain in the function `body`, NULL: in the model's graphs; 0: it is not said.
 */
int64_t onnx_opset_of(const Import *im, const OnnxFunction *body, const char *domain);

/* ---- declared.c ---------------------------------------------------------------------------------- */

/* The declared types of tensors, by interned name; `outputs` may be NULL. */
Map *onnx_declared(Import *im, const PbMsgs *values, const PbMsgs *outputs);
/* Warn, once, if `what`, whose type is `is`, contradicts `t` (NULL: nothing is declared). */
void onnx_check_declared(Import *im, Loc loc, const char *what, const OnnxTensorType *t,
                         const Type *is);

typedef struct {
    const char *name, *domain;
    int64_t     since;
    const char *inputs, *outputs, *attributes; /* lists of words, as schema.def says */
} OnnxSchema;

/* ---- node.c -------------------------------------------------------------------------------------- */

const OnnxAttr *node_attr(const Node *n, const char *name); /* NULL: not there */
int64_t         node_int(const Node *n, const char *name, int64_t fallback);
double          node_float(const Node *n, const char *name, double fallback);
const char     *node_str(const Node *n, const char *name, const char *fallback);
/* One of these words, the first unless given; NULL ends them.  False: an error says it is none. */
bool node_choice(Node *n, const char *name, const char *const *allowed, const char **out);
bool node_ints(const Node *n, const char *name, Ints *out); /* false: not there */
/* Numbers of a list of floats, of a tensor, or of the tensor NAME_as_tensor; none if there is none.
 * False with an error. */
bool             node_numbers(Node *n, const char *name, uint32_t *count, const double **out);
const OnnxGraph *node_graph(const Node *n, const char *name);
/* This attribute changes nothing here, whatever it says. */
void node_ignore(const Node *n, const char *name);
/* Attributes that the converter did not read have to be what they are by default. */
bool node_check_read(const Node *n, const OnnxSchema *schema);

bool node_has(const Node *n, uint32_t i); /* input i is given */
/* Inputs that have to be constants: false with an error that says which is not. */
bool node_const_ints(Node *n, uint32_t i, Ints *out);
bool node_const_int(Node *n, uint32_t i, int64_t *out);
/* Sizes or positions: numbers, or forms over symbolic dimensions. */
bool node_forms(Node *n, uint32_t i, Dims *out);
/* A list of dimensions: none below 0, not too large together. */
bool node_shape(Node *n, uint32_t i, Dims *out);
bool node_const_shape(Node *n, uint32_t i, Ints *out);
bool node_const_float(Node *n, uint32_t i, double *out);
bool node_need_rank(Node *n, uint32_t i, uint32_t lo, uint32_t hi); /* is a tensor of such a rank */
/* An axis in -rank .. rank-1 as 0 .. rank-1; false with an error. */
bool node_axis(Node *n, int64_t axis, uint32_t rank, uint32_t *out);
/* The same for a list, which may not repeat an axis. */
bool node_axes(Node *n, Ints axes, uint32_t rank, int64_t *out);
/* Axes from the attribute or, from opset `since`, input i; false: not given at all (no error) or an
 * error (then *bad). */
bool  node_axes_arg(Node *n, uint32_t i, Ints *out, bool *bad);
void *node_error(const Node *n, DiagId id, const char *fmt, ...) PRINTF_LIKE(3, 4);
bool  node_done(Node *n, const Expr *result); /* n->out[0] = result; false if NULL */

/* ---- bound.c: sizes that values of the run decide ------------------------------------------------- */

bool node_known(const Node *n, uint32_t i); /* a constant, or computed from dimensions; left out */
bool node_constant(const Node *n, uint32_t i); /* a constant; left out */
/* Input i, one number or a list, as Tensor[(k), i64]; cell i of such a list, a form, a number as
 * Tensor[(1), i64], a form as Tensor[(1), f64]. */
const Expr *node_cells(Node *n, uint32_t i);
const Expr *cell_of(const Build *b, const Expr *cells, uint32_t i);
const Expr *cell_form(const Build *b, const Idx *x);
const Expr *cell_number(const Build *b, int64_t v);
const Expr *cell_f64(const Build *b, const Idx *x);
const Expr *cell_clamp(const Build *b, const Expr *x, const Expr *lo, const Expr *hi);
/* What a list says of a dimension: its cell j where the axes are known (`is` is NULL), else that of
 * the axis which is the dimension, or `otherwise`. */
const Expr *cell_said(const Build *b, const Expr *list, const Expr *is, uint32_t j,
                      const Expr *otherwise);

typedef struct {
    const Expr *cell; /* Tensor[(1), i64] */
    int64_t     lo;
    const Idx  *most; /* as can be proved, a form; NULL: nothing can */
    uint32_t    at;   /* a dimension of the output: `times` as much */
    int64_t     times;
} RunDim;

/* The most that x can be, as a number, or a form over dimensions of the caller where these have no
 * upper bound. */
const Idx *onnx_most(const Import *im, const Idx *x);

/* A variable that is a value of the model: a parameter of main. */
const Expr *onnx_var(Import *im, const char *name, const Type *type, Loc loc);

/* Dimension `at` of output `out` as the model declares it; -1: it does not. */
int64_t node_declared(const Node *n, uint32_t out, uint32_t at);
/* Such cells as dimensions; false with an error. */
bool onnx_bind(Node *n, uint32_t out, uint32_t count, const RunDim *d, const Idx **dims);
/* Input i, a list, as dimensions from `at` on of output 0, none below lo. */
bool node_sizes(Node *n, uint32_t i, int64_t lo, uint32_t at, Dims *out);
/* A cell that is 0, or the run ends; if it is known not to be, an error that says why. */
bool onnx_require(Node *n, const Expr *zero, const char *otherwise);
/* Where flags [n] are true, in order, [K] of i64; K is dimension `at` of output `out`.  *rank (may
 * be NULL): how many are true up to each cell, less 1. */
const Expr *onnx_positions(Node *n, const Expr *flags, uint32_t out, uint32_t at,
                           const Expr **rank);
/* x whose dimension has to be `want`, or the run ends, if values decide one of them. */
const Expr *onnx_agreed(Node *n, const Expr *x, uint32_t axis, const Idx *want);
/* What was bound since there were `from` of them, around e. */
const Expr *onnx_bound_around(Import *im, uint32_t from, const Expr *e);
/* Those, taken off the list; and around e, which is made later. */
typedef VEC(const Expr *) OnnxBinds;
OnnxBinds   onnx_binds_taken(Import *im, uint32_t from);
const Expr *onnx_binds_around(Import *im, const OnnxBinds *binds, const Expr *e);
void        onnx_note_dim(void *import, const Atom *dim); /* its name is taken */
/* Does a dimension of the form depend on what values of the run decide? */
bool onnx_decided(const Import *im, const Idx *x);
/* Operands of an operator that broadcasts: where one has a dimension that values decide and another
 * has a different one, neither of them 1, the run has to find them equal. */
bool node_agree(Node *n);
/* x in the dimensions `want`, where it has others that values decide; NULL: any. */
const Expr *node_sized(Node *n, const Expr *x, const Idx *const *want);
/* The same of operands that are put together along the axis. */
bool node_agree_beside(Node *n, uint32_t axis);

/* ---- at_run.c: where an operand that says a shape or positions is known only at run time ---------- */

bool slice_at_run(Node *n);
bool range_at_run(Node *n);
bool reshape_at_run(Node *n);
bool expand_at_run(Node *n);
bool split_at_run(Node *n, uint32_t axis);
/* Input 0 in parts along an axis, whose sizes are input 1. */
bool parts_at_run(Node *n, uint32_t axis, uint32_t parts, const Expr **out);
/* The cells of x in a shape of which only the run knows that it has as many. */
const Expr *in_shape_at_run(Node *n, const Expr *x, uint32_t k, const Idx *const *dims);
bool        tile_at_run(Node *n);

/* ---- axes.c: axes that values of the run say ------------------------------------------------------- */

/* Which of the axes is d, of a tensor of that rank?  Tensor[(k), bool] */
const Expr *axis_matches(const Build *b, const Expr *axes, uint32_t d, uint32_t rank);
/* Is d among them?  Tensor[(1), bool] */
const Expr *axis_flag(const Build *b, const Expr *axes, uint32_t d, uint32_t rank);
/* x with one cell more, v, behind dimension d if that may be empty; with one that changes nothing
 * behind each of its dimensions. */
const Expr *with_a_cell(const Build *b, const Expr *x, uint32_t d, double v);
const Expr *never_empty(const Build *b, const char *op, const Expr *x);
/* A reduction that leaves dimensions as they are, of equal cells, but never empty; what it should
 * have left of `like`; both. */
const Expr *reduce_along(Node *n, const Expr *axes, const char *op, const Expr *x);
const Expr *reduced_cells(Node *n, const Expr *axes, bool keepdims, const Expr *like,
                          const Expr *x);
const Expr *reduce_at_run(Node *n, const Expr *axes, bool keepdims, const char *op, const Expr *x);
bool        trilu_at_run(Node *n, bool upper);
bool        squeeze_at_run(Node *n);
bool        unsqueeze_at_run(Node *n);
double      reduced_none(const char *op, DType t); /* reduce.c: what nothing is reduced to */

/* ---- pad.c: borders of sizes that values of the run say -------------------------------------------- */

bool pad_at_run(Node *n, const char *mode);
bool center_crop_pad_at_run(Node *n);
/* Dimension d with as many zeros before and behind it; below 0: so many cells less. */
const Expr *padded_at_run(Node *n, const Expr *x, uint32_t d, const Expr *begin, const Expr *end);

/* ---- converters ------------------------------------------------------------------------------------ */

typedef struct OnnxRow {
    const char  *name, *domain;
    int64_t      lo, hi; /* versions of the domain, inclusive */
    const char  *relay;
    OnnxConvert *convert;
} OnnxRow;
/* The row of this version of the domain; NULL: there is none, *other is that of another version. */
const OnnxRow *onnx_row(const char *domain, const char *op, int64_t version, const OnnxRow **other);
extern const OnnxRow  onnx_rows[];
extern const uint32_t onnx_nrows;

const OnnxSchema       *onnx_schema(const char *domain, const char *op, int64_t version);
extern const OnnxSchema onnx_schemas[];
extern const uint32_t   onnx_nschemas;
uint32_t onnx_count_inputs(const OnnxSchema *schema); /* at most; UINT32_MAX: any number */

/* The next word of such a list; false: there is none. */
typedef struct {
    const char *name;
    const char *kind;     /* NULL: an operand */
    const char *fallback; /* an attribute's default; NULL: none */
    char        mark;     /* what stands behind it, or 0 */
} OnnxWord;
bool onnx_next_word(Arena *a, const char **at, OnnxWord *w);

int64_t onnx_newest(const char *domain); /* the newest version known; 0: no operator of it is */
#define ONNX_NEWEST_IR(version) enum { ONNX_IR_KNOWN = (version) };
#define ONNX_NEWEST(domain, version)
#define SCHEMA(name, domain, since, inputs, outputs, attributes)
#include "frontends/onnx/schema.def"
#undef SCHEMA
#undef ONNX_NEWEST
#undef ONNX_NEWEST_IR

#define none NULL
#define ONNX(name, domain, lo, hi, relay, convert) bool convert(Node *n);
#define LAST 0
#include "frontends/onnx/ops.def"
#undef LAST
#undef ONNX
#undef none

/* Shared between families. */
const Expr *onnx_matmul(Node *n, const Expr *a, const Expr *b);
const Expr *onnx_quantize(Node *n, const Expr *x, const Expr *scale, const Expr *zero, int64_t axis,
                          DType t);
const Expr *onnx_dequantize(Node *n, const Expr *x, const Expr *scale, const Expr *zero,
                            int64_t axis);
/* The window of a convolution or pooling, from strides, dilations, pads and auto_pad. */
typedef BuildWindow OnnxWindow;
bool onnx_window(Node *n, const Expr *x, const int64_t *kernel, uint32_t dims, OnnxWindow *w);
const Expr *onnx_bias(Node *n, const Expr *x,
                      const Expr *bias); /* [C] along dimension 1; or NULL */
/* [N, C, W] -> [N, C, 1, W], and back. */
const Expr *onnx_lift(const Build *b, const Expr *x);
const Expr *onnx_drop(const Build *b, const Expr *y);
/* With the node's window. */
typedef BuildPooling OnnxPooling;
const Expr          *onnx_pool(Node *n, const char *op, const Expr *x, OnnxPooling how);
OnnxPooling          onnx_pooling(Node *n); /* as the node says */
/* recurrent_loop.c: a recurrent layer as ONNX has it, layout 0; its results [T, D, N, H], [D, N,
 * H], and of an LSTM [D, N, H] */
typedef struct {
    const Expr *x, *w, *r, *bias, *h, *c; /* c: of an LSTM */
    const Expr *lens;                     /* of the sequences, [N] of i64; NULL: all are T */
    const Expr *peephole;                 /* [D, 3*H], or NULL */
    const Idx  *T, *N;
    int64_t     I, H, D, gates; /* 4 LSTM, 3 GRU, 1 RNN */
    bool        batch_first, input_forget, linear_before_reset;
    double      clip; /* 0: none */
    const char *direction, *f[6];
} OnnxRecurrent;
bool onnx_recurrent_loop(Node *n, const OnnxRecurrent *k, const Expr **out);
/* patch.c: where the cells of y, which is the largest of each window, are in x. */
const Expr *onnx_pool_indices(Node *n, const Expr *x, const Expr *y, OnnxWindow *w);
/* random.c: Dropout where the scalar `training` may be true */
bool onnx_dropout_training(Node *n, const Expr *training);
/* trees.c: what operators of ai.onnx.ml do with scores [N, K] */
extern const char *const onnx_post_transforms[]; /* NULL ends them */
const Expr              *onnx_post_transform(Node *n, const char *how, const Expr *x);
/* learned.c: rows x columns of f32, one dimension if columns is 0; the data [N, F] in f32, where
 * one dimension is one row */
const Expr *onnx_floats(const Build *b, int64_t rows, int64_t columns, const double *v);
const Expr *onnx_data_rows(Node *n);
/* labels.c: the labels of a classifier's classes, numbers in the attribute `numbers` or strings;
 * those of the classes `at` */
const Expr *onnx_class_labels(Node *n, const char *numbers, int64_t *count);
const Expr *onnx_labelled(Node *n, const Expr *labels, const Expr *at);
/* resize_matrix.c: by matrices of weights */
typedef struct {
    const char *method, *coordinates, *rounding; /* method: nearest, linear, cubic by its letter */
    double      cubic, extrapolation;
    bool        antialias, exclude_outside;
} OnnxResizeForm;
typedef struct {
    int64_t in, out;
    double  scale, roi[2]; /* roi of tf_crop_and_resize */
} OnnxResizeAxis;
const Expr *onnx_resize_by_weights(Node *n, const OnnxResizeForm *f, const Expr *x,
                                   const OnnxResizeAxis *axes);
/* resize_run.c: k axes by input `scales`, sizes or a crop that the run gives */
bool onnx_resize_at_run(Node *n, const OnnxResizeForm *f, uint32_t scales, const char *policy,
                        const int64_t *axes, uint32_t k);
/* Convolution of float operands with the node's attributes; bias may be NULL. */
const Expr *onnx_conv(Node *n, const Expr *x, const Expr *w, const Expr *bias);

/* state.c: a cache with `update` from cell start[n] of its axis on, [N] of integers; circular,
 * modulo the cache's length.  Cells of the update that have no place are left out. */
const Expr *onnx_written(const Build *b, const Expr *past, const Expr *update, uint32_t axis,
                         const Expr *start, bool circular);

/* unique.c: as its operator says, its groups sorted or in the order in which they begin */
bool onnx_unique(Node *n, bool sorted);
/* nhwc.c: `convert` of these inputs (the first has to be there), whose channels are last, as those
 * of its result are */
bool onnx_channels_last(Node *n, uint32_t count, const uint32_t *inputs, OnnxConvert *convert);

/* ---- attention.c ----------------------------------------------------------------------------------- */

/* [N, S, H*D] -> [N, H, S, D]; four dimensions stay.  And back. */
const Expr *onnx_split_heads(Node *n, const Expr *x, int64_t heads);
const Expr *onnx_join_heads(const Build *b, const Expr *x);
/* May query i of S, at position first + i, look at key j of T?  [.., S, T] of bool:
 *     -left <= j - (first + i) <= right,   where a bound below 0 is none (not both are).
 * `first`: i64 that broadcasts, NULL: 0. */
const Expr *onnx_visible(const Build *b, const Idx *S, const Idx *T, const Expr *first,
                         int64_t left, int64_t right);
/* Keys below a length, [.., T] of bool; lengths [N] as i64 [N, 1, 1, 1]. */
const Expr *onnx_below(const Build *b, const Idx *T, const Expr *length);
const Expr *onnx_lengths(const Build *b, const Expr *x, const Idx *N);
/* What is added to products: 0 where a key is seen, else `masked`. */
const Expr *onnx_added(const Build *b, DType t, const Expr *seen, double masked);
/* Pairs of the first `dim` cells (0: all) of x [N, S, H, D] turned by an angle: (c*x1 - s*x2,
 * s*x1 + c*x2).  `table` of cosines and sines; `at` their rows by position, NULL: the tables are
 * the angles. */
const Expr *onnx_rotate(Node *n, const Expr *x, const Expr *const table[2], const Expr *at,
                        bool interleaved, int64_t dim);

/* ---- fused_attention.c ----------------------------------------------------------------------------- */

/* Attention by queries, keys and values side by side, x [N, S, 3*H*D]; where the node has the rest.
 */
typedef struct {
    uint32_t mask, past, bias, past_length;
} OnnxAttentionInputs;
bool onnx_attention_of(Node *n, const Expr *x, const OnnxAttentionInputs *in);

#endif
