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

/* ---- conv_lstm ---------------------------------------------------------------------------------------- */

/* Its convolutions in the order of the file: v of the cells, w of the last result, u of the input.
 */
typedef enum { VF, VI, VO, WF, WI, WG, WO, UF, UI, UG, UO, CONVS } ConvOfLstm;

static bool read_convs(DarknetNode *n, const DarknetConv *k, int64_t channels, bool narrow,
                       DarknetFilters *out)
{
    static const char *const roles[] = {"vf.", "vi.", "vo.", "wf.", "wi.", "wg.",
                                        "wo.", "uf.", "ui.", "ug.", "uo."};

    for (uint32_t i = 0; i < CONVS; i++) {
        bool    there = i < WF ? darknet_int(n, "peephole") : i == WF || i >= UF || !narrow;
        int64_t in = i >= UF ? channels : i == WF && narrow ? 2 * k->filters : k->filters;

        if (there && !darknet_read_filters(n, in, k, roles[i], &out[i]))
            return false;
    }
    return true;
}

/* The sum of two or three convolutions, of which some are not there. */
static const Expr *gate(DarknetNode *n, const char *activation, const DarknetFilters *v,
                        const Expr *c, const DarknetFilters *w, const Expr *h,
                        const DarknetFilters *u, const Expr *x)
{
    const Expr *sum = darknet_filtered(n, x, u);

    if (w->w)
        sum = build_add(&n->b, darknet_filtered(n, h, w), sum);
    if (v && v->w)
        sum = build_add(&n->b, sum, darknet_filtered(n, c, v));
    return sum ? darknet_activate(n, activation, sum) : NULL;
}

/* As lstm, with images and convolutions; the gates may see the cells (peephole).  With a bottleneck
 * they see one convolution of the last result and the input together, half of which may be added to
 * the result.  Cells stay within a bound, which is 32 for a step. */
bool darknet_conv_lstm(DarknetNode *n)
{
    const Build   *b = &n->b;
    const Expr    *x = darknet_image(n, n->x), *h, *c, *f, *i, *g, *o, *y;
    bool           narrow = darknet_int(n, "bottleneck");
    const char    *activation = darknet_text(n, "lstm_activation");
    double         most = (double)darknet_int(n, "state_constrain");
    DarknetFilters k[CONVS] = {0}, none = {0};
    DarknetConv    how = {.stride_x = 1,
                          .stride_y = 1,
                          .batch_normalize = darknet_int(n, "batch_normalize"),
                          .activation = darknet_text(n, "activation")};
    const Idx     *dims[4];

    if (!x || !darknet_size(n, "output", 1, &how.filters) ||
        !darknet_size(n, "size", 1, &how.size) || !darknet_size(n, "groups", 1, &how.groups) ||
        !darknet_size(n, "dilation", 1, &how.dilation) || !darknet_padding(n, &how))
        return false;
    if (2 * how.padding != how.size - 1)
        return darknet_error(n, E_IMPORT, "its convolutions change the size of the image");
    if (narrow && build_dim(b, x, 1) != how.filters)
        return darknet_error(n, E_IMPORT, "a bottleneck of %lld channels and %lld",
                             (long long)how.filters, (long long)build_dim(b, x, 1));
    if (!read_convs(n, &how, build_dim(b, x, 1), narrow, k))
        return false;
    for (uint32_t d = 0; d < 4; d++)
        dims[d] = d == 1 ? idx_const(b->c->arith, how.filters) : expr_form(x, d);
    h = darknet_state(n, "h", 4, dims);
    c = darknet_state(n, "c", 4, dims);
    if (narrow) {
        x = darknet_filtered(n, build_concat(b, 2, (const Expr *[]){h, x}, 1), &k[WF]);
        x = x ? darknet_activate(n, activation, x) : NULL;
        k[WF] = none;
    }
    if (!x || !(f = gate(n, "logistic", &k[VF], c, &k[WF], h, &k[UF], x)) ||
        !(i = gate(n, "logistic", &k[VI], c, &k[WI], h, &k[UI], x)) ||
        !(g = gate(n, activation, NULL, c, &k[WG], h, &k[UG], x)))
        return false;
    c = build_add(b, build_mul(b, f, c), build_mul(b, i, g));
    if (!c || !(o = gate(n, "logistic", &k[VO], c, &k[WO], h, &k[UO], x)))
        return false;
    h = y = build_mul(b, o, darknet_activate(n, activation, c));
    if (most > 0)
        c = build_by(b, "maximum", build_by(b, "minimum", c, most), -most);
    darknet_state_next(n, "h", h);
    darknet_state_next(n, "c", c);
    if (narrow && darknet_int(n, "shortcut")) {
        int64_t half = how.filters / 2;

        if (half * 2 != how.filters)
            return darknet_error(n, E_UNSUPPORTED, "a shortcut of half of %lld channels",
                                 (long long)how.filters);
        y = build_concat(b, 2,
                         (const Expr *[]){build_add(b, build_slice(b, h, 1, 0, half),
                                                    build_slice(b, x, 1, 0, half)),
                                          build_slice(b, h, 1, half, how.filters)},
                         1);
    }
    return darknet_done(n, y);
}

/* Pictures of runs before; in one step, as these networks are used, they are zeros. */
bool darknet_history(DarknetNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = darknet_image(n, n->x), *rest;
    int64_t      size, cells[4];

    if (!x || !darknet_size(n, "history_size", 1, &size))
        return false;
    if (size == 1)
        return darknet_done(n, x);
    for (uint32_t i = 0; i < 4; i++)
        cells[i] = build_dim(b, x, i);
    if (!checked_mul(cells[1], size - 1, &cells[1]) || cells[1] > INT32_MAX)
        return darknet_error(n, E_UNSUPPORTED, "a history of %lld", (long long)size);
    rest = build_zeros(b, DT_F32, 4, cells);
    return rest && darknet_done(n, build_concat(b, 2, (const Expr *[]){x, rest}, 1));
}
