/* SPIR-V modules of kernels, run on the CPU: an interpreter for tests, which knows what drivers of
 * CPUs do not (cooperative matrices) and reports what they let pass.
 *
 * Workgroups run one after another, their threads in turn from barrier to barrier.  The module is
 * taken as a device takes it: pointers come as numbers in push constants, and everything else is
 * what the words say.  An error names the instruction and the thread:
 *
 *     an instruction, capability or operand that the interpreter has no row for
 *     an access outside the memory of the launch or of a variable, or off its alignment
 *     a read of memory of the workgroup where nothing has been stored
 *     a division by zero, a float that the integer cannot hold
 *     a barrier, or an instruction of a subgroup, that only some threads come to
 *     matrices that threads take from other places, or from none that Vulkan allows
 *     a loop without an end
 *
 * Races are not looked for: the interpreter of TIR does that (ir/tir/eval_launch.c). */
#ifndef TVMCC_TESTS_SPIRV_RUN_H
#define TVMCC_TESTS_SPIRV_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPIRV_SUBGROUP = 32 }; /* threads, one behind the other by their number in the workgroup */

/* What pointers may lead to: their numbers are addresses of this process. */
typedef struct {
    void  *at;
    size_t bytes;
} SpirvMemory;

typedef struct {
    const char        *entry;
    uint32_t           groups[3];
    const void        *push; /* the push constants */
    size_t             push_bytes;
    const SpirvMemory *memory;
    size_t             nmemory;
} SpirvLaunch;

/* Runs all workgroups.  False: *error, malloc'd, says why. */
bool spirv_run(const uint32_t *words, size_t n, const SpirvLaunch *launch, char **error);

#endif
