/* Attention: softmax(Q K' scale + mask) V. */
#include "frontends/pytorch/pytorch.h"

#include <math.h>
#include <string.h>

/* [.., H, S, D] with each head `times` times in a row. */
static const Expr *repeated(PtNode *n, const Expr *x, int64_t heads)
{
    RepeatAttrs *a = ATTRS(&n->b, RepeatAttrs);
    uint32_t     rank = expr_rank(x);
    int64_t      have = build_dim(&n->b, x, rank - 3);

    if (have == heads)
        return x;
    if (have < 1 || heads % have)
        return pt_error(n, E_IMPORT, "%lld heads of queries, %lld of keys", (long long)heads,
                        (long long)have);
    a->repeats = heads / have;
    a->axis = rank - 3;
    return build1(&n->b, "repeat", x, a);
}

/* 0 where the key is not behind the query, else -inf. */
static const Expr *causal(const Build *b, DType t, const Idx *S, const Idx *T)
{
    const Expr *q = build_expand_dims(b, build_arange(b, S, DT_I64), 1, 1);
    const Expr *seen = build2(b, "less_equal", build_arange(b, T, DT_I64), q, NULL);

    return build_where(b, seen, expr_scalar(b->c, t, 0), expr_scalar(b->c, t, -INFINITY));
}

/* Rows of which no key is seen are NaN in the softmax; PyTorch makes zeros of them. */
static const Expr *without_nan(const Build *b, const Expr *s)
{
    return build_where(b, build1(b, "isnan", s, NULL), build_scalar(b, s, 0), s);
}

bool aten_attention(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *q = pt_tensor(n, "query"), *k = q ? pt_tensor(n, "key") : NULL;
    const Expr  *v = k ? pt_tensor(n, "value") : NULL, *mask, *s;
    int64_t      axes[MAX_RANK];
    uint32_t     rank;
    double       scale;
    DType        t;
    bool         guard = false;

    if (!v || !pt_maybe(n, "attn_mask", &mask))
        return false;
    if (pt_float(n, "dropout_p", 0) != 0)
        return pt_error(n, E_UNSUPPORTED, "dropout_p is not 0");
    rank = expr_rank(q);
    t = expr_dtype(q);
    if (rank < 2 || expr_rank(k) != rank || expr_rank(v) != rank)
        return pt_error(n, E_IMPORT, "queries, keys and values have different ranks");
    scale = pt_float(n, "scale", 1 / sqrt((double)build_dim(b, q, rank - 1)));
    if (pt_bool(n, "enable_gqa", false) && rank > 2) {
        int64_t heads = build_dim(b, q, rank - 3);

        if (!(k = repeated(n, k, heads)) || !(v = repeated(n, v, heads)))
            return false;
    }
    for (uint32_t i = 0; i < rank; i++)
        axes[i] = i + 2 == rank ? i + 1 : i + 1 == rank ? i - 1 : i;
    s = pt_matmul(n, build_by(b, "multiply", q, scale), build_transpose(b, k, rank, axes));
    if (!s)
        return false;
    if (mask && dtype_is_bool(expr_dtype(mask))) {
        guard = true;
        mask = build_where(b, mask, expr_scalar(b->c, t, 0), expr_scalar(b->c, t, -INFINITY));
    }
    if (mask)
        s = build_add(b, s, build_cast(b, mask, t));
    if (pt_bool(n, "is_causal", false))
        s = build_add(b, s, causal(b, t, expr_form(q, rank - 2), expr_form(k, rank - 2)));
    s = pt_softmax(n, "nn.softmax", s, -1);
    if (guard)
        s = without_nan(b, s);
    return pt_done(n, pt_matmul(n, s, v));
}
