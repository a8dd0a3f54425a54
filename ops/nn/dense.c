/* Matrix products: nn.dense, nn.matmul, nn.batch_matmul.          %2 = nn.dense(%0, %1);
 *
 *     %dense[m, n] = sum[k] %x[m, k] * %w[n, k]
 *
 * All three make the definition "dense" with axes m, n and k; leading dimensions come before them
 * as b, b1, ..  nn.dense takes weights [units, k] as they are stored; the packing is a schedule
 * step.  Data [n, k] that are no weights have to be turned in every run: with algorithm="panel"
 * they are read through a copy %panel[k, n], which schedules lay out, or inline. */
#include "ops/common.h"

#include <string.h>

/* A product's element type: 8-bit integers, and 16-bit ones times these, are summed in i32. */
static bool product_dtype(Ctx *c, Loc loc, const char *text, const Type *const *in, DType *t)
{
    *t = in[0]->dtype;
    if (!rel_number(c, loc, in[0]) || !rel_number(c, loc, in[1]))
        return false;
    if (dtype_is_int(*t) &&
        (t->bits == 8 || (t->bits == 16 && dtype_is_int(in[1]->dtype) && in[1]->dtype.bits == 8)))
        *t = DT_I32;
    else if (!rel_same_dtype(c, loc, in[0], in[1]))
        return false;
    return rel_dtype(c, loc, text, *t, t);
}

static bool known_algorithm(Ctx *c, Loc loc, const char *algorithm)
{
    if (!strcmp(algorithm, "direct") || !strcmp(algorithm, "panel"))
        return true;
    return error_at(c, E_TYPE, loc, "algorithm '%s' of a product is not direct or panel",
                    algorithm);
}

/* ---- nn.dense
 * ------------------------------------------------------------------------------------ */

const Type *rel_dense(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const DenseAttrs *a = attrs;
    const Idx        *dims[TE_MAX_AXES];
    int64_t           units;
    DType             t;

    if (!rel_tensors(c, loc, in, nin) || !rel_rank(c, loc, in[1], 2, "weight") ||
        !product_dtype(c, loc, a->out_dtype, in, &t) || !known_algorithm(c, loc, a->algorithm))
        return NULL;
    if (!in[0]->n)
        return error_at(c, E_TYPE, loc, "the data of a matrix product are a scalar");
    if (!rel_dims_equal(c, loc, in[0]->dims[in[0]->n - 1], in[1]->dims[1],
                        "columns of data and weight"))
        return NULL;
    if (a->units && (!rel_dim(c, loc, in[1], 0, &units) || units != a->units))
        return error_at(c, E_TYPE, loc, "units is %lld, the weight is %s", (long long)a->units,
                        type_text(c, in[1]));
    if (in[0]->n > TE_MAX_AXES)
        return error_at(c, E_TYPE, loc, "a tensor of %u dimensions", in[0]->n);
    for (uint32_t i = 0; i + 1 < in[0]->n; i++)
        dims[i] = in[0]->dims[i];
    dims[in[0]->n - 1] = in[1]->dims[0];
    return rel_tensor(c, loc, t, in[0]->n, dims);
}

/* Axes b, b1, .., m, n. */
static Axes product_axes(Ctx *c, const Type *t)
{
    static const char *const batch[] = {"b", "b1", "b2", "b3", "b4", "b5", "b6"};
    const char              *names[TE_MAX_AXES];

    for (uint32_t i = 0; i < t->n; i++)
        names[i] = i + 1 == t->n ? "n" : i + 2 == t->n ? "m" : batch[i];
    return te_axes(c, t->n, t->dims, names);
}

static Axes product_k(Ctx *c, const Idx *extent)
{
    static const char *const names[] = {"k"};

    return te_axes(c, 1, &extent, names);
}

static bool product(Ctx *c, const OpCall *call, Axes a, Axes k, const Prim *x, const Prim *y,
                    const Tensor **out)
{
    DType t = call->out[0]->dtype;

    out[0] = te_reduce(c, "dense", t, a, COMB_SUM, k,
                       prim_mul(c, prim_cast(c, t, x), prim_cast(c, t, y)));
    return true;
}

/* A copy [.., k, n], of what lies as [.., n, k] if it is turned; NULL if y is read as it is. */
static const Tensor *panel_of(Ctx *c, const char *algorithm, const Tensor *y, bool turned)
{
    static const char *const batch[] = {"pb", "pb1", "pb2", "pb3", "pb4", "pb5", "pb6"};
    const char              *names[TE_MAX_AXES];
    const Idx               *dims[TE_MAX_AXES], *at[TE_MAX_AXES];
    const Buffer            *b = y->buffer;
    uint32_t                 n = b->ndim;

    if (strcmp(algorithm, "panel"))
        return NULL;
    for (uint32_t i = 0; i < n; i++)
        names[i] = batch[i], dims[i] = b->extent[i];
    names[n - 2] = "pk", dims[n - 2] = b->extent[turned ? n - 1 : n - 2];
    names[n - 1] = "pn", dims[n - 1] = b->extent[turned ? n - 2 : n - 1];
    Axes a = te_axes(c, n, dims, names);
    for (uint32_t i = 0; i < n; i++)
        at[i] = a.at[i];
    if (turned)
        at[n - 2] = a.at[n - 1], at[n - 1] = a.at[n - 2];
    return te_compute(c, "panel", b->dtype, a, te_at(c, y, at));
}

bool te_dense(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const DenseAttrs *attrs = call->attrs;
    Axes              a = product_axes(c, call->out[0]);
    Axes              k = product_k(c, call->in[1]->dims[1]);
    const Idx        *xat[TE_MAX_AXES], *wat[2] = {a.at[a.n - 1], k.at[0]};

    for (uint32_t i = 0; i + 1 < a.n; i++)
        xat[i] = a.at[i];
    xat[a.n - 1] = k.at[0];
    const Tensor *panel = panel_of(c, attrs->algorithm, in[1], true);
    const Idx    *pat[2] = {wat[1], wat[0]};
    return product(c, call, a, k, te_at(c, in[0], xat),
                   panel ? te_at(c, panel, pat) : te_at(c, in[1], wat), out);
}

/* ---- nn.matmul, nn.batch_matmul
 * -------------------------------------------------------------------- */

typedef struct {
    bool        ta, tb;
    const char *out_dtype, *algorithm;
} Product;

static const Idx *rows(const Type *t, bool transposed)
{
    return t->dims[t->n - (transposed ? 1 : 2)];
}

static const Idx *columns(const Type *t, bool transposed)
{
    return t->dims[t->n - (transposed ? 2 : 1)];
}

/* The type of the batch dimensions alone. */
static const Type *batch_of(Ctx *c, const Type *t)
{
    return type_tensor(c, t->dtype, t->n - 2, t->dims);
}

static const Type *rel_product(Ctx *c, Loc loc, Product p, const Type *const *in)
{
    const Idx *dims[TE_MAX_AXES + 2];
    uint32_t   n;
    DType      t;

    for (uint32_t i = 0; i < 2; i++)
        if (in[i]->n < 2)
            return error_at(c, E_TYPE, loc, "a matrix must have two dimensions, not %s",
                            type_text(c, in[i]));
    if (!product_dtype(c, loc, p.out_dtype, in, &t) || !known_algorithm(c, loc, p.algorithm) ||
        !rel_dims_equal(c, loc, columns(in[0], p.ta), rows(in[1], p.tb),
                        "columns of one matrix and rows of the other") ||
        !rel_bcast_dims(c, loc, batch_of(c, in[0]), batch_of(c, in[1]), &n, dims))
        return NULL;
    dims[n] = rows(in[0], p.ta);
    dims[n + 1] = columns(in[1], p.tb);
    return rel_tensor(c, loc, t, n + 2, dims);
}

/* A matrix's element (row, column) of the batch that the result's cell lies in. */
static const Prim *matrix_at(Ctx *c, const Tensor *x, const Axes *a, const Idx *row,
                             const Idx *column, bool transposed)
{
    const Idx *at[TE_MAX_AXES];

    for (uint32_t i = 0; i + 2 < a->n; i++)
        at[i] = a->at[i];
    at[a->n - 2] = transposed ? column : row;
    at[a->n - 1] = transposed ? row : column;
    return te_at_bcast(c, x, a->n, at);
}

static bool te_product(Ctx *c, const OpCall *call, Product p, const Tensor *const *in,
                       const Tensor **out)
{
    Axes          a = product_axes(c, call->out[0]);
    Axes          k = product_k(c, columns(call->in[0], p.ta));
    const Tensor *panel = panel_of(c, p.algorithm, in[1], p.tb);
    const Prim   *x = matrix_at(c, in[0], &a, a.at[a.n - 2], k.at[0], p.ta);
    const Prim *y = matrix_at(c, panel ? panel : in[1], &a, k.at[0], a.at[a.n - 1], p.tb && !panel);

    return product(c, call, a, k, x, y, out);
}

static Product matmul_of(const MatmulAttrs *a)
{
    return (Product){a->transpose_a, a->transpose_b, a->out_dtype, a->algorithm};
}

const Type *rel_matmul(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    if (!rel_tensors(c, loc, in, nin) || !rel_rank(c, loc, in[0], 2, "first matrix") ||
        !rel_rank(c, loc, in[1], 2, "second matrix"))
        return NULL;
    return rel_product(c, loc, matmul_of(attrs), in);
}

bool te_matmul(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return te_product(c, call, matmul_of(call->attrs), in, out);
}

static Product batch_matmul_of(const BatchMatmulAttrs *a)
{
    return (Product){a->transpose_a, a->transpose_b, a->out_dtype, a->algorithm};
}

const Type *rel_batch_matmul(Ctx *c, Loc loc, const void *attrs, const Type *const *in,
                             uint32_t nin)
{
    return rel_tensors(c, loc, in, nin) ? rel_product(c, loc, batch_matmul_of(attrs), in) : NULL;
}

bool te_batch_matmul(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return te_product(c, call, batch_matmul_of(call->attrs), in, out);
}
