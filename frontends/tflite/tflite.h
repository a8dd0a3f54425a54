/* TensorFlow Lite: a .tflite file to a Relay module.
 *
 *   schema.c     the tables of the file, and whether they refer to each other rightly
 *   survey.c     all operators before anything is built: what is not supported or not known
 *   lists.c      what converters make of TensorFlow's lists, put together again
 *   import.c     inputs, outputs and names; one operator after another
 *   tensor.c     constants, quantization
 *   node.c       what converters ask of an operator: options, values, images, axes
 *   table.c      the tables: ops.def, options.def, names.def
 *   describe.c   inputs, outputs and operators as the file has them
 *   ops.def      operator, version, inputs, options, how it takes values, converter
 *   refused.def  builtin operators that are not supported, and why
 *   options.def  the options of operators, field by field
 *   math.c nn.c pool.c shape.c slice.c reduce.c gather.c make.c image.c
 *   functions.c pairs.c rows.c hybrid.c
 *   where.c lookup.c hashtable.c detect.c recurrent.c lstm.c lstm_integer.c
 *   lstm_bytes.c svdf.c
 *   complex.c random.c window.c volume.c stablehlo.c control.c
 *                converters by family
 *   variables.c  variables and states
 *   fixed.c      numbers of fixed point, as the reference kernels compute with them
 *   line.c       sums of bytes in fewer operations, with the same results
 *
 * A converter reads n->in, Relay expressions, and stores such in n->out; false after an error.
 *
 * Quantization.  Tensors of 8 and 16 bits with a scale are integers in Relay, too.  An operator is
 * written as qnn.dequantize of its inputs, the operator in floats, and qnn.quantize of its result;
 * the passes make integers of it.  Where the reference kernels compute in integers in a way of
 * their own (functions.c, pairs.c, rows.c, reduce.c, svdf.c, lstm_*.c), so is it here.  What
 * only moves cells takes the integers as they are.  Weights of 8 bits of an operator in floats are
 * dequantized when the model is compiled.
 *
 * Layout.  Images are NHWC in the file, and NCHW for Relay's convolutions (frontends/layout.c);
 * TFLITE_CELLS and TFLITE_AXES work on them as they lie then (n->moved). */
#ifndef TVMCC_FRONTENDS_TFLITE_H
#define TVMCC_FRONTENDS_TFLITE_H

#include "formats/formats.h"
#include "frontends/calls.h"

/* ---- schema.c: the file, with the fields that are used -------------------------------------------- */

typedef struct {
    FbVector scale, zero_point; /* f32, i64 */
    int64_t  details, axis;
} TfliteQuant;
typedef struct {
    int64_t format, dense_size; /* format 0: all cells, 1: those that are listed */
    int64_t segments_type, indices_type;
    FbTable segments, indices;
} TfliteSparseDim;
typedef struct {
    FbVector order, blocks; /* i32 */
    FbTables dims;          /* TfliteSparseDim */
} TfliteSparsity;
typedef struct {
    FbVector        shape, signature; /* i32; signature: -1 is not known */
    int64_t         type, buffer, is_variable, has_rank, external;
    const char     *name; /* interned, never empty */
    TfliteQuant    *quant;
    TfliteSparsity *sparsity;
} TfliteTensor;
typedef struct {
    int64_t  opcode, options_type, options2_type;
    int64_t  custom_offset, custom_size; /* of custom options behind the FlatBuffer */
    FbVector in, out, between;           /* i32; -1: left out; between: values that are not kept */
    FbTable  options, options2;
    Bytes    custom;
    bool     sets_item, left_out; /* lists.c */
} TfliteOperator;
typedef struct {
    FbTables    tensors, operators; /* TfliteTensor, TfliteOperator */
    FbVector    in, out;            /* i32 */
    const char *name;
} TfliteGraph;
typedef struct {
    int64_t     deprecated, code, version; /* of both codes the larger one counts */
    const char *custom;
} TfliteOpcode;
typedef struct {
    const char *name;
    int64_t     tensor;
} TfliteName;
typedef struct {
    FbTables    in, out; /* TfliteName */
    const char *key;
    int64_t     graph;
} TfliteSignature;
typedef struct {
    Bytes   data;
    int64_t offset, size; /* of data behind the FlatBuffer; 0: there are none */
} TfliteBuffer;
typedef struct {
    int64_t                version;
    FbTables               opcodes, graphs, buffers, signatures;
    Bytes                  file;
    const TfliteGraph     *main;      /* what is compiled */
    const TfliteSignature *signature; /* which names its inputs and outputs; NULL: none does */
} TfliteModel;

#define TFLITE_VERSION 3 /* of the format */

#define TFLITE_STRING 5 /* element type: rows of bytes (frontends/strings.c) */
#define TFLITE_BOOL 6
#define TFLITE_COMPLEX64 8 /* element type: a pair of f32, of which an expression is a tuple */
#define TFLITE_RESOURCE 13 /* element type: a handle of a variable or table */
#define TFLITE_CUSTOM 32   /* code of operators that have a name only */

/* All references lead to something, and `main` is the graph of that signature, the first one if it
 * is NULL; false with errors. */
bool tflite_read(Ctx *c, Loc loc, Bytes file, const char *signature, TfliteModel *out);
/* The names that may be asked for, n of them. */
const char *const *tflite_signatures(Ctx *c, const TfliteModel *m, uint32_t *n);

static inline const TfliteTensor *tflite_tensor(const TfliteGraph *g, int64_t i)
{
    return g->tensors.at[i];
}
static inline int64_t tflite_in_index(const TfliteOperator *p, uint32_t i)
{
    return fb_int_at(p->in, FB_I32, i);
}
static inline int64_t tflite_out_index(const TfliteOperator *p, uint32_t i)
{
    return fb_int_at(p->out, FB_I32, i);
}
const TfliteOpcode *tflite_opcode(const TfliteModel *m, const TfliteOperator *p);
/* The element type of that number, in memory; false: none of ours. */
bool        tflite_dtype(int64_t type, DType *out);
const char *tflite_dtype_name(int64_t type); /* "f32", "string" */
/* The name of input or output tensor i of `main` as its signature has it, else its own. */
const char *tflite_port_name(Ctx *c, const TfliteModel *m, int64_t tensor, bool output);

/* ---- table.c --------------------------------------------------------------------------------------- */

typedef struct TfliteNode TfliteNode;
typedef bool              TfliteConvert(TfliteNode *n);

/* How an operator takes its values. */
typedef enum {
    TFLITE_AS_IS,   /* integers stay integers */
    TFLITE_PAIRS,   /* complex numbers, too */
    TFLITE_PLAIN,   /* quantized values as floats */
    TFLITE_CELLS,   /* .. cell by cell, which broadcast */
    TFLITE_AXES,    /* .. along axes (tflite_axis) */
    TFLITE_IMAGE,   /* .. as the converter asks for them (tflite_image) */
    TFLITE_MOVES,   /* what only moves cells: integers where all are quantized alike, along axes */
    TFLITE_RESHAPE, /* the same, of which the order of dimensions is to stay */
    TFLITE_STRINGS, /* as they are, strings, too */
    TFLITE_STEPS,   /* quantized integers, all alike of 8 or 16 bits, as they are; else CELLS */
    TFLITE_STEP_AXES,   /* .. as TFLITE_AXES */
    TFLITE_SCALED,      /* integers with a scale, of 32 bits, too, as they are; else CELLS */
    TFLITE_SCALED_AXES, /* .. as TFLITE_AXES */
    TFLITE_ALIKE        /* integers where all are quantized alike; else CELLS */
} TfliteHow;

typedef struct {
    uint8_t     set, type; /* the union of the file, the number there */
    const char *name;
    const char
        *fields; /* "padding:i8 stride_w:i32 dilation_w_factor:i32=1", in the order of slots */
} TfliteOptions;

typedef struct {
    int32_t              code;
    const char          *name, *custom; /* custom: the code's name in the file, NULL: builtin */
    int32_t              version;       /* the newest that is known */
    uint32_t             least, most;   /* inputs */
    const TfliteOptions *options;       /* NULL: none */
    TfliteHow            how;
    const char          *relay;
    TfliteConvert       *convert;
} TfliteRow;

extern const TfliteRow tflite_rows[];
extern const uint32_t  tflite_nrows;

const TfliteRow *tflite_row(const TfliteOpcode *code);             /* NULL: there is none */
const char      *tflite_op_name(Ctx *c, const TfliteOpcode *code); /* "CONV_2D" */
const char *tflite_refusal(const TfliteOpcode *code); /* a hint why it has no row; NULL: none */
const TfliteOptions *tflite_options(uint32_t set, int64_t type); /* NULL: not known */
/* The fields that there are, and the one at or called so; false: there is none. */
typedef struct {
    const char *name;
    uint32_t    n; /* bytes of its name */
    uint32_t    slot;
    FbKind      kind;
    bool        vector;
    double      fallback;
} TfliteField;
uint32_t tflite_count_fields(const TfliteOptions *o);
bool     tflite_field(const TfliteOptions *o, const char *name, TfliteField *out);
bool     tflite_field_at(const TfliteOptions *o, uint32_t slot, TfliteField *out);
/* The table of an operator's options, of that union. */
const FbTable *tflite_options_of(const TfliteOperator *p, uint32_t set, int64_t *type);

/* ---- import.c -------------------------------------------------------------------------------------- */

#define TFLITE_MAX_NESTING 24

#define TFLITE_MAX_OPERATORS 1000000 /* converted, as graphs are called again */

typedef struct {
    const char         *name;   /* interned */
    const Expr         *value;  /* NULL: none yet */
    const TfliteTensor *first;  /* what a graph that is called once assigns; NULL: nothing */
    const TfliteTensor *tensor; /* that an operator keeps it in; NULL: a handle stands for it */
    const Expr         *state;  /* the input that it begins a run with; NULL: it is no state */
    uint32_t assigned; /* first by that operator of the main graph, from 1 on; 0: by none */
} TfliteVariable;

typedef struct {
    int64_t     id, distinct;  /* keys, each counted once */
    const Expr *keys, *values; /* constants, [K] or [K, room]; NULL: it is empty */
    bool        text_keys, text_values;
} TfliteTable;

typedef struct TfliteImport {
    Ctx               *c;
    const char        *path;
    const TfliteModel *model;
    uint32_t           ordinal; /* of the top-level operator */
    Shapes             shapes;
    Map               *sizes;     /* values computed from symbolic dimensions alone */
    GlobalDefs         functions; /* loops; those within others first */
    uint32_t           loops;
    uint32_t           converted; /* operators so far */
    VEC(TfliteVariable *) variables;
    VEC(TfliteTable) tables;
    VEC(const Expr *) binds; /* bind_dims that are to stand around what is made */
    bool once;               /* within what runs before the first run */
} TfliteImport;

/* Values of a graph's tensors, NULL: not computed. */
typedef struct {
    TfliteImport      *im;
    const TfliteGraph *g;
    const Expr       **values;
    uint32_t           depth;
} TfliteScope;

struct TfliteNode {
    Build                 b;
    TfliteImport         *im;
    TfliteScope          *scope;
    const TfliteOperator *p;
    const TfliteRow      *row;
    uint32_t              nin, nout;
    const Expr          **in; /* NULL: left out */
    const Expr          **out;
    bool                  moved; /* images of four dimensions are NCHW */
    bool                  raw;   /* quantized values are integers */
};

/* A graph's operators with its inputs being these; its outputs to out. */
bool tflite_subgraph(TfliteNode *n, int64_t graph, uint32_t nin, const Expr *const *in,
                     const Expr **out);
/* The graph of that number; NULL with an error. */
const TfliteGraph *tflite_graph(TfliteNode *n, int64_t graph);

/* ---- control.c ------------------------------------------------------------------------------------- */

/* The states after `count` rounds, which see nothing but their states and constants. */
bool tflite_rounds(TfliteNode *n, const Idx *count, uint32_t nstates, const Expr *const *first,
                   BuildRound *fn, void *user, const Expr **out);

/* ---- variables.c ------------------------------------------------------------------------------------ */

/* The states of the main graph, as inputs; false with an error. */
bool tflite_states(TfliteScope *s, const ImportOptions *o, Loc loc, NamedValues *params);
/* Does the operator keep input i as a state?  What is in it behind the operator; false with an
 * error, true too if it does not. */
bool tflite_is_kept(const TfliteNode *n, uint32_t i);
bool tflite_keep(TfliteNode *n, uint32_t i, const Expr *y);
/* What is in the states behind a run, one result more each. */
bool tflite_states_end(TfliteImport *im, Loc loc, NamedValues *r);

/* ---- complex.c ------------------------------------------------------------------------------------- */

bool tflite_is_complex(const Expr *x);
/* What converts real tensors, for the real and the imaginary parts of those that are complex. */
bool tflite_parts(TfliteNode *n, TfliteConvert *convert);

/* ---- hashtable.c ----------------------------------------------------------------------------------- */

bool tflite_is_string(const TfliteTensor *t);
/* A constant of n strings. */
const Expr *tflite_strings(Ctx *c, const TfliteTensor *t, Bytes data, int64_t n, Loc loc);

/* ---- fixed.c --------------------------------------------------------------------------------------- */

/* A real number: times * 2^(shift - 31). */
typedef struct {
    int64_t times;
    int     shift;
} TfliteFixed;

/* From 0 to 2^30, else an error. */
bool tflite_fixed(const TfliteNode *n, double v, TfliteFixed *out);
#define TFLITE_ANY INT64_MAX
/* x, in i32 and at most so far from 0, times n factors, each of which is for that many columns of
 * the last dimension. */
const Expr *tflite_times(const Build *b, const Expr *x, int64_t most, uint32_t n,
                         const TfliteFixed *f, int64_t each);
/* The same of x * 2^bits, x having up to 9 bits, `bits` being from 15 on, and a factor below 1. */
const Expr *tflite_times_byte(const Build *b, const Expr *x, int bits, const TfliteFixed *f);
const Expr *tflite_rounded(const Build *b, const Expr *x, int bits); /* x / 2^bits */
/* .. bits being numbers from 0 to 31, which broadcast to x. */
const Expr *tflite_rounded_by(const Build *b, const Expr *x, const Expr *bits);
const Expr *tflite_saturated(const Build *b, const Expr *x, DType t); /* within the type */
/* Of x, 16 bits in i32 and in 2^(whole - 15), in 2^-15. */
const Expr *tflite_fixed_sigmoid(const Build *b, const Expr *x, int whole);
const Expr *tflite_fixed_tanh(const Build *b, const Expr *x, int whole);
/* Of x, 0 or below in i32 and in 2^(whole - 31); 1 / (1 + x) of x from 0 to 1: in 2^-31. */
const Expr *tflite_fixed_exp(const Build *b, const Expr *x, int whole);
const Expr *tflite_fixed_reciprocal(const Build *b, const Expr *x);
const Expr *tflite_fixed_product(const Build *b, const Expr *x, const Expr *y); /* the same */
/* For how many of n limits `x op limit` holds, x having one cell along an axis. */
const Expr *tflite_count(const Build *b, const char *op, const Expr *x, int64_t axis, uint32_t n,
                         const int32_t *limits);

/* Cell `at` of a table of n cells and what is `part` of 2^bits on the way from there to the next
 * one, times 2^bits. */
const Expr *tflite_between(const Build *b, const int32_t *cells, int64_t n, const Expr *at,
                           const Expr *part, int bits);
/* 1 / sqrt(x), rows whose root is taken having one cell along an axis: times * 2^-(31 + right). */
typedef struct {
    const Expr *times, *right; /* i64, i32 */
} TfliteRoot;
bool        tflite_inverse_root(const Build *b, const Expr *x, int64_t axis, TfliteRoot *out);
const Expr *tflite_times_root(const Build *b, const Expr *x, const TfliteRoot *root);

/* ---- line.c ---------------------------------------------------------------------------------------- */

/* x times 2^bits and a factor, plus or minus the same of y, both of 8 bits less their zero points;
 * that times another factor, from the zero point of the result on. */
typedef struct {
    TfliteFixed of[2], to;
    int         bits, least, zero, from[2]; /* least: of the type */
    bool        minus;
} TfliteSum;
/* x * times[0] + y * times[1] + add >> bits. */
typedef struct {
    int32_t times[2], add;
    int     bits;
} TfliteLine;
/* Equal for all pairs of bytes, within the bounds of the type; false: none was found. */
bool tflite_line(Ctx *c, const TfliteSum *s, TfliteLine *out);

/* ---- functions.c ----------------------------------------------------------------------------------- */

/* What the first result may be, between two real numbers. */
void tflite_bounds(const TfliteNode *n, float from, float to, double *lo, double *hi);

/* ---- pairs.c --------------------------------------------------------------------------------------- */

/* The first result in its integers, within the bounds of the fused activation. */
bool tflite_activated_steps(TfliteNode *n, const Expr *y);

/* ---- rows.c ---------------------------------------------------------------------------------------- */

bool tflite_softmax_steps(TfliteNode *n, int64_t axis, double beta);
bool tflite_log_softmax_steps(TfliteNode *n, int64_t axis); /* of 8 bits */
bool tflite_l2_norm_steps(TfliteNode *n, int64_t axis);

/* ---- hybrid.c -------------------------------------------------------------------------------------- */

/* Is input x in floats, and input w constant and of 8 bits around 0, with one scale or one for each
 * unit along that axis? */
bool tflite_is_hybrid(const TfliteNode *n, uint32_t x, uint32_t w, int64_t axis);
/* Cells of x in 8 bits, in i32, along the axes by their range: (q - zero) * scale; zero is NULL for
 * 0.  Cells that are 0 stay so. */
typedef struct {
    const Expr *q, *scale, *zero;
} TfliteRows;
bool tflite_by_range(const Build *b, const Expr *x, uint32_t n, const int64_t *axes, bool both_ends,
                     TfliteRows *out);
/* The scales of input i, one or for each of the units, which are axis 1 of a result. */
const Expr *tflite_unit_scales(const TfliteNode *n, uint32_t i, uint32_t rank);
/* In floats, sums y [N, units, ..] of products of rows with w, in i32. */
const Expr *tflite_hybrid_sums(const Build *b, const Expr *y, const TfliteRows *rows, const Expr *w,
                               const Expr *scales);
/* x [N, K] in 8 bits, row by row, times w [units, K]. */
const Expr *tflite_hybrid_dense(const Build *b, const Expr *x, const Expr *w, const Expr *scales,
                                bool both_ends);

/* ---- window.c -------------------------------------------------------------------------------------- */

/* What a graph does to two values, as an operator of Relay: "add"; "update" is the second one. */
const char *tflite_reducer(TfliteNode *n, int64_t graph);

/* ---- survey.c -------------------------------------------------------------------------------------- */

/* False with errors, all at once, if some operator cannot be what it says. */
bool        tflite_survey(TfliteImport *im);
const char *tflite_node_name(const TfliteGraph *g, const TfliteOperator *p);

/* ---- lists.c --------------------------------------------------------------------------------------- */

void                   tflite_find_lists(TfliteImport *im, TfliteGraph *g);
extern const TfliteRow tflite_item_row; /* of operators that set an item: (list, item, number) */

/* ---- tensor.c -------------------------------------------------------------------------------------- */

/* The value of a tensor that has one in the file; NULL without an error: it has none. */
const Expr *tflite_constant(TfliteImport *im, const TfliteTensor *t, Loc loc);
bool        tflite_is_constant(const TfliteModel *m, const TfliteTensor *t);
bool        tflite_is_quantized(const TfliteTensor *t);
bool        tflite_same_quantization(const TfliteTensor *a, const TfliteTensor *b);
/* Of values of that tensor; `axis` is where its channels are now. */
const Expr *tflite_dequantize(const Build *b, const TfliteTensor *t, const Expr *q, int64_t axis);
const Expr *tflite_quantize(const Build *b, const TfliteTensor *t, const Expr *x, int64_t axis);
int64_t     tflite_scales(const TfliteTensor *t);
double      tflite_scale(const TfliteTensor *t, int64_t i);
int64_t     tflite_zero(const TfliteTensor *t, int64_t i);

/* ---- node.c ---------------------------------------------------------------------------------------- */

#define tflite_error(n, ...) build_error(&(n)->b, __VA_ARGS__)

const TfliteTensor *tflite_in(const TfliteNode *n, uint32_t i);
const TfliteTensor *tflite_out(const TfliteNode *n, uint32_t i);
bool                tflite_has(const TfliteNode *n, uint32_t i);
/* Fields of the options. */
int64_t      tflite_int(const TfliteNode *n, const char *name);
double       tflite_float(const TfliteNode *n, const char *name);
Ints         tflite_int_list(const TfliteNode *n, const char *name);
const char  *tflite_text(const TfliteNode *n, const char *name); /* "" for none */
const float *tflite_float_list(const TfliteNode *n, const char *name, int64_t *count);
/* What row->how says of the values, and their results: n->in, n->moved, n->raw. */
bool tflite_prepare(TfliteNode *n);
bool tflite_finish(TfliteNode *n);
bool tflite_done(TfliteNode *n, const Expr *y); /* is the first output */
/* Input i in floats, NCHW; of four dimensions, or an error. */
const Expr *tflite_image(TfliteNode *n, uint32_t i);
/* .. as it is in the file. */
const Expr *tflite_integer_image(TfliteNode *n, uint32_t i);
/* Input 0 is quantized, and all that are quantized are so alike: their integers can be compared. */
bool tflite_steps_alike(const TfliteNode *n);
/* Input i in floats as it lies. */
const Expr *tflite_value(TfliteNode *n, uint32_t i);
/* e, computed from the constant that input i is, as a constant of its name where it is small. */
const Expr *tflite_folded(const TfliteNode *n, uint32_t i, const Expr *e);
/* The first output as NCHW, behind the fused activation. */
bool        tflite_image_done(TfliteNode *n, const Expr *y);
const Expr *tflite_activate(TfliteNode *n, const Expr *y);
const Expr *tflite_activated(const TfliteNode *n, int64_t how, const Expr *y); /* that function */
bool        tflite_rank(const TfliteNode *n, uint32_t i, uint32_t least, uint32_t most);
/* An axis of input i, which may be negative, in its dimensions as they lie now. */
bool tflite_axis(const TfliteNode *n, int64_t axis, uint32_t rank, uint32_t *out);
/* The numbers of an input that has to be known; as forms over dimensions. */
bool tflite_ints(const TfliteNode *n, uint32_t i, Ints *out);
bool tflite_number(const TfliteNode *n, uint32_t i, int64_t *out);
bool tflite_forms(const TfliteNode *n, uint32_t i, Dims *out);

/* ---- nn.c ------------------------------------------------------------------------------------------ */

/* Rows, columns. */
typedef struct {
    int64_t kernel[2], stride[2], dilation[2], begin[2], end[2];
} TfliteWindow;

/* As the options `padding`, `stride_h` and `stride_w` have it, of an image in NCHW. */
bool tflite_window(const TfliteNode *n, const Expr *x, const int64_t *kernel,
                   const int64_t *dilation, TfliteWindow *w);
Ints tflite_pads(const Build *b, const TfliteWindow *w);

/* The converters of ops.def. */
#define none NULL
#define TFLITE(code, name, least, most, options, how, relay, convert) TfliteConvert convert;
#define TFLITE_CUSTOM_OP(name, version, least, most, how, relay, convert) TfliteConvert convert;
#include "frontends/tflite/ops.def"
#undef TFLITE
#undef TFLITE_CUSTOM_OP
#undef none

#endif
