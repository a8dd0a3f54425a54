/* Schedules: a list of steps, each a checked rewrite of a TIR nest (docs/ir/schedule.md).
 *
 * A step is text, one a line: `split %x by 6 tail=even -> %t, %p`.  Hand-written rules, the tuner,
 * logs and tests all use the same steps.  A step whose precondition does not hold is refused with a
 * reason and changes nothing; the first refusal sticks.  A name denotes every copy of a loop or
 * block (after tails, partition); `%p#0` names the first of them.
 *
 *   sched.def the steps   sched/step.c parse, print   sched/nest.c names   sched/loop.c split fuse
 * .. sched/place.c compute_at ..   sched/inline.c   sched/cache.c   sched/reduce.c rfactor
 * fold_init .. sched/layout.c transform_layout elide_pad   sched/inplace.c   sched/code.c marks,
 * contract
 */
#ifndef TVMCC_IR_SCHED_SCHED_H
#define TVMCC_IR_SCHED_SCHED_H

#include "ir/te/te.h"

typedef enum { CLASS_EXACT, CLASS_ORDER, CLASS_MARK } StepClass;

typedef enum {
#define STEP(id, text, args, apply, class, about) STEP_##id,
#include "ir/sched/sched.def"
#undef STEP
    STEP_COUNT
} StepKind;

enum { MAX_STEP_ARGS = 16 };
typedef struct {
    const char *name; /* loop, block, tensor, option value; interned, without % */
    int64_t     num;
    const char *key; /* option: `tail` */
} StepArg;
typedef struct Step {
    StepKind    kind;
    uint16_t    nargs, nouts; /* outs: names after -> */
    StepArg     arg[MAX_STEP_ARGS];
    const char *out[4];
    const char *map; /* transform_layout: the text of the map */
    Loc         loc;
} Step;

/* A constant parameter whose layout a step changed: new data = the tensor repacked. */
typedef struct {
    uint32_t    param;   /* parameter of the function (its index) */
    const Func *prepack; /* kind(prepack): in (old layout), out (new layout) */
    const char *map;     /* text of the map, part of the constant's new key */
} Prepack;

typedef struct {
    const char *name;
    int64_t     value;
    uint32_t    candidates;
} Decision;

typedef struct Sched {
    Ctx          *c;
    const Target *target;
    const TeFunc *te;
    const Func   *f; /* current nest, immutable */
    VEC(Step) steps;
    VEC(Decision) decisions;
    VEC(Prepack) prepacks;
    const Decision *given; /* what the tuner chose, or NULL */
    uint32_t        ngiven;
    const char     *refusal; /* NULL: all steps so far were taken */
    bool            exact;   /* no step so far changed bits */
    VEC(const char *) cut;   /* reduce loops that lie in several copies (by name) */
} Sched;

Sched *sched_new(Ctx *c, const Target *t, const TeFunc *te);
/* Apply one step given as text (printf style); false and s->refusal if refused.  After a refusal
 * further steps are ignored. */
bool step(Sched *s, const char *fmt, ...) PRINTF_LIKE(2, 3);
bool sched_apply(Sched *s, const Step *st);
/* As step(), but a refusal is forgotten: for steps that only help. */
bool try_step(Sched *s, const char *fmt, ...) PRINTF_LIKE(2, 3);
bool sched_parse(Ctx *c, const char *file, Bytes text, Sched *s); /* many lines; `//` comments */
/* ... of several functions: each function's steps stand under a line `@name`. */
bool sched_parse_all(Ctx *c, const char *file, Bytes text, uint32_t n, Sched *const *all);
void step_print(Ctx *c, const Step *st, StrBuf *out);
void sched_print(const Sched *s, StrBuf *out);

/* What rules ask about the nest. */
const Stmt *sched_block(const Sched *s, const char *name); /* first copy, or NULL */
bool        sched_loop_extent(const Sched *s, const char *loop, int64_t *extent);
/* Blocks in order of execution, by name. */
uint32_t sched_blocks(const Sched *s, const char **names, uint32_t max);

/* A decision point: `best` without tuning, the tuner's value with it.  Recorded. */
int64_t pick_int(Sched *s, const char *name, const int64_t *candidates, uint32_t n, int64_t best);

/* A rule: arranges the loops of one kernel. */
typedef void SchedRule(Sched *s);

/* ---- shared with the passes -------------------------------------------------------------------------- */

/* Reads of `buffer` under `s`, as a hull over the running variables: lower index and extent of each
 * dimension; false if there is no read. */
bool region_of_reads(Ctx *c, const Stmt *s, const Buffer *buffer, const AtomSet *inner,
                     const Idx **lo, int64_t *extent);

#endif
