/* Hashes, and the integer arithmetic that C lacks.  `hash_bytes` is for tables in memory only and
 * may change; what is stored or printed is SHA-256
 * (sha256.c). */
#include "base/base.h"

#include <string.h>

uint64_t hash_mix(uint64_t a, uint64_t b)
{
    uint64_t h = a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2));

    /* the finaliser of MurmurHash3 */
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdu;
    h ^= h >> 33;
    h *= 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 33;
}

uint64_t hash_bytes(const void *p, size_t n, uint64_t seed)
{
    const uint8_t *at = p;
    uint64_t       h = hash_mix(seed, n), w;

    for (; n >= 8; at += 8, n -= 8) {
        memcpy(&w, at, 8);
        h = hash_mix(h, w);
    }
    if (n) {
        w = 0;
        memcpy(&w, at, n);
        h = hash_mix(h, w);
    }
    return h;
}

/* ---- integers -------------------------------------------------------------------------------- */

int64_t gcd_i64(int64_t a, int64_t b)
{
    uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a;
    uint64_t y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;

    while (y) {
        uint64_t r = x % y;

        x = y;
        y = r;
    }
    return x > INT64_MAX ? INT64_MAX : (int64_t)x; /* only gcd(INT64_MIN, 0 or INT64_MIN) */
}

int64_t floor_div(int64_t a, int64_t b)
{
    int64_t q = a / b;

    return a % b < 0 ? q - 1 : q;
}

int64_t floor_mod(int64_t a, int64_t b)
{
    int64_t r = a % b;

    return r < 0 ? r + b : r;
}
