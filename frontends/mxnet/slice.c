/* Parts of a value, and values put together. */
#include "frontends/mxnet/mxnet.h"

#include <string.h>

/* ---- slices ----------------------------------------------------------------------------------------- */

/* Python's slices of the first dimensions, None where a number is left out. */
bool mx_slice(MxNode *n)
{
    const Build       *b = &n->b;
    Arith             *A = b->c->arith;
    StridedSliceAttrs *a = ATTRS(b, StridedSliceAttrs);
    Ints               from = mx_ints(n, "begin"), to = mx_ints(n, "end"), by = mx_ints(n, "step");
    uint32_t           rank = expr_rank(n->in[0]);
    const Idx         *begin[MAX_RANK], *end[MAX_RANK];
    int64_t            step[MAX_RANK], axes[MAX_RANK];

    if (from.n != to.n || from.n > rank || (by.n && by.n != from.n))
        return mx_error(n, E_IMPORT, "%u begins, %u ends and %u steps of %u dimensions", from.n,
                        to.n, by.n, rank);
    for (uint32_t i = 0; i < from.n; i++) {
        const Idx *cells = expr_form(n->in[0], i);

        step[i] = by.n && by.at[i] != MX_NONE ? by.at[i] : 1;
        if (step[i] == 0 || step[i] > INT32_MAX || step[i] < -INT32_MAX)
            return mx_error(n, E_IMPORT, "'step' is %s", mx_text(n, "step"));
        axes[i] = i;
        begin[i] = from.at[i] != MX_NONE ? idx_const(A, from.at[i])
                   : step[i] > 0         ? idx_const(A, 0)
                                         : idx_addc(A, cells, -1);
        end[i] = to.at[i] != MX_NONE ? idx_const(A, to.at[i])
                 : step[i] > 0       ? cells
                                     : idx_addc(A, idx_mulc(A, cells, -1), -1);
    }
    a->begin = dims_dup(b->c, begin, from.n);
    a->end = dims_dup(b->c, end, from.n);
    a->strides = ints_dup(b->c, step, from.n);
    a->axes = ints_dup(b->c, axes, from.n);
    return mx_done(n, build1(b, "strided_slice", n->in[0], a));
}

bool mx_slice_axis(MxNode *n)
{
    const Build       *b = &n->b;
    StridedSliceAttrs *a = ATTRS(b, StridedSliceAttrs);
    uint32_t           axis;
    const Idx         *begin = idx_const(b->c->arith, mx_int(n, "begin")), *end;

    if (!mx_axis(n, mx_int(n, "axis"), expr_rank(n->in[0]), &axis))
        return false;
    end = mx_has(n, "end") ? idx_const(b->c->arith, mx_int(n, "end")) : expr_form(n->in[0], axis);
    a->axes = ints_of(b->c, 1, (int)axis);
    a->begin = dims_dup(b->c, &begin, 1);
    a->end = dims_dup(b->c, &end, 1);
    return mx_done(n, build1(b, "strided_slice", n->in[0], a));
}

/* As many cells as the other operand has along some axes, or all. */
bool mx_slice_like(MxNode *n)
{
    const Build *b = &n->b;
    Ints         v = mx_ints(n, "axes");
    const Expr  *x = n->in[0];
    uint32_t     rank = expr_rank(x), count = v.n ? v.n : rank;

    if (!v.n && expr_rank(n->in[1]) != rank)
        return mx_error(n, E_IMPORT, "operands of %u and %u dimensions", rank, expr_rank(n->in[1]));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t axis = i, like = i;

        if (v.n &&
            (!mx_axis(n, v.at[i], rank, &axis) || !mx_axis(n, v.at[i], expr_rank(n->in[1]), &like)))
            return false;
        x = build_slice_to(b, x, axis, idx_const(b->c->arith, 0), expr_form(n->in[1], like));
    }
    return mx_done(n, x);
}

/* Rows and columns: of the other operand's size or of h_w, from an offset or in the middle. */
bool mx_crop(MxNode *n)
{
    const Build *b = &n->b;
    int64_t      size[2], offset[2];
    const Expr  *x = n->nin ? n->in[0] : NULL;

    if (n->nin < 1 || n->nin > 2)
        return mx_error(n, E_IMPORT, "%u operands", n->nin);
    if (!mx_rank(n, 0, 4, 4) || (n->nin > 1 && !mx_rank(n, 1, 4, 4)) ||
        !mx_sizes(n, "h_w", 2, 0, 0, size) || !mx_sizes(n, "offset", 2, 0, 0, offset))
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        int64_t cells = build_dim(b, n->in[0], 2 + i);

        if (n->nin > 1)
            size[i] = build_dim(b, n->in[1], 2 + i);
        if (mx_bool(n, "center_crop"))
            offset[i] = (cells - size[i]) / 2;
        if (size[i] < 1 || offset[i] < 0 || offset[i] + size[i] > cells)
            return mx_error(n, E_IMPORT, "%lld cells from %lld on of %lld", (long long)size[i],
                            (long long)offset[i], (long long)cells);
        x = build_slice(b, x, 2 + i, offset[i], offset[i] + size[i]);
    }
    return mx_done(n, x);
}

/* ---- splits ----------------------------------------------------------------------------------------- */

/* `count` parts, of these sizes or alike (NULL). */
static bool split(MxNode *n, uint32_t axis, const Ints *sizes, uint32_t count)
{
    const Build *b = &n->b;
    const Expr **out = NEW_ARRAY(b->c->arena, const Expr *, count + 1);
    int64_t      at = axis;

    if (!build_split(b, n->in[0], axis, sizes, count, out))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (mx_bool(n, "squeeze_axis"))
            out[i] = build_squeeze(b, out[i], 1, &at);
        if (!mx_put(n, i, out[i]))
            return false;
    }
    return true;
}

static bool part_count(const MxNode *n, int64_t count)
{
    return (count >= 1 && count <= 1 << 16) ||
           mx_error(n, E_IMPORT, "%lld parts", (long long)count);
}

bool mx_slice_channel(MxNode *n)
{
    int64_t  count = mx_int(n, "num_outputs");
    uint32_t axis;

    return part_count(n, count) && mx_axis(n, mx_int(n, "axis"), expr_rank(n->in[0]), &axis) &&
           split(n, axis, NULL, (uint32_t)count);
}

/* Alike, or from these positions on, of which the first is 0. */
bool mx_split_v2(MxNode *n)
{
    int64_t  count = mx_int(n, "sections"), cells;
    Ints     at = mx_ints(n, "indices");
    int64_t *sizes = NEW_ARRAY(n->b.c->arena, int64_t, at.n + 1);
    uint32_t axis;

    if (!mx_axis(n, mx_int(n, "axis"), expr_rank(n->in[0]), &axis))
        return false;
    if (count)
        return part_count(n, count) && split(n, axis, NULL, (uint32_t)count);
    if (!part_count(n, at.n))
        return false;
    cells = build_dim(&n->b, n->in[0], axis);
    for (uint32_t i = 0; i < at.n; i++) {
        int64_t end = i + 1 < at.n ? at.at[i + 1] : cells;

        if (at.at[i] < 0 || end < at.at[i] || end > cells || (i == 0 && at.at[0] != 0))
            return mx_error(n, E_IMPORT, "parts of %lld cells at %s", (long long)cells,
                            mx_text(n, "indices"));
        sizes[i] = end - at.at[i];
    }
    return split(n, axis, &(Ints){at.n, sizes}, at.n);
}

/* ---- together --------------------------------------------------------------------------------------- */

bool mx_concat(MxNode *n)
{
    uint32_t axis;

    if (!n->nin)
        return mx_error(n, E_IMPORT, "no operands");
    return mx_axis(n, mx_int(n, "dim"), expr_rank(n->in[0]), &axis) &&
           mx_done(n, build_concat(&n->b, n->nin, n->in, axis));
}

bool mx_stack(MxNode *n)
{
    const Expr **x = NEW_ARRAY(n->b.c->arena, const Expr *, n->nin + 1);
    uint32_t     axis;

    if (!n->nin)
        return mx_error(n, E_IMPORT, "no operands");
    if (!mx_axis(n, mx_int(n, "axis"), expr_rank(n->in[0]) + 1, &axis))
        return false;
    for (uint32_t i = 0; i < n->nin; i++)
        x[i] = build_expand_dims(&n->b, n->in[i], axis, 1);
    return mx_done(n, build_concat(&n->b, n->nin, x, axis));
}

/* What was kept, without its oldest cells, and the data behind. */
bool mx_ring_buffer(MxNode *n)
{
    const Build *b = &n->b;
    uint32_t     axis;
    const Expr  *all;

    if (!mx_axis(n, mx_int(n, "axis"), expr_rank(n->in[0]), &axis))
        return false;
    if (expr_rank(n->in[1]) != expr_rank(n->in[0]))
        return mx_error(n, E_IMPORT, "a buffer of %u dimensions", expr_rank(n->in[1]));
    all = build_concat(b, 2, (const Expr *[]){n->in[1], n->in[0]}, axis);
    return mx_done(
        n,
        all ? build_slice_to(b, all, axis, expr_form(n->in[0], axis), expr_form(all, axis)) : NULL);
}
