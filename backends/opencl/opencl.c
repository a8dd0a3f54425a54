/* OpenCL C as a backend: one product runs on every OpenCL device, since the program is built by the
 * device's driver when the model is opened. */
#include "backends/opencl/opencl.h"

#include "backends/common/device.h"
#include "tvmcc/abi.h"

static const DeviceModel models[] = {
    /* 32 KiB are the least of OpenCL's full profile, 64 registers what phones have */
    {NULL, 32 * 1024, 64, 32, HAS_F64},
#include "backends/common/models.def"
    {0}};

static const Device opencl = {
    .kind = TVMCC_DEVICE_OPENCL,
    .title = "OpenCL",
    .packages = "pocl-opencl-icd, or the device's driver",
    .options = "-cl-std=CL1.2",
    .threads = 256,
    .most_threads = 1024,
    .most_shared = 64 * 1024,
    .most_blocks = {INT32_MAX, INT32_MAX, INT32_MAX},
    .most_args = OPENCL_ARGS,
    .models = models,
    .switches = HAS_HALF | HAS_DOTS | HAS_F64,
    .canonical = opencl_canonical,
    .source = opencl_source,
};

DEVICE_BACKEND(opencl, "any device with OpenCL 1.2")
