/* A backend turns TIR into code: one struct of function pointers, optional ones marked with their
 * default.  The list is backends.def; nothing outside a backend's folder sees its libraries. */
#ifndef TVMCC_BACKENDS_BACKEND_H
#define TVMCC_BACKENDS_BACKEND_H

#include "ir/plan/code.h"
#include "objects/objects.h"

typedef enum {
    EMIT_OBJECT,
    EMIT_ASM,
    EMIT_LL,
    EMIT_SOURCE /* text of a device language */
} EmitKind;

/* What the devices of a backend have, or those of one make. */
typedef struct {
    const char *name;         /* of -device=; NULL: of any */
    uint32_t    shared_bytes; /* of a block */
    uint32_t    registers;    /* of a thread, 32 bits each, that cost nothing to use */
    uint32_t    warp;         /* threads that take one step together */
    uint32_t    has;          /* HAS_ .., unless the target says otherwise */
} DeviceModel;

/* What a device's backend adds to what all of them share (backends/common/device.h). */
typedef struct {
    uint32_t    kind;     /* TVMCC_DEVICE_x: which driver of the run-time library it wants */
    const char *title;    /* "OpenCL" */
    const char *packages; /* that bring a driver for a device, for people; NULL: none can */
    const char *options;  /* of module_load */
    uint32_t    threads, most_threads; /* of a block: where the target says nothing, and at most */
    uint32_t    most_shared;           /* bytes of a block; 0: the first model's */
    bool        one_warp;              /* as many threads take one step together on all of them */
    uint32_t    most_blocks[3];        /* of a launch, along each axis */
    uint32_t    most_args;             /* of a kernel, 8 bytes each; 0: the driver says */
    uint32_t    most_buffers;          /* among them; 0: as the arguments have room for */
    bool        no_math;               /* its language's functions of floats are inexact */
    /* What its code cannot have on any device; kernels with it are the host's (keep_on_host): f64,
     * or functions of f64, MATH_BIT each. */
    bool     no_f64;
    uint32_t no_f64_math;
    /* The first is taken where the target names none; behind the last one a warp of 0. */
    const DeviceModel *models;
    /* HAS_ .. that the target may say: `-supports_..=0` or `1`, as docs/targets.md lists them. */
    uint32_t switches;
    /* Optional: a word of a target string that not all devices have, `-name=value`; E_TARGET is
     * recorded where the value is wrong. */
    bool (*word)(Ctx *c, Target *t, const char *name, const char *value);
    const char *const *words; /* their names, NULL behind the last */
    /* Optional: bytes that a block shares on the GPUs that the target names, where it says no
     * number, and at most; behind all words. */
    uint32_t (*shared)(Ctx *c, const Target *t, bool most);
    /* Optional: behind all words; adds those that count to the canonical string.  False with
     * E_TARGET recorded where they do not go together. */
    bool (*canonical)(Ctx *c, Target *t, StrBuf *text);
    /* The program of all device functions of a module, as text. */
    bool (*source)(Ctx *c, const TirModule *m, StrBuf *out);
    /* Optional: what drivers load, the best first; NULL: they take the text. */
    bool (*images)(Ctx *c, const TirModule *m, const Target *t, const CodegenOptions *o,
                   DeviceImages *out);
    /* ... which a compiler makes that is not ours: its name and version, or "" if there is none, or
     * the target takes none; NULL: of any target. */
    const char *(*compiler)(Ctx *c, const Target *t);
    const char *compiler_hint; /* how to get it, for people */
    /* How a function is called in it; NULL: device_symbol. */
    const char *(*symbol)(Ctx *c, const char *func);
} Device;

typedef struct Jit Jit; /* loaded code of one plan or module, in this process */

typedef struct Backend {
    const char   *name;
    const Device *device; /* NULL: for CPUs */
    /* codegen gives text for another compiler (EMIT_SOURCE), and nothing else. */
    bool is_source;
    /* ... whose compiler, where it speaks GNU's options, must be told `-mavx2 -mfma`, or "". */
    const char *(*compiler_options)(Ctx *c, const Target *t);
    /* The target of a string such as "llvm -mcpu=haswell -mattr=+fma"; NULL with E_TARGET recorded,
     * with a suggestion, if a word is unknown.  mcpu=native is this machine. */
    const Target *(*parse_target)(Ctx *c, const char *text);
    /* One line each: for -print-targets. */
    void (*list_targets)(StrBuf *out);
    /* All functions of a plan, flat, as one object or text; NULL: a device, whose code the object
     * of its host embeds. */
    bool (*codegen)(Ctx *c, const Plan *p, const CodegenOptions *o, const CodegenInfo *info,
                    EmitKind kind, Bytes *out);
    /* Of a device: its functions of a plan. */
    bool (*device_code)(Ctx *c, const Plan *p, const CodegenOptions *o, DeviceCode *out);
    /* Optional: one kernel, @f, and its tiles as an object whose only global symbol is `f`; an
     * empty module gives an empty object.  Where objects are ELF they can be merged. */
    bool (*unit)(Ctx *c, const TirModule *m, const Target *t, const CodegenOptions *o, Bytes *out);
    /* Optional (NULL: cannot run here).  Load flat functions into this process. */
    Jit *(*jit)(Ctx *c, const TirModule *m, const Target *t);
    /* ... an object that codegen gave, or that units were merged to. */
    Jit *(*jit_load)(Ctx *c, const Target *t, Bytes object);
    /* ... void (*)(void *const *buffers, const int64_t *scalars) of `jit`, any symbol of
     * `jit_load` */
    void *(*jit_symbol)(Jit *j, const char *func);
    void (*jit_free)(Jit *j);
} Backend;

const Backend *backend_find(const char *name); /* "llvm", "opencl"; NULL if unknown */
const Backend *backend_cpu(void);              /* for this machine, and what drives devices */
/* The i-th of backends.def and what it is for; NULL behind the last. */
const Backend *backend_at(uint32_t i, const char **about);

#define BACKEND(name, about) extern const Backend backend_##name;
#define DEVICE(name, about, product, text, suffix, what) extern const Backend backend_##name;
#define SIBLING(name, about, product) extern const Backend backend_##name;
#define SOURCE(name, about, product, text, suffix, what) extern const Backend backend_##name;
#include "backends/backends.def"

#endif
