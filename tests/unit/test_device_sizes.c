/* Kernels of devices whose sizes a run decides: networks lowered once, their launches run by the
 * interpreter thread by thread (races, barriers, bounds) at sizes around the edges of tiles, one
 * after the other, and compared with the same network of that size, evaluated as a graph.
 *
 *     test_device_sizes [all]
 *
 * Each network is run at every other size in each way of compiling it; `all`: at all of them. */
#include "tests/unit/check.h"
#include "tests/unit/launches.h"

#include <math.h>
#include <string.h>

/* `N` is in 1..70, `T` in 1..45. */
enum { MOST_N = 70, MOST_T = 45 };

/* Products: rows, batches, columns and sums that a run decides, or several of them; operands whose
 * cells lie along these, or across. */
static const char *const products[] = {
    "fn @main(%x: Tensor[(N, 64), f32], %w: Tensor[(48, 64), f32], %b: Tensor[(48,), f32]) {\n"
    "  nn.relu(nn.bias_add(nn.dense(%x, %w), %b))\n}\n",
    "const @w: Tensor[(40, 36), f32] = splat(0.25)\n"
    "fn @main(%x: Tensor[(36, N), f32], %y: Tensor[(40, N), f32]) {\n"
    "  (nn.matmul(tanh(%x), const @w, transpose_a=true, transpose_b=true),\n"
    "   add(nn.matmul(const @w, %x), %y), nn.matmul(%x, %y, transpose_b=true))\n}\n",
    "fn @main(%x: Tensor[(2, N, 24), f32], %y: Tensor[(2, T, 24), f32]) {\n"
    "  %0 = multiply(nn.batch_matmul(%x, %y), 0.25);\n"
    "  (%0, nn.batch_matmul(%0, %y, transpose_b=false),\n"
    "   nn.batch_matmul(transpose(%0, axes=[0, 2, 1]), %x, transpose_b=false))\n}\n",
    "fn @main(%x: Tensor[(3, T, 32), f32], %w: Tensor[(3, 40, 32), f32],\n"
    "         %y: Tensor[(N, 12, 20), f32], %v: Tensor[(N, 28, 20), f32]) {\n"
    "  (nn.batch_matmul(%x, %w), nn.batch_matmul(%y, %v))\n}\n",
};

/* Convolutions: a batch, an image of any height and width; borders, strides, groups, a depthwise
 * one in front; bytes. */
static const char *const convolutions[] = {
    "const @w: Tensor[(16, 4, 3, 3), f32] = splat(0.1)\n"
    "const @v: Tensor[(12, 8, 1, 1), f32] = splat(-0.2)\n"
    "fn @main(%x: Tensor[(N, 4, 3, 2), f32]) {\n"
    "  %0 = nn.relu(nn.conv2d(%x, const @w, padding=[1, 1, 1, 1]));\n"
    "  (%0, nn.conv2d(%0, const @v, strides=[2, 1], groups=2))\n}\n",
    "const @w: Tensor[(16, 4, 3, 3), f32] = splat(0.1)\n"
    "const @d: Tensor[(16, 1, 3, 3), f32] = splat(-0.3)\n"
    "const @v: Tensor[(12, 16, 1, 1), f32] = splat(0.2)\n"
    "fn @main(%x: Tensor[(1, 4, N, T), f32]) {\n"
    "  %0 = nn.relu(nn.conv2d(%x, const @w, padding=[1, 1, 1, 1], strides=[2, 3]));\n"
    "  %1 = nn.relu(nn.conv2d(%0, const @d, padding=[1, 1, 1, 1], groups=16));\n"
    "  nn.conv2d(%1, const @v)\n}\n",
};

/* Rows: many of a few cells, and of a number that a run decides; attention. */
static const char *const rows[] = {
    "fn @main(%x: Tensor[(N, T), f32], %y: Tensor[(N, 96), f32], %g: Tensor[(96), f32],\n"
    "         %b: Tensor[(96), f32]) {\n"
    "  (nn.softmax(%x), nn.layer_norm(%y, %g, %b, axis=-1), sum(%x), max(%x, axis=[0]))\n}\n",
    /* so many rows that are sorted and summed up; rows of any length, which are one thread's */
    "fn @main(%x: Tensor[(N, 21), f32], %y: Tensor[(2, T), f32]) {\n"
    "  (sort(%x, axis=1), cumsum(%x, axis=1), cumsum(%y, axis=1), sort(%y, axis=1))\n}\n",
    "fn @main(%q: Tensor[(2, T, 3, 16), f32], %k: Tensor[(2, N, 3, 16), f32],\n"
    "         %v: Tensor[(2, N, 3, 16), f32], %m: Tensor[(2, 1, 1, N), f32]) {\n"
    "  %0 = transpose(%q, axes=[0, 2, 1, 3]);\n"
    "  %1 = transpose(%k, axes=[0, 2, 3, 1]);\n"
    "  %2 = transpose(%v, axes=[0, 2, 1, 3]);\n"
    "  %3 = add(multiply(nn.batch_matmul(%0, %1, transpose_b=false), 0.25), %m);\n"
    "  transpose(nn.batch_matmul(nn.softmax(%3), %2, transpose_b=false), axes=[0, 2, 1, 3])\n}\n",
    "fn @main(%q: Tensor[(N//32+1, 2, T, 16), f32], %k: Tensor[(N//32+1, 2, T, 16), f32],\n"
    "         %v: Tensor[(N//32+1, 2, T, 16), f32], %x: Tensor[(N, 1), f32]) {\n"
    "  %0 = nn.softmax(multiply(nn.batch_matmul(%q, %k), 0.25));\n"
    "  (nn.batch_matmul(%0, %v, transpose_b=false), nn.relu(%x))\n}\n",
    "fn @main(%q: Tensor[(T, 1, 9, 16), f32], %k: Tensor[(T, 1, 12, 16), f32],\n"
    "         %v: Tensor[(T, 1, 12, 16), f32]) {\n"
    "  %0 = nn.softmax(multiply(nn.batch_matmul(%q, %k), 0.25));\n"
    "  nn.batch_matmul(%0, %v, transpose_b=false)\n}\n",
};

/* Rows of any length and number, of which blocks have parts; rows side by side whose numbers lie
 * apart, of one or two such sizes. */
static const char *const reductions[] = {
    "fn @main(%x: Tensor[(1, 90*N), f32], %y: Tensor[(N, 20, 9), f32],\n"
    "         %z: Tensor[(T, 20, N), f32], %w: Tensor[(N//32+1, 1200, 2), f32]) {\n"
    "  (nn.softmax(%x), max(%x), sum(%w, axis=[1]), mean(%y, axis=[1]), sum(%y, axis=[0]), min(%z, "
    "axis=[1]),\n"
    "   sum(%z, axis=[0]))\n}\n",
};

typedef struct {
    uint32_t    level;
    const char *warps, *machine; /* as compile_launches() takes them */
} Way;

static const Module *module_of(Ctx *c, const char *text, int64_t nlo, int64_t nhi, int64_t tlo,
                               int64_t thi)
{
    text = arena_printf(c->arena, "dim N in %lld..%lld\ndim T in %lld..%lld\n%s", (long long)nlo,
                        (long long)nhi, (long long)tlo, (long long)thi, text);
    return relay_parse(c, "net", (Bytes){(const uint8_t *)text, strlen(text)}, (Bytes){0});
}

/* NULL, or which number differs; in 16 bits errors are those of the largest number. */
static const char *differs(Arena *a, uint32_t result, const uint8_t *got, Bytes want, bool half)
{
    double largest = 0;

    for (size_t k = 0; k < want.n; k += 4)
        largest = fmax(largest, fabs(dtype_get_f(DT_F32, want.at + k)));
    for (size_t k = 0; k < want.n; k += 4) {
        double x = dtype_get_f(DT_F32, got + k), y = dtype_get_f(DT_F32, want.at + k);
        if (!(fabs(x - y) <= (half ? 2e-3 * largest : 1e-4 + 1e-4 * fabs(y))))
            return arena_printf(a, "number %zu of result %u is %g, not %g", k / 4, result, x, y);
    }
    return NULL;
}

/* What is wrong at one size, or NULL. */
static const char *check_size(const Compiled *x, const TirModule *tir, const char *text, bool half,
                              int64_t n, int64_t t)
{
    Arena              *arena = arena_new(NULL);
    Ctx                *c = ctx_new(arena, diags_new(arena), op_table);
    const Module       *m = module_of(c, text, n, n, t, t);
    const Expr         *main = m ? module_func(m, "main") : NULL;
    Net                 net = {.c = c, .seed = (uint32_t)(n * 131 + t)};
    const Const        *in[MOST];
    const Const *const *want;
    uint32_t            nin = main ? func_nparams(main) : 0, nwant = 0;
    void               *out[MOST];
    int64_t             sizes[2] = {0};
    const char         *wrong = NULL;

    for (uint32_t i = 0; i < nin; i++)
        in[i] = float_noise(&net, func_param(main, i)->type, -1, 1);
    if (!m || !relay_eval(c, m, nin, in, &nwant, &want) || nwant != x->plan->nout)
        wrong = "the graph is not evaluated";
    for (uint32_t i = 0; i < x->plan->symbols.n; i++)
        sizes[i] = *x->plan->symbols.at[i]->name == 'N' ? n : t;
    for (uint32_t i = 0; !wrong && i < nwant; i++)
        out[i] = memory(c, want[i]->data.n);
    if (!wrong)
        wrong = run_sizes(c, x, tir, sizes, nin, in, out);
    for (uint32_t i = 0; !wrong && i < nwant; i++)
        wrong = differs(c->arena, i, out[i], want[i]->data, half);
    if (wrong) {
        StrBuf said = strbuf(arena);
        diag_print(c->diags, DIAG_TEXT, &said);
        printf("N = %lld, T = %lld: %s\n%s", (long long)n, (long long)t, wrong,
               said.at ? said.at : "");
    }
    ctx_free(c);
    arena_free(arena);
    return wrong;
}

/* At the sizes first, first + by, .. */
static void check_network(const char *text, const Way *way, uint32_t first, uint32_t by)
{
    static const int64_t sizes[][2] = {{1, 45},  {7, 5},   {8, 8},   {9, 1},  {15, 16},
                                       {16, 17}, {17, 15}, {33, 31}, {70, 45}};
    Arena               *arena = arena_new(NULL);
    Diags               *diags = diags_new(arena);
    Ctx                 *c = ctx_new(arena, diags, op_table);
    const Module        *m = module_of(c, text, 1, MOST_N, 1, MOST_T);
    Compiled             x = {0};
    const TirModule     *tir = NULL;
    const char          *wrong =
        m ? compile_launches(c, m, way->level, way->warps, way->machine, &x) : "does not parse";

    if (!wrong)
        tir = way->warps ? run_tir_passes(c, x.plan->tir, &x.o->passes, TIR_TO_CODE) : x.plan->tir;
    for (uint32_t i = first; !wrong && i < COUNT(sizes); i += by) {
        check_count++;
        wrong = check_size(&x, tir, text, way->warps, sizes[i][0], sizes[i][1]);
    }
    if (wrong) {
        StrBuf said = strbuf(arena);
        diag_print(diags, DIAG_TEXT, &said);
        printf("%s\n-O%u, %s, %s: %s\n%s\n", text, way->level, way->warps ? way->warps : "opencl",
               way->machine ? way->machine : "", wrong, said.at ? said.at : "");
        check_failures++;
    }
    ctx_free(c);
    arena_free(arena);
}

static bool all;

static void check_networks(uint32_t n, const char *const *text, uint32_t nways, const Way *ways)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t w = 0; w < nways; w++)
            check_network(text[i], &ways[w], all ? 0 : (i + w) % 2, all ? 1 : 2);
}

int main(int argc, char **argv)
{
    static const Way ways[] = {{3, NULL, NULL},
                               {3, "cuda -arch=sm_80", NULL},
                               {3, NULL, "tests/backends/one_core.machine"},
                               {3, "cuda -arch=sm_80", "tests/backends/one_core.machine"},
                               {3, "rocm -mcpu=gfx90a", NULL},
                               {0, NULL, NULL}};
    static const Way four = {3, "cuda -arch=sm_90a", "tests/backends/four_warps.machine"};

    static const Way quick[] = {{3, NULL, "tests/backends/quick_launches.machine"},
                                {3, "cuda -arch=sm_80", "tests/backends/quick_launches.machine"}};

    all = argc > 1 && !strcmp(argv[1], "all");
    check_networks(COUNT(products), products, COUNT(ways), ways);
    check_networks(1, products, 1, &four);
    check_networks(COUNT(convolutions), convolutions, 4, ways);
    check_networks(COUNT(rows), rows, 4, ways);
    check_networks(COUNT(reductions), reductions, COUNT(quick), quick);
    return check_result();
}
