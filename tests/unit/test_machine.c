/* Machines: what is known of CPUs, and which figure counts. */
#include "tests/unit/check.h"

#include "backends/backend.h"
#include "machine/machine.h"
#include "ops/ops.h"

static Arena *arena;
static Ctx   *c;

static void begin(void)
{
    arena = arena_new(NULL);
    c = ctx_new(arena, diags_new(arena), op_table);
}

static void end(void)
{
    ctx_free(c);
    arena_free(arena);
}

static Machine machine(const char *words)
{
    return machine_of(backend_llvm.parse_target(c, arena_printf(arena, "llvm %s", words)));
}

/* Each CPU of the backend is known here, by the same name, and the other way round. */
static void test_tables_agree(void)
{
    enum { ARCH_X86, ARCH_AARCH64, ARCH_ARM, ARCH_RISCV, ARCH_WASM };
    static const char *const archs[] = {"x86", "aarch64", "arm", "riscv", "wasm"};
    static const struct {
        int         arch;
        const char *name;
    } targets[] = {
#define CPU(arch, name, llvm, caps) {ARCH_##arch, name},
#include "backends/llvm/cpu.def"
#undef CPU
    };
    static const struct {
        const char *arch, *name;
    } machines[] = {
#define CPU(arch, name, l1, l2, l3, ...) {#arch, name},
#include "machine/cpus.def"
#undef CPU
    };

    CHECK_INT(COUNT(targets), COUNT(machines));
    for (size_t i = 0; i < COUNT(targets) && i < COUNT(machines); i++) {
        CHECK_STR(archs[targets[i].arch], machines[i].arch);
        CHECK_STR(targets[i].name, machines[i].name);
    }
}

static void test_known(void)
{
    begin();
    Machine m = machine("-mtriple=x86_64-linux-gnu -mcpu=cascadelake");
    CHECK_INT(m.fma_bytes, 128);
    CHECK_INT(m.l2, 1 << 20);
    CHECK_INT(m.from[FIGURE_l2], FROM_CPU);
    CHECK_INT(m.from[FIGURE_vector_bytes], FROM_FEATURES);
    CHECK_INT(m.from[FIGURE_latency], FROM_RULE);
    /* units as wide as vectors may be */
    CHECK_INT(machine("-mtriple=x86_64-linux-gnu -mcpu=cascadelake -mattr=-avx512f").fma_bytes, 64);
    CHECK_INT(machine("-mtriple=x86_64-linux-gnu -mcpu=znver4").fma_bytes, 64);
    CHECK_INT(machine("-mtriple=x86_64-linux-gnu -mcpu=haswell -mattr=+avx512f").fma_bytes, 64);
    /* two names of one CPU to LLVM, other caches */
    CHECK_INT(machine("-mtriple=arm64-apple-macos -mcpu=apple-m1").l2, 3072 << 10);
    CHECK_INT(machine("-mtriple=arm64-apple-macos -mcpu=apple-a14").l2, 2048 << 10);
    m = machine_of(NULL);
    CHECK_INT(m.l1, 32768);
    CHECK_INT(m.l3, 8 * m.l2);
    end();
}

int main(void)
{
    RUN(test_tables_agree);
    RUN(test_known);
    return check_result();
}
