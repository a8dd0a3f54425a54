/* C99 as a backend: a model as one file of text for the compiler of a machine that LLVM does not
 * know, or whose vendor's compiler is to be used.  It runs where a pointer has whatever width. */
#include "backends/c/c.h"

static void list_targets(StrBuf *out)
{
    str_add(out,
            "c        any compiler of C99; -mtriple= and -mcpu= say for which machine loops are "
            "arranged, -mattr= which vectors of GNU C the text has\n");
}

static bool codegen(Ctx *c, const Plan *p, const CodegenOptions *o, const CodegenInfo *info,
                    EmitKind kind, Bytes *out)
{
    StrBuf text = strbuf(c->arena);

    if (kind != EMIT_SOURCE)
        return error_at(c, E_CODEGEN, NO_LOC, "the C backend writes C, no code of a machine");
    if (!c_source(c, p, o, info, &text))
        return false;
    *out = (Bytes){(const uint8_t *)text.at, text.n};
    return true;
}

const Backend backend_c = {
    .name = "c",
    .is_source = true,
    .compiler_options = c_compiler_options,
    .parse_target = c_parse_target,
    .list_targets = list_targets,
    .codegen = codegen,
};
