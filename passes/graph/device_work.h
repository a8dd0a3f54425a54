/* device_work.c: what a kernel is as work, for plan_devices. */
#ifndef TVMCC_PASSES_DEVICE_WORK_H
#define TVMCC_PASSES_DEVICE_WORK_H

#include "passes/graph/graph.h"

typedef struct {
    const Machine *device, *cpu; /* given: the machines of the target and of its host */
    double         on_device, on_cpu;
    bool           sequential; /* so few threads of the device have so much to do that it idles */
} DeviceWork;

/* Nanoseconds of a primitive function on either side; false after an error. */
bool device_work(Ctx *c, const Expr *primitive, DeviceWork *w);
/* Cells of a type, at most; adds their bytes. */
double type_cells_most(const Type *t, double *bytes);

#endif
