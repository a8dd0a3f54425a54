/* Random numbers: RandomNormal, RandomUniform and their Like, Bernoulli, Multinomial, and Dropout
 * in training mode.
 *
 * What is compiled has no state, so the numbers are constants: the same in each run, on each
 * machine and for each target.  Number i of a node is made of its seed alone:
 *
 *     z = (bits of the seed as f32 << 32) + i, mixed as SplitMix64 does
 *     uniform in [0, 1): (z >> 11) / 2^53
 *     normal: by Box and Muller, from the numbers 2 i and 2 i + 1
 *
 * docs/compatibility.md promises it to users.
 * A node without a seed has its place among the model's nodes as its seed. */
#include "frontends/onnx/onnx.h"

#include <math.h>
#include <string.h>

#define MAX_CELLS (1 << 24)

static uint64_t mixed(uint64_t z)
{
    z *= 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Bernoulli and others have a float, Dropout an integer. */
static uint64_t seed_of(const Node *n)
{
    const OnnxAttr *a = node_attr(n, "seed");
    float           f;
    uint32_t        bits;

    if (!a)
        return (uint64_t)n->im->converted << 32;
    f = a->type == ONNX_ATTR_INT ? (float)a->i : a->f;
    memcpy(&bits, &f, sizeof bits);
    return (uint64_t)bits << 32;
}

static double uniform(uint64_t seed, uint64_t i)
{
    return (double)(mixed(seed + i) >> 11) / 9007199254740992.0;
}

static double normal(uint64_t seed, uint64_t i)
{
    double u = 1 - uniform(seed, 2 * i), v = uniform(seed, 2 * i + 1);

    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

typedef double Draw(uint64_t seed, uint64_t i);

/* mean + scale * number, for all cells. */
static const Expr *numbers(Node *n, Draw *draw, DType t, Dims shape, double mean, double scale)
{
    const Build *b = &n->b;
    uint64_t     seed = seed_of(n);
    int64_t      dims[MAX_RANK], cells = 1;
    uint8_t     *at;

    for (uint32_t i = 0; i < shape.n; i++)
        if (!idx_is_const(shape.at[i], &dims[i]) || !checked_mul(cells, dims[i], &cells) ||
            cells > MAX_CELLS)
            return node_error(n, E_UNSUPPORTED,
                              "more than 2^24 random numbers, or a number that "
                              "only the run knows");
    if (!dtype_is_float(t))
        return node_error(n, E_UNSUPPORTED, "random numbers of %s", dtype_text(b->c, t));
    at = arena_array(b->c->arena, (size_t)cells + 1, dtype_bytes(t));
    for (int64_t i = 0; i < cells; i++)
        dtype_put_f(t, at + i * dtype_bytes(t), mean + scale * draw(seed, (uint64_t)i));
    return build_const(b, t, shape.n, dims, at);
}

/* The type named by `dtype`, else `fallback`. */
static bool type_named(Node *n, DType fallback, DType *t)
{
    *t = fallback;
    return !node_attr(n, "dtype") || onnx_dtype(node_int(n, "dtype", 0), t) ||
           node_error(n, E_UNSUPPORTED, "element type %s",
                      onnx_dtype_text(node_int(n, "dtype", 0)));
}

static bool random_of(Node *n, Draw *draw, DType fallback, Dims shape)
{
    bool   flat = draw == uniform;
    double low = flat ? node_float(n, "low", 0) : node_float(n, "mean", 0);
    double scale = flat ? node_float(n, "high", 1) - low : node_float(n, "scale", 1);
    DType  t;

    return type_named(n, fallback, &t) && node_done(n, numbers(n, draw, t, shape, low, scale));
}

static bool shape_given(Node *n, Dims *out)
{
    Ints v;

    if (!node_ints(n, "shape", &v) || v.n > MAX_RANK)
        return node_error(n, E_IMPORT, "shape is missing, or of more than %d numbers", MAX_RANK);
    for (uint32_t i = 0; i < v.n; i++)
        if (v.at[i] < 0)
            return node_error(n, E_DIM, "dimension %u of the shape is %lld", i, (long long)v.at[i]);
    *out = dims_of_i64(n->b.c, v.at, v.n);
    return true;
}

bool convert_random_uniform(Node *n)
{
    Dims shape;

    return shape_given(n, &shape) && random_of(n, uniform, DT_F32, shape);
}

bool convert_random_normal(Node *n)
{
    Dims shape;

    return shape_given(n, &shape) && random_of(n, normal, DT_F32, shape);
}

bool convert_random_uniform_like(Node *n)
{
    return node_need_rank(n, 0, 0, MAX_RANK) &&
           random_of(n, uniform, expr_dtype(n->in[0]), expr_forms(n->in[0]));
}

bool convert_random_normal_like(Node *n)
{
    return node_need_rank(n, 0, 0, MAX_RANK) &&
           random_of(n, normal, expr_dtype(n->in[0]), expr_forms(n->in[0]));
}

/* 1 with the probability that the cell says. */
bool convert_bernoulli(Node *n)
{
    const Build *b = &n->b;
    const Expr  *x, *u;
    DType        t;

    if (!node_need_rank(n, 0, 0, MAX_RANK))
        return false;
    x = n->in[0];
    if (!type_named(n, expr_dtype(x), &t) ||
        !(u = numbers(n, uniform, expr_dtype(x), expr_forms(x), 0, 1)))
        return false;
    u = build2(b, "less", u, x, NULL);
    return u && node_done(n, build_cast(b, u, t));
}

/* Classes by their unnormalized logarithms [N, K]: how many cumulated probabilities a number
 * passes. */
bool convert_multinomial(Node *n)
{
    const Build  *b = &n->b;
    int64_t       samples = node_int(n, "sample_size", 1), last = 2;
    SoftmaxAttrs *soft = ATTRS(b, SoftmaxAttrs);
    ScanAttrs    *sums = ATTRS(b, ScanAttrs);
    const Expr   *p, *u;
    const Idx    *N, *K, *one = idx_const(b->c->arith, 1), *S;
    DType         t;

    if (!node_need_rank(n, 0, 2, 2) || !type_named(n, DT_I32, &t))
        return false;
    if (samples < 1 || samples > MAX_CELLS)
        return node_error(n, E_IMPORT, "sample_size is %lld", (long long)samples);
    S = idx_const(b->c->arith, samples);
    N = expr_form(n->in[0], 0), K = expr_form(n->in[0], 1);
    soft->axis = sums->axis = 1;
    p = build1(b, "nn.softmax", build_cast(b, n->in[0], DT_F32), soft);
    /* The last sum is 1, or what rounding left of it: a number passes K - 1 at most. */
    p = build_slice_to(b, build1(b, "cumsum", p, sums), 1, idx_const(b->c->arith, 0),
                       idx_addc(b->c->arith, K, -1));
    p = build_reshape_to(b, p, 3, (const Idx *[]){N, one, idx_addc(b->c->arith, K, -1)});
    if (!p || !(u = numbers(n, uniform, DT_F32, (Dims){3, (const Idx *[]){N, S, one}}, 0, 1)))
        return false;
    p = build2(b, "less_equal", p, u, NULL);
    p = build_reduce(b, "sum", p ? build_cast(b, p, DT_I32) : NULL, 1, &last, false);
    return p && node_done(n, build_cast(b, p, t));
}

/* Cells are dropped with the probability `ratio`, the others grow by as much. */
bool onnx_dropout_training(Node *n, const Expr *training)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *ratio, *keep, *y, *all;

    ratio = node_has(n, 1) ? build_reshape(b, build_cast(b, n->in[1], DT_F32), 0, NULL)
                           : expr_scalar(b->c, DT_F32, 0.5);
    if (!ratio || !(keep = numbers(n, uniform, DT_F32, expr_forms(x), 0, 1)))
        return false;
    all = build_const(b, DT_BOOL, 0, NULL, (bool[]){true});
    keep = build2(b, "less_equal", ratio, keep, NULL);
    keep = build2(b, "logical_or", keep, build1(b, "logical_not", training, NULL), NULL);
    ratio = build2(b, "subtract", build_scalar(b, ratio, 1), ratio, NULL);
    ratio = build_where(b, training, ratio, build_scalar(b, ratio, 1));
    if (!ratio)
        return false;
    y = build2(b, "divide", x, build_cast(b, ratio, expr_dtype(x)), NULL);
    y = build_where(b, keep, y, build_scalar(b, x, 0));
    n->out[1] = build2(b, "logical_and", keep, all, NULL);
    return n->out[1] && node_done(n, y);
}
