/* The ends of networks that restyle pictures: BGRA pixels of bytes [N, H, W, 4] to channels
 * [N, 3, H, W], and back. The engine adds the same noise to each picture, normal numbers that it
 * draws when it runs first; here they are drawn when the net is read. */
#include "frontends/caffe2/caffe2.h"

#define NOISE_SIZE 491 /* the engine's defaults */
#define NOISE_STD 10.0

/* Number i of the noise, of `size` numbers, is that of cell i of the picture's rows; [1, H, W, 3].
 */
static const Expr *noise(C2Node *n, int64_t H, int64_t W)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    int64_t      size = c2_int(n, "noise_size", NOISE_SIZE), cells;
    const Expr  *draws, *at;

    if (size < 1 || size > INT32_MAX || !checked_mul(H * 3, W, &cells) || cells > MAX_ELEMS)
        return c2_error(n, E_IMPORT, "noise_size=%lld", (long long)size);
    draws = build_random(b, philox_new(0, 0), false, (Ints){1, &size});
    draws = build_by(b, "multiply", draws, c2_float(n, "noise_std", NOISE_STD));
    at = build_by(b, "floor_mod", build_arange(b, idx_const(A, cells), DT_I64), (double)size);
    return build_reshape(b, build_take(b, draws, at, 0), 4, (int64_t[]){1, H, W, 3});
}

bool c2_stylizer_preprocess(C2Node *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *mean = n->in[1], *more;

    if (!c2_rank(n, 0, 4, 4) || !dtype_eq(expr_dtype(x), DT_U8) || build_dim(b, x, 3) != 4 ||
        build_elems(b, mean) != 3)
        return c2_error(n, E_IMPORT, "pixels %s", type_text(b->c, x->type));
    x = build_cast(b, build_slice(b, x, 3, 0, 3), DT_F32);
    x = build_sub(b, x, build_reshape(b, mean, 1, (int64_t[]){3}));
    if (x && c2_float(n, "noise_std", NOISE_STD) != 0) {
        more = noise(n, build_dim(b, x, 1), build_dim(b, x, 2));
        x = more ? build_add(b, x, more) : NULL;
    }
    return x && c2_done(n, build_channels_first(b, x));
}

bool c2_stylizer_deprocess(C2Node *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *mean = n->in[1];
    const Idx   *dims[4];

    if (!c2_rank(n, 0, 4, 4) || build_dim(b, x, 1) != 3 || build_elems(b, mean) != 3)
        return c2_error(n, E_IMPORT, "pixels %s", type_text(b->c, x->type));
    x = build_add(b, build_channels_last(b, x), build_reshape(b, mean, 1, (int64_t[]){3}));
    x = x ? build_cast(b, build_clip(b, x, 0, 255), DT_U8) : NULL;
    if (!x)
        return false;
    for (uint32_t i = 0; i < 4; i++)
        dims[i] = i < 3 ? expr_form(x, i) : idx_const(b->c->arith, 1);
    mean = build_broadcast_to(b, build_scalar(b, x, 255), 4, dims);
    return c2_done(n, build_concat(b, 2, (const Expr *[]){x, mean}, 3));
}
