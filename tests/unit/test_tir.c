/* TIR: text there and back, the verifier's messages, and the interpreter against plain C. */
#include "check.h"
#include "ir/scalar.h"

#include <math.h>
#include <stdlib.h>

static Arena *arena;
static Ctx   *c;

static void begin(void)
{
    arena = arena_new(NULL);
    c = ctx_new(arena, diags_new(arena), (OpTable){0});
}

static void end(void)
{
    ctx_free(c);
    arena_free(arena);
}

static const TirModule *parse(const char *text)
{
    return tir_parse(c, "t.tir", (Bytes){(const uint8_t *)text, strlen(text)});
}

static const char *print(const TirModule *m)
{
    StrBuf s = strbuf(arena);

    tir_print(c, m, &s);
    return s.at;
}

static const char *messages(void)
{
    StrBuf s = strbuf(arena);

    diag_print(c->diags, DIAG_TEXT, &s);
    return s.n ? s.at : "";
}

/* ---- text ------------------------------------------------------------------------------------- */

/* Texts that are already as the printer writes them. */
static const char *const canonical[] = {
    "func @f kind(kernel) (%x: f32[1,8] halo(1:1+2)=-inf align 64, %y: f32[1,8] align 64 stream "
    "written) macs 8 "
    "loc(\"net.onnx\":12 \"Conv_3\") {\n"
    "  for %o < 8 parallel vector loc(\"net.onnx\":3) {\n"
    "    block b [n<1=0, o<8=%o] where 1 <= %o && %o < 6 {\n"
    "      %y[0,o] = select(0.0 < %x[0,o-1], %x[0,o+1] * 2.5, -0.0 - %x[0,o])\n"
    "    }\n"
    "  }\n"
    "}\n",

    "dim N in 1..64\n"
    "func @mm kind(kernel) target(\"llvm -mcpu=haswell\") (%a: f64[N*8,3], %b: f64[3,4] @const, "
    "%y: f64[N*8,4] written) {\n"
    "  for %i < N*8 unroll outline @tile {\n"
    "    for %j in 1 .. 4 {\n"
    "      for %k < 3 reduce {\n"
    "        block mm [i<512=%i, j in 1..3=%j; k<3=%k] redundant {\n"
    "          init %y[i,j] = f64(0.10000000000000001)\n"
    "          %y[i,j] = fma(%a[i,k], %b[k,j], %y[i,j])\n"
    "        }\n"
    "      }\n"
    "    }\n"
    "  }\n"
    "}\n",

    /* expressions of every kind; a name that is taken gets a suffix */
    "func @e kind(kernel) (%x: f32[64], %i8: i8[64], %t: i32[4], %m: bool[8], %y: f32[64] "
    "strides(1) "
    "written, %n in 0..7, %n.1 in 0..1) {\n"
    "  alloc %r: f32x8[] @reg\n"
    "  alloc %s: f32[4,4] strides(8,1) @stack {\n"
    "    %s[%n//3,%n%3] = 1.0\n"
    "  }\n"
    "  for %i < 8 {\n"
    "    alloc %i.1: i32[2] @private\n"
    "    %i.1[0] = i32(%i*2+%n) + i32(7) * %t[%i%4]\n"
    "    %i.1[1] = rem(%t[0], xor(%t[1], shl(%t[2], shr(and(%t[0], not(%t[1])), i32(3)))))\n"
    "    %r[] = splat(0.5, 8) + %x[%i*8 : 8] mask(%m[0 : 8])\n"
    "    %y[%i*8 : 8] = vec(%x[0], %x[2], %x[1], %x[3], 1.0, 2.0, inf, nan(0x7fc00000)) when "
    "%m[0 : 8] && !(%r[] <= splat(2.0, 8))\n"
    "    %y[0] = case(%n; %x[0], exp(%x[1]), pow(%x[2], 3.0), minnum(%x[3], -1.0))\n"
    "    %y[read(%t[%i%4], 0, 63)] = bits(f32, %t[3]) - (%x[0] - %x[1]) / (%x[2] * %x[3])\n"
    "    %y[1] = f32(%i8[%n]) + f32(f64(%x[3]) * f64(%x[4]))\n"
    "    if %n < 3 || %x[0] == %x[1] && %i != 4 {\n"
    "      %i8[0] = i8(-5)\n"
    "    } else {\n"
    "      prefetch %x[%i*4+64] lines 3\n"
    "      while %t[0] < i32(5) {\n"
    "        %t[0 : 4] = ramp(i32x4, %i+2)\n"
    "      }\n"
    "    }\n"
    "  }\n"
    "  return\n"
    "}\n",

    /* a divisor that a run may make 0 */
    "dim t in 0..7\n"
    "func @d kind(kernel) (%x: f32[t], %y: f32[t*3] written) {\n"
    "  for %i < t*3 {\n"
    "    %y[%i] = %x[%i-%i//(t)*t]\n"
    "  }\n"
    "}\n",

    "func @k kind(device) (%x: f32[16] written) {\n"
    "  for %b < 4 bind(blockIdx.x) {\n"
    "    for %t < 4 bind(threadIdx.x) {\n"
    "      barrier\n"
    "      %x[%b*4+%t] = 1.0\n"
    "    }\n"
    "  }\n"
    "}\n"
    "\n"
    "func @g kind(tile) (%x: f32[4] written, %q: f32[4] alias(%x), %last in 0..1) {\n"
    "  %x[0] = 0.0\n"
    "}\n"
    "\n"
    "func @main kind(host) (%arena: u8[1024], %w: u8[64] @const) {\n"
    "  region %tid in 0..255, %nt in 1..256 {\n"
    "    for %yb in (%tid*8)//(%nt) .. (%tid*8+8)//(%nt) : 0..7 {\n"
    "      call @g(%arena + (%yb*16+256), %arena, %yb%2) on0 loc(\"net.onnx\":4)\n"
    "    }\n"
    "    barrier\n"
    "  }\n"
    "  copy %w -> %arena + (64), 64 bytes to device\n"
    "  launch @k grid(4, 1, 1) block(4, 1, 1) (%arena + (128))\n"
    "  fail -2\n"
    "}\n",

    "func @sort kind(kernel) (%x: i64[4], %y: i64[4] written) {\n"
    "  block sort [] opaque {\n"
    "    for %i < 4 seq {\n"
    "      %y[%i] = max(%x[%i], i64(%i))\n"
    "    }\n"
    "  }\n"
    "  for %t < 4 {\n"
    "    block s [t<4=%t;; s<4=%t] {\n"
    "      %y[t] = maxnum(%y[s], i64(-9223372036854775808))\n"
    "    }\n"
    "  }\n"
    "}\n",

    "func @k kind(kernel) (%x: u8[64], %y: i8[64], %z: i32[4] written) {\n"
    "  %z[0 : 4] = dot4(shuffle(%x[0 : 64]; 0, 2, 4, 6), %y[0 : 16], %z[0 : 4])\n"
    "  for %d < 4 reduce dot4 {\n"
    "    %z[0] = %z[0] + i32(%x[%d]) * i32(%y[%d])\n"
    "  }\n"
    "}\n",

    /* all marks together */
    "func @k kind(device) (%x: f32[6,8] pitch(1: 32+16) align 64 ahead 4096 stream @shared) {\n"
    "  for %i < 4 parallel vector unroll mmla bind(threadIdx.z) outline @tile {\n"
    "    %x[0,%i] = 1.0\n"
    "  }\n"
    "}\n",
};

static void test_round_trip(void)
{
    for (size_t i = 0; i < COUNT(canonical); i++) {
        begin();
        const TirModule *m = parse(canonical[i]), *again;
        CHECK_STR(messages(), "");
        if (m) {
            const char *text = print(m);
            CHECK_STR(text, canonical[i]);
            again = parse(text);
            CHECK(again && !strcmp(print(again), text));
        }
        end();
    }
}

/* A formula that uses its operand twice, ten times over: written once, and read back. */
static void test_labels(void)
{
    begin();
    const char *e = "%x[0]";
    for (int i = 0; i < 10; i++)
        e = arena_printf(arena, "min(%s, exp(%s))", e, e);
    const TirModule *m = parse(
        arena_printf(arena, "func @f kind(kernel) (%%x: f32[1] written) {\n  %%x[0] = %s\n}\n", e));
    CHECK(m);
    if (m) {
        const char      *text = print(m);
        const TirModule *again = parse(text);
        CHECK(strlen(text) < 2000 && strstr(text, " as $1)") && strstr(text, " $1"));
        CHECK(again && !strcmp(print(again), text));
    }
    end();
}

/* A label ends with its expression: variables of the next loop are others. */
static void test_label_scopes(void)
{
    begin();
    const char *e = "%x[%i] + %y[0]";
    for (int i = 0; i < 10; i++)
        e = arena_printf(arena, "min(%s, exp(%s))", e, e);
    const TirModule *m = parse(
        arena_printf(arena,
                     "func @f kind(kernel) (%%x: f32[4] written) {\n  for %%i < 4 {\n"
                     "    alloc %%y: f32[1] @stack\n    %%y[0] = 0.0\n    %%x[%%i] = %s\n  }\n}\n",
                     e));
    CHECK(m);
    if (m) {
        Func        twice = *m->funcs[0];
        const Stmt *two[2] = {twice.body, twice.body};
        twice.body = stmt_seq(c, 2, two);
        const Func      *f = func_new(c, twice);
        const TirModule *both = tirmod_new(c, 1, &f);
        const char      *text = print(both);
        const TirModule *again = parse(text);
        CHECK(strlen(text) < 4000 && again && tir_verify(c, again, TIR_LOWERED));
        CHECK(again && !strcmp(print(again), text));
    }
    end();
}

/* Names that clash, among scopes that end. */
static void test_names(void)
{
    begin();
    Arith      *A = c->arith;
    const Idx  *n4 = idx_const(A, 4);
    const Atom *i = atom_var(A, "i", 0, 3), *j = atom_var(A, "i", 0, 3),
               *k = atom_var(A, "a b", 0, 3);
    const Buffer *x = buffer_new(c, "i", DT_F32, SCOPE_ARENA, 1, &n4);
    Param         q = {x, NULL, true};
    const Idx    *at = idx_add(A, idx_atom(A, i), idx_mulc(A, idx_atom(A, j), 0));
    const Stmt   *s =
        stmt_store(c, x, &at, prim_cast(c, DT_F32, prim_index(c, DT_I64, idx_atom(A, j))));
    LoopData l = {.var = j, .lo = idx_const(A, 0), .extent = n4};
    s = stmt_for(c, l, s, NO_LOC);
    const Stmt *two[2] = {s, s};
    s = stmt_seq(c, 2, two);
    l.var = i;
    s = stmt_for(c, l, s, NO_LOC);
    l.var = k;
    s = stmt_for(c, l, s, NO_LOC);
    const Func *f = func_new(
        c, (Func){.name = "f g", .kind = FUNC_KERNEL, .nparams = 1, .params = &q, .body = s});
    const TirModule *m = tirmod_new(c, 1, &f);
    CHECK_STR(print(m), "func @f_g kind(kernel) (%i: f32[4] written) {\n"
                        "  for %a_b < 4 {\n"
                        "    for %i.1 < 4 {\n"
                        "      for %i.2 < 4 {\n"
                        "        %i[%i.1] = f32(i64(%i.2))\n"
                        "      }\n"
                        "      for %i.2 < 4 {\n"
                        "        %i[%i.1] = f32(i64(%i.2))\n"
                        "      }\n"
                        "    }\n"
                        "  }\n"
                        "}\n");
    const char *text = print(m);
    CHECK_STR(print(parse(text)), text);
    CHECK(tir_verify(c, m, TIR_LOWERED));
    end();
}

/* The hash knows neither names nor places, but every number. */
static void test_hash(void)
{
    begin();
    const TirModule *a = parse("func @a kind(kernel) (%x: f32[4] written) loc(\"a\":1) {\n"
                               "for %i < 4 { %x[%i] = 1.0 } }");
    const TirModule *b = parse("func @b kind(kernel) (%q: f32[4] written) macs 3 {\n"
                               "for %z < 4 { %q[%z] = 1.0 } }");
    const TirModule *d = parse("func @b kind(kernel) (%q: f32[4] written) {\n"
                               "for %z < 4 { %q[%z] = 2.0 } }");
    Sha256           ha = func_hash(c, a->funcs[0]), hb = func_hash(c, b->funcs[0]),
           hd = func_hash(c, d->funcs[0]);
    CHECK(!memcmp(&ha, &hb, sizeof ha));
    CHECK(memcmp(&ha, &hd, sizeof ha) != 0);
    end();
}

static void test_parse_errors(void)
{
    static const char *const cases[][2] = {
        {"func @f kind(kernel) (%x: f32[4]) {\n  %x[%o] = 1.0\n}",
         "t.tir:2:6: error: '%o' is not declared here [E0305]"},
        {"func @f kind(kernel) (%x: f32[4]) {\n  %x[0] = %x[0] + i32(1)\n}", "operands of types"},
        {"func @f kind(kernel) (%x: f32[4]) {\n  %x[0,1] = 1.0\n}", "expected ']'"},
        {"func @f kind(kernel) (%x: f32[4]) { %x[0] = $0 }", "there is no '$0' before this"},
        {"func @f kind(kernel) (%x: f32[4]) { %x[0] = (1.0 as $1) }", "expected '$0', the next"},
        {"func @f kind(karnel) () { }", "did you mean 'kernel'?"},
        {"func @f kind(kernel) (%x: f33[4]) { }", "'f33' is no element type"},
        {"func @f kind(kernel) (%x: f32[4] align 48) { }",
         "'align' takes a power of two from 1 to 4096, not 48"},
        {"func @f kind(kernel) (%x: f32[4] ahead 0) { }",
         "'ahead' takes a number from 1 to 65536, not 0"},
        {"func @f kind(kernel) (%x: f32[4] pitch(1: 8+0)) { }", "a pitch of dimension 1 of 1"},
        {"func @f kind(kernel) () { for %i < 4 bind(threadIdx.w) { } }",
         "'threadIdx.w' is no axis"},
        {"func @f kind(kernel) () { for %i < 4 outline { } }", "expected '@'"},
        {"func @f kind(kernel) (%x: f32[4]) { if 1.0 { } }", "a condition of type f32"},
        {"func @f kind(kernel) (%x: f32[4]) { %x[0] = foo(1.0) }", "there is no function 'foo'"},
        {"func @f kind(kernel) (%x: f32[4]) { %x[%x[0]] = 1.0 }", "expected an index"},
        {"func @f kind(kernel) (%x: f32[99999999999999999999]) { }", "more than 64 bits"},
        {"func @f kind(kernel) (%x: f32[4]) { %x[0 : 8] = 1.0", "expected '}'"},
        {"func @f kind(kernel) (%x: f32[4]) { for %i < 4 { %x[1//(%i - 3)] = 1.0 } }",
         "a divisor that is never positive"},
        {"func @f kind(kernel) () { call @g(\"", "expected a value"},
        {"dim N in 5..1", "the range 5..1 is empty"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        begin();
        CHECK(!parse(cases[i][0]));
        if (!strstr(messages(), cases[i][1]))
            CHECK_STR(messages(), cases[i][1]);
        CHECK_INT(diag_errors(c->diags), 1);
        end();
    }
    begin(); /* deep nesting is refused, not followed */
    StrBuf s = strbuf(arena);
    str_add(&s, "func @f kind(kernel) (%x: f32[4]) { %x[0] = ");
    for (int i = 0; i < 100000; i++)
        str_add(&s, "(");
    CHECK(!parse(s.at));
    CHECK(strstr(messages(), "deep") != NULL);
    end();
}

/* Every prefix of a text, and every text with one byte changed: an error or a module, never more.
 */
static void test_parse_hostile(void)
{
    for (size_t i = 0; i < COUNT(canonical); i++) {
        size_t n = strlen(canonical[i]);
        begin();
        for (size_t cut = 0; cut < n; cut += 3) {
            Bytes            b = {(const uint8_t *)canonical[i], cut};
            const TirModule *m = tir_parse(c, "t.tir", b);
            CHECK(m || diag_errors(c->diags) > 0);
        }
        end();
        begin();
        srand(1);
        for (int k = 0; k < 400; k++) {
            char *text = arena_dup(arena, canonical[i], n + 1);
            text[(size_t)rand() % n] = "(){}[]%@,;:<0 9.-e\"f"[rand() % 20];
            const TirModule *m = parse(text);
            if (m) {
                const char      *p1 = print(m);
                const TirModule *m2 = parse(p1);
                CHECK(m2 != NULL);
                if (m2)
                    CHECK_STR(print(m2), p1);
                else
                    printf("%s\n%s\n", text, messages());
            }
        }
        end();
    }
}

static void test_verify(void)
{
    static const struct {
        const char *text;
        TirStage    stage;
        const char *message;
    } cases[] = {
        {"func @f kind(kernel) (%x: f32[4] written) { %x[0] = 1.0 }", TIR_LOWERED, ""},
        {"func @f kind(kernel) (%x: f32[4] written) { %x[0] = 1.0 }", TIR_FLAT, ""},
        {"func @f kind(kernel) (%x: f32[4] written) { %x[0] = 1.0 }", TIR_NEST,
         "@f: store to 'x' outside any block"},
        {"func @f kind(kernel) (%x: f32[4] @const) { %x[0] = 1.0 }", TIR_LOWERED,
         "store to 'x', which is const"},
        {"func @f kind(kernel) (%x: f32[4,4]) { for %i < 4 vector { %x[0,%i] = 1.0 } }", TIR_FLAT,
         "@f: buffer 'x' has 2 dimensions"},
        {"func @f kind(kernel) (%x: f32[4]) { for %i < 4 vector { %x[%i] = 1.0 } }", TIR_FLAT,
         "@f: loop 'i': still has a mark"},
        {"func @f kind(kernel) (%x: f32[4]) { for %i < 4 parallel { barrier } }", TIR_LOWERED,
         "@f: loop 'i': a barrier inside a parallel loop"},
        {"func @f kind(kernel) (%x: f32[4]) { call @g(%x) }", TIR_LOWERED,
         "calls @g, which is not there"},
        {"func @f kind(kernel) (%x: f32[4]) { call @f(1) }", TIR_LOWERED,
         "argument 0 of @f is no buffer"},
        {"func @f kind(kernel) (%x: f32[1]) { for %k < 4 parallel { block b [;k<4=%k] { init %x[0] "
         "= 0.0\n"
         " %x[0] = %x[0] + 1.0 } } }",
         TIR_NEST, "block 'b' reduces over loop 'k', which is parallel or a vector"},
        {"func @f kind(kernel) (%x: f32[4]) { block b [i<4=0] { %x[i] = 1.0 } }", TIR_LOWERED,
         "block 'b': a block after lower_blocks"},
        {"func @f kind(kernel) (%x: f32[4]) { block b [i<4=7] { %x[i] = 1.0 } }", TIR_NEST,
         "iterator 'i' is never in its domain"},
        {"func @f kind(kernel) (%x: f32[4]) { fail 3 }", TIR_LOWERED,
         "a fail outside a host function"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        begin();
        const TirModule *m = parse(cases[i].text);
        CHECK_STR(messages(), "");
        if (m) {
            CHECK_INT(tir_verify(c, m, cases[i].stage), !*cases[i].message);
            if (!strstr(messages(), cases[i].message))
                CHECK_STR(messages(), cases[i].message);
        }
        end();
    }
    begin(); /* scopes, which text cannot break */
    const Idx    *n4 = idx_const(c->arith, 4);
    const Atom   *i = atom_var(c->arith, "i", 0, 3);
    const Buffer *x = buffer_new(c, "x", DT_F32, SCOPE_ARENA, 1, &n4);
    const Idx    *at = idx_atom(c->arith, i);
    const Stmt   *s = stmt_store(c, x, &at, prim_float(c, DT_F32, 1));
    const Func   *f = func_new(c, (Func){.name = "f", .kind = FUNC_KERNEL, .body = s});
    CHECK(!tir_verify(c, tirmod_new(c, 1, &f), TIR_LOWERED));
    CHECK(strstr(messages(), "variable 'i' is used outside its scope") != NULL);
    CHECK(strstr(messages(), "buffer 'x' is used outside its scope") != NULL);
    end();
}

/* ---- the interpreter --------------------------------------------------------------------------------- */

static float noise(int i)
{
    uint32_t h = (uint32_t)i * 2654435761u;

    h ^= h >> 15;
    return (float)((int)(h % 2001) - 1000) / 333.0f;
}

static bool run(const char *text, uint32_t n, void *const *buffers)
{
    const TirModule *m = parse(text);

    if (!m) {
        CHECK_STR(messages(), "");
        return false;
    }
    return tir_eval(c, m, m->funcs[m->nfuncs - 1], n, buffers, 0, NULL);
}

static void test_matmul(void)
{
    enum { M = 7, N = 9, K = 5 };
    float a[M * K], b[K * N], y[M * N];
    void *buffers[] = {a, b, y};

    for (int i = 0; i < M * K; i++)
        a[i] = noise(i);
    for (int i = 0; i < K * N; i++)
        b[i] = noise(1000 + i);
    begin();
    CHECK(run("func @mm kind(kernel) (%a: f32[7,5], %b: f32[5,9] @const, %y: f32[7,9] written) {\n"
              "  for %i < 7 parallel { for %j < 9 { for %k < 5 reduce {\n"
              "    block mm [i<7=%i, j<9=%j; k<5=%k] {\n"
              "      init %y[i,j] = 0.5\n"
              "      %y[i,j] = fma(%a[i,k], %b[k,j], %y[i,j]) } } } } }",
              3, buffers));
    CHECK_STR(messages(), "");
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            float s = 0.5f;
            for (int k = 0; k < K; k++)
                s = fmaf(a[i * K + k], b[k * N + j], s);
            CHECK(s == y[i * N + j]);
        }
    end();
}

/* Convolution 3x3 over a halo, tiled, with a vector loop written out as lanes, and relu in place.
 */
static void test_conv(void)
{
    enum { C = 2, H = 6, W = 8, O = 3 };
    float padded[C][H + 2][W + 2], w[O][C][3][3], y[O][H][W];
    void *buffers[] = {&padded[0][1][1], w, y};

    memset(padded, 0, sizeof padded);
    for (int ch = 0; ch < C; ch++)
        for (int i = 0; i < H; i++)
            for (int j = 0; j < W; j++)
                padded[ch][i + 1][j + 1] = noise((ch * H + i) * W + j);
    for (size_t i = 0; i < sizeof w / sizeof(float); i++)
        ((float *)w)[i] = noise(5000 + (int)i);
    begin();
    CHECK(run(
        "func @conv kind(kernel) (%d: f32[2,6,8] halo(1:1+1, 2:1+1)=0.0, %w: f32[3,2,3,3] @const,\n"
        "                         %y: f32[3,6,8] written) {\n"
        "  for %o < 3 { for %yb < 2 { for %yi < 3 { for %x < 8 { for %c < 2 reduce {\n"
        "    for %kh < 3 reduce { for %kw < 3 reduce {\n"
        "      block conv [o<3=%o, y<6=%yb*3+%yi, x<8=%x; c<2=%c, kh<3=%kh, kw<3=%kw] {\n"
        "        init %y[o,y,x] = 0.0\n"
        "        %y[o,y,x] = %y[o,y,x] + %d[c,y+kh-1,x+kw-1] * %w[o,c,kh,kw] }\n"
        "  } } } } } } }\n"
        "  for %o < 3 { for %y.1 < 6 {\n"
        "    %y[%o,%y.1,0 : 8] = max(%y[%o,%y.1,0 : 8], 0.0) } } }",
        3, buffers));
    CHECK_STR(messages(), "");
    for (int o = 0; o < O; o++)
        for (int i = 0; i < H; i++)
            for (int j = 0; j < W; j++) {
                float s = 0;
                for (int ch = 0; ch < C; ch++)
                    for (int kh = 0; kh < 3; kh++)
                        for (int kw = 0; kw < 3; kw++) {
                            float product = padded[ch][i + kh][j + kw] * w[o][ch][kh][kw];
                            s = s + product;
                        }
                CHECK(y[o][i][j] == (s > 0 ? s : 0));
            }
    end();
}

/* Tiles, regions, masks, while, reads as indices, narrow types. */
static void test_features(void)
{
    float    x[16], y[16];
    int32_t  t[4] = {3, 1, 2, 0}, n[1] = {0};
    uint16_t h[4];
    uint8_t  arena_bytes[256];
    void    *buffers[] = {x, y, t, n, h, arena_bytes};

    for (int i = 0; i < 16; i++)
        x[i] = noise(i), y[i] = -1;
    begin();
    CHECK(run(
        "func @tile kind(tile) (%a: f32[8], %b: f32[8] written, %scale in 0..9) {\n"
        "  for %i < 8 { %b[%i] = %a[%i] * f32(i64(%scale)) } }\n"
        "func @main kind(host) (%x: f32[16], %y: f32[16] written, %t: i32[4], %n: i32[1] written,\n"
        "                       %h: f16[4] written, %m: u8[256] written) {\n"
        "  region %tid in 0..7, %nt in 1..8 {\n"
        "    for %o in %tid*2//(%nt) .. (%tid+1)*2//(%nt) : 0..1 {\n"
        "      call @tile(%x + (%o*32), %y + (%o*32), %o+2) on0 } }\n"
        "  while %n[0] < i32(10) { %n[0] = %n[0] + i32(3) }\n"
        "  %y[0 : 4] = %x[4 : 4] mask(%t[0 : 4] < splat(i32(2), 4)) when ramp(i32x4, 0) != "
        "splat(i32(2), 4)\n"
        "  for %i < 4 { %h[%i] = f16(%x[read(%t[%i], 0, 3)]) }\n"
        "  alloc %r: f32x4[] @reg\n"
        "  %r[] = vec(%x[0], %x[2], %x[4], %x[6])\n"
        "  %y[12 : 4] = select(%r[] < splat(0.0, 4), splat(0.0, 4), %r[])\n"
        "  %m[0] = u8(300.7) }",
        6, buffers));
    CHECK_STR(messages(), "");
    for (int i = 4; i < 12; i++)
        CHECK(y[i] == x[i] * (i < 8 ? 2.0f : 3.0f));
    CHECK(y[0] == 0 && y[1] == x[5] && y[2] == x[2] * 2 && y[3] == x[7]);
    for (int i = 0; i < 4; i++) {
        CHECK(y[12 + i] == (x[2 * i] < 0 ? 0 : x[2 * i]));
        uint16_t want;
        dtype_put_f(DT_F16, &want, (double)x[t[i]]);
        CHECK_INT(h[i], want);
    }
    CHECK_INT(n[0], 12);
    CHECK_INT(arena_bytes[0], 255);
    end();
}

static void test_bounds(void)
{
    static const struct {
        const char *body, *message;
    } cases[] = {
        {"for %i < 5 { %x[%i] = 1.0 }", "@f: index 4 of dimension 0 of 'x' is outside 0..3"},
        {"for %i < 4 { %x[%i] = %h[%i-3] }", "index -3 of dimension 0 of 'h' is outside -2..4"},
        {"for %i < 3 { %x[%i : 2] = %h[%i+2 : 2] }",
         "index 5 of dimension 0 of 'h' is outside -2..4"},
        {"%x[0] = %h[4] %x[0] = %h[0-2]", ""},
        {"%x[0] = select(1.0 < 0.0, %x[9], 2.0)", ""},
        {"for %i < 4 { %x[%i] = select(%i < 2, %x[%i+2], %x[%i-2]) }", ""},
        {"for %i < 4 { block b [i<3=%i] { %x[i] = 1.0 } }",
         "@f: block b: 'i' is 3, outside its range 0..2"},
        {"for %i < 4 { block b [i<3=%i] where %i < 3 { %x[i] = 1.0 } }", ""},
        {"for %i < 4 : 0..2 { %x[0] = 1.0 }", "'i' is 3, outside its range 0..2"},
        {"%x[read(%t[0], 0, 3)] = 1.0", "an index read from memory is 9, outside 0..3"},
        {"%x[0] = case(%n; 1.0, 2.0)", "arm 2 of a case with 2"},
        {"fail 7", "@f: fails with code 7"},
        {"call @g(%x)", "there is no function @g"},
        {"%x[0 : 4] = %x[1 : 4] mask(ramp(i32x4, 1) < splat(i32(4), 4))", ""},
        {"%x[1 : 4] = splat(0.0, 4) when ramp(i32x4, 1) < splat(i32(4), 4)", ""},
        {"%x[1 : 4] = splat(0.0, 4)", "index 4 of dimension 0 of 'x'"},
        {"alloc %p: f32[2] halo(0:1+1)=0.0 @private %p[-1] = 1.0 %p[2] = 2.0 %x[0] = %p[-1]", ""},
        {"return %x[9] = 1.0", ""},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        float            x[4] = {1, 2, 3, 4}, h[7] = {0};
        int32_t          t[1] = {9};
        void            *buffers[] = {x, h + 2, t};
        int64_t          two = 2;
        const TirModule *m;
        begin();
        m = parse(arena_printf(arena,
                               "func @f kind(kernel) (%%x: f32[4], %%h: f32[4] halo(0:2+1)=0.0, "
                               "%%t: i32[1], %%n in 0..2) { %s }",
                               cases[i].body));
        CHECK_STR(messages(), "");
        if (m)
            CHECK_INT(tir_eval(c, m, m->funcs[0], 3, buffers, 1, &two), !*cases[i].message);
        if (!strstr(messages(), cases[i].message) || (!*cases[i].message && *messages()))
            CHECK_STR(messages(), cases[i].message);
        end();
    }
}

/* ---- substitution --------------------------------------------------------------------------------------- */

static void test_subst(void)
{
    begin();
    const TirModule *m =
        parse("func @f kind(kernel) (%x: f32[64], %t: i32[64], %i in 0..7) {\n"
              "  for %j < 8 { if %i < 4 { %x[read(%t[%i*8+%j], 0, 63)] = %x[%i//2+%j] } } }");
    IdxSubst *s = subst_new(c->arith, arena);
    subst_bind(s, m->funcs[0]->params[2].scalar, idx_const(c->arith, 3));
    const Func *f = func_with_body(c, m->funcs[0], stmt_subst(c, m->funcs[0]->body, s));
    m = tirmod_new(c, 1, &f);
    CHECK_STR(print(m), "func @f kind(kernel) (%x: f32[64], %t: i32[64], %i in 0..7) {\n"
                        "  for %j < 8 {\n"
                        "    %x[read(%t[%j+24], 0, 63)] = %x[%j+1]\n"
                        "  }\n"
                        "}\n");
    end();
}

int main(void)
{
    RUN(test_round_trip);
    RUN(test_labels);
    RUN(test_label_scopes);
    RUN(test_names);
    RUN(test_hash);
    RUN(test_parse_errors);
    RUN(test_parse_hostile);
    RUN(test_verify);
    RUN(test_matmul);
    RUN(test_conv);
    RUN(test_features);
    RUN(test_bounds);
    RUN(test_subst);
    return check_result();
}
