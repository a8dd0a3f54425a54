/* LSTM, GRU and RNN are Relay operators; GRU and RNN whose directions differ in their activations
 * are unrolled over their (static) time.
 *
 * Shapes as in ONNX, layout 0: X [T, N, I], W [D, G*H, I], R [D, G*H, H], B [D, 2*G*H], states
 * [D, N, H], Y [T, D, N, H]; layout 1 has N first and is transposed on the way in and out. */
#include "frontends/onnx/onnx.h"

#include <string.h>

#define MAX_STEPS 512 /* unrolled */

typedef struct {
    const Expr *x, *w, *r, *bias, *h, *c;
    int64_t     T, N, I, H, D, gates;
    bool        batch_first;
    const char *direction;
} Cell;

static bool need_dims(Node *n, uint32_t i, uint32_t rank, const int64_t *dims)
{
    if (!node_need_rank(n, i, rank, rank))
        return false;
    for (uint32_t k = 0; k < rank; k++)
        if (build_dim(&n->b, n->in[i], k) != dims[k])
            return node_error(n, E_IMPORT, "input %u ('%s') is %s, dimension %u should be %lld", i,
                              n->p->input.at[i], type_text(n->b.c, n->in[i]->type), k,
                              (long long)dims[k]);
    return true;
}

/* A state's initial value, zeros if it is left out. */
static const Expr *state(Node *n, uint32_t i, const Cell *k)
{
    int64_t dims[3] = {k->D, k->N, k->H}, first[3] = {k->N, k->D, k->H};

    if (!node_has(n, i))
        return build_zeros(&n->b, expr_dtype(k->x), 3, dims);
    if (!need_dims(n, i, 3, k->batch_first ? first : dims))
        return NULL;
    return k->batch_first ? build_transpose(&n->b, n->in[i], 3, (int64_t[]){1, 0, 2}) : n->in[i];
}

static bool read_cell(Node *n, int64_t gates, Cell *k)
{
    const Build *b = &n->b;
    Ints         lens;

    *k = (Cell){.gates = gates, .batch_first = node_int(n, "layout", 0) != 0};
    k->direction = node_str(n, "direction", "forward");
    if (!node_need_rank(n, 0, 3, 3) || !node_need_rank(n, 1, 3, 3) || !node_need_rank(n, 2, 3, 3))
        return false;
    k->D = !strcmp(k->direction, "bidirectional") ? 2 : 1;
    if (k->D == 1 && strcmp(k->direction, "forward") && strcmp(k->direction, "reverse"))
        return node_error(n, E_IMPORT, "direction '%s'", k->direction);
    k->H = build_dim(b, n->in[2], 2);
    k->T = build_dim(b, n->in[0], k->batch_first ? 1 : 0);
    k->N = build_dim(b, n->in[0], k->batch_first ? 0 : 1);
    k->I = build_dim(b, n->in[0], 2);
    if (node_int(n, "hidden_size", k->H) != k->H)
        return node_error(n, E_IMPORT, "hidden_size is %lld, the weight has %lld",
                          (long long)node_int(n, "hidden_size", 0), (long long)k->H);
    if (!need_dims(n, 1, 3, (int64_t[]){k->D, gates * k->H, k->I}) ||
        !need_dims(n, 2, 3, (int64_t[]){k->D, gates * k->H, k->H}) ||
        (node_has(n, 3) && !need_dims(n, 3, 2, (int64_t[]){k->D, 2 * gates * k->H})))
        return false;
    if (node_has(n, 4)) {
        if (!node_const_ints(n, 4, &lens))
            return false;
        for (uint32_t i = 0; i < lens.n; i++)
            if (lens.at[i] != k->T)
                return node_error(n, E_UNSUPPORTED, "sequence_lens other than the whole length");
    }
    if (node_attr(n, "clip"))
        return node_error(n, E_UNSUPPORTED, "clip");
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
static bool activations(Node *n, const Cell *k, uint32_t count, const char *const *usual,
                        const char **out)
{
    const OnnxAttr *a = node_attr(n, "activations");

    node_ignore(n, "activation_alpha"); /* of activations that are refused below */
    node_ignore(n, "activation_beta");
    for (uint32_t i = 0; i < count * k->D; i++)
        out[i] = usual[i % count];
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

bool convert_lstm(Node *n)
{
    static const char *const usual[] = {"sigmoid", "tanh", "tanh"};
    const Build             *b = &n->b;
    LstmAttrs               *a = ATTRS(b, LstmAttrs);
    const char              *acts[6];
    const Expr              *args[6], *r;
    Cell                     k;

    if (!read_cell(n, 4, &k) || !(k.c = state(n, 6, &k)) || !activations(n, &k, 3, usual, acts))
        return false;
    for (uint32_t i = 0; i < 3 * k.D; i++)
        if (strcmp(acts[i], usual[i % 3]))
            return node_error(n, E_UNSUPPORTED, "activation '%s'", acts[i]);
    if (node_has(n, 7))
        return node_error(n, E_UNSUPPORTED, "peepholes");
    if (node_int(n, "input_forget", 0))
        return node_error(n, E_UNSUPPORTED, "input_forget 1");
    a->hidden_size = k.H;
    a->direction = k.direction;
    args[0] = k.x, args[1] = k.w, args[2] = k.r, args[3] = k.bias, args[4] = k.h, args[5] = k.c;
    r = build_call(b, n->relay, 6, args, a);
    return finish(n, &k, build_proj(b, r, 0), build_proj(b, r, 1), build_proj(b, r, 2));
}

/* ---- unrolled ------------------------------------------------------------------------------------- */

/* Part `i` of the [D, n*size] or [D, n*size, m] tensor of direction d, without the first dimension.
 */
static const Expr *part(const Build *b, const Expr *x, int64_t d, int64_t i, int64_t size,
                        int64_t n)
{
    int64_t  dims[2];
    uint32_t rank;

    x = build_slice(b, x, 0, d, d + 1);
    if (x)
        x = build_slice(b, x, 1, i * size, (i + n) * size);
    if (!x)
        return NULL;
    rank = expr_rank(x);
    for (uint32_t j = 1; j < rank; j++)
        dims[j - 1] = build_dim(b, x, j);
    return build_reshape(b, x, rank - 1, dims);
}

static const Expr *dense(const Build *b, const Expr *x, const Expr *w, const Expr *bias)
{
    x = build2(b, "nn.dense", x, w, NULL);
    return bias ? build2(b, "add", x, bias, NULL) : x;
}

typedef struct {
    const Expr *r[3], *rb[3]; /* recurrent weights and biases of the gates */
    const char *f, *g;
    bool        linear_before_reset;
} Gates;

static const Expr *gru_step(const Build *b, const Gates *k, const Expr *const *x, const Expr *h)
{
    const Expr *z =
        build1(b, k->f, build2(b, "add", x[0], dense(b, h, k->r[0], k->rb[0]), NULL), NULL);
    const Expr *r =
        build1(b, k->f, build2(b, "add", x[1], dense(b, h, k->r[1], k->rb[1]), NULL), NULL);
    const Expr *c;

    if (k->linear_before_reset)
        c = build2(b, "multiply", r, dense(b, h, k->r[2], k->rb[2]), NULL);
    else
        c = dense(b, build2(b, "multiply", r, h, NULL), k->r[2], k->rb[2]);
    c = build1(b, k->g, build2(b, "add", x[2], c, NULL), NULL);
    /* (1 - z) * c + z * h */
    return build2(
        b, "add",
        build2(b, "multiply", build2(b, "subtract", build_scalar(b, z, 1), z, NULL), c, NULL),
        build2(b, "multiply", z, h, NULL), NULL);
}

static const Expr *rnn_step(const Build *b, const Gates *k, const Expr *const *x, const Expr *h)
{
    return build1(b, k->f, build2(b, "add", x[0], dense(b, h, k->r[0], k->rb[0]), NULL), NULL);
}

typedef const Expr *Step(const Build *b, const Gates *k, const Expr *const *x, const Expr *h);

/* One direction: all inputs times W at once, then step by step.  ys[t] are [1, 1, N, H]. */
static const Expr *run(Node *n, const Cell *k, Gates *g, Step *step, int64_t d, bool reverse,
                       const Expr **ys)
{
    const Build *b = &n->b;
    const Expr  *h, *x = build_reshape(b, k->x, 2, (int64_t[]){k->T * k->N, k->I}), *in[3];

    for (int64_t i = 0; i < k->gates; i++) {
        const Expr *w = part(b, k->w, d, i, k->H, 1), *wb = part(b, k->bias, d, i, k->H, 1);

        g->r[i] = part(b, k->r, d, i, k->H, 1);
        g->rb[i] = part(b, k->bias, d, k->gates + i, k->H, 1);
        if (!(in[i] = dense(b, x, w, wb)))
            return NULL;
    }
    h = build_reshape(b, build_slice(b, k->h, 0, d, d + 1), 2, (int64_t[]){k->N, k->H});
    for (int64_t s = 0; s < k->T; s++) {
        int64_t     t = reverse ? k->T - 1 - s : s;
        const Expr *xt[3];

        for (int64_t i = 0; i < k->gates; i++)
            xt[i] = build_slice(b, in[i], 0, t * k->N, (t + 1) * k->N);
        if (!(h = step(b, g, xt, h)))
            return NULL;
        ys[t] = build_reshape(b, h, 4, (int64_t[]){1, 1, k->N, k->H});
    }
    return build_reshape(b, h, 3, (int64_t[]){1, k->N, k->H});
}

static bool unroll(Node *n, Cell *k, uint32_t nacts, const char *const *usual, Step *step)
{
    const Build *b = &n->b;
    const Expr  *y[2], *h[2], **ys;
    const char  *acts[4];
    Gates        g = {.linear_before_reset = node_int(n, "linear_before_reset", 0) != 0};

    if (!activations(n, k, nacts, usual, acts))
        return false;
    if (k->T < 1 || k->T > MAX_STEPS)
        return node_error(n, E_UNSUPPORTED, "%lld steps: at most %d are unrolled", (long long)k->T,
                          MAX_STEPS);
    ys = NEW_ARRAY(b->c->arena, const Expr *, (size_t)k->T);
    for (int64_t d = 0; d < k->D; d++) {
        g.f = acts[d * nacts];
        g.g = acts[d * nacts + nacts - 1];
        h[d] = run(n, k, &g, step, d, d == 1 || !strcmp(k->direction, "reverse"), ys);
        if (!h[d] || !(y[d] = build_concat(b, (uint32_t)k->T, ys, 0)))
            return false;
    }
    return finish(n, k, build_concat(b, (uint32_t)k->D, y, 1),
                  build_concat(b, (uint32_t)k->D, h, 0), NULL);
}

/* The name of an activation as an attribute of nn.gru and nn.rnn. */
static const char *activation_name(const char *op)
{
    return !strcmp(op, "nn.relu") ? "relu" : op;
}

/* All directions have the same activations: acts[0..count) holds them by name. */
static bool alike(Node *n, const Cell *k, uint32_t count, const char *const *usual,
                  const char **acts, bool *same)
{
    if (!activations(n, k, count, usual, acts))
        return false;
    *same = k->T > 0;
    for (uint32_t i = 0; i < count * k->D; i++) {
        *same = *same && !strcmp(acts[i], acts[i % count]);
        acts[i] = activation_name(acts[i]);
    }
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
    static const char *const usual[] = {"sigmoid", "tanh"};
    const char              *acts[4];
    GruAttrs                *a = ATTRS(&n->b, GruAttrs);
    bool                     same;
    Cell                     k;

    if (!read_cell(n, 3, &k) || !alike(n, &k, 2, usual, acts, &same))
        return false;
    if (!same)
        return unroll(n, &k, 2, usual, gru_step);
    a->hidden_size = k.H;
    a->direction = k.direction;
    a->linear_before_reset = node_int(n, "linear_before_reset", 0) != 0;
    a->f = acts[0];
    a->g = acts[1];
    return layer(n, &k, "nn.gru", a);
}

bool convert_rnn(Node *n)
{
    static const char *const usual[] = {"tanh"};
    const char              *acts[2];
    RnnAttrs                *a = ATTRS(&n->b, RnnAttrs);
    bool                     same;
    Cell                     k;

    if (!read_cell(n, 1, &k) || !alike(n, &k, 1, usual, acts, &same))
        return false;
    if (!same)
        return unroll(n, &k, 1, usual, rnn_step);
    a->hidden_size = k.H;
    a->direction = k.direction;
    a->f = acts[0];
    return layer(n, &k, "nn.rnn", a);
}
