/* ConvLSTM: an LSTM whose products are convolutions, over lines, images or volumes.
 *
 *     kernel [.., C, 4F], recurrent_kernel [.., F, 4F], bias [4F]; gates i f c o
 *
 * The data's convolution is one for all steps, before the loop.  Gates are computed in the order o
 * f i c, in which a step needs them, so that a file with convolutions of their own, which are
 * combined, is the same loop. */
#include "frontends/keras/recurrent.h"

#include <string.h>

static const int64_t first_axis[] = {0};

typedef struct {
    KerasNode  *n;
    uint32_t    dims;
    int64_t     filters;
    const char *activation, *gate;
    const Expr *w; /* of the state, [4F, F, ..] */
    KerasWindow window;
} ConvLstm;

enum { GATE_O, GATE_F, GATE_I, GATE_C, GATES };
static const uint32_t order_of_file[GATES] = {3, 1, 0, 2};

/* Weights or biases of all gates, which come first, in our order. */
static const Expr *ordered(const ConvLstm *k, const Expr *w)
{
    const Build *b = &k->n->b;
    const Expr  *part[GATES], *all, *folded;

    for (uint32_t g = 0; g < GATES; g++)
        if (!w || !(part[g] = build_slice(b, w, 0, order_of_file[g] * k->filters,
                                          (order_of_file[g] + 1) * k->filters)))
            return NULL;
    all = build_concat(b, GATES, part, 0);
    folded = all ? build_fold(b, all) : NULL;
    return folded ? folded : all;
}

static const Expr *cut(const ConvLstm *k, const Expr *x, uint32_t gate)
{
    return build_slice(&k->n->b, x, 1, gate * k->filters, (gate + 1) * k->filters);
}

/* in: h, c, all results, data */
static bool one_round(const Build *b, void *user, const Expr *i, const Expr *const *in,
                      const Expr **next)
{
    const ConvLstm *k = user;
    const Expr     *z = keras_conv(k->n, in[0], k->w, &k->window, 1), *c;

    z = build_add(b, build_take(b, in[3], i, 0), z);
    if (!z)
        return false;
    c = build_mul(b, keras_apply(k->n, k->gate, cut(k, z, GATE_F), 1), in[1]);
    c = build_add(b, c,
                  build_mul(b, keras_apply(k->n, k->gate, cut(k, z, GATE_I), 1),
                            keras_apply(k->n, k->activation, cut(k, z, GATE_C), 1)));
    next[1] = c;
    next[0] = build_mul(b, keras_apply(k->n, k->gate, cut(k, z, GATE_O), 1),
                        keras_apply(k->n, k->activation, c, 1));
    next[2] = build3(b, "update_slice", in[2], next[0], i, NULL);
    next[3] = in[3];
    return next[2] != NULL;
}

static const Expr *kernel(const ConvLstm *c, const char *name, KerasWindow *w)
{
    KerasNode           *n = c->n;
    uint32_t             dims = c->dims;
    static const int64_t orders[3][5] = {{2, 1, 0}, {3, 2, 0, 1}, {4, 3, 0, 1, 2}};
    const Expr          *k = keras_kernel(n, name, dims, orders[dims - 1]);

    w->dims = dims;
    for (uint32_t i = 0; k && i < dims; i++) {
        w->at.kernel[i] = build_dim(&n->b, k, 2 + i);
        w->at.stride[i] = w->at.dilation[i] = 1;
    }
    return ordered(c, k);
}

/* x [N, T, ..] by the data's weights, with the bias: [T, N, 4F, ..]. */
static const Expr *projected(const ConvLstm *k, const Expr *x, bool back)
{
    KerasNode   *n = k->n;
    const Build *b = &n->b;
    const Idx   *dims[MAX_RANK], *T, *N;
    KerasWindow  w;
    const Expr  *kern = kernel(k, "cell/kernel", &w), *y, *bias;
    uint32_t     rank = expr_rank(x);
    int64_t      axes[MAX_RANK] = {1, 0};

    for (uint32_t i = 2; i < rank; i++)
        axes[i] = i;
    x = build_reverse(b, build_transpose(b, x, rank, axes), back, first_axis);
    if (!kern || !x)
        return NULL;
    T = expr_form(x, 0), N = expr_form(x, 1);
    dims[0] = idx_mul(b->c->arith, T, N);
    for (uint32_t i = 2; i < rank; i++)
        dims[i - 1] = expr_form(x, i);
    x = build_reshape_to(b, x, rank - 1, dims);
    x = keras_channels_first(n) ? x : build_channels_first(b, x);
    if (!x || !keras_ints(n, "strides", k->dims, 1, 1, w.at.stride) ||
        !keras_ints(n, "dilation_rate", k->dims, 1, 1, w.at.dilation) ||
        !keras_padding(n, x, keras_text(n, "padding", "valid"), &w))
        return NULL;
    y = keras_conv(n, x, kern, &w, 1);
    if (y && keras_has_weight(n, "cell/bias")) {
        bias = ordered(k, keras_weight(n, "cell/bias"));
        y = bias ? build2(b, "nn.bias_add", y, bias, NULL) : NULL;
    }
    if (!y)
        return NULL;
    dims[0] = T, dims[1] = N;
    for (uint32_t i = 1; i < rank - 1; i++)
        dims[i + 1] = expr_form(y, i);
    return build_reshape_to(b, y, rank, dims);
}

/* [T, N, C, ..] with the steps second and, of channels last, those last. */
static const Expr *steps_second(const KerasNode *n, const Expr *x)
{
    uint32_t rank = expr_rank(x);
    bool     last = !keras_channels_first(n);
    int64_t  axes[MAX_RANK] = {1, 0};

    for (uint32_t i = 2; i < rank; i++)
        axes[i] = !last ? i : i + 1 == rank ? 2 : i + 1;
    return build_transpose(&n->b, x, rank, axes);
}

static bool states_of(ConvLstm *k, const Expr *data, const Expr **first)
{
    KerasNode   *n = k->n;
    const Build *b = &n->b;
    const Idx   *dims[MAX_RANK];
    uint32_t     rank = expr_rank(data);

    for (uint32_t i = 0; i < rank; i++)
        dims[i] = i == 2 ? idx_const(b->c->arith, k->filters) : expr_form(data, i);
    for (uint32_t i = 0; i < 2; i++)
        first[i] = build_zeros_of(b, n->dtype, rank - 1, dims + 1);
    first[2] = build_zeros_of(b, n->dtype, rank, dims);
    first[3] = data;
    return first[0] && first[1] && first[2];
}

bool keras_conv_lstm(KerasNode *n)
{
    const char *name = n->layer->class_name;
    uint32_t    dims = strstr(name, "1D") ? 1 : strstr(name, "2D") ? 2 : 3;
    ConvLstm    k = {.n = n, .dims = dims, .filters = keras_int(n, "filters", 0)};
    bool        back = keras_bool(n, "go_backwards", false);
    const Expr *x = keras_in(n), *first[4], *last[4];

    if (!keras_rank(n, x, dims + 3, dims + 3))
        return false;
    if (n->in[0].mask || keras_bool(n, "stateful", false))
        return keras_error(n, E_UNSUPPORTED, "a mask, or a state that is kept");
    if (n->im->major < 2 && keras_channels_first(n))
        return keras_error(n, E_UNSUPPORTED, "channels first in a file of Keras 1");
    if (k.filters < 1)
        return keras_error(n, E_IMPORT, "'filters' is %lld", (long long)k.filters);
    k.activation = keras_activation_name(n, "activation", "tanh");
    k.gate = keras_activation_name(n, "recurrent_activation", "hard_sigmoid");
    k.w = kernel(&k, "cell/recurrent_kernel", &k.window);
    x = k.w ? projected(&k, x, back) : NULL;
    if (!x || !states_of(&k, x, first) || !keras_padding(n, first[0], "same", &k.window) ||
        !keras_rounds(n, expr_form(x, 0), 4, first, one_round, &k, last))
        return false;
    if (!keras_done(n, keras_bool(n, "return_sequences", false) ? steps_second(n, last[2])
                       : keras_channels_first(n)                ? last[0]
                                                 : build_channels_last(&n->b, last[0])))
        return false;
    for (uint32_t i = 0; i < 2 && keras_bool(n, "return_state", false); i++)
        if (!keras_done(n, keras_channels_first(n) ? last[i] : build_channels_last(&n->b, last[i])))
            return false;
    return true;
}
