/* What the files of the CUDA backend share.
 *
 *   cuda.c     the Backend struct
 *   target.c   words of target strings: for which GPUs
 *   warp.c     instructions of warps as functions
 *   codegen.c  the dialect of clike; kernels as text
 *   nvrtc.c    the compiler of that text: NVRTC, or nvcc */
#ifndef TVMCC_BACKENDS_CUDA_H
#define TVMCC_BACKENDS_CUDA_H

#include "backends/backend.h"
#include "backends/common/device.h"

/* ---- target.c: Target.mcpu is "sm_90 sm_80 compute_90", the best first --------------------------- */

extern const char *const cuda_words[];
bool                     cuda_word(Ctx *c, Target *t, const char *name, const char *value);
bool                     cuda_canonical(Ctx *c, Target *t, StrBuf *text);

/* ---- warp.c ------------------------------------------------------------------------------------- */

/* Definition of the function that an instruction is in the text, of sm_80 and later, of some of
 * earlier GPUs too; NULL: there is none. */
const char *cuda_instruction(IntrinId id);
uint32_t    cuda_first(IntrinId id);
/* ... of one of four warps, which sm_90a alone has, for so many units of columns. */
void cuda_group(Ctx *c, const Intrin *row, uint32_t units, StrBuf *out);

/* ---- codegen.c ---------------------------------------------------------------------------------- */

/* All kernels as one text; one of them. */
bool cuda_source(Ctx *c, const TirModule *m, StrBuf *out);
bool cuda_kernel(Ctx *c, const Target *t, const Func *f, StrBuf *out);

/* ---- nvrtc.c ------------------------------------------------------------------------------------ */

/* What there is on this machine, or "". */
const char *cuda_compiler_version(Ctx *c, const Target *t);
/* Machine code, or PTX of compute_<n>. */
bool cuda_images(Ctx *c, const TirModule *m, const Target *t, const CodegenOptions *o,
                 DeviceImages *out);

#endif
