/* The host program of a model with very many steps.
 *
 * It only calls, so code generators gain nothing where they take long: LLVM's passes are not linear
 * in the blocks of a function, and each step is two. */
#include "compile/compile.h"

/* Calls beyond which a host program is compiled at level 0.  2,400 steps took 14 s at level 3,
 * longer than all kernels; 400 take less than half a second. */
enum { MOST_CALLS = 1000 };

static uint32_t count_calls(const Stmt *s)
{
    uint32_t n = s->kind == STMT_CALL || s->kind == STMT_INVOKE;

    for (uint32_t i = 0; i < s->nkids; i++)
        n += count_calls(s->kids[i]);
    return n;
}

uint32_t host_level(const TirModule *host, uint32_t level)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < host->nfuncs; i++)
        n += count_calls(host->funcs[i]->body);
    return n > MOST_CALLS ? 0 : level;
}
