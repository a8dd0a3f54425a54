/* The plan: what `lower` hands on to code generation and packaging.
 *
 * One TIR module (distinct kernels, then `main`), where every value lies, which constants must be
 * repacked, what goes in and out, and how code is to be made of it.  Its text (plan.c, S.plan of
 * docs/design/build.md) is all that code generation needs; no value of the weights is in it. */
#ifndef TVMCC_IR_PLAN_PLAN_H
#define TVMCC_IR_PLAN_PLAN_H

#include "ir/te/te.h"

/* A constant of the weights blob: its bytes are `data` run through `prepack` (if any). */
typedef struct {
    const Const *data;    /* NULL in a plan that was read */
    const Func  *prepack; /* NULL: as it is */
    const char  *map;     /* text of the index map that prepack carries out; NULL: as it is */
    const Type  *type;    /* after prepack; NULL in a plan that was read */
    uint64_t     offset;  /* in the blob, 64-byte aligned */
    uint64_t     bytes;
    const char  *name; /* in the model; "" unknown */
} PlanConst;

typedef struct {
    const char *name;
    const Type *type;
    const char *layout; /* "NHWC"; NULL: unknown */
    uint32_t    state;  /* results: 1 + the input that may lie in the same memory; else 0 */
} PlanIO;

/* One value in the arena, for reports and tests. */
typedef struct {
    const char *name;
    uint64_t    offset, bytes;
    const Idx  *at, *room;   /* of an open plan: both as forms; else NULL */
    uint32_t    first, last; /* live from call `first` to call `last` of main, inclusive */
} PlanSlot;

typedef struct {
    uint64_t      calls;     /* how many calls of main use it */
    const Func   *func;      /* as the TIR passes left it; the code passes are still to come */
    const TeFunc *te;        /* what it computes; NULL in a plan that was read */
    const char   *schedule;  /* text of the steps; NULL in a plan that was read */
    const char   *rule;      /* of schedules.def, or plan_tuned; NULL: the loops are as they come */
    const char   *refused;   /* what rules before it said, a line each; NULL: nothing */
    const char   *decisions; /* `tile=6x2, chunk=48`; NULL: none */
    const char   *choices; /* what was decided, and what it promised, a line each; NULL: nothing */
    int64_t       macs;    /* of one call, as it computes */
    /* Canonical hashes of the nest before any step: one, or several of which one kernel came. */
    uint32_t      nworkloads; /* 0 in a plan that was read */
    const Sha256 *workloads;
} PlanKernel;

/* The rule of kernels whose steps come from a tuning log. */
extern const char plan_tuned[];

/* Where the weights of a product are: in its object, in a file, in a section of the object that a
 * linker script places, or wherever the caller puts the symbol <entry>_weights. */
typedef enum {
    WEIGHTS_EMBED,
    WEIGHTS_FILE,
    WEIGHTS_SECTION,
    WEIGHTS_EXTERN,
    WEIGHTS_MODES
} WeightsMode;
extern const char *const weights_mode_names[WEIGHTS_MODES];

/* Letters, digits and . _ $ -: nothing that means something to linker scripts and shells. */
bool weights_section_ok(const char *name);

/* They are in the object; otherwise a weights file lies beside it. */
static inline bool weights_inside(WeightsMode m)
{
    return m == WEIGHTS_EMBED || m == WEIGHTS_SECTION;
}

/* How code is generated; the driver's options, kept with the plan. */
typedef struct {
    uint32_t    opt_level; /* 0..3 */
    bool        pic;
    WeightsMode weights;
    const char *section; /* WEIGHTS_SECTION: its name, else NULL */
    const char *machine; /* SHA-256, in hex, of figures that schedules were chosen by; or NULL */
} PlanCode;

/* A named dimension and the size that a shape bucket has of it. */
typedef struct {
    const char *name;
    int64_t     size;
} PlanDim;

/* A dimension that a value of the run decides: a cell of main's last parameter. */
typedef struct {
    const Atom *dim;
    uint32_t    cell;
} BoundDim;

typedef struct Plan {
    const char        *name;  /* entry: "resnet" */
    const char        *model; /* file name of the model, without its folder */
    const Target      *target;
    PlanCode           code;
    const TirModule   *tir; /* flat; last function is main (FUNC_HOST) */
    uint32_t           nconsts, nin, nout, nslots, nkernels;
    const PlanConst   *consts;
    const PlanIO      *in, *out;
    AtomList           symbols;        /* dimensions that a run decides: main's first parameters */
    uint32_t           nbound, ncells; /* .. and that its values decide */
    const BoundDim    *bound;
    const PlanSlot    *slots;
    const PlanKernel  *kernels;
    uint32_t           nlabels; /* names of the classes, for people */
    const char *const *labels;
    uint64_t arena_bytes;   /* shared part; like the weights in device memory if target->host */
    uint64_t private_bytes; /* per thread */
    uint64_t weights_bytes;
    bool     mixed;       /* of a device: some kernels are the host's (plan_devices) .. */
    uint64_t here_bytes;  /* .. which have an arena of their own, in its memory */
    uint64_t arena_floor; /* largest sum of simultaneously live tensors */
    /* Where a dimension has no upper bound (an open plan): the same two sizes as forms over the
     * symbols, which a run computes; the numbers are those of usual sizes then, and only told.
     * NULL: there is no such dimension. */
    const Idx *arena, *scratch;
    int64_t    macs; /* of the model (relay_macs), not the sum of its kernels' */
    /* Alternatives of one product (docs/design/build.md): CPU variants outside, shape buckets
     * inside, both from the smallest up.  They share name, model, options of code and weights. */
    const struct Plan *next; /* NULL: the last, or the only one */
    /* Of the plan of a device's host (plan_of_host): what runs on the device; else NULL. */
    const struct DeviceCode *device;
    uint32_t       level;         /* code for x86-64-v<level>, a variant; 0: for the target's CPU */
    uint32_t       ndims;         /* of the shape bucket; 0: no buckets */
    const PlanDim *dims;          /* [ndims], the same names in all */
    uint64_t       weights_alone; /* bytes of weights that this plan uses */
} Plan;

/* Its entry functions test which CPU runs them: for variants always, else where the target says so.
 */
static inline bool plan_asks_cpu(const Plan *p)
{
    return p->level || (p->target && p->target->asks_cpu);
}

/* The beginning of the arena of such a plan, where they note what they found. */
enum { CPU_NOTE_BYTES = 64 };

/* How many kernels have their steps from a tuning log. */
uint32_t plan_kernels_tuned(const Plan *p);

/* What <entry>_open fills in: pointers to device, arena, weights, a recording and (of several
 * targets) the info of the one taken, and the handles of the program, which are two a kernel and
 * one more; the most of all plans, 0 bytes without a device. */
enum { STATE_POINTERS = 5, MAX_TARGETS = 8 };
uint32_t plan_state_cells(uint32_t kernels);
uint64_t plan_state_bytes(const Plan *p);

/* ---- join.c: alternatives -------------------------------------------------------------------- */

/* `n` plans as one list: kernels of later targets get names of their own, constant k of plan i lies
 * at offset[i][k] of `weights_bytes` bytes. */
const Plan *plan_join(Ctx *c, uint32_t n, const Plan *const *plans, const uint64_t *const *offset,
                      uint64_t weights_bytes);
uint32_t    plan_variants(const Plan *p); /* different targets in the list */
uint32_t    plan_buckets(const Plan *p);  /* plans for each of them */
const Plan *plan_at(const Plan *p, uint32_t i);

/* Are the plans for several targets, of which a run takes the first that it has? */
bool plan_has_fallbacks(const Plan *p);

/* The plan of a device as its host's backend sees it: without the device's functions and memory. */
Plan plan_of_host(Ctx *c, const Plan *p, const struct DeviceCode *code);

/* main's parameters, in order: one buffer per input, one per output, %arena (u8), %weights (u8),
 * of a mixed plan %here and %here_weights (u8), the same two of the host; where values decide
 * dimensions their cells %dims (i64), and the scalars %tid, %nt inside its region.  Private scratch
 * of thread t lies at arena_bytes + t * private_bytes. */

static inline uint32_t plan_weights_param(const Plan *p)
{
    return p->symbols.n + p->nin + p->nout + 1;
}

static inline uint32_t plan_params(const Plan *p)
{
    return p->symbols.n + p->nin + p->nout + 2 + 2 * p->mixed + (p->ncells > 0);
}

/* plan.c: the whole plan as text; print(read(print(p))) gives the same bytes. */
void plan_print(Ctx *c, const Plan *p, StrBuf *out);
/* The plan of a text, with c->target set by `parse_target` (a Backend's); NULL with an error
 * recorded. */
typedef const Target *PlanTarget(Ctx *c, const char *text);
const Plan           *plan_read(Ctx *c, const char *file, Bytes text, PlanTarget *parse_target);

#endif
