/* What the files of the OpenCL backend share.
 *
 *   codegen.c   the dialect of clike; a module's device functions as one text
 *   target.c    instructions of a target
 *   images.c    weights that come through a texture unit
 *   opencl.c    the Backend struct
 *   aocl.c      those of Intel's FPGAs, whose compiler runs here */
#ifndef TVMCC_BACKENDS_OPENCL_H
#define TVMCC_BACKENDS_OPENCL_H

#include "backends/backend.h"
#include "backends/clike/clike.h"

/* The program of all device functions; false with an error recorded. */
bool opencl_source(Ctx *c, const TirModule *m, StrBuf *out);
/* ... whose kernels say how large their groups are. */
bool aocl_source(Ctx *c, const TirModule *m, StrBuf *out);
/* Definition of the function that an instruction is; NULL: there is none. */
const char *opencl_instruction(IntrinId id);

/* ---- target.c ------------------------------------------------------------------------------------ */

bool opencl_canonical(Ctx *c, Target *t, StrBuf *text);

enum { OPENCL_ARGS = 128 }; /* 1 KiB, which is what AMD, ARM and Qualcomm take */

extern const ClikeImages opencl_images; /* of a dialect */

#endif
