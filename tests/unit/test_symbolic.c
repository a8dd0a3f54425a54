/* Networks with symbolic dimensions: lowered once, run by the interpreter at several sizes in
 * memory full of NaN, and compared with the same network of that size, evaluated as a graph. */
#include "tests/unit/check.h"
#include "tests/unit/net.h"

#include "ops/ops.h"
#include "passes/passes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *name, *text; /* `N` and `T` are the dimensions */
} Case;

static const Case cases[] = {
    {"rows of a product", "fn @main(%x: Tensor[(N, 24), f32], %w: Tensor[(40, 24), f32]) {\n"
                          "  nn.relu(nn.dense(%x, %w))\n}\n"},
    {"packed weights", "const @w: Tensor[(40, 24), f32] = splat(0.25)\n"
                       "const @b: Tensor[(4), f32] = [1, 2, 3, 4]\n"
                       "fn @main(%x: Tensor[(N, 24), f32], %v: Tensor[(4, 40), f32]) {\n"
                       "  %0 = nn.relu(nn.dense(%x, const @w));\n"
                       "  add(nn.dense(%0, %v), const @b)\n}\n"},
    {"elements", "fn @main(%x: Tensor[(N, T, 5), f32], %y: Tensor[(T, 1), f32]) {\n"
                 "  tanh(multiply(add(%x, %y), %x))\n}\n"},
    {"softmax of rows", "fn @main(%x: Tensor[(N, T), f32]) { nn.softmax(%x, axis=-1) }\n"},
    {"sums of columns", "fn @main(%x: Tensor[(N, T, 6), f32]) {\n"
                        "  (sum(%x, axis=[1]), mean(%x, axis=[0, 1]), max(%x, axis=[2]))\n}\n"},
    {"norm",
     "fn @main(%x: Tensor[(N, T, 16), f32], %g: Tensor[(16), f32], %b: Tensor[(16), f32]) {\n"
     "  nn.layer_norm(%x, %g, %b, axis=-1)\n}\n"},
    {"a batch of pictures",
     "const @w: Tensor[(16, 3, 3, 3), f32] = splat(0.1)\n"
     "fn @main(%x: Tensor[(N, 3, 9, 9), f32], %v: Tensor[(8, 16, 1, 1), f32]) {\n"
     "  %0 = nn.relu(nn.conv2d(%x, const @w, padding=[1, 1, 1, 1]));\n"
     "  %1 = nn.max_pool2d(%0, pool_size=[3, 3], strides=[2, 2]);\n"
     "  nn.conv2d(%1, %v)\n}\n"},
    {"a network of pictures",
     "const @w: Tensor[(16, 3, 3, 3), f32] = splat(0.1)\n"
     "const @u: Tensor[(16, 16, 3, 3), f32] = splat(0.02)\n"
     "const @d: Tensor[(16, 1, 3, 3), f32] = splat(-0.3)\n"
     "const @s: Tensor[(16), f32] = splat(0.5)\n"
     "fn @main(%x: Tensor[(N, 3, 9, 8), f32], %v: Tensor[(8, 16), f32]) {\n"
     "  %0 = nn.relu(nn.conv2d(%x, const @w, padding=[1, 1, 1, 1], strides=[2, 2]));\n"
     "  %1 = nn.relu(nn.bias_add(nn.conv2d(%0, const @u, padding=[1, 1, 1, 1]), const @s));\n"
     "  %2 = nn.conv2d(%1, const @d, padding=[1, 1, 1, 1], groups=16);\n"
     "  %3 = add(nn.max_pool2d(%2, pool_size=[3, 3], padding=[1, 1, 1, 1]), %0);\n"
     "  %4 = concatenate((%3, multiply(%1, sigmoid(nn.global_avg_pool2d(%3)))), axis=1);\n"
     "  (%4, nn.dense(nn.relu(reshape(nn.global_avg_pool2d(%3), newshape=[N, 16])), %v))\n}\n"},
    {"pictures of any size",
     "const @w: Tensor[(16, 3, 3, 3), f32] = splat(0.1)\n"
     "const @u: Tensor[(16, 16, 3, 3), f32] = splat(0.02)\n"
     "const @d: Tensor[(16, 1, 3, 3), f32] = splat(-0.3)\n"
     "const @t: Tensor[(16, 16, 2, 2), f32] = splat(0.05)\n"
     "fn @main(%x: Tensor[(1, 3, 2*N, 2*T), f32], %s: Tensor[(16), f32]) {\n"
     "  %0 = nn.relu(nn.conv2d(%x, const @w, padding=[1, 1, 1, 1], strides=[2, 2]));\n"
     "  %1 = nn.conv2d(%0, const @u, padding=[1, 1, 1, 1]);\n"
     "  %2 = nn.relu(nn.conv2d(%1, const @d, padding=[1, 1, 1, 1], groups=16));\n"
     "  add(nn.relu(nn.conv2d_transpose(%2, const @t, strides=[2, 2])),\n"
     "      nn.conv2d(%x, const @w, padding=[1, 1, 1, 1]))\n}\n"},
    {"columns of a picture, few results",
     "const @w: Tensor[(16, 16, 3, 3), f32] = splat(0.02)\n"
     "const @f: Tensor[(2, 16, 3, 3), f32] = splat(-0.1)\n"
     "const @g: Tensor[(16, 8, 3, 3), f32] = splat(0.03)\n"
     "fn @main(%x: Tensor[(1, 16, 6, T), f32], %y: Tensor[(1, 16, N, 5), f32]) {\n"
     "  %0 = nn.relu(nn.conv2d(%x, const @w, padding=[1, 1, 1, 1]));\n"
     "  (nn.conv2d(%0, const @w, padding=[1, 1, 1, 1], strides=[2, 1]),\n"
     "   nn.conv2d(%0, const @f, padding=[1, 1, 1, 1]),\n"
     "   nn.conv2d(nn.relu(nn.conv2d(%y, const @w, padding=[1, 1, 1, 1])), const @g, groups=2, "
     "padding=[1, 1, 1, 1]),\n"
     "   nn.conv2d(nn.relu(nn.conv2d(%y, const @w, padding=[1, 1, 1, 1])), const @f, "
     "padding=[1, 1, 1, 1]))\n}\n"},
    {"products of a batch", "fn @main(%x: Tensor[(N, T, 8), f32], %y: Tensor[(N, T, 8), f32]) {\n"
                            "  nn.batch_matmul(%x, %y, transpose_b=true)\n}\n"},
    {"two dimensions of one input", "fn @main(%x: Tensor[(N, T), f32], %y: Tensor[(T, N), f32]) {\n"
                                    "  add(transpose(%x, axes=[1, 0]), %y)\n}\n"},
    {"put together", "fn @main(%x: Tensor[(N, 4), f32], %y: Tensor[(T, 4), f32]) {\n"
                     "  nn.relu(concatenate((%x, %y), axis=0))\n}\n"},
    {"many put together",
     "fn @main(%x: Tensor[(N, 4), f32], %y: Tensor[(T, 4), f32]) {\n"
     "  %0 = concatenate((%x, tanh(%y), %x, %y, nn.relu(%y), %x, %y, %x), axis=0);\n"
     "  (nn.relu(%0), sum(%0, axis=[0]), nn.dense(%0, %x))\n}\n"},
    {"many put together, of one row",
     "fn @main(%x: Tensor[(3, N), f32], %y: Tensor[(3, T), f32]) {\n"
     "  nn.relu(concatenate((%y, %x, %x, tanh(%y), %y, %x, %y), axis=1))\n}\n"},
    {"rows in one", "fn @main(%x: Tensor[(N, T, 8), f32]) {\n"
                    "  %0 = nn.relu(reshape(%x, newshape=[N*T, 8]));\n"
                    "  (%0, tanh(reshape(%0, newshape=[N, -1, 4, 2])))\n}\n"},
    {"made", "fn @main(%x: Tensor[(T, 1), f32], %y: Tensor[(N), f32]) {\n"
             "  %0 = broadcast_to(%x, shape=[N, T, 3]);\n"
             "  %1 = tile(%y, reps=[T, 2]);\n"
             "  (add(%0, ones(shape=[N, T, 1])), %1, arange(cells=[2*N+T], step=0.5))\n}\n"},
    {"parts", "fn @main(%x: Tensor[(N, T+2), f32]) {\n"
              "  %0 = strided_slice(%x, begin=[0, -3], end=[N, 1000000]);\n"
              "  %1 = strided_slice(%x, begin=[T//2], end=[T+1], axes=[1]);\n"
              "  %2 = strided_slice(%x, begin=[1], end=[9], strides=[3], axes=[1]);\n"
              "  %3 = strided_slice(%x, begin=[-1], end=[-1000], strides=[-2], axes=[1]);\n"
              "  (negative(%0), negative(%1), negative(%2), negative(%3))\n}\n"},
    {"halves", "fn @main(%x: Tensor[(4*N, T), f32]) {\n"
               "  %0 = split(%x, sections=2);\n  %1 = split(%x, indices=[N, 3*N]);\n"
               "  (add(%0.0, %0.1), exp(%1.0), exp(%1.1), exp(%1.2))\n}\n"},
    {"numbers",
     "fn @main(%x: Tensor[(N, T), f32]) {\n"
     "  (cast(dim_values(dims=[N, 2*N+T, 7]), dtype=f32),\n"
     "   divide(%x, cast(reshape(dim_values(dims=[N*T]), newshape=[]), dtype=f32)))\n}\n"},
    {"twice the size", "fn @main(%x: Tensor[(1, 2, N, T), f32]) {\n"
                       "  (image.resize2d(%x, size=[2*N, 3*T], method=\"nearest_neighbor\"),\n"
                       "   image.resize2d(%x, size=[2*N, 2*T], method=\"linear\"))\n}\n"},
    {"sums over T",
     "fn @main(%x: Tensor[(N, 2, T, T), f32], %y: Tensor[(N, 2, T, 4), f32]) {\n"
     "  %0 = nn.softmax(%x, axis=-1);\n"
     "  (nn.batch_matmul(%0, %y, transpose_b=false),\n"
     "   nn.batch_matmul(transpose(%y, axes=[0, 1, 3, 2]), %y, transpose_b=false))\n}\n"},
    {"weights over T", "fn @main(%x: Tensor[(N, T), f32], %y: Tensor[(40, T), f32]) {\n"
                       "  nn.relu(nn.dense(%x, %y))\n}\n"},
    {"heads", "fn @main(%x: Tensor[(N, T, 2, 4), f32], %y: Tensor[(N, T, 2, 4), f32]) {\n"
              "  %0 = transpose(%x, axes=[0, 2, 1, 3]);\n  %1 = transpose(%y, axes=[0, 2, 3, 1]);\n"
              "  %2 = nn.softmax(nn.batch_matmul(%0, %1, transpose_b=false));\n"
              "  %3 = nn.batch_matmul(%2, transpose(%y, axes=[0, 2, 1, 3]), transpose_b=false);\n"
              "  reshape(transpose(%3, axes=[0, 2, 1, 3]), newshape=[N*T, 8])\n}\n"},
    {"heads of one sequence",
     "fn @main(%x: Tensor[(1, T, 2, 20), f32], %y: Tensor[(1, T, 2, 20), f32],\n"
     "         %m: Tensor[(1, 1, 1, T), f32]) {\n"
     "  %0 = transpose(%x, axes=[0, 2, 1, 3]);\n  %1 = transpose(%y, axes=[0, 2, 3, 1]);\n"
     "  %2 = multiply(nn.batch_matmul(%0, %1, transpose_b=false), 0.3);\n"
     "  %3 = nn.softmax(add(%2, %m));\n"
     "  %4 = nn.batch_matmul(%3, transpose(%y, axes=[0, 2, 1, 3]), transpose_b=false);\n"
     "  reshape(transpose(%4, axes=[0, 2, 1, 3]), newshape=[T, 40])\n}\n"},
    {"attention of texts of any number and length",
     "fn @main(%x: Tensor[(N, T, 18), f32], %y: Tensor[(N, T, 18), f32],\n"
     "         %m: Tensor[(N, 1, 1, T), f32]) {\n"
     "  %0 = transpose(reshape(%x, newshape=[N, T, 3, 6]), axes=[0, 2, 1, 3]);\n"
     "  %1 = transpose(reshape(%y, newshape=[N, T, 3, 6]), axes=[0, 2, 3, 1]);\n"
     "  %2 = nn.softmax(add(nn.batch_matmul(%0, %1, transpose_b=false), %m));\n"
     "  %3 = transpose(reshape(%y, newshape=[N, T, 3, 6]), axes=[0, 2, 1, 3]);\n"
     "  %4 = nn.batch_matmul(%2, %3, transpose_b=false);\n"
     "  reshape(transpose(%4, axes=[0, 2, 1, 3]), newshape=[N, T, 18])\n}\n"},
    {"a sequence and what was before",
     "fn @main(%x: Tensor[(3, T, 8), f32], %y: Tensor[(3, N, 8), f32], %z: Tensor[(3, T, 8), f32]) "
     "{\n"
     "  %0 = concatenate((%y, %z), axis=1);\n"
     "  %1 = nn.softmax(nn.batch_matmul(%x, %0, transpose_b=true));\n"
     "  (nn.batch_matmul(%1, %0, transpose_b=false), %0)\n}\n"},
    {"one row by what was before", "fn @main(%x: Tensor[(3, 1, 8), f32], %y: Tensor[(3, N+T, 8), "
                                   "f32], %z: Tensor[(3, 8, T), f32]) {\n"
                                   "  %0 = nn.softmax(nn.batch_matmul(%x, %y, transpose_b=true));\n"
                                   "  (nn.batch_matmul(%0, %y, transpose_b=false), "
                                   "nn.batch_matmul(%x, %z, transpose_b=false))\n}\n"},
    {"norm with two sums", "fn @main(%x: Tensor[(1, T, 40), f32], %g: Tensor[(40), f32]) {\n"
                           "  %0 = subtract(%x, mean(%x, axis=[-1], keepdims=true));\n"
                           "  %1 = mean(multiply(%0, %0), axis=[-1], keepdims=true);\n"
                           "  multiply(divide(%0, sqrt(add(%1, 0.001))), %g)\n}\n"},
    {"rows that a value counts",
     "dim K in 0..24\nfn @main(%x: Tensor[(N, 8), f32], %w: Tensor[(16, 8), f32]) {\n"
     "  %0 = cast(greater(%x, 0.25), dtype=i64);\n"
     "  %1 = sum(cast(greater(sum(%0, axis=[1]), 2_i64), dtype=i64));\n"
     "  let %k = bind_dims(%1, dims=[K]);\n"
     "  %2 = strided_slice(%x, begin=[0], end=[K], axes=[0]);\n"
     "  (nn.relu(nn.dense(%2, %w)), sum(%2, axis=[0]), arange(cells=[2*K+1]), negative(%x),\n"
     "   broadcast_to(cast(%k, dtype=f32), shape=[K, 3]))\n}\n"},
    {"counted again",
     "dim K in 0..24\ndim L in 0..37\ndim M in 1..8\n"
     "fn @main(%x: Tensor[(N, T), f32]) {\n"
     "  %0 = sum(cast(greater(max(%x, axis=[1]), 0.5), dtype=i64));\n"
     "  %1 = reshape(%0, newshape=[1]);\n"
     "  %2 = reshape(sum(cast(greater(min(%x, axis=[0]), -0.5), dtype=i64)), newshape=[1]);\n"
     "  let %a = bind_dims(concatenate((%1, %2, dim_values(dims=[4])), axis=0), dims=[K, L, 4]);\n"
     "  %4 = strided_slice(%x, begin=[0, 0], end=[K, L]);\n"
     "  let %b = bind_dims(minimum(add(cast(any(greater(%x, 0.9)), dtype=i64), 1_i64), 8_i64),\n"
     "                     dims=[M]);\n"
     "  (nn.softmax(%4, axis=-1), tile(tanh(%4), reps=[M, 2]), zeros(shape=[L, M]), exp(%x))\n}\n"},
    {"bound and given back", "dim K in 0..37\nfn @main(%x: Tensor[(N, T), f32]) {\n"
                             "  let %k = bind_dims(dim_values(dims=[T]), dims=[K]);\n"
                             "  (cast(%k, dtype=f32), ones(shape=[K, N]))\n}\n"},
    {"the input itself", "fn @main(%x: Tensor[(N, 4), f32]) { (%x, negative(%x)) }\n"},
};

static const Target machines[] = {{.text = "llvm -mcpu=a",
                                   .pointer_bits = 64,
                                   .vector_bytes = 32,
                                   .vector_regs = 16,
                                   .has_fma = true,
                                   .l1_bytes = 32768,
                                   .l2_bytes = 524288,
                                   .l3_bytes = 1 << 23,
                                   .winograd = true},
                                  {.text = "llvm -mcpu=b",
                                   .pointer_bits = 64,
                                   .vector_bytes = 64,
                                   .vector_regs = 32,
                                   .fma_mem_splat = true,
                                   .l1_bytes = 32768,
                                   .l2_bytes = 524288,
                                   .l3_bytes = 1 << 23}};

enum { MOST_N = 24, MOST_T = 37, MAX_IO = 8 };

static const Module *module_of(Ctx *c, const Case *k, int64_t nlo, int64_t nhi, int64_t tlo,
                               int64_t thi)
{
    const char *text =
        arena_printf(c->arena, "dim N in %lld..%lld\ndim T in %lld..%lld\n%s", (long long)nlo,
                     (long long)nhi, (long long)tlo, (long long)thi, k->text);

    return relay_parse(c, k->name, (Bytes){(const uint8_t *)text, strlen(text)}, (Bytes){0});
}

static void report(Ctx *c, const Case *k, const char *what)
{
    StrBuf text = strbuf(c->arena);

    diag_print(c->diags, DIAG_TEXT, &text);
    printf("%s: %s\n%s\n", k->name, what, text.at ? text.at : "");
    check_failures++;
}

static bool close_enough(const uint8_t *a, const uint8_t *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double x = dtype_get_f(DT_F32, a + i * 4), y = dtype_get_f(DT_F32, b + i * 4);

        if (!(fabs(x - y) <= 1e-4 + 1e-4 * fabs(x)))
            return false;
    }
    return true;
}

/* The plan at one size against the graph of that size. */
static void check_size(Ctx *c, const Case *k, const Plan *p, int64_t n, int64_t t, const char *how)
{
    const Module       *m = module_of(c, k, n, n, t, t);
    const Expr         *main = m ? module_func(m, "main") : NULL;
    Net                 net = {.c = c, .seed = (uint32_t)(n * 131 + t)};
    const Const        *in[MAX_IO];
    const Const *const *want;
    uint32_t            nin = main ? func_nparams(main) : 0, nwant = 0, at = 0;
    void               *args[2 * MAX_IO + 3];
    int64_t             dims[2];

    check_count++;
    for (uint32_t i = 0; i < nin; i++) {
        in[i] = float_noise(&net, func_param(main, i)->type, -1, 1);
        args[at++] = (void *)(uintptr_t)in[i]->data.at;
    }
    if (!m || !relay_eval(c, m, nin, in, &nwant, &want)) {
        report(c, k, "the graph is not evaluated");
        return;
    }
    uint32_t first = at;
    for (uint32_t i = 0; i < nwant; i++)
        args[at++] = memory(c, want[i]->data.n);
    args[at++] = memory(c, p->arena_bytes + p->private_bytes);
    args[at++] = memory(c, p->weights_bytes);
    if (p->ncells)
        args[at++] = memory(c, p->ncells * sizeof(int64_t));
    for (uint32_t i = 0; i < p->symbols.n; i++)
        dims[i] = *p->symbols.at[i]->name == 'N' ? n : t;
    if (!fill_weights(c, p, args[first + nwant + 1]) ||
        !tir_eval(c, p->tir, p->tir->funcs[p->tir->nfuncs - 1], at, args, p->symbols.n, dims)) {
        report(c, k,
               arena_printf(c->arena, "%s, N = %lld, T = %lld: does not run", how, (long long)n,
                            (long long)t));
        return;
    }
    for (uint32_t i = 0; i < nwant; i++)
        if (!close_enough(want[i]->data.at, args[first + i], (int64_t)(want[i]->data.n / 4)))
            report(c, k,
                   arena_printf(c->arena, "%s, N = %lld, T = %lld: result %u differs", how,
                                (long long)n, (long long)t, i));
}

static void check_case(const Case *k, uint32_t level, const Target *target)
{
    static const int64_t sizes[][2] = {{1, 1}, {2, 37}, {7, 5}, {24, 3}, {16, 19}, {9, 16}};
    Arena               *arena = arena_new(NULL);
    Ctx                 *c = ctx_new(arena, diags_new(arena), op_table);
    PassOptions          o = {.opt_level = level, .verify_each = true};
    const Plan          *p = NULL;
    const char          *how = arena_printf(arena, "-O%u %s", level, target->text);

    c->target = target;
    const Module *m = module_of(c, k, 1, MOST_N, 1, MOST_T), *now = NULL;
    check_count++;
    if (!m || !(now = run_graph_passes(c, m, &o)) || !(p = lower(c, now, "net", &o)))
        report(c, k, arena_printf(arena, "%s: not lowered", how));
    for (uint32_t i = 0; p && i < COUNT(sizes); i++)
        check_size(c, k, p, sizes[i][0], sizes[i][1], how);
    ctx_free(c);
    arena_free(arena);
}

int main(void)
{
    for (uint32_t i = 0; i < COUNT(cases); i++)
        for (uint32_t level = 0; level < 4; level += 3)
            for (uint32_t t = 0; t < (level ? COUNT(machines) : 1); t++)
                check_case(&cases[i], level, &machines[t]);
    return check_result();
}
