/* LSTM of one step of which more is in integers than its products, by two kernels of LiteRT's.
 *
 * With twelve tensors between, all is of 8 bits: the gate i is 1 - f, gates are normalized, and
 * there is a projection.  A gate g, W and R its weights, is in 2^-12
 *
 *     g = times(times(x W - zx sum(W))) + times(times(h R - zh sum(R)))     8 bits, then 16
 *     g = (g - mean) / sqrt(variance) factor + b                            in floats
 *
 * and a round, sigmoid and tanh being those of floats, cut off in 2^-15 as the cell is,
 *
 *     c = (s(g_f) c + (1 - s(g_f)) tanh(g_c)) >> 15
 *     h = times((s(g_o) tanh(c) >> 15) P + b_p)
 *
 * The kernel has an exponent where the factor of the state's part of g_o belongs, which leaves 0 of
 * that part: g_o is of the data alone.
 *
 * The kernel BASIC is of bytes around 128 in 2^-7, with one product for all gates i c f o, in
 * 2^-12, and a cell in 2^-11:
 *
 *     g = times([x h] W + b)
 *     c = (s(g_i) tanh(g_c) >> 15 + 4) + (s(g_f) c >> 15)
 *     h = (s(g_o) tanh(c) >> 15) >> 8 */
#include "frontends/tflite/recurrent.h"

#include <math.h>
#include <string.h>

enum { UNIT = 15, PARTS = 12 };

static const Expr *by(const Build *b, const char *op, const Expr *x, double v)
{
    return build_by(b, op, x, v);
}

static const Expr *wide(const Build *b, const Expr *x)
{
    return build_cast(b, x, DT_I32);
}

/* Numbers, one for each gate's H cells. */
static const Expr *each(const Layer *k, uint32_t n, const int32_t *v)
{
    const Build *b = &k->n->b;
    int64_t      cells = n * k->H;
    int32_t     *all = NEW_ARRAY(b->c->arena, int32_t, (size_t)cells);

    for (int64_t i = 0; i < cells; i++)
        all[i] = v[i / k->H];
    return build_const(b, DT_I32, 1, &cells, all);
}

/* ---- all of 8 bits -------------------------------------------------------------------------------- */

bool lstm_is_of_bytes(const Layer *k)
{
    const Inputs *at = k->at;

    if (strcmp(k->n->row->name, "LSTM") || k->n->p->between.n != PARTS || k->first != F_GATE ||
        !k->factor || !k->projection || k->peephole[F_GATE] || k->peephole[O_GATE] || k->act != 4 ||
        !lstm_is_of(k, 0, DT_I8, false) || !lstm_is_of(k, at->state, DT_I8, false) ||
        !lstm_is_of(k, at->memory, DT_I16, true) || lstm_scale(k, at->memory) != 0x1p-15 ||
        !lstm_are_of(k, at->weights, 2 * GATES, DT_I8) ||
        !lstm_are_of(k, at->projection, 1, DT_I8) || !lstm_are_of(k, at->norm, GATES, DT_I16))
        return false;
    for (uint32_t i = 0; i < PARTS; i++) {
        const TfliteTensor *t = lstm_between(k, i);

        if (tflite_scales(t) != 1 || !(tflite_scale(t, 0) > 0) || tflite_zero(t, 0) < -128 ||
            tflite_zero(t, 0) > 127)
            return false;
    }
    return true;
}

/* The tensors between of a gate. */
enum { OF_BOTH, OF_DATA, OF_STATE };

static const TfliteTensor *between(const Layer *k, uint32_t gate, uint32_t part)
{
    return lstm_between(k, 3 * gate + part);
}

static float scale(const TfliteTensor *t)
{
    return (float)tflite_scale(t, 0);
}

/* One part of n gates, [N, n * H]: (q - zero) W within 8 bits, and in the unit of both parts. */
static const Expr *part_of(const Layer *k, const Expr *q, uint32_t input, uint32_t weights,
                           uint32_t part, uint32_t n)
{
    const Build *b = &k->n->b;
    TfliteFixed  of[GATES], to[GATES];
    int32_t      lo[GATES], hi[GATES];
    const Expr  *w[GATES], *y;

    for (uint32_t i = 0; i < n; i++) {
        const TfliteTensor *t = between(k, F_GATE + i, part);
        float by_weight = (float)lstm_scale(k, weights + F_GATE + i) * (float)lstm_scale(k, input);

        if (!tflite_fixed(k->n, (double)(by_weight / scale(t)), &of[i]) ||
            !tflite_fixed(k->n, (double)(scale(t) / scale(between(k, F_GATE + i, OF_BOTH))),
                          &to[i]))
            return NULL;
        lo[i] = -128 - (int32_t)tflite_zero(t, 0);
        hi[i] = 127 - (int32_t)tflite_zero(t, 0);
        w[i] = wide(b, k->n->in[weights + F_GATE + i]);
    }
    y = lstm_sums(b, q, (double)tflite_zero(tflite_in(k->n, input), 0), build_concat(b, n, w, 0));
    y = tflite_times(b, y, TFLITE_ANY, n, of, k->H);
    y = build2(b, "maximum", y, each(k, n, lo), NULL);
    y = build2(b, "minimum", y, each(k, n, hi), NULL);
    return tflite_times(b, y, TFLITE_ANY, n, to, k->H);
}

/* Is what the kernel leaves of the state's part of the output gate 0? */
static bool has_no_part(const Layer *k)
{
    double      whole = scale(between(k, O_GATE, OF_BOTH));
    TfliteFixed forget, output;

    return tflite_fixed(
               k->n,
               (double)(scale(between(k, F_GATE, OF_STATE)) / scale(between(k, F_GATE, OF_BOTH))),
               &forget) &&
           tflite_fixed(k->n, (double)(scale(between(k, O_GATE, OF_STATE)) / (float)whole),
                        &output) &&
           ldexp(255 * fabs((double)forget.shift), output.shift > 0 ? output.shift : 0) < 0x1p30;
}

static const Expr *normalized(const Layer *k, const Expr *x, uint32_t gate)
{
    const Build *b = &k->n->b;
    int64_t      last = 1;
    double       n = (double)k->H;
    float        unit = (float)lstm_scale(k, k->at->norm + gate);
    const Expr  *sum, *square, *mean, *variance, *root, *bias;

    x = build_cast(b, x, DT_I64);
    sum = build_cast(b, build_reduce(b, "sum", x, 1, &last, true), DT_F32);
    square = build_cast(b, build_reduce(b, "sum", build_mul(b, x, x), 1, &last, true), DT_F32);
    mean = by(b, "divide", sum, n);
    variance = build_sub(b, by(b, "divide", square, n), build_mul(b, mean, mean));
    variance = variance ? build_where(b, build_less(b, build_scalar(b, variance, 0), variance),
                                      variance, build_scalar(b, variance, 1e-8))
                        : NULL;
    root = build1(b, "sqrt", variance, NULL);
    x = build_sub(b, build_cast(b, x, DT_F32), mean);
    x = build_mul(b, x, root ? build_div(b, build_scalar(b, root, 1), root) : NULL);
    x = build_mul(b, x, build_cast(b, lstm_integers(k, k->at->norm + gate, k->H), DT_F32));
    bias = build_cast(b, lstm_integers(k, k->at->biases + gate, k->H), DT_F32);
    x = build_add(b, by(b, "multiply", x, (double)unit),
                  by(b, "multiply", bias, (double)(unit / 1024)));
    return lstm_words(b,
                      build_cast(b, build1(b, "round", by(b, "multiply", x, 4096), NULL), DT_I32));
}

/* x in 2^-bits, cut off in 2^-15. */
static const Expr *function(const Build *b, const char *op, const Expr *x, int bits)
{
    x = by(b, "multiply", build_cast(b, x, DT_F32), ldexp(1, -bits));
    x = by(b, "multiply", build1(b, op, x, NULL), 0x1p15);
    return lstm_words(b, build_cast(b, x, DT_I32));
}

static const Expr *gate_of(const Layer *k, const Expr *data, const Expr *state, uint32_t gate)
{
    const Build *b = &k->n->b;
    int64_t      at = (gate - F_GATE) * k->H;
    const Expr  *g = build_slice(b, data, 1, at, at + k->H);

    if (gate != O_GATE)
        g = build_add(b, g, build_slice(b, state, 1, at, at + k->H));
    g = normalized(k, lstm_words(b, g), gate);
    return function(b, gate == C_GATE ? "tanh" : "sigmoid", g, 12);
}

/* x [N, H] of 16 bits times P: sums in 64 bits, times a factor of 16. */
static const Expr *projected(const Layer *k, const Expr *x)
{
    const Build        *b = &k->n->b;
    const Inputs       *at = k->at;
    const TfliteTensor *state = tflite_in(k->n, at->state);
    TfliteFixed         f;
    double              to = lstm_scale(k, at->projection) * 0x1p-15 / tflite_scale(state, 0);
    const Expr         *p = build_cast(b, k->n->in[at->projection], DT_I64);

    if (!tflite_fixed(k->n, (double)(float)to, &f))
        return NULL;
    f.times = f.times < 0x7fff0000 ? (f.times + (1 << 15)) >> 16 : 0x7fff;
    f.shift = UNIT - f.shift;
    if (f.shift < 1 || f.shift > 46)
        return tflite_error(k->n, E_UNSUPPORTED, "a projection of scale %g", to);
    x = build2(b, "nn.dense", build_cast(b, x, DT_I64), p, NULL);
    x = build_add(b, x, build_cast(b, lstm_integers(k, at->projection + 1, k->O), DT_I64));
    x = by(b, "add", by(b, "multiply", x, (double)f.times), ldexp(1, f.shift - 1));
    x = by(b, "add", by(b, "right_shift", x, f.shift), (double)tflite_zero(state, 0));
    return lstm_limited(b, tflite_saturated(b, x, DT_I8),
                        lstm_limit(k->proj_clip, tflite_scale(tflite_out(k->n, 0), 0), DT_I8));
}

const Expr *lstm_of_bytes(Layer *k)
{
    const Build  *b = &k->n->b;
    const Inputs *at = k->at;
    const Idx    *rows[2] = {k->N, idx_const(b->c->arith, k->I)};
    const Idx    *all[3] = {k->T, k->N, idx_const(b->c->arith, k->O)};
    const Expr   *x = build_reshape_to(b, k->n->in[0], 2, rows), *data, *state, *h, *c, *f, *g;

    if (!has_no_part(k))
        return tflite_error(k->n, E_UNSUPPORTED, "tensors between of scales that far apart");
    h = lstm_first(k, at->state, k->O, DT_I8, (double)tflite_zero(tflite_in(k->n, at->state), 0));
    c = wide(b, lstm_first(k, at->memory, k->H, DT_I16, 0));
    if (!(data = part_of(k, x, 0, at->weights, OF_DATA, k->gates)) ||
        !(state = part_of(k, h, at->state, at->weights + GATES, OF_STATE, k->gates - 1)))
        return NULL;
    f = gate_of(k, data, state, F_GATE);
    g = by(b, "add", build1(b, "negative", f, NULL), dtype_max(DT_I16));
    g = lstm_product(b, g, gate_of(k, data, state, C_GATE), UNIT);
    c = lstm_words(b, build_add(b, lstm_product(b, f, c, UNIT), g));
    if (k->cell_clip < 1)
        c = lstm_limited(b, c, lstm_limit(k->cell_clip, 0x1p-15, DT_I16));
    h = lstm_product(b, gate_of(k, data, NULL, O_GATE), function(b, "tanh", c, UNIT), UNIT);
    h = projected(k, h);
    return layer_keep(k, h, build_cast(b, c, DT_I16)) ? build_reshape_to(b, h, 3, all) : NULL;
}

/* ---- the kernel BASIC ----------------------------------------------------------------------------- */

static bool is_byte(const TfliteTensor *t)
{
    DType d;

    return tflite_scales(t) == 1 && tflite_zero(t, 0) == 128 && tflite_dtype(t->type, &d) &&
           dtype_eq(d, DT_U8);
}

static bool is_word(const TfliteTensor *t, double scale)
{
    DType d;

    return tflite_scales(t) == 1 && tflite_scale(t, 0) == scale && tflite_zero(t, 0) == 0 &&
           tflite_dtype(t->type, &d) && dtype_eq(d, DT_I16);
}

bool lstm_is_basic_integer(const TfliteNode *n)
{
    DType w;

    return is_byte(tflite_in(n, 0)) && is_byte(tflite_in(n, 1)) &&
           tflite_scales(tflite_in(n, 2)) == 1 && tflite_dtype(tflite_in(n, 2)->type, &w) &&
           dtype_eq(w, DT_U8) && tflite_scales(tflite_in(n, 3)) == 1 &&
           dtype_eq(expr_dtype(n->in[3]), DT_I32) && is_word(tflite_in(n, 4), 0x1p-11) &&
           n->nout == 4 && is_byte(tflite_out(n, 0)) && is_word(tflite_out(n, 1), 0x1p-11) &&
           is_byte(tflite_out(n, 2)) && is_word(tflite_out(n, 3), 0x1p-12);
}

/* A product of numbers in 2^-15, half up. */
static const Expr *product(const Build *b, const Expr *x, const Expr *y)
{
    return by(b, "right_shift", by(b, "add", build_mul(b, x, y), 1 << (UNIT - 1)), UNIT);
}

/* x times a factor, rounded half up twice. */
static const Expr *times_up(const Build *b, const Expr *x, TfliteFixed f)
{
    int bits = f.shift < 0 ? -f.shift : 0;

    f.shift += bits;
    x = tflite_times(b, x, TFLITE_ANY, 1, &f, 1);
    return bits ? by(b, "right_shift", by(b, "add", x, ldexp(1, bits - 1)), bits) : x;
}

/* Inputs: data [N, I], state [N, H], weights [4 * H, I + H], biases [4 * H], cell [N, H]. */
bool lstm_basic_in_integers(TfliteNode *n, int64_t H)
{
    enum { I, C, F, O, GATE_WHOLE = 3, CELL_WHOLE };
    const Build *b = &n->b;
    TfliteFixed  f;
    const Expr  *both = build_concat(b, 2, n->in, 1), *w = wide(b, n->in[2]), *g, *gate[GATES];
    const Expr  *c, *h;

    if (!tflite_fixed(n, 4096 * (double)(float)tflite_scale(tflite_in(n, 3), 0), &f))
        return false;
    w = by(b, "subtract", w, (double)tflite_zero(tflite_in(n, 2), 0));
    g = build_add(b, lstm_sums(b, both, 128, w), n->in[3]);
    g = lstm_words(b, times_up(b, g, f));
    for (uint32_t i = 0; i < GATES; i++) {
        gate[i] = build_slice(b, g, 1, i * H, (i + 1) * H);
        gate[i] = i == C ? tflite_fixed_tanh(b, gate[i], GATE_WHOLE)
                         : tflite_fixed_sigmoid(b, gate[i], GATE_WHOLE);
    }
    c = tflite_rounded(b, product(b, gate[I], gate[C]), CELL_WHOLE);
    c = lstm_words(b, build_add(b, c, product(b, gate[F], wide(b, n->in[4]))));
    h = lstm_words(b, by(b, "left_shift", c, CELL_WHOLE - GATE_WHOLE));
    h = product(b, gate[O], tflite_fixed_tanh(b, h, GATE_WHOLE));
    h = by(b, "add", build_clip(b, tflite_rounded(b, h, 8), -128, 127), 128);
    n->out[0] = build_cast(b, h, DT_U8);
    n->out[1] = build_cast(b, c, DT_I16);
    n->out[2] = both;
    n->out[3] = build_cast(b, g, DT_I16);
    return n->out[0] && n->out[1] && n->out[3];
}
