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
