/* Algorithms of nn.conv2d: direct, by dot products of small integers, by Winograd.
 *
 * Winograd's tiles of m by m outputs of a 3x3 kernel take (m+2)^2 products instead of 9*m^2, but
 * transforms of input and output come on top, and the weights grow by (m+2)^2/9; of other kernels
 * of up to 7 each way likewise.  Weights are transformed when
 * the model is compiled, in double precision, so they must be constant.  In groups of channels the
 * direct algorithm has fewer products to save, and both are estimated by their rules.  8-bit
 * integers go so too, exactly, where no instruction adds four products.  -fno-winograd turns it
 * off.
 *
 * Bytes are multiplied four a step where the target adds four products.  Where that takes more
 * instructions than twice two of i16 (`words`), the data are widened as they are padded: once,
 * instead of in every step.  Weights of i16 save two of 28 instructions with AVX2 in every tile of
 * pixels but take twice the memory, so only those that many pixels use are stored so.
 *
 * Depthwise convolutions of bytes compute in f32 where integers take a product of two instructions
 * and a sum: one instruction a tap. */
#include "ir/tir/intrin.h"
#include "passes/graph/choose_algorithms.h"
#include "schedules/schedules.h"

#include <math.h>

/* Instructions of a sum of four products of bytes; 0: not quick, or no bytes.  Weights that were
 * widened to i16 count as bytes. */
static uint32_t dot4_ops(Ctx *c, DType data, DType weight)
{
    if (data.bits != 8)
        return 0;
    return intrin_ops(c, "dot4", data, weight.bits == 16 ? DT_I8 : weight);
}

static uint32_t dot2_ops(Ctx *c)
{
    return intrin_ops(c, "dot2", DT_I16, DT_I16);
}

/* What the times below are made of. */
typedef struct {
    Conv2d   s;
    DType    data, weight;
    Machine  machine;
    double   macs, weights; /* as computed: columns of zeros are multiplied too */
    int64_t  lanes;
    uint32_t ops;  /* dot4_ops, where results come in blocks of channels */
    bool     wide; /* weights of i16 */
} Work;

static bool work_of(Ctx *c, const Expr *e, int64_t terms, Work *w)
{
    const Type *y = e->type;

    *w = (Work){.machine = network_machine(c)};
    if (!conv2d_of(c, e, &w->s))
        return false;
    const Conv2d *s = &w->s;
    int64_t       columns = conv2d_by_columns(s) ? ceil_div(s->k[1], terms) * terms : s->k[1];
    double        cells = 1;

    w->data = call_arg(e, 0)->type->dtype;
    w->weight = call_arg(e, 1)->type->dtype;
    w->wide = w->weight.bits == 16;
    w->lanes = s->out_block ? s->out_block : w->machine.vector_bytes / 4;
    w->lanes = w->lanes < 1 ? 1 : w->lanes;
    w->weights = (double)(s->k[0] * columns) * (double)(s->group_in * s->out_c);
    for (uint32_t i = 0; i < 4; i++)
        if (i != 1)
            cells *= (double)idx_usual(y->dims[i]);
    w->macs = cells * w->weights;
    if (s->out_block && !s->within && (s->in_block || conv2d_by_columns(s)))
        w->ops = dot4_ops(c, w->data, w->weight);
    return true;
}

double product_cost(Ctx *c, DType data, DType weight, int64_t lanes, bool blocks)
{
    double   macs = (double)c->target->vector_bytes; /* any number of them: a share is asked for */
    Machine  m = machine_of(c->target);
    uint32_t ops = blocks && dtype_is_int(data) ? dot4_ops(c, data, weight) : 0;

    if (!dtype_is_int(data))
        return 1;
    double best = conv_bytes_cycles(&m, macs, 0, lanes), dot4, words;

    if (ops && (dot4 = conv_dot4_cycles(&m, macs, 0, lanes, ops)) < best)
        best = dot4;
    if (ops && dot2_ops(c) && (words = conv_words_cycles(&m, macs, 0, lanes)) < best)
        best = words;
    return best / conv_cycles(&m, macs, 0, lanes);
}

/* Groups of at most a vector of outputs have a rule of their own. */
static double group_cycles(Ctx *c, const Type *y, const Work *w)
{
    const Conv2d *s = &w->s;
    ConvWork      work = {.lanes = s->out_block,
                          .n = idx_usual(y->dims[0]),
                          .o = idx_usual(y->dims[1]),
                          .y = idx_usual(y->dims[2]),
                          .x = idx_usual(y->dims[3]),
                          .sum = s->k[0] * s->k[1] * s->group_in,
                          .group = ceil_div(s->group_out, s->out_block),
                          .kw = s->k[1],
                          .stride = s->stride[1],
                          .dilation = s->dilation[1],
                          .spread = s->within ? s->group_in : 0,
                          .plain = !s->in_block};

    return fetched_cycles(&w->machine, cpu_conv_cycles(c->target, &work), w->weights);
}

double time_conv2d(Ctx *c, const Expr *call, const Algorithm *a)
{
    Work w;

    (void)a;
    if (!work_of(c, call, 1, &w))
        return NEVER;
    if (w.s.groups > 1 && !w.s.depthwise && w.s.out_block && dtype_eq(w.data, DT_F32))
        return group_cycles(c, call->type, &w);
    return dtype_is_int(w.data) ? conv_bytes_cycles(&w.machine, w.macs, w.weights, w.lanes)
                                : conv_cycles(&w.machine, w.macs, w.weights, w.lanes);
}

/* Of depthwise ones only where it is one instruction: a vector's worth of neighbouring pixels in
 * blocks of channels has to be turned, too. */
double time_conv2d_dot4(Ctx *c, const Expr *call, const Algorithm *a)
{
    Work w;

    (void)a;
    if (!work_of(c, call, 4, &w) || !w.ops || w.wide)
        return NEVER;
    if (!w.s.depthwise)
        return conv_dot4_cycles(&w.machine, w.macs, w.weights, w.lanes, w.ops);
    return w.ops == 1 && conv2d_by_columns(&w.s) && w.s.in_block == w.s.out_block &&
                   w.s.group_out == 1
               ? depthwise_dot4_cycles(w.macs, w.lanes)
               : NEVER;
}

double time_conv2d_words(Ctx *c, const Expr *call, const Algorithm *a)
{
    Work w;

    (void)a;
    if (!work_of(c, call, 2, &w) || !w.ops || w.s.depthwise || !dot2_ops(c))
        return NEVER;
    if (!w.wide && (w.ops < 2 * dot2_ops(c) ||
                    w.s.group_out * w.s.k[0] * w.s.k[1] < limit_widened_uses(&w.machine)))
        return NEVER;
    return conv_words_cycles(&w.machine, w.macs, w.weights, w.lanes);
}

double time_conv2d_floats(Ctx *c, const Expr *call, const Algorithm *a)
{
    Work w;

    (void)a;
    if (!work_of(c, call, 1, &w) || !w.ops || !w.s.depthwise || !dot2_ops(c) ||
        !c->target->has_fma || !dtype_eq(call->type->dtype, DT_I32) ||
        !conv2d_sums_are_whole(&w.s, w.data, w.weight))
        return NEVER;
    return depthwise_floats_cycles(w.macs, w.lanes);
}

const Expr *make_conv2d_words(Ctx *c, const Expr *call, const Algorithm *a)
{
    const Expr       *e = set_algorithm(c, call, a), *w = call_arg(call, 1);
    const Idx *const *d = call->type->dims;
    Machine           m = machine_of(c->target);

    if (!e || w->kind != EXPR_CONST || !dtype_eq(w->type->dtype, DT_I8) ||
        d[2]->lo * d[3]->lo < limit_widened_weight_pixels(&m))
        return e;
    w = make_cast(c, w, DT_I16, call->loc);
    return w ? make2(c, "nn.conv2d", call_arg(e, 0), w, e->u.attrs, e->loc) : NULL;
}

/* ---- Winograd ----------------------------------------------------------------------------------- */

/* With short tiles at the border of one image where that takes less: says whether. */
static double short_or_whole(const Ctx *c, WinogradShape *s, int64_t tile)
{
    Machine m = network_machine(c);

    s->short_tiles = false;
    double whole = winograd_cycles(&m, s, tile);
    s->short_tiles = s->n == 1 && !s->ints && !s->open;
    double cycles = s->short_tiles ? winograd_cycles(&m, s, tile) : whole;
    s->short_tiles = cycles < whole;
    return s->short_tiles ? cycles : whole;
}

static double best_tiles(const Ctx *c, WinogradShape *s)
{
    static const int64_t tiles[] = {2, 4, 6};
    double               best = INFINITY;

    for (uint32_t i = 0; i < COUNT(tiles); i++)
        best = fmin(best, short_or_whole(c, s, tiles[i]));
    return best;
}

double winograd_groups_cycles(const Ctx *c, const int64_t out[4], int64_t in, int64_t groups,
                              const int64_t k[2], int64_t lanes)
{
    WinogradShape s = {.n = out[0],
                       .in = in,
                       .out = out[1],
                       .groups = groups,
                       .y = out[2],
                       .x = out[3],
                       .k = {k[0], k[1]},
                       .lanes = lanes};

    return best_tiles(c, &s);
}

double winograd_gain(const Ctx *c, const int64_t out[4], int64_t in, const int64_t k[2],
                     int64_t lanes)
{
    WinogradShape s = {.n = out[0],
                       .in = round_up(in, lanes),
                       .out = round_up(out[1], lanes),
                       .y = out[2],
                       .x = out[3],
                       .k = {k[0], k[1]},
                       .lanes = lanes};
    Machine       at = network_machine(c);
    double        weights = (double)(k[0] * k[1] * in * out[1]);
    double direct = conv_cycles(&at, (double)(out[0] * out[2] * out[3]) * weights, weights, lanes);
    double best = fmin(direct, best_tiles(c, &s));

    return direct > 0 ? best / direct : 1;
}

/* Of 8-bit integers the transforms leave i16, whose products are then the quickest anyway. */
static bool suits_ints(Ctx *c, const Expr *call)
{
    uint32_t ops = dot4_ops(c, call_arg(call, 0)->type->dtype, DT_I8), pair = dot2_ops(c);

    return pair && ops >= 2 * pair;
}

static double winograd_time(Ctx *c, const Expr *call, int64_t tile, bool *short_tiles)
{
    const Type *x = call_arg(call, 0)->type, *y = call->type;
    Conv2d      v;
    int64_t     d[5];

    *short_tiles = false;
    if (!has_vectors(c->target) || !c->target->winograd || call_arg(call, 1)->kind != EXPR_CONST ||
        x->n != 5 || y->n != 5 || !(dtype_eq(x->dtype, DT_F32) || suits_ints(c, call)) ||
        !conv2d_suits_winograd(call, tile) || !conv2d_of(c, call, &v))
        return NEVER;
    for (uint32_t i = 0; i < 5; i++) {
        bool open = !type_dim(y, i, &d[i]);

        if (open && (!(i == 2 || i == 3) || y->dims[i]->lo < 1 || d[0] != 1 || v.groups != 1 ||
                     dtype_is_int(x->dtype)))
            return NEVER;
        d[i] = open ? idx_usual(y->dims[i]) : d[i];
    }
    WinogradShape s = {.n = d[0],
                       .in = round_up(v.in_c, d[4]),
                       .out = round_up(v.out_c, d[4]),
                       .groups = v.groups,
                       .y = d[2],
                       .x = d[3],
                       .k = {v.k[0], v.k[1]},
                       .lanes = d[4],
                       .ints = dtype_is_int(x->dtype),
                       .open = !type_static(y)};
    double        cycles = short_or_whole(c, &s, tile);

    *short_tiles = s.short_tiles;
    return cycles;
}

double time_conv2d_winograd(Ctx *c, const Expr *call, const Algorithm *a)
{
    return winograd_time(c, call, a->tile, &(bool){false});
}

const Expr *make_conv2d_winograd(Ctx *c, const Expr *call, const Algorithm *a)
{
    bool short_tiles;

    winograd_time(c, call, a->tile, &short_tiles);
    return conv2d_winograd(c, call, a->tile, short_tiles);
}
