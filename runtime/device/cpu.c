/* cpu.c: the CPU's memory as a device.
 *
 * CPU kernels sit in the host object, so there is nothing to load or launch: this table serves code
 * that moves tensors between devices and should not care which one it has.
 */
#include "tvmcc/runtime.h"

#include <stdlib.h>
#include <string.h>

static int32_t cpu_alloc(void *self, size_t bytes, void **memory)
{
    (void)self;
    *memory = NULL;
    if (bytes > SIZE_MAX - 63)
        return TVMCC_E_DEVICE;
    *memory = aligned_alloc(64, bytes ? (bytes + 63) / 64 * 64 : 64);
    return *memory ? TVMCC_OK : TVMCC_E_DEVICE;
}

static void cpu_free(void *self, void *memory)
{
    (void)self;
    free(memory);
}

static int32_t cpu_upload(void *self, void *memory, size_t offset, const void *host, size_t bytes)
{
    (void)self;
    memcpy((char *)memory + offset, host, bytes);
    return TVMCC_OK;
}

static int32_t cpu_download(void *self, void *host, void *memory, size_t offset, size_t bytes)
{
    (void)self;
    memcpy(host, (const char *)memory + offset, bytes);
    return TVMCC_OK;
}

static int32_t cpu_copy(void *self, void *to, size_t to_offset, void *from, size_t from_offset,
                        size_t bytes)
{
    (void)self;
    memmove((char *)to + to_offset, (const char *)from + from_offset, bytes);
    return TVMCC_OK;
}

static int32_t cpu_wait(void *self)
{
    (void)self;
    return TVMCC_OK;
}

static const char *cpu_last_error(void *self)
{
    (void)self;
    return "out of memory";
}

const tvmcc_device *tvmrt_cpu_device(void)
{
    static const tvmcc_device cpu = {
        .struct_bytes = sizeof(tvmcc_device),
        .kind = TVMCC_DEVICE_CPU,
        .alloc = cpu_alloc,
        .free = cpu_free,
        .upload = cpu_upload,
        .download = cpu_download,
        .copy = cpu_copy,
        .wait = cpu_wait,
        .last_error = cpu_last_error,
    };

    return &cpu;
}
