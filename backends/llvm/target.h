/* Inside backends/llvm: what a target string says, while it is read.
 *
 *   target.c   words, triples, what the target is then
 *   cpus.c     CPUs and features by cpu.def and feature.def */
#ifndef TVMCC_BACKENDS_LLVM_TARGET_H
#define TVMCC_BACKENDS_LLVM_TARGET_H

#include "backends/llvm/llvm.h"

typedef struct {
    Arch        arch;
    const char *name, *llvm;
    uint32_t    caps;
} Cpu;

/* What a string says, before it is judged. */
typedef struct {
    Ctx        *c;
    const char *text; /* the whole string, for messages */
    const char *triple, *mcpu, *march, *mabi, *float_abi;
    StrBuf      mattr; /* "+a,-b" */
    bool        fast_math, winograd, small, no_libm, no_threads, no_cpu_check;
} Words;

/* ---- target.c ------------------------------------------------------------------------------------- */

Arch arch_of(const char *triple);

/* ---- cpus.c --------------------------------------------------------------------------------------- */

const char *arch_name(Arch arch);
const Cpu  *cpu_find(Arch arch, const char *name);
/* NULL or false with an error recorded, for all of these. */
void *bad_word(const Words *w, const char *what, const char *word);
void  did_you_mean(Ctx *c, const char *word, const char *const *list, size_t n);
void *bad_cpu(const Words *w, Arch arch, const char *word);
/* -march as what it stands for. */
bool apply_march(Words *w, Arch arch);
/* "+a,-b" checked and sorted out. */
const char *clean_features(Words *w, Arch arch, const char *text);
/* -mcpu=native. */
bool native_cpu(Words *w, Arch arch);

#endif
