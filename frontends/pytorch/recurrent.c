/* LSTM, GRU and RNN layers, by the names of their weights: for each layer and direction
 *
 *     weight_ih [G*H, I], weight_hh [G*H, H], and bias_ih, bias_hh [G*H]
 *
 * An LSTM may project what its cells give, m [N, H], to its state h = W m, [N, P], by weight_hr [P,
 * H] behind the others; weight_hh is [G*H, P] then.  That is an LSTM without one, whose recurrent
 * weight is weight_hh W, and whose results are multiplied by W when all steps are done.  There is
 * no m for the first state: what it adds to the first step comes in as more data, 0 in the other
 * steps.
 *
 * nn.lstm and its like have the gates in ONNX's order, i o f c and z r h; PyTorch has i f g o and
 * r z n. */
#include "frontends/pytorch/pytorch.h"

#include <string.h>

typedef struct {
    uint32_t        gates;
    const uint32_t *order; /* of PyTorch's gates */
    const char     *op;
    uint32_t        nparams, at; /* weights, and which one is next */
    const Expr    **params;
    const Expr     *x, *h, *c; /* states of all layers */
    bool            biases, two;
    int64_t         layers, H, P; /* P: size of states that are projected, 0: they are not */
} Layers;

/* Weights of a direction of a layer. */
static uint32_t each(const Layers *k)
{
    return (k->biases ? 4 : 2) + (k->P > 0);
}

/* weight_hr of a direction of the layer, [P, H]. */
static const Expr *projection(PtNode *n, const Layers *k, uint32_t d)
{
    const Expr *w = k->params[k->at + (d + 1) * each(k) - 1];

    if (!w || expr_rank(w) != 2 || build_dim(&n->b, w, 0) != k->P || build_dim(&n->b, w, 1) != k->H)
        return pt_error(n, E_IMPORT, "a projection is %s for %lld of %lld cells",
                        w ? type_text(n->b.c, w->type) : "None", (long long)k->P, (long long)k->H);
    return w;
}

static const Expr *folded(const Build *b, const Expr *w)
{
    const Expr *known = w ? build_fold(b, w) : NULL;

    return known ? known : w;
}

/* Rows of [G*H, ..] in the other order. */
static const Expr *reordered(PtNode *n, const Layers *k, const Expr *w, uint32_t rank)
{
    const Build *b = &n->b;
    const Expr  *parts[4];

    if (!w || expr_rank(w) != rank || build_dim(b, w, 0) != k->gates * k->H)
        return pt_error(n, E_IMPORT, "a weight is %s for %lld cells",
                        w ? type_text(b->c, w->type) : "None", (long long)k->H);
    for (uint32_t i = 0; i < k->gates; i++)
        parts[i] = build_slice(b, w, 0, k->order[i] * k->H, (k->order[i] + 1) * k->H);
    return folded(b, build_concat(b, k->gates, parts, 0));
}

/* Weights of all directions of a layer together, member `i` of each direction's. */
static const Expr *weights(PtNode *n, const Layers *k, uint32_t i, uint32_t rank)
{
    const Build *b = &n->b;
    const Expr  *parts[2];

    for (uint32_t d = 0; d <= k->two; d++) {
        const Expr *w = reordered(n, k, k->params[k->at + d * each(k) + i], rank);

        if (w && i == 1 && k->P)
            w = folded(b, build2(b, "nn.matmul", w, projection(n, k, d), NULL));
        if (!(parts[d] = build_expand_dims(b, w, 0, 1)))
            return NULL;
    }
    return build_concat(b, 1 + k->two, parts, 0);
}

static const Expr *bias_of(PtNode *n, const Layers *k)
{
    const Build *b = &n->b;
    int64_t      dims[2] = {1 + k->two, 2 * k->gates * k->H};

    if (!k->biases)
        return build_zeros(b, expr_dtype(k->x), 2, dims);
    return build_concat(b, 2, (const Expr *[]){weights(n, k, 2, 1), weights(n, k, 3, 1)}, 1);
}

/* States of one layer. */
static const Expr *states(PtNode *n, const Layers *k, const Expr *all, int64_t layer)
{
    int64_t d = 1 + k->two;

    return build_slice(&n->b, all, 0, layer * d, (layer + 1) * d);
}

/* ---- states that are projected -------------------------------------------------------------------- */

/* The first states [D, N, P] of a layer as data of their first steps, [T, N, D*P], and the weights
 * [D, G*H, D*P] of that data. */
static bool first_states(PtNode *n, const Layers *k, const Expr *h, const Expr **data,
                         const Expr **w)
{
    const Build *b = &n->b;
    const Idx   *T = expr_form(k->x, 0), *last = idx_addc(b->c->arith, T, -1);
    const Type  *number = type_tensor(b->c, DT_I64, 0, NULL);
    const Expr  *x[2], *rows[2];

    for (uint32_t d = 0; d <= k->two; d++) {
        const Expr *at = build_arange(b, T, DT_I64), *is;
        const Expr *hh = reordered(n, k, k->params[k->at + d * each(k) + 1], 2);

        is = d ? build2(b, "equal", at, build_values(b, number, (Dims){1, &last}), NULL)
               : build_by(b, "equal", at, 0);
        is = build_expand_dims(b, build_cast(b, is, expr_dtype(h)), 1, 2);
        x[d] = build_mul(b, is, build_slice(b, h, 0, d, d + 1));
        if (k->two)
            hh = build_pad(b, hh, (int64_t[]){0, 0, d ? k->P : 0, d ? 0 : k->P}, 0, NULL);
        if (!(rows[d] = build_expand_dims(b, hh, 0, 1)))
            return false;
    }
    *data = build_concat(b, 1 + k->two, x, 2);
    *w = build_concat(b, 1 + k->two, rows, 0);
    return *data && *w;
}

/* y [T, D, N, H], by the projection of each direction. */
static const Expr *projected(PtNode *n, const Layers *k, const Expr *y)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    const Expr  *parts[2];
    const Idx   *dims[4], *rows[2];

    if (!y)
        return NULL;
    dims[0] = expr_form(y, 0), dims[1] = idx_const(A, 1), dims[2] = expr_form(y, 2);
    dims[3] = idx_const(A, k->P);
    rows[0] = idx_mul(A, dims[0], dims[2]), rows[1] = expr_form(y, 3);
    for (uint32_t d = 0; d <= k->two; d++) {
        parts[d] = build_reshape_to(b, build_slice(b, y, 1, d, d + 1), 2, rows);
        parts[d] = build2(b, "nn.dense", parts[d], projection(n, k, d), NULL);
        if (!(parts[d] = build_reshape_to(b, parts[d], 4, dims)))
            return NULL;
    }
    return build_concat(b, 1 + k->two, parts, 1);
}

/* ---- layers ---------------------------------------------------------------------------------------- */

/* x [T, N, I] to [T, N, D*H], and the last states. */
static const Expr *layer(PtNode *n, Layers *k, int64_t i, const Expr **h, const Expr **c)
{
    const Build *b = &n->b;
    const Expr  *args[6] = {k->x, weights(n, k, 0, 2), weights(n, k, 1, 2), bias_of(n, k),
                            states(n, k, k->h, i)};
    const Expr  *r, *y, *data, *w;

    if (k->c)
        args[5] = states(n, k, k->c, i);
    if (k->P && args[4] && args[5]) {
        const Expr *h0 = folded(b, args[4]);
        double      v;

        if (!expr_const_f(h0, &v) || v != 0) {
            if (!first_states(n, k, h0, &data, &w))
                return NULL;
            args[0] = build_concat(b, 2, (const Expr *[]){k->x, data}, 2);
            args[1] = build_concat(b, 2, (const Expr *[]){args[1], w}, 2);
        }
        args[4] = build_zeros_of(b, expr_dtype(args[5]), 3, expr_forms(args[5]).at);
    }
    r = build_call(b, k->op, k->c ? 6 : 5, args,
                   build_recurrent_attrs(
                       b, &(BuildRecurrent){k->gates, k->H, k->two ? "bidirectional" : "forward",
                                            strstr(n->p->target, "relu") ? "relu" : "tanh", true}));
    if (!r)
        return NULL;
    y = build_proj(b, r, 0);
    *h = build_proj(b, r, 1);
    *c = k->c ? build_proj(b, r, 2) : NULL;
    if (k->P) {
        y = projected(n, k, y);
        *h = build_squeeze(b, projected(n, k, build_expand_dims(b, *h, 0, 1)), 1, (int64_t[]){0});
    }
    return build_recurrent_steps(b, y);
}

static bool read_layers(PtNode *n, Layers *k)
{
    uint32_t     count;
    const Expr **hx;

    k->biases = pt_bool(n, "has_biases", true);
    k->layers = pt_int(n, "num_layers", 1);
    k->two = pt_bool(n, "bidirectional", false);
    if (pt_bool(n, "train", false) && pt_float(n, "dropout", 0) != 0)
        return pt_for_training(n);
    (void)pt_float(n, "dropout", 0);
    if (!(k->x = pt_tensor(n, "input")) || !pt_tensors(n, "params", &k->nparams, &k->params))
        return false;
    if (k->gates == 4) {
        if (!pt_tensors(n, "hx", &count, &hx) || count != 2 || !hx[0] || !hx[1])
            return pt_error(n, E_IMPORT, "hx should be two tensors");
        k->h = hx[0];
        k->c = hx[1];
    } else if (!(k->h = pt_tensor(n, "hx"))) {
        return false;
    }
    if (expr_rank(k->x) != 3 || expr_rank(k->h) != 3 || (k->c && expr_rank(k->c) != 3))
        return pt_error(n, E_UNSUPPORTED, "data of %s with states of %s",
                        type_text(n->b.c, k->x->type), type_text(n->b.c, k->h->type));
    k->H = build_dim(&n->b, k->c ? k->c : k->h, 2);
    k->P = build_dim(&n->b, k->h, 2) == k->H ? 0 : build_dim(&n->b, k->h, 2);
    if (k->layers < 1 || k->layers > 1 << 10 ||
        k->nparams != (uint64_t)k->layers * (1 + k->two) * each(k))
        return pt_error(n, E_UNSUPPORTED, "%u weights for %lld layers", k->nparams,
                        (long long)k->layers);
    return true;
}

static bool recurrent(PtNode *n, Layers k)
{
    const Build *b = &n->b;
    const Expr **h, **c;
    bool         first = pt_bool(n, "batch_first", false);

    if (!read_layers(n, &k))
        return false;
    h = NEW_ARRAY(b->c->arena, const Expr *, (size_t)k.layers);
    c = NEW_ARRAY(b->c->arena, const Expr *, (size_t)k.layers);
    if (first)
        k.x = build_transpose(b, k.x, 3, (int64_t[]){1, 0, 2});
    for (int64_t i = 0; i < k.layers; i++) {
        if (!(k.x = layer(n, &k, i, &h[i], &c[i])))
            return false;
        k.at += (1 + k.two) * each(&k);
    }
    if (first)
        k.x = build_transpose(b, k.x, 3, (int64_t[]){1, 0, 2});
    return pt_done_at(n, 0, k.x) && pt_done_at(n, 1, build_concat(b, (uint32_t)k.layers, h, 0)) &&
           (!k.c || pt_done_at(n, 2, build_concat(b, (uint32_t)k.layers, c, 0)));
}

bool aten_lstm(PtNode *n)
{
    return recurrent(n, (Layers){.gates = 4, .op = "nn.lstm", .order = (uint32_t[]){0, 3, 1, 2}});
}

bool aten_gru(PtNode *n)
{
    return recurrent(n, (Layers){.gates = 3, .op = "nn.gru", .order = (uint32_t[]){1, 0, 2}});
}

bool aten_rnn(PtNode *n)
{
    return recurrent(n, (Layers){.gates = 1, .op = "nn.rnn", .order = (uint32_t[]){0}});
}
