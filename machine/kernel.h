/* What kernels take, from their loops: the part of machine/ that knows TIR. */
#ifndef TVMCC_MACHINE_KERNEL_H
#define TVMCC_MACHINE_KERNEL_H

#include "ir/tir/tir.h"
#include "machine/machine.h"

/* ---- kernel.c: a kernel, for itself ----------------------------------------------------------- */

/* One run by one thread. */
typedef struct {
    double  cycles;        /* of computing */
    double  near;          /* bytes that come into L1 */
    double  again;         /* ... that come into L2, beyond the first time */
    double *read, *stored; /* [param] bytes that are touched at all; behind them what is no param */
} KernelWork;

/* `m` holds the kernel as code is generated from it (flat, written out), and its tiles. */
KernelWork kernel_work(Ctx *c, const Machine *at, const TirModule *m, const Func *f);

/* ---- program.c: the kernels of a program, one after the other ----------------------------------- */

/* Of each call of the host program, in the order of its text: one run by one thread. */
const Time *program_times(Ctx *c, const Machine *at, const TirModule *m, const Func *host,
                          uint32_t *n);

#endif
