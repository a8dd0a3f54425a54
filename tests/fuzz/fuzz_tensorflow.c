/* Any bytes as a graph of TensorFlow or a SavedModel; what begins with a letter as text. */
#include "frontends/tensorflow/tensorflow.h"
#include "tests/fuzz/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *path_of(const uint8_t *data, size_t size)
{
    return size && data[0] >= 'a' && data[0] <= 'z' ? "/nonexistent/model.pbtxt"
                                                    : "/nonexistent/model.pb";
}

static void draw(Ctx *c, Bytes file, FuzzOptions *o)
{
    TfModel m;

    if (!tf_read_model(c, path_of(file.at, file.n), file, NULL, &m))
        return;
    for (uint32_t i = 0; i < m.in.n; i++) {
        const TfPortal *p = &m.in.at[i];

        fuzz_dim(o, arena_printf(c->arena, "%s.0", p->name));
        fuzz_input(c, o, p->name, p->shape ? p->shape->dim.n : 2);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_model(FUZZ_FORMAT(tensorflow), path_of(data, size), (Bytes){data, size}, draw);
}
