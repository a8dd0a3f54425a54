/* Cells in another shape, and blocks of pixels that become channels or batches. */
#include "frontends/calls.h"

#include <string.h>

/* x in a shape that may have one -1; NULL with an error. */
const Expr *build_reshape_left(const Build *b, const Expr *x, Dims v)
{
    Arith     *A = b->c->arith;
    const Idx *dims[MAX_RANK], *known = idx_const(A, 1), *total = type_cells(b->c, x->type);
    uint32_t   left = UINT32_MAX;
    int64_t    d, most = 1;

    if (v.n > MAX_RANK)
        return build_error(b, E_UNSUPPORTED, "a shape of %u dimensions", v.n);
    for (uint32_t i = 0; i < v.n; i++) {
        dims[i] = v.at[i];
        if (idx_is_const(v.at[i], &d) && d == -1 && left == UINT32_MAX) {
            left = i;
            continue;
        }
        if (dims[i]->lo < 0 || !checked_mul(most, idx_usual(dims[i]), &most))
            return build_error(b, E_IMPORT, "dimension %u of the shape is %s", i,
                               dim_text(b->c, dims[i]));
        known = idx_mul(A, known, dims[i]);
    }
    if (left < v.n) {
        if (!(dims[left] = idx_div_exact(A, total, known)))
            return build_error(b, E_IMPORT, "%s cells do not fill a shape with -1 and %s else",
                               dim_text(b->c, total), dim_text(b->c, known));
        known = total;
    }
    if (known != total)
        return build_error(b, E_IMPORT, "%s cells do not fit a shape of %s", dim_text(b->c, total),
                           dim_text(b->c, known));
    return build_reshape_to(b, x, v.n, dims);
}

const Expr *build_squeeze(const Build *b, const Expr *x, uint32_t n, const int64_t *axes)
{
    const Idx *dims[MAX_RANK], *one = idx_const(b->c->arith, 1);
    bool       gone[MAX_RANK] = {false};
    uint32_t   k = 0;

    if (!x)
        return NULL;
    for (uint32_t i = 0; i < n; i++)
        gone[axes[i]] = true;
    for (uint32_t i = 0; i < expr_rank(x); i++) {
        const Idx *d = expr_form(x, i);

        if (gone[i] && d != one)
            return build_error(b, E_IMPORT, "dimension %u is %s, not 1", i, dim_text(b->c, d));
        if (n ? !gone[i] : d != one)
            dims[k++] = d;
    }
    return build_reshape_to(b, x, k, dims);
}

const Expr *build_permuted(const Build *b, const Expr *x, Ints axes)
{
    int64_t  at[MAX_RANK];
    uint32_t rank = expr_rank(x), count;

    if (axes.n != rank)
        return build_error(b, E_IMPORT, "a permutation of %u numbers for %u dimensions", axes.n,
                           rank);
    if (!build_axes(b, axes, rank, 0, &count, at))
        return NULL;
    if (count != rank)
        return build_error(b, E_IMPORT, "a permutation that names a dimension twice");
    return build_transpose(b, x, rank, at);
}

static bool block_size(const Build *b, int64_t s)
{
    return (s > 0 && s < 65536) || build_error(b, E_IMPORT, "block_size is %lld", (long long)s);
}

/* x / s, of which there is no rest; NULL with an error. */
static const Idx *blocks(const Build *b, const Idx *x, int64_t s)
{
    const Idx *q = s > 0 ? idx_div_exact(b->c->arith, x, idx_const(b->c->arith, s)) : NULL;

    return q ? q
             : build_error(b, E_IMPORT, "%s cells do not divide into blocks of %lld",
                           dim_text(b->c, x), (long long)s);
}

const Expr *build_depth_to_space(const Build *b, const Expr *x, int64_t s)
{
    Arith     *A = b->c->arith;
    const Idx *N, *C, *H, *W, *k;

    if (!x || !block_size(b, s) || !(C = blocks(b, expr_form(x, 1), s * s)))
        return NULL;
    N = expr_form(x, 0), H = expr_form(x, 2), W = expr_form(x, 3), k = idx_const(A, s);
    x = build_transpose(b, build_reshape_to(b, x, 6, (const Idx *[]){N, k, k, C, H, W}), 6,
                        (int64_t[]){0, 3, 4, 1, 5, 2});
    return build_reshape_to(b, x, 4, (const Idx *[]){N, C, idx_mulc(A, H, s), idx_mulc(A, W, s)});
}

const Expr *build_space_to_depth(const Build *b, const Expr *x, int64_t s)
{
    Arith     *A = b->c->arith;
    const Idx *N, *C, *H, *W, *k;

    if (!x || !block_size(b, s) || !(H = blocks(b, expr_form(x, 2), s)) ||
        !(W = blocks(b, expr_form(x, 3), s)))
        return NULL;
    N = expr_form(x, 0), C = expr_form(x, 1), k = idx_const(A, s);
    x = build_transpose(b, build_reshape_to(b, x, 6, (const Idx *[]){N, C, H, k, W, k}), 6,
                        (int64_t[]){0, 3, 5, 1, 2, 4});
    return build_reshape_to(b, x, 4, (const Idx *[]){N, idx_mulc(A, C, s * s), H, W});
}

/* Block sizes of the dimensions behind the batch, and what is put around them or cut off. */
static bool check_blocks(const Build *b, const Expr *x, Ints size, Ints around)
{
    uint32_t rank = expr_rank(x);

    if (size.n == 0 || size.n >= rank || around.n != 2 * size.n || 2 * rank > MAX_RANK)
        return build_error(b, E_IMPORT, "blocks of %u dimensions for a tensor of %u", size.n, rank);
    for (uint32_t i = 0; i < size.n; i++)
        if (size.at[i] < 1 || size.at[i] > INT32_MAX || around.at[2 * i] < 0 ||
            around.at[2 * i + 1] < 0 || around.at[2 * i] > INT32_MAX ||
            around.at[2 * i + 1] > INT32_MAX)
            return build_error(b, E_IMPORT, "a block of %lld cells", (long long)size.at[i]);
    return true;
}

/* [N, H, W, ..] -> [N, H/h, h, W/w, w, ..] -> [h, w, N, H/h, W/w, ..] -> [h*w*N, H/h, W/w, ..] */
const Expr *build_space_to_batch(const Build *b, const Expr *x, Ints size, Ints around)
{
    Arith     *A = b->c->arith;
    int64_t    pads[2 * MAX_RANK] = {0}, axes[MAX_RANK];
    const Idx *split[MAX_RANK], *dims[MAX_RANK];
    uint32_t   rank = expr_rank(x), m, k = 0;

    if (!check_blocks(b, x, size, around))
        return NULL;
    m = size.n;
    memcpy(pads + 2, around.at, 2 * m * sizeof *pads);
    if (!(x = build_pad(b, x, pads, 0, "constant")))
        return NULL;
    dims[0] = split[k++] = expr_form(x, 0);
    for (uint32_t i = 1; i < rank; i++) {
        dims[i] = expr_form(x, i);
        if (i <= m) {
            if (!(dims[i] = blocks(b, dims[i], size.at[i - 1])))
                return NULL;
            dims[0] = idx_mulc(A, dims[0], size.at[i - 1]);
        }
        split[k++] = dims[i];
        if (i <= m)
            split[k++] = idx_const(A, size.at[i - 1]);
    }
    for (uint32_t i = 0; i < m; i++) {
        axes[i] = 2 + 2 * i;
        axes[m + 1 + i] = 1 + 2 * i;
    }
    axes[m] = 0;
    for (uint32_t i = 2 * m + 1; i < k; i++)
        axes[i] = i;
    x = build_transpose(b, build_reshape_to(b, x, k, split), k, axes);
    return build_reshape_to(b, x, rank, dims);
}

/* The way back. */
const Expr *build_batch_to_space(const Build *b, const Expr *x, Ints size, Ints around)
{
    Arith     *A = b->c->arith;
    int64_t    axes[MAX_RANK], all = 1;
    const Idx *split[MAX_RANK], *dims[MAX_RANK];
    uint32_t   rank = expr_rank(x), m, k = 0;

    if (!check_blocks(b, x, size, around))
        return NULL;
    m = size.n;
    for (uint32_t i = 0; i < m; i++) {
        if (!checked_mul(all, size.at[i], &all))
            return build_error(b, E_IMPORT, "blocks that are too large");
        split[i] = idx_const(A, size.at[i]);
    }
    if (!(dims[0] = blocks(b, expr_form(x, 0), all)))
        return NULL;
    split[m] = dims[0];
    for (uint32_t i = 1; i < rank; i++) {
        split[m + i] = expr_form(x, i);
        dims[i] = i <= m ? idx_mulc(A, expr_form(x, i), size.at[i - 1]) : expr_form(x, i);
    }
    axes[k++] = m;
    for (uint32_t i = 1; i < rank; i++) {
        axes[k++] = m + i;
        if (i <= m)
            axes[k++] = i - 1;
    }
    x = build_transpose(b, build_reshape_to(b, x, k, split), k, axes);
    x = build_reshape_to(b, x, rank, dims);
    for (uint32_t i = 0; x && i < m; i++) {
        const Idx *end = idx_addc(A, dims[i + 1], -around.at[2 * i + 1]);

        if (end->hi < around.at[2 * i])
            return build_error(b, E_IMPORT, "nothing is left of dimension %u", i + 1);
        if (around.at[2 * i] || around.at[2 * i + 1])
            x = build_slice_to(b, x, i + 1, idx_const(A, around.at[2 * i]), end);
    }
    return x;
}
