/* Unit tests in plain C: CHECK records a failure and goes on, RUN names the tests.
 *
 *     static void test_gcd(void) { CHECK(gcd_i64(12, 18) == 6); }
 *     int main(void) { RUN(test_gcd); return check_result(); }
 */
#ifndef TVMCC_TESTS_CHECK_H
#define TVMCC_TESTS_CHECK_H

#include <stdio.h>
#include <string.h>

static int check_failures, check_count;

#define CHECK(condition)                                                         \
    do {                                                                         \
        check_count++;                                                           \
        if (!(condition)) {                                                      \
            printf("%s:%d: CHECK failed: %s\n", __FILE__, __LINE__, #condition); \
            check_failures++;                                                    \
        }                                                                        \
    } while (0)

/* Equal texts; shows both. */
#define CHECK_STR(got, want)                                                        \
    do {                                                                            \
        const char *got_ = (got), *want_ = (want);                                  \
        check_count++;                                                              \
        if (!got_ || !want_ || strcmp(got_, want_) != 0) {                          \
            printf("%s:%d: %s\n  got:  %s\n  want: %s\n", __FILE__, __LINE__, #got, \
                   got_ ? got_ : "(null)", want_ ? want_ : "(null)");               \
            check_failures++;                                                       \
        }                                                                           \
    } while (0)

#define CHECK_INT(got, want)                                                                \
    do {                                                                                    \
        long long got_ = (long long)(got), want_ = (long long)(want);                       \
        check_count++;                                                                      \
        if (got_ != want_) {                                                                \
            printf("%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #got, got_, want_); \
            check_failures++;                                                               \
        }                                                                                   \
    } while (0)

#define RUN(test)                       \
    do {                                \
        int before_ = check_failures;   \
        test();                         \
        if (check_failures != before_)  \
            printf("FAIL %s\n", #test); \
    } while (0)

static inline int check_result(void)
{
    printf("%d checks, %d failures\n", check_count, check_failures);
    return check_failures != 0;
}

#endif
