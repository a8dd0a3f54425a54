/* The interpreter of Relay: operators, control flow, functions, references, data types, its limits.
 */
#include "tests/unit/check.h"

#include "ir/relay/relay.h"
#include "ops/ops.h"

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

static const char *errors(Room r)
{
    StrBuf s = strbuf(r.arena);

    diag_print(r.diags, DIAG_TEXT, &s);
    return s.at ? s.at : "";
}

/* Results of main() as text: elements with spaces, results with `; `. */
static const char *eval(Room r, const char *text, uint32_t nin, const Const *const *in)
{
    const Module *m =
        relay_parse(r.c, "t.relay", (Bytes){(const uint8_t *)text, strlen(text)}, (Bytes){0});
    StrBuf              s = strbuf(r.arena);
    const Const *const *out;
    uint32_t            n;

    if (!m || !relay_eval(r.c, m, nin, in, &n, &out))
        return errors(r);
    for (uint32_t i = 0; i < n; i++) {
        DType t = out[i]->type->dtype;

        str_add(&s, i ? "; " : "");
        for (size_t k = 0; k < out[i]->data.n; k += dtype_bytes(t))
            str_printf(&s, "%s%g", k ? " " : "", dtype_get_f(t, out[i]->data.at + k));
    }
    return s.at ? s.at : "";
}

static void check_eval(const char *text, const char *want)
{
    Room r = room();

    CHECK_STR(eval(r, text, 0, NULL), want);
    ctx_free(r.c);
    arena_free(r.arena);
}

static void check_fails(const char *text, const char *message)
{
    Room        r = room();
    const char *got = eval(r, text, 0, NULL);

    CHECK(strstr(got, message));
    if (!strstr(got, message))
        printf("  %s\n", got);
    ctx_free(r.c);
    arena_free(r.arena);
}

static void test_operators(void)
{
    check_eval("fn @main() { add(1, 2) }", "3");
    check_eval("const @a: Tensor[(3), f32] = [1, 4, 9]\n"
               "fn @main() { %0 = sqrt(const @a); (%0, add(%0, const @a), sum(const @a)) }",
               "1 2 3; 2 6 12; 14");
    check_eval("const @a: Tensor[(4), i32] = [1, 2, 3, 4]\n"
               "fn @main() { %0 = split(const @a, sections=2); concatenate((%0.1, %0.0)) }",
               "3 4 1 2");
    /* one without a compute function, through its expansion */
    check_eval("const @x: Tensor[(1, 2, 1, 2), f32] = [1, 2, 3, 4]\n"
               "const @g: Tensor[(2), f32] = [1, 10]\n"
               "const @z: Tensor[(2), f32] = [0, 1]\n"
               "const @v: Tensor[(2), f32] = [1, 4]\n"
               "fn @main() { nn.batch_norm(const @x, const @g, const @z, const @z, const @v, "
               "epsilon=0).0 }",
               "1 2 11 16");
}

static void test_control(void)
{
    check_eval("fn @main() { if less(1, 2) { 10 } else { 20 } }", "10");
    check_eval("fn @fact(%n: i32) -> i32 { if less(%n, 2) { 1 } else { "
               "multiply(%n, @fact(subtract(%n, 1))) } }\n"
               "fn @main() { @fact(10) }",
               "3.6288e+06");
    /* the call is shared by both branches, and must not run where neither is taken */
    check_eval("fn @down(%n: i32) -> i32 { %0 = @down(subtract(%n, 1));\n"
               "  if equal(%n, 0) { 7 } else { if true { %0 } else { add(%0, 1) } } }\n"
               "fn @main() { @down(5) }",
               "7");
    check_eval("fn @main() { let %x = 3; let %y = { let %x = add(%x, 1); multiply(%x, %x) }; "
               "(%x, %y) }",
               "3; 16");
}

static void test_functions(void)
{
    check_eval("fn @main() { let %k = 5; let %f = fn (%a: i32) { add(%a, %k) }; %f(%f(1)) }", "11");
    check_eval("fn @twice(%f: fn(i32) -> i32, %x: i32) { %f(%f(%x)) }\n"
               "fn @main() { @twice(fn (%a: i32) { multiply(%a, 3) }, 2) }",
               "18");
    check_eval("fn @main() { let %f: fn(i32) -> i32 = fn (%n: i32) -> i32 {\n"
               "  if equal(%n, 0) { 0 } else { add(%n, %f(subtract(%n, 1))) } }; %f(4) }",
               "10");
    check_eval("fn @main() { fn primitive (%a: i32, %b: i32) { multiply(add(%a, %b), %a) }(2, 3) }",
               "10");
}

static void test_references(void)
{
    check_eval("fn @main() { let %r = ref(1); let %a = ref_read(%r); let %u = ref_write(%r, 5);\n"
               "  let %b = ref_read(%r); (%a, %b) }",
               "1; 5");
    check_eval("fn @add(%r: ref[i32], %n: i32) -> () { if equal(%n, 0) { () } else {\n"
               "  let %u = ref_write(%r, add(ref_read(%r), %n)); @add(%r, subtract(%n, 1)) } }\n"
               "fn @main() { let %r = ref(100); let %u = @add(%r, 3); ref_read(%r) }",
               "106");
}

static void test_data(void)
{
    check_eval("type List[a] { Cons(a, List[a]), Nil }\n"
               "fn @sum(%l: List[i32]) -> i32 { match %l { Cons(%x, %r) => { add(%x, @sum(%r)) },\n"
               "  Nil => { 0 } } }\n"
               "fn @map(%f: fn(i32) -> i32, %l: List[i32]) -> List[i32] { match %l {\n"
               "  Cons(%x, %r) => { Cons(%f(%x), @map(%f, %r)) }, Nil => { Nil() } } }\n"
               "fn @main() { %0 = Cons(1, Cons(2, Cons(3, Nil())));\n"
               "  (@sum(%0), @sum(@map(fn (%a: i32) { multiply(%a, %a) }, %0))) }",
               "6; 14");
    check_eval("fn @main() { match ((1, 2), 3) { ((%a, _), %b) => { add(%a, %b) } } }", "4");
}

static void test_limits(void)
{
    check_fails("fn @f(%n: i32) -> i32 { @f(%n) }\nfn @main() { @f(1) }", "calls nest deeper");
    check_fails("type Two { A, B }\nfn @main() { match? A() { B => { 1 } } }",
                "no clause of the match fits");
    check_fails("fn @main(%x: i32) { %x }", "1 parameter");
    check_fails("fn @main() { fn (%x: i32) { %x } }", "not made of tensors");
}

static void test_inputs(void)
{
    Room         r = room();
    int64_t      dims[] = {3};
    float        v[] = {1, -2, 3};
    const Const *k = const_new(r.c, "x", type_tensor_i64(r.c, DT_F32, 1, dims),
                               (Bytes){(const uint8_t *)v, sizeof v});

    CHECK_STR(
        eval(r, "dim N in 1..8\nfn @main(%x: Tensor[(N), f32]) { nn.relu(add(%x, %x)) }", 1, &k),
        "2 0 6");
    CHECK(strstr(eval(r, "fn @main(%x: Tensor[(4), f32]) { %x }", 1, &k), "input 'x' is"));
    ctx_free(r.c);
    arena_free(r.arena);
}

/* 20,000 calls one behind the other: neither the interpreter nor a walk recurses. */
static void test_deep(void)
{
    Room        r = room();
    const Expr *e = expr_scalar(r.c, DT_F32, -1), *v;
    const Expr *one = expr_scalar(r.c, DT_F32, 1);
    double      got;

    for (int i = 0; i < 20000; i++)
        e = expr_call_name(r.c, "maximum", 2, (const Expr *[]){e, one}, NULL, NO_LOC);
    v = eval_interp.eval(&eval_interp, r.c, e);
    CHECK(v && expr_const_f(v, &got) && got == 1);
    ctx_free(r.c);
    arena_free(r.arena);
}

int main(void)
{
    RUN(test_operators);
    RUN(test_control);
    RUN(test_functions);
    RUN(test_references);
    RUN(test_data);
    RUN(test_limits);
    RUN(test_inputs);
    RUN(test_deep);
    return check_result();
}
