/* base/json.c: JSON of strangers, and what of it is refused. */
#include "base/json.h"
#include "tests/unit/check.h"

#include <stdlib.h>

static bool reads_bytes(const char *text, size_t n)
{
    json_error_t error;
    json_t      *root = json_read((Bytes){(const uint8_t *)text, n}, &error);
    bool         ok = root != NULL;

    if (!ok)
        CHECK(error.position >= 0 && (size_t)error.position <= n + 1);
    json_decref(root);
    return ok;
}

static bool reads(const char *text)
{
    return reads_bytes(text, strlen(text));
}

static void test_refused(void)
{
    static const char *const bad[] = {
        "",
        "{",
        "[1, 2",
        "{\"a\": 1} x",
        "{\"a\": 1, \"a\": 2}", /* readers would differ in which they take */
        "[\"a\\u0000b\"]",      /* ends before its end */
        "{\"a\\u0000b\": 1}",
        "[9223372036854775808]",
        "[-9223372036854775809]",
        "[1e999]",
        "[\"\xff\"]",
        "[\"\xed\xa0\x80\"]",
        "[NaN]",
    };

    for (size_t i = 0; i < COUNT(bad); i++)
        CHECK(!reads(bad[i]));
    CHECK(!reads_bytes("[\"a\0b\"]", 7));
    CHECK(reads("{\"a\": [9223372036854775807, -1.5e3, null, true, \"\\u00e9\xc3\xa9\"]}"));
}

/* `n` brackets and what closes them. */
static bool reads_nested(size_t n)
{
    char *text = malloc(2 * n);
    bool  ok;

    memset(text, '[', n);
    memset(text + n, ']', n);
    ok = reads_bytes(text, 2 * n);
    free(text);
    return ok;
}

static void test_limits(void)
{
    size_t n = (size_t)JSON_BYTES + 1;
    char  *text = malloc(n);

    CHECK(reads_nested(1000));
    CHECK(!reads_nested(3000));
    CHECK(!reads_nested(4 << 20));
    memset(text, ' ', n);
    text[0] = '[';
    text[n - 2] = ']';
    CHECK(reads_bytes(text, n - 1));
    CHECK(!reads_bytes(text, n));
    free(text);
}

int main(void)
{
    RUN(test_refused);
    RUN(test_limits);
    return check_result();
}
