/* Calls the model of symbolic.relay at all sizes, and compares with plain loops. */
#include "net.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 64 };

static float x[MOST * 16], y[2 * MOST * 4], v[8 * 16], a[MOST * 8], sums[16], s[2 * MOST * 4],
    d[MOST * 32];
static int failures;

static void expect(int ok, const char *what, int64_t n)
{
    if (ok)
        return;
    printf("N = %d: %s\n", (int)n, what);
    failures++;
}

static double error_of(int64_t n)
{
    double most = 0;

    for (int64_t r = 0; r < n; r++) {
        double row = 0;
        for (int k = 0; k < 16; k++)
            row += x[r * 16 + k];
        for (int o = 0; o < 8; o++) {
            double sum = 0;
            for (int k = 0; k < 16; k++)
                sum += (double)x[r * 16 + k] * v[o * 16 + k];
            most = fmax(most, fabs((sum > 0 ? sum : 0) - a[r * 8 + o]));
        }
        for (int o = 0; o < 32; o++)
            most = fmax(most, fabs(row / 2 - d[r * 32 + o]));
    }
    for (int k = 0; k < 16; k++) {
        double sum = 0;
        for (int64_t r = 0; r < n; r++)
            sum += x[r * 16 + k];
        most = fmax(most, fabs(sum - sums[k]));
    }
    for (int64_t r = 0; r < 2 * n; r++) {
        double sum = 0;
        for (int k = 0; k < 4; k++)
            sum += s[r * 4 + k];
        most = fmax(most, fabs(sum - 1));
    }
    return most;
}

int main(void)
{
    NET_DEFINE_ARENA(arena);

    for (int i = 0; i < MOST * 16; i++)
        x[i] = (float)(i % 13) / 8 - 0.75f;
    for (int i = 0; i < 2 * MOST * 4; i++)
        y[i] = (float)(i % 5);
    for (int i = 0; i < 8 * 16; i++)
        v[i] = (float)(i % 7) / 4 - 0.75f;
    for (int64_t n = 0; n <= MOST + 1; n++) {
        int64_t     dx[2] = {n, 16}, dy[2] = {2 * n, 4}, da[2], ds[2], dd[2];
        tvmcc_value vx = {TVMCC_FLOAT, 32, 1, 2, dx, x, 0}, vy = {TVMCC_FLOAT, 32, 1, 2, dy, y, 0};
        tvmcc_value va = {0, 0, 0, 2, da, a, sizeof a}, vs = {0, 0, 0, 2, ds, s, sizeof s},
                    vd = {0, 0, 0, 2, dd, d, sizeof d};
        net_inputs  in = {&vx, &vy, v};
        net_outputs out = {&va, sums, &vs, &vd};

        memset(a, 0xff, sizeof a), memset(s, 0xff, sizeof s), memset(d, 0xff, sizeof d);
        int32_t rc = net_run(&in, &out, arena);
        if (n == 0 || n > MOST) {
            expect(rc == TVMCC_E_SHAPE, "a size beyond the bounds is taken", n);
            continue;
        }
        expect(rc == 0, tvmcc_strerror(rc), n);
        expect(error_of(n) < 1e-4, "other values", n);
        expect(da[0] == n && da[1] == 8 && ds[0] == 2 * n && dd[1] == 32, "other shapes", n);
        expect(va.bytes == (size_t)n * 32 && va.code == TVMCC_FLOAT && va.bits == 32, "other bytes",
               n);
        for (size_t i = (size_t)n * 8 * sizeof(float); i < sizeof a; i++)
            expect(((unsigned char *)a)[i] == 0xff, "stores behind the result", n);
        va.bytes = (size_t)n * 32 - 1;
        expect(net_run(&in, &out, arena) == TVMCC_E_CAPACITY && va.bytes == (size_t)n * 32,
               "too little room", n);
        dy[0]++;
        expect(net_run(&in, &out, arena) == TVMCC_E_SHAPE, "inputs that do not agree", n);
        dy[0]--, vx.bits = 16;
        expect(net_run(&in, &out, arena) == TVMCC_E_SHAPE, "another type", n);
        vx.bits = 32, vx.dims = NULL;
        expect(net_run(&in, &out, arena) == TVMCC_E_NULL, "no dims", n);
    }
    expect(net_info()->inputs[0].dims[0] == -1 &&
               net_info()->inputs[0].flags == TVMCC_TENSOR_DYNAMIC,
           "info", 0);
    return failures != 0;
}
