/* fold_strides: a picture's convolution of stride s as one of stride 1, of s*s times the channels.
 *
 *   nn.conv2d(%x, const @w, strides=[2, 2], padding=[3, 3, 3, 3])     // 1 3 224 224, 64 3 7 7
 *     -> %0 = transpose(reshape(%x), ..)      // 1 2 2 3 112 112: row and column of a square before
 *        nn.conv2d(reshape(%0), const @w', padding=[2, 2, 1, 1])        // 1 12 112 112, 64 12 4 4
 *
 * Instructions of warps take 16 channels of f16 together (32 of bytes), and a picture has three: of
 * 49 x 16 products 147 are of use.  The squares of s x s pixels that the stride goes by fill them
 * up: 16 x 16.  Where that takes less, a fourth channel of zeros makes a block of each square,
 * which one kernel makes of the picture.  The convolution's kernel begins at a whole square, by
 * rows and columns of zeros, and ends with one; so does the picture, by cells of padding.  Weights
 * must be constant.
 *
 * It is done where the target has such instructions and the estimate of both convolutions, with the
 * kernels that copy what they read, says that it pays.  Cost: one walk and a copy of the weights.
 */
#include "passes/graph/graph.h"
#include "schedules/schedules.h"

#include <math.h>
#include <string.h>

enum { BATCH, CHANNELS, HEIGHT, WIDTH, IMAGE }; /* axes, rank */

/* Of rows and columns: the stride; rows of zeros before the kernel; what the new convolution has.
 */
typedef struct {
    int64_t stride, front, kernel, cells, before, behind;
} Side;

typedef struct {
    Ctx    *c;
    int64_t in[IMAGE], out[IMAGE], taps; /* of what is there */
    int64_t steps;                       /* channels that an instruction takes */
    int64_t filled;                      /* with these a square is a block of them; 0: it is none */
    Side    side[2];
} Folding;

static bool fold_side(const Conv2dAttrs *a, const Folding *f, int64_t kernel, int i, Side *s)
{
    int64_t pad = a->padding.at[i];

    s->stride = a->strides.at[i];
    s->front = (s->stride - pad % s->stride) % s->stride;
    s->kernel = ceil_div(kernel + s->front, s->stride);
    s->cells = ceil_div(f->in[HEIGHT + i], s->stride);
    s->before = (pad + s->front) / s->stride;
    s->behind = f->out[HEIGHT + i] - 1 + s->kernel - s->cells - s->before;
    return a->dilation.at[i] == 1 && s->behind >= 0;
}

/* A kernel that reads the picture and stores so many channels of so many cells. */
static double copy_cycles(const Folding *f, DType t, int64_t channels, int64_t cells)
{
    Machine m = machine_of(f->c->target);
    int64_t read = f->in[CHANNELS] * f->in[HEIGHT] * f->in[WIDTH];
    double  bytes = (double)(f->in[BATCH] * dtype_bytes(t) * (read + channels * cells));

    return device_copy_cycles(&m, bytes);
}

static double blocks_cycles(const Folding *f, GpuConv w)
{
    w.channels = round_up(w.channels, f->steps);
    w.out = round_up(w.out, f->steps);
    w.run = f->steps;
    w.along = true;
    return gpu_conv_cycles(f->c, &w);
}

/* What makes squares of it joins a cast of the picture, which is a kernel anyway; blocks, too. */
static bool pays(Folding *f, const Expr *e)
{
    const Side *y = &f->side[0], *x = &f->side[1];
    int64_t     square = y->stride * x->stride, cells = y->cells * x->cells;
    GpuConv     was = {.data = call_arg(e, 0)->type->dtype,
                       .weight = call_arg(e, 1)->type->dtype,
                       .sum = e->type->dtype,
                       .n = f->out[BATCH],
                       .out = f->out[CHANNELS],
                       .pixels = f->out[HEIGHT] * f->out[WIDTH],
                       .channels = f->in[CHANNELS],
                       .taps = f->taps},
            now = was;

    now.channels *= square;
    now.taps = y->kernel * x->kernel;
    double plain = gpu_conv_cycles(f->c, &was), squares = gpu_conv_cycles(f->c, &now), blocks;
    double moved = copy_cycles(f, was.data, f->steps, f->in[HEIGHT] * f->in[WIDTH]);
    if (f->steps % square == 0 && now.channels <= f->steps &&
        (blocks = blocks_cycles(f, now)) < squares) {
        f->filled = f->steps / square;
        squares = blocks;
    }
    if (!call_is(call_arg(e, 0), "cast"))
        squares += copy_cycles(f, was.data, f->filled ? f->steps : now.channels, cells);
    if (square * cells > f->in[HEIGHT] * f->in[WIDTH]) /* the cells behind are a kernel's */
        squares += copy_cycles(f, was.data, f->in[CHANNELS], square * cells);
    return squares < fmin(plain, blocks_cycles(f, was) + moved);
}

static bool can_fold(Ctx *c, const Expr *e, Folding *f)
{
    const Conv2dAttrs *a = ATTRS_OF(Conv2dAttrs, e);
    int64_t            kernel[2];

    *f = (Folding){.c = c};
    if (!call_is(e, "nn.conv2d") || strcmp(a->data_layout, "NCHW") || a->groups != 1 ||
        a->strides.at[0] * a->strides.at[1] < 2 || !is_constant(call_arg(e, 1)))
        return false;
    f->steps =
        gpu_steps(c, call_arg(e, 0)->type->dtype, call_arg(e, 1)->type->dtype, e->type->dtype);
    for (uint32_t i = 0; i < IMAGE; i++)
        if (!type_dim(call_arg(e, 0)->type, i, &f->in[i]) || !type_dim(e->type, i, &f->out[i]))
            return false;
    if (f->in[CHANNELS] >= f->steps || !type_dim(call_arg(e, 1)->type, HEIGHT, &kernel[0]) ||
        !type_dim(call_arg(e, 1)->type, WIDTH, &kernel[1]))
        return false;
    f->taps = kernel[0] * kernel[1];
    return fold_side(a, f, kernel[0], 0, &f->side[0]) &&
           fold_side(a, f, kernel[1], 1, &f->side[1]) && pays(f, e);
}

/* Both last axes whole squares, behind `before` cells: image, channels, rows, row of the square,
 * columns, column of the square. */
static const Expr *parts(const Folding *f, const Expr *x, const int64_t before[2],
                         const int64_t cells[2], double value)
{
    int64_t dims[IMAGE], sy = f->side[0].stride, sx = f->side[1].stride;

    for (uint32_t i = 0; i < IMAGE; i++)
        type_dim(x->type, i, &dims[i]);
    for (uint32_t i = 0; i < 2 && x; i++)
        x = make_pad(f->c, x, HEIGHT + i, before[i],
                     cells[i] * f->side[i].stride - before[i] - dims[HEIGHT + i], value, x->loc);
    return x ? make_reshape(f->c, x, 6,
                            (int64_t[]){dims[BATCH], dims[CHANNELS], cells[0], sy, cells[1], sx},
                            x->loc)
             : NULL;
}

static const Expr *moved(Ctx *c, const Expr *x, const int64_t axes[6], uint32_t n,
                         const int64_t *dims)
{
    TransposeAttrs *a = ATTRS_NEW(c, TransposeAttrs);

    a->axes = ints_dup(c, axes, 6);
    x = x ? make1(c, "transpose", x, a, x->loc) : NULL;
    return x ? make_reshape(c, x, n, dims, x->loc) : NULL;
}

/* Squares as channels. */
static const Expr *squares_of_weights(const Folding *f, const Expr *w)
{
    const Side *y = &f->side[0], *x = &f->side[1];
    int64_t     in = f->filled ? f->filled : f->in[CHANNELS];
    int64_t     dims[] = {f->out[CHANNELS], y->stride * x->stride * in, y->kernel, x->kernel};

    w = parts(f, w, (int64_t[]){y->front, x->front}, (int64_t[]){y->kernel, x->kernel}, 0);
    w = w ? make_pad(f->c, w, CHANNELS, 0, in - f->in[CHANNELS], 0, w->loc) : NULL;
    return moved(f->c, w, (int64_t[]){0, 3, 5, 1, 2, 4}, IMAGE, dims);
}

/* A cast comes behind the view and what fills up, so that one kernel has it and the transposition.
 * Blocks are given as plain channels, of which alter_layout makes the same blocks. */
static const Expr *squares_of_picture(const Folding *f, const Expr *e, double value)
{
    const Side *y = &f->side[0], *x = &f->side[1];
    int64_t     in = f->filled ? f->filled : f->in[CHANNELS];
    int64_t     plain[] = {f->in[BATCH], y->stride * x->stride * in, y->cells, x->cells};
    int64_t     block[] = {f->in[BATCH], 1, y->cells, x->cells, f->steps};
    const Expr *cast = call_is(e, "cast") && value == 0 ? e : NULL;

    e = parts(f, cast ? call_arg(e, 0) : e, (int64_t[]){0, 0}, (int64_t[]){y->cells, x->cells},
              value);
    e = e ? make_pad(f->c, e, CHANNELS, 0, in - f->in[CHANNELS], 0, e->loc) : NULL;
    e = e && cast ? make1(f->c, "cast", e, ATTRS_OF(CastAttrs, cast), cast->loc) : e;
    if (!f->filled)
        return moved(f->c, e, (int64_t[]){0, 3, 5, 1, 2, 4}, IMAGE, plain);
    LayoutTransformAttrs *back = ATTRS_NEW(f->c, LayoutTransformAttrs);
    back->src_layout = intern_printf(f->c->strings, "NCHW%lldc", (long long)f->steps);
    back->dst_layout = intern(f->c->strings, "NCHW");
    e = moved(f->c, e, (int64_t[]){0, 2, 4, 3, 5, 1}, 5, block);
    return e ? make1(f->c, "layout_transform", e, back, e->loc) : NULL;
}

static const Expr *rewrite(Ctx *c, void *user, const Expr *was, const Expr *e)
{
    Folding f;

    (void)was;
    (void)user;
    if (e->kind != EXPR_CALL || !can_fold(c, e, &f))
        return e;
    const Side  *y = &f.side[0], *x = &f.side[1];
    Conv2dAttrs *a = ATTRS_COPY(c, Conv2dAttrs, e);
    const Expr  *data = squares_of_picture(&f, call_arg(e, 0), a->pad_value);
    const Expr  *weights = squares_of_weights(&f, call_arg(e, 1));

    a->kernel_size = ints_dup(c, (int64_t[]){y->kernel, x->kernel}, 2);
    a->strides = ints_of(c, 2, 1, 1);
    a->padding = ints_dup(c, (int64_t[]){y->before, x->before, y->behind, x->behind}, 4);
    return data && weights ? make2(c, "nn.conv2d", data, weights, a, e->loc) : NULL;
}

const Module *fold_strides(Ctx *c, const Module *m)
{
    const Module *now = c->target ? module_rewrite(c, m, rewrite, NULL) : m;

    return now && now != m ? fold_constant(c, now) : now;
}
