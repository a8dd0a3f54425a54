/* frontends: model files in, Relay modules out.
 *
 * Each frontend is a row of frontends.def: it bids on the first bytes of a file, 0 to 100, and the
 * highest bid imports, so users need not name the format.  Frontends never see each other; what two
 * of them share is in this folder (common.h, calls.h).
 *
 *   import.c            the table, bids
 *   looks.c looks.def   what a file seems to be that is no model
 *   onnx/               ONNX
 *   tflite/             TensorFlow Lite
 *   tensorflow/         TensorFlow: SavedModels and frozen graphs
 *   keras/              Keras: .keras and .h5
 *   pytorch/            PyTorch: torch.export and TorchScript
 *   coreml/             Core ML: .mlmodel and .mlpackage
 *   darknet/            Darknet: .cfg and .weights
 *   mxnet/              MXNet: -symbol.json and .params
 *   caffe2/             Caffe2: predict_net.pb and init_net.pb
 *   tvm/                TVM: Relay's text, and Model Library Format
 *   relay/              text of Relay modules
 */
#ifndef TVMCC_FRONTENDS_H
#define TVMCC_FRONTENDS_H

#include "ir/relay/relay.h"

/* What the user says about a model. */
typedef struct {
    const char        *name; /* "": the model's only input */
    uint32_t           ndim;
    const int64_t     *dims;  /* -1: as the model has it, or */
    const char *const *forms; /* ... this form over named dimensions, "2*N"; NULL: none has one */
    bool  from_values; /* of values for a run: bounds that --dim gives a dimension count more */
    bool  typed;       /* .. and this is the element type, for models that do not say one */
    DType dtype;
} ImportShape;
typedef struct {
    const char *name;   /* of a dimension; "*": all that have no value otherwise */
    int64_t     lo, hi; /* equal: its value; else a run decides it, within these bounds */
} ImportDim;
typedef struct {
    const char  *name;  /* an input that becomes a constant */
    const Const *value; /* this one; NULL: */
    const char  *text;  /* a number, for all of its cells */
} ImportValue;
typedef struct {
    uint32_t           nshapes, ndims;
    const ImportShape *shapes;
    const ImportDim   *dims;
    uint32_t           nvalues;
    const ImportValue *values;
    const char        *weights; /* file of the constants, where Frontend.weights; NULL: beside it */
    const char        *signature; /* which one, where Frontend.signatures; NULL: the default */
    /* Tensors that become results as well, wherever they are in the model, after its own results;
     * only_tensors: instead of them, in this order. */
    uint32_t           ntensors;
    const char *const *tensors;
    bool               only_tensors;
    /* Inputs of --state, perhaps with a '*': what operators keep is a state if named here. */
    uint32_t           nkept;
    const char *const *kept;
} ImportOptions;

/* One dimension of a model's input. */
typedef struct {
    int64_t     value; /* -1: unknown */
    const char *name;  /* symbolic name, or NULL */
} InputDim;

/* What a model takes and gives as its file says it, before sizes are known. */
typedef enum {
    SIGNATURE_TENSOR,
    SIGNATURE_SEQUENCE,
    SIGNATURE_OPTIONAL, /* a tensor or nothing */
    SIGNATURE_OPTIONAL_SEQUENCE,
    SIGNATURE_OTHER
} SignatureKind;
typedef struct {
    const char     *name, *type; /* "f32", "string", "sequence(f32)" */
    uint32_t        ndim;        /* UINT32_MAX: not said */
    const InputDim *dims;
    SignatureKind   kind;
} SignatureTensor;
typedef struct {
    const char *name;
    uint32_t    count;
} OpTally;
typedef struct {
    const char            *name; /* of this signature; NULL: it has none */
    uint32_t               nnames;
    const char *const     *names; /* all that can be asked for */
    uint32_t               ninputs, noutputs, nops;
    const SignatureTensor *inputs, *outputs;
    const OpTally         *ops; /* in the format's names */
} ModelSignature;

/* Files that were read, the model first: for depfiles. */
typedef VEC(const char *) ImportFiles;

typedef struct Frontend {
    const char *name;    /* of --model-format */
    const char *endings; /* of file names, for people: ".onnx" */
    const char *inside;  /* what a folder that is a model has: "saved_model.pb" */
    const char *text;    /* in one line */
    bool        weights; /* constants lie in a second file, which ImportOptions.weights may name */
    bool        signatures; /* ImportOptions.signature may name one of several */
    /* How sure this is our format, 0 (no) to 100, from the path and the mapped file. */
    int (*bid)(const char *path, Bytes file);
    const Module *(*import)(Ctx *c, const char *path, Bytes file, const ImportOptions *o,
                            ImportFiles *files);
    /* What import would take and give by these options, of which those that change the graph
     * (tensors, values) make no difference here.  False with an error: the bytes do not parse, or
     * without one: import says as much. */
    bool (*describe)(Ctx *c, const char *path, Bytes file, const ImportOptions *o,
                     ModelSignature *out);
    /* The operators that it knows, a line each: `Name  versions  domain  Relay operator`. */
    void (*list_ops)(StrBuf *out);
} Frontend;

/* What a format has that its frontend does not read, a line each: `Name  why`. */
void coreml_list_refused(StrBuf *out);
void tflite_list_refused(StrBuf *out);
void tvm_list_refused(StrBuf *out);

/* All frontends, in the order of frontends.def. */
extern const Frontend *const frontends;
extern const uint32_t        frontend_count;

const Frontend *frontend_find(const char *name); /* NULL: there is none */

/* Import the model at `path`; `format` names a frontend, NULL: the highest bid.  `o` and `files`
 * may be NULL.  The module is typed, its weights views of the mapped file; its dimensions
 * are numbers, but those that `o` gives bounds are symbolic.
 * NULL with errors recorded: status 4 bytes that do not parse, 3 something unsupported, 1 the model
 * is wrong or the options do not fit it, 74 the file cannot be read. */
const Module *frontend_import(Ctx *c, const char *path, const char *format, const ImportOptions *o,
                              ImportFiles *files);

/* The signature of the model at `path`, told by the same options as an import; false: there is
 * none, errors or not. */
bool frontend_describe(Ctx *c, const char *path, const char *format, const ImportOptions *o,
                       ModelSignature *out);

/* Is this file a model, by its bytes?  What cannot be read is none. */
bool frontend_is_model(Arena *a, const char *path);

/* The file by which a folder is a model; NULL: it is no folder, or none of a model. */
const char *frontend_folder(Arena *a, const char *path);

/* The text of a module as it stands, not yet typed, with the constants in `weights`; NULL: in the
 * file beside it, if there is one. */
const Module *relay_read(Ctx *c, const char *path, Bytes file, const char *weights,
                         ImportFiles *files);

/* ---- looks.c ---------------------------------------------------------------------------------- */

typedef struct {
    const char *what; /* "a PNG picture"; NULL: nothing that is known */
    const char *hint; /* what to do, or "" */
} Looks;

Looks looks_of_file(Bytes file);
Looks looks_of_folder(Arena *a, const char *path);

/* The rows' functions. */
#define FRONTEND(id, name, endings, inside, bid_fn, import_fn, describe_fn, list_fn, weights, \
                 signatures, text)                                                            \
    int           bid_fn(const char *path, Bytes file);                                       \
    const Module *import_fn(Ctx *c, const char *path, Bytes file, const ImportOptions *o,     \
                            ImportFiles *files);                                              \
    bool          describe_fn(Ctx *c, const char *path, Bytes file, const ImportOptions *o,   \
                              ModelSignature *out);                                           \
    void          list_fn(StrBuf *out);
#include "frontends/frontends.def"
#undef FRONTEND

#endif
