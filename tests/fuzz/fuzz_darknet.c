/* Any bytes as a network of Darknet, and those behind the first zero byte as its weights. */
#include "frontends/darknet/darknet.h"
#include "tests/fuzz/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static Bytes values;

/* Its one input is a picture. */
static void draw(Ctx *c, Bytes file, FuzzOptions *o)
{
    static const char name[] = "/nonexistent/model.weights";

    (void)file;
    file_pretend(c->diags, name, values);
    o->options.weights = name;
    fuzz_dim(o, "data.0");
    fuzz_input(c, o, "data", 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Bytes file = fuzz_split((Bytes){data, size}, "", 1, &values);

    return fuzz_model(FUZZ_FORMAT(darknet), "/nonexistent/model.cfg", file, draw);
}
