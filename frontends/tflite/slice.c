/* Parts of tensors, what is put around them, repetition. */
#include "frontends/tflite/tflite.h"

#include <math.h>
#include <string.h>

/* ---- slices --------------------------------------------------------------------------------------- */

/* Where a slice begins and how many cells it has, -1: up to the end. */
bool tflite_slice(TfliteNode *n)
{
    const Build       *b = &n->b;
    StridedSliceAttrs *a = ATTRS(b, StridedSliceAttrs);
    const Expr        *x = n->in[0];
    const Idx         *end[MAX_RANK];
    uint32_t           rank = expr_rank(x);
    Dims               begin, size;
    int64_t            v;

    if (!tflite_forms(n, 1, &begin) || !tflite_forms(n, 2, &size))
        return false;
    if (begin.n != rank || size.n != rank)
        return tflite_error(n, E_IMPORT, "positions and sizes of %u and %u dimensions for %u",
                            begin.n, size.n, rank);
    for (uint32_t i = 0; i < rank; i++) {
        end[i] = idx_is_const(size.at[i], &v) && v == -1
                     ? expr_form(x, i)
                     : idx_add(b->c->arith, begin.at[i], size.at[i]);
        if (begin.at[i]->lo < 0 || end[i]->lo < 0 || begin.at[i]->lo > expr_form(x, i)->hi ||
            end[i]->lo > expr_form(x, i)->hi)
            return tflite_error(n, E_IMPORT, "cells %s to %s of dimension %u, which has %s",
                                dim_text(b->c, begin.at[i]), dim_text(b->c, end[i]), i,
                                dim_text(b->c, expr_form(x, i)));
    }
    a->begin = begin;
    a->end = dims_dup(b->c, end, rank);
    return tflite_done(n, rank ? build1(b, "strided_slice", x, a) : x);
}

/* What a strided slice does with each dimension of its input, and the dimensions of its result. */
typedef struct {
    uint32_t   n;
    const Idx *begin[MAX_RANK], *end[MAX_RANK];
    int64_t    step[MAX_RANK];
    bool       drop[MAX_RANK];      /* one cell, whose dimension goes */
    uint32_t   nshape;              /* dimensions of the result: of the input, or .. */
    uint32_t   shape[2 * MAX_RANK]; /* .. NEW */
} Strides;

enum { NEW_DIM = UINT32_MAX };

static bool one_cell(TfliteNode *n, Strides *s, const Expr *x, const Idx *at)
{
    const Idx *cells = expr_form(x, s->n);

    if (at->hi < 0)
        at = idx_add(n->b.c->arith, at, cells);
    if (at->lo < 0 || at->lo >= cells->hi)
        return tflite_error(n, E_IMPORT, "cell %s of dimension %u, which has %s",
                            dim_text(n->b.c, at), s->n, dim_text(n->b.c, cells));
    s->begin[s->n] = at;
    s->end[s->n] = idx_addc(n->b.c->arith, at, 1);
    s->step[s->n] = 1;
    s->drop[s->n++] = true;
    return true;
}

static void all_cells(TfliteNode *n, Strides *s, const Expr *x)
{
    s->begin[s->n] = idx_const(n->b.c->arith, 0);
    s->end[s->n] = expr_form(x, s->n);
    s->step[s->n] = 1;
    s->shape[s->nshape++] = s->n++;
}

static bool read_strides(TfliteNode *n, const Expr *x, Dims begin, Dims end, Ints step, Strides *s)
{
    int64_t  begin_mask = tflite_int(n, "begin_mask"), end_mask = tflite_int(n, "end_mask");
    int64_t  ellipsis = tflite_int(n, "ellipsis_mask"), fresh = tflite_int(n, "new_axis_mask");
    int64_t  shrink = tflite_int(n, "shrink_axis_mask");
    uint32_t rank = expr_rank(x), rest = 0;
    Arith   *A = n->b.c->arith;

    for (uint32_t i = 0; i < begin.n; i++)
        rest += !(fresh >> i & 1) && !(ellipsis >> i & 1);
    if (rest > rank || begin.n > 2 * MAX_RANK)
        return tflite_error(n, E_IMPORT, "%u positions for %u dimensions", rest, rank);
    rest = rank - rest; /* what an ellipsis stands for */
    for (uint32_t i = 0; i < begin.n; i++) {
        bool back = step.at[i] < 0;

        if (ellipsis >> i & 1) {
            for (; rest; rest--)
                all_cells(n, s, x);
        } else if (fresh >> i & 1) {
            s->shape[s->nshape++] = NEW_DIM;
        } else if (shrink >> i & 1) {
            if (!one_cell(n, s, x, begin.at[i]))
                return false;
        } else {
            if (step.at[i] == 0 || step.at[i] < -INT32_MAX || step.at[i] > INT32_MAX)
                return tflite_error(n, E_IMPORT, "a stride of %lld", (long long)step.at[i]);
            s->begin[s->n] = !(begin_mask >> i & 1) ? begin.at[i]
                             : back                 ? idx_addc(A, expr_form(x, s->n), -1)
                                                    : idx_const(A, 0);
            s->end[s->n] = !(end_mask >> i & 1) ? end.at[i]
                           : back ? idx_addc(A, idx_mulc(A, expr_form(x, s->n), -1), -1)
                                  : expr_form(x, s->n);
            if ((tflite_int(n, "offset") & 1) && !(end_mask >> i & 1))
                s->end[s->n] = idx_add(A, s->begin[s->n], end.at[i]);
            s->step[s->n] = step.at[i];
            s->shape[s->nshape++] = s->n++;
        }
    }
    while (s->n < rank)
        all_cells(n, s, x);
    return s->nshape <= MAX_RANK ||
           tflite_error(n, E_UNSUPPORTED, "a result of %u dimensions", s->nshape);
}

bool tflite_strided_slice(TfliteNode *n)
{
    const Build       *b = &n->b;
    StridedSliceAttrs *a = ATTRS(b, StridedSliceAttrs);
    const Idx         *dims[MAX_RANK];
    const Expr        *x = n->in[0], *y;
    Strides            s = {0};
    Dims               begin, end;
    Ints               step;

    if (!tflite_forms(n, 1, &begin) || !tflite_forms(n, 2, &end) || !tflite_ints(n, 3, &step))
        return false;
    if (begin.n != end.n || begin.n != step.n)
        return tflite_error(n, E_IMPORT, "%u positions, %u ends, %u strides", begin.n, end.n,
                            step.n);
    if (!read_strides(n, x, begin, end, step, &s))
        return false;
    a->begin = dims_dup(b->c, s.begin, s.n);
    a->end = dims_dup(b->c, s.end, s.n);
    a->strides = ints_dup(b->c, s.step, s.n);
    y = s.n ? build1(b, "strided_slice", x, a) : x;
    for (uint32_t i = 0; y && i < s.nshape; i++)
        dims[i] = s.shape[i] == NEW_DIM ? idx_const(b->c->arith, 1) : expr_form(y, s.shape[i]);
    return tflite_done(n, build_reshape_to(b, y, s.nshape, dims));
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

/* The cells that mirror `count` at one end of an axis; the last one again if `again`. */
static const Expr *mirrored(const Build *b, const Expr *x, int64_t axis, int64_t count, bool end,
                            bool again)
{
    int64_t       cells = build_dim(b, x, (uint32_t)axis), skip = again ? 0 : 1;
    ReverseAttrs *a = ATTRS(b, ReverseAttrs);

    a->axis = axis;
    x = end ? build_slice(b, x, axis, cells - skip - count, cells - skip)
            : build_slice(b, x, axis, skip, skip + count);
    return build1(b, "reverse", x, a);
}

bool tflite_mirror_pad(TfliteNode *n)
{
    const Build *b = &n->b;
    int64_t      pads[2 * MAX_RANK] = {0}, mode = tflite_int(n, "mode");
    const Expr  *x = n->in[0];

    if (!read_pads(n, pads))
        return false;
    for (uint32_t i = 0; i < expr_rank(x); i++)
        for (uint32_t k = 0; k < 2; k++)
            if (pads[2 * i + k] > build_dim(b, x, i) - (mode == 0))
                return tflite_error(n, E_IMPORT, "%lld cells mirrored in the %lld of dimension %u",
                                    (long long)pads[2 * i + k], (long long)build_dim(b, x, i), i);
    if (mode == 0)
        return tflite_done(n, build_pad(b, x, pads, 0, "reflect"));
    for (uint32_t i = 0; x && i < expr_rank(n->in[0]); i++) {
        const Expr *at[3];
        uint32_t    k = 0;

        if (pads[2 * i])
            at[k++] = mirrored(b, x, i, pads[2 * i], false, true);
        at[k++] = x;
        if (pads[2 * i + 1])
            at[k++] = mirrored(b, x, i, pads[2 * i + 1], true, true);
        x = build_concat(b, k, at, i);
    }
    return tflite_done(n, x);
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
    const Expr *x = n->in[0];
    Ints        v;
    uint32_t    axis;

    if (!tflite_ints(n, 1, &v))
        return false;
    for (uint32_t i = 0; i < v.n; i++) {
        ReverseAttrs *a = ATTRS(&n->b, ReverseAttrs);

        if (!tflite_axis(n, v.at[i], expr_rank(n->in[0]), &axis))
            return false;
        a->axis = axis;
        x = build1(&n->b, "reverse", x, a);
    }
    return tflite_done(n, x);
}
