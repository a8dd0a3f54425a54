/* LSTM, GRU and SimpleRNN, as layers or cells of RNN, one way or both.
 *
 *     kernel [I, G*H], recurrent_kernel [H, G*H], bias [G*H]; of GRU with reset_after [2, G*H]
 *
 * Keras's gates are i f c o and z r h; nn.lstm and its like have them as i o f c and z r h, the
 * weights transposed.  Where the functions are others than nn.lstm has, or steps are masked, the
 * layer is a loop over the steps (cell.c). */
#include "frontends/keras/recurrent.h"

#include <string.h>

static const uint32_t lstm_order[] = {0, 3, 1, 2}, plain_order[] = {0, 1, 2};

/* ---- the cell --------------------------------------------------------------------------------------- */

const Expr *keras_cell_weight(KerasCell *k, const char *name)
{
    KerasNode *n = &k->n;

    if (!keras_has_weight(n, name)) /* of a layer, which has a cell */
        name = intern_printf(n->b.c->strings, "cell/%s", name);
    return keras_has_weight(n, name) ? keras_weight(n, name) : NULL;
}

static bool check(const KerasCell *k)
{
    const KerasNode *n = &k->n;
    const Expr      *w = k->kernel, *r = k->recurrent;
    int64_t          H = k->units;

    if (expr_rank(w) != 2 || expr_rank(r) != 2 || build_dim(&n->b, w, 1) != k->gates * H ||
        build_dim(&n->b, r, 0) != H || build_dim(&n->b, r, 1) != k->gates * H ||
        (k->bias && build_elems(&n->b, k->bias) % (k->gates * H)))
        return keras_error(n, E_IMPORT, "its weights are %s and %s for %lld units",
                           type_text(n->b.c, w->type), type_text(n->b.c, r->type), (long long)H);
    return true;
}

bool keras_cell(KerasImport *im, KerasLayer *l, DType t, KerasCell *k)
{
    static const struct {
        const char *name;
        KerasKind   kind;
        uint32_t    gates;
    } kinds[] = {{"SimpleRNN", KERAS_RNN, 1}, {"LSTM", KERAS_LSTM, 4}, {"GRU", KERAS_GRU, 3}};
    KerasNode *n = &k->n;
    bool       known = false;

    *k = (KerasCell){.n = {.im = im, .layer = l, .row = l->row, .dtype = t}};
    n->b = (Build){im->c, {im->path, l->ordinal, 0, l->name}, l->class_name};
    for (uint32_t i = 0; i < COUNT(kinds); i++)
        if (str_starts(l->class_name, kinds[i].name)) {
            k->kind = kinds[i].kind;
            k->gates = kinds[i].gates;
            known = true;
        }
    if (!known)
        return keras_error(n, E_UNSUPPORTED, "a cell of class %s", l->class_name);
    k->units = keras_int(n, "units", 0);
    k->activation = keras_activation_name(n, "activation", "tanh");
    k->gate = keras_activation_name(n, "recurrent_activation",
                                    im->major < 2 ? "hard_sigmoid" : "sigmoid");
    k->kernel = keras_cell_weight(k, "kernel");
    k->recurrent = keras_cell_weight(k, "recurrent_kernel");
    k->bias = keras_cell_weight(k, "bias");
    if (k->units < 1 || k->units > INT32_MAX || !k->kernel || !k->recurrent)
        return keras_error(n, E_IMPORT, "it has no weights for %lld units", (long long)k->units);
    k->after =
        k->bias && k->kind == KERAS_GRU && build_elems(&n->b, k->bias) == 2 * k->gates * k->units;
    k->after |= keras_bool(n, "reset_after", false);
    return check(k);
}

/* ---- by nn.lstm and its like ------------------------------------------------------------------------ */

static bool is_known(const char *activation)
{
    return !strcmp(activation, "tanh") || !strcmp(activation, "sigmoid") ||
           !strcmp(activation, "relu");
}

/* Has the operator these functions? */
static bool has_operator(const KerasCell *k)
{
    if (k->kind == KERAS_LSTM)
        return !strcmp(k->activation, "tanh") && !strcmp(k->gate, "sigmoid");
    return is_known(k->activation) && (k->kind == KERAS_RNN || is_known(k->gate));
}

/* [I, G*H] to [1, G*H, I] with the gates in the other order. */
static const Expr *gates_first(const KerasCell *k, const Expr *w)
{
    const Build    *b = &k->n.b;
    const uint32_t *order = k->kind == KERAS_LSTM ? lstm_order : plain_order;
    const Expr     *parts[4], *folded;

    w = build_transpose(b, w, 2, (int64_t[]){1, 0});
    for (uint32_t i = 0; i < k->gates; i++)
        parts[i] = build_slice(b, w, 0, order[i] * k->units, (order[i] + 1) * k->units);
    w = build_expand_dims(b, build_concat(b, k->gates, parts, 0), 0, 1);
    folded = w ? build_fold(b, w) : NULL;
    return folded ? folded : w;
}

/* [1, 2*G*H]: what is added to the input's product, then to the state's. */
static const Expr *both_biases(const KerasCell *k)
{
    const Build *b = &k->n.b;
    int64_t      cells = k->gates * k->units, all[2] = {1, 2 * cells}, one[2] = {cells, 1};
    bool         two = k->bias && build_elems(b, k->bias) == 2 * cells;
    const Expr  *parts[2];

    if (!k->bias)
        return build_zeros(b, k->n.dtype, 2, all);
    for (uint32_t i = 0; i < 2; i++) {
        const Expr *row = build_reshape(b, k->bias, 1, (int64_t[]){(two ? 2 : 1) * cells});

        if (i && !two)
            row = build_zeros(b, k->n.dtype, 1, one);
        else if (two)
            row = build_slice(b, row, 0, i * cells, (i + 1) * cells);
        row = gates_first(k, build_reshape(b, row, 2, (int64_t[]){1, cells}));
        parts[i] = build_reshape(b, row, 2, (int64_t[]){1, cells});
    }
    return build_concat(b, 2, parts, 1);
}

static const void *attrs_of(const KerasCell *k, const char *direction)
{
    const Build *b = &k->n.b;

    if (k->kind == KERAS_LSTM) {
        LstmAttrs *a = ATTRS(b, LstmAttrs);

        a->hidden_size = k->units;
        a->direction = direction;
        return a;
    }
    if (k->kind == KERAS_GRU) {
        GruAttrs *a = ATTRS(b, GruAttrs);

        a->hidden_size = k->units;
        a->direction = direction;
        a->linear_before_reset = k->after;
        a->f = k->gate;
        a->g = k->activation;
        return a;
    }
    RnnAttrs *a = ATTRS(b, RnnAttrs);
    a->hidden_size = k->units;
    a->direction = direction;
    a->f = k->activation;
    return a;
}

/* [N, H] beside others of the same direction. */
static const Expr *without_direction(const Build *b, const Expr *x)
{
    return x ? build_reshape_to(b, x, expr_rank(x) - 1, expr_forms(x).at + 1) : NULL;
}

static bool by_operator(const KerasCell *k, const Expr *x, bool reverse, const Expr *const *states,
                        KerasSequence *out)
{
    static const char *const ops[] = {
        [KERAS_RNN] = "nn.rnn", [KERAS_LSTM] = "nn.lstm", [KERAS_GRU] = "nn.gru"};
    const Build *b = &k->n.b;
    const Expr  *args[6] = {x, gates_first(k, k->kernel), gates_first(k, k->recurrent),
                            both_biases(k)},
               *r, *y;
    uint32_t n = k->kind == KERAS_LSTM ? 6 : 5;

    for (uint32_t i = 4; i < n; i++)
        args[i] = build_expand_dims(b, states[i - 4], 0, 1);
    r = build_call(b, ops[k->kind], n, args, attrs_of(k, reverse ? "reverse" : "forward"));
    y = build_proj(b, r, 0); /* [T, 1, N, H] */
    if (!y)
        return false;
    out->all = build_reshape_to(b, y, 3,
                                (const Idx *[]){expr_form(y, 0), expr_form(y, 2), expr_form(y, 3)});
    for (uint32_t i = 4; i < n; i++)
        out->states[i - 4] = without_direction(b, build_proj(b, r, i - 3));
    out->last = out->states[0];
    return out->all && out->last;
}

/* ---- a sequence ------------------------------------------------------------------------------------- */

uint32_t keras_states(const KerasCell *k)
{
    return k->kind == KERAS_LSTM ? 2 : 1;
}

/* x [T, N, I]; where the states are NULL they are zeros. */
bool keras_sequence(KerasCell *k, const Expr *x, const KerasSteps *how, const Expr *const *given,
                    KerasSequence *out)
{
    const Build *b = &k->n.b;
    const Expr  *states[2];

    if (!keras_rank(&k->n, x, 3, 3))
        return false;
    if (expr_form(x, 2) != expr_form(k->kernel, 0))
        return keras_error(&k->n, E_IMPORT, "its weight is %s for data %s",
                           type_text(b->c, k->kernel->type), type_text(b->c, x->type));
    for (uint32_t i = 0; i < keras_states(k); i++) {
        const Idx *dims[2] = {expr_form(x, 1), idx_const(b->c->arith, k->units)};

        states[i] = given ? given[i] : build_zeros_of(b, k->n.dtype, 2, dims);
        if (!states[i])
            return false;
        if (!expr_has_forms(states[i], 2, dims))
            return keras_error(&k->n, E_IMPORT, "a state is %s for %lld units",
                               type_text(b->c, states[i]->type), (long long)k->units);
    }
    return has_operator(k) && !how->mask ? by_operator(k, x, how->reverse, states, out)
                                         : keras_by_steps(k, x, how, states, out);
}

/* ---- layers ----------------------------------------------------------------------------------------- */

typedef struct {
    KerasLayer *layer; /* with the settings of the sequence */
    VEC(KerasCell *) cells;
    bool sequences, state, backwards, zeros;
} Recurrent;

static bool add_cells(KerasNode *n, KerasLayer *l, Recurrent *r)
{
    KerasCell *k;

    if (!strcmp(l->class_name, "RNN") || !strcmp(l->class_name, "StackedRNNCells")) {
        for (uint32_t i = 0; i < l->kids.n; i++)
            if (!add_cells(n, l->kids.at[i], r))
                return false;
        return true;
    }
    k = NEW(n->b.c->arena, KerasCell);
    vec_push(n->b.c->arena, &r->cells, k);
    return keras_cell(n->im, l, n->dtype, k);
}

static bool read_recurrent(KerasNode *n, KerasLayer *l, Recurrent *r)
{
    KerasNode at = *n;

    at.layer = l;
    *r = (Recurrent){.layer = l};
    r->sequences = keras_bool(&at, "return_sequences", false);
    r->state = keras_bool(&at, "return_state", false);
    r->backwards = keras_bool(&at, "go_backwards", false);
    r->zeros = keras_bool(&at, "zero_output_for_mask", false);
    if (keras_bool(&at, "stateful", false)) {
        keras_error(&at, E_UNSUPPORTED, "it keeps its state from one run to the next");
        diag_hint(n->b.c->diags, "build it with return_state, and the state as input and output");
        return false;
    }
    if (keras_bool(&at, "time_major", false))
        return keras_error(&at, E_UNSUPPORTED, "time_major");
    return add_cells(n, l, r) && (r->cells.n > 0 || keras_error(&at, E_IMPORT, "it has no cell"));
}

/* All cells of a stack, one behind the other, over x [T, N, I]; `both`: of the states of all cells
 * as many as there are. */
static bool run(KerasNode *n, Recurrent *r, const Expr *x, const Expr *mask,
                const KerasValue *given, uint32_t ngiven, bool reverse, KerasSequence *out,
                KerasValues *states)
{
    KerasSteps how = {.mask = mask, .reverse = reverse, .zeros = r->zeros};
    uint32_t   at = 0;

    for (uint32_t i = 0; i < r->cells.n; i++) {
        KerasCell  *k = r->cells.at[i];
        const Expr *first[2];

        if (ngiven && at + keras_states(k) > ngiven)
            return keras_error(n, E_IMPORT, "%u states", ngiven);
        for (uint32_t j = 0; ngiven && j < keras_states(k); j++)
            first[j] = build_cast(&n->b, given[at + j].e, n->dtype);
        if (!keras_sequence(k, x, &how, ngiven ? first : NULL, out))
            return false;
        for (uint32_t j = 0; j < keras_states(k); j++)
            vec_push(n->b.c->arena, states, ((KerasValue){out->states[j], NULL}));
        at += keras_states(k);
        x = out->all;
    }
    return ngiven == at || ngiven == 0 || keras_error(n, E_IMPORT, "%u states, not %u", ngiven, at);
}

/* The data [N, T, I] as [T, N, I], the mask likewise, and the states that are given. */
typedef struct {
    const Expr *x, *mask, *given_mask;
    KerasValues states;
} Inputs;

static bool read_inputs(KerasNode *n, Inputs *in)
{
    const Build    *b = &n->b;
    const KerasArg *a;
    KerasValue      v;

    *in = (Inputs){0};
    if (!keras_count(n, 1, UINT32_MAX) || !keras_rank(n, n->in[0].e, 3, 3))
        return false;
    in->x = build_transpose(b, build_cast(b, n->in[0].e, n->dtype), 3, (int64_t[]){1, 0, 2});
    in->given_mask = n->in[0].mask;
    if (in->given_mask)
        in->mask = build_transpose(b, build_cast(b, in->given_mask, DT_BOOL), 2, (int64_t[]){1, 0});
    for (uint32_t i = 1; i < n->nin; i++)
        vec_push(b->c->arena, &in->states, n->in[i]);
    if ((a = keras_arg(n, 1, "initial_state"))) {
        for (uint32_t i = 0; i < (a->kind == KERAS_LIST ? a->n : 1); i++) {
            if (!keras_value(n, a->kind == KERAS_LIST ? &a->at[i] : a, &v))
                return false;
            vec_push(b->c->arena, &in->states, v);
        }
    }
    return in->x != NULL;
}

/* [T, N, H] as the layer gives it. */
static const Expr *sequence_out(const Build *b, const Expr *all)
{
    return build_transpose(b, all, 3, (int64_t[]){1, 0, 2});
}

bool keras_recurrent(KerasNode *n)
{
    const Build  *b = &n->b;
    KerasValues   states = {0};
    KerasSequence seq;
    Recurrent     r;
    const Expr   *y;
    Inputs        in;

    if (!read_recurrent(n, n->layer, &r) || !read_inputs(n, &in) ||
        !run(n, &r, in.x, in.mask, in.states.at, in.states.n, r.backwards, &seq, &states))
        return false;
    y = seq.last;
    if (r.sequences)
        y = sequence_out(b, build_reverse(b, seq.all, r.backwards, (int64_t[]){0}));
    if (!keras_done_masked(n, y, r.sequences ? in.given_mask : NULL))
        return false;
    for (uint32_t i = 0; r.state && i < states.n; i++)
        vec_push(b->c->arena, &n->out, states.at[i]);
    return true;
}

/* Both ways; the second layer's steps are in the order of the data. */
bool keras_bidirectional(KerasNode *n)
{
    const Build  *b = &n->b;
    const char   *mode = keras_json(n, "merge_mode") ? keras_text(n, "merge_mode", "concat") : NULL;
    KerasValues   states = {0};
    KerasSequence seq[2];
    const Expr   *y[2], *merged, *mask;
    Recurrent     r[2];
    uint32_t      half;
    Inputs        in;

    if (n->layer->kids.n != 2 || !read_recurrent(n, n->layer->kids.at[0], &r[0]) ||
        !read_recurrent(n, n->layer->kids.at[1], &r[1]) || !read_inputs(n, &in))
        return keras_error(n, E_IMPORT, "its layers cannot be built");
    if (!json_object_get(n->layer->config, "backward_layer")) /* made of the first */
        r[1].backwards = !r[0].backwards;
    half = in.states.n / 2;
    for (uint32_t i = 0; i < 2; i++) {
        r[i].zeros = r[i].sequences;
        if (!run(n, &r[i], in.x, in.mask, in.states.at ? in.states.at + i * half : NULL, half,
                 r[i].backwards, &seq[i], &states))
            return false;
        y[i] = r[i].sequences ? sequence_out(b, seq[i].all) : seq[i].last;
    }
    mask = r[0].sequences ? in.given_mask : NULL;
    if (!mode) {
        if (!keras_done_masked(n, y[0], mask) || !keras_done_masked(n, y[1], mask))
            return false;
    } else {
        merged = !strcmp(mode, "concat") ? build_concat(b, 2, y, expr_rank(y[0]) - 1)
                 : !strcmp(mode, "mul")  ? build_mul(b, y[0], y[1])
                                         : build_add(b, y[0], y[1]);
        if (!strcmp(mode, "ave"))
            merged = build_by(b, "multiply", merged, 0.5);
        else if (strcmp(mode, "concat") != 0 && strcmp(mode, "mul") != 0 &&
                 strcmp(mode, "sum") != 0)
            return keras_error(n, E_UNSUPPORTED, "merge_mode '%s'", mode);
        if (!keras_done_masked(n, merged, mask))
            return false;
    }
    for (uint32_t i = 0; r[0].state && i < states.n; i++)
        vec_push(b->c->arena, &n->out, states.at[i]);
    return true;
}

/* A cell that is called for one step. */
bool keras_lone_cell(KerasNode *n)
{
    return keras_error(n, E_UNSUPPORTED, "a cell outside of an RNN layer");
}
