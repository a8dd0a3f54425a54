/* A plan for a device: its device functions as one program, which the host's object embeds as
 * constant data and opens when the model is opened. */
#include "backends/common/device.h"

bool device_code(Ctx *c, const Plan *p, DeviceCode *d)
{
    const Device *device = p->target->backend->device;
    VEC(const char *) name = {0}, symbol = {0};
    Bytes code;

    if (!device->program(c, p->tir, &code))
        return false;
    for (uint32_t i = 0; i < p->tir->nfuncs; i++) {
        const Func *f = p->tir->funcs[i];

        if (f->kind != FUNC_DEVICE)
            continue;
        vec_push(c->arena, &name, f->name);
        vec_push(c->arena, &symbol, device->symbol(c, f->name));
    }
    *d = (DeviceCode){.kind = device->kind,
                      .form = device->form,
                      .target = p->target->text,
                      .options = device->options,
                      .code = code,
                      .arena_bytes = p->arena_bytes,
                      .nkernels = name.n,
                      .kernels = name.at,
                      .symbols = symbol.at};
    return true;
}

/* What is loaded is the host's code. */
Jit *device_jit_load(Ctx *c, const Target *t, Bytes object)
{
    return t->host->backend->jit_load(c, t->host, object);
}

void *device_jit_symbol(Jit *j, const char *func)
{
    return backend_cpu()->jit_symbol(j, func);
}

void device_jit_free(Jit *j)
{
    backend_cpu()->jit_free(j);
}
