/* A context of each test's own, which must end without errors; for tests of what needs no
 * operators. */
#ifndef TVMCC_TESTS_CONTEXT_H
#define TVMCC_TESTS_CONTEXT_H

#include "ir/core.h"
#include "tests/unit/check.h"

static Arena *arena;
static Ctx   *c;

static void begin(void)
{
    arena = arena_new(NULL);
    c = ctx_new(arena, diags_new(arena), (OpTable){0, NULL});
}

static void end(void)
{
    StrBuf text = strbuf(arena);

    if (diag_errors(c->diags)) {
        diag_print(c->diags, DIAG_TEXT, &text);
        printf("%s", text.at);
    }
    CHECK_INT(diag_errors(c->diags), 0);
    ctx_free(c);
    arena_free(arena);
}

#endif
