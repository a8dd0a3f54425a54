/* Builders of Relay. */
#include "ops/build.h"
#include "ops/common.h"

#include <string.h>

/* ---- what is known of an expression ------------------------------------------------------------ */

bool expr_empty(const Expr *e)
{
    for (uint32_t i = 0; i < e->type->n; i++)
        if (e->type->dims[i]->hi == 0)
            return true;
    return false;
}

bool expr_single(const Expr *e)
{
    int64_t n;

    return type_elems(e->type, &n) && n == 1;
}

uint32_t expr_rank(const Expr *e)
{
    return e->type->n;
}

DType expr_dtype(const Expr *e)
{
    return e->type->dtype;
}

const Idx *expr_form(const Expr *e, uint32_t i)
{
    return e->type->dims[i];
}

Dims expr_forms(const Expr *e)
{
    return (Dims){e->type->n, e->type->dims};
}

bool expr_has_forms(const Expr *e, uint32_t n, const Idx *const *dims)
{
    bool same = expr_rank(e) == n;

    for (uint32_t i = 0; i < n && same; i++)
        same = expr_form(e, i) == dims[i];
    return same;
}

static int64_t no_number(const Build *b, const Idx *x, const char *what)
{
    error_at(b->c, E_DIM, b->loc, "%s '%s': %s of an operand has to be a number, not %s",
             b->what ? b->what : "node", b->loc.name ? b->loc.name : "", what, dim_text(b->c, x));
    diag_hint(b->c->diags, "give a value instead of bounds: --dim <name>=<number>");
    return 1;
}

int64_t build_dim(const Build *b, const Expr *e, uint32_t i)
{
    int64_t v;

    if (type_dim(e->type, i, &v))
        return v;
    return no_number(b, e->type->dims[i], arena_printf(b->c->arena, "dimension %u", i));
}

Ints build_dims(const Build *b, const Expr *e)
{
    int64_t *d = NEW_ARRAY(b->c->arena, int64_t, e->type->n + 1);

    for (uint32_t i = 0; i < e->type->n; i++)
        d[i] = build_dim(b, e, i);
    return (Ints){e->type->n, d};
}

int64_t build_elems(const Build *b, const Expr *e)
{
    int64_t n = 0;

    if (!type_elems(e->type, &n) && !type_static(e->type))
        return no_number(b, type_cells(b->c, e->type), "the number of cells");
    return n;
}

/* ---- builders --------------------------------------------------------------------------------- */

/* Numbers beside a tensor of f32 or fewer bits are f32, as kernels take them: files that write them
 * with other digits have the same call. */
static const void *as_floats(const Build *b, const char *name, const Expr *x, const void *attrs)
{
    const Op   *op = attrs ? op_find(b->c, name) : NULL;
    const Type *t = x->type;
    char       *copy = NULL;

    if (!op || !op->attrs || !t || t->kind != TYPE_TENSOR || !dtype_is_float(t->dtype) ||
        t->dtype.bits > 32)
        return attrs;
    for (uint32_t i = 0; i < op->attrs->nfields; i++) {
        const AttrField *f = &op->attrs->fields[i];
        double           v;

        if (f->type != ATTR_FLOAT)
            continue;
        v = *(const double *)((const char *)attrs + f->offset);
        if (v == (float)v || v != v)
            continue;
        if (!copy)
            copy = arena_dup(b->c->arena, attrs, op->attrs->size);
        *(double *)(copy + f->offset) = (float)v;
    }
    return copy ? copy : attrs;
}

const Expr *build_call(const Build *b, const char *op, uint32_t n, const Expr *const *args,
                       const void *attrs)
{
    for (uint32_t i = 0; i < n; i++)
        if (!args[i])
            return NULL;
    if (n)
        attrs = as_floats(b, op, args[0], attrs);
    return expr_call_name(b->c, op, n, args, attrs, b->loc);
}

const Expr *build1(const Build *b, const char *op, const Expr *x, const void *attrs)
{
    return build_call(b, op, 1, &x, attrs);
}

const Expr *build2(const Build *b, const char *op, const Expr *x, const Expr *y, const void *attrs)
{
    return build_call(b, op, 2, (const Expr *[]){x, y}, attrs);
}

const Expr *build3(const Build *b, const char *op, const Expr *x, const Expr *y, const Expr *z,
                   const void *attrs)
{
    return build_call(b, op, 3, (const Expr *[]){x, y, z}, attrs);
}

const Expr *build_add(const Build *b, const Expr *x, const Expr *y)
{
    return build2(b, "add", x, y, NULL);
}

const Expr *build_sub(const Build *b, const Expr *x, const Expr *y)
{
    return build2(b, "subtract", x, y, NULL);
}

const Expr *build_mul(const Build *b, const Expr *x, const Expr *y)
{
    return build2(b, "multiply", x, y, NULL);
}

const Expr *build_div(const Build *b, const Expr *x, const Expr *y)
{
    return build2(b, "divide", x, y, NULL);
}

const Expr *build_less(const Build *b, const Expr *x, const Expr *y)
{
    return build2(b, "less", x, y, NULL);
}

const Expr *build_where(const Build *b, const Expr *cond, const Expr *x, const Expr *y)
{
    return build3(b, "where", cond, x, y, NULL);
}

const Expr *build_clip(const Build *b, const Expr *x, double lo, double hi)
{
    ClipAttrs *a = NEW_ATTRS(b->c, ClipAttrs);

    a->a_min = lo;
    a->a_max = hi;
    return build1(b, "clip", x, a);
}

const Expr *build_by(const Build *b, const char *op, const Expr *x, double v)
{
    return build2(b, op, x, build_scalar(b, x, v), NULL);
}

const Expr *build_arange(const Build *b, const Idx *n, DType t)
{
    ArangeAttrs *a = NEW_ATTRS(b->c, ArangeAttrs);

    a->cells = dims_dup(b->c, &n, 1);
    a->dtype = t;
    return build_call(b, "arange", 0, NULL, a);
}

const Expr *build_proj(const Build *b, const Expr *tuple, uint32_t i)
{
    return tuple ? expr_proj(b->c, tuple, i, b->loc) : NULL;
}

const Expr *build_scalar(const Build *b, const Expr *like, double v)
{
    return like ? expr_scalar(b->c, expr_dtype(like), v) : NULL;
}

#define MAX_MADE ((int64_t)1 << 28) /* bytes of a constant that an import makes up */

const Expr *build_f64(const Build *b, double v)
{
    return build_const(b, DT_F64, 0, NULL, &v);
}

const Expr *build_const(const Build *b, DType t, uint32_t ndim, const int64_t *dims,
                        const void *data)
{
    const Type *type = type_tensor_i64(b->c, t, ndim, dims);
    int64_t     n = 1, bytes;
    void       *copy;

    if (!type_elems(type, &n) || !checked_mul(n, (int64_t)dtype_bytes(t), &bytes) ||
        bytes > MAX_MADE)
        return error_at(b->c, E_IMPORT, b->loc, "a constant is too large");
    copy = arena_alloc(b->c->arena, bytes ? (size_t)bytes : 1);
    if (data && bytes)
        memcpy(copy, data, (size_t)bytes);
    return expr_const(b->c, const_new(b->c, NULL, type, (Bytes){copy, (size_t)bytes}), b->loc);
}

const Expr *build_zeros(const Build *b, DType t, uint32_t ndim, const int64_t *dims)
{
    return build_const(b, t, ndim, dims, NULL);
}

const Expr *build_zeros_of(const Build *b, DType t, uint32_t n, const Idx *const *dims)
{
    const Type *type = type_tensor(b->c, t, n, dims);
    InitAttrs  *a = NEW_ATTRS(b->c, InitAttrs);
    int64_t     at[MAX_RANK];

    for (uint32_t i = 0; i < n && i < MAX_RANK; i++)
        type_dim(type, i, &at[i]);
    if (type_static(type))
        return build_zeros(b, t, n, at);
    a->shape = dims_dup(b->c, dims, n);
    a->dtype = t;
    return build_call(b, "zeros", 0, NULL, a);
}

const Expr *build_i64s(const Build *b, uint32_t n, const int64_t *v)
{
    return build_const(b, DT_I64, 1, (int64_t[]){n}, v);
}

const Expr *build_cast(const Build *b, const Expr *x, DType t)
{
    CastAttrs *a;

    if (!x || dtype_eq(expr_dtype(x), t))
        return x;
    a = NEW_ATTRS(b->c, CastAttrs);
    a->dtype = t;
    return build1(b, "cast", x, a);
}

const Expr *build_reshape_to(const Build *b, const Expr *x, uint32_t n, const Idx *const *dims)
{
    ReshapeAttrs *a;

    if (!x || expr_has_forms(x, n, dims))
        return x;
    if (expr_empty(x)) /* a dimension of 0 would say "as it was" */
        return build_zeros_of(b, expr_dtype(x), n, dims);
    a = NEW_ATTRS(b->c, ReshapeAttrs);
    a->newshape = dims_dup(b->c, dims, n);
    return build1(b, "reshape", x, a);
}

const Expr *build_reshape(const Build *b, const Expr *x, uint32_t n, const int64_t *dims)
{
    return build_reshape_to(b, x, n, dims_of_i64(b->c, dims, n).at);
}

const Expr *build_matrix(const Build *b, const Expr *x, uint32_t axis)
{
    const Idx *dims[2];

    dims[0] = dims[1] = idx_const(b->c->arith, 1);
    for (uint32_t i = 0; i < expr_rank(x); i++)
        dims[i >= axis] = idx_mul(b->c->arith, dims[i >= axis], expr_form(x, i));
    return build_reshape_to(b, x, 2, dims);
}

const Expr *build_transpose(const Build *b, const Expr *x, uint32_t n, const int64_t *axes)
{
    TransposeAttrs *a = NEW_ATTRS(b->c, TransposeAttrs);
    bool            moves = false;

    for (uint32_t i = 0; i < n; i++)
        moves |= axes[i] != i;
    if (!x || !moves)
        return x;
    a->axes = ints_dup(b->c, axes, n);
    return build1(b, "transpose", x, a);
}

const Expr *build_expand_dims(const Build *b, const Expr *x, int64_t axis, int64_t count)
{
    ExpandDimsAttrs *a = NEW_ATTRS(b->c, ExpandDimsAttrs);

    if (count == 0)
        return x;
    a->axis = axis;
    a->num_newaxis = count;
    return build1(b, "expand_dims", x, a);
}

const Expr *build_broadcast_to(const Build *b, const Expr *x, uint32_t n, const Idx *const *dims)
{
    BroadcastToAttrs *a = NEW_ATTRS(b->c, BroadcastToAttrs);

    if (!x || expr_has_forms(x, n, dims))
        return x;
    a->shape = dims_dup(b->c, dims, n);
    return build1(b, "broadcast_to", x, a);
}

const Expr *build_broadcast(const Build *b, const Expr *x, uint32_t n, const int64_t *dims)
{
    return build_broadcast_to(b, x, n, dims_of_i64(b->c, dims, n).at);
}

const Expr *build_concat(const Build *b, uint32_t n, const Expr *const *xs, int64_t axis)
{
    ConcatenateAttrs *a = NEW_ATTRS(b->c, ConcatenateAttrs);

    for (uint32_t i = 0; i < n; i++)
        if (!xs[i])
            return NULL;
    if (n == 1)
        return xs[0];
    a->axis = axis;
    return build1(b, "concatenate", expr_tuple(b->c, n, xs, b->loc), a);
}

const Expr *build_slice_to(const Build *b, const Expr *x, int64_t axis, const Idx *begin,
                           const Idx *end)
{
    StridedSliceAttrs *a = NEW_ATTRS(b->c, StridedSliceAttrs);

    a->begin = dims_dup(b->c, &begin, 1);
    a->end = dims_dup(b->c, &end, 1);
    a->axes = ints_dup(b->c, &axis, 1);
    return build1(b, "strided_slice", x, a);
}

const Expr *build_slice(const Build *b, const Expr *x, int64_t axis, int64_t begin, int64_t end)
{
    return build_slice_to(b, x, axis, idx_const(b->c->arith, begin), idx_const(b->c->arith, end));
}

const Expr *build_column(const Build *b, const Expr *x, int64_t i)
{
    return x ? build_slice(b, x, (int64_t)expr_rank(x) - 1, i, i + 1) : NULL;
}

const Expr *build_take(const Build *b, const Expr *x, const Expr *indices, int64_t axis)
{
    TakeAttrs *a = NEW_ATTRS(b->c, TakeAttrs);

    a->axis = axis;
    return build2(b, "take", x, indices, a);
}

const Expr *build_reduce(const Build *b, const char *op, const Expr *x, uint32_t n,
                         const int64_t *axes, bool keepdims)
{
    ReduceAttrs *a = NEW_ATTRS(b->c, ReduceAttrs);

    a->axis = ints_dup(b->c, axes, n);
    a->keepdims = keepdims;
    return build1(b, op, x, a);
}

const Expr *build_pad(const Build *b, const Expr *x, const int64_t *pads, double value,
                      const char *mode)
{
    PadAttrs *a = NEW_ATTRS(b->c, PadAttrs);
    bool      any = false;

    if (!x)
        return NULL;
    for (uint32_t i = 0; i < 2 * expr_rank(x); i++)
        any |= pads[i] != 0;
    if (!any)
        return x;
    a->pad_width = ints_dup(b->c, pads, 2 * expr_rank(x));
    a->pad_value = value;
    if (mode)
        a->pad_mode = mode;
    return build1(b, "nn.pad", x, a);
}

const Expr *build_along(const Build *b, const Expr *x, uint32_t rank, uint32_t axis)
{
    const Idx *dims[MAX_RANK], *one = idx_const(b->c->arith, 1);

    if (!x || type_cells(b->c, x->type) == one)
        return x ? build_reshape(b, x, 0, NULL) : NULL;
    dims[0] = type_cells(b->c, x->type);
    for (uint32_t i = 1; i < rank - axis; i++)
        dims[i] = one;
    return build_reshape_to(b, x, rank - axis, dims);
}

/* ---- folding ---------------------------------------------------------------------------------- */

#define FOLD_BYTES 65536 /* of operands and result */
#define FOLD_NODES 256

/* It is made of at most so many nodes.  No more are looked at: what is asked of each node of a
 * model takes as long in a large one. */
static bool is_small(Ctx *c, const Expr *e, uint32_t most)
{
    Map     *seen = map_new(c->scratch);
    uint32_t n = 1;
    VEC(const Expr *) todo = {0};

    vec_push(c->scratch, &todo, e);
    while (todo.n) {
        const Expr *x = todo.at[--todo.n];

        for (uint32_t i = 0; i < x->nkids; i++) {
            if (map_get(seen, PTR_KEY(x->kids[i])))
                continue;
            if (n++ == most)
                return false;
            map_put(seen, PTR_KEY(x->kids[i]), seen);
            vec_push(c->scratch, &todo, x->kids[i]);
        }
    }
    return true;
}

const Expr *build_fold(const Build *b, const Expr *e)
{
    Ctx        *c = b->c;
    uint32_t    before = diag_errors(c->diags);
    ExprList    list;
    int64_t     n = 0, bytes = 0;
    const Expr *v;

    if (!expr_is_tensor(e) || e->kind == EXPR_CONST)
        return expr_is_tensor(e) ? e : NULL;
    if (!type_elems(e->type, &n) || n > FOLD_BYTES / dtype_bytes(e->type->dtype))
        return NULL;
    if (!is_small(c, e, FOLD_NODES))
        return NULL;
    list = expr_post_order(c, e);
    for (uint32_t i = 0; i < list.n; i++) {
        const Expr *k = list.at[i];

        if (k->kind == EXPR_CONST)
            bytes += (int64_t)k->u.constant->data.n;
        else if (k->kind != EXPR_CALL && k->kind != EXPR_OP && k->kind != EXPR_TUPLE &&
                 k->kind != EXPR_PROJ)
            return NULL;
        else if (call_op(k) && !attrs_static(call_op(k)->attrs, k->u.attrs))
            return NULL;
        else if (expr_is_tensor(k) &&
                 (!type_elems(k->type, &n) || n > FOLD_BYTES / dtype_bytes(k->type->dtype)))
            return NULL; /* a step on the way may be far larger than what it comes to */
    }
    if (bytes > FOLD_BYTES)
        return NULL;
    v = c->eval->eval(c->eval, c, e);
    if (diag_errors(c->diags) != before)
        diag_drop(c->diags, before);
    return v && v->kind == EXPR_CONST ? v : NULL;
}
