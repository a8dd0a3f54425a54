/* RNN: layers of LSTM, GRU or plain cells, whose weights are one vector: for each layer and
 * direction
 *
 *     input weights [G*H, I], state weights [G*H, H], ..   then for each again   input bias [G*H],
 * state bias [G*H]
 *
 * nn.lstm and its like have the gates in ONNX's order, i o f c and z r h; these are i f c o and r z
 * h. */
#include "frontends/mxnet/mxnet.h"

#include <string.h>

typedef struct {
    MxNode         *n;
    const char     *op;
    uint32_t        gates;
    const uint32_t *order;
    int64_t         layers, two, H, biases; /* biases: where they begin */
    const Expr     *h, *c;                  /* states of all layers */
} Layers;

/* ---- parts of the vector ---------------------------------------------------------------------------- */

static const Expr *cells_of(MxNode *n, const Expr *all, int64_t from, int64_t count);

/* Of a concatenation, the operand that has them all. */
static const Expr *cells_of_joined(MxNode *n, const Expr *all, int64_t from, int64_t count)
{
    const Expr *tuple = call_arg(all, 0);
    int64_t     at = 0;

    for (uint32_t i = 0; i < tuple->nkids; i++) {
        int64_t cells = build_dim(&n->b, tuple->kids[i], 0);

        if (from >= at && from + count <= at + cells)
            return cells_of(n, tuple->kids[i], from - at, count);
        at += cells;
    }
    return build_slice(&n->b, all, 0, from, from + count);
}

static const Expr *cells_of(MxNode *n, const Expr *all, int64_t from, int64_t count)
{
    Ctx         *c = n->b.c;
    const Const *k = all->kind == EXPR_CONST ? all->u.constant : NULL;
    size_t       size = dtype_bytes(expr_dtype(all));

    if (call_is(all, "reshape") && call_arg(all, 0)->kind == EXPR_CONST) /* as Gluon joins them */
        k = call_arg(all, 0)->u.constant;
    if (k && k->data.n >= (size_t)(from + count) * size)
        return expr_const(
            c,
            const_new(c, intern_printf(c->strings, "%s.%lld", k->name, (long long)from),
                      type_tensor_i64(c, expr_dtype(all), 1, &count),
                      (Bytes){k->data.at + (size_t)from * size, (size_t)count * size}),
            n->b.loc);
    if (call_is(all, "concatenate") && call_arg(all, 0)->kind == EXPR_TUPLE)
        return cells_of_joined(n, all, from, count);
    return build_slice(&n->b, all, 0, from, from + count);
}

/* The gates' rows of `columns` cells in Relay's order, [1, G*H, columns]; columns 0: [1, G*H]. */
static const Expr *rows_of(const Layers *k, int64_t from, int64_t columns)
{
    const Build *b = &k->n->b;
    const Expr  *parts[4], *all;
    int64_t      each = k->H * (columns ? columns : 1);

    for (uint32_t i = 0; i < k->gates; i++)
        parts[i] = cells_of(k->n, k->n->in[1], from + k->order[i] * each, each);
    all = build_concat(b, k->gates, parts, 0);
    return columns ? build_reshape(b, all, 3, (int64_t[]){1, k->gates * k->H, columns})
                   : build_reshape(b, all, 2, (int64_t[]){1, k->gates * k->H});
}

/* ---- layers ----------------------------------------------------------------------------------------- */

static int64_t layer_cells(const Layers *k, int64_t inputs)
{
    return k->gates * k->H * (inputs + k->H);
}

/* x [T, N, I] to [T, N, D*H], and its last states; `at` is where its weights begin. */
static const Expr *layer(const Layers *k, const Expr *x, int64_t i, int64_t at, const Expr **h,
                         const Expr **c)
{
    const Build *b = &k->n->b;
    int64_t      inputs = build_dim(b, x, 2), rows = k->gates * k->H;
    const Expr  *w[2], *r[2], *bias[2], *args[6], *y;

    for (int64_t d = 0; d < k->two; d++) {
        int64_t weights = at + d * layer_cells(k, inputs);
        int64_t biases = k->biases + (i * k->two + d) * 2 * rows;

        w[d] = rows_of(k, weights, inputs);
        r[d] = rows_of(k, weights + rows * inputs, k->H);
        bias[d] = build_concat(
            b, 2, (const Expr *[]){rows_of(k, biases, 0), rows_of(k, biases + rows, 0)}, 1);
    }
    args[0] = x;
    args[1] = build_concat(b, (uint32_t)k->two, w, 0);
    args[2] = build_concat(b, (uint32_t)k->two, r, 0);
    args[3] = build_concat(b, (uint32_t)k->two, bias, 0);
    args[4] = build_slice(b, k->h, 0, i * k->two, (i + 1) * k->two);
    args[5] = k->c ? build_slice(b, k->c, 0, i * k->two, (i + 1) * k->two) : NULL;
    y = build_call(
        b, k->op, k->c ? 6 : 5, args,
        build_recurrent_attrs(
            b, &(BuildRecurrent){k->gates, k->H, k->two == 2 ? "bidirectional" : "forward",
                                 mx_is(k->n, "mode", "rnn_relu") ? "relu" : "tanh", true}));
    *h = build_proj(b, y, 1);
    *c = k->c ? build_proj(b, y, 2) : NULL;
    return build_recurrent_steps(b, build_proj(b, y, 0));
}

/* A state whose batch is 1 is that of all. */
static const Expr *state_of(const Layers *k, uint32_t i)
{
    MxNode    *n = k->n;
    const Idx *dims[3] = {idx_const(n->b.c->arith, k->layers * k->two), expr_form(n->in[0], 1),
                          idx_const(n->b.c->arith, k->H)};

    if (!mx_rank(n, i, 3, 3))
        return NULL;
    return expr_has_forms(n->in[i], 3, dims) ? n->in[i]
                                             : build_broadcast_to(&n->b, n->in[i], 3, dims);
}

static bool read_layers(MxNode *n, Layers *k)
{
    static const uint32_t lstm[] = {0, 3, 1, 2}, gru[] = {1, 0, 2}, plain[] = {0};
    int64_t               inputs, cells = 0;

    *k = (Layers){.n = n,
                  .op = "nn.rnn",
                  .gates = 1,
                  .order = plain,
                  .layers = mx_int(n, "num_layers"),
                  .two = 1 + mx_bool(n, "bidirectional"),
                  .H = mx_int(n, "state_size")};
    if (mx_is(n, "mode", "lstm"))
        k->op = "nn.lstm", k->gates = 4, k->order = lstm;
    else if (mx_is(n, "mode", "gru"))
        k->op = "nn.gru", k->gates = 3, k->order = gru;
    if (!mx_rank(n, 0, 3, 3) || !mx_rank(n, 1, 1, 1))
        return false;
    if (mx_has(n, "projection_size") || mx_has(n, "lstm_state_clip_min") ||
        mx_has(n, "lstm_state_clip_max"))
        return mx_error(n, E_UNSUPPORTED, "states that are projected or clipped");
    if (mx_bool(n, "use_sequence_length"))
        return mx_error(n, E_UNSUPPORTED, "sequences of different lengths");
    if (k->layers < 1 || k->layers > 1024 || k->H < 1 || k->H > 1 << 20)
        return mx_error(n, E_IMPORT, "%lld layers of %lld cells", (long long)k->layers,
                        (long long)k->H);
    inputs = build_dim(&n->b, n->in[0], 2);
    if (inputs > 1 << 24)
        return mx_error(n, E_IMPORT, "%lld inputs", (long long)inputs);
    for (int64_t i = 0; i < k->layers; i++)
        k->biases += k->two * layer_cells(k, i ? k->two * k->H : inputs);
    cells = k->biases + k->layers * k->two * 2 * k->gates * k->H;
    if (build_dim(&n->b, n->in[1], 0) != cells)
        return mx_error(n, E_IMPORT, "its parameters are %s, not %lld cells",
                        type_text(n->b.c, n->in[1]->type), (long long)cells);
    return (k->h = state_of(k, 2)) && (k->gates != 4 || (k->c = state_of(k, 3)));
}

bool mx_rnn(MxNode *n)
{
    const Build *b = &n->b;
    const Expr **h, **c, *x = n->in[0];
    Layers       k;
    int64_t      at = 0;
    uint32_t     count;

    if (!read_layers(n, &k))
        return false;
    count = (uint32_t)k.layers;
    h = NEW_ARRAY(b->c->arena, const Expr *, count);
    c = NEW_ARRAY(b->c->arena, const Expr *, count);
    for (uint32_t i = 0; i < count; i++) {
        int64_t inputs = build_dim(b, x, 2);

        if (!(x = layer(&k, x, i, at, &h[i], &c[i])))
            return false;
        at += k.two * layer_cells(&k, inputs);
    }
    if (n->nout > 1 && !mx_put(n, 1, build_concat(b, count, h, 0)))
        return false;
    if (n->nout > 2 && k.c && !mx_put(n, 2, build_concat(b, count, c, 0)))
        return false;
    return mx_done(n, x);
}
