/* Which matrices of scope frag a function has, where they lie, and what is no operation on a whole
 * one (backends/common/matrices.h). */
#include "backends/backend.h"
#include "backends/common/matrices.h"
#include "tests/unit/check.h"

#include <string.h>

#define FILL "%c[0 : 2] = splat(0.0, 2)  %c[2 : 2] = splat(1.5, 2)"
#define LOADS "%p[0 : 2] = %a[%z*96+%y*24+%x*2+8 : 2]  %q[0 : 2] = %b[%y*8+%x*2 : 2]"
#define PRODUCT "%c[2 : 2] = simdgroup_f16(%p[0 : 2], %q[0 : 2], %c[2 : 2])"
#define STORE "%s[%y*40+%x*2 : 2] = %c[2 : 2]"
#define ALL FILL "  " LOADS "  " PRODUCT "  " STORE

static const char *function(Arena *a, const Ctx *c, int threads, const char *body)
{
    return arena_printf(
        a,
        "func @k kind(device) target(\"%s\") (%%n: i32[4], %%y0: f32[64] written) {"
        "  alloc %%a: f16[800] @shared  alloc %%b: f16[800] @shared  alloc %%s: f32[640] @shared"
        "  for %%z < 2 bind(threadIdx.z) { for %%y < 8 bind(threadIdx.y) {"
        "    for %%x < %d bind(threadIdx.x) {"
        "      alloc %%c: f32[4] @frag  alloc %%p: f16[2] @frag  alloc %%q: f16[2] @frag"
        "      %s } } } }",
        c->target->text, threads, body);
}

/* The function's matrices; `hold` sees them, NULL: they are refused. */
static void check(int threads, const char *body, void (*hold)(const Func *f, const Matrices *m))
{
    Arena *a = arena_new(NULL);
    Ctx   *c = ctx_new(a, diags_new(a), (OpTable){0, NULL});

    c->target = backend_metal.parse_target(c, "metal -device=apple-m1");
    const char      *text = function(a, c, threads, body);
    const TirModule *mod = tir_parse(c, "k", (Bytes){(const uint8_t *)text, strlen(text)});
    CHECK(mod != NULL);
    const Matrices *m = mod ? find_matrices(c, mod->funcs[0]) : NULL;
    if (!hold && m)
        printf("taken: %s\n", body);
    CHECK_INT(m != NULL, hold != NULL);
    CHECK_INT(diag_errors(c->diags), !hold);
    if (!hold && diag_errors(c->diags))
        CHECK_INT(diag_at(c->diags, 0).id, E_CODEGEN);
    if (m && hold)
        hold(mod->funcs[0], m);
    ctx_free(c);
    arena_free(a);
}

typedef struct {
    const Matrices *m;
    MatrixOp        op[8];
    uint32_t        n;
} Ops;

static bool note(void *user, const Stmt *s)
{
    Ops            *o = user;
    const MatrixOp *op = s->kind == STMT_STORE ? matrix_op(o->m, &s->u.store) : NULL;

    if (op && o->n < 8)
        o->op[o->n++] = *op;
    return true;
}

static void are_all(const Func *f, const Matrices *m)
{
    Ops    o = {.m = m};
    Matrix of;

    stmt_visit(f->body, &(TirVisit){.user = &o, .enter = note});
    CHECK(has_matrices(m));
    CHECK_INT(o.n, 6);
    if (o.n == 6) {
        CHECK_INT(o.op[0].kind, MATRIX_FILL);
        CHECK_INT(o.op[1].it.at, 1);
        CHECK(o.op[1].value->u.f == 1.5);
        CHECK_INT(o.op[2].kind, MATRIX_LOAD);
        CHECK_INT(o.op[2].apart, 24);
        CHECK_INT(o.op[2].first->c0, 8);
        CHECK_INT(o.op[3].apart, 8);
        matrix_row(m, o.op[3].it.buffer, &of);
        CHECK_INT(of, MATRIX_B);
        CHECK_INT(o.op[4].kind, MATRIX_MULTIPLY);
        CHECK_INT(o.op[4].it.at, 1);
        CHECK_INT(matrix_count(m, o.op[4].it.buffer), 2);
        CHECK_INT(o.op[5].kind, MATRIX_STORE);
        CHECK_INT(o.op[5].apart, 40);
    }
}

static void are_none(const Func *f, const Matrices *m)
{
    (void)f;
    CHECK(!has_matrices(m));
}

static void test_whole(void)
{
    check(4, ALL, are_all);
    check(4, "if %z < 1 { " ALL " }", are_all); /* all threads of a warp alike */
    check(4, "%y0[%x] = 1.0", are_none);
}

static void test_parts(void)
{
    check(4, ALL "  %y0[%x] = %c[0]", NULL);           /* a thread's own number */
    check(4, ALL "  %c[0] = 1.0", NULL);               /* .. is stored */
    check(4, ALL "  %c[1 : 2] = splat(0.0, 2)", NULL); /* parts of two matrices */
    check(4, ALL "  %c[0 : 2] = %c[2 : 2] + %c[0 : 2]", NULL);
    check(4, ALL "  if %x < 2 { " FILL " }", NULL);    /* some threads */
    check(4, ALL "  if %n[0] < 2 { " FILL " }", NULL); /* perhaps */
    check(4, ALL "  for %i < %y+1 { " FILL " }", NULL);
    check(4, ALL "  %s[%y*40+%x*3 : 2] = %c[0 : 2]", NULL);         /* apart in a line */
    check(4, ALL "  %s[%y*40+%y//4*8+%x*2 : 2] = %c[0 : 2]", NULL); /* lines not as far apart */
    check(4, ALL "  %y0[%y*8+%x*2 : 2] = %c[0 : 2]", NULL);         /* not shared */
    check(8, ALL, NULL);                                            /* not a warp's threads */
}

int main(void)
{
    RUN(test_whole);
    RUN(test_parts);
    return check_result();
}
