/* What the parts of the C backend share.
 *
 *   c.c         the backend
 *   target.c    target strings
 *   dialect.c   how C spells what clike prints
 *   vectors.c   vectors of GNU C: types and functions
 *   codegen.c   the file, from its head to what it exports
 *   data.c      constant data
 *   weights.c   the weights as constants of their own types */
#ifndef TVMCC_BACKENDS_C_H
#define TVMCC_BACKENDS_C_H

#include "backends/backend.h"
#include "backends/clike/clike.h"

typedef struct {
    Ctx                  *c;
    const Plan           *plans;
    const CodegenOptions *o;
    const char           *header; /* hash of the interface; NULL: names without one */
    const char           *upper;  /* the entry, as macros have it */
    ClikeProgram          program;
    Map                  *funcs; /* interned name -> Func */
    Map                  *data;  /* interned name -> Data */
    Map                  *live;  /* names that what is exported leads to */
    TextList              libm;  /* what the text calls of it */
    bool                  nans;  /* the weights have NAN or INFINITY */
} Source;

const Target *c_parse_target(Ctx *c, const char *text);
const char   *c_compiler_options(Ctx *c, const Target *t);

extern const ClikeDialect c_dialect;
const char               *c_type(DType t);
void c_real(StrBuf *s, DType t, double v); /* a constant expression, perhaps of <math.h> */

/* Types of vectors that `body` names, and definitions of functions of them that it calls. */
void c_vectors(Ctx *c, const char *body, StrBuf *types, StrBuf *functions);
bool c_is_vector(const char *name); /* does it end like a type of vectors? */
/* Is the function `name` called in the text for each lane of a vector? */
bool c_calls_lanes(const char *text, const char *name);

const char *c_symbol(Source *s, const char *name);
bool        c_is_text(const Data *d);
const char *c_cells(Source *s, const Data *d); /* type of addresses in it, or NULL */
void        c_data(Source *s, const TirModule *host, StrBuf *out);

/* The struct of the weights, if they are in the file. */
bool c_has_weights(const Source *s);
bool c_weights(Source *s, StrBuf *out);

bool c_source(Ctx *c, const Plan *p, const CodegenOptions *o, const CodegenInfo *info, StrBuf *out);

#endif
