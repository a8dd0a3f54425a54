/* Reading the text of TIR.  parse_lex.c has the cursor and the names in scope, parse_prim.c
 * expressions, parse_tir.c statements and functions.  The first error sticks: after it every
 * function returns at once, and NULL or zero values mean nothing. */
#ifndef TVMCC_IR_TEXT_PARSE_TIR_H
#define TVMCC_IR_TEXT_PARSE_TIR_H

#include "ir/text/print_tir.h"

enum { MAX_LANES = 1024, MAX_NDIM = 32 };

/* A name in scope: `%x`, or bare for iterators and dims. */
typedef struct {
    const char   *name; /* interned, without % */
    bool          bare;
    const Idx    *value;  /* a variable, iterator or dim */
    const Buffer *buffer; /* or a buffer */
} ParseName;

typedef struct {
    Ctx        *c;
    const char *file, *text, *at;
    int         depth;
    bool        failed;
    VEC(ParseName) names;     /* innermost last */
    VEC(const Prim *) labels; /* of this function */
} Parser;

/* An operand before its type is settled: an index, a bare float literal, or a prim. */
typedef struct {
    const Idx  *x;
    const Prim *p;
    bool        literal;
    double      num;
} Value;

void parse_fail(Parser *p, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Nesting is bounded: input is hostile.  `parse_enter` fails when it is too deep. */
bool parse_enter(Parser *p);
void parse_leave(Parser *p);

void        skip_blank(Parser *p);                      /* blanks and comments */
bool        parse_accept(Parser *p, const char *token); /* words end at a word's end */
bool        parse_expect(Parser *p, const char *token);
const char *parse_word(Parser *p);   /* letters, digits, _ and .; interned */
const char *parse_string(Parser *p); /* "..." ; interned */
int64_t     parse_int(Parser *p);
double      parse_double(Parser *p);
DType       parse_dtype(Parser *p);
bool        is_blank(char ch);
bool        is_word(char ch);             /* letter, digit, _ or . */
bool        starts_number(const char *s); /* a digit */
bool        starts_float(const char *s);  /* 1.5, 1e3, inf, nan(0x..) */

void             declare_var(Parser *p, const char *name, bool bare, const Idx *value);
void             declare_buffer(Parser *p, const char *name, const Buffer *b);
const ParseName *find_name(const Parser *p, const char *name, bool bare);
void             unknown_name(Parser *p, const char *name, bool bare); /* the error, with a hint */

const Idx *parse_idx(Parser *p);
/* An expression; an index or a literal takes the type `like` (NULL: i64, f32). */
const Prim   *parse_prim(Parser *p, const DType *like);
Pred          parse_pred(Parser *p);
const Buffer *parse_buffer_name(Parser *p); /* %b */
/* `[index, .. : lanes]` after the name; gives lanes (the buffer's own without `:`). */
const Idx *const *parse_cell(Parser *p, const Buffer *b, uint16_t *lanes);

/* .member; NULL: failed.  32 bytes are no value, and have an address only. */
const AbiMember *parse_member(Parser *p, const Buffer *b, bool address);

/* parse_host.c */
const char      *parse_symbol(Parser *p); /* @name; "": failed */
const AbiRecord *parse_record(Parser *p); /* whose name stands here, or NULL */
const AbiRecord *parse_sizeof(Parser *p); /* behind `sizeof(` */
const Stmt      *parse_switch(Parser *p); /* after the word */
const Stmt      *parse_return(Parser *p);
const Stmt *parse_put(Parser *p, const Buffer *b, const Idx *const *index); /* .member = prim */
const Stmt *parse_invoke(Parser *p, const Buffer *result); /* after the word; result or NULL */
const Signature *parse_signature(Parser *p);               /* its name; NULL: failed */
Data             parse_data(Parser *p);                    /* after the word */

/* parse_buffer.c */
/* One of n words, by its place; n after an error. */
uint32_t      parse_one_of(Parser *p, const char *const *words, uint32_t n, const char *what);
const Buffer *parse_buffer(Parser     *p,
                           const char *name); /* f32[1,8] halo(..) @const; NULL: failed */

/* mark_text.c: those that stand here, into a LoopData or a Buffer */
void parse_marks(Parser *p, const MarkTable *t, void *of);

/* parse_tir.c */
const Stmt      *parse_braces(Parser *p);    /* { statements } */
Loc              parse_loc(Parser *p);       /* loc(..) if it is there */
const Atom      *parse_dim(Parser *p);       /* what follows the word `dim`; NULL: error */
const TirModule *parse_functions(Parser *p); /* dims and functions, to the end; NULL: failed */

#endif
