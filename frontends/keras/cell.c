/* Recurrent layers as loops over their steps: other functions than nn.lstm has, masks, and
 * convolutions instead of products (ConvLSTM).
 *
 * What does not hang on the state is computed for all steps before the loop: x times the kernel. */
#include "frontends/keras/recurrent.h"

#include <string.h>

static const int64_t first_axis[] = {0};

/* The loop's variables: states, all results, the result before, then what stays as it is. */
enum { MOST_STATES = 2, ALL = MOST_STATES, BEFORE, DATA, MASK, VARS };

typedef struct {
    KerasCell        *k;
    const KerasSteps *how;
    const Idx        *T;
    const Expr       *w[4], *bias; /* of the state, gate by gate; bias of it (GRU) */
} Loop;

static const Expr *cut(const Loop *l, const Expr *x, uint32_t gate)
{
    return build_slice(&l->k->n.b, x, 1, gate * l->k->units, (gate + 1) * l->k->units);
}

static const Expr *gate(const Loop *l, const Expr *x)
{
    return keras_apply(&l->k->n, l->k->gate, x, 1);
}

static const Expr *function(const Loop *l, const Expr *x)
{
    return keras_apply(&l->k->n, l->k->activation, x, 1);
}

/* i f c o */
static bool lstm_step(const Loop *l, const Expr *x, const Expr *const *s, const Expr **next)
{
    const Build *b = &l->k->n.b;
    const Expr  *z = build_add(b, x, build2(b, "nn.dense", s[0], l->w[0], NULL)), *c;

    if (!z)
        return false;
    c = build_add(b, build_mul(b, gate(l, cut(l, z, 1)), s[1]),
                  build_mul(b, gate(l, cut(l, z, 0)), function(l, cut(l, z, 2))));
    next[1] = c;
    next[0] = build_mul(b, gate(l, cut(l, z, 3)), function(l, c));
    return next[0] != NULL;
}

/* z r h: h' = z h + (1 - z) f(..) */
static bool gru_step(const Loop *l, const Expr *x, const Expr *const *s, const Expr **next)
{
    const Build *b = &l->k->n.b;
    const Expr  *h = s[0], *u, *z, *r, *own;

    u = build2(b, "nn.dense", h, l->w[l->k->after ? 0 : 1], NULL);
    u = u && l->k->after && l->bias ? build_add(b, u, l->bias) : u;
    if (!u)
        return false;
    z = gate(l, build_add(b, cut(l, x, 0), cut(l, u, 0)));
    r = gate(l, build_add(b, cut(l, x, 1), cut(l, u, 1)));
    own = l->k->after ? build_mul(b, r, cut(l, u, 2))
                      : build2(b, "nn.dense", build_mul(b, r, h), l->w[2], NULL);
    own = function(l, build_add(b, cut(l, x, 2), own));
    if (!own || !z)
        return false;
    next[0] =
        build_add(b, build_mul(b, z, h), build_mul(b, build_sub(b, build_scalar(b, z, 1), z), own));
    return next[0] != NULL;
}

static bool rnn_step(const Loop *l, const Expr *x, const Expr *const *s, const Expr **next)
{
    const Build *b = &l->k->n.b;

    next[0] = function(l, build_add(b, x, build2(b, "nn.dense", s[0], l->w[0], NULL)));
    return next[0] != NULL;
}

static bool one_round(const Build *b, void *user, const Expr *i, const Expr *const *in,
                      const Expr **next)
{
    const Loop *l = user;
    uint32_t    states = keras_states(l->k), at = 0;
    const Expr *x, *y, *m = NULL, *s[MOST_STATES], *all, *before;

    /* in: the states, ALL, BEFORE, DATA and, if there is one, the mask */
    for (uint32_t k = 0; k < states; k++)
        s[k] = in[at++];
    all = in[at], before = in[at + 1];
    x = build_take(b, in[at + 2], i, 0);
    if (!x || !(l->k->kind == KERAS_LSTM  ? lstm_step(l, x, s, next)
                : l->k->kind == KERAS_GRU ? gru_step(l, x, s, next)
                                          : rnn_step(l, x, s, next)))
        return false;
    y = next[0];
    if (l->how->mask) {
        m = build_take(b, in[at + 3], i, 0);
        for (uint32_t k = 0; k < states; k++)
            next[k] = build_where(b, m, next[k], s[k]);
        y = build_where(b, m, y, l->how->zeros ? build_scalar(b, y, 0) : before);
        next[at + 3] = in[at + 3];
    }
    next[at] = build3(b, "update_slice", all, y, i, NULL);
    next[at + 1] = y;
    next[at + 2] = in[at + 2];
    return next[at] && y;
}

/* Columns of the state's weights, [units of them, H]. */
static const Expr *columns(const KerasCell *k, uint32_t from, uint32_t to)
{
    const Build *b = &k->n.b;
    const Expr  *w = build_slice(b, k->recurrent, 1, from * k->units, to * k->units), *folded;

    w = build_transpose(b, w, 2, (int64_t[]){1, 0});
    folded = w ? build_fold(b, w) : NULL;
    return folded ? folded : w;
}

/* x times the kernel and what of the bias goes with it: [T, N, G*H]. */
static const Expr *projected(Loop *l, const Expr *x)
{
    KerasCell   *k = l->k;
    const Build *b = &k->n.b;
    const Expr  *w = build_transpose(b, k->kernel, 2, (int64_t[]){1, 0}), *folded, *bias = k->bias;
    int64_t      cells = k->gates * k->units;

    folded = w ? build_fold(b, w) : NULL;
    if (bias && build_elems(b, bias) == 2 * cells) {
        bias = build_reshape(b, bias, 1, (int64_t[]){2 * cells});
        l->bias = build_slice(b, bias, 0, cells, 2 * cells);
        bias = build_slice(b, bias, 0, 0, cells);
        folded = folded ? folded : w;
        if (!k->after && l->bias) { /* it is added to the same sum */
            bias = build_add(b, bias, l->bias);
            l->bias = NULL;
        }
    }
    if (bias && expr_rank(bias) != 1)
        bias = build_reshape(b, bias, 1, (int64_t[]){cells});
    return keras_dense(&k->n, x, folded ? folded : w, bias);
}

bool keras_by_steps(KerasCell *k, const Expr *x, const KerasSteps *how, const Expr *const *states,
                    KerasSequence *out)
{
    const Build *b = &k->n.b;
    Loop         l = {.k = k, .how = how, .T = expr_form(x, 0)};
    const Idx   *dims[3] = {expr_form(x, 0), expr_form(x, 1), idx_const(b->c->arith, k->units)};
    const Expr  *first[VARS], *last[VARS];
    uint32_t     n = 0, at;

    l.w[0] = columns(k, 0, k->gates);
    if (k->kind == KERAS_GRU && !k->after) {
        l.w[1] = columns(k, 0, 2);
        l.w[2] = columns(k, 2, 3);
    }
    for (uint32_t i = 0; i < keras_states(k); i++)
        first[n++] = states[i];
    at = n;
    first[n++] = build_zeros_of(b, k->n.dtype, 3, dims);
    first[n++] = build_zeros_of(b, k->n.dtype, 2, dims + 1);
    first[n++] = projected(&l, build_reverse(b, x, how->reverse, first_axis));
    if (how->mask)
        first[n++] =
            build_expand_dims(b, build_reverse(b, how->mask, how->reverse, first_axis), 2, 1);
    for (uint32_t i = 0; i < n; i++)
        if (!first[i])
            return false;
    if (!keras_rounds(&k->n, l.T, n, first, one_round, &l, last))
        return false;
    for (uint32_t i = 0; i < keras_states(k); i++)
        out->states[i] = last[i];
    out->all = build_reverse(b, last[at], how->reverse, first_axis);
    out->last = last[at + 1];
    return out->all != NULL;
}
