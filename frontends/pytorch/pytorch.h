/* PyTorch: what torch.export saves, a .pt2 archive, to a Relay module; TorchScript is in script.h.
 *
 *   archive.c   the zip: the program as JSON, and the payloads that its names lead to
 *   saved.c     tensors in pickles, with their cells beside them: what torch.save writes
 *   program.c   the JSON as structs: graphs, their values, the signature
 *   symbols.c   sizes as the program writes them: Symbol('s77', ..), Mul(Integer(2), ..)
 *   table.c     the rows of ops.def           survey.c    all nodes before anything is built
 *   describe.c  inputs, outputs, operators    constant.c  payloads as constants
 *   import.c    the signature, and one node after another
 *   alias.c     views, and what changes a tensor in place
 *   cells.c     tensors of complex numbers, and quantized ones
 *   node.c      what converters ask of a node: arguments by name
 *   math.c reduce.c nn.c einsum.c pool.c norm.c shape.c part.c index.c make.c random.c attention.c
 *   recurrent.c size.c region.c cell.c chosen.c encoder.c find.c sample.c instances.c backward.c
 * complex.c quantized.c control.c    *               converters by family
 *
 * A .pt2 archive is a zip with a folder in which lie
 *
 *     archive_format                   "pt2"
 *     models/NAME.json                 the program
 *     data/weights/NAME_weights_config.json
 *                                      name of a parameter: its entry, type, shape, strides
 *     data/weights/weight_0 ..         cells, stored, of one or many parameters
 *     data/constants/NAME_constants_config.json
 *                                      the same of tensors that the code has
 *
 * (archive.c tells of those before torch 2.8).  Weights are views of the mapped file.  Pickles are
 * read as data, where weights are among it; sample inputs and custom objects are never read.
 *
 * Sizes.  A size of an input that is a symbol is a symbolic dimension with the bounds of the
 * program's range constraints; --dim and --shape win over them.  Nodes that compute sizes
 * (aten.sym_size.int, _operator.mul) are forms over them (Idx) and never become code.
 *
 * Values.  What torch.export gives may still change tensors in place, views of others too.  A value
 * is a PtTensor, which several names share after an operation in place; a view knows what it is a
 * view of and the node that made it, so a change of the view is written back to its base, and a
 * change of the base makes the view anew when it is read next (alias.c).  A buffer that the graph
 * changes is a state: an input of its name, and a result NAME_out.
 *
 * Names.  Inputs are called as the program does, after the arguments of forward(); results by the
 * key of the dictionary that they are in, or by their place: output_0.
 *
 * A converter asks for arguments by the names of the operator's schema and stores Relay expressions
 * in n->out; false after an error.  Types of operands are promoted as PyTorch does it: a scalar or
 * a tensor without dimensions does not widen others of its kind. */
#ifndef TVMCC_FRONTENDS_PYTORCH_H
#define TVMCC_FRONTENDS_PYTORCH_H

#include "formats/formats.h"
#include "frontends/calls.h"

/* ---- archive.c ------------------------------------------------------------------------------------ */

typedef struct {
    const char *name; /* "conv1.weight", as the program has it */
    const char *path; /* of an entry of the archive */
    bool        pickled;
    DType       dtype;
    bool        known;   /* dtype is one of ours */
    bool        complex; /* pairs of dtype */
    bool        scaled;  /* quantized */
    int64_t     dtype_number;
    Ints        sizes, strides;
    int64_t     offset; /* in cells */
    Bytes       data;   /* of the whole entry */
} PtPayload;

typedef struct {
    Bytes program; /* JSON */
    VEC(PtPayload *) payloads;
} PtArchive;

bool pt_is_archive(Bytes file);
/* Interned name -> ZipMember, of all that are in a zip; NULL with an error, also of weights whose
 * bytes are in the other order. */
Map *pt_entries(Ctx *c, Loc loc, Bytes file);
bool pt_read_archive(Ctx *c, Loc loc, Bytes file, PtArchive *out);
bool pt_dtype(int64_t number, DType *out);       /* of the programs' ScalarType */
bool ts_scalar_type(int64_t number, DType *out); /* of TorchScript's, which is another */

/* ---- saved.c ---------------------------------------------------------------------------------------- */

/* A call of _rebuild_tensor_v2 and its sisters: all but the data, of an entry called out->path.
 * out->name is said in errors. */
bool pt_pickled_tensor(Ctx *c, Loc loc, const Pickle *p, PtPayload *out);
/* The tensors of what torch.save wrote, a dictionary, by their keys. */
bool pt_read_saved(Ctx *c, Loc loc, Bytes zip, PtArchive *out);

/* ---- program.c ------------------------------------------------------------------------------------- */

typedef struct PtGraph PtGraph;
typedef struct PtArg   PtArg;
typedef struct PtValue PtValue;
typedef enum {
    PT_NONE,
    PT_TENSOR, /* of that name */
    PT_SYMBOL, /* a number that is a value of the graph, of that name */
    PT_INT,
    PT_FLOAT,
    PT_BOOL,
    PT_STRING,
    PT_DTYPE,
    PT_FORMAT,
    PT_LAYOUT,
    PT_DEVICE,
    PT_LIST,
    PT_GRAPH,
    PT_OTHER /* text: its name in the file */
} PtKind;
struct PtArg {
    PtKind      kind;
    const char *text;
    int64_t     i; /* also of a float that is one */
    double      f;
    uint32_t    n;
    PtArg      *at;
    PtGraph    *graph;
    PtValue    *value; /* TENSOR, SYMBOL: this one, whatever the name */
};

typedef struct PtRow PtRow;
typedef struct {
    const char  *target, *name; /* "aten.conv2d.default", "conv2d_1" */
    uint32_t     ordinal, nin, nout;
    const char **names; /* of its arguments */
    PtArg       *in, *out;
    const PtRow *row;
    bool         in_place; /* it changes its first argument */
} PtOp;

typedef struct {
    DType     dtype;
    bool      known; /* dtype and the layout are among ours */
    int64_t   dtype_number;
    uint32_t  ndim;
    InputDim *dims;
} PtMeta;

struct PtGraph {
    uint32_t nin, nout, nops;
    PtArg   *in, *out;
    PtOp    *ops;
    Map     *metas; /* interned name -> PtMeta */
};

typedef enum { PT_USER, PT_PARAMETER, PT_BUFFER, PT_CONSTANT, PT_UNUSED, PT_UNKNOWN } PtInputKind;
typedef struct {
    PtInputKind kind;
    PtArg       arg;
    const char *name; /* of the payload; PT_UNKNOWN: of the kind in the file */
} PtInput;
typedef enum { PT_RESULT, PT_CHANGED, PT_OTHER_OUTPUT } PtOutputKind;
typedef struct {
    PtOutputKind kind;
    PtArg        arg;
    const char  *name; /* of the result; of what is changed; of the kind in the file */
} PtOutput;
typedef struct {
    const char *name;
    int64_t     lo, hi;
} PtRange;

typedef struct {
    PtGraph graph;
    int64_t major, minor; /* of the schema */
    VEC(PtInput) inputs;
    VEC(PtOutput) outputs;
    VEC(PtRange) ranges;
} PtProgram;

#define PT_SCHEMA_MAJOR 8
#define PT_MAX_NESTING 24

bool pt_read_program(Ctx *c, Loc loc, Bytes json, PtProgram *out);

/* ---- symbols.c -------------------------------------------------------------------------------------- */

/* A size as the program writes it, as "2*s77+1"; NULL: it is no such form. */
const char *pt_symbol_text(Arena *a, const char *srepr);

/* ---- table.c ---------------------------------------------------------------------------------------- */

typedef struct PtNode PtNode;
typedef bool          PtConvert(PtNode *n);

/* Has the result the memory of the first argument?  If so, how a change of it goes back. */
typedef enum {
    PLAIN,    /* no */
    MAYBE,    /* it hangs on strides */
    VIEW,     /* yes, and there is no way back */
    RESHAPED, /* the same cells in another shape */
    SWAPPED,  /* the same operator undoes it */
    PERMUTED, /* .. with the inverse order */
    SLICED,   /* a part: SCATTER of the same arguments */
    SELECTED
} PtAlias;

struct PtRow {
    const char *name;      /* "aten.add" */
    const char *overloads; /* "Tensor Scalar" */
    const char *args;      /* in order of their places; see ops.def */
    PtAlias     alias;
    const char *relay;
    PtConvert  *convert;
};
extern const PtRow    pt_rows[];
extern const uint32_t pt_nrows;

/* The row of "aten.relu_.default", too, which changes its first argument. */
const PtRow *pt_row(const char *target, bool *in_place);
/* What a network could do instead of an operator without a row (refused.def); NULL: nothing is
 * known.
 */
const char *pt_instead_of(const char *target);
bool        pt_row_has(const PtRow *row, const char *arg, bool *ignored);

/* One word of PtRow.args. */
typedef struct {
    const char *name; /* n bytes */
    size_t      n;
    bool        ignored;
    char        kind;  /* behind ':', 0: any */
    bool        end;   /* it is the '|' between alternatives */
    bool        named; /* it is the '*' before those that are given by name */
} PtSlot;
bool pt_next_slot(const char **at, PtSlot *out);
/* The row of an operator whose arguments have places, or names where they are given so; the names
 * of all are put into op->names.  NULL: none fits, or (!known) there is no such operator. */
const PtRow *pt_match(Ctx *c, PtOp *op, bool *known);

/* ---- import.c --------------------------------------------------------------------------------------- */

/* What the cells of a tensor stand for (cells.c). */
typedef enum {
    PT_REAL,
    PT_COMPLEX,  /* e [.., 2]: real and imaginary parts */
    PT_QUANTIZED /* e: integers */
} PtCells;
typedef struct {
    const Expr *scale, *zero; /* f32, and of the integers' type; [] or [C] */
    int64_t     axis;         /* of C; -1: none */
} PtScale;

typedef struct PtTensor PtTensor;
struct PtTensor {
    PtCells        cells;
    const PtScale *scale; /* QUANTIZED */
    const Expr    *e;     /* NULL: it is read from its base first */
    PtTensor      *base;
    const PtOp    *made;     /* of a view: by this node */
    uint32_t       out;      /* .. as this output */
    uint32_t       version;  /* how often it was changed */
    uint32_t       of_base;  /* the base's version when it was read */
    bool           maybe;    /* of the base: it has its memory or not */
    bool           spoilt;   /* what may be its memory was changed by another name */
    uint32_t       scope;    /* of the branch that made it; 0: none */
    const char    *constant; /* the buffer or parameter that it is */
    const char    *input;    /* the user's input that it is */
};

struct PtValue {
    PtTensor   *t;    /* a tensor */
    const Idx  *form; /* a number that is known as a form over dimensions */
    const Expr *e;    /* a number that is not: a tensor of no dimension */
    bool        list;
    uint32_t    n; /* a list */
    PtValue    *at;
};

typedef struct PtImport {
    Ctx             *c;
    const char      *path;
    const PtProgram *program;
    Shapes           shapes;
    Map             *values; /* interned name -> PtValue */
    Map             *metas;  /* of the graph that is read */
    uint32_t         depth;  /* of graphs in graphs */
    uint32_t         scope;  /* of the branch that is read; 0: none */
    uint32_t         scopes; /* branches so far */
    bool             script; /* it is TorchScript: element types have its numbers */
    GlobalDefs       functions;
    Map             *states; /* interned names of buffers that the program changes */
    Map             *found;  /* TorchScript: those that this run finds; else NULL */
    VEC(const char *) bound; /* names of dimensions that a run decides */
    VEC(const Expr *) binds; /* bind_dims that are to stand around what is made */
} PtImport;

typedef enum { PT_AS_IS, PT_REAL_PARTS, PT_IMAGINARY_PARTS, PT_INTEGERS, PT_MEANT } PtHow;
struct PtNode {
    Build           b;
    PtImport       *im;
    const PtOp     *p;
    const char     *relay;
    PtValue        *out;
    uint32_t        nout;
    bool           *read; /* of each of its arguments */
    uint32_t        errors;
    const PtTensor *self;  /* instead of the first argument: a view is made anew */
    PtHow           how;   /* what it sees of tensors whose cells are not real */
    bool            mixed; /* PARTS: real tensors are complex numbers, too, not positions */
};

PtValue *pt_value(PtImport *im, const char *name);
PtValue *pt_value_of(PtImport *im, const PtArg *a); /* NULL: it is not computed yet */
PtNode   pt_node(PtImport *im, const PtOp *p);
bool     pt_convert(PtNode *n); /* without what it does to other values */
/* One node, with all that it does; its results to out, of p->nout values. */
bool pt_run(PtImport *im, const PtOp *p, PtValue *out);
/* A graph whose inputs are these values; its outputs to out. */
bool pt_region(PtNode *n, const PtGraph *g, uint32_t nin, PtValue *const *in, PtValue *out);

/* ---- control.c -------------------------------------------------------------------------------------- */

const char *pt_loop_name(PtImport *im, const char *kind); /* of the next function */

/* ---- survey.c --------------------------------------------------------------------------------------- */

bool pt_survey(PtImport *im, PtGraph *g); /* the rows of all nodes; false with errors */

/* ---- alias.c ---------------------------------------------------------------------------------------- */

PtValue pt_tensor_value(Ctx *c, const Expr *e);
/* What it is now, whatever its cells stand for; NULL with an error at the node that reads it. */
const Expr *pt_read(PtNode *n, PtTensor *t);
/* t becomes e, and so does what it is a view of. */
bool pt_write(PtNode *n, PtTensor *t, const Expr *e);
/* What the model keeps by that name may change: the program is read again with it as an input. */
bool pt_becomes_state(PtImport *im, const char *name);
/* The results of n as views of its first argument, if they are. */
void pt_note_views(PtNode *n);
/* part.c: x with `part` where a slice or selection of it was. */
const Expr *pt_scattered(PtNode *n, bool slice, const Expr *x, const Expr *part);

/* ---- cells.c, complex.c, quantized.c ------------------------------------------------------------------ */

bool            pt_has_cells(PtNode *n);     /* is one of its tensors complex or quantized? */
bool            pt_convert_cells(PtNode *n); /* of such a node */
const PtTensor *pt_given(PtNode *n, const PtArg *a); /* NULL: it is no tensor */
const Expr     *pt_real(PtNode *n, PtTensor *t); /* pt_read; an error if its cells are not real */
/* What the node sees of t, whose cells are e. */
const Expr *pt_meant(PtNode *n, const PtTensor *t, const Expr *e);
enum {
    PT_COMPLEX64 = 10,
    TS_COMPLEX64 = 9
}; /* element types, as pt_dtype and ts_scalar_type number them */
bool       pt_makes_complex(PtNode *n); /* is it a cast to complex numbers? */
bool       pt_to_complex(PtNode *n);
PtConvert *pt_complex_form(PtConvert *fn); /* NULL: none */
bool       pt_knows_complex(PtConvert *fn);
bool       pt_knows_quantized(PtConvert *fn);

/* Packed parameters are lists of so many items. */
enum { PT_PACKED_CONV = 8, PT_PACKED_LINEAR = 2 };
bool pt_quantized_type(int64_t number, DType *out); /* of TorchScript's qint8 and its sisters */
const PtScale *pt_scale(const Build *b, double scale, int64_t zero, DType t);
const Expr    *pt_dequantized(const Build *b, const Expr *x, const PtScale *s);
const Expr    *pt_quantized(const Build *b, const Expr *x, const PtScale *s, DType t);

/* ---- constant.c ------------------------------------------------------------------------------------- */

/* Of complex numbers: [.., 2]. */
const Expr *pt_constant(Ctx *c, Loc loc, const PtPayload *p);

/* ---- node.c ----------------------------------------------------------------------------------------- */

void        *pt_error(const PtNode *n, DiagId id, const char *fmt, ...) PRINTF_LIKE(3, 4);
const PtArg *pt_arg(PtNode *n, const char *name); /* NULL: left out, or None */
bool         pt_has(PtNode *n, const char *name);
/* False, with an error: what the operator does in training is random. */
bool pt_for_training(PtNode *n);
/* NULL with an error, or without one where the argument may be left out (`maybe`). */
const Expr *pt_tensor(PtNode *n, const char *name);
bool        pt_maybe(PtNode *n, const char *name, const Expr **out);
bool        pt_tensors(PtNode *n, const char *name, uint32_t *count, const Expr ***out);
int64_t     pt_int(PtNode *n, const char *name, int64_t fallback);
double      pt_float(PtNode *n, const char *name, double fallback);
bool        pt_bool(PtNode *n, const char *name, bool fallback);
const char *pt_string(PtNode *n, const char *name, const char *fallback);
bool        pt_ints(PtNode *n, const char *name, Ints *out); /* false: left out, or an error */
/* `count` numbers: as many, one for all, or none: the fallback for all. */
bool       pt_numbers(PtNode *n, const char *name, uint32_t count, int64_t fallback, int64_t *out);
bool       pt_forms(PtNode *n, const char *name, Dims *out);
const Idx *pt_form(PtNode *n, const char *name, const Idx *fallback); /* NULL with an error */
bool       pt_type(PtNode *n, const char *name, DType fallback, DType *out);
/* An axis that counts from the end if it is below 0. */
bool pt_axis(PtNode *n, int64_t at, uint32_t rank, uint32_t *out);
bool pt_axes(PtNode *n, Ints v, uint32_t rank, int64_t *out); /* each once */
bool pt_done(PtNode *n, const Expr *e);
bool pt_done_at(PtNode *n, uint32_t i, const Expr *e);
bool pt_done_list(PtNode *n, uint32_t count, const Expr *const *es);
bool pt_done_form(PtNode *n, const Idx *form);

/* A tensor or a scalar, as an operand of arithmetic. */
typedef struct {
    const Expr *e;      /* of a scalar: NULL until its type is known */
    int         kind;   /* of its type: 0 bool, 1 integers, 2 floats */
    bool        scalar; /* a number of the program */
    double      v;
    int64_t     i;
} PtOperand;
bool  pt_operand(PtNode *n, const char *name, PtOperand *out);
DType pt_promoted(uint32_t count, const PtOperand *v);
/* The operand in that type. */
const Expr *pt_as(PtNode *n, const PtOperand *v, DType t);
int         pt_dtype_kind(DType t);
DType       pt_join(DType a, DType b); /* torch.promote_types */

/* ---- converters ------------------------------------------------------------------------------------- */

#define none NULL
#define ATEN(name, overloads, args, alias, relay, convert) PtConvert convert;
#include "frontends/pytorch/ops.def"
#undef ATEN
#undef none

/* Shared between families. */
const Expr *pt_matmul(PtNode *n, const Expr *x, const Expr *y);
const Expr *pt_linear(PtNode *n, const Expr *x, const Expr *w, const Expr *bias);
const Expr *pt_reshape(PtNode *n, const Expr *x, Dims size); /* one of them may be -1 */
const Expr *pt_softmax(PtNode *n, const char *op, const Expr *x, int64_t axis);
const Expr *pt_expand(PtNode *n, const Expr *x, Dims size);
const Expr *pt_flat(const Build *b, const Expr *x); /* in one dimension */
/* How many numbers of the rows `sorted` lie before each of x; right: or are equal to it. */
const Expr *pt_count_before(const Build *b, const Expr *sorted, const Expr *x, bool right);
/* Of cells that are not 0, [k, rank]; k, the run says. */
const Expr *pt_positions(PtNode *n, const Expr *x);
/* The options' shapes, whose dimensions NODE.0 are looked for when all nodes were built. */
Shapes pt_shapes(Ctx *c, const ImportOptions *o);
/* The dimension that holds this number, `total` of shape [1], 1 at least; of what size it may be,
 * --dim says, or it is the usual one, with a warning.  NULL with an error. */
const Idx *pt_decided_dim(PtNode *n, const Expr *total, int64_t usual);
/* The rows of x that the flags [rows] name; how many, the run says. */
const Expr *pt_found(PtNode *n, const Expr *x, const Expr *flags);

#endif
