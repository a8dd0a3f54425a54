/* CUDA as a backend: kernels are CUDA C, compiled here for the GPUs that the target names, and PTX
 * for later ones. */
#include "backends/cuda/cuda.h"
#include "tvmcc/abi.h"

static const Target *parse_target(Ctx *c, const char *text)
{
    return device_parse_target(c, &backend_cuda, text);
}

static void list_targets(StrBuf *out)
{
    str_add(out, "cuda     NVIDIA GPUs: -arch=sm_80, once for each; the CPU that drives them may "
                 "follow a comma\n");
}

/* 48 KiB are what a kernel may have without asking for more; registers leave room for two blocks of
 * 256 threads. */
static const DeviceModel models[] = {{NULL, 48 * 1024, 128, 32}, {0}};

static const Device cuda = {
    .kind = TVMCC_DEVICE_CUDA,
    .title = "CUDA",
    .packages = "nvidia-driver, of Debian's non-free",
    .options = "",
    .threads = 256,
    .most_threads = 1024,
    .most_blocks = {INT32_MAX, 65535, 65535},
    .most_args = 512,
    .models = models,
    .word = cuda_word,
    .words = cuda_words,
    .canonical = cuda_canonical,
    .source = cuda_source,
    .images = cuda_images,
    .compiler = cuda_compiler_version,
};

const Backend backend_cuda = {
    .name = "cuda",
    .device = &cuda,
    .parse_target = parse_target,
    .list_targets = list_targets,
    .device_code = device_code,
    .jit_load = device_jit_load,
    .jit_symbol = device_jit_symbol,
    .jit_free = device_jit_free,
};
