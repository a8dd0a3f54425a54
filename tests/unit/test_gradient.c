/* Adjoints against finite differences: every row of ops/gradient/adjoints.def has a case.
 *
 * A case is a function of random operands in f64.  Its result is summed with random weights; the
 * gradient of that, times a random direction, has to be the central difference of its values along
 * the direction.  All of it runs in the interpreter.  Letters A to F stand for dimensions, which
 * are drawn anew for each round; 1 is among them, so broadcasting is, too. */
#include "tests/unit/check.h"

#include "ir/relay/relay.h"
#include "ops/ops.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

typedef struct {
    const char *op, *text;
    double      lo, hi; /* of the operands */
} GradientCase;

#define ONE(op, lo, hi) {op, "fn @main(%x: Tensor[(A, B), f64]) { " op "(%x) }", lo, hi}
#define TWO(op, lo, hi)                                                                          \
    {op, "fn @main(%x: Tensor[(A, B), f64], %y: Tensor[(C, 1, B), f64]) { " op "(%x, %y) }", lo, \
     hi},                                                                                        \
    {                                                                                            \
        op, "fn @main(%x: Tensor[(A, B), f64], %y: f64) { " op "(%y, %x) }", lo, hi              \
    }
#define X2(op, args) {op, "fn @main(%x: Tensor[(A, B), f64]) { " op "(%x" args ") }", -2, 2}
#define X4(op, args) {op, "fn @main(%x: Tensor[(A, B, 5, 6), f64]) { " op "(%x" args ") }", -2, 2}

static const GradientCase cases[] = {
    TWO("add", -2, 2),
    TWO("subtract", -2, 2),
    TWO("multiply", -2, 2),
    TWO("divide", 0.5, 2),
    TWO("power", 0.5, 2),
    TWO("mod", 0.5, 3),
    TWO("floor_mod", 0.5, 3),
    TWO("maximum", -2, 2),
    TWO("minimum", -2, 2),
    {"where",
     "fn @main(%x: Tensor[(A, B), f64], %y: Tensor[(1, B), f64], %c: Tensor[(A, 1), bool]) {"
     " where(%c, %x, %y) }",
     -2, 2},
    ONE("copy", -2, 2),
    ONE("negative", -2, 2),
    ONE("abs", -2, 2),
    ONE("sign", -2, 2),
    ONE("sqrt", 0.5, 2),
    ONE("rsqrt", 0.5, 2),
    ONE("exp", -2, 2),
    ONE("log", 0.5, 2),
    ONE("tanh", -2, 2),
    ONE("erf", -2, 2),
    ONE("sigmoid", -2, 2),
    ONE("sin", -2, 2),
    ONE("cos", -2, 2),
    ONE("tan", -1, 1),
    ONE("asin", -0.9, 0.9),
    ONE("acos", -0.9, 0.9),
    ONE("atan", -2, 2),
    ONE("sinh", -2, 2),
    ONE("cosh", -2, 2),
    ONE("asinh", -2, 2),
    ONE("acosh", 1.2, 3),
    ONE("atanh", -0.9, 0.9),
    ONE("floor", -2, 2),
    ONE("ceil", -2, 2),
    ONE("round", -2, 2),
    ONE("trunc", -2, 2),
    {"cast",
     "fn @main(%x: Tensor[(A, B), f64]) {"
     " cast(multiply(cast(cast(%x, dtype=f32), dtype=f64), 3_f64), dtype=f64) }",
     -2, 2},
    X2("clip", ", a_min=-1, a_max=0.5"),
    X2("clip", ", a_min=0, a_max=inf"),
    ONE("nn.relu", -2, 2),
    X2("nn.leaky_relu", ", alpha=0.1"),
    {"nn.prelu",
     "fn @main(%x: Tensor[(A, B, C), f64], %s: Tensor[(B), f64]) { nn.prelu(%x, %s, axis=1) }", -2,
     2},
    {"nn.bias_add",
     "fn @main(%x: Tensor[(A, B, C), f64], %s: Tensor[(B), f64]) { nn.bias_add(%x, %s, axis=-2) }",
     -2, 2},
    {"nn.layer_norm",
     "fn @main(%x: Tensor[(A, 3, B), f64], %g: Tensor[(3, B), f64], %b: Tensor[(3, B), f64]) {"
     " nn.layer_norm(%x, %g, %b, axis=1, epsilon=0.01) }",
     -2, 2},
    X2("nn.softmax", ", axis=0"),
    X2("nn.softmax", ""),
    X2("nn.log_softmax", ", axis=1"),
    X2("sum", ""),
    X2("sum", ", axis=[1]"),
    X2("sum", ", axis=[0], keepdims=true, exclude=true"),
    X2("mean", ", axis=[-1], keepdims=true"),
    X2("max", ", axis=[0]"),
    X2("min", ""),
    X2("prod", ", axis=[1]"),
    {"prod", "fn @main(%x: Tensor[(A, 2, B, 3), f64]) { prod(%x, axis=[3, 1], keepdims=true) }", -2,
     2},
    {"prod", "fn @main(%x: Tensor[(A, B), f64]) { prod(nn.relu(%x), axis=[0]) }", -2, 2},
    {"variance",
     "fn @main(%x: Tensor[(A, 3, B), f64], %m: Tensor[(A, 1, B), f64]) {"
     " variance(%x, %m, axis=[1], unbiased=true) }",
     -2, 2},
    X2("cumsum", ", axis=1, exclusive=true"),
    X2("cumsum", ", axis=0"),
    {"topk", "fn @main(%x: Tensor[(A, 5), f64]) { %0 = topk(%x, k=3); multiply(%0.0, %0.0) }", -2,
     2},
    {"topk", "fn @main(%x: Tensor[(5, A), f64]) { topk(%x, k=2, axis=0, ret_type=\"values\") }", -2,
     2},
    X2("sort", ", axis=0"),
    {"nn.dense", "fn @main(%x: Tensor[(A, B), f64], %w: Tensor[(C, B), f64]) { nn.dense(%x, %w) }",
     -2, 2},
    {"nn.dense",
     "fn @main(%x: Tensor[(A, B, C), f64], %w: Tensor[(D, C), f64]) { nn.dense(%x, %w) }", -2, 2},
    {"nn.matmul",
     "fn @main(%x: Tensor[(A, B), f64], %w: Tensor[(B, C), f64]) { nn.matmul(%x, %w) }", -2, 2},
    {"nn.matmul",
     "fn @main(%x: Tensor[(B, A), f64], %w: Tensor[(C, B), f64]) {"
     " nn.matmul(%x, %w, transpose_a=true, transpose_b=true) }",
     -2, 2},
    {"nn.matmul",
     "fn @main(%x: Tensor[(B, A), f64], %w: Tensor[(B, C), f64]) {"
     " nn.matmul(%x, %w, transpose_a=true) }",
     -2, 2},
    {"nn.batch_matmul",
     "fn @main(%x: Tensor[(D, A, B), f64], %w: Tensor[(1, C, B), f64]) { nn.batch_matmul(%x, %w) }",
     -2, 2},
    {"nn.batch_matmul",
     "fn @main(%x: Tensor[(D, 1, B, A), f64], %w: Tensor[(E, B, C), f64]) {"
     " nn.batch_matmul(%x, %w, transpose_a=true, transpose_b=false) }",
     -2, 2},
    {"nn.conv2d",
     "fn @main(%x: Tensor[(A, B, 5, 6), f64], %w: Tensor[(C, B, 3, 2), f64]) {"
     " nn.conv2d(%x, %w, strides=[2, 1], padding=[1, 0, 0, 1]) }",
     -2, 2},
    {"nn.conv2d",
     "fn @main(%x: Tensor[(A, 4, 7, 6), f64], %w: Tensor[(6, 2, 3, 3), f64]) {"
     " nn.conv2d(%x, %w, strides=[1, 2], padding=[1, 1, 1, 1], dilation=[2, 1], groups=2) }",
     -2, 2},
    {"nn.conv2d",
     "fn @main(%x: Tensor[(A, 4, 5, 4), f64], %w: Tensor[(6, 2, 3, 2), f64]) {"
     " nn.conv2d(%x, %w, padding=[1, 0, 2, 1], dilation=[1, 2], groups=2) }",
     -2, 2},
    {"nn.conv2d", /* padding that whole windows lie in */
     "fn @main(%x: Tensor[(A, B, 3, 2), f64], %w: Tensor[(C, B, 2, 1), f64]) {"
     " nn.conv2d(%x, %w, padding=[2, 1, 2, 1]) }",
     -2, 2},
    {"nn.conv2d_transpose",
     "fn @main(%x: Tensor[(A, 4, 4, 3), f64], %w: Tensor[(4, B, 3, 2), f64]) {"
     " nn.conv2d_transpose(%x, %w, strides=[2, 1], padding=[1, 0, 0, 1], output_padding=[1, 0],"
     " groups=2) }",
     -2, 2},
    X4("nn.max_pool2d", ", pool_size=[2, 3], strides=[2, 1], padding=[1, 1, 0, 1]"),
    X4("nn.max_pool2d", ", pool_size=[2, 2], strides=[2, 4], dilation=[1, 2], ceil_mode=true"),
    X4("nn.avg_pool2d", ", pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1]"),
    X4("nn.avg_pool2d", ", pool_size=[2, 2], strides=[2, 4], padding=[0, 1, 0, 1], ceil_mode=true,"
                        " count_include_pad=true"),
    X4("nn.global_avg_pool2d", ""),
    X4("nn.global_max_pool2d", ""),
    X4("image.resize2d", ", size=[7, 4]"),
    X4("image.resize2d", ", size=[10, 9], method=\"cubic\","
                         " coordinate_transformation_mode=\"align_corners\""),
    X4("image.resize2d",
       ", size=[10, 9], scales=[2, 1.5], method=\"nearest_neighbor\","
       " coordinate_transformation_mode=\"asymmetric\", rounding_method=\"floor\""),
    X2("nn.pad", ", pad_width=[1, 0, 2, -1], pad_value=3"),
    {"nn.pad",
     "fn @main(%x: Tensor[(A, 3, 4), f64]) {"
     " nn.pad(%x, pad_width=[0, 0, 2, 1, -1, 2], pad_mode=\"edge\") }",
     -2, 2},
    {"nn.pad",
     "fn @main(%x: Tensor[(A, 3, 4), f64]) {"
     " nn.pad(%x, pad_width=[0, 0, 2, 1, 2, -1], pad_mode=\"reflect\") }",
     -2, 2},
    {"full", "fn @main(%x: f64) { full(%x, shape=[A, B], dtype=f64) }", -2, 2},
    {"broadcast_to", "fn @main(%x: Tensor[(A, 1), f64]) { broadcast_to(%x, shape=[C, A, B]) }", -2,
     2},
    {"reshape", "fn @main(%x: Tensor[(A, 6), f64]) { reshape(%x, newshape=[2, -1, 3]) }", -2, 2},
    {"squeeze", "fn @main(%x: Tensor[(A, 1, B), f64]) { squeeze(%x, axis=[1]) }", -2, 2},
    X2("expand_dims", ", axis=1"),
    X2("transpose", ""),
    {"transpose", "fn @main(%x: Tensor[(A, B, C), f64]) { transpose(%x, axes=[2, 0, -2]) }", -2, 2},
    {"concatenate",
     "fn @main(%x: Tensor[(A, B), f64], %y: Tensor[(A, C), f64]) {"
     " concatenate((%x, %y, %x), axis=-1) }",
     -2, 2},
    {"stack",
     "fn @main(%x: Tensor[(A, B), f64], %y: Tensor[(A, B), f64]) { stack((%x, %y), axis=1) }", -2,
     2},
    {"split",
     "fn @main(%x: Tensor[(A, 6), f64]) { %0 = split(%x, indices=[2, 4], axis=1);"
     " multiply(%0.0, %0.2) }",
     -2, 2},
    {"strided_slice",
     "fn @main(%x: Tensor[(7, A, 6), f64]) {"
     " strided_slice(%x, begin=[1, -1], end=[7, -7], strides=[3, -2], axes=[0, 2]) }",
     -2, 2},
    {"strided_slice",
     "fn @main(%x: Tensor[(A, 7), f64]) { strided_slice(%x, begin=[2], end=[5], axes=[1]) }", -2,
     2},
    X2("tile", ", reps=[2, 1, 3]"),
    X2("repeat", ", repeats=3, axis=0"),
    X2("reverse", ", axis=1"),
    X2("trilu", ", upper=false, k=1"),
    {"take",
     "fn @main(%x: Tensor[(A, 3, B), f64], %i: Tensor[(2, C), i64]) { take(%x, %i, axis=1) }", -2,
     2},
    {"take", "fn @main(%x: Tensor[(3, B), f64], %i: i32) { take(%x, %i, axis=0, mode=\"wrap\") }",
     -2, 2},
    {"take",
     "fn @main(%x: Tensor[(2, A, 3, B), f64], %i: Tensor[(2, C), i64]) {"
     " take(%x, %i, axis=2, batch_dims=1) }",
     -2, 2},
    {"one_hot",
     "fn @main(%x: f64, %y: f64, %i: Tensor[(A, B), i64]) {"
     " one_hot(%i, %x, %y, depth=3, axis=1, dtype=f64) }",
     -2, 2},
    {"gather",
     "fn @main(%x: Tensor[(A, 3), f64], %i: Tensor[(A, 4), i64]) { gather(%x, %i, axis=1) }", -2,
     2},
    {"gather_nd",
     "fn @main(%x: Tensor[(3, 3, A), f64], %i: Tensor[(2, B), i64]) { gather_nd(%x, %i) }", -2, 2},
    {"scatter_elements",
     "fn @main(%x: Tensor[(4, A), f64], %u: Tensor[(1, A), f64], %i: Tensor[(1, A), i64]) {"
     " scatter_elements(%x, %i, %u, axis=0) }",
     -2, 2},
    {"scatter_elements",
     "fn @main(%x: Tensor[(A, 3), f64], %u: Tensor[(A, 4), f64], %i: Tensor[(A, 4), i64]) {"
     " scatter_elements(%x, %i, %u, axis=1, reduction=\"add\") }",
     -2, 2},
    {"scatter_nd",
     "fn @main(%x: Tensor[(3, 3, A), f64], %u: Tensor[(B, A), f64], %i: Tensor[(2, B), i64]) {"
     " scatter_nd(%x, %i, %u, mode=\"add\") }",
     -2, 2},
    {"update_slice",
     "fn @main(%x: Tensor[(3, A), f64], %u: Tensor[(A), f64], %i: Tensor[(), i64]) {"
     " update_slice(%x, %u, %i) }",
     -2, 2},
    {"update_range",
     "fn @main(%x: Tensor[(3, A, 4, 2), f64], %u: Tensor[(3, A, 2, 2), f64], %i: Tensor[(3), i64]) "
     "{"
     " update_range(%x, %u, %i, axis=2) }",
     -2, 2},
    {"update_range",
     "fn @main(%x: Tensor[(2, 3, A), f64], %u: Tensor[(2, 2, A), f64], %i: Tensor[(2), i64]) {"
     " update_range(%x, %u, %i, axis=1, circular=true) }",
     -2, 2},
    /* Not of one row. */
    {"", "fn @main(%x: Tensor[(A, B), f64]) { %0 = exp(%x); add(multiply(%0, %0), %x) }", -1, 1},
    {"", "fn @main(%x: Tensor[(A, B), f64], %y: Tensor[(A, B), f64]) { sin(%y) }", -1, 1},
    {"", /* expanded */
     "fn @main(%x: Tensor[(A, B, C), f64], %w: Tensor[(D, B, 1), f64]) { nn.conv1d(%x, %w) }", -2,
     2},
    {"", /* a gradient's gradient */
     "fn @main(%x: Tensor[(A, B), f64], %w: Tensor[(C, B), f64]) {"
     " gradient(fn (%a: Tensor[(A, B), f64], %b: Tensor[(C, B), f64]) {"
     " tanh(nn.dense(%a, %b)) }, %x, %w, params=1).0 }",
     -1, 1},
    {"", /* a free variable of the function */
     "fn @main(%x: Tensor[(A, B), f64]) { %0 = sin(%x);"
     " gradient(fn (%a: Tensor[(A, B), f64]) { multiply(multiply(%a, %a), %0) }, %x).0 }",
     -1, 1},
};

/* ---- drawing ------------------------------------------------------------------------------------------- */

static uint64_t state = 88172645463325252u;

static uint32_t rnd(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state >> 20) % n);
}

static double uniform(double lo, double hi)
{
    return lo + (hi - lo) * rnd(1 << 24) / (1 << 24);
}

static const char *with_dims(Ctx *c, const char *text)
{
    StrBuf   s = strbuf(c->arena);
    uint32_t dims[6];

    for (uint32_t i = 0; i < 6; i++)
        dims[i] = 1 + rnd(4);
    for (const char *p = text; *p; p++)
        if (*p >= 'A' && *p <= 'F' && !isalnum(p[1]) &&
            (p[-1] == '(' || p[-1] == '[' || p[-1] == ' '))
            str_printf(&s, "%u", dims[*p - 'A']);
        else
            str_printf(&s, "%c", *p);
    return s.at;
}

static const Const *random_const(Ctx *c, const Type *t, double lo, double hi)
{
    uint32_t size = dtype_bytes(t->dtype);
    int64_t  n = 0;
    uint8_t *data;

    type_elems(t, &n);
    data = arena_array(c->arena, (size_t)n + 1, size);
    for (int64_t i = 0; i < n; i++)
        if (dtype_is_float(t->dtype))
            dtype_put_f(t->dtype, data + i * size, uniform(lo, hi));
        else
            dtype_put_i(t->dtype, data + i * size, rnd(dtype_is_bool(t->dtype) ? 2 : 3));
    return const_new(c, NULL, t, (Bytes){data, (size_t)n * size});
}

/* ---- one round ------------------------------------------------------------------------------------------ */

enum { MAX_PARAMS = 4, DIRECTIONS = 3 };
#define STEP 1e-5
#define COARSE 0.5 /* of what is rounded to f32, and linear */
#define TOLERANCE 1e-5

typedef struct {
    Ctx         *c;
    const Expr  *f; /* of the operands, first those that are floats, and the weights */
    uint32_t     n, floats;
    const Const *in[MAX_PARAMS + 1];
} Round;

static const Const *moved(Ctx *c, const Const *x, const Const *by, double step)
{
    double       *v = arena_dup(c->arena, x->data.at, x->data.n);
    const double *d = (const double *)(const void *)by->data.at;

    for (size_t i = 0; i < x->data.n / sizeof *v; i++)
        v[i] += step * d[i];
    return const_new(c, NULL, x->type, (Bytes){(const uint8_t *)v, x->data.n});
}

static bool value_at(Round *r, const Const *const *direction, double step, double *value)
{
    GlobalDef           def = {"main", r->f};
    const Const        *in[MAX_PARAMS + 1];
    uint32_t            nout;
    const Const *const *out;

    for (uint32_t i = 0; i < r->n; i++)
        in[i] = i < r->floats ? moved(r->c, r->in[i], direction[i], step) : r->in[i];
    if (!relay_eval(r->c, module_new(r->c, NULL, 1, &def), r->n, in, &nout, &out))
        return false;
    memcpy(value, out[0]->data.at, sizeof *value);
    return true;
}

/* The function that a case gives, its result summed with weights. */
static bool read(Round *r, const GradientCase *k)
{
    Ctx          *c = r->c;
    const char   *text = with_dims(c, k->text);
    const Module *m =
        relay_parse(c, "case.relay", (Bytes){(const uint8_t *)text, strlen(text)}, (Bytes){0});
    const Expr *f, *params[MAX_PARAMS + 1], *body, *w;

    if (!m || !(m = relay_infer(c, m)))
        return false;
    f = module_func(m, "main");
    body = func_body(f);
    r->n = func_nparams(f);
    for (uint32_t i = 0; i < r->n; i++) {
        params[i] = func_param(f, i);
        r->floats += dtype_is_float(params[i]->type->dtype);
        r->in[i] = random_const(c, params[i]->type, k->lo, k->hi);
    }
    params[r->n] = w = expr_var(c, "weights", body->type, NO_LOC);
    r->in[r->n++] = random_const(c, body->type, -1, 1);
    body = expr_call_name(c, "multiply", 2, (const Expr *[]){body, w}, NULL, NO_LOC);
    body = expr_call_name(c, "sum", 1, &body, NULL, NO_LOC);
    r->f = expr_func(c, r->n, params, body, (FuncData){0}, NO_LOC);
    return true;
}

static bool gradients(Round *r, uint32_t *nout, const Const *const **out)
{
    Ctx           *c = r->c;
    const Expr    *args[MAX_PARAMS + 2] = {r->f}, *params[MAX_PARAMS + 1], *body;
    GradientAttrs *attrs = attrs_new(c, &attrs_GradientAttrs);
    GlobalDef      def = {"main", NULL};

    for (uint32_t i = 0; i < r->n; i++)
        args[i + 1] = params[i] = expr_var(c, "p", r->in[i]->type, NO_LOC);
    attrs->params = r->floats;
    if (!(body = expr_call_name(c, "gradient", r->n + 1, args, attrs, NO_LOC)))
        return false;
    def.func = expr_func(c, r->n, params, body, (FuncData){0}, NO_LOC);
    return relay_eval(c, module_new(c, NULL, 1, &def), r->n, r->in, nout, out);
}

static const char *differs(Round *r, double step, uint32_t nout, const Const *const *g)
{
    for (uint32_t k = 0; k < DIRECTIONS; k++) {
        const Const *direction[MAX_PARAMS];
        double       along = 0, before, after, slope;

        if (nout != r->floats)
            return "another number of results";
        for (uint32_t i = 0; i < r->floats; i++) {
            const double *d, *v = (const double *)(const void *)g[i]->data.at;

            if (g[i]->type != r->in[i]->type)
                return "another type";
            direction[i] = random_const(r->c, r->in[i]->type, -1, 1);
            d = (const double *)(const void *)direction[i]->data.at;
            for (size_t j = 0; j < g[i]->data.n / sizeof *v; j++)
                along += v[j] * d[j];
        }
        if (!value_at(r, direction, -step, &before) || !value_at(r, direction, step, &after))
            return "no value";
        slope = (after - before) / (2 * step);
        if (!(fabs(slope - along) <= TOLERANCE * (1 + fabs(slope))))
            return arena_printf(r->c->arena, "%.9g, by differences %.9g", along, slope);
    }
    return NULL;
}

static void run(const GradientCase *k)
{
    Arena              *arena = arena_new(NULL);
    Diags              *diags = diags_new(arena);
    Ctx                *c = ctx_new(arena, diags, op_table);
    Round               r = {.c = c};
    StrBuf              text = strbuf(arena);
    uint32_t            nout;
    const Const *const *g;
    const char         *fault = "it does not run";

    check_count++;
    if (read(&r, k) && gradients(&r, &nout, &g))
        fault = differs(&r, strstr(k->text, "f32") ? COARSE : STEP, nout, g);
    diag_print(diags, DIAG_TEXT, &text);
    if (fault || diag_errors(diags)) {
        printf("%s\n  %s\n%s", r.f ? expr_text(c, r.f) : k->text, fault ? fault : "",
               text.at ? text.at : "");
        check_failures++;
    }
    ctx_free(c);
    arena_free(arena);
}

int main(int argc, char **argv)
{
    uint32_t rounds = argc > 1 ? (uint32_t)atoi(argv[1]) : 4;

    for (uint32_t i = 0; i < op_table.n; i++) {
        bool found = false;

        for (uint32_t k = 0; k < COUNT(cases); k++)
            found |= !strcmp(cases[k].op, op_table.at[i].text);
        if (found != op_has_adjoint(&op_table.at[i]))
            printf("%s: %s\n", op_table.at[i].text, found ? "no adjoint" : "no case");
        CHECK(found == op_has_adjoint(&op_table.at[i]));
    }
    for (uint32_t k = 0; k < COUNT(cases); k++)
        for (uint32_t i = 0; i < rounds; i++)
            run(&cases[k]);
    return check_result();
}
