/* The same cells in another shape or order. */
#include "frontends/onnx/onnx.h"

#include <string.h>

/* The product of dims but for one; false with an error: too large. */
static bool cells_of(Node *n, uint32_t rank, const Idx *const *dims, uint32_t but, const Idx **out)
{
    int64_t most = 1;

    *out = idx_const(n->b.c->arith, 1);
    for (uint32_t i = 0; i < rank; i++) {
        if (i == but)
            continue;
        if (dims[i]->lo < 0 || !checked_mul(most, idx_usual(dims[i]), &most))
            return node_error(n, E_IMPORT, "dimension %u of the shape is %s", i,
                              dim_text(n->b.c, dims[i]));
        *out = idx_mul(n->b.c->arith, *out, dims[i]);
    }
    return true;
}

/* 0 takes the input's dimension unless allowzero, -1 is what is left. */
bool convert_reshape(Node *n)
{
    bool        zero = node_int(n, "allowzero", 0);
    const Idx  *dims[MAX_RANK], *known, *total;
    uint32_t    left = UINT32_MAX;
    const Expr *x;
    Dims        v;
    Ints        attr;
    int64_t     d;

    if (!node_need_rank(n, 0, 0, MAX_RANK))
        return false;
    if (n->opset < 5) {
        if (!node_ints(n, "shape", &attr))
            return node_error(n, E_IMPORT, "attribute 'shape' is missing");
        v = dims_of_i64(n->b.c, attr.at, attr.n);
    } else if (!node_known(n, 1)) {
        return reshape_at_run(n);
    } else if (!node_forms(n, 1, &v)) {
        return false;
    }
    x = n->in[0];
    total = type_cells(n->b.c, x->type);
    if (v.n > MAX_RANK)
        return node_error(n, E_UNSUPPORTED, "a shape of %u dimensions", v.n);
    for (uint32_t i = 0; i < v.n; i++) {
        bool number = idx_is_const(v.at[i], &d);

        dims[i] = v.at[i];
        if (number && d == -1 && left == UINT32_MAX)
            left = i;
        if (!number || d != 0 || zero)
            continue;
        if (i >= expr_rank(x))
            return node_error(n, E_IMPORT, "dimension %u is to be copied, the input has %u", i,
                              expr_rank(x));
        dims[i] = expr_form(x, i);
    }
    if (!cells_of(n, v.n, dims, left, &known))
        return false;
    if (left < v.n) {
        if (!(dims[left] = idx_div_exact(n->b.c->arith, total, known)))
            return node_error(n, E_IMPORT, "%s cells do not fill a shape with -1 and %s else",
                              dim_text(n->b.c, total), dim_text(n->b.c, known));
        known = total;
    }
    if (known != total) {
        node_error(n, E_IMPORT, "%s cells do not fit a shape of %s", dim_text(n->b.c, total),
                   dim_text(n->b.c, known));
        diag_note(n->b.c->diags, n->b.loc, "the input is %s", type_text(n->b.c, x->type));
        return false;
    }
    return node_done(n, build_reshape_to(&n->b, x, v.n, dims));
}

bool convert_flatten(Node *n)
{
    int64_t axis = node_int(n, "axis", 1), rank;

    if (!node_need_rank(n, 0, 0, MAX_RANK))
        return false;
    rank = expr_rank(n->in[0]);
    if (axis < -rank || axis > rank)
        return node_error(n, E_IMPORT, "axis %lld is outside a tensor of %lld dimensions",
                          (long long)axis, (long long)rank);
    if (axis < 0)
        axis += rank;
    return node_done(n, build_matrix(&n->b, n->in[0], (uint32_t)axis));
}

/* A dimension stays where no axes are given and it is not 1, which bounds say or the run finds. */
static bool not_one(Node *n, uint32_t i, const Idx *d)
{
    const Build *b = &n->b;

    if (onnx_decided(n->im, d))
        return onnx_require(
            n, build_cast(b, build2(b, "equal", cell_form(b, d), cell_number(b, 1), NULL), DT_I64),
            "the dimension is 1");
    node_error(n, E_DIM, "dimension %u is %s, which may be 1 and then goes, or stays", i,
               dim_text(b->c, d));
    diag_hint(b->c->diags, "exclude 1 by --dim, or give the operator axes");
    return false;
}

bool convert_squeeze(Node *n)
{
    int64_t     axes[MAX_RANK];
    const Idx  *dims[MAX_RANK], *one = idx_const(n->b.c->arith, 1);
    uint32_t    naxes = 0, rank, k = 0;
    const Expr *x;
    bool        given, bad;
    Ints        v;

    if (!node_need_rank(n, 0, 0, MAX_RANK))
        return false;
    if (!node_known(n, 1))
        return squeeze_at_run(n);
    x = n->in[0];
    rank = expr_rank(x);
    given = node_axes_arg(n, 1, &v, &bad);
    if (bad)
        return false;
    if (given) {
        if (!node_axes(n, v, rank, axes))
            return false;
        naxes = v.n;
    }
    for (uint32_t i = 0; i < rank; i++) {
        const Idx *d = expr_form(x, i);
        bool       out = !given && d == one;

        for (uint32_t j = 0; j < naxes; j++)
            out |= axes[j] == i;
        if (!given && !out && d->lo <= 1 && d->hi >= 1 && !not_one(n, i, d))
            return false;
        if (out && d != one && onnx_decided(n->im, d)) {
            if (!onnx_require(n, build_sub(&n->b, cell_form(&n->b, d), cell_number(&n->b, 1)),
                              "the dimension is not 1"))
                return false;
        } else if (out && d != one) {
            return node_error(n, E_IMPORT, "dimension %u is %s, not 1", i, dim_text(n->b.c, d));
        }
        if (!out)
            dims[k++] = d;
    }
    return node_done(n, in_shape_at_run(n, x, k, dims));
}

bool convert_unsqueeze(Node *n)
{
    int64_t     axes[MAX_RANK];
    const Idx  *dims[MAX_RANK];
    uint32_t    rank, k = 0;
    const Expr *x;
    bool        bad;
    Ints        v;

    if (!node_need_rank(n, 0, 0, MAX_RANK))
        return false;
    if (!node_known(n, 1))
        return unsqueeze_at_run(n);
    if (!node_axes_arg(n, 1, &v, &bad))
        return bad ? false : node_error(n, E_IMPORT, "axes are missing") != NULL;
    x = n->in[0];
    if (v.n > MAX_RANK - expr_rank(x))
        return node_error(n, E_UNSUPPORTED, "a tensor of more than %d dimensions", MAX_RANK);
    rank = expr_rank(x) + v.n;
    if (!node_axes(n, v, rank, axes))
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        bool in = false;

        for (uint32_t j = 0; j < v.n; j++)
            in |= axes[j] == i;
        dims[i] = in ? idx_const(n->b.c->arith, 1) : expr_form(x, k++);
    }
    return node_done(n, build_reshape_to(&n->b, x, rank, dims));
}

bool convert_transpose(Node *n)
{
    int64_t  axes[MAX_RANK];
    uint32_t rank;
    Ints     v;

    if (!node_need_rank(n, 0, 0, MAX_RANK))
        return false;
    rank = expr_rank(n->in[0]);
    for (uint32_t i = 0; i < rank; i++)
        axes[i] = rank - 1 - i;
    if (node_ints(n, "perm", &v)) {
        if (v.n != rank)
            return node_error(n, E_IMPORT, "perm has %u numbers for %u dimensions", v.n, rank);
        if (!node_axes(n, v, rank, axes))
            return false;
    }
    return node_done(n, build_transpose(&n->b, n->in[0], rank, axes));
}

/* ---- blocks of pixels ---------------------------------------------------------------------------------- */

/* The size of a block, and whether channels come before its pixels. */
static bool block_size(Node *n, int64_t *s, bool *crd)
{
    static const char *const modes[] = {"DCR", "CRD", NULL};
    const char              *mode;

    *s = node_int(n, "blocksize", 0);
    if (!node_need_rank(n, 0, 4, 4) || !node_choice(n, "mode", modes, &mode))
        return false;
    *crd = mode == modes[1];
    return (*s > 0 && *s < 65536) || node_error(n, E_IMPORT, "blocksize is %lld", (long long)*s);
}

/* A quotient that has no rest; NULL with an error. */
static const Idx *blocks(Node *n, const Idx *x, int64_t s, const char *what)
{
    const Idx *q = idx_div_exact(n->b.c->arith, x, idx_const(n->b.c->arith, s));

    return q ? q
             : node_error(n, E_IMPORT, "%s %s do not divide into blocks of %lld",
                          dim_text(n->b.c, x), what, (long long)s);
}

bool convert_depth_to_space(Node *n)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    bool         crd;
    int64_t      s;
    const Idx   *N, *C, *H, *W, *k;
    const Expr  *x;

    if (!block_size(n, &s, &crd))
        return false;
    x = n->in[0];
    k = idx_const(A, s);
    N = expr_form(x, 0), H = expr_form(x, 2), W = expr_form(x, 3);
    if (!(C = blocks(n, expr_form(x, 1), s * s, "channels")))
        return false;
    if (crd)
        x = build_transpose(b, build_reshape_to(b, x, 6, (const Idx *[]){N, C, k, k, H, W}), 6,
                            (int64_t[]){0, 1, 4, 2, 5, 3});
    else
        x = build_transpose(b, build_reshape_to(b, x, 6, (const Idx *[]){N, k, k, C, H, W}), 6,
                            (int64_t[]){0, 3, 4, 1, 5, 2});
    return node_done(
        n, build_reshape_to(b, x, 4, (const Idx *[]){N, C, idx_mulc(A, H, s), idx_mulc(A, W, s)}));
}

bool convert_space_to_depth(Node *n)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    bool         crd;
    int64_t      s;
    const Idx   *N, *C, *H, *W, *k;
    const Expr  *x;

    if (!block_size(n, &s, &crd))
        return false;
    x = n->in[0];
    k = idx_const(A, s);
    N = expr_form(x, 0), C = expr_form(x, 1);
    if (!(H = blocks(n, expr_form(x, 2), s, "rows")) ||
        !(W = blocks(n, expr_form(x, 3), s, "columns")))
        return false;
    x = build_transpose(b, build_reshape_to(b, x, 6, (const Idx *[]){N, C, H, k, W, k}), 6,
                        crd ? (int64_t[]){0, 1, 3, 5, 2, 4} : (int64_t[]){0, 3, 5, 1, 2, 4});
    return node_done(n, build_reshape_to(b, x, 4, (const Idx *[]){N, idx_mulc(A, C, s * s), H, W}));
}
