/* Darknet: a network's .cfg and its .weights to a Relay module.
 *
 *   config.c      the text of a .cfg, and whether its sections and keys are known
 *   weights.c     the floats beside it, in the order of the layers
 *   import.c      input, results and names; one layer after another
 *   node.c        what converters ask of a layer: its keys, its input, its activation
 *   conv.c        convolutions, matrix products, normalization
 *   pool.c        pooling and resizing
 *   join.c        what takes results of earlier layers
 *   detect.c      boxes: yolo, Gaussian_yolo, region, detection
 *   recurrent.c   layers with a state
 *   table.c       the tables: ops.def, keys.def
 *   describe.c    inputs, outputs and layers as the file has them
 *
 * A layer's result is [N, C, H, W], or [N, C] where it has no places: behind products, recurrent
 * layers and softmax.  What layers mean is what two programs do: the first one, and the one that
 * most people have trained with since, which writes revision 5 into its weights (`forked`); where
 * they differ, the weights decide. */
#ifndef TVMCC_FRONTENDS_DARKNET_H
#define TVMCC_FRONTENDS_DARKNET_H

#include "frontends/calls.h"

typedef enum { DARKNET_INT, DARKNET_FLOAT, DARKNET_TEXT, DARKNET_INTS, DARKNET_FLOATS } DarknetKind;
typedef enum {
    DARKNET_READ,   /* a converter reads it */
    DARKNET_TRAINS, /* it matters to training alone */
    DARKNET_FIXED   /* with another value than its fallback, the layer is not supported */
} DarknetUse;

typedef struct {
    const char *section, *name; /* section "*": of every layer */
    DarknetKind kind;
    const char *fallback; /* NULL: there has to be one */
    DarknetUse  use;
} DarknetKey;

typedef struct DarknetNode DarknetNode;
typedef bool               DarknetConvert(DarknetNode *n);
typedef struct {
    const char     *name, *other; /* spellings of the section; other: NULL, or a second one */
    const char     *label;        /* its results are layer<i>_<label> */
    const char     *relay;        /* operator that does most of the work, or NULL */
    bool            detects;      /* its result is one of the network's */
    DarknetConvert *convert;
} DarknetRow;

typedef struct {
    const char *key, *value;
    uint32_t    line;
} DarknetPair;
typedef struct {
    const char       *name; /* "convolutional", as it is written */
    const DarknetRow *row;  /* NULL: [net], or not known */
    uint32_t          line, npairs;
    DarknetPair      *pairs;
} DarknetSection;
typedef struct {
    uint32_t        n; /* sections[0] is [net], layer i is sections[1 + i] */
    DarknetSection *sections;
} DarknetConfig;

typedef struct {
    Ctx          *c;
    const char   *path, *weights_path;
    DarknetConfig config;
    Bytes         weights; /* what is left of the file */
    bool          forked, transposed;
    Shapes        shapes;
    int64_t       width, height; /* of the picture, for anchors; 0: there is none */
    const Expr  **out;           /* of layers */
    NamedValues   params;
    NamedValues   results, states; /* of main; what is for the next run comes last */
    NamedValues   tensors;         /* all that may be asked for by name */
} DarknetImport;

struct DarknetNode {
    Build                 b;
    DarknetImport        *im;
    const DarknetSection *s;
    uint32_t              index; /* of the layer */
    const char           *label; /* "layer7_conv" */
    const Expr           *x;     /* result of the layer before, or the picture */
    const Expr           *y;
};

/* ---- config.c, table.c ---------------------------------------------------------------------------- */

#define DARKNET_MAX_SECTIONS 20000

/* The sections of a file; false with an error. */
bool darknet_read(Ctx *c, const char *path, Bytes file, DarknetConfig *out);
/* False with errors, all at once, if a section, a key or a value cannot be what it says. */
bool darknet_survey(DarknetImport *im);
bool darknet_parse_int(const char *text, int64_t *out);
bool darknet_parse_float(const char *text, double *out);

const DarknetRow *darknet_row(const char *section); /* NULL: not known */
const DarknetKey *darknet_key(const char *section, const char *name);
/* The i-th key that has to be there; NULL behind the last. */
const char *darknet_needed(const char *section, uint32_t i);
/* All keys of a section, for the nearest one. */
uint32_t    darknet_keys(const char *section, const char **names, uint32_t most);
uint32_t    darknet_key_count(void);
const char *darknet_nearest_section(const char *name);
const char *darknet_label(Ctx *c, const DarknetConfig *config, uint32_t layer);

/* ---- weights.c ------------------------------------------------------------------------------------ */

/* The file beside the .cfg, or the one that the user names, and its header. */
bool darknet_open_weights(DarknetImport *im, const char *given, ImportFiles *files);
/* The next floats as a constant "<label>.<role>": a view of the file. */
const Expr *darknet_weights(DarknetNode *n, const char *role, uint32_t rank, const int64_t *dims);
/* ... to be computed with: `count` of them; NULL with an error. */
const float *darknet_floats(DarknetNode *n, const char *role, int64_t count);
bool         darknet_check_weights(DarknetImport *im); /* nothing may be left */

/* ---- node.c --------------------------------------------------------------------------------------- */

#define darknet_error(n, ...) build_error(&(n)->b, __VA_ARGS__)

bool        darknet_has(const DarknetNode *n, const char *key);
int64_t     darknet_int(const DarknetNode *n, const char *key);
double      darknet_float(const DarknetNode *n, const char *key);
const char *darknet_text(const DarknetNode *n, const char *key);
/* A key from `least` to INT32_MAX; false with an error. */
bool darknet_size(const DarknetNode *n, const char *key, int64_t least, int64_t *out);
/* The input that [net] speaks of, one picture or one row of numbers; how many dimensions it has. */
uint32_t darknet_input(const DarknetNode *net, InputDim dims[4]);
/* Numbers between commas. */
bool darknet_ints(const DarknetNode *n, const char *key, Ints *out);
bool darknet_float_list(const DarknetNode *n, const char *key, uint32_t *count, double **out);
/* The result of the layer that a number of `key` means, below 0 counted from this one. */
const Expr *darknet_layer(const DarknetNode *n, int64_t layer);

bool        darknet_done(DarknetNode *n, const Expr *y);
const Expr *darknet_image(const DarknetNode *n, const Expr *x);  /* as [N, C, H, W] */
const Expr *darknet_vector(const DarknetNode *n, const Expr *x); /* as [N, C] */
/* By the name of an activation; NULL with an error. */
const Expr *darknet_activate(const DarknetNode *n, const char *name, const Expr *x);
/* A tensor that --output-tensor may ask for, and a state: an input `name` of that shape, whose
 * value for the next run is to be given to darknet_state_next. */
void        darknet_tensor(DarknetNode *n, const char *role, const Expr *value);
const Expr *darknet_state(DarknetNode *n, const char *role, uint32_t rank, const Idx *const *dims);
void        darknet_state_next(DarknetNode *n, const char *role, const Expr *value);

/* ---- conv.c --------------------------------------------------------------------------------------- */

typedef struct {
    int64_t     filters, size, stride_x, stride_y, dilation, padding, groups;
    bool        batch_normalize, flipped;
    const char *activation;
} DarknetConv;

/* What is done behind a product or a convolution; scale NULL: a bias alone. */
typedef struct {
    const Expr *bias, *scale, *mean, *variance;
} DarknetNorm;
/* A convolution whose weights have been read: they lie in the file in an order of their own. */
typedef struct {
    DarknetConv how;
    const Expr *w;
    DarknetNorm norm;
} DarknetFilters;
/* `dilation`, `pad` and `padding` of the layer. */
bool darknet_padding(const DarknetNode *n, DarknetConv *k);
/* role: "" or "input.", before the names of its weights */
const Expr *darknet_conv2d(DarknetNode *n, const Expr *x, const DarknetConv *k, const char *role);
/* The same in two steps, of data with so many channels. */
bool darknet_read_filters(DarknetNode *n, int64_t channels, const DarknetConv *k, const char *role,
                          DarknetFilters *out);
const Expr *darknet_filtered(DarknetNode *n, const Expr *x, const DarknetFilters *f);
const Expr *darknet_dense(DarknetNode *n, const Expr *x, int64_t outputs, bool batch_normalize,
                          const char *activation, const char *role);

/* The converters of ops.def. */
#define none NULL
#define LAYER(name, other, label, relay, detects, convert) DarknetConvert convert;
#include "frontends/darknet/ops.def"
#undef LAYER
#undef none

#endif
