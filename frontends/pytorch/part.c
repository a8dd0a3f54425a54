/* Parts of tensors: slices, selections, splits, and tensors of which a part is another one. */
#include "frontends/pytorch/pytorch.h"

#include <string.h>

/* A position from the start or the end, between 0 and the extent. */
static const Idx *position(PtNode *n, const Idx *x, const Idx *extent)
{
    Arith  *A = n->b.c->arith;
    int64_t v, far = INT64_C(1) << 40;

    if (idx_is_const(x, &v) && (v < -far || v > far))
        x = idx_const(A, v < 0 ? -far : far);
    if (x->lo < 0 && x->hi >= 0)
        return pt_error(n, E_DIM, "position %s may be below 0 or not", dim_text(n->b.c, x));
    if (x->hi < 0)
        x = idx_add(A, x, extent);
    return idx_max(A, idx_const(A, 0), idx_min(A, x, extent));
}

static bool slice_bounds(PtNode *n, const Expr *x, uint32_t *axis, const Idx **from, const Idx **to,
                         int64_t *step)
{
    const Idx *extent;

    *step = pt_int(n, "step", 1);
    if (!pt_axis(n, pt_int(n, "dim", 0), expr_rank(x), axis))
        return false;
    if (expr_rank(x) == 0 || *step < 1 || *step > INT32_MAX)
        return pt_error(n, E_IMPORT, "step %lld of %s", (long long)*step,
                        type_text(n->b.c, x->type));
    extent = expr_form(x, *axis);
    if (!(*from = pt_form(n, "start", idx_const(n->b.c->arith, 0))) ||
        !(*to = pt_form(n, "end", extent)) || !(*from = position(n, *from, extent)) ||
        !(*to = position(n, *to, extent)))
        return false;
    *to = idx_max(n->b.c->arith, *from, *to);
    return true;
}

bool aten_slice(PtNode *n)
{
    const Build       *b = &n->b;
    StridedSliceAttrs *a = ATTRS(b, StridedSliceAttrs);
    const Expr        *x = pt_tensor(n, "self");
    const Idx         *from, *to;
    uint32_t           axis;
    int64_t            step, v;

    if (!x || !slice_bounds(n, x, &axis, &from, &to, &step))
        return false;
    if (idx_is_const(from, &v) && v == 0 && to == expr_form(x, axis) && step == 1)
        return pt_done(n, x);
    a->begin = dims_dup(b->c, &from, 1);
    a->end = dims_dup(b->c, &to, 1);
    a->axes = ints_dup(b->c, (int64_t[]){axis}, 1);
    a->strides = build_steps(b, &step, 1);
    return pt_done(n, build1(b, "strided_slice", x, a));
}

/* x without dimension `axis`, of which there is one cell. */
static const Expr *without(const Build *b, const Expr *x, uint32_t axis)
{
    const Idx *dims[MAX_RANK];
    uint32_t   d = 0;

    for (uint32_t i = 0; x && i < expr_rank(x); i++)
        if (i != axis)
            dims[d++] = expr_form(x, i);
    return x ? build_reshape_to(b, x, d, dims) : NULL;
}

static const Idx *selected(PtNode *n, const Expr *x, uint32_t *axis)
{
    Arith     *A = n->b.c->arith;
    const Idx *at;

    if (!pt_axis(n, pt_int(n, "dim", 0), expr_rank(x), axis) || !(at = pt_form(n, "index", NULL)))
        return NULL;
    if (expr_rank(x) == 0)
        return pt_error(n, E_IMPORT, "it selects from a scalar");
    if (at->lo < 0 && at->hi >= 0)
        return pt_error(n, E_DIM, "index %s may be below 0 or not", dim_text(n->b.c, at));
    if (at->hi < 0)
        at = idx_add(A, at, expr_form(x, *axis));
    if (at->lo < 0 || at->lo >= expr_form(x, *axis)->hi)
        return pt_error(n, E_IMPORT, "index %s is outside of %s", dim_text(n->b.c, at),
                        dim_text(n->b.c, expr_form(x, *axis)));
    return at;
}

bool aten_select(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self");
    const Idx  *at;
    uint32_t    axis;

    if (!x || !(at = selected(n, x, &axis)))
        return false;
    x = build_slice_to(&n->b, x, axis, at, idx_addc(n->b.c->arith, at, 1));
    return pt_done(n, without(&n->b, x, axis));
}

bool aten_narrow(PtNode *n)
{
    Arith      *A = n->b.c->arith;
    const Expr *x = pt_tensor(n, "self");
    const Idx  *from, *length;
    uint32_t    axis;

    if (!x || !pt_axis(n, pt_int(n, "dim", 0), expr_rank(x), &axis) ||
        !(from = pt_form(n, "start", NULL)) || !(length = pt_form(n, "length", NULL)))
        return false;
    if (expr_rank(x) == 0 || !(from = position(n, from, expr_form(x, axis))))
        return pt_error(n, E_IMPORT, "it narrows a scalar");
    return pt_done(n, build_slice_to(&n->b, x, axis, from, idx_add(A, from, length)));
}

enum { MAX_DIFFERENCES = 64 }; /* of differences, each a node */

/* Each cell less the one before it along the axis, `n` times; of bools, whether they differ. */
bool aten_diff(PtNode *n)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    const Expr  *x = pt_tensor(n, "self"), *more[2];
    int64_t      rounds = pt_int(n, "n", 1);
    uint32_t     axis;

    if (!x || !pt_maybe(n, "prepend", &more[0]) || !pt_maybe(n, "append", &more[1]))
        return false;
    if (expr_rank(x) == 0)
        return pt_error(n, E_IMPORT, "a scalar has no differences");
    if (rounds < 0)
        return pt_error(n, E_IMPORT, "'n' is %lld, below 0", (long long)rounds);
    if (rounds > MAX_DIFFERENCES)
        return pt_error(n, E_UNSUPPORTED, "'n' is %lld, at most %d is supported", (long long)rounds,
                        MAX_DIFFERENCES);
    if (!pt_axis(n, pt_int(n, "dim", -1), expr_rank(x), &axis))
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        const Expr *both[] = {i ? x : more[0], i ? more[1] : x};

        if (more[i] && !dtype_eq(expr_dtype(more[i]), expr_dtype(x)))
            return pt_error(n, E_UNSUPPORTED, "what is put beside the tensor has another type");
        if (more[i])
            x = build_concat(b, 2, both, axis);
    }
    for (int64_t i = 0; i < rounds && x && !expr_empty(x); i++) {
        const Idx  *size = expr_form(x, axis), *zero = idx_const(A, 0);
        const Idx  *one = idx_min(A, idx_const(A, 1), size), *rest = idx_sub(A, size, one);
        const Expr *behind = build_slice_to(b, x, axis, one, size);
        const Expr *before = build_slice_to(b, x, axis, zero, rest);

        x = build2(b, dtype_is_bool(expr_dtype(x)) ? "not_equal" : "subtract", behind, before,
                   NULL);
    }
    return pt_done(n, x);
}

/* What of x is not in positions from, from + step .. before `to`; `part` has those. */
const Expr *pt_scattered(PtNode *n, bool slice, const Expr *x, const Expr *part)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    const Idx   *from, *to, *zero = idx_const(A, 0), *dims[MAX_RANK];
    const Expr  *parts[3];
    uint32_t     axis, k = 0;
    int64_t      step = 1;

    if (slice ? !slice_bounds(n, x, &axis, &from, &to, &step) : !(from = selected(n, x, &axis)))
        return NULL;
    if (step != 1)
        return pt_error(n, E_UNSUPPORTED, "a part of every %lldth cell is changed",
                        (long long)step);
    to = slice ? to : idx_addc(A, from, 1);
    for (uint32_t i = 0; i < expr_rank(x); i++)
        dims[i] = i == axis ? idx_sub(A, to, from) : expr_form(x, i);
    part = build_cast(b, part, expr_dtype(x));
    part = slice ? build_broadcast_to(b, part, expr_rank(x), dims)
                 : build_reshape_to(b, part, expr_rank(x), dims);
    if (from->hi > 0)
        parts[k++] = build_slice_to(b, x, axis, zero, from);
    parts[k++] = part;
    if (to != expr_form(x, axis))
        parts[k++] = build_slice_to(b, x, axis, to, expr_form(x, axis));
    return build_concat(b, k, parts, axis);
}

bool aten_slice_scatter(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self"), *part = x ? pt_tensor(n, "src") : NULL;

    return part && pt_done(n, pt_scattered(n, !strstr(n->p->target, "select"), x, part));
}

/* Where the parts after the first begin. */
static bool split(PtNode *n, const Expr *x, uint32_t axis, uint32_t count, const Idx *const *at)
{
    const Build *b = &n->b;
    SplitAttrs  *a = ATTRS(b, SplitAttrs);
    const Expr **parts = NEW_ARRAY(b->c->arena, const Expr *, count + 1), *all;

    if (count == 1)
        return pt_done_list(n, 1, &x);
    a->axis = axis;
    a->indices = dims_dup(b->c, at, count - 1);
    all = build1(b, "split", x, a);
    for (uint32_t i = 0; i < count; i++)
        parts[i] = build_proj(b, all, i);
    return pt_done_list(n, count, parts);
}

enum { MAX_PARTS = 1 << 16 };

/* Parts of `size` cells, of which the last one may have fewer. */
static bool split_by(PtNode *n, const Expr *x, uint32_t axis, int64_t size)
{
    Arith      *A = n->b.c->arith;
    int64_t     cells = build_dim(&n->b, x, axis), count;
    const Idx **at;

    if (size < 1 && cells > 0)
        return pt_error(n, E_IMPORT, "parts of %lld", (long long)size);
    count = cells ? (cells + size - 1) / size : 1;
    if (count > MAX_PARTS)
        return pt_error(n, E_UNSUPPORTED, "%lld parts", (long long)count);
    at = NEW_ARRAY(n->b.c->arena, const Idx *, (size_t)count + 1);
    for (int64_t i = 0; i + 1 < count; i++)
        at[i] = idx_const(A, (i + 1) * size);
    return split(n, x, axis, (uint32_t)count, at);
}

static const Expr *with_axis(PtNode *n, uint32_t *axis)
{
    const Expr *x = pt_tensor(n, "self");

    if (!x || !pt_axis(n, pt_int(n, "dim", 0), expr_rank(x), axis))
        return NULL;
    return expr_rank(x) ? x : pt_error(n, E_IMPORT, "parts of a scalar");
}

bool aten_split(PtNode *n)
{
    uint32_t     axis;
    const Expr  *x = with_axis(n, &axis);
    const char  *name = pt_has(n, "split_sizes") ? "split_sizes" : "split_size";
    const PtArg *a = x ? pt_arg(n, name) : NULL;
    const Idx  **at, *sum = idx_const(n->b.c->arith, 0);
    Dims         sizes;

    if (!a)
        return x && pt_error(n, E_IMPORT, "the sizes are missing");
    if (a->kind != PT_LIST)
        return split_by(n, x, axis, pt_int(n, name, 1));
    if (!pt_forms(n, name, &sizes))
        return false;
    at = NEW_ARRAY(n->b.c->arena, const Idx *, sizes.n + 1);
    for (uint32_t i = 0; i < sizes.n; i++) {
        if (sizes.at[i]->lo < 0)
            return pt_error(n, E_IMPORT, "a part of %s", dim_text(n->b.c, sizes.at[i]));
        at[i] = sum = idx_add(n->b.c->arith, sum, sizes.at[i]);
    }
    if (sizes.n == 0 || sum != expr_form(x, axis))
        return pt_error(n, E_IMPORT, "the parts hold %s of %s", dim_text(n->b.c, sum),
                        dim_text(n->b.c, expr_form(x, axis)));
    return split(n, x, axis, sizes.n, at);
}

bool aten_chunk(PtNode *n)
{
    uint32_t    axis;
    const Expr *x = with_axis(n, &axis);
    int64_t     chunks = pt_int(n, "chunks", 1), cells;

    if (!x)
        return false;
    if (chunks < 1)
        return pt_error(n, E_IMPORT, "%lld parts", (long long)chunks);
    cells = build_dim(&n->b, x, axis);
    return split_by(n, x, axis, cells ? (cells + chunks - 1) / chunks : 1);
}

/* Parts of nearly the same size, the first ones larger; or from these positions on. */
bool aten_tensor_split(PtNode *n)
{
    uint32_t    axis, count = 0;
    const Expr *x = with_axis(n, &axis);
    int64_t     cells = x ? build_dim(&n->b, x, axis) : 0, parts = 1, at = 0;
    const Idx **ends;
    Ints        given = {0};

    if (!x)
        return false;
    if (pt_has(n, "indices") && !pt_ints(n, "indices", &given))
        return false;
    if (!pt_has(n, "indices") && (parts = pt_int(n, "sections", 1)) < 1)
        return pt_error(n, E_IMPORT, "%lld parts", (long long)parts);
    if (parts > MAX_PARTS || given.n > MAX_PARTS)
        return pt_error(n, E_UNSUPPORTED, "%lld parts", (long long)parts);
    ends = NEW_ARRAY(n->b.c->arena, const Idx *, (size_t)parts + given.n + 1);
    for (uint32_t i = 0; i < given.n; i++) {
        int64_t to = given.at[i] < 0 ? given.at[i] + cells : given.at[i];

        at = to < at ? at : to > cells ? cells : to;
        ends[count++] = idx_const(n->b.c->arith, at);
    }
    for (int64_t i = 0; i + 1 < parts; i++)
        ends[count++] = idx_const(n->b.c->arith, at += cells / parts + (i < cells % parts));
    ends[count++] = idx_const(n->b.c->arith, cells);
    return split(n, x, axis, count, ends);
}

bool aten_unbind(PtNode *n)
{
    uint32_t     axis;
    const Expr  *x = with_axis(n, &axis);
    int64_t      count = x ? build_dim(&n->b, x, axis) : 0;
    const Expr **parts;

    if (!x || count > MAX_PARTS)
        return x && pt_error(n, E_UNSUPPORTED, "%lld parts", (long long)count);
    parts = NEW_ARRAY(n->b.c->arena, const Expr *, (size_t)count + 1);
    for (int64_t i = 0; i < count; i++)
        parts[i] = without(&n->b, build_slice(&n->b, x, axis, i, i + 1), axis);
    return pt_done_list(n, (uint32_t)count, parts);
}
