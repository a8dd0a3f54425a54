/* Any bytes as a program of torch.export: imported, and what comes is verified and printed.
 *
 * What the user may say of dimensions is drawn for the names that the program has, by a hash of its
 * bytes: the same file is always the same case. */
#include "frontends/pytorch/pytorch.h"
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
    ImportDim *dims = NEW_ARRAY(c->arena, ImportDim, MOST);
    PtArchive  archive = {0};
    PtProgram  program;
    uint64_t   seed = file.n;

    for (size_t i = 0; i < file.n; i++)
        seed = (seed ^ file.at[i]) * 0x100000001b3u;
    if (draw(&seed, 2) || !pt_read_archive(c, NO_LOC, file, &archive) ||
        !pt_read_program(c, NO_LOC, archive.program, &program))
        return;
    for (uint32_t i = 0; i < program.ranges.n && o->ndims < MOST; i++)
        if (draw(&seed, 2))
            dims[o->ndims++] = (ImportDim){program.ranges.at[i].name, 1, 1 + draw(&seed, 4)};
    o->dims = dims;
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

    pytorch_bid("model.pt2", file);
    draw_options(c, file, &o);
    diag_drop(d, 0);
    pytorch_describe(c, "/nonexistent/model.pt2", file, &signature);
    diag_drop(d, 0);
    m = pytorch_import(c, "/nonexistent/model.pt2", file, &o, &files);
    if (m && relay_verify(c, m))
        relay_print(c, m, (RelayPrint){0}, &text);
    else if (!diag_errors(d))
        BUG("an import failed without an error");
    diag_print(d, DIAG_TEXT, &text);
    ctx_free(c);
    arena_free(a);
    return 0;
}
