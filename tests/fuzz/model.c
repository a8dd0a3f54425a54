#include "tests/fuzz/model.h"
#include "ops/ops.h"

#include <string.h>

uint32_t fuzz_draw(FuzzOptions *o, uint32_t n)
{
    o->seed = o->seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(o->seed >> 40) % n;
}

void fuzz_dim(FuzzOptions *o, const char *name)
{
    if (o->options.ndims < FUZZ_MOST && !fuzz_draw(o, 3))
        o->dims[o->options.ndims++] = (ImportDim){name, 1, 1 + fuzz_draw(o, 4)};
}

void fuzz_input(Ctx *c, FuzzOptions *o, const char *name, uint32_t rank)
{
    static const char *const texts[] = {"0", "1", "-3", "1e40", "true", "x"};
    uint32_t                 n = rank + !fuzz_draw(o, 20); /* or one more than it has */
    int64_t                 *sizes = NEW_ARRAY(c->arena, int64_t, n + 1);

    for (uint32_t i = 0; i < n; i++)
        sizes[i] = (int64_t)fuzz_draw(o, 5) - 1;
    if (o->options.nshapes < FUZZ_MOST && !fuzz_draw(o, 3))
        o->shapes[o->options.nshapes++] = (ImportShape){.name = name, .ndim = n, .dims = sizes};
    else if (o->options.nvalues < FUZZ_MOST && !fuzz_draw(o, 3))
        o->values[o->options.nvalues++] =
            (ImportValue){.name = name, .text = texts[fuzz_draw(o, COUNT(texts))]};
}

Bytes fuzz_split(Bytes data, const char *mark, size_t n, Bytes *behind)
{
    const uint8_t *end = memmem(data.at, data.n, mark, n);
    size_t         first = end ? (size_t)(end - data.at) : data.n;

    *behind = end ? (Bytes){end + n, data.n - first - n} : (Bytes){data.at, 0};
    return (Bytes){data.at, first};
}

static void draw_options(Ctx *c, Bytes file, FuzzOptions *o,
                         void (*draw)(Ctx *c, Bytes file, FuzzOptions *o))
{
    o->seed = file.n;
    for (size_t i = 0; i < file.n; i++)
        o->seed = (o->seed ^ file.at[i]) * 0x100000001b3u;
    if (fuzz_draw(o, 2)) {
        draw(c, file, o);
        if (!fuzz_draw(o, 30))
            fuzz_dim(o, "misspelt");
    }
    diag_drop(c->diags, 0);
    o->options.shapes = o->shapes;
    o->options.dims = o->dims;
    o->options.values = o->values;
}

/* All of it is there to be read. */
static void print_tensors(StrBuf *out, uint32_t n, const SignatureTensor *t)
{
    for (uint32_t i = 0; i < n; i++) {
        str_printf(out, "%s: %s", t[i].name, t[i].type);
        for (uint32_t k = 0; t[i].ndim != UINT32_MAX && k < t[i].ndim; k++)
            str_printf(out, " %lld%s", (long long)t[i].dims[k].value,
                       t[i].dims[k].name ? t[i].dims[k].name : "");
    }
}

int fuzz_model(const Frontend *f, const char *path, Bytes file,
               void (*draw)(Ctx *c, Bytes file, FuzzOptions *o))
{
    Arena         *a = arena_new(NULL);
    Diags         *d = diags_new(a);
    Ctx           *c = ctx_new(a, d, op_table);
    FuzzOptions   *o = NEW(a, FuzzOptions);
    ImportFiles    files = {0};
    ModelSignature signature = {0};
    StrBuf         text = strbuf(a);
    const Module  *m;

    f->bid(path, file);
    draw_options(c, file, o, draw);
    if (f->describe(c, path, file, &o->options, &signature)) {
        print_tensors(&text, signature.ninputs, signature.inputs);
        print_tensors(&text, signature.noutputs, signature.outputs);
    }
    diag_drop(d, 0);
    m = f->import(c, path, file, &o->options, &files);
    if (m && relay_verify(c, m))
        relay_print(c, m, (RelayPrint){0}, &text);
    else if (!diag_errors(d))
        BUG("an import failed without an error");
    diag_print(d, DIAG_TEXT, &text);
    ctx_free(c);
    arena_free(a);
    return 0;
}
