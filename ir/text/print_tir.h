/* What the printers of TIR and TE share, and words that parser and verifier use too. */
#ifndef TVMCC_IR_TEXT_PRINT_TIR_H
#define TVMCC_IR_TEXT_PRINT_TIR_H

#include "ir/tir/intrin.h"

const char *scope_text(Scope s);                         /* "reg" */
const char *func_kind_text(FuncKind k);                  /* "kernel" */
const char *bind_axis_text(BindAxis a);                  /* "threadIdx.x" */
const char *math_text(MathFn fn);                        /* "exp" */
void        float_print(StrBuf *out, DType t, double v); /* 1.0, inf, nan(0x7fc00000) */

/* ---- the printer ------------------------------------------------------------------------------ */

typedef struct {
    const void *key;  /* Atom or Buffer */
    const char *text; /* with its sigil */
} Named;

typedef struct {
    Ctx     *c;
    StrBuf  *out;
    int      depth;
    bool     positional; /* for hashes: names by position, no locations */
    bool     bare;       /* no locations */
    bool     fragment;   /* names that nothing declares are variables, not dims */
    uint32_t next;       /* position */
    Map     *text, *used;
    VEC(Named) names; /* visible ones, for the end of a scope */
    VEC(const Atom *) dims;
    const Idx *now;     /* the index being printed */
    bool       labels;  /* what an expression has several times has one */
    bool       within;  /* an expression is being printed */
    Map       *shared;  /* prim to what print_prim.c knows of its label; NULL: there are none */
    uint32_t   nlabels; /* in this function */
} Printer;

Printer     printer_new(Ctx *c, StrBuf *out);
const char *printer_clean_name(Printer *p, const char *name); /* letters, digits, _ and . */
/* A unique text for key (Atom or Buffer), from here to the end of the scope; the sigil is % or "".
 */
const char *printer_declare(Printer *p, const void *key, const char *sigil, const char *name);
void printer_end_scope(Printer *p, uint32_t mark); /* forget what came after names.n == mark */
void printer_finish(Printer *p, StrBuf *out);      /* the dims, then what was printed */
const char *print_buffer_name(Printer *p, const Buffer *b);
void        print_idx(Printer *p, const Idx *x);
void        print_indices(Printer *p, uint32_t n, const Idx *const *x);
void        print_prim(Printer *p, const Prim *e, int prec); /* prec 0: no parentheses */
const char *print_atom_name(void *user, const Atom *a);      /* user: the Printer */
const char *idx_text(Printer *p, const Idx *x);
void        print_pred(Printer *p, Pred q);
void        print_cell(Printer *p, const Buffer *b, const Idx *const *index, uint16_t lanes);
void        print_member(Printer *p, const Buffer *b, const Idx *const *index, const AbiMember *m);
void        print_buffer_type(Printer *p, const Buffer *b);
void        print_loc(Printer *p, Loc loc);
void        print_body(Printer *p, const Stmt *s);                       /* { .. } */
void        print_marks(Printer *p, const MarkTable *t, const void *of); /* of a loop or buffer */

/* The last value a loop variable can take, as ranges tell; `end` = lo + extent. */
static inline int64_t loop_last(const Idx *end, const Idx *lo)
{
    return end->hi - 1 < lo->lo ? lo->lo : end->hi - 1;
}

#endif
