/* Instructions of an OpenCL target: sums of four products of bytes are a function of every program,
 * an instruction where the target says so (-supports_integer_dot_product=1). */
#include "backends/opencl/opencl.h"

enum { ONE_BY_ONE = 4 };

bool opencl_canonical(Ctx *c, Target *t, StrBuf *text)
{
    (void)c, (void)text;
    for (uint32_t i = 0; i < INTRIN_COUNT; i++)
        if (opencl_instruction((IntrinId)i))
            t->intrin_ops[i] = t->has & HAS_DOTS ? 1 : ONE_BY_ONE;
    return true;
}
