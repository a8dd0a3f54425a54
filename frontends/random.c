/* Random numbers, by Philox 4x32-10 as TensorFlow has it.  What is compiled has no state: each run
 * gives the numbers of the first one. */
#include "frontends/calls.h"

#include <math.h>
#include <string.h>

#define MOST_CELLS (1 << 24)

Philox philox_new(uint64_t seed, uint64_t seed2)
{
    return (Philox){.counter = {0, 0, (uint32_t)seed2, (uint32_t)(seed2 >> 32)},
                    .key = {(uint32_t)seed, (uint32_t)(seed >> 32)}};
}

void philox_next(Philox *p, uint32_t *out)
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

bool random_cells(const Build *b, uint32_t rank, const int64_t *dims, int64_t *cells)
{
    *cells = 1;
    for (uint32_t i = 0; i < rank; i++)
        if (dims[i] < 0 || !checked_mul(*cells, dims[i], cells) || *cells > MOST_CELLS)
            return build_error(b, E_UNSUPPORTED, "more than 2^24 random numbers");
    return true;
}

const Expr *build_random(const Build *b, Philox p, bool flat, Ints shape)
{
    int64_t cells;
    float  *at;

    if (!build_check_shape(b, dims_of_i64(b->c, shape.at, shape.n)) ||
        !random_cells(b, shape.n, shape.at, &cells))
        return NULL;
    at = NEW_ARRAY(b->c->arena, float, (size_t)cells + 4);
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
    return build_const(b, DT_F32, shape.n, shape.at, at);
}
