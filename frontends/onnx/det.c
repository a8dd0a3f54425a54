/* Det: determinants of [.., M, M] by elimination, written out for the M columns.
 *
 * Of what is left of a matrix, the row with the largest first cell is taken out; the first row goes
 * to its place, the others lose their multiple of it, and all lose their first column. */
#include "frontends/onnx/onnx.h"

#define MAX_ORDER 64

/* A, m x m, without its row p and its first column; row is row p. */
static const Expr *eliminated(const Build *b, const Expr *A, const Expr *row, const Expr *p,
                              const Expr *pivot, int64_t m)
{
    int64_t    *at = NEW_ARRAY(b->c->arena, int64_t, (size_t)m);
    const Expr *first = build_slice(b, A, 1, 0, 1), *below = build_slice(b, A, 1, 1, m), *times;

    for (int64_t i = 1; i < m; i++)
        at[i - 1] = i;
    below = build_where(
        b, build2(b, "equal", p, build_const(b, DT_I64, 3, (int64_t[]){1, m - 1, 1}, at), NULL),
        first, below);
    /* Under a pivot of 0 are only zeros. */
    pivot = build_where(b, build2(b, "equal", pivot, build_scalar(b, A, 0), NULL),
                        build_scalar(b, A, 1), pivot);
    times = build2(b, "divide", build_slice(b, below, 2, 0, 1), pivot, NULL);
    return build2(b, "subtract", build_slice(b, below, 2, 1, m),
                  build2(b, "multiply", times, build_slice(b, row, 2, 1, m), NULL), NULL);
}

bool convert_det(Node *n)
{
    const Build    *b = &n->b;
    const Expr     *A, *det = NULL;
    uint32_t        rank;
    int64_t         M, N;
    DType           t;
    Ints            d;
    TakeAttrs      *take = ATTRS(b, TakeAttrs);
    ArgReduceAttrs *top = ATTRS(b, ArgReduceAttrs);

    if (!node_need_rank(n, 0, 2, MAX_RANK))
        return false;
    A = n->in[0];
    rank = expr_rank(A);
    d = build_dims(b, A);
    M = d.at[rank - 1];
    if (M < 1 || d.at[rank - 2] != M)
        return node_error(n, E_IMPORT, "matrices of %lld x %lld", (long long)d.at[rank - 2],
                          (long long)M);
    if (M > MAX_ORDER)
        return node_error(n, E_UNSUPPORTED, "matrices of more than %d rows", MAX_ORDER);
    if (expr_empty(A))
        return node_done(n, build_zeros(b, expr_dtype(A), rank - 2, d.at));
    t = expr_dtype(A);
    N = build_elems(b, A) / (M * M);
    A = build_reshape(b, build_cast(b, A, dtype_eq(t, DT_F64) ? t : DT_F32), 3,
                      (int64_t[]){N, M, M});
    take->axis = take->batch_dims = 1;
    top->axis = 1;
    top->keepdims = true;
    top->dtype = DT_I64;
    for (int64_t m = M; A && m > 0; m--) {
        const Expr *p, *row, *pivot;

        p = build1(b, "argmax", build1(b, "abs", build_slice(b, A, 2, 0, 1), NULL),
                   top); /* [N, 1, 1] */
        row = build2(b, "take", A, build_reshape(b, p, 2, (int64_t[]){N, 1}), take);
        pivot = build_slice(b, row, 2, 0, 1);
        det = det ? build2(b, "multiply", det, pivot, NULL) : pivot;
        if (m == 1 || !det)
            break;
        /* Two rows changed places. */
        det = build_where(b, build2(b, "equal", p, build_zeros(b, DT_I64, 0, NULL), NULL), det,
                          build1(b, "negative", det, NULL));
        A = eliminated(b, A, row, p, pivot, m);
    }
    return node_done(n, build_cast(b, build_reshape(b, det, rank - 2, d.at), t));
}
