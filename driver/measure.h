/* measure.c: what work costs on this machine, by small kernels. */
#ifndef TVMCC_DRIVER_MEASURE_H
#define TVMCC_DRIVER_MEASURE_H

#include "driver/driver.h"
#include "machine/machine.h"

/* Sets those figures that can be measured, as FROM_FILE; `t` is this machine (-mcpu=native). */
bool measure_machine(Driver *driver, const Target *t, Machine *out);

#endif
