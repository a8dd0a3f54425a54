/* frontends/onnx/regex.h: what patterns match, as tables that lead over the bytes of a string, and
 * what is refused.
 */
#include "frontends/onnx/regex.h"
#include "tests/unit/check.h"

#include <string.h>

static Arena *arena;

static bool compile(const char *pattern, Regex *r, const char **why)
{
    *r = (Regex){0};
    return regex_compile(arena, (Bytes){(const uint8_t *)pattern, strlen(pattern)}, r, why);
}

static bool matches(const Regex *r, const char *text)
{
    uint32_t at = REGEX_START;

    for (size_t i = 0; i <= strlen(text); i++)
        at = (uint32_t)r->next[at * r->classes + r->class_of[(uint8_t)text[i]]];
    return at == REGEX_WHOLE;
}

static void test_matches(void)
{
    static const struct {
        const char *pattern, *yes, *no;
    } rows[] = {
        {"", "", "a"},
        {"a|b*", "bbb", "ab"},
        {"(a*)*b", "aaab", "aaa"},
        {"(|a)+", "aaa", "b"},
        {"a{2,4}", "aaa", "a"},
        {"a{3}b{0}", "aaa", "aaab"},
        {"a{0,2}(?:b{2,})?", "abbb", "ab"},
        {".", "\xf0\x9f\x98\x80", "\xf0\x9f\x98"}, /* not cut off */
        {"..", "\xc3\xa9x", "\xc3\xa9"},
        {".", "\x7f", "\n"},
        {".", "\xed\x9f\xbf", "\xed\xa0\x80"}, /* no surrogates */
        {"[^a]", "\xf4\x8f\xbf\xbf", "\xf4\x90\x80\x80"},
        {"[\\x{7ff}-\\x{801}]", "\xe0\xa0\x81", "\xe0\xa0\x82"},
        {"[]a]+", "a]a", "b"},
        {"[a\\-z]+", "a-z", "b"},
        {"[[:^digit:]]", "x", "4"},
        {"(?i:a)b", "Ab", "AB"},
        {"(?i)a(?-i)b", "Ab", "aB"},
        {"\\bab\\b.*", "ab c", "abc"},
        {"a\\Bb", "ab", "a b"},
        {"(?m)a$\\s^b", "a\nb", "a b"},
        {"a$\\s^b", NULL, "a\nb"},
        {"\\Aa\\z", "a", "aa"},
        {"\\101\\x42", "AB", "ab"},
        {"a{x", "a{x", "a"},
        {"((((){1000}){1000}){1000}){1000}a", "a", ""},
        {"((^|){10}){0,10}a", "a", "aa"},
    };
    const char *why;
    Regex       r;

    for (uint32_t i = 0; i < COUNT(rows); i++) {
        CHECK(compile(rows[i].pattern, &r, &why));
        CHECK(!rows[i].yes || matches(&r, rows[i].yes));
        CHECK(!matches(&r, rows[i].no));
    }
}

static void test_refused(void)
{
    static const struct {
        const char *pattern, *why;
    } rows[] = {
        {"(a", "does not end"},
        {"a)", "closes no group"},
        {"*a", "nothing to repeat"},
        {"a**", "a repetition is repeated"},
        {"a{2,1}", "too large"},
        {"a{1001}", "too large"},
        {"((((a{900}){900}){900}){900})", "too many states"},
        {".*a.{40}", "too many states"},
        {"(?=a)", "no such group"},
        {"(a)\\1", "not regular"},
        {"\\pL", "Unicode"},
        {"\\y", "no such escape"},
        {"\\x{110000}", "hexadecimal"},
        {"[b-a]", "ends before it begins"},
        {"[[:nothing:]]", "no such class"},
        {"[a", "too early"},
        {"a\\", "too early"},
        {"\xff", "UTF-8"},
        {"(?i)\xc3\xa9", "beyond ASCII"},
        {"(?P<a", "does not end"},
        {"(?i", "does not end"},
    };
    char        deep[600] = {0};
    const char *why;
    Regex       r;

    for (uint32_t i = 0; i < COUNT(rows); i++) {
        CHECK(!compile(rows[i].pattern, &r, &why));
        CHECK(strstr(why, rows[i].why) != NULL);
    }
    memset(deep, '(', sizeof deep - 1);
    CHECK(!compile(deep, &r, &why));
    CHECK_STR(why, "groups are nested too deeply");
}

int main(void)
{
    arena = arena_new(NULL);
    RUN(test_matches);
    RUN(test_refused);
    arena_free(arena);
    return check_result();
}
