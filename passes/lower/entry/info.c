/* The constant that <entry>_info gives: tvmcc_model_info (include/tvmcc/abi.h), member by member as
 * record.def lists them. */
#include "passes/lower/entry/entry.h"

#ifndef TVMCC_VERSION
#define TVMCC_VERSION "0.0.0"
#endif

static const char *dims_constant(Entry *e, const Type *t)
{
    Items dims = {0};

    for (uint32_t k = 0; k < t->n; k++) {
        int64_t d = -1;

        type_dim(t, k, &d);
        item(e, &dims, ABI_I64, d);
    }
    return constant(e, &dims);
}

static const char *tensors(Entry *e, uint32_t n, const PlanIO *io, const Param *params)
{
    Items all = {0};

    for (uint32_t i = 0; i < n; i++) {
        const Type *t = io[i].type;

        item_symbol(e, &all, text_constant(e, io[i].name));
        item_symbol(e, &all, dims_constant(e, t));
        item(e, &all, ABI_SIZE, (int64_t)io_bytes(&io[i]));
        item(e, &all, ABI_U8, t->dtype.code);
        item(e, &all, ABI_U8, t->dtype.bits);
        item(e, &all, ABI_U16, t->dtype.lanes);
        item(e, &all, ABI_U32, t->n);
        item(e, &all, ABI_U32, is_dynamic(&io[i]) ? TVMCC_TENSOR_DYNAMIC : 0);
        item(e, &all, ABI_U32, io_align(&io[i], params[i].buffer));
        item(e, &all, ABI_F32, 0); /* scale */
        item(e, &all, ABI_I32, 0); /* zero point */
        item_symbol(e, &all, io[i].layout ? text_constant(e, io[i].layout) : NULL);
        item(e, &all, ABI_SIZE, io[i].state);
    }
    return records(e, &all, "tensor_info");
}

/* What device memory a run takes beside the weights. */
static const char *pools(Entry *e, const DeviceCode *d)
{
    Items all = {0};

    if (!d)
        return NULL;
    item_symbol(e, &all, text_constant(e, "arena"));
    item(e, &all, ABI_SIZE, (int64_t)d->arena_bytes);
    item(e, &all, ABI_U32, ARENA_ALIGN);
    item(e, &all, ABI_U32, TVMCC_POOL_DEVICE);
    return records(e, &all, "pool_info");
}

static const char *section_of_weights(Entry *e)
{
    if (!e->weights || e->o->extern_weights)
        return "";
    return e->o->weights_section ? e->o->weights_section
                                 : intern_printf(e->c->strings, ".rodata.%s_weights", e->o->entry);
}

const char *weight_info(Entry *e)
{
    Items    all = {0};
    uint32_t mode = !e->weights            ? TVMCC_WEIGHTS_FILE
                    : e->o->extern_weights ? TVMCC_WEIGHTS_EXTERN
                                           : TVMCC_WEIGHTS_EMBED;

    if (!e->plan->weights_bytes || e->weight_info)
        return e->weight_info;
    item_symbol(e, &all, text_constant(e, section_of_weights(e)));
    item_symbol(e, &all, e->weights);
    item(e, &all, ABI_SIZE, (int64_t)e->plan->weights_bytes);
    item(e, &all, ABI_U32, mode);
    item(e, &all, ABI_U32, WEIGHTS_ALIGN);
    item_bytes(e, &all, e->info->weights_sha, sizeof e->info->weights_sha);
    e->weight_info = records(e, &all, "weight_info");
    return e->weight_info;
}

const char *model_info(Entry *e, const char *run, const char *open, const char *close,
                       const Others *others)
{
    const Plan       *p = e->plan;
    const DeviceCode *d = e->plan->device;
    const Others      none = {0}, *b = others ? others : &none;
    const uint32_t    bits = p->target->pointer_bits;
    const uint32_t cells = b->state_cells ? b->state_cells : d ? plan_state_cells(d->nkernels) : 0;
    const Param   *params = e->main->params;
    Items          all = {0};

    item(e, &all, ABI_U32, TVMCC_ABI);
    item_sizeof(e, &all, "model_info");
    item_symbol(e, &all, text_constant(e, e->o->entry));
    item_symbol(e, &all, text_constant(e, "tvmcc " TVMCC_VERSION));
    item_symbol(e, &all,
                text_constant(e, b->targets ? b->targets
                                 : d        ? d->target
                                            : p->target->text));
    item_bytes(e, &all, e->info->model_sha, sizeof e->info->model_sha);
    item_bytes(e, &all, e->info->build_id, sizeof e->info->build_id);
    item(e, &all, ABI_U32, p->nin);
    item(e, &all, ABI_U32, p->nout);
    item(e, &all, ABI_U32, d != NULL);
    item(e, &all, ABI_U32, p->weights_bytes != 0);
    item_symbol(e, &all, tensors(e, p->nin, p->in, params));
    item_symbol(e, &all, tensors(e, p->nout, p->out, params + p->nin));
    item_symbol(e, &all, pools(e, d));
    item_symbol(e, &all, weight_info(e));
    /* Of an open plan <entry>_sizes says it. */
    item(e, &all, ABI_SIZE, p->arena ? 0 : (int64_t)p->arena_bytes);
    item(e, &all, ABI_SIZE, p->arena ? 0 : (int64_t)p->private_bytes);
    item(e, &all, ABI_U32, ARENA_ALIGN);
    item(e, &all, ABI_U32, b->device ? b->device : d ? d->kind : TVMCC_DEVICE_CPU);
    item(e, &all, ABI_SIZE, (int64_t)cells * bits / 8);
    item_symbol(e, &all, run);
    item_symbol(e, &all, open);
    item_symbol(e, &all, close);
    item(e, &all, ABI_U32, b->n);
    item(e, &all, ABI_U32, b->ndims);
    item_symbol(e, &all, b->infos);
    item_symbol(e, &all, b->names);
    item_symbol(e, &all, b->sizes);
    item(e, &all, ABI_U32, b->nfallbacks);
    item(e, &all, ABI_U32, 0);
    item_symbol(e, &all, b->fallbacks);
    return records(e, &all, "model_info");
}
