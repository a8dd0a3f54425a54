/* Any bytes as a net of Caffe2, and those behind the mark as the net that fills its weights. */
#include "frontends/caffe2/caffe2.h"
#include "tests/fuzz/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static Bytes values;

static void draw(Ctx *c, Bytes file, FuzzOptions *o)
{
    static const char name[] = "/nonexistent/init_net.pb";
    C2Net             net;

    file_pretend(c->diags, name, values);
    o->options.weights = name;
    if (!c2_read_net(c, "predict_net.pb", file, &net))
        return;
    for (uint32_t i = 0; i < net.input.n; i++) {
        fuzz_dim(o, arena_printf(c->arena, "%s.0", net.input.at[i]));
        fuzz_input(c, o, net.input.at[i], 1 + fuzz_draw(o, 4));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Bytes file = fuzz_split((Bytes){data, size}, "----", 4, &values);

    return fuzz_model(FUZZ_FORMAT(caffe2), "/nonexistent/predict_net.pb", file, draw);
}
