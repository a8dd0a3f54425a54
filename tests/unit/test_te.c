/* Tensor expressions: text, the first nest, names, counts, and texts that are refused.  What
 * operators make of them is in test_ops.c. */
#include "tests/unit/check.h"

#include "ir/te/te.h"
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

static void room_free(Room r)
{
    ctx_free(r.c);
    arena_free(r.arena);
}

static const TeFunc *parse(Room r, const char *text)
{
    return te_parse(r.c, "t.te", (Bytes){(const uint8_t *)text, strlen(text)});
}

static const char *print(Room r, const TeFunc *f)
{
    StrBuf s = strbuf(r.arena);

    te_print(r.c, f, &s);
    return s.at;
}

static const char *errors(Room r)
{
    StrBuf s = strbuf(r.arena);

    diag_print(r.diags, DIAG_TEXT, &s);
    return s.at ? s.at : "";
}

static const char conv[] =
    "te @conv_relu(%d: f32[1,2,6,6] halo(2:1+1, 3:1+1)=0.0, %w: f32[4,2,3,3] @const) -> (%y)"
    " loc(\"net.onnx\":3 \"Conv_3\") {\n"
    "  %pad[n<1,c<2,y<8,x<8]: f32 = select(1 <= y && y < 7 && 1 <= x && x < 7, "
    "%d[0,c,y-1,x-1], 0.0)\n"
    "  %conv[n<1,o<4,y<6,x<6]: f32 = sum[c<2,kh<3,kw<3] %pad[0,c,kh+y,kw+x] * %w[o,c,kh,kw]\n"
    "  %y[i0<1,i1<4,i2<6,i3<6]: f32 = select(%conv[0,i1,i2,i3] < 0.0, 0.0, %conv[0,i1,i2,i3])\n"
    "}\n";

static void test_text(void)
{
    Room          r = room();
    const TeFunc *f = parse(r, conv);

    CHECK(f != NULL);
    if (f) {
        CHECK_STR(print(r, f), conv);
        CHECK_INT(te_macs(r.c, f), 4 * 36 * 2 * 9);
        CHECK_INT(te_defs(r.c, f).n, 3);
        CHECK(f->params[0]->buffer->halo != NULL);
    }
    CHECK_STR(errors(r), "");
    room_free(r);
}

static void test_nest(void)
{
    Room          r = room();
    const TeFunc *f = parse(r, "te @rows(%x: f32[3,5]) -> (%out) {\n"
                               "  %sum[i<3]: f32 = sum[k<5] %x[i,k]\n"
                               "  %out[i<3,k<5]: f32 = %x[i,k] / %sum[i]\n"
                               "}\n");
    StrBuf        s = strbuf(r.arena);

    CHECK(f != NULL);
    if (f)
        func_print(r.c, te_lower(r.c, f, NULL), &s);
    CHECK_STR(s.at, "func @rows kind(kernel) (%x: f32[3,5], %out: f32[3,5] written) macs 15 {\n"
                    "  alloc %sum: f32[3]\n"
                    "  for %i < 3 {\n"
                    "    for %k < 5 reduce {\n"
                    "      block sum [i<3=%i; k<5=%k] {\n"
                    "        init %sum[i] = 0.0\n"
                    "        %sum[i] = %sum[i] + %x[i,k]\n"
                    "      }\n"
                    "    }\n"
                    "  }\n"
                    "  for %i < 3 {\n"
                    "    for %k < 5 {\n"
                    "      block out [i<3=%i, k<5=%k] {\n"
                    "        %out[i,k] = %x[i,k] / %sum[i]\n"
                    "      }\n"
                    "    }\n"
                    "  }\n"
                    "}\n");
    room_free(r);
}

/* Two definitions of one name, a result that is a parameter, the same result twice. */
static void test_names(void)
{
    Room          r = room();
    int64_t       dim = 2;
    Ctx          *c = r.c;
    StrBuf        s = strbuf(r.arena);
    const Type   *t = type_tensor_i64(c, DT_F32, 1, &dim);
    const Tensor *x = te_param(c, "out", t, false, NULL);
    Axes          a = te_axes_of(c, t);
    const Tensor *y = te_compute(c, "out", DT_F32, a, prim_neg(c, te_at(c, x, a.at)));
    const Tensor *outs[] = {y, x, y};
    TeFunc        f = {.name = "f", .nparams = 1, .params = &x, .nouts = 3, .outs = outs};

    func_print(c, te_lower(c, &f, NULL), &s);
    CHECK_STR(s.at,
              "func @f kind(kernel) (%out: f32[2], %out.1: f32[2] written, %out.2: f32[2] written, "
              "%out.3: f32[2] written) {\n"
              "  for %i0 < 2 {\n"
              "    block out.1 [i0<2=%i0] {\n"
              "      %out.1[i0] = -0.0 - %out[i0]\n"
              "    }\n"
              "  }\n"
              "  for %i0 < 2 {\n"
              "    block out.2 [i0<2=%i0] {\n"
              "      %out.2[i0] = %out[i0]\n"
              "    }\n"
              "  }\n"
              "  for %i0 < 2 {\n"
              "    block out.3 [i0<2=%i0] {\n"
              "      %out.3[i0] = %out.1[i0]\n"
              "    }\n"
              "  }\n"
              "}\n");
    room_free(r);
}

static void check_refused(const char *text, const char *message)
{
    Room r = room();

    CHECK(!parse(r, text));
    if (!strstr(errors(r), message)) {
        printf("%s\n  gives: %s", text, errors(r));
        CHECK(!"another message");
    }
    room_free(r);
}

/* A scan of two directions: `first` stands before the rounds, `each` in them, `last` behind. */
static const char *scan(Room r, const char *first, const char *each, const char *last)
{
    return arena_printf(
        r.arena,
        "te @f(%%x: f32[4,2]) -> (%%y) {\n  scan t<4 [d<2] {\n%s    each {\n%s    }\n%s"
        "  }\n}\n",
        first, each, last);
}

#define H0 "    %h[d<2,0<5,j<2]: f32 = %x[0,j]\n"
#define H1 "      %h[d<2,t+1<5,j<2]: f32 = %h[d,t,j] + %x[t,j]\n"
#define Y "      %y[min(-d*4-t+7, d*4+t)<4,d<2,j<2]: f32 = %h[d,t+1,j]\n"

static void test_scan(void)
{
    Room          r = room();
    const char   *text = scan(r, H0, H1 Y, "    %last[d<2,j<2]: f32 = %h[d,4,j]\n");
    const TeFunc *f = parse(r, text);
    StrBuf        out = strbuf(r.arena);

    CHECK_STR(print(r, f), text);
    CHECK_INT(te_defs(r.c, f).n, 3); /* together, though nobody reads %last */
    func_print(r.c, te_lower(r.c, f, NULL), &out);
    CHECK(strstr(out.at, "for %t < 4 seq {"));
    CHECK(strstr(out.at, "block h.init [d<2=%d, j<2=%j] {"));
    CHECK(strstr(out.at, "block h [d<2=%d, t<4=%t, j<2=%j] {"));
    room_free(r);
}

static void check_scan(const char *first, const char *each, const char *last, const char *message)
{
    Room        r = room();
    const char *text = scan(r, first, each, last);

    CHECK(!parse(r, text));
    if (!strstr(errors(r), message)) {
        printf("%s\n  gives: %s", text, errors(r));
        CHECK(!"another message");
    }
    room_free(r);
}

/* Every cell has one value, and nothing is read that is not there yet. */
static void test_scan_refused(void)
{
    check_scan("", "      %y[t<4,d<2]: f32 = %h[d,t,0]\n", "", "'%h' is not declared");
    check_scan("", H1 Y, "", "'%h' is not declared");
    check_scan(H0, "      %y[t<4,d<2,j<2]: f32 = %h[d,t+1,j]\n" H1, "",
               "'%h' is read at another round");
    check_scan(H0, H1 "      %y[t<4,d<2,j<2]: f32 = %h[d,0,j]\n", "",
               "'%h' is read at another round");
    check_scan(H0, H1 "      %y[t<4,d<2,j<2]: f32 = %h[1-d,t,j]\n", "",
               "'%h' is read where another outer cell is computed");
    check_scan(H0, H1 "      %y[t<4,d<2]: f32 = %x[i64(%h[d,t,0]),0]\n", "", "expected");
    check_scan(H0, H1 "      %y[t<4,d<2]: f32 = %x[read(i32(%h[d,t-1,0]), 0, 3),0]\n", "",
               "'%h' is read at another round");
    check_scan(H0, H1 "      %y[d<2,j<2]: f32 = 0.0\n", "", "'%y' has no dimension for the rounds");
    check_scan(H0, H1 "      %y[t<4,j<2]: f32 = 0.0\n", "",
               "'%y' is not given one cell for each of the axes");
    check_scan(H0, H1 "      %y[t+1<4,d<2]: f32 = 0.0\n", "",
               "'%y' is not given a cell of its own by each round");
    check_scan(H0, H1 "      %y[t//2<4,d<2]: f32 = 0.0\n", "",
               "'%y' is not given a cell of its own by each round");
    check_scan(H0, H1 "      %y[t<5,d<2]: f32 = 0.0\n", "", "'%y' is not given all of its cells");
    check_scan(H0, "      %h[d<2,t<5,j<2]: f32 = 0.0\n" Y, "",
               "'%h' is carried, and not from cell 0 to that after each round");
    check_scan(H0, "      %h[d<2,t+1<6,j<2]: f32 = 0.0\n" Y, "", "'%h' has another type above");
    check_scan(H0, H1 H1 Y, "", "'%h' is defined twice");
    check_scan(H0 H0, H1 Y, "", "'%h' is defined twice");
    check_scan("    %h[d<2,0<5,j<2]: f32 = 0.0\n", "      %y[t<4,d<2]: f32 = 0.0\n", "",
               "'%h' is not given all of its cells");
    check_refused("te @f() -> (%y) { scan t<4 { each { } } }", "a scan without definitions");
}

static void test_refused(void)
{
    check_refused("te @f(%x: f32[2]) -> (%y) {\n  %z[i<2]: f32 = %x[i]\n}", "'%y' is not defined");
    check_refused("te @f(%x: f32[2]) -> (%y) {\n  %y[i<2]: i32 = %x[i]\n}", "its cells are f32");
    check_refused("te @f(%x: f32[2]) -> (%y) {\n  %y[i<2]: f32 = %z[i]\n}", "'%z' is not declared");
    check_refused("te @f(%x: f32[2]) -> (%y) {\n  %y[i<2]: f32 = any[k<2] %x[i]\n}", "'%y' is f32");
    check_refused("te @f(%x: f32[2,2,2,2,2,2,2,2,2]) -> (%x) {}", "more than 8 dimensions");
    check_refused("te @f() -> (%y) { %y[a<1,b<1,c<1,d<1,e<1,f<1,g<1,h<1,i<1]: f32 = 0.0 }",
                  "more than 8 axes");
    check_refused("te @f(%x: f32[2]) -> (%x) {", "expected");
    check_refused("te @f(%x: f32[2]) -> (%x) { } te", "the end of the text");
}

int main(void)
{
    RUN(test_text);
    RUN(test_nest);
    RUN(test_names);
    RUN(test_scan);
    RUN(test_scan_refused);
    RUN(test_refused);
    return check_result();
}
