/* Core ML: a .mlmodel file or an .mlpackage folder to a Relay module.
 *
 *   proto.c       messages of the .proto files that carry a model
 *   package.c     the files: a package's manifest, weights beside the model
 *   feature.c     types and dimensions of inputs and results, as they are described
 *   import.c      bids; inputs, images, results; pipelines; one model after another
 *   network.c     neural networks: layers, blocks of layers
 *   program.c     ML programs: functions, blocks, operators
 *   record.c      the messages of layers, field by field
 *   weights.c     constants of layers           blob.c   constants of programs
 *   node.c        what converters ask of a layer or operator
 *   survey.c      all of them before anything is built: what is not supported or not known
 *   describe.c    inputs, outputs and operators as the file has them
 *   table.c       the tables: layers.def, programs.def, records.def, inputs.def
 *   flow.c        branches and loops of networks  control.c  those of programs, states
 *   boxes.c       boxes of which the best are kept: layer, operator, model
 *   activation.c math.c conv.c pool.c norm.c ..      converters by family
 *
 * Layers and operators share their converters: both are asked for operands and for settings by
 * name, `axis`, which is a field of a layer's message or a constant operand of an operator.
 *
 * Shapes.  Networks of the first versions compute with five dimensions, [sequence, batch, C, H, W],
 * most of which are 1.  Such a value is kept as [sequence * batch, C, H, W] and the length of its
 * sequences (`seq`), so that images meet Relay's operators without reshapes between them; cml_x
 * gives it with all dimensions.  Newer networks and programs have the dimensions that they say.
 *
 * A converter stores results with cml_done and its sisters; false after an error. */
#ifndef TVMCC_FRONTENDS_COREML_H
#define TVMCC_FRONTENDS_COREML_H

#include "formats/formats.h"
#include "frontends/calls.h"

#define CML_MAX_VERSION 10 /* of the specification */
#define CML_MAX_NESTING 24
#define CML_MAX_NODES 1000000 /* converted, as bodies are built again */

/* ---- proto.c: the messages, with the fields that are used ------------------------------------------ */

typedef struct {
    int64_t lo, hi; /* hi below 0: any */
} CmlRange;
typedef struct {
    PbInts shape;
} CmlShape;
typedef struct {
    PbMsgs list; /* CmlShape; of images CmlSize */
} CmlShapes;
typedef struct {
    PbMsgs list; /* CmlRange */
} CmlRanges;
typedef struct {
    int64_t width, height;
} CmlSize;
typedef struct {
    CmlRange *width, *height;
} CmlSizeRange;
typedef struct {
    PbInts     shape;
    int64_t    type;
    CmlShapes *enumerated;
    CmlRanges *range;
    bool       has_default;
} CmlArrayType;
typedef struct {
    int64_t       width, height, color;
    CmlShapes    *enumerated;
    CmlSizeRange *range;
} CmlImageType;
typedef struct {
    bool unused;
} CmlEmpty;
typedef struct {
    CmlArrayType *array;
} CmlStateType;
typedef struct {
    CmlEmpty     *integer, *number, *text, *dictionary, *sequence;
    CmlImageType *image;
    CmlArrayType *array;
    CmlStateType *state;
    int64_t       optional;
} CmlFeatureType;
typedef struct {
    const char     *name;
    CmlFeatureType *type;
} CmlFeature;
typedef struct {
    const char *name, *label, *probabilities;
    PbMsgs      in, out, state; /* CmlFeature */
} CmlInterface;
typedef struct {
    PbMsgs      in, out, state; /* CmlFeature */
    PbMsgs      functions;      /* CmlInterface */
    const char *main, *label, *probabilities;
} CmlDescription;
typedef struct {
    float scale, blue, green, red, gray;
} CmlScaler;
typedef struct {
    PbPacked cells;
} CmlMean;
typedef struct {
    const char *feature;
    CmlScaler  *scaler;
    CmlMean    *mean;
} CmlPreprocessing;
typedef struct {
    PbInts  v;
    PbTexts t;
} CmlLabels;
typedef struct {
    PbBlobs     layers;
    PbMsgs      preprocessing; /* CmlPreprocessing */
    int64_t     exact_arrays, exact_images;
    CmlLabels  *texts, *numbers; /* of a classifier */
    const char *scores;          /* the tensor of its probabilities */
} CmlNetwork;
typedef struct {
    const char *name;
    PbTexts     in, out;
} CmlLayerHead;

typedef struct CmlType CmlType;
typedef struct {
    int64_t size;
} CmlConstDim;
typedef struct {
    CmlConstDim *constant; /* NULL: not known */
} CmlDim;
typedef struct {
    int64_t type, rank;
    PbMsgs  dims; /* CmlDim */
} CmlTensorType;
typedef struct {
    CmlType *type;
} CmlOfType;
struct CmlType {
    CmlTensorType *tensor;
    CmlOfType     *list, *state;
    CmlEmpty      *tuple, *dictionary;
};
typedef struct {
    PbPacked v;
} CmlPacked;
typedef struct {
    PbInts v;
} CmlInts;
typedef struct {
    PbTexts v;
} CmlTexts;
typedef struct {
    Bytes v;
} CmlBytes;
typedef struct {
    CmlPacked *floats, *doubles;
    CmlInts   *ints, *longs, *bools;
    CmlTexts  *texts;
    CmlBytes  *bytes;
} CmlTensorValue;
typedef struct {
    PbMsgs list; /* CmlLiteral */
} CmlList;
typedef struct {
    CmlTensorValue *tensor;
    CmlList        *tuple, *list;
} CmlImmediate;
typedef struct {
    const char *file;
    int64_t     offset;
} CmlBlob;
typedef struct {
    CmlType      *type;
    CmlImmediate *immediate;
    CmlBlob      *blob;
} CmlLiteral;
typedef struct {
    const char *name;
    CmlLiteral *value;
} CmlBinding;
typedef struct {
    PbMsgs list; /* CmlBinding */
} CmlBindings;
typedef struct {
    const char  *key;
    CmlBindings *value;
} CmlInputEntry;
typedef struct {
    const char *key;
    CmlLiteral *value;
} CmlAttribute;
typedef struct {
    const char *name;
    CmlType    *type;
} CmlNamed;
typedef struct {
    const char *type;
    PbMsgs      in, out, blocks, attributes; /* CmlInputEntry, CmlNamed, CmlBlock, CmlAttribute */
} CmlOperation;
typedef struct {
    PbMsgs  in; /* CmlNamed */
    PbTexts out;
    PbMsgs  operations; /* CmlOperation */
} CmlBlock;
typedef struct {
    const char *key;
    CmlBlock   *value;
} CmlBlockEntry;
typedef struct {
    PbMsgs      in; /* CmlNamed */
    const char *opset;
    PbMsgs      blocks; /* CmlBlockEntry */
} CmlFunction;
typedef struct {
    const char  *key;
    CmlFunction *value;
} CmlFunctionEntry;
typedef struct {
    int64_t version;
    PbMsgs  functions; /* CmlFunctionEntry */
} CmlProgram;
enum {
#define KIND(number, name) CML_KIND_##name,
#include "frontends/coreml/kinds.def"
#undef KIND
    CML_OTHERS
};
typedef struct CmlPipeline CmlPipeline;
typedef struct {
    CmlPipeline *pipeline;
} CmlPipelineOf;
typedef struct {
    int64_t per_class;
} CmlPickTop;
typedef struct {
    CmlPickTop *pick_top;
    double      overlap, least;
    const char *scores_in, *boxes_in, *overlap_in, *least_in; /* features; the last two if given */
    const char *scores_out, *boxes_out;
} CmlSuppression;
typedef struct {
    int64_t         version;
    CmlDescription *description;
    CmlPipeline    *pipeline;
    CmlPipelineOf  *classifiers, *regressors; /* pipelines that end in one */
    CmlNetwork     *network, *classifier, *regressor;
    CmlProgram     *program;
    CmlSuppression *suppression;
    bool            others[CML_OTHERS]; /* another kind of model */
    Bytes           skipped;
} CmlModel;
struct CmlPipeline {
    PbMsgs  models; /* CmlModel */
    PbTexts names;
};

extern const PbMessage cml_model, cml_network, cml_layer_head;

const CmlNetwork *cml_network_of(const CmlModel *m); /* NULL: it is none */
const char       *cml_kind(const CmlModel *m);       /* "treeEnsembleClassifier" */
/* Models of a pipeline in its order, or the model itself. */
typedef VEC(const CmlModel *) CmlModels;
void cml_models(Arena *a, const CmlModel *m, CmlModels *out);

/* Element types of arrays, and of programs. */
bool        cml_array_dtype(int64_t type, DType *out);
bool        cml_dtype(int64_t type, DType *out); /* those below 8 bits as 8 */
const char *cml_dtype_name(int64_t type);
bool        cml_dtype_named(const char *name, DType *out); /* "fp16", "int32" */
enum { CML_STRING = 2 };

/* ---- package.c -------------------------------------------------------------------------------------- */

bool cml_is_manifest(Bytes file);
/* The model that a package's manifest names; false with an error. */
bool cml_open_package(Ctx *c, const char **path, Bytes *file, ImportFiles *files);
/* The bytes of a file that a program names, "@model_path/weights/weight.bin"; read once. */
typedef struct {
    const char *name;
    Bytes       file;
} CmlFile;
typedef VEC(CmlFile) CmlFiles;
bool cml_open_weights(Ctx *c, const char *model, const char *name, Loc loc, CmlFiles *known,
                      ImportFiles *files, Bytes *out);

/* ---- table.c ---------------------------------------------------------------------------------------- */

typedef struct CmlNode CmlNode;
typedef bool           CmlConvert(CmlNode *n);

typedef struct {
    const char *name, *fields;
} CmlRecord;
typedef enum {
    CML_INT,
    CML_BOOL,
    CML_FLOAT,
    CML_DOUBLE,
    CML_TEXT,
    CML_BYTES,
    CML_RECORD /* another message */
} CmlKind;
typedef struct {
    uint32_t         number;
    const char      *name;
    uint32_t         n; /* bytes of its name */
    CmlKind          kind;
    bool             many;
    const CmlRecord *record; /* CML_RECORD; NULL: a network */
    uint32_t         place;  /* among the fields of its message */
} CmlField;

/* How values are taken. */
typedef enum {
    CML_PLAIN, /* as the converter asks for them */
    CML_CELLS  /* cell by cell, which broadcast */
} CmlHow;
typedef struct {
    const char      *name;
    uint32_t         number; /* of the layer; 0: an operator of programs */
    const CmlRecord *record;
    const char      *inputs; /* "x weight? values.." */
    CmlHow           how;
    const char      *relay;
    CmlConvert      *convert;
} CmlRow;

extern const CmlRow   cml_rows[];
extern const uint32_t cml_nrows;

const CmlRow *cml_layer_row(uint32_t number);    /* NULL: there is none */
const CmlRow *cml_program_row(const char *type); /* NULL: there is none */
const char   *cml_inputs(const CmlRow *row);
/* "custom", also of those that are not read; *hint, perhaps NULL: what to do instead. */
const char *cml_layer_kind(Ctx *c, uint32_t number, const char **hint);
const char *cml_program_refusal(const char *type); /* the same of an operator */
/* Word i of a row's inputs; false behind the last. */
typedef struct {
    const char *name;
    uint32_t    n; /* bytes */
    bool        maybe, many;
} CmlWord;
bool cml_word(const char *inputs, uint32_t i, CmlWord *out);
bool cml_field(const CmlRecord *r, const char *name, CmlField *out);
bool cml_field_numbered(const CmlRecord *r, uint32_t number, CmlField *out);

/* ---- record.c: fields of a layer's message ---------------------------------------------------------- */

typedef struct {
    Arena           *arena;
    const CmlRecord *record;
    Bytes            bytes;
    uint64_t        *read; /* fields that were asked for, by their places; NULL: nobody counts */
} CmlMessage;

bool        cml_read_has(const CmlMessage *m, const char *name);
int64_t     cml_read_int(const CmlMessage *m, const char *name);
double      cml_read_float(const CmlMessage *m, const char *name);
const char *cml_read_text(const CmlMessage *m, const char *name); /* "" for none */
Bytes       cml_read_bytes(const CmlMessage *m, const char *name);
Ints        cml_read_ints(const CmlMessage *m, const char *name);
Bytes       cml_read_floats(const CmlMessage *m, const char *name); /* f32, perhaps misaligned */
/* How many messages there are of that name, and message i; false: there are not so many. */
uint32_t cml_read_count(const CmlMessage *m, const char *name);
bool     cml_read_message(const CmlMessage *m, const char *name, uint32_t i, CmlMessage *out);
/* The first message in it: of what is one of several. */
bool cml_read_chosen(const CmlMessage *m, CmlField *field, CmlMessage *out);

/* ---- values, scopes, import.c ------------------------------------------------------------------------ */

typedef struct CmlValue {
    const Expr       *e;
    int64_t           seq;     /* above 0: e is [seq * batch, C, H, W] */
    const CmlLiteral *literal; /* of a program: what e is, or a text */
    uint32_t          n;       /* of several in one: */
    struct CmlValue  *at;
} CmlValue;

typedef struct {
    Ctx                 *c;
    const char          *path;
    Shapes               shapes;
    const ImportOptions *options;
    ImportFiles         *files;
    CmlFiles             blobs;
    Map                 *sizes; /* values computed from symbolic dimensions alone */
    GlobalDefs           functions;
    NamedValues          params, results, tensors;
    VEC(const Expr *) binds; /* bind_dims that are to stand around the results */
    uint32_t    loops, nodes, ordinal;
    NamedValues states, next; /* of programs: inputs, and what they are in the end */
    Map        *reads;        /* of a network: how many layers, in all its networks, take a name */
} CmlImport;

/* Whether a round of a network's loop is over, and whether the loop is. */
enum { CML_STOPS, CML_LEAVES, CML_FLAGS };

/* Names to values; a block sees those around it. */
typedef struct CmlScope CmlScope;
struct CmlScope {
    CmlImport      *im;
    const CmlScope *outer;
    Map            *values; /* interned name to CmlValue */
    TextList        names;  /* of them, in their order */
    uint32_t        depth;
    const Expr     *flag[CML_FLAGS]; /* NULL: as around it */
};

CmlScope  cml_scope(CmlImport *im, const CmlScope *outer);
CmlValue *cml_find(const CmlScope *s, const char *name); /* NULL: not there */
void      cml_put(CmlScope *s, const char *name, CmlValue v);

/* The message in the file, or in the package that it is the manifest of; *path names it then. */
bool cml_read(Ctx *c, const char **path, Bytes file, ImportFiles *files, CmlModel *out);

/* ---- feature.c ------------------------------------------------------------------------------------------ */

enum { CML_GREY = 10, CML_RGB = 20, CML_BGR = 30, CML_GREY_F16 = 40 }; /* of images */
bool cml_is_grey(const CmlImageType *t);
/* The element type of an input or output; false: of another kind. */
bool cml_feature_dtype(const CmlFeatureType *t, DType *out);
/* Its rank, UINT32_MAX if it is not said, and its first MAX_RANK dimensions: there may be more. */
uint32_t cml_feature_dims(CmlImport *im, Loc loc, const CmlFeature *f, InputDim *dims);

/* ---- network.c, program.c ----------------------------------------------------------------------------- */

typedef struct {
    CmlLayerHead  head;
    uint32_t      number; /* of its kind, 0: none */
    CmlMessage    message;
    const CmlRow *row;
} CmlLayer;
bool cml_read_layer(Ctx *c, Loc loc, Bytes bytes, CmlLayer *out);
bool cml_import_layers(CmlScope *s, const CmlNetwork *net, uint32_t from);
/* The function that the model is, and its block; NULL with an error. */
const CmlFunction *cml_main_function(Ctx *c, Loc loc, const CmlModel *m);
const CmlBlock    *cml_function_block(Ctx *c, Loc loc, const CmlFunction *f);
bool               cml_import_block(CmlScope *s, const CmlBlock *b);
const char        *cml_operation_name(const CmlOperation *p);
bool               cml_is_operand(const CmlAttribute *a); /* and not its name */

/* ---- weights.c, blob.c ---------------------------------------------------------------------------------- */

/* A constant of so many cells; `channels`: along which dimension it may be quantized. */
const Expr *cml_weight(CmlNode *n, const char *field, uint32_t rank, const int64_t *dims,
                       uint32_t channels);
const Expr *cml_weight_of(CmlNode *n, const CmlMessage *m, const char *role, uint32_t rank,
                          const int64_t *dims, uint32_t channels);
int64_t     cml_weight_cells(const CmlMessage *m);
/* n numbers of `bits` bits, one a byte; high: the first lies in the high bits. */
Bytes       cml_unpacked(Arena *a, Bytes packed, int64_t n, uint32_t bits, bool high);
const Expr *cml_literal(CmlImport *im, const CmlLiteral *v, const char *name, Loc loc);
const char *cml_literal_text(const CmlLiteral *v); /* NULL: it is no text */

/* ---- control.c -------------------------------------------------------------------------------------------- */

/* What a program keeps from run to run: an input, and at the end a result. */
bool cml_state(CmlImport *im, CmlScope *s, const CmlNamed *in);
bool cml_states_end(CmlImport *im);

/* ---- flow.c ----------------------------------------------------------------------------------------------- */

/* Counts which names the network's layers take, and what it gives. */
bool cml_count_reads(CmlImport *im, const CmlModel *m);
/* Layers from number `from` on, for which a round of a loop may be over. */
bool cml_import_rest(CmlScope *s, const CmlNetwork *net, uint32_t from);

/* ---- boxes.c ---------------------------------------------------------------------------------------------- */

/* The boxes that stay, as features; their number is a dimension that the run decides. */
bool cml_suppression_model(CmlImport *im, CmlScope *features, const CmlSuppression *m);

/* ---- survey.c --------------------------------------------------------------------------------------------- */

/* False with errors, all at once, if some layer or operator of the models cannot be what it says.
 */
bool cml_survey(CmlImport *im, uint32_t n, const CmlModel *const *models);

/* ---- node.c ----------------------------------------------------------------------------------------------- */

typedef struct {
    const char *name;
    uint32_t    n;
    CmlValue   *at;
    bool        read;
} CmlArg;
struct CmlNode {
    Build               b;
    CmlImport          *im;
    CmlScope           *scope;
    const CmlRow       *row;
    const CmlLayer     *layer;     /* of a network, or */
    const CmlOperation *operation; /* of a program */
    uint32_t            nargs, nout;
    CmlArg             *args; /* operands by name */
    CmlValue           *out;
    int64_t             seq;   /* above 0: cells are [seq * batch, C, H, W] */
    uint32_t            image; /* rank of the operand that cml_image was asked for */
    int64_t             lead;  /* its `seq` */
};

#define cml_error(n, ...) build_error(&(n)->b, __VA_ARGS__)

/* Converts the node, whose operands are known, and checks what comes out. */
bool cml_convert(CmlNode *n);

/* Operands. */
bool        cml_has(CmlNode *n, const char *name);
CmlArg     *cml_arg(CmlNode *n, const char *name);
const Expr *cml_x(CmlNode *n, const char *name); /* with all dimensions; NULL with an error */
bool        cml_maybe(CmlNode *n, const char *name, const Expr **out);
/* One or several; all as cells if that is how the row takes them. */
uint32_t    cml_all(CmlNode *n, const char *name, const Expr ***out);
const Expr *cml_plain(const Build *b, CmlValue v);
/* As images [N, C, H, W] (spatial 2), lines or volumes, of fewer or more dimensions in the model.
 */
const Expr *cml_image(CmlNode *n, const char *name, uint32_t spatial);

/* Settings. */
int64_t     cml_int(CmlNode *n, const char *name, int64_t fallback);
double      cml_float(CmlNode *n, const char *name, double fallback);
bool        cml_bool(CmlNode *n, const char *name, bool fallback);
const char *cml_text(CmlNode *n, const char *name, const char *fallback);
/* False with an error; none: n 0. */
bool cml_ints(CmlNode *n, const char *name, Ints *out);
/* `count` numbers, each at least `least`; all `fallback` where none are given. */
bool cml_numbers(CmlNode *n, const char *name, uint32_t count, int64_t fallback, int64_t least,
                 int64_t *out);
/* Numbers or forms over dimensions; of an operand, even if a field has that name. */
bool cml_forms(CmlNode *n, const char *name, Dims *out);
bool cml_operand_forms(CmlNode *n, const char *name, Dims *out);
/* An axis of that many dimensions, which may be negative. */
bool cml_axis(const CmlNode *n, int64_t axis, uint32_t rank, uint32_t *out);
bool cml_axes(CmlNode *n, const char *name, uint32_t rank, uint32_t *count, int64_t *axes);
/* A message of a layer's own; false: there is none. */
bool        cml_message(const CmlNode *n, const char *name, CmlMessage *out);
const char *cml_name(const CmlNode *n, const char *role); /* of a constant of this node */
const Expr *cml_folded(const CmlNode *n, const char *role, const Expr *e);

/* Results. */
bool cml_done(CmlNode *n, const Expr *y); /* cells, as they were taken, or with all dimensions */
bool cml_done_at(CmlNode *n, uint32_t i, const Expr *y);
bool cml_done_seq(CmlNode *n, uint32_t i, const Expr *y, int64_t seq);
bool cml_done_image(CmlNode *n, const Expr *y);
bool cml_done_image_at(CmlNode *n, uint32_t i, const Expr *y);
const Idx *cml_bound(void *user, const Expr *total, const Idx *most); /* of BoundDim */

/* ---- shared by converters ----------------------------------------------------------------------------------- */

const Expr *cml_matmul(CmlNode *n, const Expr *x, const Expr *y, bool tx, bool ty);
const Expr *cml_linear(CmlNode *n, const Expr *x, const Expr *w, const Expr *bias);
/* By a layer's message, or by name. */
const Expr *cml_activated(CmlNode *n, const CmlMessage *how, const Expr *x);
const Expr *cml_activation(CmlNode *n, const char *name, const Expr *x);
/* image.c: where the cells of a result lie in the image, of X cells for N; of layers, by name */
typedef enum {
    CML_GRID_ASYMMETRIC,   /* i * X / N */
    CML_GRID_ALIGN,        /* i * (X - 1) / (N - 1) */
    CML_GRID_ALIGN_MIDDLE, /* the same, but (X - 1) / 2 for N = 1 */
    CML_GRID_HALF,         /* (i + 1/2) * X / N - 1/2 */
    CML_GRID_OFFSET        /* (i + 1/2) * max(1, X - 1) / N */
} CmlGrid;
bool cml_grid(CmlNode *n, CmlGrid *grid);
bool cml_grid_named(CmlNode *n, const char *fallback, CmlGrid *grid);
enum { CML_SPATIAL = 3 };
/* conv.c: rows and columns before and after; of layers and of programs */
bool cml_edges(CmlNode *n, const CmlMessage *amounts, int64_t *begin, int64_t *end);
bool cml_layer_borders(CmlNode *n, int64_t *begin, int64_t *end);
bool cml_volume_borders(CmlNode *n, int64_t *begin, int64_t *end);
bool cml_volume_window(CmlNode *n, int64_t *kernel, int64_t *stride);
typedef enum { CML_VALID, CML_SAME, CML_SAME_LOWER, CML_CUSTOM } CmlPadding;
bool cml_pad_type(CmlNode *n, uint32_t dims, int64_t *begin, int64_t *end, CmlPadding *how);

/* The converters of the tables. */
#define none NULL
#define LAYER(number, name, record, inputs, how, relay, convert) CmlConvert convert;
#include "frontends/coreml/layers.def"
#undef LAYER
#define PROGRAM_OP(name, how, relay, convert) CmlConvert convert;
#include "frontends/coreml/programs.def"
#undef PROGRAM_OP
#undef none

#endif
