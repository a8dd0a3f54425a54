/* SHA-256, FIPS 180-4: what is stored or printed is hashed with it, all weights of a model among
 * that, so it is worth the processor's own instructions.  Three ways to take in blocks of 64 bytes,
 * with the same results: plain C, SHA-NI of x86, the cryptographic extension of ARMv8.  Which one
 * is seen when a hash is begun; a hash that is under way can be told another (tests do). */
#include "base/base.h"

#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <arm_neon.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

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

/* ---- plain C -------------------------------------------------------------------------------- */

static uint32_t ror(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static void block_scalar(uint32_t h[8], const uint8_t *p)
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
    /* The letters of the standard, a to h, are s[0] to s[7] before round 0 and change places in
     * each round; unrolled by eight the places are known, and all stay in registers. */
    for (int i = 0; i < 64; i += 8) {
#pragma GCC unroll 8
        for (unsigned k = 0; k < 8; k++) {
            uint32_t a = s[(8 - k) % 8], b = s[(9 - k) % 8], c = s[(10 - k) % 8];
            uint32_t e = s[(12 - k) % 8], f = s[(13 - k) % 8], g = s[(14 - k) % 8];
            uint32_t t1 = s[(15 - k) % 8] + (ror(e, 6) ^ ror(e, 11) ^ ror(e, 25)) +
                          ((e & f) ^ (~e & g)) + K[i + (int)k] + w[i + (int)k];
            uint32_t t2 = (ror(a, 2) ^ ror(a, 13) ^ ror(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));

            s[(11 - k) % 8] += t1;
            s[(15 - k) % 8] = t1 + t2;
        }
    }
    for (int i = 0; i < 8; i++)
        h[i] += s[i];
}

/* ---- the instructions of x86 --------------------------------------------------------------------- */

#if defined(__x86_64__)

/* sha256rnds2 does two rounds on the state as {a b e f} and {c d g h}, high word first; the two
 * sums of K and w that it needs are the low half of a vector.  sha256msg1 and sha256msg2 make the
 * next four words of the schedule from the last sixteen, except one term that is added here. */
TARGET_FEATURES("sha,sse4.1,ssse3")
static void blocks_x86(uint32_t h[8], const uint8_t *p, size_t n)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i       low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)h), 0xb1);
    __m128i       high = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(h + 4)), 0x1b);
    __m128i       abef = _mm_alignr_epi8(low, high, 8);
    __m128i       cdgh = _mm_blend_epi16(high, low, 0xf0);

    for (; n; n--, p += 64) {
        __m128i w[4], abef_before = abef, cdgh_before = cdgh;

        for (int i = 0; i < 4; i++)
            w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(p + 16 * i)), swap);
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) {
            __m128i now = w[i % 4];
            __m128i sum = _mm_add_epi32(now, _mm_loadu_si128((const __m128i *)(K + 4 * i)));

            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
            if (i < 12) {
                __m128i last = w[(i + 3) % 4];
                __m128i next = _mm_sha256msg1_epu32(now, w[(i + 1) % 4]);

                next = _mm_add_epi32(next, _mm_alignr_epi8(last, w[(i + 2) % 4], 4));
                w[i % 4] = _mm_sha256msg2_epu32(next, last);
            }
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    low = _mm_shuffle_epi32(abef, 0x1b);
    high = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)h, _mm_blend_epi16(low, high, 0xf0));
    _mm_storeu_si128((__m128i *)(h + 4), _mm_alignr_epi8(high, low, 8));
}

#endif

/* ---- the instructions of ARMv8 ------------------------------------------------------------------- */

#if defined(__aarch64__) && defined(__linux__)

/* sha256h and sha256h2 do four rounds on the state as {a b c d} and {e f g h}; sha256su0 and
 * sha256su1 make the next four words of the schedule. */
TARGET_FEATURES(TARGET_ARM_SHA2)
static void blocks_arm(uint32_t h[8], const uint8_t *p, size_t n)
{
    uint32x4_t abcd = vld1q_u32(h), efgh = vld1q_u32(h + 4);

    for (; n; n--, p += 64) {
        uint32x4_t w[4], abcd_before = abcd, efgh_before = efgh;

        for (int i = 0; i < 4; i++)
            w[i] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(p + 16 * i)));
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) {
            uint32x4_t sum = vaddq_u32(w[i % 4], vld1q_u32(K + 4 * i)), before = abcd;

            if (i < 12)
                w[i % 4] = vsha256su1q_u32(vsha256su0q_u32(w[i % 4], w[(i + 1) % 4]),
                                           w[(i + 2) % 4], w[(i + 3) % 4]);
            abcd = vsha256hq_u32(abcd, efgh, sum);
            efgh = vsha256h2q_u32(efgh, before, sum);
        }
        abcd = vaddq_u32(abcd, abcd_before);
        efgh = vaddq_u32(efgh, efgh_before);
    }
    vst1q_u32(h, abcd);
    vst1q_u32(h + 4, efgh);
}

#endif

/* ---- which of them ----------------------------------------------------------------------------- */

bool sha256_has(Sha256Path path)
{
    switch (path) {
    case SHA256_SCALAR: return true;
    case SHA256_X86:
#if defined(__x86_64__)
        /* From a table that the compiler's support library filled in before main: cpuid itself
         * takes microseconds in a virtual machine. */
        return __builtin_cpu_supports("sha") != 0 && __builtin_cpu_supports("sse4.1") != 0;
#else
        return false;
#endif
    case SHA256_ARM:
#if defined(__aarch64__) && defined(__linux__)
        return (getauxval(AT_HWCAP) & HWCAP_SHA2) != 0;
#else
        return false;
#endif
    }
    return false;
}

static void blocks(Sha256Ctx *c, const uint8_t *p, size_t n)
{
#if defined(__x86_64__)
    if (c->path == SHA256_X86) {
        blocks_x86(c->h, p, n);
        return;
    }
#elif defined(__aarch64__) && defined(__linux__)
    if (c->path == SHA256_ARM) {
        blocks_arm(c->h, p, n);
        return;
    }
#endif
    for (; n; n--, p += 64)
        block_scalar(c->h, p);
}

/* ---- any number of bytes ------------------------------------------------------------------------ */

void sha256_init(Sha256Ctx *c)
{
    *c = (Sha256Ctx){{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
                      0x1f83d9ab, 0x5be0cd19},
                     0,
                     {0},
                     sha256_has(SHA256_X86)   ? SHA256_X86
                     : sha256_has(SHA256_ARM) ? SHA256_ARM
                                              : SHA256_SCALAR};
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
        blocks(c, c->block, 1);
    }
    blocks(c, at, n / 64);
    if (n % 64)
        memcpy(c->block, at + n / 64 * 64, n % 64);
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
