/* What the files of the Metal backend share. */
#ifndef TVMCC_BACKENDS_METAL_H
#define TVMCC_BACKENDS_METAL_H

#include "ir/tir/tir.h"

/* All kernels of a module as one text of the Metal Shading Language. */
bool metal_source(Ctx *c, const TirModule *m, StrBuf *out);

#endif
