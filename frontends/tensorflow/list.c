/* Lists of tensors: TensorArray of TensorFlow 1, TensorList of TensorFlow 2.
 *
 * A list of a length that is known is its elements, one on top of the other, in one tensor; they
 * have one shape.  Until the first is written that may not be known (TfValue.e is NULL).  Elements
 * that were never written are zeros.  The handle of a TensorArray says how long it is, its flow
 * what is in it. */
#include "frontends/tensorflow/tensorflow.h"

#include <string.h>

static bool done(TfNode *n, uint32_t i, const Expr *e, const Idx *room, DType t)
{
    n->out[i] = (TfValue){.kind = TF_LIST, .e = e, .room = room, .dtype = t};
    return true;
}

/* Input i as a list; false with an error. */
static bool list_at(TfNode *n, uint32_t i, const TfValue **out)
{
    *out = &n->given[i];
    return n->given[i].kind == TF_LIST ||
           tf_error(n, E_IMPORT, "input %u is no list of tensors", i);
}

static const Expr *tensor_at(TfNode *n, uint32_t i)
{
    return tf_is_tensor(n, &n->given[i], arena_printf(n->b.c->arena, "input %u", i)) ? n->given[i].e
                                                                                     : NULL;
}

/* The number of an element, a scalar. */
static const Expr *index_at(TfNode *n, uint32_t i)
{
    const Expr *e = tensor_at(n, i);

    if (e && (!expr_single(e) || !dtype_is_int(expr_dtype(e))))
        return tf_error(n, E_IMPORT, "input %u is %s, no number of an element", i,
                        type_text(n->b.c, e->type));
    return build_reshape(&n->b, e, 0, NULL);
}

/* How long it is to be. */
static bool length_at(TfNode *n, uint32_t i, const Idx **out)
{
    Dims d;

    if (!tensor_at(n, i) || !tf_forms(n, i, &d))
        return false;
    if (d.n != 1 || d.at[0]->lo < 0)
        return tf_error(n, E_IMPORT, "a list of %s elements", dim_text(n->b.c, d.at[0]));
    *out = d.at[0];
    return true;
}

static const Expr *zeros_of(TfNode *n, const Idx *room, DType t, Dims element)
{
    const Idx *dims[MAX_RANK];

    if (element.n + 1 > MAX_RANK)
        return tf_error(n, E_UNSUPPORTED, "elements of %u dimensions", element.n);
    dims[0] = room;
    for (uint32_t i = 0; i < element.n; i++)
        dims[1 + i] = element.at[i];
    return build_check_shape(&n->b, (Dims){element.n + 1, dims})
               ? build_zeros_of(&n->b, t, element.n + 1, dims)
               : NULL;
}

/* Of elements whose shape input i says, if it does. */
static bool begin(TfNode *n, uint32_t i, const Idx *room, DType t)
{
    const Expr *shape = tensor_at(n, i), *e = NULL;
    Dims        d;

    if (!shape)
        return false;
    if (expr_rank(shape) == 1 && build_forms(&n->b, shape, &d)) {
        bool whole = true;

        for (uint32_t k = 0; k < d.n; k++)
            whole &= d.at[k]->lo >= 0;
        if (whole && !(e = zeros_of(n, room, t, d)))
            return false;
    }
    return done(n, 0, e, room, t);
}

/* ---- elements --------------------------------------------------------------------------------------- */

static bool write(TfNode *n, const TfValue *l, const Expr *at, const Expr *item)
{
    const Expr *e = l->e;

    if (!at || !item)
        return false;
    if (!e && !(e = zeros_of(n, l->room, expr_dtype(item), expr_forms(item))))
        return false;
    if (expr_rank(e) != expr_rank(item) + 1 ||
        !expr_has_forms(item, expr_rank(item), expr_forms(e).at + 1))
        return tf_error(n, E_UNSUPPORTED, "an element is %s, in a list of %s",
                        type_text(n->b.c, item->type), type_text(n->b.c, e->type));
    e = build3(&n->b, "update_slice", e, item, build_cast(&n->b, at, DT_I64), NULL);
    return e && done(n, 0, e, l->room, expr_dtype(item));
}

static bool read(TfNode *n, const TfValue *l, const Expr *at)
{
    if (!at)
        return false;
    if (!l->e)
        return tf_error(n, E_UNSUPPORTED, "it reads a list in which nothing was written");
    return tf_done(n, build_take(&n->b, l->e, at, 0));
}

bool tf_list_reserve(TfNode *n)
{
    const Idx *room;
    DType      t;

    return tf_type(n, "element_dtype", &t) && length_at(n, 1, &room) && begin(n, 0, room, t);
}

/* Grows by elements that are pushed, one at a time. */
bool tf_list_empty(TfNode *n)
{
    DType t;

    return tf_type(n, "element_dtype", &t) && done(n, 0, NULL, idx_const(n->b.c->arith, 0), t);
}

bool tf_list_from_tensor(TfNode *n)
{
    const Expr *x = tensor_at(n, 0);

    if (!x || !tf_rank(n, 0, 1, MAX_RANK))
        return false;
    return done(n, 0, x, expr_form(x, 0), expr_dtype(x));
}

bool tf_list_set_item(TfNode *n)
{
    const TfValue *l;

    return list_at(n, 0, &l) && write(n, l, index_at(n, 1), tensor_at(n, 2));
}

bool tf_list_get_item(TfNode *n)
{
    const TfValue *l;

    return list_at(n, 0, &l) && read(n, l, index_at(n, 1));
}

bool tf_list_push_back(TfNode *n)
{
    const Build   *b = &n->b;
    const TfValue *l;
    const Expr    *x = tensor_at(n, 1);

    if (!x || !list_at(n, 0, &l))
        return false;
    x = build_expand_dims(b, x, 0, 1);
    if (l->e)
        x = build_concat(b, 2, (const Expr *[]){l->e, x}, 0);
    return x && done(n, 0, x, expr_form(x, 0), expr_dtype(x));
}

/* The list without its last element, and that. */
bool tf_list_pop_back(TfNode *n)
{
    const Build   *b = &n->b;
    const TfValue *l;
    const Expr    *last, *rest;
    int64_t        cells;

    if (!list_at(n, 0, &l))
        return false;
    if (!l->e || (cells = build_dim(b, l->e, 0)) < 1)
        return tf_error(n, E_IMPORT, "the list is empty");
    rest = build_slice(b, l->e, 0, 0, cells - 1);
    last = build_take(b, l->e, expr_scalar(b->c, DT_I64, (double)(cells - 1)), 0);
    return rest && tf_put(n, 1, last) && done(n, 0, rest, expr_form(rest, 0), expr_dtype(rest));
}

/* ---- all elements ----------------------------------------------------------------------------------- */

static const Expr *all_of(TfNode *n, const TfValue *l)
{
    return l->e ? l->e : tf_error(n, E_UNSUPPORTED, "nothing was written into the list");
}

bool tf_list_stack(TfNode *n)
{
    const TfValue *l;

    return list_at(n, 0, &l) && tf_done(n, all_of(n, l));
}

bool tf_list_gather(TfNode *n)
{
    const TfValue *l;
    const Expr    *at = tensor_at(n, 1), *e;

    return at && list_at(n, 0, &l) && (e = all_of(n, l)) && tf_done(n, build_take(&n->b, e, at, 0));
}

static const Expr *length(TfNode *n, const TfValue *l)
{
    return build_values(&n->b, type_tensor(n->b.c, DT_I32, 0, NULL), (Dims){1, &l->room});
}

bool tf_list_length(TfNode *n)
{
    const TfValue *l;

    return list_at(n, 0, &l) && tf_done(n, length(n, l));
}

/* Elements end to end along their first dimension, and how long each was. */
static bool joined(TfNode *n, const TfValue *l)
{
    const Build *b = &n->b;
    const Expr  *e = all_of(n, l), *one;
    const Idx   *dims[MAX_RANK];

    if (!e)
        return false;
    if (expr_rank(e) < 2)
        return tf_error(n, E_IMPORT, "scalars, end to end");
    dims[0] = idx_mul(b->c->arith, expr_form(e, 0), expr_form(e, 1));
    for (uint32_t i = 2; i < expr_rank(e); i++)
        dims[i - 1] = expr_form(e, i);
    one = build_values(b, type_tensor(b->c, DT_I64, 0, NULL), (Dims){1, expr_forms(e).at + 1});
    return tf_put(n, 1, build_broadcast_to(b, one, 1, expr_forms(e).at)) &&
           tf_done(n, build_reshape_to(b, e, expr_rank(e) - 1, dims));
}

bool tf_list_concat(TfNode *n)
{
    const TfValue *l;

    return list_at(n, 0, &l) && joined(n, l);
}

/* ---- TensorArray ------------------------------------------------------------------------------------ */

bool tf_array(TfNode *n)
{
    const TfValueDef *v = tf_attr(n->op, "element_shape");
    const TfShape    *s = v ? v->shape : NULL;
    const Idx        *room;
    const Expr       *e = NULL;
    DType             t;
    int64_t           dims[MAX_RANK];
    bool              whole = s && !s->unknown_rank && s->dim.n < MAX_RANK;

    if (!tf_type(n, "dtype", &t) || !length_at(n, 0, &room))
        return false;
    for (uint32_t i = 0; whole && i < s->dim.n; i++) {
        dims[i] = ((const TfDim *)s->dim.at[i])->size;
        whole = dims[i] >= 0;
    }
    if (whole && !(e = zeros_of(n, room, t, dims_of_i64(n->b.c, dims, s->dim.n))))
        return false;
    return done(n, 0, NULL, room, t) && done(n, 1, e, room, t);
}

/* Inputs: handle, number, element, flow. */
bool tf_array_write(TfNode *n)
{
    const TfValue *l;

    return list_at(n, 3, &l) && write(n, l, index_at(n, 1), tensor_at(n, 2));
}

bool tf_array_read(TfNode *n)
{
    const TfValue *l;

    return list_at(n, 2, &l) && read(n, l, index_at(n, 1));
}

bool tf_array_gather(TfNode *n)
{
    const TfValue *l;
    const Expr    *at = tensor_at(n, 1), *e;
    Ints           v;
    bool           all;

    if (!at || !list_at(n, 2, &l) || !(e = all_of(n, l)))
        return false;
    all = expr_ints(n->b.c, at, &v) && expr_form(e, 0) == expr_form(at, 0);
    for (uint32_t i = 0; all && i < v.n; i++)
        all = v.at[i] == i;
    return tf_done(n, all ? e : build_take(&n->b, e, at, 0));
}

/* Inputs: handle, numbers, elements, flow. */
bool tf_array_scatter(TfNode *n)
{
    const Build   *b = &n->b;
    const TfValue *l;
    const Expr    *at = tensor_at(n, 1), *x = tensor_at(n, 2), *e;
    Dims           d;
    Ints           v;
    bool           all;

    if (!at || !x || !list_at(n, 3, &l) || !tf_rank(n, 1, 1, 1) || !tf_rank(n, 2, 1, MAX_RANK))
        return false;
    all = expr_ints(b->c, at, &v) && expr_form(x, 0) == l->room;
    for (uint32_t i = 0; all && i < v.n; i++)
        all = v.at[i] == i;
    if (all)
        return done(n, 0, x, l->room, expr_dtype(x));
    d = expr_forms(x);
    e = l->e ? l->e : zeros_of(n, l->room, expr_dtype(x), (Dims){d.n - 1, d.at + 1});
    e = build3(b, "scatter_nd", e, build_expand_dims(b, at, 0, 1), x, NULL);
    return e && done(n, 0, e, l->room, expr_dtype(x));
}

bool tf_array_concat(TfNode *n)
{
    const TfValue *l;

    return list_at(n, 1, &l) && joined(n, l);
}

/* Inputs: handle, a tensor, how long the parts are, which has to be the same, flow. */
bool tf_array_split(TfNode *n)
{
    const Build   *b = &n->b;
    const TfValue *l;
    const Expr    *x = tensor_at(n, 1), *e;
    int64_t        dims[MAX_RANK];
    Ints           size;

    if (!x || !tensor_at(n, 2) || !list_at(n, 3, &l) || !tf_ints(n, 2, &size) ||
        !tf_rank(n, 1, 1, MAX_RANK - 1))
        return false;
    for (uint32_t i = 0; i < size.n; i++)
        if (size.at[i] != size.at[0] || size.at[i] < 0)
            return tf_error(n, E_UNSUPPORTED, "elements of different sizes");
    if (size.n < 1 || size.at[0] * size.n != build_dim(b, x, 0))
        return tf_error(n, E_IMPORT, "%u parts of %s", size.n, type_text(b->c, x->type));
    dims[0] = size.n, dims[1] = size.at[0];
    for (uint32_t i = 1; i < expr_rank(x); i++)
        dims[1 + i] = build_dim(b, x, i);
    e = build_reshape(b, x, expr_rank(x) + 1, dims);
    return e && done(n, 0, e, expr_form(e, 0), expr_dtype(x));
}

bool tf_array_size(TfNode *n)
{
    const TfValue *l;

    return list_at(n, 1, &l) && tf_done(n, length(n, l));
}
