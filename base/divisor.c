/* Divisors of extents, for choosing tiles and rounds.
 *
 * Divisors come in pairs d, n/d with one below the root, so two root(n) trials find any of them.
 * Sizes come with the model: at most 2 * MOST_TRIALS numbers are tried, which is all of them up to
 * 2^32; of larger n a divisor may be passed over, but what is given always divides n. */
#include "base/base.h"

enum { MOST_TRIALS = 1 << 16 };

static int64_t quotient_up(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

int64_t divisor_upto(int64_t n, int64_t most)
{
    int64_t d = most < n ? most : n, q, tries;

    if (d <= 1)
        return 1;
    q = quotient_up(n, d);
    for (tries = 0; q <= n / q && tries < MOST_TRIALS; q++, tries++)
        if (n % q == 0)
            return n / q;
    if (d > n / q)
        d = n / q;
    for (tries = 0; d > 1 && n % d && tries < MOST_TRIALS; tries++)
        d--;
    return n % d ? 1 : d;
}

int64_t divisor_from(int64_t n, int64_t least)
{
    int64_t d = least > 1 ? least : 1, q, tries;

    if (d >= n)
        return n;
    for (tries = 0; d <= n / d && tries < MOST_TRIALS; d++, tries++)
        if (n % d == 0)
            return d;
    q = n / d < MOST_TRIALS ? n / d : MOST_TRIALS;
    while (q > 1 && n % q)
        q--;
    return n / q;
}
