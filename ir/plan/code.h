/* How code is made of a plan, beside what the plan itself says: what entry functions
 * (passes/lower/entry/) and backends are told. */
#ifndef TVMCC_IR_PLAN_CODE_H
#define TVMCC_IR_PLAN_CODE_H

#include "ir/plan/plan.h"

/* A kernel of a device: what its launches pass, and what a block of it takes. */
typedef struct {
    const char *func, *symbol; /* its name in launches, and in the code */
    uint32_t    buffers, value_bytes;
    uint32_t    threads[3]; /* 0: a run decides */
    uint32_t    shared_bytes;
} DeviceKernel;

/* All kernels for one sort of device: a part for each, or one for all. */
typedef struct {
    uint32_t    form;   /* TVMCC_CODE_x */
    const char *target; /* "sm_80"; "": any */
    BytesList   parts;
} DeviceImage;

typedef VEC(DeviceImage) DeviceImages;

/* Code of a device target, to be embedded in the host's object: the first image that loads is
 * taken.  The host's <entry>_open loads it through the device table of its params and allocates the
 * plan's arena and weights in device memory. */
typedef struct DeviceCode {
    uint32_t            kind;    /* TVMCC_DEVICE_x */
    const char         *target;  /* text of the whole target */
    const char         *options; /* of module_load */
    DeviceImages        images;
    uint64_t            arena_bytes; /* in device memory; the plan of the host has none */
    uint32_t            nkernels;
    const DeviceKernel *kernels;
} DeviceCode;

typedef struct {
    const char *entry;     /* prefix of exported symbols */
    const char *header;    /* file that source text includes; NULL: <entry>.h */
    uint32_t    opt_level; /* 0..3 */
    bool        pic;
    bool        embed_weights; /* <entry>_weights is a symbol of another object, else from params */
    bool        extern_weights;  /* ... that the caller supplies; with embed_weights */
    const char *weights_section; /* of that symbol, for the info; NULL: .rodata.<symbol> */
    Bytes       weights;   /* ... or of this one, where objects are not ELF and cannot be joined */
    bool        host_only; /* the kernels are `unit` objects; they are only declared here */
    bool        verbose;
    bool        device_text; /* what a device loads is its text, whatever its driver takes */
    struct Cache    *cache;  /* of a device's code, kernel by kernel; NULL: none */
    uint32_t         jobs;   /* ... and threads that make it */
    const TirModule *host;   /* the entry functions (passes/lower/entry/) */
} CodegenOptions;

/* What the info struct of the product says (include/tvmcc/abi.h), from packaging's ModelDesc. Where
 * `header` is not NULL, exported functions have a second name each, <name>_header_<header>. */
typedef struct CodegenInfo {
    uint32_t    model_sha[8]; /* as bytes */
    uint8_t     build_id[32];
    uint8_t     weights_sha[32];
    const char *header;
} CodegenInfo;

#endif
