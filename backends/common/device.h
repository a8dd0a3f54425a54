/* What the backends of all devices share: target strings, and a product that is an object for the
 * CPU that drives the device. */
#ifndef TVMCC_BACKENDS_DEVICE_H
#define TVMCC_BACKENDS_DEVICE_H

#include "backends/backend.h"

/* `<name> [-device=<model>] [-max_threads_per_block=<n>] [-max_shared_memory_per_block=<bytes>]
 * [-thread_warp_size=<n>] [words of its own] [, <host target>]`. The host that launches the kernels
 * is this machine unless another target follows. */
const Target *device_parse_target(Ctx *c, const Backend *b, const char *text);
void          device_list_target(StrBuf *out, const char *name, const char *about);

/* Backend.device_code, .jit_load, .jit_symbol and .jit_free of a device. */
bool  device_code(Ctx *c, const Plan *p, const CodegenOptions *o, DeviceCode *out);
Jit  *device_jit_load(Ctx *c, const Target *t, Bytes object);
void *device_jit_symbol(Jit *j, const char *func);
void  device_jit_free(Jit *j);

/* The row of a backend `id`, whose Device has that name: `about` is the device, for people. */
#define DEVICE_BACKEND(id, about)                               \
    static const Target *parse_target(Ctx *c, const char *text) \
    {                                                           \
        return device_parse_target(c, &backend_##id, text);     \
    }                                                           \
    static void list_targets(StrBuf *out)                       \
    {                                                           \
        device_list_target(out, #id, about);                    \
    }                                                           \
    const Backend backend_##id = {                              \
        .name = #id,                                            \
        .device = &id,                                          \
        .parse_target = parse_target,                           \
        .list_targets = list_targets,                           \
        .device_code = device_code,                             \
        .jit_load = device_jit_load,                            \
        .jit_symbol = device_jit_symbol,                        \
        .jit_free = device_jit_free,                            \
    };

/* How a function is called in a program: k_<letters and digits>. */
const char *device_symbol(Ctx *c, const char *func);

#endif
