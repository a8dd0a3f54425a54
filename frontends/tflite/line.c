/* Sums of two bytes with scales, in fewer operations than the reference kernels take.
 *
 * These bring each operand to a common scale in 28 bits, add, and multiply in 64 bits.  Cell by
 * cell that is nearly a line, of which only the nearest byte is kept:
 *
 *     x * A + y * B + C >> bits
 *
 * There are 65536 pairs of bytes.  For numbers A and B close to the ratios of the scales, each pair
 * says from where to where C may be; what is left for all of them gives the same bytes.  Halves
 * that are rounded away from 0 need slightly larger A and B.  Where no numbers near the ratios will
 * do, the sum is left as it was. */
#include "frontends/tflite/tflite.h"

#include <math.h>
#include <stdlib.h>

enum { BYTES = 256, NEAR = 3, MOST_BITS = 24 };

/* x * f, rounded as tflite_times does. */
static int64_t product(int64_t x, const TfliteFixed *f)
{
    int     left = f->shift > 0 ? f->shift : 0, right = left - f->shift;
    int64_t y = (x * (INT64_C(1) << left) * f->times + (1 << 30)) >> 31;

    return right ? (y + (INT64_C(1) << (right - 1)) - (y < 0)) >> right : y;
}

/* The sums of all pairs, within the bounds of a byte. */
static void all_sums(const TfliteSum *s, int16_t *out)
{
    int64_t part[2][BYTES], most = s->least + BYTES - 1;

    for (int i = 0; i < BYTES; i++)
        for (int k = 0; k < 2; k++)
            part[k][i] = product((int64_t)(s->least + i - s->from[k]) * (1 << s->bits), &s->of[k]) *
                         (k && s->minus ? -1 : 1);
    for (int i = 0; i < BYTES; i++)
        for (int k = 0; k < BYTES; k++) {
            int64_t y = product(part[0][i] + part[1][k], &s->to) + s->zero;

            *out++ = (int16_t)(y < s->least ? s->least : y > most ? most : y);
        }
}

/* Is there a C for these factors? */
static bool meets(const TfliteSum *s, const int16_t *sums, TfliteLine *line)
{
    int64_t least = INT32_MIN, most = INT32_MAX, one = INT64_C(1) << line->bits;

    for (int i = 0; i < BYTES; i++) {
        for (int k = 0; k < BYTES; k++) {
            int64_t v = (int64_t)(s->least + i) * line->times[0] +
                        (int64_t)(s->least + k) * line->times[1],
                    y = *sums++, lo = y * one - v, hi = lo + one - 1;

            if (y > s->least && lo > least)
                least = lo;
            if (y < s->least + BYTES - 1 && hi < most)
                most = hi;
        }
        if (least > most)
            return false;
    }
    line->add = (int32_t)(least + (most - least) / 2);
    return true;
}

/* The real factors of both operands, and as many bits as i32 has room for. */
static bool factors(const TfliteSum *s, double *by, int *bits)
{
    double largest = fabs((double)s->zero) + 1;

    for (int k = 0; k < 2; k++) {
        by[k] = ldexp((double)s->of[k].times, s->of[k].shift - 31 + s->bits) *
                ldexp((double)s->to.times, s->to.shift - 31) * (k && s->minus ? -1 : 1);
        largest += fabs(by[k]) * 2 * BYTES; /* the zero point, too */
    }
    *bits = 30 - ilogb(largest);
    *bits = *bits < MOST_BITS ? *bits : MOST_BITS;
    return isfinite(largest) && *bits > 0;
}

bool tflite_line(Ctx *c, const TfliteSum *s, TfliteLine *out)
{
    int16_t *sums;
    double   by[2];

    if (!factors(s, by, &out->bits))
        return false;
    sums = NEW_ARRAY(c->scratch, int16_t, BYTES *BYTES);
    all_sums(s, sums);
    for (int near = 0; near <= NEAR; near++)
        for (int i = -near; i <= near; i++)
            for (int k = -near; k <= near; k++) {
                if (abs(i) != near && abs(k) != near)
                    continue;
                out->times[0] = (int32_t)lround(ldexp(by[0], out->bits)) + i;
                out->times[1] = (int32_t)lround(ldexp(by[1], out->bits)) + k;
                if (meets(s, sums, out))
                    return true;
            }
    return false;
}
