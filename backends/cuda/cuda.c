/* CUDA as a backend: kernels are CUDA C, compiled here for the GPUs that the target names, and PTX
 * for later ones. */
#include "backends/cuda/cuda.h"

static const Device cuda = {
    NVIDIA_LIMITS,
    .word = cuda_word,
    .words = cuda_words,
    .canonical = cuda_canonical,
    .source = cuda_source,
    .images = cuda_images,
    .compiler = cuda_compiler_version,
    .compiler_hint = "in a virtual environment of Python: pip install nvidia-cuda-nvrtc; or "
                     "apt-get install nvidia-cuda-toolkit; or TVMCC_NVRTC=<file>",
};

DEVICE_BACKEND(cuda, "NVIDIA GPUs: -arch=sm_80, once for each")
