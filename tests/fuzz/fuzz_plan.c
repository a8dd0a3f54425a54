/* Any bytes as S.plan and as S.id: a plan that is read prints as a plan with the same text; its
 * kernels, its host program, its header and its description are made, or refused with an error. */
#include "compile/compile.h"
#include "ops/ops.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(Ctx *c, const Compiled *k)
{
    StrBuf   text = strbuf(c->arena), back = strbuf(c->arena);
    Compiled again = {0};

    plan_print(c, k->plan, &text);
    if (!compile_plan_text(c, &again, "again.plan", (Bytes){(const uint8_t *)text.at, text.n})) {
        diag_print(c->diags, DIAG_TEXT, &back);
        BUG("a printed plan is not read:\n%s----\n%s", text.at, back.at);
    }
    plan_print(c, again.plan, &back);
    if (strcmp(text.at, back.at) != 0)
        BUG("a printed plan reads as another:\n%s----\n%s", text.at, back.at);
}

/* Diagnostics of wrong code say so; only a crash is a failure here. */
static void make_code(Ctx *c, Compiled *k)
{
    Bytes out;

    compile_units(c, k, (Shard){0, 1}, &out);
    compile_host(c, k, &out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena         *a = arena_new(NULL);
    Ctx           *c = ctx_new(a, diags_new(a), op_table);
    Bytes          text = {data, size};
    CompileOptions o = {.passes.jobs = 1};
    Compiled       k = {.o = &o};
    Identity       id;
    StrBuf         messages = strbuf(a);

    identity_parse(c, "fuzz.id", text, &id);
    if (compile_plan_text(c, &k, "fuzz.plan", text)) {
        check_text(c, &k);
        if (compile_desc(c, &k))
            make_code(c, &k);
    }
    diag_print(c->diags, DIAG_TEXT, &messages);
    ctx_free(c);
    arena_free(a);
    return 0;
}
