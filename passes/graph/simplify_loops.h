/* simplify_loops: a loop as it was read, and what becomes of it (simplify_loops.c, loop_anew.c). */
#ifndef TVMCC_PASSES_SIMPLIFY_LOOPS_H
#define TVMCC_PASSES_SIMPLIFY_LOOPS_H

#include "passes/graph/graph.h"

typedef enum {
    RESULT_STATE, /* what parameter `of` is in the end */
    RESULT_VIEW,  /* the same in another shape */
    RESULT_FIRST, /* what it was when the loop began */
    RESULT_NUMBER /* a counter's last value */
} ResultKind;

typedef struct {
    uint32_t   param;       /* the parameter that the result is */
    bool       read, other; /* by the caller; by something else than a slice of the last row */
    ResultKind kind;
    uint32_t   of;
    int64_t    number;
    bool       row; /* what is read of a list is its last row, which is a state in the end */
} Result;

typedef struct {
    Ctx         *c;
    const char  *name;
    const Expr  *f, *call;
    LoopForm     form;
    uint32_t     n, nresults;
    const Expr **param, **next, **first, **value;
    Result      *result;
    uint32_t    *used, nused; /* results in the order in which the caller reads them */
    bool         tuple;       /* they are fields of one */
    int64_t      rounds;      /* 0: not known */
    const Expr  *go, *i;      /* if rounds are known */
    uint32_t    *order, nlive;
    bool    *live, *counts, *reads; /* of each parameter: is it a counter, does a round read it */
    int64_t *last;                  /* of each counter */
} Loop;

/* Which parameter of the loop e is, which result; UINT32_MAX: none. */
uint32_t param_at(const Loop *l, const Expr *e);
uint32_t result_at(const Loop *l, const Expr *e);
/* Is it the last row of a tensor, as a slice of it? */
bool is_last_row(const Expr *e);
/* What a node of a round becomes, for expr_rewrite; `user` is the Loop. */
const Expr *in_round(Ctx *c, void *user, const Expr *was, const Expr *e);

/* ---- loop_anew.c ---- */

/* m with function `at`, the loop, and its callers anew, of what is read and what that needs. */
const Module *loop_anew(Ctx *c, const Module *m, uint32_t at, Loop *l);

#endif
