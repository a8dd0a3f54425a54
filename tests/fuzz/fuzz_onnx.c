/* Any bytes as an ONNX model: imported, and what comes is verified and printed. */
#include "frontends/frontends.h"
#include "ops/ops.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena        *a = arena_new(NULL);
    Diags        *d = diags_new(a);
    Ctx          *c = ctx_new(a, d, op_table);
    ImportOptions o = {0};
    ImportFiles   files = {0};
    Bytes         file = {data, size};
    const Module *m = NULL;
    StrBuf        text = strbuf(a);

    onnx_bid("model", file);
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
