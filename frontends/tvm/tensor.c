/* Cell by cell, shapes, parts, reductions. */
#include "frontends/tvm/tvm.h"

#include <math.h>
#include <string.h>

const Expr *tv_rename(TvNode *n)
{
    const void *a = tv_record(n, n->row->relay);

    return a ? build_call(&n->b, n->row->relay, n->nin, n->in, a) : NULL;
}

const Expr *tv_log_base(TvNode *n)
{
    double base = !strcmp(n->row->name, "log2") ? M_LN2 : M_LN10;

    return build_by(&n->b, "divide", build1(&n->b, "log", n->in[0], NULL), base);
}

const Expr *tv_rounded(const Build *b, const Expr *x)
{
    const Expr *whole = x ? build1(b, "trunc", x, NULL) : NULL, *rest;

    if (!whole || !dtype_is_float(expr_dtype(x)))
        return x;
    rest = build_sub(b, x, whole);
    return build_add(b, whole, build1(b, "trunc", build_add(b, rest, rest), NULL));
}

const Expr *tv_round(TvNode *n)
{
    return tv_rounded(&n->b, n->in[0]);
}

/* Floats are rounded towards 0, as integers are. */
const Expr *tv_trunc_divide(TvNode *n)
{
    const Expr *y = build_div(&n->b, n->in[0], n->in[1]);

    return y && dtype_is_float(expr_dtype(y)) ? build1(&n->b, "trunc", y, NULL) : y;
}

const Expr *tv_isfinite(TvNode *n)
{
    return build_by(&n->b, "less", build1(&n->b, "abs", n->in[0], NULL), HUGE_VAL);
}

const Expr *tv_hard_swish(TvNode *n)
{
    return build_hard_swish(&n->b, n->in[0]);
}

const Expr *tv_cast_like(TvNode *n)
{
    return build_cast(&n->b, n->in[0], expr_dtype(n->in[1]));
}

const Expr *tv_filled_like(TvNode *n)
{
    double v = !strcmp(n->row->name, "ones_like");

    return build_filled(&n->b, n->in[0], v, expr_forms(n->in[0]));
}

/* ---- shapes ----------------------------------------------------------------------------------------- */

/* 0: as the data have it, -1: what is left, -2: all that follow, -3: two in one, -4: one in two,
 * whose sizes come next. */
typedef VEC(const Idx *) IdxList;

static bool newshape_of(const TvNode *n, Ints v, const Idx *const *dims, IdxList *out)
{
    const Build *b = &n->b;
    uint32_t     rank = expr_rank(n->in[0]), from = 0;
    IdxList      to = {0};

    for (uint32_t i = 0; i < v.n; i++) {
        int64_t d = v.at[i];

        if (d < -4 || ((d == 0 || d == -3) && from + (d == -3) >= rank) ||
            (d == -4 && (from >= rank || v.n - i < 3)) || to.n + rank > 2 * MAX_RANK)
            return tv_error(n, E_IMPORT, "number %u of 'newshape' is %lld", i, (long long)d);
        if (d == -2) {
            while (from < rank)
                vec_push(b->c->arena, &to, dims[from++]);
        } else if (d == -3) {
            const Idx *one = idx_mul(b->c->arith, dims[from], dims[from + 1]);

            vec_push(b->c->arena, &to, one);
            from += 2;
        } else if (d == -4) {
            int64_t one = v.at[i + 1], other = v.at[i + 2], all = 0;

            if (!idx_is_const(dims[from++], &all))
                return tv_error(n, E_DIM, "'newshape' divides a dimension that is not known");
            one = one == -1 && other > 0 ? all / other : one;
            other = other == -1 && one > 0 ? all / one : other;
            if (one < 1 || other < 1 || one > MAX_ELEMS / other || one * other != all)
                return tv_error(n, E_IMPORT, "'newshape' makes two dimensions of %lld cells",
                                (long long)all);
            vec_push(b->c->arena, &to, idx_const(b->c->arith, one));
            vec_push(b->c->arena, &to, idx_const(b->c->arith, other));
            i += 2;
        } else {
            vec_push(b->c->arena, &to, d ? idx_const(b->c->arith, d) : dims[from]);
            from++;
        }
    }
    *out = to;
    return true;
}

const Expr *tv_reshape(TvNode *n)
{
    IdxList to;
    Ints    v;

    return tv_ints(n, "newshape", &v) && newshape_of(n, v, expr_forms(n->in[0]).at, &to)
               ? build_reshape_left(&n->b, n->in[0], (Dims){to.n, to.at})
               : NULL;
}

/* The same read from the last dimension to the first. */
const Expr *tv_reverse_reshape(TvNode *n)
{
    uint32_t   rank = expr_rank(n->in[0]);
    const Idx *dims[MAX_RANK];
    int64_t   *back;
    IdxList    to;
    Ints       v;

    if (!tv_ints(n, "newshape", &v))
        return NULL;
    back = NEW_ARRAY(n->b.c->arena, int64_t, v.n + 1);
    for (uint32_t i = 0; i < v.n; i++)
        back[i] = v.at[v.n - 1 - i];
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = expr_form(n->in[0], rank - 1 - i);
    if (!newshape_of(n, (Ints){v.n, back}, dims, &to))
        return NULL;
    for (uint32_t i = 0; 2 * i + 1 < to.n; i++) {
        const Idx *was = to.at[i];

        to.at[i] = to.at[to.n - 1 - i];
        to.at[to.n - 1 - i] = was;
    }
    return build_reshape_left(&n->b, n->in[0], (Dims){to.n, to.at});
}

/* ---- parts ------------------------------------------------------------------------------------------ */

const Expr *tv_split(TvNode *n)
{
    const TvValue *v = tv_attr(n, "indices_or_sections");
    SplitAttrs    *a = tv_record(n, "split");
    Ints           at;

    if (!a || !v || !tv_ints(n, "indices_or_sections", &at))
        return a ? tv_error(n, E_IMPORT, "attribute 'indices_or_sections' is missing") : NULL;
    if (v->kind == TV_LIST) {
        const Idx **dims = NEW_ARRAY(n->b.c->arena, const Idx *, at.n + 1);

        for (uint32_t i = 0; i < at.n; i++)
            dims[i] = idx_const(n->b.c->arith, at.at[i]);
        a->indices = (Dims){at.n, dims};
    } else {
        a->sections = v->i;
    }
    return build1(&n->b, "split", n->in[0], a);
}

Dims tv_dims(const TvNode *n, Ints v)
{
    const Idx **dims = NEW_ARRAY(n->b.c->arena, const Idx *, v.n + 1);

    for (uint32_t i = 0; i < v.n; i++)
        dims[i] = idx_const(n->b.c->arith, v.at[i]);
    return (Dims){v.n, dims};
}

/* slice_mode "size": `end` says how many cells, -1 all that follow, and strides are not heeded. */
const Expr *tv_strided_slice(TvNode *n)
{
    const Build       *b = &n->b;
    const Expr        *x = n->in[0];
    StridedSliceAttrs *a = ATTRS(b, StridedSliceAttrs);
    Ints               begin, end, strides, axes;
    const char        *mode = tv_text(n, "slice_mode", "end");
    bool               size = !strcmp(mode, "size");
    int64_t            to[MAX_RANK], step[MAX_RANK];

    if (!tv_ints(n, "begin", &begin) || !tv_ints(n, "end", &end) ||
        !tv_ints(n, "strides", &strides) || !tv_ints(n, "axes", &axes))
        return NULL;
    if (begin.n != end.n || begin.n > expr_rank(x) || (axes.n && axes.n != begin.n) ||
        (strides.n > 1 && strides.n != begin.n))
        return tv_error(n, E_IMPORT, "%u beginnings, %u ends, %u strides and %u axes", begin.n,
                        end.n, strides.n, axes.n);
    if (!size && strcmp(mode, "end") != 0)
        return tv_error(n, E_IMPORT, "'slice_mode' is %s", mode);
    for (uint32_t i = 0; i < begin.n; i++) {
        uint32_t axis;

        if (!build_axis(b, axes.n ? axes.at[i] : i, expr_rank(x), 0, &axis))
            return NULL;
        step[i] = size || !strides.n ? 1 : strides.at[strides.n == 1 ? 0 : i];
        to[i] = !size              ? end.at[i]
                : end.at[i] < 0    ? INT32_MAX
                : begin.at[i] >= 0 ? begin.at[i] + end.at[i]
                                   : begin.at[i] + build_dim(b, x, axis) + end.at[i];
    }
    a->begin = tv_dims(n, begin);
    a->end = tv_dims(n, (Ints){begin.n, to});
    a->strides = build_steps(b, step, begin.n);
    a->axes = axes;
    return build1(b, "strided_slice", x, a);
}

static bool constant_int(const TvNode *n, uint32_t i, int64_t *out)
{
    Ints v;

    if (!expr_ints(n->b.c, n->in[i], &v) || v.n != 1)
        return tv_error(n, E_UNSUPPORTED, "operand %u is no constant number", i) != NULL;
    *out = v.at[0];
    return true;
}

const Expr *tv_trilu(TvNode *n)
{
    TriluAttrs *a = tv_record(n, "trilu");

    return a && constant_int(n, 1, &a->k) ? build1(&n->b, "trilu", n->in[0], a) : NULL;
}

/* Without an axis, of the cells in a row. */
const Expr *tv_take(TvNode *n)
{
    const Build *b = &n->b;
    TakeAttrs   *a = tv_record(n, "take");
    const Expr  *x = n->in[0];
    const char  *mode = tv_text(n, "mode", "clip");

    if (!a)
        return NULL;
    /* "fast" leaves open what positions beyond the end give. */
    if (strcmp(mode, "clip") != 0 && strcmp(mode, "wrap") != 0 && strcmp(mode, "fast") != 0)
        return tv_error(n, E_UNSUPPORTED, "'mode' is %s", mode);
    a->mode = !strcmp(mode, "wrap") ? "wrap" : "clip";
    a->axis = tv_int(n, "axis", 0);
    if (!tv_attr(n, "axis")) {
        const Idx *cells = type_cells(b->c, x->type);

        x = build_reshape_to(b, x, 1, &cells);
    }
    return build2(b, "take", x, n->in[1], a);
}

/* Of images with their channels last, before these are moved back. */
const Expr *tv_reduce(TvNode *n)
{
    const Expr *x = n->in[0];
    uint32_t    rank = expr_rank(x), count;
    int64_t     axes[MAX_RANK];
    Ints        v;
    bool        keep = tv_bool(n, "keepdims", false);

    if (!build_is_moved(x) || tv_bool(n, "exclude", false))
        return tv_rename(n);
    if (!tv_ints(n, "axis", &v))
        return NULL;
    if (!v.n)
        return tv_rename(n);
    if (!build_axes(&n->b, v, rank, rank, &count, axes))
        return NULL;
    x = build_reduce_moved(&n->b, n->row->relay, build_channels_first(&n->b, x), count, axes, keep);
    return keep ? build_channels_last(&n->b, x) : x;
}

/* Without an axis, over all cells. */
const Expr *tv_arg_reduce(TvNode *n)
{
    const Build    *b = &n->b;
    ArgReduceAttrs *a = tv_record(n, n->row->relay);
    const Expr     *x = n->in[0];
    Ints            axes;

    if (!a || !tv_ints(n, "axis", &axes))
        return NULL;
    if (axes.n > 1 || (!axes.n && a->keepdims))
        return tv_error(n, E_UNSUPPORTED, "'axis' has %u numbers", axes.n);
    if (axes.n) {
        a->axis = axes.at[0];
    } else {
        const Idx *cells = type_cells(b->c, x->type);

        x = build_reshape_to(b, x, 1, &cells);
    }
    return build1(b, n->row->relay, x, a);
}
