/* What graph passes share (util.c): calls by name, attributes, questions about constants. */
#ifndef TVMCC_PASSES_GRAPH_H
#define TVMCC_PASSES_GRAPH_H

#include "machine/machine.h"
#include "ops/ops.h"
#include "passes/passes.h"

const Expr *make1(Ctx *c, const char *op, const Expr *x, const void *attrs, Loc loc);
const Expr *make2(Ctx *c, const char *op, const Expr *x, const Expr *y, const void *attrs, Loc loc);
/* `before` cells of the value before axis i, and so many behind it; x itself where both are 0. */
const Expr *make_pad(Ctx *c, const Expr *x, uint32_t i, int64_t before, int64_t behind,
                     double value, Loc loc);
const Expr *make_reshape(Ctx *c, const Expr *x, uint32_t n, const int64_t *dims, Loc loc);
const Expr *make_reshape_to(Ctx *c, const Expr *x, uint32_t n, const Idx *const *dims, Loc loc);
const Expr *make_cast(Ctx *c, const Expr *x, DType t, Loc loc);
const Expr *make_slice(Ctx *c, const Expr *x, int64_t axis, int64_t from, int64_t to, Loc loc);
bool static_but_first(const Expr *e); /* a tensor whose dimensions are numbers, but the first */

/* Attributes of a call as its operator's struct; a fresh record with defaults; a copy to change. */
#define ATTRS_OF(T, e) ((const T *)(e)->u.attrs)
#define ATTRS_NEW(c, T) ((T *)attrs_new((c), &attrs_##T))
#define ATTRS_COPY(c, T, e) ((T *)arena_dup((c)->arena, (e)->u.attrs, sizeof(T)))

/* A call of an operator that mixed.def has as a product or attention. */
bool mixed_is_product(const Expr *call);

/* fold_constant, but calls of the operator `keep` stay as they are. */
const Module *fold_constant_but(Ctx *c, const Module *m, const char *keep);

/* algorithm_conv2d.c: cycles of a convolution with that result (N, C, H, W) and `in` channels, in
 * blocks of `lanes`, as a share of those of the direct one; 1 where the direct one is taken. */
double winograd_gain(const Ctx *c, const int64_t out[4], int64_t in, const int64_t k[2],
                     int64_t lanes);
/* Cycles of the quicker of its tiles in groups of whole blocks. */
double winograd_groups_cycles(const Ctx *c, const int64_t out[4], int64_t in, int64_t groups,
                              const int64_t k[2], int64_t lanes);
/* What products of such data and weights take by those of f32, in blocks of channels or on rows. */
double product_cost(Ctx *c, DType data, DType weight, int64_t lanes, bool blocks);
/* algorithm_pool2d.c: cycles of a pool's windows on plain data, by its best algorithm. */
double plain_pool_cycles(const Ctx *c, const Expr *call);

/* The target's machine, which knows how many weights the network has. */
Machine network_machine(const Ctx *c);

/* How often each node is used in the functions of a module, by node. */
Map     *count_uses(Ctx *c, const Module *m);
uint32_t uses_of(const Map *uses, const Expr *e);

/* A constant, or calls of operators on such (not yet folded), nested at most a few deep. */
bool     is_constant(const Expr *e);
bool     same_dims(const Type *a, const Type *b);
bool     is_float(const Expr *e);
uint32_t axis_from_front(int64_t axis, uint32_t ndim);
/* What a call's attribute `algorithm` says (choose_algorithms.c); NULL: it has none. */
const char *algorithm_of(const Expr *call);
/* Cycles of a core, or of the device, that a typed call takes by its algorithm; NAN: it has none.
 */
double algorithm_cycles(Ctx *c, const Expr *call);
/* reshape, squeeze, expand_dims: another type for the same bytes. */
bool is_view(const Expr *e);
/* The axes of a transpose, in the order of its result. */
void axes_of_transpose(const Expr *e, uint32_t *axes);

/* view_axes.c: a tensor that views and transposes show another of.  Its dimensions but those of 1,
 * in order, are parts of dimensions of `of`. */
enum { MAX_PARTS = 16 };
typedef struct {
    const Idx *size;
    uint32_t   dim, from; /* of which dimension of the result, of which of `of` */
    uint32_t   place;     /* among all parts, in the order of `of` */
} AxisPart;
typedef struct {
    const Expr *of; /* neither view nor transpose */
    uint32_t    n;
    AxisPart    part[MAX_PARTS];
} ViewAxes;
/* False where dimensions are cut otherwise than into whole parts, and where there are no cells. */
bool view_axes(Ctx *c, const Expr *e, ViewAxes *v);
/* Nothing is moved: it is `of` in another shape. */
bool in_order(const ViewAxes *v);

/* A concatenation or slice that plan_views made a view: no kernel, its operands' memory. */
bool is_part_view(const Expr *e);
/* A call of update_slice: no kernel where its first operand can be overwritten. */
bool is_update(const Expr *e);
/* A call of map_batch: its first operand is a function, and it is no kernel either. */
bool is_map(const Expr *e);
/* A call of bind_dims, which is none, too. */
bool is_bind(const Expr *e);

/* A call of a primitive function; the same as a kernel of the CPU that drives the device. */
bool        is_kernel(const Expr *e);
const Expr *kernel_on_host(Ctx *c, const Expr *call);
/* A number that a kernel has in its formula, not as a parameter. */
bool is_inline_scalar(const Expr *e);
/* keep_on_host.c: does the target's device lack something, or what a kernel of this call alone
 * would need?  The second is false after an error. */
bool target_lacks_some(const Target *t);
bool call_lacking(Ctx *c, const Expr *call, bool *lacks);

/* A function that calls itself once, at its end: a loop (docs/design/flow.md). */
typedef struct {
    const Expr *cond, *again, *end; /* again: the call at the end of a round */
    bool        until;              /* a round for the condition false */
} LoopForm;
bool is_loop(Ctx *c, const Expr *f, const char *name, LoopForm *out);
/* The one call of a loop but for its own; NULL where there are several, or the function is a value
 * besides.  `fields`: only if its result is read field by field. */
const Expr *loop_call(Ctx *c, const Module *m, const char *name, const LoopForm *l, bool fields);
/* A call of the loop `f` that gives `more` for the parameters it gets besides; the loop with these.
 */
const Expr *loop_call_with(Ctx *c, const Expr *f, const Expr *call, uint32_t n,
                           const Expr *const *params, const Expr *const *more);
const Expr *loop_with(Ctx *c, const Expr *f, const Expr *body, uint32_t n, const Expr *const *more);
/* The one integer that constants make. */
bool expr_number(Ctx *c, const Expr *e, int64_t *v);
/* Is a function a value anywhere, which is more than being called? */
bool escapes(Ctx *c, const Module *m, const char *name);
/* Does every round pass on parameter i as it came? */
static inline bool passes_on(const Expr *f, const LoopForm *l, uint32_t i)
{
    return call_arg(l->again, i) == func_param(f, i);
}

/* ---- loop_rounds.c ---- */

/* How often the loop `f` goes round, called as `call` does; 0: its counters do not tell. */
int64_t loop_rounds(Ctx *c, const Expr *f, const LoopForm *form, const Expr *call);
/* Is parameter k a counter: a number, to which every round adds another? */
bool loop_counter(Ctx *c, const Expr *f, const LoopForm *form, const Expr *call, uint32_t k,
                  int64_t *from, int64_t *step);
/* The first parameter that counts rounds from 0, in i64; NULL: none does. */
const Expr *loop_index(Ctx *c, const Expr *f, const LoopForm *form, const Expr *call);

/* ---- batch_local.c ---- */

/* Does each image's part of a call's result depend on this image alone?  `cut[i]` tells which
 * operands are cut with it, along their first dimension of `n`, a number or a form; the others are
 * read whole.  All other dimensions are numbers. */
bool batch_local(Ctx *c, const Expr *call, const Idx *n, bool *cut);
/* The call for `n` images: on the operands `kids`, with its type as they give it; NULL if it is not
 * what it was but for the first dimension. */
const Expr *batch_resized(Ctx *c, const Expr *e, const Expr *const *kids, const Idx *was,
                          int64_t n);

/* pbqp.c: one choice a node, so that the costs of all nodes and edges are least. */
typedef struct Pbqp Pbqp;
Pbqp               *pbqp_new(Arena *a);
/* A node with n choices, at least one; its number, counted from 0. */
uint32_t pbqp_node(Pbqp *g, uint32_t n, const double *cost);
/* Adds cost[i] for choice i of u. */
void pbqp_add(Pbqp *g, uint32_t u, const double *cost);
/* Adds cost[i * n(v) + k] for choice i of u and k of v, another node. */
void   pbqp_edge(Pbqp *g, uint32_t u, uint32_t v, const double *cost);
double pbqp_cost(const Pbqp *g, const uint32_t *choice);
/* Choices that no change of one node betters, from those given. */
void pbqp_improve(const Pbqp *g, uint32_t *choice);
/* The best choices of a graph that falls apart by removing nodes of two neighbours, else good ones.
 */
void pbqp_solve(const Pbqp *g, uint32_t *choice);

/* layout_choice.c: for every value of a function the layout it is made in, and for every
 * convolution the one it reads. */
typedef struct {
    uint8_t in, out; /* 0: plain; k: blocks of width[k] channels */
} Layouts;
enum { MAX_WIDTHS = 4 };
typedef struct {
    uint32_t n; /* plain and the widths, widest first */
    uint32_t width[MAX_WIDTHS];
    bool     whole; /* convolutions sum whole blocks, with lanes that are no channel */
    Map     *of;    /* node to Layouts; absent: plain */
} LayoutPlan;
LayoutPlan choose_layouts(Ctx *c, const Expr *func);
/* Cycles of a convolution between plain images, in the layouts that are best for it; with so many
 * inputs and outputs of a group, where these are not 0: data are filled up, and what is more than
 * the real outputs is left out again.  0 where they are not known. */
double conv2d_cycles(Ctx *c, const Expr *conv, int64_t group_in, int64_t group_out);
/* An operand that a call on blocked data reads blocked: an image with the result's channels. */
bool is_blocked_operand(const Expr *call, const Expr *x);
/* N, C, H, W of images of a type that may be blocked, the largest where a run decides; false for
 * others, and where channels are no number. */
bool image_dims(const Type *t, int64_t dims[4]);

#endif
