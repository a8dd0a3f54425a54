/* What the parts of the printer share.
 *
 *   clike.c  statements; kernels of devices
 *   cpu.c    functions of a CPU's program, and what host functions have beside loops
 *   names.c  names for values used more than once
 *   prim.c   expressions
 *   index.c  indices; names of loop variables and buffers
 *   vector.c vectors, where the language has them
 *   wide.c   .. as single accesses of a device's kernels
 *   prelude.c functions that stand in for operators
 *   instruction.c instructions that are functions of the language
 *   unread.c memory and views that nothing reads */
#ifndef TVMCC_BACKENDS_CLIKE_IMPL_H
#define TVMCC_BACKENDS_CLIKE_IMPL_H

#include "backends/clike/clike.h"

typedef VEC(const Prim *) PrimList;

typedef struct {
    const Func *f;
    bool       *written; /* by parameter: stored through, here or by what is called */
} ClikeFunc;

typedef struct Running Running;

typedef struct {
    Ctx                *c;
    const ClikeDialect *d;
    const Func         *f;
    ClikeProgram       *program; /* NULL: a kernel of a device */
    Map                *written; /* ids of buffers that are stored to; of a program */
    Map                *used;    /* ids of buffers, of atoms | ATOM_KEY; of a program */
    StrBuf             *out;
    int                 depth;
    Map                *temps;    /* prim id -> name, within one statement */
    Map                *uses;     /* prim id -> count, within one statement */
    bool                in_given; /* all shared arrays lie in ClikeDialect.given .. */
    int64_t             given;    /* .. and how many bytes of it have been given */
    PrimList            shared;   /* prims used twice, within one statement: bits of `sure` */
    Map                *bits;     /* prim id -> its place in `shared` + 1 */
    Map                *sure;     /* prim id -> set of shared values that are computed when it is */
    Map                *walked;   /* prims that `declare` has been at, in the block at hand */
    PrimList            named;    /* in the order of their names: those of a block are forgotten */
    Map                *names;    /* of loop variables and buffers: id -> text */
    Map                *taken;    /* interned names */
    Map                *order;    /* of variables: id -> when it was declared, from 1; .. */
    Map                *unrolled; /* .. those of loops that are written out whole: numbers, then */
    const Running      *running;  /* pointers that go along with the loops at hand */
    const Matrices     *matrices; /* that warps have; NULL: the language has none */
    Map                *images;   /* parameters: id -> ClikeTexel; NULL: no kernel */
    uint32_t            next_temp, next_var, next_buffer;
    bool                narrow;   /* 32 bits hold all indices */
    bool                groups;   /* four warps compute together: barriers say so */
    uint32_t            started;  /* of their products, since one was awaited */
    VEC(const Buffer *) sums;     /* of these, as far as they are printed */
    const char *index;            /* type of indices */
    const Idx  *axis[AXIS_COUNT]; /* extents of the launch */
    bool        failed;
} Clike;

#define ATOM_KEY (1ull << 32)

/* ---- clike.c ---- */

void        clike_indent(Clike *x);
void        clike_stmt(Clike *x, const Stmt *s, bool tail); /* tail: a block ends behind it */
const char *clike_cell(const Clike *x, const Buffer *b); /* behind its name, without dimensions */
const char *clike_bare(const Clike *x, const char *text);
const char *clike_index_text(Clike *x, const Idx *i);
const char *clike_pointer(Clike *x, const Param *p); /* "__global const float *" */

/* ---- running.c ---- */

/* "b0[8*i1 + i2]" */
const char *clike_place(Clike *x, const Buffer *b, const Idx *index);
/* Declares pointers that go along with the loop: what its head says of them, ", b9 += 3136".  They
 * are x->running until its caller takes them off. */
const char *clike_run_along(Clike *x, const Stmt *loop);

/* ---- cpu.c: statements of host functions, and calls ---- */

void clike_call(Clike *x, const Stmt *s);
void clike_view(Clike *x, const Stmt *s, bool tail);
void clike_invoke(Clike *x, const InvokeData *d);
void clike_switch(Clike *x, const Stmt *s);
/* Type of a buffer's cells, of a handle as well. */
const char *clike_cells(Clike *x, const Buffer *b);
/* The address of a cell or a member, of a symbol. */
void clike_address(Clike *x, const Prim *p, StrBuf *s);

/* ---- names.c ---- */

void clike_fresh(Clike *x); /* a statement begins: no value has a name */
/* p as text for one statement, its shared values declared before. */
const char *clike_expression(Clike *x, const Prim *p);

/* ---- prim.c ---- */

const char *clike_type(Clike *x, DType t); /* E_CODEGEN if the language has none */
void        clike_prim(Clike *x, const Prim *p, StrBuf *s);
void        clike_node(Clike *x, const Prim *p, StrBuf *s); /* ... were it to have no name */

/* ---- index.c ---- */

const char *clike_var(Clike *x, const Atom *a);
/* The scope of a loop's variable ends: others may have its name. */
void        clike_forget(Clike *x, const Atom *a);
const char *clike_buffer(Clike *x, const Buffer *b);
const char *clike_name(Clike *x, const char *wanted); /* that nothing else has */
void        clike_index(Clike *x, const Idx *i, StrBuf *s);
/* What only one arm of is computed. */
void clike_case(Clike *x, const Prim *p, StrBuf *s);

/* ---- vector.c ---- */

/* Does the text have vectors of that type? */
bool clike_has_vectors(const Clike *x, DType t);
void clike_vector(Clike *x, const Prim *p, StrBuf *s); /* clike_node of one */
void clike_vector_store(Clike *x, const StoreData *d); /* to cells of memory */

/* ---- wide.c ---- */

bool clike_is_word(const Clike *x, DType t); /* of several numbers, as one */
void clike_wide(Clike *x, const Prim *p, StrBuf *s);
/* The parameter that the buffer is an image as; NULL: it is none. */
const char *clike_image(Clike *x, const Buffer *b);
void        clike_texel(Clike *x, const Prim *p, StrBuf *s); /* a load of one */
void clike_sum(Clike *x, const Prim *p, StrBuf *s); /* of products of words, an instruction */
void clike_wide_store(Clike *x, const StoreData *d);

/* ---- prelude.c ---- */

/* The prelude's version of `what` for values of a type: "min_f32". */
const char *clike_helper(Ctx *c, const char *what, DType t);
/* ... that converts, takes bits as they are; NULL: a cast does. */
const char *clike_convert(Ctx *c, const ClikeDialect *d, DType to, DType from);
const char *clike_pun(Ctx *c, const ClikeDialect *d, DType to, DType from);

/* ---- unread.c ---- */

/* Without local memory and views that nothing reads. */
const Func *clike_drop_unread(Ctx *c, const Func *f);

#endif
