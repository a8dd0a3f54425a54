/* A plan for a device: its device functions as one program text, its host function through the
 * host's own backend, which embeds the text as constant data.  The product is one object for any
 * OpenCL device: the program is built when the model is opened. */
#include "backends/opencl/opencl.h"

#include "tvmcc/abi.h"

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
    StrBuf text = strbuf(c->arena);
    VEC(const char *) name = {0}, symbol = {0};

    if (!opencl_source(c, p->tir, &text))
        return false;
    for (uint32_t i = 0; i < p->tir->nfuncs; i++) {
        const Func *f = p->tir->funcs[i];
        if (f->kind != FUNC_DEVICE)
            continue;
        vec_push(c->arena, &name, f->name);
        vec_push(c->arena, &symbol, opencl_symbol(c, f->name));
    }
    *d = (DeviceCode){TVMCC_DEVICE_OPENCL,
                      TVMCC_CODE_SOURCE,
                      p->target->text,
                      "-cl-std=CL1.2",
                      {(const uint8_t *)text.at, text.n},
                      p->arena_bytes,
                      name.n,
                      name.at,
                      symbol.at};
    return true;
}

static bool opencl_codegen(Ctx *c, const Plan *p, const CodegenOptions *o, const CodegenInfo *info,
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
    return backend_of(host.target->kind)->codegen(c, &host, &with, info, kind, out);
}

static Jit *opencl_jit_load(Ctx *c, const Target *t, Bytes object)
{
    return backend_of(t->host->kind)->jit_load(c, t->host, object);
}

/* What was loaded is the host's code. */
static void *opencl_jit_symbol(Jit *j, const char *func)
{
    return backend_of(KIND_LLVM)->jit_symbol(j, func);
}
static void opencl_jit_free(Jit *j)
{
    backend_of(KIND_LLVM)->jit_free(j);
}

const Backend backend_opencl = {
    .name = "opencl",
    .kind = KIND_OPENCL,
    .parse_target = opencl_parse_target,
    .list_targets = opencl_list_targets,
    .codegen = opencl_codegen,
    .jit_load = opencl_jit_load,
    .jit_symbol = opencl_jit_symbol,
    .jit_free = opencl_jit_free,
};
