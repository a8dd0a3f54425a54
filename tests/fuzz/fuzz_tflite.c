/* Any bytes as a TensorFlow Lite model. */
#include "frontends/tflite/tflite.h"
#include "tests/fuzz/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void draw(Ctx *c, Bytes file, FuzzOptions *o)
{
    const TfliteGraph *g;
    TfliteModel        m;

    if (!tflite_read(c, NO_LOC, file, NULL, &m))
        return;
    g = m.main;
    for (uint32_t i = 0; i < g->in.n; i++) {
        int64_t     at = fb_int_at(g->in, FB_I32, i);
        const char *name = tflite_port_name(c, &m, at, false);

        fuzz_dim(o, arena_printf(c->arena, "%s.0", name));
        fuzz_input(c, o, name, tflite_tensor(g, at)->shape.n);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_model(FUZZ_FORMAT(tflite), "/nonexistent/model.tflite", (Bytes){data, size}, draw);
}
