/* Random numbers (frontends/random.c) from the seeds of the operator.
 *
 * What is compiled has no state: each run gives the numbers that the interpreter's first run gives.
 * An operator without seeds, whose numbers are other ones in each process there, has its place in
 * the model as its seed. */
#include "frontends/tflite/tflite.h"

#include <string.h>

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
    return philox_new(seed, seed2);
}

/* Input: the shape. */
bool tflite_random(TfliteNode *n)
{
    Ints shape;

    return tflite_ints(n, 0, &shape) &&
           tflite_done(n, build_random(&n->b, philox_of(n), !strcmp(n->row->name, "RANDOM_UNIFORM"),
                                       shape));
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
    if (K < 1 || !random_cells(b, 2, (int64_t[]){N, samples}, &cells))
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
