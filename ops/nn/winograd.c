/* Winograd's transforms of one dimension, in their factored forms: unrolled arms of one case share
 * their sums (conv2d_winograd.c).
 *
 *     input   B' d   a cells to the domain of products      tiles of 4, 6 and 8 cells, whose points
 * are weight  G g    k weights to it, in double precision   0, 1, -1, then 2, -2, then 1/2, -1/2,
 * and output  A' p   products to m = a + 1 - k outputs      infinity at the end
 *
 * B' has the polynomials that are 0 at all points but one, G what their values there are divided
 * by, A' the powers of the points. */
#include "ops/nn/winograd.h"

static const Prim *times(Ctx *c, double k, const Prim *x)
{
    return prim_mul(c, prim_num(c, x->dtype, k), x);
}

/* B' d of 8 cells, whose points are 0, 1, -1, 2, -2, 1/2, -1/2 and infinity. */
static void transform_wide_input(Ctx *c, const Prim *const *d, const Prim **v)
{
    const Prim *even[3], *odd[3]; /* terms at 1, 2 and 1/2 */

    even[0] = prim_sub(c, prim_add(c, d[2], d[6]), times(c, 4.25, d[4]));
    odd[0] = prim_sub(c, prim_add(c, d[1], d[5]), times(c, 4.25, d[3]));
    even[1] = prim_add(c, d[6], prim_sub(c, times(c, 0.25, d[2]), times(c, 1.25, d[4])));
    odd[1] = prim_add(c, times(c, 2, d[5]), prim_sub(c, times(c, 0.5, d[1]), times(c, 2.5, d[3])));
    even[2] = prim_add(c, d[6], prim_sub(c, times(c, 4, d[2]), times(c, 5, d[4])));
    odd[2] = prim_add(c, times(c, 0.5, d[5]), prim_sub(c, times(c, 2, d[1]), times(c, 2.5, d[3])));
    v[0] = prim_add(c, prim_sub(c, d[0], d[6]), times(c, 5.25, prim_sub(c, d[4], d[2])));
    for (uint32_t i = 0; i < 3; i++) {
        v[1 + 2 * i] = prim_add(c, even[i], odd[i]);
        v[2 + 2 * i] = prim_sub(c, even[i], odd[i]);
    }
    v[7] = prim_add(c, prim_sub(c, d[7], d[1]), times(c, 5.25, prim_sub(c, d[3], d[5])));
}

/* B' d: input to the domain of products. */
void winograd_input(Ctx *c, int64_t a, const Prim *const *d, const Prim **v)
{
    if (a == 1) {
        v[0] = d[0];
        return;
    }
    if (a == 4) {
        v[0] = prim_sub(c, d[0], d[2]);
        v[1] = prim_add(c, d[1], d[2]);
        v[2] = prim_sub(c, d[2], d[1]);
        v[3] = prim_sub(c, d[1], d[3]);
        return;
    }
    if (a == 8) {
        transform_wide_input(c, d, v);
        return;
    }
    const Prim *p = prim_sub(c, d[4], times(c, 4, d[2])), *b = prim_sub(c, d[3], times(c, 4, d[1]));
    const Prim *e = prim_sub(c, d[4], d[2]), *g = prim_sub(c, d[3], d[1]), *f = times(c, 2, g);

    v[0] = prim_add(c, e, times(c, 4, prim_sub(c, d[0], d[2])));
    v[1] = prim_add(c, p, b);
    v[2] = prim_sub(c, p, b);
    v[3] = prim_add(c, e, f);
    v[4] = prim_sub(c, e, f);
    v[5] = prim_sub(c, prim_sub(c, d[5], d[3]), times(c, 4, g));
}

/* ... of a tile that needs 3 or 4 cells, by the weights of tiles of 6: of the polynomials that are
 * 0 at all points but one, those for points 0, 1, -1 and, of 4, 2. */
void winograd_short_input(Ctx *c, int64_t cells, const Prim *const *d, const Prim **v)
{
    const Prim *even = prim_sub(c, d[0], d[2]), *odd = prim_add(c, d[1], d[2]);

    if (cells == 3) {
        v[0] = even;
        v[1] = odd;
        v[2] = prim_sub(c, d[2], d[1]);
        return;
    }
    v[3] = prim_sub(c, d[3], d[1]);
    v[0] = prim_add(c, v[3], times(c, 2, even));
    v[1] = prim_sub(c, v[3], odd);
    v[2] = prim_add(c, prim_sub(c, d[3], d[2]), times(c, 2, prim_sub(c, d[1], d[2])));
}

/* 24 A' p for m = 4, of products that are 4, 6, 6, 24, 24 times and once what they should be. */
static void transform_int_output(Ctx *c, const Prim *const *p, const Prim **y)
{
    const Prim *s = prim_add(c, p[1], p[2]), *d = prim_sub(c, p[1], p[2]);
    const Prim *s2 = prim_add(c, p[3], p[4]), *d2 = prim_sub(c, p[3], p[4]);
    const Prim *twice = times(c, 2, prim_add(c, p[0], times(c, 2, prim_add(c, p[0], s))));
    const Prim *last = prim_add(c, d2, prim_add(c, p[5], times(c, 2, p[5])));

    y[0] = prim_add(c, twice, s2);
    y[1] = times(c, 2, prim_add(c, times(c, 2, d), d2));
    y[2] = times(c, 4, prim_add(c, s, s2));
    y[3] = times(c, 4, prim_add(c, d, times(c, 2, last)));
}

/* Output j of the numbers at points 1 and -1 or 2 and -2, whose sum and difference these are: odd
 * powers of the points differ in sign. */
static const Prim *at_power(Ctx *c, int64_t point, int64_t j, const Prim *sum, const Prim *diff)
{
    double k = 1;

    for (int64_t i = 0; i < j; i++)
        k *= (double)point;
    return k > 1 ? times(c, k, j % 2 ? diff : sum) : j % 2 ? diff : sum;
}

/* A' p of winograd_short_input's: times what its weights are too small by. */
void winograd_short_output(Ctx *c, int64_t cells, int64_t m, const Prim *const *p, const Prim **y)
{
    if (cells == 3) {
        y[0] = prim_sub(c, times(c, 4, p[0]), times(c, 3, prim_add(c, p[1], p[2])));
        for (int64_t j = 1; j < m; j++)
            y[j] =
                times(c, -3, at_power(c, 1, j, prim_add(c, p[1], p[2]), prim_sub(c, p[1], p[2])));
        return;
    }
    const Prim *twice = times(c, 2, p[0]), *thrice = times(c, 3, p[1]);
    const Prim *sum = prim_add(c, thrice, p[2]), *diff = prim_sub(c, thrice, p[2]);

    y[0] = prim_add(c, prim_add(c, sum, twice), times(c, 4, p[3]));
    for (int64_t j = 1; j < m; j++)
        y[j] = prim_add(c, j % 2 ? diff : sum, times(c, (double)(4 << j), p[3]));
}

/* A' p of 8 cells: products to outputs of a tile of m, whose numbers at 1/2 and -1/2 are 2^(m-1) of
 * what they should be. */
static void transform_wide_output(Ctx *c, int64_t m, const Prim *const *p, const Prim **y)
{
    const Prim *sum[3], *diff[3];

    for (uint32_t i = 0; i < 3; i++) {
        sum[i] = prim_add(c, p[1 + 2 * i], p[2 + 2 * i]);
        diff[i] = prim_sub(c, p[1 + 2 * i], p[2 + 2 * i]);
    }
    for (int64_t j = 0; j < m; j++) {
        const Prim **of = j % 2 ? diff : sum;

        y[j] = j ? of[0] : prim_add(c, p[0], of[0]);
        y[j] = prim_add(c, y[j], j ? times(c, (double)(1 << j), of[1]) : of[1]);
        y[j] = prim_add(c, y[j], j < m - 1 ? times(c, (double)(1 << (m - 1 - j)), of[2]) : of[2]);
    }
    y[m - 1] = prim_add(c, y[m - 1], p[7]);
}

/* A' p: products to the m outputs of a tile. */
void winograd_output(Ctx *c, int64_t a, int64_t m, const Prim *const *p, const Prim **y)
{
    if (a == 1) {
        y[0] = p[0];
        return;
    }
    if (a == 8) {
        transform_wide_output(c, m, p, y);
        return;
    }
    const Prim *s = prim_add(c, p[1], p[2]), *d = prim_sub(c, p[1], p[2]);

    if (a == 6 && dtype_is_int(s->dtype)) {
        transform_int_output(c, p, y);
        return;
    }
    const Prim *s2 = a == 6 ? prim_add(c, p[3], p[4]) : NULL;
    const Prim *d2 = a == 6 ? prim_sub(c, p[3], p[4]) : NULL;

    for (int64_t j = 0; j < m; j++) {
        y[j] = j ? at_power(c, 1, j, s, d) : prim_add(c, p[0], s);
        if (a == 6)
            y[j] = prim_add(c, y[j], at_power(c, 2, j, s2, d2));
    }
    y[m - 1] = a == 6 ? prim_add(c, y[m - 1], p[5]) : prim_sub(c, y[m - 1], p[3]);
}

/* G g with its rows made whole, in integers. */
static void transform_int_weight(Ctx *c, int64_t m, const Prim *const *g, const Prim **u)
{
    const Prim *s = prim_add(c, g[0], g[2]);

    if (m == 2) {
        u[0] = times(c, 2, g[0]);
        u[1] = prim_add(c, s, g[1]);
        u[2] = prim_sub(c, s, g[1]);
        u[3] = times(c, 2, g[2]);
        return;
    }
    const Prim *even = prim_add(c, g[0], times(c, 4, g[2])), *odd = times(c, 2, g[1]);

    u[0] = g[0];
    u[1] = prim_sub(c, prim_num(c, s->dtype, 0), prim_add(c, s, g[1]));
    u[2] = prim_sub(c, g[1], s);
    u[3] = prim_add(c, even, odd);
    u[4] = prim_sub(c, even, odd);
    u[5] = g[2];
}

/* The polynomial of a row's weights at a point and at minus that, as the sums of the even and of
 * the odd terms, each times `scale`. */
static void at_point(Ctx *c, int64_t k, const Prim *const *g, double point, double scale,
                     const Prim **even, const Prim **odd)
{
    const Prim *of[2] = {NULL, NULL};

    for (int64_t i = 0; i < k; i++, scale *= point) {
        const Prim *x = scale == 1 ? g[i] : times(c, scale, g[i]);

        of[i % 2] = of[i % 2] ? prim_add(c, of[i % 2], x) : x;
    }
    *even = of[0];
    *odd = of[1];
}

/* G g: the k weights of a row to the domain of products of a cells. */
void winograd_weight(Ctx *c, int64_t a, int64_t k, const Prim *const *g, const Prim **u)
{
    const Prim *even, *odd;

    if (a == 1) {
        u[0] = g[0];
        return;
    }
    if (dtype_is_int(g[0]->dtype)) {
        transform_int_weight(c, a - 2, g, u);
        return;
    }
    u[0] = a != 6 ? g[0] : times(c, 1.0 / 4, g[0]);
    u[a - 1] = g[k - 1];
    at_point(c, k, g, 1, 1, &even, &odd);
    double one = a == 4 ? 1.0 / 2 : a == 6 ? -1.0 / 6 : -2.0 / 9;

    u[1] = times(c, one, prim_add(c, even, odd));
    u[2] = times(c, one, prim_sub(c, even, odd));
    if (a == 4)
        return;
    at_point(c, k, g, 2, a == 6 ? 1.0 / 24 : 1.0 / 90, &even, &odd);
    u[3] = prim_add(c, even, odd);
    u[4] = prim_sub(c, even, odd);
    if (a == 6)
        return;
    at_point(c, k, g, 0.5, 32.0 / 45 / (double)(1 << (a - k)), &even, &odd);
    u[5] = prim_add(c, even, odd);
    u[6] = prim_sub(c, even, odd);
}
