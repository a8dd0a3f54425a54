/* Instructions that the LLVM backend writes, also those that this machine cannot run. */
#include "backends/backend.h"
#include "tests/unit/context.h"

/* Rows of backends/llvm/intrin.def: the assembly has the instruction where the CPU does, and is
 * without it elsewhere. */
static void test_instructions(void)
{
    static const struct {
        const char *cpu, *name, *a, *b, *sum; /* operands: type and cells */
        const char *want, *not;
    } cases[] = {
        {"cascadelake", "dot4", "u8 64", "i8 64", "i32 16", "vpdpbusd", "vpmaddwd"},
        {"haswell", "dot4", "u8 32", "i8 32", "i32 8", "vpmaddwd", "vpdpbusd"},
        {"haswell", "dot2", "i16 16", "i16 16", "i32 8", "vpmaddwd", "vpmulld"},
        {"cooperlake", "bfdot", "bf16 32", "bf16 32", "f32 16", "vdpbf16ps", "vmulps"},
        {"cooperlake", "bfdot", "bf16 2", "bf16 16", "f32 8", "vdpbf16ps", "zmm"},
        {"znver4", "bfdot", "bf16 8", "bf16 8", "f32 4", "vdpbf16ps", "ymm"},
        {"cascadelake", "bfdot", "bf16 32", "bf16 32", "f32 16", "vmulps", "vdpbf16ps"},
        {"znver4 -mattr=-avx512bf16", "bfdot", "bf16 8", "bf16 8", "f32 4", "vmulps", "vdpbf16ps"},
        {"sapphirerapids -mattr=+amx-int8", "tile4", "u8 1024", "i8 1024", "i32 256", "tdpbusd",
         "vpmulld"},
        {"sapphirerapids -mattr=+amx-int8", "tile4", "u8 1024", "i8 1024", "i32 256", "tilerelease",
         "vpmulld"},
        {"cortex-a76 -mtriple=aarch64-linux-gnu", "dot4", "i8 16", "i8 16", "i32 4", "sdot",
         "smull"},
        {"cortex-a76 -mtriple=aarch64-linux-gnu", "dot4", "u8 4", "u8 16", "i32 4", "udot",
         "umull"},
        {"cortex-a72 -mtriple=aarch64-linux-gnu", "dot4", "i8 16", "i8 16", "i32 4", "smull",
         "sdot"},
        {"neoverse-v2 -mtriple=aarch64-linux-gnu", "mmla", "i8 16", "i8 16", "i32 4", "smmla",
         "smull"},
        {"neoverse-v2 -mtriple=aarch64-linux-gnu", "mmla", "u8 16", "i8 16", "i32 4", "usmmla",
         "umull"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        begin();
        const char *x86 = strstr(cases[i].cpu, "-mtriple") ? "" : " -mtriple=x86_64-linux-gnu";
        const char *name[3] = {cases[i].a, cases[i].b, cases[i].sum};
        char        type[3][8];
        int         n[3];
        for (int k = 0; k < 3; k++)
            CHECK_INT(sscanf(name[k], "%7s %d", type[k], &n[k]), 2);
        c->target =
            backend_llvm.parse_target(c, arena_printf(arena, "llvm%s -mcpu=%s", x86, cases[i].cpu));
        const char *text = arena_printf(
            arena,
            "func @f kind(kernel) target(\"%s\") (%%a: %s[%d], %%b: %s[%d], %%c: %s[%d] written) {"
            " %%c[0 : %d] = %s(%%a[0 : %d], %%b[0 : %d], %%c[0 : %d]) }",
            c->target ? c->target->text : "", type[0], n[0], type[1], n[1], type[2], n[2], n[2],
            cases[i].name, n[0], n[1], n[2]);
        const TirModule *m = tir_parse(c, "case", (Bytes){(const uint8_t *)text, strlen(text)});
        CHECK(c->target && m);
        if (c->target && m) {
            const CodegenInfo info = {0};
            CodegenOptions    o = {.entry = "net", .opt_level = 2, .pic = true};
            Plan              p = {.name = "net", .target = c->target, .tir = m};
            Bytes             out = {0};
            o.host = tirmod_new(c, 0, NULL);
            CHECK(backend_llvm.codegen(c, &p, &o, &info, EMIT_ASM, &out));
            const char *code = arena_printf(arena, "%.*s", (int)out.n, (const char *)out.at);
            if (!strstr(code, cases[i].want) || strstr(code, cases[i].not))
                printf("%s, %s:\n%s\n", cases[i].cpu, cases[i].name, code);
            CHECK(strstr(code, cases[i].want) && !strstr(code, cases[i].not));
        }
        end();
    }
}

int main(void)
{
    RUN(test_instructions);
    return check_result();
}
