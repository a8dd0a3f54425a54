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
static bool bias_gelu(Node *n, bool by_tanh)
{
    const Expr *x;

    if (!node_need_rank(n, 0, 0, MAX_RANK))
        return false;
    x = n->in[0];
    if (node_has(n, 1))
        x = build2(&n->b, "add", x, n->in[1], NULL);
    return node_done(n, build_gelu(&n->b, x, by_tanh));
}

bool convert_bias_gelu(Node *n)
{
    return bias_gelu(n, false);
}

bool convert_fast_gelu(Node *n)
{
    return bias_gelu(n, true);
}

/* Half of x + bias times Gelu of the other half. */
bool convert_bias_split_gelu(Node *n)
{
    const Build *b = &n->b;
    const Expr  *x;
    uint32_t     last;
    int64_t      wide;

    if (!node_need_rank(n, 0, 1, MAX_RANK) || !node_need_rank(n, 1, 1, 1) ||
        !(x = build2(b, "add", n->in[0], n->in[1], NULL)))
        return false;
    last = expr_rank(x) - 1;
    wide = build_dim(b, x, last);
    return node_done(n,
                     build2(b, "multiply", build_slice(b, x, last, 0, wide / 2),
                            build_gelu(b, build_slice(b, x, last, wide / 2, wide), false), NULL));
}

bool convert_gemm_fast_gelu(Node *n)
{
    const Expr *x;

    if (!node_need_rank(n, 0, 1, MAX_RANK) || !node_need_rank(n, 1, 1, MAX_RANK) ||
        !(x = onnx_matmul(n, n->in[0], n->in[1])))
        return false;
    if (node_has(n, 2))
        x = build2(&n->b, "add", x, n->in[2], NULL);
    return node_done(n, build_gelu(&n->b, x, true));
}

/* All inputs added up. */
bool convert_bias_add(Node *n)
{
    const Expr *x = node_need_rank(n, 0, 0, MAX_RANK) ? n->in[0] : NULL;

    for (uint32_t i = 1; i < n->nin; i++)
        x = node_has(n, i) ? build2(&n->b, "add", x, n->in[i], NULL) : x;
    return node_done(n, x);
}

/* softmax(x + bias), of all dimensions from the axis on. */
bool convert_bias_softmax(Node *n)
{
    const Build  *b = &n->b;
    SoftmaxAttrs *a = ATTRS(b, SoftmaxAttrs);
    const Expr   *x, *y, *bias;
    const Idx    *dims[MAX_RANK];
    uint32_t      axis, r;

    if (!node_need_rank(n, 0, 1, MAX_RANK) || !node_need_rank(n, 1, 0, expr_rank(n->in[0])) ||
        !node_axis(n, node_int(n, "axis", 1), expr_rank(n->in[0]), &axis))
        return false;
    x = n->in[0];
    bias = n->in[1];
    r = expr_rank(bias);
    if (node_int(n, "is_inner_broadcast", 1) && r < expr_rank(x) && r >= expr_rank(x) - axis) {
        /* Its leading dimensions are the first ones of x. */
        uint32_t lead = r - (expr_rank(x) - axis);

        for (uint32_t i = 0; i < expr_rank(x); i++)
            dims[i] = i < lead   ? expr_form(bias, i)
                      : i < axis ? idx_const(b->c->arith, 1)
                                 : expr_form(bias, lead + i - axis);
        bias = build_reshape_to(b, bias, expr_rank(x), dims);
    }
    a->axis = 1;
    y = build2(b, "add", x, bias, NULL);
    y = y ? build1(b, "nn.softmax", build_matrix(b, y, axis), a) : NULL;
    return node_done(n, build_reshape_to(b, y, expr_rank(x), expr_forms(x).at));
}

/* x + y * gate. */
bool convert_gated_add(Node *n)
{
    return node_need_rank(n, 0, 0, MAX_RANK) && node_need_rank(n, 1, 0, MAX_RANK) &&
           node_need_rank(n, 2, 0, MAX_RANK) &&
           node_done(n, build2(&n->b, "add", n->in[0],
                               build2(&n->b, "multiply", n->in[1], n->in[2], NULL), NULL));
}

/* Distances of all rows of A from all of B. */
bool convert_cdist(Node *n)
{
    static const char *const metrics[] = {"sqeuclidean", "euclidean", NULL};
    const Build             *b = &n->b;
    const char              *metric;
    const Expr              *d;
    int64_t                  last = 2;

    if (!node_need_rank(n, 0, 2, 2) || !node_need_rank(n, 1, 2, 2) ||
        !node_choice(n, "metric", metrics, &metric))
        return false;
    d = build2(b, "subtract", build_expand_dims(b, n->in[0], 1, 1),
               build_expand_dims(b, n->in[1], 0, 1), NULL);
    d = d ? build_reduce(b, "sum", build2(b, "multiply", d, d, NULL), 1, &last, false) : NULL;
    return node_done(n, *metric == 'e' ? build1(b, "sqrt", d, NULL) : d);
}

/* Distinct numbers in the order in which they come, where each is among them, how many there are.
 */
bool convert_unique_in_order(Node *n)
{
    const Expr *inverse;

    if (!node_need_rank(n, 0, 1, 1) || !onnx_unique(n, false))
        return false;
    inverse = n->out[2];
    n->out[1] = inverse;
    n->out[2] = n->out[3];
    return true;
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
