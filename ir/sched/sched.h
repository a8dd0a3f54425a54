/* Schedules: a list of steps, each a checked rewrite of a TIR nest (docs/ir/schedule.md).
 *
 * A step is text, one a line: `split %x by 6 tail=even -> %t, %p`.  Hand-written rules, the tuner,
 * logs and tests all use the same steps.  A step whose precondition does not hold is refused with a
 * reason and changes nothing; the first refusal sticks.  A name denotes every copy of a loop or
 * block (after tails, partition); `%p#0` names the first of them.
 *
 *   sched.def the steps   sched/step.c parse, print   sched/decide.c what rules choose
 *   sched/nest.c names   sched/loop.c split fuse
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

enum { MAX_STEP_ARGS = 20 };
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

typedef struct Sched    Sched;
typedef struct Decision Decision;
/* Who chooses: the number of a candidate of d; s->decisions are those before. */
typedef uint32_t Picker(void *user, Sched *s, const Decision *d);

struct Sched {
    Ctx          *c;
    const Target *target;
    const TeFunc *te;
    const Func   *f; /* current nest, immutable */
    VEC(Step) steps;
    VEC(Decision) decisions;
    Arena    *choices; /* where decisions and their candidates live */
    Picker   *choose;  /* NULL: what is best by estimate */
    void     *picker;
    uint64_t *points; /* not NULL: sched_decide() counts the space */
    VEC(Prepack) prepacks;
    const char *refusal;   /* NULL: all steps so far were taken */
    bool        exact;     /* no step so far changed bits */
    VEC(const char *) cut; /* reduce loops that lie in several copies (by name) */
};

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
/* Its extent, which a run may decide; NULL: there is no such loop. */
const Idx *sched_loop_form(const Sched *s, const char *loop);
/* A load's position in memory. */
const Idx *flat_index(Sched *s, const LoadData *l);
/* How far one step of v goes there within `cells` aligned steps (INT64_MAX: within all); 0: not
 * evenly, or nowhere. */
int64_t flat_step(const Idx *x, const Atom *v, int64_t cells);
/* Blocks in order of execution, by name. */
uint32_t sched_blocks(const Sched *s, const char **names, uint32_t max);

/* A rule: arranges the loops of one kernel. */
typedef void SchedRule(Sched *s);

/* ---- decisions (decide.c) ------------------------------------------------------------------------
 *
 * A rule says out of which candidates it chooses, each with an estimate, and is told which to take:
 *
 *     Candidates k = candidates(s);
 *     candidate(&k, 6, 2, cycles);  ..
 *     t = pick_tile(s, "tile", &k);
 *
 * What is taken is the quickest by estimate, what a record of a log says, or what somebody who
 * walks through the space wants.  So a rule is the default, the space and the replay at once.
 * Every candidate must be legal: the steps that the rule makes of it are not refused. */

typedef enum { PICK_FACTOR, PICK_TILE, PICK_ORDER, PICK_BOOL } PickKind;

typedef struct {
    int64_t v[2];   /* a factor; pixels and vectors of a tile; an order's number; 0 or 1 */
    double  cycles; /* of one core, as far as it depends on this; NAN: there is no estimate */
} Candidate;

typedef struct {
    Arena *arena;
    VEC(Candidate) of;
    uint32_t usual; /* 1 + the one that a rule of thumb takes, whatever is estimated; 0: none */
} Candidates;

struct Decision {
    const char        *name;
    PickKind           kind;
    uint32_t           n;
    const Candidate   *at;    /* [n] */
    const char *const *words; /* orders: how they are called */
    bool               usual; /* best is by a rule of thumb */
    uint32_t           best, taken;
};

Candidates candidates(Sched *s);
void       candidate(Candidates *k, int64_t a, int64_t b, double cycles);
/* This candidate, by a rule of thumb: where estimates leave out what decides.  It becomes one if it
 * is none. */
void usual(Candidates *k, int64_t a, int64_t b);
/* The least estimate of all candidates; INFINITY: there is none. */
double least_estimate(const Candidates *k);

/* Names are static text, each once in a rule. */
int64_t          pick_factor(Sched *s, const char *name, const Candidates *k);
const Candidate *pick_tile(Sched *s, const char *name, const Candidates *k);
uint32_t pick_order(Sched *s, const char *name, const Candidates *k, const char *const *words);
bool     pick_bool(Sched *s, const char *name, bool usual);

/* Calls fn, which makes all picks of a rule from what it finds in `plan` and leaves them there,
 * and does nothing else: it may be called any number of times. */
typedef void Decide(Sched *s, void *plan);
void         sched_decide(Sched *s, Decide *fn, void *plan);

/* A chooser that follows a trail: so many candidates by number, then the first or the best ones. */
enum { MOST_DECISIONS = 32, MOST_POINTS = 1 << 20 };
typedef struct {
    uint32_t n;
    uint32_t at[MOST_DECISIONS];
    bool     first;
} Trail;
Picker trail_choose;

void candidate_print(const Decision *d, uint32_t i, StrBuf *out); /* `6x2` */
/* `tile=6x2, chunk=4`; without those that had one candidate. */
void decisions_print(const Sched *s, StrBuf *out);
/* A line each: what was taken, its cycles or that a rule of thumb took it, what is next best. */
void decisions_explain(const Sched *s, StrBuf *out);
/* The rule with these decisions; those that the text leaves out are the estimates'.  False and
 * s->refusal if it says what the rule does not ask, or has no such candidate. */
bool sched_replay(Sched *s, SchedRule *rule, const char *text);

/* ---- shared with the passes -------------------------------------------------------------------------- */

/* Reads of `buffer` under `s`, as a hull over the running variables: lower index and extent of each
 * dimension; false if there is no read. */
bool region_of_reads(Ctx *c, const Stmt *s, const Buffer *buffer, const AtomSet *inner,
                     const Idx **lo, int64_t *extent);

#endif
