/* Reads and writes by index. */
#include "frontends/pytorch/pytorch.h"

#include <math.h>
#include <string.h>

/* Indices of the run: below 0 they count from the end. */
static const Expr *take(PtNode *n, const Expr *x, const Expr *at, uint32_t axis)
{
    TakeAttrs *a = ATTRS(&n->b, TakeAttrs);

    a->axis = axis;
    a->mode = "wrap";
    return build2(&n->b, "take", x, at, a);
}

bool aten_embedding(PtNode *n)
{
    const Expr *w = pt_tensor(n, "weight"), *at = w ? pt_tensor(n, "indices") : NULL;

    (void)pt_int(n, "padding_idx", -1); /* of gradients */
    (void)pt_bool(n, "scale_grad_by_freq", false);
    if (!at || pt_bool(n, "sparse", false))
        return at && pt_error(n, E_UNSUPPORTED, "sparse");
    return pt_done(n, take(n, w, at, 0));
}

/* Bags of rows, each from its offset to the next one: their sum, mean or largest cells. */
bool aten_embedding_bag(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *w = pt_tensor(n, "weight"), *at = w ? pt_tensor(n, "indices") : NULL, *scale, *bag,
               *count, *keep, *y;
    const Expr *from = at ? pt_tensor(n, "offsets") : NULL;
    int64_t     how = pt_int(n, "mode", 0), left_out = pt_int(n, "padding_idx", -1), bags;
    bool        last = pt_bool(n, "include_last_offset", false);

    (void)pt_bool(n, "scale_grad_by_freq", false); /* of gradients */
    (void)pt_bool(n, "sparse", false);
    if (!from || !pt_maybe(n, "per_sample_weights", &scale))
        return false;
    if (expr_rank(w) != 2 || expr_rank(at) != 1 || expr_rank(from) != 1 || how < 0 || how > 2)
        return pt_error(n, E_UNSUPPORTED, "indices are %s", type_text(b->c, at->type));
    if ((bags = build_dim(b, from, 0) - last) < 1)
        return pt_error(n, E_UNSUPPORTED, "no bags");
    if (last)
        from = build_slice(b, from, 0, 0, bags);
    bag = build_arange(b, expr_form(at, 0), expr_dtype(from));
    bag = build_by(b, "subtract", pt_count_before(b, from, bag, true), 1);
    keep = build_by(b, "not_equal", at, (double)left_out);
    count = bag ? build_segments(b, "add", build_cast(b, keep, DT_F32), bag, bags) : NULL;
    keep = build_expand_dims(b, keep, 1, 1);
    y = build_take(b, w, at, 0);
    if (scale)
        y = build_mul(b, y, build_expand_dims(b, scale, 1, 1));
    if (!y || !count)
        return false;
    count = build_cast(b, build_expand_dims(b, count, 1, 1), expr_dtype(y));
    if (how < 2) {
        y = build_segments(b, "add", build_where(b, keep, y, build_scalar(b, y, 0)), bag, bags);
        return pt_done(n, how ? build_div(b, y, build_by(b, "maximum", count, 1)) : y);
    }
    y = build_where(b, keep, y, build_scalar(b, y, -INFINITY));
    y = y ? build_segments(b, "max", y, bag, bags) : NULL;
    return y &&
           pt_done(n, build_where(b, build_by(b, "greater", count, 0), y, build_scalar(b, y, 0)));
}

bool aten_index_select(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self"), *at = x ? pt_tensor(n, "index") : NULL;
    uint32_t    axis;

    return at && pt_axis(n, pt_int(n, "dim", 0), expr_rank(x), &axis) &&
           pt_done(n, take(n, x, at, axis));
}

bool aten_gather(PtNode *n)
{
    GatherAttrs *a = ATTRS(&n->b, GatherAttrs);
    const Expr  *x = pt_tensor(n, "self"), *at = x ? pt_tensor(n, "index") : NULL;
    uint32_t     axis;

    (void)pt_bool(n, "sparse_grad", false);
    if (!at || !pt_axis(n, pt_int(n, "dim", 0), expr_rank(x), &axis))
        return false;
    a->axis = axis;
    return pt_done(n, build2(&n->b, "gather", x, at, a));
}

static bool reduction(PtNode *n, const char **out)
{
    static const struct {
        const char *name, *relay;
    } all[] = {{"add", "add"},  {"sum", "add"},  {"multiply", "mul"},
               {"prod", "mul"}, {"amin", "min"}, {"amax", "max"}};
    const char *how = pt_string(n, "reduce", NULL);

    if (!how)
        return true;
    for (uint32_t i = 0; i < COUNT(all); i++)
        if (!strcmp(how, all[i].name))
            *out = all[i].relay;
    return *out || pt_error(n, E_UNSUPPORTED, "reduce is '%s'", how);
}

/* scatter, scatter_add, scatter_reduce */
bool aten_scatter(PtNode *n)
{
    ScatterElementsAttrs *a = ATTRS(&n->b, ScatterElementsAttrs);
    const Expr           *x = pt_tensor(n, "self"), *at = x ? pt_tensor(n, "index") : NULL, *src;
    const char           *how = strstr(n->p->target, "scatter_add") ? "add" : NULL;
    PtOperand             v;
    uint32_t              axis;

    if (!at || !reduction(n, &how) || !pt_axis(n, pt_int(n, "dim", 0), expr_rank(x), &axis))
        return false;
    if (how && !pt_bool(n, "include_self", true))
        return pt_error(n, E_UNSUPPORTED, "include_self is false");
    if (pt_has(n, "src")) {
        if (!(src = pt_tensor(n, "src")))
            return false;
        for (uint32_t i = 0; i < expr_rank(at) && expr_rank(src) == expr_rank(at); i++)
            if (expr_form(src, i) != expr_form(at, i)) /* what has no index is not used */
                src = build_slice_to(&n->b, src, i, idx_const(n->b.c->arith, 0), expr_form(at, i));
    } else {
        if (!pt_operand(n, "value", &v))
            return false;
        src = build_broadcast_to(&n->b, pt_as(n, &v, expr_dtype(x)), expr_rank(at),
                                 expr_forms(at).at);
    }
    a->axis = axis;
    a->reduction = how ? how : "update";
    return pt_done(
        n, build3(&n->b, "scatter_elements", x, at, build_cast(&n->b, src, expr_dtype(x)), a));
}

/* ---- x[i, j] by tensors ------------------------------------------------------------------------------ */

typedef struct {
    const Expr  *x;
    uint32_t     count, first, used; /* indices; the first one that there is, how many */
    bool         together;           /* one after another */
    const Expr **at;
    Dims         shape; /* that of all of them */
} Indexing;

/* The shape that all broadcast to. */
static bool common_shape(PtNode *n, Indexing *k)
{
    const Idx **dims = NEW_ARRAY(n->b.c->arena, const Idx *, MAX_RANK), *one;
    uint32_t    rank = 0;

    one = idx_const(n->b.c->arith, 1);
    for (uint32_t i = 0; i < k->count; i++)
        if (k->at[i] && expr_rank(k->at[i]) > rank)
            rank = expr_rank(k->at[i]);
    for (uint32_t d = 0; d < rank; d++)
        dims[d] = one;
    for (uint32_t i = 0; i < k->count; i++)
        for (uint32_t d = 0; k->at[i] && d < expr_rank(k->at[i]); d++) {
            uint32_t   to = d + rank - expr_rank(k->at[i]);
            const Idx *is = expr_form(k->at[i], d);

            if (dims[to] != one && is != one && is != dims[to])
                return pt_error(n, E_IMPORT, "the indices have different shapes");
            dims[to] = is == one ? dims[to] : is;
        }
    k->shape = (Dims){rank, dims};
    return true;
}

/* The indices with those of the cells that are set in the places of each mask. */
static bool expand_masks(PtNode *n, Indexing *k)
{
    const Build *b = &n->b;
    const Expr **all = NEW_ARRAY(b->c->arena, const Expr *, MAX_RANK + 1), *found;
    uint32_t     count = 0;

    for (uint32_t i = 0; i < k->count; i++) {
        bool     mask = k->at[i] && dtype_is_bool(expr_dtype(k->at[i]));
        uint32_t over = mask ? expr_rank(k->at[i]) : 1;

        if (count + over > MAX_RANK || (mask && over == 0))
            return pt_error(n, E_UNSUPPORTED, "masks of %u dimensions", over);
        if (!mask) {
            all[count++] = k->at[i];
            continue;
        }
        if (count + over > expr_rank(k->x) ||
            !expr_has_forms(k->at[i], over, expr_forms(k->x).at + count))
            return pt_error(n, E_IMPORT, "the mask is %s, for %s", type_text(b->c, k->at[i]->type),
                            type_text(b->c, k->x->type));
        if (!(found = pt_positions(n, k->at[i])))
            return false;
        for (uint32_t d = 0; d < over; d++)
            all[count++] =
                build_reshape_to(b, build_slice(b, found, 1, d, d + 1), 1, expr_forms(found).at);
    }
    k->count = count;
    k->at = all;
    return true;
}

static bool read_indices(PtNode *n, Indexing *k)
{
    bool gap = false;

    if (!(k->x = pt_tensor(n, "self")) || !pt_tensors(n, "indices", &k->count, &k->at))
        return false;
    if (k->count > expr_rank(k->x))
        return pt_error(n, E_IMPORT, "%u indices of %u dimensions", k->count, expr_rank(k->x));
    if (!expand_masks(n, k))
        return false;
    k->together = true;
    for (uint32_t i = 0; i < k->count; i++) {
        if (!k->at[i]) {
            gap |= k->used > 0;
            continue;
        }
        if (pt_dtype_kind(expr_dtype(k->at[i])) != 1)
            return pt_error(n, E_IMPORT, "index %u is %s", i, type_text(n->b.c, k->at[i]->type));
        k->together &= !gap;
        k->first = k->used++ ? k->first : i;
        k->at[i] = build_cast(&n->b, k->at[i], DT_I64);
    }
    return k->used > 0 ? common_shape(n, k) : pt_error(n, E_IMPORT, "there is no index") != NULL;
}

/* An index that is not below 0. */
static const Expr *from_start(const Build *b, const Expr *at, const Idx *extent)
{
    const Expr *size = build_values(b, type_tensor(b->c, DT_I64, 0, NULL), (Dims){1, &extent});

    return build_where(b, build_by(b, "less", at, 0), build_add(b, at, size), at);
}

/* All of them as gather_nd wants them, [used, shape ..], for a tensor whose indexed dimensions come
 * first. */
static const Expr *stacked(PtNode *n, const Indexing *k)
{
    const Build *b = &n->b;
    const Expr  *parts[MAX_RANK];
    uint32_t     d = 0;

    for (uint32_t i = 0; i < k->count; i++) {
        if (!k->at[i])
            continue;
        const Expr *at = from_start(b, k->at[i], expr_form(k->x, i));

        at = build_broadcast_to(b, at, k->shape.n, k->shape.at);
        parts[d++] = at ? build_expand_dims(b, at, 0, 1) : NULL;
    }
    return build_concat(b, d, parts, 0);
}

/* The order that brings indexed dimensions to the front, and the one that brings the result's back:
 * the indices' shape stands where the first one was, if they are together. */
static bool front(const Indexing *k, int64_t *axes)
{
    uint32_t rank = expr_rank(k->x), d = 0;
    bool     moves = false;

    for (uint32_t i = 0; i < k->count; i++)
        if (k->at[i])
            axes[d++] = i;
    for (uint32_t i = 0; i < rank; i++)
        if (i >= k->count || !k->at[i])
            axes[d++] = i;
    for (uint32_t i = 0; i < rank; i++)
        moves |= axes[i] != i;
    return moves;
}

bool aten_index(PtNode *n)
{
    const Build *b = &n->b;
    Indexing     k = {0};
    int64_t      axes[MAX_RANK], back[MAX_RANK];
    const Expr  *x, *y;
    uint32_t     before, rank;

    if (!read_indices(n, &k))
        return false;
    if (k.used == 1)
        return pt_done(n, take(n, k.x, k.at[k.first], k.first));
    front(&k, axes);
    x = build_transpose(b, k.x, expr_rank(k.x), axes);
    y = build2(b, "gather_nd", x, stacked(n, &k), NULL);
    if (!y || !k.together || k.first == 0)
        return pt_done(n, y);
    rank = expr_rank(y);
    before = k.first; /* dimensions that stand before the indices again */
    for (uint32_t i = 0; i < rank; i++)
        back[i] = i < before ? k.shape.n + i : i < before + k.shape.n ? i - before : i;
    return pt_done(n, build_transpose(b, y, rank, back));
}

/* Values that broadcast to what x[.., i, j, ..] gives, with the dimensions of the indices first:
 * `dims`. */
static const Expr *values_in_place(const Build *b, const Indexing *k, const Expr *values,
                                   uint32_t d, const Idx *const *dims)
{
    const Idx *to[2 * MAX_RANK];
    int64_t    axes[2 * MAX_RANK];
    uint32_t   shape = k->shape.n;

    for (uint32_t i = 0; i < d; i++) { /* dimension i of the result, where it is in the values */
        uint32_t at = i < shape ? k->first + i : i < shape + k->first ? i - shape : i;

        axes[i] = at;
        to[at] = dims[i];
    }
    return build_transpose(b, build_broadcast_to(b, values, d, to), d, axes);
}

/* x[i, j] = values, or += */
bool aten_index_put(PtNode *n)
{
    const Build    *b = &n->b;
    ScatterNdAttrs *a = ATTRS(b, ScatterNdAttrs);
    Indexing        k = {0};
    int64_t         axes[MAX_RANK], back[MAX_RANK];
    const Expr     *x = pt_tensor(n, "self"), *values = x ? pt_tensor(n, "values") : NULL, *y;
    const PtArg    *list = pt_arg(n, "indices");
    const Idx      *dims[2 * MAX_RANK];
    uint32_t        d = 0, rank;
    bool            add = pt_bool(n, "accumulate", false);

    if (!values)
        return false;
    values = build_cast(b, values, expr_dtype(x));
    if (list && list->kind == PT_LIST && list->n == 1 && !add) { /* by a mask: where */
        uint32_t     count;
        const Expr **at;

        if (!pt_tensors(n, "indices", &count, &at))
            return false;
        if (at[0] && dtype_is_bool(expr_dtype(at[0])) && expr_single(values)) {
            uint32_t more = expr_rank(x) - expr_rank(at[0]);

            y = more ? build_expand_dims(b, at[0], expr_rank(at[0]), more) : at[0];
            return pt_done(n, build_where(b, y, build_reshape(b, values, 0, NULL), x));
        }
    }
    if (!read_indices(n, &k))
        return false;
    rank = expr_rank(x);
    front(&k, axes);
    for (uint32_t i = 0; i < k.shape.n; i++)
        dims[d++] = k.shape.at[i];
    for (uint32_t i = k.used; i < rank; i++)
        dims[d++] = expr_form(x, (uint32_t)axes[i]);
    if (d > MAX_RANK)
        return pt_error(n, E_UNSUPPORTED, "%u dimensions", d);
    a->mode = add ? "add" : "update";
    values = k.together ? values_in_place(b, &k, values, d, dims)
                        : build_broadcast_to(b, values, d, dims);
    y = build3(b, "scatter_nd", build_transpose(b, x, rank, axes), stacked(n, &k), values, a);
    for (uint32_t i = 0; i < rank; i++)
        back[axes[i]] = i;
    return pt_done(n, build_transpose(b, y, rank, back));
}

/* self with source where index says along one dimension: index_copy, index_add */
bool aten_index_copy(PtNode *n)
{
    const Build          *b = &n->b;
    ScatterElementsAttrs *a = ATTRS(b, ScatterElementsAttrs);
    const Expr           *x = pt_tensor(n, "self"), *at = x ? pt_tensor(n, "index") : NULL;
    const Expr           *src = at ? pt_tensor(n, "source") : NULL;
    const Idx            *dims[MAX_RANK], *one = idx_const(b->c->arith, 1);
    uint32_t              axis;

    if (!src || !pt_axis(n, pt_int(n, "dim", 0), expr_rank(x), &axis))
        return false;
    if (pt_float(n, "alpha", 1) != 1 || expr_rank(src) != expr_rank(x) || expr_rank(x) == 0)
        return pt_error(n, E_UNSUPPORTED, "alpha, or a source of %s", type_text(b->c, src->type));
    for (uint32_t i = 0; i < expr_rank(x); i++)
        dims[i] = i == axis ? type_cells(b->c, at->type) : one;
    at = build_reshape_to(b, at, expr_rank(x), dims);
    at = build_broadcast_to(b, at, expr_rank(x), expr_forms(src).at);
    a->axis = axis;
    a->reduction = strstr(n->p->target, "index_add") ? "add" : "update";
    return pt_done(n, build3(b, "scatter_elements", x, at, build_cast(b, src, expr_dtype(x)), a));
}

bool aten_one_hot(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = pt_tensor(n, "self");
    int64_t      classes = pt_int(n, "num_classes", -1);

    if (!x || classes < 1)
        return x && pt_error(n, E_UNSUPPORTED, "num_classes has to be given");
    x = build_expand_dims(b, x, expr_rank(x), 1);
    return pt_done(n, build_cast(b,
                                 build2(b, "equal", x,
                                        build_arange(b, idx_const(b->c->arith, classes),
                                                     x ? expr_dtype(x) : DT_I64),
                                        NULL),
                                 DT_I64));
}
