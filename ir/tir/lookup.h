/* Cells of tables of 256 bytes, by a byte: what functions of 8 bits are. */
#ifndef TVMCC_IR_TIR_LOOKUP_H
#define TVMCC_IR_TIR_LOOKUP_H

#include "ir/tir/tir.h"

typedef struct {
    const Buffer *table;
    const Prim   *byte;   /* a load of i8 or u8 */
    uint8_t       offset; /* the cell is byte + offset, modulo 256 */
} Lookup;

/* Is p such a cell?  All of its table may be read wherever p may. */
bool prim_lookup(const Prim *p, Lookup *out);

#endif
