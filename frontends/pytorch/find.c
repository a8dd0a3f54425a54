/* Cells that are found: by what they hold, by their rank among others, and how often; losses, which
 * pick the cell of a class.  How many cells are not 0, a run decides (docs/design/shapes.md). */
#include "frontends/pytorch/pytorch.h"

#include <string.h>

/* ---- how many, a run decides -------------------------------------------------------------------- */

/* "score.0", or of a node that TorchScript comes to again "score_2.0". */
static const char *bound_name(const PtNode *n)
{
    const char *name = intern_printf(n->b.c->strings, "%s.0", n->p->name);

    for (uint32_t i = 0, again = 2; i < n->im->bound.n; i++)
        if (n->im->bound.at[i] == name) {
            name = intern_printf(n->b.c->strings, "%s_%u.0", n->p->name, again++);
            i = UINT32_MAX; /* from the first on */
        }
    return name;
}

Shapes pt_shapes(Ctx *c, const ImportOptions *o)
{
    Shapes s = shapes_new(c, o);

    for (uint32_t i = 0; i < o->ndims; i++)
        s.later[i] = str_ends(o->dims[i].name, ".0");
    return s;
}

/* The dimension that holds this number, `total` of shape [1], within 0 to `most` cells. */
static const Idx *bound_dim(void *user, const Expr *total, const Idx *most)
{
    PtNode     *n = user;
    const char *name = bound_name(n);
    const Expr *bind;
    const Idx  *k;

    if (n->im->scope)
        return pt_error(n, E_UNSUPPORTED, "in a branch or loop");
    vec_push(n->b.c->arena, &n->im->bound, name);
    if ((k = build_bound_dim(&n->b, &n->im->shapes, name, total, most, &bind)))
        vec_push(n->b.c->arena, &n->im->binds, bind);
    return k;
}

const Idx *pt_decided_dim(PtNode *n, const Expr *total, int64_t usual)
{
    const char *name = bound_name(n);
    int64_t     lo, hi = usual;
    const Idx  *k;

    if (!shapes_given(&n->im->shapes, name, &lo, &hi)) {
        diag_warn(n->b.c->diags, W_DIM_BOUND, n->b.loc,
                  "%s '%s': values of the run decide a size: at most %lld is taken", n->p->target,
                  n->p->name, (long long)usual);
        diag_hint(n->b.c->diags, "--dim %s=1..%lld says what it may be", name, (long long)usual);
    }
    k = bound_dim(n, total, idx_const(n->b.c->arith, hi));
    return k ? idx_max(n->b.c->arith, k, idx_const(n->b.c->arith, 1)) : NULL;
}

const Expr *pt_found(PtNode *n, const Expr *x, const Expr *mask)
{
    const Expr *at = mask ? build_find(&n->b, &(BoundDim){bound_dim, n}, mask) : NULL;
    const Idx  *k;

    if (!x || !at)
        return NULL;
    k = expr_form(at, 0);
    return build_take(&n->b, x, build_reshape_to(&n->b, at, 1, &k), 0);
}

const Expr *pt_positions(PtNode *n, const Expr *x)
{
    return build_find(&n->b, &(BoundDim){bound_dim, n}, x);
}

bool aten_nonzero(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self");

    return x && pt_done(n, pt_positions(n, x));
}

/* A list: the positions along each dimension. */
bool aten_nonzero_numpy(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = pt_tensor(n, pt_has(n, "condition") ? "condition" : "self"), *at,
               *each[MAX_RANK];
    const Idx *k;

    if (!x || !(at = pt_positions(n, x)))
        return false;
    k = expr_form(at, 0);
    for (uint32_t i = 0; i < expr_rank(x); i++)
        each[i] = build_reshape_to(b, build_slice(b, at, 1, i, i + 1), 1, &k);
    return pt_done_list(n, expr_rank(x), each);
}

bool aten_masked_select(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = pt_tensor(n, "self"), *mask = x ? pt_tensor(n, "mask") : NULL;
    Dims         dims;

    if (!mask)
        return false;
    if (!dtype_is_bool(expr_dtype(mask)))
        return pt_error(n, E_IMPORT, "the mask is %s", type_text(b->c, mask->type));
    if (!build_broadcast_dims(b, expr_forms(x), expr_forms(mask), &dims))
        return false;
    x = pt_flat(b, build_broadcast_to(b, x, dims.n, dims.at));
    mask = pt_flat(b, build_broadcast_to(b, mask, dims.n, dims.at));
    return pt_done(n, pt_found(n, x, mask));
}

/* Values in order, of each cell the number of its value, and how often they come. */
bool aten_unique2(PtNode *n)
{
    const Build          *b = &n->b;
    const Expr           *x = pt_tensor(n, "self"), *order, *number, *counts;
    SortAttrs            *sort = ATTRS(b, SortAttrs);
    ScatterElementsAttrs *add = ATTRS(b, ScatterElementsAttrs);
    UniqueCells           u;
    const Idx            *k;

    (void)pt_bool(n, "sorted", true); /* PyTorch sorts in any case */
    (void)pt_bool(n, "return_inverse", false);
    (void)pt_bool(n, "return_counts", false);
    if (!x || !build_unique(b, &(BoundDim){bound_dim, n}, pt_flat(b, x), &u))
        return false;
    sort->axis = 0;
    sort->dtype = DT_I64;
    order = build1(b, "argsort", u.values, sort);
    if (!order)
        return false;
    number = build_take(b, build1(b, "argsort", order, sort), u.number, 0);
    k = expr_form(order, 0);
    add->reduction = "add";
    counts = build_broadcast_to(b, expr_scalar(b->c, DT_I64, 1), 1,
                                &(const Idx *){expr_form(u.number, 0)});
    counts = build3(b, "scatter_elements", build_zeros_of(b, DT_I64, 1, &k), number, counts, add);
    return pt_done_at(n, 0, build_take(b, u.values, order, 0)) &&
           pt_done_at(n, 1, build_reshape_to(b, number, expr_rank(x), expr_forms(x).at)) &&
           pt_done_at(n, 2, counts);
}

/* How often each number from 0 on comes, weighted; how far they go, only --dim says. */
bool aten_bincount(PtNode *n)
{
    const Build          *b = &n->b;
    const Expr           *x = pt_tensor(n, "self"), *weights, *total;
    const char           *name = bound_name(n);
    int64_t               least = pt_int(n, "minlength", 0), lo, hi = INT32_MAX;
    ScatterElementsAttrs *a = ATTRS(b, ScatterElementsAttrs);
    const Idx            *k;

    if (!x || !pt_maybe(n, "weights", &weights))
        return false;
    if (!dtype_is_int(expr_dtype(x)) || expr_rank(x) != 1)
        return pt_error(n, E_IMPORT, "it counts %s", type_text(b->c, x->type));
    if (!shapes_given(&n->im->shapes, name, &lo, &hi)) {
        pt_error(n, E_DIM, "how large the numbers are that it counts is not known");
        diag_hint(b->c->diags, "--dim %s=0..100: there are at most 100 different ones", name);
        return false;
    }
    x = build_cast(b, x, DT_I64);
    total = build_by(b, "add", build_reduce(b, "max", x, 1, (int64_t[]){0}, true), 1);
    total = total ? build_by(b, "maximum", total, (double)least) : NULL;
    if (!total || !(k = bound_dim(n, total, idx_const(b->c->arith, hi))))
        return false;
    weights = weights ? weights : expr_scalar(b->c, DT_I64, 1);
    weights = build_broadcast_to(b, weights, 1, expr_forms(x).at);
    a->reduction = "add";
    return weights &&
           pt_done(n, build3(b, "scatter_elements", build_zeros_of(b, expr_dtype(weights), 1, &k),
                             x, weights, a));
}

/* ---- ranks -------------------------------------------------------------------------------------- */

const Expr *pt_count_before(const Build *b, const Expr *sorted, const Expr *x, bool right)
{
    uint32_t rank = expr_rank(x);

    if (rank > 0)
        sorted = build_expand_dims(b, sorted, expr_rank(sorted) - 1, 1);
    x = build_expand_dims(b, x, rank, 1);
    sorted = build2(b, right ? "less_equal" : "less", sorted, x, NULL);
    return build_reduce(b, "sum", sorted ? build_cast(b, sorted, DT_I64) : NULL, 1,
                        (int64_t[]){(int64_t)rank}, false);
}

/* bucketize: one row of limits for all; searchsorted: a row each, or one. */
bool aten_searchsorted(PtNode *n)
{
    const Build *b = &n->b;
    const char  *of = pt_has(n, "boundaries") ? "boundaries" : "sorted_sequence", *side;
    const Expr  *rows = pt_tensor(n, of), *y;
    PtOperand    v;
    bool         right = pt_bool(n, "right", false), narrow = pt_bool(n, "out_int32", false);

    if (!rows || !pt_operand(n, "self", &v))
        return false;
    if (pt_has(n, "sorter"))
        return pt_error(n, E_UNSUPPORTED, "sorter");
    if ((side = pt_string(n, "side", NULL)))
        right = !strcmp(side, "right");
    v.e = v.e ? v.e : pt_as(n, &v, expr_dtype(rows));
    if (expr_rank(rows) < 1 || (expr_rank(rows) > 1 && expr_rank(rows) != expr_rank(v.e)))
        return pt_error(n, E_IMPORT, "%s in rows of %s", type_text(b->c, v.e->type),
                        type_text(b->c, rows->type));
    DType t = pt_join(expr_dtype(rows), expr_dtype(v.e));

    y = pt_count_before(b, build_cast(b, rows, t), build_cast(b, v.e, t), right);
    return pt_done(n, build_cast(b, y, narrow ? DT_I32 : DT_I64));
}

/* ---- losses ------------------------------------------------------------------------------------- */

/* -x[n, target[n, ..], ..] of logarithms of odds [N, C, ..], weighted; x may be [C]. */
static bool class_loss(PtNode *n, const Expr *x)
{
    const Build *b = &n->b;
    const Expr  *target = x ? pt_tensor(n, "target") : NULL, *weight, *y, *there, *w;
    int64_t      how = pt_int(n, "reduction", 1), ignored = pt_int(n, "ignore_index", -100);
    uint32_t     axis = x && expr_rank(x) > 1 ? 1 : 0;
    GatherAttrs *a = ATTRS(b, GatherAttrs);
    Dims         dims;

    if (!target || !pt_maybe(n, "weight", &weight))
        return false;
    if (!dtype_is_int(expr_dtype(target)) || expr_rank(target) + 1 != expr_rank(x))
        return pt_error(n, E_UNSUPPORTED, "classes are %s for %s", type_text(b->c, target->type),
                        type_text(b->c, x->type));
    dims = expr_forms(target);
    target = build_cast(b, target, DT_I64);
    there = build2(b, "not_equal", target, build_scalar(b, target, (double)ignored), NULL);
    target = build_where(b, there, target, build_scalar(b, target, 0));
    a->axis = axis;
    y = build2(b, "gather", x, build_expand_dims(b, target, axis, 1), a);
    y = build1(b, "negative", build_reshape_to(b, y, dims.n, dims.at), NULL);
    w = build_cast(b, there, expr_dtype(x));
    if (weight)
        w = build_mul(b, w, build_take(b, weight, target, 0));
    if (!y || !w)
        return false;
    y = build_where(b, there, build_mul(b, y, w), build_scalar(b, y, 0));
    if (how == 0)
        return pt_done(n, y);
    y = dims.n ? build_reduce(b, "sum", y, 0, NULL, false) : y;
    w = dims.n ? build_reduce(b, "sum", w, 0, NULL, false) : w;
    return pt_done_at(n, 0, how == 1 ? build_div(b, y, w) : y) &&
           (n->nout < 2 || pt_done_at(n, 1, w));
}

bool aten_nll_loss(PtNode *n)
{
    return class_loss(n, pt_tensor(n, "self"));
}

bool aten_cross_entropy_loss(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self");

    if (!x)
        return false;
    if (pt_float(n, "label_smoothing", 0) != 0)
        return pt_error(n, E_UNSUPPORTED, "label_smoothing");
    return class_loss(n, pt_softmax(n, "nn.log_softmax", x, expr_rank(x) > 1 ? 1 : 0));
}
