/* Any bytes as an MXNet graph, and those behind the first zero byte as its values. */
#include "frontends/mxnet/mxnet.h"
#include "tests/fuzz/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static Bytes values;

static void draw(Ctx *c, Bytes file, FuzzOptions *o)
{
    static const char name[] = "/nonexistent/model-0000.params";
    MxGraph           g;

    file_pretend(c->diags, name, values);
    o->options.weights = name;
    if (!mx_read_symbol(c, "model-symbol.json", file, &g))
        return;
    for (uint32_t i = 0; i < g.nvars; i++) {
        const char *at = g.op[g.vars[i]].name;

        fuzz_dim(o, arena_printf(c->arena, "%s.0", at));
        fuzz_input(c, o, at, 1 + fuzz_draw(o, 4));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Bytes file = fuzz_split((Bytes){data, size}, "", 1, &values);

    return fuzz_model(FUZZ_FORMAT(mxnet), "/nonexistent/model-symbol.json", file, draw);
}
