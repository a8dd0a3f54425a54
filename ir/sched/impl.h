/* Inside ir/sched only: how steps look at the nest and change it.
 *
 * A step function gets a Work: the nest as a flat list of sites (parents first, in execution
 * order), the step, and a table of edits.  It checks, then registers `edit(w, old, new)` for the
 * statements it replaces, and returns `finish(w)`, the function with the edits applied.  A step
 * that cannot be taken returns `refuse(w, ..)`.  Statements occur once in a nest: who needs a copy
 * makes it with `fresh_copy`, which gives its loops variables of their own. */
#ifndef TVMCC_IR_SCHED_IMPL_H
#define TVMCC_IR_SCHED_IMPL_H

#include "ir/sched/sched.h"

/* ---- nest.c ---------------------------------------------------------------------------------- */

enum { NO_SITE = UINT32_MAX };

typedef struct {
    const Stmt *s;
    uint32_t    parent; /* NO_SITE for the root */
    uint32_t    end;    /* the first site after its subtree */
} Site;

typedef VEC(const Stmt *) Stmts;
typedef VEC(uint32_t) Sites;

typedef struct {
    Sched      *s;
    Ctx        *c;
    const Step *st;
    VEC(Site) nest;
    Map        *edits;     /* Stmt -> Stmt */
    const Func *f;         /* what finish starts from: s->f unless parameters change */
    bool        exact;     /* cleared by a step that changes bits although its row says exact */
    VEC(const char *) cut; /* reduce loops that this step leaves in copies */
} Work;

Work work(Sched *s, const Step *st);
/* Records `refused: <step>: <reason>`; NULL. */
const Func *refuse(Work *w, const char *fmt, ...) PRINTF_LIKE(2, 3);
void        edit(Work *w, const Stmt *was, const Stmt *now);
/* The body of a loop with the edits made so far. */
const Stmt *body_with_edits(Work *w, uint32_t loop);
/* The nest without b's alloc. */
const Func *drop_alloc(Work *w, const Buffer *b);
/* The nest with all edits; loops and allocs that became empty go. */
const Func *finish(Work *w);

static inline bool inside(const Work *w, uint32_t site, uint32_t outer)
{
    return site > outer && site < w->nest.at[outer].end;
}
uint32_t    site_of(const Work *w, const Stmt *s); /* NO_SITE if it is not in the nest */
const Stmt *body_of(const Stmt *s);                /* of a loop or alloc */
/* Loops that enclose a site, outermost first; only those strictly inside `outer` (NO_SITE: all). */
Sites    loops_around_site(const Work *w, uint32_t outer, uint32_t site);
Sites    blocks_in(const Work *w, uint32_t site); /* NO_SITE: of the whole nest */
uint32_t top_of(const Work *w, uint32_t site);    /* the kid of the outermost sequence it lies in */
/* The topmost loop (or block) strictly inside `outer` (NO_SITE: in the nest) that holds no block
 * but `block`. */
uint32_t own_nest(const Work *w, uint32_t outer, uint32_t block);
bool     has_opaque(const Work *w, uint32_t site);

/* Names.  All copies; refuse and false if there are none or the name is ambiguous. */
bool          loops_named(Work *w, const char *name, Sites *out);
bool          blocks_named(Work *w, const char *name, Sites *out);
const Buffer *buffer_named(Work *w, const char *name); /* a parameter or an alloc; NULL: refused */
bool          name_is_free(Work *w, const char *name, const Sites *except);

/* ---- tree.c: building blocks of rewrites ---------------------------------------------------- */

const Stmt *fresh_copy(Ctx *c, const Stmt *s, IdxSubst *sub); /* sub may be NULL */
/* A loop over 0..extent-1 around body; var was made by fresh_var, for `most` rounds. */
const Atom *fresh_var(Ctx *c, const char *name, int64_t most);
const Stmt *loop_around(Ctx *c, const Atom *var, const Idx *extent, LoopKind kind, const Stmt *body,
                        Loc loc);
/* ... of as many rounds as var has values; it counts from 0. */
const Stmt *loop_of(Ctx *c, const Atom *var, LoopKind kind, const Stmt *body, Loc loc);
/* Copies of loops (sites, outermost first) around `body`, with fresh variables bound in `sub`; the
 * caller has substituted them in body: use loops_fresh first, then loops_wrap. */
typedef struct {
    uint32_t     n;
    const Stmt **was;
    const Atom **var;
} FreshLoops;
FreshLoops  loops_fresh(Work *w, const Sites *loops, IdxSubst *sub);
const Stmt *loops_wrap(Ctx *c, FreshLoops l, const Stmt *body);
/* Every block of a tree gets one more condition. */
const Stmt *blocks_guard(Ctx *c, const Stmt *s, const Idx *ge0);
/* Buffer `was` becomes `now`; indices are mapped by fn (NULL: same) for loads and stores. */
typedef const Idx *const *IndexMap(Ctx *c, void *user, uint32_t n, const Idx *const *index);
const Stmt *retarget(Ctx *c, const Stmt *s, const Buffer *was, const Buffer *now, IndexMap *fn,
                     void *user);

/* What a statement does to a buffer. */
typedef struct {
    uint32_t          loads, stores;
    bool              in_index; /* loaded inside an index */
    const Idx *const *load;     /* index of the first load, of the first store */
    const Idx *const *store;
    bool              same_load; /* all loads have that index */
} Access;
Access access_of(const Stmt *s, const Buffer *b);
Access prim_access(const Prim *p, const Buffer *b);
bool   same_index(uint32_t n, const Idx *const *a, const Idx *const *b);
/* The block's body speaks of its iterators only, not of loops around it. */
bool names_no_loops(const Work *w, uint32_t site);
/* ... nor of tensors that live in one round of them. */
bool is_closed(const Work *w, uint32_t site);
/* x >= 0 says no more than that iterators are in their ranges. */
bool is_range(Arith *A, const BlockData *b, const Idx *x);
/* Its condition speaks only of loops that hold nothing else, but for the range of its iterators. */
bool is_free(const Work *w, uint32_t site);
bool stmt_uses_any(const Stmt *s, const AtomSet *vars);
/* The facts that mention none of the variables. */
Pred where_without(Work *w, Pred p, const AtomSet *vars);
/* Buffers that a statement loads from, each once. */
typedef VEC(const Buffer *) Buffers;
Buffers buffers_read(Ctx *c, const Stmt *s);
Buffers buffers_written(Ctx *c, const Stmt *s);
/* The block fills the halo of b and nothing else (elide_pad makes them). */
bool        is_halo_of(const BlockData *block, const Buffer *b);
bool        is_param(const Work *w, const Buffer *b);
const Stmt *alloc_of(const Work *w, const Buffer *b); /* NULL: a parameter */

static inline const BlockData *block_at(const Work *w, uint32_t site)
{
    return &w->nest.at[site].s->u.block;
}
static inline const LoopData *loop_at(const Work *w, uint32_t site)
{
    return &w->nest.at[site].s->u.loop;
}
static inline const Stmt *stmt_at(const Work *w, uint32_t site)
{
    return w->nest.at[site].s;
}
static inline const Stmt *init_of(const Stmt *block)
{
    return block->u.block.has_init ? block->kids[0] : NULL;
}
/* The one store of a block besides its init; NULL if it has several. */
const Stmt *store_of(const Stmt *block);
/* Binds the block's iterators to their values in `sub`. */
void bind_iters(const Stmt *block, IdxSubst *sub);
bool loop_extent_of(const Stmt *loop, int64_t *n);
bool is_pointwise(const Stmt *block); /* no reduce, no sequential iterators, one store */

/* The reduce loops that enclose `site` (outside it; only those of `block`, if that is not NULL), as
 * one number: rank from 0 to last. */
typedef struct {
    const Idx *rank;
    int64_t    last;
} ReduceRank;
/* The block's reduction uses the variable, or its condition, but for ranges of iterators. */
bool reduces_over(const Work *w, const Stmt *block, const Atom *var);
/* False with a refusal if one of them is parallel, of unknown extent, cut in copies, or if
 * `where` mentions it in another way than rank >= last. */
bool reduce_rank(Work *w, uint32_t site, const Stmt *block, Pred where, ReduceRank *out);

/* The loop that an iterator follows, at a constant distance; NULL: something else. */
const Atom *loop_of_iter(const BlockData *b, Arith *A, uint32_t i);
/* `block`, what the block at `site` becomes, in its loops, of which those over loop[i], where that
 * is not NULL, now are over now[i].  False with a refusal if one of them holds other blocks or is
 * marked. */
bool loops_shrink(Work *w, uint32_t site, const Stmt *block, uint32_t n, const Atom *const *loop,
                  const Atom *const *now);

/* Everywhere, parameters and allocs included. */
const Func *with_buffer(Work *w, const Func *f, const Buffer *was, const Buffer *now);
const Func *with_scope(Work *w, const Func *f, const Buffer *b, Scope scope);
/* `s` becomes the first thing where b is allocated. */
const Func *fill_first(Work *w, const Func *f, const Buffer *b, const Stmt *s);

/* ---- invert.c ---------------------------------------------------------------------------------- */

/* index[d] (over the iterators) = value[d]: solve for the iterators.  out[i] is NULL where iterator
 * i does not occur in index (free).  False: not of a form that can be inverted. */
bool invert(Ctx *c, uint32_t n, const Idx *const *index, const Idx *const *value, uint32_t niter,
            const Atom *const *iter, const Idx **out);
/* Places a pointwise block (the consumer) where `index` has the values `value`: its iterators are
 * bound, free ones get loops, conditions keep them inside their domains. */
typedef struct {
    const Buffer     *tensor;  /* what the consumer reads */
    const Idx *const *value;   /* index of the cell that was just written */
    const Prim       *forward; /* its value, or NULL: load it */
    Pred              where;
    bool              redundant;
    const Atom       *round; /* of a sequential loop that it must stay in the round of; or NULL */
} Placement;
const Stmt *place_consumer(Work *w, const Stmt *consumer, const Placement *p);

/* What the cell that is loaded holds, in the terms of the load, where one block computes all of its
 * buffer; NULL: that is not known. */
const Prim *loaded_value(Work *w, const Prim *load);
/* ---- inline.c: everything that `block` reads still stands where `reader` runs, or a refusal ------- */

bool sources_live(Work *w, uint32_t block, uint32_t reader);

/* place.c: the innermost sequential loop around the site and all of these blocks, or NO_SITE: what
 * moves from one to the other stays in its round. */
uint32_t frame_of(const Work *w, uint32_t site, const Sites *blocks);
/* The topmost loop (or block) inside of the frame that a site lies in. */
uint32_t part_of(const Work *w, uint32_t frame, uint32_t site);
/* What the consumer reads besides t is complete before `site` runs, or a refusal. */
bool inputs_ready(Work *w, uint32_t consumer, const Buffer *t, uint32_t site, uint32_t frame);
/* No cell of b that one block writes is the one that the other reads: by their ranges, or in a
 * round of the frame (NO_SITE: none). */
bool reads_others(Work *w, uint32_t writer, uint32_t reader, const Buffer *b, uint32_t frame);
/* Nobody else uses the cells that these copies of a block write before they do, from that site on,
 * in a round of the frame. */
bool untouched_before(Work *w, const Sites *blocks, uint32_t from, uint32_t frame);

/* distribute.c: a tensor that is written in the loop, and of which two iterations touch one cell,
 * whatever the loops inside of it do, and the variable `also` (NULL: none); NULL: there is none. */
const Buffer *shared_cells(Work *w, uint32_t loop, const Atom *also);

/* cache.c: a scope by its name in steps; it may not be const. */
bool scope_named(Work *w, const char *name, Scope *out);
/* What a step `NAME block scope .. at loop` does in each of the loops, which hold one copy of the
 * block each; NULL: refused.  `usage`: how the step is written. */
typedef const Func *AtLoop(Work *w, uint32_t loop, uint32_t site, Scope scope);
const Func         *each_block_at(Work *w, AtLoop *one, const char *usage);

/* ---- steps ------------------------------------------------------------------------------------- */

typedef const Func *StepApply(Work *w);
#define STEP(id, text, args, apply, class, about) StepApply apply;
#include "ir/sched/sched.def"
#undef STEP

/* The argument with this key (`by`, `tail`), or NULL; the i-th argument without key, or NULL. */
const StepArg *step_option(const Step *st, const char *key);
const StepArg *step_arg(const Step *st, uint32_t i);
uint32_t       step_nargs(const Step *st);

#endif
