/* Any bytes as a Core ML model. */
#include "frontends/coreml/coreml.h"
#include "tests/fuzz/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void draw(Ctx *c, Bytes file, FuzzOptions *o)
{
    const char *path = "/nonexistent/model.mlmodel";
    CmlModel    m;

    if (!cml_read(c, &path, file, NULL, &m) || !m.description)
        return;
    for (uint32_t i = 0; i < m.description->in.n; i++) {
        const CmlFeature *f = m.description->in.at[i];

        if (!f->name || !f->type)
            continue;
        fuzz_dim(o, arena_printf(c->arena, "%s.0", f->name));
        if (f->type->image || f->type->array)
            fuzz_input(c, o, f->name, f->type->image ? 3 : f->type->array->shape.n);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_model(FUZZ_FORMAT(coreml), "/nonexistent/model.mlmodel", (Bytes){data, size}, draw);
}
