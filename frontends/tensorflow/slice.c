/* Parts of tensors, what is put around them, repetition. */
#include "frontends/tensorflow/tensorflow.h"

#include <string.h>

bool tf_slice(TfNode *n)
{
    Dims begin, size;

    return tf_forms(n, 1, &begin) && tf_forms(n, 2, &size) &&
           tf_done(n, build_part(&n->b, n->in[0], begin, size));
}

bool tf_strided_slice(TfNode *n)
{
    StrideMasks m = {.begin = tf_int(n, "begin_mask"),
                     .end = tf_int(n, "end_mask"),
                     .ellipsis = tf_int(n, "ellipsis_mask"),
                     .fresh = tf_int(n, "new_axis_mask"),
                     .shrink = tf_int(n, "shrink_axis_mask")};
    Dims        begin, end;
    Ints        step;

    return tf_forms(n, 1, &begin) && tf_forms(n, 2, &end) && tf_ints(n, 3, &step) &&
           tf_done(n, build_strides(&n->b, n->in[0], begin, end, step, &m));
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
    const Expr *x = n->in[0];
    Ints        v;
    uint32_t    axis;

    if (!tf_ints(n, 1, &v))
        return false;
    for (uint32_t i = 0; i < v.n; i++) {
        ReverseAttrs *a = ATTRS(&n->b, ReverseAttrs);

        if (!tf_axis(n, v.at[i], expr_rank(n->in[0]), &axis))
            return false;
        a->axis = axis;
        x = build1(&n->b, "reverse", x, a);
    }
    return tf_done(n, x);
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
