/* What the estimates of kernels for GPUs share. */
#ifndef TVMCC_MACHINE_DEVICE_H
#define TVMCC_MACHINE_DEVICE_H

#include "machine/machine.h"

enum {
    DEVICE_OTHER_REGS = 20, /* of a thread: addresses, counters and what was just loaded */
    DEVICE_MEET = 30,       /* cycles of a barrier */
    DEVICE_COPY = 4,        /* instructions that copy a number to shared memory */
    DEVICE_GATHER = 20,     /* ... of a window, whose rows and columns are found for each */
    DEVICE_MEMORY = 2,      /* waits for caches that products, which read memory, wait for it */
    DEVICE_SECTOR = 32, /* bytes that memory moves at least, of a line (CUDA's programming guide) */
    DEVICE_ROWS_APART = 2 /* rounds of a load of shared memory by threads of two rows */
};

/* Of tiles that keep the multiply-adds busy, or wait as long for memory, that which loads least of
 * shared memory and has most on its way there: such a part of those loads and of the wait counts as
 * if nothing ran beside it. */
enum { DEVICE_AMONG_EQUALS = 64 };

/* Blocks that a core holds at a time, at least one: of so many threads, registers of a thread and
 * bytes of shared memory. */
double device_blocks_held(const Machine *m, double threads, double regs, double bytes);

/* Until all cores have what a kernel reads once and writes of memory, beside what the cache holds.
 */
double device_memory_cycles(const Machine *m, double bytes);

/* From one chunk to the next, of so many cycles of the core's units for all blocks that it holds
 * and of a block alone: it waits so long for a copy before each, or has begun it `ahead`. */
double device_chunk_cycles(bool ahead, double wait, double all, double own);

/* Threads of a tile's block, in whole warps. */
double device_tile_lanes(const Machine *m, const DeviceTile *t);

/* Loads of a step's panels where shared memory is cached memory (device_direct.c): one for all
 * threads of a warp that want the same. */
double device_cached_cycles(const Machine *m, const DeviceTile *t);
/* The sum without panels in shared memory (device_direct.c), of so many blocks that a core holds;
 * numbers of the operands that a thread keeps. */
double  device_direct_cycles(const Machine *m, const DeviceTile *t, double held);
int64_t device_direct_kept(const DeviceTile *t);

/* A number of which a run decides `open` rounds, where it decides on a part of the most; the
 * geometric mean over such parts of `most`, from all of it by halves to one. */
int64_t        device_part(int64_t all, int64_t open, int64_t part);
typedef double PartCycles(const void *user, int64_t part);
double         device_mean_cycles(int64_t most, PartCycles *cycles, const void *user);

#endif
