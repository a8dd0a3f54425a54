/* LLVM IR of a GPU's kernel to IR of this machine, and that to a shared library.
 *
 *     define ptx_kernel void @k(ptr addrspace(1) %x, i64 %0) { .. @llvm.nvvm.barrier0() .. }
 *     define            void @k(ptr              %x, i64 %0) { .. @mock_nvvm.barrier0() .. }
 *
 * Spaces of addresses go, intrinsics of the GPU become functions of llvm_on_cpu.h, and what a block
 * shares is a variable that others may see.  Nothing else is touched: what is run is what LLVM
 * would have made the GPU's code of. */
#include "mock.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is replaced: of two that fit, the first. */
static const struct {
    const char *from, *to;
} words[] = {
    {", addrspace(5)", ""},
    {" addrspace(1)", ""},
    {" addrspace(3)", ""},
    {" addrspace(5)", ""},
    {"internal global", "global"},
    {"ptx_kernel ", ""},
    {"amdgpu_kernel ", ""},
    {"@llvm.nvvm.", "@mock_nvvm."},
    {"@llvm.amdgcn.", "@mock_amdgcn."},
    {"asm sideeffect \"cp.async.cg.shared.global [$0], [$1], 16;\", \"r,l,~{memory}\"",
     "@mock_cp_async"},
    {"asm sideeffect \"cp.async.cg.shared.global [$0], [$1], 16, $2;\", \"r,l,r,~{memory}\"",
     "@mock_cp_async_where"},
    {"asm \"dp4a.u32.u32 $0, $1, $2, $3;\", \"=r,r,r,r\"", "@mock_dot4_u8_u8"},
    {"asm \"dp4a.u32.s32 $0, $1, $2, $3;\", \"=r,r,r,r\"", "@mock_dot4_u8_i8"},
    {"asm \"dp4a.s32.u32 $0, $1, $2, $3;\", \"=r,r,r,r\"", "@mock_dot4_i8_u8"},
    {"asm \"dp4a.s32.s32 $0, $1, $2, $3;\", \"=r,r,r,r\"", "@mock_dot4_i8_i8"},
    {"syncscope(\"workgroup\") ", ""},
};

static bool starts(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

/* ".p3", of the name of an intrinsic. */
static bool is_space(const char *at)
{
    return at[0] == '.' && at[1] == 'p' && strchr("135", at[2]) && !isalnum((unsigned char)at[3]);
}

/* What stands in the place of text of the GPU has no declaration. */
#define DOT(types) "declare i32 @mock_dot4_" types "(i32, i32, i32)\n"
static const char declared[] = "declare void @mock_cp_async(i32, i64)\n"
                               "declare void @mock_cp_async_where(i32, i64, i32)\n" DOT("u8_u8")
                                   DOT("u8_i8") DOT("i8_u8") DOT("i8_i8");

static void replace(FILE *out, const char *text)
{
    while (*text) {
        size_t i = 0;

        if (starts(text, "target ")) { /* of the machine: a line */
            text += strcspn(text, "\n");
            continue;
        }
        while (i < sizeof words / sizeof *words && !starts(text, words[i].from))
            i++;
        if (i < sizeof words / sizeof *words) {
            fputs(words[i].to, out);
            text += strlen(words[i].from);
        } else if (is_space(text)) {
            fputs(".p0", out);
            text += 3;
        } else {
            fputc(*text++, out);
        }
    }
    fputs(declared, out);
}

/* ---- instructions of warps ------------------------------------------------------------------------ */

/* They give structs, which C does not return as LLVM does: of functions of llvm_on_cpu.h, which
 * store them. */
#define FOUR(t) t ", " t ", " t ", " t
#define PUT(n, t, i)                                                                    \
    "  %" n #i ".p = getelementptr " t ", ptr %" n ", i32 " #i "\n  store " t " %" n #i \
    ", ptr %" n #i ".p\n"
#define MMA(name, function, c, ab)                                                                \
    "define {" FOUR(                                                                              \
        c) "} @mock_nvvm.mma." name "(" ab " %a0, " ab " %a1, " ab " %a2, " ab " %a3, " ab        \
           " %b0, " ab " %b1, " c " %c0, " c " %c1, " c " %c2, " c " %c3) {\n"                    \
           "  %a = alloca [4 x i32]\n  %b = alloca [2 x i32]\n  %c = alloca {" FOUR(c) "}\n" PUT( \
               "a", ab, 0) PUT("a", ab, 1) PUT("a", ab, 2) PUT("a", ab, 3) PUT("b", ab, 0)        \
               PUT("b", ab, 1) PUT("c", c, 0) PUT("c", c, 1) PUT("c", c, 2)                       \
                   PUT("c", c, 3) "  call void @mock_" function "(ptr %c, ptr %a, ptr %b)\n"      \
                                  "  %s = load {" FOUR(c) "}, ptr %c\n  ret {" FOUR(              \
                                      c) "} %s\n}\n"                                              \
                                         "declare void @mock_" function "(ptr, ptr, ptr)\n"
#define LDMATRIX(n, s)                                                                  \
    "define {" s "} @mock_nvvm.ldmatrix.sync.aligned.m8n8.x" n ".b16.p0(ptr %from) {\n" \
    "  %c = alloca {" s "}\n  call void @mock_ldmatrix" n "(ptr %c, ptr %from)\n"       \
    "  %s = load {" s "}, ptr %c\n  ret {" s "} %s\n}\n"                                \
    "declare void @mock_ldmatrix" n "(ptr, ptr)\n"

static const char warps[] = MMA("m16n8k16.row.col.f32.f32", "mma_f16", "float", "<2 x half>")
    MMA("m16n8k16.row.col.bf16", "mma_bf16", "float", "i32")
        MMA("m16n8k32.row.col.s8", "mma_s8", "i32", "i32")
            MMA("m16n8k32.row.col.u8", "mma_u8", "i32", "i32")
                MMA("m16n8k32.row.col.u8.s8", "mma_u8s8", "i32", "i32")
                    MMA("m16n8k32.row.col.s8.u8", "mma_s8u8", "i32", "i32")
                        LDMATRIX("4", FOUR("i32")) LDMATRIX("2", "i32, i32");

/* Of AMD's: vectors, which C passes in another way than LLVM. */
#define AMD_WITH(name, function, c, ab, first, second, rest, given)                               \
    "define " c " @mock_amdgcn." name "(" first ab " %a, " second ab " %b, " c " %c" rest ") {\n" \
    "  %ap = alloca " ab "\n  %bp = alloca " ab "\n  %cp = alloca " c "\n"                        \
    "  store " ab " %a, ptr %ap\n  store " ab " %b, ptr %bp\n  store " c " %c, ptr %cp\n"         \
    "  call void @mock_amd_" function "(ptr %cp, ptr %ap, ptr %bp" given ")\n"                    \
    "  %s = load " c ", ptr %cp\n  ret " c " %s\n}\n"
#define MFMA(name, function, c, ab)                                                 \
    AMD_WITH("mfma." name, function, c, ab, "", "", ", i32 %x, i32 %y, i32 %z", "") \
    "declare void @mock_amd_" function "(ptr, ptr, ptr)\n"
#define WMMA(type, function, n, ab)                                                              \
    AMD_WITH("wmma.f32.16x16x16." type ".v8f32." n, function, "<8 x float>", ab, "", "", "", "") \
    "declare void @mock_amd_" function "(ptr, ptr, ptr)\n"
#define WMMA_BYTES(function, n, ab)                                                               \
    AMD_WITH("wmma.i32.16x16x16.iu8.v8i32." n, function, "<8 x i32>", ab, "i1 %sa, ", "i1 %sb, ", \
             ", i1 %clamp", ", i1 zeroext %sa, i1 zeroext %sb")                                   \
    "declare void @mock_amd_" function "(ptr, ptr, ptr, i1 zeroext, i1 zeroext)\n"

static const char amd_warps[] = MFMA("f32.16x16x16f16", "mfma_f16", "<4 x float>", "<4 x half>")
    MFMA("f32.16x16x16bf16.1k", "mfma_bf16", "<4 x float>", "<4 x i16>")
        MFMA("i32.16x16x32.i8", "mfma_s8k32", "<4 x i32>", "i64")
            MFMA("i32.16x16x16i8", "mfma_s8", "<4 x i32>", "i32")
                WMMA("f16", "wmma3_f16", "v16f16", "<16 x half>")
                    WMMA("f16", "wmma4_f16", "v8f16", "<8 x half>")
                        WMMA("bf16", "wmma3_bf16", "v16i16", "<16 x i16>")
                            WMMA("bf16", "wmma4_bf16", "v8i16", "<8 x i16>")
                                WMMA_BYTES("wmma3_bytes", "v4i32", "<4 x i32>")
                                    WMMA_BYTES("wmma4_bytes", "v2i32", "<2 x i32>");

/* ---- kernels --------------------------------------------------------------------------------------- */

/* The product of the numbers behind each of `words`, of blocks that have so many threads. */
static int threads_of(const char *text)
{
    static const char *const axes[] = {"!\"reqntidx\", i32 ", "!\"reqntidy\", i32 ",
                                       "!\"reqntidz\", i32 "};
    const char              *at = strstr(text, "\"amdgpu-flat-work-group-size\"=\"");
    int                      n = 1, any = 0;

    if (at)
        return atoi(strchr(at, ',') + 1);
    for (int i = 0; i < 3; i++)
        if ((at = strstr(text, axes[i]))) {
            n *= atoi(at + strlen(axes[i]));
            any = 1;
        }
    return any ? n : MOCK_THREADS;
}

/* Pointers and numbers of 64 bits are passed alike. */
static void add_entry(FILE *out, const char *text)
{
    const char *at = strstr(text, "_kernel void @"),
               *name = at ? at + strlen("_kernel void @") : "";
    int n = (int)strcspn(name, "("), params = 0, depth = 0;

    fprintf(out, "#define MOCK_WAVE %d\n", strstr(text, "+wavefrontsize64") ? 64 : 32);
    fprintf(out, "#include \"%s/llvm_on_cpu.h\"\nextern \"C\" void %.*s(", MOCK_FOLDER, n, name);
    for (at = name + n; *at; at++) {
        depth += (*at == '(') - (*at == ')');
        if (!depth)
            break;
        if ((depth == 1 && *at == ',') || (*at == '(' && depth == 1 && at[1] != ')'))
            fprintf(out, "%slong long", params++ ? ", " : "");
    }
    fprintf(out, ");\nMOCK_KERNEL(%.*s, %d, %d)\n", n, name, threads_of(text),
            strstr(text, "barrier") || strstr(text, "mma.") || strstr(text, "mfma.") ||
                strstr(text, "ldmatrix") || strstr(text, "shfl.") || strstr(text, "bpermute"));
}

static char *printed(void (*print)(FILE *, const char *), const char *text)
{
    char  *out = NULL;
    size_t n = 0;
    FILE  *f = open_memstream(&out, &n);

    print(f, text);
    fclose(f);
    return out;
}

void *mock_retarget(const char *text, size_t *bytes, char **log)
{
    char *kernel = printed(replace, text), *entry = printed(add_entry, text);
    void *code;

    code =
        mock_compile(entry, kernel, strstr(text, "amdgpu_kernel ") ? amd_warps : warps, bytes, log);
    free(kernel);
    free(entry);
    return code;
}
