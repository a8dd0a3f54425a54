/* Any bytes as the text of a Relay module: what parses must print, parse again as the same module,
 * and go through inference and the verifier without a crash. */
#include "ops/ops.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena        *a = arena_new(NULL);
    Ctx          *c = ctx_new(a, diags_new(a), op_table);
    const Module *m = relay_parse(c, "fuzz.relay", (Bytes){data, size}, (Bytes){0}), *again;
    StrBuf        text = strbuf(a), back = strbuf(a);

    if (m) {
        relay_print(c, m, (RelayPrint){.locs = true}, &text);
        again = relay_parse(c, "again.relay", (Bytes){(const uint8_t *)text.at, text.n},
                            relay_consts(c, m));
        if (!again || !module_same(c, m, again))
            BUG("printed text does not parse as the same module:\n%s", text.at);
        relay_print(c, again, (RelayPrint){.locs = true}, &back);
        if (strcmp(text.at, back.at) != 0)
            BUG("printed text changes when it is printed:\n%s----\n%s", text.at, back.at);
        relay_verify(c, m);
        if ((m = relay_infer(c, m)))
            relay_verify(c, m);
    }
    ctx_free(c);
    arena_free(a);
    return 0;
}
