/* What the files of models on a device share.
 *
 *   device.c          the state, calls of the device, runs
 *   device_open.c     open, close
 *   device_program.c  the embedded program */
#ifndef TVMCC_PASSES_LOWER_ENTRY_DEVICE_H
#define TVMCC_PASSES_LOWER_ENTRY_DEVICE_H

#include "passes/lower/entry/entry.h"

/* ---- device.c ---------------------------------------------------------------------------------- */

/* Cells of the state. */
enum {
    S_DEVICE = TVMCC_STATE_DEVICE,
    S_ARENA,
    S_WEIGHTS,
    S_RECORDING,
    S_TAKEN = TVMCC_STATE_TARGET,
    S_KERNELS = STATE_POINTERS
};

const DeviceCode *code_of(const Entry *e);
const Idx        *index_of(Entry *e, uint32_t i); /* a constant */

uint32_t      state_cells(const Entry *e);
const Buffer *state_buffer(Entry *e);
void          check_state_bytes(Entry *e, Code *code, const Buffer *params);
const Prim   *cell_address(Entry *e, const Buffer *b, const Idx *i);
void          set_cell(Entry *e, Code *code, const Buffer *b, const Idx *i, const Prim *value);

/* Returns what the function gave unless that is 0. */
void pass_on(Entry *e, Code *code, const Buffer *result);
/* result = device->member(self, args[1] ..), which has to succeed. */
void need(Entry *e, Code *code, const char *sig, const char *member, uint32_t n, const Prim **args);

/* Of a model that may run on the CPU or on a device: all tensors of the run are here. */
void check_all_here(Entry *e, Code *code, const Buffer *params);

/* Sets e->dev.parts: copies in, launches, copies out; `fixed` if main is that, and the launches are
 * alike in all runs. */
void split_main(Entry *e);

/* ---- device_program.c -------------------------------------------------------------------------- */

/* Sets e->dev.program, the symbol of its constant. */
void define_program(Entry *e);

#endif
