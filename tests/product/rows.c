/* Shape buckets against values of ONNX Runtime, for sizes in and between the buckets.
 *
 *     rows FILE LEVEL        FILE: 8 rows of input, 8 rows of output; LEVEL: end of the target that
 *                            has to be chosen, "none": a CPU that no variant fits
 */
#include "rows.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N = 8, IN = 3 * 10 * 12, OUT = 24 };

static TVMCC_ALIGNED(64) float data[N * IN], padded[N * IN], want[N * OUT], got[N * OUT];
ROWS_DEFINE_ARENA(arena);

static int close_to(const float *a, const float *b, int n)
{
    for (int i = 0; i < n; i++)
        if (!(fabsf(a[i] - b[i]) <= 1e-5f)) {
            printf("element %d: %g, not %g\n", i, (double)a[i], (double)b[i]);
            return 0;
        }
    return 1;
}

/* n rows: the rest of the bucket is zeros, and so ignored. */
static int rows(int64_t n, const tvmcc_model_info *info)
{
    static const int64_t sizes[ROWS_BUCKETS] = {ROWS_BUCKET0_N, ROWS_BUCKET1_N, ROWS_BUCKET2_N};
    static const size_t  arenas[ROWS_BUCKETS] = {
        ROWS_BUCKET0_ARENA_BYTES(1), ROWS_BUCKET1_ARENA_BYTES(1), ROWS_BUCKET2_ARENA_BYTES(1)};
    int32_t      b = rows_select(&n);
    rows_inputs  in = {padded};
    rows_outputs out = {got};
    void        *ins[] = {padded}, *outs[] = {got};

    if (b < 0 || b >= ROWS_BUCKETS || sizes[b] < n || (b && sizes[b - 1] >= n))
        return 10;
    const tvmcc_model_info *own = info->buckets[b];
    tvmcc_params params = {.struct_bytes = sizeof params, .arena = arena, .arena_bytes = arenas[b]};
    if (info->bucket_sizes[b] != sizes[b] || own->inputs[0].dims[0] != sizes[b] ||
        own->arena_shared + own->arena_private > arenas[b] || strcmp(info->bucket_dims[0], "N"))
        return 11;
    memset(padded, 0, sizeof padded);
    memcpy(padded, data, (size_t)n * IN * sizeof *data);
    memset(got, 0x55, sizeof got);
    if (rows_run_bucket((uint32_t)b, &in, &out, &params) || !close_to(got, want, (int)n * OUT))
        return 12;
    memset(got, 0x55, sizeof got);
    if (own->run(ins, outs, &params) || !close_to(got, want, (int)n * OUT))
        return 13;
    return 0;
}

int main(int argc, char **argv)
{
    const tvmcc_model_info *info = rows_info();
    FILE                   *f = argc == 3 ? fopen(argv[1], "rb") : NULL;
    rows_inputs             in = {data};
    rows_outputs            out = {got};
    int64_t                 n = 9, below = -1;
    size_t                  end = strlen(info->targets);

    if (!f || fread(data, sizeof data, 1, f) != 1 || fread(want, sizeof want, 1, f) != 1)
        return 2;
    fclose(f);
    if (!strcmp(argv[2], "none")) {
        void        *ins[] = {data}, *outs[] = {got};
        tvmcc_params params = {
            .struct_bytes = sizeof params, .arena = arena, .arena_bytes = sizeof arena};
        return rows_run(&in, &out, arena) != TVMCC_E_CPU ||
               rows_run_bucket(0, &in, &out, &params) != TVMCC_E_CPU ||
               info->run(ins, outs, &params) != TVMCC_E_CPU;
    }
    if (end < strlen(argv[2]) || strcmp(info->targets + end - strlen(argv[2]), argv[2])) {
        printf("chosen: %s\n", info->targets);
        return 3;
    }
    if (info->nbuckets != ROWS_BUCKETS || info->nbucket_dims != 1 ||
        info->buckets[ROWS_BUCKETS - 1] != info || info->struct_bytes != sizeof *info)
        return 4;
    if (rows_select(&n) != TVMCC_E_SHAPE || rows_select(&below) != TVMCC_E_SHAPE ||
        rows_select(NULL) != TVMCC_E_NULL ||
        rows_run_bucket(ROWS_BUCKETS, &in, &out, NULL) != TVMCC_E_SHAPE)
        return 5;
    for (n = 1; n <= N; n++) {
        int bad = rows(n, info);
        if (bad) {
            printf("%d rows: %d\n", (int)n, bad);
            return bad;
        }
    }
    if (rows_run(&in, &out, arena) || !close_to(got, want, N * OUT)) /* the largest bucket */
        return 6;
    return 0;
}
