/* stub.c: memory of this machine, and kernels that fill nothing. */
#include "device.h"

#include <stdlib.h>
#include <string.h>

static int32_t stub_alloc(void *self, size_t bytes, void **memory)
{
    *memory = calloc(1, bytes);
    return tvmrt_device_check(self, !*memory, "calloc");
}

static void stub_free(void *self, void *memory)
{
    (void)self;
    free(memory);
}

static int32_t stub_upload(void *self, void *memory, size_t offset, const void *host, size_t bytes)
{
    (void)self;
    memcpy((char *)memory + offset, host, bytes);
    return TVMCC_OK;
}

static int32_t stub_download(void *self, void *host, void *memory, size_t offset, size_t bytes)
{
    (void)self;
    memcpy(host, (char *)memory + offset, bytes);
    return TVMCC_OK;
}

static int32_t stub_copy(void *self, void *to, size_t to_offset, void *from, size_t from_offset,
                         size_t bytes)
{
    (void)self;
    memmove((char *)to + to_offset, (char *)from + from_offset, bytes);
    return TVMCC_OK;
}

static int32_t stub_module_load(void *self, uint32_t form, const void *code, size_t bytes,
                                const char *options, void **module)
{
    (void)self, (void)form, (void)bytes, (void)options;
    *module = (void *)(uintptr_t)code;
    return TVMCC_OK;
}

static void stub_drop(void *self, void *module)
{
    (void)self, (void)module;
}

/* The name must be in the program. */
static int32_t stub_kernel(void *self, void *module, const char *name, void **kernel)
{
    *kernel = strstr(module, name);
    return tvmrt_device_check(self, !*kernel, name);
}

static int32_t stub_launch(void *self, void *kernel, const uint32_t grid[3],
                           const uint32_t block[3], const tvmcc_arg *args, uint32_t nargs)
{
    (void)self, (void)kernel, (void)grid, (void)block, (void)args, (void)nargs;
    return TVMCC_OK;
}

static int32_t stub_wait(void *self)
{
    (void)self;
    return TVMCC_OK;
}

static const char *stub_open(DeviceState *s)
{
    (void)s;
    return NULL;
}

static void stub_close(DeviceState *s)
{
    (void)s;
}

static uint32_t stub_devices(DeviceState *s, uint32_t n, tvmrt_device_info *out)
{
    (void)s;
    if (n)
        strcpy(out->name, "the only stub");
    return 1;
}

const DeviceDriver tvmrt_stub_driver = {
    .title = "Stub",
    .library = "libc.so.6",
    .no_library = "no C library",
    .no_call = "no C library",
    .no_device = "no stub",
    .bytes = sizeof(DeviceState),
    .open = stub_open,
    .close = stub_close,
    .devices = stub_devices,
    .functions = {.alloc = stub_alloc,
                  .free = stub_free,
                  .upload = stub_upload,
                  .download = stub_download,
                  .copy = stub_copy,
                  .module_load = stub_module_load,
                  .module_free = stub_drop,
                  .kernel = stub_kernel,
                  .kernel_free = stub_drop,
                  .launch = stub_launch,
                  .wait = stub_wait},
};
