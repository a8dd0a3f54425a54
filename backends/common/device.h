/* What the backends of all devices share: target strings, and a product that is an object for the
 * CPU that drives the device. */
#ifndef TVMCC_BACKENDS_DEVICE_H
#define TVMCC_BACKENDS_DEVICE_H

#include "backends/backend.h"
#include "tvmcc/abi.h"

/* `<name> [-device=<model>] [-max_threads_per_block=<n>] [-max_shared_memory_per_block=<bytes>]
 * [-thread_warp_size=<n>] [words of its own] [, <host target>]`. The host that launches the kernels
 * is this machine unless another target follows. */
const Target *device_parse_target(Ctx *c, const Backend *b, const char *text);
void          device_list_target(StrBuf *out, const char *name, const char *about);

/* Backend.device_code, .jit_load, .jit_symbol and .jit_free of a device. */
bool  device_code(Ctx *c, const Plan *p, const CodegenOptions *o, DeviceCode *out);
Jit  *device_jit_load(Ctx *c, const Target *t, Bytes object);
void *device_jit_symbol(Jit *j, const char *func);
void  device_jit_free(Jit *j);

/* The row of a backend `id`, whose Device has that name: `about` is the device, for people. */
#define DEVICE_BACKEND(id, about)                             \
    static const Target *parse_##id(Ctx *c, const char *text) \
    {                                                         \
        return device_parse_target(c, &backend_##id, text);   \
    }                                                         \
    static void list_##id(StrBuf *out)                        \
    {                                                         \
        device_list_target(out, #id, about);                  \
    }                                                         \
    const Backend backend_##id = {                            \
        .name = #id,                                          \
        .device = &id,                                        \
        .parse_target = parse_##id,                           \
        .list_targets = list_##id,                            \
        .device_code = device_code,                           \
        .jit_load = device_jit_load,                          \
        .jit_symbol = device_jit_symbol,                      \
        .jit_free = device_jit_free,                          \
    };

/* For Device.no_f64_math, of code without a library: what is an instruction of f64, or a few. */
#define F64_INSTRUCTIONS                                                                     \
    (MATH_BIT(MATH_SQRT) | MATH_BIT(MATH_ABS) | MATH_BIT(MATH_FLOOR) | MATH_BIT(MATH_CEIL) | \
     MATH_BIT(MATH_TRUNC) | MATH_BIT(MATH_ROUND) | MATH_BIT(MATH_COPYSIGN))

/* Members of a Device: NVIDIA's GPUs, whoever compiles their kernels.  48 KiB are what a kernel may
 * have without asking for more; registers leave room for two blocks of 256 threads. */
#define NVIDIA_LIMITS                                                                              \
    .kind = TVMCC_DEVICE_CUDA, .title = "CUDA", .packages = "nvidia-driver, of Debian's non-free", \
    .options = "", .threads = 256, .most_threads = 1024, .one_warp = true,                         \
    .most_blocks = {INT32_MAX, 65535, 65535}, .most_args = 512, .shared = nvidia_shared,           \
    .most_shared = 227 * 1024, .models = (const DeviceModel[])                                     \
    {                                                                                              \
        {NULL, 48 * 1024, 128, 32, 0}, {0}                                                         \
    }

/* ---- archs.c ------------------------------------------------------------------------------------- */

/* The i-th GPU of Target.mcpu; NULL behind the last. */
const char *device_arch(Ctx *c, const Target *t, uint32_t i);
/* The last, which all others come before. */
const char *device_least_arch(Ctx *c, const Target *t);
/* One more, once, in order; false with E_TARGET recorded: too many. */
typedef bool ArchOrderFn(const char *a, const char *b);
bool         device_add_arch(Ctx *c, Target *t, const char *arch, ArchOrderFn *comes_before);

/* ---- nvidia.c: sm_80 for machine code, compute_80 for PTX ----------------------------------------- */

/* 90 of "sm_90a", and the rest; 0: it is no architecture. */
uint32_t nvidia_number(const char *arch, const char **rest);
bool     nvidia_is_ptx(const char *arch);
/* The later one first; letters stand for what only that very GPU has; PTX last. */
bool nvidia_comes_before(const char *a, const char *b);
/* Of those of a target: all of them run what is compiled for the lowest. */
uint32_t nvidia_least(Ctx *c, const Target *t);
/* Instructions of four warps (wgmma) are of GPUs of that very generation: all code is for these. */
bool nvidia_groups(Ctx *c, const Target *t);
/* Device.shared: bytes of shared memory that a launch may ask for; kernels declare that many. */
uint32_t nvidia_shared(Ctx *c, const Target *t, bool most);
enum { NVIDIA_DECLARED = 48 * 1024 };

/* ---- native_gpu.c -------------------------------------------------------------------------------- */

/* "sm_90" for the first of NVIDIA's GPUs here; NULL with E_TARGET recorded. */
const char *device_native_nvidia(Ctx *c);

/* ---- images.c ------------------------------------------------------------------------------------ */

/* What makes machine code for a GPU of one kernel's text. */
typedef struct {
    const char *name;    /* of the way from text to code, for the cache: "cuda 1" */
    const char *version; /* tells compilers apart */
    const void *user;
    /* A kernel as text, which says all that its code depends on beside architecture and compiler.
     */
    bool (*text)(Ctx *c, const void *user, const Target *t, const Func *f, StrBuf *out);
    /* Optional, instead of it: all kernels as one text, whose code is one as well. */
    bool (*program)(Ctx *c, const TirModule *m, StrBuf *out);
    /* In any thread; false with what it said in `log`. */
    bool (*compile)(const void *user, Arena *a, const char *arch, const char *text, Bytes *out,
                    const char **log);
    /* Optional: is what it makes TVMCC_CODE_SOURCE? */
    bool (*is_text)(const void *user, const char *arch);
    /* Optional: false with an error recorded for a GPU that it makes no code for. */
    bool (*knows)(Ctx *c, const void *user, const char *arch);
} DeviceCompiler;

/* All kernels for all GPUs of the target, from the cache or made by several threads; where it names
 * none the architecture is "". */
bool device_images(Ctx *c, const DeviceCompiler *compiler, const TirModule *m, const Target *t,
                   const CodegenOptions *o, DeviceImages *out);

/* ---- program.c ----------------------------------------------------------------------------------- */

/* The full path of a program that PATH or `bin` of one of the folders has, or of one that is named
 * by its path; NULL: there is none.  Folders may be NULL. */
const char *device_find_program(Ctx *c, const char *name, const char *const *folders, uint32_t n);
/* DeviceCompiler.version: what tells builds of it apart. */
const char *device_program_version(Ctx *c, const char *name, const char *path);
/* For DeviceCompiler.compile: runs it in a new folder that has the text as the file `in`, and reads
 * the file `result` that it leaves there.  Words end with NULL. */
bool device_run_program(Arena *a, const char *const *words, const char *in, const char *text,
                        const char *result, Bytes *out, const char **log);

/* ---- build.c ------------------------------------------------------------------------------------- */

/* The text of all kernels as what a driver loads. */
bool device_text_image(Ctx *c, const Device *d, const TirModule *m, DeviceImages *out);
/* How a function is called in a program: k_<letters and digits>. */
const char *device_symbol(Ctx *c, const char *func);

#endif
