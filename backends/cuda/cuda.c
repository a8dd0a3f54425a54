/* CUDA as a backend: kernels are CUDA C, compiled here for the GPUs that the target names, and PTX
 * for later ones. */
#include "backends/cuda/cuda.h"
#include "tvmcc/abi.h"

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
    .one_warp = true,
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

DEVICE_BACKEND(cuda, "NVIDIA GPUs: -arch=sm_80, once for each")
