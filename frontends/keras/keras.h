/* Keras: what model.save() writes, .h5 of all versions and .keras, to a Relay module.
 *
 *   archive.c     the file: the configuration (JSON), the weights (HDF5), the version
 *   config.c      the configuration as layers, their calls, and models within models
 *   order.c       which call is made when          ports.c   what a model takes and gives
 *   weights.c     whose weights are which
 *   names.c names.def   names that layers and settings had in older versions, and parts of weights
 *   table.c       the tables: layers.def, operations.def
 *   survey.c      all layers before anything is built
 *   describe.c    inputs, outputs, layers
 *   import.c      inputs, one call after another, outputs
 *   node.c        what converters ask: settings, weights, operands, how images lie
 *   activation.c activations.def
 *   core.c conv.c local.c pool.c norm.c merge.c shape.c recurrent.c cell.c conv_lstm.c attention.c
 * wrapper.c image.c spectrum.c category.c math.c operation.c select.c   converters by family
 *
 * A .keras file is a zip of config.json, metadata.json and model.weights.h5; an .h5 file has the
 * configuration as attribute `model_config` and the weights in group `model_weights`.  The
 * configuration lists the layers of a model; each has its settings and its calls, which say by name
 * and number whose results they take.  A layer may be called often, and may be a model itself.
 *
 * Weights.  In .h5 a layer of the outermost model has a group of its name with a list of weights,
 * those of all layers inside it one after the other, what is trained first.  In .keras there is a
 * group for every layer, whose path is made of the attributes and classes that lead to it
 * (layers/bidirectional/forward_layer/cell/vars/0).  Either way a layer's weights have an order and
 * no names; layers.def says what they are.
 *
 * Layout.  Images are NHWC unless a layer says channels_first, and lie as in other formats that
 * have NHWC (frontends/layout.c): CELLS and AXES work on values as they lie (n->moved), lines and
 * volumes likewise.
 *
 * Masks.  Masking and Embedding say which steps of a sequence count; the mask goes along with the
 * value (KerasValue) through the layers whose row keeps it, to those that use it.
 *
 * A converter asks for settings by name and stores what comes out in n->out; false after an error.
 */
#ifndef TVMCC_FRONTENDS_KERAS_H
#define TVMCC_FRONTENDS_KERAS_H

#include "base/json.h"
#include "formats/formats.h"
#include "frontends/calls.h"

#define KERAS_MAX_NESTING 24
#define KERAS_MAX_CALLS 1000000 /* converted, as models are called again */

/* ---- archive.c ------------------------------------------------------------------------------------- */

typedef struct {
    json_t  *config;  /* of the model: json_decref when done */
    int      major;   /* of the version of Keras that wrote it */
    bool     flipped; /* kernels of convolutions are the other way round, as Theano has them */
    bool     paths;   /* weights are found by paths, not by lists of names */
    H5File  *weights; /* NULL: none are there */
    H5Object root;    /* of them */
} KerasArchive;

bool keras_is_file(Bytes file);
bool keras_read_archive(Ctx *c, Loc loc, Bytes file, KerasArchive *out);

/* ---- table.c --------------------------------------------------------------------------------------- */

typedef struct KerasNode KerasNode;
typedef bool             KerasConvert(KerasNode *n);

/* How a layer takes its values. */
typedef enum {
    AS_IS,
    CELLS, /* cell by cell, which broadcast */
    AXES,  /* along axes (keras_axis) */
    IMAGE  /* as the converter asks for them (keras_image) */
} KerasHow;
/* What becomes of a mask. */
typedef enum {
    DROPS, /* it ends here */
    KEEPS, /* it goes on */
    OWN    /* the converter says */
} KerasMask;

typedef struct {
    const char   *name;
    bool          operation; /* a function of keras.ops, not a layer */
    const char   *settings;  /* that are known, "~" before those that change nothing */
    const char   *weights;   /* see layers.def; of an operation its arguments */
    KerasHow      how;
    KerasMask     mask;
    const char   *relay;
    KerasConvert *convert;
} KerasRow;

extern const KerasRow keras_rows[];
extern const uint32_t keras_nrows;

const KerasRow *keras_row(const char *name, bool operation); /* NULL: there is none */
bool            keras_row_has(const KerasRow *row, const char *setting);

/* One word of KerasRow.weights. */
typedef struct {
    const char *path;  /* below the layer's own: "query_dense", or "" */
    const char *name;  /* "query_dense/kernel" */
    bool        fixed; /* not trained */
} KerasSlot;
typedef VEC(KerasSlot) KerasSlots;
/* The weights that a layer with these settings has itself, in files of that version. */
KerasSlots keras_slots(Ctx *c, const KerasRow *row, const json_t *config, int major);

/* ---- names.c --------------------------------------------------------------------------------------- */

const char *keras_class_now(const char *name);   /* what a class is called today */
const char *keras_group_class(const char *name); /* whose name its weights' group has */
/* The weights that a class of today has in parts, as in layers.def; NULL: in none. */
const char *keras_parts(const char *class, const json_t *config, int major);
/* The setting, by its name of today or an older one. */
const json_t *keras_setting(const json_t *config, const char *name);
bool          keras_setting_old(const char *name, const char *of); /* name is an old one of `of` */
char         *keras_snake(Arena *a, const char *name); /* Conv2DTranspose: conv2d_transpose */

/* ---- config.c -------------------------------------------------------------------------------------- */

typedef struct KerasLayer KerasLayer;
typedef struct KerasModel KerasModel;
typedef struct KerasArg   KerasArg;

typedef enum {
    KERAS_TENSOR, /* result `tensor` of call `call` of a layer */
    KERAS_LIST,
    KERAS_JSON /* a value of the configuration */
} KerasArgKind;
struct KerasArg {
    KerasArgKind  kind;
    const char   *name; /* of an argument that is given by name, or a key; NULL: by its place */
    const char   *layer;
    int64_t       call, tensor;
    KerasLayer   *from; /* the layer of that name, once all are read */
    uint32_t      n;
    KerasArg     *at;
    const json_t *json;
};
typedef struct {
    uint32_t  n;
    KerasArg *args;
} KerasCall;

typedef struct {
    const char *name;
    H5Value     value;
    const char *path; /* where it lies, for messages and as the constant's name */
} KerasWeight;

struct KerasLayer {
    const char     *class_name, *name;
    const char     *written; /* the class as the file has it */
    const char     *part;    /* the attribute of the layer around it */
    const json_t   *config;
    const KerasRow *row;     /* NULL: none, or a model */
    KerasModel     *model;   /* if it is one */
    KerasLayer     *outside; /* the layer or model around it, NULL: the outermost model */
    VEC(KerasLayer *) kids;  /* layers inside: of a model all, of a wrapper those that it wraps */
    VEC(KerasCall) calls;
    VEC(KerasWeight) weights;
    uint32_t ordinal;                       /* in the outermost model */
    bool     operation, trainable, foreign; /* foreign: a class of the user's */
    int64_t  shared; /* number of an object that several models have, 0: none */
};

typedef struct {
    KerasLayer *layer;
    uint32_t    call;
} KerasStep;

struct KerasModel {
    KerasLayer *self;
    bool        sequential;
    Map        *names; /* interned -> KerasLayer */
    KerasArg    in, out;
    VEC(KerasStep) order;
};

typedef struct {
    Ctx        *c;
    const char *path;
    int         major;
    uint32_t    depth, ordinal;
} KerasReading;

/* NULL with an error. */
KerasLayer *keras_read_config(Ctx *c, const char *path, const KerasArchive *a);
/* A layer that stands in another's configuration; part: as which attribute. */
KerasLayer *keras_read_inside(KerasReading *r, KerasLayer *outside, const json_t *at,
                              const char *part);
bool        keras_order(KerasReading *r, KerasModel *m); /* order.c */

/* ---- ports.c: what a model takes and gives ---------------------------------------------------------- */

typedef struct {
    const char     *name;
    const KerasArg *arg;   /* NULL: of a Sequential */
    const json_t   *shape; /* of an input: [null, 32, 32, 3], NULL: it is not said */
    const char     *dtype;
} KerasPort;
typedef VEC(KerasPort) KerasPorts;
/* The tensors of "input_layers" or "output_layers", in order. */
void keras_ports(Ctx *c, const KerasArg *list, KerasPorts *out);
void keras_inputs(Ctx *c, const KerasLayer *model, KerasPorts *out);
/* Names are each there once. */
void keras_outputs(Ctx *c, const KerasLayer *model, KerasPorts *out);
/* Its rank, UINT32_MAX: not said; dims has room for MAX_RANK.  False: it is broken. */
bool keras_shape(const KerasPort *p, uint32_t *rank, InputDim *dims);

/* ---- weights.c ------------------------------------------------------------------------------------- */

bool keras_read_weights(Ctx *c, const char *path, const KerasArchive *a, KerasLayer *model);

/* ---- import.c -------------------------------------------------------------------------------------- */

typedef struct {
    const Expr *e;
    const Expr *mask; /* [batch, steps] of bools; NULL: all count */
} KerasValue;
typedef VEC(KerasValue) KerasValues;

typedef struct {
    Ctx         *c;
    const char  *path;
    KerasLayer  *model;
    int          major;
    bool         flipped; /* KerasArchive */
    Shapes       shapes;
    KerasReading reading; /* for layers in settings */
    uint32_t     calls, loops, depth;
    GlobalDefs   functions; /* loops; those within others first */
} KerasImport;

typedef struct KerasRun KerasRun; /* a model that is called, and its values so far */

struct KerasNode {
    Build             b;
    KerasImport      *im;
    KerasLayer       *layer;
    const KerasRow   *row;
    const KerasCall  *call;
    const KerasValue *in; /* the tensors of the first argument */
    uint32_t          nin;
    KerasValues       out;
    bool              moved; /* values of rank `rank` have their channels first */
    uint32_t          rank;
    DType             dtype; /* in which it computes */
    bool             *read;  /* of each argument of the call */
    const KerasRun   *run;   /* of the model in which it is called; NULL: it is within a layer */
};

/* A layer, also one within another, called with these. */
bool keras_call(KerasImport *im, KerasLayer *l, uint32_t nin, const KerasValue *in,
                KerasValues *out);
/* The tensor that an argument is; false with an error. */
bool keras_value(const KerasNode *n, const KerasArg *a, KerasValue *out);

bool keras_survey(KerasImport *im); /* survey.c; false with errors, all at once */

/* ---- node.c ---------------------------------------------------------------------------------------- */

#define keras_error(n, ...) build_error(&(n)->b, __VA_ARGS__)

/* Settings. */
const json_t *keras_json(const KerasNode *n, const char *name); /* NULL: absent, or null */
int64_t       keras_int(const KerasNode *n, const char *name, int64_t fallback);
double        keras_float(const KerasNode *n, const char *name, double fallback);
double
            keras_number(DType  t,
                         double v); /* as a layer of type t has it: not of more bits than f32 but in f64 */
bool        keras_bool(const KerasNode *n, const char *name, bool fallback);
const char *keras_text(const KerasNode *n, const char *name, const char *fallback);
/* `count` numbers from 1 to INT32_MAX (from 0, if least is 0): as many, or one for all. */
bool keras_ints(const KerasNode *n, const char *name, uint32_t count, int64_t fallback,
                int64_t least, int64_t *out);
bool keras_list(const KerasNode *n, const char *name,
                Ints *out); /* a number, or any; false: an error */
bool json_int(const json_t *x, int64_t *out);

bool        keras_has_weight(const KerasNode *n, const char *name);
const Expr *keras_weight(KerasNode *n, const char *name); /* in n->dtype; NULL with an error */
/* Its dimensions as the file has them; 0: it has none, or is not there. */
uint32_t keras_weight_rank(const KerasNode *n, const char *name);
/* The same in another order of dimensions. */
const Expr *keras_weight_moved(KerasNode *n, const char *name, uint32_t rank, const int64_t *axes);
/* A convolution's kernel: besides, the right way round. */
const Expr *keras_kernel(KerasNode *n, const char *name, uint32_t spatial, const int64_t *axes);
/* e, computed from weights, as a constant where it is small; `name` is called so. */
const Expr *keras_folded(const KerasNode *n, const char *name, const Expr *e);

/* Arguments of the call, by place or by one of the names "x2|y": NULL: left out, or None. */
const KerasArg *keras_arg(const KerasNode *n, uint32_t place, const char *name);
/* A tensor; false with an error, or without one where it may be left out (out->e NULL). */
bool keras_operand(KerasNode *n, uint32_t place, const char *name, bool maybe, KerasValue *out);

/* The only input; NULL with an error. */
const Expr *keras_in(const KerasNode *n);
bool        keras_count(const KerasNode *n, uint32_t least, uint32_t most);
bool        keras_rank(const KerasNode *n, const Expr *x, uint32_t least, uint32_t most);
bool        keras_done(KerasNode *n, const Expr *y);
bool        keras_done_masked(KerasNode *n, const Expr *y, const Expr *mask);
/* An axis, which may be negative, in the dimensions of values of that rank as they lie now. */
bool keras_axis(const KerasNode *n, int64_t axis, uint32_t rank, uint32_t *out);

/* Layout. */
bool keras_channels_first(const KerasNode *n); /* data_format */
/* The input with its channels in dimension 1, of `spatial` more dimensions than two. */
const Expr *keras_image(KerasNode *n, uint32_t spatial);
bool        keras_image_done(KerasNode *n, const Expr *y);
/* What n->row->how says, before and after the converter. */
bool keras_prepare(KerasNode *n);
bool keras_finish(KerasNode *n);

bool keras_dtype(const char *name, DType *out); /* "float32" */
/* [T] of a loop's rounds, as build_rounds; the loop belongs to the module then. */
bool keras_rounds(KerasNode *n, const Idx *count, uint32_t nstates, const Expr *const *first,
                  BuildRound *fn, void *user, const Expr **out);

/* ---- activation.c ---------------------------------------------------------------------------------- */

/* The function that a setting names; `channels`: the axis of softmax. */
const Expr *keras_activated(KerasNode *n, const char *setting, const char *fallback, const Expr *x,
                            uint32_t channels);
const char *keras_activation_name(const KerasNode *n, const char *setting, const char *fallback);
bool        keras_known_activation(const char *name);
const Expr *keras_apply(const KerasNode *n, const char *activation, const Expr *x,
                        uint32_t channels);
const Expr *keras_softmax(const Build *b, const char *op, const Expr *x, uint32_t axis);

/* ---- shared by converters -------------------------------------------------------------------------- */

/* conv.c: rows and columns, or fewer or more */
typedef struct {
    uint32_t    dims;
    BuildWindow at;
} KerasWindow;
/* "same", "valid" and, in one dimension, "causal" for x with channels first. */
bool        keras_padding(const KerasNode *n, const Expr *x, const char *padding, KerasWindow *w);
const Expr *keras_conv(const KerasNode *n, const Expr *x, const Expr *w, const KerasWindow *win,
                       int64_t groups);
/* math.c: argument i of an operation; NULL with an error */
const Expr *keras_op_arg(KerasNode *n, uint32_t i);
/* merge.c */
const Expr *keras_matmul(const KerasNode *n, const Expr *x, const Expr *y, bool ty);
const Expr *keras_dense(const KerasNode *n, const Expr *x, const Expr *w, const Expr *bias);
const Expr *keras_batch_dot(const KerasNode *n, const Expr *x, const Expr *y, uint32_t ax,
                            uint32_t ay);

/* ---- converters ------------------------------------------------------------------------------------ */

#define none NULL
#define LAYER(name, settings, weights, how, mask, relay, convert) KerasConvert convert;
#include "frontends/keras/layers.def"
#undef LAYER
#define OPERATION(name, settings, args, how, relay, convert) KerasConvert convert;
#include "frontends/keras/operations.def"
#undef OPERATION
#undef none

#endif
