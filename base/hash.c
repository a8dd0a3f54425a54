/* Hashes, and the integer arithmetic that C lacks.  `hash_bytes` is for tables in memory only and
 * may change; what is stored or printed is SHA-256. */
#include "base/base.h"

#include <stdio.h>
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

/* ---- SHA-256, FIPS 180-4 --------------------------------------------------------------------- */

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t ror(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static void sha256_block(uint32_t h[8], const uint8_t *p)
{
    uint32_t w[64], s[8];

    for (int i = 0; i < 16; i++, p += 4)
        w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = ror(w[i - 15], 7) ^ ror(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t b = ror(w[i - 2], 17) ^ ror(w[i - 2], 19) ^ w[i - 2] >> 10;

        w[i] = w[i - 16] + a + w[i - 7] + b;
    }
    memcpy(s, h, sizeof s);
    for (int i = 0; i < 64; i++) {
        uint32_t e = ror(s[4], 6) ^ ror(s[4], 11) ^ ror(s[4], 25);
        uint32_t t1 = s[7] + e + ((s[4] & s[5]) ^ (~s[4] & s[6])) + K[i] + w[i];
        uint32_t a = ror(s[0], 2) ^ ror(s[0], 13) ^ ror(s[0], 22);
        uint32_t t2 = a + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));

        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += t1;
        s[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++)
        h[i] += s[i];
}

void sha256_init(Sha256Ctx *c)
{
    *c = (Sha256Ctx){{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
                      0x1f83d9ab, 0x5be0cd19},
                     0,
                     {0}};
}

void sha256_add(Sha256Ctx *c, const void *p, size_t n)
{
    const uint8_t *at = p;
    size_t         have = c->bytes % 64;

    c->bytes += n;
    if (have) {
        size_t take = n < 64 - have ? n : 64 - have;

        memcpy(c->block + have, at, take);
        at += take;
        n -= take;
        if (have + take < 64)
            return;
        sha256_block(c->h, c->block);
    }
    for (; n >= 64; at += 64, n -= 64)
        sha256_block(c->h, at);
    if (n)
        memcpy(c->block, at, n);
}

Sha256 sha256_end(Sha256Ctx *c)
{
    static const uint8_t pad[64] = {0x80};
    uint64_t             bits = c->bytes * 8;
    uint8_t              length[8];
    Sha256               out;

    sha256_add(c, pad, 1 + (119 - c->bytes % 64) % 64);
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    sha256_add(c, length, 8);
    for (int i = 0; i < 32; i++)
        out.b[i] = (uint8_t)(c->h[i / 4] >> (24 - 8 * (i % 4)));
    return out;
}

Sha256 sha256(Bytes data)
{
    Sha256Ctx c;

    sha256_init(&c);
    if (data.n)
        sha256_add(&c, data.at, data.n);
    return sha256_end(&c);
}

void sha256_hex(Sha256 s, char hex[65])
{
    for (int i = 0; i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", s.b[i]);
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
