/* Graphs within the graph that only say how they would run elsewhere: without gradients, in another
 * precision.  They are read in the place of their node. */
#include "frontends/pytorch/pytorch.h"

#include <string.h>

/* wrap_with_set_grad_enabled(enabled, graph, inputs ..), wrap_with_autocast(device, dtype, enabled,
 * cache, graph, inputs ..); of the latter only one that is not enabled says nothing. */
bool aten_region(PtNode *n)
{
    const PtOp    *p = n->p;
    PtValue      **in = NEW_ARRAY(n->b.c->arena, PtValue *, p->nin + 1), *out;
    const PtGraph *g = NULL;
    uint32_t       at = 0, count = 0;

    for (uint32_t i = 0; i < p->nin; i++) {
        n->read[i] = true;
        if (p->in[i].kind == PT_GRAPH && !g) {
            g = p->in[i].graph;
            at = i;
        } else if (g && p->in[i].kind != PT_TENSOR) {
            return pt_error(n, E_UNSUPPORTED, "an argument of its graph is no tensor");
        } else if (g && !(in[count++] = pt_value(n->im, p->in[i].text))) {
            return pt_error(n, E_IMPORT, "its argument '%s' is not computed before it",
                            p->in[i].text);
        }
    }
    if (!g)
        return pt_error(n, E_IMPORT, "it has no graph");
    if (strstr(p->target, "autocast") && (at < 3 || p->in[2].kind != PT_BOOL || p->in[2].i))
        return pt_error(n, E_UNSUPPORTED, "it computes in another precision");
    out = NEW_ARRAY(n->b.c->arena, PtValue, g->nout + 1);
    if (!pt_region(n, g, count, in, out))
        return false;
    if (n->nout == 1 && p->out[0].kind == PT_LIST) {
        n->out[0] = (PtValue){.list = true, .n = g->nout, .at = out};
        return true;
    }
    if (n->nout != g->nout)
        return pt_error(n, E_IMPORT, "its graph has %u outputs, not %u", g->nout, n->nout);
    memcpy(n->out, out, g->nout * sizeof *out);
    return true;
}
