/* Inside passes/lower: from fused Relay to a plan.
 *
 *   te_of_func.c  a primitive function as tensor expressions
 *   kernels.c     distinct kernels: schedule, TIR passes, names by content
 *   main.c        what main takes and gives; states
 *   program.c     its body as a list of kernel calls over values
 *   slots.c       their storage
 *   sides.c       ... on which side, of the host and its device
 *   flow.c        calls of functions, loops among them
 *   share_layout.c  one layout for a constant that several kernels read
 *   memory.c      where every value lies in the arena
 *   threads.c     what threads divide, and whether it is worth to call them
 *   storage.c     weights in 16 bits, large results past the caches: the pass of programs
 *   copies.c      kernels that move values
 *   device.c      launches
 *   host.c        main as TIR, and the plan
 *   plan_lists.c  what the plan lists of tensors, values and kernels
 *   entry/        what a caller calls, made of main and the plan */
#ifndef TVMCC_PASSES_LOWER_H
#define TVMCC_PASSES_LOWER_H

#include "passes/passes.h"

/* ---- te_of_func.c ---- */

/* The tensors of a type in order, through tuples: how many, and appended to out[*n]. */
uint32_t type_tensors(const Type *t);
void     type_flatten(const Type *t, const Type **out, uint32_t *n);

/* ---- kernels.c ---- */

typedef struct Kernel {
    const Func *nest;   /* scheduled */
    const Func *flat;   /* after the TIR passes; device: the first part */
    uint32_t nlaunches; /* on a device target: the parts of `flat`, launched in order; all have */
    const Func *const *launches; /* its parameters */
    const Sched       *sched;    /* NULL: none */
    const char        *rule;     /* as PlanKernel has it */
    Refusals           refused;
    VEC(Sha256) workloads; /* hashes of the unscheduled nests it came from */
    uint32_t nin, nout;    /* pointer parameters that the program passes; more follow for scratch */
    uint64_t calls;
    int64_t  macs;
    double   by_cells; /* nanoseconds of functions and sums (cpu_cells_ns); devices: 0 */
    bool     called;   /* by the program; else it was only looked at */
} Kernel;

typedef struct Kernels {
    Ctx               *c;
    const PassOptions *o;
    const Target      *target;
    VEC(Kernel *) all;
    Map *by_text; /* first 8 bytes of the unscheduled nest's hash -> Kernel * */
    Map *layouts; /* calls that read a constant as another kernel has it: id -> TakenLayout * */
    bool looking; /* kernels that are asked for are not called yet */
} Kernels;

/* share_layout.c: a parameter that is read in the layout that another kernel chose. */
typedef struct {
    uint32_t    param;
    const char *map;
} TakenLayout;

/* Of all calls of the module, before there is a program. */
bool share_layouts(Kernels *k, const Module *m);
bool is_kernel_call(const Expr *e);

/* The kernel of a call of a primitive function: an equal one if there is one.  NULL: error. `dims`:
 * the symbolic dimensions of the call, which are the kernel's first parameters; `in_place`: it
 * takes all operands but the first, which lies where the result will. */
Kernel *kernel_of_call(Kernels *k, const Expr *call, bool in_place, AtomList *dims);
/* Its kernel is the host's, of a program for a device (plan_devices). */
bool runs_here(const Expr *call);
/* Run the TIR passes over all kernels. */
bool kernels_finish(Kernels *k);
/* Their functions as they are now, and n more. */
const TirModule *kernels_module(const Kernels *k, uint32_t n, const Func *const *more);

/* ---- main as a list of items ---- */

typedef enum { PLACE_INPUT, PLACE_OUTPUT, PLACE_ARENA, PLACE_CONST, PLACE_DIMS } Place;

/* Storage of one tensor; reshapes share it.  Parts of a concatenation or of what is sliced lie in
 * another slot's storage: PART is written by a kernel of its own, SLICE is not; JOINED is written
 * part by part; a ROUND is the part of a batch that a round of a loop works on; CARRIED is the
 * memory of its own of what a loop hands on from round to round. */
typedef enum { SLOT_OWN, SLOT_PART, SLOT_JOINED, SLOT_SLICE, SLOT_ROUND, SLOT_CARRIED } SlotKind;

typedef struct Slot Slot;
struct Slot {
    Place       place; /* of a slot in another one: as if it were alone */
    uint32_t    index; /* input, output; of the plan's constants; PLACE_DIMS: the first cell */
    const Type *type;  /* of what was stored first */
    const char *name;
    uint64_t    bytes, origin; /* with halo; bytes from the first cell to cell 0 of the interior */
    uint32_t    first, last;   /* positions of the program */
    uint64_t    offset;        /* PLACE_ARENA, decided by memory.c: of the first cell */
    SlotKind    kind;
    bool        here;    /* of a program for a device: in memory of the host */
    bool        own;     /* every thread has one: of a round of a loop that threads divide */
    Slot       *in;      /* the slot that this one lies in, or NULL */
    uint64_t    at;      /* ... and where, in bytes */
    uint64_t    step;    /* ... and how much further each round of the loop around it */
    const Slot *copy_of; /* what it is a copy of when its life begins, or NULL */
    /* Of an open program the same four as forms over main's dimensions; the numbers are those of
     * usual sizes, which are good for choices only.  Else NULL. */
    struct {
        const Idx *bytes, *offset, *at, *step;
    } open;
};

typedef struct {
    Slot       *slot;
    const Type *type;
} Value;

typedef enum {
    ITEM_CALL,
    ITEM_IF,
    ITEM_COPY,
    ITEM_LOOP,
    ITEM_WHILE,
    ITEM_UPDATE,
    ITEM_BIND
} ItemKind;

typedef struct Item Item;
typedef VEC(Item *) ItemList;
struct Item {
    ItemKind kind;
    Loc      loc;
    uint32_t at;     /* position */
    Kernel  *kernel; /* CALL */
    uint32_t nin, nout;
    Value   *in, *out; /* COPY: in[0] -> out[0]; UPDATE: in[0] becomes slice in[1] of out[0];
                        * IF, WHILE: in[0] is the condition */
    AtomList   dims;   /* CALL: the kernel's dimensions here */
    Slot     **work;   /* CALL: storage of the kernel's shared scratch, in order */
    uint32_t   nwork;
    ItemList   then, other; /* IF; LOOP: then, so many rounds; WHILE: then, while it holds */
    const Idx *rounds;
    bool       divided; /* LOOP: rounds, among threads */
    bool       until;   /* WHILE: .. while it does not hold */
    Dims       bound;   /* BIND: what main's cells from `cell` on are */
    uint32_t   cell;
};

/* What a bind_dims binds, and the first of main's cells for it. */
typedef struct {
    Dims     dims;
    uint32_t cell;
} BoundDims;

struct Program {
    Ctx          *c;
    const Module *m;
    Kernels      *kernels;
    ItemList      items;
    VEC(Slot *) slots;
    VEC(PlanConst) consts;
    VEC(Value) results;
    uint32_t     n_in;
    const Type **in_types;
    const char **in_names;
    uint32_t     at;          /* next position */
    uint64_t     arena_first; /* bytes of the arena before the first slot */
    AtomList     dims;        /* symbolic dimensions of main's parameters */
    bool         open;        /* .. of which one has no upper bound: sizes are forms */
    uint32_t     ncells;      /* of the dimensions that values decide, numbers among them */
    VEC(BoundDims) binds;
    VEC(BoundDim) bound;       /* the dimensions among them */
    bool device;               /* arena and constants lie in device memory */
    bool mixed;                /* .. but for those of kernels that are the host's */
    VEC(const char *) calling; /* functions whose bodies are being walked, the innermost last */
    uint32_t calls;            /* of functions, so far */
};

/* ---- main.c ---- */

bool program_of_main(Program *p, const Expr *main_func);
/* Is result `out` of main the next run's input `in`, which the caller may give in one memory? */
bool is_state(const Program *p, uint32_t out, uint32_t in);
/* All of an input that is a state. */
bool is_state_input(const Program *p, const Slot *s);

/* ---- program.c ---- */

/* The values of expressions, a scope each for main and what else has items of its own. */
typedef struct ValueScope {
    Map               *values; /* expression's id -> Values * */
    struct ValueScope *up;
    ItemList          *items;
    Map               *uses; /* how often what is walked here uses each expression; NULL: unknown */
    /* Dimensions that have a value from here on; a function sees its caller's, too. */
    VEC(const Atom *) bound;
    const struct ValueScope *caller;
    Map *twins; /* of a program for a device: slot -> that with its copy on the other side */
} ValueScope;

/* The tensors of a value, tuples in order. */
typedef struct {
    uint32_t n;
    Value   *at;
} Values;

Values *values_new(Program *p, uint32_t n);
Values *values_of(const ValueScope *s, const Expr *e); /* NULL: none yet */
/* Give e a value in scope s: operands first, by an explicit stack. */
bool  program_walk(Program *p, ValueScope *s, const Expr *e);
Item *item_new(Program *p, ValueScope *s, ItemKind kind, Loc loc);
void  item_copy(Program *p, ValueScope *s, Value from, Value to, Loc loc);
/* A copy in memory of its own. */
Value copied(Program *p, ValueScope *s, Value from, const char *name, Loc loc);

/* ---- sides.c ---- */

/* Of a program for a device: does it lie in the host's memory?  Of others nothing does. */
bool lies_here(const Program *p, const Slot *s);
/* The value in memory of the host or of the device: itself, a copy that is there, or a new one. */
Value on_side(Program *p, ValueScope *s, Value v, bool here, Loc loc);
/* A copy in memory of its own there. */
Value copied_to(Program *p, ValueScope *s, Value from, bool here, const char *name, Loc loc);
/* The slot gets another value: copies of it are none any more. */
void forget_twin(Program *p, ValueScope *s, const Slot *slot);

/* How often all below e uses each node. */
Map *uses_below(Ctx *c, const Expr *e);
/* Can the only reader of e overwrite the memory of its value? */
bool is_last_use(const ValueScope *s, const Expr *e);

/* ---- slots.c ---- */

Slot *slot_new(Program *p, Place place, uint32_t index, const Type *t, const char *name);
/* What s lies in at last, and where; s itself if it has memory of its own. */
Slot *slot_root(const Slot *s, uint64_t *at);
/* Where in its root s begins, in bytes; of an open program a form. */
const Idx *slot_way(Ctx *c, const Slot *s);
/* A size without dimensions that values decide: the most that it can be. */
const Idx *size_most(Ctx *c, const Idx *size, uint32_t n, const BoundDim *bound);
/* Has s, or have so many parts, just the room of the other? */
bool slot_fits(Program *p, const Slot *s, const Type *t);
bool slot_makes_up(Program *p, const Slot *part, const Idx *rounds, const Slot *whole);
/* s is used where the program is now.  Reading a slice keeps what it was cut from. */
void slot_touch(Program *p, Slot *s);

/* ---- flow.c ---- */

/* A call of one of the module's functions, whose operands have values. */
bool emit_apply(Program *p, ValueScope *s, const Expr *e, Values **out);
/* update_slice: in place if nobody reads the tensor later, else in a copy of it. */
void emit_update(Program *p, ValueScope *s, const Expr *e, Values **out);

/* ---- memory.c ---- */

/* Memory that is written as itself, not as a part or whole of other slots' memory. */
bool slot_is_part(const Slot *s);

/* Offsets for all arena slots, of the host beside a device or all others; returns the bytes needed,
 * and the largest sum of simultaneously live slots as `floor`.  Of an open program also the bytes
 * as a form. */
uint64_t memory_plan(Program *p, bool here, uint64_t *floor, const Idx **form);
/* Offsets for the slots that every thread has for itself, from `begin` on; returns their end. */
uint64_t memory_plan_own(Program *p, uint64_t begin);
/* The same number or form, rounded up to what places in the arena are multiples of. */
const Idx *arena_aligned(Ctx *c, const Idx *bytes);

/* ---- threads.c ---- */

/* How often threads meet in a kernel, plus one; whether they divide it at all. */
int64_t func_phases(const Func *f);
bool    func_is_parallel(const Func *f);
/* Loops whose rounds threads divide, and the slots of these; before memory is planned. */
void divide_rounds(Program *p);
/* Does a second thread save more in a run than it costs to call it? */
bool worth_threads(const Program *p);

/* ---- copies.c ---- */

typedef struct {
    Ctx     *c;
    Program *p;
    VEC(const Func *) all;
} Copies;

/* Copies n cells, which is the first parameter where it is no number; `unless_there`: if they do
 * not lie there already; `device`: a launch does it. */
const Func *copy_kernel(Copies *x, DType t, const Idx *n, bool unless_there, bool device);
/* Copies n cells to a slice of so many, whose number is read from memory; both are the first
 * parameters where one is no number. */
const Func *update_kernel(Copies *x, DType t, DType position, const Idx *slices, const Idx *n,
                          bool device);

/* ---- plan_lists.c ---- */

/* `info` NULL: nothing is known of layouts and states. */
const PlanIO     *plan_io(Ctx *c, uint32_t n, const char *const *names, const Type *const *types,
                          const ModuleIO *info);
const PlanSlot   *plan_slots(Program *p, uint32_t *n);
const PlanKernel *plan_kernels(Kernels *k);

/* ---- device.c ---- */

/* A launch of device function f, sized by its bound loops. */
const Stmt *launch_stmt(Ctx *c, const Func *f, const Arg *args, Loc loc);

#endif
