/* Functions of keras.ops that give shapes, take parts, and multiply matrices. */
#include "frontends/keras/keras.h"

#include <string.h>

static bool axis_of(KerasNode *n, const char *name, const Expr *x, int64_t fallback, uint32_t more,
                    uint32_t *out)
{
    return keras_axis(n, keras_int(n, name, fallback), expr_rank(x) + more, out);
}

/* ---- shapes ----------------------------------------------------------------------------------------- */

/* A size of -1 is what is left; of a batch that the file does not know it is written so as well. */
bool keras_op_reshape(KerasNode *n)
{
    const Expr *x = keras_op_arg(n, 0);
    const Idx  *dims[MAX_RANK], *known, *all;
    uint32_t    open = UINT32_MAX;
    Arith      *A = n->b.c->arith;
    Ints        shape;

    if (!x || !keras_list(n, keras_json(n, "newshape") ? "newshape" : "shape", &shape))
        return false;
    known = idx_const(A, 1);
    all = type_cells(n->b.c, x->type);
    for (uint32_t i = 0; i < shape.n; i++) {
        if (shape.at[i] < -1 || (shape.at[i] == -1 && open != UINT32_MAX))
            return keras_error(n, E_UNSUPPORTED, "a shape with %lld", (long long)shape.at[i]);
        if (shape.at[i] == -1)
            open = i;
        else
            known = idx_mul(A, known, dims[i] = idx_const(A, shape.at[i]));
    }
    if (open != UINT32_MAX && !(dims[open] = idx_div_exact(A, all, known)))
        return keras_error(n, E_IMPORT, "data %s do not fit the shape", type_text(n->b.c, x->type));
    return keras_done(n, build_reshape_to(&n->b, x, shape.n, dims));
}

bool keras_op_transpose(KerasNode *n)
{
    const Expr *x = keras_op_arg(n, 0);
    int64_t     axes[MAX_RANK];
    uint32_t    rank;
    Ints        list;

    if (!x || !keras_list(n, keras_json(n, "axes") ? "axes" : "perm", &list))
        return false;
    if (list.n)
        return keras_done(n, build_permuted(&n->b, x, list));
    rank = expr_rank(x);
    for (uint32_t i = 0; i < rank; i++)
        axes[i] = rank - 1 - i;
    return keras_done(n, build_transpose(&n->b, x, rank, axes));
}

bool keras_op_swapaxes(KerasNode *n)
{
    const Expr *x = keras_op_arg(n, 0);
    int64_t     axes[MAX_RANK];
    uint32_t    one, two;

    if (!x || !axis_of(n, "axis1", x, 0, 0, &one) || !axis_of(n, "axis2", x, 0, 0, &two))
        return false;
    for (uint32_t i = 0; i < expr_rank(x); i++)
        axes[i] = i == one ? two : i == two ? one : i;
    return keras_done(n, build_transpose(&n->b, x, expr_rank(x), axes));
}

bool keras_op_expand_dims(KerasNode *n)
{
    const Expr *x = keras_op_arg(n, 0);
    Ints        list;
    uint32_t    at;

    if (!x || !keras_list(n, "axis", &list))
        return false;
    if (list.n != 1)
        return keras_error(n, E_UNSUPPORTED, "%u axes", list.n);
    return keras_axis(n, list.at[0], expr_rank(x) + 1, &at) &&
           keras_done(n, build_expand_dims(&n->b, x, at, 1));
}

bool keras_op_squeeze(KerasNode *n)
{
    const Expr *x = keras_op_arg(n, 0);
    int64_t     axes[MAX_RANK];
    uint32_t    count;
    Ints        list;

    return x && keras_list(n, "axis", &list) &&
           build_axes(&n->b, list, expr_rank(x), 0, &count, axes) &&
           keras_done(n, build_squeeze(&n->b, x, count, axes));
}

bool keras_op_broadcast_to(KerasNode *n)
{
    const Expr *x = keras_op_arg(n, 0);
    const Idx  *dims[MAX_RANK];
    Ints        shape;

    if (!x || !keras_list(n, "shape", &shape))
        return false;
    for (uint32_t i = 0; i < shape.n; i++) {
        if (shape.at[i] < 0)
            return keras_error(n, E_UNSUPPORTED, "a shape with %lld", (long long)shape.at[i]);
        dims[i] = idx_const(n->b.c->arith, shape.at[i]);
    }
    return build_check_shape(&n->b, (Dims){shape.n, dims}) &&
           keras_done(n, build_broadcast_to(&n->b, x, shape.n, dims));
}

bool keras_op_flip(KerasNode *n)
{
    const Expr *x = keras_op_arg(n, 0);
    int64_t     axes[MAX_RANK];
    uint32_t    count;
    Ints        list;

    if (!x || !keras_list(n, "axis", &list) ||
        !build_axes(&n->b, list, expr_rank(x), 0, &count, axes))
        return false;
    if (count == 0)
        for (; count < expr_rank(x); count++)
            axes[count] = count;
    return keras_done(n, build_reverse(&n->b, x, count, axes));
}

bool keras_op_tile(KerasNode *n)
{
    const Expr *x = keras_op_arg(n, 0);
    TileAttrs  *a = ATTRS(&n->b, TileAttrs);
    const Idx  *dims[MAX_RANK];
    Ints        list;

    if (!x || !keras_list(n, "repeats", &list))
        return false;
    for (uint32_t i = 0; i < list.n; i++) {
        if (list.at[i] < 0 || list.at[i] > INT32_MAX)
            return keras_error(n, E_IMPORT, "%lld repeats", (long long)list.at[i]);
        dims[i] = idx_const(n->b.c->arith, list.at[i]);
    }
    a->reps = dims_dup(n->b.c, dims, list.n);
    return keras_done(n, build1(&n->b, "tile", x, a));
}

bool keras_op_repeat(KerasNode *n)
{
    const Expr  *x = keras_op_arg(n, 0);
    RepeatAttrs *a = ATTRS(&n->b, RepeatAttrs);
    uint32_t     at;
    Ints         list;

    if (!x || !keras_list(n, "repeats", &list))
        return false;
    if (list.n != 1 || list.at[0] < 1 || list.at[0] > INT32_MAX || !keras_json(n, "axis"))
        return keras_error(n, E_UNSUPPORTED, "repeats of several numbers, or no axis");
    if (!axis_of(n, "axis", x, 0, 0, &at))
        return false;
    a->repeats = list.at[0];
    a->axis = at;
    return keras_done(n, build1(&n->b, "repeat", x, a));
}

/* ---- several tensors -------------------------------------------------------------------------------- */

/* The list that the first argument is. */
static bool read_list(KerasNode *n, const char *names, uint32_t *count, const Expr ***out)
{
    const KerasArg *a = keras_arg(n, 0, names);
    KerasValue      v;

    if (!a || a->kind != KERAS_LIST || a->n == 0)
        return keras_error(n, E_IMPORT, "argument '%s' is no list of tensors", names);
    *count = a->n;
    *out = NEW_ARRAY(n->b.c->arena, const Expr *, a->n);
    for (uint32_t i = 0; i < a->n; i++) {
        if (!keras_value(n, &a->at[i], &v))
            return false;
        (*out)[i] = n->moved && expr_rank(v.e) == n->rank ? build_channels_first(&n->b, v.e) : v.e;
        if (!(*out)[i])
            return false;
    }
    return true;
}

bool keras_op_concatenate(KerasNode *n)
{
    const Expr **xs;
    uint32_t     count, at;

    return read_list(n, "xs|values", &count, &xs) && axis_of(n, "axis", xs[0], -1, 0, &at) &&
           keras_done(n, build_concat(&n->b, count, xs, at));
}

bool keras_op_stack(KerasNode *n)
{
    const Expr **xs;
    uint32_t     count, at;

    if (!read_list(n, "x|xs|values", &count, &xs) || !axis_of(n, "axis", xs[0], 0, 1, &at))
        return false;
    for (uint32_t i = 0; i < count; i++)
        xs[i] = build_expand_dims(&n->b, xs[i], at, 1);
    return keras_done(n, build_concat(&n->b, count, xs, at));
}

/* Into equal parts, or at these places. */
bool keras_op_split(KerasNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = keras_op_arg(n, 0);
    int64_t      cells, from = 0;
    uint32_t     at, parts;
    bool         equal;
    Ints         list;

    if (!x || !keras_list(n, "indices_or_sections", &list) || !axis_of(n, "axis", x, 0, 0, &at))
        return false;
    equal = !json_is_array(keras_json(n, "indices_or_sections"));
    cells = build_dim(b, x, at);
    if (equal && (list.n != 1 || list.at[0] < 1 || cells % list.at[0] || list.at[0] > 1 << 16))
        return keras_error(n, E_IMPORT, "%lld cells in parts", (long long)cells);
    parts = equal ? (uint32_t)list.at[0] : list.n + 1;
    for (uint32_t i = 0; i < parts; i++) {
        int64_t to = equal ? (int64_t)(i + 1) * (cells / parts) : i < list.n ? list.at[i] : cells;

        if (to < from || to > cells)
            return keras_error(n, E_IMPORT, "a part from %lld to %lld", (long long)from,
                               (long long)to);
        if (!keras_done(n, build_slice(b, x, at, from, to)))
            return false;
        from = to;
    }
    return true;
}

/* ---- parts ------------------------------------------------------------------------------------------ */

/* A bound of a slice as a form that is within the dimension. */
static const Idx *bound(Arith *A, const json_t *x, const Idx *dim, const Idx *fallback)
{
    const Idx *v;
    int64_t    i;

    if (!json_int(x, &i))
        return fallback;
    v = i < 0 ? idx_addc(A, dim, i) : idx_const(A, i);
    return idx_max(A, idx_const(A, 0), idx_min(A, v, dim));
}

typedef struct {
    const Expr *x;
    uint32_t    at;   /* the dimension that comes next */
    uint32_t    kept; /* of the result */
    const Idx  *dims[MAX_RANK + 1];
} Parts;

static bool take_slice(KerasNode *n, Parts *p, const json_t *start, const json_t *stop,
                       const json_t *step)
{
    Arith     *A = n->b.c->arith;
    const Idx *dim = expr_form(p->x, p->at), *from, *to;
    int64_t    by = 1;

    if (json_is_integer(step) && (by = json_integer_value(step)) < 1)
        return keras_error(n, E_UNSUPPORTED, "a slice with step %lld", (long long)by);
    from = bound(A, start, dim, idx_const(A, 0));
    to = bound(A, stop, dim, dim);
    if (from != idx_const(A, 0) || to != dim)
        p->x = build_slice_to(&n->b, p->x, p->at, from, to);
    if (p->x && by > 1) {
        StridedSliceAttrs *a = ATTRS(&n->b, StridedSliceAttrs);
        const Idx         *zero = idx_const(A, 0), *end = expr_form(p->x, p->at);
        int64_t            axis = p->at;

        a->begin = dims_dup(n->b.c, &zero, 1);
        a->end = dims_dup(n->b.c, &end, 1);
        a->strides = ints_dup(n->b.c, &by, 1);
        a->axes = ints_dup(n->b.c, &axis, 1);
        p->x = build1(&n->b, "strided_slice", p->x, a);
    }
    if (!p->x)
        return false;
    p->dims[p->kept++] = expr_form(p->x, p->at++);
    return true;
}

static bool take_one(KerasNode *n, Parts *p, int64_t i)
{
    Arith     *A = n->b.c->arith;
    const Idx *dim = expr_form(p->x, p->at), *from = i < 0 ? idx_addc(A, dim, i) : idx_const(A, i);

    if (from->lo < 0 || idx_sub(A, dim, idx_addc(A, from, 1))->lo < 0)
        return keras_error(n, E_IMPORT, "index %lld of a dimension of %s", (long long)i,
                           dim_text(n->b.c, dim));
    p->x = build_slice_to(&n->b, p->x, p->at++, from, idx_addc(A, from, 1));
    return p->x != NULL;
}

/* x[..]: numbers, slices, None and an ellipsis. */
static bool take_part(KerasNode *n, Parts *p, const json_t *k, uint32_t left)
{
    const char *class = json_string_value(json_object_get(k, "class_name"));
    const json_t *c = json_object_get(k, "config") ? json_object_get(k, "config") : k;

    if (json_is_null(k)) {
        p->dims[p->kept++] = idx_const(n->b.c->arith, 1);
        return true;
    }
    if ((class && !strcmp(class, "__ellipsis__")) || json_object_get(k, "Ellipsis")) {
        while (p->at + left < expr_rank(p->x) && p->kept < MAX_RANK)
            p->dims[p->kept++] = expr_form(p->x, p->at), p->at++;
        return true;
    }
    if (p->at >= expr_rank(p->x))
        return keras_error(n, E_IMPORT, "more indices than dimensions");
    if (json_is_integer(k))
        return take_one(n, p, json_integer_value(k));
    if (json_is_object(k) && (!class || !strcmp(class, "__slice__")))
        return take_slice(n, p, json_object_get(c, "start"), json_object_get(c, "stop"),
                          json_object_get(c, "step"));
    return keras_error(n, E_UNSUPPORTED, "an index that is neither a number nor a slice");
}

bool keras_op_get_item(KerasNode *n)
{
    const Expr     *x = keras_op_arg(n, 0);
    const KerasArg *key = keras_arg(n, 1, "key|slice_spec");
    const json_t   *list = key ? key->json : NULL, *items = json_object_get(list, "items");
    Parts           p = {.x = x};
    size_t          count;

    list = items ? items : list;
    if (!x || !key || key->kind != KERAS_JSON)
        return x && keras_error(n, E_UNSUPPORTED, "an index that is a tensor");
    count = json_is_array(list) ? json_array_size(list) : 1;
    if (count > MAX_RANK)
        return keras_error(n, E_UNSUPPORTED, "%zu indices", count);
    for (size_t i = 0; i < count; i++) {
        uint32_t left = 0;

        for (size_t k = i + 1; k < count; k++) /* dimensions that those behind it take */
            left += !json_is_null(json_array_get(list, k));
        if (p.kept >= MAX_RANK ||
            !take_part(n, &p, json_is_array(list) ? json_array_get(list, i) : list, left))
            return p.kept >= MAX_RANK ? keras_error(n, E_UNSUPPORTED, "%zu indices", count) : false;
    }
    while (p.at < expr_rank(p.x) && p.kept < MAX_RANK)
        p.dims[p.kept++] = expr_form(p.x, p.at), p.at++;
    return keras_done(n, build_reshape_to(&n->b, p.x, p.kept, p.dims));
}

bool keras_op_take(KerasNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = keras_op_arg(n, 0), *i = x ? keras_op_arg(n, 1) : NULL;
    uint32_t     at;

    if (!i)
        return false;
    if (!dtype_is_int(expr_dtype(i)))
        i = build_cast(b, i, DT_I32);
    if (!keras_json(n, "axis")) {
        int64_t cells = build_elems(b, x);

        return keras_done(n, build_take(b, build_reshape(b, x, 1, &cells), i, 0));
    }
    return axis_of(n, "axis", x, 0, 0, &at) && keras_done(n, build_take(b, x, i, at));
}

bool keras_op_one_hot(KerasNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = keras_op_arg(n, 0);
    OneHotAttrs *a = ATTRS(b, OneHotAttrs);
    const char  *name = keras_text(n, "dtype", "float32");
    uint32_t     at;

    if (!x || !axis_of(n, "axis", x, -1, 1, &at))
        return false;
    if (!keras_dtype(name, &a->dtype) || keras_bool(n, "sparse", false))
        return keras_error(n, E_UNSUPPORTED, "a result of %s", name);
    a->depth = keras_int(n, "num_classes", 0);
    a->axis = at;
    if (a->depth < 1 || a->depth > INT32_MAX)
        return keras_error(n, E_IMPORT, "%lld classes", (long long)a->depth);
    if (!dtype_is_int(expr_dtype(x)))
        x = build_cast(b, x, DT_I32);
    return keras_done(n, build3(b, "one_hot", x, expr_scalar(b->c, a->dtype, 1),
                                expr_scalar(b->c, a->dtype, 0), a));
}

bool keras_op_like(KerasNode *n)
{
    const Expr *x = keras_op_arg(n, 0);
    const char *name = keras_text(n, "dtype", NULL);
    DType       t = x ? expr_dtype(x) : DT_F32;

    if (name && !keras_dtype(name, &t))
        return keras_error(n, E_UNSUPPORTED, "a result of %s", name);
    return x && keras_done(n, build_broadcast_to(
                                  &n->b, expr_scalar(n->b.c, t, !strcmp(n->row->relay, "ones")),
                                  expr_rank(x), expr_forms(x).at));
}

bool keras_op_matmul(KerasNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = keras_op_arg(n, 0), *y = x ? keras_op_arg(n, 1) : NULL, *r;
    const Idx   *dims[MAX_RANK];
    uint32_t     k = 0;
    bool         row, column;

    if (!y)
        return false;
    row = expr_rank(x) == 1, column = expr_rank(y) == 1;
    if (expr_rank(x) == 0 || expr_rank(y) == 0)
        return keras_error(n, E_IMPORT, "an operand of a product of matrices is a number");
    r = keras_matmul(n, row ? build_expand_dims(b, x, 0, 1) : x,
                     column ? build_expand_dims(b, y, 1, 1) : y, false);
    if (!r || (!row && !column))
        return keras_done(n, r);
    for (uint32_t i = 0; i < expr_rank(r); i++)
        if (!(row && i + 2 == expr_rank(r)) && !(column && i + 1 == expr_rank(r)))
            dims[k++] = expr_form(r, i);
    return keras_done(n, build_reshape_to(b, r, k, dims));
}
