/* Passes over graphs keep the meaning: random small networks give the same values before and after
 * each stage of the -O3 pipeline, evaluated by the interpreter.  Channels that the vectors do not
 * divide, depthwise convolutions, residuals and concatenations come up all the time. */
#include "tests/unit/check.h"
#include "tests/unit/net.h"

#include "ops/ops.h"
#include "passes/passes.h"

#include <math.h>

static const Expr *random_const(Net *n, uint32_t ndim, const int64_t *dims, double lo, double hi)
{
    return expr_const(n->c, float_noise(n, type_tensor_i64(n->c, DT_F32, ndim, dims), lo, hi),
                      NO_LOC);
}

static const Expr *conv(Net *n, const Expr *x)
{
    static const int64_t widths[] = {4, 8, 11, 16, 24};
    Conv2dAttrs         *a = attrs_new(n->c, &attrs_Conv2dAttrs);
    int64_t              in = dim(x, 1), k = pick(n, 2) ? 3 : 1, out = widths[pick(n, 5)];
    bool                 depthwise = pick(n, 4) == 0;

    if (depthwise)
        out = in;
    a->groups = depthwise ? in : 1;
    a->padding = k == 3 ? ints_of(n->c, 4, 1, 1, 1, (int)pick(n, 2)) : a->padding;
    if (dim(x, 2) < 3 && k == 3)
        return x;
    return call(n, "nn.conv2d", x,
                random_const(n, 4, (int64_t[]){out, depthwise ? 1 : in, k, k}, -0.4, 0.4), a);
}

static const Expr *batch_norm(Net *n, const Expr *x)
{
    int64_t     ch = dim(x, 1);
    const Expr *args[] = {x, random_const(n, 1, &ch, 0.5, 2), random_const(n, 1, &ch, -1, 1),
                          random_const(n, 1, &ch, -1, 1), random_const(n, 1, &ch, 0.5, 2)};

    return expr_proj(n->c, expr_call_name(n->c, "nn.batch_norm", 5, args, NULL, NO_LOC), 0, NO_LOC);
}

static const Expr *pool(Net *n, const Expr *x)
{
    Pool2dAttrs *a = attrs_new(n->c, &attrs_Pool2dAttrs);

    if (dim(x, 2) < 3 || dim(x, 3) < 3)
        return x;
    a->pool_size = ints_of(n->c, 2, 3, 3);
    a->padding = ints_of(n->c, 4, 1, 1, 1, 1);
    a->count_include_pad = pick(n, 2);
    return call(n, pick(n, 2) ? "nn.max_pool2d" : "nn.avg_pool2d", x, NULL, a);
}

static const Expr *layer(Net *n)
{
    const Expr *x = n->pool.at[n->pool.n - 1 - pick(n, n->pool.n < 3 ? n->pool.n : 3)], *y;
    int64_t     ch = dim(x, 1);

    switch (pick(n, 12)) {
    case 0:
    case 1:
    case 2: return conv(n, x);
    case 3: return batch_norm(n, conv(n, x));
    case 4: return batch_norm(n, x);
    case 5: return call(n, "nn.relu", x, NULL, NULL);
    case 6: return call(n, pick(n, 2) ? "sigmoid" : "tanh", x, NULL, NULL);
    case 7: return pool(n, x);
    case 8: return call(n, "nn.bias_add", x, random_const(n, 1, &ch, -1, 1), NULL);
    case 9: return call(n, "multiply", x, random_const(n, 3, (int64_t[]){ch, 1, 1}, -1, 1), NULL);
    case 10:
        for (uint32_t i = 0; i < n->pool.n; i++)
            if ((y = n->pool.at[i]) != x && y->type == x->type)
                return call(n, "add", x, y, NULL);
        return call(n, "add", x, expr_scalar(n->c, DT_F32, 0.25), NULL);
    default: {
        ConcatenateAttrs *a = attrs_new(n->c, &attrs_ConcatenateAttrs);

        a->axis = 1;
        if (ch > 16)
            return call(n, "multiply", call(n, "exp", x, NULL, NULL), x, NULL);
        return call(
            n, "concatenate",
            expr_tuple(n->c, 2, (const Expr *[]){x, call(n, "nn.relu", x, NULL, NULL)}, NO_LOC),
            NULL, a);
    }
    }
}

static const Module *random_net(Ctx *c, uint32_t seed)
{
    Net           n = {.c = c, .seed = seed * 2654435761u};
    const int64_t dims[] = {1, pick(&n, 2) ? 3 : 9, 4 + pick(&n, 3), 5};
    const Expr   *x = expr_var(c, "x", type_tensor_i64(c, DT_F32, 4, dims), NO_LOC), *out[2];
    GlobalDef     def;

    vec_push(c->arena, &n.pool, x);
    for (uint32_t i = 0; i < 9; i++)
        vec_push(c->arena, &n.pool, layer(&n));
    out[0] = n.pool.at[n.pool.n - 1];
    out[1] = call(&n, "nn.global_avg_pool2d", n.pool.at[n.pool.n - 2], NULL, NULL);
    def = (GlobalDef){"main",
                      expr_func(c, 1, &x, expr_tuple(c, 2, out, NO_LOC), (FuncData){0}, NO_LOC)};
    return module_new(c, NULL, 1, &def);
}

static bool close_enough(const Const *a, const Const *b)
{
    if (a->type != b->type)
        return false;
    for (size_t i = 0; i < a->data.n; i += 4) {
        double x = dtype_get_f(DT_F32, a->data.at + i), y = dtype_get_f(DT_F32, b->data.at + i);

        if (!(fabs(x - y) <= 1e-4 + 1e-4 * fabs(x)))
            return false;
    }
    return true;
}

static void test_random_nets(void)
{
    static const char *const stages[] = {
        "infer_type,simplify_inference,fold_constant,fold_scale_axis",
        "simplify_expr,eliminate_common_subexpr", "alter_layout,plan_views,plan_halo",
        "dead_code_elimination,fuse_ops"};
    static const Target vectors[] = {
        {.vector_bytes = 32, .vector_regs = 16, .has_fma = true},
        {.vector_bytes = 16, .vector_regs = 16},
        {.vector_bytes = 64, .vector_regs = 32},
    };

    for (uint32_t seed = 1; seed <= 150; seed++) {
        Arena        *arena = arena_new(NULL);
        Ctx          *c = ctx_new(arena, diags_new(arena), op_table);
        const Module *m = random_net(c, seed);
        Net           n = {.c = c, .seed = seed};
        const Const  *in = float_noise(&n, func_param(module_func(m, "main"), 0)->type, -1, 1);
        const Const *const *want, *const *got;
        uint32_t nwant = 0, ngot = 0;

        c->target = &vectors[seed % 3];
        CHECK(relay_eval(c, m, 1, &in, &nwant, &want));
        for (size_t s = 0; m && s < COUNT(stages); s++) {
            PassOptions o = {.opt_level = 3, .passes = stages[s], .verify_each = true};
            StrBuf      text = strbuf(arena);

            m = run_graph_passes(c, m, &o);
            CHECK(m);
            if (!m || !relay_eval(c, m, 1, &in, &ngot, &got)) {
                diag_print(c->diags, DIAG_TEXT, &text);
                printf("seed %u, after %s: %s\n", seed, stages[s], text.at ? text.at : "");
                CHECK(!"evaluated");
                break;
            }
            CHECK_INT(ngot, nwant);
            for (uint32_t i = 0; i < ngot && i < nwant; i++)
                if (!close_enough(want[i], got[i])) {
                    CHECK(!"the same values");
                    relay_print(c, m, (RelayPrint){.types = true}, &text);
                    printf("seed %u, result %u after %s:\n%s\n", seed, i, stages[s], text.at);
                    m = NULL;
                    break;
                }
        }
        ctx_free(c);
        arena_free(arena);
    }
}

int main(void)
{
    RUN(test_random_nets);
    return check_result();
}
