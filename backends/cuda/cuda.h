/* What the files of the CUDA backend share.
 *
 *   cuda.c     the Backend struct
 *   target.c   words of target strings: for which GPUs
 *   warp.c     instructions of warps as functions
 *   codegen.c  the dialect of clike; kernels as text
 *   nvrtc.c    the compiler of that text: NVRTC, or nvcc
 *   images.c   machine code and PTX of all kernels, from the cache or made by several threads */
#ifndef TVMCC_BACKENDS_CUDA_H
#define TVMCC_BACKENDS_CUDA_H

#include "backends/backend.h"
#include "backends/common/device.h"

/* ---- target.c: Target.mcpu is "sm_90 sm_80 compute_90", the best first --------------------------- */

extern const char *const cuda_words[];
bool                     cuda_word(Ctx *c, Target *t, const char *name, const char *value);
void                     cuda_canonical(Ctx *c, Target *t, StrBuf *text);
/* The i-th of them; NULL behind the last. */
const char *cuda_arch(Ctx *c, const Target *t, uint32_t i);

/* ---- warp.c ------------------------------------------------------------------------------------- */

/* Definition of the function of a warp that an instruction is in the text, of sm_80 and later;
 * NULL: there is none. */
const char *cuda_instruction(IntrinId id);

/* ---- codegen.c ---------------------------------------------------------------------------------- */

/* All kernels as one text; one of them. */
bool cuda_source(Ctx *c, const TirModule *m, StrBuf *out);
bool cuda_kernel(Ctx *c, const Func *f, StrBuf *out);

/* ---- nvrtc.c ------------------------------------------------------------------------------------ */

/* The calls of NVRTC that we need, by its documented prototypes. */
typedef struct {
    int (*nvrtcVersion)(int *major, int *minor);
    int (*nvrtcGetNumSupportedArchs)(int *n);
    int (*nvrtcGetSupportedArchs)(int *archs);
    int (*nvrtcCreateProgram)(void **program, const char *text, const char *name, int nheaders,
                              const char *const *headers, const char *const *names);
    int (*nvrtcDestroyProgram)(void **program);
    int (*nvrtcCompileProgram)(void *program, int n, const char *const *options);
    int (*nvrtcGetProgramLogSize)(void *program, size_t *bytes);
    int (*nvrtcGetProgramLog)(void *program, char *log);
    int (*nvrtcGetCUBINSize)(void *program, size_t *bytes);
    int (*nvrtcGetCUBIN)(void *program, char *code);
    int (*nvrtcGetPTXSize)(void *program, size_t *bytes);
    int (*nvrtcGetPTX)(void *program, char *text);
} NvrtcCalls;

typedef struct {
    NvrtcCalls  nvrtc; /* all NULL: nvcc is used */
    const char *nvcc;
    const char *version; /* "NVRTC 13.0, 109338064 bytes": what tells compilers apart */
    const char *archs;   /* that it makes code for, "sm_75, sm_80"; NULL: it does not say */
} CudaCompiler;

/* What there is on this machine; false with E_NO_TOOL recorded.  Nothing is ever unloaded. */
bool        cuda_compiler(Ctx *c, CudaCompiler *out);
const char *cuda_compiler_version(Ctx *c);
/* One text for one architecture, in any thread: machine code for sm_<n>, PTX for compute_<n>.
 * False with what the compiler said in `log`. */
bool cuda_compile(const CudaCompiler *k, Arena *a, const char *arch, const char *text, Bytes *out,
                  const char **log);

/* ---- images.c ----------------------------------------------------------------------------------- */

bool cuda_images(Ctx *c, const TirModule *m, const Target *t, const CodegenOptions *o,
                 DeviceImages *out);

#endif
