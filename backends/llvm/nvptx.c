/* NVIDIA's GPUs through LLVM: kernels are PTX, which the driver compiles when a model is opened, so
 * nothing of NVIDIA's is needed to compile one.
 *
 *     nvptx -mcpu=sm_80 -mcpu=sm_90      as TVM writes it
 *
 * PTX for sm_80 runs on that GPU and all later ones; of several the best is taken that the driver
 * takes. */
#include "backends/common/device.h"
#include "backends/llvm/llvm.h"

#include <string.h>

enum { LEAST = 60, MOST = 90 }; /* sm_60 has all that kernels ask for; LLVM 19 knows sm_90a */

static bool word(Ctx *c, Target *t, const char *name, const char *value)
{
    static const uint32_t known[] = {60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90};
    const char           *rest = "";
    bool                  ok = false;

    if (!strcmp(value, "native")) {
        if (!(value = device_native_nvidia(c)))
            return false;
        if (nvidia_number(value, &rest) > MOST)
            value = intern_printf(c->strings, "sm_%u", MOST);
    }
    uint32_t n = nvidia_number(value, &rest);

    for (size_t i = 0; i < COUNT(known); i++)
        ok = ok || known[i] == n;
    if (ok && !nvidia_is_ptx(value) && (!*rest || (n == MOST && !strcmp(rest, "a"))))
        return device_add_arch(c, t, value, nvidia_comes_before);
    error_at(c, E_TARGET, NO_LOC, "'%s=%s' is no GPU that LLVM makes PTX for", name, value);
    diag_hint(c->diags, "sm_%u to sm_%ua; PTX of sm_%u runs on later ones, too", LEAST, MOST, MOST);
    return false;
}

static bool canonical(Ctx *c, Target *t, StrBuf *text)
{
    const char *gpu;

    if (!*t->mcpu)
        device_add_arch(c, t, "sm_80", nvidia_comes_before);
    for (uint32_t i = 0; (gpu = device_arch(c, t, i)); i++)
        str_printf(text, " -mcpu=%s", gpu);
    t->shared_overlaid = true;
    t->gpu = intern_printf(c->strings, "sm_%u", nvidia_least(c, t));
    gpu_functions(c, t, ARCH_NVPTX);
    return true;
}

/* ---- code ---------------------------------------------------------------------------------------- */

static const LlvmGpu way = {"nvptx 1", "nvptx64-nvidia-cuda", EMIT_ASM};

static bool images(Ctx *c, const TirModule *m, const Target *t, const CodegenOptions *o,
                   DeviceImages *out)
{
    return llvm_gpu_images(c, &way, m, t, o, out);
}

static bool source(Ctx *c, const TirModule *m, StrBuf *out)
{
    return llvm_gpu_source(c, &way, m, out);
}

static const char *const words[] = {"-mcpu", "-arch", NULL};

static const Device nvptx = {
    NVIDIA_LIMITS,    .no_math = true,  .no_f64_math = ~F64_INSTRUCTIONS,
    .word = word,     .words = words,   .canonical = canonical,
    .source = source, .images = images,
};

DEVICE_BACKEND(nvptx, "NVIDIA GPUs through LLVM: -mcpu=sm_80, once for each")
