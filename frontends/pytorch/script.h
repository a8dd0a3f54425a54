/* TorchScript: what torch.jit.save writes, a zip whose program is text, to a Relay module.
 *
 *     NAME/code/__torch__/..py   classes and functions, in a small Python
 *     NAME/data.pkl              the module: objects, their attributes
 *     NAME/data/0 ..             cells of its tensors, stored
 *     NAME/constants.pkl, NAME/constants/0 ..
 *                                tensors that the code calls CONSTANTS.c0
 *
 *   script_token.c   text to tokens            script_parse.c   tokens to trees
 *   script_load.c    classes, functions        script_object.c  pickles to objects
 *   script_early.c   modules before torch 1.3
 *   script_run.c     statements                script_expr.c    expressions
 *   script_call.c    calls of operators, methods and functions
 *   script_value.c   values                    script_flow.c    what values of the run decide
 *   script_number.c script_list.c script_packed.c   functions of numbers, lists and packed
 *                    parameters (script.def)
 *   script_state.c   attributes that change
 *   script.c         inputs, outputs
 *
 * The program is run once, on values of which some are not known: tensors are expressions of Relay,
 * sizes are forms over dimensions, and all else (attributes of modules, flags, texts, lists) is
 * what it is.  So methods and functions vanish, branches that a flag or a size decides are taken,
 * and loops whose rounds are known are written out.  What is left are calls of aten operators,
 * which the rows of ops.def convert as they do nodes of torch.export; the call's arguments get the
 * names of its schema first.  What values of the run decide becomes control flow of Relay
 * (script_flow.c).
 *
 * An exception that values of the run would raise is taken not to be raised, as what the exporter
 * asserts of a program of torch.export.  Tensors that forward() changes and keeps are states
 * (script_state.c).
 *
 * Pickles are read as data (formats/pickle.c); a class that is neither in the archive nor one of
 * the few that tensors and lists are made of is an error that names it. */
#ifndef TVMCC_FRONTENDS_PYTORCH_SCRIPT_H
#define TVMCC_FRONTENDS_PYTORCH_SCRIPT_H

#include "frontends/pytorch/pytorch.h"

/* ---- script.c ------------------------------------------------------------------------------------ */

const Module *ts_import(Ctx *c, const char *path, Bytes file, const ImportOptions *o);
bool ts_describe(Ctx *c, const char *path, Bytes file, const ImportOptions *o, ModelSignature *out);

/* ---- script_token.c ---------------------------------------------------------------------------- */

typedef enum { TS_END, TS_LINE, TS_NAME, TS_NUMBER, TS_TEXT, TS_SIGN } TsTokenKind;
typedef struct {
    TsTokenKind kind;
    const char *text;   /* NAME, SIGN: interned; NUMBER as it stands; TEXT: what it means */
    uint32_t    indent; /* LINE: of the one that begins */
    uint32_t    line;
} TsToken;

typedef struct {
    uint32_t n;
    TsToken *at; /* the last one is TS_END */
    bool     bad;
    uint32_t bad_line;
} TsTokens;

TsTokens ts_tokens(Ctx *c, Bytes text);

/* ---- script_parse.c ------------------------------------------------------------------------------ */

typedef enum {
    TS_X_NAME,
    TS_X_INT,
    TS_X_FLOAT,
    TS_X_TEXT,
    TS_X_TRUE,
    TS_X_FALSE,
    TS_X_NONE,
    TS_X_ATTR,  /* kids[0].text */
    TS_X_CALL,  /* kids[0](kids[1] ..), names[i] of those that have one */
    TS_X_INDEX, /* kids[0][kids[1]] */
    TS_X_SLICE, /* kids[0][kids[1]:kids[2]], None where a bound is left out */
    TS_X_LIST,
    TS_X_TUPLE,
    TS_X_DICT, /* keys and values by turns */
    TS_X_PICK, /* kids[0] if kids[1] else kids[2] */
    TS_X_NEGATIVE
} TsExprKind;
typedef struct TsExpr TsExpr;
struct TsExpr {
    TsExprKind         kind;
    uint32_t           line, n;
    const char        *text;
    int64_t            i;
    double             f;
    TsExpr           **kids;
    const char *const *names;
    const char        *dotted; /* NAME, ATTR: "torch.nn.functional", if it is names throughout */
};

typedef enum {
    TS_ASSIGN, /* targets = value */
    TS_EVAL,
    TS_IF,
    TS_WHILE,
    TS_FOR, /* targets in value */
    TS_WITH,
    TS_RETURN,
    TS_PASS
} TsStatementKind;
typedef struct TsStatement TsStatement;
typedef struct {
    uint32_t           n;
    const TsStatement *at;
} TsBlock;
struct TsStatement {
    TsStatementKind kind;
    uint32_t        line;
    bool            unpack; /* a, b = value */
    uint32_t        ntargets;
    TsExpr        **targets;
    TsExpr         *value; /* NULL: none */
    TsBlock         body, other;
};

typedef struct TsClass TsClass;
typedef struct {
    const char        *name;  /* "forward" */
    const char        *where; /* "__torch__.ONet" */
    uint32_t           nparams;
    const char *const *params;
    TsExpr *const     *types;    /* NULL: none */
    TsExpr *const     *defaults; /* NULL: none */
    TsBlock            body;
} TsFunction;
struct TsClass {
    const char        *name;  /* "__torch__.ONet" */
    bool               tuple; /* a NamedTuple, of these fields */
    uint32_t           nfields;
    const char *const *fields;
    TsExpr *const     *values; /* of those that are Final; else NULL */
    uint32_t           nmethods;
    const TsFunction  *methods;
};
typedef struct {
    uint32_t          nclasses, nfunctions;
    const TsClass    *classes;
    const TsFunction *functions;
} TsFile;

#define TS_MAX_DEPTH 200

/* `module` is "__torch__.vision.ssd". */
bool ts_parse(Ctx *c, Loc loc, const char *module, Bytes text, TsFile *out);

/* ---- values -------------------------------------------------------------------------------------- */

typedef enum {
    TS_NOTHING, /* of uninitialized(): nobody reads it */
    TS_UNKNOWN, /* of an operator that is not supported */
    TS_NONE,
    TS_TENSOR,
    TS_BOOL,
    TS_INT,
    TS_FLOAT,
    TS_STRING,
    TS_DEVICE,
    TS_LIST,
    TS_TUPLE,
    TS_DICT,
    TS_OBJECT,
    TS_CALLABLE
} TsKind;
typedef struct TsValue  TsValue;
typedef struct TsItems  TsItems;
typedef struct TsObject TsObject;
struct TsValue {
    TsKind            kind;
    PtTensor         *t;
    const Idx        *form; /* INT, BOOL (0 or 1): as a form; NULL: e */
    double            f;    /* FLOAT */
    const Expr       *e;    /* a number that a run decides */
    const Idx        *size; /* BOOL: it asks whether this is 0 (empty), or above it; else NULL */
    bool              empty;
    const char       *text;   /* STRING */
    TsItems          *items;  /* LIST, TUPLE, DICT (keys and values by turns) */
    TsObject         *object; /* OBJECT; CALLABLE: the one whose method it is */
    const TsFunction *function;
    const TsClass *class; /* CALLABLE: it makes one; TUPLE: whose fields have names */
};
struct TsItems {
    VEC(TsValue) list;
    uint32_t scope; /* of the branch that made it */
};
typedef struct {
    const char *name;
    TsValue     value;
    bool        changed;
} TsField;
struct TsObject {
    const TsClass *class;
    const char *path; /* from the root: "conv1" */
    VEC(TsField) fields;
    uint32_t scope;
};

/* An attribute that a branch or forward() changed, and what it was. */
typedef struct {
    TsObject   *object;
    const char *name;
    TsValue     was;
} TsJournal;

/* An attribute that is an input and a result. */
typedef struct {
    const char *name; /* from the root: "cell.seen" */
    TsObject   *object;
    const char *field;
    const Expr *first;
} TsState;

typedef struct {
    Ctx        *c;
    const char *path;
    Loc         loc;
    PtImport    im;
    const char *root;    /* of the archive, with its '/' */
    Map        *entries; /* interned path -> ZipMember */
    Map        *files;   /* interned "__torch__.vision.ssd" -> TsFile */
    TsItems    *constants;
    uint32_t    ordinal; /* of operators */
    uint64_t    steps;   /* statements so far */
    uint32_t    depth;   /* of calls and expressions */
    uint32_t    loading; /* objects that their own code is making: what it sets is no change */
    Findings    findings;
    VEC(TsJournal) changed; /* attributes: what they were first */
    VEC(TsState) states;
    VEC(TsJournal) journal; /* of the branches that are run */
} Script;

/* One call of a function. */
typedef struct {
    Script           *s;
    const TsFunction *function;
    const char       *path;   /* of the object that it is a method of */
    Map              *values; /* interned name -> TsValue */
    TsValue           result;
    bool              returned;
    bool              raised; /* an exception ended the block */
    const char       *target; /* what is assigned: names of operators */
    uint32_t          line;
} Frame;

void *ts_error(const Frame *f, DiagId id, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* ---- script_value.c ---------------------------------------------------------------------------------- */

TsValue     ts_none(void);
TsValue     ts_int(Script *s, int64_t v);
TsValue     ts_form(const Idx *form);
TsValue     ts_float(double v);
TsValue     ts_bool(Script *s, bool v);
TsValue     ts_text(const char *text);
TsValue     ts_tensor(Script *s, const Expr *e);
TsValue     ts_number(Script *s, const Expr *e); /* that a run decides, or a constant */
TsValue     ts_items(Script *s, TsKind kind, uint32_t n, const TsValue *at);
bool        ts_is_number(const TsValue *v); /* BOOL, INT, FLOAT */
bool        ts_known_int(const TsValue *v, int64_t *out);
bool        ts_known_float(const TsValue *v, double *out);
bool        ts_known_bool(const TsValue *v, bool *out);
const char *ts_kind_text(Script *s, const TsValue *v); /* "a list" */
/* A tensor of no dimension. */
const Expr *ts_number_expr(Frame *f, const TsValue *v);
const Expr *ts_read(Frame *f, const TsValue *v); /* of a tensor or number; NULL with an error */
bool        ts_dims(Frame *f, const TsValue *v, Dims *out); /* of a tensor or number */
bool        ts_same(const TsValue *a, const TsValue *b);    /* surely */
TsField    *ts_field(const TsObject *o, const char *name);
void        ts_put_field(Script *s, TsObject *o, const char *name, TsValue v);

/* ---- script_load.c, script_object.c ------------------------------------------------------------------ */

bool              ts_is_archive(Bytes file);
bool              ts_open(Script *s, Bytes file);
const TsClass    *ts_class(Script *s, const char *name);    /* NULL: none, or an error */
const TsFunction *ts_function(Script *s, const char *name); /* the same */
const TsFunction *ts_method(const TsClass *class, const char *name);
bool              ts_entry(Script *s, const char *name, Bytes *out); /* in the root's folder */
bool              ts_load_module(Script *s, TsValue *out);
bool              ts_load_constants(Script *s);
/* A pickle of the archive, with the folder of its cells; path: what its value is called. */
bool ts_load_pickle(Script *s, const char *pickle, const char *folder, const char *path,
                    TsValue *out);

/* ---- script_state.c ------------------------------------------------------------------------------------ */

/* Attributes that are known to be states become inputs. */
bool ts_take_states(Script *s, TsObject *module, NamedValues *params);
bool ts_check_shapes(Script *s, TsObject *module, const NamedValues *params);
bool ts_find_states(Frame *f); /* those that were set, to s->im.found */
bool ts_add_states(Frame *f, NamedValues *r);
void ts_warn_changed(const Script *s);

/* ---- script_early.c -------------------------------------------------------------------------------------- */

bool ts_is_early(Script *s); /* of torch 1.0 to 1.2 */
bool ts_load_early(Script *s, TsValue *out);

/* ---- script_run.c, script_expr.c, script_call.c, script_flow.c ---------------------------------------- */

bool ts_run(Frame *f, TsBlock block);
bool ts_assign(Frame *f, const TsExpr *target, TsValue v);
bool ts_eval(Frame *f, const TsExpr *x, TsValue *out);
bool ts_call(Frame *f, const TsExpr *x, TsValue *out);
bool ts_call_function(Frame *f, const TsFunction *fn, TsObject *self, uint32_t n,
                      const TsValue *args, const char *const *names, TsValue *out);
/* aten operator, its arguments by place or by name. */
bool ts_operator(Frame *f, const char *target, uint32_t n, const TsValue *args,
                 const char *const *names, TsValue *out);
bool ts_if(Frame *f, const TsStatement *s, const TsValue *cond);
bool ts_loop(Frame *f, const TsStatement *s);
bool ts_truth(Frame *f, TsValue *v); /* as a BOOL */

/* ---- script_packed.c ---------------------------------------------------------------------------------- */

/* The state of a pickled torch.classes.quantized object of that name as packed parameters. */
bool ts_packed(Script *s, const char *class, const TsValue *state, const char *path, TsValue *out);

/* ---- script_number.c, script_list.c, script_packed.c: rows of script.def -------------------------------------------------- */

typedef struct {
    Frame             *f;
    const char        *name; /* "torch.add" */
    uint32_t           n;
    TsValue           *at;
    const char *const *names;
    TsValue           *out;
    bool               pass; /* it is none of these: an operator of tensors */
} TsCall;
typedef bool TsBuiltin(TsCall *k);
TsBuiltin   *ts_builtin(const char *name, uint32_t n); /* NULL: none that takes n arguments */
#define BUILTIN(name, least, most, fn) TsBuiltin fn;
#include "frontends/pytorch/script.def"
#undef BUILTIN

#endif
