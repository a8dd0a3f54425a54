/* Parts of tensors, what is put around them, repetition. */
#include "frontends/tensorflow/tensorflow.h"

#include <string.h>

/* Number i of a list of positions: a form over dimensions, or else *run, a scalar of the run. */
static const Idx *position(TfNode *n, const Expr *list, int64_t i, const Expr **run)
{
    const Build *b = &n->b;
    const Expr  *e = build_reshape(b, build_slice(b, list, 0, i, i + 1), 0, NULL), *k;
    Dims         d;

    *run = e && (k = build_fold(b, e)) ? k : e;
    return *run && build_forms(b, *run, &d) && d.n == 1 ? d.at[0] : NULL;
}

/* `size` cells of x along an axis from a position of the run on; below 0 it counts from the end. */
static const Expr *cells_from(TfNode *n, const Expr *x, uint32_t axis, const Expr *from,
                              const Idx *size)
{
    const Build *b = &n->b;
    const Expr  *cells = build_values(b, type_tensor(b->c, DT_I64, 0, NULL),
                                      (Dims){1, (const Idx *[]){expr_form(x, axis)}});

    from = build_cast(b, from, DT_I64);
    from = build_where(b, build_less(b, from, build_scalar(b, from, 0)), build_add(b, from, cells),
                       from);
    return build_take(b, x, build_add(b, build_arange(b, size, DT_I64), from), axis);
}

/* Where a part begins and how many cells it has; a run may decide the first. */
bool tf_slice(TfNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *run;
    const Idx   *begin[MAX_RANK];
    uint32_t     rank = expr_rank(x);
    Dims         size;

    if (!tf_forms(n, 2, &size) || !tf_rank(n, 1, 1, 1) || !dtype_is_int(expr_dtype(n->in[1])))
        return false;
    if (size.n != rank || build_dim(b, n->in[1], 0) != rank)
        return tf_error(n, E_IMPORT, "positions and sizes of %lld and %u dimensions for %u",
                        (long long)build_dim(b, n->in[1], 0), size.n, rank);
    for (uint32_t i = 0; x && i < rank; i++) {
        if ((begin[i] = position(n, n->in[1], i, &run)))
            continue;
        if (size.at[i]->lo < 0)
            return tf_error(n, E_UNSUPPORTED,
                            "where dimension %u begins has to be known when it is compiled", i);
        x = cells_from(n, x, i, run, size.at[i]);
        begin[i] = idx_const(b->c->arith, 0);
    }
    return x && tf_done(n, build_part(b, x, dims_dup(b->c, begin, rank), size));
}

/* The dimension of the input that position i of a strided slice is of. */
static uint32_t axis_of(const StrideMasks *m, uint32_t i, uint32_t count, uint32_t rank)
{
    uint32_t before = 0, behind = 0;
    bool     ellipsis = false;

    for (uint32_t k = 0; k < count; k++) {
        if (m->ellipsis >> k & 1)
            ellipsis |= k < i;
        else if (!(m->fresh >> k & 1) && k < i)
            before++;
        else if (!(m->fresh >> k & 1))
            behind++;
    }
    return ellipsis ? rank - behind : before;
}

/* x where positions of the run have become 0: `one` of them, whose dimension goes. */
static const Expr *one_cell(TfNode *n, const Expr *x, uint32_t axis, const Expr *at)
{
    if (axis >= expr_rank(x))
        return tf_error(n, E_IMPORT, "more positions than the %u dimensions", expr_rank(x));
    return cells_from(n, x, axis, at, idx_const(n->b.c->arith, 1));
}

bool tf_strided_slice(TfNode *n)
{
    const Build *b = &n->b;
    StrideMasks  m = {.begin = tf_int(n, "begin_mask"),
                      .end = tf_int(n, "end_mask"),
                      .ellipsis = tf_int(n, "ellipsis_mask"),
                      .fresh = tf_int(n, "new_axis_mask"),
                      .shrink = tf_int(n, "shrink_axis_mask")};
    const Expr  *x = n->in[0], *run;
    const Idx   *at[2][2 * MAX_RANK];
    uint32_t     count;
    Ints         step;

    if (!tf_ints(n, 3, &step) || !tf_rank(n, 1, 1, 1) || !tf_rank(n, 2, 1, 1))
        return false;
    count = step.n;
    if (count > 2 * MAX_RANK || build_dim(b, n->in[1], 0) != count ||
        build_dim(b, n->in[2], 0) != count || !dtype_is_int(expr_dtype(n->in[1])) ||
        !dtype_is_int(expr_dtype(n->in[2])))
        return tf_error(n, E_IMPORT, "positions are %s, ends %s, %u strides",
                        type_text(b->c, n->in[1]->type), type_text(b->c, n->in[2]->type), count);
    for (uint32_t i = 0; i < count; i++) {
        bool one = m.shrink >> i & 1 && !(m.ellipsis >> i & 1) && !(m.fresh >> i & 1);

        for (uint32_t k = 0; k < 2; k++)
            if (!(at[k][i] = position(n, n->in[1 + k], i, &run))) {
                bool counts = one ? k == 0 : !((k ? m.end : m.begin) >> i & 1);

                at[k][i] = idx_const(b->c->arith, 0);
                if (counts && !one)
                    return tf_error(n, E_UNSUPPORTED,
                                    "input %u ('%s') has to be known when it is compiled", 1 + k,
                                    n->op->edges[1 + k]);
                if (counts && !(x = one_cell(n, x, axis_of(&m, i, count, expr_rank(x)), run)))
                    return false;
            }
    }
    return tf_done(n, build_strides(b, x, dims_dup(b->c, at[0], count),
                                    dims_dup(b->c, at[1], count), step, &m));
}

/* Cells before and after each dimension as it lies. */
static bool read_pads(TfNode *n, int64_t *pads)
{
    uint32_t rank = expr_rank(n->in[0]), axis;
    Ints     v;

    if (!tf_ints(n, 1, &v))
        return false;
    if (v.n != 2 * rank)
        return tf_error(n, E_IMPORT, "%u numbers of cells for %u dimensions", v.n, rank);
    for (uint32_t i = 0; i < rank; i++) {
        if (!tf_axis(n, i, rank, &axis))
            return false;
        for (uint32_t k = 0; k < 2; k++) {
            if (v.at[2 * i + k] < 0 || v.at[2 * i + k] > INT32_MAX)
                return tf_error(n, E_IMPORT, "%lld cells around dimension %u",
                                (long long)v.at[2 * i + k], i);
            pads[2 * axis + k] = v.at[2 * i + k];
        }
    }
    return true;
}

/* With zeros, or input 2. */
bool tf_pad(TfNode *n)
{
    int64_t pads[2 * MAX_RANK] = {0};
    double  value = 0;

    if (!read_pads(n, pads))
        return false;
    if (n->nin > 2 && (!expr_single(n->in[2]) || !expr_const_f(n->in[2], &value)))
        return tf_error(n, E_UNSUPPORTED, "what it pads with has to be known when it is compiled");
    return tf_done(n, build_pad(&n->b, n->in[0], pads, value, "constant"));
}

bool tf_mirror_pad(TfNode *n)
{
    int64_t     pads[2 * MAX_RANK] = {0};
    const char *mode = tf_text(n, "mode");
    bool        again = !strcmp(mode, "SYMMETRIC");

    if (!again && strcmp(mode, "REFLECT") != 0)
        return tf_error(n, E_UNSUPPORTED, "mode is '%s'", mode);
    return read_pads(n, pads) && tf_done(n, build_mirror_pad(&n->b, n->in[0], pads, again));
}

bool tf_tile(TfNode *n)
{
    TileAttrs *a = ATTRS(&n->b, TileAttrs);

    if (!tf_forms(n, 1, &a->reps))
        return false;
    if (a->reps.n != expr_rank(n->in[0]))
        return tf_error(n, E_IMPORT, "%u numbers for %u dimensions", a->reps.n,
                        expr_rank(n->in[0]));
    for (uint32_t i = 0; i < a->reps.n; i++)
        if (a->reps.at[i]->lo < 0 || idx_usual(a->reps.at[i]) > INT32_MAX)
            return tf_error(n, E_IMPORT, "%s times", dim_text(n->b.c, a->reps.at[i]));
    return tf_done(n, a->reps.n ? build1(&n->b, "tile", n->in[0], a) : n->in[0]);
}

bool tf_broadcast_to(TfNode *n)
{
    Dims v;

    if (!tf_forms(n, 1, &v) || !build_check_shape(&n->b, v))
        return false;
    if (v.n < expr_rank(n->in[0]))
        return tf_error(n, E_IMPORT, "a shape of %u dimensions", v.n);
    return tf_done(n, build_broadcast_to(&n->b, n->in[0], v.n, v.at));
}

bool tf_reverse(TfNode *n)
{
    int64_t  axes[MAX_RANK];
    uint32_t count;
    Ints     v;

    return tf_ints(n, 1, &v) &&
           build_axes(&n->b, v, expr_rank(n->in[0]), n->moved ? IMAGE_RANK : 0, &count, axes) &&
           tf_done(n, build_reverse(&n->b, n->in[0], count, axes));
}

/* Inputs: cells, by how much, along which axes. */
bool tf_roll(TfNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0];
    Ints         by, axes;
    uint32_t     axis;

    if (!tf_ints(n, 1, &by) || !tf_ints(n, 2, &axes))
        return false;
    if (by.n != axes.n)
        return tf_error(n, E_IMPORT, "%u shifts along %u axes", by.n, axes.n);
    for (uint32_t i = 0; x && i < by.n; i++) {
        int64_t     cells, cut;
        const Expr *part[2];

        if (!tf_axis(n, axes.at[i], expr_rank(x), &axis))
            return false;
        if ((cells = build_dim(b, x, axis)) < 1)
            continue;
        cut = ((-by.at[i]) % cells + cells) % cells;
        if (cut == 0)
            continue;
        part[0] = build_slice(b, x, axis, cut, cells);
        part[1] = build_slice(b, x, axis, 0, cut);
        x = build_concat(b, 2, part, axis);
    }
    return tf_done(n, x);
}
