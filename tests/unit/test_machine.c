/* Machines: what is known of CPUs, files of figures, and which of them counts. */
#include "tests/unit/check.h"

#include "backends/backend.h"
#include "ir/tir/mark.h"
#include "machine/kernel.h"
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

/* A tile of one vector loads nearly as often as it may; two vectors leave room for lines that come
 * in. */
static void test_fed(void)
{
    begin();
    Machine m = machine("-mtriple=x86_64-linux-gnu -mcpu=cascadelake");
    CHECK(fed_step_cycles(&m, 16, 25, 1) > 1.25 * tile_step_cycles(&m, 16, 25, 1));
    CHECK(fed_step_cycles(&m, 16, 12, 2) == tile_step_cycles(&m, 16, 12, 2));
    CHECK(fed_step_cycles(&m, 16, 6, 4) > tile_step_cycles(&m, 16, 6, 4));
    /* units that are half as fast leave twice as much */
    m = machine("-mtriple=x86_64-linux-gnu -mcpu=znver4");
    CHECK(fed_step_cycles(&m, 16, 25, 1) == 25);
    CHECK(asked_cycles(&m, 640) == 10);
    end();
}

/* Transforms of groups: as many instructions as start, of vectors of 64 bytes as many sums as there
 * are units for. */
static void test_group_transforms(void)
{
    begin();
    Machine m = machine("-mtriple=x86_64-linux-gnu -mcpu=znver4");
    CHECK(winograd_group_cell_cycles(&m, 8, 4, false) == 8.4 / 6 + 0.35);
    CHECK(winograd_group_cell_cycles(&m, 16, 4, false) == 8.4 / 2 + 0.7);
    CHECK(winograd_group_cell_cycles(&m, 16, 4, true) == 8.4 / 2 + 0.7);
    CHECK(winograd_group_cell_cycles(&m, 16, 2, true) == (2.6 + 9.5) / 6 + 0.7);
    end();
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
    CHECK(m.l3_rate == 10.6);
    CHECK_INT(m.from[FIGURE_memory_store], FROM_CPU);
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

/* Each GPU that is known is one that a target can name; of several the least counts. */
static void test_gpus(void)
{
    static const struct {
        const char *name;
        int64_t     units;
    } gpus[] = {
#define GPU(name, units, ...) {name, units},
#include "machine/gpus.def"
#undef GPU
    };
    static const struct {
        const char    *prefix, *word;
        const Backend *backend;
    } ways[] = {{"sm_", "cuda -arch=", &backend_cuda},
                {"gfx", "rocm -mcpu=", &backend_rocm},
                {"apple-", "metal -device=", &backend_metal},
                {"", "opencl -device=", &backend_opencl}};

    begin();
    for (size_t i = 0; i < COUNT(gpus); i++) {
        size_t w = 0;
        while (!str_starts(gpus[i].name, ways[w].prefix))
            w++;
        const char   *text = arena_printf(arena, "%s%s, llvm", ways[w].word, gpus[i].name);
        const Target *t = ways[w].backend->parse_target(c, text);
        CHECK(t != NULL);
        Machine m = machine_of(t);
        CHECK_INT(m.units, gpus[i].units);
        CHECK_INT(m.from[FIGURE_units], FROM_GPU);
        CHECK(limit_gpu_filling(&m) <= MAX_HINT); /* as text of a plan says it */
    }
    Machine m = machine_of(backend_cuda.parse_target(c, "cuda -arch=sm_90a -arch=sm_80"));
    CHECK_INT(m.units, 108);
    m = machine_of(backend_cuda.parse_target(c, "cuda -arch=compute_90"));
    CHECK_INT(m.units, 132);
    m = machine_of(backend_nvptx.parse_target(c, "nvptx -mcpu=sm_90a"));
    CHECK_INT(m.units, 132);
    CHECK_INT(m.unit_shared, 228 << 10);
    m = machine_of(backend_opencl.parse_target(c, "opencl"));
    CHECK_INT(m.from[FIGURE_units], FROM_RULE);
    end();
}

static bool read_text(const char *text, MachineFile *out)
{
    return machine_read(c->diags, arena, "board", (Bytes){(const uint8_t *)text, strlen(text)},
                        out);
}

static void test_file(void)
{
    MachineFile f, again;
    StrBuf      one, two;

    begin();
    one = strbuf(arena), two = strbuf(arena);
    CHECK(read_text("# a board\n\ntvmcc-machine 1\narch aarch64 # here\ncpu cortex-a72\r\n"
                    "l2_rate 7.25\nl2 524288\n",
                    &f));
    machine_print(arena, &f, &one);
    CHECK(read_text(one.at, &again));
    machine_print(arena, &again, &two);
    CHECK_STR(two.at, one.at);
    const Target *t = backend_llvm.parse_target(c, "llvm -mtriple=aarch64-linux-gnu");
    Machine       m = machine_of(machine_for(c, t, &f));
    CHECK(m.l2_rate == 7.25);
    CHECK_INT(m.l2, 524288);
    CHECK_INT(m.from[FIGURE_l2], FROM_FILE);
    CHECK_INT(m.l1, 32 << 10);
    CHECK_INT(m.from[FIGURE_l1], FROM_CPU);
    /* a device's host */
    t = backend_opencl.parse_target(c, "opencl, llvm -mtriple=aarch64-linux-gnu");
    t = machine_for(c, t, &f);
    CHECK(t && !t->machine && t->host->machine);
    CHECK_INT(diag_errors(c->diags), 0);
    end();
}

static void test_faults(void)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"", "board: error: this file of machine figures is empty [E0703]\n"},
        {"\nmachine\n",
         "board:2:1: error: a file of machine figures begins with 'tvmcc-machine 1', not 'machine' "
         "[E0703]\n"},
        {"tvmcc-machine 2\n",
         "board:1:1: error: version '2' of such files is not known; 1 is [E0703]\n"},
        {"tvmcc-machine 1\nl1 32768\n",
         "board:2:1: error: 'arch' is missing: the architecture of the machine [E0703]\n"},
        {"tvmcc-machine 1\narch x86\nl2_rat 3\n",
         "board:3:1: error: 'l2_rat' is no figure of a machine [E0703]\nhint: did you mean "
         "'l2_rate'?\n"},
        {"tvmcc-machine 1\narch x86\nl1\n", "board:3:1: error: 'l1' has no value [E0703]\n"},
        {"tvmcc-machine 1\narch x86\nl1 1 2\n", "board:3:1: error: 'l1' has one value [E0703]\n"},
        {"tvmcc-machine 1\narch x86\narch x86\n",
         "board:3:1: error: 'arch' is there twice [E0703]\n"},
        {"tvmcc-machine 1\narch x86\nl1 32768\nl1 32768\n",
         "board:4:1: error: 'l1' stands in line 3 already [E0703]\n"},
        {"tvmcc-machine 1\narch x86\nghz fast\n",
         "board:3:1: error: 'ghz' is a number, not 'fast' [E0703]\n"},
        {"tvmcc-machine 1\narch x86\nghz nan\n",
         "board:3:1: error: 'ghz' is a number, not 'nan' [E0703]\n"},
        {"tvmcc-machine 1\narch x86\ncores 1.5\n",
         "board:3:1: error: 'cores' is a whole number, not '1.5' [E0703]\n"},
        {"tvmcc-machine 1\narch x86\nl2_rate 0\n",
         "board:3:1: error: 'l2_rate' is 0.01 to 1024 bytes/cycle, not 0 [E0703]\n"},
        {"tvmcc-machine 1\narch x86\nregs 32\n",
         "board:3:1: error: 'regs' follows from -mcpu and -mattr, files do not say it [E0703]\n"},
    };

    for (size_t i = 0; i < COUNT(bad); i++) {
        MachineFile f;
        StrBuf      text;

        begin();
        text = strbuf(arena);
        CHECK(!read_text(bad[i].text, &f));
        diag_print(c->diags, DIAG_TEXT, &text);
        CHECK_STR(text.at, bad[i].message);
        end();
    }
}

static void test_other_machine(void)
{
    MachineFile f;
    StrBuf      text;

    begin();
    text = strbuf(arena);
    CHECK(read_text("tvmcc-machine 1\narch arm\n", &f));
    CHECK(!machine_for(c, backend_llvm.parse_target(c, "llvm -mtriple=x86_64-linux-gnu"), &f));
    diag_print(c->diags, DIAG_TEXT, &text);
    CHECK_STR(text.at, "board:2:1: error: this machine is 'arm', the target 'x86' [E0703]\n");
    end();
}

/* What goes on side by side overlaps, whatever it is added up from; what is read comes from the
 * nearest cache that holds it. */
static void test_time(void)
{
    begin();
    Machine m = machine("-mtriple=x86_64-linux-gnu -mcpu=znver4");
    Time    near = level_time(&m, LEVEL_L2, 4800), weights = fetched_time(&m, 600);

    CHECK(near.traffic[LEVEL_L2] == 100 && !near.traffic[LEVEL_L3] && !near.compute);
    CHECK(weights.ahead == 100 && time_traffic(weights) == 100);
    CHECK(time_cycles(&m, time_beside(weights, time_compute(1000))) == 1030);
    CHECK(time_cycles(&m, time_beside(near, time_compute(200))) == 230);
    CHECK(time_cycles(&m, time_beside(near, time_compute(10))) == 103);
    CHECK(time_cycles(&m, time_times(3, near)) == 300);
    m.l2_shows = 0, m.l3_shows = 0.5;
    CHECK(time_cycles(&m, time_beside(near, time_compute(200))) == 200);
    CHECK(time_cycles(&m, time_beside(level_time(&m, LEVEL_L3, 2000), time_compute(200))) == 250);
    CHECK(divided(100, 2) > 100 / 1.01 && divided(100, 1) > 150);
    end();
}

/* A 3x3 kernel's row over so many pixels, as machine/tile.c has it measured; per multiply-add. */
static double row_cycles(const Machine *m, int64_t pixels, int64_t nv, bool written)
{
    PlainRow row = {.lanes = m->vector_bytes / 4,
                    .columns = 3,
                    .rows = 9,
                    .numbers = written ? pixels + 2 : 3 * pixels,
                    .held = written ? pixels : 1,
                    .written = written};

    return plain_row_cycles(m, &row, (RegTile){pixels, nv}) / (double)(3 * pixels * nv);
}

/* Columns that are written out load each number once, while there are registers. */
static void test_plain_rows(void)
{
    begin();
    Machine narrow = machine("-mtriple=x86_64-linux-gnu -mcpu=haswell");
    Machine wide = machine("-mtriple=x86_64-linux-gnu -mcpu=cascadelake");

    CHECK(row_cycles(&narrow, 4, 2, true) < row_cycles(&narrow, 6, 2, false));
    CHECK(row_cycles(&narrow, 6, 2, false) < row_cycles(&narrow, 4, 2, false));
    CHECK(row_cycles(&narrow, 6, 2, false) < row_cycles(&narrow, 6, 2, true));
    CHECK(row_cycles(&wide, 14, 2, false) < row_cycles(&wide, 14, 2, true));
    CHECK(row_cycles(&wide, 14, 2, false) < 1.05 * row_cycles(&wide, 8, 2, true));
    CHECK(hidden_cycles(&wide, 4, 1000) == 4 && hidden_cycles(&wide, 4, 63) < 2);
    end();
}

/* Few sums wait for themselves, many small ones of them not for each other. */
static void test_short_sums(void)
{
    begin();
    Machine m = machine("-mtriple=x86_64-linux-gnu -mcpu=haswell");

    CHECK(short_sums_cycles(&m, 8, 4, 1, 1, 8) == 20);
    CHECK(short_sums_cycles(&m, 8, 4, 1, 1, 8) < 8 * conv_step_cycles(&m, 8, 4, 1, 1));
    CHECK(short_sums_cycles(&m, 8, 1, 1, 1, 200) > 1.5 * 200);
    end();
}

/* What passes between two uses decides where data lie, by shares; stores have rates of their own.
 */
static void test_moved_time(void)
{
    begin();
    Machine m = machine("-mtriple=x86_64-linux-gnu -mcpu=znver4");
    double  l2 = (double)m.l2, share[LEVELS];
    Time    near = moved_time(&m, 4800, 2400, l2 / 2), far = moved_time(&m, 4000, 52, 1e12),
         l3 = moved_time(&m, 2000, 0, 2 * l2), some = moved_time(&m, 4800, 0, l2);

    CHECK(near.traffic[LEVEL_L2] == 200 && !near.traffic[LEVEL_L3] && !near.compute);
    CHECK(far.traffic[LEVEL_MEMORY] == 510 && !far.traffic[LEVEL_L2] && !far.traffic[LEVEL_L3]);
    CHECK(l3.traffic[LEVEL_L3] == 100 && !l3.traffic[LEVEL_L2] && !l3.traffic[LEVEL_MEMORY]);
    CHECK(some.traffic[LEVEL_L2] > 50 && some.traffic[LEVEL_L2] < 100);
    CHECK(some.traffic[LEVEL_L3] > 0 && !some.traffic[LEVEL_MEMORY]);
    CHECK(time_traffic(moved_time(&m, 4800, 2400, (double)m.l1 / 2)) == 0);
    for (double between = 1; between < 1e12; between *= 1.5) {
        double sum = cache_shares(&m, between, share);

        for (int i = 0; i < LEVELS; i++)
            sum += share[i];
        CHECK(sum > 1 - 1e-9 && sum < 1 + 1e-9);
    }
    end();
}

/* The example of machine/kernel.c, and one whose operand leaves L1 between two rounds. */
static void test_kernel(void)
{
    static const char text[] =
        "func @f kind(kernel) target(\"llvm -mtriple=x86_64-linux-gnu -mcpu=haswell\")"
        " (%%x: f32[512], %%w: f32[%d] @const, %%y: f32[64] written) {\n"
        "  for %%t < 8 {\n    %%y[%%t*8 : 8] = splat(0.0, 8)\n    for %%k < %d {\n"
        "      %%y[%%t*8 : 8] = fma(splat(%%x[%%t*64 + %%k], 8), %%w[%%k*8 : 8], %%y[%%t*8 : 8])\n"
        "    }\n  }\n}\n";
    KernelWork near = {0}, far = {0};

    begin();
    Machine m = machine("-mtriple=x86_64-linux-gnu -mcpu=haswell");
    for (int i = 0; i < 2; i++) {
        int              k = i ? 64 * 64 : 64;
        const char      *s = arena_printf(arena, text, k * 8, k);
        const TirModule *mod = tir_parse(c, "k", (Bytes){(const uint8_t *)s, strlen(s)});

        CHECK(mod != NULL);
        if (mod)
            *(i ? &far : &near) = kernel_work(c, &m, mod, mod->funcs[0]);
    }
    CHECK_INT(diag_errors(c->diags), 0);
    /* a sum a step, which waits for the one before */
    CHECK(near.cycles > 8 * 64 * m.latency && near.cycles < 1.2 * 8 * 64 * m.latency + 200);
    /* x, w and y, which comes and goes, once */
    CHECK_INT(near.near, 512 * 4 + 64 * 8 * 4 + 2 * 64 * 4);
    CHECK_INT(near.read[0], 512 * 4);
    CHECK_INT(near.read[1], 64 * 8 * 4);
    CHECK_INT(near.read[2], 0);
    CHECK_INT(near.stored[2], 64 * 4);
    CHECK_INT(near.again, 0);
    CHECK(far.near > 8 * 64 * 64 * 8 * 4);
    end();
}

/* A row that is divided by a root: the same number in all rounds (`whole`), or one in each. */
static double norm_cycles(const Machine *m, bool whole)
{
    static const char text[] =
        "func @f kind(kernel) target(\"llvm -mtriple=x86_64-linux-gnu -mcpu=haswell\")"
        " (%%s: f32[128], %%x: f32[1024], %%y: f32[1024] written) {\n"
        "  for %%i < 128 {\n    %%y[%%i*8 : 8] = %%x[%%i*8 : 8] / splat(sqrt(%%s[%s] / 8.0), 8)\n"
        "  }\n}\n";
    const char      *s = arena_printf(arena, text, whole ? "0" : "%i");
    const TirModule *mod = tir_parse(c, "n", (Bytes){(const uint8_t *)s, strlen(s)});

    CHECK(mod != NULL);
    return mod ? kernel_work(c, m, mod, mod->funcs[0]).cycles : 0;
}

static void test_fixed(void)
{
    begin();
    Machine m = machine("-mtriple=x86_64-linux-gnu -mcpu=haswell");
    double  once = norm_cycles(&m, true), each = norm_cycles(&m, false);

    /* A division of 8 numbers a round; beside it a root and a division of one. */
    CHECK(once > 128 * 4 && once < 128 * 6 + m.start_cycles + 50);
    CHECK(each > once + 128 * 7);
    CHECK_INT(diag_errors(c->diags), 0);
    end();
}

/* A value of so many KiB that one kernel stores and the next one reads, with others in between. */
static const Time *run_program(const Machine *m, int kib, int between, uint32_t *n)
{
    static const char text[] =
        "func @f kind(kernel) target(\"llvm -mtriple=x86_64-linux-gnu -mcpu=haswell\")"
        " (%%x: f32[%d], %%y: f32[%d] written) {\n"
        "  for %%i < %d {\n    %%y[%%i*8 : 8] = %%x[%%i*8 : 8]\n  }\n}\n"
        "func @main kind(host) target(\"llvm -mtriple=x86_64-linux-gnu -mcpu=haswell\")"
        " (%%x: f32[%d], %%y: f32[%d] written, %%arena: u8[%d] written) {\n"
        "  call @f(%%x, %%arena)\n";
    StrBuf s = strbuf(arena);
    int    cells = kib * 256;

    str_printf(&s, text, cells, cells, cells / 8, cells, cells, (between + 2) * cells * 4);
    for (int i = 0; i < between; i++)
        str_printf(&s, "  call @f(%%y, %%arena + (%d))\n", (i + 1) * cells * 4);
    str_add(&s, "  call @f(%arena, %y)\n}\n");
    const TirModule *mod = tir_parse(c, "p", (Bytes){(const uint8_t *)s.at, s.n});
    CHECK(mod != NULL);
    return mod ? program_times(c, m, mod, mod->funcs[1], n) : NULL;
}

static void test_program(void)
{
    uint32_t    n = 0;
    const Time *t;

    begin();
    Machine m =
        machine("-mtriple=x86_64-linux-gnu -mcpu=haswell"); /* L2 of 256 KiB, L3 of 16 MiB */
    t = run_program(&m, 16, 0, &n);
    CHECK_INT(n, 2);
    CHECK_INT(t[1].traffic[LEVEL_L2] * m.l2_rate + 0.5, 3 * 16 * 1024);
    CHECK(t[1].traffic[LEVEL_L3] == 0 && t[1].traffic[LEVEL_MEMORY] == 0);
    /* The end of a run is what the next one begins with. */
    CHECK(t[0].traffic[LEVEL_L3] == 0 && t[0].traffic[LEVEL_MEMORY] == 0);
    t = run_program(&m, 64, 6, &n);
    CHECK_INT(n, 8);
    CHECK(t[7].traffic[LEVEL_L3] > 0 && t[7].traffic[LEVEL_MEMORY] == 0);
    CHECK(t[7].traffic[LEVEL_L3] <= 64 * 1024 / m.l3_rate + 64 * 1024 / m.l3_store + 1);
    t = run_program(&m, 4096, 6, &n);
    CHECK_INT(n, 8);
    CHECK(t[7].traffic[LEVEL_L3] == 0);
    CHECK_INT(t[7].traffic[LEVEL_MEMORY],
              4096 * 1024 / m.memory_rate + 4096 * 1024 / m.memory_store);
    CHECK_INT(diag_errors(c->diags), 0);
    end();
}

static void test_time_cycles(void)
{
    begin();
    Machine m = machine("-mtriple=x86_64-linux-gnu -mcpu=cascadelake");
    Machine ahead = machine("-mtriple=x86_64-linux-gnu -mcpu=znver5");
    Time    t = {.compute = 100, .traffic = {10, 10, 10}};

    /* L2 and L3 go on beside the work, memory mostly does not. */
    CHECK(time_cycles(&m, t) > 100 && time_cycles(&m, t) < 120);
    CHECK(time_cycles(&m, (Time){.compute = 100}) == 100);
    CHECK(time_cycles(&m, (Time){.compute = 10, .traffic = {0, 100, 0}}) >= 100);
    CHECK(time_cycles(&m, (Time){.compute = 10, .sync = 5}) == 15);
    /* What is asked for ahead hides behind the work, wherever it comes from. */
    t = (Time){.compute = 100, .traffic = {0, 0, 100}};
    CHECK(time_cycles(&m, time_ahead(t)) == 130 && time_cycles(&m, t) == 170);
    CHECK(time_traffic(time_ahead(t)) == time_traffic(t));
    /* Memory hides as well where a core is far ahead of it, but takes its time. */
    CHECK(time_cycles(&ahead, t) > 100 && time_cycles(&ahead, t) < 140);
    t.compute = 1;
    CHECK(time_cycles(&ahead, t) >= 100 && time_cycles(&m, t) >= 100);
    end();
}

int main(void)
{
    RUN(test_kernel);
    RUN(test_fixed);
    RUN(test_program);
    RUN(test_time_cycles);
    RUN(test_time);
    RUN(test_moved_time);
    RUN(test_plain_rows);
    RUN(test_short_sums);
    RUN(test_group_transforms);
    RUN(test_tables_agree);
    RUN(test_known);
    RUN(test_gpus);
    RUN(test_fed);
    RUN(test_file);
    RUN(test_faults);
    RUN(test_other_machine);
    return check_result();
}
