/* Any bytes as the text of a TIR module: what parses prints, parses again to the same text, and
 * goes through the verifier of every stage without a crash. */
#include "ops/ops.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena           *a = arena_new(NULL);
    Ctx             *c = ctx_new(a, diags_new(a), op_table);
    const TirModule *m = tir_parse(c, "fuzz.tir", (Bytes){data, size}), *again;
    StrBuf           text = strbuf(a), back = strbuf(a);

    if (m && (tir_verify(c, m, TIR_NEST) || tir_verify(c, m, TIR_LOWERED))) {
        tir_print(c, m, &text);
        again = tir_parse(c, "again.tir", (Bytes){(const uint8_t *)text.at, text.n});
        if (!again)
            BUG("printed text does not parse:\n%s", text.at);
        tir_print(c, again, &back);
        if (strcmp(text.at, back.at) != 0)
            BUG("printed text parses as another module:\n%s", text.at);
    }
    if (m) {
        tir_verify(c, m, TIR_LOWERED);
        tir_verify(c, m, TIR_FLAT);
    }
    ctx_free(c);
    arena_free(a);
    return 0;
}
