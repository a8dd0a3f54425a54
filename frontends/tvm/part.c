/* Parts of tensors at computed places, and sums that undo broadcasting. */
#include "frontends/tvm/tvm.h"

#include <string.h>

/* (data, positions along its first dimension, along its second ..), which broadcast. */
const Expr *tv_adv_index(TvNode *n)
{
    const Build *b = &n->b;
    uint32_t     count = n->in[0]->type->n;
    const Expr  *data = build_proj(b, n->in[0], 0), *at[MAX_RANK];
    Dims         dims = {0};

    if (!data || count < 2 || count - 1 > expr_rank(data))
        return tv_error(n, E_IMPORT, "%u positions", count - 1);
    for (uint32_t i = 0; i + 1 < count; i++) {
        if (!(at[i] = build_proj(b, n->in[0], i + 1)))
            return NULL;
        at[i] = build_cast(b, at[i], DT_I64);
        if (i == 0)
            dims = expr_forms(at[0]);
        else if (!build_broadcast_dims(b, dims, expr_forms(at[i]), &dims))
            return NULL;
    }
    for (uint32_t i = 0; i + 1 < count; i++)
        at[i] = build_expand_dims(b, build_broadcast_to(b, at[i], dims.n, dims.at), 0, 1);
    return build2(b, "gather_nd", data, build_concat(b, count - 1, at, 0), NULL);
}

/* data, cells; from where, up to where and by which step along each of the first dimensions. */
const Expr *tv_strided_set(TvNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *v = n->in[1], *at[MAX_RANK];
    uint32_t     rank = expr_rank(x);
    TvValue      given[3] = {{0}};

    for (uint32_t i = 0; i < 3; i++)
        if (!tv_constant(n, 2 + i, &given[i]))
            return NULL;
    if (expr_rank(v) != rank || rank < 1 || rank >= MAX_RANK || given[0].n > rank ||
        given[1].n != given[0].n || given[2].n > given[0].n)
        return tv_error(n, E_IMPORT, "%s, of which a part becomes %s", type_text(b->c, x->type),
                        type_text(b->c, v->type));
    for (uint32_t i = 0; i < rank; i++) {
        bool    cut = i < given[0].n;
        int64_t cells = build_dim(b, x, i), from = cut ? given[0].list[i].i : 0,
                step = i < given[2].n ? given[2].list[i].i : 1, count = build_dim(b, v, i), *place,
                to = cut ? given[1].list[i].i : cells, want;

        if (!step || step == INT64_MIN || from < -INT32_MAX || from > INT32_MAX)
            return tv_error(n, E_IMPORT, "steps of %lld from %lld", (long long)step,
                            (long long)from);
        from += from < 0 ? cells : 0;
        to += to < 0 ? cells : 0;
        from = from < 0 ? 0 : from > cells - (step < 0) ? cells - (step < 0) : from;
        to = to < -(step < 0) ? -(step < 0) : to > cells ? cells : to;
        want = step > 0 ? (to - from + step - 1) / step : (from - to - step - 1) / -step;
        want = want < 0 ? 0 : want;
        if (count != want || count > INT32_MAX)
            return tv_error(n, E_IMPORT, "%lld cells for %lld along dimension %u", (long long)count,
                            (long long)want, i);
        place = arena_array(b->c->arena, (size_t)count + 1, sizeof *place);
        for (int64_t k = 0; k < count; k++)
            place[k] = from + k * step;
        at[i] = build_along(b, build_const(b, DT_I64, 1, &count, place), rank, i);
        at[i] = build_expand_dims(b, build_broadcast_to(b, at[i], rank, expr_forms(v).at), 0, 1);
    }
    return build3(b, "scatter_nd", x, build_concat(b, rank, at, 0), v, NULL);
}

/* Rows in rising order, of values where they would stand: how many are before each. */
const Expr *tv_searchsorted(TvNode *n)
{
    const Build *b = &n->b;
    uint32_t     rows = expr_rank(n->in[0]), rank = expr_rank(n->in[1]);
    bool         right = tv_bool(n, "right", false);
    int64_t      axis = rank;
    const Expr  *y;
    DType        t = DT_I32;

    if (!tv_type(n, "dtype", &t))
        return NULL;
    if (rows < 1 || (rows > 1 && rows != rank) || rank >= MAX_RANK)
        return tv_error(n, E_IMPORT, "%s in %s", type_text(b->c, n->in[1]->type),
                        type_text(b->c, n->in[0]->type));
    y = rows > 1 ? build_expand_dims(b, n->in[0], rows - 1, 1) : n->in[0];
    y = build2(b, right ? "less_equal" : "less", y, build_expand_dims(b, n->in[1], rank, 1), NULL);
    return y ? build_reduce(b, "sum", build_cast(b, y, t), 1, &axis, false) : NULL;
}

/* ---- sums -------------------------------------------------------------------------------------------- */

/* Over what a tensor of these dimensions was broadcast along. */
static const Expr *collapsed(const TvNode *n, const Expr *x, Dims to)
{
    uint32_t rank = expr_rank(x), gone = rank - to.n, count = 0;
    int64_t  axes[MAX_RANK];

    if (to.n > rank)
        return tv_error(n, E_IMPORT, "%s in %u dimensions", type_text(n->b.c, x->type), to.n);
    for (uint32_t i = 0; i < rank; i++) {
        const Idx *is = expr_form(x, i), *want = i < gone ? NULL : to.at[i - gone];

        if (want && want != is && want != idx_const(n->b.c->arith, 1))
            return tv_error(n, E_IMPORT, "dimension %u is %s, not %s", i, dim_text(n->b.c, is),
                            dim_text(n->b.c, want));
        if (want != is)
            axes[count++] = i;
    }
    if (count)
        x = build_reduce(&n->b, "sum", x, count, axes, true);
    return gone ? build_reshape_to(&n->b, x, to.n, to.at) : x;
}

const Expr *tv_collapse_sum_like(TvNode *n)
{
    return collapsed(n, n->in[0], expr_forms(n->in[1]));
}

const Expr *tv_collapse_sum_to(TvNode *n)
{
    TvValue  v;
    int64_t *dims;

    if (!tv_constant(n, 1, &v))
        return NULL;
    dims = NEW_ARRAY(n->b.c->arena, int64_t, v.n + 1);
    for (uint32_t i = 0; i < v.n; i++)
        dims[i] = v.list[i].i;
    return v.kind == TV_LIST ? collapsed(n, n->in[0], tv_dims(n, (Ints){v.n, dims}))
                             : tv_error(n, E_IMPORT, "a shape that is one number");
}

/* ---- buffers ------------------------------------------------------------------------------------------ */

/* The buffer with the data behind it, as long as it was. */
const Expr *tv_fifo_buffer(TvNode *n)
{
    const Build *b = &n->b;
    uint32_t     rank = expr_rank(n->in[1]), axis;
    int64_t      data, room;

    if (expr_rank(n->in[0]) != rank)
        return tv_error(n, E_IMPORT, "%s in %s", type_text(b->c, n->in[0]->type),
                        type_text(b->c, n->in[1]->type));
    if (!build_axis(b, tv_int(n, "axis", 0), rank, 0, &axis))
        return NULL;
    data = build_dim(b, n->in[0], axis), room = build_dim(b, n->in[1], axis);
    return build_slice(b, build_concat(b, 2, (const Expr *[]){n->in[1], n->in[0]}, axis), axis,
                       data, data + room);
}
