/* The same cells in another shape or order. */
#include "frontends/tflite/tflite.h"

#include <string.h>

/* Dimensions that the model declares for an output, if they are numbers. */
static bool declared(const TfliteNode *n, uint32_t i, Dims *out)
{
    const TfliteTensor *t = tflite_out(n, i);
    int64_t             dims[MAX_RANK];

    for (uint32_t k = 0; k < t->shape.n; k++) {
        dims[k] = fb_int_at(t->shape, FB_I32, k);
        if (dims[k] < 0 || (k < t->signature.n && fb_int_at(t->signature, FB_I32, k) < 0))
            return false;
    }
    *out = dims_of_i64(n->b.c, dims, t->shape.n);
    return t->shape.n > 0 && !n->im->shapes.reshaped;
}

/* x in a shape that may have one -1; NULL with an error. */
static const Expr *reshaped(TfliteNode *n, const Expr *x, Dims v)
{
    Arith     *A = n->b.c->arith;
    const Idx *dims[MAX_RANK], *known = idx_const(A, 1), *total = type_cells(n->b.c, x->type);
    uint32_t   left = UINT32_MAX;
    int64_t    d, most = 1;

    if (v.n > MAX_RANK)
        return tflite_error(n, E_UNSUPPORTED, "a shape of %u dimensions", v.n);
    for (uint32_t i = 0; i < v.n; i++) {
        dims[i] = v.at[i];
        if (idx_is_const(v.at[i], &d) && d == -1 && left == UINT32_MAX) {
            left = i;
            continue;
        }
        if (dims[i]->lo < 0 || !checked_mul(most, idx_usual(dims[i]), &most))
            return tflite_error(n, E_IMPORT, "dimension %u of the shape is %s", i,
                                dim_text(n->b.c, dims[i]));
        known = idx_mul(A, known, dims[i]);
    }
    if (left < v.n) {
        if (!(dims[left] = idx_div_exact(A, total, known)))
            return tflite_error(n, E_IMPORT, "%s cells do not fill a shape with -1 and %s else",
                                dim_text(n->b.c, total), dim_text(n->b.c, known));
        known = total;
    }
    if (known != total)
        return tflite_error(n, E_IMPORT, "%s cells do not fit a shape of %s",
                            dim_text(n->b.c, total), dim_text(n->b.c, known));
    return build_reshape_to(&n->b, x, v.n, dims);
}

/* The shape is an input, or an option of the first files. */
bool tflite_reshape(TfliteNode *n)
{
    Ints v = tflite_int_list(n, "new_shape");
    Dims dims = dims_of_i64(n->b.c, v.at, v.n);

    if (tflite_has(n, 1) &&
        !(dtype_is_int(expr_dtype(n->in[1])) && build_forms(&n->b, n->in[1], &dims)) &&
        !declared(n, 0, &dims))
        return tflite_forms(n, 1, &dims);
    /* {0} once stood for a scalar. */
    if (!tflite_has(n, 1) && v.n == 1 && v.at[0] == 0)
        dims.n = 0;
    return tflite_done(n, reshaped(n, n->in[0], dims));
}

bool tflite_squeeze(TfliteNode *n)
{
    Ints        v = tflite_int_list(n, "squeeze_dims");
    const Expr *x = n->in[0];
    const Idx  *dims[MAX_RANK], *one = idx_const(n->b.c->arith, 1);
    bool        out[MAX_RANK] = {false};
    uint32_t    rank = expr_rank(x), k = 0, axis;

    for (uint32_t i = 0; i < v.n; i++) {
        if (!tflite_axis(n, v.at[i], rank, &axis))
            return false;
        if (expr_form(x, axis) != one)
            return tflite_error(n, E_IMPORT, "dimension %u is %s, not 1", axis,
                                dim_text(n->b.c, expr_form(x, axis)));
        out[axis] = true;
    }
    for (uint32_t i = 0; i < rank; i++)
        if (v.n ? !out[i] : expr_form(x, i) != one)
            dims[k++] = expr_form(x, i);
    return tflite_done(n, build_reshape_to(&n->b, x, k, dims));
}

bool tflite_expand_dims(TfliteNode *n)
{
    const Expr *x = n->in[0];
    const Idx  *dims[MAX_RANK + 1];
    uint32_t    rank = expr_rank(x) + 1, axis;
    int64_t     v;

    if (!tflite_number(n, 1, &v) || !tflite_axis(n, v, rank, &axis))
        return false;
    if (rank > MAX_RANK)
        return tflite_error(n, E_UNSUPPORTED, "a tensor of %u dimensions", rank);
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = i == axis ? idx_const(n->b.c->arith, 1) : expr_form(x, i - (i > axis));
    return tflite_done(n, build_reshape_to(&n->b, x, rank, dims));
}

bool tflite_transpose(TfliteNode *n)
{
    int64_t  axes[MAX_RANK];
    uint32_t rank = expr_rank(n->in[0]), at;
    bool     seen[MAX_RANK] = {false};
    Ints     v;

    if (!tflite_ints(n, 1, &v))
        return false;
    if (v.n != rank)
        return tflite_error(n, E_IMPORT, "a permutation of %u numbers for %u dimensions", v.n,
                            rank);
    for (uint32_t i = 0; i < rank; i++) {
        if (!tflite_axis(n, v.at[i], rank, &at))
            return false;
        if (seen[at])
            return tflite_error(n, E_IMPORT, "dimension %u is there twice", at);
        seen[at] = true;
        axes[i] = at;
    }
    return tflite_done(n, build_transpose(&n->b, n->in[0], rank, axes));
}

/* ---- blocks of pixels ----------------------------------------------------------------------------- */

static bool block_size(TfliteNode *n, int64_t *s)
{
    *s = tflite_int(n, "block_size");
    return (*s > 0 && *s < 65536) || tflite_error(n, E_IMPORT, "block_size is %lld", (long long)*s);
}

/* x / s, of which there is no rest; NULL with an error. */
static const Idx *blocks(const TfliteNode *n, const Idx *x, int64_t s)
{
    const Idx *q = s > 0 ? idx_div_exact(n->b.c->arith, x, idx_const(n->b.c->arith, s)) : NULL;

    return q ? q
             : tflite_error(n, E_IMPORT, "%s cells do not divide into blocks of %lld",
                            dim_text(n->b.c, x), (long long)s);
}

bool tflite_depth_to_space(TfliteNode *n)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    const Expr  *x = tflite_image(n, 0);
    const Idx   *N, *C, *H, *W, *k;
    int64_t      s;

    if (!x || !block_size(n, &s) || !(C = blocks(n, expr_form(x, 1), s * s)))
        return false;
    N = expr_form(x, 0), H = expr_form(x, 2), W = expr_form(x, 3), k = idx_const(A, s);
    x = build_transpose(b, build_reshape_to(b, x, 6, (const Idx *[]){N, k, k, C, H, W}), 6,
                        (int64_t[]){0, 3, 4, 1, 5, 2});
    return tflite_done(
        n, build_reshape_to(b, x, 4, (const Idx *[]){N, C, idx_mulc(A, H, s), idx_mulc(A, W, s)}));
}

bool tflite_space_to_depth(TfliteNode *n)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    const Expr  *x = tflite_image(n, 0);
    const Idx   *N, *C, *H, *W, *k;
    int64_t      s;

    if (!x || !block_size(n, &s) || !(H = blocks(n, expr_form(x, 2), s)) ||
        !(W = blocks(n, expr_form(x, 3), s)))
        return false;
    N = expr_form(x, 0), C = expr_form(x, 1), k = idx_const(A, s);
    x = build_transpose(b, build_reshape_to(b, x, 6, (const Idx *[]){N, C, H, k, W, k}), 6,
                        (int64_t[]){0, 3, 5, 1, 2, 4});
    return tflite_done(n,
                       build_reshape_to(b, x, 4, (const Idx *[]){N, idx_mulc(A, C, s * s), H, W}));
}

/* Block sizes of the dimensions behind the batch, and what is put around them or cut off. */
static bool batch_blocks(TfliteNode *n, Ints *size, Ints *around)
{
    uint32_t rank = expr_rank(n->in[0]);

    if (!tflite_ints(n, 1, size) || !tflite_ints(n, 2, around))
        return false;
    if (size->n == 0 || size->n >= rank || around->n != 2 * size->n || 2 * rank > MAX_RANK)
        return tflite_error(n, E_IMPORT, "blocks of %u dimensions for a tensor of %u", size->n,
                            rank);
    for (uint32_t i = 0; i < size->n; i++)
        if (size->at[i] < 1 || size->at[i] > INT32_MAX || around->at[2 * i] < 0 ||
            around->at[2 * i + 1] < 0 || around->at[2 * i] > INT32_MAX ||
            around->at[2 * i + 1] > INT32_MAX)
            return tflite_error(n, E_IMPORT, "a block of %lld cells", (long long)size->at[i]);
    return true;
}

/* [N, H, W, ..] -> [N, H/h, h, W/w, w, ..] -> [h, w, N, H/h, W/w, ..] -> [h*w*N, H/h, W/w, ..] */
bool tflite_space_to_batch(TfliteNode *n)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    int64_t      pads[2 * MAX_RANK] = {0}, axes[MAX_RANK];
    const Idx   *split[MAX_RANK], *dims[MAX_RANK];
    const Expr  *x = n->in[0];
    uint32_t     rank = expr_rank(x), m, k = 0;
    Ints         size, around;

    if (!batch_blocks(n, &size, &around))
        return false;
    m = size.n;
    memcpy(pads + 2, around.at, 2 * m * sizeof *pads);
    if (!(x = build_pad(b, x, pads, 0, "constant")))
        return false;
    dims[0] = split[k++] = expr_form(x, 0);
    for (uint32_t i = 1; i < rank; i++) {
        dims[i] = expr_form(x, i);
        if (i <= m) {
            if (!(dims[i] = blocks(n, dims[i], size.at[i - 1])))
                return false;
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
    return tflite_done(n, build_reshape_to(b, x, rank, dims));
}

/* The way back. */
bool tflite_batch_to_space(TfliteNode *n)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    int64_t      axes[MAX_RANK], all = 1;
    const Idx   *split[MAX_RANK], *dims[MAX_RANK];
    const Expr  *x = n->in[0];
    uint32_t     rank = expr_rank(x), m, k = 0;
    Ints         size, around;

    if (!batch_blocks(n, &size, &around))
        return false;
    m = size.n;
    for (uint32_t i = 0; i < m; i++) {
        if (!checked_mul(all, size.at[i], &all))
            return tflite_error(n, E_IMPORT, "blocks that are too large");
        split[i] = idx_const(A, size.at[i]);
    }
    if (!(dims[0] = blocks(n, expr_form(x, 0), all)))
        return false;
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
            return tflite_error(n, E_IMPORT, "nothing is left of dimension %u", i + 1);
        if (around.at[2 * i] || around.at[2 * i + 1])
            x = build_slice_to(b, x, i + 1, idx_const(A, around.at[2 * i]), end);
    }
    return tflite_done(n, x);
}

/* ---- put together ----------------------------------------------------------------------------------- */

bool tflite_concat(TfliteNode *n)
{
    const Expr *y;
    uint32_t    axis;

    if (!tflite_axis(n, tflite_int(n, "axis"), expr_rank(n->in[0]), &axis))
        return false;
    y = build_concat(&n->b, n->nin, n->in, axis);
    if (tflite_int(n, "fused_activation_function") && y && dtype_is_int(expr_dtype(y)) &&
        tflite_is_quantized(tflite_out(n, 0))) {
        const TfliteTensor *t = tflite_out(n, 0);

        y = tflite_dequantize(&n->b, t, y, -1);
    }
    return tflite_done(n, tflite_activate(n, y));
}

bool tflite_pack(TfliteNode *n)
{
    uint32_t axis;

    if (!tflite_axis(n, tflite_int(n, "axis"), expr_rank(n->in[0]) + 1, &axis))
        return false;
    /* One at a time as parts of a concatenation, whose sizes are then followed. */
    for (uint32_t i = 0; i < n->nin; i++)
        if (!(n->in[i] = build_expand_dims(&n->b, n->in[i], axis, 1)))
            return false;
    return tflite_done(n, build_concat(&n->b, n->nin, n->in, axis));
}

/* Parts of x along an axis, each of its size. */
static bool parts(TfliteNode *n, const Expr *x, uint32_t axis, const int64_t *size, bool drop)
{
    int64_t at = 0;

    for (uint32_t i = 0; i < n->nout; i++) {
        const Expr   *y = build_slice(&n->b, x, axis, at, at + size[i]);
        SqueezeAttrs *a = ATTRS(&n->b, SqueezeAttrs);

        a->axis = ints_of(n->b.c, 1, (int)axis);
        if (!y || !(n->out[i] = drop ? build1(&n->b, "squeeze", y, a) : y))
            return false;
        at += size[i];
    }
    return true;
}

bool tflite_unpack(TfliteNode *n)
{
    uint32_t axis;
    int64_t *size = NEW_ARRAY(n->b.c->arena, int64_t, n->nout + 1);

    if (!tflite_axis(n, tflite_int(n, "axis"), expr_rank(n->in[0]), &axis))
        return false;
    if (build_dim(&n->b, n->in[0], axis) != n->nout)
        return tflite_error(n, E_IMPORT, "%u outputs for %lld parts", n->nout,
                            (long long)build_dim(&n->b, n->in[0], axis));
    for (uint32_t i = 0; i < n->nout; i++)
        size[i] = 1;
    return parts(n, n->in[0], axis, size, true);
}

/* Input 0 is the axis. */
bool tflite_split(TfliteNode *n)
{
    uint32_t axis;
    int64_t *size = NEW_ARRAY(n->b.c->arena, int64_t, n->nout + 1), v, cells;

    if (!tflite_number(n, 0, &v) || !tflite_axis(n, v, expr_rank(n->in[1]), &axis))
        return false;
    cells = build_dim(&n->b, n->in[1], axis);
    if (n->nout == 0 || cells % n->nout)
        return tflite_error(n, E_IMPORT, "%lld cells into %u equal parts", (long long)cells,
                            n->nout);
    for (uint32_t i = 0; i < n->nout; i++)
        size[i] = cells / n->nout;
    return parts(n, n->in[1], axis, size, false);
}

/* Inputs: data, sizes, of which one may be -1, axis. */
bool tflite_split_v(TfliteNode *n)
{
    uint32_t axis, left = UINT32_MAX;
    int64_t *size = NEW_ARRAY(n->b.c->arena, int64_t, n->nout + 1), v, cells;
    Ints     sizes;

    if (!tflite_ints(n, 1, &sizes) || !tflite_number(n, 2, &v) ||
        !tflite_axis(n, v, expr_rank(n->in[0]), &axis))
        return false;
    cells = build_dim(&n->b, n->in[0], axis);
    if (sizes.n != n->nout)
        return tflite_error(n, E_IMPORT, "%u outputs for %u sizes", n->nout, sizes.n);
    for (uint32_t i = 0; i < n->nout; i++) {
        if (sizes.at[i] == -1 && left == UINT32_MAX) {
            left = i;
            continue;
        }
        if (sizes.at[i] < 0 || sizes.at[i] > cells)
            return tflite_error(n, E_IMPORT, "a part of %lld cells", (long long)sizes.at[i]);
        size[i] = sizes.at[i];
        cells -= size[i];
    }
    if (left < n->nout)
        size[left] = cells;
    else if (cells)
        return tflite_error(n, E_IMPORT, "its parts leave %lld cells", (long long)cells);
    return parts(n, n->in[0], axis, size, false);
}
