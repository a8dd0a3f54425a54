/* Cells of recurrent layers: one step. */
#include "frontends/tensorflow/tensorflow.h"

/* [x, h] w + b: [rows, columns] */
static const Expr *gates(const Build *b, const Expr *x, const Expr *h, const Expr *w,
                         const Expr *bias)
{
    const Expr *both = build_concat(b, 2, (const Expr *[]){x, h}, 1);

    return build_add(b, build2(b, "nn.matmul", both, w, NULL), bias);
}

static const Expr *gate(const Build *b, const Expr *all, int64_t i, int64_t cells)
{
    return build_slice(b, all, 1, i * cells, (i + 1) * cells);
}

/* Inputs: x, the cell's state, h, weights [x + h, 4 cells], three peepholes, bias; gates are i, c,
 * f, o.  Outputs: i, the new state, f, o, c, tanh of the state, h. */
bool tf_lstm_block_cell(TfNode *n)
{
    const Build *b = &n->b;
    const Expr  *all, *i, *f, *o, *c, *state = n->in[1], *out[7];
    double       clip = tf_float(n, "cell_clip");
    bool         peeps = tf_int(n, "use_peephole");
    int64_t      cells;

    if (!tf_rank(n, 0, 2, 2) || !tf_rank(n, 1, 2, 2) || !tf_rank(n, 2, 2, 2) ||
        !tf_rank(n, 3, 2, 2))
        return false;
    cells = build_dim(b, state, 1);
    all = gates(b, n->in[0], n->in[2], n->in[3], n->in[7]);
    i = gate(b, all, 0, cells);
    c = build1(b, "tanh", gate(b, all, 1, cells), NULL);
    f = build_by(b, "add", gate(b, all, 2, cells), tf_float(n, "forget_bias"));
    o = gate(b, all, 3, cells);
    if (peeps) {
        i = build_add(b, i, build_mul(b, state, n->in[4]));
        f = build_add(b, f, build_mul(b, state, n->in[5]));
    }
    i = build1(b, "sigmoid", i, NULL);
    f = build1(b, "sigmoid", f, NULL);
    state = build_add(b, build_mul(b, c, i), build_mul(b, state, f));
    if (clip > 0)
        state = build_clip(b, state, -clip, clip);
    if (peeps)
        o = build_add(b, o, build_mul(b, state, n->in[6]));
    o = build1(b, "sigmoid", o, NULL);
    out[0] = i, out[1] = state, out[2] = f, out[3] = o, out[4] = c;
    out[5] = build1(b, "tanh", state, NULL);
    out[6] = build_mul(b, out[5], o);
    for (uint32_t k = 0; k < 7; k++)
        if (!tf_put(n, k, out[k]))
            return false;
    return true;
}

/* Inputs: x, h, weights of the gates r and u, those of the candidate, their biases.  Outputs: r, u,
 * the candidate, h. */
bool tf_gru_block_cell(TfNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *h = n->in[1], *all, *r, *u, *c;
    int64_t      cells;

    for (uint32_t i = 0; i < 4; i++)
        if (!tf_rank(n, i, 2, 2))
            return false;
    cells = build_dim(b, h, 1);
    all = build1(b, "sigmoid", gates(b, x, h, n->in[2], n->in[4]), NULL);
    r = gate(b, all, 0, cells);
    u = gate(b, all, 1, cells);
    c = build1(b, "tanh", gates(b, x, build_mul(b, r, h), n->in[3], n->in[5]), NULL);
    h = build_add(b, build_mul(b, u, build_sub(b, h, c)), c);
    return tf_put(n, 0, r) && tf_put(n, 1, u) && tf_put(n, 2, c) && tf_put(n, 3, h);
}
