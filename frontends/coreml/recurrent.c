/* Recurrent layers.  Gates stand in Core ML's orders,
 *
 *     layers: a weight for each      lstm: i f o z      gru: r o z
 *
 * and in nn.lstm's and nn.gru's, i o f c and z r h.  Layers hold what goes into an activation to
 * [-50, 50], where sigmoid and tanh have reached their ends; other activations are refused. */
#include "frontends/coreml/coreml.h"

#include <string.h>

/* What one direction has: [G * H, I], [G * H, H], [2 * G * H] in Relay's order. */
typedef struct {
    const Expr *w, *r, *b, *h, *c; /* h, c: [N, H]; NULL: zeros */
} Direction;
typedef struct {
    const char *op, *activation; /* activation: of nn.rnn */
    uint32_t    gates, n;        /* n: directions */
    int64_t     H;
    bool        reverse, linear_before_reset;
    Direction   of[2];
} Recurrent;

static const Expr *zeros(const Build *b, const Expr *x, const Recurrent *k)
{
    return build_broadcast_to(b, build_scalar(b, x, 0), 2,
                              (const Idx *[]){expr_form(x, 1), idx_const(b->c->arith, k->H)});
}

/* One of the directions' parts, each with a dimension in front. */
static const Expr *together(CmlNode *n, const Recurrent *k, const Expr *x, size_t member)
{
    const Build *b = &n->b;
    const Expr  *parts[2];

    for (uint32_t d = 0; d < k->n; d++) {
        const Expr *e = *(const Expr *const *)((const char *)&k->of[d] + member);

        if (!e && member == offsetof(Direction, b))
            e = build_zeros(b, expr_dtype(x), 1, (int64_t[]){2 * k->gates * k->H});
        else if (!e)
            e = zeros(b, x, k);
        parts[d] = build_expand_dims(b, e, 0, 1);
        if (!parts[d])
            return NULL;
    }
    return build_concat(b, k->n, parts, 0);
}

/* x [T, N, I] to all of y [T, N, D * H], or that of the last round [N, D * H], and the states. */
static bool run(CmlNode *n, const Recurrent *k, const Expr *x, const Expr **y, const Expr **h,
                const Expr **c)
{
    const Build   *b = &n->b;
    const Expr    *args[6] = {x,
                              together(n, k, x, offsetof(Direction, w)),
                              together(n, k, x, offsetof(Direction, r)),
                              together(n, k, x, offsetof(Direction, b)),
                              together(n, k, x, offsetof(Direction, h)),
                           k->gates == 4 ? together(n, k, x, offsetof(Direction, c)) : NULL};
    BuildRecurrent how = {k->gates, k->H,
                          k->n == 2    ? "bidirectional"
                          : k->reverse ? "reverse"
                                       : "forward",
                          k->activation, k->linear_before_reset};
    const Expr    *all =
        build_call(b, k->op, k->gates == 4 ? 6 : 5, args, build_recurrent_attrs(b, &how));
    const Idx *units = idx_const(b->c->arith, k->n * k->H);

    if (!(*y = build_recurrent_steps(b, build_proj(b, all, 0))))
        return false;
    for (uint32_t i = 0; i < (k->gates == 4 ? 2u : 1u); i++) {
        const Expr *s = build_transpose(b, build_proj(b, all, 1 + i), 3, (int64_t[]){1, 0, 2});

        if (!s)
            return false;
        *(i ? c : h) = build_reshape_to(b, s, 2, (const Idx *[]){expr_form(s, 0), units});
    }
    return *h != NULL;
}

/* ---- layers ------------------------------------------------------------------------------------------ */

/* Parts [H, ..] of a message, one after another. */
static const Expr *stacked(CmlNode *n, const CmlMessage *m, const char *const *fields,
                           uint32_t count, uint32_t rank, const int64_t *dims)
{
    const Expr *parts[4];

    for (uint32_t i = 0; i < count; i++) {
        CmlMessage w;

        if (!cml_read_message(m, fields[i], 0, &w))
            return cml_error(n, E_IMPORT, "its %s is missing", fields[i]);
        if (!(parts[i] = cml_weight_of(n, &w, fields[i], rank, dims, 0)))
            return NULL;
    }
    return cml_folded(n, fields[0], build_concat(&n->b, count, parts, 0));
}

typedef struct {
    const char *const *input, *const *recursion, *const *bias;
} Fields;

static bool read_direction(CmlNode *n, const Recurrent *k, const CmlMessage *m, int64_t in,
                           const Fields *f, bool biases, Direction *d)
{
    const Build *b = &n->b;
    int64_t      w[2] = {k->H, in}, r[2] = {k->H, k->H};

    if (!(d->w = stacked(n, m, f->input, k->gates, 2, w)) ||
        !(d->r = stacked(n, m, f->recursion, k->gates, 2, r)))
        return false;
    if (!biases)
        return true;
    d->b = stacked(n, m, f->bias, k->gates, 1, &k->H);
    d->b = d->b ? build_concat(b, 2,
                               (const Expr *[]){
                                   d->b, build_zeros(b, DT_F32, 1, (int64_t[]){k->gates * k->H})},
                               0)
                : NULL;
    return d->b != NULL;
}

/* The activations of the layer are these. */
static bool check_activations(CmlNode *n, const char *field, uint32_t count,
                              const char *const *names)
{
    const CmlMessage *m = &n->layer->message;
    uint32_t          given = cml_read_count(m, field);

    if (given != count)
        return cml_error(n, E_IMPORT, "it has %u activations, not %u", given, count);
    for (uint32_t i = 0; i < given; i++) {
        CmlMessage one, is;
        CmlField   f;

        if (!cml_read_message(m, field, i, &one) || !cml_read_chosen(&one, &f, &is) ||
            strlen(names[i]) != f.n || strncmp(names[i], f.name, f.n) != 0)
            return cml_error(n, E_UNSUPPORTED, "activation %u is not %s", i, names[i]);
    }
    return true;
}

/* [S * N, I, 1, 1] as [S, N, I]. */
static const Expr *sequence_in(CmlNode *n, int64_t in)
{
    const Build *b = &n->b;
    const Expr  *x = cml_x(n, "x");
    const Idx   *one = idx_const(b->c->arith, 1);

    if (!x)
        return NULL;
    if (expr_rank(x) != 5 || expr_form(x, 3) != one || expr_form(x, 4) != one ||
        build_dim(b, x, 2) != in)
        return cml_error(n, E_IMPORT, "its input is %s, not sequences of %lld",
                         type_text(b->c, x->type), (long long)in);
    return build_reshape_to(b, x, 3, expr_forms(x).at);
}

/* A state [1, N, H, 1, 1] as [N, H]. */
static bool state_in(CmlNode *n, const char *name, int64_t H, const Expr **out)
{
    const Build *b = &n->b;

    if (!cml_maybe(n, name, out) || !*out)
        return *out || !cml_arg(n, name);
    if (expr_rank(*out) != 5 || build_elems(b, *out) % H)
        return cml_error(n, E_IMPORT, "its state '%s' is %s", name, type_text(b->c, (*out)->type));
    *out = build_reshape_to(b, *out, 2,
                            (const Idx *[]){expr_form(*out, 1), idx_const(b->c->arith, H)});
    return *out != NULL;
}

/* [S, N, C] or [N, C] of one length of sequences. */
static bool state_out(CmlNode *n, uint32_t i, const Expr *e)
{
    const Build *b = &n->b;
    const Idx   *one = idx_const(b->c->arith, 1), *rows;
    uint32_t     rank;
    int64_t      seq;

    if (!e)
        return false;
    rank = expr_rank(e);
    seq = rank == 3 ? build_dim(b, e, 0) : 1;
    rows = rank == 3 ? idx_mul(b->c->arith, expr_form(e, 0), expr_form(e, 1)) : expr_form(e, 0);
    return cml_done_seq(
        n, i, build_reshape_to(b, e, 4, (const Idx *[]){rows, expr_form(e, rank - 1), one, one}),
        seq);
}

static bool read_sizes(CmlNode *n, Recurrent *k, int64_t *in)
{
    *in = cml_int(n, "input_vector_size", 0);
    k->H = cml_int(n, "output_vector_size", 0);
    return (*in >= 1 && k->H >= 1 && *in <= INT32_MAX && k->H <= INT32_MAX) ||
           cml_error(n, E_IMPORT, "vectors of %lld to %lld", (long long)*in, (long long)k->H);
}

static bool finish(CmlNode *n, const Recurrent *k, const Expr *x, bool sequence)
{
    const Expr *y, *h, *c = NULL;
    uint32_t    at = 0;

    if (!x || !run(n, k, x, &y, &h, &c) || !state_out(n, at++, sequence ? y : h))
        return false;
    for (uint32_t d = 0; d < k->n && at < n->nout; d++) {
        int64_t from = (int64_t)d * k->H;

        if (!state_out(n, at++, build_slice(&n->b, h, 1, from, from + k->H)) ||
            (c && at < n->nout && !state_out(n, at++, build_slice(&n->b, c, 1, from, from + k->H))))
            return false;
    }
    return true;
}

bool cml_layer_rnn(CmlNode *n)
{
    static const char *const w[] = {"weight_matrix"}, *const r[] = {"recursion_matrix"},
                             *const b[] = {"bias_vector"};
    Recurrent                       k = {.op = "nn.rnn", .gates = 1, .n = 1};
    CmlMessage                      m;
    CmlField                        f;
    int64_t                         in;
    bool                            sequence = cml_bool(n, "sequence_output", false);
    bool                            biases = cml_bool(n, "has_bias_vector", false);

    k.reverse = cml_bool(n, "reverse_input", false);
    (void)cml_has(n, "bias_vector");
    if (!read_sizes(n, &k, &in))
        return false;
    if (!cml_message(n, "activation", &m) || !cml_read_chosen(&m, &f, &m))
        return cml_error(n, E_IMPORT, "its activation is missing");
    k.activation = arena_printf(n->b.c->arena, "%.*s", (int)f.n, f.name);
    if (strcmp(k.activation, "tanh") != 0 && strcmp(k.activation, "sigmoid") != 0)
        return cml_error(n, E_UNSUPPORTED, "activation %s", k.activation);
    return read_direction(n, &k, &n->layer->message, in, &(Fields){w, r, b}, biases, &k.of[0]) &&
           state_in(n, "initial_h", k.H, &k.of[0].h) && finish(n, &k, sequence_in(n, in), sequence);
}

bool cml_layer_gru(CmlNode *n)
{
    static const char *const        w[] = {"update_gate_weight_matrix", "reset_gate_weight_matrix",
                                           "output_gate_weight_matrix"},
                             *const r[] = {"update_gate_recursion_matrix",
                                           "reset_gate_recursion_matrix",
                                           "output_gate_recursion_matrix"},
                             *const b[] = {"update_gate_bias_vector", "reset_gate_bias_vector",
                                           "output_gate_bias_vector"},
                             *const names[] = {"sigmoid", "tanh"};
    Recurrent                       k = {.op = "nn.gru", .gates = 3, .n = 1};
    int64_t                         in;
    bool                            sequence = cml_bool(n, "sequence_output", false);
    bool                            biases = cml_bool(n, "has_bias_vectors", false);

    k.reverse = cml_bool(n, "reverse_input", false);
    for (uint32_t i = 0; i < 3; i++)
        (void)cml_has(n, b[i]);
    return read_sizes(n, &k, &in) && check_activations(n, "activations", 2, names) &&
           read_direction(n, &k, &n->layer->message, in, &(Fields){w, r, b}, biases, &k.of[0]) &&
           state_in(n, "initial_h", k.H, &k.of[0].h) && finish(n, &k, sequence_in(n, in), sequence);
}

static bool lstm_params(CmlNode *n, bool *sequence, bool *biases, bool *forget)
{
    CmlMessage p;
    double     clip;

    if (!cml_message(n, "params", &p))
        return cml_error(n, E_IMPORT, "its params are missing");
    *sequence = cml_read_int(&p, "sequence_output");
    *biases = cml_read_int(&p, "has_bias_vectors");
    *forget = cml_read_int(&p, "forget_bias");
    clip = cml_read_float(&p, "cell_clip_threshold");
    if (cml_read_int(&p, "has_peephole_vectors") ||
        cml_read_int(&p, "coupled_input_and_forget_gate") || (clip != 0 && clip < 50))
        return cml_error(n, E_UNSUPPORTED,
                         "peepholes, coupled gates, or a limit of its cells below 50");
    return true;
}

static bool lstm_direction(CmlNode *n, const Recurrent *k, const CmlMessage *m, int64_t in,
                           bool biases, bool forget, Direction *d)
{
    static const char *const        w[] = {"input_gate_weight_matrix", "output_gate_weight_matrix",
                                           "forget_gate_weight_matrix", "block_input_weight_matrix"},
                             *const r[] = {"input_gate_recursion_matrix",
                                           "output_gate_recursion_matrix",
                                           "forget_gate_recursion_matrix",
                                           "block_input_recursion_matrix"},
                             *const b[] = {"input_gate_bias_vector", "output_gate_bias_vector",
                                           "forget_gate_bias_vector", "block_input_bias_vector"};
    float                          *one;
    int64_t                         all = 8 * k->H;

    if (!read_direction(n, k, m, in, &(Fields){w, r, b}, biases, d))
        return false;
    if (!forget)
        return true;
    one = NEW_ARRAY(n->b.c->arena, float, (size_t)all);
    for (int64_t i = 2 * k->H; i < 3 * k->H; i++)
        one[i] = 1;
    d->b = d->b ? build_add(&n->b, d->b, build_const(&n->b, DT_F32, 1, &all, one))
                : build_const(&n->b, DT_F32, 1, &all, one);
    return d->b != NULL;
}

static const char *const lstm_activations[] = {"sigmoid", "tanh", "tanh"};

bool cml_layer_lstm(CmlNode *n)
{
    Recurrent  k = {.op = "nn.lstm", .gates = 4, .n = 1};
    CmlMessage m;
    int64_t    in;
    bool       sequence, biases, forget;

    k.reverse = cml_bool(n, "reverse_input", false);
    if (!read_sizes(n, &k, &in) || !check_activations(n, "activations", 3, lstm_activations) ||
        !lstm_params(n, &sequence, &biases, &forget))
        return false;
    if (!cml_message(n, "weight_params", &m))
        return cml_error(n, E_IMPORT, "its weights are missing");
    return lstm_direction(n, &k, &m, in, biases, forget, &k.of[0]) &&
           state_in(n, "initial_h", k.H, &k.of[0].h) && state_in(n, "initial_c", k.H, &k.of[0].c) &&
           finish(n, &k, sequence_in(n, in), sequence);
}

bool cml_layer_bilstm(CmlNode *n)
{
    static const char *const h[] = {"initial_h", "initial_h_back"}, *const c[] = {"initial_c",
                                                                                  "initial_c_back"};
    Recurrent k = {.op = "nn.lstm", .gates = 4, .n = 2};
    int64_t   in;
    bool      sequence, biases, forget;

    if (!read_sizes(n, &k, &in) ||
        !check_activations(n, "activations_forward_lstm", 3, lstm_activations) ||
        !check_activations(n, "activations_backward_lstm", 3, lstm_activations) ||
        !lstm_params(n, &sequence, &biases, &forget))
        return false;
    for (uint32_t d = 0; d < 2; d++) {
        CmlMessage m;

        if (!cml_read_message(&n->layer->message, "weight_params", d, &m))
            return cml_error(n, E_IMPORT, "its weights are missing");
        if (!lstm_direction(n, &k, &m, in, biases, forget, &k.of[d]) ||
            !state_in(n, h[d], k.H, &k.of[d].h) || !state_in(n, c[d], k.H, &k.of[d].c))
            return false;
    }
    return finish(n, &k, sequence_in(n, in), sequence);
}

/* ---- operators --------------------------------------------------------------------------------------- */

/* Rows of [G * H, ..] in another order of gates. */
static const Expr *reordered(CmlNode *n, const Recurrent *k, const char *name,
                             const uint32_t *order)
{
    const Build *b = &n->b;
    const Expr  *w = cml_x(n, name), *parts[4];

    if (!w)
        return NULL;
    if (expr_rank(w) < 1 || build_dim(b, w, 0) != k->gates * k->H)
        return cml_error(n, E_IMPORT, "its input '%s' is %s for %lld cells", name,
                         type_text(b->c, w->type), (long long)k->H);
    for (uint32_t i = 0; i < k->gates; i++)
        parts[i] = build_slice(b, w, 0, order[i] * k->H, (order[i] + 1) * k->H);
    return cml_folded(n, name, build_concat(b, k->gates, parts, 0));
}

static bool op_direction(CmlNode *n, const Recurrent *k, const char *back, const uint32_t *order,
                         Direction *d)
{
    const Build *b = &n->b;
    Ctx         *c = b->c;
    const char  *bias = arena_printf(c->arena, "bias%s", back);
    const Expr  *in, *own;

    d->w = reordered(n, k, arena_printf(c->arena, "weight_ih%s", back), order);
    d->r = d->w ? reordered(n, k, arena_printf(c->arena, "weight_hh%s", back), order) : NULL;
    if (!d->r)
        return false;
    if (!cml_arg(n, bias) && !cml_arg(n, "input_bias"))
        return true;
    in = own = build_zeros(b, expr_dtype(d->w), 1, (int64_t[]){k->gates * k->H});
    if (cml_arg(n, bias))
        *(k->linear_before_reset ? &own : &in) = reordered(n, k, bias, order);
    if (cml_arg(n, "input_bias")) {
        const Expr *more = reordered(n, k, "input_bias", order);

        in = k->linear_before_reset ? more : build_add(b, in, more);
    }
    d->b = in && own ? build_concat(b, 2, (const Expr *[]){in, own}, 0) : NULL;
    return d->b != NULL;
}

static bool only(CmlNode *n, const char *name, const char *value)
{
    const char *is = cml_text(n, name, value);

    return !strcmp(is, value) || cml_error(n, E_UNSUPPORTED, "%s '%s'", name, is);
}

/* Halves of [N, D * H] to the directions. */
static bool op_states(CmlNode *n, Recurrent *k, const char *name, bool cells)
{
    const Expr *all = cml_x(n, name);

    if (!all)
        return false;
    if (expr_rank(all) != 2)
        return cml_error(n, E_IMPORT, "its input '%s' is %s", name, type_text(n->b.c, all->type));
    for (uint32_t d = 0; d < k->n; d++) {
        const Expr *part =
            k->n == 1 ? all
                      : build_slice(&n->b, all, 1, (int64_t)d * k->H, (int64_t)(d + 1) * k->H);

        *(cells ? &k->of[d].c : &k->of[d].h) = part;
        if (!part)
            return false;
    }
    return true;
}

static bool read_op(CmlNode *n, Recurrent *k, const uint32_t *order, const Expr **x)
{
    const char *direction = cml_text(n, "direction", "forward");
    const Expr *r = cml_x(n, "weight_hh");

    if (!(*x = cml_x(n, "x")) || !r)
        return false;
    if (expr_rank(*x) != 3 || expr_rank(r) != 2)
        return cml_error(n, E_IMPORT, "its input is %s", type_text(n->b.c, (*x)->type));
    k->H = build_dim(&n->b, r, 1);
    k->reverse = !strcmp(direction, "reverse");
    k->n = strcmp(direction, "bidirectional") ? 1 : 2;
    if (k->n == 1 && !k->reverse && strcmp(direction, "forward") != 0)
        return cml_error(n, E_UNSUPPORTED, "direction '%s'", direction);
    return op_states(n, k, "initial_h", false) &&
           (k->gates != 4 || op_states(n, k, "initial_c", true)) &&
           op_direction(n, k, "", order, &k->of[0]) &&
           (k->n == 1 || op_direction(n, k, "_back", order, &k->of[1]));
}

/* All rounds, or [1, N, D * H]; then the states. */
static bool finish_op(CmlNode *n, const Recurrent *k, const Expr *x)
{
    bool        sequence = cml_bool(n, "output_sequence", false);
    const Expr *y, *h, *c = NULL;

    return run(n, k, x, &y, &h, &c) &&
           cml_done_at(n, 0, sequence ? y : build_expand_dims(&n->b, h, 0, 1)) &&
           cml_done_at(n, 1, h) && (!c || cml_done_at(n, 2, c));
}

bool cml_lstm(CmlNode *n)
{
    Recurrent   k = {.op = "nn.lstm", .gates = 4};
    const Expr *x;

    if (cml_arg(n, "peephole") || cml_arg(n, "peephole_back") || cml_arg(n, "clip"))
        return cml_error(n, E_UNSUPPORTED, "peepholes or a limit of its cells");
    return only(n, "recurrent_activation", "sigmoid") && only(n, "cell_activation", "tanh") &&
           only(n, "activation", "tanh") && read_op(n, &k, (uint32_t[]){0, 2, 1, 3}, &x) &&
           finish_op(n, &k, x);
}

bool cml_gru(CmlNode *n)
{
    Recurrent   k = {.op = "nn.gru", .gates = 3};
    const Expr *x;

    k.linear_before_reset = cml_bool(n, "reset_after", false);
    return only(n, "recurrent_activation", "sigmoid") && only(n, "activation", "tanh") &&
           read_op(n, &k, (uint32_t[]){2, 0, 1}, &x) && finish_op(n, &k, x);
}

bool cml_rnn(CmlNode *n)
{
    Recurrent   k = {.op = "nn.rnn", .gates = 1};
    const Expr *x;

    k.activation = cml_text(n, "activation", "tanh");
    if (strcmp(k.activation, "tanh") != 0 && strcmp(k.activation, "sigmoid") != 0 &&
        strcmp(k.activation, "relu") != 0)
        return cml_error(n, E_UNSUPPORTED, "activation '%s'", k.activation);
    return read_op(n, &k, (uint32_t[]){0}, &x) && finish_op(n, &k, x);
}
