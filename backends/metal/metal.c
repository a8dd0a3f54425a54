/* Metal as a backend: GPUs of Apple's machines.  One product runs on all of them, since the
 * device's own compiler takes the text when the model is opened. */
#include "backends/metal/metal.h"

#include "backends/common/device.h"
#include "tvmcc/abi.h"

/* What all families since Apple4 and Mac2 have, by Apple's table of feature sets. */
static const DeviceModel models[] = {
#define MODEL(name) {name, 32 * 1024, 64, 32},
    MODEL(NULL) MODEL("apple-a14") MODEL("apple-m1") MODEL("apple-m1-max") MODEL("apple-m2")
        MODEL("apple-m3") MODEL("apple-m4")
#undef MODEL
            {0}};

static const Device metal = {
    .kind = TVMCC_DEVICE_METAL,
    .title = "Metal",
    .options = "",
    .one_warp = true,
    .threads = 256,
    .most_threads = 1024,
    .most_blocks = {INT32_MAX, INT32_MAX, INT32_MAX},
    .most_args = 512,   /* what comes as bytes: 4 KiB */
    .most_buffers = 30, /* and the values */
    .models = models,
    .source = metal_source,
};

DEVICE_BACKEND(metal, "GPUs of Apple's machines")
