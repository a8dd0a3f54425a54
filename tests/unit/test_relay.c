/* Relay as text and as graph: every kind of node round-trips, equality ignores names, inference
 * completes what makers could not, errors show a caret; random graphs print, parse and print the
 * same. */
#include "tests/unit/check.h"

#include "ir/relay/relay.h"
#include "ops/ops.h"

#include <stdlib.h>

typedef struct {
    Arena *arena;
    Diags *diags;
    Ctx   *c;
} Room;

static Room room(void)
{
    Room r;

    r.arena = arena_new(NULL);
    r.diags = diags_new(r.arena);
    r.c = ctx_new(r.arena, r.diags, op_table);
    return r;
}

static void room_free(Room r)
{
    ctx_free(r.c);
    arena_free(r.arena);
}

static Bytes bytes(const char *s)
{
    return (Bytes){(const uint8_t *)s, strlen(s)};
}

static const char *print(Ctx *c, const Module *m, bool locs)
{
    StrBuf s = strbuf(c->scratch);

    relay_print(c, m, (RelayPrint){.locs = locs}, &s);
    return s.at ? s.at : "";
}

static const char *errors(Room r)
{
    StrBuf s = strbuf(r.arena);

    diag_print(r.diags, DIAG_TEXT, &s);
    return s.at ? s.at : "";
}

/* Parses, prints as itself, verifies and types. */
static void check_canonical(const char *text)
{
    Room          r = room();
    const Module *m = relay_parse(r.c, "t.relay", bytes(text), (Bytes){0}), *n;

    CHECK(m);
    if (m) {
        CHECK_STR(print(r.c, m, true), text);
        CHECK(relay_verify(r.c, m));
        n = relay_parse(r.c, "t.relay", bytes(print(r.c, m, true)), (Bytes){0});
        CHECK(n && module_same(r.c, m, n));
        n = relay_infer(r.c, m);
        CHECK(n && relay_verify(r.c, n));
        if (n) { /* what inference adds prints and parses too */
            const char   *typed = print(r.c, n, true);
            const Module *again = relay_parse(r.c, "u.relay", bytes(typed), (Bytes){0});

            CHECK(again && (again = relay_infer(r.c, again)) && module_same(r.c, n, again));
            CHECK(again && !strcmp(print(r.c, again, true), typed));
        }
    }
    if (diag_errors(r.diags))
        printf("%s", errors(r));
    room_free(r);
}

static void test_calls(void)
{
    check_canonical("fn @main(%x: Tensor[(1, 64, 56, 56), f32]) {\n"
                    "  nn.relu(%x) loc(\"net.onnx\":3:Relu_5)\n"
                    "}\n");
    check_canonical(
        "const @w: Tensor[(8, 4, 3, 3), f32] = splat(0.5)\n"
        "const @b: Tensor[(2), i64] = [-1, 8]\n"
        "\n"
        "fn @main(%x: Tensor[(1, 4, 6, 6), f32]) {\n"
        "  %0 = nn.conv2d(%x, const @w, padding=[1, 1, 1, 1]) loc(\"n.onnx\":1:\"a b\");\n"
        "  %1 = nn.relu(%0);\n"
        "  %2 = add(%0, %1);\n"
        "  (%2, const @b, 3, 2.5, 7_i64, true, -inf, 0x7fc00001_f32)\n"
        "}\n");
}

static void test_tuples(void)
{
    check_canonical(
        "fn @main(%x: (Tensor[(2), f32], (Tensor[(), i32],), ()), %\"0\": Tensor[(), f32]) {\n"
        "  %0 = ((%x).0, (%x).1.0);\n"
        "  (%0, %0.1, (), (%\"0\",))\n"
        "}\n");
}

static void test_control(void)
{
    check_canonical("fn @main(%c: Tensor[(), bool], %x: Tensor[(4), f32]) {\n"
                    "  %0 = nn.relu(%x);\n"
                    "  let %y = if %c {\n"
                    "    add(%0, %x)\n"
                    "  } else {\n"
                    "    %1 = exp(%0);\n"
                    "    multiply(%1, %1)\n"
                    "  };\n"
                    "  %2 = {\n"
                    "    let %z = exp(%y);\n"
                    "    add(%z, %y)\n"
                    "  };\n"
                    "  tanh(%2)\n"
                    "}\n");
}

static void test_recursion(void)
{
    check_canonical("fn @main(%n: Tensor[(), i32]) {\n"
                    "  @count(%n, 0)\n"
                    "}\n"
                    "\n"
                    "fn @count(%n: Tensor[(), i32], %s: Tensor[(), i32]) {\n"
                    "  %0 = equal(%n, 0);\n"
                    "  if %0 {\n"
                    "    %s\n"
                    "  } else {\n"
                    "    %1 = subtract(%n, 1);\n"
                    "    %2 = add(%s, %n);\n"
                    "    @count(%1, %2)\n"
                    "  }\n"
                    "}\n");
}

static void test_adt(void)
{
    check_canonical("type List[a] { Cons(a, List[a]), Nil }\n"
                    "\n"
                    "fn @sum(%l) {\n"
                    "  match %l {\n"
                    "    Cons(%x, %rest) => {\n"
                    "      %0 = @sum(%rest);\n"
                    "      add(%x, %0)\n"
                    "    },\n"
                    "    Nil => {\n"
                    "      0.0\n"
                    "    }\n"
                    "  }\n"
                    "}\n"
                    "\n"
                    "fn @main() {\n"
                    "  %0 = Nil();\n"
                    "  %1 = Cons(2.0, %0);\n"
                    "  %2 = Cons(1.0, %1);\n"
                    "  %3 = @sum(%2);\n"
                    "  match? (%3, 1) {\n"
                    "    (_, %k) => {\n"
                    "      0.0\n"
                    "    }\n"
                    "  }\n"
                    "}\n");
}

static void test_refs_functions(void)
{
    check_canonical(
        "fn @main(%x: Tensor[(4), f32]) {\n"
        "  let %r = ref(%x);\n"
        "  let %f = fn (%y) {\n"
        "    %0 = ref_read(%r);\n"
        "    add(%y, %0)\n"
        "  };\n"
        "  %1 = %f(%x);\n"
        "  let %u = ref_write(%r, %1);\n"
        "  %2 = fn primitive compiler(\"x\") (%a: Tensor[(4), f32]) -> Tensor[(4), f32] {\n"
        "    nn.relu(%a)\n"
        "  }(%x);\n"
        "  %3 = %f(%2);\n"
        "  (%3, %u)\n"
        "}\n");
}

static void test_dims(void)
{
    check_canonical("dim N in 1..512\n"
                    "\n"
                    "fn @main(%x: Tensor[(N, N*2+1, 3), f32]) -> Tensor[(N, N*2+1, 3), f32] {\n"
                    "  %0: Tensor[(N, N*2+1, 3), f32] halo(0:1+0, 1:2+2) = 0.0 = nn.relu(%x);\n"
                    "  nn.relu(%0)\n"
                    "}\n");
}

/* ---- large constants, errors -------------------------------------------------------------------- */

static void test_side_file(void)
{
    Room        r = room();
    int64_t     v[5] = {1, 2, 3, 4, 5};
    const Expr *k = expr_const_i64s(r.c, v, 5), *two[] = {k, k};
    const Expr *f = expr_func(r.c, 0, NULL, expr_tuple(r.c, 2, two, NO_LOC), (FuncData){0}, NO_LOC);
    GlobalDef   def = {"main", f};
    const Module *m = module_new(r.c, NULL, 1, &def), *n;
    Bytes         side = relay_consts(r.c, m);
    const char   *text = print(r.c, m, false);

    CHECK(strstr(text, "const @c: Tensor[(5), i64] = sha256:"));
    n = relay_parse(r.c, "t.relay", bytes(text), side);
    CHECK(n && module_same(r.c, m, n));
    CHECK(n && !strcmp(print(r.c, n, false), text));
    CHECK(!relay_parse(r.c, "t.relay", bytes(text), (Bytes){0}));
    side.n -= 8;
    CHECK(!relay_parse(r.c, "t.relay", bytes(text), side));
    room_free(r);
}

static void check_error(const char *text, const char *message)
{
    Room          r = room();
    const Module *m = relay_parse(r.c, "t.relay", bytes(text), (Bytes){0});

    CHECK(!m || !relay_infer(r.c, m));
    CHECK(strstr(errors(r), message));
    if (!strstr(errors(r), message))
        printf("want: %s\ngot: %s\n", message, errors(r));
    room_free(r);
}

static void test_errors(void)
{
    check_error("fn @main() { %0 }", "t.relay:1:14: error: '%0' is not defined here");
    check_error("fn @main(%x: f32) { nn.relux(%x) }",
                "t.relay:1:21: error: there is no operator 'nn.relux'");
    check_error("fn @main(%x: f32) { nn.relux(%x) }", "did you mean 'nn.relu'");
    check_error("fn @main(%x: f32) { add(%x) }", "'add' takes 2 operands, not 1");
    check_error("fn @main(%x: f32) { cast(%x) }", "'cast' needs the attribute 'dtype'");
    check_error("fn @main(%x: f32) {\n  nn.softmax(%x, axes=1) }",
                "t.relay:2:18: error: 'nn.softmax' has no attribute 'axes'");
    check_error("fn @main(%x: f32) { add(%x, 1.0) ", "expected '}', found the end of the text");
    check_error("fn @main(%x: Tensor[(M), f32]) { %x }", "expected a dimension");
    check_error("fn @main(%x: Tensor[(2), f32]) { if true { %x } else { 1 } }", "one branch gives");
    check_error("fn @main() { @g() }", "there is no function '@g'");
    check_error("fn @main(%x) { nn.relu(%x) }", "annotate a parameter");
    check_error("const @w: Tensor[(2), i8] = [1, 300]\nfn @main() { const @w }",
                "'300' does not fit i8");
    check_error("const @w: Tensor[(99999999999, 99999999999), i8] = splat(0)",
                "cannot have the type");
}

static void test_nesting(void)
{
    Room   r = room();
    StrBuf s = strbuf(r.arena);

    str_add(&s, "fn @main() { ");
    for (int i = 0; i < 5000; i++)
        str_add(&s, "(");
    CHECK(!relay_parse(r.c, "t.relay", bytes(s.at), (Bytes){0}));
    CHECK(strstr(errors(r), "nests deeper"));
    room_free(r);
}

/* ---- the verifier ---------------------------------------------------------------------------- */

static void check_broken(Room r, const Expr *body, const char *message)
{
    GlobalDef     def = {"main", expr_func(r.c, 0, NULL, body, (FuncData){0}, NO_LOC)};
    const Module *m = module_new(r.c, NULL, 1, &def);

    CHECK(!relay_verify(r.c, m));
    CHECK(strstr(errors(r), message));
    if (!strstr(errors(r), message))
        printf("want: %s\ngot: %s\n", message, errors(r));
}

static void test_verify(void)
{
    Room          r = room();
    const int64_t dims[] = {2};
    const Type   *t = type_tensor_i64(r.c, DT_F32, 1, dims),
               *scalar = type_tensor(r.c, DT_F32, 0, NULL);
    const Expr *x = expr_var(r.c, "x", t, NO_LOC), *y = expr_var(r.c, "y", t, NO_LOC);
    const Expr *one = expr_scalar(r.c, DT_F32, 1), *call, *let;
    const Expr *args[2];

    check_broken(r, x, "'%x' is used where it has no value");
    call = expr_call_name(r.c, "exp", 1, &one, NULL, NO_LOC);
    check_broken(r, expr_with_type(r.c, call, t), "'exp' is typed Tensor[(2), f32]");
    check_broken(r, expr_apply(r.c, expr_global(r.c, "g", NULL, NO_LOC), 0, NULL, NO_LOC),
                 "there is no function '@g'");
    /* a variable of a let beside that let */
    let = expr_let(r.c, expr_var(r.c, "a", scalar, NO_LOC), one, one, NO_LOC);
    args[0] = let;
    args[1] = let_var(let);
    check_broken(r, expr_tuple(r.c, 2, args, NO_LOC), "'%a' is used where it has no value");
    check_broken(r, expr_func(r.c, 1, &x, y, (FuncData){.primitive = true}, NO_LOC),
                 "a primitive function holds more than");
    room_free(r);
}

static void test_rewrite(void)
{
    Room          r = room();
    const int64_t dims[] = {2}, wide[] = {3};
    const Expr   *x = expr_var(r.c, "x", type_tensor_i64(r.c, DT_F32, 1, dims), NO_LOC);
    const Expr   *y = expr_var(r.c, "y", type_tensor_i64(r.c, DT_F32, 1, wide), NO_LOC);
    const Expr   *e = expr_call_name(r.c, "exp", 1, &x, NULL, NO_LOC), *both[] = {e, e}, *now;
    uint32_t      lo[] = {1}, hi[] = {2};
    Halo          halo = {1, 0.0, lo, hi};

    /* types follow, sharing stays, a halo stays with its value */
    e = expr_tuple(r.c, 2, both, NO_LOC);
    now = expr_bind(r.c, e, 1, &x, &y);
    CHECK(now->kids[0] == now->kids[1]);
    CHECK_STR(type_text(r.c, now->type), "(Tensor[(3), f32], Tensor[(3), f32])");
    CHECK(expr_bind(r.c, e, 1, &y, &x) == e);
    e = expr_with_type(r.c, both[0], type_with_halo(r.c, both[0]->type, &halo));
    now = expr_with_kids(
        r.c, e,
        (const Expr *[]){e->kids[0], expr_proj(r.c, expr_tuple(r.c, 1, &x, NO_LOC), 0, NO_LOC)});
    CHECK_STR(type_text(r.c, now->type), "Tensor[(2), f32] halo(0:1+2) = 0.0");
    CHECK(type_plain(r.c, now->type) == x->type);
    room_free(r);
}

/* ---- random graphs --------------------------------------------------------------------------------- */

static uint32_t next_random(uint32_t *s)
{
    *s = *s * 1664525u + 1013904223u;
    return *s >> 8;
}

static const Module *random_module(Ctx *c, uint32_t seed, uint32_t size)
{
    static const char *const unary[] = {"nn.relu", "exp", "tanh", "sqrt"};
    static const char *const binary[] = {"add", "multiply", "maximum"};
    const int64_t            dims[] = {2, 3};
    const Type              *t = type_tensor_i64(c, DT_F32, 2, dims);
    const Expr             **pool = NEW_ARRAY(c->arena, const Expr *, size + 2), *func;
    const Expr              *params[] = {expr_var(c, "x", t, NO_LOC), expr_var(c, "x", t, NO_LOC)};
    const Expr              *cond = expr_scalar(c, DT_BOOL, 1);
    uint32_t                 n = 2;
    GlobalDef                def;

    pool[0] = params[0];
    pool[1] = params[1];
    while (n < size + 2) {
        const Expr *a[] = {pool[next_random(&seed) % n], pool[next_random(&seed) % n]}, *v;

        switch (next_random(&seed) % 8) {
        case 0:
        case 1:
        case 2:
            pool[n++] = expr_call_name(c, unary[next_random(&seed) % 4], 1, a, NULL, NO_LOC);
            break;
        case 3:
            pool[n++] = expr_call_name(c, binary[next_random(&seed) % 3], 2, a, NULL, NO_LOC);
            break;
        case 4: pool[n++] = expr_if(c, cond, a[0], a[1], NO_LOC); break;
        case 5:
            pool[n++] = expr_proj(c, expr_tuple(c, 2, a, NO_LOC), next_random(&seed) % 2, NO_LOC);
            break;
        case 6:
            v = expr_var(c, "y", t, NO_LOC);
            pool[n++] = expr_let(
                c, v, a[0], expr_call_name(c, "add", 2, (const Expr *[]){v, a[1]}, NULL, NO_LOC),
                NO_LOC);
            break;
        case 7:
            v = expr_var(c, "p", t, NO_LOC);
            func = expr_func(c, 1, &v,
                             expr_call_name(c, "add", 2, (const Expr *[]){v, a[1]}, NULL, NO_LOC),
                             (FuncData){0}, NO_LOC);
            pool[n++] = expr_apply(c, func, 1, a, NO_LOC);
            break;
        }
    }
    def = (GlobalDef){"main", expr_func(c, 2, params, pool[n - 1], (FuncData){0}, NO_LOC)};
    return module_new(c, NULL, 1, &def);
}

static void test_random(void)
{
    for (uint32_t seed = 1; seed <= 200; seed++) {
        Room          r = room();
        const Module *m = random_module(r.c, seed * 7919, 1 + seed % 40), *n;
        const char   *text = print(r.c, m, false);

        CHECK(relay_verify(r.c, m));
        n = relay_parse(r.c, "t.relay", bytes(text), (Bytes){0});
        CHECK(n && module_same(r.c, m, n));
        CHECK(n && expr_hash(r.c, module_func(m, "main"), NULL) ==
                       expr_hash(r.c, module_func(n, "main"), NULL));
        if (n)
            CHECK_STR(print(r.c, n, false), text);
        else
            printf("%s%s", text, errors(r));
        room_free(r);
    }
}

static void check_dims_broken(const char *main, const char *message)
{
    Room        r = room();
    const char *text =
        arena_printf(r.arena, "dim K in 0..9\nfn @main(%%n: Tensor[(1), i64]) { %s }", main);
    const Module *m = relay_parse(r.c, "t.relay", bytes(text), (Bytes){0});

    CHECK(m && !relay_verify(r.c, m));
    CHECK(strstr(errors(r), message));
    room_free(r);
}

/* Dimensions that a let binds. */
static void test_bound_dims(void)
{
    check_canonical("dim K in 0..9\n\n"
                    "fn @main(%n: Tensor[(1), i64]) {\n"
                    "  let %k = bind_dims(%n, dims=[K]);\n"
                    "  %0 = zeros(shape=[K]);\n"
                    "  (%0, %k)\n"
                    "}\n");
    check_dims_broken("let %k = bind_dims(%n, dims=[K]); let %l = bind_dims(%n, dims=[K]); %l",
                      "dimension 'K' is bound twice");
    check_dims_broken("bind_dims(%n, dims=[K])", "bind_dims is not the value of a let");
    check_dims_broken("let %k = bind_dims(dim_values(dims=[K]), dims=[K]); %k",
                      "dimension 'K' is used where it has no value");
    check_dims_broken("%0 = if true { let %k = bind_dims(%n, dims=[K]); zeros(shape=[2]) }"
                      " else { zeros(shape=[2]) }; (%0, zeros(shape=[K]))",
                      "dimension 'K' is used where it has no value");
}

/* A chain of 100,000 calls and one of as many lets: no walk recurses. */
static void test_deep(void)
{
    Room          r = room();
    const int64_t dims[] = {2};
    const Type   *t = type_tensor_i64(r.c, DT_F32, 1, dims);
    const Expr   *x = expr_var(r.c, "x", t, NO_LOC), *e = x;
    GlobalDef     def;
    const Module *m, *n;

    for (int i = 0; i < 100000; i++)
        e = expr_call_name(r.c, "nn.relu", 1, &e, NULL, NO_LOC);
    for (int i = 0; i < 2000; i++)
        e = expr_let(r.c, expr_var(r.c, "y", t, NO_LOC), x, e, NO_LOC);
    def = (GlobalDef){"main", expr_func(r.c, 1, &x, e, (FuncData){0}, NO_LOC)};
    m = module_new(r.c, NULL, 1, &def);
    n = relay_parse(r.c, "t.relay", bytes(print(r.c, m, false)), (Bytes){0});
    CHECK(n && module_same(r.c, m, n));
    CHECK(relay_verify(r.c, m));
    room_free(r);
}

static void test_dtypes(void)
{
    uint16_t h;
    uint8_t  b;

    dtype_put_f(DT_F16, &h, 1.0);
    CHECK_INT(h, 0x3c00);
    dtype_put_f(DT_F16, &h, 65520.0);
    CHECK_INT(h, 0x7c00);
    dtype_put_f(DT_F16, &h, 65519.0);
    CHECK_INT(h, 0x7bff);
    dtype_put_f(DT_F16, &h, 5.9604644775390625e-08);
    CHECK_INT(h, 1);
    dtype_put_f(DT_F16, &h, 2.98e-08);
    CHECK_INT(h, 0);
    dtype_put_f(DT_BF16, &h, -3.0);
    CHECK_INT(h, 0xc040);
    for (uint32_t i = 0; i < 0x7c00; i++) {
        uint16_t in = (uint16_t)i, out;

        dtype_put_f(DT_F16, &out, dtype_get_f(DT_F16, &in));
        if (in != out)
            CHECK_INT(out, in);
    }
    dtype_put_f(DT_U8, &b, 300.7);
    CHECK_INT(b, 255);
    dtype_put_f(DT_I8, &b, -1.9);
    CHECK_INT((int8_t)b, -1);
}

/* All of f16's values, their neighbours and what lies half way, against the careful rounding. */
static void test_narrow(void)
{
    static const DType to[] = {DT_F16, DT_BF16};
    NarrowLoss         loss = {0};
    uint16_t           want, got;

    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; i < 1u << 17; i++)
            for (int side = -1; side <= 1; side++) {
                uint32_t bits =
                    (k ? i << 15 : (i >> 16) << 31 | (((i & 0xffff) << 12) + 0x33000000)) +
                    (uint32_t)side;
                float f;

                memcpy(&f, &bits, 4);
                dtype_put_f(to[k], &want, f);
                dtype_narrow(to[k], &bits, &got, 1, &loss);
                if (want != got && f == f)
                    CHECK_INT(got, want);
                if (f != f && !(dtype_get_f(to[k], &got) != dtype_get_f(to[k], &got)))
                    CHECK(!"a NaN was lost");
            }
    loss = (NarrowLoss){0};
    float in[3] = {1.0f, -3.0f, 1.0f + 0x1p-12f};
    dtype_narrow(DT_F16, in, in, 3, &loss); /* in place */
    CHECK(!memcmp(in, (uint16_t[]){0x3c00, 0xc200, 0x3c00}, 6));
    CHECK(loss.error == 0x1p-12 && loss.largest == 3 && !loss.overflow);
    dtype_narrow(DT_F16, &(float){1e6f}, &got, 1, &loss);
    CHECK(loss.overflow && got == 0x7c00);
    loss = (NarrowLoss){0};
    dtype_narrow(DT_BF16, &(float){1e6f}, &got, 1, &loss);
    CHECK(!loss.overflow);
}

int main(void)
{
    RUN(test_dtypes);
    RUN(test_narrow);
    RUN(test_calls);
    RUN(test_tuples);
    RUN(test_control);
    RUN(test_recursion);
    RUN(test_adt);
    RUN(test_refs_functions);
    RUN(test_dims);
    RUN(test_bound_dims);
    RUN(test_side_file);
    RUN(test_errors);
    RUN(test_nesting);
    RUN(test_verify);
    RUN(test_rewrite);
    RUN(test_random);
    RUN(test_deep);
    return check_result();
}
