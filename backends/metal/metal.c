/* Metal as a backend: GPUs of Apple's machines.  One product runs on all of them: it holds text,
 * which the device's own compiler takes when the model is opened, or that as Apple's tools have
 * compiled it. */
#include "backends/metal/metal.h"

#include "tvmcc/abi.h"

/* What all families since Apple4 and Mac2 have, by Apple's table of feature sets. */
static const DeviceModel models[] = {
#define MODEL(name) {name, 32 * 1024, 64, 32, 0},
    MODEL(NULL) MODEL("apple-a14") MODEL("apple-m1") MODEL("apple-m1-max") MODEL("apple-m2")
        MODEL("apple-m3") MODEL("apple-m4")
#undef MODEL
            {0}};

static bool images(Ctx *c, const TirModule *m, const Target *t, const CodegenOptions *o,
                   DeviceImages *out)
{
    return *t->mcpu ? metal_libraries(c, m, t, o, out)
                    : device_text_image(c, t->backend->device, m, out);
}

static const Device metal = {
    .kind = TVMCC_DEVICE_METAL,
    .title = "Metal",
    .options = "",
    .one_warp = true,
    .no_f64 = true,
    .threads = 256,
    .most_threads = 1024,
    .most_blocks = {INT32_MAX, INT32_MAX, INT32_MAX},
    .most_args = 512,   /* what comes as bytes: 4 KiB */
    .most_buffers = 30, /* and the values */
    .models = models,
    .word = metal_word,
    .words = metal_words,
    .canonical = metal_canonical,
    .source = metal_source,
    .images = images,
    .compiler = metal_compiler_version,
    .compiler_hint = "xcrun with metal and metallib, which Xcode has (for -metallib=, optional)",
};

DEVICE_BACKEND(metal, "GPUs of Apple's machines")
