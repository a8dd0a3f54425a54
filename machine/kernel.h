/* What a whole kernel takes, from its loops: the part of machine/ that knows TIR (kernel.c). */
#ifndef TVMCC_MACHINE_KERNEL_H
#define TVMCC_MACHINE_KERNEL_H

#include "ir/tir/tir.h"
#include "machine/machine.h"

/* One run of a kernel by one thread.  `m` holds it as code is generated from it (flat, written
 * out), and the tiles that it calls; `weights` are the bytes of all constants of the network, which
 * pass by between two runs of a kernel. */
Time kernel_time(Ctx *c, const Machine *at, const TirModule *m, const Func *f, double weights);

#endif
