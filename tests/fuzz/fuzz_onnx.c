/* Any bytes as an ONNX model. */
#include "frontends/onnx/onnx.h"
#include "tests/fuzz/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void draw(Ctx *c, Bytes file, FuzzOptions *o)
{
    OnnxModel m;

    if (!onnx_read(c, "model.onnx", file, &m))
        return;
    for (uint32_t i = 0; i < m.graph->input.n; i++) {
        const OnnxValue      *v = m.graph->input.at[i];
        const OnnxTensorType *t = v->type ? v->type->tensor : NULL;
        const PbMsgs         *dims = t && t->shape ? &t->shape->dims : NULL;

        for (uint32_t k = 0; dims && k < dims->n; k++) {
            const OnnxDim *d = dims->at[k];

            if (d->param)
                fuzz_dim(o, d->param);
        }
        if (v->name)
            fuzz_input(c, o, v->name, dims ? dims->n : fuzz_draw(o, 4));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_model(FUZZ_FORMAT(onnx), "/nonexistent/model.onnx", (Bytes){data, size}, draw);
}
