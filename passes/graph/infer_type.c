/* infer_type: complete every type.
 *
 * The work is relay_infer's (ir/relay/infer.c); this is its name in pipelines.
 *
 *   fn @f(%n) { %0 = equal(%n, 0); if %0 {..} else {.. @f(%1) } }
 *     -> fn @f(%n: Tensor[(), i32]) { .. }
 *
 * Cost: a few walks over the module. */
#include "passes/passes.h"

const Module *infer_type(Ctx *c, const Module *m)
{
    return relay_infer(c, m);
}
