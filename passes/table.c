/* The pass table, from passes.def. */
#include "passes/passes.h"

#include <string.h>

enum {
#define GRAPH_PASS(name, opt, about)
#define ALGORITHM(name, opt, about) NUMBER_OF_##name,
#define TIR_PASS(name, opt, about)
#define PROGRAM_PASS(name, opt, about)
#define CODE_PASS(name, opt, about)
#include "passes/passes.def"
#undef GRAPH_PASS
#undef ALGORITHM
#undef TIR_PASS
#undef PROGRAM_PASS
#undef CODE_PASS
    ALGORITHMS
};

_Static_assert(ALGORITHMS <= 64, "Choices.without has a bit for each algorithm");

const Pass pass_table[] = {
#define GRAPH_PASS(name, opt, about) {#name, LEVEL_GRAPH, opt, about, .graph = name},
#define ALGORITHM(name, opt, about) \
    {#name, LEVEL_GRAPH, opt, about, .algorithm = (uint64_t)1 << NUMBER_OF_##name},
#define TIR_PASS(name, opt, about) {#name, LEVEL_TIR, opt, about, .tir = name},
#define PROGRAM_PASS(name, opt, about) {#name, LEVEL_PROGRAM, opt, about, .program = name},
#define CODE_PASS(name, opt, about) {#name, LEVEL_TIR, opt, about, .tir = name, .code = true},
#include "passes/passes.def"
#undef GRAPH_PASS
#undef ALGORITHM
#undef TIR_PASS
#undef PROGRAM_PASS
#undef CODE_PASS
};

const uint32_t pass_count = COUNT(pass_table);

const Pass *pass_find(const char *name)
{
    for (uint32_t i = 0; i < pass_count; i++)
        if (!strcmp(pass_table[i].name, name))
            return &pass_table[i];
    return NULL;
}
