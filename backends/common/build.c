/* A plan for a device: its device functions as one program, its host function through the host's
 * own backend, which embeds the program as constant data and opens it when the model is opened. */
#include "backends/common/device.h"

/* The plan as the host's backend sees it: without the device's functions. */
static Plan host_plan(Ctx *c, const Plan *p)
{
    VEC(const Func *) funcs = {0};
    Plan host = *p;

    for (uint32_t i = 0; i < p->tir->nfuncs; i++)
        if (p->tir->funcs[i]->kind != FUNC_DEVICE)
            vec_push(c->arena, &funcs, p->tir->funcs[i]);
    host.tir = tirmod_new(c, funcs.n, funcs.at);
    host.target = p->target->host;
    host.arena_bytes = host.private_bytes = 0;
    return host;
}

static bool device_code(Ctx *c, const Plan *p, DeviceCode *d)
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

bool device_codegen(Ctx *c, const Plan *p, const CodegenOptions *o, const CodegenInfo *info,
                    EmitKind kind, Bytes *out)
{
    CodegenOptions with = *o;
    DeviceCode     d;
    Plan           host;

    if (!device_code(c, p, &d))
        return false;
    if (kind == EMIT_SOURCE) {
        *out = d.code;
        return true;
    }
    host = host_plan(c, p);
    with.device = &d;
    return host.target->backend->codegen(c, &host, &with, info, kind, out);
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
