/* OpenCL C as a backend: one product runs on every OpenCL device, since the program is built by the
 * device's driver when the model is opened. */
#include "backends/opencl/opencl.h"

#include "backends/common/device.h"
#include "tvmcc/abi.h"

static const Target *parse_target(Ctx *c, const char *text)
{
    return device_parse_target(c, &backend_opencl, text);
}

static void list_targets(StrBuf *out)
{
    str_add(out,
            "opencl   any device with OpenCL 1.2; the CPU that drives it may follow a comma\n");
}

static const DeviceModel models[] = {
#define MODEL(name, shared_kib, registers, warp) {name, shared_kib * 1024, registers, warp},
#include "backends/opencl/models.def"
#undef MODEL
    {0}};

static const Device opencl = {
    .kind = TVMCC_DEVICE_OPENCL,
    .title = "OpenCL",
    .packages = "pocl-opencl-icd, or the device's driver",
    .options = "-cl-std=CL1.2",
    .threads = 256,
    .most_threads = 1024,
    .most_blocks = {INT32_MAX, INT32_MAX, INT32_MAX},
    .models = models,
    .source = opencl_source,
};

const Backend backend_opencl = {
    .name = "opencl",
    .device = &opencl,
    .parse_target = parse_target,
    .list_targets = list_targets,
    .device_code = device_code,
    .jit_load = device_jit_load,
    .jit_symbol = device_jit_symbol,
    .jit_free = device_jit_free,
};
