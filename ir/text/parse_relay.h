/* What the parts of Relay's parser share.
 *
 *   parse_relay_type.c   characters, types, places, numbers
 *   parse_relay_expr.c   expressions, functions
 *   parse_relay.c        declarations, modules, the side file */
#ifndef TVMCC_IR_TEXT_PARSE_RELAY_H
#define TVMCC_IR_TEXT_PARSE_RELAY_H

#include "ir/text/relay_text.h"

#define MAX_NEST 200

typedef struct {
    const char *name; /* interned; numbered ones with their % */
    void       *was;  /* what the name meant outside */
} Binding;

typedef struct {
    Ctx        *c;
    const char *file, *start, *at, *line_start, *end;
    uint32_t    line, nest;
    Map        *locals; /* interned name to Expr */
    VEC(Binding) bindings;
    Map *consts;  /* interned name to Const */
    Map *dims;    /* interned name to Idx */
    Map *adts;    /* interned name to Adt */
    Map *ctors;   /* interned name to Ctor */
    Map *tvars;   /* type variables of the declaration being read, or NULL */
    Map *globals; /* interned name to its type, once known */
    Map *side;    /* hash of a sha256 to Bytes of the side file */
    VEC(GlobalDef) funcs;
    VEC(const Adt *) adt_list;
    VEC(const char *) outputs;
    Sha256 sha;
    DType  products;
} Parser;

typedef VEC(const Type *) TypeVec;

#define FAIL(p, ...) error_at((p)->c, E_PARSE_TEXT, rp_here(p), __VA_ARGS__)

/* ---- parse_relay_type.c: false or NULL with an error recorded ------------------------------- */

Loc         rp_here(const Parser *p);
void        rp_skip(Parser *p); /* blanks and comments */
bool        rp_peek(Parser *p, const char *token);
bool        rp_accept(Parser *p, const char *token);
bool        rp_expect(Parser *p, const char *token);
const char *rp_found(Parser *p);                       /* what stands here, for messages */
bool        rp_peek_word(Parser *p, const char *word); /* not the beginning of a longer name */
bool        rp_accept_word(Parser *p, const char *word);
const char *rp_ident(Parser *p);
const char *rp_string(Parser *p);
const char *rp_name(Parser *p); /* after a sigil: an identifier or a string */
bool        rp_u64(Parser *p, uint64_t *v);
bool        rp_u32(Parser *p, uint32_t *v);
bool        rp_i64(Parser *p, int64_t *v);
bool        rp_sha(Parser *p, Sha256 *out);
bool        rp_enter(Parser *p); /* one level deeper; the caller counts p->nest down */
bool        rp_dtype(Parser *p, DType *t);
IdxParser   rp_dims(Parser *p); /* what names of dimensions mean */
const Idx  *rp_form(Parser *p); /* of dimensions, not negative; NULL: failed */
const Type *rp_type(Parser *p);
/* Types up to `close`; `comma` tells whether the last was followed by a comma. */
bool rp_types(Parser *p, const char *close, TypeVec *out, bool *comma);
/* `loc("net.onnx":17:Conv_3)`, if it is there; `ok` false after an error. */
Loc         rp_loc(Parser *p, Loc otherwise, bool *ok);
bool        rp_number(Parser *p, DType t, void *out); /* a value of a known type */
const Expr *rp_literal(Parser *p);                    /* 3, 1.5, 3_i64, 0x7fc00000_f32, -inf */
const Expr *rp_scalar(Parser *p, DType t, const void *at, Loc loc);

/* ---- parse_relay_expr.c --------------------------------------------------------------------- */

bool rp_func_head(Parser *p, FuncData *data); /* [primitive [host]] [compiler("..")] */
/* Parameters, result, body; `name` is the global it defines, or NULL. */
const Expr *rp_func(Parser *p, FuncData data, const char *name, Loc loc);

#endif
