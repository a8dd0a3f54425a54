/* LSTM, GRU and RNN: operators of Relay where there is a step and the cell is the usual one, else
 * loops (recurrent_loop.c).
 *
 * Shapes as in ONNX, layout 0: X [T, N, I], W [D, G*H, I], R [D, G*H, H], B [D, 2*G*H], states
 * [D, N, H], Y [T, D, N, H]; layout 1 has N first and is transposed on the way in and out. */
#include "frontends/onnx/onnx.h"

#include <string.h>

typedef OnnxRecurrent Cell;

static bool need_forms(Node *n, uint32_t i, uint32_t rank, const Idx *const *dims)
{
    if (!node_need_rank(n, i, rank, rank))
        return false;
    for (uint32_t k = 0; k < rank; k++)
        if (expr_form(n->in[i], k) != dims[k])
            return node_error(n, E_IMPORT, "input %u ('%s') is %s, dimension %u should be %s", i,
                              n->p->input.at[i], type_text(n->b.c, n->in[i]->type), k,
                              dim_text(n->b.c, dims[k]));
    return true;
}

static bool need_dims(Node *n, uint32_t i, uint32_t rank, const int64_t *dims)
{
    return need_forms(n, i, rank, dims_of_i64(n->b.c, dims, rank).at);
}

/* A state's initial value, zeros if it is left out. */
static const Expr *state(Node *n, uint32_t i, const Cell *k)
{
    const Idx *D = idx_const(n->b.c->arith, k->D), *H = idx_const(n->b.c->arith, k->H);
    const Idx *dims[3] = {D, k->N, H}, *first[3] = {k->N, D, H};

    if (!node_has(n, i))
        return build_zeros_of(&n->b, expr_dtype(k->x), 3, dims);
    if (!need_forms(n, i, 3, k->batch_first ? first : dims))
        return NULL;
    return k->batch_first ? build_transpose(&n->b, n->in[i], 3, (int64_t[]){1, 0, 2}) : n->in[i];
}

/* The lengths of sequences, unless all are whole. */
static bool read_lengths(Node *n, Cell *k)
{
    int64_t whole;
    bool    all = true;
    Ints    v;

    if (!need_forms(n, 4, 1, &k->N))
        return false;
    if (build_fold(&n->b, n->in[4])) {
        if (!node_const_ints(n, 4, &v))
            return false;
        for (uint32_t i = 0; i < v.n; i++) {
            all &= idx_is_const(k->T, &whole) && v.at[i] == whole;
            if (v.at[i] < 0 || v.at[i] > k->T->hi)
                return node_error(n, E_IMPORT, "a sequence of %lld steps, of %s",
                                  (long long)v.at[i], dim_text(n->b.c, k->T));
        }
        if (all)
            return true;
    }
    k->lens = build_cast(&n->b, n->in[4], DT_I64);
    return k->lens != NULL;
}

static bool read_cell(Node *n, int64_t gates, Cell *k)
{
    const Build *b = &n->b;
    double       clip;

    *k = (Cell){.gates = gates, .batch_first = node_int(n, "layout", 0) != 0};
    k->direction = node_str(n, "direction", "forward");
    if (!node_need_rank(n, 0, 3, 3) || !node_need_rank(n, 1, 3, 3) || !node_need_rank(n, 2, 3, 3))
        return false;
    k->D = !strcmp(k->direction, "bidirectional") ? 2 : 1;
    if (k->D == 1 && strcmp(k->direction, "forward") && strcmp(k->direction, "reverse"))
        return node_error(n, E_IMPORT, "direction '%s'", k->direction);
    k->H = build_dim(b, n->in[2], 2);
    k->T = expr_form(n->in[0], k->batch_first ? 1 : 0);
    k->N = expr_form(n->in[0], k->batch_first ? 0 : 1);
    k->I = build_dim(b, n->in[0], 2);
    if (node_int(n, "hidden_size", k->H) != k->H)
        return node_error(n, E_IMPORT, "hidden_size is %lld, the weight has %lld",
                          (long long)node_int(n, "hidden_size", 0), (long long)k->H);
    if (!need_dims(n, 1, 3, (int64_t[]){k->D, gates * k->H, k->I}) ||
        !need_dims(n, 2, 3, (int64_t[]){k->D, gates * k->H, k->H}) ||
        (node_has(n, 3) && !need_dims(n, 3, 2, (int64_t[]){k->D, 2 * gates * k->H})))
        return false;
    if (node_has(n, 4) && !read_lengths(n, k))
        return false;
    clip = node_float(n, "clip", 0);
    if (clip < 0)
        return node_error(n, E_IMPORT, "clip %g", clip);
    k->clip = clip;
    k->x = k->batch_first ? build_transpose(b, n->in[0], 3, (int64_t[]){1, 0, 2}) : n->in[0];
    k->w = n->in[1];
    k->r = n->in[2];
    k->bias = node_has(n, 3)
                  ? n->in[3]
                  : build_zeros(b, expr_dtype(k->x), 2, (int64_t[]){k->D, 2 * gates * k->H});
    return k->x && k->bias && (k->h = state(n, 5, k));
}

/* Y [T, D, N, H] and states [D, N, H] as the node's layout has them. */
static bool finish(Node *n, const Cell *k, const Expr *y, const Expr *h, const Expr *c)
{
    const Build *b = &n->b;

    if (k->batch_first) {
        y = build_transpose(b, y, 4, (int64_t[]){2, 0, 1, 3});
        h = build_transpose(b, h, 3, (int64_t[]){1, 0, 2});
        c = c ? build_transpose(b, c, 3, (int64_t[]){1, 0, 2}) : NULL;
    }
    n->out[0] = y;
    n->out[1] = h;
    n->out[2] = c;
    return y && h;
}

/* Activations by name, `count` for a direction; only ones without parameters. */
static bool activations(Node *n, Cell *k, uint32_t count, const char *const *names)
{
    const char    **out = k->f;
    const OnnxAttr *a = node_attr(n, "activations");

    node_ignore(n, "activation_alpha"); /* of activations that are refused below */
    node_ignore(n, "activation_beta");
    for (uint32_t i = 0; i < count * k->D; i++)
        out[i] = names[i % count];
    if (!a || !a->strings.n)
        return true;
    if (a->strings.n != count * k->D)
        return node_error(n, E_IMPORT, "%u activations, not %u", a->strings.n,
                          (uint32_t)(count * k->D));
    for (uint32_t i = 0; i < a->strings.n; i++) {
        const char *name =
            intern_printf(n->b.c->strings, "%.*s", (int)a->strings.at[i].n,
                          a->strings.at[i].n ? (const char *)a->strings.at[i].at : "");

        out[i] = !strcmp(name, "Sigmoid") ? "sigmoid"
                 : !strcmp(name, "Tanh")  ? "tanh"
                 : !strcmp(name, "Relu")  ? "nn.relu"
                                          : NULL;
        if (!out[i])
            return node_error(n, E_UNSUPPORTED, "activation '%s'", name);
    }
    return true;
}

/* Is it what an operator of Relay computes? */
static bool usual(const Cell *k)
{
    return k->T->lo > 0 && !k->lens && !k->peephole && !k->input_forget && k->clip == 0;
}

static bool by_loop(Node *n, const Cell *k)
{
    const Expr *out[3] = {NULL};

    return onnx_recurrent_loop(n, k, out) && finish(n, k, out[0], out[1], out[2]);
}

bool convert_lstm(Node *n)
{
    static const char *const names[] = {"sigmoid", "tanh", "tanh"};
    const Build             *b = &n->b;
    LstmAttrs               *a = ATTRS(b, LstmAttrs);
    const Expr              *args[6], *r;
    bool                     known = true;
    Cell                     k;

    if (!read_cell(n, 4, &k) || !(k.c = state(n, 6, &k)) || !activations(n, &k, 3, names))
        return false;
    for (uint32_t i = 0; i < 3 * k.D; i++)
        known &= !strcmp(k.f[i], names[i % 3]);
    if (node_has(n, 7) && !need_dims(n, 7, 2, (int64_t[]){k.D, 3 * k.H}))
        return false;
    k.peephole = node_has(n, 7) ? n->in[7] : NULL;
    k.input_forget = node_int(n, "input_forget", 0) != 0;
    if (!known || !usual(&k))
        return by_loop(n, &k);
    a->hidden_size = k.H;
    a->direction = k.direction;
    args[0] = k.x, args[1] = k.w, args[2] = k.r, args[3] = k.bias, args[4] = k.h, args[5] = k.c;
    r = build_call(b, n->relay, 6, args, a);
    return finish(n, &k, build_proj(b, r, 0), build_proj(b, r, 1), build_proj(b, r, 2));
}

/* The name of an activation as an attribute of nn.gru and nn.rnn. */
static const char *activation_name(const char *op)
{
    return !strcmp(op, "nn.relu") ? "relu" : op;
}

/* All directions have the same `count` activations. */
static bool alike(const Cell *k, uint32_t count)
{
    for (uint32_t i = 0; i < count * k->D; i++)
        if (strcmp(k->f[i], k->f[i % count]) != 0)
            return false;
    return true;
}

/* nn.gru, nn.rnn: (y, h). */
static bool layer(Node *n, const Cell *k, const char *op, const void *attrs)
{
    const Build *b = &n->b;
    const Expr  *args[5] = {k->x, k->w, k->r, k->bias, k->h};
    const Expr  *r = build_call(b, op, 5, args, attrs);

    return finish(n, k, build_proj(b, r, 0), build_proj(b, r, 1), NULL);
}

bool convert_gru(Node *n)
{
    static const char *const names[] = {"sigmoid", "tanh"};
    GruAttrs                *a = ATTRS(&n->b, GruAttrs);
    Cell                     k;

    if (!read_cell(n, 3, &k) || !activations(n, &k, 2, names))
        return false;
    k.linear_before_reset = node_int(n, "linear_before_reset", 0) != 0;
    if (!alike(&k, 2) || !usual(&k))
        return by_loop(n, &k);
    a->hidden_size = k.H;
    a->direction = k.direction;
    a->linear_before_reset = k.linear_before_reset;
    a->f = activation_name(k.f[0]);
    a->g = activation_name(k.f[1]);
    return layer(n, &k, "nn.gru", a);
}

bool convert_rnn(Node *n)
{
    static const char *const names[] = {"tanh"};
    RnnAttrs                *a = ATTRS(&n->b, RnnAttrs);
    Cell                     k;

    if (!read_cell(n, 1, &k) || !activations(n, &k, 1, names))
        return false;
    if (!alike(&k, 1) || !usual(&k))
        return by_loop(n, &k);
    a->hidden_size = k.H;
    a->direction = k.direction;
    a->f = activation_name(k.f[0]);
    return layer(n, &k, "nn.rnn", a);
}
