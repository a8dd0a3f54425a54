/* desc.c: what packaging says about a product, taken from the plan of a compile.
 *
 * Hashes, weights mode and toolchain are the driver's to add: a plan knows neither files nor
 * options.
 */
#include "packaging/packaging.h"

#include "ir/plan.h"

enum { ARENA_ALIGN = 64 };

/* Generated code asks for the alignment of an element, or more where the host function says so. */
static uint32_t tensor_align(const PlanIO *io, const Param *param)
{
    uint32_t align = dtype_bytes(io->type->dtype);

    return param->buffer->align > align ? param->buffer->align : align;
}

static bool desc_tensor(Ctx *c, const PlanIO *io, const Param *param, TensorDesc *out)
{
    const Type *t = io->type;
    int64_t    *dims = NEW_ARRAY(c->arena, int64_t, t->n ? t->n : 1);
    uint64_t    bytes = dtype_bytes(t->dtype);

    for (uint32_t i = 0; i < t->n; i++)
        if (!type_dim(t, i, &dims[i]) || dims[i] < 0 ||
            !checked_mul(bytes, (uint64_t)dims[i], &bytes))
            return error_at(c, E_DIM, NO_LOC, "dimension %u of '%s' must be a number here", i,
                            io->name);
    *out = (TensorDesc){
        .name = io->name,
        .code = t->dtype.code,
        .bits = t->dtype.bits,
        .lanes = t->dtype.lanes,
        .ndim = t->n,
        .dims = dims,
        .bytes = bytes,
        .align = tensor_align(io, param),
        .layout = io->layout,
        .state = io->state,
    };
    return true;
}

ModelDesc *desc_of_plan(Ctx *c, const Plan *p)
{
    ModelDesc   *m = NEW(c->arena, ModelDesc);
    const Param *params = p->tir->funcs[p->tir->nfuncs - 1]->params; /* of the host function */

    *m = (ModelDesc){
        .entry = p->name,
        .model = p->name,
        .nin = p->nin,
        .nout = p->nout,
        .in = NEW_ARRAY(c->arena, TensorDesc, p->nin ? p->nin : 1),
        .out = NEW_ARRAY(c->arena, TensorDesc, p->nout ? p->nout : 1),
        .arena_shared = p->target->host ? 0 : p->arena_bytes,
        .arena_private = p->target->host ? 0 : p->private_bytes,
        .state_bytes = plan_state_bytes(p),
        .arena_align = ARENA_ALIGN,
        .arena_floor = p->arena_floor,
        .weights_bytes = p->weights_bytes,
        .triple = p->target->host ? p->target->host->triple : p->target->triple,
        .targets = p->target->text,
        .toolchain = "tvmcc " TVMCC_VERSION,
        .macs = p->macs,
        .nlabels = p->nlabels,
        .labels = p->labels,
        .pointer_bits = p->target->pointer_bits,
    };
    for (uint32_t i = 0; i < p->nin; i++)
        if (!desc_tensor(c, &p->in[i], &params[i], &m->in[i]))
            return NULL;
    for (uint32_t i = 0; i < p->nout; i++)
        if (!desc_tensor(c, &p->out[i], &params[p->nin + i], &m->out[i]))
            return NULL;
    return desc_finish(c->diags, c->arena, m) ? m : NULL;
}
