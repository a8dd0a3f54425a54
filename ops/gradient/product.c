/* Adjoints of products of matrices: for y = a b they are da = dy b^T and db = a^T dy, whichever of
 * them is stored transposed. */
#include "ops/gradient/gradient.h"

static const Expr *matmul(const Adjoint *a, const char *op, const Expr *x, const Expr *y, bool tx,
                          bool ty)
{
    if (op_find(a->b->c, op)->id == OP_NN_MATMUL) {
        MatmulAttrs *attrs = NEW_ATTRS(a->b->c, MatmulAttrs);

        attrs->transpose_a = tx;
        attrs->transpose_b = ty;
        return build2(a->b, op, x, y, attrs);
    }
    BatchMatmulAttrs *attrs = NEW_ATTRS(a->b->c, BatchMatmulAttrs);

    attrs->transpose_a = tx;
    attrs->transpose_b = ty;
    return build2(a->b, op, x, y, attrs);
}

static void product(const Adjoint *a, const char *op, bool tx, bool ty)
{
    const Expr *x = a->x[0], *y = a->x[1], *dy = a->dy[0];

    a->dx[0] = tx ? matmul(a, op, y, dy, ty, true) : matmul(a, op, dy, y, false, !ty);
    a->dx[1] = ty ? matmul(a, op, dy, x, true, tx) : matmul(a, op, x, dy, !tx, false);
}

void adjoint_matmul(const Adjoint *a)
{
    const MatmulAttrs *attrs = ATTRS(MatmulAttrs, a->call);

    product(a, "nn.matmul", attrs->transpose_a, attrs->transpose_b);
}

void adjoint_batch_matmul(const Adjoint *a)
{
    const BatchMatmulAttrs *attrs = ATTRS(BatchMatmulAttrs, a->call);

    product(a, "nn.batch_matmul", attrs->transpose_a, attrs->transpose_b);
}

/* All dimensions but the last as rows. */
static const Expr *rows(const Adjoint *a, const Expr *x)
{
    const Idx *dims[2];
    uint32_t   n = x->type->n;

    dims[0] = idx_const(a->b->c->arith, 1);
    for (uint32_t i = 0; i + 1 < n; i++)
        dims[0] = idx_mul(a->b->c->arith, dims[0], x->type->dims[i]);
    dims[1] = x->type->dims[n - 1];
    return build_reshape_to(a->b, x, 2, dims);
}

/* The weight is [units, k]. */
void adjoint_dense(const Adjoint *a)
{
    const Expr *dy = rows(a, a->dy[0]);

    a->dx[0] = grad_like(a->b, matmul(a, "nn.matmul", dy, a->x[1], false, false), a->x[0]);
    a->dx[1] = matmul(a, "nn.matmul", dy, rows(a, a->x[0]), true, false);
}
