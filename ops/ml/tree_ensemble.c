/* tree_ensemble: the sum of what decision trees say of each row.
 *
 *     %7 = tree_ensemble(%x, %feature, %split, %next, %root, %target, %weight, targets=3, depth=6);
 *
 * x [N, F]; node m asks whether x[feature[m]] <= split[m] and goes to next[m, 1] if so, else to
 * next[m, 0], and with a third column there for NaN.  Below 0 is leaf -1 - next: it adds
 * weight[leaf, p] to target[leaf, p].  Trees begin at root [T] and are at most `depth` nodes deep.
 * The result is [N, targets]; aggregate is sum, average (of all trees), min or max.
 *
 * The way through a tree is known only step by step, so it is a statement of TIR.  Indices are
 * clipped, and no tree is followed for longer than `depth`, whatever the tables hold. */
#include "ops/common.h"

#include <math.h>
#include <string.h>

typedef enum { AGGREGATE_SUM, AGGREGATE_AVERAGE, AGGREGATE_MIN, AGGREGATE_MAX } Aggregate;

static bool aggregate_of(Ctx *c, Loc loc, const char *name, Aggregate *out)
{
    static const char *const names[] = {"sum", "average", "min", "max"};

    for (uint32_t i = 0; i < COUNT(names); i++)
        if (!strcmp(name, names[i])) {
            *out = (Aggregate)i;
            return true;
        }
    return error_at(c, E_TYPE, loc, "aggregate '%s' is not sum, average, min or max", name);
}

const Type *rel_tree_ensemble(Ctx *c, Loc loc, const void *attrs, const Type *const *in,
                              uint32_t nin)
{
    static const char *const names[] = {"data",  "features", "splits", "next",
                                        "roots", "targets",  "weights"};
    static const uint32_t    ranks[] = {2, 1, 1, 2, 1, 2, 2};
    const TreeEnsembleAttrs *a = attrs;
    Aggregate                how;
    int64_t                  columns;

    if (!rel_tensors(c, loc, in, nin) || !aggregate_of(c, loc, a->aggregate, &how))
        return NULL;
    for (uint32_t i = 0; i < nin; i++) {
        bool number = i == 0 || i == 2 || i == 6;

        if (!rel_rank(c, loc, in[i], ranks[i], names[i]) ||
            !(number ? rel_same_dtype(c, loc, in[0], in[i])
                     : rel_int_dtype(c, loc, in[i], names[i])))
            return NULL;
        if (i && in[i]->dims[0]->lo < 1)
            return error_at(c, E_TYPE, loc, "%s are empty", names[i]);
    }
    if (!dtype_is_float(in[0]->dtype) || in[0]->dims[1]->lo < 1)
        return error_at(c, E_TYPE, loc, "data %s", type_text(c, in[0]));
    if (!rel_dim(c, loc, in[3], 1, &columns) ||
        !rel_dims_equal(c, loc, in[1]->dims[0], in[2]->dims[0], "features and splits") ||
        !rel_dims_equal(c, loc, in[1]->dims[0], in[3]->dims[0], "features and next") ||
        !rel_dims_equal(c, loc, in[5]->dims[0], in[6]->dims[0], "targets and weights") ||
        !rel_dims_equal(c, loc, in[5]->dims[1], in[6]->dims[1], "targets and weights"))
        return NULL;
    if (columns < 2 || columns > 3 || a->targets < 1 || a->targets > INT32_MAX || a->depth < 0 ||
        a->depth > INT32_MAX)
        return error_at(c, E_TYPE, loc, "%lld columns of next, %lld targets, a depth of %lld",
                        (long long)columns, (long long)a->targets, (long long)a->depth);
    return rel_tensor(c, loc, in[0]->dtype, 2,
                      (const Idx *[]){in[0]->dims[0], idx_const(c->arith, a->targets)});
}

/* ---- compute -------------------------------------------------------------------------------------- */

typedef struct {
    Ctx                 *c;
    const OpCall        *call;
    const Tensor *const *in;
    const Buffer        *at, *sum; /* where the row is in the tree; the result */
    const Idx           *row;
    Aggregate            how;
} Walk;

static const Idx *entry(const Walk *w, const Prim *load, const Idx *n)
{
    return te_index(w->c, load, n, INDEX_CLIP);
}

static const Prim *here(const Walk *w)
{
    return prim_load(w->c, w->at, (const Idx *[]){idx_const(w->c->arith, 0)});
}

static const Stmt *go(const Walk *w, const Prim *to)
{
    return stmt_store(w->c, w->at, (const Idx *[]){idx_const(w->c->arith, 0)},
                      prim_cast(w->c, DT_I32, to));
}

static const Prim *next_of(const Walk *w, const Idx *node, int64_t column)
{
    return prim_cast(w->c, DT_I32,
                     te_at(w->c, w->in[3], (const Idx *[]){node, idx_const(w->c->arith, column)}));
}

/* One question, unless a leaf was reached. */
static const Stmt *ask(const Walk *w)
{
    Ctx        *c = w->c;
    const Idx  *node = entry(w, here(w), w->call->in[1]->dims[0]);
    const Idx  *feature = entry(w, te_at(c, w->in[1], &node), w->call->in[0]->dims[1]);
    const Prim *x = te_at(c, w->in[0], (const Idx *[]){w->row, feature});
    const Prim *to = prim_select(c, prim_le(c, x, te_at(c, w->in[2], &node)), next_of(w, node, 1),
                                 next_of(w, node, 0));

    if (dim_of(w->call->in[3], 1) > 2)
        to = prim_select(c, te_is_nan(c, x), next_of(w, node, 2), to);
    return stmt_if(c, prim_le(c, prim_int(c, DT_I32, 0), here(w)), go(w, to), NULL);
}

/* What the leaf gives to its targets. */
static const Stmt *take_leaf(const Walk *w)
{
    Ctx        *c = w->c;
    const Atom *p = te_loop_var(c, "p", w->call->in[5]->dims[1]);
    const Idx  *leaf =
        entry(w, prim_sub(c, prim_int(c, DT_I32, -1), here(w)), w->call->in[5]->dims[0]);
    const Idx  *cell[2] = {leaf, idx_atom(c->arith, p)};
    const Idx  *to[2] = {w->row, entry(w, te_at(c, w->in[5], cell), w->call->out[0]->dims[1])};
    const Prim *was = prim_load(c, w->sum, to), *v = te_at(c, w->in[6], cell);

    v = w->how == AGGREGATE_MIN   ? prim_min(c, was, v)
        : w->how == AGGREGATE_MAX ? prim_max(c, was, v)
                                  : prim_add(c, was, v);
    return loop_stmt(c, p, w->call->in[5]->dims[1], stmt_store(c, w->sum, to, v));
}

bool te_tree_ensemble(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const TreeEnsembleAttrs *a = call->attrs;
    Arith                   *A = c->arith;
    const Type              *t = call->out[0];
    const Tensor            *y = te_extern_out(c, "out", t);
    Walk                     w = {.c = c, .call = call, .in = in, .sum = y->buffer};
    const Atom              *row = te_loop_var(c, "n", t->dims[0]);
    const Atom              *tree = te_loop_var(c, "t", call->in[4]->dims[0]);
    const Atom *target[2] = {te_loop_var(c, "k", t->dims[1]), te_loop_var(c, "m", t->dims[1])};
    int64_t     nodes = call->in[1]->dims[0]->hi; /* no way is longer than all of them */
    const Idx  *depth = idx_const(A, a->depth < nodes ? a->depth : nodes);
    const Atom *step = te_loop_var(c, "d", depth);
    const Idx  *first = idx_atom(A, tree), *cell[2], *last[2];
    const Stmt *kids[3];
    double      start;

    if (!aggregate_of(c, call->loc, a->aggregate, &w.how))
        return false;
    w.row = cell[0] = last[0] = idx_atom(A, row);
    cell[1] = idx_atom(A, target[0]);
    last[1] = idx_atom(A, target[1]);
    w.at = buffer_new(c, intern(c->strings, "at"), DT_I32, SCOPE_PRIVATE, 1,
                      (const Idx *[]){idx_const(A, 1)});
    start = w.how == AGGREGATE_MIN ? INFINITY : w.how == AGGREGATE_MAX ? -INFINITY : 0;
    kids[0] = go(&w, te_at(c, in[4], &first));
    kids[1] = loop_stmt(c, step, depth, ask(&w));
    kids[2] = take_leaf(&w);
    kids[1] = loop_stmt(c, tree, call->in[4]->dims[0], stmt_seq(c, 3, kids));
    kids[0] = loop_stmt(c, target[0], t->dims[1],
                        stmt_store(c, y->buffer, cell, prim_num(c, t->dtype, start)));
    const Prim *mean =
        prim_div(c, prim_load(c, y->buffer, last), te_number(c, t->dtype, call->in[4]->dims[0]));

    kids[2] = loop_stmt(c, target[1], t->dims[1], stmt_store(c, y->buffer, last, mean));
    const Stmt *body = stmt_seq(c, w.how == AGGREGATE_AVERAGE ? 3 : 2, kids);

    out[0] = y;
    te_extern(c, 7, in, 1, out, stmt_alloc(c, w.at, loop_stmt(c, row, t->dims[0], body)));
    return true;
}
