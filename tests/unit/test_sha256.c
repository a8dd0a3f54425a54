/* base/sha256.c: every way that this processor has, against the vectors of FIPS 180-4 and against
 * each other at all lengths around the block and the padding, in one piece and in many.  Needs
 * nothing but that file, so that tests/base/sha256_arm.sh can run it for another processor. */
#include "base/base.h"
#include "tests/unit/check.h"

static const Sha256Path  paths[] = {SHA256_SCALAR, SHA256_X86, SHA256_ARM};
static const char *const names[] = {"scalar", "x86", "arm"};
static uint8_t           data[4096];

static Sha256 hash_by(Sha256Path path, const uint8_t *at, size_t n, size_t piece)
{
    Sha256Ctx c;

    sha256_init(&c);
    c.path = path;
    for (size_t i = 0; i < n; i += piece)
        sha256_add(&c, at + i, n - i < piece ? n - i : piece);
    return sha256_end(&c);
}

static bool same(Sha256 a, Sha256 b)
{
    return memcmp(a.b, b.b, sizeof a.b) == 0;
}

static void test_vectors(void)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqr"
         "lmnopqrsmnopqrstnopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    char hex[65];

    for (size_t p = 0; p < COUNT(paths); p++) {
        if (!sha256_has(paths[p])) {
            printf("SKIP %s: not on this processor\n", names[p]);
            continue;
        }
        printf("%s\n", names[p]);
        for (size_t i = 0; i < COUNT(rows); i++) {
            size_t n = strlen(rows[i].text);

            sha256_hex(hash_by(paths[p], (const uint8_t *)rows[i].text, n, n + 1), hex);
            CHECK_STR(hex, rows[i].want);
        }
    }
}

/* A million times "a", in pieces that fall on every offset in a block. */
static void test_million(void)
{
    uint8_t   a[1000];
    Sha256Ctx c;
    char      hex[65];

    memset(a, 'a', sizeof a);
    for (size_t p = 0; p < COUNT(paths); p++) {
        if (!sha256_has(paths[p]))
            continue;
        sha256_init(&c);
        c.path = paths[p];
        for (size_t i = 0; i < 1000; i++) {
            sha256_add(&c, a, i);
            sha256_add(&c, a, 1000 - i);
        }
        sha256_hex(sha256_end(&c), hex);
        CHECK_STR(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    }
}

static void test_lengths(void)
{
    static const size_t pieces[] = {1, 7, 63, 64, 65, 127, 128, 500};

    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 131 + (i >> 8) * 17);
    for (size_t n = 0; n < 600; n++) {
        /* From an odd address too: the loads need no alignment. */
        Sha256 want = hash_by(SHA256_SCALAR, data + n % 5, n, n + 1);

        CHECK(same(sha256((Bytes){data + n % 5, n}), want));
        for (size_t p = 0; p < COUNT(paths); p++) {
            if (!sha256_has(paths[p]))
                continue;
            CHECK(same(hash_by(paths[p], data + n % 5, n, n + 1), want));
            for (size_t k = 0; k < COUNT(pieces); k++)
                CHECK(same(hash_by(paths[p], data + n % 5, n, pieces[k]), want));
        }
    }
    CHECK(same(sha256((Bytes){data, sizeof data}),
               hash_by(SHA256_SCALAR, data, sizeof data, sizeof data)));
    CHECK(!same(sha256((Bytes){data, 64}), sha256((Bytes){data, 65})));
}

/* A hash may change its way between two pieces: the state is the same for all. */
static void test_change(void)
{
    Sha256 want = hash_by(SHA256_SCALAR, data, 1000, 1000);

    for (size_t p = 0; p < COUNT(paths); p++) {
        Sha256Ctx c;

        if (!sha256_has(paths[p]))
            continue;
        sha256_init(&c);
        c.path = paths[p];
        sha256_add(&c, data, 300);
        c.path = SHA256_SCALAR;
        sha256_add(&c, data + 300, 400);
        c.path = paths[p];
        sha256_add(&c, data + 700, 300);
        CHECK(same(sha256_end(&c), want));
    }
}

int main(void)
{
    RUN(test_vectors);
    RUN(test_million);
    RUN(test_lengths);
    RUN(test_change);
    return check_result();
}
