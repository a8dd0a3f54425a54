/* LSTM in integers, as LiteRT's reference kernel has it for data and weights of 8 bits and a cell
 * of 16.  A gate, in 2^-12 or in the scale of its own where it is normalized, is
 *
 *     g = times(x W - zx sum(W) + b) + times(h R - zh sum(R)) + times(c p)    each sum within 16
 * bits
 *
 * and a round, sigmoid and tanh being those of fixed.c,
 *
 *     c = (s(g_f) c >> 15) + (s(g_i) tanh(g_c) >> 30 + log2 of the cell's scale)
 *     h = times(s(g_o) tanh(c))                                 or times(of that P + b_p)
 *
 * The products of the data of all steps are computed before the loop.  A normalized gate is
 * (g - mean) / sqrt(variance) in 2^-10, times a factor. */
#include "frontends/tflite/recurrent.h"

#include <math.h>

enum { SIGMOID_BITS = 15, GATE_WHOLE = 3, PARTS = 5 };

typedef struct {
    Layer      *k;
    TfliteFixed of_data[GATES], of_state[GATES], of_cell[GATES], of_norm[GATES], hidden, projected;
    const Expr *r, *bias, *factor[GATES], *norm_bias[GATES], *projection, *projection_bias;
    double      least[GATES];                                     /* variance */
    double      zero_state, zero_hidden, cell_limit, state_limit; /* limits: 0 for none */
    int         cell;                                             /* its scale is 2^cell */
} Integer;

static const Expr *by(const Build *b, const char *op, const Expr *x, double v)
{
    return build_by(b, op, x, v);
}

static const Expr *wide(const Build *b, const Expr *x)
{
    return build_cast(b, x, DT_I32);
}

/* ---- what the file says --------------------------------------------------------------------------- */

const TfliteTensor *lstm_between(const Layer *k, uint32_t i)
{
    return tflite_tensor(k->n->scope->g, fb_int_at(k->n->p->between, FB_I32, i));
}

bool lstm_is_of(const Layer *k, uint32_t i, DType t, bool symmetric)
{
    const TfliteTensor *v;
    DType               have;

    if (i >= k->n->p->in.n || tflite_in_index(k->n->p, i) < 0)
        return false;
    v = tflite_in(k->n, i);
    return tflite_is_quantized(v) && tflite_scales(v) == 1 && tflite_dtype(v->type, &have) &&
           dtype_eq(have, t) && (!symmetric || tflite_zero(v, 0) == 0);
}

bool lstm_are_of(const Layer *k, uint32_t from, uint32_t n, DType t)
{
    for (uint32_t i = from; i < from + n; i++)
        if (tflite_has(k->n, i) && !lstm_is_of(k, i, t, true))
            return false;
    return true;
}

bool lstm_is_integer(const Layer *k)
{
    const Inputs *at = k->at;
    int           power;

    if (k->n->p->between.n != PARTS || at->reverse || at->aux || k->act != 4 ||
        !lstm_is_of(k, 0, DT_I8, false) || !lstm_is_of(k, at->state, DT_I8, false) ||
        !lstm_is_of(k, at->memory, DT_I16, true) ||
        !lstm_are_of(k, at->weights, 2 * GATES, DT_I8) || !lstm_are_of(k, at->cell, 3, DT_I16) ||
        !lstm_are_of(k, at->projection, 1, DT_I8) ||
        (at->norm && !lstm_are_of(k, at->norm, GATES, DT_I16)))
        return false;
    for (uint32_t i = 0; i < PARTS; i++)
        if (tflite_scales(lstm_between(k, i)) != 1)
            return false;
    return frexp(tflite_scale(tflite_in(k->n, at->memory), 0), &power) == 0.5;
}

double lstm_scale(const Layer *k, uint32_t i)
{
    return tflite_scale(tflite_in(k->n, i), 0);
}

const Expr *lstm_integers(const Layer *k, uint32_t i, int64_t cells)
{
    const Build *b = &k->n->b;

    return tflite_has(k->n, i) ? wide(b, k->n->in[i]) : build_zeros(b, DT_I32, 1, &cells);
}

/* Inputs from `from` on of all gates that there are, one above the other. */
static const Expr *of_gates(const Layer *k, uint32_t from)
{
    const Expr *part[GATES];

    for (uint32_t i = 0; i < k->gates; i++)
        part[i] = lstm_integers(k, from + k->first + i, k->H);
    return build_concat(&k->n->b, k->gates, part, 0);
}

/* Of an input in that scale with weights, in f32 as the kernel has them. */
static bool factor(const Layer *k, uint32_t weights, double scale, double to, TfliteFixed *out)
{
    float both = (float)lstm_scale(k, weights) * (float)scale;

    return tflite_fixed(k->n, (double)(both / (float)to), out);
}

static bool read_scales(Integer *l)
{
    static const uint32_t peephole[GATES] = {0, 1, 0, 2};
    const Layer          *k = l->k;
    const Inputs         *at = k->at;
    TfliteNode           *n = k->n;

    for (uint32_t i = k->first; i < GATES; i++) {
        double gate = k->factor ? tflite_scale(lstm_between(k, i), 0) : 0x1p-12,
               cell = ldexp(1, l->cell);

        if (!(gate > 0))
            return tflite_error(n, E_IMPORT, "gate %u has scale %g", i, gate);
        if (!factor(k, at->weights + i, lstm_scale(k, 0), gate, &l->of_data[i]) ||
            !factor(k, at->weights + 4 + i, lstm_scale(k, at->state), gate, &l->of_state[i]))
            return false;
        if (k->peephole[i] && !factor(k, at->cell + peephole[i], cell, gate, &l->of_cell[i]))
            return false;
        if (k->factor) {
            double scale = lstm_scale(k, at->norm + i);

            l->least[i] = fmax(1, floor(10000 * scale));
            if (!tflite_fixed(n, scale, &l->of_norm[i]))
                return false;
            l->of_norm[i].shift += 12;
            l->factor[i] = lstm_integers(k, at->norm + i, k->H);
            l->norm_bias[i] = lstm_integers(k, at->biases + i, k->H);
        }
    }
    return true;
}

double lstm_limit(double limit, double scale, DType t)
{
    return limit > 0 ? fmin(fmax(trunc((double)(float)(limit / scale)), dtype_min(t)), dtype_max(t))
                     : 0;
}

static bool read_integer(Integer *l)
{
    Layer              *k = l->k;
    const Inputs       *at = k->at;
    TfliteNode         *n = k->n;
    const TfliteTensor *hidden = lstm_between(k, PARTS - 1);
    double              state = lstm_scale(k, at->state), scale;

    frexp(lstm_scale(k, at->memory), &l->cell);
    l->cell--;
    if (l->cell < -15 || l->cell > -9)
        return tflite_error(n, E_UNSUPPORTED, "a cell of scale %g", ldexp(1, l->cell));
    l->zero_state = (double)tflite_zero(tflite_in(n, at->state), 0);
    l->zero_hidden = (double)tflite_zero(hidden, 0);
    scale = tflite_scale(hidden, 0);
    if (!(scale > 0 && state > 0))
        return tflite_error(n, E_IMPORT, "a state of scale %g", scale);
    l->cell_limit = lstm_limit(k->cell_clip, ldexp(1, l->cell), DT_I16);
    l->state_limit = lstm_limit(k->proj_clip, state, DT_I8);
    if (!tflite_fixed(n, (double)(float)(0x1p-30 / scale), &l->hidden) || !read_scales(l))
        return false;
    if (k->projection) {
        l->projection = wide(&n->b, n->in[at->projection]);
        l->projection_bias = lstm_integers(k, at->projection + 1, k->O);
        if (!factor(k, at->projection, scale, state, &l->projected))
            return false;
    }
    l->r = of_gates(k, at->weights + 4);
    return true;
}

/* ---- a round -------------------------------------------------------------------------------------- */

const Expr *lstm_sums(const Build *b, const Expr *q, double zero, const Expr *w)
{
    return build2(b, "nn.dense", by(b, "subtract", wide(b, q), zero), w, NULL);
}

const Expr *lstm_words(const Build *b, const Expr *x)
{
    return build_clip(b, x, dtype_min(DT_I16), dtype_max(DT_I16));
}

const Expr *lstm_product(const Build *b, const Expr *x, const Expr *y, int bits)
{
    return tflite_rounded(b, build_mul(b, x, y), bits);
}

/* x [N, H] less its mean, in 2^-10, by the root of its variance. */
static const Expr *normalized(const Integer *l, const Build *b, const Expr *x, uint32_t i)
{
    int64_t     last = 1;
    double      n = (double)l->k->H, each = floor(0x1p20 / n);
    const Expr *sum, *mean, *square, *variance;
    TfliteRoot  root;

    x = build_cast(b, x, DT_I64);
    sum = build_reduce(b, "sum", x, 1, &last, true);
    square = build_reduce(b, "sum", build_mul(b, x, x), 1, &last, true);
    mean = by(b, "divide", by(b, "multiply", sum, 1024), n);
    variance = build_sub(b, by(b, "multiply", square, each), build_mul(b, mean, mean));
    variance = by(b, "divide", variance, 0x1p20);
    variance = variance
                   ? build_where(b, build2(b, "less", variance, build_scalar(b, variance, 1), NULL),
                                 build_scalar(b, variance, l->least[i]), variance)
                   : NULL;
    x = build_cast(b, build_sub(b, by(b, "multiply", x, 1024), mean), DT_I32);
    if (!tflite_inverse_root(b, build_cast(b, variance, DT_I32), last, &root))
        return NULL;
    return build_cast(b, tflite_times_root(b, x, &root), DT_I64);
}

/* x * factor + bias in 2^-10, rounded away from zero, in the gate's unit. */
static const Expr *scaled(const Integer *l, const Build *b, const Expr *x, uint32_t i)
{
    const Expr *below;

    x = build_mul(b, normalized(l, b, x, i), build_cast(b, l->factor[i], DT_I64));
    x = build_add(b, x, build_cast(b, l->norm_bias[i], DT_I64));
    below = x ? build2(b, "greater", x, build_scalar(b, x, 0), NULL) : NULL;
    x = build_where(b, below, by(b, "add", x, 512), by(b, "add", x, -512));
    x = build_cast(b, by(b, "divide", x, 1024), DT_I32);
    return lstm_words(b, tflite_times(b, x, TFLITE_ANY, 1, &l->of_norm[i], 1));
}

/* Gate i of g [N, gates * H] behind its function. */
static const Expr *gate(const Integer *l, const Build *b, const Expr *g, const Expr *c, uint32_t i)
{
    const Layer  *k = l->k;
    const Inputs *at = k->at;
    int64_t       from = (i - k->first) * k->H;
    const Expr   *x = build_slice(b, g, 1, from, from + k->H), *p;

    if (k->peephole[i]) {
        p = build_mul(b, c, lstm_integers(k, at->cell + (i == O_GATE ? 2 : i), k->H));
        x = lstm_words(b, build_add(b, x, tflite_times(b, p, TFLITE_ANY, 1, &l->of_cell[i], 1)));
    }
    if (k->factor)
        x = scaled(l, b, x, i);
    return i == C_GATE ? tflite_fixed_tanh(b, x, GATE_WHOLE)
                       : tflite_fixed_sigmoid(b, x, GATE_WHOLE);
}

const Expr *lstm_limited(const Build *b, const Expr *x, double limit)
{
    return limit > 0 ? build_clip(b, x, -limit, limit) : x;
}

/* The state in 8 bits. */
static const Expr *state_of(const Integer *l, const Build *b, const Expr *o, const Expr *c)
{
    const Layer *k = l->k;
    const Expr  *h = tflite_fixed_tanh(b, c, 15 + l->cell);

    h = tflite_times(b, build_mul(b, o, h), TFLITE_ANY, 1, &l->hidden, 1);
    /* The kernel subtracts the zero point of what is projected, and adds it again. */
    h = by(b, "add", h, k->projection ? -l->zero_hidden : l->zero_hidden);
    h = tflite_saturated(b, h, DT_I8);
    if (!k->projection)
        return h;
    h = build_add(b, lstm_sums(b, h, -l->zero_hidden, l->projection), l->projection_bias);
    h = by(b, "add", tflite_times(b, h, TFLITE_ANY, 1, &l->projected, 1), l->zero_state);
    return lstm_limited(b, tflite_saturated(b, h, DT_I8), l->state_limit);
}

/* States: h i8, c i16, the gates' part of the data of all steps i16, the results. */
static bool integer_round(const Build *b, void *user, const Expr *i, const Expr *const *in,
                          const Expr **next)
{
    const Integer *l = user;
    const Layer   *k = l->k;
    const Expr    *g = wide(b, build_take(b, in[2], i, 0)), *c = wide(b, in[1]), *f, *x;

    x = tflite_times(b, lstm_sums(b, in[0], l->zero_state, l->r), TFLITE_ANY, k->gates,
                     l->of_state + k->first, k->H);
    g = lstm_words(b, build_add(b, g, x));
    f = gate(l, b, g, c, F_GATE);
    x = k->first == I_GATE ? gate(l, b, g, c, I_GATE)
                           : by(b, "add", build1(b, "negative", f, NULL), dtype_max(DT_I16));
    x = lstm_product(b, x, gate(l, b, g, c, C_GATE), 2 * SIGMOID_BITS + l->cell);
    c = lstm_words(b, build_add(b, lstm_product(b, f, c, SIGMOID_BITS), x));
    c = lstm_limited(b, c, l->cell_limit);
    next[0] = state_of(l, b, gate(l, b, g, c, O_GATE), c);
    next[1] = build_cast(b, c, DT_I16);
    next[2] = in[2];
    next[3] = build3(b, "update_slice", in[3], next[0], i, NULL);
    return next[3] != NULL;
}

/* ---- a layer -------------------------------------------------------------------------------------- */

/* The data's part of all gates, [T, N, gates * H]. */
static const Expr *data_part(const Integer *l)
{
    const Layer *k = l->k;
    const Build *b = &k->n->b;
    Arith       *A = b->c->arith;
    const Idx   *rows[2] = {idx_mul(A, k->T, k->N), idx_const(A, k->I)},
              *steps[3] = {k->T, k->N, idx_const(A, k->gates * k->H)};
    const Expr *x = k->n->in[0];

    if (!k->time_major)
        x = build_transpose(b, x, 3, (int64_t[]){1, 0, 2});
    x = lstm_sums(b, build_reshape_to(b, x, 2, rows), (double)tflite_zero(tflite_in(k->n, 0), 0),
                  of_gates(k, k->at->weights));
    if (!k->factor)
        x = build_add(b, x, of_gates(k, k->at->biases));
    x = tflite_times(b, x, TFLITE_ANY, k->gates, l->of_data + k->first, k->H);
    return build_reshape_to(b, tflite_saturated(b, x, DT_I16), 3, steps);
}

const Expr *lstm_first(const Layer *k, uint32_t i, int64_t cells, DType t, double zero)
{
    const Build *b = &k->n->b;
    const Idx   *dims[2] = {k->N, idx_const(b->c->arith, cells)};

    if (tflite_has(k->n, i))
        return k->n->in[i];
    return build_by(b, "add", build_zeros_of(b, t, 2, dims), zero);
}

const Expr *lstm_in_integers(Layer *k)
{
    const Build *b = &k->n->b;
    const Idx   *all[3] = {k->T, k->N, idx_const(b->c->arith, k->O)};
    Integer      l = {.k = k};
    const Expr  *first[4], *last[4];

    if (!read_integer(&l))
        return NULL;
    first[0] = lstm_first(k, k->at->state, k->O, DT_I8, l.zero_state);
    first[1] = lstm_first(k, k->at->memory, k->H, DT_I16, 0);
    first[2] = data_part(&l);
    first[3] = build_zeros_of(b, DT_I8, 3, all);
    return tflite_rounds(k->n, k->T, 4, first, integer_round, &l, last) &&
                   layer_keep(k, last[0], last[1])
               ? last[3]
               : NULL;
}
