/* Slices with masks, as NumPy has them, and what mirrors a tensor's ends. */
#include "frontends/calls.h"

Ints build_steps(const Build *b, const int64_t *at, uint32_t n)
{
    return ints_all((Ints){n, at}, 1) ? (Ints){0} : ints_dup(b->c, at, n);
}

const Expr *build_part(const Build *b, const Expr *x, Dims begin, Dims size)
{
    StridedSliceAttrs *a = ATTRS(b, StridedSliceAttrs);
    const Idx         *end[MAX_RANK];
    uint32_t           rank = expr_rank(x);
    int64_t            v;

    if (begin.n != rank || size.n != rank)
        return build_error(b, E_IMPORT, "positions and sizes of %u and %u dimensions for %u",
                           begin.n, size.n, rank);
    for (uint32_t i = 0; i < rank; i++) {
        end[i] = idx_is_const(size.at[i], &v) && v == -1
                     ? expr_form(x, i)
                     : idx_add(b->c->arith, begin.at[i], size.at[i]);
        if (begin.at[i]->lo < 0 || end[i]->lo < 0 || begin.at[i]->lo > expr_form(x, i)->hi ||
            end[i]->lo > expr_form(x, i)->hi)
            return build_error(b, E_IMPORT, "cells %s to %s of dimension %u, which has %s",
                               dim_text(b->c, begin.at[i]), dim_text(b->c, end[i]), i,
                               dim_text(b->c, expr_form(x, i)));
    }
    a->begin = begin;
    a->end = dims_dup(b->c, end, rank);
    return rank ? build1(b, "strided_slice", x, a) : x;
}

/* What the model says of n parts of `cells` cells, as numbers. */
static bool sizes_of(const Build *b, int64_t cells, const Ints *given, uint32_t n, int64_t *size)
{
    uint32_t left = UINT32_MAX;

    if (!given && (n == 0 || cells % n))
        return build_error(b, E_IMPORT, "%lld cells into %u equal parts", (long long)cells, n);
    if (given && given->n != n)
        return build_error(b, E_IMPORT, "%u outputs for %u sizes", n, given->n);
    for (uint32_t i = 0; i < n; i++) {
        size[i] = given ? given->at[i] : cells / n;
        if (given && size[i] == -1 && left == UINT32_MAX) {
            left = i;
            continue;
        }
        if (size[i] < 0 || (given && size[i] > cells))
            return build_error(b, E_IMPORT, "a part of %lld cells", (long long)size[i]);
        cells -= given ? size[i] : 0;
    }
    if (left < n)
        size[left] = cells;
    return !given || left < n || cells == 0 ||
           build_error(b, E_IMPORT, "its parts leave %lld cells", (long long)cells);
}

bool build_split(const Build *b, const Expr *x, uint32_t axis, const Ints *sizes, uint32_t n,
                 const Expr **out)
{
    int64_t *size = NEW_ARRAY(b->c->arena, int64_t, n + 1), at = 0;

    if (!sizes_of(b, build_dim(b, x, axis), sizes, n, size))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (!(out[i] = n == 1 ? x : build_slice(b, x, axis, at, at + size[i])))
            return false;
        at += size[i];
    }
    return true;
}

bool build_unstack(const Build *b, const Expr *x, uint32_t axis, uint32_t n, const Expr **out)
{
    int64_t cells = build_dim(b, x, axis);

    if (cells != n)
        return build_error(b, E_IMPORT, "%u outputs for %lld parts", n, (long long)cells);
    if (!build_split(b, x, axis, NULL, n, out))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        SqueezeAttrs *a = ATTRS(b, SqueezeAttrs);

        a->axis = ints_of(b->c, 1, (int)axis);
        if (!(out[i] = build1(b, "squeeze", out[i], a)))
            return false;
    }
    return true;
}

const Expr *build_reverse(const Build *b, const Expr *x, uint32_t n, const int64_t *axes)
{
    for (uint32_t i = 0; i < n; i++) {
        ReverseAttrs *a = ATTRS(b, ReverseAttrs);

        a->axis = axes[i];
        x = build1(b, "reverse", x, a);
    }
    return x;
}

/* ---- strides and masks ------------------------------------------------------------------------------ */

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

static bool one_cell(const Build *b, Strides *s, const Expr *x, const Idx *at)
{
    const Idx *cells = expr_form(x, s->n);

    if (at->hi < 0)
        at = idx_add(b->c->arith, at, cells);
    if (at->lo < 0 || at->lo >= cells->hi)
        return build_error(b, E_IMPORT, "cell %s of dimension %u, which has %s", dim_text(b->c, at),
                           s->n, dim_text(b->c, cells));
    s->begin[s->n] = at;
    s->end[s->n] = idx_addc(b->c->arith, at, 1);
    s->step[s->n] = 1;
    s->drop[s->n++] = true;
    return true;
}

static void all_cells(const Build *b, Strides *s, const Expr *x)
{
    s->begin[s->n] = idx_const(b->c->arith, 0);
    s->end[s->n] = expr_form(x, s->n);
    s->step[s->n] = 1;
    s->shape[s->nshape++] = s->n++;
}

static bool read_strides(const Build *b, const Expr *x, Dims begin, Dims end, Ints step,
                         const StrideMasks *m, Strides *s)
{
    uint32_t rank = expr_rank(x), rest = 0;
    Arith   *A = b->c->arith;

    for (uint32_t i = 0; i < begin.n; i++)
        rest += !(m->fresh >> i & 1) && !(m->ellipsis >> i & 1);
    if (rest > rank || begin.n > 2 * MAX_RANK)
        return build_error(b, E_IMPORT, "%u positions for %u dimensions", rest, rank);
    rest = rank - rest; /* what an ellipsis stands for */
    for (uint32_t i = 0; i < begin.n; i++) {
        bool back = step.at[i] < 0;

        if (m->ellipsis >> i & 1) {
            for (; rest; rest--)
                all_cells(b, s, x);
        } else if (m->fresh >> i & 1) {
            s->shape[s->nshape++] = NEW_DIM;
        } else if (m->shrink >> i & 1) {
            if (!one_cell(b, s, x, begin.at[i]))
                return false;
        } else {
            if (step.at[i] == 0 || step.at[i] < -INT32_MAX || step.at[i] > INT32_MAX)
                return build_error(b, E_IMPORT, "a stride of %lld", (long long)step.at[i]);
            s->begin[s->n] = !(m->begin >> i & 1) ? begin.at[i]
                             : back               ? idx_addc(A, expr_form(x, s->n), -1)
                                                  : idx_const(A, 0);
            s->end[s->n] = !(m->end >> i & 1) ? end.at[i]
                           : back             ? idx_addc(A, idx_mulc(A, expr_form(x, s->n), -1), -1)
                                              : expr_form(x, s->n);
            if (m->offset && !(m->end >> i & 1))
                s->end[s->n] = idx_add(A, s->begin[s->n], end.at[i]);
            s->step[s->n] = step.at[i];
            s->shape[s->nshape++] = s->n++;
        }
    }
    while (s->n < rank)
        all_cells(b, s, x);
    return s->nshape <= MAX_RANK ||
           build_error(b, E_UNSUPPORTED, "a result of %u dimensions", s->nshape);
}

const Expr *build_strides(const Build *b, const Expr *x, Dims begin, Dims end, Ints step,
                          const StrideMasks *m)
{
    StridedSliceAttrs *a = ATTRS(b, StridedSliceAttrs);
    const Idx         *dims[MAX_RANK];
    const Expr        *y;
    Strides            s = {0};

    if (begin.n != end.n || begin.n != step.n)
        return build_error(b, E_IMPORT, "%u positions, %u ends, %u strides", begin.n, end.n,
                           step.n);
    if (!read_strides(b, x, begin, end, step, m, &s))
        return NULL;
    a->begin = dims_dup(b->c, s.begin, s.n);
    a->end = dims_dup(b->c, s.end, s.n);
    a->strides = build_steps(b, s.step, s.n);
    y = s.n ? build1(b, "strided_slice", x, a) : x;
    for (uint32_t i = 0; y && i < s.nshape; i++)
        dims[i] = s.shape[i] == NEW_DIM ? idx_const(b->c->arith, 1) : expr_form(y, s.shape[i]);
    return build_reshape_to(b, y, s.nshape, dims);
}

/* ---- mirrors ---------------------------------------------------------------------------------------- */

/* The cells that mirror `count` at one end of an axis. */
static const Expr *mirrored(const Build *b, const Expr *x, int64_t axis, int64_t count, bool end)
{
    int64_t cells = build_dim(b, x, (uint32_t)axis);

    x = end ? build_slice(b, x, axis, cells - count, cells) : build_slice(b, x, axis, 0, count);
    return build_reverse(b, x, 1, &axis);
}

const Expr *build_mirror_pad(const Build *b, const Expr *x, const int64_t *pads, bool again)
{
    uint32_t rank = expr_rank(x);

    for (uint32_t i = 0; i < rank; i++)
        for (uint32_t k = 0; k < 2; k++)
            if (pads[2 * i + k] > build_dim(b, x, i) - !again)
                return build_error(b, E_IMPORT, "%lld cells mirrored in the %lld of dimension %u",
                                   (long long)pads[2 * i + k], (long long)build_dim(b, x, i), i);
    if (!again)
        return build_pad(b, x, pads, 0, "reflect");
    for (uint32_t i = 0; x && i < rank; i++) {
        const Expr *at[3];
        uint32_t    k = 0;

        if (pads[2 * i])
            at[k++] = mirrored(b, x, i, pads[2 * i], false);
        at[k++] = x;
        if (pads[2 * i + 1])
            at[k++] = mirrored(b, x, i, pads[2 * i + 1], true);
        x = build_concat(b, k, at, i);
    }
    return x;
}
