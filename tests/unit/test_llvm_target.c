/* The LLVM backend's target strings: what they mean, and what is said about wrong ones. */
#include "backends/backend.h"
#include "backends/llvm/llvm.h"
#include "tests/unit/context.h"

static const Target *x86(const char *words)
{
    return backend_llvm.parse_target(
        c, arena_printf(arena, "llvm -mtriple=x86_64-linux-gnu %s", words));
}

static uint32_t need(const char *words, uint32_t word)
{
    return target_needs(x86(words)).word[word];
}

/* What products ask of the CPU, as bits of CPUID. */
static void test_needs(void)
{
    static const char *const all[] = {
#define CPU(arch, name, llvm, caps) #arch "=" name,
#include "backends/llvm/cpu.def"
#undef CPU
    };
    CpuNeeds none;

    begin();
    none = target_needs(x86(""));
    CHECK(needs_nothing(&none));
    for (size_t i = 0; i < COUNT(all); i++)
        if (str_starts(all[i],
                       "X86=")) { /* each has a row in cpuid.def, and asks if that says so */
            const Target *t = x86(arena_printf(arena, "-mcpu=%s", all[i] + 4));
            CpuNeeds      n = target_needs(t);

            CHECK(t->asks_cpu == !needs_nothing(&n));
            CHECK(needs_nothing(&n) == (!strcmp(t->mcpu, "x86-64")));
        }
    CHECK_INT(need("-mcpu=x86-64-v2", CPUID_1C), 0x982201); /* as the psABI has it */
    CHECK_INT(need("-mcpu=x86-64-v2", CPUID_XCR0), 0);
    CHECK_INT(need("-mcpu=x86-64-v3", CPUID_1C), 0x38d83201);
    CHECK_INT(need("-mcpu=x86-64-v3", CPUID_7B), 0x128);
    CHECK_INT(need("-mcpu=x86-64-v3", CPUID_XC), 0x21);
    CHECK_INT(need("-mcpu=x86-64-v3", CPUID_XCR0), 0x06);
    CHECK(need("-mcpu=x86-64-v4", CPUID_7B) == 0xd0030128);
    CHECK_INT(need("-mcpu=x86-64-v4", CPUID_XCR0), 0xe6);
    CHECK_INT(need("-mcpu=cascadelake", CPUID_7C), 1 << 11);
    CHECK_INT(need("-mcpu=cooperlake", CPUID_71A), 1 << 5);
    CHECK_INT(need("-mcpu=sapphirerapids", CPUID_7D), 1 << 23);
    CHECK_INT(need("-mcpu=znver4 -mattr=-avx512vnni", CPUID_7C) & 1 << 11, 0);
    /* what a feature brings along, and what goes with it */
    CHECK(need("-mattr=+avx512vnni", CPUID_7B) == (1 << 16 | 1 << 5));
    CHECK_INT(need("-mcpu=x86-64-v4 -mattr=-avx", CPUID_7B), 1 << 3 | 1 << 8);
    CHECK_INT(need("-mcpu=x86-64-v4 -mattr=-avx", CPUID_XCR0), 0);
    CHECK_INT(need("-mattr=+aes", CPUID_1C), 0); /* nothing is made of it */
    CHECK(!x86("-mcpu=haswell -cpu-check=0")->asks_cpu);
    CHECK_STR(x86("-mcpu=haswell -cpu-check=0")->text,
              "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=haswell -cpu-check=0");
    CHECK_STR(x86("-cpu-check=0")->text, "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64");
    end();
}

static void test_targets(void)
{
    static const struct {
        const char *text, *canonical;
        uint32_t    vector_bytes, pointer_bits;
        bool        fma;
    } good[] = {
        {"llvm -mtriple=x86_64-linux-gnu -mcpu=haswell",
         "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=haswell", 32, 64, true},
        {"x86_64-linux-gnu", "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64", 16, 64, false},
        {"llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -mattr=-avx512f",
         "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=skylake-avx512 -mattr=-avx512f", 32, 64,
         true},
        {"llvm -mtriple=x86_64-linux-gnu -mcpu=haswell -mattr=+avx512bw,+avx512dq,+avx512vl",
         "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=haswell "
         "-mattr=+avx512bw,+avx512dq,+avx512vl",
         64, 64, true},
        {"llvm -mtriple=x86_64-linux-gnu -mcpu=haswell -mattr=+avx512vl",
         "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=haswell -mattr=+avx512vl", 32, 64, true},
        {"llvm -mtriple=x86_64-linux-gnu -mcpu=znver4 -mattr=-avx512dq",
         "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=znver4 -mattr=-avx512dq", 32, 64, true},
        {"llvm -mtriple=x86_64-linux-gnu -mcpu=znver4 -mattr=-avx512bw",
         "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=znver4 -mattr=-avx512bw", 32, 64, true},
        {"llvm -target=x86_64-linux-gnu -march=x86-64-v4 -keys=cpu",
         "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64-v4", 64, 64, true},
        {"llvm -mtriple=x86_64-linux-gnu -mattr=+avx2,+fma,+avx2",
         "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64 -mattr=+avx2,+fma", 32, 64, true},
        {"aarch64-linux-gnu -mcpu=cortex-a55+dotprod",
         "llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=cortex-a55 -mattr=+dotprod", 16, 64, true},
        {"llvm -mtriple=arm64-apple-macos13 -mcpu=apple-m1",
         "llvm -mtriple=arm64-apple-macos13 -mcpu=apple-a14", 16, 64, true},
        {"arm-linux-gnueabihf", "llvm -mtriple=armv7a-unknown-linux-gnueabihf -mcpu=generic", 16,
         32, false},
        {"armv7a-linux-gnueabi -mfloat-abi=hard -mcpu=cortex-a7",
         "llvm -mtriple=armv7a-unknown-linux-gnueabihf -mcpu=cortex-a7", 16, 32, true},
        {"thumbv7em-none-eabi -mcpu=cortex-m4",
         "llvm -mtriple=thumbv7em-unknown-none-eabi -mcpu=cortex-m4", 4, 32, true},
        {"arm-linux-gnueabi", "llvm -mtriple=armv5te-unknown-linux-gnueabi -mcpu=generic", 4, 32,
         false},
        {"armv7a-linux-androideabi21",
         "llvm -mtriple=armv7a-unknown-linux-android21 "
         "-mcpu=generic",
         16, 32, false},
        {"thumbv7em-none-eabihf -libm=0 -threads=0",
         "llvm -mtriple=thumbv7em-unknown-none-eabihf -mcpu=generic -mattr=+vfp4d16sp -libm=0 "
         "-threads=0",
         4, 32, true},
        {"thumbv7em-none-eabi -mfloat-abi=hard",
         "llvm -mtriple=thumbv7em-unknown-none-eabihf -mcpu=generic -mattr=+vfp4d16sp", 4, 32,
         true},
        {"thumbv7em-none-eabi", "llvm -mtriple=thumbv7em-unknown-none-eabi -mcpu=generic", 4, 32,
         false},
        {"riscv64-linux-gnu",
         "llvm -mtriple=riscv64-unknown-linux-gnu -mcpu=generic -mattr=+m,+a,+f,+d,+c", 4, 64,
         true},
        {"riscv64-linux-gnu -march=rv64gcv_zba -mabi=lp64d",
         "llvm -mtriple=riscv64-unknown-linux-gnu -mcpu=generic "
         "-mattr=+m,+a,+f,+d,+zicsr,+zifencei,+c,+v,+zba -mabi=lp64d",
         16, 64, true},
        {"llvm -mtriple=wasm32-unknown-unknown -mattr=+simd128 -fast-math=1 -winograd=0",
         "llvm -mtriple=wasm32-unknown-unknown -mcpu=generic -mattr=+simd128 -fast-math=1 "
         "-winograd=0",
         16, 32, false},
        {"{\"kind\": \"llvm\", \"mtriple\": \"x86_64-linux-gnu\", \"mattr\": [\"+avx2\", "
         "\"+fma\"]}",
         "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64 -mattr=+avx2,+fma", 32, 64, true},
    };
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"llvm -mtriple=x86_64-linux-gnu -mcpu=haswll",
         "tvmcc: error: target 'llvm -mtriple=x86_64-linux-gnu -mcpu=haswll': unknown CPU 'haswll' "
         "for x86 "
         "[E0103]\nhint: did you mean 'haswell'?\n"},
        {"llvm -mtriple=aarch64-linux-gnu -mattr=+dotprot",
         "tvmcc: error: target 'llvm -mtriple=aarch64-linux-gnu -mattr=+dotprot': unknown feature "
         "'dotprot' "
         "for aarch64 [E0103]\nhint: did you mean 'dotprod'?\n"},
        {"llvm -mcp=haswell",
         "tvmcc: error: target 'llvm -mcp=haswell': unknown option '-mcp' [E0103]\n"
         "hint: did you mean '-mcpu'?\n"},
        {"haswell", "tvmcc: error: target 'haswell': unknown target 'haswell' [E0103]\n"
                    "hint: did you mean '-mcpu=haswell'?\n"},
        {"lvm",
         "tvmcc: error: target 'lvm': unknown target 'lvm' [E0103]\nhint: did you mean 'llvm'?\n"},
        {"aarch63-linux-gnu",
         "tvmcc: error: target 'aarch63-linux-gnu': no code generator for architecture "
         "'aarch63' [E0103]\nhint: did you mean 'aarch64'?\n"},
        {"x86_64-linx-gnu",
         "tvmcc: error: target 'x86_64-linx-gnu': unknown operating system 'linx' "
         "[E0103]\nhint: did you mean 'linux'?\n"},
        {"llvm -mcpu=",
         "tvmcc: error: target 'llvm -mcpu=': no value for option '-mcpu' [E0103]\n"},
        {"riscv64-linux-gnu -mabi=lp46",
         "tvmcc: error: target 'riscv64-linux-gnu -mabi=lp46': unknown -mabi "
         "'lp46' [E0103]\n"},
    };

    for (size_t i = 0; i < COUNT(good); i++) {
        const Target *t, *again;

        begin();
        t = backend_llvm.parse_target(c, good[i].text);
        CHECK(t != NULL);
        if (t) {
            CHECK_STR(t->text, good[i].canonical);
            CHECK_INT(t->vector_bytes, good[i].vector_bytes);
            CHECK_INT(t->pointer_bits, good[i].pointer_bits);
            CHECK_INT(t->has_fma, good[i].fma);
            again = backend_llvm.parse_target(c, t->text);
            CHECK(again && again->text == t->text);
        }
        end();
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        StrBuf text;

        begin();
        text = strbuf(arena);
        CHECK(backend_llvm.parse_target(c, bad[i].text) == NULL);
        diag_print(c->diags, DIAG_TEXT, &text);
        CHECK_STR(text.at, bad[i].message);
        ctx_free(c);
        arena_free(arena);
    }
    begin();
    CHECK(backend_llvm.parse_target(c, "llvm -mcpu=native") != NULL);
    CHECK(backend_find("llvm") == &backend_llvm && backend_cpu() == &backend_llvm);
    CHECK(backend_find("llwm") == NULL);
    end();
}

int main(void)
{
    RUN(test_targets);
    RUN(test_needs);
    return check_result();
}
