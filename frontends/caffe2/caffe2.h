/* Caffe2: predict_net.pb, the operators, and init_net.pb, which fills their weights, to a Relay
 * module.
 *
 *   proto.c      the messages of caffe2.proto
 *   import.c     the two nets, inputs, results; one operator after another
 *   survey.c     whether the operators are supported, before anything is built
 *   node.c       what converters ask of an operator: arguments, operands, windows
 *   table.c      the table, ops.def
 *   describe.c   inputs, outputs and operators as the files have them
 *   flow.c       branches: nets as arguments
 *   cells.c nn.c boxes.c levels.c keypoints.c shape.c stylizer.c fill.c int8.c
 *                converters by family
 *
 * Values have names, which operators may give anew: a name is the last value that was given to it.
 */
#ifndef TVMCC_FRONTENDS_CAFFE2_H
#define TVMCC_FRONTENDS_CAFFE2_H

#include "formats/formats.h"
#include "frontends/calls.h"

/* ---- proto.c ------------------------------------------------------------------------------------------ */

typedef struct {
    const char *name;
    PbMsgs      op, arg; /* C2OpDef, C2Arg */
    PbTexts     input, output;
} C2Net;
typedef struct {
    const char *name;
    float       f;
    int64_t     i;
    Bytes       s;
    bool        has_f, has_i, has_s;
    PbPacked    floats;
    PbInts      ints;
    PbBlobs     strings;
    C2Net      *net; /* NULL: none */
} C2Arg;
typedef struct {
    const char *name, *type;
    PbTexts     input, output;
    PbMsgs      arg; /* C2Arg */
} C2OpDef;

extern const PbMessage c2_net;

/* ---- table.c ------------------------------------------------------------------------------------------ */

typedef struct C2Node C2Node;
typedef bool          C2Convert(C2Node *n);
typedef struct {
    const char *name, *operands, *roles, *relay;
    C2Convert  *convert;
    const char *args;
} C2Row;

const C2Row *c2_row(const char *type); /* NULL: there is none */
/* How many operands it takes at least and at most (UINT32_MAX: any). */
void c2_operands(const C2Row *r, uint32_t *least, uint32_t *most);
/* Its letter for operand i; 0: it takes none. */
char c2_role(const C2Row *r, uint32_t i);
bool c2_knows(const C2Row *r, const char *arg);
void c2_arg_names(Ctx *c, const C2Row *r, TextList *out);

/* ---- import.c ----------------------------------------------------------------------------------------- */

/* What bytes stand for: (x - zero) * scale. */
typedef struct {
    double  scale;
    int64_t zero;
} C2Scale;

typedef struct {
    Ctx        *c;
    const char *path, *init_path;
    C2Net       net, init;
    Map        *filled; /* names to operators of init_net */
    Map        *values; /* names to expressions, as far as they are computed */
    Map        *scales; /* names to C2Scale, of those that are bytes with a scale */
    Shapes      shapes;
    NamedValues inputs;
    VEC(const Expr *) binds; /* bind_dims that are to stand around the results */
} C2Import;

struct C2Node {
    Build           b;
    C2Import       *im;
    const C2OpDef  *op;
    const C2Row    *row;
    uint32_t        nin, nout;
    const Expr    **in, **out;
    const C2Scale **scales; /* of operands, NULL: it has none */
    C2Scale        *gives;  /* of the first result */
    const char     *order;  /* of images, where the operator does not say it */
};

/* The net of a file, as bytes or as text; false with an error. */
bool c2_read_net(Ctx *c, const char *path, Bytes file, C2Net *out);
/* The file beside predict_net.pb, or the one that the user names; im->init is empty without one. */
bool c2_open_init(C2Import *im, const char *given, ImportFiles *files);
/* Is the name a value that the user gives?  What init_net fills it with is its shape, if anything
 * is. */
bool c2_is_input(const C2Import *im, const char *name, const C2OpDef **fill);
/* Are its cells u8?  Others are f32, if the user does not say. */
bool c2_input_is_bytes(const C2Import *im, const char *name);
/* The shape that a fill says; rank UINT32_MAX: none. */
uint32_t c2_fill_shape(const C2OpDef *fill, InputDim *dims);
/* One operator after another of those that are needed: their results become values.  ordinal: of
 * the operator in whose argument the net is, 0: none. */
bool c2_run(C2Import *im, const C2Net *net, const bool *needed, uint32_t ordinal);
/* False with errors, all at once. */
bool c2_survey(C2Import *im, const bool *needed);

/* ---- flow.c ------------------------------------------------------------------------------------------- */

/* Which operators of a net these results need (interned names), and the names that have to have a
 * value before; it is NULL, or empty. */
bool *c2_needed(Ctx *c, const C2Net *net, const TextList *results, TextList *before);
/* The net of If for a condition that holds, or does not; NULL: it has none. */
const C2Net *c2_branch(const C2OpDef *op, bool yes);
/* All operators of a net, those of nets in their arguments behind each. */
typedef VEC(const C2OpDef *) C2Ops;
void c2_all_ops(Arena *a, const C2Net *net, C2Ops *out);

/* ---- node.c ------------------------------------------------------------------------------------------- */

#define c2_error(n, ...) build_error(&(n)->b, __VA_ARGS__)

const C2Arg *c2_arg_of(const C2OpDef *op, const char *name); /* NULL: it is not given */
bool         c2_has(const C2Node *n, const char *name);
/* Arguments of a kind; the fallback if there is none, and with an error if it is of another kind.
 */
int64_t     c2_int(const C2Node *n, const char *name, int64_t fallback);
double      c2_float(const C2Node *n, const char *name, double fallback);
const char *c2_text(const C2Node *n, const char *name, const char *fallback);
Ints        c2_ints(const C2Node *n, const char *name);
bool        c2_rank(const C2Node *n, uint32_t i, uint32_t least, uint32_t most);
bool        c2_axis(const C2Node *n, int64_t axis, uint32_t rank, uint32_t *out);
bool        c2_done(C2Node *n, const Expr *y);
bool        c2_put(C2Node *n, uint32_t i, const Expr *y);
/* `order` is NHWC; false with an error in *ok: it is neither. */
bool c2_channels_last(const C2Node *n, bool *ok);
/* Operand i, with its channels first. */
const Expr *c2_image(C2Node *n, uint32_t i, uint32_t least, uint32_t most);
/* The first result, from one with its channels first, as `order` has it. */
bool c2_image_done(C2Node *n, const Expr *y);
/* kernel, kernels, kernel_h .. of `dims` dimensions. */
bool c2_window(const C2Node *n, uint32_t dims, BuildWindow *w);
/* A list of sizes by its three spellings: one number, all of them, or one for each of the names
 * `each`. */
bool c2_sizes(const C2Node *n, const char *one, const char *all, uint32_t count,
              const char *const *each, int64_t least, int64_t fallback, int64_t *out);

/* ---- fill.c ------------------------------------------------------------------------------------------- */

/* The argument `shape`, and how many cells that are. */
bool c2_shape(C2Node *n, Ints *shape, int64_t *cells);

/* ---- boxes.c ------------------------------------------------------------------------------------------ */

/* 1 where the last cell belongs to a box (legacy_plus_one), else 0. */
double c2_plus_one(C2Node *n);
/* Numbers of the flags [R] that are set, [k] i64; k becomes the dimension "NAME.0" of a result. */
const Expr *c2_set_flags(C2Node *n, uint32_t result, const Expr *flags);

/* The converters of ops.def. */
#define none NULL
#define C2(name, operands, roles, relay, convert, args) C2Convert convert;
#include "frontends/caffe2/ops.def"
#undef C2
#undef none

#endif
