/* Any bytes as the text of tensor expressions, and after a line `----` the steps of a schedule:
 * what parses prints, parses again and prints the same; so do the steps that were taken and the
 * nest that they make, which is valid TIR. */
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

static Bytes bytes_of(StrBuf s)
{
    return (Bytes){(const uint8_t *)s.at, s.n};
}

static void check_same(const char *what, StrBuf was, StrBuf now)
{
    if (was.n != now.n || (was.n && memcmp(was.at, now.at, was.n) != 0))
        BUG("%s changes when it is printed:\n%s----\n%s", what, was.at ? was.at : "",
            now.at ? now.at : "");
}

static void check_nest(Ctx *c, const Sched *s)
{
    const TirModule *m = tirmod_new(c, 1, &s->f), *again;
    StrBuf           text = strbuf(c->arena), back = strbuf(c->arena);

    diag_drop(c->diags, 0);
    tir_print(c, m, &text);
    if (!tir_verify(c, m, TIR_NEST)) {
        diag_print(c->diags, DIAG_TEXT, &text);
        BUG("the nest of a schedule is not valid:\n%s", text.at);
    }
    if (!(again = tir_parse(c, "again.tir", bytes_of(text)))) {
        diag_print(c->diags, DIAG_TEXT, &text);
        BUG("the nest of a schedule does not parse:\n%s", text.at);
    }
    tir_print(c, again, &back);
    check_same("the nest of a schedule", text, back);
}

/* The steps that were taken, up to the first that is refused. */
static void check_steps(Ctx *c, const Sched *s)
{
    Sched *again = sched_new(c, &cpu, s->te);
    StrBuf text = strbuf(c->arena), back = strbuf(c->arena), nest = strbuf(c->arena),
           nest_back = strbuf(c->arena);

    sched_print(s, &text);
    if (!sched_parse(c, "again.sched", bytes_of(text), again))
        BUG("printed steps are refused:\n%s%s", text.at, again->refusal);
    sched_print(again, &back);
    check_same("a schedule", text, back);
    func_print(c, s->f, &nest);
    func_print(c, again->f, &nest_back);
    check_same("the nest of printed steps", nest, nest_back);
}

static void schedule(Ctx *c, const TeFunc *te, Bytes steps)
{
    Sched *s = sched_new(c, &cpu, te);

    sched_parse(c, "fuzz.sched", steps, s);
    if (arith_overflow(c->arith))
        return;
    check_nest(c, s);
    check_steps(c, s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena         *a = arena_new(NULL);
    Ctx           *c = ctx_new(a, diags_new(a), op_table);
    const uint8_t *cut = memmem(data, size, "\n----\n", 6);
    size_t         n = cut ? (size_t)(cut - data) + 1 : size;
    Bytes          steps = cut ? (Bytes){cut + 6, size - n - 5} : (Bytes){0};
    StrBuf         text = strbuf(a), back = strbuf(a);
    TeFuncs        te, again;

    if (te_parse_all(c, "fuzz.te", (Bytes){data, n}, &te)) {
        for (uint32_t i = 0; i < te.n; i++)
            te_print(c, te.at[i], &text);
        if (!te_parse_all(c, "again.te", bytes_of(text), &again)) {
            diag_print(c->diags, DIAG_TEXT, &back);
            BUG("printed text does not parse:\n%s%s", text.at, back.at);
        }
        for (uint32_t i = 0; i < again.n; i++)
            te_print(c, again.at[i], &back);
        check_same("te text", text, back);
        for (uint32_t i = 0; i < te.n; i++)
            schedule(c, te.at[i], steps);
    }
    ctx_free(c);
    arena_free(a);
    return 0;
}
