/* Operators that ONNX Runtime's optimizer and quantizer write (domain com.microsoft). */
#include "frontends/onnx/onnx.h"

#include <math.h>
#include <string.h>

/* An activation by its name, with the parameters alpha and beta where it has any. */
static const Expr *activate(Node *n, const Expr *x, const char *name, double alpha, double beta)
{
    const Build *b = &n->b;

    if (!x || !*name)
        return x;
    if (!strcmp(name, "Relu"))
        return build1(b, "nn.relu", x, NULL);
    if (!strcmp(name, "Tanh"))
        return build1(b, "tanh", x, NULL);
    if (!strcmp(name, "Sigmoid"))
        return build1(b, "sigmoid", x, NULL);
    if (!strcmp(name, "LeakyRelu")) {
        LeakyReluAttrs *a = ATTRS(b, LeakyReluAttrs);

        a->alpha = alpha;
        return build1(b, "nn.leaky_relu", x, a);
    }
    if (!strcmp(name, "Clip")) {
        ClipAttrs *a = ATTRS(b, ClipAttrs);

        a->a_min = alpha;
        a->a_max = beta;
        return build1(b, "clip", x, a);
    }
    return node_error(n, E_UNSUPPORTED, "activation '%s'", name);
}

/* Conv, plus another tensor, then an activation. */
bool convert_fused_conv(Node *n)
{
    const OnnxAttr *params = node_attr(n, "activation_params");
    float           v[2] = {0.01f, 0};
    const Expr     *y;

    if (params && params->floats.data.n)
        memcpy(v, params->floats.data.at,
               params->floats.data.n < sizeof v ? params->floats.data.n : sizeof v);
    if (!convert_conv(n))
        return false;
    y = n->out[0];
    if (node_has(n, 3))
        y = build2(&n->b, "add", y, n->in[3], NULL);
    return node_done(n, activate(n, y, node_str(n, "activation", ""), v[0], v[1]));
}

bool convert_fused_gemm(Node *n)
{
    return convert_gemm(n) && node_done(n, activate(n, n->out[0], node_str(n, "activation", ""),
                                                    node_float(n, "activation_alpha", 0.01f),
                                                    node_float(n, "activation_beta", 0)));
}

/* x + bias, then Gelu, exact or by tanh. */
static bool bias_gelu(Node *n, bool exact)
{
    const Build *b = &n->b;
    const Expr  *x, *t;

    if (!node_need_rank(n, 0, 0, MAX_RANK))
        return false;
    x = n->in[0];
    if (node_has(n, 1) && !(x = build2(b, "add", x, n->in[1], NULL)))
        return false;
    if (exact) {
        t = build1(b, "erf", build_by(b, "multiply", x, M_SQRT1_2), NULL);
    } else {
        const Expr *cube = build2(b, "multiply", x, build2(b, "multiply", x, x, NULL), NULL);

        t = build2(b, "add", x, build_by(b, "multiply", cube, 0.044715), NULL);
        t = build1(b, "tanh", build_by(b, "multiply", t, sqrt(2 / M_PI)), NULL);
    }
    t = build2(b, "add", t, build_scalar(b, x, 1), NULL);
    return node_done(n, build2(b, "multiply", build_by(b, "multiply", x, 0.5), t, NULL));
}

bool convert_bias_gelu(Node *n)
{
    return bias_gelu(n, true);
}

bool convert_fast_gelu(Node *n)
{
    return bias_gelu(n, false);
}

bool convert_skip_rms_norm(Node *n)
{
    const Build *b = &n->b;
    const Expr  *x, *s;
    int64_t      last;

    if (!node_need_rank(n, 0, 1, MAX_RANK) || !node_need_rank(n, 1, 1, MAX_RANK) ||
        !node_need_rank(n, 2, 1, 1))
        return false;
    x = build2(b, "add", n->in[0], n->in[1], NULL);
    if (node_has(n, 3))
        x = build2(b, "add", x, n->in[3], NULL);
    if (!x)
        return false;
    if (n->nout > 3)
        n->out[3] = x;
    last = (int64_t)expr_rank(x) - 1;
    s = build_reduce(b, "mean", build2(b, "multiply", x, x, NULL), 1, &last, true);
    s = s ? build2(b, "add", s, build_scalar(b, s, node_float(n, "epsilon", 1e-5f)), NULL) : NULL;
    s = build2(b, "multiply", x, build1(b, "rsqrt", s, NULL), NULL);
    return node_done(n, build2(b, "multiply", s, n->in[2], NULL));
}

/* Cells of `bits` bits, each row of `cells` in whole bytes, as u8. */
static const Expr *unpack(Node *n, uint32_t i, int64_t rows, int64_t cells, int64_t bits)
{
    const Expr    *k = node_has(n, i) ? n->in[i] : NULL;
    int64_t        row = (cells * bits + 7) / 8, per = 8 / bits;
    uint8_t       *out;
    const uint8_t *at;

    if (!k || k->kind != EXPR_CONST || expr_dtype(k).bits != 8)
        return node_error(n, E_UNSUPPORTED, "input %u has to be a constant of bytes", i);
    if (build_elems(&n->b, k) != rows * row)
        return node_error(n, E_IMPORT, "input %u holds %lld bytes, not %lld", i,
                          (long long)build_elems(&n->b, k), (long long)(rows * row));
    out = arena_array(n->b.c->arena, (size_t)rows + 1, (size_t)cells + 1);
    at = k->u.constant->data.at;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cells; c++)
            out[r * cells + c] =
                (uint8_t)(at[r * row + c / per] >> (c % per * bits)) & (uint8_t)((1 << bits) - 1);
    return build_const(&n->b, DT_U8, 2, (int64_t[]){rows, cells}, out);
}

/* A times the transpose of B [N, K], whose rows are blocks of `bits` bits with a scale each. */
bool convert_matmul_nbits(Node *n)
{
    const Build *b = &n->b;
    int64_t      K = node_int(n, "K", 0), N = node_int(n, "N", 0), bits = node_int(n, "bits", 4);
    int64_t      size = node_int(n, "block_size", 0), blocks, dims[3];
    const Expr  *w, *zero, *scale;
    DType        t;

    if (!node_need_rank(n, 0, 1, MAX_RANK) || !node_need_rank(n, 2, 1, 2))
        return false;
    node_ignore(n, "accuracy_level"); /* how inexact it may be */
    if (K < 1 || N < 1 || K > 1 << 24 || N > 1 << 24 || size < 16 || size > 1 << 16 ||
        (bits != 2 && bits != 4 && bits != 8) || node_has(n, 4))
        return node_error(n, E_UNSUPPORTED,
                          "K %lld, N %lld, block_size %lld, bits %lld, or an order "
                          "of groups",
                          (long long)K, (long long)N, (long long)size, (long long)bits);
    t = expr_dtype(n->in[0]);
    blocks = (K + size - 1) / size;
    dims[0] = N, dims[1] = blocks, dims[2] = size;
    scale = build_cast(b, build_reshape(b, n->in[2], 3, (int64_t[]){N, blocks, 1}), t);
    if (!(w = unpack(n, 1, N * blocks, size, bits)) || !scale)
        return false;
    if (!node_has(n, 3))
        zero = build_scalar(b, n->in[0], (double)(1 << (bits - 1)));
    else if (expr_dtype(n->in[3]).code == DT_UINT)
        zero = unpack(n, 3, N, blocks, bits);
    else
        zero = n->in[3];
    if (zero && expr_rank(zero) > 0)
        zero = build_reshape(b, zero, 3, (int64_t[]){N, blocks, 1});
    if (!zero)
        return false;
    w = build_cast(b, build_reshape(b, w, 3, dims), t);
    w = build2(b, "multiply", build2(b, "subtract", w, build_cast(b, zero, t), NULL), scale, NULL);
    w = build_reshape(b, w, 2, (int64_t[]){N, blocks * size});
    if (w && blocks * size != K)
        w = build_slice(b, w, 1, 0, K);
    w = w ? build_transpose(b, w, 2, (int64_t[]){1, 0}) : NULL;
    if (!w || !(w = onnx_matmul(n, n->in[0], w)))
        return false;
    return node_done(n, node_has(n, 5) ? build2(b, "add", w, n->in[5], NULL) : w);
}
