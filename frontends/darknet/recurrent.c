/* Layers with a state.  A run is one step, as when these networks are used; what a layer keeps is
 * an input of the model, layer3_state, and a result, layer3_state_out, which the caller gives back
 * or
 * --state joins. */
#include "frontends/darknet/darknet.h"

static const Expr *sigmoid(const Build *b, const Expr *x)
{
    return build1(b, "sigmoid", x, NULL);
}

/* [N, cells] */
static const Expr *state(DarknetNode *n, const char *role, const Expr *x, int64_t cells)
{
    const Idx *dims[2] = {expr_form(x, 0), idx_const(n->b.c->arith, cells)};

    return darknet_state(n, role, 2, dims);
}

/* The state is the input's part plus the state's part (plus the state). */
bool darknet_rnn(DarknetNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = darknet_vector(n, n->x), *s, *own, *next;
    bool         norm = darknet_int(n, "batch_normalize");
    const char  *activation = darknet_text(n, "activation");
    int64_t      outputs, hidden, logistic = darknet_int(n, "logistic");

    if (!x || !darknet_size(n, "output", 1, &outputs) || !darknet_size(n, "hidden", 0, &hidden))
        return false;
    hidden = hidden ? hidden : outputs;
    s = state(n, "state", x, hidden);
    next = darknet_dense(n, x, hidden, norm, activation, "input.");
    own = darknet_dense(n, s, hidden, norm,
                        logistic == 2   ? "loggy"
                        : logistic == 1 ? "logistic"
                                        : activation,
                        "self.");
    next = build_add(b, next, own);
    if (darknet_int(n, "shortcut"))
        next = build_add(b, s, next);
    darknet_state_next(n, "state", next);
    return darknet_done(n, darknet_dense(n, next, outputs, norm, activation, "output."));
}

/* z * state + (1 - z) * h; the products of the input come before those of the state. */
bool darknet_gru(DarknetNode *n)
{
    static const char *const roles[] = {"input_z.", "input_r.", "input_h.", "state_z.", "state_r."};
    const Build             *b = &n->b;
    const Expr              *x = darknet_vector(n, n->x), *s, *part[5], *z, *h;
    bool                     norm = darknet_int(n, "batch_normalize");
    int64_t                  outputs;

    if (!x || !darknet_size(n, "output", 1, &outputs))
        return false;
    s = state(n, "state", x, outputs);
    for (uint32_t i = 0; i < COUNT(roles); i++)
        if (!(part[i] = darknet_dense(n, i < 3 ? x : s, outputs, norm, "linear", roles[i])))
            return false;
    z = sigmoid(b, build_add(b, part[0], part[3]));
    h = build_mul(b, sigmoid(b, build_add(b, part[1], part[4])), s);
    h = build_add(b, part[2], darknet_dense(n, h, outputs, norm, "linear", "state_h."));
    h = darknet_activate(n, darknet_int(n, "tanh") ? "tanh" : "logistic", h);
    h = build_add(b, h, build_mul(b, z, build_sub(b, s, h)));
    darknet_state_next(n, "state", h);
    return darknet_done(n, h);
}

/* Products of the last result first, f i g o, then those of the input. */
bool darknet_lstm(DarknetNode *n)
{
    static const char *const roles[] = {"wf.", "wi.", "wg.", "wo.", "uf.", "ui.", "ug.", "uo."};
    const Build             *b = &n->b;
    const Expr              *x = darknet_vector(n, n->x), *h, *c, *part[8], *gate[4];
    bool                     norm = darknet_int(n, "batch_normalize");
    int64_t                  outputs;

    if (!x || !darknet_size(n, "output", 1, &outputs))
        return false;
    h = state(n, "h", x, outputs);
    c = state(n, "c", x, outputs);
    for (uint32_t i = 0; i < 8; i++)
        if (!(part[i] = darknet_dense(n, i < 4 ? h : x, outputs, norm, "linear", roles[i])))
            return false;
    for (uint32_t i = 0; i < 4; i++)
        gate[i] =
            darknet_activate(n, i == 2 ? "tanh" : "logistic", build_add(b, part[i], part[4 + i]));
    c = build_add(b, build_mul(b, gate[0], c), build_mul(b, gate[1], gate[2]));
    h = build_mul(b, gate[3], build1(b, "tanh", c, NULL));
    darknet_state_next(n, "h", h);
    darknet_state_next(n, "c", c);
    return darknet_done(n, h);
}

/* As rnn, with images and convolutions. */
bool darknet_crnn(DarknetNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = darknet_image(n, n->x), *s, *own, *next;
    DarknetConv  k = {.stride_x = 1,
                      .stride_y = 1,
                      .batch_normalize = darknet_int(n, "batch_normalize"),
                      .activation = darknet_text(n, "activation")};
    bool         first = darknet_has(n, "output_filters"); /* the first program's names */
    int64_t      outputs;

    if (!x || !darknet_size(n, first ? "output_filters" : "output", 0, &outputs) ||
        !darknet_size(n, first ? "hidden_filters" : "hidden", 0, &k.filters) ||
        !darknet_size(n, "size", 1, &k.size) || !darknet_size(n, "groups", 1, &k.groups) ||
        !darknet_size(n, "dilation", 1, &k.dilation) || !darknet_padding(n, &k))
        return false;
    if (first && !darknet_has(n, "pad"))
        k.padding = k.size / 2;
    outputs = outputs ? outputs : 1;
    k.filters = k.filters ? k.filters : 1;
    next = darknet_conv2d(n, x, &k, "input.");
    if (!next)
        return false;
    s = darknet_state(n, "state", 4, expr_forms(next).at);
    own = darknet_conv2d(n, s, &k, "self.");
    if (!own || expr_form(own, 2) != expr_form(next, 2) || expr_form(own, 3) != expr_form(next, 3))
        return own ? darknet_error(n, E_IMPORT, "its convolutions change the size of the image")
                   : false;
    next = build_add(b, next, own);
    if (darknet_int(n, "shortcut"))
        next = build_add(b, s, next);
    darknet_state_next(n, "state", next);
    k.filters = outputs;
    return darknet_done(n, darknet_conv2d(n, next, &k, "output."));
}
