/* Any bytes as a module of TVM's text, and those behind the first zero byte as its values. */
#include "frontends/tvm/tvm.h"
#include "tests/fuzz/model.h"

#include <string.h>

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
    const uint8_t *end = memchr(data, 0, size);
    size_t         n = end ? (size_t)(end - data) : size;

    values = end ? (Bytes){end + 1, size - n - 1} : (Bytes){data, 0};
    return fuzz_model("tvm", "/nonexistent/model.relay", (Bytes){data, n}, draw);
}
