/* Any bytes as a TensorFlow Lite model: imported, and what comes is verified and printed.
 *
 * What the user may say of inputs and dimensions is drawn for the names that the model has, by a
 * hash of its bytes: the same file is always the same case. */
#include "frontends/tflite/tflite.h"
#include "ops/ops.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A number below n. */
static uint32_t draw(uint64_t *seed, uint32_t n)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 40) % n;
}

enum { MOST = 8 };

static void draw_options(Ctx *c, Bytes file, ImportOptions *o)
{
    static const char *const values[] = {"0", "1", "-3", "1e40", "true", "x"};
    Arena                   *a = c->arena;
    ImportShape             *shapes = NEW_ARRAY(a, ImportShape, MOST);
    ImportDim               *dims = NEW_ARRAY(a, ImportDim, MOST);
    ImportValue             *given = NEW_ARRAY(a, ImportValue, MOST);
    const TfliteGraph       *g;
    TfliteModel              m;
    uint64_t                 seed = file.n;

    for (size_t i = 0; i < file.n; i++)
        seed = (seed ^ file.at[i]) * 0x100000001b3u;
    if (draw(&seed, 2) || !tflite_read(c, NO_LOC, file, &m))
        return;
    g = m.graphs.at[0];
    for (uint32_t i = 0; i < g->in.n && i < MOST; i++) {
        int64_t             at = fb_int_at(g->in, FB_I32, i);
        const TfliteTensor *t = tflite_tensor(g, at);
        const char         *name = tflite_port_name(c, &m, at, false);
        uint32_t            n = t->shape.n + !draw(&seed, 20);
        int64_t            *sizes = NEW_ARRAY(a, int64_t, n + 1);

        for (uint32_t k = 0; k < n; k++)
            sizes[k] = (int64_t)draw(&seed, 5) - 1;
        if (o->ndims < MOST && !draw(&seed, 3))
            dims[o->ndims++] = (ImportDim){arena_printf(a, "%s.0", name), 1, 1 + draw(&seed, 4)};
        if (!draw(&seed, 3))
            shapes[o->nshapes++] = (ImportShape){.name = name, .ndim = n, .dims = sizes};
        else if (!draw(&seed, 3))
            given[o->nvalues++] =
                (ImportValue){.name = name, .text = values[draw(&seed, COUNT(values))]};
    }
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

    tflite_bid("model.tflite", file);
    draw_options(c, file, &o);
    tflite_describe(c, "/nonexistent/model.tflite", file, &signature);
    diag_drop(d, 0);
    m = tflite_import(c, "/nonexistent/model.tflite", file, &o, &files);
    if (m && relay_verify(c, m))
        relay_print(c, m, (RelayPrint){0}, &text);
    else if (!diag_errors(d))
        BUG("an import failed without an error");
    diag_print(d, DIAG_TEXT, &text);
    ctx_free(c);
    arena_free(a);
    return 0;
}
