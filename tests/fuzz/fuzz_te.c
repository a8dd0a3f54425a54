/* Any bytes as the text of a tensor expression, and after a line `----` the steps of a schedule:
 * what parses prints and parses again, and the nest that the steps make is valid TIR. */
#include "ops/ops.h"
#include "schedules/schedules.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const Target cpu = {.text = "llvm",
                           .pointer_bits = 64,
                           .vector_bytes = 32,
                           .vector_regs = 16,
                           .l1_bytes = 32768,
                           .l2_bytes = 524288,
                           .max_threads = 1};

static void schedule(Ctx *c, const TeFunc *te, Bytes steps)
{
    Sched           *s = sched_new(c, &cpu, te);
    const TirModule *m;

    if (!s)
        return;
    sched_parse(c, "fuzz.sched", steps, s);
    m = tirmod_new(c, 1, &s->f);
    diag_drop(c->diags, 0);
    if (!tir_verify(c, m, TIR_NEST)) {
        StrBuf text = strbuf(c->arena);

        tir_print(c, m, &text);
        diag_print(c->diags, DIAG_TEXT, &text);
        BUG("the nest of a schedule is not valid:\n%s", text.at);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena         *a = arena_new(NULL);
    Ctx           *c = ctx_new(a, diags_new(a), op_table);
    const uint8_t *cut = memmem(data, size, "\n----\n", 6);
    size_t         n = cut ? (size_t)(cut - data) + 1 : size;
    Bytes          steps = cut ? (Bytes){cut + 6, size - n - 5} : (Bytes){0};
    const TeFunc  *te = te_parse(c, "fuzz.te", (Bytes){data, n});
    StrBuf         text = strbuf(a);

    if (te) {
        te_print(c, te, &text);
        if (!te_parse(c, "again.te", (Bytes){(const uint8_t *)text.at, text.n}))
            BUG("printed text does not parse:\n%s", text.at);
        schedule(c, te, steps);
    }
    ctx_free(c);
    arena_free(a);
    return 0;
}
