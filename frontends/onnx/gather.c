/* Reads and writes by index.  Indices below 0 count from the end: constant ones are made positive
 * here, others are taken modulo the extent. */
#include "frontends/onnx/onnx.h"

#include <string.h>

/* Integers as a constant of the type of `like`. */
static const Expr *ints_like(const Build *b, const Expr *like, const int64_t *v)
{
    int64_t  n = build_elems(b, like);
    DType    t = expr_dtype(like);
    Ints     d = build_dims(b, like);
    uint8_t *at = arena_array(b->c->arena, (size_t)n + 1, dtype_bytes(t));

    for (int64_t i = 0; i < n; i++)
        dtype_put_i(t, at + i * dtype_bytes(t), v[i]);
    return build_const(b, t, d.n, d.at, at);
}

/* Constant indices along an extent, in 0 .. extent-1; NULL with an error if one is outside.  What
 * is not constant comes back as it is, and so does what counts from a symbolic end; *known says
 * which. */
static const Expr *positive(Node *n, const Expr *indices, const Idx *extent, bool *known)
{
    const Build *b = &n->b;
    const Expr  *k = build_fold(b, indices);
    int64_t     *v, d;
    bool         same = true, number = idx_is_const(extent, &d);
    Ints         at;

    *known = k && expr_ints(b->c, k, &at);
    if (!*known)
        return indices;
    v = NEW_ARRAY(b->c->arena, int64_t, at.n + 1);
    for (uint32_t i = 0; i < at.n; i++) {
        if (at.at[i] >= extent->hi || at.at[i] < -extent->hi)
            return node_error(n, E_IMPORT, "index %lld is outside an extent of %s",
                              (long long)at.at[i], dim_text(b->c, extent));
        if (!number && (at.at[i] < 0 || at.at[i] >= extent->lo)) {
            *known = false;
            return indices;
        }
        v[i] = at.at[i] < 0 ? at.at[i] + d : at.at[i];
        same &= v[i] == at.at[i];
    }
    return same ? k : ints_like(b, k, v);
}

/* One known index is a slice, which needs no copy; NULL: it is none. */
static const Expr *one_of(Node *n, const Expr *index, uint32_t axis)
{
    const Build *b = &n->b;
    const Expr  *k;
    const Idx   *dims[MAX_RANK], *extent = expr_form(n->in[0], axis), *from;
    uint32_t     r = 0;
    Ints         at;

    if (expr_rank(index) != 0 || !(k = build_fold(b, index)) || !expr_ints(b->c, k, &at))
        return NULL;
    from = idx_const(b->c->arith, at.at[0]);
    if (at.at[0] < 0)
        from = idx_add(b->c->arith, extent, from);
    if (from->lo < 0 || idx_sub(b->c->arith, extent, from)->lo < 1)
        return NULL;
    for (uint32_t i = 0; i < expr_rank(n->in[0]); i++)
        if (i != axis)
            dims[r++] = expr_form(n->in[0], i);
    return build_reshape_to(
        b, build_slice_to(b, n->in[0], axis, from, idx_addc(b->c->arith, from, 1)), r, dims);
}

/* What indices choose of a dimension that may be empty is there, or the run ends. */
static bool is_there(Node *n, uint32_t axis, const Expr *indices)
{
    const Build *b = &n->b;
    const Idx   *extent = expr_form(n->in[0], axis), *many = type_cells(b->c, indices->type), *none;
    const Expr  *empty;

    if (extent->lo > 0 || extent->hi < 1 || many->hi == 0)
        return true;
    empty = build2(b, "equal", cell_form(b, extent), cell_number(b, 0), NULL);
    RunDim d = {build_where(b, empty, cell_form(b, many), cell_number(b, 0)), 0,
                idx_const(b->c->arith, 0), axis, 1};
    return onnx_bind(n, 0, 1, &d, &none);
}

/* Without indices no cell is read, not even of an empty tensor: the result has the dimensions of
 * the data before `axis`, the first `ni` of the indices, and those of the data from `rest` on. */
static bool nothing_chosen(Node *n, uint32_t axis, uint32_t ni, uint32_t rest)
{
    const Idx *dims[2 * MAX_RANK];
    uint32_t   r = 0;

    for (uint32_t i = 0; i < axis; i++)
        dims[r++] = expr_form(n->in[0], i);
    for (uint32_t i = 0; i < ni; i++)
        dims[r++] = expr_form(n->in[1], i);
    for (uint32_t i = rest; i < expr_rank(n->in[0]); i++)
        dims[r++] = expr_form(n->in[0], i);
    if (r > MAX_RANK)
        return node_error(n, E_UNSUPPORTED, "a tensor of %u dimensions", r);
    return node_done(n, build_zeros_of(&n->b, expr_dtype(n->in[0]), r, dims));
}

bool convert_gather(Node *n)
{
    TakeAttrs  *a = ATTRS(&n->b, TakeAttrs);
    const Expr *indices, *one;
    uint32_t    axis;
    bool        known;

    if (!node_need_rank(n, 0, 1, MAX_RANK) || !node_need_rank(n, 1, 0, MAX_RANK) ||
        !node_axis(n, node_int(n, "axis", 0), expr_rank(n->in[0]), &axis))
        return false;
    if (expr_empty(n->in[1]))
        return nothing_chosen(n, axis, expr_rank(n->in[1]), axis + 1);
    if (!(indices = positive(n, n->in[1], expr_form(n->in[0], axis), &known)))
        return false;
    if ((one = one_of(n, indices, axis)))
        return node_done(n, one);
    a->axis = axis;
    a->mode = known ? "clip" : "wrap";
    return is_there(n, axis, indices) &&
           node_done(n, build2(&n->b, n->relay, n->in[0], indices, a));
}

/* x, of no more cells than the data have along other dimensions than the axis. */
static const Expr *not_beyond(Node *n, const Expr *x, uint32_t axis)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;

    if (!x || expr_rank(x) != expr_rank(n->in[0]))
        return x; /* which the relation says */
    for (uint32_t i = 0; x && i < expr_rank(x); i++) {
        const Idx  *has = expr_form(x, i), *all = expr_form(n->in[0], i);
        const Expr *more = build_sub(b, cell_form(b, has), cell_form(b, all));

        if (i == axis || idx_sub(A, has, all)->hi <= 0)
            continue;
        more = build2(b, "maximum", more, cell_number(b, 0), NULL);
        if (!onnx_require(n, more, "the indices have a larger dimension than the data"))
            return NULL;
        x = build_slice_to(b, x, i, idx_const(A, 0), idx_min(A, has, all));
    }
    return x;
}

bool convert_gather_elements(Node *n)
{
    GatherAttrs *a = ATTRS(&n->b, GatherAttrs);
    const Expr  *indices;
    uint32_t     axis;
    bool         known;

    if (!node_need_rank(n, 0, 1, MAX_RANK) || !node_need_rank(n, 1, 1, MAX_RANK) ||
        !node_axis(n, node_int(n, "axis", 0), expr_rank(n->in[0]), &axis))
        return false;
    if (expr_empty(n->in[1])) /* no cell is read, not even of an empty tensor */
        return node_done(n, build_zeros_of(&n->b, expr_dtype(n->in[0]), expr_rank(n->in[1]),
                                           expr_forms(n->in[1]).at));
    if (!(indices = positive(n, n->in[1], expr_form(n->in[0], axis), &known)))
        return false;
    if (!(indices = not_beyond(n, indices, axis)))
        return false;
    a->axis = axis;
    a->mode = known ? "clip" : "wrap";
    return is_there(n, axis, indices) &&
           node_done(n, build2(&n->b, n->relay, n->in[0], indices, a));
}

/* Relay wants the coordinates in front: [.., M] -> [M, ..]. */
static const Expr *coordinates_first(const Build *b, const Expr *indices)
{
    int64_t  axes[MAX_RANK];
    uint32_t r = expr_rank(indices);

    for (uint32_t i = 0; i < r; i++)
        axes[i] = i == 0 ? r - 1 : i - 1;
    return build_transpose(b, indices, r, axes);
}

/* Negative coordinates plus the extent of their dimension; constant ones have to lie inside. */
static const Expr *wrap_coordinates(Node *n, uint32_t first)
{
    const Build      *b = &n->b;
    const Expr       *indices = n->in[1], *k = build_fold(b, indices);
    uint32_t          m = (uint32_t)build_dim(b, indices, expr_rank(indices) - 1);
    const Idx *const *d = n->in[0]->type->dims + first;
    int64_t          *wrapped;
    const Type       *t = type_tensor_i64(b->c, expr_dtype(indices), 1, (int64_t[]){m});
    bool              known = k != NULL;
    Ints              v;

    if (k && expr_ints(b->c, k, &v)) {
        wrapped = NEW_ARRAY(b->c->arena, int64_t, v.n + 1);
        for (uint32_t i = 0; i < v.n; i++) {
            const Idx *extent = d[i % m];

            if (v.at[i] < -extent->hi || v.at[i] >= extent->hi)
                return node_error(n, E_IMPORT, "index %lld is outside an extent of %s",
                                  (long long)v.at[i], dim_text(b->c, extent));
            known &= v.at[i] >= 0 || idx_is_const(extent, NULL);
            wrapped[i] = v.at[i] < 0 ? v.at[i] + extent->hi : v.at[i];
        }
        if (known)
            return ints_like(b, k, wrapped);
    }
    return build_where(b, build_by(b, "less", indices, 0),
                       build2(b, "add", indices, build_values(b, t, (Dims){m, d}), NULL), indices);
}

static bool nd_operands(Node *n, uint32_t first)
{
    int64_t m;

    if (!node_need_rank(n, 0, 1, MAX_RANK) || !node_need_rank(n, 1, 1, MAX_RANK))
        return false;
    m = build_dim(&n->b, n->in[1], expr_rank(n->in[1]) - 1);
    if (m < 0 || m + first > expr_rank(n->in[0]))
        return node_error(n, E_IMPORT, "indices of %lld numbers for a tensor of %u dimensions",
                          (long long)m, expr_rank(n->in[0]));
    for (uint32_t i = 0; i < m; i++)
        if (!is_there(n, first + i, n->in[1]))
            return false;
    return true;
}

bool convert_gather_nd(Node *n)
{
    const Build   *b = &n->b;
    GatherNdAttrs *a = ATTRS(b, GatherNdAttrs);
    int64_t        batch = node_int(n, "batch_dims", 0);
    const Expr    *at;

    if (batch < 0 || batch >= MAX_RANK)
        return node_error(n, E_IMPORT, "batch_dims is %lld", (long long)batch);
    if (!nd_operands(n, (uint32_t)batch))
        return false;
    if (expr_empty(n->in[1]) && expr_rank(n->in[1]) > batch)
        return nothing_chosen(n, 0, expr_rank(n->in[1]) - 1,
                              (uint32_t)(batch + build_dim(b, n->in[1], expr_rank(n->in[1]) - 1)));
    a->batch_dims = batch;
    at = wrap_coordinates(n, (uint32_t)batch);
    return node_done(n, at ? build2(b, n->relay, n->in[0], coordinates_first(b, at), a) : NULL);
}

static const char *reduction(Node *n)
{
    const char *how = node_str(n, "reduction", "none");

    if (!strcmp(how, "none"))
        return "update";
    if (!strcmp(how, "add") || !strcmp(how, "mul") || !strcmp(how, "min") || !strcmp(how, "max"))
        return how;
    return node_error(n, E_UNSUPPORTED, "reduction '%s'", how);
}

/* Along the other axes there are at most as many indices as cells; where values decide how many,
 * the run sees to it. */
static bool fit_indices(Node *n, uint32_t axis)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;

    for (uint32_t i = 0; i < expr_rank(n->in[1]) && i < expr_rank(n->in[0]); i++) {
        const Idx *have = expr_form(n->in[0], i), *want = expr_form(n->in[1], i), *least, *none;

        if (i == axis || idx_sub(A, have, want)->lo >= 0 ||
            (!onnx_decided(n->im, have) && !onnx_decided(n->im, want)))
            continue;
        least = idx_min(A, have, want);
        RunDim d = {cell_form(b, idx_sub(A, want, least)), 0, idx_const(A, 0), i, 1};
        if (!onnx_bind(n, 0, 1, &d, &none))
            return false;
        for (uint32_t k = 1; k < 3; k++)
            if (!(n->in[k] = build_slice_to(b, n->in[k], i, idx_const(A, 0), least)))
                return false;
    }
    return true;
}

bool convert_scatter_elements(Node *n)
{
    const Build          *b = &n->b;
    ScatterElementsAttrs *a = ATTRS(b, ScatterElementsAttrs);
    const Expr           *at;
    uint32_t              axis;
    bool                  known;

    if (!node_need_rank(n, 0, 1, MAX_RANK) || !node_need_rank(n, 1, 1, MAX_RANK) ||
        !node_need_rank(n, 2, 1, MAX_RANK) || !(a->reduction = reduction(n)) ||
        !node_axis(n, node_int(n, "axis", 0), expr_rank(n->in[0]), &axis))
        return false;
    a->axis = axis;
    for (uint32_t i = 0; i < expr_rank(n->in[1]) && i < expr_rank(n->in[2]); i++)
        if (!(n->in[2] = onnx_agreed(n, n->in[2], i, expr_form(n->in[1], i))))
            return false;
    if (!fit_indices(n, axis) || !is_there(n, axis, n->in[1]) ||
        !(at = positive(n, n->in[1], expr_form(n->in[0], axis), &known)))
        return false;
    if (!known) {
        const Type *t = type_tensor_i64(b->c, expr_dtype(at), 0, NULL);
        const Expr *end = build_values(b, t, (Dims){1, n->in[0]->type->dims + axis});

        at = build_where(b, build_by(b, "less", at, 0), build2(b, "add", at, end, NULL), at);
    }
    if (expr_empty(n->in[1]) && expr_empty(n->in[2])) /* nothing is written */
        return node_done(n, n->in[0]);
    at = not_beyond(n, at, axis);
    return at && node_done(n, build3(b, n->relay, n->in[0], at, not_beyond(n, n->in[2], axis), a));
}

bool convert_scatter_nd(Node *n)
{
    const Build    *b = &n->b;
    ScatterNdAttrs *a = ATTRS(b, ScatterNdAttrs);
    const Expr     *at;

    if (!nd_operands(n, 0) || !node_need_rank(n, 2, 0, MAX_RANK) || !(a->mode = reduction(n)))
        return false;
    if (expr_empty(n->in[2]))
        return node_done(n, n->in[0]);
    for (uint32_t i = 0; i + 1 < expr_rank(n->in[1]) && i < expr_rank(n->in[2]); i++)
        if (!(n->in[2] = onnx_agreed(n, n->in[2], i, expr_form(n->in[1], i))))
            return false;
    at = wrap_coordinates(n, 0);
    return node_done(n, at ? build3(b, n->relay, n->in[0], coordinates_first(b, at), n->in[2], a)
                           : NULL);
}

/* The same for a depth that the run says: where the number of a cell is the index. */
static bool one_hot_at_run(Node *n, uint32_t axis)
{
    const Build *b = &n->b;
    const Expr  *depth = node_cells(n, 1), *at = build_cast(b, n->in[0], DT_I64), *v = n->in[2];
    uint32_t     rank = expr_rank(n->in[0]) + 1;
    const Idx   *cells;

    if (!depth || !at)
        return false;
    if (!expr_single(depth) || build_dim(b, v, 0) != 2)
        return node_error(n, E_IMPORT, "depth is not one number, or values are not [off, on]");
    RunDim d = {depth, 0, NULL, axis, 1};
    if (!onnx_bind(n, 0, 1, &d, &cells))
        return false;
    depth = build_reshape(b, depth, 0, NULL);
    at = build_where(b, build_by(b, "less", at, 0), build2(b, "add", at, depth, NULL), at);
    at = build2(b, "equal", build_expand_dims(b, at, axis, 1),
                build_along(b, build_arange(b, cells, DT_I64), rank, axis), NULL);
    return node_done(n, build_where(b, at, build_reshape(b, build_slice(b, v, 0, 1, 2), 0, NULL),
                                    build_reshape(b, build_slice(b, v, 0, 0, 1), 0, NULL)));
}

/* values [off, on] may be known only at run time; indices below 0 count from the end, as Relay has
 * it, and those outside give a row of off. */
bool convert_one_hot(Node *n)
{
    const Build *b = &n->b;
    OneHotAttrs *a = ATTRS(b, OneHotAttrs);
    const Expr  *at, *v;
    double       depth;
    uint32_t     axis;

    if (!node_need_rank(n, 0, 0, MAX_RANK - 1) || !node_need_rank(n, 2, 1, 1) ||
        !node_axis(n, node_int(n, "axis", -1), expr_rank(n->in[0]) + 1, &axis))
        return false;
    if (!build_fold(b, n->in[1]))
        return one_hot_at_run(n, axis);
    if (!node_const_float(n, 1, &depth))
        return false;
    if (!(depth >= 0 && depth < (double)MAX_ELEMS) || build_dim(b, n->in[2], 0) != 2)
        return node_error(n, E_IMPORT, "depth is %g, or values are not [off, on]", depth);
    v = n->in[2];
    a->depth = (int64_t)depth;
    a->axis = axis;
    a->dtype = expr_dtype(v);
    at = n->in[0];
    if (dtype_is_float(expr_dtype(at)))
        at = build_cast(b, at, DT_I64);
    if (!at)
        return false;
    return node_done(n,
                     build3(b, n->relay, at, build_reshape(b, build_slice(b, v, 0, 1, 2), 0, NULL),
                            build_reshape(b, build_slice(b, v, 0, 0, 1), 0, NULL), a));
}

/* Rows whose condition holds; the condition has to be a constant, as the result's shape hangs on
 * it. */
static bool compress_at_run(Node *n)
{
    const Build *b = &n->b;
    const Idx   *cells = type_cells(b->c, n->in[0]->type), *most;
    const Expr  *x = n->in[0], *keep = n->in[1];
    uint32_t     axis = 0;

    if (!node_need_rank(n, 1, 1, 1))
        return false;
    if (!node_attr(n, "axis"))
        x = build_reshape_to(b, x, 1, &cells);
    else if (!node_axis(n, node_int(n, "axis", 0), expr_rank(x), &axis))
        return false;
    if (!x)
        return false;
    most = expr_form(x, axis); /* flags behind the end choose nothing */
    if (expr_form(keep, 0)->hi > most->lo)
        keep = build_slice_to(b, keep, 0, idx_const(b->c->arith, 0),
                              idx_min(b->c->arith, expr_form(keep, 0), most));
    return node_done(
        n, build_take(b, x, onnx_positions(n, build_cast(b, keep, DT_BOOL), 0, axis, NULL), axis));
}

bool convert_compress(Node *n)
{
    const Build *b = &n->b;
    const Expr  *x;
    int64_t     *at, extent;
    uint32_t     axis = 0, k = 0;
    Ints         keep;

    if (!node_need_rank(n, 0, 1, MAX_RANK))
        return false;
    if (!node_known(n, 1))
        return compress_at_run(n);
    if (!node_const_ints(n, 1, &keep))
        return false;
    x = n->in[0];
    if (!node_attr(n, "axis"))
        x = build_reshape(b, x, 1, (int64_t[]){build_elems(b, x)});
    else if (!node_axis(n, node_int(n, "axis", 0), expr_rank(x), &axis))
        return false;
    if (!x)
        return false;
    extent = build_dim(b, x, axis);
    at = NEW_ARRAY(b->c->arena, int64_t, keep.n + 1);
    for (uint32_t i = 0; i < keep.n && i < extent; i++)
        if (keep.at[i])
            at[k++] = i;
    if (k == 0) {
        int64_t dims[MAX_RANK];

        memcpy(dims, build_dims(b, x).at, expr_rank(x) * sizeof *dims);
        dims[axis] = 0;
        return node_done(n, build_zeros(b, expr_dtype(x), expr_rank(x), dims));
    }
    return node_done(n, build_take(b, x, build_i64s(b, k, at), axis));
}

/* The coordinates of the cells that are not 0: a row for each dimension. */
static bool nonzero_at_run(Node *n)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    const Expr  *x = n->in[0], *flags, *at, *rows[MAX_RANK];
    const Idx   *cells = type_cells(b->c, x->type), *step = idx_const(A, 1);

    flags = dtype_is_bool(expr_dtype(x)) ? x : build_by(b, "not_equal", x, 0);
    at = onnx_positions(n, build_reshape_to(b, flags, 1, &cells), 0, 1, NULL);
    if (!at)
        return false;
    for (uint32_t i = expr_rank(x); i-- > 0;) {
        const Idx *d = expr_form(x, i);

        rows[i] = build2(b, "floor_divide", at, cell_form(b, step), NULL);
        if (i > 0)
            rows[i] = build2(b, "floor_mod", rows[i], cell_form(b, d), NULL);
        rows[i] = build_expand_dims(b, rows[i], 0, 1);
        step = idx_mul(A, step, d);
    }
    if (expr_rank(x) == 0)
        return node_done(
            n, build_zeros_of(b, DT_I64, 2, (const Idx *[]){idx_const(A, 0), expr_form(at, 0)}));
    return node_done(n, build_concat(b, expr_rank(x), rows, 0));
}

bool convert_nonzero(Node *n)
{
    const Build *b = &n->b;
    const Expr  *k;
    int64_t     *at, dims[2], elems;
    uint32_t     rank, found = 0;
    DType        t;
    Ints         d;

    if (!node_need_rank(n, 0, 0, MAX_RANK))
        return false;
    if (!(k = build_fold(b, n->in[0])))
        return nonzero_at_run(n);
    t = expr_dtype(k);
    rank = expr_rank(k);
    elems = build_elems(b, k);
    d = build_dims(b, k);
    at = arena_array(b->c->arena, (size_t)elems * (rank ? rank : 1) + 1, sizeof *at);
    for (int64_t i = 0; i < elems; i++)
        found += dtype_get_f(t, k->u.constant->data.at + i * dtype_bytes(t)) != 0;
    for (int64_t i = 0, j = 0; i < elems; i++) {
        int64_t left = i;

        if (dtype_get_f(t, k->u.constant->data.at + i * dtype_bytes(t)) == 0)
            continue;
        for (uint32_t r = rank; r-- > 0;) {
            at[(int64_t)r * found + j] = left % d.at[r];
            left /= d.at[r];
        }
        j++;
    }
    dims[0] = rank;
    dims[1] = found;
    return node_done(n, build_const(b, DT_I64, 2, dims, at));
}

bool convert_reverse_sequence(Node *n)
{
    int64_t batch = node_int(n, "batch_axis", 1), time = node_int(n, "time_axis", 0);

    if (!node_need_rank(n, 0, 2, MAX_RANK) || !node_need_rank(n, 1, 1, 1))
        return false;
    if (!((batch == 0 && time == 1) || (batch == 1 && time == 0)))
        return node_error(n, E_IMPORT, "batch_axis %lld and time_axis %lld", (long long)batch,
                          (long long)time);
    return node_done(
        n, build_reverse_rows(&n->b, n->in[0], n->in[1], (uint32_t)time, (uint32_t)batch));
}
