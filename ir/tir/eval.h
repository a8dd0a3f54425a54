/* The interpreter's own: what its files share.  The interface is tir_eval in ir/tir/tir.h. */
#ifndef TVMCC_IR_TIR_EVAL_H
#define TVMCC_IR_TIR_EVAL_H

#include "ir/scalar.h"
#include "ir/tir/intrin.h"

enum { MAX_LANES = 1024 };

/* A buffer's memory. */
typedef struct {
    uint8_t *at;          /* cell 0 of the interior */
    uint8_t *first, *end; /* what may be touched at all */
    int64_t *extent, *stride;
    uint32_t lane; /* bytes of a cell's lane, or of a struct */
    uint8_t *own;  /* storage of an alloc */
    size_t   bytes;
    bool     one; /* of one thread of a launch: no other can see it */
} Mem;

typedef struct {
    uint64_t stamp; /* of the evaluation that computed it */
    uint32_t lane;
    Scalar   v;
} Memo;

typedef struct {
    uint32_t lo, hi; /* ids seen; lo > hi: none */
} Range;

/* What variables and buffers are, by id: of the program, or of one thread of a launch. */
typedef struct {
    Range    atoms, buffers;
    IdxTable vars; /* of the atoms */
    Mem    **mem;
} Names;

typedef struct Launch   Launch;   /* eval_launch.c */
typedef struct Copies   Copies;   /* eval_copy.c */
typedef struct Products Products; /* eval_group.c */

typedef struct {
    Ctx             *c;
    Arena           *arena; /* of the program, or of the launch */
    const TirModule *m;
    Map             *measured; /* functions -> Names without tables: their ids */
    Map             *expanded; /* instructions: prim id -> what they compute */
    Range            prims;
    Names            n;
    Memo            *memo;
    uint64_t         stamp;
    const Func      *f;      /* for messages */
    const char      *block;  /* "" outside */
    Launch          *launch; /* NULL outside */
    Copies          *copies; /* of a launch */
    Products        *products;
    bool             bad, left;
    bool             copying; /* in loops that are an async copy */
    Scalar           result;  /* of the function that was left */
    int              depth;
    IdxEnv           env;
    Scalar           lanes[MAX_LANES];
    bool             on[MAX_LANES];
} Eval;

/* The first error of a run; later ones are dropped. */
void eval_fail(Eval *e, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* How many ids there are, at least 1. */
size_t eval_span(Range r);

int64_t eval_idx(Eval *e, const Idx *x);
bool    eval_pred(Eval *e, Pred p);
void    eval_set_var(Eval *e, const Atom *a, int64_t v);
int64_t eval_var(const Eval *e, const Atom *a); /* of one that has a value */
/* No variable of the ids has a value yet. */
IdxTable eval_vars(Arena *a, Range atoms);

/* The value of a lane; memos hold until the stamp changes. */
Scalar eval_prim(Eval *e, const Prim *p, uint32_t lane);
bool   eval_cond(Eval *e, const Prim *p);

/* Memory of b where it is known now, else NULL with an error. */
Mem *eval_mem(Eval *e, const Buffer *b);
void eval_set_mem(Eval *e, const Buffer *b, uint8_t *at, uint8_t *first, uint8_t *end);
/* Fresh memory, full of 0xff. */
void eval_alloc(Eval *e, const Buffer *b);
/* As much memory as the buffer says there is, from cell 0 at `at`. */
void eval_view(Eval *e, const Buffer *b, uint8_t *at);
/* Address of a lane of a cell or of its member, or NULL with an error if that may not be touched.
 */
uint8_t *eval_address(Eval *e, const Buffer *b, const Idx *const *index, const AbiMember *member,
                      uint32_t lane);

void eval_stmt(Eval *e, const Stmt *s);
/* Stores e->lanes, those that are e->on, where the statement stores its value. */
void eval_store_lanes(Eval *e, const StoreData *d);

/* A loop bound to a number of the launch: the round of this thread, if it is one. */
void eval_bound(Eval *e, const Stmt *s);

/* Run the body of a device function, whose parameters are set, by all threads of all blocks. */
void eval_launch(Eval *e, const Func *f, const int64_t grid[3], const int64_t block[3]);

/* Thread i goes on: its names are the ones that count. */
void launch_enter(Eval *e, uint32_t i);
/* Where buffers with places lie. */
uint8_t *launch_memory(const Eval *e);
/* The thread waits for what it has started. */
void launch_await(Eval *e, AwaitData what);

/* A thread is about to read a cell, or to store the n bytes at `value` there: an error if another
 * one may do so at the same time. */
void launch_read(Eval *e, const Buffer *b, const uint8_t *at);
void launch_write(Eval *e, const Buffer *b, const uint8_t *at, const uint8_t *value, uint32_t n);

/* ---- eval_copy.c: async copies of the threads of a launch ---------------------------------------- */

Copies *copies_new(Arena *a, uint32_t threads);
void    copies_of_thread(Copies *x, uint32_t thread);     /* the one that runs from here on */
void    copies_drop(Copies *x);                           /* all of them */
bool    copies_reach(const Copies *x, const uint8_t *at); /* something is on its way there */
/* The n bytes at `value`, at most 16, are on their way to the cell. */
void copies_start(Eval *e, const Buffer *b, uint8_t *at, const uint8_t *value, uint32_t n);
/* Ends a group; what all but the last so many groups hold has arrived. */
void copies_await(Eval *e, uint32_t groups);

/* ---- eval_group.c: products of four warps, which go on beside the threads of a launch ------------- */

Products *products_new(Arena *a, uint32_t threads);
void      products_of_thread(Products *x, uint32_t thread);    /* the one that runs from here on */
void      products_drop(Products *x);                          /* all of them */
bool      products_read(const Products *x, const uint8_t *at); /* some still read that cell */
/* The product whose sums d stores, by the GROUP_THREADS threads from `first` on. */
void products_start(Eval *e, const StoreData *d, uint32_t first);
/* Ends a group; the sums of all but the last so many groups are there. */
void products_await(Eval *e, uint32_t groups);

#endif
