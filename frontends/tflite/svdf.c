/* SVDF: each unit is the sum of `rank` filters; a filter is a product with the data, and one over
 * the last `memory` of those products.  Data [N, I], weights [F, I] and [F, memory], bias [units],
 * state [N, F * memory], of which this run's product becomes the last.
 *
 * Weights of 8 bits of data in floats stay bytes (hybrid.c), those over time become floats.  Data
 * and weights of 8 bits, and of 16 over time, are the integers of LiteRT's reference kernel:
 *
 *     state = times((x - zx) W)            within 16 bits
 *     y = times(sum of state * W_time + b) + z */
#include "frontends/tflite/recurrent.h"

typedef struct {
    TfliteNode *n;
    int64_t     rank, F, memory, units;
    const Idx  *N;
} Svdf;

/* ---- what both have in common ---------------------------------------------------------------------- */

/* The last products: those of the state but the first, and y [N, F]; [N, F, memory]. */
static const Expr *remembered(const Svdf *k, const Expr *past, const Expr *y)
{
    const Build *b = &k->n->b;
    Arith       *A = b->c->arith;
    const Idx   *all[3] = {k->N, idx_const(A, k->F), idx_const(A, k->memory)},
              *one[3] = {k->N, all[1], idx_const(A, 1)};

    y = build_reshape_to(b, y, 3, one);
    if (k->memory == 1)
        return y;
    past = build_slice(b, build_reshape_to(b, past, 3, all), 2, 1, k->memory);
    return build_concat(b, 2, (const Expr *[]){past, y}, 2);
}

/* .. are the state that the next run begins with. */
static bool kept(const Svdf *k, const Expr *all)
{
    const Build *b = &k->n->b;
    const Idx   *flat[2] = {k->N, idx_const(b->c->arith, k->F * k->memory)};

    if (!all || !tflite_is_kept(k->n, 4))
        return all != NULL;
    return tflite_keep(k->n, 4, build_reshape_to(b, all, 2, flat));
}

/* Sums over time, and of the filters of each unit: [N, units]. */
static const Expr *summed(const Svdf *k, const Expr *products)
{
    const Build *b = &k->n->b;
    Arith       *A = b->c->arith;
    int64_t      last = 2;
    const Idx   *ranks[3] = {k->N, idx_const(A, k->units), idx_const(A, k->rank)};

    products = build_reduce(b, "sum", products, 1, &last, false);
    return build_reduce(b, "sum", build_reshape_to(b, products, 3, ranks), 1, &last, false);
}

static bool read_svdf(TfliteNode *n, Svdf *k)
{
    const Build *b = &n->b;

    *k = (Svdf){.n = n, .rank = tflite_int(n, "rank")};
    for (uint32_t i = 0; i < 3; i++)
        if (!tflite_rank(n, i, 2, 2))
            return false;
    k->F = build_dim(b, n->in[2], 0);
    k->memory = build_dim(b, n->in[2], 1);
    if (k->rank < 1 || k->F < 1 || k->memory < 1 || k->F % k->rank || k->F > INT32_MAX / k->memory)
        return tflite_error(n, E_IMPORT, "%lld filters over %lld steps, of rank %lld",
                            (long long)k->F, (long long)k->memory, (long long)k->rank);
    k->units = k->F / k->rank;
    k->N = expr_form(n->in[0], 0);
    return true;
}

/* ---- floats ---------------------------------------------------------------------------------------- */

static const Expr *bias_of(const Svdf *k)
{
    const TfliteTensor *t = tflite_in(k->n, 3);
    const Expr         *bias = layer_value(k->n, 3, 1, &k->units);

    if (bias && expr_dtype(k->n->in[3]).bits == 32 && dtype_is_int(expr_dtype(k->n->in[3])) &&
        tflite_scales(t) == 1)
        bias = build_by(&k->n->b, "multiply", bias, tflite_scale(t, 0));
    return bias;
}

static bool svdf_in_floats(const Svdf *k)
{
    TfliteNode  *n = k->n;
    const Build *b = &n->b;
    const Expr  *x = build_cast(b, tflite_value(n, 0), DT_F32), *w, *time, *past, *y;
    Layer        layer = {.n = n};

    if (!x || !(w = layer_value(n, 1, 2, (int64_t[]){k->F, build_dim(b, x, 1)})) ||
        !(time = layer_value(n, 2, 2, (int64_t[]){k->F, k->memory})) ||
        !(past = layer_state(n, 4, k->N, k->F * k->memory)))
        return false;
    if (layer_is_hybrid(&layer, 1, 1))
        y = tflite_hybrid_dense(b, x, n->in[1], tflite_unit_scales(n, 1, 2),
                                tflite_int(n, "asymmetric_quantize_inputs"));
    else
        y = layer_rounded(&layer, 4, build2(b, "nn.dense", x, w, NULL));
    y = remembered(k, past, y);
    if (!kept(k, y))
        return false;
    y = summed(k, build_mul(b, y, time));
    if (y && tflite_has(n, 3))
        y = build_add(b, y, bias_of(k));
    return tflite_done(n, tflite_activate(n, y));
}

/* ---- integers -------------------------------------------------------------------------------------- */

static bool is_of(const TfliteTensor *t, DType want, bool symmetric)
{
    DType have;

    return tflite_is_quantized(t) && tflite_scales(t) == 1 && tflite_scale(t, 0) > 0 &&
           tflite_dtype(t->type, &have) && dtype_eq(have, want) &&
           (!symmetric || tflite_zero(t, 0) == 0);
}

/* The kernel has ReLU alone, and leaves it to the bounds of the result. */
static bool is_integer(const TfliteNode *n)
{
    static const DType types[] = {DT_I8, DT_I8, DT_I16};
    int64_t            act = tflite_int(n, "fused_activation_function");

    for (uint32_t i = 0; i < COUNT(types); i++)
        if (!is_of(tflite_in(n, i), types[i], i > 0))
            return false;
    return act <= 1 && n->p->in.n > 4 && tflite_in_index(n->p, 4) >= 0 &&
           is_of(tflite_in(n, 4), DT_I16, true) && is_of(tflite_out(n, 0), DT_I8, false) &&
           (!tflite_has(n, 3) || dtype_eq(expr_dtype(n->in[3]), DT_I32));
}

/* Input i as it is, in i32 and of these dimensions. */
static const Expr *integers(TfliteNode *n, uint32_t i, uint32_t rank, const int64_t *dims)
{
    if (!layer_value(n, i, rank, dims))
        return NULL;
    return build_cast(&n->b, n->in[i], DT_I32);
}

static float scale_of(const TfliteTensor *t)
{
    return (float)tflite_scale(t, 0);
}

static const Expr *times(const Svdf *k, const Expr *x, float v)
{
    TfliteFixed f;

    return tflite_fixed(k->n, (double)v, &f) ? tflite_times(&k->n->b, x, TFLITE_ANY, 1, &f, 1)
                                             : NULL;
}

/* The state that a run begins with, in i16. */
static const Expr *first_state(const Svdf *k)
{
    const Build *b = &k->n->b;
    const Idx   *dims[2] = {k->N, idx_const(b->c->arith, k->F * k->memory)};

    return tflite_has(k->n, 4) ? k->n->in[4] : build_zeros_of(b, DT_I16, 2, dims);
}

static bool svdf_in_integers(const Svdf *k)
{
    TfliteNode         *n = k->n;
    const Build        *b = &n->b;
    const TfliteTensor *state = tflite_in(n, 4), *out = tflite_out(n, 0);
    const Expr         *x = build_cast(b, n->in[0], DT_I32), *w, *time, *past = first_state(k), *y;

    if (!x || !past || !layer_state(n, 4, k->N, k->F * k->memory) ||
        !(w = integers(n, 1, 2, (int64_t[]){k->F, build_dim(b, x, 1)})) ||
        !(time = integers(n, 2, 2, (int64_t[]){k->F, k->memory})))
        return false;
    x = build_by(b, "subtract", x, (double)tflite_zero(tflite_in(n, 0), 0));
    y = times(k, build2(b, "nn.dense", x, w, NULL),
              scale_of(tflite_in(n, 0)) * scale_of(tflite_in(n, 1)) / scale_of(state));
    y = remembered(k, past, tflite_saturated(b, y, DT_I16));
    if (!kept(k, y))
        return false;
    y = summed(k, build_mul(b, build_cast(b, y, DT_I32), time));
    if (y && tflite_has(n, 3))
        y = build_add(b, y, integers(n, 3, 1, &k->units));
    y = times(k, y, scale_of(state) * scale_of(tflite_in(n, 2)) / scale_of(out));
    y = build_by(b, "add", y, (double)tflite_zero(out, 0));
    return tflite_done(n, tflite_saturated(b, y, DT_I8));
}

bool tflite_svdf(TfliteNode *n)
{
    Svdf k;

    if (!read_svdf(n, &k))
        return false;
    return is_integer(n) ? svdf_in_integers(&k) : svdf_in_floats(&k);
}
