/* Any bytes as a net of Caffe2, and those behind the mark as the net that fills its weights. */
#include "frontends/caffe2/caffe2.h"
#include "tests/fuzz/model.h"

#include <string.h>

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
    static const char mark[] = "----";
    const uint8_t    *end = memmem(data, size, mark, 4);
    size_t            n = end ? (size_t)(end - data) : size;

    values = end ? (Bytes){end + 4, size - n - 4} : (Bytes){data, 0};
    return fuzz_model("caffe2", "/nonexistent/predict_net.pb", (Bytes){data, n}, draw);
}
