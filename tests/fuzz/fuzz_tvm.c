/* Any bytes as a module of TVM's text, and those behind the first zero byte as its values. */
#include "frontends/tvm/tvm.h"
#include "tests/fuzz/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static Bytes values;

static void draw(Ctx *c, Bytes file, FuzzOptions *o)
{
    static const char name[] = "/nonexistent/model.params";

    (void)file;
    if (!values.n)
        return;
    file_pretend(c->diags, name, values);
    o->options.weights = name;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Bytes file = fuzz_split((Bytes){data, size}, "", 1, &values);

    return fuzz_model(FUZZ_FORMAT(tvm), "/nonexistent/model.relay", file, draw);
}
