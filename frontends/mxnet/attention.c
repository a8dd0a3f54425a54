/* Attention, of heads that lie side by side: queries, keys and values of a head one after another.
 */
#include "frontends/mxnet/mxnet.h"

#include <math.h>

bool mx_div_sqrt_dim(MxNode *n)
{
    uint32_t rank = expr_rank(n->in[0]);

    return mx_rank(n, 0, 1, MAX_RANK) &&
           mx_done(n, build_by(&n->b, "multiply", n->in[0],
                               1 / sqrt((double)build_dim(&n->b, n->in[0], rank - 1))));
}

/* Part `i` of `of`, of x [T, N, heads * of * d]: [N * heads, T, d]. */
static const Expr *head(MxNode *n, const Expr *x, int64_t i, int64_t of)
{
    const Build *b = &n->b;
    int64_t      heads = mx_int(n, "heads"), cells;
    Arith       *A = b->c->arith;
    const Idx   *T, *N, *d;

    if (expr_rank(x) != 3)
        return mx_error(n, E_IMPORT, "an operand of %u dimensions", expr_rank(x));
    cells = build_dim(b, x, 2);
    if (heads < 1 || heads > INT32_MAX || cells % (heads * of))
        return mx_error(n, E_IMPORT, "%lld heads of %lld cells", (long long)heads,
                        (long long)cells);
    T = expr_form(x, 0), N = expr_form(x, 1), d = idx_const(A, cells / (heads * of));
    x = build_reshape_to(b, x, 5, (const Idx *[]){T, N, idx_const(A, heads), idx_const(A, of), d});
    x = build_transpose(b, build_slice(b, x, 3, i, i + 1), 5, (int64_t[]){1, 2, 0, 3, 4});
    return x ? build_reshape_to(b, x, 3, (const Idx *[]){idx_mulc(A, N, heads), T, d}) : NULL;
}

static bool scores(MxNode *n, const Expr *q, const Expr *k)
{
    const Build *b = &n->b;
    const Expr  *y;

    if (!q || !k)
        return false;
    q = build_by(b, "multiply", q, 1 / sqrt((double)build_dim(b, q, 2)));
    y = build2(b, "nn.batch_matmul", q, k, NULL);
    return mx_done(n, y);
}

bool mx_selfatt_qk(MxNode *n)
{
    return scores(n, head(n, n->in[0], 0, 3), head(n, n->in[0], 1, 3));
}

bool mx_encdec_qk(MxNode *n)
{
    return scores(n, head(n, n->in[0], 0, 1), head(n, n->in[1], 0, 2));
}

/* Weights [N * heads, T, T'] by values [N * heads, T', d], as [T, N, heads * d]. */
static bool weighted(MxNode *n, const Expr *v)
{
    const Build      *b = &n->b;
    BatchMatmulAttrs *a = ATTRS(b, BatchMatmulAttrs);
    Arith            *A = b->c->arith;
    int64_t           heads = mx_int(n, "heads"), d;
    const Expr       *y;
    const Idx        *N = expr_form(n->in[0], 1), *T;

    if (!v || !mx_rank(n, 1, 3, 3))
        return false;
    a->transpose_b = false;
    d = build_dim(b, v, 2);
    T = expr_form(n->in[1], 1);
    y = build2(b, "nn.batch_matmul", n->in[1], v, a);
    y = build_reshape_to(b, y, 4, (const Idx *[]){N, idx_const(A, heads), T, idx_const(A, d)});
    y = build_transpose(b, y, 4, (int64_t[]){2, 0, 1, 3});
    return mx_done(n, y ? build_reshape_to(b, y, 3, (const Idx *[]){T, N, idx_const(A, heads * d)})
                        : NULL);
}

bool mx_selfatt_valatt(MxNode *n)
{
    return weighted(n, head(n, n->in[0], 2, 3));
}

bool mx_encdec_valatt(MxNode *n)
{
    return weighted(n, head(n, n->in[0], 1, 2));
}
