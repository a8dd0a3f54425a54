/* Views and other arrangements of the same cells. */
#include "frontends/pytorch/pytorch.h"

#include <string.h>

/* ---- reshapes ----------------------------------------------------------------------------------- */

const Expr *pt_reshape(PtNode *n, const Expr *x, Dims size)
{
    Arith     *A = n->b.c->arith;
    const Idx *dims[MAX_RANK], *rest = idx_const(A, 1), *cells;
    uint32_t   open = UINT32_MAX;
    int64_t    v, a, b;

    if (!x)
        return NULL;
    cells = type_cells(n->b.c, x->type);
    if (size.n > MAX_RANK)
        return pt_error(n, E_UNSUPPORTED, "%u dimensions", size.n);
    for (uint32_t i = 0; i < size.n; i++) {
        dims[i] = size.at[i];
        if (idx_is_const(dims[i], &v) && v == -1 && open == UINT32_MAX)
            open = i;
        else if (dims[i]->lo < 0)
            return pt_error(n, E_IMPORT, "dimension %u of the size is %s", i,
                            dim_text(n->b.c, dims[i]));
        else
            rest = idx_mul(A, rest, dims[i]);
    }
    if (open != UINT32_MAX) {
        if (idx_is_const(rest, &v) && v == 0)
            return pt_error(n, E_IMPORT, "one dimension is open, another one 0");
        if (!(dims[open] = idx_div_exact(A, cells, rest)))
            return pt_error(n, E_IMPORT, "%s cells do not fit a size with %s",
                            dim_text(n->b.c, cells), dim_text(n->b.c, rest));
    } else if (cells != rest && idx_is_const(cells, &a) && idx_is_const(rest, &b)) {
        return pt_error(n, E_IMPORT, "%lld cells do not fit a size of %lld", (long long)a,
                        (long long)b);
    }
    return build_reshape_to(&n->b, x, size.n, dims);
}

bool aten_view(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self");
    Dims        size;

    return x && pt_forms(n, pt_has(n, "shape") ? "shape" : "size", &size) &&
           pt_done(n, pt_reshape(n, x, size));
}

/* As many of its cells as fit, and zeros behind them. */
bool aten_resize(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = pt_tensor(n, "self");
    int64_t      have, want, pads[2] = {0, 0};
    Dims         size;

    if (!x || !pt_forms(n, "size", &size) || !build_check_shape(b, size))
        return false;
    have = build_elems(b, x);
    want = 1;
    for (uint32_t i = 0; i < size.n; i++)
        if (size.at[i]->hi != size.at[i]->lo || !checked_mul(want, size.at[i]->lo, &want))
            return pt_error(n, E_UNSUPPORTED, "a size of %s", dim_text(b->c, size.at[i]));
    x = pt_flat(b, x);
    if (want < have)
        x = build_slice(b, x, 0, 0, want);
    pads[1] = want - have;
    if (want > have)
        x = build_pad(b, x, pads, 0, NULL);
    return pt_done(n, build_reshape_to(b, x, size.n, size.at));
}

bool aten_view_as(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self"), *like = x ? pt_tensor(n, "other") : NULL;

    return like && pt_done(n, pt_reshape(n, x, expr_forms(like)));
}

bool aten_flatten(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self");
    const Idx  *dims[MAX_RANK];
    uint32_t    from, to, d = 0;

    if (!x || !pt_axis(n, pt_int(n, "start_dim", 0), expr_rank(x), &from) ||
        !pt_axis(n, pt_int(n, "end_dim", -1), expr_rank(x), &to))
        return false;
    if (expr_rank(x) == 0)
        return pt_done(n, build_reshape(&n->b, x, 1, (int64_t[]){1}));
    if (from > to)
        return pt_error(n, E_IMPORT, "dimensions %u to %u", from, to);
    for (uint32_t i = 0; i < expr_rank(x); i++)
        if (i > from && i <= to)
            dims[d - 1] = idx_mul(n->b.c->arith, dims[d - 1], expr_form(x, i));
        else
            dims[d++] = expr_form(x, i);
    return pt_done(n, build_reshape_to(&n->b, x, d, dims));
}

bool aten_unflatten(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self");
    const Idx  *dims[2 * MAX_RANK];
    uint32_t    axis, d = 0;
    int64_t     v;
    Dims        size;
    const Idx  *rest = idx_const(n->b.c->arith, 1);

    if (!x || !pt_axis(n, pt_int(n, "dim", 0), expr_rank(x), &axis) ||
        !pt_forms(n, "sizes", &size) || expr_rank(x) == 0 || size.n > MAX_RANK)
        return x && pt_error(n, E_IMPORT, "sizes that do not fit");
    for (uint32_t i = 0; i < size.n; i++)
        if (!idx_is_const(size.at[i], &v) || v != -1)
            rest = idx_mul(n->b.c->arith, rest, size.at[i]);
    for (uint32_t i = 0; i < expr_rank(x); i++) {
        if (i != axis) {
            dims[d++] = expr_form(x, i);
            continue;
        }
        for (uint32_t k = 0; k < size.n; k++) {
            bool open = idx_is_const(size.at[k], &v) && v == -1;

            dims[d] = open ? idx_div_exact(n->b.c->arith, expr_form(x, i), rest) : size.at[k];
            if (!dims[d++])
                return pt_error(n, E_IMPORT, "%s does not divide", dim_text(n->b.c, rest));
        }
    }
    return pt_done(n, pt_reshape(n, x, (Dims){d, dims}));
}

bool aten_squeeze(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self");
    const Idx  *dims[MAX_RANK], *one = idx_const(n->b.c->arith, 1);
    int64_t     axes[MAX_RANK];
    uint32_t    d = 0;
    bool        all = !pt_has(n, "dim");
    Ints        v = {0};

    if (!x || (!all && (!pt_ints(n, "dim", &v) || !pt_axes(n, v, expr_rank(x), axes))))
        return false;
    for (uint32_t i = 0; i < expr_rank(x); i++) {
        bool named = all;

        for (uint32_t k = 0; k < v.n; k++)
            named |= axes[k] == i;
        if (!named || expr_form(x, i) != one)
            dims[d++] = expr_form(x, i);
    }
    return pt_done(n, build_reshape_to(&n->b, x, d, dims));
}

bool aten_unsqueeze(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self");
    uint32_t    axis;

    return x && pt_axis(n, pt_int(n, "dim", 0), expr_rank(x) + 1, &axis) &&
           pt_done(n, build_expand_dims(&n->b, x, axis, 1));
}

/* ---- order of dimensions ---------------------------------------------------------------------------- */

bool aten_permute(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self");
    int64_t     axes[MAX_RANK];
    Ints        v;

    if (!x || !pt_ints(n, "dims", &v) || !pt_axes(n, v, expr_rank(x), axes))
        return false;
    return v.n != expr_rank(x)
               ? pt_error(n, E_IMPORT, "%u dimensions of %u", v.n, expr_rank(x)) != NULL
               : pt_done(n, build_transpose(&n->b, x, v.n, axes));
}

static bool swapped(PtNode *n, const Expr *x, int64_t a, int64_t b)
{
    int64_t  axes[MAX_RANK];
    uint32_t i, k;

    if (!pt_axis(n, a, expr_rank(x), &i) || !pt_axis(n, b, expr_rank(x), &k))
        return false;
    if (expr_rank(x) < 2)
        return pt_done(n, x);
    for (uint32_t d = 0; d < expr_rank(x); d++)
        axes[d] = d == i ? k : d == k ? i : d;
    return pt_done(n, build_transpose(&n->b, x, expr_rank(x), axes));
}

bool aten_transpose(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self");
    bool        axes = pt_has(n, "axis0"); /* swapaxes calls them so */

    return x && swapped(n, x, pt_int(n, axes ? "axis0" : "dim0", 0),
                        pt_int(n, axes ? "axis1" : "dim1", 0));
}

/* t() of matrices; mT, numpy_T of more */
bool aten_t(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self");

    return x && swapped(n, x, expr_rank(x) < 2 ? 0 : -2, -1);
}

/* The dimensions the other way round. */
bool aten_numpy_t(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self");
    int64_t     axes[MAX_RANK];

    for (uint32_t i = 0; x && i < expr_rank(x); i++)
        axes[i] = expr_rank(x) - 1 - i;
    return x && pt_done(n, build_transpose(&n->b, x, expr_rank(x), axes));
}

bool aten_movedim(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self");
    int64_t     from[MAX_RANK], to[MAX_RANK], axes[MAX_RANK];
    uint32_t    next = 0;
    Ints        s, d;

    if (!x || !pt_ints(n, "source", &s) || !pt_ints(n, "destination", &d) ||
        !pt_axes(n, s, expr_rank(x), from) || !pt_axes(n, d, expr_rank(x), to))
        return false;
    if (s.n != d.n)
        return pt_error(n, E_IMPORT, "%u dimensions to %u", s.n, d.n);
    for (uint32_t i = 0; i < expr_rank(x); i++) {
        uint32_t k = 0;

        while (k < d.n && to[k] != i)
            k++;
        if (k < d.n) {
            axes[i] = from[k];
            continue;
        }
        for (bool taken = true; taken; next += taken) {
            taken = false;
            for (uint32_t j = 0; j < s.n; j++)
                taken |= from[j] == next;
        }
        axes[i] = next++;
    }
    return pt_done(n, build_transpose(&n->b, x, expr_rank(x), axes));
}

/* ---- repeating ---------------------------------------------------------------------------------------- */

const Expr *pt_expand(PtNode *n, const Expr *x, Dims size)
{
    const Idx *dims[MAX_RANK], *one = idx_const(n->b.c->arith, 1);
    uint32_t   rank = expr_rank(x);
    int64_t    v;

    if (size.n < rank || size.n > MAX_RANK)
        return pt_error(n, E_IMPORT, "%u dimensions to %u", rank, size.n);
    for (uint32_t i = 0; i < size.n; i++) {
        const Idx *is = i + rank >= size.n ? expr_form(x, i + rank - size.n) : one;

        dims[i] = idx_is_const(size.at[i], &v) && v == -1 ? is : size.at[i];
        if ((is != one && is != dims[i]) || dims[i]->lo < 0)
            return pt_error(n, E_IMPORT, "dimension %u is %s, not %s", i, dim_text(n->b.c, is),
                            dim_text(n->b.c, dims[i]));
    }
    return build_broadcast_to(&n->b, x, size.n, dims);
}

bool aten_expand(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self");
    Dims        size;

    (void)pt_bool(n, "implicit", false);
    return x && pt_forms(n, "size", &size) && pt_done(n, pt_expand(n, x, size));
}

bool aten_expand_as(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self"), *like = x ? pt_tensor(n, "other") : NULL;

    return like && pt_done(n, pt_expand(n, x, expr_forms(like)));
}

bool aten_repeat(PtNode *n)
{
    TileAttrs  *a = ATTRS(&n->b, TileAttrs);
    const Expr *x = pt_tensor(n, "self");
    const Idx  *reps[MAX_RANK];
    uint32_t    rank;
    Dims        v;

    if (!x || !pt_forms(n, pt_has(n, "dims") ? "dims" : "repeats", &v))
        return false;
    rank = expr_rank(x);
    if (v.n > MAX_RANK)
        return pt_error(n, E_UNSUPPORTED, "%u dimensions", v.n);
    if (v.n > rank)
        x = build_expand_dims(&n->b, x, 0, v.n - rank);
    for (uint32_t i = 0; i < (v.n > rank ? v.n : rank); i++) {
        reps[i] = i + v.n >= rank ? v.at[i + v.n - (v.n > rank ? v.n : rank)]
                                  : idx_const(n->b.c->arith, 1);
        if (reps[i]->lo < 0)
            return pt_error(n, E_IMPORT, "%s times", dim_text(n->b.c, reps[i]));
    }
    if (v.n == 0)
        return pt_done(n, x);
    a->reps = dims_dup(n->b.c, reps, v.n > rank ? v.n : rank);
    return pt_done(n, build1(&n->b, "tile", x, a));
}

bool aten_repeat_interleave(PtNode *n)
{
    RepeatAttrs *a = ATTRS(&n->b, RepeatAttrs);
    const Expr  *x = pt_tensor(n, "self");
    uint32_t     axis = 0;

    if (!x)
        return false;
    if (!pt_has(n, "dim"))
        x = build_reshape_to(&n->b, x, 1, (const Idx *[]){type_cells(n->b.c, x->type)});
    else if (!pt_axis(n, pt_int(n, "dim", 0), expr_rank(x), &axis))
        return false;
    (void)pt_has(n, "output_size");
    a->repeats = pt_int(n, "repeats", 1);
    a->axis = axis;
    return pt_done(n, build1(&n->b, "repeat", x, a));
}

/* ---- together ------------------------------------------------------------------------------------------ */

/* The tensors of a list in one type. */
static bool in_one_type(PtNode *n, uint32_t *count, const Expr ***xs)
{
    PtOperand *v;
    DType      t;

    if (!pt_tensors(n, "tensors", count, xs))
        return false;
    if (*count == 0)
        return pt_error(n, E_IMPORT, "the list is empty");
    v = NEW_ARRAY(n->b.c->arena, PtOperand, *count);
    for (uint32_t i = 0; i < *count; i++) {
        if (!(*xs)[i])
            return pt_error(n, E_IMPORT, "tensor %u is None", i);
        v[i] = (PtOperand){.e = (*xs)[i], .kind = pt_dtype_kind(expr_dtype((*xs)[i]))};
    }
    t = pt_promoted(*count, v);
    for (uint32_t i = 0; i < *count; i++)
        (*xs)[i] = build_cast(&n->b, (*xs)[i], t);
    return true;
}

/* What is empty and has one dimension adds nothing. */
bool aten_cat(PtNode *n)
{
    const Expr **xs;
    uint32_t     count, axis, k = 0;

    if (!in_one_type(n, &count, &xs))
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (expr_rank(xs[i]) != 1 || !expr_empty(xs[i]))
            xs[k++] = xs[i];
    if (k == 0)
        return pt_done(n, xs[0]);
    if (!pt_axis(n, pt_int(n, "dim", 0), expr_rank(xs[0]), &axis))
        return false;
    return pt_done(n, build_concat(&n->b, k, xs, axis));
}

bool aten_stack(PtNode *n)
{
    const Expr **xs;
    uint32_t     count, axis;

    if (!in_one_type(n, &count, &xs) ||
        !pt_axis(n, pt_int(n, "dim", 0), expr_rank(xs[0]) + 1, &axis))
        return false;
    for (uint32_t i = 0; i < count; i++)
        xs[i] = build_expand_dims(&n->b, xs[i], axis, 1);
    return pt_done(n, build_concat(&n->b, count, xs, axis));
}

/* Tensors of one dimension, each along its own of the result; "xy" swaps the first two. */
bool aten_meshgrid(PtNode *n)
{
    const Build *b = &n->b;
    const char  *indexing = pt_string(n, "indexing", "ij");
    const Expr **xs;
    const Idx   *dims[MAX_RANK];
    uint32_t     count;
    bool         swap;

    if (!pt_tensors(n, "tensors", &count, &xs))
        return false;
    swap = !strcmp(indexing, "xy") && count > 1;
    if (count > MAX_RANK)
        return pt_error(n, E_UNSUPPORTED, "%u tensors", count);
    for (uint32_t i = 0; i < count; i++) {
        if (!xs[i] || expr_rank(xs[i]) > 1)
            return pt_error(n, E_IMPORT, "tensor %u has more than one dimension", i);
        dims[swap && i < 2 ? 1 - i : i] = type_cells(b->c, xs[i]->type);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = swap && i < 2 ? 1 - i : i;

        xs[i] = build_along(b, build_reshape_to(b, xs[i], 1, &dims[at]), count, at);
        xs[i] = build_broadcast_to(b, xs[i], count, dims);
    }
    return pt_done_list(n, count, xs);
}

bool aten_broadcast_tensors(PtNode *n)
{
    const Idx   *dims[MAX_RANK], *one = idx_const(n->b.c->arith, 1);
    const Expr **xs;
    uint32_t     count, rank = 0;

    if (!pt_tensors(n, "tensors", &count, &xs))
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!xs[i])
            return pt_error(n, E_IMPORT, "tensor %u is None", i);
        else if (expr_rank(xs[i]) > rank)
            rank = expr_rank(xs[i]);
    for (uint32_t d = 0; d < rank; d++) {
        dims[d] = one;
        for (uint32_t i = 0; i < count; i++)
            if (d + expr_rank(xs[i]) >= rank &&
                expr_form(xs[i], d + expr_rank(xs[i]) - rank) != one)
                dims[d] = expr_form(xs[i], d + expr_rank(xs[i]) - rank);
    }
    for (uint32_t i = 0; i < count; i++)
        if (!(xs[i] = pt_expand(n, xs[i], (Dims){rank, dims})))
            return false;
    return pt_done_list(n, count, xs);
}

/* ---- other moves --------------------------------------------------------------------------------------- */

bool aten_flip(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self");
    int64_t     axes[MAX_RANK];
    Ints        v;

    if (!x || !pt_ints(n, "dims", &v) || !pt_axes(n, v, expr_rank(x), axes))
        return false;
    return pt_done(n, build_reverse(&n->b, x, v.n, axes));
}

bool aten_roll(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = pt_tensor(n, "self");
    int64_t      axes[MAX_RANK];
    Ints         by, v;

    if (!x || !pt_ints(n, "shifts", &by))
        return false;
    if (!pt_ints(n, "dims", &v) || v.n != by.n || !pt_axes(n, v, expr_rank(x), axes))
        return pt_error(n, E_UNSUPPORTED, "%u shifts of %u dimensions", by.n, v.n);
    for (uint32_t i = 0; i < v.n && x; i++) {
        int64_t cells = build_dim(b, x, (uint32_t)axes[i]), at;

        if (cells < 1)
            return pt_done(n, x);
        at = ((-by.at[i]) % cells + cells) % cells;
        if (at)
            x = build_concat(b, 2,
                             (const Expr *[]){build_slice(b, x, axes[i], at, cells),
                                              build_slice(b, x, axes[i], 0, at)},
                             axes[i]);
    }
    return pt_done(n, x);
}

/* What lies at the other end, before and after. */
static const Expr *padded_around(const Build *b, const Expr *x, const int64_t *pads)
{
    for (uint32_t i = 0; x && i < expr_rank(x); i++) {
        const int64_t *by = &pads[2 * i];
        int64_t        cells = by[0] || by[1] ? build_dim(b, x, i) : 0;
        const Expr    *parts[3];
        uint32_t       n = 0;

        if (by[0] > 0)
            parts[n++] = build_slice(b, x, i, cells - by[0], cells);
        parts[n++] = x;
        if (by[1] > 0)
            parts[n++] = build_slice(b, x, i, 0, by[1]);
        x = n == 1 ? x : build_concat(b, n, parts, i);
    }
    return x;
}

static bool fits_around(PtNode *n, const Expr *x, const int64_t *pads)
{
    for (uint32_t i = 0; i < expr_rank(x); i++) {
        const int64_t *by = &pads[2 * i];
        int64_t        cells = by[0] || by[1] ? build_dim(&n->b, x, i) : 0;

        if (by[0] < 0 || by[1] < 0 || by[0] > cells || by[1] > cells)
            return pt_error(n, E_UNSUPPORTED, "%lld and %lld cells around dimension %u of %s",
                            (long long)by[0], (long long)by[1], i, type_text(n->b.c, x->type));
    }
    return true;
}

/* From the last dimension on, before and after. */
bool aten_pad(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self");
    const char *mode = pt_string(n, "mode",
                                 strstr(n->p->target, "reflection")    ? "reflect"
                                 : strstr(n->p->target, "replication") ? "replicate"
                                 : strstr(n->p->target, "circular")    ? "circular"
                                                                       : "constant");
    int64_t     pads[2 * MAX_RANK] = {0};
    double      value = pt_float(n, "value", 0);
    Ints        v;

    if (!x || !pt_ints(n, pt_has(n, "padding") ? "padding" : "pad", &v))
        return x && pt_error(n, E_IMPORT, "the padding is missing");
    if (v.n % 2 || v.n > 2 * expr_rank(x))
        return pt_error(n, E_IMPORT, "%u numbers for %u dimensions", v.n, expr_rank(x));
    for (uint32_t i = 0; i < v.n; i++)
        pads[2 * (expr_rank(x) - 1 - i / 2) + i % 2] = v.at[i];
    if (!strcmp(mode, "circular"))
        return fits_around(n, x, pads) && pt_done(n, padded_around(&n->b, x, pads));
    if (strcmp(mode, "constant") && strcmp(mode, "reflect") && strcmp(mode, "replicate"))
        return pt_error(n, E_UNSUPPORTED, "mode '%s'", mode);
    return pt_done(n, build_pad(&n->b, x, pads, value, !strcmp(mode, "replicate") ? "edge" : mode));
}

bool aten_trilu(PtNode *n)
{
    TriluAttrs *a = ATTRS(&n->b, TriluAttrs);

    a->upper = strstr(n->p->target, "triu") != NULL;
    a->k = pt_int(n, "diagonal", 0);
    return pt_done(n, build1(&n->b, "trilu", pt_tensor(n, "self"), a));
}

/* [N, C*r*r, H, W] -> [N, C, H*r, W*r] */
bool aten_pixel_shuffle(PtNode *n)
{
    DepthToSpaceAttrs *a = ATTRS(&n->b, DepthToSpaceAttrs);
    const Expr        *x = pt_tensor(n, "self");
    int64_t            r = pt_int(n, "upscale_factor", 1);

    if (!x || expr_rank(x) != 4 || r < 1 || r > 1 << 10 || build_dim(&n->b, x, 1) % (r * r))
        return x && pt_error(n, E_UNSUPPORTED, "a factor of %lld for %s", (long long)r,
                             type_text(n->b.c, x->type));
    a->block_size = ints_of(n->b.c, 2, (int)r, (int)r);
    a->mode = "CRD";
    return pt_done(n, build1(&n->b, "nn.depth_to_space", x, a));
}

/* [N, C, H*r, W*r] -> [N, C*r*r, H, W] */
bool aten_pixel_unshuffle(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = pt_tensor(n, "self");
    int64_t      r = pt_int(n, "downscale_factor", 1), C, H, W;
    const Idx   *N;

    if (!x || expr_rank(x) != 4 || r < 1 || r > 1 << 10)
        return x && pt_error(n, E_UNSUPPORTED, "a factor of %lld for %s", (long long)r,
                             type_text(b->c, x->type));
    N = expr_form(x, 0);
    C = build_dim(b, x, 1), H = build_dim(b, x, 2) / r, W = build_dim(b, x, 3) / r;
    Dims d = dims_of_i64(b->c, (int64_t[]){1, C, H, r, W, r}, 6);
    x = build_reshape_to(b, x, 6, (const Idx *[]){N, d.at[1], d.at[2], d.at[3], d.at[4], d.at[5]});
    x = build_transpose(b, x, 6, (int64_t[]){0, 1, 3, 5, 2, 4});
    return pt_done(
        n, build_reshape_to(
               b, x, 4, (const Idx *[]){N, idx_const(b->c->arith, C * r * r), d.at[2], d.at[4]}));
}

bool aten_channel_shuffle(PtNode *n)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    const Expr  *x = pt_tensor(n, "self"), *y;
    int64_t      g = pt_int(n, "groups", 1), C;

    if (!x || expr_rank(x) != 4 || g < 1 || (C = build_dim(b, x, 1)) % g)
        return x && pt_error(n, E_UNSUPPORTED, "%lld groups of %s", (long long)g,
                             type_text(b->c, x->type));
    y = build_reshape_to(b, x, 5,
                         (const Idx *[]){expr_form(x, 0), idx_const(A, g), idx_const(A, C / g),
                                         expr_form(x, 2), expr_form(x, 3)});
    y = build_transpose(b, y, 5, (int64_t[]){0, 2, 1, 3, 4});
    return pt_done(n, build_reshape_to(b, y, 4, expr_forms(x).at));
}
