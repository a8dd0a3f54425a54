/* AMD's GPUs through LLVM: kernels are code objects, shared ELF files, which HIP loads.
 *
 *     rocm -mcpu=gfx90a -mcpu=gfx942      as TVM writes it
 *
 * Machine code is for the GPU that it names and no other.  gpu.def lists the GPUs. */
#include "backends/common/device.h"
#include "backends/llvm/llvm.h"
#include "tvmcc/abi.h"

#include <string.h>

enum { AS_IT_HAS = 1, WIDE = 64 }; /* threads of a warp: as the GPU's; of most */

static bool comes_before(const char *a, const char *b)
{
    return amd_gpu(a) > amd_gpu(b);
}

static bool word(Ctx *c, Target *t, const char *name, const char *value)
{
    const AmdGpu *first = amd_gpu(NULL), *g = amd_gpu(value);
    const char  **known = NEW_ARRAY(c->scratch, const char *, (size_t)(g - first) + 1), *near;

    if (g->name)
        return device_add_arch(c, t, value, comes_before);
    for (g = first; g->name; g++)
        known[g - first] = g->name;
    near = str_closest(value, known, (size_t)(g - first));
    error_at(c, E_TARGET, NO_LOC, "'%s=%s' is no GPU that code objects are made for", name, value);
    diag_hint(c->diags, near ? "did you mean '%s'?" : "gfx90a is an MI200, gfx942 an MI300%s",
              near ? near : "");
    return false;
}

static bool canonical(Ctx *c, Target *t, StrBuf *text)
{
    const char *gpu;
    uint32_t    least = 32;

    if (!*t->mcpu)
        device_add_arch(c, t, "gfx90a", comes_before);
    for (uint32_t i = 0; (gpu = device_arch(c, t, i)); i++) {
        str_printf(text, " -mcpu=%s", gpu);
        least = amd_gpu(gpu)->warp > least ? amd_gpu(gpu)->warp : least;
    }
    if (t->warp != AS_IT_HAS && t->warp != WIDE && t->warp != least)
        return error_at(c, E_TARGET, NO_LOC, "a warp of these GPUs has %s64 threads, not %u",
                        least < WIDE ? "32 or " : "", t->warp);
    t->warp = t->warp == AS_IT_HAS ? least : t->warp;
    t->gpu = device_least_arch(c, t);
    gpu_functions(c, t, ARCH_AMDGPU);
    return true;
}

/* ---- code ---------------------------------------------------------------------------------------- */

static const LlvmGpu way = {"rocm 1", "amdgcn-amd-amdhsa", EMIT_OBJECT};

static bool images(Ctx *c, const TirModule *m, const Target *t, const CodegenOptions *o,
                   DeviceImages *out)
{
    return llvm_gpu_images(c, &way, m, t, o, out);
}

static bool source(Ctx *c, const TirModule *m, StrBuf *out)
{
    return llvm_gpu_source(c, &way, m, out);
}

/* 64 KiB of memory that a block shares; with 128 registers a core has room for four blocks of 256
 * threads, on those with 32 threads for more. */
static const DeviceModel models[] = {{NULL, 64 * 1024, 128, AS_IT_HAS, 0}, {0}};

static const char *const words[] = {"-mcpu", "-arch", NULL};

static const Device rocm = {
    .kind = TVMCC_DEVICE_ROCM,
    .title = "ROCm",
    .packages = "libamdhip64-5 and a kernel with amdgpu, or AMD's ROCm",
    .options = "",
    .threads = 256,
    .most_threads = 1024,
    .most_blocks = {(1 << 22) - 1, 65535, 65535}, /* fewer than 2^32 threads along an axis */
    .most_args = 512,
    .no_math = true,
    .no_f64_math = ~F64_INSTRUCTIONS, /* LLVM has no library */
    .models = models,
    .word = word,
    .words = words,
    .canonical = canonical,
    .source = source,
    .images = images,
};

DEVICE_BACKEND(rocm, "AMD GPUs: -mcpu=gfx90a, once for each")
