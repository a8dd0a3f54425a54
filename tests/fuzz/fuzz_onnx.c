/* Any bytes as an ONNX model: imported, and what comes is verified and printed.
 *
 * What the user may say of inputs and dimensions is drawn for the names that the model has, by a
 * hash of its bytes: the same file is always the same case. */
#include "frontends/onnx/onnx.h"
#include "ops/ops.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A number below n. */
static uint32_t draw(uint64_t *seed, uint32_t n)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 40) % n;
}

enum { MOST = 8 };

static void draw_options(Arena *a, Bytes file, ImportOptions *o)
{
    static const char *const values[] = {"0", "1", "-3", "1e40", "true", "x"};
    OnnxModel                model = {0};
    ImportShape             *shapes = NEW_ARRAY(a, ImportShape, MOST);
    ImportDim               *dims = NEW_ARRAY(a, ImportDim, MOST);
    ImportValue             *given = NEW_ARRAY(a, ImportValue, MOST);
    uint64_t                 seed = file.n;

    for (size_t i = 0; i < file.n; i++)
        seed = (seed ^ file.at[i]) * 0x100000001b3u;
    if (draw(&seed, 2) || !pb_read(diags_new(a), a, NO_LOC, &onnx_model, file, &model) ||
        !model.graph)
        return;
    for (uint32_t i = 0; i < model.graph->input.n; i++) {
        const OnnxValue      *v = model.graph->input.at[i];
        const OnnxTensorType *t = v->type ? v->type->tensor : NULL;
        uint32_t              n = t && t->shape ? t->shape->dims.n : draw(&seed, 4);
        int64_t              *sizes = NEW_ARRAY(a, int64_t, n + 2);

        for (uint32_t k = 0; k < n; k++) {
            const OnnxDim *d = t && t->shape ? t->shape->dims.at[k] : NULL;

            sizes[k] = (int64_t)draw(&seed, 5) - 1;
            if (d && d->param && o->ndims < MOST && !draw(&seed, 3))
                dims[o->ndims++] = (ImportDim){d->param, 1, 1 + draw(&seed, 4)};
        }
        n += !draw(&seed, 20);
        if (v->name && o->nshapes < MOST && !draw(&seed, 3))
            shapes[o->nshapes++] = (ImportShape){.name = v->name, .ndim = n, .dims = sizes};
        else if (v->name && o->nvalues < MOST && !draw(&seed, 3))
            given[o->nvalues++] =
                (ImportValue){.name = v->name, .text = values[draw(&seed, COUNT(values))]};
    }
    if (!draw(&seed, 30))
        dims[o->ndims < MOST ? o->ndims++ : 0] = (ImportDim){"misspelt", 2, 2};
    o->shapes = shapes;
    o->dims = dims;
    o->values = given;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena         *a = arena_new(NULL);
    Diags         *d = diags_new(a);
    Ctx           *c = ctx_new(a, d, op_table);
    ImportOptions  o = {0};
    ImportFiles    files = {0};
    Bytes          file = {data, size};
    const Module  *m = NULL;
    ModelSignature signature = {0};
    StrBuf         text = strbuf(a);

    onnx_bid("model", file);
    draw_options(a, file, &o);
    onnx_describe(c, "/nonexistent/model.onnx", file, &signature);
    diag_drop(d, 0);
    m = onnx_import(c, "/nonexistent/model.onnx", file, &o, &files);
    if (m && relay_verify(c, m))
        relay_print(c, m, (RelayPrint){0}, &text);
    else if (!diag_errors(d))
        BUG("an import failed without an error");
    diag_print(d, DIAG_TEXT, &text);
    ctx_free(c);
    arena_free(a);
    return 0;
}
