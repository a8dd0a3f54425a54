/* The entry functions of a plan as TIR: what a caller of a model calls, and what these functions
 * share (docs/design/host.md).
 *
 *   build.c    the words in which the other files speak: members, variables, checks, data
 *   entry.c    which functions there are; run_ex, run
 *   checks.c   what a run asks of its arguments
 *   dims.c     dimensions that a run decides
 *   sizes.c    the arena of those that have no upper bound
 *   body.c     main as steps: instrumentation, cancelling, kernels
 *   region.c   its parallel regions: parts, barriers, launches
 *   info.c     the constant that <entry>_info gives
 *   choice.c   one of several plans: by CPU, by shape bucket
 *   device.c   models on a device: launches and copies; device_open.c: open and close
 *   fallbacks.c  one of several plans: by the devices that there are */
#ifndef TVMCC_PASSES_LOWER_ENTRY_H
#define TVMCC_PASSES_LOWER_ENTRY_H

#include "passes/lower/lower.h"

#include "tvmcc/abi.h"

enum { ARENA_ALIGN = 64, WEIGHTS_ALIGN = 64 };
enum { NEVER = INT32_MAX }; /* run.stop of a run that goes on */

/* Statements in the making.  An alloc or a view reaches to the end of its list. */
typedef VEC(const Stmt *) Code;

typedef struct {
    Ctx                  *c;
    const CodegenOptions *o;
    const CodegenInfo    *info;
    VEC(const Func *) funcs;
    VEC(Data) data;
    const char *weights;     /* symbol of the embedded weights; NULL: the caller brings them */
    const char *weight_info; /* symbol; NULL: not yet made */
    uint32_t    nconstants, nregions;
    bool        any_cpu; /* of the functions made now */
    /* the plan at hand */
    const char *own; /* between the product's name and those of its functions; "" unless several */
    const Plan *plan;
    const Func *main;
    const Buffer *dims; /* its symbolic dimensions, i64; NULL: there are none */
    uint32_t      step; /* number of the next step */
    /* the function at hand */
    const Buffer *run;    /* what its parts share */
    const Atom   *part;   /* in a region, else NULL */
    const Buffer *passed; /* ... how many barriers so far */
    struct {
        const Buffer *params, *state, *device, *result, *args, *values, *grid, *block,
            *places;         /* of the caller's tensors; NULL in the program: all are the host's */
        const char *program; /* symbol */
        struct {
            Code in, launches, out;
            bool fixed; /* main is these, and its launches are alike in all runs */
        } parts;
    } dev; /* of a model on a device (device.h) */
} Entry;

/* ---- build.c ----------------------------------------------------------------------------------- */

const Stmt *code_end(Entry *e, Code *code);
void        add(Entry *e, Code *code, const Stmt *s);

const char   *symbol(Entry *e, const char *suffix); /* <entry><suffix> */
const Prim   *num(Entry *e, DType t, int64_t v);
const Prim   *status(Entry *e, int32_t code); /* i32 */
const Prim   *is_null(Entry *e, const Prim *handle);
const Prim   *address(Entry *e, const Buffer *b); /* of cell 0 */
const Prim   *get(Entry *e, const Buffer *b, const char *member);
void          put(Entry *e, Code *code, const Buffer *b, const char *member, const Prim *value);
const Prim   *at(Entry *e, const Buffer *b, uint32_t i); /* cell i */
const Prim   *cell(Entry *e, const Buffer *b, const Idx *i);
const Buffer *struct_of(Entry *e, const char *name, const char *record, Scope scope);
/* On the stack, all members 0. */
const Buffer *cleared(Entry *e, Code *code, const char *record);
const Buffer *array_of(Entry *e, const char *name, DType t, int64_t n);
const Buffer *variable(Entry *e, Code *code, const char *name, DType t);
void          set(Entry *e, Code *code, const Buffer *var, const Prim *value);
const Prim   *value_of(Entry *e, const Buffer *var);
/* A struct, an array that lies where a handle points. */
const Buffer *view_struct(Entry *e, Code *code, const char *name, const char *record,
                          const Prim *at);
const Buffer *view_array(Entry *e, Code *code, const char *name, DType t, int64_t n,
                         const Prim *at);
void          give(Entry *e, Code *code, const Prim *result); /* return; NULL: nothing */
void          fail_if(Entry *e, Code *code, const Prim *cond, int32_t with);
/* result NULL: dropped */
void invoke(Entry *e, Code *code, const Buffer *result, const char *sig, const Prim *fn, uint32_t n,
            const Prim *const *args);
const Prim *function(Entry *e, const char *suffix); /* the address of <entry><suffix> */
const char *own(Entry *e, const char *suffix);      /* ... of the plan at hand's own functions */
Param       scalar(Entry *e, const char *name, int64_t lo, int64_t hi);
Param       pointer(const Buffer *b);
/* Adds <entry><suffix>; `code` is used up. */
void define(Entry *e, const char *suffix, const char *sig, bool exported, uint32_t n,
            const Param *params, Code *code);

/* Constant data; gives its symbol. */
typedef VEC(DataItem) Items;
void        item(Entry *e, Items *items, AbiType t, int64_t v);
void        item_symbol(Entry *e, Items *items, const char *symbol); /* NULL: a null pointer */
void        item_bytes(Entry *e, Items *items, const void *bytes, size_t n);
void        item_sizeof(Entry *e, Items *items, const char *record);   /* a u32 */
const char *constant(Entry *e, const Items *items);                    /* NULL if there are none */
const char *records(Entry *e, const Items *items, const char *record); /* ... as such structs */
const char *text_constant(Entry *e, const char *text);

/* ---- checks.c ---------------------------------------------------------------------------------- */

uint32_t    io_align(const PlanIO *io, const Buffer *b);
uint64_t    io_bytes(const PlanIO *io);
void        check_aligned(Entry *e, Code *code, const Prim *handle, uint32_t align);
const Prim *params_too_short(Entry *e, const Buffer *params);
void        check_params(Entry *e, Code *code, const Buffer *params);
/* A member that callers of older headers do not know: 0 then. */
const Prim *newer_param(Entry *e, Code *code, const Buffer *params, const char *member, DType t);
const Prim *check_arena(Entry *e, Code *code, const Buffer *params, int64_t most);
const Prim *check_weights(Entry *e, Code *code, const Buffer *params);
void        check_tensors(Entry *e, Code *code, const Buffer *list, uint32_t n, const PlanIO *io,
                          const Param *params);

/* ---- dims.c ------------------------------------------------------------------------------------ */

bool is_dynamic(const PlanIO *io); /* a tvmcc_value: some dimension is symbolic */
/* main of the plan at hand over e->dims, instead of parameters. */
void use_dims(Entry *e);
/* The dimensions from the caller's tensors, checked; results get their shapes.  NULL: none. */
const Buffer *check_dims(Entry *e, Code *code, const Buffer *in, const Buffer *out,
                         const Buffer *params, const Prim *threads);
/* The shapes of results that main's values decided. */
void put_computed(Entry *e, Code *code, const Buffer *dims, const Buffer *out);
/* Where the cells of the i-th tensor lie. */
const Prim *tensor_data(Entry *e, Code *code, const Buffer *list, uint32_t i, const PlanIO *io);

/* ---- sizes.c ----------------------------------------------------------------------------------- */

/* Of an open plan: a run of these dimensions computes no size beyond any memory (-4). */
void check_sizes(Entry *e, Code *code, const Buffer *dims, const Prim *threads);
/* No run takes more. */
uint64_t most_bytes(const Plan *p);
/* Bytes of arena that it takes, an i64. */
const Prim *arena_need(Entry *e, const Buffer *dims, const Prim *threads);
/* <entry>_arena_bytes and <entry>_sizes of the plans of one product. */
void define_sizes(Entry *e, const Plan *plans);

/* ---- body.c ------------------------------------------------------------------------------------ */

void define_steps_of_all(Entry *e); /* begin, end, meet */
/* Main's buffers, from the run; tensors: with what the caller passes. */
void        view_main(Entry *e, Code *code, bool tensors);
const Stmt *body(Entry *e, const Stmt *s); /* main's statement as a function of its own has it */

/* ---- region.c ---------------------------------------------------------------------------------- */

const Stmt *region(Entry *e, const Stmt *s);
bool        has_fail(const Stmt *s);

/* ---- info.c ------------------------------------------------------------------------------------ */

/* Tables of shape buckets, or of other targets. */
typedef struct {
    uint32_t    n, ndims;
    const char *infos, *names, *sizes;
    uint32_t    nfallbacks, device, state_cells;
    const char *fallbacks, *targets;
} Others;

/* The symbol of its tvmcc_weight_info; NULL: it has no weights. */
const char *weight_info(Entry *e);
/* The info of the plan at hand, with these functions (NULL: there is none). */
const char *model_info(Entry *e, const char *run, const char *open, const char *close,
                       const Others *others);

/* ---- entry.c ----------------------------------------------------------------------------------- */

void use_plan(Entry *e, const Plan *p);
/* <entry>_run: run_ex with one thread, the embedded weights and an arena of that many bytes. */
void define_run(Entry *e, uint64_t arena);
/* run_ex of the plan at hand, under this name or another. */
void define_run_ex(Entry *e, const char *suffix, bool exported);

/* ---- device.c ---------------------------------------------------------------------------------- */

void define_device_steps(Entry *e);
/* The state that params bring, checked; its memory; a run over it, and what it gives. */
const Buffer *check_state(Entry *e, Code *code, const Buffer *params);
const Prim   *device_memory(Entry *e, const Buffer *state, bool weights);
const Prim   *run_steps(Entry *e, Code *code, const Buffer *params, const Buffer *state);
const Stmt   *device_launch(Entry *e, const Stmt *s);
const Stmt   *device_copy(Entry *e, const Stmt *s);

/* ---- device_open.c ----------------------------------------------------------------------------- */

void define_open_close(Entry *e);

/* ---- fallbacks.c ------------------------------------------------------------------------------- */

void define_fallbacks(Entry *e, const Plan *plans);

/* ---- choice.c ---------------------------------------------------------------------------------- */

void define_choice(Entry *e, const Plan *plans);
/* i32 <entry>__which(): is the CPU one for which this plan is?  Not 0 then. */
void define_cpu_check(Entry *e, const Plan *p);

#endif
