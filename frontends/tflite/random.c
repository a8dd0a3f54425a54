/* Random numbers, by Philox 4x32-10 as TensorFlow has it, from the seeds of the operator.
 *
 * What is compiled has no state: each run gives the numbers that the interpreter's first run gives.
 * An operator without seeds, whose numbers are other ones in each process there, has its place in
 * the model as its seed. */
#include "frontends/tflite/tflite.h"

#include <math.h>
#include <string.h>

#define MOST_CELLS (1 << 24)

typedef struct {
    uint32_t counter[4], key[2];
} Philox;

/* The interpreter takes 32 bits of each. */
static uint64_t seed_of(const TfliteNode *n, const char *name)
{
    return (uint64_t)(int64_t)(int32_t)(uint32_t)tflite_int(n, name);
}

static Philox philox_of(const TfliteNode *n)
{
    uint64_t seed = seed_of(n, "seed"), seed2 = seed_of(n, "seed2");

    if (!seed && !seed2)
        seed = n->im->converted;
    return (Philox){.counter = {0, 0, (uint32_t)seed2, (uint32_t)(seed2 >> 32)},
                    .key = {(uint32_t)seed, (uint32_t)(seed >> 32)}};
}

/* The next four. */
static void philox_next(Philox *p, uint32_t *out)
{
    uint32_t key[2] = {p->key[0], p->key[1]};

    memcpy(out, p->counter, 4 * sizeof *out);
    for (uint32_t i = 0; i < 10; i++) {
        uint64_t a = (uint64_t)0xd2511f53 * out[0], b = (uint64_t)0xcd9e8d57 * out[2];
        uint32_t was1 = out[1], was3 = out[3];

        out[0] = (uint32_t)(b >> 32) ^ was1 ^ key[0];
        out[1] = (uint32_t)b;
        out[2] = (uint32_t)(a >> 32) ^ was3 ^ key[1];
        out[3] = (uint32_t)a;
        key[0] += 0x9e3779b9;
        key[1] += 0xbb67ae85;
    }
    for (uint32_t i = 0; i < 4 && ++p->counter[i] == 0; i++)
        ;
}

/* In [0, 1), by the lowest 23 bits. */
static float unit(uint32_t x)
{
    return (float)(x & 0x7fffff) / 0x1p23f;
}

/* A pair by Box and Muller. */
static void normal(uint32_t x, uint32_t y, float *out)
{
    float u = unit(x) < 1e-7f ? 1e-7f : unit(x), angle = (float)(2 * M_PI) * unit(y);
    float size = sqrtf(-2 * logf(u));

    out[0] = sinf(angle) * size;
    out[1] = cosf(angle) * size;
}

static bool count_cells(TfliteNode *n, uint32_t rank, const int64_t *dims, int64_t *cells)
{
    *cells = 1;
    for (uint32_t i = 0; i < rank; i++)
        if (dims[i] < 0 || !checked_mul(*cells, dims[i], cells) || *cells > MOST_CELLS)
            return tflite_error(n, E_UNSUPPORTED, "more than 2^24 random numbers");
    return true;
}

/* Input: the shape. */
bool tflite_random(TfliteNode *n)
{
    bool    flat = !strcmp(n->row->name, "RANDOM_UNIFORM");
    Philox  p = philox_of(n);
    Ints    shape;
    int64_t cells;
    float  *at;

    if (!tflite_ints(n, 0, &shape))
        return false;
    if (!build_check_shape(&n->b, dims_of_i64(n->b.c, shape.at, shape.n)) ||
        !count_cells(n, shape.n, shape.at, &cells))
        return false;
    at = NEW_ARRAY(n->b.c->arena, float, (size_t)cells + 4);
    for (int64_t i = 0; i < cells; i += 4) {
        uint32_t x[4];

        philox_next(&p, x);
        for (uint32_t k = 0; k < 4; k += 2) {
            if (flat)
                at[i + k] = unit(x[k]), at[i + k + 1] = unit(x[k + 1]);
            else
                normal(x[k], x[k + 1], at + i + k);
        }
    }
    return tflite_done(n, build_const(&n->b, DT_F32, shape.n, shape.at, at));
}

/* Classes by their unnormalized logarithms [N, K], as many for each row as input 1 says: the first
 * one up to which the probabilities sum up to more than a number in [0, 1). */
bool tflite_multinomial(TfliteNode *n)
{
    const Build *b = &n->b;
    Philox       p = philox_of(n);
    ScanAttrs   *along = ATTRS(b, ScanAttrs);
    int64_t      N, K, samples, cells, last = 2;
    const Expr  *sums, *total, *most, *y;
    double      *at;
    DType        t;

    if (!tflite_rank(n, 0, 2, 2) || !tflite_number(n, 1, &samples))
        return false;
    N = build_dim(b, n->in[0], 0), K = build_dim(b, n->in[0], 1);
    if (K < 1 || !count_cells(n, 2, (int64_t[]){N, samples}, &cells))
        return K < 1 ? tflite_error(n, E_IMPORT, "no classes") : false;
    if (!tflite_dtype(tflite_out(n, 0)->type, &t) || !dtype_is_int(t))
        return tflite_error(n, E_IMPORT, "classes as %s",
                            tflite_dtype_name(tflite_out(n, 0)->type));
    at = NEW_ARRAY(b->c->arena, double, (size_t)cells + 2);
    for (int64_t i = 0; i < cells; i += 2) {
        uint32_t x[4];

        philox_next(&p, x);
        for (uint32_t k = 0; k < 2; k++)
            at[i + k] = (double)((uint64_t)(x[2 * k] & 0xfffff) << 32 | x[2 * k + 1]) / 0x1p52;
    }
    along->axis = 1;
    most = build_reduce(b, "max", n->in[0], 1, (int64_t[]){1}, true);
    sums = build_cast(b, build_sub(b, n->in[0], most), DT_F64);
    sums = build1(b, "cumsum", build1(b, "exp", sums, NULL), along);
    total = build_reshape(b, build_slice(b, sums, 1, K - 1, K), 3, (int64_t[]){N, 1, 1});
    y = build_const(b, DT_F64, 3, (int64_t[]){N, samples, 1}, at);
    y = build2(b, "less_equal", build_reshape(b, sums, 3, (int64_t[]){N, 1, K}),
               build_mul(b, y, total), NULL);
    y = build_reduce(b, "sum", build_cast(b, y, DT_I32), 1, &last, false);
    return y && tflite_done(n, build_cast(b, build_clip(b, y, 0, (double)(K - 1)), t));
}
