/* Any bytes as a Keras model, a .keras archive or an .h5 file. */
#include "frontends/keras/keras.h"
#include "tests/fuzz/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void draw(Ctx *c, Bytes file, FuzzOptions *o)
{
    KerasPorts   ports = {0};
    KerasArchive a;
    KerasLayer  *l;
    InputDim     dims[MAX_RANK];
    uint32_t     rank;

    if (keras_read_archive(c, NO_LOC, file, &a) && (l = keras_read_config(c, "model.keras", &a))) {
        keras_inputs(c, l, &ports);
        for (uint32_t i = 0; i < ports.n; i++) {
            fuzz_dim(o, arena_printf(c->arena, "%s.0", ports.at[i].name));
            if (keras_shape(&ports.at[i], &rank, dims) && rank != UINT32_MAX)
                fuzz_input(c, o, ports.at[i].name, rank);
        }
    }
    json_decref(a.config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_model(FUZZ_FORMAT(keras), "/nonexistent/model.keras", (Bytes){data, size}, draw);
}
