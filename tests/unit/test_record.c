/* The rows of ir/tir/record.def against include/tvmcc/abi.h: the layout of this machine by
 * offsetof, that of 32-bit pointers by the sizes that the header asserts there; and the interpreter
 * over structs. */
#include "ir/tir/tir.h"
#include "tests/unit/check.h"
#include "tvmcc/abi.h"

#include <string.h>

enum { HERE = 8 * sizeof(void *) };

/* What of it is in the header. */
typedef struct {
    void    *params, *inputs, *outputs, *arena, *weights, *here, *here_weights;
    uint32_t parts;
    int32_t  phase, stop;
    void    *dims;
    int32_t  status;
} tvmcc_run;

static void test_offsets(void)
{
    const AbiRecord *r = NULL;

#define RECORD(name) CHECK((r = record_find(#name)) != NULL);
#define MEMBER(record, name, type)                                                              \
    CHECK_INT(record_offset(r, record_member(r, #name), HERE), offsetof(tvmcc_##record, name)); \
    CHECK_INT(abi_bytes(ABI_##type, HERE), sizeof(((tvmcc_##record *)0)->name));
#define END(name) CHECK_INT(record_bytes(r, HERE), sizeof(tvmcc_##name));
#include "ir/tir/record.def"
#undef RECORD
#undef MEMBER
#undef END
}

static void test_32_bits(void)
{
    static const struct {
        const char *record;
        uint32_t    bytes;
    } rows[] = {{"params", 72},      {"device", 100},     {"place", 12},     {"arg", 12},
                {"value", 20},       {"tensor_info", 44}, {"pool_info", 16}, {"weight_info", 52},
                {"model_info", 180}, {"kernel_info", 28}, {"code_part", 8},  {"code", 20},
                {"program", 24}};

    for (size_t i = 0; i < COUNT(rows); i++)
        CHECK_INT(record_bytes(record_find(rows[i].record), 32), rows[i].bytes);
}

/* Checks of a run, with structs of C. */
static int64_t ran(Ctx *c, const tvmcc_params *p)
{
    static const char text[] =
        "func @f kind(entry) sig(noted) (%p: params[]) {\n"
        "  if addr(%p[]) == handle(0) { return (i32(-1)) }\n"
        "  if %p[].struct_bytes < u32(8) || %p[].arena == handle(0) { return (i32(-3)) }\n"
        "  view %x: i32[2] = %p[].arena\n"
        "  switch %x[0] { < 1 { return (%x[1]) } < 5 { %x[1] = i32(7) } }\n"
        "  return (i32(%p[].threads))\n"
        "}\n"
        "func @g kind(kernel) (%p: u8[8], %out: i32[1] written) {\n"
        "  alloc %r: i32[] @reg\n"
        "  %r[] = invoke noted @f(addr(%p[0]))\n"
        "  %out[0] = %r[]\n"
        "}\n";
    const TirModule *m = tir_parse(c, "t.tir", (Bytes){(const uint8_t *)text, strlen(text)});
    int32_t          out = 99;
    void            *buffers[2] = {(void *)(uintptr_t)p, &out};

    CHECK(m && tir_verify(c, m, TIR_FLAT));
    CHECK(m && tir_eval(c, m, m->funcs[1], 2, buffers, 0, NULL));
    return out;
}

static void test_eval(void)
{
    Arena       *arena = arena_new(NULL);
    Ctx         *c = ctx_new(arena, diags_new(arena), (OpTable){0});
    int32_t      cells[2] = {0, 42};
    tvmcc_params p = {.struct_bytes = sizeof p, .threads = 3};

    CHECK_INT(ran(c, &p), -3);
    p.arena = cells;
    CHECK_INT(ran(c, &p), 42);
    cells[0] = 4;
    CHECK_INT(ran(c, &p), 3);
    CHECK_INT(cells[1], 7);
    cells[0] = 5;
    cells[1] = 0;
    CHECK_INT(ran(c, &p), 3);
    CHECK_INT(cells[1], 0);
    ctx_free(c);
    arena_free(arena);
}

int main(void)
{
    RUN(test_offsets);
    RUN(test_32_bits);
    RUN(test_eval);
    return check_result();
}
