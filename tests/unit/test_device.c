/* Device code without a device: lowered for OpenCL and run by the interpreter, which carries out
 * launches thread by thread and reports races, barriers that not all threads come to, and accesses
 * out of bounds.  Every operator by its tests/ops/<operator>.case, and networks whose kernels share
 * memory among threads, against the same network evaluated as a graph.
 *
 *     test_device [all | operator]
 *
 * Networks are compiled in every other way that there is for them, the next one in those between;
 * `all`: each in all of them. */
#include "tests/unit/cases.h"
#include "tests/unit/launches.h"

/* How code is made. */
typedef struct {
    uint32_t    level;
    const char *warps;   /* a target: products take 16 bits, by instructions of warps; or NULL */
    const char *machine; /* figures, or NULL */
} Way;

/* Figures of a GPU whose threads have many cells, of one whose tiles are four warps', and of one
 * whose blocks have parts of short rows. */
#define MANY_CELLS "tests/backends/one_core.machine"
#define QUICK_LAUNCHES "tests/backends/quick_launches.machine"
#define FOUR_WARPS "tests/backends/four_warps.machine"

static Way  way;
static bool all;

static const char *run(Ctx *c, const Module *m, uint32_t nin, const Const *const *in, uint32_t most,
                       const Const **out)
{
    Compiled    x;
    const char *wrong = compile_launches(c, m, way.level, way.warps, way.machine, &x);

    if (wrong)
        return wrong;
    const TirModule *tir =
        way.warps ? run_tir_passes(c, x.plan->tir, &x.o->passes, TIR_TO_CODE) : x.plan->tir;
    return tir ? run_launches(c, &x, tir, nin, in, most, out) : "does not run";
}

static void check_operator(const Case *k)
{
    const char *how = way.machine ? "launches, many cells"
                      : way.level ? "launches, -O3"
                                  : "launches, -O0",
               *wrong;
    const Const *out[MAX_OPERANDS];

    check_count++;
    if ((wrong = run(k->c, k->m, k->nin, k->in, k->nout, out))) {
        failed(k, how, wrong);
        return;
    }
    for (uint32_t i = 0; i < k->nout; i++)
        if (!same_numbers(k, how, i, out[i]))
            return;
}

/* ---- networks ------------------------------------------------------------------------------------ */

static const char *const networks[] = {
    /* tiles of products in shared memory */
    "fn @main(%x: Tensor[(32, 64), f32], %w: Tensor[(48, 64), f32], %b: Tensor[(48,), f32]) {\n"
    "  nn.relu(nn.bias_add(nn.dense(%x, %w), %b))\n}\n",
    "fn @main(%x: Tensor[(3, 32, 48), f32], %y: Tensor[(3, 64, 48), f32],\n"
    "         %z: Tensor[(64, 16), f32]) {\n"
    "  (nn.relu(nn.batch_matmul(%x, %y)), nn.matmul(reshape(%x, newshape=[72, 64]), %z),\n"
    "   nn.matmul(reshape(%x, newshape=[16, 288]), reshape(%y, newshape=[288, 32])))\n}\n",
    "const @w: Tensor[(32, 32), f32] = splat(0.125)\n"
    "fn @main(%x: Tensor[(16, 32), f32]) {\n"
    "  tanh(nn.dense(nn.softmax(nn.dense(%x, const @w), axis=-1), const @w))\n}\n",
    /* sums in parts by groups of a block's threads, of groups of channels, too */
    "const @w: Tensor[(24, 32, 3, 3), f32] = splat(0.02)\n"
    "const @v: Tensor[(16, 12, 3, 3), f32] = splat(0.03)\n"
    "fn @main(%x: Tensor[(1, 32, 7, 5), f32], %y: Tensor[(9, 96), f32],\n"
    "         %z: Tensor[(96, 10), f32]) {\n"
    "  %0 = nn.relu(nn.conv2d(%x, const @w, padding=[1, 1, 1, 1]));\n"
    "  (nn.conv2d(%0, const @v, groups=2, strides=[2, 1]), nn.matmul(%y, nn.softmax(%z)))\n}\n",
    /* halos, pools, several launches */
    "const @u: Tensor[(8, 8, 3, 3), f32] = splat(0.02)\n"
    "fn @main(%x: Tensor[(1, 3, 12, 11), f32], %w: Tensor[(8, 3, 3, 3), f32],\n"
    "         %d: Tensor[(8, 1, 3, 3), f32], %v: Tensor[(16, 8), f32]) {\n"
    "  %0 = nn.relu(nn.conv2d(%x, %w, padding=[1, 1, 1, 1], strides=[2, 2]));\n"
    "  %1 = nn.conv2d(%0, const @u, padding=[1, 1, 1, 1]);\n"
    "  %2 = add(nn.conv2d(%1, %d, padding=[1, 1, 1, 1], groups=8), %0);\n"
    "  %3 = concatenate((nn.max_pool2d(%2, pool_size=[3, 3], padding=[1, 1, 1, 1]), %1), axis=1);\n"
    "  (%3, nn.dense(reshape(nn.global_avg_pool2d(%2), newshape=[1, 8]), %v))\n}\n",
    /* tiles over the edges, strides, dilation, groups, operands that are turned or computed first
     */
    "fn @main(%x: Tensor[(2, 6, 19, 17), f32], %w: Tensor[(10, 3, 3, 5), f32],\n"
    "         %v: Tensor[(9, 10, 1, 1), f32], %b: Tensor[(9), f32]) {\n"
    "  %0 = nn.relu(nn.conv2d(tanh(%x), %w, padding=[2, 4, 2, 4], strides=[2, 1], dilation=[2, "
    "2],\n"
    "                         groups=2));\n"
    "  %1 = nn.bias_add(nn.conv2d(%0, %v), %b);\n"
    "  (%1, nn.conv2d(%0, %v, padding=[1, 0, 0, 1], strides=[1, 3]))\n}\n",
    "const @w: Tensor[(37, 45), f32] = splat(0.0625)\n"
    "fn @main(%x: Tensor[(53, 45), f32], %y: Tensor[(45, 70), f32], %z: Tensor[(70, 53), f32]) {\n"
    "  %0 = nn.dense(%x, const @w);\n"
    "  %1 = nn.matmul(sigmoid(%x), nn.relu(%y));\n"
    "  (%0, %1, nn.matmul(%1, %z), nn.matmul(%x, %0, transpose_a=true))\n}\n",
    /* rows divided among the threads of a block, rows of a thread each, a sum of everything */
    "fn @main(%x: Tensor[(3, 300), f32], %g: Tensor[(300), f32], %b: Tensor[(300), f32],\n"
    "         %y: Tensor[(2, 5, 9, 13), f32]) {\n"
    "  (nn.softmax(%x), nn.log_softmax(%x), nn.layer_norm(%x, %g, %b, axis=-1),\n"
    "   cast(argmax(%x, axis=1), dtype=f32), max(%x, axis=[1]), mean(%x, axis=[0]),\n"
    "   nn.global_avg_pool2d(%y), nn.softmax(%y, axis=1), sum(%y, axis=[1, 2, 3]),\n"
    "   sum(%x, axis=[0, 1]), exp(mean(%y, axis=[0, 1, 2, 3])))\n}\n",
    "fn @main(%x: Tensor[(1, 5, 90), f32], %g: Tensor[(90), f32]) {\n"
    "  %0 = mean(multiply(%x, %x), axis=[2], keepdims=true);\n"
    "  multiply(multiply(%x, rsqrt(add(%0, 0.00001))), %g)\n}\n",
    /* one row, one pixel, groups of one channel */
    "const @w: Tensor[(150, 37), f32] = splat(0.125)\n"
    "fn @main(%x: Tensor[(1, 150), f32], %v: Tensor[(70, 150), f32], %b: Tensor[(70), f32],\n"
    "         %q: Tensor[(3, 1, 64), f32], %k: Tensor[(3, 50, 64), f32],\n"
    "         %d: Tensor[(1, 5, 11, 9), f32], %e: Tensor[(5, 1, 3, 3), f32],\n"
    "         %p: Tensor[(1, 80, 1, 1), f32], %f: Tensor[(20, 80, 1, 1), f32]) {\n"
    "  (nn.relu(nn.bias_add(nn.dense(%x, %v), %b)), nn.matmul(%x, const @w),\n"
    "   nn.batch_matmul(%q, %k), nn.relu(nn.conv2d(%d, %e, groups=5, padding=[1, 1, 1, 1])),\n"
    "   sigmoid(nn.conv2d(%p, %f)))\n}\n",
    /* a depthwise convolution in the copies of what reads it; results that are turned */
    "const @d: Tensor[(12, 1, 3, 3), f32] = splat(0.125)\n"
    "const @w: Tensor[(20, 12, 1, 1), f32] = splat(0.0625)\n"
    "fn @main(%x: Tensor[(1, 12, 15, 13), f32], %b: Tensor[(12), f32]) {\n"
    "  %0 = nn.relu(nn.bias_add(nn.conv2d(%x, const @d, padding=[1, 1, 1, 1], groups=12,\n"
    "                                     strides=[2, 1]), %b));\n"
    "  transpose(nn.relu(nn.conv2d(%0, const @w)), axes=[0, 2, 3, 1])\n}\n",
    /* a long sum with few results, in parts */
    "fn @main(%x: Tensor[(6, 8192), f32], %w: Tensor[(11, 8192), f32], %b: Tensor[(11), f32]) {\n"
    "  nn.relu(nn.bias_add(nn.dense(multiply(%x, 0.125), %w), %b))\n}\n",
    /* tiles that are turned: images, a matrix of which a block of threads has edges, a tensor read
     * both ways, cells of other sizes, sides too short for tiles */
    "fn @main(%x: Tensor[(3, 40, 17, 19), f32], %y: Tensor[(3, 17, 19, 40), f32],\n"
    "         %b: Tensor[(40), f32], %z: Tensor[(75, 75), f32], %w: Tensor[(70, 5, 33), f32]) {\n"
    "  %0 = cast(cast(transpose(%w, axes=[2, 1, 0]), dtype=f16), dtype=f32);\n"
    "  (nn.relu(add(add(transpose(%x, axes=[0, 2, 3, 1]), %y), %b)),\n"
    "   add(multiply(%z, 0.5), transpose(exp(%z))), %0, transpose(%y, axes=[0, 3, 1, 2]),\n"
    "   transpose(tanh(%w), axes=[0, 2, 1]))\n}\n",
    /* cells of a thread one above the other, which read rows in common, and side by side, which
     * come at once; numbers of which no access takes several */
    "fn @main(%x: Tensor[(1, 3, 21, 20), f32], %y: Tensor[(2, 8, 6, 10), f32],\n"
    "         %z: Tensor[(2, 3, 6, 10), f32], %b: Tensor[(8), f32], %w: Tensor[(3, 7, 7), f32]) {\n"
    "  %0 = nn.max_pool2d(%x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1]);\n"
    "  %1 = nn.avg_pool2d(%x, pool_size=[2, 3], strides=[1, 2], padding=[0, 1, 0, 1]);\n"
    "  %2 = image.resize2d(%x, size=[42, 40], method=\"nearest_neighbor\",\n"
    "                      coordinate_transformation_mode=\"asymmetric\");\n"
    "  %3 = image.resize2d(%x, size=[28, 30], method=\"linear\",\n"
    "                      coordinate_transformation_mode=\"half_pixel\");\n"
    "  %4 = cast(nn.relu(cast(%w, dtype=f16)), dtype=f32);\n"
    "  %5 = strided_slice(%y, begin=[0, 2], end=[2, 7], axes=[0, 1]);\n"
    "  (%0, nn.relu(%1), %2, %3, concatenate((%y, exp(%z)), axis=1),\n"
    "   nn.relu(nn.bias_add(%y, %b)), nn.pad(exp(%5), pad_width=[0, 0, 0, 0, 2, 2, 2, 2]),\n"
    "   add(%4, 1.0))\n}\n",
    /* attention: rows, keys and columns that no tile divides, masks, heads behind rows */
    "fn @main(%q: Tensor[(2, 37, 20), f32], %k: Tensor[(2, 75, 20), f32],\n"
    "         %v: Tensor[(2, 75, 23), f32], %m: Tensor[(37, 75), f32], %x: Tensor[(1, 40, 96), "
    "f32],\n"
    "         %o: Tensor[(37, 75), f32]) {\n"
    "  %0 = nn.softmax(add(divide(nn.batch_matmul(%q, %k), 4.0), %m));\n"
    "  %1 = transpose(reshape(%x, newshape=[1, 40, 3, 32]), axes=[0, 2, 1, 3]);\n"
    "  %2 = nn.softmax(where(less(%o, 0.9), nn.batch_matmul(%q, %k), -5.0));\n"
    "  %3 = nn.batch_matmul(%1, %1, transpose_b=true);\n"
    "  %4 = nn.batch_matmul(nn.softmax(multiply(%3, 0.25)), %1, transpose_b=false);\n"
    "  (nn.batch_matmul(%0, %v, transpose_b=false), nn.batch_matmul(%2, %v, transpose_b=false),\n"
    "   sigmoid(reshape(transpose(%4, axes=[0, 2, 1, 3]),\n"
    "   newshape=[1, 40, 96])))\n}\n",
    "fn @main(%q: Tensor[(2, 9, 33), f32], %k: Tensor[(2, 200, 33), f32],\n"
    "         %v: Tensor[(2, 200, 5), f32]) {\n"
    "  nn.batch_matmul(nn.softmax(nn.batch_matmul(%q, %k)), %v, transpose_b=false)\n}\n",
    "fn @main(%x: Tensor[(8, 48, 8), f32], %m: Tensor[(48, 48), f32]) {\n"
    "  nn.batch_matmul(nn.softmax(add(nn.batch_matmul(%x, %x), %m)), %x, transpose_b=false)\n}\n",
    "fn @main(%x: Tensor[(2, 16, 32), f32], %g: Tensor[(32), f32], %b: Tensor[(32), f32]) {\n"
    "  %0 = nn.layer_norm(%x, %g, %b, axis=-1);\n"
    "  %1 = nn.softmax(nn.batch_matmul(%0, %0, transpose_b=true), axis=-1);\n"
    "  (nn.batch_matmul(%1, %0, transpose_b=false), cumsum(%x, axis=1), sort(%x, axis=1))\n}\n",
};

/* Products by instructions of warps, tiles over all edges: dense layers, batches, operands that are
 * turned; a convolution whose pixels are columns, with strides and padding. */
static const char *const products[] = {
    "fn @main(%x: Tensor[(53, 48), f32], %w: Tensor[(37, 48), f32], %b: Tensor[(37,), f32]) {\n"
    "  nn.relu(nn.bias_add(nn.dense(%x, %w), %b))\n}\n",
    "fn @main(%x: Tensor[(3, 70, 32), f32], %y: Tensor[(3, 32, 90), f32],\n"
    "         %z: Tensor[(130, 64), f32], %v: Tensor[(130, 72), f32]) {\n"
    "  (nn.batch_matmul(%x, %y, transpose_b=false),\n"
    "   nn.matmul(reshape(%x, newshape=[48, 140]), reshape(%x, newshape=[48, 140]),\n"
    "             transpose_a=true),\n"
    "   nn.dense(%z, %z))\n}\n",
    "const @w: Tensor[(40, 16, 3, 3), f32] = splat(0.0625)\n"
    "fn @main(%x: Tensor[(2, 16, 11, 9), f32], %v: Tensor[(24, 40, 1, 2), f32]) {\n"
    "  %0 = nn.relu(nn.conv2d(%x, const @w, padding=[1, 2, 1, 0], strides=[2, 1]));\n"
    "  add(nn.conv2d(%0, %v, dilation=[1, 2]), 1.0)\n}\n",
    /* channels in blocks: borders, strides, all blocks in a chunk, a residual behind */
    "fn @main(%x: Tensor[(2, 4, 11, 9, 16), f32], %z: Tensor[(2, 2, 6, 10, 16), f32]) {\n"
    "  %n = multiply(subtract(mod(multiply(arange(start=0, stop=27648, step=1), 37.0), 251.0), "
    "125.0), 0.002);\n"
    "  %w = reshape(strided_slice(%n, begin=[0], end=[27648]), newshape=[48, 64, 3, 3]);\n"
    "  %v = reshape(strided_slice(%n, begin=[0], end=[1536]), newshape=[32, 48, 1, 1]);\n"
    "  %0 = nn.relu(nn.conv2d(%x, %w, padding=[1, 2, 1, 0], strides=[2, 1],\n"
    "                         data_layout=\"NCHW16c\"));\n"
    "  %1 = nn.conv2d(%0, %v, padding=[0, 0, 0, 1], data_layout=\"NCHW16c\");\n"
    "  nn.relu(add(%1, %z))\n}\n",
    /* .. as the layouts are chosen: a picture, surplus lanes, a depthwise convolution, a pool,
     * parts of one tensor, a residual, a mean */
    "fn @main(%x: Tensor[(1, 3, 15, 17), f32]) {\n"
    "  %n = multiply(subtract(mod(multiply(arange(start=0, stop=10368, step=1), 37.0), 251.0), "
    "125.0), 0.002);\n"
    "  %a = reshape(strided_slice(%n, begin=[0], end=[864]), newshape=[32, 3, 3, 3]);\n"
    "  %b = reshape(strided_slice(%n, begin=[0], end=[768]), newshape=[24, 32, 1, 1]);\n"
    "  %c = reshape(strided_slice(%n, begin=[0], end=[10368]), newshape=[48, 24, 3, 3]);\n"
    "  %d = reshape(strided_slice(%n, begin=[0], end=[432]), newshape=[48, 1, 3, 3]);\n"
    "  %e = reshape(strided_slice(%n, begin=[0], end=[2304]), newshape=[24, 96, 1, 1]);\n"
    "  %0 = nn.relu(nn.conv2d(%x, %a, padding=[1, 1, 1, 1], strides=[2, 2]));\n"
    "  %1 = nn.relu(nn.conv2d(%0, %b));\n"
    "  %2 = nn.relu(nn.conv2d(%1, %c, padding=[2, 2, 2, 2], dilation=[2, 2]));\n"
    "  %3 = clip(nn.conv2d(%2, %d, padding=[1, 1, 1, 1], groups=48), a_min=0.0, a_max=6.0);\n"
    "  %4 = nn.max_pool2d(%2, pool_size=[3, 3], padding=[1, 1, 1, 1]);\n"
    "  %5 = nn.relu(add(nn.conv2d(concatenate((%3, %4), axis=1), %e), %1));\n"
    "  (%5, nn.global_avg_pool2d(%5))\n}\n",
    /* warps above and beside each other, the last tiles over both edges */
    "fn @main(%x: Tensor[(250, 32), f32], %w: Tensor[(500, 32), f32], %b: Tensor[(500,), f32]) {\n"
    "  nn.relu(nn.bias_add(nn.dense(%x, %w), %b))\n}\n",
};

/* Attention whose products are made by instructions of warps: several heads that lie behind rows,
 * rows and keys that no tile divides, masks of numbers and of truths, columns that are no power of
 * two or no multiple of an instruction's; keys that lie the other way round. */
static const char *const heads[] = {
    "fn @main(%q: Tensor[(1, 96, 3, 64), f32], %k: Tensor[(1, 150, 3, 64), f32],\n"
    "         %v: Tensor[(1, 150, 3, 64), f32], %m: Tensor[(1, 1, 1, 150), f32]) {\n"
    "  %0 = transpose(%q, axes=[0, 2, 1, 3]);\n"
    "  %1 = transpose(%k, axes=[0, 2, 3, 1]);\n"
    "  %2 = transpose(%v, axes=[0, 2, 1, 3]);\n"
    "  %3 = add(multiply(nn.batch_matmul(%0, %1, transpose_b=false), 0.125), %m);\n"
    "  transpose(nn.batch_matmul(nn.softmax(%3), %2, transpose_b=false), axes=[0, 2, 1, 3])\n}\n",
    "fn @main(%q: Tensor[(2, 40, 32), f32], %k: Tensor[(2, 75, 32), f32],\n"
    "         %v: Tensor[(2, 75, 20), f32], %o: Tensor[(40, 75), f32]) {\n"
    "  %0 = nn.softmax(where(less(%o, 0.9), nn.batch_matmul(%q, %k), -5.0));\n"
    "  nn.batch_matmul(%0, %v, transpose_b=false)\n}\n",
    "fn @main(%q: Tensor[(2, 64, 80), f32], %k: Tensor[(2, 80, 96), f32],\n"
    "         %v: Tensor[(2, 96, 80), f32]) {\n"
    "  %0 = nn.softmax(multiply(nn.batch_matmul(%q, %k, transpose_b=false), 0.125));\n"
    "  nn.batch_matmul(%0, %v, transpose_b=false)\n}\n",
    "fn @main(%x: Tensor[(1, 300, 48), f32]) {\n"
    "  %0 = nn.softmax(nn.batch_matmul(%x, %x));\n"
    "  nn.batch_matmul(%0, %x, transpose_b=false)\n}\n",
};

/* Long rows, and rows side by side whose numbers lie apart: by threads of a row and of neighbouring
 * rows, by blocks that have parts of them; results without dimensions, of other axes than rows. */
static const char *const reductions[] = {
    "fn @main(%x: Tensor[(1, 2100), f32], %g: Tensor[(2100), f32], %b: Tensor[(2100), f32]) {\n"
    "  (nn.softmax(%x), nn.log_softmax(%x), nn.layer_norm(%x, %g, %b, axis=-1),\n"
    "   cast(argmax(%x, axis=1), dtype=f32), min(%x, axis=[1]), exp(mean(%x, axis=[0, 1])))\n}\n",
    "fn @main(%x: Tensor[(2, 9, 13, 12), f32], %y: Tensor[(300, 37), f32],\n"
    "         %z: Tensor[(5, 70, 7), f32]) {\n"
    "  %0 = mean(%x, axis=[1, 2], keepdims=true);\n"
    "  (%0, variance(%x, %0, axis=[1, 2]), max(%y, axis=[0]), nn.softmax(%y, axis=0), sum(%y),\n"
    "   cast(argmin(%y, axis=0), dtype=f32), sum(%z, axis=[1]), min(transpose(%z), axis=[1]),\n"
    "   nn.global_avg_pool2d(transpose(%x, axes=[0, 3, 1, 2])))\n}\n",
};

/* Products by instructions of four warps, where the target has these: tiles over both edges; a
 * batch, one side of which passes registers; channels in blocks, borders and a residual. */
static const char *const groups[] = {
    "fn @main(%x: Tensor[(250, 192), f32], %w: Tensor[(500, 192), f32],\n"
    "         %b: Tensor[(500,), f32]) {\n"
    "  nn.relu(nn.bias_add(nn.dense(%x, %w), %b))\n}\n",
    "fn @main(%x: Tensor[(250, 128), f32], %w: Tensor[(64, 128), f32]) {\n" /* 128 rows of four */
    "  nn.relu(nn.dense(%x, %w))\n}\n",
    "fn @main(%x: Tensor[(2, 120, 128), f32], %y: Tensor[(2, 128, 250), f32]) {\n"
    "  nn.batch_matmul(%x, %y, transpose_b=false)\n}\n",
    "fn @main(%x: Tensor[(2, 4, 11, 13, 16), f32], %z: Tensor[(2, 8, 11, 13, 16), f32]) {\n"
    "  %n = multiply(subtract(mod(multiply(arange(start=0, stop=73728, step=1), 37.0), 251.0), "
    "125.0), 0.002);\n"
    "  %w = reshape(%n, newshape=[128, 64, 3, 3]);\n"
    "  %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], data_layout=\"NCHW16c\");\n"
    "  nn.relu(add(%0, %z))\n}\n",
};

/* Products of bytes, four a step: weights that are constant and such that a run has, with and
 * without a border, in groups, of several images; operands of both signs; groups of threads and
 * several chunks; sums that warps make where the target has such instructions. */
#define BYTES_OF(n, shape)                                                                      \
    "  reshape(cast(subtract(mod(multiply(arange(start=0, stop=" n ", step=1), 37.0), 251.0), " \
    "125.0), dtype=i8), newshape=" shape ");\n"
static const char *const bytes[] = {
    "fn @main(%x: Tensor[(2, 12, 9, 7), f32], %y: Tensor[(37, 20), f32],\n"
    "         %v: Tensor[(21, 20), f32]) {\n"
    "  %w =" BYTES_OF("2160", "[20, 12, 3, 3]") "  %g =" BYTES_OF(
        "640",
        "[20, 4, 2, 4]") "  %0 = cast(add(multiply(%x, 120.0), 120.0), dtype=u8);\n"
                         "  %1 = nn.conv2d(%0, %w, padding=[1, 1, 1, 1], strides=[2, 1], "
                         "out_dtype=\"i32\");\n"
                         "  %2 = nn.conv2d(cast(multiply(%x, 120.0), dtype=i8), strided_slice(%g, "
                         "begin=[0, 0, 0, 0],\n"
                         "                 end=[18, 4, 2, 4]), groups=3, out_dtype=\"i32\");\n"
                         "  %3 = nn.dense(cast(multiply(%y, 120.0), dtype=i8), cast(multiply(%v, "
                         "250.0), dtype=u8),\n"
                         "                out_dtype=\"i32\");\n"
                         "  (cast(%1, dtype=f32), cast(%2, dtype=f32), cast(nn.relu(%3), "
                         "dtype=f32))\n}\n",
    "fn @main(%x: Tensor[(1, 40, 17, 17), f32], %y: Tensor[(3, 18, 64), f32],\n"
    "         %v: Tensor[(64, 64), f32]) {\n"
    "  %w =" BYTES_OF("25920", "[72, 40, 3, 3]") "  %b =" BYTES_OF(
        "72", "[72]") "  %0 = cast(multiply(%x, 120.0), dtype=i8);\n"
                      "  %1 = nn.bias_add(nn.conv2d(%0, %w, dilation=[2, 2], out_dtype=\"i32\"),\n"
                      "                   cast(%b, dtype=i32));\n"
                      "  %2 = cast(add(multiply(%y, 120.0), 120.0), dtype=u8);\n"
                      "  %3 = nn.batch_matmul(%2, %2, out_dtype=\"i32\");\n"
                      "  %4 = nn.dense(reshape(%2, newshape=[54, 64]), cast(multiply(%v, 120.0), "
                      "dtype=i8),\n"
                      "                out_dtype=\"i32\");\n"
                      "  (cast(%1, dtype=f32), cast(%3, dtype=f32), cast(%4, dtype=f32))\n}\n",
    /* channels in blocks, of which some are surplus lanes that hold something */
    "fn @main(%x: Tensor[(1, 2, 9, 11, 32), f32]) {\n"
    "  %n = subtract(mod(multiply(arange(start=0, stop=23040, step=1), 37.0), 251.0), 125.0);\n"
    "  %i = cast(%n, dtype=i8);\n"
    "  %w = reshape(strided_slice(%i, begin=[0], end=[23040]), newshape=[64, 40, 3, 3]);\n"
    "  %v = reshape(strided_slice(%i, begin=[0], end=[1536]), newshape=[24, 64, 1, 1]);\n"
    "  %u = reshape(strided_slice(%i, begin=[0], end=[6912]), newshape=[32, 24, 3, 3]);\n"
    "  %0 = cast(add(multiply(%x, 120.0), 120.0), dtype=u8);\n"
    "  %1 = nn.conv2d(%0, %w, padding=[1, 1, 1, 1], data_layout=\"NCHW32c\",\n"
    "                 algorithm=\"blocks\", out_dtype=\"i32\");\n"
    "  %2 = multiply(cast(nn.relu(%1), dtype=f32), 0.001);\n"
    "  %3 = cast(clip(%2, a_min=0.0, a_max=255.0), dtype=u8);\n"
    "  %4 = nn.conv2d(%3, %v, strides=[2, 1], data_layout=\"NCHW32c\", out_dtype=\"i32\");\n"
    "  %5 = multiply(add(cast(%4, dtype=f32), 1.0), 0.002);\n"
    "  %6 = cast(clip(%5, a_min=-128.0, a_max=127.0), dtype=i8);\n"
    "  %7 = nn.max_pool2d(%6, pool_size=[3, 3], padding=[1, 1, 1, 1], layout=\"NCHW32c\");\n"
    "  %8 = nn.conv2d(%7, %u, padding=[0, 2, 1, 2], dilation=[1, 2], data_layout=\"NCHW32c\",\n"
    "                 out_layout=\"NCHW\", algorithm=\"blocks\", out_dtype=\"i32\");\n"
    "  (cast(%4, dtype=f32), cast(%8, dtype=f32))\n}\n",
    /* a single row, by threads of a block and by one each; of several batches */
    "fn @main(%x: Tensor[(1, 2, 600), f32], %y: Tensor[(3, 1, 64), f32]) {\n"
    "  %w =" BYTES_OF("3300", "[11, 300]") "  %v =" BYTES_OF(
        "960", "[3, 5, 64]") "  %0 = cast(add(multiply(%x, 120.0), 120.0), dtype=u8);\n"
                             "  %1 = reshape(%0, newshape=[4, 300]);\n"
                             "  %2 = nn.dense(strided_slice(%1, begin=[1, 0], end=[2, 300]), %w, "
                             "out_dtype=\"i32\");\n"
                             "  %3 = nn.batch_matmul(cast(multiply(%y, 120.0), dtype=i8), %v, "
                             "out_dtype=\"i32\");\n"
                             "  (cast(nn.relu(%2), dtype=f32), cast(%3, dtype=f32))\n}\n",
};

/* NULL, or which number does.  In 16 bits errors are those of the largest number. */
static const char *differs(Arena *a, uint32_t result, const Const *got, const Const *want)
{
    double largest = 0;

    for (size_t k = 0; k < want->data.n; k += 4)
        largest = fmax(largest, fabs(dtype_get_f(DT_F32, want->data.at + k)));
    for (size_t k = 0; k < want->data.n; k += 4) {
        double x = dtype_get_f(DT_F32, got->data.at + k),
               y = dtype_get_f(DT_F32, want->data.at + k);
        if (way.warps ? fabs(x - y) > 2e-3 * largest : !close_enough(x, y, 1e-4))
            return arena_printf(a, "number %zu of result %u is %g, not %g", k / 4, result, x, y);
    }
    return NULL;
}

/* A network's module and inputs, as each context has them; NULL if it does not parse. */
static const Module *read_network(Ctx *c, const char *text, uint32_t *nin, const Const **in)
{
    Net           net = {.c = c, .seed = 7};
    const Module *m =
        relay_parse(c, "net", (Bytes){(const uint8_t *)text, strlen(text)}, (Bytes){0});
    const Expr *f = m ? module_func(m, "main") : NULL;

    for (*nin = 0; f && *nin < func_nparams(f) && *nin < MOST; ++*nin)
        in[*nin] = float_noise(&net, func_param(f, *nin)->type, -1, 1);
    return f ? m : NULL;
}

/* What the graph gives, evaluated in `c`; 0 results if it does not. */
static uint32_t evaluate(Ctx *c, const char *text, const Const *const **want)
{
    const Const  *in[MOST];
    uint32_t      nin, n = 0;
    const Module *m = read_network(c, text, &nin, in);

    return m && relay_eval(c, m, nin, in, &n, want) ? n : 0;
}

/* What is wrong with the network made in `way`, or NULL. */
static const char *check_way(Ctx *c, const char *text, uint32_t nwant, const Const *const *want)
{
    const Const  *in[MOST], **out = NEW_ARRAY(c->arena, const Const *, nwant + 1);
    uint32_t      nin;
    const Module *m = read_network(c, text, &nin, in);
    const char   *wrong = m ? run(c, m, nin, in, nwant, out) : "does not parse";

    for (uint32_t i = 0; !wrong && i < nwant; i++)
        wrong = differs(c->arena, i, out[i], want[i]);
    return wrong;
}

/* In the ways first, first + by, .. */
static void check_network(const char *text, uint32_t first, uint32_t by, uint32_t nways,
                          const Way *ways)
{
    Arena              *arena = arena_new(NULL);
    Diags              *graph_diags = diags_new(arena);
    Ctx                *graph = ctx_new(arena, graph_diags, op_table);
    const Const *const *want = NULL;
    uint32_t            nwant = evaluate(graph, text, &want);

    for (uint32_t i = first; i < nways; i += by) {
        Arena      *own = arena_new(NULL);
        Diags      *diags = diags_new(own);
        Ctx        *c = ctx_new(own, diags, op_table);
        StrBuf      said = strbuf(own);
        const char *wrong;

        check_count++;
        way = ways[i];
        wrong = nwant ? check_way(c, text, nwant, want) : "the graph is not evaluated";
        if (wrong) {
            diag_print(nwant ? diags : graph_diags, DIAG_TEXT, &said);
            printf("%s\n-O%u%s%s%s%s: %s\n%s\n", text, way.level, way.warps ? " in 16 bits, " : "",
                   way.warps ? way.warps : "", way.machine ? ", " : "",
                   way.machine ? way.machine : "", wrong, said.at ? said.at : "");
            check_failures++;
        }
        ctx_free(c);
        arena_free(own);
    }
    ctx_free(graph);
    arena_free(arena);
}

static void check_networks(uint32_t n, const char *const *text, uint32_t nways, const Way *ways)
{
    for (uint32_t i = 0; i < n; i++)
        check_network(text[i], all || nways < 2 ? 0 : i % 2, all ? 1 : 2, nways, ways);
}

#define CHECK_NETWORKS(text, ways) check_networks(COUNT(text), text, COUNT(ways), ways)

static void check_all_networks(void)
{
    static const Way any[] = {{0, NULL, NULL}, {0, "cuda", NULL},     {3, "cuda", NULL},
                              {3, NULL, NULL}, {3, NULL, MANY_CELLS}, {3, "cuda", MANY_CELLS}};
    /* at -O0 all GPUs have the same loops */
    static const Way of_bytes[] = {{0, NULL, NULL},
                                   {0, "cuda", NULL},
                                   {3, NULL, NULL},
                                   {3, "cuda", NULL},
                                   {3, "cuda -arch=sm_61", NULL},
                                   {3, NULL, MANY_CELLS},
                                   {3, "cuda", MANY_CELLS},
                                   {3, "cuda -arch=sm_61", MANY_CELLS},
                                   {3, "rocm -mcpu=gfx90a", MANY_CELLS},
                                   {3, "rocm -mcpu=gfx942", NULL},
                                   {3, "rocm -mcpu=gfx1100", MANY_CELLS},
                                   {3, "rocm -mcpu=gfx1201", NULL}};
    static const Way of_products[] = {
        {0, "cuda", NULL},
        {3, "cuda", NULL},
        {3, "cuda -arch=sm_87", NULL}, /* with few cores: larger tiles */
        {3, "cuda", MANY_CELLS},
        {3, "cuda -arch=sm_87", MANY_CELLS},
        {3, "rocm -mcpu=gfx908", MANY_CELLS}, /* warps of 64 threads */
        {3, "rocm -mcpu=gfx90a", NULL},
        {3, "rocm -mcpu=gfx1100", MANY_CELLS},
        {3, "rocm -mcpu=gfx1100", NULL},
        {3, "rocm -mcpu=gfx1201", MANY_CELLS}};
    static const Way of_heads[] = {{0, "cuda", NULL},
                                   {3, "cuda", NULL},
                                   {3, "cuda -arch=sm_90", NULL},
                                   {3, "cuda", MANY_CELLS},
                                   {3, "cuda -arch=sm_90", MANY_CELLS},
                                   {3, "rocm -mcpu=gfx90a", NULL},
                                   {3, "rocm -mcpu=gfx1100", MANY_CELLS},
                                   {3, "rocm -mcpu=gfx1201", NULL}};
    static const Way of_groups[] = {{3, "cuda -arch=sm_90a", FOUR_WARPS}};

    static const Way of_reductions[] = {
        {3, NULL, NULL}, {3, NULL, QUICK_LAUNCHES}, {3, "cuda", QUICK_LAUNCHES}};

    CHECK_NETWORKS(networks, any);
    CHECK_NETWORKS(bytes, of_bytes);
    CHECK_NETWORKS(products, of_products);
    CHECK_NETWORKS(heads, of_heads);
    CHECK_NETWORKS(groups, of_groups);
    CHECK_NETWORKS(reductions, of_reductions);
}

int main(int argc, char **argv)
{
    static const Way ways[] = {{0, NULL, NULL}, {3, NULL, NULL}, {3, NULL, MANY_CELLS}};

    all = argc > 1 && !strcmp(argv[1], "all");
    if (argc < 2 || all)
        check_all_networks();
    for (uint32_t w = 0; w < COUNT(ways); w++) {
        way = ways[w];
        for (uint32_t i = 0; i < op_table.n; i++)
            if (on_tensors(&op_table.at[i]) &&
                (argc < 2 || all || !strcmp(argv[1], op_table.at[i].text)))
                run_file(op_table.at[i].text, UINT32_MAX, check_operator);
    }
    return check_result();
}
