/* Kernels of GPUs as text of LLVM IR and as code, without a word of LLVM's own. */
#ifndef TVMCC_BACKENDS_LLVM_GPU_H
#define TVMCC_BACKENDS_LLVM_GPU_H

#include "backends/backend.h"

/* A kernel as LLVM IR, before any pass, for a GPU of that triple and its betters; false with an
 * error recorded. */
bool llvm_kernel(Ctx *c, const char *triple, const char *gpu, const Func *f, StrBuf *out);
/* That text as IR behind the passes, assembly or an object for one GPU, in any thread, with a 0
 * behind; false with why in `log`. */
bool llvm_compile_kernel(Arena *a, const char *triple, const char *gpu, EmitKind kind,
                         const char *text, Bytes *out, const char **log);

#endif
