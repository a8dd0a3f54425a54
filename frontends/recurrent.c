/* LSTM, GRU and simple recurrent layers, as nn.lstm, nn.gru and nn.rnn. */
#include "frontends/calls.h"

const void *build_recurrent_attrs(const Build *b, const BuildRecurrent *k)
{
    LstmAttrs *lstm;
    GruAttrs  *gru;
    RnnAttrs  *rnn;

    if (k->gates == 4) {
        lstm = ATTRS(b, LstmAttrs);
        lstm->hidden_size = k->hidden;
        lstm->direction = k->direction;
        return lstm;
    }
    if (k->gates == 3) {
        gru = ATTRS(b, GruAttrs);
        gru->hidden_size = k->hidden;
        gru->direction = k->direction;
        gru->linear_before_reset = k->linear_before_reset;
        return gru;
    }
    rnn = ATTRS(b, RnnAttrs);
    rnn->hidden_size = k->hidden;
    rnn->direction = k->direction;
    rnn->f = k->f;
    return rnn;
}

const Expr *build_recurrent_steps(const Build *b, const Expr *y)
{
    const Idx *dims[3];

    y = build_transpose(b, y, 4, (int64_t[]){0, 2, 1, 3});
    if (!y)
        return NULL;
    dims[0] = expr_form(y, 0), dims[1] = expr_form(y, 1);
    dims[2] = idx_mul(b->c->arith, expr_form(y, 2), expr_form(y, 3));
    return build_reshape_to(b, y, 3, dims);
}
