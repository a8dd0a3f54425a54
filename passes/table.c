/* The pass table, from passes.def. */
#include "passes/passes.h"

#include <string.h>

const Pass pass_table[] = {
#define GRAPH_PASS(name, opt, about) {#name, LEVEL_GRAPH, opt, name, NULL, about, false},
#define ALGORITHM(name, opt, about) {#name, LEVEL_GRAPH, opt, NULL, NULL, about, false},
#define TIR_PASS(name, opt, about) {#name, LEVEL_TIR, opt, NULL, name, about, false},
#define CODE_PASS(name, opt, about) {#name, LEVEL_TIR, opt, NULL, name, about, true},
#include "passes/passes.def"
#undef GRAPH_PASS
#undef ALGORITHM
#undef TIR_PASS
#undef CODE_PASS
};

const uint32_t pass_count = COUNT(pass_table);

_Static_assert(COUNT(pass_table) <= 64, "Choices.without has a bit for each row");

const Pass *pass_find(const char *name)
{
    for (uint32_t i = 0; i < pass_count; i++)
        if (!strcmp(pass_table[i].name, name))
            return &pass_table[i];
    return NULL;
}
