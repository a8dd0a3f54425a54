/* What the files of the OpenCL backend share.
 *
 *   target.c    target strings
 *   codegen.c   the dialect of clike; a module's device functions as one text
 *   build.c     the Backend struct: text alone, or embedded in the host's object */
#ifndef TVMCC_BACKENDS_OPENCL_H
#define TVMCC_BACKENDS_OPENCL_H

#include "backends/backend.h"

const Target *opencl_parse_target(Ctx *c, const char *text);
void          opencl_list_targets(StrBuf *out);

/* The program of all device functions; false with an error recorded. */
bool opencl_source(Ctx *c, const TirModule *m, StrBuf *out);
/* How a function is called in the program. */
const char *opencl_symbol(Ctx *c, const char *func);

#endif
