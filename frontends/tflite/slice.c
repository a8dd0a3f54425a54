/* Parts of tensors, what is put around them, repetition. */
#include "frontends/tflite/tflite.h"

#include <math.h>
#include <string.h>

/* ---- slices --------------------------------------------------------------------------------------- */

bool tflite_slice(TfliteNode *n)
{
    Dims begin, size;

    return tflite_forms(n, 1, &begin) && tflite_forms(n, 2, &size) &&
           tflite_done(n, build_part(&n->b, n->in[0], begin, size));
}

bool tflite_strided_slice(TfliteNode *n)
{
    StrideMasks m = {tflite_int(n, "begin_mask"),       tflite_int(n, "end_mask"),
                     tflite_int(n, "ellipsis_mask"),    tflite_int(n, "new_axis_mask"),
                     tflite_int(n, "shrink_axis_mask"), tflite_int(n, "offset") & 1};
    Dims        begin, end;
    Ints        step;

    return tflite_forms(n, 1, &begin) && tflite_forms(n, 2, &end) && tflite_ints(n, 3, &step) &&
           tflite_done(n, build_strides(&n->b, n->in[0], begin, end, step, &m));
}

/* The position, by dimension, is moved so that the slice lies inside. */
bool tflite_dynamic_update_slice(TfliteNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *y = n->in[1], *first = build_cast(b, n->in[2], DT_I64);
    const Expr  *at[MAX_RANK];
    uint32_t     rank = expr_rank(x);

    if (!tflite_rank(n, 1, rank, rank) || !tflite_rank(n, 2, 1, 1))
        return false;
    if (rank == 0 || build_dim(b, first, 0) != rank)
        return tflite_error(n, E_IMPORT, "a position of %lld numbers for %u dimensions",
                            (long long)build_dim(b, first, 0), rank);
    for (uint32_t i = 0; i < rank; i++) {
        int64_t     room = build_dim(b, x, i) - build_dim(b, y, i);
        const Expr *k = build_reshape(b, build_slice(b, first, 0, i, i + 1), 0, NULL);

        if (room < 0)
            return tflite_error(n, E_IMPORT, "%s is no slice of %s", type_text(b->c, y->type),
                                type_text(b->c, x->type));
        k = build_by(b, "minimum", build_by(b, "maximum", k, 0), (double)room);
        k = build_add(b, build_along(b, build_arange(b, expr_form(y, i), DT_I64), rank, i), k);
        at[i] = build_expand_dims(b, build_broadcast_to(b, k, rank, expr_forms(y).at), 0, 1);
    }
    return tflite_done(n, build3(b, "scatter_nd", x, build_concat(b, rank, at, 0), y, NULL));
}

/* ---- around --------------------------------------------------------------------------------------- */

/* Cells before and after each dimension as it lies; `most`: no more of them. */
static bool read_pads(TfliteNode *n, int64_t *pads)
{
    uint32_t rank = expr_rank(n->in[0]), axis;
    Ints     v;

    if (!tflite_ints(n, 1, &v))
        return false;
    if (v.n != 2 * rank)
        return tflite_error(n, E_IMPORT, "%u numbers of cells for %u dimensions", v.n, rank);
    for (uint32_t i = 0; i < rank; i++) {
        if (!tflite_axis(n, i, rank, &axis))
            return false;
        for (uint32_t k = 0; k < 2; k++) {
            if (v.at[2 * i + k] < 0 || v.at[2 * i + k] > INT32_MAX)
                return tflite_error(n, E_IMPORT, "%lld cells around dimension %u",
                                    (long long)v.at[2 * i + k], i);
            pads[2 * axis + k] = v.at[2 * i + k];
        }
    }
    return true;
}

/* With zeros, or input 2. */
bool tflite_pad(TfliteNode *n)
{
    int64_t     pads[2 * MAX_RANK] = {0};
    double      value = 0;
    const Expr *v = tflite_has(n, 2) ? n->in[2] : NULL, *k;

    if (!read_pads(n, pads))
        return false;
    if (v && (!(k = build_fold(&n->b, v)) || !expr_single(k) || !expr_const_f(k, &value)))
        return tflite_error(n, E_UNSUPPORTED,
                            "what it pads with has to be known when it is compiled");
    return tflite_done(n, build_pad(&n->b, n->in[0], pads, value, "constant"));
}

bool tflite_mirror_pad(TfliteNode *n)
{
    int64_t pads[2 * MAX_RANK] = {0};

    return read_pads(n, pads) &&
           tflite_done(n, build_mirror_pad(&n->b, n->in[0], pads, tflite_int(n, "mode") != 0));
}

/* ---- again and again ------------------------------------------------------------------------------ */

bool tflite_tile(TfliteNode *n)
{
    TileAttrs *a = ATTRS(&n->b, TileAttrs);

    if (!tflite_forms(n, 1, &a->reps))
        return false;
    if (a->reps.n != expr_rank(n->in[0]))
        return tflite_error(n, E_IMPORT, "%u numbers for %u dimensions", a->reps.n,
                            expr_rank(n->in[0]));
    for (uint32_t i = 0; i < a->reps.n; i++)
        if (a->reps.at[i]->lo < 0 || idx_usual(a->reps.at[i]) > INT32_MAX)
            return tflite_error(n, E_IMPORT, "%s times", dim_text(n->b.c, a->reps.at[i]));
    return tflite_done(n, build1(&n->b, "tile", n->in[0], a));
}

bool tflite_broadcast_to(TfliteNode *n)
{
    Dims v;

    if (!tflite_forms(n, 1, &v) || !build_check_shape(&n->b, v))
        return false;
    if (v.n < expr_rank(n->in[0]))
        return tflite_error(n, E_IMPORT, "a shape of %u dimensions", v.n);
    return tflite_done(n, build_broadcast_to(&n->b, n->in[0], v.n, v.at));
}

bool tflite_reverse(TfliteNode *n)
{
    int64_t  axes[MAX_RANK];
    uint32_t count;
    Ints     v;

    return tflite_ints(n, 1, &v) &&
           build_axes(&n->b, v, expr_rank(n->in[0]), n->moved ? IMAGE_RANK : 0, &count, axes) &&
           tflite_done(n, build_reverse(&n->b, n->in[0], count, axes));
}
