/* The same cells in another shape or order. */
#include "frontends/onnx/onnx.h"

#include <string.h>

/* 0 takes the input's dimension unless allowzero, -1 is what is left. */
bool convert_reshape(Node *n)
{
    bool        zero = node_int(n, "allowzero", 0);
    int64_t     dims[MAX_RANK], known = 1, total;
    int32_t     left = -1;
    const Expr *x;
    Ints        v;

    if (!node_need_rank(n, 0, 0, MAX_RANK))
        return false;
    if (n->opset < 5) {
        if (!node_ints(n, "shape", &v))
            return node_error(n, E_IMPORT, "attribute 'shape' is missing");
    } else if (!node_const_ints(n, 1, &v)) {
        return false;
    }
    x = n->in[0];
    total = expr_elems(x);
    if (v.n > MAX_RANK)
        return node_error(n, E_UNSUPPORTED, "a shape of %u dimensions", v.n);
    for (uint32_t i = 0; i < v.n; i++) {
        dims[i] = v.at[i];
        if (dims[i] == 0 && !zero) {
            if (i >= expr_rank(x))
                return node_error(n, E_IMPORT, "dimension %u is to be copied, the input has %u", i,
                                  expr_rank(x));
            dims[i] = expr_dim(x, i);
        }
        if (dims[i] == -1 && left < 0) {
            left = (int32_t)i;
            continue;
        }
        if (dims[i] < 0 || !checked_mul(known, dims[i], &known))
            return node_error(n, E_IMPORT, "dimension %u of the shape is %lld", i,
                              (long long)dims[i]);
    }
    if (left >= 0) {
        if (known == 0 || total % known)
            return node_error(n, E_IMPORT, "%lld cells do not fill a shape with -1 and %lld else",
                              (long long)total, (long long)known);
        dims[left] = total / known;
        known = total;
    }
    if (known != total) {
        node_error(n, E_IMPORT, "%lld cells do not fit a shape of %lld", (long long)total,
                   (long long)known);
        diag_note(n->b.c->diags, n->b.loc, "the input is %s", type_text(n->b.c, x->type));
        return false;
    }
    return node_done(n, build_reshape(&n->b, x, v.n, dims));
}

bool convert_flatten(Node *n)
{
    int64_t     axis = node_int(n, "axis", 1), dims[2] = {1, 1};
    const Expr *x;
    int64_t     rank;

    if (!node_need_rank(n, 0, 0, MAX_RANK))
        return false;
    x = n->in[0];
    rank = expr_rank(x);
    if (axis < -rank || axis > rank)
        return node_error(n, E_IMPORT, "axis %lld is outside a tensor of %lld dimensions",
                          (long long)axis, (long long)rank);
    if (axis < 0)
        axis += rank;
    for (int64_t i = 0; i < rank; i++)
        dims[i >= axis] *= expr_dim(x, (uint32_t)i);
    return node_done(n, build_reshape(&n->b, x, 2, dims));
}

bool convert_squeeze(Node *n)
{
    int64_t     axes[MAX_RANK], dims[MAX_RANK];
    uint32_t    naxes = 0, rank, k = 0;
    const Expr *x;
    bool        given, bad;
    Ints        v;

    if (!node_need_rank(n, 0, 0, MAX_RANK))
        return false;
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
        bool out = !given && expr_dim(x, i) == 1;

        for (uint32_t j = 0; j < naxes; j++)
            out |= axes[j] == i;
        if (out && expr_dim(x, i) != 1)
            return node_error(n, E_IMPORT, "dimension %u is %lld, not 1", i,
                              (long long)expr_dim(x, i));
        if (!out)
            dims[k++] = expr_dim(x, i);
    }
    return node_done(n, build_reshape(&n->b, x, k, dims));
}

bool convert_unsqueeze(Node *n)
{
    int64_t     axes[MAX_RANK], dims[MAX_RANK];
    uint32_t    rank, k = 0;
    const Expr *x;
    bool        bad;
    Ints        v;

    if (!node_need_rank(n, 0, 0, MAX_RANK))
        return false;
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
        dims[i] = in ? 1 : expr_dim(x, k++);
    }
    return node_done(n, build_reshape(&n->b, x, rank, dims));
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

bool convert_depth_to_space(Node *n)
{
    const Build *b = &n->b;
    bool         crd;
    int64_t      s, N, C, H, W;
    const Expr  *x;

    if (!block_size(n, &s, &crd))
        return false;
    x = n->in[0];
    N = expr_dim(x, 0), C = expr_dim(x, 1), H = expr_dim(x, 2), W = expr_dim(x, 3);
    if (C % (s * s))
        return node_error(n, E_IMPORT, "%lld channels do not hold blocks of %lld x %lld",
                          (long long)C, (long long)s, (long long)s);
    C /= s * s;
    if (crd)
        x = build_transpose(b, build_reshape(b, x, 6, (int64_t[]){N, C, s, s, H, W}), 6,
                            (int64_t[]){0, 1, 4, 2, 5, 3});
    else
        x = build_transpose(b, build_reshape(b, x, 6, (int64_t[]){N, s, s, C, H, W}), 6,
                            (int64_t[]){0, 3, 4, 1, 5, 2});
    return node_done(n, build_reshape(b, x, 4, (int64_t[]){N, C, H * s, W * s}));
}

bool convert_space_to_depth(Node *n)
{
    const Build *b = &n->b;
    bool         crd;
    int64_t      s, N, C, H, W;
    const Expr  *x;

    if (!block_size(n, &s, &crd))
        return false;
    x = n->in[0];
    N = expr_dim(x, 0), C = expr_dim(x, 1), H = expr_dim(x, 2), W = expr_dim(x, 3);
    if (H % s || W % s)
        return node_error(n, E_IMPORT, "%lld x %lld pixels do not divide into blocks of %lld",
                          (long long)H, (long long)W, (long long)s);
    x = build_transpose(b, build_reshape(b, x, 6, (int64_t[]){N, C, H / s, s, W / s, s}), 6,
                        crd ? (int64_t[]){0, 1, 3, 5, 2, 4} : (int64_t[]){0, 3, 5, 1, 2, 4});
    return node_done(n, build_reshape(b, x, 4, (int64_t[]){N, C * s * s, H / s, W / s}));
}
