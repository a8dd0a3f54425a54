/* What several TIR passes share. */
#ifndef TVMCC_PASSES_TIR_UTIL_H
#define TVMCC_PASSES_TIR_UTIL_H

#include "ir/tir.h"

/* s with every access of `from` going to `to` (same indices). */
const Stmt *buffer_replace(Ctx *c, const Stmt *s, const Buffer *from, const Buffer *to);

#endif
