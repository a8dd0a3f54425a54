/* A product as the compiler makes them, written by hand: y = weights[0] * x, for three floats. */
#include "tvmcc/abi.h"

static const float   weights[16] = {2.0f};
static const int64_t dims[1] = {3};

static const tvmcc_tensor_info x = {.name = "x",
                                    .dims = dims,
                                    .bytes = 12,
                                    .code = TVMCC_FLOAT,
                                    .bits = 32,
                                    .lanes = 1,
                                    .ndim = 1,
                                    .align = 4};
static const tvmcc_tensor_info y = {.name = "y",
                                    .dims = dims,
                                    .bytes = 12,
                                    .code = TVMCC_FLOAT,
                                    .bits = 32,
                                    .lanes = 1,
                                    .ndim = 1,
                                    .align = 4};
static const tvmcc_weight_info blob = {.section = MODE == TVMCC_WEIGHTS_EMBED ? ".rodata" : "",
                                       .data = MODE == TVMCC_WEIGHTS_EMBED ? weights : NULL,
                                       .bytes = sizeof weights,
                                       .mode = MODE,
                                       .align = 64,
                                       .sha256 = {1, 2, 3}};

static int32_t run(void *const *in, void *const *out, const tvmcc_params *params)
{
    const float *w = params->weights ? params->weights : weights;

    if (params->struct_bytes < sizeof *params)
        return TVMCC_E_MISMATCH;
    for (int i = 0; i < 3; i++)
        ((float *)out[0])[i] = w[0] * ((const float *)in[0])[i];
    return TVMCC_OK;
}

const tvmcc_model_info *INFO(void);

const tvmcc_model_info *INFO(void)
{
    static const tvmcc_model_info info = {.abi = TVMCC_ABI,
                                          .struct_bytes = sizeof(tvmcc_model_info),
                                          .name = "fake",
                                          .toolchain = "by hand",
                                          .targets = "llvm",
                                          .ninputs = 1,
                                          .noutputs = 1,
                                          .nweights = 1,
                                          .inputs = &x,
                                          .outputs = &y,
                                          .weights = &blob,
                                          .arena_shared = 100,
                                          .arena_private = 10,
                                          .arena_align = 64,
                                          .device = TVMCC_DEVICE_CPU,
                                          .run = run};

    return &info;
}
