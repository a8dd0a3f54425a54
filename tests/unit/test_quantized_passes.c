/* Quantized networks in integers give what they give in floats: random small networks of quantize
 * and dequantize around all kinds of operators, evaluated by the interpreter before the pass
 * quantized_to_integer and after each stage of the pipeline from there on.  Data and weights of
 * either sign, scales and zero points for all or for each channel, targets of either kind of dot
 * product.  Results are steps; few may be off, by one or two. */
#include "tests/unit/check.h"
#include "tests/unit/net.h"

#include "ops/ops.h"
#include "passes/passes.h"

#include <math.h>
#include <stdlib.h>

static double between(Net *n, double lo, double hi)
{
    return lo + (hi - lo) * (pick(n, 4001) + 0.317) / 4001;
}

/* Random numbers of any type. */
static const Expr *noise(Net *n, DType t, uint32_t ndim, const int64_t *dims, double lo, double hi)
{
    const Type *type = type_tensor_i64(n->c, t, ndim, dims);
    int64_t     elems = 0;
    uint8_t    *v;

    type_elems(type, &elems);
    v = arena_alloc(n->c->arena, (size_t)elems * dtype_bytes(t) + 1);
    for (int64_t i = 0; i < elems; i++) {
        void *at = v + (size_t)i * dtype_bytes(t);

        if (dtype_is_float(t))
            dtype_put_f(t, at, between(n, lo, hi));
        else
            dtype_put_i(t, at, (int64_t)lo + pick(n, (uint32_t)(hi - lo) + 1));
    }
    return expr_const(n->c, const_new(n->c, "k", type, (Bytes){v, (size_t)elems * dtype_bytes(t)}),
                      NO_LOC);
}

static const Expr *dequantize(Net *n, const Expr *q, const Expr *scale, const Expr *zero,
                              int64_t axis)
{
    DequantizeAttrs *a = attrs_new(n->c, &attrs_DequantizeAttrs);

    a->axis = axis;
    return expr_call_name(n->c, "qnn.dequantize", 3, (const Expr *[]){q, scale, zero}, a, NO_LOC);
}

/* x in steps, of a random type; `q` gets the integers. */
static const Expr *quantized(Net *n, const Expr *x, const Expr **q)
{
    bool           u = pick(n, 2), relu = call_is(x, "nn.relu") && pick(n, 2);
    double         zero = (u ? 128 : 0) + (relu ? -128 : (double)pick(n, 60) - 30);
    const Expr    *scale = expr_scalar(n->c, DT_F32, between(n, 0.011, 0.019));
    const Expr    *z = expr_scalar(n->c, u ? DT_U8 : DT_I8, zero);
    QuantizeAttrs *a = attrs_new(n->c, &attrs_QuantizeAttrs);

    a->out_dtype = u ? DT_U8 : DT_I8;
    *q = expr_call_name(n->c, "qnn.quantize", 3, (const Expr *[]){x, scale, z}, a, NO_LOC);
    return dequantize(n, *q, scale, z, -1);
}

/* A dequantized constant; sums of `products` products are about as large as the data. */
static const Expr *weight(Net *n, uint32_t ndim, const int64_t *dims, double products)
{
    bool    u = pick(n, 2), each = pick(n, 2), whole = !u || pick(n, 4);
    double  zero = !u ? 0 : whole ? 128 : 100, size = 1 / (73 * sqrt(products));
    DType   t = u ? DT_U8 : DT_I8;
    int64_t lo = u ? 0 : -128;

    return dequantize(n, noise(n, t, ndim, dims, (double)lo, (double)lo + 255),
                      each ? noise(n, DT_F32, 1, dims, 0.7 * size, size)
                           : expr_scalar(n->c, DT_F32, size),
                      each ? noise(n, t, 1, dims, zero, zero) : expr_scalar(n->c, t, zero), 0);
}

static const Expr *with_bias(Net *n, const Expr *x, int64_t channels, int64_t axis)
{
    BiasAddAttrs *a = attrs_new(n->c, &attrs_BiasAddAttrs);
    const Expr   *b = noise(n, DT_F32, 1, &channels, -0.5, 0.5);

    a->axis = axis;
    if (pick(n, 2))
        b = dequantize(n, noise(n, DT_I32, 1, &channels, -900, 900),
                       expr_scalar(n->c, DT_F32, 0.00051), expr_scalar(n->c, DT_I32, 0), -1);
    return pick(n, 4) ? call(n, "nn.bias_add", x, b, a) : x;
}

static const Expr *conv(Net *n, const Expr *x)
{
    static const int64_t widths[] = {4, 8, 12, 16};
    Conv2dAttrs         *a = attrs_new(n->c, &attrs_Conv2dAttrs);
    int64_t in = dim(x, 1), k = pick(n, 2) ? 3 : 1, out = widths[pick(n, 4)], groups = 1;

    if (pick(n, 3) == 0)
        groups = out = in; /* depthwise */
    else if (in % 4 == 0 && pick(n, 3) == 0)
        groups = 4;
    a->groups = groups;
    if (k == 3) {
        const int64_t pad[] = {1, pick(n, 3), 1, pick(n, 2)};

        a->padding = ints_dup(n->c, pad, 4);
    }
    const int64_t dims[] = {out, in / groups, k, k};

    return with_bias(
        n, call(n, "nn.conv2d", x, weight(n, 4, dims, (double)(in / groups * k * k)), a), out, 1);
}

static const Expr *pool(Net *n, const Expr *x, const char *op)
{
    Pool2dAttrs  *a = attrs_new(n->c, &attrs_Pool2dAttrs);
    const int64_t two[] = {2, 2}, one[] = {1, 1}, pad[] = {1, 0, 0, 1};

    a->pool_size = ints_dup(n->c, two, 2);
    a->strides = ints_dup(n->c, one, 2);
    a->padding = ints_dup(n->c, pad, 4);
    a->count_include_pad = pick(n, 4) == 0;
    return call(n, op, x, NULL, a);
}

static const Expr *moved(Net *n, const Expr *x)
{
    const int64_t widths[] = {0, 0, 0, 0, 1, 0, 0, 2}, axes[] = {0, 1, 3, 2};

    if (pick(n, 2)) {
        TransposeAttrs *a = attrs_new(n->c, &attrs_TransposeAttrs);

        a->axes = ints_dup(n->c, axes, 4);
        return call(n, "transpose", x, NULL, a);
    }
    PadAttrs *a = attrs_new(n->c, &attrs_PadAttrs);

    a->pad_width = ints_dup(n->c, widths, 8);
    return call(n, "nn.pad", x, NULL, a);
}

static const Expr *layer(Net *n)
{
    const Expr *x = n->pool.at[n->pool.n - 1 - pick(n, n->pool.n > 2 ? 2 : 1)];

    switch (pick(n, 12)) {
    case 0: return pool(n, x, "nn.max_pool2d");
    case 1: return pool(n, x, "nn.avg_pool2d");
    case 2: return moved(n, x);
    case 3: return call(n, "multiply", x, call(n, "sigmoid", x, NULL, NULL), NULL);
    case 4:
        for (uint32_t i = 0; i < n->pool.n; i++)
            if (n->pool.at[i]->type == x->type && n->pool.at[i] != x)
                return call(n, "nn.relu", call(n, "add", x, n->pool.at[i], NULL), NULL, NULL);
        return call(n, "add", x, expr_scalar(n->c, DT_F32, 0.3), NULL);
    case 5: {
        ConcatenateAttrs *a = attrs_new(n->c, &attrs_ConcatenateAttrs);
        const Expr       *q, *y = quantized(n, call(n, "nn.relu", x, NULL, NULL), &q);

        a->axis = 1;
        return call(n, "concatenate", expr_tuple(n->c, 2, (const Expr *[]){x, y}, NO_LOC), NULL, a);
    }
    case 6: {
        ClipAttrs *a = attrs_new(n->c, &attrs_ClipAttrs);

        a->a_min = -0.51;
        a->a_max = 1.23;
        return call(n, "clip", conv(n, x), NULL, a);
    }
    case 7: return call(n, "nn.relu", conv(n, x), NULL, NULL);
    default: return conv(n, x);
    }
}

/* The mean of each channel, through a dense layer. */
static const Expr *classes(Net *n, const Expr *x, const Expr **q)
{
    const int64_t dims[] = {7, dim(x, 1)}, flat[] = {1, dim(x, 1)};
    ReshapeAttrs *a = attrs_new(n->c, &attrs_ReshapeAttrs);

    x = quantized(n, call(n, "nn.global_avg_pool2d", x, NULL, NULL), q);
    a->newshape = dims_of_i64(n->c, flat, 2);
    x = call(n, "reshape", x, NULL, a);
    return with_bias(n, call(n, "nn.dense", x, weight(n, 2, dims, 4), NULL), 7, -1);
}

static const Module *random_net(Ctx *c, uint32_t seed)
{
    Net           n = {.c = c, .seed = seed * 2654435761u};
    const int64_t dims[] = {1, pick(&n, 2) ? 3 : 8, 4 + pick(&n, 3), 5};
    const Expr   *x = expr_var(c, "x", type_tensor_i64(c, DT_F32, 4, dims), NO_LOC), *out[3];
    GlobalDef     def;

    vec_push(c->arena, &n.pool, quantized(&n, x, &out[0]));
    for (uint32_t i = 0; i < 4; i++)
        vec_push(c->arena, &n.pool, quantized(&n, layer(&n), &out[0]));
    quantized(&n, classes(&n, n.pool.at[n.pool.n - 2], &out[1]), &out[2]);
    def = (GlobalDef){"main",
                      expr_func(c, 1, &x, expr_tuple(c, 3, out, NO_LOC), (FuncData){0}, NO_LOC)};
    return module_new(c, NULL, 1, &def);
}

/* Steps that differ; INT64_MAX if by more than two: a tie makes one, a layer behind it another. */
static int64_t steps_off(const Const *a, const Const *b)
{
    int64_t off = 0;

    for (size_t i = 0; i < a->data.n && a->type == b->type; i++) {
        int64_t d = llabs(dtype_get_i(a->type->dtype, a->data.at + i) -
                          dtype_get_i(b->type->dtype, b->data.at + i));

        if (d > 2)
            return INT64_MAX;
        off += d;
    }
    return a->type == b->type ? off : INT64_MAX;
}

/* Products in integers, and all products. */
static void count_products(Ctx *c, const Module *m, uint32_t *integer, uint32_t *all)
{
    ExprList list = expr_post_order(c, module_func(m, "main"));

    for (uint32_t i = 0; i < list.n; i++)
        if (call_is(list.at[i], "nn.conv2d") || call_is(list.at[i], "nn.dense")) {
            *integer += dtype_eq(list.at[i]->type->dtype, DT_I32);
            ++*all;
        }
}

/* What the stages of one network leave of its results. */
static bool check_net(Ctx *c, uint32_t seed, uint32_t *integer, uint32_t *all)
{
    static const char *const stages[] = {"infer_type,simplify_inference,quantized_to_integer",
                                         "fold_constant,simplify_expr,eliminate_common_subexpr",
                                         "alter_layout,plan_halo",
                                         "dead_code_elimination,fuse_ops,keep_floats"};
    Net                      n = {.c = c, .seed = seed};
    const Module            *m = random_net(c, seed);
    const Type              *t = func_param(module_func(m, "main"), 0)->type;
    int64_t                  dims[4];
    const Const             *in;
    const Const *const *want, *const *got;
    uint32_t nwant = 0, ngot = 0;

    for (uint32_t i = 0; i < 4; i++)
        type_dim(t, i, &dims[i]);
    in = noise(&n, DT_F32, 4, dims, -1.5, 1.5)->u.constant;
    if (!relay_eval(c, m, 1, &in, &nwant, &want))
        return false;
    for (size_t s = 0; s < COUNT(stages); s++) {
        PassOptions o = {.opt_level = 3, .passes = stages[s], .verify_each = true};

        if (!(m = run_graph_passes(c, m, &o)) || !relay_eval(c, m, 1, &in, &ngot, &got) ||
            ngot != nwant)
            return false;
        if (s == 0)
            count_products(c, m, integer, all);
        for (uint32_t i = 0; i < ngot; i++) {
            int64_t elems = (int64_t)want[i]->data.n, off = steps_off(want[i], got[i]);

            if (off > 4 + elems / 20) {
                printf("seed %u, result %u after %s: %lld of %lld steps off\n", seed, i, stages[s],
                       (long long)off, (long long)elems);
                return false;
            }
        }
    }
    return true;
}

static void test_random_nets(void)
{
    static const Target kinds[] = {
        {.vector_bytes = 32, .vector_regs = 16, .has_fma = true},
        {.vector_bytes = 16, .vector_regs = 32, .dots = DOTS_SIGNED},
    };
    uint32_t integer = 0, all = 0;

    for (uint32_t seed = 1; seed <= 120; seed++) {
        Arena *arena = arena_new(NULL);
        Ctx   *c = ctx_new(arena, diags_new(arena), op_table);

        c->target = &kinds[seed % 2];
        if (!check_net(c, seed, &integer, &all)) {
            StrBuf text = strbuf(arena);

            diag_print(c->diags, DIAG_TEXT, &text);
            printf("seed %u: %s\n", seed, text.at ? text.at : "");
            CHECK(!"the same steps");
        }
        ctx_free(c);
        arena_free(arena);
    }
    CHECK(all > 0 && integer == all);
}

int main(void)
{
    RUN(test_random_nets);
    return check_result();
}
